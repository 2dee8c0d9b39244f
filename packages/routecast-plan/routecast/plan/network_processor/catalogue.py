"""Network processors as TOML files (``*.processor.toml``): those that ship, and those that users write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from routecast.errors import FileProblem, Problem
from routecast.plan.network_processor.model import (
    MAX_ENGINES,
    MAX_THREADS,
    Block,
    Engines,
    Hardware,
    Link,
    Memory,
    NetworkProcessor,
    State,
)
from routecast.quantity.catalogue import Catalogue
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, FrameCount
from routecast.quantity.schema import Given, OrBase, field, key_of, merged, schema_of, value
from routecast.quantity.toml_file import parse_toml, validated

__all__ = [
    "BlockOverride",
    "LinkOverride",
    "Preset",
    "ProcessorOrName",
    "StateOverride",
    "by_name",
    "memories_without_base",
    "preset_from",
    "processor",
    "processor_schema",
    "processor_sources",
    "processors",
    "read_preset",
    "read_processor",
    "repeated_names",
]


_Table = Mapping[str, Any]
_Named = TypeVar("_Named", Memory, State, Block)


# Tables of network processors in processor files and router files. A base may supply missing values. In processor files
# the key ``source`` of a table states the source of each value.
def _source() -> Any:
    return field("Source of each value of this table, by its key", default_factory=dict)


@value
class EnginesTable(Engines):
    """The processing engines, all alike."""

    source: dict[str, str] = _source()


@value
class MemoryTable(Memory):
    """A memory, or another unit that threads wait for."""

    source: dict[str, str] = _source()


@value
class ProcessorTable(Hardware):
    """A network processor: a base and the values that differ from it."""

    base: str = field("A processor that ships, or a *.processor.toml file, that supplies missing values", default="")
    engines: Annotated[Any, Given(EnginesTable, ())] = field("The engines", default_factory=dict)
    memories: tuple[Annotated[Any, Given(MemoryTable, ("name",))], ...] = field(
        "Memories of the base by their name, or further memories", key="memory", default=()
    )


@value
class StateTable(State):
    """State that blocks keep in a memory."""

    source: dict[str, str] = _source()


@value
class BlockTable(Block):
    """A step of the router: a block of the processor by its name, with changed values, or a new block."""

    after: str | None = field('For a new block: the block that it follows; "" for the first place', default=None)
    present: bool = field("false: frames do not pass the block, and it has no engine", default=True)
    stub: bool = field("true: the block moves frames from its ring to the next ring without work", default=False)
    queue_frames: FrameCount | None = field("Frames that the block queues for each output port, frames", default=None)
    engines: Count | None = field(
        "Engines of its stage, where the block has its own stage", default=None, ge=1, le=MAX_ENGINES
    )
    threads: Count | None = field(
        "Active threads on each engine of its stage; 0: all that the hardware has", default=None, ge=0, le=MAX_THREADS
    )
    source: dict[str, str] = _source()


@value
class LinkTable(Link):
    """The ring between two stages."""

    source: dict[str, str] = _source()


LinkOverride = Annotated[_Table, Given(LinkTable, ())]
StateOverride = Annotated[_Table, Given(StateTable, ("name",))]
BlockOverride = Annotated[_Table, Given(BlockTable, ("name",))]
ProcessorOrName = Annotated[_Table, Given(ProcessorTable, ()), OrBase()]


@value
class ProcessorFile(ProcessorTable):
    """A network processor as a ``*.processor.toml`` file, with the blocks of a router on it."""

    name: str = field("Name of the processor")
    title: str = field("Description in one line")
    reference: str = field("Main source of its values", default="")
    notes: tuple[str, ...] = field("Notes for users", default=())
    state: tuple[StateOverride, ...] = field("States of its blocks in memories", default=())
    block: tuple[BlockOverride, ...] = field("The blocks of a router on it, in the order of the path", default=())
    ring: LinkOverride = field("Ring between stages", default_factory=dict)
    parallel: tuple[str, ...] = field(
        "Blocks that each engine runs to completion in the parallel organisation", default=()
    )
    source: dict[str, str] = field("Sources of the processor's values, by key", default_factory=dict)


def repeated_names(place: str, tables: Sequence[_Table]) -> Iterator[Problem]:
    """Yield a fault for each table with the name of an earlier table of the list ``place``."""
    first: dict[str, int] = {}
    for index, table in enumerate(tables):
        name = table["name"]
        if first.setdefault(name, index) != index:
            yield Problem(
                f"{place}[{index}].name",
                f'"{name}" is given in {place}[{first[name]}] already: put all of it in one table',
            )


def memories_without_base(tables: Sequence[_Table], chip: NetworkProcessor) -> Iterator[Problem]:
    """Yield the memories of a router file that the base does not have and that lack values."""
    memories = {memory.name: memory for memory in chip.memories}
    known = [memory.name for memory in chip.memories if memory.latency_s and memory.bandwidth_bytes_per_s]
    for index, table in enumerate(tables):
        memory = memories[table["name"]]
        missing = [key_of(name) for name in _OF_A_MEMORY if name not in table and not getattr(memory, name)]
        if missing:
            suggestion = f'"{memory.name}" is no memory of {chip.name}: {did_you_mean(memory.name, known)}'
            message = f"{suggestion} A new memory needs {' and '.join(missing)}"
            yield Problem(f"processor.memory[{index}].name", message)


_OF_A_MEMORY = ("latency_s", "bandwidth_bytes_per_s")


def missing_without_base(document: _Table) -> Iterator[Problem]:
    """Yield the values that a processor without a base needs and does not give."""
    yield from _missing("engines.", document.get("engines", {}), ("count", "frequency_hz"))
    yield from _missing("", document, ("ports", "link_bps"))
    for index, memory in enumerate(document.get("memories", ())):
        yield from _missing(f"memory[{index}].", memory, _OF_A_MEMORY)


def _missing(place: str, table: _Table, names: Iterable[str]) -> Iterator[Problem]:
    for name in names:
        if name not in table:
            yield Problem(f"{place}{key_of(name)}", "is missing, and there is no base that has it")


def by_name(base: Sequence[_Named], tables: Sequence[_Table], new: _Named) -> tuple[_Named, ...]:
    """Return parts with the values of tables in place of their own; parts that only tables name start from ``new``."""
    parts = {part.name: part for part in base}
    for table in tables:
        parts[table["name"]] = merged(parts.get(table["name"], new), table)
    return tuple(parts.values())


def processor_over(base: NetworkProcessor, table: _Table) -> NetworkProcessor:
    """Return a processor with the values of a table in place of its own, and with the memories that the table adds."""
    return merged(base, {**table, "memories": by_name(base.memories, table.get("memories", ()), _MEMORY)})


_MEMORY = Memory(name="", latency_s=0.0, bandwidth_bytes_per_s=0.0)
_STATE = State(name="", memory="")
_BLOCK = Block(name="", cycles=0.0)
_UNSOURCED = {"name", "source", "after", "present", "stub"}


def values_given(document: _Table) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield place and key of each value of a processor file, and the sources of its table."""
    chip = {"ports", "link_bps", "receive_buffer_bytes", "transmit_buffer_bytes", "source"}
    tables = [
        ("", {name: entry for name, entry in document.items() if name in chip}),
        *((f"{part}.", document[part]) for part in ("engines", "ring") if part in document),
        *((f"memory[{table['name']}].", table) for table in document.get("memories", ())),
        *((f"state[{table['name']}].", table) for table in document.get("state", ())),
        *((f"block[{table['name']}].", table) for table in document.get("block", ())),
    ]
    for place, table in tables:
        for name in table:
            if name not in _UNSOURCED and (name != "threads" or not place.startswith("block")):
                yield place, key_of(name), table.get("source", {})


_FILE: Any = Annotated[_Table, Given(ProcessorFile, ("name", "title"))]


def _parse(text: str, subject: str) -> _Table:
    document: _Table = validated(_FILE, parse_toml(text, subject), subject)
    return document


_PROCESSORS = Catalogue(kind="processor", folder="processors", suffix=".processor.toml", parse=_parse)


@value
class Preset:
    """A network processor with the router that its file describes on it."""

    processor: NetworkProcessor = field("The hardware")
    title: str = field("Description in one line", default="")
    states: tuple[State, ...] = field("States of its blocks in memories", default=())
    blocks: tuple[Block, ...] = field("Blocks in the order in which frames pass them", default=())
    ring: Link = field("Ring between stages", default=Link())
    parallel: tuple[str, ...] = field(
        "Blocks that each engine runs to completion in the parallel organisation", default=()
    )
    queues: Mapping[str, int] = field("Frames that a block keeps for each output port", default_factory=dict)
    engines: Mapping[str, int] = field(
        "Engines of a block's stage in the pipelined organisation, where it has several", default_factory=dict
    )


def processors() -> tuple[str, ...]:
    """Return the names of the network processors that ship, in alphabetical order."""
    return _PROCESSORS.names()


def processor(name: str) -> NetworkProcessor:
    """Return a network processor that ships.

    Raises FileProblem: no processor of that name ships; the message suggests the nearest.

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

    Raises FileProblem: the file cannot be read, is not TOML, contains faults, or gives a value without a source; the
    error lists each fault with its place.
    """
    return _preset(_document(path, folder), str(path))


def preset_from(table: _Table, *, folder: Path | None = None) -> Preset:
    """Return the processor of a table in a router file: its base, with the table's own values over it.

    Raises FileProblem: there is no such base, its file contains faults, or the table has no base and values are
    missing.
    """
    if not table.get("base"):
        missing = f"is missing: name a processor that ships, or a file; {did_you_mean('', processors())}"
        raise FileProblem("processor", [Problem("base", missing)])
    base = read_preset(table["base"], folder=folder)
    return replace(base, processor=processor_over(base.processor, table))


def processor_sources(name: str) -> Mapping[str, str]:
    """Return the source of each value of a processor that ships, by its place in the file.

    Raises FileProblem: as :func:`processor`.
    """
    document = _document(name, None)
    return {f"{place}{key}": source[key] for place, key, source in values_given(document) if key in source}


def processor_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of processor files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema_of(_FILE),
        "title": "routecast processor file",
    }


def _document(name: str | Path, folder: Path | None) -> _Table:
    return _PROCESSORS.read(name, folder) if _PROCESSORS.is_path(name) else _shipped(str(name))


@cache  # sweeps read the same file thousands of times, and nothing changes it
def _shipped(name: str) -> _Table:
    return _PROCESSORS.read(name)


def _preset(document: _Table, subject: str) -> Preset:
    memories, states, blocks = (document.get(key, ()) for key in ("memories", "state", "block"))
    problems = [
        Problem(f"{place}source.{key}", "is missing: say where the value comes from")
        for place, key, source in values_given(document)
        if not source.get(key, "").strip()
    ]
    problems += [
        *repeated_names("memory", memories),
        *repeated_names("state", states),
        *repeated_names("block", blocks),
    ]
    base = _NO_BASE
    if not document.get("base"):
        problems += missing_without_base(document)
    elif _PROCESSORS.is_path(document["base"]):
        problems.append(
            Problem("base", "is a file: the base of a processor file is a processor that ships, by its name")
        )
    else:
        base = read_preset(document["base"])
        base_memories = {memory.name for memory in base.processor.memories}
        for index, memory in enumerate(memories):
            if memory["name"] not in base_memories:
                problems += _missing(f"memory[{index}].", memory, _OF_A_MEMORY)
    if problems:
        raise FileProblem(subject, problems)
    chip = processor_over(base.processor, document)
    sources = (document["reference"],) if document.get("reference") else ()
    return Preset(
        processor=replace(chip, name=document["name"], sources=sources),
        title=document["title"],
        states=by_name(base.states, states, _STATE),
        blocks=by_name(base.blocks, blocks, _BLOCK),
        ring=merged(base.ring, document.get("ring", {})),
        parallel=document.get("parallel") or base.parallel,
        queues={**base.queues, **{block["name"]: block["queue_frames"] for block in blocks if "queue_frames" in block}},
        engines={**base.engines, **{block["name"]: block["engines"] for block in blocks if "engines" in block}},
    )


_NO_BASE = Preset(
    processor=NetworkProcessor(name="", engines=Engines(count=1, frequency_hz=1.0), memories=(), ports=1, link_bps=1e9)
)
