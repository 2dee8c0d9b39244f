"""The figures of a study of a network on chip: power against load (figs. 6.4-6.6, 7.4-7.6)."""

from __future__ import annotations

from statistics import stdev

from routecast.report.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.study.noc.point import BOUND, NO_DVFS, WHOLE, curve_name
from routecast.study.noc.result import CaseResult, NocResult

__all__ = ["flit_figure", "power_figure"]

GREY = "#7a7f87"
LILAC = "#9b8ec4"
DRAWN_ALIKE = 1e-6


def power_figure(result: NocResult, one: CaseResult) -> Figure:
    """Return power against load of every curve of a case, with the stated values as crosses."""
    loads = one.loads
    full = max(loads)
    coloured = [curve for curve in one.curves if curve not in (NO_DVFS, BOUND, WHOLE)]
    colours = dict(zip(coloured, palette(len(coloured), ordered=False), strict=True))
    marks: list[Mark] = []
    for curve in one.curves:
        means = tuple(one.mean(curve, load) for load in loads)
        marks.append(
            Line(
                name=curve_name(curve),
                x=loads,
                y=means,
                colour=colours.get(curve, LILAC if curve == WHOLE else GREY),
                dashed=curve in (BOUND, WHOLE),
            )
        )
    stated = [stated for stated in one.case.stated if stated.load in loads]
    for number, statement in enumerate(stated):
        marks.append(
            Points(
                name="stated",
                x=(statement.load,),
                y=(statement.relative_power,),
                colour=colours.get(statement.curve, GREY),
                symbol="cross",
                labels=(f"{curve_name(statement.curve)}: {statement.where}",),
                legend=number == 0,
            )
        )
    best = min(coloured, key=lambda curve: one.mean(curve, full)) if coloured else BOUND
    spread = _spread(one, best, full)
    matrices = f" Means of {one.case.matrices} random matrices{spread}." if one.case.matrices > 1 else ""
    below = f", the bound {one.factor(BOUND, full):.2f}" if BOUND in one.curves else ""
    return Figure(
        name=f"power_{one.case.name}",
        title=one.case.title,
        caption=(
            f"Power relative to no scaling at load 1. At load {full:g}, {curve_name(best)} is "
            f"{one.factor(best, full):.2f} times below no scaling{below}.{matrices}"
        ),
        x=Axis(title="normalised load", low=0.0, high=1.0),
        y=Axis(title="relative power", low=0.0, high=1.0),
        marks=tuple(marks),
    )


def _spread(one: CaseResult, curve: str, load: float) -> str:
    values = [point.relative_power for point in one.at(curve, load)]
    if len(values) < 2 or stdev(values) < DRAWN_ALIKE:
        return ""
    return f", {curve_name(curve)} with a standard deviation of {stdev(values):.3f}"


def flit_figure(result: NocResult) -> Figure:
    """Return the ratio of power without to power with scaling at the flit level, over alpha squared (table 6.1)."""
    rows = result.dvfs_rows
    loads = tuple(row.load for row in rows)
    steps = tuple(0.02 * number for number in range(5, 51))
    alpha_max = max(row.alpha for row in rows)
    return Figure(
        name="flits",
        title="Flit by flit: what scaling saves",
        caption="Power without scaling over power with it; the line is alpha squared, the flow level's answer.",
        x=Axis(title="normalised load", low=0.0, high=1.05),
        y=Axis(title="NoDVFS / DVFS", low=0.0),
        marks=(
            Line(
                name="alpha squared",
                x=steps,
                y=tuple(min(1.0 / load, alpha_max) ** 2 for load in steps),
                colour=GREY,
            ),
            Points(
                name="simulated",
                x=loads,
                y=tuple(row.ratio.value for row in rows),
                low=tuple(row.ratio.value - row.ratio.half_width for row in rows),
                high=tuple(row.ratio.value + row.ratio.half_width for row in rows),
                filled=False,
            ),
            Points(
                name="thesis, table 6.1",
                x=loads,
                y=tuple(row.thesis.ratio for row in rows),
                colour="#d6812f",
                symbol="cross",
            ),
        ),
    )
