"""Routings by a rule at the flit level, and grids whose tables would have millions of entries."""

from __future__ import annotations

import json

import numpy as np
import pytest

from routecast.noc import _noc
from routecast.noc.patterns import hot_spot, transpose
from routecast.noc.routing.model import link_loads
from routecast.noc.routing.policies import routes
from routecast.noc.simulate import Packets, RouterDesign, SimulationPhases, scenario_texts, simulate, single
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import Traffic

FOUR = Packets(flits=(4,))


def mesh(side: int) -> Topology:
    return Topology(kind=TopologyKind.MESH, columns=side, rows=side)


@pytest.mark.parametrize("policy", ["romm", "valiant", "o1turn"])
def test_links_carry_at_the_flit_level_what_the_flow_level_shares_out(policy: str) -> None:
    topology = mesh(5)
    traffic = Traffic(name="both", demand=0.04 * (transpose(topology).demand + 0.5 * hot_spot(topology).demand))
    of = single(topology, traffic, routes(policy, topology), design=RouterDesign(virtual_channels=4), packets=FOUR)
    result = simulate(of, SimulationPhases(seed=3, replications=2, measure_cycles=150_000))
    expected = link_loads(routes(policy, topology), traffic.between_routers(topology))
    assert not result.is_saturated
    # About 6000 flits of 4 in a packet come over a link of load 0.04: 2.6 % is a standard deviation there.
    assert result.planes[0].link_loads == pytest.approx(expected, rel=0.1, abs=0.002)
    assert result.planes[0].link_loads.sum() == pytest.approx(expected.sum(), rel=0.01)


@pytest.mark.slow
def test_flows_between_neighbours_take_as_long_on_64_x_64_as_on_8_x_8() -> None:
    ends = [((1, 2), (6, 5)), ((7, 0), (3, 3)), ((0, 7), (0, 1))]
    latencies = []
    for side in (8, 64):
        topology = mesh(side)
        demand = np.zeros((side * side, side * side))
        for (sx, sy), (tx, ty) in ends:
            demand[topology.router_at(sx, sy), topology.router_at(tx, ty)] = 0.02
        traffic = Traffic(name="three flows", demand=demand)
        of = single(topology, traffic, routes("xy", topology), design=RouterDesign.booksim(), packets=FOUR)
        run = SimulationPhases(replications=1, warmup_cycles=0, measure_cycles=50_000)
        (answer,) = _noc.noc_simulate(scenario_texts(of, run))
        outcome = json.loads(answer)
        assert outcome["undelivered_flits"] == 0
        latencies.append(outcome["packet_latency"])
    assert latencies[0]["p50"] == latencies[1]["p50"]
    assert latencies[0]["mean"] == pytest.approx(latencies[1]["mean"], rel=0.03)
