"""Caps that nobody stated are found in the table, and rows at a cap bound the rate of the cores from below."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.calibration import fit
from routecast.calibration.caps import find_caps
from routecast.evaluate.points import Point
from routecast.load.offered import line_rate_pps
from routecast.size import Target, size

TEN = 10e9


def row(cores: int, frame_bytes: float, pps: float, **more: object) -> Point:
    return Point(cores=cores, frame_bytes=frame_bytes, throughput_pps=pps, **more)  # type: ignore[arg-type]


def capped(core_pps: float, counts: tuple[int, ...], sizes: tuple[int, ...], **caps: float) -> list[Point]:
    """Rows of a router of linear cores, with a cap in bit/s on the wire or in frames/s."""
    bps, pps = caps.get("bps", 1e15), caps.get("pps", 1e15)
    return [
        row(k, s, min(k * core_pps, line_rate_pps(bps, s), pps))  # S1
        for k in counts
        for s in sizes
    ]


@pytest.mark.parametrize(
    ("core_pps", "counts", "sizes", "bps"),
    [
        (3.3e6, (1, 2, 4), (64, 128, 512, 1518), TEN),
        (1.5e6, (1, 4, 8), (64, 1024, 1518), 25e9),
        (2e6, (2, 6), (128, 512, 1518), 12.3e9),  # a bus, and no line rate of Ethernet
        (0.9e6, (1, 2), (64, 1024, 1518), 5e9),
        (4e6, (1,), (64, 512, 1024, 1518), TEN),
    ],
)
def test_equal_bit_rates_are_a_cap_that_the_other_rows_do_not_bend_to(
    core_pps: float, counts: tuple[int, ...], sizes: tuple[int, ...], bps: float
) -> None:
    rows = capped(core_pps, counts, sizes, bps=bps)
    (cap,) = find_caps(rows, noise_ratio=0.01).caps
    assert cap.kind == "bits"
    assert cap.rate == pytest.approx(bps, rel=0.002)
    fitted = fit(rows)
    assert not fitted.outliers
    assert not [text for text in fitted.warnings if "outlier" in text or "outside its own" in text]
    # More cores than the table forward more of small frames, and no more of large ones.
    more = [replace(rows[0], cores=2 * counts[-1], frame_bytes=float(s)) for s in (64, 1518)]
    small, large = fitted.predict(more)
    assert small.throughput_pps == pytest.approx(
        min(2 * counts[-1] * core_pps, line_rate_pps(bps, 64.0)), rel=0.2 if len(counts) > 1 else 0.6
    )
    assert large.throughput_pps == pytest.approx(min(2 * counts[-1] * core_pps, line_rate_pps(bps, 1518.0)), rel=0.05)


def test_one_frame_size_at_the_cap_is_enough_where_other_sizes_grow() -> None:
    rates = ((6, 4.837e6, 3.255e6), (8, 6.398e6, 3.274e6), (16, 12.337e6, 3.272e6))
    rows = [row(k, s, pps) for k, small, large in rates for s, pps in ((128, small), (1518, large))]
    (cap,) = find_caps(rows, noise_ratio=0.01).caps
    assert (cap.rate, {point.frame_bytes for point in cap.rows}) == (pytest.approx(40e9, rel=0.01), {1518})
    result = size(rows, Target.parse("11473317 pps", "128 B"), counts=range(1, 33))
    assert result.least is not None
    assert result.least.cores <= 16
    # A bus of no line rate needs three numbers of cores.
    bus = [
        row(k, s, pps * (0.8 if s == 1518 else 1.0))
        for k, s, pps in ((p.working_cores, p.frame_bytes, p.throughput_pps) for p in rows)
    ]
    assert [cap.ports for cap in find_caps(bus, noise_ratio=0.01).caps] == [None]
    assert find_caps(bus[:4], noise_ratio=0.01).caps == ()


def test_equal_frame_rates_over_cores_and_sizes_are_a_card() -> None:
    rows = capped(2e6, (1, 4, 8), (64, 128, 256), pps=7e6)
    (cap,) = find_caps(rows, noise_ratio=0.01).caps
    assert (cap.kind, cap.rate) == ("frames", pytest.approx(7e6))
    assert "nic_cap_pps" in cap.text


def test_equal_frame_rates_on_one_number_of_cores_are_the_cost_of_a_frame() -> None:
    assert find_caps(capped(2e6, (2,), (64, 128, 256)), noise_ratio=0.01).caps == ()
    assert find_caps(capped(2e6, (1, 2, 4), (64, 128)), noise_ratio=0.01).caps == ()


def test_one_row_at_a_line_rate_is_a_cap_unless_fewer_cores_explain_it() -> None:
    line_pps = line_rate_pps(TEN, 1518.0)
    (cap,) = find_caps([row(1, 1518, 0.999 * line_pps)], noise_ratio=0.01).caps
    assert cap.ports == 1
    assert "How many ports took part?" in cap.text
    # Twenty and forty Gbit/s are twice one core's and a round figure, and 40 Gbit/s a line rate by chance.
    linear = [row(1, 1500, line_rate_pps(20e9, 1500.0)), row(2, 1500, line_rate_pps(40e9, 1500.0))]
    assert find_caps(linear, noise_ratio=0.01).caps == ()
    # No link carries more than its line rate.
    assert find_caps([row(1, 64, 1.003 * line_rate_pps(TEN, 64.0))], noise_ratio=0.01).caps == ()


def test_a_rate_of_one_port_of_a_stated_link_uses_one_port() -> None:
    line_pps = line_rate_pps(TEN, 64.0)
    rows = [row(1, 64, 6e6, link_bps=TEN), row(2, 64, 12e6, link_bps=TEN), row(4, 64, line_pps, link_bps=TEN)]
    caps = find_caps(rows, noise_ratio=0.01)
    assert {point.ports for point in caps.points} == {1}
    assert "State ports" in caps.caps[0].text
    both_ways = [*rows, row(6, 64, 1.5 * line_pps, link_bps=TEN)]
    assert find_caps(both_ways, noise_ratio=0.01).caps == ()


def test_the_answer_is_that_of_the_cores_below_the_cap_and_none_above_it() -> None:
    rows = capped(3.3e6, (1, 2, 4), (64, 128, 512, 1518), bps=TEN)
    small = size(rows, Target.parse("6 Mpps"), counts=range(1, 9))
    assert small.least is not None
    assert small.least.cores == 2
    beyond = size(rows, Target.parse("20 Mpps"), counts=range(1, 9))
    assert beyond.least is None
    assert "carry at most 14.88 Mpps of 64 B" in beyond.answer


def test_a_router_at_line_rate_reaches_the_line_rate() -> None:
    rows = [replace(point, link_bps=TEN, ports=1) for point in capped(4e6, (1, 2, 4, 8), (64,), bps=TEN)]
    result = size(rows, Target.parse("10 Gbit/s"), counts=range(1, 9))
    assert result.least is not None
    assert result.least.cores in {4, 5}


@pytest.mark.parametrize("tag_bytes", [4.0, 8.0])
@pytest.mark.parametrize("sizes", [(64,), (64, 512, 1518)])
def test_a_link_full_of_frames_with_vlan_tags_is_a_cap(tag_bytes: float, sizes: tuple[int, ...]) -> None:
    """The table counts frames without their tags, IEEE 802.1Q: on the wire each has 4 bytes more."""
    rows = [
        row(k, s, round(min(9e6 * k, 25e9 / (8.0 * (s + tag_bytes + 20.0))), -4)) for k in (1, 2, 4, 8) for s in sizes
    ]
    (cap,) = find_caps(rows, noise_ratio=0.01).caps
    assert (cap.rate, cap.tag_bytes) == (25e9, tag_bytes)
    assert "encapsulation_bytes" in cap.text
    line_pps = 25e9 / (8.0 * (64.0 + tag_bytes + 20.0))
    fitted = fit(rows)
    assert fitted.predict([row(8, 64, float("nan"))])[0].throughput_pps == pytest.approx(line_pps, rel=0.01)
    beyond = size(rows, Target.parse(f"{1.03 * line_pps / 1e6} Mpps"), counts=range(1, 33))
    assert beyond.least is None
    assert "carry at most" in beyond.answer
    within = size(rows, Target.parse(f"{0.95 * line_pps / 1e6} Mpps"), counts=range(1, 33))
    assert within.least is not None
    assert within.least.cores == 4


def test_equal_rates_above_a_line_rate_are_no_links_of_it() -> None:
    """A bus passes 50.3 Gbit/s: no port of 50 Gbit/s, nor two of 25, carries that."""
    rates = ((1, 64, 10.7e6), (2, 64, 21e6), (4, 64, 41e6), (1, 1518, 4.088e6), (2, 1518, 4.081e6), (4, 1518, 4.096e6))
    rows = [row(*rate) for rate in rates]
    (cap,) = find_caps(rows, noise_ratio=0.01).caps
    assert cap.ports is None
    assert cap.rate == pytest.approx(50.3e9, rel=0.002)
    # A row of the table forwards 4.096 Mpps, so that no sentence says that less is the most.
    reached = size(rows, Target.parse("4.094 Mpps", "1518 B"), counts=range(1, 9))
    assert "carry at most" not in reached.answer
    assert "x 25" not in size(rows, Target.parse("5 Mpps", "1518 B"), counts=range(1, 9)).answer


@pytest.mark.parametrize("stated_bps", [40e9, 100e9])
@pytest.mark.parametrize("bps", [TEN, 12.3e9])
def test_a_stated_link_does_not_hide_a_lower_limit(stated_bps: float, bps: float) -> None:
    rows = [replace(row, link_bps=stated_bps, ports=1) for row in capped(1.6e6, (2, 4, 6), (64, 512, 1518), bps=bps)]
    (cap,) = find_caps(rows, noise_ratio=0.01).caps
    assert (cap.kind, cap.stated) == ("bits", stated_bps)
    assert cap.rate == pytest.approx(bps, rel=0.002)
    assert "less than the stated links" in cap.text
    fitted = fit(rows)
    assert not fitted.outliers
    # The fewest cores that fill the bus are enough for what it carries, and no number is for more.
    carried_pps = line_rate_pps(bps, 512.0)
    answer = size(rows, Target.parse(f"{0.95 * carried_pps} pps", "512 B"), counts=range(1, 17)).least
    assert answer is not None
    assert answer.cores == 2
    assert size(rows, Target.parse(f"{1.3 * carried_pps} pps", "512 B"), counts=range(1, 17)).least is None


def test_a_stated_card_does_not_hide_a_lower_limit() -> None:
    rows = [
        replace(row, nic_cap_pps=30e6, link_bps=100e9, ports=1)
        for row in capped(4e6, (1, 2, 4, 8), (64, 128, 256), pps=14.2e6)
    ]
    (cap,) = find_caps(rows, noise_ratio=0.01).caps
    assert (cap.kind, cap.rate, cap.stated) == ("frames", pytest.approx(14.2e6), 30e6)
    (more,) = fit(rows).predict([replace(rows[0], cores=16)])
    assert more.throughput_pps == pytest.approx(14.2e6, rel=0.02)


def test_rows_that_fill_their_stated_link_show_no_other_cap() -> None:
    rows = [replace(row, link_bps=TEN, ports=1) for row in capped(2e6, (2, 4, 8), (64, 512, 1518), bps=TEN)]
    assert find_caps(rows, noise_ratio=0.01).caps == ()


def test_one_row_below_its_stated_link_shows_no_cap_even_at_the_line_rate_of_another() -> None:
    # 836 B at 11.68 Mpps are 80 Gbit/s with gap and preamble, of a core whose cost grows with the frame.
    rows = [row(1, 68.0, 12.0e6, link_bps=100e9, ports=1), row(1, 836.0, 11.68e6, link_bps=100e9, ports=1)]
    assert find_caps(rows, noise_ratio=0.01).caps == ()
