"""``routecast simulate --over-time``: the verdict on a throughput, readings beside it, the figure."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from routecast.cli.run import run

ROUTER = """
builder = "multicore"
cores = 1
queue = "10000 frames"
service = { per_packet = "1 us" }
[load]
rate = "2 Mpps"
"""


@pytest.fixture
def router(tmp_path: Path) -> str:
    path = tmp_path / "one.router.toml"
    path.write_text(ROUTER)
    return str(path)


def test_the_verdict_is_a_sentence_beside_the_table_of_readings(
    router: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["simulate", router, "--duration", "100 ms", "--over-time", "--read-at", "50 us"]
    assert run(arguments) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "Throughput over time: Steady from" in output
    assert "1 Mpps (95 %" in output
    assert "Readings during the trial" in output
    assert run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["over_time"]) == 1000
    assert document["steadiness"]["is_steady"] is True
    # A core of 1 us a frame forwards 1e6 frames a second, whatever comes.
    assert document["steadiness"]["mean"] == pytest.approx(1e6, rel=1e-3)
    assert document["steadiness"]["low"] <= document["steadiness"]["mean"] <= document["steadiness"]["high"]
    assert document["readings"][0]["at_s"] == pytest.approx(50e-6)
    assert document["readings"][0]["counted"] <= 50.0


def test_a_trial_too_short_to_say_is_an_answer_not_an_error(router: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", router, "--duration", "100 us", "--over-time"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "Not steady: too few frames for a verdict" in output


def test_the_figure_shows_the_rate_the_end_of_the_transient_and_the_steady_mean(
    router: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "over-time.svg"
    load = ["--load", "0.9 Mpps", "--arrivals", "poisson"]
    assert run(["simulate", router, *load, "--duration", "50 ms", "--figure", str(file)]) == 0
    assert "Steady" in capsys.readouterr().out
    root = ElementTree.parse(file).getroot()
    texts = {node.text for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"forwarded", "mean since the start", "time [ms]"} <= texts
    assert any(str(text).startswith("steady mean") for text in texts)


def test_what_happens_to_a_router_is_drawn_and_not_judged(
    router: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "outage.svg"
    outage = ["--fail", "core 0", "--at", "20 ms", "--until", "40 ms"]
    assert run(["simulate", router, *outage, "--duration", "60 ms", "--figure", str(file)]) == 0
    assert "Throughput over time" not in capsys.readouterr().out
    assert "steady mean" not in file.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--read-at", "2 s"], "within the trial, 0 to 100 ms"),
        (["--read-at", "soon"], "soon"),
        (["--figure", "over-time.pdf"], "a figure is an SVG file"),
    ],
)
def test_what_cannot_be_read_or_drawn_is_refused_first(
    options: list[str], message: str, router: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", router, *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
