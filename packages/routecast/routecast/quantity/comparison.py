"""Predictions compared with measured or stated values, and the errors between them.

Calibrations, the accuracy board and studies use the same type of row, each with its own conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from routecast.quantity.quantile import quantile

__all__ = ["LEVELS", "ComparedRow", "ErrorSummary", "Intervals", "coverage_ratio", "held_out", "summarise"]

LEVELS: Final = (0.5, 0.8, 0.95)
"""Coverage probabilities of the intervals of a prediction."""
Intervals: TypeAlias = Mapping[float, tuple[float, float]]
"""Lower and upper ends by coverage probability; empty if a model gives no intervals."""

_SCORED_LEVEL = 0.95
_UNKNOWN = (math.nan, math.nan)

Conditions_co = TypeVar("Conditions_co", covariant=True)
Role = Literal["calibrate", "held_out", "predicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow(Generic[Conditions_co]):
    """The measured and the predicted value under some conditions, in the same unit.

    ``stated`` is the value that a source gives for the same conditions, such as the prediction of another model.
    Unknown values are NaN. ``calibrates`` tells whether the prediction was fitted to this row.
    """

    conditions: Conditions_co
    measured: float = math.nan
    predicted: float
    intervals: Intervals = field(default_factory=dict)
    stated: float = math.nan
    calibrates: bool = False

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval; NaN without an interval."""
        return self.intervals.get(_SCORED_LEVEL, _UNKNOWN)[0]

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval; NaN without an interval."""
        return self.intervals.get(_SCORED_LEVEL, _UNKNOWN)[1]

    @property
    def reference(self) -> float:
        """The value that the prediction is compared with: the measured one, or else the stated one."""
        return self.stated if math.isnan(self.measured) else self.measured

    @property
    def role(self) -> Role:
        """Whether the row calibrates, is held out to judge the calibration, or has no value to compare with."""
        if self.calibrates:
            return "calibrate"
        return "predicted" if math.isnan(self.reference) else "held_out"

    @property
    def error_ratio(self) -> float:
        """Signed relative error of the prediction; NaN without a reference value."""
        return self.error_ratio_of(self.predicted)

    def error_ratio_of(self, value: float) -> float:
        """Return the signed relative error of another model's value, value/reference - 1; NaN if the reference is 0."""
        return value / self.reference - 1.0 if self.reference else math.nan

    def is_inside(self, level: float = _SCORED_LEVEL) -> bool:
        """Whether an interval contains the reference value."""
        low, high = self.intervals.get(level, _UNKNOWN)
        return low <= self.reference <= high

    @property
    def is_covered(self) -> bool:
        """Whether the 95 % interval contains the reference value."""
        return self.is_inside()

    @property
    def log_width(self) -> float:
        """Natural logarithm of the upper over the lower end of the 95 % interval."""
        return math.log(self.high / self.low)

    @property
    def interval_score(self) -> float:
        """Width of the 95 % interval plus 40 times the distance of the reference value from it, in natural logarithms.

        Lower is better: it is least in expectation for the true quantiles (Winkler 1972; Gneiting and Raftery 2007, J.
        Am. Stat. Assoc. 102, eq. 43). Intervals of ±22 % that always contain the value have a score of 0.4.
        """
        missed = max(math.log(self.low / self.reference), math.log(self.reference / self.high), 0.0)
        return self.log_width + 2.0 / (1.0 - _SCORED_LEVEL) * missed


Compared = TypeVar("Compared", bound=ComparedRow[object])


def held_out(rows: Iterable[Compared]) -> tuple[Compared, ...]:
    """Return the rows that judge a calibration: those with reference values that it was not fitted to."""
    return tuple(row for row in rows if row.role == "held_out")


def coverage_ratio(rows: Iterable[ComparedRow[object]], level: float = _SCORED_LEVEL) -> float:
    """Return the share of rows whose interval contains the reference value; NaN without rows."""
    return _mean([row.is_inside(level) for row in rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Absolute relative errors of one model over a set of points."""

    points: int
    mean_abs_error_ratio: float
    median_abs_error_ratio: float
    p90_abs_error_ratio: float
    max_abs_error_ratio: float

    @classmethod
    def of(cls, errors: Iterable[float]) -> ErrorSummary:
        """Summarise errors; all statistics are NaN without errors."""
        sizes = sorted(abs(error) for error in errors if math.isfinite(error))
        return cls(
            points=len(sizes),
            mean_abs_error_ratio=_mean(sizes),
            median_abs_error_ratio=quantile(sizes, 0.5),
            p90_abs_error_ratio=quantile(sizes, 0.9),
            max_abs_error_ratio=sizes[-1] if sizes else math.nan,
        )


def summarise(rows: Sequence[ComparedRow[object]]) -> dict[str, float]:
    """Return mean, median, 90th percentile and maximum of |error|, and the coverage and score of the intervals.

    ``coverage_95_ratio`` is the share of reference values inside their 95 % interval, likewise for 50 % and 80 %.
    ``interval_log_width`` and ``interval_score`` are means. These values cover the rows with intervals, and are NaN
    without such rows.
    """
    errors = ErrorSummary.of(row.error_ratio for row in rows)
    with_interval = [row for row in rows if row.intervals]
    return {
        "held_out": errors.points,
        "mean_abs_error_ratio": errors.mean_abs_error_ratio,
        "median_abs_error_ratio": errors.median_abs_error_ratio,
        "p90_abs_error_ratio": errors.p90_abs_error_ratio,
        "max_abs_error_ratio": errors.max_abs_error_ratio,
        **{f"coverage_{round(100 * level)}_ratio": coverage_ratio(with_interval, level) for level in LEVELS},
        "interval_log_width": _mean([row.log_width for row in with_interval]),
        "interval_score": _mean([row.interval_score for row in with_interval]),
    }


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
