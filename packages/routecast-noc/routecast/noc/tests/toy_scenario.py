"""The toy scenario of sec. 7.3.1: one flow at full rate and k at a low one, none sharing a link, on two planes.

It shows why concentration can beat balance: a full link keeps its whole plane at full voltage, so the low-rate flows
slow down together on the other plane.

    power in units of P_0        one plane      balanced (split)    concentrated
    k low flows of rate rho      1 + k rho      (1 + k rho) / 4     1 + k max(rho^3, rho / alpha_max^2)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.routing.model import Path, Routes
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Topology, links
from routecast.quantity.schema import value


def toy_demand(topology: Topology, *, low_flows: int, low_rate: float) -> NDArray[np.float64]:
    """Return the demand between routers: 1 over the first link, ``low_rate`` over the next ones."""
    demand = np.zeros((topology.router_count, topology.router_count))
    for number, link in enumerate(links(topology)[: low_flows + 1]):
        demand[link.source, link.target] = low_rate if number else 1.0
    return demand


def one_plane(topology: Topology, demand: NDArray[np.float64], scaling: Scaling) -> Allocation:
    """Return everything on the first of two planes (eq. 7.4)."""
    return _shares(topology, demand, scaling, (1.0, 0.0), "one plane")


def balanced(topology: Topology, demand: NDArray[np.float64], scaling: Scaling) -> Allocation:
    """Return every flow split in two halves (eq. 7.5): the best that balance can do, out of reach for whole flows."""
    return _shares(topology, demand, scaling, (0.5, 0.5), "balanced")


def concentrated(topology: Topology, demand: NDArray[np.float64], scaling: Scaling) -> Allocation:
    """Return the full-rate flow on one plane and all others on the second (eq. 7.6)."""
    full = np.where(demand >= 1.0, demand, 0.0)
    return Allocation(
        policy="concentrated",
        planes=tuple(
            Plane(demand=part, routes=_neighbours(topology, part), scaling=scaling) for part in (full, demand - full)
        ),
    )


@value
class ClosedForm:
    """The three powers in units of P_0, one link always busy at full voltage."""

    one_plane: float
    balanced: float
    concentrated: float


def closed_form(*, low_flows: int, low_rate: float, alpha_max: float) -> ClosedForm:
    """Return eqs. 7.4-7.6; with alpha_max below 2 it takes the place of the 2 in eq. 7.5."""
    everything = 1 + low_flows * low_rate
    return ClosedForm(
        one_plane=everything,
        balanced=everything / min(2.0, alpha_max) ** 2,
        concentrated=1 + low_flows * max(low_rate**3, low_rate / alpha_max**2),
    )


def _shares(
    topology: Topology, demand: NDArray[np.float64], scaling: Scaling, shares: tuple[float, ...], policy: str
) -> Allocation:
    return Allocation(
        policy=policy,
        planes=tuple(
            Plane(demand=demand * share, routes=_neighbours(topology, demand), scaling=scaling) for share in shares
        ),
    )


def _neighbours(topology: Topology, demand: NDArray[np.float64]) -> Routes:
    """Return one link as the path of every flow between neighbours."""
    return Routes(
        policy="xy",
        topology=topology,
        paths=tuple(
            Path(source=link.source, target=link.target, links=(number,), layers=(0,), share=1.0)
            for number, link in enumerate(links(topology))
            if demand[link.source, link.target]
        ),
    )
