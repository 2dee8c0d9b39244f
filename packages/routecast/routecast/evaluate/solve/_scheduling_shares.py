"""Shares of threads in common units: by level, then fair by weight, with pins.

All threads that may use only units of a set S together get at most |S| units of time per second. As a thread works on
one unit at a time but may change units at any instant, these bounds are also sufficient (Hall's theorem, and
McNaughton, Management Science 6(1), 1959, for turns without overlap). A fair division under pins is water that rises
equally for all threads of a level until a set S is full, whose threads then keep their level (max-min fairness;
Megiddo, Mathematical Programming 7, 1974).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve._cost import Cost
from routecast.evaluate.solve.flow import Vector
from routecast.router.model import Contention, ResourcePool, RouterModel, TaskUnit

_MAX_SETS = 512
_EQUAL_RATIO = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Units of a pool that the same task units may use; ``members``: pairs ``(task index, units per frame)``.

    Pins divide a pool into components: each core of a multi-core router is a component. Within a component all units
    are taken to be alike, and no unit idles while frames wait.
    """

    number: int
    """Position among the components of the router."""
    pool: ResourcePool
    units: tuple[int, ...]
    members: tuple[tuple[int, int], ...]


def served_at_once(task: TaskUnit, max_grants: int) -> int:
    """Return the number of frames of a task unit in service at a time, where the units allow ``max_grants``."""
    return max_grants if task.request == "frame" and task.needs else min(task.parallel, max_grants)


def components(model: RouterModel, tasks: Sequence[TaskUnit]) -> tuple[Component, ...]:
    """Return the components of every pool."""
    users: dict[str, list[tuple[int, int, tuple[int, ...]]]] = {pool.name: [] for pool in model.pools}
    for index, task in enumerate(tasks):
        for position, need in enumerate(task.needs):
            users[need.pool].append((index, need.units, task.pin if position == 0 else ()))
    parts: list[Component] = []
    for pool in model.pools:
        # ``groups``: units and members by a rising group number; ``owner``: group number by unit.
        groups: dict[int, tuple[set[int], list[tuple[int, int]]]] = {}
        owner: dict[int, int] = {}
        for number, (index, needed, pin) in enumerate(users[pool.name]):
            if len(owner) == pool.units and len(groups) == 1:
                next(iter(groups.values()))[1].append((index, needed))
                continue
            units, members = set(pin or range(pool.units)), [(index, needed)]
            for component in sorted({owner[unit] for unit in units if unit in owner}):
                joined = groups.pop(component)
                units |= joined[0]
                members = joined[1] + members
            groups[number] = units, members
            owner.update(dict.fromkeys(units, number))
        parts += [
            Component(number=number, pool=pool, units=tuple(sorted(units)), members=tuple(members))
            for number, (units, members) in enumerate(groups.values(), len(parts))
        ]
    return tuple(parts)


def uses_of(parts: Sequence[Component], count: int) -> tuple[tuple[tuple[Component, int], ...], ...]:
    """Return the components that each task unit uses, with the units that a frame takes of each."""
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
    """Return the rate of each member, at most its request, by the pool's policy.

    With enough units every member gets its request. Otherwise grants rotate (``fifo``, and ``round_robin`` where a
    grant is shorter than the quantum): each backlogged task unit gets the same number of grants for each frame that it
    may serve at once. ``round_robin`` with longer grants and ``fair`` divide time; ``priority`` and ``preemptive``
    serve the highest level first. The others share what a member does not request (max-min).
    """
    capacity = float(len(component.units))
    max_pps: dict[int, float] = {}
    weight: dict[int, float] = {}
    polling: set[int] = set()
    for index, units in component.members:
        max_pps[index] = wanted_pps[index]
        if busy_s[index] > 0.0:
            at_once = served_at_once(tasks[index], len(component.units) // units)
            max_pps[index] = min(wanted_pps[index], at_once / busy_s[index])
        weight[index] = units * busy_s[index]
        if tasks[index].activation.kind == "polling":
            # A polling task unit keeps its units: only Linux revokes them, whose threads are divided elsewhere.
            capacity -= units * served_at_once(tasks[index], len(component.units) // units)
            polling.add(index)
    others = set(max_pps) - polling
    alone = len(max_pps) == 1
    if alone or not others or sum(max_pps[index] * weight[index] for index in others) <= capacity * (1.0 + 1e-12):
        return max_pps
    policy = component.pool.policy
    turn: dict[int, float] = {}
    for index in others:
        task, frames = tasks[index], float(costs[index].batch_frames)
        if policy.kind == "fair":
            turn[index] = task.weight / max(weight[index], 1e-300)
        elif policy.kind == "round_robin" and policy.quantum_s is not None and busy_s[index] > 0.0:
            turn[index] = task.parallel * min(frames, policy.quantum_s / busy_s[index])
        elif task.request == "frame":
            turn[index] = float(task.queue_frames)
        else:
            turn[index] = task.parallel * frames
    levels = [others]
    if policy.kind in {"priority", "preemptive"}:
        urgent: dict[int, set[int]] = {}
        for index in others:
            urgent.setdefault(tasks[index].priority, set()).add(index)
        levels = [urgent[priority] for priority in sorted(urgent, reverse=True)]
    granted = {index: max_pps[index] for index in polling}
    for level in levels:
        share = _fill(level, max_pps, weight, turn, capacity)
        granted.update(share)
        capacity = max(capacity - sum(share[index] * weight[index] for index in level), 0.0)
    return granted


def _fill(
    level: set[int], max_pps: dict[int, float], weight: dict[int, float], turn: dict[int, float], capacity: float
) -> dict[int, float]:
    """Raise all rates in proportion to ``turn`` until each has its ``max_pps`` or the capacity is used."""
    granted: dict[int, float] = {}
    rest = {number: turn[number] * weight[number] for number in level}
    for index in sorted(level, key=lambda number: max_pps[number] / turn[number]):
        pace = capacity / max(sum(rest.values()), 1e-300)
        del rest[index]
        granted[index] = min(max_pps[index], pace * turn[index])
        capacity = max(capacity - granted[index] * weight[index], 0.0)
    return granted


@dataclass(frozen=True, slots=True, kw_only=True)
class ContendedPool:
    """A pool whose busy units slow each other; ``members``: ``(task index, units per grant, maximum units)``."""

    pool: ResourcePool
    members: tuple[tuple[int, int, int], ...]


def contended_pools(model: RouterModel, tasks: Sequence[TaskUnit]) -> tuple[ContendedPool, ...]:
    """Return the pools with contention, and their users."""
    factors = []
    for pool in model.pools:
        if pool.contention.is_none:
            continue
        members = []
        for index, task in enumerate(tasks):
            units = sum(need.units for need in task.needs if need.pool == pool.name)
            if units:
                members.append((index, units, max(served_at_once(task, pool.units) * units, 1)))
        factors.append(ContendedPool(pool=pool, members=tuple(members)))
    return tuple(factors)


def mean_contention(
    contended: Sequence[ContendedPool], busy_units: Mapping[str, Sequence[float]], count: int
) -> list[float]:
    """Return the contention factor on each task unit's service time, by a mean-field approximation (S5).

    A frame in service sees ``k = 1 + the number of other busy units`` of the pool. The mean of k counts all busy units
    except the frame's own: for a task unit that keeps B_i of B units busy and can occupy m, ``k̄ = 1 + B - B_i/m``.
    The factor is averaged to second order, ``f(k̄) + Var(k)·f''(k̄)/2``, with the variance of units that are busy
    independently of each other, Σ u(1-u); for the law with sigma and kappa this is the exact mean under independence.
    In fact units that slow each other down are busy together slightly more often. With several pools the factors
    multiply.

    ``busy_units``: mean number of units that each task unit keeps busy, by pool name; other pools do not count;
    ``count``: number of task units.
    """
    factor = [1.0] * count
    for group in contended:
        if group.pool.name not in busy_units:
            continue
        busy = busy_units[group.pool.name]
        total, spread = sum(busy), 0.0
        for index, _, max_units in group.members:
            used = busy[index]
            if used < max_units:
                spread += used * (1.0 - used / max_units)
        alike: dict[tuple[float, int, int], float] = {}
        for index, units, max_units in group.members:
            kind = (busy[index], units, max_units)
            slower = alike.get(kind)
            if slower is None:
                own = min(busy[index] / max_units, 1.0)
                k = max(min(1.0 + total - own, float(group.pool.units)), float(units))
                slower = alike[kind] = _at_mean(group.pool.contention, k, spread - own * (1.0 - own))
            factor[index] *= slower
    return factor


def _at_mean(contention: Contention, k: float, variance: float) -> float:
    """Return the mean factor to second order around the mean number of busy units."""
    if variance <= 0.0:
        return contention.factor(k)
    low = max(k, 2.0)
    at_low = contention.factor(low)
    bend = contention.factor(low + 1.0) - 2.0 * at_low + contention.factor(low - 1.0)
    return max((at_low if low == k else contention.factor(k)) + 0.5 * variance * bend, 1e-9)


Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitGroup:
    """A set of units and the threads that may use no other units; ``members``: pairs ``(thread, units at once)``."""

    pool: int
    units: tuple[int, ...]
    members: tuple[tuple[int, float], ...]


def pin_sets(pins: Sequence[frozenset[int]]) -> tuple[list[frozenset[int]], bool]:
    """Return the sets of units that can be full, which are connected unions of pins, and whether these are all sets.

    A union of two pins without a common unit is full only where both pins are, so it adds no bound.
    """
    sets = list(dict.fromkeys(pins))
    seen = set(sets)
    kinds = tuple(sets)
    position = 0
    while position < len(sets):
        pin = sets[position]
        position += 1
        for other in kinds:
            both = pin | other
            if pin & other and both not in seen:
                if len(sets) >= _MAX_SETS:
                    return sets, False
                seen.add(both)
                sets.append(both)
    return sets, True


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitGroups:
    """All groups of units of a router; a thread without demand pads the members of each group to one width."""

    groups: tuple[UnitGroup, ...]
    member: Index
    """Threads of each group, shape (groups, width)."""
    at_once: Vector
    """Units that a grant takes, shape (groups, width)."""
    capacity: Vector
    threads: int

    def load(self, demand: Vector) -> Vector:
        """Return the units that all threads of each group request."""
        loads: Vector = (self.at_once * np.append(demand, 0.0)[self.member]).sum(axis=1)
        return loads

    def divide(self, demand: Vector, weight: Vector, level: Sequence[Index]) -> Vector:
        """Return the granted part of each thread's demand (time per second on a unit).

        ``demand`` and ``weight``: by thread; ``level``: threads of each level, the most urgent first.
        """
        granted = demand.copy()
        if not self.groups or bool(np.all(self.load(demand) <= self.capacity * (1.0 + _EQUAL_RATIO))):
            return granted
        rest = self.capacity.copy()
        for position, threads in enumerate(level):
            wanted = np.zeros(self.threads + 1)
            wanted[threads] = demand[threads]
            loads = (self.at_once * wanted[self.member]).sum(axis=1)
            if np.any(loads > rest * (1.0 + _EQUAL_RATIO)):
                granted[threads] = self._fill(wanted, weight, rest)[threads]
                wanted[threads] = granted[threads]
                loads = (self.at_once * wanted[self.member]).sum(axis=1)
            if position + 1 < len(level):
                rest = np.maximum(rest - loads, 0.0)
        return granted

    def entitled(
        self, demand: Vector, granted: Vector, weight: Vector, level: Sequence[Index], max_grants: Vector
    ) -> Vector:
        """Return the share that each thread would get if it requested everything and the others their demand.

        Each group counts by itself: a thread that another group limits counts with its grant.
        """
        entitled = np.append(max_grants, 0.0)
        if not self.groups:
            return max_grants
        rest = self.capacity.copy()
        for position, threads in enumerate(level):
            mine = np.zeros(self.threads + 1, dtype=bool)
            mine[threads] = True
            inside = mine[self.member]
            used = np.where(inside, np.append(granted, 0.0)[self.member], 0.0)
            loads = (self.at_once * used).sum(axis=1)
            full = loads >= rest * (1.0 - 1e-9)
            wanted = np.where(inside & full[:, None], np.append(demand, 0.0)[self.member], used)
            base = np.where(inside, np.append(weight, 0.0)[self.member], 0.0)
            heights = _surface_of_one(wanted, base, rest, self.at_once)
            np.minimum.at(entitled, self.member, np.where(inside, heights * base, np.inf))
            if position + 1 < len(level):
                rest = np.maximum(rest - loads, 0.0)
        whole: Vector = np.maximum(entitled[:-1], granted)
        return whole

    def _fill(self, wanted: Vector, weight: Vector, rest: Vector) -> Vector:
        weights = np.append(weight, 0.0)
        granted = wanted.copy()
        is_open = wanted > 0.0
        loads = (self.at_once * wanted[self.member]).sum(axis=1)
        overloaded = loads > rest * (1.0 + _EQUAL_RATIO)
        member, at_once, rest = self.member[overloaded], self.at_once[overloaded], rest[overloaded]
        while len(member):
            rising = is_open[member]
            heights = surface(
                np.where(rising, wanted[member], 0.0), np.where(rising, weights[member], 0.0), rest, at_once=at_once
            )
            full = np.isfinite(heights)
            if not full.any():
                break
            lowest = np.full(self.threads + 1, np.inf)
            np.minimum.at(lowest, member, heights[:, None])
            first = full & np.all(~rising | (lowest[member] >= heights[:, None]), axis=1)
            done = np.zeros(self.threads + 1, dtype=bool)
            done[member[first][rising[first]]] = True
            granted[done] = np.minimum(wanted[done], weights[done] * lowest[done])
            is_open &= ~done
            rest = np.maximum(rest - (at_once * np.where(done[member], granted[member], 0.0)).sum(axis=1), 0.0)
            keep = full & ~first & is_open[member].any(axis=1)
            member, at_once, rest = member[keep], at_once[keep], rest[keep]
        return granted


def limiting_groups(groups: Sequence[UnitGroup], max_grants: Vector) -> UnitGroups:
    """Return the groups that can be full, whose threads could use more units at once than the group has.

    ``max_grants``: by thread, grants that it may have at once.
    """
    limiting = tuple(
        group
        for group in groups
        if sum(units * float(max_grants[thread]) for thread, units in group.members) > len(group.units) + _EQUAL_RATIO
    )
    width = max((len(group.members) for group in limiting), default=1)
    member = np.full((len(limiting), width), len(max_grants), dtype=np.intp)
    at_once = np.zeros((len(limiting), width))
    for number, group in enumerate(limiting):
        for column, (thread, units) in enumerate(group.members):
            member[number, column], at_once[number, column] = thread, units
    return UnitGroups(
        groups=limiting,
        member=member,
        at_once=at_once,
        capacity=np.array([float(len(group.units)) for group in limiting]),
        threads=len(max_grants),
    )


def _vessels_by_rim(wanted: Vector, weight: Vector, at_once: Vector | float) -> tuple[Vector, Vector, Vector, Vector]:
    """Return the vessels of each row by rising height of the rim, all in the shape of ``wanted``.

    Height of the rim, volume, volume of all lower vessels, and base of this vessel and all higher vessels together.
    """
    rim = np.divide(wanted, weight, out=np.zeros_like(wanted), where=weight > 0.0)
    rows, order = np.arange(len(rim))[:, None], rim.argsort(axis=1)
    volume = (np.where(weight > 0.0, wanted, 0.0) * at_once)[rows, order]
    base = (weight * at_once)[rows, order]
    below, wider = volume.cumsum(axis=1) - volume, base[:, ::-1].cumsum(axis=1)[:, ::-1]
    return rim[rows, order], volume, below, wider


def surface(wanted: Vector, weight: Vector, capacity: Vector, *, at_once: Vector | float = 1.0) -> Vector:
    """Return the height of water of the volume ``capacity`` in each row of vessels.

    Vessel ``j`` of row ``i`` has the base ``weight[i, j]`` and holds ``wanted[i, j]`` at most: the height θ solves
    ``Σ at_once·min(wanted, weight·θ) = capacity``. The height is infinite where the volume exceeds all vessels.
    """
    rim, _, below, wider = _vessels_by_rim(wanted, weight, at_once)
    position = (below + rim * wider < capacity[:, None]).sum(axis=1)
    last = wanted.shape[1] - 1
    at = np.minimum(position, last)
    rows = np.arange(len(capacity))
    rise = np.maximum(capacity - below[rows, at], 0.0) / np.maximum(wider[rows, at], 1e-300)
    heights: Vector = np.where(position > last, np.inf, rise)
    return heights


def _surface_of_one(wanted: Vector, weight: Vector, capacity: Vector, at_once: Vector) -> Vector:
    """Return the height in each row when vessel ``j`` alone is unlimited; shape as ``wanted``."""
    step, volume, below, wider = _vessels_by_rim(wanted, weight, at_once)
    filled = below + step * wider
    height = np.divide(wanted, weight, out=np.zeros_like(wanted), where=weight > 0.0)
    # The unlimited vessel also holds the water above its own rim.
    own, rim = weight * at_once, np.where(weight > 0.0, wanted, 0.0) * at_once
    last = wanted.shape[1] - 1
    rows = np.arange(len(capacity))[:, None]
    # The number of steps below the surface, by bisection, because the filled volume rises from step to step.
    position, above = np.zeros(wanted.shape, dtype=np.intp), np.full(wanted.shape, last + 1)
    first, filled, steps, limit = rows * (last + 1), filled.ravel(), step.ravel(), capacity[:, None]
    while (is_open := position < above).any():
        at = np.minimum((position + above) >> 1, last)
        here = first + at
        dry = filled[here] + np.maximum(own * steps[here] - rim, 0.0) < limit
        position, above = np.where(is_open & dry, at + 1, position), np.where(is_open > dry, at, above)
    at = np.minimum(position, last)
    # Vessels from ``at`` on are open; where all are full, only the unlimited vessel is.
    full_below = np.where(position > last, below[rows, at] + volume[rows, at], below[rows, at])
    open_base = np.where(position > last, 0.0, wider[rows, at])
    beyond = step[rows, at] > height
    over = beyond | (position > last)
    level = (capacity[:, None] - full_below + np.where(over, rim, 0.0)) / np.maximum(
        open_base + np.where(over, own, 0.0), 1e-300
    )
    heights: Vector = np.maximum(level, 0.0)
    return heights
