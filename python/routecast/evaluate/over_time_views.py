"""Throughput over time, with the verdict on it: what replaces the look of an eye (Heller 2006, sec. 5.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.quantity.format import prefixed
from routecast.show.figures import Axis, Figure, Line, Mark, Points
from routecast.show.tables import Column, Table, signed_percent
from routecast.show.ticks import linear_ends

if TYPE_CHECKING:
    from routecast.evaluate.steadiness import Reading, Steadiness
    from routecast.evaluate.trial import Moment

__all__ = ["over_time_figure", "readings_table", "verdict_said"]

_WIDE = 0.05
"""An interval wider than this share of the mean hides drifts that matter."""
_RATE, _OFFERED, _STEADY, _CUT, _LOOK = "#9db9e0", "#4aa36a", "#c8524a", "#7a7f87", "#7b52ab"
"""The rate is pale: what is read off stands before it."""


def verdict_said(verdict: Steadiness) -> str:
    """Say the verdict on a frame rate in one sentence."""
    if not verdict.is_steady:
        return f"Not steady: {verdict.reason}."
    since = "from the start" if verdict.from_s == 0.0 else f"from {format_duration(verdict.from_s)} on"
    half = (verdict.high - verdict.low) / 2.0
    if not verdict.mean:
        return f"Steady {since}: {format_pps(verdict.mean)}; no drift."
    said = f"Steady {since}: {format_pps(verdict.mean)} (95 %: ± {format_ratio(half / verdict.mean)}); no drift"
    return (
        f"{said}, as far as so wide an interval shows: give it more time."
        if half > _WIDE * verdict.mean
        else f"{said}."
    )


def over_time_figure(
    moments: Sequence[Moment],
    duration_s: float,
    verdict: Steadiness | None = None,
    readings: Sequence[Reading] = (),
    *,
    title: str = "Throughput over time",
    name: str = "over-time",
) -> Figure:
    """Return forwarded and offered rates over time, where the transient ends, the steady mean, and readings.

    Without a verdict (what happens to the router is the question) the rates stand alone.
    """
    part_s = duration_s / len(moments)
    forwarded = [one.forwarded_pps for one in moments]
    so_far = [total / (number + 1) for number, total in enumerate(accumulate(forwarded))]
    rate, rate_unit = prefixed([*forwarded, *(one.offered_pps for one in moments)], "pps")
    time, time_unit = prefixed([duration_s], "s")
    times = tuple((one.time_s + part_s / 2.0) / time for one in moments)
    ends = tuple((one.time_s + part_s) / time for one in moments)
    shown = [value / rate for value in (*forwarded, *so_far)]
    marks: list[Mark] = []
    offered = [one.offered_pps / rate for one in moments]
    # A load with random gaps would hide the line that is to be read: its mean says as much.
    level = sum(offered) / len(offered)
    if level <= 1.3 * max(shown):
        shown.append(level)
        marks.append(
            Line(name="offered, mean", x=(times[0], times[-1]), y=(level, level), colour=_OFFERED, dashed=True)
        )
    low, high = linear_ends(min(shown), max(shown))
    marks.append(Line(name="forwarded", x=times, y=tuple(value / rate for value in forwarded), colour=_RATE))
    if verdict is not None:
        marks.append(
            Line(
                name="mean since the start",
                x=ends,
                y=tuple(value / rate for value in so_far),
                colour=_LOOK,
                dashed=True,
            )
        )
        marks += _verdict_marks(verdict, rate, time, low, high)
    marks += [
        Points(
            name=f"read at {format_duration(one.at_s)}",
            x=(one.at_s / time,),
            y=(one.so_far / rate,),
            colour=_LOOK,
            symbol="diamond",
            size_px=10,
            labels=(f"{format_pps(one.so_far)} since the start; {format_pps(one.now)} then",),
        )
        for one in readings
    ]
    caption = f"Rates of {len(moments):,} parts of {format_duration(part_s)} each."
    if verdict is not None:
        caption += f" {verdict_said(verdict)} The mean since the start still carries what came before."
    return Figure(
        name=name,
        title=title,
        caption=caption,
        x=Axis(title=f"time [{time_unit}]", low=0.0, high=duration_s / time),
        y=Axis(title=f"rate [{rate_unit}]", low=low, high=high),
        marks=tuple(marks),
        height_px=360,
    )


def _verdict_marks(verdict: Steadiness, rate: float, time: float, low: float, high: float) -> list[Mark]:
    if not math.isfinite(verdict.from_s):
        return []
    start, end = verdict.from_s / time, verdict.duration_s / time
    marks: list[Mark] = []
    if start > 0.0:
        marks.append(Line(name="end of the transient", x=(start, start), y=(low, high), colour=_CUT, dashed=True))
    mean = verdict.mean / rate
    is_known = math.isfinite(verdict.low)
    return [
        *marks,
        Line(
            name="steady mean" + (", 95 % interval" if is_known else " (drifts)"),
            x=(start, end),
            y=(mean, mean),
            low=(verdict.low / rate,) * 2 if is_known else (),
            high=(verdict.high / rate,) * 2 if is_known else (),
            colour=_STEADY,
        ),
    ]


def readings_table(readings: Sequence[Reading], verdict: Steadiness) -> Table:
    """Return what a look at given instants would have said, beside the steady mean."""
    return Table.of(
        readings,
        Column("Read at", "", format_duration, "at_s"),
        Column("Frames until then", "", ",.0f", "counted"),
        Column("Mean since the start", "", format_pps, "so_far"),
        Column("Rate then", "", format_pps, "now"),
        Column("Steady mean", "", format_pps, lambda _: verdict.mean if verdict.is_steady else None),
        Column(
            "Difference",
            "%",
            signed_percent,
            lambda one: one.so_far / verdict.mean - 1.0 if verdict.is_steady and verdict.mean else None,
        ),
        name="readings",
        title="What a look would have said",
        caption="Difference: mean since the start, against the mean after the transient.",
    )
