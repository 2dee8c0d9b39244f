"""Ticks of axes: round steps; on logarithmic axes 1, 2 and 5 of each decade, or only decades if there are many."""

from __future__ import annotations

import math

__all__ = ["few_ticks", "linear_ends", "log_ticks", "nice_step"]

_MAX_DECADES = 4


def log_ticks(minimum: float, maximum: float) -> tuple[float, ...]:
    """Return round values that enclose the range from ``minimum`` to ``maximum``, both > 0.

    Examples
    --------
    >>> log_ticks(2.4, 40.0)
    (2.0, 5.0, 10.0, 20.0, 50.0)
    """
    first, last = math.floor(math.log10(minimum)), math.ceil(math.log10(maximum))
    if last - first > _MAX_DECADES:
        return tuple(10.0**n for n in range(first, last + 1))
    ticks = [factor * 10.0**n for n in range(first, last + 1) for factor in (1.0, 2.0, 5.0)]
    low = max(tick for tick in ticks if tick <= minimum * 1.0001)
    high = min(tick for tick in ticks if tick >= maximum * 0.9999)
    high = high if high > low else next(tick for tick in ticks if tick > low)
    return tuple(tick for tick in ticks if low <= tick <= high)


def nice_step(span: float) -> float:
    """Return the largest step of 1, 2 or 5 times a power of ten that fits at least five times into the span."""
    power = 10.0 ** math.floor(math.log10(span / 5.0))
    return max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= span / 5.0 * 1.0001)


def linear_ends(minimum: float, maximum: float, *, margin_ratio: float = 0.06) -> tuple[float, float]:
    """Return round ends of an axis around values with a margin; the axis includes 0 if the values are near enough to 0.

    Examples
    --------
    >>> linear_ends(5.81, 6.1)
    (5.75, 6.15)
    >>> linear_ends(1.0, 9.0)
    (0.0, 10.0)
    """
    size = max(abs(minimum), abs(maximum))
    # Values that differ only by rounding count as equal, and an axis needs a length.
    spread = maximum - minimum if maximum - minimum > 1e-9 * size else size or 1.0
    low, high = minimum - margin_ratio * spread, maximum + margin_ratio * spread
    if 0.0 <= minimum < 0.67 * maximum:
        low = 0.0
    elif 0.0 >= maximum > 0.67 * minimum:
        high = 0.0
    step = nice_step(high - low)
    low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    return float(f"{low:.12g}"), float(f"{high:.12g}")


def few_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return at most six round ticks of an axis, for small figures.

    Examples
    --------
    >>> few_ticks(0.0, 2.2)
    (0.0, 0.5, 1.0, 1.5, 2.0)
    """
    step = nice_step(high - low)
    while (high - low) / step > 5.001:
        # 1, 2, 5, 10, …
        step *= 2.5 if f"{step:e}"[0] == "2" else 2.0
    first = math.ceil(low / step - 1e-9)
    return tuple(float(f"{step * number:.12g}") for number in range(first, math.floor(high / step + 1e-9) + 1))
