"""The next measurements for each series of a file, and whether the present ones suffice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from routecast.calibration._fit import fit
from routecast.calibration.fitted import CONFIDENCE_RATIO, MAX_CORES, FittedRouter, at_cores, sparse_counts
from routecast.calibration.next_points import NextPoint
from routecast.errors import QuantityProblem
from routecast.evaluate.plain import plain
from routecast.evaluate.points import Point
from routecast.evaluate.targets import Target as Bound
from routecast.load.frames import FrameMix
from routecast.load.offered import IntendedRate
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from routecast.calibration.latency import LatencyAdvice

__all__ = ["Advice", "AdviceQuestion", "advise"]

FrameSize: TypeAlias = tuple[float, FrameMix | None]


@value
class AdviceQuestion:
    """The targets of the advice: all held-out conditions, or the given cores and frames."""

    cores: tuple[int, ...] = field(
        "Numbers of cores. Empty: those of the rows that do not calibrate, or else all up to ``most_cores``", default=()
    )
    frames: tuple[FrameMix, ...] = field("Frame sizes. Empty: those of the rows", default=())
    goal: IntendedRate | None = field("Rate for which the least number of cores is the target instead", default=None)
    # Cores available for measurements. None: the most of the rows or of ``cores``, or else twice those of calibration.
    most_cores: int | None = None
    latency: Bound | None = field("Bound on a latency at ``goal``, for which rows of latency are named", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The next measurements of a series, and the precision of the targets before them.

    ``half_width_ratio`` is half the 95 % interval over the rate at the least precise target, or with a goal that of the
    number of cores. ``least_cores`` forward the goal with a probability of 95 %; if no number does, it is None, and
    ``half_width_ratio`` is null in JSON. ``is_hopeless`` marks a goal that no number of cores forwards with a
    probability of 5 %, for which no measurement is advised. ``latency``: the rows of latency for a bound at the goal.
    """

    series: str
    targets: tuple[Point, ...]
    half_width_ratio: float
    points: tuple[NextPoint, ...]
    warnings: tuple[str, ...]
    goal_pps: float | None = None
    least_cores: int | None = None
    is_hopeless: bool = False
    latency: LatencyAdvice | None = None

    @property
    def answer(self) -> str:
        """Sentence on the least number of cores for the goal; empty without a goal."""
        if self.goal_pps is None:
            return ""
        goal = f"{self.goal_pps / 1e6:.4g} Mpps"
        probability = f"with a probability of {CONFIDENCE_RATIO:.0%}"
        if self.least_cores is None:
            hopeless = ": it is out of reach, and no measurement is named" if self.is_hopeless else ""
            return f"No number of cores up to {MAX_CORES} forwards {goal} {probability}{hopeless}"
        cores = self.least_cores
        return (
            f"{cores} core{'s' if cores > 1 else ''} {'are' if cores > 1 else 'is'} the least for {goal} {probability}"
        )

    @property
    def is_in_reach(self) -> bool:
        """Whether some number of cores forwards the goal with a probability of 95 %; true without a goal."""
        return self.goal_pps is None or self.least_cores is not None

    def is_enough(self, until_ratio: float) -> bool:
        """Whether every target, or the number of cores for a goal, is known with this precision."""
        return self.is_in_reach and self.half_width_ratio <= until_ratio

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "series": self.series,
            "targets": [
                plain({"cores": point.cores, "frame_bytes": point.frame_bytes, "flows": point.flows})
                for point in self.targets
            ],
            "half_width_ratio": self.half_width_ratio if self.is_in_reach else None,
            "next": [point.to_json() for point in self.points],
            "warnings": list(self.warnings),
            **(
                {}
                if self.goal_pps is None
                else plain({"goal_pps": self.goal_pps, "least_cores": self.least_cores, "answer": self.answer})
            ),
            **({} if self.latency is None else {"latency": self.latency.to_json()}),
        }


def advise(
    points: Sequence[Point], question: AdviceQuestion | None = None, *, n: int = 3, noise_ratio: float | None = None
) -> tuple[Advice, ...]:
    """Return the next ``n`` measurements of each series.

    Rows that calibrate are the present measurements. Of other rows only the conditions count.

    Raises FitProblem: a series has no point that calibrates. Raises QuantityProblem: a bound on a latency has no goal,
    or is on a quantity that is never predicted.
    """
    if question is not None and question.latency is not None and question.goal is None:
        raise QuantityProblem(str(question.latency), "a bound on the latency is kept at a rate: give it with --goal")
    advice = []
    for name in dict.fromkeys(point.series for point in points):
        series_points = [point for point in points if point.series == name]
        fitted = fit([point for point in series_points if point.calibrate], series=name, noise_ratio=noise_ratio)
        advice.append(_advise(fitted, series_points, question or AdviceQuestion(), n))
    return tuple(advice)


def _advise(fitted: FittedRouter, series_points: Sequence[Point], question: AdviceQuestion, n: int) -> Advice:
    held_out = [point for point in series_points if not point.calibrate]
    named_cores = max([0, *question.cores, *(point.cores for point in held_out)])
    max_cores = question.most_cores or named_cores or 2 * max(point.cores for point in fitted.points)
    sizes = dict.fromkeys(_frame_size(mix) for mix in question.frames) or dict.fromkeys(
        (point.frame_bytes, point.frame_mix) for point in series_points
    )
    first, *_ = sizes
    counts = question.cores or tuple(range(1, max_cores + 1))
    has_targets_in_rows = bool(held_out) and not question.cores and not question.frames
    targets = (
        held_out
        if has_targets_in_rows
        else [_with_conditions(series_points[0], k, size) for k in counts for size in sizes]
    )
    goal_pps = None
    if question.goal is not None:
        goal_pps = question.goal.pps(first[1] or FrameMix.fixed(round(first[0])))
        targets = [_with_conditions(series_points[0], k, first) for k in range(1, max_cores + 1)]
    able = fitted.candidates(max_cores, targets)
    least_cores = None if goal_pps is None else fitted.least_cores(targets[0], goal_pps)
    is_hopeless = False
    if goal_pps is not None and least_cores is None:
        points_by_cores = [at_cores(targets[0], k) for k in sparse_counts(MAX_CORES)]
        is_hopeless = max(fitted.chances(points_by_cores, goal_pps)) < 1.0 - CONFIDENCE_RATIO
    latency = None
    if question.latency is not None and goal_pps is not None and not is_hopeless:
        from routecast.calibration.latency import advise_latency  # only where it is wanted

        latency = advise_latency(
            fitted,
            series_points,
            targets[0],
            question.latency,
            goal_pps,
            counts=question.cores or tuple(range(1, max(max_cores, least_cores or 1) + 1)),
            most_cores=max_cores,
        )
    return Advice(
        series=fitted.series,
        targets=tuple(targets),
        half_width_ratio=fitted.half_width_ratio(targets, goal_pps=goal_pps),
        points=() if is_hopeless else fitted.next_points(n, able=able, targets=targets, goal_pps=goal_pps),
        warnings=fitted.warnings,
        goal_pps=goal_pps,
        least_cores=least_cores,
        is_hopeless=is_hopeless,
        latency=latency,
    )


def _frame_size(mix: FrameMix) -> FrameSize:
    return mix.mean_bytes, None if mix.is_fixed else mix


def _with_conditions(point: Point, cores: int, size: FrameSize) -> Point:
    return replace(at_cores(point, cores), frame_bytes=size[0], frame_mix=size[1])
