"""The levels of a host's memory as a table, for ``hardware show`` and ``hardware probe``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routecast.hardware.model import Hardware, MemoryLevel
    from routecast.report.tables import Table

__all__ = ["levels_table", "line_seconds"]


def levels_table(hardware: Hardware) -> Table:
    """Return the levels with their sizes and what a line costs there, in nanoseconds."""
    from routecast.quantity import format_binary_bytes
    from routecast.report.tables import Column, Table

    separate = hardware.stalls == "separate"
    patterns = () if separate else ("dependent", "batched", "streamed")
    clock = hardware.cpu.frequency_hz
    return Table(
        name="levels",
        title="Levels of the memory",
        caption="The cycles of the operations hold all that a core waits; lines in DRAM load the memory."
        if separate
        else "What a line costs on top of the operations' cycles, by the level where it is found.",
        columns=(
            Column(title="Level", align="left"),
            Column(title="Size"),
            *(Column(title=pattern, unit="ns", form=".3g") for pattern in patterns),
        ),
        rows=tuple(
            (
                level.name,
                format_binary_bytes(level.size_bytes),
                *(line_seconds(level, pattern, clock) * 1e9 for pattern in patterns),
            )
            for level in hardware.levels
        ),
    )


def line_seconds(level: MemoryLevel, pattern: str, clock_hz: float) -> float:
    """Return what a line of a level costs: ``pattern`` is dependent, batched or streamed."""
    return level.line_cycles(pattern, clock_hz) / clock_hz
