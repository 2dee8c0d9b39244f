"""What cores draw by how they wait for frames, and what sleeping saves: closed forms against event-by-event sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.evaluate.simulate import Simulate
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.power import OperatingPoint, PowerModel
from routecast.power.activation import AdaptivePower, InterruptPower, PollingPower, lingering_core
from routecast.power.form import PUBLISHED_FORM
from routecast.power.states import IdlePeriods, break_even_s, dynamic_power_w, idle_spent, state_at
from routecast.router.files import parse_router
from routecast.router.model import PerformanceState, PowerDraw, SleepState

# Watts are made up for the tests.
C1 = SleepState(name="C1", power_w=2.0, exit_s=2e-6, after_s=0.0)
C6 = SleepState(name="C6", power_w=0.5, exit_s=130e-6, after_s=300e-6, wake_energy_j=1e-4)
DRAW = PowerDraw(active_w=20.0, idle_w=5.0, base_w=30.0, scope="package", sleep=(C1, C6))


def walked(
    arrivals_s: np.ndarray, services_s: np.ndarray, linger_s: float, interrupt_s: float
) -> tuple[float, float, float, int]:
    """Return busy, spinning and idle time and the interrupts of a core, frame by frame."""
    now = busy = spin = idle = 0.0
    interrupts = 0
    for arrival, service in zip(arrivals_s, services_s, strict=True):
        work = service
        if arrival > now:
            gap = arrival - now
            spin += min(gap, linger_s)
            if gap > linger_s:
                idle += gap - linger_s
                interrupts += 1
                work += interrupt_s
            now = arrival
        now += work
        busy += work
    return busy, spin, idle, interrupts


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("linger_s", [0.0, 2e-6, 20e-6])
@pytest.mark.parametrize("service", ["constant", "exponential"])
def test_poisson_arrivals_spend_a_cores_time_as_the_closed_form_says(
    load: float, linger_s: float, service: str
) -> None:
    noise = np.random.default_rng(19)
    frames, service_s, interrupt_s = 100_000, 1e-6, 3e-6
    rate = load / service_s
    arrivals = np.cumsum(noise.exponential(1.0 / rate, frames))
    services = noise.exponential(service_s, frames) if service == "exponential" else np.full(frames, service_s)
    busy, spin, idle, interrupts = walked(arrivals, services, linger_s, interrupt_s)
    total = busy + spin + idle
    said = lingering_core(rate, service_s, linger_s=linger_s, interrupt_cost_s=interrupt_s)
    # 100,000 frames: shares scatter by about a hundredth at the highest load.
    assert said.busy_ratio == pytest.approx(busy / total, abs=0.012)
    assert said.spin_ratio == pytest.approx(spin / total, abs=0.012)
    assert said.idle_ratio == pytest.approx(idle / total, abs=0.012)
    assert said.interrupts_per_s == pytest.approx(interrupts / total, rel=0.05, abs=2000.0)


@given(st.floats(0.01, 0.99), st.floats(0.0, 5e-6), st.floats(0.0, 8e-6))
def test_a_constant_rate_spends_a_cores_time_as_the_closed_form_says(
    load: float, linger_s: float, interrupt_s: float
) -> None:
    service_s, frames = 1e-6, 4000
    rate = load / service_s
    said, less, more = (
        lingering_core(rate, service_s, linger_s=wait_s, interrupt_cost_s=interrupt_s, arrivals="cbr")
        for wait_s in (linger_s, max(linger_s * (1.0 - 1e-9) - 1e-18, 0.0), linger_s * (1.0 + 1e-9) + 1e-18)
    )
    if abs(less.busy_ratio - more.busy_ratio) > 1e-3:
        return  # a frame comes just as the lingering ends: rounding decides
    if said.interrupts_per_s and rate / said.interrupts_per_s > frames / 20:
        return  # a cycle is too long for so few frames
    busy, spin, _, _ = walked(np.arange(1, frames + 1) / rate, np.full(frames, service_s), linger_s, interrupt_s)
    total = frames / rate
    assert said.busy_ratio == pytest.approx(busy / total, abs=0.07)
    assert said.spin_ratio == pytest.approx(spin / total, abs=0.07)


@given(st.floats(0.0, 2e6), st.floats(0.0, 1e-4), st.floats(0.0, 1e-5), st.sampled_from(["poisson", "cbr"]))
def test_shares_of_time_sum_to_one(rate: float, linger_s: float, interrupt_s: float, kind: str) -> None:
    said = lingering_core(
        rate, 1e-6, linger_s=linger_s, interrupt_cost_s=interrupt_s, arrivals="cbr" if kind == "cbr" else "poisson"
    )
    shares = (said.busy_ratio, said.spin_ratio, said.idle_ratio)
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= -1e-12


@given(st.floats(0.0, 1.0))
def test_a_polling_core_draws_its_active_power_at_any_load(load: float) -> None:
    model = PollingPower(draw=DRAW, cores=2)
    assert isinstance(model, PowerModel)
    assert model.power_w(OperatingPoint(load_ratio=load)) == 30.0 + 2 * 20.0
    assert model.power_w(OperatingPoint(load_ratio=load, cores=1)) == 30.0 + 20.0 + 5.0


def test_an_interrupted_core_follows_its_form_function() -> None:
    model = InterruptPower(draw=DRAW, form=PUBLISHED_FORM)
    assert model.power_w(OperatingPoint()) == 35.0
    assert model.power_w(OperatingPoint(load_ratio=0.4)) == pytest.approx(30.0 + 5.0 + 15.0 * PUBLISHED_FORM.at(0.4))


@given(st.floats(0.001, 0.999))
def test_lingering_for_ever_is_polling_and_not_at_all_is_work_alone(load: float) -> None:
    ever, never = (AdaptivePower(draw=DRAW, service_s=1e-6, linger_s=linger_s) for linger_s in (math.inf, 0.0))
    point = OperatingPoint(load_ratio=load)
    assert ever.power_w(point) == pytest.approx(PollingPower(draw=DRAW).power_w(point))
    assert never.power_w(point) == pytest.approx(30.0 + 5.0 + 15.0 * load)


def test_the_longer_it_lingers_the_more_it_draws() -> None:
    powers = [
        AdaptivePower(draw=DRAW, service_s=1e-6, linger_s=linger_s).power_w(OperatingPoint(rate_pps=2e5))
        for linger_s in (0.0, 1e-6, 1e-5, 1e-4)
    ]
    assert powers == sorted(powers)
    assert powers[0] < powers[-1]


def test_more_cores_than_there_are_is_refused() -> None:
    with pytest.raises(ModelProblem, match="the pool has 1"):
        PollingPower(draw=DRAW).power_w(OperatingPoint(cores=2))


def test_dynamic_power_scales_with_the_square_of_voltage_and_with_the_clock() -> None:
    full = PerformanceState(
        frequency_hz=3e9, active_w=dynamic_power_w(10e-9, 1.2, 3e9) + 4.0, idle_w=4.0, voltage_v=1.2
    )
    slow = state_at(full, 1.5e9, 0.9)
    assert slow.active_w == pytest.approx(4.0 + dynamic_power_w(10e-9, 0.9, 1.5e9))
    with pytest.raises(ModelProblem, match="needs both"):
        state_at(PerformanceState(frequency_hz=3e9, active_w=20.0, idle_w=5.0), 2e9, 1.0)


def energy_of_period_j(draw: PowerDraw, length_s: float) -> float:
    """Return what one idle period costs, state by state."""
    energy, now, power, state = 0.0, 0.0, draw.idle_w, None
    for one in draw.sleep:
        if length_s <= one.after_s:
            break
        energy += (one.after_s - now) * power
        now, power, state = one.after_s, one.power_w, one
    energy += (length_s - now) * power
    return energy + (state.exit_s * draw.active_w + state.wake_energy_j if state else 0.0)


@pytest.mark.parametrize("mean_s", [1e-5, 3e-4, 5e-3])
def test_exponential_idle_periods_cost_what_many_of_them_cost_on_average(mean_s: float) -> None:
    lengths = np.random.default_rng(2).exponential(mean_s, 40_000)
    walked_j = np.mean([energy_of_period_j(DRAW, float(length)) for length in lengths])
    spent = idle_spent(DRAW, IdlePeriods(mean_s=mean_s))
    assert spent.energy_j == pytest.approx(walked_j, rel=0.02)
    assert sum(spent.time_s.values()) == pytest.approx(mean_s)
    assert 0.5 <= spent.asleep_w <= 5.0


@given(st.floats(1e-7, 1e-1))
def test_constant_idle_periods_cost_what_one_of_them_costs(length_s: float) -> None:
    spent = idle_spent(DRAW, IdlePeriods(mean_s=length_s, kind="constant"))
    assert spent.energy_j == pytest.approx(energy_of_period_j(DRAW, length_s))


def test_break_even_is_where_sleeping_costs_as_much_as_idling() -> None:
    only = PowerDraw(active_w=20.0, idle_w=5.0, sleep=(C6,))
    even_s = break_even_s(C6, only)
    assert energy_of_period_j(only, even_s) == pytest.approx(even_s * only.idle_w)
    assert energy_of_period_j(only, 1.1 * even_s) < 1.1 * even_s * only.idle_w
    assert energy_of_period_j(only, 0.9 * even_s) > 0.9 * even_s * only.idle_w
    assert break_even_s(SleepState(name="C0", power_w=5.0), only) == math.inf


def test_states_that_are_not_allowed_are_not_entered() -> None:
    periods = IdlePeriods(mean_s=1e-3)
    assert idle_spent(DRAW, periods, allowed=()).energy_j == pytest.approx(1e-3 * 5.0)
    assert set(idle_spent(DRAW, periods, allowed=("C6",)).time_s) == {"idle", "C6"}


ROUTER = """
builder = "multicore"
cores = 1
units = 1
service = {{ per_packet = "1 us" }}
activation = {{ kind = "interrupt", interrupt_cost = "3 us", linger = "{linger} us", discipline = "exhaustive" }}
power = {{ active = "20 W", idle = "5 W" }}
"""


@pytest.mark.parametrize("arrivals", ["poisson", "cbr"])
@pytest.mark.parametrize("linger_us", [0.0, 2.0])
@pytest.mark.parametrize("rate_pps", [110e3, 450e3, 820e3])  # no frame comes at the instant at which work ends
def test_the_closed_form_and_the_simulator_agree_on_watts_and_interrupts(
    rate_pps: float, linger_us: float, arrivals: str
) -> None:
    router, _ = parse_router(ROUTER.format(linger=linger_us))
    kind = Arrivals.cbr() if arrivals == "cbr" else Arrivals.poisson()
    trial = Simulate(router).trial(OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(1), arrivals=kind), 0.2)
    model = AdaptivePower(
        draw=PowerDraw(active_w=20.0, idle_w=5.0),
        service_s=1e-6,
        linger_s=linger_us * 1e-6,
        interrupt_cost_s=3e-6,
        arrivals="cbr" if arrivals == "cbr" else "poisson",
    )
    assert trial.power is not None
    # 22,000 to 164,000 frames: the simulated shares of time scatter by less than a hundredth.
    assert trial.power.mean_w == pytest.approx(model.power_w(OperatingPoint(rate_pps=rate_pps)), rel=0.015)
    said = lingering_core(
        rate_pps,
        1e-6,
        linger_s=linger_us * 1e-6,
        interrupt_cost_s=3e-6,
        arrivals="cbr" if arrivals == "cbr" else "poisson",
    )
    (core,) = (one for one in trial.activity if one.name == "core 0")
    assert core.interrupts_per_s == pytest.approx(said.interrupts_per_s, rel=0.05, abs=50.0)
