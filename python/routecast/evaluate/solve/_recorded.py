"""Queues of recorded frames: losses, work and delays from the instants, sizes and flows of a trace.

The arrivals of a trace are known, so no law is needed: at a task unit with units of its own the n-th frame is served at
``max(a_n, the earliest instant at which a server is free)`` and lost where the queue is full (Kiefer and Wolfowitz
1955). The frames pass the task units in the order of the graph, then the links. Contention follows from the units that
are busy as each service begins, in a few rounds.

Where more than the frames of its own queue decides when a frame is served (shared units, interrupts, costs of batches,
random services), two such queues bound the loss: one that serves at once and as fast as the task unit can, and one that
is slowed by all other work of its units and away as long as it can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve._cost import slowest_over_mean
from routecast.evaluate.solve._delay import DelayAnswer
from routecast.evaluate.solve._repeated_bursts import recorded_bursts
from routecast.evaluate.solve._scheduling_shares import served_at_once
from routecast.evaluate.solve._unknown_shares import Absences, absences_of
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.trial import Delay
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.load.trace import RecordedFrames

__all__ = ["pass_recorded"]

_PS = 1e12
_LOST = np.uint64(2**64 - 1)
_ROUNDS = 4
_SURE = 3.0
"""Standard deviations of random services that a queue is given less room for."""
_MAX_WIDTH = 0.02, 0.08
"""Greatest distance of the bounds of a known loss: frames of one size; mixed sizes or gaps."""
_NOTABLE = 0.005
_RARE_QUANTILE = 0.99
_BUSY_THREADS = 0.9
"""Load of threads from which their turns, which the queues leave out, decide."""
_MIN_ROOM = 8
"""Places at shared units of which two queues can still bound the loss."""
_WINDOW_ERROR = 0.03
"""Error of the joint throughput of windows, chosen in sight of random traces."""

Instants = NDArray[np.uint64]
Numbers = NDArray[np.intp]
Floats = NDArray[np.float64]


def pass_recorded(fluid: Fluid, overloaded: Fluid | None) -> tuple[Fluid, DelayAnswer]:
    """Return what the frames of a load meet in a router, and the fluid state with the work that they make.

    The frames are those of the load's trace, all of them from the empty router on, or its repeated bursts.
    ``overloaded``: the state of a router with windows at line rate, whose windows share its memories at their pace in a
    burst.
    """
    trace = fluid.load.arrivals.trace
    span_s = (0.0, math.nan)
    if trace is None:
        trace, length_s = recorded_bursts(fluid)
        span_s = (0.5 * length_s, length_s)
    absences = absences_of(fluid)
    likely = _Passage(fluid, trace, absences, overloaded, span_s, extra=0.0)
    for _ in range(_ROUNDS if any(not pool.contention.is_none for pool in fluid.model.pools) else 1):
        likely.run()
    bounds = [likely]
    if likely.bounded:
        for extra in (-1.0, 1.0):
            bound = _Passage(fluid, trace, absences, overloaded, span_s, extra=extra)
            bound.factors = likely.factors
            bound.run()
            bounds.append(bound)
    return _with_work(fluid, likely), _answer(fluid, likely, bounds)


@dataclass(frozen=True, slots=True)
class _Station:
    """How a task unit serves: frames at once, seconds for each frame size, room for those that wait."""

    servers: int
    service_s: Floats
    room: int
    wakeup_s: float | None = None
    """Wake-up of a server whose services interrupts start; None for others."""


class _Passage:
    """One passage of all frames through the graph.

    ``extra``: 0 for the likely course; -1 and 1 for the fastest and the slowest of a station that is only bounded.
    """

    def __init__(
        self,
        fluid: Fluid,
        trace: RecordedFrames,
        absences: Absences,
        overloaded: Fluid | None,
        span_s: tuple[float, float],
        *,
        extra: float,
    ) -> None:
        self.fluid, self.graph, self.absences, self.extra = fluid, fluid.graph, absences, extra
        self.overloaded = overloaded
        self.trace = trace
        self.sizes, self.size_of = np.unique(trace.frame_bytes, return_inverse=True)
        self.stream_of = _streams(fluid)[trace.flow]
        self.ingress_of = np.array([flow.ingress for flow in fluid.load.flows.flows])[trace.flow]
        begin_s, end_s = span_s[0], trace.length_s if math.isnan(span_s[1]) else span_s[1]
        self.duration_s = end_s - begin_s
        self.begin, self.end = np.uint64(round(begin_s * _PS)), np.uint64(round(end_s * _PS))
        """What counts: only what has happened by the end, as in a simulation of the trace."""
        self.is_repeated = begin_s > 0.0
        self.factors: dict[int, Floats] = {}
        """By task unit: the contention of each frame's service."""
        self.bounded: dict[int, str] = {}
        """Task units whose courses are only bounded, and why."""
        self.is_unbounded = False
        """Whether queues are so short that the turns at shared units decide."""
        self.reset()

    def reset(self) -> None:
        """Let all frames arrive anew."""
        self.at = np.zeros(len(self.trace), np.uint64)
        self.waited = np.zeros(len(self.trace))
        self.pending: dict[int, list[Numbers]] = {}
        self.lost: dict[int, int] = {}
        self.work_s: dict[int, float] = {}
        self.wait_s: dict[int, float] = {}
        self.slower: dict[int, float] = {}
        """By task unit: by how much its services are longer than its own work."""
        self.services: dict[int, tuple[Numbers, Instants, Instants]] = {}
        self.forwarded = np.zeros(len(self.trace), bool)

    def run(self) -> None:
        """Pass all frames through the router."""
        self.reset()
        self._enter()
        for index in range(len(self.graph.tasks)):
            if index in self.pending:
                self._serve(index, self._arriving(index))
        self.entered = self.pending
        for number, port in enumerate(self.fluid.model.ports):
            node = len(self.graph.tasks) + number
            if node in self.pending:
                frames = self._arriving(node)
                wire_ps = _wire_ps(port.link_bps, self.sizes)[self.size_of[frames]]
                self._queue(node, frames, wire_ps, 1, port.tx_ring_frames, is_link=True)
        for frames in self.pending.get(self.graph.exit, []):
            self.forwarded[frames] = self._counts(self.at[frames])
        self._note_contention()

    def _enter(self) -> None:
        """Let the frames arrive by their links: the last bit of each follows that of the one before it."""
        for number, port in enumerate(self.fluid.model.ports):
            frames = np.flatnonzero(self.ingress_of == number)
            if not len(frames):
                continue
            sent_ps = np.cumsum(_wire_ps(port.link_bps, self.sizes)[self.size_of[frames]])
            intended_ps = np.rint(self.trace.time_s[frames] * _PS)
            self.at[frames] = np.floor(np.maximum.accumulate(intended_ps - sent_ps) + sent_ps + 1e-6).clip(0.0)
            self.pending.setdefault(self.graph.entry[number], []).append(frames)
        self.arrived = self.at.copy()
        self.offered = int(np.count_nonzero(self._counts(self.at)))

    def _arriving(self, node: int) -> Numbers:
        """Return the frames at a node in order of their arrival, then of their numbers."""
        frames = np.concatenate(self.pending[node])
        return frames[np.lexsort((frames, self.at[frames]))]

    def _serve(self, index: int, frames: Numbers) -> None:
        station = self._station(index, frames)
        if station.wakeup_s is not None:
            self._route(index, self._poll(index, frames, station))
            return
        work_ps = station.service_s[self.size_of[frames]] * self._factors(index)[frames] * _PS
        served = self._queue(index, frames, work_ps, station.servers, station.room)
        self._route(index, served)

    def _queue(
        self, node: int, frames: Numbers, work_ps: Floats, servers: int, room: int, *, is_link: bool = False
    ) -> Numbers:
        """Let frames wait and be served at a node; return those that are not lost."""
        from routecast import _core  # the compiled part is loaded where it is used

        work = np.rint(work_ps).astype(np.uint64)
        at = self.at[frames]
        starts = np.frombuffer(_core.queue_starts(at.tobytes(), work.tobytes(), servers, room), np.uint64)
        kept = starts != _LOST
        frames, starts, work = frames[kept], starts[kept], work[kept]
        self.lost[node] = int(np.count_nonzero(self._counts(at[~kept])))
        waits_s = (starts - at[kept]).astype(np.float64) / _PS
        self.waited[frames] += waits_s
        self.wait_s[node] = float(waits_s[self._counts(starts)].sum())
        ends = np.clip(starts + work, self.begin, self.end)
        done_s = (ends - np.clip(starts, self.begin, ends)).astype(np.float64) / _PS
        slower = self.slower.get(node, 1.0)
        self.work_s[node] = float(done_s.sum()) / slower
        if is_link:
            # A frame leaves with its first bit (S9).
            self.at[frames] = starts
            self.forwarded[frames] = self._counts(starts + work - np.uint64(1))
        else:
            self.at[frames] = starts + work
            self.services[node] = (frames, starts, self.at[frames])
        return frames

    def _poll(self, index: int, frames: Numbers, station: _Station) -> Numbers:
        """Let frames wait for interrupts and polls of a task unit; return those that are not lost."""
        from routecast import _core  # the compiled part is loaded where it is used

        cost, task = self.fluid.costs[index], self.graph.tasks[index]
        factor = self._factors(index)[frames]
        work = np.rint(station.service_s[self.size_of[frames]] * factor * _PS).astype(np.uint64)
        mean_factor = float(self.fluid.factor[index])
        assert station.wakeup_s is not None
        times_s = (cost.moderation_s, station.wakeup_s, cost.linger_s)
        moderation, wakeup, linger = (round(time_s * _PS) for time_s in times_s)
        interrupt, batch = (round(time_s * mean_factor * _PS) for time_s in (cost.interrupt_s, cost.batch_s))
        polls = (task.activation.budget_frames, interrupt, batch, moderation, wakeup, linger)
        at = self.at[frames]
        busy_ps = 0
        packed_starts = packed_ends = b""
        for until, sign in ((self.begin, -1), (self.end, 1)):
            if not until:
                continue
            packed_starts, packed_ends, worked_ps, _ = _core.polled_starts(
                at.tobytes(),
                work.tobytes(),
                station.room,
                int(until),
                polls,
                exhaustive=cost.exhaustive,
                sleep_ps=[(round(after_s * _PS), round(exit_s * _PS)) for after_s, exit_s in cost.sleep_states],
            )
            busy_ps += sign * worked_ps
        starts, ends = np.frombuffer(packed_starts, np.uint64), np.frombuffer(packed_ends, np.uint64)
        kept = starts != _LOST
        self.lost[index] = int(np.count_nonzero(self._counts(at[~kept])))
        frames, starts = frames[kept], starts[kept]
        waits_s = (starts - at[kept]).astype(np.float64) / _PS
        self.waited[frames] += waits_s
        self.wait_s[index] = float(waits_s[self._counts(starts)].sum())
        self.work_s[index] = busy_ps / _PS
        self.at[frames] = ends[kept]
        self.services[index] = (frames, starts, self.at[frames])
        return frames

    def _counts(self, at: Instants) -> NDArray[np.bool_]:
        """Return which instants count."""
        return (at >= self.begin) & (at < self.end)

    def _factors(self, index: int) -> Floats:
        if index not in self.factors:
            self.factors[index] = np.full(len(self.trace), float(self.fluid.factor[index]))
        return self.factors[index]

    def _route(self, index: int, frames: Numbers) -> None:
        """Send the served frames to the next nodes, those of divided streams in turn."""
        edges = self.graph.edges[index]
        frames = frames[np.lexsort((frames, self.at[frames]))]
        whole = [(node, fraction[self.stream_of[frames]]) for node, fraction in edges]
        if all(((share == 0.0) | (share == 1.0)).all() for _, share in whole):
            for node, share in whole:
                self.pending.setdefault(node, []).append(frames[share == 1.0])
            return
        # Multiples of the golden ratio spread evenly over any shares; equal shares take exact turns.
        shares = np.stack([share for _, share in whole])
        places = np.arange(len(frames))
        equal = len(edges) * shares.max() <= 1.0 + 1e-9
        at = (places % len(edges) + 0.5) / len(edges) if equal else (0.5 + places * 0.6180339887498949) % 1.0
        chosen = np.minimum((np.cumsum(shares, axis=0) <= at).sum(axis=0), len(edges) - 1)
        for number, (node, _) in enumerate(whole):
            self.pending.setdefault(node, []).append(frames[chosen == number])

    def _station(self, index: int, frames: Numbers) -> _Station:
        fluid, task, cost = self.fluid, self.graph.tasks[index], self.fluid.costs[index]
        pool = fluid.model.pool(task.needs[0].pool) if task.needs else None
        frequency_hz = pool.frequency_hz if pool else None
        full = max(cost.batch_frames, 1)
        times_s = [
            task.service.mean_s(float(size), frequency_hz=frequency_hz, batch_frames=full) for size in self.sizes
        ]
        service_s = np.array(times_s) * cost.slowdown
        limits = [served_at_once(task, max(len(part.units) // units, 1)) for part, units in fluid.uses[index]]
        servers, room = max(min(limits, default=task.parallel), 1), task.queue_frames
        why = self._why_bounded(index)
        if not why:
            return self._plain(index, service_s, servers, room)
        if fluid.windows is not None and index in fluid.windows.enter:
            self.bounded[index] = why
            return self._door(index, service_s, room)
        if fluid.windows is not None and index in fluid.windows.inside:
            # Frames inside a window have room at every task unit of it, if its queue is as long as the window.
            self.is_unbounded |= not self._holds_all(index)
            return _Station(servers, service_s, len(self.trace))
        self.bounded[index] = why
        if self._is_own(index):
            # The services that a queue remembers: those of its places, or more near a full load.
            remembered = min(1.0 / max(1.0 - self.absences.load[index], 1e-3) ** 2, len(frames))
            scatter = _SURE * math.sqrt(max(task.service.squared_cv, 0.0) * max(room + servers, remembered))
            away = _most_within(self.at[frames], self._interruption_s(index)) + scatter
            return self._plain(index, service_s, servers, max(math.floor(room - max(self.extra, 0.0) * away), 1))
        is_turn = fluid.steady is not None and self.absences.load[index] >= _BUSY_THREADS
        self.is_unbounded |= room < _MIN_ROOM or is_turn
        if self.extra < 0.0:
            return _Station(servers, service_s, room)
        slower = self._slower(index)
        if self.extra == 0.0:
            self.slower[index] = math.sqrt(slower)
            return _Station(servers, service_s * self.slower[index], room)
        single_s = np.array([task.service.mean_s(float(size), frequency_hz=frequency_hz) for size in self.sizes])
        service_s = (
            np.maximum(service_s, single_s * cost.slowdown) * slower * slowest_over_mean(task, fluid.model, cost)
        )
        scatter = _SURE * math.sqrt(max(task.service.squared_cv, 0.0) * (room + servers))
        away = _most_within(self.at[frames], self._away_s(index))
        return _Station(servers, service_s, max(math.floor(room - away - scatter), 0))

    def _plain(self, index: int, service_s: Floats, servers: int, room: int) -> _Station:
        """Return a station whose frames alone decide its course, by its own server or by interrupts and polls."""
        task, cost = self.graph.tasks[index], self.fluid.costs[index]
        if task.activation.kind != "interrupt":
            return _Station(servers, service_s, room)
        wakeup = task.activation.wakeup
        bound = {-1.0: 0.05, 1.0: 0.95}.get(self.extra)
        wakeup_s = cost.sleep_s if wakeup is None or bound is None else wakeup.quantile_s(bound)
        return _Station(servers, service_s - cost.batch_s / max(cost.batch_frames, 1), room, wakeup_s)

    def _interruption_s(self, index: int) -> float:
        """Return how long an interruption of the units of a task unit hardly ever lasts longer than, s."""
        pools = [self.fluid.model.pool(need.pool) for need in self.graph.tasks[index].needs]
        lasting = [pool.interruptions.duration.quantile_s(_RARE_QUANTILE) for pool in pools if pool.interruptions]
        return max(lasting, default=0.0)

    def _is_own(self, index: int) -> bool:
        """Whether chance alone bounds a task unit: its units are its own, and all are alike."""
        task, fluid = self.graph.tasks[index], self.fluid
        if fluid.windows is not None and (index in fluid.windows.inside or index in fluid.windows.enter):
            return False
        threaded = task.thread or task.holds_back or task.activation.kind == "thread"
        if threaded or len(task.needs) > 1 or any(len(part.members) > 1 for part, _ in fluid.uses[index]):
            return False
        is_even = not task.needs or slowest_over_mean(task, fluid.model, fluid.costs[index]) <= 1.0 + 1e-9
        polls = task.activation.kind == "interrupt"
        return is_even and (self._is_alone(index) if polls else fluid.costs[index].batch_s <= 0.0)

    def _door(self, index: int, service_s: Floats, room: int) -> _Station:
        """Return where a window begins as a server that takes in frames as fast as all of the window does."""
        fluid = self.fluid
        assert fluid.windows is not None
        assert fluid.window_rates is not None
        number = fluid.windows.enter.index(index)
        most_pps = float(fluid.window_rates.max_pps[number])
        if self.extra > 0.0 and self.overloaded is not None and self.overloaded.window_rates is not None:
            # In a burst all windows wait for the same memories.
            most_pps = min(most_pps, float(self.overloaded.window_rates.pps[number]))
        if not (math.isfinite(most_pps) and most_pps > 0.0):
            return _Station(1, service_s, room)
        paced_s = (1.0 + self.extra * _WINDOW_ERROR) / most_pps / float(self.fluid.factor[index])
        own_s = float(np.average(service_s, weights=np.bincount(self.size_of)))
        self.slower[index] = paced_s / own_s if own_s > 0.0 else math.inf
        return _Station(1, np.full(len(service_s), paced_s), room)

    def _holds_all(self, index: int) -> bool:
        """Whether a task unit inside windows has room for all frames that may be inside."""
        fluid = self.fluid
        assert fluid.windows is not None
        doors = [self.graph.tasks[door] for door in fluid.windows.enter]
        most = max(fluid.model.pool(door.needs[0].pool).units for door in doors)
        return self.graph.tasks[index].queue_frames + 1 >= most

    def _why_bounded(self, index: int) -> str:
        """Return why the queue of a task unit is not all that decides its course; empty if it is."""
        fluid, task, cost = self.fluid, self.graph.tasks[index], self.fluid.costs[index]
        if fluid.steady is not None and (task.thread or task.holds_back or task.activation.kind == "thread"):
            return "is a thread"
        if fluid.windows is not None and (index in fluid.windows.inside or index in fluid.windows.enter):
            return "is in a window"
        if len(task.needs) > 1:
            return "needs units of several pools at once"
        for part, _ in fluid.uses[index]:
            if len(part.members) > 1:
                return f'shares units of pool "{part.pool.name}"'
        if task.service.squared_cv > 0.0 or cost.scatter_s > 0.0:
            return "has random services"
        if task.needs and slowest_over_mean(task, fluid.model, cost) > 1.0 + 1e-9:
            return "uses units that differ"
        if task.activation.kind == "interrupt":
            wakeup = task.activation.wakeup
            is_known = wakeup is None or wakeup.is_constant
            return "" if is_known and self._is_alone(index) else "is activated by interrupts"
        if cost.batch_s > 0.0:
            return "pays a cost per batch"
        return "has units that sleep" if cost.sleep_states else ""

    def _is_alone(self, index: int) -> bool:
        """Whether a task unit has one server."""
        task, uses = self.graph.tasks[index], self.fluid.uses[index]
        limits = [served_at_once(task, max(len(part.units) // units, 1)) for part, units in uses]
        return min(limits, default=task.parallel) == 1

    def _slower(self, index: int) -> float:
        """Return the time of the units for each served frame, with all that their other task units do for it."""
        fluid, slower = self.fluid, 1.0
        for part, units in fluid.uses[index]:
            rates = fluid.rates.sum(axis=1)
            own = float(rates[index]) * fluid.costs[index].busy_s * units
            work = sum(float(rates[member]) * fluid.costs[member].busy_s * needed for member, needed in part.members)
            if own > 0.0:
                slower = max(slower, work / own)
        return slower

    def _away_s(self, index: int) -> float:
        away_s = self.absences.away_s[index]
        return away_s if math.isfinite(away_s) else self.duration_s

    def _note_contention(self) -> None:
        """Take the contention of each service from the units that are busy as it begins."""
        for pool in self.fluid.model.pools:
            if pool.contention.is_none:
                continue
            users = [
                index
                for index in self.services
                if any(part.pool.name == pool.name for part, _ in self.fluid.uses[index])
            ]
            if not users:
                continue
            begun = np.sort(np.concatenate([self.services[index][1] for index in users]))
            ended = np.sort(np.concatenate([self.services[index][2] for index in users]))
            table = np.array([pool.contention.factor(float(busy)) for busy in range(pool.units + 1)])
            for index in users:
                frames, starts, _ = self.services[index]
                busy = np.searchsorted(begun, starts, side="right") - np.searchsorted(ended, starts, side="right")
                self.factors[index][frames] = table[np.clip(busy, 1, pool.units)]

    @property
    def chance_frames(self) -> float:
        """Bound of the frames that interruptions and random services lose besides; infinite where more than these do.

        All of the time that they take beyond its mean is lost for frames, three standard deviations of it.
        """
        frames = 0.0
        for index in self.bounded:
            if not self._is_own(index):
                return math.inf
            served = len(self.services[index][0]) if index in self.services else 0
            service_s = float(self.fluid.costs[index].busy_s)
            frames += _SURE * math.sqrt(max(self.graph.tasks[index].service.squared_cv, 0.0) * served)
            for need in self.graph.tasks[index].needs:
                interruptions = self.fluid.model.pool(need.pool).interruptions
                if interruptions is not None and service_s > 0.0:
                    expected = interruptions.rate_hz * self.duration_s
                    away_s = _SURE * math.sqrt(expected * interruptions.duration.second_moment_s2)
                    frames += (away_s + self._interruption_s(index)) / service_s
        return frames

    @property
    def loss_ratio(self) -> float:
        """Share of the offered frames that are lost."""
        return sum(self.lost.values()) / max(self.offered, 1)


def _streams(fluid: Fluid) -> Numbers:
    """Return the number of the stream of each flow."""
    from routecast.evaluate.solve.flow import stream_of

    kinds = {task.route.kind for task in fluid.graph.tasks}
    numbers: dict[tuple[int, int, int, int], int] = {}
    places = [
        numbers.setdefault(stream_of(flow, number, kinds), len(numbers))
        for number, flow in enumerate(fluid.load.flows.flows)
    ]
    return np.array(places, np.intp)


def _wire_ps(link_bps: float, sizes: NDArray[np.uint32]) -> Floats:
    return (sizes.astype(np.float64) + WIRE_OVERHEAD_BYTES) * (8.0 * _PS / link_bps)


def _most_within(at: Instants, time_s: float) -> int:
    """Return the most frames that arrive within an interval of a length."""
    if time_s <= 0.0 or not len(at):
        return 0
    ends = np.searchsorted(at, at + np.uint64(min(time_s * _PS, 2.0**62)), side="right")
    return int((ends - np.arange(len(at))).max())


def _with_work(fluid: Fluid, passage: _Passage) -> Fluid:
    """Return the fluid state with the busy units of the passage."""
    count = len(fluid.graph.tasks)
    busy = {name: np.zeros(count) for name in fluid.busy_units}
    served_pps = fluid.rates[:count].sum(axis=1) * fluid.admitted_ratio[:count]
    for index, task in enumerate(fluid.graph.tasks):
        work = passage.work_s.get(index, 0.0) / passage.duration_s
        expected = float(served_pps[index] * fluid.service_s[index])
        for need in task.needs:
            units = work * need.units
            if index in passage.bounded and expected > 0.0:
                # Interrupts and batches cost what the fluid state says; a queue knows only its frames.
                units = float(fluid.busy_units[need.pool][index]) * work / expected
            busy[need.pool][index] = min(units, float(fluid.model.pool(need.pool).units))
    polling = np.array([task.activation.kind == "polling" for task in fluid.graph.tasks])
    active = {name: np.where(polling, units, busy[name]) for name, units in fluid.active_units.items()}
    return replace(fluid, busy_units=busy, active_units=active)


def _answer(fluid: Fluid, likely: _Passage, bounds: list[_Passage]) -> DelayAnswer:
    names = [task.name for task in fluid.graph.tasks] + [f"{port.name} out" for port in fluid.model.ports]
    per_s = 1.0 / likely.duration_s
    drops = {names[node]: count * per_s for node, count in sorted(likely.lost.items()) if count}
    in_flight = likely.offered - int(np.count_nonzero(likely.forwarded)) - sum(likely.lost.values())
    if likely.is_repeated:
        in_flight = 0
    work = {
        task.name: likely.work_s.get(index, 0.0) * per_s / max(float(fluid.service_s[index]), 1e-300)
        if fluid.service_s[index] > 0.0
        else per_s * sum(len(frames) for frames in likely.entered.get(index, []))
        for index, task in enumerate(fluid.graph.tasks)
    }
    losses = [passage.loss_ratio for passage in bounds]
    low = min(losses)
    high = min(max(losses), losses[0] + likely.chance_frames / max(likely.offered, 1))
    high = 1.0 if likely.is_unbounded else high
    smooth = fluid.load.frames.is_fixed and likely.trace.interarrival_scv < _NOTABLE
    width = _MAX_WIDTH[0 if smooth else 1]
    reason = ""
    if high - low > width:
        index, why = next(iter(likely.bounded.items()))
        what = "the bursts lose" if likely.is_repeated else "the trace loses"
        reason = f'"{names[index]}" {why}, and {what} between {low:.1%} and {high:.1%}'
    sizes = likely.trace.frame_bytes[likely.forwarded]
    latency, waiting = (None, None) if likely.bounded else _delays(likely)
    notes = [*likely.trace.notes]
    if likely.bounded:
        index, why = next(iter(likely.bounded.items()))
        notes.append(f'no latency: "{names[index]}" {why}')
    return DelayAnswer(
        drops_pps=drops,
        work_pps=work,
        offered_pps=likely.offered * per_s,
        in_flight_pps=max(in_flight, 0) * per_s,
        forwarded_bytes=float(sizes.mean()) if len(sizes) else fluid.load.frames.mean_bytes,
        latency=latency,
        waiting=waiting,
        queue_frames={names[node]: wait_s * per_s for node, wait_s in likely.wait_s.items() if node < len(work)},
        notes=tuple(notes),
        loss_unknown=reason,
        loss_error_ratio=max(losses[0] - low, high - losses[0]) if len(losses) > 1 else 0.0,
        possible_losses=tuple(names[index] for index in likely.bounded) if high - low > _NOTABLE else (),
    )


def _delays(passage: _Passage) -> tuple[Delay, Delay]:
    """Return latency and waiting time of the forwarded frames."""
    passed = passage.forwarded
    stays_s = (passage.at - passage.arrived)[passed].astype(np.float64) / _PS
    of = "repeated bursts" if passage.is_repeated else "the trace"
    method = f"queues of {len(passage.trace):,} frames of {of}"
    return _delay(stays_s, method), _delay(passage.waited[passed], method)


def _delay(times_s: Floats, method: str) -> Delay:
    if not len(times_s):
        return Delay(mean_s=math.nan, method=method)
    p50, p90, p99, p999 = np.quantile(times_s, (0.5, 0.9, 0.99, 0.999), method="inverted_cdf").tolist()
    return Delay(
        mean_s=float(times_s.mean()),
        min_s=float(times_s.min()),
        p50_s=p50,
        p90_s=p90,
        p99_s=p99,
        p999_s=p999,
        max_s=float(times_s.max()),
        method=method,
    )
