"""``noc simulate``: flit-level simulation compared with the flow level; ``noc compare``: all answers for a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from routecast.errors import FileProblem, Problem, RoutecastError
from routecast.noc.answer.optimum import OptimumAnswer, OptimumRow, optimum_answer
from routecast.noc.answer.power import SEARCH, PowerAnswer, PowerRow, allocate, document, power_answer
from routecast.noc.file import NocCase, SimulationTable, policy_name
from routecast.noc.planes.model import Allocation
from routecast.noc.routing.deadlock import channel_cycle, describe_cycle, layered
from routecast.noc.routing.model import Routes, hop_flow
from routecast.noc.routing.policies import POLICIES, routes
from routecast.noc.simulate._design import (
    AdaptiveRouting,
    Allocator,
    Bernoulli,
    Injection,
    OnOff,
    Packets,
    RouterDesign,
    SimulationPhases,
)
from routecast.noc.simulate._fabric import Fabric, allocated, single
from routecast.noc.simulate._result import Simulated
from routecast.noc.simulate._simulator import simulate_all
from routecast.noc.traffic import Traffic
from routecast.progress import Progress

__all__ = ["NocComparison", "SimulationAnswer", "SimulationRow", "compare", "fabrics_of", "simulation_answer"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NocComparison:
    """All answers for a file.

    ``power`` and ``optimum``: at the flow level; ``simulation``: of the routings that the file names and of
    :attr:`best`, flit by flit; None where the file has no ``[simulation]``.
    """

    power: PowerAnswer
    optimum: OptimumAnswer
    simulation: SimulationAnswer | None

    @property
    def case(self) -> NocCase:
        """The file's case."""
        return self.power.case

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of all parts."""
        flits = self.simulation.notes if self.simulation is not None else ()
        return (*self.optimum.notes, *flits)

    @property
    def highest(self) -> OptimumRow | None:
        """The optimum at the highest load that some routing carries."""
        return self.optimum.rows[-1] if self.optimum.rows else None

    @property
    def mapped_load(self) -> float:
        """The load that maps show: the highest load with an optimum, or else the highest of the file."""
        return self.highest.load if self.highest is not None else self.case.loads[-1]

    @property
    def best(self) -> PowerRow | None:
        """The recommended routing or allocation, whose power, distance to the optimum and latency are reported."""
        return self.power.recommended

    @property
    def is_best_simulated(self) -> bool:
        """Whether the recommended routing or allocation was simulated."""
        return self.best is not None and self.simulation is not None and self.best.key in self.simulation.keys

    def to_json(self) -> dict[str, Any]:
        """Return plain data, each part as its own command prints it."""
        return document(
            self.case,
            power=self.power.to_json()["rows"],
            optima=self.optimum.to_json()["optima"],
            simulation=None if self.simulation is None else self.simulation.to_json()["rows"],
            notes=self.notes,
        )


def compare(case: NocCase, *, on_progress: Progress | None = None) -> NocComparison:
    """Return the answers of all commands for a file.

    Raises
    ------
    RoutecastError
        A simulated routing can deadlock.
    """
    power = power_answer(case, on_progress=on_progress)
    optimum = optimum_answer(case, power=power, on_progress=on_progress, skips_overload=True)
    best = power.recommended
    further = best.key if best is not None else ""
    simulation = None if case.simulation is None else simulation_answer(case, further=further, on_progress=on_progress)
    return NocComparison(power=power, optimum=optimum, simulation=simulation)


# If the search fails at a load, it is repeated at this multiple of the load, down to a twentieth of it.
_LOAD_STEP, _MIN_LOAD_SHARE = 0.8, 1 / 20
_ROUNDING = 1e-9
_PROGRESS_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationRow:
    """A routing, or the allocation of a file with planes, at one load.

    ``key``: of the routing or the allocation; ``load``: normalised; ``flow_power``: power of the flow level at the same
    clocks.
    """

    key: str
    load: float
    simulated: Simulated
    flow_power: float

    @property
    def name(self) -> str:
        """Name in tables."""
        return policy_name(self.key)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Expansion factor of each plane."""
        return tuple(plane.alpha for plane in self.simulated.planes)

    @property
    def largest_link_load(self) -> float:
        """Largest share of its own cycles in which a link is busy, over all planes."""
        return max(float(plane.busy_ratios.max(initial=0.0)) for plane in self.simulated.planes)

    @property
    def of_flow_power_ratio(self) -> float | None:
        """The relative excess of the simulated power over that of the flow level; None if the fabric is saturated."""
        if self.simulated.is_saturated or not self.flow_power:
            return None
        return self.simulated.power.value / self.flow_power - 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationAnswer:
    """Every simulated routing at every load, by routing and then by load."""

    case: NocCase
    table: SimulationTable
    rows: tuple[SimulationRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def arrivals(self) -> str:
        """The arrivals of the packets, in words."""
        return _injection(self.table).text

    @property
    def keys(self) -> tuple[str, ...]:
        """Routings in their order."""
        return tuple(dict.fromkeys(row.key for row in self.rows))

    def of(self, key: str) -> tuple[SimulationRow, ...]:
        """Return the rows of a routing by rising load."""
        return tuple(row for row in self.rows if row.key == key)

    def saturated_from(self, key: str) -> float | None:
        """Return the lowest simulated load of a routing with unbounded latency; None if all are carried."""
        return min((row.load for row in self.of(key) if row.simulated.is_saturated), default=None)

    def carried(self, key: str) -> SimulationRow | None:
        """Return the highest load of a routing below its first saturated load; None if it carries none."""
        limit = self.saturated_from(key)
        return next((row for row in reversed(self.of(key)) if limit is None or row.load < limit), None)

    def to_json(self) -> dict[str, Any]:
        """Return plain data; times in cycles of the nodes."""
        names = self.case.topology.link_name
        links = len(self.rows[0].simulated.planes[0].link_loads) if self.rows else 0
        return document(
            self.case,
            simulation=self.table.model_dump(),
            arrivals=self.arrivals,
            rows=[
                {
                    **row.simulated.to_json(),
                    "name": row.key,
                    "load": row.load,
                    "alphas": row.alphas,
                    "largest_link_load": row.largest_link_load,
                    "flow_power": row.flow_power,
                }
                for row in self.rows
            ],
            saturated_from={key: self.saturated_from(key) for key in self.keys},
            links=[names(link) for link in range(links)],
            notes=self.notes,
        )


def simulation_answer(case: NocCase, *, further: str = "", on_progress: Progress | None = None) -> SimulationAnswer:
    """Simulate a file's fabric with each of its routings, or its allocation to planes, at each of its loads.

    Parameters
    ----------
    case : NocCase
    also : str
        A further routing or allocation; a note replaces it if the file's routers cannot run it.
    on_progress : callable, optional
        Is called with the number of finished steps, the number of all, and a description.

    Raises
    ------
    FileProblem
        The file has no ``[simulation]``.
    RoutecastError
        A routing can deadlock (the message names the cycle), or a turn model has a scaled clock.
    """
    report = on_progress or (lambda done, total, message: None)
    table = case.simulation
    if table is None:
        message = "is missing: give at least packet_flits and virtual_channels"
        raise FileProblem(case.subject, [Problem("simulation", message)])
    fabrics = fabrics_of(case, table)
    notes = []
    if further and further not in {key for key, _, _ in fabrics}:
        try:
            fabrics += _fabrics(further, case, table)
        except RoutecastError as problem:
            notes.append(f"{policy_name(further)} is not simulated: {problem}")
    message = f"fabrics: {len(fabrics)}, replications of each: {table.replications}"

    results = simulate_all(
        [fabric for _, _, fabric in fabrics],
        SimulationPhases(
            seed=table.seed,
            replications=table.replications,
            warmup_cycles=table.warmup_cycles,
            measure_cycles=table.measure_cycles,
            drain_cycles=table.drain_cycles,
        ),
        names=[load for _, load, _ in fabrics],
        on_progress=lambda share: report(round(_PROGRESS_STEPS * share), _PROGRESS_STEPS, message),
    )
    rows = tuple(
        SimulationRow(key=key, load=load, simulated=simulated, flow_power=_flow_power(case, fabric))
        for (key, load, fabric), simulated in zip(fabrics, results, strict=True)
    )
    notes += [
        f"{row.name} at load {row.load:g} is saturated, its latency is unbounded: " + "; ".join(row.simulated.overload)
        for row in rows
        if row.simulated.is_saturated
    ]
    return SimulationAnswer(case=case, table=table, rows=rows, notes=tuple(notes))


def fabrics_of(case: NocCase, table: SimulationTable) -> tuple[tuple[str, float, Fabric], ...]:
    """Return the simulated fabrics, each with the name of its routing or allocation and its load."""
    if case.planes is not None and case.has_planes:
        return _fabrics(table.allocation or case.planes.allocations[0], case, table)
    return tuple(row for policy in table.routing for row in _fabrics(policy, case, table))


def _fabrics(name: str, case: NocCase, table: SimulationTable) -> tuple[tuple[str, float, Fabric], ...]:
    """Return the fabrics of a routing, or of an allocation where there are planes, at every simulated load."""
    loads = tuple(sorted(set(table.loads))) if table.loads is not None else case.loads
    packets, injection = Packets(flits=table.packet_flits), _injection(table)
    fabrics: list[tuple[str, float, Fabric]] = []
    if case.has_planes and name not in {routing.policy for routing in case.routings}:
        for load in loads:
            allocation, allocated_load = _feasible_allocation(name, case, load)
            allocation = _deadlock_free_planes(allocation, case, table)
            # An allocation over capacity runs at full clock, and saturates.
            worst = max(float(plane.link_loads.max(initial=0.0)) for plane in allocation.planes)
            excess = load / allocated_load if allocated_load < load else worst
            is_carried = excess <= 1 + _ROUNDING
            fabric = allocated(
                case.topology,
                case.traffic.scaled(load if is_carried else load / excess),
                allocation if is_carried or allocated_load < load else _with_less_demand(allocation, 1 / worst),
                design=_design(table),
                packets=packets,
                injection=injection,
                busy_ratio=table.busy_ratio,
            )
            fabrics.append((name, load, fabric if is_carried else _at_full_clock(fabric.scaled(excess))))
        return tuple(fabrics)
    routing = _deadlock_free(_routing(name, case), case, table)
    for load in loads:
        fabric = single(
            case.topology,
            case.traffic.scaled(load),
            routing,
            design=_design(table),
            packets=packets,
            injection=injection,
        )
        if (table.clock == "scaled" or case.has_planes) and _is_carried(case, fabric, name):
            fabric = fabric.slowed(case.scaling, busy_ratio=table.busy_ratio)
        fabrics.append((name, load, fabric))
    return tuple(fabrics)


def _feasible_allocation(name: str, case: NocCase, load: float) -> tuple[Allocation, float]:
    """Return an allocation and its load, which is below ``load`` if the search finds none that carries ``load``."""
    allocated_load = load
    while True:
        try:
            return allocate(name, case, case.demand(allocated_load)), allocated_load
        except RoutecastError:
            if name != SEARCH or allocated_load < load * _MIN_LOAD_SHARE:
                raise
            allocated_load *= _LOAD_STEP


def _routing(policy: str, case: NocCase) -> Routes | AdaptiveRouting:
    compared = {routing.policy: routing for routing in case.routings}
    if policy in compared:
        return compared[policy]
    if policy in POLICIES:
        return routes(policy, case.topology, demand=case.demand(1.0), seed=case.seed)
    return AdaptiveRouting.turn_model(policy, case.topology)


def _is_carried(case: NocCase, fabric: Fabric, policy: str) -> bool:
    """Return whether the links carry the traffic at full clock; if not, it is simulated there and saturates.

    Raises FileProblem: the routing is a turn model, whose link loads are unknown.
    """
    bottleneck = fabric.planes[0].bottleneck(fabric.topology)
    if math.isnan(bottleneck):
        message = f'{policy_name(policy)} chooses links hop by hop, so that its slowest clock is unknown: take "full"'
        raise FileProblem(case.subject, [Problem("simulation.clock", message)])
    return bottleneck <= 1 + _ROUNDING


def _deadlock_free_planes(allocation: Allocation, case: NocCase, table: SimulationTable) -> Allocation:
    """Return the allocation with virtual-channel classes on each plane that make its paths free of deadlock."""
    planes = []
    for plane in allocation.planes:
        routing = _deadlock_free(plane.routes, case, table)
        assert isinstance(routing, Routes)  # planes have paths
        planes.append(replace(plane, routes=routing))
    return replace(allocation, planes=tuple(planes))


def _with_less_demand(allocation: Allocation, factor: float) -> Allocation:
    planes = tuple(replace(plane, demand=plane.demand * factor) for plane in allocation.planes)
    return replace(allocation, planes=planes)


def _at_full_clock(fabric: Fabric) -> Fabric:
    return replace(fabric, planes=tuple(replace(plane, alpha=1.0) for plane in fabric.planes))


def _deadlock_free(
    routing: Routes | AdaptiveRouting, case: NocCase, table: SimulationTable
) -> Routes | AdaptiveRouting:
    """Return the routing in at most as many classes as there are virtual channels.

    Raises FileProblem: the packets can wait for each other in a cycle, which the message names.
    """
    if isinstance(routing, AdaptiveRouting):
        return routing
    channels = table.virtual_channels if table.queueing == "virtual_channels" else 1
    is_free = channel_cycle(routing) is None
    if is_free and routing.layer_count <= channels:
        return routing
    one_class = replace(routing, paths=tuple(replace(path, layers=(0,) * len(path.links)) for path in routing.paths))
    cycle = channel_cycle(one_class)
    if cycle is None:
        return one_class
    with_classes = layered(routing)
    if with_classes.layer_count <= channels:
        return with_classes
    needed = min(with_classes.layer_count, routing.layer_count) if is_free else with_classes.layer_count
    has_channels = table.queueing == "virtual_channels"
    key = "simulation.virtual_channels" if has_channels else "simulation.queueing"
    change = "" if has_channels else ' (queueing = "virtual_channels")'
    message = (
        f"{policy_name(routing.policy)} can deadlock: packets can wait for each other in the cycle "
        f"{describe_cycle(case.topology, cycle)}; give routers {needed} virtual channels{change}, one for each "
        "class of its paths, or take another routing"
    )
    raise FileProblem(case.subject, [Problem(key, message)])


def _flow_power(case: NocCase, fabric: Fabric) -> float:
    """Return rate times hops over alpha squared at the simulated clocks (eq. 6.2)."""
    power = []
    for plane in fabric.planes:
        # Turn models take shortest paths, as XY does.
        paths = case.xy if isinstance(plane.routing, AdaptiveRouting) else plane.routing
        demand = Traffic(name="", demand=plane.demand).between_routers(case.topology)
        power.append(hop_flow(paths, demand) / plane.alpha**2)
    return math.fsum(power)


_DESIGN_FIELDS = {field.name for field in fields(RouterDesign)} - {"virtual_channels", "allocator"}


def _design(table: SimulationTable) -> RouterDesign:
    return RouterDesign(
        virtual_channels=None if table.queueing == "virtual_output_queues" else table.virtual_channels,
        allocator=Allocator(table.allocator),
        **table.model_dump(include=_DESIGN_FIELDS),
    )


def _injection(table: SimulationTable) -> Injection:
    if table.injection == "on_off" and table.on_cycles is not None and table.off_cycles is not None:
        return OnOff(on_cycles=table.on_cycles, off_cycles=table.off_cycles)
    return Bernoulli()
