"""Wings: packages that add commands, files and studies, and that the core does not import.

A wing declares its parts as a :class:`Wing`, and an entry point of its distribution names this declaration::

    [project.entry-points."routecast.wings"]
    noc = "routecast.noc.wing:WING"

The core reads the declarations, and imports other modules of a wing only when they are used.

Each wing is a package of its own below ``packages/``, which an extra installs: ``pip install 'routecast[noc]'``. The
lab, ``routecast.lab``, measures: test beds, benchmarks, and the commands that need them. Routers of machines,
``routecast.virtual``, stand between the core and the wings that use them. The core runs without both, and calls what
their ``WING`` declares as ``parts``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from routecast.errors import EnvironmentProblem

__all__ = [
    "ENTRY_POINTS",
    "EXTRAS",
    "CommandGroup",
    "FileKind",
    "Wing",
    "data_folders",
    "extra_of",
    "find_part",
    "not_installed",
    "require_part",
    "wings",
]

ENTRY_POINTS = "routecast.wings"
"""Group of the entry points of wings."""


Sort = Literal["commands", "files", "builders", "studies"]
"""What a package brings: commands, kinds of files, builders of router files, kinds of studies."""

EXTRAS: Mapping[str, Mapping[Sort, Sequence[str]]] = {
    "lab": {
        "commands": (
            "benchmark",
            "doctor",
            "export",
            "import",
            "measure",
            "multistage",
            "testbed",
            "watch",
            "workload",
        ),
        "files": ("benchmark", "multistage", "testbed"),
        "builders": (),
        "studies": ("functions", "latency", "multistage", "wire"),
    },
    "virtual": {
        "commands": (),
        "files": ("virtualisation",),
        "builders": ("virtual", "parallel", "multistage"),
        "studies": (),
    },
    "noc": {"commands": ("noc",), "files": ("noc",), "builders": (), "studies": ("noc",)},
    "plan": {
        "commands": ("day", "plan"),
        "files": ("cluster", "placement", "processor"),
        "builders": ("network_processor",),
        "studies": ("cluster",),
    },
    "experiment": {"commands": ("experiment",), "files": ("experiment",), "builders": (), "studies": ("experiments",)},
    "replications": {"commands": ("board",), "files": (), "builders": (), "studies": ("curves", "napi")},
}
"""What each extra brings, so that it can be named where it is not installed."""


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """A group of commands: its help, and ``module:function`` of each command."""

    help: str
    commands: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: its name in messages, the commands that read it, and the set of keys that identifies it."""

    name: str
    commands: tuple[str, ...]
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wing:
    """The parts of a wing; module names are relative to its package.

    ``commands`` are by panel of the help and by name. ``schemas`` and ``file_kinds`` are by the word before ``.toml``.
    ``builders`` has ``module:Class`` that reads a router by the builder that its file names, ``studies`` has
    ``package:Class`` of the document by the kind that a study file names. ``questions`` has the command
    that answers each question of users, and ``examples`` the arguments of commands that need some. ``thin_modules``
    have commands that :mod:`routecast.cli.thin` declares and runs. ``parts`` has ``module:function`` of what the core
    calls where the wing is installed, by name.
    """

    package: str
    commands: Mapping[str, Mapping[str, str | CommandGroup]] = field(default_factory=dict)
    file_kinds: Mapping[str, FileKind] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    builders: Mapping[str, str] = field(default_factory=dict)
    studies: Mapping[str, str] = field(default_factory=dict)
    questions: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    thin_modules: frozenset[str] = frozenset()
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """Folder of the files that ship with the wing."""
        return Path(str(import_module(self.package).__file__)).parent / "data"


@cache
def wings() -> tuple[Wing, ...]:
    """Return the installed wings, in the order of their names."""
    from importlib.metadata import entry_points

    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    return tuple(entries[name].load() for name in sorted(entries))


def find_part(name: str) -> Any | None:
    """Return the function or class that a wing declares as a part under this name, None if none does."""
    for declared in wings():
        if target := declared.parts.get(name):
            module, _, function = target.partition(":")
            return getattr(import_module(f"{declared.package}.{module}"), function)
    return None


def require_part(name: str, extra: str = "lab") -> Any:
    """Return the function or class that a wing declares as a part under this name; ``extra`` brings it.

    Raises EnvironmentProblem: what is installed does not declare it.
    """
    function = find_part(name)
    if function is None:
        raise not_installed(name, extra)
    return function


def extra_of(sort: Sort, name: str) -> str | None:
    """Return the extra that brings what has this name, None if none does."""
    return next((extra for extra, names in EXTRAS.items() if name in names[sort]), None)


def not_installed(name: str, extra: str = "lab") -> EnvironmentProblem:
    """Return the error of what an extra brings that is not installed, with the line that installs it."""
    where = " (Linux)" if extra == "lab" else ""
    package = f"the package routecast-{extra}{where}"
    return EnvironmentProblem(f"{name} needs {package}, which is not installed: pip install 'routecast[{extra}]'")


def data_folders(name: str) -> Iterator[Path]:
    """Yield the data folders of this name: that of the core, then those of the wings."""
    yield Path(__file__).parent / "data" / name
    yield from (wing.data / name for wing in wings())
