"""Conversion of texts with units into numbers: ``"10 Gbit/s"``, ``"64 B"``, ``"1.2 Mpps"``, ``"100 ms"``.

The functions guess nothing. They refuse a number without a unit, a unit of another kind (``"64 Mbit"`` for a frame),
NaN and infinities.

Bits and bytes have different dimensions. A link rate in bytes per second is converted; a frame size in bits is a
mistake.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from routecast.errors import QuantityProblem
from routecast.quantity._units import dimension as unit_dimension
from routecast.quantity._units import dimension_of
from routecast.quantity._units import factor as unit_factor

__all__ = [
    "MAX_FRAME_BYTES",
    "MIN_FRAME_BYTES",
    "parse_bit_energy_j",
    "parse_bit_rate_bps",
    "parse_byte_rate_bytes_per_s",
    "parse_cost",
    "parse_cost_per_byte",
    "parse_cycles",
    "parse_duration_s",
    "parse_energy_j",
    "parse_frame_bytes",
    "parse_frames",
    "parse_frequency_hz",
    "parse_packet_energy_j",
    "parse_power_term_w",
    "parse_power_w",
    "parse_rate_pps",
    "parse_ratio",
    "parse_size_bytes",
    "parse_transfer_rate_per_s",
    "parse_voltage_v",
    "parse_waiting_frames",
]

MIN_FRAME_BYTES: Final = 64
"""Smallest Ethernet frame, FCS included (IEEE 802.3 sec. 4.4.2)."""

MAX_FRAME_BYTES: Final = 65_535
"""Largest frame size that is accepted: a larger number is more likely a typing error."""

_SUGGESTED_UNITS = (
    "s ms us µs ns ps min h Hz kHz MHz GHz bit kbit Mbit Gbit bit/s kbit/s Mbit/s Gbit/s Tbit/s bps Mbps Gbps "
    "B kB MB GB KiB MiB B/s MB/s GB/s GiB/s pps kpps Mpps Gpps frames packets frames/s packets/s "
    "cycles cycles/B ns/B ps/B W mW kW J V mV J/bit pJ/bit J/packet nJ/packet MT/s GT/s"
)
_QUANTITY = re.compile(
    r"""\s*(?P<number>[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?)
        \s*(?P<unit>[^\d\s].*?)?\s*""",
    re.VERBOSE,
)
_SHOWN_CHARACTERS = 60
_RATIO = re.compile(r"\s*(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?)\s*(?P<percent>%|percent)?\s*")
_BITS = re.compile(r"(?P<prefix>[kKmMgGtT]|[KMGT]i)?(?:[bB]its?|BITS?|b)(?:/(?:s|sec|second|S)|ps)?")
"""Bits per second as people write them: ``Gb/s``, ``gbit``, ``Gbps``. A small b is a bit; a rate needs no ``/s``."""
_BYTES_A_SECOND = re.compile(r"(?P<prefix>[kKMgGtT]|[KMGT]i)?(?:B|[bB]ytes?)(?:/(?:s|sec|second)|ps)")
_BITS_OR_BYTES = re.compile(r"(?P<prefix>[KMGT])B(?:PS|/S)")
_CAPITAL_FRAMES = re.compile(r"(?P<prefix>[KMG])?PPS")
_ETHERNET = re.compile(r"(?P<prefix>[MG])b?E")
_PREFIX = re.compile(r"(?P<prefix>[kKmMgGtT])")
_BITS_AS_SIZE = re.compile(r"(?P<prefix>[kKMGT]i?)?b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of quantity, with its name, its base unit and examples."""

    name: str
    base: str
    examples: str
    is_counted: bool = False
    """Whether thousandths are meaningless, so that ``m`` is a mistyped ``M``."""
    is_signed: bool = False
    """Whether negative values are allowed, as for fitted terms."""


_FRAME_RATE = _Kind(name="a frame rate", base="frame/second", examples='"14.88 Mpps", "500 kpps"', is_counted=True)
_BIT_RATE = _Kind(name="a bit rate", base="bit/second", examples='"10 Gbit/s", "100 Mbit/s"', is_counted=True)
_BYTE_RATE = _Kind(name="a byte rate", base="byte/second", examples='"8 GB/s", "500 MB/s"', is_counted=True)
_BYTES = _Kind(name="a frame size", base="byte", examples='"64 B", "1518 B"', is_counted=True)
_SIZE = _Kind(name="a size", base="byte", examples='"32 KiB", "25 MiB"', is_counted=True)
_TRANSFER_RATE = _Kind(name="a data rate", base="transfer/second", examples='"1333 MT/s"', is_counted=True)
_FRAMES = _Kind(name="a number of frames", base="frame", examples='"512 frames"', is_counted=True)
_RATES = {_FRAME_RATE: "pps", _BIT_RATE: "bit/s", _BYTE_RATE: "B/s"}
"""Kinds of rates, with the ends of their usual units."""
_TIME = _Kind(name="a time", base="second", examples='"100 ms", "1.5 us", "2 s"')
_FREQUENCY = _Kind(name="a frequency", base="hertz", examples='"3.3 GHz", "800 MHz"', is_counted=True)
_POWER = _Kind(name="a power", base="watt", examples='"95 W", "12.5 W"')
_ENERGY = _Kind(name="an energy", base="joule", examples='"900 J", "12.5 mJ"')
_POWER_TERM = _Kind(name="a power", base="watt", examples='"0.9 W", "-0.04 W"', is_signed=True)
_BIT_ENERGY = _Kind(name="an energy per bit", base="joule/bit", examples='"3.2 pJ/bit"', is_signed=True)
_PACKET_ENERGY = _Kind(name="an energy per packet", base="joule/frame", examples='"13.4 nJ/packet"', is_signed=True)
_VOLTAGE = _Kind(name="a voltage", base="volt", examples='"0.9 V", "850 mV"')
_CYCLES = _Kind(name="a number of cycles", base="cycle", examples='"120 cycles"')
_TIME_PER_BYTE = _Kind(name="a time per byte", base="second/byte", examples='"0.4 ns/B"')
_CYCLES_PER_BYTE = _Kind(name="a number of cycles per byte", base="cycle/byte", examples='"1.5 cycles/B"')


def parse_ratio(text: str, *, zero_allowed: bool = False, one_allowed: bool = False, beyond_one: bool = False) -> float:
    """Read a share between 0 and 1, in percent or as a number; 0 and 1 only where they are allowed.

    ``beyond_one`` allows larger numbers, too: an error may be 150 %. From 2 on they are asked about without ``%``.

    Raises QuantityProblem: the text is neither, or the share is out of range.

    Examples
    --------
    >>> parse_ratio("5 %"), parse_ratio("0.05"), parse_ratio("0.1 percent")
    (0.05, 0.05, 0.001)
    """
    match = _RATIO.fullmatch(text)
    # Decimals shift without rounding: 99.9 % is 0.999, and 99.9 / 100.0 is not.
    value = float(Decimal(match["number"]).scaleb(-2 if match["percent"] else 0)) if match else math.nan
    is_allowed = 0.0 < value < 1.0 or (value == 0.0 and zero_allowed) or (value == 1.0 and one_allowed)
    if not (is_allowed or (beyond_one and 1.0 <= value < math.inf)):
        shown = text[:_SHOWN_CHARACTERS]
        bounds = "0 or more" if zero_allowed else "more than 0"
        if not beyond_one:
            bounds += f" and {'at most' if one_allowed else 'less than'} 1"
        is_percent = match is not None and not match["percent"] and 1.0 < value < 100.0
        if match is not None and not is_percent:
            in_percent = bounds.replace("0", "0 %", 1).replace("than 1", "than 100 %").replace("most 1", "most 100 %")
            raise QuantityProblem(shown, f'"{shown}" is no share of {bounds}: allowed is {in_percent}')
        # An example with the user's own number is off by no factor.
        percent = f"{value:g}" if is_percent else "5"
        example = f'"{percent} %" or {float(percent) / 100.0:g}'
        raise QuantityProblem(shown, f'"{shown}" is no share of {bounds}: write {example}')
    if match is not None and not match["percent"] and value >= _ASKED_RATIO:
        shown = text.strip()[:_SHOWN_CHARACTERS]
        raise QuantityProblem(shown, f'"{shown}" may be {value:g} % or {100.0 * value:.4g} %: write it with %')
    return value


_ASKED_RATIO = 2.0
"""Least bare number beyond one that is asked about: hardly anyone means 200 % by it."""


def parse_rate_pps(text: str) -> float:
    """Read a frame rate in frames per second, > 0.

    Raises QuantityProblem: the text is not a frame rate.

    Examples
    --------
    >>> parse_rate_pps("1.2 Mpps")
    1200000.0
    """
    return _parse(text, _FRAME_RATE)


def parse_bit_rate_bps(text: str) -> float:
    """Read a bit rate in bit/s, > 0; byte rates (``"1.25 GB/s"``) are converted.

    ``Gb/s``, ``Gbps``, ``gbit`` and ``G`` are Gbit/s; only a capital B is a byte.

    Raises QuantityProblem: the text is not a bit rate.

    Examples
    --------
    >>> parse_bit_rate_bps("10 Gbit/s"), parse_bit_rate_bps("10G"), parse_bit_rate_bps("10 Gb/s")
    (10000000000.0, 10000000000.0, 10000000000.0)
    """
    number, unit, dimension = _split(text, _BIT_RATE)
    if dimension == dimension_of("byte/second"):
        return 8.0 * _in_base(text, number, unit, _BYTE_RATE)
    return _in_base(text, number, unit, _BIT_RATE)


def parse_rate(text: str) -> tuple[float | None, float | None]:
    """Read a rate; return (frames/s, None) or (None, bit/s), by its unit.

    Raises QuantityProblem: the text is neither a frame rate nor a bit rate, or, as ``"10M"``, it may be either.

    Examples
    --------
    >>> parse_rate("20 Mpps"), parse_rate("40 Gbit/s")
    ((20000000.0, None), (None, 40000000000.0))
    """
    _, unit, dimension = _split(text, _FRAME_RATE, _BIT_RATE)
    if dimension == dimension_of(_FRAME_RATE.base):
        return parse_rate_pps(text), None
    if dimension in {dimension_of(_BIT_RATE.base), dimension_of(_BYTE_RATE.base)}:
        return None, parse_bit_rate_bps(text)
    raise _wrong_kind(text, unit, _FRAME_RATE, _BIT_RATE)


def parse_byte_rate_bytes_per_s(text: str) -> float:
    """Read a byte rate of a bus or memory in bytes/s, > 0; bit rates are converted."""
    number, unit, dimension = _split(text, _BYTE_RATE)
    if dimension == dimension_of("bit/second"):
        return _in_base(text, number, unit, _BIT_RATE) / 8.0
    return _in_base(text, number, unit, _BYTE_RATE)


def parse_frame_bytes(text: str) -> int:
    """Read a frame size in bytes, FCS included (S1): a whole number from 64 to 65,535.

    Raises QuantityProblem: the text is not a frame size, e.g. ``"64 Mbit"`` or ``"60 B"``.

    Examples
    --------
    >>> parse_frame_bytes("64 B")
    64
    """
    size = _whole_number(text, _parse(text, _BYTES), _BYTES)
    if not MIN_FRAME_BYTES <= size <= MAX_FRAME_BYTES:
        raise QuantityProblem(
            text,
            f"{_quoted(text)} is no frame size: Ethernet frames have {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} B "
            "with the FCS",
        )
    return size


def parse_size_bytes(text: str) -> float:
    """Read the size of a memory or cache in bytes, > 0.

    Examples
    --------
    >>> parse_size_bytes("32 KiB")
    32768.0
    """
    return _parse(text, _SIZE)


def parse_transfer_rate_per_s(text: str) -> float:
    """Read the data rate of a memory in transfers/s, > 0.

    Examples
    --------
    >>> parse_transfer_rate_per_s("1333 MT/s")
    1333000000.0
    """
    return _parse(text, _TRANSFER_RATE)


def parse_frames(text: str) -> int:
    """Read a number of frames (of a queue, ring, batch), a whole number >= 1."""
    return _whole_number(text, _parse(text, _FRAMES), _FRAMES)


def parse_waiting_frames(text: str) -> int:
    """Read the number of frames that may wait, a whole number >= 0."""
    return _whole_number(text, _parse(text, _FRAMES, zero_allowed=True), _FRAMES)


def parse_duration_s(text: str, *, zero_allowed: bool = False) -> float:
    """Read a time in seconds, > 0 (or >= 0).

    Examples
    --------
    >>> parse_duration_s("100 ms")
    0.1
    """
    return _parse(text, _TIME, zero_allowed=zero_allowed)


def parse_frequency_hz(text: str) -> float:
    """Read a frequency in Hz, > 0."""
    return _parse(text, _FREQUENCY)


def parse_power_w(text: str) -> float:
    """Read a power in watts, >= 0."""
    return _parse(text, _POWER, zero_allowed=True)


def parse_energy_j(text: str) -> float:
    """Read an energy in joules, >= 0.

    Examples
    --------
    >>> parse_energy_j("1.5 kJ")
    1500.0
    """
    return _parse(text, _ENERGY, zero_allowed=True)


def parse_power_term_w(text: str) -> float:
    """Read a term of a power in watts, of either sign.

    Examples
    --------
    >>> parse_power_term_w("-40 mW")
    -0.04
    """
    return _parse(text, _POWER_TERM)


def parse_bit_energy_j(text: str) -> float:
    """Read an energy per bit in joules, of either sign."""
    return _parse(text, _BIT_ENERGY)


def parse_packet_energy_j(text: str) -> float:
    """Read an energy per packet in joules, of either sign."""
    return _parse(text, _PACKET_ENERGY)


def parse_voltage_v(text: str) -> float:
    """Read a voltage in volts, > 0.

    Examples
    --------
    >>> parse_voltage_v("850 mV")
    0.85
    """
    return _parse(text, _VOLTAGE)


def parse_cycles(text: str) -> float:
    """Read a number of processor cycles, >= 0."""
    return _parse(text, _CYCLES, zero_allowed=True)


def parse_cost(text: str) -> tuple[float, float]:
    """Read a cost per frame or batch; return (cycles, seconds), one of which is 0.

    Examples
    --------
    >>> parse_cost("120 cycles")
    (120.0, 0.0)
    """
    return _cycles_or_time(text, _CYCLES, _TIME)


def parse_cost_per_byte(text: str) -> tuple[float, float]:
    """Read a cost per byte; return (cycles/B, s/B), one of which is 0.

    Examples
    --------
    >>> parse_cost_per_byte("1.5 cycles/B")
    (1.5, 0.0)
    """
    return _cycles_or_time(text, _CYCLES_PER_BYTE, _TIME_PER_BYTE)


def _cycles_or_time(text: str, cycles: _Kind, time: _Kind) -> tuple[float, float]:
    number, unit, dimension = _split(text, cycles, time)
    if dimension == dimension_of(time.base):
        return 0.0, _in_base(text, number, unit, time, zero_allowed=True)
    if dimension == dimension_of(cycles.base):
        return _in_base(text, number, unit, cycles, zero_allowed=True), 0.0
    raise _wrong_kind(text, unit, cycles, time)


def _parse(text: str, kind: _Kind, *, zero_allowed: bool = False) -> float:
    number, unit, _ = _split(text, kind)
    return _in_base(text, number, unit, kind, zero_allowed=zero_allowed)


def _split(text: str, *kinds: _Kind) -> tuple[float, str, str]:
    """Return the number, the unit and the unit's dimension. Raises QuantityProblem if one of them is wrong."""
    expected = _expected(kinds)
    if not isinstance(text, str):
        raise QuantityProblem(
            _quoted(text), f"{_quoted(text)} has no unit: {expected} is a text with a number and a unit"
        )
    match = _QUANTITY.fullmatch(text) if len(text) <= 10 * _SHOWN_CHARACTERS else None
    if match is None:
        if text.strip().lstrip("+-").lower()[:3] in {"nan", "inf"}:
            raise QuantityProblem(text, f"{_quoted(text)} is not a finite number: expected {expected}")
        raise QuantityProblem(text, f"{_quoted(text)} does not start with a number: expected {expected}")
    number = float(match["number"].replace(",", "").replace("_", ""))
    if not math.isfinite(number):
        raise QuantityProblem(text, f"{_quoted(text)} is too large for a number: expected {expected}")
    unit = (match["unit"] or "").replace(" ", "")
    if not unit:
        raise QuantityProblem(text, f"{_quoted(text)} has no unit: expected {expected}")
    unit = _rate_unit(text, match["number"], unit, kinds)
    if unit[0] == "m" and all(kind.is_counted for kind in kinds) and unit_dimension("M" + unit[1:]) is not None:
        raise QuantityProblem(
            text, f"{_quoted(text)} would be thousandths: write {'M' + unit[1:]!r} for millions; expected {expected}"
        )
    dimension = unit_dimension(unit)
    if dimension is None:
        raise QuantityProblem(
            text,
            f"{_quoted(text)}: the unit {unit[:30]!r} is not known{_unit_suggestion(unit, kinds)}; expected {expected}",
        )
    return number, unit, dimension


def _rate_unit(text: str, number: str, unit: str, kinds: tuple[_Kind, ...]) -> str:
    """Return the usual spelling of a unit of a rate; other units unchanged.

    Raises QuantityProblem: the unit may mean two things that differ by a factor, such as bits and bytes.
    """

    def question(meaning: str) -> QuantityProblem:
        return QuantityProblem(text, f"{_quoted(text)} {meaning}")

    if not any(kind in _RATES for kind in kinds):
        size = _BITS_AS_SIZE.fullmatch(unit)
        if size and any(kind.base == "byte" for kind in kinds):
            raise question(f'has a small b, for bits: bytes are written "{number} {size["prefix"] or ""}B"')
        return unit
    if match := _BITS_OR_BYTES.fullmatch(unit):
        prefix = _usual_prefix(match["prefix"])
        raise question(f'may be bits or bytes: write "{number} {prefix}bit/s" or "{number} {prefix}B/s"')
    if match := _BYTES_A_SECOND.fullmatch(unit):
        return f"{_usual_prefix(match['prefix'])}B/s"
    if match := _BITS.fullmatch(unit) or (_ETHERNET.fullmatch(unit) if _BIT_RATE in kinds else None):
        return f"{_usual_prefix(match['prefix'])}bit/s"
    if match := _PREFIX.fullmatch(unit):
        prefix = _usual_prefix(match["prefix"])
        # A small m is a million in "mbit", but may be minutes or meters where nothing follows. Frames do not come in
        # thousands of millions.
        is_clear = prefix in {"G", "T"} if _FRAME_RATE in kinds else unit != "m"
        if _BIT_RATE in kinds and is_clear:
            return f"{prefix}bit/s"
        wanted = {kind for kind in kinds if kind is not _FRAME_RATE or prefix in {"k", "M"}}
        if _BYTE_RATE in wanted:
            wanted.add(_BIT_RATE)  # it is read as well
        readings = [f'"{number} {prefix}{base}"' for kind, base in _RATES.items() if kind in wanted]
        raise question(f"names no unit: write {' or '.join(readings) or _expected(kinds)}")
    return f"{_usual_prefix(match['prefix'])}pps" if (match := _CAPITAL_FRAMES.fullmatch(unit)) else unit


def _usual_prefix(prefix: str | None) -> str:
    if prefix is None or len(prefix) > 1:
        return prefix or ""
    return "k" if prefix in "kK" else prefix.upper()


def _in_base(text: str, number: float, unit: str, kind: _Kind, *, zero_allowed: bool = False) -> float:
    if unit_dimension(unit) != dimension_of(kind.base):
        raise _wrong_kind(text, unit, kind)
    value = _scaled(number, unit, kind.base)
    if not math.isfinite(value):
        raise QuantityProblem(text, f"{_quoted(text)} is too large for a number: expected {_expected((kind,))}")
    if not kind.is_signed and (value < 0.0 or (value == 0.0 and not zero_allowed)):
        bound = "at least 0" if zero_allowed else "more than 0"
        raise QuantityProblem(text, f"{_quoted(text)} is not allowed: {kind.name} is {bound}")
    return value


def _scaled(number: float, unit: str, base: str) -> float:
    """Convert by division if the unit is a fraction of the base, so that "100 ms" is exactly 0.1."""
    factor = unit_factor(unit, base)
    if factor < 1.0:
        inverse = round(1.0 / factor)
        if abs(inverse * factor - 1.0) < 1e-12:
            return number / inverse
    nearest = round(factor)
    return number * (nearest if nearest and abs(nearest / factor - 1.0) < 1e-12 else factor)


def _whole_number(text: str, value: float, kind: _Kind) -> int:
    if value != int(value):
        raise QuantityProblem(
            text, f"{_quoted(text)} is not whole: {kind.name} is a whole number, e.g. {kind.examples}"
        )
    return int(value)


def _wrong_kind(text: str, unit: str, *kinds: _Kind) -> QuantityProblem:
    is_kind = _NAME_BY_DIMENSION.get(unit_dimension(unit) or "", "something else")
    return QuantityProblem(text, f"{_quoted(text)} is {is_kind}: expected {_expected(kinds)}")


def _expected(kinds: tuple[_Kind, ...]) -> str:
    return " or ".join(f"{kind.name} such as {kind.examples}" for kind in kinds)


def _quoted(text: object) -> str:
    shown = f'"{text}"' if isinstance(text, str) else repr(text)
    return shown if len(shown) <= _SHOWN_CHARACTERS else shown[:_SHOWN_CHARACTERS] + '…"'


def _unit_suggestion(unit: str, kinds: tuple[_Kind, ...]) -> str:
    """Suggest the nearest unit of each kind; none with another prefix, bytes for bits, or bits for frames."""
    from difflib import get_close_matches  # only for messages

    suggestions = []
    for dimension in dict.fromkeys(dimension_of(kind.base) for kind in kinds):
        units = [known for known in reversed(_SUGGESTED_UNITS.split()) if unit_dimension(known) == dimension]
        lower = {known.lower(): known for known in units if known[0].lower() == unit[0].lower()}
        suggestions += [lower[close] for close in get_close_matches(unit[:30].lower(), lower, n=1, cutoff=0.6)]
    if "b" in unit.lower():
        suggestions = [known for known in suggestions if ("B" in known, "b" in known) == ("B" in unit, "b" in unit)]
    elif len(kinds) == 1:
        suggestions = [known for known in suggestions if "b" not in known.lower()]
    return f" (did you mean {' or '.join(map(repr, suggestions))}?)" if suggestions else ""


_NAME_BY_DIMENSION = {
    "[frame] / [time]": "a frame rate",
    "[bit] / [time]": "a bit rate",
    "[byte] / [time]": "a byte rate",
    "[bit]": "a number of bits",
    "[byte]": "a number of bytes",
    "[frame]": "a number of frames",
    "[time]": "a time",
    "1 / [time]": "a frequency",
    "[power]": "a power",
    "[transfer] / [time]": "a data rate",
    "[power] * [time]": "an energy",
    "[power] * [time] / [bit]": "an energy per bit",
    "[power] * [time] / [frame]": "an energy per packet",
    "[cycle]": "a number of cycles",
    "[cycle] / [byte]": "a number of cycles per byte",
    "[time] / [byte]": "a time per byte",
}
