"""What a few measured points say of a goal at the numbers of cores that are asked, in one answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from routecast.calibration.carried import Carry, carried
from routecast.calibration.counts import Count, cores, evaluated_counts
from routecast.calibration.evidence import Evidence
from routecast.calibration.facts import OpenFact, open_facts, refitted
from routecast.calibration.fitted import TOLERANCE_RATIO, FittedRouter, at_cores
from routecast.calibration.next_points import NextPoint
from routecast.calibration.recipe import Recipe
from routecast.calibration.score import Prediction
from routecast.errors import FitProblem
from routecast.evaluate.points import Point, calibrating, describe_rates
from routecast.load.frames import FrameMix
from routecast.quantity import format_bps

__all__ = ["FactAnswer", "Forecast", "Goal", "forecast"]

_MAX_EXTRAPOLATION = 2.0
"""Predictions for more cores than this multiple of the most measured cores are marked as outside."""
_SMALL_CHANCE = 0.05
"""Greatest chance of a goal that is said to lie beyond a limit that rows show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A rate in frames/s to forward, of frames, with a probability."""

    rate_pps: float
    frames: FrameMix
    confidence_ratio: float

    def is_met(self, count: Count) -> bool:
        """Whether a number of cores reaches the rate with the probability."""
        return count.probability is not None and count.probability >= self.confidence_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class FactAnswer:
    """A fact that the points leave open, and the least number of cores for each answer; None: no count is certain."""

    fact: OpenFact
    least_cores: Mapping[str, int | None]

    @property
    def text(self) -> str:
        """The question, with the interval and the number of cores for both answers."""
        counts = (
            f"{answer}: {'no count is certain' if count is None else cores(count)}"
            for answer, count in self.least_cores.items()
        )
        return f"{self.fact.text}. Least cores with {'; '.join(counts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Rates and chances at numbers of cores, what would narrow them, and what limits or refutes them.

    ``counts``: ascending; ``least``: the fewest cores that reach the goal, None if no number does for certain;
    ``facts``: those that the points leave open and that change the counts; ``next``: measurements to make;
    ``remarks``: sentences on points and predictions; ``contradiction``: rows that cannot both be right, so that no
    probability is known; ``cap``: links or cards that carry less than the goal with any number of cores;
    ``conditions``: those of all counts but the number of cores; ``recipe``: what recomputes the calibration, None if it
    was carried to another host; ``service_s``: seconds per frame of a busy core with the least count, NaN without.
    """

    series: str
    counts: tuple[Count, ...]
    least: Count | None
    facts: tuple[FactAnswer, ...]
    next: tuple[NextPoint, ...]
    remarks: tuple[str, ...]
    contradiction: str
    cap: str
    conditions: Point
    recipe: Recipe | None
    service_s: float


def forecast(
    points: Sequence[Point],
    goal: Goal,
    counts: Sequence[int],
    *,
    noise_ratio: float | None = None,
    next_points: int = 1,
    move: Carry | None = None,
) -> Forecast:
    """Return what points say of a goal at numbers of cores.

    Parameters
    ----------
    points : sequence of Point
        Points of one series; those marked to calibrate are used, or all if none is marked. The others check the answer.
    goal : Goal
    counts : sequence of int
        Cores to choose from.
    noise_ratio : float or None
        As for :func:`routecast.calibration.fit`.
    next_points : int
        Number of further measurements to propose.
    move : Carry or None
        Transfer to the host that is asked about, if the points are from another host.

    Raises
    ------
    routecast.errors.FitProblem
        No point has a rate, there is no count, or the points belong to several series.
    """
    allowed = sorted(set(counts))
    if not allowed or allowed[0] < 1:
        raise FitProblem("", "give at least one number of cores to choose from, each 1 or more")
    recipe = Recipe(points=tuple(calibrating(points)), noise_ratio=noise_ratio)
    fitted = recipe.fitted() if move is None else carried(recipe.fitted(), move)
    conditions = _conditions(fitted, goal)
    held_out = [point for point in points if point not in recipe.points and math.isfinite(point.throughput_pps)]
    evidence = Evidence.of(fitted, conditions, held_out) if move is None else Evidence()
    evaluated = _evaluated(fitted, conditions, goal, allowed, evidence)
    least = next(filter(goal.is_met, evaluated), None)
    most = at_cores(conditions, allowed[-1])
    candidates = fitted.candidates(min(allowed[-1], 2 * max(point.cores for point in recipe.points)), [most])
    notes: list[str] = []
    if move is not None:
        next_points = max(next_points, 2)
        candidates += [replace(point, throughput_pps=math.nan, calibrate=False) for point in fitted.points]
        notes.append(_carried_note(move))
    return Forecast(
        series=fitted.series,
        counts=evaluated,
        least=least,
        facts=_facts(fitted, conditions, goal, least or evaluated[-1], evaluated, noise_ratio),
        next=fitted.next_points(next_points, able=candidates, targets=[most], goal_pps=goal.rate_pps),
        remarks=(
            *notes,
            *evidence.remarks,
            *fitted.warnings,
            *fitted.humps([] if least is None else [at_cores(conditions, least.cores)]),
            *fitted.remarks([most]),
            *describe_rates(points),
        ),
        contradiction=next(iter(fitted.contradictions), ""),
        cap="" if least is not None else _cap_text(fitted, most, goal, max(count.chance for count in evaluated)),
        conditions=conditions,
        recipe=recipe if move is None else None,
        service_s=math.nan if least is None else fitted.service_s(least.cores, goal.frames.mean_bytes),
    )


def _evaluated(
    fitted: FittedRouter, conditions: Point, goal: Goal, allowed: Sequence[int], evidence: Evidence
) -> tuple[Count, ...]:
    """Return the counts that were evaluated, without probabilities if the points contradict each other."""
    evaluated = evaluated_counts(
        allowed, lambda part: evidence.applied(_counts(fitted, conditions, goal, part), goal.rate_pps), goal.is_met
    )
    if not fitted.contradictions:
        return evaluated
    return tuple(replace(count, probability=None, probability_if_cores_limit=None) for count in evaluated)


def _carried_note(move: Carry) -> str:
    factor = math.exp(2.0 * move.log_sd)
    return f"carried: {move.why}, within a factor of {factor:.3g} with 95 %; links and cards stay as they were"


def _conditions(fitted: FittedRouter, goal: Goal) -> Point:
    """Return a point with the frames of the goal, on the measured machine with the most cores."""
    model = max(fitted.points, key=lambda point: point.cores)
    mix = None if goal.frames.is_fixed else goal.frames
    return fitted.caps.applied(
        replace(model, frame_bytes=goal.frames.mean_bytes, frame_mix=mix, throughput_pps=math.nan, calibrate=False)
    )


def _counts(fitted: FittedRouter, conditions: Point, goal: Goal, numbers: Sequence[int]) -> tuple[Count, ...]:
    points = [at_cores(conditions, number) for number in numbers]
    predictions, chances = fitted.predict(points), fitted.chances(points, goal.rate_pps)
    bare_chances = fitted.chances(points, goal.rate_pps, ceilings=False)
    return tuple(
        Count(
            cores=prediction.point.cores,
            probability=chance,
            rate_pps=prediction.throughput_pps,
            low_pps=prediction.low_pps,
            high_pps=prediction.high_pps,
            limit=prediction.limit,
            outside=_outside(fitted, prediction),
            probability_if_cores_limit=bare,
        )
        for prediction, chance, bare in zip(predictions, chances, bare_chances, strict=True)
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
    fitted: FittedRouter,
    conditions: Point,
    goal: Goal,
    compared: Count,
    counts: Sequence[Count],
    noise_ratio: float | None,
) -> tuple[FactAnswer, ...]:
    """Return the facts that the points leave open and that change the interval of a count, each with both answers."""
    refits = refitted(fitted, noise_ratio=noise_ratio)
    facts = open_facts(fitted, [at_cores(conditions, compared.cores)], noise_ratio=noise_ratio, refits=refits)
    least_cores = {
        answer: next(
            (
                count.cores
                for count, chance in zip(counts, _chances(refit, goal, counts), strict=True)
                if chance >= goal.confidence_ratio
            ),
            None,
        )
        for answer, refit in (refits.items() if facts else ())
    }
    return tuple(FactAnswer(fact=fact, least_cores=least_cores) for fact in facts)


def _chances(fitted: FittedRouter, goal: Goal, counts: Sequence[Count]) -> tuple[float, ...]:
    conditions = _conditions(fitted, goal)
    return fitted.chances([at_cores(conditions, count.cores) for count in counts], goal.rate_pps)


def _cap_text(fitted: FittedRouter, point: Point, goal: Goal, chance: float) -> str:
    """Say that links or cards carry less than the goal; empty if they carry it.

    A limit that rows show, and nobody states, is known as well as they are: it refutes no goal that has a ``chance``.
    """
    least_pps = goal.rate_pps * (1.0 - TOLERANCE_RATIO)
    rest = f"of {goal.frames.name}, the target is {goal.rate_pps / 1e6:.4g} Mpps"
    kinds = {cap.kind: cap for cap in fitted.caps.caps}
    if point.line_rate_pps < least_pps:
        ports = f"{point.ports} x " if point.ports > 1 else ""
        links = f"the links, {ports}{format_bps(point.link_bps or math.nan)}"
        if shown := kinds.get("bits"):
            links = f"the links, which fill at {format_bps(shown.rate)} in rows of the table"
            if chance > _SMALL_CHANCE:
                return ""
        return f"{links}, carry at most {point.line_rate_pps / 1e6:.4g} Mpps {rest}"
    if point.nic_cap_pps is not None and point.nic_cap_pps < least_pps:
        if "frames" in kinds and chance > _SMALL_CHANCE:
            return ""
        return f"the cards take in at most {point.nic_cap_pps / 1e6:.4g} Mpps {rest}"
    return ""
