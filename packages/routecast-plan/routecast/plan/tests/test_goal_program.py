from __future__ import annotations

import math
import pickle
from dataclasses import replace

import highspy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from routecast.plan.cluster.design import (
    GoalProgress,
    design_i,
    design_ii,
    design_iii,
    design_iv,
    goal_program,
    least_budget,
    optimal_bound,
)
from routecast.plan.cluster.model import ClusterProblem, InfeasiblePlan, MachineGroup
from routecast.plan.tests.exhaustive_cluster import at_most, best_fleet, joules, price, problems, subsets, survives

GROUPS = tuple(
    MachineGroup(name=name, capacity_bps=mbps * 1e6, power_w=watts, price=dollars)
    for name, mbps, watts, dollars in (
        ("I", 6500, 75.0, 250.0),
        ("II", 8700, 95.0, 400.0),
        ("III", 10000, 120.0, 500.0),
        ("IV", 8500, 92.0, 400.0),
    )
)
"""Li 2012, sec. 8.3.2."""


def day(steps: int) -> tuple[float, ...]:
    """A day from 10 to 50 Gbit/s, the largest in the middle."""
    return tuple(1e9 * (30.0 - 20.0 * math.cos(2.0 * math.pi * (t + 0.5) / steps)) for t in range(steps))


@given(problems(largest_group=2, steps=3) | problems(beyond=False, steps=3))
def test_no_fleet_that_is_tried_out_beats_the_goal_program(problem: ClusterProblem) -> None:
    least_j, least_price = best_fleet(problem)
    assume(math.isfinite(least_j))
    design = goal_program(problem)
    assert design.bound_j <= least_j <= design.energy_j * (1.0 + 1e-9)
    assert design.energy_j == pytest.approx(least_j, rel=1e-8)
    assert design.price_is_least
    assert design.price == pytest.approx(least_price, rel=1e-9)


@given(problems(largest_group=3, steps=3, spares=(1, 2), idles=True))
@pytest.mark.slow
def test_spares_with_idle_power_are_planned_as_well_as_trying_out_every_fleet(problem: ClusterProblem) -> None:
    least_j, least_price = best_fleet(problem)
    assume(math.isfinite(least_j))
    design = goal_program(problem)
    assert design.energy_j == pytest.approx(least_j, rel=1e-8)
    assert design.price == pytest.approx(least_price, rel=1e-9)
    assert design.price_is_least
    assert design.bound_j == pytest.approx(least_j, rel=1e-8)


def test_spares_carry_their_share_of_the_load_of_machines_that_idle_cheaply() -> None:
    # With three small machines and a large one 1.9689 Gbit/s is run on two small ones and the large, which takes all
    # of it; without the large one they still carry 2 Gbit/s.
    groups = (
        MachineGroup(name="small", capacity_bps=1e9, power_w=50.0, price=100.0, idle_w=0.0, available=3),
        MachineGroup(name="middle", capacity_bps=3.3e9, power_w=60.5, price=250.0, idle_w=60.5, available=3),
        MachineGroup(name="large", capacity_bps=5e9, power_w=75.0, price=100.0, idle_w=12.6, available=4),
    )
    problem = ClusterProblem(groups=groups, traffic_bps=(0.0, 1.9689e9, 2.4997e9), step_s=1.0, spare=1)
    design = goal_program(problem)
    least_j, least_price = best_fleet(problem)
    assert design.energy_j == pytest.approx(least_j)
    assert (design.fleet, design.price) == ((3, 0, 1), least_price)


@pytest.mark.parametrize(("available", "budget"), [(None, None), (4, None), (None, 2000.0)])
def test_a_fleet_that_just_carries_its_peak_with_a_spare_is_found(available: int | None, budget: float | None) -> None:
    group = replace(GROUPS[2], idle_w=60.0, available=available)
    problem = ClusterProblem(groups=(group,), traffic_bps=(10e9, 30e9), step_s=300.0, spare=1, budget=budget)
    design = goal_program(problem)
    assert design.fleet == (4,)
    # Two machines at 10 Gbit/s, four at 30, and 6 W for each Gbit/s.
    assert design.energy_j == pytest.approx(300.0 * (2 * 60.0 + 4 * 60.0 + 6.0 * 40.0))


@given(problems(largest_group=2, steps=3, spares=(1, 2), idles=True), st.sampled_from([1.0 / 3.0, 17.0]))
def test_capacities_without_a_common_quantum_are_planned_with_spares_and_idle_power(
    problem: ClusterProblem, odd_bps: float
) -> None:
    least_j, _ = best_fleet(problem)
    assume(math.isfinite(least_j))
    problem = replace(
        problem, groups=tuple(replace(group, capacity_bps=group.capacity_bps + odd_bps) for group in problem.groups)
    )
    least_j, _ = best_fleet(problem)
    design = goal_program(problem)
    assert design.bound_j <= least_j <= design.energy_j * (1.0 + 1e-9)
    for counts, load_bps in zip(design.schedule.on, problem.traffic_bps, strict=True):
        assert survives(problem, counts, load_bps)


@given(problems(largest_group=2, steps=3))
def test_the_least_budget_is_that_of_the_cheapest_fleet_that_carries_the_peak(problem: ClusterProblem) -> None:
    peak_bps = max(problem.traffic_bps)
    prices = [price(problem, n) for n in subsets(at_most(problem)) if survives(problem, n, peak_bps)]
    assume(prices)
    least, fleet = least_budget(problem)
    assert least == pytest.approx(min(prices))
    assert price(problem, fleet) == pytest.approx(least)
    assert goal_program(replace(problem, budget=least)).price == pytest.approx(least)
    if least > 0.0:
        with pytest.raises(InfeasiblePlan) as caught:
            goal_program(replace(problem, budget=least - 1.0))
        assert caught.value.constraint == "budget"
        assert caught.value.least - caught.value.value == pytest.approx(1.0)


def by_highs(problem: ClusterProblem) -> float:
    """Energy of (8.1)-(8.4) as one integer program over all steps."""
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("mip_rel_gap", 0.0)
    fleet = [model.addIntegral(lb=0, ub=20) for _ in problem.groups]
    model.addConstr(model.qsum(g.price * n for g, n in zip(problem.groups, fleet, strict=True)) <= problem.budget)
    watts = []
    for load_bps in problem.traffic_bps:
        on = [model.addIntegral(lb=0, ub=20) for _ in problem.groups]
        for n, most in zip(on, fleet, strict=True):
            model.addConstr(n - most <= 0)
        model.addConstr(
            model.qsum(g.capacity_bps / 1e8 * n for g, n in zip(problem.groups, on, strict=True)) >= load_bps / 1e8
        )
        watts += [g.power_w * n for g, n in zip(problem.groups, on, strict=True)]
    model.minimize(model.qsum(watts))
    return float(model.getInfo().objective_function_value) * problem.step_s


@pytest.mark.parametrize("budget", [2000.0, 2300.0, 2750.0, 3400.0])
def test_the_program_over_all_steps_finds_the_same_energy(budget: float) -> None:
    problem = ClusterProblem(groups=GROUPS, traffic_bps=day(6), step_s=14400.0, budget=budget)
    assert goal_program(problem).energy_j == pytest.approx(by_highs(problem), rel=1e-9)


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.slow
def test_more_money_never_costs_energy_and_no_money_limit_reaches_the_bound(spare: int) -> None:
    problem = ClusterProblem(groups=GROUPS, traffic_bps=day(24), step_s=3600.0, spare=spare)
    least, _ = least_budget(problem)
    designs = [goal_program(replace(problem, budget=least * f)) for f in (1.0, 1.1, 1.3, 1.6, 2.5)]
    designs.append(goal_program(problem))
    energies = [design.energy_j for design in designs]
    assert energies == sorted(energies, reverse=True)
    bound_j = optimal_bound(problem).energy_j
    assert all(energy_j >= bound_j * (1.0 - 1e-9) for energy_j in energies)
    assert energies[-1] == pytest.approx(bound_j)
    assert all(design.gap_ratio < 1e-8 for design in designs)
    for design in designs:
        for counts, load_bps in zip(design.schedule.on, problem.traffic_bps, strict=True):
            assert survives(problem, counts, load_bps)


def test_the_goal_program_is_never_above_the_other_designs_at_their_price() -> None:
    problem = ClusterProblem(groups=GROUPS, traffic_bps=day(24), step_s=3600.0)
    for design in (design_i(problem), design_ii(problem), design_iii(problem), design_iv(problem)):
        assert design.energy_j == pytest.approx(joules(problem, design.fleet), rel=1e-8)
        assert goal_program(replace(problem, budget=design.price)).energy_j <= design.energy_j * (1.0 + 1e-12)


def test_the_heuristic_designs_are_one_group_each_of_the_size_of_eq_8_9() -> None:
    problem = ClusterProblem(groups=GROUPS, traffic_bps=(20e9, 50e9), step_s=3600.0)
    assert design_i(problem).fleet == (math.ceil(50 / 6.5), 0, 0, 0)  # 26 Mbit/s a dollar
    assert design_ii(problem).fleet == (0, 0, 5, 0)  # 10 Gbit/s
    assert design_iii(problem).fleet == (0, 0, 0, math.ceil(50 / 8.5))  # 92.4 Mbit/s a watt


def test_a_group_that_runs_out_is_followed_by_the_next_best() -> None:
    few = (GROUPS[0], GROUPS[1], replace(GROUPS[2], available=2), GROUPS[3])
    problem = ClusterProblem(groups=few, traffic_bps=(50e9,), step_s=3600.0)
    assert design_ii(problem).fleet == (0, math.ceil(30 / 8.7), 2, 0)
    assert design_ii(replace(problem, spare=1)).fleet == (0, math.ceil(40 / 8.7), 2, 0)


@given(problems(largest_group=2, steps=3), st.integers(2, 9))
def test_a_day_repeated_takes_the_same_fleet_and_as_much_more_energy(problem: ClusterProblem, times: int) -> None:
    assume(math.isfinite(best_fleet(problem)[0]))
    once = goal_program(problem)
    often = goal_program(replace(problem, traffic_bps=problem.traffic_bps * times))
    assert often.price == once.price
    assert often.energy_j == pytest.approx(once.energy_j * times)


def test_progress_closes_the_gap_from_both_sides() -> None:
    states: list[GoalProgress] = []
    problem = ClusterProblem(groups=GROUPS, traffic_bps=day(48), step_s=1800.0, budget=2750.0)
    design = goal_program(problem, on_progress=states.append, every_s=0.0)
    energies = [state.best_j for state in states]
    bounds = [state.bound_j for state in states]
    assert energies == sorted(energies, reverse=True)
    assert bounds[:-1] == sorted(bounds[:-1])
    assert {state.goal for state in states} == {"energy", "price"}
    assert states[-1].best_j == design.energy_j
    assert states[-1].gap_ratio == pytest.approx(design.gap_ratio)


def test_without_time_the_first_fleet_is_returned_with_an_honest_bound() -> None:
    problem = ClusterProblem(groups=GROUPS, traffic_bps=day(24), step_s=3600.0, budget=2750.0)
    hasty = goal_program(problem, seconds=0.0)
    best = goal_program(problem)
    assert hasty.price <= 2750.0
    assert hasty.bound_j <= best.energy_j <= hasty.energy_j
    assert not hasty.price_is_least


@pytest.mark.parametrize("odd_bps", [0.0, 0.25])
def test_without_time_spares_with_idle_power_are_still_carried(odd_bps: float) -> None:
    groups = tuple(
        replace(group, capacity_bps=group.capacity_bps + odd_bps, idle_w=round(0.6 * group.power_w)) for group in GROUPS
    )
    problem = ClusterProblem(groups=groups, traffic_bps=day(8), step_s=10800.0, spare=1, budget=3600.0)
    hasty = goal_program(problem, seconds=0.0)
    best = goal_program(problem, seconds=5.0)
    assert hasty.price <= 3600.0
    assert 0.0 < hasty.bound_j <= best.energy_j <= hasty.energy_j
    for counts, load_bps in zip(hasty.schedule.on, problem.traffic_bps, strict=True):
        assert survives(problem, counts, load_bps)
        assert all(on <= owned for on, owned in zip(counts, hasty.fleet, strict=True))


def test_an_interruption_leaves_the_best_fleet_until_then() -> None:
    problem = ClusterProblem(groups=GROUPS, traffic_bps=day(24), step_s=3600.0, budget=2750.0)

    def interrupt(_: GoalProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        goal_program(problem, on_progress=interrupt, every_s=0.0)
    interrupted = goal_program(problem, on_progress=interrupt, every_s=0.0, keeps_interrupted=True)
    best = goal_program(problem)
    assert interrupted.is_interrupted
    assert not best.is_interrupted
    assert interrupted.price <= 2750.0
    assert 0.0 < interrupted.bound_j <= best.energy_j <= interrupted.energy_j
    assert interrupted.energy_j == pytest.approx(joules(problem, interrupted.fleet), rel=1e-8)


def test_a_budget_too_small_says_the_least_fleet_and_crosses_processes() -> None:
    problem = ClusterProblem(groups=GROUPS, traffic_bps=(20e9, 50e9), step_s=3600.0, budget=1500.0)
    with pytest.raises(InfeasiblePlan, match=r"1500 is 500 too small: .* is 8 × I for 2000") as caught:
        goal_program(problem)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.value, again.least, str(again)) == (1500.0, 2000.0, str(caught.value))


def test_a_peak_above_all_machines_says_what_is_missing() -> None:
    groups = tuple(replace(group, available=1) for group in GROUPS)
    problem = ClusterProblem(groups=groups, traffic_bps=(50e9,), step_s=3600.0)
    with pytest.raises(InfeasiblePlan, match=r"route 33.7 Gbit/s, the peak is 50 Gbit/s"):
        goal_program(problem)
    with pytest.raises(InfeasiblePlan, match=r"without the 1 largest route 23.7 Gbit/s"):
        goal_program(replace(problem, spare=1))
