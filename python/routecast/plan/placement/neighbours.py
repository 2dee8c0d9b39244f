"""Mappings near a mapping, and all mappings of small problems."""

from __future__ import annotations

from collections.abc import Iterator

from routecast.plan.placement.classes import Classes
from routecast.plan.placement.columns import Column, obeys
from routecast.plan.placement.mapping import Mapped, mapped
from routecast.plan.placement.model import PlacementProblem

__all__ = ["all_mappings", "neighbours"]


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
