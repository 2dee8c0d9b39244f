"""From a :class:`Hardware` to the text of its file, which reads back as the same value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from routecast import quantity
from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.hardware.formula import Formula
from routecast.hardware.model import (
    Access,
    AccessKind,
    CallCost,
    Cpu,
    Hardware,
    LevelName,
    MeasuredFunction,
    MemoryLevel,
    MemoryTiming,
    Nic,
    OperationCost,
    Pcie,
    Refinement,
)
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import (
    BitRate,
    Count,
    FrameCount,
    FrameRate,
    Frequency,
    Number,
    Parsed,
    Size,
    TransferRate,
)
from routecast.quantity.file_model import FileModel
from routecast.quantity.toml_file import parse_toml, place_of, shown, validated

__all__ = ["PARAMETERS", "FormulaText", "hardware_schema", "hardware_text", "parse_hardware"]


# Fields of files that hold formulas and costs of memory.


_WANTED = 'a number or a formula is wanted, such as 12 or "5 * ceil(b/8)"'


def _formula(value: Any) -> Formula:
    if isinstance(value, Formula):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = repr(value)
    try:
        if not isinstance(value, str):
            raise ModelProblem(shown(value), [])
        formula = Formula(value)
        if not formula.names:
            formula.evaluate({})
    except ModelProblem as problem:
        faults = "; ".join(str(one) for one in problem.problems) or _WANTED
        message = f"got {shown(value)}: {faults}"
        raise PydanticCustomError("value", "{message}", {"message": message}) from None
    return formula


def _line_cost(text: str) -> tuple[float, float]:
    parts = text.split(" + ") if isinstance(text, str) else [text]
    if len(parts) > 2:
        what = f'got {shown(text)}: one cost in cycles, one as a time, or both: "3 cycles + 60 ns"'
        raise QuantityProblem(shown(text), what)
    costs = [quantity.parse_cost(part) for part in parts]
    return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)


FormulaText = Annotated[
    Formula,
    BeforeValidator(_formula),
    WithJsonSchema(
        {
            "type": ["number", "string"],
            "description": "A number, or arithmetic over parameters",
            "examples": [6, "5 * ceil(b/8)"],
        }
    ),
]
LineCost = Annotated[
    tuple[float, float], Parsed(_line_cost, "cycles, s, or both", "12 cycles", "80 ns", "3 cycles + 60 ns")
]
Cycles = Annotated[float, Parsed(quantity.parse_cycles, "cycles, >= 0", "120 cycles")]


# What stands in a ``*.hardware.toml``: tables, their keys, units and meanings, as pydantic models.


Name = Annotated[str, Field(min_length=1, max_length=100)]
Factor = Annotated[float, Field(gt=0.0, allow_inf_nan=False, strict=True)]
Ratio = Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)]
Source = Annotated[str, Field(description="Where the values are from")]


class CpuTable(FileModel):
    """The processor."""

    name: Name = Field(description="What it is called")
    sockets: Count = Field(default=1, ge=1, le=1024, description="Processors in the machine")
    cores_per_socket: Count = Field(ge=1, le=65536, description="Physical cores of each")
    frequency: Frequency = Field(description="The clock that the cycles of all formulas count")
    source: Source = ""


class LevelTable(FileModel):
    """One level of the memory, and what a line that is found there costs on top of the operations' own cycles."""

    name: LevelName = Field(description="L1, L2, L3 or DRAM, in this order; DRAM is last")
    size: Size | None = Field(default=None, description="What one core's data can occupy; not for DRAM")
    dependent: LineCost = Field(default=(0.0, 0.0), description="Each access waits for the one before")
    batched: LineCost = Field(default=(0.0, 0.0), description="Random lines asked for together, with prefetch")
    streamed: LineCost = Field(default=(0.0, 0.0), description="Lines in the order of their addresses")
    source: Source = ""


class MemoryTable(FileModel):
    """The main memory: its size, and what it can serve: an access takes (2·CAS + 3) / data rate."""

    size: Size | None = Field(default=None, description="Bytes of memory")
    cas_latency: Cycles | None = Field(default=None, description="CAS latency, in cycles of the memory")
    data_rate: TransferRate | None = Field(default=None, description="Transfers per second")
    channels: Count = Field(default=1, ge=1, le=1024, description="Channels that work at the same time")
    source: Source = ""


class PcieTable(FileModel):
    """A PCI Express bus."""

    generation: Count = Field(ge=1, le=5, description="1 to 5")
    lanes: Count = Field(ge=1, le=32, description="Lanes")


class NicTable(FileModel):
    """A network card."""

    name: Name = Field(description="What it is called")
    ports: Count = Field(default=1, ge=1, le=1024, description="Ports")
    link: BitRate = Field(description="Rate of each port's link")
    cap: FrameRate | None = Field(default=None, description="Frames/s that the card forwards at most")
    pcie: PcieTable | None = Field(default=None, description="The bus that it is on")
    socket: Count = Field(default=0, ge=0, description="Socket that the bus belongs to")
    source: Source = ""


class CallTable(FileModel):
    """What calling a function costs beside its operations."""

    per_batch: Cycles = Field(default=0.0, description="Cycles of a batch")
    per_packet: Cycles = Field(default=0.0, description="Cycles of each frame of it")
    batch: FrameCount = Field(default=32, description="Frames of a batch")


class FramesTable(FileModel):
    """Where frames lie: a ring of buffers, used in turn."""

    in_flight: FrameCount = Field(default=4096, description="Buffers")
    stride: Size = Field(default=2112.0, description="Bytes from one buffer to the next, whole")


class AccessTable(FileModel):
    """Lines of memory that an operation touches."""

    of: AccessKind = Field(description="table: the packet's flow decides which lines. frame: lines of the frame itself")
    lines: FormulaText = Field(description="Lines touched by one execution")
    table_lines: FormulaText | None = Field(default=None, description="Lines of the whole table")
    pattern: Literal["dependent", "batched", "streamed"] = Field(
        default="batched", description="Which cost of a level a line has"
    )


class CostTable(FileModel):
    """What an operation costs."""

    cycles: FormulaText = Field(
        description="Core cycles of one execution, data in L1, over its parameters (hdr data b es max N HE p rules "
        "tuples burst) and the coefficients"
    )
    coefficients: dict[str, Number] = Field(
        default_factory=dict, description="Numbers that the formulas name, c0 for example"
    )
    access: list[AccessTable] = Field(default_factory=list, description="Lines of memory that it touches")
    residual_ratio: Ratio | None = Field(default=None, description="Root mean square of the fit's relative residuals")
    samples: Count = Field(default=0, ge=0, description="Measurements behind the formula")
    factor: Factor = Field(default=1.0, description="Correction learnt from measured functions; multiplies the cycles")
    source: Source = ""


class OperationTable(CostTable):
    """What an elementary operation costs on this host."""

    source: Annotated[str, Field(min_length=1)] = Field(description="Where the values are from")
    remote: CostTable | None = Field(default=None, description="The cost where the frame lies in the other socket's L3")


class MeasuredTable(FileModel):
    """A network function that was measured on this host."""

    function: Name = Field(description="Name of the function")
    direction: str = Field(description="Its direction")
    frame: Size = Field(description="Size of its frames, FCS included")
    traffic: str = Field(description="Flows and their popularity: uniform, 10 flows, zipf 1.1")
    cycles: Cycles = Field(description="Core cycles of a packet")
    tables: dict[str, Count] = Field(default_factory=dict, description="Entries of its tables")
    spread_ratio: Ratio = Field(default=0.0, description="Relative standard deviation of repeats")


class RefinementTable(FileModel):
    """What measured functions taught about this host."""

    measured: list[MeasuredTable] = Field(
        default_factory=list, description="The measurements that the factors come from"
    )
    levels: dict[LevelName, Factor] = Field(
        default_factory=dict, description="Factors on the cost of a line found in a level"
    )
    functions: dict[str, tuple[Factor, Factor]] = Field(
        default_factory=dict, description='By "function/direction": factors on its cycles and on its stalls'
    )


class HardwareFile(FileModel):
    """A host: processor, caches, memory, network cards, and what each elementary operation costs on it."""

    name: Name = Field(description="Short name")
    title: str = Field(default="", description="What it is, in a line")
    source: Source = ""
    stalls: Literal["separate", "added"] = Field(
        description="separate: the cycles hold all that a core waits, lines in DRAM only load the memory "
        "(Baldi & Sapio 2018). added: the core waits for every line as the levels say (probed hosts)"
    )
    notes: list[str] = Field(default_factory=list, description="What a reader must know")
    cpu: CpuTable = Field(description="The processor")
    level: list[LevelTable] = Field(min_length=1, description="Levels of the memory, the fastest first")
    memory: MemoryTable | None = Field(default=None, description="The main memory")
    call: CallTable = Field(default_factory=CallTable, description="Cost of calling a function")
    frames: FramesTable = Field(default_factory=FramesTable, description="Where frames lie")
    nic: list[NicTable] = Field(default_factory=list, description="Network cards")
    operation: dict[str, OperationTable] = Field(
        default_factory=dict, description="Cost of each elementary operation, by its name"
    )
    refinement: RefinementTable = Field(
        default_factory=RefinementTable, description="What measured functions taught about this host"
    )
    facts: dict[str, Any] = Field(default_factory=dict, description="What else is known of the host")


# From the text of a ``*.hardware.toml`` to a :class:`Hardware`: every fault at once, each with its place.


PARAMETERS = frozenset({"hdr", "data", "b", "es", "max", "N", "HE", "p", "rules", "tuples", "burst", "n", "lines"})
"""Names that the formulas of operations may have: the parameters of all elementary operations."""

_LEVELS = ("L1", "L2", "L3", "DRAM")


def parse_hardware(text: str, *, subject: str = "hardware file") -> Hardware:
    """Read a host from the text of its file; ``subject`` is what messages call it.

    Raises
    ------
    routecast.errors.FileProblem
        The text is no TOML, or says something wrong; all faults with their places.
    """
    document = validated(HardwareFile, parse_toml(text, subject), subject)
    problems = _wrong_levels(document.level)
    operations = {
        name: _operation(name, table, ("operation", name), problems) for name, table in document.operation.items()
    }
    memory = document.memory
    if memory is not None and (memory.cas_latency is None) != (memory.data_rate is None):
        missing = "cas_latency" if memory.cas_latency is None else "data_rate"
        problems.append(Problem(f"memory.{missing}", "is missing: give both cas_latency and data_rate, or neither"))
    if document.frames.stride % 1.0:
        problems.append(Problem("frames.stride", "is not whole: a buffer has a whole number of bytes"))
    if problems:
        raise FileProblem(subject, problems)
    return Hardware(
        name=document.name,
        title=document.title,
        cpu=Cpu(
            name=document.cpu.name,
            sockets=document.cpu.sockets,
            cores_per_socket=document.cpu.cores_per_socket,
            frequency_hz=document.cpu.frequency,
            source=document.cpu.source,
        ),
        levels=tuple(_level(level) for level in document.level),
        operations=operations,
        stalls=document.stalls,
        memory=_timing(document),
        call=CallCost(
            per_batch_cycles=document.call.per_batch,
            per_packet_cycles=document.call.per_packet,
            batch_frames=document.call.batch,
        ),
        nics=tuple(_nic(nic) for nic in document.nic),
        refinement=_refinement(document.refinement),
        memory_bytes=math.inf if memory is None or memory.size is None else memory.size,
        frames_in_flight=document.frames.in_flight,
        frame_stride_bytes=int(document.frames.stride),
        source=document.source,
        notes=tuple(document.notes),
        facts=document.facts,
    )


def hardware_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of hardware files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **HardwareFile.model_json_schema(),
        "title": "routecast hardware file",
    }


def _wrong_levels(levels: list[LevelTable]) -> list[Problem]:
    problems = []
    ranks = [_LEVELS.index(level.name) for level in levels]
    if ranks != sorted(set(ranks)) or ranks[-1] != len(_LEVELS) - 1:
        names = ", ".join(level.name for level in levels)
        problems.append(Problem("level", f"got {names}: levels stand in the order {', '.join(_LEVELS)}, DRAM last"))
    before = 0.0
    for number, level in enumerate(levels):
        place = f"level[{number}].size"
        if level.name == "DRAM":
            if level.size is not None:
                problems.append(Problem(place, "DRAM holds everything: write its size as memory.size"))
        elif level.size is None:
            problems.append(Problem(place, f"is missing: give the size of {level.name}"))
        elif level.size <= before:
            what = f"got {level.size:g} B: {level.name} is larger than the level before it, {before:g} B"
            problems.append(Problem(place, what))
        else:
            before = level.size
    return problems


def _level(level: LevelTable) -> MemoryLevel:
    return MemoryLevel(
        name=level.name,
        size_bytes=math.inf if level.size is None else level.size,
        dependent_cycles=level.dependent[0],
        dependent_s=level.dependent[1],
        batched_cycles=level.batched[0],
        batched_s=level.batched[1],
        streamed_cycles=level.streamed[0],
        streamed_s=level.streamed[1],
        source=level.source,
    )


def _timing(document: HardwareFile) -> MemoryTiming | None:
    memory = document.memory
    if memory is None or memory.cas_latency is None or memory.data_rate is None:
        return None
    return MemoryTiming(
        cas_latency_cycles=memory.cas_latency,
        data_rate_per_s=memory.data_rate,
        channels=memory.channels,
        source=memory.source,
    )


def _nic(nic: NicTable) -> Nic:
    return Nic(
        name=nic.name,
        ports=nic.ports,
        link_bps=nic.link,
        cap_pps=math.inf if nic.cap is None else nic.cap,
        pcie=None if nic.pcie is None else Pcie(generation=nic.pcie.generation, lanes=nic.pcie.lanes),
        socket=nic.socket,
        source=nic.source,
    )


def _operation(name: str, table: OperationTable, place: tuple[str, ...], problems: list[Problem]) -> OperationCost:
    remote = None
    if table.remote is not None:
        remote = _cost(name, table.remote, (*place, "remote"), problems, table.source)
    return _cost(name, table, place, problems, table.source, remote)


def _cost(
    name: str,
    table: CostTable,
    place: tuple[str, ...],
    problems: list[Problem],
    source: str,
    remote: OperationCost | None = None,
) -> OperationCost:
    used: set[str] = set()

    def formula(one: Formula, *where: str | int) -> Formula:
        used.update(one.names)
        for unknown in sorted(one.names - PARAMETERS - table.coefficients.keys()):
            known = sorted(PARAMETERS | table.coefficients.keys())
            what = f'"{unknown[:60]}" is neither a parameter of an operation nor a coefficient of this one'
            problems.append(Problem(place_of((*place, *where)), f"{what}: {did_you_mean(unknown, known)}"))
        return one.substituted(table.coefficients)

    cycles = formula(table.cycles, "cycles")
    accesses = []
    for number, access in enumerate(table.access):
        at = ("access", number)
        if access.of == "frame" and access.table_lines is not None:
            problems.append(Problem(place_of((*place, *at, "table_lines")), 'is for of = "table": a frame has none'))
        accesses.append(
            Access(
                of=access.of,
                lines=formula(access.lines, *at, "lines"),
                table_lines=None if access.table_lines is None else formula(access.table_lines, *at, "table_lines"),
                pattern=access.pattern,
            )
        )
    for unused in sorted(table.coefficients.keys() - used):
        problems.append(Problem(place_of((*place, "coefficients", unused)), "stands in no formula"))
    for taken in sorted(table.coefficients.keys() & PARAMETERS):
        problems.append(Problem(place_of((*place, "coefficients", taken)), "is the name of a parameter"))
    return OperationCost(
        operation=name,
        cycles=cycles,
        accesses=tuple(accesses),
        remote=remote,
        residual_ratio=math.nan if table.residual_ratio is None else table.residual_ratio,
        samples=table.samples,
        factor=table.factor,
        source=table.source or source,
    )


def _refinement(table: RefinementTable) -> Refinement:
    levels: Mapping[str, float] = {str(name): factor for name, factor in table.levels.items()}
    return Refinement(
        measured=tuple(
            MeasuredFunction(
                function=one.function,
                direction=one.direction,
                frame_bytes=int(one.frame),
                traffic=one.traffic,
                cycles=one.cycles,
                tables=one.tables,
                spread_ratio=one.spread_ratio,
            )
            for one in table.measured
        ),
        levels=levels,
        functions=table.functions,
    )


def hardware_text(hardware: Hardware) -> str:
    """Return the TOML text of a hardware file."""
    import tomli_w

    return tomli_w.dumps(_document(hardware), multiline_strings=False)


def _document(hardware: Hardware) -> dict[str, Any]:
    return _filled(
        name=hardware.name,
        title=hardware.title,
        source=hardware.source,
        stalls=hardware.stalls,
        notes=list(hardware.notes),
        cpu=_filled(
            name=hardware.cpu.name,
            sockets=hardware.cpu.sockets,
            cores_per_socket=hardware.cpu.cores_per_socket,
            frequency=_text(hardware.cpu.frequency_hz, "Hz"),
            source=hardware.cpu.source,
        ),
        level=[_writing_level(level) for level in hardware.levels],
        memory=_memory(hardware),
        call={
            "per_batch": _text(hardware.call.per_batch_cycles, "cycles"),
            "per_packet": _text(hardware.call.per_packet_cycles, "cycles"),
            "batch": _text(hardware.call.batch_frames, "frames"),
        },
        frames={
            "in_flight": _text(hardware.frames_in_flight, "frames"),
            "stride": _text(hardware.frame_stride_bytes, "B"),
        },
        nic=[_writing_nic(nic) for nic in hardware.nics],
        operation={name: _writing_cost(cost) for name, cost in hardware.operations.items()},
        refinement=_writing_refinement(hardware.refinement),
        facts={name: fact for name, fact in hardware.facts.items() if fact is not None},
    )


def _writing_level(level: MemoryLevel) -> dict[str, Any]:
    return _filled(
        name=level.name,
        size=_text(level.size_bytes, "B"),
        dependent=_writing_line_cost(level.dependent_cycles, level.dependent_s),
        batched=_writing_line_cost(level.batched_cycles, level.batched_s),
        streamed=_writing_line_cost(level.streamed_cycles, level.streamed_s),
        source=level.source,
    )


def _memory(hardware: Hardware) -> dict[str, Any]:
    timing = hardware.memory
    size = _text(hardware.memory_bytes, "B")
    if timing is None:
        return _filled(size=size)
    return _filled(
        size=size,
        cas_latency=_text(timing.cas_latency_cycles, "cycles"),
        data_rate=_text(timing.data_rate_per_s, "T/s"),
        channels=timing.channels,
        source=timing.source,
    )


def _writing_nic(nic: Nic) -> dict[str, Any]:
    return _filled(
        name=nic.name,
        ports=nic.ports,
        link=_text(nic.link_bps, "bit/s"),
        cap=_text(nic.cap_pps, "frames/s"),
        pcie=None if nic.pcie is None else {"generation": nic.pcie.generation, "lanes": nic.pcie.lanes},
        socket=nic.socket,
        source=nic.source,
    )


def _writing_cost(cost: OperationCost) -> dict[str, Any]:
    return _filled(
        cycles=cost.cycles.text,
        source=cost.source,
        residual_ratio=None if math.isnan(cost.residual_ratio) else float(cost.residual_ratio),
        samples=cost.samples or None,
        factor=None if cost.factor == 1.0 else float(cost.factor),
        access=[_access(access) for access in cost.accesses],
        remote=None if cost.remote is None else _writing_cost(cost.remote),
    )


def _access(access: Access) -> dict[str, Any]:
    return _filled(
        of=access.of,
        lines=access.lines.text,
        table_lines=None if access.table_lines is None else access.table_lines.text,
        pattern=access.pattern,
    )


def _writing_refinement(refinement: Refinement) -> dict[str, Any]:
    return _filled(
        levels=dict(refinement.levels),
        functions={name: list(factors) for name, factors in refinement.functions.items()},
        measured=[_measured(one) for one in refinement.measured],
    )


def _measured(one: MeasuredFunction) -> dict[str, Any]:
    return {
        "function": one.function,
        "direction": one.direction,
        "frame": _text(one.frame_bytes, "B"),
        "traffic": one.traffic,
        "cycles": _text(one.cycles, "cycles"),
        "tables": dict(one.tables),
        "spread_ratio": float(one.spread_ratio),
    }


def _filled(**entries: Any) -> dict[str, Any]:
    """Leave out what says nothing: None, empty texts, lists and tables."""
    return {
        name: entry
        for name, entry in entries.items()
        if entry is not None and not (isinstance(entry, str | list | Mapping) and not entry)
    }


def _writing_line_cost(cycles: float, seconds: float) -> str | None:
    parts = [_text(cycles, "cycles")] if cycles else []
    parts += [_text(seconds, "s")] if seconds else []
    return " + ".join(part for part in parts if part) or None


def _text(value: float, unit: str) -> str | None:
    """Write a quantity so that it reads back as the same number; None for what is infinite."""
    if math.isinf(value):
        return None
    number = float(value)
    return f"{int(number)} {unit}" if number.is_integer() and abs(number) < 1e15 else f"{number!r} {unit}"
