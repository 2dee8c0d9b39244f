"""Network functions from TOML files: those that ship, and those that users write (``*.function.toml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.function.model import Direction, NetworkFunction, Quantity, Stated, Step, TableSize
from routecast.function.work import step_problems
from routecast.hardware.model import FormulaText
from routecast.quantity import parse_frame_bytes
from routecast.quantity.catalogue import Catalogue
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, Number, Parsed
from routecast.quantity.file_model import FileModel
from routecast.quantity.toml_file import parse_toml, validated

__all__ = [
    "FUNCTIONS",
    "StepTable",
    "check_function",
    "function_names",
    "function_schema",
    "parse_function",
    "read_function",
]


# What stands in a ``*.function.toml``: tables and directions with their steps, as pydantic models.


_BYTES = re.compile(r"([+-]?\d{1,9})\s*(?:B|bytes?)")


def _whole_bytes(text: str) -> int:
    match = _BYTES.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise QuantityProblem(str(text), f'got {text!r}: whole bytes are wanted, such as "12 B"')
    return int(match[1])


def _entry_bytes(text: str) -> int:
    size = _whole_bytes(text)
    if size < 1:
        raise QuantityProblem(text, f'got "{text}": an entry has at least 1 B')
    return size


FrameBytes = Annotated[int, Parsed(parse_frame_bytes, "B", "64 B")]
SignedBytes = Annotated[int, Parsed(_whole_bytes, "B, may be negative", "28 B", "-28 B")]
EntryBytes = Annotated[int, Parsed(_entry_bytes, "B, >= 1", "12 B")]


class TableTable(FileModel):
    """A table that the function looks things up in."""

    name: str = Field(description="Formulas know it as NAME_entries and NAME_entry_bytes.")
    entries: Count = Field(ge=1, description="Entries, at most.")
    entry: EntryBytes = Field(description="Size of an entry, key included.")
    held: EntryBytes | None = Field(
        default=None, description="Size of an entry as the real function holds it, where that is more."
    )


class StepTable(FileModel):
    """One elementary operation."""

    operation: str = Field(description="Name of an elementary operation.")
    with_: dict[str, FormulaText] = Field(
        default_factory=dict,
        alias="with",
        description="Parameters of the operation: numbers, or formulas over frame, payload (frame - 18), NAME_entries "
        "and NAME_entry_bytes of the tables.",
    )
    table: str = Field(default="", description="Name of the table that it works on.")
    times: Number = Field(
        default=1.0, gt=0.0, description="How often it is done per packet; 0.1 is for one packet in ten."
    )
    why: str = Field(default="", description="What the step is for.")
    only: Literal["", "model", "real"] = Field(
        default="",
        description="real: done by the function that runs, left out by models in the manner of Baldi & Sapio 2018; "
        "model: in those models, done otherwise by the function that runs; not given: in both.",
    )


class DirectionTable(FileModel):
    """What is done to packets of one direction."""

    name: str = Field(description="forward, or what tells the directions apart: access, core.")
    share: Number = Field(default=1.0, gt=0.0, description="Share of the packets, relative to the other directions.")
    smallest_frame: FrameBytes = Field(default=64, description="Smallest frame that holds all headers, FCS included.")
    growth: SignedBytes = Field(default=0, description="Bytes that a frame is longer when it leaves.")
    step: list[StepTable] = Field(default_factory=list, description="The elementary operations, in order.")


class StatedTable(FileModel):
    """What a source states of the function on one host."""

    quantity: Quantity = Field(
        description="cycles or dram_accesses of a packet; core, memory: rate that the cores or the memory allow; "
        "machine: rate that the whole machine forwards."
    )
    value: Number = Field(gt=0.0, description="The number, as the source writes it.")
    unit: Literal["cycles", "accesses", "Mpps", "Gbit/s"] = Field(
        description="Of the number; Gbit/s are on the wire, gap and preamble included."
    )
    on: str = Field(description="Name of the host that it is stated for.")
    section: str = Field(description='Section of the source: "sec. 3.1.1".')
    quote: str = Field(description="The source's words; they hold the number.")
    direction: str = Field(default="", description="Direction of the function; not given: all together.")
    frame: FrameBytes = Field(default=64, description="Size of the frames, FCS included.")
    cores: Count = Field(default=1, ge=1, description="Cores that process frames.")
    remote: float = Field(default=0.0, ge=0.0, le=1.0, description="Share of packets in the other socket's L3.")
    measured: bool = Field(default=False, description="Whether the source measured it; else it estimates it.")
    why: str = Field(default="", description="Why the estimate here differs.")
    unknown: str = Field(default="", description="Why there is no estimate here; not given: there is one.")


class FunctionFile(FileModel):
    """A network function: what is done to the vast majority of packets."""

    name: str = Field(description="Short name; letters, digits and _.")
    title: str = Field(default="", description="What it is, in a line.")
    source: str = Field(default="", description="Where the steps are from.")
    flows_of: str = Field(
        default="",
        description="Table whose entries are the flows, where the traffic does not say how many there are; "
        "not given: every table is asked for all its entries alike.",
    )
    runs_as: str = Field(default="", description="Name of the real function that does the same, if there is one.")
    chosen_in_sight: str = Field(
        default="",
        description="What was chosen with a stated value known. Such a function describes that value: it is shown with "
        "this remark, and has no part in what is carried from one host to another.",
    )
    table: list[TableTable] = Field(default_factory=list, description="Tables.")
    direction: list[DirectionTable] = Field(default_factory=list, description="Directions; a router has one.")
    stated: list[StatedTable] = Field(
        default_factory=list, description="What the source states; printed beside the estimate, never part of it."
    )


_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_VARIABLES = ("frame", "payload")


def function_names() -> tuple[str, ...]:
    """Return the names of the functions that ship, in alphabetical order."""
    return FUNCTIONS.names()


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
    return FUNCTIONS.read(name)


def parse_function(text: str, subject: str = "function file") -> NetworkFunction:
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


FUNCTIONS = Catalogue(kind="function", folder="functions", suffix=".function.toml", parse=parse_function)


def _problems_of_right_steps(data: Mapping[str, Any]) -> list[Problem]:
    """Return what contradicts itself in a file of which other parts have the wrong shape."""
    from pydantic import TypeAdapter, ValidationError

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
    for number, one in enumerate(function.stated):
        problems += _stated_problems(one, [direction.name for direction in function.directions], f"stated[{number}]")
    if problems:
        raise ModelProblem(f"function {function.name!r}", problems)


_UNITS: Mapping[Quantity, tuple[str, ...]] = {
    "cycles": ("cycles",),
    "dram_accesses": ("accesses",),
    "core": ("Mpps", "Gbit/s"),
    "memory": ("Mpps", "Gbit/s"),
    "machine": ("Mpps", "Gbit/s"),
}


def _stated_problems(one: Stated, directions: list[str], place: str) -> list[Problem]:
    problems = []
    if one.direction and one.direction not in directions:
        what = f'got "{one.direction}": is no direction; {did_you_mean(one.direction, directions)}'
        problems.append(Problem(f"{place}.direction", what))
    units = _UNITS[one.quantity]
    if one.unit not in units:
        problems.append(Problem(f"{place}.unit", f'got "{one.unit}": {one.quantity} is in {" or ".join(units)}'))
    if not one.quote.strip() or not one.section.strip():
        problems.append(Problem(f"{place}.quote", "is missing: what is stated has the source's words and section"))
    return problems


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
            Problem(f"{place}.step", "there are no operations: a direction has at least one [[direction.step]]")
        )
    if direction.smallest_frame_bytes + direction.frame_growth_bytes < 0:
        what = f"takes more off than the smallest frame has, {direction.smallest_frame_bytes} B"
        problems.append(Problem(f"{place}.growth", what))
    for number, step in enumerate(direction.steps):
        problems += _step_problems(step, direction, tables, f"{place}.step[{number}]")
    return problems


def _step_problems(step: Step, direction: Direction, tables: tuple[TableSize, ...], place: str) -> list[Problem]:
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
        chosen_in_sight=file.chosen_in_sight,
        tables=tuple(_table(table) for table in file.table),
        directions=tuple(_direction(direction) for direction in file.direction),
        stated=tuple(_stated(one) for one in file.stated),
    )


def _stated(one: StatedTable) -> Stated:
    return Stated(
        quantity=one.quantity,
        value=one.value,
        unit=one.unit,
        on=one.on,
        section=one.section,
        quote=one.quote,
        direction=one.direction,
        frame_bytes=one.frame,
        cores=one.cores,
        remote_ratio=one.remote,
        measured=one.measured,
        why=one.why,
        unknown=one.unknown,
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
