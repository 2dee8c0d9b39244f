"""Catalogues of shipped files of one kind, read by name, and of users' own files, read by path."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.wings import data_folders

__all__ = ["Catalogue", "shipped_files"]

T = TypeVar("T")


def shipped_files(folder: str, suffix: str) -> dict[str, Path]:
    """Return the shipped files of a data folder of the core and the wings, by name without ``suffix``, in its order.

    Examples
    --------
    >>> list(shipped_files("studies", ".study.toml"))[0]
    'diversified_router'
    """
    return dict(_shipped(folder, suffix))


@cache
def _shipped(folder: str, suffix: str) -> tuple[tuple[str, Path], ...]:
    """Look into the folders once: a study names files that ship some thousand times."""
    paths = (path for data_folder in data_folders(folder) for path in data_folder.glob(f"*{suffix}"))
    return tuple(sorted((path.name.removesuffix(suffix), path) for path in paths))


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue(Generic[T]):
    """The files of one kind, such as ``*.processor.toml``.

    The name of a shipped file has no suffix. A text that ends in ``.toml`` or contains a folder is the path of a user's
    own file.
    """

    kind: str
    """What a file describes, for messages: ``"processor"``."""
    folder: str
    """Name of the data folder with the shipped files."""
    suffix: str
    parse: Callable[[str, str], T]
    """Reads the text of a file; the second argument is the name of the file in messages."""
    further_names: tuple[str, ...] = ()
    """Names that the caller resolves itself and that messages may suggest."""

    def files(self) -> dict[str, Path]:
        """Return the shipped files by name, in alphabetical order."""
        return shipped_files(self.folder, self.suffix)

    def names(self) -> tuple[str, ...]:
        """Return the names of the shipped files, in alphabetical order."""
        return tuple(self.files())

    def is_path(self, name: str | Path) -> bool:
        """Return whether a name that does not ship is the path of a user's own file."""
        return isinstance(name, Path) or name.endswith(".toml") or os.sep in name

    def find(self, name: str | Path, folder: Path | None = None) -> Path:
        """Return the path of a shipped file, or of a user's own file relative to ``folder``.

        Raises FileProblem: no file of this name ships; the message suggests the nearest name.
        """
        shipped = self.files()
        if str(name) in shipped:
            return shipped[str(name)]
        if self.is_path(name):
            return (folder or Path()) / name
        hint = did_you_mean(str(name), (*self.further_names, *shipped))
        raise FileProblem(f'"{str(name)[:100]}"', [Problem("", f"is no {self.kind} that ships: {hint}")])

    def subject(self, path: Path) -> str:
        """Return the name of a file in messages: the path of a user's own file, the file name of a shipped file."""
        return path.name if path in self.files().values() else str(path)

    def read(self, name: str | Path, folder: Path | None = None) -> T:
        """Read a shipped file, or a user's own file relative to ``folder``.

        Raises FileProblem: the file does not exist, cannot be read, or :attr:`parse` refuses its text.
        """
        path = self.find(name, folder)
        return self.parse(read_text(path, kind=f"{self.kind} file"), self.subject(path))

    def all(self) -> tuple[T, ...]:
        """Read every shipped file, in the order of the names."""
        return tuple(self.read(name) for name in self.names())
