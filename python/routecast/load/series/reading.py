"""Reading traffic series: rates, amounts per step, interface counters, flow records; by path or by shipped name."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Literal

from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.load.series.grid import (
    Grid,
    Piece,
    counter_pieces,
    gap_problems,
    held_pieces,
    oddities,
    put_on_grid,
    sorted_samples,
    spread,
    step_between,
)
from routecast.load.series.model import TrafficSeries
from routecast.load.series.shapes import filled
from routecast.load.series.sndlib import is_sndlib, read_sndlib_totals
from routecast.load.series.table import (
    SERIES_UNITS_TEXT,
    SeriesTable,
    SeriesUnit,
    column_place,
    local_times,
    parse_series_unit,
    parse_time,
    read_series_table,
    shortened,
    unit_in_name,
)
from routecast.quantity.shipped import shipped_files

__all__ = ["Gaps", "read_series", "shipped_series"]

Gaps = Literal["refuse", "hold", "interpolate", "drop"]

_TIME_NAMES = ("time", "timestamp", "date", "datetime", "date_time", "ts", "time_s", "epoch")
_FLOW_NAMES = (
    ("start", "ts", "first", "first_seen", "starttime", "start_time", "t_first"),
    ("end", "te", "last", "last_seen", "endtime", "end_time", "t_last"),
    ("bytes", "ibyt", "octets", "in_bytes", "in_octets", "octetdeltacount"),
)
_MISSING = ("", "na", "n/a", "nan", "null", "none", "-")
_SUFFIX = ".series.csv"


def shipped_series() -> dict[str, Path]:
    """Return the series that come with routecast, by name."""
    return shipped_files("traces", _SUFFIX)


def read_series(
    path: str | Path,
    *,
    column: str | None = None,
    time_column: str | None = None,
    unit: str | None = None,
    step: float | None = None,
    gaps: Gaps = "refuse",
) -> TrafficSeries:
    """Read a traffic series.

    Files are CSV (comma, semicolon, tab) or Parquet with a header. A column of times and one of values is a series; a
    column named like ``ifHCInOctets`` is a counter, whose differences count; columns of start, end and bytes are flow
    records (as ``nfdump -o csv`` writes them), spread evenly over their duration. A folder or archive holds the demand
    matrices of SNDlib, whose totals are the series.

    Parameters
    ----------
    path : str or Path
        A file, a folder or archive of SNDlib's, or the name of a shipped series.
    column, time_column : str or None
        Name or number (from 1) of the columns; None where the header leaves no doubt.
    unit : str or None
        ``"bit/s"``, ``"Mbit/s"``, ``"byte/s"``, ``"bit per step"``, ``"octet counter32"``, …; None where the
        header says it.
    step : float or None
        Length of a step in seconds; None for the commonest distance of the samples (60 s for flow records).
    gaps : {"refuse", "hold", "interpolate", "drop"}
        What to do with missing and with negative values; :data:`~routecast.load.series.shapes.Filling`.

    Raises
    ------
    FileProblem
        The file cannot be read or says too little; a sample is wrong, missing or not where its step is. Each with its
        place, up to twenty, and their number.
    """
    shipped = shipped_series()
    source = str(path)
    file = shipped[source] if source in shipped and not Path(path).is_file() else Path(path)
    if not (file.is_file() or file.is_dir()):
        raise FileProblem(source, [Problem("", f"is no file, and no shipped series: those are {', '.join(shipped)}")])
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise FileProblem(source, [Problem("step", f"{step:g} s is no positive time")])
    table = read_sndlib_totals(file) if is_sndlib(file) else read_series_table(file)
    flows = _flow_columns(table) if column is None and unit is None else None
    try:
        grid, notes = (
            _flows(table, flows, step or 60.0) if flows else _samples(table, column, time_column, unit, step, gaps)
        )
    except ModelProblem as problem:
        raise FileProblem(source, problem.problems) from problem
    missing = gap_problems(grid.start, grid.step_s, grid.values)
    if missing and gaps == "refuse":
        raise FileProblem(
            source,
            [
                *shortened(missing),
                Problem(
                    "",
                    f"missing steps: {sum(math.isnan(rate) for rate in grid.values):,}; say what to do about gaps: "
                    "hold, interpolate or drop (--gaps)",
                ),
            ],
        )
    series = TrafficSeries(
        step_s=grid.step_s,
        l2_bps=grid.values,
        start=grid.start,
        source=source,
        notes=(*table.notes, *notes, *grid.notes, *oddities(grid.start, grid.step_s, grid.values)),
    )
    try:
        return filled(series, gaps) if gaps != "refuse" else series
    except ModelProblem as problem:
        raise FileProblem(source, problem.problems) from problem


def _samples(
    table: SeriesTable, column: str | None, time_column: str | None, unit: str | None, step_s: float | None, gaps: Gaps
) -> tuple[Grid, list[str]]:
    time_at = _time_place(table, time_column)
    value_at, meaning = _value_place(table, column, unit, time_at)
    times, values, notes = _parsed(table, time_at, value_at, meaning, gaps)
    samples, mended, problems = sorted_samples(times, values, table.places)
    notes += mended
    if problems:
        raise FileProblem(table.path, shortened(problems))
    if meaning.per == "counter":
        pieces, told = counter_pieces(samples, counter_bits=meaning.counter_bits, bits_per_count=meaning.bits)
        if not pieces:
            raise FileProblem(table.path, [Problem("", "holds no two readings of the counter to subtract")])
        grid = spread(pieces, step_s or step_between([time for time, _ in samples]), whole=True)
        if not grid.values:
            raise FileProblem(table.path, [Problem("", "covers no whole step: give a shorter step")])
        return grid, [*notes, *told]
    factor = meaning.bits
    if meaning.per == "step":  # the file's step, whatever step is wanted
        factor /= step_between([time for time, _ in samples]) if len(samples) > 1 else step_s or math.nan
    samples = [(time, value * factor) for time, value in samples]
    grid_or_none, uneven = put_on_grid(samples, step_s)
    if grid_or_none is not None:
        return grid_or_none, notes
    if step_s is None or gaps != "hold" or len(samples) < 2:
        raise FileProblem(table.path, uneven)
    held = spread(held_pieces(samples), step_s, whole=True)
    return held, [*notes, f"uneven samples, each held until the next and averaged over {step_s:g} s"]


def _parsed(
    table: SeriesTable, time_at: int, value_at: int, meaning: SeriesUnit, gaps: Gaps
) -> tuple[list[datetime], list[float], list[str]]:
    """Return times and values of all rows; NaN for values that are missing."""
    times: list[datetime] = []
    values: list[float] = []
    problems: list[Problem] = []
    negative: list[str] = []
    for row, place in zip(table.rows, table.places, strict=True):
        try:
            times.append(parse_time(row[time_at]))
            text = row[value_at]
            value = math.nan if text.lower() in _MISSING else _number(text)
        except ValueError as problem:
            problems.append(Problem(place, str(problem)))
            continue
        if value < 0.0:
            negative.append(place)
            value = math.nan
            if gaps == "refuse":
                what = (
                    f'"{row[value_at]}" is negative: traffic is not; correct it, or take it as missing and say what to '
                    "do about gaps (--gaps): hold, interpolate or drop"
                )
                problems.append(Problem(place, what))
        if meaning.per == "counter" and value >= 2.0**meaning.counter_bits:
            problems.append(Problem(place, f'"{row[value_at]}" does not fit a counter of {meaning.counter_bits} bits'))
        values.append(value)
    if not problems:
        try:
            times = local_times(times)
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(f'column "{table.names[time_at]}"', str(problem)))
    if problems:
        raise FileProblem(table.path, shortened(problems))
    notes = [f"{len(negative)} negative values, first at {negative[0]}: taken as missing"] if negative else []
    return times, values, notes


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f'"{text[:40]}" is no number') from None
    if math.isinf(value):
        raise ValueError(f'"{text[:40]}" is no finite number')
    return value


def _time_place(table: SeriesTable, time_column: str | None) -> int:
    if time_column is not None:
        return column_place(table, time_column, "time_column")
    lower = [name.lower() for name in table.names]
    return next((lower.index(name) for name in _TIME_NAMES if name in lower), 0)


def _value_place(table: SeriesTable, column: str | None, unit: str | None, time_at: int) -> tuple[int, SeriesUnit]:
    """Return the column of values and what they mean, or say which of the two the file leaves open."""
    given: SeriesUnit | None = None
    if unit is not None:
        try:
            given = parse_series_unit(unit)
        except QuantityProblem as problem:
            raise FileProblem(table.path, [Problem("unit", problem.message)]) from problem
    others = [index for index in range(len(table.names)) if index != time_at]
    stated = {index: unit_in_name(table.names[index]) for index in others}
    if column is not None:
        at = column_place(table, column, "column")
        if at == time_at:
            raise FileProblem(table.path, [Problem("column", f'"{column}" is the column of times')])
    else:
        with_unit = [index for index in others if stated[index] is not None]
        choice = with_unit if len(with_unit) == 1 else others
        if len(choice) != 1:
            names = ", ".join(f'"{table.names[index]}"' for index in others) or "none"
            raise FileProblem(table.path, [Problem("column", f"say which column is meant; beside the time: {names}")])
        at = choice[0]
    meaning = given or stated[at]
    if meaning is None:
        hint = '; a title that says "in bits" of intervals means "bit per step"' if "bits" in table.names[at] else ""
        raise FileProblem(
            table.path,
            [Problem(f'column "{table.names[at][:60]}"', f"says no unit: give one of {SERIES_UNITS_TEXT}{hint}")],
        )
    return at, meaning


def _flow_columns(table: SeriesTable) -> tuple[int, int, int] | None:
    lower = [name.lower() for name in table.names]
    found = [next((lower.index(name) for name in names if name in lower), None) for names in _FLOW_NAMES]
    start, end, amount = found
    return None if start is None or end is None or amount is None else (start, end, amount)


def _flows(table: SeriesTable, columns: tuple[int, int, int], step_s: float) -> tuple[Grid, list[str]]:
    pieces: list[Piece] = []
    problems: list[Problem] = []
    for row, place in zip(table.rows, table.places, strict=True):
        begin_text, end_text, bytes_text = (row[at] for at in columns)
        try:
            begin, end = local_times([parse_time(begin_text), parse_time(end_text)])
            amount = _number(bytes_text)
            if end < begin:
                raise ValueError(f"ends at {end}, before it begins at {begin}")
            if amount < 0.0 or math.isnan(amount):
                raise ValueError(f'"{bytes_text}" is no number of bytes')
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(place, str(problem)))
            continue
        pieces.append(Piece(begin=begin, end=end, bits=8.0 * amount))
    if problems or not pieces:
        raise FileProblem(table.path, shortened(problems) or [Problem("", "holds no flow records")])
    grid = spread(pieces, step_s, whole=False)
    return grid, [
        f"{len(pieces):,} flow records spread evenly over their durations; the first and the last steps lack flows "
        "that the collector had not yet, or no longer, exported"
    ]
