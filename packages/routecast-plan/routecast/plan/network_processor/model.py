"""A network processor as data: engines whose hardware threads hide the latency of memories, and the blocks they run.

::

      port ─► receive ─ring─► demultiplex ─► parse ─► lookup ─► header format ─► queue manager ─► transmit ─► port
               │                 │             │        │
               └── a Stage: blocks that a thread runs to completion, on some engines ──┐
                                                                                     ▼
      engine: one instruction at a time, `threads` contexts; a thread that waits for a memory lets the next one run

The same values describe a run-to-completion application of DPDK (one stage, one thread per engine, so no latency is
hidden) and a pipeline of DPDK (a stage per core, with rings in the cache between them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from routecast.quantity.fields import (
    BitRate,
    ByteRate,
    Bytes,
    Count,
    Duration,
    FrameCount,
    Frequency,
    Number,
    Ratio,
    Share,
    Span,
    TimePerByte,
)
from routecast.quantity.schema import field, value
from routecast.router.bounds import FREQUENCIES_HZ, LINK_RATES_BPS, LONGEST_BYTE_S, LONGEST_S, MAX_FRAMES

__all__ = [
    "MAX_ENGINES",
    "MAX_PORTS",
    "MAX_THREADS",
    "Block",
    "Engines",
    "Hardware",
    "InstructionRun",
    "LineCard",
    "Link",
    "Memory",
    "NetworkProcessor",
    "Reference",
    "Slice",
    "Stage",
    "State",
    "Step",
    "joined",
    "occupancy_s",
    "stage_steps",
]

MAX_ENGINES: Final = 1024
MAX_PORTS: Final = 1024
MAX_THREADS: Final = 1024
_MAX_REGISTERS = 1 << 20
_MAX_WORDS = 1 << 30
_MAX_ACCESS_BYTES = 1 << 20


@value
class Engines:
    """The processing engines, all alike."""

    count: Count = field("Number of engines", ge=1, le=MAX_ENGINES)
    # With one thread memory latency is never hidden.
    threads: Count = field("Hardware threads (contexts) of an engine", default=1, ge=1, le=MAX_THREADS)
    frequency_hz: Frequency = field("Cycles per second of an engine, Hz", within=FREQUENCIES_HZ)
    registers: Count = field(
        "General-purpose registers of an engine, which active threads share; 0: no limit",
        default=0,
        ge=0,
        le=_MAX_REGISTERS,
    )
    spill_cycles: Number = field("Cycles of a block per frame for each missing register", default=0.0, ge=0.0)
    switch_cycles: Number = field("Cycles to turn to the next thread", default=0.0, ge=0.0)
    code_words: Count = field(
        "Instructions that the control store of an engine holds; 0: no limit", default=0, ge=0, le=_MAX_WORDS
    )


@value
class Memory:
    """A memory, or another unit that threads wait for (hash unit, cipher)."""

    name: str = field("Name of the memory")
    channels: Count = field("Channels, which serve accesses at the same time", default=1, ge=1, le=1024)
    latency_s: Duration = field("Latency of an access to an idle memory, transfer included, s", le=LONGEST_S)
    bandwidth_bytes_per_s: ByteRate = field("Bytes per second of one channel, B/s")
    least_bytes: Bytes = field("Least size of an access (a burst), B", default=4)
    capacity_bytes: Bytes = field("Size; none: no limit, B", default=0)


@value
class Hardware:
    """The hardware of a network processor."""

    engines: Engines = field("The engines")
    memories: tuple[Memory, ...] = field("Memories", key="memory")
    ports: Count = field("Interfaces", ge=1, le=MAX_PORTS)
    link_bps: BitRate = field("Rate of each link in each direction, bit/s", within=LINK_RATES_BPS)
    receive_buffer_bytes: Bytes = field("Receive buffer on the chip, all ports together, B", default=0)
    transmit_buffer_bytes: Bytes = field("Transmit buffer on the chip, all ports together, B", default=0)


@value
class NetworkProcessor(Hardware):
    """The named hardware of a network processor. A preset's file states the source of each value."""

    name: str = field("Name of the processor")
    sources: tuple[str, ...] = field("Main source of its values", default=())


@value
class State:
    """State of blocks in a memory: the route table, frames, queue descriptors."""

    name: str = field("Name of the state")
    # :mod:`routecast.plan.mapping` may choose another memory.
    memory: str = field("Name of the memory that holds the state")
    size_bytes: Bytes = field("Size of the state, B", default=0)


@value
class Reference:
    """Accesses of a block to a state for one frame."""

    state: str = field("Name of the state")
    accesses: Number = field("Accesses for a frame of any size; fractions are averages", default=1.0, ge=0.0)
    accesses_per_byte: Number = field("Additional accesses for each byte of the frame", default=0.0, ge=0.0)
    access_bytes: Bytes = field("Bytes of one access, B", default=4, ge=1, le=_MAX_ACCESS_BYTES)
    waits: Count = field("Waits of the thread; accesses issued together are one wait", default=1, ge=0, le=1 << 20)


@value
class Block:
    """A step of the router: receive, demultiplex, parse, lookup, header format, queue manager, transmit, or another."""

    name: str = field("Name of the block")
    # Without waits for memories.
    cycles: Number = field("Cycles of the instructions for a frame", ge=0.0)
    cycles_per_byte: Number = field("Additional cycles for each byte of the frame", default=0.0, ge=0.0)
    references: tuple[Reference, ...] = field("Accesses to memories for a frame", default=())
    registers: Count = field("Registers that a thread needs to avoid spills", default=0, ge=0, le=_MAX_REGISTERS)
    code_words: Count = field("Instructions of its program", default=0, ge=0, le=_MAX_WORDS)


@value
class Link:
    """The connection of a stage to the next, over which handles of frames pass.

    A handle is written once and read once, each with a wait. A frame that finds the ring full is dropped (S7).
    """

    # Next-neighbour registers cost only cycles.
    memory: str = field('Memory of the ring; "": registers of the next engine', default="")
    put_cycles: Number = field("Cycles to put a frame's handle into the ring", default=0.0, ge=0.0)
    get_cycles: Number = field("Cycles to get a frame's handle from the ring", default=0.0, ge=0.0)
    access_bytes: Bytes = field("Bytes of a handle, B", default=4, ge=1, le=_MAX_ACCESS_BYTES)
    frames: FrameCount = field("Length of the ring, frames", default=128, le=MAX_FRAMES)


@value
class Stage:
    """Blocks that a thread runs in sequence for a frame, on some engines.

    *Pipelined*: a stage for every block. *Parallel*: one stage of several blocks on several engines.
    """

    blocks: tuple[str, ...] = field("Blocks in the order of the path")
    # An engine may have several stages, whose threads add up to at most the hardware's threads.
    engines: tuple[int, ...] = field("Numbers of its engines")
    threads: Count = field(
        "Active threads on each engine; 0: all that the hardware has", default=0, ge=0, le=MAX_THREADS
    )
    # The first stage has the receive buffer instead.
    link: Link = field("Link from the stage before it", default=Link())


@value
class Slice:
    """A meta-router that shares the processor: its own blocks, and the bandwidth provisioned for it.

    ``policed``: traffic beyond its bandwidth is dropped before it takes time of other slices. ``weighted``: each slice
    has its own queue at each port, which divides its link by their bandwidths; other slices use the bandwidth that a
    slice leaves. This isolates links, not engines. ``none``: no isolation.
    """

    name: str = field("Name of the slice")
    bandwidth_bps: BitRate = field(
        "Provisioned bandwidth on each port, with the 20 bytes of each frame, bit/s", within=LINK_RATES_BPS
    )
    share: Ratio = field("Share of the traffic")
    # Other blocks have the ratio 1.
    cycles_ratio: Mapping[str, Share] = field(
        "Cycles of its blocks relative to the router's blocks, by block", default_factory=dict
    )
    policing: Literal["none", "policed", "weighted"] = field(
        "Beyond its bandwidth: none; policed, dropped first of all; weighted, ports serve by bandwidths", default="none"
    )


@value
class LineCard:
    """The line card between each port and the processor, which validates frames, and the crossbar switch.

    Each port of the processor has one, and all are alike. It validates frames; the frames cross the switch to the
    processor and cross it again on their way out (Heller 2006, sec. 2.3). An assumption is that each direction has its
    own processor, like the ingress and egress parts of that router's line card (J. DeHart, Design of a High
    Performance PlanetLab Node: Line Card, 2006).
    """

    per_packet_s: Span = field("Time to validate an arriving frame, s", default=0.0, le=LONGEST_S)
    per_byte_s: TimePerByte = field("Time for each byte of an arriving frame, s/B", default=0.0, le=LONGEST_BYTE_S)
    out_per_packet_s: Span = field("Time for a leaving frame, s", default=0.0, le=LONGEST_S)
    out_per_byte_s: TimePerByte = field("Time for each byte of a leaving frame, s/B", default=0.0, le=LONGEST_BYTE_S)
    # The crossbar does not block: it takes time and no capacity.
    latency_s: Span = field("Latency of each pass through the crossbar, s", default=0.0, le=LONGEST_S)
    # 64 is an assumption.
    queue_frames: FrameCount = field(
        "Length of each queue: before a card, its link to the switch, and its line, frames", default=64, le=MAX_FRAMES
    )
    # Its link to the switch has the rate of the processor's ports.
    link_bps: BitRate = field(
        "Rate of its line to the outside; none: that of the processor's ports, bit/s",
        default=0.0,
        within=LINK_RATES_BPS,
    )

    def line_bps(self, processor: NetworkProcessor) -> float:
        """Return the rate of the line to the outside."""
        return self.link_bps or processor.link_bps


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionRun:
    """Instructions on an engine: ``cycles + cycles_per_byte·S`` for a frame of ``S`` bytes.

    In a stage, a thread executes runs of instructions for a frame and waits for memories between them.

    ::

        ring ─► get │ wait ring │ run parse │ wait dram │ run parse, lookup │ wait sram │ run lookup, put │ wait ring ─►

    A block's instructions are spread evenly over the runs before, between and after its waits. All references of a
    block to the same memory form one step with the sum of their waits: the positions and the number of the waits do not
    change the bounds on throughput (:mod:`routecast.plan.network_processor.expectation`), and fewer steps are faster
    to evaluate.

    Fractions are averages: 0.3 accesses with one wait cost each frame 0.3 of the access and 0.3 of the wait. Accesses
    without a wait are issued ahead (prefetching, posted writes): they hold the thread only while the channel is busy.
    """

    block: str
    cycles: float
    cycles_per_byte: float = 0.0


@value
class Wait:
    """Accesses to a memory: they occupy a channel, and then the thread waits for the rest of the latency."""

    block: str
    memory: str
    busy_s: float = field("Time of a channel for a frame, independent of its size")
    busy_s_per_byte: float = field("Additional time of a channel for each byte of the frame", default=0.0)
    rest_s: float = field("Additional wait of the thread when the memory is otherwise idle", default=0.0)


Step = InstructionRun | Wait


def occupancy_s(memory: Memory, access_bytes: int) -> float:
    """Return the time that an access keeps a channel of a memory busy, s."""
    return max(access_bytes, memory.least_bytes) / memory.bandwidth_bytes_per_s


def block_cycles(block: Block, processor: NetworkProcessor, active_threads: int) -> float:
    """Return the cycles of a block for a frame, with register spills where threads have too few registers."""
    engines = processor.engines
    if not engines.registers:
        return block.cycles
    missing = max(0.0, block.registers - engines.registers // max(active_threads, 1))
    return block.cycles + missing * engines.spill_cycles


def stage_steps(
    stage: Stage,
    *,
    processor: NetworkProcessor,
    blocks: Mapping[str, Block],
    states: Mapping[str, State],
    active_threads: int,
    source: Link | None,
    target: Link | None,
    ratios: Mapping[str, float] | None = None,
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps of a thread of a stage for a frame, up to the handover to the next stage.

    ``blocks`` and ``states``: by name; ``active_threads``: threads of all stages on the engine, which share its
    registers; ``source``: ring before the stage, None for the receive buffer, which costs no time; ``target``: ring
    after the stage, None for a port; ``ratios``: factors on the cycles of blocks (:attr:`Slice.cycles_ratio`).
    """
    memories = {memory.name: memory for memory in processor.memories}
    first, last = stage.blocks[0], stage.blocks[-1]
    steps: list[Step] = list(_ring(source, first, memories, getting=True)) if source is not None else []
    for name in stage.blocks:
        block = blocks[name]
        cycles = block_cycles(block, processor, active_threads) * (ratios or {}).get(name, 1.0)
        per_byte = block.cycles_per_byte * (ratios or {}).get(name, 1.0)
        waits = _waits(block, states, memories, processor)
        parts = len(waits) + 1
        run = InstructionRun(block=name, cycles=cycles / parts, cycles_per_byte=per_byte / parts)
        steps.append(run)
        for wait, switches in waits:
            steps += [wait, replace(run, cycles=run.cycles + switches)]
    put = list(_ring(target, last, memories, getting=False)) if target is not None else []
    return joined(steps), joined(put)


def _ring(link: Link, block: str, memories: Mapping[str, Memory], *, getting: bool) -> Iterator[Step]:
    cycles = link.get_cycles if getting else link.put_cycles
    if cycles:
        yield InstructionRun(block=block, cycles=cycles)
    if link.memory:
        memory = memories[link.memory]
        busy_s = occupancy_s(memory, link.access_bytes)
        yield Wait(block=block, memory=link.memory, busy_s=busy_s, rest_s=max(memory.latency_s - busy_s, 0.0))


def _waits(
    block: Block, states: Mapping[str, State], memories: Mapping[str, Memory], processor: NetworkProcessor
) -> list[tuple[Wait, float]]:
    """Return a block's waits, one for each memory in the order of its references, with the cycles of its switches."""
    waits: dict[str, tuple[Wait, float]] = {}
    for reference in block.references:
        memory = memories[states[reference.state].memory]
        wait, times = _wait(block.name, reference, memory)
        if not wait.busy_s and not wait.busy_s_per_byte:
            continue
        switches = times * processor.engines.switch_cycles
        if memory.name in waits:
            before, counted = waits[memory.name]
            wait = replace(
                before,
                busy_s=before.busy_s + wait.busy_s,
                busy_s_per_byte=before.busy_s_per_byte + wait.busy_s_per_byte,
                rest_s=before.rest_s + wait.rest_s,
            )
            switches += counted
        waits[memory.name] = (wait, switches)
    return list(waits.values())


def _wait(block: str, reference: Reference, memory: Memory) -> tuple[Wait, float]:
    """Return the wait of a reference, and the number of times that its thread waits.

    ``n`` accesses in ``w`` waits, each access busy for ``t`` of its latency ``L``, take ``w·L + (n − w)·t`` unloaded.
    """
    busy_s = occupancy_s(memory, reference.access_bytes)
    times = float(reference.waits)
    if not reference.accesses_per_byte:
        times = min(times, reference.accesses)
    return Wait(
        block=block,
        memory=memory.name,
        busy_s=reference.accesses * busy_s,
        busy_s_per_byte=reference.accesses_per_byte * busy_s,
        rest_s=times * max(memory.latency_s - busy_s, 0.0),
    ), times


def joined(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with successive runs merged and empty runs left out."""
    merged: list[Step] = []
    for step in steps:
        if isinstance(step, InstructionRun) and not step.cycles and not step.cycles_per_byte:
            continue
        before = merged[-1] if merged else None
        if isinstance(step, InstructionRun) and isinstance(before, InstructionRun):
            merged[-1] = replace(
                before,
                cycles=before.cycles + step.cycles,
                cycles_per_byte=before.cycles_per_byte + step.cycles_per_byte,
            )
        else:
            merged.append(step)
    return tuple(merged)
