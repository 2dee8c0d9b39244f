"""Costs set so that stated values are met: one number for each, by bisection on what the simulator forwards.

A rate at a load, and a peak over loads, fall as a cost grows, but for jumps where a queue or a slice changes its
rhythm; so the bracket is halved until it is narrow, and what is left between stated and found is in the table. Where
several values calibrate, each is set in the order of the file, and the round is repeated: one may move another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routecast.errors import FitProblem
from routecast.quantity import format_duration, format_pps
from routecast.study.curves.document import Curve, CurveStudy, Figure, Stated
from routecast.study.curves.point import Point
from routecast.study.curves.routers import Setting

__all__ = ["ROUNDS", "Calibrated", "calibrate", "calibrating", "read_at"]

ROUNDS = 2
HALVINGS = 9
CLOSE = 2e-3
"""Relative error of the forwarded rate at which a bracket is narrow enough."""

Ask = Callable[[Figure, Curve, Sequence[float], Setting], list[Point]]
"""Simulates points of a curve with calibrated values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A cost that was calibrated: paths, seconds, and the stated and found rate that it was set by."""

    figure: str
    curve: str
    paths: tuple[str, ...]
    value_s: float
    stated_pps: float
    found_pps: float
    where: str


def calibrating(study: CurveStudy) -> list[tuple[Figure, Curve, Stated]]:
    """Return the stated values that calibrate, in the order of the file."""
    return [
        (figure, next(curve for curve in figure.curve if curve.name == stated.curve), stated)
        for figure in study.figure
        for stated in figure.stated
        if stated.calibrates
    ]


def calibrate(
    study: CurveStudy, ask: Ask, tell: Callable[[str], None]
) -> tuple[tuple[Calibrated, ...], dict[str, dict[str, object]]]:
    """Set the costs that stated values calibrate.

    Returns
    -------
    tuple of Calibrated, and the values by router document and path

    Raises
    ------
    routecast.errors.FitProblem
        No value of the range meets the stated rate.
    """
    setting: dict[str, dict[str, object]] = {name: {} for name in study.router}
    wanted = calibrating(study)
    found: dict[int, Calibrated] = {}
    for _ in range(ROUNDS if len(wanted) > 1 else 1):
        for number, (figure, curve, stated) in enumerate(wanted):
            tell(f"{figure.name}, {curve.name}: {format_pps(stated.value)}")
            found[number] = _set(study, setting, figure, curve, stated, ask)
    return tuple(found[number] for number in range(len(wanted))), setting


def _set(
    study: CurveStudy,
    setting: dict[str, dict[str, object]],
    figure: Figure,
    curve: Curve,
    stated: Stated,
    ask: Ask,
) -> Calibrated:
    how = stated.calibrates
    assert how is not None
    names = how.routers or tuple(study.router)

    def forwarded(value_s: float) -> float:
        for name in names:
            setting[name] |= dict.fromkeys(how.set, f"{value_s!r} s")
        return read_at(ask(figure, curve, loads_at(figure, stated), setting), stated.at)

    low, high = how.between
    most, least = forwarded(low), forwarded(high)
    if not least <= stated.value <= most:
        message = (
            f"{figure.name}, {curve.name}: {' and '.join(how.set)} between {format_duration(low)} and "
            f"{format_duration(high)} gives {format_pps(least)} to {format_pps(most)}, not the stated "
            f"{format_pps(stated.value)}: widen `between`"
        )
        raise FitProblem(figure.name, message)
    middle, rate = low, most
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        rate = forwarded(middle)
        if abs(rate / stated.value - 1.0) <= CLOSE:
            break
        low, high = (middle, high) if rate > stated.value else (low, middle)
    return Calibrated(
        figure=figure.name,
        curve=curve.name,
        paths=how.set,
        value_s=middle,
        stated_pps=stated.value,
        found_pps=rate,
        where=stated.where,
    )


def loads_at(figure: Figure, stated: Stated) -> Sequence[float]:
    """Return the offered loads that a stated value is read from."""
    if stated.at == "peak":
        return figure.offered
    return (figure.offered[-1],) if stated.at == "highest" else (float(stated.at),)


def read_at(points: Sequence[Point], at: str | float) -> float:
    """Return the forwarded rate of a curve at its peak, at its highest load, or at a load."""
    if at == "peak":
        return max(point.forwarded_pps for point in points)
    if at == "highest":
        return points[-1].forwarded_pps
    nearest = min(points, key=lambda point: abs(point.offered_pps - float(at)))
    return nearest.forwarded_pps
