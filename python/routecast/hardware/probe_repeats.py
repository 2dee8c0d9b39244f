"""What a row of repeated measurements says: a typical value that disturbances do not move, and how far they scatter.

Interrupts, neighbours and other processes only ever add time, so the lower quartile is closer to the undisturbed cost
than mean or median are, and one lucky repeat does not decide it as it would the minimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.quantity.quantile import quantile

__all__ = ["scatter_ratio", "typical"]

_TYPICAL = 0.25


def typical(repeats: Sequence[float]) -> float:
    """Return the lower quartile."""
    return quantile(repeats, _TYPICAL)


def scatter_ratio(repeats: Sequence[float]) -> float:
    """Return (median − minimum) / median: 0 where half of the repeats were undisturbed; NaN of fewer than three.

    Examples
    --------
    >>> scatter_ratio([8.0, 10.0, 10.0, 99.0, 10.0])
    0.2
    """
    middle = quantile(repeats, 0.5)
    return (middle - min(repeats)) / middle if len(repeats) >= 3 and middle > 0.0 else math.nan
