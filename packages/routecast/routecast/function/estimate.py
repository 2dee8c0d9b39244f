"""Estimates of the cost of a network function on a host, and of the frames per second that the host forwards.

::

    cycles of a packet  =  Σ_steps times · cycles(parameters) · factor            operations, data in L1
                        +  Σ_steps Σ_levels waiting for lines of the level        only with ``stalls = "added"``
                        +  call

    machine  =  min(cores, memory, network cards, links, bus)

This extends Baldi & Sapio 2018, sec. 2 and 3. Their estimate has only the first line; accesses to DRAM load a second
resource, the memory (``stalls = "separate"``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.function._step_estimate import StepEstimate, level_shares, step_estimate
from routecast.function._work import LINE_BYTES, StepWork, direction_work
from routecast.function.model import Direction, NetworkFunction, TableSize
from routecast.function.operations import ASSUMED, assumption_notes
from routecast.hardware.model import Hardware
from routecast.load.frames import FrameMix
from routecast.load.offered import line_rate_pps
from routecast.load.popularity import Popularity
from routecast.quantity import format_bps, format_pps
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["Estimate", "chosen_directions", "counted_steps", "estimate", "memory_channels", "operations_without_cost"]


def table_sizes(function: NetworkFunction, entries_by_table: Mapping[str, int]) -> tuple[TableSize, ...]:
    """Return the function's tables, with the numbers of entries in ``entries_by_table`` in place of its own.

    Raises ModelProblem: a table is unknown or has no entries.
    """
    names = [table.name for table in function.tables]
    problems = []
    for name, entries in entries_by_table.items():
        if name not in names:
            problems.append(Problem(f"table {name}", f"is no table; {did_you_mean(name, names)}"))
        elif entries < 1:
            problems.append(Problem(f"table {name}", f"got {entries} entries: give at least 1"))
    if problems:
        raise ModelProblem(f"function {function.name!r}", problems)
    return tuple(replace(table, entries=entries_by_table.get(table.name, table.entries)) for table in function.tables)


def check_memory(
    function: NetworkFunction,
    works: Iterable[tuple[float, StepWork]],
    tables: tuple[TableSize, ...],
    hardware: Hardware,
) -> None:
    """Refuse tables that the host's memory cannot hold.

    Raises ModelProblem, with the place of each such table in the function's file.
    """
    needed = {table.name: float(table.entries) * table.entry_bytes for table in tables}
    for _, work in works:
        for touch in work.touches:
            if touch.kind == "table" and work.step.table in needed:
                needed[work.step.table] = max(needed[work.step.table], touch.stream_lines * LINE_BYTES)
    file_keys = {table.name: f"table[{number}].entries" for number, table in enumerate(function.tables)}
    large = {name: size for name, size in needed.items() if size > hardware.memory_bytes}
    if not large and sum(needed.values()) > hardware.memory_bytes:
        large = needed
    if large:
        memory = f"{hardware.name} has {_gigabytes(hardware.memory_bytes)}"
        raise ModelProblem(
            f"function {function.name!r} on {hardware.name}",
            [
                Problem(file_keys[name], f"table {name} takes {_gigabytes(size)} of memory, and {memory}")
                for name, size in large.items()
            ],
        )


def _gigabytes(size_bytes: float) -> str:
    size = size_bytes / 2**30
    return f"{size:,.0f} GiB" if size >= 1000.0 else f"{size:.3g} GiB"


Resource = Literal["core", "memory", "nic", "link", "pcie"]

_DESCRIPTOR_BYTES = 16
_TLP_PAYLOAD_BYTES = 256
_TLP_OVERHEAD_BYTES = 24
"""Overhead of a memory write: framing 2, data link layer 6, header 16 (Neugebauer et al. 2018, sec. 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputLimit:
    """A limit of ``pps`` frames per second on the machine, which a resource causes."""

    resource: Resource
    pps: float
    reason: str


def limits_of(
    hardware: Hardware,
    *,
    cores: int,
    core_pps: float,
    dram_accesses: float,
    frames: Mapping[int, float],
    growth_bytes: float,
) -> tuple[ThroughputLimit, ...]:
    """Return the limits of the throughput, the tightest first.

    ``cores``: cores that process frames; ``core_pps``: frames per second of one core; ``dram_accesses``: accesses to
    DRAM per frame; ``frames``: share of each frame size, in bytes, FCS included (S1); ``growth_bytes``: mean number of
    bytes that the function adds to a frame.
    """
    noun = "core" if cores == 1 else "cores"
    limits = [
        ThroughputLimit(resource="core", pps=cores * core_pps, reason=f"{cores} {noun} of {format_pps(core_pps)}")
    ]
    limits += _memory_limits(hardware, cores, dram_accesses)
    if hardware.nics:
        wire_bytes = sum(share * size for size, share in frames.items()) + max(growth_bytes, 0.0)
        limits += _card_limits(hardware, wire_bytes)
    return tuple(sorted(limits, key=lambda limit: limit.pps))


def memory_channels(hardware: Hardware, cores: int) -> int:
    """Return the number of memory channels of the sockets with the first ``cores`` cores."""
    channels = hardware.memory.channels if hardware.memory else 0
    return channels * min(hardware.cpu.sockets, math.ceil(cores / hardware.cpu.cores_per_socket))


def _memory_limits(hardware: Hardware, cores: int, dram_accesses: float) -> list[ThroughputLimit]:
    memory = hardware.memory
    if memory is None or dram_accesses <= 0.0:
        return []
    channels = memory_channels(hardware, cores)
    noun = "channel" if channels == 1 else "channels"
    accesses = "DRAM access" if dram_accesses == 1.0 else "DRAM accesses"
    reason = f"{dram_accesses:.3g} {accesses} of {memory.access_s * 1e9:.3g} ns over {channels} {noun}"
    return [ThroughputLimit(resource="memory", pps=channels / memory.access_s / dram_accesses, reason=reason)]


def _card_limits(hardware: Hardware, wire_bytes: float) -> list[ThroughputLimit]:
    """Return the limits of the network cards; all ports receive and send the same rate at the same time."""
    limits = []
    caps = sum(nic.cap_pps for nic in hardware.nics)
    if math.isfinite(caps):
        limits.append(ThroughputLimit(resource="nic", pps=caps, reason=f"{len(hardware.nics)} network cards"))
    ports = sum(nic.ports for nic in hardware.nics)
    total_bps = sum(nic.ports * nic.link_bps for nic in hardware.nics)
    slowest_bps = min(nic.link_bps for nic in hardware.nics)
    reason = f"{ports} {'port' if ports == 1 else 'ports'}, {format_bps(total_bps)} each way"
    limits.append(ThroughputLimit(resource="link", pps=ports * line_rate_pps(slowest_bps, wire_bytes), reason=reason))
    bus_pps = [
        nic.pcie.bytes_per_s / (_pcie_bytes(wire_bytes) * (nic.ports / ports))
        for nic in hardware.nics
        if nic.pcie is not None
    ]
    if bus_pps:
        limits.append(ThroughputLimit(resource="pcie", pps=min(bus_pps), reason="bus of the network card, each way"))
    return limits


def _pcie_bytes(frame_bytes: float) -> float:
    """Return the bytes on the bus in each direction, for a frame without its FCS and its descriptor."""
    data = frame_bytes - 4.0
    packets = math.ceil(data / _TLP_PAYLOAD_BYTES)
    return data + packets * _TLP_OVERHEAD_BYTES + _DESCRIPTOR_BYTES + _TLP_OVERHEAD_BYTES


def chosen_directions(function: NetworkFunction, direction: str | None) -> dict[int, float]:
    """Return the share of the packets by the number of the direction; the shares sum to 1.

    Raises ModelProblem: the function has no such direction.
    """
    names = [direction.name for direction in function.directions]
    if direction is not None:
        if direction not in names:
            message = f'got "{direction}": is no direction; {did_you_mean(direction, names)}'
            raise ModelProblem(f"function {function.name!r}", [Problem("direction", message)])
        return {names.index(direction): 1.0}
    total = sum(direction.share for direction in function.directions)
    return {number: direction.share / total for number, direction in enumerate(function.directions)}


def arriving_frames(direction: Direction, mix: FrameMix, notes: list[str]) -> dict[int, float]:
    """Return the share of each frame size; frames that are too short for the headers become longer, with a note."""
    frames: dict[int, float] = {}
    smallest_bytes = direction.smallest_frame_bytes
    for size, share in mix.share_by_bytes.items():
        if size < smallest_bytes:
            notes.append(
                f"direction {direction.name}: frames of {size} B are too short, so {smallest_bytes} B are assumed"
            )
        frames[max(size, smallest_bytes)] = frames.get(max(size, smallest_bytes), 0.0) + share
    return frames


def counted_steps(function: NetworkFunction, hardware: Hardware) -> NetworkFunction:
    """Return the function with the steps and tables that apply to a host.

    Hosts described as in Baldi & Sapio 2018 (``stalls = "separate"``) use the steps and the entry sizes of the models
    of that paper; probed hosts (``"added"``) use those of the real implementation.
    """
    left_out = "real" if hardware.stalls == "separate" else "model"
    directions = tuple(
        replace(direction, steps=tuple(step for step in direction.steps if step.only != left_out))
        for direction in function.directions
    )
    if hardware.stalls == "separate":
        return replace(function, directions=directions)
    tables = tuple(replace(table, entry_bytes=table.held_bytes or table.entry_bytes) for table in function.tables)
    return replace(function, directions=directions, tables=tables)


def operations_without_cost(function: NetworkFunction, hardware: Hardware, *, assumed: bool = True) -> tuple[str, ...]:
    """Return the operations of a function that have no cost on a host, sorted; an estimate needs all costs.

    ``assumed``: whether assumed costs (:data:`routecast.function.operations.ASSUMED`) count.

    Examples
    --------
    >>> from routecast.function.catalogue import read_function
    >>> from routecast.hardware.catalogue import read_hardware
    >>> operations_without_cost(read_function("l2_switch"), read_hardware("xeon-platinum-8180"))
    ('ht_lookup',)
    """
    steps = [step for direction in counted_steps(function, hardware).directions for step in direction.steps]
    costs = hardware.operations.keys() | (ASSUMED.keys() if assumed else set())
    return tuple(sorted({step.operation for step in steps} - costs))


_NORMAL_95 = 1.959964


@value
class Estimate:
    """The estimated cost and throughput of a function on a host."""

    function: str = field("Name of the function")
    hardware: str = field("Name of the host")
    direction: str | None = field("Direction of the estimate; None: all directions, by their shares")
    frames: FrameMix
    popularity: Popularity
    cores: int
    frequency_hz: float = field("Clock of a core, scaled by :attr:`giga`")
    giga: float = field("1e9, or 1024e6 if 1 GHz means 1024 MHz, as in Baldi & Sapio 2018")
    # A value > 0 gives the platform-specific estimate.
    remote_ratio: float = field("Share of packets in the other socket's L3 (sec. 4.2)")
    tables: tuple[TableSize, ...]
    operations: tuple[StepEstimate, ...] = field("Steps of all directions, in sequence")
    call_cycles: float = field("Cycles of calling the function, per packet")
    limits: tuple[ThroughputLimit, ...] = field("The tightest first")
    frame_growth_bytes: float = field("Mean number of bytes that the function adds to frames", default=0.0)
    notes: tuple[str, ...] = field("Notes for the reader", default=())

    @property
    def cycles(self) -> float:
        """Cycles of the operations per packet, with data in L1 and without the call."""
        return sum(operation.share * operation.cycles for operation in self.operations)

    @property
    def stall_cycles(self) -> float:
        """Cycles per packet that a core waits for memory."""
        return sum(operation.share * operation.stall_cycles for operation in self.operations)

    @property
    def packet_cycles(self) -> float:
        """Cycles per packet of a core, including stalls and the call."""
        return self.cycles + self.stall_cycles + self.call_cycles

    @property
    def packet_s(self) -> float:
        """Seconds per packet of a core."""
        return self.packet_cycles / self.frequency_hz

    @property
    def dram_accesses(self) -> float:
        """Lines fetched from DRAM per packet."""
        return sum(operation.share * operation.dram_accesses for operation in self.operations)

    @property
    def core_pps(self) -> float:
        """Frames per second of one core."""
        return self.frequency_hz / self.packet_cycles

    @property
    def bottleneck(self) -> ThroughputLimit:
        """The tightest limit."""
        return self.limits[0]

    @property
    def pps(self) -> float:
        """Frames per second of the machine."""
        return self.bottleneck.pps

    def limit_pps(self, resource: str) -> float:
        """Return the limit of a resource; infinite if it does not limit."""
        return next((limit.pps for limit in self.limits if limit.resource == resource), math.inf)

    @property
    def cycles_range(self) -> tuple[float, float]:
        """95 % range of :attr:`packet_cycles` by the residuals of the operations' fits; NaN if no operation was fitted.

        All occurrences of an operation have the same error; the errors of different operations are independent.
        """
        deviation: dict[str, float] = {}
        for operation in self.operations:
            if math.isfinite(operation.residual_ratio):
                cycles = operation.share * operation.cycles * operation.residual_ratio
                deviation[operation.operation] = deviation.get(operation.operation, 0.0) + cycles
        if not deviation:
            return (math.nan, math.nan)
        half_width = _NORMAL_95 * math.hypot(*deviation.values())
        return (max(self.packet_cycles - half_width, 0.0), self.packet_cycles + half_width)

    @property
    def range_pps(self) -> tuple[float, float]:
        """95 % range of :attr:`core_pps`; NaN if no operation was fitted."""
        low, high = self.cycles_range
        return (self.frequency_hz / high, math.inf if low == 0.0 else self.frequency_hz / low)

    def to_json(self) -> dict[str, object]:
        """Return plain data; units are in the names, infinite and unknown numbers are null."""
        return {
            "format": "routecast function estimate 1",
            "function": self.function,
            "direction": self.direction,
            "hardware": self.hardware,
            "traffic": {
                "frames": self.frames.name,
                "mean_frame_bytes": self.frames.mean_bytes,
                "flows": self.popularity.flows,
                "popularity": str(self.popularity),
                "remote_ratio": self.remote_ratio,
            },
            "tables": {table.name: table.entries for table in self.tables},
            "frequency_hz": self.frequency_hz,
            "packet_cycles": self.packet_cycles,
            "packet_cycles_range": list(map(_or_none, self.cycles_range)),
            "operation_cycles": self.cycles,
            "stall_cycles": self.stall_cycles,
            "call_cycles": self.call_cycles,
            "dram_accesses": self.dram_accesses,
            "packet_s": self.packet_s,
            "core_pps": self.core_pps,
            "core_pps_range": list(map(_or_none, self.range_pps)),
            "cores": self.cores,
            "machine_pps": self.pps,
            "bottleneck": self.bottleneck.resource,
            "limits": [{**asdict(limit), "pps": _or_none(limit.pps)} for limit in self.limits],
            "operations": [step.to_json() for step in self.operations],
            "notes": list(self.notes),
        }


def _or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None


def estimate(
    function: NetworkFunction,
    hardware: Hardware,
    *,
    direction: str | None = None,
    frame_bytes: int | FrameMix = 64,
    cores: int = 1,
    popularity: Popularity | None = None,
    tables: Mapping[str, int] | None = None,
    remote_ratio: float = 0.0,
    giga: float = 1e9,
) -> Estimate:
    """Estimate the cost of a function on a host.

    ``direction``: one direction, or None for all directions with their shares of the packets; ``frame_bytes``: size of
    the arriving frames, FCS included (S1), replaced by the smallest frame of a direction whose headers need more;
    ``cores``: cores that process frames; ``popularity``: distribution of packets over flows, or None if all entries of
    the table that the function names, or else of each table, are equally frequent; ``tables``: numbers of entries in
    place of the function's; ``remote_ratio``: share of packets in the other socket's L3, 0..1; ``giga``: number of Hz
    in 1 GHz. Raises ModelProblem: the function, the host or an argument is not valid, or a table is larger than the
    host's memory.

    Examples
    --------
    >>> from routecast.function.catalogue import read_function
    >>> from routecast.hardware.catalogue import read_hardware
    >>> result = estimate(read_function("l2_switch"), read_hardware("xeon-e5-2690v2"))
    >>> result.packet_cycles, result.dram_accesses
    (211.0, 1.0)
    """
    function = counted_steps(function, hardware)
    sizes = table_sizes(function, tables or {})
    _check_arguments(function, hardware, cores=cores, remote_ratio=remote_ratio, giga=giga)
    mix = frame_bytes if isinstance(frame_bytes, FrameMix) else FrameMix.fixed(frame_bytes)
    popularity = popularity or Popularity()
    work = _packet_work(function, direction, hardware, mix, sizes, remote_ratio)
    works = work.steps
    check_memory(function, works, sizes, hardware)
    flows = next((table.entries for table in sizes if table.name == function.flows_of), None)
    shares = level_shares(works, hardware, popularity, flows)
    frequency_hz = hardware.cpu.frequency_hz * giga / 1e9
    call = hardware.call
    result = Estimate(
        function=function.name,
        hardware=hardware.name,
        direction=direction,
        frames=mix,
        popularity=popularity,
        cores=cores,
        frequency_hz=frequency_hz,
        giga=giga,
        remote_ratio=remote_ratio,
        tables=sizes,
        operations=tuple(
            step_estimate(share, step, shares, hardware, function.name, frequency_hz) for share, step in works
        ),
        call_cycles=call.per_batch_cycles / call.batch_frames + call.per_packet_cycles,
        limits=(),
        frame_growth_bytes=work.growth_bytes,
        notes=work.notes,
    )
    return _with_limits(result, hardware, work)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PacketWork:
    """The steps of a packet with the shares of packets that take them, over all directions.

    ``frame_shares``: share of packets by size of the frame; ``growth_bytes``: mean growth of a frame.
    """

    steps: list[tuple[float, StepWork]]
    frame_shares: dict[int, float]
    growth_bytes: float
    notes: tuple[str, ...]


def _packet_work(
    function: NetworkFunction,
    direction: str | None,
    hardware: Hardware,
    mix: FrameMix,
    sizes: tuple[TableSize, ...],
    remote_ratio: float,
) -> _PacketWork:
    """Return the work of one direction, or of all directions with their shares of the packets."""
    steps: list[tuple[float, StepWork]] = []
    notes: list[str] = []
    frame_shares: dict[int, float] = {}
    growth_bytes = 0.0
    for number, share in chosen_directions(function, direction).items():
        chosen_direction = function.directions[number]
        frames = arriving_frames(chosen_direction, mix, notes)
        for size, size_share in frames.items():
            frame_shares[size] = frame_shares.get(size, 0.0) + share * size_share
        growth_bytes += share * chosen_direction.frame_growth_bytes
        work = direction_work(function, number, hardware, tables=sizes, frames=frames, remote_ratio=remote_ratio)
        steps += [(share, step) for step in work]
    notes += assumption_notes(hardware, {step.step.operation for _, step in steps})
    return _PacketWork(
        steps=steps, frame_shares=frame_shares, growth_bytes=growth_bytes, notes=tuple(dict.fromkeys(notes))
    )


def _with_limits(result: Estimate, hardware: Hardware, work: _PacketWork) -> Estimate:
    """Return the estimate with the limits of the machine; raise ModelProblem if a packet costs nothing."""
    if result.packet_cycles <= 0.0:
        message = "a packet takes 0 cycles: at least one operation must cost something"
        raise ModelProblem(f"function {result.function!r} on {hardware.name}", [Problem("operation", message)])
    limits = limits_of(
        hardware,
        cores=result.cores,
        core_pps=result.core_pps,
        dram_accesses=result.dram_accesses,
        frames=work.frame_shares,
        growth_bytes=work.growth_bytes,
    )
    return replace(result, limits=limits)


def _check_arguments(
    function: NetworkFunction, hardware: Hardware, *, cores: int, remote_ratio: float, giga: float
) -> None:
    problems = []
    if not function.directions or not all(direction.steps for direction in function.directions):
        problems.append(Problem("function", f"{function.name} has no operations: give it steps"))
    if not (math.isfinite(hardware.cpu.frequency_hz) and hardware.cpu.frequency_hz > 0.0):
        message = f"got {hardware.cpu.frequency_hz:g}: {hardware.name} needs a finite clock > 0"
        problems.append(Problem("cpu.frequency", message))
    if not 1 <= cores <= hardware.cpu.cores:
        problems.append(Problem("cores", f"got {cores}: {hardware.name} has 1 to {hardware.cpu.cores}"))
    if not 0.0 <= remote_ratio <= 1.0:
        problems.append(Problem("remote_ratio", f"got {remote_ratio:g}: give a ratio from 0 to 1"))
    elif remote_ratio > 0.0 and hardware.cpu.sockets < 2:
        problems.append(Problem("remote_ratio", f"got {remote_ratio:g}: {hardware.name} has only one socket"))
    if not (math.isfinite(giga) and giga > 0.0):
        problems.append(Problem("giga", f"got {giga:g}: give a finite number > 0"))
    if problems:
        raise ModelProblem(f"function {function.name!r} on {hardware.name}", problems)
