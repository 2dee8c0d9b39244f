"""``routecast plan placement`` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import routecast
from routecast.cli.run import run

EXAMPLE = Path(routecast.__file__).parents[3] / "examples" / "li2012.placement.toml"


@pytest.mark.slow
def test_the_answer_says_where_everything_goes_what_sharing_costs_and_what_comes_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "placement", str(EXAMPLE), "--frames", "64 B", "--no-simulate"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert ": proven, over all mappings" in output
    assert "By prediction, server by server, no mapping is better than" in output
    for words in ("dell: ", "supermicro: ", "without loss", "Bottleneck: ", "Next best"):
        assert words in output


@pytest.mark.slow
def test_the_json_and_the_folder_hold_each_frame_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, file = tmp_path / "out", tmp_path / "one.placement.toml"
    file.write_text(EXAMPLE.read_text(encoding="utf-8").replace("count = 2", "count = 1"), encoding="utf-8")
    options = ["--frames", "64 B", "--frames", "1500 B", "--offered", "100 kpps", "--json", "--out", str(out)]
    assert run(["plan", "placement", str(file), *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "placement.json").read_text(encoding="utf-8"))
    assert [entry["frames"] for entry in printed["answers"]] == ["64 B", "1500 B"]
    for entry in printed["answers"]:
        assert set(entry["best"]["servers"]) == {"lb", "br"}
        assert entry["bound"] >= entry["best"]["value"] * (1.0 - 1e-9)
        assert entry["best"]["simulated"]["seeds"] == [11, 12]
    with (out / "elements.csv").open(encoding="utf-8") as table:
        assert len(list(csv.DictReader(table))) == 4
    assert (out / "figures" / "placement-64-b.svg").read_text(encoding="utf-8").count("core") >= 2
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")


def test_a_placement_that_cannot_exist_ends_with_the_rules_that_contradict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.placement.toml"
    text = EXAMPLE.read_text(encoding="utf-8").replace("[plan]", '[rules]\napart = [["lb", "br"]]\n[plan]')
    file.write_text(text, encoding="utf-8")
    assert run(["plan", "placement", str(file)]) == 2
    assert "lb, br: no two on one server" in capsys.readouterr().err


LATE = """
technology = "kvm-vhost-2012"
[[server]]
name = "host"
cores = 4
[[element]]
name = "lb"
kind = "balancer"
[[element]]
name = "br"
kind = "router"
[traffic]
frames = "64 B"
offered = "50 kpps"
[plan]
objective = "{objective}"
target = "50 kpps"
latency = "{latency}"
"""


@pytest.mark.parametrize("objective", ["servers", "throughput"])
@pytest.mark.parametrize(("latency", "met"), [("1 ns", False), ("1 s", True)])
@pytest.mark.slow
def test_a_latency_that_no_mapping_meets_is_reported_and_exits_with_1(
    objective: str, latency: str, met: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "late.placement.toml"
    text = LATE.format(objective=objective, latency=latency)
    if objective == "throughput":
        text = text.replace('target = "50 kpps"\n', "")
    file.write_text(text, encoding="utf-8")
    assert run(["plan", "placement", str(file), "--json"]) == (0 if met else 1)
    (result,) = json.loads(capsys.readouterr().out)["answers"]
    assert result["met"] is met
    assert (result["best"]["simulated"]["latency_s"] <= result["latency_target_s"]) is met
    if objective == "servers":
        assert run(["plan", "placement", str(file)]) == (0 if met else 1)
        output = " ".join(capsys.readouterr().out.split())
        assert ("The target is NOT MET" in output) is not met
        assert "Mean latency at 50 kpps with evenly spaced arrivals: simulated" in output


def test_links_that_carry_next_to_nothing_have_a_readable_rate() -> None:
    from routecast.plan.placement._views import describe_rate

    assert describe_rate(2.976e-291) == "less than 0.001 pps"
    assert describe_rate(0.0) == "0 pps"
    assert describe_rate(2e6) == "2 Mpps"
