"""Saving algorithms against brute force, and against what no schedule can do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.plan.cluster._dispatch import schedule
from routecast.plan.cluster._views import savings_table
from routecast.plan.cluster.model import ClusterProblem, InfeasiblePlan, MachineGroup
from routecast.plan.cluster.saving import (
    SavingRules,
    always_on,
    cheapest_arrival,
    each_step,
    expected_bps,
    fewest_joules,
    fleet_states,
    online,
    schedule_with_energy,
    switching_costs,
    traffic_missed,
)

# Li 2012, sec. 8.3.2.
LI2012 = (
    MachineGroup(name="I", capacity_bps=6.5e9, power_w=75.0, price=250.0),
    MachineGroup(name="II", capacity_bps=8.7e9, power_w=95.0, price=400.0),
    MachineGroup(name="III", capacity_bps=10e9, power_w=120.0, price=500.0),
    MachineGroup(name="IV", capacity_bps=8.5e9, power_w=92.0, price=400.0),
)
SMALL = MachineGroup(
    name="small", capacity_bps=3e9, power_w=50.0, price=1.0, idle_w=30.0, boot_s=120.0, boot_energy_j=900.0
)
LARGE = MachineGroup(
    name="large", capacity_bps=7e9, power_w=100.0, price=2.0, idle_w=80.0, boot_s=60.0, boot_energy_j=2500.0
)
LOADS = st.lists(st.floats(min_value=0.0, max_value=12.9e9), min_size=2, max_size=5)


def problem(
    loads: list[float] | tuple[float, ...], groups: tuple[MachineGroup, ...] = (SMALL, LARGE)
) -> ClusterProblem:
    return ClusterProblem(groups=groups, traffic_bps=tuple(loads), step_s=300.0)


def walk(steps: int, seed: int, peak_bps: float = 50e9) -> list[float]:
    """Return a day and night with noise."""
    random = np.random.default_rng(seed)
    shape = 1.0 + 0.6 * np.sin(2.0 * np.pi * np.arange(steps) / 288.0) + 0.05 * random.standard_normal(steps)
    return (shape / shape.max() * peak_bps).tolist()


def all_schedules(cluster: ClusterProblem, fleet: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    states = list(itertools.product(*(range(machines + 1) for machines in fleet)))
    carrying = [
        [s for s in states if sum(n * g.capacity_bps for n, g in zip(s, cluster.groups, strict=True)) >= load]
        for load in cluster.traffic_bps
    ]
    return list(itertools.product(*carrying))


@given(loads=LOADS)
def test_the_whole_trace_needs_what_the_best_of_all_schedules_needs(loads: list[float]) -> None:
    cluster, fleet = problem(loads[:4]), (2, 1)
    best = min(schedule_with_energy(cluster, on, repeats=False).energy_j for on in all_schedules(cluster, fleet))
    assert fewest_joules(cluster, fleet).schedule.energy_j == pytest.approx(best, rel=1e-6)


@given(loads=st.lists(st.floats(min_value=0.0, max_value=12.9e9), min_size=3, max_size=3))
def test_a_typical_day_that_repeats_needs_what_the_best_circle_of_states_needs(loads: list[float]) -> None:
    cluster, fleet = problem(loads), (2, 1)
    best = min(schedule_with_energy(cluster, on, repeats=True).energy_j for on in all_schedules(cluster, fleet))
    result = fewest_joules(cluster, fleet, repeats=True).schedule.energy_j
    assert result == pytest.approx(best, rel=1e-6)


@given(values=st.lists(st.floats(min_value=0.0, max_value=1e5), min_size=24, max_size=24))
def test_the_cheapest_arrival_is_the_least_over_all_states(values: list[float]) -> None:
    shape = (4, 3, 2)
    states = np.array(list(itertools.product(*map(range, shape))))
    costs = switching_costs(problem([1.0], (SMALL, LARGE, LI2012[0])), payback_s=10.0, ahead=True)
    minima = [
        min(
            value + float(costs.of_change(states[[end]] - start)[0])
            for start, value in zip(states, values, strict=True)
        )
        for end in range(len(states))
    ]
    # Joules, among costs of hundreds: what rounding leaves is far below a microjoule.
    assert cheapest_arrival(np.array(values), shape, costs) == pytest.approx(minima, abs=1e-6)


def test_each_step_agrees_with_the_dispatcher_that_knows_no_states() -> None:
    cluster = problem(walk(96, seed=3), LI2012)
    fleet = (3, 2, 1, 2)
    assert each_step(cluster, fleet).schedule.energy_j == pytest.approx(schedule(cluster, fleet).energy_j, rel=1e-9)
    linear = problem(walk(48, seed=4, peak_bps=12e9))
    free = schedule_with_energy(linear, schedule(linear, (2, 1)).on, repeats=False, ahead=False)
    boots_j = free.energy_j - schedule(linear, (2, 1)).energy_j
    assert boots_j >= 0.0
    assert fewest_joules(linear, (2, 1)).schedule.energy_j <= each_step(linear, (2, 1)).schedule.energy_j + 1e-3


def test_no_algorithm_needs_less_than_the_whole_trace_known_nor_more_than_always_on() -> None:
    cluster, fleet = problem(walk(200, seed=5, peak_bps=12.9e9)), (2, 1)
    least = fewest_joules(cluster, fleet).schedule.energy_j
    on = always_on(cluster, fleet).schedule.energy_j
    for rule in ("worth", "fewest"):
        # The off-line optimum boots ahead of a step; on-line the same boot is within the step, whose power counts.
        boots_ahead_j = schedule_with_energy(
            cluster, online(cluster, fleet, SavingRules(rule=rule)).schedule.on, repeats=False
        ).energy_j  # type: ignore[arg-type]  # a parametrised literal
        assert least <= boots_ahead_j + 1e-3
    assert least < each_step(cluster, fleet).schedule.energy_j
    assert least < on


@pytest.mark.parametrize("rule", ["worth", "fewest"])
def test_on_line_carries_every_step_that_it_knows(rule: str) -> None:
    cluster, fleet = problem(walk(288, seed=6), LI2012), (4, 2, 0, 2)
    saving = online(cluster, fleet, SavingRules(rule=rule))  # type: ignore[arg-type]  # a parametrised literal
    assert saving.missed_steps == 0
    for on, load in zip(saving.schedule.on, cluster.traffic_bps, strict=True):
        assert sum(n * g.capacity_bps for n, g in zip(on, LI2012, strict=True)) >= load * (1.0 - 1e-9)
        assert all(n <= most for n, most in zip(on, fleet, strict=True))


@given(first=st.lists(st.floats(min_value=0.0, max_value=12.9e9), min_size=6, max_size=6), other=LOADS)
def test_on_line_decisions_do_not_depend_on_later_steps(first: list[float], other: list[float]) -> None:
    for rules in (
        SavingRules(),
        SavingRules(rule="fewest"),
        SavingRules(knows="past", headroom_ratio=0.1),
        SavingRules(knows="day before"),
    ):
        shorter = online(problem(first), (2, 1), rules).schedule.on
        longer = online(problem([*first, *other]), (2, 1), rules).schedule.on
        assert longer[: len(first)] == shorter


def test_knowing_the_past_only_makes_the_last_step_of_no_effect_on_itself() -> None:
    rules = SavingRules(knows="past")
    low, high = [5e9, 5e9, 1e9], [5e9, 5e9, 12e9]
    assert online(problem(low), (2, 1), rules).schedule.on == online(problem(high), (2, 1), rules).schedule.on
    assert online(problem(high), (2, 1), rules).missed_steps == 1


def test_the_day_before_scales_the_present_load() -> None:
    loads = [1.0, 2.0, 4.0, 2.0, 1.0, 3.0]
    expected = expected_bps(loads, 28_800.0, SavingRules(knows="day before", headroom_ratio=0.5))  # 3 steps a day
    assert expected[0] == math.inf
    assert expected[1:] == pytest.approx([1.5, 3.0, 6.0, 1.5 * 2.0 * 2.0 / 1.0, 1.5 * 1.0 * 4.0 / 2.0])


def test_the_differential_algorithm_switches_only_on_or_only_off_in_a_step() -> None:
    cluster = problem(walk(288, seed=7), LI2012)
    on = online(cluster, (4, 2, 0, 2), SavingRules(rule="fewest")).schedule.on
    changes = np.diff(np.array(on), axis=0)
    assert not ((changes > 0).any(axis=1) & (changes < 0).any(axis=1)).any()
    assert (changes != 0).any()


def test_a_minimum_on_time_is_kept_when_machines_take_turns() -> None:
    cluster = problem(walk(288, seed=8, peak_bps=12.9e9))
    for saving in (
        each_step(cluster, (3, 1), min_on_s=1800.0),
        fewest_joules(cluster, (3, 1), min_on_s=1800.0),
        online(cluster, (3, 1), SavingRules(min_on_s=1800.0)),
        online(cluster, (3, 1), SavingRules(rule="fewest", min_on_s=1800.0)),
    ):
        for group in range(2):
            queue: list[int] = []
            column = [on[group] for on in saving.schedule.on]
            for step, (before, after) in enumerate(itertools.pairwise(column), start=1):
                queue += [step] * max(after - before, 0)
                for _ in range(max(before - after, 0)):
                    if len(queue) > after:  # the one that is on for longest goes
                        assert step - queue.pop(0) >= 6, saving.name


def keeps_on(on: Sequence[Sequence[int]], steps: int, *, repeats: bool) -> bool:
    """Say whether machines that take turns are on for more than ``steps`` steps each: by following every one."""
    rounds = 1 if not repeats else 3 + steps // len(on)
    for column in zip(*on, strict=True):
        ages = [steps + 1] * column[0]  # of the machines that are on; the oldest goes first
        for number in (column * rounds)[1:]:
            ages = sorted(age + 1 for age in ages)
            while len(ages) > number:
                if ages.pop() <= steps + 1:
                    return False
            ages = [1] * (number - len(ages)) + ages
    return True


def energies_with_on_time(cluster: ClusterProblem, fleet: tuple[int, ...], steps: int, *, repeats: bool) -> list[float]:
    """Return the joules of every schedule that keeps the minimum on-time."""
    return [
        schedule_with_energy(cluster, on, repeats=repeats).energy_j
        for on in all_schedules(cluster, fleet)
        if keeps_on(on, steps, repeats=repeats)
    ]


@given(
    loads=st.lists(st.floats(min_value=0.0, max_value=12.9e9), min_size=3, max_size=4),
    steps=st.integers(min_value=1, max_value=3),
)
def test_with_a_minimum_on_time_the_whole_trace_needs_what_the_best_schedule_that_keeps_it_needs(
    loads: list[float], steps: int
) -> None:
    cluster, fleet, min_on_s = problem(loads), (2, 1), 300.0 * (steps + 1)
    result = fewest_joules(cluster, fleet, min_on_s=min_on_s)
    assert (result.name, result.note) == ("off-line, whole trace", "")
    assert keeps_on(result.schedule.on, steps, repeats=False)
    assert result.schedule.energy_j == pytest.approx(
        min(energies_with_on_time(cluster, fleet, steps, repeats=False)), rel=1e-6
    )
    by_step = each_step(cluster, fleet, min_on_s=min_on_s).schedule
    assert keeps_on(by_step.on, steps, repeats=False)
    assert result.schedule.energy_j <= by_step.energy_j + 1e-2


@given(
    loads=st.lists(st.floats(min_value=0.0, max_value=12.9e9), min_size=4, max_size=4),
    steps=st.integers(min_value=1, max_value=2),
)
def test_a_typical_day_with_a_minimum_on_time_is_the_best_circle_where_it_says_so(
    loads: list[float], steps: int
) -> None:
    cluster, fleet = problem(loads), (2, 1)
    result = fewest_joules(cluster, fleet, min_on_s=300.0 * (steps + 1), repeats=True)
    assert keeps_on(result.schedule.on, steps, repeats=True)
    by_step = each_step(cluster, fleet, min_on_s=300.0 * (steps + 1), repeats=True).schedule
    assert keeps_on(by_step.on, steps, repeats=True)
    assert result.schedule.energy_j <= by_step.energy_j + 1e-2
    best = min(energies_with_on_time(cluster, fleet, steps, repeats=True))
    assert result.schedule.energy_j >= best * (1.0 - 1e-9)
    if not result.note:
        assert result.schedule.energy_j == pytest.approx(best, rel=1e-6)


def test_a_day_with_a_minimum_on_time_is_known_to_be_the_least_in_an_ordinary_case() -> None:
    cluster = problem(walk(288, seed=8, peak_bps=12.9e9))
    result = fewest_joules(cluster, (3, 1), min_on_s=1800.0, repeats=True)
    assert (result.name, result.note) == ("off-line, whole trace", "")


@given(loads=st.lists(st.floats(min_value=0.0, max_value=12.9e9), min_size=4, max_size=12))
def test_where_the_ages_make_too_many_states_it_is_no_worse_than_each_step_and_says_so(loads: list[float]) -> None:
    cluster, fleet = problem(loads), (2, 1)
    least = fewest_joules(cluster, fleet, min_on_s=900.0).schedule.energy_j
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("routecast.plan.cluster.saving.MAX_TRANSITIONS", 1)
        result = fewest_joules(cluster, fleet, min_on_s=900.0)
    assert result.name == "off-line, best found"
    assert "the fleet has 40 states" in result.note  # (2 + 3 over 2) of two machines, (1 + 3 over 1) of one
    assert keeps_on(result.schedule.on, 2, repeats=False)
    by_step = each_step(cluster, fleet, min_on_s=900.0).schedule.energy_j
    fewest = online(cluster, fleet, SavingRules(rule="fewest", min_on_s=900.0)).schedule.on
    fewest_j = schedule_with_energy(cluster, fewest, repeats=False).energy_j
    assert least - 1e-2 <= result.schedule.energy_j <= min(by_step, fewest_j) + 1e-2


def test_machines_that_boot_longer_than_a_step_do_not_pause_for_less() -> None:
    slow = MachineGroup(name="slow", capacity_bps=1e9, power_w=10.0, price=1.0, boot_s=900.0)
    on = [n[0] for n in each_step(problem([2e9, 1e9, 2e9, 0.0, 0.0, 0.0, 1e9], (slow,)), (2,)).schedule.on]
    # Pauses of one and two steps are shorter than the boot of three; that of three steps is not.
    assert on == [2, 2, 2, 0, 0, 0, 1]


def test_what_boots_is_missed_for_as_long_as_it_boots() -> None:
    cluster = problem([1e9, 5e9, 5e9], (SMALL,))
    steps, ratio = traffic_missed(cluster, [(1,), (2,), (2,)])
    # SMALL boots for 120 s of the 300 s of a step: 2 of 5 Gbit/s find no machine then.
    assert steps == 1
    assert ratio == pytest.approx(0.4 * 2e9 / 11e9, rel=1e-6)


def test_boots_and_switchings_are_counted_around_a_day_that_repeats() -> None:
    cluster = problem([1e9, 5e9, 1e9], (SMALL,))
    on = [(1,), (2,), (0,)]
    once, daily = schedule_with_energy(cluster, on, repeats=False), schedule_with_energy(cluster, on, repeats=True)
    assert (once.boots, once.switchings) == (1, 3)
    assert (daily.boots, daily.switchings) == (2, 4)
    assert daily.energy_j - once.energy_j == pytest.approx(900.0 + 30.0 * 120.0)


def test_spare_machines_leave_the_others_enough_in_every_state() -> None:
    cluster = ClusterProblem(groups=(SMALL, LARGE), traffic_bps=(5e9,), step_s=300.0, spare=1)
    states = fleet_states(cluster, (3, 2))
    for on, capacity in zip(states.on.tolist(), states.capacity_bps.tolist(), strict=True):
        machines = sorted([3e9] * on[0] + [7e9] * on[1])
        assert capacity == pytest.approx(sum(machines[:-1]))
    assert each_step(cluster, (3, 2)).schedule.on == ((3, 0),)


def test_a_fleet_that_is_too_small_or_has_too_many_states_is_refused_with_numbers() -> None:
    with pytest.raises(InfeasiblePlan, match=r"1 Gbit/s are missing"):
        each_step(problem([4e9], (SMALL,)), (1,))
    with pytest.raises(ModelProblem, match="saving algorithms handle at most"):
        online(problem([4e9], LI2012), (40, 40, 40, 40))


@pytest.mark.slow
def test_a_tuned_payback_spends_about_as_much_more_energy_as_it_may() -> None:
    # Noise that lasts for an hour, as traffic has; the mean of a day and night is far below the peak.
    random = np.random.default_rng(10)
    noise = np.convolve(random.standard_normal(7 * 288 + 11), np.ones(12) / 12.0**0.5, mode="valid")
    shape = 1.0 + 0.6 * np.sin(2.0 * np.pi * np.arange(7 * 288) / 288.0) + 0.05 * noise
    cluster = problem((shape / shape.max() * 50e9).tolist(), LI2012)
    least = each_step(cluster, (3, 5, 1, 5)).schedule
    switchings = []
    for tolerance in (0.01, 0.03):
        rules = SavingRules(tolerance_ratio=tolerance)
        result = online(cluster, (3, 5, 1, 5), rules).schedule
        assert result.energy_j / least.energy_j - 1.0 == pytest.approx(tolerance, abs=0.004)
        switchings.append(result.switchings)
    assert switchings[1] < switchings[0] < least.switchings


def test_the_table_of_savings_says_where_a_schedule_may_not_be_the_least() -> None:
    cluster, fleet = problem(walk(48, seed=9, peak_bps=12.9e9)), (2, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("routecast.plan.cluster.saving.MAX_TRANSITIONS", 1)
        best_found = fewest_joules(cluster, fleet, min_on_s=900.0)
    savings = [always_on(cluster, fleet), each_step(cluster, fleet), fewest_joules(cluster, fleet)]
    assert "off-line, best found" not in savings_table(savings, 1.0, name="s", title="s").caption
    table = savings_table([*savings, best_found], 1.0, name="s", title="s")
    assert "off-line, best found: with a minimum on-time of 3 steps" in table.caption
    assert table.rows[3][0] == "off-line, best found"
