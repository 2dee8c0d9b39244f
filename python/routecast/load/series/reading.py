"""Reading of traffic series: rates, amounts per step, interface counters, flow records and demand matrices.

The samples are placed on equal steps. Notes report gaps, duplicates, disorder, zeros and jumps.

SNDlib 1.0 (Orlowski, Pióro, Tomaszewski, Wessäly, Networks 55(3), 2010) stores dynamic traffic as a folder or an
archive of demand matrices, one for each instant, in its XML or its native format. The meta section of each file gives
the time of the measurement and the unit::

    META ( granularity = 5min   time = 20040301-0010   unit = MBITPERSEC )
    DEMANDS ( ATLAM5_ATLAng ( ATLAM5 ATLAng ) 1 0.375261 UNLIMITED … )

``#`` begins a comment of the native format. XML with document types or entities is refused; no file of SNDlib has them.
The series is the total of each matrix.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from statistics import median, median_low
from typing import Literal

from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.load.series._table import (
    SERIES_UNITS_TEXT,
    SeriesTable,
    SeriesUnit,
    TrafficSeries,
    column_index,
    local_times,
    parse_series_unit,
    parse_time,
    read_series_table,
    shortened,
    unit_in_name,
)
from routecast.load.series.shapes import filled
from routecast.quantity import format_bps
from routecast.quantity.bounded_file import open_file, read_bytes
from routecast.quantity.catalogue import shipped_files

__all__ = [
    "Gaps",
    "Grid",
    "Piece",
    "counter_pieces",
    "gap_problems",
    "held_pieces",
    "is_sndlib",
    "oddities",
    "put_on_grid",
    "read_series",
    "read_sndlib_totals",
    "shipped_series",
    "sorted_samples",
    "spread",
    "step_between",
]

_ARCHIVES = (".tgz", ".tar.gz", ".tar")
_MATRIX_SUFFIXES = frozenset({".xml", ".txt"})
_MAX_MATRIX_BYTES = 20_000_000
"""Largest demand matrix; those of GÉANT have 80 kB."""
_MAX_ARCHIVE_BYTES, _MAX_UNPACKED_BYTES = 1_000_000_000, 4_000_000_000
_MAX_UNPACKED_RATIO = 100
"""Largest ratio of unpacked to packed bytes; matrices have 10 to 20, a decompression bomb has up to 1000."""
_MAX_FILES = 200_000
"""Most files of a folder; half a year of Abilene in steps of five minutes has 48,096."""

_NUMBER = re.compile(r"[\d.eE+-]+")
_COMMENT = re.compile(r"#.*")
_META = r"^[ \t]*{}[ \t]*=[ \t]*(\S+)[ \t]*\r?$"
_TIME = re.compile(_META.format("time"), re.MULTILINE)
_UNIT = re.compile(_META.format("unit"), re.MULTILINE)
_DEMANDS = re.compile(r"^[ \t]*DEMANDS\s*\(", re.MULTILINE)
_DEMAND = re.compile(r"\s*[^\s()]+\s*\(\s*[^\s()]+\s+[^\s()]+\s*\)\s*([^\s()]+)\s+([^\s()]+)\s+[^\s()]+(?=[\s)])")
_SECTION_END = re.compile(r"\s*\)")


def is_sndlib(path: Path) -> bool:
    """Return whether a path is a folder or an archive, which only series of SNDlib are."""
    return path.is_dir() or path.name.lower().endswith(_ARCHIVES)


def read_sndlib_totals(path: Path) -> SeriesTable:
    """Return the total of every matrix in a folder or an archive, in order of time.

    A matrix without demands means that the recorder did not run, not that there was no traffic, so its total is
    missing.

    Raises FileProblem: the folder or archive cannot be read, is too large, or has no matrix; or a matrix cannot be
    read, lacks a time or a unit, or has another unit than the others.
    """
    rows: list[tuple[str, str, str]] = []
    units: dict[str, str] = {}
    problems: list[Problem] = []
    matrices = _folder_matrices(path, problems) if path.is_dir() else _archive_matrices(path, problems)
    for name, content in matrices:
        try:
            time, unit, demands = _parse_xml(content) if content.lstrip()[:1] == b"<" else _parse_native(content)
            total = math.fsum(demands)
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(name, str(problem)))
            continue
        units.setdefault(unit, name)
        rows.append((time, repr(total) if demands else "", name))
    if len(units) > 1:
        problems += [Problem(name, f"is in {unit}: all matrices must be in one unit") for unit, name in units.items()]
    if problems or not rows:
        raise FileProblem(
            str(path),
            shortened(problems)
            or [Problem("", "has no demand matrix: name a folder or archive of *.xml or *.txt files")],
        )
    rows.sort()
    return SeriesTable(
        path=str(path),
        names=("time", f"total_{next(iter(units))}"),
        rows=tuple((time, total) for time, total, _ in rows),
        places=tuple(name for _, _, name in rows),
    )


def _parse_native(content: bytes) -> tuple[str, str, list[float]]:
    text = _COMMENT.sub("", content.decode("utf-8").removeprefix("\ufeff"))
    time, unit, section = _TIME.search(text), _UNIT.search(text), _DEMANDS.search(text)
    if time is None or unit is None or section is None:
        raise _missing_entry("time" if time is None else "unit" if unit is None else "demands")
    demands, at = [], section.end()
    while (demand := _DEMAND.match(text, at)) is not None:
        demands.append(_demand_value(demand[1]) * _demand_value(demand[2]))
        at = demand.end()
    if not _SECTION_END.match(text, at):
        rest = text[at : at + 200].split()[:7]
        raise ValueError(f'got "{" ".join(rest)[:80]}" among the demands: give ID ( FROM TO ) UNIT VALUE PATH')
    return time[1], unit[1], demands


def _parse_xml(content: bytes) -> tuple[str, str, list[float]]:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        root = fromstring(content.lstrip(), forbid_dtd=True)
    except DefusedXmlException as problem:
        raise ValueError("has a document type or entities, which no file of SNDlib has: leave them out") from problem
    except (ParseError, LookupError) as problem:  # or the declared encoding does not exist
        raise ValueError(f"is no XML: {problem}") from problem
    namespace = root.tag[: root.tag.find("}") + 1]  # elements of other namespaces are not SNDlib's
    time, unit = (root.findtext(f"{namespace}meta/{namespace}{name}", "").strip() for name in ("time", "unit"))
    sections = list(root.iter(f"{namespace}demands"))
    if not time or not unit or not sections:
        raise _missing_entry("time" if not time else "unit" if not unit else "demands")
    demands = [
        _demand_value(demand.findtext(f"{namespace}routingUnit", "1"))
        * _demand_value(demand.findtext(f"{namespace}demandValue", "nothing"))
        for section in sections
        for demand in section.iter(f"{namespace}demand")
    ]
    return time, unit, demands


def _missing_entry(entry: str) -> ValueError:
    return ValueError(f"is no demand matrix of SNDlib: it gives no {entry}")


def _demand_value(text: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    if not 0.0 <= value < math.inf:
        raise ValueError(f'a demand is no number: got "{text.strip()[:40]}", give a finite number that is not negative')
    return value


def _folder_matrices(path: Path, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file in a folder that may be a matrix."""
    paths = list(islice(path.rglob("*"), _MAX_FILES + 1))
    if len(paths) > _MAX_FILES:
        raise FileProblem(str(path), [Problem("", f"holds more than {_MAX_FILES:,} files: name one with matrices")])
    for file in sorted(paths):
        if file.suffix.lower() in _MATRIX_SUFFIXES:
            try:
                yield file.name, read_bytes(file, kind="demand matrix", max_file_bytes=_MAX_MATRIX_BYTES)
            except FileProblem as problem:
                problems += [Problem(file.name, fault.message) for fault in problem.problems]


def _archive_matrices(path: Path, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file in an archive that may be a matrix."""
    kind = "archive of demand matrices"
    try:
        with open_file(path, kind=kind, max_file_bytes=_MAX_ARCHIVE_BYTES) as file:
            is_packed = file.read(2) == b"\x1f\x8b"
            size_bytes = file.seek(0, io.SEEK_END)
            file.seek(0)
            packed = gzip.GzipFile(fileobj=file, mode="rb") if is_packed else file
            max_bytes = min(_MAX_MATRIX_BYTES + _MAX_UNPACKED_RATIO * size_bytes, _MAX_UNPACKED_BYTES)
            with tarfile.open(fileobj=_LimitedStream(packed, max_bytes, path), mode="r|") as archive:
                for member in archive:
                    name = Path(member.name).name
                    if not member.isfile() or Path(name).suffix.lower() not in _MATRIX_SUFFIXES:
                        continue
                    if member.size > _MAX_MATRIX_BYTES:
                        message = f"has {member.size:,} bytes: a demand matrix has at most {_MAX_MATRIX_BYTES:,}"
                        problems.append(Problem(name, message))
                        return
                    content = archive.extractfile(member)
                    if content is not None:
                        yield name, content.read()
    except (OSError, tarfile.TarError, EOFError, zlib.error) as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read: {problem}")]) from problem


class _LimitedStream(io.RawIOBase):
    """A stream of limited length."""

    def __init__(self, stream: gzip.GzipFile | io.FileIO, max_bytes: int, path: Path) -> None:
        self._stream, self._max_bytes, self._remaining_bytes, self._path = stream, max_bytes, max_bytes, path

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size) or b""
        self._remaining_bytes -= len(chunk)
        if self._remaining_bytes < 0:
            message = f"unpacks to more than {self._max_bytes:,} bytes: unpack it and name the folder of matrices"
            raise FileProblem(str(self._path), [Problem("", message)])
        return chunk


_JITTER_RATIO = 0.05
"""Samples that are off their step by at most this share of a step are moved onto it."""

_JUMP_RATIO = 10.0
"""Samples this many times above or below the median are reported, because a wrong unit could explain them."""

MAX_STEPS = 2_000_000
"""Nineteen years of 5-minute steps; a longer span means that a time is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Values at equal steps; missing values are NaN."""

    start: datetime
    step_s: float
    values: tuple[float, ...]
    notes: tuple[str, ...] = ()


def sorted_samples(
    times: Sequence[datetime], values: Sequence[float], places: Sequence[str]
) -> tuple[list[tuple[datetime, float]], list[str], list[Problem]]:
    """Return the samples in order of time, each instant once, with notes on repairs and the remaining problems."""
    notes: list[str] = []
    problems: list[Problem] = []
    disordered = [place for place, first, second in zip(places[1:], times, times[1:], strict=False) if second < first]
    if disordered:
        notes.append(f"{_count(len(disordered), 'sample')} out of order, first at {disordered[0]}: sorted by time")
    ordered = sorted(zip(times, values, places, strict=True), key=lambda sample: sample[0])
    samples: list[tuple[datetime, float]] = []
    repeated = 0
    for time, value, place in ordered:
        if samples and time == samples[-1][0]:
            before = samples[-1][1]
            if value == before or (math.isnan(value) and math.isnan(before)):
                repeated += 1
            else:
                problems.append(
                    Problem(place, f"{time} occurs twice, with {before:g} and with {value:g}: remove one of them")
                )
            continue
        samples.append((time, value))
    if repeated:
        notes.append(f"{_count(repeated, 'repeated sample')} with the same time and value: counted once")
    return samples, notes, problems


def step_between(times: Sequence[datetime]) -> float:
    """Return the commonest distance of successive times in seconds; the median decides between equally common ones."""
    distances_s = [(second - first).total_seconds() for first, second in pairwise(times)]
    counts = Counter(distances_s)
    max_count, median_s = max(counts.values()), median_low(distances_s)
    return min(
        (distance_s for distance_s, count in counts.items() if count == max_count),
        key=lambda distance_s: (abs(distance_s - median_s), distance_s),
    )


def put_on_grid(samples: Sequence[tuple[datetime, float]], step_s: float | None) -> tuple[Grid | None, list[Problem]]:
    """Place sorted samples on equal steps; return the grid, or None and the problems if the steps are not equal."""
    if len(samples) < 2 and step_s is None:
        return None, [Problem("", "has one sample, so its step is unknown: give the step")]
    step_s = step_s if step_s is not None else step_between([time for time, _ in samples])
    start = samples[0][0]
    steps = round((samples[-1][0] - start).total_seconds() / step_s) + 1
    if steps > MAX_STEPS:
        return None, [Problem("", f"spans {steps:,} steps of {step_s:g} s: at most {MAX_STEPS:,} are read")]
    values = [math.nan] * steps
    taken = [False] * steps
    problems: list[Problem] = []
    moved = 0
    for time, value in samples:
        exact = (time - start).total_seconds() / step_s
        index = round(exact)
        if abs(exact - index) > _JITTER_RATIO or taken[index]:
            problems.append(Problem(str(time), f"is {abs(exact - index) * step_s:.4g} s off the steps of {step_s:g} s"))
            continue
        moved += exact != index
        values[index] = value
        taken[index] = True
    if problems:
        return None, [
            *shortened(problems),
            Problem("", 'the steps are uneven: give a step and gaps="hold" to average the samples over the steps'),
        ]
    notes = (
        (f"{_count(moved, 'sample')} within {_JITTER_RATIO:.0%} of a step of its time: moved there",) if moved else ()
    )
    return Grid(start=start, step_s=step_s, values=tuple(values), notes=notes), []


def gap_problems(start: datetime, step_s: float, values: Sequence[float]) -> list[Problem]:
    """Return one problem for every run of missing steps."""
    problems = []
    index = 0
    while index < len(values):
        first = index
        while index < len(values) and math.isnan(values[index]):
            index += 1
        if index > first:
            begin = start + timedelta(seconds=first * step_s)
            end = start + timedelta(seconds=index * step_s)
            problems.append(Problem(f"{begin} to {end}", f"{_count(index - first, 'step')} missing"))
        index += 1
    return problems


def oddities(start: datetime, step_s: float, l2_bps: Sequence[float]) -> list[str]:
    """Return notes on values that are possible but often wrong: zeros, jumps, implausible rates."""
    notes = []
    present = [(index, rate) for index, rate in enumerate(l2_bps) if not math.isnan(rate)]
    zeros = [index for index, rate in present if rate == 0.0]

    def when(index: int) -> str:
        return str(start + timedelta(seconds=index * step_s))

    if zeros:
        notes.append(f"{_count(len(zeros), 'step')} with no traffic at all, first at {when(zeros[0])}: kept")
    rates = [rate for _, rate in present if rate > 0.0]
    if not rates:
        return notes
    middle = median(rates)
    for steps, words in (
        ([index for index, rate in present if rate > _JUMP_RATIO * middle], "above ten times"),
        ([index for index, rate in present if 0.0 < rate < middle / _JUMP_RATIO], "below a tenth of"),
    ):
        if steps:
            notes.append(
                f"{_count(len(steps), 'step')} {words} the median of {format_bps(middle)}, "
                f"first at {when(steps[0])}: kept; is the unit the same throughout?"
            )
    if max(rates) < 1e3 or max(rates) > 1e15:
        notes.append(f"the highest rate is {format_bps(max(rates))}: is the unit right?")
    return notes


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


_GAP_RATIO = 2.5
"""A distance between samples of more than this many times the median is a gap."""

_WRAP_RATIO = 2.0
"""A counter that decreased has wrapped if the implied rate is at most this many times the highest other rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bits that passed at a constant rate from ``begin`` to ``end``."""

    begin: datetime
    end: datetime
    bits: float


def spread(pieces: Sequence[Piece], step_s: float, *, complete_only: bool) -> Grid:
    """Return the mean rate of every step; bits are conserved.

    With ``complete_only`` (for counters), steps that the pieces cover only in part are missing. Otherwise (for flow
    records, where no record means no traffic) such steps have the bits of the pieces. Raises ModelProblem: the pieces
    span too many steps, so a time is wrong.
    """
    origin = min(piece.begin for piece in pieces)
    # Steps begin at multiples of the step after midnight, so that a day has a whole number of steps.
    midnight = datetime(origin.year, origin.month, origin.day)
    start = midnight + timedelta(seconds=math.floor((origin - midnight).total_seconds() / step_s) * step_s)
    last = max(piece.end for piece in pieces)
    steps = max(1, math.ceil((last - start).total_seconds() / step_s - 1e-9))
    if steps > MAX_STEPS:
        span = f"{origin} to {last} is {steps:,} steps of {step_s:g} s"
        raise ModelProblem("series", [Problem("", f"{span}, at most {MAX_STEPS:,} are read: is a time wrong?")])
    bits = [0.0] * steps
    covered_s = [0.0] * steps
    for piece in pieces:
        begin_s, end_s = (piece.begin - start).total_seconds(), (piece.end - start).total_seconds()
        if end_s == begin_s:  # a flow of one packet
            bits[min(int(begin_s // step_s), steps - 1)] += piece.bits
            continue
        for index in range(int(begin_s // step_s), min(steps, math.ceil(end_s / step_s))):
            part_s = min(end_s, (index + 1) * step_s) - max(begin_s, index * step_s)
            bits[index] += piece.bits * part_s / (end_s - begin_s)
            covered_s[index] += part_s
    values = [
        math.nan if complete_only and covered < step_s * (1.0 - 1e-9) else amount / step_s
        for amount, covered in zip(bits, covered_s, strict=True)
    ]
    while complete_only and values and math.isnan(values[0]):  # the first and the last step are usually incomplete
        values.pop(0)
        start += timedelta(seconds=step_s)
    while complete_only and values and math.isnan(values[-1]):
        values.pop()
    return Grid(start=start, step_s=step_s, values=tuple(values))


def counter_pieces(
    samples: Sequence[tuple[datetime, float]], *, counter_bits: int, bits_per_count: float
) -> tuple[list[Piece], list[str]]:
    """Return the bits between readings of a counter (RFC 2863), with notes on wraps, resets and gaps.

    A counter that decreased has wrapped, or the device has restarted. It counts as a wrap if that implies at most twice
    the highest rate between other readings; otherwise the interval is missing.
    """
    size = 2.0**counter_bits
    known = [(time, value) for time, value in samples if not math.isnan(value)]
    pairs = list(pairwise(known))
    distances_s = [(two[0] - first[0]).total_seconds() for first, two in pairs]
    median_s = median(distances_s) if distances_s else 0.0
    max_rate = max(
        (
            (two[1] - first[1]) / span
            for (first, two), span in zip(pairs, distances_s, strict=True)
            if two[1] >= first[1]
        ),
        default=math.inf,
    )
    pieces: list[Piece] = []
    wraps: list[datetime] = []
    resets: list[datetime] = []
    gaps: list[datetime] = []
    for (first, two), span_s in zip(pairs, distances_s, strict=True):
        if span_s > _GAP_RATIO * median_s:
            gaps.append(first[0])
            continue
        counts = two[1] - first[1]
        if counts < 0.0:
            counts += size
            if counts / span_s > _WRAP_RATIO * max_rate:
                resets.append(two[0])
                continue
            wraps.append(two[0])
        pieces.append(Piece(begin=first[0], end=two[0], bits=counts * bits_per_count))
    notes = [
        f"the counter {words} {len(cases)} {'time' if len(cases) == 1 else 'times'}, first at {cases[0]}{done}"
        for cases, words, done in (
            (wraps, f"of {counter_bits} bits wrapped", ": added"),
            (resets, "began anew", ": that interval is missing"),
            (gaps, "was not read for long", ": that interval is missing"),
        )
        if cases
    ]
    return pieces, notes


def held_pieces(samples: Sequence[tuple[datetime, float]]) -> list[Piece]:
    """Return pieces in which each rate holds until the next sample; the last rate holds for the median distance."""
    known = [(time, value) for time, value in samples if not math.isnan(value)]
    ends = [time for time, _ in known[1:]]
    median_distance = timedelta(
        seconds=median((two - first[0]).total_seconds() for first, two in zip(known, ends, strict=False))
    )
    ends.append(known[-1][0] + median_distance)
    return [
        Piece(begin=time, end=end, bits=rate * (end - time).total_seconds())
        for (time, rate), end in zip(known, ends, strict=True)
    ]


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

    Files are CSV (comma, semicolon, tab) or Parquet with a header. A series has a column of times and a column of
    values. A column named like ``ifHCInOctets`` is a counter, whose differences give the traffic. Columns of start, end
    and bytes are flow records (as ``nfdump -o csv`` writes them), whose bytes are spread evenly over their durations. A
    folder or archive holds demand matrices of SNDlib, whose totals are the series.

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
        Treatment of missing and negative values; see :data:`~routecast.load.series.shapes.Filling`.

    Raises
    ------
    FileProblem
        The file cannot be read or lacks information, or a sample is wrong, missing or off its step. The error lists up
        to twenty faults with their places, and the number of all.
    """
    shipped = shipped_series()
    source = str(path)
    file = shipped[source] if source in shipped and not Path(path).is_file() else Path(path)
    if not (file.is_file() or file.is_dir()):
        raise FileProblem(
            source, [Problem("", f"is neither a file nor a shipped series: those are {', '.join(shipped)}")]
        )
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise FileProblem(source, [Problem("step", f"{step:g} s is no positive time")])
    table = read_sndlib_totals(file) if is_sndlib(file) else read_series_table(file)
    flows = _flow_columns(table) if column is None and unit is None else None
    try:
        grid, notes = (
            _flow_grid(table, flows, step or 60.0)
            if flows
            else _sample_grid(table, column, time_column, unit, step, gaps)
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
                    f"missing steps: {sum(math.isnan(rate) for rate in grid.values):,}; choose what to do about gaps: "
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


def _sample_grid(
    table: SeriesTable, column: str | None, time_column: str | None, unit: str | None, step_s: float | None, gaps: Gaps
) -> tuple[Grid, list[str]]:
    time_index = _time_index(table, time_column)
    value_index, meaning = _value_index(table, column, unit, time_index)
    times, values, notes = _times_and_values(table, time_index, value_index, meaning, gaps)
    samples, repairs, problems = sorted_samples(times, values, table.places)
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
    if step_s is None or gaps != "hold" or len(samples) < 2:
        raise FileProblem(table.path, problems)
    held = spread(held_pieces(samples), step_s, complete_only=True)
    return held, [*notes, f"uneven samples, each held until the next and averaged over {step_s:g} s"]


def _times_and_values(
    table: SeriesTable, time_index: int, value_index: int, meaning: SeriesUnit, gaps: Gaps
) -> tuple[list[datetime], list[float], list[str]]:
    """Return the times and values of all rows, NaN for missing values, and notes."""
    times: list[datetime] = []
    values: list[float] = []
    problems: list[Problem] = []
    negative: list[str] = []
    for row, place in zip(table.rows, table.places, strict=True):
        try:
            times.append(parse_time(row[time_index]))
            text = row[value_index]
            value = math.nan if text.lower() in _MISSING else _number(text)
        except ValueError as problem:
            problems.append(Problem(place, str(problem)))
            continue
        if value < 0.0:
            negative.append(place)
            value = math.nan
            if gaps == "refuse":
                message = (
                    f'"{row[value_index]}" is negative, but traffic is not: correct it, or treat it as a gap '
                    "(--gaps): hold, interpolate or drop"
                )
                problems.append(Problem(place, message))
        if meaning.per == "counter" and value >= 2.0**meaning.counter_bits:
            problems.append(
                Problem(place, f'"{row[value_index]}" does not fit a counter of {meaning.counter_bits} bits')
            )
        values.append(value)
    if not problems:
        try:
            times = local_times(times)
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(f'column "{table.names[time_index]}"', str(problem)))
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


def _time_index(table: SeriesTable, time_column: str | None) -> int:
    if time_column is not None:
        return column_index(table, time_column, "time_column")
    lower = [name.lower() for name in table.names]
    return next((lower.index(name) for name in _TIME_NAMES if name in lower), 0)


def _value_index(table: SeriesTable, column: str | None, unit: str | None, time_index: int) -> tuple[int, SeriesUnit]:
    """Return the column of values and their unit. Raises FileProblem if the file leaves one of them open."""
    given: SeriesUnit | None = None
    if unit is not None:
        try:
            given = parse_series_unit(unit)
        except QuantityProblem as problem:
            raise FileProblem(table.path, [Problem("unit", problem.message)]) from problem
    others = [index for index in range(len(table.names)) if index != time_index]
    stated = {index: unit_in_name(table.names[index]) for index in others}
    if column is not None:
        at = column_index(table, column, "column")
        if at == time_index:
            raise FileProblem(table.path, [Problem("column", f'"{column}" is the column of times')])
    else:
        with_unit = [index for index in others if stated[index] is not None]
        choice = with_unit if len(with_unit) == 1 else others
        if len(choice) != 1:
            names = ", ".join(f'"{table.names[index]}"' for index in others) or "none"
            raise FileProblem(
                table.path, [Problem("column", f"name the column of values; beside the time there are {names}")]
            )
        at = choice[0]
    meaning = given or stated[at]
    if meaning is None:
        hint = '; a title with "in bits" usually means "bit per step"' if "bits" in table.names[at] else ""
        raise FileProblem(
            table.path,
            [Problem(f'column "{table.names[at][:60]}"', f"gives no unit: choose one of {SERIES_UNITS_TEXT}{hint}")],
        )
    return at, meaning


def _flow_columns(table: SeriesTable) -> tuple[int, int, int] | None:
    lower = [name.lower() for name in table.names]
    columns = [next((lower.index(name) for name in names if name in lower), None) for names in _FLOW_NAMES]
    start, end, amount = columns
    return None if start is None or end is None or amount is None else (start, end, amount)


def _flow_grid(table: SeriesTable, columns: tuple[int, int, int], step_s: float) -> tuple[Grid, list[str]]:
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
    grid = spread(pieces, step_s, complete_only=False)
    return grid, [
        f"{len(pieces):,} flow records spread evenly over their durations; the first and the last steps lack flows "
        "that the collector exported before or after the file"
    ]
