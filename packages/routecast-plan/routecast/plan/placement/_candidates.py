"""Candidates for a placement, up to symmetry.

Placements are equivalent if they differ only by exchange of equal elements or of equal servers. So elements and servers
are counted by class (:class:`Classes`). A :class:`Pattern` is the number of elements of each class on a server, and a
:data:`Candidate` is the number of servers with each pattern.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping

from routecast.plan.placement._server_load import ServerLoads, machine_in
from routecast.plan.placement._simulation import ElementPlacement
from routecast.plan.placement.model import ElementGroup, PlacementProblem, ServerGroup
from routecast.quantity.schema import field, value
from routecast.virtual.machines import Cores


@value
class ElementClass:
    """Elements of one group that are interchangeable."""

    group: ElementGroup
    names: tuple[str, ...]


@value
class HostClass:
    """Servers of one group that are interchangeable."""

    group: ServerGroup
    names: tuple[str, ...]


@value
class Pattern:
    """The number of elements of each class on a server of a class."""

    host: int
    counts: tuple[int, ...]


Candidate = tuple[tuple[Pattern, int], ...]
"""Patterns with their numbers of servers, in a fixed order: equal for placements that differ only in names."""


@value
class Classes:
    """The elements and servers of a problem by class; a rule that names some members of a group makes them a class."""

    problem: PlacementProblem
    elements: tuple[ElementClass, ...]
    hosts: tuple[HostClass, ...]
    # Numbers of classes of elements, for each rule.
    apart: tuple[frozenset[int], ...]
    together: tuple[frozenset[int], ...]
    allowed: tuple[frozenset[int], ...] = field("Allowed classes of servers for each class of elements")

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of elements of each class."""
        return tuple(len(elements.names) for elements in self.elements)

    def by_group(self, counts: Iterable[int]) -> dict[str, int]:
        """Convert numbers of elements by class to numbers by group."""
        numbers: dict[str, int] = {}
        for elements, count in zip(self.elements, counts, strict=True):
            numbers[elements.group.name] = numbers.get(elements.group.name, 0) + count
        return numbers

    def content(self, pattern: Pattern) -> tuple[str, dict[str, int]]:
        """Return the group of a pattern's server, and its number of elements by group."""
        return self.hosts[pattern.host].group.name, self.by_group(pattern.counts)


def members_of(name: str, groups: Iterable[ElementGroup | ServerGroup]) -> tuple[str, ...]:
    """Return the members that a name stands for: itself, or all of a group; empty if the name is unknown."""
    for group in groups:
        if name == group.name:
            return group.names
        if name in group.names:
            return (name,)
    return ()


def classes_of(problem: PlacementProblem) -> Classes:
    """Return the classes of a problem's elements and servers."""
    rules = problem.rules
    apart = [_members(rule, problem.elements) for rule in rules.apart]
    together = [_members(rule, problem.elements) for rule in rules.together]
    on = [(_members([name], problem.elements), _members(where, problem.servers)) for name, where in rules.on.items()]
    named = [*apart, *together, *(members for members, _ in on)]
    elements = tuple(
        ElementClass(group=group, names=names) for group in problem.elements for names in _split(group.names, named)
    )
    hosts = tuple(
        HostClass(group=group, names=names)
        for group in problem.servers
        for names in _split(group.names, [servers for _, servers in on])
    )
    return Classes(
        problem=problem,
        elements=elements,
        hosts=hosts,
        apart=tuple(_numbers(rule, elements) for rule in apart),
        together=tuple(_numbers(rule, elements) for rule in together),
        allowed=tuple(
            frozenset(
                number
                for number, host in enumerate(hosts)
                if all(host.names[0] in servers for members, servers in on if elements_of_class.names[0] in members)
            )
            for elements_of_class in elements
        ),
    )


def _members(names: Iterable[str], groups: tuple[ElementGroup, ...] | tuple[ServerGroup, ...]) -> frozenset[str]:
    return frozenset(member for name in names for member in members_of(name, groups))


def _split(names: tuple[str, ...], sets: list[frozenset[str]]) -> list[tuple[str, ...]]:
    parts: dict[tuple[bool, ...], list[str]] = {}
    for name in names:
        parts.setdefault(tuple(name in members for members in sets), []).append(name)
    return [tuple(part) for part in parts.values()]


def _numbers(rule: frozenset[str], classes: tuple[ElementClass, ...]) -> frozenset[int]:
    return frozenset(number for number, elements in enumerate(classes) if elements.names[0] in rule)


class TooManyPatterns(Exception):
    """There are more patterns than the limit."""


def threads_of(problem: PlacementProblem, host: ServerGroup, element: str) -> int:
    """Return the number of threads of an element's machine on a server."""
    group, technology = problem.element(element), host.technology
    guest = group.vcpus if technology.guest != "softirq" else 0
    backend = {"interface": group.cards, "machine": 1}.get(technology.backend_threads, 0)
    return guest + (backend if technology.backend == "thread" else 0)


def patterns_above(
    classes: Classes, loads: ServerLoads, min_pps: float, *, max_count: int, seconds: float = math.inf
) -> list[Pattern]:
    """Return the patterns with elements that could carry ``min_pps``.

    Raises TooManyPatterns if there are more than ``max_count``, or if they take longer than ``seconds``.
    """
    patterns: list[Pattern] = []
    until_s = time.perf_counter() + seconds
    for host in range(len(classes.hosts)):
        for counts in _counts_of_host(classes, loads, host, min_pps):
            patterns.append(Pattern(host=host, counts=counts))
            if len(patterns) > max_count or time.perf_counter() > until_s:
                raise TooManyPatterns
    return patterns


def is_allowed(classes: Classes, pattern: Pattern) -> bool:
    """Return whether the rules and limits allow a pattern."""
    return _fits(classes, pattern.host, pattern.counts) and _is_complete(classes, pattern.counts)


def _counts_of_host(classes: Classes, loads: ServerLoads, host: int, min_pps: float) -> Iterator[tuple[int, ...]]:
    group = classes.hosts[host].group
    work = [loads.work(group.name, elements.group.name).total_s for elements in classes.elements]
    room_s = loads.cores(group.name) / min_pps if min_pps > 0.0 else math.inf
    counts = [0] * len(classes.elements)

    def deeper(number: int, used_s: float) -> Iterator[tuple[int, ...]]:
        if number == len(counts):
            pattern = tuple(counts)
            is_complete = any(pattern) and _is_complete(classes, pattern)
            if is_complete and loads.bound_pps(group.name, classes.by_group(pattern)) >= min_pps:
                yield pattern
            return
        max_elements = len(classes.elements[number].names) if host in classes.allowed[number] else 0
        for count in range(max_elements + 1):
            counts[number] = count
            total_s = used_s + count * work[number]
            if total_s > room_s * (1.0 + 1e-9) or not _fits(classes, host, tuple(counts)):
                break
            yield from deeper(number + 1, total_s)
        counts[number] = 0

    yield from deeper(0, 0.0)


def _fits(classes: Classes, host: int, counts: tuple[int, ...]) -> bool:
    """Return whether a server's limits hold; if not, they do not hold for more elements either."""
    group, problem = classes.hosts[host].group, classes.problem
    if group.slots is not None and sum(counts) > group.slots:
        return False
    group_counts = [(n, elements.group) for n, elements in zip(counts, classes.elements, strict=True) if n]
    if group.memory_bytes is not None:
        memory_bytes = sum(n * elements.memory_bytes for n, elements in group_counts)
        if memory_bytes > group.memory_bytes * (1.0 + 1e-12):
            return False
    if not problem.rules.shared_cores:
        threads = sum(n * threads_of(problem, group, elements.name) for n, elements in group_counts)
        if threads > group.cores:
            return False
    if any(n and host not in classes.allowed[k] for k, n in enumerate(counts)):
        return False
    return all(sum(counts[k] for k in rule) <= 1 for rule in classes.apart)


def _is_complete(classes: Classes, counts: tuple[int, ...]) -> bool:
    """Return whether the elements of each rule ``together`` and of each local chain are all present or all absent."""
    totals = classes.counts
    for rule in classes.together:
        if any(counts[k] for k in rule) and not all(counts[k] == totals[k] for k in rule):
            return False
    if classes.problem.balancing == "local":
        group_counts = classes.by_group(counts)
        for chain in classes.problem.chains:
            is_present = [group_counts[stage] > 0 for stage in chain.stages]
            if chain.returns and any(is_present) and not all(is_present):
                return False
    return True


def candidate_of(patterns: Iterable[Pattern]) -> Candidate:
    """Return the candidate of servers with these patterns, in the fixed order."""
    counts: dict[Pattern, int] = {}
    for pattern in patterns:
        if any(pattern.counts):
            counts[pattern] = counts.get(pattern, 0) + 1
    return tuple(sorted(counts.items(), key=lambda pair: (pair[0].host, tuple(-n for n in pair[0].counts))))


def candidate_of_servers(classes: Classes, servers: Mapping[str, str]) -> Candidate:
    """Return the candidate of named elements on named servers."""
    host_of = {name: number for number, host in enumerate(classes.hosts) for name in host.names}
    counts = {name: [0] * len(classes.elements) for name in dict.fromkeys(servers.values())}
    for number, elements in enumerate(classes.elements):
        for name in elements.names:
            counts[servers[name]][number] += 1
    return candidate_of(Pattern(host=host_of[name], counts=tuple(numbers)) for name, numbers in counts.items())


def choices_of(classes: Classes, loads: ServerLoads, candidate: Candidate) -> list[str]:
    """Return the ways of pinning that any server of a candidate allows."""
    return list(dict.fromkeys(choice for pattern, _ in candidate for choice in loads.pins(*classes.content(pattern))))


def placement_of(classes: Classes, loads: ServerLoads, candidate: Candidate, choice: str = "") -> ElementPlacement:
    """Return the placement of a candidate with a way of pinning on every server that allows it.

    The other servers get the pinning that is best without loss; with an empty ``choice`` all of them do.
    """
    groups = classes.problem.elements
    unplaced = [list(elements.names) for elements in classes.elements]
    free_servers = [list(host.names) for host in classes.hosts]
    servers: dict[str, str] = {}
    cores: dict[str, Cores] = {}
    choices: dict[str, str] = {}
    for pattern, number in candidate:
        pattern_choice, pins = loads.pinning(*classes.content(pattern), choice)
        for _ in range(number):
            server = free_servers[pattern.host].pop(0)
            choices[server] = pattern_choice
            by_group: dict[str, list[str]] = {group.name: [] for group in groups}
            for k, count in enumerate(pattern.counts):
                by_group[classes.elements[k].group.name] += [unplaced[k].pop(0) for _ in range(count)]
            names = [name for group in groups for name in by_group[group.name]]
            servers |= dict.fromkeys(names, server)
            for thread, thread_cores in pins.items():
                cores[f"{names[int(machine_in(thread))]} {thread.split(' ', 1)[1]}"] = thread_cores
    order = [name for group in groups for name in group.names]
    return ElementPlacement(servers={name: servers[name] for name in order}, pins=cores, choices=choices)


def neighbours(classes: Classes, candidate: Candidate) -> Iterator[Candidate]:
    """Yield the candidates in which one element is on another server, or two elements are exchanged."""
    seen = {candidate}
    for others, first, second in _two_servers(classes, candidate):
        for changed in _changed(first, second):
            if all(not any(pattern.counts) or is_allowed(classes, pattern) for pattern in changed):
                neighbour = candidate_of([*others, *changed])
                if neighbour not in seen:
                    seen.add(neighbour)
                    yield neighbour


def all_candidates(classes: Classes, patterns: list[Pattern], *, max_count: int) -> list[Candidate] | None:
    """Return all candidates of some patterns; None if there are more than ``max_count``, or too many to search."""
    candidates: list[Candidate] = []
    steps = 0
    limit = classes.problem.rules.most_servers
    patterns = sorted(patterns, key=lambda pattern: (pattern.host, pattern.counts), reverse=True)
    free_servers = [len(host.names) for host in classes.hosts]

    def deeper(start: int, remaining: tuple[int, ...], chosen: list[Pattern]) -> bool:
        nonlocal steps
        steps += 1
        if not any(remaining):
            candidates.append(candidate_of(chosen))
            return len(candidates) <= max_count
        if steps > 200 * max_count or (limit is not None and len(chosen) >= limit):
            return steps <= 200 * max_count
        for number in range(start, len(patterns)):
            pattern = patterns[number]
            if not free_servers[pattern.host] or any(c > n for c, n in zip(pattern.counts, remaining, strict=True)):
                continue
            free_servers[pattern.host] -= 1
            rest = tuple(n - c for c, n in zip(pattern.counts, remaining, strict=True))
            continues = deeper(number, rest, [*chosen, pattern])
            free_servers[pattern.host] += 1
            if not continues:
                return False
        return True

    return candidates if deeper(0, classes.counts, []) else None


def _two_servers(classes: Classes, candidate: Candidate) -> Iterator[tuple[list[Pattern], Pattern, Pattern]]:
    """Yield the patterns of two servers, of which the second may be empty, after those of all other servers."""
    servers = [pattern for pattern, number in candidate for _ in range(number)]
    for first in dict.fromkeys(servers):
        rest = list(servers)
        rest.remove(first)
        for second in dict.fromkeys(rest):
            others = list(rest)
            others.remove(second)
            yield others, first, second
        limit = classes.problem.rules.most_servers
        if limit is None or len(servers) < limit or sum(first.counts) == 1:
            for host, same in enumerate(classes.hosts):
                if sum(pattern.host == host for pattern in servers) < len(same.names):
                    yield rest, first, Pattern(host=host, counts=(0,) * len(classes.elements))


def _changed(first: Pattern, second: Pattern) -> Iterator[tuple[Pattern, Pattern]]:
    for k, count in enumerate(first.counts):
        if not count:
            continue
        yield moved(first, k, -1), moved(second, k, 1)
        for x, other_count in enumerate(second.counts):
            if other_count and x != k:
                yield moved(moved(first, k, -1), x, 1), moved(moved(second, x, -1), k, 1)


def moved(pattern: Pattern, k: int, change: int) -> Pattern:
    """Return a pattern with ``change`` more elements of class ``k``."""
    return Pattern(host=pattern.host, counts=tuple(n + change * (i == k) for i, n in enumerate(pattern.counts)))
