"""Reads placement files (``*.placement.toml``): a problem for each frame size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.errors import FileProblem, Problem
from routecast.load.fields import Frames, LoadRate
from routecast.load.frames import FrameMix
from routecast.load.offered import IntendedRate
from routecast.plan.placement._candidates import members_of
from routecast.plan.placement.model import (
    Chain,
    ElementGroup,
    Goal,
    Name,
    PlacementProblem,
    Rules,
    ServerGroup,
    ServerLinks,
)
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import BitRate, Length, Power, Size
from routecast.quantity.file_model import FileModel
from routecast.quantity.schema import extended, field, schema_of, value, without_file_fields
from routecast.quantity.toml_file import parse_toml, validated
from routecast.virtual.catalogue import CostTable, TechnologyOrName, functions_over, technology_from
from routecast.virtual.technology import Technology

__all__ = ["parse_placement", "placement_schema", "read_placement"]


_Server: Any = extended(
    ServerGroup,
    [
        (
            "technology",
            TechnologyOrName | None,
            field("Technology of the machines, if it is not that of the file", default=None),
        ),
        (
            "busy_w",
            Power | None,
            field("Power with all cores busy; absent: as without load", default=None, key="busy_power"),
        ),
    ],
)
_COST_MEANING = "Costs of its functions where they differ from those of the technology, by name"
_Element: Any = extended(
    ElementGroup,
    [
        ("functions", dict[str, CostTable], field(_COST_MEANING, default_factory=dict, key="cost")),
        ("memory_bytes", Size | None, field("Memory of its machine", default=None)),
    ],
)
_ON_MEANING = "Elements, and the servers or groups of servers allowed for them"
_Rules: Any = extended(Rules, [("on", dict[Name, Name | tuple[Name, ...]], field(_ON_MEANING, default_factory=dict))])
_CURRENCY = field("Currency of prices", default="$")
_TARGET = field("Required throughput, over all outer ports; absent: the offered load", default=None)
_Plan: Any = extended(
    Goal, [("currency", Annotated[str, Length(0, 8)], _CURRENCY), ("target_pps", LoadRate | None, _TARGET)]
)


class TrafficTable(FileModel):
    """``[traffic]``: the load."""

    frames: Frames | tuple[Frames, ...] = Field(
        description="Frame sizes; for a list, the command finds the best mapping for each entry"
    )
    offered: LoadRate = Field(description="Load over all outer ports")
    port: BitRate = Field(default=1e9, description="Rate of an outer port")
    balancing: Literal["round_robin", "flow_hash", "local"] = Field(
        default="round_robin",
        description="Distribution of frames over the elements of a stage; local: over those on the same server",
    )


class PlacementFile(FileModel):
    """A placement file."""

    name: str = Field(default="", description="Name of the placement; absent: the stem of the file")
    technology: TechnologyOrName | None = Field(
        default=None, description="Technology of the machines: a name, a *.virtualisation.toml, or a table with a base"
    )
    server: Annotated[tuple[_Server, ...], Field(min_length=1, max_length=64)]
    interconnect: ServerLinks = ServerLinks()
    element: Annotated[tuple[_Element, ...], Field(min_length=1, max_length=64)]
    chain: Annotated[tuple[Chain, ...], Field(max_length=64)] = Field(
        default=(), description="Chains; absent: one group of balancers and one of routers form a multistage router"
    )
    traffic: TrafficTable
    rules: _Rules = _Rules()
    plan: _Plan = _Plan()


def validate(
    file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup], chains: Sequence[Chain]
) -> list[Problem]:
    """Return the contradictions between tables, each of which is valid alone."""
    return [
        *_name_problems("server", servers),
        *_name_problems("element", elements),
        *_chain_problems(file, elements, chains),
        *_cost_problems(file, servers, elements, chains),
        *_rule_problems(file, servers, elements),
        *_core_problems(file, servers, elements),
        *_goal_problems(file, servers),
    ]


def _name_problems(place: str, groups: Sequence[ServerGroup | ElementGroup]) -> Iterator[Problem]:
    taken: set[str] = set()
    for number, group in enumerate(groups):
        clash = sorted(taken & {group.name, *group.names})
        if clash:
            yield Problem(f"{place}[{number}].name", f'"{clash[0]}" is taken by an earlier {place}')
        taken |= {group.name, *group.names}


def _chain_problems(
    file: PlacementFile, elements: Sequence[ElementGroup], chains: Sequence[Chain]
) -> Iterator[Problem]:
    if not chains:
        message = (
            "is missing: list the elements that frames pass; only a multistage router, with one group of balancers"
        )
        yield Problem("chain", f"{message} and one of routers, needs no chain")
        return
    groups = {group.name: group for group in elements}
    for name, times in Counter(chain.name for chain in chains).items():
        if times > 1:
            yield Problem("chain", f'"{name}" is the name of {times} chains: give each chain its own name')
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
                message = f'"{stage}" occurs {times} times: only the first stage may occur again, as the last'
                yield Problem(at, message)
        for position, stage in enumerate(inner):
            if groups[stage].kind == "balancer" and not (position == 0 and chain.returns):
                message = f'"{stage}" is a balancer: put it first and last, or set kind = "function"'
                yield Problem(at, message)
    for number, group in enumerate(elements):
        if group.name not in passed:
            yield Problem(f"element[{number}]", f'no chain contains "{group.name}": add it to a chain, or leave it out')
    if file.traffic.balancing == "local" and not all(chain.returns for chain in chains):
        message = "local needs chains whose last stage is their first stage again"
        yield Problem("traffic.balancing", message)


def _cost_problems(
    file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup], chains: Sequence[Chain]
) -> Iterator[Problem]:
    for number, group in enumerate(elements):
        for role in group.roles:
            if role == "return" and not any(chain.returns for chain in chains):
                continue
            for server in servers:
                functions = {**server.technology.functions, **group.functions}
                if role not in functions and server.technology.name != "none":
                    message = (
                        f'has no costs of "{role}" on server "{server.name}" ({server.technology.name}):'
                        f" {did_you_mean(role, functions)}; or give cost.{role}"
                    )
                    yield Problem(f"element[{number}].function", message)


def _rule_problems(
    file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup]
) -> Iterator[Problem]:
    element_names = [name for group in elements for name in (group.name, *group.names)]
    for kind, rules in (("together", file.rules.together), ("apart", file.rules.apart)):
        for number, rule in enumerate(rules):
            members = [member for name in rule for member in members_of(name, elements)]
            yield from _unknown_names(f"rules.{kind}[{number}]", rule, element_names, elements, "element")
            if all(members_of(name, elements) for name in rule) and len(set(members)) < 2:
                yield Problem(f"rules.{kind}[{number}]", "has no effect: it names fewer than two elements")
    server_names = [name for group in servers for name in (group.name, *group.names)]
    for name, servers_of_rule in file.rules.on.items():
        yield from _unknown_names(f"rules.on.{name}", (name,), element_names, elements, "element")
        allowed = (servers_of_rule,) if isinstance(servers_of_rule, str) else servers_of_rule
        yield from _unknown_names(f"rules.on.{name}", allowed, server_names, servers, "server")


def _unknown_names(
    place: str, names: Iterable[str], known: Sequence[str], groups: Sequence[ServerGroup | ElementGroup], kind: str
) -> Iterator[Problem]:
    for name in names:
        if not members_of(name, groups):
            yield Problem(place, f'"{name}" is no {kind}: {did_you_mean(name, known)}')


def _core_problems(
    file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup]
) -> Iterator[Problem]:
    for number, server in enumerate(servers):
        for key in ("interrupt_cores", "switch_cores"):
            missing = [core for core in getattr(server, key) if core >= server.cores]
            if missing:
                message = f"core {missing[0]} does not exist: the server has {server.cores} cores, numbered from 0"
                yield Problem(f"server[{number}].{key}", message)
    max_cores = max(server.cores for server in servers)
    for number, group in enumerate(elements):
        missing = [core for core in group.cores if core >= max_cores]
        if missing:
            message = f"core {missing[0]} does not exist: no server has more than {max_cores} cores, numbered from 0"
            yield Problem(f"element[{number}].cores", message)
    rules = file.rules
    if rules.cores_per_thread and all(rules.cores_per_thread > server.cores for server in servers):
        message = f"no server has {rules.cores_per_thread} cores: the largest has {max_cores}"
        yield Problem("rules.cores_per_thread", message)
    if not rules.shared_cores and (rules.cores_per_thread or 1) > 1:
        yield Problem("rules.cores_per_thread", "must be 1 if threads do not share cores: leave it out")
    if not rules.pins:
        yield Problem("rules.pins", "is empty: name at least one way of pinning")


def _goal_problems(file: PlacementFile, servers: Sequence[ServerGroup]) -> Iterator[Problem]:
    groups = [server.name for server in servers]
    for number, cable in enumerate(file.interconnect.cables):
        for name in cable.between:
            if name not in groups:
                message = f'"{name}" is no group of servers: {did_you_mean(name, groups)}'
                yield Problem(f"interconnect.cable[{number}].between", message)
    if file.interconnect.cables and file.interconnect.by == "switch":
        yield Problem("interconnect.cable", 'is given, but the servers are joined by a switch: set by = "cables"')
    for number, table in enumerate(file.server):
        if table.busy_w is not None and table.busy_w < table.idle_w:
            message = f"{table.busy_w:g} W is less than idle_power, {table.idle_w:g} W"
            yield Problem(f"server[{number}].busy_power", message)
    if file.plan.objective == "watts" and not any(server.busy_w for server in servers):
        yield Problem("plan.objective", "is watts, but no server has a power: give idle_power and busy_power")
    if file.plan.objective == "price" and not any(server.price for server in servers):
        yield Problem("plan.objective", "is price, but no server has a price: give price")
    if file.plan.objective == "throughput" and file.plan.target_pps is not None:
        yield Problem("plan.target", 'is given, but the objective is throughput: set objective = "servers"')


@value
class PlacementCase:
    """The problems of a placement file."""

    name: str
    problems: tuple[PlacementProblem, ...] = field("One for each frame size")
    currency: str = "$"


def read_placement(
    path: str | Path,
    *,
    frames: tuple[FrameMix, ...] = (),
    offered: IntendedRate | None = None,
    seconds: float | None = None,
) -> PlacementCase:
    """Read a placement file.

    Parameters
    ----------
    path : str or Path
    frames : tuple of FrameMix
        Replaces the frame sizes of the file.
    offered : IntendedRate, optional
    seconds : float, optional
        Replace the values of the file.

    Raises
    ------
    FileProblem
        The file cannot be read or has errors; the exception lists them all with their places.
    """
    path = Path(path)
    return parse_placement(
        read_text(path, kind="placement file"),
        subject=str(path),
        folder=path.parent,
        frames=frames,
        offered=offered,
        seconds=seconds,
    )


def parse_placement(
    text: str,
    *,
    subject: str = "placement file",
    folder: Path | None = None,
    frames: tuple[FrameMix, ...] = (),
    offered: IntendedRate | None = None,
    seconds: float | None = None,
) -> PlacementCase:
    """Read a placement from the text of its file, and technologies from ``folder``."""
    file = validated(PlacementFile, parse_toml(text, subject), subject)
    problems: list[Problem] = []
    servers = tuple(
        _server(table, _technology(file, number, folder, problems)) for number, table in enumerate(file.server)
    )
    elements = tuple(_element(table) for table in file.element)
    chains = _chains_of(file)
    problems += validate(file, servers, elements, chains)
    if problems:
        raise FileProblem(subject, list(dict.fromkeys(problems)))
    name = file.name or Path(subject).name.removesuffix(".placement.toml")
    mixes = frames or (file.traffic.frames if isinstance(file.traffic.frames, tuple) else (file.traffic.frames,))
    on = {name: (where,) if isinstance(where, str) else where for name, where in file.rules.on.items()}
    rules = replace(without_file_fields(file.rules, Rules), on=on)
    goal = without_file_fields(file.plan, Goal)
    goal = replace(goal, seconds=seconds or goal.seconds)
    target: IntendedRate | None = file.plan.target_pps
    offered = offered or file.traffic.offered
    return PlacementCase(
        name=name,
        currency=file.plan.currency,
        problems=tuple(
            PlacementProblem(
                name=name,
                servers=servers,
                elements=elements,
                chains=chains,
                frames=mix,
                offered_pps=offered.pps(mix),
                outer_bps=file.traffic.port,
                balancing=file.traffic.balancing,
                interconnect=file.interconnect,
                rules=rules,
                goal=replace(goal, target_pps=target.pps(mix) if target else None),
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
        "description": "Elements of chains to place on servers and cores: servers, elements, chains, rules and goal.",
    }


def _technology(file: PlacementFile, number: int, folder: Path | None, problems: list[Problem]) -> Technology:
    server_table = file.server[number].technology
    table = file.technology if server_table is None else server_table
    place = "technology" if server_table is None else f"server[{number}].technology"
    if table is None:
        message = "is missing: name the technology of the machines, here or for all servers; e.g. kvm-vhost-2012"
        problems.append(Problem(f"server[{number}].technology", message))
        return Technology(name="none")
    try:
        return technology_from(table, folder=folder)
    except FileProblem as problem:
        problems += [Problem(place, str(problem))]
        return Technology(name="none")


def _server(table: Any, technology: Technology) -> ServerGroup:
    busy_w = table.idle_w if table.busy_w is None else table.busy_w
    return replace(without_file_fields(table, ServerGroup), technology=technology, busy_w=busy_w)


def _element(table: Any) -> ElementGroup:
    functions = functions_over({}, table.functions)
    return replace(
        without_file_fields(table, ElementGroup), functions=functions, memory_bytes=table.memory_bytes or 0.0
    )


def _chains_of(file: PlacementFile) -> tuple[Chain, ...]:
    if file.chain:
        return file.chain
    balancers = [element.name for element in file.element if element.kind == "balancer"]
    routers = [element.name for element in file.element if element.kind == "router"]
    if len(balancers) == 1 and len(routers) == 1:
        return (Chain(name="multistage", stages=(balancers[0], routers[0], balancers[0])),)
    return ()
