"""The core alone: without wings and lab, in a folder of its own, it answers what needs no measurement."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from house import LAB, WINGS
from in_process import completed

import routecast

PACKAGE = Path(routecast.__file__).parent
EXAMPLES = PACKAGE / "data/examples"
ROUTER = str(EXAMPLES / "multicore.router.toml")
GREEN = str(EXAMPLES / "green.router.toml")
POINTS = str(EXAMPLES / "points.csv")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "solve": ("solve", ROUTER, "--json"),
    "simulate": ("simulate", ROUTER, "--load", "1 Mpps", "--duration", "1 ms", "--json"),
    "sweep": ("sweep", ROUTER, "--vary", "cores=1,2", "--json"),
    "size of a file": ("size", ROUTER, "--target", "2 Mpps", "--json"),
    "size of points": ("size", POINTS, "--target", "2 Mpps", "--json"),
    "explore": ("explore", ROUTER, "--out", "page.html"),
    "validate": ("validate", POINTS, "--json"),
    "next": ("next", POINTS, "--json"),
    "function": ("function", "l2_switch", "--json"),
    "schema": ("schema", "router"),
    "study": ("study", "some.study.toml", "--out", "out"),
    "compare": ("compare", "a.json", "b.json", "--json"),
    "studies": ("study", "--list"),
    "hosts": ("hardware", "list", "--json"),
    "power of a model": ("power", "show"),
    "power of a day": ("power", "day", GREEN, "--profile", "abilene", "--json"),
    "examples": ("examples",),
    "schema of a study": ("schema", "study"),
    "list of commands": ("--help",),
}
WITH_WINGS = {"examples", "list of commands", "studies"}
"""Commands that list what wings and lab add."""

MEASURING = {
    "function --run": ("function", "l2_switch", "--run"),
    "routecast measure": ("measure", "--load", "1 kpps"),
    "this command": ("schema", "testbed"),
}
"""Commands that need the lab, by what their message names."""

STUDY = """kind = "curves"
name = "own"
title = "A router of two cores"
[run]
duration = "1 ms"
[router.plain]
builder = "multicore"
cores = 2
link = "1 Gbit/s"
service = { per_packet = "1 us" }
[[figure]]
name = "rates"
title = "Rates"
offered = ["100 kpps"]
traffic = { frame = "64 B" }
curve = [{ name = "plain", router = "plain" }]
"""

PROGRAM = """
import contextlib, io, json, sys
from routecast.cli.run import run
for name, arguments in json.load(sys.stdin).items():
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    print(json.dumps([name, code, out.getvalue(), err.getvalue()]))
print(json.dumps(sys.modules["routecast"].__file__))
"""


@dataclass(frozen=True)
class Answers:
    """The exit code, stdout and stderr of each command, and the folder in which all ran."""

    folder: Path
    by_command: Mapping[str, tuple[int, str, str]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the core of the package, links to its extension and data, and a distribution of no wing."""
    folder = tmp_path_factory.mktemp("core")
    linked = {PACKAGE / "data", *PACKAGE.glob("_core*.so")}
    absent = {PACKAGE / name for name in (*WINGS, *LAB)} | {PACKAGE / f"{name}.py" for name in LAB}

    def left_out(place: str, names: list[str]) -> set[str]:
        return {name for name in names if Path(place, name) in linked | absent or name == "__pycache__"}

    shutil.copytree(PACKAGE, folder / "routecast", ignore=left_out)
    for path in linked:
        (folder / "routecast" / path.name).symlink_to(path)
    metadata = folder / f"routecast-{routecast.__version__}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: routecast\nVersion: {routecast.__version__}\n")
    return folder


def inputs(folder: Path) -> None:
    """Write the files that the commands read."""
    for name, load in (("a.json", "1 Mpps"), ("b.json", "2 Mpps")):
        (folder / name).write_text(json.dumps(routecast.solve(ROUTER, load).to_json()))
    (folder / "some.study.toml").write_text(STUDY)


def answers(alone: Path, commands: Mapping[str, tuple[str, ...]], folder: Path) -> Answers:
    """Run commands of the core one after the other in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(commands),
        env={**os.environ, "PYTHONPATH": str(alone), "COLUMNS": "80", "NO_COLOR": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    *lines, place = map(json.loads, done.stdout.splitlines())
    assert Path(place).is_relative_to(alone)
    return Answers(folder=folder, by_command={name: tuple(answer) for name, *answer in lines})


@pytest.fixture(scope="module")
def of_the_core(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    folder = tmp_path_factory.mktemp("work")
    inputs(folder)
    return answers(alone, COMMANDS, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_core_answers_alone(name: str, of_the_core: Answers) -> None:
    code, _, err = of_the_core.by_command[name]
    assert code == 0, err


@pytest.mark.slow
def test_answers_are_those_of_the_whole_package(of_the_core: Answers, tmp_path: Path) -> None:
    inputs(tmp_path)
    for name in COMMANDS.keys() - WITH_WINGS:
        assert completed(*COMMANDS[name], folder=tmp_path).stdout == of_the_core.by_command[name][1]
    assert (tmp_path / "page.html").read_text() == (of_the_core.folder / "page.html").read_text()


@pytest.mark.slow
def test_the_list_of_commands_has_those_that_are_installed(of_the_core: Answers) -> None:
    whole, alone = completed("--help").stdout, of_the_core.by_command["list of commands"][1]
    words = {word for word in whole.split() if word.isalpha()} - {word for word in alone.split() if word.isalpha()}
    assert {"measure", "benchmark", "doctor", "testbed", "multistage", "noc"} <= words
    assert not {"solve", "simulate", "size", "study", "hardware", "function"} & words


@pytest.mark.slow
def test_commands_that_measure_say_what_is_missing(alone: Path, tmp_path: Path) -> None:
    for name, (code, _, err) in answers(alone, MEASURING, tmp_path).by_command.items():
        assert code == 3, err
        assert f"routecast: {name} needs the part of routecast that measures" in err
