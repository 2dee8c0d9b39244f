"""How long a task unit's frames wait at most for its server to turn to them, and what comes at once.

Where no queueing law is known (moderation, wake-ups, threads that share cores) the room of a queue is used by three
things: frames that come while the server is away, frames that the stations before hand on faster than it serves, and
the fluctuation around the mean. The first two are bounded here, the last in :mod:`routecast.evaluate.solve.delay`.

A frame that waits for a unit waits in a busy period of the units that it may use, whatever the scheduler, as long as
no unit idles while frames wait. A busy period that begins with work ``w`` and takes in random work with load ``u`` and
variance ``s²`` per second ends by ``B = w + uB + z·s·√B``, but for a chance of the normal tail beyond ``z``. What it
begins with are the frames that are handed on at once, so both are found together, from full polls down: each round is
a bound if the one before was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.solve.scheduling_shares import Component, served_at_once
from routecast.evaluate.solve.unknown_shares import fill_of, frames_s
from routecast.quantity.schema import field, value

__all__ = ["SPREAD", "Absences", "absences_of"]

SPREAD = 6.0
"""Standard deviations that are left for what comes in a known time."""
_RARE = 1e-6
_ROUNDS = 8


@value
class Absences:
    """Bounds by task unit, all but certain: time away, frames of a poll, frames that come at once, load."""

    away_s: tuple[float, ...] = field("Longest time that frames wait for the server to begin")
    polls_frames: tuple[float, ...] = field("Most frames that it hands on in one go")
    bursts_frames: tuple[float, ...] = field("Most frames that come faster than it serves them")
    load: tuple[float, ...] = field("Share of the time of its servers, and of the units that it shares, that is used")
    pace_pps: tuple[float, ...] = field("At what rate it hands on the frames of a poll")

    def on_link_frames(self, stations: Iterable[int], frame_s: float) -> float:
        """Return how many frames of polls at these stations a link has not sent when the last of them comes."""
        return sum(self.polls_frames[at] * max(1.0 - 1.0 / (self.pace_pps[at] * frame_s), 0.0) for at in stations)


def absences_of(fluid: Fluid) -> Absences:
    """Bound the absences of all task units at a load, with what the fluid state admits."""
    return _Bounds(fluid).found()


class _Bounds:
    def __init__(self, fluid: Fluid) -> None:
        self.fluid, tasks = fluid, fluid.graph.tasks
        self.count = len(tasks)
        self.rate = fluid.rates.sum(axis=1)
        self.frame_s = [cost.busy_s * float(factor) for cost, factor in zip(fluid.costs, fluid.factor, strict=True)]
        self.servers = [self._servers(index) for index in range(self.count)]
        self.pace_pps = [n / s if s > 0.0 else math.inf for n, s in zip(self.servers, self.frame_s, strict=True)]
        self.most = [self._most(index) for index in range(self.count)]
        self.before: list[list[int]] = [[] for _ in range(fluid.graph.exit + 1)]
        for at, edges in enumerate(fluid.graph.edges):
            for node, fraction in edges:
                if float(fluid.rates[at] @ fraction) > 0.0:
                    self.before[node].append(at)
        self.own_s = [self._own_s(index) for index in range(self.count)]
        self.part_load = {id(part): self._part_load(part) for part in fluid.components}
        self.load = [self._load(index) for index in range(self.count)]

    def found(self) -> Absences:
        polls, bursts, away = list(self.most), [0.0] * self.count, [0.0] * self.count
        for _ in range(_ROUNDS):
            bursts = []
            for index in range(self.count):
                bursts.append(sum(self._handed(at, index, polls, bursts) for at in self.before[index]))
            periods = {id(part): self._busy_period_s(part, bursts) for part in self.fluid.components}
            away = [self._away_s(index, periods) for index in range(self.count)]
            polls = [min(self.most[index], self._waiting(index, away, bursts)) for index in range(self.count)]
        passed = [
            burst if frame_s <= 0.0 else poll for poll, burst, frame_s in zip(polls, bursts, self.frame_s, strict=True)
        ]
        return Absences(
            away_s=tuple(away),
            polls_frames=tuple(passed),
            bursts_frames=tuple(bursts),
            load=tuple(self.load),
            pace_pps=tuple(self.pace_pps),
        )

    def _servers(self, index: int) -> int:
        task, uses = self.fluid.graph.tasks[index], self.fluid.uses[index]
        if not uses:
            return task.parallel
        part, units = uses[0]
        return max(served_at_once(task, len(part.units) // units), 1)

    def _most(self, index: int) -> float:
        """Frames of a full poll."""
        task = self.fluid.graph.tasks[index]
        if task.activation.kind in {"interrupt", "thread"}:
            return float(min(task.activation.budget_frames, task.queue_frames))
        return float(task.batch_frames)

    def _own_s(self, index: int) -> float:
        """Time that passes before it asks for its unit, and at the beginning of its work."""
        task, cost, factor = self.fluid.graph.tasks[index], self.fluid.costs[index], float(self.fluid.factor[index])
        own_s = cost.moderation_s + (cost.interrupt_s + cost.batch_s) * factor
        if task.activation.wakeup is not None:
            own_s += task.activation.wakeup.quantile_s(1.0 - _RARE)
        return own_s + max((exit_s for _, exit_s in cost.rest), default=0.0)

    def _part_load(self, part: Component) -> float:
        """Share of its units that work takes and polling holds: in full batches, or at most where others take turns."""
        fluid = self.fluid
        apart = len(part.members) > 1 and fluid.steady is None
        busy, rate = [0.0] * self.count, self.rate.tolist()
        turns_s = frames_s(part, fluid.graph.tasks, fluid.costs, rate) if apart else {}
        for index, units in part.members:
            frame_s = max(turns_s.get(index, 0.0) * float(fluid.factor[index]), self.frame_s[index])
            busy[index] = units * rate[index] * frame_s
            if fluid.graph.tasks[index].activation.kind == "polling":
                busy[index] = float(fluid.busy_units[part.pool.name][index])
        return fill_of(part, fluid.graph.tasks, busy) if apart else sum(busy) / len(part.units)

    def _load(self, index: int) -> float:
        load = float(self.rate[index]) * self.frame_s[index] / self.servers[index]
        shared = [self.part_load[id(part)] for part, _ in self.fluid.uses[index] if len(part.members) > 1]
        return max([load, *shared])

    def _handed(self, at: int, to: int, polls: list[float], bursts: list[float]) -> float:
        """Frames of a poll at one station that the next has not served when the last of them comes."""
        if self.frame_s[at] <= 0.0:
            return bursts[at]
        shares = {id(part) for part, _ in self.fluid.uses[at]} & {id(part) for part, _ in self.fluid.uses[to]}
        alone = not shares and all(len(part.members) == 1 for part, _ in self.fluid.uses[to])
        return polls[at] * max(1.0 - self.pace_pps[to] / self.pace_pps[at], 0.0) if alone else polls[at]

    def _busy_period_s(self, part: Component, bursts: list[float]) -> float:
        """Return how long the units of a component are busy without a break, at most."""
        load = self.part_load[id(part)]
        if load >= 1.0:
            return math.inf
        begin_s, variance = 0.0, 0.0
        for index, units in part.members:
            rate, frame_s = float(self.rate[index]), self.frame_s[index] * units
            if rate <= 0.0:
                continue
            at_once = bursts[index] + rate * self.own_s[index] + 1.0
            begin_s += at_once * frame_s + self.own_s[index]
            variance += rate * frame_s**2 * (1.0 + self.fluid.graph.tasks[index].service.squared_cv)
        root = SPREAD * math.sqrt(variance)
        return float(((root + math.sqrt(root**2 + 4.0 * (1.0 - load) * begin_s)) / (2.0 * (1.0 - load))) ** 2)

    def _away_s(self, index: int, periods: dict[int, float]) -> float:
        away_s = self.own_s[index]
        for part, _ in self.fluid.uses[index]:
            away_s += min(periods[id(part)], self._turns_s(part, index)) if len(part.members) > 1 else 0.0
            if part.pool.interruptions is not None:
                away_s += part.pool.interruptions.duration.quantile_s(1.0 - _RARE)
        return away_s

    def _turns_s(self, part: Component, index: int) -> float:
        """Time of one turn of each of the others."""
        costs, quantum_s = self.fluid.costs, part.pool.policy.quantum_s or 0.0
        others = [other for other, _ in part.members if other != index]
        return math.fsum(quantum_s or costs[other].frame_s * max(costs[other].batch_frames, 1) for other in others)

    def _waiting(self, index: int, away: list[float], bursts: list[float]) -> float:
        """Frames that a poll finds, and those that come during it where it takes them too."""
        came = float(self.rate[index]) * away[index]
        if not math.isfinite(came):
            return math.inf
        waiting = came + SPREAD * math.sqrt(came) + bursts[index] + 1.0
        if self.fluid.costs[index].exhaustive:
            waiting /= max(1.0 - self.load[index], 1e-3)
        return waiting
