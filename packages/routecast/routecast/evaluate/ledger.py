"""Rows of finished trials on disk. A long run appends to them, and a killed run continues from them.

::

    OUT/results.parts/000001.parquet …   rows of this run, one file every half second, each complete or absent
    OUT/results.parquet                  all rows, written at the end, at an interruption and when parts are merged
    OUT/summary.json                     exists only when the run is complete
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from routecast.errors import FileProblem, Problem
from routecast.quantity.whole_file import unfinished

if TYPE_CHECKING:
    import polars

__all__ = ["Columns", "Ledger", "Row", "read_rows"]

FLUSH_EVERY_S = 0.5

MAX_PARTS = 200
"""Number of parts that are merged into one file: the shared file systems of clusters are slow with thousands."""

Row = dict[str, str | int | float | None]
"""One row of the table; ``task`` is the key of the task with this result."""

Columns = Mapping[str, Literal["text", "whole", "number"]]
"""Kind of each column of the table, in order; the column ``task`` holds text."""


class Ledger:
    """Rows of finished tasks in a folder, by task.

    It is a context manager: every exit writes the finished rows.

    ``folder``: the folder of results, created if missing. A complete run in it starts again, an unfinished run
    continues; ``table``: stem of the table's files; ``summary``: name of the file that marks a complete run; with None
    the run always continues from the rows on disk; a file without content has no rows. Raises FileProblem: the rows on
    disk cannot be read.
    """

    def __init__(
        self, folder: Path, columns: Columns, *, table: str = "results", summary: str | None = "summary.json"
    ) -> None:
        self._columns = columns
        self._table = folder / f"{table}.parquet"
        self._parts = folder / f"{table}.parts"
        self._unwritten: list[Row] = []
        self._flushed_at = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        if summary is not None and (folder / summary).exists():
            (folder / summary).unlink()
            self._remove_files()
        self._rows = {str(row["task"]): row for row in read_rows(folder, columns, table=table)}

    @property
    def rows(self) -> Mapping[str, Row]:
        """Finished rows by the key of their task."""
        return self._rows

    def start_over(self) -> None:
        """Remove every row, also from disk."""
        self._rows.clear()
        self._unwritten.clear()
        self._remove_files()

    def _remove_files(self) -> None:
        self._table.unlink(missing_ok=True)
        shutil.rmtree(self._parts, ignore_errors=True)

    def add(self, row: Row) -> None:
        """Add a finished row; it is on disk within half a second."""
        self._rows[str(row["task"])] = row
        self._unwritten.append(row)
        if time.monotonic() - self._flushed_at >= FLUSH_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are not yet on disk as a new part."""
        if self._unwritten:
            self._parts.mkdir(exist_ok=True)
            number = 1 + max((int(path.stem) for path in self._parts.glob("*.parquet")), default=0)
            with unfinished(self._parts / f"{number:06d}.parquet") as draft:
                self._frame(self._unwritten).write_parquet(draft)
            self._unwritten = []
            if number >= MAX_PARTS:
                self._merge_parts()
        self._flushed_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        self._merge_parts()

    def _merge_parts(self) -> None:
        """Write all rows as one table.

        If it is killed before it removes the parts, both exist with the same content.
        """
        if self._rows:
            with unfinished(self._table) as draft:
                self._frame(list(self._rows.values())).write_parquet(draft)
        shutil.rmtree(self._parts, ignore_errors=True)

    def _frame(self, rows: list[Row]) -> polars.DataFrame:
        import polars

        kinds = {"text": polars.String, "whole": polars.Int64, "number": polars.Float64}
        schema = {name: kinds[kind] for name, kind in self._columns.items()}
        return polars.DataFrame(rows, schema=schema, orient="row")


def read_rows(folder: Path, columns: Columns, *, table: str = "results") -> list[Row]:
    """Return the rows of a table on disk, also while a run writes them; empty if there is no table.

    Raises FileProblem: the rows cannot be read.
    """
    import polars

    tables: list[list[Row]] = []
    # The table last: a run that ends meanwhile writes it before it removes its parts.
    for path in (*sorted((folder / f"{table}.parts").glob("*.parquet")), folder / f"{table}.parquet"):
        try:
            # A loss of power leaves a file of no bytes where a run had just begun.
            if path.stat().st_size == 0:
                continue
            frame = polars.read_parquet(path)
            # An earlier version may have written fewer columns.
            frame = frame.with_columns(polars.lit(None).alias(name) for name in columns if name not in frame.columns)
            tables.append(frame.select(list(columns)).to_dicts())
        except FileNotFoundError:
            continue
        except (polars.exceptions.PolarsError, OSError) as error:
            message = f"cannot be read ({error}): remove it, or give another folder with --out"
            raise FileProblem(str(path), [Problem("", message)]) from error
    return [row for rows in (*tables[-1:], *tables[:-1]) for row in rows]
