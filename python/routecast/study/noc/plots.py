"""The figures of a study of a network on chip: power against load (figs. 6.4-6.6, 7.4-7.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import cycle
from statistics import stdev

from routecast.report.figures import Axis, Figure, Line, Mark, Points
from routecast.study.noc.document import Stated
from routecast.study.noc.point import BOUND, NO_DVFS, WHOLE, curve_name
from routecast.study.noc.result import CaseResult, NocResult

__all__ = ["best_curve", "flit_figure", "power_figure", "saving_figure"]

GREY = "#7a7f87"
COLOURS = ("#3f6fb5", "#d6812f", "#4aa36a", "#b0508f", "#c8524a", "#2b95a6", "#b39a2f")
"""Of policies, in their order; none is like the grey of what no policy is."""
SPECIAL = {NO_DVFS: GREY, BOUND: "#4b5059", WHOLE: "#9b8ec4"}
DRAWN_ALIKE = 1e-6


def power_figure(one: CaseResult) -> Figure:
    """Return power against load of every curve of a case, with the stated values as crosses."""
    full = max(one.loads)
    best = best_curve(one, full)
    spread = _spread(one, best, full)
    drawn = "random matrices" if one.case.traffic.pattern == "normal" else "draws of the routings that draw"
    matrices = f" Means of {one.case.matrices} {drawn}{spread}." if one.case.matrices > 1 else ""
    crosses = " Crosses are what the source states." if _stated(one) else ""
    return Figure(
        name=f"power_{one.case.name}",
        title=one.case.title,
        caption=(
            "Power relative to no scaling at load 1; between loads the lines are straight. Dashed are the proven "
            f"bounds: nothing is below.{crosses}{matrices}"
        ),
        x=_load_axis(one),
        y=Axis(title="relative power", low=0.0),
        marks=_marks(one, one.mean, lambda stated: stated.relative_power),
    )


def saving_figure(one: CaseResult) -> Figure:
    """Return against load how many times below no scaling every curve of a case is."""
    return Figure(
        name=f"saving_{one.case.name}",
        title="How many times less",
        caption=(
            "The same: power without scaling over power with it, at the same load. At low load every plane runs at its "
            "lowest voltage, whoever puts the flows on it; it is high load that tells them apart."
        ),
        x=_load_axis(one),
        y=Axis(title="times below no scaling", low=0.0),
        marks=_marks(one, one.factor, lambda stated: stated.load / stated.relative_power),
    )


def best_curve(one: CaseResult, load: float) -> str:
    """Return the policy that needs the least power at a load; no scaling and the bounds are none."""
    powers = {curve: one.mean(curve, load) for curve in one.curves if curve not in SPECIAL}
    least = min((power for power in powers.values() if not math.isnan(power)), default=math.nan)
    # Of those that are alike but for rounding, the first.
    return next((curve for curve, power in powers.items() if power <= least * (1 + DRAWN_ALIKE)), next(iter(powers)))


def _marks(
    one: CaseResult, value: Callable[[str, float], float], stated: Callable[[Stated], float]
) -> tuple[Mark, ...]:
    """Return a line for every curve, and a cross of its colour for what is stated of it."""
    coloured = [curve for curve in one.curves if curve not in SPECIAL]
    colours = dict(zip(coloured, cycle(COLOURS), strict=False)) | SPECIAL
    marks: list[Mark] = []
    for curve in one.curves:
        pairs = [(load, value(curve, load)) for load in one.loads]
        finite = [pair for pair in pairs if math.isfinite(pair[1])]
        marks.append(
            Line(
                name=curve_name(curve),
                x=tuple(load for load, _ in finite),
                y=tuple(power for _, power in finite),
                colour=colours[curve],
                dashed=curve in (BOUND, WHOLE),
            )
        )
    for number, statement in enumerate(_stated(one)):
        marks.append(
            Points(
                name="stated",
                x=(statement.load,),
                y=(stated(statement),),
                colour=colours[statement.curve],
                symbol="cross",
                size_px=11,
                labels=(f"{curve_name(statement.curve)}: {statement.where}",),
                legend=number == 0,
            )
        )
    return tuple(marks)


def _stated(one: CaseResult) -> list[Stated]:
    """Return what is stated of curves; a limit is of another curve than the one that it is set for."""
    return [stated for stated in one.case.stated if not stated.at_most]


def _load_axis(one: CaseResult) -> Axis:
    # What is stated at the highest load stands free of the edge.
    return Axis(title="normalised load", low=0.0, high=1.05 * max(one.loads))


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
