"""A lower bound of the power of whole flows: an unsplit flow needs a plane whose links carry its rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes._placement import checked_widths
from routecast.noc.planes.candidates import UNIT, flows_of
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Topology, shortest_hops

__all__ = ["whole_flow_bound"]


def whole_flow_bound(
    topology: Topology,
    demand: NDArray[np.float64],
    scalings: Sequence[Scaling],
    *,
    widths: Sequence[float] | None = None,
) -> float:
    """Return a lower bound of the power of all allocations of whole flows, over any paths.

    A plane with relative clock b and width w carries no flow above b w, and a hop on it costs b² (eq. 7.3). Let every
    flow have a shortest path of its own on the cheapest plane that carries it. Then only the clocks remain, and each
    is the slowest or just fast enough for a flow. The splittable optimum ignores that flows are whole; neither bound
    implies the other. All planes count as wide as the widest and as slow as the slowest.

    Parameters
    ----------
    topology : Topology
    demand : ndarray, shape (routers, routers)
        In capacities of a link of the first plane.
    scalings : sequence of Scaling
        One for each of the P planes.
    widths : sequence of float, optional
        Capacities of the planes' links; all 1 if not given.

    Notes
    -----
    Dynamic programming over the planes by rising clock, O(P F²) for F different rates.

    Raises
    ------
    RoutecastError
        Another number of widths than of planes, or a demand that does not fit the topology.
    """
    width = max(checked_widths(scalings, widths))
    slowest = min(scaling.slowest for scaling in scalings)
    flows = flows_of(topology, demand)
    if not len(flows):
        return 0.0
    hops = shortest_hops(topology)[flows.source, flows.target].astype(np.int64)
    rates, group = np.unique(flows.rate, return_inverse=True)
    hop_flow = np.bincount(group, weights=flows.rate * hops) / UNIT
    clocks = np.maximum(rates / UNIT / width, slowest)
    # up_to[i]: hop flow of the rates below the i-th; between[i, j]: of those from the i-th to the j-th, at its clock.
    up_to = np.concatenate(([0.0], np.cumsum(hop_flow)))
    between = (up_to[None, 1:] - up_to[:-1, None]) * clocks[None, :] ** 2
    between[np.tril_indices(len(rates), -1)] = np.inf
    # least[j]: power of the rates up to the j-th on the planes so far.
    least = between[0]
    for _ in scalings[1:]:
        on_slower = np.concatenate(([0.0], least[:-1]))
        least = np.minimum(least, np.min(on_slower[:, None] + between, axis=0))
    return float(least[-1])
