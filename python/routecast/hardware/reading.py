"""From the text of a ``*.hardware.toml`` to a :class:`Hardware`: every fault at once, each with its place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from routecast.errors import FileProblem, Problem
from routecast.hardware.formula import Formula
from routecast.hardware.model import (
    Access,
    CallCost,
    Cpu,
    Hardware,
    MeasuredFunction,
    MemoryLevel,
    MemoryTiming,
    Nic,
    OperationCost,
    Pcie,
    Refinement,
)
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.toml_file import parse_toml, place_of, validated

if TYPE_CHECKING:
    from routecast.hardware.document import (
        CostTable,
        HardwareFile,
        LevelTable,
        NicTable,
        OperationTable,
        RefinementTable,
    )

__all__ = ["PARAMETERS", "hardware_schema", "parse_hardware"]

PARAMETERS = frozenset(
    {"hdr", "data", "b", "es", "max", "N", "HE", "p", "rules", "tuples", "burst", "n", "lines"}
)
"""Names that the formulas of operations may have: the parameters of all elementary operations."""

_LEVELS = ("L1", "L2", "L3", "DRAM")


def parse_hardware(text: str, *, subject: str = "hardware file") -> Hardware:
    """Read a host from the text of its file; ``subject`` is what messages call it.

    Raises
    ------
    routecast.errors.FileProblem
        The text is no TOML, or says something wrong; all faults with their places.
    """
    from routecast.hardware.document import HardwareFile

    document = validated(HardwareFile, parse_toml(text, subject), subject)
    problems = _wrong_levels(document.level)
    operations = {
        name: _operation(name, table, ("operation", name), problems)
        for name, table in document.operation.items()
    }
    memory = document.memory
    if memory is not None and (memory.cas_latency is None) != (memory.data_rate is None):
        missing = "cas_latency" if memory.cas_latency is None else "data_rate"
        problems.append(
            Problem(f"memory.{missing}", "is missing: give both cas_latency and data_rate, or neither")
        )
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
    from routecast.hardware.document import HardwareFile

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
        problems.append(
            Problem("level", f"got {names}: levels stand in the order {', '.join(_LEVELS)}, DRAM last")
        )
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


def _operation(
    name: str, table: OperationTable, place: tuple[str, ...], problems: list[Problem]
) -> OperationCost:
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
            problems.append(
                Problem(place_of((*place, *at, "table_lines")), 'is for of = "table": a frame has none')
            )
        accesses.append(
            Access(
                of=access.of,
                lines=formula(access.lines, *at, "lines"),
                table_lines=None
                if access.table_lines is None
                else formula(access.table_lines, *at, "table_lines"),
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
