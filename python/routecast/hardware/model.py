"""A host as data: processor, caches, memory timing, network cards, and what each elementary operation costs on it.

::

    Hardware
     ├─ cpu          sockets, cores, clock
     ├─ levels       L1 L2 L3 DRAM: size, cost of a line fetched (dependent, batched, streamed)
     ├─ memory       CAS latency and data rate: what the memory can serve
     ├─ operations   elementary operation -> cycles(parameters) + lines touched(parameters)
     └─ nics, call   network cards with their bus; the cost of calling a function for a batch

An elementary operation (Baldi & Sapio 2018, sec. 2.1) has its meaning and parameters in
:mod:`routecast.function.operations`; here stands only what it costs on this host.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from routecast.hardware.formula import Formula
from routecast.quantity.schema import field, value

__all__ = [
    "Access",
    "AccessKind",
    "CallCost",
    "Cpu",
    "Hardware",
    "LevelName",
    "MeasuredFunction",
    "MemoryLevel",
    "MemoryTiming",
    "Nic",
    "OperationCost",
    "Pcie",
    "Refinement",
]

LevelName = Literal["L1", "L2", "L3", "DRAM"]
AccessKind = Literal["table", "frame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """The processor: ``sockets`` x ``cores_per_socket`` cores at ``frequency_hz`` (the clock that cycles count)."""

    name: str
    sockets: int
    cores_per_socket: int
    frequency_hz: float
    source: str = ""

    @property
    def cores(self) -> int:
        """Cores of the machine."""
        return self.sockets * self.cores_per_socket


@value
class MemoryLevel:
    """One level of the memory hierarchy and what a core pays for a line that is found there.

    Costs come on top of the operations' own cycles, which hold for data in L1; each is ``_cycles`` of the core plus
    ``_s`` seconds that do not scale with its clock.
    """

    name: LevelName
    size_bytes: float = field(
        "Bytes that one core's data can occupy (of L3: the part that it gets); infinite for DRAM", default=math.inf
    )
    dependent_cycles: float = field("Each access waits for the one before (pointer chase)", default=0.0)
    dependent_s: float = field("Each access waits for the one before (pointer chase)", default=0.0)
    batched_cycles: float = field(
        "Random lines asked for together in a batch, with prefetch: the misses overlap", default=0.0
    )
    batched_s: float = field(
        "Random lines asked for together in a batch, with prefetch: the misses overlap", default=0.0
    )
    streamed_cycles: float = field("Lines in the order of their addresses; the hardware prefetcher helps", default=0.0)
    streamed_s: float = field("Lines in the order of their addresses; the hardware prefetcher helps", default=0.0)
    source: str = ""

    def line_cycles(self, pattern: str, frequency_hz: float) -> float:
        """Return what a core pays for a line found here, in cycles; ``pattern`` is dependent, batched or streamed."""
        cycles, seconds = {
            "dependent": (self.dependent_cycles, self.dependent_s),
            "batched": (self.batched_cycles, self.batched_s),
            "streamed": (self.streamed_cycles, self.streamed_s),
        }[pattern]
        return cycles + seconds * frequency_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTiming:
    """What the memory serves: an access takes ``(2·CAS + 3) / data_rate`` seconds (Baldi & Sapio 2018, sec. 3.1.1)."""

    cas_latency_cycles: float
    data_rate_per_s: float
    channels: int = 1
    source: str = ""

    @property
    def access_s(self) -> float:
        """Seconds of an access on one channel."""
        return (2.0 * self.cas_latency_cycles + 3.0) / self.data_rate_per_s


@value
class Access:
    """Lines of memory that an operation touches."""

    # ``table``: where in the table is decided by the packet's flow. ``frame``: lines of the frame itself, which comes
    # round again when every frame in flight has had its turn.
    of: AccessKind
    lines: Formula = field("Lines touched by one execution")
    table_lines: Formula | None = field('Lines that the whole table occupies (``of = "table"``)', default=None)
    pattern: Literal["dependent", "batched", "streamed"] = field(
        "Which cost of :class:`MemoryLevel` a line has", default="batched"
    )


@value
class OperationCost:
    """Mapping of one elementary operation to this host (Baldi & Sapio 2018, sec. 2.2)."""

    operation: str
    cycles: Formula = field("Core cycles of one execution, data in L1, over the operation's parameters")
    accesses: tuple[Access, ...] = ()
    remote: OperationCost | None = field(
        "Cost where the frame lies in the other socket's L3 (sec. 4.2); None: the same.", default=None
    )
    residual_ratio: float = field(
        "Root mean square of the fit's relative residuals; NaN where the formula was not fitted", default=math.nan
    )
    samples: int = field("Measurements behind the formula; 0 where it was not fitted", default=0)
    factor: float = field("Correction learnt from measured functions; multiplies ``cycles``", default=1.0)
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """What calling a function costs beside its operations: per batch of frames, and per frame."""

    per_batch_cycles: float = 0.0
    per_packet_cycles: float = 0.0
    batch_frames: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Pcie:
    """A PCI Express bus: ``lanes`` of a ``generation`` (bytes/s each way by :attr:`bytes_per_s`)."""

    generation: int
    lanes: int

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second each way after line coding (2.5, 5 GT/s 8b/10b; 8, 16, 32 GT/s 128b/130b)."""
        transfers = {1: 2.5e9 * 0.8, 2: 5e9 * 0.8, 3: 8e9, 4: 16e9, 5: 32e9}[self.generation]
        coding = 1.0 if self.generation < 3 else 128.0 / 130.0
        return self.lanes * transfers * coding / 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """A network card: ``ports`` links of ``link_bps``, at most ``cap_pps`` frames/s in all, on socket ``socket``."""

    name: str
    ports: int
    link_bps: float
    cap_pps: float = math.inf
    pcie: Pcie | None = None
    socket: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFunction:
    """A network function measured on this host: what it was, and the core cycles that a packet took.

    ``traffic`` and ``tables`` as :meth:`routecast.load.popularity.Popularity.parse` and the function name them;
    ``spread_ratio`` is the relative standard deviation of repeats.
    """

    function: str
    direction: str
    frame_bytes: int
    traffic: str
    cycles: float
    tables: Mapping[str, int] = dataclasses.field(default_factory=dict)
    spread_ratio: float = 0.0


@value
class Refinement:
    """What measured functions taught about this host beside :attr:`OperationCost.factor`."""

    measured: tuple[MeasuredFunction, ...] = field(
        "Every measurement that the factors come from: a new one is fitted together with them", default=()
    )
    levels: Mapping[str, float] = field("Factor on the cost of a line found in that level", default_factory=dict)
    # By ``"function/direction"``: factor on the cycles of its operations and on its stalls, what its own code does
    # differently from its operations on their own.
    functions: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """A host and the mapping of the elementary operations to it. See the module's picture.

    ``stalls`` says how memory accesses count. ``"separate"``: the core's cycles already hold all that it waits, and
    DRAM accesses only load the memory, a resource of its own (Baldi & Sapio 2018). ``"added"``: the core waits for
    every line as :attr:`levels` say (probed hosts).
    """

    name: str
    title: str
    cpu: Cpu
    levels: tuple[MemoryLevel, ...]
    operations: Mapping[str, OperationCost]
    stalls: Literal["separate", "added"]
    memory: MemoryTiming | None = None
    call: CallCost = dataclasses.field(default_factory=CallCost)
    nics: tuple[Nic, ...] = ()
    refinement: Refinement = dataclasses.field(default_factory=Refinement)
    memory_bytes: float = math.inf
    frames_in_flight: int = 4096
    frame_stride_bytes: int = 2112
    source: str = ""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, object] = dataclasses.field(default_factory=dict)
