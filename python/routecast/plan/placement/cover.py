"""Which columns together are a placement: every element once, no more servers than there are (HiGHS).

The variables are how many servers of a class carry a column, so like servers and like elements are no different
solutions. Cables between servers forbid pairs of columns at loads that these would overload; such pairs are found when
a solution has one, and forbidden from then on.
"""

from __future__ import annotations

import math
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
        while True:
            found = self._solve(allowed, cost, rate_pps, seconds, extra)
            if found is None or self.pair_pps is None:
                return found
            if not self._forbid(found[0], rate_pps):
                return found

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

    def _forbid(self, chosen: Chosen, rate_pps: float) -> bool:
        """Look at the cables of a solution; return whether one is overloaded, which is then known."""
        return self.pairs_pps(chosen) < rate_pps * (1.0 - 1e-12)

    def _solve(
        self,
        allowed: NDArray[np.bool_],
        cost: Vector,
        rate_pps: float,
        seconds: float,
        extra: tuple[Vector, float] | None,
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
            rows.append((at, [float(columns[i].counts[k]) for i in at], every, every))
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
