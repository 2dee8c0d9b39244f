"""The units that texts may have, their dimensions, and how many of a base unit each of them is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pint

__all__ = ["dimension", "dimension_of", "factor"]

_PREFIXES = (
    "pico- = 1e-12 = p-",
    "nano- = 1e-9 = n-",
    "micro- = 1e-6 = µ- = μ- = u-",
    "milli- = 1e-3 = m-",
    "kilo- = 1e3 = k- = K-",
    "mega- = 1e6 = M-",
    "giga- = 1e9 = G-",
    "tera- = 1e12 = T-",
    "kibi- = 1024 = Ki-",
    "mebi- = 1048576 = Mi-",
    "gibi- = 1073741824 = Gi-",
)
_UNITS = (
    "second = [time] = s = sec",
    "minute = 60 * second = min",
    "hour = 60 * minute = h",
    "hertz = 1 / second = Hz",
    "bit = [bit]",
    "byte = [byte] = B = octet",
    "frame = [frame] = frame = packet = pkt",
    "pps = frame / second = pps = fps",
    "bps = bit / second",
    "cycle = [cycle] = cycle = clock",
    "watt = [power] = W",
    "joule = watt * second = J",
    "volt = [voltage] = V",
    "transfer = [transfer] = T",
)
_UNIT = re.compile(r"[A-Za-zµμ]{1,12}(?:/[A-Za-zµμ]{1,12})?")


@lru_cache(maxsize=1)
def _registry() -> pint.UnitRegistry[float]:
    import pint  # half a second, only where text is parsed

    registry: pint.UnitRegistry[float] = pint.UnitRegistry(None)
    for definition in (*_PREFIXES, *_UNITS):
        registry.define(definition)
    return registry


@lru_cache(maxsize=1024)
def dimension(unit: str) -> str | None:
    """Return the dimension of a unit as text, None for an unknown unit."""
    if not _UNIT.fullmatch(unit):
        return None
    try:
        return str(_registry().parse_units(unit).dimensionality)
    except Exception:  # whatever the parser dislikes is not a unit
        return None


@lru_cache(maxsize=64)
def dimension_of(base: str) -> str:
    """Return the dimension of a base unit as text."""
    return str(_registry().parse_units(base).dimensionality)


@lru_cache(maxsize=1024)
def factor(unit: str, base: str) -> float:
    """Return how many base units one unit is."""
    registry = _registry()
    return float(registry.Quantity(1.0, registry.parse_units(unit)).to(registry.parse_units(base)).magnitude)
