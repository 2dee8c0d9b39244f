"""A placement as a router and its load, and its simulation with the same seeds for all candidates.

Far above capacity the forwarded rate says little, because servers spend work on frames that are lost later. So the
simulation also searches the greatest load without loss, from the prediction of the closed form downwards or upwards.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from routecast.errors import RoutecastError
from routecast.evaluate.simulate import Simulate
from routecast.load.flows import Flow, FlowSet
from routecast.load.offered import OfferedLoad
from routecast.plan.placement._server_view import (
    ChainAssembly,
    entry_interface,
    exit_interface,
    function_of,
    hashes_of,
    machine_of,
    merge_chains,
    with_pins,
)
from routecast.plan.placement.model import Chain, PlacementProblem
from routecast.quantity.schema import field, value
from routecast.router.model import Route, RouteKind, RouterModel
from routecast.virtual.assembly import Assembly
from routecast.virtual.machines import Cores, Machine, Server
from routecast.virtual.multistage import Interconnect, multistage_router

MAX_DIFFERENCE_RATIO = 0.05
"""A greater relative difference between prediction and simulation is reported."""
MAX_LOSS_RATIO = 0.01
"""Loss ratio that counts as "without loss" in simulation, because of bursts."""
SEEDS = (11, 12)
_FRAMES = 30_000
_MAX_DURATION_S = 0.5
_MIN_DURATION_S = 0.02
_MAX_STEPS = 12


@value
class SimulationCheck:
    """Prediction and simulation of a placement."""

    rate: Literal["lossless", "forwarded"] = field(
        "Meaning of ``predicted_pps`` and ``simulated_pps``: the greatest load without loss (in simulation: of "
        "which at most 1 % is lost), or what is forwarded of ``offered_pps``"
    )
    # NaN if the simulation failed.
    predicted_pps: float
    simulated_pps: float
    offered_pps: float = field("The file's load, or the target, frames/s")
    # Simulated at ``offered_pps``; the latency is the mean.
    forwarded_pps: float = math.nan
    latency_s: float = math.nan
    seeds: tuple[int, ...] = SEEDS
    trouble: str = field("Why the simulation failed; may be empty", default="")

    @property
    def difference_ratio(self) -> float:
        """``simulated / predicted − 1``."""
        return self.simulated_pps / self.predicted_pps - 1.0 if self.predicted_pps > 0.0 else math.nan

    @property
    def differs(self) -> bool:
        """Whether prediction and simulation differ by more than 5 %."""
        return abs(self.difference_ratio) > MAX_DIFFERENCE_RATIO


@value
class TrialMeans:
    """Means over the trials of a load."""

    forwarded_pps: float
    loss_ratio: float = field("Share of the offered load that is dropped, or above the rate of the outer wires")
    latency_s: float


_ModelKey = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, tuple[int, ...]], ...]]


@dataclasses.dataclass(slots=True)
class Trials:
    """Simulations of one problem, each run once."""

    problem: PlacementProblem
    _results: dict[tuple[_ModelKey, float, int], TrialMeans] = dataclasses.field(default_factory=dict)
    _models: dict[_ModelKey, RouterModel] = dataclasses.field(default_factory=dict)

    def at(self, placement: ElementPlacement, rate_pps: float) -> TrialMeans:
        """Return the means of all seeds at a load."""
        trials = [self._trial(placement, rate_pps, seed) for seed in SEEDS]
        latencies_s = [trial.latency_s for trial in trials if math.isfinite(trial.latency_s)]
        return TrialMeans(
            forwarded_pps=fmean(trial.forwarded_pps for trial in trials),
            loss_ratio=fmean(trial.loss_ratio for trial in trials),
            latency_s=fmean(latencies_s) if latencies_s else math.nan,
        )

    def carries(self, placement: ElementPlacement, rate_pps: float) -> bool:
        """Return whether no seed has loss at a load."""
        return all(self._trial(placement, rate_pps, seed).loss_ratio <= MAX_LOSS_RATIO for seed in SEEDS)

    def lossless_pps(self, placement: ElementPlacement, near_pps: float) -> float:
        """Return the greatest load without loss, to 1 %, searched from ``near_pps`` on; 0 if every load has loss."""
        low, high = near_pps, near_pps
        for _ in range(_MAX_STEPS):
            if not self.carries(placement, high):
                break
            low, high = high, 1.25 * high
        if low == high:
            for _ in range(_MAX_STEPS):
                low, high = 0.5 * low, low
                if self.carries(placement, low):
                    break
            else:
                return 0.0
        while high > 1.01 * low:
            middle = math.sqrt(low * high)
            if self.carries(placement, middle):
                low = middle
            else:
                high = middle
        return low

    def _trial(self, placement: ElementPlacement, rate_pps: float, seed: int) -> TrialMeans:
        model_key = (tuple(placement.servers.items()), tuple(sorted(placement.pins.items())))
        key = (model_key, rate_pps, seed)
        if key not in self._results:
            if model_key not in self._models:
                self._models[model_key] = router_of(self.problem, placement)
            if not rate_pps > 0.0:
                raise RoutecastError("there is no load to simulate")
            duration_s = min(max(_FRAMES / rate_pps, _MIN_DURATION_S), _MAX_DURATION_S)
            simulate = Simulate(self._models[model_key], seed=seed, steady_state=False)
            trial = simulate.trial(load_of(self.problem).at(rate_pps), duration_s)
            self._results[key] = TrialMeans(
                forwarded_pps=trial.forwarded_pps,
                # Load beyond the rate of the outer wires is lost, too.
                loss_ratio=max(trial.loss_ratio, 1.0 - trial.offered_pps / rate_pps),
                latency_s=math.nan if trial.latency is None else trial.latency.mean_s,
            )
        return self._results[key]


@value
class ElementPlacement:
    """A server for each element, and cores for its threads."""

    servers: Mapping[str, str] = field("Server by element, in the order of the file")
    pins: Mapping[str, Cores] = field(
        'Cores of threads (``"lb 1 vcpu 0"``, ``"lb 1 backend 0"``) that may not use all', default_factory=dict
    )
    choices: Mapping[str, str] = field("Way of pinning of each server that is used", default_factory=dict)

    def on(self, server: str) -> tuple[str, ...]:
        """Return the elements on a server."""
        return tuple(name for name, host in self.servers.items() if host == server)

    @property
    def used(self) -> tuple[str, ...]:
        """Servers that carry elements."""
        return tuple(dict.fromkeys(self.servers.values()))


def router_of(problem: PlacementProblem, placement: ElementPlacement) -> RouterModel:
    """Return the router of a placement: a multistage router, or chains of functions."""
    servers = [group.server(name) for group in problem.servers for name in group.names if name in placement.used]
    machines = {
        group.name: [machine_of(group, name, placement.servers[name]) for name in group.names]
        for group in problem.elements
    }
    if problem.is_multistage and not problem.interconnect.cables:
        chain = problem.chains[0]
        edge, inner = chain.stages[0], chain.stages[1]
        model = multistage_router(
            servers,
            machines[edge],
            machines[inner],
            interconnect=Interconnect(
                joined="switch" if problem.interconnect.by == "switch" else "cable",
                link_bps=problem.interconnect.link_bps,
            ),
            balancing=problem.balancing,
            ports_per_balancer=problem.element(edge).ports,
            link_bps=problem.outer_bps,
            name=problem.name,
        )
    else:
        model = _chained_router(problem, servers, machines)
    return with_pins(model, placement.pins)


def load_of(problem: PlacementProblem) -> OfferedLoad:
    """Return the load of all chains; in a chain that returns, each port sends to every other port."""
    ports, hashes = _edge_ports(problem), hashes_of(problem)
    flows = []
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        entries, exits = ports[chain.stages[0]], ports[chain.stages[-1]]
        pairs = [(entry, exits[0]) for entry in entries]
        if chain.returns:
            pairs = [(entry, exit_) for entry in entries for exit_ in exits if entry != exit_ or len(entries) == 1]
        flows += [
            Flow(rss_hash=value, ingress=entry, egress=exit_, weight=share / len(pairs) / hashes)
            for entry, exit_ in pairs
            for value in range(hashes)
        ]
    return OfferedLoad(
        rate_pps=problem.offered_pps,
        frames=problem.frames,
        flows=FlowSet(name=f"{len(flows)} flows over all ports", flows=tuple(flows)),
    )


def _edge_ports(problem: PlacementProblem) -> dict[str, range]:
    """Return the numbers of the outer ports of each group at an edge; ports are numbered element by element."""
    ports: dict[str, range] = {}
    number = 0
    for name in dict.fromkeys(stage for chain in problem.chains for stage in (chain.stages[0], chain.stages[-1])):
        group = problem.element(name)
        ports[name] = range(number, number + group.count * group.ports)
        number = ports[name].stop
    return ports


def _chained_router(
    problem: PlacementProblem, servers: Sequence[Server], machines: Mapping[str, Sequence[Machine]]
) -> RouterModel:
    ports = [f"port {number}" for numbers in _edge_ports(problem).values() for number in numbers]
    assemblies = [
        _ChainBuilder(problem, chain, servers, machines, ports).build(share)
        for chain, share in zip(problem.chains, problem.shares, strict=True)
    ]
    routes = {port: Route(kind="per_flow", to=_chain_by_flow(problem, assemblies, port)) for port in ports}
    return merge_chains(problem.name, assemblies, [(port, problem.outer_bps) for port in ports], routes)


def _chain_by_flow(problem: PlacementProblem, assemblies: Sequence[ChainAssembly], port: str) -> tuple[str, ...]:
    """Return for each flow of the load the number of its chain among those that enter by a port."""
    chains = [part.chain.name for part in assemblies if any(entry[0] == port for entry in part.entries)]
    numbers = []
    ports, hashes = _edge_ports(problem), hashes_of(problem)
    for chain in problem.chains:
        port_count = len(ports[chain.stages[0]])
        pairs = max(port_count * (port_count - 1), 1) if chain.returns else port_count
        number = chains.index(chain.name) if chain.name in chains else 0
        numbers += [str(number)] * (pairs * hashes)
    return tuple(numbers)


class _ChainBuilder:
    """Builds the task units of a chain, from its last stage to its first; ``machines`` are by group of elements."""

    def __init__(
        self,
        problem: PlacementProblem,
        chain: Chain,
        servers: Sequence[Server],
        machines: Mapping[str, Sequence[Machine]],
        ports: Sequence[str],
    ) -> None:
        self._problem, self._chain, self._machines, self._ports = problem, chain, machines, ports
        self._servers = {server.name: server for server in servers}
        self._host_group = {name: group.name for group in problem.servers for name in group.names}
        self._edge_ports = _edge_ports(problem)
        self._assembly = Assembly(servers)

    def build(self, share: float) -> ChainAssembly:
        """Build a chain that takes a share of the load."""
        problem, chain, assembly = self._problem, self._chain, self._assembly
        entries: list[tuple[str, str, float]] = []
        next_functions: dict[str, str] = {}
        last = len(chain.stages) - 1
        for j in range(last, -1, -1):
            group = problem.element(chain.stages[j])
            comes_back = j == last and chain.returns
            functions = {}
            for number, machine in enumerate(self._machines[group.name]):
                port_numbers = self._edge_ports.get(group.name, range(0))
                machine_ports = tuple(
                    self._ports[port] for port in port_numbers[number * group.ports : (number + 1) * group.ports]
                )
                card = exit_interface(group, comes_back=comes_back)
                if j == last:
                    leave = (
                        Route(kind="egress", to=tuple(self._ports)) if chain.returns else _round_robin(machine_ports)
                    )
                    out = assembly.to_port(machine, interface=card, route=leave)
                    route = Route(to=(out,)) if out else leave
                else:
                    route = self._next_route(j, machine, card, next_functions)
                function = function_of(problem, chain, j, machine, self._servers[machine.server])
                label = "back" if comes_back and group.kind != "balancer" else ""
                functions[machine.name] = assembly.function(machine, function, route, label=label)
                if j == 0:
                    interface = entry_interface(group, comes_back=False)
                    for port in machine_ports:
                        entry = assembly.from_wire(machine, interface=interface, wire=port, to=functions[machine.name])
                        entries.append((port, entry, share / len(port_numbers)))
            next_functions = functions
        return ChainAssembly(chain=chain, assembly=assembly, entries=tuple(entries))

    def _next_route(self, j: int, machine: Machine, card: int, next_functions: Mapping[str, str]) -> Route:
        """Return the route from a machine of stage ``j`` to the functions of the next stage, by machine."""
        problem, chain = self._problem, self._chain
        group = problem.element(chain.stages[j + 1])
        comes_back = j + 1 == len(chain.stages) - 1 and chain.returns
        receivers = self._machines[group.name]
        if problem.balancing == "local" and chain.returns and not comes_back:
            receivers = [receiver for receiver in receivers if receiver.server == machine.server]
        targets = []
        for receiver in receivers:
            card_in, to = entry_interface(group, comes_back=comes_back), next_functions[receiver.name]
            if receiver.server == machine.server:
                target = self._assembly.to_machine(
                    machine, interface=card, receiver=receiver, receiver_interface=card_in, to=to
                )
            else:
                target = self._over_wires(machine, card, receiver, card_in, to)
            targets.append(target)
        if comes_back:
            numbers = self._edge_ports[group.name]
            by_port = [
                targets[numbers.index(port) // group.ports if port in numbers else 0]
                for port in range(len(self._ports))
            ]
            return Route(kind="by_egress", to=tuple(by_port))
        kind: RouteKind = "rss" if problem.balancing == "flow_hash" else "round_robin"
        return Route(to=tuple(targets)) if len(targets) == 1 else Route(kind=kind, to=tuple(targets))

    def _over_wires(self, sender: Machine, card: int, receiver: Machine, card_in: int, to: str) -> str:
        """Return the task unit by which a machine sends to a function of a machine on another server."""
        assembly, interconnect = self._assembly, self._problem.interconnect
        first, second = sender.server, receiver.server
        if interconnect.by == "cables":
            rate_bps = interconnect.cable_bps(self._host_group[first], self._host_group[second])
            wires = [(f"{first} to {second}", rate_bps)]
        else:
            wires = [(f"{first} to switch", interconnect.link_bps), (f"switch to {second}", interconnect.link_bps)]
        target = assembly.from_wire(receiver, interface=card_in, wire=wires[-1][0], to=to)
        for wire, rate_bps in reversed(wires):
            target = assembly.wire(wire, rate_bps, to=target, label=f"({sender.name} to {receiver.name})")
        label = f"{sender.name} send {card} to {receiver.name}"
        return assembly.to_port(sender, interface=card, route=Route(to=(target,)), label=label) or target


def _round_robin(targets: tuple[str, ...]) -> Route:
    return Route(to=targets) if len(targets) == 1 else Route(kind="round_robin", to=targets)
