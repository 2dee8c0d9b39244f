"""From a placement file to what is to be placed: a problem for each frame size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.errors import FileProblem, Problem
from routecast.load.fields import Frames
from routecast.load.frames import FrameMix
from routecast.plan.placement.classes import meant
from routecast.plan.placement.model import Chain, ElementGroup, Goal, Joined, PlacementProblem, Rules, ServerGroup
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import BitRate, Count, Duration, FrameRate, Number, Power, Size
from routecast.quantity.file_model import FileModel
from routecast.quantity.schema import field, schema_of, value
from routecast.quantity.toml_file import parse_toml, validated
from routecast.router.virtual.catalogue import CostTable, TechnologyOrName, functions_over, technology_from
from routecast.router.virtual.technology import Technology

__all__ = ["parse_placement", "placement_schema", "read_placement"]


# What a placement file (``*.placement.toml``) may say: servers, links, elements, chains, traffic, rules, the goal.


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
    speed: Positive = Field(default=1.0, description="Speed of a core relative to the technology's reference machine")
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
    cores: Cores = Field(default=(), description="Cores that all its threads use; absent: the planner chooses")


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
    apart: tuple[tuple[Name, ...], ...] = Field(default=(), description="Elements of which no two are on one server")
    on: dict[Name, Name | tuple[Name, ...]] = Field(
        default={}, description="Elements, and the servers (or groups) that they may be on"
    )
    most_servers: Annotated[Count, Field(ge=1)] | None = Field(default=None, description="Servers that may be used")
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
        default="lossless", description="The greatest load that overloads nothing, or what leaves at the offered load"
    )
    target: FrameRate | None = Field(default=None, description="Throughput that is enough; absent: the offered load")
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
        default=None, description="What machines run on: a name, a *.virtualisation.toml, or a table with a base"
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


# What a placement file contradicts: everything at once, each with its place.


def contradictions(
    file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup], chains: Sequence[Chain]
) -> list[Problem]:
    """Return what does not go together in a file whose tables are each right."""
    return [
        *_names("server", servers),
        *_names("element", elements),
        *_chains(file, elements, chains),
        *_costs(file, servers, elements, chains),
        *_rules(file, servers, elements),
        *_cores(file, servers, elements),
        *_plan(file, servers),
    ]


def _names(place: str, groups: Sequence[ServerGroup | ElementGroup]) -> Iterator[Problem]:
    taken: set[str] = set()
    for number, group in enumerate(groups):
        clash = sorted(taken & {group.name, *group.names})
        if clash:
            yield Problem(f"{place}[{number}].name", f'"{clash[0]}" is taken by an earlier {place}')
        taken |= {group.name, *group.names}


def _chains(file: PlacementFile, elements: Sequence[ElementGroup], chains: Sequence[Chain]) -> Iterator[Problem]:
    if not chains:
        what = "is missing: say which elements frames pass, in order; only one group of balancers and one of routers"
        yield Problem("chain", f"{what} need none")
        return
    groups = {group.name: group for group in elements}
    for name, times in Counter(chain.name for chain in chains).items():
        if times > 1:
            yield Problem("chain", f'"{name}" is the name of {times} chains: give each its own')
    passed: set[str] = set()
    for number, chain in enumerate(chains):
        at = f"chain[{number}].stages"
        unknown = [stage for stage in chain.stages if stage not in groups]
        for stage in dict.fromkeys(unknown):
            yield Problem(at, f'"{stage}" is no element: {did_you_mean(stage, groups)}')
        passed |= set(chain.stages)
        if unknown:
            continue
        inner = chain.stages[:-1] if chain.returns else chain.stages
        for stage, times in Counter(inner).items():
            if times > 1:
                what = f'"{stage}" is passed {times} times: only the first may come again, as the last'
                yield Problem(at, what)
        for position, stage in enumerate(inner):
            if groups[stage].kind == "balancer" and not (position == 0 and chain.returns):
                what = f'"{stage}" is a balancer: it stands first and again last, or give it kind = "function"'
                yield Problem(at, what)
    for number, group in enumerate(elements):
        if group.name not in passed:
            yield Problem(f"element[{number}]", f'no chain passes "{group.name}": add it to one or leave it out')
    if file.traffic.balancing == "local" and not all(chain.returns for chain in chains):
        what = "local needs chains whose last stage is the first again: on one server all of it can be"
        yield Problem("traffic.balancing", what)


def _costs(
    file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup], chains: Sequence[Chain]
) -> Iterator[Problem]:
    for number, group in enumerate(elements):
        for role in group.roles:
            if role == "return" and not any(chain.returns for chain in chains):
                continue
            for server in servers:
                known = {**server.technology.functions, **group.functions}
                if role not in known and server.technology.name != "none":
                    what = (
                        f'has no costs of "{role}" on server "{server.name}" ({server.technology.name}):'
                        f" {did_you_mean(role, known)}; or give cost.{role}"
                    )
                    yield Problem(f"element[{number}].function", what)


def _rules(file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup]) -> Iterator[Problem]:
    known = [name for group in elements for name in (group.name, *group.names)]
    for kind, rules in (("together", file.rules.together), ("apart", file.rules.apart)):
        for number, rule in enumerate(rules):
            members = [member for name in rule for member in meant(name, elements)]
            yield from _unknown(f"rules.{kind}[{number}]", rule, known, elements, "element")
            if all(meant(name, elements) for name in rule) and len(set(members)) < 2:
                yield Problem(f"rules.{kind}[{number}]", "names fewer than two elements: it says nothing")
    hosts = [name for group in servers for name in (group.name, *group.names)]
    for name, where in file.rules.on.items():
        yield from _unknown(f"rules.on.{name}", (name,), known, elements, "element")
        wanted = (where,) if isinstance(where, str) else where
        yield from _unknown(f"rules.on.{name}", wanted, hosts, servers, "server")


def _unknown(
    place: str, names: Iterable[str], known: Sequence[str], groups: Sequence[ServerGroup | ElementGroup], kind: str
) -> Iterator[Problem]:
    for name in names:
        if not meant(name, groups):
            yield Problem(place, f'"{name}" is no {kind}: {did_you_mean(name, known)}')


def _cores(file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup]) -> Iterator[Problem]:
    for number, server in enumerate(servers):
        for key in ("interrupt_cores", "switch_cores"):
            beyond = [core for core in getattr(server, key) if core >= server.cores]
            if beyond:
                what = f"core {beyond[0]} is not there: {server.cores} cores are numbered from 0"
                yield Problem(f"server[{number}].{key}", what)
    most = max(server.cores for server in servers)
    for number, group in enumerate(elements):
        beyond = [core for core in group.cores if core >= most]
        if beyond:
            what = f"core {beyond[0]} is not there: no server has more than {most}, numbered from 0"
            yield Problem(f"element[{number}].cores", what)
    rules = file.rules
    if rules.cores_per_thread and all(rules.cores_per_thread > server.cores for server in servers):
        what = f"{rules.cores_per_thread} cores are on no server: the largest has {most}"
        yield Problem("rules.cores_per_thread", what)
    if not rules.shared_cores and (rules.cores_per_thread or 1) > 1:
        yield Problem("rules.cores_per_thread", "cores that threads do not share are one for each: leave it out")
    if not rules.pins:
        yield Problem("rules.pins", "is empty: name at least one way of pinning")


def _plan(file: PlacementFile, servers: Sequence[ServerGroup]) -> Iterator[Problem]:
    groups = [server.name for server in servers]
    for number, cable in enumerate(file.interconnect.cable):
        for name in cable.between:
            if name not in groups:
                what = f'"{name}" is no group of servers: {did_you_mean(name, groups)}'
                yield Problem(f"interconnect.cable[{number}].between", what)
    if file.interconnect.cable and file.interconnect.by == "switch":
        yield Problem("interconnect.cable", 'is given, but the servers are joined by a switch: set by = "cables"')
    for number, table in enumerate(file.server):
        if table.busy_power is not None and table.busy_power < table.idle_power:
            what = f"{table.busy_power:g} W is less than without load, {table.idle_power:g} W"
            yield Problem(f"server[{number}].busy_power", what)
    if file.plan.objective == "watts" and not any(server.busy_w for server in servers):
        yield Problem("plan.objective", "is watts, but no server has a power: give idle_power and busy_power")
    if file.plan.objective == "price" and not any(server.price for server in servers):
        yield Problem("plan.objective", "is price, but no server has one")
    if file.plan.objective == "throughput" and file.plan.target is not None:
        yield Problem("plan.target", 'is given, but the objective is throughput: set objective = "servers"')


@value
class PlacementCase:
    """A placement file, read."""

    name: str
    problems: tuple[PlacementProblem, ...] = field("One for each frame size")
    currency: str = "$"


def read_placement(
    path: str | Path,
    *,
    frames: tuple[FrameMix, ...] = (),
    offered_pps: float | None = None,
    seconds: float | None = None,
) -> PlacementCase:
    """Read a placement file.

    Parameters
    ----------
    path : str or Path
    frames : tuple of FrameMix
        In the place of the file's frame sizes.
    offered_pps, seconds : float, optional
        In the place of the file's.

    Raises
    ------
    FileProblem
        The file cannot be read or says something wrong; all faults with their places.
    """
    path = Path(path)
    return parse_placement(
        read_text(path, kind="placement file"),
        subject=str(path),
        folder=path.parent,
        frames=frames,
        offered_pps=offered_pps,
        seconds=seconds,
    )


def parse_placement(
    text: str,
    *,
    subject: str = "placement file",
    folder: Path | None = None,
    frames: tuple[FrameMix, ...] = (),
    offered_pps: float | None = None,
    seconds: float | None = None,
) -> PlacementCase:
    """Read a placement from the text of its file; ``folder`` is where technologies are looked for.

    Raises
    ------
    FileProblem
        As :func:`read_placement`.
    """
    file = validated(PlacementFile, parse_toml(text, subject), subject)
    problems: list[Problem] = []
    servers = tuple(
        _server(table, _technology(file, number, folder, problems)) for number, table in enumerate(file.server)
    )
    elements = tuple(_element(table) for table in file.element)
    chains = _reading_chains(file)
    problems += contradictions(file, servers, elements, chains)
    if problems:
        raise FileProblem(subject, list(dict.fromkeys(problems)))
    name = file.name or Path(subject).name.removesuffix(".placement.toml")
    mixes = frames or (file.traffic.frames if isinstance(file.traffic.frames, tuple) else (file.traffic.frames,))
    rules, plan = file.rules, file.plan
    load_pps = offered_pps or file.traffic.offered
    return PlacementCase(
        name=name,
        currency=plan.currency,
        problems=tuple(
            PlacementProblem(
                name=name,
                servers=servers,
                elements=elements,
                chains=chains,
                frames=mix,
                offered_pps=load_pps,
                outer_bps=file.traffic.port,
                balancing=file.traffic.balancing,
                joined=Joined(
                    by=file.interconnect.by,
                    link_bps=file.interconnect.link,
                    between=tuple((*cable.between, cable.link) for cable in file.interconnect.cable),
                ),
                rules=Rules(
                    together=rules.together,
                    apart=rules.apart,
                    on={name: (one,) if isinstance(one, str) else one for name, one in rules.on.items()},
                    most_servers=rules.most_servers,
                    shared_cores=rules.shared_cores,
                    cores_per_thread=rules.cores_per_thread,
                    pins=rules.pins,
                ),
                goal=Goal(
                    objective=plan.objective,
                    throughput=plan.throughput,
                    target_pps=plan.target,
                    latency_s=plan.latency,
                    seconds=seconds or plan.seconds,
                    gap_ratio=plan.gap,
                    runners_up=plan.runners_up,
                ),
            )
            for mix in mixes
        ),
    )


def placement_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of placement files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema_of(PlacementFile),
        "title": "routecast placement file",
        "description": "Elements of chains to be placed on servers and cores: what there is, rules, what is best.",
    }


def _technology(file: PlacementFile, number: int, folder: Path | None, problems: list[Problem]) -> Technology:
    own = file.server[number].technology
    table = file.technology if own is None else own
    place = "technology" if own is None else f"server[{number}].technology"
    if table is None:
        message = "is missing: say what the machines run on, here or for all servers; e.g. kvm-vhost-2012"
        problems.append(Problem(f"server[{number}].technology", message))
        return Technology(name="none")
    try:
        return technology_from(table, folder=folder)
    except FileProblem as problem:
        problems += [Problem(place, str(problem))]
        return Technology(name="none")


def _server(table: ServersTable, technology: Technology) -> ServerGroup:
    return ServerGroup(
        name=table.name,
        number=table.number,
        cores=table.cores,
        technology=technology,
        speed_ratio=table.speed,
        idle_w=table.idle_power,
        busy_w=table.idle_power if table.busy_power is None else table.busy_power,
        price=table.price,
        memory_bytes=table.memory,
        slots=table.slots,
        interrupt_cores=table.interrupt_cores,
        switch_cores=table.switch_cores,
    )


def _element(table: ElementTable) -> ElementGroup:
    return ElementGroup(
        name=table.name,
        kind=table.kind,
        count=table.count,
        function=table.function,
        functions=functions_over({}, table.cost),
        vcpus=table.vcpus,
        interfaces=table.interfaces,
        ports=table.ports,
        memory_bytes=table.memory or 0.0,
        cores=table.cores,
    )


def _reading_chains(file: PlacementFile) -> tuple[Chain, ...]:
    if file.chain:
        return tuple(Chain(name=one.name, stages=one.stages, share=one.share) for one in file.chain)
    balancers = [one.name for one in file.element if one.kind == "balancer"]
    routers = [one.name for one in file.element if one.kind == "router"]
    if len(balancers) == 1 and len(routers) == 1:
        return (Chain(name="multistage", stages=(balancers[0], routers[0], balancers[0])),)
    return ()
