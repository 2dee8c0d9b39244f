"""Losses by fluctuation where no law gives them: their bounds, and whether the loss still counts as known."""

from __future__ import annotations

import math
from functools import cached_property

from routecast.evaluate._queueing import GIG1K, ServiceMix
from routecast.evaluate.solve._arrivals import ArrivalProcess
from routecast.evaluate.solve._cost import slowest_over_mean
from routecast.evaluate.solve._unknown_shares import SPREAD, Absences, absences_of
from routecast.evaluate.solve.fluid import Fluid

_MAX_CHANCE_LOSS = 5e-3
"""Greatest loss by chance with which the loss still counts as known; the answer states it."""
_NOTABLE_LOSS = 1e-5
_LIGHT = 0.6


class ChanceLoss:
    """The losses by fluctuation of the task units and links of a fluid state.

    ``ratio``: upper bound of the loss, as a share of the offered load; ``why_unknown``: reason why it is unknown, empty
    if it is known; ``places``: task units and links that may lose a notable share.
    """

    def __init__(self, fluid: Fluid) -> None:
        self._fluid = fluid
        self.ratio = 0.0
        self.why_unknown = ""
        self.places: list[str] = []

    @cached_property
    def absences(self) -> Absences:
        """Causes other than fluctuation that fill a queue."""
        return absences_of(self._fluid)

    @cached_property
    def fitting(self) -> frozenset[int]:
        """Task units and ports whose queues certainly hold all frames, because no chance decides."""
        from routecast.evaluate.solve._burst_bounds import fitting_places

        return fitting_places(self._fluid)

    def record(self, place: str, rate: float, loss_bound: float, why: str) -> None:
        """Record the possible loss by fluctuation at a task unit or port."""
        lost_ratio = min(loss_bound, 1.0) * rate / float(self._fluid.offered.sum())
        self.ratio += lost_ratio
        if lost_ratio > _NOTABLE_LOSS:
            self.places.append(place)
        if self.ratio > _MAX_CHANCE_LOSS:
            self.why_unknown = self.why_unknown or why

    def at_task_unit(self, index: int, rate: float, arriving: ArrivalProcess, mix: ServiceMix) -> float:
        """Return a bound of the loss by fluctuation at a task unit without a known law; 1 where no bound is known.

        Frames that arrive while the server is away (moderation, wake-up, turns of others) and bursts of the station
        before reduce the room.
        """
        fluid, task = self._fluid, self._fluid.graph.tasks[index]
        load = self.absences.load[index]
        overloaded = load >= 1.0 or fluid.admitted_ratio[index] < 1.0
        if overloaded and fluid.steady is not None:
            return 1.0  # the rates of threads in overload are approximate themselves
        if load >= 1.0 and slowest_over_mean(task, fluid.model, fluid.costs[index]) > 1.0:
            return 1.0  # on the slowest unit, or with a migration for every grant, it is overloaded
        away_frames = rate * self.absences.away_s[index]
        room = task.queue_frames - away_frames - SPREAD * math.sqrt(away_frames) - self.absences.bursts_frames[index]
        return self.overflow(load, room, arriving, mix)

    def in_window(self, index: int, rate: float, arriving: ArrivalProcess, mix: ServiceMix) -> float:
        """Return a bound of the loss by fluctuation where a window begins; inside it, frames always find room."""
        windows, window_rates = self._fluid.windows, self._fluid.window_rates
        assert windows is not None
        assert window_rates is not None
        if self.is_held_up():
            return 1.0  # a delayed unit delays all windows that wait for it
        if index not in windows.enter:
            return 0.0
        load = rate / float(window_rates.max_pps[windows.enter.index(index)])
        if load > _LIGHT:
            return 1.0  # the joint throughput of windows is itself an approximation
        return self.overflow(
            load, self._fluid.graph.tasks[index].queue_frames - self.absences.bursts_frames[index], arriving, mix
        )

    def is_held_up(self) -> bool:
        """Whether interruptions or highly variable services delay units inside windows."""
        windows, fluid = self._fluid.windows, self._fluid
        assert windows is not None
        services = [self._fluid.graph.tasks[inside].service for inside in windows.inside]
        is_interrupted = any(pool.interruptions is not None for pool in fluid.model.pools)
        return is_interrupted or any(service.squared_cv > 1.0 for service in services)

    def overflow(self, load: float, room: float, arriving: ArrivalProcess, mix: ServiceMix) -> float:
        """Return a bound of the loss by fluctuation in a queue with ``room`` frames, by the diffusion of GI/G/1/K.

        Unknown arrivals count as random, and all variation counts twice, or three times for on-off arrivals, whose
        bursts pass routes undivided. For 600 random routers without overload and a bound of at most 0.5 %, no simulated
        loss exceeded the bound by more than 0.5 %.
        """
        if room <= 0.0 or load <= 0.0:
            return 1.0 if load > 0.0 else 0.0
        scv = max(arriving.scv if math.isfinite(arriving.scv) else 0.0, self._fluid.load.arrivals.interarrival_scv, 1.0)
        caution = 3.0 if self._fluid.load.arrivals.kind == "on_off" else 2.0
        queue = GIG1K(
            arrival_pps=load,
            arrival_scv=caution * scv,
            service_s=1.0,
            service_scv=caution * max(mix.squared_cv, 0.0),
            capacity_frames=math.floor(room) + 1,
        )
        return queue.loss_ratio - max(0.0, 1.0 - 1.0 / load)
