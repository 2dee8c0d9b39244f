"""The allocation search against brute force, the splittable bound, Li's figures, and itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.optimum.planes import optimum_of_planes
from routecast.noc.patterns import hot_spot, normal, uniform
from routecast.noc.planes._placement import FlowPlacement, Neighbourhood, PlanePower
from routecast.noc.planes.candidates import (
    Freedom,
    candidates_of,
    dimension_order,
    flows_of,
    minimal_paths,
    usable_links,
)
from routecast.noc.planes.li2012 import balance, four_phase, mini
from routecast.noc.planes.model import Allocation
from routecast.noc.planes.search import Overloads, Relaxation, allocate, light_paths
from routecast.noc.planes.whole_flows import whole_flow_bound
from routecast.noc.router_table import RouterPoint, RouterTable, allocation_power
from routecast.noc.routing.deadlock import channel_cycle
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Topology, TopologyKind, links

MESH_5 = Topology(kind=TopologyKind.MESH, columns=5, rows=5)
MESH_3 = Topology(kind=TopologyKind.MESH, columns=3, rows=3)
MESH_23 = Topology(kind=TopologyKind.MESH, columns=3, rows=2)
TORUS_3 = Topology(kind=TopologyKind.TORUS, columns=3, rows=3)
TWO = (Scaling(alpha_max=3), Scaling(alpha_max=3))


def at_load_1(topology: Topology, demand: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the demand with the XY bottleneck of one plane at 1 (eq. 7.13), and its power without scaling."""
    loads = np.zeros(len(links(topology)))
    for source, target in np.argwhere(demand):
        loads[list(dimension_order(topology, int(source), int(target)))] += demand[source, target]
    return demand / loads.max(), float(loads.sum() / loads.max())


def few_flows(topology: Topology, seed: int, count: int) -> NDArray[np.float64]:
    """Return random flows between ``count`` random pairs, at load 1."""
    random = np.random.default_rng(seed)
    demand = np.zeros((topology.router_count, topology.router_count))
    pairs = np.argwhere(~np.eye(topology.router_count, dtype=bool))
    for source, target in random.permutation(pairs)[:count]:
        demand[source, target] = random.uniform(0.1, 1.0)
    return at_load_1(topology, demand)[0]


def best_of_all(
    topology: Topology, demand: NDArray[np.float64], scalings: tuple[Scaling, Scaling], freedom: Freedom
) -> float:
    """Return the least power over every way to put each flow on a plane and path: brute force over all combinations."""
    states: dict[bytes, NDArray[np.float64]] = {}
    start = np.zeros((2, len(links(topology))))
    states[start.tobytes()] = start
    for source, target in np.argwhere(demand):
        pair = int(source), int(target)
        if freedom is Freedom.PLANE:
            paths = [[dimension_order(topology, *pair)]] * 2
        elif freedom is Freedom.PLANE_ORDER:
            paths = [[dimension_order(topology, *pair)], [dimension_order(topology, *pair, horizontal_first=False)]]
        else:
            paths = [minimal_paths(topology, *pair)] * 2
        after: dict[bytes, NDArray[np.float64]] = {}
        for loads in states.values():
            for plane, on_plane in enumerate(paths):
                for path in on_plane:
                    new = loads.copy()
                    new[plane, list(path)] += demand[source, target]
                    if new.max() <= 1 + 1e-9:
                        after[np.round(new, 12).tobytes()] = new
        states = after
    every = np.array(list(states.values()))
    clocks = np.clip(every.max(axis=2), [scaling.slowest for scaling in scalings], 1.0)
    return float(np.min(np.sum(every.sum(axis=2) * clocks**2, axis=1)))


def recomputed(allocation: Allocation, demand: NDArray[np.float64]) -> float:
    """Return the power from the definitions alone; each flow must go whole over one path of one plane."""
    every = links(allocation.planes[0].routes.topology)
    power, served = 0.0, np.zeros_like(demand)
    for plane in allocation.planes:
        loads = np.zeros(len(every))
        for path in plane.routes.paths:
            router = path.source
            for number in path.links:
                assert every[number].source == router
                router = every[number].target
                loads[number] += demand[path.source, path.target]
            assert router == path.target
            served[path.source, path.target] += 1
        clock = min(1.0, max(loads.max(initial=0.0) / plane.width, plane.scaling.slowest))
        power += loads.sum() * clock**2
    assert np.array_equal(served, demand > 0)
    return float(power)


@pytest.mark.parametrize("freedom", [Freedom.PLANE, Freedom.PLANE_ORDER, Freedom.MINIMAL])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_on_tiny_cases_nothing_is_better(freedom: Freedom, seed: int) -> None:
    unequal = (Scaling(alpha_max=3), Scaling(alpha_max=2))
    flows = 8 if freedom is Freedom.MINIMAL else 12
    demand = few_flows(MESH_23, seed, flows)
    for scalings in (TWO, unequal):
        ours = allocate(MESH_23, demand, scalings, freedom=freedom, steps=1000)
        assert recomputed(ours, demand) == pytest.approx(best_of_all(MESH_23, demand, scalings, freedom), rel=1e-6)


@given(
    seed=st.integers(0, 10_000),
    topology=st.sampled_from([MESH_3, TORUS_3]),
    freedom=st.sampled_from(list(Freedom)),
    widths=st.sampled_from([(1.0, 1.0), (1.0, 0.5), (1.0, 1.0, 2.0)]),
)
@pytest.mark.slow
def test_power_is_what_its_paths_burn_and_never_above_li_2012(
    seed: int, topology: Topology, freedom: Freedom, widths: tuple[float, ...]
) -> None:
    demand = few_flows(topology, seed, 40)
    scalings = tuple(Scaling(alpha_max=2 + plane / 2) for plane in range(len(widths)))
    ours = allocate(topology, demand, scalings, widths=widths, freedom=freedom, steps=500)
    assert ours.power == pytest.approx(recomputed(ours, demand), rel=1e-9)
    assert [plane.width for plane in ours.planes] == list(widths)
    if freedom is not Freedom.PLANE_ORDER:
        for printed in (balance, mini, four_phase):
            assert ours.power <= printed(topology, demand, scalings, widths=widths).power * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_no_move_of_one_flow_improves_the_answer(seed: int) -> None:
    demand = few_flows(MESH_3, seed, 50)
    ours = allocate(MESH_3, demand, TWO, freedom=Freedom.PLANE, steps=1000)
    on_second = ours.planes[1].demand > 0
    least = recomputed(ours, demand)
    for source, target in np.argwhere(demand):
        moved = on_second.copy()
        moved[source, target] ^= True
        power = 0.0
        for here in (moved, ~moved):
            loads = np.zeros(len(links(MESH_3)))
            for pair in np.argwhere(here & (demand > 0)):
                loads[list(dimension_order(MESH_3, int(pair[0]), int(pair[1])))] += demand[tuple(pair)]
            power += np.inf if loads.max() > 1 else loads.sum() * max(loads.max(), 1 / 3) ** 2
        assert power >= least * (1 - 1e-8)


def test_predicted_powers_of_single_moves_are_exact() -> None:
    demand = few_flows(TORUS_3, 5, 30)
    flows = flows_of(TORUS_3, demand)
    ends = zip(flows.source.tolist(), flows.target.tolist(), strict=True)
    candidates = candidates_of(flows, [[minimal_paths(TORUS_3, *pair)] * 3 for pair in ends])
    random = np.random.default_rng(2)
    choice = np.array([random.integers(a, b) for a, b in zip(candidates.first, candidates.first[1:], strict=False)])
    scalings, widths = (Scaling(alpha_max=3), Scaling(alpha_max=2), Scaling(alpha_max=4)), (1.0, 2.0, 0.5)
    state = FlowPlacement(candidates, scalings, widths, choice)
    moves = Neighbourhood(candidates, widths)
    target = np.array([0.2, 0.15, 0.3])

    def overload(of: FlowPlacement) -> float:
        relative = of.loads / of.capacity[:, None]
        return float(np.sum(np.maximum(relative - target[:, None], 0) ** 2))

    power = moves.power_after(state, moves.used(choice))
    change = Overloads(FlowPlacement(candidates, scalings, widths, choice), moves, target).change()
    before = overload(state)
    for candidate, flow in enumerate(candidates.flow.tolist()):
        moved = choice.copy()
        moved[flow] = candidate
        fresh = FlowPlacement(candidates, scalings, widths, moved)
        assert power[candidate] == pytest.approx(fresh.power(), rel=1e-9)
        assert change[candidate] == pytest.approx(overload(fresh) - before, abs=1e-9)
        state.move(flow, candidate)
        assert state.power() == fresh.power()
        assert np.array_equal(state.loads, fresh.loads)
        state.move(flow, int(choice[flow]))


def test_overloads_are_after_many_moves_what_they_are_from_scratch() -> None:
    demand = few_flows(TORUS_3, 6, 40)
    flows = flows_of(TORUS_3, demand)
    ends = zip(flows.source.tolist(), flows.target.tolist(), strict=True)
    candidates = candidates_of(flows, [[minimal_paths(TORUS_3, *pair)] * 2 for pair in ends])
    widths, target = (1.0, 0.5), np.array([0.3, 0.2])
    state = FlowPlacement(candidates, TWO, widths, candidates.first[:-1])
    moves = Neighbourhood(candidates, widths)
    overloads = Overloads(state, moves, target)
    random = np.random.default_rng(3)
    for candidate in random.integers(len(candidates.paths), size=300).tolist():
        overloads.move(int(candidates.flow[candidate]), candidate)
    fresh = Overloads(FlowPlacement(candidates, TWO, widths, state.choice), moves, target)
    assert np.allclose(overloads.change(), fresh.change(), rtol=0, atol=1e-12)


def test_overloaded_links_get_a_higher_price() -> None:
    demand = np.zeros((9, 9))
    demand[0, 1], demand[1, 0] = 0.6, 0.8
    flows = flows_of(MESH_3, demand)
    candidates = candidates_of(
        flows, [[[path], [path]] for path in minimal_paths(MESH_3, 0, 1) + minimal_paths(MESH_3, 1, 0)]
    )
    state = FlowPlacement(candidates, TWO, (1.0, 1.0), candidates.first[:-1])
    overloads = Overloads(state, Neighbourhood(candidates, (1.0, 1.0)), np.array([0.5, 0.7]))
    # Only the flow that stays, 0.3 over the first plane's target and 0.1 over the second's, is overloaded.
    overloads.move(0, 1, price_factor=3.0)
    assert overloads.change() == pytest.approx([0.1**2, 0.0, 0.0, 0.1**2 - 3 * 0.3**2], abs=1e-12)


@pytest.mark.parametrize("freedom", [Freedom.MINIMAL, Freedom.ANY])
def test_light_paths_arrive_over_usable_links_and_go_round_full_ones(freedom: Freedom) -> None:
    flows = flows_of(TORUS_3 if freedom is Freedom.MINIMAL else MESH_3, few_flows(MESH_3, 4, 40))
    topology, every = flows.topology, links(flows.topology)
    usable = usable_links(topology, freedom)
    random = np.random.default_rng(1)
    for loads in (np.zeros(len(every)), random.random(len(every)) ** 4):
        for paths in light_paths(flows, loads, usable):
            for source, target, path in zip(flows.source, flows.target, paths, strict=True):
                router = int(source)
                for number in path:
                    assert every[number].source == router
                    assert usable[target, number]
                    router = every[number].target
                assert router == target
                if freedom is Freedom.MINIMAL or not loads.any():
                    assert len(path) == topology.distance(int(source), int(target))
    only_one_full = np.zeros(len(every))
    only_one_full[every.index(next(link for link in every if (link.source, link.target) == (0, 1)))] = 0.9
    if freedom is Freedom.ANY:
        direct = [n for n, ends in enumerate(zip(flows.source, flows.target, strict=True)) if ends == (0, 1)]
        assert direct
        assert all(len(light_paths(flows, only_one_full, usable)[0][n]) == 3 for n in direct)


def test_planes_with_the_same_paths_carry_what_one_as_wide_as_all_does() -> None:
    demand = few_flows(MESH_3, 2, 40)
    flows = flows_of(MESH_3, demand)
    ends = list(zip(flows.source.tolist(), flows.target.tolist(), strict=True))
    alike = candidates_of(flows, [[minimal_paths(MESH_3, *pair)] * 2 for pair in ends])
    relaxation = Relaxation(alike, (1.0, 0.5))
    ratio = np.array([1.0, 0.6])
    stretch = relaxation.least_stretch(ratio)
    assert relaxation.least_power(stretch * ratio * (1 + 1e-6)) is not None
    assert relaxation.least_power(stretch * ratio * (1 - 1e-4)) is None


@pytest.mark.slow
def test_whole_flows_reach_the_greatest_possible_gain_on_the_hot_spot() -> None:
    # alpha_max^2 = 9 is the most that scaling can save (sec. 7.4); Li's best is 4.7.
    demand, no_dvfs = at_load_1(MESH_5, hot_spot(MESH_5).between_routers(MESH_5))
    ours = allocate(MESH_5, demand, TWO, freedom=Freedom.DIMENSION_ORDER, steps=2000)
    assert no_dvfs / ours.power == pytest.approx(9.0, rel=1e-6)


@pytest.mark.slow
def test_normal_traffic_comes_more_than_half_way_from_li_2012_to_the_bound() -> None:
    demand, no_dvfs = at_load_1(MESH_5, normal(MESH_5, seed=1).between_routers(MESH_5))
    ours = allocate(MESH_5, demand, TWO, freedom=Freedom.DIMENSION_ORDER, steps=2000).power
    bound = optimum_of_planes(MESH_5, demand, TWO, gap=0.1, time_limit_s=20).lower_bound
    printed = four_phase(MESH_5, demand, TWO).power
    assert bound <= ours
    assert printed - ours > (printed - bound) / 2
    # Li's 2P-4PHASE: 4.2.
    assert no_dvfs / ours > 4.2


@pytest.mark.slow
def test_planes_of_their_own_dimension_order_need_no_virtual_channels() -> None:
    demand, no_dvfs = at_load_1(MESH_5, hot_spot(MESH_5).between_routers(MESH_5))
    for freedom in (Freedom.PLANE, Freedom.PLANE_ORDER):
        ours = allocate(MESH_5, demand, TWO, freedom=freedom, steps=500)
        assert all(channel_cycle(plane.routes) is None for plane in ours.planes)
        assert no_dvfs / ours.power > 4.7


def test_more_freedom_and_more_planes_never_cost_power() -> None:
    demand, _ = at_load_1(MESH_3, hot_spot(MESH_3).between_routers(MESH_3))
    powers = [
        allocate(MESH_3, demand, TWO, freedom=freedom, steps=800).power
        for freedom in (Freedom.PLANE, Freedom.DIMENSION_ORDER, Freedom.MINIMAL)
    ]
    assert powers == sorted(powers, reverse=True)
    three = allocate(MESH_3, demand, (*TWO, TWO[0]), freedom=Freedom.PLANE, steps=800)
    assert three.power < powers[0]


def test_on_uniform_traffic_two_planes_gain_no_more_than_four() -> None:
    # Sec. 7.4: uniform traffic is not suited for concentration, at most a factor of 4.
    demand, no_dvfs = at_load_1(MESH_3, uniform(MESH_3).between_routers(MESH_3))
    # Not even split flows gain more, over whatever paths.
    assert optimum_of_planes(MESH_3, demand, TWO).lower_bound > no_dvfs / 4 * 0.98
    # Whole flows of one size halve evenly here.
    ours = allocate(MESH_3, demand, TWO, freedom=Freedom.DIMENSION_ORDER, steps=500)
    assert no_dvfs / ours.power == pytest.approx(4.0, rel=1e-6)


@pytest.mark.slow
def test_one_seed_gives_one_answer() -> None:
    demand = few_flows(MESH_3, 1, 40)
    first, second = (allocate(MESH_3, demand, TWO, freedom=Freedom.ANY, steps=800, seed=4) for _ in range(2))
    for a, b in zip(first.planes, second.planes, strict=True):
        assert np.array_equal(a.demand, b.demand)
        assert [path.links for path in a.routes.paths] == [path.links for path in b.routes.paths]


def test_progress_reports_falling_powers_above_a_constant_bound() -> None:
    demand = few_flows(MESH_3, 1, 40)
    reports: list[tuple[float, float]] = []
    ours = allocate(MESH_3, demand, TWO, steps=800, on_progress=lambda power, bound: reports.append((power, bound)))
    powers = [power for power, _ in reports]
    assert powers == sorted(powers, reverse=True)
    assert powers[-1] == pytest.approx(ours.power, rel=1e-9)
    assert {bound for _, bound in reports} == {whole_flow_bound(MESH_3, demand, TWO)}
    assert reports[-1][1] <= ours.power


def test_ctrl_c_ends_the_search_with_its_best_allocation() -> None:
    demand = few_flows(MESH_3, 1, 40)
    powers: list[float] = []

    def stop(power: float, _bound: float) -> None:
        powers.append(power)
        if len(powers) == 8:
            raise KeyboardInterrupt

    ours = allocate(MESH_3, demand, TWO, steps=800, on_progress=stop)
    assert len(powers) == 8
    assert recomputed(ours, demand) == pytest.approx(powers[-1], rel=1e-9)
    assert ours.is_interrupted
    assert not allocate(MESH_3, demand, TWO, steps=100).is_interrupted


def test_with_idle_power_a_plane_sleeps_at_low_load_and_wakes_at_high() -> None:
    idle = 2.0

    def power(
        _plane: int, weight: NDArray[np.float64], entering: NDArray[np.float64], bottleneck: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        clock = np.clip(bottleneck, 1 / 3, 1.0)
        awake: NDArray[np.float64] = np.where(entering > 0, idle * clock + weight * clock**2, 0.0)
        return awake

    full, _ = at_load_1(MESH_3, hot_spot(MESH_3).between_routers(MESH_3))
    low = allocate(MESH_3, full * 0.2, TWO, power=power, steps=500)
    high = allocate(MESH_3, full, TWO, power=power, steps=500)
    assert sorted(bool(plane.demand.any()) for plane in low.planes) == [False, True]
    assert all(plane.demand.any() for plane in high.planes)


def plane_watts(table: RouterTable, topology: Topology) -> PlanePower:
    """Return the watts of a plane's routers as an objective (eq. 7.14): power is linear in the sum of their loads."""

    def power(
        _: int, weight: NDArray[np.float64], entering: NDArray[np.float64], bottleneck: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        levels, which = np.unique(bottleneck, return_inverse=True)
        hertz = np.array([table.clock_hz(float(level)) for level in levels])
        idle = np.array([table.idle_w(float(clock_hz)) for clock_hz in hertz])
        full = np.array([table.full_w(float(clock_hz)) for clock_hz in hertz])
        loads = (weight + entering) / table.ports * (table.fastest_hz / hertz)[which]
        awake = topology.router_count * idle[which] + loads * (full - idle)[which]
        return np.where(entering > 1e-12, awake, 0.0)

    return power


@pytest.mark.slow
def test_on_a_router_table_the_objective_is_the_power_that_the_table_gives() -> None:
    # Made up: idle power that grows with the square of the clock, switching with its cube.
    points = tuple(
        RouterPoint(frequency_hz=f * 1e9, voltage_v=f, idle_w=0.5 * f**2, full_w=0.5 * f**2 + f**3)
        for f in (0.4, 0.6, 0.8, 1.0)
    )
    table = RouterTable(name="made up", points=points)
    full = few_flows(MESH_3, 3, 30)
    scaling = (Scaling(alpha_max=2.5),) * 2
    objective = plane_watts(table, MESH_3)
    awake = []
    for load in (0.1, 1.0):
        ours = allocate(MESH_3, full * load, scaling, power=objective, steps=500)
        powers = allocation_power(table, ours, asleep_ratio=0.0)
        by_objective = sum(
            objective(
                number,
                np.array([plane.link_loads.sum()]),
                np.array([plane.demand.sum()]),
                np.array([plane.link_loads.max()]),
            )[0]
            for number, plane in enumerate(ours.planes)
        )
        assert by_objective == pytest.approx(sum(item.least_w for item in powers), rel=1e-9)
        awake.append(sum(not entry.is_asleep for entry in powers))
        for algorithm in (balance, four_phase):
            other = allocation_power(table, algorithm(MESH_3, full * load, scaling), asleep_ratio=0.0)
            assert by_objective <= sum(row.least_w for row in other) * (1 + 1e-9)
    assert awake == [1, 2]


def test_no_demand_is_no_power_and_too_much_is_refused() -> None:
    nothing = np.zeros((9, 9))
    assert allocate(MESH_3, nothing, TWO).power == 0
    too_much = nothing.copy()
    too_much[0, 1] = 1.5
    with pytest.raises(RoutecastError, match=r"no placement within the planes' capacity.*1\.5 times"):
        allocate(MESH_3, too_much, TWO, steps=100)


def test_a_rate_that_rounds_to_zero_does_not_matter() -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
    demand = np.zeros((4, 4))
    demand[0, 1], demand[0, 2], demand[1, 3] = 0.5, 1e-13, 0.4
    without = demand.copy()
    without[0, 2] = 0.0
    assert allocate(topology, demand, TWO).power == pytest.approx(allocate(topology, without, TWO).power)
