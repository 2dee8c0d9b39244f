"""The optimum over several planes (thesis, eqs. 7.7-7.12): the least power of flows split over paths and planes.

The thesis solves a linear program for each pair of Q = 100 expansion factors per plane. Here the prices that one
program finds bound the cost of all clocks (:mod:`routecast.noc.optimum.costs`), costs that lie between bound the power
(:mod:`routecast.noc.optimum.cones`), and a program is solved only where these bounds are least and still too low. The
bound that comes out is evaluated from the prices by shortest paths: it holds to rounding, whatever the solver's
tolerances.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from routecast.errors import RoutecastError
from routecast.noc.optimum.arcs import Floats, allowed_arcs, distances, grid_of, shortest_hops, tight_arcs
from routecast.noc.optimum.cells import Cells, Symmetry
from routecast.noc.optimum.cones import Fan
from routecast.noc.optimum.conserving import conserving
from routecast.noc.optimum.costs import Priced, Pricing
from routecast.noc.optimum.model import Optimum, PathSet, PlaneFlow
from routecast.noc.optimum.plane_program import PlaneProgram
from routecast.noc.optimum.single import optimum
from routecast.noc.power.scaling import Scaling
from routecast.noc.topology import Topology

__all__ = ["optimum_of_planes"]

Progress: TypeAlias = Callable[[float, float], None]

# A load above capacity by rounding alone is no overload.
_ROUNDING = 1e-9
# Ways that differ by less, relative to their length, make no detour worth while.
_SLACK = 1e-6
# The thesis' own search is precise to about 1 %.
_GAP = 0.01
_TIME_LIMIT_S = 60.0
# So many cells tell well enough where least is proven.
_FINE_CELLS = 1000
# With so many, another program is quicker than more of them.
_MOST_CELLS = 100_000


def optimum_of_planes(
    topology: Topology,
    demand: Floats,
    scalings: Sequence[Scaling],
    *,
    widths: Sequence[float] | None = None,
    paths: PathSet = PathSet.ANY,
    gap: float = _GAP,
    time_limit_s: float = _TIME_LIMIT_S,
    progress: Progress | None = None,
) -> Optimum:
    """Return flows of nearly the least power over all planes, and a proven bound that no others go below.

    It ends when the bound is within ``gap`` of the power, at the time limit, or on Ctrl-C; each time with the best
    flows until then and the bound proven until then (:attr:`~routecast.noc.optimum.model.Optimum.gap` says which).

    Parameters
    ----------
    topology : Topology
        Of every plane.
    demand : array of shape (routers, routers)
        Traffic between routers in link capacities of the first plane, zeros on the diagonal
        (:meth:`routecast.noc.traffic.model.Traffic.between_routers`).
    scalings : sequence of Scaling
        The range of alpha of each plane.
    widths : sequence of float, optional
        Capacity of each plane's links relative to the first plane's; 1 each without it. Flows and loads of the
        answer are in capacities of the first plane.
    paths : PathSet
        Shortest paths only, or any.
    gap : float
        Relative gap between power and bound at which it stops.
    time_limit_s : float
        When it stops at the latest, up to one linear program.
    progress : callable, optional
        Is called with the least power found and the bound proven, each time that a box of clocks is done.

    Raises
    ------
    Overload
        No routing carries the traffic at full clock on all planes together.
    RoutecastError
        No planes, widths that do not go with them, a gap that is not positive; no routing that carries the traffic
        is known at the time limit.
    """
    wide = np.ones(len(scalings)) if widths is None else np.array(widths, dtype=np.float64)
    _check(scalings, wide, gap)
    if not demand.any():
        empty = np.zeros((topology.router_count, grid_of(topology).source.size))
        idle = tuple(PlaneFlow(alpha=scaling.alpha_max, flow=empty) for scaling in scalings)
        return Optimum(paths=paths, planes=idle, lower_bound=0.0, programs=0)
    return _Search(topology, demand, scalings, wide, paths).run(gap, time_limit_s, progress)


class _Search:
    """One search."""

    def __init__(
        self,
        topology: Topology,
        demand: Floats,
        scalings: Sequence[Scaling],
        widths: Floats,
        paths: PathSet,
    ) -> None:
        self._topology, self._demand, self._paths = topology, demand, paths
        self._scalings, self._widths = scalings, widths
        self._slowest = np.array([scaling.slowest for scaling in scalings])
        self._arcs = allowed_arcs(topology, demand, paths)
        self._best_power = math.inf
        self._best: tuple[PlaneFlow, ...] = ()
        self._held = allowed_arcs(topology, demand, PathSet.MINIMAL)
        links = grid_of(topology).source.size
        # (b + z)^2 F - b^2 F <= 3 F z where b + z <= 1, and no plane's hop flow F is above its links' capacity.
        self._penalties = 3.0 * links * widths
        self._program = PlaneProgram(topology, demand, self._held, widths, self._penalties)
        self._pricing = Pricing(topology, demand, self._arcs, widths)
        # Without prices: every flit-hop costs at least the cheapest plane's.
        free = np.zeros((widths.size, links))
        self._pricing.found.append(Priced(costs=np.ones(widths.size), prices=free))
        self._symmetry = Symmetry(
            pairs=tuple(
                (p, q)
                for p, q in combinations(range(widths.size), 2)
                if widths[p] == widths[q] and scalings[p] == scalings[q]
            )
        )
        self._fan = Fan(self._pricing, self._slowest, self._symmetry)
        self._programs = 0
        self._end = math.inf

    def run(self, gap: float, time_limit_s: float, progress: Progress | None) -> Optimum:
        """Return the optimum."""
        self._end = time.monotonic() + time_limit_s
        self._share_out()
        hops = float((self._demand * shortest_hops(self._topology)).sum())
        # Nothing is below all hops at the slowest clock.
        floor = hops * float(self._slowest.min()) ** 2
        cells = Cells(
            lower=self._slowest[None], upper=np.ones((1, self._slowest.size)), proven=np.array([floor])
        )
        proven, ruled_out = floor, math.inf
        try:
            while True:
                cells, least = self._narrowed(cells, self._best_power * (1.0 - gap))
                ruled_out = min(ruled_out, least)
                proven = max(floor, min(ruled_out, cells.least, self._best_power))
                if progress is not None:
                    progress(self._best_power, proven)
                if not cells.proven.size or time.monotonic() >= self._end:
                    break
                self._learn(cells, gap)
        except KeyboardInterrupt:
            # What was proven stays proven.
            pass
        return self._answer(proven)

    def _narrowed(self, cells: Cells, target: float) -> tuple[Cells, float]:
        """Rule out cells that need at least ``target`` power, smaller and smaller ones.

        Returns
        -------
        Cells
            What is left: none, or some of which one at least has less than ``target`` proven halfway.
        float
            The least power that is proven for what has been ruled out; inf where nothing was.
        """
        least = math.inf
        while cells.proven.size:
            cells = self._symmetry.ordered(cells)
            proven = np.maximum(cells.proven, self._fan.proven(cells.lower, cells.upper))
            is_out = proven >= target
            least = min(least, float(proven[is_out].min(initial=math.inf)))
            cells = Cells(lower=cells.lower, upper=cells.upper, proven=proven).where(~is_out)
            middles = cells.middles
            is_bad = self._fan.proven(middles, middles) < target
            if cells.proven.size > (_FINE_CELLS if is_bad.any() else _MOST_CELLS):
                break
            cells = cells.halves()
        return cells, least

    def _learn(self, cells: Cells, gap: float) -> None:
        """Solve programs at the clocks for which least is proven, until enough is."""
        middles = cells.middles
        here = middles[self._fan.proven(middles, middles).argmin()][None]
        costs = here[0] ** 2
        for ray in (costs, *self._fan.rays(costs)):
            self._solve(here[0], ray)
            if self._fan.proven(here, here)[0] >= self._best_power * (1.0 - gap):
                return
        self._fan.split(costs)

    def _share_out(self) -> None:
        """Begin with one plane as wide as all, its flows shared out by width.

        Raises
        ------
        Overload
            It cannot carry the traffic: neither can the planes, since together they are as wide at full clock.
        """
        together = float(self._widths.sum())
        slowest = Scaling(alpha_max=min(scaling.alpha_max for scaling in self._scalings))
        alike = optimum(
            self._topology,
            self._demand / together,
            slowest,
            paths=self._paths,
            tolerance=1e-3,
            time_limit_s=self._end - time.monotonic(),
        )
        self._programs += alike.programs
        self._take(self._widths[:, None, None] * alike.planes[0].flow)

    def _solve(self, clocks: Floats, costs: Floats) -> None:
        """Solve one program, with all detours worth while, and keep its prices and its flows."""
        while True:
            self._programs += 1
            solved = self._program.solve(clocks, costs, until=self._end)
            if solved is None:
                return
            lengths = costs[:, None] + solved.prices
            if not self._widen(lengths):
                break
        self._pricing.found.append(Priced(costs=costs, prices=solved.prices))
        entering = [_entering(self._topology, flow) for flow in solved.flow]
        total = np.sum(entering, axis=0)
        flows = []
        for plane, demand in enumerate(entering):
            # To rounding the demand enters; so it does exactly where each plane gets its part. A demand below the
            # solver's tolerance may not enter at all.
            alike = np.full(total.shape, 1.0 / len(entering))
            part = np.divide(demand, total, out=alike, where=total > 0.0)
            way = distances(self._topology, lengths[plane], self._held)
            flows.append(conserving(self._topology, part * self._demand, solved.flow[plane], self._held, way))
        self._take(np.stack(flows))

    def _widen(self, lengths: Floats) -> bool:
        """Give the program the detours that are worth while at lengths of links; return whether there were any."""
        if self._paths is PathSet.MINIMAL:
            return False
        free = [distances(self._topology, length, self._arcs) for length in lengths]
        held = [distances(self._topology, length, self._held) for length in lengths]
        if self._carried(free) >= self._carried(held) * (1.0 - _SLACK):
            return False
        grid, widened = grid_of(self._topology), self._held.copy()
        for length, short, long in zip(lengths, free, held, strict=True):
            slack = _SLACK * float(length.max())
            with np.errstate(invalid="ignore"):
                shorter = short < long - slack
            detours = tight_arcs(self._topology, length, self._arcs, short, slack)
            widened |= detours & shorter[grid.source, :].T
        if np.array_equal(widened, self._held):
            return False
        self._held = widened
        self._program = PlaneProgram(self._topology, self._demand, widened, self._widths, self._penalties)
        return True

    def _carried(self, ways: Sequence[Floats]) -> float:
        """Return the cost of all flows on their shortest ways, each on its best plane."""
        way = np.where(self._demand > 0.0, np.minimum.reduce(ways), 0.0)
        return float((self._demand * way).sum())

    def _take(self, flow: Floats) -> None:
        """Note flows of shape (planes, routers, links) if they fit and need the least power so far."""
        loads = flow.sum(axis=1).max(axis=1) / self._widths
        if (loads > 1.0 + _ROUNDING).any():
            return
        clocks = np.maximum(np.minimum(loads, 1.0), self._slowest)
        power = float(clocks**2 @ flow.sum(axis=(1, 2)))
        if power < self._best_power:
            self._best_power = power
            self._best = tuple(
                PlaneFlow(alpha=scaling.alpha(load), flow=one)
                for scaling, load, one in zip(self._scalings, loads.tolist(), flow, strict=True)
            )

    def _answer(self, bound: float) -> Optimum:
        power = sum(plane.power for plane in self._best)
        return Optimum(
            paths=self._paths, planes=self._best, lower_bound=min(bound, power), programs=self._programs
        )


def _entering(topology: Topology, flow: Floats) -> Floats:
    """Return how much traffic to router t enters a plane at router u, shape (routers u, routers t)."""
    grid = grid_of(topology)
    net = np.zeros(flow.shape[:1] * 2)
    np.add.at(net, grid.source, flow.T)
    np.subtract.at(net, grid.target, flow.T)
    np.fill_diagonal(net, 0.0)
    return np.maximum(net, 0.0)


def _check(scalings: Sequence[Scaling], widths: Floats, gap: float) -> None:
    if not scalings:
        msg = "an optimum needs at least one plane: give a scaling for each"
        raise RoutecastError(msg)
    if widths.size != len(scalings):
        msg = f"{widths.size} widths for {len(scalings)} planes: give one width for each plane"
        raise RoutecastError(msg)
    if not (widths > 0).all():
        msg = f"a plane of width {widths.min():g}: widths are positive (1 is as wide as the first plane)"
        raise RoutecastError(msg)
    if not 0 < gap < 1:
        msg = f"a gap of {gap:g}: it is between 0 and 1, such as 0.01; smaller takes longer"
        raise RoutecastError(msg)
