from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.plan.cluster._dispatch import Dispatcher, schedule, solve_step
from routecast.plan.cluster.design import FleetEnergy, optimal_bound
from routecast.plan.cluster.model import ClusterProblem, InfeasiblePlan, MachineGroup
from routecast.plan.tests.exhaustive_cluster import at_most, joules, least_watts, problems, survives, watts

SMALL = MachineGroup(name="small", capacity_bps=5e9, power_w=60.0, price=200.0)
LARGE = MachineGroup(name="large", capacity_bps=20e9, power_w=200.0, price=900.0)


def cluster(*groups: MachineGroup, spare: int = 0) -> ClusterProblem:
    return ClusterProblem(groups=groups, traffic_bps=(1e9,), step_s=300.0, spare=spare)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[ClusterProblem, tuple[int, ...]]:
    problem = draw(problems())
    problem = replace(problem, spare=draw(st.integers(0, 2)))
    limits = at_most(problem)
    return problem, tuple(draw(st.integers(0, limit)) for limit in limits)


@given(fleets())
def test_a_fleet_is_dispatched_as_cheaply_as_trying_every_subset_finds(
    case: tuple[ClusterProblem, tuple[int, ...]],
) -> None:
    problem, fleet = case
    least_j = joules(problem, fleet)
    assume(math.isfinite(least_j))
    result = schedule(problem, fleet)
    for load_bps, counts in zip(problem.traffic_bps, result.on, strict=True):
        assert survives(problem, counts, load_bps)
        assert all(on <= owned for on, owned in zip(counts, fleet, strict=True))
        assert watts(problem, counts, load_bps) == pytest.approx(least_watts(problem, fleet, load_bps), rel=1e-8)
    assert result.energy_j == pytest.approx(least_j, rel=1e-8)


@given(fleets())
def test_energies_of_the_search_enclose_that_of_the_schedule(case: tuple[ClusterProblem, tuple[int, ...]]) -> None:
    problem, fleet = case
    least_j = joules(problem, fleet)
    assume(math.isfinite(least_j))
    energy = FleetEnergy(Dispatcher(problem))
    assert energy.low_j(fleet) <= least_j * (1.0 + 1e-9)
    assert energy.high_j(fleet) >= least_j * (1.0 - 1e-9)


@given(fleets())
@pytest.mark.slow
def test_capacities_without_a_common_quantum_are_dispatched_as_well(
    case: tuple[ClusterProblem, tuple[int, ...]],
) -> None:
    problem, fleet = case
    odd = tuple(
        replace(group, capacity_bps=group.capacity_bps + shift)
        for group, shift in zip(problem.groups, (1.0 / 3.0, 1e3 * math.pi, 17.0), strict=False)
    )
    problem = replace(problem, groups=odd)
    least_j = joules(problem, fleet)
    assume(math.isfinite(least_j))
    result = schedule(problem, fleet)
    assert result.energy_j == pytest.approx(least_j, rel=1e-7)
    energy = FleetEnergy(Dispatcher(problem))
    assert energy.low_j(fleet) <= least_j * (1.0 + 1e-9)
    assert energy.high_j(fleet) >= least_j * (1.0 - 1e-9)


@given(problems(largest_group=3))
@pytest.mark.slow
def test_the_integer_program_of_a_step_agrees_with_the_tables(problem: ClusterProblem) -> None:
    dispatcher = Dispatcher(problem)
    powers_w = dispatcher.power_w() if dispatcher.is_tabulated else None
    assume(powers_w is not None)
    for load_bps, power_w in zip(dispatcher.loads_bps.tolist(), np.asarray(powers_w).tolist(), strict=True):
        answer = solve_step(dispatcher.arrays, dispatcher.max_counts, load_bps, problem.spare)
        assert (math.inf if answer is None else answer.value) == pytest.approx(power_w, rel=1e-8)


@given(problems(beyond=False), st.integers(1, 50))
def test_more_capacity_and_as_much_more_traffic_need_the_same_machines(problem: ClusterProblem, factor: int) -> None:
    larger = replace(
        problem,
        groups=tuple(replace(group, capacity_bps=group.capacity_bps * factor) for group in problem.groups),
        traffic_bps=tuple(load_bps * factor for load_bps in problem.traffic_bps),
    )
    assert schedule(larger) == schedule(problem)


@given(problems())
def test_the_bound_is_the_sum_of_the_best_steps(problem: ClusterProblem) -> None:
    least_j = joules(problem, at_most(problem))
    assume(math.isfinite(least_j))
    assert optimal_bound(problem).energy_j == pytest.approx(least_j, rel=1e-8)


def cheapest(problem: ClusterProblem, load_bps: float, fleet: tuple[int, ...] | None = None) -> tuple[int, ...]:
    return schedule(replace(problem, traffic_bps=(load_bps,)), fleet).on[0]


def test_of_equal_powers_the_fewest_machines_win_then_the_cheapest() -> None:
    pair = MachineGroup(name="pair", capacity_bps=10e9, power_w=120.0, price=300.0)
    cheap = replace(pair, name="cheap", price=250.0)
    assert cheapest(cluster(SMALL, pair), 10e9) == (0, 1)
    assert cheapest(cluster(SMALL, pair, cheap), 10e9) == (0, 0, 1)
    assert cheapest(cluster(cheap, SMALL, pair), 10e9) == (1, 0, 0)


def test_no_traffic_needs_no_machine() -> None:
    assert cheapest(cluster(SMALL, LARGE), 0.0) == (0, 0)
    assert cheapest(cluster(SMALL, LARGE, spare=1), 0.0) == (0, 0)


def test_a_load_of_exactly_the_capacity_needs_no_machine_more() -> None:
    loads_bps = (20e9, 20e9 + 1.0, 40e9)
    assert schedule(replace(cluster(LARGE), traffic_bps=loads_bps)).on == ((1,), (2,), (2,))


def test_machines_that_idle_cheaply_share_the_load_by_slope() -> None:
    # 25 Gbit/s on a 20 and a 5 Gbit/s machine, both full: 200 + 60 W. Two large ones, 12.5 each in the mean, draw
    # 2 · 40 + 160/20 · 25 = 280 W; five small ones 300 W.
    large = replace(LARGE, idle_w=40.0)
    assert cheapest(cluster(SMALL, large), 25e9) == (1, 1)
    assert schedule(replace(cluster(SMALL, large), traffic_bps=(25e9,))).energy_j == pytest.approx(260.0 * 300.0)


def test_a_fleet_too_small_for_a_load_says_by_how_much() -> None:
    with pytest.raises(InfeasiblePlan, match=r"carries 10 Gbit/s, the load is 12 Gbit/s") as caught:
        cheapest(cluster(SMALL), 12e9, fleet=(2,))
    assert (caught.value.value, caught.value.least) == (10e9, 12e9)


def test_all_faults_of_a_problem_are_reported_at_once() -> None:
    problem = ClusterProblem(
        groups=(replace(SMALL, capacity_bps=0.0), replace(LARGE, name="small", idle_w=300.0)),
        traffic_bps=(1e9, math.nan, -2.0),
        step_s=0.0,
        budget=math.nan,
    )
    with pytest.raises(ModelProblem) as caught:
        schedule(problem)
    assert [problem.place for problem in caught.value.problems] == [
        "group[0] 'small'.capacity_bps",
        "group[1] 'small'",
        "group[1] 'small'.idle_w",
        "traffic[1]",
        "traffic[2]",
        "step_s",
        "budget",
    ]


def test_a_problem_without_groups_and_steps_is_refused() -> None:
    with pytest.raises(ModelProblem) as caught:
        schedule(ClusterProblem(groups=(), traffic_bps=(), step_s=1.0))
    assert [problem.place for problem in caught.value.problems] == ["group", "traffic"]


def test_a_fleet_of_another_length_is_refused() -> None:
    with pytest.raises(ModelProblem, match="1 numbers for 2 groups"):
        schedule(cluster(SMALL, LARGE), (1,))
    with pytest.raises(ModelProblem, match="'small': -1 machines"):
        schedule(cluster(SMALL, LARGE), (-1, 1))
