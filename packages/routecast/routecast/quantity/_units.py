"""The units that texts may have, with their dimensions and their sizes in base units."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pint

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
_COMMON_UNITS = {
    "[time]": {
        "second": 1.0,
        "s": 1.0,
        "ms": 1e-3,
        "us": 1e-6,
        "µs": 1e-6,
        "ns": 1e-9,
        "ps": 1e-12,
        "min": 60.0,
        "h": 3600.0,
    },
    "1 / [time]": {"hertz": 1.0, "Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "[bit] / [time]": {"bit/second": 1.0, "bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12},
    "[byte]": {"byte": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1048576.0},
    "[byte] / [time]": {"byte/second": 1.0, "B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9},
    "[frame]": {"frame": 1.0, "frames": 1.0, "packet": 1.0, "packets": 1.0},
    "[frame] / [time]": {
        "frame/second": 1.0,
        "frames/s": 1.0,
        "packets/s": 1.0,
        "pps": 1.0,
        "kpps": 1e3,
        "Mpps": 1e6,
        "Gpps": 1e9,
    },
    "[cycle]": {"cycle": 1.0, "cycles": 1.0},
    "[cycle] / [byte]": {"cycle/byte": 1.0, "cycles/B": 1.0},
    "[time] / [byte]": {"second/byte": 1.0, "ns/B": 1e-9, "ps/B": 1e-12},
    "[power]": {"watt": 1.0, "W": 1.0, "mW": 1e-3, "kW": 1e3},
    "[power] * [time]": {"joule": 1.0, "J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "nJ": 1e-9},
    "[voltage]": {"volt": 1.0, "V": 1.0, "mV": 1e-3},
    "[transfer] / [time]": {"transfer/second": 1.0, "MT/s": 1e6, "GT/s": 1e9},
}
"""Units that files use often, by dimension, with their sizes in base units. For these, Pint need not be imported."""

_DIMENSION_AND_SIZE = {unit: (name, size) for name, units in _COMMON_UNITS.items() for unit, size in units.items()}
_UNIT = re.compile(r"[A-Za-zµμ]{1,12}(?:/[A-Za-zµμ]{1,12})?")


@lru_cache(maxsize=1)
def _registry() -> pint.UnitRegistry[float]:
    import pint  # slow to import, and only needed for units that are not common

    registry: pint.UnitRegistry[float] = pint.UnitRegistry(None)
    for definition in (*_PREFIXES, *_UNITS):
        registry.define(definition)
    return registry


@lru_cache(maxsize=1024)
def dimension(unit: str) -> str | None:
    """Return the dimension of a unit as text, None for an unknown unit."""
    if unit in _DIMENSION_AND_SIZE:
        return _DIMENSION_AND_SIZE[unit][0]
    if not _UNIT.fullmatch(unit):
        return None
    try:
        return str(_registry().parse_units(unit).dimensionality)
    except Exception:  # a text that the parser refuses is not a unit
        return None


@lru_cache(maxsize=64)
def dimension_of(base: str) -> str:
    """Return the dimension of a base unit as text."""
    if base in _DIMENSION_AND_SIZE:
        return _DIMENSION_AND_SIZE[base][0]
    return str(_registry().parse_units(base).dimensionality)


@lru_cache(maxsize=1024)
def factor(unit: str, base: str) -> float:
    """Return the number of base units in a unit."""
    if unit in _DIMENSION_AND_SIZE and _DIMENSION_AND_SIZE.get(base) == (_DIMENSION_AND_SIZE[unit][0], 1.0):
        return _DIMENSION_AND_SIZE[unit][1]
    registry = _registry()
    return float(registry.Quantity(1.0, registry.parse_units(unit)).to(registry.parse_units(base)).magnitude)
