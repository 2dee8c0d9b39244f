"""Calibrated routers of the Python interface, and the tables that they are calibrated from."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from routecast.api._arguments import (
    Counts,
    Frames,
    Rate,
    as_list,
    captioned,
    frames_of_two,
    plain_entry,
    read_count,
    read_counts,
    read_mix,
    read_name,
    read_path,
    read_rate_pps,
    read_ratio,
    wrong_type,
)
from routecast.api._router import Router
from routecast.calibration import FittedRouter, fit
from routecast.calibration.fitted import MAX_CORES, at_cores
from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.evaluate.point_table import parse_cells, read_table
from routecast.evaluate.points import Point, PointTable, calibrating, of_series
from routecast.load import FrameMix

if TYPE_CHECKING:
    import polars

    from routecast.calibration.facts import OpenFact
    from routecast.size import Sizing


_LEAST_NOISE_RATIO = 1e-6
"""Least repeatability of a rate: a thousandth of what a counter of a second resolves."""


@dataclass(frozen=True)
class Calibration:
    """A router that was calibrated from measured ``points``; ``fitted`` has its parameters."""

    points: tuple[Point, ...]
    fitted: FittedRouter
    remarks: tuple[str, ...] = ()
    noise_ratio: float | None = None

    def predict(
        self,
        cores: Counts | None = None,
        frames: Iterable[Frames] | Frames | None = None,
        *,
        frame: Iterable[Frames] | Frames | None = None,
    ) -> polars.DataFrame:
        """Predict maximum throughputs with 95 % intervals, in a row for each number of cores and frames.

        None selects the values of the table.
        """
        import polars as pl

        frames = frames_of_two(frames, frame)
        model = max(self.points, key=lambda point: point.cores)
        counts = read_counts(cores) if cores is not None else sorted({point.cores for point in self.points})
        if frames is None:
            sizes = sorted({(p.frame_bytes, p.frame_mix) for p in self.points}, key=lambda size: size[0])
        else:
            mixes = [read_mix(entry) or FrameMix.fixed(64) for entry in as_list(frames, "frames")]
            sizes = [(mix.mean_bytes, None if mix.is_fixed else mix) for mix in mixes]
        if not sizes:
            raise QuantityProblem("", 'there are no frames: give "IMIX", "64 B", bytes, or a list of them')
        predicted_points = [
            replace(at_cores(model, count), frame_bytes=size, frame_mix=mix, throughput_pps=math.nan, calibrate=False)
            for count in counts
            for size, mix in sizes
        ]
        return pl.DataFrame(self._predicted(predicted_points))

    def size(
        self,
        target: Rate,
        frames: Frames | None = None,
        *,
        cores: Counts = "1..64",
        confidence: str | float = 0.95,
        loss: str | float = 0.0,
        latency: str | None = None,
        frame: Frames | None = None,
    ) -> Sizing:
        """Return how many cores a target needs.

        Parameters
        ----------
        target : str or float
            ``"40 Gbit/s"`` (including gap and preamble, S1), ``"20 Mpps"``, or frames per second.
        frames : str, int or None
            ``"IMIX"``, ``"64 B"``, or bytes; None: 64 B. ``frame`` is the same.
        cores : str, int or iterable of int
            Counts to choose from: ``"1..8"``, ``range(1, 9)``, ``[4, 8]``.
        confidence, loss, latency
            As for ``routecast size``: ``"95%"`` or 0.95, ``"0.1%"`` or 0.001, ``"p99 < 100 us"``.

        Raises
        ------
        routecast.errors.RoutecastError
            An argument has a wrong type or value.
        """
        from routecast.evaluate.targets import parse_targets
        from routecast.size import Target
        from routecast.size import size as answer

        mix = read_mix(frames_of_two(frames, frame)) or FrameMix.fixed(64)
        bounds = (
            () if latency is None else parse_targets([read_name(latency, "a bound on the latency", '"p99 < 100 us"')])
        )
        if any(bound.quantity == "loss" for bound in bounds):
            raise QuantityProblem(str(latency), "latency bounds the latency: give the loss with loss")
        parsed_target = Target(
            rate_pps=read_rate_pps(target, mix),
            frames=mix,
            confidence_ratio=read_ratio(confidence, "a probability"),
            loss_ratio=read_ratio(loss, "a loss", zero_allowed=True),
        )
        return answer(
            self.points, parsed_target, counts=read_counts(cores), noise_ratio=self.noise_ratio, bounds=bounds
        )

    def next(self, n: int = 3) -> polars.DataFrame:
        """Return the measurements that would narrow the intervals most, in descending order of their effect."""
        import polars as pl

        count = read_count(n, "a number of measurements", most=100)
        return pl.DataFrame([point.to_json() for point in self.fitted.next_points(count)])

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Contradictions between the points, and assumptions about the table."""
        return (*self.remarks, *self.fitted.warnings)

    def facts(self, cores: int) -> tuple[OpenFact, ...]:
        """Return the open facts about the router, with the interval for ``cores`` cores for each answer."""
        from routecast.calibration.facts import open_facts

        count = read_count(cores, "cores", most=MAX_CORES)
        return open_facts(self.fitted, [at_cores(max(self.points, key=lambda point: point.cores), count)])

    def router(self, cores: int, frames: Frames | None = None, *, frame: Frames | None = None) -> Router:
        """Return the calibrated router with ``cores`` cores, with the links, ports and caps of the table.

        A router like any other, for ``solve``, ``simulate`` and ``sweep``. Its service time has the least errors over
        the frames of the table, or is exact for ``frames``.
        """
        from routecast.calibration.router_file import router_document

        document = router_document(
            self.fitted, read_count(cores, "cores", most=MAX_CORES), read_mix(frames_of_two(frames, frame))
        )
        return Router(document, str(document["name"]))

    def to_polars(self) -> polars.DataFrame:
        """Return a row for each point of the table: its rate, its prediction with the 95 % interval, what limits."""
        import polars as pl

        return pl.DataFrame(self._rows())

    def _predicted(self, points: Iterable[Point]) -> list[dict[str, Any]]:
        return [
            {
                "cores": prediction.point.cores,
                "frames": prediction.point.frame_mix.name
                if prediction.point.frame_mix
                else f"{prediction.point.frame_bytes:g} B",
                "frame_bytes": prediction.point.frame_bytes,
                "throughput_pps": prediction.throughput_pps,
                "low_pps": prediction.low_pps,
                "high_pps": prediction.high_pps,
                "limit": prediction.limit,
            }
            for prediction in self.fitted.predict(tuple(points))
        ]

    def _rows(self) -> list[dict[str, Any]]:
        calibrates = {point.conditions for point in self.fitted.points}
        return [
            {
                **row,
                "measured_pps": None if math.isnan(point.throughput_pps) else point.throughput_pps,
                "calibrates": point.conditions in calibrates,
            }
            for point, row in zip(self.points, self._predicted(self.points), strict=True)
        ]

    def _repr_html_(self) -> str:
        from routecast.show.tables import Column, Table, scaled, table_html

        mpps = scaled(1e-6, ".4g")
        table = Table.of(
            self._rows(),
            Column("Cores", getter=lambda row: row["cores"]),
            Column.text("Frames", lambda row: row["frames"]),
            Column("Measured", "Mpps", mpps, lambda row: row["measured_pps"]),
            Column("Predicted", "Mpps", mpps, lambda row: row["throughput_pps"]),
            Column("95 % from", "Mpps", mpps, lambda row: row["low_pps"]),
            Column("to", "Mpps", mpps, lambda row: row["high_pps"]),
            Column.text("Limit", lambda row: row["limit"]),
            Column.text("Calibrates", lambda row: "yes" if row["calibrates"] else "no"),
            name="calibration",
        )
        return captioned(table_html(table), repr(self))

    def __repr__(self) -> str:
        frame_s = self.fitted.parameters["T_c"].value
        return f"Calibration({self.fitted.series!r}: {len(self.fitted.points)} points, {frame_s * 1e9:.4g} ns a frame)"


def calibrate(table: Any, *, series: str | None = None, noise_ratio: str | float | None = None) -> Calibration:
    """Calibrate a router from a table of measured maximum throughputs.

    Parameters
    ----------
    table : str, Path, data frame, mapping, or iterable
        A file (CSV, Parquet); a polars or pandas frame; a dict of columns, ``{"cores": [1, 2], "throughput_mpps":
        [1.9, 3.7]}``; rows, ``[{"cores": 1, "throughput_mpps": 1.9}, …]``; or points. The columns are those of a file.
    series : str or None
        Of several series this one.
    noise_ratio : str, float or None
        Repeatability of one measurement, ``"2%"`` or 0.02; None: from repetitions and published values.

    Raises
    ------
    routecast.errors.RoutecastError
        The table is not valid, or it has several series and ``series`` is None.
    """
    points_table = _points_table(table)
    noise = None if noise_ratio is None else read_ratio(noise_ratio, "a repeatability")
    if noise is not None and noise < _LEAST_NOISE_RATIO:
        message = (
            f"got a repeatability of {noise:g}: no rate is measured within {_LEAST_NOISE_RATIO:g}; None estimates it"
        )
        raise QuantityProblem(str(noise), message)
    points = of_series(points_table.points, None if series is None else read_name(series, "a series", "write its name"))
    if not points:
        raise QuantityProblem("", "the table has no row: give at least one measured point")
    return Calibration(points, fit(calibrating(points), noise_ratio=noise), points_table.remarks, noise)


def _points_table(table: Any) -> PointTable:
    """Read a file, a frame, a mapping of columns, rows or points."""
    if isinstance(table, str | os.PathLike):
        return read_table(read_path(table, "a table"))
    if hasattr(table, "lazy") and hasattr(table, "collect"):  # polars: a frame that is computed when it is needed
        table = table.collect()
    if any(name is not None for name in getattr(getattr(table, "index", None), "names", ())):
        table = table.reset_index()  # pandas: an index with a name is a column
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):  # polars, pandas
        table = {str(name): list(table[name]) for name in table.columns}
    if isinstance(table, Mapping):
        return parse_cells(_cells_of_columns(table), name=_TABLE)
    if isinstance(table, Iterable) and not isinstance(table, bytes | bytearray):
        rows = list(table)
        if rows and all(isinstance(row, Point) for row in rows):
            return PointTable(points=tuple(rows))
        if all(isinstance(row, Mapping) for row in rows):
            heads = dict.fromkeys(str(key) for row in rows for key in row)
            by_name = [{str(key): entry for key, entry in row.items()} for row in rows]
            cells = [[_cell(row.get(head)) for head in heads] for row in by_name]
            return parse_cells([list(heads), *cells] if heads else [], name=_TABLE)
    raise wrong_type(
        table, "a table", "give a path, a polars or pandas frame, a dict of columns, or rows, each a dict or a Point"
    )


_TABLE = "the table (row 1 is the heads)"


def _cells_of_columns(columns: Mapping[Any, Any]) -> list[list[str]]:
    """Return the cells of a mapping of columns, the heads first; a single value holds for every row."""
    listed = {
        str(name): list(column)
        for name, column in columns.items()
        if isinstance(column, Iterable) and not isinstance(column, str | bytes | Mapping)
    }
    lengths = {len(column) for column in listed.values()} or ({1} if columns else set())
    if len(lengths) > 1:
        counts = ", ".join(f"{name} {len(column)}" for name, column in listed.items())
        raise FileProblem(_TABLE, [Problem("", f"has columns of several lengths ({counts}): give each as many rows")])
    if not lengths:
        return []
    (length,) = lengths
    filled = {str(name): listed.get(str(name), [entry] * length) for name, entry in columns.items()}
    return [list(filled), *([_cell(column[row]) for column in filled.values()] for row in range(length))]


def _cell(entry: Any) -> str:
    """Write a value as the cell of a table; what is missing is empty."""
    entry = plain_entry(entry)
    if entry is None or str(entry) in {"nan", "NaN", "NaT", "<NA>"}:
        return ""
    if isinstance(entry, FrameMix):
        return entry.name
    return str(entry).lower() if isinstance(entry, bool) else str(entry)
