"""How often recorded frames wake the threads that serve them, and what their starts cost.

A thread that wakes pays for a start and serves all that waits and what comes meanwhile; then it sleeps. Frames reach a
thread at each of its task units (a backend receives and sends), so those of all of them decide. Threads that are bound
to one unit wait for each other there, and find more frames when their turn comes::

    backend   |rrr|      |s|          |rrr|
    vcpu          |ffffff|   |fff|         |ffff|
    frames    ^^ ^    ^^ ^           ^^           a start for each bar, not for each frame

The fluid state knows only the mean of random gaps. So the frames are followed through the threads, each at its mean
work, threads of a unit in the order in which they wake. Of a long trace the first frames stand for all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from routecast.evaluate.solve._machine import ThreadMachine
from routecast.evaluate.solve._recorded_routes import Routes
from routecast.evaluate.solve._recording import PS, Instants, Numbers, Recording
from routecast.evaluate.solve._throughput import Steady
from routecast.evaluate.solve.fluid import Fluid
from routecast.router.model import ResourcePool

__all__ = ["Visit", "starts_ratios", "units_of_starts"]

_MAX_VISITS, _MAX_VISITS_OF_BURSTS = 1 << 16, 1 << 13
"""Visits of frames at task units that are followed, some 5 us each; of longer traces the first frames. Those of
repeated bursts are few, because a search for a rate follows them many times."""
_TURN, _INTERRUPT, _ARRIVAL = 0, 1, 2
"""Kinds of events; of those of one instant the ends of turns come first."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Frames that come to a task unit in the likely course, and when."""

    index: int
    frames: Numbers
    at: Instants


def starts_ratios(
    fluid: Fluid, visits: Sequence[Visit], recording: Recording, stream_of_flow: Numbers, factors: Mapping[int, float]
) -> dict[int, float]:
    """Return how long the frames of a recording let each thread work for its starts, of that time in the fluid state.

    ``visits``: those of the task units of threads, in the order of the graph; ``factors``: mean contention of the
    services of each task unit. Threads that pay for no start are left out.
    """
    steady = fluid.steady
    assert steady is not None
    threads = {_thread(steady, visit.index) for visit in visits}
    paying = {number for number in threads if number < len(steady.machine.threads) and steady.wakes.start[number] > 0.0}
    starts = _Follower(fluid, factors, Routes(fluid, stream_of_flow), recording).starts(visits) if paying else {}
    return {number: starts[number] / float(steady.wakes.start[number]) for number in paying & starts.keys()}


def units_of_starts(fluid: Fluid, ratios: Mapping[int, float]) -> dict[tuple[int, ...], float]:
    """Return how many units are at work for starts of threads on average, by the units of each component.

    ``ratios``: by thread, the time that its starts take, of that in the fluid state.
    """
    steady = fluid.steady
    assert steady is not None
    starting_units = {}
    for part in fluid.components:
        threads = {_thread(steady, index) for index, _ in part.members}
        starting_units[part.units] = sum(
            ratios.get(thread, 0.0) * float(steady.wakes.start[thread])
            for thread in threads
            if thread < len(steady.machine.threads)
        )
    return starting_units


def _thread(steady: Steady, index: int) -> int:
    return int(steady.machine.thread[steady.machine.propagation.position[index]])


@dataclass(slots=True)
class _Thread:
    """A thread: its task units, what its starts cost, and what it does.

    ``switch_ps``: cost of a unit that turns to it from another thread; ``level``: its urgency, 0 for the most urgent;
    ``is_gated``: whether it sleeps after a turn that was not full, whatever came meanwhile; ``borrows``: whether it
    borrows the unit of the thread that it interrupts.
    """

    tasks: list[int]
    unit: _Unit
    start_ps: int
    switch_ps: int
    moderation_ps: int
    level: int
    is_gated: bool
    borrows: bool
    turn: int = 0
    batch: deque[int] = field(default_factory=deque)
    served_at: int = 0
    serving: int | None = None
    is_awake: bool = False
    is_over: bool = False
    owes_start: bool = False
    interrupted_ps: int | None = None
    begun_ps: int = 0
    end_ps: int = 0
    left_ps: int = 0
    """Rest of the service in which it lost its unit."""
    turns: int = 0
    """Number of its services and revocations, by which the end of a revoked service is known."""
    ran_ps: int = 0
    """Service received, which decides between threads of the last level (S4)."""
    starts_ps: int = 0


@dataclass(slots=True)
class _Unit:
    """A unit: its policy, the thread that has it, and those that wait for it.

    ``granularity_ps``: lead over a thread that wakes from which one of the last level loses the unit; None where none
    is revoked.
    """

    last_level: int
    quantum_ps: int
    granularity_ps: int | None
    ready: list[int] = field(default_factory=list)
    running: int | None = None
    last: int | None = None
    """The thread that had it last, borrowers apart."""
    clock_ps: int = 0
    """Least service of the threads of the last level that can run; it never goes back."""


class _Follower:
    """Follows frames through threads."""

    def __init__(self, fluid: Fluid, factors: Mapping[int, float], routes: Routes, recording: Recording) -> None:
        steady = fluid.steady
        assert steady is not None
        machine = steady.machine
        self._fluid, self._routes, self._recording = fluid, routes, recording
        self._flow = recording.trace.flow
        thread_of = {index: _thread(steady, index) for index in factors}
        self._thread_of = {index: thread for index, thread in thread_of.items() if thread < len(machine.threads)}
        slower = {index: factors[index] / float(steady.factor[thread]) for index, thread in self._thread_of.items()}
        work_s = steady.work_s[machine.propagation.position]
        self._work_ps = {index: round(float(work_s[index]) * slower[index] * PS) for index in self._thread_of}
        self._waiting: dict[int, deque[int]] = {index: deque() for index in self._thread_of}
        self._threads: dict[int, _Thread] = {}
        level_of = {int(thread): level for level, threads in enumerate(machine.levels) for thread in threads}
        units: dict[object, _Unit] = {}
        for thread in set(self._thread_of.values()):
            may_use, pool = machine.threads[thread].units, machine.threads[thread].pool
            # Threads that may use several units find a free one.
            key = (pool, may_use) if len(may_use) == 1 else thread
            tasks = [index for index, number in self._thread_of.items() if number == thread]
            self._threads[thread] = _Thread(
                tasks=tasks,
                unit=units.setdefault(key, _unit(fluid.model.pools[pool] if pool >= 0 else None, machine)),
                start_ps=round(float(machine.start_s[thread]) * max(factors[index] for index in tasks) * PS),
                switch_ps=round(float(machine.switch_s[thread]) * PS),
                moderation_ps=round(float(machine.moderation_s[thread]) * PS),
                level=level_of[thread],
                is_gated=all(
                    fluid.graph.tasks[index].activation.kind == "interrupt" and not fluid.costs[index].exhaustive
                    for index in tasks
                ),
                borrows=bool(machine.borrows[thread]),
            )
        self._events: list[tuple[int, int, int, int]] = []
        self._counts = True

    def starts(self, visits: Sequence[Visit]) -> dict[int, float]:
        """Return the share of time that each thread works for its starts."""
        has_entered = np.zeros(len(self._recording), bool)
        most_visits = _MAX_VISITS_OF_BURSTS if self._recording.is_repeated else _MAX_VISITS
        most_frames = max(most_visits // max(len(self._thread_of), 1), 1)
        until = int(self._recording.end)
        for visit in visits:
            if visit.index not in self._thread_of:
                continue
            is_new = ~has_entered[visit.frames]
            frames, at = visit.frames[is_new], visit.at[is_new]
            has_entered[frames] = True
            if len(at) > most_frames:
                until = min(until, int(at[most_frames]))
            self._events += zip(
                at.tolist(), [_ARRIVAL] * len(at), frames.tolist(), [visit.index] * len(at), strict=True
            )
        self._events = [event for event in self._events if event[0] < until]
        heapify(self._events)
        begin = min(int(self._recording.begin), until)
        self._follow(begin, until)
        span_ps = until - begin
        return {number: thread.starts_ps / span_ps for number, thread in self._threads.items()} if span_ps > 0 else {}

    def _follow(self, begin: int, until: int) -> None:
        events = self._events
        while events:
            now, kind, number, place = heappop(events)
            if now >= until:
                return
            self._counts = now >= begin
            if kind == _TURN:
                if self._threads[number].turns == place:
                    self._go_on(number, now)
            elif kind == _INTERRUPT:
                self._get_ready(number, now)
            else:
                self._arrive(number, place, now)

    def _wake(self, number: int, now: int, index: int) -> None:
        """Wake a thread that sleeps for one of its task units, at once or with the next interrupt."""
        thread = self._threads[number]
        if thread.is_awake:
            return
        thread.is_awake, thread.is_over, thread.owes_start = True, False, True
        thread.turn = thread.tasks.index(index)
        if thread.interrupted_ps is not None:
            now = max(now, thread.interrupted_ps + thread.moderation_ps)
        thread.interrupted_ps = now
        heappush(self._events, (now, _INTERRUPT, number, 0))

    def _get_ready(self, number: int, now: int) -> None:
        """Let a thread that is awake ask for its unit."""
        thread = self._threads[number]
        unit = thread.unit
        if thread.level == unit.last_level:
            self._tick(unit, now)
            thread.ran_ps = max(thread.ran_ps, unit.clock_ps - unit.quantum_ps // 2)
        if unit.running is not None:
            victim = self._threads[unit.running]
            lead_ps = self._ran_ps(victim, unit.running, now) - thread.ran_ps
            is_ahead = thread.level == victim.level == unit.last_level and lead_ps > (unit.granularity_ps or 0)
            if unit.granularity_ps is None or not (thread.level < victim.level or is_ahead):
                unit.ready.append(number)
                return
            victim.left_ps, victim.turns = max(victim.end_ps - now, 0), victim.turns + 1
            self._give_back(unit, now)
            unit.ready.insert(0, self._number_of(victim))
        self._run(number, unit, now)

    def _number_of(self, thread: _Thread) -> int:
        return self._thread_of[thread.tasks[0]]

    def _ran_ps(self, thread: _Thread, number: int, now: int) -> int:
        return thread.ran_ps + (now - thread.begun_ps if thread.unit.running == number else 0)

    def _tick(self, unit: _Unit, now: int) -> None:
        able = [*unit.ready, *([] if unit.running is None else [unit.running])]
        ran_ps = [
            self._ran_ps(self._threads[number], number, now)
            for number in able
            if self._threads[number].level == unit.last_level
        ]
        unit.clock_ps = max(unit.clock_ps, min(ran_ps, default=0))

    def _give_back(self, unit: _Unit, now: int) -> None:
        """Take the unit from the thread that has it."""
        assert unit.running is not None
        self._tick(unit, now)
        thread = self._threads[unit.running]
        thread.ran_ps = self._ran_ps(thread, unit.running, now)
        unit.running = None

    def _run(self, number: int, unit: _Unit, now: int) -> None:
        """Let a thread have its unit: it pays for its start, and goes on."""
        thread, start_ps = self._threads[number], 0
        if thread.owes_start:
            start_ps, thread.owes_start = thread.start_ps, False
        if not thread.borrows:
            start_ps += thread.switch_ps if unit.last not in (None, number) else 0
            unit.last = number
        thread.starts_ps += start_ps if self._counts else 0
        unit.running, thread.begun_ps = number, now
        thread.end_ps, thread.left_ps = now + start_ps + thread.left_ps, 0
        heappush(self._events, (thread.end_ps, _TURN, number, thread.turns))

    def _run_next(self, unit: _Unit, now: int) -> None:
        """Let the most urgent thread that waits for a unit have it; in the last level the least served."""
        if not unit.ready:
            return
        is_fair = unit.granularity_ps is not None

        def rank(number: int) -> tuple[int, int]:
            thread = self._threads[number]
            return thread.level, thread.ran_ps if is_fair and thread.level == unit.last_level else 0

        number = min(unit.ready, key=rank)
        unit.ready.remove(number)
        self._run(number, unit, now)

    def _go_on(self, number: int, now: int) -> None:
        """Let a thread hand on the frame that it has served, and serve the next one or sleep."""
        thread = self._threads[number]
        if thread.serving is not None:
            self._hand_on(thread, thread.serving, now)
            thread.serving = None
        if not thread.batch and not self._take_batch(thread):
            thread.is_awake = False
            self._give_back(thread.unit, now)
            left = next((index for index in thread.tasks if self._waiting[index]), None)
            if left is not None:
                self._wake(number, now, left)
            self._run_next(thread.unit, now)
            return
        thread.serving = thread.batch.popleft()
        thread.end_ps, thread.turns = now + self._work_ps[thread.served_at], thread.turns + 1
        heappush(self._events, (thread.end_ps, _TURN, number, thread.turns))

    def _hand_on(self, thread: _Thread, frame: int, now: int) -> None:
        index, count = thread.served_at, len(self._fluid.graph.tasks)
        following = self._routes.after(index, self._flow[frame])
        while following < count and following not in self._thread_of:
            following = self._routes.after(following, self._flow[frame])
        if following < count:
            self._arrive(frame, following, now)

    def _arrive(self, frame: int, index: int, now: int) -> None:
        if len(self._waiting[index]) < self._fluid.graph.tasks[index].queue_frames:
            self._waiting[index].append(frame)
            self._wake(self._thread_of[index], now, index)

    def _take_batch(self, thread: _Thread) -> bool:
        """Let a thread take what waits at the task unit whose turn it is; return whether it serves more."""
        places = (*range(thread.turn, len(thread.tasks)), *range(thread.turn))
        place = next((place for place in places if self._waiting[thread.tasks[place]]), None)
        if place is None or thread.is_over:
            return False
        thread.turn = (place + 1) % len(thread.tasks)
        thread.served_at = thread.tasks[place]
        waiting = self._waiting[thread.served_at]
        budget_frames = max(self._fluid.graph.tasks[thread.served_at].activation.budget_frames, 1)
        thread.batch.extend(waiting.popleft() for _ in range(min(len(waiting), budget_frames)))
        thread.is_over = thread.is_gated and len(thread.batch) < budget_frames
        return True


def _unit(pool: ResourcePool | None, machine: ThreadMachine) -> _Unit:
    last_level = len(machine.levels) - 1
    if pool is None or pool.policy.kind != "linux":
        return _Unit(last_level, 0, None)
    policy = pool.policy
    return _Unit(last_level, round((policy.quantum_s or 0.0) * PS), round(policy.wakeup_granularity_s * PS))
