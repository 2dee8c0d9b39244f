"""Flows that conserve exactly, made of a solver's flows that do so only within its tolerances."""

from __future__ import annotations

import numpy as np

from routecast.noc.optimum.arcs import Arcs, Floats, grid_of
from routecast.noc.topology import Topology

__all__ = ["conserving"]


def conserving(topology: Topology, demand: Floats, flow: Floats, arcs: Arcs, way: Floats) -> Floats:
    """Return flows of which exactly the demand arrives, split at every router as the given ones.

    Only links that come nearer to the destination, by the lengths of ``way``, are kept: an optimum uses no others, and
    so there are no circles. A router whose traffic would have no link left sends it on its shortest way.

    Parameters
    ----------
    demand : array of shape (routers, routers)
        With zeros on the diagonal.
    flow : array of shape (routers, links)
        Traffic to router t on link l, nearly conserved.
    arcs : array of shape (routers, links)
        What may be used.
    way : array of shape (routers, routers)
        Length of the shortest way over the arcs from a router to another.
    """
    grid = grid_of(topology)
    active = np.flatnonzero(demand.any(axis=0))
    nearer = arcs[active] & (way[grid.target][:, active] < way[grid.source][:, active]).T
    # Far less than any share that matters: it only gives routers without traffic a way on.
    faint = 1e-15 * float(demand.sum())
    parts = np.where(nearer, np.maximum(flow[active], 0.0) + faint, 0.0)
    # One more column stands for the links that are not there.
    parts = np.concatenate([parts, np.zeros((active.size, 1))], axis=1)
    leaving = parts[:, grid.leaving].sum(axis=1)
    leaving[np.arange(active.size), active] = 1.0
    share = parts[:, :-1] / leaving[:, grid.source]
    wanted = demand.T[active]
    carried = np.zeros(parts.shape)
    through = wanted
    # Without circles it is settled after as many steps as the longest way has links.
    while True:
        carried[:, :-1] = through[:, grid.source] * share
        settled = wanted + carried[:, grid.arriving].sum(axis=1)
        if np.array_equal(settled, through):
            break
        through = settled
    result = np.zeros(flow.shape)
    result[active] = carried[:, :-1]
    return result
