"""The figures of a network on chip: power against load, latency against load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from routecast.report.figures import Axis, Figure, Line, Mark, Points

__all__ = ["COLOURS", "GREY", "LatencyCurve", "PowerCurve", "latency_figure", "power_figure"]

GREY = "#7a7f87"
COLOURS = {
    "no_dvfs": GREY,
    "xy": "#c8524a",
    "yx": "#d98a83",
    "o1turn": "#2b95a6",
    "2p_es": "#3f6fb5",
    "2p_rs": "#8aa9d6",
    "4p_es": "#4aa36a",
    "romm": "#b39a2f",
    "valiant": "#8a6d3b",
    "adaptive": "#d6812f",
    "balance": "#b0508f",
    "mini": "#2b95a6",
    "four_phase": "#4aa36a",
    "search": "#3f6fb5",
    "optimum": "#7b52ab",
    "bound": "#7b52ab",
}
"""Of routings and allocations, through all figures and reports."""
_CROWDED = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCurve:
    """Power of one routing or allocation over the load; ``published`` ones are drawn as hollow points."""

    key: str
    name: str
    loads: tuple[float, ...]
    powers: tuple[float, ...]
    is_published: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """Latency of one routing over the load.

    Attributes
    ----------
    key, name
        Its colour, and what the legend calls it.
    loads, cycles
        Where it is bounded.
    low, high
        Ends of the intervals; empty where there are none.
    saturated_from
        The lowest load whose latency is unbounded.
    """

    key: str
    name: str
    loads: tuple[float, ...]
    cycles: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    saturated_from: float | None = None
    is_dashed: bool = False


def power_figure(
    curves: Sequence[PowerCurve],
    *,
    title: str,
    caption: str,
    name: str = "power",
    y_title: str = "power (NoDVFS at its highest load = 1)",
    x_title: str = "normalised load",
    scale: Literal["linear", "log"] = "linear",
) -> Figure:
    """Return power against load, one line for each routing or allocation (thesis, figs. 6.4-6.6 and 7.4-7.6).

    Published points stand beside the lines in the colour of what they are of.
    """
    marks: list[Mark] = []
    highest = max((load for curve in curves for load in curve.loads), default=1.0)
    for curve in curves:
        colour = COLOURS.get(curve.key, GREY)
        if curve.is_published or len(curve.loads) < 2:
            points = Points(
                name=curve.name,
                x=curve.loads,
                y=curve.powers,
                colour=colour,
                filled=not curve.is_published,
                symbol="diamond" if curve.is_published else "circle",
            )
            marks.append(points)
        else:
            dashed = curve.key in {"no_dvfs", "optimum", "bound"}
            marks.append(Line(name=curve.name, x=curve.loads, y=curve.powers, colour=colour, dashed=dashed))
    return Figure(
        name=name,
        title=title,
        caption=caption,
        x=Axis(title=x_title, low=0.0, high=1.02 * highest),
        y=Axis(title=y_title, scale=scale, low=None if scale == "log" else 0.0),
        marks=tuple(marks),
    )


def latency_figure(
    curves: Sequence[LatencyCurve],
    *,
    title: str,
    caption: str,
    name: str = "latency",
    x_title: str = "load",
) -> Figure:
    """Return latency against load with its intervals; a dashed upright line stands where it becomes unbounded."""
    values = [value for curve in curves for value in (*curve.cycles, *curve.high) if math.isfinite(value)]
    is_log = bool(values) and max(values) > _CROWDED * min(v for v in values if v > 0.0)
    bottom = (min(values) / 1.3 if is_log else 0.0) if values else 0.0
    top = (max(values) * (1.5 if is_log else 1.1)) if values else 1.0
    ends = [load for curve in curves for load in curve.loads]
    ends += [curve.saturated_from for curve in curves if curve.saturated_from is not None]
    marks: list[Mark] = []
    for curve in curves:
        colour = COLOURS.get(curve.key, GREY)
        if curve.loads:
            marks.append(
                Line(name=curve.name, x=curve.loads, y=curve.cycles, colour=colour, dashed=curve.is_dashed)
            )
            marks.append(
                Points(
                    name=curve.name,
                    x=curve.loads,
                    y=curve.cycles,
                    low=curve.low,
                    high=curve.high,
                    colour=colour,
                    size_px=6,
                    legend=False,
                )
            )
        if curve.saturated_from is not None:
            marks.append(
                Line(
                    name=f"saturated from {curve.saturated_from:.4g}",
                    x=(curve.saturated_from,) * 2,
                    y=(bottom, top),
                    colour=colour,
                    dashed=True,
                )
            )
    return Figure(
        name=name,
        title=title,
        caption=caption,
        x=Axis(title=x_title, low=0.0, high=1.04 * max(ends, default=1.0)),
        y=Axis(title="packet latency (cycles)", scale="log" if is_log else "linear", low=bottom, high=top),
        marks=tuple(marks),
    )
