"""README and documentation: every command runs and prints what the page shows.

A block marked ``console`` holds ``$ command`` lines, each followed by what it prints; a line ``…`` stands for any
number of lines. The blocks of a page run one after the other in one empty folder. A ``code-block`` with a caption is a
file of that name.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN_HERE = ("git ", "cd ", "make ", "pip ")
FENCE = re.compile(r"^```(?P<kind>\S.*?)\n(?P<body>.*?)^```", re.DOTALL | re.MULTILINE)
CAPTION = re.compile(r"^:caption: (?P<name>\S+)\n+", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command and the lines that a page shows for it."""

    command: str
    shown: tuple[str, ...]


def files_of(text: str) -> dict[str, str]:
    """Return the files that a page gives, by name."""
    files = {}
    for fence in FENCE.finditer(text):
        caption = CAPTION.match(fence["body"])
        if fence["kind"].startswith("{code-block}") and caption:
            files[caption["name"]] = fence["body"][caption.end() :]
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


def matches(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether the printed lines are the shown ones, ``…`` standing for any."""
    pattern = "".join("(?:.*\n)*" if line.strip() == "…" else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed)) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    commands = tmp_path / "bin"
    commands.mkdir()
    script = commands / "routecast"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m routecast "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    work = tmp_path / "work"
    work.mkdir()
    for name, content in files_of(text).items():
        (work / name).write_text(content, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "COLUMNS": "80", "NO_COLOR": "1"}
    for step in steps_of(text):
        command = step.command.replace(".venv/bin/", "")
        if command.startswith(NOT_RUN_HERE):
            continue
        done = subprocess.run(
            ["bash", "-c", command], cwd=work, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"$ {step.command}\n{done.stdout}{done.stderr}"
        printed = done.stdout.splitlines()
        if step.shown:
            assert matches(step.shown, printed), f"$ {step.command}\nprints\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^\.PHONY: ([a-z-]+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"^(?:\$ )?make ([a-z-]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
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


def test_the_command_reference_names_every_option_of_every_command() -> None:
    import typer.main

    from routecast.cli.app import app

    reference = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert f"routecast {name}" in reference
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in reference, f"{name} {option}"
