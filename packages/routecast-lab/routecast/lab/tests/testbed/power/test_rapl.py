"""RAPL on recorded trees: which zones add up, what a wrap is, what happens when a zone goes away."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from power_fakes import Clock
from rapl_trees import (
    AMD,
    AMD_RANGE_UJ,
    CLIENT,
    CLIENT_MMIO,
    DRAM_RANGE_UJ,
    INTEL_RANGE_UJ,
    SERVER,
    Tree,
    advance,
    write_tree,
)

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.lab.testbed.meters import Metering, PowerMeter, PowerReading, RaplSource, SampledMeter, find_meters
from routecast.lab.testbed.meters._rapl import energy_step_uj, rapl_zones, read_text, wrapped_difference

RANGES = st.sampled_from([INTEL_RANGE_UJ, DRAM_RANGE_UJ, AMD_RANGE_UJ])
UNIT = {INTEL_RANGE_UJ: 61_035, DRAM_RANGE_UJ: 15_300, AMD_RANGE_UJ: 15_258}
"""Energy units as the driver keeps them, in nJ."""


def shown_uj(counts: int, unit: int) -> int:
    """Return energy_uj of a 32-bit counter, as rapl_unit_xlate() of intel_rapl_common.c computes it."""
    return (counts % 2**32) * unit // 1000


def meter(root: Path, clock: Clock, covers: str = "package") -> SampledMeter:
    return SampledMeter(RaplSource(root, covers=covers), interval_s=math.inf, clock=clock)


def after(root: Path, energy_uj: dict[str, int], time_s: float = 10.0, covers: str = "package") -> PowerReading:
    """Meter a machine whose counters rise by ``energy_uj``."""
    clock = Clock()
    with Metering(meter(root, clock, covers)) as metered:
        clock.wait(time_s)
        advance(root, energy_uj)
    return metered.reading


@pytest.mark.parametrize("range_uj", UNIT)
def test_the_range_of_a_counter_tells_its_step(range_uj: int) -> None:
    assert range_uj == (2**32 - 1) * UNIT[range_uj] // 1000
    assert energy_step_uj(range_uj) == pytest.approx(UNIT[range_uj] / 1000, rel=1e-9)


@given(RANGES, st.integers(0, 2**34), st.integers(0, 2**32 - 1))
def test_two_readings_with_at_most_one_wrap_between_them_give_the_energy(range_uj: int, start: int, more: int) -> None:
    unit = UNIT[range_uj]
    result = wrapped_difference(shown_uj(start, unit), shown_uj(start + more, unit), range_uj)
    # Each reading is cut to whole microjoules, and so is the range that the step is taken from. A full turn and none
    # look alike, so that the difference may be one turn off where it is within that of one.
    turn = range_uj + energy_step_uj(range_uj)
    off = (result - more * unit / 1000 + turn / 2) % turn - turn / 2
    assert abs(off) <= 2.0
    assert 0.0 <= result < turn


@given(RANGES, st.integers(0, 2**32 - 1), st.lists(st.integers(10_000, 2**32 - 10_000), min_size=1, max_size=40))
def test_the_differences_of_many_samples_sum_up_to_the_energy_over_any_number_of_wraps(
    range_uj: int, start: int, steps: list[int]
) -> None:
    unit, counts, total = UNIT[range_uj], start, 0.0
    for step in steps:
        total += wrapped_difference(shown_uj(counts, unit), shown_uj(counts + step, unit), range_uj)
        counts += step
    assert total == pytest.approx(sum(steps) * unit / 1000, abs=2.0 * len(steps))


@pytest.mark.parametrize(
    ("tree", "scopes"),
    [
        (CLIENT, ["rapl:package", "rapl:core", "rapl:uncore", "rapl:psys"]),
        (CLIENT_MMIO, ["rapl:package", "rapl:core", "rapl:uncore", "rapl:psys"]),
        (SERVER, ["rapl:package", "rapl:dram", "rapl:package", "rapl:dram"]),
        (AMD, ["rapl:package", "rapl:core"]),
    ],
    ids=["client", "client with mmio", "server", "AMD"],
)
def test_every_zone_is_found_once_with_its_scope(tmp_path: Path, tree: Tree, scopes: list[str]) -> None:
    assert [zone.scope for zone in rapl_zones(write_tree(tmp_path, tree))] == scopes


def test_memory_mapped_zones_count_where_there_are_no_others(tmp_path: Path) -> None:
    tree = {"intel-rapl-mmio:0": ("package-0", INTEL_RANGE_UJ)}
    assert [zone.name for zone in rapl_zones(write_tree(tmp_path, tree))] == ["package-0"]


def test_zones_within_a_package_are_reported_and_not_added(tmp_path: Path) -> None:
    # 10 s: the package draws 30 W, of which cores 20 W and graphics 5 W; the platform 45 W.
    moved = {
        "intel-rapl:0": 300_000_000,
        "intel-rapl:0:0": 200_000_000,
        "intel-rapl:0:1": 50_000_000,
        "intel-rapl:1": 450_000_000,
    }
    reading = after(write_tree(tmp_path, CLIENT), moved)
    assert (reading.scope, reading.mean_w, reading.energy_j) == ("rapl:package", 30.0, 300.0)
    assert {zone.name: zone.mean_w for zone in reading.zones} == {
        "package-0": 30.0,
        "package-0/core": 20.0,
        "package-0/uncore": 5.0,
        "psys": 45.0,
    }
    assert [zone.name for zone in reading.zones if zone.is_counted] == ["package-0"]


def test_the_memory_mapped_duplicate_adds_nothing(tmp_path: Path) -> None:
    moved = {"intel-rapl:0": 300_000_000, "intel-rapl-mmio:0": 300_000_000}
    assert after(write_tree(tmp_path, CLIENT_MMIO), moved).mean_w == 30.0


def test_the_platform_is_printed_on_request(tmp_path: Path) -> None:
    moved = {"intel-rapl:0": 300_000_000, "intel-rapl:1": 450_000_000}
    reading = after(write_tree(tmp_path, CLIENT), moved, covers="psys")
    assert (reading.meter, reading.scope, reading.mean_w) == ("rapl:psys", "rapl:psys", 45.0)


@pytest.mark.parametrize(("covers", "mean_w"), [("package", 190.0), ("dram", 30.0), ("package+dram", 220.0)])
def test_sockets_add_up_and_memory_is_added_only_on_request(tmp_path: Path, covers: str, mean_w: float) -> None:
    moved = {
        "intel-rapl:0": 1_000_000_000,
        "intel-rapl:0:0": 200_000_000,
        "intel-rapl:1": 900_000_000,
        "intel-rapl:1:0": 100_000_000,
    }
    reading = after(write_tree(tmp_path, SERVER), moved, covers=covers)
    assert reading.mean_w == pytest.approx(mean_w)
    assert reading.energy_j == pytest.approx(10.0 * mean_w)
    assert reading.scope == f"rapl:{covers}"


def test_a_counter_that_wraps_in_one_socket_changes_nothing(tmp_path: Path) -> None:
    root = write_tree(tmp_path, AMD, {"intel-rapl:0": AMD_RANGE_UJ - 1_000_000})
    reading = after(root, {"intel-rapl:0": 650_000_000})
    assert int((root / "sys/class/powercap/intel-rapl:0/energy_uj").read_text()) < 650_000_000
    assert reading.mean_w == pytest.approx(65.0, abs=1e-4)
    assert reading.quantum_w == pytest.approx(15.258e-6 / 10.0, rel=1e-4)


def test_sampling_on_the_way_follows_more_wraps_than_one(tmp_path: Path) -> None:
    root, clock = write_tree(tmp_path, AMD), Clock()
    rapl = meter(root, clock)
    with Metering(rapl) as metered:
        for _ in range(5):  # 200 s at 300 W are 60 kJ, 92 % of the range
            clock.wait(200.0)
            advance(root, {"intel-rapl:0": 60_000_000_000})
            rapl.sample()
    reading = metered.reading
    assert reading.energy_j == pytest.approx(300_000.0, rel=1e-6)  # 4.6 ranges
    assert (reading.metered_s, reading.samples) == (1000.0, 6)


def test_a_zone_that_vanishes_ends_the_figures_and_says_so(tmp_path: Path) -> None:
    root, clock = write_tree(tmp_path, SERVER), Clock()
    rapl = meter(root, clock)
    with Metering(rapl) as metered:
        clock.wait(4.0)
        advance(root, {"intel-rapl:0": 400_000_000, "intel-rapl:1": 200_000_000})
        rapl.sample()
        (root / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
        clock.wait(6.0)
        advance(root, {"intel-rapl:0": 600_000_000})
    reading = metered.reading
    assert (reading.metered_s, reading.interval_s, reading.is_partial) == (4.0, 10.0, True)
    assert reading.mean_w == 150.0
    assert any("package-1 could not be read any more 4 s after" in note for note in reading.notes)


def test_a_part_of_an_interval_has_the_energy_of_that_part(tmp_path: Path) -> None:
    root, clock = write_tree(tmp_path, AMD), Clock(0.0)
    rapl = meter(root, clock)
    with Metering(rapl) as metered:
        for watts in (10, 50, 20):
            clock.wait(1.0)
            advance(root, {"intel-rapl:0": watts * 1_000_000})
            rapl.sample()
    part = metered.reading.between(0.5, 2.5)
    assert part.energy_j == pytest.approx(0.5 * 10 + 50 + 0.5 * 20)
    assert (part.mean_w, part.min_w, part.max_w) == pytest.approx((32.5, 10.0, 50.0))
    assert not part.is_partial
    assert metered.reading.between(2.0, 6.0).is_partial


def test_a_counter_that_stands_still_is_reported(tmp_path: Path) -> None:
    reading = after(write_tree(tmp_path, AMD), {})
    assert reading.mean_w == 0.0
    assert any("does not change" in note for note in reading.notes)


def test_a_counter_that_is_started_anew_is_suspicious(tmp_path: Path) -> None:
    root, clock = write_tree(tmp_path, AMD, {"intel-rapl:0": 20_000_000_000}), Clock()
    with Metering(meter(root, clock)) as metered:
        clock.wait(0.1)
        (root / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("0\n")  # 20 kJ of 65.5 kJ are gone
    assert any("rose by 69% of its range" in note for note in metered.reading.notes)


def denied(is_denied: Callable[[Path], bool]) -> Callable[[Path], str]:
    def read(path: Path) -> str:
        if is_denied(path):
            raise PermissionError(13, "Permission denied", str(path))
        return read_text(path)

    return read


def test_counters_for_root_only_come_with_the_recipe(tmp_path: Path) -> None:
    root = write_tree(tmp_path, AMD)
    source = RaplSource(root, read=denied(lambda path: path.name == "energy_uj"))
    with pytest.raises(EnvironmentProblem, match="CVE-2020-8694") as caught:
        source.open()
    assert "systemd-tmpfiles --create" in str(caught.value)
    assert "0440 root power" in str(caught.value)  # a group, not everybody


def test_a_platform_zone_that_may_not_be_read_does_not_hide_the_package(tmp_path: Path) -> None:
    root = write_tree(tmp_path, CLIENT)
    read = denied(lambda path: path.name == "energy_uj" and path.parent.name == "intel-rapl:1")
    clock = Clock()
    with Metering(SampledMeter(RaplSource(root, read=read), interval_s=math.inf, clock=clock)) as metered:
        clock.wait(1.0)
        advance(root, {"intel-rapl:0": 7_000_000})
    assert metered.reading.mean_w == 7.0
    assert any("cannot be read: psys" in note for note in metered.reading.notes)


def test_a_scope_that_the_processor_lacks_is_refused_with_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"no zone rapl:dram; there are: rapl:core, rapl:package"):
        RaplSource(write_tree(tmp_path, AMD), covers="dram").open()
    with pytest.raises(FileProblem, match="allowed are rapl:package"):
        RaplSource(tmp_path, covers="gpu")


def test_what_cannot_be_read_of_a_tree_is_reported_and_what_the_sum_lacks(tmp_path: Path) -> None:
    root = write_tree(tmp_path, SERVER)
    powercap = root / "sys/class/powercap"
    (powercap / "intel-rapl:1/max_energy_range_uj").write_text("nonsense\n")
    (powercap / "intel-rapl:0:0/energy_uj").write_text("\n")
    clock = Clock()
    with Metering(meter(root, clock)) as metered:
        clock.wait(1.0)
        advance(root, {"intel-rapl:0": 5_000_000})
    assert [zone.name for zone in metered.reading.zones if zone.is_counted] == ["package-0"]
    assert metered.reading.mean_w == 5.0
    lacks = "cannot be read: package-0/dram, package-1 (the sum lacks it)"
    assert any(lacks in note for note in metered.reading.notes)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"proc/cpuinfo": "flags\t\t: fpu hypervisor sse\n"}, "this is a virtual machine"),
        ({".dockerenv": ""}, "this is a container"),
        ({"proc/cpuinfo": "flags\t\t: fpu sse\n"}, "modprobe intel_rapl_msr"),
        ({"sys/class/powercap/dtpm/enabled": "0"}, "powercap has no RAPL zone"),
    ],
)
def test_a_machine_without_zones_says_why(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    result = find_meters(tmp_path)[0]
    assert (result.name, result.is_readable) == ("rapl", False)
    assert words in result.why_not


def test_the_background_thread_samples_until_the_end(tmp_path: Path) -> None:
    source = RaplSource(write_tree(tmp_path, AMD))
    rapl = SampledMeter(source, interval_s=0.001)
    assert isinstance(rapl, PowerMeter)
    rapl.start()
    with pytest.raises(EnvironmentProblem, match="runs already"):
        rapl.start()
    while len(rapl._samples) < 4:
        pass
    reading = rapl.stop()
    assert reading.samples >= 4
    assert not rapl._thread.is_running
