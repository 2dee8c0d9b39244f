"""Calibrate the time that one core spends on a frame as a linear function of known work.

``T(x) = T_0 + x·T_x``: ``x`` is the added work for each frame, such as iterations of a slow-down loop, rules of a
filter or copied bytes (then it is Meyer 2014, eq. 3). A core in overload forwards ``1/T(x)`` frames per second. The two
parameters are fitted to the logarithms of the measured rates, so that relative errors weigh equally; neither is
negative.
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

MIN_SPREAD_RATIO = 0.005
"""Smallest relative standard deviation of a repeated rate, because no test bed repeats a rate better."""

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
        """Return the 95 % interval of one measured rate, from the errors of the parameters and of the measurement."""
        covariance = 2.0 * work * self.correlation * self.base_sd_s * self.per_work_sd_s
        variance = max(self.base_sd_s**2 + (work * self.per_work_sd_s) ** 2 + covariance, 0.0)
        sd_ratio = math.sqrt(variance / self.seconds(work) ** 2 + self.repeatability_ratio**2)
        factor = math.exp(NORMAL_95 * sd_ratio)
        return self.rate_pps(work) / factor, self.rate_pps(work) * factor


def fit_work(points: Sequence[WorkPoint], *, series: str = "", constant: bool = False) -> FittedWork:
    """Fit the time per frame to measured forwarding rates.

    ``series``: name for messages; ``constant``: the work has no cost, ``T_x = 0``. Raises FitProblem: a rate is not
    positive, or the fit of a slope has points with only one amount of work.
    """
    import numpy as np
    from scipy.optimize import least_squares

    if not points:
        raise FitProblem(series, "no point calibrates: give at least one")
    for point in points:
        if not (point.rates_pps and all(math.isfinite(rate) and rate > 0.0 for rate in point.rates_pps)):
            raise FitProblem(
                series, f"no frame was forwarded with {point.work:g} units of work: the point cannot calibrate"
            )
    if not constant and len({point.work for point in points}) < 2:
        raise FitProblem(series, "the slope needs two amounts of work: calibrate at a second one")
    works = np.array([point.work for point in points])
    times_s = np.array([1.0 / point.rate_pps for point in points])
    start = [float(times_s.min())]
    scale = start.copy()
    if not constant:
        low, high = works.argmin(), works.argmax()
        start.append(max(float((times_s[high] - times_s[low]) / (works[high] - works[low])), 0.0))
        scale.append(max(start[1], 1e-3 * start[0] / max(float(works.max()), 1.0)))
    design = np.stack([np.ones_like(works), works], axis=1)[:, : len(scale)] * scale

    def residuals(theta: NDArray[np.float64]) -> NDArray[np.float64]:
        result: NDArray[np.float64] = np.log(design @ theta / times_s)
        return result

    solution = least_squares(residuals, np.divide(start, scale), bounds=([1e-9, 0.0][: len(scale)], np.inf))
    spread = _spread(points)
    per_point = spread / math.sqrt(fmean(len(point.rates_pps) for point in points))
    freedom = len(points) - len(scale)
    misfit = math.sqrt(float(np.sum(solution.fun**2)) / freedom) if freedom > 0 else 0.0
    jacobian = np.asarray(solution.jac)
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * max(per_point, misfit) ** 2
    base_s, per_work_s, *_ = map(float, (*(solution.x * scale), 0.0))
    base_sd_s, per_work_sd_s, *_ = map(float, (*(np.sqrt(np.diag(covariance)) * scale), 0.0))
    correlation = 0.0
    if not constant and covariance[0, 0] > 0.0 and covariance[1, 1] > 0.0:
        correlation = float(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))
    return FittedWork(
        base_s=base_s,
        per_work_s=per_work_s,
        base_sd_s=base_sd_s,
        per_work_sd_s=per_work_sd_s,
        correlation=correlation,
        repeatability_ratio=max(spread, misfit),
    )


def _spread(points: Sequence[WorkPoint]) -> float:
    """Return the pooled relative standard deviation of the repeated measurements."""
    pairs = [
        (len(point.rates_pps) - 1, variance([math.log(rate) for rate in point.rates_pps]))
        for point in points
        if len(point.rates_pps) > 1
    ]
    freedom = sum(count for count, _ in pairs)
    pooled = math.sqrt(sum(count * log_variance for count, log_variance in pairs) / freedom) if freedom else 0.0
    return max(pooled, MIN_SPREAD_RATIO)
