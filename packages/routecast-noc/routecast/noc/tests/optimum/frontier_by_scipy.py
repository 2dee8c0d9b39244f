"""The corners of the line of least hop flow over the load of links, enumerated with SciPy: slow, for tiny grids.

One commodity for each pair of routers, as eqs. 6.4-6.6 are printed; the room aggregates by destination.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from routecast.noc.optimum.program import PathSet
from routecast.noc.topology import Topology, links

__all__ = ["corners", "least_hop_flow", "least_power"]


def least_hop_flow(topology, demand, paths, *, load=None, slope=None, hops=1.0):
    """Return (b, H) of the least hop flow at a load b, or of the least ``hops * H + slope * b`` over b."""
    every = links(topology)
    flows = [(int(i), int(j)) for i, j in np.argwhere(demand > 0)]
    arcs = [
        (number, index)
        for number, (_, j) in enumerate(flows)
        for index, link in enumerate(every)
        if paths is PathSet.ANY or topology.distance(link.target, j) < topology.distance(link.source, j)
    ]
    routers = topology.router_count
    rows, columns, values = [], [], []
    for column, (number, index) in enumerate(arcs):
        for router, sign in ((every[index].source, 1.0), (every[index].target, -1.0)):
            rows.append(number * routers + router)
            columns.append(column)
            values.append(sign)
    net = np.zeros(len(flows) * routers)
    for number, (i, j) in enumerate(flows):
        net[number * routers + i] += demand[i, j]
        net[number * routers + j] -= demand[i, j]
    equal = coo_array((values, (rows, columns)), shape=(net.size, len(arcs) + 1)).tocsr()
    above = coo_array(
        (
            np.concatenate([np.ones(len(arcs)), -np.ones(len(every))]),
            (
                np.concatenate([[index for _, index in arcs], np.arange(len(every))]).astype(int),
                np.concatenate([np.arange(len(arcs)), np.full(len(every), len(arcs))]).astype(int),
            ),
        ),
        shape=(len(every), len(arcs) + 1),
    ).tocsr()
    bounds = [(0.0, None)] * len(arcs) + [(0.0, None) if load is None else (load, load)]
    cost = np.append(np.full(len(arcs), hops), slope or 0.0)
    result = linprog(cost, A_ub=above, b_ub=np.zeros(len(every)), A_eq=equal, b_eq=net, bounds=bounds)
    if result.status == 2:
        return None
    assert result.status == 0, result.message
    return float(result.x[-1]), float(result.x[:-1].sum())


def corners(topology, demand, paths):
    """Return every corner (b, H), from the least b on."""
    least, _ = least_hop_flow(topology, demand, paths, slope=1.0, hops=0.0)
    first = (least, least_hop_flow(topology, demand, paths, load=least * (1 + 1e-9))[1])
    flat = least_hop_flow(topology, demand, paths, slope=1e-6)
    return [first, *_between(topology, demand, paths, first, flat), flat]


def _between(topology, demand, paths, left, right):
    if right[0] - left[0] < 1e-7 or left[1] - right[1] < 1e-7:
        return []
    slope = (left[1] - right[1]) / (right[0] - left[0])
    middle = least_hop_flow(topology, demand, paths, slope=slope)
    if middle[1] + slope * middle[0] > left[1] + slope * left[0] - 1e-7:
        return []
    return [*_between(topology, demand, paths, left, middle), middle, *_between(topology, demand, paths, middle, right)]


def least_power(topology: Topology, demand, paths, alpha_max):
    """Return the least b^2 H over all corners and the ends of 1/alpha_max <= b <= 1."""
    every = corners(topology, demand, paths)
    loads, flows = np.array(every).T
    low, high = max(loads[0], 1 / alpha_max), 1.0
    candidates = [low, high, *(load for load in loads if low < load < high)]
    return min(b**2 * float(np.interp(b, loads, flows)) for b in candidates)
