"""Cheapest machines that carry a load even without the ``spare`` largest of them, for all loads at once.

The machines that are on, sorted by capacity, are a base that carries the load alone and ``spare`` others that are each
at least as large as any of the base. The others carry nothing that is needed, so they are the cheapest of their kind.
Tried out are the largest group g of the base and how many of g are among the others: groups × (spare + 1) tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from routecast.plan.cluster.cover import Floats, Ints, cover_costs, cover_counts

__all__ = ["spare_cover_costs", "spare_cover_counts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    base_limits: Ints
    others: Ints
    cost: float


def _splits(weights: Ints, costs: Floats, limits: Ints, spare: int) -> Iterator[_Split]:
    order = np.argsort(weights, kind="stable")
    for rank, group in enumerate(order):
        larger = order[rank + 1 :]
        cheapest_first = larger[np.argsort(costs[larger], kind="stable")]
        for same in range(min(spare, int(limits[group])) + 1):
            others = np.zeros_like(limits)
            others[group] = same
            missing = spare - same
            for other in cheapest_first:
                others[other] = min(missing, int(limits[other]))
                missing -= int(others[other])
            if missing:
                continue
            base_limits = np.zeros_like(limits)
            base_limits[order[:rank]] = limits[order[:rank]]
            base_limits[group] = limits[group] - same
            yield _Split(base_limits=base_limits, others=others, cost=float(costs @ others))


def spare_cover_costs(weights: Ints, costs: Floats, limits: Ints, cells: int, spare: int) -> Floats:
    """Return for x = 0..``cells`` the least cost of machines of at least x quanta without the ``spare`` largest."""
    best = np.full(cells + 1, np.inf)
    for split in _splits(weights, costs, limits, spare):
        np.minimum(best, cover_costs(weights, costs, split.base_limits, cells) + split.cost, out=best)
    best[0] = 0.0
    return best


def spare_cover_counts(weights: Ints, costs: Floats, limits: Ints, needs: Ints, spare: int) -> Ints:
    """Return the machines behind ``spare_cover_costs`` at each need, shape (needs, groups)."""
    cells = int(needs.max(initial=0))
    best = np.full(needs.size, np.inf)
    counts = np.zeros((needs.size, limits.size), dtype=np.int64)
    for split in _splits(weights, costs, limits, spare):
        cost = cover_costs(weights, costs, split.base_limits, cells)[needs] + split.cost
        better = (cost < best) & (needs > 0)
        if better.any():
            counts[better] = split.others + cover_counts(weights, costs, split.base_limits, needs[better])
            best[better] = cost[better]
    return counts
