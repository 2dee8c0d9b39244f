"""A power meter over a log to which another program appends the watts of a power strip or a wall meter.

The columns of time and watts are found by the names in the first line; without names they are the first two::

    time,watts
    2026-03-01T12:00:00Z,182.4          ISO 8601, UTC if it names no zone
    1772366401.0,183.1                  or seconds since 1970
    17.5,183.0                          or seconds of any clock: the newest row then counts as of now
"""

from __future__ import annotations

import csv
import datetime
import math
import re
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

from routecast.errors import EnvironmentProblem, FileProblem, ModelProblem, Problem
from routecast.lab.testbed.meters._meter import PeriodicThread, PowerReading, PowerSpan, Zone, reading_of
from routecast.quantity.bounded_file import open_file

_TIME_COLUMNS: Final = ("time_s", "time", "timestamp", "at_s", "date", "datetime", "unixtime")
_WATTS_COLUMNS: Final = ("power_w", "watts", "watt", "power", "w", "active_power_w", "active_power")
_SINCE_1970_S = 1e8
"""Smaller times are those of another clock."""

_BLOCK_BYTES = 4096


class CsvMeter:
    """A :class:`~routecast.lab.testbed.meters.PowerMeter` over a log that grows.

    ``scope`` is what the figures cover: ``pdu``, ``wall``. ``interval_s`` is the time between readings of the file
    (infinite: at the end only), ``wait_s`` the longest wait at the end of an interval for a row after it. ``clock`` and
    ``wall_clock`` return the time of trials and the time since 1970 in seconds. Raises ModelProblem: a time is not > 0.
    """

    def __init__(
        self,
        path: Path,
        *,
        scope: str = "pdu",
        interval_s: float = 1.0,
        wait_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        if not interval_s > 0.0 or not wait_s >= 0.0:
            raise ModelProblem(f"csv:{path}", [Problem("interval", f"got {interval_s} s: a time > 0 s")])
        self.name = f"csv:{path}"
        self.scope = scope
        self._path = path
        self.interval_s = interval_s
        self._wait_s = wait_s
        self._clock = clock
        self._wall_clock = wall_clock
        self._thread = PeriodicThread(self._read_new_rows, interval_s)
        self._lock = threading.Lock()
        self._reset()

    def start(self) -> None:
        """Record the present end of the file, from which :meth:`stop` reads.

        Raises EnvironmentProblem: the file cannot be read, or it has no columns of time and watts.
        """
        self._reset()
        try:
            with open_file(self._path, kind="log of watts") as file:
                header = file.read(_BLOCK_BYTES).decode("utf-8", errors="replace")
                size = file.seek(0, 2)
                file.seek(max(0, size - _BLOCK_BYTES))
                tail = file.read(_BLOCK_BYTES).decode("utf-8", errors="replace")
        except FileProblem as problem:
            raise EnvironmentProblem(f"power meter {self.name}: {problem.problems[0].message}") from problem
        self._find_columns(header)
        # The last row before the interval is the power at its beginning.
        lines = tail.split("\n")
        self._offset = size - len(lines[-1].encode())
        for line in reversed(lines[:-1]):
            if (row := self._parse_row(line)) is not None:
                self._append_rows([row])
                break
        self._bad_lines = 0
        self._begin_s = self._clock()
        self._thread.start(f"power meter {self.name}")

    def stop(self) -> PowerReading:
        """Read the rows appended meanwhile and return their reading."""
        end_s = self._clock()
        self._thread.stop()
        self._read_new_rows()
        deadline_s = time.monotonic() + self._wait_s
        while (not self._rows or self._rows[-1][0] < end_s) and time.monotonic() < deadline_s:
            time.sleep(min(0.05, self._wait_s))
            self._read_new_rows()
        rows = self._rows
        rows_within = [row for row in rows if self._begin_s <= row[0] <= end_s]
        spans = [self._span(before[0], after[0], before[1], after[1]) for before, after in pairwise(rows)]
        if rows and rows[-1][0] < end_s and rows_within:
            # Nothing newer is known: the last row holds until the end.
            spans.append(self._span(rows[-1][0], end_s, rows[-1][1], rows[-1][1]))
        if not rows_within:
            spans = spans if rows and rows[0][0] < self._begin_s and rows[-1][0] > end_s else []
            age = f"its newest row is {end_s - rows[-1][0]:.3g} s old" if rows else "it has no row"
            if not spans:
                self._notes.append(f"nothing was appended to {self._path} in the interval: {age}")
        if self._bad_lines:
            self._notes.append(f"{self._bad_lines} lines of {self._path} hold no time and watts")
        return reading_of(
            spans,
            [(self._begin_s, end_s)],
            meter=self.name,
            scope=self.scope,
            zones=(Zone(name=self.scope, scope=self.scope),),
            quantum_j=math.nan,
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _span(self, from_s: float, to_s: float, first_w: float, last_w: float) -> PowerSpan:
        low_w, high_w = sorted((first_w, last_w))
        zones_w = {self.scope: 0.5 * (first_w + last_w)}
        return PowerSpan(from_s=from_s, to_s=to_s, zones_w=zones_w, low_w=low_w, high_w=high_w)

    def latest_w(self) -> float:
        """Return the newest row's watts."""
        with self._lock:
            return self._rows[-1][1] if self._rows else math.nan

    def _reset(self) -> None:
        self._rows: list[tuple[float, float]] = []
        self._notes: list[str] = []
        self._bad_lines = 0
        self._offset = 0
        self._begin_s = math.nan
        self._columns = (0, 1)
        self._delimiter = ","
        self._header = ""
        self._clock_offset_s: float | None = None

    def _read_new_rows(self) -> None:
        """Read the complete lines appended since the last reading."""
        try:
            with open_file(self._path, kind="log of watts") as file:
                if file.seek(0, 2) < self._offset:
                    self._notes.append(f"{self._path} was truncated or restarted meanwhile")
                    self._offset = 0
                file.seek(self._offset)
                text = file.read()
        except FileProblem as problem:
            self._notes.append(f"{self._path} could not be read any more: {problem.problems[0].message}")
            return
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        rows = []
        for line in complete.decode("utf-8", errors="replace").splitlines():
            row = self._parse_row(line)
            if row is not None:
                rows.append(row)
            elif line.strip() and not line.startswith("#") and line.strip() != self._header:
                self._bad_lines += 1
        self._append_rows(rows)

    def _append_rows(self, rows: list[tuple[float, float]]) -> None:
        """Convert the times of rows to the clock of trials; a row older than its predecessor is bad."""
        if not rows:
            return
        if self._clock_offset_s is None and rows[-1][0] < _SINCE_1970_S:
            self._clock_offset_s = self._clock() - rows[-1][0]
            self._notes.append("the times of the file are of another clock: its newest row counts as of now")
        shift_s = self._clock() - self._wall_clock() if self._clock_offset_s is None else self._clock_offset_s
        with self._lock:
            for at_s, watts in rows:
                if self._rows and at_s + shift_s <= self._rows[-1][0]:
                    self._bad_lines += 1
                else:
                    self._rows.append((at_s + shift_s, watts))

    def _find_columns(self, header: str) -> None:
        first = next((line for line in header.splitlines() if line.strip() and not line.startswith("#")), "")
        self._header = first.strip()
        self._delimiter = next((sign for sign in (";", "\t", ",") if sign in first), ",")
        if not _is_header(first):
            if first and self._parse_row(first) is None:
                self._raise_no_columns(first)
            return
        names = [cell.strip().lower() for cell in _cells(first, self._delimiter)]
        positions = [
            next((names.index(name) for name in allowed if name in names), -1)
            for allowed in (_TIME_COLUMNS, _WATTS_COLUMNS)
        ]
        if min(positions) < 0:
            self._raise_no_columns(first)
        self._columns = (positions[0], positions[1])

    def _raise_no_columns(self, line: str) -> None:
        raise EnvironmentProblem(
            f"power meter {self.name}: got {line[:60]!r} as its first line: give the columns time and watts "
            f"(known names: {', '.join(_TIME_COLUMNS)}; {', '.join(_WATTS_COLUMNS)})"
        )

    def _parse_row(self, line: str) -> tuple[float, float] | None:
        cells = _cells(line, self._delimiter)
        if len(cells) <= max(self._columns):
            return None
        at_s = _instant_s(cells[self._columns[0]])
        try:
            watts = float(cells[self._columns[1]])
        except ValueError:
            return None
        return (at_s, watts) if math.isfinite(at_s) and math.isfinite(watts) and watts >= 0.0 else None


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _is_header(line: str) -> bool:
    """Whether a first line holds names: a time in ISO 8601 has at most two letters in a row."""
    return re.search(r"[A-Za-z]{3}", line) is not None


def _instant_s(text: str) -> float:
    """Return seconds since 1970, or of another clock; NaN if the text is not a time."""
    text = text.strip()
    try:
        return float(text)
    except ValueError:
        pass
    try:
        instant = datetime.datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=datetime.UTC)
    return instant.timestamp()
