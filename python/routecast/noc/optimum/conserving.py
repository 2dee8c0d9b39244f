"""Flows that conserve exactly, made of a solver's flows that do so only within its tolerances."""

from __future__ import annotations

import numpy as np

from routecast.noc.optimum.arcs import Arcs, Floats, grid_of
from routecast.noc.topology import Topology

__all__ = ["conserving"]

# Destinations whose systems of equations are in memory together.
_AT_ONCE = 32


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
    routers = topology.router_count
    active = np.flatnonzero(demand.any(axis=0))
    nearer = arcs[active] & (way[grid.target][:, active] < way[grid.source][:, active]).T
    # Far less than any share that matters: it only gives routers without traffic a way on.
    faint = 1e-15 * float(demand.sum())
    parts = np.where(nearer, np.maximum(flow[active], 0.0) + faint, 0.0)
    # One more column stands for the links that are not there.
    parts = np.concatenate([parts, np.zeros((active.size, 1))], axis=1)
    leaving = parts[:, grid.leaving].sum(axis=1)
    leaving[np.arange(active.size), active] = 1.0
    parts[:, :-1] /= leaving[:, grid.source]
    result = np.zeros(flow.shape)
    for begin in range(0, active.size, _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        targets, share = active[some], parts[some]
        system = np.zeros((targets.size, routers, routers))
        system[:, np.arange(routers), np.arange(routers)] = 1.0
        # A direction at a time: two links may join the same routers (a ring of two).
        for leaving_by, ahead in zip(grid.leaving, grid.ahead, strict=True):
            system[:, ahead, np.arange(routers)] -= share[:, leaving_by]
        through = np.linalg.solve(system, demand.T[targets][:, :, None])[:, :, 0]
        result[targets] = np.maximum(through, 0.0)[:, grid.source] * share[:, :-1]
    return result
