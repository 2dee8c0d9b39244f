"""Frames, flows and arrivals, against RFCs and arithmetic."""

from __future__ import annotations

import gzip
import math
import random
import statistics
import struct
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, ModelProblem, QuantityProblem, RoutecastError
from routecast.load import (
    SYMMETRIC_KEY,
    Arrivals,
    Flow,
    FlowSet,
    FrameMix,
    IntendedRate,
    OfferedLoad,
    RecordedFrames,
    line_rate_pps,
)
from routecast.load.offered import recorded_load


def test_line_rates_are_those_of_rfc_2544():
    # RFC 2544 appendix A: on 10 Mbit/s Ethernet 14,880 frames of 64 B and 812 of 1518 B a second.
    assert math.floor(line_rate_pps(10e6, 64)) == 14_880
    assert math.floor(line_rate_pps(10e6, 1518)) == 812
    assert round(line_rate_pps(10e9, 64)) == 14_880_952


@pytest.mark.parametrize(
    ("text", "frames", "rate_pps"),
    [
        ("10 Gbit/s", FrameMix.fixed(64), 14_880_952),  # RFC 2544 appendix A, scaled from 10 Mbit/s
        ("1.25 GB/s", FrameMix.fixed(64), 14_880_952),
        ("10 Gbit/s", FrameMix.fixed(1518), 812_744),
        # 28 x 64 + 16 x 570 + 4 x 1518 B and 48 x 20 B of gap and preamble for 48 frames.
        ("10 Gbit/s", FrameMix.imix(), 3_343_736),
        ("14.88 Mpps", FrameMix.fixed(1518), 14_880_000),
    ],
)
def test_a_bit_rate_counts_gap_and_preamble_of_the_frames_offered(text, frames, rate_pps):
    assert round(IntendedRate.parse(text).pps(frames)) == rate_pps


def test_what_is_no_rate_is_reported_with_both_kinds_of_units():
    for text in ("64 B", "10", "3 s", "10 Gbut/s"):
        with pytest.raises(QuantityProblem, match=r"expected a frame rate such as .* or a bit rate such as"):
            IntendedRate.parse(text)


def test_imix_is_seven_to_four_to_one():
    # FD.io CSIT, IMIX_v4_1: 28 x 64, 16 x 570, 4 x 1518, mean 353.83 B.
    assert FrameMix.imix().mean_bytes == pytest.approx(353.83, abs=0.005)
    assert FrameMix.imix(594).share_by_bytes == {64: 7 / 12, 594: 4 / 12, 1518: 1 / 12}
    assert FrameMix.parse("7x64, 4x594, 1x1518").share_by_bytes == FrameMix.imix(594).share_by_bytes


def test_genomes_spell_the_sizes_of_rfc_6985():
    # RFC 6985 sec. 4, table of the IMIX genome.
    sizes = (64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 16000)
    assert FrameMix.genome("abcdefghij").sequence_bytes == sizes
    assert FrameMix.genome("z", mtu_frame_bytes=1522).sequence_bytes == (1522,)
    assert FrameMix.genome("a3g").sequence_bytes == (64, 64, 64, 1518)
    with pytest.raises(QuantityProblem, match="MTU"):
        FrameMix.genome("aaz")


@pytest.mark.parametrize(
    "text", ["60 B", "64 Mbit", "", "IMIX 600", "genome xyz", "0x64, 1x128", "1x20", "99999999x64"]
)
def test_wrong_frames_are_refused(text):
    with pytest.raises(QuantityProblem):
        FrameMix.parse(text)


@given(text=st.text(max_size=30) | st.from_regex(r"(genome )?[a-jz0-9x, +]{0,12}", fullmatch=True))
def test_any_text_is_a_mix_or_refused(text):
    try:
        mix = FrameMix.parse(text)
    except RoutecastError:
        return
    assert 64 <= mix.mean_bytes <= 65_535


def test_crafted_flows_spread_evenly():
    assert FlowSet.crafted(4).share_per_core(4) == (0.25,) * 4
    assert [(flow.ingress, flow.weight) for flow in FlowSet.crafted(2).flows] == [(0, 1.0), (1, 1.0)]


def test_random_flows_are_uneven_reproducible_and_grow_by_appending():
    few, many = FlowSet.random(100, seed=7), FlowSet.random(200, seed=7)
    assert many.flows[:100] == few.flows
    assert few != FlowSet.random(100, seed=8)
    shares = few.share_per_core(4)
    assert sum(shares) == pytest.approx(1.0)
    assert max(shares) > 0.25


def test_random_flows_fill_queues_like_a_fair_draw():
    # 10,000 flows over 4 queues: 2,500 each with standard deviation sqrt(10,000·3/16) = 43; five of them allowed.
    assert all(abs(share * 10_000 - 2500) < 5 * 43.3 for share in FlowSet.random(10_000, seed=3).share_per_core(4))


def test_an_indirection_table_moves_flows():
    flows = FlowSet.crafted(4)
    assert flows.share_per_core(4, (0,) * 128) == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_a_flow_needs_a_weight(weight):
    with pytest.raises(ModelProblem, match="share"):
        FlowSet(name="x", flows=(Flow(rss_hash=0, weight=weight),))


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_load_needs_a_rate(rate):
    with pytest.raises(ModelProblem, match="finite number > 0"):
        OfferedLoad(rate_pps=rate)


def test_on_off_gaps_have_the_stated_variation():
    # Simulation of the definition: bursts of geometric length at peak rate, exponential pauses.
    arrivals = Arrivals.on_off(burst_frames=5.0, peak_ratio=4.0)
    draw, gaps = random.Random(1), []
    for _ in range(200_000):
        gap = 0.25
        if draw.random() < 1 / 5.0:
            gap += draw.expovariate(1.0 / (5.0 * 0.75))
        gaps.append(gap)
    assert statistics.fmean(gaps) == pytest.approx(1.0, rel=0.02)
    assert statistics.pvariance(gaps) == pytest.approx(arrivals.interarrival_scv, rel=0.03)


def test_a_trace_is_read_and_every_wrong_line_is_named(tmp_path):
    good = tmp_path / "good.csv"
    good.write_text("time_s,frame_bytes,flow\n0,64,0\n1e-6,128,1\n2e-6,64,0\n")
    arrivals = Arrivals.from_trace(good)
    assert arrivals.trace is not None
    assert arrivals.trace.frame_bytes.tolist() == [64, 128, 64]
    assert arrivals.trace.rate_pps == pytest.approx(1e6)
    bad = tmp_path / "bad.csv"
    bad.write_text("time_s,frame_bytes,flow\n0,63,0\n1,64\n2,64,-1\nnan,64,0\nx,64,0\n")
    with pytest.raises(FileProblem) as caught:
        Arrivals.from_trace(bad)
    assert [problem.place for problem in caught.value.problems] == [f"line {line}" for line in range(2, 7)]
    with pytest.raises(FileProblem, match="No such file"):
        Arrivals.from_trace(tmp_path / "none.csv")


def capture(path: Path, *, packets: int = 4) -> Path:
    """A capture of UDP packets every 10 us, in turns of two flows; 1,514 captured bytes are 1,518 on the wire."""
    record = b""
    for number in range(packets):
        length = 1514 if number % 2 else 42
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length - 14, 0, 0, 64, 17, 0, bytes(4), bytes(4))
        packet = (bytes(12) + b"\x08\x00" + ip + struct.pack("!HH", 7 + number % 2, 9)).ljust(length, b"\0")
        record += struct.pack("<IIII", 1, 10 * number, length, length) + packet
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + record)
    return path


def test_a_capture_is_a_trace_of_what_was_on_the_wire(tmp_path):
    arrivals = Arrivals.from_trace(capture(tmp_path / "a.pcap"))
    assert arrivals.trace is not None
    assert arrivals.trace.time_s == pytest.approx((0.0, 10e-6, 20e-6, 30e-6))
    assert arrivals.trace.frame_bytes.tolist() == [64, 1518, 64, 1518]  # with FCS, and padded
    assert arrivals.trace.flow.tolist() == [0, 1, 0, 1]


def test_a_capture_that_is_missing_or_none_is_refused_and_one_that_is_cut_short_is_read_so_far(tmp_path):
    whole = capture(tmp_path / "a.pcap").read_bytes()
    cut, text = tmp_path / "cut.pcap", tmp_path / "text.pcapng"
    cut.write_bytes(whole[:-10])
    text.write_text("time_s,frame_bytes,flow\n")
    for path, words in ((text, "pcap"), (tmp_path / "b.cap", "No such file")):
        with pytest.raises(FileProblem, match=words):
            Arrivals.from_trace(path)
    trace = Arrivals.from_trace(cut).trace
    assert trace is not None
    assert len(trace) == 3
    assert any("cut off" in note or "ends within" in note for note in trace.notes)


def udp_packet(source: str, destination: str, source_port: int, destination_port: int) -> bytes:
    addresses = ip_address(source).packed + ip_address(destination).packed
    header = struct.pack("!BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 17, 0) + addresses
    return bytes(12) + b"\x08\x00" + header + struct.pack("!HHHH", source_port, destination_port, 8, 0)


def test_flows_of_a_capture_go_to_the_queues_of_a_real_card(tmp_path):
    # Microsoft's vectors for its key, UDP or TCP over IPv4: 0x51ccc178 and 0xc626b0ea.
    packets = [
        udp_packet("66.9.149.187", "161.142.100.80", 2794, 1766),
        udp_packet("199.92.111.2", "65.69.140.83", 14230, 4739),
        udp_packet("161.142.100.80", "66.9.149.187", 1766, 2794),
    ]
    path = tmp_path / "rss.pcap.1.gz"
    records = b"".join(
        struct.pack("<IIII", 1, 10 * number, len(packet), len(packet)) + packet for number, packet in enumerate(packets)
    )
    path.write_bytes(gzip.compress(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + records))
    trace = Arrivals.from_trace(path).trace
    assert trace is not None
    assert [flow.rss_hash for flow in trace.flows[:2]] == [0x51CCC178, 0xC626B0EA]
    load = recorded_load(trace, ports=2)
    assert [flow.ingress for flow in load.flows.flows] == [0, 0, 1]
    assert [flow.egress for flow in load.flows.flows] == [1, 1, 0]
    symmetric = Arrivals.from_trace(path, rss_key=SYMMETRIC_KEY).trace
    assert symmetric is not None
    assert symmetric.flows[0].rss_hash == symmetric.flows[2].rss_hash


def test_a_csv_may_say_the_port_of_each_flow(tmp_path):
    path = tmp_path / "ports.csv"
    path.write_text("time_s,frame_bytes,flow,port\n5,64,0,1\n6,64,1,0\n7,64,0,1\n")
    trace = Arrivals.from_trace(path).trace
    assert trace is not None
    assert [(flow.ingress, flow.egress) for flow in recorded_load(trace, ports=2).flows.flows] == [(1, 0), (0, 1)]
    path.write_text("time_s,frame_bytes,flow,port\n5,64,0,1\n6,64,0,0\n")
    with pytest.raises(FileProblem, match="enters by port 0, and before by 1"):
        Arrivals.from_trace(path)


def test_a_trace_needs_its_flows():
    arrivals = Arrivals.recorded(RecordedFrames.of((0.0,), (64,), (3,)))
    with pytest.raises(ModelProblem, match="names flow 3"):
        OfferedLoad(rate_pps=1.0, arrivals=arrivals)


def test_meshed_flows_never_meet_at_a_port_and_reach_every_other():
    flows = FlowSet.meshed(20, ports=5).flows
    assert {(flow.ingress, flow.egress) for flow in flows} == {(a, b) for a in range(5) for b in range(5) if a != b}
    for turn in range(4):  # RFC 2889 sec. 5.1.3: at each turn every port receives from one
        assert sorted(flow.egress for flow in flows[5 * turn : 5 * turn + 5]) == [0, 1, 2, 3, 4]
