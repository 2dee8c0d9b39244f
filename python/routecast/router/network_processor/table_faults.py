"""Faults of the tables of files that cannot be seen any more when they have been put over a base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from routecast.errors import Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.network_processor.file_models import ProcessorTable
from routecast.router.network_processor.model import NetworkProcessor

__all__ = ["memories_without_base", "twins"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def twins(place: str, tables: Sequence[_Named]) -> Iterator[Problem]:
    """Yield a fault for each table of a list whose name an earlier one has; ``place`` is that of the list.

    Which of them would count is not for a reader to guess.
    """
    first: dict[str, int] = {}
    for index, table in enumerate(tables):
        if first.setdefault(table.name, index) != index:
            yield Problem(
                f"{place}[{index}].name",
                f'"{table.name}" is given in {place}[{first[table.name]}] already: put all of it in one table',
            )


def memories_without_base(table: ProcessorTable, chip: NetworkProcessor) -> Iterator[Problem]:
    """Yield the memories of a table in a router file that no base has, and that lack what only a base could give."""
    made = {memory.name: memory for memory in chip.memories}
    known = [memory.name for memory in chip.memories if memory.latency_s and memory.bytes_per_s]
    for index, one in enumerate(table.memory):
        memory = made[one.name]
        given = {"latency": one.latency, "bandwidth": one.bandwidth}
        has = {"latency": memory.latency_s, "bandwidth": memory.bytes_per_s}
        lacking = [key for key in given if given[key] is None and not has[key]]
        if lacking:
            yield Problem(
                f"processor.memory[{index}].name",
                f'"{one.name}" is no memory of {chip.name}: {did_you_mean(one.name, known)} One of your own needs '
                + " and ".join(lacking),
            )
