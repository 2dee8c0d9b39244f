"""Means of replications with their 95 % intervals (semantics S10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Estimate", "estimate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean and the half-width of its 95 % interval, which is NaN where there is none."""

    value: float
    half_width: float = math.nan

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean where there is no interval."""
        return self.value if math.isnan(self.half_width) else self.value - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval; the mean where there is no interval."""
        return self.value if math.isnan(self.half_width) else self.value + self.half_width

    def scaled(self, factor: float) -> Estimate:
        """Return the same in another unit."""
        return Estimate(value=self.value * factor, half_width=self.half_width * abs(factor))


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of independent values and its 95 % interval by Student's t.

    One value has no interval; no value, or one that is NaN, gives NaN.
    """
    count = len(values)
    if not count or any(math.isnan(value) for value in values):
        return Estimate(value=math.nan)
    mean = math.fsum(values) / count
    if count < 2:
        return Estimate(value=mean)
    from scipy.special import stdtrit  # scipy is loaded where it is used

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    quantile = float(stdtrit(count - 1, 0.975))
    return Estimate(value=mean, half_width=quantile * math.sqrt(variance / count))
