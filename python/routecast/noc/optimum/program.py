"""The linear program behind the optimum, on HiGHS: ``minimise hops * sum f + slope * b`` over flows and the load b.

::

    sum of f[t, l] over l out of u  -  sum of f[t, l] over l into u  =  demand[u, t]     for u != t
    sum of f[t, l] over t  <=  b                                                        for every link l
    0 <= f,   least <= b <= most

It is eqs. 6.4-6.6 of Li (2012) with b = 1/alpha: for one slope it gives a point (b, H) of the line of least hop flow
H over b, and the link prices that prove a tangent to it.

Which links the traffic to each router may use, and how long its shortest way over them is at given link prices.

An arc is a pair (destination router, link): the traffic to that router on that link. All traffic to one router is one
commodity, which is as exact as one commodity for each pair and has that many times fewer arcs.

What the exact optimum answers.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

import highspy
import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.topology import Direction, Topology, link_numbers, links

__all__ = [
    "Arcs",
    "Floats",
    "FlowProgram",
    "Grid",
    "Ints",
    "Optimum",
    "PathSet",
    "PlaneFlow",
    "Solved",
    "allowed_arcs",
    "conservation",
    "conserving",
    "distances",
    "grid_of",
    "run",
    "shortest_hops",
    "silent_solver",
    "solution",
    "tight_arcs",
]


class PathSet(StrEnum):
    """Which paths flows may use."""

    MINIMAL = "minimal"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaneFlow:
    """One plane of an optimum.

    ``alpha``: its expansion factor; ``flow``: shape (routers, links): the traffic *to* router t on link l at ``flow[t,
    l]``, in capacities.
    """

    alpha: float
    flow: NDArray[np.float64]

    @property
    def link_loads(self) -> NDArray[np.float64]:
        """Load of every link in capacities at full clock."""
        loads: NDArray[np.float64] = np.sum(self.flow, axis=0)
        return loads

    @property
    def power(self) -> float:
        """Sum of the loads over alpha squared (eq. 6.4)."""
        return float(self.flow.sum()) / self.alpha**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """The optimum of eqs. 6.4-6.6 (one plane) or 7.7-7.12 (more).

    Attributes
    ----------
    paths
        Which paths were allowed.
    planes
        The flows of each plane.
    lower_bound
        No routing over these paths and planes needs less power; proven by linear programming duality.
    programs
        Linear programs solved.
    """

    paths: PathSet
    planes: tuple[PlaneFlow, ...]
    lower_bound: float
    programs: int

    @property
    def power(self) -> float:
        """Power of the flows that were found."""
        return sum(plane.power for plane in self.planes)

    @property
    def gap(self) -> float:
        """How far they can be from the best, relative to their power."""
        return 0.0 if self.power == 0 else max(0.0, 1 - self.lower_bound / self.power)


Arcs: TypeAlias = NDArray[np.bool_]
"""Shape (routers, links): whether traffic to router t may use link l."""

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """The links of a topology as arrays.

    ``source`` and ``target``: shape (links,): the routers at the ends of each link; ``leaving``: shape (directions,
    routers): the link that leaves a router in a direction; the number of links where none does; ``ahead``: shape
    (directions, routers): the router that it leads to; the router itself where none does; ``arriving``: shape
    (directions, routers): the link that arrives at a router in a direction; the number of links where none does.
    """

    source: Ints
    target: Ints
    leaving: Ints
    ahead: Ints
    arriving: Ints


@lru_cache(maxsize=16)
def grid_of(topology: Topology) -> Grid:
    """Return the arrays of a topology."""
    every, numbers = links(topology), link_numbers(topology)
    leaving = np.full((len(Direction), topology.router_count), len(every), dtype=np.int64)
    arriving = leaving.copy()
    ahead = np.tile(np.arange(topology.router_count), (len(Direction), 1))
    for place, direction in enumerate(Direction):
        for router in range(topology.router_count):
            number = numbers.get((router, direction))
            if number is not None:
                leaving[place, router] = number
                ahead[place, router] = every[number].target
                arriving[place, every[number].target] = number
    return Grid(
        source=np.array([link.source for link in every], dtype=np.int64),
        target=np.array([link.target for link in every], dtype=np.int64),
        leaving=leaving,
        ahead=ahead,
        arriving=arriving,
    )


@lru_cache(maxsize=16)
def shortest_hops(topology: Topology) -> Floats:
    """Return the least number of links between routers, shape (routers, routers)."""
    numbers = np.arange(topology.router_count)
    x, y = numbers % topology.columns, numbers // topology.columns
    away_x, away_y = np.abs(x[:, None] - x[None, :]), np.abs(y[:, None] - y[None, :])
    if topology.is_torus:
        away_x = np.minimum(away_x, topology.columns - away_x)
        away_y = np.minimum(away_y, topology.rows - away_y)
    return np.asarray(away_x + away_y, dtype=np.float64)


def allowed_arcs(topology: Topology, demand: Floats, paths: PathSet) -> Arcs:
    """Return the arcs that flows may use, shape (routers, links): none to a router that nothing is sent to.

    ``demand``: with zeros on the diagonal.
    """
    grid = grid_of(topology)
    if paths is PathSet.MINIMAL:
        hops = shortest_hops(topology)
        allowed: Arcs = hops.T[:, grid.target] < hops.T[:, grid.source]
    else:
        # Traffic that has arrived does not leave again.
        allowed = np.not_equal(grid.source[None, :], np.arange(topology.router_count)[:, None])
    is_sent_to: Arcs = np.any(demand > 0.0, axis=0)
    return np.logical_and(allowed, is_sent_to[:, None])


def distances(topology: Topology, lengths: Floats, arcs: Arcs) -> Floats:
    """Return the length of the shortest way from each router to each, shape (routers, routers); inf where none is.

    ``lengths``: not negative; ``arcs``: what traffic to a router may use.
    """
    grid = grid_of(topology)
    routers = topology.router_count
    # A link that is not there is endlessly long.
    length = np.full((lengths.size + 1, routers), np.inf)
    np.copyto(length[:-1], lengths[:, None], where=arcs.T)
    first = length[grid.leaving]
    way = np.full((routers, routers), np.inf)
    np.fill_diagonal(way, 0.0)
    while True:
        shorter = np.minimum((first + way[grid.ahead]).min(axis=0), way)
        if np.array_equal(shorter, way):
            return way
        way = shorter


def tight_arcs(topology: Topology, lengths: Floats, arcs: Arcs, way: Floats, slack: float) -> Arcs:
    """Return those of the arcs that lie on a shortest way, up to ``slack``; ``way`` is :func:`distances`."""
    grid = grid_of(topology)
    with np.errstate(invalid="ignore"):
        beyond = lengths[None, :] + way[grid.target, :].T - way[grid.source, :].T
    return np.asarray(arcs & (beyond <= slack), dtype=np.bool_)


_PATIENCE_S = 0.05


def silent_solver() -> highspy.Highs:
    """Return a solver without a model."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
    solver.silent()
    for option, value in (("threads", 1), ("primal_feasibility_tolerance", 1e-9), ("dual_feasibility_tolerance", 1e-9)):
        solver.setOptionValue(option, value)
    return solver


class _Solving:
    """A thread that solves a model once, and can be told to stop.

    HiGHS offers threads of its own. Their locks are one for the whole process, and a Ctrl-C that strikes while one is
    taken leaves it taken: the next search would wait for ever. Here flags tell how far it is, and the only lock that is
    waited for is a bell: if its ring is lost to a Ctrl-C, the flag is seen a moment later.
    """

    def __init__(self, solver: highspy.Highs) -> None:
        self._solver = solver
        self._deciding = threading.Lock()
        self._begun = self._stopped = self._over = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def _heard(self, event: highspy.highs.HighsCallbackEvent) -> None:
        event.interrupt(self._stopped)  # HiGHS remembers an earlier stop

    def _solve(self) -> None:
        with self._deciding:
            if self._stopped:
                return
            self._begun = True
        calls = (self._solver.cbSimplexInterrupt, self._solver.cbIpmInterrupt)
        for call in calls:
            call.subscribe(self._heard)
        try:
            self._solver.run()
        finally:
            for call in calls:
                call.unsubscribe(self._heard)
            self._over = True
            self._bell.release()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._solve, daemon=True).start()

    def ended(self, patience_s: float) -> bool:
        """Wait a while; return whether it is over."""
        if not self._over:
            self._bell.acquire(timeout=patience_s)
        return self._over

    def stop(self) -> None:
        """Return when nothing solves any more, whatever was under way."""
        with self._deciding:
            self._stopped = True
        while self._begun and not self.ended(_PATIENCE_S):
            pass


def run(solver: highspy.Highs, *, until: float = math.inf) -> bool:
    """Solve its model in a thread; return whether it came to an end before ``until`` (:func:`time.monotonic`).

    Raises KeyboardInterrupt: Ctrl-C; the solver is stopped first.
    """
    # It looks at its own limit, on the clock of all its runs, in places where it does not let itself be stopped.
    solver.setOptionValue("time_limit", solver.getRunTime() + max(0.0, until - time.monotonic()))
    solving = _Solving(solver)
    is_done, patience_s = False, _PATIENCE_S / 50
    try:
        solving.start()
        # Longer each time, so that quick programs are not waited for and slow ones not asked often.
        while not (is_done := solving.ended(patience_s)) and time.monotonic() < until:
            patience_s = min(1.2 * patience_s, _PATIENCE_S)
    finally:
        solving.stop()
        solver.setOptionValue("time_limit", highspy.kHighsInf)
    return is_done and solver.getModelStatus() != highspy.HighsModelStatus.kTimeLimit


def solution(solver: highspy.Highs) -> highspy.HighsSolution:
    """Return what it found.

    Raises RoutecastError: no values, or no prices.
    """
    values = solver.getSolution()
    if not values.value_valid or not values.dual_valid:
        status = solver.modelStatusToString(solver.getModelStatus())
        msg = f"HiGHS ends without flows ({status}); this is a fault of the program, please report it"
        raise RoutecastError(msg)
    return values


def conserving(topology: Topology, demand: Floats, flow: Floats, arcs: Arcs, way: Floats) -> Floats:
    """Return flows of which exactly the demand arrives, split at every router as the given ones.

    Only links that come nearer to the destination, by the lengths of ``way``, are kept: an optimum uses no others, and
    so there are no circles. A router whose traffic would have no link left sends it on its shortest way.

    ``demand``: with zeros on the diagonal; ``flow``: traffic to router t on link l, nearly conserved; ``arcs``: what
    may be used; ``way``: length of the shortest way over the arcs from a router to another.
    """
    grid = grid_of(topology)
    active = np.flatnonzero(demand.any(axis=0))
    nearer = arcs[active] & (way[grid.target][:, active] < way[grid.source][:, active]).T
    # Far less than any share that matters: it only gives routers without traffic a way on.
    faint = 1e-15 * float(demand.sum())
    parts = np.where(nearer, np.maximum(flow[active], 0.0) + faint, 0.0)
    # One more column stands for the links that are not there.
    parts = np.concatenate([parts, np.zeros((active.size, 1))], axis=1)
    leaving = parts[:, grid.leaving].sum(axis=1)
    leaving[np.arange(active.size), active] = 1.0
    share = parts[:, :-1] / leaving[:, grid.source]
    wanted = demand.T[active]
    carried = np.zeros(parts.shape)
    through = wanted
    # Without circles it is settled after as many steps as the longest way has links.
    while True:
        carried[:, :-1] = through[:, grid.source] * share
        settled = wanted + carried[:, grid.arriving].sum(axis=1)
        if np.array_equal(settled, through):
            break
        through = settled
    result = np.zeros(flow.shape)
    result[active] = carried[:, :-1]
    return result


# Up to here the simplex method, which starts from the last basis, is faster than the interior-point method.
_SIMPLEX_COLUMNS = 4000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """The solver's answer, as exact as its tolerances.

    ``flow``: shape (routers, links): traffic to router t on link l; ``prices``: shape (links,): what a little more
    capacity of a link would save; not negative; ``load``: b.
    """

    flow: Floats
    prices: Floats
    load: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conservation:
    """The rows of conservation of some arcs, a column for each arc, in compressed columns.

    ``destination`` and ``link``: shape (arcs,): what each column stands for; ``starts``, ``rows`` and ``values``:
    column c has ``values[starts[c]:starts[c + 1]]`` in ``rows[starts[c]:starts[c + 1]]``; row ``t * routers + u`` is
    the traffic to t at u.
    """

    destination: NDArray[np.int64]
    link: NDArray[np.int64]
    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    values: Floats


def conservation(topology: Topology, arcs: Arcs) -> Conservation:
    """Return the matrix of eq. 6.6 for these arcs; traffic that reaches its destination has no row there."""
    grid = grid_of(topology)
    destination, link = np.nonzero(arcs)
    rows = np.stack([grid.source[link], grid.target[link]], axis=1) + destination[:, None] * topology.router_count
    values = np.tile(np.array([1.0, -1.0]), (link.size, 1))
    there = np.ones(rows.shape, dtype=np.bool_)
    there[:, 1] = grid.target[link] != destination
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return Conservation(
        destination=destination,
        link=link,
        starts=starts.astype(np.int32),
        rows=rows[there].astype(np.int32),
        values=values[there],
    )


class FlowProgram:
    """The program over some of the arcs; more of them can come later, and it starts from where it was.

    ``demand``: with zeros on the diagonal; ``arcs``: arcs that it begins with: enough for every flow to arrive;
    ``least`` and ``most``: bounds of b.
    """

    def __init__(self, topology: Topology, demand: Floats, arcs: Arcs, *, least: float, most: float) -> None:
        self._topology = topology
        self.arcs = arcs.copy()
        routers, count = topology.router_count, grid_of(topology).source.size
        self._first_capacity = routers * routers
        net = demand.T.ravel()
        free = highspy.kHighsInf
        capacity = np.arange(self._first_capacity, self._first_capacity + count, dtype=np.int32)
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = 1, self._first_capacity + count
        program.col_cost_ = np.zeros(1)
        program.col_lower_, program.col_upper_ = np.array([least]), np.array([most])
        program.row_lower_ = np.concatenate([net, np.full(count, -free)])
        program.row_upper_ = np.concatenate([net, np.zeros(count)])
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = np.array([0, count], dtype=np.int32)
        program.a_matrix_.index_ = capacity
        program.a_matrix_.value_ = np.full(count, -1.0)
        self._model = silent_solver()
        self._model.passModel(program)
        self._destination = np.empty(0, dtype=np.int64)
        self._link = np.empty(0, dtype=np.int64)
        self._hops = 1.0
        self._append(arcs)

    def widen(self, arcs: Arcs) -> int:
        """Take in more arcs and return how many of them are new."""
        new = arcs & ~self.arcs
        self._append(new)
        self.arcs |= new
        return int(new.sum())

    def bound_load(self, least: float, most: float) -> None:
        """Set the bounds of b."""
        self._model.changeColBounds(0, least, most)

    def solve(self, slope: float, *, hops: float = 1.0, exact: bool = False, until: float = math.inf) -> Solved | None:
        """Return the flows and prices of the least ``hops * H + slope * b``; None where there was no time for them.

        ``slope`` and ``hops``: what is minimised; ``exact``: go on to a vertex where the interior-point method would
        stop near it; ``until``: when to give up, on the clock of :func:`time.monotonic`. Raises RoutecastError: the
        solver found none; KeyboardInterrupt: Ctrl-C; the solver is stopped first.
        """
        columns = self._link.size
        self._model.changeColCost(0, slope)
        if hops != self._hops:
            numbers = np.arange(1, columns + 1, dtype=np.int32)
            self._model.changeColsCost(columns, numbers, np.full(columns, hops))
            self._hops = hops
        is_small = columns <= _SIMPLEX_COLUMNS
        if not self._run(is_small, until, crossover=exact):
            return None
        values = self._model.getSolution()
        if not values.value_valid or not values.dual_valid:
            # Where the interior-point method ends with nothing the simplex method takes over.
            if not self._run(is_small, until, crossover=True):
                return None
            values = solution(self._model)
        flow = np.zeros(self.arcs.shape)
        flow[self._destination, self._link] = np.asarray(values.col_value)[1:]
        prices = np.maximum(0.0, -np.asarray(values.row_dual)[self._first_capacity :])
        return Solved(flow=flow, prices=prices, load=float(values.col_value[0]))

    def _append(self, arcs: Arcs) -> None:
        matrix = conservation(self._topology, arcs)
        new = matrix.link.size
        if not new:
            return
        # The capacity row of its link comes last in every column.
        rows = np.insert(matrix.rows, matrix.starts[1:], (self._first_capacity + matrix.link).astype(np.int32))
        values = np.insert(matrix.values, matrix.starts[1:], 1.0)
        starts = (matrix.starts[:-1] + np.arange(new)).astype(np.int32)
        self._model.addCols(
            new,
            np.full(new, self._hops),
            np.zeros(new),
            np.full(new, highspy.kHighsInf),
            rows.size,
            starts,
            rows,
            values,
        )
        self._destination = np.concatenate([self._destination, matrix.destination])
        self._link = np.concatenate([self._link, matrix.link])

    def _run(self, by_simplex: bool, until: float, *, crossover: bool) -> bool:
        self._model.setOptionValue("solver", "simplex" if by_simplex else "ipx")
        self._model.setOptionValue("run_crossover", "on" if crossover else "off")
        if by_simplex:
            self._model.run()
            return True
        return run(self._model, until=until)
