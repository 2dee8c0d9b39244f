"""Variants of a router file, with replaced values at some paths.

A path has the form of the places in messages about router files: keys joined by dots, list entries in brackets by name,
by number, or ``*`` for all::

    cores    service.per_packet    pool[cpu].frequency    task[core 0].activation.kind    task[*].queue
"""

from __future__ import annotations

import copy
import re
from collections.abc import Container, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.toml_file import fields_at, names_own_keys

if TYPE_CHECKING:
    from pydantic import BaseModel

    from routecast.quantity.schema import KnownKey

__all__ = ["field_of", "vary"]

_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)((?:\[[^\]]*\])*)(\.|$)")
_FILES = ("router", "testbed")
"""Names of files in experiments; a path does not begin with them."""
_ENTRY = re.compile(r"\[([^\]]*)\]")


def vary(
    document: Mapping[str, Any],
    overrides: Mapping[str, object],
    *,
    subject: str = "router file",
    table: type[BaseModel] | None = None,
) -> dict[str, Any]:
    """Return a router document with other values at some paths, and leave the document unchanged.

    The function adds tables that the document leaves out (``activation``, ``power``) where an override needs them. It
    does not check values: :func:`routecast.router.files.build_router` checks the variant like any file. The variant
    shares the parts that no path touches with the document.

    ``document``: content of a router file, as :func:`~routecast.quantity.toml_file.parse_toml` returns it;
    ``overrides``: new values by path, as in the file: ``{"cores": 2, "pool[cpu].frequency": "1.2 GHz"}``; ``subject``:
    name of the document in messages; ``table``: class of the document, where it is not a router file. Raises
    FileProblem: the document names an unknown builder; ModelProblem: with all paths that a router file of this kind
    does not have, each with the nearest known name.

    Examples
    --------
    >>> vary({"builder": "multicore", "cores": 4}, {"cores": 2, "activation.kind": "polling"})
    {'builder': 'multicore', 'cores': 2, 'activation': {'kind': 'polling'}}
    """
    from routecast.router.files import router_table  # pydantic is loaded where files are read

    varied = dict(document)
    table = table or router_table(varied, subject)
    problems = []
    for path, value in overrides.items():
        try:
            _override(varied, table, path, value)
        except _WrongPathError as wrong:
            problems.append(Problem(path, str(wrong)))
    if problems:
        raise ModelProblem(subject, problems)
    return varied


def field_of(table: type[BaseModel], path: str) -> KnownKey | None:
    """Return the field of a file that a path leads to; None for a key that the writer chooses, or an unknown key."""
    try:
        steps = _steps(path)
    except _WrongPathError:
        return None
    place: list[int | str] = []
    for key, entries in steps[:-1]:
        place += [key, *(0 for _ in entries)]
    return _known_at(table, tuple(place)).get(steps[-1][0])


@lru_cache(maxsize=4096)
def _known_at(table: type[BaseModel], place: tuple[int | str, ...]) -> dict[str, KnownKey]:
    return fields_at(table, place)


@lru_cache(maxsize=4096)
def _is_chosen_at(table: type[BaseModel], place: tuple[int | str, ...]) -> bool:
    return names_own_keys(table, place)


class _WrongPathError(Exception):
    """A path that leads nowhere, with the reason."""


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[tuple[str, list[str]], ...]:
    """Return the keys of a path, each with the entries in brackets after it."""
    at = 0
    steps: list[tuple[str, list[str]]] = []
    while at < len(path):
        match = _KEY.match(path, at)
        if not match or (match[3] == "." and match.end() == len(path)):
            raise _WrongPathError('is no path: write keys and dots, list entries in brackets: "pool[cpu].units"')
        steps.append((match[1], _ENTRY.findall(match[2])))
        at = match.end()
    if not path:
        raise _WrongPathError('is empty: write keys and dots, list entries in brackets: "pool[cpu].units"')
    return tuple(steps)


def _override(document: dict[str, Any], table: type[BaseModel], path: str, value: object) -> None:
    steps = _steps(path)
    tables: list[dict[str, Any]] = [document]
    place: list[int | str] = []
    for number, (key, entries) in enumerate(steps):
        known = _known_at(table, tuple(place))
        has_own_keys = _is_chosen_at(table, tuple(place))
        if not known and not has_own_keys:
            parent = steps[number - 1][0]
            raise _WrongPathError(f'"{parent}" is no table, so nothing in it is called "{key}"')
        if key not in known and not has_own_keys:
            if number == 0 and key in _FILES and len(steps) > 1:
                raise _WrongPathError(f'begins in the file, so leave out "{key}.": "{path[len(key) + 1 :]}"')
            raise _WrongPathError(f'"{key}" is no key that is known here: {did_you_mean(key, known)}')
        place.append(key)
        is_last = number == len(steps) - 1
        if is_last and not entries:
            for matching in tables:
                matching[key] = value
            return
        if entries:
            tables = _select_entries(tables, key, entries, value=value, is_last=is_last)
            place += [0] * len(entries)
        else:
            tables = [_open_table(matching, key, _known_at(table, tuple(place))) for matching in tables]
        if is_last:
            return


def _open_table(table: dict[str, Any], key: str, known: Container[str]) -> dict[str, Any]:
    inner = table.get(key, {})
    if isinstance(inner, str) and "base" in known:  # a text is short for a table with only that base
        inner = {"base": inner}
    if not isinstance(inner, dict):
        raise _WrongPathError(f'"{key}" is no table; if it is a list, name the entry: "{key}[…]"')
    copied = table[key] = dict(inner)  # the variant's own: the document's stays as it is
    return copied


def _select_entries(
    tables: list[dict[str, Any]], key: str, entries: list[str], *, value: object, is_last: bool
) -> list[dict[str, Any]]:
    """Return the list entries that a key and its brackets select; those of the last key get the value."""
    lists: list[Any] = [_copied_part(table, key) for table in tables]
    for depth, entry in enumerate(entries):
        inner: list[Any] = []
        for part in lists:
            if not isinstance(part, list):
                raise _WrongPathError(f'"{key}" is no list here: leave out [{entry}]')
            numbers = _numbers(part, key, entry)
            if is_last and depth == len(entries) - 1:
                for number in numbers:
                    part[number] = copy.deepcopy(value)
            inner += [_copied_part(part, number) for number in numbers]
        lists = inner
    if not is_last and not all(isinstance(entries, dict) for entries in lists):
        raise _WrongPathError(f'the entries of "{key}" are no tables')
    return lists


def _copied_part(holder: Any, at: str | int) -> Any:
    """Replace the part at a key or index by a copy, and return the copy."""
    inner = holder.get(at, []) if isinstance(at, str) else holder[at]
    if isinstance(inner, list | dict):
        inner = inner.copy()
        if not isinstance(at, str) or at in holder:
            holder[at] = inner
    return inner


def _numbers(entries: list[Any], key: str, entry: str) -> list[int]:
    """Return the indices that the text in brackets selects: by name, by number, or all."""
    if entry == "*":
        return list(range(len(entries)))
    names = [str(entry.get("name", "")) if isinstance(entry, dict) else "" for entry in entries]
    if entry in names:
        return [names.index(entry)]
    if entry.isdecimal() and int(entry) < len(entries):
        return [int(entry)]
    known = [name for name in names if name] or [str(number) for number in range(len(entries))]
    if not known and not entry.isdecimal():
        raise _WrongPathError(f'there is no "{key}" in the file: write {key} = [{{ name = "{entry}" }}] into it')
    raise _WrongPathError(f'"{key}" has no entry "{entry}": {did_you_mean(entry, known)}')
