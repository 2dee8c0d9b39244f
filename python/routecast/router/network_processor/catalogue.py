"""Network processors as TOML files (``*.processor.toml``): those that ship, and those that users write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.shipped import shipped_files
from routecast.quantity.toml_file import parse_toml, validated
from routecast.router.network_processor.file_models import (
    ProcessorFile,
    ProcessorTable,
)
from routecast.router.network_processor.model import (
    Block,
    Engines,
    Link,
    NetworkProcessor,
    State,
)
from routecast.router.network_processor.overrides import (
    block_over,
    link_over,
    processor_over,
    state_over,
    values_given,
)
from routecast.router.network_processor.table_faults import lacking_memory, missing_without_base, twins

__all__ = [
    "Preset",
    "preset_from",
    "processor",
    "processor_schema",
    "processor_sources",
    "processors",
    "read_preset",
    "read_processor",
]

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
            problems.append(
                Problem("base", "is a file: a processor file rests on one that ships, by its name")
            )
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
