"""Small routers with known theory: one station (M/M/1, M/D/1, M/M/c, …) and stations in tandem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from routecast.router.model import Need, Port, ResourcePool, Route, RouterModel, ServiceCost, TaskUnit

__all__ = ["FAST_LINK_BPS", "LONG_QUEUE_FRAMES", "station", "tandem"]

FAST_LINK_BPS: Final = 1e15
"""Rate of a link with negligible transmission time: a frame of 64 B takes 0.7 ps."""

LONG_QUEUE_FRAMES: Final = 1_000_000
"""Length of a queue that represents an infinite queue."""


def station(
    service: ServiceCost,
    *,
    servers: int = 1,
    queue_frames: int = LONG_QUEUE_FRAMES,
    frequency_hz: float | None = None,
    name: str = "station",
) -> RouterModel:
    """Build one task unit with a common queue in front of ``servers`` units.

    In Kendall's notation with Poisson arrivals: exponential service M/M/``servers``, with a finite queue
    M/M/c/K with ``K = servers + queue_frames``.

    Examples
    --------
    >>> station(ServiceCost(per_packet_s=1e-6, variation="exponential"), servers=4).task("station").parallel
    4
    """
    return RouterModel(
        name=name,
        ports=tuple(Port(name=f"port {i}", link_bps=FAST_LINK_BPS, entry="station") for i in range(2)),
        tasks=(
            TaskUnit(
                name="station",
                needs=(Need(pool="server"),),
                service=service,
                queue_frames=queue_frames,
                parallel=servers,
            ),
        ),
        pools=(ResourcePool(name="server", units=servers, frequency_hz=frequency_hz),),
    )


def tandem(
    services: Sequence[ServiceCost],
    *,
    servers: Sequence[int] | None = None,
    queue_frames: int = LONG_QUEUE_FRAMES,
    name: str = "tandem",
) -> RouterModel:
    """Build stations in series, each with its own units; with exponential service a Jackson network."""
    counts = list(servers) if servers is not None else [1] * len(services)
    names = [f"station {index}" for index in range(len(services))]
    tasks = tuple(
        TaskUnit(
            name=names[index],
            needs=(Need(pool=f"server {index}"),),
            service=service,
            queue_frames=queue_frames,
            parallel=counts[index],
            route=Route(to=(names[index + 1],)) if index + 1 < len(names) else Route(),
        )
        for index, service in enumerate(services)
    )
    return RouterModel(
        name=name,
        ports=tuple(Port(name=f"port {i}", link_bps=FAST_LINK_BPS, entry=names[0] if names else "") for i in range(2)),
        tasks=tasks,
        pools=tuple(ResourcePool(name=f"server {index}", units=count) for index, count in enumerate(counts)),
    )
