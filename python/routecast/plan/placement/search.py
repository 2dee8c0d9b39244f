"""The placement that carries most without loss, and the cheapest one that carries enough: found and proven.

Columns (what is on a server) have an upper bound of what they carry before they are predicted. Each round finds the
best placement by these bounds, predicts its servers, and puts the predictions in the place of the bounds. When the best
placement consists of predicted servers only, no other can be better: every other is bounded by as much. The bound is on
what is predicted, over all placements and the ways of pinning that are tried; it says nothing on the prediction itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from routecast.plan.placement.cables import cable_pps
from routecast.plan.placement.classes import Classes
from routecast.plan.placement.columns import Column, TooMany, columns_above
from routecast.plan.placement.cover import Chosen, Cover, Undecided
from routecast.plan.placement.exists import evenly_arranged
from routecast.plan.placement.found import Found, TooManyKinds, most_by_work
from routecast.plan.placement.improve import improved
from routecast.plan.placement.mapping import Mapped
from routecast.plan.placement.model import Objective, PlacementProblem
from routecast.plan.placement.server_load import ServerLoads

__all__ = ["Search"]

_LEVELS = (0.92, 0.82, 0.7, 0.55, 0.4, 0.2, 0.05, 0.0)
"""Columns that carry less than this part of what the work alone allows are left out at first: a placement that needs
none of them and is at least as good proves that they are not needed."""
_MOST_COLUMNS = 12_000
_LISTING = 0.3
"""Part of the time that listing columns may take."""
_PROGRAM_S = 2.0
"""Longest time for a single program: whether there is a placement for a load is left open then."""

Told = Callable[[float, float], None]


@dataclass(slots=True, kw_only=True)
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
    columns: list[Column] = field(default_factory=list)
    cover: Cover | None = None
    high: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    exact: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    begin_s: float = field(default_factory=time.perf_counter)
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

    def cheapest(
        self, objective: Objective, rate_pps: float, *, latency_s: float | None = None
    ) -> Found | None:
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
                        self.high >= rate_pps * (1.0 - 1e-9),
                        cost,
                        rate_pps,
                        seconds=max(self.left_s, 0.2),
                        extra=extra,
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
                    holds &= sum(late_s[one] * number for one, number in chosen.items()) <= latency_s * (
                        1 + 1e-9
                    )
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
            self.loads.at_most_pps(hosts[column.host].group.name, classes.by_group(column.counts))
            for column in more
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
