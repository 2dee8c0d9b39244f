"""Devices that make their frames themselves: pure processor cost, timed without a tester."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from routecast.quantity.schema import field, value

__all__ = ["SelfTimed", "SelfTimedCounts"]


@value
class SelfTimedCounts:
    """What a device that makes its frames itself forwarded, as fast as it could."""

    frame_bytes: int = field("With the FCS (S1), which such a device has none of: it works on four bytes less")
    duration_s: float = field("Between the two readings of the counters")
    busy_s: float = field(
        "Of it, for how long the device had its core: what other tasks took of the core is not the device's cost"
    )
    received_frames: int = field("Over all ports")
    forwarded_frames: int = field("Over all ports; what is received and not forwarded was dropped")

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
