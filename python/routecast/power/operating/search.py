"""The search: best bound first, until nothing that is left can need fewer watts than the best found.

The order and the stopping rule decide the answer, not the threads: trials are looked at in the order of the bounds, and
those that were run ahead of their turn in vain are not looked at. So one seed gives one answer on any machine.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace

from routecast.evaluate.executor import Threads, answer_of
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.power.operating.bound import Outlook
from routecast.power.operating.candidates import Candidate
from routecast.power.operating.evaluation import Check, Checked, Evaluate
from routecast.power.operating.setting import Setting
from routecast.power.operating.targets import Target
from routecast.quantity.schema import field, value

__all__ = ["Appraised", "Found", "Judged", "Progress", "judge", "latency_quantity", "search"]


# Judged: a candidate with its trial, what the targets say of it, and the front of those that nothing beats.


@value
class Judged:
    """A candidate that was evaluated."""

    candidate: Candidate
    least_w: float = field("Bound on its power that was known before, W")
    power_w: float = field("Mean power, W; NaN where the trial gives none")
    values: tuple[float, ...] = field("What the trial shows of each target's quantity; NaN where unknown")
    excess: float = field(
        "How far the worst of them is beyond its limit, as a share of the limit; 0 where all targets are met"
    )
    trial: Trial | None = field("None where no trial came to a steady state")

    @property
    def setting(self) -> Setting:
        """The setting of the candidate."""
        return self.candidate.setting

    @property
    def is_met(self) -> bool:
        """Whether all targets are met."""
        return self.excess == 0.0

    def latency_s(self, quantity: str) -> float:
        """Return a quantity of the latency, NaN where unknown."""
        if self.trial is None or self.trial.latency is None:
            return math.nan
        return float(getattr(self.trial.latency, f"{quantity}_s"))


def judge(candidate: Candidate, trial: Trial | None, targets: Sequence[Target], *, least_w: float = 0.0) -> Judged:
    """Return what the targets say of a candidate's trial; without a trial none is met."""
    if trial is None:
        unknown = tuple(math.nan for _ in targets)
        return Judged(
            candidate=candidate, least_w=least_w, power_w=math.nan, values=unknown, excess=math.inf, trial=None
        )
    values = tuple(target.value(trial) for target in targets)
    excess = max((target.excess(value) for target, value in zip(targets, values, strict=True)), default=0.0)
    return Judged(
        candidate=candidate,
        least_w=least_w,
        power_w=math.nan if trial.power is None else trial.power.mean_w,
        values=values,
        excess=excess,
        trial=trial,
    )


def latency_quantity(targets: Iterable[Target]) -> str:
    """Return the quantity of the latency that watts are weighed against: that of the first target on one, or p99."""
    return next((target.quantity for target in targets if target.quantity != "loss"), "p99")


def front_of(judged: Iterable[Judged], targets: Sequence[Target]) -> tuple[Judged, ...]:
    """Return the Pareto front of watts against latency, in rising watts, of those that keep the target on loss.

    Parameters
    ----------
    judged : iterable of Judged
    targets : sequence of Target
        The latency is that of :func:`latency_quantity`.
    """
    quantity = latency_quantity(targets)
    kept = [
        one
        for one in judged
        if math.isfinite(one.power_w)
        and math.isfinite(one.latency_s(quantity))
        and all(
            target.is_kept_by(value)
            for target, value in zip(targets, one.values, strict=True)
            if target.quantity == "loss"
        )
    ]
    front: list[Judged] = []
    for one in sorted(kept, key=lambda one: (one.power_w, one.latency_s(quantity))):
        if not front or one.latency_s(quantity) < front[-1].latency_s(quantity):
            front.append(one)
    return tuple(front)


Progress = Callable[[int, int, str], object]
_NEAR = 0.05
"""Candidates this close above a limit are checked too: noise may have pushed them over."""


@value
class Appraised:
    """A candidate with what is known of it before it is evaluated."""

    candidate: Candidate
    outlook: Outlook


@value
class Found:
    """What a search came to."""

    targets: tuple[Target, ...]
    best: Judged | None = field("The setting with the fewest watts that meets all targets; None if none does")
    check: Checked | None = field("Its check; None without one")
    judged: tuple[Judged, ...] = field("All that were evaluated, in the order of their bounds")
    rejected: tuple[tuple[Judged, Checked], ...] = field(
        "Settings with fewer watts in the search that their check turned down"
    )
    overloaded: tuple[Appraised, ...] = field("Settings that the closed form rules out")
    # All settings, and those not evaluated because their bound is above the best.
    enumerated: int
    pruned: int
    is_whole: bool = field("Whether the search came to its end", default=True)

    @property
    def front(self) -> tuple[Judged, ...]:
        """Pareto front of watts against latency among those that were evaluated."""
        return front_of(self.judged, self.targets)

    @property
    def nearest(self) -> Judged | None:
        """What comes nearest to the targets: the least excess, then the fewest watts."""
        known = [one for one in self.judged if math.isfinite(one.excess)]
        return min(known, key=lambda one: (one.excess, one.power_w), default=None)

    @property
    def unknown(self) -> int:
        """How many evaluated settings have a quantity that the evaluator does not know."""
        return sum(any(math.isnan(value) for value in one.values) for one in self.judged)

    def reachable(self, number: int) -> Judged | None:
        """Return the evaluated setting with the least value of target ``number``."""
        known = [one for one in self.judged if not math.isnan(one.values[number])]
        return min(known, key=lambda one: (one.values[number], one.power_w), default=None)


def search(
    appraised: Sequence[Appraised],
    load: OfferedLoad,
    targets: Sequence[Target],
    evaluate: Evaluate,
    *,
    check: Check | None = None,
    workers: int = 1,
    is_exhaustive: bool = False,
    stop: threading.Event | None = None,
    on_progress: Progress | None = None,
) -> Found:
    """Return the candidate with the fewest watts that meets the targets.

    Parameters
    ----------
    appraised : sequence of Appraised
        All candidates.
    load : OfferedLoad
    targets : sequence of Target
    evaluate : callable
    check : Check or None
        Simulations that a candidate must pass to win.
    workers : int
        Threads; evaluators let go of the interpreter's lock.
    is_exhaustive : bool
        Evaluate all that are not overloaded, for a whole Pareto front.
    stop : threading.Event or None
        Set on Ctrl-C, for simulations under way; what was found until then is returned.
    on_progress : callable or None
        Called with how many were evaluated, how many could be, and what is under way.
    """
    run = _Search(appraised, load, tuple(targets), check, is_exhaustive=is_exhaustive)
    said = on_progress or (lambda _done, _total, _what: None)
    with Threads(max(workers, 1)) as pool:
        trials = _ahead(pool, run.queue, load, evaluate, workers)
        try:
            while True:
                contender = run.contender()
                if contender is not None and run.is_settled(contender):
                    if check is None:
                        return run.found(contender)
                    said(len(run.judged), len(run.queue), f"check {contender.setting}")
                    runs = [pool.submit(one, contender.candidate, load) for one in check.runs()]
                    verdict = check.verdict([answer_of(one) for one in runs], run.targets)
                    if verdict.is_met:
                        return run.found(contender, verdict)
                    run.rejected.append((contender, verdict))
                elif len(run.judged) < len(run.queue):
                    one = run.queue[len(run.judged)]
                    said(len(run.judged), len(run.queue), str(one.candidate.setting))
                    trial = next(trials)
                    run.judged.append(judge(one.candidate, trial, run.targets, least_w=one.outlook.least_w))
                else:
                    return run.found(None)
        except KeyboardInterrupt:
            if stop is not None:
                stop.set()
            return run.found(min(run.met(), key=_watts, default=None), is_whole=False)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _watts(one: Judged) -> float:
    return one.power_w


class _Search:
    """The state of a search."""

    def __init__(
        self,
        appraised: Sequence[Appraised],
        load: OfferedLoad,
        targets: tuple[Target, ...],
        check: Check | None,
        *,
        is_exhaustive: bool,
    ) -> None:
        self.load, self.targets, self.check, self.is_exhaustive = load, targets, check, is_exhaustive
        self.overloaded = tuple(one for one in appraised if one.outlook.is_overloaded)
        kept = [one for one in appraised if not one.outlook.is_overloaded]
        self.queue = sorted(kept, key=lambda one: one.outlook.least_w)  # stable: ties stay in order
        self.count = len(appraised)
        self.judged: list[Judged] = []
        self.rejected: list[tuple[Judged, Checked]] = []

    def met(self) -> list[Judged]:
        turned_down = {id(one) for one, _ in self.rejected}
        return [one for one in self.judged if one.is_met and id(one) not in turned_down]

    def contender(self) -> Judged | None:
        """Return the one with the fewest watts that meets the targets, or nearly, and was not turned down."""
        turned_down = {id(one) for one, _ in self.rejected}
        most = _NEAR if self.check is not None else 0.0
        open_ones = [
            one
            for one in self.judged
            if one.excess <= most and math.isfinite(one.power_w) and id(one) not in turned_down
        ]
        return min(open_ones, key=_watts, default=None)

    def is_settled(self, contender: Judged) -> bool:
        """Whether no candidate that is left can need fewer watts than the contender."""
        if len(self.judged) == len(self.queue):
            return True
        return not self.is_exhaustive and contender.power_w <= self.queue[len(self.judged)].outlook.least_w

    def found(self, best: Judged | None, check: Checked | None = None, *, is_whole: bool = True) -> Found:
        if best is not None and check is not None and not best.is_met:
            # The check has the last word on what noise had pushed above a limit.
            best, before = replace(best, excess=0.0), best
            self.judged[self.judged.index(before)] = best
        return Found(
            targets=self.targets,
            best=best,
            check=check,
            judged=tuple(self.judged),
            rejected=tuple(self.rejected),
            overloaded=self.overloaded,
            enumerated=self.count,
            pruned=len(self.queue) - len(self.judged) if is_whole else 0,
            is_whole=is_whole,
        )


def _ahead(
    pool: Threads, queue: Sequence[Appraised], load: OfferedLoad, evaluate: Evaluate, workers: int
) -> Iterator[Trial | None]:
    """Yield the trials of a queue in its order, with as many under way as there are workers."""
    under_way: deque[Future[Trial | None]] = deque()
    rest = iter(queue)
    while True:
        while len(under_way) < max(workers, 1) and (one := next(rest, None)) is not None:
            under_way.append(pool.submit(evaluate, one.candidate, load))
        if not under_way:
            return
        yield answer_of(under_way.popleft())
