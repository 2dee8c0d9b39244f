"""Costs per packet and per poll from two rates, and what the simulator makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FitProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.trial import TaskActivity, Trial
from routecast.load import Arrivals, OfferedLoad
from routecast.replications.activation_costs import PollCosts, PollRule, fit_poll_costs

MAXIMUM_PPS, SATURATION_PPS = 1.04e6, 0.7e6
"""Bolla et al. 2009, sec. IV-B: one Xeon core at 3 GHz, 64 B at constant bit rate."""


def seen(costs: PollCosts, rate_pps: float, arrivals: Arrivals | None = None) -> tuple[Trial, TaskActivity]:
    load = OfferedLoad(rate_pps=rate_pps, arrivals=arrivals or Arrivals.cbr())
    trial = Simulate(costs.router(), steady_state=False).trial(load, 30_000 / rate_pps)
    return trial, next(each for each in trial.activity if each.name == "core 0")


def paper(manner: PollRule = "until_empty", per_interrupt_s: float = 0.2e-6) -> PollCosts:
    return fit_poll_costs(
        maximum_pps=MAXIMUM_PPS, saturation_pps=SATURATION_PPS, manner=manner, per_interrupt_s=per_interrupt_s
    )


@given(
    st.floats(1e5, 1e8),
    st.floats(0.3, 0.99),
    st.integers(4, 300),
    st.sampled_from(["until_empty", "until_short", "exhaustive"]),
)
def test_the_costs_give_back_both_rates(maximum_pps: float, ratio: float, budget: int, manner: PollRule) -> None:
    costs = fit_poll_costs(
        maximum_pps=maximum_pps, saturation_pps=ratio * maximum_pps, manner=manner, budget_frames=budget
    )
    assert costs.maximum_pps == pytest.approx(maximum_pps)
    assert costs.saturation_pps == pytest.approx(ratio * maximum_pps)


@pytest.mark.parametrize("per_interrupt_s", [0.0, 0.2e-6, 1e-6, 2e-6])
def test_idle_time_and_interrupts_are_gone_at_700_kpps_and_the_rate_grows_to_1040(per_interrupt_s: float) -> None:
    costs = paper(per_interrupt_s=per_interrupt_s)
    _, beyond = seen(costs, 1.01 * SATURATION_PPS)
    assert beyond.busy_ratio > 0.999
    assert beyond.interrupts_per_s / SATURATION_PPS < 1e-3
    overload, _ = seen(costs, 1.5e6)
    assert overload.forwarded_pps == pytest.approx(MAXIMUM_PPS, rel=0.005)


def test_without_cost_of_interrupts_the_core_is_busy_in_proportion_up_to_the_saturation() -> None:
    for ratio in (0.1, 0.5, 0.9, 0.97):
        _, activity = seen(paper(per_interrupt_s=0.0), ratio * SATURATION_PPS)
        assert activity.busy_ratio == pytest.approx(ratio, abs=0.002)


def test_between_saturation_and_maximum_polls_share_their_cost() -> None:
    costs = paper()
    for rate_pps in (0.75e6, 0.85e6, 0.95e6):
        trial, activity = seen(costs, rate_pps)
        # The core is never idle: frames and polls fill the time, so rate·c + polls·P = 1.
        polls_per_s = (1.0 - rate_pps * costs.per_packet_s) / costs.per_poll_s
        assert activity.polls_per_s == pytest.approx(polls_per_s, rel=0.01)
        assert trial.forwarded_pps == pytest.approx(rate_pps, rel=0.005)


def test_full_polls_carry_the_budget_in_overload() -> None:
    trial, activity = seen(paper(), 2e6)
    assert trial.forwarded_pps / activity.polls_per_s == pytest.approx(64.0, rel=0.01)


def test_interrupts_after_every_short_poll_do_not_vanish_at_the_saturation() -> None:
    _, activity = seen(paper("until_short"), 1.02 * SATURATION_PPS)
    assert activity.busy_ratio > 0.999
    assert activity.interrupts_per_s > 0.5 * SATURATION_PPS


def test_poisson_arrivals_leave_idle_time_at_the_saturation() -> None:
    _, activity = seen(paper(), SATURATION_PPS, Arrivals.poisson())
    assert 0.05 < 1.0 - activity.busy_ratio < 0.3


@given(st.floats(0.05, 0.9), st.floats(0.0, 2e-6))
def test_a_poisson_frame_finds_the_core_asleep_as_often_as_the_core_sleeps(load: float, per_interrupt_s: float) -> None:
    # Poisson arrivals see time averages (Wolff 1982), and the frames that find the core asleep interrupt it.
    rate_pps = load * MAXIMUM_PPS
    trial, activity = seen(paper(per_interrupt_s=per_interrupt_s), rate_pps, Arrivals.poisson())
    assert activity.interrupts_per_s / trial.forwarded_pps == pytest.approx(1.0 - activity.busy_ratio, abs=0.015)


def test_a_slower_core_takes_longer_for_everything() -> None:
    costs = paper()
    load = OfferedLoad(rate_pps=2e6)
    slow = Simulate(costs.router(slower=2.0), steady_state=False).trial(load, 0.05)
    assert slow.forwarded_pps == pytest.approx(MAXIMUM_PPS / 2, rel=0.01)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"maximum_pps": 0.6e6}, "first must be below the second"),
        ({"saturation_pps": 0.0}, "both must be above 0"),
        ({"budget_frames": 1}, "at least 2"),
        ({"per_interrupt_s": -1e-9}, ">= 0"),
        ({"manner": "until_short", "per_interrupt_s": 1e-6}, "at most 4.67e-07 s"),
        ({"saturation_pps": 0.1e6, "budget_frames": 4}, "too far apart"),
        ({"manner": "until_emty"}, "until_empty"),
    ],
)
def test_rates_that_contradict_each_other_are_refused(changed: dict[str, object], says: str) -> None:
    given = {"maximum_pps": MAXIMUM_PPS, "saturation_pps": SATURATION_PPS, "series": "form"} | changed
    with pytest.raises(FitProblem, match=f"(?s)form.*{says}"):
        fit_poll_costs(**given)  # type: ignore[arg-type]  # wrong values are the point
