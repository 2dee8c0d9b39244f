"""What a file of a network on chip says that cannot be meant, beyond the kinds of single values."""

from __future__ import annotations

from collections.abc import Iterator

from routecast.errors import Problem, RoutecastError
from routecast.noc.file.document import NocFile, TopologyTable, TrafficTable
from routecast.noc.topology import Topology, TopologyKind

__all__ = ["contradictions"]

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
            kind=TopologyKind(table.kind),
            columns=table.columns,
            rows=table.rows,
            concentration=table.concentration,
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
        what = (
            f"got {file.power.alpha_max:g}: V_max / V_min is at least 1 (1 is no scaling; the thesis uses 3)"
        )
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
        yield Problem(
            "planes", "one plane leaves nothing to allocate: leave the table out, or give 2 or more"
        )
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
