"""The search for the operating point: the same as brute force, sound bounds, and what power must do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.targets import NO_LOSS, Target, parse_targets
from routecast.evaluate.trial import Bottleneck, Delay, Trial, TrialPower
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.offered import OfferedLoad
from routecast.plan.power.operating._search import (
    BoundedCandidate,
    CheckResult,
    ConfirmationRuns,
    EvaluatedSetting,
    LoadBounds,
    SearchResult,
    SimulationEvaluator,
    judge,
    search,
)
from routecast.plan.power.operating._setting import Candidate
from routecast.plan.power.operating.optimise import Effort, describe_unmet_targets, operating_point, with_no_loss
from routecast.plan.tests.operating_machine import bounded_candidates, load_at, machine

SMALL = machine()
SIMULATING = SimulationEvaluator(0.02, 1)
QUICK = Effort(duration_s=0.02, replications=0, workers=2)


def every_trial(load: OfferedLoad, targets: tuple[Target, ...]) -> list[EvaluatedSetting]:
    """Evaluate every candidate, whatever its bound."""
    return [judge(candidate, SIMULATING(candidate, load), targets) for candidate in SMALL.candidates]


def fewest(judged: list[EvaluatedSetting]) -> float:
    return min((item.power_w for item in judged if item.is_met), default=math.inf)


@pytest.mark.parametrize("rate_pps", [2e4, 4e5, 1.5e6])
@pytest.mark.parametrize("target", ["p99 < 100 us", "p99 < 12 us", "mean < 3 us", "loss < 5 %"])
@pytest.mark.slow
def test_the_search_finds_what_looking_at_everything_finds(rate_pps: float, target: str) -> None:
    load, targets = load_at(rate_pps), with_no_loss(parse_targets([target]))
    everything = every_trial(load, targets)
    result = operating_point(SMALL, load, parse_targets([target]), QUICK)
    assert len(everything) == result.enumerated
    assert (result.best.power_w if result.best else math.inf) == fewest(everything)
    assert len(result.judged) + result.pruned + len(result.overloaded) == result.enumerated


def test_bounds_spare_simulations() -> None:
    result = operating_point(SMALL, load_at(4e5), parse_targets(["p99 < 200 us"]), QUICK)
    assert result.pruned > result.enumerated / 3


@pytest.mark.parametrize("rate_pps", [1e4, 3e5, 1.1e6])
@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"contention.sigma": 0.2},
        {"contention.table": [1.0, 0.9]},
        {"service.per_batch": "800 cycles", "batch": "8 frames"},
        {"service.variation": "exponential"},
        {"load.frames": "IMIX", "service.per_byte": "0.5 cycles/B"},
    ],
)
def test_no_simulation_draws_less_than_its_bound(rate_pps: float, overrides: dict[str, object]) -> None:
    router = machine(overrides)
    assert router.load is not None
    load = router.load.at(rate_pps)
    for item in bounded_candidates(router, load, SIMULATING, loss_ratio=0.1):
        trial = SIMULATING(item.candidate, load)
        if trial is None or trial.power is None or trial.loss_ratio > 0.1:
            continue
        assert trial.power.mean_w >= item.bounds.least_w, item.candidate.setting


@pytest.mark.slow
def test_what_is_called_overloaded_loses_frames() -> None:
    load = load_at(2.2e6)
    ruled_out = [entry for entry in bounded_candidates(SMALL, load, SIMULATING) if entry.bounds.is_overloaded]
    assert ruled_out
    for item in ruled_out:
        simulator = Simulate(item.candidate.model, seed=1, steady_state=False)
        assert simulator.trial(load, 0.05).loss_ratio > 0.0, item.candidate.setting


@pytest.mark.slow
def test_a_tighter_target_never_takes_fewer_watts() -> None:
    limits = ("400 us", "100 us", "30 us", "10 us", "5 us", "2 us")
    watts = [
        fewest(every)
        for limit in limits
        if (every := every_trial(load_at(3e5), parse_targets([f"p99 < {limit}", "loss = 0"])))
    ]
    searched = [
        result.best.power_w if result.best else math.inf
        for limit in limits
        if (result := operating_point(SMALL, load_at(3e5), parse_targets([f"p99 < {limit}"]), QUICK))
    ]
    assert searched == watts
    assert searched == sorted(searched)
    assert searched[0] < searched[-2]


@pytest.mark.slow
def test_more_load_never_takes_fewer_watts() -> None:
    targets = parse_targets(["p99 < 150 us"])
    watts = []
    for rate_pps in (5e4, 2e5, 5e5, 9e5, 1.4e6):
        best = operating_point(SMALL, load_at(rate_pps), targets, QUICK).best
        assert best is not None
        watts.append(best.power_w)
    # Trials of 20 ms see a thousand frames at the lowest rate: three per cent of noise.
    assert all(more > less * 0.97 for less, more in itertools.pairwise(watts))
    assert watts[-1] > watts[0]


def test_polling_wins_only_where_waking_up_breaks_the_target() -> None:
    waking = {
        "power.idle": "6 W",
        "power.performance": [],
        "power.sleep": [{"name": "C6", "power": "0.1 W", "exit": "60 us"}],
        "activation.interrupt_cost": "5 us",
    }
    loose, tight = parse_targets(["p99 < 300 us"]), parse_targets(["p99 < 4 us"])
    load = load_at(2e4)
    slow = machine(waking)
    sleeps = operating_point(slow, load, loose, QUICK).best
    polls = operating_point(slow, load, tight, QUICK).best
    assert sleeps is not None
    assert (sleeps.setting.activation, sleeps.setting.sleep) == ("interrupt", "C6")
    assert polls is not None
    assert polls.setting.activation == "polling"
    assert polls.power_w > sleeps.power_w
    quick = {**waking, "power.sleep": [{"name": "C6", "power": "0.1 W"}], "activation.interrupt_cost": "0.1 us"}
    wakes_at_once = operating_point(machine(quick), load, tight, QUICK).best
    assert wakes_at_once is not None
    assert wakes_at_once.setting.sleep == "C6"


def test_the_watts_of_the_answer_are_those_of_a_calculation_by_hand() -> None:
    rate_pps = 1e4
    load = replace(load_at(rate_pps), arrivals=Arrivals.cbr(), flows=FlowSet.crafted(1))
    result = operating_point(SMALL, load, parse_targets(["p99 < 10 us"]), QUICK)
    assert result.best is not None
    # Each frame wakes one core at 1 GHz: 2 us to leave C1, 1 us of interrupt, 1000 cycles and 100 ns of memory.
    assert result.best.values[0] == pytest.approx(4.1e-6, rel=0.01)
    active = rate_pps * 4.1e-6
    by_hand_w = 4.0 + 2.5 * active + 1.0 * (1.0 - active) + 0.1
    assert result.best.power_w == pytest.approx(by_hand_w, rel=1e-3)
    setting = result.best.setting
    assert (setting.cores, setting.frequency_hz, setting.sleep, setting.mode) == (1, 1e9, "C1", "interrupt")


def test_a_target_that_nothing_meets_is_reported_with_the_best_reachable() -> None:
    load, targets = load_at(4e5), parse_targets(["p99 < 0.1 us"])
    result = operating_point(SMALL, load, targets, QUICK)
    assert result.best is None
    least = min(item.values[0] for item in every_trial(load, with_no_loss(targets)) if item.values[0] > 0.0)
    reached = result.reachable(0)
    assert reached is not None
    assert reached.values[0] == least
    message = describe_unmet_targets(result, load.rate_pps)
    assert f"p99 < 100 ns: the best reachable is {targets[0].format_value(least)}" in message
    assert "loss" not in message.splitlines()[1]


def test_the_message_on_a_load_beyond_every_setting_names_the_capacity() -> None:
    result = operating_point(SMALL, load_at(8e6), (), QUICK)
    assert result.best is None
    assert len(result.overloaded) == result.enumerated
    assert "every setting is overloaded at 8 Mpps" in describe_unmet_targets(result, 8e6)


def test_one_seed_gives_one_answer_whatever_the_threads() -> None:
    load, targets = load_at(4e5), parse_targets(["p99 < 20 us"])
    one_thread, three_threads = (operating_point(SMALL, load, targets, replace(QUICK, workers=n)) for n in (1, 3))
    assert one_thread == three_threads


def test_the_winner_is_checked_with_other_seeds_and_an_interval() -> None:
    effort = Effort(duration_s=0.02, replications=4, workers=2)
    result = operating_point(SMALL, load_at(4e5), parse_targets(["p99 < 50 us"]), effort)
    assert result.best is not None
    assert result.check is not None
    mean, low, high = result.check.values[0]
    assert low < mean < high < 50e-6
    assert result.check.power_w[0] == pytest.approx(result.best.power_w, rel=0.05)
    assert 1 not in {run.seed for run in (effort.check(SIMULATING.stop) or ConfirmationRuns(1.0, ())).runs()}


# What follows needs no router: the search over made-up powers.

MODEL = SMALL.candidates[0]


def fake_trial(power_w: float, p99_s: float) -> Trial:
    power = TrialPower(mean_w=power_w, scope="package", energy_j=power_w, packet_j=0.0, bit_j=0.0, source="made up")
    return Trial(
        evaluator="fake",
        duration_s=1.0,
        intended_pps=1.0,
        offered_pps=1.0,
        forwarded_pps=1.0,
        loss_ratio=0.0,
        l1_bps=0.0,
        l2_bps=0.0,
        bottleneck=Bottleneck(name="load", kind="load", reason="is made up"),
        latency=Delay(mean_s=p99_s, p99_s=p99_s),
        power=power,
    )


def fakes(rows: Sequence[tuple[int, int, float]]) -> tuple[list[BoundedCandidate], dict[int, Trial]]:
    """Return candidates from (bound, power above it, latency in us), known by their number of cores."""
    result, trials = [], {}
    for number, (bound, above, latency) in enumerate(rows):
        candidate = Candidate(setting=replace(MODEL.setting, cores=number + 1), model=MODEL.model)
        bounds = LoadBounds(least_w=float(bound), lossless_pps=math.inf, is_overloaded=False)
        result.append(BoundedCandidate(candidate=candidate, bounds=bounds))
        trials[number + 1] = fake_trial(float(bound + above), latency * 1e-6)
    return result, trials


def look(rows: Sequence[tuple[int, int, float]], **more: Any) -> SearchResult:
    candidates, trials = fakes(rows)
    targets = (*parse_targets(["p99 < 10 us"]), NO_LOSS)
    return search(candidates, load_at(1.0), targets, lambda candidate, _load: trials[candidate.setting.cores], **more)


ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(5, 14)), min_size=1, max_size=12)


@given(rows=ROWS, workers=st.integers(1, 4))
def test_pruning_never_loses_the_best(rows: list[tuple[int, int, int]], workers: int) -> None:
    (limit,) = parse_targets(["p99 < 10 us"])
    kept = [float(bound + above) for bound, above, latency in rows if limit.is_met_by(latency * 1e-6)]
    result = look(rows, workers=workers)
    assert (result.best.power_w if result.best else math.inf) == min(kept, default=math.inf)


@given(rows=ROWS)
def test_the_front_holds_all_that_nothing_beats_and_nothing_else(rows: list[tuple[int, int, int]]) -> None:
    result = look(rows, is_exhaustive=True)
    points = {(float(bound + above), latency * 1e-6) for bound, above, latency in rows}
    unbeaten = {
        point
        for point in points
        if not any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in points)
    }
    assert {(item.power_w, item.latency_s("p99")) for item in result.front} == unbeaten


class _Doubting:
    """A check that turns down settings with few cores."""

    stop = None

    def __init__(self, least_cores: int) -> None:
        self.least_cores, self.seen = least_cores, list[int]()

    def runs(self) -> list[Any]:
        def run(candidate: Candidate, _load: OfferedLoad) -> int:
            self.seen.append(candidate.setting.cores)
            return candidate.setting.cores

        return [run]

    def verdict(self, runs: list[int], targets: tuple[Target, ...]) -> CheckResult:
        nothing = (0.0, 0.0, 0.0)
        return CheckResult(
            power_w=nothing,
            values=tuple(nothing for _ in targets),
            is_met=runs[0] >= self.least_cores,
            replications=1,
            duration_s=1.0,
        )


def test_what_its_check_turns_down_gives_way_to_the_next_best() -> None:
    check = _Doubting(least_cores=3)
    # The second is above the target by less than noise, so it is checked too; the last is never looked at.
    rows = [(1, 1, 5), (2, 1, 10.4), (2, 2, 5), (3, 9, 5), (7, 0, 5)]
    result = look(rows, check=cast("ConfirmationRuns", check))
    assert check.seen == [1, 2, 3]
    assert result.best is not None
    assert result.best.setting.cores == 3
    assert [item.setting.cores for item, _ in result.rejected] == [1, 2]
    assert result.pruned == 1


def test_ctrl_c_gives_the_best_so_far() -> None:
    def stop_after_three(done: int, _all: int, _what: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    result = look([(1, 8, 5), (2, 3, 5), (3, 0, 11), (4, 0, 5)], on_progress=stop_after_three)
    assert not result.is_whole
    assert result.best is not None
    assert result.best.power_w == 5.0


def test_what_noise_pushed_over_the_limit_wins_if_its_check_says_so() -> None:
    result = look([(1, 1, 10.4), (2, 2, 5)], check=cast("ConfirmationRuns", _Doubting(least_cores=1)))
    assert result.best is not None
    assert (result.best.setting.cores, result.best.is_met) == (1, True)
    assert result.best in result.judged
