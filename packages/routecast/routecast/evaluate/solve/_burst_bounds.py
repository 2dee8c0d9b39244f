"""Bounds of queues whose frames arrive at known instants: no chance, so what fits is never lost.

Frames at a constant rate, and repeated bursts, are a periodic pattern. A stream is bounded by its burst and its rate if
at most ``burst + rate·t`` of its frames arrive in any interval of t seconds. A server that serves at least a frame in
every ``time_s`` of a busy period, after at most ``away_s``, and streams of bursts b_i and rates r_i that together fill
it at most, have (Cruz, IEEE Transactions on Information Theory 37(1), 1991)::

    delay    D = away_s + Σ b_i·time_s          first come, first served
    backlog    = Σ b_i + Σ r_i·away_s           frames
    output   b_i' = b_i + r_i·(D - shortest service)

Units that several task units share, in any order that leaves no unit idle, are bounded by their busy period,
``(Σ away + Σ b_i·time_i)/(1 - Σ r_i·time_i)``. Where the backlog fits into the queue, no frame is lost.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from routecast.evaluate.solve._cost import slowest_over_mean
from routecast.evaluate.solve._scheduling_shares import Component, served_at_once
from routecast.evaluate.solve._unknown_shares import never_releases
from routecast.evaluate.solve.flow import Vector, stream_of
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.offered import line_rate_pps
from routecast.router.model import ResourcePool

__all__ = ["burst_of_cycle", "fitting_places", "most_contention", "places_of_streams"]

Stream = tuple[int, int, int, int]

_MAX_STREAMS, _MAX_FLOWS, _MAX_CYCLES = 512, 4096, 4
_FULL = 1.0 + 1e-9
_PERIODIC = frozenset({"cbr"})


def places_of_streams(fluid: Fluid) -> tuple[dict[Stream, list[int]], dict[int, int]] | None:
    """Return the places of each stream in the cycle of the flows of its port, and the length of each port's cycle.

    None where the streams are not those of the flow graph.
    """
    graph = fluid.graph
    kinds = {task.route.kind for task in graph.tasks}
    places: dict[Stream, list[int]] = defaultdict(list)
    cycle: dict[int, int] = defaultdict(int)
    for number, flow in enumerate(fluid.load.flows.flows):
        places[stream_of(flow, number, kinds)].append(cycle[flow.ingress])
        cycle[flow.ingress] += 1
    return (places, cycle) if len(places) == len(graph.share) else None


def fitting_places(fluid: Fluid) -> frozenset[int]:
    """Return the nodes of a flow graph, task units and ports, whose queues certainly hold all frames of a load."""
    load, graph = fluid.load, fluid.graph
    if load.arrivals.kind not in _PERIODIC or len(graph.share) > _MAX_STREAMS or fluid.steady is not None:
        return frozenset()
    bursts = _bursts_behind_links(fluid)
    if bursts is None:
        return frozenset()
    return frozenset(_Walk(fluid, bursts).fitting)


class _Walk:
    """The burst of each stream at each node, in the order of the graph."""

    def __init__(self, fluid: Fluid, entering: Vector) -> None:
        self.fluid, self.graph = fluid, fluid.graph
        self.rates = fluid.graph.arriving(fluid.offered, np.ones(fluid.graph.exit + 1))
        self.bursts = np.zeros_like(self.rates)
        self.bursts[self.graph.entered, np.arange(len(entering))] = entering
        self.fitting: set[int] = set()
        self.longest_s: dict[int, float] = {}
        """By number of a shared component: its longest busy period, once all its members are reached."""
        for index in range(len(self.graph.tasks)):
            self._station(index)
        for number, port in enumerate(fluid.model.ports):
            node = len(self.graph.tasks) + number
            longest_s = 1.0 / line_rate_pps(port.link_bps, max(fluid.load.frames.share_by_bytes))
            rate = float(self.rates[node].sum())
            if rate * longest_s <= _FULL and float(self.bursts[node].sum()) <= port.tx_ring_frames:
                self.fitting.add(node)

    def _station(self, index: int) -> None:
        task, rates, bursts = self.graph.tasks[index], self.rates[index], self.bursts[index]
        delay_s = 0.0
        if rates.any() and self.fluid.costs[index].busy_s + self.fluid.costs[index].interrupt_s > 0.0:
            delay_s, backlog = self._delay_and_backlog(index)
            if backlog <= task.queue_frames:
                self.fitting.add(index)
            else:
                delay_s = math.inf
        else:
            self.fitting.add(index)
        out = (
            bursts + np.where(rates > 0.0, rates * delay_s, 0.0)
            if math.isfinite(delay_s)
            else np.full_like(bursts, math.inf)
        )
        for node, fraction in self.graph.edges[index]:
            whole = fraction >= 1.0
            is_only = int(np.count_nonzero(rates)) == 1 and task.route.kind == "round_robin"
            part = np.where(whole, out, np.where(fraction > 0.0, out * fraction + 1.0 if is_only else math.inf, 0.0))
            self.bursts[node] += np.where(rates * fraction > 0.0, part, 0.0)

    def _delay_and_backlog(self, index: int) -> tuple[float, float]:
        """Return the longest delay of a frame, s, and the most frames that wait or are served."""
        task, uses = self.graph.tasks[index], self.fluid.uses[index]
        rate, burst = float(self.rates[index].sum()), float(self.bursts[index].sum())
        time_s, away_s = self._time_s(index), self._away_s(index)
        if not math.isfinite(burst + time_s + away_s):
            return math.inf, math.inf
        if any(len(part.members) > 1 for part, _ in uses):
            period_s = self._busy_period_s(uses[0][0]) if len(uses) == 1 else math.inf
            return period_s, burst + rate * period_s
        servers = min(
            (served_at_once(task, max(len(part.units) // units, 1)) for part, units in uses), default=task.parallel
        )
        if rate * time_s > servers * _FULL:
            return math.inf, math.inf
        # Each of several servers may still serve the frame that it began before.
        return away_s + burst * time_s / servers + (time_s if servers > 1 else 0.0), burst + rate * away_s

    def _busy_period_s(self, part: Component) -> float:
        """Return the longest busy period of one unit that several task units share, s."""
        tasks = self.graph.tasks
        if len(part.units) > 1 or any(never_releases(part, tasks[index]) for index, _ in part.members):
            return math.inf
        work_s, load = 0.0, 0.0
        for index, _ in part.members:
            rate, burst = float(self.rates[index].sum()), float(self.bursts[index].sum())
            if rate <= 0.0:
                continue
            if self._comes_later(index, part):
                return math.inf
            # A grant of the unit may begin with a switch; revoked work is resumed after another.
            time_s = self._time_s(index) + 2.0 * part.pool.switch_cost_s
            work_s += burst * time_s + self._away_s(index)
            load += rate * time_s
        return work_s / (1.0 - load) if load < 1.0 else math.inf

    def _comes_later(self, index: int, part: Component) -> bool:
        """Whether the bursts of a member of shared units depend on those of another member."""
        members = {member for member, _ in part.members}
        reached = {node for member in members for node, _ in self.graph.edges[member]}
        pending = [node for node in reached if node < len(self.graph.tasks)]
        while pending:
            node = pending.pop()
            if node == index:
                return True
            for following, _ in self.graph.edges[node]:
                if following < len(self.graph.tasks) and following not in reached:
                    reached.add(following)
                    pending.append(following)
        return False

    def _time_s(self, index: int) -> float:
        """Return the longest service of a frame, with the cost of a batch for each; infinite where chance decides."""
        fluid, task, cost = self.fluid, self.graph.tasks[index], self.fluid.costs[index]
        pools = [fluid.model.pool(need.pool) for need in task.needs]
        random = task.service.squared_cv > 0.0 or any(pool.interruptions is not None for pool in pools)
        if random or cost.sleep_states or len(task.needs) > 1 or task.activation.kind == "thread" or task.holds_back:
            return math.inf
        if any(need.until for need in task.needs) or (fluid.windows is not None and index in fluid.windows.inside):
            return math.inf
        frequency_hz = pools[0].frequency_hz if pools else None
        longest = max(task.service.mean_s(size, frequency_hz=frequency_hz) for size in fluid.load.frames.share_by_bytes)
        contention = max((most_contention(pool) for pool in pools), default=1.0)
        return longest * cost.slowdown * slowest_over_mean(task, fluid.model, cost) * contention

    def _away_s(self, index: int) -> float:
        """Return the longest time before a server with frames begins, s."""
        task, cost = self.graph.tasks[index], self.fluid.costs[index]
        if task.activation.kind != "interrupt":
            return 0.0
        if task.activation.wakeup is not None and not task.activation.wakeup.is_constant:
            return math.inf
        wakeup_s = task.activation.wakeup.average_s if task.activation.wakeup is not None else 0.0
        pools = [self.fluid.model.pool(need.pool) for need in task.needs]
        slower = max((most_contention(pool) for pool in pools), default=1.0)
        return wakeup_s + cost.moderation_s + cost.interrupt_s * slower


def most_contention(pool: ResourcePool) -> float:
    """Return the greatest contention factor of a pool with any number of busy units."""
    return 1.0 if pool.contention.is_none else max(pool.contention.factor(float(k)) for k in range(1, pool.units + 1))


def _bursts_behind_links(fluid: Fluid) -> Vector | None:
    """Return the burst of each stream behind the link that it enters by; None if chance decides it."""
    load, graph = fluid.load, fluid.graph
    flows = load.flows.flows
    if len(flows) > _MAX_FLOWS or any(flow.weight != flows[0].weight for flow in flows):
        return None  # flows are drawn at random
    if load.frames.order == "random" and not load.frames.is_fixed:
        return None
    intended = graph.by_port(graph.share) * fluid.intended_pps
    late = [
        _late_frames(load.frames.sequence_bytes, port.link_bps, rate)
        for port, rate in zip(fluid.model.ports, intended.tolist(), strict=True)
    ]
    if not all(map(math.isfinite, late)):
        return None
    in_turn = places_of_streams(fluid)
    if in_turn is None:
        return None
    places, cycle = in_turn
    return np.array([burst_of_cycle(taken, cycle[key[0]]) + late[key[0]] for key, taken in places.items()])


def burst_of_cycle(taken: Sequence[int], length: int) -> float:
    """Return the burst, in frames, of the frames at these places of a cycle of frames at equal gaps.

    Examples
    --------
    >>> burst_of_cycle([0, 2, 4, 6], 8), burst_of_cycle([0, 1], 8)
    (1.0, 1.75)
    """
    share = len(taken) / length
    twice = [*taken, *(place + length for place in taken)]
    # Frames i to j arrive within place[j] - place[i] gaps: the excess over the mean is greatest for one pair.
    lead, most = -math.inf, 0.0
    for number, place in enumerate(twice):
        lead = max(lead, share * place - number)
        most = max(most, number + 1 + lead - share * place)
    return most


def _late_frames(sequence_bytes: Sequence[int], link_bps: float, rate_pps: float) -> float:
    """Return the frames by which a link may delay some more than others, at equal intended gaps; infinite if full.

    The last bit of a frame arrives when the link has sent it, after those before it.
    """
    if rate_pps <= 0.0 or len(set(sequence_bytes)) == 1:
        return 0.0
    gap_s, free_s, delays = 1.0 / rate_pps, 0.0, []
    for number, size in enumerate(list(sequence_bytes) * _MAX_CYCLES):
        at_s = number * gap_s
        free_s = max(free_s, at_s) + 1.0 / line_rate_pps(link_bps, size)
        delays.append(free_s - at_s)
    half = len(delays) // 2
    if max(delays[half:]) > max(delays[:half]) * _FULL:
        return math.inf  # it falls behind
    return (max(delays) - min(delays)) * rate_pps
