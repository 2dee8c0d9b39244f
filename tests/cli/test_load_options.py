"""Options of the load that belong to one arrival process: out of range they are refused, elsewhere they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.cli.run import run

_ROUTER = 'builder = "multicore"\ncores = 1\nservice = { per_packet = "1 us" }\n'


@pytest.fixture
def router(tmp_path: Path) -> str:
    path = tmp_path / "one.router.toml"
    path.write_text(_ROUTER)
    return str(path)


@pytest.mark.parametrize("command", ["solve", "simulate"])
@pytest.mark.parametrize(
    ("option", "value"), [("--burst-frames", "-1"), ("--burst-frames", "0"), ("--peak-ratio", "-1")]
)
def test_a_burst_out_of_range_is_refused_whatever_the_arrivals(
    router: str, command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, router, "--load", "100 kpps", option, value]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert option in message
    assert "greater than or equal to" in message.replace("│ ", "")


@pytest.mark.parametrize("arrivals", [[], ["--arrivals", "poisson"]])
@pytest.mark.parametrize("option", ["--burst-frames", "--peak-ratio"])
def test_a_burst_beside_other_arrivals_has_no_effect_and_a_note_follows(
    router: str, option: str, arrivals: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["solve", router, "--load", "100 kpps", option, "8", *arrivals]) == 0
    assert f"{option} has no effect: it is for --arrivals on_off" in " ".join(capsys.readouterr().err.split())


def test_a_burst_of_on_off_arrivals_is_taken_without_a_remark(router: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", router, "--load", "100 kpps", "--arrivals", "on_off", "--burst-frames", "8"]) == 0
    assert "no effect" not in capsys.readouterr().err
