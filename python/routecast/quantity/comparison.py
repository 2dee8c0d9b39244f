"""Measured or stated values beside their predictions, and the errors between them.

Calibrations, the accuracy board and studies compare in rows of this one type, each for its conditions.
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
"""Chances that the intervals of a prediction hold."""
Intervals: TypeAlias = Mapping[float, tuple[float, float]]
"""Lower and upper ends by the chance that they hold; empty where a model knows none."""

_SCORED = 0.95
_UNKNOWN = (math.nan, math.nan)

Conditions_co = TypeVar("Conditions_co", covariant=True)
Role = Literal["calibrate", "held_out", "predicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow(Generic[Conditions_co]):
    """The measured and the predicted value under some conditions, in one unit.

    ``stated`` is the value of a source for the same conditions: that of another model, or the only known one. Unknown
    values are NaN. ``calibrates`` tells whether the prediction was fitted to the row.
    """

    conditions: Conditions_co
    measured: float = math.nan
    predicted: float
    intervals: Intervals = field(default_factory=dict)
    stated: float = math.nan
    calibrates: bool = False

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval; NaN where there is none."""
        return self.intervals.get(_SCORED, _UNKNOWN)[0]

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval; NaN where there is none."""
        return self.intervals.get(_SCORED, _UNKNOWN)[1]

    @property
    def known(self) -> float:
        """The value that the prediction is compared with: the measured one, or else the stated one."""
        return self.stated if math.isnan(self.measured) else self.measured

    @property
    def role(self) -> Role:
        """The role of the row: it calibrates, it judges the calibration, or it is only predicted."""
        if self.calibrates:
            return "calibrate"
        return "predicted" if math.isnan(self.known) else "held_out"

    @property
    def error_ratio(self) -> float:
        """Signed relative error of the prediction; NaN where nothing is known."""
        return self.error_ratio_of(self.predicted)

    def error_ratio_of(self, value: float) -> float:
        """Return the signed relative error of another model's value, value/known - 1; NaN where 0 is known."""
        return value / self.known - 1.0 if self.known else math.nan

    def is_inside(self, level: float = _SCORED) -> bool:
        """Whether an interval holds the known value."""
        low, high = self.intervals.get(level, _UNKNOWN)
        return low <= self.known <= high

    @property
    def is_covered(self) -> bool:
        """Whether the 95 % interval holds the known value."""
        return self.is_inside()

    @property
    def log_width(self) -> float:
        """Natural logarithm of the upper over the lower end of the 95 % interval."""
        return math.log(self.high / self.low)

    @property
    def interval_score(self) -> float:
        """Width of the 95 % interval plus 40 times what the known value misses it by, in natural logarithms.

        Lower is better: it is least in expectation for the true quantiles (Winkler 1972; Gneiting and Raftery 2007, J.
        Am. Stat. Assoc. 102, eq. 43). A score of 0.4 is that of intervals of ±22 % that always hold.
        """
        missed = max(math.log(self.low / self.known), math.log(self.known / self.high), 0.0)
        return self.log_width + 2.0 / (1.0 - _SCORED) * missed


Compared = TypeVar("Compared", bound=ComparedRow[object])


def held_out(rows: Iterable[Compared]) -> tuple[Compared, ...]:
    """Return the rows that judge a calibration, whose known values it has not seen."""
    return tuple(row for row in rows if row.role == "held_out")


def coverage_ratio(rows: Iterable[ComparedRow[object]], level: float = _SCORED) -> float:
    """Return the share of rows whose interval holds the known value; NaN without rows."""
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
        """Summarise errors; NaN everywhere if there is none."""
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

    ``coverage_95_ratio`` is the share of known values inside their 95 % interval, likewise 50 and 80;
    ``interval_log_width`` and ``interval_score`` are means. These three are over rows with intervals, and NaN without
    any.
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
