"""The six procedures on the wire, with the kernel's router in network namespaces: physics and counting, never speed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmark_fakes import profile_with

from routecast.evaluate.trial import Trial
from routecast.lab.benchmark import BenchmarkResult, Profile, Stream, plan_of, read_profile, run_benchmark
from routecast.lab.benchmark.bed_rig import BedRig
from routecast.lab.benchmark.streams import BROADCAST
from routecast.lab.testbed.reading import read_testbed

pytestmark = pytest.mark.wire
WIRE_BPS = 100e6  # 148,810 frames/s of 64 bytes: a rate that every machine keeps, and every kernel forwards
LINE_PPS = WIRE_BPS / (8 * 84)


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Path]:
    file, name = tmp_path / "wire.testbed.toml", f"b{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"
    file.write_text(f'name = "{name}"\nkind = "namespaces"\nwire = "100 Mbit/s"\n', encoding="utf-8")
    yield file
    there = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert f"rc-{name}-" not in there


def patient() -> Profile:
    """Return the quick profile for a machine with much other work: more attempts at every trial."""
    goal = replace(read_profile("quick").throughput.goal[-1], width=0.2)
    return profile_with(
        trial={"attempts": 10},
        throughput={"goal": (goal,), "base_goal": ""},
        reset={"after": 1.5, "kinds": ("process",)},
    )


def benchmark(
    bed: Path, *procedures: str, dut: str = "linux", stream: Stream | None = None, **options: str
) -> BenchmarkResult:
    rig = BedRig(bed, device=dut, options=options)
    plan = plan_of(patient(), procedures=procedures, streams=[stream] if stream else [])
    result = run_benchmark(plan, rig)
    for trial in trials_of(result):
        # S12 on the wire: every frame that was sent came back or is counted as lost.
        assert trial.offered_frames == (trial.forwarded_frames or 0) + (trial.dropped_frames or 0) + (
            trial.in_flight_frames or 0
        )
        assert trial.duplicated_frames == trial.corrupted_frames == 0
    return result


def trials_of(result: BenchmarkResult) -> list[Trial]:
    return [record.trial for record in result.trials]


def test_a_router_faster_than_its_wire_has_the_wires_rate(bed: Path, undisturbed: Callable[..., Any]) -> None:
    def judge(result: BenchmarkResult) -> None:
        assert result.throughput is not None
        assert result.throughput.rows[0].throughput_pps > 0.0

    result = undisturbed(lambda: benchmark(bed), judge, trials=trials_of, attempts=3)
    assert result.setup.evaluator == "measure"
    assert result.setup.device["name"] == "linux"
    assert result.setup.medium == "Ethernet, 100 Mbit/s (virtual)"
    assert result.throughput is not None
    row = result.throughput.rows[0]
    assert row.theoretical_pps == pytest.approx(LINE_PPS)
    assert row.throughput_pps <= LINE_PPS * (1.0 + 1e-9)
    if result.latency is not None and result.latency.rows[0].outcome == "found":
        latency = result.latency.rows[0]
        assert 0.0 < latency.min_s <= latency.typical_s <= latency.worst_s <= latency.max_s
    if result.reset is not None and result.reset.rows[0].outcome == "found":
        reset = result.reset.rows[0]
        assert reset.reset_s.mean == pytest.approx(reset.lost_frames.mean / reset.rate_pps, rel=0.01)
    assert result.compliance.level == "not compliant"
    json.dumps(result.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    "stream",
    [
        Stream(name="IPv6", protocol="IPv6"),
        Stream(name="256 networks", networks=256),
        Stream(name="both ways", bidirectional=True),
        Stream(name="bursts of 64", burst_frames=64),
        Stream(name="broadcast", modifier=BROADCAST),
    ],
    ids=lambda stream: stream.name,
)
def test_every_kind_of_stream_is_forwarded(bed: Path, stream: Stream, undisturbed: Callable[..., Any]) -> None:
    def judge(result: BenchmarkResult) -> None:
        forwarded = [trial for trial in trials_of(result) if trial.is_valid]
        assert any((trial.forwarded_frames or 0) > 0.5 * (trial.offered_frames or 0) for trial in forwarded)

    result = undisturbed(lambda: benchmark(bed, "throughput", stream=stream), judge, trials=trials_of, attempts=3)
    assert result.throughput is not None
    row = result.throughput.rows[-1]
    # IPv6 needs 84 bytes where IPv4 needs 64 (RFC 8219 sec. 5.1.1).
    assert row.frame_bytes == (84 if stream.protocol == "IPv6" else 64)


@pytest.mark.thorough  # the tester's own tests hold the same of one trial
def test_a_device_slower_than_a_hundredth_of_its_wire_is_benchmarked(
    bed: Path, undisturbed: Callable[..., Any]
) -> None:
    """It takes less than 1 % of the frames at the greatest rate of the tester, and is no port without a device."""
    bed.write_text(bed.read_text(encoding="utf-8").replace("100 Mbit/s", "10 Gbit/s"), encoding="utf-8")

    def judge(result: BenchmarkResult) -> None:
        assert result.throughput is not None
        (row,) = result.throughput.rows
        assert row.outcome == "found"
        assert 0.0 < row.throughput_pps < 0.05 * row.theoretical_pps

    result = undisturbed(lambda: benchmark(bed, "throughput", slowdown="20000"), judge, trials=trials_of, attempts=3)
    assert not any("NAPI" in note for note in result.notes)


def test_filters_are_set_on_the_packet_filter(bed: Path) -> None:
    stream = Stream(name="25 filters", modifier="25 filters")
    if shutil.which("nft") is None:
        pytest.skip("needs nft: apt install nftables")
    result = benchmark(bed, "throughput", dut="nftables", stream=stream)
    # Sec. 11.4: 25 conditions, the last of which accepts: 24 that match nothing.
    assert '"rules": 24' in json.dumps(result.to_json()["setup"])


def test_the_wire_without_the_device_is_measured_beside_the_device(bed: Path, undisturbed: Callable[..., Any]) -> None:
    def judge(result: BenchmarkResult) -> None:
        assert result.throughput is not None
        row = result.throughput.rows[0]
        # A rate that was found has a floor, unless the tester did not reach it over the wire.
        assert 0.0 <= row.floor_loss_ratio < 1.0 or row.floor_reason
        floor = [record for record in result.trials if record.procedure == "floor"]
        assert any(record.trial.is_valid and record.rate_pps == row.throughput_pps for record in floor)

    result = undisturbed(lambda: benchmark(bed, "throughput"), judge, trials=trials_of, attempts=3)
    # The bed of the wire stands beside that of the device: of these two, neither disturbs the other. Beds of other
    # tests work on the same cores, too, and trials rightly name them.
    own = read_testbed(bed).name
    assert not any(f"test bed '{own}" in note for trial in trials_of(result) for note in trial.notes)


def test_a_mix_of_sizes_is_sent_with_its_mean_size(bed: Path, undisturbed: Callable[..., Any]) -> None:
    def run() -> BenchmarkResult:
        plan = plan_of(patient(), procedures=["throughput", "latency"], mixes=["IMIX"])
        return run_benchmark(plan, BedRig(bed, device="linux"))

    def judge(result: BenchmarkResult) -> None:
        sent = [trial for trial in trials_of(result) if trial.is_valid and (trial.offered_frames or 0) > 1000]
        assert sent
        for trial in sent:
            # 7:4:1 of 64, 570 and 1518 bytes; the mean of a thousand drawn sizes is within a tenth of that.
            assert trial.l2_bps / trial.forwarded_pps / 8.0 == pytest.approx((7 * 64 + 4 * 570 + 1518) / 12, rel=0.1)

    result = undisturbed(run, judge, trials=trials_of, attempts=3)
    assert result.throughput is not None
    row = result.throughput.rows[0]
    assert row.stream == "IPv4, IMIX"
    assert 0.0 < row.throughput_pps <= row.theoretical_pps == pytest.approx(WIRE_BPS / (8 * (row.frame_bytes + 20)))
