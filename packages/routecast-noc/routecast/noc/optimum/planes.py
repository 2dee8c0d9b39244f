"""The optimum over several planes (Li 2012, eqs. 7.7-7.12): the least power of flows split over paths and planes.

Li (2012) solves a linear program for each pair of Q = 100 expansion factors per plane. Here the link prices of a
program bound the cost at all clocks (:class:`LinkPrices`), the bounds along a few cost vectors bound the power
(:class:`ConeBounds`), and another program is solved only where these bounds are least and still too low. The bound is
evaluated from the prices by shortest paths: it holds up to rounding, independent of the solver's tolerances.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import highspy
import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.optimum.program import (
    Arcs,
    Optimum,
    PathSet,
    PlaneFlow,
    allowed_arcs,
    conservation,
    conserving,
    pass_model,
    run,
    silent_solver,
    solution,
    tight_arcs,
)
from routecast.noc.optimum.single import optimum
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Floats, Topology, distances, grid_of, shortest_hops
from routecast.progress import BoundProgress
from routecast.quantity.schema import value

__all__ = ["ClockCells", "ConeBounds", "LinkPrices", "PlaneProgram", "PriceBounds", "Symmetry", "optimum_of_planes"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClockCells:
    """Boxes of clocks b = 1/alpha, a dimension for each plane.

    ``lower`` and ``upper``: shape (cells, planes): least and greatest clock, equal for a plane without scaling;
    ``proven``: shape (cells,): lower bound of the power at all clocks of the cell.
    """

    lower: Floats
    upper: Floats
    proven: Floats

    def where(self, is_kept: NDArray[np.bool_]) -> ClockCells:
        """Return the selected cells."""
        return ClockCells(lower=self.lower[is_kept], upper=self.upper[is_kept], proven=self.proven[is_kept])

    def halves(self) -> ClockCells:
        """Return twice as many cells, each cut across its longest side."""
        rows = np.arange(self.proven.size)
        side = np.argmax(self.upper / self.lower, axis=1)
        middle = (self.lower[rows, side] + self.upper[rows, side]) / 2.0
        upper, lower = self.upper.copy(), self.lower.copy()
        upper[rows, side], lower[rows, side] = middle, middle
        return ClockCells(
            lower=np.concatenate([self.lower, lower]),
            upper=np.concatenate([upper, self.upper]),
            proven=np.concatenate([self.proven, self.proven]),
        )

    @property
    def middles(self) -> Floats:
        """The clocks halfway, shape (cells, planes)."""
        return (self.lower + self.upper) / 2.0

    @property
    def least(self) -> float:
        """The least proven bound over the cells; inf without cells."""
        return float(self.proven.min(initial=math.inf))


@value
class Symmetry:
    """Pairs (p, q), p < q, of equal planes: without loss of generality p runs at least as fast as q."""

    pairs: tuple[tuple[int, int], ...]

    def keeps(self, order: tuple[int, ...]) -> bool:
        """Return whether the planes may have this order, fastest first."""
        return all(order.index(fast) < order.index(slow) for fast, slow in self.pairs)

    def ordered(self, cells: ClockCells) -> ClockCells:
        """Return the parts of the cells whose clocks have this order."""
        lower, upper = cells.lower.copy(), cells.upper.copy()
        for fast, slow in self.pairs:
            upper[:, slow] = np.minimum(upper[:, slow], upper[:, fast])
        for fast, slow in reversed(self.pairs):
            lower[:, fast] = np.maximum(lower[:, fast], lower[:, slow])
        is_kept: NDArray[np.bool_] = np.all(lower <= upper, axis=1)
        return ClockCells(lower=lower, upper=upper, proven=cells.proven).where(is_kept)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkPrices:
    """Link prices of a program, and the costs of a hop that they were found at; they bound the cost at all clocks.

    Let ``cost(b, c)`` be the least sum over planes of c[p] * hop flow[p] over all flows whose links carry at most
    width[p] * b[p]. Prices >= 0 prove, by linear programming duality::

        cost(b, c) >= sum over flows of demand * (least over planes of the shortest path, links of length c[p] + price)
                      - sum over planes of b[p] * width[p] * (sum of the plane's prices)

    however the solver found them, since a flow stays on one plane: at given costs c the bound is linear in b.

    ``costs``: shape (planes,); ``prices``: shape (planes, links).
    """

    costs: Floats
    prices: Floats

    def at(self, costs: Floats) -> Floats:
        """Return prices that may prove a good bound at other costs, shape (3, planes, links).

        The same prices; prices in proportion to the costs; and prices that leave the sum of hop and price unchanged on
        full links, as it is where the overflow of a full plane goes over the other one.
        """
        sums_kept = np.maximum(0.0, (self.costs - costs)[:, None] + self.prices)
        return np.stack(
            [self.prices, self.prices * (costs / self.costs)[:, None], np.where(self.prices > 0.0, sums_kept, 0.0)]
        )


@dataclass(slots=True, kw_only=True, eq=False)
class LinearBounds:
    """The proven bounds at given costs c: ``cost(b, c) >= levels[m] - slopes[m] @ b`` for each m and all b.

    ``levels``: shape (bounds,); ``slopes``: shape (bounds, planes); ``used_prices``: number of prices that are in them.
    """

    levels: Floats
    slopes: Floats
    used_prices: int = 0

    def at(self, clocks: Floats) -> Floats:
        """Return the best bound at clocks of shape (points, planes); convex in the clocks."""
        best: Floats = (self.levels[:, None] - self.slopes @ clocks.T).max(axis=0)
        return best


class PriceBounds:
    """The bounds that link prices prove for a demand between routers.

    ``demand``: with zeros on the diagonal; ``arcs``: what traffic to a router may use; ``widths``: capacity of each
    plane's links relative to the first plane's.
    """

    def __init__(self, topology: Topology, demand: Floats, arcs: Arcs, widths: Floats) -> None:
        self._grid, self._widths = grid_of(topology), widths
        self._sent_to = np.flatnonzero(demand.any(axis=0))
        self._arcs = arcs[self._sent_to]
        self._demand = demand[:, self._sent_to]
        self.prices: list[LinkPrices] = []
        self._bounds: dict[tuple[float, ...], LinearBounds] = {}

    def bounds(self, costs: Floats) -> LinearBounds:
        """Return the bounds at these costs that all prices so far prove."""
        planes = self._widths.size
        bounds = self._bounds.setdefault(
            tuple(costs.tolist()), LinearBounds(levels=np.zeros(1), slopes=np.zeros((1, planes)))
        )
        new = [prices.at(costs) for prices in self.prices[bounds.used_prices :]]
        if new:
            prices = np.concatenate(new)
            shortest = np.minimum.reduce([self._distances(costs[p] + prices[:, p]) for p in range(planes)])
            # Routers that send nothing to a destination do not count, however far they are.
            proven = np.where(self._demand > 0.0, self._demand * np.where(self._demand > 0.0, shortest, 0.0), 0.0)
            bounds.levels = np.concatenate([bounds.levels, proven.sum(axis=(1, 2))])
            bounds.slopes = np.concatenate([bounds.slopes, prices.sum(axis=2) * self._widths])
            bounds.used_prices = len(self.prices)
        return bounds

    def _distances(self, lengths: Floats) -> Floats:
        """Return the distances to all destinations for many lengths of the links at once."""
        count, links = lengths.shape
        routers = self._grid.ahead.shape[1]
        # A link that does not exist, or that the traffic may not use, is infinitely long.
        length = np.full((count, links + 1, self._sent_to.size), np.inf)
        length[:, :-1] = np.where(self._arcs.T, lengths[:, :, None], np.inf)
        first = [length[:, leaving] for leaving in self._grid.leaving]
        distance = np.full((count, routers, self._sent_to.size), np.inf)
        distance[:, self._sent_to, np.arange(self._sent_to.size)] = 0.0
        while True:
            shorter = distance
            for hop, ahead in zip(first, self._grid.ahead, strict=True):
                shorter = np.minimum(shorter, hop + distance[:, ahead])
            if np.array_equal(shorter, distance):
                return distance
            distance = shorter


# A ray with a smaller part in a vector does not count: it lies on the cone's other side.
_MIN_PART = 1e-9


class ConeBounds:
    """The bounds of the power at any clocks, from the bounds along the rays of cones that hold all cost vectors.

    At clocks b the power is ``cost(b, b^2)`` (:class:`LinkPrices`). For given b, ``cost(b, c)`` is concave in the costs
    c and grows in proportion to them, so that in a cone of cost vectors it is nowhere below its interpolation over the
    rays::

        c = sum over rays k of  part_k * ray_k,  part_k >= 0:
        cost(b, c) >= sum over rays k of  part_k * cost(b, ray_k)

    Each ``cost(., ray_k)`` falls in b, and prices bound it from below by tangents. Hence for all b from a to z::

        cost(b, b^2) >= cost(z, a^2) >= sum over rays k of  part_k(a^2) * (best tangent of ray k at z)

    with the cone that holds a^2. Where this is too low although the bounds along the rays are tight, the cone is split
    at a^2.

    ``prices``: bounds along the rays; ``slowest``: the least clock of each plane; ``symmetry``: the clocks that matter.
    """

    def __init__(self, prices: PriceBounds, slowest: Floats, symmetry: Symmetry) -> None:
        self._prices = prices
        planes = slowest.size
        # A cone for each order of the planes' costs; a little wider where nothing scales, so that it has an inside.
        least = min(float(slowest.min()) ** 2, 0.5)
        self._cones: list[Floats] = []
        for order in permutations(range(planes)):
            if symmetry.keeps(order):
                rays = np.full((planes, planes), least)
                for count in range(planes):
                    rays[count, list(order[: count + 1])] = 1.0
                self._cones.append(rays)

    def proven(self, slow: Floats, fast: Floats) -> Floats:
        """Return the bound of the power for all clocks from ``slow`` to ``fast``, each of shape (points, planes).

        With ``slow`` equal to ``fast`` it is the bound at those clocks.
        """
        cones, parts = self._cones_of(slow**2)
        total = np.zeros(len(slow))
        for cone in np.unique(cones):
            is_inside = cones == cone
            bounds = np.stack([self._prices.bounds(ray).at(fast[is_inside]) for ray in self._cones[cone]], axis=1)
            total[is_inside] = (parts[is_inside] * bounds).sum(axis=1)
        return total

    def rays(self, costs: Floats) -> Floats:
        """Return the rays, shape (rays, planes), that a cost vector is interpolated over, largest part first."""
        cones, parts = self._cones_of(costs[None])
        order = np.argsort(-parts[0], kind="stable")
        rays: Floats = self._cones[cones[0]][order][parts[0][order] > _MIN_PART]
        return rays

    def split(self, costs: Floats) -> bool:
        """Make a cost vector a ray of its own; return False where it already is a ray."""
        cones, parts = self._cones_of(costs[None])
        within = np.flatnonzero(parts[0] > _MIN_PART)
        if within.size < 2:
            return False
        rays = self._cones.pop(int(cones[0]))
        for ray in within:
            cone = rays.copy()
            cone[ray] = costs
            self._cones.append(cone)
        return True

    def _cones_of(self, costs: Floats) -> tuple[Floats, Floats]:
        """Return the cone that holds each cost vector, and the parts of its rays, of shape (points, rays)."""
        parts = np.stack([costs @ np.linalg.inv(rays) for rays in self._cones])
        # Outside its cone a vector has a negative part; inside, by rounding at most.
        cones = parts.min(axis=2).argmax(axis=0)
        return cones, np.maximum(0.0, parts[cones, np.arange(len(costs))])


# Up to here the simplex method, which starts from the last basis, is faster than the interior-point method.
_SIMPLEX_COLUMNS = 1200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaneSolution:
    """The flows and prices of a program, as exact as the solver's tolerances.

    ``flow``: shape (planes, routers, links): traffic to router t on link l; ``prices``: shape (planes, links): saving
    by a little more capacity of a link, not negative.
    """

    flow: Floats
    prices: Floats


class PlaneProgram:
    """The linear program of eqs. 7.7-7.12 for a demand, on HiGHS; clocks and costs change.

    With b = 1/alpha the clock of each plane, c its cost of a flit-hop (b^2 in Li (2012)) and w its width::

        minimise  sum over planes of  c[p] * (sum of f[p, t, l])  +  penalty[p] * z[p]

        0 <= out of u - into u of f[p, t]  <= demand[u, t]       what enters plane p at u and goes to t
        sum over planes of that             = demand[u, t]
        sum of f[p, t, l] over t           <= w[p] * (b[p] + z[p])    for every link l

    What enters a plane stays on it, so that no flit changes planes on its way: the first constraint is eq. 7.12 without
    variables of its own. The overload z keeps the program feasible at every b; its penalty is steeper than any saving
    by a slower clock.

    ``demand``: with zeros on the diagonal; ``arcs``: what traffic to a router may use; ``widths``: capacity of each
    plane's links relative to the first plane's; ``penalties``: cost of the overload z.
    """

    def __init__(self, topology: Topology, demand: Floats, arcs: Arcs, widths: Floats, penalties: Floats) -> None:
        self._widths = widths
        self._penalties = penalties
        self._routers = topology.router_count
        self._destination, self._link = np.nonzero(arcs)
        self._links = grid_of(topology).source.size
        self._model = silent_solver()
        self._is_small = self._widths.size * self._link.size <= _SIMPLEX_COLUMNS
        self._model.setOptionValue("solver", "simplex" if self._is_small else "ipx")
        # Any prices prove a bound and any flows are a routing: neither has to be a vertex.
        self._model.setOptionValue("run_crossover", "off")
        self._first_capacity = 0
        pass_model(self._model, self._fill(topology, demand, arcs))

    def _fill(self, topology: Topology, demand: Floats, arcs: Arcs) -> highspy.HighsLp:
        from scipy.sparse import csc_array

        matrix = conservation(topology, arcs)
        planes, count = self._widths.size, matrix.link.size
        # Only routers that receive traffic have rows of conservation.
        used = np.flatnonzero(np.bincount(matrix.rows, minlength=self._routers**2))
        numbers = np.zeros(self._routers**2, dtype=np.int64)
        numbers[used] = np.arange(used.size)
        net_rows = numbers[matrix.rows]
        net_columns = np.repeat(np.arange(count), np.diff(matrix.starts))
        net_demand = demand.T.ravel()[used]
        # With two planes, the bounds on what enters the first plane imply those of the second.
        entering = planes if planes > 2 else planes - 1
        self._first_capacity = (1 + entering) * used.size
        rows, columns, values = [], [], []
        for plane in range(planes):
            for block in [0, 1 + plane] if plane < entering else [0]:
                rows.append(net_rows + block * used.size)
                columns.append(net_columns + plane * count)
                values.append(matrix.values)
            capacity = self._first_capacity + plane * self._links
            rows += [capacity + matrix.link, capacity + np.arange(self._links)]
            columns += [plane * count + np.arange(count), np.full(self._links, planes * count + plane)]
            values += [np.ones(count), np.full(self._links, -self._widths[plane])]
        shape = (self._first_capacity + planes * self._links, planes * count + planes)
        indices = (np.concatenate(rows), np.concatenate(columns))
        constraints = csc_array((np.concatenate(values), indices), shape=shape)
        free, capacities = highspy.kHighsInf, np.zeros(planes * self._links)
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = shape
        program.col_cost_ = np.zeros(shape[1])
        program.col_lower_, program.col_upper_ = np.zeros(shape[1]), np.full(shape[1], free)
        program.row_lower_ = np.concatenate([net_demand, np.zeros(entering * used.size), capacities - free])
        program.row_upper_ = np.concatenate([net_demand, np.tile(net_demand, entering), capacities])
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = constraints.indptr.astype(np.int32)
        program.a_matrix_.index_ = constraints.indices.astype(np.int32)
        program.a_matrix_.value_ = constraints.data
        return program

    def solve(self, clocks: Floats, costs: Floats, *, until: float = math.inf) -> PlaneSolution | None:
        """Return the flows and prices of the least cost at these clocks; None at the time limit.

        ``costs``: of one flit-hop; ``until``: the time limit, on the clock of :func:`time.monotonic`. Raises
        RoutecastError: the solver found no solution; KeyboardInterrupt: Ctrl-C; the solver is stopped first.
        """
        arcs, planes = self._destination.size, self._widths.size
        price = np.concatenate([np.repeat(costs, arcs), self._penalties])
        self._model.changeColsCost(price.size, np.arange(price.size, dtype=np.int32), price)
        capacity = np.repeat(clocks * self._widths, self._links)
        for row, limit in enumerate(capacity.tolist(), start=self._first_capacity):
            self._model.changeRowBounds(row, -highspy.kHighsInf, limit)
        if self._is_small:
            self._model.run()
        elif not run(self._model, until=until):
            return None
        solved = solution(self._model)
        flow = np.zeros((planes, self._routers, self._links))
        values = np.asarray(solved.col_value)[: planes * arcs].reshape(planes, arcs)
        flow[:, self._destination, self._link] = values
        prices = np.maximum(0.0, -np.asarray(solved.row_dual)[self._first_capacity :])
        return PlaneSolution(flow=flow, prices=prices.reshape(planes, self._links))


# A load above capacity by rounding alone is no overload.
_ROUNDING = 1e-9
# A smaller difference, relative to the length of a path, makes no detour worth while.
_SLACK = 1e-6
# Li's own search is precise to about 1 %.
_GAP = 0.01
_TIME_LIMIT_S = 60.0
# So many cells locate the least bound well enough.
_FINE_CELLS = 1000
# Above so many cells, another program is faster than more cells.
_MAX_CELLS = 100_000


def optimum_of_planes(
    topology: Topology,
    demand: Floats,
    scalings: Sequence[Scaling],
    *,
    widths: Sequence[float] | None = None,
    paths: PathSet = PathSet.ANY,
    gap: float = _GAP,
    time_limit_s: float = _TIME_LIMIT_S,
    on_progress: BoundProgress | None = None,
) -> Optimum:
    """Return flows of nearly the least power over all planes, and a proven bound that no others go below.

    The search ends when the bound is within ``gap`` of the power, at the time limit, or on Ctrl-C, and returns the best
    flows and bound so far (:attr:`~routecast.noc.optimum.program.Optimum.gap` is their distance).

    Parameters
    ----------
    topology : Topology
        Of every plane.
    demand : array of shape (routers, routers)
        Traffic between routers in link capacities of the first plane, zeros on the diagonal
        (:meth:`routecast.noc.traffic.Traffic.between_routers`).
    scalings : sequence of Scaling
        The range of alpha of each plane.
    widths : sequence of float, optional
        Capacity of each plane's links relative to the first plane's; 1 by default. Flows and loads of the optimum are
        in capacities of the first plane.
    paths : PathSet
        Shortest paths only, or any.
    gap : float
        Relative gap between power and bound at which it stops.
    time_limit_s : float
        Time limit; the linear program that runs at the limit may exceed it.
    on_progress : callable, optional
        Is called with the least power and the proven bound so far, after each round of the search.

    Raises
    ------
    Overload
        No routing carries the traffic at full clock on all planes together.
    RoutecastError
        No planes, another number of widths, or a gap outside 0..1; or at the time limit no routing that carries the
        traffic is known.
    """
    plane_widths = np.ones(len(scalings)) if widths is None else np.array(widths, dtype=np.float64)
    _check(scalings, plane_widths, gap)
    if not demand.any():
        empty = np.zeros((topology.router_count, grid_of(topology).source.size))
        idle = tuple(PlaneFlow(alpha=scaling.alpha_max, flow=empty) for scaling in scalings)
        return Optimum(paths=paths, planes=idle, lower_bound=0.0, programs=0)
    return _PlaneSearch(topology, demand, scalings, plane_widths, paths).run(gap, time_limit_s, on_progress)


class _PlaneSearch:
    """A search for the optimum over several planes."""

    def __init__(
        self, topology: Topology, demand: Floats, scalings: Sequence[Scaling], widths: Floats, paths: PathSet
    ) -> None:
        self._topology, self._demand, self._paths = topology, demand, paths
        self._scalings, self._widths = scalings, widths
        self._slowest = np.array([scaling.slowest for scaling in scalings])
        self._arcs = allowed_arcs(topology, demand, paths)
        self._best_power = math.inf
        self._best: tuple[PlaneFlow, ...] = ()
        self._current = allowed_arcs(topology, demand, PathSet.MINIMAL)
        links = grid_of(topology).source.size
        # (b + z)^2 F - b^2 F <= 3 F z where b + z <= 1, and no plane's hop flow F is above its links' capacity.
        self._penalties = 3.0 * links * widths
        self._program = PlaneProgram(topology, demand, self._current, widths, self._penalties)
        self._prices = PriceBounds(topology, demand, self._arcs, widths)
        # Without prices: every flit-hop costs at least that of the cheapest plane.
        free = np.zeros((widths.size, links))
        self._prices.prices.append(LinkPrices(costs=np.ones(widths.size), prices=free))
        self._symmetry = Symmetry(
            pairs=tuple(
                (p, q)
                for p, q in combinations(range(widths.size), 2)
                if widths[p] == widths[q] and scalings[p] == scalings[q]
            )
        )
        self._bounds = ConeBounds(self._prices, self._slowest, self._symmetry)
        self._programs = 0
        self._end = math.inf

    def run(self, gap: float, time_limit_s: float, on_progress: BoundProgress | None) -> Optimum:
        """Search until the power is within ``gap`` of the bound; return the optimum."""
        self._end = time.monotonic() + time_limit_s
        self._start_from_merged_plane()
        hops = float((self._demand * shortest_hops(self._topology)).sum())
        # No power is below that of all hops at the slowest clock.
        floor = hops * float(self._slowest.min()) ** 2
        cells = ClockCells(lower=self._slowest[None], upper=np.ones((1, self._slowest.size)), proven=np.array([floor]))
        proven, ruled_out = floor, math.inf
        try:
            while True:
                cells, least = self._narrowed(cells, self._best_power * (1.0 - gap))
                ruled_out = min(ruled_out, least)
                proven = max(floor, min(ruled_out, cells.least, self._best_power))
                if on_progress is not None:
                    on_progress(self._best_power, proven)
                if not cells.proven.size or time.monotonic() >= self._end:
                    break
                self._tighten(cells, gap)
        except KeyboardInterrupt:
            pass  # the bound so far still holds
        return self._answer(proven)

    def _narrowed(self, cells: ClockCells, target: float) -> tuple[ClockCells, float]:
        """Halve cells and rule out those that need at least ``target`` power.

        Returns the cells that are left, either none or at least one whose bound at its middle is below ``target``; and
        the least bound of the cells ruled out, inf if there are none.
        """
        least = math.inf
        while cells.proven.size:
            cells = self._symmetry.ordered(cells)
            proven = np.maximum(cells.proven, self._bounds.proven(cells.lower, cells.upper))
            is_out = proven >= target
            least = min(least, float(proven[is_out].min(initial=math.inf)))
            cells = ClockCells(lower=cells.lower, upper=cells.upper, proven=proven).where(~is_out)
            middles = cells.middles
            is_bad = self._bounds.proven(middles, middles) < target
            if cells.proven.size > (_FINE_CELLS if is_bad.any() else _MAX_CELLS):
                break
            cells = cells.halves()
        return cells, least

    def _tighten(self, cells: ClockCells, gap: float) -> None:
        """Solve programs at the clocks of the least bound until the power is within the gap of the bound."""
        middles = cells.middles
        clocks = middles[self._bounds.proven(middles, middles).argmin()][None]
        costs = clocks[0] ** 2
        for ray in (costs, *self._bounds.rays(costs)):
            self._solve(clocks[0], ray)
            if self._bounds.proven(clocks, clocks)[0] >= self._best_power * (1.0 - gap):
                return
        self._bounds.split(costs)

    def _start_from_merged_plane(self) -> None:
        """Start from the optimum of one plane that is as wide as all planes together, its flows shared out by width.

        Raises Overload: that plane cannot carry the traffic; then the planes, which together are as wide, cannot
        either.
        """
        scaling = Scaling(alpha_max=min(scaling.alpha_max for scaling in self._scalings))
        merged = optimum(
            self._topology,
            self._demand / float(self._widths.sum()),
            scaling,
            paths=self._paths,
            tolerance=1e-3,
            time_limit_s=self._end - time.monotonic(),
        )
        self._programs += merged.programs
        self._keep_if_best(self._widths[:, None, None] * merged.planes[0].flow)

    def _solve(self, clocks: Floats, costs: Floats) -> None:
        """Solve a program with all detours worth while; keep its prices and its flows."""
        while True:
            self._programs += 1
            solved = self._program.solve(clocks, costs, until=self._end)
            if solved is None:
                return
            lengths = costs[:, None] + solved.prices
            if not self._widen(lengths):
                break
        self._prices.prices.append(LinkPrices(costs=costs, prices=solved.prices))
        entering = [_entering(self._topology, flow) for flow in solved.flow]
        total = np.sum(entering, axis=0)
        flows = []
        for plane, demand in enumerate(entering):
            # The demand enters up to the solver's tolerance, a smaller one not at all: each plane gets its part of it.
            equal = np.full(total.shape, 1.0 / len(entering))
            part = np.divide(demand, total, out=equal, where=total > 0.0)
            distance = distances(self._topology, lengths[plane], self._current)
            flows.append(conserving(self._topology, part * self._demand, solved.flow[plane], self._current, distance))
        self._keep_if_best(np.stack(flows))

    def _widen(self, lengths: Floats) -> bool:
        """Add the detours that are worth while at these lengths of the links; return whether there are any."""
        if self._paths is PathSet.MINIMAL:
            return False
        shortest = [distances(self._topology, length, self._arcs) for length in lengths]
        current = [distances(self._topology, length, self._current) for length in lengths]
        if self._cost(shortest) >= self._cost(current) * (1.0 - _SLACK):
            return False
        grid, widened = grid_of(self._topology), self._current.copy()
        for length, short, long in zip(lengths, shortest, current, strict=True):
            slack = _SLACK * float(length.max())
            with np.errstate(invalid="ignore"):
                shorter = short < long - slack
            detours = tight_arcs(self._topology, length, self._arcs, short, slack)
            widened |= detours & shorter[grid.source, :].T
        if np.array_equal(widened, self._current):
            return False
        self._current = widened
        self._program = PlaneProgram(self._topology, self._demand, widened, self._widths, self._penalties)
        return True

    def _cost(self, distances: Sequence[Floats]) -> float:
        """Return the cost of all flows, each on its shortest path on its best plane."""
        return float((self._demand * np.where(self._demand > 0.0, np.minimum.reduce(distances), 0.0)).sum())

    def _keep_if_best(self, flow: Floats) -> None:
        """Keep flows, shape (planes, routers, links), if the links carry them and they need the least power so far."""
        loads = flow.sum(axis=1).max(axis=1) / self._widths
        if (loads > 1.0 + _ROUNDING).any():
            return
        clocks = np.maximum(np.minimum(loads, 1.0), self._slowest)
        power = float(clocks**2 @ flow.sum(axis=(1, 2)))
        if power < self._best_power:
            self._best_power = power
            self._best = tuple(
                PlaneFlow(alpha=scaling.alpha(load), flow=part)
                for scaling, load, part in zip(self._scalings, loads.tolist(), flow, strict=True)
            )

    def _answer(self, bound: float) -> Optimum:
        power = sum(plane.power for plane in self._best)
        return Optimum(paths=self._paths, planes=self._best, lower_bound=min(bound, power), programs=self._programs)


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
