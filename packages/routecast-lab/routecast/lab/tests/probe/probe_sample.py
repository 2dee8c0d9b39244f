"""A sample of what the probe of the core answers, made from a host whose levels and costs are known. Not measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

KIB, MIB = 1024, 1024 * 1024
CLOCK_HZ = 2.5e9
SIZES = tuple(round(16 * KIB * 2 ** (step / 2)) // 64 * 64 for step in range(33))  # 16 KiB to 1 GiB


@dataclass(frozen=True, kw_only=True)
class KnownHost:
    """Cache sizes as the system states them and as the process gets them, and cycles of an access to each level."""

    system_bytes: tuple[int, int, int] = (48 * KIB, 2 * MIB, 64 * MIB)
    effective_bytes: tuple[int, int, int] = (48 * KIB, 2 * MIB, 24 * MIB)
    dependent: tuple[float, ...] = (5.0, 15.0, 70.0, 300.0)
    batched: tuple[float, ...] = (0.0, 3.0, 12.0, 40.0)
    streamed: tuple[float, ...] = (2.0, 2.5, 5.0, 11.0)

    def cycles(self, costs: Sequence[float], working_set_bytes: int) -> float:
        """Uniform random lines: a share min(1, C/W) is found within the capacity C."""
        result = [min(1.0, size / working_set_bytes) for size in self.effective_bytes] + [1.0]
        shares = [result[0], *(after - before for before, after in pairwise(result))]
        return sum(share * cost for share, cost in zip(shares, costs, strict=True))


@dataclass(frozen=True, kw_only=True)
class KnownOperation:
    """An operation whose cycles are a known function of its parameters."""

    name: str
    cycles: Callable[[Mapping[str, float]], float]
    grid: tuple[Mapping[str, float], ...] = field(default=())


HT_LOOKUP = KnownOperation(
    name="ht_lookup",
    cycles=lambda p: 7.0 + 2.0 * p["N"] + 1.5 * -(-p["HE"] // 8),
    grid=tuple({"N": n, "HE": he, "max": 512, "p": 0.0} for n in (1, 2, 4) for he in (8, 12, 16, 32, 56)),
)


def sample(
    host: KnownHost | None = None,
    operations: Sequence[KnownOperation] = (HT_LOOKUP,),
    *,
    scatter: float = 0.01,
    steal_ratio: float = 0.0,
    interruptions: int = 0,
    seed: int = 1,
) -> dict[str, Any]:
    """Return an outcome in the form of ``_core.probe_host``; repeats lie up to ``scatter`` above the truth."""
    host = host or KnownHost()
    stream = Random(seed)

    def repeats(cycles: float) -> list[float]:
        return [cycles * (1.0 + scatter * stream.random()) for _ in range(9)]

    def curve(costs: Sequence[float], more: float = 1.0) -> list[dict[str, Any]]:
        return [{"bytes": size, "pages": "huge", "cycles": repeats(more * host.cycles(costs, size))} for size in SIZES]

    normal = [{"bytes": SIZES[-1], "pages": "normal", "cycles": repeats(1.5 * host.cycles(host.dependent, SIZES[-1]))}]
    levels = ("L1d", "L2", "L3")
    return {
        "clock": {"tsc_hz": 2.3e9, "core_hz": [CLOCK_HZ] * 5, "counter": "rdtsc"},
        "steal_ratio": steal_ratio,
        "interruptions": interruptions,
        "caches": [
            {"level": level, "size_bytes": size, "line_bytes": 64, "shared_cpus": 1}
            for level, size in zip(levels, host.system_bytes, strict=True)
        ],
        "latency": curve(host.dependent) + normal,
        "batched": curve(host.batched),
        "streamed": curve(host.streamed),
        "bandwidth": [
            {"kind": kind, "bytes": 256 * MIB, "bytes_per_s": [1e10, 1.1e10, 1.05e10]}
            for kind in ("read", "write", "copy")
        ],
        "call": {"per_batch_cycles": repeats(20.0), "per_packet_cycles": repeats(0.5)},
        "operations": [
            {
                "operation": operation.name,
                "parameters": dict(parameters),
                "cycles": repeats(operation.cycles(parameters)),
                "level": "L1",
            }
            for operation in operations
            for parameters in operation.grid
        ],
        "perf": {"available": False, "why": "a sample"},
    }
