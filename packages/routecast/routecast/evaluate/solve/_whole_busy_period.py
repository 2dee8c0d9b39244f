"""A rate at which no queue overflows, whatever the order of service: the busy period of all that a queue depends on.

The *surroundings* of a queue are the nodes from which its frames come, those that share units, threads or windows with
these, and those whose room they wait for::

    load ──► link ──► node ──► node ──► queue          surroundings: all nodes left of the queue, and its own
                       │ same units
    load ──► link ──► node ──► …

While a frame is in the surroundings, at least one of its steps is under way there: a service, a start, a wait for an
interrupt or a wake-up, a transmission. So the time for which the surroundings are not empty is at most the busy period
of a single server that takes all steps one after the other, under any policy, and frames that meet in a queue have
arrived in one such busy period. With ``A(t)`` the work that arrives in t seconds after its first frame, and ``V(t)``
the frames of those that visit the queue, Chernoff's bound gives for all θ, z > 0::

    P(busy period > t) <= P(A(t) > t) <= exp(ln E[e^{θA(t)}] - θt)
    P(V(t) > n)                       <= exp(ln E[e^{zV(t)}] - zn)

The work in t seconds has ``ln E[e^{θA(t)}] <= c(θ) + t·Λ(θ)``: for Poisson arrivals of rate λ and work S of a frame
``Λ = λ(E[e^{θS}] - 1)``, for at most ``σ + rt`` frames ``Λ = r·ln E[e^{θS}]`` and ``c = σ·ln E[e^{θS}]`` (Chang,
Performance Guarantees in Communication Networks, 2000, ch. 7). The bound is far below the capacity where many units
work at once; it holds for every scheduler. Rings of links behind servers that are slower than the link have a bound of
their own, at any load (:meth:`_Bounds._link_ratio`).
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from routecast.evaluate._bisection import halved
from routecast.evaluate.solve._burst_bounds import burst_of_cycle, most_contention
from routecast.evaluate.solve._scheduling_shares import components, served_at_once
from routecast.evaluate.solve.flow import FlowGraph, Vector, flow_graph, stream_of
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.quantity.schema import field, value
from routecast.router.model import SLICED, RandomTime, RouterModel, TaskUnit

__all__ = ["surely_lossless_pps"]

_LOST_RATIO = 1e-3
"""Greatest bound of the share of frames lost by chance."""
_RARE = 1e-8
"""Chance that a busy period is longer, or brings more frames, than counted; over the square of the number of queues."""
_GRID = 96
_MAX_LOAD = 0.9
"""Greatest load of the single server: the frames of a busy period then have a second moment that does not matter."""
_MAX_FRAMES = 256
_HALVINGS, _REFINEMENTS = 13, 7
"""Below a ten thousandth of the greatest rate none is looked for."""
_MAX_STREAMS, _MAX_FLOWS = 512, 4096
_TAIL_POINTS, _TAIL_RATIO = 64, 1e-13


def surely_lossless_pps(model: RouterModel, load: OfferedLoad, most_pps: float) -> float:
    """Return a rate up to ``most_pps`` at which at most a frame in a thousand is lost; NaN if the bound finds none."""
    graph = flow_graph(model, load)
    if load.arrivals.kind == "trace" or len(graph.share) > _MAX_STREAMS or len(load.flows.flows) > _MAX_FLOWS:
        return math.nan
    if any(task.route.copies for task in model.tasks):
        return math.nan
    bounds = _Bounds(model, load, graph)
    rooms: dict[frozenset[int], dict[tuple[_Share, ...], int]] = defaultdict(dict)
    around: dict[frozenset[int], _Surroundings] = {}
    for queue in bounds.queues():
        if queue.surroundings is None:
            return math.nan
        nodes = queue.surroundings.nodes
        around[nodes] = queue.surroundings
        rooms[nodes][queue.shares] = min(queue.room_frames, rooms[nodes].get(queue.shares, queue.room_frames))
    rare = -math.log(_RARE / max(sum(map(len, rooms.values())), 1) ** 2)

    def fits(rate_pps: float) -> bool:
        for nodes, room_of in rooms.items():
            surroundings = around[nodes]
            if bounds.is_full(surroundings, rate_pps):
                return False
            inside_frames = min(room_of.values()) + surroundings.only_work
            if bounds.lost_ratio(surroundings, rate_pps, inside_frames) <= _LOST_RATIO / max(len(rooms), 1):
                continue
            time_s = bounds.busy_period_s(surroundings, rate_pps, rare)
            if any(not bounds.frames(shares, rate_pps, time_s, rare) < room + 1.0 for shares, room in room_of.items()):
                return False
        return True

    if fits(most_pps):
        return most_pps
    high = most_pps
    for _ in range(_HALVINGS):
        low = 0.5 * high
        if fits(low):
            break
        high = low
    else:
        return math.nan
    return halved(fits, low, high, _REFINEMENTS)[0]


@dataclass(frozen=True, slots=True)
class _Share:
    """The frames of one port that have something in common: their share, and how many more may come in a row."""

    ratio: float
    excess_frames: float


@value
class _Surroundings:
    """The nodes that a queue depends on; times are in units of ``unit_s``."""

    nodes: frozenset[int]
    unit_s: float = field("Mean work of a frame in the surroundings, s")
    theta: Vector = field("Grid of θ, 1/s")
    work: Vector = field("ln E[e^{θS}] of a frame with work in the surroundings, over the grid")
    shares: tuple[_Share, ...] = field("Frames with work in the surroundings, by port")
    variance_s2: float = field("Greatest variance of that work, s²")
    only_work: bool = field("Whether a frame is in service while others wait, since nothing starts")


@value
class _Queue:
    """A queue of a task unit or of a link."""

    node: int
    room_frames: int
    surroundings: _Surroundings | None = field("None: a frame may wait there for ever, or for a time without law")
    shares: tuple[_Share, ...] = field("Frames that visit the queue, by port")


@dataclass(slots=True)
class _PortArrivals:
    """The frames that the ports of a router bring under a load."""

    model: RouterModel
    load: OfferedLoad
    graph: FlowGraph

    def growth(self, each: Vector, shares: tuple[_Share, ...], rate_pps: float) -> Iterator[tuple[Vector, Vector]]:
        """Yield bounds ``c + t·Λ`` of the logarithm of the moment-generating function of what t seconds bring.

        ``each``: that of one frame, over a grid; ``shares``: the frames that count.
        """
        if self.load.arrivals.kind == "poisson":
            begin, growth = each.copy(), np.zeros_like(each)
            for port, share in zip(self.by_port(), shares, strict=True):
                begin = begin + share.excess_frames * each
                growth = growth + rate_pps * port * share.ratio * np.expm1(each)
            yield begin, growth
        for envelope in self.envelopes(rate_pps):
            begin, growth = np.zeros_like(each), np.zeros_like(each)
            for (burst, pace_pps), share in zip(envelope, shares, strict=True):
                if share.ratio <= 0.0:
                    continue
                counted = share.ratio * each if self.is_in_order else np.log1p(share.ratio * np.expm1(each))
                begin = begin + burst * counted + share.excess_frames * each
                growth = growth + pace_pps * counted
            yield begin, growth

    def envelopes(self, rate_pps: float) -> Iterator[list[tuple[float, float]]]:
        """Yield, by port, pairs of a burst and a pace: t seconds bring at most ``burst + pace·t`` frames."""
        arrivals, sizes = self.load.arrivals, self.load.frames.share_by_bytes
        paced: list[tuple[float, float]] = []
        lines: list[tuple[float, float]] = []
        for port, share in zip(self.model.ports, self.by_port(), strict=True):
            longest_s = 1.0 / line_rate_pps(port.link_bps, max(sizes))
            shortest_s = 1.0 / line_rate_pps(port.link_bps, min(sizes))
            intended_pps = rate_pps * share
            pace_pps = intended_pps * (arrivals.peak_ratio if arrivals.kind == "on_off" else 1.0)
            burst = arrivals.burst_frames if arrivals.kind == "bursts" else 1.0
            lines.append((1.0, 1.0 / shortest_s) if share > 0.0 else (0.0, 0.0))
            if share <= 0.0:
                paced.append((0.0, 0.0))
            elif pace_pps * longest_s > 1.0:
                paced.append(lines[-1])
            else:
                # A frame counts once it is whole: large ones later than small ones.
                later = pace_pps * (longest_s - shortest_s) if arrivals.kind != "bursts" else 0.0
                paced.append((burst + later, pace_pps))
        if arrivals.kind != "poisson":
            yield paced
        yield lines

    def by_port(self) -> list[float]:
        """Return the share of the offered frames by port."""
        shares: list[float] = self.graph.by_port(self.graph.share).tolist()
        return shares

    @property
    def is_staggered(self) -> bool:
        """Whether all ports together bring frames at equal gaps, but for their transmission times."""
        used = [(port.link_bps, share) for port, share in zip(self.model.ports, self.by_port(), strict=True) if share]
        is_even = max(share for _, share in used) <= min(share for _, share in used) * (1.0 + 1e-9)
        return self.load.arrivals.kind == "cbr" and is_even and len({link_bps for link_bps, _ in used}) == 1

    @property
    def is_in_order(self) -> bool:
        """Whether flows and targets take turns, instead of being drawn."""
        weights = {flow.weight for flow in self.load.flows.flows}
        return len(weights) == 1 and all(task.route.kind != "random" for task in self.model.tasks)


@dataclass(slots=True)
class _Bounds:
    """What all queues of a router under a load have in common."""

    model: RouterModel
    load: OfferedLoad
    graph: FlowGraph
    arrivals: _PortArrivals = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.arrivals = _PortArrivals(self.model, self.load, self.graph)

    def queues(self) -> Iterator[_Queue]:
        """Yield the queues that frames visit."""
        graph, known = self.graph, dict[frozenset[int], _Surroundings | None]()
        visits = graph.arriving(np.ones(len(graph.share)), np.ones(graph.exit + 1))
        near, starving = self._neighbours(), self._starving()
        count = len(graph.tasks)
        for node in range(graph.exit):
            if not visits[node].any():
                continue
            if node < count:
                if not self._has_work(node):
                    continue
                room = graph.tasks[node].queue_frames
            else:
                room = self.model.ports[node - count].tx_ring_frames
                if self._link_ratio(node, room) <= _LOST_RATIO / graph.ports:
                    continue
            nodes = _closure(node, near)
            if nodes not in known:
                known[nodes] = self._surroundings(nodes, visits, starving)
            yield _Queue(
                node=node, room_frames=room, surroundings=known[nodes], shares=self._shares(np.minimum(visits[node], 1))
            )

    def is_full(self, around: _Surroundings, rate_pps: float) -> bool:
        """Whether the single server that stands for the surroundings is nearly full, or more."""
        return self._rate_pps(around, rate_pps) * around.unit_s > _MAX_LOAD

    def _rate_pps(self, around: _Surroundings, rate_pps: float) -> float:
        """Return the rate of the frames with work in the surroundings, frames/s."""
        return sum(
            rate_pps * port * share.ratio for port, share in zip(self.arrivals.by_port(), around.shares, strict=True)
        )

    def lost_ratio(self, around: _Surroundings, rate_pps: float, room_frames: int) -> float:
        """Return a bound of the share of frames that come after ``room_frames`` others of one busy period.

        A busy period has more than k frames only if frame k + 1 arrives within the first k services: ``P(K > k) <= f(θ)
        r(θ)^k``. Of its K frames at most ``K - n`` find n others before them, in the mean ``Σ_{k >= n} P(K > k)``. For
        Poisson arrivals the moments of K are known besides (:func:`_lost_by_moments`).
        """
        least = 1.0
        if self.load.arrivals.kind == "poisson" and all(share.excess_frames == 0.0 for share in around.shares):
            least = _lost_by_moments(around, self._rate_pps(around, rate_pps), room_frames)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for first, each in self._progeny(around, rate_pps):
                bound = first + room_frames * each - np.log(-np.expm1(np.minimum(each, -1e-300)))
                bound = np.where(each < 0.0, bound, np.inf)
                least = min(least, math.exp(min(float(np.nanmin(bound)), 0.0)))
        return least

    def _progeny(self, around: _Surroundings, rate_pps: float) -> Iterator[tuple[Vector, Vector]]:
        """Yield the logarithms of ``f(θ)`` and ``r(θ)`` of :meth:`lost_ratio`."""
        if self.load.arrivals.kind == "poisson":
            rate = self._rate_pps(around, rate_pps)
            frame = np.log1p(around.theta / max(rate, 1e-300))
            excess = sum(share.excess_frames for share in around.shares)
            yield excess * frame, around.work - frame
        for envelope in self.arrivals.envelopes(rate_pps):
            burst = pace_pps = 0.0
            for (most, pace), share in zip(envelope, around.shares, strict=True):
                if share.ratio > 0.0:
                    ratio, excess = (share.ratio, share.excess_frames) if self.arrivals.is_in_order else (1.0, 0.0)
                    burst, pace_pps = burst + ratio * most + excess, pace_pps + ratio * pace
            if self.arrivals.is_staggered and all(share.ratio in {0.0, 1.0} for share in around.shares):
                burst -= sum(share.ratio for share in around.shares) - 1.0
            gap_s = 1.0 / max(pace_pps, 1e-300)
            yield around.theta * (burst - 1.0) * gap_s, around.work - around.theta * gap_s

    def busy_period_s(self, around: _Surroundings, rate_pps: float, rare: float) -> float:
        """Return a time that a busy period of the surroundings exceeds with the chance ``e^-rare`` at most, s."""
        longest_s = math.inf
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for begin, growth in self.arrivals.growth(around.work, around.shares, rate_pps):
                spare = around.theta - growth
                times_s = np.where(spare > 0.0, (begin + rare) / spare, np.inf)
                longest_s = min(longest_s, float(np.nanmin(times_s)))
        return longest_s

    def frames(self, shares: tuple[_Share, ...], rate_pps: float, time_s: float, rare: float) -> float:
        """Return the number of a queue's frames that a time brings, but for the chance ``e^-rare``."""
        if not math.isfinite(time_s):
            return math.inf
        z = np.geomspace(1e-3, 60.0, _GRID)
        most = math.inf
        for begin, growth in self.arrivals.growth(z, shares, rate_pps):
            with np.errstate(over="ignore", invalid="ignore"):
                most = min(most, float(np.nanmin((begin + time_s * growth + rare) / z)))
        if self.arrivals.is_in_order:
            for envelope in self.arrivals.envelopes(rate_pps):
                counted = 0.0
                for (burst, pace_pps), share in zip(envelope, shares, strict=True):
                    counted += share.ratio * (burst + pace_pps * time_s) + share.excess_frames
                most = min(most, counted)
        return most

    def _shares(self, ratio: Vector) -> tuple[_Share, ...]:
        """Return, by port, the share of the frames that count; ``ratio``: that of each stream."""
        graph, flows = self.graph, self.load.flows.flows
        by_port = np.maximum(graph.by_port(graph.share), 1e-300)
        counted = graph.by_port(graph.share * ratio) / by_port
        if len({flow.weight for flow in flows}) > 1:
            return tuple(_Share(ratio=part, excess_frames=0.0) for part in counted.tolist())
        kinds = {task.route.kind for task in graph.tasks}
        number_of = {stream: number for number, stream in enumerate(_streams(self.load, kinds))}
        taken: dict[int, list[int]] = defaultdict(list)
        cycle: dict[int, int] = defaultdict(int)
        for number, flow in enumerate(flows):
            if ratio[number_of[stream_of(flow, number, kinds)]] > 0.0:
                taken[flow.ingress].append(cycle[flow.ingress])
            cycle[flow.ingress] += 1
        # Each split by turns may be one frame ahead of its share.
        in_turn = sum(task.route.kind == "round_robin" for task in graph.tasks) if (ratio % 1.0).any() else 0
        return tuple(
            _Share(
                ratio=part,
                excess_frames=burst_of_cycle(taken[port], cycle[port]) - len(taken[port]) / cycle[port] + in_turn
                if taken[port]
                else 0.0,
            )
            for port, part in enumerate(counted.tolist())
        )

    def _has_work(self, node: int) -> bool:
        if node >= len(self.graph.tasks):
            return True
        task, activation = self.graph.tasks[node], self.graph.tasks[node].activation
        cost = max(task.service.mean_s(size, frequency_hz=1.0) for size in self.load.frames.share_by_bytes)
        waits = activation.interrupt_cost_s + activation.moderation_s
        return bool(task.needs) or task.holds_back or cost + waits > 0.0 or activation.wakeup is not None

    def _neighbours(self) -> list[set[int]]:
        """Return, by node, the nodes that it depends on directly."""
        graph, count = self.graph, len(self.graph.tasks)
        near: list[set[int]] = [set() for _ in range(graph.exit + 1)]
        after: list[set[int]] = [set() for _ in range(graph.exit + 1)]
        index_of = {task.name: index for index, task in enumerate(graph.tasks)}
        for index in range(count - 1, -1, -1):
            for node, fraction in graph.edges[index]:
                if (fraction > 0.0).any():
                    near[node].add(index)
                    after[index] |= {node} | after[node]
                    if graph.tasks[index].holds_back:
                        near[index].add(node)
        for part in components(self.model, graph.tasks):
            members = {index for index, _ in part.members}
            for index in members:
                near[index] |= members
        for index, task in enumerate(graph.tasks):
            if task.thread:
                near[index] |= {other for other in range(count) if graph.tasks[other].thread == task.thread}
            for need in task.needs:
                if need.until:
                    last = index_of[need.until]
                    near[index] |= {node for node in after[index] if node == last or last in after[node]}
        return near

    def _surroundings(self, nodes: frozenset[int], visits: Vector, starving: frozenset[int]) -> _Surroundings | None:
        if nodes & starving:
            return None
        sizes = self.load.frames.share_by_bytes
        working = [node for node in nodes if self._has_work(node)]
        relevant = np.minimum(visits[working].sum(axis=0), 1.0)
        unit_s = max(self._longest(nodes, size, "mean_s") + self._link_s(size) for size in sizes)
        if unit_s <= 0.0 or not math.isfinite(unit_s):
            return None
        theta = np.geomspace(1e-3, 3e2, _GRID) / unit_s
        with np.errstate(over="ignore", invalid="ignore"):
            by_size = np.array([self._log_moments(nodes, size, theta) for size in sizes])
            if self.load.frames.order == "random":
                shares = np.log(np.array([*sizes.values()]) / sum(sizes.values()))
                work = np.logaddexp.reduce(by_size + shares[:, None], axis=0)
            else:
                work = by_size.max(axis=0)
        work = np.where(np.isfinite(work), work, np.inf)
        return _Surroundings(
            nodes=nodes,
            unit_s=unit_s,
            variance_s2=max(self._longest(nodes, size, "variance_s2") for size in sizes),
            theta=theta,
            work=work,
            shares=self._shares(relevant),
            only_work=not any(self._work_at(node, min(sizes)).has_starts for node in nodes),
        )

    def _link_ratio(self, node: int, room_frames: int) -> float:
        """Return a bound of the share of frames that a link's ring loses at any load, because servers space them.

        The m servers before a link hand it m frames at once at most. Of k + 1 frames that come within the k
        transmissions τ of one busy period, ``n = k + 1 - m`` follow on a whole service each, and all these services fit
        into ``kτ`` at their servers: ``P(K > k) <= C(k, m - 1)·E[e^{-θS}]^n·e^{mθkτ}`` over all ways to divide them.
        """
        emitters = self._emitters(node)
        if emitters is None:
            return 1.0
        sizes = self.load.frames.share_by_bytes
        longest_s = 1.0 / line_rate_pps(self.model.ports[node - len(self.graph.tasks)].link_bps, max(sizes))
        servers = sum(count for _, count in emitters)
        if servers > room_frames or not emitters:
            return 1.0 if emitters else 0.0
        frames = np.arange(room_frames, room_frames + _MAX_FRAMES, dtype=np.float64)
        ways = _log_ways(frames, servers - 1)
        theta = np.geomspace(1e-2, 1e4, _GRID) / longest_s
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            each = np.max([_log_moments_of(self._least_service(index), -theta) for index, _ in emitters], axis=0)
            growth = each + servers * theta * longest_s
            spread = servers * longest_s * theta[:, None] * frames
            bound = ways[None, :] + each[:, None] * (frames + 1.0 - servers) + spread
            # Beyond the frames counted, each further one makes the chance smaller by this factor at least.
            factor = growth + np.log1p((servers - 1.0) / (frames[-1] + 2.0 - servers))
            rest = bound[:, -1] + factor - np.log(-np.expm1(np.minimum(factor, -1e-300)))
            total = np.logaddexp(np.logaddexp.reduce(bound, axis=1), rest)
            least = float(np.min(np.where(factor < 0.0, total, np.inf)))
        return math.exp(min(least, 0.0))

    def _emitters(self, node: int) -> list[tuple[int, int]] | None:
        """Return the task units that serve a node's frames last, with their servers; None: some frames come freely."""
        graph, entered = self.graph, set(self.graph.entry)
        emitters: dict[int, int] = {}
        pending, seen = [node], {node}
        while pending:
            place = pending.pop()
            if place in entered:
                return None
            for index in range(len(graph.tasks)):
                if index in seen or not any(to == place and (part > 0.0).any() for to, part in graph.edges[index]):
                    continue
                seen.add(index)
                task = graph.tasks[index]
                if self._least_service(index).average_s > 0.0:
                    emitters[index] = min(
                        (
                            served_at_once(task, max(self.model.pool(need.pool).units // need.units, 1))
                            for need in task.needs
                        ),
                        default=task.parallel,
                    )
                else:
                    pending.append(index)
        return list(emitters.items())

    def _least_service(self, index: int) -> RandomTime:
        """Return the service of the smallest frame at the fastest, as a part of the largest batch."""
        task = self.graph.tasks[index]
        faster = 1.0
        for need in task.needs:
            pool = self.model.pool(need.pool)
            faster *= pool.contention.least_factor(pool.units) / max((1.0, *pool.unit_speed_ratio))
        frequency_hz = self.model.pool(task.needs[0].pool).frequency_hz if task.needs else None
        size = min(self.load.frames.share_by_bytes)
        mean_s = task.service.mean_s(size, frequency_hz=frequency_hz, batch_frames=math.inf) * faster
        return RandomTime(mean_s=mean_s, variation=task.service.variation, scv=task.service.scv)

    def _starving(self) -> frozenset[int]:
        """Return the task units whose units a polling thread may keep, though it has no frames."""
        tasks, starving = self.graph.tasks, set[int]()
        for part in components(self.model, tasks):
            members = {index for index, _ in part.members}
            threads = {tasks[index].thread or tasks[index].name for index in members}
            if len(threads) > 1 and any(tasks[index].activation.kind == "polling" for index in members):
                starving |= members
        return frozenset(starving)

    def _longest(self, nodes: frozenset[int], frame_bytes: int, name: str) -> float:
        """Return the greatest sum of a moment of the work of a frame of a size over a path through these nodes."""
        below: dict[int, float] = {}
        for node in sorted(nodes, reverse=True):
            later = max((below[following] for following in self._following(node, nodes)), default=0.0)
            below[node] = float(getattr(self._work_at(node, frame_bytes), name)) + later
        return max(below.values())

    def _following(self, node: int, nodes: frozenset[int]) -> list[int]:
        """Return the nodes of a set that frames reach next."""
        edges = self.graph.edges[node] if node < len(self.graph.tasks) else ()
        return [following for following, fraction in edges if following in nodes and (fraction > 0.0).any()]

    def _link_s(self, frame_bytes: int) -> float:
        """Return the time that random arrivals may wait for the link before them, a frame, s."""
        if self.load.arrivals.kind != "poisson":
            return 0.0
        return max(1.0 / line_rate_pps(port.link_bps, frame_bytes) for port in self.model.ports)

    def _log_moments(self, nodes: frozenset[int], frame_bytes: int, theta: Vector) -> Vector:
        """Return ``ln E[e^{θS}]`` of a frame of a size, S the work on the longest path through these nodes."""
        below: dict[int, Vector] = {}
        of_work: dict[_Work, Vector] = {}
        most = np.zeros_like(theta)
        for node in sorted(nodes, reverse=True):
            work = self._work_at(node, frame_bytes)
            if work not in of_work:
                of_work[work] = work.log_moments(theta)
            later = np.zeros_like(theta)
            for following in self._following(node, nodes):
                later = np.maximum(later, below[following])
            below[node] = of_work[work] + later
            most = np.maximum(most, below[node])
        return most + theta * self._link_s(frame_bytes)

    def _work_at(self, node: int, frame_bytes: int) -> _Work:
        count = len(self.graph.tasks)
        if node >= count:
            return _Work(constant_s=1.0 / line_rate_pps(self.model.ports[node - count].link_bps, frame_bytes))
        return _work_of(self.graph.tasks[node], self.model, frame_bytes)


def _streams(load: OfferedLoad, kinds: Set[str]) -> list[tuple[int, int, int, int]]:
    return list(dict.fromkeys(stream_of(flow, number, kinds) for number, flow in enumerate(load.flows.flows)))


def _closure(node: int, near: list[set[int]]) -> frozenset[int]:
    reached, pending = {node}, [node]
    while pending:
        for other in near[pending.pop()] - reached:
            reached.add(other)
            pending.append(other)
    return frozenset(reached)


@value
class _Work:
    """The steps of a frame at a node, at the slowest: its service, a start and all switches on its behalf."""

    constant_s: float = field("Starts, switches and waits of constant length, s", default=0.0)
    service: RandomTime = field("Time at work without interruptions", default=RandomTime())
    wakeup: RandomTime | None = field("Wait for a wake-up", default=None)
    slices_ratio: float = field("Time of switches between slices, a second of service", default=0.0)
    interruptions: tuple[tuple[float, RandomTime], ...] = field("Rate per second of work, and duration", default=())
    interrupted_s: float = field("Part of the constant time that may be interrupted, s", default=0.0)
    has_starts: bool = field("Whether a frame may wait for a start of its own", default=False)

    @property
    def mean_s(self) -> float:
        """Mean of all steps, s."""
        stretch = 1.0 + sum(rate_hz * duration.average_s for rate_hz, duration in self.interruptions)
        busy_s = self.service.average_s * (1.0 + self.slices_ratio) + self.interrupted_s
        return self.constant_s + busy_s * stretch + (self.wakeup.average_s if self.wakeup is not None else 0.0)

    @property
    def variance_s2(self) -> float:
        """Variance of all steps, s²."""
        stretch = 1.0 + sum(rate_hz * duration.average_s for rate_hz, duration in self.interruptions)
        service_s, sliced = self.service.average_s, 1.0 + self.slices_ratio
        scatter_s = sum(rate_hz * duration.second_moment_s2 for rate_hz, duration in self.interruptions)
        variance_s2 = self.service.squared_cv * (service_s * sliced * stretch) ** 2
        variance_s2 += (service_s * sliced + self.interrupted_s) * scatter_s
        return variance_s2 + (self.wakeup.squared_cv * self.wakeup.average_s**2 if self.wakeup is not None else 0.0)

    def log_moments(self, theta: Vector) -> Vector:
        """Return ``ln E[e^{θX}]`` of the sum of all steps."""
        worked = theta.copy()
        for rate_hz, duration in self.interruptions:
            worked = worked + rate_hz * np.expm1(_log_moments_of(duration, theta))
        total = _log_moments_of(self.service, worked * (1.0 + self.slices_ratio)) + worked * self.interrupted_s
        total = total + theta * self.constant_s
        return total if self.wakeup is None else total + _log_moments_of(self.wakeup, theta)


def _lost_by_moments(around: _Surroundings, rate_pps: float, room_frames: int) -> float:
    """Return a bound of ``E[(K - n)+]``, K the frames of a busy period of M/G/1 and n the room.

    ``E[K] = 1/(1 - rho)`` and ``Var K = (rho(1 - rho) + λ²E[S²])/(1 - rho)³`` (Takács, Introduction to the Theory of
    Queues, 1962, ch. 1); ``(k - n)+ <= (k - 1)(k - 2)/c`` with the least c of all k.
    """
    load = rate_pps * around.unit_s
    if load >= 1.0 or room_frames < 1:
        return 1.0
    mean = 1.0 / (1.0 - load)
    if room_frames == 1:
        return mean - 1.0
    second_s2 = around.variance_s2 + around.unit_s**2
    square = (load * (1.0 - load) + rate_pps**2 * second_s2) * mean**3 + mean**2
    least = min((k - 1) * (k - 2) / (k - room_frames) for k in range(room_frames + 1, 4 * room_frames + 4))
    return (square - 3.0 * mean + 2.0) / least


def _work_of(task: TaskUnit, model: RouterModel, frame_bytes: int) -> _Work:
    activation = task.activation
    slower, each_s, slices_ratio, exit_s, units = 1.0, 0.0, 0.0, 0.0, 0
    interruptions: list[tuple[float, RandomTime]] = []
    for position, need in enumerate(task.needs):
        pool = model.pool(need.pool)
        slower *= most_contention(pool)
        if pool.unit_speed_ratio:
            speeds = [pool.unit_speed_ratio[unit] for unit in (task.pin if position == 0 else ()) or range(pool.units)]
            slower /= min(*speeds, 1.0)
        turn_s = pool.switch_cost_s + pool.migration_cost_s
        each_s += turn_s
        units += need.units
        if pool.policy.kind in SLICED and pool.policy.quantum_s:
            slices_ratio += turn_s / pool.policy.quantum_s
        if pool.power is not None:
            exit_s += max((state.exit_s for state in pool.power.sleep), default=0.0)
        if pool.interruptions is not None:
            interruptions.append((need.units * pool.interruptions.rate_hz, pool.interruptions.duration))
    frequency_hz = model.pool(task.needs[0].pool).frequency_hz if task.needs else None
    mean_s = task.service.mean_s(frame_bytes, frequency_hz=frequency_hz) * slower
    # A grant turns its units to the task unit, and those that it revokes turn back later; an interrupt is a grant too.
    starts_s = 2.0 * (1 + units) * each_s + activation.interrupt_cost_s
    return _Work(
        constant_s=activation.moderation_s + exit_s,
        service=RandomTime(mean_s=mean_s, variation=task.service.variation, scv=task.service.scv),
        wakeup=activation.wakeup,
        slices_ratio=slices_ratio * slower,
        interruptions=tuple(interruptions),
        interrupted_s=starts_s * slower,
        has_starts=starts_s + exit_s + activation.moderation_s > 0.0 or activation.kind in {"interrupt", "thread"},
    )


def _log_moments_of(time: RandomTime, theta: Vector) -> Vector:
    """Return ``ln E[e^{θX}]`` of a random time; of a log-normal time but for its tail beyond ``1 - 1e-13``."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if time.is_constant:
            return theta * time.average_s
        if time.quantiles_s:
            parts = []
            for low_s, high_s in zip(time.quantiles_s[:-1], time.quantiles_s[1:], strict=True):
                parts.append(theta * low_s + _log_mean_exp(theta * (high_s - low_s)))
            logs: Vector = np.logaddexp.reduce(np.array(parts), axis=0) - math.log(len(parts))
            return logs
        scaled, scv = theta * time.mean_s, time.squared_cv
        if time.variation == "uniform":
            half = math.sqrt(3.0 * scv)
            return scaled * (1.0 - half) + _log_mean_exp(2.0 * half * scaled)
        if time.variation in {"exponential", "gamma"}:
            left = 1.0 - scaled * scv
            return np.where(left > 0.0, -np.log(np.maximum(left, 1e-300)) / scv, np.inf)
        if time.variation == "hyperexponential":
            p = 0.5 * (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0)))
            first, second = 1.0 - scaled / (2.0 * p), 1.0 - scaled / (2.0 * (1.0 - p))
            is_finite = (first > 0.0) & (second > 0.0)
            return np.where(is_finite, np.log(p / first + (1.0 - p) / np.where(second > 0.0, second, 1.0)), np.inf)
        factors, chances = _points(time.squared_cv, above=bool((theta >= 0.0).all()))
        bound: Vector = np.logaddexp.reduce(scaled[None, :] * factors[:, None] + np.log(chances)[:, None], axis=0)
        return bound


def _log_ways(most: Vector, chosen: int) -> Vector:
    """Return the logarithms of the binomial coefficients ``C(n, chosen)``."""
    fixed = math.lgamma(chosen + 1.0)
    return np.array([math.lgamma(n + 1.0) - fixed - math.lgamma(n - chosen + 1.0) for n in most.tolist()])


@lru_cache(maxsize=64)
def _points(scv: float, *, above: bool) -> tuple[Vector, Vector]:
    """Return bounds, above or below, of a log-normal factor of mean 1 by intervals of its distribution; chances."""
    body = np.linspace(1.0, 0.1, _TAIL_POINTS)
    tails = np.concatenate([body, np.geomspace(0.1, _TAIL_RATIO, _TAIL_POINTS)[1:]])
    law = RandomTime(mean_s=1.0, variation="lognormal", scv=scv)
    if not above:
        tails = 1.0 - tails[::-1]
    factors = np.array([law.quantile_s(1.0 - float(tail)) for tail in tails])
    return (factors[1:], tails[:-1] - tails[1:]) if above else (factors[:-1], tails[:-1] - tails[1:])


def _log_mean_exp(width: Vector) -> Vector:
    """Return ``ln E[e^{xU}]`` for U uniform between 0 and 1.

    Examples
    --------
    >>> _log_mean_exp(np.array([0.0, 1.0, 1000.0])).round(4).tolist()
    [0.0, 0.5413, 993.0922]
    """
    size = np.maximum(np.abs(width), 1e-12)
    return np.where(size > 1e-6, np.maximum(width, 0.0) + np.log(-np.expm1(-size) / size), 0.5 * width)
