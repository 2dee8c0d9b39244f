"""Who shares units with whom, who comes first, and who feeds whom, among the threads of a router."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve.flow import FlowGraph, Vector
from routecast.evaluate.solve.grants import Row, pin_sets
from routecast.router.model import RouterModel, TaskUnit

__all__ = [
    "Thread",
    "fed_by_one_port",
    "fed_within",
    "levels_of",
    "never_interrupted",
    "rivals_of",
    "sets_of_units",
    "sharing",
    "time_on_units",
]

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """Task units that are one for the resource managers, and what they may use.

    Parameters
    ----------
    name : str
        Of the thread, or of its only task unit.
    tasks : tuple of int
        Places in the passage.
    pool : int
        Number of its first pool; -1 for a processor of its own.
    units : frozenset of int
        Units of that pool that it may use.
    """

    name: str
    tasks: tuple[int, ...]
    pool: int
    units: frozenset[int]


def sets_of_units(
    model: RouterModel, firsts: list[TaskUnit], threads: list[Thread], pools: dict[str, int]
) -> tuple[list[Row], bool]:
    """Return every set of units that can be full, of all pools."""
    using: dict[int, list[tuple[int, frozenset[int], float]]] = {}
    for number, task in enumerate(firsts):
        for position, need in enumerate(task.needs):
            pool = pools[need.pool]
            units = threads[number].units if position == 0 else frozenset(range(model.pools[pool].units))
            using.setdefault(pool, []).append((number, units, float(need.units)))
    rows, complete = [], True
    for pool, users in using.items():
        sets, all_of_them = pin_sets([units for _, units, _ in users])
        complete = complete and all_of_them
        for one in sets:
            members = tuple((number, units) for number, allowed, units in users if allowed <= one)
            rows.append(Row(pool=pool, units=tuple(sorted(one)), members=members))
    return rows, complete


def levels_of(model: RouterModel, firsts: list[TaskUnit], threads: list[Thread]) -> tuple[Index, ...]:
    """Return the threads by urgency; in pools that know no priorities all are of one."""
    urgent = {"linux", "priority", "preemptive"}
    urgency = [
        (max(task.priority, 0) if _policy(model, thread) == "linux" else task.priority)
        if _policy(model, thread) in urgent
        else 0
        for task, thread in zip(firsts, threads, strict=True)
    ]
    return tuple(
        np.flatnonzero(np.array(urgency) == level).astype(np.intp)
        for level in sorted(set(urgency), reverse=True)
    )


def _policy(model: RouterModel, thread: Thread) -> str:
    return model.pools[thread.pool].policy.kind if thread.pool >= 0 else ""


def fed_within(
    graph: FlowGraph, place: Index, threads: list[Thread], thread_of: Index, firsts: list[TaskUnit]
) -> NDArray[np.bool_]:
    """Whether all that feeds a task unit are threads of its level on the same, only unit."""
    feeders: dict[int, list[int]] = {}
    for index, edges in enumerate(graph.edges):
        for node, _ in edges:
            feeders.setdefault(int(place[node]), []).append(int(thread_of[place[index]]))
    within = np.zeros(len(place), dtype=bool)
    entries = {int(place[node]) for node in graph.entry}
    for node, sources in feeders.items():
        own = int(thread_of[node])
        if own == len(threads) or node in entries or len(threads[own].units) != 1:
            continue
        within[node] = all(
            threads[source].pool == threads[own].pool
            and threads[source].units == threads[own].units
            and firsts[source].priority == firsts[own].priority
            for source in sources
        )
    return within


def never_interrupted(levels: tuple[Index, ...], on_unit: Vector) -> NDArray[np.bool_]:
    """Whether nobody more urgent uses the units of each thread."""
    calm = np.ones(on_unit.shape[1], dtype=bool)
    taken = np.zeros(on_unit.shape[0], dtype=bool)
    for threads in levels:
        calm[threads] = ~(on_unit[taken][:, threads] > 0.0).any(axis=0)
        taken |= (on_unit[:, threads] > 0.0).any(axis=1)
    return calm


def rivals_of(fair: NDArray[np.bool_], pool_of: Index, on_unit: Vector) -> Vector:
    """Return 1 where two threads of Linux's fair level may use the same unit."""
    rivals = np.zeros((len(fair), len(fair)))
    for pool in np.unique(pool_of[fair]):
        mine = np.flatnonzero(fair & (pool_of == pool))
        uses = on_unit[:, mine] > 0.0
        uses = uses[uses.any(axis=1)]
        together = (uses[:, :, None] & uses[:, None, :]).any(axis=0)
        rivals[np.ix_(mine, mine)] = together & ~np.eye(len(mine), dtype=bool)
    return rivals


def fed_by_one_port(graph: FlowGraph, place: Index, threads: list[Thread]) -> NDArray[np.bool_]:
    """Whether each thread gets the frames of one port as they come, and no others."""
    used = set(graph.ingress)
    entries = [int(place[node]) for port, node in enumerate(graph.entry) if port in used]
    fed = {int(place[node]) for edges in graph.edges for node, _ in edges}
    return np.array(
        [
            len(thread.tasks) == 1 and thread.tasks[0] not in fed and entries.count(thread.tasks[0]) == 1
            for thread in threads
        ]
    )


def time_on_units(model: RouterModel, threads: list[Thread]) -> Vector:
    """Return the part of its time that each thread spends on each unit, if it uses all that it may alike."""
    first = np.concatenate([[0], np.cumsum([pool.units for pool in model.pools], dtype=np.intp)])
    table = np.zeros((int(first[-1]), len(threads)))
    for number, thread in enumerate(threads):
        for unit in thread.units:
            table[int(first[thread.pool]) + unit, number] = 1.0 / len(thread.units)
    return table


def sharing(threads: list[Thread]) -> NDArray[np.bool_]:
    """Whether others may use the units of each thread."""
    users: dict[tuple[int, int], int] = {}
    for thread in threads:
        for unit in thread.units:
            users[thread.pool, unit] = users.get((thread.pool, unit), 0) + 1
    return np.array([any(users[thread.pool, unit] > 1 for unit in thread.units) for thread in threads])
