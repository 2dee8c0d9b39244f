"""The wheels, as somebody meets them who has nothing else: installed in an empty environment, far from any checkout.

``make wheel`` builds them, and does nothing where they are built already.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from test_commands import files_of, steps_of

from routecast.lab.testbed.checks import NAMESPACE_CAPABILITIES, missing

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```\S+\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?((?:sudo )?routecast .*?) *(?: #.*)?$", re.MULTILINE)
Typed = Callable[[Path, str], "subprocess.CompletedProcess[str]"]
BEGINNING = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tour.md"))
"""What a newcomer reads: the README, and the page with a few commands for each question."""
TYPED = [command for block in FENCE.findall(BEGINNING) for command in COMMAND.findall(block)]
"""Every command of these pages, those included whose output they do not show."""
ON_THE_WIRE = [command for command in TYPED if command.startswith("sudo ")]
"""They measure on a test bed of network namespaces."""
SHOWN = {step.command for step in steps_of(BEGINNING)}
"""They run from the wheel too, and print what is shown: tests/docs/test_commands.py."""
ELSEWHERE = [command for command in TYPED if command not in {*ON_THE_WIRE, *SHOWN}]
TRIAL = 'routecast measure --testbed namespaces --dut linux --load "10 kpps" --duration "300 ms"'
NEEDED_FOR_THE_TESTER = 3  # exit code: the environment lacks something


PACKAGES = {
    "routecast": "packages/routecast",
    "routecast-experiment": "packages/routecast-experiment",
    "routecast-lab": "packages/routecast-lab",
    "routecast-noc": "packages/routecast-noc",
    "routecast-plan": "packages/routecast-plan",
    "routecast-replications": "packages/routecast-replications",
    "routecast-virtual": "packages/routecast-virtual",
}
"""The folder of the sources of each package."""
COMPILED = {"routecast": "_core", "routecast-lab": "lab/_lab", "routecast-noc": "noc/_noc"}
"""The extension of packages that have one."""


def package_files(name: str) -> list[str]:
    """Return every file of a package that a wheel takes, by its path there; an extension is compiled."""
    folder = ROOT / PACKAGES[name]
    return sorted(
        path.relative_to(folder).as_posix()
        for path in (folder / "routecast").rglob("*")
        if path.is_file()
        and path.suffix != ".so"
        and not {"__pycache__", "tests", "docs"} & {*path.relative_to(folder).parts}
    )


@pytest.mark.parametrize("name", PACKAGES)
def test_the_files_that_a_wheel_takes_from_the_package_are_all_tracked_and_none_is_ignored(name: str) -> None:
    """Maturin takes what lies under python-source and git does not ignore; what git does not track is in no clone."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a clone")
    folder = f"{PACKAGES[name]}/routecast"
    list_files = ["git", "ls-files", "--cached"]
    tracked, ignored = (
        subprocess.run(
            [*list_files, *more, folder], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        for more in ((), ("--ignored", "--exclude-standard"))
    )
    assert ignored == []
    assert {f"{PACKAGES[name]}/{file}" for file in package_files(name)} <= set(tracked)


def test_a_wheel_is_named_and_started_as_the_package_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["maturin"]["module-name"] == "routecast._core"
    module, _, name = project["project"]["scripts"]["routecast"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
    for file in ("README.md", *project["project"]["license-files"]):
        assert (ROOT / file).exists()


@pytest.mark.parametrize("typed", TYPED)
def test_every_command_of_the_first_pages_is_one_that_there_is(typed: str) -> None:
    """Whether it runs, from the wheel, is for the thorough tier."""
    import typer.main

    from routecast.cli.app import app

    command: Any = typer.main.get_command(app)
    words = shlex.split(typed.removeprefix("sudo "))[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    for word in words:
        assert not word.startswith("examples/") or (ROOT / word).exists()


def test_the_first_pages_get_their_examples_before_they_use_them() -> None:
    first = next(number for number, command in enumerate(TYPED) if " examples/" in command)
    assert "routecast examples --all" in TYPED[:first]
    assert len(ON_THE_WIRE) < len(ELSEWHERE)


@pytest.mark.thorough
@pytest.mark.parametrize("name", COMPILED)
def test_a_wheel_with_an_extension_says_that_it_runs_on_any_linux_since_glibc_2_17(
    name: str, wheels: Mapping[str, Path]
) -> None:
    # PEP 600: the tag is the oldest glibc that has all symbols.
    assert re.search(r"-abi3-.*manylinux_2_17_\w+\.whl$", wheels[name].name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", COMPILED)
def test_a_wheel_asks_for_no_symbol_that_it_does_not_name_the_version_of(
    name: str, wheels: Mapping[str, Path], tmp_path: Path
) -> None:
    """What has no version is not in the oldest glibc (gettid is in none before 2.30), and no tag tells of it."""
    with zipfile.ZipFile(wheels[name]) as archive:
        (library,) = [file for file in archive.namelist() if file.endswith(".so")]
        archive.extract(library, tmp_path)
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", tmp_path / library], capture_output=True, text=True, check=True
    ).stdout
    wanted = re.findall(r" GLOBAL +DEFAULT +UND +(\S+)", symbols)
    assert any("@GLIBC" in symbol for symbol in wanted)
    assert [symbol for symbol in wanted if "@" not in symbol and not symbol.startswith(("Py", "_Py"))] == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_holds_every_file_of_its_package_once_and_a_bill_of_its_crates(
    name: str, wheels: Mapping[str, Path]
) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        files = archive.namelist()
        bills = [json.loads(archive.read(file)) for file in files if "/sboms/" in file]
    inside = sorted(file for file in files if file.startswith("routecast/"))
    assert [file for file in inside if not file.endswith(".so")] == package_files(name)
    assert len(inside) - len(package_files(name)) == (name in COMPILED)
    assert [bill["bomFormat"] for bill in bills] == ["CycloneDX"] * (name in COMPILED)


@pytest.mark.thorough
def test_the_wheel_of_the_core_has_no_ebpf_and_answers_alone(wheels: Mapping[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(wheels["routecast"]) as archive:
        (library,) = [file for file in archive.namelist() if file.endswith(".so")]
        assert b"license\0GPL" not in archive.read(library)
        assert b"xdp" not in archive.read(library)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *quiet, wheels["routecast"]], check=True)

    def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [python, "-I", "-m", "routecast", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert typed("examples", "multicore.router.toml").returncode == 0
    assert typed("solve", "examples/multicore.router.toml", "--json").returncode == 0
    lacking = typed("doctor")
    assert lacking.returncode == NEEDED_FOR_THE_TESTER
    assert "pip install 'routecast[lab]'" in lacking.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("command", ELSEWHERE, ids=lambda command: " ".join(command.split()[1:4]))
def test_every_command_of_the_first_pages_runs_from_the_wheel(command: str, typed_in: Typed, tmp_path: Path) -> None:
    if " examples/" in command:
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name, text in files_of(BEGINNING).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = typed_in(tmp_path, command)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"


@pytest.mark.thorough
@pytest.mark.alone
@pytest.mark.parametrize("command", ON_THE_WIRE, ids=lambda command: " ".join(command.split()[2:4]))
def test_every_measurement_of_the_readme_runs_from_the_wheel(command: str, typed_in: Typed, tmp_path: Path) -> None:
    lacking = missing(NAMESPACE_CAPABILITIES)
    if lacking:
        pytest.skip(f"needs root ({', '.join(lacking)}): {command} does not run")
    done = typed_in(tmp_path, command.removeprefix("sudo "))
    # A machine that other tests keep busy misses a criterion, or has no core left to overload the device with.
    disturbances = ("Criterion missed", "reaches no overload", "left late")
    assert done.returncode == 0 or any(words in done.stderr for words in disturbances), (
        f"$ {command}\n{done.stdout}{done.stderr}"
    )


@pytest.mark.thorough
def test_the_wheel_measures_where_the_checkout_does(typed_in: Typed, tmp_path: Path) -> None:
    lacking = missing(NAMESPACE_CAPABILITIES)
    if lacking:
        pytest.skip(f"needs root ({', '.join(lacking)}): {TRIAL} does not run")
    here = [sys.executable, "-m", "routecast", *shlex.split(TRIAL)[1:]]
    ours = subprocess.run(here, cwd=tmp_path, capture_output=True, text=True, check=False)
    done = typed_in(tmp_path, TRIAL)
    assert done.returncode in {0, 1, NEEDED_FOR_THE_TESTER}, done.stderr
    lacks = [item.returncode == NEEDED_FOR_THE_TESTER for item in (ours, done)]
    assert lacks[0] == lacks[1], ours.stderr + done.stderr
