"""The work of the steps of a function on a host, independent of the levels of the memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from routecast.errors import ModelProblem, Problem
from routecast.function.model import Direction, NetworkFunction, Step, TableSize
from routecast.function.operations import OPERATIONS, Parameter, cost_on
from routecast.hardware.model import Access, AccessKind, Hardware, OperationCost
from routecast.quantity.did_you_mean import did_you_mean

ETHERNET_BYTES = 18
"""Size of the Ethernet header and the FCS, which a frame has in addition to its payload."""


def variables_of(tables: Iterable[TableSize], frame_bytes: float = 64.0) -> dict[str, float]:
    """Return the variables of a function's formulas with their values for a frame.

    Examples
    --------
    >>> variables_of([TableSize(name="mac", entries=1000, entry_bytes=12)], 64)
    {'frame': 64.0, 'payload': 46.0, 'mac_entries': 1000.0, 'mac_entry_bytes': 12.0}
    """
    values = {"frame": float(frame_bytes), "payload": float(frame_bytes) - ETHERNET_BYTES}
    for table in tables:
        values[f"{table.name}_entries"] = float(table.entries)
        values[f"{table.name}_entry_bytes"] = float(table.entry_bytes)
    return values


def step_problems(
    step: Step, direction: Direction, tables: Iterable[TableSize], frame_bytes: float, place: str
) -> list[Problem]:
    """Return all faults of a step for frames of a size."""
    return _evaluated(step, direction, tables, frame_bytes, place)[1]


def step_values(
    step: Step, direction: Direction, tables: Iterable[TableSize], frame_bytes: float, *, place: str, subject: str
) -> dict[str, float]:
    """Return the values of a step's parameters, including defaults.

    ``frame_bytes`` is the size of the arriving frame; ``place`` and ``subject`` name the step and the function in
    messages. Raises ModelProblem, with all faults, if the operation is unknown, or a parameter is missing, unknown or
    out of range.
    """
    values, problems = _evaluated(step, direction, tables, frame_bytes, place)
    if problems:
        raise ModelProblem(subject, problems)
    return values


def _evaluated(
    step: Step, direction: Direction, tables: Iterable[TableSize], frame_bytes: float, place: str
) -> tuple[dict[str, float], list[Problem]]:
    operation = OPERATIONS.get(step.operation)
    if operation is None:
        message = f'got "{step.operation}": is no elementary operation; {did_you_mean(step.operation, OPERATIONS)}'
        return {}, [Problem(f"{place}.operation", message)]
    problems = [
        Problem(f"{place}.with.{name}", f"is missing: {_meaning(operation.parameters[name])}")
        for name in operation.required
        if name not in step.parameters
    ]
    variables = variables_of(tables, frame_bytes)
    values = {
        name: parameter.default for name, parameter in operation.parameters.items() if parameter.default is not None
    }
    for name, formula in step.parameters.items():
        parameter_place = f"{place}.with.{name}"
        parameter = operation.parameters.get(name)
        if parameter is None:
            hint = did_you_mean(name, operation.parameters)
            problems.append(Problem(parameter_place, f"is no parameter of {operation.name}: {hint}"))
            continue
        unknown = sorted(formula.names - variables.keys())
        if unknown:
            hint = did_you_mean(unknown[0], filter(str.isidentifier, variables))
            problems.append(Problem(parameter_place, f'formula "{formula.text}" names "{unknown[0]}": {hint}'))
            continue
        try:
            value = formula.evaluate(variables)
        except ModelProblem as problem:
            problems.append(Problem(parameter_place, str(problem)))
            continue
        problems += _range_problems(parameter, value, parameter_place)
        values[name] = value
    problems += _header_problems(values, direction, frame_bytes, step.operation, place)
    return {name: values[name] for name in operation.parameters if name in values}, problems


def _meaning(parameter: Parameter) -> str:
    return parameter.meaning + (f", in {parameter.unit}" if parameter.unit else "")


def _range_problems(parameter: Parameter, value: float, place: str) -> list[Problem]:
    if parameter.least <= value <= parameter.most:
        return []
    unit = f" {parameter.unit}" if parameter.unit else ""
    limits = f"{parameter.least:g} to {parameter.most:g}{unit}"
    return [Problem(place, f"is {value:g}{unit}: {limits} is allowed ({parameter.meaning})")]


def _header_problems(
    values: Mapping[str, float], direction: Direction, frame_bytes: float, operation: str, place: str
) -> list[Problem]:
    if operation not in ("io_mem", "mem_io") or "hdr" not in values:
        return []
    is_leaving = operation == "mem_io"
    size = frame_bytes + (direction.frame_growth_bytes if is_leaving else 0)
    if values["hdr"] <= size:
        return []
    frame = f"the frame has {size:g} B" + (" when it leaves" if is_leaving else "")
    return [
        Problem(
            f"{place}.with.hdr",
            f"is {values['hdr']:g} B, longer than the frame: {frame}; give the direction a larger smallest_frame",
        )
    ]


LINE_BYTES = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """The lines that a step touches per packet: ``lines`` of the ``stream_lines`` lines of a stream.

    Accesses with the same ``stream`` use the same memory. ``keys`` is the number of entries that lookups can need, None
    if they can need any line. ``remote``: the frame is in the other socket's L3.
    """

    stream: str
    kind: AccessKind
    pattern: str
    stream_lines: float
    lines: float
    lines_per_execution: float = 1.0
    keys: float | None = None
    remote: bool = False


@dataclass(slots=True, kw_only=True)
class StepWork:
    """The work of a step: its cycles per packet (data in L1) and its touches, averaged over frame sizes and sockets."""

    direction: Direction
    step: Step
    place: str
    cost: OperationCost
    cycles: float = 0.0
    parameters: dict[str, float] = field(default_factory=dict)
    touches: list[Touch] = field(default_factory=list)


def direction_work(
    function: NetworkFunction,
    number: int,
    hardware: Hardware,
    *,
    tables: Sequence[TableSize],
    frames: Mapping[int, float],
    remote_ratio: float,
) -> tuple[StepWork, ...]:
    """Evaluate the steps of a direction.

    ``number``: which of the function's directions; ``tables``: with the sizes of the case; ``frames``: share of each
    frame size, in bytes; ``remote_ratio``: share of packets that lie in the other socket's L3. Raises ModelProblem: a
    parameter is out of range, the host does not know an operation, or a formula has no value.
    """
    direction = function.directions[number]
    costs = _costs(direction.steps, hardware, function, number)
    works = []
    for index, (step, cost) in enumerate(zip(direction.steps, costs, strict=True)):
        place = f"direction[{number}].step[{index}]"
        work = StepWork(direction=direction, step=step, place=place, cost=cost)
        for size, share in frames.items():
            values = step_values(step, direction, tables, size, place=place, subject=f"function {function.name!r}")
            for name, value in values.items():
                work.parameters[name] = work.parameters.get(name, 0.0) + share * value
            sides = (
                ((cost, 1.0, False),)
                if cost.remote is None or remote_ratio == 0.0
                else ((cost, 1.0 - remote_ratio, False), (cost.remote, remote_ratio, True))
            )
            for side, weight, remote in sides:
                times = step.times * share * weight
                work.cycles += times * side.factor * _value(side, hardware, values)
                for entry, access in enumerate(side.accesses):
                    touch = _touch(step, access, values, hardware, tables, f"{place}/{entry}", remote)
                    if touch.lines > 0.0:
                        work.touches.append(replace(touch, lines=touch.lines * times))
        works.append(work)
    return tuple(works)


def _costs(steps: Iterable[Step], hardware: Hardware, function: NetworkFunction, number: int) -> list[OperationCost]:
    costs = []
    problems = []
    for index, step in enumerate(steps):
        cost = cost_on(hardware, step.operation)
        if cost is not None:
            costs.append(cost)
            continue
        if step.operation in OPERATIONS:
            hint = "add it to the hardware file, or probe the host (routecast hardware probe)"
        else:
            hint = f"is no elementary operation; {did_you_mean(step.operation, OPERATIONS)}"
        message = f'{hardware.name} gives no cost of "{step.operation}": {hint}'
        problems.append(Problem(f"direction[{number}].step[{index}].operation", message))
    if problems:
        raise ModelProblem(f"function {function.name!r} on {hardware.name}", problems)
    return costs


def _value(cost: OperationCost, hardware: Hardware, values: Mapping[str, float]) -> float:
    try:
        return cost.cycles.evaluate(values)
    except ModelProblem as problem:
        raise _hardware_problem(problem, hardware, f"operation.{cost.operation}.cycles") from problem


def _touch(
    step: Step,
    access: Access,
    values: Mapping[str, float],
    hardware: Hardware,
    tables: Sequence[TableSize],
    default_stream: str,
    remote: bool,
) -> Touch:
    try:
        lines = access.lines.evaluate(values)
        stream_lines = access.table_lines.evaluate(values) if access.table_lines is not None else 0.0
    except ModelProblem as problem:
        raise _hardware_problem(problem, hardware, f"operation.{step.operation}.access") from problem
    if access.of == "frame":
        return Touch(
            stream="frames", kind="frame", pattern=access.pattern, stream_lines=0.0, lines=lines, remote=remote
        )
    table = next((table for table in tables if table.name == step.table), None)
    if access.table_lines is None:
        stream_lines = table.entries * table.entry_bytes / LINE_BYTES if table else lines
    # A table has different memory for another operation only if that operation needs another number of lines.
    stream = f"{step.table or default_stream}, {stream_lines:.0f} lines"
    # A classifier looks up a key in the table of each tuple, and most tables do not have it, so it can need any line.
    keys = float(table.entries) if table and step.operation != "acl_lookup" else None
    return Touch(
        stream=stream,
        kind="table",
        pattern=access.pattern,
        stream_lines=stream_lines,
        lines=lines,
        lines_per_execution=max(1.0, lines),
        keys=keys,
    )


def _hardware_problem(problem: ModelProblem, hardware: Hardware, place: str) -> ModelProblem:
    return ModelProblem(f"hardware {hardware.name!r}", [Problem(place, str(problem))])
