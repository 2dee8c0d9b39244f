"""How task units serve recorded frames: as known, as is likely, or as fast or as slow as they can."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from routecast.evaluate.solve._burst_bounds import most_contention
from routecast.evaluate.solve._cost import slowest_over_mean
from routecast.evaluate.solve._recorded_chance import ChanceQueue, held_beyond, paced_beyond
from routecast.evaluate.solve._recording import CHUNK_FRAMES, PS, Floats, Instants, Recording
from routecast.evaluate.solve._scheduling_shares import Component, served_at_once
from routecast.evaluate.solve._unknown_shares import Absences
from routecast.evaluate.solve._window_pace import station_pace_s
from routecast.evaluate.solve.fluid import Fluid
from routecast.router.model import TaskUnit

SURE = 3.0
"""Standard deviations of random services that a queue is given less room for."""
_LONG_WAKEUP = 0.999
_RARE_QUANTILE = 0.99
_BUSY_THREADS = 0.9
"""Load of threads from which their turns, which the queues leave out, decide."""
_MIN_ROOM = 8
"""Places at shared units of which two queues can still bound the loss."""
_UNEVEN, _PACED = 1.5, 0.95
"""How much more of the frames that a station releases together may go one way than of all; load by such frames up to
which a queue follows them."""
NOTABLE_CHANCE = 1e-4
_WINDOW_ERROR = 0.03
"""Error of the joint throughput of windows, chosen in sight of random traces."""


@dataclass(frozen=True, slots=True)
class Course:
    """What is assumed of task units whose courses are only bounded.

    ``extra``: 0 for the likely course; -1 and 1 for the fastest and the slowest. ``slow_from``: number of windows in a
    row from which on they are slow, in the slowest course. ``is_pooled``: whether a queue also has room for all frames
    that those before it may keep, in the fastest course.
    """

    extra: float = 0.0
    slow_from: int = 0
    is_pooled: bool = False


@dataclass(frozen=True, slots=True)
class Inside:
    """Inside of a window: the frames that it has room for, and the time that one of them takes alone, s.

    A window of T frames that passes a frame each 1/P and holds a frame that is alone for R <= T/P is a single server
    in front of a delay: the n-th frame leaves it at ``d_n = max(a_n + R, d_(n-1) + 1/P)``, and enters as soon as there
    is room, at ``max(a_n, d_(n-T))``.
    """

    frames: int
    alone_s: float

    def entries(self, at: Instants, starts: Instants, latest: Instants) -> tuple[Instants, Instants]:
        """Return when frames enter the window, and the latest starts for the frames that follow.

        ``starts``: ``d_n - R``; ``latest``: those of up to T frames before.
        """
        all_starts = np.concatenate((latest, starts))
        before = all_starts[: max(len(all_starts) - self.frames, 0)] + np.uint64(round(self.alone_s * PS))
        entered = at.copy()
        late = entered[len(entered) - len(before) :]
        np.maximum(late, before, out=late)
        return entered, all_starts[max(len(all_starts) - self.frames, 0) :]


@dataclass(frozen=True, slots=True)
class RecordedStation:
    """How a task unit serves: frames at once, seconds for each frame size, room for those that wait."""

    servers: int
    service_s: Floats
    room: int
    wakeup_s: float | None = None
    """Wake-up of a server whose services interrupts start, 0 for one that takes batches; None for others."""
    slower: float = 1.0
    """By how much its services are longer than its own work."""
    inside: Inside | None = None
    """What is behind the server where a window begins; None elsewhere."""


class RecordedStations:
    """The task units of a router in one course.

    ``bounded``: task units whose courses are only bounded, and why; ``is_unbounded``: whether queues are so short that
    the turns at shared units decide; ``before``: by task unit, those that its frames may have passed.
    """

    def __init__(
        self, fluid: Fluid, recording: Recording, absences: Absences, overloaded: Fluid | None, course: Course
    ) -> None:
        self._fluid, self._recording, self._absences = fluid, recording, absences
        self._overloaded, self._course = overloaded, course
        self.before = _tasks_before(fluid)
        self.bounded: dict[int, str] = {}
        self.is_unbounded = False
        self._doors = frozenset(fluid.windows.enter if fluid.windows is not None else ())
        doors = [fluid.graph.tasks[door] for door in self._doors]
        self._most_inside_frames = max((fluid.model.pool(door.needs[0].pool).units for door in doors), default=0)
        """The most frames that may be inside a window."""
        self._kept_frames: dict[int, int] = {}
        """By bounded task unit: the most frames that it keeps where it is slow."""
        self._chances: dict[int, ChanceQueue] = {}
        """In the slowest course, by task unit with random services or interruptions and units of its own."""
        self.lost_by_chance: dict[int, float] = {}
        """By such a task unit: bound of the frames that its queue loses although none is lost with mean services."""
        self.added_by_chance: dict[int, float] = {}
        """Those of them that its queue in this course does not lose itself."""

    def losing_depths(self, lost: Mapping[int, int]) -> set[int]:
        """Return how many windows follow each other up to those that lose frames.

        ``lost``: lost frames by task unit.
        """
        return {self._depth(door) for door in self._doors if lost.get(door, 0) > 0}

    def _depth(self, door: int) -> int:
        """Return how many windows follow each other before one."""
        return max((self._depth(other) + 1 for other in self.before[door] & self._doors), default=0)

    def _with_kept(self, index: int, room: int, kept_frames: int) -> int:
        """Return the room of a queue in the fastest course, and note the frames that it may keep itself."""
        if not self._course.is_pooled:
            return room
        self._kept_frames[index] = kept_frames
        return room + sum(self._kept_frames.get(other, 0) for other in self.before[index])

    def station(self, index: int, at: Instants) -> RecordedStation:
        """Return how a task unit serves these frames."""
        fluid, task, cost = self._fluid, self._fluid.graph.tasks[index], self._fluid.costs[index]
        service_s = self._service_s(index, batch_frames=max(cost.batch_frames, 1))
        limits = [served_at_once(task, max(len(part.units) // units, 1)) for part, units in fluid.uses[index]]
        servers, room = max(min(limits, default=task.parallel), 1), task.queue_frames
        why = _why_bounded(fluid, index)
        if not why:
            return self._plain(index, service_s, servers, room)
        if fluid.windows is not None and index in fluid.windows.enter:
            self.bounded[index] = why
            return self._door(index, at, service_s, room)
        if fluid.windows is not None and index in fluid.windows.inside:
            # Frames inside a window have room at every task unit of it, if its queue is as long as the window.
            self.is_unbounded |= task.queue_frames + 1 < self._most_inside_frames
            return RecordedStation(servers, service_s, len(self._recording))
        self.bounded[index] = why
        if is_own(fluid, index):
            station = self._plain(index, service_s, servers, room)
            return self._lessened(index, at, station) if self._course.extra > 0.0 and len(at) else station
        return self._bound_by_shared_units(index, at, service_s, servers, room)

    def _lessened(self, index: int, at: Instants, station: RecordedStation) -> RecordedStation:
        """Return the slowest course of a task unit of which chance alone is not known.

        Its queue has less room by what random services and interruptions gather, or it has all of its room and loses
        what Kingman's bound says besides, whichever loses less.
        """
        fluid = self._fluid
        # The services that a queue remembers: those of its places, or more near a full load.
        remembered = min(1.0 / max(1.0 - self._absences.load[index], 1e-3) ** 2, len(at))
        scatter = SURE * math.sqrt(completion_scv(fluid, index) * max(station.room + station.servers, remembered))
        away = _most_within(at, interruption_s(fluid, index)) + scatter
        left = math.floor(station.room - away)
        lessened = replace(station, room=max(left, 1))
        # Without room to spare for what varies, services of equal length say nothing about random ones.
        less_frames = self._lost_frames(lessened, at) if left >= 1 else len(at)
        if not is_random(fluid, index):
            return lessened
        chance = self._chance(index, at, station)
        self._chances[index] = chance
        frames = chance.finds(station.room + station.servers) * len(at)
        self.lost_by_chance[index] = min(frames, float(less_frames))
        if left >= 1 and self._lost_frames(station, at) + frames > less_frames + NOTABLE_CHANCE * len(at):
            return lessened
        self.added_by_chance[index] = frames
        return station

    def _chance(self, index: int, at: Instants, station: RecordedStation) -> ChanceQueue:
        """Return bounds of the number of frames at a task unit with random services and units of its own."""
        fluid, task, cost = self._fluid, self._fluid.graph.tasks[index], self._fluid.costs[index]
        sizes, weights = self._recording.sizes, self._recording.frames_by_size
        mean_s = float(np.average(station.service_s, weights=weights)) * _most_contention(fluid, index)
        longest_s = mean_s if len(sizes) == 1 else float(station.service_s.max()) * _most_contention(fluid, index)
        wakeup = task.activation.wakeup
        late_s = cost.moderation_s + cost.interrupt_s + (wakeup.quantile_s(_RARE_QUANTILE) if wakeup else 0.0)
        interruptions = [pool.interruptions for pool in map(fluid.model.pool, (n.pool for n in task.needs))]
        return ChanceQueue(
            at,
            np.full(len(at), mean_s),
            station.servers,
            station.servers + station.room,
            scv=max(task.service.squared_cv, 0.0) * (longest_s / mean_s if mean_s > 0.0 else 1.0),
            interruptions=interruptions[0] if interruptions else None,
            late_s=late_s,
        )

    def released(self, node: int, frames: int, room: int, *, waiting: int, served_pps: float) -> float:
        """Return a bound of the frames that a queue loses because random stations before it release theirs together.

        Stations release frames no faster than they serve without interruptions. Where that is faster than the queue is
        served, it keeps the rest of what they held; elsewhere only short services in a row fill it.

        ``waiting``: the most frames that wait in it where services take their means.
        """
        before = sorted(self.before[node] & self._chances.keys())
        pace_pps = math.fsum(self._pace_pps(index, to) for index, to in self._last_before(node)) if before else 0.0
        if pace_pps <= 0.0 or not frames:
            return 0.0
        left, load = room - waiting, pace_pps / served_pps
        kept = max(1.0 - 1.0 / load, 0.0)
        share = 1.0
        if kept < 1.0:
            scv = max(max(self._fluid.graph.tasks[index].service.squared_cv, 0.0) for index in before)
            share = paced_beyond(load, scv, left) if load < _PACED else 1.0
        if share > NOTABLE_CHANCE:
            most = left if load < _PACED else math.floor(min(left / max(kept, 1e-9), 1e9))
            share = min(share, held_beyond([self._chances[index] for index in before], most))
        return share * frames

    def _last_before(self, node: int) -> set[tuple[int, int]]:
        """Return the last task units that take time before a node, and where their frames go next."""
        last: set[tuple[int, int]] = set()
        for index, edges in enumerate(self._fluid.graph.edges):
            if index in self.before[node] and any(to == node and (fraction > 0.0).any() for to, fraction in edges):
                last |= {(index, node)} if self._fluid.costs[index].busy_s > 0.0 else self._last_before(index)
        return last

    def _pace_pps(self, index: int, node: int) -> float:
        """Return how fast a task unit releases frames for a node, where its units are not interrupted, frames/s."""
        fluid, task, cost = self._fluid, self._fluid.graph.tasks[index], self._fluid.costs[index]
        limits = [served_at_once(task, max(len(part.units) // units, 1)) for part, units in fluid.uses[index]]
        servers = max(min(limits, default=task.parallel), 1)
        shortest_s = float(self._service_s(index, batch_frames=math.inf).min()) / cost.stretch
        rates = fluid.rates[index]
        share = math.fsum(float(rates @ fraction) for to, fraction in fluid.graph.edges[index] if to == node)
        share = min(_UNEVEN * share / max(float(rates.sum()), 1e-300), 1.0)
        return servers / max(shortest_s, 1e-300) * share

    def own_station(self, index: int) -> RecordedStation:
        """Return a task unit with one server whose frames alone decide its course."""
        task, cost = self._fluid.graph.tasks[index], self._fluid.costs[index]
        return RecordedStation(1, self._service_s(index, batch_frames=max(cost.batch_frames, 1)), task.queue_frames)

    def _service_s(self, index: int, *, batch_frames: float) -> Floats:
        """Return the time of a task unit for a frame of each size, s."""
        task, model = self._fluid.graph.tasks[index], self._fluid.model
        frequency_hz = model.pool(task.needs[0].pool).frequency_hz if task.needs else None
        times_s = [
            task.service.mean_s(float(size), frequency_hz=frequency_hz, batch_frames=batch_frames)
            for size in self._recording.sizes
        ]
        return np.array(times_s) * self._fluid.costs[index].slowdown

    def _bound_by_shared_units(
        self, index: int, at: Instants, service_s: Floats, servers: int, room: int
    ) -> RecordedStation:
        """Return how a task unit serves whose turns at shared units are not known."""
        fluid, task, cost = self._fluid, self._fluid.graph.tasks[index], self._fluid.costs[index]
        turns = _turns_of(fluid, index)
        is_busy = fluid.steady is not None and self._absences.load[index] >= _BUSY_THREADS
        self.is_unbounded |= room < _MIN_ROOM or (is_busy and turns is None)
        if self._course.extra < 0.0:
            return RecordedStation(servers, service_s, self._with_kept(index, room, room))
        slower = _slower(fluid, index)
        if self._course.extra == 0.0:
            # In overload it serves what the fluid state admits; else its work often comes when the others have none.
            served_pps = float(fluid.rates[index].sum() * fluid.admitted_ratio[index])
            is_overloaded = fluid.admitted_ratio[index] < 1.0 - 1e-9 and served_pps * cost.busy_s > 0.0
            slower = max(servers / (served_pps * cost.busy_s), 1.0) if is_overloaded else math.sqrt(slower)
            return RecordedStation(servers, service_s * slower, room, slower=slower)
        single_s = self._service_s(index, batch_frames=1)
        service_s = np.maximum(service_s, single_s) * slowest_over_mean(task, fluid.model, cost)
        scatter = SURE * math.sqrt(max(task.service.squared_cv, 0.0) * (room + servers))
        idle_s = _idle_s(fluid, index)
        bounds = []
        if turns is not None:
            bounds.append(
                (service_s * most_contention(fluid.uses[index][0][0].pool) + turns.frame_s, turns.first_s + idle_s)
            )
        if turns is None or not is_busy:
            bounds.append((service_s * slower, idle_s if _begins_chain(fluid, index) else self._away_s(index)))
        stations = [
            RecordedStation(servers, frame_s, max(math.floor(room - _most_within(at, away_s) - scatter), 0))
            for frame_s, away_s in bounds
        ]
        # Each bounds the loss: the one that loses less of these frames counts.
        return min(stations, key=lambda station: self._lost_frames(station, at)) if len(stations) > 1 else stations[0]

    def _lost_frames(self, station: RecordedStation, at: Instants) -> int:
        """Return how many of these frames a station would lose if all had the mean service time."""
        from routecast import _core  # the compiled part is loaded where it is used

        mean_s = float(np.average(station.service_s, weights=self._recording.frames_by_size))
        work = np.full(len(at), round(mean_s * PS), np.uint64)
        starts = np.frombuffer(
            _core.queue_starts(at.tobytes(), work.tobytes(), station.servers, station.room), np.uint64
        )
        return int(np.count_nonzero(starts == np.uint64(2**64 - 1)))

    def _plain(self, index: int, service_s: Floats, servers: int, room: int) -> RecordedStation:
        """Return a station whose frames alone decide its course, by its own server or by interrupts and polls."""
        task, cost = self._fluid.graph.tasks[index], self._fluid.costs[index]
        if task.activation.kind != "interrupt":
            if servers > 1 or cost.batch_frames <= 1:
                return RecordedStation(servers, service_s, room)
            # A batch leaves the queue at once, as a gated poll does, so that others find room while it is served.
            return RecordedStation(servers, service_s - cost.batch_s / cost.batch_frames, room, wakeup_s=0.0)
        wakeup = task.activation.wakeup
        bound = {-1.0: 1.0 - _LONG_WAKEUP, 1.0: _LONG_WAKEUP}.get(self._course.extra)
        wakeup_s = cost.sleep_s if wakeup is None or bound is None else wakeup.quantile_s(bound)
        return RecordedStation(servers, service_s - cost.batch_s / max(cost.batch_frames, 1), room, wakeup_s)

    def _door(self, index: int, at: Instants, service_s: Floats, room: int) -> RecordedStation:
        """Return where a window begins as a server that takes in frames as fast as all of the window does.

        A window of T frames that passes P frames/s and holds a frame that is alone for R has taken in the frames that
        wait less than R for the server, so T - PR more frames have room; see :class:`Inside`.

        The pooled course, see :class:`Course`: the router holds no more frames before the end of a window than this
        one and the windows before it may keep where they are slow, so all of them lose at least as many. With its own
        room the fastest course is no bound: a slow window before it keeps frames that it would lose.
        """
        fluid = self._fluid
        assert fluid.windows is not None
        assert fluid.window_rates is not None
        number = fluid.windows.enter.index(index)
        extra = -1.0 if self._course.extra > 0.0 and self._depth(index) < self._course.slow_from else self._course.extra
        fastest_pps = float(fluid.window_rates.max_pps[number])
        slowest_pps = fastest_pps
        if self._overloaded is not None and self._overloaded.window_rates is not None:
            # In a burst all windows wait for the same memories.
            slowest_pps = min(fastest_pps, float(self._overloaded.window_rates.max_pps[number]))
        if not (math.isfinite(fastest_pps) and slowest_pps > 0.0):
            return RecordedStation(1, service_s, room)
        likely_pps = slowest_pps if self._recording.is_uneven else fastest_pps
        fastest_pps, slowest_pps = fastest_pps / (1.0 - _WINDOW_ERROR), slowest_pps / (1.0 + _WINDOW_ERROR)
        most_pps = {-1.0: fastest_pps, 1.0: slowest_pps}.get(extra, likely_pps)
        sizes, weights = self._recording.sizes, self._recording.frames_by_size
        own_s = float(np.average(service_s, weights=weights))
        paced_s = np.full(len(service_s), 1.0 / most_pps)
        station_s = station_pace_s(fluid, number, sizes, weights)
        station_pps = 1.0 / max(float(np.average(station_s, weights=weights)), 1e-300)
        if station_pps < most_pps:
            most_pps, paced_s = station_pps, station_s
        slowest_pps = min(slowest_pps, station_pps)
        inside = self._inside(index, number, most_pps)
        paced_s = paced_s / float(fluid.factor[index])
        slower = float(np.average(paced_s, weights=weights)) / own_s if own_s > 0.0 else math.inf
        entered = min(max(round(inside.alone_s * most_pps), 1), inside.frames)
        room += inside.frames - {-1.0: 1, 1.0: inside.frames}.get(extra, entered)
        if self._course.extra < 0.0:
            waiting = _most_waiting(at, 1.0 / slowest_pps)
            room = self._with_kept(index, room, min(waiting, room) if waiting > 1 else 0)
        return RecordedStation(1, paced_s, room, slower=slower, inside=inside)

    def _inside(self, index: int, number: int, most_pps: float) -> Inside:
        """Return what is inside a window; a window that shares units with others has all of them at its fastest."""
        windows = self._fluid.windows
        assert windows is not None
        frames = float(windows.units[number])
        if self._course.extra < 0.0:
            need = next(need for need in self._fluid.graph.tasks[index].needs if need.pool == windows.pools[number])
            frames = self._fluid.model.pool(need.pool).units // need.units
        alone_s = float(windows.demand_s[number].sum() + windows.delay_s[number])
        return Inside(max(round(frames), 1), min(alone_s, frames / most_pps))

    def _away_s(self, index: int) -> float:
        away_s = self._absences.away_s[index]
        return away_s if math.isfinite(away_s) else self._recording.duration_s


def _why_bounded(fluid: Fluid, index: int) -> str:
    """Return why the queue of a task unit is not all that decides its course; empty if it is."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    if fluid.steady is not None and (task.thread or task.holds_back or task.activation.kind == "thread"):
        return "is a thread"
    if fluid.windows is not None and (index in fluid.windows.inside or index in fluid.windows.enter):
        return "is in a window"
    waits_for = [part for part, units in fluid.uses[index] if not _never_waits(fluid, index, part, units)]
    if waits_for and len(task.needs) > 1:
        return "needs units of several pools at once"
    for part in waits_for:
        if len(part.members) > 1:
            return f'shares units of pool "{part.pool.name}"'
    if task.service.squared_cv > 0.0 or cost.scatter_s > 0.0:
        return "has random services"
    if task.needs and slowest_over_mean(task, fluid.model, cost) > 1.0 + 1e-9:
        return "uses units that differ"
    if task.activation.kind == "interrupt":
        wakeup = task.activation.wakeup
        is_known = wakeup is None or wakeup.is_constant
        return "" if is_known and _is_alone(fluid, index) else "is activated by interrupts"
    if cost.batch_s > 0.0:
        return "pays a cost per batch"
    return "has units that sleep" if cost.sleep_states else ""


def is_own(fluid: Fluid, index: int) -> bool:
    """Whether chance alone bounds a task unit: its units are its own, and all are alike."""
    task = fluid.graph.tasks[index]
    if fluid.windows is not None and (index in fluid.windows.inside or index in fluid.windows.enter):
        return False
    threaded = task.thread or task.holds_back or task.activation.kind == "thread"
    is_shared = [
        (len(task.needs) > 1 or len(part.members) > 1) and not _never_waits(fluid, index, part, units)
        for part, units in fluid.uses[index]
    ]
    if threaded or any(is_shared):
        return False
    is_even = not task.needs or slowest_over_mean(task, fluid.model, fluid.costs[index]) <= 1.0 + 1e-9
    polls = task.activation.kind == "interrupt"
    return is_even and (_is_alone(fluid, index) if polls else fluid.costs[index].batch_s <= 0.0)


def is_random(fluid: Fluid, index: int) -> bool:
    """Whether the services of a task unit are random or interrupted."""
    return completion_scv(fluid, index) > 0.0


def completion_scv(fluid: Fluid, index: int) -> float:
    """Return the squared variation of the services of one size, with the interruptions of their units."""
    cost, scv = fluid.costs[index], max(fluid.graph.tasks[index].service.squared_cv, 0.0)
    return scv + cost.scatter_s / cost.stretch / cost.busy_s if cost.busy_s > 0.0 else 0.0


def _is_alone(fluid: Fluid, index: int) -> bool:
    """Whether a task unit has one server."""
    task, uses = fluid.graph.tasks[index], fluid.uses[index]
    limits = [served_at_once(task, max(len(part.units) // units, 1)) for part, units in uses]
    return min(limits, default=task.parallel) == 1


def _slower(fluid: Fluid, index: int) -> float:
    """Return the time of the units for each served frame, with all that their other task units do for it.

    What is lost before it was served takes no time of the units; what would be served without loss may come yet.
    """
    served = fluid.rates.sum(axis=1) * fluid.admitted_ratio
    lossless = fluid.graph.arriving(fluid.offered, np.ones(fluid.graph.exit + 1)).sum(axis=1)
    slower = 1.0
    for part, units in fluid.uses[index]:
        if _never_waits(fluid, index, part, units):
            continue
        for rates in (served, lossless):
            own = float(rates[index]) * fluid.costs[index].busy_s * units
            work = sum(float(rates[member]) * fluid.costs[member].busy_s * needed for member, needed in part.members)
            if own > 0.0:
                slower = max(slower, work / own)
    return slower


def _never_waits(fluid: Fluid, index: int, part: Component, units: int) -> bool:
    """Whether all others together leave a task unit of one server the units that it needs of a pool."""
    tasks, rates = fluid.graph.tasks, fluid.rates.sum(axis=1)
    members = [(member, needed) for member, needed in part.members if rates[member] > 0.0 or member == index]
    if fluid.steady is not None or fluid.windows is not None or part.pool.switch_cost_s + part.pool.migration_cost_s:
        return False
    if len(members) == 1 and tasks[index].activation.kind == "dedicated" and _is_alone(fluid, index):
        return True
    are_plain = all(
        tasks[member].activation.kind == "dedicated"
        and _is_alone(fluid, member)
        and not (tasks[member].pin and tasks[member].needs[0].pool == part.pool.name)
        for member, _ in members
    )
    return are_plain and sum(needed for member, needed in members if member != index) + units <= len(part.units)


@dataclass(frozen=True, slots=True)
class _Turns:
    """What others take of a unit at which all take turns: for each frame of a task unit, and once, s."""

    frame_s: float
    first_s: float


def _turns_of(fluid: Fluid, index: int) -> _Turns | None:
    """Return the turns at the shared units of a task unit; None where their policy does not give each its turn.

    Between two turns of a queue each other one takes one at most, of a batch at most. A turn with less than a batch
    empties the queue, so only what came since waits, and the turns that follow are full: the queue is a latency-rate
    server (Stiliadis & Varma, IEEE/ACM Trans. Networking 6(5), 1998). Its rate leaves the others their whole turns, its
    latency is a turn of its own and two rounds of theirs.
    """
    tasks, rates = fluid.graph.tasks, fluid.rates.sum(axis=1)
    task = tasks[index]
    shared = [part for part, _ in fluid.uses[index] if any(m != index and rates[m] > 0.0 for m, _ in part.members)]
    if len(shared) != 1 or not _is_alone(fluid, index):
        return None
    part, policy = shared[0], shared[0].pool.policy.kind
    is_ranked = policy in {"priority", "preemptive"} or (policy == "linux" and task.priority > 0)
    if not (is_ranked or policy == "fifo"):
        return None
    turn_s: dict[int, float] = {}
    for member, units in part.members:
        other = tasks[member]
        is_revoked = is_ranked and policy != "priority" and other.priority < task.priority
        if is_revoked or not (rates[member] > 0.0 or member == index):
            continue
        is_woken = other.activation.kind == "interrupt" and other.activation.discipline == "gated"
        takes_turns = (is_woken or other.activation.kind == "dedicated") and other.request == "task"
        is_pinned = bool(other.pin) and other.needs[0].pool == part.pool.name
        is_pinned = len(part.units) > 1 and (is_pinned or is_ranked)
        if not takes_turns or other.thread or other.holds_back or units > 1 or is_pinned or other.parallel != 1:
            return None
        if is_ranked and other.priority != task.priority:
            return None
        turn_s[member] = _turn_s(fluid, member)
    own_s = turn_s.pop(index)
    others_s = sum(turn_s.values()) / len(part.units)
    return _Turns(others_s / _batch_frames(task), own_s + 2.0 * others_s)


def _turn_s(fluid: Fluid, index: int) -> float:
    """Return the longest turn of a task unit, s."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    pools = [part.pool for part, _ in fluid.uses[index]]
    largest_bytes = float(max(fluid.load.frames.share_by_bytes))
    frame_s = task.service.mean_s(largest_bytes, frequency_hz=pools[0].frequency_hz) * cost.slowdown
    start_s = cost.interrupt_s + sum(2.0 * (pool.switch_cost_s + pool.migration_cost_s) for pool in pools)
    slowest = slowest_over_mean(task, fluid.model, cost)
    return (_batch_frames(task) * frame_s * slowest + start_s) * _most_contention(fluid, index)


def _most_contention(fluid: Fluid, index: int) -> float:
    """Return the greatest contention factor of all pools of a task unit."""
    return math.prod(most_contention(part.pool) for part, _ in fluid.uses[index])


def _batch_frames(task: TaskUnit) -> int:
    """Return the most frames that a task unit serves in one turn."""
    return max(task.activation.budget_frames if task.activation.kind == "interrupt" else task.batch_frames, 1)


def interruption_s(fluid: Fluid, index: int) -> float:
    """Return how long an interruption of the units of a task unit hardly ever lasts longer than, s."""
    pools = [fluid.model.pool(need.pool) for need in fluid.graph.tasks[index].needs]
    lasting = [pool.interruptions.duration.quantile_s(_RARE_QUANTILE) for pool in pools if pool.interruptions]
    return max(lasting, default=0.0)


def _idle_s(fluid: Fluid, index: int) -> float:
    """Return how long the unit of a task unit may idle or be interrupted although frames wait for it, s."""
    costs = [fluid.costs[member] for part, _ in fluid.uses[index] for member, _ in part.members]
    wakes_s = sum(cost.moderation_s + cost.sleep_s for cost in costs)
    exits_s = max((exit_s for cost in costs for _, exit_s in cost.sleep_states), default=0.0)
    return wakes_s + exits_s + interruption_s(fluid, index)


def _begins_chain(fluid: Fluid, index: int) -> bool:
    """Whether all work of a unit comes from the frames of one task unit and is ready as soon as that is done.

    A frame that waits there has all of its work on the unit before it. The unfinished work then is at least that of
    the waiting frames, and as a unit that has work never idles, it is no more than in a queue that serves each
    frame with all of its work at once, in whichever order the unit serves. That queue so loses at least as many
    frames.
    """
    uses, graph = fluid.uses[index], fluid.graph
    if len(uses) != 1 or len(uses[0][0].units) != 1 or len(fluid.graph.tasks[index].needs) != 1:
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
    gap_ps, most, free_ps = gap_s * PS, 0.0, 0.0
    for begin in range(0, len(at), CHUNK_FRAMES):
        at_ps = at[begin : begin + CHUNK_FRAMES].astype(np.float64)
        done_ps = np.arange(len(at_ps)) * gap_ps
        starts_ps = np.maximum.accumulate(np.maximum(at_ps - done_ps, free_ps)) + done_ps
        most = max(most, float((starts_ps - at_ps).max()))
        free_ps = float(starts_ps[-1]) + gap_ps
    return math.ceil(most / gap_ps)


def _most_within(at: Instants, time_s: float) -> int:
    """Return the most frames that arrive within an interval of a length."""
    if time_s <= 0.0 or not len(at):
        return 0
    length, most = np.uint64(min(time_s * PS, 2.0**62)), 0
    for begin in range(0, len(at), CHUNK_FRAMES):
        ends = np.searchsorted(at, at[begin : begin + CHUNK_FRAMES] + length, side="right")
        most = max(most, int((ends - np.arange(begin, begin + len(ends))).max()))
    return most
