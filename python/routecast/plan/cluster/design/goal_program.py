"""The preemptive goal program: least energy within a budget, then least price at that energy (Li 2012, (8.1)-(8.8)).

The thesis states it over all n_kt at once, which is too slow for a solver from a few groups and a day of steps. Here
only the fleet N_k is searched (``fleet_search``): for a fixed fleet the steps are independent and one table gives the
energy of the day exactly (``step.dispatch``). The answer carries a proven bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from routecast.plan.cluster.design.fleet_energy import FleetEnergy, OutOfTime
from routecast.plan.cluster.design.fleet_search import EnergySearch, PriceSearch, order_of_groups
from routecast.plan.cluster.design.heuristics import simple_fleets
from routecast.plan.cluster.design.least_budget import check_budget, least_budget, price_of
from routecast.plan.cluster.design.local_search import improve
from routecast.plan.cluster.infeasible import check
from routecast.plan.cluster.model import ClusterProblem, Design
from routecast.plan.cluster.step.dispatch import Dispatcher

__all__ = ["Progress", "goal_program", "least_budget"]

_MARGIN = 1e-9
"""Taken off every bound: far above what rounding can add up to, far below any gap of interest."""
_SAME_ENERGY = 1e-9
"""Energies this close are equal in (8.8)."""
_STARTS = 0.1
_SWAPS = 0.15
_FIRST_GOAL = 0.8
_SECOND_GOAL = 0.9
"""Shares of the time after which evaluating simple fleets, swapping machines and the searches for the least energy and
the least price end; the last only where the schedule takes time too."""
_SCHEDULE_S = 1.0
"""Time that the schedule may still take after an interruption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a goal program is.

    Parameters
    ----------
    elapsed_s : float
    best_j, bound_j : float
        Energy of the best fleet so far, and what no fleet can go below.
    price : float
        Price of the best fleet so far.
    goal : str
        ``"energy"`` or ``"price"``.
    """

    elapsed_s: float
    best_j: float
    bound_j: float
    price: float
    goal: str

    @property
    def gap_ratio(self) -> float:
        """``best / bound − 1``."""
        return self.best_j / self.bound_j - 1.0 if self.bound_j > 0.0 else math.inf


def goal_program(
    problem: ClusterProblem,
    *,
    gap: float = 0.0,
    seconds: float = 60.0,
    progress: Callable[[Progress], None] | None = None,
    every_s: float = 0.5,
    keeps_interrupted: bool = False,
) -> Design:
    """Return the fleet of least energy within the budget and, among those of that energy, of least price.

    Parameters
    ----------
    problem : ClusterProblem
    gap : float
        The energy is good enough when it is at most this share above the proven bound; 0 for the optimum.
    seconds : float
        Time after which the search ends; the best design so far is returned with the bound that is proven by then.
        With spares together with idle power, and capacities without a common quantum, a schedule takes time as well.
        Where that does not suffice it is one that carries the load, not the cheapest; the gap counts that in.
    progress : callable, optional
        Is told about every ``every_s`` seconds, and at the end of each goal.
    every_s : float
    keeps_interrupted : bool
        Return the best design so far on a KeyboardInterrupt, of ``progress`` too, once there is one.

    Returns
    -------
    routecast.plan.cluster.model.Design
        ``"Design-V"``; its ``bound_j`` is proven, less 1e-9 of it for rounding. ``price_is_least`` says whether the
        price is proven too.

    Raises
    ------
    InfeasiblePlan
        The budget, or the machines that can be had, carry no peak; with the least that does.
    ModelProblem
        A field is out of range.
    """
    clock = _Clock(seconds, progress, every_s)
    check(problem)
    check_budget(problem)
    budget = math.inf if problem.budget is None else problem.budget
    energy = FleetEnergy(Dispatcher(problem))
    energy.dispatcher.pause = lambda: clock.refuse_late(energy.slowest_s)
    clock.share = _STARTS
    start = min(_starts(problem, energy, budget, clock))
    first = EnergySearch(energy, range(len(problem.groups)), budget, start)
    second: PriceSearch | None = None

    def stop() -> bool:
        price = price_of(problem, first.fleet) if second is None else second.least_price
        clock.tell(first.best_j, first.bound_j, price, "energy" if second is None else "price")
        return clock.is_late(energy.slowest_s)

    is_interrupted = False
    try:
        clock.share = _SWAPS
        improved = improve(energy, first.fleet, budget, stop=stop)
        clock.share = _FIRST_GOAL
        first = EnergySearch(energy, order_of_groups(energy, improved[1]), budget, improved)
        first.run(gap, stop=stop)
        clock.share = 1.0 if energy.exact else _SECOND_GOAL
        most_j = first.best_j * (1.0 + _SAME_ENERGY)
        second = PriceSearch(energy, order_of_groups(energy, first.fleet), most_j, first.fleet)
        second.run(stop=stop)
    except KeyboardInterrupt:
        if not keeps_interrupted:
            raise
        is_interrupted = True
    fleet = first.fleet if second is None else second.fleet
    energy.dispatcher.pause = clock.last_call(_SCHEDULE_S if is_interrupted else 0.0)
    design_schedule = energy.schedule(fleet)
    # An interrupted search may not have come to any bound: every group's most machines give one.
    proven_j = first.bound_j or energy.low_j(energy.dispatcher.most.tolist())
    bound_j = min(proven_j, design_schedule.energy_j) * (1.0 - _MARGIN)
    price = price_of(problem, fleet)
    if not is_interrupted:
        clock.say(design_schedule.energy_j, bound_j, price, "price")
    return Design(
        name="Design-V",
        fleet=fleet,
        price=price,
        schedule=design_schedule,
        bound_j=bound_j,
        seconds=clock.elapsed_s,
        price_is_least=second is not None and second.proven,
        is_interrupted=is_interrupted,
    )


def _starts(
    problem: ClusterProblem, energy: FleetEnergy, budget: float, clock: _Clock
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield fleets that are easy to come by and within the budget, so the answer is never above theirs."""
    fleet = least_budget(problem)[1]
    yield (energy.high_j(fleet), fleet)
    if energy.exact or not clock.is_late(energy.slowest_s):
        for fleet in simple_fleets(problem):
            if price_of(problem, fleet) <= budget:
                yield (energy.high_j(fleet), fleet)


class _Clock:
    """Time since the start, told to the caller now and then.

    Attributes
    ----------
    share : float
        Part of the time after which what is being done is late.
    """

    def __init__(self, seconds: float, progress: Callable[[Progress], None] | None, every_s: float) -> None:
        self._begin = time.perf_counter()
        self._seconds = seconds
        self._progress = progress
        self._every_s = every_s
        self._told_s = 0.0
        self.share = 1.0

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._begin

    def is_late(self, kept_s: float) -> bool:
        """Return whether the share of the time is over; twice ``kept_s`` are kept for the schedule."""
        return self.elapsed_s > self.share * (self._seconds - 2.0 * kept_s)

    def refuse_late(self, kept_s: float) -> None:
        """Raise OutOfTime if it is late."""
        if self.is_late(kept_s):
            raise OutOfTime

    def last_call(self, more_s: float) -> Callable[[], None]:
        """Return what raises OutOfTime once all time, and at least ``more_s`` from now on, is over."""
        end_s = self.elapsed_s + more_s if more_s else self._seconds

        def refuse_after() -> None:
            if self.elapsed_s > end_s:
                raise OutOfTime

        return refuse_after

    def tell(self, best_j: float, bound_j: float, price: float, goal: str) -> None:
        """Report if it is time to."""
        elapsed_s = self.elapsed_s
        if elapsed_s - self._told_s >= self._every_s:
            self.say(best_j, bound_j, price, goal)

    def say(self, best_j: float, bound_j: float, price: float, goal: str) -> None:
        """Report."""
        self._told_s = self.elapsed_s
        if self._progress is not None:
            self._progress(
                Progress(elapsed_s=self._told_s, best_j=best_j, bound_j=bound_j, price=price, goal=goal)
            )
