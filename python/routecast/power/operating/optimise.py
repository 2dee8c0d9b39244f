"""The setting of a router that meets targets with the fewest watts, at one load or over a day."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from routecast.errors import ModelProblem, Problem
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.power.operating._search import (
    Appraised,
    ConfirmingRuns,
    Evaluate,
    Outlooks,
    SearchResult,
    Simulating,
    search,
    solving,
)
from routecast.power.operating._setting import Candidate, Choices, candidates, choices_of
from routecast.power.operating.day import DayPlan, Switching, plan_day
from routecast.power.operating.targets import NO_LOSS, Target
from routecast.progress import Progress
from routecast.quantity import format_pps
from routecast.quantity.schema import field, value
from routecast.router.files import build_router
from routecast.router.model import RouterModel

__all__ = ["Effort", "TunableRouter", "machine_of", "operating_point", "optimise_day", "why_none", "with_no_loss"]


def why_none(point: SearchResult, rate_pps: float) -> str:
    """Return a message that names the targets which no setting meets, the best values, and the nearest setting."""
    if not point.judged:
        largest = max(point.overloaded, key=lambda appraised: appraised.outlook.lossless_pps)
        return (
            f"every setting is overloaded at {format_pps(rate_pps)}: the most is "
            f"{format_pps(largest.outlook.lossless_pps)}, with {largest.candidate.setting}"
        )
    turned_down = {id(evaluated): check for evaluated, check in point.rejected}
    lines = []
    for number, target in enumerate(point.targets):
        if any(target.is_kept_by(evaluated.values[number]) for evaluated in point.judged):
            continue
        best = point.reachable(number)
        if best is None:
            lines.append(
                f"{target}: the evaluator knows this quantity of no setting: take --evaluator simulate, and trials "
                "that are long enough for frames to arrive (--duration)"
            )
        else:
            value = target.format_value(best.values[number])
            lines.append(f"{target}: the best reachable is {value}, with {best.setting}")
    if not lines:
        lines.append("each target is met by some setting, but no setting meets all of them")
        if any(evaluated.is_met for evaluated in point.judged):
            lines[0] = "settings that met all targets in the search do not in the longer check"
    nearest = point.nearest
    if nearest is not None:
        values = ", ".join(
            f"{target.quantity} {target.format_value(value)}"
            for target, value in zip(point.targets, nearest.values, strict=True)
        )
        check = turned_down.get(id(nearest))
        if check is not None:
            values = ", ".join(
                f"{target.quantity} {target.format_value(low)} to {target.format_value(high)}"
                for target, (_, low, high) in zip(point.targets, check.values, strict=True)
            )
        lines.append(f"nearest to all is {nearest.setting} with {values}")
    overloaded = f"; {len(point.overloaded)} more are overloaded" if point.overloaded else ""
    return f"no setting meets the targets{overloaded}\n  " + "\n  ".join(lines)


_CHECK_TIMES = 4.0
_LONGEST = 100.0
_LEAST_RATE = 1e-4


@value
class TunableRouter:
    """A router, the choices that its file offers, and the router in each setting."""

    model: RouterModel
    load: OfferedLoad | None
    choices: Choices
    candidates: tuple[Candidate, ...]


@value
class Effort:
    """How thoroughly settings are evaluated."""

    evaluator: Literal["simulate", "solve"] = field(
        "Evaluator of the search; its result is checked by simulation in either case", default="simulate"
    )
    duration_s: float = field(
        "Simulated time of a trial, s; replications of the check are four times as long", default=0.1
    )
    seed: int = field("Seed of the search; the check takes the following ones", default=1)
    replications: int = field("Replications of the check, at least 2; 0 leaves it out", default=5)
    is_exhaustive: bool = field(
        "Evaluate every setting that is not overloaded, for the complete Pareto front", default=False
    )
    workers: int = field("Threads; 0 for one per core of this machine", default=0)

    def __post_init__(self) -> None:
        if self.replications == 1 or self.replications < 0:
            message = f"got {self.replications}: an interval needs at least 2; 0 leaves the check out"
            raise ModelProblem("operating point", [Problem("replications", message)])

    @property
    def threads(self) -> int:
        """Number of threads."""
        return self.workers or os.cpu_count() or 1

    def evaluate(self, stop: threading.Event, *, times: float = 1.0) -> Evaluate:
        """Return the evaluator for trials of ``times`` the duration."""
        if self.evaluator == "solve":
            return solving
        return Simulating(self.duration_s * times, self.seed, stop)

    def check(self, stop: threading.Event, *, times: float = 1.0) -> ConfirmingRuns | None:
        """Return the check for replications of ``times`` the duration; None without a check."""
        if self.replications == 0:
            return None
        seeds = tuple(range(self.seed + 1, self.seed + 1 + self.replications))
        return ConfirmingRuns(_CHECK_TIMES * self.duration_s * times, seeds, stop)

    def outlooks(self, load: OfferedLoad, targets: Sequence[Target], *, peak_pps: float) -> Outlooks:
        """Return the outlooks of candidates, for this evaluator."""
        allowed = next((target.limit for target in targets if target.quantity == "loss"), 1.0)

        def noise_ratio(at: OfferedLoad) -> float:
            if self.evaluator == "solve":
                return 0.0
            return Simulating(self.duration_s * _stretch(at.rate_pps, peak_pps)).noise_ratio(at)

        return Outlooks(load, loss_ratio=allowed, noise_ratio=noise_ratio)


def machine_of(
    document: Mapping[str, Any],
    *,
    subject: str = "router file",
    folder: Path | None = None,
    pool: str = "",
    lingers_s: Sequence[float] = (),
    frames: FrameMix | None = None,
) -> TunableRouter:
    """Return a router with the choices that its document offers.

    Parameters
    ----------
    document : mapping
        Content of the router file.
    subject, folder
        As of :func:`routecast.router.files.parse_router`.
    pool, lingers_s
        As of :func:`routecast.power.operating._setting.choices_of`.
    frames
        As of :func:`routecast.router.files.read_router_and_load`.

    Raises
    ------
    routecast.errors.FileProblem
        The document is no router.
    routecast.errors.ModelProblem
        The router has no power states, or offers too many settings.
    """
    model, load = build_router(document, subject=subject, folder=folder, frames=frames)
    choices = choices_of(model, is_built="builder" in document, pool=pool, lingers_s=lingers_s)
    offered = candidates(document, model, choices, subject=subject, folder=folder, frames=frames)
    return TunableRouter(model=model, load=load, choices=choices, candidates=offered)


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
        Without a target on loss, no frame may be lost.
    effort : Effort or None
    on_progress : callable or None

    Raises
    ------
    routecast.errors.ModelProblem
        The load does not fit the router.
    """
    effort = effort or Effort()
    wanted = with_no_loss(targets)
    outlooks = effort.outlooks(load, wanted, peak_pps=load.rate_pps)
    stop = threading.Event()
    return search(
        [
            Appraised(candidate=candidate, outlook=outlooks.of(candidate, load.rate_pps))
            for candidate in machine.candidates
        ],
        load,
        wanted,
        effort.evaluate(stop),
        check=effort.check(stop),
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

    Trials at lower rates are longer, up to a hundred times, so that each has as many frames as a trial at the peak.
    Steps without traffic are evaluated at a ten-thousandth of the peak.

    Parameters
    ----------
    machine : TunableRouter
    load : OfferedLoad
        Frames, flows and arrivals.
    rates_pps : sequence of float
        Intended load of each step.
    targets, effort, on_progress
        As of :func:`operating_point`.
    step_s : float
        Length of a step.
    switching : Switching or None
        None: switching is free and possible at every step.

    Raises
    ------
    routecast.errors.ModelProblem
        A rate is missing or negative, or all are 0.
    routecast.errors.CriterionFailed
        No setting meets the targets in some step.
    """
    wrong = [step for step, rate in enumerate(rates_pps) if not (math.isfinite(rate) and rate >= 0.0)]
    problems = [Problem(f"step {step}", f"got {rates_pps[step]} frames/s: fill what is missing") for step in wrong]
    if not problems and not any(rates_pps):
        problems = [Problem("", "there is no traffic on this day")]
    if problems:
        raise ModelProblem("day", problems)
    effort = effort or Effort()
    wanted = with_no_loss(targets)
    peak_pps = max(rates_pps)
    stop = threading.Event()

    def check(rate_pps: float) -> ConfirmingRuns:
        verdict = effort.check(stop, times=_stretch(rate_pps, peak_pps))
        assert verdict is not None
        return verdict

    return plan_day(
        machine.candidates,
        load,
        [max(rate, _LEAST_RATE * peak_pps) for rate in rates_pps],
        wanted,
        effort.outlooks(load, wanted, peak_pps=peak_pps),
        lambda rate_pps: effort.evaluate(stop, times=_stretch(rate_pps, peak_pps)),
        step_s=step_s,
        switching=switching or Switching(),
        check=check if effort.replications else None,
        workers=effort.threads,
        stop=stop,
        on_progress=on_progress,
    )


def _stretch(rate_pps: float, peak_pps: float) -> float:
    """Return the duration of a trial at a rate, relative to that at the peak."""
    return min(max(peak_pps / rate_pps, 1.0), _LONGEST)
