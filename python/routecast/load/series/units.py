"""Units of traffic series: what one number of a file means in bits, per second, per step or as a counter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from routecast.errors import QuantityProblem
from routecast.quantity.parse import parse_bit_rate_bps

__all__ = ["SERIES_UNITS_TEXT", "SeriesUnit", "parse_series_unit", "unit_in_name"]

SERIES_UNITS_TEXT = (
    '"bit/s", "Mbit/s", "byte/s", "bit per step", "byte per step", "octet counter32", "octet counter64"'
)
"""What messages say is allowed."""

_PER_STEP = re.compile(r"(?P<unit>[A-Za-z]+)\s*(?:/|per)\s*step", re.IGNORECASE)
_COUNTER = re.compile(r"(?:octets?|bytes?)\s*counter\s*(?P<bits>32|64)", re.IGNORECASE)
_NAMED_BITS = re.compile(
    r"(?<![A-Za-z])(?P<prefix>[kmgtKMGT]?)(?:(?i:bits?)(?i:\s*/\s*|[ _]?per[ _]?)(?i:s|sec|seconds?)"
    r"|b(?:/s|ps))(?![A-Za-z])"
)
_NAMED_BYTES = re.compile(
    r"(?<![A-Za-z])(?P<prefix>[kmgtKMGT]?)(?:(?i:bytes?|octets?)(?i:\s*/\s*|[ _]?per[ _]?)(?i:s|sec|seconds?)"
    r"|B/s)(?![A-Za-z])"
)
_NAMED_COUNTER = re.compile(r"(?i:if)(?P<wide>HC)?(?:In|Out)Octets", re.IGNORECASE)
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesUnit:
    """What a number of a series means.

    Parameters
    ----------
    bits : float
        Bits that the number 1 stands for.
    per : {"second", "step", "counter"}
        A rate; an amount in one step; the state of a counter that only rises until it wraps.
    counter_bits : int
        Width of a counter (RFC 2863: ``ifInOctets`` has 32 bits, ``ifHCInOctets`` 64).
    """

    bits: float
    per: Literal["second", "step", "counter"]
    counter_bits: int = 64


def parse_series_unit(text: str) -> SeriesUnit:
    """Read the unit of a series.

    Raises
    ------
    QuantityProblem
        The text is no unit of a series.

    Examples
    --------
    >>> parse_series_unit("Mbit/s").bits
    1000000.0
    >>> parse_series_unit("byte per step").per
    'step'
    """
    counter = _COUNTER.fullmatch(text.strip())
    if counter:
        return SeriesUnit(bits=8.0, per="counter", counter_bits=int(counter["bits"]))
    step = _PER_STEP.fullmatch(text.strip())
    rate = f"{step['unit']}/s" if step else text.strip()
    try:
        return SeriesUnit(bits=parse_bit_rate_bps(f"1 {rate}"), per="step" if step else "second")
    except QuantityProblem as problem:
        raise QuantityProblem(
            text, f'"{text[:60]}" is no unit of a traffic series: write one such as {SERIES_UNITS_TEXT}'
        ) from problem


def unit_in_name(name: str) -> SeriesUnit | None:
    """Return the unit that the name of a column states, None where it states none.

    A name that says bits but not per what (``"traffic (in bits)"``) states none.

    Examples
    --------
    >>> unit_in_name("total_MBITPERSEC").bits
    1000000.0
    """
    counter = _NAMED_COUNTER.search(name)
    if counter:
        return SeriesUnit(bits=8.0, per="counter", counter_bits=64 if counter["wide"] else 32)
    for pattern, bits in ((_NAMED_BITS, 1.0), (_NAMED_BYTES, 8.0)):
        found = pattern.search(name)
        if found:
            return SeriesUnit(bits=bits * _PREFIX[found["prefix"].lower()], per="second")
    return None
