"""Sizing of a router from measured points."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.calibration.carried import Carry
from routecast.calibration.forecast import Goal, forecast
from routecast.evaluate.points import Point
from routecast.power.operating.targets import Target as Bound
from routecast.size._answer import LatencyAnswer, Sizing, Target


def size(
    points: Sequence[Point],
    target: Target,
    *,
    counts: Sequence[int] = tuple(range(1, 65)),
    noise_ratio: float | None = None,
    next_points: int = 1,
    bounds: Sequence[Bound] = (),
    move: Carry | None = None,
) -> Sizing:
    """Return the least number of cores that meets a target with the probability of the target.

    The parameters and errors are those of :func:`routecast.calibration.forecast.forecast`. ``bounds`` are on the
    latency at the target, which a table of throughputs neither confirms nor refutes: the answer is the count for the
    throughput, and says that the latency was not measured.
    """
    goal = Goal(rate_pps=target.forwarded_pps, frames=target.frames, confidence_ratio=target.confidence_ratio)
    found = forecast(points, goal, counts, noise_ratio=noise_ratio, next_points=next_points, move=move)
    return Sizing(
        series=found.series,
        target=target,
        counts=found.counts,
        least=found.least,
        facts=found.facts,
        next=found.next,
        warnings=found.remarks,
        bounds=tuple(bounds),
        recipe=found.recipe,
        conditions=found.conditions,
        contradiction=found.contradiction,
        cap=found.cap,
        latency=LatencyAnswer.not_measured(found.service_s),
    )
