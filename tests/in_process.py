"""``routecast`` as a shell runs it, but in the process of the test: a start of Python takes a second."""

from __future__ import annotations

import io
import os
import shutil
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from routecast.cli.run import run

__all__ = ["Completed", "completed", "copy_to_go_on"]


@dataclass(frozen=True)
class Completed:
    """What a command left, as ``subprocess.CompletedProcess`` has it."""

    returncode: int
    stdout: str
    stderr: str


def completed(*arguments: str | Path, folder: Path | None = None, **environment: str) -> Completed:
    """Run a command in a folder, with 80 columns, no colour, no terminal and changes of the environment."""
    out, err = io.StringIO(), io.StringIO()
    variables = {"COLUMNS": "80", "NO_COLOR": "1", **environment}
    there = (mock.patch.dict(os.environ, variables), chdir(folder or Path.cwd()))
    with there[0], there[1], redirect_stdout(out), redirect_stderr(err):
        code = run([str(each) for each in arguments])
    return Completed(code, out.getvalue(), err.getvalue())


def copy_to_go_on(done: Path, out: Path) -> Path:
    """Copy the folder of a finished study; run there, it takes what it has done from its ledger instead of again."""
    return shutil.copytree(done, out, ignore=shutil.ignore_patterns("summary.json"))
