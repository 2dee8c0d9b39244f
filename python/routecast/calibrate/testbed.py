"""What the series of one test bed share: they are fitted with one cost of polling a further queue.

How much a frame costs more on a core that polls several ports (:mod:`routecast.calibrate.layout`) is a property of the
poll loop, not of the function under test. A single series cannot tell it from contention: two cores that pass 2.0 times
the rate of one may poll cheaply, or gain 5 % by polling less and lose them to each other. Many series can. The cost is
therefore estimated from the calibration points of all series of a test bed together by its marginal likelihood
(empirical Bayes, Robbins 1956; Carlin and Louis 2000, ch. 3)::

    p(cost | points) ∝ N(cost; prior) · Π_series Σ_laws w_law Z_law(series | cost)

and its mean and standard deviation make the prior with which each series is then fitted by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from routecast.calibrate.fit import law_evidence
from routecast.calibrate.forward import POLL_SHAPE
from routecast.calibrate.laws import LAWS, Shape
from routecast.calibrate.points import Point
from routecast.calibrate.priors import Priors, read_priors

__all__ = ["shared_poll"]

_GRID = tuple(float(cost) for cost in np.linspace(-0.1, 0.2, 16))
_FIXED_SD = 1e-6
_FINEST_SD = 0.005


def shared_poll(
    series: Sequence[Sequence[Point]],
    *,
    noise_ratio: float | None = None,
    priors: Priors | None = None,
) -> Shape:
    """Return the cost of polling that the calibration points of all series support, as a prior for each.

    Where no series has points with different numbers of queues, it is the usual prior.
    """
    polling = [
        points
        for points in series
        if len({each.layout.further_queues(each.working_cores, each.ports) for each in points}) > 1
    ]
    if not polling:
        return POLL_SHAPE
    cost = np.array(_GRID)
    fixed = [replace(POLL_SHAPE, mean=each, sd=_FIXED_SD) for each in _GRID]
    score = -0.5 * ((cost - POLL_SHAPE.mean) / POLL_SHAPE.sd) ** 2
    for points in polling:
        by_law = [
            math.log(weight) + law_evidence(LAWS[law], points, polls=fixed, noise_ratio=noise_ratio)
            for law, weight in (priors or read_priors()).laws.items()
        ]
        score = score + np.logaddexp.reduce(by_law, axis=0)
    weight = np.exp(score - score.max())
    mean = float(np.average(cost, weights=weight))
    sd = math.sqrt(float(np.average((cost - mean) ** 2, weights=weight)))
    return replace(POLL_SHAPE, mean=mean, sd=max(sd, _FINEST_SD))
