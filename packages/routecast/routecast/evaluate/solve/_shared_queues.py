"""Task units that share units with others: why their shares are unknown, and their common queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from routecast.evaluate._general_queues import ServiceMix
from routecast.evaluate._queue import MeanQueue, Queue
from routecast.evaluate._two_moment_queues import GIGc
from routecast.evaluate.solve._arrivals import ArrivalProcess
from routecast.evaluate.solve._chance_loss import LOSS_ERROR
from routecast.evaluate.solve._scheduling_shares import Component
from routecast.evaluate.solve._servers import ServiceTimes, servers_of
from routecast.evaluate.solve._stations import SharedUnits
from routecast.evaluate.solve._unknown_shares import why_unknown
from routecast.evaluate.solve.flow import RatesUnderLoss, Vector
from routecast.evaluate.solve.fluid import Fluid

_KNOWN = 1e-5
_OVERLOADED = 0.95
"""Admitted share below which a queue is full but for moments."""


def size_dependence(fluid: Fluid, index: int, mix: ServiceMix) -> str:
    """Return why the loss of an overloaded queue at shared units depends on frame sizes; empty if it does not."""
    shared = any(len(part.members) > 1 for part, _ in fluid.uses[index])
    if not shared or fluid.admitted_ratio[index] >= 1.0 or max(mix.times_s) <= min(mix.times_s):
        return ""
    return "and large frames find room more often than small frames, which follow each other more closely"


def unknown_shares_of(fluid: Fluid) -> list[str]:
    """Return by task unit why its share of common units is unknown; empty where known."""
    tasks = fluid.graph.tasks
    rates, factor = fluid.rates.sum(axis=1).tolist(), fluid.factor.tolist()
    reasons = [""] * len(tasks)
    for part in fluid.components:
        threads = fluid.steady is not None
        why = why_unknown(
            part, tasks, fluid.costs, rates, factor, threads=threads, always_full=_are_always_full(fluid, part)
        )
        for index, _ in part.members:
            reasons[index] = reasons[index] or why or _unknown_switches(fluid, part, index)
    return reasons


def _are_always_full(fluid: Fluid, part: Component) -> bool:
    """Whether all task units of a unit are overloaded, so that each poll is a full batch, whatever the turns."""
    overloaded = (fluid.admitted_ratio[member] <= _OVERLOADED for member, _ in part.members)
    return fluid.steady is None and len(part.units) == 1 and all(overloaded)


def _unknown_switches(fluid: Fluid, part: Component, index: int) -> str:
    """Return why the switches of an overloaded task unit are not known; empty if they are, or cost little.

    Every grant switches where task units that serve one frame at a time take turns on one unit, and all of them
    have frames all the time. Elsewhere a unit may be granted to the same task unit again.
    """
    tasks = fluid.graph.tasks
    if fluid.steady is not None:
        return ""  # the fixed point of threads counts their switches
    cost = part.pool.switch_cost_s / fluid.costs[index].batch_frames
    error = LOSS_ERROR if _are_always_full(fluid, part) else LOSS_ERROR / 2.0
    if cost <= error * fluid.costs[index].busy_s or fluid.admitted_ratio[index] >= 1.0:
        return ""
    members = [tasks[member] for member, _ in part.members]
    takes_turns = len(part.units) == 1 and all(
        task.parallel == 1 and task.request == "task" and task.weight == members[0].weight for task in members
    )
    if takes_turns and all(fluid.admitted_ratio[member] < 1.0 for member, _ in part.members):
        return ""
    return "and how often grants switch its units is not known"


class SharedQueues:
    """The queues of task units that share units, under the losses that are computed so far.

    ``rates`` and ``admitted``: arriving rates and served shares by node, which go on to change; ``lost``: task units
    whose losses the rates do not contain yet.
    """

    def __init__(
        self,
        fluid: Fluid,
        service: ServiceTimes,
        rates: Vector,
        admitted: Vector,
        lost: list[int],
        on_note: Callable[[str], None],
    ) -> None:
        self._fluid, self._service, self._rates, self._admitted = fluid, service, rates, admitted
        self._on_note = on_note
        self._rates_under_loss: RatesUnderLoss | None = None
        """Task units that share units may follow later on the path, where losses are not computed yet."""
        self._lost = lost
        self._units: dict[int, SharedUnits] = {}
        self._queue_of_component: dict[int, MeanQueue | None] = {}
        """By number of a shared component: its queue, valid until a loss changes its arrivals."""

    def load(self, index: int) -> tuple[float, float]:
        """Return the load of the shared units of a task unit, and the squared variation of their services."""
        (part, _), *_ = self._fluid.uses[index]
        under_loss = self._rates_under_loss
        return self._units[part.number].load(under_loss.total if under_loss is not None else self._rates.sum(axis=1))

    def queue(self, index: int, arriving: ArrivalProcess) -> Queue | None:
        """Return the queue of a task unit on shared units; None where none is known."""
        fluid = self._fluid
        parts = [part for part, _ in fluid.uses[index]]
        if len(parts) != 1 or arriving.kind == "unknown" or fluid.load.arrivals.kind != "poisson":
            return None
        queue = self._common_queue(parts[0])
        if queue is not None and "approximat" in queue.method:
            name = parts[0].pool.name
            self._on_note(f'pool "{name}" is taken as one queue of the frames of all its task units, an approximation')
        if queue is None:
            return None
        # A task unit that serves fewer frames at once than there are units also waits for itself.
        mix, servers = self._service.of(index), servers_of(fluid, index)
        waiting_s = queue.waiting_s
        if servers < len(parts[0].units):
            rate = float(np.add.reduce(self._rates[index]))
            if rate * mix.mean_s >= servers:
                return None
            own = GIGc(
                arrival_pps=rate, arrival_scv=1.0, service_s=mix.mean_s, service_scv=mix.squared_cv, servers=servers
            )
            waiting_s = max(waiting_s, own.waiting_mean_s)
        return replace(queue, service_s=mix.mean_s, waiting_s=waiting_s)

    def _common_queue(self, part: Component) -> MeanQueue | None:
        if part.number not in self._units:
            self._units[part.number] = SharedUnits(part, self._fluid, self._service.of)
        units = self._units[part.number]
        if not units.plain:
            return None
        if self._rates_under_loss is None:
            self._rates_under_loss = RatesUnderLoss(self._fluid.graph, self._fluid.offered, self._admitted)
        elif self._rates_under_loss.apply_losses(self._lost):
            self._queue_of_component.clear()
        self._lost.clear()
        if part.number not in self._queue_of_component:
            self._queue_of_component[part.number] = units.queue(self._rates_under_loss.total)
        return self._queue_of_component[part.number]
