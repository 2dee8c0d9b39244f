"""The multi-core router of Meyer et al. 2014: a distributor and one task unit per core (paper 000, Fig. 7)."""

from __future__ import annotations

from typing import Literal

from routecast.router.model import (
    Activation,
    Contention,
    Need,
    Policy,
    Port,
    PowerDraw,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
)

__all__ = ["Distribution", "multicore"]

Distribution = Literal["rss", "round_robin", "per_flow"]


def multicore(
    cores: int,
    service: ServiceCost,
    *,
    queue_frames: int = 512,
    ports: int = 2,
    link_bps: float = 10e9,
    tx_ring_frames: int = 512,
    distribution: Distribution = "rss",
    contention: Contention | None = None,
    frequency_hz: float | None = None,
    power: PowerDraw | None = None,
    activation: Activation | None = None,
    batch_frames: int = 1,
    nic_cap_pps: float | None = None,
    bus_bytes_per_s: float | None = None,
    name: str = "",
) -> RouterModel:
    """Build a router whose cores each serve a queue of their own.

    STUB SIGNATURE: parameters as named; see the issue.
    """
    raise NotImplementedError
