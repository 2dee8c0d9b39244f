"""Where a study of functions is done: a host that can be probed, and functions that run on it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from routecast.hardware.model import Hardware
from routecast.load.popularity import Popularity
from routecast.study.functions.document import FunctionStudy
from routecast.study.functions.points import Point

__all__ = ["FunctionBench", "FunctionRun", "LocalBench"]

Tell = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRun:
    """One run of a function: core cycles per packet, the clock, and the hand loop beside it (NaN: not run)."""

    cycles: float
    core_hz: float
    hand_frames_s: float = math.nan
    hand_lookup_s: float = math.nan


class FunctionBench(Protocol):
    """Whoever knows a host and runs functions on it."""

    def hardware(self, tell: Tell) -> Hardware:
        """Return the host's costs; ``tell`` hears the finished share."""
        ...

    def run(self, point: Point, seed: int, *, hand_loop: bool) -> FunctionRun:
        """Run the function of a point once; with the hand loop beside it where there is one."""
        ...


class LocalBench:
    """The machine that we are on."""

    def __init__(self, study: FunctionStudy) -> None:
        self._study = study

    def hardware(self, tell: Tell) -> Hardware:
        """Probe the host, or read the file that the study names."""
        from routecast.hardware.catalogue import read_hardware

        host = self._study.host
        if host.hardware != "probe":
            return read_hardware(host.hardware)
        from routecast.hardware.probe import probe

        return probe(quick=host.quick, cpu=self._study.run.core, progress=tell).hardware

    def run(self, point: Point, seed: int, *, hand_loop: bool) -> FunctionRun:
        """Run on the study's core."""
        from routecast import _core

        popularity = Popularity.parse(point.traffic)
        request: dict[str, Any] = {
            "function": point.function,
            "direction": point.direction or None,
            "frame_bytes": point.frame_bytes,
            "tables": dict(point.tables),
            "flows": popularity.flows,
            "popularity": popularity.kind,
            "exponent": popularity.exponent,
            "cores": [self._study.run.core],
            "duration_s": self._study.run.duration,
            "seed": seed,
            "hand_loop": hand_loop,
        }
        found = json.loads(_core.run_function(json.dumps(request), None))
        hand = found.get("hand_loop") or {}
        return FunctionRun(
            cycles=float(found["cycles_per_packet"]),
            core_hz=float(found["core_hz"]),
            hand_frames_s=_seconds(hand.get("ns_per_packet")),
            hand_lookup_s=_seconds(hand.get("lookup_ns")),
        )


def _seconds(nanoseconds: float | None) -> float:
    return math.nan if nanoseconds is None else nanoseconds * 1e-9
