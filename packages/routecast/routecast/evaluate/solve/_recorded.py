"""Queues of recorded frames: losses, work and delays from the instants, sizes and flows of a trace.

The arrivals of a trace are known, so no law is needed: at a task unit with units of its own the n-th frame is served at
``max(a_n, the earliest instant at which a server is free)`` and lost where the queue is full (Kiefer and Wolfowitz
1955). The frames pass the task units in the order of the graph, then the links. Contention follows from the units that
are busy as each service begins, in a few rounds.

Where more than the frames of its own queue decides when a frame is served (shared units, interrupts, costs of batches,
random services), two such queues bound the loss: one that serves at once and as fast as the task unit can, and one that
is slowed by all other work of its units and away as long as it can be.

A queue that serves sooner loses less itself, but hands its frames to the next one sooner, which then may lose more:
the fastest queues in a row do not lose least. So the least loss of queues in a row is that of fast queues with all the
room that frames find up to them, see :meth:`_Passage._door`, and the greatest that of the slowest queues, of the
fastest ones with their own room, or of slow windows behind fast ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve._cost import slowest_over_mean
from routecast.evaluate.solve._delay import DelayAnswer
from routecast.evaluate.solve._moderation import noticed_at
from routecast.evaluate.solve._repeated_bursts import recorded_bursts
from routecast.evaluate.solve._scheduling_shares import Component, served_at_once
from routecast.evaluate.solve._unknown_shares import Absences, absences_of
from routecast.evaluate.solve._window_pace import station_pace_s
from routecast.evaluate.solve.fluid import MEAN_BATCHES, Fluid
from routecast.evaluate.trial import Delay
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.load.trace import RecordedFrames, numbers_counted

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

_CHUNK_FRAMES = 1 << 18
"""Frames that are served at a time, so that their temporary arrays stay small."""

Instants = NDArray[np.uint64]
Numbers = NDArray[np.uint32]
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
    for number in range(_ROUNDS if likely.contending else 1):
        if number:
            likely.note_contention()
        likely.run()
    losses = [likely.loss_ratio]
    if likely.bounded:
        if likely.contending:
            likely.note_contention()
        bounds = [(-1.0, 0, False), (1.0, 0, False)]
        if any(likely.before[index] & likely.bounded.keys() for index in likely.bounded):
            bounds.append((-1.0, 0, True))
        for number, (extra, slow_from, is_pooled) in enumerate(bounds):
            bound = _Passage(fluid, trace, absences, overloaded, span_s, extra=extra)
            bound.slow_from, bound.is_pooled = slow_from, is_pooled
            bound.factors = likely.factors
            bound.run()
            if bound.contending:
                bound.note_contention()
            losses.append(bound.loss_ratio)
            if number == 1:
                # Where a window loses frames, it loses most if those before it delay none.
                bounds += [(1.0, depth, False) for depth in sorted(bound.losing_depths()) if depth > 0]
    return _with_work(fluid, likely), _answer(fluid, likely, losses)


@dataclass(frozen=True, slots=True)
class _Station:
    """How a task unit serves: frames at once, seconds for each frame size, room for those that wait."""

    servers: int
    service_s: Floats
    room: int
    wakeup_s: float | None = None
    """Wake-up of a server whose services interrupts start; None for others."""
    inside: _Inside | None = None
    """What is behind the server where a window begins; None elsewhere."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """Inside of a window: the frames that it has room for, and the time that one of them takes alone, s."""

    frames: int
    alone_s: float


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
        self.slow_from = 0
        """Number of windows in a row from which on they are slow, in the slowest course."""
        self.is_pooled = False
        """Whether a queue also has room for all frames that those before it may keep, in the fastest course."""
        self.trace = trace
        self.before = _tasks_before(fluid)
        self.doors = frozenset(fluid.windows.enter if fluid.windows is not None else ())
        self.kept_frames: dict[int, int] = {}
        """By bounded task unit: the most frames that it keeps where it is slow."""
        counts = numbers_counted(trace.frame_bytes)
        self.sizes = np.flatnonzero(counts).astype(np.uint32)
        self.frames_by_size = counts[self.sizes]
        self.place_of_size = np.zeros(len(counts), np.uint16)
        self.place_of_size[self.sizes] = np.arange(len(self.sizes), dtype=np.uint16)
        self.stream_of_flow = _streams(fluid)
        self.ingress_of_flow = np.array([flow.ingress for flow in fluid.load.flows.flows])
        self.contending = [pool for pool in fluid.model.pools if not pool.contention.is_none]
        begin_s, end_s = span_s[0], trace.length_s if math.isnan(span_s[1]) else span_s[1]
        self.duration_s = end_s - begin_s
        self.begin, self.end = np.uint64(round(begin_s * _PS)), np.uint64(round(end_s * _PS))
        """What counts: only what has happened by the end, as in a simulation of the trace."""
        self.is_repeated = begin_s > 0.0
        self.factors: dict[int, Floats] = {}
        """By task unit: the contention of each frame's service."""
        self.bounded: dict[int, str] = {}
        """Task units whose courses are only bounded, and why."""
        self.is_uneven = not (fluid.load.frames.is_fixed and trace.interarrival_scv < _NOTABLE)
        self.is_unbounded = False
        """Whether queues are so short that the turns at shared units decide."""
        self.reset()

    def losing_depths(self) -> set[int]:
        """Return how many windows follow each other up to those that lose frames."""
        return {self._depth(door) for door in self.doors if self.lost.get(door, 0) > 0}

    def _depth(self, door: int) -> int:
        """Return how many windows follow each other before one."""
        return max((self._depth(other) + 1 for other in self.before[door] & self.doors), default=0)

    def _with_kept(self, index: int, room: int, kept_frames: int) -> int:
        """Return the room of a queue in the fastest course, and note the frames that it may keep itself."""
        if not self.is_pooled:
            return room
        self.kept_frames[index] = kept_frames
        return room + sum(self.kept_frames.get(other, 0) for other in self.before[index])

    def reset(self) -> None:
        """Let all frames arrive anew."""
        self.at = np.zeros(len(self.trace), np.uint64)
        self.waited = np.zeros(len(self.trace))
        self.pending: dict[int, list[Numbers]] = {}
        self.entered: dict[int, int] = {}
        """By node: the frames that came to it."""
        self.served: dict[int, int] = {}
        """By task unit: the frames that it did not lose."""
        self.lost: dict[int, int] = {}
        self.work_s: dict[int, float] = {}
        self.wait_s: dict[int, float] = {}
        self.held_s: dict[int, float] = {}
        """By task unit where a window begins: the time that its frames are inside."""
        self.slower: dict[int, float] = {}
        """By task unit: by how much its services are longer than its own work."""
        self.services: dict[int, tuple[Numbers, Instants, Instants]] = {}
        """By task unit of a pool with contention: frames, starts and ends of its services."""
        self.wakes_ratio: dict[int, float] = {}
        """By thread: how often its frames wake it, of the wakes of the fluid state."""
        self.forwarded = np.zeros(len(self.trace), bool)

    def run(self) -> None:
        """Pass all frames through the router."""
        self.reset()
        self._enter()
        for index in range(len(self.graph.tasks)):
            if index in self.pending:
                self._serve(index, self._arriving(index))
        for number, port in enumerate(self.fluid.model.ports):
            node = len(self.graph.tasks) + number
            if node in self.pending:
                wire_ps = _wire_ps(port.link_bps, self.sizes)
                self._queue(node, self._arriving(node), wire_ps, 1, port.tx_ring_frames, is_link=True)
        for frames in self.pending.pop(self.graph.exit, []):
            self.forwarded[frames] = self._counts(self.at[frames])

    def _enter(self) -> None:
        """Let the frames arrive by their links: the last bit of each follows that of the one before it."""
        for number, port in enumerate(self.fluid.model.ports):
            frames = np.flatnonzero((self.ingress_of_flow == number)[self.trace.flow]).astype(np.uint32)
            if not len(frames):
                continue
            sent_ps = _wire_ps(port.link_bps, self.sizes)[self._size_places(frames)]
            np.cumsum(sent_ps, out=sent_ps)
            at_ps = self.trace.time_s[frames]
            at_ps *= _PS
            np.rint(at_ps, out=at_ps)
            at_ps -= sent_ps
            np.maximum.accumulate(at_ps, out=at_ps)
            at_ps += sent_ps
            at_ps += 1e-6
            np.floor(at_ps, out=at_ps)
            self.at[frames] = at_ps.clip(0.0, out=at_ps)
            self.pending.setdefault(self.graph.entry[number], []).append(frames)
        self.arrived = self.at.copy()
        self.offered = int(np.count_nonzero(self._counts(self.at)))

    def _arriving(self, node: int) -> Numbers:
        """Return the frames at a node in order of their arrival, then of their numbers."""
        parts = self.pending.pop(node)
        frames = parts[0] if len(parts) == 1 else np.concatenate(parts)
        self.entered[node] = len(frames)
        return self._in_order(frames)

    def _in_order(self, frames: Numbers) -> Numbers:
        """Return frames in order of their instants, then of their numbers."""
        at = self.at[frames]
        is_later = at[1:] > at[:-1]
        if (is_later | ((at[1:] == at[:-1]) & (frames[1:] > frames[:-1]))).all():
            return frames
        return frames[np.lexsort((frames, at))]

    def _size_places(self, frames: Numbers | slice) -> NDArray[np.uint16]:
        """Return the places of the sizes of frames in the sizes of the trace."""
        return self.place_of_size[self.trace.frame_bytes[frames]]

    def _serve(self, index: int, frames: Numbers) -> None:
        station = self._station(index, frames)
        if self.fluid.steady is not None and self.extra == 0.0:
            self._note_wakes(index, frames)
        if station.wakeup_s is not None:
            self._route(index, self._poll(index, frames, station))
            return
        held_s = self._wait_for_interrupts(index, frames, station)
        served = self._queue(index, frames, station.service_s, station.servers, station.room, inside=station.inside)
        self.wait_s[index] += held_s
        self._route(index, served)

    def _queue(
        self,
        node: int,
        frames: Numbers,
        each: Floats,
        servers: int,
        room: int,
        *,
        is_link: bool = False,
        inside: _Inside | None = None,
    ) -> Numbers:
        """Let frames wait and be served at a node; return those that are not lost.

        ``each``: services by size, s at a task unit, ps on a link. The frames pass in chunks. What a chunk leaves at a
        node are services that go on: the next chunk finds them as frames that come with its first one, with the rest of
        their work.
        """
        from routecast import _core  # the compiled part is loaded where it is used

        slower = self.slower.get(node, 1.0)
        factors = None if is_link else self._factors(node)
        kept_parts, services = [], []
        left_end = np.zeros(0, np.uint64)
        left_start = left_end
        self.lost[node], self.wait_s[node], work_s = 0, 0.0, 0.0
        latest = np.zeros(0, np.uint64)
        for begin in range(0, len(frames), _CHUNK_FRAMES):
            chunk = frames[begin : begin + _CHUNK_FRAMES]
            at = self.at[chunk]
            work_ps = each[self._size_places(chunk)]
            if factors is not None:
                work_ps = work_ps * (factors if isinstance(factors, float) else factors[chunk]) * _PS
            work = np.rint(work_ps).astype(np.uint64)
            is_left = left_end > at[0]
            left_start, left_end = np.maximum(left_start[is_left], at[0]), left_end[is_left]
            left = len(left_end)
            all_at = np.concatenate((np.full(left, at[0]), at))
            all_work = np.concatenate((left_end - left_start, work))
            packed = _core.queue_starts(all_at.tobytes(), all_work.tobytes(), servers, room)
            starts = np.frombuffer(packed, np.uint64)[left:]
            kept = starts != _LOST
            self.lost[node] += int(np.count_nonzero(self._counts(at[~kept])))
            chunk, starts, work, at = chunk[kept], starts[kept], work[kept], at[kept]
            ends = starts + work
            if self.extra == 0.0:
                # Of the courses that only bound the loss nobody asks for waits and work.
                waits_s = (starts - at).astype(np.float64) / _PS
                self.waited[chunk] += waits_s
                self.wait_s[node] += float(waits_s[self._counts(starts)].sum())
                counted = np.clip(ends, self.begin, self.end)
                done_s = (counted - np.clip(starts, self.begin, counted)).astype(np.float64) / _PS
                work_s += float(done_s.sum())
            left_start, left_end = np.concatenate((left_start, starts)), np.concatenate((left_end, ends))
            if inside is not None and self.extra == 0.0:
                entered, latest = _entries(at, starts, latest, inside)
                alone = np.uint64(round(inside.alone_s * _PS))
                held = np.clip(starts + alone, self.begin, self.end) - np.clip(entered, self.begin, self.end)
                self.held_s[node] = self.held_s.get(node, 0.0) + float(held.astype(np.float64).sum()) / _PS
            if is_link:
                # A frame leaves with its first bit (S9).
                self.at[chunk] = starts
                self.forwarded[chunk] = self._counts(ends - np.uint64(1))
            elif inside is not None:
                # The pace holds back the next frame; this one goes on as soon as its own work is done.
                self.at[chunk] = starts + np.rint(work / slower).astype(np.uint64)
            else:
                self.at[chunk] = ends
            if not is_link and self._contends(node):
                services.append((starts, ends))
            kept_parts.append(chunk)
        self.work_s[node] = work_s / slower
        served = np.concatenate(kept_parts) if kept_parts else frames
        self.served[node] = len(served)
        if services:
            starts_of, ends_of = zip(*services, strict=True)
            self.services[node] = (served, np.concatenate(starts_of), np.concatenate(ends_of))
        return served

    def _poll(self, index: int, frames: Numbers, station: _Station) -> Numbers:
        """Let frames wait for interrupts and polls of a task unit; return those that are not lost."""
        from routecast import _core  # the compiled part is loaded where it is used

        cost, task = self.fluid.costs[index], self.graph.tasks[index]
        factors = self._factors(index)
        factor = factors if isinstance(factors, float) else factors[frames]
        work = np.rint(station.service_s[self._size_places(frames)] * factor * _PS).astype(np.uint64)
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
        self.served[index] = len(frames)
        if self._contends(index):
            self.services[index] = (frames, starts, self.at[frames])
        return frames

    def _note_wakes(self, index: int, frames: Numbers) -> None:
        """Count how often the frames that come to the first task unit of a thread wake it.

        A thread that wakes pays for a start and serves all that waits and comes meanwhile. The frames of a trace decide
        how many that are; the fluid state knows only the mean of random gaps.
        """
        from routecast import _core  # the compiled part is loaded where it is used

        steady = self.fluid.steady
        assert steady is not None
        machine = steady.machine
        node = int(machine.propagation.position[index])
        thread = int(machine.thread[node])
        if thread >= len(machine.threads) or thread in self.wakes_ratio or not len(frames):
            return
        wakes_per_s, start = float(steady.wakes.per_s[thread]), float(steady.wakes.start[thread])
        arriving = float(steady.node_rates.served[node])
        if wakes_per_s <= 0.0 or start <= 0.0 or arriving <= 0.0:
            return
        nodes = list(machine.threads[thread].tasks)
        frame_s = float((steady.node_rates.served * steady.work_s)[nodes].sum()) / arriving
        at, wakes = self.at[frames], []
        for until in (self.begin, self.end):
            _, _, _, count = _core.polled_starts(
                at.tobytes(),
                np.full(len(at), round(frame_s * _PS), np.uint64).tobytes(),
                len(at),
                int(until),
                (len(at), round(start / wakes_per_s * _PS), 0, round(float(machine.moderation_s[thread]) * _PS), 0, 0),
                exhaustive=True,
                sleep_ps=[],
            )
            wakes.append(count if until else 0)
        self.wakes_ratio[thread] = (wakes[1] - wakes[0]) / self.duration_s / wakes_per_s

    def _wait_for_interrupts(self, index: int, frames: Numbers, station: _Station) -> float:
        """Let frames wait for the moderated interrupt of a thread, in the likely course; return their waits, s."""
        cost = self.fluid.costs[index]
        if self.fluid.steady is None or self.extra != 0.0 or cost.moderation_s <= 0.0:
            return 0.0
        at, service_s = self.at[frames], station.service_s[self._size_places(frames)]
        budget_frames = self.graph.tasks[index].activation.budget_frames
        noticed = noticed_at(at, service_s, cost, budget_frames=budget_frames)
        self.at[frames] = noticed
        return float((noticed - at)[self._counts(noticed)].sum()) / _PS

    def wakes_ratio_of(self, index: int) -> float | None:
        """Return how often the thread of a task unit wakes, of the wakes of the fluid state; None if not counted."""
        if self.fluid.steady is None:
            return None
        machine = self.fluid.steady.machine
        return self.wakes_ratio.get(int(machine.thread[machine.propagation.position[index]]))

    def _counts(self, at: Instants) -> NDArray[np.bool_]:
        """Return which instants count."""
        return (at >= self.begin) & (at < self.end)

    def _factors(self, index: int) -> Floats | float:
        """Return the contention of the services of a task unit: one for all frames, or by frame."""
        return self.factors.get(index, float(self.fluid.factor[index]))

    def _contends(self, index: int) -> bool:
        """Whether a task unit uses a pool with contention."""
        names = {pool.name for pool in self.contending}
        return any(part.pool.name in names for part, _ in self.fluid.uses[index])

    def _route(self, index: int, frames: Numbers) -> None:
        """Send the served frames to the next nodes, those of divided streams in turn."""
        edges = self.graph.edges[index]
        frames = self._in_order(frames)
        flow = self.trace.flow[frames]
        present = np.flatnonzero(numbers_counted(flow))
        by_flow = [(node, fraction[self.stream_of_flow]) for node, fraction in edges]
        if all(((share[present] == 0.0) | (share[present] == 1.0)).all() for _, share in by_flow):
            for node, share in by_flow:
                is_all = len(present) and (share[present] == 1.0).all()
                self.pending.setdefault(node, []).append(frames if is_all else frames[(share == 1.0)[flow]])
            return
        whole = [(node, share[flow]) for node, share in by_flow]
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
            return self._door(index, frames, service_s, room)
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
            return _Station(servers, service_s, self._with_kept(index, room, room))
        slower = self._slower(index)
        if self.extra == 0.0:
            self.slower[index] = math.sqrt(slower)
            return _Station(servers, service_s * self.slower[index], room)
        single_s = np.array([task.service.mean_s(float(size), frequency_hz=frequency_hz) for size in self.sizes])
        service_s = (
            np.maximum(service_s, single_s * cost.slowdown) * slower * slowest_over_mean(task, fluid.model, cost)
        )
        scatter = _SURE * math.sqrt(max(task.service.squared_cv, 0.0) * (room + servers))
        away_s = self._idle_s(index) if self._begins_chain(index) else self._away_s(index)
        away = _most_within(self.at[frames], away_s)
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

    def _begins_chain(self, index: int) -> bool:
        """Whether all work of a unit comes from the frames of one task unit and is ready as soon as that is done.

        A frame that waits there has all of its work on the unit before it. The unfinished work then is at least that of
        the waiting frames, and as a unit that has work never idles, it is no more than in a queue that serves each
        frame with all of its work at once, in whichever order the unit serves. That queue so loses at least as many
        frames.
        """
        uses, graph = self.fluid.uses[index], self.graph
        if len(uses) != 1 or len(uses[0][0].units) != 1 or len(self.graph.tasks[index].needs) != 1:
            return False
        members = {member for member, _ in uses[0][0].members}
        after = members - {index}
        feeders = [
            station
            for station, edges in enumerate(graph.edges)
            for node, fraction in edges
            if node in after and (fraction > 0.0).any()
        ]
        return after.isdisjoint(graph.entry) and members.issuperset(feeders)

    def _idle_s(self, index: int) -> float:
        """Return how long the unit of a task unit may idle or be interrupted although frames wait for it, s."""
        costs = [self.fluid.costs[member] for part, _ in self.fluid.uses[index] for member, _ in part.members]
        wakes_s = sum(cost.moderation_s + cost.sleep_s for cost in costs)
        exits_s = max((exit_s for cost in costs for _, exit_s in cost.sleep_states), default=0.0)
        return wakes_s + exits_s + self._interruption_s(index)

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

    def _door(self, index: int, frames: Numbers, service_s: Floats, room: int) -> _Station:
        """Return where a window begins as a server that takes in frames as fast as all of the window does.

        A window of T frames that passes P frames/s and holds a frame that is alone for R has taken in the frames that
        wait less than R for the server, so T - PR more frames have room; see :func:`_entries`.

        The pooled course, see :attr:`is_pooled`: the router holds no more frames before the end of a window than this
        one and the windows before it may keep where they are slow, so all of them lose at least as many. With its own
        room the fastest course is no bound: a slow window before it keeps frames that it would lose.
        """
        fluid = self.fluid
        assert fluid.windows is not None
        assert fluid.window_rates is not None
        number = fluid.windows.enter.index(index)
        extra = -1.0 if self.extra > 0.0 and self._depth(index) < self.slow_from else self.extra
        fastest_pps = float(fluid.window_rates.max_pps[number])
        slowest_pps = fastest_pps
        if self.overloaded is not None and self.overloaded.window_rates is not None:
            # In a burst all windows wait for the same memories.
            slowest_pps = min(fastest_pps, float(self.overloaded.window_rates.max_pps[number]))
        if not (math.isfinite(fastest_pps) and slowest_pps > 0.0):
            return _Station(1, service_s, room)
        likely_pps = slowest_pps if self.is_uneven else fastest_pps
        fastest_pps, slowest_pps = fastest_pps / (1.0 - _WINDOW_ERROR), slowest_pps / (1.0 + _WINDOW_ERROR)
        most_pps = {-1.0: fastest_pps, 1.0: slowest_pps}.get(extra, likely_pps)
        own_s = float(np.average(service_s, weights=self.frames_by_size))
        paced_s = np.full(len(service_s), 1.0 / most_pps)
        station_s = station_pace_s(fluid, number, self.sizes, self.frames_by_size)
        station_pps = 1.0 / max(float(np.average(station_s, weights=self.frames_by_size)), 1e-300)
        if station_pps < most_pps:
            most_pps, paced_s = station_pps, station_s
        slowest_pps = min(slowest_pps, station_pps)
        inside = self._inside(index, number, most_pps)
        paced_s = paced_s / float(self.fluid.factor[index])
        mean_s = float(np.average(paced_s, weights=self.frames_by_size))
        self.slower[index] = mean_s / own_s if own_s > 0.0 else math.inf
        entered = min(max(round(inside.alone_s * most_pps), 1), inside.frames)
        room += inside.frames - {-1.0: 1, 1.0: inside.frames}.get(extra, entered)
        if self.extra < 0.0:
            waiting = _most_waiting(self.at[frames], 1.0 / slowest_pps)
            room = self._with_kept(index, room, min(waiting, room) if waiting > 1 else 0)
        return _Station(1, paced_s, room, inside=inside)

    def _inside(self, index: int, number: int, most_pps: float) -> _Inside:
        """Return what is inside a window; a window that shares units with others has all of them at its fastest."""
        windows = self.fluid.windows
        assert windows is not None
        frames = float(windows.units[number])
        if self.extra < 0.0:
            need = next(need for need in self.graph.tasks[index].needs if need.pool == windows.pools[number])
            frames = self.fluid.model.pool(need.pool).units // need.units
        alone_s = float(windows.demand_s[number].sum() + windows.delay_s[number])
        return _Inside(max(round(frames), 1), min(alone_s, frames / most_pps))

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
            if own > 0.0 and not self._never_waits(index, part, units):
                slower = max(slower, work / own)
        return slower

    def _never_waits(self, index: int, part: Component, units: int) -> bool:
        """Whether all others together leave a task unit of one server the units that it needs of a pool."""
        tasks, rates = self.graph.tasks, self.fluid.rates.sum(axis=1)
        members = [(member, needed) for member, needed in part.members if rates[member] > 0.0 or member == index]
        if self.fluid.steady is not None or self.fluid.windows is not None:
            return False
        are_plain = all(
            tasks[member].activation.kind == "dedicated"
            and self._is_alone(member)
            and not (tasks[member].pin and tasks[member].needs[0].pool == part.pool.name)
            for member, _ in members
        )
        return are_plain and sum(needed for member, needed in members if member != index) + units <= len(part.units)

    def _away_s(self, index: int) -> float:
        away_s = self.absences.away_s[index]
        return away_s if math.isfinite(away_s) else self.duration_s

    def note_contention(self) -> None:
        """Take the contention of each service from the units that are busy as it begins."""
        for pool in self.contending:
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
                if index not in self.factors:
                    self.factors[index] = np.full(len(self.trace), float(self.fluid.factor[index]))
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
            served = self.served.get(index, 0)
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


def _entries(at: Instants, starts: Instants, latest: Instants, inside: _Inside) -> tuple[Instants, Instants]:
    """Return when frames enter a window, and the latest starts for the frames that follow.

    A window of T frames that passes a frame each 1/P and holds a frame that is alone for R <= T/P is a single server
    in front of a delay: the n-th frame leaves it at ``d_n = max(a_n + R, d_(n-1) + 1/P)``, and enters as soon as there
    is room, at ``max(a_n, d_(n-T))``.

    ``starts``: ``d_n - R``; ``latest``: those of up to T frames before.
    """
    all_starts = np.concatenate((latest, starts))
    before = all_starts[: max(len(all_starts) - inside.frames, 0)] + np.uint64(round(inside.alone_s * _PS))
    entered = at.copy()
    late = entered[len(entered) - len(before) :]
    np.maximum(late, before, out=late)
    return entered, all_starts[max(len(all_starts) - inside.frames, 0) :]


def _wire_ps(link_bps: float, sizes: NDArray[np.uint32]) -> Floats:
    return (sizes.astype(np.float64) + WIRE_OVERHEAD_BYTES) * (8.0 * _PS / link_bps)


def _tasks_before(fluid: Fluid) -> list[frozenset[int]]:
    """Return by task unit those that its frames may have passed."""
    passed: list[set[int]] = [set() for _ in range(fluid.graph.exit + 1)]
    for index, edges in enumerate(fluid.graph.edges):
        for node, fraction in edges:
            if (fraction > 0.0).any():
                passed[node] |= passed[index] | {index}
    return [frozenset(tasks) for tasks in passed]


def _most_waiting(at: Instants, gap_s: float) -> int:
    """Return the most frames that wait for a server that begins one each gap and has room for all."""
    gap_ps, most, free_ps = gap_s * _PS, 0.0, 0.0
    for begin in range(0, len(at), _CHUNK_FRAMES):
        at_ps = at[begin : begin + _CHUNK_FRAMES].astype(np.float64)
        done_ps = np.arange(len(at_ps)) * gap_ps
        starts_ps = np.maximum.accumulate(np.maximum(at_ps - done_ps, free_ps)) + done_ps
        most = max(most, float((starts_ps - at_ps).max()))
        free_ps = float(starts_ps[-1]) + gap_ps
    return math.ceil(most / gap_ps)


def _most_within(at: Instants, time_s: float) -> int:
    """Return the most frames that arrive within an interval of a length."""
    if time_s <= 0.0 or not len(at):
        return 0
    length, most = np.uint64(min(time_s * _PS, 2.0**62)), 0
    for begin in range(0, len(at), _CHUNK_FRAMES):
        ends = np.searchsorted(at, at[begin : begin + _CHUNK_FRAMES] + length, side="right")
        most = max(most, int((ends - np.arange(begin, begin + len(ends))).max()))
    return most


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
            if index in passage.bounded and expected > 0.0 and _pays_for_starts(fluid, index):
                # Interrupts and batches cost what the fluid state says; a queue knows only its frames.
                units, wakes_ratio = float(fluid.busy_units[need.pool][index]), passage.wakes_ratio_of(index)
                starts = max(units - expected * need.units, 0.0)
                if wakes_ratio is not None:
                    units = work * need.units + starts * wakes_ratio
                else:
                    units *= work / expected
            if index in passage.held_s:
                units = passage.held_s[index] / passage.duration_s * need.units
            busy[need.pool][index] = min(units, float(fluid.model.pool(need.pool).units))
    polling = np.array([task.activation.kind == "polling" for task in fluid.graph.tasks])
    active = {name: np.where(polling, units, busy[name]) for name, units in fluid.active_units.items()}
    notes = tuple(note for note in fluid.notes if note != MEAN_BATCHES) if passage.wakes_ratio else fluid.notes
    return replace(fluid, busy_units=busy, active_units=active, notes=notes)


def _pays_for_starts(fluid: Fluid, index: int) -> bool:
    """Whether a task unit takes its units for more than its frames: starts, switches, polls and states of sleep."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    pools = [fluid.model.pool(need.pool) for need in task.needs]
    by_start_s = cost.batch_s + cost.interrupt_s + sum(pool.switch_cost_s + pool.migration_cost_s for pool in pools)
    is_dedicated = task.activation.kind == "dedicated" and fluid.steady is None
    return not is_dedicated or by_start_s > 0.0 or bool(cost.sleep_states)


def _answer(fluid: Fluid, likely: _Passage, losses: list[float]) -> DelayAnswer:
    names = [task.name for task in fluid.graph.tasks] + [f"{port.name} out" for port in fluid.model.ports]
    per_s = 1.0 / likely.duration_s
    drops = {names[node]: count * per_s for node, count in sorted(likely.lost.items()) if count}
    in_flight = likely.offered - int(np.count_nonzero(likely.forwarded)) - sum(likely.lost.values())
    if likely.is_repeated:
        in_flight = 0
    work = {
        task.name: likely.work_s.get(index, 0.0) * per_s / max(float(fluid.service_s[index]), 1e-300)
        if fluid.service_s[index] > 0.0
        else per_s * likely.entered.get(index, 0)
        for index, task in enumerate(fluid.graph.tasks)
    }
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
    if likely.held_s:
        notes.append(
            "threads and buffers of windows are held as by frames that follow each other; frames that come at once, "
            "from several ports, hold them longer"
        )
    if likely.wakes_ratio:
        notes.append("threads wake as often as the frames of the trace would wake each of them alone, an approximation")
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
    stays_ps = passage.at[passed]
    stays_ps -= passage.arrived[passed]
    stays_s: Floats = stays_ps.astype(np.float64)
    del stays_ps
    stays_s /= _PS
    of = "repeated bursts" if passage.is_repeated else "the trace"
    method = f"queues of {len(passage.trace):,} frames of {of}"
    return _delay(stays_s, method), _delay(passage.waited[passed], method)


def _delay(times_s: Floats, method: str) -> Delay:
    """Return the moments and quantiles of delays, whose array is put into another order."""
    if not len(times_s):
        return Delay(mean_s=math.nan, method=method)
    mean_s, min_s, max_s = float(times_s.mean()), float(times_s.min()), float(times_s.max())
    quantiles = np.quantile(times_s, (0.5, 0.9, 0.99, 0.999), method="inverted_cdf", overwrite_input=True)
    p50, p90, p99, p999 = quantiles.tolist()
    return Delay(mean_s=mean_s, min_s=min_s, p50_s=p50, p90_s=p90, p99_s=p99, p999_s=p999, max_s=max_s, method=method)
