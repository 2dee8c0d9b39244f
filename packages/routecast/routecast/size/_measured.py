"""Sizing of a router from measured points."""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.calibration.carried import Carry
from routecast.calibration.forecast import Goal, forecast
from routecast.evaluate.points import Point
from routecast.evaluate.targets import Target as Bound
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
    answer = forecast(points, goal, counts, noise_ratio=noise_ratio, next_points=next_points, move=move)
    least = answer.least
    # The rate may be that of links: no core is then faster than its service time.
    least_s = math.nan if least is None else min(answer.service_s, least.cores / least.high_pps)
    return Sizing(
        series=answer.series,
        target=target,
        counts=answer.counts,
        least=answer.least,
        facts=answer.facts,
        next=answer.next,
        warnings=answer.remarks,
        bounds=tuple(bounds),
        recipe=answer.recipe,
        conditions=answer.conditions,
        contradiction=answer.contradiction,
        cap=answer.cap,
        latency=LatencyAnswer.not_measured(answer.service_s, bounds, least_s=least_s, is_fixed=target.frames.is_fixed),
    )
