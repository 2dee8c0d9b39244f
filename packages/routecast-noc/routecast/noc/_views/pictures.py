"""Answers for a network on chip as figures and maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from routecast.noc._views.link_map import LinkMap, MapPanel
from routecast.noc._views.tables import grid_name, power_headline, simulation_headline
from routecast.noc.answer.optimum import OptimumAnswer, OptimumRow
from routecast.noc.answer.power import PowerAnswer
from routecast.noc.answer.simulate import SimulationAnswer
from routecast.noc.file import NocCase
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Points

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
}
"""Colours of routings and allocations in all figures and reports."""
_LOG_SCALE_RATIO = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """Latency of one routing over the load.

    ``key``: selects its colour; ``name``: its text in the legend; ``loads`` and ``cycles``: the points of bounded
    latency; ``low`` and ``high``: ends of the intervals; empty where there are none; ``saturated_from``: the lowest
    load whose latency is unbounded.
    """

    key: str
    name: str
    loads: tuple[float, ...]
    cycles: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    saturated_from: float | None = None
    is_dashed: bool = False


def latency_figure(curves: Sequence[LatencyCurve], *, title: str, caption: str, x_title: str = "load") -> Figure:
    """Return latency against load with its intervals; a dashed vertical line marks the first saturated load."""
    values = [value for curve in curves for value in (*curve.cycles, *curve.high) if math.isfinite(value)]
    is_log = bool(values) and max(values) > _LOG_SCALE_RATIO * min(v for v in values if v > 0.0)
    bottom = (min(values) / 1.3 if is_log else 0.0) if values else 0.0
    top = (max(values) * (1.5 if is_log else 1.1)) if values else 1.0
    ends = [load for curve in curves for load in curve.loads]
    ends += [curve.saturated_from for curve in curves if curve.saturated_from is not None]
    marks: list[Mark] = []
    for curve in curves:
        colour = COLOURS.get(curve.key, GREY)
        if curve.loads:
            marks.append(Line(name=curve.name, x=curve.loads, y=curve.cycles, colour=colour, dashed=curve.is_dashed))
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
        name="latency",
        title=title,
        caption=caption,
        x=Axis(title=x_title, low=0.0, high=1.04 * max(ends, default=1.0)),
        y=Axis(title="packet latency (cycles)", scale="log" if is_log else "linear", low=bottom, high=top),
        marks=tuple(marks),
    )


KEEP_RIGHT = "The two links between a pair of routers are drawn side by side; traffic keeps right."


def power_by_load(answer: PowerAnswer, optimum: OptimumAnswer | None = None) -> Figure:
    """Return power against load of routings, allocations and the optimum (Li 2012, figs. 6.4-6.6 and 7.4-7.6)."""
    curves = {
        key: (answer.of(key)[0].name, [(row.load, row.power) for row in answer.of(key) if row.power is not None])
        for key in answer.keys
    }
    if optimum is not None:
        curves["optimum"] = ("optimum", [(row.load, row.optimum.power) for row in optimum.rows])
    marks: list[Line | Points] = []
    for key, (name, points) in curves.items():
        loads = tuple(load for load, _ in points)
        powers = tuple(power / answer.at_full_load for _, power in points)
        colour = COLOURS.get(key, GREY)
        if len(points) == 1:
            marks.append(Points(name=name, x=loads, y=powers, colour=colour))
        elif points:
            marks.append(Line(name=name, x=loads, y=powers, colour=colour, dashed=key in {"no_dvfs", "optimum"}))
    return Figure(
        name="power",
        title=f"Power against load: {answer.case.name}",
        caption=power_headline(answer)[-1],
        x=Axis(
            title="normalised load", low=0.0, high=1.02 * max((load for mark in marks for load in mark.x), default=1.0)
        ),
        y=Axis(title="power (NoDVFS at its highest load = 1)", low=0.0),
        marks=tuple(marks),
    )


def power_map(answer: PowerAnswer, load: float, *, keys: tuple[str, ...] = ()) -> LinkMap:
    """Return the link loads of the routings at a load, or of the planes of the allocations with several planes."""
    rows = [row for row in answer.at(load) if row.key in keys] if keys else []
    if not rows:
        rows = [row for row in answer.at(load) if row.key != "no_dvfs"]
        allocations = [row for row in rows if row.is_allocation]
        rows = allocations or rows
    panels = tuple(
        MapPanel(
            title=row.name + (f", plane {number + 1}" if row.is_allocation else ""),
            loads=tuple(float(load) for load in loads),
            note=f"largest {max(loads, default=0.0):.3f}"
            + (f", alpha {row.alphas[number]:.3f}" if row.alphas else ", over capacity"),
        )
        for row in rows
        for number, loads in enumerate(row.link_loads)
    )
    planes = len(rows[0].planes) if rows and rows[0].is_allocation else None
    return _link_map(answer.case, panels, load, panels_per_row=planes)


def optimum_map(answer: OptimumAnswer, row: OptimumRow) -> LinkMap:
    """Return the link loads of the optimum at a load, beside those of XY on one plane."""
    xy = next((power for power in answer.power.at(row.load) if power.key == "xy"), None)
    panels = [
        MapPanel(
            title="optimum" + (f", plane {number + 1}" if answer.case.has_planes else ""),
            loads=tuple(float(relative_load) for relative_load in row.relative_loads(number)),
            note=f"alpha {plane.alpha:.3f}, power {plane.power:.4g}",
        )
        for number, plane in enumerate(row.optimum.planes)
    ]
    if xy is not None and not answer.case.has_planes:
        panels.append(
            MapPanel(
                title="XY",
                loads=tuple(float(link_load) for link_load in xy.link_loads[0]),
                note=f"alpha {xy.alphas[0]:.3f}, power {xy.power:.4g}" if xy.alphas else "over capacity",
            )
        )
    return _link_map(answer.case, tuple(panels), row.load, name="optimum_map")


def latency_by_load(answer: SimulationAnswer) -> Figure:
    """Return latency against load of every simulated routing; for a single routing also its 99th percentile."""
    curves = []
    for key in answer.keys:
        bounded = [
            (row, row.simulated.packet_latency_cycles)
            for row in answer.of(key)
            if not row.simulated.is_saturated and row.simulated.packet_latency_cycles is not None
        ]
        name = answer.of(key)[0].name
        curves.append(
            LatencyCurve(
                key=key,
                name=f"{name}, mean",
                loads=tuple(row.load for row, _ in bounded),
                cycles=tuple(mean.value for _, mean in bounded),
                low=tuple(mean.low for _, mean in bounded),
                high=tuple(mean.high for _, mean in bounded),
                saturated_from=answer.saturated_from(key),
            )
        )
        tails = [
            (row.load, percentiles.p99_cycles.value)
            for row, _ in bounded
            if (percentiles := row.simulated.packet_percentiles) is not None
        ]
        if len(answer.keys) == 1 and tails:
            curves.append(
                LatencyCurve(
                    key="p99",
                    name=f"{name}, 99th percentile",
                    loads=tuple(load for load, _ in tails),
                    cycles=tuple(cycles for _, cycles in tails),
                    is_dashed=True,
                )
            )
    unit = "flits per node and cycle" if answer.case.normalised_by == "none" else "normalised"
    return latency_figure(
        curves,
        title=f"Latency against load: {answer.case.name}",
        caption=" ".join(simulation_headline(answer)[1:]),
        x_title=f"load ({unit})",
    )


def simulation_map(answer: SimulationAnswer) -> LinkMap:
    """Return the share of its own cycles in which every link was busy at the highest simulated load."""
    load = max(row.load for row in answer.rows)
    panels = tuple(
        MapPanel(
            title=row.name + (f", plane {number + 1}" if len(row.simulated.planes) > 1 else ""),
            loads=tuple(float(busy_ratio) for busy_ratio in plane.busy_ratios),
            note=f"alpha {plane.alpha:.3f}" + (", saturated" if plane.is_saturated else ""),
        )
        for row in answer.rows
        if row.load == load
        for number, plane in enumerate(row.simulated.planes)
    )
    return _link_map(answer.case, panels, load, name="simulation_map")


def _link_map(
    case: NocCase, panels: tuple[MapPanel, ...], load: float, *, name: str = "links", panels_per_row: int | None = None
) -> LinkMap:
    return LinkMap(
        name=name,
        title=f"Load of the links at load {load:g}: {case.name}",
        caption=f"{grid_name(case)[:1].upper()}{grid_name(case)[1:]}. {KEEP_RIGHT}",
        topology=case.topology,
        panels=panels,
        panels_per_row=panels_per_row,
    )
