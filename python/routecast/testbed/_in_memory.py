"""A real network function over frames in memory, as an evaluator: no wire, no network card, only the function itself.

::

    ring of frames ─► batches of 32 ─► the function's stages ─► forwarded, or dropped with a reason
         ▲                │
         └── refilled ────┘   between two passes over the ring; the clock stands still

Paced (the default), frames arrive in that clock's time at the load's rate and wait in a queue in front of the
function; a frame that finds it full is lost. Saturated, the function takes the next batch at once, and its rate is the
capacity of its cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from routecast.errors import EnvironmentProblem, ModelProblem, Problem
from routecast.evaluate.trial import Bottleneck, Delay, Resource, Trial
from routecast.hardware.probe_facts import host_facts, native
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad
from routecast.load.popularity import Popularity
from routecast.quantity.schema import field, value

_FULL_RATIO = 0.95
_IDLE_RATIO = 0.5
_SHORT_RATIO = 0.01
_SCATTER_RATIO = 0.25
_QUEUE = "queue"
"""Reason of a drop: the frame found no room in front of the function."""

_QUANTILES = ("min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s")


@value
class InMemory:
    """Trials of a function of ``crates/probe`` on this host."""

    function: str = field("Its name there: ``NetworkFunction.runs_as``")
    direction: str = "forward"
    tables: Mapping[str, int] = field(
        "Entries by table; those that are not named have the function's own size", default_factory=dict
    )
    popularity: Popularity | None = field(
        "Which entry a frame asks for. None: the load's flows, each an entry.", default=None
    )
    cores: tuple[int, ...] = field("Processors, each with a ring and tables of its own", default=(0,))
    saturate: bool = field("Every trial tells the capacity, whatever the load's rate", default=False)
    pages: Literal["huge", "normal"] = field("Pages of tables and frames", default="huge")
    queue_frames: int = field("Places in front of each core", default=4096)
    frames_in_flight: int = field("Buffers of each ring", default=4096)
    seed: int = 1
    progress: Callable[[float], object] | None = field("Told the finished share of each trial, 0..1", default=None)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Run the function at ``load`` for ``duration_s`` seconds of its clock.

        Raises ModelProblem: the load has steps or another arrival process than even arrivals, or the function cannot
        take its frames; EnvironmentProblem: there is not the memory or the processor for it, or the run does not
        conserve frames.
        """
        return self.trial_of(load, duration_s, self.run(load, duration_s))

    def capacity(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Return the trial at saturation: its ``forwarded_pps`` is the function's capacity on its cores."""
        return replace(self, saturate=True).trial(load, duration_s)

    def run(
        self, load: OfferedLoad, duration_s: float, *, packets: int | None = None, hand_loop: bool = False
    ) -> dict[str, Any]:
        """Run the function and return what the core tells, as plain data.

        ``packets``: stop after exactly so many frames: what counts of instructions are made over; ``hand_loop``: time
        also the best loop by hand over the function's lookup.
        """
        self._check(load)
        return native("run_function", self.request(load, duration_s, packets, hand_loop), self.progress)

    def trial_of(self, load: OfferedLoad, duration_s: float, outcome: Mapping[str, Any]) -> Trial:
        """Make the trial of what :meth:`run` told.

        Raises EnvironmentProblem: the frames that came in are not those that went out, were dropped or still wait
        (S12).
        """
        return self._saturated(load, outcome) if self.saturate else self._paced(load, duration_s, outcome)

    def request(
        self, load: OfferedLoad, duration_s: float, packets: int | None = None, hand_loop: bool = False
    ) -> dict[str, object]:
        """Return what the core is asked for, as plain data."""
        flows = self.popularity or Popularity(flows=len(load.flows.flows))
        shares = load.frames.share_by_bytes
        count = len(load.frames.sequence_bytes)
        mix = [[size, round(share * count)] for size, share in shares.items()]
        return {
            "function": self.function,
            "direction": self.direction,
            "frame_bytes": mix[0][0],
            "mix": None if load.frames.is_fixed else mix,
            "tables": dict(self.tables),
            "flows": flows.flows,
            "popularity": flows.kind,
            "exponent": flows.exponent,
            "cores": list(self.cores),
            "duration_s": duration_s,
            "offered_pps": None if self.saturate or packets else load.rate_pps,
            "frames_in_flight": self.frames_in_flight,
            "pages": self.pages,
            "seed": self.seed,
            "packets": packets,
            "queue_frames": self.queue_frames,
            "hand_loop": hand_loop,
        }

    def facts(self) -> Mapping[str, object]:
        """Return what answers: the function and the host."""
        return {
            "evaluator": "measure",
            "device": {
                "name": f"{self.function} in memory",
                "direction": self.direction,
                "tables": dict(self.tables),
                "popularity": "the load's flows" if self.popularity is None else str(self.popularity),
                "cores": list(self.cores),
                "pages": self.pages,
                "queue_frames": self.queue_frames,
                "frames_in_flight": self.frames_in_flight,
            },
            "host": dict(host_facts(self.cores[0] if self.cores else 0)),
            "tester": {"name": "none: frames are made in memory"},
        }

    def _check(self, load: OfferedLoad) -> None:
        problems = []
        if load.steps:
            problems.append(Problem("steps", "a function in memory is run at one rate: leave the steps out"))
        if load.arrivals.kind != "cbr" and not self.saturate:
            what = f"got {load.arrivals.kind}: frames in memory arrive evenly (cbr); the simulator knows others"
            problems.append(Problem("arrivals", what))
        if problems:
            raise ModelProblem("offered load", problems)
        if not self.cores:
            raise ModelProblem(f"function {self.function!r} in memory", [Problem("cores", "name at least one")])

    def _saturated(self, load: OfferedLoad, outcome: Mapping[str, Any]) -> Trial:
        """Return a trial whose offered load is what the function takes in when it never waits."""
        pps = float(outcome["pps"])
        share = outcome["forwarded"] / outcome["offered"] if outcome["offered"] else math.nan
        measured_s = outcome["offered"] / pps if pps > 0.0 else math.nan
        return self._trial(load, measured_s, pps, pps, pps * share, outcome)

    def _paced(self, load: OfferedLoad, duration_s: float, outcome: Mapping[str, Any]) -> Trial:
        offered_pps, forwarded_pps = outcome["offered"] / duration_s, outcome["forwarded"] / duration_s
        return self._trial(load, duration_s, load.rate_pps, offered_pps, forwarded_pps, outcome)

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
        queued = self.queue_frames * len(self.cores)
        if not 0 <= in_flight <= queued:
            what = f"{offered} frames in, {forwarded} out, {dropped} dropped, room for {queued}"
            raise EnvironmentProblem(f"function {self.function!r} in memory does not conserve frames: {what}")
        if not all(core["cycles_per_packet"] > 0.0 for core in outcome["per_core"]):
            what = f"got {duration_s:g} s at {intended_pps:g} frames/s: a core got no frame; run longer or offer more"
            raise ModelProblem(f"function {self.function!r} in memory", [Problem("duration", what)])
        resources = self._resources(forwarded_pps, outcome)
        busy_ratio = resources[0].utilisation_ratio
        is_starved = bool(drops.get(_QUEUE)) and busy_ratio < _IDLE_RATIO
        is_full = busy_ratio > _FULL_RATIO or (bool(drops.get(_QUEUE)) and not is_starved)
        core_s = math.fsum(_packet_s(core) for core in outcome["per_core"]) / len(self.cores)
        l2_bps = 8.0 * load.frames.mean_bytes * forwarded_pps
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
            resources=resources,
            offered_frames=offered,
            forwarded_frames=forwarded,
            dropped_frames=dropped,
            in_flight_frames=in_flight,
            drops_pps={reason: count / duration_s for reason, count in drops.items() if count},
            latency=None if self.saturate else _latency(outcome.get("latency")),
            invalid=(*self._invalid(intended_pps, offered_pps), *_starved(is_starved, busy_ratio)),
            notes=self._notes(outcome),
        )

    def _resources(self, forwarded_pps: float, outcome: Mapping[str, Any]) -> tuple[Resource, ...]:
        """Return the cores, the fullest first; each has its part of the frames."""
        each = [1.0 / _packet_s(core) for core in outcome["per_core"]]
        resources = (
            Resource(
                name=f"core {core}",
                kind="pool",
                utilisation_ratio=1.0 if self.saturate else min(forwarded_pps / len(each) / pps, 1.0),
                capacity_pps=pps * len(each),
                margin_ratio=pps / min(each) - 1.0,
            )
            for core, pps in zip(self.cores, each, strict=True)
        )
        return tuple(sorted(resources, key=lambda resource: resource.margin_ratio))

    def _invalid(self, intended_pps: float, offered_pps: float) -> tuple[str, ...]:
        if offered_pps < (1.0 - _SHORT_RATIO) * intended_pps:
            return (f"{offered_pps:,.0f} of {intended_pps:,.0f} frames/s were offered",)
        return ()

    def _notes(self, outcome: Mapping[str, Any]) -> tuple[str, ...]:
        notes = ["frames are made in memory: no wire, no network card, no interrupts"]
        times = outcome["pass_s"]
        if times["median"] and (times["p75"] - times["p25"]) > _SCATTER_RATIO * times["median"]:
            wide = (times["p75"] - times["p25"]) / times["median"]
            notes.append(f"noisy: the middle half of the passes scatters over {wide:.0%} of their median")
        notes.extend(str(note) for note in outcome.get("notes", ()))
        return tuple(dict.fromkeys(notes))


def _starved(is_starved: bool, busy_ratio: float) -> tuple[str, ...]:
    """Return why loss at idle cores is nothing that the function did."""
    if not is_starved:
        return ()
    return (f"frames were lost while the fullest core worked {busy_ratio:.0%} of the time: something else ran on it",)


def _packet_s(core: Mapping[str, Any]) -> float:
    """Return the seconds that a core works for a frame."""
    return float(core["cycles_per_packet"]) / float(core["core_hz"])


def _latency(latency: Mapping[str, Any] | None) -> Delay | None:
    if not latency or not latency.get("count", 1):
        return None
    return Delay(
        mean_s=float(latency["mean_s"]),
        **{name: float(latency[name]) for name in _QUANTILES if latency.get(name) is not None},
        method="HDR histogram, from the frame's turn to arrive to the end of its batch",
        hdr_base64=str(latency.get("hdr_base64") or ""),
    )
