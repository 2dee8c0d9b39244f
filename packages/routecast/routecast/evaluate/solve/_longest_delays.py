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

from routecast.evaluate.solve._burst_bounds import burst_of_cycle, most_contention, places_of_streams
from routecast.evaluate.solve._cost import slowest_over_mean
from routecast.evaluate.solve._scheduling_shares import Component, served_at_once
from routecast.evaluate.solve._unknown_shares import RARE, SPREAD, arrivals_behind_links, never_releases
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.offered import line_rate_pps
from routecast.router.model import RandomTime

__all__ = ["places_with_room"]

_KINDS = frozenset({"cbr", "poisson", "on_off"})
_MAX_ROUNDS, _SETTLED = 60, 1e-3
_MAX_TASKS = 128
_FEW = 4.0
"""Frames above the standard deviations of a small Poisson count, whose tail is longer than the normal."""
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
    if admitted >= 1.0 and (places := _Delays(fluid).places()):
        return places
    for is_alone in (False, True) if shared else ():
        if places := _Delays(fluid, in_rounds=shared, is_alone=is_alone, admitted=admitted).places():
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


class _Delays:
    """The delays.

    ``in_rounds``: numbers of the components whose threads are counted by their turns; ``is_alone``: whether the delays
    before a unit are left out of the frames that a time brings it; ``admitted``: share of the frames that the fluid
    state admits everywhere.
    """

    def __init__(
        self, fluid: Fluid, in_rounds: frozenset[int] = frozenset(), *, is_alone: bool = False, admitted: float = 1.0
    ) -> None:
        self.in_rounds, self.is_alone = in_rounds, is_alone
        self.fluid, self.graph = fluid, fluid.graph
        self.rates: list[float] = (fluid.rates.sum(axis=1) / admitted).tolist()
        self.arrivals = arrivals = arrivals_behind_links(fluid)
        self._lines: dict[int, tuple[float, float]] = {}
        self._waiting_s: dict[int, float] = {}
        self.bursts = self._bursts()
        self.gaps_scv = max(arrivals.interarrival_scv, 0.0) if arrivals.kind == "on_off" else 1.0
        tasks = self.graph.tasks
        self.frame_s = [self._frame_s(index) for index in range(len(tasks))]
        self.service_scv = [task.service.squared_cv for task in tasks]
        self.feeders: list[list[int]] = [[] for _ in range(self.graph.exit + 1)]
        self.followers: list[list[int]] = [[] for _ in tasks]
        for index, edges in enumerate(self.graph.edges):
            for node, fraction in edges:
                if float(fluid.rates[index] @ fraction) > 0.0:
                    self.feeders[node].append(index)
                    self.followers[index].append(node)
        self.members = [[index for index, _ in part.members if self.rates[index] > 0.0] for part in fluid.components]
        """Task units of each component that get frames."""
        self.is_one_server = [self._is_one_server(part) for part in fluid.components]
        self._turn_s = [self._start_of_turn_s(index) for index in range(len(tasks))]
        self.start_s = [self._start_s(index) for index in range(len(tasks))]
        self.excess_s = [self._excess_s(index) for index in range(len(tasks))]
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

    def places(self) -> frozenset[int]:
        """Return the nodes with room."""
        if not self._find():
            return frozenset()
        tasks, with_room = self.graph.tasks, set()
        for index, task in enumerate(tasks):
            if (_ALONE if self.is_alone else 1.0) * self._most_at(index) <= task.queue_frames:
                with_room.add(index)
            elif any(before.holds_back for before in tasks):
                return frozenset()  # frames may wait for room ahead
        for number in range(self.graph.ports):
            if self._fits_ring(number, self.before_s[len(tasks) + number]):
                with_room.add(len(tasks) + number)
        return frozenset(with_room)

    def frames(self, node: int, time_s: float) -> float:
        """Return a bound of the frames for a node that a time brings."""
        rate = self.rates[node]
        if rate <= 0.0:
            return 0.0
        mean, arrivals = rate * time_s, self.arrivals
        if arrivals.kind == "cbr" and self.bursts is not None:
            most = mean
        else:
            most = mean + SPREAD * math.sqrt(mean * self.gaps_scv) + _FEW
            if arrivals.kind == "on_off":
                at_peak = arrivals.peak_ratio * mean
                most = min(most, at_peak + SPREAD * math.sqrt(at_peak) + _FEW)
        burst = self.bursts[node] if self.bursts is not None else SPREAD * math.sqrt(mean)
        pps, links = self._lines.get(node) or self._line_rates(node)
        return min(most + burst, time_s * pps + links)

    def _line_rates(self, node: int) -> tuple[float, float]:
        """Return the smallest frames a second that the links in bring to a node at most, and one frame for each link.

        Both count the copies of a frame.
        """
        if node not in self._lines:
            smallest = min(self.fluid.load.frames.share_by_bytes)
            brought = self.graph.by_port(self.fluid.rates[node]).tolist()
            copies = max(self.rates[node] / math.fsum(brought), 1.0)
            ports = zip(self.fluid.model.ports, brought, strict=True)
            lines = [line_rate_pps(port.link_bps, smallest) for port, rate in ports if rate > 0.0]
            self._lines[node] = copies * math.fsum(lines), copies * len(lines)
        return self._lines[node]

    def _by_services(self, node: int, time_s: float) -> float:
        """Return the frames that the units before a node can serve in a time; infinite where they come in batches.

        n services take ``n - SPREAD·sqrt(n·c²)`` of their mean at least.
        """
        total = 0.0
        for index in self.feeders[node]:
            task, uses = self.graph.tasks[index], self.fluid.uses[index]
            is_one = len(uses) == 1 and len(uses[0][0].units) == 1 and self.fluid.costs[index].batch_frames == 1
            if not is_one or task.activation.kind == "interrupt" or (least_s := self._least_s(index)) <= 0.0:
                return math.inf
            half = 0.5 * SPREAD * math.sqrt(task.service.squared_cv)
            total += (half + math.sqrt(half**2 + time_s / least_s)) ** 2 + 1.0
        return total or math.inf

    def _work_s(self, index: int, time_s: float) -> float:
        """Return a bound of the work that a task unit gets from the frames that enter in a time, s."""
        frame_s = self.frame_s[index]
        spread_s = frame_s * math.sqrt(self.rates[index] * time_s * self.service_scv[index])
        return self.frames(index, time_s) * frame_s + SPREAD * spread_s

    def _find(self) -> bool:
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
        stay_s = [self._stay_s(index) if self.rates[index] > 0.0 else 0.0 for index in range(len(graph.tasks))]
        for index, time_s in enumerate(stay_s):
            for following in self.followers[index]:
                if following < graph.exit:
                    goes_on = self._goes_on(index, following)
                    arrives_s = before_s[index] + (0.0 if goes_on else time_s)
                    before_s[following] = max(before_s[following], arrives_s)
                    number = self._turns_of(index)
                    if number is not None and number == self._turns_of(following):
                        arrives_s = jitter_s[index] + (urgent_s[number] if self._is_urgent(index) else 0.0)
                    jitter_s[following] = max(jitter_s[following], arrives_s)
        if self.is_alone:
            before_s[: len(stay_s)], jitter_s = [0.0] * len(stay_s), [0.0] * len(jitter_s)
        return before_s, jitter_s, stay_s, busy_s, urgent_s

    def _turns_of(self, node: int) -> int | None:
        """Return the number of the component on whose unit a task unit takes turns; None for others."""
        uses = self.fluid.uses[node] if node < len(self.graph.tasks) else ()
        return uses[0][0].number if uses and uses[0][0].number in self.in_rounds else None

    def _is_urgent(self, index: int) -> bool:
        """Whether a task unit preempts others on the unit where it takes turns."""
        (part, _), *_ = self.fluid.uses[index]
        tasks = self.graph.tasks
        last = min(tasks[other].priority for other, _ in part.members)
        return part.pool.policy.kind in {"linux", "preemptive"} and tasks[index].priority > last

    def _urgent_s(self, part: Component) -> float:
        """Return the longest busy period of those task units of a component that preempt others, s."""
        period_s = self.urgent_s[part.number]
        urgent = [index for index in self.members[part.number] if self._is_urgent(index)]
        return (
            self._stopped_s(part, period_s)
            + max((self.excess_s[index] for index in urgent), default=0.0)
            + math.fsum(self._work_s(index, period_s + self.jitter_s[index] + self.asleep_s[index]) for index in urgent)
        )

    def _round_s(self, part: Component) -> float:
        """Return the longest round of the turns of a component, s."""
        round_s, tasks = self.busy_s[part.number], self.graph.tasks
        members = self.members[part.number]
        last = min((tasks[index].priority for index in members), default=0)
        time_s = self._stopped_s(part, round_s) + max((self.excess_s[index] for index in members), default=0.0)
        starts_s: dict[str, float] = defaultdict(float)
        for index in members:
            task, turn_s = tasks[index], self._turn_s[index]
            window_s = round_s + self.jitter_s[index] + self.asleep_s[index]
            frames = self.frames(index, window_s)
            service_s = (self.frame_s[index] - turn_s) * self._usual_ratio(index)
            spread = SPREAD * math.sqrt(self.rates[index] * window_s * task.service.squared_cv)
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

    def _usual_ratio(self, index: int) -> float:
        """Return the mean slowdown by other units over the greatest: a round is long enough for the mean."""
        most = max((most_contention(part.pool) for part, _ in self.fluid.uses[index]), default=1.0)
        return min(float(self.fluid.factor[index]) / most, 1.0)

    def _goes_on(self, index: int, following: int) -> bool:
        """Whether the unit that served a frame at a task unit is busy until it has served it at the next one, too."""
        if following >= len(self.graph.tasks) or self.start_s[following] > 0.0:
            return False
        if self._turns_of(index) is not None:
            return False
        uses, others = self.fluid.uses[index], self.fluid.uses[following]
        is_one = len(uses) == len(others) == 1 and uses[0][0].number == others[0][0].number
        return is_one and self.is_one_server[uses[0][0].number]

    def _asleep_s(self) -> list[float]:
        """Return the longest time for which a frame waits for a start in the busy period that it stays in, s."""
        asleep_s = list(self.start_s)
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
        longer_s = max((self.excess_s[index] for index in members), default=0.0)
        return (
            self._stopped_s(part, period_s)
            + longer_s
            + math.fsum(
                self._work_s(index, period_s + self.before_s[index] + self.asleep_s[index]) for index in members
            )
        )

    def _stopped_s(self, part: Component, around_s: float) -> float:
        """Return by how much longer than in the mean interruptions may stop a unit in a time, s."""
        interruptions = part.pool.interruptions
        if interruptions is None:
            return 0.0
        each = interruptions.duration
        square_s2 = each.average_s**2 * (1.0 + each.squared_cv)
        often = interruptions.rate_hz * around_s
        return each.quantile_s(1.0 - RARE) + SPREAD * math.sqrt(often * square_s2)

    def _stay_s(self, index: int) -> float:
        """Return the longest time that a frame stays at a task unit, s."""
        task, cost, uses = self.graph.tasks[index], self.fluid.costs[index], self.fluid.uses[index]
        if self.frame_s[index] <= 0.0 and self.start_s[index] <= 0.0:
            return 0.0
        if (number := self._turns_of(index)) is not None and self._is_urgent(index):
            return self.asleep_s[index] + self.urgent_s[number]
        if number is not None:
            is_first = all(self._turns_of(before) != number for before in self.graph.leading_to(index))
            return self.asleep_s[index] + (2.0 if is_first else 1.0) * self.busy_s[number]
        if len(uses) == 1 and self.is_one_server[uses[0][0].number]:
            return self.asleep_s[index] + self.busy_s[uses[0][0].number]
        stay_s = self.stay_s[index]
        before = self._work_s(index, self.before_s[index] + stay_s)
        behind_s = min(max(cost.batch_frames, 1) * self.frame_s[index], before)
        for other in self.threads.get(task.thread, ()):
            if other != index:
                before += self._work_s(other, self.before_s[other] + self.stay_s[other] + stay_s)
        return (
            self.start_s[index]
            + self.excess_s[index]
            + before
            + behind_s
            + math.fsum(self._wait_s(part, index) for part, _ in uses)
        )

    def _wait_s(self, part: Component, index: int) -> float:
        """Return the time for which all units of a component that a task unit may use work for others, s."""
        tasks, members = self.graph.tasks, self.members[part.number]
        stopped_s = self._stopped_s(part, self.stay_s[index] * len(part.units))
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
                work_s = self._work_s(other, self.before_s[other] + self.stay_s[other] + self.stay_s[index])
                waits_s += work_s
                lent_s += work_s if tasks[other].activation.kind == "interrupt" else 0.0
        return stopped_s + waits_s / (usable - len(held)) + lent_s

    def _waits_elsewhere(self, index: int, part: Component) -> bool:
        """Whether a task unit of a component shares units of another, too: then a unit may idle while it waits."""
        return any(other.number != part.number and len(other.members) > 1 for other, _ in self.fluid.uses[index])

    def _frame_s(self, index: int) -> float:
        """Return the mean time of a frame in a poll of its own, on the slowest unit with all others busy, s."""
        fluid, task, cost = self.fluid, self.graph.tasks[index], self.fluid.costs[index]
        longest = 1.0
        if not fluid.load.frames.is_fixed and task.service.mean_s(1500) > 0.0:
            sizes = fluid.load.frames.share_by_bytes
            times_s = [task.service.mean_s(size, frequency_hz=self._frequency_hz(index)) for size in sizes]
            mean_s = math.fsum(t * share for t, share in zip(times_s, sizes.values(), strict=True))
            longest = max(times_s) / mean_s if mean_s > 0.0 else 1.0
        return cost.frame_s * longest * self._slower(index) + self._start_of_turn_s(index)

    def _start_of_turn_s(self, index: int) -> float:
        """Return what a poll or turn costs beside its frames: batch, interrupt or notification, switches, s."""
        task, cost = self.graph.tasks[index], self.fluid.costs[index]
        notified_s = task.activation.interrupt_cost_s * cost.slowdown if task.activation.kind == "thread" else 0.0
        pools = [part.pool for part, _ in self.fluid.uses[index]]
        # A softirq under Linux borrows the unit of the thread that it interrupts.
        borrows = task.activation.kind == "interrupt" and all(pool.policy.kind == "linux" for pool in pools)
        switch_s = 0.0 if borrows else 2.0 * max((pool.switch_cost_s for pool in pools), default=0.0)
        return (cost.batch_s + cost.interrupt_s + notified_s) * self._slower(index) + switch_s

    def _slower(self, index: int) -> float:
        """Return how many times as long work takes on the slowest unit with all others busy as on average."""
        pools = [part.pool for part, _ in self.fluid.uses[index]]
        slowest = slowest_over_mean(self.graph.tasks[index], self.fluid.model, self.fluid.costs[index])
        return max(map(most_contention, pools), default=1.0) * slowest

    def _frequency_hz(self, index: int) -> float | None:
        needs = self.graph.tasks[index].needs
        return self.fluid.model.pool(needs[0].pool).frequency_hz if needs else None

    def _start_s(self, index: int) -> float:
        """Return the longest time before a task unit asks for its unit, s."""
        task, cost = self.graph.tasks[index], self.fluid.costs[index]
        start_s = cost.moderation_s + max((exit_s for _, exit_s in cost.sleep_states), default=0.0)
        if task.activation.wakeup is not None:
            start_s += task.activation.wakeup.quantile_s(1.0 - RARE)
        return start_s

    def _excess_s(self, index: int) -> float:
        """Return by how much a service may exceed its mean, s."""
        law = self.graph.tasks[index].service
        service = RandomTime(mean_s=1.0, variation=law.variation, scv=law.scv)
        return self.frame_s[index] * (service.quantile_s(1.0 - RARE) - 1.0)

    def _bursts(self) -> list[float] | None:
        """Return by node the burst of the frames for it in the cycle of the flows; None where flows are random."""
        load, graph = self.fluid.load, self.graph
        flows = load.flows.flows
        if any(flow.weight != flows[0].weight for flow in flows):
            return None
        if load.frames.order == "random" and not load.frames.is_fixed and self.arrivals.kind == "cbr":
            return None  # the link delays large frames by chance
        in_turn = places_of_streams(self.fluid)
        if in_turn is None:
            return None
        places, cycle = in_turn
        longer = 1.0 if load.frames.is_fixed else _FEW
        bursts = []
        for node in range(graph.exit):
            by_port: dict[int, list[int]] = defaultdict(list)
            for (key, taken), rate in zip(places.items(), self.fluid.rates[node].tolist(), strict=True):
                if rate > 0.0:
                    by_port[key[0]] += taken
            bursts.append(longer * sum(burst_of_cycle(sorted(taken), cycle[port]) for port, taken in by_port.items()))
        return bursts

    def _most_at(self, index: int) -> float:
        """Return a bound of the frames at a task unit."""
        if (number := self._turns_of(index)) is not None:
            waits_s = self.urgent_s[number] if self._is_urgent(index) else 2.0 * self.busy_s[number]
            return self.frames(index, waits_s + self.jitter_s[index] + self.asleep_s[index])
        most = self.frames(index, self.before_s[index] + self.stay_s[index])
        uses = self.fluid.uses[index]
        is_one = len(uses) == 1 and self.is_one_server[uses[0][0].number]
        return min(most, self._held_frames(uses[0][0], [index])) if is_one else most

    def _held_frames(self, part: Component, among: list[int]) -> float:
        """Return a bound of the frames of some task units that wait for a component that serves one at a time.

        Their services are at most the work that has come since the begin of a busy period less that done.
        """
        least_s = min(self._least_s(index) for index in among)
        if least_s <= 0.0 or part.number in self.in_rounds:
            return math.inf
        if part.number not in self._waiting_s:
            self._waiting_s[part.number] = self._most_waiting_s(part)
        most_s = self._waiting_s[part.number]
        scv = max(self.graph.tasks[index].service.squared_cv for index in among)
        # n services take n - SPREAD·sqrt(n·c²) of their mean at least; those of starts come on top.
        half = 0.5 * SPREAD * math.sqrt(scv)
        return float((half + math.sqrt(half**2 + most_s / least_s)) ** 2) + self._starting_frames(among)

    def _most_waiting_s(self, part: Component) -> float:
        """Return the most work that waits for a component that serves one at a time, in the longest delays, s."""
        members, most_s, at_s = self.members[part.number], 0.0, 0.0
        step_s = max(
            min((self.frame_s[index] for index in members), default=0.0), self.busy_s[part.number] / _LEAST_STEPS
        )
        while at_s < self.busy_s[part.number]:
            end_s = max(at_s * _STEP, at_s + step_s)
            work_s = math.fsum(
                self._work_s(index, end_s + self.before_s[index] + self.asleep_s[index]) for index in members
            )
            most_s, at_s = max(most_s, work_s - at_s), end_s
        return most_s + self._stopped_s(part, self.busy_s[part.number])

    def _starting_frames(self, among: list[int]) -> float:
        """Return a bound of the frames that come to task units while they start."""
        return math.fsum(
            self.frames(index, self.asleep_s[index] + self.before_s[index])
            for index in among
            if self.asleep_s[index] > 0.0
        )

    def _least_s(self, index: int) -> float:
        """Return the mean service of the smallest frames on the fastest unit, s."""
        fluid, task = self.fluid, self.graph.tasks[index]
        sizes, batch = fluid.load.frames.share_by_bytes, max(fluid.costs[index].batch_frames, 1)
        frequency_hz = self._frequency_hz(index)
        least_s = min(task.service.mean_s(size, frequency_hz=frequency_hz, batch_frames=batch) for size in sizes)
        speeds = [max(part.pool.unit_speed_ratio, default=1.0) for part, _ in fluid.uses[index]]
        return least_s / max(max(speeds, default=1.0), 1.0)

    def _held_before(self, node: int) -> float:
        """Return a bound of the frames that all task units before a node hold."""
        by_part: dict[int, list[int]] = defaultdict(list)
        total = 0.0
        for index in self.graph.leading_to(node):
            if self.rates[index] <= 0.0 or self.frame_s[index] + self.start_s[index] <= 0.0:
                continue
            uses = self.fluid.uses[index]
            if len(uses) == 1 and self.is_one_server[uses[0][0].number]:
                by_part[uses[0][0].number].append(index)
            else:
                total += self._most_at(index)
        for number, among in by_part.items():
            total += min(
                self._held_frames(self.fluid.components[number], among),
                math.fsum(self.frames(index, self.before_s[index] + self.stay_s[index]) for index in among),
            )
        return total

    def _is_as_fast_as_before(self, node: int, link_bps: float) -> bool:
        """Whether a link sends frames of one size as fast as the links bring those for it."""
        brought = self.graph.by_port(self.fluid.rates[node]).tolist()
        ports = zip(self.fluid.model.ports, brought, strict=True)
        bps = math.fsum(port.link_bps for port, rate in ports if rate > 0.0)
        copies = any(task.route.copies for task in self.graph.tasks)
        return self.fluid.load.frames.is_fixed and not copies and bps <= link_bps * (1.0 + 1e-9)

    def _fits_ring(self, number: int, delay_s: float) -> bool:
        """Whether the ring of a link holds what it gets in any time more than it sends."""
        node, port = len(self.graph.tasks) + number, self.fluid.model.ports[number]
        if self.rates[node] <= 0.0:
            return True
        sizes = self.fluid.load.frames.share_by_bytes
        times_s = np.array([1.0 / line_rate_pps(port.link_bps, size) for size in sizes])
        shares = np.array(list(sizes.values()))
        mean_s = float(shares @ times_s)
        spread_s = math.sqrt(max(float(shares @ times_s**2) - mean_s**2, 0.0))
        longest_s = 0.0 if self.fluid.load.frames.is_fixed else 2.0 * float(times_s.max())
        load = self.rates[node] * mean_s
        if load > 1.0 + 1e-9:
            return False
        if self._is_as_fast_as_before(node, port.link_bps) and self._held_before(node) + 1.0 <= port.tx_ring_frames:
            return True
        room, begin_s, end_s = port.tx_ring_frames, 0.0, mean_s
        most_s = _MOST_FRAMES * mean_s
        while begin_s < most_s:
            sent = max((begin_s - SPREAD * spread_s * math.sqrt(begin_s / mean_s) - longest_s) / mean_s, 0.0)
            come = min(self.frames(node, end_s + delay_s), self._by_services(node, end_s))
            if come - math.floor(sent) > room + 1.0:
                return False
            begin_s, end_s = end_s, max(end_s * _STEP, end_s + mean_s)
        return True
