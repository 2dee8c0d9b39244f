"""Files of networks on chip, ``*.noc.toml``: their tables, the checks between tables, and the case of a file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, WithJsonSchema

from routecast.errors import EnvironmentProblem, FileProblem, Problem, QuantityProblem, RoutecastError
from routecast.noc import patterns
from routecast.noc.patterns import read_matrix
from routecast.noc.router_table import ROUTER_TABLES, RouterTable, router_table
from routecast.noc.routing.deadlock import TURN_MODELS
from routecast.noc.routing.model import Routes
from routecast.noc.routing.policies import POLICIES, routes
from routecast.noc.scaling import Scaling
from routecast.noc.task_graph import mapped, task_graph
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import Traffic, normalised
from routecast.progress import Progress
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import BitRate, Count, Number, Parsed
from routecast.quantity.file_model import FileModel
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml, validated

__all__ = [
    "POLICY_NAMES",
    "SEED_COUNT",
    "SIMULATED_POLICIES",
    "NocCase",
    "NocChange",
    "NocFile",
    "NocPowerTable",
    "OptimumTable",
    "PlanesTable",
    "SimulationTable",
    "TopologyTable",
    "TrafficTable",
    "contradictions",
    "noc_case",
    "noc_schema",
    "parse_lengths",
    "parse_loads",
    "parse_noc",
    "plane_widths",
    "policy_name",
    "read_noc",
    "topology_of",
    "traffic_of",
]

POLICY_NAMES = {
    "xy": "XY",
    "yx": "YX",
    "o1turn": "O1TURN",
    "2p_es": "2P-ES",
    "2p_rs": "2P-RS",
    "4p_es": "4P-ES",
    "romm": "ROMM",
    "valiant": "Valiant",
    "adaptive": "adaptive",
    "west_first": "west-first",
    "north_last": "north-last",
    "negative_first": "negative-first",
    "odd_even": "odd-even",
    "balance": "BALANCE",
    "mini": "MINI",
    "four_phase": "4PHASE",
    "search": "search",
    "optimum": "optimum",
}
"""Names of routings and allocations in tables and figures."""


def policy_name(policy: str) -> str:
    """Return the name of a routing or an allocation in tables and figures."""
    return POLICY_NAMES.get(policy, policy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NocCase:
    """What a file of a network on chip describes.

    ``subject``: the file's path, for messages; ``sources``: of its figures; ``traffic``: at load 1; ``loads``:
    normalised, rising; ``normalised_by``: the meaning of load 1 (:class:`TrafficTable`); ``routings``: the compared
    routings in the file's order; ``xy``: XY routing, the base of comparisons; ``scaling``: range of voltage and clock;
    ``widths``: capacity of each plane's links relative to the first, ``(1.0,)`` for one plane; ``planes``, ``optimum``,
    ``simulation`` and ``power``: tables of the file; ``table``: the table of router power that it names; ``seed``: of
    random routings.
    """

    subject: str
    name: str
    sources: tuple[str, ...]
    topology: Topology
    traffic: Traffic
    loads: tuple[float, ...]
    normalised_by: str
    routings: tuple[Routes, ...]
    xy: Routes
    scaling: Scaling
    widths: tuple[float, ...]
    planes: PlanesTable | None
    optimum: OptimumTable
    simulation: SimulationTable | None
    power: NocPowerTable
    table: RouterTable | None
    seed: int

    @property
    def has_planes(self) -> bool:
        """Whether there is more than one plane."""
        return len(self.widths) > 1

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """The range of voltage and clock of each plane, which all planes share."""
        return (self.scaling,) * len(self.widths)

    def demand(self, load: float) -> NDArray[np.float64]:
        """Return the demand between routers at a normalised load, shape (routers, routers), in link capacities."""
        return self.traffic.scaled(load).between_routers(self.topology)


_RANGE = re.compile(r"\s*(\d+)\s*-\s*(\d+)\s*")
_MAX_FLITS = 10_000

Policy = Literal["xy", "yx", "o1turn", "2p_es", "2p_rs", "4p_es", "romm", "valiant", "adaptive"]
SimulatedPolicy = Literal[Policy, "west_first", "north_last", "negative_first", "odd_even"]
SIMULATED_POLICIES = (*POLICIES, *TURN_MODELS)
AllocationName = Literal["balance", "mini", "four_phase", "search"]


def parse_loads(value: object) -> tuple[float, ...]:
    """Read one load or several: ``0.5``, ``[0.2, 0.5]`` or ``"0.2, 0.5"``.

    Raises QuantityProblem: it is none of these, or a load is not above 0.
    """
    if isinstance(value, str):
        entries: list[object] = [_as_number(part) for part in value.split(",")]
    else:
        entries = list(value) if isinstance(value, list | tuple) else [value]
    loads = []
    for entry in entries:
        is_number = isinstance(entry, int | float) and not isinstance(entry, bool)
        if not (is_number and 0.0 < float(str(entry)) < math.inf):
            raise QuantityProblem(str(value), f"got {entry!r}: a load is a number above 0, such as 0.5")
        loads.append(float(str(entry)))
    if not loads:
        raise QuantityProblem(str(value), "got no load: give a number above 0, such as 0.5")
    return tuple(loads)


def _as_number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def parse_lengths(value: object) -> tuple[int, ...]:
    """Read the lengths of packets, in flits, all equally likely: ``8``, ``"5-10"`` or ``[1, 5]``.

    Raises QuantityProblem: it is none of these, or a length is not a whole number of at least 1.
    """
    entries: list[object] = list(value) if isinstance(value, list | tuple) else [value]
    if isinstance(value, str):
        match = _RANGE.fullmatch(value)
        entries = [*range(int(match[1]), min(int(match[2]), _MAX_FLITS + 1) + 1)] if match else [value]
    lengths = [entry for entry in entries if isinstance(entry, int) and not isinstance(entry, bool)]
    if not entries or len(lengths) < len(entries) or not all(1 <= length <= _MAX_FLITS for length in lengths):
        message = 'a length is a whole number of flits from 1: 8, "5-10" (all equally likely), or [1, 5]'
        raise QuantityProblem(str(value), f"got {value!r}: {message}")
    return tuple(lengths)


_LOADS_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}, "minItems": 1},
    ]
}
Loads = Annotated[tuple[float, ...], Parsed(parse_loads), WithJsonSchema(_LOADS_SCHEMA)]
Lengths = Annotated[
    tuple[int, ...],
    Parsed(parse_lengths),
    WithJsonSchema(
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}
    ),
]
SimulatedPolicies = Annotated[
    tuple[SimulatedPolicy, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    Field(min_length=1),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(SIMULATED_POLICIES)},
                {"type": "array", "items": {"enum": list(SIMULATED_POLICIES)}, "minItems": 1},
            ]
        }
    ),
]


Side = Annotated[Count, Field(ge=1, le=256)]
SEED_COUNT = 2**63
"""Number of seeds, which count from 0."""
Seed = Annotated[Count, Field(ge=0, lt=SEED_COUNT)]
Cycles = Annotated[Count, Field(ge=0, le=1000)]
FullCycles = Annotated[Count, Field(ge=1, le=1000)]
Positive = Annotated[Number, Field(gt=0.0)]
Position = Annotated[tuple[Annotated[Count, Field(ge=0)], ...], Field(min_length=2, max_length=3)]
"""Position of a node: ``[x, y]``, or ``[x, y, k]`` for the k-th node of a router; row 0 is on top."""


class TopologyTable(FileModel):
    """``[topology]``: routers on a grid."""

    kind: Literal["mesh", "torus", "concentrated_mesh"] = Field(default="mesh", description="Kind of the topology")
    columns: Side = Field(description="Routers in a row")
    rows: Side = Field(description="Routers in a column")
    concentration: Annotated[Count, Field(ge=1, le=64)] = Field(
        default=1, description="Nodes at each router of a concentrated mesh"
    )


class FlowTable(FileModel):
    """One entry of ``traffic.flows``."""

    source: Position = Field(alias="from", description="Node that sends: [x, y], or [x, y, k] at a shared router")
    target: Position = Field(alias="to", description="Node that receives")
    rate: Positive = Field(description="Rate in capacities of a link at full clock")


class TrafficTable(FileModel):
    """``[traffic]``: the traffic, one of pattern, task_graph, matrix and flows; and the loads."""

    pattern: Literal["uniform", "normal", "transpose", "tornado", "hot_spot", "bit_complement", "neighbour"] | None = (
        Field(default=None, description="A synthetic pattern")
    )
    share: Annotated[Number, Field(ge=0.0, le=1.0)] | None = Field(
        default=None, description="hot_spot: part of each node's traffic that goes to the hot spots; 0.6 if not given"
    )
    nodes: Annotated[tuple[Position, ...], Field(min_length=1)] | None = Field(
        default=None, description="hot_spot: nodes that are hot spots; the middle of the grid if not given"
    )
    weights: Annotated[tuple[Positive, ...], Field(min_length=1)] | None = Field(
        default=None, description="hot_spot: how the share is divided among its nodes; evenly if not given"
    )
    permutations: Annotated[Count, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="normal: number of permutation matrices in the mean; as many as nodes if not given"
    )
    seed: Seed | None = Field(default=None, description="normal: seed of the permutations; 1 if not given")
    to_itself: bool | None = Field(
        default=None, description="uniform: whether a node sends to itself as often as to any other"
    )
    along: Literal["columns", "both"] | None = Field(
        default=None, description="tornado, neighbour: coordinates that are shifted; columns if not given"
    )
    task_graph: str | None = Field(default=None, description='A shipped task graph: "mpeg4", "vopd"')
    mapping: dict[str, Position] | None = Field(
        default=None, description="Node of each task of the graph; its published mapping if not given"
    )
    matrix: str | None = Field(
        default=None, description="CSV file beside this one: row i, column j goes from node i to node j"
    )
    link_rate: BitRate | None = Field(
        default=None,
        description="matrix, task_graph: rate of a link at full clock, which converts their rates to loads",
    )
    flows: Annotated[tuple[FlowTable, ...], Field(min_length=1)] | None = Field(
        default=None, description="Single flows"
    )
    load: Loads = Field(default=(1.0,), description="One normalised load, or several")
    normalised_by: Literal["compared", "xy", "none"] = Field(
        default="compared",
        description=(
            "Meaning of load 1: the link with the most load over all compared routings is full (Li 2012, eq. 6.7), the "
            "link with the most load under XY is full (eq. 7.13), or rates are not scaled"
        ),
    )


class RoutingTable(FileModel):
    """``[routing]``: the routings to compare."""

    policies: Annotated[tuple[Policy, ...], Field(min_length=1)] = Field(
        default=("xy", "2p_es"), description="Routings to compare"
    )
    seed: Seed = Field(default=1, description="Seed of routings that draw paths or shares")


class NocPowerTable(FileModel):
    """``[power]``: voltage and clock, and the power of a router."""

    alpha_max: Number = Field(default=3.0, description="V_max / V_min, the largest expansion factor; at least 1")
    table: str | None = Field(
        default=None,
        description=(
            "Power of a router by clock and load (Li 2012, eq. 7.14): a *.nocpower.toml or CSV beside this file, or "
            '"intel-48-core"'
        ),
    )
    clocks: Literal["any", "listed"] = Field(
        default="any", description="table: whether a plane runs at any clock or only at the clocks of the table"
    )
    asleep: Annotated[Number, Field(ge=0.0, le=1.0)] = Field(
        default=1.0, description="table: part of idle power that a plane without traffic draws; 1 means no sleep mode"
    )


class PlanesTable(FileModel):
    """``[planes]``: parallel networks, each with its own voltage and clock."""

    count: Annotated[Count, Field(ge=1, le=16)] | None = Field(
        default=None, description="Planes of equal width; 2 if no widths are given"
    )
    widths: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=16)] | None = Field(
        default=None, description="Capacity of each plane's links, relative to the first plane's"
    )
    allocations: Annotated[tuple[AllocationName, ...], Field(min_length=1)] = Field(
        default=("balance", "mini", "four_phase", "search"), description="Allocations of flows to planes"
    )
    routing: Literal["xy", "yx", "adaptive"] = Field(
        default="xy", description="Routing within each plane; the allocation search chooses its own paths"
    )
    freedom: Literal["plane", "plane_order", "dimension_order", "minimal", "any"] = Field(
        default="minimal",
        description=(
            "search: paths that it may choose for a flow: XY, XY or YX as the plane prescribes, XY or YX, any shortest "
            "path, or any path"
        ),
    )


class OptimumTable(FileModel):
    """``[optimum]``: the least power of any splitting over paths and planes."""

    paths: Literal["minimal", "any"] = Field(default="any", description="Paths that flows may take")
    gap: Annotated[Number, Field(gt=0.0, lt=1.0)] | None = Field(
        default=None, description="Proven relative gap at which the search stops; 1e-6 for one plane, 0.01 for several"
    )
    time_limit: Positive | None = Field(
        default=None, description="Seconds after which the search stops with its best flows and bound"
    )


class SimulationTable(FileModel):
    """``[simulation]``: the routers, packets and runs of the flit-level simulation."""

    routing: SimulatedPolicies = Field(default=("xy",), description="Routings or turn models to simulate")
    allocation: AllocationName | None = Field(
        default=None, description="Allocation of flows to planes; the first of [planes] if not given"
    )
    queueing: Literal["virtual_channels", "virtual_output_queues"] = Field(
        default="virtual_channels", description="Queueing of arriving flits"
    )
    virtual_channels: Annotated[Count, Field(ge=1, le=64)] = Field(
        default=1, description="Virtual channels of a link; 1 is the plain wormhole router"
    )
    buffer_flits: Annotated[Count, Field(ge=1, le=65_536)] = Field(
        default=8, description="Flits that each virtual channel or virtual output queue holds"
    )
    allocator: Literal["round_robin", "islip", "greedy_weight"] = Field(
        default="islip", description="Matching of inputs with outputs"
    )
    iterations: Annotated[Count, Field(ge=1, le=64)] = Field(default=1, description="Rounds of iSLIP in a cycle")
    routing_cycles: Cycles = Field(default=0, description="Time of route computation; 0 is look-ahead routing")
    vc_allocation_cycles: Cycles = Field(default=1, description="Time to allocate a virtual channel to a head flit")
    switch_allocation_cycles: FullCycles = Field(default=1, description="Time to allocate the switch to a flit")
    traversal_cycles: Cycles = Field(default=1, description="Time through the crossbar")
    credit_cycles: FullCycles = Field(default=1, description="Time of a credit to the upstream router")
    link_cycles: Cycles = Field(default=1, description="Time on the wire between routers")
    ejection_channels: Annotated[Count, Field(ge=1, le=60)] = Field(
        default=1, description="Flits per cycle that a router delivers to a node"
    )
    node_link_cycles: Cycles = Field(default=1, description="Time on the wire between a node and its router")
    packet_flits: Lengths = Field(
        default=(8,), description='Length of packets in flits: 8, "5-10" (all equally likely), or [1, 5]'
    )
    injection: Literal["bernoulli", "on_off"] = Field(default="bernoulli", description="Process that creates packets")
    on_cycles: Positive | None = Field(default=None, description="on_off: mean length of a node's bursts")
    off_cycles: Positive | None = Field(default=None, description="on_off: mean length of the pauses between bursts")
    clock: Literal["full", "scaled"] = Field(
        default="full",
        description="Full clock at every load, or the slowest that busy_ratio allows; several planes are always scaled",
    )
    busy_ratio: Annotated[Number, Field(gt=0.0, le=1.0)] = Field(
        default=0.8,
        description=(
            "Greatest utilisation of the most loaded link at a scaled clock; at 1, Li's rule, latency is unbounded "
            "wherever alpha is below alpha_max"
        ),
    )
    loads: Loads | None = Field(default=None, description="Loads to simulate; those of [traffic] if not given")
    warmup_cycles: Annotated[Count, Field(ge=0, le=10**9)] = Field(
        default=10_000, description="Cycles before the measurement"
    )
    measure_cycles: Annotated[Count, Field(ge=100, le=10**9)] = Field(
        default=20_000, description="Cycles of the measurement, whose packets count"
    )
    drain_cycles: Annotated[Count, Field(ge=0, le=10**9)] = Field(
        default=100_000, description="Maximum number of further cycles in which these packets arrive"
    )
    replications: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=3, description="Independent runs with different random streams"
    )
    seed: Seed = Field(default=1, description="Seed of all random streams")


class NocFile(FileModel):
    """A file of a network on chip."""

    name: Annotated[str, Field(max_length=80)] = Field(default="", description="Name; the file's stem if not given")
    source: str = Field(default="", description="Source of its figures")
    topology: TopologyTable
    traffic: TrafficTable
    routing: RoutingTable = RoutingTable()
    power: NocPowerTable = NocPowerTable()
    planes: PlanesTable | None = Field(default=None, description="Several planes; absent: one plane")
    optimum: OptimumTable = OptimumTable()
    simulation: SimulationTable | None = Field(default=None, description="absent: flow level only")


_TRAFFIC_KINDS = ("pattern", "task_graph", "matrix", "flows")
_REQUIRED_TRAFFIC = {
    "share": ("pattern", ("hot_spot",)),
    "nodes": ("pattern", ("hot_spot",)),
    "weights": ("pattern", ("hot_spot",)),
    "permutations": ("pattern", ("normal",)),
    "seed": ("pattern", ("normal",)),
    "to_itself": ("pattern", ("uniform",)),
    "along": ("pattern", ("tornado", "neighbour")),
    "mapping": ("task_graph", ()),
}
"""Keys of ``[traffic]`` that need a kind of traffic: the key of the kind, and its values (empty: any)."""
_MAX_NODES = 4096
"""The traffic matrix of so many nodes takes 128 MiB, and an answer needs several matrices."""


def topology_of(table: TopologyTable) -> Topology:
    """Return the grid of a table.

    Raises RoutecastError: as :class:`Topology`.
    """
    return Topology(
        kind=TopologyKind(table.kind), columns=table.columns, rows=table.rows, concentration=table.concentration
    )


def contradictions(file: NocFile) -> list[Problem]:
    """Return the contradictions between values of a file, each with its key."""
    return [
        *_topology_problems(file.topology),
        *_traffic_problems(file.traffic),
        *_position_problems(file),
        *_plane_problems(file),
        *_simulation_problems(file),
    ]


def _topology_problems(table: TopologyTable) -> Iterator[Problem]:
    try:
        topology_of(table)
    except RoutecastError as problem:
        yield Problem("topology", str(problem))
    nodes = table.columns * table.rows * table.concentration
    if nodes > _MAX_NODES:
        message = f"has {nodes:,} nodes: their dense traffic matrix allows at most {_MAX_NODES:,}, as many as 64 x 64"
        yield Problem("topology", message)


def _traffic_problems(table: TrafficTable) -> Iterator[Problem]:
    kinds = [name for name in _TRAFFIC_KINDS if getattr(table, name) is not None]
    if not kinds:
        yield Problem("traffic", "names no traffic: give pattern, task_graph, matrix or flows")
    elif len(kinds) > 1:
        yield Problem("traffic", f"names several kinds of traffic: keep one of {', '.join(kinds)}")
    for name, (key, values) in _REQUIRED_TRAFFIC.items():
        if getattr(table, name) is None:
            continue
        if getattr(table, key) is None or (values and getattr(table, key) not in values):
            required = " or ".join(f'{key} = "{value}"' for value in values) or f"a {key}"
            yield Problem(f"traffic.{name}", f"needs {required}")
    if table.weights is not None and len(table.weights) != len(table.nodes or ()):
        message = f"{len(table.weights)} weights for {len(table.nodes or ())} nodes: give one for each"
        yield Problem("traffic.weights", message)


def _position_problems(file: NocFile) -> Iterator[Problem]:
    table, grid = file.traffic, file.topology
    positions = [(f"nodes[{number}]", position) for number, position in enumerate(table.nodes or ())]
    for number, flow in enumerate(table.flows or ()):
        positions += [(f"flows[{number}].from", flow.source), (f"flows[{number}].to", flow.target)]
        if flow.source == flow.target:
            yield Problem(f"traffic.flows[{number}]", "has the same source and target")
    positions += [(f"mapping.{task}", position) for task, position in (table.mapping or {}).items()]
    sizes = (grid.columns, grid.rows, grid.concentration)
    for key, position in positions:
        if any(coordinate >= size for coordinate, size in zip(position, sizes, strict=False)):
            last = f"[{sizes[0] - 1}, {sizes[1] - 1}" + (f", {sizes[2] - 1}]" if sizes[2] > 1 else "]")
            yield Problem(f"traffic.{key}", f"got {list(position)}: the last node of the grid is {last}")


def _plane_problems(file: NocFile) -> Iterator[Problem]:
    if not file.power.alpha_max >= 1:
        message = f"got {file.power.alpha_max:g}: V_max / V_min is at least 1 (1 is no scaling; Li (2012) uses 3)"
        yield Problem("power.alpha_max", message)
    for name in ("clocks", "asleep"):
        if file.power.table is None and name in file.power.model_fields_set:
            yield Problem(f"power.{name}", "needs a table of router power")
    for number, policy in enumerate(file.routing.policies):
        if policy in file.routing.policies[:number]:
            yield Problem(f"routing.policies[{number}]", f'"{policy}" is listed twice')
    planes = file.planes
    if planes is None:
        return
    if planes.count is not None and planes.widths is not None and planes.count != len(planes.widths):
        yield Problem("planes", f"count is {planes.count}, but there are {len(planes.widths)} widths: leave count out")
    if len(plane_widths(file)) == 1:
        yield Problem(
            "planes", "has one plane, which needs no allocation: leave [planes] out, or give 2 planes or more"
        )
    for number, name in enumerate(planes.allocations):
        if name in planes.allocations[:number]:
            yield Problem(f"planes.allocations[{number}]", f'"{name}" is listed twice')


def _simulation_problems(file: NocFile) -> Iterator[Problem]:
    table = file.simulation
    if table is None:
        return
    for name in ("on_cycles", "off_cycles"):
        value = getattr(table, name)
        if table.injection == "on_off" and value is None:
            yield Problem(f"simulation.{name}", 'is missing: injection = "on_off" needs it')
        elif table.injection != "on_off" and value is not None:
            yield Problem(f"simulation.{name}", 'needs injection = "on_off"')
    stated = table.model_fields_set
    has_planes = len(plane_widths(file)) > 1
    if table.allocation is not None and not has_planes:
        yield Problem("simulation.allocation", "needs [planes] with more than one plane")
    if has_planes and "routing" in stated:
        yield Problem("simulation.routing", "does not apply to several planes, which have planes.routing: leave it out")
    for number, policy in enumerate(table.routing):
        if policy in table.routing[:number]:
            yield Problem(f"simulation.routing[{number}]", f'"{policy}" is listed twice')
    if table.queueing == "virtual_output_queues" and "virtual_channels" in stated:
        yield Problem("simulation.virtual_channels", "does not apply to virtual output queues: leave it out")
    if table.allocator != "islip" and "iterations" in stated:
        yield Problem("simulation.iterations", 'needs allocator = "islip"')


# Without a link rate only proportions matter, so that rates in bit/s are allowed; sums of larger numbers overflow.
_MAX_RATE = 1e18


def node_at(topology: Topology, position: tuple[int, ...]) -> int:
    """Return the number of the node at ``(x, y)`` or ``(x, y, k)``."""
    x, y, *rest = position
    return topology.router_at(x, y) * topology.concentration + (rest[0] if rest else 0)


def traffic_of(table: TrafficTable, topology: Topology, *, subject: str, folder: Path) -> Traffic:
    """Return the traffic of a table that passed all checks, before it is normalised.

    ``subject``: the file, for messages; ``folder``: of the matrix that it names. Raises FileProblem: the traffic does
    not fit the grid, or its matrix or task graph cannot be read.
    """
    kind = next(name for name in ("flows", "matrix", "task_graph", "pattern") if getattr(table, name) is not None)
    try:
        if table.flows is not None:
            traffic = _traffic_of_flows(table, topology)
        elif table.matrix is not None:
            traffic = _traffic_of_matrix(table, topology, folder)
        elif table.task_graph is not None:
            traffic = _traffic_of_task_graph(table, topology, folder)
        else:
            traffic = _traffic_of_pattern(table, topology)
    except FileProblem:
        raise
    except RoutecastError as problem:
        raise FileProblem(subject, [Problem(f"traffic.{kind}", str(problem))]) from problem
    largest = float(traffic.demand.max())
    if largest > _MAX_RATE or 0.0 < largest < 1.0 / _MAX_RATE:
        message = (
            f"the largest flow is {largest:g} link capacities, which is not in {1.0 / _MAX_RATE:g} to {_MAX_RATE:g}: "
            "check its units"
        )
        raise FileProblem(subject, [Problem(f"traffic.{kind}", message)])
    return traffic


def _traffic_of_flows(table: TrafficTable, topology: Topology) -> Traffic:
    demand = np.zeros((topology.node_count, topology.node_count))
    for flow in table.flows or ():
        demand[node_at(topology, flow.source), node_at(topology, flow.target)] += flow.rate
    return Traffic(name="given flows", demand=demand)


def _traffic_of_matrix(table: TrafficTable, topology: Topology, folder: Path) -> Traffic:
    path = folder / str(table.matrix)
    demand = read_matrix(path, nodes=topology.node_count, link_rate_bps=table.link_rate)
    return Traffic(name=path.stem, demand=demand)


def _traffic_of_task_graph(table: TrafficTable, topology: Topology, folder: Path) -> Traffic:
    name = str(table.task_graph)
    graph = task_graph(folder / name if name.endswith(".toml") else name)
    mapping = None
    if table.mapping is not None:
        mapping = {task: node_at(topology, position) for task, position in table.mapping.items()}
    rate_bytes = None if table.link_rate is None else table.link_rate / 8.0
    return mapped(graph, topology, mapping, link_rate_bytes_per_s=rate_bytes)


def _traffic_of_pattern(table: TrafficTable, topology: Topology) -> Traffic:
    name = table.pattern or "uniform"
    options: dict[str, object] = {
        key: value
        for key in ("share", "weights", "permutations", "seed", "to_itself")
        if (value := getattr(table, key)) is not None
    }
    if table.nodes is not None:
        options["nodes"] = [node_at(topology, position) for position in table.nodes]
    if table.along is not None:
        options["along"] = patterns.Along(table.along)
    return patterns.PATTERNS[name](topology, **options)


COMMAND_LINE = "command line"


@value
class NocChange:
    """Options of a command line that replace parts of the file; None keeps the file's part."""

    load: str | None = field('Loads, as ``"0.5"`` or ``"0.2, 0.5"``', default=None)
    routings: str | None = field("Names of routings to compare, separated by commas", default=None)
    seed: int | None = field("Seed of all random draws", default=None)
    simulated: str | None = field("Names of routings to simulate, separated by commas", default=None)


def read_noc(path: str | Path, *, change: NocChange | None = None, on_progress: Progress | None = None) -> NocCase:
    """Read a file of a network on chip and the matrices that it names.

    Parameters
    ----------
    path : str or Path
    change : NocChange, optional
        Replaces parts of the file.
    on_progress : callable, optional
        Is called with the number of finished routings, the number of all, and the name of the next.

    Raises
    ------
    FileProblem
        The file or one that it names cannot be read or has faults; all of them with their keys.
    RoutecastError
        A value of the command line is wrong.
    """
    path = Path(path)
    text = read_text(path, kind="file of a network on chip")
    return parse_noc(text, subject=str(path), folder=path.parent, change=change, on_progress=on_progress)


def parse_noc(
    text: str,
    *,
    subject: str = "network on chip",
    folder: Path | None = None,
    change: NocChange | None = None,
    on_progress: Progress | None = None,
) -> NocCase:
    """Read a network on chip from the text of its file; ``folder`` is that of the files that it names.

    Raises FileProblem, RoutecastError: as :func:`read_noc`.
    """
    file = validated(NocFile, parse_toml(text, subject), subject)
    changed = _with_change(file, change or NocChange())
    return noc_case(changed, subject=subject, folder=folder, on_progress=on_progress)


def noc_case(
    file: NocFile, *, subject: str = "network on chip", folder: Path | None = None, on_progress: Progress | None = None
) -> NocCase:
    """Return the case that a file describes.

    Raises FileProblem: parts of it contradict one another, or a matrix cannot be read.
    """
    problems = contradictions(file)
    if problems:
        raise FileProblem(subject, problems)
    topology = topology_of(file.topology)
    raw = traffic_of(file.traffic, topology, subject=subject, folder=folder or Path())
    demand = raw.between_routers(topology)
    by_policy: dict[str, Routes] = {}
    count = len(file.routing.policies)
    for number, policy in enumerate(file.routing.policies):
        if on_progress is not None:
            on_progress(number, count, f"paths of {policy_name(policy)}")
        try:
            by_policy[policy] = routes(policy, topology, demand=demand, seed=file.routing.seed)
        except EnvironmentProblem:
            raise
        except RoutecastError as problem:
            raise FileProblem(subject, [Problem(f"routing.policies[{number}]", str(problem))]) from problem
    xy = by_policy["xy"] if "xy" in by_policy else routes("xy", topology)
    return NocCase(
        subject=subject,
        name=file.name or Path(subject).name.removesuffix(".noc.toml"),
        sources=tuple(dict.fromkeys(filter(None, (file.source,)))),
        topology=topology,
        traffic=_at_load_1(raw, file.traffic.normalised_by, tuple(by_policy.values()), xy, subject),
        loads=tuple(sorted(set(file.traffic.load))),
        normalised_by=file.traffic.normalised_by,
        routings=tuple(by_policy.values()),
        xy=xy,
        scaling=Scaling(alpha_max=file.power.alpha_max),
        widths=plane_widths(file),
        planes=file.planes,
        optimum=file.optimum,
        simulation=file.simulation,
        power=file.power,
        table=_router_table(file, subject, folder or Path()),
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


def _router_table(file: NocFile, subject: str, folder: Path) -> RouterTable | None:
    name = file.power.table
    if name is None:
        return None
    try:
        return router_table(folder / name if name not in ROUTER_TABLES else name)
    except FileProblem:
        raise
    except RoutecastError as problem:
        raise FileProblem(subject, [Problem("power.table", str(problem))]) from problem


def plane_widths(file: NocFile) -> tuple[float, ...]:
    """Return the width of each plane of a file, ``(1.0,)`` for one plane."""
    if file.planes is None:
        return (1.0,)
    return file.planes.widths or (1.0,) * (file.planes.count or 2)


def _with_change(file: NocFile, change: NocChange) -> NocFile:
    traffic, routing, simulation = file.traffic, file.routing, file.simulation
    if change.load is not None:
        try:
            loads = parse_loads(change.load)
        except RoutecastError as problem:
            raise FileProblem(COMMAND_LINE, [Problem("--load", str(problem))]) from problem
        traffic = traffic.model_copy(update={"load": loads})
        simulation = simulation and simulation.model_copy(update={"loads": None})
    if change.routings is not None:
        routing = routing.model_copy(update={"policies": _parse_policies(change.routings, POLICIES)})
    if change.simulated is not None and simulation is not None:
        simulation = simulation.model_copy(update={"routing": _parse_policies(change.simulated, SIMULATED_POLICIES)})
    if change.seed is not None and not 0 <= change.seed < SEED_COUNT:
        message = f"got {change.seed}: seeds are 0 to {SEED_COUNT - 1}"
        raise FileProblem(COMMAND_LINE, [Problem("--seed", message)])
    if change.seed is not None:
        routing = routing.model_copy(update={"seed": change.seed})
        simulation = simulation and simulation.model_copy(update={"seed": change.seed})
    return file.model_copy(update={"traffic": traffic, "routing": routing, "simulation": simulation})


def _parse_policies(text: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    problems = [
        Problem("--routing", f'got "{name}": {did_you_mean(name, allowed)}')
        for name in dict.fromkeys(names)
        if name not in allowed
    ]
    problems += [
        Problem("--routing", f'"{name}" is listed twice')
        for number, name in enumerate(names)
        if name in allowed and name in names[:number]
    ]
    if problems:
        raise FileProblem(COMMAND_LINE, problems)
    return names
