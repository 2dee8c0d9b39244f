"""Faults of the tables of files that cannot be seen any more when they have been put over a base, or over none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from routecast.errors import Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.network_processor.file_models import MemoryTable, ProcessorFile, ProcessorTable
from routecast.router.network_processor.model import NetworkProcessor

__all__ = ["lacking_memory", "memories_without_base", "missing_without_base", "twins"]


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


def missing_without_base(document: ProcessorFile) -> Iterator[Problem]:
    """Yield what a processor without a base must say and does not."""
    for key in ("count", "frequency"):
        if getattr(document.engines, key) is None:
            yield Problem(f"engines.{key}", "is missing, and there is no base that has it")
    for key in ("ports", "link"):
        if getattr(document, key) is None:
            yield Problem(key, "is missing, and there is no base that has it")
    for index, memory in enumerate(document.memory):
        yield from lacking_memory(f"memory[{index}]", memory)


def lacking_memory(place: str, memory: MemoryTable) -> Iterator[Problem]:
    """Yield what a memory that no base has must say and does not."""
    for key in ("latency", "bandwidth"):
        if getattr(memory, key) is None:
            yield Problem(f"{place}.{key}", "is missing, and there is no base that has it")
