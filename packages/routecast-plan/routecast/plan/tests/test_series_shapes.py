"""What is done to traffic series: means, quantiles, scaling, filling, and a day that is made up."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.load.series import DAY_S, TrafficSeries
from routecast.plan.series.reading import read_series
from routecast.plan.series.shapes import filled, mean_day, quantile_day, resampled, scaled_to_peak, synthetic_day

HOUR_S = 3600.0
RATES = st.floats(0.0, 1e12)


def days(rates: list[float], step_s: float = HOUR_S, start: datetime | None = None) -> TrafficSeries:
    return TrafficSeries(step_s=step_s, l2_bps=tuple(rates), start=start, source="test")


@given(st.lists(RATES, min_size=12, max_size=120).map(lambda rates: rates[: len(rates) // 12 * 12]))
def test_coarser_steps_carry_the_same_bits(rates: list[float]) -> None:
    series = days(rates, 300.0)
    hourly = resampled(series, HOUR_S)
    assert sum(hourly.l2_bps) * HOUR_S == pytest.approx(sum(rates) * 300.0)
    assert hourly.duration_s == series.duration_s


def test_coarser_steps_must_be_whole_multiples_and_never_finer() -> None:
    series = days([1.0] * 24, 300.0)
    for step_s in (400.0, 150.0, 86_400.0):
        with pytest.raises(ModelProblem):
            resampled(series, step_s)


def test_missing_steps_are_left_out_of_the_mean_and_a_rest_is_named() -> None:
    series = days([1.0, math.nan, 3.0, math.nan, math.nan, math.nan, 7.0], 300.0)
    coarse = resampled(series, 900.0)
    assert coarse.l2_bps[0] == 2.0
    assert math.isnan(coarse.l2_bps[1])
    assert "last 1 steps" in coarse.notes[-1]


@given(st.lists(st.lists(RATES, min_size=24, max_size=24), min_size=1, max_size=6))
def test_the_mean_day_is_the_column_mean_of_whole_days(table: list[list[float]]) -> None:
    series = days([rate for day in table for rate in day])
    assert mean_day(series, HOUR_S).l2_bps == pytest.approx(np.mean(table, axis=0))


def test_a_series_that_begins_at_seven_is_sorted_by_the_hour_of_the_day() -> None:
    rates = [float((7 + hour) % 24) for hour in range(48)]
    day = mean_day(days(rates, start=datetime(2005, 6, 7, 7)), HOUR_S)
    assert day.l2_bps == tuple(float(hour) for hour in range(24))
    assert day.start is None


@given(st.lists(st.lists(RATES, min_size=24, max_size=24), min_size=1, max_size=8), st.floats(0.0, 1.0))
def test_the_quantile_day_is_that_of_numpy_over_the_days(table: list[list[float]], quantile: float) -> None:
    series = days([rate for day in table for rate in day])
    ours = quantile_day(series, HOUR_S, quantile).l2_bps
    assert ours == pytest.approx(np.quantile(table, quantile, axis=0), rel=1e-9, abs=1e-3)


def test_a_quantile_day_of_coarse_steps_is_taken_over_daily_means() -> None:
    series = days([0.0, 10.0] * 12 + [4.0, 8.0] * 12 + [30.0, 30.0] * 12)
    assert quantile_day(series, 2 * HOUR_S, 0.5).l2_bps == (6.0,) * 12


@pytest.mark.parametrize("quantile", [-0.1, 1.1, math.nan])
def test_a_quantile_outside_its_range_is_refused(quantile: float) -> None:
    with pytest.raises(ModelProblem, match="quantile"):
        quantile_day(days([1.0] * 24), HOUR_S, quantile)


def test_a_day_that_is_not_wholly_covered_is_refused_with_its_first_empty_hour() -> None:
    with pytest.raises(ModelProblem, match="06:00: 18 of 24"):
        mean_day(days([1.0] * 6), HOUR_S)


@pytest.mark.parametrize("step_s", [7 * HOUR_S, 0.0, 300.0])
def test_a_day_has_whole_steps_not_finer_than_the_samples(step_s: float) -> None:
    with pytest.raises(ModelProblem):
        mean_day(days([1.0] * 24), step_s)


@given(st.lists(st.floats(1.0, 1e12), min_size=1, max_size=50), st.floats(1e3, 1e13))
def test_scaling_reaches_the_peak_exactly_and_keeps_ratios(rates: list[float], peak_bps: float) -> None:
    scaled = scaled_to_peak(days(rates), peak_bps)
    assert scaled.peak_bps == peak_bps
    assert scaled.l2_bps == pytest.approx([rate * (peak_bps / max(rates)) for rate in rates])


def test_a_series_without_traffic_cannot_be_scaled() -> None:
    with pytest.raises(ModelProblem, match="no traffic"):
        scaled_to_peak(days([0.0, math.nan]), 1e9)


def test_filling_needs_one_value_and_repeats_it_at_the_ends() -> None:
    series = days([math.nan, 2.0, math.nan, math.nan, 8.0, math.nan])
    assert filled(series, "hold").l2_bps == (2.0, 2.0, 2.0, 2.0, 8.0, 8.0)
    assert filled(series, "interpolate").l2_bps == pytest.approx((2.0, 2.0, 4.0, 6.0, 8.0, 8.0))
    with pytest.raises(ModelProblem, match="no value"):
        filled(days([math.nan]), "hold")


@given(st.floats(1e3, 1e12), st.floats(1.0, 2.0), st.floats(0.0, 23.9), st.sampled_from([300.0, 900.0, 3600.0]))
def test_the_synthetic_day_has_the_mean_and_the_peak_that_were_requested(
    mean_bps: float, peak_ratio: float, peak_hour: float, step_s: float
) -> None:
    day = synthetic_day(mean_bps=mean_bps, peak_ratio=peak_ratio, peak_hour=peak_hour, step_s=step_s)
    rates = day.l2_bps
    assert day.duration_s == DAY_S
    assert sum(rates) / len(rates) == pytest.approx(mean_bps, rel=1e-9)
    # The peak lies at most half a step from the middle of a step.
    lost = 1.0 - math.cos(math.pi * step_s / DAY_S)
    assert mean_bps * (peak_ratio - (peak_ratio - 1.0) * lost) <= max(rates) * (1 + 1e-9)
    assert max(rates) <= mean_bps * peak_ratio * (1 + 1e-9)


def test_noise_of_the_synthetic_day_depends_on_its_seed_and_leaves_the_mean() -> None:
    options: dict[str, Any] = {"mean_bps": 1e9, "noise_ratio": 0.2, "step_s": 60.0}
    item, same, other = (synthetic_day(seed=seed, **options) for seed in (1, 1, 2))
    assert item == same
    assert item.l2_bps != other.l2_bps
    calm = synthetic_day(mean_bps=1e9, step_s=60.0).l2_bps
    ratios = np.array(item.l2_bps) / np.array(calm)
    # 1440 log-normal ratios of mean 1 and standard deviation 0.2: six standard errors.
    assert abs(ratios.mean() - 1.0) < 6 * 0.2 / math.sqrt(1440)
    assert ratios.std() == pytest.approx(math.sqrt(math.expm1(0.04)), rel=0.15)


@pytest.mark.parametrize(
    "wrong", [{"mean_bps": 0.0}, {"peak_ratio": 2.5}, {"peak_hour": 24.0}, {"noise_ratio": -0.1}, {"step_s": 1000.0}]
)
def test_a_synthetic_day_outside_its_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelProblem):
        synthetic_day(**{"mean_bps": 1e9, **wrong})


def test_abilene_is_busier_by_day_than_by_night() -> None:
    day = mean_day(read_series("abilene"), HOUR_S).l2_bps
    above = [rate > sum(day) / 24 for rate in day]
    changes = sum(item != two for item, two in pairwise([*above, above[0]]))
    assert changes == 2  # the busy hours stand together
    assert max(day) > 1.3 * min(day)


def test_notes_travel_with_the_series() -> None:
    series = replace(days([1.0] * 24), notes=("a note",))
    assert mean_day(scaled_to_peak(series, 5.0), HOUR_S).notes[0] == "a note"
