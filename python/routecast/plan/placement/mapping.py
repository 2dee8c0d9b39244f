"""A mapping by numbers, and by names: which of like elements is where is settled in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from routecast.plan.placement.classes import Classes, Column, obeys
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.server_load import Pins, ServerLoads, machine_in
from routecast.plan.placement.whole import Placement
from routecast.router.virtual.machines import Cores

__all__ = ["Mapped", "all_mappings", "mapped", "mapping_of", "neighbours", "placement_of"]


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
    return {f"{names[int(machine_in(thread))]} {thread.split(' ', 1)[1]}": own for thread, own in pins.items()}


# Mappings near a mapping, and all mappings of small problems.


def neighbours(problem: PlacementProblem, classes: Classes, mapping: Mapped) -> Iterator[Mapped]:
    """Yield the mappings that differ by one element on another server, or by two that changed places."""
    seen = {mapping}
    for less, one, other in _two_servers(problem, classes, mapping):
        for changed in _changed(one, other):
            if all(not any(c.counts) or obeys(problem, classes, c.host, c.counts) for c in changed):
                now = mapped([*less, *changed])
                if now not in seen:
                    seen.add(now)
                    yield now


def all_mappings(
    problem: PlacementProblem, classes: Classes, columns: list[Column], *, most: int
) -> list[Mapped] | None:
    """Return all mappings of columns; None if there are more than ``most``, or than can be looked for."""
    found: list[Mapped] = []
    steps = 0
    limit = problem.rules.most_servers
    columns = sorted(columns, key=lambda column: (column.host, column.counts), reverse=True)
    free = [len(host.names) for host in classes.hosts]

    def deeper(start: int, left: tuple[int, ...], chosen: list[Column]) -> bool:
        nonlocal steps
        steps += 1
        if not any(left):
            found.append(mapped(chosen))
            return len(found) <= most
        if steps > 200 * most or (limit is not None and len(chosen) >= limit):
            return steps <= 200 * most
        for number in range(start, len(columns)):
            column = columns[number]
            if not free[column.host] or any(c > n for c, n in zip(column.counts, left, strict=True)):
                continue
            free[column.host] -= 1
            rest = tuple(n - c for c, n in zip(column.counts, left, strict=True))
            goes_on = deeper(number, rest, [*chosen, column])
            free[column.host] += 1
            if not goes_on:
                return False
        return True

    return found if deeper(0, classes.counts, []) else None


def _two_servers(
    problem: PlacementProblem, classes: Classes, mapping: Mapped
) -> Iterator[tuple[list[Column], Column, Column]]:
    """Yield two servers, one of them maybe empty, with what is on all others."""
    servers = [column for column, number in mapping for _ in range(number)]
    kinds = list(dict.fromkeys(servers))
    for one in kinds:
        rest = list(servers)
        rest.remove(one)
        for other in dict.fromkeys(rest):
            less = list(rest)
            less.remove(other)
            yield less, one, other
        limit = problem.rules.most_servers
        if limit is None or len(servers) < limit or sum(one.counts) == 1:
            for host, hosts in enumerate(classes.hosts):
                used = sum(1 for column in servers if column.host == host)
                if used < len(hosts.names):
                    yield rest, one, Column(host=host, counts=(0,) * len(classes.alike))


def _changed(one: Column, other: Column) -> Iterator[tuple[Column, Column]]:
    for k, count in enumerate(one.counts):
        if not count:
            continue
        yield _moved(one, k, -1), _moved(other, k, 1)
        for x, there in enumerate(other.counts):
            if there and x != k:
                yield _moved(_moved(one, k, -1), x, 1), _moved(_moved(other, x, -1), k, 1)


def _moved(column: Column, k: int, by: int) -> Column:
    counts = list(column.counts)
    counts[k] += by
    return Column(host=column.host, counts=tuple(counts))
