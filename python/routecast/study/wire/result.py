"""What a wire study found, as values: what was measured, what was predicted for it, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from routecast.calibrate.wakeup import FittedWakeup
from routecast.calibrate.work import FittedWork
from routecast.evaluate.plain import plain
from routecast.study.result import Criterion, Made
from routecast.study.wire.document import Throughput, WireStudy

__all__ = [
    "LatencyCurve",
    "LatencyRow",
    "LossCurve",
    "LossRow",
    "Measured",
    "Series",
    "SeriesRow",
    "WireResult",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A figure that was measured repeatedly: its median, least and largest value, and the standard deviation."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median; NaN where no trial was valid."""
        return median(self.values) if self.values else math.nan

    @property
    def least(self) -> float:
        """The least value."""
        return min(self.values, default=math.nan)

    @property
    def most(self) -> float:
        """The largest value."""
        return max(self.values, default=math.nan)

    @property
    def spread_ratio(self) -> float:
        """Standard deviation relative to the mean; NaN for fewer than two values."""
        if len(self.values) < 2 or fmean(self.values) <= 0.0:
            return math.nan
        centre = fmean(self.values)
        return math.sqrt(sum((value - centre) ** 2 for value in self.values) / (len(self.values) - 1)) / centre


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """Forwarding rate in overload at one value of the factor, frames per second."""

    value: float
    calibrates: bool
    offered_pps: float
    measured_pps: Measured
    solved_pps: float
    simulated_pps: float
    low_pps: float
    high_pps: float

    @property
    def error_ratio(self) -> float:
        """Relative error of the prediction."""
        return self.solved_pps / self.measured_pps.median - 1.0

    @property
    def is_covered(self) -> bool:
        """Whether the 95 % interval holds the measured median."""
        return self.low_pps <= self.measured_pps.median <= self.high_pps


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One factor: its calibrated law and every point of it."""

    series: Throughput
    law: FittedWork
    rows: tuple[SeriesRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow:
    """Loss ratio at one offered load."""

    offered_ratio: float
    offered_pps: float
    measured: Measured
    solved: float
    simulated: float

    @property
    def error(self) -> float:
        """Error of the solver's loss ratio (0.01 is one point of loss)."""
        return self.solved - self.measured.median


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """Loss against offered load of one device at one value of its factor."""

    series: Throughput
    value: float
    capacity_pps: float
    rows: tuple[LossRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """Latency at one load, seconds; ``simulated_…`` are the simulator's, ``solved_s`` the closed form's median."""

    load_ratio: float
    load_pps: float
    calibrates: bool
    p50_s: Measured
    p99_s: Measured
    simulated_p50_s: float
    simulated_p99_s: float
    solved_p50_s: float = math.nan

    @property
    def error_ratio(self) -> float:
        """Relative error of the simulated median."""
        return self.simulated_p50_s / self.p50_s.median - 1.0

    @property
    def p99_factor(self) -> float:
        """How many times the simulated 99th percentile is off, >= 1."""
        ratio = self.simulated_p99_s / self.p99_s.median
        return max(ratio, 1.0 / ratio) if ratio > 0.0 else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """Latency against load of one device at one value of its factor."""

    series: Throughput
    value: float
    capacity_pps: float
    wakeup: FittedWakeup | None
    rows: tuple[LatencyRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireResult:
    """All that a wire study found."""

    study: WireStudy
    out: Path
    series: tuple[Series, ...]
    loss: tuple[LossCurve, ...]
    latency: tuple[LatencyCurve, ...]
    facts: dict[str, Any]
    invalid_trials: int
    criteria: tuple[Criterion, ...]
    made: Made

    @property
    def held_out(self) -> tuple[SeriesRow, ...]:
        """The forwarding rates that the calibration has not seen."""
        return tuple(row for each in self.series for row in each.rows if not row.calibrates)

    @property
    def throughput_error_ratio(self) -> float:
        """Median absolute relative error at the held-out points."""
        return _median(abs(row.error_ratio) for row in self.held_out)

    @property
    def repeatability_ratio(self) -> float:
        """Median relative standard deviation of repeated measurements of a forwarding rate."""
        return _median(row.measured_pps.spread_ratio for each in self.series for row in each.rows)

    @property
    def coverage_ratio(self) -> float:
        """Share of the held-out rates inside their 95 % intervals."""
        rows = [row for row in self.held_out if math.isfinite(row.error_ratio)]
        return fmean(row.is_covered for row in rows) if rows else math.nan

    @property
    def loss_error(self) -> float:
        """Mean absolute error of the loss ratio, the solver's."""
        errors = [abs(row.error) for curve in self.loss for row in curve.rows if math.isfinite(row.error)]
        return fmean(errors) if errors else math.nan

    @property
    def held_out_latency(self) -> tuple[LatencyRow, ...]:
        """The latencies that the calibration has not seen."""
        return tuple(row for curve in self.latency for row in curve.rows if not row.calibrates)

    @property
    def latency_error_ratio(self) -> float:
        """Median absolute relative error of the median latency at the held-out points."""
        return _median(abs(row.error_ratio) for row in self.held_out_latency)

    @property
    def p99_factor(self) -> float:
        """Median factor by which the 99th percentile is off at the held-out points."""
        return _median(row.p99_factor for row in self.held_out_latency)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            "throughput": {
                "median_abs_error_ratio": self.throughput_error_ratio,
                "repeatability_ratio": self.repeatability_ratio,
                "coverage_ratio": self.coverage_ratio,
                "held_out_points": len(self.held_out),
                "series": [_series_json(each) for each in self.series],
            },
            "loss": {
                "mean_abs_error": self.loss_error,
                "curves": [_curve_json(curve, curve.rows) for curve in self.loss],
            },
            "latency": {
                "median_abs_error_ratio": self.latency_error_ratio,
                "p99_median_factor": self.p99_factor,
                "held_out_points": len(self.held_out_latency),
                "curves": [{**_curve_json(curve, curve.rows), "wakeup": curve.wakeup} for curve in self.latency],
            },
            "facts": self.facts,
            "invalid_trials": self.invalid_trials,
            "criteria": [one.to_json() for one in self.criteria],
            "made": self.made,
        }
        return _dict(document)


def _series_json(each: Series) -> dict[str, Any]:
    return {
        "name": each.series.name,
        "device": each.series.device,
        "factor": each.series.factor,
        "law": each.law,
        "rows": [{**_dict(row), "error_ratio": row.error_ratio, "covered": row.is_covered} for row in each.rows],
    }


def _curve_json(curve: LossCurve | LatencyCurve, rows: Iterable[LossRow | LatencyRow]) -> dict[str, Any]:
    return {
        "series": curve.series.name,
        "device": curve.series.device,
        "value": curve.value,
        "capacity_pps": curve.capacity_pps,
        "rows": list(rows),
    }


def _median(values: Iterable[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return median(finite) if finite else math.nan


def _dict(value: object) -> dict[str, Any]:
    result = plain(value)
    assert isinstance(result, dict)
    return result
