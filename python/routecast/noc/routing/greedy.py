"""The thesis' Adaptive routing: flow after flow over the shortest path that is least loaded so far."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.routing.dimension_order import walks
from routecast.noc.routing.model import Path
from routecast.noc.topology import Direction, Topology, link_numbers

__all__ = ["greedy"]

# Loads that differ by rounding alone are equal, so that ties are broken by rule.
_DIGITS = 12


def greedy(topology: Topology, demand: NDArray[np.float64] | None) -> list[Path]:
    """Return one shortest path for each flow, chosen from the largest flow to the smallest (thesis, sec. 6.5).

    The text, "computing, hop-by-hop, all the shortest paths to the destination and choosing, as next hop, the one with
    the lowest link utilization", is read as: at every hop, follow the shortest path whose most loaded link is the least
    loaded one. (To look at the next link only misses the thesis' hot-spot figure and its statement on uniform traffic:
    packets run into links that are full further on. As read here the routing is better on normal traffic than the
    thesis says, which finds it similar to 2P-ES.)

    Of equal flows the nearer comes first, which has fewer paths to choose from; then the numbers of source and target
    count. Of equal paths the one is taken that steps along the dimension with more hops left, x where they are equal.
    Flows without traffic go by XY. All paths are in class 0, where they may well have cycles:
    :func:`routecast.noc.routing.layers.layered` frees them.

    Parameters
    ----------
    demand
        Shape (routers, routers), in link capacities.

    Raises
    ------
    RoutecastError
        No demand, or one that is not (routers, routers).
    """
    routers = topology.router_count
    if demand is None:
        msg = "adaptive routing looks at the traffic: give the demand between routers"
        raise RoutecastError(msg)
    if demand.shape != (routers, routers):
        msg = (
            f"adaptive routing got a demand of shape {demand.shape}; {topology.columns} x {topology.rows} routers need "
            f"({routers}, {routers}) (Traffic.between_routers)"
        )
        raise RoutecastError(msg)
    state = _Loads(topology)
    chosen: dict[tuple[int, int], tuple[int, ...]] = {}
    for source, target in _largest_first(topology, demand):
        path = state.least_loaded(source, target)
        state.add(path, float(demand[source, target]))
        chosen[source, target] = path
    paths = []
    for source in range(routers):
        for target in range(routers):
            if source != target:
                found = chosen.get((source, target)) or walks(topology, source, target, x_first=True)[0].links
                layers = (0,) * len(found)
                paths.append(Path(source=source, target=target, links=found, layers=layers, share=1.0))
    return paths


def _largest_first(topology: Topology, demand: NDArray[np.float64]) -> list[tuple[int, int]]:
    rates = demand.round(_DIGITS)
    flows = [(int(source), int(target)) for source, target in np.argwhere(rates > 0) if source != target]
    return sorted(flows, key=lambda flow: (-float(rates[flow]), topology.distance(*flow), flow))


class _Loads:
    """The loads of all links so far."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        numbers = link_numbers(topology)
        # The number of the link that leaves each router in each direction; -1 at edges, where no shortest path goes.
        self._leaving = {
            way: [numbers.get((router, way), -1) for router in range(topology.router_count)]
            for way in Direction
        }
        self._loads = [0.0] * len(numbers)

    def add(self, path: tuple[int, ...], rate: float) -> None:
        """Put a flow on a path."""
        for link in path:
            self._loads[link] = round(self._loads[link] + rate, _DIGITS)

    def least_loaded(self, source: int, target: int) -> tuple[int, ...]:
        """Return the shortest path whose most loaded link is least loaded."""
        along_x, along_y = self._topology.offsets(source, target)
        found = [self._in_rectangle(source, across, down) for across in along_x for down in along_y]
        return min(found, key=lambda one: one[0])[1]

    def _in_rectangle(self, source: int, across: int, down: int) -> tuple[float, tuple[int, ...]]:
        """Return the best path of one rectangle and its bottleneck, found from the target backwards."""
        east_west = Direction.EAST if across > 0 else Direction.WEST
        south_north = Direction.SOUTH if down > 0 else Direction.NORTH
        horizontal, vertical = self._leaving[east_west], self._leaving[south_north]
        loads, columns, rows = self._loads, self._topology.columns, self._topology.rows
        x, y = self._topology.position(source)
        wide, high = abs(across), abs(down)
        # The router with `left` hops to go along x and `below` along y is xs[left] + ys[below].
        xs = [(x + east_west.step[0] * (wide - left)) % columns for left in range(wide + 1)]
        ys = [(y + south_north.step[1] * (high - below)) % rows * columns for below in range(high + 1)]
        steps_along_x = [[False] * (high + 1) for _ in range(wide + 1)]
        nearer: list[float] = []
        for left in range(wide + 1):
            here = [0.0] * (high + 1)
            for below in range(high + 1):
                router = xs[left] + ys[below]
                along_x = max(loads[horizontal[router]], nearer[below]) if left else inf
                along_y = max(loads[vertical[router]], here[below - 1]) if below else inf
                if left or below:
                    here[below] = min(along_x, along_y)
                    steps_along_x[left][below] = along_x < along_y or (along_x == along_y and left >= below)
            nearer = here
        path, left, below = [], wide, high
        while left or below:
            router = xs[left] + ys[below]
            if steps_along_x[left][below]:
                path.append(horizontal[router])
                left -= 1
            else:
                path.append(vertical[router])
                below -= 1
        return nearer[high], tuple(path)
