"""The splittable optimum at fixed clocks, from which whole flows are rounded (eqs. 7.7-7.12 with alpha fixed).

With b_p = 1/alpha_p given, least power is a linear program: the hop-flow of plane p costs b_p^2, its links carry b_p.
Its variables are the parts of the flows at their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.candidates import UNIT, Candidates
from routecast.quantity.schema import value

__all__ = ["Relaxation", "Share"]

# Traffic below this part of a capacity is the solver's rounding.
_NOTHING = 1e-9


@value
class Share:
    """Part of a flow that the relaxation puts at a place."""

    flow: int
    place: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Program:
    """min cost x, loads x <= limit, equal x = right, x >= 0; `plane` is the one that a column loads, or -1."""

    plane: NDArray[np.int64]
    hop_flow: NDArray[np.float64]
    loads: Any
    width: NDArray[np.float64]
    equal: Any
    right: NDArray[np.float64]

    def least_power(self, clocks: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]] | None:
        """Return the least power at these clocks and its columns; None where they do not carry the traffic."""
        from scipy.optimize import linprog

        cost = self.hop_flow * clocks[self.plane] ** 2
        limit = np.repeat(clocks * self.width, self.loads.shape[0] // len(clocks))
        result = linprog(cost, A_ub=self.loads, b_ub=limit, A_eq=self.equal, b_eq=self.right, method="highs")
        return None if result.fun is None else (float(result.fun), np.asarray(result.x))

    def least_stretch(self, ratio: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the least u for which the clocks u ratio carry the traffic, and the columns that do."""
        from scipy import sparse
        from scipy.optimize import linprog

        rows, columns = self.loads.shape
        limit = np.repeat(ratio * self.width, rows // len(ratio))
        result = linprog(
            np.concatenate([np.zeros(columns), [1.0]]),
            A_ub=sparse.hstack([self.loads, sparse.csr_matrix(-limit[:, None])], format="csr"),
            b_ub=np.zeros(rows),
            A_eq=sparse.hstack([self.equal, sparse.csr_matrix((self.equal.shape[0], 1))], format="csr"),
            b_eq=self.right,
            method="highs",
        )
        if result.fun is None:
            return np.inf, np.zeros(columns)
        return float(result.fun), np.asarray(result.x)[:columns]


class Relaxation:
    """The splittable problem: flows split over their places.

    Parameters
    ----------
    candidates : Candidates
    widths : sequence of float
        Of each plane's links.
    """

    def __init__(self, candidates: Candidates, widths: Sequence[float]) -> None:
        self._candidates = candidates
        self._rate = candidates.flows.rate[candidates.flow] / UNIT
        self._program = _program(candidates, np.asarray(widths), np.ones(len(candidates.paths), dtype=bool))
        self.columns = len(candidates.paths)
        self._merged: float | None = None
        # The path of each flow that carries most of it.
        self._main = candidates.first[:-1]
        if _is_alike(candidates):
            first = np.flatnonzero(candidates.plane == 0)
            merged = _program(candidates, np.ones(1), candidates.plane == 0)
            self._merged, part = merged.least_stretch(np.ones(1))
            flow = candidates.flow[first]
            # The last of a flow's columns by rising part is its largest.
            self._main = first[
                np.lexsort((part, flow))[np.searchsorted(flow, np.arange(len(candidates.flows)), "right") - 1]
            ]

    def least_stretch(self, ratio: NDArray[np.float64]) -> float:
        """Return the least u for which the clocks b_p = u ratio_p carry the traffic.

        Planes with the same paths carry together what one plane as wide as all does, each its part.
        """
        if self._merged is None:
            return self._program.least_stretch(ratio)[0]
        return self._merged / float(np.sum(ratio * self._program.width))

    def least_power(self, clocks: NDArray[np.float64]) -> tuple[float, list[Share]] | None:
        """Return the least power at the clocks b_p = 1/alpha_p with its shares; None where they do not carry it."""
        solved = self._program.least_power(clocks)
        if solved is None:
            return None
        power, part = solved
        flow = self._candidates.flow
        return power, [
            Share(flow=int(flow[one]), place=one, rate=float(part[one] * self._rate[one]))
            for one in np.flatnonzero(part > _NOTHING).tolist()
        ]

    def filled_power(self, clocks: NDArray[np.float64]) -> float:
        """Return the power at the clocks of whole flows that fill the planes one by one: quick, and not the least.

        Large flows come first, each on the slowest plane with room, or else on the fastest, over the path that fills
        one plane alone least.
        """
        candidates, rates = self._candidates, self._candidates.flows.rate / UNIT
        limits = clocks * self._program.width
        loads = np.zeros((len(clocks), candidates.crosses.shape[1]))
        slow_first = np.argsort(clocks, kind="stable").tolist()
        power = 0.0
        for flow in np.argsort(-rates, kind="stable").tolist():
            rate, path = float(rates[flow]), candidates.paths[self._main[flow]]
            for plane in slow_first:
                if loads[plane, path].max() + rate <= limits[plane] + _NOTHING:
                    break
            loads[plane, path] += rate
            power += rate * len(path) * float(clocks[plane]) ** 2
        return power


def _is_alike(candidates: Candidates) -> bool:
    """Return whether every flow has the same paths on all planes."""
    planes = candidates.plane_count
    on = [np.flatnonzero(candidates.plane == plane) for plane in range(planes)]
    return all(
        len(here) == len(on[0])
        and all(candidates.paths[one] == candidates.paths[other] for one, other in zip(on[0], here, strict=True))
        for here in on[1:]
    )


def _program(candidates: Candidates, widths: NDArray[np.float64], among: NDArray[np.bool_]) -> _Program:
    """Return the program over some of the places, which are on the first planes."""
    from scipy import sparse

    flows, chosen = candidates.flows, np.flatnonzero(among)
    count, link_count = len(chosen), candidates.crosses.shape[1]
    crosses, plane = candidates.crosses[chosen], candidates.plane[chosen]
    rate = flows.rate[candidates.flow[chosen]] / UNIT
    place, link = np.nonzero(crosses)
    rows = plane[place] * link_count + link
    columns = np.arange(count)
    return _Program(
        plane=plane,
        hop_flow=rate * candidates.hops[chosen],
        loads=sparse.csr_matrix((rate[place], (rows, place)), shape=(len(widths) * link_count, count)),
        width=widths,
        equal=sparse.csr_matrix((np.ones(count), (candidates.flow[chosen], columns)), shape=(len(flows), count)),
        right=np.ones(len(flows)),
    )
