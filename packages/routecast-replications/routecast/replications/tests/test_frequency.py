"""Maximum rate against clock: cycles that scale and memory that does not."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FitProblem
from routecast.evaluate.simulate import Simulate
from routecast.load import OfferedLoad
from routecast.replications.frequency import FrequencyLaw, fit_frequency
from routecast.router import ServiceCost, multicore

CLOCKS_HZ = (1.2e9, 1.8e9, 2.4e9, 3.0e9)


@given(st.floats(100.0, 1e5), st.floats(0.0, 5e-6))
def test_a_known_law_is_recovered_exactly(packet_cycles: float, memory_s: float) -> None:
    truth = FrequencyLaw(packet_cycles=packet_cycles, memory_s=memory_s)
    result = fit_frequency(CLOCKS_HZ, [truth.rate_pps(clock) for clock in CLOCKS_HZ])
    assert result.law.packet_cycles == pytest.approx(packet_cycles, rel=1e-6, abs=1e-3)
    assert result.law.memory_s == pytest.approx(memory_s, rel=1e-6, abs=1e-12)
    assert result.misfit_ratio < 1e-9


@given(st.floats(0.0, 1.0), st.floats(0.5e9, 5e9), st.floats(1.01, 4.0))
def test_the_gain_is_never_more_than_the_clock_and_less_with_memory(
    memory_ratio: float, clock: float, faster: float
) -> None:
    law = FrequencyLaw.at(frequency_hz=3e9, rate_pps=1e6, memory_ratio=memory_ratio)
    gain = law.rate_pps(faster * clock) / law.rate_pps(clock)
    assert 1.0 - 1e-12 <= gain <= faster * (1 + 1e-12)
    assert law.gain_ratio(faster * clock) <= law.gain_ratio(clock) + 1e-12  # "slightly decreases as the core raises"


def test_a_law_through_a_point_meets_it_with_its_share_of_memory() -> None:
    law = FrequencyLaw.at(frequency_hz=3e9, rate_pps=1.04e6, memory_ratio=0.2)
    assert law.rate_pps(3e9) == pytest.approx(1.04e6)
    assert law.memory_ratio(3e9) == pytest.approx(0.2)
    assert law.gain_ratio(3e9) == pytest.approx(0.8)
    step = 1e-4
    slope = math.log(law.rate_pps(3e9 * (1 + step)) / law.rate_pps(3e9)) / math.log(1 + step)
    assert slope == pytest.approx(law.gain_ratio(3e9), abs=1e-4)


def test_rates_that_grow_faster_than_the_clock_get_no_negative_memory() -> None:
    result = fit_frequency((1e9, 2e9, 3e9), (0.3e6, 0.7e6, 1.2e6))
    assert result.law.memory_s == 0.0
    assert result.misfit_ratio > 0.05


def test_two_samples_give_a_law_and_no_interval() -> None:
    truth = FrequencyLaw(packet_cycles=2000.0, memory_s=0.3e-6)
    result = fit_frequency((1e9, 3e9), [truth.rate_pps(clock) for clock in (1e9, 3e9)])
    assert result.law.memory_s == pytest.approx(0.3e-6)
    assert math.isnan(result.low.memory_s)


def test_the_95_percent_intervals_hold_the_truth_about_as_often() -> None:
    truth, noise = FrequencyLaw(packet_cycles=2000.0, memory_s=0.3e-6), random.Random(3)
    inside, runs = 0, 300
    for _ in range(runs):
        rates = [truth.rate_pps(clock) * math.exp(noise.gauss(0.0, 0.01)) for clock in CLOCKS_HZ]
        result = fit_frequency(CLOCKS_HZ, rates)
        inside += result.low.memory_s <= truth.memory_s <= result.high.memory_s
    assert inside >= 0.91 * runs  # 95 % less three standard errors


def test_the_simulator_in_overload_waits_for_a_full_buffer() -> None:
    law, buffer_frames = FrequencyLaw.at(frequency_hz=3e9, rate_pps=1.04e6, memory_ratio=0.2), 128
    for clock in (1.5e9, 3e9):
        cost = ServiceCost(per_packet_cycles=law.packet_cycles, memory_accesses=1.0, memory_latency_s=law.memory_s)
        router = multicore(1, cost, frequency_hz=clock, queue_frames=buffer_frames, link_bps=1e15)
        trial = Simulate(router, steady_state=False).trial(OfferedLoad(rate_pps=2e6), 0.05)
        assert trial.forwarded_pps == pytest.approx(law.rate_pps(clock), rel=0.01)
        assert trial.latency is not None
        # A frame that gets in finds the buffer full but for its own place, and latency ends as its service begins.
        assert trial.latency.p50_s == pytest.approx(law.plateau_s(clock, buffer_frames), rel=0.02)


@pytest.mark.parametrize(
    ("clocks", "rates", "says"),
    [
        ((1e9, 2e9), (1e6,), "one rate for each clock"),
        ((1e9,), (1e6,), "second one"),
        ((2e9, 2e9), (1e6, 1.1e6), "second one"),
        ((1e9, 0.0), (1e6, 1e6), "sample 2: got a clock"),
        ((1e9, 2e9), (1e6, -1.0), "sample 2: got a rate"),
        ((1e9, math.nan), (1e6, 1e6), "sample 2: got a clock"),
        ((), (), "second one"),
    ],
)
def test_samples_that_cannot_be_fitted_are_refused_with_the_reason(
    clocks: tuple[float, ...], rates: tuple[float, ...], says: str
) -> None:
    with pytest.raises(FitProblem, match=says):
        fit_frequency(clocks, rates)
