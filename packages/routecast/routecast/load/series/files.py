"""Tables of samples from files: CSV, Parquet, and the formats of monitoring tools."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.load.series._table import SeriesTable, shortened
from routecast.load.series.columns import MISSING, is_number
from routecast.load.series.formats import tool_table
from routecast.load.series.long import in_columns, influx_table
from routecast.load.series.numbers import with_plain_numbers
from routecast.load.series.times import parse_time
from routecast.quantity.bounded_file import read_parquet
from routecast.quantity.table_file import read_table_text

__all__ = ["read_series_table"]

_NOTE = "# note:"
_MAX_BYTES = 500_000_000
_HEAD_LINE = re.compile(r"\ufeff?\"?(?:Title|Vertical Label|Start Date|Graph ID|Host ID|Step)\s*:", re.IGNORECASE)
_DAY = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})|\d{1,2}[- ][A-Za-z]{3}[- ]\d{4}"
)
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:\s*[AaPp]\.?[Mm]\.?)?")
_LEAST_SINCE_1970_S = 1e8
"""March 1973: a smaller number may as well be a rate."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_MAX_SUMMARY_ROWS = 8
_DATE_TITLES = frozenset({"date", "time", "datetime", "timestamp"})
_LABEL_UNIT = re.compile(
    r"(?<![A-Za-z])(?P<prefix>kilo|mega|giga|[kMG])?(?P<unit>bits?|bytes?|octets?|b|B)"
    r"(?:\s*(?:per|/)\s*s(?:ec(?:ond)?s?)?|ps)(?![A-Za-z])",
    re.IGNORECASE,
)
_PREFIXES = {"": "", "k": "k", "kilo": "k", "m": "M", "mega": "M", "g": "G", "giga": "G"}


def read_series_table(path: Path) -> SeriesTable:
    """Read a CSV file (comma, semicolon or tab), a Parquet file, or a file of a monitoring tool.

    Lines that begin with ``#`` are skipped, except that the text after ``# note:`` becomes a note, and that the last
    one may have the titles. Trailing empty columns, empty rows and sums at the end are omitted. If the header has more
    commas than the rows, the surplus belongs to the name of the last column, because some archives do not quote their
    titles.

    Raises FileProblem: the file cannot be read, is empty, has no rows, or rows of different lengths.
    """
    if path.suffix.lower() in {".parquet", ".pq"}:
        return in_columns(_parquet(path))
    notes: list[str] = []
    text = read_table_text(path, kind="traffic series", max_file_bytes=_MAX_BYTES, on_note=notes.append)
    table = tool_table(str(path), text) or influx_table(str(path), text) or in_columns(_csv(path, text))
    return replace(table, notes=(*notes, *table.notes))


def _csv(path: Path, text: str) -> SeriesTable:
    lines = text.splitlines()
    numbered = _with_commented_titles(
        [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")], lines
    )
    if numbered and re.fullmatch(r"sep=[,;\t]", numbered[0][1].strip().strip('"')):  # written for Excel
        numbered.pop(0)
    head: dict[str, str] = {}
    if numbered and _HEAD_LINE.match(numbered[0][1]):
        numbered, head = _without_head(str(path), numbered)
    # nfdump appends totals to its records.
    summary = next((index for index, (_, line) in enumerate(numbered) if line.strip() == "Summary"), None)
    numbered = numbered[:summary]
    if not numbered:
        raise FileProblem(str(path), [Problem("", "is empty: a series has a header and one sample per line")])
    # The second line determines the delimiter, because titles may contain any character; they decide only where commas
    # may be those of decimals.
    title, sample = numbered[0][1], numbered[min(1, len(numbered) - 1)][1]
    delimiter = max(",;\t", key=lambda sign: (sample.count(sign), title.count(sign)))
    try:
        if delimiter in sample or delimiter in title:
            cells = list(csv.reader((line for _, line in numbered), delimiter=delimiter))
        else:
            cells = [line.split() if _is_spaced(sample) else [line] for _, line in numbered]
        parsed = [[field.strip() for field in row] for row in cells]
    except csv.Error as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read as CSV: {problem}")]) from problem
    if len(parsed) != len(numbered):
        raise FileProblem(str(path), [Problem("", "has a quoted field of several lines: a series has none")])
    if len(parsed) > 1 and _is_sample(parsed[0]):
        parsed.insert(0, ["time", *(f"column {number}" for number in range(2, len(parsed[0]) + 1))])
        numbered.insert(0, (0, ""))
    kept = [index for index, row in enumerate(parsed) if index == 0 or any(row)]
    numbered, parsed = [numbered[index] for index in kept], [parsed[index] for index in kept]
    header, rows = parsed[0], parsed[1:]
    if not rows:
        raise FileProblem(str(path), [Problem("", "has a header and no samples")])
    width = max((index + 1 for row in rows for index, field in enumerate(row) if field), default=0)
    while len(header) > width and not header[-1]:
        header.pop()
    if len(header) > width >= 1:
        header = [*header[: width - 1], ", ".join(header[width - 1 :])]
    problems = [
        Problem(f"line {line}", f"has {len(row)} fields, the header {len(header)}")
        for (line, _), row in zip(numbered[1:], rows, strict=True)
        if len(row) < len(header) or any(row[len(header) :])
    ]
    if problems:
        raise FileProblem(str(path), shortened(problems))
    rows, assumed = with_plain_numbers([row[: len(header)] for row in rows], has_commas=delimiter == ",")
    header, rows = _with_whole_times(header, rows)
    if header[:3] == ["hostname", "interval", "timestamp"]:
        rows = _begun_at(rows, ends_at=2, length_at=1)
    places = [f"line {line}" for line, _ in numbered[1:]]
    ends = _count_without_time(rows)
    notes = [line.removeprefix(_NOTE).strip() for line in lines if line.startswith(_NOTE)]
    notes += [assumed] if assumed else []
    if ends:
        notes.append(f'{ends} rows at the end without a time, first "{rows[-ends][0][:40]}": left out')
        rows, places = rows[:-ends], places[:-ends]
    return SeriesTable(
        path=str(path),
        names=tuple(header),
        rows=tuple(map(tuple, rows)),
        places=tuple(places),
        notes=tuple(notes),
        **_from_head(head, header),
    )


def _with_commented_titles(numbered: list[tuple[int, str]], lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the lines with the titles, which gnuplot's files and ``sadf -d`` have in a comment above the samples."""
    if not numbered or numbered[0][0] < 2 or not lines[numbered[0][0] - 2].startswith("#"):
        return numbered
    number, first = numbered[0]
    titles = lines[number - 2].lstrip("# \t")
    for sign in (";", "\t", ",", None):
        cells = [cell.strip() for cell in first.split(sign)]
        if len(cells) > 1 and len(titles.split(sign)) == len(cells) and any(map(_is_time, cells[:3])):
            return [(number - 1, titles), *numbered]
    return numbered


def _is_spaced(sample: str) -> bool:
    cells = sample.split()
    return len(cells) > 1 and _is_time(cells[0]) and all(_is_number_or_clock(cell) for cell in cells[1:])


def _is_number_or_clock(cell: str) -> bool:
    return cell.lower() in MISSING or is_number(cell) or _CLOCK.fullmatch(cell) is not None


def _is_time(cell: str) -> bool:
    """Return whether a cell is a date, or seconds (or less) since 1970 that are no small number."""
    try:
        parse_time(cell)
    except (ValueError, OverflowError):
        return False
    return not is_number(cell) or float(cell) >= _LEAST_SINCE_1970_S


def _is_sample(row: Sequence[str]) -> bool:
    """Return whether the first row is a sample already, so that the file has no titles."""
    return len(row) > 1 and _is_time(row[0]) and all(_is_number_or_clock(cell) for cell in row[1:])


def _with_whole_times(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return the columns with one of times, where the file has dates and times of day in columns beside each other."""
    for at in range(min(len(rows[0]) - 1, 3)):
        if all(_DAY.fullmatch(row[at]) and _CLOCK.fullmatch(row[at + 1]) for row in rows):
            rows = [[*row[:at], f"{row[at]} {row[at + 1]}", *row[at + 2 :]] for row in rows]
            return [*header[:at], "time", *header[at + 2 :]], rows
    return header, rows


def _begun_at(rows: list[list[str]], *, ends_at: int, length_at: int) -> list[list[str]]:
    """Return rows with the begin of their intervals; ``sadf -d`` states the ends and the lengths in seconds."""
    begun = []
    for row in rows:
        try:
            begin = parse_time(row[ends_at]) - timedelta(seconds=float(row[length_at]))
        except (ValueError, OverflowError):
            begun.append(row)
            continue
        begun.append([*row[:ends_at], begin.isoformat(sep=" "), *row[ends_at + 1 :]])
    return begun


def _count_without_time(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows at the end are sums or means, with words in place of a time."""
    if not rows or not rows[0] or not _is_time(rows[0][0]):
        return 0
    ends = 0
    while ends < min(_MAX_SUMMARY_ROWS, len(rows) - 1):
        cell = rows[-1 - ends][0]
        if not _WORD.match(cell) or cell.lower() in MISSING or _is_time(cell):
            break
        ends += 1
    return ends


def _without_head(path: str, numbered: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], dict[str, str]]:
    """Return the lines after the head of a Cacti export, and the head by its lower-case keys."""
    head: dict[str, str] = {}
    for index, (_, line) in enumerate(numbered):
        cells = next(csv.reader([line]))
        key = cells[0].strip().lower()
        if not key.endswith(":"):
            if key.strip() in _DATE_TITLES:
                return numbered[index:], head
            continue
        head[key.rstrip(":").strip()] = ", ".join(cell.strip() for cell in cells[1:] if cell.strip())
    message = 'has a head as Cacti writes it, and no line of titles that begins with "Date"'
    raise FileProblem(path, [Problem("", message)])


def _from_head(head: dict[str, str], header: list[str]) -> dict[str, Any]:
    """Return the format and the units of a Cacti export: its graphs state the unit beside the axis or in the title."""
    if not head:
        return {}
    for key in ("vertical label", "title"):
        text = head.get(key, "")
        unit = _LABEL_UNIT.search(text)
        if unit:
            prefix = _PREFIXES[(unit["prefix"] or "").lower()]
            bits = "bit/s" if unit["unit"].lower() in {"bit", "bits", "b"} and unit["unit"] != "B" else "byte/s"
            return {
                "format_name": "Cacti export",
                "units": ("", *[f"{prefix}{bits}"] * (len(header) - 1)),
                "unit_reason": f'its {key} is "{text[:60]}"',
            }
    return {"format_name": "Cacti export"}


def _parquet(path: Path) -> SeriesTable:
    frame = read_parquet(path, kind="traffic series", max_file_bytes=_MAX_BYTES)
    if frame.height == 0:
        raise FileProblem(str(path), [Problem("", "has no samples")])
    rows = tuple(tuple("" if value is None else str(value) for value in row) for row in frame.iter_rows())
    return SeriesTable(
        path=str(path),
        names=tuple(frame.columns),
        rows=rows,
        places=tuple(f"row {number}" for number in range(1, len(rows) + 1)),
    )
