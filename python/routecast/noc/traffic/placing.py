"""On which node each task of a graph stands, and the traffic that makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from routecast.errors import RoutecastError
from routecast.noc.topology import Topology
from routecast.noc.traffic.graph import TaskGraph
from routecast.noc.traffic.mapping import best_mapping
from routecast.noc.traffic.model import Traffic
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["mapped", "placed", "tiles_of"]


def mapped(
    graph: TaskGraph,
    topology: Topology,
    mapping: Sequence[int] | Mapping[str, int] | None = None,
    *,
    link_rate_bytes_per_s: float | None = None,
) -> Traffic:
    """Return the traffic of a task graph whose tasks stand on nodes of a topology.

    Parameters
    ----------
    graph : TaskGraph
    topology : Topology
    mapping : sequence of int or mapping of str to int, optional
        The node of every task, in the order of ``graph.tasks`` or by name. Without one: the grid that the graph
        states, and where it states none, :func:`routecast.noc.traffic.mapping.best_mapping`.
    link_rate_bytes_per_s : float, optional
        What a link carries at full clock. Without it only proportions mean anything: the largest flow is 1.

    Raises
    ------
    RoutecastError
        More tasks than nodes, a mapping or grid that does not fit the topology, an unknown task, two tasks on one
        node, a link rate that is none.
    """
    if link_rate_bytes_per_s is not None and not 0 < link_rate_bytes_per_s < float("inf"):
        msg = f"link rate {link_rate_bytes_per_s:g} B/s: a link carries more than 0"
        raise RoutecastError(msg)
    tiles = placed(graph, topology) if mapping is None else tiles_of(graph, topology, mapping)
    rates = graph.rates_bytes_per_s
    unit = float(rates.max()) if link_rate_bytes_per_s is None else link_rate_bytes_per_s
    demand = np.zeros((topology.node_count, topology.node_count))
    demand[np.ix_(tiles, tiles)] = rates / unit
    return Traffic(name=graph.name, demand=demand)


def placed(graph: TaskGraph, topology: Topology) -> tuple[int, ...]:
    """Return the node of every task by the graph's own grid, or else by the best mapping found.

    Raises
    ------
    RoutecastError
        The grid has another size than the topology, or there are more tasks than nodes.
    """
    if graph.grid:
        return _tiles_of_grid(graph, topology)
    _check_room(graph, topology)
    return best_mapping(graph.rates_bytes_per_s, topology)


def tiles_of(
    graph: TaskGraph, topology: Topology, mapping: Sequence[int] | Mapping[str, int]
) -> tuple[int, ...]:
    """Return the node of every task in the order of ``graph.tasks``, checked.

    Raises
    ------
    RoutecastError
        As :func:`mapped`.
    """
    _check_room(graph, topology)
    faults = []
    if isinstance(mapping, Mapping):
        faults += [
            f'task "{task}" is not known: {did_you_mean(task, graph.tasks)}'
            for task in mapping
            if task not in graph.tasks
        ]
        tiles = {task: tile for task, tile in mapping.items() if task in graph.tasks}
    else:
        if len(mapping) != len(graph.tasks):
            faults.append(f"{len(mapping)} nodes for {len(graph.tasks)} tasks: give one for each task")
        tiles = dict(zip(graph.tasks, mapping, strict=False))
    holders: dict[int, str] = {}
    for task, tile in tiles.items():
        if not 0 <= tile < topology.node_count:
            faults.append(
                f'"{task}" on node {tile}: a {topology.columns} x {topology.rows} {topology.kind} has the nodes 0 to '
                f"{topology.node_count - 1}"
            )
        elif tile in holders:
            faults.append(f'"{holders[tile]}" and "{task}" both stand on node {tile}: give each its own')
        holders.setdefault(tile, task)
    if isinstance(mapping, Mapping) and (homeless := [task for task in graph.tasks if task not in mapping]):
        named = ", ".join(f'"{task}"' for task in homeless)
        faults.append(
            f"task {named} has no node: give it one"
            if len(homeless) == 1
            else f"the {len(homeless)} tasks {named} have no node: give each its own"
        )
    if faults:
        msg = f'mapping of task graph "{graph.name}": ' + "; ".join(faults)
        raise RoutecastError(msg)
    return tuple(int(tiles[task]) for task in graph.tasks)


def _tiles_of_grid(graph: TaskGraph, topology: Topology) -> tuple[int, ...]:
    rows, columns = len(graph.grid), len(graph.grid[0])
    if (columns, rows) != (topology.columns, topology.rows):
        msg = (
            f'task graph "{graph.name}" is mapped to {columns} x {rows} routers and the {topology.kind} has '
            f"{topology.columns} x {topology.rows}: take a topology of that size, or another mapping"
        )
        raise RoutecastError(msg)
    tiles: dict[str, int] = {}
    for y, row in enumerate(graph.grid):
        for x, task in enumerate(row):
            if task:
                tiles[task] = topology.router_at(x, y) * topology.concentration
    return tiles_of(graph, topology, tiles)


def _check_room(graph: TaskGraph, topology: Topology) -> None:
    if len(graph.tasks) > topology.node_count:
        msg = (
            f'task graph "{graph.name}" has {len(graph.tasks)} tasks and a {topology.columns} x {topology.rows} '
            f"{topology.kind} has {topology.node_count} nodes: take a larger one, each task stands on its own"
        )
        raise RoutecastError(msg)
