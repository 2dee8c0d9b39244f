"""A router from an estimate: the cost of a function on a host becomes task units, pools and ports.

::

    port 0 ─┐                                             ┌─► core 0 ─┐
    port 1 ─┼─► [nic] ─► [memory] ─► distributor ──┼─► core 1 ─┼─► egress port
      …   ─┘                                             └─► …      ─┘

The cores spend the estimate's cycles. ``memory`` spends the time of the DRAM accesses on the memory's channels, where
the host's file describes memory as a resource of its own. ``nic`` passes as many frames as network cards and their bus
carry. Task units in brackets exist only where the estimate knows such a limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from routecast.function.estimate import Estimate, memory_channels
from routecast.hardware.model import Hardware
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.router.model import Need, ResourcePool, Route, RouterModel, ServiceCost, TaskUnit
from routecast.router.multicore import multicore

__all__ = ["cost_by_size", "estimated_router"]

_PORTS = 2
_UNLIMITED_LINK_BPS = 400e9
"""Rate of the ports of a host without network cards: the function limits, not a link."""


def estimated_router(
    estimate: Estimate,
    hardware: Hardware,
    *,
    by_size: Mapping[int, float] | None = None,
    queue_frames: int = 512,
    name: str = "",
) -> RouterModel:
    """Build the router that an estimate describes.

    ``hardware`` is its host. ``by_size`` gives cycles per packet by frame size for an estimate of a mix, so that part
    of the cost is per byte; without it every frame costs the estimate's mean. ``queue_frames`` is the queue in front of
    each core, the memory and the network card. Raises ModelProblem: a parameter is out of range.
    """
    per_packet, per_byte = cost_by_size(estimate, by_size or {})
    frame_bytes = estimate.frames.mean_bytes
    ports = sum(nic.ports for nic in hardware.nics) or _PORTS
    # Frames may leave longer than they arrive, but a model's ports know one size: the link rate compensates.
    link_pps = estimate.limit_pps("link") / ports
    link_bps = link_pps * 8.0 * (frame_bytes + WIRE_OVERHEAD_BYTES) if math.isfinite(link_pps) else _UNLIMITED_LINK_BPS
    card_pps = min(estimate.limit_pps("nic"), estimate.limit_pps("pcie"))
    model = multicore(
        estimate.cores,
        ServiceCost(per_packet_cycles=per_packet, per_byte_cycles=per_byte),
        queue_frames=queue_frames,
        ports=ports,
        link_bps=link_bps,
        frequency_hz=estimate.frequency_hz,
        nic_cap_pps=card_pps if math.isfinite(card_pps) else None,
        name=name or f"{estimate.function} on {estimate.hardware}",
    )
    if hardware.memory is None or not math.isfinite(estimate.limit_pps("memory")):
        return model
    return _with_memory(model, hardware, estimate, queue_frames)


def cost_by_size(estimate: Estimate, by_size: Mapping[int, float]) -> tuple[float, float]:
    """Return cycles per packet and per byte: the straight line nearest to the cycles of the mix's sizes.

    The line meets the estimate's mean over the mix, so the throughput does not change.
    """
    shares = {size: share for size, share in estimate.frames.share_by_bytes.items() if size in by_size}
    if len(shares) < 2:
        return estimate.packet_cycles, 0.0
    total = sum(shares.values())
    mean_bytes = sum(share * size for size, share in shares.items()) / total
    mean_cycles = sum(share * by_size[size] for size, share in shares.items()) / total
    variance = sum(share * (size - mean_bytes) ** 2 for size, share in shares.items())
    covariance = sum(share * (size - mean_bytes) * (by_size[size] - mean_cycles) for size, share in shares.items())
    per_byte = max(covariance / variance, 0.0)
    per_packet = estimate.packet_cycles - per_byte * estimate.frames.mean_bytes
    return (per_packet, per_byte) if per_packet >= 0.0 else (estimate.packet_cycles, 0.0)


def _with_memory(model: RouterModel, hardware: Hardware, estimate: Estimate, queue_frames: int) -> RouterModel:
    assert hardware.memory is not None
    channels = memory_channels(hardware, estimate.cores)
    memory = TaskUnit(
        name="memory",
        needs=(Need(pool="memory"),),
        service=ServiceCost(per_packet_s=estimate.dram_accesses * hardware.memory.access_s),
        queue_frames=queue_frames,
        parallel=channels,
        request="frame",
        route=Route(to=("distributor",)),
    )
    entry = "nic" if any(task.name == "nic" for task in model.tasks) else "memory"
    tasks = [replace(task, route=Route(to=("memory",))) if task.name == "nic" else task for task in model.tasks]
    return replace(
        model,
        ports=tuple(replace(port, entry=entry) for port in model.ports),
        tasks=(*tasks[:1], memory, *tasks[1:]) if entry == "nic" else (memory, *tasks),
        pools=(*model.pools, ResourcePool(name="memory", units=channels)),
    )
