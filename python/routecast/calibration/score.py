"""Predictions with intervals, and what they are worth against measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from routecast.calibration._posterior import weighted_quantiles
from routecast.evaluate.points import Point
from routecast.quantity.quantile import quantile
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Intervals", "Limit", "Prediction", "ScoredPoint", "intervals", "summarise"]


LEVELS: Final = (0.5, 0.8, 0.95)
Intervals: TypeAlias = Mapping[float, tuple[float, float]]
"""Lower and upper ends by the chance that they hold; empty where a model knows none."""

_SCORED = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPoint:
    """A measured rate, what was predicted of it, and the intervals."""

    measured: float
    predicted: float
    intervals: Intervals

    @property
    def error_ratio(self) -> float:
        """Signed relative error, predicted/measured - 1."""
        return self.predicted / self.measured - 1.0

    def is_inside(self, level: float = _SCORED) -> bool:
        """Whether an interval holds the measured rate."""
        low, high = self.intervals[level]
        return low <= self.measured <= high

    @property
    def log_width(self) -> float:
        """Natural logarithm of the upper over the lower end of the 95 % interval."""
        low, high = self.intervals[_SCORED]
        return math.log(high / low)

    @property
    def interval_score(self) -> float:
        """Width of the 95 % interval plus 40 times what the measured rate misses it by, in natural logarithms.

        The less the better: it is least in expectation for the true quantiles (Winkler 1972; Gneiting and Raftery 2007,
        J. Am. Stat. Assoc. 102, eq. 43). A score of 0.4 is that of intervals of ±22 % that always hold.
        """
        low, high = self.intervals[_SCORED]
        missed = max(math.log(low / self.measured), math.log(self.measured / high), 0.0)
        return self.log_width + 2.0 / (1.0 - _SCORED) * missed


def intervals(logs: Floats, weights: Floats) -> list[Intervals]:
    """Intervals of each column of (J, n) weighted samples of the logarithm of a rate."""
    probabilities = [0.5 + sign * level / 2 for level in LEVELS for sign in (-1.0, 1.0)]
    ends = weighted_quantiles(logs, weights, probabilities).T
    return [
        {level: (math.exp(each[2 * i]), math.exp(each[2 * i + 1])) for i, level in enumerate(LEVELS)} for each in ends
    ]


def summarise(judged: Sequence[ScoredPoint]) -> dict[str, float]:
    """Mean, median, 90th percentile and maximum of |error|, and what the intervals are worth.

    ``coverage_95_ratio`` is the share of measurements inside their 95 % interval, likewise 50 and 80;
    ``interval_log_width`` and ``interval_score`` are means of :class:`ScoredPoint`'s. All of these are of predictions
    with intervals, and NaN where there are none.
    """
    errors = sorted(abs(each.error_ratio) for each in judged)
    judged_with_interval = [each for each in judged if each.intervals]
    return {
        "held_out": len(errors),
        "mean_abs_error_ratio": _mean(errors),
        "median_abs_error_ratio": quantile(errors, 0.5),
        "p90_abs_error_ratio": quantile(errors, 0.9),
        "max_abs_error_ratio": errors[-1] if errors else math.nan,
        **{
            f"coverage_{round(100 * level)}_ratio": _mean([each.is_inside(level) for each in judged_with_interval])
            for level in LEVELS
        },
        "interval_log_width": _mean([each.log_width for each in judged_with_interval]),
        "interval_score": _mean([each.interval_score for each in judged_with_interval]),
    }


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


Limit = Literal["cpu", "link", "nic", "shared", "link and cpu"]
"""``cpu``: the cores; ``link``: the ports; ``nic``: a known packet rate of the cards; ``shared``: a limit common to all
cores that the calibration found (PCIe, memory, a virtual machine behind the router); ``link and cpu``: some flows fill
their share of a link, the others their core."""


@value
class Prediction:
    """What a calibrated router should forward at a point's conditions."""

    point: Point = field("The conditions (its measured rate is not looked at)")
    throughput_pps: float = field("Predicted maximum throughput, frames per second over all ports")
    limit: Limit = field("The resource that limits")
    intervals: Intervals = field(
        "Prediction intervals of one measurement, frames per second; empty where the law knows none",
        default_factory=dict,
    )

    @property
    def low_pps(self) -> float:
        """Lower end of the 95 % interval; NaN where there is none."""
        return self.intervals.get(0.95, (math.nan, math.nan))[0]

    @property
    def high_pps(self) -> float:
        """Upper end of the 95 % interval; NaN where there is none."""
        return self.intervals.get(0.95, (math.nan, math.nan))[1]

    @property
    def judged(self) -> ScoredPoint:
        """The prediction beside the measured rate."""
        return ScoredPoint(measured=self.point.throughput_pps, predicted=self.throughput_pps, intervals=self.intervals)

    @property
    def error_ratio(self) -> float:
        """Signed relative error against the measured rate: predicted/measured - 1."""
        return self.judged.error_ratio
