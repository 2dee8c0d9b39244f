"""Searches find a known capacity within the width that they state, and say so when they cannot."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("MLRsearch")

from benchmark_fakes import LINE_PPS, LINK_BPS, Disturbed, Faulty, Fluid, profile_with

from routecast.errors import DeviceEnded, EnvironmentProblem
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark import PlainRig, Stream, plan_of, run_benchmark
from routecast.lab.benchmark.page import benchmark_page
from routecast.lab.benchmark.procedures.throughput import PROCEDURE as THROUGHPUT
from routecast.lab.benchmark.procedures.throughput import ThroughputRow, rate_text
from routecast.lab.benchmark.search import longest_burst
from routecast.lab.benchmark.settings import GoalProfile
from routecast.lab.benchmark.stage import Counts
from routecast.lab.benchmark.tables import benchmark_tables
from routecast.load import OfferedLoad
from routecast.show.page import Tiles, render_page

SEARCHES = ["mlrsearch", "binary"]
LOSSLESS = GoalProfile(name="lossless", width=0.005, initial_trial=1.0, final_trial=60.0, duration_sum=60.0)


def search(evaluator: Fluid, how: str, *goals: GoalProfile, bidirectional: bool = False) -> tuple[ThroughputRow, ...]:
    profile = profile_with(
        throughput={"goal": goals or (LOSSLESS,), "base_goal": "", "verify_losses": 0, "search": how}
    )
    streams = [Stream(name="both ways", bidirectional=True)] if bidirectional else []
    plan = plan_of(profile, procedures=["throughput"], streams=streams)
    result = run_benchmark(plan, PlainRig(evaluator=evaluator, link=LINK_BPS))
    assert result.throughput is not None
    return result.throughput.rows


@pytest.mark.parametrize("how", SEARCHES)
@settings(derandomize=True)
@given(share=st.floats(0.01, 0.99))
def test_a_search_brackets_the_capacity_within_its_goal_width(how: str, share: float) -> None:
    capacity = share * LINE_PPS
    (row,) = search(Fluid(capacity), how)
    assert row.outcome == "found"
    # One frame in a trial is the resolution of the fake's counting.
    assert row.lower_pps <= capacity * (1.0 + 1e-6) + 2.0 < row.upper_pps * (1.0 + 1e-6) + 4.0
    assert (row.upper_pps - row.lower_pps) / row.upper_pps <= LOSSLESS.width * (1.0 + 1e-9)
    assert row.throughput_pps == row.lower_pps


@pytest.mark.parametrize("how", SEARCHES)
def test_a_goal_with_loss_is_met_where_so_much_is_lost(how: str) -> None:
    # Loss is 1 - C/rate, so a tolerated loss of p lets the rate be C/(1 - p).
    goal = GoalProfile(name="1 %", loss_ratio=0.01, width=0.002, initial_trial=1.0, final_trial=1.0, duration_sum=1.0)
    (row,) = search(Fluid(3e6), how, goal)
    assert row.lower_pps <= 3e6 / 0.99 * (1.0 + 1e-5) <= row.upper_pps * (1.0 + 1e-5)
    # RFC 9971: what is forwarded at the lower bound.
    assert row.conditional_pps == pytest.approx(3e6, rel=0.003)


@pytest.mark.parametrize("how", SEARCHES)
def test_a_router_faster_than_the_medium_has_the_mediums_maximum(how: str) -> None:
    (row,) = search(Fluid(2 * LINE_PPS), how)
    assert row.outcome == "maximum"
    assert row.throughput_pps == pytest.approx(LINE_PPS)
    assert math.isnan(row.upper_pps)
    assert row.of_theoretical_ratio == pytest.approx(1.0)


@pytest.mark.parametrize("how", SEARCHES)
@pytest.mark.parametrize("capacity_pps", [1e3, 1e4, 1e5, 1e6])
def test_a_router_far_slower_than_its_medium_is_found(how: str, capacity_pps: float) -> None:
    """The profile's least rate is a thousandth of the medium: 14.9 kframe/s."""
    (row,) = search(Fluid(capacity_pps), how)
    assert row.outcome == "found"
    assert row.lower_pps <= capacity_pps + 2.0 < row.upper_pps + 4.0
    assert row.throughput_pps == pytest.approx(capacity_pps, rel=LOSSLESS.width + 1e-3)


def test_frame_loss_of_a_slow_router_ends_where_it_loses_nothing() -> None:
    result = run_benchmark(
        plan_of(profile_with(), procedures=["frame_loss"]), PlainRig(evaluator=Fluid(1e4), link=LINK_BPS)
    )
    assert [row.loss_ratio for row in result.by_procedure["frame_loss"].rows][-2:] == [0.0, 0.0]


@pytest.mark.parametrize("how", SEARCHES)
def test_a_router_that_forwards_nothing_is_below_the_search(how: str) -> None:
    (row,) = search(Fluid(0.0), how)
    assert row.outcome == "below"
    assert math.isnan(row.throughput_pps)
    assert "least rate" in row.reason


@pytest.mark.parametrize("how", SEARCHES)
def test_loads_are_per_port_and_results_over_all_ports(how: str) -> None:
    evaluator = Fluid(4e6)
    (row,) = search(evaluator, how, bidirectional=True)
    assert row.throughput_pps == pytest.approx(4e6, rel=0.006)
    assert row.per_port_pps == pytest.approx(2e6, rel=0.006)
    assert row.theoretical_pps == pytest.approx(2 * LINE_PPS)
    assert max(rate for rate, _ in evaluator.trials) == pytest.approx(2 * LINE_PPS)


@pytest.mark.parametrize("how", SEARCHES)
def test_the_deciding_trials_have_the_final_length(how: str) -> None:
    """A queue lets short trials pass above the capacity; full length decides (RFC 2544 sec. 24)."""
    evaluator = Fluid(1e6, queue_frames=100_000)
    (row,) = search(evaluator, how)
    # In 60 s the queue hides at most 100,000 / 60 frames/s.
    assert row.throughput_pps <= 1e6 + 100_000 / 60.0 + 2.0
    assert (row.throughput_pps, 60.0) in [(pytest.approx(rate), length) for rate, length in evaluator.trials]


def test_several_goals_are_searched_at_once_and_each_has_its_row() -> None:
    ndr = GoalProfile(name="NDR", exceed_ratio=0.5, initial_trial=1.0, final_trial=1.0, duration_sum=21.0, width=0.005)
    pdr = replace(ndr, name="PDR", loss_ratio=0.005)
    first, second = search(Fluid(5e6), "mlrsearch", ndr, pdr)
    assert (first.goal, second.goal) == ("NDR", "PDR")
    assert first.throughput_pps == pytest.approx(5e6, rel=0.006)
    assert second.throughput_pps == pytest.approx(5e6 / 0.995, rel=0.006)


def test_trials_that_may_exceed_the_goal_ride_out_disturbances() -> None:
    """A stall of 2 ms in every third second of trials makes strict zero loss meaningless; RFC 9971's NDR stands it."""
    ndr = GoalProfile(name="NDR", exceed_ratio=0.5, initial_trial=1.0, final_trial=1.0, duration_sum=21.0, width=0.005)
    (tolerant,) = search(Disturbed(2e6), "mlrsearch", ndr)
    (strict,) = search(Disturbed(2e6), "mlrsearch", LOSSLESS)
    assert tolerant.throughput_pps == pytest.approx(2e6, rel=0.01)
    assert strict.outcome == "below" or strict.throughput_pps < 0.9 * 2e6


def test_loss_verification_rides_out_disturbances_too() -> None:
    goal = GoalProfile(name="short", initial_trial=0.5, final_trial=0.5, duration_sum=0.5, width=0.01)
    profile = profile_with(
        throughput={"goal": (goal,), "base_goal": "", "verify_losses": 4, "verify_below": 0.1, "search": "binary"}
    )
    results = []
    for seed in range(5):
        evaluator = Disturbed(2e6)
        evaluator.random.seed(seed)
        plan = plan_of(profile, procedures=["throughput"])
        result = run_benchmark(plan, PlainRig(evaluator=evaluator, link=LINK_BPS))
        assert result.throughput is not None
        results.append(result.throughput.rows[0].throughput_pps)
    assert fmean(results) == pytest.approx(2e6, rel=0.02)


def test_a_tester_that_does_not_reach_the_medium_limits_the_search_and_says_so() -> None:
    plan = plan_of(profile_with(throughput={"goal": (LOSSLESS,), "base_goal": ""}), procedures=["throughput"])
    evaluator = Faulty(2e6, reaches_pps=3e6)
    result = run_benchmark(plan, PlainRig(evaluator=evaluator, link=LINK_BPS))
    assert result.throughput is not None
    assert result.throughput.rows[0].throughput_pps == pytest.approx(2e6, rel=0.02)
    assert any("the tester reaches" in note for note in result.notes)
    assert [deviation.section for deviation in result.compliance.deviations].count("20") == 1


def test_the_testers_own_limit_is_no_throughput_and_is_written_as_at_least() -> None:
    """Each place that prints the rate says it: table, statement, answer, tile, figure, page."""
    plan = plan_of(profile_with(), procedures=["throughput", "latency"])
    result = run_benchmark(plan, PlainRig(evaluator=Faulty(2 * LINE_PPS, reaches_pps=3e6), link=LINK_BPS))
    row = result.throughput.rows[0]
    assert (row.outcome, row.limit) == ("maximum", "tester")
    assert row.throughput_pps < row.theoretical_pps
    text = f"≥ {row.throughput_pps:,.0f}"
    assert rate_text(row) == text
    (answer,) = THROUGHPUT.answers(result.throughput)
    assert f"Throughput: **{text} frames/s of 64 bytes" in answer
    assert "the router may forward more" in answer
    table = next(table for table in benchmark_tables(result) if table.name == "throughput")
    assert text in table.rows[0]
    assert "≥: the tester offers no more" in table.caption
    page = benchmark_page(result)
    assert text in page.answer
    figures = THROUGHPUT.figures(result.throughput, result)
    labels = [label for figure in figures for mark in figure.marks for label in getattr(mark, "labels", ())]
    assert any(text in label for label in labels)
    assert text in render_page(page)
    (tiles,) = THROUGHPUT.opening(result.throughput, result)
    assert isinstance(tiles, Tiles)
    assert tiles.tiles[0].value == text


def test_the_mediums_own_limit_is_a_throughput() -> None:
    result = run_benchmark(
        plan_of(profile_with(), procedures=["throughput"]), PlainRig(evaluator=Fluid(2 * LINE_PPS), link=LINK_BPS)
    )
    row = result.throughput.rows[0]
    assert (row.outcome, row.limit, rate_text(row)) == ("maximum", "medium", f"{LINE_PPS:,.0f}")
    (answer,) = run_benchmark(
        plan_of(profile_with(), procedures=["throughput"]), PlainRig(evaluator=Fluid(2e6), link=LINK_BPS)
    ).throughput.rows[:1]
    assert (answer.outcome, answer.limit) == ("found", "")


@pytest.mark.parametrize("how", SEARCHES)
def test_an_invalid_trial_is_never_a_result(how: str) -> None:
    """Every trial near the capacity stays invalid, so there is no throughput, and the reason is named."""
    evaluator = Faulty(2e6, fails=lambda rate, number: "a link went down" if rate < 3e6 else "")
    (row,) = search(evaluator, how)
    assert row.outcome == "undetermined"
    assert math.isnan(row.throughput_pps)
    assert "a link went down" in row.reason


def test_an_invalid_trial_is_run_again_and_kept() -> None:
    evaluator = Faulty(2e6, fails=lambda rate, number: "stolen time" if number % 3 == 0 else "")
    plan = plan_of(profile_with(), procedures=["throughput"])
    result = run_benchmark(plan, PlainRig(evaluator=evaluator, link=LINK_BPS))
    assert result.throughput is not None
    assert result.throughput.rows[0].throughput_pps == pytest.approx(2e6, rel=0.03)
    assert result.invalid_trials == sum(bool(record.trial.invalid) for record in result.trials) > 3
    again = [record for record in result.trials if record.attempt == 2]
    assert again
    assert all(record.trial.is_valid for record in again)


@settings(derandomize=True)
@given(longest=st.integers(0, 10**6), most=st.integers(1, 10**6), hint=st.integers(0, 10**6))
def test_the_longest_burst_is_found_within_its_step(longest: int, most: int, hint: int) -> None:
    def send(frames: int, purpose: str) -> Counts:
        assert 1 <= frames <= most
        return Counts(offered=frames, lost=max(frames - longest, 0))

    burst = longest_burst(send, max_frames=most, width_ratio=0.01, verify_losses=1, verify_below=0.1, hint_frames=hint)
    if longest >= most:
        assert (burst.frames, burst.outcome) == (most, "limit")
    else:
        assert burst.outcome == "found"
        assert burst.frames <= longest <= burst.frames + max(round(0.0101 * (longest + 1)), 1)


def test_a_trial_of_a_tester_that_fails_once_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    class Starved(Fluid):
        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            trial = Fluid.trial(self, load, duration_s)
            if len(self.trials) == 5:
                raise EnvironmentProblem("the tester failed: other work starved it")
            return trial

    monkeypatch.setattr("routecast.lab.benchmark.stage._WAIT_AFTER_FAILURE_S", 0.0)
    plan = plan_of(profile_with(), procedures=["throughput"])
    result = run_benchmark(plan, PlainRig(evaluator=Starved(2e6), link=LINK_BPS))
    assert result.throughput is not None
    assert result.throughput.rows[0].throughput_pps == pytest.approx(2e6, rel=0.03)
    assert any(
        "failed 1 time, and the trial was run again: the tester failed: other work" in note for note in result.notes
    )


def test_a_device_that_ends_gets_no_further_request() -> None:
    class Dying(Fluid):
        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            trial = Fluid.trial(self, load, duration_s)
            if len(self.trials) >= 5:
                raise DeviceEnded("zebra: ended by itself with signal 9: it says nothing")
            return trial

    dying = Dying(2e6)
    with pytest.raises(DeviceEnded, match="zebra: ended by itself"):
        run_benchmark(plan_of(profile_with(), procedures=["throughput"]), PlainRig(evaluator=dying, link=LINK_BPS))
    assert len(dying.trials) == 5


def test_a_goal_that_tolerates_more_is_never_below_a_stricter_one() -> None:
    from routecast.lab.benchmark.procedures.throughput import consistent_bounds
    from routecast.lab.benchmark.search import Bounds

    def bounds(lower: float, upper: float) -> Bounds:
        return Bounds(lower_pps=lower, upper_pps=upper, conditional_pps=lower, outcome="found")

    pdr = replace(LOSSLESS, name="PDR", loss_ratio=0.001)
    lossless, lossy = consistent_bounds([LOSSLESS, pdr], [bounds(3.0, 4.0), bounds(1.0, 2.0)])
    assert (lossless.lower_pps, lossless.upper_pps) == (3.0, 4.0)
    assert (lossy.lower_pps, lossy.upper_pps) == (3.0, 4.0)
    assert consistent_bounds([LOSSLESS, pdr], [bounds(1.0, 2.0), bounds(3.0, 4.0)])[1] == bounds(3.0, 4.0)
    # The maximum rate met the stricter goal: no rate is left to miss the other one at.
    at_most = Bounds(lower_pps=3.0, upper_pps=math.nan, conditional_pps=3.0, outcome="maximum")
    _, lossy = consistent_bounds([LOSSLESS, pdr], [at_most, bounds(1.0, 2.0)])
    assert (lossy.lower_pps, lossy.outcome, math.isnan(lossy.upper_pps)) == (3.0, "maximum", True)
