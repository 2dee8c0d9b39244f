"""Sizing of a router from measured points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from routecast.calibration.carried import Carry
from routecast.calibration.counts import Count, cores
from routecast.calibration.forecast import Forecast, Goal, forecast
from routecast.calibration.latency import MeasuredLatency, chances_of_counts, disturbed_rows, measured_latency
from routecast.evaluate.points import MOST_LISTED, Point
from routecast.evaluate.targets import Target as Bound
from routecast.quantity import format_pps
from routecast.size._answer import LatencyAnswer, Sizing, Target

_ARRIVALS = {
    "cbr": "evenly spaced arrivals",
    "poisson": "Poisson arrivals",
    "on_off": "arrivals in bursts",
    "trace": "the arrivals of a trace",
}


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

    The parameters and errors are those of :func:`routecast.calibration.forecast.forecast`. ``bounds`` are on the
    latency at the target. Where the table has latencies of their quantities, the probabilities are those of the rate
    and of the bounds together. A table of throughputs neither confirms nor refutes them: the answer is the count for
    the throughput, and says that the latency was not measured.
    """
    goal = Goal(rate_pps=target.forwarded_pps, frames=target.frames, confidence_ratio=target.confidence_ratio)
    answer = forecast(points, goal, counts, noise_ratio=noise_ratio, next_points=next_points, move=move)
    latencies = _latencies(answer, points, bounds) if move is None else ()
    if latencies:
        return _with_latency(answer, target, bounds, latencies, goal)
    least = answer.least
    # The rate may be that of links: no core is then faster than its service time.
    least_s = math.nan if least is None else min(answer.service_s, least.cores / least.high_pps)
    latency = LatencyAnswer.not_measured(
        answer.service_s,
        bounds,
        least_s=least_s,
        is_fixed=target.frames.is_fixed,
        has_rows=_has_rows(points),
        disturbed=_disturbed_text(points, bounds),
    )
    return _sizing(answer, target, bounds, answer.counts, least, latency)


def _sizing(
    answer: Forecast,
    target: Target,
    bounds: Sequence[Bound],
    counts: tuple[Count, ...],
    least: Count | None,
    latency: LatencyAnswer,
    notes: Sequence[str] = (),
) -> Sizing:
    return Sizing(
        series=answer.series,
        target=target,
        counts=counts,
        least=least,
        facts=answer.facts,
        next=answer.next,
        warnings=(*notes, *answer.remarks),
        bounds=tuple(bounds),
        recipe=answer.recipe,
        conditions=answer.conditions,
        contradiction=answer.contradiction,
        cap=answer.cap if least is None and answer.least is None else "",
        latency=latency,
    )


def _has_rows(points: Sequence[Point]) -> bool:
    return any(point.latency is not None for point in points)


def _disturbed_text(points: Sequence[Point], bounds: Sequence[Bound]) -> str:
    """Return the conditions and loads of the rows of a bound's quantity if all were disturbed; empty if not."""
    rows = next(filter(None, (disturbed_rows(points, bound.quantity) for bound in bounds)), ())
    texts = list(dict.fromkeys(map(_describe_row, rows)))
    return "; ".join(texts[:MOST_LISTED]) + ("; …" if len(texts) > MOST_LISTED else "")


def _describe_row(point: Point) -> str:
    assert point.latency is not None
    is_rate = math.isfinite(point.latency.load_pps)
    load = format_pps(point.latency.load_pps) if is_rate else f"{point.latency.load_ratio:.0%}"
    frames = point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g} B"
    return f"{cores(point.cores)}, {frames} at {load}"


def _latencies(answer: Forecast, points: Sequence[Point], bounds: Sequence[Bound]) -> tuple[MeasuredLatency, ...]:
    """Return a curve for each bound; none if a bound has no row, or the points contradict each other."""
    if not bounds or not _has_rows(points) or answer.contradiction or answer.recipe is None:
        return ()
    assert answer.conditions is not None
    fitted = answer.recipe.fitted()
    curves = [measured_latency(fitted, points, answer.conditions, bound.quantity) for bound in bounds]
    known = tuple(curve for curve in curves if curve is not None)
    return known if len(known) == len(bounds) else ()


def _with_latency(
    answer: Forecast, target: Target, bounds: Sequence[Bound], latencies: Sequence[MeasuredLatency], goal: Goal
) -> Sizing:
    """Return the answer whose probabilities are those of the rate and of the bounds together."""
    numbers = [count.cores for count in answer.counts]
    rates_pps = latencies[0].capacities_pps(numbers)
    curves = [[latency.with_cores(number) for number in numbers] for latency in latencies]
    reached = (rates_pps >= goal.rate_pps).mean(axis=0)
    missed = [
        reached - chances_of_counts(of_bound, rates_pps, target.rate_pps, goal.rate_pps, bound.limit)
        for of_bound, bound in zip(curves, bounds, strict=True)
    ]
    # How bounds of several quantities hang together is not known: what misses one may meet the others.
    joint = np.maximum(reached - np.sum(missed, axis=0), 0.0)
    at = [curve.at(of_count, target.rate_pps) for curve, of_count in zip(curves[0], rates_pps.T, strict=True)]
    counts = tuple(
        replace(
            count,
            # A rate that rows refute stays refuted.
            probability=None if count.probability is None else min(float(chance), count.probability),
            probability_if_cores_limit=None,
            rate_probability=count.probability,
            latency_s=there.latency_s,
        )
        for count, chance, there in zip(answer.counts, joint, at, strict=True)
    )
    least = next(filter(goal.is_met, counts), None)
    shown = at[counts.index(least or max(counts, key=lambda count: count.chance))]
    stated = sorted({point.latency.arrivals for point in latencies[0].points if point.latency} - {""})
    latency = LatencyAnswer(
        value_s=shown.latency_s,
        low_s=shown.low_s,
        high_s=shown.high_s,
        load_ratio=shown.load_ratio,
        arrivals=" and ".join(_ARRIVALS[name] for name in stated),
        reason=shown.reason,
    )
    notes = [remark for curve in latencies for remark in curve.remarks]
    if least is None and shown.reason:
        notes.append(f"{bounds[0].quantity}: {shown.reason}")
    elif least is None:
        notes.append(
            f"a row of the {bounds[0].quantity} at about {shown.load_ratio:.0%} of the capacity, which is the load of "
            "the target, tells most of the latency"
        )
    return _sizing(answer, target, bounds, counts, least, latency, notes)
