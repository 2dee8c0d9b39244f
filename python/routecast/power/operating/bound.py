"""What no simulation is needed for: the work that a load brings, the least power, and what is overloaded.

A frame's work does not depend on how it is scheduled: whoever forwards it spends at least its service time at active
power. So a unit is active at least for the work that comes to it, and the rest of the time draws no less than in its
deepest allowed state. Contention, interrupts, polls and wake-ups only add to that (S5, S6, S11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from routecast.evaluate.solve import lossless_pps
from routecast.evaluate.solve.flow import flow_graph
from routecast.evaluate.solve.fluid import solve_fluid
from routecast.load.offered import OfferedLoad
from routecast.power.operating.candidates import Candidate
from routecast.power.operating.setting import Setting
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel, TaskUnit

__all__ = ["CAPACITY_MARGIN", "Outlook", "Outlooks"]

CAPACITY_MARGIN = 0.05
"""How far the closed form may err about a capacity: a load is ruled out only where less of it would overload too."""

_ROUNDING = 1e-9


@value
class Outlook:
    """What is known of a router at a load before it is evaluated."""

    least_w: float = field("It draws no less, whatever its queues do, W")
    lossless_pps: float = field("Rate of this load that it carries without overload, by closed form, frames/s")
    is_overloaded: bool = field(
        "Whether it loses more than is allowed for certain: a load lower by the margin would be too much already"
    )


class Outlooks:
    """Outlooks of many candidates at many rates of one load; what depends on neither is found once.

    Parameters
    ----------
    load : OfferedLoad
        Frames, flows and arrivals; rates are given one by one.
    loss_ratio : float
        The loss that is allowed: frames dropped need no work.
    noise_ratio : callable
        How much less work than on average a trial at a load may bring.
    """

    def __init__(
        self, load: OfferedLoad, *, loss_ratio: float, noise_ratio: Callable[[OfferedLoad], float] = lambda _load: 0.0
    ) -> None:
        self._load, self._loss_ratio, self._noise_ratio = load, loss_ratio, noise_ratio
        self._lossless_pps: dict[Setting, float] = {}
        self._visits: dict[tuple[int, float], dict[str, float]] = {}

    def of(self, candidate: Candidate, rate_pps: float) -> Outlook:
        """Return what is known of a candidate at a rate."""
        load = self._load.at(rate_pps)
        setting = candidate.setting
        awake = replace(setting, sleep="")  # sleep takes no capacity
        if awake not in self._lossless_pps:
            self._lossless_pps[awake] = lossless_pps(candidate.model, load)
        if (setting.cores, rate_pps) not in self._visits:
            self._visits[setting.cores, rate_pps] = _offered_visits(candidate.model, load)
        visits = self._visits[setting.cores, rate_pps]
        return Outlook(
            least_w=_least_w(
                candidate.model, load, visits, loss_ratio=self._loss_ratio, noise_ratio=self._noise_ratio(load)
            ),
            lossless_pps=self._lossless_pps[awake],
            is_overloaded=self._is_overloaded(candidate.model, load, self._lossless_pps[awake]),
        )

    def _is_overloaded(self, model: RouterModel, load: OfferedLoad, capacity_pps: float) -> bool:
        surely_pps = load.rate_pps * (1.0 - CAPACITY_MARGIN)
        if surely_pps <= capacity_pps:
            return False
        if self._loss_ratio == 0.0:
            return True
        fluid = solve_fluid(model, load.at(surely_pps))
        return math.fsum(fluid.drops_pps().values()) > self._loss_ratio * float(fluid.offered.sum())


def _offered_visits(model: RouterModel, load: OfferedLoad) -> dict[str, float]:
    """Return frames per second that come to each task unit if none is dropped, and under ``""`` those offered."""
    graph = flow_graph(model, load)
    offered = graph.offered(load.rate_pps)
    rates = graph.arriving(offered, np.ones(graph.exit + 1)).sum(axis=1)
    visits = {task.name: float(rates[index]) for index, task in enumerate(graph.tasks)}
    return {"": float(offered.sum()), **visits}


def _least_w(
    model: RouterModel, load: OfferedLoad, visits: Mapping[str, float], *, loss_ratio: float, noise_ratio: float
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
    return total_w * (1.0 - _ROUNDING)


def _least_service_s(model: RouterModel, task: TaskUnit, load: OfferedLoad) -> float:
    """Seconds of a unit for a mean frame: full batches, the fastest unit, the least contention."""
    first = model.pool(task.needs[0].pool)
    polls = task.activation.kind != "dedicated"
    batch_frames = max(task.batch_frames, task.activation.budget_frames if polls else 1)
    seconds = task.service.mean_s(load.frames.mean_bytes, frequency_hz=first.frequency_hz, batch_frames=batch_frames)
    fastest = max(first.unit_speed_ratio, default=1.0)
    return seconds * first.contention.least_factor(first.units) / fastest
