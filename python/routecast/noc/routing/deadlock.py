"""Can a routing deadlock? The channel dependency graph of Dally and Seitz (1987) and the shortest cycle in it.

A channel is one virtual-channel class of one link. One channel depends on another if a packet that holds the first may
ask for the second. Wormhole routing cannot deadlock if no channel depends on itself over others; for routes whose paths
are given beforehand, a cycle is also where a deadlock can happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from routecast.noc.routing.mesh_paths import MeshPaths
from routecast.noc.routing.model import Routes, hops
from routecast.noc.topology import Topology

__all__ = ["channel_cycle", "cycle_in_words", "shortest_cycle"]


def channel_cycle(routes: Routes) -> tuple[tuple[int, int], ...] | None:
    """Return the shortest cycle of channels ``(link, class)`` that wait for each other; None if there is none.

    Paths of share 0 carry nothing and do not count. The channel after the last is the first.
    """
    classes = routes.layer_count
    if isinstance(routes.paths, MeshPaths):
        return _as_channels(shortest_cycle(routes.paths.dependencies()), classes)
    flat = hops(routes)
    channel = flat.link * classes + flat.layer
    together = (flat.path[1:] == flat.path[:-1]) & (flat.share[flat.path[1:]] > 0)
    size = int(channel.max(initial=0)) + 1
    # Many paths share a dependency: 65 thousand paths of a 16 x 16 mesh have a few thousand.
    pairs = np.unique(channel[:-1][together] * size + channel[1:][together])
    cycle = shortest_cycle(zip((pairs // size).tolist(), (pairs % size).tolist(), strict=True))
    return _as_channels(cycle, classes)


def _as_channels(cycle: Sequence[int] | None, classes: int) -> tuple[tuple[int, int], ...] | None:
    return None if cycle is None else tuple(divmod(one, classes) for one in cycle)


def cycle_in_words(topology: Topology, cycle: Sequence[tuple[int, int]]) -> str:
    """Name the channels of a cycle: ``(0, 0)->(1, 0), (1, 0)->(1, 1), …``, with the class where one is not 0."""
    numbered = any(layer for _, layer in cycle)
    return ", ".join(
        topology.link_name(link) + (f" class {layer}" if numbered else "") for link, layer in cycle
    )


def shortest_cycle(dependencies: Iterable[tuple[int, int]]) -> list[int] | None:
    """Return a shortest cycle of a directed graph given by its edges; None if it has none."""
    after: dict[int, list[int]] = {}
    for first, second in dependencies:
        after.setdefault(first, []).append(second)
        after.setdefault(second, [])
    core = _without_ends(after)
    best: list[int] | None = None
    for start in core:
        shorter = _back_to(start, core, len(best) if best else len(core) + 1)
        if shorter is not None:
            best = shorter
    return best


def _without_ends(after: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the graph without what no cycle can hold: again and again, what nothing leads to or leads on from."""
    for _ in range(2):
        entries = dict.fromkeys(after, 0)
        for following in after.values():
            for second in following:
                entries[second] += 1
        free = [one for one, count in entries.items() if not count]
        while free:
            for second in after.pop(free.pop()):
                entries[second] -= 1
                if not entries[second]:
                    free.append(second)
        backwards: dict[int, list[int]] = {one: [] for one in after}
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
