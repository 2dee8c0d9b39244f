"""The tables of ``routecast workload``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from routecast.quantity import format_binary_bytes, format_frequency, format_pps
from routecast.report.tables import Column, Table, percent

if TYPE_CHECKING:
    from routecast.testbed.workload import Characterisation, Required
    from routecast.testbed.workload.counted import CachegrindCounts

__all__ = ["answer_tables", "counted_table", "kernels_table", "required_table"]

_CLASSES = (
    ("Load", "loads"),
    ("Store", "stores"),
    ("Load and store", "updates"),
    ("Conditional branch", "branches"),
    ("Jump, call, return", "jumps"),
    ("Registers only", "others"),
)


def kernels_table() -> Table:
    """Return which kernels there are."""
    from routecast.testbed.workload import kernels

    return Table(
        name="kernels",
        title="Kernels of network processors",
        caption="CommBench: Wolf & Franklin 2000. NpBench: Lee & John 2003. Each is this package's own program.",
        columns=(
            Column(title="Name", align="left"),
            Column(title="What it does", align="left"),
            Column(title="Group", align="left", wide=True),
            Column(title="Table", align="left"),
        ),
        rows=tuple(
            (one.name, one.title, one.group, f"{one.entries} {one.table}" if one.table else None) for one in kernels()
        ),
    )


def answer_tables(answer: Characterisation) -> tuple[Table, ...]:
    """Return what a packet takes: by size, by kind of instruction, code, and misses by size of the cache."""
    return (_sizes(answer), _mix(answer), _facts(answer), _misses(answer))


def _sizes(answer: Characterisation) -> Table:
    kernel, case = answer.case.kernel, answer.case
    source = f"packets of {case.capture}" if case.capture else f"generated packets, payload of {case.content}"
    fit = answer.fit
    line = f"Instructions = {fit.per_packet:.1f} + {fit.per_byte:.4g} x frame bytes (R² {fit.r_squared:.3f})"
    if fit.r_squared != fit.r_squared:
        line = f"Instructions = {fit.per_packet:.1f} for frames of any size"
    caption = (
        f"Means per packet over {answer.packets} {source}. Accesses to packets: as they came and as they leave; "
        "others: tables, state, stack. "
    )
    return Table(
        name="sizes",
        title=f"{kernel.name}: {kernel.title}",
        caption=caption + (f"{line}." if fit.per_byte == fit.per_byte else ""),
        columns=(
            Column(title="Frame", unit="B", form=".0f"),
            Column(title="Packets", form="d"),
            Column(title="Instructions", form=".1f"),
            Column(title="Per byte", form=".2f"),
            Column(title="Packet reads", form=".1f"),
            Column(title="writes", form=".1f"),
            Column(title="Other reads", form=".1f"),
            Column(title="writes", form=".1f"),
        ),
        rows=tuple(
            (
                one.frame_bytes,
                one.packets,
                one.instructions,
                one.instructions / one.frame_bytes,
                one.packet_reads,
                one.packet_writes,
                one.other_reads,
                one.other_writes,
            )
            for one in answer.sizes
        ),
    )


def _mix(answer: Characterisation) -> Table:
    mean = answer.mean
    return Table(
        name="mix",
        title="Instruction mix",
        caption="Each instruction in one class; those that go elsewhere first.",
        columns=(
            Column(title="Class", align="left"),
            Column(title="Per packet", form=".1f"),
            Column(title="Share", unit="%", form=percent),
        ),
        rows=tuple((title, getattr(mean, name), getattr(mean, name) / mean.instructions) for title, name in _CLASSES),
    )


def _facts(answer: Characterisation) -> Table:
    rows: list[tuple[str, str]] = [
        ("Instructions executed at least once", f"{answer.static_instructions} ({answer.code_bytes} B)"),
        ("Instructions that make up 99 % of all", str(answer.for_99_percent)),
        ("Instructions that make up 90 % of all", str(answer.for_90_percent)),
        (
            "Lines of packets touched",
            f"{answer.packet_lines} ({format_binary_bytes(64 * answer.packet_lines)})",
        ),
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
        columns=(Column(title="What", align="left"), Column(title="")),
        rows=tuple(rows),
    )


def _misses(answer: Characterisation) -> Table:
    return Table(
        name="misses",
        title="Misses per packet by size of the cache",
        caption="Fully associative, least recently used line replaced, 64 B lines, all sizes from one pass (Mattson et "
        f"al. 1970). {answer.cold_misses:.2f} misses a packet are first touches. Without packets: data caches whose "
        "packets lie in a memory of their own.",
        columns=(
            Column(title="Cache", form=format_binary_bytes),
            Column(title="Data", form=".2f"),
            Column(title="Of accesses", unit="%", form=percent),
            Column(title="Data without packets", form=".2f"),
            Column(title="Instructions", form=".2f"),
        ),
        rows=tuple(
            (
                one.cache_bytes,
                one.data,
                one.data / answer.data_accesses if answer.data_accesses else None,
                one.other_data,
                one.instructions,
            )
            for one in answer.misses
            if one.cache_bytes >= 1024
        ),
    )


def required_table(needs: Sequence[Required], frequency_hz: float | None, ipc: float) -> Table:
    """Return what a line rate asks for."""
    caption = "Frames back to back, 20 B of preamble and gap each (S1)."
    if frequency_hz is not None:
        caption += f" One processor: {format_frequency(frequency_hz)}, {ipc:g} instructions per cycle."
    columns = [
        Column(title="Frame", unit="B", form=".0f"),
        Column(title="Packets", form=format_pps),
        Column(title="Instructions", form=".1f"),
        Column(title="Needed", unit="MIPS", form=".0f"),
    ]
    if frequency_hz is not None:
        columns += [
            Column(title="Time for", unit="instructions", form=".1f"),
            Column(title="Processors", form="d"),
        ]
    rows = []
    for one in needs:
        row = (one.frame_bytes, one.packets_per_s, one.instructions, one.instructions_per_s / 1e6)
        rows.append(row if frequency_hz is None else (*row, one.budget, one.processors))
    return Table(
        name="required",
        title=f"Processing that {needs[0].line_bps / 1e9:g} Gbit/s of frames takes",
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
    )


def counted_table(answer: Characterisation, counted: CachegrindCounts) -> Table:
    """Return what cachegrind counts beside what the trace has."""
    mean = answer.mean
    miss = next((one.data for one in answer.misses if one.cache_bytes == 32_768), None)
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
        columns=(
            Column(title="What", align="left"),
            Column(title="Trace", form=".2f"),
            Column(title="Cachegrind", form=".2f"),
        ),
        rows=rows,
    )
