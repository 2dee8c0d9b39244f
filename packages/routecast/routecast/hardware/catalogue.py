"""The catalogue of hosts: shipped hosts, this host after a probe, and users' own files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from routecast.errors import EnvironmentProblem, FileProblem, ModelProblem, Problem
from routecast.hardware.formula import Formula
from routecast.hardware.model import (
    SOURCE,
    CallCost,
    Cost,
    Cpu,
    Hardware,
    MemoryLevel,
    MemoryTiming,
    Nic,
    OperationCost,
    Refinement,
)
from routecast.quantity.catalogue import Catalogue
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, Cycles, FrameCount, Length, Name, Number, Size, TransferRate
from routecast.quantity.schema import extended, field, file_fields, schema_of, value
from routecast.quantity.toml_file import parse_toml, place_of, validated
from routecast.quantity.whole_file import write_whole

__all__ = [
    "HOST",
    "PARAMETERS",
    "check_writable",
    "default_host",
    "hardware_names",
    "hardware_schema",
    "hardware_text",
    "host_file",
    "parse_hardware",
    "probed_file",
    "read_hardware",
    "shipped_hardware",
    "write_hardware",
]


_CostTable = extended(
    Cost,
    [
        (
            "coefficients",
            Mapping[str, Number],
            field("Numbers that the formulas name, c0 for example", default_factory=dict),
        )
    ],
)
_OperationTable = extended(
    _CostTable,
    [
        ("source", Annotated[str, Length(1)], field(SOURCE)),
        ("remote", _CostTable | None, field("Cost if the frame is in the other socket's L3", default=None)),
    ],
)


@value
class _MemoryTable:
    """Size and timing of the main memory; an access takes (2·CAS + 3) / data rate."""

    size_bytes: Size = field("Bytes of memory", default=math.inf)
    cas_latency_cycles: Cycles | None = field("CAS latency, in cycles of the memory", default=None)
    data_rate_per_s: TransferRate | None = field("Transfers per second", default=None, key="data_rate")
    channels: Count = field("Channels that work at the same time", default=1, ge=1, le=1024)
    source: str = field(SOURCE, default="")


@value
class _FramesTable:
    """The ring of frame buffers, which are used in turn."""

    in_flight_frames: FrameCount = field("Buffers", default=4096, key="in_flight")
    stride_bytes: Size = field("Bytes from one buffer to the next, whole", default=2112)


@value
class _HostFile:
    """A host: processor, caches, memory, network cards, and the cost of each elementary operation."""

    name: Name = field("Short name")
    title: str = field("Description in one line", default="")
    source: str = field(SOURCE, default="")
    stalls: Literal["separate", "added"] = field(
        "separate: the cycles include all waits of the core, and accesses to DRAM only load the memory (Baldi & Sapio "
        "2018). added: the core also waits for every line, as the levels give (probed hosts)"
    )
    notes: tuple[str, ...] = field("Notes for the reader", default=())
    cpu: Cpu = field("The processor")
    levels: Annotated[tuple[MemoryLevel, ...], Length(1)] = field(
        "Levels of the memory, the fastest first", key="level"
    )
    memory: _MemoryTable | None = field("The main memory", default=None)
    call: CallCost = field("Cost of calling a function", default=CallCost())
    frames: _FramesTable = field("Buffers of frames", default=_FramesTable())
    nics: tuple[Nic, ...] = field("Network cards", default=(), key="nic")
    operations: Mapping[str, _OperationTable] = field(  # type: ignore[valid-type]  # defined above
        "Cost of each elementary operation, by its name", default_factory=dict, key="operation"
    )
    refinement: Refinement = field("Corrections from measured functions on this host", default=Refinement())
    facts: dict[str, Any] = field("Further facts of the host", default_factory=dict)


PARAMETERS = frozenset({"hdr", "data", "b", "es", "max", "N", "HE", "p", "rules", "tuples", "burst", "n", "lines"})
"""Names that the formulas of operations may use: the parameters of all elementary operations."""

_LEVELS = ("L1", "L2", "L3", "DRAM")


def parse_hardware(text: str, subject: str = "hardware file") -> Hardware:
    """Read a host from the text of its ``*.hardware.toml``; ``subject`` is its name in messages.

    Raises FileProblem: the text is not TOML, or contains faults; the error lists all faults with their places.
    """
    document = validated(_HostFile, parse_toml(text, subject), subject)
    problems = _level_problems(document.levels)
    operations = {
        name: _operation(name, table, ("operation", name), problems) for name, table in document.operations.items()
    }
    memory, frames = document.memory or _MemoryTable(), document.frames
    if (memory.cas_latency_cycles is None) != (memory.data_rate_per_s is None):
        missing = "cas_latency" if memory.cas_latency_cycles is None else "data_rate"
        problems.append(Problem(f"memory.{missing}", "is missing: give both cas_latency and data_rate, or neither"))
    if frames.stride_bytes % 1.0:
        problems.append(Problem("frames.stride", "is not whole: a buffer has a whole number of bytes"))
    if problems:
        raise FileProblem(subject, problems)
    timing = None
    if memory.cas_latency_cycles is not None and memory.data_rate_per_s is not None:
        timing = MemoryTiming(
            cas_latency_cycles=memory.cas_latency_cycles,
            data_rate_per_s=memory.data_rate_per_s,
            channels=memory.channels,
            source=memory.source,
        )
    shared = ("name", "title", "source", "stalls", "notes", "cpu", "levels", "call", "nics", "refinement", "facts")
    return Hardware(
        **{name: getattr(document, name) for name in shared},
        operations=operations,
        memory=timing,
        memory_bytes=memory.size_bytes,
        frames_in_flight=frames.in_flight_frames,
        frame_stride_bytes=int(frames.stride_bytes),
    )


def hardware_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of hardware files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema_of(_HostFile),
        "title": "routecast hardware file",
    }


def _level_problems(levels: Sequence[MemoryLevel]) -> list[Problem]:
    problems = []
    ranks = [_LEVELS.index(level.name) for level in levels]
    if ranks != sorted(set(ranks)) or ranks[-1] != len(_LEVELS) - 1:
        names = ", ".join(level.name for level in levels)
        problems.append(Problem("level", f"got {names}: the order is {', '.join(_LEVELS)}, with DRAM last"))
    previous_bytes = 0.0
    for number, level in enumerate(levels):
        place = f"level[{number}].size"
        if level.name == "DRAM":
            if math.isfinite(level.size_bytes):
                problems.append(Problem(place, "DRAM has no size here: give it as memory.size"))
        elif math.isinf(level.size_bytes):
            problems.append(Problem(place, f"is missing: give the size of {level.name}"))
        elif level.size_bytes <= previous_bytes:
            message = (
                f"got {level.size_bytes:g} B: {level.name} is larger than the level before it, {previous_bytes:g} B"
            )
            problems.append(Problem(place, message))
        else:
            previous_bytes = level.size_bytes
    return problems


def _operation(name: str, table: Any, place: tuple[str, ...], problems: list[Problem]) -> OperationCost:
    remote = None
    if table.remote is not None:
        remote = _cost(name, table.remote, (*place, "remote"), problems, table.source)
    return _cost(name, table, place, problems, table.source, remote)


def _cost(
    name: str,
    table: Any,
    place: tuple[str, ...],
    problems: list[Problem],
    source: str,
    remote: OperationCost | None = None,
) -> OperationCost:
    used_names: set[str] = set()

    def formula(formula: Formula, *where: str | int) -> Formula:
        used_names.update(formula.names)
        for unknown in sorted(formula.names - PARAMETERS - table.coefficients.keys()):
            known = sorted(PARAMETERS | table.coefficients.keys())
            message = f'"{unknown[:60]}" is neither a parameter of an operation nor a coefficient of this one'
            problems.append(Problem(place_of((*place, *where)), f"{message}: {did_you_mean(unknown, known)}"))
        return formula.substituted(table.coefficients)

    cycles = formula(table.cycles, "cycles")
    accesses = []
    for number, access in enumerate(table.accesses):
        entry = ("access", number)
        if access.of == "frame" and access.table_lines is not None:
            problems.append(Problem(place_of((*place, *entry, "table_lines")), 'is for of = "table": a frame has none'))
        lines = formula(access.lines, *entry, "lines")
        of_table = None if access.table_lines is None else formula(access.table_lines, *entry, "table_lines")
        accesses.append(replace(access, lines=lines, table_lines=of_table))
    for unused in sorted(table.coefficients.keys() - used_names):
        problems.append(Problem(place_of((*place, "coefficients", unused)), "is used in no formula"))
    for name_clash in sorted(table.coefficients.keys() & PARAMETERS):
        problems.append(Problem(place_of((*place, "coefficients", name_clash)), "is the name of a parameter"))
    return OperationCost(
        operation=name,
        cycles=cycles,
        accesses=tuple(accesses),
        remote=remote,
        residual_ratio=table.residual_ratio,
        samples=table.samples,
        factor=table.factor,
        source=table.source or source,
    )


def hardware_text(hardware: Hardware) -> str:
    """Return the TOML text of a hardware file."""
    import tomli_w

    return tomli_w.dumps(_document(hardware), multiline_strings=False)


def _document(hardware: Hardware) -> dict[str, Any]:
    timing = hardware.memory
    memory = _MemoryTable(size_bytes=hardware.memory_bytes)
    if timing is not None:
        memory = _MemoryTable(
            size_bytes=hardware.memory_bytes,
            cas_latency_cycles=timing.cas_latency_cycles,
            data_rate_per_s=timing.data_rate_per_s,
            channels=timing.channels,
            source=timing.source,
        )
    frames = _FramesTable(in_flight_frames=hardware.frames_in_flight, stride_bytes=hardware.frame_stride_bytes)
    shared = ("name", "title", "source", "stalls", "notes", "cpu", "levels", "call", "nics", "refinement")
    facts = {name: fact for name, fact in hardware.facts.items() if fact is not None}
    file = _HostFile(
        **{name: getattr(hardware, name) for name in shared}, memory=memory, frames=frames, operations={}, facts=facts
    )
    costs = {name: _cost_table(cost) for name, cost in hardware.operations.items()}
    return file_fields(file) | ({"operation": costs} if costs else {})


def _cost_table(cost: OperationCost) -> dict[str, Any]:
    """Return the table of a cost, whose key is the operation's name; values that were not fitted are left out."""
    left_out = {
        "operation",
        "remote",
        *(["factor"] if cost.factor == 1.0 else []),
        *([] if cost.samples else ["samples"]),
    }
    table = {key: entry for key, entry in file_fields(cost).items() if key not in left_out}
    return table if cost.remote is None else {**table, "remote": _cost_table(cost.remote)}


HOST = "host"
"""The name of the host that this runs on."""

_HOSTS = Catalogue(
    kind="hardware", folder="hardware", suffix=".hardware.toml", parse=parse_hardware, further_names=(HOST,)
)


def shipped_hardware() -> dict[str, Path]:
    """Return the files of the shipped hosts, by name."""
    return _HOSTS.files()


def hardware_names() -> tuple[str, ...]:
    """Return the names that :func:`read_hardware` accepts, with ``"host"`` first if this host was probed."""
    return ((HOST,) if host_file().is_file() else ()) + tuple(shipped_hardware())


def host_file() -> Path:
    """Return the path of this host's file.

    ``$ROUTECAST_HOST_FILE``, else ``routecast/host.hardware.toml`` in ``$XDG_DATA_HOME`` or ``~/.local/share``.
    """
    if path := os.environ.get("ROUTECAST_HOST_FILE"):
        return Path(path)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "routecast" / f"{HOST}{_HOSTS.suffix}"


def default_host() -> str:
    """Return the default host: this host if it was probed, else the host of Baldi & Sapio 2018.

    The shipped functions contain the values that this paper states for its host.
    """
    return HOST if host_file().is_file() else "xeon-e5-2690v2"


def probed_file(name: str | None) -> Path:
    """Return the file of a probed host (None: this host), which measured functions may correct.

    Raises ModelProblem: this host was not probed yet, or the named file ships with routecast.
    """
    if name in shipped_hardware():
        message = f"{name} ships with routecast: only the file of a probed host is corrected"
        raise ModelProblem("--refine", [Problem("--on", message)])
    if name not in (None, HOST):
        return Path(str(name))
    if not host_file().is_file():
        raise ModelProblem("--refine", [Problem("--on", "this host was not probed yet; run: routecast hardware probe")])
    return host_file()


def read_hardware(name_or_path: str | Path) -> Hardware:
    """Read a host by its name, or from a file.

    Raises
    ------
    routecast.errors.FileProblem
        No such host exists, or its file cannot be read or contains faults; the error lists all faults with their
        places.
    """
    if str(name_or_path) != HOST:
        return _HOSTS.read(name_or_path)
    path = host_file()
    if not path.is_file():
        message = f"this host was not probed yet ({path} does not exist); run: routecast hardware probe"
        raise FileProblem(HOST, [Problem("", message)])
    return _HOSTS.read(path)


def check_writable(path: str | Path) -> None:
    """Refuse a path that :func:`write_hardware` could not write, before the work begins.

    Raises EnvironmentProblem: the file could not be written.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.touch()
        draft.unlink()
    except OSError as problem:
        raise EnvironmentProblem(f"{path} cannot be written: {problem}") from problem


def write_hardware(hardware: Hardware, path: str | Path) -> None:
    """Write a host's file and its folder; an existing file is replaced as a whole or not at all.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The file cannot be written.
    """
    path = Path(path)
    text = hardware_text(hardware)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as problem:
        raise EnvironmentProblem(f"{path} cannot be written: {problem}") from problem
