"""How far a model is from samples that it was not fitted to: median, 90th percentile, greatest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from routecast.quantity.quantile import quantile

__all__ = ["ErrorSummary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Absolute errors over the measured power; NaN where there was nothing to predict."""

    count: int
    median_ratio: float
    p90_ratio: float
    max_ratio: float

    @classmethod
    def of(cls, error_ratio: Sequence[float]) -> ErrorSummary:
        """Summarise errors; percentiles lie between neighbours in proportion."""
        if not error_ratio:
            return cls(count=0, median_ratio=math.nan, p90_ratio=math.nan, max_ratio=math.nan)
        errors = sorted(error_ratio)
        return cls(
            count=len(errors),
            median_ratio=quantile(errors, 0.5),
            p90_ratio=quantile(errors, 0.9),
            max_ratio=errors[-1],
        )
