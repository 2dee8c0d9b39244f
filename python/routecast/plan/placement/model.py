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
from routecast.quantity.fields import BitRate, Count, Duration, Factor, FrameRate, Length, Natural, Power, Share, Size
from routecast.quantity.schema import field, value
from routecast.router.model import ServiceCost
from routecast.router.virtual.machines import Server
from routecast.router.virtual.technology import Technology

__all__ = [
    "Balancing",
    "Cable",
    "Chain",
    "ElementGroup",
    "Goal",
    "Joined",
    "Kind",
    "Objective",
    "PinChoice",
    "PlacementProblem",
    "Rules",
    "ServerGroup",
    "Throughput",
    "numbered",
]

Named = Annotated[str, Length(1, 60)]
PinnedCores = Annotated[tuple[Natural, ...], Length(0, 256)]
Kind = Literal["balancer", "router", "function"]
Balancing = Literal["round_robin", "flow_hash", "local"]
Objective = Literal["throughput", "servers", "watts", "price"]
Throughput = Literal["lossless", "forwarded"]
PinChoice = Literal["free", "machines", "threads", "alone"]


def numbered(name: str, number: int) -> tuple[str, ...]:
    """Return the names of a group's members.

    Examples
    --------
    >>> numbered("lb", 2)
    ('lb 1', 'lb 2')
    >>> numbered("lb", 1)
    ('lb',)
    """
    return (name,) if number == 1 else tuple(f"{name} {member}" for member in range(1, number + 1))


@value
class ServerGroup:
    """Servers of one type."""

    name: Named = field('Name; several are called "name 1", "name 2", …')
    number: Count = field("Number of them", default=1, ge=1, le=1000)
    cores: Count = field("Cores of each", ge=1, le=256)
    technology: Technology = field("Technology of its machines")
    speed_ratio: Factor = field("Speed of a core relative to the technology's reference machine", default=1.0)
    # Linear between. A server without elements is off.
    idle_w: Power = field("Power of one server without load", default=0.0, key="idle_power")
    busy_w: Power = field("Power with all cores busy; absent: as idle", default=0.0, key="busy_power")
    price: Share = field("Price of a server that carries elements", default=0.0)
    memory_bytes: Size | None = field("Memory for machines; absent: no limit", default=None)
    slots: Count | None = field("Machines that fit on one; absent: no limit", default=None, ge=0)
    interrupt_cores: PinnedCores = field("Cores that its cards interrupt, card by card", default=())
    switch_cores: PinnedCores = field("Cores of its polling vSwitch", default=())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the servers."""
        return numbered(self.name, self.number)

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

    name: Named = field('Name; several are called "name 1", "name 2", …')
    # A balancer does ``balance`` on frames from outside and ``return`` on those that leave; a router ``forward``.
    kind: Kind = field("Balancer and router of a multistage router, or any function", default="function")
    count: Count = field("Number of them", default=1, ge=1, le=1000)
    function: str = field("Name of its costs in the technology; the element's name if not given", default="")
    functions: Mapping[str, ServiceCost] = field(
        "Work of its functions where it differs from the technology's, by name", default_factory=dict, key="cost"
    )
    vcpus: Count = field("Threads of its functions", default=1, ge=1, le=64)
    # A balancer has two, a router one.
    interfaces: Count = field(
        "Interfaces of a function: 1 where frames leave by the interface of their arrival", default=2, ge=1, le=2
    )
    ports: Count = field("Outer ports of each, at the first or last stage of a chain", default=1, ge=1, le=64)
    memory_bytes: Size = field("Memory of its machine", default=0.0)
    cores: PinnedCores = field("Cores that all its threads use; absent: the planner chooses", default=())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the elements."""
        return numbered(self.name, self.count)

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

    name: Named = field("Name of the chain")
    # Elsewhere any element of a stage takes them, all evenly.
    stages: Annotated[tuple[Named, ...], Length(1, 32)] = field(
        "Elements by name; where the last is the first, frames leave by the port of their way out"
    )
    share: Factor = field("Share of the load, relative to other chains", default=1.0)

    @property
    def returns(self) -> bool:
        """Whether frames leave by the group by which they enter."""
        return len(self.stages) > 1 and self.stages[0] == self.stages[-1]


@value
class Cable:
    """Cables of another rate between servers of two groups."""

    between: tuple[Named, Named] = field("Two groups of servers (or one twice)")
    link_bps: BitRate = field("Rate of each, each direction")


@value
class Joined:
    """The links between servers."""

    # The switch carries all that these bring.
    by: Literal["switch", "cables"] = field(
        "A link from each server to a switch, or a cable between any two", default="switch"
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
    """Rules for placements; a name is of an element, or of a group for all its elements."""

    together: tuple[tuple[Named, ...], ...] = field("Elements on one server", default=())
    apart: tuple[tuple[Named, ...], ...] = field("Elements of which no two are on one server", default=())
    on: Mapping[Named, tuple[Named, ...]] = field(
        "Elements, and the servers (or groups) that they may be on", default_factory=dict
    )
    most_servers: Count | None = field("Servers that may be used", default=None, ge=1)
    shared_cores: bool = field("Whether a core may serve several threads", default=True)
    # Li 2012, fig. 3.12: 1v1p, 1v2p.
    cores_per_thread: Count | None = field(
        "Cores that each thread may use; absent: the planner chooses", default=None, ge=1
    )
    pins: tuple[PinChoice, ...] = field(
        "Ways of pinning threads to cores that are tried on each server",
        default=("free", "machines", "threads", "alone"),
    )


@value
class Goal:
    """The objective, and when the search ends."""

    objective: Objective = field("The most throughput, or the least of another under target", default="throughput")
    throughput: Throughput = field(
        "The greatest load that overloads nothing, or what leaves at the offered load", default="lossless"
    )
    target_pps: FrameRate | None = field("Throughput that is enough; absent: the offered load", default=None)
    # With the objective throughput: at the offered load.
    latency_s: Duration | None = field("The greatest mean latency at the target", default=None)
    seconds: Factor = field("Stop after this many seconds", default=10.0)
    gap_ratio: Share = field("Stop at this proven distance to the optimum", default=0.001, lt=1.0)
    runners_up: Count = field("Mappings that are answered besides the best", default=2, ge=0, le=10)


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
        "Distribution of frames over the elements of a stage; ``local``: over those on the same server, of a chain"
        " that returns",
        default="round_robin",
    )
    joined: Joined = Joined()
    rules: Rules = Rules()
    goal: Goal = Goal()

    def element(self, name: str) -> ElementGroup:
        """Return a group of elements by its name."""
        return next(group for group in self.elements if group.name == name)

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the chains, of sum 1."""
        total = sum(chain.share for chain in self.chains)
        return tuple(chain.share / total for chain in self.chains)

    @property
    def is_multistage(self) -> bool:
        """Whether this is a multistage router: one chain of balancers, routers, and balancers again."""
        if len(self.chains) != 1 or not self.chains[0].returns or len(self.chains[0].stages) != 3:
            return False
        kinds = [self.element(stage).kind for stage in self.chains[0].stages[:2]]
        return kinds == ["balancer", "router"]
