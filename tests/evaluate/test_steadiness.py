"""The verdict "steady" on series whose truth is known: noise, ramps, queues, exponential approaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.evaluate import Simulate
from routecast.evaluate.steadiness import (
    STEP_LEVEL,
    batch_means,
    greatest_step,
    latency_unsteady,
    mser5,
    reading,
    sampled_sojourn_s,
    steadiness,
    steadiness_of,
    with_steady_rates,
)
from routecast.load import Arrivals, OfferedLoad
from routecast.router import ServiceCost, multicore

PARTS, PART_S, RATE_PPS = 1000, 1e-3, 1e6


def autoregressive(coefficient: float, seed: int, *, spread: float = 0.1) -> list[float]:
    """Return a series without drift, of which neighbours are alike: mean 1e6, standard deviation a tenth of it."""
    noise = np.random.default_rng(seed).standard_normal(PARTS + 400)
    values, value = [], 0.0
    for item in noise:
        value = coefficient * value + math.sqrt(1.0 - coefficient**2) * item
        values.append(RATE_PPS * (1.0 + spread * value))
    return values[400:]


def approach(time_s: float, seed: int = 0, *, noise: float = 0.02) -> list[float]:
    """Return a rate that rises from 0 towards 1e6 with a time constant."""
    random = np.random.default_rng(seed)
    times = PART_S * (np.arange(PARTS) + 0.5)
    shape = 1.0 - np.exp(-times / time_s) + noise * random.standard_normal(PARTS)
    return list(RATE_PPS * shape)


@pytest.mark.parametrize("coefficient", [-0.5, 0.0, 0.5, 0.9, 0.95])
@pytest.mark.slow
def test_one_in_twenty_series_without_drift_is_called_unsteady_however_alike_neighbours_are(coefficient: float) -> None:
    # 300 series: five standard deviations of the binomial with 5 % are 6.3 %. Plain regression would call 10 % of
    # the last ones drifting.
    called = sum(not steadiness(autoregressive(coefficient, seed), PART_S).is_steady for seed in range(300))
    assert 0.02 * 300 <= called <= 0.085 * 300


@pytest.mark.parametrize("coefficient", [0.0, 0.9])
@pytest.mark.slow
def test_the_interval_holds_the_true_mean_in_nineteen_of_twenty_series(coefficient: float) -> None:
    verdicts = [steadiness(autoregressive(coefficient, 1000 + seed), PART_S) for seed in range(300)]
    steady = [verdict for verdict in verdicts if verdict.is_steady]
    held = sum(item.low <= RATE_PPS <= item.high for item in steady)
    assert 0.92 * len(steady) <= held <= 0.99 * len(steady)


def test_a_ramp_is_not_steady_and_the_reason_says_how_much_it_rises() -> None:
    up = steadiness([RATE_PPS * (1.0 + n / PARTS) for n in range(PARTS)], PART_S)
    # Over the last half it rises from 1.5 to 2, by 0.5 of a mean of 1.75: 28.6 %.
    assert not up.is_steady
    assert "transient is longer than half of the trial" in up.reason
    assert "still rising by 28.6 % over the last 500 ms" in up.reason
    down = steadiness([RATE_PPS * (2.0 - n / PARTS) for n in range(PARTS)], PART_S)
    assert "still falling" in down.reason
    assert math.isnan(up.from_s)
    assert math.isnan(up.high)


def test_a_ramp_that_no_eye_sees_in_the_noise_is_found() -> None:
    # The whole rise is one standard deviation of the noise: the regression's t is about 9.
    for seed in range(20):
        noise = 0.05 * np.random.default_rng(seed).standard_normal(PARTS)
        rates = RATE_PPS * (1.0 + 0.05 * np.arange(PARTS) / PARTS + noise)
        assert not steadiness(list(rates), PART_S).is_steady


@pytest.mark.parametrize(("level", "at"), [(0.5, 0.8), (1.2, 0.7), (0.95, 0.6)])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_late_step_is_two_levels_though_no_line_shows_it(level: float, at: float, noise: float) -> None:
    # Noise a fifth of the smallest step: anybody sees it.
    times = np.arange(PARTS) / PARTS
    for seed in range(20):
        random = np.random.default_rng(seed).standard_normal(PARTS)
        verdict = steadiness(list(RATE_PPS * (np.where(times < at, 1.0, level) + noise * random)), PART_S)
        assert not verdict.is_steady
    step = greatest_step(list(np.where(times < at, 1.0, level)))
    assert step.at == at * PARTS
    assert step.rise == pytest.approx(level - 1.0)


def test_the_reason_says_where_a_rate_falls_and_by_how_much() -> None:
    halved = [RATE_PPS * (1.0 if n < 800 else 0.5) * (1.0 + 0.01 * (-1) ** n) for n in range(PARTS)]
    reason = steadiness(halved, PART_S).reason
    assert "two levels: at about 800 ms the rate falls by 50 %" in reason


@pytest.mark.parametrize("coefficient", [0.0, 0.9])
@pytest.mark.slow
def test_chance_makes_no_steps(coefficient: float) -> None:
    results = [greatest_step(autoregressive(coefficient, 5000 + seed)).p < STEP_LEVEL for seed in range(300)]
    assert sum(results) <= 6  # drifts that the line shows are among them


def test_drift_below_what_a_throughput_is_read_to_is_none() -> None:
    rates = [RATE_PPS * (1.0 + 0.003 * n / PARTS + 0.0002 * (-1) ** n) for n in range(PARTS)]
    result = batch_means(rates)
    assert result.p < 1e-6  # it is there, beyond doubt
    assert result.rise / result.mean == pytest.approx(0.003, rel=0.05)
    verdict = steadiness(rates, PART_S)
    assert verdict.is_steady
    assert verdict.from_s == 0.0


def test_an_approach_without_noise_is_steady_from_where_what_is_missing_is_negligible() -> None:
    # A 400th is missing after ln(400) = 6.0 time constants.
    verdict = steadiness(approach(0.05, noise=0.0), PART_S)
    assert verdict.is_steady
    assert verdict.from_s == pytest.approx(6.0 * 0.05, abs=3 * PART_S)


def test_an_exponential_approach_is_cut_where_its_bias_has_become_small() -> None:
    time_s = 0.02
    steady = 0
    for seed in range(20):
        rates = approach(time_s, seed)
        # The mean over all is too low by time constant over trial, 2 %.
        assert 1.0 - np.mean(rates) / RATE_PPS == pytest.approx(time_s / (PARTS * PART_S), abs=0.003)
        verdict = steadiness(rates, PART_S)
        assert time_s < verdict.from_s < 8.0 * time_s
        assert verdict.mean == pytest.approx(RATE_PPS, rel=0.003)
        steady += verdict.is_steady
    assert steady >= 17  # one in twenty is called drifting by chance


@pytest.mark.parametrize("time_s", [0.4, 0.6, 2.0])
def test_an_approach_as_slow_as_the_trial_is_long_is_not_steady(time_s: float) -> None:
    verdict = steadiness(approach(time_s), PART_S)
    assert not verdict.is_steady
    assert "rising" in verdict.reason


def waits_s(rho: float, seed: int, frames: int) -> np.ndarray:
    """Return the waiting times of an M/D/1 queue from empty (Lindley), service time 1."""
    gaps = np.random.default_rng(seed).exponential(1.0 / rho, frames)
    steps = np.concatenate([[0.0], 1.0 - gaps[1:]])
    walk = np.cumsum(steps)
    return walk - np.minimum(np.minimum.accumulate(walk), 0.0)


@pytest.mark.slow
def test_the_wait_in_an_m_d_1_queue_from_empty_is_steady_at_what_pollaczek_and_khinchine_say() -> None:
    rho, frames = 0.95, 500_000
    truth = rho / (2.0 * (1.0 - rho))
    verdicts = [steadiness(list(waits_s(rho, seed, frames).reshape(PARTS, -1).mean(axis=1)), 1e6) for seed in range(60)]
    steady = [verdict for verdict in verdicts if verdict.is_steady]
    assert len(steady) >= 0.85 * 60
    assert sum(entry.low <= truth <= entry.high for entry in steady) >= 0.85 * len(steady)
    # The mean over all trials is not biased by the empty start: it agrees to within its own spread.
    means = np.array([item.mean for item in steady])
    assert abs(means.mean() - truth) < 3.0 * means.std(ddof=1) / math.sqrt(len(steady))


def test_a_simulated_m_d_1_queue_from_empty_forwards_what_is_offered() -> None:
    router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e15)
    load = OfferedLoad(rate_pps=0.95e6, arrivals=Arrivals.poisson())
    held = 0
    for seed in range(12):
        trial = Simulate(router, seed=seed, over_time=True, steady_state=False).trial(load, 0.3)
        verdict = steadiness_of(trial)
        assert verdict.is_steady or "rising" in verdict.reason or "falling" in verdict.reason
        held += verdict.is_steady and verdict.low <= 0.95e6 <= verdict.high
    assert held >= 9


@pytest.mark.parametrize(("rho", "is_settled"), [(0.5, True), (1.1, False)])
def test_a_steady_rate_does_not_hide_that_the_queue_behind_it_still_grows(rho: float, is_settled: bool) -> None:
    router = multicore(1, ServiceCost(per_packet_s=1e-6), queue_frames=100_000, link_bps=1e15)
    load = OfferedLoad(rate_pps=rho * 1e6, arrivals=Arrivals.poisson())
    trial = Simulate(router, over_time=True, steady_state=False).trial(load, 0.1)
    assert steadiness_of(trial).is_steady
    assert (latency_unsteady(trial) == "") is is_settled


def test_drops_begin_when_the_queue_is_full_and_are_steady_from_then_on() -> None:
    # 2e6 frames/s come, 1e6 go: a queue of 10,000 frames is full after 10 ms.
    router = multicore(1, ServiceCost(per_packet_s=1e-6), queue_frames=10_000, link_bps=1e12)
    trial = Simulate(router, over_time=True, steady_state=False).trial(OfferedLoad(rate_pps=2e6), 0.1)
    verdict = steadiness_of(trial, "dropped_pps")
    assert verdict.is_steady
    assert verdict.from_s == pytest.approx(10e-3, abs=0.6e-3)
    assert verdict.mean == pytest.approx(1e6, rel=1e-3)
    once = with_steady_rates(trial, verdict)
    assert once.loss_ratio == pytest.approx(0.5, abs=1e-3)
    assert once.offered_frames == trial.offered_frames
    assert once.measured_s == pytest.approx(90e-3, abs=0.6e-3)
    unsteady = replace(verdict, is_steady=False)
    assert with_steady_rates(trial, unsteady) is trial


def test_what_never_changes_is_steady_from_the_start_without_any_doubt_left() -> None:
    verdict = steadiness([RATE_PPS] * PARTS, PART_S)
    assert verdict.is_steady
    assert (verdict.from_s, verdict.low, verdict.mean, verdict.high) == (0.0, RATE_PPS, RATE_PPS, RATE_PPS)


@pytest.mark.parametrize(
    ("rates", "part_s", "reason"),
    [
        ([1e6] * 1000, 1e-7, "too few frames for a verdict: 100, at least 200"),
        ([0.0] * 1000, 1.0, "too few frames for a verdict: 0"),
        ([], 1.0, "too few frames for a verdict: 0"),
        ([1e6] * 39, 1.0, "too few parts for a verdict: 39, at least 40"),
    ],
)
def test_too_little_to_say_is_reported(rates: Sequence[float], part_s: float, reason: str) -> None:
    verdict = steadiness(rates, part_s)
    assert not verdict.is_steady
    assert reason in verdict.reason


def test_what_is_no_series_is_refused_with_what_to_do() -> None:
    with pytest.raises(RoutecastError, match="not a number"):
        steadiness([1.0, float("nan")], 1.0)
    with pytest.raises(RoutecastError, match="more than 0"):
        steadiness([1.0], 0.0)
    trial = Simulate(multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e12)).trial(OfferedLoad(rate_pps=1e5), 0.1)
    with pytest.raises(RoutecastError, match="over_time=True"):
        steadiness_of(trial)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 50))
def test_the_verdict_depends_on_no_unit(rate: float, time: float, seed: int) -> None:
    rates = approach(0.05, seed, noise=0.1)
    item = steadiness(rates, PART_S, fewest=0.0)
    other = steadiness([rate * value for value in rates], time * PART_S, fewest=0.0)
    assert other.is_steady == item.is_steady
    assert other.from_s == pytest.approx(time * item.from_s, rel=1e-9)
    assert other.mean == pytest.approx(rate * item.mean, rel=1e-9)


def test_the_truncation_cuts_as_the_simulator_does() -> None:
    # The series of the tests in crates/sim/src/steady.rs.
    decay = [10.0 - 0.1 * n for n in range(100)] + [0.1 if n % 2 == 0 else -0.1 for n in range(900)]
    cut = mser5(decay)
    assert cut is not None
    assert 80 <= cut <= 105
    assert mser5([3.0] * 1000) == 0
    assert mser5([float(n) for n in range(1000)]) is None


def test_the_truncation_minimises_the_error_that_it_says_it_minimises() -> None:
    # By brute force from the definition, over all cuts.
    rates = approach(0.03, 3)
    means = np.array(rates).reshape(-1, 5).mean(axis=1)
    errors = [np.sum((means[cut:] - means[cut:].mean()) ** 2) / (200 - cut) ** 2 for cut in range(101)]
    first = next(cut for cut, error in enumerate(errors) if error <= 1.1 * min(errors))
    assert mser5(rates) == 5 * first


def test_a_reading_on_the_way_up_is_too_low_and_the_mean_so_far_lower_still() -> None:
    # Of an exponential approach: 1 - exp(-t/T) now, 1 - T/t (1 - exp(-t/T)) so far.
    time_s, at_s = 0.1, 0.2
    seen = reading(approach(time_s, noise=0.0), PART_S, at_s)
    assert seen.now == pytest.approx(RATE_PPS * (1.0 - math.exp(-2.0)), rel=2e-3)
    assert seen.so_far == pytest.approx(RATE_PPS * (1.0 - 0.5 * (1.0 - math.exp(-2.0))), rel=2e-3)
    assert seen.counted == pytest.approx(seen.so_far * at_s)


@pytest.mark.parametrize("at_s", [0.0, -1.0, 1.001, float("nan")])
def test_a_reading_outside_the_trial_is_refused(at_s: float) -> None:
    with pytest.raises(RoutecastError, match="the trial runs from 0 to 1 s"):
        reading([1.0] * PARTS, PART_S, at_s)


@given(st.lists(st.floats(0.0, 1e7), min_size=1, max_size=50), st.floats(0.01, 1.0))
def test_a_reading_at_the_end_has_seen_everything(rates: list[float], share: float) -> None:
    end = reading(rates, 0.5, 0.5 * len(rates))
    assert end.so_far == pytest.approx(sum(rates) / len(rates))
    assert end.now == rates[-1]
    part_way = reading(rates, 0.5, share * 0.5 * len(rates))
    assert part_way.counted <= end.counted * (1.0 + 1e-9) + 1e-9


def test_in_overload_sampled_counters_give_the_mean_time_inside() -> None:
    # Meyer et al. 2014, eq. 4. Inside: a full queue of 100 and the frame in service, 1 us each.
    router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e12, queue_frames=100)
    trial = Simulate(router, over_time=True, steady_state=False).trial(OfferedLoad(rate_pps=1.5e6), 0.1)
    assert trial.loss_ratio > 0.3
    assert trial.latency is not None
    # The queue is one short of full until the next frame comes, at most two thirds of the time.
    assert sampled_sojourn_s(trial) == pytest.approx(101e-6, rel=0.01)
    assert sampled_sojourn_s(trial) == pytest.approx(trial.latency.mean_s, rel=0.01)
    # A tester says nothing of a transient: all samples count, and the first 0.2 ms of filling weigh 0.2 %.
    measured = replace(trial, evaluator="measure", measured_s=math.nan, latency=None)
    assert sampled_sojourn_s(measured) == pytest.approx(101e-6, rel=0.015)


def test_at_partial_load_sampled_counters_give_the_time_inside_an_m_d_1_queue() -> None:
    service_s, busy = 1e-6, 0.8
    router = multicore(1, ServiceCost(per_packet_s=service_s), link_bps=1e15, queue_frames=10_000)
    load = OfferedLoad(rate_pps=busy / service_s, arrivals=Arrivals.poisson())
    trials = [Simulate(router, seed=seed, over_time=True, steady_state=False).trial(load, 0.1) for seed in range(1, 17)]
    # Pollaczek and Khinchine: half the wait of M/M/1.
    expected_s = service_s * (1.0 + busy / (2.0 * (1.0 - busy)))
    # 950 samples of about two frames inside each, 4 standard errors of their mean over all runs.
    results = [sampled_sojourn_s(trial) for trial in trials]
    assert np.mean(results) == pytest.approx(expected_s, abs=4.0 * np.std(results, ddof=1) / math.sqrt(len(results)))
    assert np.mean(results) == pytest.approx(expected_s, rel=0.05)


def test_a_queue_that_still_grows_has_no_sampled_time_inside() -> None:
    router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e15, queue_frames=100_000)
    load = OfferedLoad(rate_pps=1.1e6, arrivals=Arrivals.poisson())
    assert math.isnan(sampled_sojourn_s(Simulate(router, over_time=True, steady_state=False).trial(load, 0.05)))
