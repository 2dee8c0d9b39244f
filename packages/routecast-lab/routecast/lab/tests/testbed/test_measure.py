"""Measure with a fake tester: valid trials, invalid trials and their reasons, and the requests to the tester."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testbed_fakes import FakeBed, FakeDevice, FakeSnapshotReader, FakeTester, port

from routecast.errors import EnvironmentProblem, FileProblem, ModelProblem
from routecast.evaluate.protocol import Described, Evaluator, Resettable
from routecast.evaluate.trial import Trial
from routecast.lab.testbed._snapshots import CoreTimes
from routecast.lab.testbed.checks import Limits, disturbances, reset_reasons
from routecast.lab.testbed.dut_host import DeviceSite
from routecast.lab.testbed.measure import Measure, Phases
from routecast.lab.testbed.throttling import RealTimeThrottle
from routecast.load.arrivals import Arrivals
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, RateStep

ONE = FlowSet(name="1 flow", flows=(Flow(rss_hash=0),))
BOTH = FlowSet(name="2 flows", flows=(Flow(rss_hash=0), Flow(rss_hash=1, ingress=1, egress=0)))
NOBODY_STEALS = Limits(steal_ratio=1.0)


@pytest.fixture(autouse=True)
def fake_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecast.lab.testbed.measure.SnapshotReader", FakeSnapshotReader)


def load(rate_pps: float = 1e5, **values: Any) -> OfferedLoad:
    return OfferedLoad(rate_pps=rate_pps, **{"flows": ONE, **values})


def measure(tester: FakeTester, bed: Any = None, **values: Any) -> Measure:
    return Measure(bed or FakeBed(), tester=tester, **{"limits": NOBODY_STEALS, "retries": 0, **values})


def bent(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(outcome: dict[str, Any]) -> None:
        outcome["streams"][0].update(values)

    return change


def test_measure_is_all_that_an_evaluator_on_the_wire_can_be() -> None:
    evaluator = measure(FakeTester())
    assert isinstance(evaluator, Evaluator)
    assert isinstance(evaluator, Described)
    assert isinstance(evaluator, Resettable)


def test_broadcast_frames_are_sent_beside_and_counted_apart() -> None:
    tester = FakeTester(loss_ratio=0.01)
    with measure(tester) as evaluator:
        trial = evaluator.with_broadcast(0.01).trial(load(), 0.5)
        plain = evaluator.trial(load(), 0.5)
    assert trial.is_valid
    assert (trial.offered_frames, trial.dropped_frames) == (49_500, 495)
    assert trial.loss_ratio == pytest.approx(0.01)
    assert any("500 broadcast frames were sent besides (1.00% of all" in note for note in trial.notes)
    assert [len(request["streams"]) for request in tester.counted] == [2, 1]
    assert not any("broadcast" in note for note in plain.notes)


class Counting:
    """A condition that records its calls and notes how many were due."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self) -> None:
        self.calls.append("begin")

    def each_second(self) -> None:
        self.calls.append("send")

    def annotate(self, trial: Trial, due: int) -> Trial:
        return replace(trial, notes=(*trial.notes, f"{due} due"))


def test_a_condition_sends_before_the_first_frame_and_once_a_second() -> None:
    condition = Counting()
    with measure(FakeTester()) as evaluator:
        trial = evaluator.with_condition(condition).trial(load(), 0.5)
        evaluator.trial(load(), 0.5)
    assert condition.calls == ["begin", "send"]
    assert trial.notes[-1] == "1 due"


def test_a_condition_that_fails_ends_the_trial() -> None:
    class Failing(Counting):
        def each_second(self) -> None:
            raise EnvironmentProblem("on purpose")

    with measure(FakeTester()) as evaluator, pytest.raises(EnvironmentProblem, match="on purpose"):
        evaluator.with_condition(Failing()).trial(load(), 0.5)


class LearningDevice(FakeDevice):
    """A device that learns its routes, and notes each routing update."""

    learns_routes = True

    def __init__(self) -> None:
        super().__init__()
        self.updates = 0

    def announce(self) -> None:
        self.updates += 1

    def routing_updates(self) -> Counting:
        return Counting()


def test_each_trial_of_a_device_that_learns_its_routes_begins_with_a_routing_update() -> None:
    device = LearningDevice()
    with measure(FakeTester(), FakeBed(device=device)) as evaluator:
        evaluator.trial(load(), 0.5)
        evaluator.over_networks(2).trial(load(), 0.5)
        # What the device learnt is behind the link, not on it.
        (text,) = evaluator.announcement(load())
    assert device.updates == 2
    assert "198.19.64.2" in text


def test_a_trial_without_its_broadcast_frames_is_no_result() -> None:
    def lacking(outcome: dict[str, Any]) -> None:
        outcome["streams"][1].update(sent_frames=400, intended_frames=500)

    with measure(FakeTester(lacking)) as evaluator:
        trial = evaluator.with_broadcast(0.01).trial(load(), 0.5)
    assert trial.invalid == ("the tester sent 400 of 500 broadcast frames",)


def test_a_burst_of_a_few_frames_has_no_broadcast_frame() -> None:
    tester = FakeTester()
    with measure(tester) as evaluator:
        evaluator.with_broadcast(0.01).trial(load(), 20.5 / 1e5)
    assert len(tester.counted[0]["streams"]) == 1


def test_a_trial_conserves_frames_and_its_rates_follow_from_its_counts() -> None:
    with measure(FakeTester(loss_ratio=0.01)) as evaluator:
        trial = evaluator.trial(load(frames=FrameMix.fixed(512)), 0.5)
    assert trial.is_valid
    assert (trial.evaluator, trial.attempts) == ("measure", 1)
    assert (trial.offered_frames, trial.forwarded_frames, trial.dropped_frames) == (50_000, 49_500, 500)
    assert trial.loss_ratio == pytest.approx(0.01)
    assert trial.forwarded_pps == pytest.approx(99_000)
    assert trial.l2_bps == pytest.approx(99_000 * 512 * 8)  # S2
    assert trial.l1_bps == pytest.approx(99_000 * 532 * 8)
    assert trial.last_loss_s == pytest.approx(0.25)
    assert trial.latency is not None
    assert trial.delay_variation is not None
    assert trial.delay_variation.min_s == 0.0


def test_both_directions_are_added_up() -> None:
    with measure(FakeTester(loss_ratio=1.0)) as evaluator:
        trial = evaluator.trial(load(flows=BOTH), 0.5)
    assert trial.offered_frames == 50_000
    assert trial.dropped_frames == 50_000
    assert trial.intended_pps == pytest.approx(1e5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (bent(sent_frames=49_000, received_frames=49_000), "sent 49,000 of 50,000"),
        (bent(achieved_pps=99_000.0), "instead of 100,000"),
        (bent(late_frames=10, latest_s=0.01), "left late"),
        (bent(received_frames=49_999), "S12"),
        (lambda outcome: outcome.update(stopped=True), "stopped"),
    ],
)
def test_a_trial_that_fails_a_check_is_invalid_with_its_reason(
    change: Callable[[dict[str, Any]], None], words: str
) -> None:
    with measure(FakeTester(change)) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert not trial.is_valid
    assert any(words in reason for reason in trial.invalid)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (bent(sent_frames=49_000, received_frames=49_000), "sent 49,000 of 50,000"),
        (bent(achieved_pps=99_000.0), "instead of 100,000"),
        (bent(late_frames=10, latest_s=0.01), "left late"),
        (bent(late_frames=5_000, latest_s=0.001), "followed faster than planned"),
        # Of what leaves in a burst, a device may lose what its ring does not hold.
        (bent(late_frames=10, latest_s=0.002, received_frames=49_999, lost_frames=1), "followed faster than planned"),
        (bent(longest_gap_s=0.1, received_frames=49_999, lost_frames=1), "nothing was received for 100 ms"),
        (lambda outcome: outcome["back_end"].update(overrun_frames=7), "no room for 7"),
    ],
)
def test_a_trial_tells_what_other_work_did_to_it(change: Callable[[dict[str, Any]], None], words: str) -> None:
    with measure(FakeTester(change)) as evaluator:
        (disturbance,) = disturbances(evaluator.trial(load(), 0.5))
    assert words in disturbance


THROTTLE = RealTimeThrottle(runtime_us=950_000)
THROTTLED = (
    "real-time throttling (kernel.sched_rt_runtime_us = 950000: a thread of a real-time class stands still for up to "
    "50 ms of each second)"
)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (bent(longest_gap_s=0.046, received_frames=49_900, lost_frames=100), "some of the loss may be {}"),
        # All frames waited in a ring: none is lost, and they are late.
        (bent(longest_gap_s=0.046), "the latency of some frames may be {}"),
        (bent(late_frames=10, latest_s=0.046), "the worst by 46 ms; that may be {}"),
        (bent(longest_gap_s=0.01, received_frames=49_900, lost_frames=100), "some of the loss may be a stall of the"),
    ],
)
def test_a_stall_as_long_as_real_time_throttling_makes_them_names_it(
    change: Callable[[dict[str, Any]], None], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disturbances_with(throttle: RealTimeThrottle | None, priority: int) -> tuple[str, ...]:
        monkeypatch.setattr(RealTimeThrottle, "of_machine", classmethod(lambda _: throttle))
        with measure(FakeTester(change), bed=FakeBed(priority=priority)) as evaluator:
            return disturbances(evaluator.trial(load(), 0.5))

    (disturbance,) = disturbances_with(THROTTLE, 40)
    assert sentence.format(THROTTLED) in disturbance
    # Without a real-time class, or without the throttle, it is not named.
    for throttle, priority in ((THROTTLE, 0), (None, 40)):
        assert "throttling" not in "".join(disturbances_with(throttle, priority))


def test_a_device_that_was_kept_from_running_makes_a_trial_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeSnapshotReader, "waiting_s", 0.04)
    with measure(FakeTester()) as evaluator:
        assert evaluator.trial(load(), 0.5).is_valid
    monkeypatch.setattr(FakeSnapshotReader, "waiting_s", 0.5)
    with measure(FakeTester()) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    (reason,) = trial.invalid
    assert "did not run for 50 % of the time" in reason
    assert disturbances(trial) == trial.invalid


@pytest.mark.parametrize(
    "change",
    [
        lambda outcome: None,
        bent(late_frames=10, latest_s=0.002),  # nothing was lost by it
        bent(received_frames=49_000, lost_frames=1_000),
        bent(received_frames=0, lost_frames=50_000),
        bent(received_frames=49_999),  # frames that vanish are a fault of the tester
        bent(duplicated_frames=5, reordered_frames=5),
        lambda outcome: outcome.update(stopped=True, foreign_frames=1_000),
    ],
)
def test_what_the_device_or_the_tester_did_is_no_disturbance(change: Callable[[dict[str, Any]], None]) -> None:
    bed = FakeBed(workers={"device": True})  # they share a core, which a note states
    with measure(FakeTester(change), bed) as evaluator:
        assert disturbances(evaluator.trial(load(), 0.5)) == ()


@pytest.mark.parametrize(("name", "is_of_others"), [("rx_dropped_frames", True), ("rx_errors", False)])
def test_frames_that_the_tester_dropped_are_other_works_doing_and_errors_are_not(
    monkeypatch: pytest.MonkeyPatch, name: str, is_of_others: bool
) -> None:
    monkeypatch.setattr(FakeSnapshotReader, "bend", staticmethod(lambda links: links["rcfake1"].update({name: 5})))
    with measure(FakeTester()) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert len(trial.invalid) == 1
    assert bool(disturbances(trial)) is is_of_others


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"has_carrier": False}, "the link is down"),
        ({"carrier_changes": 2}, "went down and up 1 times"),
        ({"rx_dropped_frames": 5}, "the tester itself dropped 5"),
        ({"rx_missed_frames": 5}, "missed 5"),
        ({"rx_frames": 10**9 + 49_999}, "the kernel counted 49,999"),
        (None, "the interface went away"),
    ],
)
def test_what_the_kernel_says_against_a_trial_makes_it_invalid(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any] | None, words: str
) -> None:
    def bend(links: dict[str, Any]) -> None:
        if values is None:
            del links["rcfake1"]
        else:
            links["rcfake1"].update(values)

    monkeypatch.setattr(FakeSnapshotReader, "bend", staticmethod(bend))
    with measure(FakeTester()) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert any(words in reason for reason in trial.invalid)


def test_a_wall_clock_that_is_set_during_a_trial_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeSnapshotReader, "clock_step_s", -3.0)
    with measure(FakeTester()) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert trial.is_valid  # frames are stamped by the monotonic clock
    assert any("wall clock was set by -3.000 s" in note for note in trial.notes)


def test_bursts_are_not_held_to_an_even_rate() -> None:
    bursts = Arrivals.on_off(burst_frames=32, peak_ratio=4)
    with measure(FakeTester(bent(achieved_pps=1.1e5))) as evaluator:
        assert evaluator.trial(load(arrivals=bursts), 0.5).is_valid
        assert not evaluator.trial(load(), 0.5).is_valid


def test_an_unknown_back_end_suggests_the_nearest() -> None:
    with pytest.raises(ModelProblem, match="af_xdp"):
        measure(FakeTester(), back_end="afxdp")


def test_frames_that_come_back_to_the_port_that_sends_are_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def bend(links: dict[str, Any]) -> None:
        links["rcfake0"].update(rx_frames=50_000)

    monkeypatch.setattr(
        FakeSnapshotReader, "bend", staticmethod(lambda links: links["rcfake0"].update(rx_frames=50_000))
    )
    with measure(FakeTester()) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert trial.is_valid
    assert any("loops, floods or answers" in note for note in trial.notes)


def test_a_rate_within_a_thousandth_or_one_frame_is_as_intended() -> None:
    within = bent(sent_frames=49_960, received_frames=49_960, achieved_pps=99_920.0)
    with measure(FakeTester(within)) as evaluator:
        assert evaluator.trial(load(), 0.5).is_valid
    one_missing = bent(sent_frames=4, received_frames=4, achieved_pps=8.0)
    with measure(FakeTester(one_missing)) as evaluator:
        assert evaluator.trial(load(10.0), 0.5).is_valid


def test_an_invalid_trial_is_run_again_and_given_up_with_its_reasons() -> None:
    bad, good = bent(achieved_pps=9e4), bent()
    with measure(FakeTester(bad, good), retries=2) as evaluator:
        trial = evaluator.trial(load(), 0.1)
    assert trial.is_valid
    assert trial.attempts == 2
    with measure(FakeTester(bad), retries=1) as evaluator:
        trial = evaluator.trial(load(), 0.1)
    assert not trial.is_valid
    assert trial.attempts == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (bent(received_frames=0, lost_frames=50_000, latency=None), "0 of 50,000 frames came back: check"),
        (bent(duplicated_frames=7), "duplicated 7"),
        (bent(corrupted_frames=3, received_frames=49_997, lost_frames=3), "changed content"),
        (bent(reordered_frames=5), "overtaken"),
        (bent(received_frames=49_000, lost_frames=1_000, longest_gap_s=0.01), "disturbance"),
        (lambda outcome: outcome.update(foreign_frames=1_000), "frames of other senders"),
        (lambda outcome: outcome["back_end"].update(misrouted_frames=9), "misroutes"),
        (bent(late_frames=10_000, latest_s=0.001), "followed faster than planned"),
    ],
)
def test_what_a_device_does_wrong_is_reported_and_the_trial_stays_a_result(
    change: Callable[[dict[str, Any]], None], words: str
) -> None:
    with measure(FakeTester(change)) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert trial.is_valid
    assert any(words in note for note in trial.notes)


@pytest.mark.parametrize(
    ("workers", "change", "words"),
    [
        ({"device": False}, bent(received_frames=49_999, lost_frames=1), "not known that the device went first"),
        ({"device": True, "receiver": False}, bent(received_frames=0, lost_frames=50_000), "the receiver went first"),
        ({"device": True}, bent(sent_frames=40_000, received_frames=40_000), "share core 0, whose time"),
        ({"device": True}, bent(received_frames=49_999, lost_frames=1), ""),
        ({"device": False}, bent(), ""),
        ({}, bent(received_frames=49_999, lost_frames=1), ""),
    ],
)
def test_what_a_generator_on_their_core_may_have_done_is_no_result(
    workers: dict[str, bool], change: Callable[[dict[str, Any]], None], words: str
) -> None:
    with measure(FakeTester(change), FakeBed(workers=workers)) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert trial.is_valid == (not words)
    assert words in "; ".join(trial.invalid)


def test_slices_are_sent_one_after_the_other_and_added_up() -> None:
    tester = FakeTester(loss_ratio=0.5)
    with measure(tester, slice_s=0.5) as evaluator:
        trial = evaluator.trial(load(), 1.2)
    assert [request["duration_s"] for request in tester.counted] == pytest.approx([0.4, 0.4, 0.4])
    assert (trial.offered_frames, trial.dropped_frames) == (120_000, 60_000)
    assert trial.first_loss_s == 0.0
    assert trial.last_loss_s == pytest.approx(1.0)  # half-way through the third slice
    assert any("slices" in note for note in trial.notes)


def test_a_load_with_steps_is_never_cut_and_its_mean_is_intended() -> None:
    tester = FakeTester()
    with measure(tester, slice_s=0.1) as evaluator:
        trial = evaluator.trial(load(steps=(RateStep(at_s=0.75, rate_pps=2e4),)), 1.0)
    assert len(tester.counted) == 1
    assert trial.intended_pps == pytest.approx(0.75 * 1e5 + 0.25 * 2e4)


def test_the_tester_keeps_the_rate_of_a_virtual_wire_and_leaves_a_real_one_to_itself() -> None:
    tester = FakeTester()
    with measure(tester) as evaluator:
        evaluator.trial(load(), 0.1)
    assert tester.counted[0]["wire_bps"] == 10e9
    real = FakeBed(ports=(port("a", 0, is_virtual=False), port("b", 1, is_virtual=False)))
    with measure(tester, real) as evaluator:
        evaluator.trial(load(), 0.1)
    assert tester.counted[-1]["wire_bps"] is None


def test_learning_frames_and_pauses_are_those_of_the_procedure() -> None:
    assert Phases.rfc2544() == Phases(wait_before_s=2.0, residual_wait_s=2.0, restabilise_s=5.0)  # RFC 2544 sec. 23
    tester = FakeTester()
    with measure(tester, phases=Phases(learning_frames=3, residual_wait_s=0.2, warmup_s=0.1)) as evaluator:
        evaluator.trial(load(), 0.1)
    learning, counted = tester.requests
    assert learning["streams"][0]["frames"] == 3
    assert learning["streams"][0]["port"] == 1
    assert (counted["wait_s"], counted["warmup_s"]) == (0.2, 0.1)


def test_learning_frames_are_sent_when_the_device_may_not_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def learnt(tester: FakeTester) -> int:
        return len(tester.requests) - len(tester.counted)

    tester = FakeTester()
    with measure(tester) as evaluator:
        for _ in range(3):
            evaluator.trial(load(), 0.01)
        assert learnt(tester) == 1
        evaluator.trial(load(flows=BOTH), 0.01)
        assert learnt(tester) == 2  # other frames
        evaluator.reset_trial(load(), 0.02, kind="process", at_s=0.001)
        evaluator.trial(load(), 0.01)
        assert learnt(tester) == 3  # the reset may have made it forget
    tester = FakeTester()
    with measure(tester, phases=Phases(wait_before_s=0.001)) as evaluator:
        for _ in range(3):
            evaluator.trial(load(), 0.01)
    assert learnt(tester) == 3  # RFC 2544 sec. 23 b: before each trial


def test_trials_are_marked_apart() -> None:
    tester = FakeTester()
    with measure(tester) as evaluator:
        for _ in range(3):
            evaluator.trial(load(), 0.01)
    marks = [request["trial_id"] for request in tester.requests]
    assert len(set(marks)) == len(marks)
    assert all(0 <= mark < 128 for mark in marks)


def test_views_share_the_tester_and_say_their_networks() -> None:
    tester = FakeTester()
    with measure(tester) as evaluator:
        evaluator.over_networks(4).trial(load(), 0.1)
        evaluator.trial(load(), 0.1)
    assert [len(request["streams"][0]["flows"]) for request in tester.counted] == [4, 1]
    assert tester.is_closed


def test_marks_of_views_do_not_repeat_those_of_the_evaluator() -> None:
    tester = FakeTester()
    with measure(tester) as evaluator:
        evaluator.trial(load(), 0.01)
        evaluator.over_networks(2).trial(load(), 0.01)
    marks = [request["trial_id"] for request in tester.requests]
    assert len(set(marks)) == len(marks)


def test_counters_of_the_device_say_where_frames_were_lost() -> None:
    bed = FakeBed()
    device: FakeDevice = bed.device

    def lose(outcome: dict[str, Any]) -> None:
        outcome["streams"][0].update(received_frames=40_000, lost_frames=10_000)
        device.counts = {"drop": 8_000, "ip_in_discards": 8_000, "ip_forwarded": 40_000}

    with measure(FakeTester(lose), bed) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert trial.drops_pps == {"ip_in_discards": 16_000.0, "place unknown": 4_000.0}


def test_a_receive_ring_that_drops_what_is_lost_is_the_bottleneck() -> None:
    bed = FakeBed()
    device: FakeDevice = bed.device

    def lose(outcome: dict[str, Any]) -> None:
        outcome["streams"][0].update(received_frames=40_000, lost_frames=10_000)
        device.counts = {"d0_rx_dropped": 9_000}

    with measure(FakeTester(lose), bed) as evaluator:
        trial = evaluator.trial(load(), 0.5)
    assert trial.bottleneck.name == "receive ring of d0"
    assert "9,000 of 10,000 lost frames" in trial.bottleneck.reason


def lossy_trial(monkeypatch: pytest.MonkeyPatch, more: Callable[[int], dict[str, Any]]) -> Trial:
    """Return a trial that loses 30 % at a device on core 1; ``more`` adds fields to its snapshots."""
    monkeypatch.setattr(FakeSnapshotReader, "more", staticmethod(more))
    site = DeviceSite(netns=None, ports=(), cpu=1, priority=0, folder=Path("/nonexistent"))
    with measure(FakeTester(loss_ratio=0.3), FakeBed(site=site)) as evaluator:
        return evaluator.trial(load(), 0.1)


@pytest.mark.parametrize(
    ("softirq_s", "irq_s", "words"),
    [(0.97, 0.0, "(softirq 97 % of the time)"), (0.5, 0.45, "(softirq 50 %, irq 45 % of the time)")],
)
def test_a_core_that_is_full_of_interrupts_is_the_bottleneck(
    softirq_s: float, irq_s: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def more(number: int) -> dict[str, Any]:
        parts = {"softirq_s": softirq_s * number, "irq_s": irq_s * number, "squeezes": 5 * number}
        return {"cores": {1: CoreTimes(total_s=float(number), busy_s=float(number), steal_s=0.0, **parts)}}

    bottleneck = lossy_trial(monkeypatch, more).bottleneck
    assert (bottleneck.name, bottleneck.kind) == ("core 1, in interrupts", "pool")
    assert words.replace(" %", "%") in bottleneck.reason
    assert "its polling was cut short 5 times" in bottleneck.reason


def test_a_core_whose_backlog_drops_what_is_lost_is_the_bottleneck(monkeypatch: pytest.MonkeyPatch) -> None:
    def more(number: int) -> dict[str, Any]:
        dropped = 10**9 * number
        return {"cores": {1: CoreTimes(total_s=float(number), busy_s=0.5, steal_s=0.0, dropped_frames=dropped)}}

    bottleneck = lossy_trial(monkeypatch, more).bottleneck
    assert bottleneck.name == "backlog of core 1"
    assert "had no room for 1,000,000,000 of" in bottleneck.reason


@pytest.mark.parametrize(("queues", "name"), [(2, "receive ring of d0, queue 1"), (1, "device under test")])
def test_the_queue_that_drops_what_is_lost_is_named_where_there_are_several(
    queues: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def more(number: int) -> dict[str, Any]:
        return {"queue_drops": {("d0", queue): 10**9 * number * (queue == 1) for queue in range(queues)}}

    assert lossy_trial(monkeypatch, more).bottleneck.name == name


def test_a_wire_at_its_line_rate_is_the_bottleneck() -> None:
    with measure(FakeTester()) as evaluator:
        trial = evaluator.trial(load(20e6), 0.1)
    assert (trial.bottleneck.kind, trial.bottleneck.name) == ("link", "port gen in")
    assert trial.intended_pps == 20e6
    assert trial.offered_pps == pytest.approx(14_880_952, rel=1e-6)  # RFC 2544 sec. 20


def test_without_loss_the_load_is_the_bottleneck_and_otherwise_nobody_is_accused_without_evidence() -> None:
    with measure(FakeTester()) as evaluator:
        assert evaluator.trial(load(), 0.1).bottleneck.kind == "load"
    with measure(FakeTester(loss_ratio=0.3)) as evaluator:
        assert "cannot be seen" in evaluator.trial(load(), 0.1).bottleneck.reason


def test_a_reset_happens_during_the_trial_and_the_device_is_settled_again() -> None:
    bed = FakeBed()
    happened = threading.Event()
    tester = FakeTester(lambda outcome: happened.wait(5) and None, clock_s=time.monotonic)
    restart = bed.device.restart

    def noticed(kind: str) -> None:
        restart(kind)
        happened.set()

    bed.device.restart = noticed
    with measure(tester, bed) as evaluator:
        trial = evaluator.reset_trial(load(), 0.2, kind="process", at_s=0.05)
    assert bed.device.resets == ["process"]
    assert bed.binding_count == 2
    assert "reset of the process" in trial.notes[0]


def lasting(length_s: float, *losses_s: tuple[float, float] | None) -> FakeTester:
    """A tester whose trials last and lose frames from one time to another."""

    def change(outcome: dict[str, Any]) -> None:
        time.sleep(length_s)
        loss_s = losses_s[min(len(tester.counted), len(losses_s)) - 1]
        for stream in outcome["streams"]:
            stream["lost_frames"] = 0 if loss_s is None else 100
            stream["received_frames"] = stream["sent_frames"] - stream["lost_frames"]
            stream["first_loss_s"], stream["last_loss_s"] = loss_s or (None, None)

    tester = FakeTester(change, clock_s=time.monotonic)
    return tester


def test_a_reset_without_effect_in_its_trial_is_invalid_and_repeated() -> None:
    bed = FakeBed()

    def late(kind: str) -> None:
        """Takes effect after the end of the first trial."""
        time.sleep(0.0 if bed.device.resets else 1.2)
        bed.device.resets.append(kind)

    bed.device.restart = late
    with measure(lasting(1.0, None, (0.9, 0.95)), bed, retries=2) as evaluator:
        trial = evaluator.reset_trial(load(), 1.0, kind="process", at_s=0.05)
    assert trial.is_valid
    assert (trial.attempts, len(bed.device.resets)) == (2, 2)


def test_a_device_that_is_back_in_time_without_a_loss_is_a_result() -> None:
    with measure(lasting(1.0, None)) as evaluator:
        trial = evaluator.reset_trial(load(), 1.0, kind="process", at_s=0.05)
    assert trial.is_valid
    assert trial.dropped_frames == 0


def test_a_reset_after_the_last_frame_is_invalid() -> None:
    """The tester waits for residual frames: a reset in that time belongs to no trial."""
    with measure(lasting(1.0, None), phases=Phases(warmup_s=0.1)) as evaluator:
        trial = evaluator.reset_trial(load(), 0.2, kind="process", at_s=0.15)
    assert trial.invalid == ("the trial ended before the reset",)
    assert disturbances(trial)


@pytest.mark.parametrize(
    ("loss_s", "began_s", "ended_s", "reason"),
    [
        ((15.0, 75.0), 15.0, 90.0, ""),  # it does not come back, which is the device's result
        ((70.0, 75.0), 15.0, 90.0, "so late that the trial ended first: frames were lost from 70 s on"),
        ((70.0, 75.0), 70.0, 90.0, "so late that the trial ended first"),
        ((70.0, 72.0), 70.0, 90.0, ""),
        ((1.0, 2.0), 15.0, 90.0, "took no effect"),  # a loss before the reset is none of its
        ((1.0, 2.0), 15.0, 16.0, ""),
        (None, 75.0, 90.0, "the trial ended before the reset"),
        (None, math.inf, math.inf, "the trial ended before the reset"),
    ],
)
def test_a_reset_is_judged_by_its_loss_and_its_times(
    loss_s: tuple[float, float] | None, began_s: float, ended_s: float, reason: str
) -> None:
    with measure(FakeTester()) as evaluator:
        trial = evaluator.trial(load(), 0.1)
    first_s, last_s = loss_s or (math.nan, math.nan)
    trial = replace(trial, duration_s=75.0, first_loss_s=first_s, last_loss_s=last_s)
    reasons = reset_reasons(trial, kind="process", planned_s=15.0, began_s=began_s, ended_s=ended_s)
    assert (reason in "".join(reasons)) if reason else not reasons


def test_a_reset_that_the_device_has_not_is_refused() -> None:
    with measure(FakeTester()) as evaluator, pytest.raises(FileProblem, match="allowed are process"):
        evaluator.reset_trial(load(), 0.2, kind="power", at_s=0.1)
    with measure(FakeTester()) as evaluator, pytest.raises(FileProblem, match="within the trial"):
        evaluator.reset_trial(load(), 0.2, kind="process", at_s=0.3)


def test_a_reset_that_fails_is_an_error_and_leaves_no_thread() -> None:
    bed = FakeBed()
    failed = threading.Event()

    def fail(kind: str) -> None:
        failed.set()
        raise EnvironmentProblem("it does not come back")

    bed.device.restart = fail
    tester = FakeTester(lambda outcome: failed.wait(5) and None)
    with measure(tester, bed) as evaluator, pytest.raises(EnvironmentProblem, match="come back"):
        evaluator.reset_trial(load(), 0.2, kind="process", at_s=0.01)
    assert "reset" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("rate_pps", "duration_s", "slice_s", "words"),
    [
        (20e3, 1e-6, None, "duration_s: got 1 us, in which 20 kpps are not one frame: give at least 50 us"),
        (1.0, 0.5, None, "give at least 1 s, or a higher rate"),
        (20e3, 0.5, 1e-12, "slice_s: got 1 ps, in which 20 kpps are not one frame: give at least 50 us"),
        (1e6, 0.5, 1e-6, "slice_s: got 1 us: a trial is sent in at most 10,000 slices, give at least 50 us"),
    ],
)
def test_a_time_without_one_frame_is_refused(
    rate_pps: float, duration_s: float, slice_s: float | None, words: str
) -> None:
    with measure(FakeTester(), slice_s=slice_s) as evaluator, pytest.raises(ModelProblem, match=re.escape(words)):
        evaluator.trial(load(rate_pps), duration_s)


def test_progress_goes_up_over_slices_to_one() -> None:
    seen: list[float] = []
    with measure(FakeTester(), slice_s=0.1, on_progress=seen.append) as evaluator:
        evaluator.trial(load(), 0.2)
    assert seen == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_a_wrong_duration_is_refused() -> None:
    for duration_s in (0.0, -1.0, math.nan):
        with measure(FakeTester()) as evaluator, pytest.raises(ModelProblem, match="seconds"):
            evaluator.trial(load(), duration_s)


def test_the_announcement_says_addresses_rate_and_size() -> None:
    with measure(FakeTester()) as evaluator:
        (line,) = evaluator.announcement(load())
    for words in ("rcfake0", "02:00:00:00:01:02", "02:00:00:00:01:01", "198.18.1.2", "198.19.1.2", "64 B", "100,000"):
        assert words in line


def test_facts_are_plain_data_of_device_bed_and_tester() -> None:
    with measure(FakeTester()) as evaluator:
        facts = evaluator.facts()
    assert facts["device"] == {"version": "1"}
    assert facts["tester"] == {"back_end": "fake"}
