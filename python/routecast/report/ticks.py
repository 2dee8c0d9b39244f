"""Ticks of logarithmic axes: 1, 2 and 5 of each decade, or whole decades where those would crowd."""

from __future__ import annotations

import math

__all__ = ["log_ticks"]

_MOST_DECADES = 4


def log_ticks(least: float, greatest: float) -> tuple[float, ...]:
    """Return round values from below the least to above the greatest, both more than 0.

    Examples
    --------
    >>> log_ticks(2.4, 40.0)
    (2.0, 5.0, 10.0, 20.0, 50.0)
    """
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(greatest))
    if last - first > _MOST_DECADES:
        return tuple(10.0**n for n in range(first, last + 1))
    ticks = [factor * 10.0**n for n in range(first, last + 1) for factor in (1.0, 2.0, 5.0)]
    low = max(tick for tick in ticks if tick <= least * 1.0001)
    high = min(tick for tick in ticks if tick >= greatest * 0.9999)
    high = high if high > low else next(tick for tick in ticks if tick > low)
    return tuple(tick for tick in ticks if low <= tick <= high)
