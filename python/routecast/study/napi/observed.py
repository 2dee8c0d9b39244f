"""What the simulator sees of one core at one load."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from routecast.evaluate.simulate import Simulate
from routecast.load.arrivals import Arrivals
from routecast.load.offered import OfferedLoad
from routecast.router.model import RouterModel

__all__ = ["CORE", "ArrivalKind", "Observed", "observe"]

ArrivalKind = Literal["cbr", "poisson"]

CORE = "core 0"
"""Name of the task unit that works, in the routers of one core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One core at one offered load, in the inside view of paper 003, fig. 6."""

    offered_pps: float
    forwarded_pps: float
    idle_ratio: float
    interrupts_per_packet: float
    polls_per_packet: float
    latency_p50_s: float


def observe(router: RouterModel, rate_pps: float, *, arrivals: ArrivalKind, frames: int, seed: int) -> Observed:
    """Simulate a router of one core under one load for so many frames."""
    load = OfferedLoad(rate_pps=rate_pps, arrivals=Arrivals.poisson() if arrivals == "poisson" else Arrivals.cbr())
    # Overload is asked for its throughput, which settles long before the latency of a filling queue does.
    trial = Simulate(router, seed=seed, steady_state=False).trial(load, frames / rate_pps)
    activity = next(each for each in trial.activity if each.name == CORE)
    passing = trial.forwarded_pps or math.nan
    return Observed(
        offered_pps=rate_pps,
        forwarded_pps=trial.forwarded_pps,
        idle_ratio=1.0 - activity.busy_ratio,
        interrupts_per_packet=activity.interrupts_per_s / passing,
        polls_per_packet=activity.polls_per_s / passing,
        latency_p50_s=trial.latency.p50_s if trial.latency else math.nan,
    )
