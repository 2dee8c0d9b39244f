"""What routecast says stays as this folder holds it, unless a change says why; ``make corpus`` writes it anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from corpus import (
    HERE,
    SHORT,
    Page,
    as_page,
    commands,
    hold,
    recorded,
    short_studies,
    skeleton,
    studies,
    write_short_studies,
)
from faults import faults, files, subject

LONG = {"experiment/multicore_lhs": pytest.mark.thorough} | dict.fromkeys(
    (
        "noc/compare-mesh8x8",
        "noc/compare-two-planes",
        "noc/simulate-mesh8x8",
        "noc/optimum-two-planes",
        "plan/mapping-ixp2850",
        "plan/placement-li2012",
        "plan/cluster-li2012",
    ),
    pytest.mark.slow,
)
"""Pages of commands that take more than a second, and their tiers."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=LONG.get(page.name, ())) for page in commands()], ids=lambda page: page.name
)
@pytest.mark.slow
def test_a_command_prints_what_the_corpus_holds(page: Page, tmp_path: Path) -> None:
    hold(page.path, recorded(page, tmp_path / "out"), page.digits)


def hold_report(page: Page, out: Path) -> None:
    hold(page.path.with_suffix(".html"), skeleton((out / "report.html").read_text()).replace(str(out), "OUT"))


def tier(page: Page) -> pytest.MarkDecorator:
    return pytest.mark.thorough if page.name.removeprefix("study/") in SHORT else pytest.mark.slow


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=tier(page)) for page in studies()], ids=lambda page: page.name
)
@pytest.mark.slow
def test_a_study_finds_and_shows_what_it_did(page: Page, study: Callable[[str], Path]) -> None:
    out = study(page.name.removeprefix("study/"))
    code, stdout = int((out / "exit_code.txt").read_text()), (out / "stdout.txt").read_text()
    hold(page.path, as_page(page, code, stdout, (out / "stderr.txt").read_text(), {str(out): "OUT"}))
    hold_report(page, out)


@pytest.mark.slow
@pytest.mark.parametrize("page", list(short_studies()), ids=lambda page: page.name)
def test_a_short_study_finds_and_shows_what_it_did(page: Page, tmp_path: Path) -> None:
    write_short_studies(tmp_path)
    hold(page.path, recorded(page, tmp_path / "out", tmp_path))
    hold_report(page, tmp_path / "out")


@pytest.mark.parametrize("file", files(), ids=subject)
@pytest.mark.slow
def test_a_faulty_file_gets_the_messages_of_the_corpus(file: Path, tmp_path: Path) -> None:
    hold(HERE / f"{subject(file)}.txt", faults(file, tmp_path))


def test_every_file_of_the_corpus_is_made_by_something() -> None:
    made = {page.path for page in (*commands(), *studies(), *short_studies())} | {
        HERE / f"{subject(file)}.txt" for file in files()
    }
    made |= {page.path.with_suffix(".html") for page in (*studies(), *short_studies())} | {
        HERE / "board.txt"
    }  # tests/calibration/test_board.py
    kept = {path for path in HERE.rglob("*") if path.suffix in {".txt", ".html"}}
    assert kept == made
