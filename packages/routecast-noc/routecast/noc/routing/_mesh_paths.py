"""Routings by a rule: paths on any grid; on a mesh, link loads and channel dependencies without a list of paths.

The rules turn at most once (XY, YX, and both in equal or random parts) or go over an intermediate router (ROMM,
Valiant, Li's four paths).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from routecast.noc.routing.model import LazyPaths, Path
from routecast.noc.topology import Direction, Floats, Topology, link_numbers, links
from routecast.quantity.schema import value

__all__ = ["MeshPaths", "Rule", "Walk", "classes_of_rings", "drawn_middles", "parts_of_xy", "paths_of", "walks"]


@value
class Walk:
    """A walk over the grid: its links in order, the virtual-channel class on each, and the router where it ends."""

    links: tuple[int, ...]
    layers: tuple[int, ...]
    end: int


def classes_of_rings(topology: Topology) -> int:
    """Return the virtual-channel classes that a dimension-ordered routing needs: 2 on rings, 1 without."""
    return 2 if topology.is_torus else 1


@lru_cache(maxsize=16)
def _straight_walks(topology: Topology, along_x: bool) -> tuple[tuple[tuple[Walk, ...], ...], ...]:
    """Return the straight shortest walks ``[router][coordinate]``; two where both ways round a ring are equally short.

    A walk along a ring stays in one virtual-channel class: forward in class 1 if it crosses the link that closes the
    ring (the dateline) and in class 0 otherwise; backward the other way round. So each class of each direction lacks a
    link of the ring: the closing link, or one opposite to it that no shortest walk over the closing link reaches.
    Rising by a class at the dateline (Dally and Seitz 1987) frees rings too, but nearly all packets then wait in class
    0: datelines should balance the load of the classes (Dally and Towles 2004, sec. 14.2.3).
    """
    numbers = link_numbers(topology)
    forward, backward = (Direction.EAST, Direction.WEST) if along_x else (Direction.SOUTH, Direction.NORTH)

    def walk(router: int, offset: int) -> Walk:
        direction = forward if offset > 0 else backward
        chosen, is_closing = [], False
        for _ in range(abs(offset)):
            chosen.append(numbers[router, direction])
            following = topology.neighbour(router, direction)
            assert following is not None  # offsets stay on the grid
            is_closing |= (following > router) != (offset > 0)
            router = following
        layer = int(is_closing == (offset > 0)) if topology.is_torus else 0
        return Walk(links=tuple(chosen), layers=(layer,) * len(chosen), end=router)

    table = []
    for router in range(topology.router_count):
        x, y = topology.position(router)
        targets = [topology.router_at(column, y) for column in range(topology.columns)]
        if not along_x:
            targets = [topology.router_at(x, row) for row in range(topology.rows)]
        table.append(
            tuple(
                tuple(walk(router, offset) for offset in topology.offsets(router, target)[0 if along_x else 1])
                for target in targets
            )
        )
    return tuple(table)


def walks(topology: Topology, source: int, target: int, *, x_first: bool) -> list[Walk]:
    """Return the dimension-ordered shortest walks: one, or 2 or 4 where both ways round a ring are as short."""
    x, y = topology.position(target)
    first_to, second_to = (x, y) if x_first else (y, x)
    second_walks = _straight_walks(topology, not x_first)
    return [
        Walk(links=first.links + second.links, layers=first.layers + second.layers, end=target)
        for first in _straight_walks(topology, x_first)[source][first_to]
        for second in second_walks[first.end][second_to]
    ]


def _paths(topology: Topology, source: int, target: int, *, x_first: bool, share: float, base: int) -> list[Path]:
    """Return the walks as paths whose shares sum to ``share``, in the classes from ``base`` on."""
    equal_walks = walks(topology, source, target, x_first=x_first)
    return [
        Path(
            source=source,
            target=target,
            links=walk.links,
            layers=tuple([layer + base for layer in walk.layers]) if base else walk.layers,
            share=share / len(equal_walks),
        )
        for walk in equal_walks
    ]


def _one_order(topology: Topology, *, x_first: bool) -> list[Path]:
    routers = range(topology.router_count)
    return [
        path
        for source in routers
        for target in routers
        if source != target
        for path in _paths(topology, source, target, x_first=x_first, share=1.0, base=0)
    ]


def _both_orders(topology: Topology, part_of_xy: Floats) -> list[Path]:
    """Return XY paths in the lower classes, YX paths in the upper ones; ``part_of_xy``: shape (routers, routers).

    In one class the two orders have cycles (all four turns of a square occur); in classes of their own they have none.
    """
    upper = classes_of_rings(topology)
    chosen = []
    for source, parts in enumerate(part_of_xy.tolist()):
        for target, part in enumerate(parts):
            if source == target:
                continue
            chosen += _paths(topology, source, target, x_first=True, share=part, base=0)
            chosen += _paths(topology, source, target, x_first=False, share=1.0 - part, base=upper)
    return chosen


def parts_of_xy(topology: Topology, seed: int) -> Floats:
    """Return the part of every flow by XY under :attr:`Rule.RANDOM_SPLIT`, shape (routers, routers)."""
    return np.random.default_rng([seed, 0]).random((topology.router_count, topology.router_count))


# Above this number of walks (some hundred bytes each) the intermediate routers are a random sample.
_MAX_WALKS = 300_000


def _four_paths(topology: Topology, seed: int) -> list[Path]:
    routers, classes = topology.router_count, classes_of_rings(topology)
    drawn = drawn_middles(topology, seed).tolist()
    xy, yx, last_xy = (True, 0), (False, classes), (True, 2 * classes)
    paths = []
    for source in range(routers):
        for target in range(routers):
            if source == target:
                continue
            allowed = _rectangle(topology, source, target, has_rim=False) or _rectangle(topology, source, target)
            middle = allowed[int(drawn[source][target] * len(allowed))]
            for over, first, second in (
                (target, xy, yx),
                (target, yx, last_xy),
                (middle, xy, yx),
                (middle, yx, last_xy),
            ):
                walks_over = _walks_over(topology, source, over, target, first=first, second=second)
                paths += [
                    Path(
                        source=source, target=target, links=walk.links, layers=walk.layers, share=0.25 / len(walks_over)
                    )
                    for walk in walks_over
                ]
    return paths


def drawn_middles(topology: Topology, seed: int) -> Floats:
    """Return the draws of :attr:`Rule.FOUR_PATHS`, 0..1, that choose intermediate routers, shape (routers, routers)."""
    return np.random.default_rng([seed, 1]).random((topology.router_count, topology.router_count))


def _over_intermediates(topology: Topology, seed: int, *, is_minimal: bool) -> list[Path]:
    routers, upper = topology.router_count, classes_of_rings(topology)
    flows = [(source, target) for source in range(routers) for target in range(routers) if source != target]
    middles = {flow: _rectangle(topology, *flow) if is_minimal else range(routers) for flow in flows}
    if sum(len(middle) for middle in middles.values()) > _MAX_WALKS:
        random = np.random.default_rng([seed, 2])
        sample_size = max(1, _MAX_WALKS // len(flows))
        for flow, allowed in middles.items():
            if len(allowed) > sample_size:
                middles[flow] = random.choice(np.array(allowed), size=sample_size, replace=False).tolist()
    paths = []
    for (source, target), allowed in middles.items():
        shares: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        for middle in allowed:
            walks_over = _walks_over(topology, source, middle, target, first=(True, 0), second=(True, upper))
            for walk in walks_over:
                key = (walk.links, walk.layers)
                shares[key] = shares.get(key, 0.0) + 1 / (len(walks_over) * len(allowed))
        paths += [
            Path(source=source, target=target, links=chosen, layers=layers, share=share)
            for (chosen, layers), share in shares.items()
        ]
    return paths


def _walks_over(
    topology: Topology, source: int, middle: int, target: int, *, first: tuple[bool, int], second: tuple[bool, int]
) -> list[Walk]:
    """Return the walks over ``middle``; a phase holds whether it goes along x first, and its lowest class."""
    return [
        Walk(
            links=first_walk.links + second_walk.links,
            layers=(
                *[layer + first[1] for layer in first_walk.layers],
                *[layer + second[1] for layer in second_walk.layers],
            ),
            end=target,
        )
        for first_walk in walks(topology, source, middle, x_first=first[0])
        for second_walk in walks(topology, middle, target, x_first=second[0])
    ]


def _rectangle(topology: Topology, source: int, target: int, *, has_rim: bool = True) -> list[int]:
    """Return the routers of all shortest paths; without rim only those outside the rows and columns of the two ends."""
    along_x, along_y = topology.offsets(source, target)
    (ax, ay), (bx, by) = topology.position(source), topology.position(target)
    columns = _coordinates(ax, along_x, topology.columns)
    rows = _coordinates(ay, along_y, topology.rows)
    if not has_rim:
        columns, rows = columns - {ax, bx}, rows - {ay, by}
    return [topology.router_at(column, row) for row in sorted(rows) for column in sorted(columns)]


def _coordinates(start: int, offsets: tuple[int, ...], size: int) -> set[int]:
    """Return the coordinates of the shortest walks."""
    return {(start + step) % size for offset in offsets for step in range(min(offset, 0), max(offset, 0) + 1)}


class Rule(StrEnum):
    """The paths of a routing; names are those of the compiled simulator (``crates/noc/src/scenario.rs``)."""

    X_FIRST = "x_first"
    """XY: along x to the column of the target, then along y. On a torus the shorter way round; a half each if equal."""
    Y_FIRST = "y_first"
    """YX: along y, then along x."""
    EITHER = "either"
    """O1TURN (Seo et al. 2005), also Li's 2P-ES (sec. 6.4.1): half by XY and half by YX, each in its own classes."""
    OVER_RECTANGLE = "over_rectangle"
    """Two-phase ROMM (Nesson and Johnsson 1995): over any router of the minimal rectangle, all equally likely.

    Both phases go by XY, the first in the lower classes, the second in the upper ones. Shares are exact expectations
    up to 300 000 walks; beyond, each flow samples its intermediate routers, as many as fit (16 x 16: 4). On a torus
    the rectangle lies the shorter way; where both ways round are equal, it holds the whole ring.
    """
    OVER_ANY = "over_any"
    """Valiant's routing (1982): over any router, source and target included; else as ROMM."""
    RANDOM_SPLIT = "random_split"
    """Li's 2P-RS (sec. 6.4.1): a part of each flow, uniform in 0..1, by XY, the rest by YX."""
    FOUR_PATHS = "four_paths"
    """Li's 4P-ES (sec. 6.4.1): XY, YX and two paths over a random router, a quarter of the flow each.

    "A random intermediate node is chosen internally in the rectangle" is read as: neither in a row nor in a column of
    source or target; so Li's statement on transpose traffic holds, which it does not with the rim allowed. A
    rectangle without such routers gives any of its routers. The two paths over it go XY then YX, and YX then XY: they
    load the links as XY then XY and YX then YX would, with fewer turns. Phases rise through three orders, each in its
    own classes: XY, YX, XY.
    """

    @property
    def is_simulated(self) -> bool:
        """Whether the compiled simulator knows the rule; other rules reach it as lists of paths."""
        return self not in (Rule.RANDOM_SPLIT, Rule.FOUR_PATHS)

    @property
    def orders(self) -> str:
        """The dimension that comes first in each virtual-channel class of a mesh."""
        return _ORDERS.get(self, "xy")

    @property
    def has_router_between(self) -> bool:
        """Whether packets change to a higher class at an intermediate router."""
        return self in (Rule.OVER_RECTANGLE, Rule.OVER_ANY, Rule.FOUR_PATHS)


_ORDERS = {Rule.X_FIRST: "x", Rule.Y_FIRST: "y", Rule.OVER_RECTANGLE: "xx", Rule.OVER_ANY: "xx", Rule.FOUR_PATHS: "xyx"}


def paths_of(rule: Rule, topology: Topology, seed: int) -> list[Path]:
    """Return the paths between all routers of a grid under a rule."""
    match rule:
        case Rule.X_FIRST:
            return _one_order(topology, x_first=True)
        case Rule.Y_FIRST:
            return _one_order(topology, x_first=False)
        case Rule.EITHER:
            return _both_orders(topology, np.full((topology.router_count,) * 2, 0.5))
        case Rule.RANDOM_SPLIT:
            return _both_orders(topology, parts_of_xy(topology, seed))
        case Rule.FOUR_PATHS:
            return _four_paths(topology, seed)
        case Rule.OVER_RECTANGLE:
            return _over_intermediates(topology, seed, is_minimal=True)
        case Rule.OVER_ANY:
            return _over_intermediates(topology, seed, is_minimal=False)


class MeshPaths(LazyPaths):
    """The paths between all routers of a mesh under a rule.

    ``topology``: a mesh, concentrated or not; on rings packets change their class, which no rule here expresses;
    ``seed``: of random rules, and of lists that would have too many paths, while link loads are exact expectations.
    """

    __slots__ = ("rule", "seed", "topology")

    def __init__(self, topology: Topology, rule: Rule, seed: int) -> None:
        super().__init__()
        self.topology, self.rule, self.seed = topology, rule, seed

    def _list(self) -> list[Path]:
        return paths_of(self.rule, self.topology, self.seed)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MeshPaths):
            return (self.topology, self.rule, self.seed) == (other.topology, other.rule, other.seed)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.topology, self.rule, self.seed))

    @property
    def layer_count(self) -> int:
        """Virtual-channel classes."""
        return len(self.rule.orders)

    def link_loads(self, demand: Floats) -> Floats:
        """Return the load of every link for a demand of shape (routers, routers), in capacities."""
        topology, seed = self.topology, self.seed
        # The legs of all flows by XY, and those by YX.
        legs: tuple[Floats | None, Floats | None]
        match self.rule:
            case Rule.X_FIRST:
                legs = demand, None
            case Rule.Y_FIRST:
                legs = None, demand
            case Rule.EITHER:
                legs = 0.5 * demand, 0.5 * demand
            case Rule.RANDOM_SPLIT:
                part = parts_of_xy(topology, seed)
                legs = part * demand, (1.0 - part) * demand
            case Rule.FOUR_PATHS:
                quarters = 0.25 * (demand + _over_middles(demand, _middles(topology, seed)))
                legs = quarters, quarters
            case Rule.OVER_ANY:
                legs = _over_any(_without_diagonal(demand)), None
            case Rule.OVER_RECTANGLE:
                legs = _over_rectangle(_without_diagonal(demand), topology.rows, topology.columns), None
        loads = [
            _loads(topology, flows, y_first=bool(y_first)) for y_first, flows in enumerate(legs) if flows is not None
        ]
        return loads[0] if len(loads) == 1 else loads[0] + loads[1]

    def dependencies(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of channels ``link * classes + class``: a packet may hold the first and request the second.

        At the intermediate router a packet may turn anywhere, even back; ROMM uses only some of these turns.
        """
        numbers, classes = link_numbers(self.topology), self.layer_count
        for held, link in enumerate(links(self.topology)):
            for direction in Direction:
                requested = numbers.get((link.target, direction))
                if requested is None:
                    continue
                straight, turns_up = direction is link.direction, link.direction.is_horizontal
                for layer, first in enumerate(self.rule.orders):
                    y_first = first == "y"
                    if straight or (turns_up != y_first and direction.is_horizontal is y_first):
                        yield held * classes + layer, requested * classes + layer
                    if self.rule.has_router_between and layer + 1 < classes:
                        yield held * classes + layer, requested * classes + layer + 1


def _loads(topology: Topology, demand: Floats, *, y_first: bool) -> Floats:
    """Return the loads of all links by XY or by YX."""
    # flows[from y, from x, to y, to x]
    flows = demand.reshape((topology.rows, topology.columns) * 2)
    # Along a row go the flows that turn, or have turned, in it; along a column the others.
    in_rows = flows.sum(axis=0).transpose(1, 0, 2) if y_first else flows.sum(axis=2)
    in_columns = flows.sum(axis=3).transpose(1, 0, 2) if y_first else flows.sum(axis=1).transpose(2, 0, 1)
    (east, west), (south, north) = _line_loads(in_rows), _line_loads(in_columns)
    by_direction = {Direction.EAST: east, Direction.WEST: west, Direction.SOUTH: south.T, Direction.NORTH: north.T}
    starts = ((topology.position(link.source), link.direction) for link in links(topology))
    return np.array([by_direction[direction][y, x] for (x, y), direction in starts], dtype=np.float64)


def _line_loads(lines: Floats) -> tuple[Floats, Floats]:
    """Return the loads that leave each position of each line up and down, shape (lines, positions).

    ``lines``: shape (lines, positions, positions): flow from position to position along a line. Plain sums: differences
    of sums would leave 1e-17 where nothing flows.
    """
    size = lines.shape[1]
    up, down = (np.zeros(lines.shape[:2]) for _ in range(2))
    for position in range(size):
        up[:, position] = lines[:, : position + 1, position + 1 :].sum(axis=(1, 2))
        down[:, position] = lines[:, position:, :position].sum(axis=(1, 2))
    return up, down


def _without_diagonal(demand: Floats) -> Floats:
    """Return the demand without the traffic of a router to itself."""
    return demand * (1.0 - np.eye(len(demand)))


def _over_middles(demand: Floats, middles: NDArray[np.intp]) -> Floats:
    """Return the two legs of every flow over its intermediate router as separate flows, shape (routers, routers)."""
    size = len(demand)
    source, target = np.ogrid[:size, :size]
    legs = np.zeros(size * size)
    for flow in (source * size + middles, middles * size + target):
        legs += np.bincount(flow.ravel(), weights=demand.ravel(), minlength=size * size)
    return legs.reshape(size, size)


def _middles(topology: Topology, seed: int) -> NDArray[np.intp]:
    """Return the intermediate router of every flow under :attr:`Rule.FOUR_PATHS`, shape (routers, routers)."""
    rows, columns = topology.rows, topology.columns
    from_y, from_x, to_y, to_x = np.ogrid[:rows, :columns, :rows, :columns]
    high, wide = np.abs(to_y - from_y) + 1, np.abs(to_x - from_x) + 1
    # Without the rim, where that leaves any router.
    rim = ((high > 2) & (wide > 2)).astype(np.intp)
    high, wide = high - 2 * rim, wide - 2 * rim
    drawn = drawn_middles(topology, seed).reshape(rows, columns, rows, columns)
    number = (drawn * (high * wide)).astype(np.intp)
    y = np.minimum(from_y, to_y) + rim + number // wide
    x = np.minimum(from_x, to_x) + rim + number % wide
    middles: NDArray[np.intp] = (y * columns + x).reshape(topology.router_count, topology.router_count)
    return middles


def _over_any(demand: Floats) -> Floats:
    """Return the two legs over any router as flows of their own, shape (routers, routers)."""
    legs: Floats = (demand.sum(axis=1)[:, None] + demand.sum(axis=0)[None, :]) / len(demand)
    return legs


def _over_rectangle(demand: Floats, rows: int, columns: int) -> Floats:
    """Return the two legs over any intermediate router as separate flows, shape (routers, routers)."""
    flows = demand.reshape(rows, columns, rows, columns)
    between_rows, between_columns = _between(rows), _between(columns)
    routers = between_rows.sum(axis=2)[:, None, :, None] * between_columns.sum(axis=2)[None, :, None, :]
    each = flows / routers

    def first_leg(parts: Floats) -> Floats:
        to_column = parts @ between_columns
        to_row = to_column.swapaxes(2, 3) @ between_rows[:, None]
        first: Floats = to_row.swapaxes(2, 3)
        return first

    # The second leg is the first one of the way back.
    back = first_leg(np.ascontiguousarray(each.transpose(2, 3, 0, 1)))
    legs: Floats = (first_leg(each) + back.transpose(2, 3, 0, 1)).reshape(demand.shape)
    return legs


def _between(size: int) -> Floats:
    """Return 1 at ``[a, b, middle]`` where the middle is a, b or between them, and 0 elsewhere."""
    a, b, middle = np.ogrid[:size, :size, :size]
    is_inside = (np.minimum(a, b) <= middle) & (middle <= np.maximum(a, b))
    return is_inside.astype(np.float64)
