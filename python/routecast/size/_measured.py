"""Sizing of a router from measured points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from routecast.calibration import FittedRouter
from routecast.calibration.carried import Carry, carried
from routecast.calibration.facts import open_facts, with_shared_queue
from routecast.calibration.fitted import TOLERANCE_RATIO, at_cores
from routecast.calibration.recipe import Recipe
from routecast.calibration.score import Prediction
from routecast.errors import FitProblem
from routecast.evaluate.points import Point, calibrating, describe_rates
from routecast.power.operating.targets import Target as Bound
from routecast.quantity import format_bps
from routecast.size._answer import Count, FactAnswer, LatencyAnswer, Sizing, Target, cores, evaluated_counts

_NORMAL = NormalDist()
_DOUBT = 0.05
"""A chance from a row alone below this, or above 1 less this, decides."""
_BEYOND_SD = 3.0
"""Standard deviations of the noise below a 95 % interval, from which a held-out row contradicts its prediction."""
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
        Bounds on the latency at the target, which a table of throughputs neither confirms nor refutes: the answer is
        the count for the throughput, and says that the latency was not measured.
    move : Carry or None
        Transfer to the host that is sized, if the points are from another host.

    Raises
    ------
    routecast.errors.FitProblem
        No point has a rate, there is no count, or the points belong to several series.
    """
    calibration_points = calibrating(points)
    held_out = [point for point in points if point not in calibration_points and math.isfinite(point.throughput_pps)]
    allowed = sorted(set(counts))
    if not allowed or allowed[0] < 1:
        raise FitProblem("", "give at least one number of cores to choose from, each 1 or more")
    fitted = _fitted(calibration_points, noise_ratio, move)
    evidence = Evidence.of(fitted, target, held_out) if move is None else Evidence()
    evaluated = evaluated_counts(
        allowed, lambda part: evidence.applied(_counts(fitted, target, part)), lambda count: _is_sure(count, target)
    )
    contradiction = fitted.contradictions[0] if fitted.contradictions else ""
    if contradiction:
        evaluated = tuple(replace(count, probability=None, probability_if_cores_limit=None) for count in evaluated)
    sufficient = [count for count in evaluated if _is_sure(count, target)]
    least, notes = next(iter(sufficient), None), list[str]()
    most_cores = at_cores(_at(fitted, target), allowed[-1])
    max_candidate_cores = min(allowed[-1], 2 * max(point.cores for point in calibration_points))
    candidates = fitted.candidates(max_candidate_cores, [most_cores])
    point_count = next_points if move is None else max(next_points, 2)
    if move is not None:
        candidates += [replace(point, throughput_pps=math.nan, calibrate=False) for point in fitted.points]
        factor = math.exp(2.0 * move.log_sd)
        notes.append(
            f"carried: {move.why}, within a factor of {factor:.3g} with 95 %; links and cards stay as they were"
        )
    humps = fitted.humps([] if least is None else [at_cores(_at(fitted, target), least.cores)])
    return Sizing(
        series=fitted.series,
        target=target,
        counts=evaluated,
        least=least,
        facts=_facts(fitted, target, evaluated, noise_ratio, move),
        next=fitted.next_points(point_count, able=candidates, targets=[most_cores], goal_pps=target.forwarded_pps),
        warnings=(
            *notes,
            *evidence.remarks,
            *fitted.warnings,
            *humps,
            *fitted.remarks([most_cores]),
            *describe_rates(points),
        ),
        bounds=tuple(bounds),
        recipe=Recipe(points=tuple(calibration_points), noise_ratio=noise_ratio) if move is None else None,
        conditions=_at(fitted, target),
        contradiction=contradiction,
        cap="" if least is not None else _cap_text(most_cores, target),
        latency=LatencyAnswer.not_measured(
            math.nan if least is None else fitted.service_s(least.cores, target.frames.mean_bytes)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCount:
    """A number of cores that was measured with the frames of the target.

    ``chance``: probability that a further measurement meets the target, from these rows alone.
    """

    cores: int
    rate_pps: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the rows with the frames of the target say of it by themselves.

    A measured number of cores that meets the target beyond noise is enough. One that misses it is not, and neither are
    fewer cores. Where a held-out row lies below its prediction by more than noise, nothing is known of more cores: the
    row shows a limit that the calibrating rows do not.

    ``measured``: in the order of cores; ``known_cores``: the most cores of which the calibration is not contradicted.
    """

    measured: tuple[MeasuredCount, ...] = ()
    known_cores: float = math.inf
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, fitted: FittedRouter, target: Target, held_out: Sequence[Point]) -> Evidence:
        """Collect the rows with the frames of the target: those that calibrate, and those that are held out."""
        frames = (target.frames.mean_bytes, None if target.frames.is_fixed else target.frames)
        rows = [point for point in (*fitted.points, *held_out) if (point.frame_bytes, point.frame_mix) == frames]
        logs: dict[int, list[float]] = {}
        for point in rows:
            logs.setdefault(point.working_cores, []).append(math.log(point.throughput_pps))
        measured = []
        for count, values in sorted(logs.items()):
            sd = fitted.noise_ratio * math.sqrt(1.0 + 1.0 / len(values))
            mean = math.fsum(values) / len(values)
            chance = _NORMAL.cdf((mean - math.log(target.forwarded_pps)) / sd)
            measured.append(MeasuredCount(cores=count, rate_pps=math.exp(mean), chance=chance))
        own = [point for point in held_out if point in rows]
        # A row that only an unseen ceiling explains shows one.
        below = [
            prediction
            for prediction in replace(fitted, hazard=0.0).predict(own)
            if prediction.measured < prediction.low_pps * math.exp(-_BEYOND_SD * fitted.noise_ratio)
        ]
        remarks = (
            f"the held-out row of {cores(p.point.working_cores)} ({p.measured / 1e6:.4g} Mpps) lies below its "
            f"prediction, {p.low_pps / 1e6:.4g} to {p.high_pps / 1e6:.4g} Mpps: something limits that the calibrating "
            "rows do not show, and more cores are not known; let the row calibrate"
            for p in below
        )
        contradicted = min((p.point.working_cores for p in below), default=math.inf)
        calibrated = (point.working_cores for point in fitted.points if point.working_cores < contradicted)
        return cls(
            measured=tuple(measured),
            known_cores=max(calibrated, default=0) if below else math.inf,
            remarks=tuple(remarks),
        )

    def applied(self, counts: Sequence[Count]) -> tuple[Count, ...]:
        """Return the counts with the probabilities that the rows allow."""
        return tuple(
            replace(
                count,
                probability=self._allowed(count, count.probability),
                probability_if_cores_limit=self._allowed(count, count.probability_if_cores_limit),
            )
            for count in counts
        )

    def _allowed(self, count: Count, probability: float | None) -> float | None:
        here = next((row for row in self.measured if row.cores == count.cores), None)
        if here is not None and not _DOUBT <= here.chance <= 1.0 - _DOUBT:
            return here.chance
        at_least = min((row.chance for row in self.measured if row.cores >= count.cores), default=1.0)
        if probability is None or count.cores > self.known_cores:
            return None if at_least > _DOUBT else at_least
        return min(probability, at_least) if at_least < _DOUBT else probability


def _cap_text(point: Point, target: Target) -> str:
    """Say that links or cards carry less than the target; empty if they carry it."""
    goal_pps = target.forwarded_pps * (1.0 - TOLERANCE_RATIO)
    carried = f"of {target.frames.name}, the target is {target.forwarded_pps / 1e6:.4g} Mpps"
    if point.line_rate_pps < goal_pps:
        ports = f"{point.ports} x " if point.ports > 1 else ""
        links = f"the links, {ports}{format_bps(point.link_bps or math.nan)}"
        return f"{links}, carry at most {point.line_rate_pps / 1e6:.4g} Mpps {carried}"
    if point.nic_cap_pps is not None and point.nic_cap_pps < goal_pps:
        return f"the cards take in at most {point.nic_cap_pps / 1e6:.4g} Mpps {carried}"
    return ""


def _fitted(points: Sequence[Point], noise_ratio: float | None, move: Carry | None) -> FittedRouter:
    fitted = Recipe(points=tuple(points), noise_ratio=noise_ratio).fitted()
    return fitted if move is None else carried(fitted, move)


def _counts(fitted: FittedRouter, target: Target, cores: Sequence[int]) -> tuple[Count, ...]:
    points = [at_cores(_at(fitted, target), count) for count in cores]
    chances = fitted.chances(points, target.forwarded_pps)
    bare_chances = fitted.chances(points, target.forwarded_pps, ceilings=False)
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
        for prediction, chance, bare in zip(fitted.predict(points), chances, bare_chances, strict=True)
    )


def _at(fitted: FittedRouter, target: Target) -> Point:
    """Return a point with the frames of the target, on the measured machine with the most cores."""
    model = max(fitted.points, key=lambda point: point.cores)
    mix = None if target.frames.is_fixed else target.frames
    return fitted.caps.applied(
        replace(model, frame_bytes=target.frames.mean_bytes, frame_mix=mix, throughput_pps=math.nan, calibrate=False)
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
