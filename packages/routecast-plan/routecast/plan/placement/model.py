"""A placement problem: elements of chains, servers, links between them, rules, and the goal.

::

    chains: lb ─► br ─► lb            elements: 2 lb, 2 br            servers: 2 of 2 cores, a link
            (share of the load)                    └────── which on which, on which cores? ──────┘

A multistage router is the chain of a balancer, a router, and the balancer by which a flow leaves. Any other chain of
functions has the same description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from routecast.load.frames import FrameMix
from routecast.quantity.fields import (
    BitRate,
    Count,
    Duration,
    Factor,
    FrameRate,
    Length,
    Natural,
    Percentage,
    Power,
    Share,
    Size,
)
from routecast.quantity.schema import field, value
from routecast.router.model import ServiceCost
from routecast.virtual.machines import Server
from routecast.virtual.technology import Technology

__all__ = [
    "Balancing",
    "Cable",
    "Chain",
    "ElementGroup",
    "ElementKind",
    "Goal",
    "Objective",
    "PinChoice",
    "PlacementProblem",
    "Rules",
    "ServerGroup",
    "ServerLinks",
    "Throughput",
    "member_names",
]

Name = Annotated[str, Length(1, 60)]
PinnedCores = Annotated[tuple[Natural, ...], Length(0, 256)]
ElementKind = Literal["balancer", "router", "function"]
Balancing = Literal["round_robin", "flow_hash", "local"]
Objective = Literal["throughput", "servers", "watts", "price"]
Throughput = Literal["lossless", "forwarded"]
PinChoice = Literal["free", "machines", "threads", "alone"]


def member_names(name: str, number: int) -> tuple[str, ...]:
    """Return the names of a group's members.

    Examples
    --------
    >>> member_names("lb", 2)
    ('lb 1', 'lb 2')
    >>> member_names("lb", 1)
    ('lb',)
    """
    return (name,) if number == 1 else tuple(f"{name} {member}" for member in range(1, number + 1))


@value
class ServerGroup:
    """Servers of one type."""

    name: Name = field('Name; several are called "name 1", "name 2", …')
    number: Count = field("Number of servers", default=1, ge=1, le=1000)
    cores: Count = field("Cores of each server", ge=1, le=256)
    technology: Technology = field("Technology of the machines")
    speed_ratio: Factor = field("Speed of a core relative to the technology's reference machine", default=1.0)
    # Power is linear in the number of busy cores. A server without elements is off.
    idle_w: Power = field("Power of one server without load", default=0.0, key="idle_power")
    busy_w: Power = field("Power with all cores busy; absent: as without load", default=0.0, key="busy_power")
    price: Share = field("Price of a server with elements", default=0.0)
    memory_bytes: Size | None = field("Memory for machines; absent: no limit", default=None)
    slots: Count | None = field("Maximum number of machines on a server; absent: no limit", default=None, ge=0)
    interrupt_cores: PinnedCores = field("Cores that the network cards interrupt, card by card", default=())
    switch_cores: PinnedCores = field("Cores of the polling virtual switch", default=())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the servers."""
        return member_names(self.name, self.number)

    def server(self, name: str) -> Server:
        """Return a server of the group."""
        return Server(
            name=name,
            cores=self.cores,
            technology=self.technology,
            speed_ratio=self.speed_ratio,
            interrupt_cores=self.interrupt_cores,
            switch_cores=self.switch_cores,
        )


@value
class ElementGroup:
    """Equal elements of one kind, each a machine."""

    name: Name = field('Name; several are called "name 1", "name 2", …')
    # A balancer runs ``balance`` on frames from outside and ``return`` on frames that leave; a router runs ``forward``.
    kind: ElementKind = field("Balancer or router of a multistage router, or any function", default="function")
    count: Count = field("Number of elements", default=1, ge=1, le=1000)
    function: str = field("Name of the function in the technology; absent: the name of the element", default="")
    functions: Mapping[str, ServiceCost] = field(
        "Costs of its functions where they differ from those of the technology, by name",
        default_factory=dict,
        key="cost",
    )
    vcpus: Count = field("Threads of its functions", default=1, ge=1, le=64)
    # A balancer has two, a router one.
    interfaces: Count = field(
        "Interfaces of a function; with 1, frames leave by the interface of their arrival", default=2, ge=1, le=2
    )
    ports: Count = field("Outer ports of each, at the first or last stage of a chain", default=1, ge=1, le=64)
    memory_bytes: Size = field("Memory of its machine", default=0.0)
    cores: PinnedCores = field("Cores of all its threads; absent: the search chooses", default=())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the elements."""
        return member_names(self.name, self.count)

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of its machines' functions."""
        if self.kind == "balancer":
            return ("balance", "return")
        return ("forward",) if self.kind == "router" else (self.function or self.name,)

    @property
    def cards(self) -> int:
        """Interfaces of a machine."""
        return {"balancer": 2, "router": 1}.get(self.kind, self.interfaces)


@value
class Chain:
    """The elements that frames pass, in order."""

    name: Name = field("Name of the chain")
    # Within a stage the elements take equal shares of the frames.
    stages: Annotated[tuple[Name, ...], Length(1, 32)] = field(
        "Elements by name; if the last is the first again, frames leave by the port that their flow selects"
    )
    share: Factor = field("Share of the load, relative to other chains", default=1.0)

    @property
    def returns(self) -> bool:
        """Whether frames leave by the group of elements by which they enter."""
        return len(self.stages) > 1 and self.stages[0] == self.stages[-1]


@value
class Cable:
    """Cables of another rate between servers of two groups."""

    between: tuple[Name, Name] = field("Two groups of servers, or the same group twice")
    link_bps: BitRate = field("Rate of each, each direction")


@value
class ServerLinks:
    """The links between servers."""

    # The switch is never a bottleneck.
    by: Literal["switch", "cables"] = field(
        "``switch``: a link from each server to a switch; ``cables``: a cable between any two servers", default="switch"
    )
    link_bps: BitRate = field("Rate of each link, each direction", default=1e9)
    cables: tuple[Cable, ...] = field("Cables of another rate", default=(), key="cable")

    def cable_bps(self, first: str, second: str) -> float:
        """Return the rate of a cable between servers of two groups."""
        for cable in self.cables:
            if set(cable.between) == {first, second}:
                return cable.link_bps
        return self.link_bps


@value
class Rules:
    """Rules for placements; a name of a group stands for all its elements."""

    together: tuple[tuple[Name, ...], ...] = field("Elements that share a server", default=())
    apart: tuple[tuple[Name, ...], ...] = field("Elements of which no two share a server", default=())
    on: Mapping[Name, tuple[Name, ...]] = field(
        "Elements, and the servers or groups of servers allowed for them", default_factory=dict
    )
    most_servers: Count | None = field("Maximum number of servers in use", default=None, ge=1)
    shared_cores: bool = field("Whether a core may serve several threads", default=True)
    # Li 2012, fig. 3.12: 1v1p, 1v2p.
    cores_per_thread: Count | None = field(
        "Number of cores that each thread may use; absent: the search chooses", default=None, ge=1
    )
    pins: tuple[PinChoice, ...] = field(
        "Ways of pinning threads to cores that the search tries on each server",
        default=("free", "machines", "threads", "alone"),
    )


@value
class Goal:
    """The objective, and the limits of the search."""

    objective: Objective = field(
        "Maximise throughput, or minimise servers, watts or price for the target", default="throughput"
    )
    throughput: Throughput = field(
        "``lossless``: the greatest load without overload; ``forwarded``: the rate that leaves at the offered load",
        default="lossless",
    )
    target_pps: FrameRate | None = field("Required throughput; absent: the offered load", default=None)
    # With the objective throughput, the limit holds at the offered load.
    latency_s: Duration | None = field("Limit of the mean latency at the target", default=None)
    seconds: Factor = field("Time limit of the search, in seconds", default=10.0)
    gap_ratio: Annotated[Share, Percentage()] = field(
        "Stop at this proven distance to the optimum", default=0.001, lt=1.0
    )
    runners_up: Count = field("Number of next best mappings in the answer", default=2, ge=0, le=10)


@value
class PlacementProblem:
    """Elements to place on servers."""

    name: str
    servers: tuple[ServerGroup, ...]
    elements: tuple[ElementGroup, ...]
    chains: tuple[Chain, ...]
    frames: FrameMix
    offered_pps: float = field("Load over all outer ports, frames/s")
    outer_bps: float = field("Rate of an outer port, bit/s", default=1e9)
    balancing: Balancing = field(
        "Distribution of frames over the elements of a stage; ``local``: over those on the same server, in chains"
        " that return",
        default="round_robin",
    )
    interconnect: ServerLinks = ServerLinks()
    rules: Rules = Rules()
    goal: Goal = Goal()

    def element(self, name: str) -> ElementGroup:
        """Return a group of elements by its name."""
        return next(group for group in self.elements if group.name == name)

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the chains in the load; their sum is 1."""
        total = sum(chain.share for chain in self.chains)
        return tuple(chain.share / total for chain in self.chains)

    @property
    def is_multistage(self) -> bool:
        """Whether this is a multistage router: one chain of balancers, routers, and balancers again."""
        if len(self.chains) != 1 or not self.chains[0].returns or len(self.chains[0].stages) != 3:
            return False
        kinds = [self.element(stage).kind for stage in self.chains[0].stages[:2]]
        return kinds == ["balancer", "router"]
