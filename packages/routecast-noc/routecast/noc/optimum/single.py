"""The exact optimum of one plane (Li 2012, eqs. 6.4-6.6): the least power over all routings and expansion factors.

Li (2012) solves a linear program for each of Q = 100 expansion factors. Here the largest link load b = 1/alpha is a
variable with a price: a program gives a corner of the curve of least hop flow over b and a tangent to it, and another
program is solved only where the tangents still allow less power than the best routing.

A program starts with the shortest paths and adds the detours that its link prices make worth while, until there are
none: that is exact for any paths, and most flows never need a detour.
"""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from routecast.errors import RoutecastError
from routecast.noc.optimum.program import (
    FlowProgram,
    FlowSolution,
    Optimum,
    PathSet,
    PlaneFlow,
    allowed_arcs,
    conserving,
    tight_arcs,
)
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Floats, Topology, distances, grid_of, links, shortest_hops
from routecast.progress import BoundProgress
from routecast.quantity.schema import field, value

__all__ = ["Overload", "optimum"]


# Most links that a message names.
_MAX_NAMED_LINKS = 12
# A factor that is nearer to 1 than this is written as 1 plus or minus its distance.
_SMALL_DISTANCE = 1e-4


class Overload(RoutecastError):
    """No routing carries the traffic at full clock.

    ``links``: numbers of the links that are the bottleneck; ``load``: load of the most loaded link under the best
    routing, in capacities; over 1.
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
        named = ", ".join(topology.link_name(link) for link in priced[:_MAX_NAMED_LINKS])
        if len(priced) > _MAX_NAMED_LINKS:
            named += f" and {len(priced) - _MAX_NAMED_LINKS} more"
        subject = "no routing over shortest paths" if paths is PathSet.MINIMAL else "no routing"
        message = (
            f"{subject} carries this traffic at full clock: even the best loads the links {named} with {_factor(load)} "
            f"times their capacity; at most {_factor(1 / load)} times this traffic fits, so lower the load"
        )
        return cls(priced, load, message)


def _factor(value: float) -> str:
    distance = value - 1.0
    if abs(distance) >= _SMALL_DISTANCE:
        return f"{value:.6g}"
    return f"(1 {'+' if distance > 0 else '-'} {abs(distance):.2e})"


@value
class Tangent:
    """A lower bound of the least hop flow H over the largest link load b: H >= level - slope * b for all b.

    Link prices w >= 0 prove, for every routing whose links carry at most b::

        H >= sum over flows of demand * (shortest path with links of length 1 + w) - b * sum of w

    because each flow pays at least its shortest path, and the links together take at most b * sum of w in prices. So a
    tangent holds however the solver found its prices. H is convex; the power at b is b^2 H (eq. 6.4 with b = 1/alpha).
    Along a line H = p - q b with q >= 0 power rises and then falls, so that between two points it is least at an end:
    the least power that the tangents allow is where two of them meet, or at an end of the range.
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
    """The point at which the tangents allow the least power."""

    load: float = field("b")
    hop_flow: float = field("The least H that the tangents allow there")
    steeper: float = field("Slope of the tangent on its left; inf at the left end of the range")
    flatter: float = field("Slope of the tangent on its right; 0 at the right end of the range")

    @property
    def power(self) -> float:
        """b^2 H."""
        return self.load**2 * self.hop_flow


@dataclasses.dataclass(slots=True, kw_only=True)
class Frontier:
    """The known part of the curve of least hop flow over the largest link load b.

    ``least`` and ``most``: range of b; ``tangents``: bounds from below; ``points``: routings, which bound from above.
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
            crossings = (level[:, None] - level[None, :]) / (slope[:, None] - slope[None, :])
        inside = crossings[(crossings > self.least) & (crossings < self.most)]
        loads = np.unique(np.concatenate([[self.least, self.most], inside]))
        lines = level[None, :] - loads[:, None] * slope[None, :]
        highest = lines.max(axis=1)
        lowest = int(np.argmin(loads**2 * highest))
        load, hop_flow = float(loads[lowest]), float(highest[lowest])
        # The tangents that hold just left and just right of it.
        touching = slope[lines[lowest] >= hop_flow * (1.0 - 1e-12)]
        return Corner(
            load=load,
            hop_flow=hop_flow,
            steeper=math.inf if load == self.least else float(touching.max()),
            flatter=0.0 if load == self.most else float(touching.min()),
        )

    def next_slope(self, corner: Corner) -> float:
        """Return a slope whose tangent cuts the corner off, or whose point is the corner.

        Any slope between the slopes of its two tangents works. Between two known points this is the slope of the line
        through them, so that the search ends after as many steps as the curve has corners.
        """
        natural = 2.0 * corner.hop_flow / corner.load
        left = [point for point in self.points if point.load < corner.load]
        right = [point for point in self.points if point.load > corner.load]
        if left and right:
            before = max(left, key=lambda point: point.load)
            after = min(right, key=lambda point: point.load)
            chord = (before.hop_flow - after.hop_flow) / (after.load - before.load)
            if corner.flatter < chord < corner.steeper:
                return chord
        if corner.load == self.least:
            return max(natural, 8.0 * corner.flatter)
        return min(max(natural, corner.flatter), corner.steeper)


# The first slope, as a multiple of the slope of the power: so steep that no better point lies on its left.
_FIRST_STEEPNESS = 4.0
# Prices that differ by rounding alone make no detour worth while.
_SLACK = 1e-9
# A search that converges solves far fewer programs.
_MAX_PROGRAMS = 200
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
    on_progress: BoundProgress | None = None,
) -> Optimum:
    """Return flows of the least power and a proven bound that no others go below.

    Parameters
    ----------
    topology : Topology
    demand : array of shape (routers, routers)
        Traffic between routers in link capacities, zeros on the diagonal
        (:meth:`routecast.noc.traffic.Traffic.between_routers`).
    scaling : Scaling
        The range of alpha.
    paths : PathSet
        Shortest paths only, or any.
    tolerance : float
        Relative gap between power and bound at which it stops; :attr:`Optimum.gap` is the gap reached.
    time_limit_s : float, optional
        Time after which the search returns its best flows and bound so far.
    on_progress : callable, optional
        Is called after each program with the least power and the proven bound so far.

    Raises
    ------
    Overload
        No routing carries the traffic at full clock.
    RoutecastError
        At the time limit no routing that carries the traffic is known.
    KeyboardInterrupt
        Ctrl-C; the solver is stopped first.
    """
    end = math.inf if time_limit_s is None else time.monotonic() + time_limit_s
    search = _RoutingSearch(topology, demand, scaling, paths, end)
    try:
        return search.run(tolerance, on_progress)
    except _TimeIsUpError:
        return search.best_so_far()


class _TimeIsUpError(Exception):
    """The time limit ended a program."""


class _RoutingSearch:
    """A search for the best routing, in units in which the most loaded link carries at least 1."""

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
        self._is_load_limited = False

    def run(self, tolerance: float, on_progress: BoundProgress | None) -> Optimum:
        """Search until the bound is within the tolerance; return the optimum."""
        if not self._unit:
            return self._answer(0.0)
        slope = _FIRST_STEEPNESS * 2.0 * self._frontier.tangents[0].level / self._frontier.least
        last_bounds = (math.inf, 0.0)
        is_exact = False
        while True:
            is_wider = self._step(slope, is_exact)
            corner = self._frontier.lowest()
            if on_progress is not None:
                on_progress(self._best_power * self._unit**3, corner.power * self._unit**3)
            if corner.power >= self._best_power * (1.0 - tolerance) or self._programs >= _MAX_PROGRAMS:
                return self._answer(corner.power)
            bounds = (self._best_power, corner.power)
            # If a solution near the optimum brings no progress, a vertex does.
            is_stuck = bounds == last_bounds and not is_wider
            if is_stuck and is_exact:
                return self._answer(corner.power)
            is_exact = is_stuck
            last_bounds = bounds
            if self._best_power < math.inf:
                slope = self._frontier.next_slope(corner)

    def best_so_far(self) -> Optimum:
        """Return the best routing so far; before the first one, shortest paths in equal parts, or XY, or YX.

        Raises RoutecastError: each of them loads a link over its capacity.
        """
        arcs = allowed_arcs(self._topology, self._demand, PathSet.MINIMAL)
        shortest = distances(self._topology, np.ones(arcs.shape[1]), arcs)
        along_x = np.array([link.direction.step[0] != 0 for link in links(self._topology)], dtype=np.float64)
        for preferred in (np.zeros(arcs.shape[1]), along_x, 1.0 - along_x):
            if self._best_power < math.inf:
                break
            split = np.where(arcs, preferred, 0.0)
            self._keep_if_best(conserving(self._topology, self._demand, split, arcs, shortest))
        if self._best_power == math.inf:
            msg = (
                "the time limit came before any routing was found that carries this traffic at full clock, and before "
                "a proof that none does: give it more time, or lower the load"
            )
            raise RoutecastError(msg)
        return self._answer(self._frontier.lowest().power)

    def _step(self, slope: float, is_exact: bool) -> bool:
        """Solve a program and keep its tangent and flows; return whether the next program has more arcs."""
        solved = self._solve(slope, exact=is_exact)
        lengths = 1.0 + solved.prices
        shortest = distances(self._topology, lengths, self._allowed)
        current = shortest if self._paths is PathSet.MINIMAL else distances(self._topology, lengths, self._program.arcs)
        level = self._shortest_sum(shortest)
        self._frontier.tangents.append(Tangent(level=level, slope=float(solved.prices.sum())))
        flow = conserving(self._topology, self._demand, solved.flow, self._program.arcs, current)
        if _max_load(flow) > self._full * (1.0 + _ROUNDING):
            if not self._is_load_limited:
                if not self._widen(lengths, shortest, current):
                    self._limit_link_load()
                return True
            solved = self._solve(slope, exact=True)
            flow = conserving(self._topology, self._demand, solved.flow, self._program.arcs, current)
        self._keep_if_best(flow)
        return self._widen(lengths, shortest, current)

    def _limit_link_load(self) -> None:
        """Limit the link load to full clock in the next programs, once a routing within this limit is known.

        Raises Overload: no routing is within the limit.
        """
        while True:
            solved = self._solve(1.0, hops=0.0)
            prices = solved.prices
            if solved.load <= self._full * (1.0 + _ROUNDING) or not prices.any():
                break
            shortest = distances(self._topology, prices, self._allowed)
            current = distances(self._topology, prices, self._program.arcs)
            self._frontier.least = max(self._frontier.least, self._shortest_sum(shortest) / float(prices.sum()))
            if self._widen(prices, shortest, current):
                continue
            if self._frontier.least > self._full * (1.0 + _TOLERANCE):
                raise Overload.of(self._topology, prices, self._frontier.least * self._unit, self._paths)
            break
        self._is_load_limited = True
        self._frontier.most = max(self._full, self._frontier.least)
        # A little below where there is room, so that the solver's tolerance does not end above.
        limit = max(self._full * (1.0 - 0.5 * _TOLERANCE), solved.load, self._slowest)
        self._program.bound_load(self._slowest, limit)

    def _solve(self, slope: float, *, hops: float = 1.0, exact: bool = False) -> FlowSolution:
        if time.monotonic() >= self._end:
            raise _TimeIsUpError
        self._programs += 1
        solved = self._program.solve(slope, hops=hops, exact=exact, until=self._end)
        if solved is None:
            raise _TimeIsUpError
        return solved

    def _shortest_sum(self, shortest: Floats) -> float:
        return float((self._demand * np.where(self._demand > 0.0, shortest, 0.0)).sum())

    def _keep_if_best(self, flow: Floats) -> None:
        """Keep a routing as a point of the curve, and as the best one if it needs the least power."""
        load, hop_flow = _max_load(flow), float(flow.sum())
        self._frontier.points.append(RoutingPoint(load=max(load, self._frontier.least), hop_flow=hop_flow))
        power = max(load, self._slowest) ** 2 * hop_flow
        if load <= self._full * (1.0 + _TOLERANCE) and power < self._best_power:
            self._best_power, self._best_flow = power, flow

    def _widen(self, lengths: Floats, shortest: Floats, current: Floats) -> bool:
        """Add the detours that the prices make worth while to the program; return whether there are any.

        ``lengths``: cost of the links; ``shortest`` and ``current``: distances over all arcs, and over those of the
        program.
        """
        if self._paths is PathSet.MINIMAL:
            return False
        slack = _SLACK * float(lengths.max())
        shorter = shortest < current - slack
        if not shorter.any():
            return False
        new = tight_arcs(self._topology, lengths, self._allowed, shortest, slack)
        new &= shorter[grid_of(self._topology).source, :].T
        return self._program.widen(new) > 0

    def _answer(self, bound: float) -> Optimum:
        load = min(1.0, _max_load(self._best_flow) * self._unit) if self._unit else 0.0
        plane = PlaneFlow(alpha=self._scaling.alpha(load), flow=self._best_flow * self._unit)
        return Optimum(
            paths=self._paths,
            planes=(plane,),
            lower_bound=min(bound * self._unit**3, plane.power),
            programs=self._programs,
        )


def _max_load(flow: Floats) -> float:
    return float(flow.sum(axis=0).max())


def least_load(topology: Topology, demand: Floats) -> float:
    """Return a lower bound of the most loaded link's load under every routing.

    The links that cross a cut share the demand across it; the cuts are along rows, columns and around routers.
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
    # Links come in opposite pairs: as many lead in as out.
    crossing = (inside[:, grid.source] & ~inside[:, grid.target]).sum(axis=1)
    return float((np.maximum(out, back) / crossing).max())
