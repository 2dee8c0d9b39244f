"""Values of files in the place of those of a base: which key of a table is which field of a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from routecast.quantity.fields import FileModel
from routecast.router.network_processor.file_models import (
    BlockTable,
    LinkTable,
    ProcessorFile,
    ProcessorTable,
    StateTable,
)
from routecast.router.network_processor.model import Block, Link, Memory, NetworkProcessor, Reference, State

__all__ = ["block_over", "link_over", "processor_over", "state_over", "values_given"]

_ENGINES = {
    "count": "count",
    "threads": "threads",
    "frequency": "frequency_hz",
    "registers": "registers",
    "spill": "spill_cycles",
    "switch": "switch_cycles",
    "code_words": "code_words",
}
_MEMORY = {
    "channels": "channels",
    "latency": "latency_s",
    "bandwidth": "bytes_per_s",
    "least": "least_bytes",
    "capacity": "capacity_bytes",
}
_PROCESSOR = {
    "ports": "ports",
    "link": "link_bps",
    "receive_buffer": "receive_buffer_bytes",
    "transmit_buffer": "transmit_buffer_bytes",
}
_BLOCK = {
    "cycles": "cycles",
    "cycles_per_byte": "cycles_per_byte",
    "registers": "registers",
    "code_words": "code_words",
}
_LINK = {
    "memory": "memory",
    "put": "put_cycles",
    "get": "get_cycles",
    "access": "access_bytes",
    "frames": "frames",
}
_STATE = {"memory": "memory", "size": "size_bytes"}
_WHOLE = frozenset(
    {
        "least_bytes",
        "capacity_bytes",
        "receive_buffer_bytes",
        "transmit_buffer_bytes",
        "access_bytes",
        "size_bytes",
    }
)


def processor_over(base: NetworkProcessor, table: ProcessorTable) -> NetworkProcessor:
    """Return a processor with what a table gives in the place of its own, and the memories that it adds."""
    memories = {memory.name: memory for memory in base.memories}
    for one in table.memory:
        before = memories.get(one.name, Memory(name=one.name, latency_s=0.0, bytes_per_s=0.0))
        memories[one.name] = replace(before, **_values(one, _MEMORY))
    return replace(
        base,
        engines=replace(base.engines, **_values(table.engines, _ENGINES)),
        memories=tuple(memories.values()),
        **_values(table, _PROCESSOR),
    )


def block_over(base: Block, table: BlockTable) -> Block:
    """Return a block with what a table gives in the place of its own."""
    changed = _values(table, _BLOCK)
    if table.references is not None:
        changed["references"] = tuple(
            Reference(
                state=one.state,
                accesses=one.accesses,
                accesses_per_byte=one.accesses_per_byte,
                access_bytes=round(one.access),
                waits=one.waits,
            )
            for one in table.references
        )
    return replace(base, **changed)


def link_over(base: Link, table: LinkTable) -> Link:
    """Return a link with what a table gives in the place of its own."""
    return replace(base, **_values(table, _LINK))


def state_over(base: State, table: StateTable) -> State:
    """Return a state with what a table gives in the place of its own."""
    return replace(base, **_values(table, _STATE))


def _values(table: FileModel, fields: Mapping[str, str]) -> dict[str, Any]:
    given = {field: getattr(table, key) for key, field in fields.items() if getattr(table, key) is not None}
    return {field: round(value) if field in _WHOLE else value for field, value in given.items()}


def values_given(document: ProcessorFile) -> Iterator[tuple[str, Any, str]]:
    """Yield the values of a processor file: their places, the tables that hold their sources, and their keys."""
    tables: list[tuple[str, Any, tuple[str, ...]]] = [
        ("", document, tuple(_PROCESSOR)),
        ("engines.", document.engines, tuple(_ENGINES)),
        ("ring.", document.ring, tuple(_LINK)),
    ]
    tables += [(f"memory[{one.name}].", one, tuple(_MEMORY)) for one in document.memory]
    tables += [(f"state[{one.name}].", one, tuple(_STATE)) for one in document.state]
    tables += [
        (f"block[{one.name}].", one, (*_BLOCK, "references", "queue", "engines")) for one in document.block
    ]
    for place, table, keys in tables:
        for key in keys:
            if getattr(table, key) is not None:
                yield f"{place}{key}", table, key
