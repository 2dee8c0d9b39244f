"""Figures of ``routecast power optimise``: watts against latency, and power over a day."""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.plan.operating.day import Course, DayPlan
from routecast.plan.operating.optimise import Machine
from routecast.plan.operating.search import Found, Judged, latency_quantity
from routecast.plan.operating.setting import AS_GIVEN, Setting
from routecast.quantity import format_duration, format_frequency
from routecast.report.figures import Axis, Figure, Line, Mark, Points, palette

__all__ = ["day_figure", "front_figure", "has_front"]


def has_front(found: Found) -> bool:
    """Return whether there is a setting whose watts and latency are known."""
    return bool(_with_latency(found))


def front_figure(found: Found, machine: Machine) -> Figure:
    """Return the figure of everything that was evaluated, its front, the target and the best.

    The front is a staircase: for a bound on the latency between two settings the faster one is the answer.
    """
    quantity = latency_quantity(found.targets)
    blue, orange, green, *_ = palette(4, ordered=False)
    shown = _with_latency(found)
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
        _front_line(front, quantity, blue),
        Points(
            name="settings of the front",
            x=tuple(1e6 * one.latency_s(quantity) for one in front),
            y=tuple(one.power_w for one in front),
            colour=blue,
            size_px=6,
            labels=tuple(_short(one.setting) for one in front),
            is_labelled=True,
            legend=False,
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
        caption="Blue: the fewest watts for each bound on the latency, without loss. Labels: cores, clock, deepest "
        "sleep, activation.",
        x=Axis(title=f"{quantity} latency (us)", scale="log"),
        y=Axis(title="power (W)", low=0.0),
        marks=tuple(marks),
    )


def _with_latency(found: Found) -> list[Judged]:
    quantity = latency_quantity(found.targets)
    return [one for one in found.judged if math.isfinite(one.power_w) and math.isfinite(one.latency_s(quantity))]


def _front_line(front: Sequence[Judged], quantity: str, colour: str) -> Line:
    corners: list[tuple[float, float]] = []
    for one in sorted(front, key=lambda one: one.latency_s(quantity)):
        if corners:
            corners.append((1e6 * one.latency_s(quantity), corners[-1][1]))
        corners.append((1e6 * one.latency_s(quantity), one.power_w))
    return Line(
        name="front without loss",
        x=tuple(latency_us for latency_us, _ in corners),
        y=tuple(watts for _, watts in corners),
        colour=colour,
    )


def _short(setting: Setting) -> str:
    """Name a setting in a few letters.

    Examples
    --------
    >>> _short(Setting(cores=2, frequency_hz=1e9, sleep="C6", activation="interrupt", linger_s=3e-6))
    '2 x 1 GHz C6 adaptive 3 us'
    """
    parts = [str(setting.cores)]
    if setting.frequency_hz is not None:
        parts.append(f"x {format_frequency(setting.frequency_hz)}")
    if setting.sleep:
        parts.append(setting.sleep)
    if setting.activation != AS_GIVEN:
        parts.append(setting.mode)
    if setting.mode == "adaptive":
        parts.append(format_duration(setting.linger_s))
    return " ".join(parts)


def day_figure(plan: DayPlan, machine: Machine) -> Figure:
    """Return the power over the day, settings as steps."""
    courses = (plan.always, plan.per_step, plan.plan)
    colours = palette(3, ordered=False)
    marks = tuple(
        _staircase(course, plan.step_s, colour, dashed=course is plan.per_step)
        for course, colour in zip(courses, colours, strict=True)
    )
    hours = plan.step_s * len(plan.rates_pps) / 3600.0
    return Figure(
        name="day",
        title=f"{machine.model.name}: power over the day",
        caption="",
        x=Axis(title="hour of the day", low=0.0, high=hours),
        y=Axis(title="power (W)", low=0.0),
        marks=marks,
    )


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
