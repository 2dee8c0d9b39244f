"""The traffic that ``[traffic]`` of a file describes, before it is normalised."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from routecast.errors import FileProblem, Problem, RoutecastError
from routecast.noc.file.document import TrafficTable
from routecast.noc.topology import Topology
from routecast.noc.traffic import patterns
from routecast.noc.traffic.matrix import read_matrix
from routecast.noc.traffic.model import Traffic
from routecast.noc.traffic.task_graph import mapped, task_graph

__all__ = ["node_at", "traffic_of"]

# Only proportions mean anything without a link rate, so that rates in bit/s are welcome; beyond, sums overflow.
_LARGEST = 1e18


def node_at(topology: Topology, place: tuple[int, ...]) -> int:
    """Return the number of the node at ``(x, y)`` or ``(x, y, k)``."""
    x, y, *rest = place
    return topology.router_at(x, y) * topology.concentration + (rest[0] if rest else 0)


def traffic_of(table: TrafficTable, topology: Topology, *, subject: str, folder: Path) -> Traffic:
    """Return the traffic of a table without contradictions.

    Parameters
    ----------
    table : TrafficTable
    topology : Topology
    subject : str
        The file, for messages.
    folder : Path
        Where a matrix that it names lies.

    Raises
    ------
    FileProblem
        The traffic does not fit the grid, or its matrix or task graph cannot be had.
    """
    place = next(
        name for name in ("flows", "matrix", "task_graph", "pattern") if getattr(table, name) is not None
    )
    try:
        if table.flows is not None:
            traffic = _flows(table, topology)
        elif table.matrix is not None:
            traffic = _matrix(table, topology, folder)
        elif table.task_graph is not None:
            traffic = _task_graph(table, topology, folder)
        else:
            traffic = _pattern(table, topology)
    except FileProblem:
        raise
    except RoutecastError as problem:
        raise FileProblem(subject, [Problem(f"traffic.{place}", str(problem))]) from problem
    largest = float(traffic.demand.max())
    if largest > _LARGEST or 0.0 < largest < 1.0 / _LARGEST:
        what = (
            f"the largest flow is {largest:g} link capacities, and {1.0 / _LARGEST:g} to {_LARGEST:g} make sense: "
            "are its units right?"
        )
        raise FileProblem(subject, [Problem(f"traffic.{place}", what)])
    return traffic


def _flows(table: TrafficTable, topology: Topology) -> Traffic:
    demand = np.zeros((topology.node_count, topology.node_count))
    for flow in table.flows or ():
        demand[node_at(topology, flow.source), node_at(topology, flow.target)] += flow.rate
    return Traffic(name="given flows", demand=demand)


def _matrix(table: TrafficTable, topology: Topology, folder: Path) -> Traffic:
    path = folder / str(table.matrix)
    demand = read_matrix(path, nodes=topology.node_count, link_rate_bps=table.link_rate)
    return Traffic(name=path.stem, demand=demand)


def _task_graph(table: TrafficTable, topology: Topology, folder: Path) -> Traffic:
    name = str(table.task_graph)
    graph = task_graph(folder / name if name.endswith(".toml") else name)
    mapping = (
        None
        if table.mapping is None
        else {task: node_at(topology, place) for task, place in table.mapping.items()}
    )
    rate_bytes = None if table.link_rate is None else table.link_rate / 8.0
    return mapped(graph, topology, mapping, link_rate_bytes_per_s=rate_bytes)


def _pattern(table: TrafficTable, topology: Topology) -> Traffic:
    name = table.pattern or "uniform"
    given: dict[str, object] = {
        key: value
        for key in ("share", "weights", "permutations", "seed", "to_itself")
        if (value := getattr(table, key)) is not None
    }
    if table.nodes is not None:
        given["nodes"] = [node_at(topology, place) for place in table.nodes]
    if table.along is not None:
        given["along"] = patterns.Along(table.along)
    return patterns.PATTERNS[name](topology, **given)
