"""The optimum over planes against SciPy's programs on grids of clocks, closed forms and Li (2012)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.optimum.planes import optimum_of_planes
from routecast.noc.optimum.program import PathSet
from routecast.noc.optimum.single import Overload, optimum
from routecast.noc.patterns import hot_spot, normal, tornado, uniform
from routecast.noc.routing.model import link_loads
from routecast.noc.routing.policies import routes
from routecast.noc.scaling import Scaling
from routecast.noc.task_graph import mapped, task_graph
from routecast.noc.tests.optimum import powers_by_scipy
from routecast.noc.tests.toy_scenario import balanced, closed_form, concentrated, one_plane, toy_demand
from routecast.noc.topology import Topology, TopologyKind, grid_of
from routecast.noc.traffic import normalised

THREE = Scaling(alpha_max=3.0)
TWO_PLANES = (THREE, THREE)
FIVE = Topology(kind=TopologyKind.MESH, columns=5, rows=5)
SQUARE = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
OBLONG = Topology(kind=TopologyKind.MESH, columns=3, rows=2)


def random_demand(topology, seed, *, load, density=0.5):
    """Return sparse random traffic of which XY loads one link with ``load``."""
    stream = np.random.default_rng(seed)
    shape = (topology.router_count,) * 2
    demand = stream.uniform(0.1, 1.0, shape) * (stream.uniform(size=shape) < density)
    np.fill_diagonal(demand, 0.0)
    demand[0, 1] = max(demand[0, 1], 0.1)
    return demand * (load / link_loads(routes("xy", topology), demand).max())


def at_load(traffic, topology, load):
    """Return the demand between routers at a load normalised as in eq. 7.13."""
    return normalised(traffic, [routes("xy", topology)], load).between_routers(topology)


def assert_is_a_routing(topology, demand, result, widths):
    """Every flow arrives, on one plane all the way, within each plane's capacity at its clock."""
    grid = grid_of(topology)
    entered = np.zeros(demand.shape)
    for plane, width in zip(result.planes, widths, strict=True):
        assert (plane.flow >= 0).all()
        assert plane.link_loads.max() <= width / plane.alpha + 1e-9
        net = np.zeros(demand.shape)
        np.add.at(net, grid.source, plane.flow.T)
        np.subtract.at(net, grid.target, plane.flow.T)
        np.fill_diagonal(net, 0.0)
        assert (net >= -1e-9).all()
        entered += net
    np.testing.assert_allclose(entered, demand, atol=1e-9)


@pytest.mark.parametrize("paths", list(PathSet))
@pytest.mark.parametrize(("alphas", "widths"), [((3.0, 3.0), (1.0, 1.0)), ((3.0, 2.0), (1.0, 0.5))])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.slow
def test_no_pair_of_clocks_on_a_grid_needs_less_than_the_bound(paths, alphas, widths, seed):
    demand = random_demand(SQUARE, seed, load=1.1)
    result = optimum_of_planes(
        SQUARE, demand, [Scaling(alpha_max=alpha) for alpha in alphas], widths=widths, paths=paths, gap=1e-3
    )
    slowest = [1 / alpha for alpha in alphas]
    grid = powers_by_scipy.least_of_grid(SQUARE, demand, slowest, paths=paths, widths=widths)
    assert result.lower_bound <= grid * (1 + 1e-9)
    assert result.gap <= 1e-3
    clocks = [1 / plane.alpha for plane in result.planes]
    there = powers_by_scipy.power_at(SQUARE, demand, clocks, paths=paths, widths=widths)
    assert result.lower_bound * (1 - 1e-9) <= there <= result.power * (1 + 1e-6)
    assert_is_a_routing(SQUARE, demand, result, widths)


@given(seed=st.integers(0, 10_000), load=st.floats(0.3, 1.5), share=st.floats(0.0, 1.0))
def test_random_clocks_never_need_less_than_the_bound(seed, load, share):
    demand = random_demand(OBLONG, seed, load=load, density=0.3)
    result = optimum_of_planes(OBLONG, demand, TWO_PLANES, gap=0.01)
    stream = np.random.default_rng(seed)
    near = np.array([1 / plane.alpha for plane in result.planes])
    clocks = np.clip(near + share * stream.uniform(-0.2, 0.2, 2), 1 / 3, 1.0)
    assert result.lower_bound <= powers_by_scipy.power_at(OBLONG, demand, clocks, paths=PathSet.ANY) * (1 + 1e-9)
    assert result.gap <= 0.01 + 1e-12
    assert_is_a_routing(OBLONG, demand, result, (1.0, 1.0))


def test_planes_that_flits_may_change_between_never_need_more():
    demand = random_demand(OBLONG, 4, load=1.0)
    result = optimum_of_planes(OBLONG, demand, TWO_PLANES, gap=1e-3)
    clocks = [1 / plane.alpha for plane in result.planes]
    relaxed = powers_by_scipy.power_at(OBLONG, demand, clocks, paths=PathSet.ANY, may_change=True)
    assert relaxed <= result.power * (1 + 1e-9)


@pytest.mark.parametrize("low_rate", [0.1, 0.3, 0.45])
@pytest.mark.parametrize("low_flows", [3, 15])
def test_the_toy_scenario_meets_its_own_optimum(low_rate, low_flows):
    topology = Topology(kind=TopologyKind.MESH, columns=4, rows=4)
    demand = toy_demand(topology, low_flows=low_flows, low_rate=low_rate)
    result = optimum_of_planes(topology, demand, TWO_PLANES, paths=PathSet.MINIMAL, gap=1e-3)
    # Every flow has one link of its own: the slow plane fills first, the rest goes over the fast one, and the clocks
    # together carry the full-rate flow.
    slow = np.linspace(1 / 3, 1 / 2, 20_001)
    fast = 1.0 - slow
    over = np.maximum(0.0, low_rate - slow)
    powers = slow**3 + fast**3 + low_flows * ((low_rate - over) * slow**2 + over * fast**2)
    assert result.power == pytest.approx(powers.min(), rel=1.1e-3)
    assert result.lower_bound <= powers.min() * (1 + 1e-7)


@pytest.mark.parametrize("low_rate", [0.2, 0.6])
def test_no_allocation_of_the_toy_scenario_goes_below_the_bound(low_rate):
    demand = toy_demand(SQUARE, low_flows=6, low_rate=low_rate)
    bound = optimum_of_planes(SQUARE, demand, TWO_PLANES).lower_bound
    by_hand = closed_form(low_flows=6, low_rate=low_rate, alpha_max=3.0)
    # Eqs. 7.4-7.6.
    assert bound <= min(by_hand.one_plane, by_hand.balanced, by_hand.concentrated)
    for allocation in (one_plane, balanced, concentrated):
        assert bound <= allocation(SQUARE, demand, THREE).power * (1 + 1e-12)


def test_balanced_traffic_gains_a_factor_of_four():
    # Every link is loaded alike, with a flow of its own: halves at half the clock are best, rho^3 / 4.
    demand = np.zeros((4, 4))
    grid = grid_of(SQUARE)
    demand[grid.source, grid.target] = 1.0
    result = optimum_of_planes(SQUARE, demand, TWO_PLANES, gap=1e-3)
    assert result.power == pytest.approx(demand.sum() / 4, rel=1e-3)
    slower = optimum_of_planes(SQUARE, 0.8 * demand, TWO_PLANES, gap=1e-3)
    assert slower.power == pytest.approx(0.8**3 * demand.sum() / 4, rel=1e-3)


@pytest.mark.parametrize("paths", list(PathSet))
def test_one_of_one_plane_is_the_optimum_of_one_plane(paths):
    demand = random_demand(OBLONG, 5, load=0.9)
    alone = optimum(OBLONG, demand, THREE, paths=paths)
    result = optimum_of_planes(OBLONG, demand, [THREE], paths=paths, gap=1e-4)
    assert result.lower_bound <= alone.power * (1 + 1e-9)
    assert result.power >= alone.lower_bound * (1 - 1e-9)
    assert result.power == pytest.approx(alone.power, rel=1e-4)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_plane_never_costs_and_a_faster_range_never_either(seed):
    demand = random_demand(OBLONG, seed, load=1.0)
    alone = optimum(OBLONG, demand, THREE).power
    two = optimum_of_planes(OBLONG, demand, TWO_PLANES, gap=0.005)
    narrow = optimum_of_planes(OBLONG, demand, (THREE, Scaling(alpha_max=2.0)), gap=0.005)
    assert two.lower_bound <= narrow.power
    assert narrow.lower_bound <= alone
    assert two.power <= alone * (1 + 1e-9)


def test_any_paths_never_need_more_than_shortest_ones():
    demand = random_demand(OBLONG, 7, load=1.2)
    shortest = optimum_of_planes(OBLONG, demand, TWO_PLANES, paths=PathSet.MINIMAL, gap=0.002)
    any_way = optimum_of_planes(OBLONG, demand, TWO_PLANES, paths=PathSet.ANY, gap=0.002)
    assert any_way.lower_bound <= shortest.power
    assert any_way.power <= shortest.power * 1.002


def test_power_grows_with_load_and_falls_with_width():
    demand = random_demand(OBLONG, 8, load=1.0)
    bounds = [optimum_of_planes(OBLONG, load * demand, TWO_PLANES, gap=0.005) for load in (0.4, 0.7, 1.0, 1.3)]
    for less, more in pairwise(bounds):
        assert less.power < more.power
        assert less.lower_bound < more.lower_bound
    wider = optimum_of_planes(OBLONG, demand, TWO_PLANES, widths=(1.0, 1.5), gap=0.005)
    assert wider.lower_bound <= bounds[2].power
    assert wider.power < bounds[2].power


def test_a_slow_mesh_needs_every_hop_at_the_lowest_voltage_and_no_less():
    demand = at_load(uniform(FIVE), FIVE, 0.3)
    hops = np.array([[FIVE.distance(i, j) for j in range(25)] for i in range(25)])
    result = optimum_of_planes(FIVE, demand, TWO_PLANES)
    assert result.power == pytest.approx(float((demand * hops).sum()) / 9, rel=1e-9)
    assert result.gap <= 1e-9


@pytest.mark.parametrize("paths", list(PathSet))
def test_hot_spot_traffic_gains_the_square_of_alpha_max(paths):
    # Li (2012), below fig. 7.5: "under unbalanced traffic the minimum achievable power is almost approaching the
    # maximum achievable gain alpha_max^2 = 9". No gain is greater with shortest paths.
    demand = at_load(hot_spot(FIVE), FIVE, 1.0)
    without = float(link_loads(routes("xy", FIVE), demand).sum())
    result = optimum_of_planes(FIVE, demand, TWO_PLANES, paths=paths)
    assert 8.9 <= without / result.power <= 9.0 + 1e-9


@pytest.mark.slow
def test_normal_traffic_gains_what_li_2012_states():
    # Sec. 7.4: "a factor of 6 to 9 with respect to a single plane", means of ten matrices; one matrix may gain less.
    without, least = 0.0, 0.0
    for seed in range(1, 11):
        demand = at_load(normal(FIVE, seed=seed), FIVE, 1.0)
        without += float(link_loads(routes("xy", FIVE), demand).sum())
        result = optimum_of_planes(FIVE, demand, TWO_PLANES, paths=PathSet.MINIMAL)
        assert result.gap <= 0.01 + 1e-12
        assert_is_a_routing(FIVE, demand, result, (1.0, 1.0))
        least += result.power
    assert 6.0 * 0.97 <= without / least <= 9.0


def test_the_mpeg4_decoder_gains_what_li_2012_states():
    # Sec. 7.4: the same factor of 6 to 9, over any paths as eqs. 7.10-7.11 let them be. Few flows share few shortest
    # paths, so that those alone gain far less.
    topology = Topology(kind=TopologyKind.MESH, columns=4, rows=4)
    demand = at_load(mapped(task_graph("mpeg4"), topology), topology, 1.0)
    without = float(link_loads(routes("xy", topology), demand).sum())
    result = optimum_of_planes(topology, demand, TWO_PLANES, gap=1e-3)
    assert 6.0 <= without / result.power <= 9.0
    assert result.gap <= 1e-3 + 1e-12
    shortest = optimum_of_planes(topology, demand, TWO_PLANES, paths=PathSet.MINIMAL, gap=1e-3)
    assert shortest.lower_bound > result.power


@pytest.mark.parametrize("traffic", [tornado(FIVE), uniform(FIVE)], ids=["tornado", "uniform"])
@pytest.mark.slow
def test_nearly_even_traffic_gains_little_more_than_four(traffic):
    # Sec. 7.4 states at most 4, since all links be loaded alike. Those of a mesh are not: its rim carries less than
    # its middle, so that a little concentration gains a little more.
    demand = at_load(traffic, FIVE, 1.0)
    without = float(link_loads(routes("xy", FIVE), demand).sum())
    result = optimum_of_planes(FIVE, demand, TWO_PLANES, paths=PathSet.MINIMAL, gap=1e-3)
    assert without / result.power > 4.0
    assert without / result.lower_bound < 4.1


def test_three_planes_need_no_more_than_two():
    demand = random_demand(SQUARE, 3, load=1.2)
    two = optimum_of_planes(SQUARE, demand, TWO_PLANES, gap=0.02)
    three = optimum_of_planes(SQUARE, demand, (THREE,) * 3, gap=0.02)
    assert three.lower_bound <= two.power
    assert three.power <= two.power * 1.02
    assert three.gap <= 0.02
    assert_is_a_routing(SQUARE, demand, three, (1.0,) * 3)


def test_planes_without_scaling_burn_every_hop():
    demand = random_demand(SQUARE, 2, load=1.0)
    hops = np.array([[SQUARE.distance(i, j) for j in range(4)] for i in range(4)])
    result = optimum_of_planes(SQUARE, demand, (Scaling(alpha_max=1.0),) * 2)
    assert result.power == pytest.approx(float((demand * hops).sum()), rel=1e-9)


def test_no_traffic_needs_no_power():
    result = optimum_of_planes(SQUARE, np.zeros((4, 4)), TWO_PLANES)
    assert (result.power, result.gap) == (0.0, 0.0)
    assert [plane.alpha for plane in result.planes] == [3.0, 3.0]


def test_too_much_traffic_names_the_links():
    demand = np.zeros((4, 4))
    demand[0, 1] = 3.0
    with pytest.raises(Overload, match=r"\(0, 0\)->\(1, 0\)"):
        optimum_of_planes(SQUARE, demand, TWO_PLANES, paths=PathSet.MINIMAL)
    # Two links leave the corner on each plane: with any paths 3 of 4 fit.
    assert optimum_of_planes(SQUARE, demand, TWO_PLANES, paths=PathSet.ANY).power > 0


def test_exactly_full_planes_are_no_overload():
    demand = np.zeros((4, 4))
    demand[0, 1] = 2.0
    result = optimum_of_planes(SQUARE, demand, TWO_PLANES, paths=PathSet.MINIMAL)
    assert result.power == pytest.approx(2.0)


@pytest.mark.slow
def test_at_the_time_limit_it_answers_with_what_is_proven():
    demand = at_load(normal(FIVE, seed=3), FIVE, 1.0)
    hasty = optimum_of_planes(FIVE, demand, TWO_PLANES, paths=PathSet.MINIMAL, time_limit_s=0.0)
    better = optimum_of_planes(FIVE, demand, TWO_PLANES, paths=PathSet.MINIMAL, gap=1e-4)
    assert better.gap <= 1e-4 + 1e-12
    assert hasty.lower_bound <= better.power
    assert better.power <= hasty.power
    assert hasty.gap > better.gap
    assert_is_a_routing(FIVE, demand, hasty, (1.0, 1.0))


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_flows_and_what_is_proven():
    demand = at_load(uniform(FIVE), FIVE, 1.0)
    reports = []

    def interrupt(power, bound):
        reports.append((power, bound))
        if len(reports) == 5:
            raise KeyboardInterrupt

    kept = optimum_of_planes(FIVE, demand, TWO_PLANES, paths=PathSet.MINIMAL, on_progress=interrupt)
    assert (kept.power, kept.lower_bound) == pytest.approx(reports[-1])
    for before, after in pairwise(reports):
        assert after[0] <= before[0] + 1e-12
        assert after[1] >= before[1] - 1e-12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scalings": ()}, "at least one plane"),
        ({"widths": (1.0,)}, "1 widths for 2 planes"),
        ({"widths": (1.0, 0.0)}, "widths are positive"),
        ({"gap": 0.0}, "between 0 and 1"),
    ],
)
def test_impossible_values_are_refused(changes, message):
    arguments = {"scalings": TWO_PLANES, **changes}
    scalings = arguments.pop("scalings")
    with pytest.raises(RoutecastError, match=message):
        optimum_of_planes(SQUARE, np.zeros((4, 4)), scalings, **arguments)
