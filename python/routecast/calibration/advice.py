"""The next measurements for each series of a file, and whether the known ones suffice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from routecast.calibration._fit import fit
from routecast.calibration.fitted import CONFIDENCE_RATIO, MOST_CORES, FittedRouter, at_cores, sparse_counts
from routecast.calibration.next_points import NextPoint
from routecast.evaluate.points import Point
from routecast.load.frames import FrameMix
from routecast.load.offered import IntendedRate
from routecast.quantity.schema import field, value

__all__ = ["Advice", "AdviceQuestion", "advise"]

Size: TypeAlias = tuple[float, FrameMix | None]


@value
class AdviceQuestion:
    """The targets of the advice: all held-out conditions, or these cores and frames."""

    cores: tuple[int, ...] = field(
        "Empty: those of the rows that do not calibrate; without such rows all up to ``most_cores``", default=()
    )
    frames: tuple[FrameMix, ...] = field("Empty: those of the rows", default=())
    goal: IntendedRate | None = field("Rate whose least number of cores is to be known instead", default=None)
    # Cores that there are to measure on; None: as many as rows or ``cores`` name, and twice those that calibrated where
    # nothing else does.
    most_cores: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The next measurements of a series, and the precision of the targets before them.

    ``half_width_ratio`` is half the 95 % interval over the rate at the least precise target; with a goal, that of the
    number of cores. ``least_cores`` forward the goal with a probability of 95 %; None: none does, and then there is no
    number whose interval ``half_width_ratio`` could be (null in JSON). A goal ``is_hopeless`` that no count forwards
    with a probability of 5 %: then there is nothing to measure for it.
    """

    series: str
    targets: tuple[Point, ...]
    half_width_ratio: float
    points: tuple[NextPoint, ...]
    warnings: tuple[str, ...]
    goal_pps: float | None = None
    least_cores: int | None = None
    is_hopeless: bool = False

    @property
    def answer(self) -> str:
        """The least cores for the goal in words; empty without one."""
        if self.goal_pps is None:
            return ""
        goal = f"{self.goal_pps / 1e6:.4g} Mpps"
        sure = f"with a probability of {CONFIDENCE_RATIO:.0%}"
        if self.least_cores is None:
            hopeless = ": it is out of reach, and no measurement is named" if self.is_hopeless else ""
            return f"No number of cores up to {MOST_CORES} forwards {goal} {sure}{hopeless}"
        few = self.least_cores
        return f"{few} core{'s' if few > 1 else ''} {'are' if few > 1 else 'is'} the least for {goal} {sure}"

    @property
    def is_in_reach(self) -> bool:
        """Whether some number of cores forwards the goal with a probability of 95 %; true without a goal."""
        return self.goal_pps is None or self.least_cores is not None

    def is_enough(self, until_ratio: float) -> bool:
        """Whether every target is known to this precision; a missing number of cores is not known."""
        return self.is_in_reach and self.half_width_ratio <= until_ratio

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "series": self.series,
            "targets": [
                {"cores": point.cores, "frame_bytes": point.frame_bytes, "flows": point.flows} for point in self.targets
            ],
            "half_width_ratio": self.half_width_ratio if self.is_in_reach else None,
            "next": [point.to_json() for point in self.points],
            "warnings": list(self.warnings),
            **(
                {}
                if self.goal_pps is None
                else {"goal_pps": self.goal_pps, "least_cores": self.least_cores, "answer": self.answer}
            ),
        }


def advise(
    points: Sequence[Point], question: AdviceQuestion | None = None, *, n: int = 3, noise_ratio: float | None = None
) -> tuple[Advice, ...]:
    """Return for each series the next ``n`` measurements.

    Rows that calibrate are known; of the others only the conditions count.

    Raises FitProblem: a series has no point that calibrates.
    """
    advice = []
    for name in dict.fromkeys(point.series for point in points):
        own = [point for point in points if point.series == name]
        fitted = fit([point for point in own if point.calibrate], series=name, noise_ratio=noise_ratio)
        advice.append(_advise(fitted, own, question or AdviceQuestion(), n))
    return tuple(advice)


def _advise(fitted: FittedRouter, own: Sequence[Point], question: AdviceQuestion, n: int) -> Advice:
    held_out = [point for point in own if not point.calibrate]
    named = max([0, *question.cores, *(point.cores for point in held_out)])
    most = question.most_cores or named or 2 * max(point.cores for point in fitted.points)
    sizes = dict.fromkeys(_size(mix) for mix in question.frames) or dict.fromkeys(
        (point.frame_bytes, point.frame_mix) for point in own
    )
    first, *_ = sizes
    counts = question.cores or tuple(range(1, most + 1))
    is_by_rows = bool(held_out) and not question.cores and not question.frames
    targets = held_out if is_by_rows else [_at(own[0], k, size) for k in counts for size in sizes]
    goal_pps = None
    if question.goal is not None:
        goal_pps = question.goal.pps(first[1] or FrameMix.fixed(round(first[0])))
        targets = [_at(own[0], k, first) for k in range(1, most + 1)]
    able = fitted.candidates(most, targets)
    least_cores = None if goal_pps is None else fitted.least_cores(targets[0], goal_pps)
    is_hopeless = False
    if goal_pps is not None and least_cores is None:
        counts_there = [at_cores(targets[0], k) for k in sparse_counts(MOST_CORES)]
        is_hopeless = max(fitted.chances(counts_there, goal_pps)) < 1.0 - CONFIDENCE_RATIO
    return Advice(
        series=fitted.series,
        targets=tuple(targets),
        half_width_ratio=fitted.half_width_ratio(targets, goal_pps=goal_pps),
        points=() if is_hopeless else fitted.next_points(n, able=able, targets=targets, goal_pps=goal_pps),
        warnings=fitted.warnings,
        goal_pps=goal_pps,
        least_cores=least_cores,
        is_hopeless=is_hopeless,
    )


def _size(mix: FrameMix) -> Size:
    return mix.mean_bytes, None if mix.is_fixed else mix


def _at(point: Point, cores: int, size: Size) -> Point:
    return replace(at_cores(point, cores), frame_bytes=size[0], frame_mix=size[1])
