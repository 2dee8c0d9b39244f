"""Run a real network function on this host, or count its instructions, beside the estimate of the same case."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from routecast.errors import EnvironmentProblem, ModelProblem, Problem
from routecast.evaluate.trial import Trial
from routecast.function.case import Case
from routecast.function.catalogue import FUNCTIONS
from routecast.function.estimate import Estimate, operations_without_cost
from routecast.hardware.model import Hardware, MeasuredFunction
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value
from routecast.testbed._in_memory import InMemory
from routecast.testbed._instruction_counts import PacketCounts, count_instructions

__all__ = ["FunctionCounts", "FunctionRun", "count_function", "run_function"]

_DURATION_S = 1.0
_ANY_RATE_PPS = 1e6
"""A saturated run has no rate; an offered load must have one."""
_QUARTILES_SD = 1.349
"""From the lower to the upper quartile of a normal law, in standard deviations."""


@value
class FunctionRun:
    """One run of a function in memory, with the estimate beside it."""

    direction: str
    frames: FrameMix
    estimate: Estimate | None = field("None where the hardware has no cost of one of the operations")
    without_cost: tuple[str, ...] = field("Operations that the hardware has no cost of")
    alone_s: float = field("What the lines of tables take one after the other, per packet")
    trial: Trial
    outcome: Mapping[str, Any] = field("What the core reports of the run")

    @property
    def estimated_pps(self) -> float:
        """Estimated limit of cores and memory; NaN without an estimate. A run in memory has no card, link or bus."""
        return min(map(self.estimate.limit_pps, ("core", "memory"))) if self.estimate else math.nan

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

    def measured(self, case: Case) -> MeasuredFunction:
        """Return the run of a case as a hardware file records it."""
        kind, flows, pass_s = case.popularity.kind, case.popularity.flows, self.outcome["pass_s"]
        law = kind if kind == "uniform" else f"zipf {case.popularity.exponent:g}"
        return MeasuredFunction(
            function=case.function.name,
            direction=self.direction,
            frame_bytes=self.frames.sequence_bytes[0],
            traffic=law if flows is None else f"{flows} {law}",
            # In the clock that the file counts by, so that seconds agree.
            cycles=1e-9 * self.run_ns * case.hardware.cpu.frequency_hz,
            tables=dict(case.tables),
            spread_ratio=(pass_s["p75"] - pass_s["p25"]) / (_QUARTILES_SD * pass_s["median"]),
        )

    def to_json(self) -> dict[str, object]:
        """Return plain data; a value that is not known is null."""
        return {
            "direction": self.direction,
            "frames": self.frames.name,
            "frame_bytes": self.frames.mean_bytes,
            "estimated_pps": _or_none(self.estimated_pps),
            "measured_pps": self.trial.forwarded_pps,
            "error_ratio": _or_none(self.error_ratio),
            "run_ns": self.run_ns,
            "hand_loop_ns": _or_none(self.hand_ns),
            "alone_ns": _or_none(1e9 * self.alone_s),
            "estimate": self.estimate.to_json() if self.estimate else None,
            "trial": self.trial.to_json(),
            "run": dict(self.outcome),
        }


def _or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None


@value
class FunctionCounts:
    """Instructions and memory accesses per packet of a direction at one frame size."""

    direction: str
    frames: FrameMix
    counts: PacketCounts

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        frames = {"frames": self.frames.name, "frame_bytes": self.frames.mean_bytes}
        return {"direction": self.direction, **frames, **asdict(self.counts)}


def run_function(case: Case, on_progress: Callable[[float], object]) -> tuple[FunctionRun, ...]:
    """Run the real function for every direction and frame size; ``on_progress`` gets the finished share, 0..1.

    Raises ModelProblem: the function does not run for real, or not like that; EnvironmentProblem: the host lacks the
    memory or the cores.
    """
    return tuple(_run(case, *part) for part in _parts(case, on_progress))


def count_function(case: Case, on_progress: Callable[[float], object]) -> tuple[FunctionCounts, ...]:
    """Count instructions and memory accesses per packet for every direction and frame size.

    Raises EnvironmentProblem: valgrind is missing: the message names its package; ModelProblem: the function does not
    run for real, or not like that.
    """
    counted = []
    for direction, frames, on_part in _parts(case, on_progress):
        load = _load(case, direction, frames)
        counts = count_instructions(_evaluator(case, direction), load, progress=on_part)
        counted.append(FunctionCounts(direction=direction, frames=frames, counts=counts))
    return tuple(counted)


_Part = tuple[str, FrameMix, Callable[[float], object]]


def _parts(case: Case, on_progress: Callable[[float], object]) -> Iterator[_Part]:
    """Yield each direction and frame size with a receiver of its own finished share."""
    pairs = [(direction, frames) for direction in case.directions for frames in case.frames]
    for number, (direction, frames) in enumerate(pairs):
        yield direction, frames, partial(_report_part, on_progress, number, len(pairs))


def _report_part(on_progress: Callable[[float], object], done: int, parts: int, share: float) -> None:
    on_progress((done + share) / parts)


def _run(case: Case, direction: str, frames: FrameMix, on_progress: Callable[[float], object]) -> FunctionRun:
    evaluator = replace(_evaluator(case, direction), progress=on_progress)
    load, duration_s = _load(case, direction, frames), case.duration_s or _DURATION_S
    only = tuple(way for way in case.function.directions if way.name == direction)
    without_cost = operations_without_cost(replace(case.function, directions=only), case.hardware, assumed=False)
    estimate = None if without_cost else case.estimate(direction, frames)
    outcome = evaluator.run(load, duration_s, hand_loop=case.rate is None)
    return FunctionRun(
        direction=direction,
        frames=frames,
        estimate=estimate,
        without_cost=without_cost,
        alone_s=_alone_s(estimate, case.hardware) if estimate else math.nan,
        trial=evaluator.trial_of(load, duration_s, outcome),
        outcome=outcome,
    )


def _evaluator(case: Case, direction: str) -> InMemory:
    """Return what runs a direction of the function on the first processors of this process."""
    function = case.function
    if not function.runs_as:
        real = ", ".join(function.name for function in FUNCTIONS.all() if function.runs_as)
        what = f"is an estimate only; those that run for real are {real}"
        raise ModelProblem(f"function {function.name!r}", [Problem("runs_as", what)])
    processors = sorted(os.sched_getaffinity(0))
    if case.cores > len(processors):
        allowed = f"this process may use {len(processors)}"
        raise EnvironmentProblem(f"--cores is {case.cores}, and {allowed}: give fewer cores")
    return InMemory(
        function=function.runs_as,
        direction=direction,
        tables={table.name: case.tables.get(table.name, table.entries) for table in function.tables},
        popularity=case.popularity,
        cores=tuple(processors[: case.cores]),
        saturate=case.rate is None,
        seed=case.seed,
    )


def _load(case: Case, direction: str, frames: FrameMix) -> OfferedLoad:
    """Return the offered load; frames too short for the direction's headers get the length that these need."""
    least = next(way.smallest_frame_bytes for way in case.function.directions if way.name == direction)
    frames = replace(frames, sequence_bytes=tuple(max(size, least) for size in frames.sequence_bytes))
    return OfferedLoad(rate_pps=case.rate.pps(frames) if case.rate else _ANY_RATE_PPS, frames=frames)


def _alone_s(estimate: Estimate, hardware: Hardware) -> float:
    """Return the seconds that the lines of tables take one after the other: the bound that memory's latency sets."""
    hz = hardware.cpu.frequency_hz
    cost_s = {level.name: level.line_cycles("dependent", hz) / hz for level in hardware.levels}
    return math.fsum(
        step.share * lines * cost_s[level]
        for step in estimate.operations
        for level, lines in step.table_lines_by_level.items()
    )
