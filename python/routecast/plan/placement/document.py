"""What a placement file (``*.placement.toml``) may say: servers, links, elements, chains, traffic, rules, the goal."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from routecast.load.fields import Frames
from routecast.quantity.fields import BitRate, Count, Duration, FileModel, FrameRate, Number, Power, Size
from routecast.router.virtual.file_models import CostTable, TechnologyOrName

__all__ = [
    "CableTable",
    "ChainTable",
    "ElementTable",
    "JoinedTable",
    "PlacementFile",
    "PlanTable",
    "RulesTable",
    "ServersTable",
    "TrafficTable",
]

Name = Annotated[str, Field(min_length=1, max_length=60)]
Positive = Annotated[Number, Field(gt=0.0)]
Price = Annotated[Number, Field(ge=0.0)]
Cores = Annotated[tuple[Annotated[Count, Field(ge=0)], ...], Field(max_length=256)]


class ServersTable(FileModel):
    """``[[server]]``: servers of one type."""

    name: Name = Field(description='Name; several are called "name 1", "name 2", …')
    number: Annotated[Count, Field(ge=1, le=1000)] = Field(default=1, description="How many there are")
    cores: Annotated[Count, Field(ge=1, le=256)] = Field(description="Cores of each")
    technology: TechnologyOrName | None = Field(
        default=None, description="What its machines run on, where that is not the file's technology"
    )
    speed: Positive = Field(
        default=1.0, description="Speed of a core relative to the technology's reference machine"
    )
    idle_power: Power = Field(default=0.0, description="What one draws switched on without load")
    busy_power: Power | None = Field(default=None, description="With all cores busy; absent: as idle")
    price: Price = Field(default=0.0, description="Of one that carries elements")
    memory: Size | None = Field(default=None, description="Memory for machines; absent: no limit")
    slots: Annotated[Count, Field(ge=0)] | None = Field(
        default=None, description="Machines that fit on one; absent: no limit"
    )
    interrupt_cores: Cores = Field(default=(), description="Cores that its cards interrupt, card by card")
    switch_cores: Cores = Field(default=(), description="Cores of its polling vSwitch")


class CableTable(FileModel):
    """``[[interconnect.cable]]``: cables between servers of two groups that have another rate."""

    between: tuple[Name, Name] = Field(description="Two groups of servers (or one twice)")
    link: BitRate = Field(description="Rate of each, each direction")


class JoinedTable(FileModel):
    """``[interconnect]``: what joins the servers."""

    by: Literal["switch", "cables"] = Field(
        default="switch", description="A link from each server to a switch, or a cable between any two"
    )
    link: BitRate = Field(default=1e9, description="Rate of each link, each direction")
    cable: tuple[CableTable, ...] = Field(default=(), description="Cables of another rate")


class ElementTable(FileModel):
    """``[[element]]``: elements of one kind, each a machine."""

    name: Name = Field(description='Name; several are called "name 1", "name 2", …')
    kind: Literal["balancer", "router", "function"] = Field(
        default="function", description="Balancer and router of a multistage router, or any function"
    )
    count: Annotated[Count, Field(ge=1, le=1000)] = Field(default=1, description="How many there are")
    function: str = Field(
        default="", description="Name of its costs in the technology; the element's name if not given"
    )
    cost: dict[str, CostTable] = Field(
        default={}, description="Work of its functions where it differs from the technology's, by name"
    )
    vcpus: Annotated[Count, Field(ge=1, le=64)] = Field(default=1, description="Threads of its functions")
    interfaces: Annotated[Count, Field(ge=1, le=2)] = Field(
        default=2, description="Of a function: 1 where frames leave by the interface that they came by"
    )
    ports: Annotated[Count, Field(ge=1, le=64)] = Field(
        default=1, description="Outer ports of each, at the first or last stage of a chain"
    )
    memory: Size | None = Field(default=None, description="Memory of its machine")
    cores: Cores = Field(
        default=(), description="Cores that all its threads use; absent: the planner chooses"
    )


class ChainTable(FileModel):
    """``[[chain]]``: the elements that frames pass, in order."""

    name: Name = Field(description="Name of the chain")
    stages: Annotated[tuple[Name, ...], Field(min_length=1, max_length=32)] = Field(
        description="Elements by name; where the last is the first, frames leave by the port of their way out"
    )
    share: Positive = Field(default=1.0, description="Of the load, relative to other chains")


class TrafficTable(FileModel):
    """``[traffic]``: the load."""

    frames: Frames | tuple[Frames, ...] = Field(
        description="Frame sizes, or several in a list: the best mapping is sought for each"
    )
    offered: FrameRate = Field(description="Load over all outer ports")
    port: BitRate = Field(default=1e9, description="Rate of an outer port")
    balancing: Literal["round_robin", "flow_hash", "local"] = Field(
        default="round_robin",
        description="How frames are spread over the elements of a stage; local: over those on the same server",
    )


class RulesTable(FileModel):
    """``[rules]``: what a placement must obey; names are of elements, or of groups for all their elements."""

    together: tuple[tuple[Name, ...], ...] = Field(default=(), description="Elements on one server")
    apart: tuple[tuple[Name, ...], ...] = Field(
        default=(), description="Elements of which no two are on one server"
    )
    on: dict[Name, Name | tuple[Name, ...]] = Field(
        default={}, description="Elements, and the servers (or groups) that they may be on"
    )
    most_servers: Annotated[Count, Field(ge=1)] | None = Field(
        default=None, description="Servers that may be used"
    )
    shared_cores: bool = Field(default=True, description="Whether a core may serve several threads")
    cores_per_thread: Annotated[Count, Field(ge=1)] | None = Field(
        default=None, description="Cores that each thread may use; absent: the planner chooses"
    )
    pins: tuple[Literal["free", "machines", "threads", "alone"], ...] = Field(
        default=("free", "machines", "threads", "alone"),
        description="Ways of pinning threads to cores that are tried on each server",
    )


class PlanTable(FileModel):
    """``[plan]``: what is best, and where the search ends."""

    objective: Literal["throughput", "servers", "watts", "price"] = Field(
        default="throughput", description="The most throughput, or the least of another under target"
    )
    throughput: Literal["lossless", "forwarded"] = Field(
        default="lossless",
        description="The greatest load that overloads nothing, or what leaves at the offered load",
    )
    target: FrameRate | None = Field(
        default=None, description="Throughput that is enough; absent: the offered load"
    )
    latency: Duration | None = Field(default=None, description="The greatest mean latency at the target")
    seconds: Positive = Field(default=10.0, description="Stop after this many seconds")
    gap: Annotated[Number, Field(ge=0.0, lt=1.0)] = Field(
        default=0.001, description="Stop at this proven distance to the optimum"
    )
    runners_up: Annotated[Count, Field(ge=0, le=10)] = Field(
        default=2, description="Mappings that are answered besides the best"
    )
    currency: Annotated[str, Field(max_length=8)] = Field(default="$", description="Of prices")


class PlacementFile(FileModel):
    """A placement file."""

    name: str = Field(default="", description="Name of what is placed; the file's stem if not given")
    technology: TechnologyOrName | None = Field(
        default=None,
        description="What machines run on: a name, a *.virtualisation.toml, or a table with a base",
    )
    server: Annotated[tuple[ServersTable, ...], Field(min_length=1, max_length=64)]
    interconnect: JoinedTable = JoinedTable()
    element: Annotated[tuple[ElementTable, ...], Field(min_length=1, max_length=64)]
    chain: Annotated[tuple[ChainTable, ...], Field(max_length=64)] = Field(
        default=(), description="Absent with one group of balancers and one of routers: a multistage router"
    )
    traffic: TrafficTable
    rules: RulesTable = RulesTable()
    plan: PlanTable = PlanTable()
