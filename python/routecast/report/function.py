"""Estimates of functions as tables: cycles by operation, throughput, limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from routecast.report.tables import Column, Table

if TYPE_CHECKING:
    from routecast.function.estimate import Estimate
    from routecast.function.step_estimate import StepEstimate

__all__ = ["limits_table", "operations_table", "throughput_table"]


_LEVELS = ("L2", "L3", "DRAM")


def operations_table(found: Estimate, direction: str, title: str) -> Table:
    """Return what each step of a direction costs, per packet of that direction."""
    steps = [one for one in found.operations if one.direction == direction]
    waits = any(one.stall_cycles for one in steps)
    total = sum(one.cycles + one.stall_cycles for one in steps) + found.call_cycles
    levels = _LEVELS if waits else ("DRAM",)
    rows: list[tuple[str | float | None, ...]] = [
        (
            one.operation if one.times == 1.0 else f"{one.operation} x {one.times:g}",
            _parameters(one),
            one.cycles,
            *([one.stall_cycles] if waits else []),
            *[one.lines_by_level.get(level, 0.0) or None for level in levels],  # type: ignore[call-overload]
            (one.cycles + one.stall_cycles) / total,
        )
        for one in steps
    ]
    if found.call_cycles:
        blank = [None] * (len(levels) + waits)
        rows.append(("call", "", found.call_cycles, *blank, found.call_cycles / total))
    rows.append(
        (
            "sum",
            "",
            sum(one.cycles for one in steps) + found.call_cycles,
            *([sum(one.stall_cycles for one in steps)] if waits else []),
            *[_level_sum(steps, level) or None for level in levels],
            1.0,
        )
    )
    return Table(
        name="operations",
        title=title,
        caption="",
        columns=(
            Column(title="Operation", align="left"),
            Column(title="Parameters", align="left"),
            Column(title="Cycles", form=_cycles),
            *([Column(title="Waiting", unit="cycles", form=_cycles)] if waits else []),
            *[Column(title=level, unit="lines", form=".3g") for level in levels],
            Column(title="Share", unit="%", form=_whole_percent),
        ),
        rows=tuple(rows),
        strong=frozenset({len(rows) - 1}),
    )


def throughput_table(rows: Sequence[tuple[str, Estimate]]) -> Table:
    """Return the throughput of estimates, each with what it is called."""
    ranged = any(found.range_pps[0] == found.range_pps[0] for _, found in rows)
    return Table(
        name="throughput",
        title=f"Throughput of {rows[0][1].function} on {rows[0][1].hardware}, {_cores(rows[0][1].cores)}",
        caption="95 %: by what the operations' costs are uncertain." if ranged else "",
        columns=(
            Column(title="", align="left"),
            Column(title="Frames", align="left"),
            Column(title="Cycles", form=_cycles),
            Column(title="DRAM", unit="lines", form=".3g"),
            Column(title="Per core", unit="Mpps", form=_mega),
            *([Column(title="95 %", unit="Mpps", align="left")] if ranged else []),
            Column(title="Machine", unit="Mpps", form=_mega),
            Column(title="Limited by", align="left"),
        ),
        rows=tuple(
            (
                name,
                found.frames.name,
                found.packet_cycles,
                found.dram_accesses,
                found.core_pps,
                *([f"{_mega(found.range_pps[0])} to {_mega(found.range_pps[1])}"] if ranged else []),
                found.pps,
                found.bottleneck.resource,
            )
            for name, found in rows
        ),
    )


def limits_table(found: Estimate) -> Table:
    """Return what limits the machine, the tightest first."""
    return Table(
        name="limits",
        title=f"Limits, {found.frames.name}",
        caption="",
        columns=(
            Column(title="Resource", align="left"),
            Column(title="At most", unit="Mpps", form=_mega),
            Column(title="Because", align="left"),
        ),
        rows=tuple((one.resource, one.pps, one.reason) for one in found.limits),
        strong=frozenset({0}),
    )


def _level_sum(steps: Sequence[StepEstimate], level: str) -> float:
    return sum(lines for one in steps for name, lines in one.lines_by_level.items() if name == level)


def _parameters(step: StepEstimate) -> str:
    """Write the parameters that a step gives; those that are as always are left out."""
    from routecast.function.operations import OPERATIONS

    usual = {name: one.default for name, one in OPERATIONS[step.operation].parameters.items()}
    return ", ".join(f"{name} {_number(value)}" for name, value in step.parameters.items() if value != usual[name])


def _number(value: float) -> str:
    """Write a size so that 2 M entries fit into a column."""
    for step, prefix in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if value >= 2 * step and value % step == 0.0:
            return f"{value / step:g} {prefix}"
    for size, prefix in ((1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if prefix == 'k' else size):.4g} {prefix}"
    return f"{value:.4g}"


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _cycles(value: float) -> str:
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def _mega(rate_pps: float) -> str:
    return f"{rate_pps / 1e6:.2f}"


def _whole_percent(ratio: float) -> str:
    return f"{100.0 * ratio:.1f}"
