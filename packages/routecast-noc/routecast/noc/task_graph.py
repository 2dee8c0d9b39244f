"""Task graphs, shipped or from a ``*.taskgraph.toml``, and their mapping to the nodes of a topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from routecast.errors import FileProblem, ModelProblem, Problem, RoutecastError
from routecast.noc.topology import Topology, shortest_hops
from routecast.noc.traffic import Traffic
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import ByteRate
from routecast.quantity.file_model import FileModel
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["TASK_GRAPHS", "TaskGraph", "best_mapping", "mapped", "parse_task_graph", "placed", "task_graph", "tiles_of"]


@value
class Flow:
    """The traffic from one task to another."""

    source: str
    target: str
    rate_bytes_per_s: float


@value
class TaskGraph:
    """Tasks (cores) and the flows between them.

    Raises ModelProblem: a task or flow named twice, a flow of an unknown task or of a task to itself, an invalid rate.
    """

    name: str
    tasks: tuple[str, ...] = field("Their names, each once")
    flows: tuple[Flow, ...] = field("Flows, at most one from a task to another")
    source: tuple[str, ...] = field("Source of the figures", default=())
    notes: tuple[str, ...] = field("Disagreements of the sources, and the choices made", default=())
    grid: tuple[tuple[str, ...], ...] = field(
        'Rows of task names by router, ``""`` for a free tile; empty where no mapping is stated', default=()
    )

    def __post_init__(self) -> None:
        problems = [
            Problem(f"tasks[{i}]", f'"{task}" is named twice: each task needs a name of its own')
            for i, task in enumerate(self.tasks)
            if task in self.tasks[:i]
        ]
        seen: set[tuple[str, str]] = set()
        for i, flow in enumerate(self.flows):
            place = f"flow[{i}]"
            problems += [
                Problem(place, f'task "{task}" is not known: {did_you_mean(task, self.tasks)}')
                for task in (flow.source, flow.target)
                if task not in self.tasks
            ]
            if flow.source == flow.target:
                problems.append(Problem(place, f'"{flow.source}" sends to itself: a flow leads to another task'))
            if (flow.source, flow.target) in seen:
                problems.append(Problem(place, f'"{flow.source}" to "{flow.target}" is listed twice: add the rates'))
            if not 0 < flow.rate_bytes_per_s < float("inf"):
                problems.append(
                    Problem(place, f"rate {flow.rate_bytes_per_s:g} B/s: a rate is more than 0; leave idle flows out")
                )
            seen.add((flow.source, flow.target))
        if not self.flows:
            problems.append(Problem("flow", "got none: give at least one flow from a task to another"))
        if problems:
            raise ModelProblem(f'task graph "{self.name}"', problems)

    @property
    def rates_bytes_per_s(self) -> NDArray[np.float64]:
        """Rates between tasks, shape (tasks, tasks), in bytes per second."""
        number = {task: i for i, task in enumerate(self.tasks)}
        rates = np.zeros((len(self.tasks), len(self.tasks)))
        for flow in self.flows:
            rates[number[flow.source], number[flow.target]] = flow.rate_bytes_per_s
        return rates


# A smaller relative change is rounding.
_ROUNDING = 1e-12


def best_mapping(
    rates: NDArray[np.float64], topology: Topology, *, seed: int = 1, starts: int = 300
) -> tuple[int, ...]:
    """Return a node for every task so that rate times hops is small.

    A quadratic assignment problem. From each of ``starts`` random mappings, the search makes the best exchange of two
    nodes (with a task on at least one of them) until no exchange lowers the cost. This proves no optimum; on the
    shipped graphs hundreds of starts agree on the least value. The time grows as starts times steps times nodes times
    the square of the tasks.

    Parameters
    ----------
    rates : ndarray, shape (tasks, tasks)
    topology : Topology
        With at least as many nodes as tasks.
    seed : int
        Seed of the random starts; the same seed gives the same mapping.
    starts : int
    """
    # Distances are symmetric, so only what two tasks exchange in both directions matters.
    flow = (rates + rates.T) / 2
    np.fill_diagonal(flow, 0.0)
    router_of = np.arange(topology.node_count) // topology.concentration
    hops = shortest_hops(topology)[np.ix_(router_of, router_of)]
    random = np.random.default_rng(seed)
    mappings = [_local_minimum(flow, hops, random.permutation(topology.node_count)) for _ in range(starts)]
    best = min(mappings, key=lambda tiles: (_cost(flow, hops, tiles), tuple(tiles)))
    return tuple(int(tile) for tile in best)


def _local_minimum(flow: NDArray[np.float64], hops: NDArray[np.float64], tiles: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nodes of the tasks that no exchange improves; ``tiles``: first those of the tasks, then the others."""
    tiles = tiles.copy()
    tasks = len(flow)
    tolerance = _ROUNDING * max(1.0, float(flow.sum()))
    while True:
        changes = _exchange_costs(flow, np.take(hops[tiles[:tasks]], tiles, axis=1))
        a, b = np.unravel_index(int(np.argmin(changes)), changes.shape)
        if changes[a, b] >= -tolerance:
            return tiles[:tasks]
        tiles[[a, b]] = tiles[[b, a]]


def _exchange_costs(flow: NDArray[np.float64], hops: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the change of the cost by every exchange of a task with another node, shape (tasks, nodes).

    ``hops``: from the nodes of the tasks to the nodes of the tasks and then the others. With F and D symmetric and zero
    on their diagonals, and F zero for nodes without a task: 2 sum_k (F_ak - F_bk)(D_bk - D_ak) over k other than a, b.
    """
    tasks = len(flow)
    product = flow @ hops
    change: NDArray[np.float64] = product - product.diagonal()[:, None]
    change[:, :tasks] += product[:, :tasks].T - product.diagonal() + 2 * flow * hops[:, :tasks]
    return 2 * change


def _cost(flow: NDArray[np.float64], hops: NDArray[np.float64], tiles: NDArray[np.int64]) -> float:
    # Rounded so that equal costs summed in another order tie, and the smaller mapping is taken.
    return round(float((flow * hops[np.ix_(tiles, tiles)]).sum()), 9)


def mapped(
    graph: TaskGraph,
    topology: Topology,
    mapping: Sequence[int] | Mapping[str, int] | None = None,
    *,
    link_rate_bytes_per_s: float | None = None,
) -> Traffic:
    """Return the traffic of a task graph whose tasks are mapped to nodes of a topology.

    Parameters
    ----------
    graph : TaskGraph
    topology : Topology
    mapping : sequence of int or mapping of str to int, optional
        The node of every task, in the order of ``graph.tasks`` or by name. By default the grid of the graph or, where
        the graph has no grid, :func:`routecast.noc.task_graph.best_mapping`.
    link_rate_bytes_per_s : float, optional
        Rate of a link at full clock. Without it only proportions matter, and the largest flow is 1.

    Raises
    ------
    RoutecastError
        More tasks than nodes, a mapping or grid that does not fit the topology, an unknown task, two tasks on one
        node, an invalid link rate.
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

    Raises RoutecastError: the grid has another size than the topology, or there are more tasks than nodes.
    """
    if graph.grid:
        return _tiles_of_grid(graph, topology)
    _check_size(graph, topology)
    return best_mapping(graph.rates_bytes_per_s, topology)


def tiles_of(graph: TaskGraph, topology: Topology, mapping: Sequence[int] | Mapping[str, int]) -> tuple[int, ...]:
    """Return the node of every task in the order of ``graph.tasks``, checked.

    Raises RoutecastError: as :func:`mapped`.
    """
    _check_size(graph, topology)
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
            faults.append(f'"{holders[tile]}" and "{task}" are both on node {tile}: give each its own')
        holders.setdefault(tile, task)
    if isinstance(mapping, Mapping) and (unplaced := [task for task in graph.tasks if task not in mapping]):
        named = ", ".join(f'"{task}"' for task in unplaced)
        faults.append(
            f"task {named} has no node: give it one"
            if len(unplaced) == 1
            else f"the {len(unplaced)} tasks {named} have no node: give each its own"
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


def _check_size(graph: TaskGraph, topology: Topology) -> None:
    if len(graph.tasks) > topology.node_count:
        msg = (
            f'task graph "{graph.name}" has {len(graph.tasks)} tasks and a {topology.columns} x {topology.rows} '
            f"{topology.kind} has {topology.node_count} nodes: take a larger one, as each task needs its own node"
        )
        raise RoutecastError(msg)


TASK_GRAPHS = ("mpeg4", "vopd")
"""Names of the graphs that ship."""

_SUFFIX = ".taskgraph.toml"


class _FlowTable(FileModel):
    source: str = Field(alias="from", description="the task that sends")
    target: str = Field(alias="to", description="the task that receives")
    rate: ByteRate = Field(description='rate of the flow, such as "190 MB/s"')


class _BothWaysTable(FileModel):
    between: tuple[str, str] = Field(description="the two tasks")
    rate: ByteRate = Field(description='rate in each direction, such as "190 MB/s"')


class TaskGraphFile(FileModel):
    """A ``*.taskgraph.toml`` file."""

    name: str = Field(description="name of the graph in tables and figures")
    source: list[str] = Field(default=[], description="sources of the figures")
    notes: list[str] = Field(default=[], description="disagreements of the sources, and the choices made")
    tasks: list[str] = Field(min_length=2, description="the names of all tasks")
    flow: list[_FlowTable] = Field(default=[], description="flows from a task to another")
    both_ways: list[_BothWaysTable] = Field(default=[], description="pairs of tasks that send each other the same rate")
    grid: list[list[str]] = Field(default=[], description='rows of task names by router, "" for a free tile')


def task_graph(name: str | Path) -> TaskGraph:
    """Return the task graph of a name that ships (``mpeg4``, ``vopd``) or of a file ``*.taskgraph.toml``.

    Raises
    ------
    RoutecastError
        Neither a known name nor a file, or a file that is wrong.

    Examples
    --------
    >>> graph = task_graph("vopd")
    >>> len(graph.tasks), len(graph.flows)
    (12, 15)
    """
    if str(name) in TASK_GRAPHS:
        file = f"{name}{_SUFFIX}"
        text = (files("routecast.noc") / "data" / file).read_text(encoding="utf-8")
        return parse_task_graph(text, file)
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        msg = f'task graph "{name}" is not known: {did_you_mean(str(name), TASK_GRAPHS)}; or name a file *{_SUFFIX}'
        raise RoutecastError(msg)
    return read_task_graph(path)


def read_task_graph(path: Path) -> TaskGraph:
    """Return the task graph of a file.

    Raises FileProblem: with every fault of the file.
    """
    return parse_task_graph(read_text(path, kind="task graph"), str(path))


def parse_task_graph(text: str, subject: str) -> TaskGraph:
    """Return the task graph that a TOML text states; ``subject`` is its name in messages.

    Raises FileProblem: with every fault of the text.
    """
    document = validated(TaskGraphFile, parse_toml(text, subject), subject)
    _check_grid(document, subject)
    flows = [Flow(source=flow.source, target=flow.target, rate_bytes_per_s=flow.rate) for flow in document.flow]
    for pair in document.both_ways:
        first, second = pair.between
        flows += [
            Flow(source=first, target=second, rate_bytes_per_s=pair.rate),
            Flow(source=second, target=first, rate_bytes_per_s=pair.rate),
        ]
    try:
        return TaskGraph(
            name=document.name,
            tasks=tuple(document.tasks),
            flows=tuple(flows),
            source=tuple(document.source),
            notes=tuple(document.notes),
            grid=tuple(tuple(row) for row in document.grid),
        )
    except ModelProblem as problem:
        raise FileProblem(subject, problem.problems) from problem


def _check_grid(document: TaskGraphFile, subject: str) -> None:
    problems = []
    seen: dict[str, str] = {}
    width = len(document.grid[0]) if document.grid else 0
    for y, row in enumerate(document.grid):
        if len(row) != width or not row:
            problems.append(
                Problem(f"grid[{y}]", f"has {len(row)} tiles, but the first row {width}: give all rows one length")
            )
        for x, task in enumerate(row):
            place = f"grid[{y}][{x}]"
            if task and task not in document.tasks:
                problems.append(Problem(place, f'task "{task}" is not known: {did_you_mean(task, document.tasks)}'))
            elif task in seen:
                problems.append(Problem(place, f'task "{task}" is already at {seen[task]}'))
            if task:
                seen.setdefault(task, place)
    if document.grid:
        problems += [
            Problem("grid", f'task "{task}" has no tile: put it on one') for task in document.tasks if task not in seen
        ]
    if problems:
        raise FileProblem(subject, problems)
