"""Arguments of the Python interface: texts with units, numbers in base units, and what is said where they are wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from html import escape
from numbers import Real
from pathlib import Path
from typing import Any

from routecast.calibration.fitted import MAX_CORES
from routecast.errors import ArgumentProblem, QuantityProblem
from routecast.load import FrameMix
from routecast.load.offered import IntendedRate
from routecast.quantity import parse_duration_s, parse_ratio
from routecast.quantity.value_list import parse_counts

Rate = str | float
Frames = str | int | FrameMix
Counts = int | str | Iterable[int]
MAX_FLOWS = 1_000_000
MAX_CELL_CHARACTERS = 80
_LEAST_LOAD_PPS = 1e3
"""A load below this is probably in Mpps where its number has no unit."""


def wrong_type(got: object, what: str, remedy: str) -> ArgumentProblem:
    """Return the error of a value whose type a function does not take."""
    name = type(got).__name__
    kind = "None" if got is None else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
    return ArgumentProblem(repr(got)[:MAX_CELL_CHARACTERS], f"got {kind} for {what}: {remedy}")


def plain_entry(entry: Any) -> Any:
    """Return Python's own number or Boolean for that of NumPy, which other libraries give."""
    if type(entry).__module__ == "numpy" and getattr(entry, "shape", None) == ():
        return entry.item()
    return entry


def is_number(entry: object) -> bool:
    return isinstance(entry, Real) and not isinstance(entry, bool)


def read_count(entry: Any, what: str, *, least: int = 1, most: int) -> int:
    entry = plain_entry(entry)
    if isinstance(entry, str) and entry.strip().isdecimal():
        entry = int(entry)
    remedy = f"write a whole number from {least} to {most:,}"
    if not is_number(entry):
        raise wrong_type(entry, what, remedy)
    if not math.isfinite(entry) or entry != int(entry) or not least <= entry <= most:
        raise QuantityProblem(str(entry), f"got {entry} for {what}: {remedy}")
    return int(entry)


def read_counts(entry: Any) -> tuple[int, ...]:
    """Read numbers of cores: a number, a text as ``--cores`` takes it, or several numbers."""
    if isinstance(entry, str):
        return parse_counts(entry, most=MAX_CORES)
    counts = tuple(read_count(count, "cores", most=MAX_CORES) for count in as_list(entry, "cores"))
    if not counts:
        raise QuantityProblem("", 'there are no cores: give a number, "1..8", range(1, 9), or a list')
    return counts


def read_ratio(entry: Any, what: str, *, zero_allowed: bool = False) -> float:
    entry = plain_entry(entry)
    if isinstance(entry, str):
        return parse_ratio(entry, zero_allowed=zero_allowed)
    remedy = f"write {'0 or more' if zero_allowed else 'more than 0'} and less than 1, such as 0.05 or " + '"5 %"'
    if not is_number(entry):
        raise wrong_type(entry, what, remedy)
    if not (0.0 < entry < 1.0 or (zero_allowed and entry == 0.0)):
        raise QuantityProblem(str(entry), f"got {entry} for {what}: {remedy}")
    return float(entry)


def read_rate_pps(rate: Any, mix: FrameMix) -> float:
    rate = plain_entry(rate)
    if isinstance(rate, str):
        return IntendedRate.parse(rate).pps(mix)
    if not is_number(rate):
        raise wrong_type(rate, "a rate", 'write "14 Mpps", "20 Gbit/s", or frames per second')
    check_load(rate)
    return float(rate)


def check_load(rate: float) -> None:
    if not (math.isfinite(rate) and rate > 0.0):
        raise QuantityProblem(str(rate), f"got {rate} for a rate: write more than 0 frames per second")
    if rate < _LEAST_LOAD_PPS:
        message = f'got {rate:g} frames/s, a number without a unit: write its unit, "{rate:g} Mpps" or "{rate:g} pps"'
        raise QuantityProblem(str(rate), message)


TWO_FRAMES = "frame and frames are the same: give one of them"


def frames_of_two(frames: Any, frame: Any) -> Any:
    """Return the frames under the one of two names that was given."""
    if frames is not None and frame is not None:
        raise QuantityProblem("", TWO_FRAMES)
    return frame if frames is None else frames


def read_mix(frames: Any) -> FrameMix | None:
    frames = plain_entry(frames)
    if frames is None or isinstance(frames, FrameMix):
        return frames
    if isinstance(frames, str):
        return FrameMix.parse(frames)
    if not is_number(frames):
        raise wrong_type(frames, "frames", 'write "IMIX", "64 B", or a number of bytes')
    if not math.isfinite(frames) or frames != int(frames):
        raise QuantityProblem(str(frames), f"got frames of {frames} bytes: write whole bytes, or a mix such as IMIX")
    return FrameMix.parse(f"{int(frames)} B")


def read_seconds(duration: Any) -> float:
    duration = plain_entry(duration)
    if isinstance(duration, str):
        return parse_duration_s(duration)
    if not is_number(duration):
        raise wrong_type(duration, "a duration", 'write "100 ms", or seconds')
    if not (math.isfinite(duration) and duration > 0.0):
        raise QuantityProblem(str(duration), f'got {duration} for a duration: write "100 ms", or seconds, more than 0')
    return float(duration)


def read_flag(entry: Any, what: str) -> bool:
    entry = plain_entry(entry)
    if not isinstance(entry, bool):
        raise wrong_type(entry, what, "write True or False")
    return entry


def read_name(entry: Any, what: str, remedy: str) -> str:
    if not isinstance(entry, str):
        raise wrong_type(entry, what, remedy)
    return entry


def read_path(entry: Any, what: str) -> Path:
    if not isinstance(entry, str | os.PathLike):
        raise wrong_type(entry, what, "write its path")
    text = os.fspath(entry)
    if not isinstance(text, str) or "\0" in text:
        raise QuantityProblem(repr(text), f"got {text!r} for {what}: write its path as text")
    return Path(text)


def as_list(values: Any, what: str) -> list[Any]:
    """Return several values as a list, and one value as a list of it."""
    if isinstance(values, Mapping | bytes | bytearray) or values is None:
        raise wrong_type(values, what, "write a value, or several in a list")
    return [values] if isinstance(values, str) or not isinstance(values, Iterable) else list(values)


def captioned(table: str, caption: str) -> str:
    return table.replace("<table>", f"<table>\n<caption>{escape(caption)}</caption>", 1)
