"""Runs of a network function in memory and their counted instructions, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.function.case import Case
from routecast.function.views import describe_core_count
from routecast.lab.testbed.function_run import FunctionCounts, FunctionRun
from routecast.show.tables import Column, Table, scaled, signed_percent

__all__ = ["counts_table", "runs_table"]


def runs_table(case: Case, runs: Sequence[FunctionRun]) -> Table:
    """Return the runs of a case beside their estimates."""
    is_of_this_machine = all(run.is_of_this_machine for run in runs)
    other = case.hardware.name
    compared = f"estimate and run, {describe_core_count(case.cores)}, {case.popularity}"
    caption = (
        "Hand: the same work as a hand-written loop. Alone: the time to fetch the table's lines one after the other; "
        "the misses of a function that takes less time overlap."
    )
    if not is_of_this_machine:
        compared = f"estimate for {other} and run on this machine, {describe_core_count(case.cores)}, {case.popularity}"
        caption += f" Apart: what lies between two machines, {other} and this one; it is no error of the estimate."
    return Table.of(
        runs,
        Column.text("Direction", lambda row: row.direction),
        Column.text("Frames", lambda row: row.frames.name),
        Column("Estimate", "Mpps", scaled(1e-6, ".2f"), lambda row: row.estimated_pps),
        Column("Run", "Mpps", scaled(1e-6, ".2f"), lambda row: row.trial.forwarded_pps),
        Column("Error" if is_of_this_machine else "Apart", "%", signed_percent, lambda row: row.difference_ratio),
        Column("Estimate", "ns", ".1f", lambda row: 1e9 * case.cores / row.estimated_pps),
        Column("Run", "ns", ".1f", lambda row: row.run_ns),
        Column("Hand", "ns", ".1f", lambda row: row.hand_ns),
        Column("Alone", "ns", ".1f", lambda row: 1e9 * row.alone_s),
        name="runs",
        title=f"{case.function.label}: {compared}",
        caption=caption,
    )


def counts_table(case: Case, counted: Sequence[FunctionCounts]) -> Table:
    """Return instructions and memory accesses of a case by direction and frames."""
    return Table.of(
        counted,
        Column.text("Direction", lambda row: row.direction),
        Column.text("Frames", lambda row: row.frames.name),
        Column("Instructions", "", ".1f", lambda row: row.counts.instructions),
        Column("Reads", "", ".1f", lambda row: row.counts.reads),
        Column("Writes", "", ".1f", lambda row: row.counts.writes),
        name="counts",
        title=f"{case.function.label}: instructions and memory accesses per packet",
        caption="Counted by valgrind's cachegrind over frames in memory, without the start of the run.",
    )
