"""Network processors as TOML files (``*.processor.toml``): those that ship, and those that users write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.file_model import FileModel
from routecast.quantity.shipped import shipped_files
from routecast.quantity.toml_file import parse_toml, validated
from routecast.router.network_processor.file_models import (
    BlockTable,
    LinkTable,
    MemoryTable,
    ProcessorFile,
    ProcessorTable,
    StateTable,
)
from routecast.router.network_processor.model import Block, Engines, Link, Memory, NetworkProcessor, Reference, State

__all__ = [
    "Preset",
    "block_over",
    "link_over",
    "memories_without_base",
    "preset_from",
    "processor",
    "processor_schema",
    "processor_sources",
    "processors",
    "read_preset",
    "read_processor",
    "state_over",
    "twins",
]


# Faults of the tables of files that cannot be seen any more when they have been put over a base, or over none.


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


# Values of files in the place of those of a base: which key of a table is which field of a value.


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
    tables += [(f"block[{one.name}].", one, (*_BLOCK, "references", "queue", "engines")) for one in document.block]
    for place, table, keys in tables:
        for key in keys:
            if getattr(table, key) is not None:
                yield f"{place}{key}", table, key


_SUFFIX = ".processor.toml"
_LARGEST_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A network processor with the router that its file describes on it.

    Parameters
    ----------
    processor : NetworkProcessor
    title : str
    states : tuple of State
    blocks : tuple of Block
        In the order of the way.
    ring : Link
        Between stages.
    parallel : tuple of str
        Blocks that each engine runs to completion in the parallel organisation.
    queues : mapping of str to int
        Frames that a block keeps for each output port.
    engines : mapping of str to int
        Engines of a block's stage in the pipelined organisation, where that is not one.
    """

    processor: NetworkProcessor
    title: str = ""
    states: tuple[State, ...] = ()
    blocks: tuple[Block, ...] = ()
    ring: Link = field(default_factory=Link)
    parallel: tuple[str, ...] = ()
    queues: Mapping[str, int]
    engines: Mapping[str, int]


def processors() -> tuple[str, ...]:
    """Return the names of the network processors that ship, in alphabetical order."""
    return tuple(shipped_files("processors", _SUFFIX))


def processor(name: str) -> NetworkProcessor:
    """Return a network processor that ships.

    Raises
    ------
    routecast.errors.FileProblem
        There is none of that name; the message names the nearest.

    Examples
    --------
    >>> processor("ixp2850").engines.count
    16
    """
    return read_preset(name).processor


def read_processor(path: str | Path) -> NetworkProcessor:
    """Read a network processor: one that ships by its name, or a ``*.processor.toml``.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_preset`.
    """
    return read_preset(path).processor


def read_preset(path: str | Path, *, folder: Path | None = None) -> Preset:
    """Read a network processor and the router on it: one that ships by its name, or a ``*.processor.toml``.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is no TOML, says something wrong, or gives a value without a source; all faults with
        their places.
    """
    document, above = _document(path, folder)
    return _preset(document, str(path), above)


def preset_from(table: ProcessorTable, *, folder: Path | None = None) -> Preset:
    """Return the processor that a table of a router file says: its base, with the table's own values over it.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such base, its file says something wrong, or it has no base and values are missing.
    """
    if not table.base:
        missing = f"is missing: name a processor that ships, or a file; {did_you_mean('', processors())}"
        raise FileProblem("processor", [Problem("base", missing)])
    base = read_preset(table.base, folder=folder)
    return replace(base, processor=processor_over(base.processor, table))


def processor_sources(name: str) -> Mapping[str, str]:
    """Return where each value of a processor that ships comes from, by its place in the file.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`processor`.
    """
    document, _ = _document(name, None)
    return {place: table.source[key] for place, table, key in values_given(document) if key in table.source}


def processor_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of processor files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ProcessorFile.model_json_schema(),
        "title": "routecast processor file",
    }


def _document(path: str | Path, folder: Path | None) -> tuple[ProcessorFile, Path | None]:
    name = str(path)
    if name.endswith(".toml"):
        file = (folder or Path()) / name
        text = read_text(file, kind="processor file", largest_bytes=_LARGEST_FILE_BYTES)
        return validated(ProcessorFile, parse_toml(text, str(file)), str(file)), file.parent
    return _shipped(name), None


@cache  # sweeps ask for the same one thousands of times, and nothing changes it
def _shipped(name: str) -> ProcessorFile:
    shipped = shipped_files("processors", _SUFFIX)
    if name not in shipped:
        hint = f"is no processor that ships: {did_you_mean(name, shipped)}"
        raise FileProblem(f'"{name}"', [Problem("", hint)])
    text = shipped[name].read_text(encoding="utf-8")
    return validated(ProcessorFile, parse_toml(text, name), f"{name}{_SUFFIX}")


def _preset(document: ProcessorFile, subject: str, folder: Path | None) -> Preset:
    problems = [
        Problem(
            f"{place.rpartition('.')[0]}.source.{key}".lstrip("."),
            "is missing: say where the value comes from",
        )
        for place, table, key in values_given(document)
        if not table.source.get(key, "").strip()
    ]
    problems += [
        *twins("memory", document.memory),
        *twins("state", document.state),
        *twins("block", document.block),
    ]
    base = None
    if document.base:
        if document.base.endswith(".toml"):
            problems.append(Problem("base", "is a file: a processor file rests on one that ships, by its name"))
        else:
            base = read_preset(document.base)
            has = {memory.name for memory in base.processor.memories}
            for index, memory in enumerate(document.memory):
                if memory.name not in has:
                    problems += lacking_memory(f"memory[{index}]", memory)
    else:
        problems += missing_without_base(document)
    if problems:
        raise FileProblem(subject, problems)
    empty = NetworkProcessor(
        name=document.name, engines=Engines(count=1, frequency_hz=1.0), memories=(), ports=1, link_bps=1e9
    )
    chip = processor_over(base.processor if base else empty, document)
    sources = tuple(one for one in (document.reference,) if one)
    blocks = {one.name: one for one in (base.blocks if base else ())}
    for block in document.block:
        blocks[block.name] = block_over(blocks.get(block.name, Block(name=block.name, cycles=0.0)), block)
    states = {one.name: one for one in (base.states if base else ())}
    for state in document.state:
        states[state.name] = state_over(states.get(state.name, State(name=state.name, memory="")), state)
    return Preset(
        processor=replace(chip, name=document.name, sources=sources),
        title=document.title,
        states=tuple(states.values()),
        blocks=tuple(blocks.values()),
        ring=link_over(base.ring if base else Link(), document.ring),
        parallel=tuple(document.parallel or (base.parallel if base else ())),
        queues={**(base.queues if base else {})}
        | {one.name: one.queue for one in document.block if one.queue is not None},
        engines={**(base.engines if base else {})}
        | {one.name: one.engines for one in document.block if one.engines is not None},
    )
