"""The flows of a demand, and their candidates: a plane and a path on it for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.routing.model import Routes
from routecast.noc.topology import Direction, Topology, grid_of, link_numbers, links, shortest_hops

__all__ = [
    "UNIT",
    "Candidates",
    "Flows",
    "Freedom",
    "candidates_of",
    "dimension_order",
    "fixed_paths",
    "flows_of",
    "minimal_paths",
    "routed",
    "usable_links",
]


# Parts of a capacity. Integer sums of rates are exact, so that equal loads compare equal in any order of the moves; the
# rounding of a rate is below 1e-12 capacities.
UNIT = 1 << 40
# Sums of rates must stay below 2^63 parts.
_MAX_DEMAND = 1e5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flows:
    """The flows between different routers, one for each pair with a demand, in the row order of the matrix.

    ``topology``: the grid of every plane; ``demand``: shape (routers, routers), in capacities; the diagonal is zero;
    ``source`` and ``target``: shape (flows,): routers; ``rate``: shape (flows,): in :data:`UNIT` parts of a capacity.
    """

    topology: Topology
    demand: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    rate: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rate)


def flows_of(topology: Topology, demand: NDArray[np.float64]) -> Flows:
    """Return the flows of a demand between routers.

    Raises RoutecastError: the demand does not fit the topology, or has an entry that is negative, not finite or too
    large.
    """
    routers = topology.router_count
    if demand.shape != (routers, routers):
        msg = (
            f"a demand of shape {demand.shape} on {routers} routers: give it the shape ({routers}, {routers}) "
            "(Traffic.between_routers does)"
        )
        raise RoutecastError(msg)
    if not np.all(np.isfinite(demand)) or np.any(demand < 0):
        source, target = (int(index) for index in np.argwhere(~np.isfinite(demand) | (demand < 0))[0])
        msg = (
            f"the demand from router {topology.router_name(source)} to {topology.router_name(target)} is "
            f"{demand[source, target]:g}: a demand is 0 or more"
        )
        raise RoutecastError(msg)
    if demand.sum() > _MAX_DEMAND:
        msg = f"a demand of {demand.sum():g} capacities of a link in all, over {_MAX_DEMAND:g}: are its units right?"
        raise RoutecastError(msg)
    between = demand.astype(np.float64, copy=True)
    np.fill_diagonal(between, 0.0)
    rate = np.rint(between * UNIT).astype(np.int64)
    source_of, target_of = np.nonzero(rate)
    return Flows(
        topology=topology,
        demand=between,
        source=source_of.astype(np.int64),
        target=target_of.astype(np.int64),
        rate=rate[source_of, target_of],
    )


Links = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """All candidates of all flows, flow by flow and then plane by plane.

    ``flows``: F flows; ``plane_count``: number of planes; ``paths``: the links of each of the C candidates in order;
    ``flow`` and ``plane``: shape (C,): of each candidate; ``crosses``: shape (C, links): 1 where the path uses the
    link; ``first``: shape (F + 1,): flow f has the candidates ``first[f]`` to ``first[f + 1] - 1``.
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
        """Number of links of each path, shape (C,)."""
        hops: NDArray[np.int64] = np.sum(self.crosses, axis=1, dtype=np.int64)
        return hops

    def first_on(self, flow: int, plane: int) -> int:
        """Return the first candidate of a flow on a plane."""
        start, stop = self.first[flow], self.first[flow + 1]
        return int(start + np.searchsorted(self.plane[start:stop], plane))


def candidates_of(flows: Flows, offered: Sequence[Sequence[Sequence[Links]]]) -> Candidates:
    """Return the candidates of ``offered[f][p]``, the paths of flow f on plane p.

    Raises RoutecastError: a flow has no path on any plane.
    """
    paths: list[Links] = []
    flow: list[int] = []
    plane: list[int] = []
    first = [0]
    for number, by_plane in enumerate(offered):
        for plane_number, plane_paths in enumerate(by_plane):
            paths += map(tuple, plane_paths)
            flow += [number] * len(plane_paths)
            plane += [plane_number] * len(plane_paths)
        if len(paths) == first[-1]:
            source = flows.topology.router_name(int(flows.source[number]))
            target = flows.topology.router_name(int(flows.target[number]))
            msg = f"the flow from router {source} to {target} has no path on any plane: give it one"
            raise RoutecastError(msg)
        first.append(len(paths))
    crosses = np.zeros((len(paths), len(links(flows.topology))), dtype=np.int8)
    for candidate, path in enumerate(paths):
        crosses[candidate, list(path)] = 1
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
    """Return a candidate for each flow and plane: the path that the plane's routing gives the flow.

    Raises RoutecastError: a routing splits a flow, or has no path for one.
    """
    tables: list[dict[tuple[int, int], Links]] = []
    for route in routes:
        table: dict[tuple[int, int], Links] = {}
        for path in route.paths:
            if path.share != 1.0:
                msg = (
                    f"routing {route.policy} splits the flow from router {flows.topology.router_name(path.source)} to "
                    f"{flows.topology.router_name(path.target)}: planes take whole flows, so choose a routing with "
                    "one path per flow (xy, yx, romm, valiant, adaptive)"
                )
                raise RoutecastError(msg)
            table[path.source, path.target] = path.links
        tables.append(table)
    ends = list(zip(flows.source.tolist(), flows.target.tolist(), strict=True))
    for source, target in ends:
        for route, table in zip(routes, tables, strict=True):
            if (source, target) not in table:
                msg = (
                    f"routing {route.policy} has no path from router {flows.topology.router_name(source)} to "
                    f"{flows.topology.router_name(target)}, which has a demand: give it one"
                )
                raise RoutecastError(msg)
    return candidates_of(flows, [[[table[pair]] for table in tables] for pair in ends])


def dimension_order(topology: Topology, source: int, target: int, *, horizontal_first: bool = True) -> Links:
    """Return the links of the XY path between two routers, or of the YX path.

    On a torus with two shortest ways round a ring it is the one to the east or south.
    """
    along_x, along_y = topology.offsets(source, target)
    legs = [(along_x[0], Direction.EAST, Direction.WEST), (along_y[0], Direction.SOUTH, Direction.NORTH)]
    numbers, all_links = link_numbers(topology), links(topology)
    path: list[int] = []
    router = source
    for offset, forward, backward in legs if horizontal_first else reversed(legs):
        for _ in range(abs(offset)):
            path.append(numbers[router, forward if offset > 0 else backward])
            router = all_links[path[-1]].target
    return tuple(path)


def minimal_paths(topology: Topology, source: int, target: int, *, max_paths: int | None = None) -> list[Links]:
    """Return at most ``max_paths`` shortest paths between two routers, those along x first.

    The number of all shortest paths is a binomial of the distances along x and y (70 for 4 and 4 links).
    """
    numbers, all_links = link_numbers(topology), links(topology)
    paths: list[Links] = []
    open_paths: list[tuple[int, Links]] = [(source, ())]
    while open_paths and (max_paths is None or len(paths) < max_paths):
        router, path = open_paths.pop()
        if router == target:
            paths.append(path)
            continue
        for direction in reversed(topology.productive(router, target)):
            number = numbers[router, direction]
            open_paths.append((all_links[number].target, (*path, number)))
    return paths


class Freedom(StrEnum):
    """What an allocation may choose for each flow.

    XY on every plane is free of deadlock with one virtual channel; each further freedom may need virtual-channel
    classes (:func:`routecast.noc.routing.deadlock.layered`).
    """

    PLANE = "plane"
    """The plane; XY on each."""
    PLANE_ORDER = "plane_order"
    """The plane; XY on the first, third..., YX on the others: free of deadlock too."""
    DIMENSION_ORDER = "dimension_order"
    """The plane, and XY or YX."""
    MINIMAL = "minimal"
    """The plane, and one of all shortest paths."""
    ANY = "any"
    """The plane, and any path."""

    def routing(self, plane: int) -> str:
        """Return the name of a plane's routing."""
        return {
            Freedom.PLANE: "xy",
            Freedom.PLANE_ORDER: "yx" if plane % 2 else "xy",
            Freedom.DIMENSION_ORDER: "xy or yx",
            Freedom.MINIMAL: "shortest paths",
            Freedom.ANY: "chosen paths",
        }[self]


def fixed_paths(
    topology: Topology, freedom: Freedom, plane: int, source: int, target: int, *, max_paths: int
) -> list[Links]:
    """Return the paths offered to a flow on a plane: XY, YX, both, or both and ``max_paths`` shortest paths."""
    horizontal = dimension_order(topology, source, target)
    vertical = dimension_order(topology, source, target, horizontal_first=False)
    if freedom in (Freedom.PLANE, Freedom.PLANE_ORDER):
        return [vertical if freedom is Freedom.PLANE_ORDER and plane % 2 else horizontal]
    paths = {horizontal: None, vertical: None}
    if freedom is not Freedom.DIMENSION_ORDER:
        paths |= dict.fromkeys(minimal_paths(topology, source, target, max_paths=max_paths))
    return list(paths)


def usable_links(topology: Topology, freedom: Freedom) -> NDArray[np.bool_]:
    """Return which links traffic to a router may use, shape (routers, links): all, or those of shortest paths."""
    grid = grid_of(topology)
    if freedom is Freedom.ANY:
        return np.ones((topology.router_count, len(grid.source)), dtype=np.bool_)
    hops = shortest_hops(topology)
    return np.asarray((hops[grid.target] < hops[grid.source]).T, dtype=np.bool_)
