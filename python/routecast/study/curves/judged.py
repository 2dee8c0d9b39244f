"""What a source states (values, orders, shapes, bottlenecks) beside what is found, and the criteria of the study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from routecast.quantity import format_pps
from routecast.study.curves.calibrated import read_at
from routecast.study.curves.document import CurveStudy, Limited, Ordered, Shape
from routecast.study.curves.point import Point
from routecast.study.curves.result import Compared, FigureResult, Passed
from routecast.study.result import Criterion
from routecast.study.stated import Statement

__all__ = ["compared", "criteria", "holds", "statements"]

SAME_LOAD = 1e-6
BUSY = 0.95
"""Share of a core from which a thread is taken to limit."""


def compared(figures: Sequence[FigureResult]) -> tuple[Compared, ...]:
    """Return every stated rate beside the one found."""
    return tuple(
        Compared(figure=one.figure.name, stated=stated, found_pps=read_at(one.curves[stated.curve], stated.at))
        for one in figures
        for stated in one.figure.stated
    )


def statements(figures: Sequence[FigureResult]) -> tuple[tuple[Statement, bool], ...]:
    """Return every statement in words with what is found, and whether it holds."""
    found = []
    for one in figures:
        for ordered in one.figure.ordered:
            found.append(_ordered(one, ordered))
        for shape in one.figure.shape:
            found.append(_shape(one, shape))
        for limited in one.figure.limited:
            found.append(_limited(one, limited))
    return tuple(found)


def criteria(
    study: CurveStudy,
    rates: Sequence[Compared],
    told: Sequence[tuple[Statement, bool]],
    passed: Sequence[Passed],
) -> tuple[Criterion, ...]:
    """Return what the study asks for and what is reached; a statement in words holds (0) or does not (1)."""
    found = [
        Criterion(
            name=f"{one.figure}, {one.stated.curve}: {format_pps(one.stated.value)}",
            bound=one.stated.within,
            reached=one.missed_by,
        )
        for one in rates
        if one.stated.within is not None
    ]
    found += [Criterion(name=statement.says, bound=0.5, reached=0.0 if is_met else 1.0) for statement, is_met in told]
    if study.criteria.passing_error is not None and passed:
        errors = [
            abs(found_ratio - stated)
            for one in passed
            for found_ratio, stated in zip(one.found, one.passing.ratios, strict=True)
        ]
        found.append(
            Criterion(
                name="mean error of the shares that pass",
                bound=study.criteria.passing_error,
                reached=fmean(errors),
            )
        )
    return tuple(found)


def holds(ordered: Ordered, curves: Sequence[Sequence[Point]]) -> list[tuple[float, bool]]:
    """Return at each load in range whether the curves are in the stated order."""
    found = []
    for row in zip(*curves, strict=True):
        load = row[0].offered_pps
        if ordered.least is not None and load < ordered.least * (1.0 - SAME_LOAD):
            continue
        if ordered.most is not None and load > ordered.most * (1.0 + SAME_LOAD):
            continue
        rates = [one.forwarded_pps for one in row]
        found.append(
            (
                load,
                all(better >= worse * (1.0 - ordered.tie) for better, worse in pairwise(rates)),
            )
        )
    return found


def _ordered(one: FigureResult, ordered: Ordered) -> tuple[Statement, bool]:
    kept = holds(ordered, [one.curves[name] for name in ordered.curves])
    wrong = [load for load, is_kept in kept if not is_kept]
    if not kept:
        here = "no load in the range was asked"
    elif wrong:
        here = f"not at {', '.join(format_pps(load) for load in wrong)} of {len(kept)} loads"
    else:
        here = f"at all {len(kept)} loads" if len(kept) > 1 else "holds"
    last = max(range(len(kept)), default=0)
    rates = ", ".join(f"{name} {format_pps(_at(one.curves[name], kept[last][0]))}" for name in ordered.curves if kept)
    where = f"{one.figure.name}{': ' + ordered.where if ordered.where else ''}"
    says = ordered.says
    statement = Statement(says=says, where=where, thesis=" > ".join(ordered.curves), here=f"{here}; last: {rates}")
    return statement, bool(kept) and not wrong


def _shape(one: FigureResult, shape: Shape) -> tuple[Statement, bool]:
    points = one.curves[shape.curve]
    peak = max(points, key=lambda point: point.forwarded_pps)
    beyond = [point.forwarded_pps for point in points if point.offered_pps >= peak.offered_pps]
    least = min(beyond) / peak.forwarded_pps - 1.0
    last = points[-1].forwarded_pps / peak.forwarded_pps - 1.0
    is_met = -least <= shape.by if shape.kind == "flat" else -last >= shape.by
    here = f"{last:+.0%} of its peak at the highest load, least {least:+.0%}"
    wants = f"at most {shape.by:.0%} below" if shape.kind == "flat" else f"at least {shape.by:.0%} below"
    where = f"{one.figure.name}{': ' + shape.where if shape.where else ''}"
    return Statement(says=shape.says, where=where, thesis=wants, here=here), is_met


def _limited(one: FigureResult, limited: Limited) -> tuple[Statement, bool]:
    point = one.curves[limited.curve][-1]
    name, cores = point.busiest
    share = point.busy_cores.get(limited.thread, math.nan)
    is_met = name == limited.thread and cores >= BUSY
    here = f"{name} busy {cores:.0%} of a core"
    if name != limited.thread:
        here += f", {limited.thread} {share:.0%}"
    where = f"{one.figure.name}{': ' + limited.where if limited.where else ''}"
    return Statement(says=limited.says, where=where, thesis=limited.thread, here=here), is_met


def _at(points: Sequence[Point], load: float) -> float:
    return min(points, key=lambda point: abs(point.offered_pps - load)).forwarded_pps
