"""Which resource limits: what each could carry alone, and how far the others are from it (paper 000, eq. 1)."""

from __future__ import annotations

import math

import numpy as np

from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid, switching_s
from routecast.evaluate.solve.limits import limits_of, links_of, ranked
from routecast.evaluate.solve.share import mean_contention, served_at_once
from routecast.evaluate.solve.window_limits import limits_of_windows
from routecast.evaluate.trial import Bottleneck, Resource
from routecast.quantity import format_ratio
from routecast.router.model import ResourcePool

__all__ = ["resources_of"]


def resources_of(fluid: Fluid, *, forwarded_pps: float = 0.0) -> tuple[tuple[Resource, ...], Bottleneck]:
    """Return every resource with its capacity and margin, the least margin first, and the bottleneck.

    The capacity of a resource is the greatest intended rate of this load that it carries without overload when nothing
    else limits; the throughput of the whole (RFC 1242: no loss) is the least of the capacities. With
    ``forwarded_pps``, what the router forwards at this load, no resource carries less than that.
    """
    if fluid.steady is not None:
        return limits_of(fluid, fluid.steady, forwarded_pps)
    graph = fluid.graph
    visits = graph.arriving(graph.share, np.ones(graph.exit + 1)).sum(axis=1)
    found: list[tuple[Resource, str]] = []
    switching, _ = switching_s(fluid.components, fluid.costs)
    found += limits_of_windows(fluid, visits)
    carried = set(fluid.windows.pools) if fluid.windows is not None else set()
    at_once = fluid.windows.never_wait if fluid.windows is not None else frozenset()
    for pool in fluid.model.pools:
        if pool.name in carried:
            continue
        capacity, why = _pool_capacity(fluid, pool, visits, switching)
        used = min(float(fluid.busy_units[pool.name].sum()) / pool.units, 1.0)
        found.append(
            (Resource(name=pool.name, kind="pool", utilisation_ratio=used, capacity_pps=capacity), why)
        )
    for index, task in enumerate(graph.tasks):
        busy_s = fluid.costs[index].busy_s
        if task.needs or busy_s <= 0.0 or index in at_once:
            continue
        rate = float(fluid.rates[index].sum() * fluid.admitted_ratio[index])
        capacity = task.parallel / (visits[index] * busy_s) if visits[index] > 0.0 else math.inf
        used = min(rate * float(fluid.service_s[index]) / task.parallel, 1.0)
        why = f'task unit "{task.name}" works on {task.parallel} frame{"s" if task.parallel > 1 else ""} at once'
        found.append(
            (Resource(name=task.name, kind="task", utilisation_ratio=used, capacity_pps=capacity), why)
        )
    found += links_of(fluid, visits)
    return ranked(fluid, found, forwarded_pps)


def _pool_capacity(
    fluid: Fluid, pool: ResourcePool, visits: Vector, switching: list[float]
) -> tuple[float, str]:
    """Find the rate at which the fullest component of a pool is full, with contention, and say why it is that one."""
    tasks = fluid.graph.tasks
    parts = [part for part in fluid.components if part.pool.name == pool.name]
    slowed = [one for one in fluid.slowed if one.pool is pool]
    base_s = [cost.busy_s for cost in fluid.costs]
    per_frame = visits[: len(tasks)].tolist()
    members = [
        (
            part,
            [
                (index, units, served_at_once(tasks[index], max(len(part.units) // units, 1)))
                for index, units in part.members
            ],
        )
        for part in parts
    ]
    factor, load = [1.0] * len(tasks), [0.0] * len(tasks)
    rate, fullest = math.inf, None
    for round_number in range(200):
        demand = [
            visit * (one * slower + more)
            for visit, one, slower, more in zip(per_frame, base_s, factor, switching, strict=True)
        ]
        worst = 0.0
        for part, using in members:
            whole = alone = 0.0
            for index, units, lanes in using:
                whole += demand[index] * units
                alone = max(alone, demand[index] / lanes)
            fill = max(whole / len(part.units), alone)
            if fill > worst:
                worst, fullest = fill, part
        if worst <= 0.0:
            return math.inf, ""
        before, rate = rate, 1.0 / worst
        load = [0.0] * len(tasks)
        for part in parts:
            for index, units in part.members:
                load[index] += demand[index] * units * rate
        if not slowed:
            break
        new_factor = mean_contention(slowed, {pool.name: load}, len(tasks))
        if abs(rate - before) <= 1e-12 * rate:
            break
        if round_number >= 8:
            new_factor = [0.5 * (old + new) for old, new in zip(factor, new_factor, strict=True)]
        factor = new_factor
    assert fullest is not None
    units = len(fullest.units)
    if len(parts) == 1 or sum(load) > 0.999 * sum(len(part.units) for part in parts):
        plural = "s" if pool.units > 1 else ""
        used = pool.units if len(parts) == 1 else sum(len(part.units) for part in parts)
        return rate, f'{used} unit{plural} of pool "{pool.name}" are busy all the time' if used > 1 else (
            f'the unit of pool "{pool.name}" is busy all the time'
        )
    names = ", ".join(f'"{tasks[index].name}"' for index, _ in fullest.members[:3])
    share = max(float(visits[index]) for index, _ in fullest.members)
    where = f"unit {fullest.units[0]}" if units == 1 else f"{units} units"
    return rate, f'{where} of pool "{pool.name}" ({names}) gets {format_ratio(share)} of the frames'
