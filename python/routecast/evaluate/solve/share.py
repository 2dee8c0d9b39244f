"""Who gets how much of shared resource units: components of pools, policies under overload, contention.

A *component* is a set of units of one pool that the same task units may use: pins cut a pool into components
(each core of a multi-core router is one). Within a component all units are taken to be alike and no unit
idles while frames wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routecast.evaluate.solve.cost import Cost
from routecast.router.model import Contention, ResourcePool, RouterModel, TaskUnit

__all__ = [
    "Component",
    "Slowed",
    "components",
    "divide",
    "mean_contention",
    "served_at_once",
    "slowed_by_each_other",
    "uses_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Units of a pool and the task units that use them: ``members`` are ``(task index, units per frame)``."""

    pool: ResourcePool
    units: tuple[int, ...]
    members: tuple[tuple[int, int], ...]


def served_at_once(task: TaskUnit, most: int) -> int:
    """Return how many frames of a task unit may be in service at once, where the units allow ``most``."""
    return most if task.request == "frame" and task.needs else min(task.parallel, most)


def components(model: RouterModel, tasks: Sequence[TaskUnit]) -> tuple[Component, ...]:
    """Cut every pool into components."""
    found: list[Component] = []
    for pool in model.pools:
        groups: list[tuple[set[int], list[tuple[int, int]]]] = []
        for index, task in enumerate(tasks):
            for position, need in enumerate(task.needs):
                if need.pool != pool.name:
                    continue
                units = set(task.pin) if task.pin and position == 0 else set(range(pool.units))
                members = [(index, need.units)]
                for group in groups.copy():
                    if not units.isdisjoint(group[0]):
                        groups.remove(group)
                        units |= group[0]
                        members = group[1] + members
                groups.append((units, members))
        found += [
            Component(pool=pool, units=tuple(sorted(units)), members=tuple(members))
            for units, members in groups
        ]
    return tuple(found)


def uses_of(parts: Sequence[Component], count: int) -> tuple[tuple[tuple[Component, int], ...], ...]:
    """Return by task unit which components it uses, with the units that a frame takes of each."""
    uses: list[list[tuple[Component, int]]] = [[] for _ in range(count)]
    for part in parts:
        for index, units in part.members:
            uses[index].append((part, units))
    return tuple(map(tuple, uses))


def divide(
    component: Component,
    tasks: Sequence[TaskUnit],
    wanted_pps: Sequence[float],
    busy_s: Sequence[float],
    costs: Sequence[Cost],
) -> dict[int, float]:
    """Return the rate that each member gets of what it wants, by the pool's policy.

    Enough units: everybody gets what it wants. Otherwise grants go round (``fifo``, and ``round_robin`` where
    a grant is shorter than the quantum): each backlogged task unit gets equally many grants for each frame it
    may serve at once; ``round_robin`` with longer grants and ``fair`` divide time; ``priority`` and
    ``preemptive`` serve the highest level first. What one does not want, the others share (max-min).
    """
    capacity = float(len(component.units))
    most: dict[int, float] = {}
    weight: dict[int, float] = {}
    for index, units in component.members:
        most[index] = wanted_pps[index]
        if busy_s[index] > 0.0:
            at_once = served_at_once(tasks[index], len(component.units) // units)
            most[index] = min(wanted_pps[index], at_once / busy_s[index])
        weight[index] = units * busy_s[index]
    alone = len(most) == 1
    if alone or sum(most[index] * weight[index] for index in most) <= capacity * (1.0 + 1e-12):
        return most
    policy = component.pool.policy
    turn: dict[int, float] = {}
    for index in most:
        task, frames = tasks[index], float(costs[index].batch_frames)
        if policy.kind == "fair":
            turn[index] = task.weight / max(weight[index], 1e-300)
        elif policy.kind == "round_robin" and policy.quantum_s is not None and busy_s[index] > 0.0:
            turn[index] = task.parallel * min(frames, policy.quantum_s / busy_s[index])
        elif task.request == "frame":
            turn[index] = float(task.queue_frames)
        else:
            turn[index] = task.parallel * frames
    levels = [set(most)]
    if policy.kind in {"priority", "preemptive"}:
        urgencies = sorted({tasks[index].priority for index in most}, reverse=True)
        levels = [{index for index in most if tasks[index].priority == urgency} for urgency in urgencies]
    got: dict[int, float] = {}
    for level in levels:
        share = _fill(level, most, weight, turn, capacity)
        got.update(share)
        capacity = max(capacity - sum(share[index] * weight[index] for index in level), 0.0)
    return got


def _fill(
    level: set[int], most: dict[int, float], weight: dict[int, float], turn: dict[int, float], capacity: float
) -> dict[int, float]:
    """Raise all rates in proportion to ``turn`` until each has its ``most`` or the capacity is used."""
    got: dict[int, float] = {}
    for index in sorted(level, key=lambda one: most[one] / turn[one]):
        rest = [one for one in level if one not in got]
        pace = capacity / max(sum(turn[one] * weight[one] for one in rest), 1e-300)
        got[index] = min(most[index], pace * turn[index])
        capacity = max(capacity - got[index] * weight[index], 0.0)
    return got


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowed:
    """A pool whose busy units slow each other: ``members`` are ``(task index, units of a grant, units at most)``."""

    pool: ResourcePool
    members: tuple[tuple[int, int, int], ...]


def slowed_by_each_other(model: RouterModel, tasks: Sequence[TaskUnit]) -> tuple[Slowed, ...]:
    """Return the pools with contention, and who uses them."""
    found = []
    for pool in model.pools:
        if pool.contention.is_none:
            continue
        members = []
        for index, task in enumerate(tasks):
            units = sum(need.units for need in task.needs if need.pool == pool.name)
            if units:
                members.append((index, units, max(served_at_once(task, pool.units) * units, 1)))
        found.append(Slowed(pool=pool, members=tuple(members)))
    return tuple(found)


def mean_contention(
    slowed: Sequence[Slowed], busy_units: Mapping[str, Sequence[float]], count: int
) -> list[float]:
    """Return the contention factor on each task unit's service time, by a mean-field approximation (S5).

    A frame in service sees ``k = 1 + the number of other busy units`` of the pool. Its mean is all busy units of the
    pool but the frame's own: for a task unit that keeps B_i of B units busy and can occupy m, ``k̄ = 1 + B - B_i/m``.
    The factor is averaged to second order, ``f(k̄) + Var(k)·f''(k̄)/2``, with the variance of units that are busy
    independently of each other, Σ u(1-u); for the law with sigma and kappa this is the exact mean under independence.
    In truth units that slow each other down are busy together a little more often. With several pools the factors
    multiply.

    Parameters
    ----------
    busy_units : mapping
        By pool name, the mean number of units that each task unit keeps busy; other pools are not regarded.
    count : int
        Of task units.
    """
    factor = [1.0] * count
    for one in slowed:
        if one.pool.name not in busy_units:
            continue
        busy = busy_units[one.pool.name]
        total, spread = sum(busy), 0.0
        for index, _, most in one.members:
            used = busy[index]
            if used < most:
                spread += used * (1.0 - used / most)
        alike: dict[tuple[float, int, int], float] = {}
        for index, units, most in one.members:
            kind = (busy[index], units, most)
            slower = alike.get(kind)
            if slower is None:
                own = min(busy[index] / most, 1.0)
                k = max(min(1.0 + total - own, float(one.pool.units)), float(units))
                slower = alike[kind] = _at_mean(one.pool.contention, k, spread - own * (1.0 - own))
            factor[index] *= slower
    return factor


def _at_mean(contention: Contention, k: float, variance: float) -> float:
    """Mean factor to second order around the mean number of busy units."""
    if variance <= 0.0:
        return contention.factor(k)
    low = max(k, 2.0)
    at_low = contention.factor(low)
    bend = contention.factor(low + 1.0) - 2.0 * at_low + contention.factor(low - 1.0)
    return max((at_low if low == k else contention.factor(k)) + 0.5 * variance * bend, 1e-9)
