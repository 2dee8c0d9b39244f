"""Latency at loads that were not measured, from rows that were: a curve over the load with intervals."""

from routecast.calibration.latency.curve import Curve, LatencyRow, fit_curve, shape
from routecast.calibration.latency.prior import STATISTICS, LatencyPrior, Statistic, prior_of

__all__ = ["STATISTICS", "Curve", "LatencyPrior", "LatencyRow", "Statistic", "fit_curve", "prior_of", "shape"]
