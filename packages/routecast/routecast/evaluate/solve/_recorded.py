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
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve._delay_answer import DelayAnswer
from routecast.evaluate.solve._moderation import noticed_at, polled
from routecast.evaluate.solve._recorded_routes import routed
from routecast.evaluate.solve._recorded_stations import (
    SURE,
    Course,
    RecordedStation,
    RecordedStations,
    completion_scv,
    interruption_s,
    is_own,
    is_random,
)
from routecast.evaluate.solve._recorded_switches import Switches
from routecast.evaluate.solve._recorded_turns import serve_in_turns, turns_of
from routecast.evaluate.solve._recorded_wakes import Visit, starts_ratios, units_of_starts
from routecast.evaluate.solve._recorded_windows import follow, paths_of
from routecast.evaluate.solve._recording import CHUNK_FRAMES, NOTABLE, PS, Floats, Instants, Numbers, Recording
from routecast.evaluate.solve._repeated_bursts import recorded_bursts
from routecast.evaluate.solve._scheduling_shares import Component
from routecast.evaluate.solve._unknown_shares import Absences, absences_of
from routecast.evaluate.solve.fluid import MEAN_BATCHES, Fluid
from routecast.evaluate.trial import Delay
from routecast.load.offered import WIRE_OVERHEAD_BYTES

__all__ = ["pass_recorded"]

_LOST = np.uint64(2**64 - 1)
_ROUNDS = 4
_BUSY, _NEVER_EMPTY = 0.98, 5.0
""":func:`_stays_full`: share of the time at work, and exponent of the chance that its queue is empty."""
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
        if number in {1, _ROUNDS - 1} or not contention.pools:
            likely.count_starts()
    losses, passed, by_chance = [likely.loss_ratio], [likely.passed_frames], math.inf
    if bounded:
        contention.note(is_bound=True)
        courses = [Course(extra=-1.0), Course(extra=1.0)]
        if any(before[index] & bounded.keys() for index in bounded):
            courses.append(Course(extra=-1.0, is_pooled=True))
        for number, course in enumerate(courses):
            bound = _Passage(fluid, recording, absences, overloaded, course)
            bound.contention.factors = contention.factors
            bound.run()
            bound.contention.note(is_bound=True)
            losses.append(bound.loss_ratio + bound.added_by_chance_ratio)
            passed.append(bound.passed_frames)
            if number == 1:
                by_chance = _chance_frames(likely, bound) / max(likely.offered, 1)
                # Where a window loses frames, it loses most if those before it delay none.
                depths = sorted(bound.stations.losing_depths(bound.lost))
                courses += [Course(extra=1.0, slow_from=depth) for depth in depths if depth > 0]
    by_services = _passed_by_chance(likely)
    passed_range = min(passed) - by_services, min(max(passed) + by_services, likely.offered)
    return _with_work(fluid, likely), _answer(fluid, likely, losses, by_chance, passed_range)


class _Contention:
    """Services at pools with contention, and how much longer each takes.

    ``factors``: by task unit, the contention of each frame's service; ``services``: by task unit of a pool with
    contention, frames, starts and ends of its services, and when each would end without other work of its units.
    """

    def __init__(self, fluid: Fluid, count: int) -> None:
        self._fluid, self._count = fluid, count
        self.pools = [pool for pool in fluid.model.pools if not pool.contention.is_none]
        self.factors: dict[int, Floats] = {}
        self.services: dict[int, tuple[Numbers, Instants, Instants, Instants]] = {}
        self.starting_units: dict[tuple[int, ...], float] = {}
        """By the units of a component: how many are at work for starts of threads, on average."""

    def factors_of(self, index: int) -> Floats | float:
        """Return the contention of the services of a task unit: one for all frames, or by frame."""
        return self.factors.get(index, float(self._fluid.factor[index]))

    def mean_factor(self, index: int) -> float:
        """Return the mean contention of the services of a task unit."""
        factors = self.factors.get(index)
        if factors is None or not self.services.get(index) or not len(self.services[index][0]):
            return float(self._fluid.factor[index])
        return float(factors[self.services[index][0]].mean())

    def concerns(self, index: int) -> bool:
        """Whether a task unit uses a pool with contention."""
        names = {pool.name for pool in self.pools}
        return any(part.pool.name in names for part, _ in self._fluid.uses[index])

    def note(self, *, is_bound: bool = False) -> None:
        """Take the contention of each service from the units that are busy as it begins.

        ``is_bound``: for the courses that bound the loss, services that take turns at a unit all keep one busy.
        """
        for pool in self.pools:
            parts = [part for part in self._fluid.components if part.pool.name == pool.name]
            users = [[index for index, _ in part.members if index in self.services] for part in parts]
            running = [
                (part, *self._begun_and_ended(members, is_bound=is_bound))
                for part, members in zip(parts, users, strict=True)
                if members
            ]
            table = np.array([pool.contention.factor(float(busy)) for busy in range(pool.units + 1)])
            for index in {index for members in users for index in members}:
                frames, starts, _, _ = self.services[index]
                busy = np.zeros(len(starts))
                for part, begun, ended in running:
                    at_once = begun.until(starts, frames) - np.searchsorted(ended, starts, side="right")
                    units = len(part.units)
                    busy += at_once if is_bound else np.minimum(at_once, units) + self._starting(part, at_once, index)
                if index not in self.factors:
                    self.factors[index] = np.full(self._count, float(self._fluid.factor[index]))
                self.factors[index][frames] = np.interp(np.clip(busy, 1, pool.units), np.arange(len(table)), table)

    def _starting(self, part: Component, at_once: NDArray[np.intp], index: int) -> Floats:
        """Return the mean number of units of a component that are at work for starts while they serve no frame."""
        starting = min(self.starting_units.get(part.units, 0.0), len(part.units))
        idle_units = len(part.units) - np.minimum(at_once, len(part.units))
        if starting <= 0.0 or any(member == index for member, _ in part.members):
            return np.zeros(len(at_once))
        mean_idle_units = max(float(idle_units.mean()), starting)
        return idle_units * (starting / mean_idle_units)

    def _begun_and_ended(self, members: Sequence[int], *, is_bound: bool) -> tuple[_Starts, Instants]:
        """Return the starts and the ends of the services of some task units, each in order."""
        frames, begun, ended = (
            np.concatenate([self.services[index][at] for index in members]) for at in (0, 1, 3 - is_bound)
        )
        return _Starts.of(begun, None if is_bound else frames), np.sort(ended)


@dataclass(frozen=True, slots=True)
class _Starts:
    """Starts of services in order; of those at one instant, the frame that came first leads if frames are kept."""

    at: Instants
    frames: Numbers | None

    @classmethod
    def of(cls, at: Instants, frames: Numbers | None) -> _Starts:
        """Return the starts in their order."""
        if frames is None:
            return cls(np.sort(at), None)
        order = np.lexsort((frames, at))
        return cls(at[order], frames[order])

    def until(self, at: Instants, frames: Numbers) -> NDArray[np.intp]:
        """Return how many services have begun when others begin, those and the ones before at that instant too."""
        all_until = np.searchsorted(self.at, at, side="right")
        if self.frames is None:
            return all_until
        before = np.searchsorted(self.at, at, side="left")
        at_once = all_until - before
        alone = np.flatnonzero(at_once == 1)
        all_until[alone] -= self.frames[before[alone]] > frames[alone]
        for tie in np.flatnonzero(at_once > 1).tolist():
            low, high = int(before[tie]), int(all_until[tie])
            all_until[tie] = low + int(np.searchsorted(self.frames[low:high], frames[tie], side="right"))
        return all_until


class _Queue:
    """A queue that frames pass in chunks.

    What a chunk leaves are services that go on: the next chunk finds them as frames that come with its first one, with
    the rest of their work.
    """

    def __init__(self, servers: int, room: int) -> None:
        self._servers, self._room = servers, room
        self._left_start = self._left_end = np.zeros(0, np.uint64)

    def starts(self, at: Instants, work: Instants, *, is_last: bool) -> Instants:
        """Return when the service of each frame starts; ``_LOST`` for those that are lost.

        ``is_last``: no chunk follows.
        """
        from routecast import _core  # the compiled part is loaded where it is used

        is_left = self._left_end > at[0]
        left_start, left_end = np.maximum(self._left_start[is_left], at[0]), self._left_end[is_left]
        left, all_at, all_work = len(left_end), at, work
        if left:
            all_at = np.concatenate((np.full(left, at[0]), at))
            all_work = np.concatenate((left_end - left_start, work))
        packed = _core.queue_starts(all_at.tobytes(), all_work.tobytes(), self._servers, self._room)
        starts = np.frombuffer(packed, np.uint64)[left:]
        if is_last:
            return starts
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
        self.paths = paths_of(fluid, is_repeated=recording.is_repeated) if course.extra == 0.0 else None
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
        self.inside_s: dict[int, float] = {}
        """By such a task unit: the mean time that a frame is inside, from the first frames."""
        self.contention.services.clear()
        self.switches = Switches(self.fluid, recording=self.recording)
        self.released: dict[int, float] = {}
        """By node: bound of the frames lost because random stations before it release theirs together."""
        self.visits: list[Visit] = []
        """Visits of frames at threads in the likely course."""
        self.starts_ratio: dict[int, float] = {}
        """By thread: the time that its starts take, of that in the fluid state."""
        self.forwarded = np.zeros(len(self.trace), bool)

    def run(self) -> None:
        """Pass all frames through the router."""
        self.reset()
        self._enter()
        for index in range(len(self.graph.tasks)):
            if self.turns is not None and index == self.turns.first and not self.stations.bounded:
                self._serve_in_turns()
            if self.paths is not None and index == self.paths.first:
                self._follow_windows()
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
            self.visits.append(Visit(index, frames, self.at[frames]))
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

    def _follow_windows(self) -> None:
        """Follow the frames through the windows and what is between them, and pass them on.

        Of a trace that is too long for that the first frames show how long each window is held.
        """
        paths, recording = self.paths, self.recording
        assert paths is not None
        coming = {node: np.concatenate(parts) for node, parts in self.pending.items() if node in paths}
        # What comes after the end changes nothing before it.
        coming = {node: frames[self.at[frames] < recording.end] for node, frames in coming.items()}
        is_whole = sum(map(len, coming.values())) <= paths.most_frames
        arrivals: list[tuple[int, int, int]] = []
        for node, frames in coming.items():
            arrivals += zip(self.at[frames].tolist(), frames.tolist(), [node] * len(frames), strict=True)
        if is_whole:
            for node in coming:
                del self.pending[node]
        else:
            arrivals = sorted(arrivals)[: paths.most_frames]
        followed = follow(paths, self.fluid, recording, arrivals, self._work_ps, self.stream_of_flow)
        if not is_whole:
            self.inside_s = {
                door: held_ps / PS / followed.served[door]
                for door, held_ps in followed.held_ps.items()
                if followed.served[door]
            }
            return
        self.entered |= followed.entered
        self.served |= followed.served
        self.lost |= followed.lost
        self.work_s |= {index: work_ps / PS for index, work_ps in followed.work_ps.items()}
        self.wait_s |= {index: wait_ps / PS for index, wait_ps in followed.wait_ps.items()}
        self.held_s |= {door: held_ps / PS for door, held_ps in followed.held_ps.items()}
        if followed.waits_ps:
            waits_ps = np.fromiter(followed.waits_ps.values(), np.float64)
            self.waited[np.fromiter(followed.waits_ps.keys(), np.uint32)] += waits_ps / PS
        for node, parts in followed.left.items():
            frames = np.array([frame for frame, _ in parts], np.uint32)
            self.at[frames] = np.array([at for _, at in parts], np.uint64)
            self.pending.setdefault(node, []).append(frames)

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
            starts = queue.starts(at, work, is_last=begin + CHUNK_FRAMES >= len(frames))
            kept = starts != _LOST
            if not kept.all():
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
                if wire_ps is None and self.switches.concern(node):
                    self.switches.note(node, starts, waits_s, work)
                work_s += self._counted_s(starts, ends)
            if inside is not None and self.course.extra == 0.0:
                entered, latest = inside.entries(at, starts, latest)
                left = np.clip(starts + np.uint64(round(inside.alone_s * PS)), recording.begin, recording.end)
                held = left - np.clip(entered, recording.begin, recording.end)
                held_s = float(held.astype(np.float64).sum()) / PS
                if node in self.inside_s:
                    held_s = self.inside_s[node] * float(np.count_nonzero(recording.counts(entered)))
                self.held_s[node] = self.held_s.get(node, 0.0) + held_s
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
                services.append((starts, ends, starts + np.rint(work / station.slower).astype(np.uint64)))
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
            starts, ends, own_ends = (np.concatenate(times) for times in zip(*services, strict=True))
            self.contention.services[node] = (served, starts, ends, own_ends)
        return served

    def _poll(self, index: int, frames: Numbers, station: RecordedStation) -> Numbers:
        """Let frames wait for interrupts and polls of a task unit; return those that are not lost."""
        factors = self.contention.factors_of(index)
        factor = factors if isinstance(factors, float) else factors[frames]
        work = np.rint(station.service_s[self.recording.size_places(frames)] * factor * PS).astype(np.uint64)
        assert station.wakeup_s is not None
        at = self.at[frames]
        span = int(self.recording.begin), int(self.recording.end)
        starts, ends, busy_ps = polled(
            self.fluid, index, at, work, room=station.room, wakeup_s=station.wakeup_s, span=span
        )
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
            self.contention.services[index] = (frames, starts, self.at[frames], self.at[frames])
        return frames

    def count_starts(self) -> None:
        """Follow the frames through the threads to learn what their starts take."""
        if self.fluid.steady is not None:
            factors = {visit.index: self.contention.mean_factor(visit.index) for visit in self.visits}
            self.starts_ratio = starts_ratios(self.fluid, self.visits, self.recording, self.stream_of_flow, factors)
            self.contention.starting_units |= units_of_starts(self.fluid, self.starts_ratio)

    def starts_ratio_of(self, index: int) -> float | None:
        """Return the time of the starts of a task unit's thread, of that in the fluid state; None if not counted."""
        if self.fluid.steady is None:
            return None
        machine = self.fluid.steady.machine
        return self.starts_ratio.get(int(machine.thread[machine.propagation.position[index]]))

    def _route(self, index: int, frames: Numbers) -> None:
        """Send the served frames to the next nodes, those of divided streams in turn."""
        frames = self._in_order(frames)
        for node, part in routed(self.graph.edges[index], frames, self.trace.flow[frames], self.stream_of_flow):
            self.pending.setdefault(node, []).append(part)

    @property
    def added_by_chance_ratio(self) -> float:
        """Bound of the share of frames that are lost by chance beside those of this course."""
        frames = sum(self.stations.added_by_chance.values()) + sum(self.released.values())
        return min(frames / max(len(self.trace), 1), 1.0)

    @property
    def passed_frames(self) -> int:
        """Frames that left by the end."""
        return int(np.count_nonzero(self.forwarded))

    @property
    def loss_ratio(self) -> float:
        """Share of the offered frames that are lost."""
        return sum(self.lost.values()) / max(self.offered, 1)


def _stays_full(likely: _Passage, index: int) -> bool:
    """Whether an overloaded task unit never idles, though bursts end and its services vary.

    The chance that a queue of K places is empty at a load above 1 is about ``e^{-2K(load - 1)/c²}``, c² the squared
    variation of its completions (the reflected Brownian motion of heavy traffic, Harrison 1985).
    """
    served, lost = likely.served.get(index, 0), likely.lost.get(index, 0)
    is_idle = likely.work_s.get(index, 0.0) < _BUSY * likely.recording.duration_s
    if (likely.recording.is_repeated and is_idle) or not served:
        return False  # it fills anew in every burst
    places = likely.graph.tasks[index].queue_frames
    return 2.0 * places * lost / served >= _NEVER_EMPTY * completion_scv(likely.fluid, index)


def _chance_frames(likely: _Passage, slowest: _Passage) -> float:
    """Return a bound of the frames that interruptions and random services lose besides.

    Infinite where more than these decide. A task unit that is full all the time loses frames for all of the time
    that they take beyond its mean, three standard deviations of it. One that loses none, and what is behind, lose what
    the slowest course says.
    """
    frames = sum(slowest.released.values())
    for index in likely.stations.bounded:
        if not is_own(likely.fluid, index):
            return math.inf
        if not likely.lost.get(index):
            frames += max(slowest.stations.lost_by_chance.get(index, 0.0), slowest.lost.get(index, 0))
            continue
        if not _stays_full(likely, index):
            return math.inf
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


def _passed_by_chance(likely: _Passage) -> float:
    """Return how many more or fewer frames may have passed by the end because services are random.

    A server that is busy all along has served ``n ± 3·sqrt(c²·n)`` frames, for services of squared variation c² (the
    counts of a renewal process); one that another keeps waiting has the variation of both. It has been busy since the
    router was empty last.
    """
    random = [index for index in likely.stations.bounded if index in likely.served and is_random(likely.fluid, index)]
    inside = likely.offered - likely.passed_frames - sum(likely.lost.values())
    if not random or inside <= 0:
        return 0.0
    served = np.flatnonzero((likely.at > likely.arrived) & likely.recording.counts(likely.arrived))
    served = served[np.argsort(likely.arrived[served], kind="stable")]
    left = np.maximum.accumulate(likely.at[served])
    empty = np.flatnonzero(left[:-1] <= likely.arrived[served[1:]])
    since = likely.arrived[served[empty[-1] + 1]] if len(empty) else np.uint64(0)
    frames = int(np.count_nonzero(likely.forwarded & (likely.arrived >= since)))
    scv = sum(sorted(completion_scv(likely.fluid, index) for index in random)[-2:])
    return min(SURE * math.sqrt(scv * frames), float(max(frames, inside)))


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
                units, starts_ratio = float(fluid.busy_units[need.pool][index]), passage.starts_ratio_of(index)
                starts = max(units - expected * need.units, 0.0)
                if starts_ratio is not None:
                    units = work * need.units + starts * starts_ratio
                else:
                    units *= work / expected
            if index in passage.held_s:
                units = passage.held_s[index] / passage.recording.duration_s * need.units
            switches_s = passage.switches.taken_s(index)
            if switches_s is not None:
                units = (work + switches_s / passage.recording.duration_s) * need.units
            busy[need.pool][index] = min(units, float(fluid.model.pool(need.pool).units))
    polling = np.array([task.activation.kind == "polling" for task in fluid.graph.tasks])
    active = {name: np.where(polling, units, busy[name]) for name, units in fluid.active_units.items()}
    notes = tuple(note for note in fluid.notes if note != MEAN_BATCHES) if passage.starts_ratio else fluid.notes
    return replace(fluid, busy_units=busy, active_units=active, notes=notes)


def _pays_for_starts(fluid: Fluid, index: int) -> bool:
    """Whether a task unit takes its units for more than its frames: starts, switches, polls and states of sleep."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    pools = [fluid.model.pool(need.pool) for need in task.needs]
    by_start_s = cost.batch_s + cost.interrupt_s + sum(pool.switch_cost_s + pool.migration_cost_s for pool in pools)
    is_dedicated = task.activation.kind == "dedicated" and fluid.steady is None
    return not is_dedicated or by_start_s > 0.0 or bool(cost.sleep_states)


def _answer(
    fluid: Fluid, likely: _Passage, losses: list[float], by_chance: float, passed_range: tuple[float, float]
) -> DelayAnswer:
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
    if likely.recording.is_repeated:
        passed_range = (likely.offered * (1.0 - high), likely.offered * (1.0 - low))
    sizes = likely.trace.frame_bytes[likely.forwarded]
    latency, waiting = (None, None) if likely.stations.bounded else _delays(likely)
    notes = [*likely.trace.notes]
    if likely.held_s and likely.paths is None:
        notes.append(
            "threads and buffers of windows are held as by frames that follow each other; frames that come at once, "
            "from several ports, hold them longer"
        )
    if likely.starts_ratio:
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
        forwarded_range_pps=(max(passed_range[0], 0.0) * per_s, passed_range[1] * per_s),
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
