"""A real network function over frames in memory on this host: its trials and its counted instructions.

There is no wire and no network card, only the function itself::

    ring of frames ─► batches of 32 ─► the function's stages ─► forwarded, or dropped with a reason
         ▲                │
         └── refilled ────┘   between two passes over the ring; the clock stands still

In a paced run (the default), frames arrive in that clock's time at the load's rate and wait in a queue in front of the
function; a frame that finds the queue full is lost. In a saturated run, the function takes the next batch at once, and
its rate is the capacity of its cores.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

from routecast.errors import EnvironmentProblem, ModelProblem, Problem
from routecast.evaluate.plain import plain
from routecast.evaluate.trial import Bottleneck, Delay, Resource, Trial
from routecast.function.case import Case
from routecast.function.catalogue import FUNCTIONS
from routecast.function.estimate import Estimate, operations_without_cost
from routecast.hardware.model import Hardware, MeasuredFunction
from routecast.hardware.probe_facts import host_facts, is_of_this_machine, native
from routecast.lab.testbed.cachegrind import CACHES, added_events
from routecast.load.frames import FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad
from routecast.load.popularity import Popularity
from routecast.progress import ShareProgress
from routecast.quantity.schema import field, value

__all__ = ["FunctionCounts", "FunctionRun", "count_function", "run_function"]

_FULL_RATIO = 0.95
_IDLE_RATIO = 0.5
_SHORTFALL_RATIO = 0.01
_SCATTER_RATIO = 0.25
_QUEUE = "queue"
"""Reason of a drop: the frame found no room in front of the function."""

_QUANTILES = ("min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s")

FEW_PACKETS = 1024
MANY_PACKETS = 4096
_CHILD_PROGRAM = "import sys\nfrom routecast.lab import _lab\n_lab.run_function(sys.argv[1])\n"
_DURATION_S = 1.0
_ANY_RATE_PPS = 1e6
"""Rate of the offered load of a saturated run, which does not depend on it."""

_QUARTILE_RANGE_SD = 1.349
"""Distance of the quartiles of a normal distribution, in standard deviations."""


@value
class InMemory:
    """The evaluator of a function of ``crates/probe`` on this host."""

    function: str = field("Name in ``crates/probe``: ``NetworkFunction.runs_as``")
    direction: str = "forward"
    tables: Mapping[str, int] = field("Entries by table; the others have the function's own size", default_factory=dict)
    popularity: Popularity | None = field(
        "Distribution of the entries that frames look up; None: each flow of the load has its own entry", default=None
    )
    cores: tuple[int, ...] = field("Processors, each with a ring and tables of its own", default=(0,))
    saturate: bool = field("Trials measure the capacity, independent of the load's rate", default=False)
    pages: Literal["huge", "normal"] = field("Memory pages of tables and frames", default="huge")
    queue_frames: int = field("Length of the queue in front of each core", default=4096)
    frames_in_flight: int = field("Buffers of each ring", default=4096)
    seed: int = 1
    on_progress: ShareProgress | None = field("Receives the finished share of each trial, 0..1", default=None)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Run the function at ``load`` for ``duration_s`` seconds of its clock.

        Raises ModelProblem: the load has steps or uneven arrivals, or the function cannot take its frames;
        EnvironmentProblem: memory or processors are missing, or the run does not conserve frames (S12).
        """
        return self.trial_of(load, duration_s, self.run(load, duration_s))

    def run(
        self, load: OfferedLoad, duration_s: float, *, packets: int | None = None, hand_loop: bool = False
    ) -> dict[str, Any]:
        """Run the function and return the core's outcome as plain data.

        ``packets`` ends the run after exactly this number of frames; ``hand_loop`` also times the best hand-written
        loop over the function's lookup.
        """
        self._check(load)
        return native("run_function", self.request(load, duration_s, packets, hand_loop), self.on_progress)

    def trial_of(self, load: OfferedLoad, duration_s: float, outcome: Mapping[str, Any]) -> Trial:
        """Return the trial of an outcome of :meth:`run`; a saturated run offers what the function takes in.

        Raises EnvironmentProblem: the outcome does not conserve frames (S12).
        """
        if not self.saturate:
            offered_pps, forwarded_pps = outcome["offered"] / duration_s, outcome["forwarded"] / duration_s
            return self._trial(load, duration_s, load.rate_pps, offered_pps, forwarded_pps, outcome)
        pps = float(outcome["pps"])
        share = outcome["forwarded"] / outcome["offered"] if outcome["offered"] else math.nan
        measured_s = outcome["offered"] / pps if pps > 0.0 else math.nan
        return self._trial(load, measured_s, pps, pps, pps * share, outcome)

    def request(
        self, load: OfferedLoad, duration_s: float, packets: int | None = None, hand_loop: bool = False
    ) -> dict[str, object]:
        """Return the request to the core as plain data."""
        flows = self.popularity or Popularity(flows=len(load.flows.flows))
        shares = load.frames.share_by_bytes
        count = len(load.frames.sequence_bytes)
        mix = [[size, round(share * count)] for size, share in shares.items()]
        return {
            **plain(
                {
                    "function": self.function,
                    "direction": self.direction,
                    "tables": self.tables,
                    "cores": self.cores,
                    "frames_in_flight": self.frames_in_flight,
                    "pages": self.pages,
                    "seed": self.seed,
                    "queue_frames": self.queue_frames,
                }
            ),
            "frame_bytes": mix[0][0],
            "mix": None if load.frames.is_fixed else mix,
            "flows": flows.flows,
            "popularity": flows.kind,
            "exponent": flows.exponent,
            "duration_s": duration_s,
            "offered_pps": None if self.saturate or packets else load.rate_pps,
            "packets": packets,
            "hand_loop": hand_loop,
        }

    def facts(self) -> Mapping[str, object]:
        """Return the facts of function and host for a report."""
        return {
            "evaluator": "measure",
            "device": {
                "name": f"{self.function} in memory",
                **plain({"direction": self.direction, "tables": self.tables}),
                "popularity": "the load's flows" if self.popularity is None else str(self.popularity),
                **plain(
                    {
                        "cores": self.cores,
                        "pages": self.pages,
                        "queue_frames": self.queue_frames,
                        "frames_in_flight": self.frames_in_flight,
                    }
                ),
            },
            "host": dict(host_facts(self.cores[0] if self.cores else 0)),
            "tester": {"name": "none: frames are made in memory"},
        }

    def _check(self, load: OfferedLoad) -> None:
        problems = []
        if load.steps:
            problems.append(Problem("steps", "a function in memory is run at one rate: leave the steps out"))
        if load.arrivals.kind != "cbr" and not self.saturate:
            message = f"got {load.arrivals.kind}: frames in memory arrive evenly (cbr); the simulator has others"
            problems.append(Problem("arrivals", message))
        if problems:
            raise ModelProblem("offered load", problems)
        if not self.cores:
            raise ModelProblem(f"function {self.function!r} in memory", [Problem("cores", "name at least one")])

    def _trial(
        self,
        load: OfferedLoad,
        duration_s: float,
        intended_pps: float,
        offered_pps: float,
        forwarded_pps: float,
        outcome: Mapping[str, Any],
    ) -> Trial:
        offered, forwarded = int(outcome["offered"]), int(outcome["forwarded"])
        drops = {str(reason): int(count) for reason, count in outcome["dropped"].items()}
        dropped = sum(drops.values())
        in_flight = offered - forwarded - dropped
        room_frames = self.queue_frames * len(self.cores)
        if not 0 <= in_flight <= room_frames:
            message = f"{offered} frames in, {forwarded} out, {dropped} dropped, room for {room_frames}"
            raise EnvironmentProblem(f"function {self.function!r} in memory does not conserve frames: {message}")
        if not all(core["cycles_per_packet"] > 0.0 for core in outcome["per_core"]):
            message = (
                f"got {duration_s:g} s at {intended_pps:g} frames/s: a core got no frame; run longer or offer more"
            )
            raise ModelProblem(f"function {self.function!r} in memory", [Problem("duration", message)])
        resources = self._resources(forwarded_pps, outcome)
        busy_ratio = resources[0].utilisation_ratio
        is_starved = bool(drops.get(_QUEUE)) and busy_ratio < _IDLE_RATIO
        is_full = busy_ratio > _FULL_RATIO or (bool(drops.get(_QUEUE)) and not is_starved)
        core_s = _packet_mean_s(outcome)
        l2_bps = 8.0 * load.frames.mean_bytes * forwarded_pps
        invalid = []
        if offered_pps < (1.0 - _SHORTFALL_RATIO) * intended_pps:
            invalid.append(f"{offered_pps:,.0f} of {intended_pps:,.0f} frames/s were offered")
        if is_starved:
            message = f"frames were lost while the fullest core worked {busy_ratio:.0%} of the time"
            invalid.append(f"{message}: something else ran on it")
        return Trial(
            evaluator="measure",
            duration_s=duration_s,
            measured_s=duration_s,
            intended_pps=intended_pps,
            offered_pps=offered_pps,
            forwarded_pps=forwarded_pps,
            loss_ratio=dropped / offered if offered else math.nan,
            l1_bps=l2_bps + 8.0 * WIRE_OVERHEAD_BYTES * forwarded_pps,
            l2_bps=l2_bps,
            bottleneck=Bottleneck(
                name=resources[0].name if is_full else "load",
                kind="pool" if is_full else "load",
                reason=f"takes {1e9 * core_s:,.1f} ns per frame"
                if is_full
                else f"leaves the cores room: a frame takes {1e9 * core_s:,.1f} ns of one",
            ),
            arrivals="" if self.saturate else load.arrivals.text,
            resources=resources,
            offered_frames=offered,
            forwarded_frames=forwarded,
            dropped_frames=dropped,
            in_flight_frames=in_flight,
            drops_pps={reason: count / duration_s for reason, count in drops.items() if count},
            latency=None if self.saturate else _latency(outcome.get("latency")),
            invalid=tuple(invalid),
            notes=self._notes(outcome),
        )

    def _resources(self, forwarded_pps: float, outcome: Mapping[str, Any]) -> tuple[Resource, ...]:
        """Return the cores by falling utilisation; each takes an equal part of the frames."""
        capacities_pps = [1.0 / _packet_s(core) for core in outcome["per_core"]]
        resources = (
            Resource(
                name=f"core {core}",
                kind="pool",
                utilisation_ratio=1.0 if self.saturate else min(forwarded_pps / len(capacities_pps) / pps, 1.0),
                capacity_pps=pps * len(capacities_pps),
                margin_ratio=pps / min(capacities_pps) - 1.0,
            )
            for core, pps in zip(self.cores, capacities_pps, strict=True)
        )
        return tuple(sorted(resources, key=lambda resource: resource.margin_ratio))

    def _notes(self, outcome: Mapping[str, Any]) -> tuple[str, ...]:
        notes = ["frames are made in memory: no wire, no network card, no interrupts"]
        times = outcome["pass_s"]
        if times["median"] and (times["p75"] - times["p25"]) > _SCATTER_RATIO * times["median"]:
            scatter_ratio = (times["p75"] - times["p25"]) / times["median"]
            notes.append(f"noisy: the middle half of the passes scatters over {scatter_ratio:.0%} of their median")
        notes.extend(str(note) for note in outcome.get("notes", ()))
        return tuple(dict.fromkeys(notes))


def _packet_s(core: Mapping[str, Any]) -> float:
    """Return the seconds of work of a core per frame."""
    return float(core["cycles_per_packet"]) / float(core["core_hz"])


def _packet_mean_s(outcome: Mapping[str, Any]) -> float:
    return math.fsum(map(_packet_s, outcome["per_core"])) / len(outcome["per_core"])


def _latency(latency: Mapping[str, Any] | None) -> Delay | None:
    if not latency or not latency.get("count", 1):
        return None
    return Delay(
        mean_s=float(latency["mean_s"]),
        **{name: float(latency[name]) for name in _QUANTILES if latency.get(name) is not None},
        method="HDR histogram, from the frame's turn to arrive to the end of its batch",
        hdr_base64=str(latency.get("hdr_base64") or ""),
    )


@value
class PacketCounts:
    """Means per packet, as valgrind's cachegrind counts them."""

    instructions: float = field("Executed instructions")
    reads: float = field("Executed instructions that read memory")
    writes: float = field("Executed instructions that write memory")
    packets: int = field("Packets of the mean")


def count_instructions(
    function: InMemory, load: OfferedLoad, *, on_progress: ShareProgress | None = None
) -> PacketCounts:
    """Count instructions and accesses per packet of ``load``, by two runs under cachegrind.

    PacketBench (Ramaswamy & Wolf 2003) and CommBench (Wolf & Franklin 2000) describe network functions by these counts.
    The count of a process includes the interpreter, the tables and the filling of rings; two runs that differ only in
    the number of packets differ by the packets alone::

        per packet = (count(many) − count(few)) / (many − few)

    An instruction that reads and writes back one address counts as one read (cachegrind's manual, "Dr").

    Raises EnvironmentProblem: valgrind is missing, or it fails.
    """
    baseline, extended = (
        [sys.executable, "-c", _CHILD_PROGRAM, json.dumps(function.request(load, 1.0, packets), allow_nan=False)]
        for packets in (FEW_PACKETS, MANY_PACKETS)
    )
    added = added_events(baseline, extended, "--cache-sim=yes", *CACHES, on_progress=on_progress)
    packets = MANY_PACKETS - FEW_PACKETS
    instructions, reads, writes = (added[event] / packets for event in ("Ir", "Dr", "Dw"))
    return PacketCounts(instructions=instructions, reads=reads, writes=writes, packets=packets)


@value
class FunctionRun:
    """One run of a function in memory, with the estimate beside it."""

    direction: str
    frames: FrameMix
    estimate: Estimate | None = field("Estimate; None if an operation has no cost in the hardware")
    without_cost: tuple[str, ...] = field("Operations without a cost in the hardware")
    alone_s: float = field("Time per packet if the lines of tables are fetched one after the other")
    trial: Trial
    outcome: Mapping[str, Any] = field("The core's outcome of the run")
    is_of_this_machine: bool = field("Whether the hardware of the estimate is that of this machine", default=True)

    @property
    def estimated_pps(self) -> float:
        """Estimated limit of cores and memory; NaN without an estimate. A run in memory has no card, link or bus."""
        return min(map(self.estimate.limit_pps, ("core", "memory"))) if self.estimate else math.nan

    @property
    def error_ratio(self) -> float:
        """The difference if the estimate is of this machine, else NaN: two machines differ without an error."""
        return self.difference_ratio if self.is_of_this_machine else math.nan

    @property
    def difference_ratio(self) -> float:
        """(estimated − measured) / measured rate; NaN for a paced run, whose rate is the load's."""
        if self.outcome["latency"] is not None or not self.trial.forwarded_pps:
            return math.nan
        return self.estimated_pps / self.trial.forwarded_pps - 1.0

    @property
    def run_ns(self) -> float:
        """Time of a core for a frame, as measured."""
        return 1e9 * _packet_mean_s(self.outcome)

    @property
    def hand_ns(self) -> float:
        """Time of the same work as a hand-written loop; NaN if the loop was not run."""
        hand = self.outcome.get("hand_loop")
        return float(hand["ns_per_packet"]) if hand else math.nan

    def measured(self, case: Case) -> MeasuredFunction:
        """Return the run as the hardware file of the case records it."""
        kind, flows, pass_s = case.popularity.kind, case.popularity.flows, self.outcome["pass_s"]
        law = kind if kind == "uniform" else f"zipf {case.popularity.exponent:g}"
        return MeasuredFunction(
            function=case.function.name,
            direction=self.direction,
            frame_bytes=self.frames.sequence_bytes[0],
            traffic=law if flows is None else f"{flows} {law}",
            # In the file's clock, so that seconds agree.
            cycles=1e-9 * self.run_ns * case.hardware.cpu.frequency_hz,
            tables=dict(case.tables),
            spread_ratio=(pass_s["p75"] - pass_s["p25"]) / (_QUARTILE_RANGE_SD * pass_s["median"]),
        )

    def to_json(self) -> dict[str, object]:
        """Return plain data; unknown values are null."""
        return {
            **plain(
                {
                    "direction": self.direction,
                    "frames": self.frames.name,
                    "frame_bytes": self.frames.mean_bytes,
                    "estimated_pps": self.estimated_pps,
                }
            ),
            **plain(
                {
                    "measured_pps": self.trial.forwarded_pps,
                    "error_ratio": self.error_ratio,
                    "difference_ratio": self.difference_ratio,
                }
            ),
            **plain(
                {"run_ns": self.run_ns, "hand_loop_ns": self.hand_ns, "is_of_this_machine": self.is_of_this_machine}
            ),
            "alone_ns": plain(1e9 * self.alone_s),
            "estimate": self.estimate.to_json() if self.estimate else None,
            "trial": self.trial.to_json(),
            "run": dict(self.outcome),
        }


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


def run_function(case: Case, on_progress: ShareProgress) -> tuple[FunctionRun, ...]:
    """Run the real function for every direction and frame size; ``on_progress`` gets the finished share, 0..1.

    Raises ModelProblem: the function does not run for real, or not with this case; EnvironmentProblem: the host lacks
    memory or cores.
    """
    return tuple(_run(case, *part) for part in _parts(case, on_progress))


def count_function(case: Case, on_progress: ShareProgress) -> tuple[FunctionCounts, ...]:
    """Count instructions and memory accesses per packet for every direction and frame size.

    Raises EnvironmentProblem: valgrind is missing; ModelProblem: the function does not run for real, or not with this
    case.
    """
    results = []
    for direction, frames, on_part in _parts(case, on_progress):
        load = _load(case, direction, frames)
        counts = count_instructions(_evaluator(case, direction), load, on_progress=on_part)
        results.append(FunctionCounts(direction=direction, frames=frames, counts=counts))
    return tuple(results)


def _parts(case: Case, on_progress: ShareProgress) -> Iterator[tuple[str, FrameMix, Callable[[float], object]]]:
    """Yield each direction and frame size with the progress callback of its part."""
    pairs = [(direction, frames) for direction in case.directions for frames in case.frames]

    def report(done: int, share: float) -> object:
        return on_progress((done + share) / len(pairs))

    for number, (direction, frames) in enumerate(pairs):
        yield direction, frames, partial(report, number)


def _run(case: Case, direction: str, frames: FrameMix, on_progress: ShareProgress) -> FunctionRun:
    evaluator = replace(_evaluator(case, direction), on_progress=on_progress)
    load, duration_s = _load(case, direction, frames), case.duration_s or _DURATION_S
    only = tuple(entry for entry in case.function.directions if entry.name == direction)
    without_cost = operations_without_cost(replace(case.function, directions=only), case.hardware, assumed=False)
    estimate = None if without_cost else case.estimate(direction, frames)
    outcome = evaluator.run(load, duration_s, hand_loop=case.rate is None)
    return FunctionRun(
        direction=direction,
        frames=frames,
        estimate=estimate,
        without_cost=without_cost,
        alone_s=_unoverlapped_s(estimate, case.hardware) if estimate else math.nan,
        trial=evaluator.trial_of(load, duration_s, outcome),
        outcome=outcome,
        is_of_this_machine=is_of_this_machine(case.hardware),
    )


def _evaluator(case: Case, direction: str) -> InMemory:
    """Return the evaluator of a direction on the first processors of this process."""
    function = case.function
    if not function.runs_as:
        runnable = ", ".join(function.name for function in FUNCTIONS.all() if function.runs_as)
        message = f"is an estimate only; those that run for real are {runnable}"
        raise ModelProblem(f"function {function.name!r}", [Problem("runs_as", message)])
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
    """Return the offered load; frames too short for the direction's headers are lengthened."""
    min_bytes = next(entry.smallest_frame_bytes for entry in case.function.directions if entry.name == direction)
    frames = replace(frames, sequence_bytes=tuple(max(size, min_bytes) for size in frames.sequence_bytes))
    return OfferedLoad(rate_pps=case.rate.pps(frames) if case.rate else _ANY_RATE_PPS, frames=frames)


def _unoverlapped_s(estimate: Estimate, hardware: Hardware) -> float:
    """Return the seconds per packet if the lines of the tables are fetched one after the other."""
    hz = hardware.cpu.frequency_hz
    cost_s = {level.name: level.line_cycles("dependent", hz) / hz for level in hardware.levels}
    return math.fsum(
        step.share * lines * cost_s[level]
        for step in estimate.operations
        for level, lines in step.table_lines_by_level.items()
    )
