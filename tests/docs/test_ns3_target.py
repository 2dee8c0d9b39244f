"""``make ns3`` where an ns-3 cannot be had: what it prints is of the ns-3 that it was asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy the target and its script; everything else counts as made, and no package can be downloaded."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "packages/ns3", tmp_path / "packages/ns3", ignore=lambda folder, names: set(names) - {"get"})
    for name in ("Cargo.toml", "Cargo.lock", "pyproject.toml"):
        (tmp_path / name).write_text("")
    identifier = f"{sys.implementation.cache_tag}-{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}"
    done = tmp_path / ".venv" / f".done-{identifier}"
    done.mkdir(parents=True)
    for stamp in ("pip", "extension"):
        (done / stamp).write_text("")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho 'no matching distribution' >&2\nexit 1\n")
    python.chmod(0o755)
    (tmp_path / "build").mkdir()
    for log in ("ns3.log", "ns3-debian.log", "ns3-wheel-3.44.log"):
        (tmp_path / "build" / log).write_text("configured another ns-3\n")
    return tmp_path


@pytest.mark.parametrize(
    ("version", "reason"), [("wheel-3.45", "no wheel of ns-3 3.45 for this Python"), ("wheel-2", "NS3=wheel-2")]
)
def test_an_ns3_that_does_not_exist_is_named_with_those_that_do(tree: Path, version: str, reason: str) -> None:
    answer = subprocess.run(
        ["make", "ns3", f"NS3={version}", f"PYTHON={sys.executable}"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
    )
    printed = answer.stdout + answer.stderr
    assert answer.returncode != 0
    assert reason in printed
    assert "allowed are debian, wheel-3.42, wheel-3.43, wheel-3.44" in printed
    assert "configured another ns-3" not in printed
    assert not (tree / "build" / version).exists()
