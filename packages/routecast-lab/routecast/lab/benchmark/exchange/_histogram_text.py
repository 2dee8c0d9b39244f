"""Histograms of latency as text: MoonGen's ``histogram:save`` and HdrHistogram's percentiles (``.hgrm``).

MoonGen (libmoon ``lua/histogram.lua``) writes a line ``latency in ns,count`` for each latency, without a head.
HdrHistogram (``outputPercentileDistribution``) writes ``Value Percentile TotalCount 1/(1-Percentile)``, as text or CSV,
without the unit of its values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from routecast.errors import FileProblem, Problem
from routecast.evaluate.trial import Delay
from routecast.lab.benchmark.exchange._document import MAX_NUMBER
from routecast.lab.benchmark.exchange._record import NAN, Record, measured

_PAIR = re.compile(r"(-?\d{1,18}(?:\.\d{1,20})?),(\d{1,18})\s*")
_HGRM_HEAD = re.compile(r'^\s*"?Value"?[\s,]+"?Percentile"?[\s,]+"?TotalCount"?', re.IGNORECASE)
_HGRM_ROW = re.compile(
    r"\s*(-?[\d.]{1,40})[\s,]+([\d.]{1,40})[\s,]+(\d{1,18})(?:[\s,]+(?:[\d.]{1,40}|inf(?:inity)?))?\s*", re.IGNORECASE
)
_HGRM_MEAN = re.compile(r"#\[Mean\s*=\s*([\d.]{1,40})")
_HGRM_MAX = re.compile(r"#\[Max\s*=\s*([\d.]{1,40}),\s*Total count\s*=\s*(\d{1,18})")


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


def _record(source: str, tester: str, latency: Delay) -> Record:
    note = "a histogram states no load: rates and loss are not known"
    trial = measured(intended_pps=NAN, offered_pps=NAN, forwarded_pps=NAN, latency=latency, notes=(note,))
    return Record(source=source, goal="latency", tester=tester, trial=trial)
