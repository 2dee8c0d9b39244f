"""Routing policies by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.routing import dimension_order, greedy, two_phase
from routecast.noc.routing.layers import layered
from routecast.noc.routing.mesh_paths import MeshPaths, Rule
from routecast.noc.routing.model import Path, Routes
from routecast.noc.topology import Topology
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["POLICIES", "routes"]

_MAKERS: dict[str, Callable[[Topology, NDArray[np.float64] | None, int], list[Path]]] = {
    "xy": lambda topology, _demand, _seed: dimension_order.xy(topology),
    "yx": lambda topology, _demand, _seed: dimension_order.yx(topology),
    "o1turn": lambda topology, _demand, _seed: dimension_order.o1turn(topology),
    "2p_es": lambda topology, _demand, _seed: dimension_order.o1turn(topology),
    "2p_rs": lambda topology, _demand, seed: dimension_order.random_split(topology, seed),
    "4p_es": lambda topology, _demand, seed: two_phase.four_paths(topology, seed),
    "romm": lambda topology, _demand, seed: two_phase.romm(topology, seed),
    "valiant": lambda topology, _demand, seed: two_phase.valiant(topology, seed),
    "adaptive": lambda topology, demand, _seed: greedy.greedy(topology, demand),
}

# On a mesh these need no list of paths.
_RULES = {
    "xy": Rule.X_FIRST,
    "yx": Rule.Y_FIRST,
    "o1turn": Rule.EITHER,
    "2p_es": Rule.EITHER,
    "romm": Rule.OVER_RECTANGLE,
    "valiant": Rule.OVER_ANY,
}

POLICIES = tuple(_MAKERS)
"""Names of all policies."""


def routes(
    policy: str, topology: Topology, *, demand: NDArray[np.float64] | None = None, seed: int = 1
) -> Routes:
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
    maker = _MAKERS.get(policy)
    if maker is None:
        msg = f"unknown routing policy {policy!r}: {did_you_mean(policy, POLICIES)}"
        raise RoutecastError(msg)
    rule = None if topology.is_torus else _RULES.get(policy)
    if rule is not None:
        return Routes(policy=policy, topology=topology, paths=MeshPaths(topology, rule, seed))
    made = Routes(policy=policy, topology=topology, paths=tuple(maker(topology, demand, seed)))
    # The greedy paths know no classes of their own.
    return layered(made) if policy == "adaptive" else made
