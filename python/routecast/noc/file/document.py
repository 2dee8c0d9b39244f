"""What a file of a network on chip (``*.noc.toml``) may say: grid, traffic, routing, power, planes, simulation."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from routecast.errors import QuantityProblem
from routecast.quantity.fields import BitRate, Count, Number, Parsed
from routecast.quantity.file_model import FileModel

__all__ = [
    "MOST_SEEDS",
    "NocFile",
    "OptimumTable",
    "PlanesTable",
    "PowerTable",
    "Simulated",
    "SimulationTable",
    "TopologyTable",
    "TrafficTable",
    "parse_lengths",
    "parse_loads",
]


# Kinds of values that files of networks on chip hold: loads, lengths of packets, names of routings.


_RANGE = re.compile(r"\s*(\d+)\s*-\s*(\d+)\s*")
_MOST_FLITS = 10_000

Policy = Literal["xy", "yx", "o1turn", "2p_es", "2p_rs", "4p_es", "romm", "valiant", "adaptive"]
Simulated = Literal[
    "xy",
    "yx",
    "o1turn",
    "2p_es",
    "2p_rs",
    "4p_es",
    "romm",
    "valiant",
    "adaptive",
    "west_first",
    "north_last",
    "negative_first",
    "odd_even",
]
AllocationName = Literal["balance", "mini", "four_phase", "search"]


def parse_loads(value: object) -> tuple[float, ...]:
    """Read one load or several: ``0.5``, ``[0.2, 0.5]`` or ``"0.2, 0.5"``.

    Raises
    ------
    QuantityProblem
        It is none of these, or a load is not above 0.
    """
    if isinstance(value, str):
        entries: list[object] = [_number(part) for part in value.split(",")]
    else:
        entries = list(value) if isinstance(value, list | tuple) else [value]
    loads = []
    for entry in entries:
        is_number = isinstance(entry, int | float) and not isinstance(entry, bool)
        if not (is_number and 0.0 < float(str(entry)) < math.inf):
            raise QuantityProblem(str(value), f"got {entry!r}: a load is a number above 0, such as 0.5")
        loads.append(float(str(entry)))
    if not loads:
        raise QuantityProblem(str(value), "there is no load: give one above 0")
    return tuple(loads)


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def parse_lengths(value: object) -> tuple[int, ...]:
    """Read the lengths of packets, in flits, all equally likely: ``8``, ``"5-10"`` or ``[1, 5]``.

    Raises
    ------
    QuantityProblem
        It is none of these, or a length is no whole number from 1.
    """
    entries: list[object] = list(value) if isinstance(value, list | tuple) else [value]
    if isinstance(value, str):
        match = _RANGE.fullmatch(value)
        entries = [*range(int(match[1]), min(int(match[2]), _MOST_FLITS + 1) + 1)] if match else [value]
    lengths = [one for one in entries if isinstance(one, int) and not isinstance(one, bool)]
    if not entries or len(lengths) < len(entries) or not all(1 <= one <= _MOST_FLITS for one in lengths):
        what = 'lengths are whole flits from 1: 8, "5-10" (each as likely), or [1, 5]'
        raise QuantityProblem(str(value), f"got {value!r}: {what}")
    return tuple(lengths)


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_ONE_OR_MORE = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}, "minItems": 1},
    ]
}
Loads = Annotated[tuple[float, ...], Parsed(parse_loads), WithJsonSchema(_ONE_OR_MORE)]
Lengths = Annotated[
    tuple[int, ...],
    Parsed(parse_lengths),
    WithJsonSchema(
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}
    ),
]
SimulatedOnes = Annotated[
    tuple[Simulated, ...],
    BeforeValidator(_one_or_more),
    Field(min_length=1),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(get_args(Simulated))},
                {"type": "array", "items": {"enum": list(get_args(Simulated))}, "minItems": 1},
            ]
        }
    ),
]


Side = Annotated[Count, Field(ge=1, le=256)]
MOST_SEEDS = 2**63
"""Seeds are below."""
Seed = Annotated[Count, Field(ge=0, lt=MOST_SEEDS)]
Cycles = Annotated[Count, Field(ge=0, le=1000)]
FullCycles = Annotated[Count, Field(ge=1, le=1000)]
Positive = Annotated[Number, Field(gt=0.0)]
Place = Annotated[tuple[Annotated[Count, Field(ge=0)], ...], Field(min_length=2, max_length=3)]
"""Where a node stands: ``[x, y]``, or ``[x, y, k]`` for the k-th at a shared router; row 0 is on top."""


class TopologyTable(FileModel):
    """``[topology]``: routers on a grid."""

    kind: Literal["mesh", "torus", "concentrated_mesh"] = Field(default="mesh", description="How routers are joined")
    columns: Side = Field(description="Routers in a row")
    rows: Side = Field(description="Routers in a column")
    concentration: Annotated[Count, Field(ge=1, le=64)] = Field(
        default=1, description="Nodes at each router of a concentrated mesh"
    )


class FlowTable(FileModel):
    """One entry of ``traffic.flows``."""

    source: Place = Field(alias="from", description="Node that sends: [x, y], or [x, y, k] at a shared router")
    target: Place = Field(alias="to", description="Node that receives")
    rate: Positive = Field(description="In capacities of a link at full clock")


class TrafficTable(FileModel):
    """``[traffic]``: who sends how much to whom, one of pattern, task_graph, matrix and flows; and the loads."""

    pattern: Literal["uniform", "normal", "transpose", "tornado", "hot_spot", "bit_complement", "neighbour"] | None = (
        Field(default=None, description="A synthetic pattern")
    )
    share: Annotated[Number, Field(ge=0.0, le=1.0)] | None = Field(
        default=None, description="hot_spot: part of each node's traffic that goes to the hot spot; 0.6"
    )
    nodes: Annotated[tuple[Place, ...], Field(min_length=1)] | None = Field(
        default=None, description="hot_spot: its nodes; the middle of the grid if not given"
    )
    weights: Annotated[tuple[Positive, ...], Field(min_length=1)] | None = Field(
        default=None, description="hot_spot: how the share is divided among its nodes; evenly if not given"
    )
    permutations: Annotated[Count, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="normal: permutation matrices that are summed; as many as nodes"
    )
    seed: Seed | None = Field(default=None, description="normal: seed of the permutations; 1")
    to_itself: bool | None = Field(
        default=None, description="uniform: whether a node sends to itself as often as to any other"
    )
    along: Literal["columns", "both"] | None = Field(
        default=None, description="tornado, neighbour: which coordinates are shifted; columns"
    )
    task_graph: str | None = Field(default=None, description='A shipped task graph: "mpeg4", "vopd"')
    mapping: dict[str, Place] | None = Field(
        default=None, description="Where each task of the graph stands; its published mapping if not given"
    )
    matrix: str | None = Field(
        default=None, description="CSV file beside this one: row i, column j goes from node i to node j"
    )
    link_rate: BitRate | None = Field(
        default=None, description="matrix, task_graph: what a link carries at full clock, to make loads of their rates"
    )
    flows: Annotated[tuple[FlowTable, ...], Field(min_length=1)] | None = Field(
        default=None, description="Single flows"
    )
    load: Loads = Field(default=(1.0,), description="One normalised load, or several")
    normalised_by: Literal["compared", "xy", "none"] = Field(
        default="compared",
        description=(
            "What load 1 is: the link loaded most over all compared routings is full (Li 2012, eq. 6.7), the one "
            "loaded most under XY is (eq. 7.13), or the rates are as they are"
        ),
    )


class RoutingTable(FileModel):
    """``[routing]``: the routings to compare."""

    policies: Annotated[tuple[Policy, ...], Field(min_length=1)] = Field(
        default=("xy", "2p_es"), description="Routings to compare"
    )
    seed: Seed = Field(default=1, description="Of routings that draw paths or shares")


class PowerTable(FileModel):
    """``[power]``: voltage and clock, and what a router draws."""

    alpha_max: Number = Field(default=3.0, description="V_max / V_min, the largest expansion of a bit; from 1")
    table: str | None = Field(
        default=None,
        description=(
            "Power of a router by clock and load (Li 2012, eq. 7.14): a *.nocpower.toml or CSV beside this file, or "
            '"intel-48-core"'
        ),
    )
    clocks: Literal["any", "listed"] = Field(
        default="any", description="table: whether a plane runs at any clock or at those of the table"
    )
    asleep: Annotated[Number, Field(ge=0.0, le=1.0)] = Field(
        default=1.0, description="table: part of idle power that a plane without traffic draws; 1 is no sleep mode"
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
        default=("balance", "mini", "four_phase", "search"), description="How flows are put on planes"
    )
    routing: Literal["xy", "yx", "adaptive"] = Field(
        default="xy", description="Routing within each plane, but for search"
    )
    freedom: Literal["plane", "plane_order", "dimension_order", "minimal", "any"] = Field(
        default="minimal",
        description=(
            "search: what it chooses for a flow beside its plane: nothing (XY), nothing (XY and YX by plane), XY or "
            "YX, one of all shortest paths, or any path"
        ),
    )


class OptimumTable(FileModel):
    """``[optimum]``: the least power of any splitting over paths and planes."""

    paths: Literal["minimal", "any"] = Field(default="any", description="Paths that flows may take")
    gap: Annotated[Number, Field(gt=0.0, lt=1.0)] | None = Field(
        default=None, description="Proven distance to stop at; 1e-6 for one plane, 0.01 for more"
    )
    time_limit: Positive | None = Field(default=None, description="Seconds to stop after, with what is proven")


class SimulationTable(FileModel):
    """``[simulation]``: the routers, packets and runs of the flit-level simulation."""

    routing: SimulatedOnes = Field(
        default=("xy",), description="One routing or several; or turn models of adaptive hops"
    )
    allocation: AllocationName | None = Field(
        default=None, description="With [planes]: who puts flows on them; the first of its allocations"
    )
    queueing: Literal["virtual_channels", "virtual_output_queues"] = Field(
        default="virtual_channels", description="How arriving flits wait"
    )
    virtual_channels: Annotated[Count, Field(ge=1, le=64)] = Field(
        default=1, description="Virtual channels of a link; 1 is the plain wormhole router"
    )
    buffer_flits: Annotated[Count, Field(ge=1, le=65_536)] = Field(
        default=8, description="Flits that each virtual channel or virtual output queue holds"
    )
    allocator: Literal["round_robin", "islip", "greedy_weight"] = Field(
        default="islip", description="How inputs are matched with outputs"
    )
    iterations: Annotated[Count, Field(ge=1, le=64)] = Field(default=1, description="Rounds of iSLIP in a cycle")
    routing_cycles: Cycles = Field(default=0, description="Route computation; 0 is look-ahead routing")
    vc_allocation_cycles: Cycles = Field(default=1, description="Allocation of a virtual channel to a head flit")
    switch_allocation_cycles: FullCycles = Field(default=1, description="Switch allocation of every flit")
    traversal_cycles: Cycles = Field(default=1, description="Through the crossbar")
    credit_cycles: FullCycles = Field(default=1, description="A credit back to the router before")
    link_cycles: Cycles = Field(default=1, description="On the wire between routers")
    ejection_channels: Annotated[Count, Field(ge=1, le=60)] = Field(
        default=1, description="Flits that a router hands to a node in a cycle"
    )
    node_link_cycles: Cycles = Field(default=1, description="On the wire between a node and its router")
    packet_flits: Lengths = Field(
        default=(8,), description='Length of packets in flits: 8, "5-10" (each as likely), or [1, 5]'
    )
    injection: Literal["bernoulli", "on_off"] = Field(default="bernoulli", description="When packets are made")
    on_cycles: Positive | None = Field(default=None, description="on_off: mean cycles of a node's bursts")
    off_cycles: Positive | None = Field(default=None, description="on_off: mean cycles between them")
    clock: Literal["full", "scaled"] = Field(
        default="full",
        description="Full clock at every load, or the slowest that busy_ratio allows; planes are always scaled",
    )
    busy_ratio: Annotated[Number, Field(gt=0.0, le=1.0)] = Field(
        default=0.8,
        description=(
            "How busy the most loaded link may be at a scaled clock; at 1, Li's rule, latency is unbounded "
            "wherever alpha is not alpha_max"
        ),
    )
    loads: Loads | None = Field(default=None, description="Loads to simulate; those of [traffic] if not given")
    warmup_cycles: Annotated[Count, Field(ge=0, le=10**9)] = Field(default=10_000, description="Before anything counts")
    measure_cycles: Annotated[Count, Field(ge=100, le=10**9)] = Field(default=20_000, description="Whose packets count")
    drain_cycles: Annotated[Count, Field(ge=0, le=10**9)] = Field(
        default=100_000, description="At most so many more, until they have arrived"
    )
    replications: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=3, description="Runs with other random streams"
    )
    seed: Seed = Field(default=1, description="Of all random streams")


class NocFile(FileModel):
    """A file of a network on chip."""

    name: Annotated[str, Field(max_length=80)] = Field(
        default="", description="What it is called; the file's stem if not given"
    )
    source: str = Field(default="", description="Where its figures come from")
    topology: TopologyTable
    traffic: TrafficTable
    routing: RoutingTable = RoutingTable()
    power: PowerTable = PowerTable()
    planes: PlanesTable | None = Field(default=None, description="More networks than one; absent: one plane")
    optimum: OptimumTable = OptimumTable()
    simulation: SimulationTable | None = Field(default=None, description="absent: flow level only")
