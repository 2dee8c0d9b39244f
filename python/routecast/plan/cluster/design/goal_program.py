"""The preemptive goal program: least energy within a budget, then least price at that energy (Li 2012, (8.1)-(8.8)).

Li (2012) states it over all n_kt at once, which is too slow for a solver from a few groups and a day of steps. Here
only the fleet N_k is searched (``fleet_search``): for a fixed fleet the steps are independent and one table gives the
energy of the day exactly (``step.dispatch``). The answer carries a proven bound.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from routecast.plan.cluster.design.fleet_energy import FleetEnergy, OutOfTime
from routecast.plan.cluster.design.heuristics import check_budget, least_budget, price_of, simple_fleets
from routecast.plan.cluster.infeasible import check
from routecast.plan.cluster.model import ClusterProblem, Design, Schedule
from routecast.plan.cluster.step.dispatch import Dispatcher, schedule
from routecast.quantity.schema import field, value

__all__ = ["Progress", "goal_program", "least_budget", "optimal_bound"]


# A good fleet within a budget, quickly: machines are swapped for others while that saves energy.


_OUT = 2
_IN = 3


def improve(
    energy: FleetEnergy, fleet: Sequence[int], budget: float, *, stop: Callable[[], bool]
) -> tuple[float, tuple[int, ...]]:
    """Return the best fleet that swaps lead to, with its energy.

    A swap takes up to two machines of one group out and puts up to three of another in. Group after group, the best
    swap that takes of it is made, until none saves energy.

    Parameters
    ----------
    energy : FleetEnergy
    fleet : sequence of int
        Where to begin; within the budget.
    budget : float
    stop : callable
        Ends the search when it returns true.
    """
    best = tuple(fleet)
    least_j = energy.high_j(best)
    idle_groups = 0
    group = 0
    while idle_groups < len(best) and not stop():
        found_j, found = least_j, best
        for candidate in _swaps(energy, best, budget, group):
            if stop():
                break
            if energy.low_j(candidate) >= found_j * (1.0 - 1e-12):
                continue
            value_j = energy.high_j(candidate)
            if value_j < found_j * (1.0 - 1e-12):
                found_j, found = value_j, candidate
        idle_groups = idle_groups + 1 if found == best else 0
        group = (group + 1) % len(best)
        least_j, best = found_j, found
    return least_j, best


def _swaps(energy: FleetEnergy, fleet: tuple[int, ...], budget: float, out: int) -> Iterator[tuple[int, ...]]:
    prices = energy.dispatcher.arrays.price.tolist()
    most = energy.dispatcher.most.tolist()
    spent = sum(price * count for price, count in zip(prices, fleet, strict=True))
    for taken in range(min(_OUT, fleet[out]) + 1):
        for put in range(len(fleet)):
            if put == out and taken:
                continue
            for added in range(1, _IN + 1):
                price = spent - taken * prices[out] + added * prices[put]
                if price > budget or fleet[put] + added > most[put]:
                    break
                swapped = list(fleet)
                swapped[out] -= taken
                swapped[put] += added
                yield tuple(swapped)


# Search over fleets with a proof: branch and bound on the numbers of machines N_k, a table a node.
#
# A node fixes the first groups of an order; what money is left could buy ⌊left / C_k⌋ machines of each other group.
# Granting it all of them at once relaxes the budget only, and the day's energy of that larger fleet, exact from one
# knapsack table, is below that of every fleet in the node::
#
#     E(N_1 … N_j, ⌊left/C_{j+1}⌋ … ⌊left/C_K⌋)  <=  E(N)    for all N of the node,
#
# because a fleet with more machines never needs more energy. Groups that carry much come first in the order, so little
# money is left for the others soon and the bound is tight after few levels.


_ROUND = 1e-12


def order_of_groups(energy: FleetEnergy, fleet: Sequence[int]) -> list[int]:
    """Return the groups, those first that carry most: in a good fleet, then in steps without a budget."""
    dispatcher = energy.dispatcher
    largest = energy.dispatcher.arrays.capacity_bps
    weight = (np.asarray(fleet) + 0.1 * _used(energy)) * largest
    return [int(group) for group in np.argsort(-weight, kind="stable")] if dispatcher.most.size else []


def _used(energy: FleetEnergy) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    dispatcher = energy.dispatcher
    if not dispatcher.quick:
        return np.zeros(dispatcher.most.size)
    return np.asarray(dispatcher.repeats @ dispatcher.counts() / dispatcher.repeats.sum(), dtype=np.float64)


class _Tree:
    """Nodes as tuples of the first numbers of machines, in the order of the groups."""

    def __init__(self, energy: FleetEnergy, order: Sequence[int]) -> None:
        self._energy = energy
        self._order = list(order)
        arrays = energy.dispatcher.arrays
        self._prices: list[float] = arrays.price.tolist()
        self._capacity: list[float] = arrays.capacity_bps.tolist()
        self._most: list[int] = energy.dispatcher.most.tolist()
        self._peak_bps = float(energy.dispatcher.loads_bps[-1])
        self._spare = energy.dispatcher.problem.spare
        self._by_capacity = sorted(range(len(self._order)), key=lambda j: -self._capacity[self._order[j]])
        self._smallest_bps: float = min(self._capacity)

    def _affordable(self, group: int, left: float) -> int:
        if left < 0.0:
            return -1
        price = self._prices[group]
        if math.isinf(left) or price * self._most[group] <= left:
            return self._most[group]
        return min(self._most[group], int(left / price * (1.0 + _ROUND)))

    def spent(self, fixed: tuple[int, ...]) -> float:
        """Return the price of the machines that a node fixes."""
        return math.fsum(self._prices[self._order[j]] * count for j, count in enumerate(fixed))

    def largest(self, fixed: tuple[int, ...], budget: float) -> tuple[int, ...] | None:
        """Return the fleet that bounds a node; None if no fleet of it is within the budget and carries the peak."""
        left = budget - self.spent(fixed)
        if left < -_ROUND * budget:
            return None
        left = max(left, 0.0)
        fleet = [0] * len(self._order)
        carried = 0.0
        best_rate = 0.0
        for j, group in enumerate(self._order):
            if j < len(fixed):
                fleet[group] = fixed[j]
                carried += fixed[j] * self._capacity[group]
                continue
            fleet[group] = self._affordable(group, left)
            if fleet[group]:
                price = self._prices[group]
                best_rate = max(best_rate, self._capacity[group] / price if price > 0.0 else math.inf)
        # What the money left buys at best, in parts of machines: no fleet of the node carries more.
        reach = carried + (best_rate * left if math.isfinite(best_rate * left) else math.inf)
        needed = self._peak_bps + self._spare_bps(fixed)
        if reach < needed * (1.0 - 1e-9):
            return None
        if self._spare:
            # A machine whose own loss the node's money cannot make up for is in no fleet of the node.
            for group in self._order[len(fixed) :]:
                with_it = self._capacity[group] + (self._spare - 1) * self._smallest_bps
                if reach < (self._peak_bps + with_it) * (1.0 - 1e-9):
                    fleet[group] = 0
        return tuple(fleet)

    def _spare_bps(self, fixed: tuple[int, ...]) -> float:
        """Return a capacity that the ``spare`` largest machines of every fleet of a node have at least."""
        missing = self._spare
        largest_bps = 0.0
        for j in self._by_capacity if missing else ():
            if j < len(fixed) and missing:
                taken = min(fixed[j], missing)
                largest_bps += taken * self._capacity[self._order[j]]
                missing -= taken
        return largest_bps + missing * self._smallest_bps

    def price(self, fleet: tuple[int, ...]) -> float:
        """Return Σ C_k N_k."""
        return math.fsum(price * count for price, count in zip(self._prices, fleet, strict=True))

    def within(self, fleet: tuple[int, ...], budget: float) -> bool:
        """Return whether a fleet is affordable."""
        return math.isinf(budget) or self.price(fleet) <= budget * (1.0 + _ROUND)

    def children(self, fixed: tuple[int, ...], budget: float) -> Iterator[tuple[int, ...]]:
        """Yield the nodes that fix one group more, most machines first."""
        group = self._order[len(fixed)]
        for count in range(self._affordable(group, max(budget - self.spent(fixed), 0.0)), -1, -1):
            yield (*fixed, count)


class EnergySearch(_Tree):
    """Least energy within a budget, best bound first (8.1)-(8.4).

    Attributes
    ----------
    best_j : float
        Energy of the best fleet so far.
    fleet : tuple of int
        That fleet.
    bound_j : float
        No fleet within the budget needs less.
    """

    def __init__(
        self, energy: FleetEnergy, order: Sequence[int], budget: float, start: tuple[float, tuple[int, ...]]
    ) -> None:
        super().__init__(energy, order)
        self._budget = budget
        self.best_j, self.fleet = start
        self.bound_j = 0.0
        self._closed_j = math.inf
        self._open: list[tuple[float, int, tuple[int, ...]]] = []

    def run(self, gap: float, *, stop: Callable[[], bool]) -> None:
        """Search until the best energy is within ``gap`` of the bound, or until ``stop``."""
        self._visit(())
        while self._open:
            self._raise_bound(self._open[0][0])
            if self.best_j <= self.bound_j * (1.0 + gap) or stop():
                return
            low_j, depth, fixed = heapq.heappop(self._open)
            tight_j = low_j if self._energy.exact else self._tight_j(fixed)
            if tight_j > low_j:
                if tight_j < self.best_j:
                    heapq.heappush(self._open, (tight_j, depth, fixed))
                continue
            for child in self.children(fixed, self._budget):
                self._visit(child)
        self._raise_bound(math.inf)

    def _tight_j(self, fixed: tuple[int, ...]) -> float:
        """Return a better bound of a node than it was put into the queue with, if there is one."""
        fleet = self.largest(fixed, self._budget)
        return math.inf if fleet is None else self._energy.tight_j(fleet)

    def _raise_bound(self, open_j: float) -> None:
        self.bound_j = max(self.bound_j, min(open_j, self._closed_j, self.best_j))

    def _visit(self, fixed: tuple[int, ...]) -> None:
        fleet = self.largest(fixed, self._budget)
        if fleet is None:
            return
        low_j = self._energy.low_j(fleet)
        if low_j >= self.best_j or math.isinf(low_j):
            return
        if self.within(fleet, self._budget):
            # The node's largest fleet is itself a fleet within the budget: the best of the node. Working out what it
            # can be run at may raise what it cannot go below.
            high_j = self._energy.high_j(fleet)
            self._closed_j = min(self._closed_j, self._energy.low_j(fleet))
            if high_j < self.best_j:
                self.best_j, self.fleet = high_j, fleet
        else:
            heapq.heappush(self._open, (low_j, -len(fixed), fixed))


class PriceSearch(_Tree):
    """Least price among the fleets of an energy, depth first (8.5)-(8.8).

    Attributes
    ----------
    fleet : tuple of int
        The cheapest fleet so far.
    least_price : float
        Its price.
    proven : bool
        Whether no fleet of the energy costs less.
    """

    def __init__(self, energy: FleetEnergy, order: Sequence[int], most_j: float, fleet: tuple[int, ...]) -> None:
        super().__init__(energy, order)
        self._most_j = most_j
        self.fleet = fleet
        self.least_price = self.price(fleet)
        self.proven = False

    def run(self, *, stop: Callable[[], bool]) -> None:
        """Search until nothing cheaper is left, or until ``stop``."""
        self._trim(self.fleet, stop)
        decided = True
        nodes: list[tuple[int, ...]] = [()]
        while nodes and self.least_price > 0.0:
            if stop():
                return
            fixed = nodes.pop()
            allowed = self.least_price * (1.0 - 1e-9)
            fleet = self.largest(fixed, allowed)
            if fleet is None or self._energy.low_j(fleet) > self._most_j:
                continue
            if not self.within(fleet, allowed):
                nodes.extend(self.children(fixed, allowed))
            elif self._energy.high_j(fleet) <= self._most_j:
                self._trim(fleet, stop)
                nodes.append(fixed)
            elif self._energy.low_j(fleet) <= self._most_j:
                decided = False
        self.proven = decided

    def _trim(self, fleet: tuple[int, ...], stop: Callable[[], bool]) -> None:
        """Keep a fleet without machines, dear ones first, that the energy does not need."""
        left = list(fleet)
        for group in sorted(range(len(left)), key=lambda k: -self._prices[k]):
            while left[group] and not stop():
                left[group] -= 1
                if self._energy.low_j(left) > self._most_j or self._energy.high_j(left) > self._most_j:
                    left[group] += 1
                    break
        self.fleet = tuple(left)
        self.least_price = self.price(self.fleet)


# The least energy that any fleet can reach: every step takes what suits it best (Li 2012, (8.10)-(8.11)).


def optimal_bound(problem: ClusterProblem) -> Schedule:
    """Return the cheapest machines of every step, with no budget and no fleet common to the steps.

    Numbers of machines that can be had, and spares, are kept to.

    Raises
    ------
    InfeasiblePlan
        The machines that can be had do not carry the peak.
    ModelProblem
        A field is out of range.
    """
    return schedule(problem)


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


@value
class Progress:
    """How far a goal program is."""

    elapsed_s: float
    # Energy of the best fleet so far, and what no fleet can go below.
    best_j: float
    bound_j: float
    price: float = field("Price of the best fleet so far")
    goal: str = field('``"energy"`` or ``"price"``')

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
            self._progress(Progress(elapsed_s=self._told_s, best_j=best_j, bound_j=bound_j, price=price, goal=goal))
