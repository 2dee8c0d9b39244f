"""The kind of a file that a command cannot read, and the command that takes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from routecast.wings import FileKind, wings

__all__ = ["wrong_kind_message"]

_LARGEST_BYTES = 1_000_000


_KINDS: Mapping[str, FileKind] = {
    "points": FileKind("a table of measured points", ("validate", "size", "next")),
    "router": FileKind(
        "a router file",
        ("solve", "simulate", "sweep", "size", "plan mapping", "power optimise", "power day"),
        frozenset({"builder"}),
    ),
    "study": FileKind("a study file", ("study",), frozenset({"title", "question"})),
    "hardware": FileKind("a hardware file", ("hardware show",), frozenset({"cpu", "operation"})),
    "function": FileKind("a network function", ("function",), frozenset({"direction"})),
    # `power show` itself says what shows a router's watts.
    "power": FileKind("a power model", ("power day",)),
}


@cache
def _kinds() -> Mapping[str, FileKind]:
    """Return the kinds of files of the core and of the wings."""
    return {**_KINDS, **{kind: declared for wing in wings() for kind, declared in wing.file_kinds.items()}}


def wrong_kind_message(path: str, arguments: Sequence[str]) -> str:
    """Return a message with the kind of an unreadable file and the commands that take this kind.

    ``arguments`` are the words of the command line, which name the file. The message is empty if the command takes
    files of this kind, or if the kind is unknown.
    """
    names = (" ".join(arguments[:1]), " ".join(arguments[:2]))
    accepted = next((kinds for name in names if (kinds := _accepted_kinds(name))), [])
    # Some messages name a file without its folder.
    path = next((word for word in arguments[1:] if path in {word, Path(word).name}), "")
    kind = _kind_of(Path(path)) if accepted and path else ""
    if not kind or kind in accepted:
        return ""
    first, *others = _kinds()[kind].commands
    alternatives = f" (or {', '.join(others[:2])})" if others else ""
    expected = _kinds()[accepted[0]].name.partition(" ")[2]
    return f"{path}: is {_kinds()[kind].name}, no {expected}: `routecast {first} {path}` takes it{alternatives}"


def _accepted_kinds(command: str) -> list[str]:
    """Return the kinds that a command takes."""
    return [kind for kind, declared in _kinds().items() if command in declared.commands]


def _kind_of(path: Path) -> str:
    """Return the kind of a file by its content, or by its name where the content does not decide."""
    import tomllib

    from routecast.errors import FileProblem
    from routecast.quantity.bounded_file import read_text

    if not os.path.isfile(path):  # Path.is_file raises if a name is too long or a folder is closed.
        return ""
    if path.suffix.lower() == ".parquet":
        return "points"
    try:
        text = read_text(path, kind="file", max_file_bytes=_LARGEST_BYTES)
    except FileProblem:
        return ""
    try:
        keys = set(tomllib.loads(text))
    except (ValueError, RecursionError):
        return "points" if _is_points(text) else _kind_by_name(path)
    if {"port", "task"} <= keys or {"port", "pool"} <= keys:
        return "router"
    # A study of a cluster or a chip has the keys of their files, so the name decides first.
    named_kind = _kind_by_name(path)
    if named_kind and (not _kinds()[named_kind].keys or _kinds()[named_kind].keys & keys):
        return named_kind
    return next((kind for kind, declared in _kinds().items() if declared.keys and declared.keys <= keys), named_kind)


def _kind_by_name(path: Path) -> str:
    kind = path.name.removesuffix(".toml").rpartition(".")[2] if path.suffix == ".toml" else ""
    return kind if kind in _kinds() else ""


def _is_points(text: str) -> bool:
    """Return whether the first row after comments is the header of a table of measured points."""
    header = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    columns = [column.strip().lower() for column in header.split(",")]
    return len(columns) > 1 and "cores" in columns and any(column.startswith("throughput") for column in columns)
