"""Alarms fire, are fine, or are not known; and nothing but what they allow is read."""

from __future__ import annotations

import pytest

from routecast.errors import QuantityProblem
from routecast.lab.tests.watch.fake_looks import NOT_SEEN, look, saturation_at
from routecast.lab.watch import Alarm, LossAtPeak, Saturation

UNKNOWN = LossAtPeak(reason="no day yet")


def state(text: str, saturation: Saturation = NOT_SEEN, *, rate_pps: float = 1e6, lost: int = 0) -> str:
    watched = look(rate_pps, saturation, {"interface": lost} if lost else {})
    return Alarm.parse(text).judge(watched, NOT_SEEN, UNKNOWN).state


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("P(loss at daily peak) > 1 %", "P(loss at daily peak) > 1 %"),
        ("  p(Loss at  daily peak)>0.01 ", "P(loss at daily peak) > 1 %"),
        ("headroom<20%", "headroom < 20 %"),
        ("headroom < 150 %", "headroom < 150 %"),
        ("headroom < 0 %", "headroom < 0 %"),
        ("Saturation < 2 Mpps", "saturation < 2 Mpps"),
        ("loss > 0", "loss > 0"),
        ("loss > 12 frames", "loss > 12"),
    ],
)
def test_a_condition_is_read_and_written(text: str, written: str) -> None:
    assert str(Alarm.parse(text)) == written
    assert Alarm.parse(written) == Alarm.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no condition: write one such as"),
        ("headroom", "is no condition"),
        ("headroom 20 %", "is no condition"),
        ("headrom < 20 %", 'did you mean "headroom"?'),
        ("latency > 1 ms", "nothing that an alarm watches"),
        ("headroom > 20 %", 'written with <, such as "headroom < 20 %"'),
        ("headroom <= 20 %", "written with <"),
        ("loss = 0", "written with >"),
        ("headroom < 20", "20 %"),
        ("headroom < -5 %", "no share"),
        ("saturation < 2", "no unit"),
        ("saturation < 2 Gbit/s", "frame rate"),
        ("loss > -1", "loss > 0"),
        ("loss > 1.5 frames", "whole"),
        ("P(loss at daily peak) > 120 %", "no share"),
        ("headroom < 20 % < 30 %", "is no condition"),
        ("headroom < nan", "no share"),
    ],
)
def test_what_is_no_condition_is_refused_with_what_is(text: str, message: str) -> None:
    with pytest.raises(QuantityProblem) as problem:
        Alarm.parse(text)
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_headroom_fires_only_where_the_whole_interval_is_below() -> None:
    # 95 %: 1.49 to 2.68 Mpps at 2 Mpps, so a headroom of 49 to 168 %.
    seen = saturation_at(2e6)
    assert state("headroom < 40 %", seen) == "fine"
    assert state("headroom < 110 %", seen) == "not known"
    assert state("headroom < 170 %", seen) == "fires"


def test_saturation_fires_only_where_the_whole_interval_is_below() -> None:
    seen = saturation_at(2e6)
    assert state("saturation < 1.4 Mpps", seen) == "fine"
    assert state("saturation < 2.1 Mpps", seen) == "not known"
    assert state("saturation < 2.7 Mpps", seen) == "fires"


def test_what_is_not_known_neither_fires_nor_is_fine() -> None:
    assert state("headroom < 1000 %") == "not known"
    assert state("headroom < 1000 %", saturation_at(2e6), rate_pps=0.0) == "not known"
    assert state("saturation < 100 Mpps") == "not known"
    assert state("P(loss at daily peak) > 0 %") == "not known"


def test_loss_is_always_known() -> None:
    assert state("loss > 0") == "fine"
    assert state("loss > 0", lost=1) == "fires"
    assert state("loss > 1", lost=1) == "fine"


def test_the_probability_fires_above_its_bound() -> None:
    alarm = Alarm.parse("P(loss at daily peak) > 1 %")
    states = [alarm.judge(look(), NOT_SEEN, LossAtPeak(ratio=ratio)).state for ratio in (0.0099, 0.01, 0.0101)]
    assert states == ["fine", "fine", "fires"]


def test_a_look_without_saturation_takes_that_of_earlier_ones() -> None:
    alarm = Alarm.parse("headroom < 170 %")
    assert alarm.judge(look(), saturation_at(2e6), UNKNOWN).state == "fires"
    assert alarm.judge(look(saturation=saturation_at(9e6)), saturation_at(2e6), UNKNOWN).state == "fine"
