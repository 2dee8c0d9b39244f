"""Mesh, torus and concentrated mesh: routers on a grid, two opposite unidirectional links between neighbours.

Routers are numbered row by row, ``router = y * columns + x``, row 0 on top. A node (Li's processing element)
has the number ``router * concentration + k``. Every link has a number, its index in :func:`links`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.quantity.schema import value

__all__ = [
    "Direction",
    "Floats",
    "Grid",
    "Ints",
    "MeshLink",
    "Topology",
    "TopologyKind",
    "distances",
    "grid_of",
    "link_numbers",
    "links",
    "shortest_hops",
]

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class TopologyKind(StrEnum):
    """How links join the routers of the grid."""

    MESH = "mesh"
    TORUS = "torus"
    CONCENTRATED_MESH = "concentrated_mesh"


class Direction(StrEnum):
    """The direction of a link: x grows to the east, y to the south."""

    EAST = "east"
    WEST = "west"
    SOUTH = "south"
    NORTH = "north"

    @property
    def step(self) -> tuple[int, int]:
        """The step of the link in (x, y)."""
        return _STEPS[self]

    @property
    def is_horizontal(self) -> bool:
        """Whether the link runs along x."""
        return self in (Direction.EAST, Direction.WEST)


_STEPS = {Direction.EAST: (1, 0), Direction.WEST: (-1, 0), Direction.SOUTH: (0, 1), Direction.NORTH: (0, -1)}


@value
class MeshLink:
    """One unidirectional channel between the routers ``source`` and ``target``."""

    source: int
    target: int
    direction: Direction


@value
class Topology:
    """A grid of routers with ``concentration`` nodes at each.

    Raises
    ------
    RoutecastError
        Less than one column, row or node; a grid of one router; nodes that share a router in a plain mesh.
    """

    kind: TopologyKind
    columns: int
    rows: int
    concentration: int = 1

    def __post_init__(self) -> None:
        if self.columns < 1 or self.rows < 1 or self.columns * self.rows < 2:
            msg = f"a grid of {self.columns} x {self.rows} routers has no links; at least 2 routers are needed"
            raise RoutecastError(msg)
        if self.concentration < 1:
            msg = f"concentration {self.concentration}: each router has at least 1 node"
            raise RoutecastError(msg)
        if self.concentration > 1 and self.kind is not TopologyKind.CONCENTRATED_MESH:
            msg = (
                f"concentration {self.concentration} goes with kind concentrated_mesh; a {self.kind} has one "
                "node at each router"
            )
            raise RoutecastError(msg)

    @property
    def router_count(self) -> int:
        """Number of routers."""
        return self.columns * self.rows

    @property
    def node_count(self) -> int:
        """Number of nodes that send and receive."""
        return self.router_count * self.concentration

    @property
    def is_torus(self) -> bool:
        """Whether rows and columns close to rings."""
        return self.kind is TopologyKind.TORUS

    def position(self, router: int) -> tuple[int, int]:
        """Return (x, y) of a router."""
        return router % self.columns, router // self.columns

    def router_at(self, x: int, y: int) -> int:
        """Return the router at (x, y)."""
        return y * self.columns + x

    def router_of(self, node: int) -> int:
        """Return the router of a node."""
        return node // self.concentration

    def neighbour(self, router: int, direction: Direction) -> int | None:
        """Return the router that a link in this direction leads to; None at the edge of a mesh."""
        x, y = self.position(router)
        dx, dy = direction.step
        x, y = x + dx, y + dy
        if self.is_torus:
            # A ring of one router has no links.
            x, y = x % self.columns, y % self.rows
            return None if self.router_at(x, y) == router else self.router_at(x, y)
        if 0 <= x < self.columns and 0 <= y < self.rows:
            return self.router_at(x, y)
        return None

    def offsets(self, source: int, target: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shortest signed offsets along x and along y; two where both ways round a ring are equal."""
        (sx, sy), (tx, ty) = self.position(source), self.position(target)
        return _offsets(tx - sx, self.columns, self.is_torus), _offsets(ty - sy, self.rows, self.is_torus)

    def distance(self, source: int, target: int) -> int:
        """Return the least number of links between two routers."""
        along_x, along_y = self.offsets(source, target)
        return abs(along_x[0]) + abs(along_y[0])

    def productive(self, router: int, target: int) -> tuple[Direction, ...]:
        """Return the directions that the shortest paths to a router begin with, x first; none at the target itself."""
        along_x, along_y = self.offsets(router, target)
        horizontal = [Direction.EAST if offset > 0 else Direction.WEST for offset in along_x if offset]
        vertical = [Direction.SOUTH if offset > 0 else Direction.NORTH for offset in along_y if offset]
        return (*horizontal, *vertical)

    def router_name(self, router: int) -> str:
        """Return a router's name in messages, ``(x, y)``."""
        x, y = self.position(router)
        return f"({x}, {y})"

    def link_name(self, link: int) -> str:
        """Return a link's name in messages, ``(x, y)->(x, y)``."""
        ends = links(self)[link]
        return f"{self.router_name(ends.source)}->{self.router_name(ends.target)}"


def _offsets(offset: int, size: int, is_ring: bool) -> tuple[int, ...]:
    if not is_ring or not offset:
        return (offset,)
    forward = offset % size
    backward = forward - size
    if forward == -backward:
        return (forward, backward)
    return (forward,) if forward < -backward else (backward,)


@lru_cache(maxsize=64)
def links(topology: Topology) -> tuple[MeshLink, ...]:
    """Return every link, by source router and then in the order of :class:`Direction`."""
    return tuple(
        MeshLink(source=router, target=target, direction=direction)
        for router in range(topology.router_count)
        for direction in Direction
        if (target := topology.neighbour(router, direction)) is not None
    )


@lru_cache(maxsize=64)
def link_numbers(topology: Topology) -> dict[tuple[int, Direction], int]:
    """Return the number of the link that leaves a router in a direction."""
    return {(link.source, link.direction): number for number, link in enumerate(links(topology))}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """The links of a topology as arrays.

    ``source`` and ``target``: shape (links,): the routers at the ends of each link; ``leaving``: shape (directions,
    routers): the link that leaves a router in a direction; the number of links where none does; ``ahead``: shape
    (directions, routers): the router that it leads to; the router itself where none does; ``arriving``: shape
    (directions, routers): the link that arrives at a router in a direction; the number of links where none does.
    """

    source: Ints
    target: Ints
    leaving: Ints
    ahead: Ints
    arriving: Ints


@lru_cache(maxsize=16)
def grid_of(topology: Topology) -> Grid:
    """Return the arrays of a topology."""
    all_links, directions = links(topology), list(Direction)
    leaving = np.full((len(directions), topology.router_count), len(all_links), dtype=np.int64)
    arriving = leaving.copy()
    ahead = np.tile(np.arange(topology.router_count), (len(directions), 1))
    for number, link in enumerate(all_links):
        row = directions.index(link.direction)
        leaving[row, link.source] = number
        ahead[row, link.source] = link.target
        arriving[row, link.target] = number
    return Grid(
        source=np.array([link.source for link in all_links], dtype=np.int64),
        target=np.array([link.target for link in all_links], dtype=np.int64),
        leaving=leaving,
        ahead=ahead,
        arriving=arriving,
    )


@lru_cache(maxsize=16)
def shortest_hops(topology: Topology) -> Floats:
    """Return the least number of links between routers, shape (routers, routers)."""
    numbers = np.arange(topology.router_count)
    x, y = numbers % topology.columns, numbers // topology.columns
    away_x, away_y = np.abs(x[:, None] - x[None, :]), np.abs(y[:, None] - y[None, :])
    if topology.is_torus:
        away_x = np.minimum(away_x, topology.columns - away_x)
        away_y = np.minimum(away_y, topology.rows - away_y)
    return np.asarray(away_x + away_y, dtype=np.float64)


def distances(topology: Topology, lengths: Floats, arcs: NDArray[np.bool_]) -> Floats:
    """Return the length of the shortest path from each router to each, shape (routers, routers); inf without a path.

    ``lengths``: of the links, not negative; ``arcs``: shape (routers, links): the links that traffic to a router may
    use.
    """
    grid = grid_of(topology)
    routers = topology.router_count
    # The last row stands for the links that do not exist: they are infinitely long.
    length = np.full((lengths.size + 1, routers), np.inf)
    np.copyto(length[:-1], lengths[:, None], where=arcs.T)
    first = length[grid.leaving]
    distance = np.full((routers, routers), np.inf)
    np.fill_diagonal(distance, 0.0)
    while True:
        shorter = np.minimum((first + distance[grid.ahead]).min(axis=0), distance)
        if np.array_equal(shorter, distance):
            return distance
        distance = shorter
