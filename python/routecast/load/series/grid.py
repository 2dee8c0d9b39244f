"""Samples onto equal steps, with an account of what is odd: gaps, duplicates, disorder, zeros, jumps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median, median_low

from routecast.errors import ModelProblem, Problem
from routecast.load.series.table import shortened
from routecast.quantity import format_bps

__all__ = [
    "Grid",
    "Piece",
    "counter_pieces",
    "gap_problems",
    "held_pieces",
    "oddities",
    "put_on_grid",
    "sorted_samples",
    "spread",
    "step_between",
]


_JITTER_RATIO = 0.05
"""A poller that is late by less than this part of a step is taken to have meant the step."""

_JUMP = 10.0
"""A sample that many times above or below the median is named: a wrong unit in places looks like this."""

MOST_STEPS = 2_000_000
"""Nineteen years of 5-minute steps: a file that spans more has a wrong time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Values of equal steps, NaN where none is."""

    start: datetime
    step_s: float
    values: tuple[float, ...]
    notes: tuple[str, ...] = ()


def sorted_samples(
    times: Sequence[datetime], values: Sequence[float], places: Sequence[str]
) -> tuple[list[tuple[datetime, float]], list[str], list[Problem]]:
    """Return the samples in order of time, each instant once; notes of what was mended, and what cannot be."""
    notes: list[str] = []
    problems: list[Problem] = []
    back = [place for place, one, two in zip(places[1:], times, times[1:], strict=False) if two < one]
    if back:
        notes.append(f"{_count(len(back), 'sample')} out of order, first at {back[0]}: sorted by time")
    ordered = sorted(zip(times, values, places, strict=True), key=lambda sample: sample[0])
    kept: list[tuple[datetime, float]] = []
    same = 0
    for time, value, place in ordered:
        if kept and time == kept[-1][0]:
            before = kept[-1][1]
            if value == before or (math.isnan(value) and math.isnan(before)):
                same += 1
            else:
                problems.append(
                    Problem(place, f"{time} was there before with {before:g}, here it is {value:g}: remove one")
                )
            continue
        kept.append((time, value))
    if same:
        notes.append(f"{_count(same, 'repeated sample')} with the same time and value: counted once")
    return kept, notes, problems


def step_between(times: Sequence[datetime]) -> float:
    """Return the commonest distance of neighbouring times in seconds; of equally common ones that near the median."""
    distances_s = [(two - one).total_seconds() for one, two in pairwise(times)]
    counts = Counter(distances_s)
    most, middle_s = max(counts.values()), median_low(distances_s)
    return min(
        (distance_s for distance_s, count in counts.items() if count == most),
        key=lambda distance_s: (abs(distance_s - middle_s), distance_s),
    )


def put_on_grid(samples: Sequence[tuple[datetime, float]], step_s: float | None) -> tuple[Grid | None, list[Problem]]:
    """Return sorted samples on equal steps, or why their steps are not equal."""
    if len(samples) < 2 and step_s is None:
        return None, [Problem("", "has one sample: its step cannot be seen; give the step")]
    step_s = step_s if step_s is not None else step_between([time for time, _ in samples])
    start = samples[0][0]
    steps = round((samples[-1][0] - start).total_seconds() / step_s) + 1
    if steps > MOST_STEPS:
        return None, [Problem("", f"spans {steps:,} steps of {step_s:g} s: at most {MOST_STEPS:,} are read")]
    values = [math.nan] * steps
    taken = [False] * steps
    uneven: list[Problem] = []
    late = 0
    for time, value in samples:
        exact = (time - start).total_seconds() / step_s
        index = round(exact)
        if abs(exact - index) > _JITTER_RATIO or taken[index]:
            uneven.append(Problem(str(time), f"is {abs(exact - index) * step_s:.4g} s off the steps of {step_s:g} s"))
            continue
        late += exact != index
        values[index] = value
        taken[index] = True
    if uneven:
        return None, [
            *shortened(uneven),
            Problem("", 'the steps are uneven: give a step and say gaps="hold" to average samples onto it'),
        ]
    notes = (f"{_count(late, 'sample')} within {_JITTER_RATIO:.0%} of a step of its time: moved there",) if late else ()
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
    """Return notes on values that are possible and seldom right: zeros, jumps, rates that no link has."""
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
    for found, words in (
        ([index for index, rate in present if rate > _JUMP * middle], "above ten times"),
        ([index for index, rate in present if 0.0 < rate < middle / _JUMP], "below a tenth of"),
    ):
        if found:
            notes.append(
                f"{_count(len(found), 'step')} {words} the median of {format_bps(middle)}, "
                f"first at {when(found[0])}: kept; is the unit the same throughout?"
            )
    if max(rates) < 1e3 or max(rates) > 1e15:
        notes.append(f"the highest rate is {format_bps(max(rates))}: is the unit right?")
    return notes


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


# Amounts between two instants spread over equal steps: counter differences, flow records, samples of uneven steps.


_LONG = 2.5
"""A distance between samples that many times the median one is a gap."""

_WRAP_RATIO = 2.0
"""A counter that fell has wrapped if that explains it with at most this many times the highest rate otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bits that passed at a constant rate from ``begin`` to ``end``."""

    begin: datetime
    end: datetime
    bits: float


def spread(pieces: Sequence[Piece], step_s: float, *, whole: bool) -> Grid:
    """Return the mean rate of every step; bits are conserved.

    Parameters
    ----------
    pieces : sequence of Piece
    step_s : float
    whole : bool
        A step that the pieces do not cover wholly is missing (counters), instead of carrying what is known of it
        (flow records, where no record means no traffic).

    Raises
    ------
    ModelProblem
        The pieces span too many steps: a time is wrong.
    """
    origin = min(piece.begin for piece in pieces)
    # Steps begin at whole multiples of the step after midnight, so that a day falls into whole steps.
    midnight = datetime(origin.year, origin.month, origin.day)
    start = midnight + timedelta(seconds=math.floor((origin - midnight).total_seconds() / step_s) * step_s)
    last = max(piece.end for piece in pieces)
    steps = max(1, math.ceil((last - start).total_seconds() / step_s - 1e-9))
    if steps > MOST_STEPS:
        span = f"{origin} to {last} is {steps:,} steps of {step_s:g} s"
        raise ModelProblem("series", [Problem("", f"{span}, at most {MOST_STEPS:,} are read: is a time wrong?")])
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
        math.nan if whole and covered < step_s * (1.0 - 1e-9) else amount / step_s
        for amount, covered in zip(bits, covered_s, strict=True)
    ]
    while whole and values and math.isnan(values[0]):  # the first and the last step are seldom whole
        values.pop(0)
        start += timedelta(seconds=step_s)
    while whole and values and math.isnan(values[-1]):
        values.pop()
    return Grid(start=start, step_s=step_s, values=tuple(values))


def counter_pieces(
    samples: Sequence[tuple[datetime, float]], *, counter_bits: int, bits_per_count: float
) -> tuple[list[Piece], list[str]]:
    """Return what passed between readings of a counter (RFC 2863), with wraps added and resets left out.

    A counter that fell has wrapped, or the device started anew. A wrap is taken where it implies at most twice the
    highest rate seen between other readings; else nothing is known of that interval.
    """
    size = 2.0**counter_bits
    known = [(time, value) for time, value in samples if not math.isnan(value)]
    pairs = list(pairwise(known))
    distances_s = [(two[0] - one[0]).total_seconds() for one, two in pairs]
    usual_s = median(distances_s) if distances_s else 0.0
    fastest = max(
        ((two[1] - one[1]) / span for (one, two), span in zip(pairs, distances_s, strict=True) if two[1] >= one[1]),
        default=math.inf,
    )
    pieces: list[Piece] = []
    wraps: list[datetime] = []
    resets: list[datetime] = []
    gaps: list[datetime] = []
    for (one, two), span_s in zip(pairs, distances_s, strict=True):
        if span_s > _LONG * usual_s:
            gaps.append(one[0])
            continue
        counts = two[1] - one[1]
        if counts < 0.0:
            counts += size
            if counts / span_s > _WRAP_RATIO * fastest:
                resets.append(two[0])
                continue
            wraps.append(two[0])
        pieces.append(Piece(begin=one[0], end=two[0], bits=counts * bits_per_count))
    notes = [
        f"the counter {words} {len(found)} {'time' if len(found) == 1 else 'times'}, first at {found[0]}{done}"
        for found, words, done in (
            (wraps, f"of {counter_bits} bits wrapped", ": added"),
            (resets, "began anew", ": that interval is missing"),
            (gaps, "was not read for long", ": that interval is missing"),
        )
        if found
    ]
    return pieces, notes


def held_pieces(samples: Sequence[tuple[datetime, float]]) -> list[Piece]:
    """Return rates that each hold until the next sample; the last holds as long as the usual distance."""
    known = [(time, value) for time, value in samples if not math.isnan(value)]
    ends = [time for time, _ in known[1:]]
    usual = timedelta(seconds=median((two - one[0]).total_seconds() for one, two in zip(known, ends, strict=False)))
    ends.append(known[-1][0] + usual)
    return [
        Piece(begin=time, end=end, bits=rate * (end - time).total_seconds())
        for (time, rate), end in zip(known, ends, strict=True)
    ]
