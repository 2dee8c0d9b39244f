"""Files that come with routecast, by their names."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["shipped_files"]


def shipped_files(folder: str, suffix: str) -> dict[str, Path]:
    """Return the files of a folder of the package's data, by name in alphabetical order.

    Parameters
    ----------
    folder : str
        Such as ``"hardware"``.
    suffix : str
        End of the files' names, which is no part of the name: ``".hardware.toml"``.
    """
    room = Path(str(files("routecast"))) / "data" / folder
    return dict(sorted((path.name.removesuffix(suffix), path) for path in room.glob(f"*{suffix}")))
