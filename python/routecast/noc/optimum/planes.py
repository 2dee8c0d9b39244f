"""The optimum over several planes (Li 2012, eqs. 7.7-7.12): the least power of flows split over paths and planes.

Li (2012) solves a linear program for each pair of Q = 100 expansion factors per plane. Here the prices that one
program finds bound the cost of all clocks (:mod:`routecast.noc.optimum.planes`), costs that lie between bound the power
(:mod:`routecast.noc.optimum.planes`), and a program is solved only where these bounds are least and still too low. The
bound that comes out is evaluated from the prices by shortest paths: it holds to rounding, whatever the solver's
tolerances.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TypeAlias

import highspy
import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.optimum.program import (
    Arcs,
    Floats,
    Optimum,
    PathSet,
    PlaneFlow,
    allowed_arcs,
    conservation,
    conserving,
    distances,
    grid_of,
    run,
    shortest_hops,
    silent_solver,
    solution,
    tight_arcs,
)
from routecast.noc.optimum.single import optimum
from routecast.noc.power.scaling import Scaling
from routecast.noc.topology import Topology
from routecast.quantity.schema import value

__all__ = ["Cells", "Fan", "PlaneProgram", "Priced", "Pricing", "Symmetry", "optimum_of_planes"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Boxes of clocks b = 1/alpha.

    ``lower`` and ``upper``: shape (cells, planes): their least and greatest clocks; equal for a plane without scaling;
    ``proven``: shape (cells,): no clocks in the cell need less power.
    """

    lower: Floats
    upper: Floats
    proven: Floats

    def where(self, held: NDArray[np.bool_]) -> Cells:
        """Return some of them."""
        return Cells(lower=self.lower[held], upper=self.upper[held], proven=self.proven[held])

    def halves(self) -> Cells:
        """Return twice as many, each cut across its longest side."""
        rows = np.arange(self.proven.size)
        side = np.argmax(self.upper / self.lower, axis=1)
        middle = (self.lower[rows, side] + self.upper[rows, side]) / 2.0
        upper, lower = self.upper.copy(), self.lower.copy()
        upper[rows, side], lower[rows, side] = middle, middle
        return Cells(
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
        """The least that is proven for any of them; inf without cells."""
        return float(self.proven.min(initial=math.inf))


@value
class Symmetry:
    """Pairs (p, q), p < q in order, of equal planes: p runs at least as fast as q without loss of generality."""

    pairs: tuple[tuple[int, int], ...]

    def keeps(self, order: tuple[int, ...]) -> bool:
        """Return whether planes may stand in this order, fastest first."""
        return all(order.index(fast) < order.index(slow) for fast, slow in self.pairs)

    def ordered(self, cells: Cells) -> Cells:
        """Return the parts of the cells that have such clocks."""
        lower, upper = cells.lower.copy(), cells.upper.copy()
        for fast, slow in self.pairs:
            upper[:, slow] = np.minimum(upper[:, slow], upper[:, fast])
        for fast, slow in reversed(self.pairs):
            lower[:, fast] = np.maximum(lower[:, fast], lower[:, slow])
        parts = Cells(lower=lower, upper=upper, proven=cells.proven)
        held: NDArray[np.bool_] = np.all(lower <= upper, axis=1)
        return parts.where(held)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """Prices that a program found, and the costs of a hop that it found them at.

    What link prices prove about the least cost of planes, for all clocks at once.

    Let ``cost(b, c)`` be the least of sum over planes of c[p] * hop flow[p] over flows whose links carry at most w[p] *
    b[p]. Prices w[p, l] >= 0 prove, by linear programming duality,

    cost(b, c) >= sum over flows of demand * (least over planes of the shortest way with links of length c[p] + price) -
    sum over planes of b[p] * width[p] * (sum of the plane's prices),

    whatever the solver did to find them, since a flow stays on one plane: at given costs c the bound is linear in b.

    ``costs``: shape (planes,); ``prices``: shape (planes, links).
    """

    costs: Floats
    prices: Floats

    def at(self, costs: Floats) -> Floats:
        """Return prices that may prove much at other costs, shape (3, planes, links).

        The same; in proportion to the costs; and such that hop and price together stay what they were where links
        are full, as they do where a full plane's overflow goes over the other one.
        """
        together = np.maximum(0.0, (self.costs - costs)[:, None] + self.prices)
        return np.stack(
            [self.prices, self.prices * (costs / self.costs)[:, None], np.where(self.prices > 0.0, together, 0.0)]
        )


@dataclass(slots=True, kw_only=True, eq=False)
class Bounds:
    """The proven bounds at given costs c: ``cost(b, c) >= levels[m] - slopes[m] @ b`` for each m and all b.

    ``levels``: shape (bounds,); ``slopes``: shape (bounds, planes); ``taken``: how many of the prices found so far are
    in them.
    """

    levels: Floats
    slopes: Floats
    taken: int = 0

    def at(self, clocks: Floats) -> Floats:
        """Return the best of them at clocks of shape (points, planes); convex in the clocks."""
        best: Floats = (self.levels[:, None] - self.slopes @ clocks.T).max(axis=0)
        return best


class Pricing:
    """Evaluates prices for one demand.

    ``demand``: with zeros on the diagonal; ``arcs``: what traffic to a router may use; ``widths``: capacity of each
    plane's links relative to the first plane's.
    """

    def __init__(self, topology: Topology, demand: Floats, arcs: Arcs, widths: Floats) -> None:
        self._grid, self._widths = grid_of(topology), widths
        self._sent_to = np.flatnonzero(demand.any(axis=0))
        self._arcs = arcs[self._sent_to]
        self._demand = demand[:, self._sent_to]
        self.found: list[Priced] = []
        self._bounds: dict[tuple[float, ...], Bounds] = {}

    def bounds(self, costs: Floats) -> Bounds:
        """Return the bounds at these costs that all prices found so far prove."""
        planes = self._widths.size
        kept = self._bounds.setdefault(tuple(costs.tolist()), Bounds(levels=np.zeros(1), slopes=np.zeros((1, planes))))
        new = [priced.at(costs) for priced in self.found[kept.taken :]]
        if new:
            prices = np.concatenate(new)
            ways = np.minimum.reduce([self._ways(costs[p] + prices[:, p]) for p in range(planes)])
            # Routers that send nothing to a destination have no say, however far they are.
            proven = np.where(self._demand > 0.0, self._demand * np.where(self._demand > 0.0, ways, 0.0), 0.0)
            kept.levels = np.concatenate([kept.levels, proven.sum(axis=(1, 2))])
            kept.slopes = np.concatenate([kept.slopes, prices.sum(axis=2) * self._widths])
            kept.taken = len(self.found)
        return kept

    def _ways(self, lengths: Floats) -> Floats:
        """Return the shortest ways to all destinations for many lengths at once."""
        many, links = lengths.shape
        routers = self._grid.ahead.shape[1]
        # A link that is not there, or that the traffic may not use, is endlessly long.
        length = np.full((many, links + 1, self._sent_to.size), np.inf)
        length[:, :-1] = np.where(self._arcs.T, lengths[:, :, None], np.inf)
        first = [length[:, leaving] for leaving in self._grid.leaving]
        way = np.full((many, routers, self._sent_to.size), np.inf)
        way[:, self._sent_to, np.arange(self._sent_to.size)] = 0.0
        while True:
            shorter = way
            for hop, ahead in zip(first, self._grid.ahead, strict=True):
                shorter = np.minimum(shorter, hop + way[:, ahead])
            if np.array_equal(shorter, way):
                return way
            way = shorter


# A ray that takes less part in a vector than this has no say: it lies on the cone's other side.
_SLIGHT = 1e-9


class Fan:
    """Cones that together hold the costs of all clocks.

    What is proven about the power at any clocks, from the costs along a few rays.

    At clocks b the power is ``cost(b, b^2)`` (:mod:`routecast.noc.optimum.planes`). For given b, ``cost(b, c)`` is
    concave in the costs c and grows in proportion to them, so that in a cone of cost vectors it is nowhere below its
    interpolation over the rays::

        c = sum over rays k of  part_k * ray_k,  part_k >= 0:
        cost(b, c) >= sum over rays k of  part_k * cost(b, ray_k)

    Each ``cost(., ray_k)`` falls in b, and prices bound it from below by tangents. Hence for all b from a to z

        cost(b, b^2) >= cost(z, a^2) >= sum over rays k of  part_k(a^2) * (best tangent of ray k at z),

    with the cone that a^2 lies in. Where this is too low although the rays' costs are known well, the cone is split at
    a^2.

    ``pricing``: bounds along the rays; ``slowest``: the least clock of each plane; ``symmetry``: clocks that are never
    asked for.
    """

    def __init__(self, pricing: Pricing, slowest: Floats, symmetry: Symmetry) -> None:
        self._pricing = pricing
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
        """Return what is proven for all clocks from ``slow`` to ``fast``, each of shape (points, planes).

        With ``slow`` equal to ``fast``, what is proven at those clocks.
        """
        place, parts = self._placed(slow**2)
        total = np.zeros(len(slow))
        for number in np.unique(place):
            held = place == number
            at = fast[held]
            bounds = np.stack([self._pricing.bounds(ray).at(at) for ray in self._cones[number]], axis=1)
            total[held] = (parts[held] * bounds).sum(axis=1)
        return total

    def rays(self, costs: Floats) -> Floats:
        """Return the rays, shape (rays, planes), that a cost vector is interpolated over, largest part first."""
        place, parts = self._placed(costs[None])
        order = np.argsort(-parts[0], kind="stable")
        rays: Floats = self._cones[place[0]][order][parts[0][order] > _SLIGHT]
        return rays

    def split(self, costs: Floats) -> bool:
        """Let a cost vector be a ray of its own; return False where it is one already."""
        place, parts = self._placed(costs[None])
        within = np.flatnonzero(parts[0] > _SLIGHT)
        if within.size < 2:
            return False
        rays = self._cones.pop(int(place[0]))
        for ray in within:
            cone = rays.copy()
            cone[ray] = costs
            self._cones.append(cone)
        return True

    def _placed(self, costs: Floats) -> tuple[Floats, Floats]:
        """Return the cone that each cost vector lies in, and the parts of its rays, of shape (points, rays)."""
        every = np.stack([costs @ np.linalg.inv(rays) for rays in self._cones])
        # Beside the right cone some part is negative; within it, by rounding at most.
        place = every.min(axis=2).argmax(axis=0)
        return place, np.maximum(0.0, every[place, np.arange(len(costs))])


# Up to here the simplex method, which starts from the last basis, is faster than the interior-point method.
_SIMPLEX_COLUMNS = 1200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolvedPlanes:
    """The solver's answer, as exact as its tolerances.

    The linear program of eqs. 7.7-7.12 for given clocks and costs, on HiGHS.

    With b = 1/alpha the clock of each plane, c its cost of a flit-hop (b^2 in Li (2012)) and w its width::

        minimise  sum over planes of  c[p] * (sum of f[p, t, l])  +  penalty[p] * z[p]

        0 <= out of u - into u of f[p, t]  <= demand[u, t]       what enters plane p at u and goes to t
        sum over planes of that             = demand[u, t]
        sum of f[p, t, l] over t           <= w[p] * (b[p] + z[p])    for every link l

    What enters a plane stays on it, so that no flit changes planes on its way: the first line is eq. 7.12 without
    variables of its own. The overload z keeps the program solvable at every b; its penalty is steeper than what any
    plane's power can gain from a slower clock.

    ``flow``: shape (planes, routers, links): traffic to router t on link l; ``prices``: shape (planes, links): what a
    little more capacity of a link would save; not negative.
    """

    flow: Floats
    prices: Floats


class PlaneProgram:
    """The program for one demand; clocks and costs change.

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
        # Any prices prove a bound, and any split of flows is one: neither has to be a vertex.
        self._model.setOptionValue("run_crossover", "off")
        self._first_capacity = 0
        self._model.passModel(self._fill(topology, demand, arcs))

    def _fill(self, topology: Topology, demand: Floats, arcs: Arcs) -> highspy.HighsLp:
        from scipy.sparse import csc_array

        matrix = conservation(topology, arcs)
        planes, count = self._widths.size, matrix.link.size
        # Only routers that something is sent to have rows of conservation.
        used = np.flatnonzero(np.bincount(matrix.rows, minlength=self._routers**2))
        numbers = np.zeros(self._routers**2, dtype=np.int64)
        numbers[used] = np.arange(used.size)
        net_rows = numbers[matrix.rows]
        net_columns = np.repeat(np.arange(count), np.diff(matrix.starts))
        wanted = demand.T.ravel()[used]
        # Of two planes, what enters one is within 0 and the demand if what enters the other is.
        entering = planes if planes > 2 else planes - 1
        self._first_capacity = (1 + entering) * used.size
        rows, columns, values = [], [], []
        for plane in range(planes):
            net = [0, 1 + plane] if plane < entering else [0]
            for block in net:
                rows.append(net_rows + block * used.size)
                columns.append(net_columns + plane * count)
                values.append(matrix.values)
            capacity = self._first_capacity + plane * self._links
            rows += [capacity + matrix.link, capacity + np.arange(self._links)]
            columns += [plane * count + np.arange(count), np.full(self._links, planes * count + plane)]
            values += [np.ones(count), np.full(self._links, -self._widths[plane])]
        shape = (self._first_capacity + planes * self._links, planes * count + planes)
        places = (np.concatenate(rows), np.concatenate(columns))
        whole = csc_array((np.concatenate(values), places), shape=shape)
        free, capacities = highspy.kHighsInf, np.zeros(planes * self._links)
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = shape
        program.col_cost_ = np.zeros(shape[1])
        program.col_lower_, program.col_upper_ = np.zeros(shape[1]), np.full(shape[1], free)
        program.row_lower_ = np.concatenate([wanted, np.zeros(entering * used.size), capacities - free])
        program.row_upper_ = np.concatenate([wanted, np.tile(wanted, entering), capacities])
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = whole.indptr.astype(np.int32)
        program.a_matrix_.index_ = whole.indices.astype(np.int32)
        program.a_matrix_.value_ = whole.data
        return program

    def solve(self, clocks: Floats, costs: Floats, *, until: float = math.inf) -> SolvedPlanes | None:
        """Return the flows and prices of the least cost at these clocks; None where there was no time for them.

        ``clocks`` and ``costs``: b, and the cost of one flit-hop; ``until``: when to give up, on the clock of
        :func:`time.monotonic`. Raises RoutecastError: the solver found none; KeyboardInterrupt: Ctrl-C; the solver is
        stopped first.
        """
        arcs, planes = self._destination.size, self._widths.size
        price = np.concatenate([np.repeat(costs, arcs), self._penalties])
        self._model.changeColsCost(price.size, np.arange(price.size, dtype=np.int32), price)
        capacity = np.repeat(clocks * self._widths, self._links)
        for place, most in enumerate(capacity.tolist()):
            self._model.changeRowBounds(self._first_capacity + place, -highspy.kHighsInf, most)
        if self._is_small:
            self._model.run()
        elif not run(self._model, until=until):
            return None
        flows = solution(self._model)
        flow = np.zeros((planes, self._routers, self._links))
        values = np.asarray(flows.col_value)[: planes * arcs].reshape(planes, arcs)
        flow[:, self._destination, self._link] = values
        prices = np.maximum(0.0, -np.asarray(flows.row_dual)[self._first_capacity :])
        return SolvedPlanes(flow=flow, prices=prices.reshape(planes, self._links))


Progress: TypeAlias = Callable[[float, float], None]

# A load above capacity by rounding alone is no overload.
_ROUNDING = 1e-9
# Ways that differ by less, relative to their length, make no detour worth while.
_SLACK = 1e-6
# Li's own search is precise to about 1 %.
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
    flows until then and the bound proven until then (:attr:`~routecast.noc.optimum.program.Optimum.gap` says which).

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
    return _PlaneSearch(topology, demand, scalings, wide, paths).run(gap, time_limit_s, progress)


class _PlaneSearch:
    """One search."""

    def __init__(
        self, topology: Topology, demand: Floats, scalings: Sequence[Scaling], widths: Floats, paths: PathSet
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
        cells = Cells(lower=self._slowest[None], upper=np.ones((1, self._slowest.size)), proven=np.array([floor]))
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

        Returns what is left: none, or some of which one at least has less than ``target`` proven halfway. The least
        power that is proven for what has been ruled out; inf where nothing was.
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

        Raises Overload: it cannot carry the traffic: neither can the planes, since together they are as wide at full
        clock.
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
