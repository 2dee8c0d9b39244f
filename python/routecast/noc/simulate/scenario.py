"""A plane of a fabric as the scenario of the compiled simulator (``crates/noc/src/scenario.rs``), in JSON.

The text is put together from parts that are written once: all loads of a sweep share network and routing, all
replications everything but the run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from routecast.errors import ModelProblem, Problem
from routecast.noc.routing.deadlock import channel_cycle, cycle_in_words
from routecast.noc.routing.mesh_paths import MeshPaths
from routecast.noc.routing.model import Routes, hops
from routecast.noc.simulate.adaptive import AdaptiveRouting
from routecast.noc.simulate.design import Packets, RouterDesign
from routecast.noc.simulate.fabric import Fabric, SimulatedPlane
from routecast.noc.simulate.run import Run
from routecast.noc.topology import Topology, links
from routecast.noc.traffic.model import Traffic

__all__ = ["RoutingText", "checked_routing", "packets_a_cycle", "plane_packets", "scenario_texts"]

# Queues on one side of a router, the bits of a word (crates/noc/src/network.rs).
_MOST_QUEUES = 64

# Shares are sums of floating point numbers.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class RoutingText:
    """A checked routing as text, and between which routers it has paths; None if between all."""

    text: str
    joined: NDArray[np.bool_] | None


def scenario_texts(fabric: Fabric, run: Run) -> list[str]:
    """Return the scenarios of every replication of every plane: all planes of the first replication, then the next.

    Raises
    ------
    ModelProblem
        A routing can deadlock, needs more virtual channels than there are, has no path for a flow, or rates are above
        one packet per node and cycle.
    """
    parts = [_plane_text(fabric, number) for number in range(len(fabric.planes))]
    count = len(parts)
    return [
        # Planes are independent networks: each has its own random streams.
        f'{part},"run":{json.dumps(run.scenario(replication * count + number))}}}'
        for replication in range(run.replications)
        for number, part in enumerate(parts)
    ]


def plane_packets(fabric: Fabric, plane: SimulatedPlane) -> Packets:
    """Return the packets in flits of the plane."""
    return fabric.packets.in_wider_flits(plane.width)


def packets_a_cycle(fabric: Fabric, plane: SimulatedPlane) -> NDArray[np.float64]:
    """Return the packets that each node would have to make in a cycle in which it is on; shape (nodes,)."""
    flits: NDArray[np.float64] = np.sum(plane.demand, axis=1)
    return flits / (fabric.packets.mean_flits * fabric.injection.on_share)


def _plane_text(fabric: Fabric, number: int) -> str:
    plane, place = fabric.planes[number], f"planes[{number}]"
    packets = plane_packets(fabric, plane)
    routing = checked_routing(plane.routing, fabric.design)
    # As many packets as on the first plane's links, each in flits of this one.
    demand = plane.demand * (packets.mean_flits / fabric.packets.mean_flits)
    problems = []
    if routing.joined is not None:
        between = Traffic(name="", demand=demand).between_routers(fabric.topology)
        lost = np.argwhere((between > 0) & ~routing.joined)
        if lost.size:
            source, target = (fabric.topology.router_name(int(end)) for end in lost[0])
            problems.append(
                Problem(
                    f"{place}.routing",
                    f"no path leads from {source} to {target}, {len(lost)} flows have none: route them",
                )
            )
    if problems:
        raise ModelProblem("network on chip", problems)
    # A node makes one packet in a cycle at most; what it cannot make is an overload (packets_a_cycle).
    made = demand / np.maximum(packets_a_cycle(fabric, plane), 1.0)[:, None]
    load = {
        "demand": _stretches(made, fabric.design.ejection_channels),
        "packet_flits": packets.flits,
        "weights": packets.shares,
        "injection": fabric.injection.scenario(),
        "clock_ratio": 1 / plane.alpha,
    }
    return (
        f'{{"network":{_network_text(fabric.topology, fabric.design)},"router":{json.dumps(fabric.design.scenario())},'
        f'"routing":{routing.text},"load":{json.dumps(load)}'
    )


def _stretches(demand: NDArray[np.float64], channels: int) -> list[list[tuple[int, int, float]]]:
    """Return what each node sends as ``(first, count, rate)`` of nodes one after another that get the same.

    Channels to a node share its traffic evenly; the nodes added for them send nothing.
    """
    nodes = len(demand)
    begins = np.ones(demand.shape, dtype=np.bool_)
    begins[:, 1:] = demand[:, 1:] != demand[:, :-1]
    sources, first = np.nonzero(begins)
    rates = demand[sources, first] / channels
    # A row begins at 0, so that what was before it ended with its own row.
    after = np.append(first[1:], 0)
    counts = np.where(after == 0, nodes, after) - first
    sending = rates > 0
    rows: list[list[tuple[int, int, float]]] = [[] for _ in range(nodes * channels)]
    for channel in range(channels):
        columns = (sources, first + channel * nodes, counts, rates)
        for source, *stretch in zip(*(column[sending].tolist() for column in columns), strict=True):
            rows[source].append((stretch[0], stretch[1], stretch[2]))
    return rows


@lru_cache(maxsize=8)
def _network_text(topology: Topology, design: RouterDesign) -> str:
    return json.dumps(
        {
            "routers": topology.router_count,
            "links": [
                {"from": link.source, "to": link.target, "cycles": design.link_cycles}
                for link in links(topology)
            ],
            # A further channel to a node is a node of the simulator that only receives.
            "nodes": [topology.router_of(node) for node in range(topology.node_count)]
            * design.ejection_channels,
            "node_link_cycles": design.node_link_cycles,
        }
    )


# A sweep asks for the same few routings again and again; they compare by identity and do not change.
@lru_cache(maxsize=4)
def checked_routing(routing: Routes | AdaptiveRouting, design: RouterDesign) -> RoutingText:
    """Return the routing as text, if routers of this design can run it.

    Raises
    ------
    ModelProblem
        It can deadlock, has more classes than there are virtual channels, or the shares of a flow do not sum to 1.
    """
    _check_classes(routing, design)
    cycle = routing.channel_cycle() if isinstance(routing, AdaptiveRouting) else channel_cycle(routing)
    if cycle is not None:
        message = (
            f'"{routing.policy}" can deadlock: packets can wait for each other round '
            f"{cycle_in_words(routing.topology, cycle)}; give it virtual-channel classes "
            "(routecast.noc.routing.layers) or take another policy"
        )
        raise ModelProblem("network on chip", [Problem("routing", message)])
    if isinstance(routing, AdaptiveRouting):
        return _adaptive(routing)
    if isinstance(routing.paths, MeshPaths) and routing.paths.rule.is_simulated:
        return _grid(routing.paths)
    return _table(routing) or _paths(routing)


def _check_classes(routing: Routes | AdaptiveRouting, design: RouterDesign) -> None:
    classes, channels = routing.layer_count, design.virtual_channels
    ports = _most_ports(routing.topology, design)
    problems = []
    if channels is not None and classes > channels:
        message = (
            f'"{routing.policy}" uses {classes} classes of virtual channels, routers have {channels}: '
            f"give them at least {classes} virtual channels"
        )
        problems.append(Problem("virtual_channels", message))
    queues = ports * (ports * classes if channels is None else channels)
    if queues > _MOST_QUEUES:
        each = (
            f"{ports} outputs and {classes} classes" if channels is None else f"{channels} virtual channels"
        )
        message = (
            f"routers of {ports} ports with {each} have {queues} queues; at most {_MOST_QUEUES} are simulated: "
            "take fewer virtual channels, ejection channels or nodes at a router"
        )
        problems.append(Problem("virtual_channels", message))
    if problems:
        raise ModelProblem("network on chip", problems)


def _most_ports(topology: Topology, design: RouterDesign) -> int:
    """Most outputs of a router: links and channels to nodes. Every link has its opposite: inputs are not more."""
    leaving = [0] * topology.router_count
    for link in links(topology):
        leaving[link.source] += 1
    return max(leaving) + topology.concentration * design.ejection_channels


def _adaptive(routing: AdaptiveRouting) -> RoutingText:
    count, routers = len(links(routing.topology)), routing.topology.router_count
    # Where the first hop has a choice there is a way: turn models lead every allowed hop on to the target.
    joined = np.array([[bool(allowed) for allowed in row] for row in routing.choices[count:]], dtype=bool)
    if len(routing.choices) != count + routers or joined.shape != (routers, routers):
        message = f"choices of {len(routing.choices)} arrivals for {count} links and {routers} routers"
        raise ModelProblem("network on chip", [Problem("routing", message)])
    text = json.dumps({"kind": "adaptive", "classes": 1, "choices": routing.choices})
    return RoutingText(text=text, joined=joined)


def _grid(paths: MeshPaths) -> RoutingText:
    rule = {"kind": "grid", "columns": paths.topology.columns, "way": paths.rule}
    return RoutingText(text=json.dumps(rule), joined=None)


def _table(routes: Routes) -> RoutingText | None:
    """Write routes of one path a pair whose next hop depends on router and target alone as a table, which is fast.

    None where they are not of that kind, or do not lead from everywhere to everywhere.
    """
    routers, flat = routes.topology.router_count, hops(routes)
    pairs = flat.source * routers + flat.target
    if len(pairs) != routers * (routers - 1) or len(np.unique(pairs)) != len(pairs):
        return None
    if not np.allclose(flat.share, 1.0, atol=_ROUNDING):
        return None
    starts = np.array([link.source for link in links(routes.topology)])
    entries = starts[flat.link] * routers + flat.target[flat.path]
    next_link = np.zeros(routers * routers, dtype=np.intp)
    next_layer = np.zeros(routers * routers, dtype=np.intp)
    next_link[entries], next_layer[entries] = flat.link, flat.layer
    if not (
        np.array_equal(next_link[entries], flat.link) and np.array_equal(next_layer[entries], flat.layer)
    ):
        return None
    table = {
        "kind": "table",
        "classes": routes.layer_count,
        "links": next_link.reshape(routers, routers).tolist(),
        "class": next_layer.reshape(routers, routers).tolist() if next_layer.any() else [],
    }
    return RoutingText(text=json.dumps(table), joined=None)


def _paths(routes: Routes) -> RoutingText:
    routers, flat = routes.topology.router_count, hops(routes)
    shares = np.zeros((routers, routers))
    np.add.at(shares, (flat.source, flat.target), flat.share)
    joined = shares > 0
    uneven = np.argwhere(joined & (np.abs(shares - 1) > _ROUNDING))
    if uneven.size:
        source, target = (int(end) for end in uneven[0])
        ends = f"{routes.topology.router_name(source)} to {routes.topology.router_name(target)}"
        message = f"the paths from {ends} have shares of {shares[source, target]:.6g}; they must sum to 1"
        raise ModelProblem("network on chip", [Problem("routing", message)])
    rows = (
        f'{{"source":{path.source},"target":{path.target},"links":{_numbers(path.links)},'
        f'"layers":{_numbers(path.layers)},"share":{float(path.share)!r}}}'
        for path in routes.paths
        if path.share > 0
    )
    text = f'{{"kind":"paths","classes":{routes.layer_count},"paths":[{",".join(rows)}]}}'
    return RoutingText(text=text, joined=joined)


def _numbers(values: Sequence[int]) -> str:
    return f"[{','.join(map(str, values))}]"
