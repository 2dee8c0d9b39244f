"""From a file of a network on chip to the grid, its traffic at load 1, its routings and planes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np

from routecast.errors import FileProblem, Problem, RoutecastError
from routecast.noc.case import NocCase, Progress, policy_name
from routecast.noc.file.document import MOST_SEEDS, NocFile, Simulated, TopologyTable, TrafficTable, parse_loads
from routecast.noc.power.router_table import ROUTER_TABLES, RouterTable, router_table
from routecast.noc.power.scaling import Scaling
from routecast.noc.routing.model import Routes
from routecast.noc.routing.policies import POLICIES, routes
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import patterns
from routecast.noc.traffic.matrix import read_matrix
from routecast.noc.traffic.model import Traffic, normalised
from routecast.noc.traffic.task_graph import mapped, task_graph
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["NocChange", "contradictions", "noc_case", "noc_schema", "parse_noc", "read_noc", "traffic_of"]


# What a file of a network on chip says that cannot be meant, beyond the kinds of single values.


_WHAT_SENDS = ("pattern", "task_graph", "matrix", "flows")
_ONLY_OF = {
    "share": ("pattern", ("hot_spot",)),
    "nodes": ("pattern", ("hot_spot",)),
    "weights": ("pattern", ("hot_spot",)),
    "permutations": ("pattern", ("normal",)),
    "seed": ("pattern", ("normal",)),
    "to_itself": ("pattern", ("uniform",)),
    "along": ("pattern", ("tornado", "neighbour")),
    "mapping": ("task_graph", ()),
}
"""Keys of ``[traffic]`` that go with one kind of traffic: its key, and its values (empty: any)."""
_MOST_NODES = 4096
"""Of a traffic matrix with as many rows and columns: 128 MiB, of which an answer needs several."""


def contradictions(file: NocFile) -> list[Problem]:
    """Return every contradiction of a file with its place."""
    return [
        *_of_topology(file.topology),
        *_of_traffic(file.traffic),
        *_of_places(file),
        *_of_planes(file),
        *_of_simulation(file),
    ]


def _of_topology(table: TopologyTable) -> Iterator[Problem]:
    try:
        Topology(
            kind=TopologyKind(table.kind), columns=table.columns, rows=table.rows, concentration=table.concentration
        )
    except RoutecastError as problem:
        yield Problem("topology", str(problem))
    nodes = table.columns * table.rows * table.concentration
    if nodes > _MOST_NODES:
        what = f"{nodes:,} nodes, but their traffic matrix is kept whole: at most {_MOST_NODES:,}, as many as 64 x 64"
        yield Problem("topology", what)


def _of_traffic(table: TrafficTable) -> Iterator[Problem]:
    given = [name for name in _WHAT_SENDS if getattr(table, name) is not None]
    if not given:
        yield Problem("traffic", "says not who sends: give pattern, task_graph, matrix or flows")
    elif len(given) > 1:
        yield Problem("traffic", f"says twice who sends: keep one of {', '.join(given)}")
    for name, (key, values) in _ONLY_OF.items():
        if getattr(table, name) is None:
            continue
        if getattr(table, key) is None or (values and getattr(table, key) not in values):
            fits = " or ".join(f'{key} = "{value}"' for value in values) or f"a {key}"
            yield Problem(f"traffic.{name}", f"goes with {fits} only")
    if table.weights is not None and len(table.weights) != len(table.nodes or ()):
        what = f"{len(table.weights)} weights for {len(table.nodes or ())} nodes: give one for each"
        yield Problem("traffic.weights", what)


def _of_places(file: NocFile) -> Iterator[Problem]:
    table, grid = file.traffic, file.topology
    places = [(f"nodes[{number}]", place) for number, place in enumerate(table.nodes or ())]
    for number, flow in enumerate(table.flows or ()):
        places += [(f"flows[{number}].from", flow.source), (f"flows[{number}].to", flow.target)]
        if flow.source == flow.target:
            yield Problem(f"traffic.flows[{number}]", "goes to where it comes from")
    places += [(f"mapping.{task}", place) for task, place in (table.mapping or {}).items()]
    sizes = (grid.columns, grid.rows, grid.concentration)
    for key, place in places:
        if any(at >= size for at, size in zip(place, sizes, strict=False)):
            last = f"[{sizes[0] - 1}, {sizes[1] - 1}" + (f", {sizes[2] - 1}]" if sizes[2] > 1 else "]")
            yield Problem(f"traffic.{key}", f"got {list(place)}: the last node of the grid is {last}")


def _of_planes(file: NocFile) -> Iterator[Problem]:
    if not file.power.alpha_max >= 1:
        what = f"got {file.power.alpha_max:g}: V_max / V_min is at least 1 (1 is no scaling; Li (2012) uses 3)"
        yield Problem("power.alpha_max", what)
    for name in ("clocks", "asleep"):
        if file.power.table is None and name in file.power.model_fields_set:
            yield Problem(f"power.{name}", "goes with a table of router power only")
    for number, policy in enumerate(file.routing.policies):
        if policy in file.routing.policies[:number]:
            yield Problem(f"routing.policies[{number}]", f'"{policy}" stands there twice')
    planes = file.planes
    if planes is None:
        return
    if planes.count is not None and planes.widths is not None and planes.count != len(planes.widths):
        yield Problem("planes", f"count says {planes.count}, widths {len(planes.widths)}: leave count out")
    if (len(planes.widths) if planes.widths is not None else planes.count) == 1:
        yield Problem("planes", "one plane leaves nothing to allocate: leave the table out, or give 2 or more")
    for number, name in enumerate(planes.allocations):
        if name in planes.allocations[:number]:
            yield Problem(f"planes.allocations[{number}]", f'"{name}" stands there twice')


def _of_simulation(file: NocFile) -> Iterator[Problem]:
    table = file.simulation
    if table is None:
        return
    for name in ("on_cycles", "off_cycles"):
        value = getattr(table, name)
        if table.injection == "on_off" and value is None:
            yield Problem(f"simulation.{name}", 'is missing: injection = "on_off" needs it')
        elif table.injection != "on_off" and value is not None:
            yield Problem(f"simulation.{name}", 'goes with injection = "on_off" only')
    given = table.model_fields_set
    several = file.planes is not None and (len(file.planes.widths or ()) or file.planes.count or 2) > 1
    if table.allocation is not None and not several:
        yield Problem("simulation.allocation", "goes with [planes] of more than one plane only")
    if several and "routing" in given:
        yield Problem("simulation.routing", "planes have planes.routing: leave it out")
    for number, policy in enumerate(table.routing):
        if policy in table.routing[:number]:
            yield Problem(f"simulation.routing[{number}]", f'"{policy}" stands there twice')
    if table.queueing == "virtual_output_queues" and "virtual_channels" in given:
        yield Problem("simulation.virtual_channels", "virtual output queues have none: leave it out")
    if table.allocator != "islip" and "iterations" in given:
        yield Problem("simulation.iterations", 'goes with allocator = "islip" only')


# The traffic that ``[traffic]`` of a file describes, before it is normalised.


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
    place = next(name for name in ("flows", "matrix", "task_graph", "pattern") if getattr(table, name) is not None)
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
        None if table.mapping is None else {task: node_at(topology, place) for task, place in table.mapping.items()}
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


COMMAND_LINE = "command line"


@value
class NocChange:
    """What a command line puts in the place of what the file says; None leaves that."""

    load: str | None = field('Loads, as ``"0.5"`` or ``"0.2, 0.5"``', default=None)
    routings: str | None = field("Names of routings to compare, with commas between", default=None)
    seed: int | None = field("Of everything that draws", default=None)
    simulated: str | None = field("Names of routings to simulate", default=None)


def read_noc(path: str | Path, *, change: NocChange | None = None, progress: Progress | None = None) -> NocCase:
    """Read a file of a network on chip and the matrices that it names.

    Parameters
    ----------
    path : str or Path
    change : NocChange, optional
        In the place of parts of the file.
    progress : callable, optional
        Told how many routings are made, of how many, and which is next: on large grids they take their time.

    Raises
    ------
    FileProblem
        The file or one that it names cannot be read, or says something wrong; all faults with their places.
    RoutecastError
        A value of the command line is wrong.
    """
    path = Path(path)
    text = read_text(path, kind="file of a network on chip")
    return parse_noc(text, subject=str(path), folder=path.parent, change=change, progress=progress)


def parse_noc(
    text: str,
    *,
    subject: str = "network on chip",
    folder: Path | None = None,
    change: NocChange | None = None,
    progress: Progress | None = None,
) -> NocCase:
    """Read a network on chip from the text of its file; ``folder`` is where the files that it names lie.

    Raises
    ------
    FileProblem, RoutecastError
        As :func:`read_noc`.
    """
    file = validated(NocFile, parse_toml(text, subject), subject)
    changed = _changed(file, change or NocChange())
    return noc_case(changed, subject=subject, folder=folder, progress=progress)


def noc_case(
    file: NocFile, *, subject: str = "network on chip", folder: Path | None = None, progress: Progress | None = None
) -> NocCase:
    """Return what a checked file describes.

    Raises
    ------
    FileProblem
        Parts of it contradict one another, or a matrix cannot be read.
    """
    problems = contradictions(file)
    if problems:
        raise FileProblem(subject, problems)
    topology = Topology(
        kind=TopologyKind(file.topology.kind),
        columns=file.topology.columns,
        rows=file.topology.rows,
        concentration=file.topology.concentration,
    )
    raw = traffic_of(file.traffic, topology, subject=subject, folder=folder or Path())
    demand = raw.between_routers(topology)
    found: dict[str, Routes] = {}
    count = len(file.routing.policies)
    for number, policy in enumerate(file.routing.policies):
        if progress is not None:
            progress(number, count, f"paths of {policy_name(policy)}")
        try:
            found[policy] = routes(policy, topology, demand=demand, seed=file.routing.seed)
        except RoutecastError as problem:
            raise FileProblem(subject, [Problem(f"routing.policies[{number}]", str(problem))]) from problem
    xy = found["xy"] if "xy" in found else routes("xy", topology)
    return NocCase(
        subject=subject,
        name=file.name or Path(subject).name.removesuffix(".noc.toml"),
        sources=tuple(dict.fromkeys(filter(None, (file.source,)))),
        topology=topology,
        traffic=_at_load_1(raw, file.traffic.normalised_by, tuple(found.values()), xy, subject),
        loads=tuple(sorted(set(file.traffic.load))),
        normalised_by=file.traffic.normalised_by,
        routings=tuple(found.values()),
        xy=xy,
        scaling=Scaling(alpha_max=file.power.alpha_max),
        widths=_widths(file),
        planes=file.planes,
        optimum=file.optimum,
        simulation=file.simulation,
        power=file.power,
        table=_table(file, subject, folder or Path()),
        seed=file.routing.seed,
    )


def noc_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of files of networks on chip, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routecast network on chip",
        "description": "A network on chip: grid, traffic, routings, power, planes, optimum, simulation.",
        **NocFile.model_json_schema(),
    }


def _at_load_1(raw: Traffic, normalised_by: str, compared: tuple[Routes, ...], xy: Routes, subject: str) -> Traffic:
    if normalised_by == "none":
        return raw
    try:
        return normalised(raw, compared if normalised_by == "compared" else (xy,), 1.0)
    except RoutecastError as problem:
        raise FileProblem(subject, [Problem("traffic", str(problem))]) from problem


def _table(file: NocFile, subject: str, folder: Path) -> RouterTable | None:
    name = file.power.table
    if name is None:
        return None
    try:
        return router_table(folder / name if name not in ROUTER_TABLES else name)
    except FileProblem:
        raise
    except RoutecastError as problem:
        raise FileProblem(subject, [Problem("power.table", str(problem))]) from problem


def _widths(file: NocFile) -> tuple[float, ...]:
    if file.planes is None:
        return (1.0,)
    return file.planes.widths or (1.0,) * (file.planes.count or 2)


def _changed(file: NocFile, change: NocChange) -> NocFile:
    traffic, routing, simulation = file.traffic, file.routing, file.simulation
    if change.load is not None:
        try:
            loads = parse_loads(change.load)
        except RoutecastError as problem:
            raise FileProblem(COMMAND_LINE, [Problem("--load", str(problem))]) from problem
        traffic = traffic.model_copy(update={"load": loads})
        simulation = simulation and simulation.model_copy(update={"loads": None})
    if change.routings is not None:
        routing = routing.model_copy(update={"policies": _names(change.routings, POLICIES)})
    if change.simulated is not None and simulation is not None:
        names = _names(change.simulated, get_args(Simulated))
        simulation = simulation.model_copy(update={"routing": names})
    if change.seed is not None and not 0 <= change.seed < MOST_SEEDS:
        what = f"got {change.seed}: seeds are 0 to {MOST_SEEDS - 1}"
        raise FileProblem(COMMAND_LINE, [Problem("--seed", what)])
    if change.seed is not None:
        routing = routing.model_copy(update={"seed": change.seed})
        simulation = simulation and simulation.model_copy(update={"seed": change.seed})
    return file.model_copy(update={"traffic": traffic, "routing": routing, "simulation": simulation})


def _names(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    problems = [
        Problem("--routing", f'got "{name}": {did_you_mean(name, known)}')
        for name in dict.fromkeys(names)
        if name not in known
    ]
    problems += [
        Problem("--routing", f'"{name}" stands there twice')
        for number, name in enumerate(names)
        if name in known and name in names[:number]
    ]
    if problems:
        raise FileProblem(COMMAND_LINE, problems)
    return names
