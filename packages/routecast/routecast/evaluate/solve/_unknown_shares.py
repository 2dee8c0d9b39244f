"""Shared units with unknown shares, and bounds on the wait and on the number of frames that wait for them.

The fluid state divides shared units by turns, with full batches, and takes all units of a component to be alike. In
three cases that does not hold, and the rate is only bounded:

* A polling task unit never releases its unit, except under Linux's schedulers. Which other task units may use that unit
  depends on which came first.
* Pins leave some task units fewer units than others: a set of units may be full while another set idles.
* Batches and interrupts have a cost: an early poll finds few frames, so the turns decide the cost of a frame. Up to the
  rate at which the smallest batches that turns allow fill the units, frames are lost only by chance; above that rate
  the loss is unknown.

Where no queueing law is known (moderation, wake-ups, threads that share cores), three effects fill a queue: frames
that arrive while the server is away, frames that the stations before send faster than it serves, and the fluctuation
around the mean. This module bounds the first two, :mod:`routecast.evaluate.solve._delay` the last.

A frame that waits for a unit waits in a busy period of the units that it may use, whatever the scheduler, as long as
no unit idles while frames wait. A busy period that begins with work ``w`` and takes in random work with load ``u`` and
variance ``s²`` per second ends by ``B = w + uB + z·s·√B``, except with the probability of the normal tail beyond ``z``.
The busy period begins with the frames that arrive in one burst, so bursts and busy periods are computed together,
starting from full polls: each round gives a bound if the round before did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from routecast.evaluate.solve._cost import Cost, slowest_over_mean
from routecast.evaluate.solve._scheduling_shares import Component, pin_sets, served_at_once
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.arrivals import Arrivals
from routecast.quantity.schema import field, value
from routecast.router.model import TaskUnit

SPREAD = 4.5
"""Standard deviations above the mean that count for the frames that arrive in a known time."""
RARE = 1e-5
"""Chance of a random time that is longer than counted."""
_ROUNDS = 8
_FULL = 1.0 - 1e-9
_ALWAYS_FULL = 1.05
"""Intended load of a link that never idles, whatever the gaps."""


@value
class Absences:
    """Nearly certain bounds by task unit: time away, frames of a poll, frames of a burst, load."""

    away_s: tuple[float, ...] = field("Longest time that frames wait for the server to begin, s")
    polls_frames: tuple[float, ...] = field("Greatest number of frames that it forwards in one poll")
    bursts_frames: tuple[float, ...] = field("Greatest number of frames that arrive faster than it serves them")
    load: tuple[float, ...] = field("Used share of the time of its servers, or of its shared units if that is greater")
    pace_pps: tuple[float, ...] = field("Rate at which it forwards the frames of a poll, frames/s")

    def on_link_frames(self, stations: Iterable[int], frame_s: float) -> float:
        """Return the number of frames from polls at these stations that wait for a link when the last frame arrives."""
        return sum(
            self.polls_frames[station] * max(1.0 - 1.0 / (self.pace_pps[station] * frame_s), 0.0)
            for station in stations
        )


def absences_of(fluid: Fluid) -> Absences:
    """Return bounds of the absences of all task units at a load, for the admitted rates of the fluid state."""
    return _Bounds(fluid).absences()


class _Bounds:
    def __init__(self, fluid: Fluid) -> None:
        self.fluid, tasks = fluid, fluid.graph.tasks
        self.arrivals = arrivals_behind_links(fluid)
        self.count = len(tasks)
        self.rate = fluid.rates.sum(axis=1)
        # Units of unequal speed and migrations: the slowest a frame may be.
        self.frame_s = [
            cost.busy_s * float(factor) * slowest_over_mean(task, fluid.model, cost)
            for task, cost, factor in zip(tasks, fluid.costs, fluid.factor, strict=True)
        ]
        self.servers = [self._servers(index) for index in range(self.count)]
        self.pace_pps = [n / s if s > 0.0 else math.inf for n, s in zip(self.servers, self.frame_s, strict=True)]
        self.full_poll_frames = [self._full_poll_frames(index) for index in range(self.count)]
        self.feeders: list[list[int]] = [[] for _ in range(fluid.graph.exit + 1)]
        for station, edges in enumerate(fluid.graph.edges):
            for node, fraction in edges:
                if float(fluid.rates[station] @ fraction) > 0.0:
                    self.feeders[node].append(station)
        self.start_delay_s = [self._start_delay_s(index) for index in range(self.count)]
        self.part_load = [self._part_load(part) for part in fluid.components]
        self.load = [self._load(index) for index in range(self.count)]

    def absences(self) -> Absences:
        polls, bursts, away = list(self.full_poll_frames), [0.0] * self.count, [0.0] * self.count
        for _ in range(_ROUNDS):
            bursts = []
            for index in range(self.count):
                bursts.append(
                    sum(self._handed_frames(station, index, polls, bursts) for station in self.feeders[index])
                )
            periods = [self._busy_period_s(part, bursts) for part in self.fluid.components]
            away = [self._away_s(index, periods) for index in range(self.count)]
            polls = [
                min(self.full_poll_frames[index], self._waiting(index, away, bursts)) for index in range(self.count)
            ]
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

    def _full_poll_frames(self, index: int) -> float:
        """Return the number of frames of a full poll."""
        task = self.fluid.graph.tasks[index]
        if task.activation.kind in {"interrupt", "thread"}:
            return float(min(task.activation.budget_frames, task.queue_frames))
        return float(task.batch_frames)

    def _start_delay_s(self, index: int) -> float:
        """Return the time before a task unit requests its unit, and its time for the start of work, s."""
        task, cost, factor = self.fluid.graph.tasks[index], self.fluid.costs[index], float(self.fluid.factor[index])
        start_delay_s = cost.moderation_s + (cost.interrupt_s + cost.batch_s) * factor
        if task.activation.wakeup is not None:
            start_delay_s += task.activation.wakeup.quantile_s(1.0 - RARE)
        return start_delay_s + max((exit_s for _, exit_s in cost.sleep_states), default=0.0)

    def _part_load(self, part: Component) -> float:
        """Return the share of units for work and polling, in full batches, or an upper bound where units are shared."""
        fluid = self.fluid
        apart = len(part.members) > 1 and fluid.steady is None
        busy, rate = [0.0] * self.count, self.rate.tolist()
        turns_s = frame_times_s(part, fluid.graph.tasks, fluid.costs, rate) if apart else {}
        for index, units in part.members:
            frame_s = max(turns_s.get(index, 0.0) * float(fluid.factor[index]), self.frame_s[index])
            busy[index] = units * rate[index] * frame_s
            if fluid.graph.tasks[index].activation.kind == "polling":
                busy[index] = float(fluid.busy_units[part.pool.name][index])
        return fill_of(part, fluid.graph.tasks, busy) if apart else sum(busy) / len(part.units)

    def _load(self, index: int) -> float:
        load = float(self.rate[index]) * self.frame_s[index] / self.servers[index]
        shared = [self.part_load[part.number] for part, _ in self.fluid.uses[index] if len(part.members) > 1]
        return max([load, *shared])

    def _handed_frames(self, station: int, to: int, polls: list[float], bursts: list[float]) -> float:
        """Return the frames of a poll at one station that the next station has not served when the last arrives."""
        if self.frame_s[station] <= 0.0:
            return bursts[station]
        shares = {part.number for part, _ in self.fluid.uses[station]} & {
            part.number for part, _ in self.fluid.uses[to]
        }
        alone = not shares and all(len(part.members) == 1 for part, _ in self.fluid.uses[to])
        if alone:
            return polls[station] * max(1.0 - self.pace_pps[to] / self.pace_pps[station], 0.0)
        return max(polls[station] - 1.0, 0.0)  # the last is an arrival as any other

    def _busy_period_s(self, part: Component, bursts: list[float]) -> float:
        """Return the longest busy period of the units of a component, s."""
        load = self.part_load[part.number]
        if load >= 1.0:
            return math.inf
        begin_s, variance = 0.0, 0.0
        gaps_scv = max(self.arrivals.interarrival_scv, 1.0)
        for index, units in part.members:
            rate, frame_s = float(self.rate[index]), self.frame_s[index] * units
            if rate <= 0.0:
                continue
            at_once = bursts[index] + rate * self.start_delay_s[index] + 1.0
            begin_s += at_once * frame_s + self.start_delay_s[index]
            variance += rate * frame_s**2 * (gaps_scv + self.fluid.graph.tasks[index].service.squared_cv)
        root = SPREAD * math.sqrt(variance)
        return float(((root + math.sqrt(root**2 + 4.0 * (1.0 - load) * begin_s)) / (2.0 * (1.0 - load))) ** 2)

    def _away_s(self, index: int, periods: list[float]) -> float:
        away_s = self.start_delay_s[index]
        for part, _ in self.fluid.uses[index]:
            away_s += min(periods[part.number], self._turns_s(part, index)) if len(part.members) > 1 else 0.0
            if part.pool.interruptions is not None:
                away_s += part.pool.interruptions.duration.quantile_s(1.0 - RARE)
        return away_s

    def _turns_s(self, part: Component, index: int) -> float:
        """Return the time of one turn of each other member of a component, s."""
        costs, quantum_s = self.fluid.costs, part.pool.policy.quantum_s or 0.0
        others = [other for other, _ in part.members if other != index]
        return math.fsum(quantum_s or costs[other].frame_s * max(costs[other].batch_frames, 1) for other in others)

    def _waiting(self, index: int, away: list[float], bursts: list[float]) -> float:
        """Return the frames that a poll finds; for exhaustive polls, with the frames that arrive during the poll."""
        arrived = float(self.rate[index]) * away[index]
        if not math.isfinite(arrived):
            return math.inf
        waiting = gathered_frames(self.arrivals, arrived) + bursts[index] + 1.0
        if self.fluid.costs[index].exhaustive:
            waiting /= max(1.0 - self.load[index], 1e-3)
        return waiting


def arrivals_behind_links(fluid: Fluid) -> Arrivals:
    """Return the arrivals behind the links: back to back if more is intended than each of them carries."""
    load, graph = fluid.load, fluid.graph
    intended = graph.by_port(graph.share) * fluid.intended_pps
    used = intended > 0.0
    is_full = load.arrivals.kind in {"poisson", "on_off"} and bool(
        (intended[used] > _ALWAYS_FULL * graph.ingress_cap[used]).all()
    )
    return Arrivals.cbr() if is_full else load.arrivals


def gathered_frames(arrivals: Arrivals, mean_frames: float) -> float:
    """Return a nearly certain bound of the frames that arrive in a time that brings so many in the mean.

    Bursts may come at their peak rate all the time; over many of them the counts vary as the gaps do.
    """
    if arrivals.kind != "on_off" or not math.isfinite(mean_frames):
        return mean_frames + SPREAD * math.sqrt(mean_frames)
    at_peak = arrivals.peak_ratio * mean_frames
    return min(
        at_peak + SPREAD * math.sqrt(at_peak), mean_frames + SPREAD * math.sqrt(mean_frames * arrivals.interarrival_scv)
    )


def frame_times_s(
    part: Component, tasks: Sequence[TaskUnit], costs: Sequence[Cost], visits: Sequence[float]
) -> dict[int, float]:
    """Return the time per frame with the smallest batches under turns, without contention, by member, s.

    Grants rotate. The member with the shortest turns bounds the cycle, because one turn serves its arrivals of a cycle.
    The arrivals of another member during a cycle are its batch, which pays for an interrupt, a batch and a switch (the
    cycle of a polling system; Takagi, Analysis of Polling Systems, 1986). Beside a task unit that serves one frame per
    turn, polls find few frames; beside other polls they find full batches. A fair policy divides time, not turns. A
    poll with more priority than others begins at once, with one frame.

    ``visits``: arriving frames by task unit, in any unit.
    """
    reached = [index for index, _ in part.members if visits[index] > 0.0]
    turns = [costs[index].batch_frames / visits[index] for index in reached if not never_releases(part, tasks[index])]
    cycle = math.inf if part.pool.policy.kind == "fair" or not turns else min(turns)
    urgent = (
        part.pool.policy.kind in {"priority", "preemptive"}
        and len({tasks[station].priority for station in reached}) > 1
    )
    frames = {}
    for index, _ in part.members:
        cost = costs[index]
        batch = (
            1.0 if urgent else min(max(visits[index] * cycle if visits[index] > 0.0 else 1.0, 1.0), cost.batch_frames)
        )
        frames[index] = cost.frame_s + (cost.batch_s + cost.interrupt_s + part.pool.switch_cost_s) / batch
    return frames


def never_releases(part: Component, task: TaskUnit) -> bool:
    """Whether a task unit never releases its units."""
    return task.activation.kind == "polling" and part.pool.policy.kind != "linux"


def held_units(part: Component, tasks: Sequence[TaskUnit]) -> int:
    """Return the number of units that polling task units hold."""
    held: dict[str, int] = {}
    for index, units in part.members:
        if never_releases(part, tasks[index]):
            # Task units of one thread hold the same units.
            at_once = served_at_once(tasks[index], len(part.units) // units)
            held[tasks[index].thread or tasks[index].name] = units * at_once
    return sum(held.values())


def fill_of(part: Component, tasks: Sequence[TaskUnit], work: Sequence[float]) -> float:
    """Return the load of the fullest set of units of a component.

    ``work``: busy units by task unit.
    """
    others = [index for index, _ in part.members if not never_releases(part, tasks[index])]
    wanted = sum(work[index] for index in others)
    if wanted <= 0.0:
        return 0.0
    free = len(part.units) - held_units(part, tasks)
    fill = wanted / free if free > 0 else math.inf
    usable_units = {index: _usable_units(part, tasks[index]) for index in others}
    sets, _ = pin_sets([units for units in usable_units.values() if len(units) < len(part.units)])
    for units in sets:
        fill = max(fill, sum(work[index] for index in others if usable_units[index] <= units) / len(units))
    return fill


def why_unknown(
    part: Component,
    tasks: Sequence[TaskUnit],
    costs: Sequence[Cost],
    rates_pps: Sequence[float],
    factor: Sequence[float],
    *,
    threads: bool,
    always_full: bool = False,
) -> str:
    """Return the reason why the shares of a component's members are unknown at their arriving rates; empty if known.

    ``rates_pps``: arriving frames/s by task unit; ``factor``: contention by task unit; ``threads``: whether the router
    is one of threads, whose own fixed point covers pins and wake-ups; ``always_full``: whether all members are
    overloaded for good, so that each poll finds a full batch.
    """
    if len(part.members) < 2:
        return ""
    if poller := _blocking_poller(part, tasks):
        return f'"{poller}" polls and never releases its unit, so that the order of the first requests decides'
    if threads:
        return ""
    work = [0.0] * len(tasks)
    frame_s = frame_times_s(part, tasks, costs, rates_pps)
    for index, units in part.members:
        work[index] = units * rates_pps[index] * frame_s[index] * factor[index]
    if fill_of(part, tasks, work) < _FULL:
        return ""
    if not always_full and any(_has_start_cost(part, costs[index]) for index, _ in part.members):
        return "how many frames a poll finds depends on the turns of the others"
    if len({_usable_units(part, tasks[index]) for index, _ in part.members}) > 1:
        return "pins leave some task units fewer units than others"
    return ""


def _has_start_cost(part: Component, cost: Cost) -> bool:
    return cost.batch_s + cost.interrupt_s > 0.0 or (part.pool.switch_cost_s > 0.0 and cost.batch_frames > 1)


def _usable_units(part: Component, task: TaskUnit) -> frozenset[int]:
    """Return the units that a task unit may use; its pin applies to its first pool."""
    pinned = task.pin and task.needs[0].pool == part.pool.name
    return frozenset(task.pin if pinned else part.units)


def _blocking_poller(part: Component, tasks: Sequence[TaskUnit]) -> str:
    """Return the name of a polling task unit that may hold the only units of another; empty if there is none."""
    holding = [(index, units) for index, units in part.members if never_releases(part, tasks[index])]
    for index, needed in part.members:
        task, own = tasks[index], _usable_units(part, tasks[index])
        held: dict[str, int] = {}
        for other, units in holding:
            poller = tasks[other]
            if (
                other != index
                and not (poller.thread and poller.thread == task.thread)
                and _usable_units(part, poller) & own
            ):
                held[poller.thread or poller.name] = units * served_at_once(poller, len(part.units) // units)
        if held and len(own) - sum(held.values()) < needed:
            return next(iter(held))
    return ""
