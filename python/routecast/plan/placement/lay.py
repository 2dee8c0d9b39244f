"""Router models of chains on servers, laid chain by chain and put together.

Every chain is laid in an assembly of its own, because an element may pass frames of several chains that go on
elsewhere; the task units get their chain's name, threads and cores are shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from routecast.plan.placement.model import Chain, ElementGroup, PlacementProblem
from routecast.router.model import Port, ResourcePool, Route, RouterModel, TaskUnit
from routecast.router.virtual.assembly import Assembly
from routecast.router.virtual.machines import Cores, Machine

__all__ = ["Laid", "hashes_of", "inside", "machine_of", "outside", "pinned", "put_together"]

_MOST_HASHES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """What was laid of one chain.

    Parameters
    ----------
    chain : Chain
    assembly : Assembly
    entries : tuple of (str, str, float)
        Port, task unit that takes the chain's frames there, and how many (share of the whole load).
    """

    chain: Chain
    assembly: Assembly
    entries: tuple[tuple[str, str, float], ...] = field(default=())


def machine_of(group: ElementGroup, name: str, server: str) -> Machine:
    """Return an element's machine; threads are pinned later."""
    pins = (group.cores,) if group.cores else ()
    return Machine(
        name=name,
        server=server,
        vcpus=group.vcpus,
        vcpu_cores=pins,
        backend_cores=pins,
        functions=dict(group.functions),
    )


def inside(group: ElementGroup, *, comes_back: bool) -> int:
    """Return the interface that frames come to an element by."""
    return 1 if comes_back and group.cards > 1 else 0


def outside(group: ElementGroup, *, comes_back: bool) -> int:
    """Return the interface that frames leave an element by."""
    return 0 if comes_back else group.cards - 1


def put_together(
    name: str,
    laid: Sequence[Laid],
    ports: Sequence[tuple[str, float]],
    choose: Mapping[str, Route] | None = None,
    *,
    from_afar: str = "",
) -> RouterModel:
    """Return the router of several chains on the same servers.

    Parameters
    ----------
    name : str
    laid : sequence of Laid
    ports : sequence of (str, float)
        Names and rates.
    choose : mapping of str to Route
        How frames that come by a port are told apart where several task units take them, their names to be filled in;
        by default at random, by their shares.
    from_afar : str
        A port whose frames come from other servers: not at equal gaps, as those of one sender do.
    """
    many = len(laid) > 1
    tasks: list[TaskUnit] = []
    pools: dict[str, ResourcePool] = {}
    entries: dict[str, list[tuple[str, float]]] = {}
    anywhere = ""
    for one in laid:
        end = one.entries[0][1]
        for port, rate_bps in ports:
            ways = [entry for at, entry, _ in one.entries if at == port]
            # What tells frames apart comes last, over all chains; until then nothing may be out of reach.
            entry = one.assembly.spread(_told_apart(port), "round_robin", ways) if len(ways) > 1 else ""
            one.assembly.port(port, rate_bps, entry=entry or (ways or [end])[0])
        model = one.assembly.model(name)
        inner = {_told_apart(port) for port, _ in ports}
        kept = [task for task in model.tasks if task.name not in inner]
        names = {task.name: f"{task.name} ({one.chain.name})" if many else task.name for task in kept}
        tasks += [_renamed(task, names) for task in kept]
        pools |= {pool.name: pool for pool in model.pools}
        for port, entry, share in one.entries:
            entries.setdefault(port, []).append((names[entry], share))
        anywhere = anywhere or names[end]
    made = []
    for port, rate_bps in ports:
        here = entries.get(port, [(anywhere, 1.0)])
        entry = here[0][0]
        if len(here) > 1 or (port == from_afar and port in entries):
            entry = _told_apart(port)
            targets = tuple(way for way, _ in here)
            route = Route(kind="random", to=targets, weights=tuple(share for _, share in here))
            if len(here) == 1:
                route = Route(to=targets)
            if choose and port in choose:
                route = replace(choose[port], to=tuple(targets[int(way)] for way in choose[port].to))
            tasks.append(TaskUnit(name=entry, route=route))
        made.append(Port(name=port, link_bps=rate_bps, entry=entry))
    return RouterModel(name=name, ports=tuple(made), tasks=tuple(tasks), pools=tuple(pools.values()))


def pinned(model: RouterModel, pins: Mapping[str, Cores]) -> RouterModel:
    """Return the router with threads, by name, on other cores."""
    if not pins:
        return model
    tasks = tuple(
        replace(task, pin=pins[task.thread]) if task.thread in pins else task for task in model.tasks
    )
    return replace(model, tasks=tasks)


def hashes_of(problem: PlacementProblem) -> int:
    """Return how many flows each stream of frames is made of, so that they spread evenly over vcpus and elements."""
    wanted = [group.vcpus for group in problem.elements]
    if problem.balancing == "flow_hash":
        wanted += [problem.element(stage).count for chain in problem.chains for stage in chain.stages]
    return min(math.lcm(*wanted), _MOST_HASHES)


def _told_apart(port: str) -> str:
    return f"{port} in"


def _renamed(task: TaskUnit, names: Mapping[str, str]) -> TaskUnit:
    route = replace(
        task.route,
        to=tuple(names.get(to, to) for to in task.route.to),
        copies=tuple(names.get(to, to) for to in task.route.copies),
    )
    return replace(task, name=names[task.name], route=route)
