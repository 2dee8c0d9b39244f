"""Routings of a mesh that follow from a rule: loads and dependencies of any size of grid, without a list of paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import overload

import numpy as np
from numpy.typing import NDArray

from routecast.noc.routing import dimension_order, two_phase
from routecast.noc.routing.model import Path, PathsByRule
from routecast.noc.topology import Direction, Topology, link_numbers, links

__all__ = ["MeshPaths", "Rule"]

Floats = NDArray[np.float64]


class Rule(StrEnum):
    """Which paths there are; named as the compiled simulator names them (``crates/noc/src/scenario.rs``)."""

    X_FIRST = "x_first"
    Y_FIRST = "y_first"
    EITHER = "either"
    OVER_RECTANGLE = "over_rectangle"
    OVER_ANY = "over_any"

    @property
    def has_router_between(self) -> bool:
        """Whether packets go XY to a router between in class 0, and XY on to the target in class 1."""
        return self in (Rule.OVER_RECTANGLE, Rule.OVER_ANY)


_WRITTEN: dict[Rule, Callable[[Topology, int], list[Path]]] = {
    Rule.X_FIRST: lambda topology, _seed: dimension_order.xy(topology),
    Rule.Y_FIRST: lambda topology, _seed: dimension_order.yx(topology),
    Rule.EITHER: lambda topology, _seed: dimension_order.o1turn(topology),
    Rule.OVER_RECTANGLE: two_phase.romm,
    Rule.OVER_ANY: two_phase.valiant,
}


class MeshPaths(PathsByRule):
    """The paths between all routers of a mesh under a rule; written out only if somebody looks at one.

    Parameters
    ----------
    topology
        A mesh, concentrated or not: on a ring packets change their class, which no rule here says.
    rule
        Which paths.
    seed
        Of what a list draws where it would have too many paths (:func:`routecast.noc.routing.two_phase.romm`). Loads
        are exact expectations always.
    """

    __slots__ = ("_paths", "rule", "seed", "topology")

    def __init__(self, topology: Topology, rule: Rule, seed: int) -> None:
        self.topology, self.rule, self.seed = topology, rule, seed
        self._paths: tuple[Path, ...] | None = None

    def _written(self) -> tuple[Path, ...]:
        if self._paths is None:
            self._paths = tuple(_WRITTEN[self.rule](self.topology, self.seed))
        return self._paths

    @overload
    def __getitem__(self, place: int) -> Path: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Path]: ...
    def __getitem__(self, place: int | slice) -> Path | Sequence[Path]:
        return self._written()[place]

    def __len__(self) -> int:
        return len(self._written())

    def __iter__(self) -> Iterator[Path]:
        return iter(self._written())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MeshPaths):
            return (self.topology, self.rule, self.seed) == (other.topology, other.rule, other.seed)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.topology, self.rule, self.seed))

    @property
    def layer_count(self) -> int:
        """Virtual-channel classes."""
        return 1 if self.rule in (Rule.X_FIRST, Rule.Y_FIRST) else 2

    def link_loads(self, demand: Floats) -> Floats:
        """Return the load of every link for a demand of shape (routers, routers), in capacities."""
        rows, columns = self.topology.rows, self.topology.columns
        flows = demand.reshape(rows, columns, rows, columns)
        if self.rule is Rule.X_FIRST:
            return _loads(self.topology, flows, y_first=False)
        if self.rule is Rule.Y_FIRST:
            return _loads(self.topology, flows, y_first=True)
        if self.rule is Rule.EITHER:
            both = [_loads(self.topology, flows, y_first=y_first) for y_first in (False, True)]
            return 0.5 * (both[0] + both[1])
        # What stays at its router goes nowhere, over nothing.
        moving = demand * (1.0 - np.eye(len(demand)))
        legs = (
            _over_any(moving) if self.rule is Rule.OVER_ANY else _over_rectangle(moving.reshape(flows.shape))
        )
        return _loads(self.topology, legs.reshape(flows.shape), y_first=False)

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
                for layer in range(classes):
                    y_first = self.rule is Rule.Y_FIRST or (self.rule is Rule.EITHER and layer == 1)
                    if straight or (turns_up != y_first and direction.is_horizontal is y_first):
                        yield held * classes + layer, asked * classes + layer
                if self.rule.has_router_between:
                    yield held * classes, asked * classes + 1


def _loads(topology: Topology, flows: Floats, *, y_first: bool) -> Floats:
    """Return the loads of all links; ``flows[from y, from x, to y, to x]``."""
    # Along a row go the flows from x to x that turn, or have turned, in it; along a column the others.
    in_rows = flows.sum(axis=0).transpose(1, 0, 2) if y_first else flows.sum(axis=2)
    in_columns = flows.sum(axis=3).transpose(1, 0, 2) if y_first else flows.sum(axis=1).transpose(2, 0, 1)
    (east, west), (south, north) = _crossing(in_rows), _crossing(in_columns)
    by_direction = {
        Direction.EAST: east,
        Direction.WEST: west,
        Direction.SOUTH: south.T,
        Direction.NORTH: north.T,
    }
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


def _over_any(demand: Floats) -> Floats:
    """Return the two legs over any router as flows of their own, shape (routers, routers)."""
    legs: Floats = (demand.sum(axis=1)[:, None] + demand.sum(axis=0)[None, :]) / len(demand)
    return legs


def _over_rectangle(flows: Floats) -> Floats:
    """Return the two legs over any router between as flows of their own."""
    rows, columns = flows.shape[:2]
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
    return first_leg(each) + back.transpose(2, 3, 0, 1)


def _between(size: int) -> Floats:
    """Return 1 at ``[one, other, place]`` where the place is one of the two or between them, and 0 elsewhere."""
    one, other, place = np.ogrid[:size, :size, :size]
    inside = (np.minimum(one, other) <= place) & (place <= np.maximum(one, other))
    return inside.astype(np.float64)
