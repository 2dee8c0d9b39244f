"""What a router file (``*.router.toml``) may say: the tables, their keys, units and meanings."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from routecast.load.fields import Frames
from routecast.load.frames import FrameMix
from routecast.quantity.fields import (
    BitRate,
    ByteRate,
    Cost,
    CostPerByte,
    Count,
    Duration,
    FileModel,
    FrameCount,
    FrameRate,
    Frequency,
    Number,
    Span,
    TimePerByte,
)
from routecast.router.model import ActivationKind, PolicyKind, PollDiscipline, RouteKind, Variation
from routecast.router.power_tables import PowerTable

__all__ = [
    "ActivationTable",
    "ArrivalsTable",
    "ContentionTable",
    "ExplicitRouter",
    "FlowsTable",
    "InterruptionsTable",
    "LoadTable",
    "MulticoreRouter",
    "PolicyTable",
    "PoolTable",
    "PortTable",
    "RandomTimeTable",
    "RouteTable",
    "ServiceTable",
    "SoftirqRouter",
    "TaskTable",
]


class ServiceTable(FileModel):
    """Work for one frame (S5); what is given in cycles needs a frequency of the pool."""

    per_packet: Cost = Field(default=(0.0, 0.0), description="Cost of a frame, cycles or s")
    per_byte: CostPerByte = Field(default=(0.0, 0.0), description="Cost of a byte of a frame, cycles/B or s/B")
    per_batch: Cost = Field(default=(0.0, 0.0), description="Cost of a batch, shared by its frames, cycles or s")
    memory_accesses: Number = Field(default=0.0, description="Memory accesses of a frame that the cache does not serve")
    memory_latency: Span = Field(default=0.0, description="Latency of one memory access, s")
    variation: Variation = Field(
        default="deterministic", description="Distribution of the service time around its mean"
    )
    scv: Number | None = Field(
        default=None, description="Squared coefficient of variation of the service time (gamma, lognormal, …)"
    )


class ContentionTable(FileModel):
    """Factor on the service time by the number k of busy units: 1 + sigma(k-1) + kappa·k(k-1), or a table (S5)."""

    sigma: Number = Field(default=0.0, description="Contention, dimensionless, >= 0")
    kappa: Number = Field(default=0.0, description="Coherence, dimensionless, >= 0")
    table: list[Number] = Field(default=[], description="Factors for 1, 2, … busy units instead of sigma and kappa")


class PolicyTable(FileModel):
    """How the resource manager grants units (S4)."""

    kind: PolicyKind = Field(default="fifo", description="Order in which task units get units")
    quantum: Duration | None = Field(default=None, description="Longest grant under round_robin, fair and linux, s")
    wakeup_granularity: Span = Field(
        default=0.0,
        description="Under linux: by how much less service a thread that wakes takes the unit of another, s",
    )


class RandomTimeTable(FileModel):
    """A random time: a mean with its variation, or a table of quantiles."""

    mean: Span = Field(default=0.0, description="Mean, s")
    variation: Variation = Field(default="deterministic", description="Distribution around the mean")
    scv: Number | None = Field(default=None, description="Squared coefficient of variation (gamma, lognormal, …)")
    quantiles: list[Span] = Field(
        default=[],
        description="Instead of a mean: quantiles at equally spaced probabilities from 0 to 1, in rising order, s",
    )


class InterruptionsTable(FileModel):
    """What takes a unit away while it works; the work resumes afterwards (S5)."""

    rate: Frequency = Field(description="Interruptions per second of a unit's work, Hz")
    duration: RandomTimeTable = Field(description="How long one takes")


class ActivationTable(FileModel):
    """When a task unit works (S6)."""

    kind: ActivationKind = Field(default="dedicated", description="dedicated, polling, interrupt (NAPI), or thread")
    budget: FrameCount = Field(default=64, description="Most frames of a poll, frames")
    interrupt_cost: Span = Field(
        default=0.0, description="Cost of an interrupt, or of the notification that wakes a thread, s"
    )
    moderation: Span = Field(default=0.0, description="Least time between two interrupts, s")
    linger: Span = Field(
        default=0.0,
        description="How long it goes on polling after a poll that came back short, at active power, s",
    )
    wakeup: RandomTimeTable | None = Field(
        default=None,
        description="From an interrupt, or the frame that wakes a thread, until it asks for its unit",
    )
    discipline: PollDiscipline = Field(
        default="gated",
        description="What a poll takes: what it finds (gated), or also what comes meanwhile (exhaustive)",
    )


class RouteTable(FileModel):
    """Where frames go next; no target: they leave the router."""

    kind: RouteKind = Field(default="single", description="How a target is chosen")
    to: list[str] = Field(default=[], description="Names of task units or ports; for kind by_egress one for each port")
    weights: list[Number] = Field(default=[], description="Chances of the targets, for kind random")
    indirection: list[Count] = Field(default=[], description="128 target numbers, for kind rss; none: they go round")
    copies: list[str] = Field(
        default=[], description="Names of task units that get a copy of every frame besides, where it ends"
    )


class NeedTable(FileModel):
    """Units of a pool that a task unit needs while it serves."""

    pool: str = Field(description="Name of the pool")
    units: Count = Field(default=1, description="How many at once")
    until: str = Field(
        default="",
        description="Name of a task unit further on: frames carry the units there; none: given back when it has served",
    )


class PortTable(FileModel):
    """An interface."""

    name: str = Field(description="Name of the port")
    link: BitRate = Field(description="Rate of the link in each direction, bit/s")
    tx_ring: FrameCount = Field(default=512, description="Transmit ring, frames")
    entry: str = Field(description="Name of the task unit that receives its frames")


class PoolTable(FileModel):
    """Like resource units under one resource manager."""

    name: str = Field(description="Name of the pool")
    units: Count = Field(default=1, description="How many units")
    frequency: Frequency | None = Field(default=None, description="Cycles per second of a unit, Hz")
    unit_speed: list[Number] = Field(
        default=[], description="Speed of each unit relative to the frequency; none: all 1"
    )
    policy: PolicyTable = Field(default=PolicyTable(), description="How units are granted")
    switch_cost: Span = Field(default=0.0, description="Lost when a unit turns to another task unit, s")
    migration_cost: Span = Field(default=0.0, description="Lost when a task unit goes on at another unit, s")
    contention: ContentionTable = Field(default=ContentionTable(), description="How units slow each other down")
    interruptions: InterruptionsTable | None = Field(default=None, description="What takes units away while they work")
    power: PowerTable | None = Field(default=None, description="Watts of one unit")


class TaskTable(FileModel):
    """A task unit."""

    name: str = Field(description="Name of the task unit")
    needs: list[NeedTable] = Field(
        default=[], description="Units of pools, all granted at once; none: a processor of its own"
    )
    service: ServiceTable = Field(default=ServiceTable(), description="Cost of a frame")
    queue: FrameCount = Field(default=512, description="Frames that can wait, frames")
    activation: ActivationTable = Field(default=ActivationTable(), description="When it works")
    batch: FrameCount = Field(default=1, description="Most frames served per grant, frames")
    parallel: Count = Field(default=1, description="Frames in service at once")
    request: Literal["task", "frame"] = Field(
        default="task", description="Who asks for units: the task unit, or every waiting frame for itself"
    )
    priority: Count = Field(default=0, description="Larger is more urgent")
    weight: Number = Field(default=1.0, description="Share under the policies fair and linux")
    pin: list[Count] = Field(default=[], description="Units of its first pool that it may use; none: all")
    thread: str = Field(
        default="", description="Name of the thread that it shares with others; none: a thread of its own"
    )
    holds_back: bool = Field(
        default=False, description="Takes a frame only where there is room for it at the next queue"
    )
    route: RouteTable = Field(default=RouteTable(), description="Where frames go next")


class FlowsTable(FileModel):
    """The flows of a load."""

    kind: Literal["crafted", "random", "meshed"] = Field(
        default="crafted",
        description="Spread evenly by RSS; by its real hash; or from every port to every other in turn",
    )
    count: Count = Field(default=1, description="How many flows, 1 to 100000", ge=1, le=100_000)
    seed: Count = Field(default=1, description="Seed of random flows")


class ArrivalsTable(FileModel):
    """How frames follow each other."""

    kind: Literal["cbr", "poisson", "on_off", "trace"] = Field(default="cbr", description="Arrival process")
    burst: FrameCount = Field(default=1, description="Mean burst of on_off, frames")
    peak: Number = Field(default=1.0, description="Peak over mean rate of on_off, dimensionless, > 1")
    trace: str = Field(default="", description="CSV file with the columns time_s, frame_bytes, flow, beside this file")


class LoadTable(FileModel):
    """The load that the router is evaluated with when the user gives none."""

    rate: FrameRate = Field(description="Intended load over all ports, frames/s")
    frames: Frames = Field(
        default=FrameMix.fixed(64), validate_default=False, description="Frame size or mix, B with FCS"
    )
    flows: FlowsTable = Field(default=FlowsTable(), description="The flows")
    arrivals: ArrivalsTable = Field(default=ArrivalsTable(), description="The arrival process")


class ExplicitRouter(FileModel):
    """A router given by its ports, pools and task units."""

    name: str = Field(default="", description="Name of the router; without it the file's")
    port: list[PortTable] = Field(description="The interfaces")
    pool: list[PoolTable] = Field(default=[], description="The resource pools")
    task: list[TaskTable] = Field(description="The task units")
    load: LoadTable | None = Field(default=None, description="Load to evaluate with by default")


class MulticoreRouter(FileModel):
    """A multi-core router in short: a distributor and one task unit for each core."""

    builder: Literal["multicore"] = Field(description="Name of the builder")
    name: str = Field(default="", description="Name of the router; without it the file's")
    cores: Count = Field(description="Cores that process frames")
    units: Count | None = Field(default=None, description="Cores of the machine, where that is more")
    service: ServiceTable = Field(description="Cost of a frame on a core")
    queue: FrameCount = Field(default=512, description="Queue of each core, frames")
    ports: Count = Field(default=2, description="Interfaces")
    link: BitRate = Field(default=10e9, description="Rate of each link in each direction, bit/s")
    tx_ring: FrameCount = Field(default=512, description="Transmit ring of each port, frames")
    distribution: Literal["rss", "round_robin", "per_flow"] = Field(
        default="rss", description="How frames get to cores"
    )
    contention: ContentionTable = Field(default=ContentionTable(), description="How cores slow each other down")
    interruptions: InterruptionsTable | None = Field(default=None, description="What takes cores away while they work")
    frequency: Frequency | None = Field(default=None, description="Cycles per second of a core, Hz")
    power: PowerTable | None = Field(default=None, description="Watts of one core")
    activation: ActivationTable = Field(default=ActivationTable(), description="When a core works")
    batch: FrameCount = Field(default=1, description="Most frames that a core takes at once, frames")
    nic_cap: FrameRate | None = Field(default=None, description="Frames that the NICs can take in, frames/s")
    bus: ByteRate | None = Field(default=None, description="Rate of the bus that frames cross in and out, B/s")
    load: LoadTable | None = Field(default=None, description="Load to evaluate with by default")


class SoftirqRouter(FileModel):
    """A Linux forwarder in short: NAPI threads, one for each core, each with a receive ring of its own."""

    builder: Literal["softirq"] = Field(description="Name of the builder")
    name: str = Field(default="", description="Name of the router; without it the file's")
    cores: Count = Field(default=1, description="Cores that forward")
    per_packet: Span = Field(description="Work for a frame, without slow-down and rules, s")
    per_byte: TimePerByte = Field(default=0.0, description="Work for a byte of a frame, s/B")
    work_iterations: Number = Field(default=0.0, description="Iterations of slow-down for a frame")
    work_per_iteration: Span = Field(default=0.0, description="Work of one iteration of slow-down, s")
    rules: Number = Field(default=0.0, description="Rules that a frame is matched with, one after the other")
    rule: Span = Field(default=0.0, description="Work of one rule, s")
    variation: Variation = Field(default="deterministic", description="Distribution of the work for a frame")
    scv: Number | None = Field(default=None, description="Squared coefficient of variation of that work")
    ring: FrameCount = Field(default=256, description="Receive ring of each core, frames")
    budget: FrameCount = Field(default=64, description="Most frames of a poll (NAPI weight), frames")
    interrupt_cost: Span = Field(default=0.0, description="Work of an interrupt, s")
    linger: Span = Field(default=0.0, description="How long a core goes on polling an empty ring, at active power, s")
    wakeup: RandomTimeTable | None = Field(
        default=None, description="From an interrupt until a sleeping NAPI thread runs"
    )
    interruptions: InterruptionsTable | None = Field(default=None, description="What takes a core away while it works")
    contention: ContentionTable = Field(default=ContentionTable(), description="How cores slow each other down")
    distribution: Literal["rss", "per_flow"] = Field(default="rss", description="How flows get to cores")
    ports: Count = Field(default=2, description="Interfaces")
    link: BitRate = Field(default=10e9, description="Rate of each link in each direction, bit/s")
    tx_ring: FrameCount = Field(default=512, description="Transmit ring of each port, frames")
    power: PowerTable | None = Field(default=None, description="Watts of one core")
    load: LoadTable | None = Field(default=None, description="Load to evaluate with by default")
