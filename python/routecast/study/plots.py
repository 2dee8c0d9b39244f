"""The figures of a study: throughput over frame size, and the errors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from routecast.quantity import format_pps
from routecast.report.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.study.result import Comparison, Curve, Estimate, StudyResult
from routecast.study.tabulate import limited_by

__all__ = ["error_figure", "throughput_figure"]

Unit = Literal["pps", "l1_bps"]

_UNITS = {"pps": ("Mpps", 1e-6), "l1_bps": ("Gbit/s", 1e-9)}
GREY = "#7a7f87"
_PARTS = {"pps": "a", "l1_bps": "b"}


def throughput_figure(result: StudyResult, scenario: str, *, unit: Unit) -> Figure:
    """Maximum throughput over frame size, a line with its 95 % band per number of flows, measured points on top."""
    estimates = result.scenarios[scenario]
    flow_counts = sorted({estimate.flows for estimate in estimates})
    sizes = sorted({estimate.frame_bytes for estimate in estimates})
    measured = _measured(result, estimates)
    marks: list[Mark] = []
    for flows, colour in zip(flow_counts, palette(len(flow_counts)), strict=True):
        points = sorted((e for e in estimates if e.flows == flows), key=lambda e: e.frame_bytes)
        name = f"{flows} flow{'s' if flows != 1 else ''}"
        curve = next(c for c in result.curves[scenario] if c.flows == flows)
        marks.append(_line(curve, unit, name, colour, with_band=points[0].flows <= points[0].cores))
        marks.append(_simulated_points(points, unit, name, colour))
        rows = [row for row in measured if row.estimate.flows == flows]
        marks += [_measured_points(rows, unit, colour), _calibrating_ring(rows, unit, colour)]
    marks += _legend(marks)
    title = next(s.title for s in result.study.scenario if s.name == scenario)
    shown, _ = _UNITS[unit]
    return Figure(
        name=f"{scenario}{_PARTS[unit]}",
        title=f"{title}: maximum throughput in {shown}",
        caption=_caption(estimates, unit, has_measured=bool(measured)),
        x=_frame_axis(sizes),
        y=Axis(title=f"maximum throughput [{shown}]"),
        marks=tuple(mark for mark in marks if mark.x),
    )


def error_figure(result: StudyResult) -> Figure:
    """Relative error of each model at every measured point, in the order of the table."""
    rows = result.comparisons
    place = tuple(float(number) for number in range(1, len(rows) + 1))
    models = [("routecast", [row.estimate.predicted_pps for row in rows], True)]
    if result.errors_everywhere()["baseline"].points:
        models.append(("eqs. 5 to 7", [row.estimate.baseline_pps for row in rows], False))
    if result.errors_everywhere()["reported"].points:
        models.append((result.study.measurements.reported, [row.reported_pps for row in rows], False))
    symbols: tuple[Literal["circle", "square", "diamond"], ...] = ("circle", "square", "diamond")
    marks = tuple(
        Points(
            name=name,
            x=place,
            y=tuple(100.0 * row.error_ratio(value) for row, value in zip(rows, values, strict=True)),
            colour=colour,
            filled=filled,
            symbol=symbol,
            labels=tuple(_error_label(name, row, value) for row, value in zip(rows, values, strict=True)),
        )
        for (name, values, filled), colour, symbol in zip(
            models, palette(len(models), ordered=False), symbols, strict=False
        )
    )
    worst = max(result.held_out or rows, key=lambda row: abs(row.error_ratio(row.estimate.predicted_pps)))
    return Figure(
        name="errors",
        title="Error at every measured point",
        caption=(
            f"Points in the order of the table below, calibrating ones included. The largest error of routecast is at "
            f"{_point_name(worst)}."
        ),
        x=_groups_axis(rows),
        y=Axis(title="error [%]", low=_floor(marks), high=_ceiling(marks)),
        marks=marks,
        height_px=340,
    )


def _groups_axis(rows: tuple[Comparison, ...]) -> Axis:
    """Name the groups of rows with the same number of flows; within a group frames grow."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows, start=1):
        places.setdefault(row.estimate.flows, []).append(place)
    return Axis(
        title="measured points by number of flows, frame size growing within each",
        ticks=tuple(sum(group) / len(group) for group in places.values()),
        labels=tuple(f"{flows} flow{'s' if flows != 1 else ''}" for flows in places),
        low=0.0,
        high=len(rows) + 1.0,
    )


def _point_name(row: Comparison) -> str:
    flows = row.estimate.flows
    return f"{flows} flow{'s' if flows != 1 else ''} of {row.estimate.frame_bytes} B"


def _error_label(model: str, row: Comparison, value: float) -> str:
    return f"{model}<br>{_point_name(row)}<br>{100.0 * row.error_ratio(value):+.2f} %"


def _floor(marks: tuple[Points, ...]) -> float:
    return math.floor(min(value for mark in marks for value in mark.y if math.isfinite(value)) - 0.3)


def _ceiling(marks: tuple[Points, ...]) -> float:
    return math.ceil(max(value for mark in marks for value in mark.y if math.isfinite(value)) + 0.3)


def _measured(result: StudyResult, estimates: tuple[Estimate, ...]) -> list[Comparison]:
    """Return the measurements of the scenario's router."""
    routers = {(estimate.cores, estimate.link_bps) for estimate in estimates}
    return [row for row in result.comparisons if (row.estimate.cores, row.estimate.link_bps) in routers]


def _frame_axis(sizes: list[int]) -> Axis:
    return Axis(
        title="frame size [B], FCS included",
        scale="log",
        ticks=tuple(float(size) for size in sizes),
        low=min(sizes) / 1.12,
        high=max(sizes) * 1.12,
    )


def _scaled(estimate: Estimate, rate_pps: float, unit: Unit) -> float:
    factor = _UNITS[unit][1]
    return rate_pps * factor * (estimate.l1_bits if unit == "l1_bps" else 1.0)


def _line(curve: Curve, unit: Unit, name: str, colour: str, *, with_band: bool) -> Line:
    """Draw random flows dashed and without a band: theirs is the one of crafted flows on as many cores."""
    factor = _UNITS[unit][1]
    scales = [factor * (8.0 * (size + 20) if unit == "l1_bps" else 1.0) for size in curve.frame_bytes]

    def scaled(rates_pps: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(rate * scale for rate, scale in zip(rates_pps, scales, strict=True))

    return Line(
        name=name,
        x=tuple(float(size) for size in curve.frame_bytes),
        y=scaled(curve.predicted_pps),
        low=scaled(curve.low_pps) if with_band else (),
        high=scaled(curve.high_pps) if with_band else (),
        colour=colour,
        dashed=not with_band,
    )


def _measured_points(rows: list[Comparison], unit: Unit, colour: str) -> Points:
    return Points(
        name="measured",
        x=tuple(float(row.estimate.frame_bytes) for row in rows),
        y=tuple(_scaled(row.estimate, row.measured_pps, unit) for row in rows),
        colour=colour,
        labels=tuple(
            f"measured{' (calibrates)' if row.calibrates else ''}<br>{_point_name(row)}<br>"
            f"{_scaled(row.estimate, row.measured_pps, unit):.4g} {_UNITS[unit][0]}"
            for row in rows
        ),
        legend=False,
    )


def _calibrating_ring(rows: list[Comparison], unit: Unit, colour: str) -> Points:
    """Encircle the calibrating points, as paper 000 does in Fig. 8(b)."""
    rows = [row for row in rows if row.calibrates]
    return Points(
        name="calibrates",
        x=tuple(float(row.estimate.frame_bytes) for row in rows),
        y=tuple(_scaled(row.estimate, row.measured_pps, unit) for row in rows),
        colour=colour,
        filled=False,
        size_px=16,
        legend=False,
    )


def _legend(marks: list[Mark]) -> list[Mark]:
    """Explain the symbols that occur."""
    symbols = {mark.name: mark for mark in marks if isinstance(mark, Points) and mark.x}
    explained: dict[str, Mark] = {}
    for mark in symbols.values():
        name = "simulated" if mark.symbol == "cross" else mark.name
        nowhere = (math.nan,)
        explained[name] = replace(mark, name=name, x=nowhere, y=nowhere, labels=(), colour=GREY, legend=True)
    return [explained[name] for name in sorted(explained)]


def _simulated_points(points: list[Estimate], unit: Unit, name: str, colour: str) -> Points:
    shown = [p for p in points if math.isfinite(p.simulated_pps) and math.isfinite(p.solved_pps)]
    return Points(
        name=f"{name}, simulated",
        x=tuple(float(p.frame_bytes) for p in shown),
        y=tuple(_scaled(p, p.simulated_pps, unit) for p in shown),
        colour=colour,
        filled=False,
        symbol="cross",
        labels=tuple(
            f"simulated<br>{name} of {p.frame_bytes} B<br>{_scaled(p, p.simulated_pps, unit):.4g} {_UNITS[unit][0]}"
            for p in shown
        ),
        legend=False,
    )


def _caption(estimates: tuple[Estimate, ...], unit: Unit, *, has_measured: bool) -> str:
    marks = "Lines are the closed form with its 95 % band (random flows dashed), crosses the packet-level simulation"
    marks += ", filled points measurements; rings mark those that calibrate." if has_measured else "."
    if unit == "pps":
        smallest = min(e.frame_bytes for e in estimates)
        return f"At {smallest} B, {_gain([e for e in estimates if e.frame_bytes == smallest])}. {marks}"
    if all(e.limit == "cpu" for e in estimates):
        return f"The cores are the bottleneck everywhere. {marks}"
    if any("link" in e.limit for e in estimates):
        return f"Where a line bends, a link is full. {marks}"
    return marks


def _gain(estimates: list[Estimate]) -> str:
    """Say what the most cores forward beside the fewest, and why it is no more: the calibrated c(k), or a link."""
    by_flows = sorted(estimates, key=lambda e: e.flows)
    crafted = [e for e in by_flows if e.flows <= e.cores] or by_flows
    low, high = crafted[0], crafted[-1]
    k = high.busy_cores
    why = f", limited by the {limited_by(high.limit)}"
    if high.limit == "cpu":
        why = (
            f"; with {k} busy, a frame takes a core c({k}) = {high.contention_ratio:.4g} times as long" if k > 1 else ""
        )
    if low.busy_cores == k:
        cores = f"{k} core{'s' if k > 1 else ''}"
        return f"{cores} forward{'' if k > 1 else 's'} {format_pps(high.predicted_pps)}{why}"
    gain = high.predicted_pps / low.predicted_pps
    if low.busy_cores == 1:
        return f"{k} cores forward {gain:.2f} times what 1 does{why}"
    return f"throughput grows {gain:.2f} times from {low.busy_cores} to {k} cores{why}"
