"""Quantities in files, with or without a unit, and interpolation between two of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from routecast.quantity._units import dimension, dimension_of, factor

__all__ = ["Amount", "amount_of", "between", "coded_levels", "whole_between"]

_TEXT = re.compile(r"\s*([+-]?(?:\d[\d_,]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?)\s*([A-Za-zµμ]+(?:/[A-Za-zµμ]+)?)\s*")
_INDIVISIBLE = ("byte", "frame")
"""Base units whose quantities are whole numbers."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with a unit, or a plain number, as files write counts and ratios."""

    number: float
    unit: str = ""
    dimension: str = ""

    def in_unit(self, unit: str) -> float:
        """Return the amount in another unit of the same dimension."""
        return self.number if unit == self.unit else self.number * factor(self.unit, unit)


def amount_of(value: object) -> Amount | None:
    """Read a value of a file as a quantity; None for a Boolean, a name, a mix of frame sizes or a table.

    Examples
    --------
    >>> amount_of("1.5 us").number, amount_of(4).unit, amount_of("IMIX"), amount_of(True)
    (1.5, '', None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Amount(float(value)) if math.isfinite(value) else None
    return _written_amount(value) if isinstance(value, str) else None


@lru_cache(maxsize=4096)
def _written_amount(text: str) -> Amount | None:
    match = _TEXT.fullmatch(text)
    if not match:
        return None
    kind = dimension(match[2])
    if kind is None:
        return None
    return Amount(float(match[1].replace(",", "")), match[2], kind)


def between(
    low: Amount, high: Amount, coded: float, *, is_log: bool = False, is_whole: bool = False
) -> tuple[str | int | float, float]:
    """Interpolate between two amounts; return the value as a file writes it, and its coded level after rounding.

    ``low`` and ``high`` have the same dimension and the coded levels -1 and +1. The value has the unit of ``low``.
    ``coded`` is the coded level of the value; levels beyond -1 and +1 extrapolate. With ``is_log`` equal steps are
    equal ratios, and ``low`` and ``high`` are > 0. ``is_whole`` rounds to a whole number, of bytes or frames where the
    unit counts these.

    Examples
    --------
    >>> between(amount_of("64 B"), amount_of("1518 B"), 0.0, is_whole=True)
    ('791 B', 0.0)
    >>> between(amount_of(1), amount_of(8), 0.0, is_whole=True)
    (4, -0.1428571428571429)
    """
    first, last = low.number, high.in_unit(low.unit)
    if first == last:
        return _file_value(first, low.unit, is_whole=is_whole), coded
    if is_whole:
        rounded, level = whole_between(low, high, is_log=is_log)(coded)
        if not low.unit:
            return rounded, level
        base = _whole_unit(low)
        return f"{rounded} {'B' if base == 'byte' else 'frames' if base == 'frame' else low.unit}", level
    return _file_value(_interpolated(first, last, coded, is_log=is_log), low.unit, is_whole=False), coded


def whole_between(low: Amount, high: Amount, *, is_log: bool = False) -> Callable[[float], tuple[int, float]]:
    """Return the function from a coded level to the nearest whole number, as of :func:`between`, and its coded level.

    ``low`` and ``high`` differ.

    Examples
    --------
    >>> whole_between(amount_of(1), amount_of(8))(0.0)
    (4, -0.1428571428571429)
    """
    first, last, base = low.number, high.in_unit(low.unit), _whole_unit(low)
    scale = factor(low.unit, base) if base != low.unit else 1.0

    def nearest(coded: float) -> tuple[int, float]:
        number = round(_interpolated(first, last, coded, is_log=is_log) * scale)
        return number, _coded(number / scale, first, last, is_log=is_log)

    return nearest


def _whole_unit(amount: Amount) -> str:
    return next((unit for unit in _INDIVISIBLE if amount.dimension == dimension_of(unit)), amount.unit)


def _interpolated(first: float, last: float, coded: float, *, is_log: bool) -> float:
    share = (coded + 1.0) / 2.0
    return first * (last / first) ** share if is_log else first + (last - first) * share


def _file_value(value: float, unit: str, *, is_whole: bool) -> str | int | float:
    if unit:
        return f"{value:.12g} {unit}"
    return round(value) if is_whole else value


def _coded(value: float, first: float, last: float, *, is_log: bool) -> float:
    """Return the coded level of a value between the first (-1) and the last (+1)."""
    if is_log:
        return 2.0 * math.log(value / first) / math.log(last / first) - 1.0 if value > 0.0 else -1.0
    return 2.0 * (value - first) / (last - first) - 1.0


def coded_levels(amounts: list[Amount], *, is_log: bool) -> list[float]:
    """Return the coded levels of quantities, the first at -1 and the last at +1."""
    unit = amounts[0].unit
    numbers = [amount.in_unit(unit) for amount in amounts]
    inner = [_coded(number, numbers[0], numbers[-1], is_log=is_log) for number in numbers[1:-1]]
    return [-1.0, *inner, 1.0]
