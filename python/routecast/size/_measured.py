"""Sizing of a router from measured points."""

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
from routecast.size._answer import Count, FactAnswer, Sizing, Target, evaluated_counts
from routecast.size.modelled import confirmed

_NO_LINK_BPS = 10e12
_MAX_EXTRAPOLATION = 2.0
"""Predictions for more cores than this multiple of the most measured cores are marked as outside."""


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
    """Return the least number of cores that meets a target with the probability of the target.

    Parameters
    ----------
    points : sequence of Point
        Points of one series; those marked to calibrate are used, or all if none is marked.
    target : Target
    counts : sequence of int
        Cores to choose from.
    noise_ratio : float or None
        As for :func:`routecast.calibration.fit`.
    next_points : int
        Number of further measurements to propose.
    bounds : sequence of Bound
        Bounds on the latency at the target. The simulator checks them on the calibrated router, whose queues are
        assumed to have 512 frames for each core.
    move : Carry or None
        Transfer to the host that is sized, if the points are from another host.

    Raises
    ------
    routecast.errors.FitProblem
        No point has a rate, there is no count, or the points belong to several series.
    """
    calibration_points = calibrating(points)
    cores = sorted(set(counts))
    if not cores or cores[0] < 1:
        raise FitProblem("", "give at least one number of cores to choose from, each 1 or more")
    fitted = _fitted(calibration_points, noise_ratio, move)
    evaluated = evaluated_counts(
        cores, lambda part: _counts(fitted, target, part), lambda count: _is_sure(count, target)
    )
    sufficient = [count for count in evaluated if _is_sure(count, target)]
    least, notes = next(iter(sufficient), None), list[str]()
    if bounds and sufficient:
        least, notes = confirmed(sufficient, lambda count: (_router(fitted, target, count.cores), None), target, bounds)
        evaluated = tuple(least if least and count.cores == least.cores else count for count in evaluated)
        notes.append("the latency assumes queues of 512 frames for each core, which were not measured")
    most_cores = at_cores(_at(fitted, target), cores[-1])
    max_candidate_cores = min(cores[-1], 2 * max(point.cores for point in calibration_points))
    candidates = fitted.candidates(max_candidate_cores, [most_cores])
    point_count = next_points if move is None else max(next_points, 2)
    if move is not None:
        candidates += [replace(point, throughput_pps=math.nan, calibrate=False) for point in fitted.points]
        factor = math.exp(2.0 * move.log_sd)
        notes.append(
            f"carried: {move.why}, within a factor of {factor:.3g} with 95 %; links and cards stay as they were"
        )
    return Sizing(
        series=fitted.series,
        target=target,
        counts=evaluated,
        least=least,
        facts=_facts(fitted, target, evaluated, noise_ratio, move),
        next=fitted.next_points(point_count, able=candidates, targets=[most_cores], goal_pps=target.forwarded_pps),
        warnings=(*notes, *fitted.warnings, *fitted.remarks([most_cores])),
        bounds=tuple(bounds),
    )


def _fitted(points: Sequence[Point], noise_ratio: float | None, move: Carry | None) -> FittedRouter:
    fitted = fit(points, noise_ratio=noise_ratio)
    return fitted if move is None else carried(fitted, move)


def _counts(fitted: FittedRouter, target: Target, cores: Sequence[int]) -> tuple[Count, ...]:
    points = [at_cores(_at(fitted, target), count) for count in cores]
    chances = fitted.chances(points, target.forwarded_pps)
    return tuple(
        Count(
            cores=prediction.point.cores,
            probability=chance,
            rate_pps=prediction.throughput_pps,
            low_pps=prediction.low_pps,
            high_pps=prediction.high_pps,
            limit=prediction.limit,
            outside=_outside(fitted, prediction),
        )
        for prediction, chance in zip(fitted.predict(points), chances, strict=True)
    )


def _at(fitted: FittedRouter, target: Target) -> Point:
    """Return a point with the frames of the target, on the measured machine with the most cores."""
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


def _outside(fitted: FittedRouter, prediction: Prediction) -> tuple[str, ...]:
    point = prediction.point
    measured = {(measured_point.frame_bytes, measured_point.frame_mix) for measured_point in fitted.points}
    is_outside = {
        "cores": point.cores > _MAX_EXTRAPOLATION * max(measured_point.cores for measured_point in fitted.points),
        "frames": (point.frame_bytes, point.frame_mix) not in measured,
        "link": point.link_bps is None,
        "host": fitted.carry != (0.0, 0.0),
    }
    return tuple(name for name, is_true in is_outside.items() if is_true)


def _facts(
    fitted: FittedRouter, target: Target, counts: Sequence[Count], noise_ratio: float | None, move: Carry | None
) -> tuple[FactAnswer, ...]:
    """Return the facts that the points leave open and that change the interval, each with both answers."""
    least = next((count for count in counts if _is_sure(count, target)), counts[-1])
    answers = []
    for fact in open_facts(fitted, [at_cores(_at(fitted, target), least.cores)], noise_ratio=noise_ratio):
        least_by_answer: dict[str, int | None] = {}
        for answer, is_shared in (("no", False), ("yes", True)):
            refitted = _fitted(with_shared_queue(fitted.points, is_shared), noise_ratio, move)
            recounted = _counts(refitted, target, [count.cores for count in counts])
            least_by_answer[answer] = next((count.cores for count in recounted if _is_sure(count, target)), None)
        answers.append(FactAnswer(fact=fact, least_cores=least_by_answer))
    return tuple(answers)


def _is_sure(count: Count, target: Target) -> bool:
    return count.probability is not None and count.probability >= target.confidence_ratio
