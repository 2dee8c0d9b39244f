"""The paths of a load's frames through a router: streams through the task graph, visit counts, admitted rates.

Flows with the same ports and the same RSS queue are one stream. Node numbers are the task units in topological order,
then the ports as exits, then one node for frames that leave the router elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import fields
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from routecast.load.flows import Flow, FlowSet, rss_index
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.quantity.schema import field, value
from routecast.router.graph import topological_order
from routecast.router.model import Route, RouterModel, TaskUnit

__all__ = ["FlowGraph", "RatesUnderLoss", "Vector", "flow_graph", "stream_of"]

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

_MAX_CACHED_FLOWS = 4096
"""Routings of larger flow sets are not cached: a million flows would take too much memory."""


@value
class FlowRouting:
    """The routing of a load's streams. It is independent of service times, so many runs of an experiment share it."""

    order: tuple[int, ...] = field("Numbers of the task units in topological order")
    ingress: tuple[int, ...] = field("Port number that each stream enters by")
    egress: tuple[int, ...] = field("Port number that each stream leaves by")
    share: Vector = field("Share of the intended load of each stream")
    entry: tuple[int, ...] = field("Node that each port's frames enter")
    edges: tuple[tuple[tuple[int, Vector], ...], ...] = field("By task unit: ``(node, fraction of each stream)``")
    targets: tuple[tuple[int, ...], ...] = field("By task unit: nodes that frames of some stream go to from there")
    ingress_index: Index = field("Index of the port that each stream enters by")
    entered: Index = field("Node that each stream enters")


@value
class FlowGraph(FlowRouting):
    """A load's streams on a router's task graph."""

    tasks: tuple[TaskUnit, ...] = field("In topological order")
    ports: int
    ingress_cap: Vector = field("Frames per second that each port can take in at line rate")
    exit: int = field("Node of frames that leave the router by no port")

    def by_port(self, rates: Vector) -> Vector:
        """Return the sum over the streams that enter by each port."""
        sums: Vector = np.bincount(self.ingress_index, weights=rates, minlength=self.ports).astype(
            np.float64, copy=False
        )
        return sums

    def offered(self, intended_pps: float) -> Vector:
        """Return the offered rate of each stream: the intended rate, limited to line rate where a port is too slow."""
        intended = intended_pps * self.share
        by_port = self.by_port(intended)
        ratio = np.minimum(1.0, self.ingress_cap / np.maximum(by_port, 1e-9 * self.ingress_cap))
        offered: Vector = intended * ratio[self.ingress_index]
        return offered

    def arriving(self, offered: Vector, admitted_ratio: Vector | Sequence[float]) -> Vector:
        """Return the rate of each stream at each node (rows) if node i admits ``admitted_ratio[i]`` of its frames."""
        rates = self.entering(offered)
        for index in range(len(self.edges)):
            self.pass_on(index, rates, float(admitted_ratio[index]))
        return rates

    def entering(self, offered: Vector) -> Vector:
        """Return the rate of each stream at each node (rows) before any task unit forwards its frames."""
        rates = np.zeros((self.exit + 1, len(self.share)))
        rates[self.entered, np.arange(len(offered))] = offered
        return rates

    def pass_on(self, index: int, rates: Vector, admitted_ratio: float) -> None:
        """Add the admitted part of ``rates[index]`` to the nodes after a task unit."""
        row = rates[index]
        if not np.logical_or.reduce(row):  # twice as fast as any()
            return
        out = row if admitted_ratio == 1.0 else row * admitted_ratio
        for node, fraction in self.edges[index]:
            rates[node] += out * fraction

    def leading_to(self, node: int) -> list[int]:
        """Return the task units whose frames may reach a node, in the order of the graph."""
        reached = {node}
        for index in range(len(self.edges) - 1, -1, -1):
            if not reached.isdisjoint(self.targets[index]):
                reached.add(index)
        return sorted(reached - {node})

    def surviving(self, admitted_ratio: Vector, rates: Vector) -> Vector:
        """Return the probability that a frame admitted at each node is finally forwarded."""
        survive = np.ones(self.exit + 1)
        if (admitted_ratio == 1.0).all():
            return survive
        for index in range(len(self.tasks) - 1, -1, -1):
            total = float(rates[index].sum())
            if total <= 0.0:
                continue
            survive[index] = sum(
                float(rates[index] @ fraction) / total * admitted_ratio[node] * survive[node]
                for node, fraction in self.edges[index]
            )
        return survive


class RatesUnderLoss:
    """The rates at the nodes of a graph, updated while the losses of the task units are computed one after the other.

    ``rates`` and ``admitted_ratio``: as in :meth:`FlowGraph.arriving`; ``total``: rate of all streams by node.
    """

    def __init__(self, graph: FlowGraph, offered: Vector, admitted_ratio: Vector) -> None:
        self.graph, self.admitted_ratio = graph, admitted_ratio
        self.entering = graph.entering(offered)
        self.rates = graph.arriving(offered, admitted_ratio)
        self.total = self.rates.sum(axis=1)
        self.feeders: list[list[tuple[int, Vector]]] = [[] for _ in range(graph.exit + 1)]
        for index, edges in enumerate(graph.edges):
            for node, fraction in edges:
                self.feeders[node].append((index, fraction))

    def apply_losses(self, indices: Sequence[int]) -> bool:
        """Update the rates for new losses of the task units ``indices``; return whether other task units get less."""
        edges, count = self.graph.edges, len(self.graph.edges)
        reached = {node for index in indices for node, _ in edges[index] if node < count}
        pending, has_changed = sorted(reached), bool(reached)
        while pending:
            node = heappop(pending)
            row = self.entering[node].copy()
            for feeder, fraction in self.feeders[node]:
                row += self.rates[feeder] * self.admitted_ratio[feeder] * fraction
            self.rates[node], self.total[node] = row, row.sum()
            for following, _ in edges[node]:
                if following < count and following not in reached:
                    reached.add(following)
                    heappush(pending, following)
        return has_changed


def flow_graph(model: RouterModel, load: OfferedLoad) -> FlowGraph:
    """Return the flow graph of a load: its flows, grouped into streams and routed."""
    routes = tuple([(task.name, task.route) for task in model.tasks])
    ports = tuple([(port.name, port.entry) for port in model.ports])
    route_flows = _route_flows if len(load.flows.flows) <= _MAX_CACHED_FLOWS else _route_flows.__wrapped__
    routing = route_flows(routes, ports, load.flows)
    mean_bytes = load.frames.mean_bytes
    return FlowGraph(
        **{part.name: getattr(routing, part.name) for part in fields(routing)},
        tasks=tuple([model.tasks[number] for number in routing.order]),
        ports=len(ports),
        ingress_cap=np.array([line_rate_pps(port.link_bps, mean_bytes) for port in model.ports]),
        exit=len(routes) + len(ports),
    )


def stream_of(flow: Flow, number: int, kinds: Set[str]) -> tuple[int, int, int, int]:
    """Return what the flows of one stream have in common, where the routes are of these kinds."""
    return (
        flow.ingress,
        flow.egress if kinds & {"egress", "by_egress"} else -1,
        flow.rss_hash % 128 if "rss" in kinds else 0,
        number if "per_flow" in kinds else 0,
    )


@lru_cache(maxsize=16)
def _route_flows(
    routes: tuple[tuple[str, Route], ...], ports: tuple[tuple[str, str], ...], flows: FlowSet
) -> FlowRouting:
    order = topological_order([TaskUnit(name=name, route=route) for name, route in routes])
    numbers = {name: number for number, (name, _) in enumerate(routes)}
    names = [name for name, _ in ports]
    nodes = {task.name: index for index, task in enumerate(order)}
    nodes.update({name: len(order) + index for index, name in enumerate(names)})
    kinds = {route.kind for _, route in routes}
    weights: dict[tuple[int, int, int, int], float] = defaultdict(float)
    for index, flow in enumerate(flows.flows):
        weights[stream_of(flow, index, kinds)] += flow.weight
    streams = list(weights)
    share = np.array([weights[stream] for stream in streams])
    # Many task units have equal routes.
    edges = {route: _edges(route, streams, nodes, names) for route in {task.route for task in order}}
    targets = {
        route: tuple(node for node, fraction in following if (fraction > 0.0).any())
        for route, following in edges.items()
    }
    ingress = tuple(stream[0] for stream in streams)
    entry = tuple(nodes[entry] for _, entry in ports)
    return FlowRouting(
        order=tuple(numbers[task.name] for task in order),
        ingress=ingress,
        egress=tuple(stream[1] for stream in streams),
        share=share / share.sum(),
        entry=entry,
        edges=tuple(edges[task.route] for task in order),
        targets=tuple(targets[task.route] for task in order),
        ingress_index=np.array(ingress, dtype=np.intp),
        entered=np.array([entry[port] for port in ingress], dtype=np.intp),
    )


def _edges(
    route: Route, streams: list[tuple[int, int, int, int]], nodes: dict[str, int], ports: list[str]
) -> tuple[tuple[int, Vector], ...]:
    count = len(streams)
    targets = [nodes[name] for name in route.to]
    if not targets:
        return ((len(nodes), np.ones(count)),)
    if route.kind == "egress":
        chosen = [nodes[ports[stream[1]]] for stream in streams]
    elif route.kind == "by_egress":
        chosen = [targets[stream[1]] for stream in streams]
    elif route.kind == "rss":
        chosen = [targets[rss_index(stream[2], len(targets), route.indirection)] for stream in streams]
    elif route.kind == "per_flow":
        chosen = [targets[stream[3] % len(targets)] for stream in streams]
    else:
        weights = [1.0] * len(targets) if route.kind != "random" else list(route.weights)
        total = sum(weights)
        parts: dict[int, float] = defaultdict(float)
        for target, weight in zip(targets, weights, strict=True):
            parts[target] += weight / total
        return tuple((target, np.full(count, part)) for target, part in parts.items() if part > 0.0)
    target_of_stream = np.array(chosen)
    return tuple((target, (target_of_stream == target).astype(np.float64)) for target in dict.fromkeys(chosen))
