"""Freedom from deadlock: the channel dependency graph (Dally and Seitz 1987), turn models, virtual-channel classes.

A channel is a virtual-channel class of a link. A channel depends on another if a packet that holds the first may
request the second. Wormhole routing cannot deadlock if the graph of dependencies has no cycle; with fixed paths, every
cycle permits a deadlock.

Turn models are for adaptive routing hop by hop on meshes: they forbid turns so that no cycle can close. See C. Glass
and L. Ni, "The turn model for adaptive routing", ISCA 1992 (west-first, north-last, negative-first) and G.-M. Chiu,
"The odd-even turn model for adaptive routing", IEEE Trans. Parallel and Distributed Systems 11(7), 2000. Here all of
them take shortest paths only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from routecast.errors import RoutecastError
from routecast.noc.routing._mesh_paths import MeshPaths
from routecast.noc.routing.model import Path, Routes, hops
from routecast.noc.topology import Direction, Topology, link_numbers, links
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["TURN_MODELS", "Choices", "channel_cycle", "choices", "describe_cycle", "layered", "shortest_cycle"]

Choices = tuple[tuple[tuple[int, ...], ...], ...]
"""``[arrival][target]``: the links that a packet may take; arrivals are the links, then the routers (injection)."""

_E, _W, _S, _N = Direction.EAST, Direction.WEST, Direction.SOUTH, Direction.NORTH


def _odd_even(before: Direction, after: Direction, column: int) -> bool:
    if column % 2:
        return not (after is _W and before in (_N, _S))
    return not (before is _E and after in (_N, _S))


_ALLOWED_TURNS: dict[str, Callable[[Direction, Direction, int], bool]] = {
    "west_first": lambda came, goes, _: goes is not _W or came is _W,
    "north_last": lambda came, goes, _: came is not _N or goes is _N,
    # Coordinates fall to the west, and to the north as row 0 is on top.
    "negative_first": lambda came, goes, _: goes in (_E, _S) or came in (_W, _N),
    "odd_even": _odd_even,
}

TURN_MODELS = tuple(_ALLOWED_TURNS)
"""Names of all turn models."""


@lru_cache(maxsize=16)
def choices(model: str, topology: Topology) -> Choices:
    """Return the links that each packet may take next on a shortest path, without dead ends.

    ``model``: ``west_first``: nothing turns to the west. ``north_last``: nothing that goes north turns.
    ``negative_first``: nothing that goes east or south turns west or north. ``odd_even``: in even columns (0, 2, …)
    nothing that goes east turns, in odd ones nothing turns to the west; ``topology``: a mesh or concentrated mesh. Row
    ``l`` is for packets that came over link ``l``, row ``links + r`` for those from a node of router ``r``; a column is
    a target. No links at the target itself, nor for packets that never come over that link. Raises RoutecastError: an
    unknown model, or a torus.
    """
    may_turn = _ALLOWED_TURNS.get(model)
    if may_turn is None:
        msg = f"unknown turn model {model!r}: {did_you_mean(model, TURN_MODELS)}"
        raise RoutecastError(msg)
    if topology.is_torus:
        msg = (
            f"turn model {model} on a torus: a ring is a cycle without a turn, so forbidden turns do not keep packets "
            "from deadlock; take a mesh, or a routing with classes for rings (xy, o1turn, romm, or layered paths)"
        )
        raise RoutecastError(msg)
    count = topology.router_count
    rows: list[list[tuple[int, ...]]] = [[()] * count for _ in range(len(links(topology)) + count)]
    for target in range(count):
        _fill_column(topology, target, may_turn, rows)
    return tuple(tuple(row) for row in rows)


def _fill_column(
    topology: Topology,
    target: int,
    may_turn: Callable[[Direction, Direction, int], bool],
    rows: list[list[tuple[int, ...]]],
) -> None:
    """Fill in the column of a target: backwards the links that lead to it, then forwards the links that packets use."""
    all_links, numbers = links(topology), link_numbers(topology)
    arriving = {(link.target, link.direction): number for number, link in enumerate(all_links)}
    by_distance = sorted(range(topology.router_count), key=lambda router: topology.distance(router, target))
    ahead = {
        router: [(direction, numbers[router, direction]) for direction in topology.productive(router, target)]
        for router in by_distance
    }
    # Links of shortest paths over which the target can be reached.
    usable: set[int] = set()

    def allowed(came: Direction | None, router: int) -> tuple[int, ...]:
        column = router % topology.columns
        return tuple(
            link
            for direction, link in ahead[router]
            if link in usable and (came is None or may_turn(came, direction, column))
        )

    for router in by_distance[1:]:
        for direction, link in ahead[router]:
            following = all_links[link].target
            if following == target or allowed(direction, following):
                usable.add(link)
    used: set[int] = set()
    for router in reversed(by_distance[1:]):
        rows[len(all_links) + router][target] = chosen = allowed(None, router)
        used.update(chosen)
        for came in Direction:
            arrived = arriving.get((router, came))
            if arrived in used:
                rows[arrived][target] = chosen = allowed(came, router)
                used.update(chosen)


def channel_cycle(routes: Routes) -> tuple[tuple[int, int], ...] | None:
    """Return the shortest cycle of channels ``(link, class)`` that wait for each other, or None.

    Paths of share 0 do not count. The channel after the last is the first.
    """
    classes = routes.layer_count
    if isinstance(routes.paths, MeshPaths):
        return _as_channels(shortest_cycle(routes.paths.dependencies()), classes)
    flat = hops(routes)
    channel = flat.link * classes + flat.layer
    is_followed = (flat.path[1:] == flat.path[:-1]) & (flat.share[flat.path[1:]] > 0)
    size = int(channel.max(initial=0)) + 1
    # Many paths share a dependency: 65 thousand paths of a 16 x 16 mesh have a few thousand.
    pairs = np.unique(channel[:-1][is_followed] * size + channel[1:][is_followed])
    cycle = shortest_cycle(zip((pairs // size).tolist(), (pairs % size).tolist(), strict=True))
    return _as_channels(cycle, classes)


def _as_channels(cycle: Sequence[int] | None, classes: int) -> tuple[tuple[int, int], ...] | None:
    return None if cycle is None else tuple(divmod(channel, classes) for channel in cycle)


def describe_cycle(topology: Topology, cycle: Sequence[tuple[int, int]]) -> str:
    """Return the names of a cycle's channels: ``(0, 0)->(1, 0), (1, 0)->(1, 1), …``, with classes unless all are 0."""
    numbered = any(layer for _, layer in cycle)
    return ", ".join(topology.link_name(link) + (f" class {layer}" if numbered else "") for link, layer in cycle)


def shortest_cycle(dependencies: Iterable[tuple[int, int]]) -> list[int] | None:
    """Return a shortest cycle of a directed graph given by its edges, or None."""
    after: dict[int, list[int]] = {}
    for first, second in dependencies:
        after.setdefault(first, []).append(second)
        after.setdefault(second, [])
    core = _cyclic_part(after)
    best: list[int] | None = None
    for start in core:
        shorter = _back_to(start, core, len(best) if best else len(core) + 1)
        if shorter is not None:
            best = shorter
    return best


def _cyclic_part(after: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the graph after repeated removal of its sources and sinks, which are in no cycle."""
    for _ in range(2):
        entries = dict.fromkeys(after, 0)
        for following in after.values():
            for second in following:
                entries[second] += 1
        free = [channel for channel, count in entries.items() if not count]
        while free:
            for second in after.pop(free.pop()):
                entries[second] -= 1
                if not entries[second]:
                    free.append(second)
        backwards: dict[int, list[int]] = {channel: [] for channel in after}
        for first, following in after.items():
            for second in following:
                backwards[second].append(first)
        after = backwards
    return after


def _back_to(start: int, after: dict[int, list[int]], below: int) -> list[int] | None:
    """Return the shortest cycle through ``start`` if it has fewer than ``below`` members (breadth first)."""
    came_from = {start: start}
    queue = deque([(start, 1)])
    while queue:
        here, length = queue.popleft()
        if length >= below:
            return None
        for second in after[here]:
            if second == start:
                cycle = [here]
                while cycle[-1] != start:
                    cycle.append(came_from[cycle[-1]])
                return cycle[::-1]
            if second not in came_from:
                came_from[second] = here
                queue.append((second, length + 1))
    return None


class _ClassDependencies:
    """The dependencies of a class in a topological order (Pearce and Kelly 2007), so that most additions are cheap."""

    def __init__(self, channels: int) -> None:
        self.known: set[tuple[int, int]] = set()
        self._refused: set[tuple[int, int]] = set()
        self._after: list[list[int]] = [[] for _ in range(channels)]
        self._before: list[list[int]] = [[] for _ in range(channels)]
        self._rank = list(range(channels))

    def takes(self, dependencies: Sequence[tuple[int, int]]) -> bool:
        """Add the dependencies of a path, or none of them if they close a cycle."""
        new = [dependency for dependency in dependencies if dependency not in self.known]
        # A class only grows: a dependency that closed a cycle always will.
        if not self._refused.isdisjoint(new):
            return False
        added: list[tuple[int, int]] = []
        for dependency in new:
            if self._add(*dependency):
                added.append(dependency)
                continue
            for first, second in reversed(added):
                self._after[first].pop()
                self._before[second].pop()
                self.known.discard((first, second))
            if not added:
                self._refused.add(dependency)
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
            # What leads to `first` moves before what follows `second`, each in its old order, on the ranks of both.
            moved = [*sorted(backward, key=rank.__getitem__), *sorted(forward, key=rank.__getitem__)]
            for channel, new_rank in zip(moved, sorted([rank[channel] for channel in moved]), strict=True):
                rank[channel] = new_rank
        self._after[first].append(second)
        self._before[second].append(first)
        self.known.add((first, second))
        return True

    def _reached(self, start: int, neighbours: list[list[int]], low: int, high: int) -> set[int]:
        reached, waiting = {start}, [start]
        while waiting:
            for neighbour in neighbours[waiting.pop()]:
                if neighbour not in reached and low <= self._rank[neighbour] <= high:
                    reached.add(neighbour)
                    waiting.append(neighbour)
        return reached


def layered(routes: Routes) -> Routes:
    """Return the same paths in new virtual-channel classes that make them free of deadlock.

    Every path stays in a class, and the dependencies of each class have no cycle (layered shortest-path routing, LASH:
    Skeie, Lysne, Theiss 2002; Domke, Hoefler, Nagel 2011). The least number of classes is hard to find, so this is a
    heuristic: first fit, path by path, in several orders; the one with the fewest classes wins.

    One class if that suffices. On a mesh, shortest paths never need more than two: the first order puts all paths
    without a westward link into class 0, and neither these nor the others, which have no eastward link, can close a
    cycle. On a torus, paths may go one class up where they pass the end of a ring; as each class is then cut open like
    a mesh, two groups of three classes suffice for shortest paths.

    Raises
    ------
    RoutecastError
        A path comes back to one of its own links: no class can hold it.
    """
    class_0 = [(0,) * len(path.links) for path in routes.paths]
    flat = _with_layers(routes, class_0)
    if channel_cycle(flat) is None:
        return flat
    westward, closing = _kinds_of_links(routes.topology)
    orders = _orders(routes, westward, closing)
    level_choices: list[list[tuple[int, ...]]] = [class_0]
    if routes.topology.is_torus:
        level_choices.insert(0, [tuple(accumulate(int(closing[link]) for link in path.links)) for path in routes.paths])
    best: list[tuple[int, ...]] = []
    fewest = 3 * len(routes.paths) + 3  # more than any attempt needs
    for levels in level_choices:
        count = len(closing)
        channels = [
            [link + count * level for link, level in zip(path.links, path_levels, strict=True)]
            for path, path_levels in zip(routes.paths, levels, strict=True)
        ]
        if any(len(set(channel)) < len(channel) for channel in channels):
            continue
        dependencies = [list(pairwise(channel)) for channel in channels]
        span = 1 + max(max(path_levels, default=0) for path_levels in levels)
        for order in orders:
            if fewest == 2:  # one class was not enough
                break
            groups = _first_fit(dependencies, order, span * count, (fewest - 1) // span)
            if groups is not None:
                fewest = span * (1 + max(groups))
                best = [
                    tuple([group * span + level for level in path_levels])
                    for group, path_levels in zip(groups, levels, strict=True)
                ]
    if not best:
        raise _loop_error(routes)
    return _with_layers(routes, best)


def _first_fit(
    dependencies: Sequence[Sequence[tuple[int, int]]], order: Sequence[int], channels: int, max_groups: int
) -> list[int] | None:
    """Return the group of every path; None if more than ``max_groups`` are needed."""
    classes: list[_ClassDependencies] = []
    groups = [0] * len(dependencies)
    for path in order:
        path_dependencies = dependencies[path]
        group = next(
            (group for group, class_dependencies in enumerate(classes) if class_dependencies.takes(path_dependencies)),
            len(classes),
        )
        if group == max_groups:
            return None
        if group == len(classes):
            classes.append(_ClassDependencies(channels))
            classes[group].takes(path_dependencies)
        groups[path] = group
    return groups


def _loop_error(routes: Routes) -> RoutecastError:
    topology = routes.topology
    path = next(path for path in routes.paths if len(set(path.links)) < len(path.links))
    named = describe_cycle(topology, [(link, 0) for link in path.links])
    return RoutecastError(
        f"a path from {topology.router_name(path.source)} to {topology.router_name(path.target)} comes back to one of "
        f"its own links ({named}): no virtual-channel class frees it from deadlock; take the loop out of it"
    )


def _orders(routes: Routes, westward: Sequence[bool], closing: Sequence[bool]) -> list[list[int]]:
    """Return the orders to try: paths without westward links first; as listed; on rings, paths off their ends first."""
    numbers = range(len(routes.paths))
    west = [any(westward[link] for link in path.links) for path in routes.paths]
    orders = [sorted(numbers, key=west.__getitem__), list(numbers)]
    if routes.topology.is_torus:
        closes = [any(closing[link] for link in path.links) for path in routes.paths]
        orders.append(sorted(numbers, key=lambda number: (closes[number], west[number])))
    return orders


def _kinds_of_links(topology: Topology) -> tuple[list[bool], list[bool]]:
    """Return which links lead west, and which pass the end of a row or column and close a ring."""
    all_links = links(topology)
    westward = [link.direction is Direction.WEST for link in all_links]
    closing = [(link.target > link.source) != (sum(link.direction.step) > 0) for link in all_links]
    return westward, closing


def _with_layers(routes: Routes, layers: Sequence[tuple[int, ...]]) -> Routes:
    paths = tuple(
        Path(source=path.source, target=path.target, links=path.links, layers=path_layers, share=path.share)
        for path, path_layers in zip(routes.paths, layers, strict=True)
    )
    return Routes(policy=routes.policy, topology=routes.topology, paths=paths)
