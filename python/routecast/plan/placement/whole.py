"""A whole placement as a router and its load: what is predicted in overload, and what is simulated.

Placements packet by packet: what the closed form predicts, simulated, with the same seeds for all that are compared.

Far beyond what a router carries its forwarded rate says little: work goes into frames that are lost later. So what a
placement carries without loss is looked for by simulation too, downwards from what the closed form predicts, or upwards
if that is carried.
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
from routecast.plan.placement.model import Chain, ElementGroup, PlacementProblem
from routecast.plan.placement.server_view import (
    Laid,
    function_of,
    hashes_of,
    inside,
    machine_of,
    outside,
    pinned,
    put_together,
)
from routecast.quantity.schema import field, value
from routecast.router.model import Route, RouteKind, RouterModel
from routecast.router.multistage import Interconnect, multistage_router
from routecast.router.virtual.assembly import Assembly
from routecast.router.virtual.machines import Cores, Machine, Server

__all__ = ["DIFFERS", "LOST", "SEEDS", "Checked", "Placement", "Shown", "Trials", "load_of", "router_of"]

DIFFERS = 0.05
"""Figures farther apart than this part are said to differ."""
LOST = 0.01
"""Part of the frames that a load "without loss" may lose in simulation: what bursts cost."""
SEEDS = (11, 12)
_FRAMES = 30_000
_LONGEST_S = 0.5
_SHORTEST_S = 0.02
_NEAR = 1.01
_MORE = 1.25
_MOST_STEPS = 12


@value
class Checked:
    """Prediction and simulation of a placement."""

    rate: Literal["lossless", "forwarded"] = field(
        "What ``predicted_pps`` and ``simulated_pps`` are: the greatest load without loss (in simulation: of "
        "which at most 1 % is lost), or what is forwarded of ``offered_pps``"
    )
    # NaN where the simulation could not be run.
    predicted_pps: float
    simulated_pps: float
    offered_pps: float = field("The file's load, or the target, frames/s")
    # Simulated at ``offered_pps``; mean latency.
    forwarded_pps: float = math.nan
    latency_s: float = math.nan
    seeds: tuple[int, ...] = SEEDS
    trouble: str = field("Why there is no simulation", default="")

    @property
    def difference_ratio(self) -> float:
        """``simulated / predicted − 1``."""
        return self.simulated_pps / self.predicted_pps - 1.0 if self.predicted_pps > 0.0 else math.nan

    @property
    def differs(self) -> bool:
        """Whether the two are more than 5 % apart."""
        return abs(self.difference_ratio) > DIFFERS


@value
class Shown:
    """What one or several trials show."""

    forwarded_pps: float
    loss_ratio: float = field("Part of the load that was asked for that was dropped, or that no wire could bring")
    latency_s: float


_Key = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, tuple[int, ...]], ...]]


@dataclasses.dataclass(slots=True)
class Trials:
    """Simulations for one problem, each made once.

    Parameters
    ----------
    problem : PlacementProblem
    """

    problem: PlacementProblem
    _known: dict[tuple[_Key, float, int], Shown] = dataclasses.field(default_factory=dict)
    _models: dict[_Key, RouterModel] = dataclasses.field(default_factory=dict)

    def at(self, placement: Placement, rate_pps: float) -> Shown:
        """Return the means of all seeds at a load.

        Raises
        ------
        RoutecastError
            The placement cannot be simulated.
        """
        every = [self._trial(placement, rate_pps, seed) for seed in SEEDS]
        late = [one.latency_s for one in every if math.isfinite(one.latency_s)]
        return Shown(
            forwarded_pps=fmean(one.forwarded_pps for one in every),
            loss_ratio=fmean(one.loss_ratio for one in every),
            latency_s=fmean(late) if late else math.nan,
        )

    def carries(self, placement: Placement, rate_pps: float) -> bool:
        """Return whether no seed shows loss at a load."""
        return all(self._trial(placement, rate_pps, seed).loss_ratio <= LOST for seed in SEEDS)

    def lossless_pps(self, placement: Placement, near_pps: float) -> float:
        """Return the greatest load that is carried without loss, to 1 %, looked for from one on; 0 if none is found."""
        low, high = near_pps, near_pps
        for _ in range(_MOST_STEPS):
            if not self.carries(placement, high):
                break
            low, high = high, high * _MORE
        if low == high:
            for _ in range(_MOST_STEPS):
                low, high = 0.5 * low, low
                if self.carries(placement, low):
                    break
            else:
                return 0.0
        while high > low * _NEAR:
            middle = math.sqrt(low * high)
            if self.carries(placement, middle):
                low = middle
            else:
                high = middle
        return low

    def _trial(self, placement: Placement, rate_pps: float, seed: int) -> Shown:
        name = (tuple(placement.servers.items()), tuple(sorted(placement.pins.items())))
        key = (name, rate_pps, seed)
        if key not in self._known:
            if name not in self._models:
                self._models[name] = router_of(self.problem, placement)
            if not rate_pps > 0.0:
                raise RoutecastError("there is no load to simulate")
            duration_s = min(max(_FRAMES / rate_pps, _SHORTEST_S), _LONGEST_S)
            simulate = Simulate(self._models[name], seed=seed, steady_state=False)
            trial = simulate.trial(load_of(self.problem).at(rate_pps), duration_s)
            self._known[key] = Shown(
                forwarded_pps=trial.forwarded_pps,
                # What the wires of the outer ports cannot bring is not carried either.
                loss_ratio=max(trial.loss_ratio, 1.0 - trial.offered_pps / rate_pps),
                latency_s=math.nan if trial.latency is None else trial.latency.mean_s,
            )
        return self._known[key]


_SPREAD: dict[str, RouteKind] = {"round_robin": "round_robin", "flow_hash": "rss", "local": "round_robin"}


@value
class Placement:
    """Which element is on which server, and on which cores."""

    servers: Mapping[str, str] = field("For each element, in the order of the file, its server")
    pins: Mapping[str, Cores] = field(
        'Cores of threads (``"lb 1 vcpu 0"``, ``"lb 1 backend 0"``) that may not use all', default_factory=dict
    )

    def on(self, server: str) -> tuple[str, ...]:
        """Return the elements on a server."""
        return tuple(name for name, where in self.servers.items() if where == server)

    @property
    def used(self) -> tuple[str, ...]:
        """Return the servers that carry elements."""
        return tuple(dict.fromkeys(self.servers.values()))


def router_of(problem: PlacementProblem, placement: Placement) -> RouterModel:
    """Return the router of a placement: a multistage router, or chains of functions."""
    wanted = set(placement.servers.values())
    servers = [group.server(name) for group in problem.servers for name in group.names if name in wanted]
    machines = {
        group.name: [machine_of(group, name, placement.servers[name]) for name in group.names]
        for group in problem.elements
    }
    if problem.is_multistage and not problem.joined.cables:
        chain = problem.chains[0]
        edge, inner = chain.stages[0], chain.stages[1]
        model = multistage_router(
            servers,
            machines[edge],
            machines[inner],
            interconnect=Interconnect(
                joined="switch" if problem.joined.by == "switch" else "cable", link_bps=problem.joined.link_bps
            ),
            balancing=problem.balancing,
            ports_per_balancer=problem.element(edge).ports,
            link_bps=problem.outer_bps,
            name=problem.name,
        )
    else:
        model = _chained(problem, servers, machines)
    return pinned(model, placement.pins)


def load_of(problem: PlacementProblem) -> OfferedLoad:
    """Return the load of all chains: from every port to every other one of a chain that returns."""
    first, hashes = _first_ports(problem), hashes_of(problem)
    flows = []
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        edge = _numbers(problem, chain.stages[0], first)
        pairs = [(one, other) for one in edge for other in edge if one != other or len(edge) == 1]
        if not chain.returns:
            end = _numbers(problem, chain.stages[-1], first)[0]
            pairs = [(one, end) for one in edge]
        flows += [
            Flow(rss_hash=value, ingress=one, egress=other, weight=share / len(pairs) / hashes)
            for one, other in pairs
            for value in range(hashes)
        ]
    return OfferedLoad(
        rate_pps=problem.offered_pps,
        frames=problem.frames,
        flows=FlowSet(name=f"{len(flows)} flows over all ports", flows=tuple(flows)),
    )


def _edges(problem: PlacementProblem) -> list[ElementGroup]:
    names = dict.fromkeys(stage for chain in problem.chains for stage in (chain.stages[0], chain.stages[-1]))
    return [problem.element(name) for name in names]


def _first_ports(problem: PlacementProblem) -> dict[str, int]:
    """Return the number of the first port of each group at an edge; ports are numbered element by element."""
    found, number = {}, 0
    for group in _edges(problem):
        found[group.name] = number
        number += group.count * group.ports
    return found


def _numbers(problem: PlacementProblem, name: str, first: Mapping[str, int]) -> list[int]:
    group = problem.element(name)
    return [first[name] + number for number in range(group.count * group.ports)]


def _chained(
    problem: PlacementProblem, servers: Sequence[Server], machines: Mapping[str, Sequence[Machine]]
) -> RouterModel:
    first = _first_ports(problem)
    ports = [f"port {number}" for group in _edges(problem) for number in _numbers(problem, group.name, first)]
    laid = [
        _lay(problem, servers, chain, share, machines, ports, first)
        for chain, share in zip(problem.chains, problem.shares, strict=True)
    ]
    choose = {port: Route(kind="per_flow", to=_by_flow(problem, laid, port)) for port in ports}
    return put_together(problem.name, laid, [(port, problem.outer_bps) for port in ports], choose)


def _by_flow(problem: PlacementProblem, laid: Sequence[Laid], port: str) -> tuple[str, ...]:
    """Return for each flow of the load which of the chains that come by a port it is of, as a number."""
    chains = [one.chain.name for one in laid if any(at == port for at, _, _ in one.entries)]
    numbers = []
    first, hashes = _first_ports(problem), hashes_of(problem)
    for chain in problem.chains:
        edge = len(_numbers(problem, chain.stages[0], first))
        pairs = max(edge * (edge - 1), 1) if chain.returns else edge
        which = chains.index(chain.name) if chain.name in chains else 0
        numbers += [str(which)] * (pairs * hashes)
    return tuple(numbers)


def _lay(
    problem: PlacementProblem,
    servers: Sequence[Server],
    chain: Chain,
    share: float,
    machines: Mapping[str, Sequence[Machine]],
    ports: Sequence[str],
    first: Mapping[str, int],
) -> Laid:
    assembly = Assembly(servers)
    by_name = {server.name: server for server in servers}
    group_of = {name: group.name for group in problem.servers for name in group.names}
    entries: list[tuple[str, str, float]] = []
    takes: dict[str, str] = {}
    last = len(chain.stages) - 1
    for j in range(last, -1, -1):
        group = problem.element(chain.stages[j])
        comes_back = j == last and chain.returns
        own = _numbers(problem, group.name, first) if group.name in first else []
        now = {}
        for number, machine in enumerate(machines[group.name]):
            mine = tuple(ports[port] for port in own[number * group.ports : (number + 1) * group.ports])
            card = outside(group, comes_back=comes_back)
            if j == last:
                leave = Route(kind="egress", to=tuple(ports)) if chain.returns else _spread(mine)
                out = assembly.to_port(machine, interface=card, route=leave)
                route = Route(to=(out,)) if out else leave
            else:
                route = _onward(problem, assembly, chain, j, machine, card, machines, takes, ports, first, group_of)
            function = function_of(problem, chain, j, machine, by_name[machine.server])
            label = "back" if comes_back and group.kind != "balancer" else ""
            now[machine.name] = assembly.function(machine, function, route, label=label)
            if j == 0:
                for port in mine:
                    entry = assembly.from_wire(
                        machine, interface=inside(group, comes_back=False), wire=port, to=now[machine.name]
                    )
                    entries.append((port, entry, share / len(own)))
        takes = now
    return Laid(chain=chain, assembly=assembly, entries=tuple(entries))


def _onward(
    problem: PlacementProblem,
    assembly: Assembly,
    chain: Chain,
    j: int,
    machine: Machine,
    card: int,
    machines: Mapping[str, Sequence[Machine]],
    takes: Mapping[str, str],
    ports: Sequence[str],
    first: Mapping[str, int],
    group_of: Mapping[str, str],
) -> Route:
    after = problem.element(chain.stages[j + 1])
    comes_back = j + 1 == len(chain.stages) - 1 and chain.returns
    receivers = machines[after.name]
    if problem.balancing == "local" and chain.returns and not comes_back:
        receivers = [one for one in receivers if one.server == machine.server]
    ways = []
    for receiver in receivers:
        card_in, to = inside(after, comes_back=comes_back), takes[receiver.name]
        if receiver.server == machine.server:
            way = assembly.to_machine(machine, interface=card, receiver=receiver, receiver_interface=card_in, to=to)
        else:
            way = _over_wires(problem, assembly, machine, card, receiver, card_in, to, group_of)
        ways.append(way)
    if comes_back:
        own = _numbers(problem, after.name, first)
        by_port = [ways[own.index(port) // after.ports] if port in own else ways[0] for port in range(len(ports))]
        return Route(kind="by_egress", to=tuple(by_port))
    return Route(to=tuple(ways)) if len(ways) == 1 else Route(kind=_SPREAD[problem.balancing], to=tuple(ways))


def _over_wires(
    problem: PlacementProblem,
    assembly: Assembly,
    sender: Machine,
    card: int,
    receiver: Machine,
    card_in: int,
    to: str,
    group_of: Mapping[str, str],
) -> str:
    joined = problem.joined
    if joined.by == "cables":
        rate = joined.cable_bps(group_of[sender.server], group_of[receiver.server])
        wires = [(f"{sender.server} to {receiver.server}", rate)]
    else:
        wires = [(f"{sender.server} to switch", joined.link_bps), (f"switch to {receiver.server}", joined.link_bps)]
    after = assembly.from_wire(receiver, interface=card_in, wire=wires[-1][0], to=to)
    for wire, rate in reversed(wires):
        after = assembly.wire(wire, rate, to=after, label=f"({sender.name} to {receiver.name})")
    label = f"{sender.name} send {card} to {receiver.name}"
    return assembly.to_port(sender, interface=card, route=Route(to=(after,)), label=label) or after


def _spread(ways: tuple[str, ...]) -> Route:
    return Route(to=ways) if len(ways) == 1 else Route(kind="round_robin", to=ways)
