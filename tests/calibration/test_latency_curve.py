"""Latency over the load from a few rows: what the law says where it is known, and what its intervals are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from routecast.calibration import fit
from routecast.calibration.latency import (
    STATISTICS,
    LatencyRow,
    MeasuredLatency,
    disturbed_rows,
    fit_curve,
    measured_latency,
    prior_of,
    shape,
)
from routecast.errors import QuantityProblem
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Point, calibrating

FRAME_S = 0.2e-6
LOW = LatencyRow(load_ratio=0.1, latency_s=12e-6)
FULL = LatencyRow(load_ratio=1.1, latency_s=400e-6)


def median_s(load_ratio: float, *rows: LatencyRow, **options: float) -> float:
    curve = fit_curve(rows, prior_of("p50"), frame_s=FRAME_S, **options)
    return float(curve.quantiles_s(load_ratio, (0.5,))[0])


def test_a_router_without_load_has_its_fixed_path_and_a_full_one_its_ring() -> None:
    gather, burst, knee, ring = 2.0, 1.5, 1.0, 40.0
    heights = shape(np.array([1e-6, 0.5, 3.0]), np.array([[gather, burst, knee, ring]]))[0]
    assert heights[0] == pytest.approx(1.0, abs=1e-4)
    # Half of the capacity: the gathered frames are full at 0.6, and x / (1 - x) is 1.
    assert heights[1] == pytest.approx(1.0 + gather * (1.0 - math.exp(-0.5 / 0.3)) + burst, rel=1e-3)
    assert heights[2] == pytest.approx(1.0 + ring, rel=1e-6)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_row_is_met_at_its_load_within_its_noise(statistic: str) -> None:
    curve = fit_curve((LOW, FULL), prior_of(statistic), frame_s=FRAME_S)  # type: ignore[arg-type]
    for row in (LOW, FULL):
        low_s, high_s = curve.quantiles_s(row.load_ratio, (0.025, 0.975))
        assert low_s < row.latency_s < high_s
        assert high_s / low_s < 1.35


def test_the_interval_is_wider_the_nearer_the_knee_and_narrower_with_a_row_there() -> None:
    curve = fit_curve((LOW,), prior_of("p50"), frame_s=FRAME_S)
    widths = [float(np.diff(np.log(curve.quantiles_s(load, (0.025, 0.975))))[0]) for load in (0.2, 0.5, 0.8, 0.95)]
    assert widths == sorted(widths)
    near = fit_curve((LOW, LatencyRow(load_ratio=0.8, latency_s=30e-6)), prior_of("p50"), frame_s=FRAME_S)
    assert float(np.diff(np.log(near.quantiles_s(0.8, (0.025, 0.975))))[0]) < 0.3 * widths[2]


def test_a_known_ring_is_what_waits_in_overload() -> None:
    # 1,024 frames of 0.2 us in front of one.
    with_ring = median_s(1.5, LOW, ring_frames=1024.0)
    assert with_ring == pytest.approx(12e-6 + 1024 * FRAME_S, rel=0.15)


def test_waiting_is_counted_in_the_time_of_a_frame() -> None:
    """The same row on cores that are ten times as fast leaves less room for waiting."""
    slow = fit_curve((LOW,), prior_of("p50"), frame_s=1e-6).quantiles_s(0.6, (0.5,))[0]
    fast = fit_curve((LOW,), prior_of("p50"), frame_s=0.1e-6).quantiles_s(0.6, (0.5,))[0]
    assert fast < slow
    assert fast == pytest.approx(12e-6, rel=0.35)


def test_quantiles_and_probabilities_are_of_one_distribution() -> None:
    curve = fit_curve((LOW, FULL), prior_of("p99"), frame_s=FRAME_S)
    for probability in (0.01, 0.3, 0.5, 0.9, 0.999):
        (quantile_s,) = curve.quantiles_s(0.7, (probability,))
        assert curve.probability_below(0.7, float(quantile_s)) == pytest.approx(probability, abs=1e-4)


def test_noisy_repeats_are_believed_less() -> None:
    near = LatencyRow(load_ratio=0.5, latency_s=40e-6)
    sure = median_s(0.5, LOW, near)
    unsure = median_s(0.5, LOW, replace(near, noise_ratio=1.0))
    assert abs(math.log(sure / near.latency_s)) < abs(math.log(unsure / near.latency_s))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (replace(LOW, load_ratio=0.0), "row 1: got a load of 0.0"),
        (replace(LOW, latency_s=-1e-6), "row 1: got a latency of -1e-06"),
        (replace(LOW, latency_s=math.nan), "row 1: got a latency of nan"),
        (replace(LOW, noise_ratio=0.0), "row 1: got a noise of 0.0"),
    ],
)
def test_rows_that_cannot_be_are_named(row: LatencyRow, message: str) -> None:
    with pytest.raises(QuantityProblem, match=message):
        fit_curve((row,), prior_of("p50"), frame_s=FRAME_S)


def test_no_row_and_no_time_of_a_frame_are_refused() -> None:
    with pytest.raises(QuantityProblem, match="needs a row at least"):
        fit_curve((), prior_of("p50"), frame_s=FRAME_S)
    with pytest.raises(QuantityProblem, match="s for a frame"):
        fit_curve((LOW,), prior_of("p50"), frame_s=0.0)
    with pytest.raises(QuantityProblem, match="of the capacity: give more than 0"):
        fit_curve((LOW,), prior_of("p50"), frame_s=FRAME_S).quantiles_s(0.0, (0.5,))


RATES = "cores,throughput_mpps,{heads},disturbed\n1,5,{none},\n2,9.8,{none},\n"


def table(heads: str, *rows: str) -> tuple[Point, ...]:
    """Return two rates of 5 and 9.8 Mpps, and rows of latency with one core, without a rate."""
    none = "," * heads.count(",")
    return parse_points(RATES.format(heads=heads, none=none) + "".join(f"1,,{row}\n" for row in rows))


def curve_of(points: tuple[Point, ...], statistic: str = "p50") -> MeasuredLatency:
    curve = measured_latency(fit(calibrating(points)), points, points[0], statistic)
    assert curve is not None
    return curve


def test_rows_at_one_load_are_repeats_whose_spread_is_their_noise() -> None:
    heads = "latency_load_pps,latency_p50_us"
    law = prior_of("p50").noise
    even = curve_of(table(heads, "5e5,12,", "5e5,12,", "5e5,12,", "4e6,30,"))
    assert [row.noise_ratio for row in even.rows] == pytest.approx([law] * 4)
    # 10, 12 and 15 us: standard deviation of the logarithms 0.2030, by hand; the row at another load has no repeat.
    spread = curve_of(table(heads, "5e5,10,", "501e3,12,", "5e5,15,", "4e6,30,"))
    assert [row.noise_ratio for row in spread.rows] == pytest.approx([0.2030, 0.2030, 0.2030, law], rel=1e-3)
    widths = [float(np.diff(np.log(measured.curve.quantiles_s(0.3, (0.025, 0.975))))[0]) for measured in (even, spread)]
    assert widths[0] < widths[1]


def test_a_disturbed_repeat_has_no_effect_and_rows_that_all_were_are_named() -> None:
    heads = "latency_load_pps,latency_p50_us"
    calm = curve_of(table(heads, "5e5,12,", "5e5,12.1,"))
    marked = table(heads, "5e5,12,", "5e5,12.1,", "5e5,900,core 1: other work took 40 %")
    assert curve_of(marked).rows == calm.rows
    assert disturbed_rows(marked, "p50") == ()
    all_marked = table(heads, "5e5,12,yes", "4e6,30,yes")
    assert measured_latency(fit(calibrating(all_marked)), all_marked, all_marked[0], "p50") is None
    assert len(disturbed_rows(all_marked, "p50")) == 2
    assert disturbed_rows(all_marked, "p99") == ()


def test_the_testers_delay_and_the_devices_in_series_are_taken_out() -> None:
    plain = curve_of(table("latency_load_pps,latency_mean_us", "5e5,11,"), "mean")
    heads = "latency_load_pps,latency_mean_us,latency_devices,latency_tester_us"
    # CSIT 17.01: two devices in series, and 4 us of the tester's own.
    measured = curve_of(table(heads, "5e5,26,2,4,"), "mean")
    assert measured.rows[0].latency_s == pytest.approx(plain.rows[0].latency_s)
    assert measured.rows[0].noise_ratio == pytest.approx(plain.rows[0].noise_ratio)
    tail = curve_of(table(heads.replace("mean", "p99"), "5e5,26,2,4,"), "p99")
    assert (tail.rows[0].noise_ratio or 0.0) > 0.25  # quantiles of several devices do not add up


def test_steps_of_the_testers_clock_are_noise_of_their_variance() -> None:
    heads = "latency_load_pps,latency_p50_us,latency_resolution_us"
    rows = curve_of(table(heads, "5e5,20,10,", "4e6,40,,")).rows
    law = prior_of("p50").noise
    # Rounding to steps of 10 us has the variance 100/12 us²: 0.1443 of 20 us.
    assert rows[0].noise_ratio == pytest.approx(math.hypot(law, 10.0 / math.sqrt(12.0) / 20.0))
    assert rows[1].noise_ratio == pytest.approx(law)
