"""Runs of a network function in memory and their counted instructions, as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from routecast.evaluate.trial import Trial
from routecast.function.estimate import Estimate
from routecast.load.frames import FrameMix
from routecast.quantity.schema import field, value
from routecast.show.tables import Column, Table, scaled, signed_percent
from routecast.testbed.instruction_counts import PacketCounts

__all__ = ["FunctionRun", "counts_table", "runs_table"]


@value
class FunctionRun:
    """One run of a function in memory, with the estimate beside it."""

    direction: str
    frames: FrameMix
    estimate: Estimate | None = field("None where the hardware has no cost of one of the operations")
    estimated_pps: float = field("Of cores and memory: card, link and bus have no part in a run in memory")
    alone_s: float = field("What the lines of tables take one after the other, per packet")
    trial: Trial
    outcome: Mapping[str, Any] = field("What the core told of the run")

    @property
    def error_ratio(self) -> float:
        """(estimated − measured) / measured rate; NaN for a paced run, whose rate is the load's."""
        if self.outcome["latency"] is not None or not self.trial.forwarded_pps:
            return math.nan
        return self.estimated_pps / self.trial.forwarded_pps - 1.0

    @property
    def run_ns(self) -> float:
        """Time of a core for a frame, as measured."""
        cores = self.outcome["per_core"]
        return 1e9 * math.fsum(core["cycles_per_packet"] / core["core_hz"] for core in cores) / len(cores)

    @property
    def hand_ns(self) -> float:
        """Time of the same work as one loop by hand; NaN where none was run."""
        hand = self.outcome.get("hand_loop")
        return float(hand["ns_per_packet"]) if hand else math.nan


def runs_table(title: str, runs: Sequence[FunctionRun], cores: int) -> Table:
    """Return what ran beside what was estimated."""
    return Table.of(
        runs,
        Column.text("Direction", "direction"),
        Column.text("Frames", "frames.name"),
        Column("Estimate", "Mpps", scaled(1e-6, ".2f"), "estimated_pps"),
        Column("Run", "Mpps", scaled(1e-6, ".2f"), "trial.forwarded_pps"),
        Column("Error", "%", signed_percent, "error_ratio"),
        Column("Estimate", "ns", ".1f", lambda one: 1e9 * cores / one.estimated_pps),
        Column("Run", "ns", ".1f", "run_ns"),
        Column("Hand", "ns", ".1f", "hand_ns"),
        Column("Alone", "ns", ".1f", lambda one: 1e9 * one.alone_s),
        name="runs",
        title=title,
        caption="Hand: the same work as one loop by hand. Alone: what the table's lines alone take if each is waited "
        "for before the next is asked for; a function below it has its misses overlap.",
    )


def counts_table(title: str, counted: Sequence[tuple[str, FrameMix, PacketCounts]]) -> Table:
    """Return instructions and memory accesses by direction and frames."""
    return Table.of(
        counted,
        Column.text("Direction", lambda row: row[0]),
        Column.text("Frames", lambda row: row[1].name),
        Column("Instructions", "", ".1f", lambda row: row[2].instructions),
        Column("Reads", "", ".1f", lambda row: row[2].reads),
        Column("Writes", "", ".1f", lambda row: row[2].writes),
        name="counts",
        title=f"{title}: instructions and memory accesses per packet",
        caption="Counted by valgrind's cachegrind over frames in memory, the starting of the run taken off.",
    )
