"""The exact optimum of one plane (Li 2012, eqs. 6.4-6.6): the least power over all routings and expansion factors.

Li (2012) solves a linear program for each of Q = 100 expansion factors. Here the greatest load b = 1/alpha is a
variable with a price: one program gives a corner of the line of least hop flow over b and a tangent to it
(:mod:`routecast.noc.optimum.single`), and another is solved only where the tangents still allow less power than the
best routing found.

A program begins with the shortest paths and takes in those detours that its link prices make worth while, until none
is: that is exact for any paths, and most flows never need one.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from routecast.errors import RoutecastError
from routecast.noc.optimum.program import (
    Floats,
    FlowProgram,
    Optimum,
    PathSet,
    PlaneFlow,
    Solved,
    allowed_arcs,
    conserving,
    distances,
    grid_of,
    shortest_hops,
    tight_arcs,
)
from routecast.noc.power.scaling import Scaling
from routecast.noc.topology import Topology, links
from routecast.quantity.schema import value

__all__ = ["Overload", "optimum"]


_NAMED = 12
# Nearer to 1 a factor is told by its distance from 1.
_NEAR = 1e-4


class Overload(RoutecastError):
    """No routing carries the traffic at full clock.

    ``links``: numbers of the links that it must cross and that are too few; ``load``: load of the most loaded link
    under the best routing, in capacities; over 1.
    """

    exit_code = 1

    def __init__(self, links: tuple[int, ...], load: float, message: str) -> None:
        super().__init__(links, load, message)
        self.links = links
        self.load = load
        self.message = message

    def __str__(self) -> str:
        return self.message

    @classmethod
    def of(cls, topology: Topology, prices: Floats, load: float, paths: PathSet) -> Overload:
        """Return the error for the prices that prove it: the links of positive price are the bottleneck."""
        priced = tuple(int(link) for link in (prices > 1e-4 * prices.max()).nonzero()[0])
        named = ", ".join(topology.link_name(link) for link in priced[:_NAMED])
        if len(priced) > _NAMED:
            named += f" and {len(priced) - _NAMED} more"
        means = "no routing over shortest paths" if paths is PathSet.MINIMAL else "no routing"
        message = (
            f"{means} carries this traffic at full clock: even the best loads the links {named} with {_factor(load)} "
            f"times their capacity; at most {_factor(1 / load)} times this traffic fits, so lower the load"
        )
        return cls(priced, load, message)


def _factor(value: float) -> str:
    away = value - 1.0
    if abs(away) >= _NEAR:
        return f"{value:.6g}"
    return f"(1 {'+' if away > 0 else '-'} {abs(away):.2e})"


@value
class Tangent:
    """H >= level - slope * b for all b.

    The line of least hop flow H over the greatest link load b, from below by tangents and from above by routings.

    Link prices w >= 0 prove, for every routing whose links carry at most b,

    H >= sum over flows of demand * (shortest way with links of length 1 + w) - b * sum of w,

    because each flow pays at least its shortest way, and the links together take at most b * sum of w in prices. So a
    tangent holds whatever the solver did to find its prices. H is convex; the power at b is b^2 H (eq. 6.4 with b =
    1/alpha). Along a line H = p - q b with q >= 0 it rises and then falls, hence between two points it is least at one
    of them: the least power that the tangents allow is where two of them meet, or at an end of the range.
    """

    level: float
    slope: float


@value
class RoutingPoint:
    """A routing of hop flow ``hop_flow`` whose most loaded link carries ``load``."""

    load: float
    hop_flow: float


@value
class Corner:
    """Where the tangents allow the least power."""

    # b and the least H that the tangents allow there.
    load: float
    hop_flow: float
    # Slopes of the tangents on its left and on its right; inf and 0 beyond the ends of the range.
    steeper: float
    flatter: float

    @property
    def power(self) -> float:
        """b^2 H."""
        return self.load**2 * self.hop_flow


@dataclasses.dataclass(slots=True, kw_only=True)
class Frontier:
    """What is known of the line.

    ``least`` and ``most``: range of b; ``tangents``: proven bounds from below; ``points``: routings that were found.
    """

    least: float
    most: float
    tangents: list[Tangent] = dataclasses.field(default_factory=list)
    points: list[RoutingPoint] = dataclasses.field(default_factory=list)

    def lowest(self) -> Corner:
        """Return the corner where the tangents allow the least power."""
        level = np.array([tangent.level for tangent in self.tangents])
        slope = np.array([tangent.slope for tangent in self.tangents])
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = (level[:, None] - level[None, :]) / (slope[:, None] - slope[None, :])
        inside = meet[(meet > self.least) & (meet < self.most)]
        loads = np.unique(np.concatenate([[self.least, self.most], inside]))
        lines = level[None, :] - loads[:, None] * slope[None, :]
        highest = lines.max(axis=1)
        where = int(np.argmin(loads**2 * highest))
        load, hop_flow = float(loads[where]), float(highest[where])
        # The tangents that hold just left and just right of it.
        there = slope[lines[where] >= hop_flow * (1.0 - 1e-12)]
        return Corner(
            load=load,
            hop_flow=hop_flow,
            steeper=math.inf if load == self.least else float(there.max()),
            flatter=0.0 if load == self.most else float(there.min()),
        )

    def next_slope(self, corner: Corner) -> float:
        """Return a slope whose tangent cuts the corner off, or whose point is the corner.

        Any slope between those of its two tangents is one. Between two known points it is that of the line through
        them, which makes the search end after as many steps as the line has corners.
        """
        natural = 2.0 * corner.hop_flow / corner.load
        left = [point for point in self.points if point.load < corner.load]
        right = [point for point in self.points if point.load > corner.load]
        if left and right:
            steepest = max(left, key=lambda point: point.load)
            other = min(right, key=lambda point: point.load)
            chord = (steepest.hop_flow - other.hop_flow) / (other.load - steepest.load)
            if corner.flatter < chord < corner.steeper:
                return chord
        if corner.load == self.least:
            return max(natural, 8.0 * corner.flatter)
        return min(max(natural, corner.flatter), corner.steeper)


Progress: TypeAlias = Callable[[float, float], None]

# How many times steeper than the power's own slope the first program is: steep enough to leave no room on its left.
_STEEP = 4.0
# Prices that differ by rounding alone make no detour worth while.
_SLACK = 1e-9
# A search that ends by itself has solved far fewer programs.
_MOST_PROGRAMS = 200
# A load above capacity by rounding or by the solver's tolerance alone is no overload.
_ROUNDING = 1e-9
_TOLERANCE = 1e-8


def optimum(
    topology: Topology,
    demand: Floats,
    scaling: Scaling,
    *,
    paths: PathSet = PathSet.ANY,
    tolerance: float = 1e-6,
    time_limit_s: float | None = None,
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
        Relative gap between power and bound at which it stops; :attr:`Optimum.gap` says what was reached.
    time_limit_s : float, optional
        When it stops at the latest, with the best flows and the bound until then.
    progress : callable, optional
        Is called after each program with the least power found and the bound proven until then.

    Raises
    ------
    Overload
        No routing carries the traffic at full clock.
    RoutecastError
        No routing that carries it is known at the time limit.
    KeyboardInterrupt
        Ctrl-C; the solver is stopped first.
    """
    end = math.inf if time_limit_s is None else time.monotonic() + time_limit_s
    search = _RoutingSearch(topology, demand, scaling, paths, end)
    try:
        return search.run(tolerance, progress)
    except _TimeIsUpError:
        return search.best_known()


class _TimeIsUpError(Exception):
    """The time limit came before the end of a program."""


class _RoutingSearch:
    """One search, in units in which the most loaded link carries at least 1."""

    def __init__(self, topology: Topology, demand: Floats, scaling: Scaling, paths: PathSet, end: float) -> None:
        self._topology, self._paths, self._scaling, self._end = topology, paths, scaling, end
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
        self._is_known_to_fit = False

    def run(self, tolerance: float, progress: Progress | None) -> Optimum:
        """Return the optimum."""
        if not self._unit:
            return self._answer(0.0)
        slope = _STEEP * 2.0 * self._frontier.tangents[0].level / self._frontier.least
        before = (math.inf, 0.0)
        is_exact = False
        while True:
            is_wider = self._step(slope, is_exact)
            corner = self._frontier.lowest()
            if progress is not None:
                progress(self._best_power * self._unit**3, corner.power * self._unit**3)
            if corner.power >= self._best_power * (1.0 - tolerance) or self._programs >= _MOST_PROGRAMS:
                return self._answer(corner.power)
            now = (self._best_power, corner.power)
            # Where an answer near the best one does not help any more, a vertex does.
            is_stuck = now == before and not is_wider
            if is_stuck and is_exact:
                return self._answer(corner.power)
            is_exact = is_stuck
            before = now
            if self._best_power < math.inf:
                slope = self._frontier.next_slope(corner)

    def best_known(self) -> Optimum:
        """Return the best until now; where no program gave any, shortest paths in equal parts, or XY, or YX.

        Raises RoutecastError: None of them keeps to the capacities.
        """
        arcs = allowed_arcs(self._topology, self._demand, PathSet.MINIMAL)
        way = distances(self._topology, np.ones(arcs.shape[1]), arcs)
        along_x = np.array([link.direction.step[0] != 0 for link in links(self._topology)], dtype=np.float64)
        for preferred in (np.zeros(arcs.shape[1]), along_x, 1.0 - along_x):
            if self._best_power < math.inf:
                break
            wanted = np.where(arcs, preferred, 0.0)
            self._take(conserving(self._topology, self._demand, wanted, arcs, way))
        if self._best_power == math.inf:
            msg = (
                "the time limit came before any routing was found that carries this traffic at full clock, and before "
                "a proof that none does: give it more time, or lower the load"
            )
            raise RoutecastError(msg)
        return self._answer(self._frontier.lowest().power)

    def _step(self, slope: float, is_exact: bool) -> bool:
        """Solve one program and take in its tangent and its flows; return whether it got more arcs for the next."""
        solved = self._solve(slope, exact=is_exact)
        lengths = 1.0 + solved.prices
        way = distances(self._topology, lengths, self._allowed)
        held = way if self._paths is PathSet.MINIMAL else distances(self._topology, lengths, self._program.arcs)
        level = self._shortest_sum(way)
        self._frontier.tangents.append(Tangent(level=level, slope=float(solved.prices.sum())))
        flow = conserving(self._topology, self._demand, solved.flow, self._program.arcs, held)
        if _most(flow) > self._full * (1.0 + _ROUNDING):
            if not self._is_known_to_fit:
                if not self._widen(lengths, way, held):
                    self._make_fit()
                return True
            solved = self._solve(slope, exact=True)
            flow = conserving(self._topology, self._demand, solved.flow, self._program.arcs, held)
        self._take(flow)
        return self._widen(lengths, way, held)

    def _make_fit(self) -> None:
        """Bound the load by full clock in the programs that follow, once it is known that some routing keeps to it.

        Raises Overload: None does.
        """
        while True:
            solved = self._solve(1.0, hops=0.0)
            prices = solved.prices
            if solved.load <= self._full * (1.0 + _ROUNDING) or not prices.any():
                break
            way = distances(self._topology, prices, self._allowed)
            held = distances(self._topology, prices, self._program.arcs)
            self._frontier.least = max(self._frontier.least, self._shortest_sum(way) / float(prices.sum()))
            if self._widen(prices, way, held):
                continue
            if self._frontier.least > self._full * (1.0 + _TOLERANCE):
                raise Overload.of(self._topology, prices, self._frontier.least * self._unit, self._paths)
            break
        self._is_known_to_fit = True
        self._frontier.most = max(self._full, self._frontier.least)
        # A little below where there is room, so that the solver's tolerance does not end above.
        most = max(self._full * (1.0 - 0.5 * _TOLERANCE), solved.load, self._slowest)
        self._program.bound_load(self._slowest, most)

    def _solve(self, slope: float, *, hops: float = 1.0, exact: bool = False) -> Solved:
        if time.monotonic() >= self._end:
            raise _TimeIsUpError
        self._programs += 1
        solved = self._program.solve(slope, hops=hops, exact=exact, until=self._end)
        if solved is None:
            raise _TimeIsUpError
        return solved

    def _shortest_sum(self, way: Floats) -> float:
        return float((self._demand * np.where(self._demand > 0.0, way, 0.0)).sum())

    def _take(self, flow: Floats) -> None:
        """Note a routing."""
        load, hop_flow = _most(flow), float(flow.sum())
        self._frontier.points.append(RoutingPoint(load=max(load, self._frontier.least), hop_flow=hop_flow))
        power = max(load, self._slowest) ** 2 * hop_flow
        if load <= self._full * (1.0 + _TOLERANCE) and power < self._best_power:
            self._best_power, self._best_flow = power, flow

    def _widen(self, lengths: Floats, way: Floats, held: Floats) -> bool:
        """Give the program the detours that its prices make worth while; return whether there were any.

        ``lengths``: what links cost; ``way`` and ``held``: shortest ways by all arcs, and by those that the program
        has.
        """
        if self._paths is PathSet.MINIMAL:
            return False
        slack = _SLACK * float(lengths.max())
        shorter = way < held - slack
        if not shorter.any():
            return False
        new = tight_arcs(self._topology, lengths, self._allowed, way, slack)
        new &= shorter[grid_of(self._topology).source, :].T
        return self._program.widen(new) > 0

    def _answer(self, bound: float) -> Optimum:
        load = min(1.0, _most(self._best_flow) * self._unit) if self._unit else 0.0
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

    ``demand``: with zeros on the diagonal.
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
