"""The setting of a router that meets targets with the fewest watts, at one load or over a day."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.targets import NO_LOSS, Target
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.plan.power.operating._search import (
    BoundCalculator,
    BoundedCandidate,
    ConfirmationRuns,
    Evaluate,
    SearchResult,
    SimulationEvaluator,
    search,
    solve_candidate,
)
from routecast.plan.power.operating._setting import Candidate, Choices, candidates, choices_of
from routecast.plan.power.operating.day import DayPlan, Switching, plan_day
from routecast.progress import Progress
from routecast.quantity import format_pps
from routecast.quantity.schema import field, value
from routecast.router.files import build_router
from routecast.router.model import RouterModel

__all__ = [
    "Effort",
    "TunableRouter",
    "describe_unmet_targets",
    "operating_point",
    "optimise_day",
    "tunable_router",
    "with_no_loss",
]


def describe_unmet_targets(result: SearchResult, rate_pps: float) -> str:
    """Return a message with the targets that no setting meets, their best values, and the nearest setting."""
    if not result.judged:
        largest = max(result.overloaded, key=lambda bounded_candidates: bounded_candidates.bounds.lossless_pps)
        return (
            f"every setting is overloaded at {format_pps(rate_pps)}: the maximum is "
            f"{format_pps(largest.bounds.lossless_pps)}, with {largest.candidate.setting}"
        )
    failed_checks = {id(evaluated): check for evaluated, check in result.rejected}
    lines = []
    for number, target in enumerate(result.targets):
        if any(target.is_met_by(evaluated.values[number]) for evaluated in result.judged):
            continue
        best = result.reachable(number)
        if best is None:
            lines.append(
                f"{target}: the quantity is unknown for every setting: use --evaluator simulate, and trials long "
                "enough for frames to arrive (--duration)"
            )
        else:
            value = target.format_value(best.values[number])
            lines.append(f"{target}: the best reachable is {value}, with {best.setting}")
    if not lines:
        lines.append("each target is met by some setting, but no setting meets all of them")
        if any(evaluated.is_met for evaluated in result.judged):
            lines[0] = "settings met all targets in the search but not in the longer check"
    nearest = result.nearest
    if nearest is not None:
        values = ", ".join(
            f"{target.quantity} {target.format_value(value)}"
            for target, value in zip(result.targets, nearest.values, strict=True)
        )
        check = failed_checks.get(id(nearest))
        if check is not None:
            values = ", ".join(
                f"{target.quantity} {target.format_value(low)} to {target.format_value(high)}"
                for target, (_, low, high) in zip(result.targets, check.values, strict=True)
            )
        lines.append(f"the setting nearest to all targets is {nearest.setting} with {values}")
    overloaded = f"; {len(result.overloaded)} more are overloaded" if result.overloaded else ""
    return f"no setting meets the targets{overloaded}\n  " + "\n  ".join(lines)


_CHECK_DURATION_RATIO = 4.0
_MAX_STRETCH = 100.0
_MIN_RATE_RATIO = 1e-4


@value
class TunableRouter:
    """A router, the choices of its file, and the router in each setting."""

    model: RouterModel
    load: OfferedLoad | None
    choices: Choices
    candidates: tuple[Candidate, ...]


@value
class Effort:
    """Evaluator, durations, seeds and threads of the search and of the check."""

    evaluator: Literal["simulate", "solve"] = field(
        "Evaluator of the search; simulation checks the result of either", default="simulate"
    )
    duration_s: float = field(
        "Simulated time of a trial, s; a replication of the check is four times as long; a trace is simulated whole",
        default=0.1,
    )
    seed: int = field("Seed of the search; the check takes the following seeds", default=1)
    replications: int = field("Replications of the check, at least 2, or 0 for no check", default=5)
    is_exhaustive: bool = field(
        "Evaluate every setting that is not overloaded, for the complete Pareto front", default=False
    )
    workers: int = field("Number of threads; 0 for one per core of this machine", default=0)

    def __post_init__(self) -> None:
        if self.replications == 1 or self.replications < 0:
            message = f"got {self.replications}: an interval needs at least 2; 0 omits the check"
            raise ModelProblem("operating point", [Problem("replications", message)])

    @property
    def threads(self) -> int:
        """Number of threads."""
        return self.workers or os.cpu_count() or 1

    def evaluate(self, stop: threading.Event, *, duration_ratio: float = 1.0) -> Evaluate:
        """Return the evaluator for trials of ``duration_ratio`` times the duration."""
        if self.evaluator == "solve":
            return solve_candidate
        return SimulationEvaluator(self.duration_s * duration_ratio, self.seed, stop)

    def check(
        self, stop: threading.Event, load: OfferedLoad | None = None, *, duration_ratio: float = 1.0
    ) -> ConfirmationRuns | None:
        """Return the check with ``duration_ratio`` times longer replications; None without a check.

        ``load``: its load, whose trace is simulated whole.
        """
        if self.replications == 0:
            return None
        seeds = tuple(range(self.seed + 1, self.seed + 1 + self.replications))
        duration_s = _CHECK_DURATION_RATIO * self.duration_s * duration_ratio
        return ConfirmationRuns(duration_s if load is None else load.trial_s(duration_s), seeds, stop)

    def bound_calculator(self, load: OfferedLoad, targets: Sequence[Target], *, peak_pps: float) -> BoundCalculator:
        """Return the calculator of the bounds of candidates for this evaluator."""
        allowed = next((target.limit for target in targets if target.quantity == "loss"), 1.0)

        def noise_ratio(at: OfferedLoad) -> float:
            if self.evaluator == "solve":
                return 0.0
            return SimulationEvaluator(self.duration_s * _duration_ratio(at.rate_pps, peak_pps)).noise_ratio(at)

        return BoundCalculator(load, loss_ratio=allowed, noise_ratio=noise_ratio)


def tunable_router(
    document: Mapping[str, Any],
    *,
    subject: str = "router file",
    folder: Path | None = None,
    pool: str = "",
    lingers_s: Sequence[float] = (),
    frames: FrameMix | None = None,
) -> TunableRouter:
    """Return a router with the choices of its document.

    Parameters
    ----------
    document : mapping
        Content of the router file.
    subject, folder
        As in :func:`routecast.router.files.parse_router`.
    pool, lingers_s
        As in :func:`routecast.plan.power.operating._setting.choices_of`.
    frames
        As in :func:`routecast.router.files.read_router_and_load`.

    Raises
    ------
    routecast.errors.FileProblem
        The document is no router.
    routecast.errors.ModelProblem
        The router has no power states, or offers too many settings.
    """
    model, load = build_router(document, subject=subject, folder=folder, frames=frames)
    choices = choices_of(model, is_built="builder" in document, pool=pool, lingers_s=lingers_s)
    setting_candidates = candidates(document, model, choices, subject=subject, folder=folder, frames=frames)
    return TunableRouter(model=model, load=load, choices=choices, candidates=setting_candidates)


def with_no_loss(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the targets, and the target of no loss if none of them is on loss."""
    return (*targets, *(() if any(target.quantity == "loss" for target in targets) else (NO_LOSS,)))


def operating_point(
    machine: TunableRouter,
    load: OfferedLoad,
    targets: Sequence[Target],
    effort: Effort | None = None,
    *,
    on_progress: Progress | None = None,
) -> SearchResult:
    """Return the setting that meets the targets at a load with the fewest watts, checked by simulation.

    Parameters
    ----------
    machine : TunableRouter
    load : OfferedLoad
    targets : sequence of Target
        Targets; without a target on loss, no frame may be lost.
    effort : Effort or None
    on_progress : callable or None

    Raises
    ------
    routecast.errors.ModelProblem
        The load does not fit the router.
    """
    effort = effort or Effort()
    all_targets = with_no_loss(targets)
    bound_calculator = effort.bound_calculator(load, all_targets, peak_pps=load.rate_pps)
    stop = threading.Event()
    return search(
        [
            BoundedCandidate(candidate=candidate, bounds=bound_calculator(candidate, load.rate_pps))
            for candidate in machine.candidates
        ],
        load,
        all_targets,
        effort.evaluate(stop),
        check=effort.check(stop, load),
        workers=effort.threads,
        is_exhaustive=effort.is_exhaustive,
        stop=stop,
        on_progress=on_progress,
    )


def optimise_day(
    machine: TunableRouter,
    load: OfferedLoad,
    rates_pps: Sequence[float],
    targets: Sequence[Target],
    effort: Effort | None = None,
    *,
    step_s: float,
    switching: Switching | None = None,
    on_progress: Progress | None = None,
) -> DayPlan:
    """Return the plan over a day with the least energy, switchings included, checked by simulation.

    Trials at lower rates are up to a hundred times longer, so that each has as many frames as a trial at the peak.
    A step without traffic is evaluated at a ten-thousandth of the peak rate.

    Parameters
    ----------
    machine : TunableRouter
    load : OfferedLoad
        Frames, flows and arrivals.
    rates_pps : sequence of float
        Intended load of each step.
    targets, effort, on_progress
        As in :func:`operating_point`.
    step_s : float
        Length of a step.
    switching : Switching or None
        None: switching is free and possible at every step.

    Raises
    ------
    routecast.errors.ModelProblem
        A rate is missing or negative, or all rates are 0.
    routecast.errors.CriterionFailed
        No setting meets the targets in some step.
    """
    invalid_steps = [step for step, rate in enumerate(rates_pps) if not (math.isfinite(rate) and rate >= 0.0)]
    problems = [
        Problem(f"step {step}", f"got {rates_pps[step]} frames/s: fill missing steps") for step in invalid_steps
    ]
    if not problems and not any(rates_pps):
        problems = [Problem("", "the day has no traffic")]
    if problems:
        raise ModelProblem("day", problems)
    effort = effort or Effort()
    all_targets = with_no_loss(targets)
    peak_pps = max(rates_pps)
    stop = threading.Event()

    def check(rate_pps: float) -> ConfirmationRuns:
        verdict = effort.check(stop, load.at(rate_pps), duration_ratio=_duration_ratio(rate_pps, peak_pps))
        assert verdict is not None
        return verdict

    return plan_day(
        machine.candidates,
        load,
        [max(rate, _MIN_RATE_RATIO * peak_pps) for rate in rates_pps],
        all_targets,
        effort.bound_calculator(load, all_targets, peak_pps=peak_pps),
        lambda rate_pps: effort.evaluate(stop, duration_ratio=_duration_ratio(rate_pps, peak_pps)),
        step_s=step_s,
        switching=switching or Switching(),
        check=check if effort.replications else None,
        workers=effort.threads,
        stop=stop,
        on_progress=on_progress,
    )


def _duration_ratio(rate_pps: float, peak_pps: float) -> float:
    """Return the duration of a trial at a rate, relative to that at the peak."""
    return min(max(peak_pps / rate_pps, 1.0), _MAX_STRETCH)
