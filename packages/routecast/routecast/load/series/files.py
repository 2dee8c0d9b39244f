"""Tables of samples from files: CSV, Parquet, and the formats of monitoring tools."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.load.series._table import SeriesTable, shortened
from routecast.load.series.formats import tool_table
from routecast.load.series.long import in_columns, influx_table
from routecast.quantity.bounded_file import read_parquet, read_text

__all__ = ["read_series_table"]

_NOTE = "# note:"
_MAX_BYTES = 500_000_000
_HEAD_LINE = re.compile(r"\ufeff?\"?(?:Title|Vertical Label|Start Date|Graph ID|Host ID|Step)\s*:", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,(\d+)(?:[eE][-+]?\d+)?(?:\s*[A-Za-z/]+)?$")
_DATE_TITLES = frozenset({"date", "time", "datetime", "timestamp"})
_LABEL_UNIT = re.compile(
    r"(?<![A-Za-z])(?P<prefix>kilo|mega|giga|[kMG])?(?P<unit>bits?|bytes?|octets?|b|B)"
    r"(?:\s*(?:per|/)\s*s(?:ec(?:ond)?s?)?|ps)(?![A-Za-z])",
    re.IGNORECASE,
)
_PREFIXES = {"": "", "k": "k", "kilo": "k", "m": "M", "mega": "M", "g": "G", "giga": "G"}


def read_series_table(path: Path) -> SeriesTable:
    """Read a CSV file (comma, semicolon or tab), a Parquet file, or a file of a monitoring tool.

    Lines that begin with ``#`` are skipped, except that the text after ``# note:`` becomes a note. Trailing empty
    columns are omitted. If the header has more commas than the rows, the surplus belongs to the name of the last
    column, because some archives do not quote their titles.

    Raises FileProblem: the file cannot be read, is empty, has no rows, or rows of different lengths.
    """
    if path.suffix.lower() in {".parquet", ".pq"}:
        return in_columns(_parquet(path))
    text = read_text(path, kind="traffic series", max_file_bytes=_MAX_BYTES)
    return tool_table(str(path), text) or influx_table(str(path), text) or in_columns(_csv(path, text))


def _csv(path: Path, text: str) -> SeriesTable:
    lines = text.splitlines()
    numbered = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    if numbered and re.fullmatch(r"sep=[,;\t]", numbered[0][1].strip()):  # written for Excel
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
        parsed = [[field.strip() for field in row] for row in csv.reader((t for _, t in numbered), delimiter=delimiter)]
    except csv.Error as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read as CSV: {problem}")]) from problem
    if len(parsed) != len(numbered):
        raise FileProblem(str(path), [Problem("", "has a quoted field of several lines: a series has none")])
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
    if delimiter != ",":
        rows = _with_decimal_points(rows, len(header))
    return SeriesTable(
        path=str(path),
        names=tuple(header),
        rows=tuple(tuple(row[: len(header)]) for row in rows),
        places=tuple(f"line {line}" for line, _ in numbered[1:]),
        notes=tuple(line.removeprefix(_NOTE).strip() for line in lines if line.startswith(_NOTE)),
        **_from_head(head, header),
    )


def _with_decimal_points(rows: list[list[str]], width: int) -> list[list[str]]:
    """Return rows with points for decimal commas, in columns where some comma cannot separate thousands."""
    decimal = {
        index
        for index in range(width)
        if any((match := _DECIMAL_COMMA.match(row[index])) and len(match[1]) != 3 for row in rows)
    }
    return [
        [
            cell.replace(",", ".") if index in decimal and _DECIMAL_COMMA.match(cell) else cell
            for index, cell in enumerate(row)
        ]
        for row in rows
    ]


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
