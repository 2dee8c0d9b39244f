"""The least cost of flows over planes at given clocks, with SciPy: slow, for tiny grids.

One commodity for each pair of routers and each plane, with its part of the demand as a variable, as eqs. 7.7-7.12 are
printed; the room aggregates by destination and has no such variables.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from routecast.noc.optimum.program import PathSet
from routecast.noc.topology import links

__all__ = ["least_of_grid", "power_at"]


def power_at(topology, demand, clocks, *, paths, widths=None, may_change=False):
    """Return the least power at clocks b = 1/alpha; inf where nothing fits.

    With ``may_change``, flits may change planes at every router: a relaxation.
    """
    wide = np.ones(len(clocks)) if widths is None else widths
    every, flows = links(topology), [(int(i), int(j)) for i, j in np.argwhere(demand > 0)]
    columns = [
        (plane, number, index)
        for plane in range(len(clocks))
        for number, (_, j) in enumerate(flows)
        for index, link in enumerate(every)
        if paths is PathSet.ANY or topology.distance(link.target, j) < topology.distance(link.source, j)
    ]
    # After the links' flows come the parts of each flow on each plane.
    parts = len(columns)
    routers, count = topology.router_count, len(flows)
    sheets = 1 if may_change else len(clocks)
    equal, net = [], np.zeros(sheets * count * routers + count)
    for column, (plane, number, index) in enumerate(columns):
        sheet = 0 if may_change else plane
        for router, sign in ((every[index].source, 1.0), (every[index].target, -1.0)):
            equal.append(((sheet * count + number) * routers + router, column, sign))
    for plane, (number, (i, j)) in itertools.product(range(len(clocks)), enumerate(flows)):
        sheet = 0 if may_change else plane
        part = parts + plane * count + number
        equal.append(((sheet * count + number) * routers + i, part, -1.0))
        equal.append(((sheet * count + number) * routers + j, part, 1.0))
        equal.append((sheets * count * routers + number, part, 1.0))
    net[sheets * count * routers :] = [demand[i, j] for i, j in flows]
    above = [(plane * len(every) + index, column, 1.0) for column, (plane, _, index) in enumerate(columns)]
    width = parts + len(clocks) * count
    cost = np.zeros(width)
    cost[:parts] = [clocks[plane] ** 2 for plane, _, _ in columns]
    solved = linprog(
        cost,
        A_ub=_matrix(above, len(clocks) * len(every), width),
        b_ub=np.repeat(np.asarray(clocks) * wide, len(every)),
        A_eq=_matrix(equal, net.size, width),
        b_eq=net,
        method="highs",
    )
    return float(solved.fun) if solved.status == 0 else math.inf


def least_of_grid(topology, demand, slowest, *, paths, widths=None, points=9):
    """Return the least power over a grid of clocks: no less than the optimum."""
    ranges = [np.linspace(least, 1.0, points) for least in slowest]
    return min(power_at(topology, demand, clocks, paths=paths, widths=widths) for clocks in itertools.product(*ranges))


def _matrix(entries, rows, columns):
    row, column, value = (list(part) for part in zip(*entries, strict=True))
    return coo_array((value, (row, column)), shape=(rows, columns)).tocsr()
