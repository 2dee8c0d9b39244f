"""The linear program of eqs. 7.7-7.12 for given clocks and costs, on HiGHS.

With b = 1/alpha the clock of each plane, c its cost of a flit-hop (b^2 in the thesis) and w its width::

    minimise  sum over planes of  c[p] * (sum of f[p, t, l])  +  penalty[p] * z[p]

    0 <= out of u - into u of f[p, t]  <= demand[u, t]       what enters plane p at u and goes to t
    sum over planes of that             = demand[u, t]
    sum of f[p, t, l] over t           <= w[p] * (b[p] + z[p])    for every link l

What enters a plane stays on it, so that no flit changes planes on its way: the first line is eq. 7.12 without
variables of its own. The overload z keeps the program solvable at every b; its penalty is steeper than what any
plane's power can gain from a slower clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import highspy
import numpy as np

from routecast.noc.optimum.arcs import Arcs, Floats, grid_of
from routecast.noc.optimum.program import conservation
from routecast.noc.optimum.solver import run, silent_solver, solution
from routecast.noc.topology import Topology

__all__ = ["PlaneProgram", "SolvedPlanes"]

# Up to here the simplex method, which starts from the last basis, is faster than the interior-point method.
_SIMPLEX_COLUMNS = 1200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolvedPlanes:
    """The solver's answer, as exact as its tolerances.

    Attributes
    ----------
    flow
        Shape (planes, routers, links): traffic to router t on link l.
    prices
        Shape (planes, links): what a little more capacity of a link would save; not negative.
    """

    flow: Floats
    prices: Floats


class PlaneProgram:
    """The program for one demand; clocks and costs change.

    Parameters
    ----------
    topology : Topology
    demand : array of shape (routers, routers)
        With zeros on the diagonal.
    arcs : array of shape (routers, links)
        What traffic to a router may use.
    widths : array of shape (planes,)
        Capacity of each plane's links relative to the first plane's.
    penalties : array of shape (planes,)
        Cost of the overload z.
    """

    def __init__(
        self, topology: Topology, demand: Floats, arcs: Arcs, widths: Floats, penalties: Floats
    ) -> None:
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

        Parameters
        ----------
        clocks, costs : array of shape (planes,)
            b, and the cost of one flit-hop.
        until : float
            When to give up, on the clock of :func:`time.monotonic`.

        Raises
        ------
        RoutecastError
            The solver found none.
        KeyboardInterrupt
            Ctrl-C; the solver is stopped first.
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
        found = solution(self._model)
        flow = np.zeros((planes, self._routers, self._links))
        values = np.asarray(found.col_value)[: planes * arcs].reshape(planes, arcs)
        flow[:, self._destination, self._link] = values
        prices = np.maximum(0.0, -np.asarray(found.row_dual)[self._first_capacity :])
        return SolvedPlanes(flow=flow, prices=prices.reshape(planes, self._links))
