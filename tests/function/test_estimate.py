"""The estimate on a host whose cores wait for lines, against sums by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.function.catalogue import function_names, parse_function, read_function
from routecast.function.estimate import estimate, operations_without_cost
from routecast.function.model import Direction, NetworkFunction
from routecast.hardware.catalogue import read_hardware, shipped_hardware
from routecast.hardware.formula import Formula
from routecast.hardware.model import Hardware, Nic, OperationCost, Pcie, Refinement
from routecast.load.frames import FrameMix
from routecast.load.popularity import Popularity

SWITCH = parse_function("""
name = "switch"
[[table]]
name = "mac"
entries = 1048576
entry = "12 B"
[[direction]]
name = "forward"
[[direction.step]]
operation = "io_mem"
with = { hdr = 30, data = "frame - 30" }
[[direction.step]]
operation = "parse"
with = { b = "payload" }
[[direction.step]]
operation = "ht_lookup"
table = "mac"
with = { N = 1, HE = "mac_entry_bytes", max = "mac_entries" }
[[direction.step]]
operation = "mem_io"
with = { hdr = 30, data = "frame - 30" }
""")


def test_operations_waiting_and_call_add_up(small_host: Hardware) -> None:
    # One flow: its line of the table and the 16 lines of frames stay in L1.
    result = estimate(SWITCH, small_host, popularity=Popularity(flows=1))
    assert result.cycles == 10 + 2 * math.ceil(46 / 8) + 31 + 20
    assert result.call_cycles == 64 / 32 + 1
    assert result.stall_cycles == 0.0
    assert result.core_pps == pytest.approx(1e9 / (73 + 3))


def test_a_line_in_memory_costs_cycles_and_nanoseconds(small_host: Hardware) -> None:
    # 2^20 lines of a table, all alike, under a cache of 1024 lines: nearly every lookup waits 100 cycles + 20 ns.
    result = estimate(SWITCH, small_host)
    lookup = result.operations[2]
    in_memory = lookup.table_lines_by_level["DRAM"]
    assert in_memory == pytest.approx(1.0, abs=0.002)
    assert lookup.stall_cycles == pytest.approx(in_memory * (100 + 20e-9 * 1e9), rel=1e-3)  # all but all lines
    assert lookup.table_stall_cycles == lookup.stall_cycles
    twice = replace(small_host, cpu=replace(small_host.cpu, frequency_hz=2e9))
    assert estimate(SWITCH, twice).operations[2].stall_cycles == pytest.approx(
        in_memory * (100 + 20e-9 * 2e9), rel=1e-3
    )


def test_frames_wait_where_the_ring_is_larger_than_the_cache(small_host: Hardware) -> None:
    item = Popularity(flows=1)
    assert estimate(SWITCH, small_host, popularity=item).operations[0].stall_cycles == 0.0
    many = replace(small_host, frames_in_flight=4096)
    assert estimate(SWITCH, many, popularity=item).operations[0].stall_cycles == pytest.approx(120.0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(flows=st.integers(1, 10**7), more=st.integers(2, 100))
def test_more_flows_never_make_it_cheaper(small_host: Hardware, flows: int, more: int) -> None:
    few = estimate(SWITCH, small_host, popularity=Popularity(flows=flows))
    many = estimate(SWITCH, small_host, popularity=Popularity(flows=flows * more))
    assert many.packet_cycles >= few.packet_cycles * (1.0 - 1e-9)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=st.integers(1, 2**22), more=st.integers(2, 8))
def test_a_larger_table_never_makes_it_cheaper(small_host: Hardware, entries: int, more: int) -> None:
    host = replace(small_host, memory_bytes=math.inf)
    small = estimate(SWITCH, host, tables={"mac": entries})
    large = estimate(SWITCH, host, tables={"mac": entries * more})
    assert large.packet_cycles >= small.packet_cycles * (1.0 - 1e-9)


@pytest.mark.parametrize("traffic", ["1 flow", "10 flows", "uniform", "zipf 1.1", "100k zipf 0.9"])
def test_every_line_is_found_somewhere(small_host: Hardware, traffic: str) -> None:
    result = estimate(SWITCH, small_host, popularity=Popularity.parse(traffic))
    assert sum(result.operations[2].table_lines_by_level.values()) == pytest.approx(1.0)
    assert sum(result.operations[0].lines_by_level.values()) == pytest.approx(1.0)


def test_a_mix_costs_the_mean_of_its_sizes(small_host: Hardware) -> None:
    def cycles(frames: int | FrameMix) -> float:
        return estimate(SWITCH, small_host, frame_bytes=frames).cycles

    assert cycles(FrameMix.imix()) == pytest.approx((7 * cycles(64) + 4 * cycles(570) + cycles(1518)) / 12)


def test_directions_count_by_their_shares(small_host: Hardware) -> None:
    (forward,) = SWITCH.directions
    short = Direction(name="back", steps=forward.steps[:2], share=3.0)
    both = replace(SWITCH, directions=(forward, short))
    result = estimate(both, small_host, popularity=Popularity(flows=1))
    assert result.cycles == pytest.approx(0.25 * 73 + 0.75 * 22)
    assert estimate(both, small_host, direction="back", popularity=Popularity(flows=1)).cycles == 22


def test_a_direction_computes_at_least_its_smallest_frame(small_host: Hardware) -> None:
    (forward,) = SWITCH.directions
    tunnel = replace(SWITCH, directions=(replace(forward, smallest_frame_bytes=100),))
    small, fitting = (estimate(tunnel, small_host, frame_bytes=size) for size in (64, 100))
    assert small.cycles == fitting.cycles
    assert "100 B are assumed" in small.notes[0]
    assert not fitting.notes


def test_the_range_follows_from_the_residuals(small_host: Hardware) -> None:
    # Relative deviations of 10 % of 10, 12, 31 and 20 cycles, independent: 1.96 sqrt(1 + 1.44 + 9.61 + 4).
    result = estimate(SWITCH, small_host, popularity=Popularity(flows=1))
    half = 1.959964 * math.sqrt(1.0**2 + 1.2**2 + 3.1**2 + 2.0**2)
    assert result.cycles_range == pytest.approx((76 - half, 76 + half))
    unknown = {name: replace(item, residual_ratio=math.nan) for name, item in small_host.operations.items()}
    blind = estimate(SWITCH, replace(small_host, operations=unknown))
    assert all(math.isnan(bound) for bound in (*blind.cycles_range, *blind.range_pps))


def test_what_measured_functions_taught_changes_the_sum(small_host: Hardware) -> None:
    plain = estimate(SWITCH, small_host)
    operations = dict(small_host.operations)
    operations["ht_lookup"] = replace(operations["ht_lookup"], factor=1.5)
    learnt = replace(
        small_host,
        operations=operations,
        refinement=Refinement(levels={"DRAM": 0.5}, functions={"switch/forward": (2.0, 3.0)}),
    )
    result = estimate(SWITCH, learnt)
    assert result.cycles == pytest.approx(2.0 * (73 + 0.5 * 31))
    assert result.stall_cycles == pytest.approx(plain.stall_cycles * 0.5 * 3.0)


def test_stations_are_sources_and_destinations(small_host: Hardware) -> None:
    lookup = 'operation = "{}"\ntable = "mac"\nwith = {{ N = 1, HE = 12, max = "mac_entries" }}\n'
    steps = "".join("[[direction.step]]\n" + lookup.format(item) for item in ("ht_lookup", "ct_insertion"))
    table = '[[table]]\nname = "mac"\nentries = 1048576\nentry = "12 B"\n'
    learning = parse_function('name = "learning"\n' + table + '[[direction]]\nname = "forward"\n' + steps)
    fitting = estimate(learning, small_host, popularity=Popularity(flows=1000))
    many = estimate(learning, small_host, popularity=Popularity(flows=8000))
    assert fitting.stall_cycles == pytest.approx(0.0, abs=1e-6)  # 1000 lines in a cache of 1024
    assert many.stall_cycles > 2 * 120 * 0.8  # 8000 lines, of which 1024 stay


def test_the_default_flows_are_the_entries_of_the_functions_table(small_host: Hardware) -> None:
    named = replace(SWITCH, flows_of="mac")
    for entries in (500, 5000):
        sizes = {"mac": entries}
        expected = estimate(SWITCH, small_host, tables=sizes, popularity=Popularity(flows=entries))
        assert estimate(named, small_host, tables=sizes).packet_cycles == pytest.approx(expected.packet_cycles)


def test_the_tightest_limit_binds(small_host: Hardware) -> None:
    # A port of 1 Gbit/s carries 1e9 / (84 · 8) frames of 64 B; PCIe 1.0 x1 has 250 MB/s for 60 + 24 + 16 + 24 bytes.
    card = Nic(name="card", ports=1, link_bps=1e9, cap_pps=1.2e6, pcie=Pcie(generation=1, lanes=1))
    host = replace(small_host, nics=(card,))
    result = estimate(SWITCH, host, cores=4)
    assert result.limit_pps("link") == pytest.approx(1e9 / (84 * 8))
    assert result.limit_pps("pcie") == pytest.approx(250e6 / (60 + 24 + 16 + 24))
    assert result.limit_pps("core") == pytest.approx(4 * result.core_pps)
    assert result.bottleneck.resource == "nic"
    assert result.pps == 1.2e6
    assert [limit.pps for limit in result.limits] == sorted(item.pps for item in result.limits)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cores": 5}, "cores: got 5"),
        ({"cores": 0}, "cores: got 0"),
        ({"remote_ratio": 1.5}, "remote_ratio: got 1.5"),
        ({"remote_ratio": 0.5}, "one socket"),
        ({"giga": 0.0}, "giga: got 0"),
        ({"direction": "forwrad"}, 'did you mean "forward"'),
        ({"tables": {"mack": 5}}, 'did you mean "mac"'),
        ({"tables": {"mac": 0}}, "at least 1"),
        ({"tables": {"mac": 2**30}}, r"table\[0\].entries: table mac takes 64 GiB"),
        ({"frame_bytes": 63}, "64 to 65535"),
    ],
)
def test_what_cannot_be_estimated_is_refused(small_host: Hardware, change: dict[str, object], words: str) -> None:
    with pytest.raises(ModelProblem, match=words):
        estimate(SWITCH, small_host, **change)  # type: ignore[arg-type]  # each case changes another argument


def test_an_operation_without_a_cost_is_named_with_its_place(small_host: Hardware) -> None:
    with pytest.raises(ModelProblem, match=r"direction\[0\].step\[2\].operation: small gives no cost of .*lpm_lookup"):
        estimate(
            parse_function(
                'name = "r"\n[[direction]]\nname = "f"\n'
                + '[[direction.step]]\noperation = "parse"\nwith = { b = 4 }\n' * 2
                + '[[direction.step]]\noperation = "lpm_lookup"\nwith = { b = 3, es = 2 }\n'
            ),
            small_host,
        )


def test_a_clock_of_zero_and_no_operations_are_refused(small_host: Hardware) -> None:
    stopped = replace(small_host, cpu=replace(small_host.cpu, frequency_hz=0.0))
    with pytest.raises(ModelProblem, match=r"cpu.frequency: got 0"):
        estimate(SWITCH, stopped)
    for empty in ((), (Direction(name="forward", steps=()),)):
        with pytest.raises(ModelProblem, match="no operations"):
            estimate(NetworkFunction(name="empty", title="", directions=empty), small_host)


@pytest.mark.parametrize(("formula", "words"), [("1 / (b - 6)", "divides by zero"), ("q", "needs a value of q")])
def test_a_bad_formula_of_the_host_is_named_with_its_place(small_host: Hardware, formula: str, words: str) -> None:
    bad = OperationCost(operation="parse", cycles=Formula(formula), source="")
    host = replace(small_host, operations={**small_host.operations, "parse": bad})
    function = parse_function(
        'name = "p"\n[[direction]]\nname = "f"\n[[direction.step]]\noperation = "parse"\nwith = { b = 6 }\n'
    )
    with pytest.raises(ModelProblem, match=rf"operation.parse.cycles.*{words}"):
        estimate(function, host)


@pytest.mark.parametrize("host", shipped_hardware())
def test_every_shipped_function_is_estimated_on_every_shipped_host_or_says_which_cost_is_missing(host: str) -> None:
    hardware = read_hardware(host)
    for function in map(read_function, function_names()):
        missing = operations_without_cost(function, hardware)
        for size in (64, 594, 1518):
            if missing:
                with pytest.raises(
                    ModelProblem, match=f'{host} gives no cost of "{missing[0]}": add it to the hardware'
                ):
                    estimate(function, hardware, frame_bytes=size)
                continue
            result = estimate(function, hardware, frame_bytes=size, cores=hardware.cpu.cores)
            assert 0.0 < result.pps <= result.limit_pps("core")
            assert result.to_json()["machine_pps"] == result.pps


@pytest.mark.parametrize("host", shipped_hardware())
def test_every_shipped_host_states_all_costs_of_a_router(host: str) -> None:
    assert not operations_without_cost(read_function("ipv4_router"), read_hardware(host), assumed=False)


def test_a_cost_that_is_assumed_is_none_that_the_host_states() -> None:
    counted, xeon = read_function("aes"), read_hardware("xeon-e5-2690v2")
    assert operations_without_cost(counted, xeon) == ()
    assert operations_without_cost(counted, xeon, assumed=False) == ("instructions",)
