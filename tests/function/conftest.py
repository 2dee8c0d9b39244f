"""A small host whose numbers can be added up by hand."""

from __future__ import annotations

import pytest

from routecast.hardware.formula import Formula
from routecast.hardware.model import Access, CallCost, Cpu, Hardware, MemoryLevel, OperationCost


def cost(operation: str, cycles: str, *accesses: Access, residual_ratio: float = 0.1) -> OperationCost:
    return OperationCost(
        operation=operation,
        cycles=Formula(cycles),
        accesses=accesses,
        residual_ratio=residual_ratio,
        samples=9,
        source="by hand",
    )


@pytest.fixture
def small_host() -> Hardware:
    """A core of 1 GHz that waits for lines: L1 of 64 KiB, then DRAM at 100 cycles and 20 ns a line."""
    table = Access(of="table", lines=Formula("1"), table_lines=Formula("max"))
    frame = Access(of="frame", lines=Formula("ceil(hdr / 64)"))
    return Hardware(
        name="small",
        title="by hand",
        cpu=Cpu(name="small", sockets=1, cores_per_socket=4, frequency_hz=1e9),
        levels=(
            MemoryLevel(name="L1", size_bytes=64 * 1024),
            MemoryLevel(name="DRAM", batched_cycles=100.0, batched_s=20e-9),
        ),
        operations={
            item.operation: item
            for item in (
                cost("io_mem", "10", frame),
                cost("mem_io", "20"),
                cost("parse", "2 * ceil(b / 8)"),
                cost("ht_lookup", "30 + N", table),
                cost("ct_insertion", "40", table, residual_ratio=0.2),
            )
        },
        stalls="added",
        call=CallCost(per_batch_cycles=64.0, per_packet_cycles=1.0, batch_frames=32),
        memory_bytes=2.0**30,
        frames_in_flight=16,
        source="by hand",
    )
