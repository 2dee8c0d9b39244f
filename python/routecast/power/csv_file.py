"""Tables of samples that people write as CSV: rows with their places, and every fault at once."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["UNNAMED_DEVICE", "CsvFile", "Row", "read_csv", "watts"]

UNNAMED_DEVICE = "device"
"""What the one device of a file is called that names none."""


_MOST_FAULTS = 20
_MOST_W = 1e9


@dataclass(slots=True, kw_only=True)
class Row:
    """One row: its number in the file (the header is 1), its cells by column, and where its faults go."""

    number: int
    cells: dict[str, str]
    problems: list[Problem] = field(default_factory=list)

    def fault(self, column: str, message: str) -> None:
        """Note a fault of a cell."""
        self.problems.append(Problem(f"row {self.number}, column {column}", message))

    def text(self, column: str, default: str = "") -> str:
        """Return a cell as text."""
        return self.cells.get(column, "").strip() or default

    def number_in(
        self,
        column: str,
        *,
        default: float | None = None,
        low: float = 0.0,
        high: float = math.inf,
        what: str = "a number, not negative",
    ) -> float:
        """Return a cell as a number; NaN, and a fault, where it is none or out of ``low`` to ``high``."""
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and low <= value <= high):
            self.fault(column, f'got "{text}": it must be {what}')
            return math.nan
        return value


@dataclass(slots=True, kw_only=True)
class CsvFile:
    """The rows of a file, and its columns."""

    path: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def require(self, wanted: Sequence[str], *, hint: str = "") -> None:
        """Refuse the file where a column is missing.

        Raises
        ------
        routecast.errors.FileProblem
            It names the columns that are there.
        """
        missing = [column for column in wanted if column not in self.columns]
        if missing:
            there = ", ".join(self.columns)
            problems = [Problem("", f'has no column "{one}"; {did_you_mean(one, self.columns)}') for one in missing]
            if len(self.columns) == 1 and any(sign in there for sign in ";\t|"):
                hint = f"Commas must stand between columns. {hint}"
            last = problems[-1].message.removesuffix("?")
            stop = "?" if last != problems[-1].message else "."
            problems[-1] = Problem("", f"{last}{stop} Columns of the file: {there}. {hint}".strip())
            raise FileProblem(self.path, problems)

    def refuse_faults(self) -> None:
        """Refuse the file where a row noted a fault.

        Raises
        ------
        routecast.errors.FileProblem
            All faults, up to 20 of them.
        """
        problems = [problem for row in self.rows for problem in row.problems]
        if problems:
            more = len(problems) - _MOST_FAULTS
            rest = [Problem("", f"and {more} more")] if more > 0 else []
            raise FileProblem(self.path, problems[:_MOST_FAULTS] + rest)


def read_csv(path: str | Path, *, kind: str) -> CsvFile:
    """Read a CSV file with a header; empty lines and those that start with ``#`` are skipped.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is empty, or a row has more or fewer cells than the header.
    """
    text = read_text(Path(path), kind=kind, largest_bytes=100_000_000)
    lines = csv.reader(io.StringIO(text))
    header: tuple[str, ...] = ()
    rows, problems = [], []
    try:
        for cells in lines:
            if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
                continue
            if not header:
                header = tuple(cell.strip() for cell in cells)
            elif len(cells) != len(header):
                message = f"has {len(cells)} cells, the header {len(header)}"
                problems.append(Problem(f"row {lines.line_num}", message))
            else:
                rows.append(Row(number=lines.line_num, cells=dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise FileProblem(str(path), [Problem(f"row {lines.line_num}", f"is no CSV: {error}")]) from error
    if not rows and not problems:
        problems.append(Problem("", f"has no rows: no {kind}"))
    if len(set(header)) < len(header):
        problems.append(Problem("row 1", "names a column twice"))
    if problems:
        raise FileProblem(str(path), problems[:_MOST_FAULTS])
    return CsvFile(path=str(path), columns=header, rows=tuple(rows))


def watts(row: Row, column: str) -> float:
    """Return a cell as a power; NaN, and a fault, where it is none."""
    return row.number_in(column, high=_MOST_W, what="watts, not negative")
