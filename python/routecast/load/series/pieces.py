"""Amounts between two instants spread over equal steps: counter differences, flow records, samples of uneven steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from routecast.errors import ModelProblem, Problem
from routecast.load.series.grid import MOST_STEPS, Grid

__all__ = ["Piece", "counter_pieces", "held_pieces", "spread"]

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
        raise ModelProblem(
            "series", [Problem("", f"{span}, at most {MOST_STEPS:,} are read: is a time wrong?")]
        )
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
        (
            (two[1] - one[1]) / span
            for (one, two), span in zip(pairs, distances_s, strict=True)
            if two[1] >= one[1]
        ),
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
    usual = timedelta(
        seconds=median((two - one[0]).total_seconds() for one, two in zip(known, ends, strict=False))
    )
    ends.append(known[-1][0] + usual)
    return [
        Piece(begin=time, end=end, bits=rate * (end - time).total_seconds())
        for (time, rate), end in zip(known, ends, strict=True)
    ]
