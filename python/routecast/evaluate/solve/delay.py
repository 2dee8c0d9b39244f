"""Latency and loss from queueing theory, where the model is such a queue; where none applies, the reason.

Every task unit that takes time is a station. A station is analysed if its units are its own, so that its
frames wait for nothing but each other. What arrives there decides the result: Poisson arrivals (kept by
routes that choose independently of the instants, and by M/M/c stations, Burke 1956), equal gaps, or gaps
known by two moments (Whitt's QNA rules, Bell System Technical Journal 62(9), 1983). Latency is from last bit
in to first bit out (S9): stations on the way and the wait for the outgoing link, not the transmission.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from routecast.evaluate.queueing.general import DD1, MD1, MG1, MG1K, GIGc, ServiceMix
from routecast.evaluate.queueing.markov import MMc, MMcK, Queue, Tandem, quantile_s
from routecast.evaluate.solve.arrivals import Arriving, depart, enter, merge, split
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.solve.share import served_at_once
from routecast.evaluate.solve.stations import FullQueue, shared_queue
from routecast.evaluate.trial import Delay
from routecast.load.offered import line_rate_pps

__all__ = ["DelayAnswer", "delays"]

_NOTE = re.compile(r'("[^"]*")(.*)', re.DOTALL)
_MOST_STATES = 2048
_NO_LOSS = 1e-9
_MOST_ARRIVAL_SCV = 2.0
_OVERLOADED = 1.02
_IDLE_LINK = 0.01
_JUST_FULL = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayAnswer:
    """Loss by place, served rates by task unit, latency and waiting where known, queue lengths, and notes."""

    drops_pps: Mapping[str, float]
    served_pps: Mapping[str, float]
    latency: Delay | None = None
    waiting: Delay | None = None
    queue_frames: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def delays(fluid: Fluid) -> DelayAnswer:
    """Walk the task graph in order, take each station as a queue, add up delays and losses."""
    walk = _Walk(fluid)
    for index in range(len(fluid.graph.tasks)):
        walk.station(index)
    for number in range(fluid.graph.ports):
        walk.port_out(number)
    return walk.answer()


class _Walk:
    def __init__(self, fluid: Fluid) -> None:
        self.fluid = fluid
        self.graph = fluid.graph
        self.arriving: dict[int, list[Arriving]] = {}
        self.admitted = np.ones(self.graph.exit + 1)
        self.queues: dict[int, Queue] = {}
        self.rates = self.graph.arriving(fluid.offered, self.admitted)
        self.notes: list[str] = []
        self.unknown = ""
        self.port_wait_s: dict[int, float] = {}
        self.port_approximate = False
        for node, arriving in enter(fluid).items():
            self.arriving.setdefault(node, []).append(arriving)

    def station(self, index: int) -> None:
        """Take one task unit: its queue, its loss, what departs from it."""
        fluid = self.fluid
        task, cost = self.graph.tasks[index], fluid.costs[index]
        rate = float(self.rates[index].sum())
        arriving = merge(self.arriving.get(index, []))
        if rate <= 0.0:
            return
        departing = arriving
        if cost.busy_s > 0.0 or cost.interrupt_s > 0.0:
            queue, reason = self._queue(index, rate, arriving)
            fluid_ratio = self._fluid_ratio(index, rate)
            if queue is None:
                self.unknown = self.unknown or f'"{task.name}" {reason}'
                self.admitted[index] = fluid_ratio
            else:
                self.queues[index] = queue
                self.admitted[index] = min(1.0 - queue.loss_ratio, 1.0)
            if self.admitted[index] < 1.0:
                self.rates = self.graph.arriving(fluid.offered, self.admitted)
            departing = depart(
                arriving,
                queue,
                utilisation=min(rate * float(fluid.service_s[index]) / max(self._units(index), 1), 1.0),
                service_scv=self._mix(index).squared_cv,
                servers=max(self._units(index), 1),
            )
        for node, fraction in self.graph.edges[index]:
            share = float(self.rates[index] @ fraction) / rate
            if share > 0.0:
                self.arriving.setdefault(node, []).append(
                    split(departing, rate * share, share, fluid, index, node)
                )

    def _fluid_ratio(self, index: int, rate: float) -> float:
        """Share that the fluid state serves, of what arrives after the losses found by queueing theory upstream."""
        fluid = self.fluid
        served = float(fluid.rates[index].sum() * fluid.admitted_ratio[index])
        if fluid.admitted_ratio[index] >= 1.0:
            return 1.0
        return min(1.0, served / rate)

    def _mix(self, index: int) -> ServiceMix:
        fluid, task = self.fluid, self.graph.tasks[index]
        pool = fluid.model.pool(task.needs[0].pool) if task.needs else None
        shares = fluid.load.frames.share_by_bytes
        mean_s = float(fluid.service_s[index])
        times = [
            task.service.mean_s(
                size, frequency_hz=pool.frequency_hz if pool else None, batch_frames=task.batch_frames
            )
            for size in shares
        ]
        whole = math.fsum(share * time for share, time in zip(shares.values(), times, strict=True))
        scale = mean_s / whole if whole > 0.0 else 1.0
        law = task.service.variation
        return ServiceMix(
            shares=tuple(shares.values()),
            times_s=tuple(time * scale for time in times),
            scv=task.service.squared_cv,
            law=law if law in {"deterministic", "exponential", "gamma"} else "other",
        )

    def _obstacle(self, index: int) -> str:
        """Why a task unit is no queue of its own; empty if it is one."""
        fluid, task, cost = self.fluid, self.graph.tasks[index], self.fluid.costs[index]
        if len(task.needs) > 1:
            return "needs units of several pools at once"
        if task.activation.kind == "interrupt" and (cost.interrupt_s > 0.0 or cost.moderation_s > 0.0):
            return "is activated by interrupts"
        if cost.batch_s > 0.0:
            return "pays a cost per batch"
        if self._units(index) == 0:
            return "can have fewer frames in service than it asks for"
        for part in fluid.components:
            if any(member == index for member, _ in part.members) and len(part.members) > 1:
                others = [fluid.graph.tasks[member].name for member, _ in part.members if member != index]
                return f'shares units of pool "{part.pool.name}" with "{others[0]}"'
        return ""

    def _units(self, index: int) -> int:
        """How many frames may be in service at once."""
        task = self.graph.tasks[index]
        for part in self.fluid.components:
            for member, units in part.members:
                if member == index:
                    return served_at_once(task, len(part.units) // units)
        return task.parallel

    def _queue(self, index: int, rate: float, arriving: Arriving) -> tuple[Queue | None, str]:
        obstacle = self._obstacle(index)
        if obstacle:
            return self._shared_queue(index, arriving), obstacle
        task, mix, servers = self.graph.tasks[index], self._mix(index), self._units(index)
        if not bool(np.isclose(self.fluid.factor[index], 1.0)):
            self.notes.append(
                f'"{task.name}": queueing formula with the mean contention factor, an approximation'
            )
        room = servers + task.queue_frames
        load = rate * mix.mean_s / servers
        if arriving.kind == "poisson" and load < 50.0:
            queue = self._poisson_queue(rate, mix, servers, room, load)
            if queue is not None:
                return queue, ""
        if arriving.kind == "regular" and mix.law == "deterministic" and mix.is_one_size and servers == 1:
            return DD1(arrival_pps=rate, service_s=mix.mean_s, capacity_frames=room), ""
        if load >= _OVERLOADED:
            self.notes.append(
                f'"{task.name}" is overloaded: its queue is taken as always full (Little\'s law)'
            )
            return FullQueue(
                arrival_pps=rate, service_s=mix.mean_s, servers=servers, capacity_frames=room
            ), ""
        if arriving.kind == "renewal" and arriving.scv > _MOST_ARRIVAL_SCV:
            return (
                None,
                f"gets bursts (squared coefficient of variation {arriving.scv:.3g}) that no approximation covers",
            )
        independent = mix.is_one_size or self.fluid.load.frames.order == "random"
        if arriving.kind == "regular" and not independent:
            return (
                None,
                "serves a fixed sequence of frame sizes at equal gaps, of which no closed form is known",
            )
        if arriving.kind in {"renewal", "poisson", "regular"} and load < 1.0:
            approximation = GIGc(
                arrival_pps=rate,
                arrival_scv=arriving.scv,
                service_s=mix.mean_s,
                service_scv=mix.squared_cv,
                servers=servers,
            )
            self.notes.append(f'"{task.name}": {approximation.method}; loss by fluctuation is not included')
            return approximation, ""
        return None, arriving.why or f"is at a load of {load:.3g}, where no queueing result applies"

    def _shared_queue(self, index: int, arriving: Arriving) -> Queue | None:
        fluid = self.fluid
        parts = [part for part in fluid.components if any(member == index for member, _ in part.members)]
        if len(parts) != 1 or arriving.kind == "unknown" or fluid.load.arrivals.kind != "poisson":
            return None
        part = parts[0]
        visits = {member: (float(self.rates[member].sum()), self._mix(member)) for member, _ in part.members}
        queue = shared_queue(part, fluid, visits, index)
        if queue is not None and "approximat" in queue.method:
            name = part.pool.name
            self.notes.append(
                f'pool "{name}" is taken as one queue of all its task units\' frames, an approximation'
            )
        return queue

    def _poisson_queue(
        self, rate: float, mix: ServiceMix, servers: int, room: int, load: float
    ) -> Queue | None:
        exponential = mix.law == "exponential" and mix.is_one_size
        small = room <= _MOST_STATES
        if exponential:
            lossy = (
                MMcK(arrival_pps=rate, service_s=mix.mean_s, servers=servers, capacity_frames=room)
                if small
                else None
            )
            if lossy is not None and (load >= 1.0 or lossy.loss_ratio > _NO_LOSS):
                return lossy
            return MMc(arrival_pps=rate, service_s=mix.mean_s, servers=servers) if load < 1.0 else None
        if servers > 1:
            return None
        finite = MG1K(arrival_pps=rate, service=mix, capacity_frames=room) if small else None
        if finite is not None and (load >= 1.0 or finite.loss_ratio > _NO_LOSS):
            if mix.law == "other":
                self.notes.append(
                    "loss and delay by the gamma law with the same two moments, an approximation"
                )
            return finite
        if load >= 1.0:
            return None
        if mix.law == "deterministic" and mix.is_one_size:
            return MD1(arrival_pps=rate, service_s=mix.mean_s)
        return MG1(arrival_pps=rate, service=mix)

    def port_out(self, number: int) -> None:
        """Take the wait for the outgoing link."""
        fluid = self.fluid
        node = len(self.graph.tasks) + number
        port = fluid.model.ports[number]
        rate = float(self.rates[node].sum())
        if rate <= 0.0:
            return
        sizes = fluid.load.frames.share_by_bytes
        times = tuple(1.0 / line_rate_pps(port.link_bps, size) for size in sizes)
        mix = ServiceMix(shares=tuple(sizes.values()), times_s=times)
        load = rate * mix.mean_s
        arriving = merge(self.arriving.get(node, []))
        regular = arriving.kind == "regular" and mix.is_one_size
        if load < _IDLE_LINK or (regular and load <= 1.0 + 1e-12):
            self.port_wait_s[node] = 0.0
        elif load >= _OVERLOADED:
            self.admitted[node] = 1.0 / load
            self.port_wait_s[node] = (port.tx_ring_frames + 0.5) * mix.mean_s
            self.port_approximate = True
        elif load > 1.0 - _JUST_FULL:
            self.admitted[node] = min(1.0 / load, 1.0)
            self.unknown = self.unknown or f'"{port.name} out" is just full'
        else:
            exact = arriving.kind == "poisson"
            self.port_wait_s[node] = MG1(arrival_pps=rate, service=mix).waiting_mean_s
            self.port_approximate = True
            if not exact:
                self.notes.append(
                    f'"{port.name} out": the wait for the link is that of Poisson arrivals, an approximation'
                )

    def answer(self) -> DelayAnswer:
        """Put the parts together."""
        graph, fluid = self.graph, self.fluid
        drops: dict[str, float] = {}
        least = 1e-12 * float(fluid.offered.sum())
        for index, task in enumerate(graph.tasks):
            drops[task.name] = float(self.rates[index].sum()) * (1.0 - float(self.admitted[index]))
        for number, port in enumerate(fluid.model.ports):
            node = len(graph.tasks) + number
            drops[f"{port.name} out"] = float(self.rates[node].sum()) * (1.0 - float(self.admitted[node]))
        drops = {place: rate for place, rate in drops.items() if rate > least}
        served = {
            task.name: float(self.rates[index].sum()) * float(self.admitted[index])
            for index, task in enumerate(graph.tasks)
        }
        queue_frames = {
            graph.tasks[index].name: queue.waiting_mean_s
            * float(self.rates[index].sum())
            * float(self.admitted[index])
            for index, queue in self.queues.items()
        }
        if self.unknown:
            self.notes.append(f"no latency: {self.unknown}")
            return DelayAnswer(
                drops_pps=drops, served_pps=served, queue_frames=queue_frames, notes=_gathered(self.notes)
            )
        latency, waiting = self._sums()
        return DelayAnswer(
            drops_pps=drops,
            served_pps=served,
            latency=latency,
            waiting=waiting,
            queue_frames=queue_frames,
            notes=_gathered(self.notes),
        )

    def _sums(self) -> tuple[Delay, Delay]:
        graph = self.graph
        survive = graph.surviving(self.admitted, self.rates)
        through = {
            index: float(self.rates[index].sum()) * float(self.admitted[index]) * float(survive[index])
            for index in self.queues
        }
        forwarded = sum(
            float(self.rates[node].sum()) * float(self.admitted[node])
            for node in range(len(graph.tasks), graph.exit + 1)
        )
        port_s = sum(
            wait * float(self.rates[node].sum()) * float(self.admitted[node]) / forwarded
            for node, wait in self.port_wait_s.items()
        )
        sojourn_s = (
            sum(through[i] / forwarded * queue.sojourn_mean_s for i, queue in self.queues.items()) + port_s
        )
        waiting_s = (
            sum(through[i] / forwarded * queue.waiting_mean_s for i, queue in self.queues.items()) + port_s
        )
        methods = list(dict.fromkeys(queue.method for queue in self.queues.values()))
        if port_s > 0.0:
            methods.append(
                "M/G/1 at the outgoing link" + (" (approximation)" if self.port_approximate else "")
            )
        method = ", ".join(methods) or "no station takes time"
        chain = self._chain()
        if chain is not None:
            return chain.sojourn(), chain.waiting()
        one_each = math.isclose(sum(through.values()), forwarded, rel_tol=1e-6) and self._parallel_only()
        if not one_each or port_s > 0.01 * sojourn_s:
            if len(self.queues) > 1 and not one_each:
                method += "; means add up, percentiles do not"
            return Delay(mean_s=sojourn_s, method=method), Delay(mean_s=waiting_s, method=method)
        parts = [(through[i] / forwarded, queue) for i, queue in self.queues.items()]
        return (
            _mixture(sojourn_s, method, [(share, queue.sojourn_tail) for share, queue in parts]),
            _mixture(waiting_s, method, [(share, queue.waiting_tail) for share, queue in parts]),
        )

    def _parallel_only(self) -> bool:
        """Whether no station lies behind another one."""
        behind: set[int] = set()
        for index in range(len(self.graph.tasks)):
            marked = index in behind or index in self.queues
            if index in behind and index in self.queues:
                return False
            if marked:
                behind.update(node for node, _ in self.graph.edges[index])
        return True

    def _chain(self) -> Tandem | None:
        """Return the Jackson tandem that the stations are, if they are one that every frame goes through."""
        total = float(self.fluid.offered.sum())
        stations = [queue for queue in self.queues.values() if isinstance(queue, MMc)]
        whole = all(math.isclose(float(self.rates[i].sum()), total, rel_tol=1e-9) for i in self.queues)
        if len(stations) < 2 or len(stations) != len(self.queues) or not whole:
            return None
        if any(wait > 0.0 for wait in self.port_wait_s.values()):
            return None
        return Tandem(stations=tuple(stations))


def _gathered(notes: list[str]) -> tuple[str, ...]:
    """Say once what holds for several places: ``"core 0" and 3 more: …``."""
    places: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        match = _NOTE.fullmatch(note)
        name, rest = (match[1], match[2]) if match else ("", note)
        places.setdefault(rest, []).append(name)
    return tuple(
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}{rest}"
        for rest, names in places.items()
    )


def _mixture(mean_s: float, method: str, parts: list[tuple[float, Callable[[float], float]]]) -> Delay:
    def tail(time_s: float) -> float:
        return math.fsum(share * one(time_s) for share, one in parts)

    return Delay(
        mean_s=mean_s,
        p50_s=quantile_s(tail, mean_s, 0.5),
        p90_s=quantile_s(tail, mean_s, 0.9),
        p99_s=quantile_s(tail, mean_s, 0.99),
        p999_s=quantile_s(tail, mean_s, 0.999),
        method=method,
    )
