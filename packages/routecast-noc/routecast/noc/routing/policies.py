"""Routing policies by name, and Li's adaptive policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.routing._mesh_paths import MeshPaths, Rule, paths_of
from routecast.noc.routing.deadlock import layered
from routecast.noc.routing.model import LazyPaths, Path, Routes
from routecast.noc.topology import Topology, links, shortest_hops
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["POLICIES", "routes"]


class GreedyPaths(LazyPaths):
    """A shortest path for each flow, chosen from the largest flow to the smallest (Li 2012, sec. 6.5).

    The text, "computing, hop-by-hop, all the shortest paths to the destination and choosing, as next hop, the one with
    the lowest link utilization", is read as: at every hop, follow the shortest path whose most loaded link is the least
    loaded. (Looking at the next link alone misses Li's hot-spot figure and the statement on uniform traffic: packets
    run into full links further on. As read here the routing is better on normal traffic than Li (2012) says, who finds
    it similar to 2P-ES.)

    Of equal flows the nearer comes first, which has fewer paths to choose from; then the numbers of source and target
    decide. Of equal paths, the one along the dimension with more hops left wins, x where they are equal. Flows without
    traffic go by XY. The paths may have cycles: when they are listed,
    :func:`routecast.noc.routing.deadlock.layered` frees them.

    ``demand``: shape (routers, routers), in link capacities. Raises RoutecastError: no demand, or one that is not
    (routers, routers).
    """

    __slots__ = ("_distance", "_links", "_topology")

    def __init__(self, topology: Topology, demand: NDArray[np.float64] | None) -> None:
        from routecast.noc._noc import noc_greedy

        super().__init__()
        routers = topology.router_count
        if demand is None:
            msg = "adaptive routing looks at the traffic: give the demand between routers"
            raise RoutecastError(msg)
        if demand.shape != (routers, routers):
            msg = (
                f"adaptive routing got a demand of shape {demand.shape}; {topology.columns} x {topology.rows} routers "
                f"need ({routers}, {routers}) (Traffic.between_routers)"
            )
            raise RoutecastError(msg)
        self._topology = topology
        routes = noc_greedy(topology.columns, topology.rows, topology.is_torus, demand.astype(np.float64).tobytes())
        self._links: NDArray[np.uint32] = np.frombuffer(routes, dtype=np.uint32)
        self._distance = shortest_hops(topology).astype(np.intp)

    def _list(self) -> tuple[Path, ...]:
        all_links, start, paths = self._links.tolist(), 0, []
        for (source, target), hops in np.ndenumerate(self._distance):
            if hops:
                own = tuple(all_links[start : start + hops])
                paths.append(Path(source=source, target=target, links=own, layers=(0,) * len(own), share=1.0))
                start += int(hops)
        return tuple(layered(Routes(policy="adaptive", topology=self._topology, paths=tuple(paths))).paths)

    def link_loads(self, demand: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the load of every link for a demand of shape (routers, routers), in capacities."""
        loads = np.zeros(len(links(self._topology)))
        ends = np.cumsum(self._distance.sum(axis=1))
        for rates, hops, crossed in zip(demand, self._distance, np.split(self._links, ends[:-1]), strict=True):
            np.add.at(loads, crossed, np.repeat(rates, hops))
        return loads


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
    """Return the paths of every pair of routers under a policy; no policy can deadlock.

    Parameters
    ----------
    policy
        One of :data:`POLICIES`: ``xy``, ``yx``, ``o1turn``, ``romm``, ``valiant``, and Li's ``2p_es``,
        ``2p_rs``, ``4p_es`` and ``adaptive`` (secs. 6.4.1 and 6.5).
    topology
        The routers and links of one plane.
    demand
        Shape (routers, routers), in link capacities; only ``adaptive`` looks at it.
    seed
        Of the random ``2p_rs`` and ``4p_es``; lists of paths of ``romm`` and ``valiant`` are random on large grids too,
        their loads on a mesh are not.

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
        paths = tuple(paths_of(_RULES[policy], topology, seed))
    else:
        paths = MeshPaths(topology, _RULES[policy], seed)
    return Routes(policy=policy, topology=topology, paths=paths)
