"""Task units as servers: service times under contention, frames served at once, and why one is no queue of its own."""

from __future__ import annotations

import math
from dataclasses import replace

from routecast.evaluate._general_queues import Completion, ServiceMix
from routecast.evaluate.solve._cost import Cost, slowest_over_mean
from routecast.evaluate.solve._scheduling_shares import served_at_once
from routecast.evaluate.solve.fluid import Fluid
from routecast.router.model import Interruptions, TaskUnit

_KNOWN = 1e-5


def completion_times(mix: ServiceMix, cost: Cost, interruptions: Interruptions | None = None) -> ServiceMix:
    """Return the completion times of interrupted services; ``mix`` contains their means already.

    ``interruptions``: those of the one unit that serves; None where it needs several units.

    ``E[C²] = E[S²]·s² + E[S]·r·E[D²]`` with ``s = 1 + r·E[D]`` at rate r (Avi-Itzhak and Naor, Operations Research
    11(3), 1963); one variation for all sizes gives the two moments of the mix.
    """
    if cost.scatter_s <= 0.0:
        return mix
    second = math.fsum(share * time**2 for share, time in zip(mix.shares, mix.times_s, strict=True))
    if second <= 0.0:
        return mix
    completion = Completion(law=mix.law, scv=mix.scv, interruptions=interruptions) if interruptions else None
    scv = mix.scv + cost.scatter_s / cost.stretch * mix.mean_s / second
    return replace(mix, scv=scv, law="other", completion=completion)


class ServiceTimes:
    """Service times under the contention of a fluid state."""

    def __init__(self, fluid: Fluid) -> None:
        self.fluid = fluid
        share_by_bytes = fluid.load.frames.share_by_bytes
        self.sizes_bytes = tuple(share_by_bytes)
        self.shares = tuple(share_by_bytes.values())
        """Shares of the frame sizes of the load, smallest first."""
        self._mixes: dict[tuple[object, ...], ServiceMix] = {}

    def of(self, index: int, shares: tuple[float, ...] = ()) -> ServiceMix:
        """Return the service times of a task unit for these shares of the frame sizes, or for those of the load."""
        fluid = self.fluid
        task, cost = fluid.graph.tasks[index], fluid.costs[index]
        # The interrupt that begins a busy period is its set-up, not a part of its services.
        is_frame_alone = cost.drains and cost.batch_s <= 0.0
        mean_s = cost.frame_s * float(fluid.factor[index]) if is_frame_alone else float(fluid.service_s[index])
        pool = task.needs[0].pool if task.needs else ""
        key = (task.service, pool, task.batch_frames, mean_s, cost.scatter_s, cost.stretch, shares)
        if key not in self._mixes:
            self._mixes[key] = self._mix(task, cost, mean_s, shares or self.shares)
        return self._mixes[key]

    def _mix(self, task: TaskUnit, cost: Cost, mean_s: float, shares: tuple[float, ...]) -> ServiceMix:
        frequency_hz = self.fluid.model.pool(task.needs[0].pool).frequency_hz if task.needs else None
        times = [
            task.service.mean_s(size, frequency_hz=frequency_hz, batch_frames=task.batch_frames)
            for size in self.sizes_bytes
        ]
        load_mean_s = math.fsum(share * time for share, time in zip(self.shares, times, strict=True))
        scale = mean_s / load_mean_s if load_mean_s > 0.0 else 1.0
        law = task.service.variation
        mix = ServiceMix(
            shares=shares, times_s=tuple(time * scale for time in times), scv=task.service.squared_cv, law=law
        )
        is_single = len(task.needs) == 1 and task.needs[0].units == 1
        return completion_times(
            mix, cost, self.fluid.model.pool(task.needs[0].pool).interruptions if is_single else None
        )


def servers_of(fluid: Fluid, index: int) -> int:
    """Return the number of frames that may be in service at a time."""
    task = fluid.graph.tasks[index]
    if not fluid.uses[index]:
        return task.parallel
    part, units = fluid.uses[index][0]
    return served_at_once(task, len(part.units) // units)


def is_exact(fluid: Fluid, index: int) -> bool:
    """Whether the service time is exact, not a mean over contention."""
    return abs(float(fluid.factor[index]) - 1.0) <= _KNOWN


def min_service_s(fluid: Fluid, index: int, mix: ServiceMix) -> float:
    """Return the least uninterrupted service time of a task unit, s; 0 where unknown."""
    constant = fluid.graph.tasks[index].service.variation == "deterministic" and is_exact(fluid, index)
    return min(mix.times_s) / fluid.costs[index].stretch if constant else 0.0


def obstacle_of(fluid: Fluid, index: int) -> str:
    """Return the reason why a task unit is not a queue of its own; empty if it is one."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    if fluid.steady is not None:
        threaded = task.thread or task.holds_back or task.activation.kind == "thread"
        if threaded or fluid.steady.machine.propagation.is_looked_at(index):
            return "is a thread, for whose turns and rings no closed form is known"
    if len(task.needs) > 1:
        return "needs units of several pools at once"
    if task.needs and slowest_over_mean(task, fluid.model, cost) > 1.0 + _KNOWN:
        pool = fluid.model.pool(task.needs[0].pool)
        differ = "differ in speed" if pool.unit_speed_ratio else "are changed at a cost"
        return f'uses units of pool "{pool.name}" that {differ}'
    costs = cost.interrupt_s > 0.0 and not cost.drains
    if task.activation.kind == "interrupt" and (costs or cost.moderation_s > 0.0):
        return "is activated by interrupts"
    if cost.batch_s > 0.0:
        return "pays a cost per batch"
    if servers_of(fluid, index) == 0:
        return "can have fewer frames in service than it asks for"
    for part, _ in fluid.uses[index]:
        if len(part.members) > 1:
            other = next(member for member, _ in part.members if member != index)
            return f'shares units of pool "{part.pool.name}" with "{fluid.graph.tasks[other].name}"'
    return ""
