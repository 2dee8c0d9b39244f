"""Differences between trees of plain data, and trees with some values replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

__all__ = ["Path", "at_path", "changed", "differences", "outermost", "overlap"]

Path: TypeAlias = tuple[str | int, ...]


def differences(one: Any, other: Any, path: Path = ()) -> Iterator[Path]:
    """Return the deepest paths at which two trees differ; lists of different lengths differ as a whole.

    Examples
    --------
    >>> list(differences({"a": [1, 2], "b": [1]}, {"a": [1, 3], "b": []}))
    [('a', 1), ('b',)]
    """
    if one is other:
        return
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from differences(one[key], other[key], (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from differences(a, b, (*path, index))
    elif one != other or type(one) is not type(other):
        yield path


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that lie inside no other path.

    Examples
    --------
    >>> outermost([("a", 1), ("a",), ("b",)])
    [('a',), ('b',)]
    """
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda each: (len(each), [str(step) for step in each])):
        if not any(path[: len(above)] == above for above in kept):
            kept.append(path)
    return kept


def overlap(some: Iterable[Path], others: Sequence[Path]) -> bool:
    """Return whether a path of the first set lies in, equals, or contains a path of the second."""
    return any(a[: len(b)] == b or b[: len(a)] == a for a in some for b in others)


def at_path(tree: Any, path: Path) -> Any:
    """Return the value at a path."""
    for step in path:
        tree = tree[step]
    return tree


def changed(tree: Any, paths: Sequence[Path], values: Sequence[Any]) -> Any:
    """Return a tree with other values at some paths; unchanged parts are shared."""
    for path, value in zip(paths, values, strict=True):
        tree = _with(tree, path, value)
    return tree


def _with(tree: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = _with(tree[path[0]], path[1:], value)
    return copy
