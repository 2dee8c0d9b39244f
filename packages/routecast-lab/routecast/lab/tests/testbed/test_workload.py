"""Workloads: what a packet takes in a kernel, against what is known of the kernel by other means."""

from __future__ import annotations

import math
import shutil
import struct
import sys
from pathlib import Path

import pytest

from routecast.errors import ModelProblem
from routecast.lab.testbed.workload import Characterisation, WorkloadCase, characterise, kernels, read_kernel, required
from routecast.lab.testbed.workload.answer import fitted_line
from routecast.load.frames import FrameMix

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="kernels are followed with ptrace, which Linux has"
)

FEW = 60_000


def answered(name: str, frames: str | None = None, **more: object) -> Characterisation:
    mix = FrameMix.parse(frames) if frames else None
    case = WorkloadCase(kernel=read_kernel(name), frames=mix, **more)  # type: ignore[arg-type]  # fields by name
    return characterise(case, packets=64, most_instructions=FEW, timed=False)


@pytest.fixture(scope="module")
def crc() -> Characterisation:
    return answered("crc", "64 B")


@pytest.mark.slow
def test_a_checksum_reads_each_byte_of_the_packet_once_and_one_word_of_its_table_for_it(crc: Characterisation) -> None:
    mean = crc.mean
    assert mean.packet_reads == 60.0  # 64 B without the four that are the checksum
    assert mean.packet_writes == 1.0
    # A look into the table for each byte; the rest is what a call and its arguments take.
    assert 60.0 <= mean.other_reads <= 75.0
    # The table of 1 KiB has 16 lines, or 17 if it does not begin with one; then the stack and the packet's places.
    assert 16 <= crc.other_lines <= 24
    assert crc.packet_lines == 2 * min(64, crc.packets + 16)


@pytest.mark.slow
def test_classes_of_instructions_add_up_to_all(crc: Characterisation) -> None:
    for means in (crc.mean, *crc.sizes):
        parts = (means.loads, means.stores, means.updates, means.branches, means.jumps, means.others)
        assert math.fsum(parts) == pytest.approx(means.instructions)
        assert min(parts) >= 0.0


@pytest.mark.slow
def test_larger_caches_never_miss_more_and_the_largest_only_what_was_never_touched_before(
    crc: Characterisation,
) -> None:
    for curve in ("data", "other_data", "instructions"):
        misses = [getattr(miss, curve) for miss in crc.misses]
        assert misses == sorted(misses, reverse=True)
    assert crc.misses[-1].data == pytest.approx(crc.cold_misses)
    # The table stays in a cache of 2 KiB, and nothing else is used again.
    assert next(miss.other_data for miss in crc.misses if miss.cache_bytes == 2048) == 0.0


@pytest.mark.slow
def test_half_of_all_executed_instructions_are_not_more_code_than_nine_tenths(crc: Characterisation) -> None:
    assert 0 < crc.for_90_percent <= crc.for_99_percent <= crc.static_instructions
    # x86-64 instructions have 1 to 15 bytes (Intel SDM vol. 2, sec. 2.3.11).
    assert crc.static_instructions <= crc.code_bytes <= 15 * crc.static_instructions


@pytest.mark.slow
def test_payload_kernels_grow_with_the_packet_and_header_kernels_do_not() -> None:
    crc = answered("crc")
    assert crc.fit.per_byte == pytest.approx(6.5, rel=0.5)
    assert crc.fit.r_squared > 0.999
    assert answered("red").fit.r_squared < 0.5


@pytest.mark.slow
def test_a_trace_that_reaches_its_bound_ends_with_a_packet_and_says_so() -> None:
    answer = answered("md5", "1518 B")
    assert not answer.complete
    assert 0 < answer.packets < 48
    assert len({size.instructions for size in answer.sizes}) == 1


@pytest.mark.slow
def test_fragments_cost_the_same_each() -> None:
    # 20 B of header and up to 556 B in the last fragment, 552 B in the others (RFC 791): 1, 2 and 3 fragments.
    one_fragment, two, three = (answered("frag", f"{size} B").mean for size in (594, 1146, 1518))
    assert two.instructions - one_fragment.instructions == pytest.approx(
        three.instructions - two.instructions, rel=0.15
    )
    assert one_fragment.packet_writes < two.packet_writes < three.packet_writes


@pytest.mark.slow
def test_the_same_case_gives_the_same_counts_again(crc: Characterisation) -> None:
    again = answered("crc", "64 B")
    assert again.mean == crc.mean
    assert again.static_instructions == crc.static_instructions


@pytest.mark.slow
def test_queues_are_full_before_anything_counts_however_many_there_are() -> None:
    # Each packet that comes sends one off: about as much work with 16 queues as with 2048.
    few, many = (answered("drr", "64 B", entries=entries, flows=8 * entries) for entries in (16, 2048))
    assert many.mean.instructions == pytest.approx(few.mean.instructions, rel=0.1)


@pytest.mark.slow
def test_a_longer_routing_table_takes_more_steps_and_touches_more_lines() -> None:
    small, large = (answered("rtr", "64 B", entries=entries) for entries in (64, 65_536))
    assert small.mean.instructions < large.mean.instructions
    assert small.other_lines < large.other_lines


def test_a_line_rate_asks_for_what_the_arithmetic_says(crc: Characterisation) -> None:
    # S1: 10 Gbit/s / (84 B x 8 bit) = 14.88 Mpps; an engine of 1 GHz has time for 67.2 instructions of each.
    (need,) = required(crc, 10e9, [64], frequency_hz=1e9)
    assert need.packets_per_s == pytest.approx(14_880_952.38)
    assert need.budget == pytest.approx(67.2)
    assert need.instructions_per_s == pytest.approx(need.packets_per_s * crc.mean.instructions)
    assert need.processors == math.ceil(need.instructions_per_s / 1e9)
    (faster,) = required(crc, 10e9, [64], frequency_hz=1e9, instructions_per_cycle=2.0)
    assert faster.budget == pytest.approx(2 * 67.2)
    (unknown,) = required(crc, 10e9, [64])
    assert unknown.processors is None


def test_a_line_through_packets_is_that_of_least_squares() -> None:
    # By hand: x 0, 1, 2 and y 1, 2, 6: slope 2.5, intercept 0.5, R^2 = 12.5 / 14.
    fit = fitted_line([(0.0, 1.0), (1.0, 2.0), (2.0, 6.0)])
    assert (fit.per_packet, fit.per_byte) == pytest.approx((0.5, 2.5))
    assert fit.r_squared == pytest.approx(12.5 / 14)
    assert fit.worst_ratio == pytest.approx(0.5)
    alone = fitted_line([(64.0, 10.0), (64.0, 20.0)])
    assert alone.at(1518.0) == 15.0
    assert math.isnan(alone.per_byte)


def test_kernels_say_what_they_stand_for_and_where_they_are_from() -> None:
    groups = [kernel.group for kernel in kernels()]
    assert sum("CommBench, header" in group for group in groups) == 4
    assert sum("CommBench, payload" in group for group in groups) == 4
    for name in ("NpBench, traffic", "NpBench, security", "NpBench, packet"):
        assert sum(name in group for group in groups) >= 2, name
    assert all(kernel.title and kernel.source for kernel in kernels())


def test_an_unknown_kernel_is_refused_with_the_nearest() -> None:
    with pytest.raises(ModelProblem, match="rtr"):
        read_kernel("rtt")


def capture(path: Path, frames: list[bytes], link: int = 1) -> Path:
    """Write a classic capture."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link)
    packets = (struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames)
    path.write_bytes(head + b"".join(packets))
    return path


def udp(payload: bytes) -> bytes:
    """Return a frame with a UDP datagram."""
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 28 + len(payload), 1, 0, 64, 17, 0, 0x0A000001, 0x0A000002)
    return bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 1000, 53, 8 + len(payload), 0) + payload


@pytest.mark.slow
def test_packets_of_a_capture_are_what_is_characterised(tmp_path: Path) -> None:
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    path = capture(tmp_path / "two.pcap", [udp(bytes(100)), arp, udp(bytes(300))])
    answer = answered("crc", capture=path)
    assert [size.frame_bytes for size in answer.sizes] == [146.0, 346.0]
    assert [size.packet_reads for size in answer.sizes] == [142.0, 342.0]
    assert answer.skipped == 1
    assert answer.held == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"GET / HTTP/1.1\r\n\r\n", "neither pcap nor pcapng"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1), "holds no packet"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 113), "link type 113"),
        (struct.pack("<IHHiIIIIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1, 0, 0, 90, 90), "cut off"),
    ],
)
def test_a_capture_that_cannot_be_read_is_refused_with_its_fault(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.pcap"
    path.write_bytes(content)
    with pytest.raises(ModelProblem, match=words):
        answered("crc", capture=path)
    with pytest.raises(ModelProblem, match="No such file"):
        answered("crc", capture=tmp_path / "nowhere.pcap")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind: apt install valgrind")
@pytest.mark.slow
def test_cachegrind_counts_what_the_trace_counts() -> None:
    from routecast.lab.testbed.workload.answer import count_workload

    # A kernel that does the same to every packet, for these are not the same ones.
    case = WorkloadCase(kernel=read_kernel("frag"), frames=FrameMix.parse("64 B"))
    trace = characterise(case, packets=64, timed=False).mean
    counted = count_workload(case)
    # The call itself, its arguments and its result, are not the packet's: some ten instructions.
    assert trace.instructions == pytest.approx(counted.instructions, abs=20)
    assert trace.packet_reads + trace.other_reads == pytest.approx(counted.reads, abs=8)
    assert trace.packet_writes + trace.other_writes == pytest.approx(counted.writes, abs=8)
    assert trace.branches == pytest.approx(counted.branches, abs=4)
    assert 0.0 <= counted.mispredicted < counted.branches
    # What is the same for every packet is a whole number for each: nothing of what the two runs do besides is in it.
    for count in (counted.instructions, counted.reads, counted.writes, counted.branches, counted.jumps):
        assert count == pytest.approx(round(count), abs=0.02)


def test_a_count_is_never_below_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from routecast.lab.testbed import cachegrind
    from routecast.lab.testbed.workload import answer

    events = ("Ir", "Dr", "Dw", "D1mr", "D1mw", "Bc", "Bcm", "Bi", "Bim")
    commands: list[list[str]] = []

    def sums(command: list[str], *options: str) -> dict[str, int]:
        commands.append(command)
        is_busy = len(commands) == 2
        # Of branches that are all foreseen the loop around them may be foreseen once more than without them.
        return dict.fromkeys(events, 10_000 + 4096 * is_busy) | {"Bcm": 300 - 7 * is_busy}

    monkeypatch.setattr(cachegrind, "require_valgrind", lambda: None)
    monkeypatch.setattr(cachegrind, "_event_sums", sums)
    counts = answer.count_workload(WorkloadCase(kernel=read_kernel("frag")))
    assert (counts.instructions, counts.mispredicted) == (2.0, 0.0)
    idle, busy = commands
    assert [len(word) for word in idle] == [len(word) for word in busy]  # the same addresses in both
    assert idle != busy
