"""A predicted maximum throughput with its interval and what limits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from routecast.calibrate.points import Point

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
    low_pps, high_pps : float
        95 % prediction interval of one measurement; NaN where the law knows none.
    limit : Limit
        The resource that limits.
    """

    point: Point
    throughput_pps: float
    low_pps: float
    high_pps: float
    limit: Limit

    @property
    def error_ratio(self) -> float:
        """Signed relative error against the measured rate: predicted/measured - 1."""
        return self.throughput_pps / self.point.throughput_pps - 1.0
