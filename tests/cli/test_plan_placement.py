"""``routecast plan placement`` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from routecast.cli.run import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "thesis.placement.toml"


def test_the_answer_says_where_everything_goes_what_sharing_costs_and_what_comes_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "placement", str(EXAMPLE), "--frames", "64 B", "--no-simulate"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "No mapping is better: proven" in said
    for words in ("dell: ", "supermicro: ", "without loss", "Bottleneck: ", "Next best"):
        assert words in said


def test_the_json_and_the_folder_hold_each_frame_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    asked = ["--frames", "64 B", "--frames", "1500 B", "--offered", "100 kpps", "--json", "--out", str(out)]
    assert run(["plan", "placement", str(EXAMPLE), *asked]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "placement.json").read_text(encoding="utf-8"))
    assert [one["frames"] for one in printed["answers"]] == ["64 B", "1500 B"]
    for one in printed["answers"]:
        assert set(one["best"]["servers"]) == {"lb 1", "lb 2", "br 1", "br 2"}
        assert one["bound"] >= one["best"]["value"] * (1.0 - 1e-9)
        assert one["best"]["simulated"]["seeds"] == [11, 12]
    with (out / "elements.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 8
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
