"""Where a condition ceases to hold, by halving an interval."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["halved", "last_holding"]


def halved(holds: Callable[[float], bool], low: float, high: float, steps: int) -> tuple[float, float]:
    """Return the interval after halving it ``steps`` times; a condition that holds at ``low`` ceases to hold within it.

    Examples
    --------
    >>> low, high = halved(lambda x: x * x < 2.0, 0.0, 2.0, 30)
    >>> low * low < 2.0 <= high * high, high - low < 1e-8
    (True, True)
    """
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def last_holding(holds: Callable[[float], bool], scale: float, steps: int) -> float:
    """Return up to where a condition holds that holds at 0 and ceases to hold by a million times ``scale``."""
    low, high = 0.0, scale
    while holds(high) and high < 1e6 * scale:
        low, high = high, 2.0 * high
    return halved(holds, low, high, steps)[0]
