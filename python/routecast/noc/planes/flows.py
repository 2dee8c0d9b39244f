"""The flows of a demand as whole numbers, so that loads add and subtract without rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.topology import Topology

__all__ = ["UNIT", "Flows", "flows_of"]

# A load of one capacity. Sums of rates in these units are exact, so that equal loads compare equal whatever the order
# of the moves that led to them; the rounding of a rate is below 1e-12 capacities.
UNIT = 1 << 40

# Sums of rates must stay below 2^63 parts.
_LARGEST = 1e5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flows:
    """What goes between two different routers, one flow for each pair with a demand, row by row of the matrix.

    Attributes
    ----------
    topology
        The grid of every plane.
    demand
        Shape (routers, routers), in capacities; the diagonal is zero.
    source, target
        Shape (flows,): routers.
    rate
        Shape (flows,): in :data:`UNIT` parts of a capacity.
    """

    topology: Topology
    demand: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    rate: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rate)


def flows_of(topology: Topology, demand: NDArray[np.float64]) -> Flows:
    """Return the flows of a demand between routers.

    Raises
    ------
    RoutecastError
        The demand does not fit the topology, or has an entry that is negative, not finite or absurdly large.
    """
    routers = topology.router_count
    if demand.shape != (routers, routers):
        msg = (
            f"a demand of shape {demand.shape} on {routers} routers: give it the shape ({routers}, {routers}) "
            "(Traffic.between_routers does)"
        )
        raise RoutecastError(msg)
    if not np.all(np.isfinite(demand)) or np.any(demand < 0):
        source, target = (int(one) for one in np.argwhere(~np.isfinite(demand) | (demand < 0))[0])
        msg = (
            f"the demand from router {topology.router_name(source)} to {topology.router_name(target)} is "
            f"{demand[source, target]:g}: a demand is 0 or more"
        )
        raise RoutecastError(msg)
    if demand.sum() > _LARGEST:
        msg = f"a demand of {demand.sum():g} capacities of a link in all, over {_LARGEST:g}: are its units right?"
        raise RoutecastError(msg)
    between = demand.astype(np.float64, copy=True)
    np.fill_diagonal(between, 0.0)
    rate = np.rint(between * UNIT).astype(np.int64)
    source_of, target_of = np.nonzero(rate)
    return Flows(
        topology=topology,
        demand=between,
        source=source_of.astype(np.int64),
        target=target_of.astype(np.int64),
        rate=rate[source_of, target_of],
    )
