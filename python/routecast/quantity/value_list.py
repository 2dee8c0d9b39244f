"""Lists of values on a command line: ``1,2,4``, ``1..16``, ``1..4 Mpps``, ``64,512,IMIX``."""

from __future__ import annotations

import math
import re

from routecast.errors import QuantityProblem

__all__ = ["Plain", "parse_counts", "parse_values"]

Plain = str | int | float | bool
"""A value of a file: a text, a number, a yes or no."""

_RANGE = re.compile(r"(?P<first>[0-9]{1,15})\s*\.\.\s*(?P<last>[0-9]{1,15})\s*(?P<unit>[^\d\s.][^.]*)?")
_LIKE_A_RANGE = re.compile(r"\s*[+-]?[0-9][^,]*\.\.")
_SHOWN_CHARACTERS = 60


def parse_values(text: str, *, most: int) -> tuple[Plain, ...]:
    """Read values with commas between; ``FIRST..LAST`` stands for all whole numbers from one to the other.

    A unit after a range is that of each of its numbers. A value that is written twice counts once.

    ``most``: how many values a range may stand for. Raises QuantityProblem: a value is missing, or a range is none,
    empty or too long.

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
            what = "there is no value" if not text.strip() else f'"{_quoted(text)}" has no value between two commas'
            raise QuantityProblem(text, f'{what}: write values with commas between, or a range: "1,2,4", "1..16"')
        for value in _range(part.strip(), most) if _LIKE_A_RANGE.match(part) else (_value(part.strip()),):
            values[type(value), value] = value
    return tuple(values.values())


def parse_counts(text: str, *, most: int) -> tuple[int, ...]:
    """Read whole numbers from 1 to ``most``: one, a list, ranges; in ascending order, each once.

    Raises QuantityProblem: something is no such number, or a range that goes down.

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
    written = _RANGE.fullmatch(text)
    if written is None:
        message = f'"{_quoted(text)}" is no range: write two whole numbers, such as 1..16 or "1..4 Mpps", or a list'
        raise QuantityProblem(text, message)
    first, last, unit = int(written["first"]), int(written["last"]), (written["unit"] or "").strip()
    if first > last:
        raise QuantityProblem(text, f'the range "{_quoted(text)}" is empty: write {f"{last}..{first} {unit}".strip()}')
    if last - first >= most:
        message = f'the range "{_quoted(text)}" has {last - first + 1:,} values: at most {most:,} are allowed'
        raise QuantityProblem(text, message)
    return [f"{number} {unit}" if unit else number for number in range(first, last + 1)]


def _value(text: str) -> Plain:
    """Return what TOML would read without quotes, or the text."""
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
