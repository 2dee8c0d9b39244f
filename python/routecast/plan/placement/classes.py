"""Which elements and which servers are alike: rules that name one of them make it one of a kind.

Placements that differ only in which of like elements is on which of like servers are the same placement. So a placement
is counted, not listed: how many elements of each class are on a server of which class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from routecast.plan.placement.model import ElementGroup, PlacementProblem, ServerGroup

__all__ = ["Alike", "Classes", "Hosts", "classes_of", "meant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Elements that may change places: ``names`` of one ``group``."""

    group: ElementGroup
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Servers that may change places."""

    group: ServerGroup
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """A placement problem up to symmetry.

    Parameters
    ----------
    alike : tuple of Alike
    hosts : tuple of Hosts
    apart, together : tuple of frozenset of int
        Numbers of classes of elements, for each rule.
    allowed : tuple of frozenset of int
        For each class of elements, the classes of servers that it may be on.
    """

    alike: tuple[Alike, ...]
    hosts: tuple[Hosts, ...]
    apart: tuple[frozenset[int], ...]
    together: tuple[frozenset[int], ...]
    allowed: tuple[frozenset[int], ...]

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
        (frozenset(meant(name, problem.elements)), _members(where, problem.servers))
        for name, where in rules.on.items()
    ]
    seen = [*apart, *together, *(elements for elements, _ in on)]
    alike = [
        Alike(group=group, names=names) for group in problem.elements for names in _parted(group.names, seen)
    ]
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
