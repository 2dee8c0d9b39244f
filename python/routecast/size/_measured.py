"""Size a router from measured points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from routecast.calibration import FittedRouter, fit
from routecast.calibration.carried import Carry, carried
from routecast.calibration.facts import open_facts, with_shared_queue
from routecast.calibration.fitted import at_cores
from routecast.calibration.score import Prediction
from routecast.errors import FitProblem
from routecast.evaluate.points import Point, calibrating
from routecast.power.operating.targets import Target as Bound
from routecast.router.model import RouterModel
from routecast.size._answer import Count, FactAnswer, Sizing, Target, looked_at
from routecast.size.modelled import confirmed

_NO_LINK_BPS = 10e12
_FAR = 2.0
"""Beyond so many times the most cores that were measured a prediction says that it is outside."""


def size(
    points: Sequence[Point],
    target: Target,
    *,
    counts: Sequence[int] = tuple(range(1, 65)),
    noise_ratio: float | None = None,
    next_points: int = 1,
    bounds: Sequence[Bound] = (),
    move: Carry | None = None,
) -> Sizing:
    """Return the least of some numbers of cores that meets a target with the target's probability.

    Parameters
    ----------
    points : sequence of Point
        Of one series; those that are marked to calibrate do, all if none is marked.
    target : Target
    counts : sequence of int
        Cores to choose from.
    noise_ratio : float or None
        As for :func:`routecast.calibration.fit`.
    next_points : int
        How many further measurements to name.
    bounds : sequence of Bound
        On the latency at the target, which the simulator judges on the calibrated router; it has queues of 512 frames
        for each core, an assumption.
    move : Carry or None
        To the host that is sized, where the points are of another one.

    Raises
    ------
    routecast.errors.FitProblem
        No point has a rate, there is no count, or the points belong to several series.
    """
    known = calibrating(points)
    wanted = sorted(set(counts))
    if not wanted or wanted[0] < 1:
        raise FitProblem("", "give at least one number of cores to choose from, each 1 or more")
    fitted = _fitted(known, noise_ratio, move)
    counted = looked_at(wanted, lambda part: _counts(fitted, target, part), lambda count: _is_sure(count, target))
    able = [count for count in counted if _is_sure(count, target)]
    least, notes = next(iter(able), None), list[str]()
    if bounds and able:
        least, notes = confirmed(able, lambda count: (_router(fitted, target, count.cores), None), target, bounds)
        counted = tuple(least if least and count.cores == least.cores else count for count in counted)
        notes.append("latency is that of queues of 512 frames for each core, which no measurement tells")
    at_most = at_cores(_at(fitted, target), wanted[-1])
    places = fitted.candidates(min(wanted[-1], 2 * max(point.cores for point in known)), [at_most])
    named = next_points if move is None else max(next_points, 2)
    if move is not None:
        places += [replace(point, throughput_pps=math.nan, calibrate=False) for point in fitted.points]
        off = math.exp(2.0 * move.log_sd)
        notes.append(f"carried: {move.why}, within a factor of {off:.3g} with 95 %; links and cards stay as they were")
    return Sizing(
        series=fitted.series,
        target=target,
        counts=counted,
        least=least,
        facts=_facts(fitted, target, counted, noise_ratio, move),
        next=fitted.next_points(named, able=places, targets=[at_most], goal_pps=target.forwarded_pps),
        warnings=(*notes, *fitted.warnings, *fitted.remarks([at_most])),
        bounds=tuple(bounds),
    )


def _fitted(known: Sequence[Point], noise_ratio: float | None, move: Carry | None) -> FittedRouter:
    fitted = fit(known, noise_ratio=noise_ratio)
    return fitted if move is None else carried(fitted, move)


def _counts(fitted: FittedRouter, target: Target, wanted: Sequence[int]) -> tuple[Count, ...]:
    points = [at_cores(_at(fitted, target), count) for count in wanted]
    chances = fitted.chances(points, target.forwarded_pps)
    return tuple(
        Count(
            cores=made.point.cores,
            probability=chance,
            rate_pps=made.throughput_pps,
            low_pps=made.low_pps,
            high_pps=made.high_pps,
            limit=made.limit,
            outside=_outside(fitted, made),
        )
        for made, chance in zip(fitted.predict(points), chances, strict=True)
    )


def _at(fitted: FittedRouter, target: Target) -> Point:
    """Return the point of the target's frames on the measured machine with the most cores."""
    model = max(fitted.points, key=lambda point: point.cores)
    mix = None if target.frames.is_fixed else target.frames
    return replace(model, frame_bytes=target.frames.mean_bytes, frame_mix=mix, throughput_pps=math.nan, calibrate=False)


def _router(fitted: FittedRouter, target: Target, count: int) -> RouterModel:
    point = _at(fitted, target)
    return fitted.router_model(
        count,
        point.frame_bytes,
        link_bps=point.link_bps or _NO_LINK_BPS,
        ports=point.ports,
        nic_cap_pps=point.nic_cap_pps,
    )


def _outside(fitted: FittedRouter, made: Prediction) -> tuple[str, ...]:
    point = made.point
    measured = {(each.frame_bytes, each.frame_mix) for each in fitted.points}
    marks = {
        "cores": point.cores > _FAR * max(each.cores for each in fitted.points),
        "frames": (point.frame_bytes, point.frame_mix) not in measured,
        "link": point.link_bps is None,
        "host": fitted.carry != (0.0, 0.0),
    }
    return tuple(name for name, is_so in marks.items() if is_so)


def _facts(
    fitted: FittedRouter, target: Target, counts: Sequence[Count], noise_ratio: float | None, move: Carry | None
) -> tuple[FactAnswer, ...]:
    """Return each fact that the points leave open and that would change the interval, with both answers."""
    least = next((count for count in counts if _is_sure(count, target)), counts[-1])
    answers = []
    for fact in open_facts(fitted, [at_cores(_at(fitted, target), least.cores)], noise_ratio=noise_ratio):
        few: dict[str, int | None] = {}
        for answer, is_shared in (("no", False), ("yes", True)):
            refitted = _fitted(with_shared_queue(fitted.points, is_shared), noise_ratio, move)
            seen = _counts(refitted, target, [count.cores for count in counts])
            few[answer] = next((count.cores for count in seen if _is_sure(count, target)), None)
        answers.append(FactAnswer(fact=fact, least_cores=few))
    return tuple(answers)


def _is_sure(count: Count, target: Target) -> bool:
    return count.probability is not None and count.probability >= target.confidence_ratio
