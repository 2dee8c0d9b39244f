"""Routings of a mesh that follow from a rule: loads and dependencies of any size of grid, without a list of paths."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from routecast.noc.routing import dimension_order, two_phase
from routecast.noc.routing.model import LazyPaths, Path
from routecast.noc.topology import Direction, Topology, link_numbers, links

__all__ = ["MeshPaths", "Rule", "written"]

Floats = NDArray[np.float64]


class Rule(StrEnum):
    """Which paths there are; named as the compiled simulator names them (``crates/noc/src/scenario.rs``)."""

    X_FIRST = "x_first"
    Y_FIRST = "y_first"
    EITHER = "either"
    OVER_RECTANGLE = "over_rectangle"
    OVER_ANY = "over_any"
    RANDOM_SPLIT = "random_split"
    FOUR_PATHS = "four_paths"

    @property
    def is_simulated(self) -> bool:
        """Whether the compiled simulator knows the rule; of the others it wants the paths."""
        return self not in (Rule.RANDOM_SPLIT, Rule.FOUR_PATHS)

    @property
    def orders(self) -> str:
        """The dimension that comes first in each virtual-channel class of a mesh."""
        return _ORDERS.get(self, "xy")

    @property
    def has_router_between(self) -> bool:
        """Whether packets go one class up at a router between source and target."""
        return self in (Rule.OVER_RECTANGLE, Rule.OVER_ANY, Rule.FOUR_PATHS)


_ORDERS = {Rule.X_FIRST: "x", Rule.Y_FIRST: "y", Rule.OVER_RECTANGLE: "xx", Rule.OVER_ANY: "xx", Rule.FOUR_PATHS: "xyx"}


def written(rule: Rule, topology: Topology, seed: int) -> list[Path]:
    """Return the paths between all routers of any grid under a rule."""
    match rule:
        case Rule.X_FIRST:
            return dimension_order.xy(topology)
        case Rule.Y_FIRST:
            return dimension_order.yx(topology)
        case Rule.EITHER:
            return dimension_order.o1turn(topology)
        case Rule.RANDOM_SPLIT:
            return dimension_order.random_split(topology, seed)
        case Rule.FOUR_PATHS:
            return two_phase.four_paths(topology, seed)
        case Rule.OVER_RECTANGLE:
            return two_phase.romm(topology, seed)
        case Rule.OVER_ANY:
            return two_phase.valiant(topology, seed)


class MeshPaths(LazyPaths):
    """The paths between all routers of a mesh under a rule.

    Parameters
    ----------
    topology
        A mesh, concentrated or not: on a ring packets change their class, which no rule here says.
    rule
        Which paths.
    seed
        Of what the rule draws; of what a list draws where it would have too many paths
        (:func:`routecast.noc.routing.two_phase.romm`), while loads are exact expectations.
    """

    __slots__ = ("rule", "seed", "topology")

    def __init__(self, topology: Topology, rule: Rule, seed: int) -> None:
        super().__init__()
        self.topology, self.rule, self.seed = topology, rule, seed

    def _write(self) -> list[Path]:
        return written(self.rule, self.topology, self.seed)

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
                part = dimension_order.parts_of_xy(topology, seed)
                legs = part * demand, (1.0 - part) * demand
            case Rule.FOUR_PATHS:
                each = 0.25 * (demand + _over_one(demand, _middles(topology, seed)))
                legs = each, each
            case Rule.OVER_ANY:
                legs = _over_any(_moving(demand)), None
            case Rule.OVER_RECTANGLE:
                legs = _over_rectangle(_moving(demand), topology.rows, topology.columns), None
        found = [
            _loads(topology, flows, y_first=bool(y_first)) for y_first, flows in enumerate(legs) if flows is not None
        ]
        return found[0] if len(found) == 1 else found[0] + found[1]

    def dependencies(self) -> Iterator[tuple[int, int]]:
        """Yield which channel ``link * classes + class`` a packet may hold while it asks for which.

        At the router between, a packet may turn anywhere, even back: that is more than ROMM does.
        """
        numbers, classes = link_numbers(self.topology), self.layer_count
        for held, link in enumerate(links(self.topology)):
            for direction in Direction:
                asked = numbers.get((link.target, direction))
                if asked is None:
                    continue
                straight, turns_up = direction is link.direction, link.direction.is_horizontal
                for layer, first in enumerate(self.rule.orders):
                    y_first = first == "y"
                    if straight or (turns_up != y_first and direction.is_horizontal is y_first):
                        yield held * classes + layer, asked * classes + layer
                    if self.rule.has_router_between and layer + 1 < classes:
                        yield held * classes + layer, asked * classes + layer + 1


def _loads(topology: Topology, demand: Floats, *, y_first: bool) -> Floats:
    """Return the loads of all links by XY or by YX."""
    # flows[from y, from x, to y, to x]
    flows = demand.reshape((topology.rows, topology.columns) * 2)
    # Along a row go the flows from x to x that turn, or have turned, in it; along a column the others.
    in_rows = flows.sum(axis=0).transpose(1, 0, 2) if y_first else flows.sum(axis=2)
    in_columns = flows.sum(axis=3).transpose(1, 0, 2) if y_first else flows.sum(axis=1).transpose(2, 0, 1)
    (east, west), (south, north) = _crossing(in_rows), _crossing(in_columns)
    by_direction = {Direction.EAST: east, Direction.WEST: west, Direction.SOUTH: south.T, Direction.NORTH: north.T}
    places = ((topology.position(link.source), link.direction) for link in links(topology))
    return np.array([by_direction[direction][y, x] for (x, y), direction in places], dtype=np.float64)


def _crossing(lines: Floats) -> tuple[Floats, Floats]:
    """Return what leaves each place of each line up and down, from what goes from place to place along it.

    ``lines`` has the shape (lines, places, places), each answer (lines, places). Plain sums: differences of sums would
    leave 1e-17 where nothing goes.
    """
    size = lines.shape[1]
    up, down = (np.zeros(lines.shape[:2]) for _ in range(2))
    for place in range(size):
        up[:, place] = lines[:, : place + 1, place + 1 :].sum(axis=(1, 2))
        down[:, place] = lines[:, place:, :place].sum(axis=(1, 2))
    return up, down


def _moving(demand: Floats) -> Floats:
    """Return the demand without what stays at its router, which goes nowhere, over nothing."""
    return demand * (1.0 - np.eye(len(demand)))


def _over_one(demand: Floats, middles: NDArray[np.intp]) -> Floats:
    """Return the two legs of every flow over one router as flows of their own, shape (routers, routers)."""
    size = len(demand)
    source, target = np.ogrid[:size, :size]
    legs = np.zeros(size * size)
    for flow in (source * size + middles, middles * size + target):
        legs += np.bincount(flow.ravel(), weights=demand.ravel(), minlength=size * size)
    return legs.reshape(size, size)


def _middles(topology: Topology, seed: int) -> NDArray[np.intp]:
    """Return the router between that :func:`routecast.noc.routing.two_phase.four_paths` draws for every flow."""
    rows, columns = topology.rows, topology.columns
    from_y, from_x, to_y, to_x = np.ogrid[:rows, :columns, :rows, :columns]
    high, wide = np.abs(to_y - from_y) + 1, np.abs(to_x - from_x) + 1
    # Without the rim, where that leaves any router.
    rim = ((high > 2) & (wide > 2)).astype(np.intp)
    high, wide = high - 2 * rim, wide - 2 * rim
    drawn = two_phase.drawn_middles(topology, seed).reshape(rows, columns, rows, columns)
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
    """Return the two legs over any router between as flows of their own, shape (routers, routers)."""
    flows = demand.reshape(rows, columns, rows, columns)
    between_rows, between_columns = _between(rows), _between(columns)
    routers = between_rows.sum(axis=2)[:, None, :, None] * between_columns.sum(axis=2)[None, :, None, :]
    each = flows / routers

    def first_leg(parts: Floats) -> Floats:
        to_column = parts @ between_columns
        to_row = to_column.swapaxes(2, 3) @ between_rows[:, None]
        found: Floats = to_row.swapaxes(2, 3)
        return found

    # The second leg is the first one of the way back.
    back = first_leg(np.ascontiguousarray(each.transpose(2, 3, 0, 1)))
    legs: Floats = (first_leg(each) + back.transpose(2, 3, 0, 1)).reshape(demand.shape)
    return legs


def _between(size: int) -> Floats:
    """Return 1 at ``[one, other, place]`` where the place is one of the two or between them, and 0 elsewhere."""
    one, other, place = np.ogrid[:size, :size, :size]
    inside = (np.minimum(one, other) <= place) & (place <= np.maximum(one, other))
    return inside.astype(np.float64)
