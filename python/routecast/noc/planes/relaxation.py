"""The splittable optimum at fixed clocks, from which whole flows are rounded (eqs. 7.7-7.12 with alpha fixed).

With b_p = 1/alpha_p given, least power is a linear program: the hop-flow of plane p costs b_p^2, its links carry b_p.
Flows to one router mix without loss, so that the variables are traffic by plane, target and link: P R L of them for P
planes, R routers and L links. Paths come out of the solution by walking from each source along the links that carry
something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.candidates import Candidates, Links
from routecast.noc.planes.flows import UNIT, Flows
from routecast.noc.topology import links

__all__ = ["ByPlace", "ByTarget", "Relaxation", "Share"]

# Traffic below this part of a capacity is the solver's rounding.
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Part of a flow that the relaxation puts on a plane and path."""

    flow: int
    plane: int
    path: Links
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

    def least_stretch(self, ratio: NDArray[np.float64]) -> float:
        """Return the least u for which the clocks u ratio carry the traffic."""
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
        return np.inf if result.fun is None else float(result.fun)


class Relaxation(Protocol):
    """The splittable problem of one traffic."""

    def least_stretch(self, ratio: NDArray[np.float64]) -> float:
        """Return the least u for which the clocks b_p = u ratio_p carry the traffic."""

    def least_power(self, clocks: NDArray[np.float64]) -> tuple[float, list[Share]] | None:
        """Return the least power at the clocks b_p = 1/alpha_p with its shares; None where they do not carry it."""


class ByPlace:
    """Flows split over their places: exact where each has few (XY, or XY and YX)."""

    def __init__(self, candidates: Candidates, widths: Sequence[float]) -> None:
        from scipy import sparse

        flows = candidates.flows
        count, link_count = candidates.crosses.shape
        rate = flows.rate[candidates.flow] / UNIT
        place, link = np.nonzero(candidates.crosses)
        rows = candidates.plane[place] * link_count + link
        ones = np.ones(count)
        self._candidates = candidates
        self._rate = rate
        self._program = _Program(
            plane=candidates.plane,
            hop_flow=rate * candidates.hops,
            loads=sparse.csr_matrix((rate[place], (rows, place)), shape=(len(widths) * link_count, count)),
            width=np.asarray(widths),
            equal=sparse.csr_matrix((ones, (candidates.flow, np.arange(count))), shape=(len(flows), count)),
            right=np.ones(len(flows)),
        )

    def least_stretch(self, ratio: NDArray[np.float64]) -> float:
        """Return the least u for which the clocks b_p = u ratio_p carry the traffic."""
        return self._program.least_stretch(ratio)

    def least_power(self, clocks: NDArray[np.float64]) -> tuple[float, list[Share]] | None:
        """Return the least power at the clocks b_p = 1/alpha_p with its shares; None where they do not carry it."""
        solved = self._program.least_power(clocks)
        if solved is None:
            return None
        power, part = solved
        candidates = self._candidates
        return power, [
            Share(
                flow=int(candidates.flow[one]),
                plane=int(candidates.plane[one]),
                path=candidates.paths[one],
                rate=float(part[one] * self._rate[one]),
            )
            for one in np.flatnonzero(part > _NOTHING).tolist()
        ]


class ByTarget:
    """Flows split over all paths of usable links (:func:`routecast.noc.planes.freedom.usable_links`)."""

    def __init__(self, flows: Flows, usable: NDArray[np.bool_], widths: Sequence[float]) -> None:
        from scipy import sparse

        every = links(flows.topology)
        routers, link_count, planes = flows.topology.router_count, len(every), len(widths)
        source = np.array([link.source for link in every])
        target = np.array([link.target for link in every])
        to, link = np.nonzero(usable)
        arcs, injected = len(to), planes * len(to)
        entries: list[tuple[NDArray[np.int64], NDArray[np.int64], float]] = []
        # Row (plane, target, router): what leaves less what comes in is what the plane takes there. What comes in at
        # the target itself stays. The last rows say that all planes together take the whole flow.
        inner = target[link] != to
        number = np.arange(len(flows))
        for plane in range(planes):
            at = (plane * routers + to) * routers
            arc = plane * arcs + np.arange(arcs)
            taken = injected + plane * len(flows) + number
            entries.append((at + source[link], arc, 1.0))
            entries.append(((at + target[link])[inner], arc[inner], -1.0))
            entries.append(((plane * routers + flows.target) * routers + flows.source, taken, -1.0))
            entries.append((planes * routers * routers + number, taken, 1.0))
        columns = injected + planes * len(flows)
        plane_of = np.repeat(np.arange(planes), arcs)
        self._flows, self._arcs = flows, (to, link)
        self._program = _Program(
            plane=np.concatenate([plane_of, np.zeros(columns - injected, dtype=np.int64)]),
            hop_flow=np.concatenate([np.ones(injected), np.zeros(columns - injected)]),
            loads=sparse.csr_matrix(
                (np.ones(injected), (plane_of * link_count + np.tile(link, planes), np.arange(injected))),
                shape=(planes * link_count, columns),
            ),
            width=np.asarray(widths),
            equal=sparse.csr_matrix(
                (
                    np.concatenate([np.full(len(row), value) for row, _, value in entries]),
                    (
                        np.concatenate([row for row, _, _ in entries]),
                        np.concatenate([c for _, c, _ in entries]),
                    ),
                ),
                shape=(planes * routers * routers + len(flows), columns),
            ),
            right=np.concatenate([np.zeros(planes * routers * routers), flows.rate / UNIT]),
        )

    def least_stretch(self, ratio: NDArray[np.float64]) -> float:
        """Return the least u for which the clocks b_p = u ratio_p carry the traffic."""
        return self._program.least_stretch(ratio)

    def least_power(self, clocks: NDArray[np.float64]) -> tuple[float, list[Share]] | None:
        """Return the least power at the clocks b_p = 1/alpha_p with its shares; None where they do not carry it."""
        solved = self._program.least_power(clocks)
        if solved is None:
            return None
        power, x = solved
        to, link = self._arcs
        planes, flows = len(clocks), self._flows
        carried = np.zeros((planes, flows.topology.router_count, len(links(flows.topology))))
        for plane in range(planes):
            carried[plane, to, link] = x[plane * len(to) : (plane + 1) * len(to)]
        return power, _walked(flows, carried, x[planes * len(to) :].reshape(planes, len(flows)))


def _walked(flows: Flows, carried: NDArray[np.float64], taken: NDArray[np.float64]) -> list[Share]:
    """Return the paths of a solution by target: from each source along the links with most left, until it is walked.

    Links cost something, so that an optimum has no cycles and every walk ends.
    """
    topology = flows.topology
    every = links(topology)
    leaving: list[list[int]] = [[] for _ in range(topology.router_count)]
    for number, link in enumerate(every):
        leaving[link.source].append(number)
    shares: list[Share] = []
    for plane, flow in np.argwhere(taken > _NOTHING).tolist():
        left, target = float(taken[plane, flow]), int(flows.target[flow])
        while left > _NOTHING:
            router, path = int(flows.source[flow]), list[int]()
            amount = left
            while router != target and len(path) <= len(every):
                number = max(leaving[router], key=lambda one: carried[plane, target, one])
                amount = min(amount, float(carried[plane, target, number]))
                path.append(number)
                router = every[number].target
            if amount <= _NOTHING or router != target:
                break
            carried[plane, target, path] -= amount
            left -= amount
            shares.append(Share(flow=flow, plane=plane, path=tuple(path), rate=amount))
    return shares
