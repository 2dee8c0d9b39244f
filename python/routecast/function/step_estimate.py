"""What one step of a function costs: its cycles, and the waiting for its lines where they are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from routecast.function.places import Shares
from routecast.function.work import StepWork, Touch
from routecast.hardware.model import Hardware, LevelName
from routecast.hardware.waiting import batch_waiting_cycles

__all__ = ["StepEstimate", "step_estimate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEstimate:
    """What one step costs, per packet of its direction.

    Parameters
    ----------
    direction, operation, table, why : str
    share : float
        Of all packets, those of this direction.
    times : float
    parameters : mapping of str to float
        Averages over the frame sizes.
    cycles : float
        Of the operation, data in L1.
    lines_by_level, table_lines_by_level : mapping of level to float
        Lines of memory found in each level: of frames and tables, and of tables alone.
    stall_cycles_by_level : mapping of level to float
        Cycles that the core waits for them; all 0 where the cycles hold them already (``stalls = "separate"``).
    table_stall_cycles : float
        Those for lines of tables.
    residual_ratio : float
        Of the operation's fit on this host; NaN where it was not fitted.
    """

    direction: str
    operation: str
    table: str
    why: str
    share: float
    times: float
    parameters: Mapping[str, float]
    cycles: float
    lines_by_level: Mapping[LevelName, float]
    table_lines_by_level: Mapping[LevelName, float]
    stall_cycles_by_level: Mapping[LevelName, float]
    table_stall_cycles: float
    residual_ratio: float

    @property
    def stall_cycles(self) -> float:
        """Cycles that the core waits for memory."""
        return sum(self.stall_cycles_by_level.values())

    @property
    def dram_accesses(self) -> float:
        """Lines fetched from DRAM."""
        return self.lines_by_level.get("DRAM", 0.0)


def step_estimate(
    share: float, work: StepWork, shares: Shares, hardware: Hardware, function: str, frequency_hz: float
) -> StepEstimate:
    """Return what a step costs per packet of its direction, whose ``share`` of all packets is told."""
    lines: dict[LevelName, float] = {}
    table_lines: dict[LevelName, float] = {}
    stalls: dict[LevelName, float] = {}
    table_stalls = 0.0
    learnt = hardware.refinement
    cycles_factor, stalls_factor = learnt.functions.get(f"{function}/{work.direction.name}", (1.0, 1.0))
    for touch in work.touches:
        places: Mapping[LevelName, float] = {"DRAM": 1.0} if touch.remote else shares[touch.stream]
        waiting = _waiting(touch, places, hardware, frequency_hz)
        for level in hardware.levels:
            count = touch.lines * places.get(level.name, 0.0)
            if count == 0.0:
                continue
            lines[level.name] = lines.get(level.name, 0.0) + count
            if touch.kind == "table":
                table_lines[level.name] = table_lines.get(level.name, 0.0) + count
            if hardware.stalls == "separate":
                continue
            waited = waiting[level.name] * learnt.levels.get(level.name, 1.0) * stalls_factor
            stalls[level.name] = stalls.get(level.name, 0.0) + waited
            table_stalls += waited if touch.kind == "table" else 0.0
    return StepEstimate(
        direction=work.direction.name,
        operation=work.step.operation,
        table=work.step.table,
        why=work.step.why,
        share=share,
        times=work.step.times,
        parameters=work.parameters,
        cycles=work.cycles * cycles_factor,
        lines_by_level=lines,
        table_lines_by_level=table_lines,
        stall_cycles_by_level=stalls,
        table_stall_cycles=table_stalls,
        residual_ratio=work.cost.residual_ratio,
    )


def _waiting(
    touch: Touch, places: Mapping[LevelName, float], hardware: Hardware, frequency_hz: float
) -> Mapping[LevelName, float]:
    """Return the cycles that a packet waits for the lines of a touch, by level."""
    if touch.pattern == "batched":
        return batch_waiting_cycles(
            hardware.levels,
            places,
            lines=touch.lines,
            batch_frames=hardware.call.batch_frames,
            frequency_hz=frequency_hz,
        )
    return {
        level.name: touch.lines * places.get(level.name, 0.0) * level.line_cycles(touch.pattern, frequency_hz)
        for level in hardware.levels
    }
