"""A network processor as data: engines whose hardware threads hide the latency of memories, and the blocks they run.

::

      port ─► receive ─ring─► demultiplex ─► parse ─► lookup ─► header format ─► queue manager ─► transmit ─► port
               │                 │             │        │
               └── a Stage: blocks that a thread runs to completion, on some engines ──┐
                                                                                     ▼
      engine: one instruction at a time, `threads` contexts; a thread that waits for a memory lets the next one run

The same values say a run-to-completion application of DPDK (one stage, one thread to an engine: nothing is hidden) and
a pipeline of DPDK (a stage to a core, rings in the cache between them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Block",
    "Engines",
    "LineCard",
    "Link",
    "Memory",
    "NetworkProcessor",
    "Reference",
    "Slice",
    "Stage",
    "State",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The processing engines, all alike.

    Parameters
    ----------
    count : int
    threads : int
        Hardware contexts of one engine; 1: none beside the only one, so that memory latency is never hidden.
    frequency_hz : float
    registers : int
        General-purpose registers of an engine, which its active threads share out evenly.
    spill_cycles : float
        What a block pays per frame for each register that it has too few.
    switch_cycles : float
        To turn from a thread that waits to the next one.
    code_words : int
        Instructions that an engine's control store holds; 0: no limit.
    """

    count: int
    threads: int = 1
    frequency_hz: float
    registers: int = 0
    spill_cycles: float = 0.0
    switch_cycles: float = 0.0
    code_words: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory, or another unit that threads wait for (hash unit, cipher).

    Parameters
    ----------
    name : str
        ``"scratch"``, ``"sram"``, ``"dram"``.
    channels : int
        Accesses to different channels go on at once.
    latency_s : float
        Of an access where nobody else is there, transfer included.
    bytes_per_s : float
        That one channel moves.
    least_bytes : int
        What a shorter access costs all the same (a burst).
    capacity_bytes : int
        0: no limit.
    """

    name: str
    channels: int = 1
    latency_s: float
    bytes_per_s: float
    least_bytes: int = 4
    capacity_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProcessor:
    """The hardware. Every value of a preset has its source beside it in the preset's file.

    Parameters
    ----------
    name : str
    engines : Engines
    memories : tuple of Memory
    ports : int
    link_bps : float
        Of each port.
    receive_buffer_bytes, transmit_buffer_bytes : int
        On the chip, for all ports together.
    sources : tuple of str
    """

    name: str
    engines: Engines
    memories: tuple[Memory, ...]
    ports: int
    link_bps: float
    receive_buffer_bytes: int = 0
    transmit_buffer_bytes: int = 0
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Something that blocks keep in a memory: the route table, frames, queue descriptors.

    Parameters
    ----------
    name : str
    memory : str
        Where it is now; :mod:`routecast.plan.mapping` may choose another.
    size_bytes : int
    """

    name: str
    memory: str
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a block reads and writes of a state for one frame.

    Parameters
    ----------
    state : str
    accesses : float
        Per frame, whatever its size.
    accesses_per_byte : float
        Besides, for each byte of the frame (a block that moves payload).
    access_bytes : int
        Of one access.
    waits : int
        How often the thread waits: accesses that are issued together are waited for once.
    """

    state: str
    accesses: float = 1.0
    accesses_per_byte: float = 0.0
    access_bytes: int = 4
    waits: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A step of the router: receive, demultiplex, parse, lookup, header format, queue manager, transmit, or another.

    Parameters
    ----------
    name : str
    cycles : float
        Instructions' cycles per frame, without waiting for memories.
    cycles_per_byte : float
    references : tuple of Reference
    registers : int
        That a thread would like to have.
    code_words : int
        Of its program.
    """

    name: str
    cycles: float
    cycles_per_byte: float = 0.0
    references: tuple[Reference, ...] = ()
    registers: int = 0
    code_words: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How frames (their handles) go from one stage to the next.

    Parameters
    ----------
    memory : str
        Of the ring; empty: next-neighbour registers, which cost cycles only.
    put_cycles, get_cycles : float
    access_bytes : int
        Of a handle; it is written once and read once, each with a wait.
    frames : int
        Length of the ring; what comes when it is full is dropped (S7).
    """

    memory: str = ""
    put_cycles: float = 0.0
    get_cycles: float = 0.0
    access_bytes: int = 4
    frames: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Blocks that a thread runs one after the other for a frame, on some engines.

    *Pipelined*: a stage for every block. *Parallel*: one stage of all blocks that may be repeated.

    Parameters
    ----------
    blocks : tuple of str
        In the order of the way.
    engines : tuple of int
        Numbers of its engines. Engines may have several stages, whose threads add up to the hardware's at most.
    threads : int
        Active threads on each of its engines; 0: all that the hardware has.
    link : Link
        By which frames come to it; that of the first stage is the receive buffer.
    """

    blocks: tuple[str, ...]
    engines: tuple[int, ...]
    threads: int = 0
    link: Link = field(default_factory=Link)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A meta-router that shares the processor: its own blocks, and the bandwidth provisioned for it.

    Parameters
    ----------
    name : str
    bandwidth_bps : float
        Provisioned on each port (L1: with the 20 bytes, S2).
    share : float
        Of the traffic that is its own, 0..1.
    cycles_ratio : Mapping of str to float
        Cycles of its blocks over those of the plain router's; blocks that are not named have 1.
    policing : {"none", "policed", "weighted"}
        ``policed``: what it sends beyond its bandwidth is dropped before it takes others' time. ``weighted``: slices
        have queues of their own at each port, which shares its link out by their bandwidths; what one leaves, others
        may have. That keeps links apart, not engines. ``none``: neither.
    """

    name: str
    bandwidth_bps: float
    share: float
    cycles_ratio: Mapping[str, float] = field(default_factory=dict)
    policing: Literal["none", "policed", "weighted"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCard:
    """What stands between each port and the network processor: a processor of its own, and a crossbar switch.

    All are alike, one for each port of the processor. Frames are validated there, cross the switch to the processor,
    and cross it again on their way out (Heller 2006, sec. 2.3). That the two directions have processors of their own is
    an assumption, after the ingress and egress parts of that router's line card (J. DeHart, Design of a High
    Performance PlanetLab Node: Line Card, 2006).

    Parameters
    ----------
    per_packet_s, per_byte_s : float
        To validate a frame that comes in.
    out_per_packet_s, out_per_byte_s : float
        For a frame that goes out; both 0: nothing is done to it.
    latency_s : float
        Of the crossbar, each time that it is crossed. It does not block: it takes time and no capacity.
    queue_frames : int
        That wait before each processor of a card, before its link to the switch, and before its line; 64 is an
        assumption.
    link_bps : float
        Of the line to the outside; 0: that of the processor's ports, which is also the rate of the switch's.
    """

    per_packet_s: float = 0.0
    per_byte_s: float = 0.0
    out_per_packet_s: float = 0.0
    out_per_byte_s: float = 0.0
    latency_s: float = 0.0
    queue_frames: int = 64
    link_bps: float = 0.0

    def line_bps(self, processor: NetworkProcessor) -> float:
        """Return the rate of the line to the outside."""
        return self.link_bps or processor.link_bps
