"""What a time brings to the nodes of a router at most: frames, their work, and the starts and stops beside it.

Frames come at their rates, each count with 4.5 standard deviations above its mean or with the bursts of the cycle of
the flows, and no faster than the links bring them. Each takes its mean time on the slowest unit with all others busy.
"""

from __future__ import annotations

import math
from collections import defaultdict

from routecast.evaluate.solve._burst_bounds import burst_of_cycle, most_contention, places_of_streams
from routecast.evaluate.solve._cost import slowest_over_mean
from routecast.evaluate.solve._scheduling_shares import Component
from routecast.evaluate.solve._unknown_shares import RARE, SPREAD, arrivals_behind_links
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.offered import line_rate_pps
from routecast.router.model import RandomTime

__all__ = ["BroughtWork", "interrupted_s"]

_FEW = 4.0
"""Frames above the standard deviations of a small Poisson count, whose tail is longer than the normal."""


class BroughtWork:
    """Bounds of the frames and of the work that a time brings to the nodes of a router.

    ``admitted``: share of the frames that the fluid state admits everywhere. By node: ``rates``; by task unit:
    ``frame_s``, the time of a frame in a poll of its own, ``turn_s``, what a poll or turn costs beside its frames,
    ``start_s``, the longest time before it asks for its unit, and ``excess_s``, by how much a service exceeds its mean.
    """

    def __init__(self, fluid: Fluid, admitted: float) -> None:
        self._fluid, self._graph = fluid, fluid.graph
        self.rates: list[float] = (fluid.rates.sum(axis=1) / admitted).tolist()
        self._arrivals = arrivals = arrivals_behind_links(fluid)
        self._lines: dict[int, tuple[float, float]] = {}
        self._bursts = self._bursts_of_cycle()
        self._gaps_scv = max(arrivals.interarrival_scv, 0.0) if arrivals.kind == "on_off" else 1.0
        tasks = self._graph.tasks
        self._service_scv = [task.service.squared_cv for task in tasks]
        self._feeders: list[list[int]] = [[] for _ in range(self._graph.exit + 1)]
        for index, edges in enumerate(self._graph.edges):
            for node, fraction in edges:
                if float(fluid.rates[index] @ fraction) > 0.0:
                    self._feeders[node].append(index)
        self.turn_s = [self._start_of_turn_s(index) for index in range(len(tasks))]
        self.frame_s = [self._frame_s(index) for index in range(len(tasks))]
        self.start_s = [self._start_s(index) for index in range(len(tasks))]
        self.excess_s = [self._excess_s(index) for index in range(len(tasks))]

    def frames(self, node: int, time_s: float) -> float:
        """Return a bound of the frames for a node that a time brings."""
        rate = self.rates[node]
        if rate <= 0.0:
            return 0.0
        mean, arrivals = rate * time_s, self._arrivals
        if arrivals.kind == "cbr" and self._bursts is not None:
            most = mean
        else:
            most = mean + SPREAD * math.sqrt(mean * self._gaps_scv) + _FEW
            if arrivals.kind == "on_off":
                at_peak = arrivals.peak_ratio * mean
                most = min(most, at_peak + SPREAD * math.sqrt(at_peak) + _FEW)
        burst = self._bursts[node] if self._bursts is not None else SPREAD * math.sqrt(mean)
        pps, links = self._lines.get(node) or self._line_rates(node)
        return min(most + burst, time_s * pps + links)

    def work_s(self, index: int, time_s: float) -> float:
        """Return a bound of the work that a task unit gets from the frames that enter in a time, s."""
        frame_s = self.frame_s[index]
        spread_s = frame_s * math.sqrt(self.rates[index] * time_s * self._service_scv[index])
        return self.frames(index, time_s) * frame_s + SPREAD * spread_s

    def by_services(self, node: int, time_s: float) -> float:
        """Return the frames that the units before a node can serve in a time; infinite where they come in batches.

        n services take ``n - SPREAD·sqrt(n·c²)`` of their mean at least.
        """
        total = 0.0
        for index in self._feeders[node]:
            task, uses = self._graph.tasks[index], self._fluid.uses[index]
            is_one = len(uses) == 1 and len(uses[0][0].units) == 1 and self._fluid.costs[index].batch_frames == 1
            if not is_one or task.activation.kind == "interrupt" or (least_s := self.least_s(index)) <= 0.0:
                return math.inf
            half = 0.5 * SPREAD * math.sqrt(task.service.squared_cv)
            total += (half + math.sqrt(half**2 + time_s / least_s)) ** 2 + 1.0
        return total or math.inf

    def usual_ratio(self, index: int) -> float:
        """Return the mean slowdown by other units over the greatest: a round is long enough for the mean."""
        most = max((most_contention(part.pool) for part, _ in self._fluid.uses[index]), default=1.0)
        return min(float(self._fluid.factor[index]) / most, 1.0)

    def least_s(self, index: int) -> float:
        """Return the mean service of the smallest frames on the fastest unit, s."""
        fluid, task = self._fluid, self._graph.tasks[index]
        sizes, batch = fluid.load.frames.share_by_bytes, max(fluid.costs[index].batch_frames, 1)
        frequency_hz = self._frequency_hz(index)
        least_s = min(task.service.mean_s(size, frequency_hz=frequency_hz, batch_frames=batch) for size in sizes)
        speeds = [max(part.pool.unit_speed_ratio, default=1.0) for part, _ in fluid.uses[index]]
        return least_s / max(max(speeds, default=1.0), 1.0)

    def is_as_fast_as_before(self, node: int, link_bps: float) -> bool:
        """Whether a link sends frames of one size as fast as the links bring those for it."""
        brought = self._graph.by_port(self._fluid.rates[node]).tolist()
        ports = zip(self._fluid.model.ports, brought, strict=True)
        bps = math.fsum(port.link_bps for port, rate in ports if rate > 0.0)
        copies = any(task.route.copies for task in self._graph.tasks)
        return self._fluid.load.frames.is_fixed and not copies and bps <= link_bps * (1.0 + 1e-9)

    def _line_rates(self, node: int) -> tuple[float, float]:
        """Return the smallest frames a second that the links in bring to a node at most, and one frame for each link.

        Both count the copies of a frame.
        """
        if node not in self._lines:
            smallest = min(self._fluid.load.frames.share_by_bytes)
            brought = self._graph.by_port(self._fluid.rates[node]).tolist()
            copies = max(self.rates[node] / math.fsum(brought), 1.0)
            ports = zip(self._fluid.model.ports, brought, strict=True)
            lines = [line_rate_pps(port.link_bps, smallest) for port, rate in ports if rate > 0.0]
            self._lines[node] = copies * math.fsum(lines), copies * len(lines)
        return self._lines[node]

    def _frame_s(self, index: int) -> float:
        """Return the mean time of a frame in a poll of its own, on the slowest unit with all others busy, s."""
        fluid, task, cost = self._fluid, self._graph.tasks[index], self._fluid.costs[index]
        longest = 1.0
        if not fluid.load.frames.is_fixed and task.service.mean_s(1500) > 0.0:
            sizes = fluid.load.frames.share_by_bytes
            times_s = [task.service.mean_s(size, frequency_hz=self._frequency_hz(index)) for size in sizes]
            mean_s = math.fsum(t * share for t, share in zip(times_s, sizes.values(), strict=True))
            longest = max(times_s) / mean_s if mean_s > 0.0 else 1.0
        return cost.frame_s * longest * self._slower(index) + self.turn_s[index]

    def _start_of_turn_s(self, index: int) -> float:
        """Return what a poll or turn costs beside its frames: batch, interrupt or notification, switches, s."""
        task, cost = self._graph.tasks[index], self._fluid.costs[index]
        notified_s = task.activation.interrupt_cost_s * cost.slowdown if task.activation.kind == "thread" else 0.0
        pools = [part.pool for part, _ in self._fluid.uses[index]]
        # A softirq under Linux borrows the unit of the thread that it interrupts.
        borrows = task.activation.kind == "interrupt" and all(pool.policy.kind == "linux" for pool in pools)
        switch_s = 0.0 if borrows else 2.0 * max((pool.switch_cost_s for pool in pools), default=0.0)
        return (cost.batch_s + cost.interrupt_s + notified_s) * self._slower(index) + switch_s

    def _slower(self, index: int) -> float:
        """Return how many times as long work takes on the slowest unit with all others busy as on average."""
        pools = [part.pool for part, _ in self._fluid.uses[index]]
        slowest = slowest_over_mean(self._graph.tasks[index], self._fluid.model, self._fluid.costs[index])
        return max(map(most_contention, pools), default=1.0) * slowest

    def _frequency_hz(self, index: int) -> float | None:
        needs = self._graph.tasks[index].needs
        return self._fluid.model.pool(needs[0].pool).frequency_hz if needs else None

    def _start_s(self, index: int) -> float:
        """Return the longest time before a task unit asks for its unit, s."""
        task, cost = self._graph.tasks[index], self._fluid.costs[index]
        start_s = cost.moderation_s + max((exit_s for _, exit_s in cost.sleep_states), default=0.0)
        if task.activation.wakeup is not None:
            start_s += task.activation.wakeup.quantile_s(1.0 - RARE)
        return start_s

    def _excess_s(self, index: int) -> float:
        """Return by how much a service may exceed its mean, s."""
        law = self._graph.tasks[index].service
        service = RandomTime(mean_s=1.0, variation=law.variation, scv=law.scv)
        return self.frame_s[index] * (service.quantile_s(1.0 - RARE) - 1.0)

    def _bursts_of_cycle(self) -> list[float] | None:
        """Return by node the burst of the frames for it in the cycle of the flows; None where flows are random."""
        load, graph = self._fluid.load, self._graph
        flows = load.flows.flows
        if any(flow.weight != flows[0].weight for flow in flows):
            return None
        if load.frames.order == "random" and not load.frames.is_fixed and self._arrivals.kind == "cbr":
            return None  # the link delays large frames by chance
        in_turn = places_of_streams(self._fluid)
        if in_turn is None:
            return None
        places, cycle = in_turn
        longer = 1.0 if load.frames.is_fixed else _FEW
        bursts = []
        for node in range(graph.exit):
            by_port: dict[int, list[int]] = defaultdict(list)
            for (key, taken), rate in zip(places.items(), self._fluid.rates[node].tolist(), strict=True):
                if rate > 0.0:
                    by_port[key[0]] += taken
            bursts.append(longer * sum(burst_of_cycle(sorted(taken), cycle[port]) for port, taken in by_port.items()))
        return bursts


def interrupted_s(part: Component, around_s: float) -> float:
    """Return by how much longer than in the mean interruptions may stop a unit in a time, s."""
    interruptions = part.pool.interruptions
    if interruptions is None:
        return 0.0
    each = interruptions.duration
    square_s2 = each.average_s**2 * (1.0 + each.squared_cv)
    often = interruptions.rate_hz * around_s
    return each.quantile_s(1.0 - RARE) + SPREAD * math.sqrt(often * square_s2)
