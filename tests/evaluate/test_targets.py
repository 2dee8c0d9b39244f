"""Targets of operating points: their notation, and the values that meet them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from routecast.errors import QuantityProblem
from routecast.evaluate.targets import NO_LOSS, parse_targets
from routecast.evaluate.trial import BURSTS_LEFT_OUT, Bottleneck, Delay, Trial


def trial(*, loss_ratio: float = 0.0, p99_s: float = math.nan, mean_s: float = math.nan) -> Trial:
    return Trial(
        evaluator="fake",
        duration_s=1.0,
        intended_pps=1e6,
        offered_pps=1e6,
        forwarded_pps=1e6 * (1.0 - loss_ratio),
        loss_ratio=loss_ratio,
        l1_bps=0.0,
        l2_bps=0.0,
        bottleneck=Bottleneck(name="cpu", kind="pool", reason="is a fake"),
        latency=Delay(mean_s=mean_s, p99_s=p99_s),
    )


@pytest.mark.parametrize(
    ("text", "quantity", "limit", "written"),
    [
        ("p99 < 100 us", "p99", 100e-6, "p99 < 100 us"),
        ("p99.9<=1ms", "p999", 1e-3, "p999 <= 1 ms"),
        ("latency.mean < 20 us", "mean", 20e-6, "mean < 20 us"),
        ("loss < 0.01 %", "loss", 1e-4, "loss < 0.01 %"),
        ("loss <= 1e-3", "loss", 1e-3, "loss <= 0.1 %"),
        ("loss = 0", "loss", 0.0, "loss = 0"),
    ],
)
def test_targets_are_read_in_units_and_written_as_read(text: str, quantity: str, limit: float, written: str) -> None:
    (target,) = parse_targets([text])
    assert target.quantity == quantity
    assert target.limit == pytest.approx(limit)
    assert str(target) == written
    assert parse_targets([written]) == parse_targets([text])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p99", "is no target"),
        ("p98 < 1 ms", 'did you mean "p99"'),
        ("p99 > 1 ms", "upper bounds"),
        ("p99 < 100", "unit"),
        ("p99 = 100 us", "upper bounds"),
        ("loss < 0", "nothing is below 0"),
        ("loss < 200 %", "a loss must be a share"),
        ("loss < 1 us", "a loss must be a share"),
        ("p99 < 1 ms, p99 < 2 ms", "two targets"),
    ],
)
def test_a_text_that_is_no_target_is_refused_with_a_hint(text: str, message: str) -> None:
    with pytest.raises(QuantityProblem, match=message):
        parse_targets([text])


def test_the_limit_itself_meets_only_a_target_that_includes_it() -> None:
    below, including = parse_targets(["p99 < 100 us"])[0], parse_targets(["p99 <= 100 us"])[0]
    at_limit = trial(p99_s=100e-6)
    assert not below.met(at_limit)
    assert including.met(at_limit)


def test_an_unknown_value_meets_no_target() -> None:
    (target,) = parse_targets(["p99 < 100 us"])
    assert not target.met(trial())
    assert target.excess(target.value(trial())) == math.inf


def test_no_loss_is_no_loss_at_all() -> None:
    assert NO_LOSS.met(trial())
    assert not NO_LOSS.met(trial(loss_ratio=1e-9))
    assert NO_LOSS.excess(0.25) == 0.25


def test_excess_is_relative_to_the_limit() -> None:
    (target,) = parse_targets(["mean < 20 us"])
    assert target.excess(30e-6) == pytest.approx(0.5)
    assert target.excess(10e-6) == 0.0


def closed(loss_ratio: float, *, certain_ratio: float = 0.0, **more: Any) -> Trial:
    drops_pps = {"queue": certain_ratio * 1e6}
    return replace(trial(loss_ratio=loss_ratio), evaluator="solve", drops_pps=drops_pps, **more)


@pytest.mark.parametrize(
    ("of", "known_ratio"),
    [
        (closed(math.nan), math.nan),
        (closed(0.0, notes=(f"one poll brings more; {BURSTS_LEFT_OUT}; simulate",)), math.nan),
        (closed(0.0), 0.0),
        (closed(5e-5, interval={"loss_ratio": (0.0, 9e-5)}), 0.0),
        (closed(5e-4, interval={"loss_ratio": (0.0, 1e-3)}), 1e-3),
        (closed(0.25, certain_ratio=0.25), 0.25),
        (closed(0.25, certain_ratio=0.25, interval={"loss_ratio": (0.24, 0.26)}), 0.26),
        (trial(loss_ratio=1e-6), 1e-6),
    ],
)
def test_a_target_of_loss_is_met_by_what_is_known_and_not_by_the_absence_of_overload(
    of: Trial, known_ratio: float
) -> None:
    assert of.known_loss_ratio == pytest.approx(known_ratio, nan_ok=True)
    (one_percent,) = parse_targets(["loss < 1 %"])
    assert NO_LOSS.met(of) == (known_ratio == 0.0)
    assert one_percent.met(of) == (known_ratio < 0.01)
