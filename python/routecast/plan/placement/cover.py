"""Which columns together are a placement: every element once, no more servers than there are (HiGHS).

The variables are how many servers of a class carry a column, so like servers and like elements are no different
solutions. Cables between servers forbid pairs of columns at loads that these would overload; such pairs are found when
a solution has one, and forbidden from then on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np
from numpy.typing import NDArray

from routecast.plan.placement.classes import Classes
from routecast.plan.placement.columns import Column

__all__ = ["Chosen", "Cover", "Pair", "Undecided"]

Chosen = dict[int, int]
"""How many servers carry which column, by its number."""
Pair = tuple[int, int]
Vector = NDArray[np.float64]


class Undecided(Exception):
    """Time was over before it was known whether there is a placement."""


@dataclass(slots=True, kw_only=True)
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
    pairs: dict[Pair, float] = field(default_factory=dict)
    solved: int = 0
    _number: dict[Column, int] = field(default_factory=dict)

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

    def _trimmed(
        self, chosen: Chosen, allowed: NDArray[np.bool_], preferred: NDArray[np.bool_]
    ) -> Chosen | None:
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
