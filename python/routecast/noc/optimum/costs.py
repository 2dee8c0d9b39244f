"""What link prices prove about the least cost of planes, for all clocks at once.

Let ``cost(b, c)`` be the least of sum over planes of c[p] * hop flow[p] over flows whose links carry at most
w[p] * b[p]. Prices w[p, l] >= 0 prove, by linear programming duality,

    cost(b, c) >= sum over flows of demand * (least over planes of the shortest way with links of length c[p] + price)
                  - sum over planes of b[p] * width[p] * (sum of the plane's prices),

whatever the solver did to find them, since a flow stays on one plane: at given costs c the bound is linear in b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routecast.noc.optimum.arcs import Arcs, Floats, grid_of
from routecast.noc.topology import Topology

__all__ = ["Bounds", "Priced", "Pricing"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """Prices that a program found, and the costs of a hop that it found them at.

    Attributes
    ----------
    costs
        Shape (planes,).
    prices
        Shape (planes, links).
    """

    costs: Floats
    prices: Floats

    def at(self, costs: Floats) -> Floats:
        """Return prices that may prove much at other costs, shape (3, planes, links).

        The same; in proportion to the costs; and such that hop and price together stay what they were where links
        are full, as they do where a full plane's overflow goes over the other one.
        """
        together = np.maximum(0.0, (self.costs - costs)[:, None] + self.prices)
        return np.stack(
            [
                self.prices,
                self.prices * (costs / self.costs)[:, None],
                np.where(self.prices > 0.0, together, 0.0),
            ]
        )


@dataclass(slots=True, kw_only=True, eq=False)
class Bounds:
    """The proven bounds at given costs c: ``cost(b, c) >= levels[m] - slopes[m] @ b`` for each m and all b.

    Attributes
    ----------
    levels
        Shape (bounds,).
    slopes
        Shape (bounds, planes).
    taken
        How many of the prices found so far are in them.
    """

    levels: Floats
    slopes: Floats
    taken: int = 0

    def at(self, clocks: Floats) -> Floats:
        """Return the best of them at clocks of shape (points, planes); convex in the clocks."""
        best: Floats = (self.levels[:, None] - self.slopes @ clocks.T).max(axis=0)
        return best


class Pricing:
    """Evaluates prices for one demand.

    Parameters
    ----------
    topology : Topology
    demand : array of shape (routers, routers)
        With zeros on the diagonal.
    arcs : array of shape (routers, links)
        What traffic to a router may use.
    widths : array of shape (planes,)
        Capacity of each plane's links relative to the first plane's.
    """

    def __init__(self, topology: Topology, demand: Floats, arcs: Arcs, widths: Floats) -> None:
        self._grid, self._widths = grid_of(topology), widths
        self._sent_to = np.flatnonzero(demand.any(axis=0))
        self._arcs = arcs[self._sent_to]
        self._demand = demand[:, self._sent_to]
        self.found: list[Priced] = []
        self._bounds: dict[tuple[float, ...], Bounds] = {}

    def bounds(self, costs: Floats) -> Bounds:
        """Return the bounds at these costs that all prices found so far prove."""
        planes = self._widths.size
        kept = self._bounds.setdefault(
            tuple(costs.tolist()), Bounds(levels=np.zeros(1), slopes=np.zeros((1, planes)))
        )
        new = [priced.at(costs) for priced in self.found[kept.taken :]]
        if new:
            prices = np.concatenate(new)
            ways = np.minimum.reduce([self._ways(costs[p] + prices[:, p]) for p in range(planes)])
            # Routers that send nothing to a destination have no say, however far they are.
            proven = np.where(self._demand > 0.0, self._demand * np.where(self._demand > 0.0, ways, 0.0), 0.0)
            kept.levels = np.concatenate([kept.levels, proven.sum(axis=(1, 2))])
            kept.slopes = np.concatenate([kept.slopes, prices.sum(axis=2) * self._widths])
            kept.taken = len(self.found)
        return kept

    def _ways(self, lengths: Floats) -> Floats:
        """Return the shortest ways to all destinations for many lengths at once.

        Parameters
        ----------
        lengths : array of shape (many, links)

        Returns
        -------
        array of shape (many, routers, destinations)
        """
        many, links = lengths.shape
        routers = self._grid.ahead.shape[1]
        # A link that is not there, or that the traffic may not use, is endlessly long.
        length = np.full((many, links + 1, self._sent_to.size), np.inf)
        length[:, :-1] = np.where(self._arcs.T, lengths[:, :, None], np.inf)
        first = [length[:, leaving] for leaving in self._grid.leaving]
        way = np.full((many, routers, self._sent_to.size), np.inf)
        way[:, self._sent_to, np.arange(self._sent_to.size)] = 0.0
        while True:
            shorter = way
            for hop, ahead in zip(first, self._grid.ahead, strict=True):
                shorter = np.minimum(shorter, hop + way[:, ahead])
            if np.array_equal(shorter, way):
                return way
            way = shorter
