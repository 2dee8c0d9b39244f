"""Traffic over days: the offered bit rate in equal steps, as a link counter or a flow collector reports it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

__all__ = ["DAY_S", "TrafficSeries"]

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSeries:
    """Mean bit rate of each of equal steps.

    Parameters
    ----------
    step_s : float
        Length of a step.
    l2_bps : tuple of float
        Mean rate during each step; NaN where it is missing.
    start : datetime or None
        Begin of the first step, naive local time; None for a typical day, which begins at midnight.
    source : str
        Where it comes from, for reports.
    notes : tuple of str
        What was found and done on the way here: gaps, zeros, scaling.
    """

    step_s: float
    l2_bps: tuple[float, ...]
    start: datetime | None = None
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """Length of the whole series."""
        return self.step_s * len(self.l2_bps)

    @property
    def peak_bps(self) -> float:
        """Highest rate of a step; NaN where every step is missing."""
        return max((rate for rate in self.l2_bps if not math.isnan(rate)), default=float("nan"))
