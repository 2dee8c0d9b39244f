"""The best next measurement: the one after which the expected intervals of the target predictions are narrowest.

Joint draws of the posterior give the measurements at candidates and the true rates at targets. If draw i were the
truth, a measurement of candidate c would give draw j the weight::

    w_ij ∝ exp(-(y_j(c) - y_i(c))² / 2σ²)

and the 95 % intervals of the targets would be those of the weighted draws. The expected width after a measurement of c
is the width of these intervals (root mean square over targets), averaged over truths that are drawn from the posterior
(Chaloner and Verdinelli 1995, Statistical Science 10; by reweighting: Ryan 2003, J. Comput. Graph. Stat. 12). The best
candidate has the smallest expected width; the next is chosen as if the first had been measured. Unlike a covariance,
this criterion values a measurement that decides between two explanations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from routecast.evaluate.plain import plain
from routecast.evaluate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["NextPoint", "candidates", "describe_precision", "half_width_ratio", "interval_log_width", "rank"]

_BLOCK = 32
_TRUTHS = 32
_ENDS = (0.025, 0.975)
_MIN_NOISE_RATIO = 0.01
_MIN_SPREAD_SHARE = 0.04
"""Smallest noise of a measurement over the spread of the draws, because draws are few."""
_MAX_CORE_COUNTS = 24
_LEAST_SHOWN = 5e-4
"""Half width over the middle that one decimal of a percentage shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPoint:
    """Conditions to measure, and the width of the targets' 95 % intervals, in logarithms, before and after it."""

    point: Point
    width_before: float
    width_after: float

    @property
    def narrows(self) -> bool:
        """Whether the measurement is expected to narrow the intervals by what the text shows."""
        return describe_precision(self.width_after) != describe_precision(self.width_before)

    def to_json(self) -> dict[str, Any]:
        """Return plain data; widths as half an interval over its middle."""
        return {
            **plain({"cores": self.point.cores, "frame_bytes": self.point.frame_bytes, "flows": self.point.flows}),
            "half_width_before_ratio": half_width_ratio(self.width_before),
            "half_width_after_ratio": half_width_ratio(self.width_after),
        }

    def __str__(self) -> str:
        cores = f"{self.point.cores} core{'s' if self.point.cores > 1 else ''}"
        frames = self.point.frame_mix.name if self.point.frame_mix else f"{self.point.frame_bytes:g} B"
        before, after = (describe_precision(width) for width in (self.width_before, self.width_after))
        if not self.narrows:
            return f"{cores}, {frames}: intervals stay at {before}"
        return f"{cores}, {frames}: intervals shrink from {before} to about {after}"


def half_width_ratio(log_width: float) -> float:
    """Return half the width of an interval over its middle: 0.05 is ±5 %."""
    return math.expm1(0.5 * log_width)


def describe_precision(log_width: float) -> str:
    """Return half the width of an interval over its middle as text, which is never ±0%.

    Examples
    --------
    >>> [describe_precision(2.0 * math.log(ratio)) for ratio in (1.12, 1.001, 1.0)]
    ['±12%', '±0.1%', 'less than ±0.1%']
    """
    ratio = half_width_ratio(log_width)
    return f"±{ratio:.0%}" if ratio >= 0.005 else f"±{ratio:.1%}" if ratio >= _LEAST_SHOWN else "less than ±0.1%"


def candidates(calibrated: Sequence[Point], max_cores: int, frames: Sequence[Point]) -> list[Point]:
    """Return the unmeasured conditions on up to ``max_cores`` cores, with the frames of all given points.

    Links, cards and queues are those of the calibrated point with the most cores.
    """
    model = max(calibrated, key=lambda point: point.cores)
    sizes = {(point.frame_bytes, point.frame_mix) for point in (*calibrated, *frames)}
    done = {(point.working_cores, point.frame_bytes) for point in calibrated}
    counts = list(range(1, max_cores + 1))
    if max_cores > _MAX_CORE_COUNTS:
        counts = sorted({round(math.exp(x)) for x in np.linspace(0.0, math.log(max_cores), _MAX_CORE_COUNTS)})
    return [
        replace(
            model,
            cores=count,
            flows=None if model.flows is None else count,
            frame_bytes=size,
            frame_mix=mix,
            throughput_pps=math.nan,
            calibrate=False,
        )
        for count in counts
        for size, mix in sorted(sizes, key=lambda size: size[0])
        if (count, size) not in done
    ]


def interval_log_width(targets: Floats) -> float:
    """Width of the 95 % interval of (S, t) draws, root mean square over the targets."""
    low, high = np.quantile(targets, _ENDS, axis=0)
    return float(np.sqrt(np.mean((high - low) ** 2)))


def rank(points: Sequence[Point], rates: Floats, targets: Floats, n: int, *, noise_ratio: float) -> list[NextPoint]:
    """Return the best ``n`` of the points, in the order in which to measure them.

    ``points``: the candidates; ``rates``: equally likely draws of the logarithm of their rates; ``targets``: the same
    draws of the targets, in logarithms; ``noise_ratio``: repeatability of one measurement.
    """
    order = np.argsort(targets, axis=0)
    ranked = np.take_along_axis(targets, order, axis=0)
    truths = np.linspace(0, len(rates) - 1, min(_TRUTHS, len(rates))).astype(int)
    log_weights = np.zeros((len(truths), len(rates)))
    before = interval_log_width(targets)
    chosen: list[NextPoint] = []
    remaining = list(range(len(points)))
    while remaining and len(chosen) < n:
        after_measuring = {c: log_weights + _log_weights(rates[:, c], truths, noise_ratio) for c in remaining}
        widths = {c: _expected_width(ranked, order, weights) for c, weights in after_measuring.items()}
        best = min(remaining, key=lambda c: (widths[c], c))
        after = min(widths[best], before)
        chosen.append(NextPoint(point=points[best], width_before=before, width_after=after))
        log_weights, before = after_measuring[best], after
        remaining.remove(best)
    return chosen


def _log_weights(rate: Floats, truths: NDArray[np.intp], noise_ratio: float) -> Floats:
    """Return the logarithm of the weight of each of S draws for each of T truths, (T, S)."""
    noise = max(noise_ratio, _MIN_NOISE_RATIO, _MIN_SPREAD_SHARE * float(np.std(rate)))
    log_weights: Floats = -0.5 * ((rate[None, :] - rate[truths][:, None]) / noise) ** 2
    return log_weights


def _expected_width(ranked: Floats, order: NDArray[np.intp], log_weights: Floats) -> float:
    """Return the width of the weighted draws' interval (:func:`interval_log_width`), mean over the truths.

    The search for an end of an interval goes over sums of blocks of draws first, then within one block.
    """
    draws, targets = ranked.shape
    weights = np.take(np.exp(log_weights - log_weights.max(axis=1, keepdims=True)), order, axis=1)
    weights = np.pad(weights, ((0, 0), (0, -draws % _BLOCK), (0, 0))).reshape(len(weights), -1, _BLOCK, targets)
    below = np.pad(np.cumsum(weights.sum(axis=2), axis=1), ((0, 0), (1, 0), (0, 0)))
    columns, ends = np.arange(targets), []
    for end in _ENDS:
        goal = end * below[:, -1:]
        block = (below[:, 1:] < goal).sum(axis=1, keepdims=True).clip(0, weights.shape[1] - 1)
        within = np.take_along_axis(weights, block[:, :, None], axis=1)[:, 0]
        reached = np.take_along_axis(below, block, axis=1) + np.cumsum(within, axis=1)
        rank = block[:, 0] * _BLOCK + (reached < goal).sum(axis=1)
        ends.append(ranked[rank.clip(0, draws - 1), columns])
    return float(np.mean(np.sqrt(np.mean((ends[1] - ends[0]) ** 2, axis=1))))
