"""What routecast says stays as this folder holds it, unless a change says why; ``make corpus`` writes it anew."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from corpus import (
    HERE,
    SHORT,
    Page,
    as_page,
    commands,
    differences,
    hold,
    place_of,
    recorded,
    short_studies,
    skeleton,
    studies,
    write_short_studies,
)
from faults import faults, files, subject
from kept_text import LONG_BYTES, read_kept, texts_in, write_kept

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
    # In their order, so that a text that is kept both compressed and not is seen.
    assert list(texts_in(HERE, ".txt", ".html")) == sorted(made)


NUMBER = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")
WORD = re.compile(r"[A-Za-z]{3,}")


def changed_number(text: str, draw: random.Random, digit: int, *, is_zero_too: bool) -> str:
    """Return the text with one number, drawn anywhere, that is one more in its given digit."""
    number = draw.choice([number for number in NUMBER.finditer(text) if is_zero_too or float(number[0])])
    value = float(number[0])
    step = 10.0 ** ((math.floor(math.log10(value)) if value else 0) - digit + 1)
    return f"{text[: number.start()]}{value + step!r}{text[number.end() :]}"


def changed_word(text: str, draw: random.Random) -> str:
    """Return the text with one word, drawn anywhere, that has another letter."""
    word = draw.choice(list(WORD.finditer(text)))
    letter = draw.randrange(word.start(), word.end())
    return f"{text[:letter]}{'x' if text[letter] != 'x' else 'y'}{text[letter + 1 :]}"


DIGITS = {page.path: page.digits for page in (*commands(), *studies(), *short_studies())}
LONG_PAGES = [path for path in texts_in(HERE, ".txt", ".html") if path.with_name(f"{path.name}.gz").exists()]


@pytest.mark.slow
def test_no_word_and_no_fourth_digit_of_a_long_page_changes_unseen() -> None:
    draw = random.Random(1)
    for path in draw.choices([path for path in LONG_PAGES if NUMBER.search(read_kept(path))], k=200):
        text, digits = read_kept(path), DIGITS.get(path.with_suffix(".txt"), 6)
        for changed in (changed_number(text, draw, 4, is_zero_too=True), changed_word(text, draw)):
            assert differences(text, changed, digits), path
        # Digits beyond those that are compared may differ.
        assert differences(text, changed_number(text, draw, digits + 1, is_zero_too=False), digits) == [], path


def test_a_failure_names_the_place_of_each_change() -> None:
    page = HERE / "study" / "vmware_msr.txt"
    text = read_kept(page)
    (shown, *_) = differences(text, text.replace('"port 0 softirq"', '"port 0 hardirq"', 1), 6)
    assert shown.startswith("@@ figures > fig_3_4 > curves > 1 balancer > points > busy_cores, line ")
    report = read_kept(page.with_suffix(".html")).splitlines()
    (last,) = (number for number, line in enumerate(report) if '<section id="prior_knowledge"' in line)
    assert place_of(report, last + 3).startswith("section prior_knowledge")
    assert place_of(report, last - 3).startswith("section source")


def test_a_text_is_kept_once_whatever_its_length(tmp_path: Path) -> None:
    path = tmp_path / "page.txt"
    for text in ("short\n", "long “…”\n" * LONG_BYTES, "short again\n"):
        write_kept(path, text)
        assert read_kept(path) == text
        assert list(texts_in(tmp_path, ".txt")) == [path]
        assert len(list(tmp_path.iterdir())) == 1
    assert (tmp_path / "page.txt").read_text() == "short again\n"


def test_no_long_text_of_the_corpus_is_kept_as_text() -> None:
    assert [
        path for path in HERE.rglob("*.*") if path.suffix in {".txt", ".html"} and path.stat().st_size > LONG_BYTES
    ] == []
