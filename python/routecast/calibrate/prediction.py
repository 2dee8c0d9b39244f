"""A predicted maximum throughput with its interval and what limits it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from routecast.calibrate.points import Point
from routecast.calibrate.score import Intervals, Judged

__all__ = ["Limit", "Prediction"]

Limit = Literal["cpu", "link", "nic", "shared", "link and cpu"]
"""``cpu``: the cores; ``link``: the ports; ``nic``: a known packet rate of the cards; ``shared``: a limit common to all
cores that the calibration found (PCIe, memory, a virtual machine behind the router); ``link and cpu``: some flows fill
their share of a link, the others their core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a calibrated router should forward at a point's conditions.

    Parameters
    ----------
    point : Point
        The conditions (its measured rate is not looked at).
    throughput_pps : float
        Predicted maximum throughput, frames per second over all ports.
    limit : Limit
        The resource that limits.
    intervals : Intervals
        Prediction intervals of one measurement, frames per second; empty where the law knows none.
    """

    point: Point
    throughput_pps: float
    limit: Limit
    intervals: Intervals = field(default_factory=dict)

    @property
    def low_pps(self) -> float:
        """Lower end of the 95 % interval; NaN where there is none."""
        return self.intervals.get(0.95, (math.nan, math.nan))[0]

    @property
    def high_pps(self) -> float:
        """Upper end of the 95 % interval; NaN where there is none."""
        return self.intervals.get(0.95, (math.nan, math.nan))[1]

    @property
    def judged(self) -> Judged:
        """The prediction beside the measured rate."""
        return Judged(
            measured=self.point.throughput_pps, predicted=self.throughput_pps, intervals=self.intervals
        )

    @property
    def error_ratio(self) -> float:
        """Signed relative error against the measured rate: predicted/measured - 1."""
        return self.judged.error_ratio
