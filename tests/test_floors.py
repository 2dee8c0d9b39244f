"""The house of docs/architecture.md: a room knows only the rooms on lower floors."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import LAB, WINGS, room_of

import routecast
from routecast.wings import wings

PACKAGE = Path(routecast.__file__).parent
ROOT = Path(__file__).parents[1]

FLOORS = (
    ("errors", "_core", "lazy", "progress", "version"),
    ("compiled", "wings"),
    ("quantity",),
    ("contention", "show"),
    ("load",),
    ("hardware",),
    ("function",),
    ("router",),
    ("evaluate",),
    ("calibration",),
    ("explore",),
    ("power",),
    ("size",),
    ("study",),
    ("api",),
    ("cli",),
    ("lab/testbed",),
    ("lab/benchmark",),
    ("lab/power",),
    ("lab/study",),
    ("lab/cli", "lab/wing"),
)
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

HEAVY = (
    "scipy",
    "pint",
    "polars",
    "pydantic",
    "typer",
    "rich",
    "jinja2",
    "numpy",
    "highspy",
    "yaml",
    "defusedxml",
    "distributed",
)


def room_of_file(path: Path) -> str:
    """Return the room that a file of the package belongs to; '' for the __init__ of the package and of the lab."""
    room = room_of(path.relative_to(PACKAGE).with_suffix("").parts)
    return "" if room.endswith("__init__") else room


def modules_imported_by(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield (line, names below the package) for every import of the package, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = tuple(name.split("."))
            if parts[0] == "routecast" and len(parts) > 1 and not parts[1].startswith("__"):
                yield node.lineno, parts[1:]


def rooms_imported_by(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, room) for every import of the package."""
    for line, names in modules_imported_by(path):
        yield line, room_of(names)


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if not {"data", "tests"} & {*path.relative_to(PACKAGE).parts})


@pytest.mark.slow
def test_every_room_has_a_floor() -> None:
    rooms = {room_of_file(path) for path in sources()} - {"", "__main__"}
    assert rooms == {*FLOOR_OF, *WINGS} - {"_core"}, (
        f"give {sorted(rooms - {*FLOOR_OF, *WINGS})} a floor in this test and in docs/architecture.md"
    )


@pytest.mark.slow
def test_no_import_runs_up_the_stairs() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {used}"
        for path in sources()
        if room_of_file(path) in FLOOR_OF
        for line, used in rooms_imported_by(path)
        if used != room_of_file(path) and FLOOR_OF.get(used, 0) >= FLOOR_OF[room_of_file(path)]
    ]
    assert wrong == []


@pytest.mark.slow
def test_no_room_imports_a_wing() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {used}"
        for path in sources()
        for line, used in rooms_imported_by(path)
        if used in WINGS and used != room_of_file(path)
    ]
    assert wrong == []


@pytest.mark.slow
def test_private_modules_serve_their_own_room() -> None:
    benches = (ROOT / "benches").rglob("*.py")
    wrong = [
        f"{path.name}:{line} imports {'.'.join(names)}"
        for path in (*sources(), *benches)
        for line, names in modules_imported_by(path)
        if any(name.startswith("_") for name in names[1:])
        and (path.is_relative_to(ROOT / "benches") or room_of(names) != room_of_file(path))
    ]
    assert wrong == []


def is_of_lab(parts: tuple[str, ...]) -> bool:
    """Whether a module, given by its names below the package, is of the lab."""
    return parts[0] in LAB


@pytest.mark.slow
def test_the_core_imports_nothing_of_the_lab() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {'.'.join(used)}"
        for path in sources()
        if room_of_file(path) not in WINGS and not is_of_lab(path.relative_to(PACKAGE).with_suffix("").parts)
        for line, used in modules_imported_by(path)
        if is_of_lab(used)
    ]
    assert wrong == []


@pytest.mark.parametrize("part", [room for room in FLOOR_OF if is_of_lab(tuple(room.split("/")))])
def test_every_part_of_the_lab_is_there(part: str) -> None:
    assert (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").is_file()


def test_every_wing_is_an_entry_point() -> None:
    assert {wing.package for wing in wings()} == {f"routecast.{name}" for name in WINGS}


def test_importing_routecast_imports_nothing_heavy() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, routecast; print(*sys.modules, sep='\\n')"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert set(loaded) & set(HEAVY) == set()


def test_asking_for_the_version_imports_nothing_heavy() -> None:
    code = """
import sys
from routecast.cli import main
try:
    main(["--version"])
except SystemExit:
    print(*sys.modules, sep="\\n")
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded[:2] == ["routecast", routecast.__version__]
    assert set(loaded) & set(HEAVY) == set()


def test_routecast_alone_imports_nothing_heavy() -> None:
    code = """
import sys
from routecast.cli import main
try:
    main([])
except SystemExit as leave:
    print(leave.code, *sys.modules, sep="\\n", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, *loaded = done.stderr.split()
    assert code == "0"
    assert "How many cores" in done.stdout
    assert set(loaded) & set(HEAVY) == set()


@pytest.mark.slow
def test_solving_a_multicore_router_imports_no_other_builder_and_no_other_evaluator() -> None:
    code = """
import sys
from routecast.cli import main
try:
    main(["solve", "examples/multicore.router.toml", "--json"])
except SystemExit:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    loaded = {name for name in run.stderr.split() if name.split(".")[0] == "routecast"}
    assert len(loaded) <= 80
    assert (
        not {"routecast.router.virtual", "routecast.router.multistage", "routecast.router.network_processor"} & loaded
    )
    assert "routecast.evaluate.simulate" not in loaded


def test_every_package_that_is_requested_is_imported() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[<>=]", item)[0].lower().replace("-", "_") for item in wanted}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    imported = {name.lower() for name in re.findall(r"^ *(?:import|from) (\w+)", sources, re.MULTILINE)}
    assert {"yaml" if name == "pyyaml" else name for name in names} <= imported


@pytest.mark.slow
def test_tables_are_values_of_the_report() -> None:
    """A command asks ``report`` for a table and prints it: none makes one, or a column, and none draws with rich."""
    for path in (PACKAGE / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module != "rich.table", f"{path}:{node.lineno}: draws a table"
            if isinstance(node, ast.Call):
                made = node.func.value if isinstance(node.func, ast.Attribute) else node.func
                name = made.id if isinstance(made, ast.Name) else ""
                assert name not in {"Column", "Table"}, f"{path}:{node.lineno}: makes a table"
