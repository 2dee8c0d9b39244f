"""A host as data: processor, caches, memory timing, network cards, and the cost of each elementary operation.

::

    Hardware
     ├─ cpu          sockets, cores, clock
     ├─ levels       L1 L2 L3 DRAM: size, cost of fetching a line (dependent, batched, streamed)
     ├─ memory       CAS latency and data rate, which limit the accesses
     ├─ operations   elementary operation -> cycles(parameters) + lines touched(parameters)
     └─ nics, call   network cards with their bus; the cost of calling a function for a batch

:mod:`routecast.function.operations` defines the meaning and the parameters of the elementary operations (Baldi & Sapio
2018, sec. 2.1). This module has only their costs on a host.
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
    Percentage,
    Share,
    Size,
    WholeSize,
)
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import format_value

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
SOURCE = "Source of the values"


def _line_cost(text: str) -> tuple[float, float]:
    parts = text.split(" + ") if isinstance(text, str) else [text]
    if len(parts) > 2:
        message = f'got {format_value(text)}: give a cost in cycles, as a time, or both: "3 cycles + 60 ns"'
        raise QuantityProblem(format_value(text), message)
    costs = [parse_cost(part) for part in parts]
    return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)


_LINE_COST_EXAMPLES = ("12 cycles", "80 ns", "3 cycles + 60 ns")
LineCycles = Annotated[
    float, Parsed(lambda text: _line_cost(text)[0], "cycles, s, or both", *_LINE_COST_EXAMPLES, symbol="cycles")
]
LineSeconds = Annotated[
    float, Parsed(lambda text: _line_cost(text)[1], "cycles, s, or both", *_LINE_COST_EXAMPLES, symbol="s")
]


class _ParsedFormula(Parsed):
    """A formula, or a number."""

    __slots__ = ()

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        description = "A number, or arithmetic over parameters"
        return {"type": ["number", "string"], "description": description, "examples": [6, "5 * ceil(b/8)"]}

    def write(self, value: Formula) -> str:
        """Return the text of a formula."""
        return value.text


def _formula(cost: Any) -> Formula:
    text = repr(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else cost
    try:
        if not isinstance(text, str):
            raise ModelProblem(format_value(cost), [])
        formula = Formula(text)
        if not formula.names:
            formula.evaluate({})
    except ModelProblem as problem:
        faults = "; ".join(str(fault) for fault in problem.problems) or _ALLOWED
        raise QuantityProblem(format_value(text), f"got {format_value(text)}: {faults}") from None
    return formula


_ALLOWED = 'give a number or a formula, such as 1 or "ceil(20 / 64)"'
FormulaText = Annotated[Formula, _ParsedFormula(_formula, parsed_type=Formula)]


@value
class Cpu:
    """The processor: ``sockets`` x ``cores_per_socket`` cores at ``frequency_hz``."""

    name: Name = field("Name of the model")
    sockets: Count = field("Processors in the machine", default=1, ge=1, le=1024)
    cores_per_socket: Count = field("Physical cores of each", ge=1, le=65536)
    frequency_hz: Frequency = field("Clock to which the cycles of all formulas refer, Hz")
    source: str = field(SOURCE, default="")

    @property
    def cores(self) -> int:
        """Cores of the machine."""
        return self.sockets * self.cores_per_socket


@value
class MemoryLevel:
    """A level of the memory hierarchy, with the cost to a core of fetching a line from it.

    The costs are added to the cycles of the operations, which assume data in L1. Each cost is the sum of ``_cycles`` of
    the core and ``_s`` seconds that do not scale with its clock.
    """

    name: LevelName = field("L1, L2, L3 or DRAM, in this order; DRAM is last")
    # For L3, the share that one core gets. Infinite for DRAM.
    size_bytes: Size = field("Size that one core's data can occupy; not for DRAM, B", default=math.inf)
    dependent_cycles: LineCycles = field("Cycles of a line if each access waits for the previous access", default=0.0)
    dependent_s: LineSeconds = field("``dependent_cycles`` in seconds", default=0.0)
    # The misses overlap.
    batched_cycles: LineCycles = field(
        "Cycles of a random line if several lines are requested together, with prefetch", default=0.0
    )
    batched_s: LineSeconds = field("``batched_cycles`` in seconds", default=0.0)
    # The hardware prefetcher helps.
    streamed_cycles: LineCycles = field(
        "Cycles of a line if lines are read in the order of their addresses", default=0.0
    )
    streamed_s: LineSeconds = field("``streamed_cycles`` in seconds", default=0.0)
    source: str = field(SOURCE, default="")

    def line_cycles(self, pattern: str, frequency_hz: float) -> float:
        """Return the cycles that a core needs for a line of this level with an access pattern."""
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

    # The lines of a frame are used again after all other frames in flight.
    of: AccessKind = field("table: lines that depend on the packet's flow. frame: lines of the frame itself")
    lines: FormulaText = field("Lines touched by one execution")
    table_lines: FormulaText | None = field("Lines of the whole table", default=None)
    pattern: Pattern = field("Access pattern, which selects the cost of a line", default="batched")


@value
class Cost:
    """The cost of an operation on this host."""

    cycles: FormulaText = field(
        "Core cycles of one execution, data in L1, over its parameters (hdr data b es max N HE p rules tuples burst) "
        "and the coefficients"
    )
    accesses: tuple[Access, ...] = field("Lines of memory that the operation touches", default=(), key="access")
    # NaN if the formula was not fitted.
    residual_ratio: Annotated[Share, Percentage()] = field(
        "Root mean square of the fit's relative residuals", default=math.nan, key="residual_ratio"
    )
    samples: Count = field("Measurements behind the formula", default=0, ge=0)
    factor: Factor = field("Correction factor on the cycles, fitted to measured functions", default=1.0)
    source: str = field(SOURCE, default="")


@value
class OperationCost(Cost):
    """Mapping of one elementary operation to this host (Baldi and Sapio 2018, sec. 2.2)."""

    operation: str
    # Sec. 4.2; None: no difference.
    remote: OperationCost | None = field("Cost if the frame is in the other socket's L3", default=None)


@value
class CallCost:
    """The cost of calling a function, in addition to its operations."""

    per_batch_cycles: Cycles = field("Cycles of a batch", default=0.0)
    per_packet_cycles: Cycles = field("Cycles of each frame of a batch", default=0.0)
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
    cap_pps: FrameRate = field("Most frames/s that the card forwards over all ports", default=math.inf)
    pcie: Pcie | None = field("Bus of the card", default=None)
    socket: Count = field("Socket that the bus belongs to", default=0, ge=0)
    source: str = field(SOURCE, default="")


@value
class MeasuredFunction:
    """A network function that was measured on this host."""

    function: Name = field("Name of the function")
    direction: str = field("Direction of the function")
    frame_bytes: WholeSize = field("Size of its frames, FCS included, B")
    # :meth:`routecast.load.popularity.Popularity.parse` reads it.
    traffic: str = field("Flows and their popularity: uniform, 10 flows, zipf 1.1")
    cycles: Cycles = field("Core cycles of a packet")
    tables: Mapping[str, Count] = field("Entries of its tables", default_factory=dict)
    spread_ratio: Annotated[Share, Percentage()] = field(
        "Relative standard deviation of repeats", default=0.0, key="spread_ratio"
    )


@value
class Refinement:
    """Corrections from functions measured on this host, in addition to :attr:`Cost.factor`."""

    # All measurements are kept, because a new one is fitted together with the others.
    measured: tuple[MeasuredFunction, ...] = field("The measurements that the factors come from", default=())
    levels: Mapping[LevelName, Factor] = field("Factors on the cost of a line in a level", default_factory=dict)
    # Differences between the code of a function and the sum of its operations.
    functions: Mapping[str, tuple[Factor, Factor]] = field(
        'Factors on the cycles and on the stalls, by "function/direction"', default_factory=dict
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """A host, and the mapping of the elementary operations to it; see the diagram of the module.

    ``stalls`` says how memory accesses count. With ``"separate"`` the cycles of the core include its waits, and
    accesses to DRAM only load the memory, a separate resource (Baldi & Sapio 2018). With ``"added"`` (probed hosts) the
    core also waits for every line, as :attr:`levels` gives.
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
