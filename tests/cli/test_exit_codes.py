"""A command that leaves with 1 says why on stderr."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from house import files_below

import routecast
from routecast.cli.run import run
from routecast.lab.testbed import doctor
from routecast.lab.testbed.doctor import Finding, State

EXIT = "raise typer.Exit(1)"


def _says_why(before: ast.stmt | None) -> bool:
    """Whether a statement prints to stderr, in a loop too."""
    return before is not None and any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "remark"
        for node in ast.walk(before)
    )


def test_a_command_that_leaves_with_1_says_why_on_stderr() -> None:
    """An exception says it by itself; before a bare exit there is a remark, in its block or just above it."""
    silent, found = [], 0
    for path in files_below(Path(routecast.__file__).parent, "*.py"):
        if path.parts[-2] == "tests":
            continue
        text = path.read_text(encoding="utf-8")
        if EXIT not in text:
            continue
        blocks = [
            block
            for node in ast.walk(ast.parse(text))
            for name in ("body", "orelse", "finalbody")
            if isinstance(block := getattr(node, name, None), list)
        ]
        above = {
            id(statement): block[number - 1] if number else None
            for block in blocks
            for number, statement in enumerate(block)
        }
        for block in blocks:
            for number, statement in enumerate(block):
                if isinstance(statement, ast.Raise) and ast.unparse(statement) == EXIT:
                    found += 1
                    owner = next((other for other in _owners(blocks) if block in (other.body, other.orelse)), None)
                    before = block[number - 1] if number else above.get(id(owner))
                    if not _says_why(before):
                        silent.append(f"{path.name}:{statement.lineno}")
    assert silent == []
    assert found > 0


def _owners(blocks: list[list[ast.stmt]]) -> list[ast.If]:
    return [statement for block in blocks for statement in block if isinstance(statement, ast.If)]


def test_doctor_names_what_distorts_where_it_leaves_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = Finding(check="governor", state=State.DISTORTS, observation="powersave", effect="the clock changes")
    monkeypatch.setattr(doctor, "examine", lambda machine: [("Processor", finding)])
    assert run(["doctor", "--strict"]) == 1
    assert "this machine distorts measurements (--strict): governor" in capsys.readouterr().err
    assert run(["doctor"]) == 0
