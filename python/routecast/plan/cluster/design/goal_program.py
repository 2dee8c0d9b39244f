"""The preemptive goal program: least energy within a budget, then least price at that energy (Li 2012, (8.1)-(8.8)).

The thesis states it over all n_kt at once, which is too slow for a solver from a few groups and a day of steps. Here
only the fleet N_k is searched (``fleet_search``): for a fixed fleet the steps are independent and one table gives the
energy of the day exactly (``step.dispatch``). The answer carries a proven bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from routecast.plan.cluster.design.fleet_energy import FleetEnergy
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
_SWAPS = 0.15
_FIRST_GOAL = 0.8
"""Shares of the time after which swapping machines, and the search for the least energy, end."""


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
) -> Design:
    """Return the fleet of least energy within the budget and, among those of that energy, of least price.

    Parameters
    ----------
    problem : ClusterProblem
    gap : float
        The energy is good enough when it is at most this share above the proven bound; 0 for the optimum.
    seconds : float
        Time after which the search ends; the best design so far is returned with the bound that is proven by then.
        Spares together with idle power, and capacities without a common quantum, take longer: the schedule of the
        fleet found is then made by an integer program for each distinct load.
    progress : callable, optional
        Is told about every ``every_s`` seconds, and at the end of each goal.
    every_s : float

    Returns
    -------
    Design
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
    start = min(_starts(problem, energy, budget))
    first = EnergySearch(energy, range(len(problem.groups)), budget, start)

    def first_stop(share: float) -> bool:
        return clock.tell(first.best_j, first.bound_j, price_of(problem, first.fleet), "energy", share)

    improved = improve(energy, first.fleet, budget, stop=lambda: first_stop(_SWAPS))
    first = EnergySearch(energy, order_of_groups(energy, improved[1]), budget, improved)
    first.run(gap, stop=lambda: first_stop(_FIRST_GOAL))
    most_j = first.best_j * (1.0 + _SAME_ENERGY)
    second = PriceSearch(energy, order_of_groups(energy, first.fleet), most_j, first.fleet)

    def second_stop() -> bool:
        return clock.tell(first.best_j, first.bound_j, second.least_price, "price", 1.0)

    second.run(stop=second_stop)
    design_schedule = energy.schedule(second.fleet)
    bound_j = min(first.bound_j, design_schedule.energy_j) * (1.0 - _MARGIN)
    clock.say(design_schedule.energy_j, bound_j, second.least_price, "price")
    return Design(
        name="Design-V",
        fleet=second.fleet,
        price=price_of(problem, second.fleet),
        schedule=design_schedule,
        bound_j=bound_j,
        seconds=clock.elapsed_s,
        price_is_least=second.proven,
    )


def _starts(
    problem: ClusterProblem, energy: FleetEnergy, budget: float
) -> list[tuple[float, tuple[int, ...]]]:
    """Return the fleets that are easy to come by and within the budget, so the answer is never above theirs."""
    fleets = [least_budget(problem)[1], *simple_fleets(problem)]
    return [(energy.high_j(fleet), fleet) for fleet in fleets if price_of(problem, fleet) <= budget]


class _Clock:
    """Time since the start, told to the caller now and then."""

    def __init__(self, seconds: float, progress: Callable[[Progress], None] | None, every_s: float) -> None:
        self._begin = time.perf_counter()
        self._seconds = seconds
        self._progress = progress
        self._every_s = every_s
        self._told_s = 0.0

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._begin

    def tell(self, best_j: float, bound_j: float, price: float, goal: str, share: float) -> bool:
        """Report if it is time to, and return whether ``share`` of the time is over."""
        elapsed_s = self.elapsed_s
        if elapsed_s - self._told_s >= self._every_s:
            self.say(best_j, bound_j, price, goal)
        return elapsed_s > self._seconds * share

    def say(self, best_j: float, bound_j: float, price: float, goal: str) -> None:
        """Report."""
        self._told_s = self.elapsed_s
        if self._progress is not None:
            self._progress(
                Progress(elapsed_s=self._told_s, best_j=best_j, bound_j=bound_j, price=price, goal=goal)
            )
