"""The same packets under valgrind's cachegrind: a second opinion on counts, and what a real cache and branches miss.

Two runs that differ only in whether the packets are processed differ by the kernel alone; compare
:mod:`routecast.testbed.instruction_counts`, whose counts hold the loop too. Their command lines are equally long: one
more letter moves the stack and the heap, and an interpreter at other addresses starts with hundreds of other events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from routecast.quantity.schema import field, value
from routecast.testbed.cachegrind import cachegrind_sums, refuse_no_valgrind
from routecast.testbed.workload.answer import HELD_PACKETS, WorkloadCase
from routecast.testbed.workload.characterise import child_command

__all__ = ["CachegrindCounts", "count_workload"]

D1_BYTES = 32_768
_OPTIONS = ("--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", f"--D1={D1_BYTES},8,64", "--LL=1048576,16,64")


@value
class CachegrindCounts:
    """Means per packet; none is below 0, though a difference of two runs may be by an event or two of their loops."""

    # An instruction that reads a place and writes it back counts as one read (cachegrind's manual, "Dr").
    instructions: float
    reads: float
    writes: float
    # Conditional branches, and those that cachegrind's predictor gets wrong; indirect jumps likewise in ``jumps`` and
    # ``jumps_mispredicted``.
    branches: float
    mispredicted: float = field("Conditional branches, and those that cachegrind's predictor gets wrong")
    jumps: float
    jumps_mispredicted: float
    d1_misses: float = field("Of a data cache of 32 KiB, 8 ways, lines of 64 B")
    packets: int = field("Over how many the counts are a mean")

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return asdict(self)


def count_workload(case: WorkloadCase, *, progress: Callable[[float], object] | None = None) -> CachegrindCounts:
    """Count what a packet takes; runs the kernel twice under cachegrind, some fifty times slower.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        valgrind is missing, or it fails.
    """
    refuse_no_valgrind()
    # Once round all packets, so that the mix of sizes is that of all.
    request = case.request(warm_up=case.warm_up, measured=HELD_PACKETS)
    idle, busy = (child_command({**request, "idle": is_idle}) for is_idle in (True, False))
    idle[-1] = idle[-1].ljust(len(busy[-1]))
    few = cachegrind_sums(idle, *_OPTIONS)
    if progress is not None:
        progress(0.5)
    many = cachegrind_sums(busy, *_OPTIONS)
    if progress is not None:
        progress(1.0)

    def of(*events: str) -> float:
        return max(sum(many[event] - few[event] for event in events), 0) / HELD_PACKETS

    return CachegrindCounts(
        instructions=of("Ir"),
        reads=of("Dr"),
        writes=of("Dw"),
        branches=of("Bc"),
        mispredicted=of("Bcm"),
        jumps=of("Bi"),
        jumps_mispredicted=of("Bim"),
        d1_misses=of("D1mr", "D1mw"),
        packets=HELD_PACKETS,
    )
