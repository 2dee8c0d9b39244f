"""The energy of a day against closed forms: affine power, proportional power, Li's machines."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.trial import Bottleneck, Trial, TrialPower
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad, RecordedFrames
from routecast.load.offered import recorded_load
from routecast.load.series import DAY_S, TrafficSeries
from routecast.plan.power.day import KWH_J, ModelWatts, PowerCurve, PowerDay, TrialWatts, power_day, router_watts
from routecast.plan.series.shapes import synthetic_day
from routecast.power.model import OperatingPoint
from routecast.quantity.toml_file import parse_toml
from routecast.router import ServiceCost, multicore
from routecast.router.files import build_router
from routecast.router.model import Interruptions, PowerDraw, RandomTime

RATES = st.lists(st.floats(0.0, 1e11), min_size=1, max_size=48).filter(lambda rates: max(rates) > 1e3)


def profile(rates: list[float]) -> TrafficSeries:
    return TrafficSeries(step_s=DAY_S / len(rates), l2_bps=tuple(rates), source="test")


def affine(l2_bps: float) -> float:
    return 100.0 + 5e-9 * l2_bps


def day_of(rates: list[float], **options: float) -> PowerDay:
    return power_day(profile(rates), affine, scope="wall", source="affine", **options)


@given(RATES)
def test_affine_power_takes_its_base_and_every_bit(rates: list[float]) -> None:
    day = day_of(rates)
    bits = sum(rates) / len(rates) * DAY_S
    assert day.energy_j == pytest.approx(100.0 * DAY_S + 5e-9 * bits)
    assert day.traffic_bits == pytest.approx(bits)
    assert day.least_w <= day.mean_w * (1 + 1e-12)
    assert day.mean_w <= day.peak_w * (1 + 1e-12)


@given(RATES)
def test_proportional_power_is_its_own_ideal(rates: list[float]) -> None:
    day = power_day(profile(rates), lambda rate: 3e-9 * rate, scope="wall", source="ideal")
    assert day.proportional_j == pytest.approx(day.energy_j)
    assert day.energy_per_terabyte_j == pytest.approx(3e-9 * 8e12)


@given(RATES)
def test_power_with_a_base_takes_more_than_if_it_were_proportional(rates: list[float]) -> None:
    day = day_of(rates)
    assert day.proportional_j <= day.energy_j * (1 + 1e-12)


def test_a_kilowatt_for_a_day_costs_24_kilowatt_hours() -> None:
    day = power_day(
        profile([1e9] * 24),
        lambda _: 1000.0,
        scope="wall",
        source="constant",
        price_per_kwh=0.25,
        carbon_g_per_kwh=400.0,
    )
    assert day.energy_j == pytest.approx(24 * KWH_J)
    assert day.cost == pytest.approx(6.0)
    assert day.carbon_g == pytest.approx(9600.0)
    assert day.to_json()["energy_kwh"] == pytest.approx(24.0)


def test_without_price_and_carbon_nothing_is_assumed() -> None:
    day = day_of([1e9] * 24)
    assert day.cost is None
    assert day.carbon_g is None


@given(st.lists(st.floats(0.0, 1e11), min_size=2, max_size=200, unique=True))
def test_a_curve_of_affine_power_is_exact_however_few_points_it_has(rates: list[float]) -> None:
    curve = PowerCurve.through(affine, rates, max_points=5)
    assert len(curve.l2_bps) <= 5
    for rate in rates:
        assert curve.at(rate) == pytest.approx(affine(rate))


def test_few_loads_are_each_requested_once_and_never_interpolated() -> None:
    requested_bps: list[float] = []

    def watts(rate: float) -> float:
        requested_bps.append(rate)
        return math.ceil(rate / 6.5e9) * 75.0

    rates = [1e9, 7e9, 14e9, 7e9, 1e9]
    curve = PowerCurve.through(watts, rates)
    assert requested_bps == [1e9, 7e9, 14e9]
    assert not curve.is_interpolated
    assert [curve.at(rate) for rate in rates] == [75.0, 150.0, 225.0, 150.0, 75.0]


def test_a_curve_says_nothing_beyond_its_ends() -> None:
    curve = PowerCurve.through(affine, [1e9, 2e9])
    with pytest.raises(ValueError, match="outside"):
        curve.at(3e9)


def test_a_curve_of_twenty_trials_is_near_the_whole_for_a_bent_model() -> None:
    day = synthetic_day(mean_bps=5e9, peak_ratio=1.9, noise_ratio=0.05)

    def bent(rate: float) -> float:
        return 60.0 + 40.0 * math.sqrt(rate / 1.2e10)

    exact = power_day(day, bent, scope="s", source="s").energy_j
    curve = PowerCurve.through(bent, day.l2_bps)
    assert curve.is_interpolated
    # The chord of a function lies at most h²/8 max|f''| from it; the root bends most at the night's low load.
    assert power_day(day, curve.at, scope="s", source="s").energy_j == pytest.approx(exact, rel=2e-3)


class Ratio:
    scope = "server"

    def power_w(self, point: OperatingPoint) -> float:
        return 50.0 + 50.0 * point.load_ratio + 1e-6 * point.rate_pps + 1e-9 * point.l2_bps


def test_a_model_receives_ratio_packets_and_bits_of_the_load() -> None:
    watts = ModelWatts(model=Ratio(), frame_bytes=500.0, capacity_bps=10e9)
    assert watts(4e9) == pytest.approx(50.0 + 20.0 + 1.0 + 4.0)
    with pytest.raises(ModelProblem, match="above the capacity"):
        watts(11e9)


class Heater:
    """Forwards at most 1 Mpps at 100 W and 50 uJ a frame."""

    has_meter = True

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        forwarded = min(load.rate_pps, 1e6)
        mean_w = 100.0 + 50e-6 * forwarded
        power = TrialPower(mean_w=mean_w, scope="wall", energy_j=mean_w, packet_j=0.0, bit_j=0.0, source="heater")
        return Trial(
            evaluator="fake",
            duration_s=duration_s,
            intended_pps=load.rate_pps,
            offered_pps=load.rate_pps,
            forwarded_pps=forwarded,
            loss_ratio=1.0 - forwarded / load.rate_pps,
            l1_bps=0.0,
            l2_bps=0.0,
            bottleneck=Bottleneck(name="fake", kind="pool", reason="it is one"),
            power=power if self.has_meter else None,
        )


def test_a_router_is_tried_with_frames_of_its_load_and_its_losses_are_kept() -> None:
    load = OfferedLoad(rate_pps=1.0, frames=FrameMix.fixed(1000))
    watts = TrialWatts(evaluator=Heater(), load=load, duration_s=1.0)
    assert watts(4e9) == pytest.approx(100.0 + 50e-6 * 5e5)
    assert watts.losses == []
    assert watts(0.0) == pytest.approx(100.0, abs=1e-6)
    assert watts(16e9) == pytest.approx(150.0)
    ((at_bps, loss_ratio),) = watts.losses
    assert (at_bps, loss_ratio) == pytest.approx((16e9, 0.5))
    assert (watts.scope, watts.source) == ("wall", "heater")


def test_a_message_says_what_to_add_to_a_router_without_power_states() -> None:
    heater = Heater()
    heater.has_meter = False
    with pytest.raises(ModelProblem, match="power = "):
        TrialWatts(evaluator=heater, load=OfferedLoad(rate_pps=1.0), duration_s=1.0)(1e9)


@pytest.mark.parametrize(
    ("rates", "options", "message"),
    [
        ([1e9, math.nan], {}, "1 steps are missing"),
        ([0.0, 0.0], {}, "no traffic"),
        ([1e9], {"price_per_kwh": -0.1}, "price"),
        ([1e9], {"carbon_g_per_kwh": math.inf}, "carbon"),
    ],
)
def test_profiles_and_prices_that_make_no_sense_are_refused(
    rates: list[float], options: dict[str, float], message: str
) -> None:
    with pytest.raises(ModelProblem, match=message):
        day_of(rates, **options)


def test_a_curve_reports_how_many_of_its_loads_are_done() -> None:
    progress: list[tuple[int, int, str]] = []
    curve = PowerCurve.through(lambda load: load, [3.0, 1.0, 2.0, 1.0], on_progress=lambda *now: progress.append(now))
    assert [done for done, _, _ in progress] == [0, 1, 2]
    assert {total for _, total, _ in progress} == {3}
    assert curve.power_w == (1.0, 2.0, 3.0)


FRONT_LOADED = RecordedFrames.of(
    [*(number / 50_000 for number in range(5000)), *(0.1 + number / 12_500 for number in range(5000))],
    [64] * 10_000,
    [0] * 10_000,
)
"""Ten thousand frames in half a second, the half of them in its first fifth."""
TRACED = """
builder = "multicore"
cores = 1
frequency = "1 GHz"
service = { per_packet = "8000 cycles" }
activation = { kind = "interrupt" }
[power]
base = "4 W"
active = "6 W"
idle = "2 W"
"""


@pytest.mark.parametrize("duration_s", [0.1, 10.0])
def test_a_trace_is_scaled_to_each_load_of_a_day_and_offered_whole(duration_s: float) -> None:
    model, _ = build_router(parse_toml(TRACED, "router"), subject="router", folder=None)
    load = recorded_load(FRONT_LOADED, ports=len(model.ports))
    watts = TrialWatts(evaluator=Simulate(model, steady_state=False), load=load, duration_s=duration_s)
    for rate_pps in (5e3, 20e3):
        # A core without sleep states draws its active power while it serves, 8 us for each frame, else its idle power.
        assert watts(rate_pps * 64 * 8) == pytest.approx(4.0 + 2.0 + (6.0 - 2.0) * rate_pps * 8e-6, rel=1e-3)


def test_a_trace_that_would_take_weeks_is_offered_evenly() -> None:
    model, _ = build_router(parse_toml(TRACED, "router"), subject="router", folder=None)
    load = recorded_load(FRONT_LOADED, ports=len(model.ports))
    for evaluator in (Simulate(model, steady_state=False), Solve(model)):
        watts = TrialWatts(evaluator=evaluator, load=load, duration_s=0.1)
        assert watts(0.0) == pytest.approx(6.0, rel=1e-3)
    assert load.at(1e-4).flows == load.flows
    assert load.at(1e-4).frames == load.frames
    assert load.at(1e4).arrivals.trace is not None


def test_a_day_whose_loss_is_not_known_says_so_and_names_the_load() -> None:
    stops = Interruptions(rate_hz=1e4, duration=RandomTime(mean_s=12e-6, variation="gamma", scv=3.6))
    service = ServiceCost(per_packet_s=0.4e-6, variation="exponential")
    model = multicore(1, service, queue_frames=64, link_bps=1e9, interruptions=stops)
    model = replace(
        model,
        ports=tuple(replace(port, tx_ring_frames=16) for port in model.ports),
        pools=tuple(replace(pool, power=PowerDraw(active_w=6.0, idle_w=2.0)) for pool in model.pools),
    )
    arrivals = Arrivals.on_off(burst_frames=20, peak_ratio=3)
    load = OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(2, ports=2), arrivals=arrivals)
    words = {100e3: "", 500e3: "its loss is at most", 1e6: "its loss is not known at 1 of 1 loads"}
    for rate_pps, text in words.items():
        trials = TrialWatts(evaluator=Solve(model), load=load, duration_s=1.0)
        source = router_watts(trials, [rate_pps * 8 * 64], evaluator="solve", on_progress=lambda *_: None)
        notes = " ".join(source.notes)
        assert ("whether the router carries this day is not known" in notes) == bool(text)
        assert text in notes
        simulated = Simulate(model, seed=1).trial(load.at(rate_pps), 0.2).loss_ratio
        assert all(math.isnan(ratio) or 1e-4 < simulated <= ratio for _, ratio in trials.doubts)
        assert trials.doubts or simulated <= 1e-4
