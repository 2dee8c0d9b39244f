"""What routecast says stays as this folder holds it, unless a change says why; ``make corpus`` writes it anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import HERE, Page, commands, hold, recorded, skeleton, studies
from faults import faults, files, subject


@pytest.mark.parametrize("page", list(commands()), ids=lambda page: page.name)
def test_a_command_says_what_it_said(page: Page, tmp_path: Path) -> None:
    hold(page.path, recorded(page, tmp_path / "out"), page.digits)


@pytest.mark.parametrize("page", list(studies()), ids=lambda page: page.name)
def test_a_study_finds_and_shows_what_it_did(page: Page, tmp_path: Path) -> None:
    out = tmp_path / "out"
    hold(page.path, recorded(page, out))
    hold(page.path.with_suffix(".html"), skeleton((out / "report.html").read_text()).replace(str(out), "OUT"))


@pytest.mark.parametrize("file", files(), ids=subject)
def test_a_faulty_file_is_told_what_it_was(file: Path, tmp_path: Path) -> None:
    hold(HERE / f"{subject(file)}.txt", faults(file, tmp_path))


def test_every_file_of_the_corpus_is_made_by_something() -> None:
    made = {page.path for page in (*commands(), *studies())} | {HERE / f"{subject(file)}.txt" for file in files()}
    made |= {page.path.with_suffix(".html") for page in studies()} | {
        HERE / "board.txt"
    }  # tests/calibrate/test_board.py
    kept = {path for path in HERE.rglob("*") if path.suffix in {".txt", ".html"}}
    assert kept == made
