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
from typing import Any

import pytest
from house import LAB, SHARED, WINGS, files_below, room_of

import routecast
from routecast.wings import wings

PACKAGE = Path(routecast.__file__).parent
ROOT = Path(__file__).parents[1]

FLOORS = (
    ("errors", "_core", "lazy", "progress", "version"),
    ("wings",),
    ("quantity",),
    ("contention", "show"),
    ("load",),
    ("hardware",),
    ("function",),
    ("router",),
    ("evaluate",),
    ("calibration", "power"),
    ("explore", "size"),
    ("api", "study"),
    ("cli",),
    ("virtual",),
    ("lab/_lab",),
    ("lab/netlink", "lab/ns3", "lab/probe"),
    ("lab/testbed",),
    ("lab/benchmark", "lab/watch"),
    ("lab/power",),
    ("lab/study",),
    ("lab/cli", "lab/wing"),
)
BROUGHT = {"annotated_types", "markupsafe", "pydantic_core"}
"""What other requirements bring: pydantic and jinja2."""

COMPILED = {"_core", "_lab", "_noc"}
"""Extensions: their names are public to all that may import them."""

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
    files = files_below(PACKAGE, "*.py")
    return [path for path in files if not {"data", "tests"} & {*path.relative_to(PACKAGE).parts}]


@pytest.mark.slow
def test_every_room_has_a_floor() -> None:
    rooms = {room_of_file(path) for path in sources()} - {"", "__main__"}
    assert rooms == {*FLOOR_OF, *WINGS} - {"_core", "lab/_lab"}, (
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
        if any(name.startswith("_") and name not in COMPILED for name in names[1:])
        and (path.is_relative_to(ROOT / "benches") or room_of(names) != room_of_file(path))
    ]
    assert wrong == []


def is_of_lab(parts: tuple[str, ...]) -> bool:
    """Whether a module, given by its names below the package, is of the lab."""
    return parts[0] in LAB


@pytest.mark.slow
def test_the_core_imports_no_other_package() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {'.'.join(used)}"
        for path in sources()
        if path.relative_to(PACKAGE).with_suffix("").parts[0] not in {*LAB, *SHARED, *WINGS}
        for line, used in modules_imported_by(path)
        if used[0] in {*LAB, *SHARED, *WINGS}
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "part", [room for room in FLOOR_OF if room != "lab/_lab" and is_of_lab(tuple(room.split("/")))]
)
def test_every_part_of_the_lab_is_there(part: str) -> None:
    assert (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").is_file()


def test_every_wing_is_an_entry_point() -> None:
    assert {wing.package for wing in wings()} == {f"routecast.{name}" for name in (*LAB, *SHARED, *WINGS)}


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
    of_the_core = {name for name in loaded if name.split(".")[1:2] not in [[room] for room in (*LAB, *SHARED, *WINGS)]}
    assert len(of_the_core) <= 72
    others = {"routecast.virtual.assembly", "routecast.virtual.multistage", "routecast.plan.network_processor"}
    assert not others & loaded
    assert "routecast.evaluate.simulate" not in loaded


def packages() -> list[tuple[Path, dict[str, Any]]]:
    """Return the folder of the sources of each package and its project table: the core's first."""
    files = [ROOT / "pyproject.toml", *sorted((ROOT / "packages").glob("*/pyproject.toml"))]
    projects = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    return [
        (ROOT / "packages" / "routecast" if file.parent == ROOT else file.parent, project)
        for file, project in zip(files, projects, strict=True)
    ]


def imported_by(folder: Path) -> set[str]:
    """Return what the sources below a folder import, by the names of modules at the top."""
    names: set[str] = set()
    for path in folder.rglob("*.py"):
        if "tests" in path.parts or path.name == "conftest.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module))
    return {name.partition(".")[0].lower() for name in names}


def distribution(requirement: str) -> str:
    """Return the name of the module that a requirement brings."""
    name = re.split(r"[<>=\[]", requirement)[0].lower().replace("-", "_")
    return {"pyyaml": "yaml", "python_calamine": "python_calamine"}.get(name, name)


@pytest.mark.parametrize("package", packages(), ids=lambda package: package[1]["name"])
def test_every_package_requests_what_it_imports_and_nothing_else(package: tuple[Path, dict[str, Any]]) -> None:
    folder, project = package
    extras = itertools.chain(*project.get("optional-dependencies", {}).values())
    wanted = {distribution(item) for item in (*project["dependencies"], *extras)}
    wanted = {name for name in wanted if not name.startswith("routecast")}
    imported = imported_by(folder)
    assert wanted <= imported
    of_the_core = {distribution(item) for item in packages()[0][1]["dependencies"]}
    known = {*sys.stdlib_module_names, "routecast", *of_the_core, *wanted}
    assert imported - known <= BROUGHT


def test_all_packages_have_one_version() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = cargo["workspace"]["package"]["version"]
    for _, project in packages():
        assert project["version"] == version
        own = [item for item in project["dependencies"] if item.startswith("routecast")]
        assert all(item.endswith(f"=={version}") for item in own)
        assert ("routecast" in map(distribution, own)) == (project["name"] != "routecast")
    extras = packages()[0][1]["optional-dependencies"]
    for _, project in packages()[1:]:
        assert extras[project["name"].removeprefix("routecast-")] == [f"{project['name']}=={version}"]


@pytest.mark.slow
def test_every_package_requests_the_shared_rooms_that_it_imports_and_no_wing() -> None:
    for folder, project in packages()[1:]:
        requested = {item.partition("==")[0] for item in project["dependencies"]}
        imported = {
            f"routecast-{used[0]}"
            for path in (folder / "routecast").rglob("*.py")
            if "tests" not in path.parts
            for _, used in modules_imported_by(path)
            if used[0] in SHARED
        }
        assert imported - {project["name"]} <= requested
        own = {name for name in requested if name.startswith("routecast")}
        assert own <= {"routecast", *(f"routecast-{room}" for room in SHARED)}


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
