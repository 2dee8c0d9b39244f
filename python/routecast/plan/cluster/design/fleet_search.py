"""Search over fleets with a proof: branch and bound on the numbers of machines N_k, a table a node.

A node fixes the first groups of an order; what money is left could buy ⌊left / C_k⌋ machines of each other group.
Granting it all of them at once relaxes the budget only, and the day's energy of that larger fleet, exact from one
knapsack table, is below that of every fleet in the node::

    E(N_1 … N_j, ⌊left/C_{j+1}⌋ … ⌊left/C_K⌋)  <=  E(N)    for all N of the node,

because a fleet with more machines never needs more energy. Groups that carry much come first in the order, so little
money is left for the others soon and the bound is tight after few levels.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from routecast.plan.cluster.design.fleet_energy import FleetEnergy

__all__ = ["EnergySearch", "PriceSearch", "order_of_groups"]

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

    def __init__(
        self, energy: FleetEnergy, order: Sequence[int], most_j: float, fleet: tuple[int, ...]
    ) -> None:
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
