"""The wheels, built and installed once for all who run what a user would."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheels() -> Mapping[str, Path]:
    """Return the wheels of all packages, by the name of the package."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    # The Python that runs this has made the environment that make uses, or is like it.
    subprocess.run(["make", "wheel", f"PYTHON={sys.executable}"], cwd=ROOT, env=environment, check=True)
    return {path.name.partition("-")[0].replace("_", "-"): path for path in (ROOT / "dist").glob("*.whl")}


@pytest.fixture(scope="session")
def installed(wheels: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has all wheels and what they ask for, one for all processes of a run."""
    base = tmp_path_factory.getbasetemp()
    room = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "installed"
    room.mkdir(exist_ok=True)
    with (room / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (room / "done").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", room / "venv"], check=True)
            pip = [room / "venv" / "bin" / "python", "-m", "pip"]
            subprocess.run([*pip, "install", "--quiet", "--disable-pip-version-check", *wheels.values()], check=True)
            (room / "done").touch()
    return room / "venv" / "bin"


@pytest.fixture
def typed_in(installed: Path) -> Callable[[Path, str], subprocess.CompletedProcess[str]]:
    """Run a command as a user of the installed programs would, in a folder."""

    def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
        foreign = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if name not in foreign}
        environment |= {"PATH": f"{installed}:{environment['PATH']}", "COLUMNS": "80", "NO_COLOR": "1"}
        return subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    return run
