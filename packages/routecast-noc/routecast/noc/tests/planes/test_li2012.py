"""2P-BALANCE, 2P-MINI and 2P-4PHASE: partitions, limits, Li's figures and its toy scenario."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.planes.candidates import dimension_order, minimal_paths
from routecast.noc.planes.li2012 import Interpretation, Tie, balance, four_phase, mini
from routecast.noc.planes.model import Allocation
from routecast.noc.routing.model import Path, Routes
from routecast.noc.scaling import Scaling
from routecast.noc.tests.toy_scenario import balanced, closed_form, concentrated, one_plane, toy_demand
from routecast.noc.topology import Topology, TopologyKind, links

MESH_5 = Topology(kind=TopologyKind.MESH, columns=5, rows=5)
MESH_3 = Topology(kind=TopologyKind.MESH, columns=3, rows=3)
TORUS_4 = Topology(kind=TopologyKind.TORUS, columns=4, rows=4)
TWO = (Scaling(alpha_max=3), Scaling(alpha_max=3))


def at_load(topology: Topology, demand: NDArray[np.float64], load: float) -> tuple[NDArray[np.float64], float]:
    """Return the demand with the XY bottleneck of one plane at the load (eq. 7.13), and its power without scaling."""
    between = demand.astype(float)
    np.fill_diagonal(between, 0.0)
    loads = np.zeros(len(links(topology)))
    for source, target in np.argwhere(between):
        loads[list(dimension_order(topology, int(source), int(target)))] += between[source, target]
    return between * load / loads.max(), float(loads.sum() * load / loads.max())


def hot_spot(topology: Topology) -> NDArray[np.float64]:
    """Return Li's hot-spot: 0.6 to the centre, 0.4 to any other node; the centre sends all of it uniformly."""
    count = topology.router_count
    centre = count // 2
    demand = np.full((count, count), 0.4 / (count - 1))
    demand[:, centre] += 0.6
    demand[centre] = 1 / (count - 1)
    return demand


def random_demand(topology: Topology, seed: int, *, density: float = 0.5) -> NDArray[np.float64]:
    """Return a random demand at load 1."""
    random = np.random.default_rng(seed)
    count = topology.router_count
    demand = random.random((count, count)) * (random.random((count, count)) < density)
    demand[0, 1] += 0.1
    return at_load(topology, demand, 1.0)[0]


def is_partition(allocation: Allocation, demand: NDArray[np.float64]) -> bool:
    """Return whether every flow is whole on exactly one plane, with one path from its source to its target."""
    on = np.sum([plane.demand > 0 for plane in allocation.planes], axis=0)
    whole = np.array_equal(on == 1, demand > 0) and np.array_equal(
        np.sum([plane.demand for plane in allocation.planes], axis=0), demand
    )
    return whole and all(
        {(path.source, path.target) for path in plane.routes.paths}
        == {(int(source), int(target)) for source, target in np.argwhere(plane.demand)}
        and all(path.share == 1 and leads(plane.routes.topology, path) for path in plane.routes.paths)
        for plane in allocation.planes
    )


def leads(topology: Topology, path: Path) -> bool:
    """Return whether the links of a path join its source to its target."""
    every = links(topology)
    router = path.source
    for number in path.links:
        if every[number].source != router:
            return False
        router = every[number].target
    return router == path.target


@given(seed=st.integers(0, 10_000), topology=st.sampled_from([MESH_3, TORUS_4]), planes=st.integers(2, 4))
def test_every_flow_is_on_exactly_one_plane(seed: int, topology: Topology, planes: int) -> None:
    demand = random_demand(topology, seed)
    scalings = [Scaling(alpha_max=2 + number / 2) for number in range(planes)]
    for allocate in (balance, mini, four_phase):
        assert is_partition(allocate(topology, demand, scalings), demand)


@given(seed=st.integers(0, 10_000), alpha_max=st.sampled_from([1.5, 2.0, 3.0]))
def test_mini_lets_the_slave_run_at_its_slowest_clock_and_4phase_is_never_worse(seed: int, alpha_max: float) -> None:
    demand = random_demand(MESH_3, seed)
    scalings = (Scaling(alpha_max=alpha_max),) * 2
    concentrated_one = mini(MESH_3, demand, scalings)
    assert concentrated_one.planes[1].link_loads.max(initial=0) <= 1 / alpha_max + 1e-9
    assert concentrated_one.planes[1].alpha == pytest.approx(alpha_max)
    assert four_phase(MESH_3, demand, scalings).power <= concentrated_one.power * (1 + 1e-9)


@given(
    seed=st.integers(0, 10_000),
    factor=st.floats(-30.0, 3.0).map(lambda power: 10.0**power),
    topology=st.sampled_from([MESH_3, MESH_5, TORUS_4]),
)
@pytest.mark.slow
def test_scaling_a_demand_scales_what_the_planes_carry_and_nothing_else(
    seed: int, factor: float, topology: Topology
) -> None:
    # Whole numbers fill many links alike, by different sums; property 2 of sec. 7.3.1.
    random = np.random.default_rng(seed)
    count = topology.router_count
    demand = at_load(
        topology,
        random.integers(0, 4, (count, count)) * (random.random((count, count)) < 0.5) + np.eye(count, k=1),
        1.0,
    )[0]
    for allocate in (balance, mini, four_phase):
        plain = allocate(topology, demand, (Scaling(alpha_max=40.0), Scaling(alpha_max=3.0)))
        scalings = (Scaling(alpha_max=max(1.0, 40.0 / factor)), Scaling(alpha_max=max(1.0, 3.0 / factor)))
        if factor > 1.0 and allocate is not balance:
            continue  # planes cannot run faster than at full clock
        scaled = allocate(topology, demand * factor, scalings)
        for item, other in zip(plain.planes, scaled.planes, strict=True):
            assert np.array_equal(item.demand > 0, other.demand > 0)


def test_hot_spot_gains_are_those_of_li_2012_and_ties_span_both_of_its_figures() -> None:
    # Sec. 7.4, rho = 1: 2P-MINI 4.4 and 2P-4PHASE 4.7 times below NoDVFS. Every sender's flow to the hot spot has the
    # same rate, so that the order among ties, which Algorithm 2 leaves open, moves the result further than the
    # algorithm does.
    demand, no_dvfs = at_load(MESH_5, hot_spot(MESH_5), 1.0)
    assert no_dvfs / mini(MESH_5, demand, TWO).power == pytest.approx(4.4, abs=0.05)
    gains = [no_dvfs / four_phase(MESH_5, demand, TWO, interpretation=Interpretation(tie=tie)).power for tie in Tie]
    assert min(gains) < 4.4
    assert max(gains) > 4.7


def test_balance_halves_the_bottleneck_of_the_hot_spot() -> None:
    # Sec. 7.4: perfect balance gains a factor of 4.
    demand, no_dvfs = at_load(MESH_5, hot_spot(MESH_5), 1.0)
    allocation = balance(MESH_5, demand, TWO)
    assert [plane.link_loads.max() for plane in allocation.planes] == pytest.approx([0.5, 0.5])
    assert no_dvfs / allocation.power == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_power_with_unbounded_alpha_is_cubic_in_the_load(load: float) -> None:
    # Property 2.
    unbounded = (Scaling(alpha_max=1e6),) * 2
    full, _ = at_load(MESH_5, hot_spot(MESH_5), 1.0)
    assert balance(MESH_5, full * load, unbounded).power == pytest.approx(
        balance(MESH_5, full, unbounded).power * load**3, rel=1e-6
    )


@pytest.mark.parametrize(("low_flows", "low_rate"), [(3, 0.1), (20, 0.2), (60, 0.3), (79, 0.5)])
@pytest.mark.parametrize("alpha_max", [1.5, 2.0, 3.0])
def test_the_toy_scenario_gives_equations_7_4_to_7_6(low_flows: int, low_rate: float, alpha_max: float) -> None:
    demand = toy_demand(MESH_5, low_flows=low_flows, low_rate=low_rate)
    scaling = Scaling(alpha_max=alpha_max)
    wanted = closed_form(low_flows=low_flows, low_rate=low_rate, alpha_max=alpha_max)
    assert one_plane(MESH_5, demand, scaling).power == pytest.approx(wanted.one_plane)
    assert balanced(MESH_5, demand, scaling).power == pytest.approx(wanted.balanced)
    assert concentrated(MESH_5, demand, scaling).power == pytest.approx(wanted.concentrated)
    if low_rate <= 1 / alpha_max:
        assert mini(MESH_5, demand, (scaling, scaling)).power == pytest.approx(wanted.concentrated)


def test_concentration_beats_even_split_balance_below_half_rate() -> None:
    # Sec. 7.3.1: for large k, where rho < 0.5 and alpha_max > 2.
    for low_rate, wins in ((0.1, True), (0.4, True), (0.6, False)):
        form = closed_form(low_flows=10**6, low_rate=low_rate, alpha_max=3)
        assert (form.concentrated < form.balanced) is wins


def test_a_wide_master_takes_more_and_an_idle_slave_sleeps() -> None:
    demand, _ = at_load(MESH_5, hot_spot(MESH_5), 1.0)
    even = balance(MESH_5, demand, TWO)
    wide = balance(MESH_5, demand, TWO, widths=(3.0, 1.0))
    assert wide.planes[0].demand.sum() > even.planes[0].demand.sum()
    assert wide.planes[0].link_loads.max() == pytest.approx(wide.planes[1].link_loads.max(), abs=0.05)
    lone = np.zeros_like(demand)
    lone[0, 1] = 0.9
    assert not mini(MESH_5, lone, TWO).planes[1].demand.any()


def test_one_demand_gives_one_answer() -> None:
    demand = random_demand(MESH_5, 3)
    for allocate in (balance, mini, four_phase):
        first, second = (allocate(MESH_5, demand, TWO) for _ in range(2))
        assert all(np.array_equal(a.demand, b.demand) for a, b in zip(first.planes, second.planes, strict=True))


def test_minimal_paths_are_as_many_as_the_binomial_says_and_all_different() -> None:
    paths = minimal_paths(MESH_5, 0, 24)
    assert len(paths) == len(set(paths)) == 70
    assert {len(path) for path in paths} == {8}
    assert dimension_order(MESH_5, 0, 24) == paths[0]
    assert dimension_order(MESH_5, 0, 24, horizontal_first=False) == paths[-1]
    assert len(minimal_paths(TORUS_4, 0, 10)) == 24  # two ways round both rings, 6 paths each


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        (np.ones((4, 4)), "shape"),
        (np.full((9, 9), -0.1), "0 or more"),
        (np.full((9, 9), np.nan), "0 or more"),
        (np.full((9, 9), 1e8), "capacities"),
    ],
)
def test_a_bad_demand_is_refused(demand: NDArray[np.float64], message: str) -> None:
    with pytest.raises(RoutecastError, match=message):
        balance(MESH_3, demand, TWO)


def test_one_plane_a_bad_width_and_a_split_routing_are_refused() -> None:
    demand = random_demand(MESH_3, 1)
    with pytest.raises(RoutecastError, match="at least 2"):
        balance(MESH_3, demand, TWO[:1])
    with pytest.raises(RoutecastError, match="positive width"):
        balance(MESH_3, demand, TWO, widths=(1.0, 0.0))
    half = Path(source=0, target=1, links=(0,), layers=(0,), share=0.5)
    split = Routes(policy="2p_es", topology=MESH_3, paths=(half, half))
    with pytest.raises(RoutecastError, match="splits the flow"):
        balance(MESH_3, demand, TWO, routes=(split, split))
    none = Routes(policy="xy", topology=MESH_3, paths=())
    with pytest.raises(RoutecastError, match="has no path from"):
        balance(MESH_3, demand, TWO, routes=(none, none))
