"""A host as data: processor, caches, memory timing, network cards, and the cost of each elementary operation.

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
from typing import Annotated, Any, Literal

from routecast.errors import ModelProblem, QuantityProblem
from routecast.hardware.formula import Formula
from routecast.quantity import parse_cost
from routecast.quantity.fields import (
    BitRate,
    Count,
    Cycles,
    Factor,
    FrameCount,
    FrameRate,
    Frequency,
    Name,
    Parsed,
    Share,
    Size,
    WholeSize,
)
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import shown

__all__ = [
    "Access",
    "AccessKind",
    "CallCost",
    "Cost",
    "Cpu",
    "FormulaText",
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
Pattern = Literal["dependent", "batched", "streamed"]
SOURCE = "Where the values are from"


def _line_cost(text: str) -> tuple[float, float]:
    parts = text.split(" + ") if isinstance(text, str) else [text]
    if len(parts) > 2:
        what = f'got {shown(text)}: one cost in cycles, one as a time, or both: "3 cycles + 60 ns"'
        raise QuantityProblem(shown(text), what)
    costs = [parse_cost(part) for part in parts]
    return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)


_LINE = ("12 cycles", "80 ns", "3 cycles + 60 ns")
LineCycles = Annotated[float, Parsed(lambda text: _line_cost(text)[0], "cycles, s, or both", *_LINE, symbol="cycles")]
LineSeconds = Annotated[float, Parsed(lambda text: _line_cost(text)[1], "cycles, s, or both", *_LINE, symbol="s")]


class _Arithmetic(Parsed):
    """A formula, or a number."""

    __slots__ = ()

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        what = "A number, or arithmetic over parameters"
        return {"type": ["number", "string"], "description": what, "examples": [6, "5 * ceil(b/8)"]}

    def write(self, value: Formula) -> str:
        """Return the text of a formula."""
        return value.text


def _formula(cost: Any) -> Formula:
    text = repr(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else cost
    try:
        if not isinstance(text, str):
            raise ModelProblem(shown(cost), [])
        formula = Formula(text)
        if not formula.names:
            formula.evaluate({})
    except ModelProblem as problem:
        faults = "; ".join(str(fault) for fault in problem.problems) or _WANTED
        raise QuantityProblem(shown(text), f"got {shown(text)}: {faults}") from None
    return formula


_WANTED = 'give a number or a formula, such as 12 or "5 * ceil(b/8)"'
FormulaText = Annotated[Formula, _Arithmetic(_formula, parsed_type=Formula)]


@value
class Cpu:
    """The processor: ``sockets`` x ``cores_per_socket`` cores at ``frequency_hz``."""

    name: Name = field("Name of the model")
    sockets: Count = field("Processors in the machine", default=1, ge=1, le=1024)
    cores_per_socket: Count = field("Physical cores of each", ge=1, le=65536)
    frequency_hz: Frequency = field("The clock that the cycles of all formulas count, Hz")
    source: str = field(SOURCE, default="")

    @property
    def cores(self) -> int:
        """Cores of the machine."""
        return self.sockets * self.cores_per_socket


@value
class MemoryLevel:
    """One level of the memory hierarchy, and the cost of a line there to a core.

    Costs come on top of the operations' own cycles, which hold for data in L1; each is ``_cycles`` of the core plus
    ``_s`` seconds that do not scale with its clock.
    """

    name: LevelName = field("L1, L2, L3 or DRAM, in this order; DRAM is last")
    # Of L3: the part that it gets. Infinite for DRAM.
    size_bytes: Size = field("Size that one core's data can occupy; not for DRAM, B", default=math.inf)
    dependent_cycles: LineCycles = field("Cycles of a line where each access waits for the one before", default=0.0)
    dependent_s: LineSeconds = field("``dependent_cycles`` in seconds", default=0.0)
    # The misses overlap.
    batched_cycles: LineCycles = field(
        "Cycles of a random line where several are requested together, with prefetch", default=0.0
    )
    batched_s: LineSeconds = field("``batched_cycles`` in seconds", default=0.0)
    # The hardware prefetcher helps.
    streamed_cycles: LineCycles = field(
        "Cycles of a line where lines are read in the order of their addresses", default=0.0
    )
    streamed_s: LineSeconds = field("``streamed_cycles`` in seconds", default=0.0)
    source: str = field(SOURCE, default="")

    def line_cycles(self, pattern: str, frequency_hz: float) -> float:
        """Return the cycles of a core for a line of this level; ``pattern`` is dependent, batched or streamed."""
        cycles, seconds = {
            "dependent": (self.dependent_cycles, self.dependent_s),
            "batched": (self.batched_cycles, self.batched_s),
            "streamed": (self.streamed_cycles, self.streamed_s),
        }[pattern]
        return cycles + seconds * frequency_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTiming:
    """Timing of the memory: an access takes ``(2·CAS + 3) / data_rate`` seconds (Baldi & Sapio 2018, sec. 3.1.1)."""

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

    # A frame comes round again when every frame in flight has had its turn.
    of: AccessKind = field("table: the packet's flow decides which lines. frame: lines of the frame itself")
    lines: FormulaText = field("Lines touched by one execution")
    table_lines: FormulaText | None = field("Lines of the whole table", default=None)
    pattern: Pattern = field("Cost of a level that applies to a line", default="batched")


@value
class Cost:
    """The cost of an operation on this host."""

    cycles: FormulaText = field(
        "Core cycles of one execution, data in L1, over its parameters (hdr data b es max N HE p rules tuples burst) "
        "and the coefficients"
    )
    accesses: tuple[Access, ...] = field("Lines of memory that it touches", default=(), key="access")
    # NaN where the formula was not fitted.
    residual_ratio: Share = field(
        "Root mean square of the fit's relative residuals", default=math.nan, key="residual_ratio"
    )
    samples: Count = field("Measurements behind the formula", default=0, ge=0)
    factor: Factor = field("Correction learnt from measured functions; multiplies the cycles", default=1.0)
    source: str = field(SOURCE, default="")


@value
class OperationCost(Cost):
    """Mapping of one elementary operation to this host (Baldi and Sapio 2018, sec. 2.2)."""

    operation: str
    # Sec. 4.2; None: the same.
    remote: OperationCost | None = field("The cost where the frame lies in the other socket's L3", default=None)


@value
class CallCost:
    """The cost of calling a function beside its operations."""

    per_batch_cycles: Cycles = field("Cycles of a batch", default=0.0)
    per_packet_cycles: Cycles = field("Cycles of each frame of it", default=0.0)
    batch_frames: FrameCount = field("Frames of a batch", default=32)


@value
class Pcie:
    """A PCI Express bus."""

    generation: Count = field("1 to 5", ge=1, le=5)
    lanes: Count = field("Lanes", ge=1, le=32)

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second each way after line coding (2.5, 5 GT/s 8b/10b; 8, 16, 32 GT/s 128b/130b)."""
        transfers = {1: 2.5e9 * 0.8, 2: 5e9 * 0.8, 3: 8e9, 4: 16e9, 5: 32e9}[self.generation]
        coding = 1.0 if self.generation < 3 else 128.0 / 130.0
        return self.lanes * transfers * coding / 8.0


@value
class Nic:
    """A network card."""

    name: Name = field("Name of the model")
    ports: Count = field("Ports", default=1, ge=1, le=1024)
    link_bps: BitRate = field("Rate of each port's link, bit/s")
    cap_pps: FrameRate = field("Frames/s that the card forwards at most, all ports together", default=math.inf)
    pcie: Pcie | None = field("The bus that it is on", default=None)
    socket: Count = field("Socket that the bus belongs to", default=0, ge=0)
    source: str = field(SOURCE, default="")


@value
class MeasuredFunction:
    """A network function that was measured on this host."""

    function: Name = field("Name of the function")
    direction: str = field("Direction of the function")
    frame_bytes: WholeSize = field("Size of its frames, FCS included, B")
    # As :meth:`routecast.load.popularity.Popularity.parse` reads it.
    traffic: str = field("Flows and their popularity: uniform, 10 flows, zipf 1.1")
    cycles: Cycles = field("Core cycles of a packet")
    tables: Mapping[str, Count] = field("Entries of its tables", default_factory=dict)
    spread_ratio: Share = field("Relative standard deviation of repeats", default=0.0, key="spread_ratio")


@value
class Refinement:
    """Knowledge from measured functions on this host beside :attr:`Cost.factor`."""

    # Every one of them: a new one is fitted together with the others.
    measured: tuple[MeasuredFunction, ...] = field("The measurements that the factors come from", default=())
    levels: Mapping[LevelName, Factor] = field("Factors on the cost of a line found in a level", default_factory=dict)
    # What its own code does differently from its operations on their own.
    functions: Mapping[str, tuple[Factor, Factor]] = field(
        'Factors on the cycles and on the stalls, by "function/direction"', default_factory=dict
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """A host and the mapping of the elementary operations to it. See the module's picture.

    ``stalls`` tells how memory accesses count. ``"separate"``: the core's cycles include its waits, and DRAM accesses
    only load the memory, a resource of its own (Baldi & Sapio 2018). ``"added"``: the core waits for every line as
    :attr:`levels` say (probed hosts).
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
