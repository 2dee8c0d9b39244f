"""The traffic matrix of a network on chip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.routing.model import Routes, link_loads
from routecast.noc.topology import Topology

__all__ = ["Traffic", "bottleneck", "normalised"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traffic:
    """The traffic matrix (Li 2012, definition 1): ``demand[i, j]`` goes from node i to node j.

    Attributes
    ----------
    name
        Name in tables and figures.
    demand
        Shape (nodes, nodes), in capacities of one link at full clock: 0.25 is one flit every 4 cycles. The diagonal
        is traffic of a node to itself; it crosses its router and no link.
    """

    name: str
    demand: NDArray[np.float64]

    def scaled(self, factor: float) -> Traffic:
        """Return the traffic multiplied by ``factor``."""
        return Traffic(name=self.name, demand=self.demand * factor)

    def between_routers(self, topology: Topology) -> NDArray[np.float64]:
        """Return the demand between routers, shape (routers, routers), with zeros on the diagonal.

        Only this traffic loads links: nodes at one router exchange their traffic within the router.
        """
        routers, concentration = topology.router_count, topology.concentration
        by_router = self.demand.reshape(routers, concentration, routers, concentration)
        demand: NDArray[np.float64] = np.sum(by_router, axis=(1, 3))
        np.fill_diagonal(demand, 0.0)
        return demand


def bottleneck(traffic: Traffic, routings: Sequence[Routes]) -> float:
    """Return the load of the most loaded link over all the routings, in capacities (Li 2012, definition 2).

    It is the normalised load of Li (2012) (eqs. 6.7 and 7.13).
    """
    return max(
        (float(link_loads(routes, traffic.between_routers(routes.topology)).max(initial=0.0)) for routes in routings),
        default=0.0,
    )


def normalised(traffic: Traffic, routings: Sequence[Routes], load: float, *, may_overload: bool = False) -> Traffic:
    """Return the traffic scaled so that the most loaded link over all the routings carries ``load``.

    With several routings this is eq. 6.7, lambda' = eta mu lambda / max_R gamma_R: at load 1 the worst routing fills
    its worst link, and the links carry the traffic of every other routing too. With XY alone it is eq. 7.13.

    Parameters
    ----------
    traffic : Traffic
        Only its proportions matter.
    routings : sequence of Routes
        The routings that are compared, each with the paths of this traffic.
    load : float
        The normalised load eta or rho, in capacities of a link at full clock; 0 is an idle fabric.
    may_overload : bool
        Whether a load above 1 is allowed: no fabric carries it, but it can be simulated.

    Raises
    ------
    RoutecastError
        The traffic loads no link, or the load is negative, not a number, or above 1 without ``may_overload``.
    """
    if not (math.isfinite(load) and load >= 0):
        msg = f"normalised load {load:g}: it is 0 or more, 1 where the most loaded link is full"
        raise RoutecastError(msg)
    if load > 1 and not may_overload:
        msg = (
            f"normalised load {load:g} is over capacity: the most loaded link would get more than it carries; take at "
            "most 1, or simulate the overload"
        )
        raise RoutecastError(msg)
    worst = bottleneck(traffic, routings)
    if not worst > 0:
        policies = ", ".join(routing.policy for routing in routings) or "no routing at all"
        msg = (
            f'traffic "{traffic.name}" loads no link under {policies}: '
            "there is nothing to scale; let nodes at different routers send"
        )
        raise RoutecastError(msg)
    return traffic.scaled(load / worst)
