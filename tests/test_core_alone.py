"""The core alone: without wings and lab, in a folder of its own, it answers what needs no measurement."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from house import LAB, SHARED, WINGS
from in_process import completed

import routecast
from routecast.cli.app import PANELS
from routecast.evaluate.point_table import parse_points
from routecast.study.starting import study_texts
from routecast.wings import EXTRAS

ROOT = Path(__file__).parents[1]
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
    "examples": ("examples",),
    "schema of a study": ("schema", "study"),
    "list of commands": ("--help",),
}
WITH_WINGS = {"examples", "list of commands", "schema", "studies"}
"""Commands that list what wings and lab add."""

ABSENT = {
    "a run": (("function", "l2_switch", "--run"), "function --run", "lab"),
    "a measurement": (("measure", "--load", "1 kpps"), "routecast measure", "lab"),
    "a probe": (("hardware", "probe", "--quick"), "routecast hardware probe", "lab"),
    "a benchmark": (("benchmark", "rfc2544"), "routecast benchmark", "lab"),
    "a router of many machines": (("multistage", "status"), "routecast multistage", "lab"),
    "a file of the lab": (("schema", "testbed"), "the schema of testbed", "lab"),
    "a network on chip": (("noc", "power", "a.noc.toml"), "routecast noc", "noc"),
    "a file of noc": (("schema", "noc"), "the schema of noc", "noc"),
    "a plan": (("plan", "cluster", "a.cluster.toml"), "routecast plan", "plan"),
    "watts of a day": (("power", "day", GREEN, "--profile", "abilene", "--json"), "routecast power day", "plan"),
    "an operating point": (("power", "optimise", GREEN), "routecast power optimise", "plan"),
    "the accuracy board": (("board",), "routecast board", "replications"),
    "a designed experiment": (("experiment", "a.experiment.toml"), "routecast experiment", "experiment"),
    "a builder of plan": (("solve", "np.router.toml"), 'np.router.toml: builder = "network_processor"', "plan"),
    "a virtual router": (("solve", "virtual.router.toml"), 'virtual.router.toml: builder = "virtual"', "virtual"),
    "parallel routers": (("simulate", "parallel.router.toml"), 'parallel.router.toml: builder = "parallel"', "virtual"),
    "a multistage router": (
        ("size", "multistage.router.toml", "--target", "2 Mpps"),
        'multistage.router.toml: builder = "multistage"',
        "virtual",
    ),
    "a file of virtual": (("schema", "virtualisation"), "the schema of virtualisation", "virtual"),
    "a failure": (("simulate", ROUTER, "--fail", "core 1", "--at", "20 ms"), "simulate --fail", "virtual"),
    "a planned absence": (
        ("simulate", ROUTER, "--switch-off", "core 1", "--at", "20 ms"),
        "simulate --switch-off",
        "virtual",
    ),
    "a study of the lab": (("study", "wire.study.toml"), "wire.study.toml: a study of the kind wire", "lab"),
    "a study of curves": (
        ("study", "curves.study.toml"),
        "curves.study.toml: a study of the kind curves",
        "replications",
    ),
    "a study of noc": (("study", "noc.study.toml"), "noc.study.toml: a study of the kind noc", "noc"),
}
"""Commands that need another package: what their message names, and the extra that brings it."""

MEASURED = "cores,throughput,calibrate\n1,1.7 Mpps,true\n2,3.3 Mpps,true\n4,6.3 Mpps,false\n"

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


WITHOUT_UNIX = """
import os, signal, sys
for module, name in (
    (os, "sched_getaffinity"), (os, "O_NONBLOCK"), (os, "geteuid"), (signal, "SIGHUP"), (signal, "pthread_sigmask")
):
    delattr(module, name)
sys.modules.update(dict.fromkeys(("fcntl", "resource", "pwd", "grp")))
"""
"""Takes away what Windows lacks; what its kernel does otherwise, this does not show."""


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with links to all that is installed but this project."""
    folder = tmp_path_factory.mktemp("others")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "routecast" not in path.name and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def alone(others: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the core of the package, links to its extension and data, and a distribution of no wing."""
    folder = tmp_path_factory.mktemp("core")
    linked = {PACKAGE / "data", *PACKAGE.glob("_core*.so")}
    absent = {PACKAGE / name for name in (*SHARED, *WINGS, *LAB)} | {PACKAGE / f"{name}.py" for name in LAB}

    def left_out(place: str, names: list[str]) -> set[str]:
        return {name for name in names if Path(place, name) in linked | absent or name == "__pycache__"}

    shutil.copytree(PACKAGE, folder / "routecast", ignore=left_out)
    for path in linked:
        (folder / "routecast" / path.name).symlink_to(path)
    (folder / "others").symlink_to(others)
    metadata = folder / f"routecast-{routecast.__version__}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: routecast\nVersion: {routecast.__version__}\n")
    return folder


def inputs(folder: Path) -> None:
    """Write the files that the commands read."""
    for name, load in (("a.json", "1 Mpps"), ("b.json", "2 Mpps")):
        (folder / name).write_text(json.dumps(routecast.solve(ROUTER, load).to_json()))
    for name, text in study_texts("some", parse_points(MEASURED), source="points.csv").items():
        (folder / name).write_text(text)


def answers(alone: Path, commands: Mapping[str, tuple[str, ...]], folder: Path, before: str = "") -> Answers:
    """Run commands of the core one after the other in a folder."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", before + PROGRAM],
        input=json.dumps(commands),
        env={**os.environ, "PYTHONPATH": f"{alone}:{alone / 'others'}", "COLUMNS": "80", "NO_COLOR": "1"},
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


def capture(packets: int) -> bytes:
    """Return a capture of UDP packets, one each 2 us (draft-ietf-opsawg-pcap)."""
    ip = bytes([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
    frame = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 5000, 80, 26, 0) + bytes(18)
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return header + b"".join(struct.pack("<IIII", 0, 2 * n, len(frame), len(frame)) + frame for n in range(packets))


@pytest.mark.slow
def test_the_core_calls_nothing_that_only_unix_has(alone: Path, tmp_path: Path) -> None:
    inputs(tmp_path)
    (tmp_path / "some.pcap").write_bytes(capture(100))
    trace = ("simulate", ROUTER, "--arrivals", "some.pcap", "--duration", "1 ms", "--json")
    commands = {**{name: COMMANDS[name] for name in ("solve", "simulate", "size of a file")}, "a capture": trace}
    for name, (code, _, err) in answers(alone, commands, tmp_path, WITHOUT_UNIX).by_command.items():
        assert code == 0, f"{name}: {err}"


@pytest.mark.slow
def test_the_list_of_commands_has_those_that_are_installed(of_the_core: Answers) -> None:
    whole, alone = completed("--help").stdout, of_the_core.by_command["list of commands"][1]
    words = {word for word in whole.split() if word.isalpha()} - {word for word in alone.split() if word.isalpha()}
    assert {"measure", "benchmark", "doctor", "testbed", "multistage", "noc"} <= words
    assert not {"solve", "simulate", "size", "study", "hardware", "function"} & words


@pytest.mark.slow
def test_what_another_package_brings_is_named_with_the_line_that_installs_it(alone: Path, tmp_path: Path) -> None:
    for kind in ("wire", "noc", "curves"):
        (tmp_path / f"{kind}.study.toml").write_text(f'kind = "{kind}"\ntitle = "One of another package"\n')
    builders = {"np": "network_processor", **{name: name for name in EXTRAS["virtual"]["builders"]}}
    for name, builder in builders.items():
        (tmp_path / f"{name}.router.toml").write_text(f'builder = "{builder}"\n')
    commands = {name: command for name, (command, *_) in ABSENT.items()}
    for name, (code, _, err) in answers(alone, commands, tmp_path).by_command.items():
        _, subject, extra = ABSENT[name]
        assert code == 3, f"{name}: {err}"
        assert f"routecast: {subject} needs the package routecast-{extra}" in err
        assert f"pip install 'routecast[{extra}]'" in err


def test_the_list_of_what_each_extra_brings_is_that_of_the_declarations() -> None:
    """Commands of the lab and of wings may be in the panels of the command line."""
    declared: dict[str, dict[str, set[str]]] = {}
    for file in sorted((ROOT / "packages").glob("routecast-*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        names = declared[project["name"].removeprefix("routecast-")] = {
            "commands": set(),
            "files": set(),
            "builders": set(),
            "studies": set(),
        }
        for target in project["entry-points"]["routecast.wings"].values():
            module, _, name = target.partition(":")
            wing = getattr(import_module(module), name)
            names["commands"] |= {command for commands in wing.commands.values() for command in commands}
            names["files"] |= set(wing.schemas)
            names["builders"] |= set(wing.builders)
            names["studies"] |= set(wing.studies)
    for name, target in ((name, target) for commands in PANELS.values() for name, target in commands.items()):
        targets = [target] if isinstance(target, str) else [*target.commands.values()]
        rooms = {each.partition(".")[0] for each in targets}
        if rooms <= declared.keys():
            (extra,) = rooms
            declared[extra]["commands"].add(name)
    assert {extra: {sort: set(names) for sort, names in sorts.items()} for extra, sorts in EXTRAS.items()} == declared
