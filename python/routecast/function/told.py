"""An estimate as plain data: what ``routecast function --json`` prints, and what a planner reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routecast.function.estimate import Estimate
    from routecast.function.step_estimate import StepEstimate

__all__ = ["estimate_json"]


def estimate_json(found: Estimate) -> dict[str, object]:
    """Return an estimate as plain data; units are in the names, infinite and unknown numbers are null."""
    return {
        "format": "routecast function estimate 1",
        "function": found.function,
        "direction": found.direction,
        "hardware": found.hardware,
        "traffic": {
            "frames": found.frames.name,
            "mean_frame_bytes": found.frames.mean_bytes,
            "flows": found.popularity.flows,
            "popularity": str(found.popularity),
            "remote_ratio": found.remote_ratio,
        },
        "tables": {table.name: table.entries for table in found.tables},
        "frequency_hz": found.frequency_hz,
        "packet_cycles": found.packet_cycles,
        "packet_cycles_range": [_number(one) for one in found.cycles_range],
        "operation_cycles": found.cycles,
        "stall_cycles": found.stall_cycles,
        "call_cycles": found.call_cycles,
        "dram_accesses": found.dram_accesses,
        "packet_s": found.packet_s,
        "core_pps": found.core_pps,
        "core_pps_range": [_number(one) for one in found.range_pps],
        "cores": found.cores,
        "machine_pps": found.pps,
        "bottleneck": found.bottleneck.resource,
        "limits": [{"resource": one.resource, "pps": _number(one.pps), "reason": one.reason} for one in found.limits],
        "operations": [_step(one) for one in found.operations],
        "notes": list(found.notes),
    }


def _step(one: StepEstimate) -> dict[str, object]:
    return {
        "direction": one.direction,
        "share": one.share,
        "operation": one.operation,
        "table": one.table,
        "times": one.times,
        "parameters": dict(one.parameters),
        "cycles": one.cycles,
        "stall_cycles": one.stall_cycles,
        "lines_by_level": dict(one.lines_by_level),
        "why": one.why,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
