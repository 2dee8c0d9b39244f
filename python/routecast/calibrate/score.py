"""Scores of predictions against measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from routecast.calibrate.prediction import Prediction
from routecast.quantity.quantile import quantile

__all__ = ["summarise"]


def summarise(predictions: Sequence[Prediction]) -> dict[str, float]:
    """Mean, median, 90th percentile and maximum of |predicted/measured - 1|, and the share inside the intervals.

    ``interval_coverage_ratio`` counts only predictions with an interval; NaN where there are none.
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
    }
