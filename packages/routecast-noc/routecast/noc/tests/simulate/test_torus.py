"""Throughput of tori with balanced datelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from routecast.noc.patterns import uniform
from routecast.noc.routing.policies import routes
from routecast.noc.simulate import Packets, RouterDesign, SimulationPhases, single, sweep
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import Traffic

TORUS = Topology(kind=TopologyKind.TORUS, columns=8, rows=8)


def tornado() -> Traffic:
    """Return traffic to the router 3 columns and 3 rows on, the farthest that all go forward to."""
    demand = np.zeros((64, 64))
    for source in range(64):
        x, y = TORUS.position(source)
        demand[source, TORUS.router_at((x + 3) % 8, (y + 3) % 8)] = 1.0
    return Traffic(name="tornado", demand=demand)


# BookSim 2 (commit 28f4329, dim_order_torus, packets of 8 flits, the rest as in RouterDesign.booksim) accepts 0.202 and
# 0.086 flits per node and cycle. With all packets in class 0 up to the dateline it is 0.162 and 0.032 here.
@pytest.mark.parametrize(
    ("traffic", "channels", "buffer", "offered", "least"),
    [(uniform(TORUS, to_itself=True), 2, 4, 0.42, 0.185), (tornado(), 4, 8, 0.48, 0.075)],
)
def test_torus_accepts_nearly_what_booksim_does(
    traffic: Traffic, channels: int, buffer: int, offered: float, least: float
) -> None:
    design = replace(RouterDesign.booksim(channels), buffer_flits=buffer, link_cycles=2)
    fabric = single(TORUS, traffic, routes("xy", TORUS), design=design, packets=Packets(flits=(8,)))
    run = SimulationPhases(replications=2, warmup_cycles=3_000, measure_cycles=6_000, drain_cycles=0)
    accepted = sweep(fabric, [offered], run)[0].accepted_flits_node_cycle.value
    assert accepted > least
