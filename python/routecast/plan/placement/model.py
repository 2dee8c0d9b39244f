"""What is to be placed where: elements of chains, servers, links between them, rules, and what is best.

::

    chains: lb ─► br ─► lb            elements: 2 lb, 2 br            servers: 2 of 2 cores, a link
            (share of the load)                    └────── which on which, on which cores? ──────┘

A multistage router is the chain of a balancer, a router, and the balancer that a flow leaves by. Any other chain of
functions is described in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from routecast.load.frames import FrameMix
from routecast.quantity.schema import field, value
from routecast.router.model import ServiceCost
from routecast.router.virtual.machines import Cores, Server
from routecast.router.virtual.technology import Technology

__all__ = [
    "Balancing",
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

Kind = Literal["balancer", "router", "function"]
Balancing = Literal["round_robin", "flow_hash", "local"]
Objective = Literal["throughput", "servers", "watts", "price"]
Throughput = Literal["lossless", "forwarded"]
PinChoice = Literal["free", "machines", "threads", "alone"]


def numbered(name: str, number: int) -> tuple[str, ...]:
    """Name the members of a group.

    Examples
    --------
    >>> numbered("lb", 2)
    ('lb 1', 'lb 2')
    >>> numbered("lb", 1)
    ('lb',)
    """
    return (name,) if number == 1 else tuple(f"{name} {one}" for one in range(1, number + 1))


@value
class ServerGroup:
    """Servers of one type."""

    name: str
    number: int = 1
    cores: int = 2
    technology: Technology = field("What their machines run on")
    speed_ratio: float = field("Speed of a core relative to the technology's reference machine", default=1.0)
    # What a server draws switched on without load, and with all cores busy; linear between. A server without elements
    # is off.
    idle_w: float = 0.0
    busy_w: float = 0.0
    price: float = field("Of a server that carries elements", default=0.0)
    memory_bytes: float | None = field("None: no limit, B", default=None)
    slots: int | None = field("Machines that fit on it; None: no limit", default=None)
    # As of Server.
    interrupt_cores: Cores = ()
    switch_cores: Cores = ()

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
    """Elements of one kind, alike: each a machine."""

    name: str
    kind: Kind = field(
        "A balancer does ``balance`` on frames from outside and ``return`` on those that leave; a router ``forward``"
    )
    count: int = 1
    function: str = field("Name of the function's costs, of kind ``function``; empty: the group's name", default="")
    functions: Mapping[str, ServiceCost] = field("Costs where they differ from the technology's", default_factory=dict)
    vcpus: int = 1
    interfaces: int = field(
        "Of a function: 2 where frames leave by another interface than they came by. A balancer has two, a router one",
        default=2,
    )
    ports: int = field("Outer ports of an element at the edge of a chain", default=1)
    memory_bytes: float = 0.0
    cores: Cores = field("Cores that all its threads must use; ``()``: the planner chooses", default=())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the elements."""
        return numbered(self.name, self.count)

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of what its machines do."""
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

    name: str
    stages: tuple[str, ...] = field(
        "Groups of elements. Where the last is the first again, frames leave by the element of their egress port;"
        " elsewhere any element of a stage takes them, all evenly"
    )
    share: float = field("Of the load, relative to other chains", default=1.0)

    @property
    def returns(self) -> bool:
        """Whether frames leave by the group that they came in by."""
        return len(self.stages) > 1 and self.stages[0] == self.stages[-1]


@value
class Joined:
    """What joins the servers."""

    by: Literal["switch", "cables"] = field(
        "``switch``: a link from each server to a switch that carries all that these bring. ``cables``: a link "
        "between any two servers",
        default="switch",
    )
    link_bps: float = field("Rate of each link, each direction, bit/s", default=1e9)
    between: tuple[tuple[str, str, float], ...] = field(
        "Cables between servers of two groups that have another rate", default=()
    )

    def cable_bps(self, one: str, other: str) -> float:
        """Return the rate of a cable between servers of two groups."""
        for first, second, rate in self.between:
            if {first, second} == {one, other}:
                return rate
        return self.link_bps


@value
class Rules:
    """What a placement must obey. Names are of elements, or of groups for all their elements."""

    # Elements on one server; elements of which no two are on one server.
    together: tuple[tuple[str, ...], ...] = ()
    apart: tuple[tuple[str, ...], ...] = ()
    on: Mapping[str, tuple[str, ...]] = field(
        "Elements and the servers (or groups) that they may be on", default_factory=dict
    )
    most_servers: int | None = None
    shared_cores: bool = field("Whether a core may serve several threads", default=True)
    cores_per_thread: int | None = field(
        "Cores that each thread may use (Li 2012, fig. 3.12: 1v1p, 1v2p); None: the planner chooses", default=None
    )
    pins: tuple[PinChoice, ...] = field(
        "Ways of pinning that are tried on each server", default=("free", "machines", "threads", "alone")
    )


@value
class Goal:
    """What is best, and where the search ends."""

    objective: Objective = field(
        "The most frames; or the least of one of the others under ``target_pps``", default="throughput"
    )
    throughput: Throughput = field(
        "Which rate is meant: the greatest that overloads nothing, or what leaves at the offered load, in overload too",
        default="lossless",
    )
    target_pps: float | None = None
    latency_s: float | None = field(
        "The greatest mean latency at the target (objective throughput: at the offered load), s", default=None
    )
    # Where the search ends.
    seconds: float = 10.0
    gap_ratio: float = 0.001
    runners_up: int = field("Mappings that are answered besides the best", default=2)


@value
class PlacementProblem:
    """A placement to be found."""

    name: str
    servers: tuple[ServerGroup, ...]
    elements: tuple[ElementGroup, ...]
    chains: tuple[Chain, ...]
    frames: FrameMix
    offered_pps: float = field("Load over all outer ports, frames/s")
    outer_bps: float = field("Rate of an outer port, bit/s", default=1e9)
    balancing: Balancing = field(
        "How frames are spread over the elements of a stage; ``local``: over those on the same server, of a chain"
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
