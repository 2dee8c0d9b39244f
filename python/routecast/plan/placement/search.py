"""The placement that carries most without loss, and the cheapest one that carries enough: found and proven.

Columns (what is on a server) have an upper bound of what they carry before they are predicted. Each round finds the
best placement by these bounds, predicts its servers, and puts the predictions in the place of the bounds. When the best
placement consists of predicted servers only, no other can be better: every other is bounded by as much. The bound is on
what is predicted, over all placements and the ways of pinning that are tried; it says nothing on the prediction itself.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.load.offered import line_rate_pps
from routecast.plan.placement.classes import Classes, Column, TooMany, columns_above
from routecast.plan.placement.feasibility import evenly_arranged
from routecast.plan.placement.mapping import Mapped, neighbours
from routecast.plan.placement.model import Objective, PlacementProblem
from routecast.plan.placement.server_load import ServerLoads
from routecast.plan.placement.server_view import stages_of
from routecast.quantity.schema import field, value

__all__ = ["Found", "Search", "TooManyKinds", "most_by_work"]


# What the cable between two servers carries of the load, by what is on each of them.


def cable_pps(problem: PlacementProblem, classes: Classes, one: Column, other: Column) -> float:
    """Return the load that fills the cable from a server with one column to a server with another."""
    hosts = classes.hosts
    here, there = classes.by_group(one.counts), classes.by_group(other.counts)
    share_pps = 0.0
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        ours, theirs = (stages_of(problem, chain, share, counts) for counts in (here, there))
        for j in range(len(chain.stages) - 1):
            sent = ours[j].here * ours[j].arrival * ours[j].to_elsewhere
            taken = theirs[j + 1].here * theirs[j + 1].from_elsewhere
            if sent <= 0.0 or taken <= 0.0:
                continue
            if problem.balancing == "local" and chain.returns:
                edge = problem.element(chain.stages[0])
                others = max(edge.count * edge.ports - 1, 1)
                share_pps += share * here[edge.name] / edge.count * there[edge.name] * edge.ports / others
            else:
                share_pps += ours[j].here * ours[j].arrival * theirs[j + 1].here * ours[j].to_each
    rate_bps = problem.joined.cable_bps(hosts[one.host].group.name, hosts[other.host].group.name)
    frame = problem.frames.mean_bytes
    return line_rate_pps(rate_bps, frame) / share_pps if share_pps > 0.0 else math.inf


# A local search for too many different elements for the exact one: moves and exchanges at the bottleneck.


def improved(
    problem: PlacementProblem,
    classes: Classes,
    loads: ServerLoads,
    start: Mapped,
    *,
    value_of: Callable[[Mapped], float],
    left_s: Callable[[], float],
    told: Callable[[float], None],
) -> tuple[float, Mapped]:
    """Return a mapping that no move and no exchange makes better, or the best until the time is over.

    A neighbour is predicted only if the servers that it changes could carry more than the bottleneck does. Where
    several servers are the bottleneck, fewer of them count as better.
    """

    def host_of(column: Column) -> str:
        return classes.hosts[column.host].group.name

    def at_most(column: Column) -> float:
        return loads.at_most_pps(host_of(column), classes.by_group(column.counts))

    def carried(column: Column) -> float:
        return loads.carries(host_of(column), classes.by_group(column.counts)).capacity_pps

    def rank(mapping: Mapped) -> tuple[float, int]:
        value = value_of(mapping)
        full = sum(n for column, n in mapping if carried(column) <= value * (1.0 + 1e-9))
        return value, -full

    best, best_rank = start, rank(start)
    told(best_rank[0])
    while left_s() > 0.0:
        before = best
        known = dict(best)
        for mapping in neighbours(problem, classes, best):
            if left_s() <= 0.0:
                break
            new = [column for column, number in mapping if number > known.get(column, 0)]
            gone = [column for column, number in known.items() if number > dict(mapping).get(column, 0)]
            at_bottleneck = any(carried(column) <= best_rank[0] * (1.0 + 1e-9) for column in gone)
            if not at_bottleneck or min(at_most(column) for column in new) <= best_rank[0]:
                continue
            now = rank(mapping)
            if now > best_rank and (now[0] > best_rank[0] * (1.0 + 1e-9) or now[1] > best_rank[1]):
                best, best_rank = mapping, now
                told(best_rank[0])
                break
        if best is before:
            break
    return best_rank[0], best


# What a search for a mapping found, and what bounds every search.


class TooManyKinds(RoutecastError):
    """So many elements differ that what may be on a server cannot be listed.

    Attributes
    ----------
    name : str
        What should be placed.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name}: too many elements differ to look for the fewest servers, watts or the least price:"
            " give servers fewer slots, let elements of one kind be one element with a count, or ask for the most"
            " throughput"
        )


@value
class Found:
    """The best mapping."""

    servers: tuple[tuple[Column, int], ...] = field("What is on how many servers")
    value: float = field("What is maximised or minimised")
    bound: float = field("No mapping is better than that")
    seconds: float = 0.0
    is_interrupted: bool = False

    @property
    def gap_ratio(self) -> float:
        """How far from the best the mapping can be, as part of it."""
        if self.value == self.bound:
            return 0.0
        low, high = sorted((self.value, self.bound))
        return high / low - 1.0 if low > 0.0 else math.inf


def most_by_work(problem: PlacementProblem, loads: ServerLoads) -> float:
    """Return a load that no placement goes beyond: the least work of all elements over all cores at their fastest."""
    cores = sum(loads.cores(host.name) * host.number for host in problem.servers)
    total = sum(
        group.count * min(loads.work(host.name, group.name).total_s for host in problem.servers)
        for group in problem.elements
    )
    ports = [
        line_rate_pps(problem.outer_bps, problem.frames.mean_bytes) * group.count * group.ports / share
        for chain, share in zip(problem.chains, problem.shares, strict=True)
        for group in (problem.element(chain.stages[0]), problem.element(chain.stages[-1]))
    ]
    return min([cores / total if total > 0.0 else math.inf, *ports]) * (1.0 + 1e-9)


# Which columns together are a placement: every element once, no more servers than there are (HiGHS).
#
# The variables are how many servers of a class carry a column, so like servers and like elements are no different
# solutions. Cables between servers forbid pairs of columns at loads that these would overload; such pairs are found
# when
# a solution has one, and forbidden from then on.


Chosen = dict[int, int]
"""How many servers carry which column, by its number."""
Pair = tuple[int, int]
Vector = NDArray[np.float64]


class Undecided(Exception):
    """Time was over before it was known whether there is a placement."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Cover:
    """Programs over the same columns.

    Parameters
    ----------
    classes : Classes
    columns : sequence of Column
    most_servers : int or None
    pair_pps : callable or None
        The load at which servers with two columns overload the cable between them, first to second.
    """

    classes: Classes
    columns: Sequence[Column]
    most_servers: int | None = None
    pair_pps: Callable[[Column, Column], float] | None = None
    pairs: dict[Pair, float] = dataclasses.field(default_factory=dict)
    solved: int = 0
    _number: dict[Column, int] = dataclasses.field(default_factory=dict)

    def least(
        self,
        allowed: NDArray[np.bool_],
        cost: Vector,
        rate_pps: float,
        *,
        seconds: float,
        extra: tuple[Vector, float] | None = None,
    ) -> tuple[Chosen, float] | None:
        """Return the cheapest placement of allowed columns at a load, and a cost that none is below; None if none is.

        Parameters
        ----------
        allowed : array of bool
            By column.
        cost : array
            Of a server with the column.
        rate_pps : float
            Load that cables must carry.
        seconds : float
        extra : (array, float), optional
            A further amount by column, and what it may come to in all.

        Raises
        ------
        Undecided
            The time did not suffice.
        """
        until_s = time.perf_counter() + seconds
        while True:
            found = self._solve(allowed, cost, rate_pps, until_s - time.perf_counter(), extra)
            if found is None or self.pairs_pps(found[0]) >= rate_pps * (1.0 - 1e-12):
                return found

    def any(
        self, allowed: NDArray[np.bool_], preferred: NDArray[np.bool_], rate_pps: float, *, seconds: float
    ) -> Chosen | None:
        """Return a placement of allowed columns at a load, of preferred ones if there is one; None if there is none.

        Where columns with fewer elements are allowed too, only the fullest ones need be looked at: what they have too
        much is left out afterwards.

        Raises
        ------
        Undecided
            The time did not suffice.
        """
        cost = (~preferred).astype(float)
        until_s = time.perf_counter() + seconds
        if not any(limit < rate_pps for limit in self.pairs.values()):
            found = self._solve(self._fullest(allowed), cost, rate_pps, seconds, None, covers=True)
            if found is None:
                return None
            trimmed = self._trimmed(found[0], allowed, preferred)
            if trimmed is not None and self.pairs_pps(trimmed) >= rate_pps * (1.0 - 1e-12):
                return trimmed
        answer = self.least(allowed, cost, rate_pps, seconds=until_s - time.perf_counter())
        return None if answer is None else answer[0]

    def pairs_pps(self, chosen: Mapping[int, int]) -> float:
        """Return the load that the cables between the servers of a placement carry."""
        if self.pair_pps is None:
            return math.inf
        best = math.inf
        for one in chosen:
            for other in chosen:
                if one != other or chosen[one] > 1:
                    if (one, other) not in self.pairs:
                        self.pairs[one, other] = self.pair_pps(self.columns[one], self.columns[other])
                    best = min(best, self.pairs[one, other])
        return best

    def _fullest(self, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the allowed columns that are part of no other allowed one."""
        kept = np.zeros_like(allowed)
        listed: list[int] = np.flatnonzero(allowed).tolist()
        for host in range(len(self.classes.hosts)):
            mine = np.array([number for number in listed if self.columns[number].host == host], dtype=np.intp)
            if not mine.size:
                continue
            counts = np.array([self.columns[number].counts for number in mine])
            mine = mine[np.argsort(-counts.sum(axis=1), kind="stable")]
            counts = np.array([self.columns[number].counts for number in mine])
            above = np.zeros((0, counts.shape[1]), dtype=counts.dtype)
            for row, number in zip(counts, mine, strict=True):
                if not (above >= row).all(axis=1).any():
                    above = np.vstack([above, row])
                    kept[number] = True
        return kept

    def _trimmed(self, chosen: Chosen, allowed: NDArray[np.bool_], preferred: NDArray[np.bool_]) -> Chosen | None:
        """Return a placement without what its columns have too much; None where that is not found."""
        if not self._number:
            self._number = {column: number for number, column in enumerate(self.columns)}
        servers = [self.columns[one] for one, number in chosen.items() for _ in range(number)]
        for k, every in enumerate(self.classes.counts):
            surplus = sum(column.counts[k] for column in servers) - every
            while surplus > 0:
                less = []
                for at, column in enumerate(servers):
                    if column.counts[k]:
                        counts = tuple(n - (i == k) for i, n in enumerate(column.counts))
                        number = self._number.get(Column(host=column.host, counts=counts), -1)
                        if not any(counts) or (number >= 0 and allowed[number]):
                            is_known = number < 0 or preferred[number]
                            less.append((is_known, sum(counts), at, Column(host=column.host, counts=counts)))
                if not less:
                    return None
                _, _, at, column = max(less, key=lambda one: one[:3])
                servers[at] = column
                surplus -= 1
        answer: Chosen = {}
        for column in servers:
            if any(column.counts):
                answer[self._number[column]] = answer.get(self._number[column], 0) + 1
        return answer

    def _solve(
        self,
        allowed: NDArray[np.bool_],
        cost: Vector,
        rate_pps: float,
        seconds: float,
        extra: tuple[Vector, float] | None,
        *,
        covers: bool = False,
    ) -> tuple[Chosen, float] | None:
        chosen: list[int] = np.flatnonzero(allowed).tolist()
        place = {column: number for number, column in enumerate(chosen)}
        bad = [
            (place[one], place[other])
            for (one, other), limit in self.pairs.items()
            if limit < rate_pps * (1.0 - 1e-12) and one in place and other in place
        ]
        model = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
        model.silent()
        model.setOptionValue("threads", 1)
        model.setOptionValue("time_limit", max(seconds, 0.05))
        model.setOptionValue("mip_rel_gap", 0.0)
        hosts, classes = self.classes.hosts, self.classes.alike
        columns = [self.columns[one] for one in chosen]
        flags = sorted({one for pair in bad for one in pair})
        number = len(columns)
        lp = highspy.HighsLp()
        lp.num_col_ = number + len(flags)
        lp.col_cost_ = np.concatenate([cost[chosen], np.zeros(len(flags))])
        lp.col_lower_ = np.zeros(lp.num_col_)
        upper = [float(len(hosts[column.host].names)) for column in columns]
        lp.col_upper_ = np.array([*upper, *(1.0 for _ in flags)])
        rows: list[tuple[list[int], list[float], float, float]] = []
        for k, alike in enumerate(classes):
            at = [i for i, column in enumerate(columns) if column.counts[k]]
            every = float(len(alike.names))
            rows.append((at, [float(columns[i].counts[k]) for i in at], every, math.inf if covers else every))
        for h, host in enumerate(hosts):
            at = [i for i, column in enumerate(columns) if column.host == h]
            rows.append((at, [1.0] * len(at), 0.0, float(len(host.names))))
        if self.most_servers is not None:
            rows.append((list(range(number)), [1.0] * number, 0.0, float(self.most_servers)))
        if extra is not None:
            rows.append((list(range(number)), extra[0][chosen].tolist(), -math.inf, extra[1]))
        flag = {column: number + i for i, column in enumerate(flags)}
        for one in flags:
            rows.append(([one, flag[one]], [1.0, -upper[one]], -math.inf, 0.0))
        for one, other in bad:
            if one == other:
                rows.append(([one], [1.0], 0.0, 1.0))
            else:
                rows.append(([flag[one], flag[other]], [1.0, 1.0], 0.0, 1.0))
        if any(low > 0.0 and not at for at, _, low, _ in rows):
            return None
        lp.num_row_ = len(rows)
        lp.row_lower_ = np.array([low for _, _, low, _ in rows])
        lp.row_upper_ = np.array([high for _, _, _, high in rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_col_ = lp.num_col_
        lp.a_matrix_.num_row_ = lp.num_row_
        lp.a_matrix_.start_ = np.cumsum([0, *(len(at) for at, _, _, _ in rows)])
        lp.a_matrix_.index_ = np.array([i for at, _, _, _ in rows for i in at], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([v for _, values, _, _ in rows for v in values])
        lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
        model.passModel(lp)
        self.solved += 1
        model.run()
        status = model.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise Undecided
        values = model.getSolution().col_value[:number]
        answer = {chosen[i]: round(value) for i, value in enumerate(values) if value > 0.5}
        return answer, float(model.getInfo().mip_dual_bound)


_LEVELS = (0.92, 0.82, 0.7, 0.55, 0.4, 0.2, 0.05, 0.0)
"""Columns that carry less than this part of what the work alone allows are left out at first: a placement that needs
none of them and is at least as good proves that they are not needed."""
_MOST_COLUMNS = 12_000
_LISTING = 0.3
"""Part of the time that listing columns may take."""
_PROGRAM_S = 2.0
"""Longest time for a single program: whether there is a placement for a load is left open then."""

Told = Callable[[float, float], None]


@dataclasses.dataclass(slots=True, kw_only=True)
class Search:
    """Searches for one problem; what they predict is shared.

    Parameters
    ----------
    problem : PlacementProblem
    classes : Classes
    loads : ServerLoads
    told : callable or None
        Told the best value and the bound, from time to time.
    """

    problem: PlacementProblem
    classes: Classes
    loads: ServerLoads
    told: Told | None = None
    columns: list[Column] = dataclasses.field(default_factory=list)
    cover: Cover | None = None
    high: NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.zeros(0))
    exact: NDArray[np.bool_] = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=bool))
    begin_s: float = dataclasses.field(default_factory=time.perf_counter)
    best: tuple[float, Chosen] | None = None
    bound: float = math.inf

    @property
    def left_s(self) -> float:
        """Time that is left."""
        return self.problem.goal.seconds - (time.perf_counter() - self.begin_s)

    def most_lossless(self) -> Found | None:
        """Return the mapping of the greatest load without overload; None if there is no mapping."""
        top = most_by_work(self.problem, self.loads)
        self.bound = top
        is_interrupted = False
        try:
            for level in _LEVELS:
                if not self._list(level * top):
                    return self._near()
                done = self._raise_to_best(level * top)
                if done or level == 0.0:
                    break
        except KeyboardInterrupt:
            is_interrupted = True
            if self.best is None:
                return self._near(is_interrupted=True)
        if self.best is None:
            # No mapping at all, or none found in time.
            return self._near() if self.left_s <= 0.0 else None
        return self._found(self.best[1], self.best[0], max(self.bound, self.best[0]), is_interrupted)

    def _near(self, *, is_interrupted: bool = False) -> Found | None:
        """Return a mapping that no move makes better, where there are too many columns for more."""
        start = evenly_arranged(self.problem, self.loads)
        if start is None:
            return None
        value, best = self.value_of(start) or 0.0, start
        more_s = 0.0 if is_interrupted else max(self.left_s, 0.3 * self.problem.goal.seconds)
        until_s = time.perf_counter() + more_s

        def told(now: float) -> None:
            if self.told:
                self.told(now, self.bound)

        try:
            value, best = improved(
                self.problem,
                self.classes,
                self.loads,
                start,
                value_of=lambda mapping: self.value_of(mapping) or 0.0,
                left_s=lambda: until_s - time.perf_counter(),
                told=told,
            )
        except KeyboardInterrupt:
            is_interrupted = True
        return Found(
            servers=best,
            value=value,
            bound=max(self.bound, value),
            seconds=time.perf_counter() - self.begin_s,
            is_interrupted=is_interrupted,
        )

    def cheapest(self, objective: Objective, rate_pps: float, *, latency_s: float | None = None) -> Found | None:
        """Return the mapping of least cost that carries a load without overload; None if none does.

        Parameters
        ----------
        objective : {"servers", "watts", "price"}
        rate_pps : float
        latency_s : float, optional
            What the mean times that frames are on servers may come to.
        """
        self.best = None
        if not self._list(rate_pps):
            raise TooManyKinds(self.problem.name)
        assert self.cover is not None
        cost = np.array([self._cost(objective, column, rate_pps) for column in range(len(self.columns))])
        late_s = np.zeros(len(self.columns))
        known = np.zeros(len(self.columns), dtype=bool)
        bound, is_interrupted = 0.0, False
        try:
            while True:
                extra = None if latency_s is None else (late_s, latency_s)
                try:
                    found = self.cover.least(
                        self.high >= rate_pps * (1.0 - 1e-9), cost, rate_pps, seconds=max(self.left_s, 0.2), extra=extra
                    )
                except Undecided:
                    break
                if found is None:
                    break
                chosen, bound = found[0], max(bound, found[1])
                new = [column for column in chosen if not known[column]]
                for column in new:
                    known[column] = True
                    self._predict(column)
                    if self.high[column] >= rate_pps * (1.0 - 1e-9):
                        cost[column] = self._cost(objective, column, rate_pps, is_exact=True)
                        late_s[column] = self._late_s(column, rate_pps) if latency_s is not None else 0.0
                holds = self.carries(chosen) >= rate_pps * (1.0 - 1e-9)
                value = sum(cost[column] * number for column, number in chosen.items())
                if latency_s is not None:
                    holds &= sum(late_s[one] * number for one, number in chosen.items()) <= latency_s * (1 + 1e-9)
                if holds and (self.best is None or value < self.best[0]):
                    self.best = (float(value), chosen)
                if self.told and self.best:
                    self.told(self.best[0], bound)
                if not new or self.left_s <= 0.0:
                    break
        except KeyboardInterrupt:
            is_interrupted = True
            if self.best is None:
                raise
        if self.best is None:
            return None
        return self._found(self.best[1], self.best[0], min(bound, self.best[0]), is_interrupted)

    def _cost(self, objective: Objective, column: int, rate_pps: float, *, is_exact: bool = False) -> float:
        one = self.columns[column]
        group = self.classes.hosts[one.host].group
        if objective == "price":
            return group.price
        if objective != "watts":
            return 1.0
        here = self.classes.by_group(one.counts)
        if is_exact:
            return self.loads.watts(group.name, here, rate_pps)
        busy = self.loads.busy_at_least(group.name, here, rate_pps)
        return group.idle_w + (group.busy_w - group.idle_w) * min(busy / group.cores, 1.0)

    def _late_s(self, column: int, rate_pps: float) -> float:
        """Return the mean time that a frame of the whole load is on a server; 0 where it is not known."""
        one = self.columns[column]
        host = self.classes.hosts[one.host].group.name
        found = self.loads.at(host, self.classes.by_group(one.counts), rate_pps)
        if found is None or not math.isfinite(found.latency_s):
            return 0.0
        return found.latency_s * found.offered_pps / rate_pps

    def carries(self, chosen: Chosen) -> float:
        """Return what a mapping carries, predicting its servers."""
        assert self.cover is not None
        for column in chosen:
            self._predict(column)
        return min(self.cover.pairs_pps(chosen), *(float(self.high[column]) for column in chosen))

    def value_of(self, mapping: Mapped) -> float | None:
        """Return the objective's value of a mapping; None if it misses the target."""
        goal, hosts, by_group = self.problem.goal, self.classes.hosts, self.classes.by_group
        servers = [(hosts[column.host].group, by_group(column.counts), n) for column, n in mapping]
        carried = [self.loads.carries(host.name, here).capacity_pps for host, here, _ in servers]
        if self.problem.joined.by == "cables":
            carried += [
                self._cable_pps(one, other)
                for one, number in mapping
                for other, _ in mapping
                if one != other or number > 1
            ]
        if goal.objective == "throughput":
            return min(carried)
        rate_pps = goal.target_pps or self.problem.offered_pps
        if min(carried) < rate_pps * (1.0 - 1e-9):
            return None
        if goal.objective == "servers":
            return float(sum(number for _, number in mapping))
        if goal.objective == "price":
            return sum(host.price * n for host, _, n in servers)
        return sum(self.loads.watts(host.name, here, rate_pps) * n for host, here, n in servers)

    def _found(self, chosen: Chosen, value: float, bound: float, is_interrupted: bool) -> Found:
        return Found(
            servers=tuple((self.columns[one], number) for one, number in sorted(chosen.items())),
            value=value,
            bound=bound,
            seconds=time.perf_counter() - self.begin_s,
            is_interrupted=is_interrupted,
        )

    def _list(self, least_pps: float) -> bool:
        """List the columns that may carry so much; return whether they could be."""
        try:
            columns = columns_above(
                self.problem,
                self.classes,
                self.loads,
                least_pps,
                most=_MOST_COLUMNS,
                seconds=_LISTING * self.problem.goal.seconds,
            )
        except TooMany:
            return False
        known = {column: number for number, column in enumerate(self.columns)}
        more = [column for column in columns if column not in known]
        hosts, classes = self.classes.hosts, self.classes
        high = [
            self.loads.at_most_pps(hosts[column.host].group.name, classes.by_group(column.counts)) for column in more
        ]
        self.columns += more
        self.high = np.concatenate([self.high, np.array(high)])
        self.exact = np.concatenate([self.exact, np.zeros(len(more), dtype=bool)])
        pairs = self.cover.pairs if self.cover else {}
        self.cover = Cover(
            classes=classes,
            columns=self.columns,
            most_servers=self.problem.rules.most_servers,
            pair_pps=self._cable_pps if self.problem.joined.by == "cables" else None,
            pairs=pairs,
        )
        return True

    def _raise_to_best(self, least_pps: float) -> bool:
        """Search among the columns listed; return whether the best of all is found or time is over."""
        assert self.cover is not None
        last, goal = self.bound, self.problem.goal
        while True:
            top, chosen = self._by_bounds(last)
            # Nothing beyond ``top`` is possible with these columns, and what is not listed carries less than least_pps.
            last = min(last, top)
            self.bound = min(self.bound, max(last, least_pps, self.best[0] if self.best else 0.0))
            if chosen is None:
                return self.left_s <= 0.0 or (self.best is not None and self.best[0] >= least_pps)
            new = [column for column in chosen if not self.exact[column]]
            value = self.carries(chosen)
            if self.best is None or value > self.best[0]:
                self.best = (value, chosen)
            if self.told:
                self.told(self.best[0], self.bound)
            if self.best[0] * (1.0 + goal.gap_ratio + 1e-12) >= self.bound:
                return True
            if self.left_s <= 0.0 or (not new and value < top * (1.0 - 1e-12)):
                return True
            if not new:
                return self.best[0] >= least_pps

    def _by_bounds(self, last: float) -> tuple[float, Chosen | None]:
        """Return a load that no mapping goes beyond, by the bounds of its columns, and the mapping that comes nearest.

        The two belong together where the time sufficed; where it did not, the mapping carries less.
        """
        assert self.cover is not None
        while True:
            values = self._steps(last)
            low, high = 0, len(values)  # the first value, from the greatest on, with a mapping
            surely = 0  # values before this one have none for sure
            best: Chosen | None = None
            while low < high:
                middle = (low + high) // 2 if best or low else 0
                try:
                    chosen = self._at_least(values[middle])
                except Undecided:
                    low = middle + 1
                    if self.left_s <= 0.0:
                        break
                    continue
                if chosen is None:
                    surely = max(surely, middle + 1)
                    low = middle + 1
                else:
                    best, high = chosen, middle
            top = values[surely] if surely < len(values) else 0.0
            # Cables that were looked at meanwhile may let through loads between two of the values.
            over = values[surely - 1] if surely else math.inf
            if self.left_s <= 0.0 or not any(top < one < over for one in self._steps(last)):
                return top, best

    def _steps(self, last: float) -> list[float]:
        """Return the loads at which the answer may change, the greatest first."""
        assert self.cover is not None
        floor = self.best[0] if self.best else 0.0
        levels = {min(float(one), last) for one in self.high}
        levels |= {one for one in self.cover.pairs.values() if math.isfinite(one)}
        return sorted((one for one in levels if floor <= one <= last and math.isfinite(one)), reverse=True)

    def _at_least(self, rate_pps: float) -> Chosen | None:
        assert self.cover is not None
        allowed = self.high >= rate_pps * (1.0 - 1e-12)
        # Of several placements one with servers that are predicted already: if all are, it is the answer.
        seconds = min(max(self.left_s, 0.2), _PROGRAM_S)
        return self.cover.any(allowed, self.exact, rate_pps, seconds=seconds)

    def _predict(self, column: int) -> None:
        if not self.exact[column]:
            one = self.columns[column]
            host = self.classes.hosts[one.host].group.name
            found = self.loads.carries(host, self.classes.by_group(one.counts))
            self.high[column] = found.capacity_pps
            self.exact[column] = True

    def _cable_pps(self, one: Column, other: Column) -> float:
        return cable_pps(self.problem, self.classes, one, other)
