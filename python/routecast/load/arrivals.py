"""Arrival processes: constant bit rate, Poisson, on-off bursts, a recorded trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Arrivals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How the frames of one port follow each other; the mean rate is the load's.

    Parameters
    ----------
    kind : {"cbr", "poisson", "on_off", "trace"}
        ``cbr``: equal gaps; ports are staggered evenly. ``poisson``: exponential gaps. ``on_off``: bursts of
        ``burst_frames`` (mean; geometric) at ``peak_ratio`` times the mean rate, exponential pauses between.
        ``trace``: the instants, sizes and flows given, once.
    """

    kind: Literal["cbr", "poisson", "on_off", "trace"] = "cbr"
    burst_frames: float = 1.0
    peak_ratio: float = 1.0
    trace_time_s: tuple[float, ...] = ()
    trace_frame_bytes: tuple[int, ...] = ()
    trace_flow: tuple[int, ...] = ()

    @classmethod
    def cbr(cls) -> Arrivals:
        """Constant bit rate."""
        return cls(kind="cbr")

    @classmethod
    def poisson(cls) -> Arrivals:
        """Poisson process."""
        return cls(kind="poisson")
