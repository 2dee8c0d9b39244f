"""Predictions of maximum throughput with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from routecast.calibration._posterior import central_intervals, shortest_intervals
from routecast.evaluate.points import Point
from routecast.quantity.comparison import LEVELS, ComparedRow, Intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Limit", "Prediction", "intervals"]


def intervals(logs: Floats, weights: Floats, *, beyond: Sequence[int] = ()) -> list[Intervals]:
    """Intervals of each column of (J, n) weighted samples of the logarithm of a rate.

    Those of the columns ``beyond`` the most measured cores are the shortest, the others have equal tails. Beyond them
    the rate ends abruptly above, where the cores do not slow each other, and has a long tail below, of locks and
    ceilings: an interval with equal tails leaves out the former for the sake of the latter.
    """
    ends = central_intervals(logs, weights, LEVELS)
    if len(beyond):
        ends[:, :, beyond] = shortest_intervals(logs[:, beyond], weights, LEVELS)
    rows = np.exp(ends).transpose(2, 0, 1).tolist()
    return [{level: (low, high) for level, (low, high) in zip(LEVELS, row, strict=True)} for row in rows]


Limit = Literal["cpu", "link", "nic", "shared", "link and cpu"]
"""``cpu``: the cores; ``link``: the ports; ``nic``: a known packet rate of the cards; ``shared``: a resource of all
cores that the calibration found (PCIe, memory, a virtual machine behind the router); ``link and cpu``: some flows fill
their share of a link, the others their core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(ComparedRow[Point]):
    """The predicted throughput of a calibrated router at a point, frames per second over all ports.

    The intervals are those of one measurement, empty if the law has none; ``limit`` is the limiting resource.
    """

    limit: Limit

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "series": self.point.series,
            "cores": self.point.cores,
            "frame_bytes": self.point.frame_bytes,
            "flows": self.point.flows,
            "role": self.role,
            "measured_pps": self.measured,
            "predicted_pps": self.predicted,
            "low_pps": self.low_pps,
            "high_pps": self.high_pps,
            "error_ratio": self.error_ratio,
            "limit": self.limit,
        }

    @classmethod
    def of(cls, point: Point, throughput_pps: float, *, limit: Limit, intervals: Intervals | None = None) -> Prediction:
        """Return the prediction of a point beside its measured rate."""
        return cls(
            conditions=point,
            measured=point.throughput_pps,
            predicted=throughput_pps,
            intervals=intervals or {},
            calibrates=point.calibrate,
            limit=limit,
        )

    @property
    def point(self) -> Point:
        """The conditions, with the measured rate."""
        return self.conditions

    @property
    def throughput_pps(self) -> float:
        """Predicted maximum throughput."""
        return self.predicted

    @property
    def low_pps(self) -> float:
        """Lower end of the 95 % interval; NaN where there is none."""
        return self.low

    @property
    def high_pps(self) -> float:
        """Upper end of the 95 % interval; NaN where there is none."""
        return self.high
