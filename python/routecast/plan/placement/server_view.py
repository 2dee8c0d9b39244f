"""One server of a placement as a router of its own: what it carries, whatever is on the others.

Without loss, servers meet only at the wires: each gets its share of the load and sends on what it got
(:func:`stages_of`). So the greatest load without overload of a placement is the least of what its
servers, each seen like this, carry. Other servers are a port here, the link to the switch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.load.flows import Flow, FlowSet
from routecast.load.offered import OfferedLoad
from routecast.plan.placement.model import Chain, ElementGroup, PlacementProblem, ServerGroup
from routecast.quantity.schema import field, value
from routecast.router.model import Port, ResourcePool, Route, RouterModel, TaskUnit
from routecast.router.multistage.check import balance_function
from routecast.router.virtual.assembly import Assembly
from routecast.router.virtual.machines import Cores, Machine, Server

__all__ = [
    "SERVER",
    "Laid",
    "ServerView",
    "function_of",
    "hashes_of",
    "inside",
    "machine_of",
    "outside",
    "pinned",
    "put_together",
    "server_view",
    "stages_of",
    "uplink_bps",
    "wire_shares",
]


# Router models of chains on servers, laid chain by chain and put together.
#
# Every chain is laid in an assembly of its own, because an element may pass frames of several chains that go on
# elsewhere; the task units get their chain's name, threads and cores are shared.


_MOST_HASHES = 128


@value
class Laid:
    """What was laid of one chain."""

    chain: Chain
    assembly: Assembly
    entries: tuple[tuple[str, str, float], ...] = field(
        "Port, task unit that takes the chain's frames there, and how many (share of the whole load)", default=()
    )


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
    tasks = tuple(replace(task, pin=pins[task.thread]) if task.thread in pins else task for task in model.tasks)
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


# What comes to the elements of one server, and where it goes from there, as shares of the whole load.
#
# Frames are spread evenly over the elements of a stage, so what a server gets depends on what is on it alone, not on
# how
# the others are filled: of stage ``j`` with ``n`` elements, ``x`` of them here, each takes ``1/n`` of the chain's
# frames, and of these the share that the ``x`` elements of stage ``j − 1`` here send does not cross a wire.


@value
class Stage:
    """A stage of a chain as one server sees it."""

    group: str
    here: int = field("Elements on this server")
    arrival: float = field("What each of them takes, as share of the whole load")
    from_elsewhere: float = field("Part of it that comes from elements on other servers")
    # Where a frame goes next: to each element of the next stage that is here, or to another server.
    to_each: float
    to_elsewhere: float


def role_of(problem: PlacementProblem, chain: Chain, stage: int) -> str:
    """Return the name of what an element does at a stage."""
    group = problem.element(chain.stages[stage])
    is_last = stage == len(chain.stages) - 1
    return group.roles[-1] if is_last and chain.returns else group.roles[0]


def stages_of(problem: PlacementProblem, chain: Chain, share: float, here: Mapping[str, int]) -> tuple[Stage, ...]:
    """Return the stages of a chain as a server with so many elements of each group sees them.

    Parameters
    ----------
    problem : PlacementProblem
    chain : Chain
    share : float
        Of the load.
    here : mapping of str to int
    """
    if problem.balancing == "local" and chain.returns:
        return _local(problem, chain, share, here)
    of = [problem.element(stage).count for stage in chain.stages]
    local = [here.get(stage, 0) for stage in chain.stages]
    last = len(of) - 1
    return tuple(
        Stage(
            group=stage,
            here=local[j],
            arrival=share / of[j],
            from_elsewhere=share / of[j] * (1.0 - local[j - 1] / of[j - 1]) if j else 0.0,
            to_each=1.0 / of[j + 1] if j < last else 0.0,
            to_elsewhere=1.0 - local[j + 1] / of[j + 1] if j < last else 0.0,
        )
        for j, stage in enumerate(chain.stages)
    )


def _local(problem: PlacementProblem, chain: Chain, share: float, here: Mapping[str, int]) -> tuple[Stage, ...]:
    """Return the stages where frames stay on the server that they came to until they leave (Li 2012, scenario B.2).

    Frames leave by another port than they came by, all others alike; with one port in all, by that.
    """
    edge = problem.element(chain.stages[0])
    at_edge, ports = here.get(edge.name, 0), edge.ports
    all_ports = edge.count * ports
    stay = (at_edge * ports - 1) / (all_ports - 1) if all_ports > 1 else 1.0
    stay = stay if at_edge else 0.0
    last = len(chain.stages) - 1
    found = []
    for j, stage in enumerate(chain.stages):
        local = here.get(stage, 0)
        after = here.get(chain.stages[j + 1], 0) if j < last else 0
        at_end = j in (0, last)
        found.append(
            Stage(
                group=stage,
                here=local,
                arrival=share / edge.count if at_end else share * at_edge / edge.count / local if local else 0.0,
                from_elsewhere=share / edge.count * (1.0 - stay) if j == last else 0.0,
                to_each=0.0 if j == last or not after else (stay if j == last - 1 else 1.0) / after,
                to_elsewhere=1.0 - stay if j == last - 1 else 0.0,
            )
        )
    return tuple(found)


UPLINK = "link"
SERVER = "server"


@value
class ServerView:
    """A server with its elements."""

    model: RouterModel = field(
        'Its pool is ``"server"``, its elements are ``"0"``, ``"1"``, … in the order that they were given in'
    )
    load: OfferedLoad
    weight: float = field(
        "Frames that come to the server for each frame of the whole load, those that come again included"
    )


def server_view(problem: PlacementProblem, host: ServerGroup, elements: Sequence[ElementGroup]) -> ServerView | None:
    """Return a server with these elements as a router; None if nothing comes to it.

    Parameters
    ----------
    problem : PlacementProblem
    host : ServerGroup
    elements : sequence of ElementGroup
        One entry for each element.
    """
    server = host.server(SERVER)
    machines: dict[str, list[Machine]] = {}
    for number, group in enumerate(elements):
        machines.setdefault(group.name, []).append(machine_of(group, str(number), SERVER))
    here = {name: len(some) for name, some in machines.items()}
    laid = []
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        stages = stages_of(problem, chain, share, here)
        one = _lay(problem, server, chain, stages, machines)
        if one.entries:
            laid.append(one)
    if not laid:
        return None
    edges = dict.fromkeys(stage for chain in problem.chains for stage in (chain.stages[0], chain.stages[-1]))
    outer = [
        (port, problem.outer_bps)
        for group in edges
        for machine in machines.get(group, ())
        for port in _ports(machine, problem.element(group))
    ]
    ports = [*outer, (UPLINK, uplink_bps(problem, host))]
    model = put_together(f"{len(elements)} elements on {host.name}", laid, ports, from_afar=UPLINK)
    rates = dict.fromkeys((port for port, _ in ports), 0.0)
    for one in laid:
        for port, _, share in one.entries:
            rates[port] += share
    hashes = hashes_of(problem)
    flows = tuple(
        Flow(rss_hash=value, ingress=number, egress=number, weight=rate)
        for number, rate in enumerate(rates.values())
        if rate > 0.0
        for value in range(hashes)
    )
    weight = sum(rates.values())
    load = OfferedLoad(
        rate_pps=problem.offered_pps * weight,
        frames=problem.frames,
        flows=FlowSet(name="what comes to the server", flows=flows),
    )
    return ServerView(model=model, load=load, weight=weight)


def uplink_bps(problem: PlacementProblem, host: ServerGroup) -> float:
    """Return what a server can send to all others together: its link to the switch, or all its cables."""
    joined = problem.joined
    if joined.by == "switch":
        return joined.link_bps
    cables = sum(joined.cable_bps(host.name, other.name) * other.number for other in problem.servers)
    return cables - joined.cable_bps(host.name, host.name) or joined.link_bps


def wire_shares(problem: PlacementProblem, here: dict[str, int]) -> tuple[float, float]:
    """Return the shares of the load that leave a server for others, and that come to it from them."""
    away = come = 0.0
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        for stage in stages_of(problem, chain, share, here):
            away += stage.here * stage.arrival * stage.to_elsewhere
            come += stage.here * stage.from_elsewhere
    return away, come


def function_of(problem: PlacementProblem, chain: Chain, stage: int, machine: Machine, server: Server) -> str:
    """Return the name of the costs of what a machine does at a stage."""
    group = problem.element(chain.stages[stage])
    comes_back = stage == len(chain.stages) - 1 and chain.returns
    if group.kind != "balancer":
        return group.roles[0]
    return "return" if comes_back else balance_function(machine, server, problem.balancing)


def _lay(
    problem: PlacementProblem, server: Server, chain: Chain, stages: Sequence[Stage], machines: dict[str, list[Machine]]
) -> Laid:
    assembly = Assembly((server,))
    entries: list[tuple[str, str, float]] = []
    takes: dict[str, str] = {}
    last = len(stages) - 1
    for j in range(last, -1, -1):
        stage, group = stages[j], problem.element(stages[j].group)
        comes_back = j == last and chain.returns
        now: dict[str, str] = {}
        for machine in machines.get(stage.group, ()):
            if stage.arrival <= 0.0:
                continue
            card = outside(group, comes_back=comes_back)
            if j == last:
                ways = _ports(machine, group)
                out = assembly.to_port(machine, interface=card, route=_evenly(ways))
                route = Route(to=(out,)) if out else _evenly(ways)
            else:
                route = _onward(problem, assembly, machine, card, chain, stages, j, machines, takes)
            function = function_of(problem, chain, j, machine, server)
            label = "back" if comes_back and group.kind != "balancer" else ""
            work = assembly.function(machine, function, route, label=label)
            now[machine.name] = work
            card = inside(group, comes_back=comes_back)
            if j == 0:
                for port in _ports(machine, group):
                    entry = assembly.from_wire(machine, interface=card, wire=port, to=work)
                    entries.append((port, entry, stage.arrival / group.ports))
            elif stage.from_elsewhere > 0.0:
                entry = assembly.from_wire(machine, interface=card, wire=UPLINK, to=work)
                entries.append((UPLINK, entry, stage.from_elsewhere))
        takes = now
    return Laid(chain=chain, assembly=assembly, entries=tuple(entries))


def _onward(
    problem: PlacementProblem,
    assembly: Assembly,
    machine: Machine,
    card: int,
    chain: Chain,
    stages: Sequence[Stage],
    j: int,
    machines: dict[str, list[Machine]],
    takes: dict[str, str],
) -> Route:
    after = problem.element(stages[j + 1].group)
    comes_back = j + 1 == len(stages) - 1 and chain.returns
    ways, weights = [], []
    if stages[j].to_each > 0.0:
        for receiver in machines.get(after.name, ()):
            ways.append(
                assembly.to_machine(
                    machine,
                    interface=card,
                    receiver=receiver,
                    receiver_interface=inside(after, comes_back=comes_back),
                    to=takes[receiver.name],
                )
            )
            weights.append(stages[j].to_each)
    if stages[j].to_elsewhere > 1e-12:
        label = f"{machine.name} send {card} elsewhere"
        out = assembly.to_port(machine, interface=card, route=Route(to=(UPLINK,)), label=label)
        ways.append(out or UPLINK)
        weights.append(stages[j].to_elsewhere)
    if len(ways) == 1:
        return Route(to=(ways[0],))
    return Route(kind="random", to=tuple(ways), weights=tuple(weights))


def _ports(machine: Machine, group: ElementGroup) -> tuple[str, ...]:
    return tuple(f"port {number} of {machine.name}" for number in range(group.ports))


def _evenly(ways: tuple[str, ...]) -> Route:
    if len(ways) == 1:
        return Route(to=ways)
    return Route(kind="random", to=ways, weights=(1.0,) * len(ways))
