"""Latency at loads that were not measured, from rows that were: a curve over the load with intervals."""

from routecast.calibration.latency.bursts import Bursts, bursts_of
from routecast.calibration.latency.curve import Curve, LatencyRow, fit_curve, shape
from routecast.calibration.latency.judged import LatencyPrediction, are_left_out_in_turn, judged_latencies
from routecast.calibration.latency.measured import (
    LatencyAt,
    MeasuredLatency,
    chances_of_counts,
    disturbed_rows,
    measured_latency,
)
from routecast.calibration.latency.next_rows import LatencyAdvice, NextLatency, advise_latency
from routecast.calibration.latency.prior import STATISTICS, LatencyPrior, Statistic, prior_of

__all__ = [
    "STATISTICS",
    "Bursts",
    "Curve",
    "LatencyAdvice",
    "LatencyAt",
    "LatencyPrediction",
    "LatencyPrior",
    "LatencyRow",
    "MeasuredLatency",
    "NextLatency",
    "Statistic",
    "advise_latency",
    "are_left_out_in_turn",
    "bursts_of",
    "chances_of_counts",
    "disturbed_rows",
    "fit_curve",
    "judged_latencies",
    "measured_latency",
    "prior_of",
    "shape",
]
