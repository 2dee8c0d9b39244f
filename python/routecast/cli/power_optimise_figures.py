"""Figures of ``routecast power optimise``: watts against latency, and power over a day."""

from __future__ import annotations

import math
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.plan.operating.day import Course, DayPlan
from routecast.plan.operating.judged import latency_quantity
from routecast.plan.operating.optimise import Machine
from routecast.plan.operating.search import Found
from routecast.report.drawing import draw
from routecast.report.figures import Axis, Figure, Line, Mark, Points, palette

__all__ = ["draw_day", "draw_front", "front_figure"]


def draw_front(found: Found, machine: Machine, path: Path) -> None:
    """Write the Pareto front as SVG."""
    _write(front_figure(found, machine), path)


def front_figure(found: Found, machine: Machine) -> Figure:
    """Return the figure of everything that was evaluated, its front, the target and the best."""
    quantity = latency_quantity(found.targets)
    blue, orange, green, *_ = palette(4, ordered=False)
    shown = [
        one for one in found.judged if math.isfinite(one.power_w) and math.isfinite(one.latency_s(quantity))
    ]
    front = found.front
    marks: list[Mark] = [
        Points(
            name="evaluated",
            x=tuple(1e6 * one.latency_s(quantity) for one in shown),
            y=tuple(one.power_w for one in shown),
            colour="#9aa0a8",
            filled=False,
            size_px=6,
            labels=tuple(str(one.setting) for one in shown),
        ),
        Line(
            name="front without loss",
            x=tuple(1e6 * one.latency_s(quantity) for one in front),
            y=tuple(one.power_w for one in front),
            colour=blue,
        ),
    ]
    limit = next((target.limit for target in found.targets if target.quantity == quantity), None)
    if limit is not None and shown:
        most = max(one.power_w for one in shown)
        marks.append(Line(name="target", x=(1e6 * limit,) * 2, y=(0.0, most), colour=orange, dashed=True))
    if found.best is not None and math.isfinite(found.best.latency_s(quantity)):
        best = found.best
        marks.append(
            Points(
                name=f"best: {best.setting}",
                x=(1e6 * best.latency_s(quantity),),
                y=(best.power_w,),
                colour=green,
                symbol="diamond",
                size_px=10,
            )
        )
    return Figure(
        name="front",
        title=f"{machine.model.name}: watts against latency",
        caption="",
        x=Axis(title=f"{quantity} latency (us)", scale="log"),
        y=Axis(title="power (W)", low=0.0),
        marks=tuple(marks),
    )


def draw_day(plan: DayPlan, machine: Machine, path: Path) -> None:
    """Write the power over the day as SVG, settings as steps."""
    courses = (plan.always, plan.per_step, plan.plan)
    colours = palette(3, ordered=False)
    marks = tuple(
        _staircase(course, plan.step_s, colour, dashed=course is plan.per_step)
        for course, colour in zip(courses, colours, strict=True)
    )
    hours = plan.step_s * len(plan.rates_pps) / 3600.0
    figure = Figure(
        name="day",
        title=f"{machine.model.name}: power over the day",
        caption="",
        x=Axis(title="hour of the day", low=0.0, high=hours),
        y=Axis(title="power (W)", low=0.0),
        marks=marks,
    )
    _write(figure, path)


def _staircase(course: Course, step_s: float, colour: str, *, dashed: bool) -> Line:
    count = len(course.power_w)
    edges = [(step, step + 1) for step in range(count)]
    return Line(
        name=course.name,
        x=tuple(edge * step_s / 3600.0 for both in edges for edge in both),
        y=tuple(watts for watts in course.power_w for _ in range(2)),
        colour=colour,
        dashed=dashed,
    )


def _write(figure: Figure, path: Path) -> None:
    try:
        path.write_text(draw(figure), encoding="utf-8")
    except OSError as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be written: {problem}")]) from problem
