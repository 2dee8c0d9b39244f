"""Service times of each task unit's frames by size, found once for task units that are alike."""

from __future__ import annotations

import math

from routecast.evaluate.queueing.general import ServiceMix
from routecast.evaluate.solve.cost import Cost
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.solve.shared_machine import completed
from routecast.router.model import TaskUnit

__all__ = ["ServiceTimes"]


class ServiceTimes:
    """Service times under the contention of a fluid state."""

    def __init__(self, fluid: Fluid) -> None:
        self.fluid = fluid
        share_by_bytes = fluid.load.frames.share_by_bytes
        self.sizes_bytes = tuple(share_by_bytes)
        self.shares = tuple(share_by_bytes.values())
        """Of the frame sizes of the load, smallest first."""
        self._known: dict[tuple[object, ...], ServiceMix] = {}

    def of(self, index: int, shares: tuple[float, ...] = ()) -> ServiceMix:
        """Return the service times of a task unit for other shares of the frame sizes, or the load's own."""
        fluid = self.fluid
        task, cost = fluid.graph.tasks[index], fluid.costs[index]
        # The interrupt that opens a busy cycle is its set-up, not a part of its services.
        alone = cost.drains and cost.batch_s <= 0.0
        mean_s = cost.frame_s * float(fluid.factor[index]) if alone else float(fluid.service_s[index])
        pool = task.needs[0].pool if task.needs else ""
        # The model holds its services for as long as this lives, so that their identities are their own.
        key = (id(task.service), pool, task.batch_frames, mean_s, cost.scatter_s, cost.stretch, shares)
        if key not in self._known:
            self._known[key] = self._found(task, cost, mean_s, shares or self.shares)
        return self._known[key]

    def _found(self, task: TaskUnit, cost: Cost, mean_s: float, shares: tuple[float, ...]) -> ServiceMix:
        frequency_hz = self.fluid.model.pool(task.needs[0].pool).frequency_hz if task.needs else None
        times = [
            task.service.mean_s(size, frequency_hz=frequency_hz, batch_frames=task.batch_frames)
            for size in self.sizes_bytes
        ]
        whole = math.fsum(share * time for share, time in zip(self.shares, times, strict=True))
        scale = mean_s / whole if whole > 0.0 else 1.0
        law = task.service.variation
        mix = ServiceMix(
            shares=shares,
            times_s=tuple(time * scale for time in times),
            scv=task.service.squared_cv,
            law=law if law in {"deterministic", "exponential", "gamma"} else "other",
        )
        return completed(mix, cost)
