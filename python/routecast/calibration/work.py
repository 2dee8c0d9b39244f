"""Calibrate the time that one core spends on a frame as a linear function of known work.

``T(x) = T_0 + x·T_x``: ``x`` is the added work for each frame, such as iterations of a slow-down loop, rules of a
filter or bytes that are copied (then it is Meyer 2014, eq. 3). A core in overload forwards its inverse. The two
parameters are fitted to the logarithms of the measured rates, so that every point counts by its relative error; neither
can be negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, variance
from typing import TYPE_CHECKING

from routecast.errors import FitProblem
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FittedWork", "WorkPoint", "fit_work"]

LEAST_SPREAD = 0.005
"""No test bed repeats a rate better: half a percent, relative."""

NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPoint:
    """Forwarding rates in overload, measured repeatedly with ``work`` units of extra work per frame."""

    work: float
    rates_pps: tuple[float, ...]

    @property
    def rate_pps(self) -> float:
        """The median of the repeated measurements."""
        return median(self.rates_pps)


@value
class FittedWork:
    """The calibrated time per frame."""

    base_s: float = field("``T_0``, seconds per frame")
    per_work_s: float = field("``T_x``, seconds per frame and unit of work")
    base_sd_s: float = field("Standard error of ``base_s``")
    per_work_sd_s: float = field("Standard error of ``per_work_s``")
    correlation: float
    repeatability_ratio: float = field("Relative standard deviation of a single repeated measurement")

    def seconds(self, work: float) -> float:
        """Return the time per frame."""
        return self.base_s + work * self.per_work_s

    def rate_pps(self, work: float) -> float:
        """Return the forwarding rate in overload: frames per second of one core."""
        return 1.0 / self.seconds(work)

    def interval_pps(self, work: float) -> tuple[float, float]:
        """Return the 95 % interval of one measured rate: parameters and measurement are both uncertain."""
        shared = 2.0 * work * self.correlation * self.base_sd_s * self.per_work_sd_s
        of_time = self.base_sd_s**2 + (work * self.per_work_sd_s) ** 2 + shared
        relative = math.sqrt(max(of_time, 0.0) / self.seconds(work) ** 2 + self.repeatability_ratio**2)
        rate_pps = self.rate_pps(work)
        return rate_pps * math.exp(-NORMAL_95 * relative), rate_pps * math.exp(NORMAL_95 * relative)


def fit_work(points: Sequence[WorkPoint], *, series: str = "", constant: bool = False) -> FittedWork:
    """Fit the time per frame to measured forwarding rates.

    ``series``: name for messages; ``constant``: the work costs nothing: ``T_x = 0``. Raises FitProblem: a rate is not
    positive, or the points do not differ in work where a slope is wanted.
    """
    import numpy as np
    from scipy.optimize import least_squares

    if not points:
        raise FitProblem(series, "no point calibrates: give at least one")
    for point in points:
        if not (point.rates_pps and all(math.isfinite(rate) and rate > 0.0 for rate in point.rates_pps)):
            message = f"nothing was forwarded with {point.work:g} units of work: this point cannot calibrate"
            raise FitProblem(series, message)
    if not constant and len({point.work for point in points}) < 2:
        raise FitProblem(series, "the slope needs two values of the factor: calibrate on another one as well")
    works = np.array([point.work for point in points])
    times_s = np.array([1.0 / point.rate_pps for point in points])
    start = [float(times_s.min()), 0.0 if constant else _slope(works, times_s)]
    scale = np.array([start[0], max(start[1], 1e-3 * start[0] / max(float(works.max()), 1.0))])

    def residuals(theta: NDArray[np.float64]) -> NDArray[np.float64]:
        slope = 0.0 if constant else theta[1] * scale[1]
        result: NDArray[np.float64] = np.log((theta[0] * scale[0] + works * slope) / times_s)
        return result

    most = np.inf
    free = [start[0] / scale[0]] if constant else [start[0] / scale[0], start[1] / scale[1]]
    solution = least_squares(residuals, free, bounds=([1e-9, 0.0][: len(free)], [most, most][: len(free)]))
    spread = _spread(points)
    per_point = spread / math.sqrt(fmean(len(point.rates_pps) for point in points))
    freedom = len(points) - len(free)
    misfit = math.sqrt(float(np.sum(solution.fun**2)) / freedom) if freedom > 0 else 0.0
    jacobian = np.asarray(solution.jac)
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * max(per_point, misfit) ** 2
    sds = np.sqrt(np.diag(covariance)) * scale[: len(free)]
    base_s = float(solution.x[0] * scale[0])
    slope_s = 0.0 if constant else float(solution.x[1] * scale[1])
    correlation = 0.0
    if not constant and covariance[0, 0] > 0.0 and covariance[1, 1] > 0.0:
        correlation = float(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))
    return FittedWork(
        base_s=base_s,
        per_work_s=slope_s,
        base_sd_s=float(sds[0]),
        per_work_sd_s=0.0 if constant else float(sds[1]),
        correlation=correlation,
        repeatability_ratio=max(spread, misfit),
    )


def _slope(works: NDArray[np.float64], times_s: NDArray[np.float64]) -> float:
    """Return a first guess: the line through the points of least and most work, not falling."""
    low, high = int(works.argmin()), int(works.argmax())
    return max(float((times_s[high] - times_s[low]) / (works[high] - works[low])), 0.0)


def _spread(points: Sequence[WorkPoint]) -> float:
    """Return the pooled relative standard deviation of the repeated measurements."""
    pairs = [
        (len(point.rates_pps) - 1, variance([math.log(rate) for rate in point.rates_pps]))
        for point in points
        if len(point.rates_pps) > 1
    ]
    freedom = sum(count for count, _ in pairs)
    pooled = math.sqrt(sum(count * each for count, each in pairs) / freedom) if freedom else 0.0
    return max(pooled, LEAST_SPREAD)
