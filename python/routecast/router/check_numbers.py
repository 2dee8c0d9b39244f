"""What numbers of a router model may be: whole, finite, and neither too small nor too large to mean anything.

The simulator counts time in picoseconds, of which 64 bits hold 1.8e7 s. Every single time stays far below that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from routecast.quantity.did_you_mean import did_you_mean

__all__ = [
    "FREQUENCIES_HZ",
    "LINK_RATES_BPS",
    "LONGEST_BYTE_S",
    "LONGEST_S",
    "MAX_FRAMES",
    "MAX_UNITS",
    "MOST_CONTENTION",
    "SHORTEST_SLICE_S",
    "SPEED_RATIOS",
    "duration",
    "known",
    "not_negative",
    "positive",
    "time_slice",
    "whole",
    "within",
]

MAX_UNITS: Final = 65_536
"""Most units of a pool; more is taken for a typing error."""

MAX_FRAMES: Final = 2**31 - 1
"""Longest queue, ring or batch."""

LONGEST_S: Final = 1e5
"""Longest time of a model, about a day: longer than any trial, so more changes nothing."""

LONGEST_BYTE_S: Final = 10.0
"""Longest work for a byte: a frame of 10 kB then takes as long as a time may be."""

SHORTEST_SLICE_S: Final = 10e-9
"""Shortest time slice of a scheduler: less than a switch from one thread to another takes."""

MOST_CONTENTION: Final = 1e6
"""Greatest factor by which units slow each other down, and greatest coefficient of it."""

LINK_RATES_BPS: Final = (1.0, 1e18)
"""Least and greatest rate of a link."""

FREQUENCIES_HZ: Final = (1.0, 1e15)
"""Least and greatest clock of a unit."""

SPEED_RATIOS: Final = (1e-6, 1e6)
"""Least and greatest speed of a unit relative to another."""

Add = Callable[[str, str], None]


def known(place: str, got: str, allowed: Iterable[str], add: Add) -> bool:
    """Report a name that is not among those that are allowed; return whether it is."""
    names = list(allowed)
    if got in names:
        return True
    add(place, f'got "{got}": {did_you_mean(str(got), names)}')
    return False


def whole(place: str, got: object, highest: int, what: str, add: Add) -> bool:
    """Report what is no whole number from 1 to ``highest``; return whether it is one."""
    if isinstance(got, int) and not isinstance(got, bool) and 1 <= got <= highest:
        return True
    add(place, f"got {got}: {what} is a whole number from 1 to {highest}")
    return False


def positive(place: str, got: float, what: str, add: Add) -> bool:
    """Report what is no finite number > 0; return whether it is one."""
    if math.isfinite(got) and got > 0.0:
        return True
    add(place, f"got {got}: {what} is a finite number > 0")
    return False


def not_negative(place: str, got: float, add: Add, *, most: float = math.inf) -> bool:
    """Report what is no finite number >= 0, or more than ``most``; return whether it is one."""
    if not (math.isfinite(got) and got >= 0.0):
        add(place, f"got {got}: allowed is a finite number >= 0")
        return False
    if got > most:
        add(place, f"got {got:g}: at most {most:g} is allowed")
        return False
    return True


def within(place: str, got: float, allowed: tuple[float, float], what: str, unit: str, add: Add) -> bool:
    """Report what is no finite number > 0, or outside of what is allowed; return whether it is inside."""
    if not positive(place, got, what, add):
        return False
    least, most = allowed
    if least <= got <= most:
        return True
    of_unit = f" {unit}" if unit else ""
    add(place, f"got {got:g}{of_unit}: {what} is from {least:g} to {most:g}{of_unit}")
    return False


def duration(place: str, got_s: float, add: Add, *, most_s: float = LONGEST_S) -> bool:
    """Report a time that is negative, not finite, or longer than ``most_s``; return whether it is none of them."""
    if math.isfinite(got_s) and got_s > most_s:
        add(place, f"got {got_s:g} s: a time of at most {most_s:g} s is allowed")
        return False
    return not_negative(place, got_s, add)


def time_slice(place: str, got_s: float, add: Add) -> bool:
    """Report a time slice that is too short to be one, or too long; return whether it is neither."""
    return within(place, got_s, (SHORTEST_SLICE_S, LONGEST_S), "a time slice", "s", add)
