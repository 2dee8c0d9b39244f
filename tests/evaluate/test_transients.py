"""Loads that change: rate steps, refused in closed form, and repeated bursts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.errors import ModelProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load import Arrivals, Flow, FlowSet, OfferedLoad, RateStep, RecordedFrames
from routecast.router import RouterModel, ServiceCost, multicore

ONE_FLOW = FlowSet(name="one", flows=(Flow(rss_hash=0),))
CAPACITY_PPS = 1e6


def router(queue: int = 100, link_bps: float = 10e9) -> RouterModel:
    return multicore(1, ServiceCost(per_packet_s=1 / CAPACITY_PPS), queue_frames=queue, link_bps=link_bps)


def simulated(load: OfferedLoad, duration_s: float, *, queue: int = 100, path: str = "auto"):  # type: ignore[no-untyped-def]
    return Simulate(router(queue), steady_state=False, path=path).trial(load, duration_s)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["cbr", "poisson"])
@settings(derandomize=True)
@given(rates=st.lists(st.floats(1e5, 4e6), min_size=1, max_size=4))
def test_frames_offered_are_the_integral_of_the_rate(kind: str, rates: list[float]) -> None:
    steps = tuple(RateStep(at_s=0.005 * n, rate_pps=rate) for n, rate in enumerate(rates[1:], start=1))
    load = OfferedLoad(rate_pps=rates[0], flows=ONE_FLOW, arrivals=Arrivals(kind=kind), steps=steps)  # type: ignore[arg-type]
    duration_s = 0.005 * len(rates)
    trial = simulated(load, duration_s)
    expected = 0.005 * sum(rates)
    assert load.mean_pps(duration_s) == pytest.approx(sum(rates) / len(rates))
    # Even gaps are known to a frame; a Poisson count has the variance of its mean.
    slack = 2.0 if kind == "cbr" else 6.0 * math.sqrt(expected)
    assert trial.offered_frames == pytest.approx(expected, abs=slack)


def test_both_paths_see_the_same_steps() -> None:
    load = OfferedLoad(rate_pps=2e6, flows=ONE_FLOW, steps=(RateStep(at_s=0.002, rate_pps=5e5),))
    recursion, events = (simulated(load, 0.004, path=path).to_json() for path in ("recursion", "events"))
    assert recursion == events


def test_the_first_loss_is_when_the_queue_is_full_and_the_last_when_the_rate_falls() -> None:
    load = OfferedLoad(rate_pps=2e6, flows=ONE_FLOW, steps=(RateStep(at_s=0.01, rate_pps=5e5),))
    trial = simulated(load, 0.02)
    # The queue of 100 grows by 2 − 1 Mpps, so it is full after 100 us; a frame in service shifts that by a few.
    assert trial.first_loss_s == pytest.approx(100e-6, abs=4e-6)
    # Of two frames one is lost while the rate lasts.
    assert trial.last_loss_s == pytest.approx(0.01, abs=2e-6)
    assert trial.dropped_frames == pytest.approx((2e6 - CAPACITY_PPS) * 0.01 - 100, abs=3)


def test_without_loss_there_is_no_first_or_last() -> None:
    trial = simulated(OfferedLoad(rate_pps=5e5, flows=ONE_FLOW), 0.01)
    assert math.isnan(trial.first_loss_s)
    assert math.isnan(trial.last_loss_s)


@pytest.mark.parametrize(("burst", "lost"), [(64, 0), (256, 1)])
def test_bursts_at_line_rate_fit_a_queue_or_do_not(burst: int, lost: int) -> None:
    """A burst of B frames at line rate leaves at most B (1 − C/line) waiting: 60 of 64, 239 of 256."""
    load = OfferedLoad(rate_pps=5e5, flows=ONE_FLOW, arrivals=Arrivals.bursts(burst))
    trial = simulated(load, 0.05)
    assert trial.offered_frames == pytest.approx(5e5 * 0.05, abs=burst)
    assert ((trial.dropped_frames or 0) > 0) == bool(lost)


def test_closed_forms_have_no_transients() -> None:
    load = OfferedLoad(rate_pps=1e5, flows=ONE_FLOW, steps=(RateStep(at_s=0.1, rate_pps=1e4),))
    with pytest.raises(ModelProblem, match="use simulate"):
        Solve(model=router()).trial(load, 1.0)


@pytest.mark.parametrize("rate_pps", [2e5, 5e5, 9e5, 1.3e6])
@pytest.mark.parametrize("burst", [16, 64, 256])
def test_repeated_bursts_lose_and_wait_in_closed_form_as_simulated(burst: int, rate_pps: float) -> None:
    load = OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(2), arrivals=Arrivals.bursts(burst))
    solved, trial = Solve(model=router()).trial(load, 1.0), simulated(load, 0.3)
    assert solved.loss_ratio == pytest.approx(trial.loss_ratio, abs=3e-3)
    # The simulator measures parts of bursts at its edges.
    assert solved.forwarded_pps == pytest.approx(trial.forwarded_pps, rel=1e-2)
    assert solved.latency is not None
    assert trial.latency is not None
    assert solved.latency.mean_s == pytest.approx(trial.latency.mean_s, rel=0.02)


def test_bursts_whose_flows_are_drawn_have_no_closed_form() -> None:
    flows = FlowSet(name="uneven", flows=(Flow(rss_hash=0, weight=3.0), Flow(rss_hash=1)))
    load = OfferedLoad(rate_pps=1e5, flows=flows, arrivals=Arrivals.bursts(16))
    with pytest.raises(ModelProblem, match="drawn at random; use simulate"):
        Solve(model=router()).trial(load, 1.0)


def test_a_burst_has_whole_frames_and_a_trace_no_steps() -> None:
    with pytest.raises(ModelProblem, match="whole frames"):
        Arrivals(kind="bursts", burst_frames=2.5)
    trace = Arrivals.recorded(RecordedFrames.of((0.0, 0.1), (64, 64), (0, 0)))
    with pytest.raises(ModelProblem, match="a trace has fixed instants"):
        OfferedLoad(rate_pps=10.0, flows=ONE_FLOW, arrivals=trace, steps=(RateStep(at_s=0.1, rate_pps=1.0),))
