"""The plan of a day: the setting and the watts of each step, and the energy that switching costs and saves."""

from __future__ import annotations

import dataclasses
import itertools
import math
import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from routecast.errors import CriterionFailed
from routecast.evaluate.executor import Threads, answer_of
from routecast.evaluate.targets import Target
from routecast.load.offered import OfferedLoad
from routecast.plan.power.operating._search import (
    BoundCalculator,
    CheckResult,
    ConfirmationRuns,
    Evaluate,
    EvaluatedSetting,
    judge,
)
from routecast.plan.power.operating._setting import Candidate, Setting
from routecast.progress import Progress
from routecast.quantity import format_pps
from routecast.quantity.schema import field, value

__all__ = ["Course", "DayPlan", "Switching", "cheapest_path", "lazy_cheapest_path", "plan_day", "switchings"]


Costs = NDArray[np.float64]


def cheapest_path(costs: Costs, *, switch_cost: float, dwell_steps: int = 1) -> tuple[int, ...]:
    """Return the setting of each step on the path of least total cost, or nothing if every path has infinite cost.

    A change of the setting has a cost, and the new setting stays for a minimum time.

    ::

        step        0     1     2     3   …    a step costs its energy in the setting;
        setting A   ●─────●     ○     ●        a change of the setting has an additional
                          └─────┐     │        cost, and the new setting stays at least
        setting B   ○     ○     ●─────┘        for the dwell (hysteresis)

    Dynamic programming over the settings and the steps since the last switching. The first setting may change
    after any time, because it may have been in use before the day.

    ``costs``: cost of each setting in each step; infinite where it cannot be used; ``switch_cost``: cost of each change
    of the setting, in the unit of ``costs``; ``dwell_steps``: minimum number of steps for which a setting stays after a
    switching, unless the day ends.

    Examples
    --------
    >>> cheapest_path(np.array([[1.0, 3.0], [5.0, 3.0], [1.0, 3.0]]), switch_cost=0.0)
    (0, 1, 0)
    >>> cheapest_path(np.array([[1.0, 3.0], [5.0, 3.0], [1.0, 3.0]]), switch_cost=1.5)
    (0, 0, 0)
    """
    steps, settings = costs.shape
    dwell = max(dwell_steps, 1)
    # Row a: a + 1 steps in the setting since the switching; the last row: the dwell or longer.
    total = np.full((dwell, settings), math.inf)
    total[-1] = costs[0]
    predecessor = np.zeros((steps, dwell, settings, 2), dtype=np.int64)
    setting_indices = np.arange(settings)
    for step in range(1, steps):
        after = np.full((dwell, settings), math.inf)
        leavable = total[-1]
        best = int(np.argmin(leavable))
        costs_without_best = np.where(setting_indices == best, math.inf, leavable)
        second_best = int(np.argmin(costs_without_best))
        source = np.where(setting_indices == best, second_best, best)
        switched = np.where(setting_indices == best, costs_without_best[second_best], leavable[best]) + switch_cost
        stayed = total[-1].copy()
        row_before = np.full(settings, dwell - 1)
        if dwell > 1:
            is_older_cheaper = total[-2] < stayed
            stayed = np.where(is_older_cheaper, total[-2], stayed)
            row_before = np.where(is_older_cheaper, dwell - 2, row_before)
            after[1 : dwell - 1] = total[: dwell - 2]
            for row in range(1, dwell - 1):
                predecessor[step, row] = np.stack([np.full(settings, row - 1), setting_indices], axis=1)
        after[-1] = stayed
        predecessor[step, -1] = np.stack([row_before, setting_indices], axis=1)
        is_better = switched < after[0]
        after[0] = np.where(is_better, switched, after[0])
        arrival = np.stack([np.full(settings, dwell - 1), source], axis=1)
        predecessor[step, 0] = np.where(is_better[:, None], arrival, predecessor[step, 0])
        total = after + costs[step]
    row, setting = (int(index) for index in np.unravel_index(int(np.argmin(total)), total.shape))
    if not math.isfinite(total[row, setting]):
        return ()
    path = [setting]
    for step in range(steps - 1, 0, -1):
        row, setting = (int(index) for index in predecessor[step, row, setting])
        path.append(setting)
    return tuple(reversed(path))


def lazy_cheapest_path(
    bounds: Costs,
    evaluate: Callable[[Sequence[tuple[int, int]]], Sequence[float]],
    *,
    switch_cost: float,
    dwell_steps: int = 1,
) -> tuple[tuple[int, ...], Costs]:
    """Return the cheapest path and the costs known at the end, for costs that are expensive to evaluate.

    The function evaluates the cheapest path by bounds and replaces the bounds by its costs, until every step of the
    cheapest path is evaluated. No other path is then cheaper, because bounds only rise (LazySP: Dellin and Srinivasa,
    ICAPS 2016).

    ``bounds``: lower bounds of the costs, infinite where a setting cannot be used; ``evaluate``: returns the costs of
    pairs (step, setting), infinite where the setting cannot be used; ``switch_cost`` and ``dwell_steps``: as in
    :func:`cheapest_path`.
    """
    costs = bounds.copy()
    is_evaluated = ~np.isfinite(bounds)
    while True:
        path = cheapest_path(costs, switch_cost=switch_cost, dwell_steps=dwell_steps)
        missing = [(step, setting) for step, setting in enumerate(path) if not is_evaluated[step, setting]]
        if not missing:
            return path, costs
        for (step, setting), cost in zip(missing, evaluate(missing), strict=True):
            costs[step, setting] = cost
            is_evaluated[step, setting] = True


def switchings(path: Sequence[int]) -> int:
    """Return the number of changes of the setting on a path."""
    return sum(before != after for before, after in itertools.pairwise(path))


@value
class Switching:
    """Cost of a change of the setting."""

    energy_j: float = field("Energy of each change, J", default=0.0)
    dwell_s: float = field("Minimum time for which a new setting stays, s", default=0.0)


@value
class Course:
    """A setting for each step of a day."""

    name: str
    settings: tuple[Setting, ...]
    power_w: tuple[float, ...] = field("Mean power in each step, W")
    energy_j: float = field("Energy of all steps, without switchings, J")
    switchings: int
    switching_j: float = field("Energy of the switchings, J")
    missed: tuple[int, ...] = field("Steps in which a target is not met", default=())


@value
class DayPlan:
    """A plan of a day and the courses with which it is compared."""

    step_s: float
    rates_pps: tuple[float, ...] = field("Intended load of each step, frames/s")
    targets: tuple[Target, ...]
    plan: Course = field("Course of least energy, with the energy of switchings and the dwell")
    per_step: Course = field("Fewest watts in each step, without a cost of switching")
    always: Course = field("All cores at the highest clock without sleep, and polling if that is a choice")
    values: tuple[tuple[float, ...], ...] = field("Value of each target in each step of the plan")
    checks: tuple[CheckResult, ...] = field("Check of each step of the plan; empty without checks")
    evaluated: int = field("Number of evaluated pairs of rate and setting")
    pairs: int = field("Number of all pairs of rate and setting")
    is_whole: bool = field(
        "Whether planning was completed; otherwise the plan is the best one before the interruption, unchecked",
        default=True,
    )


def plan_day(
    candidates: Sequence[Candidate],
    load: OfferedLoad,
    rates_pps: Sequence[float],
    targets: Sequence[Target],
    bounds_of: BoundCalculator,
    evaluate: Callable[[float], Evaluate],
    *,
    step_s: float,
    switching: Switching,
    check: Callable[[float], ConfirmationRuns] | None = None,
    workers: int = 1,
    stop: threading.Event | None = None,
    on_progress: Progress | None = None,
) -> DayPlan:
    """Return the settings over a day that meet the targets in every step with the least energy.

    On Ctrl-C it returns the best plan so far, if there is one.

    The plan is exact for the powers of the evaluator: bounds only decide which evaluations are not needed
    (:func:`lazy_cheapest_path`).

    ``load``: frames, flows and arrivals; ``rates_pps``: intended load of each step, > 0; ``evaluate``: returns the
    evaluator for a rate; ``step_s``: length of a step; ``check``: returns the simulations for a rate that a setting of
    the plan must pass; ``workers``, ``stop`` and ``on_progress``: as in
    :func:`routecast.plan.power.operating._search.search`. Raises CriterionFailed: no setting meets the targets in
    some step; the message names the nearest setting.
    """
    with Threads(max(workers, 1)) as pool:
        table = _StepTable(
            candidates=candidates,
            load=load,
            rates_pps=rates_pps,
            targets=targets,
            bounds=_least_energies_j(candidates, rates_pps, bounds_of, step_s),
            evaluate=evaluate,
            step_s=step_s,
            pool=pool,
            check=check,
            on_progress=on_progress or (lambda _done, _all, _what: None),
        )
        dwell_steps = math.ceil(switching.dwell_s / step_s - 1e-9)
        highest = max(range(len(candidates)), key=lambda number: _performance(candidates[number].setting))
        try:
            table.costs_of([(step, highest) for step in range(len(rates_pps))])
            cheapest = table.path(0.0, 1)
            planned = table.path(switching.energy_j, dwell_steps)
            is_whole = True
        except KeyboardInterrupt:
            if stop is not None:
                stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            cheapest = cheapest_path(table.known_costs(), switch_cost=0.0)
            planned = cheapest_path(table.known_costs(), switch_cost=switching.energy_j, dwell_steps=dwell_steps)
            is_whole = False
            if not planned:
                raise
    return DayPlan(
        step_s=step_s,
        rates_pps=tuple(rates_pps),
        targets=tuple(targets),
        plan=table.course("plan", planned, switching.energy_j),
        per_step=table.course("fewest watts in each step", cheapest, switching.energy_j),
        always=table.course("always at its most", [highest] * len(rates_pps), switching.energy_j),
        values=tuple(table.judged(step, setting).values for step, setting in enumerate(planned)),
        checks=tuple(table.checked[pair] for pair in table.keys(planned)) if check and is_whole else (),
        evaluated=len(table.evaluated_settings),
        pairs=table.pairs,
        is_whole=is_whole,
    )


def _least_energies_j(
    candidates: Sequence[Candidate], rates_pps: Sequence[float], bounds_of: BoundCalculator, step_s: float
) -> NDArray[np.float64]:
    """Return a lower bound on the energy of each step with each candidate, infinite where it is overloaded."""
    bounds_j: dict[float, list[float]] = {}
    for rate in dict.fromkeys(rates_pps):
        bounds = [bounds_of(candidate, rate) for candidate in candidates]
        bounds_j[rate] = [math.inf if bound.is_overloaded else bound.least_w * step_s for bound in bounds]
    return np.array([bounds_j[rate] for rate in rates_pps])


def _performance(setting: Setting) -> tuple[int, float, bool, bool]:
    """Return a key that orders settings by their performance."""
    return (setting.cores, setting.frequency_hz or 0.0, setting.activation == "polling", not setting.sleep)


@dataclasses.dataclass(slots=True, kw_only=True)
class _StepTable:
    """The bounds, evaluations and checks of all steps and settings, with one evaluation for equal rates.

    ``bounds`` holds the energy bounds of each setting in each step, J.
    """

    candidates: Sequence[Candidate]
    load: OfferedLoad
    rates_pps: Sequence[float]
    targets: Sequence[Target]
    bounds: Costs
    evaluate: Callable[[float], Evaluate]
    step_s: float
    pool: Threads
    check: Callable[[float], ConfirmationRuns] | None
    on_progress: Progress
    evaluated_settings: dict[tuple[float, int], EvaluatedSetting] = dataclasses.field(default_factory=dict)
    checked: dict[tuple[float, int], CheckResult] = dataclasses.field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """Number of all pairs of rate and setting."""
        return len(set(self.rates_pps)) * len(self.candidates)

    def keys(self, path: Sequence[int]) -> list[tuple[float, int]]:
        return [(self.rates_pps[step], number) for step, number in enumerate(path)]

    def judged(self, step: int, number: int) -> EvaluatedSetting:
        return self.evaluated_settings[self.rates_pps[step], number]

    def costs_of(self, pairs: Sequence[tuple[int, int]]) -> list[float]:
        """Evaluate pairs (step, setting); return their energies, infinite where a target or the check fails."""
        keys = [(self.rates_pps[step], number) for step, number in pairs]
        missing = [key for key in dict.fromkeys(keys) if key not in self.evaluated_settings]
        judged = [self.pool.submit(self._judge, key) for key in missing]
        try:
            for (rate, number), evaluated in zip(missing, map(answer_of, judged), strict=True):
                self.evaluated_settings[rate, number] = evaluated
                self.on_progress(len(self.evaluated_settings), self.pairs, f"{format_pps(rate)}: {evaluated.setting}")
        finally:
            for waiting in judged:
                waiting.cancel()
        return [self._cost_j(key) for key in keys]

    def _judge(self, key: tuple[float, int]) -> EvaluatedSetting:
        rate, number = key
        candidate = self.candidates[number]
        return judge(candidate, self.evaluate(rate)(candidate, self.load.at(rate)), self.targets)

    def _cost_j(self, key: tuple[float, int]) -> float:
        evaluated = self.evaluated_settings[key]
        failed = key in self.checked and not self.checked[key].is_met
        is_usable = evaluated.is_met and math.isfinite(evaluated.power_w) and not failed
        return evaluated.power_w * self.step_s if is_usable else math.inf

    def path(self, switch_cost: float, dwell_steps: int) -> tuple[int, ...]:
        """Return the cheapest path whose steps all pass their checks."""
        while True:
            path, costs = lazy_cheapest_path(
                self.bounds, self.costs_of, switch_cost=switch_cost, dwell_steps=dwell_steps
            )
            if not path:
                raise CriterionFailed(self._describe_unmet_steps(costs, dwell_steps))
            if self.check is None:
                return path
            for key in dict.fromkeys(self.keys(path)):
                if key not in self.checked:
                    self._check(key, self.check(key[0]))
            if all(self.checked[key].is_met for key in self.keys(path)):
                return path

    def _check(self, key: tuple[float, int], check: ConfirmationRuns) -> None:
        rate, number = key
        candidate, load = self.candidates[number], self.load.at(rate)
        self.on_progress(len(self.evaluated_settings), self.pairs, f"check {format_pps(rate)}: {candidate.setting}")
        runs = [self.pool.submit(run, candidate, load) for run in check.runs()]
        self.checked[key] = check.verdict([answer_of(run) for run in runs], self.targets)

    def known_costs(self) -> Costs:
        """Return the known energies, infinite elsewhere."""
        costs = np.full(self.bounds.shape, math.inf)
        for step, rate in enumerate(self.rates_pps):
            for number in range(len(self.candidates)):
                if (rate, number) in self.evaluated_settings:
                    costs[step, number] = self._cost_j((rate, number))
        return costs

    def course(self, name: str, path: Sequence[int], switch_j: float) -> Course:
        judged = [self.judged(step, number) for step, number in enumerate(path)]
        changes = switchings(path)
        return Course(
            name=name,
            settings=tuple(evaluated.setting for evaluated in judged),
            power_w=tuple(evaluated.power_w for evaluated in judged),
            energy_j=math.fsum(evaluated.power_w for evaluated in judged) * self.step_s,
            switchings=changes,
            switching_j=changes * switch_j,
            missed=tuple(step for step, evaluated in enumerate(judged) if not evaluated.is_met),
        )

    def _describe_unmet_steps(self, costs: Costs, dwell_steps: int) -> str:
        unmet = [step for step in range(len(costs)) if not np.isfinite(costs[step]).any()]
        if not unmet:
            return f"no plan keeps each setting for {dwell_steps} steps: shorten the dwell"
        lines = []
        for step in unmet:
            rate = self.rates_pps[step]
            tried = [
                evaluated
                for (at, _), evaluated in self.evaluated_settings.items()
                if at == rate and math.isfinite(evaluated.excess)
            ]
            nearest = min(tried, key=lambda evaluated: (evaluated.excess, evaluated.power_w), default=None)
            reason = "every setting is overloaded"
            if nearest is not None and np.isfinite(self.bounds[step]).any():
                values = ", ".join(
                    f"{target.quantity} {target.format_value(value)} ({target})"
                    for target, value in zip(self.targets, nearest.values, strict=True)
                )
                reason = f"nearest is {nearest.setting} with {values}"
            lines.append(f"step {step} ({format_pps(rate)}): {reason}")
        return "no setting meets the targets in " + "; in ".join(lines)
