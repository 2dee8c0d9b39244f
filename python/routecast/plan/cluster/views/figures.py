"""The figures of a plan of a cluster: power over the day, machines over the day."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.plan.cluster.answer import ClusterAnswer
from routecast.plan.cluster.saving.switching import schedule_power_w
from routecast.show.figures import Axis, Figure, Line, Mark, Stack, palette

__all__ = ["CHOSEN", "COLOURS", "GREY", "machines_figure", "power_figure", "stairs"]

GREY = "#7a7f87"
CHOSEN = "#3f6fb5"
COLOURS = {"Design-I": "#b0508f", "Design-II": "#4aa36a", "Design-III": "#d6812f", "Design-IV": "#b39a2f"}
"""Of the designs of Li 2012, sec. 8.3.2, through a whole report; the goal program's is ``CHOSEN``."""

HOURS = tuple(float(hour) for hour in range(0, 25, 3))


def stairs(values: Sequence[float], step_s: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the corners of a line that keeps each value for a step, over hours.

    Examples
    --------
    >>> stairs((1.0, 2.0), 3600.0)
    ((0.0, 1.0, 1.0, 2.0), (1.0, 1.0, 2.0, 2.0))
    """
    hours, height = [], []
    for number, value in enumerate(values):
        hours += [number * step_s / 3600.0, (number + 1) * step_s / 3600.0]
        height += [float(value), float(value)]
    return tuple(hours), tuple(height)


def power_figure(answer: ClusterAnswer, *, name: str = "power") -> Figure:
    """Return the power of the chosen design over the day beside always on, the others and the bound (fig. 8.3)."""
    problem = answer.case.problem
    lines: list[Mark] = []
    others = [one for one in answer.others if one.name in COLOURS]
    for design in others:
        x, y = stairs(schedule_power_w(problem, design.schedule.on).tolist(), problem.step_s)
        lines.append(Line(name=design.name, x=x, y=y, colour=COLOURS[design.name]))
    x, y = stairs(schedule_power_w(problem, answer.design.schedule.on).tolist(), problem.step_s)
    lines.append(Line(name=answer.design.name, x=x, y=y, colour=CHOSEN))
    x, y = stairs(schedule_power_w(problem, answer.bound.on).tolist(), problem.step_s)
    lines.append(Line(name="bound", x=x, y=y, colour=GREY, dashed=True))
    days = answer.case.days
    above = answer.above_bound_ratio(answer.design)
    return Figure(
        name=name,
        title="Power over the day",
        caption=(
            f"{answer.design.name} needs {answer.kwh_per_day(answer.design.energy_j):.2f} kWh a day, "
            f"{100.0 * above:.1f} % more than the bound that no fleet can beat; its machines left on would need "
            f"{answer.kwh_per_day(answer.always_on_j):.2f} kWh."
        ),
        x=Axis(title="hour of the day", ticks=HOURS if days <= 1.0 else (), low=0.0, high=24.0 * max(days, 1.0)),
        y=Axis(title="power (W)", low=50.0 * (0.95 * min(y) // 50.0)),
        marks=tuple(lines),
    )


def machines_figure(answer: ClusterAnswer, *, name: str = "machines") -> Figure:
    """Return the capacity that is on over the day, by group, and the load that it carries."""
    problem, design = answer.case.problem, answer.design
    used = [k for k, number in enumerate(design.fleet) if number]
    marks: list[Mark] = []
    for k, colour in zip(used, palette(len(used)), strict=True):
        group = problem.groups[k]
        x, y = stairs([row[k] * group.capacity_bps / 1e9 for row in design.schedule.on], problem.step_s)
        marks.append(Stack(name=f"{design.fleet[k]} × {group.name}", x=x, y=y, colour=colour))
    x, y = stairs([load / 1e9 for load in problem.traffic_bps], problem.step_s)
    marks.append(Line(name="load", x=x, y=y, colour="#c8524a"))
    days = answer.case.days
    spare = f", and with {problem.spare} of them failed" if problem.spare else ""
    return Figure(
        name=name,
        title=f"Capacity that is on: {design.name}",
        caption=f"Areas are what the machines that are on route together; they cover the load in every step{spare}.",
        x=Axis(title="hour of the day", ticks=HOURS if days <= 1.0 else (), low=0.0, high=24.0 * max(days, 1.0)),
        y=Axis(title="Gbit/s", low=0.0),
        marks=tuple(marks),
    )
