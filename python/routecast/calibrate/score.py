"""Scores of predictions against measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from routecast.calibrate.prediction import Prediction
from routecast.quantity.quantile import quantile

__all__ = ["interval_score", "summarise"]

_PENALTY = 2.0 / 0.05


def interval_score(low: float, high: float, measured: float) -> float:
    """Width of a 95 % interval of a rate, plus 40 times what the measured rate misses it by, in natural logarithms.

    The less the better: it is least in expectation for the true quantiles (Winkler 1972; Gneiting and Raftery 2007,
    J. Am. Stat. Assoc. 102, eq. 43). A score of 0.4 is that of intervals of ±22 % that always hold.
    """
    missed = max(math.log(low / measured), math.log(measured / high), 0.0)
    return math.log(high / low) + _PENALTY * missed


def summarise(predictions: Sequence[Prediction]) -> dict[str, float]:
    """Mean, median, 90th percentile and maximum of |predicted/measured - 1|, and what the intervals are worth.

    ``interval_coverage_ratio`` is the share of measurements inside their 95 % interval and ``interval_score`` the mean
    score of the intervals (:func:`interval_score`), both of predictions with an interval; NaN where there are none.
    """
    errors = sorted(abs(each.error_ratio) for each in predictions)
    told = [each for each in predictions if math.isfinite(each.low_pps) and math.isfinite(each.high_pps)]
    inside = [each.low_pps <= each.point.throughput_pps <= each.high_pps for each in told]
    return {
        "held_out": len(errors),
        "mean_abs_error_ratio": fmean(errors) if errors else math.nan,
        "median_abs_error_ratio": quantile(errors, 0.5),
        "p90_abs_error_ratio": quantile(errors, 0.9),
        "max_abs_error_ratio": errors[-1] if errors else math.nan,
        "interval_coverage_ratio": fmean(inside) if inside else math.nan,
        "interval_score": fmean(
            [interval_score(each.low_pps, each.high_pps, each.point.throughput_pps) for each in told]
        )
        if told
        else math.nan,
    }
