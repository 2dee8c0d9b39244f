"""Measured latencies beside what the curve of other rows says of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from routecast.calibration.fitted import FittedRouter
from routecast.calibration.latency.measured import LatencyAt, load_pps_of, measured_latency
from routecast.calibration.latency.prior import STATISTICS
from routecast.evaluate.points import LATENCY_STATISTICS, Point
from routecast.quantity.comparison import ComparedRow

__all__ = ["LatencyPrediction", "are_left_out_in_turn", "judged_latencies"]

_SAME_LOAD: Final = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPrediction(ComparedRow[Point]):
    """The predicted latency of a row, s, beside the measured one.

    ``load_ratio``: share of the predicted capacity; ``reason``: why nothing is predicted (then ``predicted`` is NaN);
    ``ring_s``: lower end, median and upper end of what a full ring takes, where the row is beyond what is stated.
    """

    statistic: str
    load_ratio: float
    reason: str = ""
    ring_s: tuple[float, float, float] = (math.nan, math.nan, math.nan)

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        point, (ring_low_s, ring_s, ring_high_s) = self.conditions, self.ring_s
        return {
            "series": point.series,
            "cores": point.cores,
            "frame_bytes": point.frame_bytes,
            "statistic": self.statistic,
            "load_pps": load_pps_of(point),
            "load_ratio": self.load_ratio,
            "role": self.role,
            "measured_s": self.measured,
            "predicted_s": self.predicted,
            "low_s": self.low,
            "high_s": self.high,
            "error_ratio": self.error_ratio,
            "is_inside": self.is_covered if self.intervals else None,
            "reason": self.reason or None,
            "full_ring_s": ring_s,
            "full_ring_low_s": ring_low_s,
            "full_ring_high_s": ring_high_s,
        }


def are_left_out_in_turn(points: Sequence[Point]) -> bool:
    """Whether no latency row is held out by ``calibrate``, so that each is predicted by the others in turn."""
    timed, known = _split(points)
    return bool(timed) and len(known) == len(timed)


def judged_latencies(fitted: FittedRouter, points: Sequence[Point]) -> tuple[LatencyPrediction, ...]:
    """Return every latency of the points of one series beside its prediction.

    Rows that do not calibrate are predicted from those that do. Where all do, each is predicted from the rows of other
    loads or conditions. The greatest and the least latency are never predicted.

    Parameters
    ----------
    fitted : FittedRouter
        Calibrated from the points that calibrate.
    points : sequence of Point
    """
    timed, known = _split(points)
    if not timed:
        return ()
    capacities_pps = fitted.joint_rates_pps(timed)
    rows = []
    for number, point in enumerate(timed):
        others = known if len(known) < len(timed) else [row for row in known if not _repeats(row, point)]
        for statistic in LATENCY_STATISTICS:
            assert point.latency is not None
            if math.isfinite(point.latency.of(statistic)):
                at = _predicted(fitted, others, point, statistic, capacities_pps[:, number])
                rows.append(
                    LatencyPrediction(
                        conditions=point,
                        measured=point.latency.of(statistic),
                        predicted=at.latency_s,
                        intervals=at.intervals,
                        calibrates=point in others,
                        statistic=statistic,
                        load_ratio=at.load_ratio,
                        reason=at.reason,
                        ring_s=at.ring_s,
                    )
                )
    return tuple(rows)


def _split(points: Sequence[Point]) -> tuple[list[Point], list[Point]]:
    """Return the rows with a latency, and those of them that calibrate.

    A row without a rate cannot be marked to calibrate: it does, unless rows with a rate are held out.
    """
    timed = [point for point in points if point.latency is not None]
    has_held_out = any(math.isfinite(point.throughput_pps) and not point.calibrate for point in points)
    return timed, [point for point in timed if point.calibrate or not has_held_out] or timed


def _repeats(row: Point, point: Point) -> bool:
    """Whether a row is a repetition, which would tell how well a latency repeats and not how well it is predicted."""
    return row.conditions == point.conditions and math.isclose(load_pps_of(row), load_pps_of(point), rel_tol=_SAME_LOAD)


def _predicted(
    fitted: FittedRouter, rows: Sequence[Point], point: Point, statistic: str, capacities_pps: NDArray[np.float64]
) -> LatencyAt:
    """Return what rows say of a latency, or why they say nothing."""
    curve = measured_latency(fitted, rows, point, statistic)
    if point.disturbed:
        reason = "disturbed: not calibrated"
    elif statistic not in STATISTICS:
        reason = "as measured, never predicted"
    elif curve is None:
        reason = "no other row has it"
    else:
        return curve.at(capacities_pps, load_pps_of(point))
    return LatencyAt(
        statistic=statistic, load_ratio=load_pps_of(point) / float(np.median(capacities_pps)), reason=reason
    )
