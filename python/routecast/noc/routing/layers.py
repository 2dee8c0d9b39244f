"""Virtual-channel classes for any paths, so that they cannot deadlock.

Every path stays in one class, and the dependencies of each class have no cycle (layered shortest-path routing, LASH:
Skeie, Lysne, Theiss 2002; Domke, Hoefler, Nagel 2011). Finding the least number of classes is NP-complete, so this is a
heuristic: first fit, path by path, in several orders, the one with the fewest classes wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from routecast.errors import RoutecastError
from routecast.noc.routing.deadlock import channel_cycle, cycle_in_words
from routecast.noc.routing.model import Routes, hops
from routecast.noc.topology import Direction, Topology, links

__all__ = ["layered"]


class _Class:
    """The dependencies of one class, kept in a topological order (Pearce and Kelly 2007) so that most cost nothing."""

    def __init__(self, channels: int) -> None:
        self.known: set[tuple[int, int]] = set()
        self._refused: set[tuple[int, int]] = set()
        self._after: list[list[int]] = [[] for _ in range(channels)]
        self._before: list[list[int]] = [[] for _ in range(channels)]
        self._rank = list(range(channels))

    def takes(self, dependencies: Sequence[tuple[int, int]]) -> bool:
        """Add the dependencies of one path, or none of them if they close a cycle."""
        wanted = [one for one in dependencies if one not in self.known]
        # A class only grows: what closed a cycle once always will.
        if not self._refused.isdisjoint(wanted):
            return False
        added: list[tuple[int, int]] = []
        for one in wanted:
            if self._add(*one):
                added.append(one)
                continue
            for first, second in reversed(added):
                self._after[first].pop()
                self._before[second].pop()
                self.known.discard((first, second))
            if not added:
                self._refused.add(one)
            return False
        return True

    def _add(self, first: int, second: int) -> bool:
        rank = self._rank
        low, high = rank[second], rank[first]
        if low <= high:
            forward = self._reached(second, self._after, low, high)
            if first in forward:
                return False
            backward = self._reached(first, self._before, low, high)
            # What leads to `first` moves before what follows `second`, each in its old order, on the places of both.
            moved = [*sorted(backward, key=rank.__getitem__), *sorted(forward, key=rank.__getitem__)]
            for one, place in zip(moved, sorted([rank[one] for one in moved]), strict=True):
                rank[one] = place
        self._after[first].append(second)
        self._before[second].append(first)
        self.known.add((first, second))
        return True

    def _reached(self, start: int, neighbours: list[list[int]], low: int, high: int) -> set[int]:
        found, waiting = {start}, [start]
        while waiting:
            for one in neighbours[waiting.pop()]:
                if one not in found and low <= self._rank[one] <= high:
                    found.add(one)
                    waiting.append(one)
        return found


def layered(routes: Routes) -> Routes:
    """Return the same paths in virtual-channel classes that make them free of deadlock, the old classes dropped.

    One class if that suffices. On a mesh, shortest paths never need more than two: the second order that is tried puts
    all paths without a westward link into class 0, and neither these nor the others, which have no eastward link, can
    close a cycle. On a torus there is no such bound.

    Raises
    ------
    RoutecastError
        A path comes back to one of its own links: no class can hold it.
    """
    in_one = _in_classes(routes, [0] * len(routes.paths))
    if channel_cycle(in_one) is None:
        return in_one
    dependencies = [tuple(zip(path.links, path.links[1:], strict=False)) for path in routes.paths]
    best: list[int] = []
    for order in _orders(routes):
        found = _first_fit(routes, dependencies, order)
        if not best or max(found) < max(best):
            best = found
        if max(best) == 1:  # one class was not enough
            break
    return _in_classes(routes, best)


def _first_fit(
    routes: Routes, dependencies: Sequence[tuple[tuple[int, int], ...]], order: Sequence[int]
) -> list[int]:
    channels = len(links(routes.topology))
    classes: list[_Class] = []
    found = [0] * len(routes.paths)
    for number in order:
        wanted = dependencies[number]
        place = next((place for place, one in enumerate(classes) if one.takes(wanted)), len(classes))
        if place == len(classes):
            classes.append(_Class(channels))
            if not classes[place].takes(wanted):
                path = routes.paths[number]
                repeated = cycle_in_words(routes.topology, [(link, 0) for link in path.links])
                msg = (
                    f"a path from {routes.topology.router_name(path.source)} to "
                    f"{routes.topology.router_name(path.target)} comes back to one of its own links ({repeated}): no "
                    "virtual-channel class frees it from deadlock; take the loop out of it"
                )
                raise RoutecastError(msg)
        found[number] = place
    return found


def _orders(routes: Routes) -> list[list[int]]:
    """Return the orders to try: first what goes nowhere west; as given; on rings, first what stays off their ends."""
    westward, closing = _kinds_of_links(routes.topology)
    flat, count = hops(routes), len(routes.paths)
    goes_west = np.bincount(flat.path, weights=westward[flat.link], minlength=count) > 0
    closes = np.bincount(flat.path, weights=closing[flat.link], minlength=count) > 0
    given = np.arange(count)
    orders = [np.lexsort((given, goes_west)), given]
    if routes.topology.is_torus:
        orders.append(np.lexsort((given, goes_west, closes)))
    return [order.tolist() for order in orders]


def _kinds_of_links(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Return which links lead west, and which close a ring."""
    every = links(topology)
    westward = np.array([link.direction is Direction.WEST for link in every], dtype=float)
    closing = np.array(
        [(link.target > link.source) != (sum(link.direction.step) > 0) for link in every], dtype=float
    )
    return westward, closing


def _in_classes(routes: Routes, classes: Sequence[int]) -> Routes:
    paths = tuple(
        replace(path, layers=(layer,) * len(path.links))
        for path, layer in zip(routes.paths, classes, strict=True)
    )
    return Routes(policy=routes.policy, topology=routes.topology, paths=paths)
