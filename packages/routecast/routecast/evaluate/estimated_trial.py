"""Simulate the router that the estimate of a network function describes."""

from __future__ import annotations

import math

from routecast.errors import TransientProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.trial import Trial
from routecast.function.case import Case
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.progress import ShareProgress
from routecast.router.estimated import estimated_router

__all__ = ["estimated_trial"]

_LOAD_RATIO = 0.8
"""Offered rate over the estimated throughput where the case gives no rate."""
_DURATION_S = 0.02


def estimated_trial(case: Case, frames: FrameMix, on_progress: ShareProgress | None = None) -> Trial:
    """Simulate a case at these frames; ``on_progress`` gets the finished share, 0..1.

    If the case has no duration, the trial lasts 20 ms, or as long as the transient needs.
    """
    estimate = case.estimate(case.direction, frames, case.remote_ratio)
    sizes = frames.share_by_bytes
    cycles_by_size = {
        size: case.estimate(case.direction, FrameMix.fixed(size), case.remote_ratio).packet_cycles
        for size in (sizes if len(sizes) > 1 else ())
    }
    model = estimated_router(estimate, case.hardware, by_size=cycles_by_size)
    ports = len(model.ports)
    load = OfferedLoad(
        rate_pps=case.rate.pps(frames) if case.rate else _LOAD_RATIO * estimate.pps,
        frames=frames,
        flows=FlowSet.crafted(math.lcm(case.cores, ports), ports=ports),
    )
    simulator = Simulate(model, seed=case.seed, on_progress=on_progress)
    try:
        return simulator.trial(load, case.duration_s or _DURATION_S)
    except TransientProblem as problem:
        if case.duration_s is not None:
            raise
        return simulator.trial(load, 1.5 * problem.needed_s)
