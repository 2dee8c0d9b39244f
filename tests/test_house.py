"""The house stays plain: one name for one thing, nothing said twice, no heading in place of a docstring."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import files_below, room_of

import routecast

PACKAGE = Path(routecast.__file__).parent
ROOT = Path(__file__).parents[1]
MAX_NAMES_OF_ROOT = 15
MAX_LINES_OF_README = 160
RIDDLES = {"one", "found", "said", "asked", "told"}
"""Names that say nothing of the thing that they name."""


def modules() -> Iterator[tuple[Path, str, ast.Module]]:
    for path in files_below(PACKAGE, "*.py"):
        if "tests" in path.relative_to(PACKAGE).parts:
            continue
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(PACKAGE), text, ast.parse(text)


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every variable and parameter where it is bound."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def test_names_say_what_they_name() -> None:
    riddles = [
        f"{path}:{line} {name}" for path, _, tree in modules() for line, name in bound_names(tree) if name in RIDDLES
    ]
    assert riddles == []


def test_a_class_name_means_one_thing() -> None:
    rooms: dict[str, set[str]] = defaultdict(set)
    for path, _, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                rooms[node.name].add(room_of(path.parts))
    assert {name: sorted(places) for name, places in rooms.items() if len(places) > 2} == {}


def test_fields_of_a_class_have_meanings_of_their_own() -> None:
    twins = []
    for path, _, tree in modules():
        for declared in ast.walk(tree):
            if not isinstance(declared, ast.ClassDef):
                continue
            meanings: dict[str, str] = {}
            for statement in declared.body:
                match statement:
                    case ast.AnnAssign(
                        target=ast.Name(id=name),
                        value=ast.Call(func=ast.Name(id="field"), args=[ast.Constant(value=str(text)), *_]),
                    ):
                        if text in meanings:
                            twins.append(f"{path} {declared.name}: {meanings[text]}, {name}")
                        meanings[text] = name
    assert twins == []


def test_no_comment_heads_a_group_of_functions() -> None:
    headings = [
        f"{path}: {heading[1].splitlines()[0]}"
        for path, text, _ in modules()
        for heading in re.finditer(r"\n\n((?:#(?: [^\n]*)?\n)+)\n", text)
    ]
    assert headings == []


def test_the_root_of_the_repository_is_read_at_a_glance() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a clone")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {name.partition("/")[0] for name in tracked.split("\0") if name}
    assert len(names) <= MAX_NAMES_OF_ROOT, sorted(names)


def test_the_readme_is_read_in_five_minutes() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= MAX_LINES_OF_README
    assert {"make demo", "make test"} <= set(re.findall(r"^make \w+", readme, flags=re.MULTILINE))
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", readme) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
