"""Tables of functions: estimates by operation, throughput, limits, and comparison with stated values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from routecast.show.tables import Column, Table, signed_percent

if TYPE_CHECKING:
    from routecast.function._step_estimate import StepEstimate
    from routecast.function.case import Case
    from routecast.function.estimate import Estimate
    from routecast.function.model import NetworkFunction, Stated
    from routecast.function.operations import Operation
    from routecast.function.stated import ComparedStatement

__all__ = [
    "case_tables",
    "describe_core_count",
    "functions_json",
    "functions_table",
    "limits_table",
    "operations_table",
    "registry_json",
    "registry_table",
    "stated_table",
    "throughput_table",
]


def case_tables(case: Case) -> Iterator[Table]:
    """Yield the tables of a case: the cost of each operation, the throughput, and its limits."""
    all_directions = case.estimate(case.direction, case.frames[0], case.remote_ratio)
    is_one_size = len(case.frames) == 1
    if is_one_size:
        for name in case.directions:
            title = f"{case.function.label} on {case.hardware.name}"
            direction = f", {name}" if len(case.function.directions) > 1 else ""
            yield operations_table(all_directions, name, title + direction)
    yield throughput_table(
        [(f"{name}, {kind}" if case.remote_ratio else name, estimate) for name, kind, estimate in case.estimates()]
    )
    if is_one_size:
        yield limits_table(all_directions)


_LEVELS = ("L2", "L3", "DRAM")


def operations_table(estimate: Estimate, direction: str, title: str) -> Table:
    """Return the table of the cost of each step of a direction, per packet of the direction."""
    steps = [operation for operation in estimate.operations if operation.direction == direction]
    has_stalls = any(step.stall_cycles for step in steps)
    total = sum(step.cycles + step.stall_cycles for step in steps) + estimate.call_cycles
    levels = _LEVELS if has_stalls else ("DRAM",)
    rows: list[tuple[str | float | None, ...]] = [
        (
            step.operation if step.times == 1.0 else f"{step.operation} x {step.times:g}",
            _parameters(step),
            step.cycles,
            *([step.stall_cycles] if has_stalls else []),
            *[step.lines_by_level.get(level, 0.0) or None for level in levels],  # type: ignore[call-overload]
            (step.cycles + step.stall_cycles) / total,
        )
        for step in steps
    ]
    if estimate.call_cycles:
        blank = [None] * (len(levels) + has_stalls)
        rows.append(("call", "", estimate.call_cycles, *blank, estimate.call_cycles / total))
    rows.append(
        (
            "sum",
            "",
            sum(step.cycles for step in steps) + estimate.call_cycles,
            *([sum(step.stall_cycles for step in steps)] if has_stalls else []),
            *[_level_sum(steps, level) or None for level in levels],
            1.0,
        )
    )
    return Table(
        name="operations",
        title=title,
        caption="",
        columns=(
            Column.text("Operation"),
            Column.text("Parameters"),
            Column("Cycles", "", _cycles),
            *([Column("Waiting", "cycles", _cycles)] if has_stalls else []),
            *[Column(level, "lines", ".3g") for level in levels],
            Column("Share", "%", _whole_percent),
        ),
        rows=tuple(rows),
        strong=frozenset({len(rows) - 1}),
    )


def throughput_table(rows: Sequence[tuple[str, Estimate]]) -> Table:
    """Return the table of the throughput of named estimates."""
    has_ranges = any(estimate.range_pps[0] == estimate.range_pps[0] for _, estimate in rows)
    return Table.of(
        rows,
        Column.text("", lambda row: row[0]),
        Column.text("Frames", lambda row: row[1].frames.name),
        Column("Cycles", "", _cycles, lambda row: row[1].packet_cycles),
        Column("DRAM", "lines", ".3g", lambda row: row[1].dram_accesses),
        Column("Per core", "Mpps", _mega, lambda row: row[1].core_pps),
        has_ranges
        and Column.text(
            "95 %", lambda row: f"{_mega(row[1].range_pps[0])} to {_mega(row[1].range_pps[1])}", unit="Mpps"
        ),
        Column("Machine", "Mpps", _mega, lambda row: row[1].pps),
        Column.text("Limited by", lambda row: row[1].bottleneck.resource),
        name="throughput",
        title=f"Throughput of {rows[0][1].function} on {rows[0][1].hardware}, {describe_core_count(rows[0][1].cores)}",
        caption="95 %: by the uncertainty of the costs of the operations." if has_ranges else "",
    )


def limits_table(estimate: Estimate) -> Table:
    """Return the table of the limits of the machine, the tightest first."""
    return Table.of(
        estimate.limits,
        Column.text("Resource", lambda row: row.resource),
        Column("At most", "Mpps", _mega, lambda row: row.pps),
        Column.text("Because", lambda row: row.reason),
        name="limits",
        title=f"Limits, {estimate.frames.name}",
        strong=frozenset({0}),
    )


def stated_table(rows: Sequence[ComparedStatement]) -> Table:
    """Return the table of statements about a function, with the estimates of the same cases."""
    first: dict[str, ComparedStatement] = {}
    for row in rows:
        first.setdefault(row.stated.quote, row)
    return Table.of(
        rows,
        Column.text("Quantity", lambda row: _quantity(row.stated)),
        Column.text("Stated", lambda row: f"{row.stated.value:.10g}"),
        Column.text("Ours", lambda row: _ours(row.ours)),
        Column.text("", lambda row: row.stated.unit),
        Column("Off", "%", signed_percent, lambda row: row.error_ratio),
        Column.text("Section", lambda row: row.stated.section),
        Column.text("Words", lambda row: _words(row, first), wrap=True),
        name="stated",
        title="What the source states",
        caption="",
    )


_QUANTITIES = {"dram_accesses": "accesses", "core": "cores", "memory": "memory", "machine": "machine"}


def _words(row: ComparedStatement, first: Mapping[str, ComparedStatement]) -> str:
    return f"“{row.stated.quote}”" if first[row.stated.quote] is row else "the same words"


def _quantity(stated: Stated) -> str:
    parts = [
        _QUANTITIES.get(stated.quantity, stated.quantity),
        stated.direction,
        f"{stated.frame_bytes} B" if stated.frame_bytes != 64 else "",
        describe_core_count(stated.cores) if stated.cores > 1 else "",
        "measured" if stated.measured else "",
    ]
    return ", ".join(part for part in parts if part)


def _ours(value: float) -> str:
    return "not known" if math.isnan(value) else f"{value:.4g}"


def _level_sum(steps: Sequence[StepEstimate], level: str) -> float:
    return sum(lines for step in steps for name, lines in step.lines_by_level.items() if name == level)


def _parameters(step: StepEstimate) -> str:
    """Write the parameters of a step, without those that have their default values."""
    from routecast.function.operations import OPERATIONS

    defaults = {name: parameter.default for name, parameter in OPERATIONS[step.operation].parameters.items()}
    return ", ".join(f"{name} {_number(value)}" for name, value in step.parameters.items() if value != defaults[name])


def _number(value: float) -> str:
    """Write a number in a short form with a prefix."""
    for step, prefix in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if value >= 2 * step and value % step == 0.0:
            return f"{value / step:g} {prefix}"
    for size, prefix in ((1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if prefix == 'k' else size):.4g} {prefix}"
    return f"{value:.4g}"


def describe_core_count(count: int) -> str:
    """Write a number of cores."""
    return "1 core" if count == 1 else f"{count} cores"


def _cycles(value: float) -> str:
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def _mega(rate_pps: float) -> str:
    return f"{rate_pps / 1e6:.2f}"


def _whole_percent(ratio: float) -> str:
    return f"{100.0 * ratio:.1f}"


def functions_table(functions: Sequence[NetworkFunction]) -> Table:
    """Return the table of the shipped functions."""
    return Table.of(
        functions,
        Column.text("Name", lambda row: row.name),
        Column.text("What it is", lambda row: row.title),
        Column.text("Directions", lambda row: ", ".join(direction.name for direction in row.directions)),
        Column.text("Real", lambda row: "yes" if row.runs_as else ""),
        name="functions",
        title="Network functions",
        caption="A chain: `acl_firewall,nat44`. Your own function: a *.function.toml. Real: --run runs it.",
    )


def registry_table(operations: Iterable[Operation]) -> Table:
    """Return the table of the elementary operations."""

    def parameters(operation: Operation) -> str:
        parameter_names = ((name, parameter.default is None) for name, parameter in operation.parameters.items())
        return ", ".join(name if is_required else f"[{name}]" for name, is_required in parameter_names)

    return Table.of(
        operations,
        Column.text("Operation", lambda row: row.name),
        Column.text("Parameters", parameters),
        Column("Row", getter=lambda row: "–" if row.row is None else str(row.row)),
        Column.text("What it does", lambda row: row.meaning),
        name="registry",
        title="Elementary operations",
        caption="Row: number in Table 1 of Baldi & Sapio 2018. Parameters in brackets are optional.",
    )


def functions_json(functions: Iterable[NetworkFunction]) -> dict[str, object]:
    """Return the shipped functions as plain data."""
    return {
        "functions": [
            {
                "name": function.name,
                "title": function.title,
                "directions": [direction.name for direction in function.directions],
                "tables": {table.name: table.entries for table in function.tables},
                "runs_as": function.runs_as or None,
                "source": function.source,
            }
            for function in functions
        ]
    }


def registry_json(operations: Iterable[Operation]) -> dict[str, object]:
    """Return the elementary operations as plain data."""
    return {
        "operations": [
            {
                "name": operation.name,
                "meaning": operation.meaning,
                "table_1_row": operation.row,
                "source": operation.source,
                "parameters": [
                    {**asdict(parameter), "most": parameter.most if math.isfinite(parameter.most) else None}
                    for parameter in operation.parameters.values()
                ],
            }
            for operation in operations
        ]
    }
