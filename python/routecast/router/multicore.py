"""Multi-core router of Meyer et al. 2014: a distributor and one task unit per core (paper 000, Fig. 7)."""

from __future__ import annotations

import math
from typing import Literal, get_args

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.model import (
    Activation,
    Contention,
    Interruptions,
    Need,
    Port,
    PowerDraw,
    ResourcePool,
    Route,
    RouteKind,
    RouterModel,
    ServiceCost,
    TaskUnit,
)

__all__ = ["Distribution", "multicore"]

Distribution = Literal["rss", "round_robin", "per_flow"]

_MOST_CORES = 4096
_MOST_PORTS = 1024


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
    interruptions: Interruptions | None = None,
    frequency_hz: float | None = None,
    power: PowerDraw | None = None,
    activation: Activation | None = None,
    batch_frames: int = 1,
    nic_cap_pps: float | None = None,
    bus_bytes_per_s: float | None = None,
    units: int | None = None,
    name: str = "",
) -> RouterModel:
    """Build a router whose cores each serve a queue of their own.

    ::

        port 0 ─┐                                        ┌─► core 0 ─┐
        port 1 ─┼─► [nic] ─► [bus in] ─► distributor ──┼─► core 1 ─┼─► [bus out] ─► egress port
                                                       └─► …      ─┘

    The distributor takes no time and needs no resource (paper 000, sec. VI-A.2: NIC controller and DMA). Each
    core is a task unit pinned to its unit of the pool ``cpu``. In brackets: only where a cap is given.

    Parameters
    ----------
    cores : int
        Task units that process, 1 to 4096.
    service : ServiceCost
        Cost of a frame on a core, without contention.
    queue_frames : int
        Queue in front of each core.
    ports : int
        How many; frames of flow ``i`` enter and leave where the load says.
    link_bps : float
        Rate of each port, each direction.
    tx_ring_frames : int
        Transmit ring of each port.
    distribution : {"rss", "round_robin", "per_flow"}
        ``rss``: by the flow's hash. ``round_robin``: frame by frame. ``per_flow``: flow ``i`` to core ``i mod
        cores``.
    contention : Contention or None
        Factor on the service time by the number of busy cores, as it changes from moment to moment (S5).
    interruptions : Interruptions or None
        What takes a core away while it works.
    frequency_hz : float or None
        Needed where ``service`` counts cycles.
    power : PowerDraw or None
        Of one core.
    activation : Activation or None
        Of each core's task unit.
    batch_frames : int
        Frames that a core takes at once, at most.
    nic_cap_pps : float or None
        Frames per second that the NICs together can take in.
    bus_bytes_per_s : float or None
        Bytes per second of the bus that every frame crosses twice, in and out (paper 000, eq. 1:
        ``μ_Bus/2``).
    units : int or None
        Cores of the machine, where that is more than ``cores``.
    name : str

    Raises
    ------
    ModelProblem
        A parameter is out of range; all of them at once.

    Examples
    --------
    >>> router = multicore(4, ServiceCost(per_packet_s=1e-6))
    >>> [task.name for task in router.tasks]
    ['distributor', 'core 0', 'core 1', 'core 2', 'core 3']
    """
    title = name or f"multicore, {cores} core{'s' if cores != 1 else ''}"
    problems = _problems(
        cores=cores,
        ports=ports,
        distribution=distribution,
        nic_cap_pps=nic_cap_pps,
        bus_bytes_per_s=bus_bytes_per_s,
        units=units,
    )
    if problems:
        raise ModelProblem(f"router {title!r}", problems)
    port_names = tuple(f"port {index}" for index in range(ports))
    core_names = tuple(f"core {index}" for index in range(cores))
    out = Route(kind="egress", to=port_names)
    pools = [
        ResourcePool(
            name="cpu",
            units=cores if units is None else units,
            frequency_hz=frequency_hz,
            contention=contention or Contention(),
            interruptions=interruptions,
            power=power,
        )
    ]
    front: list[TaskUnit] = []
    back: list[TaskUnit] = []
    bus_in_next = "distributor"
    if bus_bytes_per_s is not None:
        pools.append(ResourcePool(name="bus"))
        crossing = ServiceCost(per_byte_s=1.0 / bus_bytes_per_s)
        need = (Need(pool="bus"),)
        front.append(
            TaskUnit(
                name="bus in",
                needs=need,
                service=crossing,
                queue_frames=queue_frames,
                route=Route(to=("distributor",)),
            )
        )
        back.append(TaskUnit(name="bus out", needs=need, service=crossing, queue_frames=queue_frames, route=out))
        bus_in_next = "bus in"
    if nic_cap_pps is not None:
        pools.append(ResourcePool(name="nic"))
        front.insert(
            0,
            TaskUnit(
                name="nic",
                needs=(Need(pool="nic"),),
                service=ServiceCost(per_packet_s=1.0 / nic_cap_pps),
                queue_frames=queue_frames,
                route=Route(to=(bus_in_next,)),
            ),
        )
    kind: RouteKind = distribution
    on_a_core = (Need(pool="cpu"),)
    activation = activation or Activation()
    after = Route(to=("bus out",)) if back else out
    distributor = TaskUnit(name="distributor", queue_frames=queue_frames, route=Route(kind=kind, to=core_names))
    workers = [
        TaskUnit(
            name=core,
            needs=on_a_core,
            service=service,
            queue_frames=queue_frames,
            activation=activation,
            batch_frames=batch_frames,
            pin=(index,),
            route=after,
        )
        for index, core in enumerate(core_names)
    ]
    entry = front[0].name if front else "distributor"
    return RouterModel(
        name=title,
        ports=tuple(
            Port(name=port, link_bps=link_bps, tx_ring_frames=tx_ring_frames, entry=entry) for port in port_names
        ),
        tasks=(*front, distributor, *workers, *back),
        pools=tuple(pools),
    )


def _problems(
    *,
    cores: int,
    ports: int,
    distribution: str,
    nic_cap_pps: float | None,
    bus_bytes_per_s: float | None,
    units: int | None,
) -> list[Problem]:
    problems = []
    if not isinstance(cores, int) or not 1 <= cores <= _MOST_CORES:
        problems.append(Problem("cores", f"got {cores}: a whole number from 1 to {_MOST_CORES}"))
    elif units is not None and units < cores:
        problems.append(Problem("cores", f"more cores than units: {cores} cores on {units} units of the machine"))
    if not isinstance(ports, int) or not 1 <= ports <= _MOST_PORTS:
        problems.append(Problem("ports", f"got {ports}: a whole number from 1 to {_MOST_PORTS}"))
    if distribution not in get_args(Distribution):
        meant = did_you_mean(str(distribution), get_args(Distribution))
        problems.append(Problem("distribution", f'got "{distribution}": {meant}'))
    for place, value in (("nic_cap_pps", nic_cap_pps), ("bus_bytes_per_s", bus_bytes_per_s)):
        if value is not None and not (math.isfinite(value) and value > 0.0):
            problems.append(Problem(place, f"got {value}: a finite number > 0"))
    return problems
