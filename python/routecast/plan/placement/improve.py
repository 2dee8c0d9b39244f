"""A local search for too many different elements for the exact one: moves and exchanges at the bottleneck."""

from __future__ import annotations

from collections.abc import Callable

from routecast.plan.placement.classes import Classes
from routecast.plan.placement.columns import Column
from routecast.plan.placement.mapping import Mapped
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.neighbours import neighbours
from routecast.plan.placement.server_load import ServerLoads

__all__ = ["improved"]


def improved(
    problem: PlacementProblem,
    classes: Classes,
    loads: ServerLoads,
    start: Mapped,
    *,
    value_of: Callable[[Mapped], float],
    left_s: Callable[[], float],
    told: Callable[[float], None],
) -> tuple[float, Mapped]:
    """Return a mapping that no move and no exchange makes better, or the best until the time is over.

    A neighbour is predicted only if the servers that it changes could carry more than the bottleneck does. Where
    several servers are the bottleneck, fewer of them count as better.
    """

    def host_of(column: Column) -> str:
        return classes.hosts[column.host].group.name

    def at_most(column: Column) -> float:
        return loads.at_most_pps(host_of(column), classes.by_group(column.counts))

    def carried(column: Column) -> float:
        return loads.carries(host_of(column), classes.by_group(column.counts)).capacity_pps

    def rank(mapping: Mapped) -> tuple[float, int]:
        value = value_of(mapping)
        full = sum(n for column, n in mapping if carried(column) <= value * (1.0 + 1e-9))
        return value, -full

    best, best_rank = start, rank(start)
    told(best_rank[0])
    while left_s() > 0.0:
        before = best
        known = dict(best)
        for mapping in neighbours(problem, classes, best):
            if left_s() <= 0.0:
                break
            new = [column for column, number in mapping if number > known.get(column, 0)]
            gone = [column for column, number in known.items() if number > dict(mapping).get(column, 0)]
            at_bottleneck = any(carried(column) <= best_rank[0] * (1.0 + 1e-9) for column in gone)
            if not at_bottleneck or min(at_most(column) for column in new) <= best_rank[0]:
                continue
            now = rank(mapping)
            if now > best_rank and (now[0] > best_rank[0] * (1.0 + 1e-9) or now[1] > best_rank[1]):
                best, best_rank = mapping, now
                told(best_rank[0])
                break
        if best is before:
            break
    return best_rank[0], best
