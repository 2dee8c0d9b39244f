"""The view of a server of a placement as a router, independent of the other servers.

Without loss, each server receives its share of the load and sends on all of it (:func:`stages_of`). So the greatest
load of a placement without overload is the minimum over the views of its servers. In a view the other servers are one
port, the link to the switch.

Every chain is assembled separately (:class:`ChainAssembly`), because an element may pass frames of several chains to
different next stages. :func:`merge_chains` then joins the chains: task units get the name of their chain, and the
chains share threads and cores.
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
from routecast.virtual.assembly import Assembly
from routecast.virtual.machines import Cores, Machine, Server
from routecast.virtual.multistage.check import balance_function

_MAX_HASHES = 128


@value
class ChainAssembly:
    """The task units of one chain."""

    chain: Chain
    assembly: Assembly
    entries: tuple[tuple[str, str, float], ...] = field(
        "Port, first task unit of the chain behind it, and share of the total load", default=()
    )


def machine_of(group: ElementGroup, name: str, server: str) -> Machine:
    """Return an element's machine; ``with_pins`` pins its threads."""
    pins = (group.cores,) if group.cores else ()
    return Machine(
        name=name,
        server=server,
        vcpus=group.vcpus,
        vcpu_cores=pins,
        backend_cores=pins,
        functions=dict(group.functions),
    )


def entry_interface(group: ElementGroup, *, comes_back: bool) -> int:
    """Return the number of the interface by which frames enter an element."""
    return 1 if comes_back and group.cards > 1 else 0


def exit_interface(group: ElementGroup, *, comes_back: bool) -> int:
    """Return the number of the interface by which frames leave an element."""
    return 0 if comes_back else group.cards - 1


def merge_chains(
    name: str,
    assemblies: Sequence[ChainAssembly],
    ports: Sequence[tuple[str, float]],
    chain_routes: Mapping[str, Route] | None = None,
    *,
    remote_port: str = "",
) -> RouterModel:
    """Return the router of several chains on the same servers.

    ``ports`` are names and rates. Where several task units take a port's frames, ``chain_routes`` holds the route that
    selects among them by number; by default the choice is random, by their shares. Frames of ``remote_port`` come from
    other servers: not at equal intervals, as those of a single sender.
    """
    is_prefixed = len(assemblies) > 1
    tasks: list[TaskUnit] = []
    pools: dict[str, ResourcePool] = {}
    entries: dict[str, list[tuple[str, float]]] = {}
    fallback = ""
    for part in assemblies:
        first = part.entries[0][1]
        for port, rate_bps in ports:
            targets = [entry for entry_port, entry, _ in part.entries if entry_port == port]
            # The final task unit of a port is added below, over all chains; until then every task unit must be reached.
            entry = part.assembly.spread(f"{port} in", "round_robin", targets) if len(targets) > 1 else ""
            part.assembly.port(port, rate_bps, entry=entry or (targets or [first])[0])
        model = part.assembly.model(name)
        port_tasks = {f"{port} in" for port, _ in ports}
        inner_tasks = [task for task in model.tasks if task.name not in port_tasks]
        names = {task.name: f"{task.name} ({part.chain.name})" if is_prefixed else task.name for task in inner_tasks}
        tasks += [_renamed(task, names) for task in inner_tasks]
        pools |= {pool.name: pool for pool in model.pools}
        for port, entry, share in part.entries:
            entries.setdefault(port, []).append((names[entry], share))
        fallback = fallback or names[first]
    router_ports = []
    for port, rate_bps in ports:
        port_entries = entries.get(port, [(fallback, 1.0)])
        entry = port_entries[0][0]
        if len(port_entries) > 1 or (port == remote_port and port in entries):
            entry = f"{port} in"
            to = tuple(target for target, _ in port_entries)
            route = Route(kind="random", to=to, weights=tuple(share for _, share in port_entries))
            if len(port_entries) == 1:
                route = Route(to=to)
            if chain_routes and port in chain_routes:
                route = replace(chain_routes[port], to=tuple(to[int(number)] for number in chain_routes[port].to))
            tasks.append(TaskUnit(name=entry, route=route))
        router_ports.append(Port(name=port, link_bps=rate_bps, entry=entry))
    return RouterModel(name=name, ports=tuple(router_ports), tasks=tuple(tasks), pools=tuple(pools.values()))


def with_pins(model: RouterModel, pins: Mapping[str, Cores]) -> RouterModel:
    """Return the router with named threads on other cores."""
    if not pins:
        return model
    tasks = tuple(replace(task, pin=pins[task.thread]) if task.thread in pins else task for task in model.tasks)
    return replace(model, tasks=tasks)


def hashes_of(problem: PlacementProblem) -> int:
    """Return the number of flows of each stream of frames, so that they spread evenly over vcpus and elements."""
    numbers = [group.vcpus for group in problem.elements]
    if problem.balancing == "flow_hash":
        numbers += [problem.element(stage).count for chain in problem.chains for stage in chain.stages]
    return min(math.lcm(*numbers), _MAX_HASHES)


def _renamed(task: TaskUnit, names: Mapping[str, str]) -> TaskUnit:
    route = replace(
        task.route,
        to=tuple(names.get(to, to) for to in task.route.to),
        copies=tuple(names.get(to, to) for to in task.route.copies),
    )
    return replace(task, name=names[task.name], route=route)


@value
class ServerStage:
    """A stage of a chain on one server, as shares of the total load.

    Frames are spread evenly over the elements of a stage: each of n elements takes 1/n of the chain's frames. So the
    shares of a server depend on its own elements only. Frames from the elements of the previous stage on the same
    server do not cross a wire.
    """

    group: str
    count: int = field("Elements on this server")
    arrival: float = field("Share of the total load that each element takes")
    from_elsewhere: float = field("Part of ``arrival`` that comes from elements on other servers")
    # Probability that a frame goes next to each element of the next stage here, and to another server.
    to_each: float
    to_elsewhere: float


def stages_of(
    problem: PlacementProblem, chain: Chain, share: float, group_counts: Mapping[str, int]
) -> tuple[ServerStage, ...]:
    """Return the stages of a chain, with its share of the load, on a server with ``count`` elements by group."""
    if problem.balancing == "local" and chain.returns:
        return _local(problem, chain, share, group_counts)
    totals = [problem.element(stage).count for stage in chain.stages]
    local_counts = [group_counts.get(stage, 0) for stage in chain.stages]
    last = len(totals) - 1
    return tuple(
        ServerStage(
            group=stage,
            count=local_counts[j],
            arrival=share / totals[j],
            from_elsewhere=share / totals[j] * (1.0 - local_counts[j - 1] / totals[j - 1]) if j else 0.0,
            to_each=1.0 / totals[j + 1] if j < last else 0.0,
            to_elsewhere=1.0 - local_counts[j + 1] / totals[j + 1] if j < last else 0.0,
        )
        for j, stage in enumerate(chain.stages)
    )


def _local(
    problem: PlacementProblem, chain: Chain, share: float, group_counts: Mapping[str, int]
) -> tuple[ServerStage, ...]:
    """Return the stages if frames stay on their server from entry to exit (Li 2012, scenario B.2).

    Frames leave by each port other than that of their entry with equal probability; a single port is both.
    """
    edge = problem.element(chain.stages[0])
    at_edge, ports = group_counts.get(edge.name, 0), edge.ports
    all_ports = edge.count * ports
    stay = ((at_edge * ports - 1) / (all_ports - 1) if all_ports > 1 else 1.0) if at_edge else 0.0
    last = len(chain.stages) - 1
    stages = []
    for j, stage in enumerate(chain.stages):
        local = group_counts.get(stage, 0)
        after = group_counts.get(chain.stages[j + 1], 0) if j < last else 0
        at_end = j in (0, last)
        stages.append(
            ServerStage(
                group=stage,
                count=local,
                arrival=share / edge.count if at_end else share * at_edge / edge.count / local if local else 0.0,
                from_elsewhere=share / edge.count * (1.0 - stay) if j == last else 0.0,
                to_each=0.0 if j == last or not after else (stay if j == last - 1 else 1.0) / after,
                to_elsewhere=1.0 - stay if j == last - 1 else 0.0,
            )
        )
    return tuple(stages)


UPLINK = "link"
SERVER = "server"


@value
class ServerView:
    """A server with its elements."""

    model: RouterModel = field('Router whose pool is ``"server"``, its elements are ``"0"``, ``"1"``, … in order')
    load: OfferedLoad
    weight: float = field("Frames that enter the server for each frame of the total load; each entry of a frame counts")


def server_view(problem: PlacementProblem, host: ServerGroup, elements: Sequence[ElementGroup]) -> ServerView | None:
    """Return a server with these elements, an entry each, as a router; None if no frame enters it."""
    server = host.server(SERVER)
    machines: dict[str, list[Machine]] = {}
    for number, group in enumerate(elements):
        machines.setdefault(group.name, []).append(machine_of(group, str(number), SERVER))
    group_counts = {name: len(members) for name, members in machines.items()}
    assemblies = []
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        stages = stages_of(problem, chain, share, group_counts)
        part = _assemble_chain(problem, server, chain, stages, machines)
        if part.entries:
            assemblies.append(part)
    if not assemblies:
        return None
    edges = dict.fromkeys(stage for chain in problem.chains for stage in (chain.stages[0], chain.stages[-1]))
    outer = [
        (port, problem.outer_bps)
        for group in edges
        for machine in machines.get(group, ())
        for port in _ports(machine, problem.element(group))
    ]
    ports = [*outer, (UPLINK, uplink_bps(problem, host))]
    model = merge_chains(f"{len(elements)} elements on {host.name}", assemblies, ports, remote_port=UPLINK)
    rates = dict.fromkeys((port for port, _ in ports), 0.0)
    for part in assemblies:
        for port, _, share in part.entries:
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
    """Return the rate at which a server can send to all others: its link to the switch, or all its cables."""
    interconnect = problem.interconnect
    if interconnect.by == "switch":
        return interconnect.link_bps
    cables_bps = sum(interconnect.cable_bps(host.name, other.name) * other.number for other in problem.servers)
    return cables_bps - interconnect.cable_bps(host.name, host.name) or interconnect.link_bps


def wire_shares(problem: PlacementProblem, group_counts: dict[str, int]) -> tuple[float, float]:
    """Return the shares of the load that go from a server to others, and from them to it."""
    sent = received = 0.0
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        for stage in stages_of(problem, chain, share, group_counts):
            sent += stage.count * stage.arrival * stage.to_elsewhere
            received += stage.count * stage.from_elsewhere
    return sent, received


def function_of(problem: PlacementProblem, chain: Chain, stage: int, machine: Machine, server: Server) -> str:
    """Return the name of the function that a machine runs at a stage."""
    group = problem.element(chain.stages[stage])
    comes_back = stage == len(chain.stages) - 1 and chain.returns
    if group.kind != "balancer":
        return group.roles[0]
    return "return" if comes_back else balance_function(machine, server, problem.balancing)


def _assemble_chain(
    problem: PlacementProblem,
    server: Server,
    chain: Chain,
    stages: Sequence[ServerStage],
    machines: dict[str, list[Machine]],
) -> ChainAssembly:
    assembly = Assembly((server,))
    entries: list[tuple[str, str, float]] = []
    next_functions: dict[str, str] = {}
    last = len(stages) - 1

    def next_route(j: int, machine: Machine, card: int) -> Route:
        """Return the route from a machine of stage ``j`` to the functions of the next stage, here and elsewhere."""
        group = problem.element(stages[j + 1].group)
        card_in = entry_interface(group, comes_back=j + 1 == last and chain.returns)
        receivers = machines.get(group.name, ()) if stages[j].to_each > 0.0 else ()
        targets = [
            assembly.to_machine(
                machine, interface=card, receiver=receiver, receiver_interface=card_in, to=next_functions[receiver.name]
            )
            for receiver in receivers
        ]
        weights = [stages[j].to_each] * len(targets)
        if stages[j].to_elsewhere > 1e-12:
            label = f"{machine.name} send {card} elsewhere"
            out = assembly.to_port(machine, interface=card, route=Route(to=(UPLINK,)), label=label)
            targets.append(out or UPLINK)
            weights.append(stages[j].to_elsewhere)
        if len(targets) == 1:
            return Route(to=(targets[0],))
        return Route(kind="random", to=tuple(targets), weights=tuple(weights))

    for j in range(last, -1, -1):
        stage, group = stages[j], problem.element(stages[j].group)
        comes_back = j == last and chain.returns
        functions: dict[str, str] = {}
        for machine in machines.get(stage.group, ()) if stage.arrival > 0.0 else ():
            card = exit_interface(group, comes_back=comes_back)
            if j == last:
                evenly = _evenly(_ports(machine, group))
                out = assembly.to_port(machine, interface=card, route=evenly)
                route = Route(to=(out,)) if out else evenly
            else:
                route = next_route(j, machine, card)
            label = "back" if comes_back and group.kind != "balancer" else ""
            work = assembly.function(machine, function_of(problem, chain, j, machine, server), route, label=label)
            functions[machine.name] = work
            card = entry_interface(group, comes_back=comes_back)
            if j == 0:
                for port in _ports(machine, group):
                    entry = assembly.from_wire(machine, interface=card, wire=port, to=work)
                    entries.append((port, entry, stage.arrival / group.ports))
            elif stage.from_elsewhere > 0.0:
                entry = assembly.from_wire(machine, interface=card, wire=UPLINK, to=work)
                entries.append((UPLINK, entry, stage.from_elsewhere))
        next_functions = functions
    return ChainAssembly(chain=chain, assembly=assembly, entries=tuple(entries))


def _ports(machine: Machine, group: ElementGroup) -> tuple[str, ...]:
    return tuple(f"port {number} of {machine.name}" for number in range(group.ports))


def _evenly(targets: tuple[str, ...]) -> Route:
    if len(targets) == 1:
        return Route(to=targets)
    return Route(kind="random", to=targets, weights=(1.0,) * len(targets))
