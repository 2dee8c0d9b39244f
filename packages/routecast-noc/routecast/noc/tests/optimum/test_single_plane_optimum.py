"""The exact optimum of one plane against full enumeration with SciPy, closed forms and Li (2012)."""

from __future__ import annotations

import os
import signal
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.optimum import program
from routecast.noc.optimum.program import PathSet, allowed_arcs
from routecast.noc.optimum.single import Overload, least_load, optimum
from routecast.noc.patterns import hot_spot, normal, tornado, transpose, uniform
from routecast.noc.routing.policies import routes
from routecast.noc.scaling import Scaling
from routecast.noc.tests.optimum.frontier_by_scipy import least_power
from routecast.noc.topology import Direction, Topology, TopologyKind, distances, link_numbers, links, shortest_hops
from routecast.noc.traffic import normalised

LI2012 = Scaling(alpha_max=3.0)


def mesh(columns, rows):
    return Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)


def torus(columns, rows):
    return Topology(kind=TopologyKind.TORUS, columns=columns, rows=rows)


def sparse_demand(topology, seed, part=0.6):
    rng = np.random.default_rng(seed)
    routers = topology.router_count
    demand = rng.exponential(1.0, (routers, routers)) * (rng.random((routers, routers)) < part)
    np.fill_diagonal(demand, 0.0)
    demand[0, 1] += 0.5
    return demand / (2.0 * least_load(topology, demand))


def xy_loads(topology, demand):
    numbers, loads = link_numbers(topology), np.zeros(len(links(topology)))
    for i, j in np.argwhere(demand > 0):
        (x, y), (to_x, to_y) = topology.position(i), topology.position(j)
        ways = [Direction.EAST if to_x > x else Direction.WEST] * abs(to_x - x)
        ways += [Direction.SOUTH if to_y > y else Direction.NORTH] * abs(to_y - y)
        at = int(i)
        for way in ways:
            loads[numbers[at, way]] += demand[i, j]
            at = topology.neighbour(at, way)
        assert at == j
    return loads


@pytest.mark.parametrize("paths", list(PathSet))
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("topology", [mesh(2, 2), mesh(3, 2), mesh(3, 3), torus(3, 3), torus(4, 2)], ids=str)
def test_it_is_the_best_corner_that_scipy_enumerates(topology, seed, paths):
    demand = sparse_demand(topology, seed)
    result = optimum(topology, demand, LI2012, paths=paths)
    assert result.power == pytest.approx(least_power(topology, demand, paths, 3.0), rel=2e-6)
    assert result.gap <= 1e-6


@pytest.mark.parametrize("paths", list(PathSet))
@pytest.mark.parametrize("pattern", [uniform, transpose, hot_spot])
@pytest.mark.parametrize("topology", [mesh(5, 5), mesh(4, 3), torus(5, 5), torus(4, 4)], ids=str)
def test_flows_conserve_and_no_link_is_overloaded(topology, pattern, paths):
    if pattern is transpose and topology.columns != topology.rows:
        pattern = uniform
    demand = pattern(topology).between_routers(topology)
    demand /= 2.0 * least_load(topology, demand)
    result = optimum(topology, demand, LI2012, paths=paths)
    (plane,) = result.planes
    net = np.zeros((topology.router_count, topology.router_count))
    for number, link in enumerate(links(topology)):
        net[:, link.source] += plane.flow[:, number]
        net[:, link.target] -= plane.flow[:, number]
    expected = demand.T - np.diag(demand.sum(axis=0))
    assert net == pytest.approx(expected, abs=1e-12)
    assert plane.flow.min() >= 0.0
    assert plane.link_loads.max() <= (1.0 + 1e-9) / plane.alpha
    assert result.gap <= 1e-6


def test_xy_is_optimal_on_uniform_traffic():
    topology = mesh(5, 5)
    demand = uniform(topology).between_routers(topology)
    loads = xy_loads(topology, demand)
    demand /= loads.max()
    assert optimum(topology, demand, LI2012).power == pytest.approx(loads.sum() / loads.max(), rel=1e-6)


def test_tornado_over_shortest_paths_is_as_without_scaling():
    topology = mesh(5, 5)
    demand = tornado(topology).between_routers(topology)
    loads = xy_loads(topology, demand)
    result = optimum(topology, demand / loads.max(), LI2012, paths=PathSet.MINIMAL)
    assert result.power == pytest.approx(loads.sum() / loads.max(), rel=1e-6)
    assert result.planes[0].alpha == pytest.approx(1.0)


def test_transpose_falls_to_a_ninth_of_the_power_without_scaling():
    # Li 2012, fig. 6.5 at load 1: XY loads one link fully, the optimum needs about 0.11 of the power without DVFS.
    topology = mesh(5, 5)
    demand = transpose(topology).between_routers(topology)
    demand /= xy_loads(topology, demand).max()
    result = optimum(topology, demand, LI2012)
    assert result.power / (demand * shortest_hops(topology)).sum() == pytest.approx(0.11, abs=0.005)


def test_normal_traffic_falls_by_almost_two_fifths():
    # Li 2012, sec. 6.5 at load 1: "even under normal traffic scenario, almost 40 % power reduction is possible".
    topology = mesh(5, 5)
    parts = []
    for seed in range(8):
        traffic = normal(topology, permutations=25, seed=seed)
        demand = traffic.between_routers(topology)
        routings = [routes(policy, topology, seed=seed) for policy in ("xy", "2p_es", "2p_rs", "4p_es")]
        routings.append(routes("adaptive", topology, demand=demand, seed=seed))
        demand = normalised(traffic, routings, 1.0).between_routers(topology)
        parts.append(optimum(topology, demand, LI2012).power / (demand * shortest_hops(topology)).sum())
    assert np.mean(parts) == pytest.approx(0.6, abs=0.05)


def test_power_grows_with_the_cube_of_the_load_where_alpha_is_not_bounded():
    # Li 2012, property 1, eq. 6.3.
    topology = mesh(4, 4)
    demand = normal(topology, permutations=6, seed=3).between_routers(topology)
    demand /= 1.5 * least_load(topology, demand)
    free = Scaling(alpha_max=1e6)
    whole = optimum(topology, demand, free).power
    for load in (0.75, 0.5, 0.1):
        assert optimum(topology, load * demand, free).power == pytest.approx(load**3 * whole, rel=2e-6)


def test_more_room_for_scaling_never_costs_power():
    topology = mesh(4, 4)
    demand = hot_spot(topology).between_routers(topology)
    demand /= 1.3 * least_load(topology, demand)
    powers = [optimum(topology, demand, Scaling(alpha_max=most)).power for most in (1.0, 1.1, 1.5, 3.0)]
    assert all(later <= earlier * (1 + 2e-6) for earlier, later in pairwise(powers))
    assert powers[0] == pytest.approx((demand * shortest_hops(topology)).sum(), rel=1e-3)


@given(seed=st.integers(0, 10**6), alpha_max=st.floats(1.0, 5.0))
def test_more_paths_never_cost_power(seed, alpha_max):
    topology = mesh(3, 3)
    demand = 0.5 * sparse_demand(topology, seed, part=0.3)
    scaling = Scaling(alpha_max=alpha_max)
    shortest = optimum(topology, demand, scaling, paths=PathSet.MINIMAL)
    every = optimum(topology, demand, scaling)
    assert every.power <= shortest.power * (1 + 1e-6)
    assert every.lower_bound <= shortest.power


def test_light_traffic_runs_at_the_slowest_clock_on_shortest_paths():
    topology = mesh(4, 4)
    demand = uniform(topology).between_routers(topology) * 0.01
    result = optimum(topology, demand, LI2012)
    assert result.planes[0].alpha == 3.0
    assert result.power == pytest.approx((demand * shortest_hops(topology)).sum() / 9.0, rel=1e-9)


def test_without_traffic_there_is_no_power():
    result = optimum(mesh(3, 2), np.zeros((6, 6)), LI2012)
    assert result.power == 0.0
    assert result.gap == 0.0
    assert result.planes[0].flow.shape == (6, len(links(mesh(3, 2))))


def test_an_overload_names_the_links_of_the_cut_and_what_would_fit():
    # Everybody sends 0.4 to the corner (0, 0), which two links lead to: (8 * 0.4) / 2 = 1.6.
    topology = mesh(3, 3)
    demand = np.zeros((9, 9))
    demand[1:, 0] = 0.4
    with pytest.raises(Overload, match=r"1\.6 times") as refused:
        optimum(topology, demand, LI2012)
    assert {topology.link_name(link) for link in refused.value.links} == {"(1, 0)->(0, 0)", "(0, 1)->(0, 0)"}
    assert refused.value.load == pytest.approx(1.6, rel=1e-6)
    assert optimum(topology, demand / 1.6 * 0.999, LI2012).power > 0.0


def test_the_message_of_a_tiny_overload_shows_its_size():
    topology = mesh(3, 3)
    demand = np.zeros((9, 9))
    demand[1:, 0] = 0.25 * (1 + 2e-7)
    with pytest.raises(Overload) as refused:
        optimum(topology, demand, LI2012)
    assert "(1 + 2.00e-07) times their capacity" in str(refused.value)
    assert "at most (1 - 2.00e-07) times this traffic" in str(refused.value)


def test_traffic_that_fits_exactly_is_carried_at_full_clock():
    topology = mesh(3, 3)
    demand = np.zeros((9, 9))
    demand[1:, 0] = 0.25
    result = optimum(topology, demand, LI2012)
    assert result.planes[0].alpha == pytest.approx(1.0)
    assert result.power == pytest.approx((demand * shortest_hops(topology)).sum(), rel=1e-6)


def test_detours_carry_what_shortest_paths_do_not():
    # One pair in one row: its shortest path is one link, and around it two more ways lead.
    topology = mesh(3, 3)
    demand = np.zeros((9, 9))
    demand[3, 4] = 1.5
    with pytest.raises(Overload, match="shortest paths"):
        optimum(topology, demand, LI2012, paths=PathSet.MINIMAL)
    assert optimum(topology, demand, LI2012).gap <= 1e-6


@pytest.mark.parametrize("topology", [mesh(4, 4), torus(3, 4)], ids=str)
def test_the_interior_point_method_finds_what_the_simplex_method_finds(topology, monkeypatch):
    for seed in range(4):
        demand = sparse_demand(topology, seed, part=0.4)
        by_simplex = optimum(topology, demand, LI2012)
        with monkeypatch.context() as patch:
            patch.setattr(program, "_SIMPLEX_COLUMNS", 0)
            by_interior_point = optimum(topology, demand, LI2012)
        assert by_interior_point.gap <= 1e-6
        assert by_interior_point.power == pytest.approx(by_simplex.power, rel=2e-6)


@pytest.mark.slow
def test_ctrl_c_ends_a_long_search_and_leaves_the_next_one_alone():
    topology = mesh(16, 16)
    demand = hot_spot(topology).between_routers(topology)
    demand /= 2.0 * least_load(topology, demand)
    is_searching = True

    def ctrl_c(number, frame):
        if is_searching:  # one that comes too late fails this test and does not end all of them
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ctrl_c)
    timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            optimum(topology, demand, LI2012)
    finally:
        is_searching = False
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert optimum(mesh(2, 2), sparse_demand(mesh(2, 2), 1), LI2012).gap <= 1e-6


@pytest.mark.slow
def test_a_time_limit_leaves_flows_that_fit_and_a_bound_that_holds():
    topology = mesh(12, 12)
    demand = normal(topology, permutations=144, seed=1).between_routers(topology)
    demand /= xy_loads(topology, demand).max()
    result = optimum(topology, demand, LI2012, time_limit_s=0.2)
    assert result.gap > 1e-3  # it had no time for a program of 30 thousand columns
    (plane,) = result.planes
    assert plane.link_loads.max() <= 1.0 + 1e-9
    net = np.zeros(demand.shape)
    for number, link in enumerate(links(topology)):
        net[:, link.source] += plane.flow[:, number]
        net[:, link.target] -= plane.flow[:, number]
    assert net == pytest.approx(demand.T - np.diag(demand.sum(axis=0)), abs=1e-12)
    # XY is one routing; no flow comes by fewer hops than its shortest path, and no clock is slower than a third.
    assert result.lower_bound <= xy_loads(topology, demand).sum()
    assert result.lower_bound >= (demand * shortest_hops(topology)).sum() / 9.0
    assert result.power > result.lower_bound


def test_a_time_limit_without_a_routing_that_fits_is_an_error():
    # One pair of neighbours: detours carry what their shortest path does not.
    topology = mesh(12, 12)
    demand = 1e-3 * uniform(topology).between_routers(topology)
    demand[12, 13] = 1.5
    with pytest.raises(RoutecastError, match="time limit") as refused:
        optimum(topology, demand, LI2012, time_limit_s=0.0)
    assert not isinstance(refused.value, Overload)


def test_nodes_at_one_router_send_each_other_without_links():
    topology = Topology(kind=TopologyKind.CONCENTRATED_MESH, columns=2, rows=2, concentration=4)
    demand = uniform(topology).between_routers(topology)
    # Each node sends 12 of its 15 parts away: to 8 nodes one hop off and to 4 nodes two hops off.
    result = optimum(topology, demand / 100.0, LI2012)
    assert result.power == pytest.approx(16 * (8 * 1 + 4 * 2) / 15 / 100.0 / 9.0, rel=1e-9)


@given(seed=st.integers(0, 10**6))
def test_any_link_prices_prove_a_tangent(seed):
    topology = mesh(4, 3)
    demand = sparse_demand(topology, seed)
    loads = xy_loads(topology, demand)
    prices = np.random.default_rng(seed).exponential(3.0, loads.size)
    way = distances(topology, 1.0 + prices, allowed_arcs(topology, demand, PathSet.ANY))
    assert loads.sum() >= (demand * way).sum() - loads.max() * prices.sum()


def test_the_cuts_bound_the_load_of_every_routing():
    for seed in range(5):
        demand = sparse_demand(mesh(4, 4), seed)
        assert xy_loads(mesh(4, 4), demand).max() >= least_load(mesh(4, 4), demand)
    # Uniform traffic on an even mesh: half of the nodes send over the middle line to the other half.
    topology = mesh(4, 4)
    demand = uniform(topology).between_routers(topology)
    assert least_load(topology, demand) == pytest.approx(8 * 8 / 15 / 4)


def test_progress_reports_the_bound():
    reports = []
    topology = mesh(4, 4)
    demand = hot_spot(topology).between_routers(topology)
    demand /= 1.2 * least_load(topology, demand)
    result = optimum(topology, demand, LI2012, on_progress=lambda power, bound: reports.append((power, bound)))
    assert len(reports) >= 1
    assert reports[-1][0] == pytest.approx(result.power)
    assert reports[-1][1] == pytest.approx(result.lower_bound)
    assert [power for power, _ in reports] == sorted((power for power, _ in reports), reverse=True)


def test_distances_are_hops_where_links_are_one_long():
    for topology in (mesh(4, 3), torus(5, 4)):
        demand = np.ones((topology.router_count,) * 2)
        for paths in PathSet:
            arcs = allowed_arcs(topology, demand, paths)
            way = distances(topology, np.ones(len(links(topology))), arcs)
            assert way == pytest.approx(shortest_hops(topology))
            expected = [
                [topology.distance(i, j) for j in range(topology.router_count)] for i in range(topology.router_count)
            ]
            assert way.tolist() == expected
