"""Conversion of numbers into texts for screens, with four digits and a prefix."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = [
    "format_binary_bytes",
    "format_bps",
    "format_bytes",
    "format_duration",
    "format_energy",
    "format_frequency",
    "format_power",
    "format_pps",
    "format_ratio",
    "format_span",
    "prefixed",
    "without_exponent",
]


def format_pps(rate_pps: float) -> str:
    """Write a frame rate for a screen.

    Examples
    --------
    >>> format_pps(14_880_952.4)
    '14.88 Mpps'
    >>> format_pps(0.002976)
    '0.002976 pps'
    """
    return _format(rate_pps, "pps")


def format_bps(rate_bps: float) -> str:
    """Write a bit rate for a screen.

    Examples
    --------
    >>> format_bps(10e9)
    '10 Gbit/s'
    """
    return _format(rate_bps, "bit/s")


def format_bytes(size_bytes: float) -> str:
    """Write a size for a screen, below 100 kB in bytes."""
    return f"{size_bytes:.6g} B" if abs(size_bytes) < 1e5 else _format(size_bytes, "B")


def format_binary_bytes(size_bytes: float) -> str:
    """Write a size with binary prefixes, as is usual for caches; an infinite size is a dash.

    Examples
    --------
    >>> format_binary_bytes(32768), format_binary_bytes(96)
    ('32 KiB', '96 B')
    """
    if not math.isfinite(size_bytes):
        return "–"
    for prefix, size in (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)):
        if size_bytes >= size:
            return f"{size_bytes / size:.4g} {prefix}"
    return f"{size_bytes:.4g} B"


def format_duration(time_s: float) -> str:
    """Write a time for a screen.

    Examples
    --------
    >>> format_duration(2.5e-6)
    '2.5 us'
    """
    return _format(time_s, "s")


def format_frequency(frequency_hz: float) -> str:
    """Write a frequency for a screen."""
    return _format(frequency_hz, "Hz")


def format_power(power_w: float) -> str:
    """Write a power for a screen."""
    return _format(power_w, "W")


def format_energy(energy_j: float) -> str:
    """Write an energy for a screen, in kWh from 0.1 kWh on, else in joules.

    Examples
    --------
    >>> format_energy(13.5 * 3.6e6), format_energy(1.2e-7)
    ('13.5 kWh', '120 nJ')
    """
    return f"{energy_j / 3.6e6:.4g} kWh" if abs(energy_j) >= 3.6e5 else _format(energy_j, "J")


def format_ratio(ratio: float, digits: int = 3) -> str:
    """Write a ratio in percent for a screen, without an exponent; a huge one as a multiple.

    Examples
    --------
    >>> format_ratio(0.01234), format_ratio(13.86), format_ratio(2e-7)
    ('1.23 %', '1390 %', '0.00002 %')
    >>> format_ratio(123_456.0), format_ratio(1e308)
    ('123000 times', '1e+308 times')
    """
    if abs(ratio) < _GREATEST_IN_PERCENT:
        return f"{without_exponent(100.0 * ratio, digits)} %"
    return f"{without_exponent(ratio, digits)} times" if math.isfinite(ratio) else f"{100.0 * ratio} %"


def format_span(low: str, high: str) -> str:
    """Write a range from its ends, of which equal ones are written once.

    Examples
    --------
    >>> format_span("1", "64"), format_span("8", "8")
    ('1 to 64', '8')
    """
    return low if low == high else f"{low} to {high}"


def without_exponent(value: float, digits: int, *, signed: bool = False) -> str:
    """Write a number with so many significant digits, as ``.3g`` does, but never as ``1.39e+03``.

    Beyond 1e15 and below 1e-9 the exponent is the shorter one to read, and stays.

    Examples
    --------
    >>> without_exponent(1386.0, 3), without_exponent(-0.25, 3, signed=True), without_exponent(0.0, 3)
    ('1390', '-0.25', '0')
    """
    sign = "+" if signed else ""
    text = f"{value:{sign}.{digits}g}"
    if "e" not in text or not _LEAST_PLAIN <= abs(value) < _GREATEST_PLAIN:
        return text
    decimals = max(digits - 1 - math.floor(math.log10(abs(float(text)))), 0)
    plain = f"{float(text):{sign}.{decimals}f}"
    return plain.rstrip("0").rstrip(".") if decimals else plain


_GREATEST_IN_PERCENT = 1e4
"""From this ratio on, a multiple is easier to read than a percentage."""
_LEAST_PLAIN, _GREATEST_PLAIN = 1e-9, 1e15
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
_COUNTED_UNITS = frozenset({"pps", "bit/s", "B"})
"""Units without prefixes below 1: "mpps" would look like millions, and files refuse it."""


def prefixed(values: Iterable[float], unit: str) -> tuple[float, str]:
    """Return a divisor, and the unit with its prefix, so that the largest value becomes 1 to 1000.

    All values of an axis or a column share one prefix, so that they compare at a glance.

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
    step, prefix = next((step for step in _STEPS if greatest >= step[0]), _STEPS[-1])
    return step, prefix + unit


def _format(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return f"{value} {unit}"
    if value == 0.0:
        return f"0 {unit}"
    rounded = float(f"{value:.4g}")
    if unit in _COUNTED_UNITS and abs(rounded) < 1.0:
        return f"{rounded:.4g} {unit}"
    for step, prefix in _STEPS:
        if abs(rounded) >= step:
            return f"{rounded / step:.4g} {prefix}{unit}"
    return f"{rounded / 1e-12:.4g} p{unit}"
