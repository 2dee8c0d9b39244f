"""Latencies carried to frames of another size: a longer frame takes longer, and rows of several sizes say how much."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.calibration import fit
from routecast.calibration.latency import MeasuredLatency, measured_latency
from routecast.calibration.latency.carried import SizedLatency, byte_time, noise_when_carried
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Point, calibrating

LINK_BPS = 10e9
ROW = SizedLatency(frame_bytes=64.0, load_ratio=0.1, latency_s=8e-6, noise_ratio=0.044)


def with_slope(slope_s: float, frame_bytes: float = 9000.0, *, devices: int = 1) -> tuple[SizedLatency, SizedLatency]:
    """Return a row of 64 B, and one of other frames that each byte makes longer by a slope."""
    small = replace(ROW, devices=devices)
    longer_s = ROW.latency_s + slope_s * (frame_bytes - ROW.frame_bytes)
    return small, replace(small, frame_bytes=frame_bytes, latency_s=longer_s)


def test_without_rows_of_another_size_a_byte_takes_its_links_and_half_a_nanosecond() -> None:
    # Two links of 0.8 ns/B; in one of two devices in series half of three.
    assert byte_time([ROW], link_bps=LINK_BPS).of_s(ROW) == pytest.approx(2.1e-9)
    in_series = replace(ROW, devices=2)
    assert byte_time([in_series], link_bps=LINK_BPS).of_s(in_series) == pytest.approx(1.7e-9)
    assert not byte_time([ROW, replace(ROW, load_ratio=0.5)], link_bps=LINK_BPS).is_measured


def test_the_slope_of_rows_far_apart_is_what_a_byte_takes() -> None:
    # A row at 64 B and one at 9,000 B, whose 4.4 % are 0.2 ns/B; the law, 2.1 ± 0.55 ns/B, takes part with its weight.
    for slope_s in (1.9e-9, 2.24e-9, 3e-9):
        time = byte_time(with_slope(slope_s), link_bps=LINK_BPS)
        assert time.is_measured
        assert time.of_s(ROW) == pytest.approx(slope_s, rel=0.08)
        assert min(slope_s, 2.1e-9) <= time.of_s(ROW) <= max(slope_s, 2.1e-9)


def test_rows_at_high_loads_tell_no_slope() -> None:
    # From 64 to 1,518 B at half the load of CSIT 17.01 the waiting changes more than the bytes take.
    rows = [replace(row, load_ratio=0.5) for row in with_slope(9e-9, 1518.0)]
    assert not byte_time(rows, link_bps=LINK_BPS).is_measured
    apart = (ROW, replace(with_slope(9e-9)[1], load_ratio=0.25))
    assert not byte_time(apart, link_bps=LINK_BPS).is_measured


@given(
    slope_s=st.floats(-1e-9, 2e-8),
    link_bps=st.sampled_from([1e9, 1e10, 1e11]),
    other=st.floats(200.0, 9000.0),
    sizes=st.tuples(st.floats(64.0, 9000.0), st.floats(64.0, 9000.0)),
    devices=st.integers(1, 3),
)
def test_a_longer_frame_never_takes_less_and_at_least_its_time_on_the_links_into_the_devices(
    slope_s: float, link_bps: float, other: float, sizes: tuple[float, float], devices: int
) -> None:
    small, large = with_slope(slope_s, other, devices=devices)
    rows = [small, replace(large, latency_s=max(large.latency_s, 1e-7))]
    time = byte_time(rows, link_bps=link_bps)
    assert time.of_s(small) >= 8.0 / link_bps * (1.0 - 1e-9)
    shorter, longer = sorted(sizes)
    carried = [time.carried(replace(small, frame_bytes=32.0), size)[0] for size in (shorter, longer)]
    assert carried[1] >= carried[0]
    assert carried[1] - carried[0] >= 8.0 / link_bps * (longer - shorter) * (1.0 - 1e-6) - 1e-15


def test_what_is_carried_counts_for_less_the_farther_and_the_fuller() -> None:
    time = byte_time([ROW], link_bps=LINK_BPS)
    assert time.carried(ROW, 64.5) == (ROW.latency_s, ROW.noise_ratio)
    noise = [time.carried(ROW, size)[1] for size in (256.0, 1518.0, 9000.0)]
    assert ROW.noise_ratio < noise[0] < noise[1] < noise[2] < 0.35
    half = time.carried(replace(ROW, load_ratio=0.5), 1518.0)[1]
    assert noise[1] < half < time.carried(replace(ROW, load_ratio=1.0), 1518.0)[1]
    assert noise_when_carried(0.96) == pytest.approx(math.log(3.0))
    # Without a link's rate, two links of 10 Gbit/s may be in it.
    assert byte_time([ROW], link_bps=None).spread_s > 3.2 * time.spread_s * 0.8


HEAD = "cores,frame_bytes,throughput_mpps,link_gbps,latency_load_ratio,latency_p50_us\n"
SMALL = "1,64,5,10,0.1,12\n1,64,5,10,0.5,18\n"
LARGE = "1,1518,1.6,10,0.1,15.5\n"


def curve_of(rows: str, frame_bytes: float) -> MeasuredLatency:
    points = parse_points(HEAD + rows)
    asked_of = replace(points[0], frame_bytes=frame_bytes)
    curve = measured_latency(fit(calibrating(points)), points, asked_of, "p50")
    assert curve is not None
    return curve


def test_rows_of_two_sizes_count_together_and_carry_to_a_third() -> None:
    alone, both = curve_of(SMALL, 9000.0), curve_of(SMALL + LARGE, 9000.0)
    assert (len(alone.rows), len(both.rows)) == (2, 3)
    # 2.1 ns/B by the law; 3.5 us over 1,454 B are 2.4.
    assert alone.rows[0].latency_s == pytest.approx(12e-6 + 2.1e-9 * 8936)
    assert 2.1e-9 * 8936 < both.rows[0].latency_s - 12e-6 < 2.41e-9 * 8936
    assert both.at_load(0.1).latency_s > alone.at_load(0.1).latency_s
    # Asked for one of the sizes, its own rows count most.
    of_small = curve_of(SMALL + LARGE, 64.0)
    assert [row.latency_s for row in of_small.rows[:2]] == pytest.approx([12e-6, 18e-6])
    noise = [row.noise_ratio or 0.0 for row in of_small.rows]
    assert noise[2] > 2.0 * max(noise[:2])
    assert of_small.at_load(0.1).latency_s == pytest.approx(12e-6, rel=0.05)


def test_a_row_in_overload_is_not_carried_to_other_frames_where_others_are() -> None:
    full = "1,1518,1.6,10,1.2,400\n"
    assert len(curve_of(SMALL + LARGE + full, 64.0).rows) == 3
    assert curve_of(SMALL + LARGE + full, 64.0).highest_load_ratio == pytest.approx(0.5, rel=0.05)
    assert len(curve_of(SMALL + LARGE + full, 1518.0).rows) == 4


def test_a_longer_frame_takes_longer_at_every_low_load() -> None:
    at = [curve_of(SMALL + LARGE, size).at_load(0.1).latency_s for size in (64.0, 512.0, 1518.0, 9000.0)]
    assert at == sorted(at)
    points: tuple[Point, ...] = parse_points(HEAD + SMALL)
    assert points[0].link_bps == LINK_BPS
