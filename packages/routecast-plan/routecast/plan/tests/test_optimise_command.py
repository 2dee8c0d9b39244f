"""``routecast power optimise`` on files: its answer, its exit codes, its figures."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import routecast
from routecast.cli.run import run
from routecast.evaluate.targets import parse_targets
from routecast.plan.power._views import front_figure
from routecast.plan.power.operating.optimise import Effort, operating_point, tunable_router
from routecast.quantity.toml_file import parse_toml
from routecast.show.figures import Line, Points

EXAMPLE = Path(routecast.__file__).parents[3] / "examples" / "green.router.toml"
QUICK = ("--duration", "10 ms", "--replications", "2")
SERIES = "time,load (Mbit/s)\n" + "".join(f"2020-01-01T{hour:02d}:00:00,{100 + 20 * hour}\n" for hour in range(24))


def optimise(*arguments: str, expected: int = 0, router: Path = EXAMPLE) -> None:
    assert run(["power", "optimise", str(router), *QUICK, *arguments]) == expected


@pytest.mark.slow
def test_the_example_is_answered_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    optimise("--load", "1 Mpps", "--target", "p99 < 100 us", "--json")
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    best, check = answer["best"], answer["check"]
    assert answer["targets"] == ["p99 < 100 us", "loss = 0"]
    assert best["is_met"]
    assert best["values"]["p99_s"] < 100e-6
    assert check["p99_s"]["interval"][1] < 100e-6
    # All cores at the highest clock, polling: 4 x 10 W and 10 W that nothing saves.
    assert best["least_w"] <= best["power_w"] < 50.0
    counts = answer["settings"]
    assert counts["overloaded"] + counts["evaluated"] + counts["pruned"] == counts["enumerated"] == 192
    assert best["power_w"] == min(item["power_w"] for item in answer["front"] if item["is_met"])


def test_the_example_says_that_its_figures_are_nobodys_measurements() -> None:
    head = " ".join(line.lstrip("# ") for line in EXAMPLE.read_text().splitlines() if line.startswith("#"))
    assert "ROUND" in head
    assert "replace" in head


@pytest.mark.slow
def test_the_table_names_the_setting_the_interval_and_the_front(capsys: pytest.CaptureFixture[str]) -> None:
    optimise("--target", "p99 < 100 us")
    shown = capsys.readouterr().out
    assert "green router at 1 Mpps: the fewest watts" in shown
    assert "95 %" in shown
    assert "Watts against p99 latency" in shown


@pytest.mark.slow
def test_an_unreachable_target_leaves_with_1_and_says_what_is_reachable(capsys: pytest.CaptureFixture[str]) -> None:
    optimise("--target", "p99 < 100 ns", "--json", expected=1)
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    assert answer["best"] is None
    assert answer["nearest"]["values"]["p99_s"] > 100e-9
    assert "p99 < 100 ns: the best reachable is" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "p98 < 1 ms"), 'did you mean "p99"'),
        (("--replications", "1"), "an interval needs at least 2"),
        (("--pool", "cpuu"), 'did you mean "cpu"'),
        (("--linger", "20"), "unit"),
        (("--day", "synthetic"), "give --peak"),
    ],
)
def test_wrong_options_leave_with_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    optimise(*arguments, expected=2)
    assert message in capsys.readouterr().err


def test_a_file_without_power_states_is_reported_with_what_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    optimise("--target", "p99 < 1 ms", expected=2, router=EXAMPLE.with_name("multicore.router.toml"))
    assert "has no power states" in capsys.readouterr().err


@pytest.mark.slow
def test_the_front_is_drawn_with_the_target_and_the_best(tmp_path: Path) -> None:
    figure = tmp_path / "front.svg"
    optimise("--target", "p99 < 100 us", "--figure", str(figure), "--all")
    texts = [node.text or "" for node in ElementTree.fromstring(figure.read_text()).iter() if node.text]
    assert {"evaluated", "target", "p99 latency (us)"} <= set(texts)
    assert any(text.startswith("best: ") for text in texts)


@pytest.mark.slow
def test_a_day_is_planned_from_a_series_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series, figure = tmp_path / "day.csv", tmp_path / "day.svg"
    series.write_text(SERIES)
    options = (
        "--target",
        "p99 < 100 us",
        "--day",
        str(series),
        "--peak",
        "2 Mpps",
        "--step",
        "6 h",
        "--linger",
        "15 us",
    )
    optimise(*options, "--switch-energy", "1 kJ", "--dwell", "12 h", "--figure", str(figure), "--json")
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    plan, per_step, always = answer["courses"]
    assert [step["start_s"] for step in answer["steps"]] == [6 * 3600.0 * number for number in range(4)]
    assert max(step["rate_pps"] for step in answer["steps"]) == pytest.approx(2e6)
    assert all(step["check"]["is_met"] for step in answer["steps"])
    assert per_step["energy_j"] <= plan["energy_j"] < always["energy_j"]
    assert plan["switching_j"] == 1000.0 * plan["switchings"]
    assert "power over the day" in figure.read_text()
    optimise(*options)
    assert "Energy of the day" in capsys.readouterr().out


TRACE = "time_s,frame_bytes,flow\n" + "".join(
    f"{number * (2e-6 if number < 500 else 80e-6):.9f},64,{number % 8}\n" for number in range(1000)
)


def test_a_trace_is_searched_and_checked_whole_whatever_the_duration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE)
    optimise("--arrivals", str(trace), "--json")
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    # The last frame comes at 999 x 80 us, and a mean gap follows it.
    assert answer["check"]["duration_s"] == pytest.approx(1000 * 80e-6)
    assert "--duration 10 ms has no effect" in shown.err


@pytest.mark.slow
def test_the_front_says_for_every_bound_the_fewest_watts_that_a_real_setting_has() -> None:
    machine = tunable_router(parse_toml(EXAMPLE.read_text(), "green"), lingers_s=(15e-6,))
    assert machine.load is not None
    effort = Effort(duration_s=5e-3, replications=0, is_exhaustive=True)
    result = operating_point(machine, machine.load, parse_targets(["p99 < 100 us"]), effort)
    drawn = front_figure(result, machine)
    line = next(mark for mark in drawn.marks if isinstance(mark, Line) and mark.name.startswith("front"))
    lossless = [setting for setting in result.judged if setting.values[1] == 0.0]
    assert len(line.x) > 3
    for (x0, y0), (x1, y1) in pairwise(zip(line.x, line.y, strict=True)):
        assert x0 == x1 or y0 == y1
        if x0 < x1:
            bound_s = math.sqrt(x0 * x1) / 1e6
            assert y0 == min(setting.power_w for setting in lossless if setting.latency_s("p99") <= bound_s)
    named = next(mark for mark in drawn.marks if isinstance(mark, Points) and mark.is_labelled)
    assert all(watts in {setting.power_w for setting in lossless} for watts in named.y)


def test_a_front_without_settings_is_not_drawn_and_the_answer_still_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "front.svg"
    options = ("--load", "100 Mpps", "--target", "p99 < 100 us", "--figure", str(figure))
    assert run(["power", "optimise", str(EXAMPLE), *options]) == 1
    output = " ".join(capsys.readouterr().err.split())
    assert "is not written: of no setting are watts and latency known" in output
    assert "every setting is overloaded" in output
    assert not figure.exists()
