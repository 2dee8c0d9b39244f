"""The folder of results: the study or experiment that owns it, and the software versions of its figures."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.version import VERSION

__all__ = ["check_folder", "versions"]

_LARGEST_BYTES = 500_000_000


def check_folder(out: Path, kind: str, name: str) -> None:
    """Refuse a folder whose ``summary.json`` belongs to something else, because its files would be replaced.

    ``kind``: key of the summary that names its owner, ``"study"`` or ``"experiment"``; ``name``: name of the new owner.
    Raises FileProblem.
    """
    summary = out / "summary.json"
    # A file of no bytes is what a loss of power leaves of a summary: nobody's results.
    if not summary.exists() or summary.stat().st_size == 0:
        return
    try:
        document = json.loads(read_text(summary, kind="summary", max_file_bytes=_LARGEST_BYTES))
    except (ValueError, RecursionError, FileProblem):
        document = None
    owner = document.get(kind) if isinstance(document, dict) else None
    if owner != name:
        owner_text = f'the {kind} "{owner}"' if owner else "something else"
        message = f"belongs to {owner_text}: give another folder with --out"
        raise FileProblem(str(summary), [Problem("", message)])


def versions(packages: Sequence[str] = ("numpy", "scipy", "polars")) -> dict[str, str]:
    """Return the versions of the software that determines results: routecast, Python and the installed packages."""
    texts = {"routecast": VERSION, "Python": platform.python_version()}
    for name in packages:
        try:
            texts[name] = version(name)
        except PackageNotFoundError:
            continue
    return texts
