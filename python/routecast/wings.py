"""The wings of the house: packages of commands, files and studies that the core does not import.

A wing declares itself as a :class:`Wing`, and one entry point of its distribution names that declaration::

    [project.entry-points."routecast.wings"]
    noc = "routecast.noc.wing:WING"

The core reads the declarations and imports the rest of a wing at its first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path

__all__ = ["CommandGroup", "FileKind", "Wing", "data_folders", "wings"]

ENTRY_POINTS = "routecast.wings"


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """Commands below one word: the help of the word, and ``module:function`` of each command."""

    help: str
    commands: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: its name in messages, the commands that read it, and the keys that identify it together."""

    name: str
    commands: tuple[str, ...]
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wing:
    """What a wing adds: modules are named relative to its package.

    ``commands`` are by panel of the help and by word, ``schemas`` and ``file_kinds`` by the word before ``.toml``,
    ``studies`` by the kind that a study file names: ``package:Class`` of the document. ``questions`` are what users
    ask, with the command that answers, and ``examples`` what follows a command that does not run alone.
    """

    package: str
    commands: Mapping[str, Mapping[str, str | CommandGroup]] = field(default_factory=dict)
    file_kinds: Mapping[str, FileKind] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    studies: Mapping[str, str] = field(default_factory=dict)
    questions: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """Folder of the files that ship with the wing."""
        return Path(str(import_module(self.package).__file__)).parent / "data"


@cache
def wings() -> tuple[Wing, ...]:
    """Return the wings that are installed, in the order of their names."""
    from importlib.metadata import entry_points

    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    return tuple(entries[name].load() for name in sorted(entries))


def data_folders(name: str) -> Iterator[Path]:
    """Yield the folders of shipped files with this name: the core's first, then the wings'."""
    yield Path(__file__).parent / "data" / name
    yield from (wing.data / name for wing in wings())
