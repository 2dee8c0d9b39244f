"""The folders that ``--out`` names."""

from __future__ import annotations

import os
from pathlib import Path

from routecast.errors import FileProblem, Problem

__all__ = ["make_out_folder"]


def make_out_folder(path: Path | None) -> None:
    """Make the folder, before work is spent on what it should hold: some systems tell no other way if they let one.

    Raises
    ------
    routecast.errors.FileProblem
        It cannot be made, or nothing can be written to it.
    """
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        message = f"cannot be made: {reason}; name a folder that can be written to"
        raise FileProblem(str(path), [Problem("--out", message)]) from problem
    if not os.access(path, os.W_OK | os.X_OK):
        message = "cannot be written to: name another folder, or change who may write"
        raise FileProblem(str(path), [Problem("--out", message)])
