"""What a placement file contradicts: everything at once, each with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from routecast.errors import Problem
from routecast.plan.placement.classes import meant
from routecast.plan.placement.document import PlacementFile
from routecast.plan.placement.model import Chain, ElementGroup, ServerGroup
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["contradictions"]


def contradictions(
    file: PlacementFile,
    servers: Sequence[ServerGroup],
    elements: Sequence[ElementGroup],
    chains: Sequence[Chain],
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


def _chains(
    file: PlacementFile, elements: Sequence[ElementGroup], chains: Sequence[Chain]
) -> Iterator[Problem]:
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
                what = (
                    f'"{stage}" is a balancer: it stands first and again last, or give it kind = "function"'
                )
                yield Problem(at, what)
    for number, group in enumerate(elements):
        if group.name not in passed:
            yield Problem(
                f"element[{number}]", f'no chain passes "{group.name}": add it to one or leave it out'
            )
    if file.traffic.balancing == "local" and not all(chain.returns for chain in chains):
        what = "local needs chains whose last stage is the first again: on one server all of it can be"
        yield Problem("traffic.balancing", what)


def _costs(
    file: PlacementFile,
    servers: Sequence[ServerGroup],
    elements: Sequence[ElementGroup],
    chains: Sequence[Chain],
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


def _rules(
    file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup]
) -> Iterator[Problem]:
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
    place: str,
    names: Iterable[str],
    known: Sequence[str],
    groups: Sequence[ServerGroup | ElementGroup],
    kind: str,
) -> Iterator[Problem]:
    for name in names:
        if not meant(name, groups):
            yield Problem(place, f'"{name}" is no {kind}: {did_you_mean(name, known)}')


def _cores(
    file: PlacementFile, servers: Sequence[ServerGroup], elements: Sequence[ElementGroup]
) -> Iterator[Problem]:
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
        yield Problem(
            "rules.cores_per_thread", "cores that threads do not share are one for each: leave it out"
        )
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
        yield Problem(
            "interconnect.cable", 'is given, but the servers are joined by a switch: set by = "cables"'
        )
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
