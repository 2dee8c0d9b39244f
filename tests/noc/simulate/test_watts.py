"""Power of simulated fabrics by a table of router power, against eq. 7.14 with loads of the flow level."""

from __future__ import annotations

import pytest

from routecast.errors import RoutecastError
from routecast.noc.planes.model import Plane
from routecast.noc.power.router_table import RouterPoint, RouterTable
from routecast.noc.power.scaling import Scaling
from routecast.noc.power.table_power import router_loads
from routecast.noc.routing.policies import routes
from routecast.noc.simulate import Packets, RouterDesign, SimulationPhases, simulate, simulated_power, single
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic.model import normalised
from routecast.noc.traffic.patterns import uniform

TABLE = RouterTable(
    name="made up",
    points=(
        RouterPoint(frequency_hz=0.5e9, idle_w=0.1, full_w=0.3),
        RouterPoint(frequency_hz=2.0e9, idle_w=0.6, full_w=2.0),
    ),
)
TOPOLOGY = Topology(kind=TopologyKind.MESH, columns=4, rows=4)
RUN = SimulationPhases(replications=4, warmup_cycles=1_000, measure_cycles=10_000)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_table_power_of_a_simulation_is_that_of_the_loads_of_the_flow_level(alpha: float) -> None:
    routing = routes("xy", TOPOLOGY)
    traffic = normalised(uniform(TOPOLOGY), [routing], 0.4)
    of = single(
        TOPOLOGY, traffic, routing, design=RouterDesign(virtual_channels=4), packets=Packets(flits=(4,)), alpha=alpha
    )
    (answer,) = simulated_power(TABLE, simulate(of, RUN))
    plane = Plane(demand=traffic.between_routers(TOPOLOGY), routes=routing, scaling=Scaling(alpha_max=4.0))
    expected = [
        TABLE.power_w(load * alpha, TABLE.fastest_hz / alpha) for load in router_loads(plane, TABLE.ports).tolist()
    ]
    assert answer.frequency_hz == pytest.approx(TABLE.fastest_hz / alpha)
    assert answer.power_w == pytest.approx(sum(expected), rel=0.02)


def test_a_clock_below_the_table_is_refused() -> None:
    of = single(
        TOPOLOGY,
        uniform(TOPOLOGY).scaled(0.05),
        routes("xy", TOPOLOGY),
        design=RouterDesign(),
        packets=Packets(flits=(4,)),
        alpha=5.0,
    )
    with pytest.raises(RoutecastError, match=r"0\.4 GHz is asked"):
        simulated_power(TABLE, simulate(of, SimulationPhases(replications=1, warmup_cycles=0, measure_cycles=500)))
