"""A build of the extension for a system that is not Linux: what its names answer, and what the others say."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import routecast
from routecast import _core, compiled
from routecast.errors import EnvironmentProblem

PACKAGE = Path(routecast.__file__).parent
ROOT = Path(__file__).parents[1]
EXAMPLES = PACKAGE / "data/examples"
ROUTER = str(EXAMPLES / "multicore.router.toml")
MESH = str(PACKAGE / "noc/data/examples/mesh8x8.noc.toml")
ADAPTIVE = str(PACKAGE / "noc/data/examples/hotspot.noc.toml")
MANY = str(PACKAGE / "multistage/data/examples/demo.multistage.toml")

FEATURED = sorted(set(compiled.__all__) - {"require"})
"""Names that a build may lack."""

EXTENSION = """
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

_spec = spec_from_file_location("_core", {path!r}, loader=ExtensionFileLoader("_core", {path!r}))
_whole = module_from_spec(_spec)
_spec.loader.exec_module(_whole)
globals().update({{name: getattr(_whole, name) for name in {names!r}}})
"""
"""A module with some names of the extension, as a build without the other names has them."""

PROGRAM = """
import contextlib, io, json, sys
from routecast.cli.run import run
for name, arguments in json.load(sys.stdin).items():
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    print(json.dumps([name, code, out.getvalue(), err.getvalue()]))
"""

WITHOUT_UNIX = """
import os, signal, sys
for module, name in (
    (os, "sched_getaffinity"), (os, "O_NONBLOCK"), (os, "geteuid"), (signal, "SIGHUP"), (signal, "pthread_sigmask")
):
    delattr(module, name)
sys.modules.update(dict.fromkeys(("fcntl", "resource", "pwd", "grp")))
"""
"""Takes away what Windows lacks; what its kernel does otherwise, this does not show."""

ANSWERED: Mapping[str, tuple[str, ...]] = {
    "solve": ("solve", ROUTER, "--json"),
    "simulate": ("simulate", ROUTER, "--load", "1 Mpps", "--duration", "1 ms", "--json"),
    "size": ("size", ROUTER, "--target", "2 Mpps", "--json"),
    "capture": ("simulate", ROUTER, "--arrivals", "some.pcap", "--duration", "1 ms", "--json"),
    "benchmark of a model": ("benchmark", "rfc2544", ROUTER, "--evaluator", "solve", "--profile", "quick", "--json"),
}
REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "function": (("function", "l2_switch", "--run", "--json"), "measures"),
    "probe": (("hardware", "probe", "--quick"), "measures"),
    "workload": (("workload", "crc"), "measures"),
    "measure": (("measure", "--load", "1 kpps", "--testbed", "namespaces", "--dut", "linux"), "measures"),
    "multistage": (("multistage", "predict", MANY, "--load", "1 Mpps"), "measures"),
    "noc": (("noc", "simulate", MESH, "--load", "0.1"), "simulates networks on chip"),
    "adaptive routes": (("noc", "optimum", ADAPTIVE, "--load", "1"), "simulates networks on chip"),
}


def portable_names() -> list[str]:
    """Return the names of the extension that a build without features has."""
    return [name for name in dir(_core) if name not in FEATURED and (name[0] != "_" or name == "__version__")]


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package and an extension without the names of features."""
    folder = tmp_path_factory.mktemp("portable")
    linked = {PACKAGE / "data"}

    def left_out(place: str, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if Path(place, name) in linked or name in {"__pycache__", "tests", "docs"} or name.endswith(".so")
        }

    shutil.copytree(PACKAGE, folder / "routecast", ignore=left_out)
    (folder / "routecast/data").symlink_to(PACKAGE / "data")
    extension = EXTENSION.format(path=str(_core.__file__), names=portable_names())
    (folder / "routecast/_core.py").write_text(extension)
    return folder


def answers(
    portable: Path, commands: Mapping[str, tuple[str, ...]], folder: Path, before: str = ""
) -> dict[str, tuple[int, str, str]]:
    """Run commands one after the other in a folder, and return exit code, stdout and stderr of each."""
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM],
        input=json.dumps(commands),
        env={**os.environ, "PYTHONPATH": str(portable), "COLUMNS": "80", "NO_COLOR": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: (code, out, err) for name, code, out, err in map(json.loads, done.stdout.splitlines())}


def capture(packets: int) -> bytes:
    """Return a capture of UDP packets, one each 2 us (draft-ietf-opsawg-pcap)."""
    ip = bytes([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
    frame = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 5000, 80, 26, 0) + bytes(18)
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return header + b"".join(struct.pack("<IIII", 0, 2 * n, len(frame), len(frame)) + frame for n in range(packets))


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", WITHOUT_UNIX], ids=["Linux", "without Unix"])
def test_what_needs_no_measurement_is_answered(before: str, portable: Path, tmp_path: Path) -> None:
    (tmp_path / "some.pcap").write_bytes(capture(100))
    # A benchmark is of the lab, also of a model: the lab is for Linux.
    commands = {name: command for name, command in ANSWERED.items() if not (before and command[0] == "benchmark")}
    for name, (code, _, err) in answers(portable, commands, tmp_path, before).items():
        assert code == 0, f"{name}: {err}"


@pytest.mark.slow
def test_what_the_build_lacks_is_named_in_one_sentence(portable: Path, tmp_path: Path) -> None:
    commands = {name: command for name, (command, _) in REFUSED.items()}
    for name, (code, _, err) in answers(portable, commands, tmp_path).items():
        assert code == 3, f"{name}: {err}"
        sentence = err.splitlines()[-1]
        assert sentence.startswith("routecast: ")
        assert f"the compiled part of routecast that {REFUSED[name][1]}, which is not installed here" in sentence


@pytest.mark.slow
def test_the_doctor_says_that_the_tester_is_missing(portable: Path, tmp_path: Path) -> None:
    ((code, out, err),) = answers(portable, {"doctor": ("doctor", "--json")}, tmp_path).values()
    assert code in {0, 1}, err
    (finding,) = (check for check in json.loads(out)["findings"] if check["check"] == "back ends")
    assert finding["state"] == "missing"
    assert "the compiled part of routecast that measures" in finding["advice"]


@pytest.mark.parametrize("name", FEATURED)
def test_a_name_that_a_build_may_lack_is_that_of_the_extension(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert getattr(compiled, name) is getattr(_core, name)
    monkeypatch.delattr(_core, name)
    with pytest.raises(EnvironmentProblem, match="needs the compiled part of routecast"):
        getattr(compiled, name)


def test_features_add_exactly_the_names_that_a_build_may_lack() -> None:
    source = (ROOT / "crates/py/src/lib.rs").read_text(encoding="utf-8")
    core, featured = source[source.index("fn _core(") :].split('#[cfg(feature = "noc")]\nfn', 1)

    def names(text: str) -> set[str]:
        found = re.findall(r'add\("(\w+)"|wrap_pyfunction!\((?:\w+::)?(\w+),|add_class::<\w+::(\w+)>', text)
        return {"".join(groups) for groups in found}

    assert names(featured) == set(FEATURED)
    assert names(core) == set(portable_names())
