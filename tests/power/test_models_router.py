"""The paper's model of a software router, equation by equation, and its fit from samples (Bolla 2009, sec. V)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FitProblem, ModelProblem
from routecast.power import OperatingPoint, PowerModel, energy_j
from routecast.power._load_samples import LoadSample
from routecast.power.fits import fit_router
from routecast.power.form import PUBLISHED_FORM, PolynomialForm
from routecast.power.software_router import CoreAtFrequency, SoftwareRouterPower

# Watts are made up for the tests; r_max of 1040 kpps at 3 GHz and the gain of 150 % are the paper's (secs. IV-B, V-B).
LOW = CoreAtFrequency(frequency_hz=2e9, idle_w=15.0, active_w=25.0, max_pps=750e3)
HIGH = CoreAtFrequency(frequency_hz=3e9, idle_w=18.0, active_w=40.0, max_pps=1040e3)
ONE = SoftwareRouterPower(states=(LOW, HIGH))
TWO = SoftwareRouterPower(states=(LOW, HIGH), cores=2, gains=(1.0, 1.5))


def test_it_is_a_power_model() -> None:
    assert isinstance(ONE, PowerModel)
    assert ONE.scope == "server"


@given(st.floats(0.0, 1.0), st.sampled_from([LOW, HIGH]))
def test_one_core_follows_equation_5(t: float, state: CoreAtFrequency) -> None:
    point = OperatingPoint(rate_pps=t * state.max_pps, load_ratio=t, frequency_hz=state.frequency_hz)
    expected = state.idle_w + (state.active_w - state.idle_w) * PUBLISHED_FORM.at(t)
    assert ONE.power_w(point) == pytest.approx(expected, rel=1e-9)


def test_more_than_the_greatest_throughput_is_not_forwarded_and_draws_no_more() -> None:
    assert ONE.throughput_pps([2e6], 3e9) == 1040e3  # eq. 6
    full, over = (ONE.power_w(OperatingPoint(rate_pps=rate, frequency_hz=3e9)) for rate in (1040e3, 2e6))
    assert over == full


def test_equations_7_and_8_agree_that_mean_power_is_power_at_the_mean_idle_share() -> None:
    rates = [0.0, 200e3, 400e3, 900e3]
    points = [OperatingPoint(rate_pps=rate, frequency_hz=3e9) for rate in rates]
    idle = ONE.idle_probability(rates, 3e9)
    mean_w = idle * 18.0 + (1.0 - idle) * 40.0  # eqs. 1 and 2
    assert energy_j(ONE, points, 60.0) == pytest.approx(mean_w * 240.0)


def test_two_cores_forward_their_gain_times_one_and_then_draw_all_their_active_power() -> None:
    # The Opteron of sec. V-B: two cores reach about 150 % of one.
    assert TWO.throughput_pps([9e9, 9e9], 3e9) == pytest.approx(1.5 * 1040e3)
    max_pps = TWO.share_pps(2, 3e9)
    expected = 2 * 18.0 + 2 * (40.0 - 18.0) * PUBLISHED_FORM.at(1.0)
    assert TWO.cores_power_w([max_pps, max_pps], 3e9) == pytest.approx(expected)


def test_a_core_that_does_not_forward_still_draws_its_idle_power() -> None:
    alone = TWO.power_w(OperatingPoint(rate_pps=300e3, frequency_hz=3e9, cores=1))
    assert alone == pytest.approx(ONE.power_w(OperatingPoint(rate_pps=300e3, frequency_hz=3e9)) + 18.0)
    assert TWO.power_w(OperatingPoint(frequency_hz=3e9, cores=0)) == 36.0


def test_unequal_loads_are_summed_core_by_core() -> None:
    rates = [100e3, 500e3]
    max_pps = TWO.share_pps(2, 2e9)
    expected = 30.0 + 10.0 * sum(PUBLISHED_FORM.at(rate / max_pps) for rate in rates)
    assert TWO.cores_power_w(rates, 2e9) == pytest.approx(expected)
    assert TWO.throughput_pps(rates, 2e9) == sum(rates)


def test_what_was_not_measured_is_refused_and_not_guessed() -> None:
    with pytest.raises(ModelProblem, match=r"2 GHz, 3 GHz"):
        ONE.power_w(OperatingPoint(frequency_hz=2.5e9))
    with pytest.raises(ModelProblem, match="gain of each number must be measured"):
        TWO.share_pps(3)
    with pytest.raises(ModelProblem, match=r"idle_w <= active_w"):
        SoftwareRouterPower(states=(CoreAtFrequency(frequency_hz=1e9, idle_w=5.0, active_w=4.0, max_pps=1.0),))


def samples_of(model: SoftwareRouterPower, noise_w: float = 0.0, seed: int = 7) -> list[LoadSample]:
    """Measure a known law at eleven loads of each clock and number of cores."""
    noise = np.random.default_rng(seed)
    results = []
    for state in model.states:
        for cores in range(1, len(model.gains) + 1):
            for load in np.linspace(0.0, 1.0, 11):
                rate = load * cores * model.share_pps(cores, state.frequency_hz)
                point = OperatingPoint(rate_pps=rate, frequency_hz=state.frequency_hz, cores=cores)
                power = model.power_w(point) + noise.normal(0.0, noise_w)
                results.append(
                    LoadSample(
                        load_ratio=float(load),
                        power_w=float(power),
                        rate_pps=float(rate),
                        frequency_hz=state.frequency_hz,
                        cores=cores,
                    )
                )
    return results


def test_the_fit_finds_states_and_gains_of_a_known_router_again() -> None:
    fit = fit_router("x", samples_of(TWO))
    assert isinstance(fit.model, SoftwareRouterPower)
    assert fit.model.gains == pytest.approx(TWO.gains)
    assert fit.model.cores == 2
    for result, true in zip(fit.model.states, TWO.states, strict=True):
        assert result.idle_w == pytest.approx(true.idle_w)
        assert result.active_w == pytest.approx(true.active_w)
        assert result.max_pps == pytest.approx(true.max_pps)


def test_19_of_20_intervals_hold_the_truth_when_watts_scatter() -> None:
    loads = [item / 10 for item in range(11)]
    held = []
    for seed in range(200):
        fit = fit_router("x", samples_of(ONE, noise_w=0.3, seed=seed), points=loads)
        for clock, true in (("2", LOW), ("3", HIGH)):
            span = fit.parameters[f"active_w - idle_w at {clock} GHz"]
            held.append(span.low < true.active_w - true.idle_w < span.high)
    # Of 400 intervals 380 hold on average, with a standard deviation of 4.4: four of them to either side.
    assert 362 <= sum(held) <= 398


def test_a_router_with_a_form_of_its_own_is_fitted_with_it() -> None:
    square_root_like = PolynomialForm(coefficients=(0.0, 1.8, -0.8))
    true = SoftwareRouterPower(states=(LOW, HIGH), form=square_root_like)
    own_form = fit_router("x", samples_of(true), form="monotone")
    published = fit_router("x", samples_of(true))
    worst = {
        kind: max(prediction.error_ratio for prediction in fit.predictions)
        for kind, fit in (("own", own_form), ("pub", published))
    }
    assert worst["own"] < 0.01 < worst["pub"]


def test_samples_without_clock_or_single_core_are_refused() -> None:
    bare = LoadSample(load_ratio=0.5, power_w=20.0, rate_pps=1e5)
    with pytest.raises(FitProblem, match="rate_pps and frequency_hz"):
        fit_router("x", [bare])
    pair = [sample for sample in samples_of(TWO) if sample.cores == 2]
    with pytest.raises(FitProblem, match="one core at 2 GHz"):
        fit_router("x", pair)
    triple = LoadSample(load_ratio=1.0, power_w=90.0, rate_pps=2e6, frequency_hz=3e9, cores=3)
    with pytest.raises(FitProblem, match="3 forwarding cores and none of 2"):
        fit_router("x", [*samples_of(ONE), triple])
    with pytest.raises(FitProblem, match="1 cores of the machine"):
        fit_router("x", samples_of(TWO), cores=1)
