"""Network functions from TOML files: the shipped functions, and users' own ``*.function.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.function._work import step_problems
from routecast.function.model import Direction, NetworkFunction, Quantity, Stated, Step, TableSize
from routecast.quantity.catalogue import Catalogue
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import adapter, schema_of
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["FUNCTIONS", "check_function", "function_names", "function_schema", "parse_function", "read_function"]


_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_VARIABLES = ("frame", "payload")


def function_names() -> tuple[str, ...]:
    """Return the names of the shipped functions, in alphabetical order."""
    return FUNCTIONS.names()


def read_function(name: str | Path) -> NetworkFunction:
    """Read a network function by the name of a shipped function or the path of a ``*.function.toml``.

    Raises FileProblem: the function does not exist, or its file contains faults; the error lists all faults with their
    places.

    Examples
    --------
    >>> read_function("l2_switch").directions[0].steps[2].operation
    'ht_lookup'
    """
    return FUNCTIONS.read(name)


def parse_function(text: str, subject: str = "function file") -> NetworkFunction:
    """Read a network function from the text of its file.

    Raises FileProblem: as :func:`read_function`.

    Examples
    --------
    >>> function = parse_function('''
    ... name = "wire"
    ... [[direction]]
    ... name = "forward"
    ... [[direction.step]]
    ... operation = "io_mem"
    ... with = { hdr = 14, data = "frame - 14" }
    ... ''')
    >>> function.directions[0].steps[0].operation
    'io_mem'
    """
    data = parse_toml(text, subject)
    try:
        function: NetworkFunction = validated(NetworkFunction, data, subject)
    except FileProblem as problem:
        raise FileProblem(subject, [*problem.problems, *_problems_of_valid_steps(data)]) from problem
    try:
        check_function(function)
    except ModelProblem as problem:
        raise FileProblem(subject, problem.problems) from problem
    return function


FUNCTIONS = Catalogue(kind="function", folder="functions", suffix=".function.toml", parse=parse_function)


def _problems_of_valid_steps(data: Mapping[str, Any]) -> list[Problem]:
    """Return the problems in the well-formed steps of a file with malformed parts."""
    from pydantic import ValidationError

    problems = []
    try:
        tables = adapter(tuple[TableSize, ...]).validate_python(data.get("table", []))
        directions = adapter(list[dict[str, Any]]).validate_python(data.get("direction", []))
    except ValidationError:
        return []  # steps cannot be checked without the tables
    for number, raw in enumerate(directions):
        steps = raw.get("step", [])
        try:
            direction = adapter(Direction).validate_python({**raw, "step": []})
        except ValidationError:
            continue
        for index, entry in enumerate(steps if isinstance(steps, list) else []):
            try:
                step = adapter(Step).validate_python(entry)
            except ValidationError:
                continue
            problems += _step_problems(step, direction, tables, f"direction[{number}].step[{index}]")
    return problems


def function_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of function files, with units and meanings as descriptions."""
    from routecast.function.operations import OPERATIONS

    schema = schema_of(NetworkFunction)
    schema["$defs"]["Step"]["properties"]["operation"]["enum"] = list(OPERATIONS)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "routecast function file"}


def check_function(function: NetworkFunction) -> None:
    """Refuse a function that contradicts itself; places are those of its file.

    Raises ModelProblem: all contradictions at once.
    """
    problems = _table_problems(function.tables)
    names = [table.name for table in function.tables]
    if function.flows_of and function.flows_of not in names:
        message = f'got "{function.flows_of}": is no table; {did_you_mean(function.flows_of, names)}'
        problems.append(Problem("flows_of", message))
    if not function.directions:
        problems.append(Problem("direction", "is missing: a function has at least one [[direction]]"))
    seen: set[str] = set()
    for number, direction in enumerate(function.directions):
        place = f"direction[{number}]"
        if direction.name in seen:
            problems.append(Problem(f"{place}.name", f'got "{direction.name}" a second time'))
        seen.add(direction.name)
        problems += _direction_problems(direction, function.tables, place)
    for number, stated in enumerate(function.stated):
        names = [direction.name for direction in function.directions]
        problems += _stated_problems(stated, names, f"stated[{number}]")
    if problems:
        raise ModelProblem(f"function {function.name!r}", problems)


_UNITS: Mapping[Quantity, tuple[str, ...]] = {
    "cycles": ("cycles",),
    "dram_accesses": ("accesses",),
    "core": ("Mpps", "Gbit/s"),
    "memory": ("Mpps", "Gbit/s"),
    "machine": ("Mpps", "Gbit/s"),
}


def _stated_problems(stated: Stated, directions: list[str], place: str) -> list[Problem]:
    problems = []
    if stated.direction and stated.direction not in directions:
        message = f'got "{stated.direction}": is no direction; {did_you_mean(stated.direction, directions)}'
        problems.append(Problem(f"{place}.direction", message))
    units = _UNITS[stated.quantity]
    if stated.unit not in units:
        problems.append(Problem(f"{place}.unit", f'got "{stated.unit}": {stated.quantity} is in {" or ".join(units)}'))
    if not stated.quote.strip() or not stated.section.strip():
        problems.append(Problem(f"{place}.quote", "is missing: give the words and the section of the source"))
    return problems


def _table_problems(tables: tuple[TableSize, ...]) -> list[Problem]:
    problems = []
    seen: set[str] = set()
    for number, table in enumerate(tables):
        place = f"table[{number}].name"
        if not _NAME.fullmatch(table.name) or table.name in _VARIABLES:
            allowed = 'a letter, then letters, digits and _, and neither "frame" nor "payload"'
            problems.append(Problem(place, f'got "{table.name}": {allowed}'))
        if table.name in seen:
            problems.append(Problem(place, f'got "{table.name}" a second time'))
        seen.add(table.name)
    return problems


def _direction_problems(direction: Direction, tables: tuple[TableSize, ...], place: str) -> list[Problem]:
    problems = []
    if not direction.steps:
        problems.append(Problem(f"{place}.step", "is missing: a direction has at least one [[direction.step]]"))
    if direction.smallest_frame_bytes + direction.frame_growth_bytes < 0:
        message = f"removes more than the smallest frame has, {direction.smallest_frame_bytes} B"
        problems.append(Problem(f"{place}.growth", message))
    for number, step in enumerate(direction.steps):
        problems += _step_problems(step, direction, tables, f"{place}.step[{number}]")
    return problems


def _step_problems(step: Step, direction: Direction, tables: tuple[TableSize, ...], place: str) -> list[Problem]:
    problems = []
    names = [table.name for table in tables]
    if step.table and step.table not in names:
        message = f'got "{step.table}": is no table; {did_you_mean(step.table, names)}'
        problems.append(Problem(f"{place}.table", message))
    return problems + step_problems(step, direction, tables, direction.smallest_frame_bytes, place)
