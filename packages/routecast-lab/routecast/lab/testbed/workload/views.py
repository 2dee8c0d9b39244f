"""Tables of ``routecast workload``, and a figure of misses by cache size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from routecast.quantity import format_binary_bytes, format_frequency, format_pps
from routecast.show.figures import Axis, Figure, Line, palette
from routecast.show.tables import Column, Table, percent

if TYPE_CHECKING:
    from routecast.lab.testbed.workload.answer import CachegrindCounts, Characterisation, Misses, Required

__all__ = ["answer_tables", "counted_table", "kernels_table", "miss_figure", "required_table"]

_LABELLED_EVERY = 2

_CLASSES = (
    ("Load", "loads"),
    ("Store", "stores"),
    ("Load and store", "updates"),
    ("Conditional branch", "branches"),
    ("Jump, call, return", "jumps"),
    ("Registers only", "others"),
)


def miss_figure(answer: Characterisation) -> Figure:
    """Return the curve of misses per packet: all data, data without packets, instructions."""
    curves: tuple[tuple[str, Callable[[Misses], float]], ...] = (
        ("Data", lambda miss: miss.data),
        ("Data without packets", lambda miss: miss.other_data),
        ("Instructions", lambda miss: miss.instructions),
    )
    sizes = tuple(float(miss.cache_bytes) for miss in answer.misses)
    ticks = sizes[::_LABELLED_EVERY]
    kernel = answer.case.kernel
    return Figure(
        name=f"workload-{kernel.name}",
        title=f"{kernel.name}: misses per packet by size of the cache",
        caption="Fully associative caches of 64 B lines that replace the least recently used one.",
        x=Axis(title="Cache", scale="log", ticks=ticks, labels=tuple(format_binary_bytes(size) for size in ticks)),
        y=Axis(title="Misses per packet", low=0.0),
        marks=tuple(
            Line(name=name, x=sizes, y=tuple(misses_of(miss) for miss in answer.misses), colour=colour)
            for (name, misses_of), colour in zip(curves, palette(len(curves), ordered=False), strict=True)
        ),
    )


def kernels_table() -> Table:
    """Return the table of kernels."""
    from routecast.lab.testbed.workload import kernels

    return Table.of(
        kernels(),
        Column.text("Name", lambda row: row.name),
        Column.text("What it does", lambda row: row.title),
        Column.text("Group", lambda row: row.group, wide=True),
        Column.text("Table", lambda row: f"{row.entries} {row.table}" if row.table else None),
        name="kernels",
        title="Kernels of network processors",
        caption="CommBench: Wolf & Franklin 2000. NpBench: Lee & John 2003. Each is this package's own program.",
    )


def answer_tables(answer: Characterisation) -> tuple[Table, ...]:
    """Return the tables of work per packet: by frame size, by kind of instruction, code, and misses by cache size."""
    return (_sizes(answer), _mix(answer), _facts(answer), _misses(answer))


def _sizes(answer: Characterisation) -> Table:
    kernel, case = answer.case.kernel, answer.case
    source = f"packets of {case.capture}" if case.capture else f"generated packets, payload of {case.content}"
    fit = answer.fit
    line = f"Instructions = {fit.per_packet:.1f} + {fit.per_byte:.4g} x frame bytes (R² {fit.r_squared:.3f})"
    if math.isnan(fit.r_squared):
        line = f"Instructions = {fit.per_packet:.1f} for frames of any size"
    caption = (
        f"Means per packet over {answer.packets} {source}. Accesses to packets: as they came and as they leave; "
        "others: tables, state, stack. "
    )
    return Table.of(
        answer.sizes,
        Column("Frame", "B", ".0f", lambda row: row.frame_bytes),
        Column("Packets", "", "d", lambda row: row.packets),
        Column("Instructions", "", ".1f", lambda row: row.instructions),
        Column("Per byte", "", ".2f", lambda row: row.instructions / row.frame_bytes),
        Column("Packet reads", "", ".1f", lambda row: row.packet_reads),
        Column("writes", "", ".1f", lambda row: row.packet_writes),
        Column("Other reads", "", ".1f", lambda row: row.other_reads),
        Column("writes", "", ".1f", lambda row: row.other_writes),
        name="sizes",
        title=f"{kernel.name}: {kernel.title}",
        caption=caption + (f"{line}." if not math.isnan(fit.per_byte) else ""),
    )


def _mix(answer: Characterisation) -> Table:
    mean = answer.mean
    return Table.of(
        _CLASSES,
        Column.text("Class", lambda row: row[0]),
        Column("Per packet", "", ".1f", lambda row: getattr(mean, row[1])),
        Column("Share", "%", percent, lambda row: getattr(mean, row[1]) / mean.instructions),
        name="mix",
        title="Instruction mix",
        caption="Each instruction is in one class: a branch or jump that accesses memory is a branch or jump.",
    )


def _facts(answer: Characterisation) -> Table:
    rows: list[tuple[str, str]] = [
        ("Instructions executed at least once", f"{answer.static_instructions} ({answer.code_bytes} B)"),
        ("Instructions that make up 99 % of all", str(answer.for_99_percent)),
        ("Instructions that make up 90 % of all", str(answer.for_90_percent)),
        ("Lines of packets touched", f"{answer.packet_lines} ({format_binary_bytes(64 * answer.packet_lines)})"),
        ("Other lines touched", f"{answer.other_lines} ({format_binary_bytes(64 * answer.other_lines)})"),
    ]
    if answer.tempo is not None:
        rows += [
            ("Time per packet here, at full speed", f"{answer.tempo.ns_per_packet:.1f} ns"),
            ("Cycles per packet here", f"{answer.tempo.cycles_per_packet:.1f}"),
            ("Instructions per cycle here", f"{answer.tempo.instructions_per_cycle:.2f}"),
        ]
    return Table(
        name="facts",
        title="Code, memory and time",
        caption="Lines have 64 B and are those of the whole trace.",
        columns=(Column.text("What"), Column("")),
        rows=tuple(rows),
    )


def _misses(answer: Characterisation) -> Table:
    accesses = answer.data_accesses
    return Table.of(
        [miss for miss in answer.misses if miss.cache_bytes >= 1024],
        Column("Cache", "", format_binary_bytes, lambda row: row.cache_bytes),
        Column("Data", "", ".2f", lambda row: row.data),
        Column("Of accesses", "%", percent, lambda row: row.data / accesses if accesses else None),
        Column("Data without packets", "", ".2f", lambda row: row.other_data),
        Column("Instructions", "", ".2f", lambda row: row.instructions),
        name="misses",
        title="Misses per packet by size of the cache",
        caption="Fully associative, least recently used line replaced, 64 B lines, all sizes from one pass (Mattson et "
        f"al. 1970). {answer.cold_misses:.2f} misses a packet are first touches. Without packets: data caches whose "
        "packets lie in a memory of their own.",
    )


def required_table(needs: Sequence[Required], frequency_hz: float | None, ipc: float) -> Table:
    """Return the table of requirements of a line rate."""
    caption = "Frames back to back, 20 B of preamble and gap each (S1)."
    if frequency_hz is not None:
        caption += f" One processor: {format_frequency(frequency_hz)}, {ipc:g} instructions per cycle."
    return Table.of(
        needs,
        Column("Frame", "B", ".0f", lambda row: row.frame_bytes),
        Column("Packets", "", format_pps, lambda row: row.packets_per_s),
        Column("Instructions", "", ".1f", lambda row: row.instructions),
        Column("Needed", "MIPS", ".0f", lambda row: row.instructions_per_s / 1e6),
        frequency_hz is not None and Column("Time for", "instructions", ".1f", lambda row: row.budget),
        frequency_hz is not None and Column("Processors", "", "d", lambda row: row.processors),
        name="required",
        title=f"Processing that {needs[0].line_bps / 1e9:g} Gbit/s of frames takes",
        caption=caption,
    )


def counted_table(answer: Characterisation, counted: CachegrindCounts) -> Table:
    """Return the counts of cachegrind beside those of the trace."""
    mean = answer.mean
    miss = next((miss.data for miss in answer.misses if miss.cache_bytes == 32_768), None)
    rows = (
        ("Instructions", mean.instructions, counted.instructions),
        ("Reads", mean.packet_reads + mean.other_reads, counted.reads),
        ("Writes", mean.packet_writes + mean.other_writes, counted.writes),
        ("Conditional branches", mean.branches, counted.branches),
        ("of them mispredicted", None, counted.mispredicted),
        ("Indirect jumps mispredicted", None, counted.jumps_mispredicted),
        ("Misses of a data cache of 32 KiB", miss, counted.d1_misses),
    )
    return Table(
        name="counted",
        title="Second opinion: valgrind's cachegrind, per packet",
        caption=f"Over {counted.packets} packets, with the loop around the kernel; its cache has 8 ways, an "
        "instruction that reads and writes a place counts as a read alone, and one that repeats itself "
        "(clearing a table) counts each time.",
        columns=(Column.text("What"), Column("Trace", "", ".2f"), Column("Cachegrind", "", ".2f")),
        rows=rows,
    )
