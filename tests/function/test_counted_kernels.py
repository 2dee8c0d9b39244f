"""Functions made of counted instructions: estimated like all others, at a cost that is assumed and said to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.function.catalogue import read_function
from routecast.function.estimate import estimate
from routecast.hardware.catalogue import read_hardware
from routecast.hardware.formula import Formula
from routecast.hardware.model import OperationCost

KERNELS = ["rtr", "frag", "drr", "tcp", "cast", "zip", "reed", "jpeg", "wfq", "red", "aes", "md5", "crc"]


@pytest.mark.parametrize("name", KERNELS)
def test_counted_kernels_execute_some_instructions_for_every_frame_and_never_fewer_for_a_longer_one(name: str) -> None:
    host = read_hardware("xeon-e5-2690v2")
    counts = []
    for size in (64, 128, 256, 512, 1024, 1280, 1518):
        result = estimate(read_function(name), host, frame_bytes=size)
        (step,) = (item for item in result.operations if item.operation == "instructions")
        assert step.parameters["n"] > 0.0
        # The host says nothing of them, so each takes the cycle that is assumed, and a note says so.
        assert step.cycles == step.parameters["n"]
        assert any("one cycle for each is assumed" in note for note in result.notes)
        counts.append(step.parameters["n"])
    if name != "wfq":  # which compares fewer virtual times for packets whose own is late
        assert counts == sorted(counts)


def test_a_host_that_says_what_instructions_cost_is_believed() -> None:
    host = read_hardware("xeon-e5-2690v2")
    twice = OperationCost(operation="instructions", cycles=Formula("n / 2"), source="a test's own")
    faster = replace(host, operations={**host.operations, "instructions": twice})
    slow, fast = (estimate(read_function("crc"), item, frame_bytes=1518) for item in (host, faster))
    (step,) = (entry for entry in fast.operations if entry.operation == "instructions")
    assert step.cycles == step.parameters["n"] / 2
    assert fast.core_pps > slow.core_pps
    assert not fast.notes


def test_a_longer_routing_table_waits_for_more_lines() -> None:
    host = read_hardware("xeon-e5-2690v2")
    few, many = (estimate(read_function("rtr"), host, tables={"routes": entries}) for entries in (1 << 14, 1 << 20))
    # Counted: 465 and 620 instructions, 8.0 and 16.3 lines; the formulas are fits.
    for result, instructions, lines in ((few, 465, 8.0), (many, 620, 16.3)):
        (step,) = (item for item in result.operations if item.operation == "instructions")
        assert step.parameters["n"] == pytest.approx(instructions, rel=0.02)
        assert sum(step.table_lines_by_level.values()) == pytest.approx(lines, rel=0.02)
