"""Rows of a table of measured points: maximum forwarding rates in overload, which `size`, `validate` and `next` read.

Latencies at loads below and beyond them are rows without a rate (:mod:`routecast.lab.benchmark.latency_rows`).
The lossless throughput of RFC 2544 sec. 26.1 is another rate, which a stall of a millisecond lowers. A table never
holds both.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.evaluate.point_table import points_text, read_points
from routecast.evaluate.points import Point
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.latency_rows import LATENCY_COLUMNS, latency_row
from routecast.lab.benchmark.overload import CLEAR_LOSS_RATIO, standard_error_ratio
from routecast.lab.benchmark.procedures.frame_loss import FrameLossRow
from routecast.lab.benchmark.streams import SECTIONS, sending_ports
from routecast.lab.benchmark.values import BenchmarkResult
from routecast.lab.testbed.bed import Bed
from routecast.lab.testbed.checks import disturbances
from routecast.lab.testbed.devices import make_device
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.timed import measure_of
from routecast.load.frames import FrameMix
from routecast.quantity.whole_file import write_whole

__all__ = ["append_point", "measured_point", "point_of", "points_before", "points_of", "series_of", "write_points"]

POINTS = "points.csv"
"""Name of the table in a folder of results."""

_ALWAYS = ("throughput_pps", "standard_error_ratio", "disturbed")
"""Columns that every table has, so that rows can be appended whatever their trials say."""

_NOT_IN_A_SERIES = ("cores", "configuration", "disabled")
"""Options that a series does not name: the column ``cores``, and long texts for a report."""


def series_of(name: str, options: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """Return the series of a device's points: its name, and the options that differ from the defaults.

    Examples
    --------
    >>> series_of("nftables", {"rules": 3000, "ipv6": True, "cores": 2}, {"rules": 0, "ipv6": True, "cores": 1})
    'nftables rules=3000'
    """
    changed = [
        f"{key}={option}"
        for key, option in options.items()
        if key not in _NOT_IN_A_SERIES and option != defaults.get(key, option)
    ]
    return " ".join([name, *changed])


def point_of(bed: Bed, frames: FrameMix, *, ports: int = 1, cores: int | None = None) -> Point:
    """Return the conditions of a measurement on an open bed as a point without a rate.

    ``cores``: by default those of the device.
    """
    facts, device = bed.device.facts(), bed.device
    options = facts.get("options", {})
    assert isinstance(options, Mapping)
    return Point(
        cores=cores or int(getattr(device, "cores", 1)),
        frame_bytes=float(frames.mean_bytes),
        frame_mix=None if frames.is_fixed else frames,
        throughput_pps=math.nan,
        link_bps=bed.ports[0].wire_bps
        if measure_of(bed) is Measure
        else None,  # a device without a wire has no link rate
        ports=ports,
        series=series_of(device.name, options, _defaults(device.options)),
    )


def measured_point(point: Point, trial: Trial) -> Point:
    """Return the row of a trial in overload: its rate, its standard error, and what disturbed it."""
    return replace(
        point,
        throughput_pps=trial.forwarded_pps,
        calibrate=True,
        rate_kind="overload",
        disturbed="; ".join(disturbances(trial)),
        standard_error_ratio=standard_error_ratio(trial),
    )


def points_before(path: Path, point: Point, *, command: str) -> list[Point]:
    """Return the calibrating rows of a table before ``point`` is appended to it; none without a file.

    Raises FileProblem: the table is no CSV, cannot be read, or has other columns.
    """
    if path.suffix.lower() == ".parquet":
        raise FileProblem(str(path), [Problem("", f"{command} appends rows to CSV: name a file that ends in .csv")])
    if not path.parent.is_dir():
        raise FileProblem(str(path), [Problem("", f"cannot be written: there is no folder {path.parent}")])
    if not path.is_file() or path.stat().st_size == 0:
        return []
    columns = _header(point)
    if columns != ",".join(head for head in _heads(path) if not head.startswith(_OF_LATENCY)):
        message = f"has other columns than the rows that {command} appends ({columns}): name another file"
        raise FileProblem(str(path), [Problem("row 1", message)])
    return [row for row in read_points(path) if row.calibrate]


def append_point(path: Path, point: Point) -> None:
    """Append a forwarding rate in overload, or a latency, to a table of points, or begin the table with it.

    A table without columns of latency gets them with its first latency.

    Raises FileProblem: the table cannot be written.
    """
    text = points_text([replace(point, rate_kind=point.rate_kind or "overload")], always=_always([point]))
    try:
        if not path.exists() or path.stat().st_size == 0:
            path.write_text(text, encoding="utf-8")
            return
        (row,) = csv.DictReader(io.StringIO(text))
        heads = _heads(path)
        if added := [head for head in row if head not in heads]:
            _add_columns(path, added)
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow([row.get(head, "") for head in (*heads, *added)])
        with path.open("a", encoding="utf-8") as file:
            file.write(line.getvalue())
    except OSError as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be written: {problem.strerror}")]) from problem


def points_of(result: BenchmarkResult, *, cores: int | None) -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """Return a benchmark's points, and a reason for each frame size without a point.

    A point is the forwarding rate at maximum offered load (RFC 2285 sec. 3.6.2): the first trial of the frame loss
    procedure, where its loss shows an overload. Each valid trial of the latency procedure is a point without a rate,
    where a rate of the same series calibrates.
    """
    if result.setup.evaluator != "measure":
        return (), ("its rates are predictions",)
    options = result.setup.device.get("options", {})
    assert isinstance(options, Mapping)
    if cores is None and _is_on_this_machine(result):
        cores = int(str(options.get("cores", 1)))
    if cores is None:
        return (), ("the cores of the device are not known: give them with --cores",)
    if result.frame_loss is None:
        return (), ("the frame loss rate was not measured: only its procedure overloads the device (frame_loss)",)
    streams = {stream.name: stream for stream in result.setup.streams}
    names = {stream.name_without_mix for stream in result.setup.streams}
    name = str(result.setup.device.get("name", ""))
    series = series_of(name, options, _defaults(make_device(name, {}).options) if name else {})
    points, reasons = [], []
    greatest: dict[tuple[str, float], FrameLossRow] = {}
    for row in result.frame_loss.rows:
        key = (row.stream, row.frame_bytes)
        if key not in greatest or row.rate_ratio > greatest[key].rate_ratio:
            greatest[key] = row
    timed: list[Point] = []
    for (stream_name, frame_bytes), row in greatest.items():
        stream = streams[stream_name]
        where = f"{stream_name}, {frame_bytes:g} B"
        conditions = Point(
            cores=cores,
            frame_bytes=float(frame_bytes),
            frame_mix=stream.frames,
            throughput_pps=math.nan,
            link_bps=min(result.setup.link_bps),
            ports=sending_ports(stream),
            series=series if len(names) == 1 else f"{series}, {stream.name_without_mix}",
            rate_kind="overload",
        )
        if stream.bidirectional and _is_on_this_machine(result):
            reasons.append(f"{where}: the generator's core forwards the frames of the other direction")
            continue
        if stream.modifier in SECTIONS:
            reasons.append(f"{where}: the device received other frames as well ({stream.modifier})")
            continue
        timed += _latency_rows(result, stream_name, frame_bytes, conditions)
        if row.outcome != "found":
            reasons.append(f"{where}: the trial at the maximum offered load is invalid")
        elif row.loss_ratio <= CLEAR_LOSS_RATIO:
            reasons.append(
                f"{where}: ≥ {row.forwarded_pps:,.0f} frames/s, a lower bound, since a loss of {row.loss_ratio:.1%} at "
                "the maximum offered load shows no overload"
            )
        else:
            points.append(
                replace(
                    conditions,
                    throughput_pps=row.forwarded_pps,
                    calibrate=True,
                    disturbed=row.disturbed,
                    standard_error_ratio=row.standard_error_ratio,
                )
            )
    calibrated = {point.series for point in points}
    for name in dict.fromkeys(point.series for point in timed if point.series not in calibrated):
        reasons.append(f"latency, {name}: no forwarding rate of it calibrates, of which the loads would be shares")
    return (*points, *(point for point in timed if point.series in calibrated)), tuple(reasons)


def write_points(points: Sequence[Point], folder: Path) -> Path:
    """Write the table of a folder of results and return its path.

    Raises RoutecastError: the table cannot be written.
    """
    path = folder / POINTS
    write_whole(path, points_text(points, always=_always(points)))
    return path


def _latency_rows(result: BenchmarkResult, stream_name: str, frame_bytes: float, conditions: Point) -> Sequence[Point]:
    """Return a row for each valid trial of the latency procedure of one stream and frame size.

    Trials at a throughput that was lowered after them are left out.
    """
    key = (stream_name, frame_bytes)
    rows = () if result.latency is None else result.latency.rows
    loads_pps = [row.rate_pps for row in rows if (row.stream, row.frame_bytes) == key]
    trials = (
        record.trial
        for record in result.trials
        if record.procedure == "latency"
        and (record.stream, record.frame_bytes) == key
        and any(math.isclose(record.rate_pps, load_pps) for load_pps in loads_pps)
    )
    return [row for trial in trials if (row := latency_row(conditions, trial)) is not None]


_OF_LATENCY = "latency_"


def _always(points: Sequence[Point]) -> tuple[str, ...]:
    return (*_ALWAYS, *LATENCY_COLUMNS) if any(point.latency for point in points) else _ALWAYS


def _heads(path: Path) -> list[str]:
    """Return the heads of a table in CSV, whose lines of remarks start with ``#``."""
    lines = (line for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and line[0] != "#")
    return next(csv.reader(lines), [])


def _add_columns(path: Path, heads: Sequence[str]) -> None:
    """Add columns to a table, empty in each of its rows."""
    lines = path.read_text(encoding="utf-8").splitlines()
    is_row = [bool(line.strip()) and line[0] != "#" for line in lines]
    header = is_row.index(True)
    ends = (",".join(["", *heads]) if number == header else "," * len(heads) for number in range(len(lines)))
    text = "".join(f"{line}{end if is_it else ''}\n" for line, end, is_it in zip(lines, ends, is_row, strict=True))
    write_whole(path, text)


def _header(point: Point) -> str:
    row = replace(point, throughput_pps=1.0, calibrate=True, rate_kind="overload", latency=None)
    return points_text([row], always=_ALWAYS).partition("\n")[0]


def _is_on_this_machine(result: BenchmarkResult) -> bool:
    bed = result.setup.tester.get("bed", {})
    return isinstance(bed, Mapping) and bed.get("kind") == "namespaces"


def _defaults(options: type) -> Mapping[str, object]:
    if not is_dataclass(options):
        return {}
    return {field.name: field.default for field in fields(options) if field.default is not MISSING}
