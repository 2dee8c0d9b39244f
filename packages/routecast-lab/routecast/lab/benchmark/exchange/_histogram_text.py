"""Histograms of latency as text: MoonGen's, and HdrHistogram's percentiles (``.hgrm``) and logs (``.hlog``).

MoonGen (libmoon ``lua/histogram.lua``) writes a line ``latency in ns,count`` for each latency, without a head.
HdrHistogram (``outputPercentileDistribution``) writes ``Value Percentile TotalCount 1/(1-Percentile)``, as text or CSV,
without the unit of its values. Its logs (``HistogramLogWriter``, versions 1.0 to 1.3) have a line
``[Tag=NAME,]start,length,max,histogram`` for each interval, in seconds; ``max`` is divided by a ratio that the file
does not say, and the histogram is base64 of the compressed form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from routecast.errors import FileProblem, Problem
from routecast.evaluate.trial import Delay
from routecast.lab.benchmark._hdr import classes_of_hdr, delay_of_hdr
from routecast.lab.benchmark.exchange._document import MAX_NUMBER
from routecast.lab.benchmark.exchange._record import NAN, Record, measured

_PAIR = re.compile(r"(-?\d{1,18}(?:\.\d{1,20})?)[,;\t](\d{1,18})\s*")
_HGRM_HEAD = re.compile(r'^\s*"?Value"?[\s,]+"?Percentile"?[\s,]+"?TotalCount"?', re.IGNORECASE)
_HGRM_ROW = re.compile(
    r"\s*(-?[\d.]{1,40})[\s,]+([\d.]{1,40})[\s,]+(\d{1,18})(?:[\s,]+(?:[\d.]{1,40}|inf(?:inity)?))?\s*", re.IGNORECASE
)
_HGRM_MEAN = re.compile(r"#\[Mean\s*=\s*([\d.]{1,40})")
_HGRM_MAX = re.compile(r"#\[Max\s*=\s*([\d.]{1,40}),\s*Total count\s*=\s*(\d{1,18})")
_HLOG_ROW = re.compile(
    r"(?:Tag=(?P<tag>[^,\s]{1,200})[,\s]\s*)?(?P<start>\d{1,12}(?:\.\d{1,20})?)[,\s]\s*"
    r"(?P<length>\d{1,12}(?:\.\d{1,20})?)[,\s]\s*(?P<max>[\d.]{1,40}(?:[eE][-+]?\d{1,3})?)[,\s]\s*"
    r"(?P<histogram>D?HIST[A-Za-z0-9+/]+={0,2})\s*"
)
_HLOG_LEGEND = re.compile(r'\s*"?StartTimestamp"?\s*,', re.IGNORECASE)
_NS_IN_MS = 1e6
"""Ratio by which ``HistogramLogWriter`` divides the maximum of an interval where its caller gives none."""


def is_moongen_histogram(text: str) -> bool:
    """Whether a text is a histogram of MoonGen: pairs of numbers alone, the latencies rising."""
    lines = text.split("\n", 3)[:3]
    first = [match for line in lines if line.strip() and (match := _PAIR.fullmatch(line))]
    return bool(first) and len(first) == sum(bool(line.strip()) for line in lines)


def read_moongen_histogram(text: str, name: str) -> tuple[Record, ...]:
    """Read the latency of a histogram of MoonGen.

    Raises FileProblem: a line is no pair, or the latencies do not rise.
    """
    pairs: list[tuple[float, int]] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _PAIR.fullmatch(line)
        if match is None or (pairs and float(match[1]) <= pairs[-1][0]) or float(match[1]) < 0.0:
            problems.append(Problem(f"line {number}", f"got {line[:40]!r}: wants a rising latency in ns and a count"))
            continue
        pairs.append((float(match[1]), int(match[2])))
    total = sum(count for _, count in pairs)
    if not problems and total == 0:
        problems.append(Problem("", "has no sample"))
    if problems:
        raise FileProblem(name, problems[:20])
    filled = [(value, count) for value, count in pairs if count]

    def at(ratio: float) -> float:
        return _percentile(filled, ratio, total) * 1e-9

    latency = Delay(
        mean_s=math.fsum(value * count for value, count in filled) / total * 1e-9,
        min_s=filled[0][0] * 1e-9,
        max_s=filled[-1][0] * 1e-9,
        p50_s=at(0.5),
        p90_s=at(0.9),
        p99_s=at(0.99),
        p999_s=at(0.999),
        method=f"MoonGen histogram of {total:,} frames, in ns",
    )
    return (_record("MoonGen histogram", "MoonGen", latency),)


def _percentile(pairs: Sequence[tuple[float, int]], ratio: float, total: int) -> float:
    passed = 0
    for value, count in pairs:
        passed += count
        if passed >= ratio * total:
            return value
    return pairs[-1][0]


def is_hgrm(text: str) -> bool:
    """Whether a text is the percentiles of an HdrHistogram."""
    return bool(_HGRM_HEAD.match(text.lstrip("\ufeff\r\n \t")))


def read_hgrm(text: str, name: str, unit_s: float | None) -> tuple[Record, ...]:
    """Read the latency of an HdrHistogram's percentiles; ``unit_s``: the unit of its values, which the text lacks.

    Raises FileProblem: the unit is not given, or the rows are no percentiles.
    """
    if unit_s is None:
        message = "does not say the unit of its latencies: give --latency-unit us, for microseconds"
        raise FileProblem(name, [Problem("column Value", message)])
    rows: list[tuple[float, float, int]] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#") or _HGRM_HEAD.match(line):
            continue
        row = _hgrm_row(line)
        if row is None or (rows and (row[0] < rows[-1][0] or row[1] < rows[-1][1] or row[2] < rows[-1][2])):
            problems.append(
                Problem(f"line {number}", f"got {line[:60]!r}: wants rising values, percentiles and counts")
            )
        else:
            rows.append(row)
    if not problems and not (rows and rows[-1][1] == 1.0 and rows[-1][2] > 0):
        problems.append(Problem("", "ends before the percentile 1.0: is the file cut off?"))
    stated = _HGRM_MAX.search(text)
    if not problems and stated and int(stated[2]) != rows[-1][2]:
        problems.append(Problem("TotalCount", f"is {rows[-1][2]:,} at the end, and Total count is {int(stated[2]):,}"))
    if problems:
        raise FileProblem(name, problems[:20])
    mean = _HGRM_MEAN.search(text)
    mean_value = _number(mean[1]) if mean else None

    def at(ratio: float) -> float:
        return next(value for value, reached, _ in rows if reached >= ratio) * unit_s

    latency = Delay(
        mean_s=NAN if mean_value is None else mean_value * unit_s,
        min_s=rows[0][0] * unit_s,
        max_s=rows[-1][0] * unit_s,
        p50_s=at(0.5),
        p90_s=at(0.9),
        p99_s=at(0.99),
        p999_s=at(0.999),
        method=f"HdrHistogram of {rows[-1][2]:,} frames",
    )
    return (_record("HdrHistogram percentiles", "", latency),)


def is_hlog(text: str) -> bool:
    """Whether a text is a log of HdrHistogram: its first line but comments and the legend is an interval."""
    for line in text[:100_000].lstrip("\ufeff").splitlines():
        if line.strip() and not line.startswith("#") and not _HLOG_LEGEND.match(line):
            return line.startswith("Tag=") or _HLOG_ROW.fullmatch(line) is not None or ",HISTFAAA" in line
    return text.lstrip("\ufeff").startswith("#[Histogram log format version")


def read_hlog(text: str, name: str, unit_s: float | None) -> tuple[Record, ...]:
    """Read the latencies of a log of HdrHistogram, one record for each tag, over all intervals.

    ``unit_s``: the unit of the histograms' values, which the log lacks. Raises FileProblem: the unit is not given, or a
    line is no interval.
    """
    from routecast import _core  # the compiled part is loaded where it is used

    rows: dict[str, list[re.Match[str]]] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
        if not line.strip() or line.startswith("#") or _HLOG_LEGEND.match(line):
            continue
        row = _HLOG_ROW.fullmatch(line)
        if row is None:
            problems.append(Problem(f"line {number}", f"got {line[:60]!r}: wants start, length, maximum and histogram"))
        elif classes_of_hdr(row["histogram"]) is None:
            message = (
                f"its histogram {row['histogram'][:16]}… is not of the compressed form V2, or is damaged; "
                "HdrHistogram's HistogramLogProcessor -i FILE writes percentiles, which are read"
            )
            problems.append(Problem(f"line {number}", message))
        else:
            rows.setdefault(row["tag"] or "", []).append(row)
    if not problems and not rows:
        problems.append(Problem("", "is a log of HdrHistogram without an interval"))
    if not problems and unit_s is None:
        problems.append(Problem("column Interval_Compressed_Histogram", _unit_wanted(rows)))
    if problems or unit_s is None:
        raise FileProblem(name, problems[:20])
    records = []
    for tag, of_tag in rows.items():
        latency = delay_of_hdr(_core.hdr_merged([row["histogram"] for row in of_tag]), unit_s=unit_s)
        if latency is None:
            continue
        first_s = min(float(row["start"]) for row in of_tag)
        last_s = max(float(row["start"]) + float(row["length"]) for row in of_tag)
        records.append(
            _record("HdrHistogram log", "", latency, title=tag, duration_s=last_s - first_s, intervals=len(of_tag))
        )
    if not records:
        raise FileProblem(name, [Problem("", "has histograms without a sample")])
    return tuple(records)


def _unit_wanted(rows: Mapping[str, Sequence[re.Match[str]]]) -> str:
    """Return the question for the unit; by the writer's default the maximum is a millionth, of values in ns."""
    message = "does not say the unit of its latencies: give --latency-unit us, for microseconds"
    row = max((row for of_tag in rows.values() for row in of_tag), key=lambda row: _number(row["max"]) or 0.0)
    classes, written = classes_of_hdr(row["histogram"]), _number(row["max"])
    if classes and written and math.isclose(classes[-1][1] / written, _NS_IN_MS, rel_tol=0.01):
        message = (
            "does not say the unit of its latencies: give --latency-unit ns if they are nanoseconds, which "
            "Interval_Max, a millionth of the values, then has in ms"
        )
    return message


def _hgrm_row(line: str) -> tuple[float, float, int] | None:
    match = _HGRM_ROW.fullmatch(line)
    value, ratio = (_number(match[1]), _number(match[2])) if match else (None, None)
    if match is None or value is None or ratio is None or not 0.0 <= ratio <= 1.0 or not 0.0 <= value <= MAX_NUMBER:
        return None
    return value, ratio, int(match[3])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _record(
    source: str, tester: str, latency: Delay, *, title: str = "", duration_s: float = NAN, intervals: int = 1
) -> Record:
    notes = ["a histogram states no load: rates and loss are not known"]
    if intervals > 1:
        notes.append(f"{intervals:,} intervals of the log are added")
    trial = measured(
        intended_pps=NAN, offered_pps=NAN, forwarded_pps=NAN, duration_s=duration_s, latency=latency, notes=tuple(notes)
    )
    return Record(source=source, title=title, goal="latency", tester=tester, trial=trial)
