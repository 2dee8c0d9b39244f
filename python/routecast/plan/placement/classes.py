"""Which elements and which servers are alike: rules that name one of them make it one of a kind.

Placements that differ only in which of like elements is on which of like servers are the same placement. So a placement
is counted, not listed: how many elements of each class are on a server of which class.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator

from routecast.plan.placement.model import ElementGroup, PlacementProblem, ServerGroup
from routecast.plan.placement.server_load import ServerLoads
from routecast.quantity.schema import field, value

__all__ = ["Classes", "Column", "TooMany", "classes_of", "columns_above", "meant", "obeys", "threads_of"]


@value
class Alike:
    """Elements that may change places: ``names`` of one ``group``."""

    group: ElementGroup
    names: tuple[str, ...]


@value
class Hosts:
    """Servers that may change places."""

    group: ServerGroup
    names: tuple[str, ...]


@value
class Classes:
    """A placement problem up to symmetry."""

    alike: tuple[Alike, ...]
    hosts: tuple[Hosts, ...]
    # Numbers of classes of elements, for each rule.
    apart: tuple[frozenset[int], ...]
    together: tuple[frozenset[int], ...]
    allowed: tuple[frozenset[int], ...] = field("For each class of elements, the classes of servers that it may be on")

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements of each class."""
        return tuple(len(one.names) for one in self.alike)

    def by_group(self, counts: Iterable[int]) -> dict[str, int]:
        """Return how many elements of each group are among so many of each class."""
        found: dict[str, int] = {}
        for one, count in zip(self.alike, counts, strict=True):
            found[one.group.name] = found.get(one.group.name, 0) + count
        return found


def meant(name: str, groups: Iterable[ElementGroup | ServerGroup]) -> tuple[str, ...]:
    """Return the members that a name means: one, or all of a group; none if there is no such name."""
    for group in groups:
        if name == group.name:
            return group.names
        if name in group.names:
            return (name,)
    return ()


def classes_of(problem: PlacementProblem) -> Classes:
    """Put like elements and like servers together."""
    rules = problem.rules
    apart = [_members(rule, problem.elements) for rule in rules.apart]
    together = [_members(rule, problem.elements) for rule in rules.together]
    on = [
        (frozenset(meant(name, problem.elements)), _members(where, problem.servers)) for name, where in rules.on.items()
    ]
    seen = [*apart, *together, *(elements for elements, _ in on)]
    alike = [Alike(group=group, names=names) for group in problem.elements for names in _parted(group.names, seen)]
    hosts = [
        Hosts(group=group, names=names)
        for group in problem.servers
        for names in _parted(group.names, [servers for _, servers in on])
    ]
    allowed = []
    for one in alike:
        there = set(range(len(hosts)))
        for elements, servers in on:
            if one.names[0] in elements:
                there &= {number for number, host in enumerate(hosts) if host.names[0] in servers}
        allowed.append(frozenset(there))
    return Classes(
        alike=tuple(alike),
        hosts=tuple(hosts),
        apart=tuple(_numbers(rule, alike) for rule in apart),
        together=tuple(_numbers(rule, alike) for rule in together),
        allowed=tuple(allowed),
    )


def _members(names: Iterable[str], groups: Iterable[ElementGroup | ServerGroup]) -> frozenset[str]:
    groups = tuple(groups)
    return frozenset(member for name in names for member in meant(name, groups))


def _parted(names: tuple[str, ...], sets: Iterable[frozenset[str]]) -> list[tuple[str, ...]]:
    sets = list(sets)
    parts: dict[tuple[bool, ...], list[str]] = {}
    for name in names:
        parts.setdefault(tuple(name in one for one in sets), []).append(name)
    return [tuple(part) for part in parts.values()]


def _numbers(rule: frozenset[str], alike: list[Alike]) -> frozenset[int]:
    return frozenset(number for number, one in enumerate(alike) if one.names[0] in rule)


# What may be on a server: numbers of elements of each class that obey the rules of a single server.


@value
class Column:
    """So many elements of each class on a server of a class."""

    host: int
    counts: tuple[int, ...]


class TooMany(Exception):
    """There are more columns than are listed."""


def threads_of(problem: PlacementProblem, host: ServerGroup, element: str) -> int:
    """Return how many threads an element's machine has on a server."""
    group, technology = problem.element(element), host.technology
    guest = group.vcpus if technology.guest != "softirq" else 0
    backend = {"interface": group.cards, "machine": 1}.get(technology.backend_threads, 0)
    return guest + (backend if technology.backend == "thread" else 0)


def columns_above(
    problem: PlacementProblem,
    classes: Classes,
    loads: ServerLoads,
    least_pps: float,
    *,
    most: int,
    seconds: float = math.inf,
) -> list[Column]:
    """List what may be on servers and could carry ``least_pps``; nothing at all is not listed.

    Raises
    ------
    TooMany
        There are more than ``most``, or listing them takes longer than ``seconds``.
    """
    found: list[Column] = []
    until_s = time.perf_counter() + seconds
    for host in range(len(classes.hosts)):
        for counts in _of_host(problem, classes, loads, host, least_pps):
            found.append(Column(host=host, counts=counts))
            if len(found) > most or time.perf_counter() > until_s:
                raise TooMany
    return found


def obeys(problem: PlacementProblem, classes: Classes, host: int, counts: tuple[int, ...]) -> bool:
    """Return whether a server may carry so many elements of each class."""
    return _fits(problem, classes, host, counts) and _whole(problem, classes, counts)


def _of_host(
    problem: PlacementProblem, classes: Classes, loads: ServerLoads, host: int, least_pps: float
) -> Iterator[tuple[int, ...]]:
    group = classes.hosts[host].group
    work = [loads.work(group.name, one.group.name).total_s for one in classes.alike]
    room_s = loads.cores(group.name) / least_pps if least_pps > 0.0 else math.inf
    counts = [0] * len(classes.alike)

    def deeper(number: int, used_s: float) -> Iterator[tuple[int, ...]]:
        if number == len(counts):
            now = tuple(counts)
            if (
                any(now)
                and _whole(problem, classes, now)
                and loads.at_most_pps(group.name, classes.by_group(now)) >= least_pps
            ):
                yield now
            return
        most = len(classes.alike[number].names) if host in classes.allowed[number] else 0
        for count in range(most + 1):
            counts[number] = count
            total = used_s + count * work[number]
            if total > room_s * (1.0 + 1e-9) or not _fits(problem, classes, host, tuple(counts)):
                break
            yield from deeper(number + 1, total)
        counts[number] = 0

    yield from deeper(0, 0.0)


def _fits(problem: PlacementProblem, classes: Classes, host: int, counts: tuple[int, ...]) -> bool:
    """Return whether limits hold that more elements can only break."""
    group = classes.hosts[host].group
    number = sum(counts)
    if group.slots is not None and number > group.slots:
        return False
    if group.memory_bytes is not None:
        memory = sum(n * one.group.memory_bytes for n, one in zip(counts, classes.alike, strict=True))
        if memory > group.memory_bytes * (1.0 + 1e-12):
            return False
    if not problem.rules.shared_cores:
        threads = sum(
            n * threads_of(problem, group, one.group.name) for n, one in zip(counts, classes.alike, strict=True) if n
        )
        if threads > group.cores:
            return False
    if any(n and host not in classes.allowed[k] for k, n in enumerate(counts)):
        return False
    return all(sum(counts[k] for k in rule) <= 1 for rule in classes.apart)


def _whole(problem: PlacementProblem, classes: Classes, counts: tuple[int, ...]) -> bool:
    """Return whether what belongs together is here whole, or not at all."""
    every = classes.counts
    for rule in classes.together:
        some = [counts[k] == every[k] for k in rule]
        if any(counts[k] for k in rule) and not all(some):
            return False
    if problem.balancing == "local":
        here = classes.by_group(counts)
        for chain in problem.chains:
            some = [here[stage] > 0 for stage in chain.stages]
            if chain.returns and any(some) and not all(some):
                return False
    return True
