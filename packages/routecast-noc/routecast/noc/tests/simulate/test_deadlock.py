"""Deadlock: refused routings get stuck, and accepted routings never do, at any load."""

from __future__ import annotations

import json

import numpy as np
import pytest

from routecast.errors import ModelProblem
from routecast.noc import _noc
from routecast.noc.patterns import uniform
from routecast.noc.routing.model import Path, Routes
from routecast.noc.routing.policies import routes
from routecast.noc.simulate import Packets, RouterDesign, SimulationPhases, simulate, single
from routecast.noc.simulate._simulator import scenario_texts
from routecast.noc.topology import Direction, Topology, TopologyKind, link_numbers
from routecast.noc.traffic import Traffic

RING = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
LONG = Packets(flits=(16,))
SMALL = RouterDesign(buffer_flits=2)
RUN = SimulationPhases(replications=2, warmup_cycles=500, measure_cycles=2_000, drain_cycles=5_000)
ENDURING = SimulationPhases(replications=1, warmup_cycles=0, measure_cycles=100_000)


def clockwise(classes: tuple[int, int, int, int]) -> Routes:
    """Return flows over two links each of the clockwise ring; flow k uses the given class on its second link."""
    number = link_numbers(RING)
    corners = (0, 1, 3, 2)
    ways = (Direction.EAST, Direction.SOUTH, Direction.WEST, Direction.NORTH)
    around = [number[corner, way] for corner, way in zip(corners, ways, strict=True)]
    return Routes(
        policy="clockwise",
        topology=RING,
        paths=tuple(
            Path(
                source=corners[k],
                target=corners[(k + 2) % 4],
                links=(around[k], around[(k + 1) % 4]),
                layers=(0, classes[k]),
                share=1.0,
            )
            for k in range(4)
        ),
    )


def opposite_corners(rate: float) -> Traffic:
    demand = np.zeros((4, 4))
    demand[[0, 1, 3, 2], [3, 2, 0, 1]] = rate
    return Traffic(name="opposite corners", demand=demand)


def test_the_refused_ring_deadlocks_when_it_is_simulated_anyway() -> None:
    stuck = clockwise((0, 0, 0, 0))
    # A low load: packets come at random instants, where full nodes would take turns.
    traffic = opposite_corners(0.1)
    refused = single(RING, traffic, stuck, design=SMALL, packets=LONG)
    with pytest.raises(ModelProblem, match="can deadlock"):
        simulate(refused, ENDURING)
    allowed = single(RING, traffic, routes("xy", RING), design=SMALL, packets=LONG)
    scenario = json.loads(scenario_texts(allowed, ENDURING)[0])
    scenario["routing"] = {
        "kind": "paths",
        "classes": 1,
        "paths": [
            {
                "source": path.source,
                "target": path.target,
                "links": path.links,
                "layers": path.layers,
                "share": path.share,
            }
            for path in stuck.paths
        ],
    }
    (answer,) = _noc.noc_simulate([json.dumps(scenario)])
    assert json.loads(answer)["deadlocked"]


def test_a_second_class_on_the_second_link_keeps_the_same_ring_moving() -> None:
    # All wait for class 1, and who holds it waits for a node.
    design = RouterDesign(virtual_channels=2, buffer_flits=2)
    traffic, routing = opposite_corners(0.1), clockwise((1, 1, 1, 1))
    answer = simulate(single(RING, traffic, routing, design=design, packets=LONG), ENDURING)
    assert not answer.is_saturated
    assert answer.accepted_flits_node_cycle.value == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("kind", [TopologyKind.MESH, TopologyKind.TORUS])
@pytest.mark.parametrize("policy", ["xy", "o1turn", "romm", "valiant"])
def test_policies_never_get_stuck_far_over_saturation(policy: str, kind: TopologyKind) -> None:
    topology = Topology(kind=kind, columns=4, rows=4)
    routing = routes(policy, topology)
    design = RouterDesign(virtual_channels=routing.layer_count, buffer_flits=2)
    of = single(topology, uniform(topology).scaled(0.9), routing, design=design, packets=LONG)
    answer = simulate(of, RUN)
    assert answer.is_saturated
    assert not any("waited for each other" in sign for sign in answer.overload)
    assert answer.accepted_flits_node_cycle.value > 0.05
