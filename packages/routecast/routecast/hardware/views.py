"""Tables of a host: levels of the memory, bandwidth, and costs of elementary operations."""

from __future__ import annotations

from collections.abc import Mapping

from routecast.hardware.model import Hardware, MemoryLevel, OperationCost
from routecast.quantity import format_binary_bytes, format_frequency
from routecast.show.tables import Column, Table, percent

__all__ = ["formulas_table", "hardware_table", "levels_table", "probe_tables"]


def levels_table(hardware: Hardware) -> Table:
    """Return the table of the levels, with their sizes and the cost of a line in nanoseconds."""
    separate, hz = hardware.stalls == "separate", hardware.cpu.frequency_hz

    def line(pattern: str) -> Column[MemoryLevel]:
        return Column(pattern, "ns", ".3g", lambda level: 1e9 * level.line_cycles(pattern, hz) / hz)

    return Table.of(
        hardware.levels,
        Column.text("Level", lambda level: level.name),
        Column("Size", getter=lambda level: format_binary_bytes(level.size_bytes)),
        *map(line, () if separate else ("dependent", "batched", "streamed")),
        name="levels",
        title="Levels of the memory",
        caption="The cycles of the operations include all waits of a core; lines in DRAM load the memory."
        if separate
        else "Cost of a line in addition to the cycles of the operations, by the level where it is found.",
    )


def probe_tables(hardware: Hardware) -> tuple[Table, ...]:
    """Return the tables of a probe, without empty ones: levels, bandwidth and operations."""
    facts = hardware.facts
    bandwidth = Table.of(
        [kind for kind in ("read", "write", "copy") if f"{kind}_bytes_per_s" in facts],
        Column.text("", str),
        Column("Rate", "GB/s", ".1f", lambda kind: float(str(facts[f"{kind}_bytes_per_s"])) / 1e9),
        name="bandwidth",
        title="Bandwidth of one core",
    )
    operations = Table.of(
        hardware.operations.items(),
        Column.text("Operation", lambda row: row[0]),
        Column.text("Cycles", lambda row: row[1].cycles.text, wrap=True),
        Column("Misfit", "%", percent, lambda row: row[1].residual_ratio),
        Column("Samples", "", ".0f", lambda row: row[1].samples),
        name="operations",
        title="Elementary operations",
        caption="Core cycles of one execution with its data in L1; misfit: root mean square of the relative residuals.",
    )
    return tuple(table for table in (levels_table(hardware), bandwidth, operations) if table.rows)


def formulas_table(hardware: Hardware) -> Table:
    """Return the table of the operations, with formulas and sources."""
    costs = []
    for name, cost in hardware.operations.items():
        costs.append((name, cost))
        if cost.remote is not None:
            costs.append((f"  remote {name}", cost.remote))
    return Table.of(
        costs,
        Column.text("Operation", lambda row: row[0]),
        Column.text("Cycles, lines of memory, source", lambda row: _cost(row[1])),
        name="operations",
        title="Elementary operations",
        caption="Formulas over the parameters of the operations, sizes in bytes; remote: the frame is in the other "
        "socket's L3.",
    )


def _cost(cost: OperationCost) -> str:
    cycles = cost.cycles.text if cost.factor == 1.0 else f"{cost.factor:.4g} x ({cost.cycles.text})"
    lines = [f"{access.of} lines: {access.lines.text}" for access in cost.accesses]
    fit = f" ({cost.samples} samples, rms {cost.residual_ratio:.1%})" if cost.samples else ""
    return "\n".join([cycles, *lines, f"{cost.source}{fit}"])


def hardware_table(hosts: Mapping[str, Hardware]) -> Table:
    """Return the table of hosts."""
    return Table.of(
        hosts.items(),
        Column.text("Name", lambda row: row[0]),
        Column("Cores", "", ".0f", lambda row: row[1].cpu.cores),
        Column("Clock", getter=lambda row: format_frequency(row[1].cpu.frequency_hz)),
        Column.text("What it is", lambda row: row[1].title),
        name="hardware",
        title="Hardware",
    )
