"""Lists of values on a command line: ``1,2,4``, ``1..16``, ``1..4 Mpps``, ``64,512,IMIX``."""

from __future__ import annotations

import math
import re

from routecast.errors import QuantityProblem

__all__ = ["Plain", "parse_counts", "parse_values"]

Plain = str | int | float | bool
"""A value of a file: a text, a number or a Boolean."""

_RANGE = re.compile(r"(?P<first>[0-9]{1,15})\s*\.\.\s*(?P<last>[0-9]{1,15})\s*(?P<unit>[^\d\s.][^.]*)?")
_RANGE_START = re.compile(r"\s*[+-]?[0-9][^,]*\.\.")
_SHOWN_CHARACTERS = 60


def parse_values(text: str, *, most: int) -> tuple[Plain, ...]:
    """Read values separated by commas; ``FIRST..LAST`` stands for all whole numbers from the first to the last.

    A unit after a range applies to each of its numbers. Repeated values count once. A range has at most ``most``
    values. Raises QuantityProblem: a value is missing, or a range is malformed, empty or too long.

    Examples
    --------
    >>> parse_values("1..3, 8", most=100)
    (1, 2, 3, 8)
    >>> parse_values("1..2 Mpps, IMIX, 0.5, true", most=100)
    ('1 Mpps', '2 Mpps', 'IMIX', 0.5, True)
    """
    values: dict[tuple[type, Plain], Plain] = {}
    for part in text.split(","):
        if not part.strip():
            fault = "there is no value" if not text.strip() else f'"{_quoted(text)}" has no value between two commas'
            raise QuantityProblem(text, f'{fault}: write values separated by commas, or a range: "1,2,4", "1..16"')
        for value in _range(part.strip(), most) if _RANGE_START.match(part) else (_value(part.strip()),):
            values[type(value), value] = value
    return tuple(values.values())


def parse_counts(text: str, *, most: int) -> tuple[int, ...]:
    """Read a list of numbers and ranges; return whole numbers from 1 to ``most`` in ascending order, each once.

    Raises QuantityProblem: a value is not such a number, or a range is descending.

    Examples
    --------
    >>> parse_counts("8, 1..4", most=100)
    (1, 2, 3, 4, 8)
    """
    values = parse_values(text, most=most)
    wrong = next((value for value in values if type(value) is not int or not 1 <= value <= most), None)
    if wrong is not None:
        message = f'"{_quoted(str(wrong))}" is no whole number from 1 to {most:,}: write "4", "1..64" or "1,2,4,8"'
        raise QuantityProblem(text, message)
    return tuple(sorted({int(value) for value in values}))


def _range(text: str, most: int) -> list[Plain]:
    match = _RANGE.fullmatch(text)
    if match is None:
        message = f'"{_quoted(text)}" is no range: write two whole numbers, such as 1..16 or "1..4 Mpps", or a list'
        raise QuantityProblem(text, message)
    first, last, unit = int(match["first"]), int(match["last"]), (match["unit"] or "").strip()
    if first > last:
        raise QuantityProblem(text, f'the range "{_quoted(text)}" is empty: write {f"{last}..{first} {unit}".strip()}')
    if last - first >= most:
        message = f'the range "{_quoted(text)}" has {last - first + 1:,} values: at most {most:,} are allowed'
        raise QuantityProblem(text, message)
    return [f"{number} {unit}" if unit else number for number in range(first, last + 1)]


def _value(text: str) -> Plain:
    """Return the number or Boolean that TOML would read, or else the text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    return text


def _quoted(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
