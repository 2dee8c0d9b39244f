"""Looks at a router that is not there."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from routecast.lab.watch import Saturation, Watched

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
"""Midnight before a Monday."""
NOT_SEEN = Saturation(reason="3 full polls followed a full one, and 10 are needed")


def saturation_at(pps: float, spread: float = 0.15) -> Saturation:
    """Return a load at saturation whose logarithm has this spread."""
    return Saturation(pps=pps, low_pps=pps * math.exp(-1.96 * spread), high_pps=pps * math.exp(1.96 * spread))


def look(
    rate_pps: float = 1e6,
    saturation: Saturation = NOT_SEEN,
    lost: dict[str, int] | None = None,
    *,
    interface: str = "eth0",
    netns: str | None = None,
) -> Watched:
    return Watched(
        interface=interface,
        netns=netns,
        instances=(),
        duration_s=3.0,
        rate_pps=rate_pps,
        busy_ratio=0.4,
        packets_per_poll=5.0,
        full_polls=0,
        share_ratio=1.0,
        own_ratio=0.02,
        frame_bytes=64.0,
        ring_frames=256,
        lost=lost or {},
        saturation=saturation,
    )


def day_rate_pps(at: datetime, *, mean_pps: float = 1e6, swing_ratio: float = 0.5) -> float:
    """Return a sine over the day with its peak at 18:00."""
    hours = (at - at.replace(hour=0, minute=0)) / timedelta(hours=1)
    return mean_pps * (1.0 + swing_ratio * math.sin(2.0 * math.pi * (hours - 12.0) / 24.0))
