"""What no simulation is needed for: the work that a load brings, the least power, and what is overloaded.

A frame's work does not depend on how it is scheduled: whoever forwards it spends at least its service time at active
power. So a unit is active at least for the work that comes to it, and the rest of the time draws no less than in its
deepest allowed state. Contention, interrupts, polls and wake-ups only add to that (S5, S6, S11).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routecast.evaluate.solve.flow import flow_graph
from routecast.evaluate.solve.fluid import solve_fluid
from routecast.load.offered import OfferedLoad
from routecast.router.model import RouterModel, TaskUnit

__all__ = ["CAPACITY_MARGIN", "Outlook", "offered_visits", "outlook"]

CAPACITY_MARGIN = 0.05
"""How far the closed form may err about a capacity: a load is ruled out only where less of it would overload too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is known of a router at a load before it is simulated.

    Parameters
    ----------
    least_w : float
        It draws no less, whatever its queues do.
    fluid_loss_ratio : float
        Loss of a load that is lower by the margin of the closed form: more than 0 means overload for certain.
    """

    least_w: float
    fluid_loss_ratio: float


def offered_visits(model: RouterModel, load: OfferedLoad) -> dict[str, float]:
    """Return frames per second that come to each task unit if none is dropped, and under ``""`` those offered."""
    graph = flow_graph(model, load)
    offered = graph.offered(load.rate_pps)
    rates = graph.arriving(offered, np.ones(graph.exit + 1)).sum(axis=1)
    visits = {task.name: float(rates[index]) for index, task in enumerate(graph.tasks)}
    return {"": float(offered.sum()), **visits}


def outlook(
    model: RouterModel,
    load: OfferedLoad,
    *,
    loss_ratio: float,
    visits: Mapping[str, float] | None = None,
    noise_ratio: float = 0.0,
) -> Outlook:
    """Return what is known of a router at a load.

    Parameters
    ----------
    model : RouterModel
    load : OfferedLoad
    loss_ratio : float
        The loss that is allowed: frames dropped need no work.
    visits : mapping or None
        :func:`offered_visits`, where known from a router with the same routes.
    noise_ratio : float
        How much less work than on average a finite trial may bring.
    """
    known = offered_visits(model, load) if visits is None else visits
    return Outlook(
        least_w=_least_w(model, load, known, loss_ratio=loss_ratio, noise_ratio=noise_ratio),
        fluid_loss_ratio=_fluid_loss_ratio(model, load),
    )


def _least_w(
    model: RouterModel,
    load: OfferedLoad,
    visits: Mapping[str, float],
    *,
    loss_ratio: float,
    noise_ratio: float,
) -> float:
    lost_pps = loss_ratio * visits[""]
    total_w = 0.0
    for pool in model.pools:
        power = pool.power
        if power is None:
            continue
        tasks = [(task, need.units) for task in model.tasks for need in task.needs if need.pool == pool.name]
        busy = spinning = 0.0
        for task, units in tasks:
            frames_pps = max(visits[task.name] - lost_pps, 0.0) * (1.0 - noise_ratio)
            work = frames_pps * _least_service_s(model, task, load) * units
            if task.activation.kind == "polling":
                spinning += max(task.parallel * units, work)
            else:
                busy += work
        active = min(busy + spinning, float(pool.units))
        resting_w = min([power.idle_w, *(state.power_w for state in power.sleep)])
        total_w += power.base_w + pool.units * min(resting_w, power.active_w)
        total_w += active * max(power.active_w - resting_w, 0.0)
    return total_w


def _least_service_s(model: RouterModel, task: TaskUnit, load: OfferedLoad) -> float:
    """Seconds of a unit for a mean frame: full batches, the fastest unit, the least contention."""
    first = model.pool(task.needs[0].pool)
    polls = task.activation.kind != "dedicated"
    batch_frames = max(task.batch_frames, task.activation.budget_frames if polls else 1)
    seconds = task.service.mean_s(
        load.frames.mean_bytes, frequency_hz=first.frequency_hz, batch_frames=batch_frames
    )
    fastest = max(first.unit_speed_ratio, default=1.0)
    factors: Sequence[float] = () if first.contention.is_none else first.contention.table
    least = min((1.0, *factors))
    if factors:  # the last step of a table is continued
        least = min(least, first.contention.factor(first.units))
    return seconds * max(least, 0.0) / fastest


def _fluid_loss_ratio(model: RouterModel, load: OfferedLoad) -> float:
    """Loss without fluctuation of a load that is lower by the margin."""
    fluid = solve_fluid(model, load.at(load.rate_pps * (1.0 - CAPACITY_MARGIN)))
    offered_pps = float(fluid.offered.sum())
    lost_pps = math.fsum(fluid.drops_pps().values())
    return max(lost_pps / offered_pps, 0.0) if lost_pps > 1e-6 * offered_pps else 0.0
