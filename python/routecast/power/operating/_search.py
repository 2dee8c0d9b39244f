"""Search for the setting with the fewest watts: best bound first, until no bound is below the best power.

Candidates are evaluated by closed form or by simulation, all with the same random numbers, and taken in the order of
their bounds. Trials that threads ran ahead and that the stopping rule does not reach are ignored, so one seed gives one
answer on any machine.

The bound of a candidate needs no simulation. The work of a frame does not depend on scheduling: the unit that forwards
it spends at least its service time at active power. So a unit is active at least for the work that arrives, and for the
rest of the time draws no less than in its deepest allowed state. Contention, interrupts, polls and wake-ups only add to
that (S5, S6, S11).
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
from routecast.evaluate.solve import Solve, lossless_pps
from routecast.evaluate.solve.flow import flow_graph
from routecast.evaluate.solve.fluid import solve_fluid
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.power.operating._setting import Candidate, Setting
from routecast.power.operating.targets import Target
from routecast.progress import Progress
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel, TaskUnit

Evaluate = Callable[[Candidate, OfferedLoad], Trial | None]
"""Return the trial of a candidate at a load; None where it reached no steady state."""

_LONGEST = 8.0


class StoppedError(RoutecastError):
    """A simulation was stopped; its result is not needed."""


def solving(candidate: Candidate, load: OfferedLoad) -> Trial | None:
    """Return the trial by closed form."""
    return Solve(model=candidate.model).trial(load, 1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Simulating:
    """Evaluator by simulation, with the same seed for each candidate: the same frames at the same instants (S8).

    Common random numbers remove from the differences between settings the noise that all of them share.

    ``duration_s``: simulated time. A trial whose transient takes longer is run again, for up to eight times as long;
    ``stop``: set to make running simulations end.
    """

    duration_s: float
    seed: int = 1
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)

    def __call__(self, candidate: Candidate, load: OfferedLoad) -> Trial | None:
        """Simulate a candidate."""
        duration_s = self.duration_s
        for _ in range(3):
            try:
                simulator = Simulate(candidate.model, seed=self.seed, on_progress=self._listen)
                return simulator.trial(load, duration_s)
            except TransientProblem as problem:
                longest_s = _LONGEST * self.duration_s
                if duration_s >= longest_s:
                    return None
                duration_s = min(max(1.2 * problem.needed_s, 2.0 * duration_s), longest_s)
        return None

    def _listen(self, _share: float) -> None:
        if self.stop.is_set():
            raise StoppedError("the simulation was stopped")

    def noise_ratio(self, load: OfferedLoad) -> float:
        """Return by which share the work of a trial may lie below its mean (four standard deviations).

        Half of the trial may be its transient. The variance of a Poisson count is its mean, that of bursts is the
        mean times the length of a burst; a trace may have any shape.
        """
        frames = max(load.rate_pps * self.duration_s / 2.0, 1.0)
        kind = load.arrivals.kind
        if kind == "trace":
            return 0.5
        dispersion = {"cbr": 0.0, "poisson": 1.0}.get(kind, 2.0 * load.arrivals.burst_frames)
        # Service times and sizes vary, too: in routers by no more than exponential ones.
        return min(0.005 + 4.0 * math.sqrt((dispersion + 1.0) / frames), 1.0)


@value
class Checked:
    """Result of the check of a candidate: longer simulations with other random numbers."""

    power_w: tuple[float, float, float] = field("Mean of the replications and its 95 % interval, W")
    values: tuple[tuple[float, float, float], ...] = field("Mean and 95 % interval of each target's quantity")
    is_met: bool = field("Whether every target is met up to the upper end of its interval")
    replications: int
    duration_s: float = field("Duration of each, s")


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmingRuns:
    """Check of a setting: independent replications, longer than the trials of the search.

    The search takes the best of many noisy trials, so the trial of its winner is biased. Trials with new seeds are
    not, and the percentiles of several replications give an interval, which a single trial does not.

    ``seeds``: at least two.
    """

    duration_s: float
    seeds: tuple[int, ...]
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)

    def runs(self) -> tuple[Simulating, ...]:
        """Return the replications to be run."""
        return tuple(Simulating(self.duration_s, seed, self.stop) for seed in self.seeds)

    def verdict(self, trials: Sequence[Trial | None], targets: Sequence[Target]) -> Checked:
        """Return the result of the trials of :meth:`runs`."""
        known = [trial for trial in trials if trial is not None]
        powers = [trial.power.mean_w for trial in known if trial.power is not None]
        values = tuple(_interval([target.value(trial) for trial in known]) for target in targets)
        is_met = len(known) == len(trials) and all(
            target.is_kept_by(high) for target, (_, _, high) in zip(targets, values, strict=True)
        )
        return Checked(
            power_w=_interval(powers),
            values=values,
            is_met=is_met,
            replications=len(trials),
            duration_s=self.duration_s,
        )


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval by Student's t; no quantity here is below 0."""
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
"""Margin for the error of the closed form: a load is ruled out only if a load lower by this share overloads, too."""

_ROUNDING = 1e-9


@value
class Outlook:
    """Bounds on a router at a load, known before it is evaluated."""

    least_w: float = field("Lower bound of its power, W")
    lossless_pps: float = field("Greatest rate of this load without overload, by closed form, frames/s")
    is_overloaded: bool = field("Whether it certainly loses more than allowed: already at a load lower by the margin")


class Outlooks:
    """Outlooks of many candidates at many rates of one load.

    ``load``: frames, flows and arrivals; its rate does not matter; ``loss_ratio``: the allowed loss ratio, since
    dropped frames need no work; ``noise_ratio``: share by which the work of a trial may lie below its mean.
    """

    def __init__(
        self, load: OfferedLoad, *, loss_ratio: float, noise_ratio: Callable[[OfferedLoad], float] = lambda _load: 0.0
    ) -> None:
        self._load, self._loss_ratio, self._noise_ratio = load, loss_ratio, noise_ratio
        self._lossless_pps: dict[Setting, float] = {}
        self._visits: dict[tuple[int, float], dict[str, float]] = {}

    def of(self, candidate: Candidate, rate_pps: float) -> Outlook:
        """Return the outlook of a candidate at a rate."""
        load = self._load.at(rate_pps)
        setting = candidate.setting
        awake = replace(setting, sleep="")  # sleep takes no capacity
        if awake not in self._lossless_pps:
            self._lossless_pps[awake] = lossless_pps(candidate.model, load)
        if (setting.cores, rate_pps) not in self._visits:
            self._visits[setting.cores, rate_pps] = _offered_visits(candidate.model, load)
        visits = self._visits[setting.cores, rate_pps]
        return Outlook(
            least_w=_least_w(
                candidate.model, load, visits, loss_ratio=self._loss_ratio, noise_ratio=self._noise_ratio(load)
            ),
            lossless_pps=self._lossless_pps[awake],
            is_overloaded=self._is_overloaded(candidate.model, load, self._lossless_pps[awake]),
        )

    def _is_overloaded(self, model: RouterModel, load: OfferedLoad, capacity_pps: float) -> bool:
        surely_pps = load.rate_pps * (1.0 - CAPACITY_MARGIN)
        if surely_pps <= capacity_pps:
            return False
        if self._loss_ratio == 0.0:
            return True
        fluid = solve_fluid(model, load.at(surely_pps))
        return math.fsum(fluid.drops_pps().values()) > self._loss_ratio * float(fluid.offered.sum())


def _offered_visits(model: RouterModel, load: OfferedLoad) -> dict[str, float]:
    """Return the frames/s that arrive at each task unit if none is dropped, and those offered under ``""``."""
    graph = flow_graph(model, load)
    offered = graph.offered(load.rate_pps)
    rates = graph.arriving(offered, np.ones(graph.exit + 1)).sum(axis=1)
    visits = {task.name: float(rates[index]) for index, task in enumerate(graph.tasks)}
    return {"": float(offered.sum()), **visits}


def _least_w(
    model: RouterModel, load: OfferedLoad, visits: Mapping[str, float], *, loss_ratio: float, noise_ratio: float
) -> float:
    lost_pps = loss_ratio * visits[""]
    total_w = 0.0
    for pool in model.pools:
        power = pool.power
        if power is None:
            continue
        tasks = [(task, need.units) for task in model.tasks for need in task.needs if need.pool == pool.name]
        busy = spinning = 0.0
        for task, units in tasks:
            frames_pps = max(visits[task.name] - lost_pps, 0.0) * (1.0 - noise_ratio)
            work = frames_pps * _least_service_s(model, task, load) * units
            if task.activation.kind == "polling":
                spinning += max(task.parallel * units, work)
            else:
                busy += work
        active = min(busy + spinning, float(pool.units))
        resting_w = min([power.idle_w, *(state.power_w for state in power.sleep)])
        total_w += power.base_w + pool.units * min(resting_w, power.active_w)
        total_w += active * max(power.active_w - resting_w, 0.0)
    return total_w * (1.0 - _ROUNDING)


def _least_service_s(model: RouterModel, task: TaskUnit, load: OfferedLoad) -> float:
    """Return the least service time of a mean frame, s: full batches, the fastest unit, the least contention."""
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
    values: tuple[float, ...] = field("Trial's value of each target's quantity; NaN where unknown")
    excess: float = field("Greatest excess over a limit, relative to the limit; 0 where all targets are met")
    trial: Trial | None = field("Trial; None where none reached a steady state")

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
    """Return a candidate with its trial judged by the targets; without a trial no target is met."""
    if trial is None:
        unknown = tuple(math.nan for _ in targets)
        return EvaluatedSetting(
            candidate=candidate, least_w=least_w, power_w=math.nan, values=unknown, excess=math.inf, trial=None
        )
    values = tuple(target.value(trial) for target in targets)
    excess = max((target.excess(value) for target, value in zip(targets, values, strict=True)), default=0.0)
    return EvaluatedSetting(
        candidate=candidate,
        least_w=least_w,
        power_w=math.nan if trial.power is None else trial.power.mean_w,
        values=values,
        excess=excess,
        trial=trial,
    )


def latency_quantity(targets: Iterable[Target]) -> str:
    """Return the latency quantity of the Pareto front: that of the first target on latency, or p99."""
    return next((target.quantity for target in targets if target.quantity != "loss"), "p99")


def front_of(judged: Iterable[EvaluatedSetting], targets: Sequence[Target]) -> tuple[EvaluatedSetting, ...]:
    """Return the Pareto front of power and latency, by rising power, of the settings that keep the target on loss.

    The latency is that of :func:`latency_quantity`.
    """
    quantity = latency_quantity(targets)
    kept = [
        candidate
        for candidate in judged
        if math.isfinite(candidate.power_w)
        and math.isfinite(candidate.latency_s(quantity))
        and all(
            target.is_kept_by(value)
            for target, value in zip(targets, candidate.values, strict=True)
            if target.quantity == "loss"
        )
    ]
    front: list[EvaluatedSetting] = []
    for candidate in sorted(kept, key=lambda item: (item.power_w, item.latency_s(quantity))):
        if not front or candidate.latency_s(quantity) < front[-1].latency_s(quantity):
            front.append(candidate)
    return tuple(front)


_NEAR = 0.05
"""Candidates with at most this excess over a limit are checked, too: it may be noise."""


@value
class Appraised:
    """A candidate and its outlook."""

    candidate: Candidate
    outlook: Outlook


@value
class SearchResult:
    """Result of a search."""

    targets: tuple[Target, ...]
    best: EvaluatedSetting | None = field("Setting with the fewest watts that meets all targets; None if none does")
    check: Checked | None = field("Check of the setting; None without one")
    judged: tuple[EvaluatedSetting, ...] = field("Evaluated settings, in the order of their bounds")
    rejected: tuple[tuple[EvaluatedSetting, Checked], ...] = field(
        "Settings with fewer watts in the search that failed their check"
    )
    overloaded: tuple[Appraised, ...] = field("Settings that the closed form rules out")
    enumerated: int = field("Number of all settings")
    pruned: int = field("Number of settings not evaluated because their bound is above the best power")
    is_whole: bool = field("Whether the search came to its end", default=True)

    @property
    def front(self) -> tuple[EvaluatedSetting, ...]:
        """Pareto front of power and latency among the evaluated settings."""
        return front_of(self.judged, self.targets)

    @property
    def nearest(self) -> EvaluatedSetting | None:
        """Setting nearest to the targets: with the least excess, then the fewest watts."""
        known = [candidate for candidate in self.judged if math.isfinite(candidate.excess)]
        return min(known, key=lambda item: (item.excess, item.power_w), default=None)

    @property
    def unknown(self) -> int:
        """Number of evaluated settings with a quantity that the evaluator does not know."""
        return sum(any(math.isnan(value) for value in candidate.values) for candidate in self.judged)

    def reachable(self, number: int) -> EvaluatedSetting | None:
        """Return the evaluated setting with the least value of target ``number``."""
        known = [candidate for candidate in self.judged if not math.isnan(candidate.values[number])]
        return min(known, key=lambda item: (item.values[number], item.power_w), default=None)


def search(
    appraised: Sequence[Appraised],
    load: OfferedLoad,
    targets: Sequence[Target],
    evaluate: Evaluate,
    *,
    check: ConfirmingRuns | None = None,
    workers: int = 1,
    is_exhaustive: bool = False,
    stop: threading.Event | None = None,
    on_progress: Progress | None = None,
) -> SearchResult:
    """Return the candidate with the fewest watts that meets the targets.

    On Ctrl-C it sets ``stop``, which ends the simulations under way, and returns the best result so far.

    ``appraised``: all candidates; ``check``: simulations that the best candidate must pass; ``workers``: number of
    threads (evaluators release the interpreter's lock); ``is_exhaustive``: evaluate every candidate that is not
    overloaded, for the complete Pareto front; ``on_progress``: called with the number of evaluated candidates, the
    number of all, and a text about the current one.
    """
    run = _SearchState(appraised, tuple(targets), check, is_exhaustive=is_exhaustive)
    report = on_progress or (lambda _done, _total, _what: None)
    with Threads(max(workers, 1)) as pool:
        trials = _ahead(pool, run.queue, load, evaluate, workers)
        try:
            while True:
                contender = run.contender()
                if contender is not None and run.is_settled(contender):
                    if check is None:
                        return run.result(contender)
                    report(len(run.judged), len(run.queue), f"check {contender.setting}")
                    runs = [pool.submit(simulating, contender.candidate, load) for simulating in check.runs()]
                    verdict = check.verdict([answer_of(simulating) for simulating in runs], run.targets)
                    if verdict.is_met:
                        return run.result(contender, verdict)
                    run.rejected.append((contender, verdict))
                elif len(run.judged) < len(run.queue):
                    head = run.queue[len(run.judged)]
                    report(len(run.judged), len(run.queue), str(head.candidate.setting))
                    trial = next(trials)
                    run.judged.append(judge(head.candidate, trial, run.targets, least_w=head.outlook.least_w))
                else:
                    return run.result(None)
        except KeyboardInterrupt:
            if stop is not None:
                stop.set()
            return run.result(run.met(), is_whole=False)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class _SearchState:
    """State of a search."""

    def __init__(
        self,
        appraised: Sequence[Appraised],
        targets: tuple[Target, ...],
        check: ConfirmingRuns | None,
        *,
        is_exhaustive: bool,
    ) -> None:
        self.targets, self.check, self.is_exhaustive = targets, check, is_exhaustive
        self.overloaded = tuple(candidate for candidate in appraised if candidate.outlook.is_overloaded)
        kept = [candidate for candidate in appraised if not candidate.outlook.is_overloaded]
        self.queue = sorted(kept, key=lambda item: item.outlook.least_w)  # stable: ties stay in order
        self.count = len(appraised)
        self.judged: list[EvaluatedSetting] = []
        self.rejected: list[tuple[EvaluatedSetting, Checked]] = []

    def _best(self, most_excess: float) -> EvaluatedSetting | None:
        rejected = {id(candidate) for candidate, _ in self.rejected}
        rest = [
            candidate
            for candidate in self.judged
            if candidate.excess <= most_excess and math.isfinite(candidate.power_w) and id(candidate) not in rejected
        ]
        return min(rest, key=lambda candidate: candidate.power_w, default=None)

    def met(self) -> EvaluatedSetting | None:
        """Return the setting with the fewest watts that meets the targets and was not rejected."""
        return self._best(0.0)

    def contender(self) -> EvaluatedSetting | None:
        """Return the setting to be checked next: as :meth:`met`, with a small excess allowed before a check."""
        return self._best(0.0 if self.check is None else _NEAR)

    def is_settled(self, contender: EvaluatedSetting) -> bool:
        """Whether no remaining candidate can draw less than the contender."""
        if len(self.judged) == len(self.queue):
            return True
        return not self.is_exhaustive and contender.power_w <= self.queue[len(self.judged)].outlook.least_w

    def result(
        self, best: EvaluatedSetting | None, check: Checked | None = None, *, is_whole: bool = True
    ) -> SearchResult:
        if best is not None and check is not None and not best.is_met:
            # The check, not the noisy trial of the search, decides about a small excess.
            best, before = replace(best, excess=0.0), best
            self.judged[self.judged.index(before)] = best
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


def _ahead(
    pool: Threads, queue: Sequence[Appraised], load: OfferedLoad, evaluate: Evaluate, workers: int
) -> Iterator[Trial | None]:
    """Yield the trials of a queue in its order, with one under way per worker."""
    under_way: deque[Future[Trial | None]] = deque()
    rest = iter(queue)
    while True:
        while len(under_way) < max(workers, 1) and (candidate := next(rest, None)) is not None:
            under_way.append(pool.submit(evaluate, candidate.candidate, load))
        if not under_way:
            return
        yield answer_of(under_way.popleft())
