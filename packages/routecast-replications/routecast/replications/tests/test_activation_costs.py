"""Costs of activation from idle time: the closed form, the simulator, and the measured curves."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FitProblem
from routecast.evaluate.simulate import Simulate
from routecast.load import Arrivals, OfferedLoad
from routecast.power.form import FormFunction
from routecast.replications.activation_costs import ActivationCosts, fit_activation_costs

TABLE = Path(__file__).parents[1] / "data" / "measured" / "xdp2018_idle.csv"
LOADS_PPS = (0.25e6, 0.5e6, 1e6, 2e6, 3e6, 5e6, 10e6, 15e6, 20e6, 24.8e6)
TYPICAL = ActivationCosts(per_packet_s=40e-9, per_interrupt_s=0.3e-6, wakeup_s=0.5e-6)

ONE_CORE_PPS = {"xdp_drop": 24804275.0, "linux_raw_drop": 5051787.0}
"""Maxima of one core in the same paper's tables: xdp_drop/no_touch_rx512 and iptables_drop/raw."""


def measured(series: str) -> tuple[list[float], list[float]]:
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["series"] == series]
    return [float(row["offered_pps"]) for row in rows], [float(row["idle_ratio"]) for row in rows]


def simulated_idle(costs: ActivationCosts, rate_pps: float, *, frames: int = 60_000, seed: int = 1) -> float:
    load = OfferedLoad(rate_pps=rate_pps, arrivals=Arrivals.poisson())
    trial = Simulate(costs.router(), seed=seed, steady_state=False).trial(load, frames / rate_pps)
    (core,) = (resource for resource in trial.resources if resource.kind == "pool")
    return 1.0 - core.utilisation_ratio


@given(st.floats(20e-9, 1e-6), st.floats(0.0, 20.0), st.floats(0.0, 20.0), st.floats(0.05, 0.9))
def test_the_simulator_idles_as_the_queue_with_set_up_does(
    per_packet_s: float, interrupt_ratio: float, wakeup_ratio: float, utilisation: float
) -> None:
    costs = ActivationCosts(
        per_packet_s=per_packet_s, per_interrupt_s=interrupt_ratio * per_packet_s, wakeup_s=wakeup_ratio * per_packet_s
    )
    rate_pps = utilisation / per_packet_s
    # 60,000 frames leave about a percent of chance in the work that is offered, more where busy periods are long.
    assert simulated_idle(costs, rate_pps) == pytest.approx(costs.idle_ratio(rate_pps), abs=0.03)


@given(st.floats(10e-9, 1e-6), st.floats(0.5, 20.0), st.floats(0.2, 20.0))
def test_costs_are_recovered_from_their_own_curve(per_packet_s: float, interrupt: float, wakeup: float) -> None:
    truth = ActivationCosts(
        per_packet_s=per_packet_s, per_interrupt_s=interrupt * per_packet_s, wakeup_s=wakeup * per_packet_s
    )
    rates = [share / per_packet_s for share in (0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 1.1)]
    result = fit_activation_costs(rates, [truth.idle_ratio(rate) for rate in rates]).costs
    assert result.per_packet_s == pytest.approx(truth.per_packet_s, rel=1e-3)
    assert result.per_interrupt_s == pytest.approx(truth.per_interrupt_s, rel=0.01)
    assert result.wakeup_s == pytest.approx(truth.wakeup_s, rel=0.01, abs=0.01 * per_packet_s)


@pytest.mark.parametrize("series", ["xdp_drop", "linux_raw_drop"])
def test_three_costs_explain_the_measured_idle_curve_in_the_simulator(series: str) -> None:
    rates, idle = measured(series)
    fitted = fit_activation_costs(rates, idle, series=series)
    loaded = [(rate, share) for rate, share in zip(rates, idle, strict=True) if rate > 0.0]
    informative = loaded[: 1 + sum(share > 0.0 for _, share in loaded)]  # saturated points beyond the first are easy
    errors = [simulated_idle(fitted.costs, rate) - share for rate, share in informative]
    assert math.sqrt(sum(error**2 for error in errors) / len(errors)) <= 0.03


@pytest.mark.parametrize("series", ["xdp_drop", "linux_raw_drop"])
def test_the_cost_of_a_packet_agrees_with_the_maximum_that_was_measured_apart(series: str) -> None:
    fitted = fit_activation_costs(*measured(series))
    assert fitted.costs.maximum_pps == pytest.approx(ONE_CORE_PPS[series], rel=0.06)
    assert fitted.low.per_packet_s <= 1.0 / ONE_CORE_PPS[series] <= fitted.high.per_packet_s


def test_interrupts_per_packet_and_idle_time_fall_with_load() -> None:
    rates = [share * TYPICAL.maximum_pps / 50 for share in range(1, 60)]
    interrupts = [TYPICAL.interrupts_per_packet(rate) for rate in rates]
    assert interrupts == sorted(interrupts, reverse=True)
    assert interrupts[-1] == 0.0
    assert TYPICAL.interrupts_per_packet(1.0) == pytest.approx(1.0, abs=1e-6)
    idle = [TYPICAL.idle_ratio(rate) for rate in rates]
    assert idle == sorted(idle, reverse=True)


def test_busy_time_is_frames_and_interrupts_and_nothing_else() -> None:
    for rate in (1e5, 1e6, 1e7, 2e7):
        work = rate * (TYPICAL.per_packet_s + TYPICAL.interrupts_per_packet(rate) * TYPICAL.per_interrupt_s)
        assert TYPICAL.busy_ratio(rate) == pytest.approx(work, rel=1e-12)


@given(st.floats(10e-9, 1e-5), st.floats(0.0, 50.0), st.floats(0.0, 50.0), st.floats(0.0, 1.2), st.floats(0.0, 1.2))
def test_the_form_function_of_the_mechanism_rises_from_0_to_1(
    per_packet_s: float, interrupt: float, wakeup: float, first: float, second: float
) -> None:
    form = ActivationCosts(
        per_packet_s=per_packet_s, per_interrupt_s=interrupt * per_packet_s, wakeup_s=wakeup * per_packet_s
    )
    assert isinstance(form, FormFunction)
    assert form.at(0.0) == pytest.approx(0.0, abs=1e-12)
    assert form.at(1.0) == pytest.approx(1.0)
    low, high = sorted((first, second))
    assert form.at(low) <= form.at(high) + 1e-12
    assert form.at(low) >= min(low, 1.0) - 1e-12  # interrupts add to the work of frames


@pytest.mark.slow
def test_the_95_percent_intervals_hold_the_truth_about_as_often() -> None:
    random_errors = random.Random(5)
    inside, runs = 0, 80
    for _ in range(runs):
        idle = [min(max(TYPICAL.idle_ratio(rate) + random_errors.gauss(0.0, 0.01), 0.0), 1.0) for rate in LOADS_PPS]
        fitted = fit_activation_costs(LOADS_PPS, idle)
        inside += fitted.low.per_interrupt_s <= TYPICAL.per_interrupt_s <= fitted.high.per_interrupt_s
    assert inside >= 0.87 * runs  # 95 % less three standard errors


def test_as_many_points_as_costs_give_no_interval() -> None:
    rates = LOADS_PPS[1:8:3]
    fitted = fit_activation_costs(rates, [TYPICAL.idle_ratio(rate) for rate in rates])
    assert fitted.rmse_ratio < 1e-6
    assert math.isnan(fitted.low.per_packet_s)
    assert math.isnan(fitted.high.wakeup_s)


@pytest.mark.parametrize(
    ("rates", "idle", "says"),
    [
        (LOADS_PPS[:3], (0.9, 0.8), "one share for each load"),
        (LOADS_PPS[:3], (93.0, 88.3, 80.4), "percentage"),
        (LOADS_PPS[:3], (0.9, -0.1, 0.5), "0..1"),
        (LOADS_PPS[:3], (0.9, math.nan, 0.5), "0..1"),
        ((2e6, 1e6, 3e6), (0.9, 0.8, 0.7), "sort the points"),
        ((1e6, 1e6, 3e6), (0.9, 0.8, 0.7), "sort the points"),
        ((-1.0, 1e6, 3e6), (1.0, 0.8, 0.7), ">= 0"),
        ((0.0, 1e6, 3e6), (1.0, 0.8, 0.7), "for 3 costs"),
        ((1e6, 2e6, 3e6, 4e6), (0.2, 0.0, 0.0, 0.0), "for 3 costs"),
        (LOADS_PPS[:3], (1.0, 1.0, 1.0), "always idle"),
        ((), (), "for 3 costs"),
    ],
)
def test_points_that_cannot_be_fitted_are_refused_with_the_reason(
    rates: tuple[float, ...], idle: tuple[float, ...], says: str
) -> None:
    with pytest.raises(FitProblem, match="(?s)drop.*" + says):
        fit_activation_costs(rates, idle, series="drop")
