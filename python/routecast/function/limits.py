"""What limits the frames per second of a machine: its cores, memory, network cards, links, buses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from routecast.hardware.model import Hardware
from routecast.load.offered import line_rate_pps
from routecast.quantity import format_bps, format_pps

__all__ = ["Limit", "Resource", "limits_of", "memory_channels"]

Resource = Literal["core", "memory", "nic", "link", "pcie"]

_DESCRIPTOR_BYTES = 16
_TLP_PAYLOAD_BYTES = 256
_TLP_OVERHEAD_BYTES = 24
"""Of a memory write: framing 2, data link layer 6, header 16 (Neugebauer et al. 2018, sec. 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most ``pps`` frames per second over the machine because of ``resource``."""

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
) -> tuple[Limit, ...]:
    """Return the limits, the tightest first.

    Parameters
    ----------
    cores : int
        Cores that process frames.
    core_pps : float
        Frames per second of one core.
    dram_accesses : float
        Accesses to DRAM per frame.
    frames : mapping of int to float
        Share of each frame size, in bytes, FCS included (S1).
    growth_bytes : float
        Bytes that frames are longer, on average, when they leave.
    """
    noun = "core" if cores == 1 else "cores"
    limits = [
        Limit(resource="core", pps=cores * core_pps, reason=f"{cores} {noun} of {format_pps(core_pps)}")
    ]
    limits += _memory(hardware, cores, dram_accesses)
    if hardware.nics:
        wire_bytes = sum(share * size for size, share in frames.items()) + max(growth_bytes, 0.0)
        limits += _cards(hardware, wire_bytes)
    return tuple(sorted(limits, key=lambda one: one.pps))


def memory_channels(hardware: Hardware, cores: int) -> int:
    """Return the channels of the memory that belongs to the sockets that so many cores fill, one by one."""
    channels = hardware.memory.channels if hardware.memory else 0
    return channels * min(hardware.cpu.sockets, math.ceil(cores / hardware.cpu.cores_per_socket))


def _memory(hardware: Hardware, cores: int, dram_accesses: float) -> list[Limit]:
    memory = hardware.memory
    if memory is None or dram_accesses <= 0.0:
        return []
    channels = memory_channels(hardware, cores)
    noun = "channel" if channels == 1 else "channels"
    accesses = "DRAM access" if dram_accesses == 1.0 else "DRAM accesses"
    reason = f"{dram_accesses:.3g} {accesses} of {memory.access_s * 1e9:.3g} ns over {channels} {noun}"
    return [Limit(resource="memory", pps=channels / memory.access_s / dram_accesses, reason=reason)]


def _cards(hardware: Hardware, wire_bytes: float) -> list[Limit]:
    """Limits of the network cards; frames enter and leave evenly over all ports, each both ways at once."""
    limits = []
    caps = sum(nic.cap_pps for nic in hardware.nics)
    if math.isfinite(caps):
        limits.append(Limit(resource="nic", pps=caps, reason=f"{len(hardware.nics)} network cards"))
    ports = sum(nic.ports for nic in hardware.nics)
    total_bps = sum(nic.ports * nic.link_bps for nic in hardware.nics)
    slowest_bps = min(nic.link_bps for nic in hardware.nics)
    reason = f"{ports} {'port' if ports == 1 else 'ports'}, {format_bps(total_bps)} each way"
    limits.append(Limit(resource="link", pps=ports * line_rate_pps(slowest_bps, wire_bytes), reason=reason))
    share = [nic.ports / ports for nic in hardware.nics]
    bus_pps = [
        nic.pcie.bytes_per_s / (_pcie_bytes(wire_bytes) * part)
        for nic, part in zip(hardware.nics, share, strict=True)
        if nic.pcie is not None
    ]
    if bus_pps:
        limits.append(Limit(resource="pcie", pps=min(bus_pps), reason="bus of the network card, each way"))
    return limits


def _pcie_bytes(frame_bytes: float) -> float:
    """Bytes on the bus for a frame without its FCS, and its descriptor, each way."""
    data = frame_bytes - 4.0
    packets = math.ceil(data / _TLP_PAYLOAD_BYTES)
    return data + packets * _TLP_OVERHEAD_BYTES + _DESCRIPTOR_BYTES + _TLP_OVERHEAD_BYTES
