"""Recorded frames through windows, visit by visit.

Frames that are inside a window together (the threads of an engine) wait for each other at each visit of its stations,
and leave close together, so the next window gets them in bursts. A window as one server in front of a delay
(:class:`routecast.evaluate.solve._recorded_stations.Inside`) knows neither. Where all services are constant and all
stations serve in the order of arrival, each frame's course follows from those before it::

    frames ──► [ threads: 8 │ engine ─► memory ─► engine ─► memory ─► engine ] ──► [ threads: 8 │ … ] ──► port
                   ▲               stations, first come, first served               │
                   └──────────── a thread is free as its frame leaves ──────────────┘

A visit takes some 2 us, so longer traces keep the approximation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from routecast.evaluate.solve._recorded_routes import Routes
from routecast.evaluate.solve._recording import Numbers, Recording
from routecast.evaluate.solve._scheduling_shares import served_at_once
from routecast.evaluate.solve.fluid import Fluid
from routecast.router.window import windows_among

__all__ = ["Followed", "WindowPaths", "paths_of"]

_MAX_VISITS, _MAX_VISITS_OF_BURSTS = 1 << 19, 1 << 16
"""Visits that are followed; those of repeated bursts are few, because a search for a rate follows them many times."""
_ALL_AT_ONCE = 1024
"""Servers from which a task unit without a pool only delays."""


@dataclass(frozen=True, slots=True)
class WindowPaths:
    """Task units that are followed together, from ``first`` to ``last`` in the order of the graph.

    ``most_frames``: frames that are followed; of a longer trace they stand for all.
    """

    first: int
    last: int
    most_frames: int

    def __contains__(self, index: int) -> bool:
        return self.first <= index <= self.last


@dataclass(slots=True)
class Followed:
    """What became of the frames at the task units and windows; times in picoseconds, of the time that counts.

    ``left``: by later node the frames that reach it, and when.
    """

    entered: dict[int, int] = field(default_factory=dict)
    served: dict[int, int] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    work_ps: dict[int, int] = field(default_factory=dict)
    wait_ps: dict[int, int] = field(default_factory=dict)
    held_ps: dict[int, int] = field(default_factory=dict)
    waits_ps: dict[int, int] = field(default_factory=dict)
    """By frame that waited: its waits."""
    left: dict[int, list[tuple[int, int]]] = field(default_factory=dict)


def paths_of(fluid: Fluid, *, is_repeated: bool) -> WindowPaths | None:
    """Return the task units of windows and between them; None where more than the order of arrival decides.

    ``is_repeated``: whether the frames are those of repeated bursts.
    """
    if fluid.windows is None or fluid.steady is not None:
        return None
    rates = fluid.rates.sum(axis=1)
    inside = sorted((*fluid.windows.enter, *fluid.windows.inside))
    used = [index for index in range(inside[0], inside[-1] + 1) if rates[index] > 0.0]
    if not all(_is_followed(fluid, index) for index in used):
        return None
    visits = float(rates[used].sum()) / max(float(fluid.offered.sum()), 1e-300)
    return WindowPaths(
        inside[0], inside[-1], max(int((_MAX_VISITS_OF_BURSTS if is_repeated else _MAX_VISITS) / max(visits, 1.0)), 1)
    )


def _is_followed(fluid: Fluid, index: int) -> bool:
    """Whether a task unit serves in the order of arrival, each frame of a size for the same time."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    if task.activation.kind != "dedicated" or task.thread or task.holds_back or task.route.copies:
        return False
    if task.service.squared_cv > 0.0 or cost.batch_s > 0.0 or cost.scatter_s > 0.0 or cost.sleep_states:
        return False
    if len(task.needs) > 1 or task.pin or task.route.kind == "random":
        return False
    if not task.needs:
        return True
    (need,) = task.needs
    pool = fluid.model.pool(need.pool)
    is_plain = pool.contention.is_none and pool.interruptions is None and not pool.unit_speed_ratio
    pays = pool.switch_cost_s + pool.migration_cost_s > 0.0
    sharing = [other for other in fluid.graph.tasks if any(part.pool == pool.name for part in other.needs)]
    in_order = pool.policy.kind == "fifo" and task.request == "frame"
    return is_plain and not pays and (need.units == 1 or bool(need.until)) and (in_order or len(sharing) == 1)


class _Doors:
    """The units of windows, and the frames that wait for them."""

    def __init__(self, fluid: Fluid) -> None:
        number = {task.name: index for index, task in enumerate(fluid.graph.tasks)}
        self.pool_of: dict[int, str] = {}
        self.units_of: dict[int, int] = {}
        self.ends: dict[int, list[int]] = {}
        """By last task unit of windows: where these begin."""
        for window in windows_among(fluid.graph.tasks):
            door = number[window.enter]
            self.pool_of[door], self.units_of[door] = window.pool, window.units
            until = next(need.until for need in fluid.graph.tasks[door].needs if need.until)
            self.ends.setdefault(number[until], []).append(door)
        self.free = {pool: fluid.model.pool(pool).units for pool in self.pool_of.values()}
        self.waiting: dict[str, deque[tuple[int, int, int]]] = {pool: deque() for pool in self.free}
        self.waiting_at = dict.fromkeys(self.pool_of, 0)
        self.begun: dict[tuple[int, int], int] = {}
        """By window and frame inside: when the frame entered."""

    def take(self, door: int) -> bool:
        """Take the units of a window if they are free and nobody waits for them; return whether they were."""
        pool, units = self.pool_of[door], self.units_of[door]
        if self.free[pool] < units or self.waiting[pool]:
            return False
        self.free[pool] -= units
        return True

    def wait(self, now: int, frame: int, door: int, room: int) -> bool:
        """Let a frame wait for the units of a window; return whether there is room."""
        if self.waiting_at[door] >= room:
            return False
        self.waiting_at[door] += 1
        self.waiting[self.pool_of[door]].append((now, frame, door))
        return True

    def release(self, door: int) -> Iterator[tuple[int, int, int]]:
        """Give units back; yield the frames that get them, with the instant and the window since which they wait."""
        pool = self.pool_of[door]
        self.free[pool] += self.units_of[door]
        waiting = self.waiting[pool]
        while waiting and self.free[pool] >= self.units_of[waiting[0][2]]:
            since, frame, its_door = waiting.popleft()
            self.free[pool] -= self.units_of[its_door]
            self.waiting_at[its_door] -= 1
            yield since, frame, its_door


def follow(
    paths: WindowPaths,
    fluid: Fluid,
    recording: Recording,
    arrivals: Sequence[tuple[int, int, int]],
    work_ps_of: Callable[[int], Sequence[int]],
    stream_of_flow: Numbers,
) -> Followed:
    """Return what became of frames in the windows of a router.

    ``arrivals``: instant, frame, task unit; ``work_ps_of``: service of a task unit by the place of the frame size.
    """
    tasks, count = fluid.graph.tasks, paths.last + 1
    flow, place_of = (
        recording.trace.flow.tolist(),
        recording.size_places(np.arange(len(recording), dtype=np.uint32)).tolist(),
    )
    begin, end = int(recording.begin), int(recording.end)
    doors, routes, out = _Doors(fluid), Routes(fluid, stream_of_flow), Followed()
    work_of = [work_ps_of(index) if index >= paths.first else [] for index in range(count)]
    station_of = _stations(paths, fluid, doors, work_of)
    next_of = routes.sole
    pool_of = [doors.pool_of.get(index) for index in range(count)]
    is_end = [index in doors.ends for index in range(count)]
    # A frame goes on at once where nothing keeps it waiting and nothing else happens.
    is_passed = [station_of[index] is None and pool_of[index] is None for index in range(count)]
    entered, served, lost = [0] * count, [0] * count, [0] * count
    work_ps, wait_ps, held_ps = [0] * count, [0] * count, [0] * count
    coming = list(arrivals)
    heapify(coming)

    def take_in(now: int, frame: int, door: int, since: int) -> None:
        if now > since:
            out.waits_ps[frame] = out.waits_ps.get(frame, 0) + now - since
            wait_ps[door] += now - since if begin <= now < end else 0
        doors.begun[door, frame] = now
        serve(now, frame, door)

    def serve(now: int, frame: int, index: int) -> None:
        """Serve a frame at a station in the order of arrival, and send it on."""
        place, its_flow = place_of[frame], flow[frame]
        while True:
            station, work = station_of[index], work_of[index][place]
            if station is not None:
                free = station[0]
                if free > now:
                    out.waits_ps[frame] = out.waits_ps.get(frame, 0) + free - now
                    wait_ps[index] += free - now if begin <= free < end else 0
                    now = free
                if len(station) == 1:
                    station[0] = now + work
                else:
                    heapreplace(station, now + work)
            served[index] += 1
            if work:
                done = now + work
                if begin <= now and done <= end:
                    work_ps[index] += work
                else:
                    work_ps[index] += max(min(done, end) - max(now, begin), 0)
                now = done
            sole = next_of[index]
            following = routes.in_turn(index, its_flow) if sole is None else sole[its_flow]
            if is_end[index]:
                heappush(coming, (now, frame, -1 - index))
            if following >= count:
                out.left.setdefault(following, []).append((frame, now))
                return
            entered[following] += 1
            if is_end[index] or not is_passed[following]:
                heappush(coming, (now, frame, following))
                return
            index = following

    for _, _, index in arrivals:
        entered[index] += 1
    while coming:
        now, frame, index = heappop(coming)
        if index < 0:
            for door in doors.ends[-1 - index]:
                begun = doors.begun.pop((door, frame), None)
                if begun is None:
                    continue
                held_ps[door] += max(min(now, end) - max(begun, begin), 0)
                for since, first, its_door in doors.release(door):
                    take_in(now, first, its_door, since)
        elif pool_of[index] is None:
            serve(now, frame, index)
        elif doors.take(index):
            take_in(now, frame, index, now)
        elif not doors.wait(now, frame, index, tasks[index].queue_frames):
            lost[index] += begin <= now < end
    for (door, _), begun in doors.begun.items():
        held_ps[door] += max(end - max(begun, begin), 0)
    for index in (index for index in range(count) if entered[index]):
        out.entered[index], out.served[index], out.lost[index] = entered[index], served[index], lost[index]
        out.work_ps[index], out.wait_ps[index] = work_ps[index], wait_ps[index]
        if pool_of[index] is not None:
            out.held_ps[index] = held_ps[index]
    return out


def _stations(
    paths: WindowPaths, fluid: Fluid, doors: _Doors, work_of: Sequence[Sequence[int]]
) -> list[list[int] | None]:
    """Return by task unit when each server of its station is free, None where no frame waits for another."""
    stations: dict[object, list[int]] = {}
    station_of: list[list[int] | None] = [None] * (paths.last + 1)
    for index in range(paths.first, paths.last + 1):
        task, key, servers = fluid.graph.tasks[index], object(), fluid.graph.tasks[index].parallel
        if task.needs and index not in doors.pool_of:
            key = task.needs[0].pool
            servers = fluid.model.pool(key).units
            is_sole = all(len(part.members) == 1 for part, _ in fluid.uses[index])
            servers = served_at_once(task, servers) if is_sole else servers
        elif not any(work_of[index]) or servers >= _ALL_AT_ONCE:
            continue
        station_of[index] = stations.setdefault(key, [0] * servers)
    return station_of
