"""Files that ship with routecast, by name."""

from __future__ import annotations

from pathlib import Path

from routecast.wings import data_folders

__all__ = ["shipped_files"]


def shipped_files(folder: str, suffix: str) -> dict[str, Path]:
    """Return the files of a folder of the data of core and wings, in the order of their names without ``suffix``.

    Examples
    --------
    >>> list(shipped_files("studies", ".study.toml"))[0]
    'diversified_router'
    """
    paths = (path for room in data_folders(folder) for path in room.glob(f"*{suffix}"))
    return dict(sorted((path.name.removesuffix(suffix), path) for path in paths))
