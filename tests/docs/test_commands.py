"""README and documentation: every command runs and prints what the page shows.

A block marked ``console`` holds ``$ command`` lines, each followed by what it prints; a line ``…`` stands for any
number of lines. The blocks of a page run one after the other in one empty folder. A ``code-block`` with a caption, or a
fence with a name behind its language, is a file of that name, and an example that the page includes stands there too.
Numbers may differ a little from machine to machine, so they are compared with a tolerance.

``make pages`` writes what the commands print now into the pages.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from in_process import completed, copy_to_go_on
from kept_text import read_kept

from routecast.lab.testbed.checks import NAMESPACE_CAPABILITIES, missing
from routecast.replications.accuracy.board import Weakness

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "packages").glob("routecast-*/routecast/*/docs/*.md")),
]
REWRITE = bool(os.environ.get("ROUTECAST_REWRITE_PAGES"))
NOT_RUN_HERE = ("git ", "cd ", "make ", "pip ")
NEEDS_NAMESPACES = re.compile(
    r"routecast (measure|testbed (devices|up|down|selftest)|multistage|benchmark .*--testbed)"
)
FENCE = re.compile(r"^```(?P<kind>\S.*?)\n(?P<body>.*?)^```", re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(r"\{literalinclude\} (\.\./)+(data/)?examples/(?P<name>\S+)")
NAMED = re.compile(r"\w+ (?P<name>\S+)$")
CAPTION = re.compile(r"^:caption: (?P<name>\S+)\n+", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command and the lines that a page shows for it."""

    command: str
    shown: tuple[str, ...]


def files_of(text: str) -> dict[str, str]:
    """Return the files that a page gives, by name: captioned code, code named as GitHub lets it, included examples."""
    files = {}
    for fence in FENCE.finditer(text):
        if included := EXAMPLE.match(fence["kind"]):
            files[included["name"]] = (ROOT / "examples" / included["name"]).read_text(encoding="utf-8")
        caption = CAPTION.match(fence["body"])
        if fence["kind"].startswith("{code-block}") and caption:
            files[caption["name"]] = fence["body"][caption.end() :]
        if named := NAMED.match(fence["kind"]):
            files[named["name"]] = fence["body"]
    return files


def steps_of(text: str) -> list[Step]:
    """Return the commands of a page in their order."""
    steps: list[Step] = []
    for fence in FENCE.finditer(text):
        if fence["kind"] != "console":
            continue
        for part in re.split(r"^\$ ", fence["body"], flags=re.MULTILINE)[1:]:
            command, *shown = part.replace("\\\n", "").splitlines()
            steps.append(Step(command, tuple(line.rstrip() for line in shown)))
    return steps


NUMBER = re.compile(r"[+−-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def is_same_line(shown: str, printed: str) -> bool:
    """Whether two lines have the same words and about the same numbers: 2 %, or 3 in the last place."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    return all(is_same_number(a, b) for a, b in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True))


def is_same_number(shown: str, printed: str) -> bool:
    a, b = (float(text.replace("−", "-").replace(",", "")) for text in (shown, printed))
    decimals = len(shown.partition(".")[2].partition("e")[0])
    last_place = 10.0**-decimals if "e" not in shown else 0.0
    return abs(a - b) <= max(0.02 * abs(a), 3.001 * last_place)


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether the printed lines are the shown ones, ``…`` standing for any."""
    if not shown:
        return not printed
    if shown[0].strip() == "…":
        return any(matches(shown[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and is_same_line(shown[0], printed[0]) and matches(shown[1:], printed[1:])


def renewed(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return the shown lines as they are printed now; after a ``…`` they are found by the words of the first."""
    if all(line.strip() != "…" for line in shown):
        return [line.rstrip() for line in printed]
    lines: list[str] = []
    place = 0
    for number, line in enumerate(shown):
        if line.strip() == "…":
            lines.append(line)
            after = shown[number + 1] if number + 1 < len(shown) else ""
            words = NUMBER.sub("#", after).split()
            results = [n for n, text in enumerate(printed) if n >= place and NUMBER.sub("#", text).split() == words]
            place = results[0] if results else len(printed)
        else:
            lines.append(printed[place].rstrip())
            place += 1
    return lines


@contextmanager
def alone_on_the_test_bed() -> Iterator[None]:
    """Keep other pages, which may be read at the same time, off the built-in test bed."""
    with (Path(tempfile.gettempdir()) / "routecast-docs.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


Typed = Callable[[Path, str], Any]
"""Runs a command in a folder; what it gives has ``returncode``, ``stdout`` and ``stderr``."""

OTHER_PROGRAMS = re.compile(r"[|<>&;$*`]")


SHIPPED_STUDY = re.compile(r"routecast study (?P<name>\w+)")


@pytest.fixture
def in_the_checkout(tmp_path: Path, study: Callable[[str], Path]) -> Typed:
    """Run commands with the package of this checkout: in this process, unless they are more than one of ours.

    A shipped study that a page runs goes on from the folder of the one that all tests of a run share.
    """
    script = tmp_path / "bin" / "routecast"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m routecast "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}", "COLUMNS": "80", "NO_COLOR": "1"}

    def run(folder: Path, typed: str) -> Any:
        if shipped := SHIPPED_STUDY.fullmatch(typed):
            copy_to_go_on(study(shipped["name"]), folder / shipped["name"])
        if typed.startswith("routecast ") and not OTHER_PROGRAMS.search(typed):
            return completed(*shlex.split(typed)[1:], folder=folder)
        return subprocess.run(
            ["bash", "-c", typed], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def recorded_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``routecast board --weaknesses`` print those of the corpus: to calibrate the whole board takes a minute.

    Thorough tests hold the corpus to the board (tests/calibration/test_board.py), and the page to it.
    """
    _, _, text = read_kept(ROOT / "tests" / "corpus" / "board.txt").partition("\n")
    recorded = json.loads(text)
    names = [part.name for part in fields(Weakness)]
    name_of_key = Weakness(**{name: name for name in names}).plain_entries()
    weaknesses = tuple(
        Weakness(**{name: row[key] for key, name in name_of_key.items()}) for row in recorded["weaknesses"]
    )
    board = SimpleNamespace(weaknesses=weaknesses, worse=lambda: recorded["worse"])
    monkeypatch.setattr("routecast.replications.accuracy.board.run_board", lambda _: board)


@pytest.mark.slow
@pytest.mark.usefixtures("recorded_board")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_prints_what_the_page_shows(page: Path, tmp_path: Path, in_the_checkout: Typed) -> None:
    run_page(page, tmp_path / "work", in_the_checkout)


@pytest.mark.thorough
def test_the_board_prints_what_the_page_of_validation_shows(tmp_path: Path, in_the_checkout: Typed) -> None:
    run_page(ROOT / "docs" / "validation.md", tmp_path / "work", in_the_checkout)


@pytest.mark.thorough
def test_every_command_of_the_readme_prints_it_from_the_wheel(tmp_path: Path, typed_in: Typed) -> None:
    """What a newcomer types who has the wheel and nothing else."""
    run_page(ROOT / "README.md", tmp_path / "work", typed_in)


EXIT_CODE = re.compile(r"exit code (?P<code>\d+)$")
TAKES_DOWN = re.compile(r"routecast (multistage|testbed) down")


def run_page(page: Path, work: Path, typed: Typed) -> None:
    """Run the commands of a page in an empty folder that gets the page's files."""
    text = page.read_text(encoding="utf-8")
    work.mkdir()
    for name, content in files_of(text).items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(content, encoding="utf-8")
    try:
        run_steps(page, steps_of(text), work, typed)
    except BaseException:  # what the page has put up doesn't stand in the way of the next run
        for step in steps_of(text):
            if TAKES_DOWN.match(step.command):
                typed(work, step.command)
        raise


def run_steps(page: Path, steps: Sequence[Step], work: Path, typed: Typed) -> None:
    """Run the commands of a page one after the other, and compare what they print with what the page shows."""
    lacking = missing(NAMESPACE_CAPABILITIES)
    skipped = []
    for step in steps:
        command = step.command.replace(".venv/bin/", "")
        if command.startswith(NOT_RUN_HERE):
            continue
        on_wire = NEEDS_NAMESPACES.search(command) is not None
        if on_wire and lacking:
            skipped.append(command)
            continue
        with alone_on_the_test_bed() if on_wire else nullcontext():
            done = typed(work, command)
        printed = done.stdout.splitlines()
        code = EXIT_CODE.search(step.shown[-1]) if step.shown else None
        if code:  # the page shows what the command leaves with, as stderr says it
            printed += done.stderr.splitlines()[-1:]
        assert done.returncode == (int(code["code"]) if code else 0), f"$ {step.command}\n{done.stdout}{done.stderr}"
        if step.shown and REWRITE:
            before, after = "\n".join(step.shown), "\n".join(renewed(step.shown, printed))
            page.write_text(page.read_text(encoding="utf-8").replace(before, after, 1), encoding="utf-8")
        elif step.shown:
            assert matches(step.shown, printed), f"$ {step.command}\nprints\n{done.stdout}"
    if skipped:
        pytest.skip(f"needs root ({', '.join(lacking)}): these commands of {page.name} did not run: {skipped}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_piece_of_python_of_a_page_runs(page: Path) -> None:
    pieces = [fence["body"] for fence in FENCE.finditer(page.read_text(encoding="utf-8")) if fence["kind"] == "python"]
    for piece in pieces:
        exec(compile(piece, page.name, "exec"), {"__name__": "__main__"})
    assert page.exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^\.PHONY: ([a-z0-9-]+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"^(?:\$ )?make ([a-z0-9-]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert named <= targets


def test_the_readme_has_commands() -> None:
    assert any(
        step.command.startswith("routecast") or "bin/routecast" in step.command
        for step in steps_of((ROOT / "README.md").read_text(encoding="utf-8"))
    )


def test_an_ellipsis_stands_for_any_lines_and_nothing_else_does() -> None:
    assert matches(("a", "…", "d"), ["a", "b", "c", "d"])
    assert matches(("a", "…"), ["a"])
    assert not matches(("a",), ["a", "b"])
    assert not matches(("a.c",), ["abc"])


def test_numbers_may_differ_a_little_and_words_may_not() -> None:
    assert matches(("mean 0.57 %",), ["mean  0.56 %"])
    assert not matches(("mean 0.57 %",), ["mean 0.97 %"])
    assert not matches(("mean 0.57 %",), ["median 0.57 %"])
    assert not matches(("12,345 frames",), ["22,345 frames"])


def test_renewed_lines_follow_their_titles() -> None:
    assert renewed(["x 1", "…", "y 2", "z"], ["x 3", "k", "y 4", "z 5"]) == ["x 3", "…", "y 4", "z 5"]


def test_the_command_reference_names_every_option_of_every_command() -> None:
    import typer.main

    from routecast.cli.app import app

    pages = (ROOT / "docs" / "cli.md", *(ROOT / "packages").glob("routecast-*/routecast/*/docs/reference.md"))
    reference = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    below = {"routecast": typer.main.get_command(app)}
    while below:
        below = {f"{name} {sub}": it for name, group in below.items() for sub, it in commands_of(group)}
        for name, command in below.items():
            assert name in reference
            for parameter in command.params:
                for option in parameter.opts:
                    assert not option.startswith("--") or option in reference, f"{name} {option}"


def commands_of(group: Any) -> Iterator[tuple[str, Any]]:
    """Yield the commands of a group by name; a command that is no group has none."""
    yield from getattr(group, "commands", {}).items()
