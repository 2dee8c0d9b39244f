"""Ranges that several fields of router models share.

The simulator counts picoseconds in 64 bits, which hold 1.8e7 s; every time of a model stays far below that.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CONTENTION_FACTORS",
    "FREQUENCIES_HZ",
    "LINK_RATES_BPS",
    "LONGEST_BYTE_S",
    "LONGEST_S",
    "MAX_CONTENTION",
    "MAX_FRAMES",
    "MAX_INTERRUPTIONS_HZ",
    "MAX_QUANTILES",
    "MAX_SCV",
    "MAX_UNITS",
    "SHORTEST_SLICE_S",
    "SPEED_RATIOS",
]

MAX_UNITS: Final = 65_536
"""Most units of a pool; more is probably a typing error."""

MAX_FRAMES: Final = 2**31 - 1
"""Longest queue, ring or batch."""

LONGEST_S: Final = 1e5
"""Longest time of a model, about a day. No trial is longer, so a greater value would change nothing."""

LONGEST_BYTE_S: Final = 10.0
"""Longest work for a byte: a frame of 10 kB then takes the longest time of a model."""

SHORTEST_SLICE_S: Final = 10e-9
"""Shortest time slice of a scheduler: shorter than a switch between threads."""

MAX_CONTENTION: Final = 1e6
"""Greatest factor by which units slow each other down, and greatest coefficient of it."""

MAX_INTERRUPTIONS_HZ: Final = 1e8
"""Most interruptions per second of work; interruptions that are more frequent belong to the service."""

MAX_QUANTILES: Final = 100_001
"""Longest table of quantiles."""

MAX_SCV: Final = 1e6
"""Greatest squared coefficient of variation."""

CONTENTION_FACTORS: Final = (1.0 / MAX_CONTENTION, MAX_CONTENTION)
"""Least and greatest factor on the service time."""

LINK_RATES_BPS: Final = (1.0, 1e18)
"""Least and greatest rate of a link."""

FREQUENCIES_HZ: Final = (1.0, 1e15)
"""Least and greatest clock of a unit."""

SPEED_RATIOS: Final = (1e-6, 1e6)
"""Least and greatest speed of a unit relative to another."""
