"""Plans of a day: as cheap as brute force over all settings, with dwell and prices, and what nothing can carry."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from routecast.errors import CriterionFailed, ModelProblem
from routecast.evaluate.targets import parse_targets
from routecast.load.offered import OfferedLoad
from routecast.plan.power.operating._search import SimulationEvaluator, judge
from routecast.plan.power.operating._setting import Candidate
from routecast.plan.power.operating.day import Course, DayPlan, Switching
from routecast.plan.power.operating.optimise import Effort, TunableRouter, operating_point, optimise_day, with_no_loss
from routecast.plan.tests.operating_machine import load_at, machine

WHOLE = machine(lingers_s=())
HOUR_S = 3600.0
QUICK = Effort(duration_s=0.005, replications=0, workers=2)
TARGETS = parse_targets(["p99 < 60 us"])
DAY_PPS = (9e5, 1.5e5, 1.5e5, 9e5, 1.5e5)


def few(router: TunableRouter, count: int) -> TunableRouter:
    """Return the machine with only some of its settings, spread over all."""
    step = max(len(router.candidates) // count, 1)
    return replace(router, candidates=router.candidates[::step][:count])


def plan_of(
    router: TunableRouter, rates_pps: tuple[float, ...], switching: Switching | None = None, effort: Effort = QUICK
) -> DayPlan:
    return optimise_day(router, load_at(1e5), rates_pps, TARGETS, effort, step_s=HOUR_S, switching=switching)


def stays(course: Course) -> list[int]:
    return [len(list(group)) for _, group in itertools.groupby(course.settings)]


def energy_of(candidate: Candidate, load: OfferedLoad, peak_pps: float) -> float:
    trial = SimulationEvaluator(QUICK.duration_s * peak_pps / load.rate_pps, QUICK.seed)(candidate, load)
    judged = judge(candidate, trial, with_no_loss(TARGETS))
    return judged.power_w * HOUR_S if judged.is_met else math.inf


@pytest.mark.parametrize("energy_j", [0.0, 2e3, 1e5])
@pytest.mark.parametrize("dwell_s", [0.0, 2 * HOUR_S, 3 * HOUR_S])
@pytest.mark.slow
def test_no_other_plan_takes_less_energy(energy_j: float, dwell_s: float) -> None:
    router = few(WHOLE, 6)
    result = plan_of(router, DAY_PPS, Switching(energy_j=energy_j, dwell_s=dwell_s))
    cells = {
        rate: [energy_of(candidate, load_at(rate), max(DAY_PPS)) for candidate in router.candidates]
        for rate in set(DAY_PPS)
    }
    least = math.inf
    for path in itertools.product(range(len(router.candidates)), repeat=len(DAY_PPS)):
        lengths = [len(list(group)) for _, group in itertools.groupby(path)]
        if all(length * HOUR_S >= dwell_s for length in lengths[1:-1]):
            steps = sum(cells[rate][number] for rate, number in zip(DAY_PPS, path, strict=True))
            least = min(least, steps + energy_j * (len(lengths) - 1))
    assert math.isfinite(least)
    assert result.plan.energy_j + result.plan.switching_j == pytest.approx(least)
    assert all(length * HOUR_S >= dwell_s for length in stays(result.plan)[1:-1])


@pytest.mark.slow
def test_the_price_of_switching_lies_between_none_and_never() -> None:
    free, dear, never = (plan_of(WHOLE, DAY_PPS, Switching(energy_j=price)) for price in (0.0, 5e3, 1e9))
    assert free.plan.energy_j == free.per_step.energy_j
    assert free.plan.switchings > 0
    assert never.plan.switchings == 0
    assert free.plan.energy_j <= dear.plan.energy_j <= never.plan.energy_j <= never.always.energy_j
    assert dear.plan.energy_j + dear.plan.switching_j <= dear.per_step.energy_j + dear.per_step.switching_j
    assert free.plan.switching_j == 0.0


def test_each_step_alone_is_the_operating_point_of_its_load() -> None:
    result = plan_of(WHOLE, (6e5,))
    alone = operating_point(WHOLE, load_at(6e5), TARGETS, QUICK).best
    assert alone is not None
    assert result.plan.settings == (alone.setting,)
    assert result.plan.power_w == (alone.power_w,)


def test_always_at_its_most_is_all_cores_at_the_highest_clock_awake() -> None:
    always = plan_of(WHOLE, (2e5, 3e5)).always
    assert set(always.settings) == {always.settings[0]}
    most = always.settings[0]
    assert (most.cores, most.frequency_hz, most.sleep, most.activation) == (2, 2e9, "", "polling")
    # Two cores at 6 W and 4 W that nothing saves (the test machine's figures).
    assert always.energy_j == pytest.approx((2 * 6.0 + 4.0) * 2 * HOUR_S)


def test_bounds_spare_simulations_and_equal_loads_are_simulated_once() -> None:
    result = plan_of(WHOLE, (2e5, 3e5) * 4)
    assert result.pairs == 2 * len(WHOLE.candidates)
    assert result.evaluated < result.pairs


@pytest.mark.slow
def test_the_steps_of_a_plan_pass_their_checks() -> None:
    effort = replace(QUICK, replications=2)
    result = plan_of(WHOLE, (9e5, 2e5), effort=effort)
    assert len(result.checks) == 2
    assert all(check.is_met for check in result.checks)
    for check, watts in zip(result.checks, result.plan.power_w, strict=True):
        assert check.power_w[0] == pytest.approx(watts, rel=0.1)


def test_a_step_that_nothing_carries_is_named() -> None:
    with pytest.raises(CriterionFailed, match=r"in step 1 \(9 Mpps\): every setting is overloaded") as raised:
        plan_of(WHOLE, (2e5, 9e6, 3e5))
    assert raised.value.exit_code == 1
    impossible = parse_targets(["p99 < 0.2 us"])
    with pytest.raises(CriterionFailed, match=r"nearest is .* with p99 .* us"):
        optimise_day(few(WHOLE, 3), load_at(1e5), (2e5,), impossible, QUICK, step_s=HOUR_S)


@pytest.mark.slow
def test_a_step_without_traffic_draws_little_and_is_no_fault() -> None:
    result = plan_of(WHOLE, (9e5, 0.0))
    busy_w, quiet_w = result.plan.power_w
    assert 4.0 < quiet_w < busy_w


@pytest.mark.slow
def test_ctrl_c_gives_the_best_plan_that_is_known_by_then() -> None:
    whole = plan_of(WHOLE, DAY_PPS)
    reports = 0

    def stop_late(_done: int, _all: int, _what: str) -> None:
        nonlocal reports
        reports += 1
        if reports == whole.evaluated:
            raise KeyboardInterrupt

    result = optimise_day(WHOLE, load_at(1e5), DAY_PPS, TARGETS, QUICK, step_s=HOUR_S, on_progress=stop_late)
    assert not result.is_whole
    assert result.plan.missed == ()
    assert whole.plan.energy_j <= result.plan.energy_j <= result.always.energy_j
    reports = whole.evaluated - 1
    with pytest.raises(KeyboardInterrupt):
        optimise_day(WHOLE, load_at(1e5), DAY_PPS, TARGETS, QUICK, step_s=HOUR_S, on_progress=stop_late)


@pytest.mark.parametrize(
    ("rates_pps", "message"),
    [((1e5, math.nan), "step 1: got nan"), ((-1.0, 1e5), "step 0: got -1.0"), ((0.0, 0.0), "no traffic")],
)
def test_a_day_with_missing_rates_or_none_at_all_is_refused(rates_pps: tuple[float, ...], message: str) -> None:
    with pytest.raises(ModelProblem, match=message):
        plan_of(WHOLE, rates_pps)
