"""The storeys of the house: a core, what several wings stand on, a lab that measures, and wings."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob
from pathlib import Path

__all__ = ["LAB", "SHARED", "WINGS", "files_below", "room_of"]

WINGS = ("experiment", "multistage", "noc", "plan", "replications")
"""Rooms above all floors: a wing imports the core and no other wing, and the core imports no wing."""
LAB = ("lab",)
"""Packages of rooms that measure: they import the core, and the core runs without them."""
SHARED = ("virtual",)
"""Rooms that import the core, and that the lab and wings import: the core runs without them."""


def room_of(parts: Sequence[str]) -> str:
    """Return the room of a module or name, given by its names below the package: a room of the lab is ``lab/ROOM``."""
    return "/".join(parts[:2]) if parts[0] in LAB else parts[0]


def files_below(folder: Path, pattern: str) -> list[Path]:
    """Return the paths of this pattern below a folder, in folders that links lead to as well."""
    return sorted(Path(name) for name in glob(str(folder / "**" / pattern), recursive=True))
