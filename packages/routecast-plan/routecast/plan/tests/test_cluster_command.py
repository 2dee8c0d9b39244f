"""``routecast plan cluster`` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import routecast
from routecast.cli.run import run

EXAMPLE = Path(routecast.__file__).parents[3] / "examples" / "li2012.cluster.toml"


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """The example, over two days of its trace."""
    path = tmp_path / "short.cluster.toml"
    text = (
        EXAMPLE.read_text(encoding="utf-8").replace("days = 21", "days = 2").replace("[2000, 2500, 4000]", "[2000, 9]")
    )
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.slow
def test_the_plan_says_what_to_buy_what_it_needs_and_which_machines_are_on(
    short: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "cluster", str(short)]) == 0
    printed = capsys.readouterr()
    first = printed.out.splitlines()[0]
    assert first.startswith("Buy ")
    assert "for 3,000 $" in first
    for words in (
        "kWh a day",
        "proven",
        "Design-II",
        "Design-V, 2,000 $",
        "bound",
        "20:00",
        "50.00",
        "off-line",
        "Missed",
    ):
        assert words in printed.out
    # A further budget that buys nothing is no reason to answer nothing.
    assert "9 $: the budget 9 is 1991 too small" in printed.err


@pytest.mark.slow
def test_the_json_has_base_units_and_a_plan_for_every_step(short: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "cluster", str(short), "--budget", "2000", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["budget"] == 2000
    assert plan["design"]["fleet"] == {"I": 8, "II": 0, "III": 0, "IV": 0}
    assert plan["design"]["price"] == 2000
    capacity = {"I": 6.5e9, "II": 8.7e9, "III": 10e9, "IV": 8.5e9}
    for load, on in zip(plan["traffic"]["l2_bps"], plan["design"]["on"], strict=True):
        assert sum(n * c for n, c in zip(on, capacity.values(), strict=True)) >= load
    assert plan["trace"]["days"] == 2


def test_a_budget_that_is_too_small_exits_with_2_and_names_the_least(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "cluster", str(EXAMPLE), "--budget", "1500"]) == 2
    message = capsys.readouterr().err
    assert "500 too small" in message
    assert "raise the budget to 2000" in " ".join(message.split())


@pytest.mark.slow
def test_the_folder_holds_plan_schedule_and_figures(short: Path, tmp_path: Path) -> None:
    out, figure = tmp_path / "out", tmp_path / "power.svg"
    assert run(["plan", "cluster", str(short), "--out", str(out), "--figure", str(figure), "--json"]) == 0
    plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    with (out / "schedule.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["from"] for row in rows[:2]] == ["00:00", "01:00"]
    energy_j = sum(float(row["power_w"]) for row in rows) * 3600.0
    assert energy_j == pytest.approx(plan["design"]["energy_j"], rel=1e-4)
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    assert {path.name for path in (out / "figures").iterdir()} == {"power.svg", "machines.svg"}
    assert "Which machines to buy" in (out / "report.html").read_text(encoding="utf-8")


def test_traces_without_unit_or_with_a_gap_exit_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "bare.csv"
    bare.write_text("time,traffic\n" + "".join(f"2020-01-01 {h:02d}:00:00,{h + 1}\n" for h in range(24) if h != 7))
    assert run(["plan", "cluster", str(EXAMPLE), "--trace", str(bare)]) == 2
    assert "unit" in capsys.readouterr().err
    assert run(["plan", "cluster", str(EXAMPLE), "--trace", str(bare), "--unit", "Mbit/s"]) == 2
    assert "hold" in capsys.readouterr().err
    given = ["--trace", str(bare), "--unit", "Mbit/s", "--gaps", "hold", "--budget", "3000", "--json"]
    assert run(["plan", "cluster", str(EXAMPLE), *given]) == 0
    assert json.loads(capsys.readouterr().out)["traffic"]["l2_bps"][7] == pytest.approx(50e9 * 7 / 24)


@pytest.mark.slow
def test_a_spare_machine_costs_more(short: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = []
    for spare in ("0", "1"):
        assert run(["plan", "cluster", str(short), "--spare", spare, "--budget", "2500", "--json"]) == 0
        prices.append(json.loads(capsys.readouterr().out)["design"]["kwh_per_day"])
    assert prices[1] > prices[0]


def test_the_schema_of_cluster_files_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "cluster"]) == 0
    assert {"traffic", "group"} <= set(json.loads(capsys.readouterr().out)["required"])


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_planned(
    short: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "cluster", str(short), "--out", str(short / "out")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--out" in printed.err
