"""The multi-core router of Meyer et al. 2014 (Fig. 7): a distributor and one task unit per core."""

from __future__ import annotations

from typing import Any, Final, Literal

from routecast.errors import ModelProblem, Problem
from routecast.quantity.fields import (
    BitRate,
    ByteRate,
    Count,
    Duration,
    FrameCount,
    FrameRate,
    Frequency,
    WaitingFrames,
)
from routecast.quantity.schema import field, field_faults, is_faulty, value
from routecast.router.bounds import FREQUENCIES_HZ, LINK_RATES_BPS, MAX_FRAMES, MAX_UNITS
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

__all__ = ["Distribution", "Multicore", "multicore"]

Distribution = Literal["rss", "round_robin", "per_flow"]

MAX_CORES: Final = 4096
MAX_PORTS: Final = 1024


@value
class Multicore:
    """A multi-core router: a distributor and one task unit for each core.

    ::

        port 0 ─┐                                        ┌─► core 0 ─┐
        port 1 ─┼─► [nic] ─► [bus in] ─► distributor ──┼─► core 1 ─┼─► [path] ─► [bus out] ─► egress port
                                                       └─► …      ─┘

    The distributor takes no time and needs no resource (Meyer et al. 2014, sec. VI-A.2: NIC controller and DMA). Each
    core is a task unit pinned to its unit of the pool ``cpu``. Task units in brackets exist only where a cap, or
    the time outside the core, is given.
    """

    name: str = field("Name of the router; without it the file's", default="")
    cores: Count = field("Cores that process frames", ge=1, le=MAX_CORES)
    units: Count | None = field("Cores of the machine, where it has more", default=None, ge=1, le=MAX_UNITS)
    service: ServiceCost = field("Cost of a frame on a core")
    queue_frames: WaitingFrames = field("Queue of each core, frames", default=512, le=MAX_FRAMES)
    # The load names the ports where the frames of each flow enter and leave.
    ports: Count = field("Interfaces", default=2, ge=1, le=MAX_PORTS)
    link_bps: BitRate = field("Rate of each link in each direction, bit/s", default=10e9, within=LINK_RATES_BPS)
    tx_ring_frames: FrameCount = field("Transmit ring of each port, frames", default=512, le=MAX_FRAMES)
    # ``rss``: by the flow's hash. ``round_robin``: frame by frame. ``per_flow``: flow ``i`` to core ``i mod cores``.
    distribution: Distribution = field("Distribution of frames over cores", default="rss")
    contention: Contention = field("Slowdown of cores by other busy cores", default=Contention())
    interruptions: Interruptions | None = field("Interruptions of cores at work", default=None)
    frequency_hz: Frequency | None = field("Cycles per second of a core, Hz", default=None, within=FREQUENCIES_HZ)
    power: PowerDraw | None = field("Watts of one core", default=None)
    activation: Activation = field("Activation of a core: when it works", default=Activation())
    batch_frames: FrameCount = field("Greatest batch that a core takes at once, frames", default=1, le=MAX_FRAMES)
    nic_cap_pps: FrameRate | None = field("Frames that the NICs can take in, frames/s", default=None)
    path_s: Duration | None = field(
        "Time of a frame outside its core: cards, buses, wires; no frame waits there, s", default=None
    )
    # Every frame crosses the bus twice, in and out (Meyer et al. 2014, eq. 1: ``μ_Bus/2``).
    bus_bytes_per_s: ByteRate | None = field("Rate of the bus that frames cross in and out, B/s", default=None)

    def model(self) -> RouterModel:
        """Build the router.

        Raises ModelProblem: with all parameters that are out of range.
        """
        title = self.name or f"multicore, {self.cores} core{'s' if self.cores != 1 else ''}"
        problems = field_faults(self)
        if self.units is not None and not is_faulty(problems, "cores", "units") and self.units < self.cores:
            message = f"more cores than units: {self.cores} cores on {self.units} units of the machine"
            problems.insert(0, Problem("cores", message))
        if problems:
            raise ModelProblem(f"router {title!r}", problems)
        port_names = tuple(f"port {index}" for index in range(self.ports))
        core_names = tuple(f"core {index}" for index in range(self.cores))
        out = Route(kind="egress", to=port_names)
        pools = [
            ResourcePool(
                name="cpu",
                units=self.cores if self.units is None else self.units,
                frequency_hz=self.frequency_hz,
                contention=self.contention,
                interruptions=self.interruptions,
                power=self.power,
            )
        ]
        front: list[TaskUnit] = []
        back: list[TaskUnit] = []

        def limit(name: str, pool: str, service: ServiceCost, route: Route) -> TaskUnit:
            needs = (Need(pool=pool),)
            return TaskUnit(name=name, needs=needs, service=service, queue_frames=self.queue_frames, route=route)

        if self.bus_bytes_per_s is not None:
            pools.append(ResourcePool(name="bus"))
            crossing = ServiceCost(per_byte_s=1.0 / self.bus_bytes_per_s)
            front.append(limit("bus in", "bus", crossing, Route(to=("distributor",))))
            back.append(limit("bus out", "bus", crossing, out))
        if self.path_s is not None:
            following = Route(to=(back[0].name,)) if back else out
            service = ServiceCost(per_packet_s=self.path_s)
            path = TaskUnit(
                name="path", service=service, parallel=MAX_UNITS, queue_frames=self.queue_frames, route=following
            )
            back.insert(0, path)
        if self.nic_cap_pps is not None:
            pools.append(ResourcePool(name="nic"))
            following = Route(to=(front[0].name if front else "distributor",))
            front.insert(0, limit("nic", "nic", ServiceCost(per_packet_s=1.0 / self.nic_cap_pps), following))
        kind: RouteKind = self.distribution
        on_a_core = (Need(pool="cpu"),)
        after = Route(to=(back[0].name,)) if back else out
        distributor = TaskUnit(
            name="distributor", queue_frames=self.queue_frames, route=Route(kind=kind, to=core_names)
        )
        workers = [
            TaskUnit(
                name=core,
                needs=on_a_core,
                service=self.service,
                queue_frames=self.queue_frames,
                activation=self.activation,
                batch_frames=self.batch_frames,
                pin=(index,),
                route=after,
            )
            for index, core in enumerate(core_names)
        ]
        entry = front[0].name if front else "distributor"
        return RouterModel(
            name=title,
            ports=tuple(
                Port(name=port, link_bps=self.link_bps, tx_ring_frames=self.tx_ring_frames, entry=entry)
                for port in port_names
            ),
            tasks=(*front, distributor, *workers, *back),
            pools=tuple(pools),
        )


def multicore(cores: int, service: ServiceCost, **others: Any) -> RouterModel:
    """Build a router whose cores each serve their own queue; the arguments are the fields of :class:`Multicore`.

    Examples
    --------
    >>> router = multicore(4, ServiceCost(per_packet_s=1e-6))
    >>> [task.name for task in router.tasks]
    ['distributor', 'core 0', 'core 1', 'core 2', 'core 3']
    """
    return Multicore(cores=cores, service=service, **others).model()
