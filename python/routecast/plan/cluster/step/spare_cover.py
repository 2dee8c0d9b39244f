"""Cheapest machines that carry a load even without the ``spare`` largest of them, for all loads at once.

The machines that are on, sorted by capacity, are a base that carries the load alone and ``spare`` others that are each
at least as large as any of the base. The others carry nothing that is needed, so they are the cheapest of their kind.
Tried out are the largest group g of the base and how many of g are among the others: groups × (spare + 1) tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from routecast.plan.cluster.step.cover import Floats, Ints, cover_costs, cover_counts

__all__ = ["spare_cover_costs", "spare_cover_counts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    before: Ints
    group: int
    same: int
    others: Ints
    cost: float

    def base_limits(self, limits: Ints) -> Ints:
        """Return how many machines of each group the base may have."""
        base = np.zeros_like(limits)
        base[self.before] = limits[self.before]
        base[self.group] = limits[self.group] - self.same
        return base


def _splits(weights: Ints, costs: Floats, limits: Ints, spare: int) -> Iterator[_Split]:
    order = np.argsort(weights, kind="stable")
    order = order[limits[order] > 0]
    for rank, group in enumerate(order.tolist()):
        larger = order[rank + 1 :]
        cheapest_first = larger[np.argsort(costs[larger], kind="stable")]
        for same in range(min(spare, int(limits[group])) + 1):
            others = np.zeros_like(limits)
            others[group] = same
            missing = spare - same
            for other in cheapest_first.tolist():
                others[other] = min(missing, int(limits[other]))
                missing -= int(others[other])
            if not missing:
                yield _Split(
                    before=order[:rank], group=group, same=same, others=others, cost=float(costs @ others)
                )


def spare_cover_costs(weights: Ints, costs: Floats, limits: Ints, cells: int, spare: int) -> Floats:
    """Return for x = 0..``cells`` the least cost of machines of at least x quanta without the ``spare`` largest."""
    best = np.full(cells + 1, np.inf)
    none = np.zeros_like(limits)
    smaller = cover_costs(weights, costs, none, cells)
    inside = 0
    for split in _splits(weights, costs, limits, spare):
        # The table of the groups before the largest one is grown once and shared by its splits.
        for group in split.before[inside:].tolist():
            smaller = _with(weights, costs, smaller, group, int(limits[group]))
        inside = len(split.before)
        table = _with(weights, costs, smaller, split.group, int(limits[split.group]) - split.same)
        np.minimum(best, table + split.cost, out=best)
    best[0] = 0.0
    return best


def _with(weights: Ints, costs: Floats, table: Floats, group: int, limit: int) -> Floats:
    one = slice(group, group + 1)
    return cover_costs(weights[one], costs[one], np.array([limit]), table.size - 1, start=table)


def spare_cover_counts(weights: Ints, costs: Floats, limits: Ints, needs: Ints, spare: int) -> Ints:
    """Return the machines behind ``spare_cover_costs`` at each need, shape (needs, groups)."""
    cells = int(needs.max(initial=0))
    best = np.full(needs.size, np.inf)
    counts = np.zeros((needs.size, limits.size), dtype=np.int64)
    for split in _splits(weights, costs, limits, spare):
        base_limits = split.base_limits(limits)
        cost = cover_costs(weights, costs, base_limits, cells)[needs] + split.cost
        better = (cost < best) & (needs > 0)
        if better.any():
            counts[better] = split.others + cover_counts(weights, costs, base_limits, needs[better])
            best[better] = cost[better]
    return counts
