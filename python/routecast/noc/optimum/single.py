"""The exact optimum of one plane (thesis, eqs. 6.4-6.6): the least power over all routings and expansion factors.

The thesis solves a linear program for each of Q = 100 expansion factors. Here the greatest load b = 1/alpha is a
variable with a price: one program gives a corner of the line of least hop flow over b and a tangent to it
(:mod:`routecast.noc.optimum.frontier`), and another is solved only where the tangents still allow less power than the
best routing found.

A program begins with the shortest paths and takes in those detours that its link prices make worth while, until none
is: that is exact for any paths, and most flows never need one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from routecast.noc.optimum.arcs import Floats, allowed_arcs, distances, grid_of, shortest_hops, tight_arcs
from routecast.noc.optimum.conserving import conserving
from routecast.noc.optimum.frontier import Frontier, Point, Tangent
from routecast.noc.optimum.model import Optimum, PathSet, PlaneFlow
from routecast.noc.optimum.overload import Overload
from routecast.noc.optimum.program import FlowProgram, Solved
from routecast.noc.power.scaling import Scaling
from routecast.noc.topology import Topology

__all__ = ["optimum"]

Progress: TypeAlias = Callable[[float, float], None]

# How many times steeper than the power's own slope the first program is: steep enough to leave no room on its left.
_STEEP = 4.0
# Prices that differ by rounding alone make no detour worth while.
_SLACK = 1e-9
# A search that ends by itself has solved far fewer programs.
_MOST_PROGRAMS = 200
# A load above capacity by rounding alone is no overload.
_ROUNDING = 1e-9


def optimum(
    topology: Topology,
    demand: Floats,
    scaling: Scaling,
    *,
    paths: PathSet = PathSet.ANY,
    tolerance: float = 1e-6,
    progress: Progress | None = None,
) -> Optimum:
    """Return flows of the least power and a proven bound that no others go below.

    Parameters
    ----------
    topology : Topology
    demand : array of shape (routers, routers)
        Traffic between routers in link capacities, zeros on the diagonal
        (:meth:`routecast.noc.traffic.model.Traffic.between_routers`).
    scaling : Scaling
        The range of alpha.
    paths : PathSet
        Shortest paths only, or any.
    tolerance : float
        Relative gap between power and bound at which it stops.
    progress : callable, optional
        Is called after each program with the least power found and the bound proven until then.

    Raises
    ------
    Overload
        No routing carries the traffic at full clock.
    """
    return _Search(topology, demand, scaling, paths).run(tolerance, progress)


class _Search:
    """One search, in units in which the most loaded link carries at least 1."""

    def __init__(self, topology: Topology, demand: Floats, scaling: Scaling, paths: PathSet) -> None:
        self._topology, self._paths, self._scaling = topology, paths, scaling
        self._programs = 0
        shape = (topology.router_count, grid_of(topology).source.size)
        self._best_power, self._best_flow = math.inf, np.zeros(shape)
        hops = float((demand * shortest_hops(topology)).sum())
        self._unit = max(least_load(topology, demand), hops / shape[1])
        if not self._unit:
            return
        self._demand = demand / self._unit
        self._full = 1.0 / self._unit
        self._slowest = scaling.slowest / self._unit
        self._allowed = allowed_arcs(topology, self._demand, paths)
        least = max(1.0, self._slowest)
        self._frontier = Frontier(least=least, most=max(self._full, least))
        self._frontier.tangents.append(Tangent(level=hops / self._unit, slope=0.0))
        shortest = allowed_arcs(topology, self._demand, PathSet.MINIMAL)
        self._program = FlowProgram(topology, self._demand, shortest, least=self._slowest, most=math.inf)
        self._fitting: Floats | None = None

    def run(self, tolerance: float, progress: Progress | None) -> Optimum:
        """Return the optimum."""
        if not self._unit:
            return self._answer(0.0)
        slope = _STEEP * 2.0 * self._frontier.tangents[0].level / self._frontier.least
        before = (math.inf, 0.0)
        while True:
            is_wider = self._step(slope)
            corner = self._frontier.lowest()
            if progress is not None:
                progress(self._best_power * self._unit**3, corner.power * self._unit**3)
            if corner.power >= self._best_power * (1.0 - tolerance) or self._programs >= _MOST_PROGRAMS:
                return self._answer(corner.power)
            now = (self._best_power, corner.power)
            if now == before and not is_wider:
                return self._answer(corner.power)
            before = now
            slope = self._frontier.next_slope(corner)

    def _step(self, slope: float) -> bool:
        """Solve one program and take in its tangent and its flows; return whether it got more arcs for the next."""
        solved = self._solve(slope, hops=1.0)
        flow, way = self._flow(solved, hops=1.0)
        level = float((self._demand * way).sum())
        self._frontier.tangents.append(Tangent(level=level, slope=float(solved.prices.sum())))
        if self._fitting is None and _most(flow) > self._full * (1.0 + _ROUNDING):
            self._make_fit()
            return True
        self._take(flow)
        return self._widen(solved, way, hops=1.0)

    def _make_fit(self) -> None:
        """Find flows that fit at full clock, for the programs that follow.

        Raises
        ------
        Overload
            There are none.
        """
        exact = False
        while True:
            solved = self._solve(1.0, hops=0.0, exact=exact)
            flow, way = self._flow(solved, hops=0.0)
            least = float((self._demand * way).sum() / solved.prices.sum())
            self._frontier.least = max(self._frontier.least, least)
            if _most(flow) <= self._full * (1.0 + _ROUNDING):
                break
            if not self._widen(solved, way, hops=0.0):
                if exact or least > self._full * (1.0 + _ROUNDING):
                    load = max(least, self._full) * self._unit
                    raise Overload.of(self._topology, solved.prices, load, self._paths)
                exact = True
        self._fitting = flow
        self._frontier.most = max(self._full, self._frontier.least)
        self._program.bound_load(self._slowest, self._frontier.most)
        self._take(flow)

    def _solve(self, slope: float, *, hops: float, exact: bool = False) -> Solved:
        self._programs += 1
        return self._program.solve(slope, hops=hops, exact=exact)

    def _flow(self, solved: Solved, *, hops: float) -> tuple[Floats, Floats]:
        """Return flows that conserve, and the lengths of all shortest ways at the solver's prices."""
        way = distances(self._topology, hops + solved.prices, self._allowed)
        if not hops:
            # Without a price of hops, links of price 0 could make circles: order routers by hops too.
            order = distances(self._topology, 1e-6 + solved.prices, self._program.arcs)
        elif self._paths is PathSet.MINIMAL:
            order = way
        else:
            order = distances(self._topology, hops + solved.prices, self._program.arcs)
        flow = conserving(self._topology, self._demand, solved.flow, self._program.arcs, order)
        return flow, np.where(self._demand > 0.0, way, 0.0)

    def _take(self, flow: Floats) -> None:
        """Note a routing; one that is over capacity by the solver's tolerance gets a little of one that fits."""
        load = _most(flow)
        if load > self._full * (1.0 + _ROUNDING) and self._fitting is not None:
            spare = self._full - _most(self._fitting)
            part = min(1.0, (load - self._full) / (load - self._full + spare)) if spare > 0.0 else 1.0
            flow = (1.0 - part) * flow + part * self._fitting
            load = _most(flow)
        hop_flow = float(flow.sum())
        self._frontier.points.append(Point(load=max(load, self._frontier.least), hop_flow=hop_flow))
        power = max(load, self._slowest) ** 2 * hop_flow
        if power < self._best_power:
            self._best_power, self._best_flow = power, flow

    def _widen(self, solved: Solved, way: Floats, *, hops: float) -> bool:
        """Give the program the detours that its prices make worth while; return whether there were any."""
        if self._paths is PathSet.MINIMAL:
            return False
        lengths = hops + solved.prices
        free = distances(self._topology, lengths, self._allowed)
        held = distances(self._topology, lengths, self._program.arcs)
        slack = _SLACK * float(lengths.max())
        with np.errstate(invalid="ignore"):
            shorter = free < held - slack
        new = tight_arcs(self._topology, lengths, self._allowed, free, slack)
        new &= shorter[grid_of(self._topology).source, :].T
        return self._program.widen(new) > 0

    def _answer(self, bound: float) -> Optimum:
        load = _most(self._best_flow) * self._unit if self._unit else 0.0
        plane = PlaneFlow(alpha=self._scaling.alpha(load), flow=self._best_flow * self._unit)
        return Optimum(
            paths=self._paths,
            planes=(plane,),
            lower_bound=min(bound * self._unit**3, plane.power),
            programs=self._programs,
        )


def _most(flow: Floats) -> float:
    return float(flow.sum(axis=0).max())


def least_load(topology: Topology, demand: Floats) -> float:
    """Return a load that the most loaded link has under every routing, from cuts along lines and around routers.

    What crosses a cut is shared by the links that cross it.

    Parameters
    ----------
    demand : array of shape (routers, routers)
        With zeros on the diagonal.
    """
    grid = grid_of(topology)
    numbers = np.arange(topology.router_count)
    x, y = numbers % topology.columns, numbers // topology.columns
    inside = np.concatenate(
        [
            x[None, :] < np.arange(1, topology.columns)[:, None],
            y[None, :] < np.arange(1, topology.rows)[:, None],
            numbers[None, :] == numbers[:, None],
        ]
    )
    part = inside.astype(np.float64)
    out = np.einsum("ci,ci->c", (1.0 - part) @ demand.T, part)
    back = np.einsum("ci,ci->c", (1.0 - part) @ demand, part)
    # Links come in opposite pairs, so as many lead in as out.
    crossing = (inside[:, grid.source] & ~inside[:, grid.target]).sum(axis=1)
    return float((np.maximum(out, back) / crossing).max())
