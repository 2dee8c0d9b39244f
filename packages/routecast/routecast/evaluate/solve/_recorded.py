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
room that frames find up to them (:mod:`routecast.evaluate.solve._recorded_stations`), and the greatest that of the
slowest queues, of the fastest ones with their own room, or of slow windows behind fast ones.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve._delay import DelayAnswer
from routecast.evaluate.solve._moderation import noticed_at
from routecast.evaluate.solve._recorded_stations import (
    SURE,
    Course,
    RecordedStation,
    RecordedStations,
    interruption_s,
    is_own,
)
from routecast.evaluate.solve._recorded_turns import serve_in_turns, turns_of
from routecast.evaluate.solve._recording import CHUNK_FRAMES, NOTABLE, PS, Floats, Instants, Numbers, Recording
from routecast.evaluate.solve._repeated_bursts import recorded_bursts
from routecast.evaluate.solve._unknown_shares import Absences, absences_of
from routecast.evaluate.solve.fluid import MEAN_BATCHES, Fluid
from routecast.evaluate.trial import Delay
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.load.trace import numbers_counted

__all__ = ["pass_recorded"]

_LOST = np.uint64(2**64 - 1)
_ROUNDS = 4
_MAX_WIDTH = 0.02, 0.08
"""Greatest distance of the bounds of a known loss: frames of one size; mixed sizes or gaps."""


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
    recording = Recording(fluid, trace, span_s)
    likely = _Passage(fluid, recording, absences, overloaded, Course())
    contention, bounded, before = likely.contention, likely.stations.bounded, likely.stations.before
    for number in range(_ROUNDS if contention.pools else 1):
        if number:
            contention.note()
        likely.run()
    losses, by_chance = [likely.loss_ratio], math.inf
    if bounded:
        contention.note()
        courses = [Course(extra=-1.0), Course(extra=1.0)]
        if any(before[index] & bounded.keys() for index in bounded):
            courses.append(Course(extra=-1.0, is_pooled=True))
        for number, course in enumerate(courses):
            bound = _Passage(fluid, recording, absences, overloaded, course)
            bound.contention.factors = contention.factors
            bound.run()
            bound.contention.note()
            losses.append(bound.loss_ratio + bound.added_by_chance_ratio)
            if number == 1:
                by_chance = _chance_frames(likely, bound) / max(likely.offered, 1)
                # Where a window loses frames, it loses most if those before it delay none.
                depths = sorted(bound.stations.losing_depths(bound.lost))
                courses += [Course(extra=1.0, slow_from=depth) for depth in depths if depth > 0]
    return _with_work(fluid, likely), _answer(fluid, likely, losses, by_chance)


class _Contention:
    """Services at pools with contention, and how much longer each takes.

    ``factors``: by task unit, the contention of each frame's service; ``services``: by task unit of a pool with
    contention, frames, starts and ends of its services.
    """

    def __init__(self, fluid: Fluid, count: int) -> None:
        self._fluid, self._count = fluid, count
        self.pools = [pool for pool in fluid.model.pools if not pool.contention.is_none]
        self.factors: dict[int, Floats] = {}
        self.services: dict[int, tuple[Numbers, Instants, Instants]] = {}

    def factors_of(self, index: int) -> Floats | float:
        """Return the contention of the services of a task unit: one for all frames, or by frame."""
        return self.factors.get(index, float(self._fluid.factor[index]))

    def concerns(self, index: int) -> bool:
        """Whether a task unit uses a pool with contention."""
        names = {pool.name for pool in self.pools}
        return any(part.pool.name in names for part, _ in self._fluid.uses[index])

    def note(self) -> None:
        """Take the contention of each service from the units that are busy as it begins."""
        for pool in self.pools:
            users = [
                index
                for index in self.services
                if any(part.pool.name == pool.name for part, _ in self._fluid.uses[index])
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
                    self.factors[index] = np.full(self._count, float(self._fluid.factor[index]))
                self.factors[index][frames] = table[np.clip(busy, 1, pool.units)]


class _Queue:
    """A queue that frames pass in chunks.

    What a chunk leaves are services that go on: the next chunk finds them as frames that come with its first one, with
    the rest of their work.
    """

    def __init__(self, servers: int, room: int) -> None:
        self._servers, self._room = servers, room
        self._left_start = self._left_end = np.zeros(0, np.uint64)

    def starts(self, at: Instants, work: Instants) -> Instants:
        """Return when the service of each frame starts; ``_LOST`` for those that are lost."""
        from routecast import _core  # the compiled part is loaded where it is used

        is_left = self._left_end > at[0]
        left_start, left_end = np.maximum(self._left_start[is_left], at[0]), self._left_end[is_left]
        left = len(left_end)
        all_at = np.concatenate((np.full(left, at[0]), at))
        all_work = np.concatenate((left_end - left_start, work))
        packed = _core.queue_starts(all_at.tobytes(), all_work.tobytes(), self._servers, self._room)
        starts = np.frombuffer(packed, np.uint64)[left:]
        kept = starts != _LOST
        self._left_start = np.concatenate((left_start, starts[kept]))
        self._left_end = np.concatenate((left_end, starts[kept] + work[kept]))
        return starts


class _Passage:
    """One passage of all frames through the graph, in one course."""

    def __init__(
        self, fluid: Fluid, recording: Recording, absences: Absences, overloaded: Fluid | None, course: Course
    ) -> None:
        self.fluid, self.graph, self.recording, self.course = fluid, fluid.graph, recording, course
        self.trace = recording.trace
        self.stations = RecordedStations(fluid, recording, absences, overloaded, course)
        self.contention = _Contention(fluid, len(recording))
        self.stream_of_flow = _streams(fluid)
        self.ingress_of_flow = np.array([flow.ingress for flow in fluid.load.flows.flows])
        self.turns = turns_of(fluid, len(recording))
        self.reset()

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
        self.contention.services.clear()
        self.released: dict[int, float] = {}
        """By node: bound of the frames lost because random stations before it release theirs together."""
        self.wakes_ratio: dict[int, float] = {}
        """By thread: how often its frames wake it, of the wakes of the fluid state."""
        self.forwarded = np.zeros(len(self.trace), bool)

    def run(self) -> None:
        """Pass all frames through the router."""
        self.reset()
        self._enter()
        for index in range(len(self.graph.tasks)):
            if self.turns is not None and index == self.turns.first and not self.stations.bounded:
                self._serve_in_turns()
            if index in self.pending:
                self._serve(index, self._arriving(index))
        for number, port in enumerate(self.fluid.model.ports):
            node = len(self.graph.tasks) + number
            if node in self.pending:
                wire_ps = _wire_ps(port.link_bps, self.recording.sizes)
                station = RecordedStation(1, wire_ps / PS, port.tx_ring_frames)
                self._queue(node, self._arriving(node), station, wire_ps=wire_ps)
        for frames in self.pending.pop(self.graph.exit, []):
            self.forwarded[frames] = self.recording.counts(self.at[frames])

    def _enter(self) -> None:
        """Let the frames arrive by their links: the last bit of each follows that of the one before it."""
        for number, port in enumerate(self.fluid.model.ports):
            frames = np.flatnonzero((self.ingress_of_flow == number)[self.trace.flow]).astype(np.uint32)
            if not len(frames):
                continue
            sent_ps = _wire_ps(port.link_bps, self.recording.sizes)[self.recording.size_places(frames)]
            np.cumsum(sent_ps, out=sent_ps)
            at_ps = self.trace.time_s[frames]
            at_ps *= PS
            np.rint(at_ps, out=at_ps)
            at_ps -= sent_ps
            np.maximum.accumulate(at_ps, out=at_ps)
            at_ps += sent_ps
            at_ps += 1e-6
            np.floor(at_ps, out=at_ps)
            self.at[frames] = at_ps.clip(0.0, out=at_ps)
            self.pending.setdefault(self.graph.entry[number], []).append(frames)
        self.arrived = self.at.copy()
        self.offered = int(np.count_nonzero(self.recording.counts(self.at)))

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

    def _serve(self, index: int, frames: Numbers) -> None:
        station = self.stations.station(index, self.at[frames])
        if self.fluid.steady is not None and self.course.extra == 0.0:
            self._note_wakes(index, frames)
        if station.wakeup_s is not None:
            self._route(index, self._poll(index, frames, station))
            return
        held_s = self._wait_for_interrupts(index, frames, station)
        served = self._queue(index, frames, station)
        self.wait_s[index] += held_s
        self._route(index, served)

    def _serve_in_turns(self) -> None:
        """Serve all frames at the polling threads that take turns at several queues, and pass them on."""
        turns, recording = self.turns, self.recording
        assert turns is not None
        arrivals: list[tuple[int, int, int]] = []
        for node in [node for node in self.pending if node in turns]:
            frames = self._arriving(node)
            arrivals += zip(self.at[frames].tolist(), frames.tolist(), [node] * len(frames), strict=True)
        work_ps = {index: self._work_ps(index) for members in turns.threads for index in members}
        place_of = recording.size_places(np.arange(len(recording), dtype=np.uint32)).tolist()
        served, left, left_at = serve_in_turns(
            turns, self.fluid, arrivals, self.trace.flow, work_ps, place_of, self.stream_of_flow
        )
        for index, part in served.items():
            frames = np.array(part.frames, np.uint32)
            at, starts, ends = (np.array(times, np.uint64) for times in (part.at, part.starts, part.ends))
            waits_s = (starts - at).astype(np.float64) / PS
            self.waited[frames] += waits_s
            self.entered[index] = len(frames) + len(part.lost_at)
            self.served[index] = len(frames)
            self.lost[index] = int(np.count_nonzero(recording.counts(np.array(part.lost_at, np.uint64))))
            self.wait_s[index] = float(waits_s[recording.counts(starts)].sum())
            self.work_s[index] = self._counted_s(starts, ends)
        if left_at:
            self.at[np.fromiter(left_at.keys(), np.uint32)] = np.fromiter(left_at.values(), np.uint64)
        for node, parts in left.items():
            self.pending.setdefault(node, []).append(np.array(parts, np.uint32))

    def _work_ps(self, index: int) -> list[int]:
        """Return the services of a task unit whose frames alone decide its course, by frame size, ps."""
        station = self.stations.own_station(index)
        factor = float(self.fluid.factor[index])
        return [int(time_ps) for time_ps in np.rint(station.service_s * factor * PS).tolist()]

    def _counted_s(self, starts: Instants, ends: Instants) -> float:
        """Return the time between starts and ends that counts, s."""
        counted = np.clip(ends, self.recording.begin, self.recording.end)
        done_ps = counted - np.clip(starts, self.recording.begin, counted)
        return float((done_ps.astype(np.float64) / PS).sum())

    def _wait_for_interrupts(self, index: int, frames: Numbers, station: RecordedStation) -> float:
        """Let frames wait for the moderated interrupt of a thread, in the likely course; return their waits, s."""
        cost = self.fluid.costs[index]
        if self.fluid.steady is None or self.course.extra != 0.0 or cost.moderation_s <= 0.0:
            return 0.0
        at, service_s = self.at[frames], station.service_s[self.recording.size_places(frames)]
        budget_frames = self.fluid.graph.tasks[index].activation.budget_frames
        noticed = noticed_at(at, service_s, cost, budget_frames=budget_frames)
        self.at[frames] = noticed
        return float((noticed - at)[self.recording.counts(noticed)].sum()) / PS

    def _queue(self, node: int, frames: Numbers, station: RecordedStation, *, wire_ps: Floats | None = None) -> Numbers:
        """Let frames wait and be served at a node; return those that are not lost.

        ``wire_ps``: times of the frame sizes on a link; None at a task unit.
        """
        recording, inside = self.recording, station.inside
        queue = _Queue(station.servers, station.room)
        factors = 1.0 if wire_ps is not None else self.contention.factors_of(node)
        kept_parts, services, waited = [], [], []
        self.lost[node], self.wait_s[node], work_s = 0, 0.0, 0.0
        latest = np.zeros(0, np.uint64)
        for begin in range(0, len(frames), CHUNK_FRAMES):
            chunk = frames[begin : begin + CHUNK_FRAMES]
            at = self.at[chunk]
            places = recording.size_places(chunk)
            if wire_ps is not None:
                work_ps = wire_ps[places]
            else:
                work_ps = station.service_s[places] * (factors if isinstance(factors, float) else factors[chunk]) * PS
            work = np.rint(work_ps).astype(np.uint64)
            starts = queue.starts(at, work)
            kept = starts != _LOST
            self.lost[node] += int(np.count_nonzero(recording.counts(at[~kept])))
            chunk, starts, work, at = chunk[kept], starts[kept], work[kept], at[kept]
            ends = starts + work
            if self.course.extra > 0.0:
                waited.append((at, starts))
            if self.course.extra == 0.0:
                # Of the courses that only bound the loss nobody asks for waits and work.
                waits_s = (starts - at).astype(np.float64) / PS
                self.waited[chunk] += waits_s
                self.wait_s[node] += float(waits_s[recording.counts(starts)].sum())
                work_s += self._counted_s(starts, ends)
            if inside is not None and self.course.extra == 0.0:
                entered, latest = inside.entries(at, starts, latest)
                left = np.clip(starts + np.uint64(round(inside.alone_s * PS)), recording.begin, recording.end)
                held = left - np.clip(entered, recording.begin, recording.end)
                self.held_s[node] = self.held_s.get(node, 0.0) + float(held.astype(np.float64).sum()) / PS
            if wire_ps is not None:
                # A frame leaves with its first bit (S9).
                self.at[chunk] = starts
                self.forwarded[chunk] = recording.counts(ends - np.uint64(1))
            elif inside is not None:
                # The pace holds back the next frame; this one goes on as soon as its own work is done.
                self.at[chunk] = starts + np.rint(work / station.slower).astype(np.uint64)
            else:
                self.at[chunk] = ends
            if wire_ps is None and self.contention.concerns(node):
                services.append((starts, ends))
            kept_parts.append(chunk)
        self.work_s[node] = work_s / station.slower
        if self.course.extra > 0.0 and inside is None and not self.lost[node] and waited:
            waiting = _most_waiting(*map(np.concatenate, zip(*waited, strict=True)))
            self.released[node] = self.stations.released(
                node,
                len(frames),
                station.room,
                waiting=waiting,
                served_pps=station.servers / max(float(station.service_s.max()), 1e-300),
            )
        served = np.concatenate(kept_parts) if kept_parts else frames
        self.served[node] = len(served)
        if services:
            starts_of, ends_of = zip(*services, strict=True)
            self.contention.services[node] = (served, np.concatenate(starts_of), np.concatenate(ends_of))
        return served

    def _poll(self, index: int, frames: Numbers, station: RecordedStation) -> Numbers:
        """Let frames wait for interrupts and polls of a task unit; return those that are not lost."""
        from routecast import _core  # the compiled part is loaded where it is used

        cost, task = self.fluid.costs[index], self.graph.tasks[index]
        factors = self.contention.factors_of(index)
        factor = factors if isinstance(factors, float) else factors[frames]
        work = np.rint(station.service_s[self.recording.size_places(frames)] * factor * PS).astype(np.uint64)
        mean_factor = float(self.fluid.factor[index])
        assert station.wakeup_s is not None
        times_s = (cost.moderation_s, station.wakeup_s, cost.linger_s)
        moderation, wakeup, linger = (round(time_s * PS) for time_s in times_s)
        interrupt, batch = (round(time_s * mean_factor * PS) for time_s in (cost.interrupt_s, cost.batch_s))
        polls = (task.activation.budget_frames, interrupt, batch, moderation, wakeup, linger)
        at = self.at[frames]
        busy_ps = 0
        packed_starts = packed_ends = b""
        for until, sign in ((self.recording.begin, -1), (self.recording.end, 1)):
            if not until:
                continue
            packed_starts, packed_ends, worked_ps, _ = _core.polled_starts(
                at.tobytes(),
                work.tobytes(),
                station.room,
                int(until),
                polls,
                exhaustive=cost.exhaustive,
                sleep_ps=[(round(after_s * PS), round(exit_s * PS)) for after_s, exit_s in cost.sleep_states],
            )
            busy_ps += sign * worked_ps
        starts, ends = np.frombuffer(packed_starts, np.uint64), np.frombuffer(packed_ends, np.uint64)
        kept = starts != _LOST
        self.lost[index] = int(np.count_nonzero(self.recording.counts(at[~kept])))
        frames, starts = frames[kept], starts[kept]
        waits_s = (starts - at[kept]).astype(np.float64) / PS
        self.waited[frames] += waits_s
        self.wait_s[index] = float(waits_s[self.recording.counts(starts)].sum())
        self.work_s[index] = busy_ps / PS
        self.at[frames] = ends[kept]
        self.served[index] = len(frames)
        if self.contention.concerns(index):
            self.contention.services[index] = (frames, starts, self.at[frames])
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
        for until in (self.recording.begin, self.recording.end):
            _, _, _, count = _core.polled_starts(
                at.tobytes(),
                np.full(len(at), round(frame_s * PS), np.uint64).tobytes(),
                len(at),
                int(until),
                (len(at), round(start / wakes_per_s * PS), 0, round(float(machine.moderation_s[thread]) * PS), 0, 0),
                exhaustive=True,
                sleep_ps=[],
            )
            wakes.append(count if until else 0)
        self.wakes_ratio[thread] = (wakes[1] - wakes[0]) / self.recording.duration_s / wakes_per_s

    def wakes_ratio_of(self, index: int) -> float | None:
        """Return how often the thread of a task unit wakes, of the wakes of the fluid state; None if not counted."""
        if self.fluid.steady is None:
            return None
        machine = self.fluid.steady.machine
        return self.wakes_ratio.get(int(machine.thread[machine.propagation.position[index]]))

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

    @property
    def added_by_chance_ratio(self) -> float:
        """Bound of the share of frames that are lost by chance beside those of this course."""
        frames = sum(self.stations.added_by_chance.values()) + sum(self.released.values())
        return min(frames / max(len(self.trace), 1), 1.0)

    @property
    def loss_ratio(self) -> float:
        """Share of the offered frames that are lost."""
        return sum(self.lost.values()) / max(self.offered, 1)


def _chance_frames(likely: _Passage, slowest: _Passage) -> float:
    """Return a bound of the frames that interruptions and random services lose besides.

    Infinite where more than these decide. A task unit that loses frames is full while it does, so all of the time
    that they take beyond its mean is lost for frames, three standard deviations of it. One that loses none, and
    what is behind, lose what the slowest course says.
    """
    frames = sum(slowest.released.values())
    for index in likely.stations.bounded:
        if not is_own(likely.fluid, index):
            return math.inf
        if not likely.lost.get(index):
            frames += max(slowest.stations.lost_by_chance.get(index, 0.0), slowest.lost.get(index, 0))
            continue
        served = likely.served.get(index, 0)
        service_s = float(likely.fluid.costs[index].busy_s)
        frames += SURE * math.sqrt(max(likely.graph.tasks[index].service.squared_cv, 0.0) * served)
        for need in likely.graph.tasks[index].needs:
            interruptions = likely.fluid.model.pool(need.pool).interruptions
            if interruptions is not None and service_s > 0.0:
                expected = interruptions.rate_hz * likely.recording.duration_s
                away_s = SURE * math.sqrt(expected * interruptions.duration.second_moment_s2)
                frames += (away_s + interruption_s(likely.fluid, index)) / service_s
    return frames


def _most_waiting(at: Instants, starts: Instants) -> int:
    """Return the most frames that wait when one arrives, that one too."""
    begun = np.searchsorted(np.sort(starts), at, side="right")
    return max(int((np.arange(1, len(at) + 1) - begun).max(initial=0)), 0)


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
    return (sizes.astype(np.float64) + WIRE_OVERHEAD_BYTES) * (8.0 * PS / link_bps)


def _with_work(fluid: Fluid, passage: _Passage) -> Fluid:
    """Return the fluid state with the busy units of the passage."""
    count = len(fluid.graph.tasks)
    busy = {name: np.zeros(count) for name in fluid.busy_units}
    served_pps = fluid.rates[:count].sum(axis=1) * fluid.admitted_ratio[:count]
    for index, task in enumerate(fluid.graph.tasks):
        work = passage.work_s.get(index, 0.0) / passage.recording.duration_s
        expected = float(served_pps[index] * fluid.service_s[index])
        for need in task.needs:
            units = work * need.units
            if index in passage.stations.bounded and expected > 0.0 and _pays_for_starts(fluid, index):
                # Interrupts and batches cost what the fluid state says; a queue knows only its frames.
                units, wakes_ratio = float(fluid.busy_units[need.pool][index]), passage.wakes_ratio_of(index)
                starts = max(units - expected * need.units, 0.0)
                if wakes_ratio is not None:
                    units = work * need.units + starts * wakes_ratio
                else:
                    units *= work / expected
            if index in passage.held_s:
                units = passage.held_s[index] / passage.recording.duration_s * need.units
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


def _answer(fluid: Fluid, likely: _Passage, losses: list[float], by_chance: float) -> DelayAnswer:
    names = [task.name for task in fluid.graph.tasks] + [f"{port.name} out" for port in fluid.model.ports]
    per_s = 1.0 / likely.recording.duration_s
    drops = {names[node]: count * per_s for node, count in sorted(likely.lost.items()) if count}
    in_flight = likely.offered - int(np.count_nonzero(likely.forwarded)) - sum(likely.lost.values())
    if likely.recording.is_repeated:
        in_flight = 0
    work = {
        task.name: likely.work_s.get(index, 0.0) * per_s / max(float(fluid.service_s[index]), 1e-300)
        if fluid.service_s[index] > 0.0
        else per_s * likely.entered.get(index, 0)
        for index, task in enumerate(fluid.graph.tasks)
    }
    low = min(losses)
    high = min(max(losses), losses[0] + by_chance)
    high = 1.0 if likely.stations.is_unbounded else high
    width = _MAX_WIDTH[1 if likely.recording.is_uneven else 0]
    reason = ""
    if high - low > width:
        index, why = next(iter(likely.stations.bounded.items()))
        what = "the bursts lose" if likely.recording.is_repeated else "the trace loses"
        reason = f'"{names[index]}" {why}, and {what} between {low:.1%} and {high:.1%}'
    sizes = likely.trace.frame_bytes[likely.forwarded]
    latency, waiting = (None, None) if likely.stations.bounded else _delays(likely)
    notes = [*likely.trace.notes]
    if likely.held_s:
        notes.append(
            "threads and buffers of windows are held as by frames that follow each other; frames that come at once, "
            "from several ports, hold them longer"
        )
    if likely.wakes_ratio:
        notes.append("threads wake as often as the frames of the trace would wake each of them alone, an approximation")
    if likely.stations.bounded:
        index, why = next(iter(likely.stations.bounded.items()))
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
        possible_losses=tuple(names[index] for index in likely.stations.bounded) if high - low > NOTABLE else (),
    )


def _delays(passage: _Passage) -> tuple[Delay, Delay]:
    """Return latency and waiting time of the forwarded frames."""
    passed = passage.forwarded
    stays_ps = passage.at[passed]
    stays_ps -= passage.arrived[passed]
    stays_s: Floats = stays_ps.astype(np.float64)
    del stays_ps
    stays_s /= PS
    of = "repeated bursts" if passage.recording.is_repeated else "the trace"
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
