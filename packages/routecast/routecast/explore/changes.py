"""Differences between trees of plain data, and replacement of values in such trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

__all__ = ["Path", "at_path", "changed", "differences", "outermost", "overlap"]

Path: TypeAlias = tuple[str | int, ...]


def differences(first: Any, second: Any, path: Path = ()) -> Iterator[Path]:
    """Return the deepest paths at which two trees differ; lists of different lengths differ as a whole.

    Examples
    --------
    >>> list(differences({"a": [1, 2], "b": [1]}, {"a": [1, 3], "b": []}))
    [('a', 1), ('b',)]
    """
    if first is second:
        return
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        for key in first:
            yield from differences(first[key], second[key], (*path, key))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (a, b) in enumerate(zip(first, second, strict=True)):
            yield from differences(a, b, (*path, index))
    elif first != second or type(first) is not type(second):
        yield path


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that are not inside another path.

    Examples
    --------
    >>> outermost([("a", 1), ("a",), ("b",)])
    [('a',), ('b',)]
    """
    outer_paths: list[Path] = []
    for path in sorted(set(paths), key=lambda steps: (len(steps), [str(step) for step in steps])):
        if not any(path[: len(outer)] == outer for outer in outer_paths):
            outer_paths.append(path)
    return outer_paths


def overlap(paths: Iterable[Path], other_paths: Sequence[Path]) -> bool:
    """Return whether a path of the first set contains, equals or is inside a path of the second set."""
    return any(a[: len(b)] == b or b[: len(a)] == a for a in paths for b in other_paths)


def at_path(tree: Any, path: Path) -> Any:
    """Return the value at a path."""
    for step in path:
        tree = tree[step]
    return tree


def changed(tree: Any, paths: Sequence[Path], values: Sequence[Any]) -> Any:
    """Return a tree with other values at some paths; unchanged parts are shared."""
    for path, value in zip(paths, values, strict=True):
        tree = _replaced(tree, path, value)
    return tree


def _replaced(tree: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = _replaced(tree[path[0]], path[1:], value)
    return copy
