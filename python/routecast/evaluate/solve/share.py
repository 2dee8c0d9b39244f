"""Who gets how much of shared resource units: components of pools, policies under overload, contention.

A *component* is a set of units of one pool that the same task units may use: pins cut a pool into components
(each core of a multi-core router is one). Within a component all units are taken to be alike and no unit
idles while frames wait.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routecast.evaluate.solve.flow import Vector
from routecast.router.model import Contention, ResourcePool, RouterModel, TaskUnit

__all__ = ["Component", "Cost", "components", "cost_of", "divide", "mean_contention", "served_at_once"]


_MOST_CYCLES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Units of a pool and the task units that use them: ``members`` are ``(task index, units per frame)``."""

    pool: ResourcePool
    units: tuple[int, ...]
    members: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Service time of a task unit's frames, averaged over the mix, without contention.

    ``busy_s`` is per frame in full batches, as under overload; ``frame_s`` without the batch's part ``batch_s``.
    """

    frame_s: float
    batch_s: float
    batch_frames: int
    interrupt_s: float
    moderation_s: float
    short_polls: bool
    exhaustive: bool = False
    """Polls take also the frames that come meanwhile."""
    sleep_s: float = 0.0
    """Mean wake-up."""
    stretch: float = 1.0
    """Mean completion time over service time: what interruptions do; it is in all the times above."""
    scatter_s: float = 0.0
    """Variance that interruptions add for each second of service."""

    @property
    def busy_s(self) -> float:
        """Seconds per frame under overload."""
        extra = self.interrupt_s if self.short_polls else 0.0
        return self.frame_s + (self.batch_s + extra) / self.batch_frames

    def used(self, rate_pps: float, factor: float, *, even: bool = False) -> float:
        """Share of time that one server works at a rate, below overload.

        Where a batch or an interrupt costs h and a frame c, a cycle begins with h and serves the b frames that have
        come since the last cycle began: ``b = λ·cycle``. A cycle lasts ``T = h + b·c``, the wait for a frame if none
        has come meanwhile (probability ``e^{-λT}``, then 1/λ), and at least the interrupt moderation. Poisson arrivals,
        with the mean in place of the random batch: a named approximation, within 3 % of simulations. Frames at equal
        gaps (``even``) find no batch under way as long as ``h + c`` is less than a gap, so a cycle lasts exactly
        ``max(h + b·c, 1/λ)``. Full batches are overload.
        """
        frame_s, start_s = self.frame_s * factor, (self.batch_s + self.interrupt_s) * factor
        if start_s <= 0.0 or rate_pps <= 0.0:
            return min(rate_pps * frame_s, 1.0)
        if self.exhaustive:
            return self._used_exhaustively(rate_pps, factor, even=even)
        batch, work_s, cycle_s = 1.0, start_s + frame_s, math.inf
        for _ in range(_MOST_CYCLES):
            work_s = start_s + batch * frame_s
            idle_s = 0.0 if even else math.exp(-rate_pps * work_s) / rate_pps
            cycle_s = max(work_s + idle_s, 1.0 / rate_pps if even else 0.0, self.moderation_s)
            before, batch = batch, rate_pps * cycle_s
            if batch >= self.batch_frames:
                return min(rate_pps * self.busy_s * factor, 1.0)
            if abs(batch - before) <= 1e-9 * batch:
                break
        return min(work_s / cycle_s, 1.0)

    def _used_exhaustively(self, rate_pps: float, factor: float, *, even: bool) -> float:
        """As :meth:`used`, where a poll goes on until nobody waits: a cycle is idle time, set-up and busy period.

        Poisson arrivals: ``T = (1/λ + wake-up + h)/(1 - rho)``, exact (M/G/1 with set-up). Equal gaps g: as many frames
        as come until the backlog has drained, ``⌈(wake-up + h)/(g - c)⌉``. Longer polls than the budget cost another
        batch.
        """
        frame_s, batch_s = self.frame_s * factor, self.batch_s * factor
        start_s = batch_s + self.interrupt_s * factor
        load, most = rate_pps * frame_s, min(rate_pps * self.busy_s * factor, 1.0)
        if load >= 1.0:
            return 1.0
        away_s = self.sleep_s + start_s
        if even:
            cycle_s = max(math.ceil(away_s * rate_pps / (1.0 - load) - 1e-9), 1.0) / rate_pps
        else:
            cycle_s = (1.0 / rate_pps + away_s) / (1.0 - load)
        cycle_s = max(cycle_s, self.moderation_s)
        frames = rate_pps * cycle_s
        again_s = max(frames / self.batch_frames - 1.0, 0.0) * batch_s
        return min(max((start_s + again_s) / cycle_s + load, most), 1.0)


def served_at_once(task: TaskUnit, most: int) -> int:
    """Return how many frames of a task unit may be in service at once, where the units allow ``most``."""
    return most if task.request == "frame" and task.needs else min(task.parallel, most)


def cost_of(task: TaskUnit, model: RouterModel, mean_bytes: float) -> Cost:
    """Return the cost of a task unit's frames (S5, S6)."""
    pool = model.pool(task.needs[0].pool) if task.needs else None
    frequency_hz = pool.frequency_hz if pool else None
    speed = 1.0
    if pool and pool.unit_speed_ratio:
        allowed = task.pin or range(pool.units)
        speed = math.fsum(pool.unit_speed_ratio[unit] for unit in allowed) / len(allowed)
    whole_s = task.service.mean_s(mean_bytes, frequency_hz=frequency_hz, batch_frames=1.0)
    without_s = task.service.mean_s(mean_bytes, frequency_hz=frequency_hz, batch_frames=math.inf)
    interrupt = task.activation.kind == "interrupt"
    exhaustive = interrupt and task.activation.discipline == "exhaustive"
    wanted = task.activation.budget_frames if interrupt else task.batch_frames
    wakeup = task.activation.wakeup if interrupt else None
    stretch, scatter_s = _interrupted(task, model)
    slower = stretch / speed
    return Cost(
        frame_s=without_s * slower,
        batch_s=max(whole_s - without_s, 0.0) * slower,
        batch_frames=wanted if exhaustive else min(wanted, task.queue_frames),
        interrupt_s=task.activation.interrupt_cost_s * slower if interrupt else 0.0,
        moderation_s=task.activation.moderation_s if interrupt else 0.0,
        short_polls=interrupt and not exhaustive and task.queue_frames < wanted,
        exhaustive=exhaustive,
        sleep_s=wakeup.average_s if wakeup is not None else 0.0,
        stretch=stretch,
        scatter_s=scatter_s,
    )


def _interrupted(task: TaskUnit, model: RouterModel) -> tuple[float, float]:
    """Return how interruptions of its units stretch a task unit's services, and the variance that they add."""
    stretch, scatter_s = 1.0, 0.0
    for need in task.needs:
        interruptions = model.pool(need.pool).interruptions
        if interruptions is not None:
            stretch += need.units * (interruptions.stretch - 1.0)
            scatter_s += need.units * interruptions.scatter_s
    return stretch, scatter_s


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
                apart = []
                for other_units, other_members in groups:
                    if units & other_units:
                        units |= other_units
                        members = other_members + members
                    else:
                        apart.append((other_units, other_members))
                groups = [*apart, (units, members)]
        found += [
            Component(pool=pool, units=tuple(sorted(units)), members=tuple(members))
            for units, members in groups
        ]
    return tuple(found)


def divide(
    component: Component, tasks: Sequence[TaskUnit], wanted_pps: Vector, busy_s: Vector, costs: Sequence[Cost]
) -> dict[int, float]:
    """Return the rate that each member gets of what it wants, by the pool's policy.

    Enough units: everybody gets what it wants. Otherwise grants go round (``fifo``, and ``round_robin`` where
    a grant is shorter than the quantum): each backlogged task unit gets equally many grants for each frame it
    may serve at once; ``round_robin`` with longer grants and ``fair`` divide time; ``priority`` and
    ``preemptive`` serve the highest level first. What one does not want, the others share (max-min).
    """
    capacity = float(len(component.units))
    most = {
        index: min(
            wanted_pps[index], served_at_once(tasks[index], len(component.units) // units) / busy_s[index]
        )
        if busy_s[index] > 0.0
        else wanted_pps[index]
        for index, units in component.members
    }
    weight = {index: units * busy_s[index] for index, units in component.members}
    if sum(most[index] * weight[index] for index in most) <= capacity * (1.0 + 1e-12):
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


def mean_contention(
    model: RouterModel, tasks: Sequence[TaskUnit], busy_units: dict[str, Vector], *, only: str = ""
) -> Vector:
    """Return the contention factor on each task unit's service time, by a mean-field approximation (S5).

    A frame in service sees ``k = 1 + the number of other busy units`` of the pool. Its mean is all busy units of the
    pool but the frame's own: for a task unit that keeps B_i of B units busy and can occupy m, ``k̄ = 1 + B - B_i/m``.
    The factor is averaged to second order, ``f(k̄) + Var(k)·f''(k̄)/2``, with the variance of units that are busy
    independently of each other, Σ u(1-u); for the law with sigma and kappa this is the exact mean under independence.
    In truth units that slow each other down are busy together a little more often. With several pools the factors
    multiply.

    Parameters
    ----------
    busy_units : dict
        By pool name, the mean number of units that each task unit keeps busy.
    only : str
        Name of the only pool to be regarded; empty for all.
    """
    factor = np.ones(len(tasks))
    for name, busy in busy_units.items():
        pool = model.pool(name)
        if pool.contention.is_none or (only and only != name):
            continue
        total = float(busy.sum())
        together = {
            index: max(served_at_once(task, pool.units) * units, 1)
            for index, task in enumerate(tasks)
            if (units := sum(need.units for need in task.needs if need.pool == name))
        }
        spread = sum(float(busy[i]) * max(1.0 - float(busy[i]) / count, 0.0) for i, count in together.items())
        for index, task in enumerate(tasks):
            units = sum(need.units for need in task.needs if need.pool == name)
            if units:
                own = min(float(busy[index]) / together[index], 1.0)
                k = min(1.0 + total - own, float(pool.units))
                factor[index] *= _at_mean(
                    pool.contention, max(k, float(units)), max(spread - own * (1.0 - own), 0.0)
                )
    return factor


def _at_mean(contention: Contention, k: float, variance: float) -> float:
    """Mean factor to second order around the mean number of busy units."""
    if variance <= 0.0:
        return contention.factor(k)
    low = max(k, 2.0)
    bend = contention.factor(low + 1.0) - 2.0 * contention.factor(low) + contention.factor(low - 1.0)
    return max(contention.factor(k) + 0.5 * variance * bend, 1e-9)
