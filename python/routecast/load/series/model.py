"""Traffic over days: the offered bit rate in equal steps, as a link counter or a flow collector reports it."""

from __future__ import annotations

import math
from datetime import datetime

from routecast.quantity.schema import field, value

__all__ = ["DAY_S", "TrafficSeries"]

DAY_S = 86_400.0


@value
class TrafficSeries:
    """Mean bit rate of each of equal steps."""

    step_s: float = field("Length of a step")
    l2_bps: tuple[float, ...] = field("Mean rate during each step; NaN where it is missing")
    start: datetime | None = field(
        "Begin of the first step, naive local time; None for a typical day, which begins at midnight", default=None
    )
    source: str = field("Where it comes from, for reports", default="")
    notes: tuple[str, ...] = field("What was found and done on the way here: gaps, zeros, scaling", default=())

    @property
    def duration_s(self) -> float:
        """Length of the whole series."""
        return self.step_s * len(self.l2_bps)

    @property
    def peak_bps(self) -> float:
        """Highest rate of a step; NaN where every step is missing."""
        return max((rate for rate in self.l2_bps if not math.isnan(rate)), default=float("nan"))
