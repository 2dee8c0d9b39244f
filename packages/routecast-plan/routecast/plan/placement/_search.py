"""Searches the candidate of greatest load without loss, and the cheapest candidate for a load, with proven bounds.

Each pattern has an upper bound on its load before it is predicted. Each round finds the best candidate by these bounds,
predicts its servers, and replaces the bounds by the predictions. When all servers of the best candidate are predicted,
no other candidate is better, because its bound is not greater. The bound holds for the prediction, over all candidates
and the ways of pinning that the search tries; it does not cover errors of the prediction.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.load.offered import line_rate_pps
from routecast.plan._integer_program import IntegerProgram, Undecided
from routecast.plan.placement._candidates import (
    Candidate,
    Classes,
    Pattern,
    TooManyPatterns,
    moved,
    neighbours,
    patterns_above,
)
from routecast.plan.placement._feasibility import even_candidate
from routecast.plan.placement._server_load import ServerLoads
from routecast.plan.placement._server_view import stages_of
from routecast.plan.placement.model import Objective, PlacementProblem
from routecast.quantity.schema import field, value


def cable_capacity_pps(classes: Classes, first: Pattern, second: Pattern) -> float:
    """Return the load that fills the cable from a server with one pattern to a server with another, frames/s."""
    problem = classes.problem
    (sender, sender_counts), (receiver, receiver_counts) = classes.content(first), classes.content(second)
    cable_share = 0.0
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        sender_stages, receiver_stages = (
            stages_of(problem, chain, share, counts) for counts in (sender_counts, receiver_counts)
        )
        for j in range(len(chain.stages) - 1):
            sent = sender_stages[j].count * sender_stages[j].arrival * sender_stages[j].to_elsewhere
            taken = receiver_stages[j + 1].count * receiver_stages[j + 1].from_elsewhere
            if sent <= 0.0 or taken <= 0.0:
                continue
            if problem.balancing == "local" and chain.returns:
                edge = problem.element(chain.stages[0])
                others = max(edge.count * edge.ports - 1, 1)
                cable_share += (
                    share * sender_counts[edge.name] / edge.count * receiver_counts[edge.name] * edge.ports / others
                )
            else:
                cable_share += (
                    sender_stages[j].count
                    * sender_stages[j].arrival
                    * receiver_stages[j + 1].count
                    * sender_stages[j].to_each
                )
    rate_pps = line_rate_pps(problem.interconnect.cable_bps(sender, receiver), problem.frames.mean_bytes)
    return rate_pps / cable_share if cable_share > 0.0 else math.inf


def improved_candidates(
    classes: Classes,
    loads: ServerLoads,
    start: Candidate,
    *,
    lossless_pps: Callable[[Candidate], float],
    left_s: Callable[[], float],
) -> Iterator[tuple[float, Candidate]]:
    """Yield ``start`` and ever better candidates, each with its load, until no move and no exchange improves the last.

    This local search replaces the exact one where too many elements differ; it also ends when the time is over. It
    predicts a neighbour only if the changed servers could carry more than the bottleneck. Among candidates of equal
    load, the one with fewer bottlenecks is better.
    """

    def capacity_pps(pattern: Pattern) -> float:
        return loads.capacity(*classes.content(pattern)).capacity_pps

    def rank(candidate: Candidate) -> tuple[float, int]:
        load_pps = lossless_pps(candidate)
        return load_pps, sum(n for pattern, n in candidate if capacity_pps(pattern) <= load_pps * (1.0 + 1e-9))

    best, (best_pps, bottlenecks) = start, rank(start)
    yield best_pps, best
    untried = neighbours(classes, best)
    while left_s() > 0.0 and (candidate := next(untried, None)):
        before, after = dict(best), dict(candidate)
        new = [pattern for pattern, number in after.items() if number > before.get(pattern, 0)]
        gone = [pattern for pattern, number in before.items() if number > after.get(pattern, 0)]
        at_bottleneck = any(capacity_pps(pattern) <= best_pps * (1.0 + 1e-9) for pattern in gone)
        if not at_bottleneck or min(loads.bound_pps(*classes.content(pattern)) for pattern in new) <= best_pps:
            continue
        load_pps, full = rank(candidate)
        if load_pps > best_pps * (1.0 + 1e-9) or (load_pps >= best_pps and full < bottlenecks):
            best, best_pps, bottlenecks = candidate, load_pps, full
            yield best_pps, best
            untried = neighbours(classes, best)


class TooManyElementClasses(RoutecastError):
    """Too many elements differ to list all patterns of a server."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name}: too many different elements to minimise servers, watts or price: give servers fewer slots,"
            " merge equal elements into an element with a count, or set the objective to throughput"
        )


@value
class SearchResult:
    """The best candidate."""

    candidate: Candidate
    value: float = field("Value of the objective")
    bound: float = field("Bound on the value of any candidate")
    seconds: float = 0.0
    is_interrupted: bool = False


def work_bound_pps(problem: PlacementProblem, loads: ServerLoads) -> float:
    """Return a load that no placement exceeds, frames/s: the least work of all elements on all cores, and the ports."""
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


PatternCounts = dict[int, int]
"""Number of servers with each pattern, by the number of the pattern."""
Pair = tuple[int, int]
Vector = NDArray[np.float64]


@dataclasses.dataclass(slots=True, kw_only=True)
class PatternCover:
    """Integer programs (HiGHS) that select patterns which hold every element exactly once on the available servers.

    The variables are the numbers of servers with each pattern, so equal servers and equal elements give no equivalent
    solutions. ``pair_pps`` returns the load at which servers with two patterns overload the cable from the first to the
    second. The program forbids such a pair after the first solution that has it.
    """

    classes: Classes
    patterns: Sequence[Pattern]
    most_servers: int | None = None
    pair_pps: Callable[[Pattern, Pattern], float] | None = None
    pairs: dict[Pair, float] = dataclasses.field(default_factory=dict)
    solved: int = 0
    _number: dict[Pattern, int] = dataclasses.field(default_factory=dict)

    def least(
        self,
        allowed: NDArray[np.bool_],
        cost: Vector,
        rate_pps: float,
        *,
        seconds: float,
        extra: tuple[Vector, float] | None = None,
    ) -> tuple[PatternCounts, float] | None:
        """Return the cheapest cover by allowed patterns at a load, and a lower bound on its cost; None without one.

        ``allowed`` and ``cost`` (of a server) are by pattern. ``extra`` is a further amount by pattern and its greatest
        sum. Raises Undecided after ``seconds``.
        """
        until_s = time.perf_counter() + seconds
        while True:
            answer = self._solve(allowed, cost, rate_pps, until_s - time.perf_counter(), extra)
            if answer is None or self.pairs_pps(answer[0]) >= rate_pps * (1.0 - 1e-12):
                return answer

    def any(
        self, allowed: NDArray[np.bool_], preferred: NDArray[np.bool_], rate_pps: float, *, seconds: float
    ) -> PatternCounts | None:
        """Return a cover of allowed patterns at a load, of preferred ones if possible; None if there is none.

        Only the fullest patterns are tried where those with fewer elements are allowed too; surplus elements are
        removed afterwards. Raises Undecided after ``seconds``.
        """
        cost = (~preferred).astype(float)
        until_s = time.perf_counter() + seconds
        if not any(limit < rate_pps for limit in self.pairs.values()):
            cover = self._solve(self._fullest(allowed), cost, rate_pps, seconds, None, covers=True)
            if cover is None:
                return None
            trimmed = self._trimmed(cover[0], allowed, preferred)
            if trimmed is not None and self.pairs_pps(trimmed) >= rate_pps * (1.0 - 1e-12):
                return trimmed
        answer = self.least(allowed, cost, rate_pps, seconds=until_s - time.perf_counter())
        return None if answer is None else answer[0]

    def pairs_pps(self, chosen: Mapping[int, int]) -> float:
        """Return the load that the cables between the chosen servers carry."""
        if self.pair_pps is None:
            return math.inf
        pairs = [pair for pair in itertools.product(chosen, chosen) if pair[0] != pair[1] or chosen[pair[0]] > 1]
        for first, second in pairs:
            if (first, second) not in self.pairs:
                self.pairs[first, second] = self.pair_pps(self.patterns[first], self.patterns[second])
        return min((self.pairs[pair] for pair in pairs), default=math.inf)

    def _fullest(self, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the allowed patterns that no other allowed pattern contains."""
        is_fullest = np.zeros_like(allowed)
        listed: list[int] = np.flatnonzero(allowed).tolist()
        for host in range(len(self.classes.hosts)):
            host_patterns = np.array([number for number in listed if self.patterns[number].host == host], dtype=np.intp)
            if not host_patterns.size:
                continue
            counts = np.array([self.patterns[number].counts for number in host_patterns])
            order = np.argsort(-counts.sum(axis=1), kind="stable")
            host_patterns, counts = host_patterns[order], counts[order]
            fuller = np.zeros((0, counts.shape[1]), dtype=counts.dtype)
            for row, number in zip(counts, host_patterns, strict=True):
                if not (fuller >= row).all(axis=1).any():
                    fuller = np.vstack([fuller, row])
                    is_fullest[number] = True
        return is_fullest

    def _trimmed(
        self, chosen: PatternCounts, allowed: NDArray[np.bool_], preferred: NDArray[np.bool_]
    ) -> PatternCounts | None:
        """Return a cover without its surplus elements; None if none is found."""
        if not self._number:
            self._number = {pattern: number for number, pattern in enumerate(self.patterns)}
        servers = [self.patterns[pattern] for pattern, number in chosen.items() for _ in range(number)]
        for k, total in enumerate(self.classes.counts):
            for _ in range(sum(pattern.counts[k] for pattern in servers) - total):
                options = []
                for position, pattern in enumerate(servers):
                    if pattern.counts[k]:
                        smaller = moved(pattern, k, -1)
                        number = self._number.get(smaller, -1)
                        if not any(smaller.counts) or (number >= 0 and allowed[number]):
                            is_preferred = number < 0 or preferred[number]
                            options.append((is_preferred, sum(smaller.counts), position, smaller))
                if not options:
                    return None
                _, _, position, pattern = max(options, key=lambda option: option[:3])
                servers[position] = pattern
        return dict(Counter(self._number[pattern] for pattern in servers if any(pattern.counts)))

    def _solve(
        self,
        allowed: NDArray[np.bool_],
        cost: Vector,
        rate_pps: float,
        seconds: float,
        extra: tuple[Vector, float] | None,
        *,
        covers: bool = False,
    ) -> tuple[PatternCounts, float] | None:
        chosen: list[int] = np.flatnonzero(allowed).tolist()
        column_of = {pattern: column for column, pattern in enumerate(chosen)}
        forbidden = [
            (column_of[first], column_of[second])
            for (first, second), limit_pps in self.pairs.items()
            if limit_pps < rate_pps * (1.0 - 1e-12) and first in column_of and second in column_of
        ]
        program = IntegerProgram(mip_rel_gap=0.0)
        patterns = [self.patterns[pattern] for pattern in chosen]
        columns = range(len(patterns))
        hosts = self.classes.hosts
        for pattern, pattern_cost in zip(patterns, cost[chosen].tolist(), strict=True):
            program.add_column(float(len(hosts[pattern.host].names)), cost=pattern_cost)
        is_used = {column: program.add_column() for column in sorted({column for pair in forbidden for column in pair})}
        for k, elements in enumerate(self.classes.elements):
            counts = {column: float(pattern.counts[k]) for column, pattern in enumerate(patterns) if pattern.counts[k]}
            total = float(len(elements.names))
            program.add_row(counts, total, math.inf if covers else total)
        for h, host in enumerate(hosts):
            on_host = [column for column in columns if patterns[column].host == h]
            program.add_row(dict.fromkeys(on_host, 1.0), 0.0, float(len(host.names)))
        if self.most_servers is not None:
            program.add_row(dict.fromkeys(columns, 1.0), 0.0, float(self.most_servers))
        if extra is not None:
            # Relative to its limit: a latency in seconds would be within the solver's tolerance of any limit.
            parts = (extra[0][chosen] / extra[1]).tolist()
            program.add_row(dict(zip(columns, parts, strict=True)), -math.inf, 1.0)
        for column, flag in is_used.items():
            program.add_row({column: 1.0, flag: -program.upper[column]}, -math.inf, 0.0)
        for first, second in forbidden:
            pair = {first: 1.0} if first == second else {is_used[first]: 1.0, is_used[second]: 1.0}
            program.add_row(pair, 0.0, 1.0)
        self.solved += 1
        solution = program.solve(seconds)
        if solution is None:
            return None
        values = zip(chosen, solution.values[: len(chosen)], strict=True)
        return {pattern: round(value) for pattern, value in values if value > 0.5}, solution.bound


_LEVELS = (0.92, 0.82, 0.7, 0.55, 0.4, 0.2, 0.05, 0.0)
"""Each round leaves out patterns that carry less than this part of the bound by work. A candidate that carries more
proves that the round needs no other patterns."""
_MAX_PATTERNS = 12_000
_LISTING_SHARE = 0.3
"""Share of the time limit for listing patterns."""
_PROGRAM_S = 2.0
"""Time limit of a single program, after which a load stays undecided."""


@dataclasses.dataclass(slots=True, kw_only=True)
class PlacementSearch:
    """Searches for one problem that share predictions; ``on_progress`` is called with the best value and the bound."""

    problem: PlacementProblem
    classes: Classes
    loads: ServerLoads
    on_progress: Callable[[float, float], None] | None = None
    patterns: list[Pattern] = dataclasses.field(default_factory=list)
    cover: PatternCover | None = None
    high: NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.zeros(0))
    exact: NDArray[np.bool_] = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=bool))
    begin_s: float = dataclasses.field(default_factory=time.perf_counter)
    best: tuple[float, PatternCounts] | None = None
    bound: float = math.inf

    @property
    def left_s(self) -> float:
        """Remaining time, s."""
        return self.problem.goal.seconds - (time.perf_counter() - self.begin_s)

    def most_lossless(self) -> SearchResult | None:
        """Return the candidate of the greatest load without overload; None if there is none."""
        top = work_bound_pps(self.problem, self.loads)
        self.bound = top
        is_interrupted = False
        try:
            for level in _LEVELS:
                if not self._add_patterns(level * top):
                    return self._local_best()
                done = self._search_listed(level * top)
                if done or level == 0.0:
                    break
        except KeyboardInterrupt:
            is_interrupted = True
            if self.best is None:
                return self._local_best(is_interrupted=True)
        if self.best is None:
            return self._local_best() if self.left_s <= 0.0 else None
        return self._result(self.best[1], self.best[0], max(self.bound, self.best[0]), is_interrupted)

    def _local_best(self, *, is_interrupted: bool = False) -> SearchResult | None:
        """Return the result of the local search, for too many patterns or too little time."""
        start = even_candidate(self.problem, self.loads)
        if start is None:
            return None
        best = self.lossless_pps(start), start
        more_s = 0.0 if is_interrupted else max(self.left_s, 0.3 * self.problem.goal.seconds)
        until_s = time.perf_counter() + more_s
        try:
            for best in improved_candidates(
                self.classes,
                self.loads,
                start,
                lossless_pps=self.lossless_pps,
                left_s=lambda: until_s - time.perf_counter(),
            ):
                if self.on_progress:
                    self.on_progress(best[0], self.bound)
        except KeyboardInterrupt:
            is_interrupted = True
        return SearchResult(
            candidate=best[1],
            value=best[0],
            bound=max(self.bound, best[0]),
            seconds=time.perf_counter() - self.begin_s,
            is_interrupted=is_interrupted,
        )

    def cheapest(self, objective: Objective, rate_pps: float, *, latency_s: float | None = None) -> SearchResult | None:
        """Return the candidate of least cost that carries a load without overload; None if none does.

        ``latency_s`` limits the sum of the mean times of a frame on its servers.
        """
        self.best = None
        if not self._add_patterns(rate_pps):
            raise TooManyElementClasses(self.problem.name)
        assert self.cover is not None
        cost = np.array([self._cost(objective, pattern, rate_pps) for pattern in self.patterns])
        pattern_latency_s = np.zeros(len(self.patterns))
        is_predicted = np.zeros(len(self.patterns), dtype=bool)
        bound, is_interrupted = 0.0, False
        try:
            while True:
                extra = None if latency_s is None else (pattern_latency_s, latency_s)
                try:
                    answer = self.cover.least(
                        self.high >= rate_pps * (1.0 - 1e-9), cost, rate_pps, seconds=max(self.left_s, 0.2), extra=extra
                    )
                except Undecided:
                    break
                if answer is None:
                    break
                chosen, bound = answer[0], max(bound, answer[1])
                new = [pattern for pattern in chosen if not is_predicted[pattern]]
                for pattern in new:
                    is_predicted[pattern] = True
                    self._predict(pattern)
                    if self.high[pattern] >= rate_pps * (1.0 - 1e-9):
                        cost[pattern] = self._cost(objective, self.patterns[pattern], rate_pps, is_exact=True)
                        if latency_s is not None:
                            pattern_latency_s[pattern] = self._latency_s(pattern, rate_pps)
                value, total_latency_s = (
                    sum(amount[pattern] * number for pattern, number in chosen.items())
                    for amount in (cost, pattern_latency_s)
                )
                is_feasible = self.carried_pps(chosen) >= rate_pps * (1.0 - 1e-9) and (
                    latency_s is None or total_latency_s <= latency_s * (1 + 1e-9)
                )
                if is_feasible and (self.best is None or value < self.best[0]):
                    self.best = (float(value), chosen)
                if self.on_progress and self.best:
                    self.on_progress(self.best[0], bound)
                if not new or self.left_s <= 0.0:
                    break
        except KeyboardInterrupt:
            is_interrupted = True
            if self.best is None:
                raise
        if self.best is None:
            return None
        return self._result(self.best[1], self.best[0], min(bound, self.best[0]), is_interrupted)

    def _cost(self, objective: Objective, pattern: Pattern, rate_pps: float, *, is_exact: bool = False) -> float:
        """Return the cost of a server with a pattern at a load; a lower bound unless ``is_exact``."""
        group = self.classes.hosts[pattern.host].group
        if objective == "price":
            return group.price
        if objective != "watts":
            return 1.0
        content = self.classes.content(pattern)
        if is_exact:
            return self.loads.watts(*content, rate_pps)
        busy = self.loads.busy_at_least(*content, rate_pps)
        return group.idle_w + (group.busy_w - group.idle_w) * min(busy / group.cores, 1.0)

    def _latency_s(self, pattern: int, rate_pps: float) -> float:
        """Return the mean time that a frame of the total load spends on a server, s; 0 if unknown."""
        prediction = self.loads.prediction(*self.classes.content(self.patterns[pattern]), rate_pps)
        if prediction is None or not math.isfinite(prediction.latency_s):
            return 0.0
        return prediction.latency_s * prediction.offered_pps / rate_pps

    def carried_pps(self, chosen: PatternCounts) -> float:
        """Return the predicted load that the chosen servers carry, frames/s."""
        assert self.cover is not None
        for pattern in chosen:
            self._predict(pattern)
        return min(self.cover.pairs_pps(chosen), *(float(self.high[pattern]) for pattern in chosen))

    def lossless_pps(self, candidate: Candidate) -> float:
        """Return the greatest load that a candidate carries without overload, frames/s."""
        carried = [self.loads.capacity(*self.classes.content(pattern)).capacity_pps for pattern, _ in candidate]
        if self.problem.interconnect.by == "cables":
            carried += [
                cable_capacity_pps(self.classes, first, second)
                for first, number in candidate
                for second, _ in candidate
                if first != second or number > 1
            ]
        return min(carried)

    def value_of(self, candidate: Candidate) -> float | None:
        """Return the objective's value of a candidate; None if it misses the target."""
        goal, lossless_pps = self.problem.goal, self.lossless_pps(candidate)
        if goal.objective == "throughput":
            return lossless_pps
        rate_pps = goal.target_pps or self.problem.offered_pps
        if lossless_pps < rate_pps * (1.0 - 1e-9):
            return None
        return sum(self._cost(goal.objective, pattern, rate_pps, is_exact=True) * n for pattern, n in candidate)

    def _result(self, chosen: PatternCounts, value: float, bound: float, is_interrupted: bool) -> SearchResult:
        return SearchResult(
            candidate=tuple((self.patterns[pattern], number) for pattern, number in sorted(chosen.items())),
            value=value,
            bound=bound,
            seconds=time.perf_counter() - self.begin_s,
            is_interrupted=is_interrupted,
        )

    def _add_patterns(self, min_pps: float) -> bool:
        """Add the patterns that may carry ``min_pps``; return False if they are too many."""
        try:
            patterns = patterns_above(
                self.classes,
                self.loads,
                min_pps,
                max_count=_MAX_PATTERNS,
                seconds=_LISTING_SHARE * self.problem.goal.seconds,
            )
        except TooManyPatterns:
            return False
        listed = set(self.patterns)
        more = [pattern for pattern in patterns if pattern not in listed]
        high = [self.loads.bound_pps(*self.classes.content(pattern)) for pattern in more]
        self.patterns += more
        self.high = np.concatenate([self.high, np.array(high)])
        self.exact = np.concatenate([self.exact, np.zeros(len(more), dtype=bool)])
        pairs = self.cover.pairs if self.cover else {}
        self.cover = PatternCover(
            classes=self.classes,
            patterns=self.patterns,
            most_servers=self.problem.rules.most_servers,
            pair_pps=partial(cable_capacity_pps, self.classes) if self.problem.interconnect.by == "cables" else None,
            pairs=pairs,
        )
        return True

    def _search_listed(self, min_pps: float) -> bool:
        """Search among the listed patterns; return whether the optimum is known or the time is over."""
        assert self.cover is not None
        upper_pps, goal = self.bound, self.problem.goal
        while True:
            top, chosen = self._by_bounds(upper_pps)
            # Candidates of listed patterns carry at most ``top``; other patterns carry less than ``min_pps``.
            upper_pps = min(upper_pps, top)
            self.bound = min(self.bound, max(upper_pps, min_pps, self.best[0] if self.best else 0.0))
            if chosen is None:
                return self.left_s <= 0.0 or (self.best is not None and self.best[0] >= min_pps)
            new = [pattern for pattern in chosen if not self.exact[pattern]]
            value = self.carried_pps(chosen)
            if self.best is None or value > self.best[0]:
                self.best = (value, chosen)
            if self.on_progress:
                self.on_progress(self.best[0], self.bound)
            if self.best[0] * (1.0 + goal.gap_ratio + 1e-12) >= self.bound:
                return True
            if self.left_s <= 0.0 or (not new and value < top * (1.0 - 1e-12)):
                return True
            if not new:
                return self.best[0] >= min_pps

    def _by_bounds(self, upper_pps: float) -> tuple[float, PatternCounts | None]:
        """Return a load that no candidate exceeds by the bounds of its patterns, and the candidate of that load.

        If the time does not suffice, the candidate carries less.
        """
        assert self.cover is not None
        while True:
            values = self._candidate_rates(upper_pps)
            low, high = 0, len(values)  # index of the greatest value with a candidate
            certain = 0  # values before this index certainly have none
            best: PatternCounts | None = None
            while low < high:
                middle = (low + high) // 2 if best or low else 0
                try:
                    chosen = self._cover_at(values[middle])
                except Undecided:
                    low = middle + 1
                    if self.left_s <= 0.0:
                        break
                    continue
                if chosen is None:
                    certain = max(certain, middle + 1)
                    low = middle + 1
                else:
                    best, high = chosen, middle
            top = values[certain] if certain < len(values) else 0.0
            # Cables seen meanwhile may carry loads between two of the values.
            above = values[certain - 1] if certain else math.inf
            if self.left_s <= 0.0 or not any(top < value < above for value in self._candidate_rates(upper_pps)):
                return top, best

    def _candidate_rates(self, upper_pps: float) -> list[float]:
        """Return the loads at which the set of allowed patterns changes, the greatest first, frames/s."""
        assert self.cover is not None
        floor = self.best[0] if self.best else 0.0
        levels = {min(float(high_pps), upper_pps) for high_pps in self.high}
        levels |= {limit_pps for limit_pps in self.cover.pairs.values() if math.isfinite(limit_pps)}
        return sorted((level for level in levels if floor <= level <= upper_pps and math.isfinite(level)), reverse=True)

    def _cover_at(self, rate_pps: float) -> PatternCounts | None:
        assert self.cover is not None
        allowed = self.high >= rate_pps * (1.0 - 1e-12)
        # Prefer predicted servers: a candidate of predicted servers only is the answer.
        seconds = min(max(self.left_s, 0.2), _PROGRAM_S)
        return self.cover.any(allowed, self.exact, rate_pps, seconds=seconds)

    def _predict(self, pattern: int) -> None:
        if not self.exact[pattern]:
            self.high[pattern] = self.loads.capacity(*self.classes.content(self.patterns[pattern])).capacity_pps
            self.exact[pattern] = True
