"""Latency at loads that were not measured, from rows that were: a curve over the load with intervals."""

from routecast.calibration.latency.curve import Curve, LatencyRow, fit_curve, shape
from routecast.calibration.latency.measured import LatencyAt, MeasuredLatency, disturbed_rows, measured_latency
from routecast.calibration.latency.prior import STATISTICS, LatencyPrior, Statistic, prior_of

__all__ = [
    "STATISTICS",
    "Curve",
    "LatencyAt",
    "LatencyPrior",
    "LatencyRow",
    "MeasuredLatency",
    "Statistic",
    "disturbed_rows",
    "fit_curve",
    "measured_latency",
    "prior_of",
    "shape",
]
