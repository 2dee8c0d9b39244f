"""The traffic matrix of a network on chip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.noc.topology import Topology

__all__ = ["Traffic"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traffic:
    """The traffic matrix (thesis, definition 1): ``demand[i, j]`` goes from node i to node j.

    Attributes
    ----------
    name
        What it is called in tables and figures.
    demand
        Shape (nodes, nodes), in capacities of one link at full clock: 0.25 is one flit every 4 cycles. The diagonal
        is traffic of a node to itself; it crosses its router and no link.
    """

    name: str
    demand: NDArray[np.float64]

    def scaled(self, factor: float) -> Traffic:
        """Return the same traffic, ``factor`` times as much."""
        return Traffic(name=self.name, demand=self.demand * factor)

    def between_routers(self, topology: Topology) -> NDArray[np.float64]:
        """Return the demand between routers, shape (routers, routers), with zeros on the diagonal.

        That is what loads links: nodes at one router exchange their traffic without them.
        """
        routers, each = topology.router_count, topology.concentration
        demand: NDArray[np.float64] = np.sum(self.demand.reshape(routers, each, routers, each), axis=(1, 3))
        np.fill_diagonal(demand, 0.0)
        return demand
