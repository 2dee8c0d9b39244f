"""The bounds between few linear programs, against SciPy's programs at other clocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.noc.optimum.planes import ClockCells, ConeBounds, LinkPrices, PlaneProgram, PriceBounds, Symmetry
from routecast.noc.optimum.program import PathSet, allowed_arcs
from routecast.noc.tests.optimum import powers_by_scipy as by_scipy
from routecast.noc.topology import Topology, TopologyKind, grid_of

SQUARE = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
SLOWEST = 1 / 3


def random_demand(stream):
    demand = stream.uniform(0.05, 0.6, (4, 4)) * (stream.uniform(size=(4, 4)) < 0.6)
    np.fill_diagonal(demand, 0.0)
    demand[0, 3] = 0.3
    return demand


@given(seed=st.integers(0, 10_000), paths=st.sampled_from(list(PathSet)), planes=st.integers(1, 3))
def test_bounds_from_prices_hold_at_all_clocks_in_between(seed, paths, planes):
    stream = np.random.default_rng(seed)
    demand, widths = random_demand(stream), stream.uniform(0.5, 1.5, planes)
    arcs = allowed_arcs(SQUARE, demand, paths)
    prices = PriceBounds(SQUARE, demand, arcs, widths)
    bounds = ConeBounds(prices, np.full(planes, SLOWEST), Symmetry(pairs=()))
    links = grid_of(SQUARE).source.size
    program = PlaneProgram(SQUARE, demand, arcs, widths, 3.0 * links * widths)
    for _ in range(3):
        clocks = stream.uniform(SLOWEST, 1.0, planes)
        solved = program.solve(clocks, clocks**2)
        prices.prices.append(LinkPrices(costs=clocks**2, prices=solved.prices))
        bounds.split(clocks**2)
        # Where a program was solved and its costs are a ray, nothing is lost.
        there = by_scipy.power_at(SQUARE, demand, clocks, paths=paths, widths=widths)
        if np.isfinite(there):
            assert bounds.proven(clocks[None], clocks[None])[0] == pytest.approx(there, rel=1e-6)
    slow = stream.uniform(SLOWEST, 1.0, planes)
    fast = slow + stream.uniform(0.0, 1.0, planes) * (1.0 - slow)
    between = slow + stream.uniform(0.0, 1.0, planes) * (fast - slow)
    power = by_scipy.power_at(SQUARE, demand, between, paths=paths, widths=widths)
    assert bounds.proven(slow[None], fast[None])[0] <= power * (1 + 1e-9)
    assert bounds.proven(between[None], between[None])[0] <= power * (1 + 1e-9)


def test_random_prices_prove_bounds_too():
    # Whatever a solver answers: any prices that are not negative do.
    stream = np.random.default_rng(5)
    demand, widths = random_demand(stream), np.ones(2)
    prices = PriceBounds(SQUARE, demand, allowed_arcs(SQUARE, demand, PathSet.ANY), widths)
    clocks = np.array([0.9, 0.6])
    power = by_scipy.power_at(SQUARE, demand, clocks, paths=PathSet.ANY)
    for _ in range(50):
        drawn = stream.exponential(0.3, (2, grid_of(SQUARE).source.size))
        prices.prices.append(LinkPrices(costs=stream.uniform(0.1, 1.0, 2), prices=drawn))
    assert 0 < prices.bounds(clocks**2).at(clocks[None])[0] <= power


def test_cells_halve_without_a_gap_and_symmetry_keeps_one_order_of_each_pair():
    cells = ClockCells(lower=np.array([[0.4, 0.4]]), upper=np.array([[1.0, 1.0]]), proven=np.array([0.5]))
    for _ in range(6):
        cells = cells.halves()
    assert (cells.upper - cells.lower).prod(axis=1).sum() == pytest.approx(0.36)
    ordered = Symmetry(pairs=((0, 1),)).ordered(cells)
    stream = np.random.default_rng(1)
    for clocks in stream.uniform(0.4, 1.0, (200, 2)):
        fast_first = np.sort(clocks)[::-1]
        assert ((ordered.lower <= fast_first) & (fast_first <= ordered.upper)).all(axis=1).any()
