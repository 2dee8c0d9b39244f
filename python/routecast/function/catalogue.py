"""Network functions from TOML files: those that ship, and those that users write (``*.function.toml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.function.model import Direction, NetworkFunction, Step, TableSize
from routecast.function.steps import step_problems
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.shipped import shipped_files
from routecast.quantity.toml_file import parse_toml, validated

if TYPE_CHECKING:
    from routecast.function.document import DirectionTable, FunctionFile, StepTable, TableTable

__all__ = ["check_function", "function_names", "function_schema", "parse_function", "read_function"]

_SUFFIX = ".function.toml"
_LARGEST_FILE_BYTES = 1_000_000
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_VARIABLES = ("frame", "payload")


def function_names() -> tuple[str, ...]:
    """Return the names of the functions that ship, in alphabetical order."""
    return tuple(shipped_files("functions", _SUFFIX))


def read_function(name: str | Path) -> NetworkFunction:
    """Read a network function: one that ships by its name, or a ``*.function.toml``.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such function, or its file says something wrong; all faults with their places.

    Examples
    --------
    >>> read_function("l2_switch").directions[0].steps[2].operation
    'ht_lookup'
    """
    shipped = shipped_files("functions", _SUFFIX)
    if str(name) in shipped:
        return parse_function(shipped[str(name)].read_text(encoding="utf-8"), subject=f"{name}{_SUFFIX}")
    path = Path(name)
    if path.suffix != ".toml" and not path.is_file():
        hint = f"is no function that ships, and no file; {did_you_mean(str(name), shipped)}"
        raise FileProblem(f"function {str(name)!r}", [Problem("", hint)])
    text = read_text(path, kind="function file", largest_bytes=_LARGEST_FILE_BYTES)
    return parse_function(text, subject=str(path))


def parse_function(text: str, *, subject: str = "function file") -> NetworkFunction:
    """Read a network function from the text of its file.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_function`.

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
    from routecast.function.document import FunctionFile

    data = parse_toml(text, subject)
    try:
        function = _built(validated(FunctionFile, data, subject))
    except FileProblem as problem:
        raise FileProblem(subject, [*problem.problems, *_problems_of_right_steps(data)]) from problem
    try:
        check_function(function)
    except ModelProblem as problem:
        raise FileProblem(subject, problem.problems) from problem
    return function


def _problems_of_right_steps(data: Mapping[str, Any]) -> list[Problem]:
    """Return what contradicts itself in a file of which other parts have the wrong shape."""
    from pydantic import TypeAdapter, ValidationError

    from routecast.function.document import DirectionTable, StepTable, TableTable

    problems = []
    try:
        tables = TypeAdapter(list[TableTable]).validate_python(data.get("table", []))
        directions = TypeAdapter(list[dict[str, Any]]).validate_python(data.get("direction", []))
    except ValidationError:
        return []  # steps cannot be judged without the tables
    sizes = tuple(_table(table) for table in tables)
    for number, raw in enumerate(directions):
        steps = raw.get("step", [])
        try:
            direction = _direction(DirectionTable.model_validate({**raw, "step": []}))
        except ValidationError:
            continue
        for index, entry in enumerate(steps if isinstance(steps, list) else []):
            try:
                step = _step(StepTable.model_validate(entry))
            except ValidationError:
                continue
            problems += _step_problems(step, direction, sizes, f"direction[{number}].step[{index}]")
    return problems


def function_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of function files, with units and meanings as descriptions."""
    from routecast.function.document import FunctionFile
    from routecast.function.operations import OPERATIONS

    schema = FunctionFile.model_json_schema()
    schema["$defs"]["StepTable"]["properties"]["operation"]["enum"] = list(OPERATIONS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "routecast function file",
        "description": "A network function: tables, and the elementary operations of each direction.",
    }


def check_function(function: NetworkFunction) -> None:
    """Refuse a function that contradicts itself; places are those of its file.

    Raises
    ------
    routecast.errors.ModelProblem
        All contradictions at once.
    """
    problems = _table_problems(function.tables)
    names = [table.name for table in function.tables]
    if function.flows_of and function.flows_of not in names:
        what = f'got "{function.flows_of}": is no table; {did_you_mean(function.flows_of, names)}'
        problems.append(Problem("flows_of", what))
    if not function.directions:
        problems.append(Problem("direction", "there is none: a function has at least one [[direction]]"))
    seen: set[str] = set()
    for number, direction in enumerate(function.directions):
        place = f"direction[{number}]"
        if direction.name in seen:
            problems.append(Problem(f"{place}.name", f'got "{direction.name}" a second time'))
        seen.add(direction.name)
        problems += _direction_problems(direction, function.tables, place)
    if problems:
        raise ModelProblem(f"function {function.name!r}", problems)


def _table_problems(tables: tuple[TableSize, ...]) -> list[Problem]:
    problems = []
    seen: set[str] = set()
    for number, table in enumerate(tables):
        place = f"table[{number}].name"
        if not _NAME.fullmatch(table.name) or table.name in _VARIABLES:
            wanted = 'a letter, then letters, digits and _, and neither "frame" nor "payload"'
            problems.append(Problem(place, f'got "{table.name}": {wanted}'))
        if table.name in seen:
            problems.append(Problem(place, f'got "{table.name}" a second time'))
        seen.add(table.name)
    return problems


def _direction_problems(direction: Direction, tables: tuple[TableSize, ...], place: str) -> list[Problem]:
    problems = []
    if not direction.steps:
        problems.append(
            Problem(
                f"{place}.step", "there are no operations: a direction has at least one [[direction.step]]"
            )
        )
    if direction.smallest_frame_bytes + direction.frame_growth_bytes < 0:
        what = f"takes more off than the smallest frame has, {direction.smallest_frame_bytes} B"
        problems.append(Problem(f"{place}.growth", what))
    for number, step in enumerate(direction.steps):
        problems += _step_problems(step, direction, tables, f"{place}.step[{number}]")
    return problems


def _step_problems(
    step: Step, direction: Direction, tables: tuple[TableSize, ...], place: str
) -> list[Problem]:
    problems = []
    names = [table.name for table in tables]
    if step.table and step.table not in names:
        what = f'got "{step.table}": is no table; {did_you_mean(step.table, names)}'
        problems.append(Problem(f"{place}.table", what))
    return problems + step_problems(step, direction, tables, direction.smallest_frame_bytes, place)


def _built(file: FunctionFile) -> NetworkFunction:
    return NetworkFunction(
        name=file.name,
        title=file.title,
        source=file.source,
        runs_as=file.runs_as,
        flows_of=file.flows_of,
        tables=tuple(_table(table) for table in file.table),
        directions=tuple(_direction(direction) for direction in file.direction),
    )


def _table(table: TableTable) -> TableSize:
    return TableSize(name=table.name, entries=table.entries, entry_bytes=table.entry, held_bytes=table.held)


def _direction(direction: DirectionTable) -> Direction:
    return Direction(
        name=direction.name,
        share=direction.share,
        smallest_frame_bytes=direction.smallest_frame,
        frame_growth_bytes=direction.growth,
        steps=tuple(_step(step) for step in direction.step),
    )


def _step(step: StepTable) -> Step:
    return Step(
        operation=step.operation,
        parameters=dict(step.with_),
        table=step.table,
        times=step.times,
        why=step.why,
        only=step.only,
    )
