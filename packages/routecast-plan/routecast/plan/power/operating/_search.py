"""Search for the setting with the fewest watts: best bound first, until no bound is below the best power.

Candidates are evaluated by closed form or by simulation, all with the same random numbers, in the order of their
bounds. The search ignores trials that threads ran ahead and that the stopping rule does not reach, so that one seed
gives one answer on any machine.

The bound of a candidate needs no simulation. The work of a frame does not depend on scheduling: the unit that forwards
it spends at least its service time at active power. A unit is therefore active at least for the work that arrives, and
at other times draws no less than in its deepest allowed state. Contention, interrupts, polls and wake-ups only add
power (S5, S6, S11).
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

import numpy as np

from routecast.errors import RoutecastError, TransientProblem
from routecast.evaluate.executor import Threads, answer_of
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve, lossless_pps, rates_of
from routecast.evaluate.solve.flow import flow_graph
from routecast.evaluate.targets import Target
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.plan.power.operating._setting import Candidate, Setting
from routecast.progress import Progress
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel, TaskUnit

Evaluate = Callable[[Candidate, OfferedLoad], Trial | None]
"""Returns the trial of a candidate at a load; None if it reached no steady state."""

_MAX_DURATION_RATIO = 8.0


class StoppedError(RoutecastError):
    """A simulation was stopped; its result is not needed."""


def solve_candidate(candidate: Candidate, load: OfferedLoad) -> Trial | None:
    """Return the trial of a candidate by closed form."""
    return Solve(model=candidate.model).trial(load, 1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class SimulationEvaluator:
    """Evaluator by simulation, with the same seed and thus the same frames for each candidate (S8).

    Common random numbers remove the shared noise from the differences between settings.

    ``duration_s``: simulated time, except for a trace, which is simulated whole; a trial with a longer transient runs
    again, for up to eight times as long. ``stop``: event that ends running simulations.
    """

    duration_s: float
    seed: int = 1
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)

    def __call__(self, candidate: Candidate, load: OfferedLoad) -> Trial | None:
        """Simulate a candidate."""
        least_s = duration_s = load.trial_s(self.duration_s)
        for _ in range(3):
            try:
                simulator = Simulate(candidate.model, seed=self.seed, on_progress=self._raise_if_stopped)
                return simulator.trial(load, duration_s)
            except TransientProblem as problem:
                max_duration_s = _MAX_DURATION_RATIO * least_s
                if duration_s >= max_duration_s:
                    return None
                duration_s = min(max(1.2 * problem.needed_s, 2.0 * duration_s), max_duration_s)
        return None

    def _raise_if_stopped(self, _share: float) -> None:
        if self.stop.is_set():
            raise StoppedError("the simulation was stopped")

    def noise_ratio(self, load: OfferedLoad) -> float:
        """Return the share by which the work of a trial may lie below its mean (four standard deviations).

        Half of the trial may be its transient. The variance of a Poisson count is its mean, and the variance of bursts
        is the mean times the burst length. A trace may have any variance.
        """
        frames = max(load.rate_pps * self.duration_s / 2.0, 1.0)
        kind = load.arrivals.kind
        if kind == "trace":
            return 0.5
        dispersion = {"cbr": 0.0, "poisson": 1.0}.get(kind, 2.0 * load.arrivals.burst_frames)
        # Service times and sizes vary too, in routers no more than exponentially.
        return min(0.005 + 4.0 * math.sqrt((dispersion + 1.0) / frames), 1.0)


@value
class CheckResult:
    """Result of the check of a candidate by longer simulations with other random numbers."""

    power_w: tuple[float, float, float] = field("Mean of the replications and its 95 % interval, W")
    values: tuple[tuple[float, float, float], ...] = field("Mean and 95 % interval of each target's quantity")
    is_met: bool = field("Whether the upper end of every interval meets its target")
    replications: int
    duration_s: float = field("Duration of each replication, s")


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmationRuns:
    """Check of a setting: independent replications, longer than the trials of the search.

    The search takes the best of many noisy trials, so that the trial of its winner is biased. Trials with new seeds are
    unbiased, and several replications give intervals of the percentiles.

    ``seeds``: at least two.
    """

    duration_s: float
    seeds: tuple[int, ...]
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)

    def runs(self) -> tuple[SimulationEvaluator, ...]:
        """Return an evaluator for each replication."""
        return tuple(SimulationEvaluator(self.duration_s, seed, self.stop) for seed in self.seeds)

    def verdict(self, trials: Sequence[Trial | None], targets: Sequence[Target]) -> CheckResult:
        """Return the result of the trials of :meth:`runs`."""
        finished = [trial for trial in trials if trial is not None]
        powers = [trial.power.mean_w for trial in finished if trial.power is not None]
        values = tuple(_interval([target.value(trial) for trial in finished]) for target in targets)
        is_met = len(finished) == len(trials) and all(
            target.is_met_by(high) for target, (_, _, high) in zip(targets, values, strict=True)
        )
        return CheckResult(
            power_w=_interval(powers),
            values=values,
            is_met=is_met,
            replications=len(trials),
            duration_s=self.duration_s,
        )


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval by Student's t, limited to values >= 0."""
    if not values or any(math.isnan(value) for value in values):
        return (math.nan, math.nan, math.nan)
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return (mean, mean, mean)
    from scipy.stats import t as student

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = float(student.ppf(0.975, count - 1)) * math.sqrt(variance / count)
    return (mean, max(mean - half, 0.0), mean + half)


CAPACITY_MARGIN = 0.05
"""Margin for the error of the closed form: a setting is overloaded only if a load lower by this share overloads it."""

_ROUNDING = 1e-9


@value
class LoadBounds:
    """Bounds on a router at a load, computed without a trial."""

    least_w: float = field("Lower bound of its power, W")
    lossless_pps: float = field("Greatest rate of this load without overload, by closed form, frames/s")
    is_overloaded: bool = field("Whether it loses more than allowed even at a load lower by the margin")


class BoundCalculator:
    """Calculates the bounds of candidates at many rates of one load.

    ``load``: frames, flows and arrivals; its rate does not matter; ``loss_ratio``: the allowed loss ratio, because
    dropped frames need no work; ``noise_ratio``: share by which the work of a trial may lie below its mean.
    """

    def __init__(
        self, load: OfferedLoad, *, loss_ratio: float, noise_ratio: Callable[[OfferedLoad], float] = lambda _load: 0.0
    ) -> None:
        self._load, self._loss_ratio, self._noise_ratio = load, loss_ratio, noise_ratio
        self._lossless_pps: dict[Setting, float] = {}
        self._visits: dict[tuple[int, float], dict[str, float]] = {}

    def __call__(self, candidate: Candidate, rate_pps: float) -> LoadBounds:
        """Return the bounds of a candidate at a rate."""
        load = self._load.at(rate_pps)
        setting = candidate.setting
        awake = replace(setting, sleep="")  # sleep does not change the capacity
        if awake not in self._lossless_pps:
            self._lossless_pps[awake] = lossless_pps(candidate.model, load)
        if (setting.cores, rate_pps) not in self._visits:
            self._visits[setting.cores, rate_pps] = _offered_visits(candidate.model, load)
        visits = self._visits[setting.cores, rate_pps]
        return LoadBounds(
            least_w=_least_w(
                candidate.model, load, visits, loss_ratio=self._loss_ratio, noise_ratio=self._noise_ratio(load)
            ),
            lossless_pps=self._lossless_pps[awake],
            is_overloaded=self._is_overloaded(candidate.model, load, self._lossless_pps[awake]),
        )

    def _is_overloaded(self, model: RouterModel, load: OfferedLoad, capacity_pps: float) -> bool:
        reduced_pps = load.rate_pps * (1.0 - CAPACITY_MARGIN)
        if reduced_pps <= capacity_pps:
            return False
        if self._loss_ratio == 0.0:
            return True
        fluid = rates_of(model, load.at(reduced_pps))
        return math.fsum(fluid.drops_pps().values()) > self._loss_ratio * float(fluid.offered.sum())


def _offered_visits(model: RouterModel, load: OfferedLoad) -> dict[str, float]:
    """Return the frames/s that arrive at each task unit if none is dropped, and the offered frames/s as ``""``."""
    graph = flow_graph(model, load)
    offered = graph.offered(load.rate_pps)
    rates = graph.arriving(offered, np.ones(graph.exit + 1)).sum(axis=1)
    visits = {task.name: float(rates[index]) for index, task in enumerate(graph.tasks)}
    return {"": float(offered.sum()), **visits}


def _least_w(
    model: RouterModel, load: OfferedLoad, visits: Mapping[str, float], *, loss_ratio: float, noise_ratio: float
) -> float:
    allowed_loss_pps = loss_ratio * visits[""]
    total_w = 0.0
    for pool in model.pools:
        power = pool.power
        if power is None:
            continue
        tasks = [(task, need.units) for task in model.tasks for need in task.needs if need.pool == pool.name]
        busy_units = polling_units = 0.0
        for task, units in tasks:
            frames_pps = max(visits[task.name] - allowed_loss_pps, 0.0) * (1.0 - noise_ratio)
            work_units = frames_pps * _least_service_s(model, task, load) * units
            if task.activation.kind == "polling":
                polling_units += max(task.parallel * units, work_units)
            else:
                busy_units += work_units
        active_units = min(busy_units + polling_units, float(pool.units))
        min_idle_w = min([power.idle_w, *(state.power_w for state in power.sleep)])
        total_w += power.base_w + pool.units * min(min_idle_w, power.active_w)
        total_w += active_units * max(power.active_w - min_idle_w, 0.0)
    return total_w * (1.0 - _ROUNDING)


def _least_service_s(model: RouterModel, task: TaskUnit, load: OfferedLoad) -> float:
    """Return the least service time of a mean frame, s: with full batches, the fastest unit and least contention."""
    first = model.pool(task.needs[0].pool)
    polls = task.activation.kind != "dedicated"
    batch_frames = max(task.batch_frames, task.activation.budget_frames if polls else 1)
    seconds = task.service.mean_s(load.frames.mean_bytes, frequency_hz=first.frequency_hz, batch_frames=batch_frames)
    fastest = max(first.unit_speed_ratio, default=1.0)
    return seconds * first.contention.least_factor(first.units) / fastest


@value
class EvaluatedSetting:
    """A candidate and its evaluation."""

    candidate: Candidate
    least_w: float = field("Lower bound of its power, W")
    power_w: float = field("Mean power, W; NaN where unknown")
    values: tuple[float, ...] = field("Value of the quantity of each target; NaN where unknown")
    excess: float = field("Greatest excess over a limit, relative to the limit; 0 where all targets are met")
    trial: Trial | None = field("Trial; None if none reached a steady state")

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


def judge(
    candidate: Candidate, trial: Trial | None, targets: Sequence[Target], *, least_w: float = 0.0
) -> EvaluatedSetting:
    """Return a candidate with its trial compared with the targets; without a trial no target is met."""
    values = tuple(target.value(trial) if trial else math.nan for target in targets)
    excess = max((target.excess(value) for target, value in zip(targets, values, strict=True)), default=0.0)
    return EvaluatedSetting(
        candidate=candidate,
        least_w=least_w,
        power_w=trial.power.mean_w if trial and trial.power else math.nan,
        values=values,
        excess=excess if trial else math.inf,
        trial=trial,
    )


def latency_quantity(targets: Iterable[Target]) -> str:
    """Return the latency quantity of the Pareto front: that of the first target on latency, or else p99."""
    return next((target.quantity for target in targets if target.quantity != "loss"), "p99")


def front_of(judged: Iterable[EvaluatedSetting], targets: Sequence[Target]) -> tuple[EvaluatedSetting, ...]:
    """Return the Pareto front of power and latency, by rising power, of the settings that meet the target on loss.

    The latency is that of :func:`latency_quantity`.
    """
    quantity = latency_quantity(targets)
    lossless = [
        candidate
        for candidate in judged
        if math.isfinite(candidate.power_w)
        and math.isfinite(candidate.latency_s(quantity))
        and all(
            target.is_met_by(value)
            for target, value in zip(targets, candidate.values, strict=True)
            if target.quantity == "loss"
        )
    ]
    front: list[EvaluatedSetting] = []
    for candidate in sorted(lossless, key=lambda item: (item.power_w, item.latency_s(quantity))):
        if not front or candidate.latency_s(quantity) < front[-1].latency_s(quantity):
            front.append(candidate)
    return tuple(front)


_CHECKED_EXCESS = 0.05
"""Largest excess over a limit with which a candidate is checked, because the excess may be noise."""


@value
class BoundedCandidate:
    """A candidate and its bounds."""

    candidate: Candidate
    bounds: LoadBounds


@value
class SearchResult:
    """Best setting of a search, with all evaluated, rejected and overloaded settings."""

    targets: tuple[Target, ...]
    best: EvaluatedSetting | None = field(
        "Setting with the fewest watts that meets all targets; None if no setting does"
    )
    check: CheckResult | None = field("Check of the best setting; None without a check")
    judged: tuple[EvaluatedSetting, ...] = field("Evaluated settings, in the order of their bounds")
    rejected: tuple[tuple[EvaluatedSetting, CheckResult], ...] = field(
        "Settings with fewer watts that failed their check"
    )
    overloaded: tuple[BoundedCandidate, ...] = field("Settings that are overloaded by closed form")
    enumerated: int = field("Number of all settings")
    pruned: int = field("Number of settings not evaluated because their bound is above the best power")
    is_whole: bool = field("Whether the search was completed", default=True)

    @property
    def front(self) -> tuple[EvaluatedSetting, ...]:
        """Pareto front of power and latency among the evaluated settings."""
        return front_of(self.judged, self.targets)

    @property
    def nearest(self) -> EvaluatedSetting | None:
        """Setting nearest to the targets: with the least excess, then the fewest watts."""
        candidates = [candidate for candidate in self.judged if math.isfinite(candidate.excess)]
        return min(candidates, key=lambda item: (item.excess, item.power_w), default=None)

    @property
    def unknown(self) -> int:
        """Number of evaluated settings with an unknown quantity."""
        return sum(any(math.isnan(value) for value in candidate.values) for candidate in self.judged)

    def reachable(self, number: int) -> EvaluatedSetting | None:
        """Return the evaluated setting with the least value of target ``number``."""
        candidates = [candidate for candidate in self.judged if not math.isnan(candidate.values[number])]
        return min(candidates, key=lambda item: (item.values[number], item.power_w), default=None)


def search(
    bounded_candidates: Sequence[BoundedCandidate],
    load: OfferedLoad,
    targets: Sequence[Target],
    evaluate: Evaluate,
    *,
    check: ConfirmationRuns | None = None,
    workers: int = 1,
    is_exhaustive: bool = False,
    stop: threading.Event | None = None,
    on_progress: Progress | None = None,
) -> SearchResult:
    """Return the candidate with the fewest watts that meets the targets.

    On Ctrl-C the search sets ``stop``, which ends running simulations, and returns the best result so far.

    ``bounded_candidates``: all candidates; ``check``: simulations that the best candidate must pass; ``workers``:
    number of threads (evaluators release the interpreter's lock); ``is_exhaustive``: evaluate every candidate that is
    not overloaded, for the complete Pareto front; ``on_progress``: called with the number of evaluated candidates, the
    number of all candidates, and a text about the current candidate.
    """
    state = _SearchState(bounded_candidates, tuple(targets), check, is_exhaustive=is_exhaustive)
    report = on_progress or (lambda _done, _total, _what: None)
    with Threads(max(workers, 1)) as pool:
        trials = _prefetched_trials(pool, state.queue, load, evaluate, workers)
        try:
            while True:
                contender = state.contender()
                if contender is not None and state.is_settled(contender):
                    if check is None:
                        return state.result(contender)
                    report(len(state.judged), len(state.queue), f"check {contender.setting}")
                    runs = [pool.submit(evaluator, contender.candidate, load) for evaluator in check.runs()]
                    verdict = check.verdict([answer_of(run) for run in runs], state.targets)
                    if verdict.is_met:
                        return state.result(contender, verdict)
                    state.rejected.append((contender, verdict))
                elif len(state.judged) < len(state.queue):
                    next_candidate = state.queue[len(state.judged)]
                    report(len(state.judged), len(state.queue), str(next_candidate.candidate.setting))
                    trial = next(trials)
                    state.judged.append(
                        judge(next_candidate.candidate, trial, state.targets, least_w=next_candidate.bounds.least_w)
                    )
                else:
                    return state.result(None)
        except KeyboardInterrupt:
            if stop is not None:
                stop.set()
            return state.result(state.best_meeting_targets(), is_whole=False)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class _SearchState:
    """The queue of candidates and the results of a search so far."""

    def __init__(
        self,
        bounded_candidates: Sequence[BoundedCandidate],
        targets: tuple[Target, ...],
        check: ConfirmationRuns | None,
        *,
        is_exhaustive: bool,
    ) -> None:
        self.targets, self.check, self.is_exhaustive = targets, check, is_exhaustive
        self.overloaded = tuple(candidate for candidate in bounded_candidates if candidate.bounds.is_overloaded)
        feasible = [candidate for candidate in bounded_candidates if not candidate.bounds.is_overloaded]
        self.queue = sorted(feasible, key=lambda item: item.bounds.least_w)  # stable: ties stay in order
        self.count = len(bounded_candidates)
        self.judged: list[EvaluatedSetting] = []
        self.rejected: list[tuple[EvaluatedSetting, CheckResult]] = []

    def _best(self, max_excess: float) -> EvaluatedSetting | None:
        rejected = {id(candidate) for candidate, _ in self.rejected}
        eligible = [
            candidate
            for candidate in self.judged
            if candidate.excess <= max_excess and math.isfinite(candidate.power_w) and id(candidate) not in rejected
        ]
        return min(eligible, key=lambda candidate: candidate.power_w, default=None)

    def best_meeting_targets(self) -> EvaluatedSetting | None:
        """Return the setting with the fewest watts that meets the targets and was not rejected."""
        return self._best(0.0)

    def contender(self) -> EvaluatedSetting | None:
        """Return the setting to check next: as :meth:`best_meeting_targets`, but before a check with a small excess."""
        return self._best(0.0 if self.check is None else _CHECKED_EXCESS)

    def is_settled(self, contender: EvaluatedSetting) -> bool:
        """Whether no remaining candidate can draw less power than the contender."""
        if len(self.judged) == len(self.queue):
            return True
        return not self.is_exhaustive and contender.power_w <= self.queue[len(self.judged)].bounds.least_w

    def result(
        self, best: EvaluatedSetting | None, check: CheckResult | None = None, *, is_whole: bool = True
    ) -> SearchResult:
        if best is not None and check is not None and not best.is_met:
            # The check decides about a small excess, not the noisy trial of the search.
            best, noisy = replace(best, excess=0.0), best
            self.judged[self.judged.index(noisy)] = best
        return SearchResult(
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


def _prefetched_trials(
    pool: Threads, queue: Sequence[BoundedCandidate], load: OfferedLoad, evaluate: Evaluate, workers: int
) -> Iterator[Trial | None]:
    """Yield the trials of a queue in its order while each worker runs one trial ahead."""
    under_way: deque[Future[Trial | None]] = deque()
    rest = iter(queue)
    while True:
        while len(under_way) < max(workers, 1) and (candidate := next(rest, None)) is not None:
            under_way.append(pool.submit(evaluate, candidate.candidate, load))
        if not under_way:
            return
        yield answer_of(under_way.popleft())
