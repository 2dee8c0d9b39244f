"""The tables of a function in the sizes that are asked for, held to the host's memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.function.model import NetworkFunction, TableSize
from routecast.function.work import LINE_BYTES, StepWork
from routecast.hardware.model import Hardware
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["check_memory", "table_sizes"]


def table_sizes(function: NetworkFunction, asked: Mapping[str, int]) -> tuple[TableSize, ...]:
    """Return the function's tables, those in ``asked`` with so many entries.

    Raises
    ------
    routecast.errors.ModelProblem
        There is no such table, or it has no entries.
    """
    names = [table.name for table in function.tables]
    problems = []
    for name, entries in asked.items():
        if name not in names:
            problems.append(Problem(f"table {name}", f"is no table; {did_you_mean(name, names)}"))
        elif entries < 1:
            problems.append(Problem(f"table {name}", f"got {entries} entries: at least 1"))
    if problems:
        raise ModelProblem(f"function {function.name!r}", problems)
    return tuple(replace(table, entries=asked.get(table.name, table.entries)) for table in function.tables)


def check_memory(
    function: NetworkFunction,
    works: Iterable[tuple[float, StepWork]],
    tables: tuple[TableSize, ...],
    hardware: Hardware,
) -> None:
    """Refuse tables that the host's memory cannot hold.

    Raises
    ------
    routecast.errors.ModelProblem
        Each of them, with its place in the function's file.
    """
    needed = {table.name: float(table.entries) * table.entry_bytes for table in tables}
    for _, work in works:
        for touch in work.touches:
            if touch.kind == "table" and work.step.table in needed:
                held = needed[work.step.table]
                needed[work.step.table] = max(held, touch.distinct * LINE_BYTES)
    places = {table.name: f"table[{number}].entries" for number, table in enumerate(function.tables)}
    large = {name: size for name, size in needed.items() if size > hardware.memory_bytes}
    if not large and sum(needed.values()) > hardware.memory_bytes:
        large = needed
    if large:
        memory = f"{hardware.name} has {_gigabytes(hardware.memory_bytes)}"
        raise ModelProblem(
            f"function {function.name!r} on {hardware.name}",
            [
                Problem(places[name], f"table {name} takes {_gigabytes(size)} of memory, and {memory}")
                for name, size in large.items()
            ],
        )


def _gigabytes(size_bytes: float) -> str:
    size = size_bytes / 2**30
    return f"{size:,.0f} GiB" if size >= 1000.0 else f"{size:.3g} GiB"
