"""Where a flow may go: a plane and a path on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.planes.flows import Flows
from routecast.noc.routing.model import Routes
from routecast.noc.topology import Direction, Topology, link_numbers, links

__all__ = ["Candidates", "candidates_of", "dimension_order", "minimal_paths", "routed"]

Links = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """All places of all flows, a flow's places side by side, plane by plane.

    Attributes
    ----------
    flows
        The flows, F of them.
    plane_count
        Number of planes.
    paths
        C of them: the links of each place in order.
    flow, plane
        Shape (C,): whose place, and on which plane.
    crosses
        Shape (C, links): 1 where the path uses the link.
    first
        Shape (F + 1,): the places of flow f are ``first[f]`` to ``first[f + 1] - 1``.
    """

    flows: Flows
    plane_count: int
    paths: tuple[Links, ...]
    flow: NDArray[np.int64]
    plane: NDArray[np.int64]
    crosses: NDArray[np.int8]
    first: NDArray[np.int64]

    @property
    def hops(self) -> NDArray[np.int64]:
        """Shape (C,): links of each path."""
        hops: NDArray[np.int64] = np.sum(self.crosses, axis=1, dtype=np.int64)
        return hops

    def place(self, flow: int, plane: int) -> int:
        """Return the first place of a flow on a plane."""
        start, stop = self.first[flow], self.first[flow + 1]
        return int(start + np.searchsorted(self.plane[start:stop], plane))


def candidates_of(flows: Flows, offered: Sequence[Sequence[Sequence[Links]]]) -> Candidates:
    """Return the places that ``offered[f][p]``, the paths of flow f on plane p, stand for.

    Raises
    ------
    RoutecastError
        A flow has no path on any plane.
    """
    paths: list[Links] = []
    flow: list[int] = []
    plane: list[int] = []
    first = [0]
    for number, on_planes in enumerate(offered):
        for on, some in enumerate(on_planes):
            for path in some:
                paths.append(tuple(path))
                flow.append(number)
                plane.append(on)
        if len(paths) == first[-1]:
            source = flows.topology.router_name(int(flows.source[number]))
            target = flows.topology.router_name(int(flows.target[number]))
            msg = f"the flow from router {source} to {target} has no path on any plane: give it one"
            raise RoutecastError(msg)
        first.append(len(paths))
    crosses = np.zeros((len(paths), len(links(flows.topology))), dtype=np.int8)
    for place, path in enumerate(paths):
        crosses[place, list(path)] = 1
    return Candidates(
        flows=flows,
        plane_count=len(offered[0]) if offered else 0,
        paths=tuple(paths),
        flow=np.array(flow, dtype=np.int64),
        plane=np.array(plane, dtype=np.int64),
        crosses=crosses,
        first=np.array(first, dtype=np.int64),
    )


def routed(flows: Flows, routes: Sequence[Routes]) -> Candidates:
    """Return one place per flow and plane: the path that the plane's routing gives it.

    Raises
    ------
    RoutecastError
        A routing splits a flow, or has no path for one.
    """
    tables: list[dict[tuple[int, int], Links]] = []
    for one in routes:
        table: dict[tuple[int, int], Links] = {}
        for path in one.paths:
            if path.share != 1.0:
                msg = (
                    f"routing {one.policy} splits the flow from router {flows.topology.router_name(path.source)} to "
                    f"{flows.topology.router_name(path.target)}: planes take whole flows, so choose a routing with "
                    "one path per flow (xy, yx, romm, valiant, adaptive)"
                )
                raise RoutecastError(msg)
            table[path.source, path.target] = path.links
        tables.append(table)
    ends = list(zip(flows.source.tolist(), flows.target.tolist(), strict=True))
    for source, target in ends:
        for one, table in zip(routes, tables, strict=True):
            if (source, target) not in table:
                msg = (
                    f"routing {one.policy} has no path from router {flows.topology.router_name(source)} to "
                    f"{flows.topology.router_name(target)}, which has a demand: give it one"
                )
                raise RoutecastError(msg)
    return candidates_of(flows, [[[table[pair]] for table in tables] for pair in ends])


def dimension_order(topology: Topology, source: int, target: int, *, horizontal_first: bool = True) -> Links:
    """Return the links of the XY path between two routers, or of the YX path.

    On a torus with two shortest ways round a ring it is the one to the east or south.
    """
    along_x, along_y = topology.offsets(source, target)
    ways = [(along_x[0], Direction.EAST, Direction.WEST), (along_y[0], Direction.SOUTH, Direction.NORTH)]
    numbers = link_numbers(topology)
    every = links(topology)
    path: list[int] = []
    router = source
    for way, forward, backward in ways if horizontal_first else reversed(ways):
        for _ in range(abs(way)):
            number = numbers[router, forward if way > 0 else backward]
            path.append(number)
            router = every[number].target
    return tuple(path)


def minimal_paths(topology: Topology, source: int, target: int, *, most: int | None = None) -> list[Links]:
    """Return the shortest paths between two routers, x first where there is a choice; at most ``most`` of them.

    Their number is the binomial of the distances along x and y (70 across an 8-link diagonal).
    """
    numbers = link_numbers(topology)
    every = links(topology)
    found: list[Links] = []
    open_paths: list[tuple[int, Links]] = [(source, ())]
    while open_paths and (most is None or len(found) < most):
        router, path = open_paths.pop()
        if router == target:
            found.append(path)
            continue
        for direction in reversed(topology.productive(router, target)):
            number = numbers[router, direction]
            open_paths.append((every[number].target, (*path, number)))
    return found
