"""Paths round full links: the shortest where a full link is long."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.candidates import Links
from routecast.noc.planes.flows import Flows
from routecast.noc.topology import Topology, links

__all__ = ["light_paths"]

# How much longer than an empty link a full one is, and the power of its load by which it is. A way round a link takes
# two more.
_LONGER = (4.0, 1.0)
_STEEPNESS = (6.0, 2.0)


def light_paths(flows: Flows, loads: NDArray[np.float64], usable: NDArray[np.bool_]) -> list[list[Links]]:
    """Return paths for all flows that avoid the fullest links, once for each idea of how long these are.

    Parameters
    ----------
    flows : Flows
    loads : array, shape (links,)
        What the links of a plane carry.
    usable : array of bool, shape (routers, links)
        Which links traffic to a router may use.
    """
    relative = loads / max(float(loads.max(initial=0.0)), 1e-12)
    return [
        _shortest(flows, 1 + longer * relative**steepness, usable)
        for longer, steepness in zip(_LONGER, _STEEPNESS, strict=True)
    ]


def _shortest(flows: Flows, length: NDArray[np.float64], usable: NDArray[np.bool_]) -> list[Links]:
    """Return the path of least length of each flow; lengths are positive."""
    topology = flows.topology
    target = np.array([link.target for link in links(topology)])
    leaving = _leaving(topology)
    routers = topology.router_count
    # One more column for the link that is not there.
    cost = np.where(np.pad(usable, ((0, 0), (0, 1))), np.append(length, np.inf), np.inf)
    to = np.append(target, 0)
    distance = np.where(np.eye(routers, dtype=np.bool_), 0.0, np.inf)
    while True:
        through = cost[:, leaving] + distance[:, to[leaving]]
        new = np.minimum(distance, through.min(axis=2))
        if np.array_equal(new, distance):
            break
        distance = new
    next_link = leaving[np.arange(routers), np.argmin(through, axis=2)]
    paths: list[Links] = []
    step, ahead = next_link.tolist(), target.tolist()
    for source, end in zip(flows.source.tolist(), flows.target.tolist(), strict=True):
        router, path = source, list[int]()
        while router != end:
            path.append(step[end][router])
            router = ahead[path[-1]]
        paths.append(tuple(path))
    return paths


def _leaving(topology: Topology) -> NDArray[np.int64]:
    """Return the links that leave each router, shape (routers, most), filled with the number after the last link."""
    every = links(topology)
    out: list[list[int]] = [[] for _ in range(topology.router_count)]
    for number, link in enumerate(every):
        out[link.source].append(number)
    most = max(len(one) for one in out)
    return np.array([one + [len(every)] * (most - len(one)) for one in out], dtype=np.int64)
