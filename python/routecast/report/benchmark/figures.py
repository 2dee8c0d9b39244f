"""The figures that RFC 2544 sec. 26 asks for, with its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from routecast.benchmark.exchange.hdr import classes_of_hdr
from routecast.benchmark.result import (
    FrameLossResult,
    FrameLossRow,
    LatencyResult,
    LatencyRow,
    ThroughputResult,
    ThroughputRow,
)
from routecast.report.benchmark.texts import frames_per_second, percent_of, time
from routecast.report.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.report.ticks import log_ticks

__all__ = ["frame_loss_figures", "latency_figures", "throughput_figure"]

GREY = "#7a7f87"
_PERCENTS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
_TINY_SHARE = 0.08
"""Where the least rate is less than this share of the greatest, a linear axis would show a flat line."""

_WHOLE_RATE = 0.995

_TAIL = (0.5, 0.9, 0.99, 0.999, 0.9999)


def throughput_figure(result: ThroughputResult, *, found: str = "measured") -> Figure | None:
    """Sec. 26.1: x is the frame size, y frames/s; a line for the theoretical rate and one for each result.

    ``found`` says in the legend how results came about.
    """
    rows = [row for row in result.rows if math.isfinite(row.throughput_pps)]
    if not rows:
        return None
    kinds = list(dict.fromkeys((row.stream, row.goal) for row in rows))
    goals = {goal for _, goal in kinds}
    marks: list[Mark] = []
    for line in _theoretical(result.rows):
        points = Points(name=line.name, x=line.x, y=line.y, colour=GREY, filled=False, size_px=5, legend=False)
        marks += [line, points]
    for number, ((stream, goal), colour) in enumerate(zip(kinds, palette(len(kinds), ordered=False), strict=True)):
        mine = sorted(
            (row for row in rows if (row.stream, row.goal) == (stream, goal)), key=lambda row: row.frame_bytes
        )
        name = f"{stream}, {goal}" if len(goals) > 1 else stream
        x, y = tuple(float(row.frame_bytes) for row in mine), tuple(row.throughput_pps for row in mine)
        marks += [
            Line(name=f"{found}, {name}", x=x, y=y, colour=colour),
            Points(
                name=name,
                x=x,
                y=y,
                colour=colour,
                labels=tuple(map(_throughput_label, mine)),
                size_px=max(12 - 4 * number, 4),  # what lies beneath stays to be seen
                legend=False,
            ),
        ]
    greatest = max(row.theoretical_pps for row in result.rows)
    least = min(row.throughput_pps for row in rows)
    is_log = least < _TINY_SHARE * greatest
    return Figure(
        name="throughput",
        title="Throughput over frame size",
        caption="RFC 2544 sec. 26.1. Dashed: the theoretical maximum rate of the medium for each size (sec. 20)."
        + (" The vertical axis is logarithmic." if is_log else ""),
        x=_frame_axis(result.rows),
        y=_rate_axis(least, greatest, is_log=is_log),
        marks=tuple(marks),
    )


def _theoretical(rows: Sequence[ThroughputRow]) -> list[Line]:
    """Return a line for each different maximum: streams of one or both ways."""
    lines: dict[tuple[float, ...], Line] = {}
    for stream in dict.fromkeys(row.stream for row in rows):
        by_size = {row.frame_bytes: row.theoretical_pps for row in rows if row.stream == stream}
        sizes = sorted(by_size)
        rates = tuple(by_size[size] for size in sizes)
        label = f"theoretical maximum, {stream}" if lines else "theoretical maximum"
        lines.setdefault(rates, Line(name=label, x=tuple(map(float, sizes)), y=rates, colour=GREY, dashed=True))
    whole = list(lines.values())
    return whole if len(whole) == 1 or any(len(line.x) > 1 for line in whole) else whole[:1]


def _throughput_label(row: ThroughputRow) -> str:
    upper = f"<br>upper bound {frames_per_second(row.upper_pps)}" if math.isfinite(row.upper_pps) else ""
    return (
        f"{row.stream}, {row.goal}, {row.frame_bytes} B<br>{frames_per_second(row.throughput_pps)} frames/s, "
        f"{percent_of(row.of_theoretical_ratio)} of {frames_per_second(row.theoretical_pps)}{upper}"
    )


def _frame_axis(rows: Sequence[ThroughputRow]) -> Axis:
    sizes = sorted({row.frame_bytes for row in rows})
    ticks = tuple(float(size) for size in sizes)
    low, high = (sizes[0] / 1.25, sizes[-1] * 1.25)
    labels = [str(size) for size in sizes]
    for number, (size, after) in enumerate(pairwise(sizes)):
        if after / size < 1.22:  # 1280 and 1518 stand too close for two labels on a narrow screen
            labels[number] = ""
    return Axis(title="frame size [B]", scale="log", ticks=ticks, labels=tuple(labels), low=low, high=high)


def _rate_axis(least: float, greatest: float, *, is_log: bool) -> Axis:
    title = "frames/s"
    if is_log:
        ticks = log_ticks(least, greatest)
        labels = tuple(map(_short, ticks))
        return Axis(title=title, scale="log", ticks=ticks, labels=labels, low=ticks[0], high=ticks[-1])
    step = 10.0 ** math.floor(math.log10(greatest / 4.0))
    step *= max(factor for factor in (1.0, 2.0, 5.0) if factor * step <= greatest / 4.0)
    ticks = tuple(step * n for n in range(int(greatest / step) + 2))
    return Axis(title=title, ticks=ticks, labels=tuple(map(_short, ticks)), low=0.0, high=ticks[-1])


def _short(rate_pps: float) -> str:
    for unit, factor in ((" M", 1e6), (" k", 1e3)):
        if rate_pps >= factor:
            return f"{rate_pps / factor:g}{unit}"
    return f"{rate_pps:g}"


def frame_loss_figures(result: FrameLossResult) -> list[Figure]:
    """Sec. 26.3: X is the input rate in % of the theoretical one, Y the loss in %, both 0 to 100 %; one a stream."""
    figures = []
    streams = list(dict.fromkeys(row.stream for row in result.rows))
    for number, stream in enumerate(streams, start=1):
        rows = [row for row in result.rows if row.stream == stream and math.isfinite(row.loss_ratio)]
        sizes = sorted({row.frame_bytes for row in rows})
        marks: list[Mark] = []
        for size, colour in zip(sizes, palette(len(sizes)), strict=True):
            mine = sorted((row for row in rows if row.frame_bytes == size), key=lambda row: row.rate_ratio)
            x = tuple(100.0 * row.rate_ratio for row in mine)
            y = tuple(100.0 * row.loss_ratio for row in mine)
            labels = tuple(
                f"{size} B at {100.0 * row.rate_ratio:.0f} % of {frames_per_second(row.theoretical_pps)} frames/s"
                f"<br>{100.0 * row.loss_ratio:.4g} % lost"
                for row in mine
            )
            marks += [
                Line(name=f"{size} B", x=x, y=y, colour=colour),
                Points(name=f"{size} B", x=x, y=y, colour=colour, labels=labels, legend=False, size_px=6),
            ]
        if not marks:
            continue
        figures.append(
            Figure(
                name=f"frame-loss-{number}" if len(streams) > 1 else "frame-loss",
                title=f"Frame loss rate, {stream}",
                caption="RFC 2544 sec. 26.3: loss over the input rate, both from 0 to 100 %." + _beyond(rows),
                x=Axis(
                    title="input rate [% of the theoretical rate for the size]", ticks=_PERCENTS, low=0.0, high=100.0
                ),
                y=Axis(title="frame loss [%]", ticks=_PERCENTS, low=0.0, high=100.0),
                marks=tuple(marks),
            )
        )
    return figures


def _beyond(rows: Sequence[FrameLossRow]) -> str:
    most = max(row.rate_ratio for row in rows)
    if most >= _WHOLE_RATE:
        return ""
    return f" The tester reaches {percent_of(most)} of the theoretical rate: there are no points beyond."


def latency_figures(result: LatencyResult) -> list[Figure]:
    """Latency by percentile, from the histograms: which share of the frames is how late; a figure for each stream."""
    streams = list(dict.fromkeys(row.stream for row in result.rows if row.hdr_base64))
    figures = []
    for number, stream in enumerate(streams, start=1):
        rows = [row for row in result.rows if row.stream == stream and row.hdr_base64]
        figure = _latency_figure(
            rows, name=f"latency-{number}" if len(streams) > 1 else "latency", title=f"Latency by percentile, {stream}"
        )
        figures += [figure] if figure else []
    return figures


def _latency_figure(rows: Sequence[LatencyRow], *, name: str, title: str) -> Figure | None:
    sizes = sorted({row.frame_bytes for row in rows})
    colours = dict(zip(sizes, palette(len(sizes)), strict=True))
    shares = sorted({row.rate_ratio for row in rows}, reverse=True)
    marks: list[Mark] = []
    for row in sorted(rows, key=lambda row: (-row.rate_ratio, row.frame_bytes)):
        points = _percentiles(row)
        if not points:
            continue
        is_first = row.rate_ratio == shares[0]
        marks.append(
            Line(
                name=f"{row.frame_bytes} B" + ("" if is_first else f" at {percent_of(row.rate_ratio)}"),
                x=tuple(place for place, _ in points),
                y=tuple(1e6 * value_s for _, value_s in points),
                colour=colours[row.frame_bytes],
                dashed=not is_first,
                legend=is_first,
            )
        )
    if not marks:
        return None
    values = [value for mark in marks for value in mark.y]
    marked = log_ticks(max(min(values), 1e-3), max(*values, 1e-3))
    ticks = tuple(-math.log10(1.0 - ratio) for ratio in (0.0, *_TAIL))
    others = " and ".join(percent_of(share) for share in shares[1:])
    return Figure(
        name=name,
        title=title,
        caption="How late which share of the frames was, in the repetition in the middle"
        + (f", at {percent_of(shares[0])} of the throughput; dashed: at {others} of it." if others else ".")
        + " The horizontal axis stretches towards the last frames.",
        x=Axis(
            title="share of the frames that are faster [%]",
            ticks=ticks,
            labels=("0", *(f"{100.0 * ratio:g}" for ratio in _TAIL)),
            low=0.0,
            high=ticks[-1] + 0.02,
        ),
        y=Axis(
            title="latency",
            scale="log",
            ticks=marked,
            labels=tuple(time(tick * 1e-6) for tick in marked),
            low=marked[0],
            high=marked[-1],
        ),
        marks=tuple(marks),
    )


def _percentiles(row: LatencyRow) -> list[tuple[float, float]]:
    """Points of (−log10 of the share that is slower, latency in s)."""
    classes = classes_of_hdr(row.hdr_base64)
    if not classes:
        return []
    total = sum(count for _, _, count in classes)
    scale_s = _unit_s(row, classes)
    points: list[tuple[float, float]] = [(0.0, classes[0][0] * scale_s)]
    passed = 0
    for _, most, count in classes:
        passed += count
        slower = 1.0 - passed / total
        place = -math.log10(slower) if slower > 0.0 else math.inf
        if place > 4.0:
            points.append((4.0, most * scale_s))
            break
        if place - points[-1][0] >= 0.01:
            points.append((place, most * scale_s))
    return [(place, value_s) for place, value_s in points if value_s > 0.0]


def _unit_s(row: LatencyRow, classes: Sequence[tuple[int, int, int]]) -> float:
    """Return the histogram's unit: the power of ten seconds that makes its median the row's, which it belongs to."""
    half, passed, middle = sum(count for _, _, count in classes) / 2.0, 0, 0
    for _, most, count in classes:
        passed, middle = passed + count, most
        if passed >= half:
            break
    if not row.typical_s > 0.0 or middle <= 0:
        return 1e-9
    return float(10.0 ** round(math.log10(row.typical_s / middle)))
