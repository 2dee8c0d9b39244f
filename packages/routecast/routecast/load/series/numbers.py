"""Numbers as countries write them: decimal commas, and points, commas, apostrophes or spaces between thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["with_plain_numbers"]

_UNIT = r"(?P<unit>\s*[A-Za-z%][A-Za-z/%. ]{0,20})?"
_SPACED = re.compile(rf"(?P<number>[-+]?\d{{1,3}}(?:['’ \u00a0\u202f]\d{{3}})+(?:[.,]\d+)?){_UNIT}")
_SIGNS = re.compile(r"['’ \u00a0\u202f]")
_MARKED = re.compile(rf"(?P<number>[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?){_UNIT}")
_COMMAS_OF_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3}){2,}(?:\.\d+)?|,\d{3}\.\d+)")
_POINTS_OF_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:\.\d{3}){2,}(?:,\d+)?|(?:\.\d{3})+,\d+)")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,(?:\d{1,2}|\d{4,})(?:[eE][-+]?\d+)?|[-+]?(?:0|\d{4,}),\d+(?:[eE][-+]?\d+)?")
_EITHER_COMMA = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_EITHER_POINT = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
_ADDRESS = re.compile(r"(?:[01]?\d{1,2}|2[0-5]\d)(?:\.(?:[01]?\d{1,2}|2[0-5]\d)){3}")
_SINCE_1970 = re.compile(r"\d{9}")
_DECIMAL_POINT = re.compile(r"[-+]?\d+\.(?:\d{1,2}|\d{4,})|[-+]?(?:0|\d{4,})\.\d+")


def with_plain_numbers(rows: Sequence[Sequence[str]], *, has_commas: bool) -> tuple[list[list[str]], str]:
    """Return rows whose numbers have decimal points and nothing between thousands, and a note on what was assumed.

    A column decides by those of its cells that can be read in one way only, and else the other columns do. What stays
    open (``1,900`` alone) has thousands if commas separate the cells (``has_commas``), because countries with decimal
    commas write semicolons; otherwise it is left as it is, to be asked about.
    """
    columns = [[_without_spaces(cell) for cell in column] for column in zip(*rows, strict=True)]
    marks = [_mark(column) for column in columns]
    known = {mark for mark, column in zip(marks, columns, strict=True) if mark and not _SINCE_1970.match(column[0])}
    common = known.pop() if len(known) == 1 else ""
    note = ""
    if not common and has_commas:
        open_cells = (cell for column, mark in zip(columns, marks, strict=True) if not mark for cell in column)
        example = next((cell for cell in open_cells if _is_open(cell)), None)
        if example is not None:
            common, note = ".", f'numbers such as "{example[:40]}" have thousands before the comma'
    plain = [
        [_with_point(cell, mark or common) for cell in column] for column, mark in zip(columns, marks, strict=True)
    ]
    return [list(row) for row in zip(*plain, strict=True)], note


def _is_open(cell: str) -> bool:
    match = _MARKED.fullmatch(cell)
    return match is not None and _EITHER_COMMA.fullmatch(match["number"]) is not None


def _without_spaces(cell: str) -> str:
    match = _SPACED.fullmatch(cell)
    return _SIGNS.sub("", match["number"]) + (match["unit"] or "") if match else cell


def _mark(cells: Sequence[str]) -> str:
    """Return the decimal mark of a column, empty where no cell tells it."""
    numbers = [match["number"] for match in map(_MARKED.fullmatch, cells) if match]
    numbers = [text for text in numbers if not _ADDRESS.fullmatch(text)]
    commas = any(_DECIMAL_COMMA.fullmatch(text) or _POINTS_OF_THOUSANDS.fullmatch(text) for text in numbers)
    points = any(_COMMAS_OF_THOUSANDS.fullmatch(text) for text in numbers)
    points = points or any(_DECIMAL_POINT.fullmatch(text) for text in numbers)
    return "" if commas == points else "," if commas else "."


def _with_point(cell: str, mark: str) -> str:
    match = _MARKED.fullmatch(cell)
    if match is None or not mark or _ADDRESS.fullmatch(match["number"]):
        return cell
    text, unit = match["number"], match["unit"] or ""
    if mark == ",":
        is_grouped = _POINTS_OF_THOUSANDS.fullmatch(text) or _EITHER_POINT.fullmatch(text)
        if is_grouped or _DECIMAL_COMMA.fullmatch(text) or _EITHER_COMMA.fullmatch(text):
            return text.replace(".", "").replace(",", ".") + unit
    elif _COMMAS_OF_THOUSANDS.fullmatch(text) or _EITHER_COMMA.fullmatch(text):
        return text.replace(",", "") + unit
    return cell
