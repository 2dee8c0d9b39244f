"""Reading of traffic series: rates, amounts per step, interface counters, flow records and demand matrices.

The samples are placed on equal steps. Notes report gaps, duplicates, disorder, zeros and jumps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.series import SeriesTable, SeriesUnit, TrafficSeries, shortened
from routecast.load.series.columns import MISSING, chosen_columns, direction, number, time_index
from routecast.load.series.files import read_series_table
from routecast.load.series.times import Timeline, local_times, parse_time, parse_times, timeline
from routecast.plan.series._grid import (
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
    summed,
)
from routecast.plan.series._sndlib import is_sndlib, read_sndlib_totals
from routecast.plan.series.shapes import filled
from routecast.quantity import format_bps
from routecast.quantity.catalogue import shipped_files

__all__ = ["Gaps", "read_series", "shipped_series"]

Gaps = Literal["refuse", "hold", "interpolate", "drop"]

_FLOW_STARTS = ("start", "ts", "first", "first_seen", "firstseen", "starttime", "start_time", "t_first")
_FLOW_ENDS = ("end", "te", "last", "last_seen", "lastseen", "endtime", "end_time", "t_last")
_FLOW_DURATIONS = ("duration", "td")
_FLOW_AMOUNTS = ("bytes", "ibyt", "octets", "in_bytes", "in_octets", "octetdeltacount")
_FLOW_RETURNS = ("obyt", "out_bytes", "out_octets")
"""Bytes of the opposite direction of a two-way record, as ``nfdump -B`` writes them."""
_SUFFIX = ".series.csv"
_MAX_BPS = 1e15
"""The highest rate that is read: 1 Pbit/s is above every link and every router."""


def shipped_series() -> dict[str, Path]:
    """Return the shipped series, by name."""
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

    Files are CSV (comma, semicolon, tab) or Parquet with a header, or those of monitoring tools: MRTG, RRDtool (fetch,
    xport), Cacti, Grafana and Prometheus (see :mod:`routecast.load.series.formats`). ``read_as`` and the notes of the
    result say what a file was taken for. In and out of one link are added.

    A table has a column of times and a column of values. A column named like ``ifHCInOctets`` is a counter, whose
    differences give the traffic. Columns of start, end (or duration) and bytes are flow records (as ``nfdump -o csv``
    writes them), whose bytes are spread evenly over their durations. A folder or archive holds demand matrices of
    SNDlib, whose totals are the series.

    Parameters
    ----------
    path : str or Path
        A file, a folder or archive of SNDlib, or the name of a shipped series.
    column, time_column : str or None
        Name or number (from 1) of the columns; None if the header identifies them.
    unit : str or None
        ``"bit/s"``, ``"Mbit/s"``, ``"byte/s"``, ``"bit per step"``, ``"octet counter32"``, …; None if the
        header gives it.
    step : float or None
        Length of a step in seconds; None for the commonest distance of the samples, or 60 s for flow records.
    gaps : {"refuse", "hold", "interpolate", "drop"}
        Treatment of missing and negative values; see :data:`~routecast.plan.series.shapes.Filling`.

    Raises
    ------
    FileProblem
        The file cannot be read or lacks information, or a sample is wrong, missing or off its step. The error lists up
        to twenty faults with their places, and the number of all.
    """
    source, file = str(path), _file_of(path)
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise FileProblem(source, [Problem("step", f"{step:g} s is no positive time")])
    table = read_sndlib_totals(file) if is_sndlib(file) else read_series_table(file)
    flows = _flow_columns(table) if column is None and unit is None else None
    try:
        if flows:
            grid, notes = _flow_grid(table, flows, step or 60.0)
            read_as, line = "read as flow records", Timeline(times=[])
        else:
            grid, notes, read_as, line = _sample_grid(table, column, time_column, unit, step, gaps)
        oddity_notes = oddities(grid.start, grid.step_s, grid.values)
    except ModelProblem as problem:
        raise FileProblem(source, problem.problems) from problem
    if gaps == "refuse":
        _refuse_missing_steps(grid, source)
    series = TrafficSeries(
        step_s=grid.step_s,
        l2_bps=grid.values,
        start=grid.start,
        clock_changes=_clock_changes_s(line, grid.start),
        source=source,
        read_as=read_as,
        notes=(*table.notes, *notes, *grid.notes, *oddity_notes),
    )
    _refuse_impossible(series)
    try:
        return filled(series, gaps) if gaps != "refuse" else series
    except ModelProblem as problem:
        raise FileProblem(source, problem.problems) from problem


def _file_of(path: str | Path) -> Path:
    """Return the file or folder of a path, or of the name of a shipped series."""
    shipped = shipped_series()
    source = str(path)
    file = shipped[source] if source in shipped and not Path(path).is_file() else Path(path)
    if not (file.is_file() or file.is_dir()):
        raise FileProblem(
            source, [Problem("", f"is neither a file nor a shipped series: those are {', '.join(shipped)}")]
        )
    return file


def _refuse_missing_steps(grid: Grid, source: str) -> None:
    missing = gap_problems(grid.start, grid.step_s, grid.values)
    if not missing:
        return
    message = (
        f"missing steps: {sum(math.isnan(rate) for rate in grid.values):,}; choose what to do about gaps: "
        "hold, interpolate or drop (--gaps)"
    )
    raise FileProblem(source, [*shortened(missing), Problem("", message)])


def _clock_changes_s(line: Timeline, start: datetime) -> tuple[tuple[float, float], ...]:
    """Return the changes of the clock, each as its time since the start and what the clock is then ahead, s."""
    second = timedelta(seconds=1)
    return tuple(((time - start) / second, ahead / second) for time, ahead in line.changes)


def _sample_grid(
    table: SeriesTable, column: str | None, time_column: str | None, unit: str | None, step_s: float | None, gaps: Gaps
) -> tuple[Grid, list[str], str, Timeline]:
    time_at = time_index(table, time_column)
    chosen = chosen_columns(table, column, unit, time_at)
    line = _timeline(table, time_at)
    notes = [chosen.note] if chosen.note else []
    columns = chosen.columns
    if step_s is None and len(columns) > 1:  # several columns have one step
        instants = [_instants(table, line.times, index) for index, _ in columns] if table.is_union else [line.times]
        step_s = max((step_between(sorted(set(of))) for of in instants if len(set(of)) > 1), default=None)
    grids: list[Grid] = []
    for index, meaning in columns:
        grid, remarks = _column_grid(table, line.times, index, meaning, step_s, gaps)
        grids.append(grid)
        name = f'"{table.names[index][:60]}": ' if len(columns) > 1 else ""
        notes += [f"{name}{remark}" for remark in remarks]
    return summed(grids), [*notes, *line.notes], chosen.note, line


def _instants(table: SeriesTable, times: Sequence[datetime], index: int) -> list[datetime]:
    """Return the times at which a column of a union of series has a sample."""
    return [time for time, row in zip(times, table.rows, strict=True) if row[index]]


def _timeline(table: SeriesTable, time_at: int) -> Timeline:
    texts = [row[time_at] for row in table.rows]
    times, notes, problems = parse_times(texts, table.places)
    if not problems:
        try:
            is_clock = not any(text.replace(".", "", 1).isdecimal() for text in texts[:1])
            line = timeline(times, is_clock=is_clock)
            return replace(line, notes=[*notes, *line.notes])
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(f'column "{table.names[time_at]}"', str(problem)))
    raise FileProblem(table.path, shortened(problems))


def _column_grid(
    table: SeriesTable, times: Sequence[datetime], index: int, meaning: SeriesUnit, step_s: float | None, gaps: Gaps
) -> tuple[Grid, list[str]]:
    values, notes = _values(table, index, meaning, gaps)
    places: Sequence[str] = table.places
    if table.is_union:
        own = [at for at, row in enumerate(table.rows) if row[index]]
        times, values, places = [times[at] for at in own], [values[at] for at in own], [places[at] for at in own]
    if meaning.per == "step":
        times, values, places = _totals(times, values, places)
    samples, repairs, problems = sorted_samples(times, values, places)
    notes += repairs
    if problems:
        raise FileProblem(table.path, shortened(problems))
    if meaning.per == "counter":
        pieces, remarks = counter_pieces(samples, counter_bits=meaning.counter_bits, bits_per_count=meaning.bits)
        if not pieces:
            raise FileProblem(table.path, [Problem("", "has fewer than two readings of the counter")])
        grid = spread(pieces, step_s or step_between([time for time, _ in samples]), complete_only=True)
        if not grid.values:
            raise FileProblem(table.path, [Problem("", "covers no whole step: give a shorter step")])
        return grid, [*notes, *remarks]
    factor = meaning.bits
    if meaning.per == "step":  # amounts refer to the step of the file, not to the requested step
        factor /= step_between([time for time, _ in samples]) if len(samples) > 1 else step_s or math.nan
    samples = [(time, value * factor) for time, value in samples]
    grid_or_none, problems = put_on_grid(samples, step_s)
    if grid_or_none is not None:
        return grid_or_none, notes
    if gaps != "hold" or len(samples) < 2:
        raise FileProblem(table.path, problems)
    step_s = step_s or step_between([time for time, _ in samples])
    held = spread(held_pieces(samples), step_s, complete_only=True)
    return held, [*notes, f"uneven samples, each held until the next and averaged over {step_s:g} s"]


def _totals(
    times: Sequence[datetime], values: Sequence[float], places: Sequence[str]
) -> tuple[Sequence[datetime], list[float], Sequence[str]]:
    """Add the amounts of each instant, because a collector may write a row for each key of an interval."""
    by_time: dict[datetime, tuple[float, str]] = {}
    for time, value, place in zip(times, values, places, strict=True):
        before, first = by_time.get(time, (0.0, place))
        by_time[time] = (before + value, first)
    return list(by_time), [total for total, _ in by_time.values()], [place for _, place in by_time.values()]


def _values(table: SeriesTable, index: int, meaning: SeriesUnit, gaps: Gaps) -> tuple[list[float], list[str]]:
    """Return the values of a column, NaN for missing ones, and notes."""
    values: list[float] = []
    problems: list[Problem] = []
    negative: list[str] = []
    is_drawn_down = _is_drawn_down(table, index, meaning)
    for row, place in zip(table.rows, table.places, strict=True):
        text = row[index].removeprefix("-") if is_drawn_down else row[index]
        try:
            value = math.nan if text.lower() in MISSING else number(text, meaning)
        except ValueError as problem:
            problems.append(Problem(place, str(problem)))
            continue
        if value < 0.0:
            negative.append(place)
            value = math.nan
            if gaps == "refuse":
                message = (
                    f'"{text}" is negative, but traffic is not: correct it, or treat it as a gap '
                    "(--gaps): hold, interpolate or drop"
                )
                problems.append(Problem(place, message))
        if meaning.per == "counter" and value >= 2.0**meaning.counter_bits:
            problems.append(Problem(place, f'"{text}" does not fit a counter of {meaning.counter_bits} bits'))
        if meaning.per == "second" and value * meaning.bits > _MAX_BPS:
            message = (
                f'"{text[:40]}" is {format_bps(value * meaning.bits)}, above {format_bps(_MAX_BPS)}: no link is so fast'
            )
            problems.append(Problem(place, message))
        values.append(value)
    if problems:
        raise FileProblem(table.path, shortened(problems))
    notes = [f"{len(negative)} negative values, first at {negative[0]}: taken as missing"] if negative else []
    if is_drawn_down:
        notes.append("all values are negative, as graphs draw one direction downwards: read without their sign")
    return values, notes


def _is_drawn_down(table: SeriesTable, index: int, meaning: SeriesUnit) -> bool:
    """Return whether a rate of a named direction has no positive value, as graphs of both directions show it."""
    if meaning.per != "second" or not direction(table.names[index]):
        return False
    texts = [row[index] for row in table.rows if row[index].lower() not in MISSING]
    signed = [text for text in texts if text.startswith("-")]
    return len(signed) > 1 and all(text.startswith("-") or text.strip("0.") == "" for text in texts)


def _refuse_impossible(series: TrafficSeries) -> None:
    if series.peak_bps > _MAX_BPS:
        message = (
            f"has a rate of {format_bps(series.peak_bps)}, above {format_bps(_MAX_BPS)}: is the unit or a time wrong?"
        )
        raise FileProblem(series.source, [Problem("", message)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _FlowColumns:
    """Columns of flow records; a record has an end or a duration."""

    start: int
    end: int | None
    duration: int | None
    amounts: tuple[int, ...]


def _flow_columns(table: SeriesTable) -> _FlowColumns | None:
    lower = [name.lower() for name in table.names]

    def first(names: Sequence[str]) -> int | None:
        return next((lower.index(name) for name in names if name in lower), None)

    start, end, amount = first(_FLOW_STARTS), first(_FLOW_ENDS), first(_FLOW_AMOUNTS)
    duration, opposite = first(_FLOW_DURATIONS), first(_FLOW_RETURNS)
    if start is None or amount is None or (end is None and duration is None):
        return None
    amounts = (amount,) if opposite is None else (amount, opposite)
    return _FlowColumns(start=start, end=end, duration=duration, amounts=amounts)


def _flow_piece(row: Sequence[str], columns: _FlowColumns) -> Piece:
    """Return the bits of a record. Raises ValueError: its times or bytes are wrong."""
    if columns.end is not None:
        begin, end = local_times([parse_time(row[columns.start]), parse_time(row[columns.end])])
    else:
        (begin,) = local_times([parse_time(row[columns.start])])
        end = begin + timedelta(seconds=number(row[columns.duration or 0]))
    if end < begin:
        raise ValueError(f"ends at {end}, before it begins at {begin}")
    total = 0.0
    for at in columns.amounts:
        amount = number(row[at])
        if amount < 0.0 or math.isnan(amount):
            raise ValueError(f'"{row[at][:40]}" is no number of bytes')
        total += amount
    return Piece(begin=begin, end=end, bits=8.0 * total)


def _flow_grid(table: SeriesTable, columns: _FlowColumns, step_s: float) -> tuple[Grid, list[str]]:
    pieces: list[Piece] = []
    problems: list[Problem] = []
    for row, place in zip(table.rows, table.places, strict=True):
        try:
            pieces.append(_flow_piece(row, columns))
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(place, str(problem)))
    if problems or not pieces:
        raise FileProblem(table.path, shortened(problems) or [Problem("", "holds no flow records")])
    grid = spread(pieces, step_s, complete_only=False)
    names = " + ".join(f'"{table.names[at]}"' for at in columns.amounts)
    return grid, [
        f"{len(pieces):,} flow records ({names}) spread evenly over their durations; the first and the last steps lack "
        "flows that the collector exported before or after the file"
    ]
