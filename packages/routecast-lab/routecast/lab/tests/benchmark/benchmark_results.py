"""Benchmark results made by hand: one with everything, one where nothing was found."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import replace

from routecast.evaluate.trial import Bottleneck, Delay, Trial
from routecast.lab.benchmark.journal import TrialRecord
from routecast.lab.benchmark.procedures.back_to_back import BackToBackResult, BackToBackRow
from routecast.lab.benchmark.procedures.frame_loss import FrameLossResult, FrameLossRow
from routecast.lab.benchmark.procedures.latency import LatencyResult, LatencyRow
from routecast.lab.benchmark.procedures.procedure import Spread
from routecast.lab.benchmark.procedures.recovery import RecoveryResult, RecoveryRow
from routecast.lab.benchmark.procedures.reset import ResetResult, ResetRow
from routecast.lab.benchmark.procedures.throughput import ThroughputResult, ThroughputRow
from routecast.lab.benchmark.streams import Stream
from routecast.lab.benchmark.values import BenchmarkResult, Compliance, Deviation, NotRun, Setup
from routecast.load.offered import line_rate_pps

SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
NAN = float("nan")
LINK_BPS = 10e9


def rate_of(size: int) -> float:
    """A router that needs 400 ns a frame and 0.2 ns a byte, on a link of 10 Gbit/s."""
    return min(1.0 / (400e-9 + 0.2e-9 * size), line_rate_pps(LINK_BPS, size))


def histogram(median_ns: int) -> str:
    """An HDR histogram (V2) of three values below 2048."""
    words = b""
    at = 0
    for value, count in ((median_ns - 200, 500), (median_ns, 400), (median_ns + 400, 99), (2040, 1)):
        for number in (at - value, count):
            left = (number << 1) ^ (number >> 63)
            while left >= 0x80:
                words += bytes([left & 0x7F | 0x80])
                left >>= 7
            words += bytes([left])
        at = value + 1
    packed = zlib.compress(struct.pack(">IIIIQQd", 0x1C849313, len(words), 0, 3, 1, 10**9, 1.0) + words)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


def trial(rate_pps: float, loss_ratio: float, *, invalid: tuple[str, ...] = ()) -> Trial:
    """A trial of a second."""
    sent = round(rate_pps)
    lost = round(sent * loss_ratio)
    return Trial(
        evaluator="measure",
        duration_s=1.0,
        intended_pps=rate_pps,
        offered_pps=rate_pps,
        forwarded_pps=rate_pps * (1.0 - loss_ratio),
        loss_ratio=loss_ratio,
        l1_bps=rate_pps * 672,
        l2_bps=rate_pps * 512,
        bottleneck=Bottleneck(name="core 1", kind="pool", reason="is busy"),
        offered_frames=sent,
        forwarded_frames=sent - lost,
        dropped_frames=lost,
        in_flight_frames=0,
        duplicated_frames=0,
        reordered_frames=0,
        corrupted_frames=0,
        latency=Delay(mean_s=12e-6, p50_s=10e-6, p99_s=50e-6),
        invalid=invalid,
    )


STREAMS = (Stream(name="IPv4"), Stream(name="IPv4 bidirectional", bidirectional=True))


def throughput_row(stream: Stream, size: int, *, goal: str = "no loss", loss_ratio: float = 0.0) -> ThroughputRow:
    """Sec. 26.1 of the made-up router."""
    ports = 2 if stream.bidirectional else 1
    theoretical = ports * line_rate_pps(LINK_BPS, size)
    rate = min(rate_of(size) * (1.0 + loss_ratio), theoretical)
    return ThroughputRow(
        stream=stream.name,
        frame_bytes=size,
        goal=goal,
        loss_ratio=loss_ratio,
        throughput_pps=rate,
        per_port_pps=rate / ports,
        conditional_pps=rate * (1.0 - loss_ratio),
        theoretical_pps=theoretical,
        lower_pps=rate,
        upper_pps=NAN if rate == theoretical else 1.02 * rate,
        resolution_ratio=0.02,
        l1_bps=rate * 8 * (size + 20),
        l2_bps=rate * 8 * size,
        outcome="maximum" if rate == theoretical else "found",
        limit="medium" if rate == theoretical else "",
        repeats_pps=Spread.of((0.99 * rate, 1.01 * rate)),
        final_trial_s=0.5,
        trials=9,
    )


def latency_row(stream: Stream, size: int, ratio: float = 1.0) -> LatencyRow:
    """Sec. 26.2 of the made-up router."""
    median_ns = 600 + int(ratio * size) // 2
    return LatencyRow(
        stream=stream.name,
        frame_bytes=size,
        rate_pps=ratio * rate_of(size),
        rate_ratio=ratio,
        latency_s=Spread.of((1e-9 * median_ns, 1.1e-9 * median_ns, 0.9e-9 * median_ns)),
        typical_s=1e-9 * median_ns,
        worst_s=2.04e-6,
        p1_s=NAN,
        p99_s=1.8e-6,
        pdv_s=1.6e-6,
        ipdv_s=(0.0, 1e-7, 1.5e-6),
        min_s=3e-7,
        max_s=2.04e-6,
        loss_ratio=0.0,
        hdr_base64=histogram(median_ns),
    )


def whole() -> BenchmarkResult:
    """A result with every procedure, two streams, every state that a row can have, and an invalid trial."""
    throughput = [throughput_row(stream, size) for stream in STREAMS for size in SIZES]
    throughput += [throughput_row(STREAMS[0], size, goal="PDR 0.5 %", loss_ratio=0.005) for size in SIZES]
    loss = [
        FrameLossRow(
            stream="IPv4",
            frame_bytes=size,
            rate_ratio=share / 10,
            intended_pps=share / 10 * line_rate_pps(LINK_BPS, size),
            offered_pps=share / 10 * line_rate_pps(LINK_BPS, size),
            forwarded_pps=min(share / 10 * line_rate_pps(LINK_BPS, size), rate_of(size)),
            loss_ratio=max(0.0, 1.0 - rate_of(size) / (share / 10 * line_rate_pps(LINK_BPS, size))),
            theoretical_pps=line_rate_pps(LINK_BPS, size),
        )
        for size in SIZES
        for share in range(10, 0, -1)
    ]
    bursts = [
        BackToBackRow(
            stream="IPv4",
            frame_bytes=size,
            burst_frames=Spread.of(()) if size >= 1280 else Spread.of((300.0, 310.0, 296.0)),
            throughput_pps=rate_of(size),
            theoretical_pps=line_rate_pps(LINK_BPS, size),
            implied_buffer_s=NAN if size >= 1280 else 302.0 / line_rate_pps(LINK_BPS, size),
            corrected_buffer_s=NAN if size >= 1280 else 250.0 / line_rate_pps(LINK_BPS, size),
            resolution_frames=8,
            longest_s=2.0,
            outcome="skipped" if size >= 1280 else "found",
            reason="throughput is the theoretical maximum (RFC 9004 sec. 5.2)" if size >= 1280 else "",
        )
        for size in SIZES
    ]
    recovery = RecoveryRow(
        stream="IPv4",
        frame_bytes=64,
        throughput_pps=rate_of(64),
        overload_pps=1.1 * rate_of(64),
        recovery_pps=0.55 * rate_of(64),
        recovery_s=Spread.of((-2e-6, 120e-6)),
        overload_loss_ratio=0.09,
    )
    reset = ResetRow(
        stream="IPv4",
        kind="process",
        section="4.2.2",
        frame_bytes=64,
        rate_pps=rate_of(64),
        l2_bps=rate_of(64) * 512,
        lost_frames=Spread.of((50_000.0, 52_000.0)),
        reset_s=Spread.of((0.021, 0.022)),
        statement="process reset: 21.500 ms (mean of 2), 51,000 frames lost at 2,421,308 frames/s",
    )
    records = [
        TrialRecord(
            number=number,
            procedure="throughput",
            stream="IPv4",
            frame_bytes=64,
            purpose=f"search {number}",
            attempt=1,
            rate_pps=1e6 * number,
            trial=trial(
                1e6 * number, 0.1 if number > 2 else 0.0, invalid=("the link went down",) if number == 4 else ()
            ),
        )
        for number in range(1, 7)
    ]
    return BenchmarkResult(
        profile_name="quick",
        profile={"name": "quick", "trial": {"before": 0.0, "residual": 0.1}, "frames": list(SIZES)},
        setup=Setup(
            evaluator="measure",
            device={
                "name": "Linux IPv4 forwarding <b>&",
                "version": "6.18",
                "configuration": [
                    "ip netns exec dut sysctl -w net.ipv4.ip_forward=1",
                    "ip route add 198.19.1.0/24 dev d1",
                ],
                "disabled": ["GRO on d0", "IPv6"],
            },
            tester={"back end": "live frames", "cores": {"generator": 0, "router": 1}, "time stamps": "software"},
            device_title="Linux IPv4 forwarding",
            link_bps=(LINK_BPS, LINK_BPS),
            medium="Ethernet, 10 Gbit/s (virtual)",
            frame_bytes=SIZES,
            streams=STREAMS,
            frame_format="UDP echo requests in Ethernet II frames (RFC 2544 appendix C.2)",
            load_unit="frames per second over all sending ports together",
        ),
        compliance=Compliance(
            level="not compliant",
            statement="NOT compliant with RFC 2544: 1 MUST and 1 SHOULD are not satisfied.",
            deviations=(
                Deviation(
                    document="RFC 2544", section="24", requirement="SHOULD", wanted="trials of 60 s", done="0.5 s"
                ),
                Deviation(document="RFC 2544", section="26.2", requirement="MUST", wanted="20 repetitions", done="3"),
            ),
        ),
        by_procedure={
            "throughput": ThroughputResult(
                rows=tuple(throughput),
                advertised=(
                    "2,422,481 frames/s of 64 bytes; the medium carries at most 14,880,952 frames/s of this size; IPv4 "
                    "(UDP) over Ethernet, 10 Gbit/s (virtual)",
                ),
                search="MLRsearch (RFC 9971)",
            ),
            "latency": LatencyResult(
                rows=tuple(latency_row(STREAMS[0], size, ratio) for size in SIZES for ratio in (1.0, 0.5)),
                definition="RFC 1242 sec. 3.8, store and forward: from the last bit in to the first bit out",
                medium="Ethernet, 10 Gbit/s (virtual)",
            ),
            "frame_loss": FrameLossResult(rows=tuple(loss), step_ratio=0.1),
            "back_to_back": BackToBackResult(
                rows=tuple(bursts),
                algorithm="TST009 binary search with loss verification, bursts of up to 2 s, step 8 frames.",
            ),
            "recovery": RecoveryResult(rows=(recovery,)),
            "reset": ResetResult(rows=(reset,)),
        },
        not_run=(NotRun(section="RFC 6201 sec. 4.3", what="interruption of power", reason="cannot be switched"),),
        search_statements=(
            "Rates and loads are frames/s over all ports together.",
            "Goal width is (upper − lower) / upper.",
        ),
        trials=tuple(records),
        resumed_trials=2,
        invalid_trials=1,
        started_utc="2026-01-02T03:04:05+00:00",
        elapsed_s=61.25,
        command="routecast benchmark rfc2544 --testbed namespaces --dut linux --profile quick",
        versions={"routecast": "0.1.0", "kernel": "6.18"},
        notes=("the tester reached 9 Mpps",),
    )


def found_nothing() -> BenchmarkResult:
    """A result in which no procedure found anything."""
    full = whole()
    nothing = Spread.of(())
    lost = replace(
        throughput_row(STREAMS[0], 64),
        throughput_pps=NAN,
        per_port_pps=NAN,
        conditional_pps=NAN,
        lower_pps=NAN,
        upper_pps=NAN,
        l1_bps=NAN,
        l2_bps=NAN,
        outcome="undetermined",
        reason="no trial was valid",
        repeats_pps=nothing,
    )
    late = replace(
        latency_row(STREAMS[0], 64),
        latency_s=nothing,
        typical_s=NAN,
        worst_s=NAN,
        hdr_base64="",
        outcome="undetermined",
        reason="no trial was valid",
    )
    return replace(
        full,
        by_procedure={
            "throughput": ThroughputResult(rows=(lost,)),
            "latency": LatencyResult(rows=(late,), definition="RFC 1242 sec. 3.8", medium="Ethernet"),
            "frame_loss": FrameLossResult(rows=(), step_ratio=0.1),
        },
        trials=(),
        invalid_trials=0,
    )
