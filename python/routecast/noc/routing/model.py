"""Paths and the routes of all flows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.noc.topology import Topology, links

__all__ = ["Path", "Routes", "hop_flow", "link_loads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One way of the flow between two routers.

    Attributes
    ----------
    source, target
        Routers.
    links
        Numbers of its links (:func:`routecast.noc.topology.links`) in order.
    layers
        The virtual-channel class used on each link; as long as ``links``. Classes let routings be free of deadlock that
        are not with one (O1TURN: XY in class 0, YX in class 1).
    share
        Part of the flow that takes it, 0..1; the paths of a flow sum to 1.
    """

    source: int
    target: int
    links: tuple[int, ...]
    layers: tuple[int, ...]
    share: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Routes:
    """The paths of all flows under one routing policy on one topology (one plane)."""

    policy: str
    topology: Topology
    paths: tuple[Path, ...]

    @property
    def layer_count(self) -> int:
        """Virtual-channel classes that the paths use."""
        return 1 + max((layer for path in self.paths for layer in path.layers), default=0)


def link_loads(routes: Routes, demand: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the load of every link, in capacities, for a demand of shape (routers, routers).

    The largest entry is the bottleneck load of the thesis' definition 2.
    """
    loads = np.zeros(len(links(routes.topology)))
    for path in routes.paths:
        carried = path.share * demand[path.source, path.target]
        if carried:
            loads[list(path.links)] += carried
    return loads


def hop_flow(routes: Routes, demand: NDArray[np.float64]) -> float:
    """Return the sum over flows of rate times hops, the numerator of eq. 6.1; equal to the sum of all link loads."""
    return float(link_loads(routes, demand).sum())
