"""Devices that make their frames themselves: pure processor cost, timed without a tester."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["SelfTimed", "SelfTimedCounts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTimedCounts:
    """What a device that makes its frames itself forwarded, as fast as it could.

    Parameters
    ----------
    frame_bytes : int
        With the FCS (S1), which such a device has none of: it works on four bytes less.
    duration_s : float
        Between the two readings of the counters.
    busy_s : float
        Of it, for how long the device had its core: what other tasks took of the core is not the device's cost.
    received_frames, forwarded_frames : int
        Over all ports; what is received and not forwarded was dropped.
    """

    frame_bytes: int
    duration_s: float
    busy_s: float
    received_frames: int
    forwarded_frames: int

    @property
    def forwarded_pps(self) -> float:
        """Frames forwarded in a second on the core, over all ports: the throughput, since no frame waits for a wire."""
        return self.forwarded_frames / self.busy_s

    @property
    def seconds_per_frame(self) -> float:
        """Time that the core spent on a frame."""
        return self.busy_s / self.forwarded_frames if self.forwarded_frames else float("inf")


@runtime_checkable
class SelfTimed(Protocol):
    """A device that can answer for a frame size without a tester.

    ``times_itself`` says whether it does as it is configured. Its throughput is ``self_timed(…).forwarded_pps``; what a
    trial at an offered rate r forwards follows as min(r, throughput), so that an evaluator may answer any load by it.
    """

    @property
    def times_itself(self) -> bool:
        """Whether the device makes its frames itself, as it is configured."""
        ...

    def self_timed(self, frame_bytes: int, duration_s: float) -> SelfTimedCounts:
        """Forward frames of one size as fast as possible for ``duration_s`` and return the counts."""
        ...
