"""Routing policies by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.routing.greedy import GreedyPaths
from routecast.noc.routing.mesh_paths import MeshPaths, Rule, written
from routecast.noc.routing.model import LazyPaths, Path, Routes
from routecast.noc.topology import Topology
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["POLICIES", "routes"]

_RULES = {
    "xy": Rule.X_FIRST,
    "yx": Rule.Y_FIRST,
    "o1turn": Rule.EITHER,
    "2p_es": Rule.EITHER,
    "2p_rs": Rule.RANDOM_SPLIT,
    "4p_es": Rule.FOUR_PATHS,
    "romm": Rule.OVER_RECTANGLE,
    "valiant": Rule.OVER_ANY,
}

POLICIES = (*_RULES, "adaptive")
"""Names of all policies."""


def routes(policy: str, topology: Topology, *, demand: NDArray[np.float64] | None = None, seed: int = 1) -> Routes:
    """Return the paths of every pair of routers under a policy; none of them can deadlock.

    Parameters
    ----------
    policy
        One of :data:`POLICIES`: ``xy``, ``yx``, ``o1turn``, ``romm``, ``valiant``, and the thesis' ``2p_es``,
        ``2p_rs``, ``4p_es`` and ``adaptive`` (secs. 6.4.1 and 6.5).
    topology
        The routers and links of one plane.
    demand
        Shape (routers, routers), in link capacities; only ``adaptive`` looks at it.
    seed
        Of what ``2p_rs`` and ``4p_es`` draw; the lists of paths of ``romm`` and ``valiant`` draw on large grids, their
        loads on a mesh do not.

    Raises
    ------
    RoutecastError
        An unknown policy; no demand, or one of another shape, for ``adaptive``.
    """
    if policy not in POLICIES:
        msg = f"unknown routing policy {policy!r}: {did_you_mean(policy, POLICIES)}"
        raise RoutecastError(msg)
    paths: tuple[Path, ...] | LazyPaths
    if policy == "adaptive":
        paths = GreedyPaths(topology, demand)
    elif topology.is_torus:
        paths = tuple(written(_RULES[policy], topology, seed))
    else:
        paths = MeshPaths(topology, _RULES[policy], seed)
    return Routes(policy=policy, topology=topology, paths=paths)
