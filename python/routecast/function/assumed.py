"""Costs that are assumed where a host's file gives none: of counted instructions alone."""

from __future__ import annotations

from routecast.hardware.formula import Formula
from routecast.hardware.model import Access, Hardware, OperationCost

__all__ = ["ASSUMED", "assumption_notes", "cost_on"]

ASSUMED = {
    "instructions": OperationCost(
        operation="instructions",
        cycles=Formula("n"),
        # The next place to look at follows from the last one, as in a tree.
        accesses=(Access(of="table", lines=Formula("lines"), pattern="dependent"),),
        source="assumption: one instruction per cycle, the most of a single-issue engine; superscalar cores do more",
    )
}
"""By operation."""


def cost_on(hardware: Hardware, operation: str) -> OperationCost | None:
    """Return what an operation costs on a host: as its file says, else as is assumed; None: nobody knows."""
    return hardware.operations.get(operation) or ASSUMED.get(operation)


def assumption_notes(hardware: Hardware, operations: set[str]) -> list[str]:
    """Return what a reader must know of the costs that are assumed.

    Examples
    --------
    >>> from routecast.hardware.catalogue import read_hardware
    >>> assumption_notes(read_hardware("xeon-e5-2690v2"), {"instructions", "parse"})
    ['xeon-e5-2690v2 gives no cost of instructions: one cycle for each is assumed']
    """
    assumed = sorted(name for name in operations if name not in hardware.operations and name in ASSUMED)
    return [f"{hardware.name} gives no cost of {name}: one cycle for each is assumed" for name in assumed]
