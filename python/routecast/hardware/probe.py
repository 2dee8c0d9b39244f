"""Probing this host: what the core measured becomes a :class:`Hardware` with ``stalls = "added"``.

::

    _core.probe_host ─► outcome ─┬─ probe_levels   sizes and costs of L1, L2, L3, DRAM
                                 ├─ probe_shapes   operations' formulas over their parameters
                                 ├─ probe_noise    was the host quiet?
                                 └─ probe_facts    processor, kernel, network cards
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from routecast.errors import FitProblem
from routecast.hardware.model import CallCost, Cpu, Hardware
from routecast.hardware.probe_facts import cpu_name, host_facts, network_cards, packages
from routecast.hardware.probe_levels import LevelFit, fit_levels
from routecast.hardware.probe_native import native
from routecast.hardware.probe_noise import Noise, noise_of
from routecast.hardware.probe_repeats import typical
from routecast.hardware.probe_shapes import fit_operations
from routecast.quantity.quantile import quantile

__all__ = ["Probed", "hardware_of", "probe"]

_MOST_MEMORY_BYTES = 1 << 30
_MEMORY_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A probed host.

    Parameters
    ----------
    hardware : Hardware
    noise : Noise
    fit : LevelFit
    outcome : mapping
        What was measured, as the core told it.
    duration_s : float
    """

    hardware: Hardware
    noise: Noise
    fit: LevelFit
    outcome: Mapping[str, Any]
    duration_s: float


def probe(
    *,
    quick: bool = False,
    cpu: int | None = None,
    seed: int = 1,
    progress: Callable[[float], object] | None = None,
) -> Probed:
    """Measure this host.

    Parameters
    ----------
    quick : bool
        Fewer working sets and repeats: seconds instead of most of a minute.
    cpu : int or None
        The processor to measure on; None leaves the choice to the core.
    seed : int
        Seed of the random lines and permutations.
    progress : callable, optional
        Told the finished share, 0..1.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The host refuses memory or the processor.
    routecast.errors.ModelProblem
        There is no such processor.
    """
    request = {
        "quick": quick,
        "cpu": cpu,
        "most_memory_bytes": most_memory_bytes(),
        "seed": seed,
        "parts": ["clock", "memory", "operations"],
    }
    start = time.monotonic()
    outcome = native("probe_host", request, progress)
    return hardware_of(outcome, duration_s=time.monotonic() - start, cpu=cpu, quick=quick)


def most_memory_bytes() -> int:
    """Return how much the probe may take: a quarter of what is free, 1 GiB at most."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(_MOST_MEMORY_BYTES, int(free * _MEMORY_SHARE))


def hardware_of(
    outcome: Mapping[str, Any], *, duration_s: float = 0.0, cpu: int | None = None, quick: bool = False
) -> Probed:
    """Make the host's hardware of what was measured on it.

    Raises
    ------
    routecast.errors.FitProblem
        The outcome lacks what a fit needs.
    """
    clocks = [float(value) for value in outcome["clock"]["core_hz"]]
    if not clocks or min(clocks) <= 0.0:
        raise FitProblem("clock", "the core's clock was not measured: it is a number > 0")
    frequency_hz = _cycles_hz(outcome["clock"], clocks)
    noise = noise_of(outcome, duration_s)
    fit = fit_levels(outcome, frequency_hz)
    operations, operation_notes = fit_operations(outcome.get("operations", ()))
    cards, card_notes = network_cards()
    sockets, cores = packages()
    name = cpu_name()
    at = datetime.now(UTC)
    cpu = int(outcome.get("cpu", cpu or 0))
    facts = {
        **host_facts(cpu),
        "probed_cpu": cpu,
        "probed_at": at.isoformat(timespec="seconds"),
        "probe": "quick" if quick else "full",
        "probe_s": round(duration_s, 1),
        "clock_counter": str(outcome["clock"].get("counter", "")),
        "tsc_hz": float(outcome["clock"]["tsc_hz"]),
        "noise": noise.verdict,
        "steal_ratio": noise.steal_ratio,
        "interruptions": noise.interruptions,
        "scatter_ratio": round(noise.scatter_ratio, 4),
        "l1_dependent_cycles": round(fit.l1_cycles["dependent"], 2),
        **{f"{pattern}_residual_ratio": round(value, 4) for pattern, value in fit.residual_ratio.items()},
        **_bandwidths(outcome),
    }
    hardware = Hardware(
        name="host",
        title=f"{name}, probed {at:%Y-%m-%d}",
        cpu=Cpu(name=name, sockets=sockets, cores_per_socket=cores, frequency_hz=frequency_hz),
        levels=fit.levels,
        operations=operations,
        stalls="added",
        call=_call(outcome.get("call") or {}),
        nics=cards,
        memory_bytes=float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
        source="routecast hardware probe",
        notes=(
            *(() if noise.is_quiet else (noise.verdict,)),
            *fit.notes,
            *operation_notes,
            *card_notes,
            *(str(note) for note in outcome.get("notes", ())),
        ),
        facts=facts,
    )
    return Probed(hardware=hardware, noise=noise, fit=fit, outcome=outcome, duration_s=duration_s)


def _cycles_hz(clock: Mapping[str, Any], core_hz: list[float]) -> float:
    """Return the clock that ticks were told as cycles by: that of the repeats before everything else.

    With another one, all times in seconds would be off by the ratio.
    """
    before = core_hz[: (len(core_hz) + 1) // 2]
    return float(clock.get("cycles_hz") or quantile(before, 0.5))


def _call(call: Mapping[str, Any]) -> CallCost:
    per_batch, per_packet = call.get("per_batch_cycles", ()), call.get("per_packet_cycles", ())
    return CallCost(
        per_batch_cycles=typical(per_batch) if per_batch else 0.0,
        per_packet_cycles=typical(per_packet) if per_packet else 0.0,
    )


def _bandwidths(outcome: Mapping[str, Any]) -> dict[str, float]:
    """Return bytes/s from the largest buffer that was read, written and copied."""
    largest: dict[str, Mapping[str, Any]] = {}
    for point in outcome.get("bandwidth", ()):
        kind = str(point["kind"])
        if kind not in largest or point["bytes"] > largest[kind]["bytes"]:
            largest[kind] = point
    return {f"{kind}_bytes_per_s": quantile(point["bytes_per_s"], 0.5) for kind, point in largest.items()}
