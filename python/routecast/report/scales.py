"""Units of axes and columns: one prefix for all values, so that they can be compared at a glance."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["prefixed"]

_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


def prefixed(values: Iterable[float], unit: str) -> tuple[float, str]:
    """Return what to divide values by, and the unit with its prefix, so that the largest is 1 to 1000.

    Examples
    --------
    >>> prefixed([0.0, 14_880_952.4], "pps")
    (1000000.0, 'Mpps')
    >>> prefixed([], "s")
    (1.0, 's')
    """
    greatest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if not unit or greatest == 0.0:
        return 1.0, unit
    step, prefix = next((one for one in _STEPS if greatest >= one[0]), _STEPS[-1])
    return step, prefix + unit
