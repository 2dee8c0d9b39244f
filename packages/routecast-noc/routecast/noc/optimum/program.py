"""The optimum of one or more planes, and the linear program of one plane on HiGHS.

The program minimises ``hops * sum f + slope * b`` over the flows f and the largest link load b

::

    sum of f[t, l] over l out of u  -  sum of f[t, l] over l into u  =  demand[u, t]     for u != t
    sum of f[t, l] over t  <=  b                                                        for every link l
    0 <= f,   least <= b <= most

which are eqs. 6.4-6.6 of Li (2012) with b = 1/alpha. For a slope it gives a point (b, H) of the curve of least hop flow
H over b, and the link prices that prove a tangent to this curve.

An arc is a pair (destination router, link): the traffic to that router on that link. All traffic to a router is one
commodity, which is as exact as one commodity for each pair of routers and needs far fewer arcs.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import highspy
import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.topology import Floats, Ints, Topology, grid_of, shortest_hops

__all__ = [
    "Arcs",
    "FlowProgram",
    "FlowSolution",
    "Optimum",
    "PathSet",
    "PlaneFlow",
    "allowed_arcs",
    "conservation",
    "conserving",
    "run",
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

    ``alpha``: expansion factor; ``flow``: shape (routers, links): ``flow[t, l]`` is the traffic *to* router t on link
    l, in capacities.
    """

    alpha: float
    flow: Floats

    @property
    def link_loads(self) -> Floats:
        """Load of every link in capacities at full clock."""
        loads: Floats = np.sum(self.flow, axis=0)
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
        A power below which no routing over these paths and planes can go; proven by linear programming duality.
    programs
        Linear programs solved.
    """

    paths: PathSet
    planes: tuple[PlaneFlow, ...]
    lower_bound: float
    programs: int

    @property
    def power(self) -> float:
        """Power of the flows."""
        return sum(plane.power for plane in self.planes)

    @property
    def gap(self) -> float:
        """Largest possible distance of the flows from the optimum, relative to their power."""
        return 0.0 if self.power == 0 else max(0.0, 1 - self.lower_bound / self.power)


Arcs: TypeAlias = NDArray[np.bool_]
"""Whether traffic to router t may use link l, shape (routers, links)."""


def allowed_arcs(topology: Topology, demand: Floats, paths: PathSet) -> Arcs:
    """Return the arcs that flows may use, shape (routers, links); none leads to a router that receives nothing.

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


def tight_arcs(topology: Topology, lengths: Floats, arcs: Arcs, distance: Floats, slack: float) -> Arcs:
    """Return the arcs that lie on a shortest path, up to ``slack``; ``distance`` is that of :func:`distances`."""
    grid = grid_of(topology)
    with np.errstate(invalid="ignore"):
        beyond = lengths[None, :] + distance[grid.target, :].T - distance[grid.source, :].T
    return np.asarray(arcs & (beyond <= slack), dtype=np.bool_)


_POLL_S = 0.05


def silent_solver() -> highspy.Highs:
    """Return a solver without a model."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
    solver.silent()
    for option, value in (("threads", 1), ("primal_feasibility_tolerance", 1e-9), ("dual_feasibility_tolerance", 1e-9)):
        solver.setOptionValue(option, value)
    return solver


def pass_model(solver: highspy.Highs, program: highspy.HighsLp) -> None:
    """Give a solver a program.

    Raises RoutecastError: the solver changes the program, such as by dropping coefficients, which it calls a warning.
    """
    if solver.passModel(program) != highspy.HighsStatus.kOk:
        msg = "HiGHS changes the program that it is to solve: this is a defect of routecast, please report it"
        raise RoutecastError(msg)


class _Solving:
    """A thread that solves a model once and can be stopped.

    The locks of HiGHS's own threads belong to the whole process: Ctrl-C while one of them is held leaves it held, and
    the next search would wait for ever. Here flags hold the state. The only wait is for a lock, with a timeout: if
    Ctrl-C interrupts it, the flag is read a moment later.
    """

    def __init__(self, solver: highspy.Highs) -> None:
        self._solver = solver
        self._start_lock = threading.Lock()
        self._has_begun = self._is_stopped = self._is_over = False
        self._running = threading.Lock()
        self._running.acquire()

    def _interrupt(self, event: highspy.highs.HighsCallbackEvent) -> None:
        event.interrupt(self._is_stopped)  # HiGHS remembers an earlier stop

    def _solve(self) -> None:
        with self._start_lock:
            if self._is_stopped:
                return
            self._has_begun = True
        calls = (self._solver.cbSimplexInterrupt, self._solver.cbIpmInterrupt)
        for call in calls:
            call.subscribe(self._interrupt)
        try:
            self._solver.run()
        finally:
            for call in calls:
                call.unsubscribe(self._interrupt)
            self._is_over = True
            self._running.release()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._solve, daemon=True).start()

    def has_ended(self, wait_s: float) -> bool:
        """Wait for at most this time; return whether the thread has ended."""
        if not self._is_over:
            self._running.acquire(timeout=wait_s)
        return self._is_over

    def stop(self) -> None:
        """Stop the thread and wait for its end."""
        with self._start_lock:
            self._is_stopped = True
        while self._has_begun and not self.has_ended(_POLL_S):
            pass


def run(solver: highspy.Highs, *, until: float = math.inf) -> bool:
    """Solve the solver's model in a thread; return whether it ended before ``until`` (:func:`time.monotonic`).

    Raises KeyboardInterrupt: Ctrl-C; the solver is stopped first.
    """
    # HiGHS checks its own limit, on the clock of all its runs, also in places where it cannot be interrupted.
    solver.setOptionValue("time_limit", solver.getRunTime() + max(0.0, until - time.monotonic()))
    solving = _Solving(solver)
    is_done, wait_s = False, _POLL_S / 50
    try:
        solving.start()
        # Wait longer each time: quick programs return at once, slow ones are rarely polled.
        while not (is_done := solving.has_ended(wait_s)) and time.monotonic() < until:
            wait_s = min(1.2 * wait_s, _POLL_S)
    finally:
        solving.stop()
        solver.setOptionValue("time_limit", highspy.kHighsInf)
    return is_done and solver.getModelStatus() != highspy.HighsModelStatus.kTimeLimit


def solution(solver: highspy.Highs) -> highspy.HighsSolution:
    """Return the values and prices that a solver found.

    Raises RoutecastError: it found no values, or no prices.
    """
    values = solver.getSolution()
    if not values.value_valid or not values.dual_valid:
        status = solver.modelStatusToString(solver.getModelStatus())
        msg = f"HiGHS found no solution ({status}): this is a defect of routecast, please report it"
        raise RoutecastError(msg)
    return values


def conserving(topology: Topology, demand: Floats, flow: Floats, arcs: Arcs, distance: Floats) -> Floats:
    """Return flows that deliver exactly the demand and split at every router in the proportions of ``flow``.

    Only links that lead nearer to the destination are kept: an optimum uses no others, and without them there are no
    cycles. Where no link is left for the traffic at a router, it takes its shortest path.

    ``demand``: with zeros on the diagonal; ``flow``: traffic to router t on link l, nearly conserved; ``arcs``: what
    may be used; ``distance``: that of :func:`distances` over the arcs.
    """
    grid = grid_of(topology)
    destinations = np.flatnonzero(demand.any(axis=0))
    nearer = arcs[destinations] & (distance[grid.target][:, destinations] < distance[grid.source][:, destinations]).T
    # Far less than any share that matters: it only gives routers without traffic an outgoing link.
    tiny = 1e-15 * float(demand.sum())
    parts = np.where(nearer, np.maximum(flow[destinations], 0.0) + tiny, 0.0)
    # The last column stands for the links that do not exist.
    parts = np.concatenate([parts, np.zeros((destinations.size, 1))], axis=1)
    leaving = parts[:, grid.leaving].sum(axis=1)
    leaving[np.arange(destinations.size), destinations] = 1.0
    share = parts[:, :-1] / leaving[:, grid.source]
    sent = demand.T[destinations]
    carried = np.zeros(parts.shape)
    through = sent
    # Without cycles the flows settle after as many steps as the longest path has links.
    while True:
        carried[:, :-1] = through[:, grid.source] * share
        settled = sent + carried[:, grid.arriving].sum(axis=1)
        if np.array_equal(settled, through):
            break
        through = settled
    result = np.zeros(flow.shape)
    result[destinations] = carried[:, :-1]
    return result


# Up to here the simplex method, which starts from the last basis, is faster than the interior-point method.
_SIMPLEX_COLUMNS = 4000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlowSolution:
    """The flows and prices of a program, as exact as the solver's tolerances.

    ``flow``: shape (routers, links): traffic to router t on link l; ``prices``: shape (links,): saving by a little more
    capacity of a link, not negative; ``load``: b.
    """

    flow: Floats
    prices: Floats
    load: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conservation:
    """The constraints that conserve flow, a column for each arc, in compressed columns.

    ``destination`` and ``link``: shape (arcs,): the arc of each column; ``starts``, ``rows`` and ``values``: column c
    has ``values[starts[c]:starts[c + 1]]`` in ``rows[starts[c]:starts[c + 1]]``; row ``t * routers + u`` is the
    traffic to t at u.
    """

    destination: Ints
    link: Ints
    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    values: Floats


def conservation(topology: Topology, arcs: Arcs) -> Conservation:
    """Return the matrix of eq. 6.6 for these arcs; it has no row for traffic at its destination."""
    grid = grid_of(topology)
    destination, link = np.nonzero(arcs)
    rows = np.stack([grid.source[link], grid.target[link]], axis=1) + destination[:, None] * topology.router_count
    values = np.tile(np.array([1.0, -1.0]), (link.size, 1))
    is_kept = np.ones(rows.shape, dtype=np.bool_)
    is_kept[:, 1] = grid.target[link] != destination
    starts = np.concatenate([[0], np.cumsum(is_kept.sum(axis=1))])
    return Conservation(
        destination=destination,
        link=link,
        starts=starts.astype(np.int32),
        rows=rows[is_kept].astype(np.int32),
        values=values[is_kept],
    )


class FlowProgram:
    """The program over some of the arcs; arcs can be added, and the solver then starts from the last solution.

    ``demand``: with zeros on the diagonal; ``arcs``: the first arcs, enough for every flow to arrive; ``least`` and
    ``most``: bounds of b.
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
        pass_model(self._model, program)
        self._destination = np.empty(0, dtype=np.int64)
        self._link = np.empty(0, dtype=np.int64)
        self._hops = 1.0
        self._append(arcs)

    def widen(self, arcs: Arcs) -> int:
        """Add arcs and return how many of them are new."""
        new = arcs & ~self.arcs
        self._append(new)
        self.arcs |= new
        return int(new.sum())

    def bound_load(self, least: float, most: float) -> None:
        """Set the bounds of b."""
        self._model.changeColBounds(0, least, most)

    def solve(
        self, slope: float, *, hops: float = 1.0, exact: bool = False, until: float = math.inf
    ) -> FlowSolution | None:
        """Return the flows and prices of the least ``hops * H + slope * b``; None at the time limit.

        ``exact``: continue to a vertex where the interior-point method would stop near it; ``until``: the time limit,
        on the clock of :func:`time.monotonic`. Raises RoutecastError: the solver found no solution; KeyboardInterrupt:
        Ctrl-C; the solver is stopped first.
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
            # Where the interior-point method ends without a solution the simplex method takes over.
            if not self._run(is_small, until, crossover=True):
                return None
            values = solution(self._model)
        flow = np.zeros(self.arcs.shape)
        flow[self._destination, self._link] = np.asarray(values.col_value)[1:]
        prices = np.maximum(0.0, -np.asarray(values.row_dual)[self._first_capacity :])
        return FlowSolution(flow=flow, prices=prices, load=float(values.col_value[0]))

    def _append(self, arcs: Arcs) -> None:
        matrix = conservation(self._topology, arcs)
        new = matrix.link.size
        if not new:
            return
        # In every column the capacity row of the link comes last.
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
