"""Costs of operations, corrected by measured functions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from routecast.errors import FitProblem
from routecast.function.catalogue import read_function
from routecast.function.estimate import estimate
from routecast.hardware.catalogue import read_hardware, write_hardware
from routecast.hardware.formula import Formula
from routecast.hardware.model import Access, Cpu, Hardware, MeasuredFunction, MemoryLevel, OperationCost
from routecast.lab.study.refine import refine, unrefined

SMALL, LARGE = {"mac": 1024}, {"mac": 16_777_216}


def host(lookup_factor: float = 1.0, dram_factor: float = 1.0) -> Hardware:
    lines = (Access(of="table", lines=Formula.constant(1.0), table_lines=Formula("max/2")),)
    costs = {name: OperationCost(operation=name, cycles=Formula("5"), source="a toy") for name in ("io_mem", "mem_io")}
    costs |= {name: OperationCost(operation=name, cycles=Formula("1"), source="a toy") for name in ("parse", "deparse")}
    costs["ht_lookup"] = OperationCost(
        operation="ht_lookup",
        cycles=Formula("20"),
        accesses=lines,
        factor=lookup_factor,
        residual_ratio=0.3,
        source="a toy",
    )
    return Hardware(
        name="toy",
        title="A toy",
        cpu=Cpu(name="toy", sockets=1, cores_per_socket=1, frequency_hz=1e9),
        levels=(
            MemoryLevel(name="L1", size_bytes=65536.0),
            MemoryLevel(name="DRAM", batched_cycles=50.0 * dram_factor),
        ),
        operations=costs,
        stalls="added",
        source="made up for a test",
    )


def measured(truth: Hardware, tables: dict[str, int]) -> MeasuredFunction:
    cycles = estimate(read_function("l2_switch"), truth, direction="forward", tables=tables).packet_cycles
    return MeasuredFunction(
        function="l2_switch", direction="forward", frame_bytes=64, traffic="uniform", tables=tables, cycles=cycles
    )


def test_measurements_that_agree_with_the_estimate_change_nothing() -> None:
    plain = host()
    refined = refine(plain, [measured(plain, SMALL), measured(plain, LARGE)])
    assert refined.after_ratio == pytest.approx((0.0, 0.0), abs=1e-9)
    assert refined.hardware.operations["ht_lookup"].factor == pytest.approx(1.0)


def test_two_measurements_correct_operations_and_memory() -> None:
    truth = host(lookup_factor=1.5, dram_factor=0.7)
    refined = refine(host(), [measured(truth, SMALL), measured(truth, LARGE)])
    assert max(abs(error) for error in refined.before_ratio) > 0.2
    assert max(abs(error) for error in refined.after_ratio) < 0.03


def test_a_function_that_was_never_measured_gains_from_one_that_was() -> None:
    truth = host(lookup_factor=1.5)
    refined = refine(host(), [measured(truth, SMALL)]).hardware
    others = ("decrease", "check", "assemble")
    costs = {name: OperationCost(operation=name, cycles=Formula("1"), source="a toy") for name in others}

    def cycles(hardware: Hardware) -> float:
        with_others = replace(hardware, operations={**hardware.operations, **costs})
        return estimate(read_function("mpls_switch"), with_others, tables={"label": 1024}).packet_cycles

    before, after, true = cycles(host()), cycles(refined), cycles(truth)
    assert abs(after - true) < 0.7 * abs(before - true)


def test_refining_again_counts_what_was_measured_before(tmp_path: Path) -> None:
    truth = host(lookup_factor=1.5, dram_factor=0.7)
    once = refine(host(), [measured(truth, SMALL)]).hardware
    write_hardware(once, tmp_path / "toy.hardware.toml")
    read = read_hardware(str(tmp_path / "toy.hardware.toml"))
    assert read.refinement == once.refinement
    twice = refine(read, [measured(truth, LARGE)]).hardware
    together = refine(host(), [measured(truth, SMALL), measured(truth, LARGE)]).hardware
    assert twice.operations["ht_lookup"].factor == pytest.approx(together.operations["ht_lookup"].factor, rel=1e-6)
    assert len(twice.refinement.measured) == 2


def test_forgetting_gives_the_probe_back() -> None:
    truth = host(lookup_factor=1.5)
    assert unrefined(refine(host(), [measured(truth, SMALL)]).hardware) == host()


def test_what_cannot_be_refined_is_refused() -> None:
    item = measured(host(), SMALL)
    with pytest.raises(FitProblem, match="no measured function"):
        refine(host(), [])
    with pytest.raises(FitProblem, match="finite number > 0"):
        refine(host(), [replace(item, cycles=0.0)])
    with pytest.raises(FitProblem, match="hardware probe"):
        refine(read_hardware("xeon-e5-2690v2"), [item])
