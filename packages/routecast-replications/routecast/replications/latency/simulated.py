"""Published routers, saved from two rows of latency each and simulated: beside the rows' curve and the measurement."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np

from routecast.calibration import fit
from routecast.calibration.latency import measured_latency
from routecast.calibration.router_file import router_file
from routecast.evaluate.points import Point, PointLatency
from routecast.evaluate.simulate import Simulate
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.replications.latency.tables import PublishedLatency
from routecast.router.files import build_router

__all__ = ["SimulatedMedian", "simulated_medians"]

_GIVEN: Final = (0.1, 1.0)
_NEAR: Final = 0.13
_LOADS: Final = (0.3, 0.7)
_FRAMES: Final = 60_000
_BYTES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedMedian:
    """The median latency of a router at a load, s: simulated, of the curve, and measured."""

    source: str
    router: str
    load_ratio: float
    simulated_s: float
    curve_s: float
    measured_s: float


def simulated_medians(latencies: Sequence[PublishedLatency]) -> Iterator[SimulatedMedian]:
    """Yield the medians at 30 to 70 % of each router whose medians are published near 10 and 100 % of the capacity.

    The router is saved from these two rows; the priors have seen its source.
    """
    for latency in latencies:
        known = [min(latency.rows, key=lambda row: abs(row.load_ratio - load)) for load in _GIVEN]
        near = all(abs(row.load_ratio - load) <= _NEAR for row, load in zip(known, _GIVEN, strict=True))
        if latency.statistic != "p50" or not near or known[0] is known[1]:
            continue
        capacity_pps = 1.0 / latency.frame_s
        points = [
            Point(
                cores=1,
                frame_bytes=float(_BYTES),
                throughput_pps=capacity_pps,
                rate_kind=latency.rate_kind,
                latency=PointLatency(load_pps=row.load_ratio * capacity_pps, p50_s=row.latency_s, arrivals="cbr"),
            )
            for row in known
        ]
        fitted = fit(points)
        curve = measured_latency(fitted, points, points[0], "p50")
        assert curve is not None
        document = tomllib.loads(router_file(fitted, points, source=latency.source, today=date(2026, 1, 1)).text)
        router, _ = build_router({key: entry for key, entry in document.items() if key != "load"})
        middle_pps = float(np.median(curve.capacities_pps([1])))
        for row in latency.rows:
            if not _LOADS[0] <= row.load_ratio <= _LOADS[1]:
                continue
            load = OfferedLoad(
                rate_pps=row.load_ratio * middle_pps, frames=FrameMix.fixed(_BYTES), flows=FlowSet.crafted(2, ports=2)
            )
            trial = Simulate(router, seed=1, steady_state=False).trial(load, _FRAMES / load.rate_pps)
            assert trial.latency is not None
            yield SimulatedMedian(
                source=latency.source,
                router=latency.router,
                load_ratio=row.load_ratio,
                simulated_s=trial.latency.p50_s,
                curve_s=curve.at_load(row.load_ratio).latency_s,
                measured_s=row.latency_s,
            )
