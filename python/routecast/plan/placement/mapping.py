"""A mapping by numbers, and by names: which of like elements is where is settled in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from routecast.plan.placement.classes import Classes
from routecast.plan.placement.columns import Column
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.pins import Pins, machine_in
from routecast.plan.placement.server_load import ServerLoads
from routecast.plan.placement.whole import Placement
from routecast.router.virtual.machines import Cores

__all__ = ["Mapped", "mapped", "mapping_of", "named", "placement_of"]

Mapped = tuple[tuple[Column, int], ...]
"""What is on how many servers, in one order: equal for placements that differ in names only."""


def mapped(columns: Iterable[Column]) -> Mapped:
    """Return a mapping in its order."""
    counts: dict[Column, int] = {}
    for column in columns:
        if any(column.counts):
            counts[column] = counts.get(column, 0) + 1
    return tuple(sorted(counts.items(), key=lambda pair: (pair[0].host, tuple(-n for n in pair[0].counts))))


def mapping_of(classes: Classes, servers: Mapping[str, str]) -> Mapped:
    """Return the mapping of named elements on named servers."""
    host_of = {name: number for number, host in enumerate(classes.hosts) for name in host.names}
    counts = {name: [0] * len(classes.alike) for name in dict.fromkeys(servers.values())}
    for number, one in enumerate(classes.alike):
        for name in one.names:
            counts[servers[name]][number] += 1
    return mapped(Column(host=host_of[name], counts=tuple(some)) for name, some in counts.items())


def placement_of(
    problem: PlacementProblem,
    classes: Classes,
    loads: ServerLoads,
    mapping: Mapped,
    pins: Mapping[Column, Pins] | None = None,
) -> Placement:
    """Return the placement of a mapping, pinned as is best without loss unless said otherwise."""
    left = [list(one.names) for one in classes.alike]
    free = [list(host.names) for host in classes.hosts]
    servers: dict[str, str] = {}
    cores: dict[str, Cores] = {}
    for column, number in mapping:
        host = classes.hosts[column.host].group.name
        for _ in range(number):
            server = free[column.host].pop(0)
            mine: dict[str, list[str]] = {group.name: [] for group in problem.elements}
            for k, count in enumerate(column.counts):
                mine[classes.alike[k].group.name] += [left[k].pop(0) for _ in range(count)]
            names = [name for group in problem.elements for name in mine[group.name]]
            servers |= dict.fromkeys(names, server)
            chosen = (pins or {}).get(column)
            if chosen is None:
                chosen = loads.carries(host, classes.by_group(column.counts)).pins
            cores |= named(chosen, names)
    order = [name for group in problem.elements for name in group.names]
    return Placement(servers={name: servers[name] for name in order}, pins=cores)


def named(pins: Pins, names: list[str]) -> dict[str, Cores]:
    """Return pins of a server's view for the elements that are on the server."""
    return {
        f"{names[int(machine_in(thread))]} {thread.split(' ', 1)[1]}": own for thread, own in pins.items()
    }
