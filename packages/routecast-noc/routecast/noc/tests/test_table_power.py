"""Power of planes by a table: sums over routers on paths written by hand, sleeping planes, Li's crossing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.router_table import (
    Clocks,
    RouterPoint,
    RouterTable,
    allocation_power,
    plane_power,
    router_loads,
    router_table,
)
from routecast.noc.routing.model import Path, Routes
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Direction, Topology, TopologyKind, link_numbers

GHZ = 1e9
ROW = Topology(kind=TopologyKind.MESH, columns=3, rows=1)
NUMBERS = link_numbers(ROW)
TO_1, TO_2 = NUMBERS[0, Direction.EAST], NUMBERS[1, Direction.EAST]
ROUTES = Routes(
    policy="xy",
    topology=ROW,
    paths=(
        Path(source=0, target=2, links=(TO_1, TO_2), layers=(0, 0), share=1.0),
        Path(source=1, target=2, links=(TO_2,), layers=(0,), share=1.0),
    ),
)

# Round figures made for these tests; no router's.
MADE_UP = RouterTable(
    name="made up",
    points=(
        RouterPoint(frequency_hz=1 * GHZ, idle_w=0.3, full_w=0.5),
        RouterPoint(frequency_hz=2 * GHZ, idle_w=0.6, full_w=1.8),
        RouterPoint(frequency_hz=4 * GHZ, idle_w=1.4, full_w=8.0),
    ),
)


def plane(far: float, near: float, *, width: float = 1.0) -> Plane:
    demand = np.zeros((3, 3))
    demand[0, 2], demand[1, 2] = far, near
    return Plane(demand=demand, routes=ROUTES, scaling=Scaling(alpha_max=4), width=width)


rates = st.floats(min_value=0.01, max_value=0.5)


@given(far=rates, near=rates)
def test_ports_receive_what_is_sent_plus_one_for_every_hop(far: float, near: float) -> None:
    loads = router_loads(plane(far, near), ports=5)
    # Router 0 is sent `far` by its node; 1 gets `far` and is sent `near`; 2 gets both.
    np.testing.assert_allclose(loads * 5, [far, far + near, far + near])


def test_the_power_of_a_plane_is_the_sum_of_eq_7_14_over_its_routers() -> None:
    power = plane_power(MADE_UP, plane(0.25, 0.25))
    # The bottleneck is 0.5 of 4 GHz, so the plane runs at 2 GHz and every cycle has twice the flits of full clock.
    assert power.frequency_hz == pytest.approx(2 * GHZ)
    np.testing.assert_allclose(power.router_loads, np.array([0.5, 1.0, 1.0]) / 5)
    assert power.power_w == pytest.approx(3 * 0.6 + (0.5 + 1.0 + 1.0) / 5 * (1.8 - 0.6))


def test_listed_clocks_cost_no_less_than_any() -> None:
    load = plane(0.3, 0.3)
    free, listed = (plane_power(MADE_UP, load, clocks=clocks) for clocks in (Clocks.ANY, Clocks.LISTED))
    assert listed.frequency_hz == 4 * GHZ
    assert free.frequency_hz == pytest.approx(2.4 * GHZ)
    assert free.power_w < listed.power_w


def test_a_plane_that_carries_nothing_sleeps_at_what_stays_on() -> None:
    for ratio in (0.0, 0.1, 1.0):
        power = plane_power(MADE_UP, plane(0, 0), asleep_ratio=ratio)
        assert power.is_asleep
        assert power.power_w == pytest.approx(3 * ratio * 0.3)


def test_a_second_plane_costs_at_low_load_and_pays_at_high_load() -> None:
    """What Li (2012) says of fig. 7.10: idle routers make two planes dearer where there is little to carry."""

    def one_and_two(scale: float) -> tuple[float, float]:
        whole = Allocation(policy="one", planes=(plane(0.4 * scale, 0.6 * scale),))
        halves = Allocation(policy="two", planes=(plane(0.4 * scale, 0), plane(0, 0.6 * scale)))
        entry, two = (
            sum(power.power_w for power in allocation_power(MADE_UP, allocation)) for allocation in (whole, halves)
        )
        return entry, two

    item, two = one_and_two(0.1)
    assert two > item
    item, two = one_and_two(1.0)
    assert two < item


def test_sleep_makes_an_empty_second_plane_cheaper_by_its_idle_power() -> None:
    allocation = Allocation(policy="all on one", planes=(plane(0.4, 0.6), plane(0, 0)))
    awake, asleep = (
        sum(power.power_w for power in allocation_power(MADE_UP, allocation, asleep_ratio=ratio))
        for ratio in (1.0, 0.0)
    )
    assert awake - asleep == pytest.approx(3 * 0.3)


def test_a_table_without_idle_power_gives_bounds_and_a_caption() -> None:
    power = plane_power(router_table("intel-48-core"), plane(0.5, 0.5))
    # Three routers at 2.35 GHz, 1.157 W full: loads of 0.1, 0.2 and 0.2 flits per port and cycle.
    assert power.least_w == pytest.approx(1.157 * 0.5)
    assert power.greatest_w == pytest.approx(1.157 * 3)
    with pytest.raises(RoutecastError, match="states no idle power"):
        _ = power.power_w


def test_a_plane_of_another_width_needs_its_own_table() -> None:
    planes = (plane(0.4, 0), plane(0, 0.3, width=0.5))
    allocation = Allocation(policy="unequal", planes=planes)
    with pytest.raises(RoutecastError, match=r"planes of the widths 0\.5, 1: give one for each plane"):
        allocation_power(MADE_UP, allocation)
    first, second = allocation_power([MADE_UP, MADE_UP], allocation)
    # Half the width, so 0.3 loads its link 0.6.
    assert first.frequency_hz == pytest.approx(0.4 * 4 * GHZ)
    assert second.frequency_hz == pytest.approx(0.6 * 4 * GHZ)
    with pytest.raises(RoutecastError, match="1 tables of router power for 2 planes"):
        allocation_power([MADE_UP], allocation)


def test_overload_and_a_wrong_ratio_are_refused() -> None:
    with pytest.raises(RoutecastError, match="lower the load"):
        plane_power(MADE_UP, plane(0.6, 0.6))
    with pytest.raises(RoutecastError, match=r"in 0\.\.1"):
        plane_power(MADE_UP, plane(0.1, 0.1), asleep_ratio=2)
