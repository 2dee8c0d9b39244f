"""Designs of a cluster: the goal program, simpler designs, and the lower bound on the energy of all of them.

The preemptive goal program minimises the energy within a budget, then the price at that energy (Li 2012, (8.1)-(8.8)).
Li states it over all n_kt at once; with a few groups and a day of steps that is too slow for a solver. This search
varies the fleet N_k only: for a fixed fleet the steps are independent, and one table gives the energy of the day
exactly (:mod:`routecast.plan.cluster._dispatch`). The answer has a proven bound.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from routecast.plan.cluster._cover import (
    Floats,
    Ints,
    cover_costs,
    cover_counts,
    idle_cover_costs,
    spare_cover_costs,
    spare_cover_counts,
)
from routecast.plan.cluster._dispatch import Dispatcher, power_w, schedule, solve_step
from routecast.plan.cluster.model import ClusterProblem, Design, InfeasiblePlan, MachineGroup, Schedule, check
from routecast.quantity import format_bps
from routecast.quantity.schema import field, value

__all__ = [
    "FleetEnergy",
    "GoalProgress",
    "OutOfTime",
    "check_budget",
    "design_i",
    "design_ii",
    "design_iii",
    "design_iv",
    "goal_program",
    "least_budget",
    "optimal_bound",
    "price_of",
    "simple_fleets",
]

_CELLS = 50_000
"""Quanta of the peak in rounded tables, where capacities have no common quantum or a finer one."""
_FEW_CELLS = 5_000
"""Quanta of the peak in the rounded tables of a quick schedule."""
_TIGHT_S = 0.1
"""The longest time to solve a fleet exactly for a bound; longer times give fewer bounds, if tighter ones."""


class OutOfTime(Exception):
    """Raised by ``Dispatcher.pause``: the exact answer takes too long, so a quick one replaces it."""


class FleetEnergy:
    """Lower and upper bounds on the energy of fleets over the loads of a dispatcher; each fleet is solved once.

    The bounds are equal where one table gives the exact energy. Elsewhere they save time:

    * With both spares and idle power, the lower bound is the greater of two relaxations (no spares; all load at the
      least slope). The upper bound is exact and takes many tables, so it is computed only where the search needs it.
    * Capacities without a common quantum are rounded to a fine one, up for the lower bound and down for the upper.
      Loads that the rounded-down capacities do not carry are carried by all machines of the fleet.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.is_exact = dispatcher.is_exact
        self._low: dict[tuple[int, ...], float] = {}
        self._high: dict[tuple[int, ...], float] = {}
        self._quick_high: dict[tuple[int, ...], float] = {}
        # The longest time of a fleet that one table does not answer.
        self.slowest_s = 0.0
        self._rounded_up = _Rounded(dispatcher, np.ceil)
        self._rounded_down = _Rounded(dispatcher, np.floor)

    def low_j(self, fleet: Sequence[int]) -> float:
        """Return a lower bound on the energy of the fleet and of any smaller one, J; inf if it misses the peak."""
        key = tuple(self.dispatcher.limits(fleet).tolist())
        value = self._low.get(key)
        if value is None:
            if self.is_exact:
                value = self.dispatcher.energy_j(key)
            else:
                value = self._day_j(self._rounded_up.least_w(np.array(key)))
            self._low[key] = value
        return value

    def high_j(self, fleet: Sequence[int]) -> float:
        """Return an upper bound on the energy of the fleet, J, exact if time allows; inf if it misses the peak."""
        if self.is_exact:
            return self.low_j(fleet)
        key = tuple(self.dispatcher.limits(fleet).tolist())
        value = self._high.get(key)
        if value is not None:
            return value
        if self._solve_exactly(key):
            return self._high[key]
        value = self._quick_high.get(key)
        if value is None:
            carries = self.dispatcher.carried_bps(key) >= float(self._loads_bps[-1]) * (1.0 - 1e-12)
            powers_w = power_w(self.dispatcher.arrays, self._quick_counts(key), self._loads_bps)
            value = self._quick_high[key] = self._day_j(powers_w) if carries else np.inf
        return value

    def tight_j(self, fleet: Sequence[int]) -> float:
        """Return ``low_j``, or the exact least energy where the tables take little time, J."""
        key = tuple(self.dispatcher.limits(fleet).tolist())
        if not self.is_exact and key not in self._high and self.slowest_s < _TIGHT_S:
            self._solve_exactly(key)
        return self.low_j(key)

    def _solve_exactly(self, key: tuple[int, ...]) -> bool:
        """Solve a fleet exactly; return whether the time allowed it."""
        if not self.dispatcher.is_tabulated:
            return False
        begin = time.perf_counter()
        try:
            self._low[key] = self._high[key] = self.dispatcher.energy_j(key)
        except OutOfTime:
            return False
        self.slowest_s = max(self.slowest_s, time.perf_counter() - begin)
        return True

    def schedule(self, fleet: Sequence[int]) -> Schedule:
        """Return the best schedule of a fleet that carries the peak, or that of ``high_j`` if the time is over."""
        try:
            return self.dispatcher.schedule(fleet)
        except OutOfTime:
            return self.dispatcher.schedule_of(self._quick_counts(tuple(self.dispatcher.limits(fleet).tolist())))

    @property
    def _loads_bps(self) -> Floats:
        return self.dispatcher.loads_bps

    def _quick_counts(self, key: tuple[int, ...]) -> Ints:
        """Return machines that carry every distinct load, the best of a few choices, shape (loads, groups)."""
        arrays = self.dispatcher.arrays
        best = np.where(self._loads_bps[:, None] > 0.0, np.array(key), 0)
        for costs in (arrays.power_w, arrays.idle_w) if self.dispatcher.has_load_power else (arrays.power_w,):
            is_carried, counts = self._rounded_down.machines(np.array(key), costs)
            better = is_carried & (power_w(arrays, counts, self._loads_bps) < power_w(arrays, best, self._loads_bps))
            best[better] = counts[better]
        return best

    def _day_j(self, powers_w: Floats) -> float:
        return float(powers_w @ self.dispatcher.repeats) * self.dispatcher.problem.step_s


class _Rounded:
    """Tables over capacities that are rounded to a quantum, where the dispatcher has no exact table."""

    def __init__(self, dispatcher: Dispatcher, rounding: np.ufunc) -> None:
        arrays = dispatcher.arrays
        peak_bps = float(dispatcher.loads_bps[-1]) or float(arrays.capacity_bps.max())
        cells = _CELLS if rounding is np.ceil or not dispatcher.is_tabulated else _FEW_CELLS
        quantum_bps = max(dispatcher.quantum_bps or 0.0, peak_bps / cells)
        self._dispatcher = dispatcher
        quanta = arrays.capacity_bps / quantum_bps
        is_whole = quantum_bps == dispatcher.quantum_bps
        rounded = np.rint(quanta) if is_whole else rounding(quanta * (1.0 + 1e-12))
        self._weights: Ints = rounded.astype(np.int64)
        self._loads: Floats = dispatcher.loads_bps / quantum_bps
        self._needs: Ints = np.ceil(self._loads * (1.0 - 1e-12)).astype(np.int64)
        self._slopes: Floats = arrays.slope_j * quantum_bps

    def least_w(self, limits: Ints) -> Floats:
        """Return a lower bound on the power for every distinct load, W, shape (loads,)."""
        spare = self._dispatcher.problem.spare
        arrays = self._dispatcher.arrays
        cells = int(self._needs[-1])
        if not self._dispatcher.has_load_power:
            return self._cover_w(arrays.power_w, limits, cells)
        # A rounded-up machine carries more load at the true slope, so this is a lower bound.
        without_spares = idle_cover_costs(self._weights, arrays.idle_w, self._slopes, limits, self._loads)
        if not spare:
            return without_spares
        used = limits > 0
        slope = float(self._slopes[used].min(initial=np.inf)) if used.any() else 0.0
        every_bit = self._cover_w(arrays.idle_w, limits, cells) + slope * self._loads
        return np.maximum(without_spares, every_bit)

    def _cover_w(self, costs: Floats, limits: Ints, cells: int) -> Floats:
        spare = self._dispatcher.problem.spare
        if spare:
            return spare_cover_costs(self._weights, costs, limits, cells, spare)[self._needs]
        return cover_costs(self._weights, costs, limits, cells)[self._needs]

    def machines(self, limits: Ints, costs: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Ints]:
        """Return whether rounded machines carry each distinct load, and the cheapest ones that do by ``costs``."""
        limits = np.where(self._weights > 0, limits, 0)
        is_carried = np.isfinite(self._cover_w(costs, limits, int(self._needs[-1])))
        counts = np.zeros((is_carried.size, limits.size), dtype=np.int64)
        spare = self._dispatcher.problem.spare
        if spare:
            counts[is_carried] = spare_cover_counts(self._weights, costs, limits, self._needs[is_carried], spare)
        else:
            counts[is_carried] = cover_counts(self._weights, costs, limits, self._needs[is_carried])
        return is_carried, counts


def least_budget(problem: ClusterProblem) -> tuple[float, tuple[int, ...]]:
    """Return the least price of a fleet that carries every step with spares, and this fleet.

    A fleet that carries the peak carries every step. So this is a dispatch of the peak with prices instead of powers.
    The budget of the problem is not used.
    """
    check(problem)
    priced = replace(
        problem, groups=tuple(replace(group, power_w=group.price, idle_w=None) for group in problem.groups)
    )
    fleet = Dispatcher(priced, [max(problem.traffic_bps)]).schedule().on[0]
    return (price_of(problem, fleet), fleet)


def price_of(problem: ClusterProblem, fleet: tuple[int, ...]) -> float:
    """Return the price of a fleet, Σ C_k N_k."""
    return sum(group.price * count for group, count in zip(problem.groups, fleet, strict=True))


def check_budget(problem: ClusterProblem) -> None:
    """Raise InfeasiblePlan if the budget buys no fleet that carries the peak."""
    if problem.budget is None:
        return
    least, fleet = least_budget(problem)
    if problem.budget < least * (1.0 - 1e-12):
        machines = ", ".join(
            f"{count} × {group.name}" for group, count in zip(problem.groups, fleet, strict=True) if count
        )
        raise InfeasiblePlan(
            "budget",
            problem.budget,
            least,
            f"the budget {problem.budget:.10g} is {least - problem.budget:.10g} too small: the cheapest fleet that"
            f" carries the peak of {format_bps(max(problem.traffic_bps))} is {machines} for {least:.10g}; raise the"
            f" budget to {least:.10g} or more",
        )


def design_i(problem: ClusterProblem) -> Design:
    """Return Design-I: the machines of greatest capacity for their price, as many as the peak needs."""
    return _design("Design-I", problem, _per_price)


def design_ii(problem: ClusterProblem) -> Design:
    """Return Design-II: the machines of greatest capacity, as many as the peak needs."""
    return _design("Design-II", problem, _capacity)


def design_iii(problem: ClusterProblem) -> Design:
    """Return Design-III: the machines of greatest capacity for their power, as many as the peak needs."""
    return _design("Design-III", problem, _per_watt)


def design_iv(problem: ClusterProblem) -> Design:
    """Return Design-IV, the locally optimal design: (8.1)-(8.8) with the peak as the only step.

    It minimises the power at the peak within the budget, then the price at that power (to 1e-9).
    """
    check_budget(problem)
    return _design("Design-IV", problem, None)


def simple_fleets(problem: ClusterProblem) -> Iterator[tuple[int, ...]]:
    """Yield the fleets of the four designs, without their schedules."""
    dispatcher = Dispatcher(problem)
    for merit in (_per_price, _capacity, _per_watt):
        yield _greedy(problem, dispatcher, merit)
    yield _locally_optimal(problem, dispatcher)


def _per_price(group: MachineGroup) -> float:
    return group.capacity_bps / group.price if group.price > 0.0 else math.inf


def _capacity(group: MachineGroup) -> float:
    return group.capacity_bps


def _per_watt(group: MachineGroup) -> float:
    return group.capacity_bps / group.power_w if group.power_w > 0.0 else math.inf


def _locally_optimal(problem: ClusterProblem, dispatcher: Dispatcher) -> tuple[int, ...]:
    peak_bps = max(problem.traffic_bps)
    least_power = solve_step(dispatcher.arrays, dispatcher.max_counts, peak_bps, problem.spare, budget=problem.budget)
    assert least_power is not None, "the budget was checked to buy a fleet that carries the peak"
    least_price = solve_step(
        dispatcher.arrays,
        dispatcher.max_counts,
        peak_bps,
        problem.spare,
        minimise="price",
        budget=problem.budget,
        max_w=least_power.value * (1.0 + 1e-9),
    )
    return (least_price or least_power).counts


def _greedy(problem: ClusterProblem, dispatcher: Dispatcher, merit: Callable[[MachineGroup], float]) -> tuple[int, ...]:
    """Return N = ⌈T_max / R⌉ machines (8.9) of the best group, plus the spares.

    If fewer machines are available, those of the next best group are added. As in Li (2012) the budget is not used.
    Among groups of equal merit the one of greatest capacity comes first.
    """
    peak_bps = max(problem.traffic_bps)
    order = sorted(
        range(len(problem.groups)), key=lambda k: (-merit(problem.groups[k]), -problem.groups[k].capacity_bps, k)
    )
    fleet = [0] * len(problem.groups)
    for group in order:
        # The capacity rises with each machine, so bisection finds the number that is still missing.
        low, high = 0, int(dispatcher.max_counts[group])
        while low < high:
            fleet[group] = (low + high) // 2
            if dispatcher.carried_bps(fleet) >= peak_bps * (1.0 - 1e-12):
                high = fleet[group]
            else:
                low = fleet[group] + 1
        fleet[group] = low
        if dispatcher.carried_bps(fleet) >= peak_bps * (1.0 - 1e-12):
            break
    return tuple(fleet)


def _design(name: str, problem: ClusterProblem, merit: Callable[[MachineGroup], float] | None) -> Design:
    """Return a design by ``merit``, or the locally optimal one, with its schedule."""
    begin = time.perf_counter()
    check(problem)
    dispatcher = Dispatcher(problem)
    fleet = _locally_optimal(problem, dispatcher) if merit is None else _greedy(problem, dispatcher, merit)
    bound_j = FleetEnergy(dispatcher).low_j(dispatcher.max_counts.tolist())
    return Design(
        name=name,
        fleet=fleet,
        price=price_of(problem, fleet),
        schedule=dispatcher.schedule(fleet),
        bound_j=bound_j * (1.0 - 1e-9),
        seconds=time.perf_counter() - begin,
    )


def improve(
    energy: FleetEnergy, fleet: Sequence[int], budget: float, *, stop: Callable[[], bool]
) -> tuple[float, tuple[int, ...]]:
    """Return a fleet that no swap improves, with its energy, J.

    A swap removes up to two machines of one group and adds up to three of another. For each group in turn
    the search makes the best swap that removes its machines, until no swap saves energy or ``stop`` returns true.
    """
    best = tuple(fleet)
    least_j = energy.high_j(best)
    idle_groups = 0
    group = 0
    while idle_groups < len(best) and not stop():
        next_j, next_fleet = least_j, best
        for candidate in _swaps(energy, best, budget, group):
            if stop():
                break
            if energy.low_j(candidate) >= next_j * (1.0 - 1e-12):
                continue
            value_j = energy.high_j(candidate)
            if value_j < next_j * (1.0 - 1e-12):
                next_j, next_fleet = value_j, candidate
        idle_groups = idle_groups + 1 if next_fleet == best else 0
        group = (group + 1) % len(best)
        least_j, best = next_j, next_fleet
    return least_j, best


def _swaps(energy: FleetEnergy, fleet: tuple[int, ...], budget: float, source: int) -> Iterator[tuple[int, ...]]:
    prices = energy.dispatcher.arrays.price.tolist()
    max_counts = energy.dispatcher.max_counts.tolist()
    spent = sum(price * count for price, count in zip(prices, fleet, strict=True))
    for removed in range(min(2, fleet[source]) + 1):
        for target in range(len(fleet)):
            if target == source and removed:
                continue
            for added in range(1, 4):
                price = spent - removed * prices[source] + added * prices[target]
                if price > budget or fleet[target] + added > max_counts[target]:
                    break
                swapped = list(fleet)
                swapped[source] -= removed
                swapped[target] += added
                yield tuple(swapped)


_ROUNDING = 1e-12


def order_of_groups(energy: FleetEnergy, fleet: Sequence[int]) -> list[int]:
    """Return the groups by their capacity in a good fleet and in the steps without budget, the greatest first."""
    dispatcher = energy.dispatcher
    mean_machines: Floats = np.zeros(dispatcher.max_counts.size)
    if dispatcher.is_exact:
        mean_machines = dispatcher.repeats @ dispatcher.counts() / dispatcher.repeats.sum()
    order: list[int] = np.argsort(
        -(fleet + 0.1 * mean_machines) * dispatcher.arrays.capacity_bps, kind="stable"
    ).tolist()
    return order


class _FleetTree:
    """The tree of a branch and bound over fleets: a node fixes the numbers N_k of the first groups, in a given order.

    The rest of the budget buys ⌊left / C_k⌋ machines of each other group. A fleet with all of these machines relaxes
    the budget only. Its energy, exact from one knapsack table, bounds the energy of every fleet in the node::

        E(N_1 … N_j, ⌊left/C_{j+1}⌋ … ⌊left/C_K⌋)  <=  E(N)    for all N of the node,

    because a fleet with more machines never needs more energy. Groups of large capacity come first in the order, so the
    rest of the budget is small after few levels and the bound is tight.
    """

    def __init__(self, energy: FleetEnergy, order: Sequence[int]) -> None:
        self._energy = energy
        self._order = list(order)
        arrays = energy.dispatcher.arrays
        self._prices: list[float] = arrays.price.tolist()
        self._capacity: list[float] = arrays.capacity_bps.tolist()
        self._max_counts: list[int] = energy.dispatcher.max_counts.tolist()
        self._peak_bps = float(energy.dispatcher.loads_bps[-1])
        self._spare = energy.dispatcher.problem.spare
        self._by_capacity = sorted(range(len(self._order)), key=lambda j: -self._capacity[self._order[j]])
        self._smallest_bps: float = min(self._capacity)

    def _affordable(self, group: int, left: float) -> int:
        if left < 0.0:
            return -1
        price = self._prices[group]
        if math.isinf(left) or price * self._max_counts[group] <= left:
            return self._max_counts[group]
        return min(self._max_counts[group], int(left / price * (1.0 + _ROUNDING)))

    def spent(self, fixed: tuple[int, ...]) -> float:
        """Return the price of the machines that a node fixes, in the currency of the budget."""
        return math.fsum(self._prices[self._order[j]] * count for j, count in enumerate(fixed))

    def largest_fleet(self, fixed: tuple[int, ...], budget: float) -> tuple[int, ...] | None:
        """Return the fleet that bounds a node; None if no fleet of the node is affordable and carries the peak."""
        left = budget - self.spent(fixed)
        if left < -_ROUNDING * budget:
            return None
        left = max(left, 0.0)
        fleet = [0] * len(self._order)
        fixed_bps = 0.0
        best_rate = 0.0
        for j, group in enumerate(self._order):
            if j < len(fixed):
                fleet[group] = fixed[j]
                fixed_bps += fixed[j] * self._capacity[group]
                continue
            fleet[group] = self._affordable(group, left)
            if fleet[group]:
                price = self._prices[group]
                best_rate = max(best_rate, self._capacity[group] / price if price > 0.0 else math.inf)
        # The rest of the budget, spent on fractions of machines at the best rate, bounds the capacity of the node.
        max_bps = fixed_bps + (best_rate * left if math.isfinite(best_rate * left) else math.inf)
        needed = self._peak_bps + self._spare_bps(fixed)
        if max_bps < needed * (1.0 - 1e-9):
            return None
        if self._spare:
            # No fleet of the node has a machine so large that the node cannot afford to lose it as a spare.
            for group in self._order[len(fixed) :]:
                spares_bps = self._capacity[group] + (self._spare - 1) * self._smallest_bps
                if max_bps < (self._peak_bps + spares_bps) * (1.0 - 1e-9):
                    fleet[group] = 0
        return tuple(fleet)

    def _spare_bps(self, fixed: tuple[int, ...]) -> float:
        """Return a lower bound on the capacity of the ``spare`` largest machines in any fleet of a node, bit/s."""
        missing = self._spare
        largest_bps = 0.0
        for j in self._by_capacity:
            if j < len(fixed) and missing:
                taken = min(fixed[j], missing)
                largest_bps += taken * self._capacity[self._order[j]]
                missing -= taken
        return largest_bps + missing * self._smallest_bps

    def price(self, fleet: tuple[int, ...]) -> float:
        """Return the price of a fleet, Σ C_k N_k."""
        return math.fsum(price * count for price, count in zip(self._prices, fleet, strict=True))

    def is_affordable(self, fleet: tuple[int, ...], budget: float) -> bool:
        """Return whether the price of a fleet is within the budget."""
        return math.isinf(budget) or self.price(fleet) <= budget * (1.0 + _ROUNDING)

    def children(self, fixed: tuple[int, ...], budget: float) -> Iterator[tuple[int, ...]]:
        """Yield the nodes that also fix the next group, the most machines first."""
        group = self._order[len(fixed)]
        for count in range(self._affordable(group, max(budget - self.spent(fixed), 0.0)), -1, -1):
            yield (*fixed, count)


class EnergySearch(_FleetTree):
    """Searches the fleet of least energy within a budget, best bound first (8.1)-(8.4)."""

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
        """Search until the best energy is within ``gap`` of the bound, or ``stop`` returns true."""
        self._visit(())
        while self._open:
            self._raise_bound(self._open[0][0])
            if self.best_j <= self.bound_j * (1.0 + gap) or stop():
                return
            low_j, depth, fixed = heapq.heappop(self._open)
            tight_j = low_j if self._energy.is_exact else self._tight_j(fixed)
            if tight_j > low_j:
                if tight_j < self.best_j:
                    heapq.heappush(self._open, (tight_j, depth, fixed))
                continue
            for child in self.children(fixed, self._budget):
                self._visit(child)
        self._raise_bound(math.inf)

    def _tight_j(self, fixed: tuple[int, ...]) -> float:
        """Return a bound of a node that is at least its bound in the queue, J."""
        fleet = self.largest_fleet(fixed, self._budget)
        return math.inf if fleet is None else self._energy.tight_j(fleet)

    def _raise_bound(self, open_j: float) -> None:
        self.bound_j = max(self.bound_j, min(open_j, self._closed_j, self.best_j))

    def _visit(self, fixed: tuple[int, ...]) -> None:
        fleet = self.largest_fleet(fixed, self._budget)
        if fleet is None:
            return
        low_j = self._energy.low_j(fleet)
        if low_j >= self.best_j or math.isinf(low_j):
            return
        if self.is_affordable(fleet, self._budget):
            # The largest fleet of the node is affordable, so it is the best of the node. high_j may raise low_j.
            high_j = self._energy.high_j(fleet)
            self._closed_j = min(self._closed_j, self._energy.low_j(fleet))
            if high_j < self.best_j:
                self.best_j, self.fleet = high_j, fleet
        else:
            heapq.heappush(self._open, (low_j, -len(fixed), fixed))


class PriceSearch(_FleetTree):
    """Least price among the fleets of an energy, depth first (8.5)-(8.8); ``is_proven`` if no such fleet costs less."""

    def __init__(self, energy: FleetEnergy, order: Sequence[int], max_j: float, fleet: tuple[int, ...]) -> None:
        super().__init__(energy, order)
        self._max_j = max_j
        self.fleet = fleet
        self.least_price = self.price(fleet)
        self.is_proven = False

    def run(self, *, stop: Callable[[], bool]) -> None:
        """Search until no cheaper fleet is left, or ``stop`` returns true."""
        self._trim(self.fleet, stop)
        is_decided = True
        nodes: list[tuple[int, ...]] = [()]
        while nodes and self.least_price > 0.0:
            if stop():
                return
            fixed = nodes.pop()
            allowed = self.least_price * (1.0 - 1e-9)
            fleet = self.largest_fleet(fixed, allowed)
            if fleet is None or self._energy.low_j(fleet) > self._max_j:
                continue
            if not self.is_affordable(fleet, allowed):
                nodes.extend(self.children(fixed, allowed))
            elif self._energy.high_j(fleet) <= self._max_j:
                self._trim(fleet, stop)
                nodes.append(fixed)
            elif self._energy.low_j(fleet) <= self._max_j:
                is_decided = False
        self.is_proven = is_decided

    def _trim(self, fleet: tuple[int, ...], stop: Callable[[], bool]) -> None:
        """Take over a fleet without the machines that the energy does not need, dropping the most expensive first."""
        left = list(fleet)
        for group in sorted(range(len(left)), key=lambda k: -self._prices[k]):
            while left[group] and not stop():
                left[group] -= 1
                if self._energy.low_j(left) > self._max_j or self._energy.high_j(left) > self._max_j:
                    left[group] += 1
                    break
        self.fleet = tuple(left)
        self.least_price = self.price(self.fleet)


def optimal_bound(problem: ClusterProblem) -> Schedule:
    """Return the machines of least power in every step, without a budget and without a common fleet.

    This is a lower bound on the energy of any fleet (Li 2012, (8.10)-(8.11)). Available machines and spares are
    respected.

    Raises
    ------
    InfeasiblePlan
        The available machines do not carry the peak.
    ModelProblem
        A field is out of range.
    """
    return schedule(problem)


_MARGIN = 1e-9
"""Part subtracted from every bound: far above the sum of rounding errors, far below any gap of interest."""
_SAME_ENERGY = 1e-9
"""Energies within this part are equal in (8.8)."""
_START_SHARE = 0.1
_SWAP_SHARE = 0.15
_ENERGY_SHARE = 0.8
_PRICE_SHARE = 0.9
"""Shares of the time limit at which the start fleets, the swaps, the search for energy, and the search for price end.
The last applies only where the schedule takes time too."""
_SCHEDULE_S = 1.0
"""Time that the schedule may take after an interruption."""


@value
class GoalProgress:
    """The state of a goal program."""

    elapsed_s: float
    best_j: float = field("Energy of the best fleet so far, J")
    bound_j: float = field("Lower bound on the energy of any fleet, J")
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
    on_progress: Callable[[GoalProgress], None] | None = None,
    every_s: float = 0.5,
    keeps_interrupted: bool = False,
) -> Design:
    """Return the fleet of least energy within the budget, of least price among equals.

    Parameters
    ----------
    problem : ClusterProblem
    gap : float
        The search ends when the energy is within this part of the proven bound; 0 for the optimum.
    seconds : float
        Time limit: the search then ends with the best design and the bound so far. With both spares and idle power, or
        with capacities without a common quantum, the schedule takes time too. If the time does not suffice, the
        schedule carries the load but is not the cheapest; the gap includes the difference.
    on_progress : callable, optional
        Called about every ``every_s`` seconds, and at the end of each goal.
    every_s : float
    keeps_interrupted : bool
        Return the best design so far on a KeyboardInterrupt, also one raised by ``on_progress``.
        Before the first design exists, the KeyboardInterrupt propagates.

    Returns
    -------
    routecast.plan.cluster.model.Design
        ``"Design-V"``; its ``bound_j`` is proven, less a part of 1e-9 for rounding. ``price_is_least`` is whether the
        price is proven too.

    Raises
    ------
    InfeasiblePlan
        The budget or the available machines do not suffice for the peak; the exception has the least value that does.
    ModelProblem
        A field is out of range.
    """
    clock = _Clock(seconds, on_progress, every_s)
    check(problem)
    check_budget(problem)
    energy = FleetEnergy(Dispatcher(problem))
    energy.dispatcher.pause = lambda: clock.refuse_late(energy.slowest_s)
    clock.share = _START_SHARE
    search = _GoalSearch(problem, energy, clock)
    is_interrupted = False
    try:
        search.run(gap)
    except KeyboardInterrupt:
        if not keeps_interrupted:
            raise
        is_interrupted = True
    energy.dispatcher.pause = clock.final_deadline(_SCHEDULE_S if is_interrupted else 0.0)
    design_schedule = energy.schedule(search.fleet)
    bound_j = min(search.proven_j(), design_schedule.energy_j) * (1.0 - _MARGIN)
    price = price_of(problem, search.fleet)
    if not is_interrupted:
        clock.report(design_schedule.energy_j, bound_j, price, "price")
    return Design(
        name="Design-V",
        fleet=search.fleet,
        price=price,
        schedule=design_schedule,
        bound_j=bound_j,
        seconds=clock.elapsed_s,
        price_is_least=search.price is not None and search.price.is_proven,
        is_interrupted=is_interrupted,
    )


class _GoalSearch:
    """The two goals one after the other: the least energy within the budget, then the least price at that energy."""

    def __init__(self, problem: ClusterProblem, energy: FleetEnergy, clock: _Clock) -> None:
        self._problem = problem
        self._fleet_energy = energy
        self._budget = math.inf if problem.budget is None else problem.budget
        self._clock = clock
        start = min(_start_fleets(problem, energy, self._budget, clock))
        self.energy = EnergySearch(energy, range(len(problem.groups)), self._budget, start)
        self.price: PriceSearch | None = None

    @property
    def fleet(self) -> tuple[int, ...]:
        """The best fleet so far."""
        return self.energy.fleet if self.price is None else self.price.fleet

    def proven_j(self) -> float:
        """Return a lower bound on the energy of any fleet."""
        # An interrupted search may have no bound yet: the fleet of all useful machines gives one.
        max_counts = self._fleet_energy.dispatcher.max_counts.tolist()
        return self.energy.bound_j or self._fleet_energy.low_j(max_counts)

    def run(self, gap: float) -> None:
        """Search until the energy is within ``gap`` of its bound and the price is the least, or until the time ends."""
        energy, clock = self._fleet_energy, self._clock
        clock.share = _SWAP_SHARE
        improved_start = improve(energy, self.energy.fleet, self._budget, stop=self._stop)
        clock.share = _ENERGY_SHARE
        self.energy = EnergySearch(energy, order_of_groups(energy, improved_start[1]), self._budget, improved_start)
        self.energy.run(gap, stop=self._stop)
        clock.share = 1.0 if energy.is_exact else _PRICE_SHARE
        max_j = self.energy.best_j * (1.0 + _SAME_ENERGY)
        self.price = PriceSearch(energy, order_of_groups(energy, self.energy.fleet), max_j, self.energy.fleet)
        self.price.run(stop=self._stop)

    def _stop(self) -> bool:
        """Report the state of the search if it is due, and return whether the time of its part is over."""
        price = price_of(self._problem, self.energy.fleet) if self.price is None else self.price.least_price
        goal = "energy" if self.price is None else "price"
        self._clock.report_if_due(self.energy.best_j, self.energy.bound_j, price, goal)
        return self._clock.is_late(self._fleet_energy.slowest_s)


def _start_fleets(
    problem: ClusterProblem, energy: FleetEnergy, budget: float, clock: _Clock
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the energy and fleet of simple designs within the budget, as starts of the search."""
    fleet = least_budget(problem)[1]
    yield (energy.high_j(fleet), fleet)
    if energy.is_exact or not clock.is_late(energy.slowest_s):
        for fleet in simple_fleets(problem):
            if price_of(problem, fleet) <= budget:
                yield (energy.high_j(fleet), fleet)


class _Clock:
    """Measures the time of a search and reports progress; the present task ends at ``share`` of the time limit."""

    def __init__(self, seconds: float, on_progress: Callable[[GoalProgress], None] | None, every_s: float) -> None:
        self._begin = time.perf_counter()
        self._seconds = seconds
        self._progress = on_progress
        self._every_s = every_s
        self._reported_s = 0.0
        self.share = 1.0

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._begin

    def is_late(self, schedule_s: float) -> bool:
        """Return whether the share of the time is over; twice ``schedule_s`` are reserved for the schedule."""
        return self.elapsed_s > self.share * (self._seconds - 2.0 * schedule_s)

    def refuse_late(self, schedule_s: float) -> None:
        """Raise OutOfTime if ``is_late``."""
        if self.is_late(schedule_s):
            raise OutOfTime

    def final_deadline(self, more_s: float) -> Callable[[], None]:
        """Return a function that raises OutOfTime after ``more_s`` from now, or after all the time if this is 0."""
        end_s = self.elapsed_s + more_s if more_s else self._seconds

        def refuse_after() -> None:
            if self.elapsed_s > end_s:
                raise OutOfTime

        return refuse_after

    def report_if_due(self, best_j: float, bound_j: float, price: float, goal: str) -> None:
        elapsed_s = self.elapsed_s
        if elapsed_s - self._reported_s >= self._every_s:
            self.report(best_j, bound_j, price, goal)

    def report(self, best_j: float, bound_j: float, price: float, goal: str) -> None:
        self._reported_s = self.elapsed_s
        if self._progress is not None:
            self._progress(
                GoalProgress(elapsed_s=self._reported_s, best_j=best_j, bound_j=bound_j, price=price, goal=goal)
            )
