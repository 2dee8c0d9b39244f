"""Latency and loss from queueing theory, where the model is such a queue; where none applies, the reason.

Every task unit that takes time is a station. A station is analysed if its units are its own, so that its
frames wait for nothing but each other. What arrives there decides the result: Poisson arrivals (kept by
routes that choose independently of the instants, and by M/M/c stations, Burke 1956), equal gaps, or gaps
known by two moments (Whitt's QNA rules, Bell System Technical Journal 62(9), 1983). Latency is from last bit
in to first bit out (S9): stations on the way and the wait for the outgoing link, not the transmission.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from routecast.evaluate._general_queues import MG1, ServiceMix
from routecast.evaluate._queue import MeanQueue, Queue
from routecast.evaluate.solve._arrivals import ArrivalProcess, departures, entering_arrivals, merge, split
from routecast.evaluate.solve._chance_loss import (
    BURSTS_ERROR,
    LOSS_ERROR,
    LOSS_ERROR_BURSTS,
    MAX_CHANCE_LOSS,
    ChanceLoss,
)
from routecast.evaluate.solve._delay_answer import (
    DelayAnswer,
    joined_notes,
    latency_error_s,
    link_matters,
    through_stations,
    total_delay,
)
from routecast.evaluate.solve._limits import queue_in_window, window_notes
from routecast.evaluate.solve._servers import ServiceTimes, is_exact, min_service_s, obstacle_of, servers_of
from routecast.evaluate.solve._stations import (
    MOST_RING_FRAMES,
    OVERLOADED,
    FullQueue,
    PolledQueue,
    PolledRing,
    Station,
    behind_link,
    law_of,
)
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.offered import line_rate_pps

if TYPE_CHECKING:
    from routecast.evaluate.solve._shared_queues import SharedQueues

_RARE_LOSS = 1e-3
_SURELY_NONE = 1e-9
"""Bound of the share of frames lost below which no other bound is asked for."""
_IDLE_LINK = 0.01
_JUST_FULL = 1e-3
_KNOWN = 1e-5


def delays(fluid: Fluid) -> DelayAnswer:
    """Return delays and losses: each task unit in the order of the graph as a queue."""
    walk = _DelayComputation(fluid)
    for index in range(len(fluid.graph.tasks)):
        walk.station(index)
    for number in range(fluid.graph.ports):
        walk.port_out(number)
    return walk.answer()


def _fluid_ratio(fluid: Fluid, index: int, rate: float) -> float:
    """Return the share of frames that the fluid state serves after the upstream losses by queueing theory."""
    if fluid.admitted_ratio[index] >= 1.0:
        return 1.0
    served = float(fluid.rates[index].sum() * fluid.admitted_ratio[index])
    return min(1.0, served / rate)


def _polled(fluid: Fluid, index: int, rate: float, queue: Queue, mix: ServiceMix) -> Queue:
    """Return an overloaded queue whose polls remove a batch at once."""
    activation, load = fluid.graph.tasks[index].activation, rate * mix.mean_s / max(servers_of(fluid, index), 1)
    one_by_one = activation.kind == "interrupt" and activation.discipline != "gated"
    batch_frames = fluid.costs[index].batch_frames
    if one_by_one or load <= 1.0 or batch_frames <= 1 or isinstance(queue, PolledRing):
        return queue
    return PolledQueue(queue=queue, service_s=mix.mean_s, load=load, batch_frames=batch_frames)


def _empties(fluid: Fluid, index: int) -> bool:
    """Whether each poll of one server takes all frames that wait."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    gated = task.activation.kind != "interrupt" or task.activation.discipline == "gated"
    takes_all = cost.batch_frames > 1 and task.queue_frames <= cost.batch_frames
    return gated and takes_all and servers_of(fluid, index) == 1 and task.queue_frames <= MOST_RING_FRAMES


def _whole_port(fluid: Fluid, rate: float, arriving: ArrivalProcess, station: Station) -> bool:
    """Whether one server of constant time serves all frames of one port, of one size, without loss."""
    spacing, graph = arriving.spacing, fluid.graph
    if spacing is None or spacing.origin < 0 or station.servers > 1 or station.mix.law != "deterministic":
        return False
    by_port = graph.by_port(fluid.offered)
    alone = math.isclose(rate, float(by_port[spacing.origin]), rel_tol=1e-9)
    return alone and station.mix.is_one_size and station.exact and fluid.load.frames.is_fixed


def _forwarded_bytes(
    fluid: Fluid, served: list[float], sizes: Mapping[int, tuple[float, ...]], sizes_bytes: tuple[int, ...]
) -> float:
    """Return the mean size of the frames that leave by the ports.

    ``sizes``: share of each frame size by node, where not that of the load.
    """
    frames = fluid.load.frames
    total, in_all = 0.0, 0.0
    for node in range(len(fluid.graph.tasks), fluid.graph.exit):
        rate, shares = served[node], sizes.get(node, ())
        mean = (
            math.fsum(share * size for share, size in zip(shares, sizes_bytes, strict=True))
            if shares
            else frames.mean_bytes
        )
        total, in_all = total + rate, in_all + rate * mean
    return in_all / total if total > 0.0 else frames.mean_bytes


class _DelayComputation:
    """Queue, loss and departures of each task unit and link, one after the other, and the answer from all of them."""

    def __init__(self, fluid: Fluid) -> None:
        self.fluid = fluid
        self.graph = fluid.graph
        self.arriving: dict[int, list[ArrivalProcess]] = {}
        self.admitted = np.ones(self.graph.exit + 1)
        self.queues: dict[int, Queue] = {}
        self.rates = self.graph.entering(fluid.offered)
        """Complete for a node after all nodes before it."""
        self.service = ServiceTimes(fluid)
        self.notes: list[str] = []
        self.latency_unknown = ""
        self.chance = ChanceLoss(fluid)
        self.of_bursts: set[int] = set()
        """Task units whose loss is that of on-off bursts at one server."""
        self.interruptions_overflow = False
        """Whether interruptions overflow a queue, where two moments say little about the loss."""
        self.port_wait_s: dict[int, float] = {}
        self.approximated: list[str] = []
        self.lost: list[int] = []
        """Task units whose losses the queues of shared units do not contain yet."""
        self.sizes: dict[int, tuple[float, ...]] = {}
        self.kinds: dict[str, str] = {}
        for node, arriving in entering_arrivals(fluid).items():
            self.arriving.setdefault(node, []).append(arriving)

    @cached_property
    def shared(self) -> SharedQueues:
        """The queues of task units that share units."""
        from routecast.evaluate.solve._shared_queues import SharedQueues

        return SharedQueues(self.fluid, self.service, self.rates, self.admitted, self.lost, self.notes.append)

    @cached_property
    def unknown_shares(self) -> list[str]:
        """Reason by task unit why its share of common units is unknown; empty where known."""
        from routecast.evaluate.solve._shared_queues import unknown_shares_of

        return unknown_shares_of(self.fluid)

    def _size_dependence(self, index: int, mix: ServiceMix) -> str:
        from routecast.evaluate.solve._shared_queues import size_dependence

        return size_dependence(self.fluid, index, mix)

    def station(self, index: int) -> None:
        """Compute one task unit: its queue, its loss, its departures."""
        self._station(index)
        if self.admitted[index] != 1.0:
            self.lost.append(index)
        self.graph.pass_on(index, self.rates, float(self.admitted[index]))

    def _station(self, index: int) -> None:
        fluid = self.fluid
        task, cost = self.graph.tasks[index], fluid.costs[index]
        if index not in self.arriving:
            return
        arriving = merge(self.arriving[index])
        self.kinds[task.name] = arriving.kind
        row = self.rates[index]
        rate = float(np.add.reduce(row))
        if rate <= 0.0:
            return
        departing = arriving
        window_queue = queue_in_window(fluid, index, arriving, rate)
        if window_queue is not None:
            self.queues[index] = window_queue
            self.admitted[index] = 1.0 - window_queue.loss_ratio
            # A frame that waits for room in a window keeps the units that other frames wait for.
            loss_bound = self.chance.in_window(index, rate, arriving, self.service.of(index, arriving.sizes))
            self.chance.record(task.name, rate, loss_bound, f'"{task.name}" is in a window and has little room')
            why = "follows a window, which its frames leave as its units allow"
            departing = ArrivalProcess(kind="unknown", rate_pps=rate, scv=arriving.scv, why=why, sizes=arriving.sizes)
        elif cost.busy_s > 0.0 or cost.interrupt_s > 0.0 or cost.sleep_s > 0.0:
            mix = self.service.of(index, arriving.sizes)
            admitted_sizes = self._admitted_sizes(index, rate, arriving, mix)
            served = replace(mix, shares=admitted_sizes) if admitted_sizes else mix
            queue, reason = self._queue(index, rate, arriving, served)
            if queue is None:
                self.latency_unknown = self.latency_unknown or f'"{task.name}" {reason}'
                of_bursts = None if obstacle_of(fluid, index) else self._of_bursts(index, mix)
                self.admitted[index] = 1.0 - of_bursts[0] if of_bursts is not None else _fluid_ratio(fluid, index, rate)
                share_reason = self.unknown_shares[index] or self._size_dependence(index, mix)
                why = f'"{task.name}" {reason}{share_reason and f", {share_reason}"}'
                if of_bursts is not None:
                    self.chance.record_bursts(task.name, rate, of_bursts, why)
                else:
                    loss_bound = 1.0 if share_reason else self.chance.at_task_unit(index, rate, arriving, mix)
                    is_close = self.admitted[index] >= 1.0 or fluid.steady is not None
                    if loss_bound > _SURELY_NONE and is_close and index in self.chance.fitting:
                        loss_bound = 0.0
                    self.chance.record(task.name, rate, loss_bound, why)
            else:
                self.queues[index] = _polled(self.fluid, index, rate, queue, mix)
                if isinstance(queue, MeanQueue):
                    self._record_loss_of_shared_queue(index, rate, arriving)
                self.interruptions_overflow |= (
                    cost.scatter_s > 0.0 and queue.loss_ratio > _RARE_LOSS and rate * mix.mean_s < 1.0
                )
                self.admitted[index] = min(1.0 - queue.loss_ratio, 1.0)
                if isinstance(queue, FullQueue):
                    of_bursts = self._of_bursts(index, mix)
                    if of_bursts is not None:
                        self.admitted[index] = 1.0 - of_bursts[0]
                        self.chance.record_bursts(task.name, rate, of_bursts, f'"{task.name}" gets long bursts')
                        why = f'"{task.name}" gets bursts that fill its queue at times only'
                        self.latency_unknown = self.latency_unknown or why
                    else:
                        loss_bound = self.chance.at_task_unit(index, rate, arriving, mix)
                        self.chance.record(task.name, rate, loss_bound, f'"{task.name}" gets long bursts')
            servers = max(servers_of(self.fluid, index), 1)
            departing = departures(
                arriving,
                queue,
                utilisation=min(rate * mix.mean_s / servers, 1.0),
                service=served,
                servers=servers,
                station=index,
                constant=mix.law == "deterministic" and is_exact(self.fluid, index),
                min_gap_s=min_service_s(fluid, index, mix) if servers == 1 else 0.0,
                sizes=admitted_sizes or arriving.sizes,
            )
        self.sizes[index] = departing.sizes
        for node, fraction in self.graph.edges[index]:
            share = float(row.dot(fraction)) / rate
            if share > 0.0:
                self.arriving.setdefault(node, []).append(
                    split(departing, rate * share, share, fluid, index, node, fraction)
                )

    def _of_bursts(self, index: int, mix: ServiceMix) -> tuple[float, float] | None:
        """Return bounds of the loss of on-off bursts at a task unit with units of its own; None where unknown."""
        before = math.prod(float(self.admitted[station]) for station in self.graph.leading_to(index))
        bounds = self.chance.of_bursts(index, mix, servers_of(self.fluid, index), 1.0 - before)
        if bounds is not None:
            self.of_bursts.add(index)
        return bounds

    def _record_loss_of_shared_queue(self, index: int, rate: float, arriving: ArrivalProcess) -> None:
        """Record the possible loss of a task unit on shared units, whose frames wait in its own, finite queue.

        At most the frames of all task units wait in it.
        """
        load, scv = self.shared.load(index)
        service = ServiceMix(shares=(1.0,), times_s=(1.0,), scv=scv, law="other")
        name, room = self.graph.tasks[index].name, self.graph.tasks[index].queue_frames
        loss_bound = self.chance.overflow(load, room, arriving, service)
        why = f'"{name}" has a queue of {room} frames before shared units, without a known closed form'
        before = self.chance.why_unknown
        self.chance.record(name, rate, loss_bound, why)
        if self.chance.why_unknown and not before:
            self.latency_unknown = self.latency_unknown or why

    def _admitted_sizes(self, index: int, rate: float, arriving: ArrivalProcess, mix: ServiceMix) -> tuple[float, ...]:
        """Return the share of each frame size among the frames that an overloaded queue admits; empty if unchanged."""
        fluid, task, servers = self.fluid, self.graph.tasks[index], max(servers_of(self.fluid, index), 1)
        if fluid.load.frames.is_fixed or rate * mix.mean_s < OVERLOADED * servers or obstacle_of(self.fluid, index):
            return ()
        if (
            arriving.spacing is None
            or arriving.spacing.origin < 0
            or fluid.load.arrivals.kind not in {"cbr", "poisson"}
        ):
            self.notes.append(f'"{task.name}": its loss is taken as the same for all frame sizes, an approximation')
            return ()
        from routecast.evaluate.solve._size_dependent_loss import admitted_by_size

        room = servers + task.queue_frames
        ratio = admitted_by_size(fluid, arriving.spacing.origin, rate, mix, servers=servers, room=room)
        admitted = [share * size_ratio for share, size_ratio in zip(mix.shares, ratio, strict=True)]
        return tuple(share / math.fsum(admitted) for share in admitted)

    def _queue(self, index: int, rate: float, arriving: ArrivalProcess, mix: ServiceMix) -> tuple[Queue | None, str]:
        obstacle = obstacle_of(self.fluid, index)
        if obstacle:
            return self.shared.queue(index, arriving), obstacle
        task, servers = self.graph.tasks[index], servers_of(self.fluid, index)
        frames = self.fluid.load.frames
        station = Station(
            rate_pps=rate,
            mix=mix,
            servers=servers,
            room=servers + task.queue_frames,
            independent=mix.is_one_size or frames.order == "random",
            exact=is_exact(self.fluid, index),
        )
        if mix.shares != self.service.of(index, arriving.sizes).shares:
            self.notes.append(
                f'"{task.name}" drops more small frames than large frames, because links leave longer gaps before these'
            )
            return station.full_queue, ""
        cost, is_woken = self.fluid.costs[index], False
        if max(cost.scatter_s, cost.interrupt_s, cost.sleep_s, cost.linger_s) > 0.0 or cost.sleep_states:
            from routecast.evaluate.solve._late_servers import late_queue

            queue, reason, is_woken = late_queue(self.fluid, index, station, arriving, self.notes.append)
        else:
            queue, reason = law_of(station, arriving, self.notes.append)
        if (
            queue is not None
            and not is_woken
            and queue.loss_ratio > 0.0
            and arriving.kind == "poisson"
            and _empties(self.fluid, index)
        ):
            queue = PolledRing(arrival_pps=rate, service=mix, ring_frames=task.queue_frames)
        if queue is not None and arriving.kind == "poisson":
            exact = not is_woken and _whole_port(self.fluid, rate, arriving, station)
            queue = behind_link(queue, arriving.link_wait_s, exact=exact)
        return queue, reason

    def port_out(self, number: int) -> None:
        """Compute the wait for the outgoing link."""
        fluid = self.fluid
        node = len(self.graph.tasks) + number
        port = fluid.model.ports[number]
        rate = float(np.add.reduce(self.rates[node]))
        if rate <= 0.0:
            return
        times = tuple(1.0 / line_rate_pps(port.link_bps, size) for size in self.service.sizes_bytes)
        arriving = merge(self.arriving.get(node, []))
        self.sizes[node] = arriving.sizes
        mix = ServiceMix(shares=arriving.sizes or self.service.shares, times_s=times)
        load = rate * mix.mean_s
        regular = arriving.kind == "regular" and mix.is_one_size
        spaced = arriving.spacing is not None and arriving.spacing.fits(max(times))
        if load < _IDLE_LINK or spaced or (regular and load <= 1.0 + 1e-9):
            self.port_wait_s[node] = 0.0
            return
        if load >= OVERLOADED:
            self.admitted[node] = 1.0 / load
            self.port_wait_s[node] = (port.tx_ring_frames + 0.5) * mix.mean_s
        elif load > 1.0 - _JUST_FULL:
            self.admitted[node] = min(1.0 / load, 1.0)
            self.latency_unknown = self.latency_unknown or f'"{port.name} out" is just full'
        else:
            # At most the wait through a full ring.
            longest_s = port.tx_ring_frames * mix.mean_s
            self.port_wait_s[node] = min(MG1(arrival_pps=rate, service=mix).waiting_mean_s, longest_s)
            if arriving.kind != "poisson":
                self.approximated.append(port.name)
        before = [at for at in range(len(self.graph.tasks)) if any(to == node for to, _ in self.graph.edges[at])]
        room = port.tx_ring_frames - self.chance.absences.on_link_frames(before, mix.mean_s)
        loss_bound = self.chance.overflow(load, room, arriving, mix)
        if loss_bound > _SURELY_NONE and load <= 1.0 + 1e-9:
            loss_bound = 0.0 if node in self.chance.fitting else min(loss_bound, self._behind_equal_links(number))
        self.chance.record(
            f"{port.name} out", rate, loss_bound, f'"{port.name} out" can fill its ring, without a known closed form'
        )

    def _behind_equal_links(self, number: int) -> float:
        node, before = len(self.graph.tasks) + number, {}
        for index in self.graph.leading_to(node):
            rate = float(np.add.reduce(self.rates[index]))
            cost = self.fluid.costs[index]
            if index in self.arriving and rate > 0.0 and cost.busy_s + cost.interrupt_s + cost.sleep_s > 0.0:
                arriving = merge(self.arriving[index])
                before[index] = rate, arriving, self.service.of(index, arriving.sizes)
        return self.chance.at_link(number, before)

    def answer(self) -> DelayAnswer:
        """Return the answer from the results of all task units and ports."""
        graph, fluid = self.graph, self.fluid
        arriving = self.rates.sum(axis=1)
        served: list[float] = (arriving * self.admitted).tolist()
        lost: list[float] = (arriving * (1.0 - self.admitted)).tolist()
        names = [task.name for task in graph.tasks] + [f"{port.name} out" for port in fluid.model.ports]
        least = 1e-12 * float(fluid.offered.sum())
        drops = {name: rate for name, rate in zip(names, lost, strict=False) if rate > least}
        work = {task.name: served[index] * self._work_ratio(index) for index, task in enumerate(graph.tasks)}
        queue_frames = {
            graph.tasks[index].name: queue.waiting_mean_s * served[index] for index, queue in self.queues.items()
        }
        latency = waiting = None
        latency_error = (0.0, 0.0)
        parts = (graph, self.rates, self.admitted, self.queues, self.port_wait_s)
        is_held_up = fluid.windows is not None and self.chance.is_held_up()
        if self.chance.why_unknown and (fluid.windows is None or is_held_up):
            self.latency_unknown = self.latency_unknown or f"what is lost is not known: {self.chance.why_unknown}"
        elif is_held_up:
            self.latency_unknown = self.latency_unknown or "interruptions or services that vary delay units in windows"
        elif self.chance.ratio > MAX_CHANCE_LOSS and not self.chance.why_unknown:
            self.latency_unknown = self.latency_unknown or f"up to {self.chance.ratio:.2g} of the frames may be lost"
        if self.latency_unknown:
            self.notes.append(f"no latency: {self.latency_unknown}")
        else:
            latency, waiting = total_delay(*parts)
            # Where frames do not arrive at a link at random instants, it is between 0 and the wait of random arrivals.
            guessed_s = through_stations(graph, self.rates, self.admitted, {}, self.port_wait_s)[2]
            latency_error = latency_error_s(
                latency.mean_s,
                guessed_s if self.approximated else 0.0,
                self.queues.values(),
                in_windows=fluid.windows is not None,
                interruptions_overflow=self.interruptions_overflow,
            )
            if self.approximated and link_matters(*parts):
                self.notes.append("the wait for outgoing links takes arrivals at random instants, an approximation")
        return DelayAnswer(
            drops_pps=drops,
            work_pps=work,
            forwarded_bytes=_forwarded_bytes(fluid, served, self.sizes, self.service.sizes_bytes),
            latency=latency,
            waiting=waiting,
            queue_frames=queue_frames,
            arriving=self.kinds,
            notes=joined_notes(self.notes + window_notes(fluid)),
            loss_unknown=self.chance.why_unknown,
            latency_error_s=latency_error,
            loss_error_ratio=self._loss_error(sum(drops.values()) / float(fluid.offered.sum())),
            chance_loss_ratio=self.chance.ratio,
            middle_loss_ratio=self.chance.middle,
            possible_losses=tuple(self.chance.places),
        )

    def _loss_error(self, lost_ratio: float) -> float:
        load = self.fluid.load
        is_smooth = load.frames.is_fixed and load.arrivals.kind != "on_off" and not self.interruptions_overflow
        error = LOSS_ERROR if is_smooth else LOSS_ERROR_BURSTS
        lost = (self.rates.sum(axis=1) * (1.0 - self.admitted))[: self.graph.exit]
        if self.of_bursts and set(np.flatnonzero(lost > _KNOWN * lost.sum()).tolist()) <= self.of_bursts:
            error = BURSTS_ERROR
        return error * min(1.0, lost_ratio / LOSS_ERROR)

    def _work_ratio(self, index: int) -> float:
        """Return the mean work of the frames served at a task unit, relative to that of the load's mix."""
        sizes = self.sizes.get(index, ())
        if not sizes or sizes == self.service.shares:
            return 1.0
        whole_s = self.service.of(index).mean_s
        return self.service.of(index, sizes).mean_s / whole_s if whole_s > 0.0 else 1.0
