"""One server of a placement as a router of its own: what it carries, whatever is on the others.

Without loss, servers meet only at the wires: each gets its share of the load and sends on what it got
(:mod:`routecast.plan.placement.stages`). So the greatest load without overload of a placement is the least of what its
servers, each seen like this, carry. Other servers are a port here, the link to the switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routecast.load.flows import Flow, FlowSet
from routecast.load.offered import OfferedLoad
from routecast.plan.placement.lay import Laid, hashes_of, inside, machine_of, outside, put_together
from routecast.plan.placement.model import Chain, ElementGroup, PlacementProblem, ServerGroup
from routecast.plan.placement.stages import Stage, stages_of
from routecast.router.model import Route, RouterModel
from routecast.router.multistage.check import balance_function
from routecast.router.virtual.assembly import Assembly
from routecast.router.virtual.machines import Machine, Server

__all__ = ["SERVER", "UPLINK", "ServerView", "function_of", "server_view", "uplink_bps", "wire_shares"]

UPLINK = "link"
SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """A server with its elements.

    Parameters
    ----------
    model : RouterModel
        Its pool is ``"server"``, its elements are ``"0"``, ``"1"``, … in the order that they were given in.
    load : OfferedLoad
    weight : float
        Frames that come to the server for each frame of the whole load, those that come again included.
    """

    model: RouterModel
    load: OfferedLoad
    weight: float


def server_view(
    problem: PlacementProblem, host: ServerGroup, elements: Sequence[ElementGroup]
) -> ServerView | None:
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
    problem: PlacementProblem,
    server: Server,
    chain: Chain,
    stages: Sequence[Stage],
    machines: dict[str, list[Machine]],
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
