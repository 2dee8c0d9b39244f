"""A throughput is confirmed by the trials of latency and frame loss, or lowered to what they confirm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("polars")

from benchmark_fakes import LINE_PPS, LINK_BPS, Fluid, profile_with

from routecast.evaluate.trial import Trial
from routecast.lab.benchmark import BenchmarkResult, PlainRig, plan_of, run_benchmark
from routecast.lab.benchmark._confirmation import confirmed_rows
from routecast.lab.benchmark.page import benchmark_page
from routecast.lab.benchmark.procedures.throughput import ThroughputRow, confirmation_text
from routecast.lab.benchmark.search import verified
from routecast.lab.benchmark.stage import Counts, InvalidTrial
from routecast.lab.benchmark.tables import benchmark_tables
from routecast.lab.benchmark.values import NotRun
from routecast.load import FrameMix, OfferedLoad

CAPACITY_PPS = 1e6
SHORT_S = 0.25


class Broken(Exception):
    """What ends a run in these tests."""


@dataclass(slots=True)
class Tiring(Fluid):
    """A router that loses ``share`` of the frames of trials longer than :data:`SHORT_S` above ``holds_pps``.

    It does so with probability ``chance``; ``breaks`` ends a run at the first trial of recovery.
    """

    holds_pps: float = 0.9 * CAPACITY_PPS
    share: float = 0.005
    chance: float = 1.0
    breaks: bool = False
    random: Random = field(default_factory=lambda: Random(1))

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        if load.steps and self.breaks:
            raise Broken
        made = Fluid.trial(self, load, duration_s)
        assert made.offered_frames is not None
        if duration_s <= SHORT_S or load.rate_pps <= self.holds_pps or made.dropped_frames:
            return made
        if self.random.random() > self.chance:
            return made
        return self._made(load, duration_s, made.offered_frames, round(self.share * made.offered_frames))


def run(evaluator: Fluid, *procedures: str, out: Path | None = None, **tables: dict[str, object]) -> BenchmarkResult:
    plan = plan_of(profile_with(**tables), procedures=procedures)
    return run_benchmark(plan, PlainRig(evaluator=evaluator, link=LINK_BPS), out=out)


def lossless(result: BenchmarkResult) -> ThroughputRow:
    row = result.throughput.rows[0]
    assert isinstance(row, ThroughputRow)
    assert row.loss_ratio == 0.0
    return row


@pytest.mark.parametrize(
    ("losses", "repeats", "lost", "probes"),
    [
        ([0], 2, 0, 1),
        ([3, 0, 0], 2, 0, 3),
        ([3, 0, 5], 2, 3, 3),
        ([3, 0, 0, 5], 3, 3, 4),  # of an even number, the greater of the two in the middle
        ([3, 0, 0, 0, 9], 4, 0, 4),  # decided before the last
        ([500, 0, 0], 2, 500, 1),  # a clear loss is the router's at once
        ([3, 0], 0, 3, 1),
    ],
)
def test_the_median_of_the_trials_decides_and_not_the_luckiest(
    losses: Sequence[int], repeats: int, lost: int, probes: int
) -> None:
    purposes: list[str] = []

    def probe(load_pps: float, duration_s: float, purpose: str) -> Counts:
        purposes.append(purpose)
        return Counts(offered=1000, lost=losses[len(purposes) - 1])

    checked = verified(probe, repeats=repeats, below_ratio=0.1)
    assert checked(1e3, 1.0, "search 1").lost == lost
    assert len(purposes) == probes


def test_a_router_that_loses_in_half_of_its_long_trials_is_not_lossless() -> None:
    """The search has short trials and finds nothing; any one of ten long ones without loss would pass by luck."""
    evaluator = Tiring(CAPACITY_PPS, chance=0.5)
    result = run(evaluator, "latency", latency={"repeats": 10, "rates": (1.0, 0.5)})
    row = lossless(result)
    losses = [record.trial.loss_ratio for record in result.trials if record.rate_pps == row.searched_pps]
    assert 0.0 in losses
    assert max(losses) > 0.0
    assert row.confirmed == "lowered"
    # The search below the loss ends at or above what the router holds: there most of three trials decide.
    assert 0.98 * evaluator.holds_pps <= row.throughput_pps < row.searched_pps


def test_trials_without_loss_confirm_the_throughput() -> None:
    row = lossless(run(Fluid(CAPACITY_PPS), "latency", "frame_loss"))
    assert row.confirmed == "yes"
    assert row.throughput_pps == row.searched_pps == pytest.approx(CAPACITY_PPS, rel=0.021)
    assert "trials of latency and loss at this rate or below lost nothing" in row.confirmed_reason


def test_without_such_trials_the_throughput_is_not_confirmed_and_says_so() -> None:
    result = run(Fluid(CAPACITY_PPS), "throughput")
    row = lossless(result)
    assert row.confirmed == "not run"
    assert confirmation_text(row) == "not confirmed: no latency or loss trial was chosen"
    assert "Not confirmed: no latency or loss trial was chosen" in benchmark_page(result).answer


def test_a_loss_of_the_latency_trials_lowers_the_throughput_to_what_they_confirm() -> None:
    result = run(Tiring(CAPACITY_PPS), "latency", "frame_loss", "back_to_back", "recovery")
    row = lossless(result)
    assert row.confirmed == "lowered"
    assert row.searched_pps == pytest.approx(CAPACITY_PPS, rel=0.021)
    # Frame loss trials are short, so the greatest that was confirmed is one of theirs or the latency at a half.
    kept = [
        record.rate_pps
        for record in result.trials
        if record.procedure in {"latency", "frame_loss"} and record.rate_pps < row.upper_pps * (1.0 - 1e-9)
    ]
    assert row.throughput_pps == max(kept)
    assert row.lower_pps == row.per_port_pps == row.throughput_pps < row.upper_pps
    assert row.l1_bps == pytest.approx(row.throughput_pps * 8 * 84)
    assert confirmation_text(row).endswith("kpps: the latency trial at that rate lost 0.5 %")
    # What follows rests on the confirmed rate.
    assert result.back_to_back.rows[0].throughput_pps == row.throughput_pps
    assert result.recovery.rows[0].throughput_pps == row.throughput_pps
    table = next(table for table in benchmark_tables(result) if table.name == "throughput")
    assert "the latency trial at that rate lost 0.5 %" in table.caption
    assert f"{row.throughput_pps:,.0f} frames/s" in result.throughput.advertised[0]
    assert result.to_json()["throughput"]["rows"][0]["confirmed"] == "lowered"  # type: ignore[index]


def test_latency_is_that_of_the_lowered_throughput() -> None:
    result = run(Tiring(CAPACITY_PPS), "latency", latency={"rates": (1.0, 0.5)})
    row = lossless(result)
    assert row.confirmed == "lowered"
    whole, half = result.by_procedure["latency"].rows
    assert whole.rate_pps == row.throughput_pps < row.searched_pps
    assert half.rate_pps == pytest.approx(0.5 * row.throughput_pps)
    assert (whole.loss_ratio, whole.outcome) == (0.0, "found")
    assert not result.contradictions


def test_latency_follows_a_throughput_that_its_own_trials_lower_again() -> None:
    class Weakening(Tiring):
        """Holds less after each long trial."""

        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            made = super().trial(load, duration_s)
            self.holds_pps *= 0.999 if duration_s > SHORT_S else 1.0
            return made

    result = run(Weakening(CAPACITY_PPS), "latency")
    row = lossless(result)
    (latency,) = (latency for latency in result.by_procedure["latency"].rows if latency.rate_ratio == 1.0)
    is_followed = latency.rate_pps == pytest.approx(row.throughput_pps) and latency.outcome == "found"
    is_left = latency.outcome == "undetermined" and "lowered after these trials" in latency.reason
    assert is_followed or is_left


def test_without_a_confirmed_throughput_latency_is_not_determined() -> None:
    result = run(Tiring(CAPACITY_PPS, holds_pps=0.0), "latency")
    assert math.isnan(lossless(result).throughput_pps)
    assert {row.outcome for row in result.by_procedure["latency"].rows} == {"undetermined"}


def test_of_trials_at_a_rate_the_report_shows_the_worst_and_names_it() -> None:
    class Once(Tiring):
        """Loses in its second long trial alone."""

        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            number = sum(length_s > SHORT_S for _, length_s in self.trials)
            self.holds_pps = 0.0 if number == 1 else CAPACITY_PPS
            return Tiring.trial(self, load, duration_s)

    result = run(Once(CAPACITY_PPS), "latency", latency={"repeats": 3})
    row = lossless(result)
    assert row.throughput_pps == row.searched_pps
    worst = max(result.trials, key=lambda record: record.trial.loss_ratio * (record.trial.duration_s > SHORT_S))
    assert row.worst_loss_ratio == pytest.approx(0.005, rel=0.01)
    assert row.worst_trial == f"trial {worst.number} (latency, repeat 2 at 100%)"
    latency = result.by_procedure["latency"].rows[0]
    assert (latency.loss_ratio, latency.worst_trial) == (row.worst_loss_ratio, row.worst_trial)
    assert f"{row.worst_trial} at this rate lost 0.5 %" in benchmark_page(result).answer.replace("Trial", "trial")


def test_of_frame_loss_and_latency_at_one_rate_both_rows_show_the_worst() -> None:
    class Twice(Tiring):
        """Loses in latency trials, which are longer, as long as they are at the greatest rate."""

        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            self.holds_pps = 0.9 * LINE_PPS if duration_s > SHORT_S else 2.0 * LINE_PPS
            return Tiring.trial(self, load, duration_s)

    result = run(Twice(2.0 * LINE_PPS), "latency", "frame_loss", latency={"repeats": 1})
    first = result.by_procedure["frame_loss"].rows[0]
    assert first.rate_ratio == 1.0
    assert first.loss_ratio == pytest.approx(0.005, rel=0.01)
    assert first.forwarded_pps == pytest.approx(first.offered_pps * 0.995, rel=1e-4)
    assert "latency" in first.worst_trial
    table = next(table for table in benchmark_tables(result) if table.name == "frame-loss")
    assert "Loss of" in [column.title for column in table.columns]


@pytest.mark.parametrize("holds", [0.9, 0.6, 0.3])
def test_a_lowered_rate_is_searched_anew_with_trials_as_long_as_the_one_that_lost(holds: float) -> None:
    result = run(Tiring(CAPACITY_PPS, holds_pps=holds * CAPACITY_PPS), "latency")
    row = lossless(result)
    width = row.resolution_ratio
    assert row.confirmed == "lowered"
    assert holds * CAPACITY_PPS * (1.0 - 2.0 * width) <= row.throughput_pps <= holds * CAPACITY_PPS < row.upper_pps
    assert row.upper_pps - row.throughput_pps <= width * row.upper_pps
    below = [record for record in result.trials if record.purpose.startswith("search below the loss")]
    assert {record.trial.duration_s for record in below} == {0.3}
    # Two goals, each halved to its width at most, three trials where most decide.
    assert len(below) <= 2 * 3 * 8
    assert any(record.purpose == "confirm" and record.rate_pps == row.throughput_pps for record in result.trials)
    assert row.missed_loss_ratio == pytest.approx(0.005, rel=0.01)


def test_a_rate_that_the_new_search_does_not_confirm_falls_to_what_was_confirmed() -> None:
    class Fickle(Tiring):
        """Loses in the second long trial at a rate above a half, and in all later ones there."""

        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            is_second = duration_s > SHORT_S and (load.rate_pps, duration_s) in self.trials
            self.holds_pps = (0.55 if is_second else 0.9) * CAPACITY_PPS
            return Tiring.trial(self, load, duration_s)

    result = run(Fickle(CAPACITY_PPS, share=0.0005), "latency", latency={"repeats": 1})
    row = lossless(result)
    assert row.confirmed == "lowered"
    fallen_pps = {
        record.rate_pps
        for record in result.trials
        if record.purpose == "confirm" and 0.8 * CAPACITY_PPS < record.rate_pps < row.searched_pps
    }
    # Latency follows the lowered rate, whose second long trial loses in turn.
    assert row.throughput_pps < row.upper_pps <= min(fallen_pps)
    assert row.throughput_pps >= 0.49 * CAPACITY_PPS


def test_one_stall_in_a_latency_trial_is_repeated_and_lowers_nothing() -> None:
    class Once(Tiring):
        """Loses in its first long trial alone."""

        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            made = super().trial(load, duration_s)
            if duration_s > SHORT_S and made.dropped_frames and load.rate_pps <= CAPACITY_PPS:
                self.chance = 0.0
            return made

    result = run(Once(CAPACITY_PPS), "latency", latency={"repeats": 1})
    row = lossless(result)
    assert row.confirmed == "yes"
    assert row.throughput_pps == row.searched_pps
    confirming = [record for record in result.trials if record.purpose == "confirm"]
    assert confirming
    assert {record.procedure for record in confirming} == {"latency"}
    assert {record.trial.dropped_frames for record in confirming} == {0}


def test_a_goal_with_loss_keeps_its_rate_where_the_loss_is_within_it() -> None:
    _, tolerant = run(Tiring(CAPACITY_PPS, share=0.0005), "latency").throughput.rows
    assert tolerant.loss_ratio == 0.001
    assert tolerant.confirmed == "yes"


def test_a_goal_with_loss_is_not_lowered_below_a_stricter_one() -> None:
    """The frame loss trials have steps of a tenth: the one below is slower than the rate without loss."""
    result = run(Fluid(0.65 * LINE_PPS), "throughput", "frame_loss")
    strict, tolerant = result.throughput.rows
    too_fast = replace(tolerant, throughput_pps=0.72 * LINE_PPS, per_port_pps=0.72 * LINE_PPS)
    mine, lowered = confirmed_rows([strict, too_fast], result.trials, procedures=("throughput", "frame_loss"))
    assert mine.throughput_pps == strict.throughput_pps > 0.61 * LINE_PPS
    assert lowered.confirmed == "lowered"
    assert lowered.throughput_pps == strict.throughput_pps
    assert lowered.upper_pps == pytest.approx(0.7 * LINE_PPS)


def test_where_even_the_slowest_trial_lost_there_is_no_throughput() -> None:
    result = run(Tiring(CAPACITY_PPS, holds_pps=0.0), "latency", "back_to_back")
    row = lossless(result)
    assert (row.confirmed, row.outcome) == ("lowered", "undetermined")
    assert math.isnan(row.throughput_pps)
    assert "lost 0.5 %, and no latency or loss trial below it met the goal" in row.reason
    assert any(isinstance(item, NotRun) and "rests on the throughput" in item.reason for item in result.not_run)


def test_a_run_that_goes_on_lowers_to_the_same_rate(tmp_path: Path) -> None:
    procedures = ("latency", "frame_loss", "recovery")
    with pytest.raises(Broken):
        run(Tiring(CAPACITY_PPS, breaks=True), *procedures, out=tmp_path)
    again = run(Tiring(CAPACITY_PPS), *procedures, out=tmp_path)
    assert again.resumed_trials > 0
    whole = run(Tiring(CAPACITY_PPS), *procedures)
    # As JSON, in which a figure that is not known equals itself.
    assert again.to_json()["throughput"] == whole.to_json()["throughput"]
    assert again.to_json()["recovery"] == whole.to_json()["recovery"]


@pytest.mark.parametrize(
    ("trials", "passes", "attempts_needed"),
    [
        ("..", True, 2),
        ("x..", True, 3),
        (".x.", True, 3),
        ("x.x", False, 3),  # one lucky trial does not decide
        ("xx", False, 2),
        ("?.?.", True, 4),  # an invalid trial says nothing
        ("?????", False, 5),
        ("?.???", False, 5),
    ],
)
def test_the_power_tables_rate_wants_two_of_three_trials_without_loss(
    trials: str, passes: bool, attempts_needed: int
) -> None:
    from routecast.lab.power.wire import most_trials_pass

    router, kinds = Fluid(CAPACITY_PPS), iter(trials)
    load = OfferedLoad(rate_pps=0.5 * CAPACITY_PPS, frames=FrameMix.fixed(64))

    class Stage:
        count = 0

        def trial(self, rate_pps: float, duration_s: float, purpose: str, *, attempts: int) -> Trial:
            self.count += 1
            kind = next(kinds)
            result = router.trial(load.at((2.0 if kind == "x" else 0.5) * CAPACITY_PPS), duration_s)
            if kind == "?":
                raise InvalidTrial(("the tester was held up",), result, attempts)
            return result

    stage: Any = Stage()
    assert most_trials_pass(stage, 0.5 * CAPACITY_PPS, 1.0, 0.0) is passes
    assert stage.count == attempts_needed
