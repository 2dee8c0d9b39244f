"""The results of a study on disk: appended while it runs, so that a killed study goes on where it stopped.

::

    OUT/results.parts/000001.parquet …   what this run has finished, a file every half second, each whole or absent
    OUT/results.parquet                  everything finished, written when the run ends or is interrupted
    OUT/summary.json                     stands there only when the study is complete
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from routecast.errors import FileProblem, Problem
from routecast.study.tasks import Row

if TYPE_CHECKING:
    import polars

__all__ = ["Ledger"]

FLUSH_EVERY_S = 0.5

TEXTS = ("task", "law", "evaluator", "bottleneck_kind", "bottleneck", "bottleneck_reason")
WHOLES = ("cores", "ports", "flows", "frame_bytes", "seed", "flow_seed")
COUNTS = ("offered_frames", "forwarded_frames", "dropped_frames", "in_flight_frames")


class Ledger:
    """Rows of finished tasks in a folder, by task.

    Use it as a context: leaving it, in whatever way, writes what is finished.

    Parameters
    ----------
    folder : Path
        The study's folder of results; made if missing. A complete study in it is started anew, an unfinished one goes
        on.

    Raises
    ------
    routecast.errors.FileProblem
        The rows that are there cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._table = folder / "results.parquet"
        self._parts = folder / "results.parts"
        self._summary = folder / "summary.json"
        self._fresh: list[Row] = []
        self._flushed_at = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        if self._summary.exists():
            self._summary.unlink()
            self._table.unlink(missing_ok=True)
            shutil.rmtree(self._parts, ignore_errors=True)
        self._rows = {str(row["task"]): row for row in self._read()}

    @property
    def rows(self) -> Mapping[str, Row]:
        """Finished rows by the key of their task."""
        return self._rows

    def add(self, row: Row) -> None:
        """Enter a finished row; it is on disk half a second later at the latest."""
        self._rows[str(row["task"])] = row
        self._fresh.append(row)
        if time.monotonic() - self._flushed_at >= FLUSH_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are not on disk yet as one more part."""
        if self._fresh:
            self._parts.mkdir(exist_ok=True)
            number = 1 + max((int(path.stem) for path in self._parts.glob("*.parquet")), default=0)
            _write_whole(_frame(self._fresh), self._parts / f"{number:06d}.parquet")
            self._fresh = []
        self._flushed_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        if self._rows:
            _write_whole(_frame(list(self._rows.values())), self._table)
        shutil.rmtree(self._parts, ignore_errors=True)

    def _read(self) -> list[Row]:
        import polars

        paths = [path for path in (self._table, *sorted(self._parts.glob("*.parquet"))) if path.exists()]
        rows: list[Row] = []
        for path in paths:
            try:
                rows += polars.read_parquet(path).select(list(_schema())).to_dicts()
            except (polars.exceptions.PolarsError, OSError) as error:
                message = f"cannot be read ({error}): remove it, or give another folder with --out"
                raise FileProblem(str(path), [Problem("", message)]) from error
        return rows


def _schema() -> dict[str, type[polars.DataType]]:
    import polars

    names = (
        *(
            "task",
            "law",
            "evaluator",
            "cores",
            "ports",
            "link_bps",
            "flows",
            "frame_bytes",
            "seed",
            "flow_seed",
        ),
        *("duration_s", "intended_pps", "offered_pps", "forwarded_pps", "loss_ratio", "l1_bps", "l2_bps"),
        *COUNTS,
        *("latency_mean_s", "bottleneck_kind", "bottleneck", "bottleneck_reason"),
    )
    whole = {*WHOLES, *COUNTS}
    return {
        name: polars.String if name in TEXTS else polars.Int64 if name in whole else polars.Float64
        for name in names
    }


def _frame(rows: list[Row]) -> polars.DataFrame:
    import polars

    return polars.DataFrame(rows, schema=_schema(), orient="row")


def _write_whole(frame: polars.DataFrame, path: Path) -> None:
    """Write under another name first, so that a file is whole or absent whenever the process dies."""
    unfinished = path.with_suffix(".unfinished")
    frame.write_parquet(unfinished)
    os.replace(unfinished, path)
