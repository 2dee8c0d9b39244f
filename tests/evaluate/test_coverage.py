"""The simulator's own intervals hold the truth about as often as they say (semantics S10)."""

from __future__ import annotations

import math

import pytest

from routecast.evaluate import Simulate
from routecast.evaluate.sweep import trial_past_transient
from routecast.load import Arrivals, OfferedLoad
from routecast.router import RouterModel, ServiceCost, multicore

SEEDS = range(1, 101)


def queue(scv: float, queue_frames: int = 1_000_000) -> RouterModel:
    service = ServiceCost(per_packet_s=1e-6, variation="lognormal", scv=scv)
    return multicore(1, service, link_bps=1e15, queue_frames=queue_frames)


def poisson(rho: float) -> OfferedLoad:
    return OfferedLoad(rate_pps=rho * 1e6, arrivals=Arrivals.poisson())


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "scv"), [(0.5, 1.0), (0.8, 1.0), (0.7, 10.0)])
def test_intervals_of_single_runs_hold_the_mean_latency(rho: float, scv: float) -> None:
    # Pollaczek and Khinchine. Of 100 intervals that hold with 92 %, fewer than 85 do in one of 100 tries.
    truth_s = 1e-6 * (1.0 + rho * (1.0 + scv) / (2.0 * (1.0 - rho)))
    held, means = [], []
    for seed in SEEDS:
        trial = Simulate(queue(scv), seed=seed).trial(poisson(rho), 0.1)
        low, high = trial.interval["latency.mean_s"]
        held.append(low <= truth_s <= high)
        assert trial.latency is not None
        means.append(trial.latency.mean_s)
    assert sum(held) >= 85
    # No burst is cut off: the mean of all runs is within three standard errors of the truth.
    mean_s = math.fsum(means) / len(means)
    spread_s = math.sqrt(math.fsum((mean - mean_s) ** 2 for mean in means) / (len(means) - 1) / len(means))
    assert abs(mean_s - truth_s) <= 3.0 * spread_s


def test_a_trial_that_is_too_short_has_no_interval_and_says_so() -> None:
    # A queue of 300 frames at load 1 goes up and down in tens of milliseconds.
    router, load = queue(1.0, 300), poisson(1.0)
    trials = [Simulate(router, seed=seed, steady_state=False).trial(load, 0.01) for seed in range(1, 21)]
    short = [trial for trial in trials if "latency.mean_s" not in trial.interval]
    assert short
    assert all(any("interval" in note or "transient" in note for note in trial.notes) for trial in short)
    longer = trial_past_transient(Simulate(router, seed=1), load, None)
    assert "latency.mean_s" in longer.interval


def test_an_interval_of_a_time_does_not_reach_below_0() -> None:
    trials = [Simulate(queue(10.0), seed=seed).trial(poisson(0.7), 0.02) for seed in range(1, 11)]
    assert min(trial.interval["waiting.mean_s"][0] for trial in trials) == 0.0


def test_a_rate_is_no_surer_than_the_edges_of_the_trial() -> None:
    # 32 frames each 53.3 us: every batch of 0.64 ms has twelve bursts, the 19 ms that are counted have 356.25.
    load = OfferedLoad(rate_pps=0.6e6, arrivals=Arrivals.bursts(32))
    low, high = Simulate(queue(1.0), seed=1).trial(load, 0.02).interval["forwarded_pps"]
    assert low <= 0.6e6 <= high
