"""What stands in a ``*.hardware.toml``: tables, their keys, units and meanings, as pydantic models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.hardware.fields import Cycles, FormulaText, LineCost
from routecast.hardware.model import AccessKind, LevelName
from routecast.quantity.fields import (
    BitRate,
    Count,
    FileModel,
    FrameCount,
    FrameRate,
    Frequency,
    Number,
    Size,
    TransferRate,
)

__all__ = [
    "AccessTable",
    "CallTable",
    "CostTable",
    "CpuTable",
    "FramesTable",
    "HardwareFile",
    "LevelTable",
    "MeasuredTable",
    "MemoryTable",
    "NicTable",
    "OperationTable",
    "PcieTable",
    "RefinementTable",
]

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
    batched: LineCost = Field(
        default=(0.0, 0.0), description="Random lines asked for together, with prefetch"
    )
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

    of: AccessKind = Field(
        description="table: the packet's flow decides which lines. frame: lines of the frame itself"
    )
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
    residual_ratio: Ratio | None = Field(
        default=None, description="Root mean square of the fit's relative residuals"
    )
    samples: Count = Field(default=0, ge=0, description="Measurements behind the formula")
    factor: Factor = Field(
        default=1.0, description="Correction learnt from measured functions; multiplies the cycles"
    )
    source: Source = ""


class OperationTable(CostTable):
    """What an elementary operation costs on this host."""

    source: Annotated[str, Field(min_length=1)] = Field(description="Where the values are from")
    remote: CostTable | None = Field(
        default=None, description="The cost where the frame lies in the other socket's L3"
    )


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
