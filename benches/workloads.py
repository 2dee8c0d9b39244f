"""The benchmark workloads as router models and loads, with the truth about each from queueing theory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from routecast.evaluate import MMc, MMcK
from routecast.load import Arrivals, Flow, FlowSet, OfferedLoad
from routecast.router import Need, Port, ResourcePool, Route, RouterModel, ServiceCost, TaskUnit, multicore, station
from routecast.router.station import FAST_LINK_BPS, LONG_QUEUE_FRAMES

__all__ = ["WORKLOADS", "Target", "Theory", "Variant", "Workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Theory:
    """What every contender must find in the steady state, and by which law."""

    law: str
    throughput_pps: float
    loss_ratio: float
    latency_mean_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way in which routecast runs a workload."""

    name: str
    model: RouterModel
    frames: int
    path: Literal["auto", "recursion", "events", "lanes"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What routecast's first variant is to reach: frames per CPU second, and times a peer's."""

    frames_per_s: float
    times: float
    peer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A router, a load, the truth, and how many frames each peer is asked for (about half a second of CPU)."""

    name: str
    title: str
    load: OfferedLoad
    variants: tuple[Variant, ...]
    theory: Theory
    peer_frames: dict[str, int]
    target: Target | None = None
    warmup_us: float = 3000.0
    """Peers leave out what happens before; routecast finds the end of the transient itself (MSER-5)."""


MICROSECOND = ServiceCost(per_packet_s=1e-6)


def _exponential(mean_us: float) -> ServiceCost:
    return ServiceCost(per_packet_s=mean_us * 1e-6, variation="exponential")


def _w1() -> Workload:
    with_links = multicore(4, MICROSECOND, link_bps=FAST_LINK_BPS)
    # The peers' models end behind the cores, so ours does as well.
    cores = {f"core {number}" for number in range(4)}
    router = replace(
        with_links,
        tasks=tuple(replace(task, route=Route()) if task.name in cores else task for task in with_links.tasks),
    )
    flows = tuple(Flow(rss_hash=i, ingress=i // 50, egress=1 - i // 50) for i in range(100))
    return Workload(
        name="W1",
        title="4 cores of 1 us, 100 CBR flows by RSS over 4 queues of 512 frames, load 1.2",
        load=OfferedLoad(rate_pps=4.8e6, flows=FlowSet(name="100 flows, 50 per port", flows=flows)),
        variants=(
            Variant(name="routecast, recursion", model=router, frames=20_000_000, path="recursion"),
            Variant(name="routecast, events", model=router, frames=4_000_000, path="events"),
            Variant(name="routecast, recursion, with outgoing links", model=with_links, frames=8_000_000),
        ),
        # Always full: a frame that gets in finds 511 waiting and a service of which some part is left, and takes
        # 1 us itself, so 512 to 513 us; the middle stands for how arrivals and services interlock.
        theory=Theory(
            law="always full queues", throughput_pps=4e6, loss_ratio=1.0 - 1.0 / 1.2, latency_mean_s=512.5e-6
        ),
        peer_frames={"ns-3": 2_000_000, "SimPy": 200_000, "Ciw": 30_000, "limit": 600_000_000},
        target=Target(frames_per_s=80e6, times=15.0, peer="ns-3"),
    )


def _w2() -> Workload:
    router = station(_exponential(1.0), queue_frames=49)
    law = MMcK(arrival_pps=0.9e6, service_s=1e-6, servers=1, capacity_frames=50)
    return Workload(
        name="W2",
        title="M/M/1/50 at load 0.9",
        load=OfferedLoad(rate_pps=0.9e6, arrivals=Arrivals.poisson()),
        variants=(
            Variant(name="routecast, recursion", model=router, frames=8_000_000, path="recursion"),
            Variant(name="routecast, lanes", model=router, frames=20_000_000, path="lanes"),
            Variant(name="routecast, events", model=router, frames=4_000_000, path="events"),
        ),
        theory=Theory(
            law="M/M/1/50",
            throughput_pps=0.9e6 * (1.0 - law.loss_ratio),
            loss_ratio=law.loss_ratio,
            latency_mean_s=law.sojourn_mean_s,
        ),
        peer_frames={"ns-3": 1_500_000, "SimPy": 200_000, "Ciw": 60_000, "limit": 90_000_000},
    )


def _w3() -> Workload:
    def task(name: str, pool: str, mean_us: float, onward: str, *, parallel: int = 1) -> TaskUnit:
        return TaskUnit(
            name=name,
            needs=(Need(pool=pool),),
            service=_exponential(mean_us),
            queue_frames=LONG_QUEUE_FRAMES,
            parallel=parallel,
            # Frames of both crossings share the bus in order of arrival.
            request="frame" if pool == "bus" else "task",
            route=Route(to=(onward,)) if onward else Route(),
        )

    router = RouterModel(
        name="NIC, bus, cores, bus, NIC",
        ports=tuple(Port(name=f"port {i}", link_bps=FAST_LINK_BPS, entry="receive") for i in range(2)),
        tasks=(
            task("receive", "nic in", 0.15, "bus in"),
            task("bus in", "bus", 0.1, "process"),
            task("process", "cpu", 1.0, "bus out", parallel=4),
            task("bus out", "bus", 0.1, "send"),
            task("send", "nic out", 0.15, ""),
        ),
        pools=(
            ResourcePool(name="nic in"),
            ResourcePool(name="bus"),
            ResourcePool(name="cpu", units=4),
            ResourcePool(name="nic out"),
        ),
    )
    rate = 3.2e6
    nic = MMc(arrival_pps=rate, service_s=0.15e-6, servers=1)
    bus = MMc(arrival_pps=2.0 * rate, service_s=0.1e-6, servers=1)
    cpu = MMc(arrival_pps=rate, service_s=1e-6, servers=4)
    return Workload(
        name="W3",
        title="NIC, bus, 4 cores with one queue, the same bus, NIC; all exponential, Poisson, load 0.8",
        load=OfferedLoad(rate_pps=rate, arrivals=Arrivals.poisson()),
        variants=(Variant(name="routecast", model=router, frames=3_000_000),),
        theory=Theory(
            law="Jackson network",
            throughput_pps=rate,
            loss_ratio=0.0,
            latency_mean_s=2.0 * nic.sojourn_mean_s + 2.0 * bus.sojourn_mean_s + cpu.sojourn_mean_s,
        ),
        peer_frames={"ns-3": 600_000, "SimPy": 60_000, "Ciw": 20_000, "limit": 14_000_000},
        target=Target(frames_per_s=2.5e6, times=8.0, peer="ns-3"),
    )


WORKLOADS: tuple[Workload, ...] = (_w1(), _w2(), _w3())
