"""Devices that make their frames themselves: the time of their core per frame is measured without a tester."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from routecast.quantity.schema import field, value

__all__ = ["SelfTimed", "SelfTimedCounts"]


@value
class SelfTimedCounts:
    """Counts of a device that makes its frames itself and forwards them as fast as it can."""

    frame_bytes: int = field("With the FCS (S1); the device itself works on frames without it, four bytes less")
    duration_s: float = field("Between the two readings of the counters")
    busy_s: float = field("Part of it in which the device had its core, without the time of other tasks")
    received_frames: int = field("Over all ports")
    forwarded_frames: int = field("Over all ports; the other received frames were dropped")

    @property
    def forwarded_pps(self) -> float:
        """Frames forwarded per second of the core, over all ports."""
        return self.forwarded_frames / self.busy_s

    @property
    def seconds_per_frame(self) -> float:
        """Time of the core per frame."""
        return self.busy_s / self.forwarded_frames if self.forwarded_frames else float("inf")


@runtime_checkable
class SelfTimed(Protocol):
    """A device that can measure its own throughput for a frame size, without a tester.

    The throughput is ``self_timed(…).forwarded_pps``; at an offered rate r it forwards min(r, throughput).
    """

    @property
    def times_itself(self) -> bool:
        """Whether the device, as configured, makes its frames itself."""
        ...

    def self_timed(self, frame_bytes: int, duration_s: float) -> SelfTimedCounts:
        """Forward frames of one size as fast as possible for ``duration_s`` and return the counts."""
        ...
