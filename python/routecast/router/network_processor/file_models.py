"""What processor files and router files may say of network processors: the tables, their keys, units and meanings.

Every value may be left out where a base has it. In processor files each value has its source beside it, in ``source``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from routecast.quantity.fields import (
    BitRate,
    ByteRate,
    Count,
    FrameCount,
    Frequency,
    Number,
    Size,
    Span,
    TimePerByte,
)
from routecast.quantity.file_model import FileModel
from routecast.quantity.toml_file import shown
from routecast.router.load_table import LoadTable

__all__ = [
    "BlockTable",
    "EnginesTable",
    "LineCardTable",
    "LinkTable",
    "MemoryTable",
    "NetworkProcessorRouter",
    "Organisation",
    "ProcessorFile",
    "ProcessorTable",
    "ReferenceTable",
    "SliceTable",
    "StageTable",
    "StateTable",
]

Organisation = Literal["pipelined", "parallel", "staged"]

_SOURCE = "Where each value of this table comes from, by its key"


class EnginesTable(FileModel):
    """The processing engines, all alike."""

    count: Count | None = Field(default=None, description="How many engines")
    threads: Count | None = Field(default=None, description="Hardware threads (contexts) of an engine")
    frequency: Frequency | None = Field(default=None, description="Cycles per second of an engine, Hz")
    registers: Count | None = Field(
        default=None,
        description="General-purpose registers of an engine, which active threads share; 0: no limit",
    )
    spill: Number | None = Field(
        default=None, description="Cycles that each register too few costs a block for each frame"
    )
    switch: Number | None = Field(default=None, description="Cycles to turn to the next thread")
    code_words: Count | None = Field(
        default=None, description="Instructions that the control store of an engine holds; 0: no limit"
    )
    source: dict[str, str] = Field(default={}, description=_SOURCE)


class MemoryTable(FileModel):
    """A memory, or another unit that threads wait for."""

    name: str = Field(description="Name of the memory")
    channels: Count | None = Field(default=None, description="Accesses to different channels go on at once")
    latency: Span | None = Field(
        default=None, description="Latency of an access where nobody else is there, transfer included, s"
    )
    bandwidth: ByteRate | None = Field(default=None, description="Bytes per second of one channel, B/s")
    least: Size | None = Field(default=None, description="What a shorter access costs all the same, B")
    capacity: Size | None = Field(default=None, description="Size; none: no limit, B")
    source: dict[str, str] = Field(default={}, description=_SOURCE)


class ProcessorTable(FileModel):
    """A network processor: another one with what differs."""

    base: str = Field(
        default="", description="A processor that ships, or a *.processor.toml file, whose values are taken"
    )
    engines: EnginesTable = Field(default=EnginesTable(), description="The engines")
    memory: list[MemoryTable] = Field(
        default=[], description="Memories: those of the base by their name, or further ones"
    )
    ports: Count | None = Field(default=None, description="Interfaces")
    link: BitRate | None = Field(default=None, description="Rate of each link in each direction, bit/s")
    receive_buffer: Size | None = Field(default=None, description="Receive buffer on the chip, all ports together, B")
    transmit_buffer: Size | None = Field(default=None, description="Transmit buffer on the chip, all ports together, B")


class StateTable(FileModel):
    """Something that blocks keep in a memory."""

    name: str = Field(description="Name of the state")
    memory: str | None = Field(default=None, description="Name of the memory that it is kept in")
    size: Size | None = Field(default=None, description="Its size, B")
    source: dict[str, str] = Field(default={}, description=_SOURCE)


class ReferenceTable(FileModel):
    """What a block reads and writes of a state for one frame."""

    state: str = Field(description="Name of the state")
    accesses: Number = Field(default=1.0, description="Accesses for a frame, whatever its size; fractions are averages")
    accesses_per_byte: Number = Field(default=0.0, description="Besides, accesses for each byte of the frame")
    access: Size = Field(default=4.0, description="Bytes of one access, B")
    waits: Count = Field(default=1, description="How often the thread waits: accesses issued together are one wait")


class BlockTable(FileModel):
    """A step of the router; one of the processor's by its name, with what differs, or another one."""

    name: str = Field(description="Name of the block")
    after: str | None = Field(
        default=None, description='A block of your own: the block that it follows; "" for the first place'
    )
    present: bool = Field(default=True, description="false: frames go past it, and it has no engine")
    stub: bool = Field(
        default=False,
        description="true: it takes frames from its ring and puts them into the next, and neither works nor queues",
    )
    cycles: Number | None = Field(default=None, description="Instructions' cycles for a frame")
    cycles_per_byte: Number | None = Field(default=None, description="Besides, cycles for each byte of the frame")
    references: list[ReferenceTable] | None = Field(
        default=None, description="What it reads and writes in memories for a frame"
    )
    registers: Count | None = Field(default=None, description="Registers that a thread would like to have")
    code_words: Count | None = Field(default=None, description="Instructions of its program")
    queue: FrameCount | None = Field(
        default=None, description="Frames that it keeps for each output port, in its memory, frames"
    )
    engines: Count | None = Field(default=None, description="Engines of its stage, where it has one of its own")
    threads: Count | None = Field(
        default=None, description="Active threads on each engine of its stage; 0: all that the hardware has"
    )
    source: dict[str, str] = Field(default={}, description=_SOURCE)


class LinkTable(FileModel):
    """How frames go from one stage to the next."""

    memory: str | None = Field(default=None, description='Memory of the ring; "": registers of the next engine')
    put: Number | None = Field(default=None, description="Cycles to put a frame's handle into the ring")
    get: Number | None = Field(default=None, description="Cycles to get it out")
    access: Size | None = Field(default=None, description="Bytes of a handle, B")
    frames: FrameCount | None = Field(default=None, description="Length of the ring, frames")
    source: dict[str, str] = Field(default={}, description=_SOURCE)


class StageTable(FileModel):
    """Blocks that a thread runs one after the other, on some engines; for the organisation "staged"."""

    name: str = Field(default="", description="Name to find it by, in paths; none: its number")
    blocks: list[str] = Field(description="Blocks in the order of the way")
    engines: Count | list[Count] = Field(
        default=1, description="How many engines of its own, or the numbers of engines that stages may share"
    )
    threads: Count = Field(default=0, description="Active threads on each engine; 0: all that the hardware has")
    link: LinkTable = Field(default=LinkTable(), description="How frames come to it, where that differs")


class SliceTable(FileModel):
    """A meta-router that shares the processor."""

    name: str = Field(description="Name of the slice")
    bandwidth: BitRate = Field(description="Provisioned on each port, with the 20 bytes of each frame, bit/s")
    share: Number = Field(description="Its share of the traffic, 0 to 1")
    cycles_ratio: dict[str, Number] = Field(
        default={}, description="Cycles of its blocks over those of the plain router's, by block"
    )
    policing: Literal["none", "policed", "weighted"] = Field(
        default="none",
        description="Beyond its bandwidth: none; policed, dropped first of all; weighted, ports serve by bandwidths",
    )


class LineCardTable(FileModel):
    """What stands between each port and the processor: a card that validates frames, and a crossbar switch."""

    per_packet: Span = Field(default=0.0, description="To validate a frame that comes in, s")
    per_byte: TimePerByte = Field(default=0.0, description="Besides, for each byte of the frame, s/B")
    out_per_packet: Span = Field(default=0.0, description="For a frame that goes out, s")
    out_per_byte: TimePerByte = Field(default=0.0, description="Besides, for each byte of the frame, s/B")
    latency: Span = Field(default=0.0, description="Of the crossbar, each time that it is crossed, s")
    queue: FrameCount = Field(
        default=64, description="That wait before a card, its link to the switch, and its line, each, frames"
    )
    link: BitRate | None = Field(
        default=None, description="Rate of its line to the outside; none: that of the processor's, bit/s"
    )


class ProcessorFile(ProcessorTable):
    """A network processor as a ``*.processor.toml`` file, with the blocks of a router on it."""

    name: str = Field(description="Name of the processor")
    title: str = Field(description="What it is, for people")
    reference: str = Field(default="", description="Where its values come from in the main")
    notes: list[str] = Field(default=[], description="What a user must know")
    state: list[StateTable] = Field(default=[], description="What its blocks keep in memories")
    block: list[BlockTable] = Field(default=[], description="The blocks of a router on it, in the order of the way")
    ring: LinkTable = Field(default=LinkTable(), description="How frames go from stage to stage")
    parallel: list[str] = Field(
        default=[], description="Blocks that each engine runs to completion in the parallel organisation"
    )
    source: dict[str, str] = Field(default={}, description="Where the values of the processor come from, by key")


def _as_table(value: Any) -> Any:
    if isinstance(value, str):
        return {"base": value}
    if isinstance(value, dict | ProcessorTable):
        return value
    message = f'got {shown(value)}: give a name or a file in quotes, or a table {{ base = "…", … }}'
    raise PydanticCustomError("value", "{message}", {"message": message})


ProcessorOrName = Annotated[ProcessorTable, BeforeValidator(_as_table, json_schema_input_type=str | ProcessorTable)]


class NetworkProcessorRouter(FileModel):
    """A router on a network processor in short: the processor, and how its engines are organised."""

    builder: Literal["network_processor"] = Field(description="Name of the builder")
    name: str = Field(default="", description="Name of the router; without it the file's")
    processor: ProcessorOrName = Field(
        description="Name of a processor that ships, a *.processor.toml file, or a table over a base"
    )
    organisation: Organisation = Field(
        default="pipelined",
        description="A stage for every block; engines that each run several blocks; or as [[stage]] says",
    )
    engines: Count = Field(default=1, description="Parallel: how many engines run the blocks of parallel to completion")
    threads: Count = Field(default=0, description="Parallel: active threads on each of them; 0: all")
    parallel: list[str] | None = Field(
        default=None, description="Parallel: blocks that each of those engines runs; none: the processor's"
    )
    ring: LinkTable = Field(default=LinkTable(), description="How frames go from stage to stage, where that differs")
    state: list[StateTable] = Field(default=[], description="States of the processor's blocks, or further ones")
    block: list[BlockTable] = Field(default=[], description="Blocks of the processor's router, or further ones")
    stage: list[StageTable] = Field(default=[], description="Staged: which blocks run on which engines")
    slice: list[SliceTable] = Field(default=[], description="Meta-routers that share the processor; none: one")
    line_card: LineCardTable | None = Field(
        default=None, description="What stands before each port of the processor; none: nothing"
    )
    burst: FrameCount = Field(default=64, description="What a policed slice may send at once to a port, frames")
    load: LoadTable | None = Field(default=None, description="Load to evaluate with by default")
