"""Queues that hold all frames that may be inside the router before them, because no frame stays long.

A frame that waits at a node at time t entered the router within ``(t - D, t]``, if D bounds its delay up to there. So
at most ``A(D)`` frames wait, where A(w) bounds the frames that w seconds bring: if the queue has room for these, it
loses none. The delay itself consists of, along the longest path,

* the starts of the task units: moderation, interrupt, wake-up;
* the services of the frames before it and in its batch, at most ``A(D)`` at each task unit;
* the time during which a task unit that has frames has no unit. Then all units that it may use are busy, whatever the
  scheduler, with work of frames that entered less than D before or after it: at most ``W(2D)/c`` for c units,
  where W(w) bounds the work that w seconds bring; a unit alone is one busy period long with it (Le Boudec and Thiran,
  Network Calculus, 2001, ch. 1).

Where threads share a unit, the starts of turns make that work too long, for a turn serves all that waits: there the
delay is two rounds of turns, and one more at each following task unit on the unit. A round starts each thread once and
serves what a round brings: ``L = Σ F + Σ c·A(L + J)`` for starts F, services c and the variation J of the delays before
the unit (polling systems: Takagi, Analysis of Polling Systems, 1986; here with each start counted twice, since a
scheduler may cut a turn in two). Task units of higher priority start for each of their frames.

Where a frame comes to the same units again and again, these bounds grow without end in high load, though the spread of
one unit's delays hardly ever adds up with that of the others. Then each unit is taken alone: frames come to it as they
enter the router, and its queues have to hold twice as many.

D is a fixed point of the sum: a bound for all frames so far bounds the next one. It exists in light load only. A link
with the time m of a frame gets at most ``A(w + D)`` frames in w seconds and sends about ``w/m`` of them, so its ring
never holds more than the greatest difference; one that is as fast as the links before it holds no more frames than
were inside when it became busy. Random counts and works take 4.5 standard deviations above their means.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from routecast.evaluate.solve._brought_work import BroughtWork, interrupted_s
from routecast.evaluate.solve._scheduling_shares import Component, served_at_once
from routecast.evaluate.solve._unknown_shares import SPREAD, never_releases
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.offered import line_rate_pps

__all__ = ["places_with_room"]

_KINDS = frozenset({"cbr", "poisson", "on_off"})
_MAX_ROUNDS, _SETTLED = 60, 1e-3
_MAX_TASKS = 128
_STEP, _LEAST_STEPS, _MOST_FRAMES = 1.1, 1e3, 1e5
_FULL = 0.99
"""Share of the frames that the fluid state admits with approximate starts of turns where turns still say more."""
_ALONE = 2.0
"""How many times the room that a queue needs is asked for where delays before it are left out. In 140 random routers of
machines no task unit lost a frame that had 0.13 of it or more (``benches/fuzz_models.py``)."""
_TURNS = 2.0
"""Turns of a thread in a round: a scheduler may cut one in two."""


def places_with_room(fluid: Fluid) -> frozenset[int]:
    """Return the nodes, task units and ports, whose queues nearly certainly hold all frames of a load."""
    graph, load = fluid.graph, fluid.load
    is_covered = load.arrivals.kind in _KINDS and fluid.windows is None and len(graph.tasks) <= _MAX_TASKS
    admitted, shared = float(fluid.admitted_ratio.min(initial=1.0)), _threads_on_one_unit(fluid)
    if not is_covered or admitted < (_FULL if shared else 1.0):
        return frozenset()
    if admitted >= 1.0 and (places := _places(_Delays(fluid))):
        return places
    for is_alone in (False, True) if shared else ():
        if places := _places(_Delays(fluid, in_rounds=shared, is_alone=is_alone, admitted=admitted)):
            return places
    return frozenset()


def _threads_on_one_unit(fluid: Fluid) -> frozenset[int]:
    """Return the numbers of the components whose threads take turns on one unit."""
    tasks = fluid.graph.tasks
    return frozenset(
        part.number
        for part in fluid.components
        if len(part.units) == 1
        and all(len(fluid.uses[index]) == 1 for index, _ in part.members)
        and any(tasks[index].activation.kind == "thread" or tasks[index].thread for index, _ in part.members)
        and not any(tasks[index].activation.kind == "polling" for index, _ in part.members)
    )


def _places(delays: _Delays) -> frozenset[int]:
    """Return the nodes with room; none where the delays have no bound."""
    return _Room(delays).places() if delays.settle() else frozenset()


class _Delays:
    """The longest delays up to the nodes of a router and at its task units, as a fixed point.

    ``in_rounds``: numbers of the components whose threads are counted by their turns; ``is_alone``: whether the delays
    before a unit are left out of the frames that a time brings it; ``admitted``: share of the frames that the fluid
    state admits everywhere.
    """

    def __init__(
        self, fluid: Fluid, in_rounds: frozenset[int] = frozenset(), *, is_alone: bool = False, admitted: float = 1.0
    ) -> None:
        self.in_rounds, self.is_alone = in_rounds, is_alone
        self.fluid, self.graph = fluid, fluid.graph
        self.brought = BroughtWork(fluid, admitted)
        tasks = self.graph.tasks
        self.followers: list[list[int]] = [[] for _ in tasks]
        for index, edges in enumerate(self.graph.edges):
            for node, fraction in edges:
                if float(fluid.rates[index] @ fraction) > 0.0:
                    self.followers[index].append(node)
        self.members = [
            [index for index, _ in part.members if self.brought.rates[index] > 0.0] for part in fluid.components
        ]
        """Task units of each component that get frames."""
        self.is_one_server = [self._is_one_server(part) for part in fluid.components]
        self.before_s = [0.0] * self.graph.exit
        """Longest time from the entry of a frame to its arrival at a node, s."""
        self.jitter_s = [0.0] * self.graph.exit
        """That to its arrival at the unit where it then is, if threads take turns there, s."""
        self.stay_s = [0.0] * len(tasks)
        self.busy_s = [0.0] * len(fluid.components)
        self.urgent_s = [0.0] * len(fluid.components)
        """Longest busy period of the task units on a unit that preempt the others there, s."""
        self.asleep_s = self._asleep_s()
        self.threads: dict[str, list[int]] = defaultdict(list)
        for index, task in enumerate(tasks):
            if task.thread:
                self.threads[task.thread].append(index)

    def settle(self) -> bool:
        """Find a fixed point of all delays, from below; return whether there is one."""
        for _ in range(_MAX_ROUNDS):
            new = self._round()
            old = self.before_s, self.jitter_s, self.stay_s, self.busy_s, self.urgent_s
            if all(
                time_s <= old_s
                for times_s, olds_s in zip(new, old, strict=True)
                for time_s, old_s in zip(times_s, olds_s, strict=True)
            ):
                return True
            longest_s = max(time_s for times_s in new for time_s in times_s)
            if not longest_s * float(self.fluid.offered.sum()) <= _MOST_FRAMES:
                return False
            self.before_s, self.jitter_s, self.stay_s, self.busy_s, self.urgent_s = (
                [time_s * (1.0 + _SETTLED) for time_s in times_s] for times_s in new
            )
        return False

    def _round(self) -> tuple[list[float], ...]:
        """Return all delays anew from those so far."""
        graph, before_s, jitter_s = self.graph, [0.0] * self.graph.exit, [0.0] * self.graph.exit
        busy_s = [
            self._round_s(part) if part.number in self.in_rounds else self._busy_s(part)
            for part in self.fluid.components
        ]
        urgent_s = [self._urgent_s(part) if part.number in self.in_rounds else 0.0 for part in self.fluid.components]
        stay_s = [self._stay_s(index) if self.brought.rates[index] > 0.0 else 0.0 for index in range(len(graph.tasks))]
        for index, time_s in enumerate(stay_s):
            for following in self.followers[index]:
                if following < graph.exit:
                    goes_on = self._goes_on(index, following)
                    arrives_s = before_s[index] + (0.0 if goes_on else time_s)
                    before_s[following] = max(before_s[following], arrives_s)
                    number = self.turns_of(index)
                    if number is not None and number == self.turns_of(following):
                        arrives_s = jitter_s[index] + (urgent_s[number] if self.is_urgent(index) else 0.0)
                    jitter_s[following] = max(jitter_s[following], arrives_s)
        if self.is_alone:
            before_s[: len(stay_s)], jitter_s = [0.0] * len(stay_s), [0.0] * len(jitter_s)
        return before_s, jitter_s, stay_s, busy_s, urgent_s

    def turns_of(self, node: int) -> int | None:
        """Return the number of the component on whose unit a task unit takes turns; None for others."""
        uses = self.fluid.uses[node] if node < len(self.graph.tasks) else ()
        return uses[0][0].number if uses and uses[0][0].number in self.in_rounds else None

    def is_urgent(self, index: int) -> bool:
        """Whether a task unit preempts others on the unit where it takes turns."""
        (part, _), *_ = self.fluid.uses[index]
        tasks = self.graph.tasks
        last = min(tasks[other].priority for other, _ in part.members)
        return part.pool.policy.kind in {"linux", "preemptive"} and tasks[index].priority > last

    def _urgent_s(self, part: Component) -> float:
        """Return the longest busy period of those task units of a component that preempt others, s."""
        period_s = self.urgent_s[part.number]
        urgent = [index for index in self.members[part.number] if self.is_urgent(index)]
        return (
            interrupted_s(part, period_s)
            + max((self.brought.excess_s[index] for index in urgent), default=0.0)
            + math.fsum(
                self.brought.work_s(index, period_s + self.jitter_s[index] + self.asleep_s[index]) for index in urgent
            )
        )

    def _round_s(self, part: Component) -> float:
        """Return the longest round of the turns of a component, s."""
        round_s, tasks = self.busy_s[part.number], self.graph.tasks
        members = self.members[part.number]
        last = min((tasks[index].priority for index in members), default=0)
        time_s = interrupted_s(part, round_s) + max((self.brought.excess_s[index] for index in members), default=0.0)
        starts_s: dict[str, float] = defaultdict(float)
        for index in members:
            task, turn_s = tasks[index], self.brought.turn_s[index]
            window_s = round_s + self.jitter_s[index] + self.asleep_s[index]
            frames = self.brought.frames(index, window_s)
            service_s = (self.brought.frame_s[index] - turn_s) * self.brought.usual_ratio(index)
            spread = SPREAD * math.sqrt(self.brought.rates[index] * window_s * task.service.squared_cv)
            time_s += service_s * (frames + spread)
            polls = task.activation.kind in {"interrupt", "thread"}
            most = task.activation.budget_frames if polls else max(self.fluid.costs[index].batch_frames, 1)
            turns = max(math.ceil(frames / most), 1.0)
            if task.priority > last or task.request == "frame":
                moderation_s = self.fluid.costs[index].moderation_s
                often = window_s / moderation_s if moderation_s > 0.0 else math.inf
                time_s += turn_s * min(max(frames, 1.0), often + turns)
            else:
                # The task units of a thread follow each other in one turn.
                name = task.thread or str(index)
                starts_s[name] = max(starts_s[name], _TURNS * turns * turn_s)
        return time_s + math.fsum(starts_s.values())

    def _goes_on(self, index: int, following: int) -> bool:
        """Whether the unit that served a frame at a task unit is busy until it has served it at the next one, too."""
        if following >= len(self.graph.tasks) or self.brought.start_s[following] > 0.0:
            return False
        if self.turns_of(index) is not None:
            return False
        uses, others = self.fluid.uses[index], self.fluid.uses[following]
        is_one = len(uses) == len(others) == 1 and uses[0][0].number == others[0][0].number
        return is_one and self.is_one_server[uses[0][0].number]

    def _asleep_s(self) -> list[float]:
        """Return the longest time for which a frame waits for a start in the busy period that it stays in, s."""
        asleep_s = list(self.brought.start_s)
        for index in range(len(asleep_s)):
            for following, _ in self.graph.edges[index]:
                if self._goes_on(index, following):
                    asleep_s[following] = max(asleep_s[following], asleep_s[index])
        return asleep_s

    def _is_one_server(self, part: Component) -> bool:
        members = self.members[part.number]
        if any(self.graph.tasks[index].activation.kind == "polling" for index in members) and len(members) > 1:
            return False
        tasks = self.graph.tasks
        is_one = len(members) == 1 and served_at_once(tasks[members[0]], len(part.units)) == 1
        return len(part.units) == 1 or is_one

    def _busy_s(self, part: Component) -> float:
        """Return the longest busy period of a component that serves one frame at a time, s; 0 for others.

        A frame before a task unit at its begin has entered within its delay up to there and the start.
        """
        if not self.is_one_server[part.number]:
            return 0.0
        period_s = self.busy_s[part.number]
        members = self.members[part.number]
        longer_s = max((self.brought.excess_s[index] for index in members), default=0.0)
        return (
            interrupted_s(part, period_s)
            + longer_s
            + math.fsum(
                self.brought.work_s(index, period_s + self.before_s[index] + self.asleep_s[index]) for index in members
            )
        )

    def _stay_s(self, index: int) -> float:
        """Return the longest time that a frame stays at a task unit, s."""
        task, cost, uses = self.graph.tasks[index], self.fluid.costs[index], self.fluid.uses[index]
        if self.brought.frame_s[index] <= 0.0 and self.brought.start_s[index] <= 0.0:
            return 0.0
        if (number := self.turns_of(index)) is not None and self.is_urgent(index):
            return self.asleep_s[index] + self.urgent_s[number]
        if number is not None:
            is_first = all(self.turns_of(before) != number for before in self.graph.leading_to(index))
            return self.asleep_s[index] + (2.0 if is_first else 1.0) * self.busy_s[number]
        if len(uses) == 1 and self.is_one_server[uses[0][0].number]:
            return self.asleep_s[index] + self.busy_s[uses[0][0].number]
        stay_s = self.stay_s[index]
        before = self.brought.work_s(index, self.before_s[index] + stay_s)
        behind_s = min(max(cost.batch_frames, 1) * self.brought.frame_s[index], before)
        for other in self.threads.get(task.thread, ()):
            if other != index:
                before += self.brought.work_s(other, self.before_s[other] + self.stay_s[other] + stay_s)
        return (
            self.brought.start_s[index]
            + self.brought.excess_s[index]
            + before
            + behind_s
            + math.fsum(self._wait_s(part, index) for part, _ in uses)
        )

    def _wait_s(self, part: Component, index: int) -> float:
        """Return the time for which all units of a component that a task unit may use work for others, s."""
        tasks, members = self.graph.tasks, self.members[part.number]
        stopped_s = interrupted_s(part, self.stay_s[index] * len(part.units))
        if len(members) <= 1:
            return stopped_s
        if any(units > 1 for _, units in part.members) or any(self._waits_elsewhere(other, part) for other in members):
            return math.inf
        polling = [other for other in members if tasks[other].activation.kind == "polling"]
        if any(not never_releases(part, tasks[other]) for other in polling):
            return math.inf
        is_pinned = part.pool.name == tasks[index].needs[0].pool and bool(tasks[index].pin)
        usable = len(set(tasks[index].pin) & set(part.units)) if is_pinned else len(part.units)
        held = {tasks[other].thread or str(other) for other in polling} - {tasks[index].thread or str(index)}
        if usable - len(held) < 1:
            return math.inf
        if index in polling:
            return stopped_s
        waits_s = lent_s = 0.0
        for other in members:
            if other not in polling:
                work_s = self.brought.work_s(other, self.before_s[other] + self.stay_s[other] + self.stay_s[index])
                waits_s += work_s
                lent_s += work_s if tasks[other].activation.kind == "interrupt" else 0.0
        return stopped_s + waits_s / (usable - len(held)) + lent_s

    def _waits_elsewhere(self, index: int, part: Component) -> bool:
        """Whether a task unit of a component shares units of another, too: then a unit may idle while it waits."""
        return any(other.number != part.number and len(other.members) > 1 for other, _ in self.fluid.uses[index])


class _Room:
    """Room of the queues for the frames that may be there in the longest delays."""

    def __init__(self, delays: _Delays) -> None:
        self._delays, self._brought = delays, delays.brought
        self._fluid, self._graph = delays.fluid, delays.graph
        self._waiting_s: dict[int, float] = {}

    def places(self) -> frozenset[int]:
        """Return the nodes with room."""
        tasks, with_room = self._graph.tasks, set()
        for index, task in enumerate(tasks):
            if (_ALONE if self._delays.is_alone else 1.0) * self._most_at(index) <= task.queue_frames:
                with_room.add(index)
            elif any(before.holds_back for before in tasks):
                return frozenset()  # frames may wait for room ahead
        for number in range(self._graph.ports):
            if self._fits_ring(number, self._delays.before_s[len(tasks) + number]):
                with_room.add(len(tasks) + number)
        return frozenset(with_room)

    def _most_at(self, index: int) -> float:
        """Return a bound of the frames at a task unit."""
        if (number := self._delays.turns_of(index)) is not None:
            waits_s = (
                self._delays.urgent_s[number] if self._delays.is_urgent(index) else 2.0 * self._delays.busy_s[number]
            )
            return self._brought.frames(index, waits_s + self._delays.jitter_s[index] + self._delays.asleep_s[index])
        most = self._brought.frames(index, self._delays.before_s[index] + self._delays.stay_s[index])
        uses = self._fluid.uses[index]
        is_one = len(uses) == 1 and self._delays.is_one_server[uses[0][0].number]
        return min(most, self._held_frames(uses[0][0], [index])) if is_one else most

    def _held_frames(self, part: Component, among: list[int]) -> float:
        """Return a bound of the frames of some task units that wait for a component that serves one at a time.

        Their services are at most the work that has come since the begin of a busy period less that done.
        """
        least_s = min(self._brought.least_s(index) for index in among)
        if least_s <= 0.0 or part.number in self._delays.in_rounds:
            return math.inf
        if part.number not in self._waiting_s:
            self._waiting_s[part.number] = self._most_waiting_s(part)
        most_s = self._waiting_s[part.number]
        scv = max(self._graph.tasks[index].service.squared_cv for index in among)
        # n services take n - SPREAD·sqrt(n·c²) of their mean at least; those of starts come on top.
        half = 0.5 * SPREAD * math.sqrt(scv)
        return float((half + math.sqrt(half**2 + most_s / least_s)) ** 2) + self._starting_frames(among)

    def _most_waiting_s(self, part: Component) -> float:
        """Return the most work that waits for a component that serves one at a time, in the longest delays, s."""
        members, most_s, at_s = self._delays.members[part.number], 0.0, 0.0
        step_s = max(
            min((self._brought.frame_s[index] for index in members), default=0.0),
            self._delays.busy_s[part.number] / _LEAST_STEPS,
        )
        while at_s < self._delays.busy_s[part.number]:
            end_s = max(at_s * _STEP, at_s + step_s)
            work_s = math.fsum(
                self._brought.work_s(index, end_s + self._delays.before_s[index] + self._delays.asleep_s[index])
                for index in members
            )
            most_s, at_s = max(most_s, work_s - at_s), end_s
        return most_s + interrupted_s(part, self._delays.busy_s[part.number])

    def _starting_frames(self, among: list[int]) -> float:
        """Return a bound of the frames that come to task units while they start."""
        return math.fsum(
            self._brought.frames(index, self._delays.asleep_s[index] + self._delays.before_s[index])
            for index in among
            if self._delays.asleep_s[index] > 0.0
        )

    def _held_before(self, node: int) -> float:
        """Return a bound of the frames that all task units before a node hold."""
        by_part: dict[int, list[int]] = defaultdict(list)
        total = 0.0
        for index in self._graph.leading_to(node):
            if self._brought.rates[index] <= 0.0 or self._brought.frame_s[index] + self._brought.start_s[index] <= 0.0:
                continue
            uses = self._fluid.uses[index]
            if len(uses) == 1 and self._delays.is_one_server[uses[0][0].number]:
                by_part[uses[0][0].number].append(index)
            else:
                total += self._most_at(index)
        for number, among in by_part.items():
            total += min(
                self._held_frames(self._fluid.components[number], among),
                math.fsum(
                    self._brought.frames(index, self._delays.before_s[index] + self._delays.stay_s[index])
                    for index in among
                ),
            )
        return total

    def _fits_ring(self, number: int, delay_s: float) -> bool:
        """Whether the ring of a link holds what it gets in any time more than it sends."""
        node, port = len(self._graph.tasks) + number, self._fluid.model.ports[number]
        if self._brought.rates[node] <= 0.0:
            return True
        sizes = self._fluid.load.frames.share_by_bytes
        times_s = np.array([1.0 / line_rate_pps(port.link_bps, size) for size in sizes])
        shares = np.array(list(sizes.values()))
        mean_s = float(shares @ times_s)
        spread_s = math.sqrt(max(float(shares @ times_s**2) - mean_s**2, 0.0))
        longest_s = 0.0 if self._fluid.load.frames.is_fixed else 2.0 * float(times_s.max())
        load = self._brought.rates[node] * mean_s
        if load > 1.0 + 1e-9:
            return False
        if (
            self._brought.is_as_fast_as_before(node, port.link_bps)
            and self._held_before(node) + 1.0 <= port.tx_ring_frames
        ):
            return True
        room, begin_s, end_s = port.tx_ring_frames, 0.0, mean_s
        most_s = _MOST_FRAMES * mean_s
        while begin_s < most_s:
            sent = max((begin_s - SPREAD * spread_s * math.sqrt(begin_s / mean_s) - longest_s) / mean_s, 0.0)
            come = min(self._brought.frames(node, end_s + delay_s), self._brought.by_services(node, end_s))
            if come - math.floor(sent) > room + 1.0:
                return False
            begin_s, end_s = end_s, max(end_s * _STEP, end_s + mean_s)
        return True
