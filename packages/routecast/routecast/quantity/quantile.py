"""Quantiles of lists of values."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["quantile"]


def quantile(values: Sequence[float], probability: float) -> float:
    """Return a quantile by linear interpolation (type 7 of Hyndman and Fan 1996); NaN without values.

    Examples
    --------
    >>> quantile([4.0, 1.0, 2.0], 0.75)
    3.0
    """
    ordered = sorted(values)
    if not ordered:
        return math.nan
    position = probability * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])
