"""The five functions of Baldi & Sapio 2018 on their processor: cycles, accesses, rates (sec. 3, 4.2)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from in_process import completed

from routecast.function.catalogue import read_function
from routecast.function.estimate import Estimate, estimate
from routecast.hardware.catalogue import read_hardware

PAPER_GIGA = 1024e6  # the paper counts 1 GHz as 1024 MHz

# Function, direction, cycles and DRAM accesses of a 64-byte packet, Mpps of a core: sec. 3.1.1, 3.1.2, 3.1.3, 3.2.
PRINTED = (
    ("l2_switch", "forward", 213, 1, 17.31),
    ("learning_switch", "forward", 352, 2, 10.47),
    ("mpls_switch", "forward", 224, 1, 16.45),
    ("bng", "access", 717, 6, 5.14),
    ("bng", "core", 274, 1, 13.45),
)


def on_the_papers_processor(
    name: str, direction: str | None = None, *, frame_bytes: int = 64, cores: int = 1, remote_ratio: float = 0.0
) -> Estimate:
    return estimate(
        read_function(name),
        read_hardware("xeon-e5-2690v2"),
        direction=direction,
        frame_bytes=frame_bytes,
        cores=cores,
        remote_ratio=remote_ratio,
        giga=PAPER_GIGA,
    )


@pytest.mark.parametrize(("name", "direction", "cycles", "accesses", "mpps"), PRINTED)
def test_cycles_are_within_6_percent_of_the_papers(
    name: str, direction: str, cycles: int, accesses: int, mpps: float
) -> None:
    result = on_the_papers_processor(name, direction)
    assert result.packet_cycles == pytest.approx(cycles, rel=0.06)
    assert result.dram_accesses == accesses


@pytest.mark.parametrize(("name", "direction", "cycles", "accesses", "mpps"), PRINTED)
def test_the_papers_rates_follow_from_its_cycles_at_its_gigahertz(
    name: str, direction: str, cycles: int, accesses: int, mpps: float
) -> None:
    result = on_the_papers_processor(name, direction)
    # The paper cuts digits off: 16.457 is printed 16.45.
    assert result.frequency_hz / cycles / 1e6 == pytest.approx(mpps, abs=0.01)
    assert result.core_pps * result.packet_cycles == pytest.approx(result.frequency_hz)


@pytest.mark.parametrize(
    ("name", "cycles"),
    # Sec. 2.2 by hand: 36+5+125+5+40; 36+5+125+5+1+10+40.
    [("l2_switch", 211), ("mpls_switch", 222)],
)
def test_the_formulas_of_section_2_2_give_these_cycles(name: str, cycles: int) -> None:
    for frame_bytes in (64, 512, 1518):  # "regardless of the packet size (thanks to DDIO)"
        assert on_the_papers_processor(name, frame_bytes=frame_bytes).packet_cycles == cycles


def test_the_memory_supports_what_the_paper_prints() -> None:
    # Sec. 3.1.1 to 3.1.3: 111.08 Mpps for one access, 55.54 Mpps for two.
    for name, mpps in (("l2_switch", 111.08), ("learning_switch", 55.54), ("mpls_switch", 111.08)):
        result = on_the_papers_processor(name)
        assert result.limit_pps("memory") / 1e6 == pytest.approx(mpps, rel=1e-3)


def test_six_cores_of_a_bng_carry_42_5_mpps_of_78_bytes_by_their_cycles() -> None:
    # Sec. 4.2; both directions alike, so the mean of their cycles counts: 6 times the harmonic mean of the rates.
    result = on_the_papers_processor("bng", frame_bytes=78, cores=6)
    rates = [on_the_papers_processor("bng", item, frame_bytes=78).core_pps for item in ("access", "core")]
    harmonic = 2.0 / sum(1.0 / rate for rate in rates)
    assert result.limit_pps("core") == pytest.approx(6.0 * harmonic)
    assert result.limit_pps("core") / 1e6 == pytest.approx(42.5, rel=0.02)


def test_the_gre_checksum_costs_7_cycles_for_every_2_bytes() -> None:
    at_64 = on_the_papers_processor("bng", "access").packet_cycles
    at_164 = on_the_papers_processor("bng", "access", frame_bytes=164).packet_cycles
    assert at_164 - at_64 == 7 * 50


def test_a_packet_in_the_other_sockets_cache_is_read_through_memory() -> None:
    # Sec. 4.2: 30 + 5 ceil((hdr + data) / 64) cycles and as many accesses, for the share of packets that are remote.
    near = on_the_papers_processor("l2_switch", frame_bytes=1006)
    half = on_the_papers_processor("l2_switch", frame_bytes=1006, remote_ratio=0.5)
    lines = 16  # hdr 30 and payload 988
    assert half.packet_cycles - near.packet_cycles == pytest.approx(0.5 * (30 + 5 * lines - 36))
    assert half.dram_accesses - near.dram_accesses == pytest.approx(0.5 * lines)


def test_a_table_of_288_kilobytes_needs_no_access_and_a_larger_one_does() -> None:
    # Sec. 2.2, point 7: max * HE <= 32 KB + 256 KB.
    function, hardware = read_function("l2_switch"), read_hardware("xeon-e5-2690v2")
    entries = 288 * 1024 // 12
    assert estimate(function, hardware, tables={"mac": entries}).dram_accesses == 0.0
    assert estimate(function, hardware, tables={"mac": entries + 10}).dram_accesses == 1.0


def test_a_hit_in_the_microflow_cache_takes_141_cycles_and_131_with_its_key_alone() -> None:
    # Sec. 4.1.2 says about 140; the size of an entry was chosen with it in sight.
    function, hardware = read_function("microflow_switch"), read_hardware("xeon-e5-2690v2")
    assert estimate(function, hardware).packet_cycles == 141
    (table,) = function.tables
    assert estimate(replace(function, tables=(replace(table, entry_bytes=24),)), hardware).packet_cycles == 131


def test_the_microflow_cache_leaves_the_near_caches_beyond_4608_entries() -> None:
    # Sec. 2.2, point 7: 288 KB of L1 and L2 hold 4608 lines; a hit reads two entries.
    function, hardware = read_function("microflow_switch"), read_hardware("xeon-e5-2690v2")
    assert estimate(function, hardware, tables={"microflow": 4608}).dram_accesses == 0.0
    assert estimate(function, hardware, tables={"microflow": 4609}).dram_accesses == 2.0


def test_a_function_chosen_in_sight_of_a_value_says_so() -> None:
    shown = completed("function", "microflow_switch", "--on", "xeon-e5-2690v2").stdout
    assert "Chosen in sight of what is stated: entries of 64 B" in shown
    assert "not known" in shown


def test_what_a_miss_in_the_microflow_cache_costs_is_not_known() -> None:
    (miss,) = [item for item in read_function("microflow_switch").stated if item.unknown]
    assert (miss.value, miss.unit) == (5.0, "Mpps")
