"""Propagation of frames through the task graph with limited service rates: level by level, in arrays.

Streams with the same paths from a node on form one *class* at that node: a node loses frames of all its classes alike,
so the earlier path does not matter. Nodes are ordered by *level*, the longest path from a port, and all nodes of a
level are computed at once. One pass through a router of 200 task units takes some tenths of a millisecond.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve.flow import FlowGraph, Vector
from routecast.quantity.schema import field, value

Index = NDArray[np.intp]
_TINY = 1e-300
_UNIFORM_ROUTES = {"single", "round_robin", "random"}
"""Kinds of routes that send all streams the same way."""


@dataclass(frozen=True, slots=True)
class _Level:
    """The nodes ``first:last`` of one level, their classes ``low:high``, and the edges to these classes."""

    first: int
    last: int
    low: int
    high: int
    starts: Index
    """By node: its first class, counted from ``low``."""
    node_of_class: Index
    """By class: its node, counted from ``first``."""
    source: Index
    """By edge: the class of an earlier level that it leaves."""
    target: Index
    """By edge: the class that it enters, counted from ``low``."""
    fraction: Vector
    """By edge: the part of the source class that takes it."""
    holding: Index
    """Nodes of this level that hold back, once for every node that they look ahead to."""
    ahead: Index
    """The nodes that they look ahead to, parallel to ``holding``."""
    holding_starts: Index
    """First position of each holding node in ``holding`` and ``ahead``."""
    is_undivided: bool
    """Whether each node has one class."""


@value
class NodeRates:
    """Rates by node, in frames per second."""

    arriving: Vector = field("Arriving rate by node, copies included, frames/s")
    served: Vector = field("Served rate by node, frames/s")
    allowed: Vector = field("Greatest served rate by node, frames/s: its own limit and the room ahead")
    room_ahead: Vector = field(
        "Rate for which there is room ahead, by node, frames/s; infinite where a node does not hold back"
    )
    could_arrive: Vector = field("Rate that would arrive if no node held back, by node, frames/s")
    copies: Vector = field("Arriving rate of copies that the served frames make, by node, frames/s")
    forwarded: Vector = field("Served rate by node without copies, frames/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagation:
    """The paths of a load through a router, prepared for repeated computation.

    ``order``: node number in the flow graph (task units, ports, exit) by position; ``position``: the reverse.
    """

    order: Index
    position: Index
    levels: tuple[_Level, ...]
    entering: tuple[tuple[int, int, float], ...]
    """``(class, port, share of the intended load)``."""
    classes: int
    has_look_ahead: bool
    is_looked_ahead_to: NDArray[np.bool_]
    """By node: whether some node looks ahead to it."""
    copying: Index
    """Copied classes, once for every task unit that gets the copies."""
    copied_to: Index
    """Nodes that get the copies, parallel to ``copying``."""
    copied_part: Vector
    """Copied part of each class, parallel to ``copying``; a frame is not copied to the node that it goes to itself."""

    def is_looked_at(self, index: int) -> bool:
        """Whether a node looks ahead to node ``index`` of the flow graph, or copies frames to it."""
        position = self.position[index]
        return bool(self.is_looked_ahead_to[position]) or bool(np.any(self.copied_to == position))

    def entry(self, intended_pps: float, accepted_ratio: Vector) -> Vector:
        """Return the entering rate by class, where port ``i`` accepts ``accepted_ratio[i]`` of its intended rate."""
        entering = np.zeros(self.classes)
        for stream, port, share in self.entering:
            entering[stream] += share * intended_pps * accepted_ratio[port]
        return entering

    def flow(self, entering: Vector, limit: Vector, copies: Vector) -> NodeRates:
        """Return the rates where node ``i`` serves at most ``limit[i]`` frames/s, arriving copies included.

        A node that holds back serves no more than the nodes ahead allow: each node ahead divides its service rate among
        the nodes before it in proportion to the rates that they could send. It drops excess frames of all other nodes.
        """
        room_ahead = np.full(len(self.order), np.inf)
        could_arrive, served, leaving = self._forward(entering, limit, copies)
        arriving, allowed = could_arrive, limit
        if self.has_look_ahead:
            allowed = limit.copy()
            for level in reversed(self.levels):
                if level.holding.size:
                    nodes = level.holding[level.holding_starts]
                    room = allowed[level.ahead] / np.maximum(could_arrive[level.ahead], _TINY)
                    least = np.minimum.reduceat(room, level.holding_starts)
                    room_ahead[nodes] = np.where(least < 1.0, served[nodes] * np.minimum(least, 1.0), np.inf)
                    allowed[nodes] = np.minimum(allowed[nodes], room_ahead[nodes])
            arriving, served, leaving = self._forward(entering, allowed, copies)
        ratio = served / np.maximum(arriving, _TINY)
        copies_now: Vector = np.zeros(len(self.order))
        if self.copying.size:
            copied = leaving[self.copying] * self.copied_part
            copies_now += np.bincount(self.copied_to, weights=copied, minlength=len(self.order))
        return NodeRates(
            arriving=arriving,
            served=served,
            allowed=allowed,
            room_ahead=room_ahead,
            could_arrive=could_arrive,
            copies=copies_now,
            forwarded=(arriving - copies) * ratio,
        )

    def _forward(self, entering: Vector, limit: Vector, copies: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the arriving and the served rate by node, and the leaving rate by class."""
        rates = entering.copy()
        leaving = np.empty_like(rates)
        arriving = np.empty(len(self.order))
        served = np.empty(len(self.order))
        for level in self.levels:
            here = slice(level.low, level.high)
            nodes = slice(level.first, level.last)
            if level.source.size:
                incoming = leaving[level.source] * level.fraction
                rates[here] += np.bincount(level.target, weights=incoming, minlength=level.high - level.low)
            rates_here = rates[here]
            by_node = rates_here if level.is_undivided else np.add.reduceat(rates_here, level.starts)
            arriving_here = by_node + copies[nodes]
            served_here = np.minimum(limit[nodes], arriving_here)
            arriving[nodes], served[nodes] = arriving_here, served_here
            ratio = served_here / np.maximum(arriving_here, _TINY)
            leaving[here] = rates_here * (ratio if level.is_undivided else ratio[level.node_of_class])
        return arriving, served, leaving


def propagation_of(graph: FlowGraph) -> Propagation:
    """Group streams to classes and nodes to levels."""
    count = graph.exit + 1
    depth = _depths(graph)
    order = np.argsort(np.array(depth), kind="stable")
    position = np.empty(count, dtype=np.intp)
    position[order] = np.arange(count)
    partitions = _partitions(graph)
    low = np.zeros(count + 1, dtype=np.intp)
    np.cumsum([len(partitions[node].samples) for node in order], out=low[1:])
    sources, targets, fractions = _class_edges(graph, partitions, low, position)

    node_of_class = np.repeat(np.arange(count), np.diff(low))
    target_level = np.array(depth)[order][node_of_class[targets]] if targets.size else targets
    levels = []
    depths = np.array(depth)[order]
    holding = {int(position[index]) for index, task in enumerate(graph.tasks) if task.holds_back}
    ahead = {
        int(position[index]): sorted({int(position[node]) for node, part in graph.edges[index] if part.any()})
        for index, task in enumerate(graph.tasks)
        if task.holds_back
    }
    for level in range(int(depths.max()) + 1):
        first, last = int(np.searchsorted(depths, level)), int(np.searchsorted(depths, level, side="right"))
        first_class, last_class = int(low[first]), int(low[last])
        here = np.flatnonzero(target_level == level) if targets.size else targets
        pairs = [(node, next_node) for node in range(first, last) for next_node in ahead.get(node, ())]
        starts = [number for number, pair in enumerate(pairs) if not number or pairs[number - 1][0] != pair[0]]
        levels.append(
            _Level(
                first=first,
                last=last,
                low=first_class,
                high=last_class,
                starts=low[first:last] - first_class,
                node_of_class=node_of_class[first_class:last_class] - first,
                source=sources[here],
                target=targets[here] - first_class,
                fraction=fractions[here],
                holding=np.array([pair[0] for pair in pairs], dtype=np.intp),
                ahead=np.array([pair[1] for pair in pairs], dtype=np.intp),
                holding_starts=np.array(starts, dtype=np.intp),
                is_undivided=last - first == last_class - first_class,
            )
        )
    copying, copied_to, copied_part = _copies(graph, partitions, low, position)
    entering: dict[tuple[int, int], float] = defaultdict(float)
    for stream, port in enumerate(graph.ingress):
        node = graph.entry[port]
        entering[int(low[position[node]] + partitions[node].class_of[stream]), port] += float(graph.share[stream])
    return Propagation(
        order=order,
        position=position,
        levels=tuple(levels),
        entering=tuple((stream, port, share) for (stream, port), share in entering.items()),
        classes=int(low[-1]),
        has_look_ahead=bool(holding),
        is_looked_ahead_to=_looked_ahead_to(graph, position),
        copying=copying,
        copied_to=copied_to,
        copied_part=copied_part,
    )


def _depths(graph: FlowGraph) -> list[int]:
    """Return the longest path to each node; ports and the exit lie behind all task units."""
    depth = [0] * (graph.exit + 1)
    for index, edges in enumerate(graph.edges):
        for node, _ in edges:
            depth[node] = max(depth[node], depth[index] + 1)
    last = max(depth[: len(graph.tasks)]) + 1
    return [*depth[: len(graph.tasks)], *[last] * (graph.exit + 1 - len(graph.tasks))]


def _looked_ahead_to(graph: FlowGraph, position: Index) -> NDArray[np.bool_]:
    towards = np.zeros(len(position), dtype=bool)
    for index, task in enumerate(graph.tasks):
        if task.holds_back:
            towards[[position[node] for node, _ in graph.edges[index]]] = True
    return towards


def _copies(graph: FlowGraph, partitions: list[_Partition], low: Index, position: Index) -> tuple[Index, Index, Vector]:
    """Return the copied classes, the nodes that receive the copies, and the copied part of each."""
    numbers = {task.name: index for index, task in enumerate(graph.tasks)}
    sources, targets, parts = [], [], []
    for index, task in enumerate(graph.tasks):
        for name in task.route.copies:
            own_parts = dict(graph.edges[index]).get(numbers[name], np.zeros(len(graph.share)))
            sample = partitions[index].samples
            sources.append(low[position[index]] + np.arange(len(sample)))
            targets.append(np.full(len(sample), position[numbers[name]]))
            parts.append(1.0 - own_parts[sample])
    empty: list[Index] = [np.zeros(0, dtype=np.intp)]
    return (np.concatenate(sources or empty), np.concatenate(targets or empty), np.concatenate(parts or [np.zeros(0)]))


@dataclass(frozen=True, slots=True)
class _Partition:
    """The streams grouped into the classes of a node; nodes with the same groups have the same ``number``."""

    number: int
    class_of: Index
    """By stream: its class."""
    samples: Index
    """By class: one of its streams."""


def _partitions(graph: FlowGraph) -> list[_Partition]:
    """Return the classes of streams by node."""
    undivided: Index = np.zeros(len(graph.share), dtype=np.intp)
    last = _Partition(0, undivided, np.zeros(1, dtype=np.intp))
    partition_of_groups = {undivided.tobytes(): last}
    partitions = [last] * (graph.exit + 1)
    for index in range(len(graph.tasks) - 1, -1, -1):
        edges = graph.edges[index]
        alike = graph.tasks[index].route.kind in _UNIFORM_ROUTES
        if alike and len({partitions[node].number for node, _ in edges}) == 1:
            partitions[index] = partitions[edges[0][0]]
            continue
        code = undivided
        for node, part in edges:
            class_of, is_taken = partitions[node].class_of, part > 0.0
            if alike or not np.ptp(part[is_taken]):
                group = np.where(is_taken, class_of + 1, 0)
            else:
                group = np.unique(part, return_inverse=True)[1] * len(partitions[node].samples) + class_of
            code = np.unique(code * (int(group.max()) + 1) + group, return_inverse=True)[1]
        _, samples, class_of = np.unique(code, return_index=True, return_inverse=True)
        partitions[index] = partition_of_groups.setdefault(
            class_of.tobytes(), _Partition(len(partition_of_groups), class_of, samples)
        )
    return partitions


def _class_edges(
    graph: FlowGraph, partitions: list[_Partition], low: Index, position: Index
) -> tuple[Index, Index, Vector]:
    """Return the edges between classes: source class, target class, and the part of the source that takes the edge."""
    sources, targets, fractions = [], [], []
    for index, edges in enumerate(graph.edges):
        sample, begin = partitions[index].samples, low[position[index]]
        classes = np.arange(len(sample))
        alike = graph.tasks[index].route.kind in _UNIFORM_ROUTES
        for node, part in edges:
            if alike and partitions[node].number == partitions[index].number:
                sources.append(begin + classes)
                targets.append(low[position[node]] + classes)
                fractions.append(np.full(len(sample), part[0]))
                continue
            parts = part[sample]
            taken = np.flatnonzero(parts)
            sources.append(begin + taken)
            targets.append(low[position[node]] + partitions[node].class_of[sample[taken]])
            fractions.append(parts[taken])
    if not sources:
        empty: Index = np.zeros(0, dtype=np.intp)
        return empty, empty, np.zeros(0)
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(fractions)
