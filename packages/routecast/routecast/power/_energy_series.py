"""Power over time from energy counters or watts, and the load at the same times where the file has traffic.

Energy counters of Linux (``energy_uj`` of powercap, in microjoules) begin anew at ``max_energy_range_uj``; exporters of
Prometheus pass them on in joules (node_exporter) or add them up from their own start (Kepler). The power of an interval
is the energy between two readings over their distance. Where a counter falls, the interval is known only if the range
is: from a column ``max_energy_range_uj``, or if exactly one range that processors have gives a power like that of the
other intervals. Otherwise the interval is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from types import MappingProxyType

from routecast.errors import FileProblem, Problem
from routecast.load.series import SeriesTable, SeriesUnit, shortened
from routecast.load.series.columns import MISSING as MISSING_TEXTS
from routecast.load.series.columns import Chosen, chosen_columns, energy_columns, is_time_title, number, time_index
from routecast.load.series.files import read_series_table
from routecast.load.series.formats import tool_table
from routecast.load.series.times import parse_times, timeline
from routecast.power._load_samples import LoadSample
from routecast.quantity import format_bps
from routecast.quantity.schema import field, value
from routecast.quantity.table_file import read_table_text, rename_heads

__all__ = ["PowerOverTime", "read_power_over_time"]

_MAX_BYTES = 100_000_000
_MAX_W = 1e6
"""Highest power of an interval: no router draws a megawatt, so a unit is wrong."""
_RANGES_J = (262_143.328_850, 65_712.999_613, 65_532.610_987)
"""Ranges of RAPL counters: 2**32 units of 2**-14 J and 2**-16 J as ``max_energy_range_uj`` of Linux states them."""
_PLAUSIBLE_RATIO = 1.5
_MAX_GROUPS = 50
"""Most groups of samples by load: a fit that leaves each out in turn takes the square of their number."""
_KINDS = (
    ("platform", re.compile(r"platform|psys|SysWatt", re.IGNORECASE)),
    ("dram", re.compile(r"dram|RAMWatt", re.IGNORECASE)),
    ("gpu", re.compile(r"gpu|GFXWatt", re.IGNORECASE)),
    ("package", re.compile(r"package|pkg", re.IGNORECASE)),
    ("core", re.compile(r"core|CorWatt|pp[01]|rapl:\d+:\d+", re.IGNORECASE)),
    ("package", re.compile(r"energy_uj", re.IGNORECASE)),
)
_PART = re.compile(r"_(?:container|pod|process|vm)_")
_SHARE = re.compile(r"_(?:active|idle)_(?:joules|watts)")
_TABLE_COLUMNS = frozenset({"load_ratio", "rate_pps", "class", "path", "plugged", "device"})
_UNIT_IN_CELL = re.compile(r"(?<=\d)\s*(?:[Ww]atts?|W|[Jj]oules?|J|kWh|Wh)$")
_CLOCK_NAMES = re.compile(r"time|date|epoch|^ts$", re.IGNORECASE)


@value
class PowerOverTime:
    """Mean powers of intervals; ``load_ratio`` is NaN in all samples if the file has no traffic."""

    samples: tuple[LoadSample, ...]
    scope: str = field("What the watts cover: package or server")
    notes: tuple[str, ...] = ()

    @property
    def has_load(self) -> bool:
        """Whether the load of the samples is known."""
        return not math.isnan(self.samples[0].load_ratio)


def read_power_over_time(path: str | Path, *, rename: Mapping[str, str] = MappingProxyType({})) -> PowerOverTime | None:
    """Read a file of energy or power over time, None if it is a table of samples of another kind.

    ``rename``: names of columns for the heads of a table that are called otherwise. Raises FileProblem: the file is of
    a monitoring tool or has energy, and its power cannot be known; or it has no head that is to be renamed.
    """
    file = Path(path)
    if not file.is_file() or file.suffix.lower() in {".yml", ".yaml", ".parquet", ".pq"}:
        return None
    table = tool_table(str(path), read_table_text(file, kind="series of power", max_file_bytes=_MAX_BYTES))
    is_tool = table is not None
    try:
        table = table or read_series_table(file)
    except FileProblem:  # the reader of tables of samples names its faults
        return None
    table = _of_machine(table)
    if rename:
        table = replace(table, names=tuple(rename_heads([list(table.names)], rename, name=str(path))[0]))
    energy, power = energy_columns(table)
    names = {name.lower() for name in table.names}
    is_timed = any(_CLOCK_NAMES.search(name) or is_time_title(name) for name in table.names)
    if not is_tool and (names & _TABLE_COLUMNS or not is_timed or not (energy or power)):
        return None
    if not energy and not power:
        message = "has no energy in joules and no power in watts: add such columns, or name a table of power samples"
        raise FileProblem(str(path), [Problem("", message)])
    return _power_over_time(table, energy, power)


def _of_machine(table: SeriesTable) -> SeriesTable:
    """Return the rows of the whole machine, which turbostat marks with a dash for the CPU, of those of each CPU."""
    if "PkgWatt" not in table.names or "CPU" not in table.names:
        return table
    at = table.names.index("CPU")
    kept = [index for index, row in enumerate(table.rows) if row[at] == "-"]
    if not kept:
        return table
    return replace(
        table,
        rows=tuple(table.rows[index] for index in kept),
        places=tuple(table.places[index] for index in kept),
        format_name="output of turbostat",
    )


def _power_over_time(table: SeriesTable, energy: Mapping[int, float], power: Mapping[int, float]) -> PowerOverTime:
    time_at = time_index(table, None)
    order, times = _ordered(table, time_at)
    kinds, chosen = _covered(table, energy or power)
    chosen = {index: factor for index, factor in chosen.items() if index != time_at}
    notes: list[str] = []
    watts = [0.0] * (len(times) - 1)
    for index, factor in chosen.items():
        values = _values(table, order, index)
        if energy:
            part, remarks = _counter_w(table, times, values, factor, _stated_range_j(table, index, factor))
            notes += [f'"{table.names[index][:60]}": {remark}' for remark in remarks]
        else:
            part = [value * factor for value in values[:-1]]
        watts = [total + part_w for total, part_w in zip(watts, part, strict=True)]
    _refuse_impossible(table, times, watts)
    rates_bps, load_note = _rates(table, order, times, time_at)
    known = [(rate, power_w) for rate, power_w in zip(rates_bps, watts, strict=True) if math.isfinite(power_w)]
    if not known:
        raise FileProblem(table.path, [Problem("", "has no interval whose energy is known: give more readings")])
    if len(known) < len(watts):
        notes.append(f"{len(watts) - len(known):,} of {len(watts):,} intervals are unknown and left out")
    names = " + ".join(f'"{table.names[index][:60]}"' for index in list(chosen)[:4])
    unit = "energy counters" if energy else "power"
    first = f"read as {table.format_name or 'CSV'}: {unit} {names}, {len(known):,} intervals"
    scope = "package" if kinds & {"package", "dram", "core"} else "server"
    return PowerOverTime(samples=_grouped(known), scope=scope, notes=(first, *table.notes, *notes, load_note))


def _ordered(table: SeriesTable, time_at: int) -> tuple[list[int], list[datetime]]:
    """Return the rows in order of time, each time once, and their times."""
    parsed, _, problems = parse_times([row[time_at] for row in table.rows], table.places)
    if problems:
        raise FileProblem(table.path, shortened(problems))
    try:
        times = timeline(parsed, is_clock=not table.rows[0][time_at].replace(".", "", 1).isdecimal()).times
    except (ValueError, OverflowError) as problem:
        raise FileProblem(table.path, [Problem(f'column "{table.names[time_at]}"', str(problem))]) from problem
    order: list[int] = []
    for index in sorted(range(len(times)), key=times.__getitem__):
        if order and times[order[-1]] == times[index]:
            if table.rows[order[-1]] != table.rows[index]:
                message = f"{times[index]} occurs twice with other values: remove one of them"
                problems.append(Problem(table.places[index], message))
            continue
        order.append(index)
    if problems:
        raise FileProblem(table.path, shortened(problems))
    if len(order) < 2:
        raise FileProblem(table.path, [Problem("", "has one instant: energy over time needs two or more readings")])
    return order, [times[index] for index in order]


def _covered(table: SeriesTable, columns: Mapping[int, float]) -> tuple[set[str], dict[int, float]]:
    """Return the columns that cover the machine once: all of it, or packages and memory; and their kinds."""
    metric = {index: table.names[index].split("{")[0] for index in columns}
    nodes = {index: factor for index, factor in columns.items() if "node" in metric[index]}
    if not nodes and any(_PART.search(name) for name in metric.values()):
        message = "has the energy of containers, pods or processes, whose sum is no machine: add kepler_node_… metrics"
        raise FileProblem(table.path, [Problem("", message)])
    used = nodes or dict(columns)
    # Kepler states a total and its active and idle parts.
    used = {index: factor for index, factor in used.items() if not _SHARE.search(metric[index])} or used
    if table.devices and len({table.devices[index] for index in used}) > 1:
        devices = ", ".join(sorted({table.devices[index] for index in used})[:4])
        raise FileProblem(table.path, [Problem("", f"has the energy of several machines ({devices}): select one")])
    plain = {index: factor for index, factor in used.items() if "mmio" not in table.names[index]}
    used = plain or used
    kind_of = {index: _kind(table.names[index]) for index in used}
    for kinds in ({"platform"}, {"package", "dram", "gpu"}):
        if kinds & {"platform", "package"} & set(kind_of.values()):
            used = {index: factor for index, factor in used.items() if kind_of[index] in kinds}
            break
    return {kind_of[index] for index in used}, used


def _kind(name: str) -> str:
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "")


def _values(table: SeriesTable, order: Sequence[int], index: int, unit: SeriesUnit | None = None) -> list[float]:
    values: list[float] = []
    problems: list[Problem] = []
    for row in order:
        text = table.rows[row][index]
        try:
            plain = text if unit else _UNIT_IN_CELL.sub("", text)
            reading = math.nan if text.lower() in MISSING_TEXTS else number(plain, unit)
        except ValueError as problem:
            problems.append(Problem(table.places[row], str(problem)))
            continue
        if reading < 0.0:
            problems.append(Problem(table.places[row], f'"{text[:40]}" is negative: correct it or leave it empty'))
        values.append(reading)
    if problems:
        raise FileProblem(table.path, shortened(problems))
    return values


def _stated_range_j(table: SeriesTable, index: int, factor: float) -> float:
    """Return the range from a column such as ``max_energy_range_uj``, NaN without one."""
    ranges = [at for at, name in enumerate(table.names) if "max_energy" in name.lower()]
    after = [at for at in ranges if at > index] or ranges
    if not after:
        return math.nan
    try:
        return number(table.rows[0][after[0]]) * factor
    except ValueError as problem:
        raise FileProblem(table.path, [Problem(table.places[0], str(problem))]) from problem


def _counter_w(
    table: SeriesTable, times: Sequence[datetime], readings: Sequence[float], factor: float, range_j: float
) -> tuple[list[float], list[str]]:
    """Return the mean power of each interval, NaN where it is unknown, and notes on wraps and restarts."""
    spans_s = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    energies_j = [(later - earlier) * factor for earlier, later in pairwise(readings)]
    watts = [energy_j / span_s for energy_j, span_s in zip(energies_j, spans_s, strict=True)]
    usual = [power_w for power_w in watts if power_w >= 0.0]
    usual_w = median(usual) if usual else math.nan
    highest_j = max((reading * factor for reading in readings if not math.isnan(reading)), default=0.0)
    wraps: list[datetime] = []
    restarts: list[datetime] = []
    for index, power_w in enumerate(watts):
        if not power_w < 0.0:
            continue
        candidates = [range_j] if not math.isnan(range_j) else [wrap_j for wrap_j in _RANGES_J if wrap_j >= highest_j]
        wrapped = [(energies_j[index] + candidate_j) / spans_s[index] for candidate_j in candidates]
        likely = [power_w for power_w in wrapped if usual_w / _PLAUSIBLE_RATIO <= power_w <= usual_w * _PLAUSIBLE_RATIO]
        watts[index] = likely[0] if len(likely) == 1 else math.nan
        (wraps if len(likely) == 1 else restarts).append(times[index + 1])
    notes = []
    if wraps:
        notes.append(f"wrapped {len(wraps)} times, first at {wraps[0]}: its range added")
    if restarts:
        notes.append(f"fell {len(restarts)} times, first at {restarts[0]}, which no range explains: left out")
    return watts, notes


def _refuse_impossible(table: SeriesTable, times: Sequence[datetime], watts: Sequence[float]) -> None:
    problems = [
        Problem(str(time), f"{power_w:.4g} W: at most {_MAX_W:g} W is read; is the unit right?")
        for time, power_w in zip(times, watts, strict=False)
        if power_w > _MAX_W
    ]
    if problems:
        raise FileProblem(table.path, shortened(problems))
    if not any(power_w > 0.0 for power_w in watts):
        message = "all its intervals are 0 W or unknown, but a running device draws power: check the meter"
        raise FileProblem(table.path, [Problem("", message)])


def _rates(
    table: SeriesTable, order: Sequence[int], times: Sequence[datetime], time_at: int
) -> tuple[list[float], str]:
    """Return the traffic of each interval, NaN without one, and a note on it."""
    unknown = [math.nan] * (len(times) - 1)
    try:
        chosen: Chosen = chosen_columns(table, None, None, time_at)
    except FileProblem:
        return unknown, "the file has no traffic that says its unit and direction, so watts over load are not known"
    totals = [0.0] * (len(times) - 1)
    for index, unit in chosen.columns:
        values = _values(table, order, index, unit)
        for at, (earlier, later) in enumerate(pairwise(times)):
            span_s = (later - earlier).total_seconds()
            if unit.per == "counter":
                count = values[at + 1] - values[at]
                # A counter of 64 bits that falls began anew; one of 32 bits has more likely wrapped.
                count += 2.0**32 if count < 0.0 and unit.counter_bits == 32 else 0.0
                totals[at] += count * unit.bits / span_s if count >= 0.0 else math.nan
            else:
                totals[at] += values[at] * unit.bits / (span_s if unit.per == "step" else 1.0)
    finite = [rate for rate in totals if not math.isnan(rate)]
    highest = max(finite, default=0.0)
    if not highest > 0.0 or highest > 1e15 or min(finite) == highest:
        return unknown, "the file's traffic does not vary, so watts over load are not known"
    names = " + ".join(f'"{table.names[index][:60]}"' for index, _ in chosen.columns[:4])
    return totals, f"load: {names}, and load 1 is its greatest rate, {format_bps(highest)}"


def _grouped(known: Sequence[tuple[float, float]]) -> tuple[LoadSample, ...]:
    """Return samples with load ratios, means of neighbours in load where there are many."""
    loaded = sorted((rate, power_w) for rate, power_w in known if not math.isnan(rate))
    if len(loaded) < 2:
        return tuple(LoadSample(load_ratio=math.nan, power_w=power_w) for _, power_w in known)
    highest = loaded[-1][0]
    groups = min(_MAX_GROUPS, len(loaded))
    bounds = [round(index * len(loaded) / groups) for index in range(groups + 1)]
    return tuple(
        LoadSample(
            load_ratio=min(fmean(rate for rate, _ in loaded[start:end]) / highest, 1.0),
            power_w=fmean(power_w for _, power_w in loaded[start:end]),
        )
        for start, end in pairwise(bounds)
    )
