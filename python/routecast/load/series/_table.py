"""Traffic series, and tables of their samples from CSV or Parquet files, with the place of each row.

A traffic series is the bit rate over days in equal steps, as a link counter or a flow collector reports it.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.quantity.bounded_file import read_parquet, read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.parse import parse_bit_rate_bps
from routecast.quantity.schema import field, value

DAY_S = 86_400.0


@value
class TrafficSeries:
    """Mean bit rates in equal steps."""

    step_s: float = field("Length of a step")
    l2_bps: tuple[float, ...] = field("Mean rate during each step; NaN if missing")
    start: datetime | None = field(
        "Begin of the first step, naive local time; None for a typical day, which begins at midnight", default=None
    )
    source: str = field("Source of the series, for reports", default="")
    notes: tuple[str, ...] = field("Remarks on gaps, zeros and scaling", default=())

    @property
    def duration_s(self) -> float:
        """Length of the whole series."""
        return self.step_s * len(self.l2_bps)

    @property
    def peak_bps(self) -> float:
        """Highest rate of a step; NaN if all steps are missing."""
        return max((rate for rate in self.l2_bps if not math.isnan(rate)), default=float("nan"))


SERIES_UNITS_TEXT = '"bit/s", "Mbit/s", "byte/s", "bit per step", "byte per step", "octet counter32", "octet counter64"'
"""The allowed units, for messages."""

_PER_STEP = re.compile(r"(?P<unit>[A-Za-z]+)\s*(?:/|per)\s*step", re.IGNORECASE)
_COUNTER = re.compile(r"(?:octets?|bytes?)\s*counter\s*(?P<bits>32|64)", re.IGNORECASE)
_NAMED_BITS = re.compile(
    r"(?<![A-Za-z])(?P<prefix>[kmgtKMGT]?)(?:(?i:bits?)(?i:\s*/\s*|[ _]?per[ _]?)(?i:s|sec|seconds?)"
    r"|b(?:/s|ps))(?![A-Za-z])"
)
_NAMED_BYTES = re.compile(
    r"(?<![A-Za-z])(?P<prefix>[kmgtKMGT]?)(?:(?i:bytes?|octets?)(?i:\s*/\s*|[ _]?per[ _]?)(?i:s|sec|seconds?)"
    r"|B/s)(?![A-Za-z])"
)
_NAMED_COUNTER = re.compile(r"(?i:if)(?P<wide>HC)?(?:In|Out)Octets", re.IGNORECASE)
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@value
class SeriesUnit:
    """The unit of the numbers of a series."""

    bits: float = field("Bits that the number 1 stands for")
    per: Literal["second", "step", "counter"] = field(
        "second: a rate; step: an amount in a step; counter: the state of a counter that rises until it wraps"
    )
    counter_bits: int = field(
        "Width of a counter (RFC 2863: ``ifInOctets`` has 32 bits, ``ifHCInOctets`` 64)", default=64
    )


def parse_series_unit(text: str) -> SeriesUnit:
    """Read the unit of a series.

    Raises QuantityProblem: the text is no unit of a series.

    Examples
    --------
    >>> parse_series_unit("Mbit/s").bits
    1000000.0
    >>> parse_series_unit("byte per step").per
    'step'
    """
    counter = _COUNTER.fullmatch(text.strip())
    if counter:
        return SeriesUnit(bits=8.0, per="counter", counter_bits=int(counter["bits"]))
    step = _PER_STEP.fullmatch(text.strip())
    rate = f"{step['unit']}/s" if step else text.strip()
    try:
        if not _PER_TIME.search(rate):  # a link of "10G" is a rate, but an amount in a file may be one of a step
            raise QuantityProblem(text, "names no time")
        return SeriesUnit(bits=parse_bit_rate_bps(f"1 {rate}"), per="step" if step else "second")
    except QuantityProblem as problem:
        raise QuantityProblem(
            text, f'"{text[:60]}" is no unit of a traffic series: write one such as {SERIES_UNITS_TEXT}'
        ) from problem


def unit_in_name(name: str) -> SeriesUnit | None:
    """Return the unit in the name of a column, None without one.

    A name with bits but without a time (``"traffic (in bits)"``) has no unit.

    Examples
    --------
    >>> unit_in_name("total_MBITPERSEC").bits
    1000000.0
    """
    counter = _NAMED_COUNTER.search(name)
    if counter:
        return SeriesUnit(bits=8.0, per="counter", counter_bits=64 if counter["wide"] else 32)
    for pattern, bits in ((_NAMED_BITS, 1.0), (_NAMED_BYTES, 8.0)):
        match = pattern.search(name)
        if match:
            return SeriesUnit(bits=bits * _PREFIX[match["prefix"].lower()], per="second")
    return None


_PER_TIME = re.compile(r"/|ps$", re.IGNORECASE)
_NOTE = "# note:"
_MAX_BYTES = 500_000_000
_COMPACT = re.compile(r"(\d{8})[-_ T]?(\d{4}(?:\d{2})?)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")


@value
class SeriesTable:
    """A table of samples, as texts."""

    path: str
    names: tuple[str, ...] = field("Names of the columns")
    rows: tuple[tuple[str, ...], ...]
    places: tuple[str, ...] = field('Place of each row, for messages: ``"line 17"``')
    notes: tuple[str, ...] = field("Notes from the lines ``# note: …`` of the file", default=())


def read_series_table(path: Path) -> SeriesTable:
    """Read a CSV file (comma, semicolon or tab) or a Parquet file.

    Lines that begin with ``#`` are skipped, except that the text after ``# note:`` becomes a note. Trailing empty
    columns are omitted. If the header has more commas than the rows, the surplus belongs to the name of the last
    column, because some archives do not quote their titles.

    Raises FileProblem: the file cannot be read, is empty, has no rows, or rows of different lengths.
    """
    if path.suffix.lower() in {".parquet", ".pq"}:
        return _parquet(path)
    text = read_text(path, kind="traffic series", max_file_bytes=_MAX_BYTES)
    lines = text.splitlines()
    numbered = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    # nfdump appends totals to its records.
    summary = next((index for index, (_, line) in enumerate(numbered) if line.strip() == "Summary"), None)
    numbered = numbered[:summary]
    if not numbered:
        raise FileProblem(str(path), [Problem("", "is empty: a series has a header and one sample per line")])
    # The second line determines the delimiter, because titles may contain any character.
    sample = numbered[min(1, len(numbered) - 1)][1]
    delimiter = max(",;\t", key=sample.count)
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
    return SeriesTable(
        path=str(path),
        names=tuple(header),
        rows=tuple(tuple(row[: len(header)]) for row in rows),
        places=tuple(f"line {line}" for line, _ in numbered[1:]),
        notes=tuple(line.removeprefix(_NOTE).strip() for line in lines if line.startswith(_NOTE)),
    )


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


def column_index(table: SeriesTable, column: str, option: str) -> int:
    """Return the index of a column by its name, or by its number from 1.

    Raises FileProblem: the table has no such column.
    """
    if column in table.names:
        return table.names.index(column)
    lower = [name.lower() for name in table.names]
    if lower.count(column.lower()) == 1:
        return lower.index(column.lower())
    if column.isdecimal() and 1 <= int(column) <= len(table.names):
        return int(column) - 1
    raise FileProblem(
        table.path, [Problem(option, f'there is no column "{column}": {did_you_mean(column, table.names)}')]
    )


def parse_time(text: str) -> datetime:
    """Read an instant: ISO 8601, ``20040301-0005``, or seconds since 1970 (or since midnight, if small).

    The offset from UTC is kept for :func:`local_times`.

    Raises ValueError: the text is not a time.
    """
    compact = _COMPACT.fullmatch(text)
    if compact:
        day, clock = compact.groups()
        return datetime.strptime(day + clock, "%Y%m%d%H%M%S" if len(clock) == 6 else "%Y%m%d%H%M")
    if _NUMBER.fullmatch(text):
        seconds = float(text)
        if not 0.0 <= seconds < 1e11:
            raise ValueError(f'"{text[:40]}" is no time in seconds: times in milliseconds must be divided first')
        return datetime(1970, 1, 1) + timedelta(seconds=seconds)
    try:
        return datetime.fromisoformat(text)
    except ValueError as problem:
        raise ValueError(
            f'"{text[:40]}" is no time: write 2004-03-01 00:05:00, 20040301-0005, or seconds since 1970'
        ) from problem


def local_times(times: Sequence[datetime]) -> list[datetime]:
    """Return naive times, all with the UTC offset of the first time.

    Raises ValueError: some times have an offset and others do not.
    """
    aware = sum(time.tzinfo is not None for time in times)
    if aware == 0:
        return list(times)
    if aware != len(times):
        raise ValueError(f"{aware} of {len(times)} times have an offset from UTC and the others do not")
    offset = times[0].utcoffset() or timedelta(0)
    return [time.astimezone(UTC).replace(tzinfo=None) + offset for time in times]


def shortened(problems: Sequence[Problem], shown: int = 20) -> list[Problem]:
    """Return the first problems, and a last problem with the number of the others."""
    if len(problems) <= shown:
        return list(problems)
    return [*problems[:shown], Problem("", f"and {len(problems) - shown} more of {len(problems)}")]
