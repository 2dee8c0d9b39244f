"""From topology, traffic and routing to what the compiled simulator reads."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from routecast.errors import ModelProblem
from routecast.noc.patterns import hot_spot, uniform
from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.routing.model import Path, Routes
from routecast.noc.routing.policies import routes
from routecast.noc.scaling import Scaling
from routecast.noc.simulate import (
    AdaptiveRouting,
    Fabric,
    Packets,
    RouterDesign,
    SimulatedPlane,
    SimulationPhases,
    allocated,
    scenario_texts,
    single,
)
from routecast.noc.topology import Direction, Topology, TopologyKind, link_numbers, links
from routecast.noc.traffic import Traffic

EIGHT = Packets(flits=(8,))


def mesh(columns: int, rows: int) -> Topology:
    return Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)


def fabric(topology: Topology, policy: str = "xy", *, rate: float = 0.1, channels: int = 4) -> Fabric:
    return single(
        topology,
        uniform(topology).scaled(rate),
        routes(policy, topology),
        design=RouterDesign(virtual_channels=channels),
        packets=EIGHT,
    )


def scenarios(of: Fabric, run: SimulationPhases | None = None) -> list[dict[str, Any]]:
    return [json.loads(text) for text in scenario_texts(of, run or SimulationPhases(replications=1))]


def dense(scenario: dict[str, Any]) -> NDArray[np.float64]:
    """Return what a scenario says that nodes send, between all of them."""
    rows = scenario["load"]["demand"]
    demand = np.zeros((len(rows), len(rows)))
    for source, row in enumerate(rows):
        for first, count, rate in row:
            demand[source, first : first + count] += rate
    return demand


def listed(routing: Routes) -> Routes:
    """Return the same paths as a list."""
    return replace(routing, paths=tuple(routing.paths))


def test_links_and_nodes_are_those_of_the_topology() -> None:
    topology = Topology(kind=TopologyKind.CONCENTRATED_MESH, columns=3, rows=2, concentration=2)
    network = scenarios(fabric(topology))[0]["network"]
    assert network["routers"] == 6
    assert network["nodes"] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [(link["from"], link["to"]) for link in network["links"]] == [
        (link.source, link.target) for link in links(topology)
    ]


@pytest.mark.parametrize("policy", ["xy", "yx"])
def test_a_table_leads_every_packet_along_the_path_of_its_flow(policy: str) -> None:
    topology = mesh(4, 3)
    plane = replace(fabric(topology).planes[0], routing=listed(routes(policy, topology)))
    routing = scenarios(replace(fabric(topology), planes=(plane,)))[0]["routing"]
    assert routing["kind"] == "table"
    for path in routes(policy, topology).paths:
        here, taken = path.source, []
        while here != path.target:
            taken.append(routing["links"][here][path.target])
            here = links(topology)[taken[-1]].target
        assert tuple(taken) == path.links


def test_demand_stretches_give_back_any_rates() -> None:
    topology = mesh(5, 3)
    draw = np.random.default_rng(3)
    demand = draw.choice([0.0, 0.01, 0.02], size=(15, 15)) * (draw.random((15, 1)) < 0.8)
    traffic = Traffic(name="drawn", demand=demand)
    of = single(topology, traffic, routes("xy", topology), design=RouterDesign(), packets=EIGHT)
    assert dense(scenarios(of)[0]) == pytest.approx(demand)


def test_a_scenario_of_uniform_traffic_grows_with_the_nodes_and_not_with_their_pairs() -> None:
    few, many = (len(scenario_texts(fabric(mesh(side, side)), SimulationPhases(replications=1))[0]) for side in (8, 16))
    assert many < 5 * few


def test_flows_of_several_paths_go_as_paths_with_their_shares() -> None:
    topology = mesh(3, 3)
    plane = replace(fabric(topology).planes[0], routing=listed(routes("o1turn", topology)))
    routing = scenarios(replace(fabric(topology), planes=(plane,)))[0]["routing"]
    assert routing["kind"] == "paths"
    assert routing["classes"] == 2
    shares: dict[tuple[int, int], float] = {}
    for path in routing["paths"]:
        ends = (path["source"], path["target"])
        shares[ends] = shares.get(ends, 0.0) + path["share"]
        met = [links(topology)[number] for number in path["links"]]
        assert met[0].source == ends[0]
        assert met[-1].target == ends[1]
        assert all(before.target == after.source for before, after in pairwise(met))
    assert len(shares) == 72
    assert all(share == pytest.approx(1.0) for share in shares.values())


def test_one_path_a_pair_that_depends_on_the_source_goes_as_paths() -> None:
    # Router 2 sends packets for 3 that come from 0 to the east, and its own back over 0: no table says that.
    topology = mesh(2, 2)
    number = link_numbers(topology)
    xy = {(path.source, path.target): path for path in routes("xy", topology).paths}
    detour = (number[2, Direction.NORTH], number[0, Direction.EAST], number[1, Direction.SOUTH])
    xy[0, 3] = Path(
        source=0, target=3, links=(number[0, Direction.SOUTH], number[2, Direction.EAST]), layers=(0, 0), share=1.0
    )
    xy[2, 3] = Path(source=2, target=3, links=detour, layers=(1, 1, 1), share=1.0)
    mixed = Routes(policy="mixed", topology=topology, paths=tuple(xy.values()))
    of = single(topology, uniform(topology), mixed, design=RouterDesign(virtual_channels=2), packets=EIGHT)
    assert scenarios(of)[0]["routing"]["kind"] == "paths"


def test_replications_and_planes_have_streams_of_their_own() -> None:
    topology = mesh(2, 2)
    item = fabric(topology)
    two = Fabric(topology=topology, planes=item.planes * 2, design=item.design, packets=EIGHT)
    runs = [scenario["run"] for scenario in scenarios(two, SimulationPhases(seed=7, replications=3))]
    assert len({run["replication"] for run in runs}) == 6
    assert {run["seed"] for run in runs} == {7}


def ring(turns: int = 4) -> Routes:
    """Return flows that each take two links of the clockwise ring of a 2 x 2 mesh: it deadlocks with one class."""
    topology = mesh(2, 2)
    number = link_numbers(topology)
    around = [
        number[0, Direction.EAST],
        number[1, Direction.SOUTH],
        number[3, Direction.WEST],
        number[2, Direction.NORTH],
    ]
    corners = [0, 1, 3, 2]
    paths = tuple(
        Path(
            source=corners[k],
            target=corners[(k + 2) % 4],
            links=(around[k], around[(k + 1) % 4]),
            layers=(0, 0),
            share=1.0,
        )
        for k in range(turns)
    )
    return Routes(policy="clockwise", topology=topology, paths=paths)


def diagonal(routing: Routes) -> Traffic:
    demand = np.zeros((4, 4))
    for path in routing.paths:
        demand[path.source, path.target] = 0.1
    return Traffic(name="diagonal", demand=demand)


def test_a_routing_that_can_deadlock_is_refused_with_its_cycle() -> None:
    routing = ring()
    of = single(routing.topology, diagonal(routing), routing, design=RouterDesign(), packets=EIGHT)
    with pytest.raises(ModelProblem, match=r'"clockwise" can deadlock.*\(0, 0\)->\(1, 0\)') as problem:
        scenario_texts(of, SimulationPhases())
    for step in ("(1, 0)->(1, 1)", "(1, 1)->(0, 1)", "(0, 1)->(0, 0)"):
        assert step in str(problem.value)


def test_three_quarters_of_the_same_ring_cannot_deadlock() -> None:
    routing = ring(turns=3)
    of = single(routing.topology, diagonal(routing), routing, design=RouterDesign(), packets=EIGHT)
    assert scenarios(of)[0]["routing"]["kind"] == "paths"


def test_more_classes_than_virtual_channels_are_refused() -> None:
    with pytest.raises(ModelProblem, match="at least 2 virtual channels"):
        scenario_texts(fabric(mesh(3, 3), "o1turn", channels=1), SimulationPhases())


def test_virtual_output_queues_have_a_queue_for_each_class() -> None:
    topology = mesh(3, 3)
    of = single(
        topology,
        uniform(topology).scaled(0.1),
        routes("o1turn", topology),
        design=RouterDesign(virtual_channels=None),
        packets=EIGHT,
    )
    assert scenarios(of)[0]["routing"] == {"kind": "grid", "columns": 3, "way": "either"}


def test_channels_to_a_node_share_what_it_is_sent() -> None:
    topology = mesh(3, 3)
    traffic = hot_spot(topology).scaled(0.05)
    design = RouterDesign(virtual_channels=2, ejection_channels=3)
    of = single(topology, traffic, routes("xy", topology), design=design, packets=EIGHT)
    scenario = scenarios(of)[0]
    demand = dense(scenario)
    assert scenario["network"]["nodes"] == [*range(9)] * 3
    assert demand.sum(axis=1) == pytest.approx([*traffic.demand.sum(axis=1), *(0.0,) * 18])
    for channel in range(3):
        assert 3 * demand[:9, 9 * channel : 9 * channel + 9] == pytest.approx(traffic.demand)


def test_routers_of_more_queues_than_the_simulator_holds_are_refused() -> None:
    # 4 links and 1 node with 13 virtual channels each are 65 queues, one more than a word has bits.
    with pytest.raises(ModelProblem, match="65 queues; at most 64"):
        scenario_texts(fabric(mesh(3, 3), channels=13), SimulationPhases())


def test_a_flow_without_a_path_is_refused() -> None:
    routing = ring(turns=3)
    traffic = uniform(routing.topology).scaled(0.1)
    of = single(routing.topology, traffic, routing, design=RouterDesign(), packets=EIGHT)
    with pytest.raises(ModelProblem, match="no path leads from"):
        scenario_texts(of, SimulationPhases())


def test_sizes_that_do_not_fit_and_clocks_above_the_nodes_are_refused() -> None:
    topology = mesh(3, 3)
    with pytest.raises(ModelProblem, match=r"(?s)shape \(4, 4\).*alpha.*0\.5"):
        Fabric(
            topology=topology,
            planes=(SimulatedPlane(demand=np.zeros((4, 4)), routing=routes("xy", topology), alpha=0.5),),
            design=RouterDesign(),
            packets=EIGHT,
        )
    with pytest.raises(ModelProblem, match="another topology"):
        single(topology, uniform(topology), routes("xy", mesh(4, 4)), design=RouterDesign(), packets=EIGHT)
    with pytest.raises(ModelProblem, match="negative"):
        single(topology, uniform(topology).scaled(-1), routes("xy", topology), design=RouterDesign(), packets=EIGHT)


def test_planes_carry_together_what_the_nodes_send_and_wide_ones_in_fewer_flits() -> None:
    topology = mesh(3, 3)
    traffic = hot_spot(topology).scaled(0.05)
    whole = traffic.between_routers(topology)
    first = np.where(np.arange(81).reshape(9, 9) % 2 == 0, whole, 0.0)
    scaling = Scaling(alpha_max=3.0)
    allocation = Allocation(
        policy="by hand",
        planes=tuple(
            Plane(demand=demand, routes=routes("xy", topology), scaling=scaling, width=width)
            for demand, width in ((first, 1.0), (whole - first, 2.0))
        ),
    )
    of = allocated(topology, traffic, allocation, design=RouterDesign(), packets=EIGHT)
    narrow, wide = (dense(scenario) for scenario in scenarios(of))
    assert narrow + 2 * wide == pytest.approx(traffic.demand)
    for plane, simulated in zip(allocation.planes, of.planes, strict=True):
        assert simulated.alpha == pytest.approx(plane.alpha)
        assert simulated.bottleneck(topology) == pytest.approx(plane.link_loads.max())


def test_an_allocation_of_other_traffic_is_refused() -> None:
    topology = mesh(3, 3)
    plane = Plane(
        demand=uniform(topology).between_routers(topology) * 0.1,
        routes=routes("xy", topology),
        scaling=Scaling(alpha_max=3.0),
    )
    with pytest.raises(ModelProblem, match="allocate this traffic"):
        allocated(
            topology,
            uniform(topology).scaled(0.2),
            Allocation(policy="by hand", planes=(plane,)),
            design=RouterDesign(),
            packets=EIGHT,
        )


def minimal_choices(topology: Topology, *, may_turn_to_x: bool) -> list[list[list[int]]]:
    """Return what minimal adaptive routing may choose; without turns from y to x it is x first."""
    number = link_numbers(topology)
    arrivals = [(link.target, link.direction) for link in links(topology)]
    arrivals += [(router, None) for router in range(topology.router_count)]
    choices = []
    for router, came in arrivals:
        row = []
        for target in range(topology.router_count):
            ways = topology.productive(router, target)
            if not may_turn_to_x and any(way.is_horizontal for way in ways):
                ways = tuple(way for way in ways if way.is_horizontal)
                ways = () if came is not None and not came.is_horizontal else ways
            row.append([number[router, way] for way in ways])
        choices.append(row)
    return choices


def test_fully_adaptive_routing_is_refused_and_without_the_turns_to_x_it_is_not() -> None:
    topology = mesh(3, 3)
    free = AdaptiveRouting(
        policy="fully adaptive", topology=topology, choices=minimal_choices(topology, may_turn_to_x=True)
    )
    of = single(topology, uniform(topology), free, design=RouterDesign(), packets=EIGHT)
    with pytest.raises(ModelProblem, match=r'"fully adaptive" can deadlock'):
        scenario_texts(of, SimulationPhases())
    ordered = AdaptiveRouting(
        policy="x first", topology=topology, choices=minimal_choices(topology, may_turn_to_x=False)
    )
    of = single(topology, uniform(topology).scaled(0.1), ordered, design=RouterDesign(), packets=EIGHT)
    assert scenarios(of)[0]["routing"]["kind"] == "adaptive"
