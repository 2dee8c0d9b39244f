"""Characterise a workload kernel: work per packet by frame size, over all packets, and misses by cache size.

The kernel runs twice: at full speed for the time per packet, and traced instruction by instruction for all other
figures. Cachegrind counts the same packets as a second opinion, and a line rate gives the instructions per second that
it requires.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from routecast.errors import EnvironmentProblem, ModelProblem, Problem
from routecast.evaluate.plain import plain
from routecast.hardware.probe_facts import native
from routecast.lab.testbed.cachegrind import added_events
from routecast.load.frames import RFC2544_FRAME_BYTES, FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.progress import ShareProgress
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = [
    "CHILD",
    "HELD_PACKETS",
    "MAX_TRACED_INSTRUCTIONS",
    "TRACED_PACKETS",
    "CachegrindCounts",
    "Characterisation",
    "Kernel",
    "Misses",
    "Required",
    "WorkloadCase",
    "characterisation_of",
    "characterise",
    "child_command",
    "count_workload",
    "fitted_line",
    "kernels",
    "read_kernel",
    "required",
]

HELD_PACKETS = 2048
"""Packets that are generated or taken from a capture; the kernel cycles through them."""

_PACKETS_PER_ENTRY = 8
"""Twice the mean number of waiting packets per entry of a queueing kernel (``crates/probe``: ``BACKLOG``)."""

_MAX_SIZES = 16
_CLASSES = ("loads", "stores", "updates", "branches", "jumps")
_ACCESSES = ("packet_reads", "packet_writes", "other_reads", "other_writes")
_OPTIONS = ("--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64")

TRACED_PACKETS = 512
MAX_TRACED_INSTRUCTIONS = 1_500_000
"""Bounds of a trace; at about 6 µs per instruction it takes 10 s."""

_TIMED_S = 0.3
_TRACED_SHARE = 0.9
"""The trace's share of the progress."""

CHILD = (
    "import sys, _imp, _frozen_importlib\n"
    "spec = _frozen_importlib.ModuleSpec('_lab', None, origin=sys.argv[1])\n"
    "core = _imp.create_dynamic(spec)\n"
    "_imp.exec_dynamic(core)\n"
    "core.run_workload(sys.argv[2])\n"
    "import posix\n"
    "posix._exit(0)\n"
)
"""Runs a workload with the least interpreter: no site, no package but the core, no clean-up."""


def child_command(request: dict[str, object]) -> list[str]:
    """Return the command of a process that runs a workload and nothing else."""
    from routecast.lab import _lab

    return [
        sys.executable,
        # Without site; -I would randomise the order of dictionaries and sets, and counts must not depend on it.
        "-S",
        "-c",
        CHILD,
        str(_lab.__file__),
        json.dumps(request, allow_nan=False),
    ]


def characterise(
    case: WorkloadCase,
    *,
    packets: int = TRACED_PACKETS,
    most_instructions: int = MAX_TRACED_INSTRUCTIONS,
    timed: bool = True,
    on_progress: ShareProgress | None = None,
) -> Characterisation:
    """Characterise a kernel.

    Parameters
    ----------
    case : WorkloadCase
    packets : int
        Packets to trace; a quarter of them (or of the instructions) fills the caches first and is not counted.
    most_instructions : int
        The trace ends after the packet that reaches this number.
    timed : bool
        Whether to run it at full speed too.
    on_progress : callable, optional
        Receives the finished share, 0..1.

    Raises
    ------
    routecast.errors.ModelProblem
        A size, a number or the capture is wrong.
    routecast.errors.EnvironmentProblem
        Programs cannot be traced on this host, or it is not x86-64.
    """

    def report(share: float, offset: float, part: float) -> None:
        if on_progress is not None:
            on_progress(offset + part * share)

    run = native(
        "run_workload",
        case.request(warm_up=case.warm_up, duration_s=_TIMED_S if timed else 0.0),
        lambda share: report(share, 0.0, 1.0 - _TRACED_SHARE),
    )
    request = case.request(warm_up=case.warm_up, measured=packets, traced=True)
    trace = native(
        "trace_workload",
        {
            "command": child_command(request),
            "packets": packets,
            "warm_up": packets // 4,
            "most_instructions": most_instructions,
        },
        lambda share: report(share, 1.0 - _TRACED_SHARE, _TRACED_SHARE),
    )
    if not trace["packets"]:
        raise EnvironmentProblem(
            f"one packet of {case.kernel.name} takes more than the {most_instructions} instructions that are traced: "
            "ask for more"
        )
    return characterisation_of(case, run, trace)


@value
class Required:
    """The requirements of frames of one size at a line rate."""

    frame_bytes: float
    line_bps: float = field("Rate of the wire, with its overhead of 20 B per frame (S1)")
    packets_per_s: float
    instructions: float = field("Instructions of the kernel per packet")
    instructions_per_s: float
    budget: float = field(
        "Instructions per packet for which one processor has time: frequency x instructions per cycle / packets per "
        "second; NaN without a frequency",
        default=math.nan,
    )
    processors: int | None = field("Processors required, if they share the packets without loss", default=None)


def required(
    answer: Characterisation,
    line_bps: float,
    frame_bytes: Iterable[float],
    *,
    frequency_hz: float | None = None,
    instructions_per_cycle: float = 1.0,
) -> tuple[Required, ...]:
    """Return the requirements of a line rate by frame size (processing capability per packet: Lee & John 2003).

    Parameters
    ----------
    line_bps : float
        Bits per second on the wire; 10 Gbit/s carries 14.88 million frames of 64 B a second.
    frequency_hz, instructions_per_cycle : float
        Of one processor. A single-issue engine that never waits executes one instruction per cycle.
    """
    rows = []
    for size in frame_bytes:
        rate = line_bps / (8.0 * (size + WIRE_OVERHEAD_BYTES))
        instructions = answer.instructions(size)
        capacity = math.nan if frequency_hz is None else frequency_hz * instructions_per_cycle
        rows.append(
            Required(
                frame_bytes=size,
                line_bps=line_bps,
                packets_per_s=rate,
                instructions=instructions,
                instructions_per_s=rate * instructions,
                budget=capacity / rate,
                processors=None if frequency_hz is None else math.ceil(rate * instructions / capacity),
            )
        )
    return tuple(rows)


@value
class CachegrindCounts:
    """Means per packet, at least 0: the difference of two runs may be off by an event or two of their loops.

    An instruction that reads and writes back one address counts as one read (cachegrind's manual, "Dr").
    """

    instructions: float
    reads: float
    writes: float
    branches: float = field("Conditional branches")
    mispredicted: float = field("Conditional branches that cachegrind's predictor gets wrong")
    jumps: float = field("Indirect jumps")
    jumps_mispredicted: float = field("Indirect jumps that the predictor gets wrong")
    d1_misses: float = field("Misses of a data cache of 32 KiB, 8 ways, lines of 64 B")
    packets: int = field("Packets of the mean")


def count_workload(case: WorkloadCase, *, on_progress: ShareProgress | None = None) -> CachegrindCounts:
    """Count events per packet, by two runs under cachegrind.

    Only the second run processes the packets, so that the runs differ by the kernel alone. Their command lines
    have the same length: another letter would move stack and heap, and an interpreter at other addresses starts with
    hundreds of other events.

    Raises EnvironmentProblem: valgrind is missing, or it fails.
    """
    # Each packet once, so that the mix of sizes is that of all.
    request = case.request(warm_up=case.warm_up, measured=HELD_PACKETS)
    idle, busy = (child_command({**request, "idle": is_idle}) for is_idle in (True, False))
    idle[-1] = idle[-1].ljust(len(busy[-1]))
    added = added_events(idle, busy, *_OPTIONS, on_progress=on_progress)

    def mean_of(*events: str) -> float:
        return max(sum(added[event] for event in events), 0) / HELD_PACKETS

    return CachegrindCounts(
        instructions=mean_of("Ir"),
        reads=mean_of("Dr"),
        writes=mean_of("Dw"),
        branches=mean_of("Bc"),
        mispredicted=mean_of("Bcm"),
        jumps=mean_of("Bi"),
        jumps_mispredicted=mean_of("Bim"),
        d1_misses=mean_of("D1mr", "D1mw"),
        packets=HELD_PACKETS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel of ``crates/probe`` with its title and the suite and group that it represents.

    ``table`` names its ``entries`` ("" and 0: it has no table).
    """

    name: str
    title: str
    group: str
    works_on: Literal["header", "payload"]
    source: str
    table: str
    entries: int


@value
class WorkloadCase:
    """A kernel and its packets."""

    kernel: Kernel
    entries: int | None = field("Entries of its table; None: the kernel's own number", default=None)
    frames: FrameMix | None = field(
        "Sizes of generated packets; None: those of RFC 2544, equally often, which show the cost of a byte",
        default=None,
    )
    capture: Path | None = field("A pcap or pcapng file instead of generated packets", default=None)
    content: Literal["words", "random"] = field(
        "Payload of generated packets: words by Zipf's law, which compress, or random bytes, which do not",
        default="words",
    )
    flows: int = field("Flows of generated packets; a packet belongs to each with equal probability", default=1024)
    seed: int = 1

    @property
    def warm_up(self) -> int:
        """Packets until the state is steady: tables are in memory and queues filled."""
        entries = self.kernel.entries if self.entries is None else self.entries
        return max(HELD_PACKETS, _PACKETS_PER_ENTRY * entries)

    def request(
        self, *, warm_up: int = 0, measured: int = 0, duration_s: float = 0.0, traced: bool = False
    ) -> dict[str, object]:
        """Return the request of ``run_workload``."""
        source: dict[str, object]
        if self.capture is not None:
            source = {"capture": {"path": str(self.capture.absolute())}}
        else:
            sizes = self.frames.sequence_bytes if self.frames else RFC2544_FRAME_BYTES
            mix = [[size, float(count)] for size, count in sorted(Counter(sizes).items())]
            source = {"generated": {"mix": mix, "content": self.content, "flows": self.flows}}
        return {
            "kernel": self.kernel.name,
            "entries": self.entries,
            "source": source,
            "packets": HELD_PACKETS,
            "warm_up": warm_up,
            "measured": measured,
            "duration_s": duration_s,
            "traced": traced,
            "seed": self.seed,
        }


def kernels() -> tuple[Kernel, ...]:
    """Return all kernels.

    Examples
    --------
    >>> kernels()[0].name
    'rtr'
    """
    from routecast.lab import _lab

    return tuple(Kernel(**entry) for entry in json.loads(_lab.workload_kernels()))


def read_kernel(name: str) -> Kernel:
    """Return a kernel by its name.

    Raises ModelProblem: there is no kernel of that name; the message suggests the nearest.
    """
    kernel_by_name = {kernel.name: kernel for kernel in kernels()}
    if name not in kernel_by_name:
        message = f"is not a kernel; {did_you_mean(name, kernel_by_name)}; `routecast workload list` describes each"
        raise ModelProblem(f"workload {name!r}", [Problem("", message)])
    return kernel_by_name[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMeans:
    """Means of the packets of one frame size, per packet.

    ``instructions`` are the sum of ``loads``, ``stores``, ``updates`` (both), ``branches`` (conditional), ``jumps``
    (jumps, calls, returns) and ``others``. ``packet_*`` are accesses to packets as they arrive and leave, ``other_*``
    those to all other memory: tables, state, the stack.
    """

    frame_bytes: float
    payload_bytes: float
    packets: int
    instructions: float
    loads: float
    stores: float
    updates: float
    branches: float
    jumps: float
    others: float
    packet_reads: float
    packet_writes: float
    other_reads: float
    other_writes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFit:
    """Least squares over packets: ``per_packet + per_byte · frame_bytes``.

    ``r_squared`` is the share of the variance that the line explains (NaN without variance); ``worst_ratio`` the
    largest relative distance of a size's mean from it. With one size only, ``per_byte`` is NaN and ``per_packet`` the
    mean.
    """

    per_packet: float
    per_byte: float
    r_squared: float
    worst_ratio: float

    def at(self, frame_bytes: float) -> float:
        """Return the line's value for a frame."""
        slope = 0.0 if math.isnan(self.per_byte) else self.per_byte
        return self.per_packet + slope * frame_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Misses:
    """Misses per packet of a fully associative cache that replaces the least recently used line of 64 B.

    ``data`` includes packets, ``other_data`` does not; ``instructions`` are of a cache for instructions alone.
    """

    cache_bytes: int
    data: float
    other_data: float
    instructions: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Speed of the kernel on this host with warm tables: median over rounds of all packets.

    ``instructions_per_cycle`` takes the instructions of these packets from the fitted line, since fewer were traced.
    """

    ns_per_packet: float
    cycles_per_packet: float
    instructions_per_cycle: float


@value
class Characterisation:
    """The work of a kernel per packet."""

    case: WorkloadCase
    entries: int = field("Entries of the kernel's table; 0: it has none")
    sizes: tuple[SizeMeans, ...] = field(
        "Means by frame size; those of a capture with many sizes are in classes of similar sizes"
    )
    mean: SizeMeans = field("Means over all traced packets")
    fit: LineFit = field("Instructions by frame size")
    packets: int = field("Packets traced")
    complete: bool = field("Whether all requested packets were traced")
    static_instructions: int = field("Instructions that ran at least once")
    code_bytes: int = field("Bytes of the instructions that ran at least once")
    for_99_percent: int = field("Fewest instructions that make up 99 % of those executed")
    for_90_percent: int = field("Fewest instructions that make up 90 % of those executed")
    packet_lines: int = field("Lines of 64 B of packets touched in all")
    other_lines: int = field("Other lines of 64 B touched in all")
    data_accesses: float = field("Accesses to lines of data per packet, misses among them")
    other_accesses: float = field("Accesses to lines of other data, per packet")
    instruction_accesses: float = field("Accesses to lines of instructions, per packet")
    cold_misses: float = field("Misses of ``data`` per packet at the first touch of a line, which no cache avoids")
    misses: tuple[Misses, ...]
    tempo: Speed | None
    held: int = field("Packets that the kernel cycles through")
    skipped: int = field("Packets of the capture left out (not IPv4)")
    cut: int = field("Packets that the capture truncated")
    more: bool = field("Whether the capture has more packets")

    def instructions(self, frame_bytes: float) -> float:
        """Return instructions per packet of a size: the mean of that size if it was traced, else the line's value."""
        exact = next((size for size in self.sizes if size.frame_bytes == frame_bytes), None)
        return exact.instructions if exact else self.fit.at(frame_bytes)

    def to_json(self) -> dict[str, object]:
        """Return plain data; unknown values are None."""
        case = self.case
        return {
            "kernel": case.kernel.name,
            "capture": str(case.capture) if case.capture else None,
            "content": None if case.capture else case.content,
            "seed": case.seed,
            **plain(
                {
                    "entries": self.entries,
                    "sizes": self.sizes,
                    "mean": self.mean,
                    "fit": self.fit,
                    "packets": self.packets,
                    "complete": self.complete,
                    "static_instructions": self.static_instructions,
                    "code_bytes": self.code_bytes,
                    "packet_lines": self.packet_lines,
                    "other_lines": self.other_lines,
                    "data_accesses": self.data_accesses,
                    "other_accesses": self.other_accesses,
                    "instruction_accesses": self.instruction_accesses,
                    "cold_misses": self.cold_misses,
                    "misses": self.misses,
                    "tempo": self.tempo,
                    "held": self.held,
                    "skipped": self.skipped,
                    "cut": self.cut,
                    "more": self.more,
                }
            ),
        }


def characterisation_of(case: WorkloadCase, run: Mapping[str, Any], trace: Mapping[str, Any]) -> Characterisation:
    """Return the characterisation from the core's outcomes of a run at full speed and of a trace."""
    packets = trace["packets"]
    count = len(packets)
    reuses = [trace[name] for name in ("data", "other_data", "instructions")]
    ns, cycles = run["ns_per_packet"], run["cycles_per_packet"]
    code = trace["code"]
    sizes = _by_size(packets)
    fit = fitted_line([(packet["frame_bytes"], packet["instructions"]) for packet in packets])
    held_packets = sum(count for _, count in run["sizes"])
    mean_bytes = math.fsum(size * count for size, count in run["sizes"]) / held_packets
    return Characterisation(
        case=case,
        entries=run["entries"],
        sizes=sizes,
        mean=_mean(packets),
        fit=fit,
        packets=count,
        complete=trace["complete"],
        static_instructions=code["instructions"],
        code_bytes=code["bytes"],
        for_99_percent=code["for_99_percent"],
        for_90_percent=code["for_90_percent"],
        packet_lines=trace["packet_lines"],
        other_lines=trace["other_lines"],
        data_accesses=reuses[0]["accesses"] / count,
        other_accesses=reuses[1]["accesses"] / count,
        instruction_accesses=reuses[2]["accesses"] / count,
        cold_misses=reuses[0]["cold"] / count,
        misses=tuple(
            Misses(
                cache_bytes=data["cache_bytes"],
                data=data["misses"] / count,
                other_data=other["misses"] / count,
                instructions=code_point["misses"] / count,
            )
            for data, other, code_point in zip(*(distance["misses"] for distance in reuses), strict=True)
        ),
        tempo=None
        if ns is None
        else Speed(ns_per_packet=ns, cycles_per_packet=cycles, instructions_per_cycle=fit.at(mean_bytes) / cycles),
        held=run["packets"],
        skipped=run["skipped"],
        cut=run["cut"],
        more=run["more"],
    )


def fitted_line(points: Sequence[tuple[float, float]]) -> LineFit:
    """Fit a line to points (frame_bytes, value) by least squares.

    Examples
    --------
    >>> fitted_line([(64, 164), (128, 228), (256, 356)])
    LineFit(per_packet=100.0, per_byte=1.0, r_squared=1.0, worst_ratio=0.0)
    """
    count = len(points)
    mean_x = math.fsum(x for x, _ in points) / count
    mean_y = math.fsum(y for _, y in points) / count
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    variance = math.fsum((y - mean_y) ** 2 for _, y in points)
    if spread == 0.0:
        return LineFit(per_packet=mean_y, per_byte=math.nan, r_squared=math.nan, worst_ratio=0.0)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    intercept = mean_y - slope * mean_x
    means: dict[float, list[float]] = {}
    for x, y in points:
        means.setdefault(x, []).append(y)
    return LineFit(
        per_packet=intercept,
        per_byte=slope,
        r_squared=slope**2 * spread / variance if variance > 0.0 else math.nan,
        worst_ratio=max(
            abs((intercept + slope * x) * len(values) / math.fsum(values) - 1.0) for x, values in means.items()
        ),
    )


def _by_size(packets: Sequence[Mapping[str, float]]) -> tuple[SizeMeans, ...]:
    """Return means by frame size; with many sizes, by powers of the square root of two."""
    sizes = {packet["frame_bytes"] for packet in packets}
    classes: dict[float, list[Mapping[str, float]]] = {}
    for packet in packets:
        size = packet["frame_bytes"]
        name = size if len(sizes) <= _MAX_SIZES else round(2.0 * math.log2(size))
        classes.setdefault(name, []).append(packet)
    return tuple(_mean(classes[name]) for name in sorted(classes))


def _mean(packets: Sequence[Mapping[str, float]]) -> SizeMeans:
    count = len(packets)

    def mean_of(name: str) -> float:
        return math.fsum(packet[name] for packet in packets) / count

    classes = {name: mean_of(name) for name in _CLASSES}
    instructions = mean_of("instructions")
    return SizeMeans(
        frame_bytes=mean_of("frame_bytes"),
        payload_bytes=mean_of("payload_bytes"),
        packets=count,
        instructions=instructions,
        others=instructions - math.fsum(classes.values()),
        **classes,
        **{name: mean_of(name) for name in _ACCESSES},
    )
