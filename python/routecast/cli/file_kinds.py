"""The kind of a file that a command cannot read, and the command that takes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from routecast.wings import FileKind, wings

__all__ = ["other_kind"]

_LARGEST_BYTES = 1_000_000


_KINDS: Mapping[str, FileKind] = {
    "points": FileKind("a table of measured points", ("validate", "size", "next")),
    "router": FileKind(
        "a router file",
        ("solve", "simulate", "sweep", "size", "plan mapping", "power optimise", "power day"),
        frozenset({"builder"}),
    ),
    "study": FileKind("a study file", ("study",), frozenset({"title", "question"})),
    "testbed": FileKind("a test bed file", ("testbed up", "measure --testbed"), frozenset({"kind", "port"})),
    "hardware": FileKind("a hardware file", ("hardware show",), frozenset({"cpu", "operation"})),
    "function": FileKind("a network function", ("function",), frozenset({"direction"})),
    # `power show` itself says what shows a router's watts.
    "power": FileKind("a power model", ("power day",)),
}


@cache
def _kinds() -> Mapping[str, FileKind]:
    """Return the kinds of files of the core and of the wings."""
    return {**_KINDS, **{kind: declared for wing in wings() for kind, declared in wing.file_kinds.items()}}


def other_kind(path: str, arguments: Sequence[str]) -> str:
    """Return the kind of a file and the command that takes it, if that is not the command that was called.

    ``path``: the file that could not be read; ``arguments``: the words of the command line, which name it. Returns a
    message; empty where the file is of the kind that the command takes, or of none that is known.
    """
    given = next((" ".join(words) for words in (arguments[:1], arguments[:2]) if _takers(" ".join(words))), "")
    wanted = _takers(given)
    # Some messages call a file by its name without its folder.
    path = next((word for word in arguments[1:] if path in {word, Path(word).name}), "")
    kind = _kind_of(Path(path)) if given and path else ""
    if not kind or kind in wanted:
        return ""
    of, (first, *others) = _kinds()[kind].name, _kinds()[kind].commands
    likewise = f" (or {', '.join(others[:2])})" if others else ""
    no = _kinds()[wanted[0]].name.partition(" ")[2]
    return f"{path}: is {of}, no {no}: `routecast {first} {path}` takes it{likewise}"


def _takers(command: str) -> list[str]:
    """Return the kinds that a command takes."""
    return [kind for kind, of in _kinds().items() if command in of.commands]


def _kind_of(path: Path) -> str:
    """Return the kind of a file by its content, or by its name where the content does not decide."""
    import tomllib

    from routecast.errors import FileProblem
    from routecast.quantity.bounded_file import read_text

    if not os.path.isfile(path):  # that of pathlib raises where a name is too long, or a folder closed
        return ""
    if path.suffix.lower() == ".parquet":
        return "points"
    try:
        text = read_text(path, kind="file", largest_bytes=_LARGEST_BYTES)
    except FileProblem:
        return ""
    try:
        keys = set(tomllib.loads(text))
    except (ValueError, RecursionError):
        return "points" if _is_points(text) else _kind_by_name(path)
    if {"port", "task"} <= keys or {"port", "pool"} <= keys:
        return "router"
    # A study of a cluster or a chip has what their files have, and a kind besides.
    named = _kind_by_name(path)
    if named and (not _kinds()[named].keys or _kinds()[named].keys & keys):
        return named
    return next((kind for kind, of in _kinds().items() if of.keys and of.keys <= keys), named)


def _kind_by_name(path: Path) -> str:
    kind = path.name.removesuffix(".toml").rpartition(".")[2] if path.suffix == ".toml" else ""
    return kind if kind in _kinds() else ""


def _is_points(text: str) -> bool:
    """Whether the first row after comments is the header of a table of measured points."""
    header = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    heads = [head.strip().lower() for head in header.split(",")]
    return len(heads) > 1 and "cores" in heads and any(head.startswith("throughput") for head in heads)
