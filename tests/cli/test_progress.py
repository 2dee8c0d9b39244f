"""Progress on stderr where it is no terminal: the log of a batch job."""

from __future__ import annotations

import pytest

from routecast.cli import console


def test_a_log_gets_a_line_at_times(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    with console.progress_bar("experiment t") as report:
        report(3, 1000, "2 min left")
    captured = capsys.readouterr()
    assert "experiment t: 3 of 1,000; 2 min left" in captured.err
    assert captured.out == ""


def test_short_work_leaves_a_log_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress_bar("experiment t") as report:
        for done in range(100):
            report(done, 100, "")
    assert capsys.readouterr().err == ""


def test_a_total_that_was_too_low_grows_with_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    with console.progress_bar("study t") as report:
        report(504, 383, "figures")
    assert "study t: 504 of 504; figures" in capsys.readouterr().err
