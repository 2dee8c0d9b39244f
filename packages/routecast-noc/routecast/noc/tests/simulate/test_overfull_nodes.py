"""Nodes whose demand exceeds one packet per cycle: they are simulated at their limit and reported as overload."""

from __future__ import annotations

import pytest

from routecast.noc.patterns import neighbour
from routecast.noc.routing.policies import routes
from routecast.noc.simulate import Bernoulli, OnOff, Packets, RouterDesign, SimulationPhases, simulate, single
from routecast.noc.topology import Topology, TopologyKind

MESH = Topology(kind=TopologyKind.MESH, columns=3, rows=3)
RUN = SimulationPhases(replications=2, warmup_cycles=200, measure_cycles=1000, drain_cycles=0)


@pytest.mark.parametrize(
    ("load", "injection", "most"),
    [(1.3, Bernoulli(), "1.3"), (0.5, OnOff(on_cycles=10, off_cycles=30), "2")],
    ids=["bernoulli", "bursts"],
)
def test_more_packets_than_a_node_can_create_are_an_overload(
    load: float, injection: Bernoulli | OnOff, most: str
) -> None:
    fabric = single(
        MESH,
        neighbour(MESH).scaled(load),
        routes("xy", MESH),
        design=RouterDesign(),
        packets=Packets(flits=(1,)),
        injection=injection,
    )
    result = simulate(fabric, RUN)
    assert result.packet_latency_cycles is None
    assert any(f"create {most} packets in a cycle" in sign for plane in result.planes for sign in plane.overload)
    # Nobody makes more than one flit in a cycle in which it is on.
    assert result.offered_flits_node_cycle.value <= injection.on_share * 1.1
