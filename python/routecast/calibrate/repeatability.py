"""How well a measurement repeats: from repetitions where there are some, from published ones where not.

The standard deviation of the logarithm of a repeated rate is pooled over all conditions that were repeated, with the
published one as four further degrees of freedom (a conjugate prior: Gelman et al., Bayesian Data Analysis, sec. 2.6)::

    σ² = (4·σ0² + Σ (ln x - mean)²) / (4 + repetitions - conditions)

Repetitions of one condition count as one point, their mean, whose standard deviation is σ/√n. A further measurement is
taken to stray normally, or, where forty repetitions and more tell it, as they do: a machine that is shared is often
fast or slow and seldom between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from routecast.calibrate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["REPEATABILITY_RATIO", "Repeated"]

REPEATABILITY_RATIO = 0.01
"""One standard deviation of repeated maximum throughputs: medians of published repetitions are 0.3-0.9 %, 90th
percentiles 5-14 %; searches that stop at steps are coarser."""

_PRIOR_DEGREES = 4.0
_ENOUGH_REPETITIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeated:
    """Points with repetitions joined, and how well each is known.

    Attributes
    ----------
    points : tuple of Point
        One for each condition, at the geometric mean of its repetitions.
    noise : (n,) array
        Standard deviation of the logarithm of each.
    one_ratio : float
        The same of a single measurement.
    strays : (m,) array
        How repetitions strayed, in ascending order and in standard deviations; empty where they are too few to tell.
    """

    points: tuple[Point, ...]
    noise: Floats
    one_ratio: float
    strays: Floats

    @property
    def measured(self) -> Floats:
        """Natural logarithms of the rates, (n,)."""
        return np.log([point.throughput_pps for point in self.points])

    @classmethod
    def of(cls, points: Sequence[Point], noise_ratio: float | None) -> Self:
        """Join repetitions; their repeatability is estimated unless it is given."""
        logs: dict[tuple[object, ...], list[float]] = {}
        for point in points:
            logs.setdefault(point.conditions, []).append(math.log(point.throughput_pps))
        strays = np.sort([x - np.mean(each) for each in logs.values() for x in each if len(each) > 1])
        freedom = len(points) - len(logs)
        prior = _PRIOR_DEGREES * REPEATABILITY_RATIO**2
        estimate = math.sqrt((prior + float((strays**2).sum())) / (_PRIOR_DEGREES + freedom))
        one_ratio = estimate if noise_ratio is None else noise_ratio
        firsts = {point.conditions: point for point in reversed(points)}
        known = [math.exp(float(np.mean(each))) for each in logs.values()]
        stated = [firsts[conditions].standard_error_ratio for conditions in logs]
        return cls(
            points=tuple(
                replace(firsts[conditions], throughput_pps=rate)
                for conditions, rate in zip(logs, known, strict=True)
            ),
            noise=np.array(
                [
                    one_ratio / math.sqrt(len(each)) if error is None else error
                    for each, error in zip(logs.values(), stated, strict=True)
                ]
            ),
            one_ratio=one_ratio,
            strays=strays / strays.std() if freedom >= _ENOUGH_REPETITIONS and strays.std() else np.empty(0),
        )

    def doubted(self, point: Point, noise_ratio: float) -> Self:
        """Return the same with one point known as badly as ``noise_ratio``."""
        noise = self.noise.copy()
        noise[self.points.index(point)] = noise_ratio
        return replace(self, noise=noise)
