"""The bound of whole flows against closed forms, all choices of planes, and the allocation search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.noc.patterns import tornado
from routecast.noc.planes.search import allocate
from routecast.noc.planes.whole_flows import whole_flow_bound
from routecast.noc.scaling import Scaling
from routecast.noc.tests.toy_scenario import closed_form, toy_demand
from routecast.noc.topology import Topology, TopologyKind

MESH_5 = Topology(kind=TopologyKind.MESH, columns=5, rows=5)
MESH_3 = Topology(kind=TopologyKind.MESH, columns=3, rows=3)
TWO = (Scaling(alpha_max=3), Scaling(alpha_max=3))


@pytest.mark.parametrize("low_rate", [0.1, 0.2, 0.5])
def test_concentration_is_the_best_for_whole_flows_of_the_toy_scenario(low_rate: float) -> None:
    # Eq. 7.6: no other allocation of whole flows needs less, whatever its paths.
    demand = toy_demand(MESH_5, low_flows=60, low_rate=low_rate)
    expected = closed_form(low_flows=60, low_rate=low_rate, alpha_max=3).concentrated
    assert whole_flow_bound(MESH_5, demand, TWO) == pytest.approx(expected)


def test_tornado_is_at_best_four_times_below_no_scaling() -> None:
    # Two flows of a half share the busiest link; whole, they keep both planes at half the clock.
    demand = 0.5 * tornado(MESH_5).between_routers(MESH_5)
    hop_flow = sum(demand[s, t] * MESH_5.distance(int(s), int(t)) for s, t in np.argwhere(demand))
    assert whole_flow_bound(MESH_5, demand, TWO) == pytest.approx(hop_flow / 4)
    assert allocate(MESH_5, demand, TWO).power == pytest.approx(hop_flow / 4)


@given(
    rates=st.lists(st.sampled_from([0.05, 0.2, 0.35, 0.5, 0.8, 1.0]), min_size=1, max_size=6), planes=st.integers(2, 3)
)
def test_it_is_the_best_choice_of_a_plane_for_each_flow_where_links_are_free(rates: list[float], planes: int) -> None:
    # Flows between neighbours over links of their own: capacity binds no two of them together.
    demand = np.zeros((MESH_3.router_count, MESH_3.router_count))
    for (source, target), rate in zip(((0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8)), rates, strict=False):
        demand[source, target] = rate
    least = min(
        sum(
            sum(rate for rate, plane in zip(rates, choice, strict=True) if plane == item)
            * max(1 / 3, max((r for r, p in zip(rates, choice, strict=True) if p == item), default=0.0)) ** 2
            for item in range(planes)
        )
        for choice in product(range(planes), repeat=len(rates))
    )
    scalings = (Scaling(alpha_max=3),) * planes
    assert whole_flow_bound(MESH_3, demand, scalings) == pytest.approx(least)


@given(seed=st.integers(0, 10**6))
@pytest.mark.slow
def test_no_allocation_is_below_it_on_equal_and_unequal_planes(seed: int) -> None:
    random = np.random.default_rng(seed)
    demand = np.where(random.random((9, 9)) < 0.2, random.uniform(0, 0.3, (9, 9)), 0.0)
    np.fill_diagonal(demand, 0.0)
    scalings = (Scaling(alpha_max=3), Scaling(alpha_max=float(random.uniform(1, 3))))
    widths = (1.0, float(random.uniform(0.5, 2)))
    result = allocate(MESH_3, demand, scalings, widths=widths, steps=200)
    assert whole_flow_bound(MESH_3, demand, scalings, widths=widths) <= result.power * (1 + 1e-9)
