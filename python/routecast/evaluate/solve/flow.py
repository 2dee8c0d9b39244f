"""Where the frames of a load go in a router: streams through the task graph, visit counts, admitted rates.

Flows that the router cannot tell apart (same ports, same RSS queue) are one stream. Node numbers are the task units in
topological order, then the ports as exits, then one node for frames that leave the router elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.load.flows import rss_index
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.router.graph import topological_order
from routecast.router.model import Route, RouterModel, TaskUnit

__all__ = ["FlowGraph", "Vector", "flow_graph"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """A load's streams on a router's task graph.

    Parameters
    ----------
    tasks : tuple of TaskUnit
        In topological order.
    ingress, egress : tuple of int
        Port number of each stream.
    share : array
        Share of the intended load of each stream.
    ingress_cap : array
        Frames per second that each port can take in at line rate.
    entry : tuple of int
        Node that each port's frames enter.
    edges : tuple
        For each task unit, ``(node, fraction of each stream)``.
    """

    tasks: tuple[TaskUnit, ...]
    ports: int
    ingress: tuple[int, ...]
    egress: tuple[int, ...]
    share: Vector
    ingress_cap: Vector
    entry: tuple[int, ...]
    edges: tuple[tuple[tuple[int, Vector], ...], ...]

    @property
    def exit(self) -> int:
        """Node of frames that leave the router by no port."""
        return len(self.tasks) + self.ports

    def offered(self, intended_pps: float) -> Vector:
        """Offered rate of each stream: the intended one, cut to line rate where a port is too slow."""
        wanted = intended_pps * self.share
        by_port = np.bincount(self.ingress, weights=wanted, minlength=self.ports)
        ratio = np.minimum(1.0, self.ingress_cap / np.maximum(by_port, 1e-9 * self.ingress_cap))
        cut: Vector = wanted * ratio[list(self.ingress)]
        return cut

    def arriving(self, offered: Vector, admitted_ratio: Vector | Sequence[float]) -> Vector:
        """Rate of each stream at each node (rows), when node ``i`` lets ``admitted_ratio[i]`` of its frames through."""
        rates = self.entering(offered)
        for index in range(len(self.edges)):
            self.pass_on(index, rates, float(admitted_ratio[index]))
        return rates

    def entering(self, offered: Vector) -> Vector:
        """Rate of each stream at each node (rows) before any task unit passes on what comes to it."""
        rates = np.zeros((self.exit + 1, len(self.share)))
        rates[[self.entry[port] for port in self.ingress], np.arange(len(self.share))] = offered
        return rates

    def pass_on(self, index: int, rates: Vector, admitted_ratio: float) -> None:
        """Add what a task unit lets through of ``rates[index]`` to the nodes after it."""
        if not rates[index].any():
            return
        out = rates[index] * admitted_ratio
        for node, fraction in self.edges[index]:
            rates[node] += out * fraction

    def surviving(self, admitted_ratio: Vector, rates: Vector) -> Vector:
        """Probability that a frame admitted at each node is forwarded in the end."""
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


def flow_graph(model: RouterModel, load: OfferedLoad) -> FlowGraph:
    """Group the load's flows to streams and route them."""
    tasks = topological_order(model.tasks)
    nodes = {task.name: index for index, task in enumerate(tasks)}
    nodes.update({port.name: len(tasks) + index for index, port in enumerate(model.ports)})
    kinds = {task.route.kind for task in tasks}
    weights: dict[tuple[int, int, int, int], float] = defaultdict(float)
    for index, flow in enumerate(load.flows.flows):
        key = (
            flow.ingress,
            flow.egress if kinds & {"egress", "by_egress"} else -1,
            flow.rss_hash % 128 if "rss" in kinds else 0,
            index if "per_flow" in kinds else 0,
        )
        weights[key] += flow.weight
    streams = list(weights)
    share = np.array([weights[stream] for stream in streams])
    mean_bytes = load.frames.mean_bytes
    # Builders give many task units the same route.
    routes = {id(task.route): task.route for task in tasks}
    by_route = {key: _edges(route, streams, nodes, model) for key, route in routes.items()}
    return FlowGraph(
        tasks=tasks,
        ports=len(model.ports),
        ingress=tuple(stream[0] for stream in streams),
        egress=tuple(stream[1] for stream in streams),
        share=share / share.sum(),
        ingress_cap=np.array([line_rate_pps(port.link_bps, mean_bytes) for port in model.ports]),
        entry=tuple(nodes[port.entry] for port in model.ports),
        edges=tuple(by_route[id(task.route)] for task in tasks),
    )


def _edges(
    route: Route, streams: list[tuple[int, int, int, int]], nodes: dict[str, int], model: RouterModel
) -> tuple[tuple[int, Vector], ...]:
    count = len(streams)
    targets = [nodes[name] for name in route.to]
    if not targets:
        return ((len(nodes), np.ones(count)),)
    if route.kind == "egress":
        chosen = [nodes[model.ports[stream[1]].name] for stream in streams]
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
    ways = np.array(chosen)
    return tuple((target, (ways == target).astype(np.float64)) for target in dict.fromkeys(chosen))
