"""Equal steps: sorting of samples, gaps and oddities, readings of counters, and amounts over intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median, median_low

from routecast.errors import ModelProblem, Problem
from routecast.load.series import shortened
from routecast.quantity import format_bps

_JITTER_RATIO = 0.05
"""Samples that are off their step by at most this share of a step are moved onto it."""

_JUMP_RATIO = 10.0
"""Samples this many times above or below the median are reported, because a wrong unit could explain them."""

MAX_STEPS = 2_000_000
"""Nineteen years of 5-minute steps; a longer span means that a time is wrong."""

_MAX_PARTS = 20_000_000
"""Most parts into which intervals are cut by steps; a million flow records of 20 minutes have these."""


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
            Problem("", "the steps are uneven: --gaps hold averages the samples over equal steps"),
        ]
    notes = (
        (f"{_count(moved, 'sample')} within {_JITTER_RATIO:.0%} of a step of its time: moved there",) if moved else ()
    )
    return Grid(start=start, step_s=step_s, values=tuple(values), notes=notes), []


def summed(grids: Sequence[Grid]) -> Grid:
    """Return the sum of grids with one step; a step is missing where it is missing in any of them."""
    start = min(grid.start for grid in grids)
    step_s = grids[0].step_s
    offsets = [round((grid.start - start).total_seconds() / step_s) for grid in grids]
    length = max(offset + len(grid.values) for offset, grid in zip(offsets, grids, strict=True))
    if length > MAX_STEPS:
        raise ModelProblem("series", [Problem("", f"spans {length:,} steps of {step_s:g} s: is a time wrong?")])
    values = [0.0] * length
    present = [0] * length
    for offset, grid in zip(offsets, grids, strict=True):
        for index, amount in enumerate(grid.values, offset):
            values[index] += amount
            present[index] += 1
    whole = tuple(amount if count == len(grids) else math.nan for amount, count in zip(values, present, strict=True))
    notes = dict.fromkeys(note for grid in grids for note in grid.notes)
    return Grid(start=start, step_s=step_s, values=whole, notes=tuple(notes))


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
    work = sum((piece.end - piece.begin).total_seconds() / step_s for piece in pieces)
    if work > _MAX_PARTS:
        message = f"its {len(pieces):,} intervals last {work:,.0f} steps of {step_s:g} s together: is a time wrong?"
        raise ModelProblem("series", [Problem("", message)])
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
    limit = size / median_s if median_s else math.inf
    narrow = []
    if counter_bits == 32 and math.isfinite(max_rate) and max_rate > limit / 2.0:
        most = format_bps(limit * bits_per_count)
        narrow.append(f"32 bits read every {median_s:g} s count at most {most}: above it the rates are too low")
    notes = narrow + [
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
