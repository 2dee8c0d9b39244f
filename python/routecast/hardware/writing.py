"""From a :class:`Hardware` to the text of its file, which reads back as the same value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from routecast.hardware.model import (
    Access,
    Hardware,
    MeasuredFunction,
    MemoryLevel,
    Nic,
    OperationCost,
    Refinement,
)

__all__ = ["hardware_text"]


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
        level=[_level(level) for level in hardware.levels],
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
        nic=[_nic(nic) for nic in hardware.nics],
        operation={name: _cost(cost) for name, cost in hardware.operations.items()},
        refinement=_refinement(hardware.refinement),
        facts={name: fact for name, fact in hardware.facts.items() if fact is not None},
    )


def _level(level: MemoryLevel) -> dict[str, Any]:
    return _filled(
        name=level.name,
        size=_text(level.size_bytes, "B"),
        dependent=_line_cost(level.dependent_cycles, level.dependent_s),
        batched=_line_cost(level.batched_cycles, level.batched_s),
        streamed=_line_cost(level.streamed_cycles, level.streamed_s),
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


def _nic(nic: Nic) -> dict[str, Any]:
    return _filled(
        name=nic.name,
        ports=nic.ports,
        link=_text(nic.link_bps, "bit/s"),
        cap=_text(nic.cap_pps, "frames/s"),
        pcie=None if nic.pcie is None else {"generation": nic.pcie.generation, "lanes": nic.pcie.lanes},
        socket=nic.socket,
        source=nic.source,
    )


def _cost(cost: OperationCost) -> dict[str, Any]:
    return _filled(
        cycles=cost.cycles.text,
        source=cost.source,
        residual_ratio=None if math.isnan(cost.residual_ratio) else float(cost.residual_ratio),
        samples=cost.samples or None,
        factor=None if cost.factor == 1.0 else float(cost.factor),
        access=[_access(access) for access in cost.accesses],
        remote=None if cost.remote is None else _cost(cost.remote),
    )


def _access(access: Access) -> dict[str, Any]:
    return _filled(
        of=access.of,
        lines=access.lines.text,
        table_lines=None if access.table_lines is None else access.table_lines.text,
        pattern=access.pattern,
    )


def _refinement(refinement: Refinement) -> dict[str, Any]:
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


def _line_cost(cycles: float, seconds: float) -> str | None:
    parts = [_text(cycles, "cycles")] if cycles else []
    parts += [_text(seconds, "s")] if seconds else []
    return " + ".join(part for part in parts if part) or None


def _text(value: float, unit: str) -> str | None:
    """Write a quantity so that it reads back as the same number; None for what is infinite."""
    if math.isinf(value):
        return None
    number = float(value)
    return f"{int(number)} {unit}" if number.is_integer() and abs(number) < 1e15 else f"{number!r} {unit}"
