"""Cells of a table of points: amounts in the unit of their column or with their own, words, frames."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from routecast.errors import ModelProblem
from routecast.evaluate._point_columns import KIND_OF_STEM, Unit
from routecast.evaluate.points import DISTURBED, RateKind
from routecast.load.frames import FrameMix
from routecast.quantity import (
    parse_bit_rate_bps,
    parse_duration_s,
    parse_rate,
    parse_rate_pps,
    parse_ratio,
    parse_size_bytes,
)

_KIND_OF_WORD: Final[Mapping[str, RateKind]] = {
    **KIND_OF_STEM,
    **dict.fromkeys(("overload", "rfc2285", "rfc_2285"), "overload"),
    **dict.fromkeys(("no_loss", "throughput", "rfc1242", "rfc_1242", "rfc2544", "rfc_2544"), "no_loss"),
    "": "",
}
YES: Final = frozenset({"true", "yes", "1"})
NO: Final = frozenset({"", "false", "no", "0"})
_ARRIVALS: Final = frozenset({"", "unknown", "cbr", "poisson", "on_off", "trace"})
_MOST_LOAD_RATIO: Final = 10.0
_RINGS: Final = frozenset({"modulo", "own"})
BETWEEN_WORDS: Final = re.compile(r"[\s\-_()\[\],]+")
SMALLEST_FRAME_BYTES, _LONGEST_FRAME_BYTES = 64.0, 65_535.0


def _amount(text: str, unit: Unit, with_unit: Callable[[str], float]) -> float:
    """Read a number > 0 in the unit of its column, or with its own unit."""
    try:
        amount = float(text)
    except ValueError:
        return with_unit(text)
    amount *= unit.factor
    if not (math.isfinite(amount) and amount > 0.0):
        raise ValueError(text)
    return amount


def read_frame_rate(text: str, unit: Unit) -> float:
    return _amount(text, unit, parse_rate_pps)


def read_bit_rate(text: str, unit: Unit) -> float:
    return _amount(text, unit, parse_bit_rate_bps)


def read_rate(text: str, unit: Unit) -> tuple[float, str]:
    """Read a rate and the layer of its bits; the layer of a frame rate is empty."""
    if is_number(text):
        return read_frame_rate(text, unit), unit.layer
    rate_pps, rate_bps = parse_rate(text)
    return (rate_pps, "") if rate_pps is not None else (rate_bps or math.nan, unit.layer or "bits")


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_encapsulation_bytes(text: str, unit: Unit) -> float:
    return 0.0 if is_number(text) and float(text) == 0.0 else _amount(text, unit, parse_size_bytes)


def read_ratio(text: str, unit: Unit) -> float:
    ratio = _amount(text, unit, parse_ratio)
    if ratio >= 1.0:
        raise ValueError(text)
    return ratio


def read_latency(text: str, unit: Unit) -> float:
    return _amount(text, unit, parse_duration_s)


def read_delay(text: str, unit: Unit) -> float:
    """Read a time that may be 0."""
    return 0.0 if is_number(text) and float(text) == 0.0 else _amount(text, unit, parse_duration_s)


def read_load_ratio(text: str, unit: Unit) -> float:
    """Read a load as a share of a rate; one in overload is above 1, or 100 %."""
    number = text.removesuffix("%").strip()
    ratio = float(number) * (0.01 if number != text else unit.factor)
    if not 0.0 < ratio <= _MOST_LOAD_RATIO:
        raise ValueError(text)
    return ratio


def read_arrivals(text: str, _: Unit) -> str:
    word = text.lower()
    if word not in _ARRIVALS:
        raise ValueError(text)
    return "" if word == "unknown" else word


def whole_number(max_value: int) -> Callable[[str, Unit], int]:
    def read(text: str, unit: Unit) -> int:
        value = float(text)
        if not (1.0 <= value <= max_value and value == int(value)):
            raise ValueError(text)
        return int(value)

    return read


def read_yes_or_no(text: str, unit: Unit) -> bool:
    word = text.lower()
    if word not in YES | NO:
        raise ValueError(text)
    return word in YES


def read_rate_kind(text: str, unit: Unit) -> RateKind:
    try:
        return _KIND_OF_WORD[BETWEEN_WORDS.sub("_", text.lower()).strip("_")]
    except KeyError:
        raise ValueError(text) from None


def read_disturbance(text: str) -> str:
    word = text.lower()
    return "" if word in NO else DISTURBED if word in YES else text


def read_ring(text: str, unit: Unit) -> str:
    if text not in _RINGS:
        raise ValueError(text)
    return text


def read_frames(text: str, unit: Unit) -> tuple[float, FrameMix | None]:
    try:
        value = float(text)
    except ValueError:
        try:
            mix = FrameMix.parse(text)
        except ModelProblem as problem:
            raise ValueError(text) from problem
        return mix.mean_bytes, None if mix.is_fixed else mix
    if not SMALLEST_FRAME_BYTES <= value <= _LONGEST_FRAME_BYTES:
        raise ValueError(text)
    return value, None
