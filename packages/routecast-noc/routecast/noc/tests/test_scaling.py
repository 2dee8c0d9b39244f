"""Power by the hop and the expansion factor (Li 2012, eqs. 6.1-6.3, properties 1 and 2, Table 6.1)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.patterns import hot_spot
from routecast.noc.routing.model import hop_flow, link_loads
from routecast.noc.routing.policies import POLICIES, routes
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import normalised

MESH = Topology(kind=TopologyKind.MESH, columns=4, rows=4)
LOADS = st.floats(1e-3, 1.0)


@given(load=LOADS, policy=st.sampled_from(POLICIES[:4]))
def test_unbounded_scaling_makes_power_a_cubic_function_of_the_load(load: float, policy: str) -> None:
    result, traffic, ideal = routes(policy, MESH), hot_spot(MESH), Scaling(alpha_max=math.inf)

    def power(at: float) -> float:
        demand = normalised(traffic, [result], at).between_routers(MESH)
        return ideal.power(hop_flow(result, demand), link_loads(result, demand).max())

    assert power(load) == pytest.approx(power(1.0) * load**3)


@given(load=LOADS)
def test_no_scaling_makes_power_proportional_to_the_load(load: float) -> None:
    assert Scaling(alpha_max=1).power(load * 12.0, load) == pytest.approx(load * 12.0)


@pytest.mark.parametrize(
    ("load", "ratio"),
    # Table 6.1, theoretical ratio of power without to power with scaling, alpha_max 3.
    [(1.0, 1.00), (0.8, 1.56), (0.6, 2.78), (0.4, 6.25), (0.2, 9.00)],
)
def test_ratio_to_no_scaling_is_the_theoretical_one_of_table_6_1(load: float, ratio: float) -> None:
    assert load / Scaling(alpha_max=3).power(load, load) == pytest.approx(ratio, abs=0.005)


@given(load=st.floats(0.0, 1.0), alpha_max=st.floats(1.0, 10.0))
def test_expansion_stays_in_its_bounds_and_never_overloads_the_bottleneck(load: float, alpha_max: float) -> None:
    alpha = Scaling(alpha_max=alpha_max).alpha(load)
    assert 1 <= alpha <= alpha_max
    assert load * alpha <= 1 + 1e-12
    # As large as it may be: at its bound, or the bottleneck is full.
    assert alpha == alpha_max or load * alpha == pytest.approx(1)


@given(loads=st.tuples(LOADS, LOADS), alpha_max=st.floats(1.0, 10.0))
def test_power_never_falls_with_the_load(loads: tuple[float, float], alpha_max: float) -> None:
    scaling = Scaling(alpha_max=alpha_max)
    low, high = sorted(loads)
    assert scaling.power(low, low) <= scaling.power(high, high) * (1 + 1e-12)


def test_idle_fabric_burns_nothing() -> None:
    assert Scaling(alpha_max=3).power(0.0, 0.0) == 0
    assert Scaling(alpha_max=math.inf).power(0.0, 0.0) == 0


def test_rounding_above_capacity_is_full_load_and_more_is_refused() -> None:
    assert Scaling(alpha_max=3).alpha(1 + 1e-12) == 1
    with pytest.raises(RoutecastError, match="lower the load"):
        Scaling(alpha_max=3).alpha(1.01)


@pytest.mark.parametrize("bottleneck", [-0.1, math.nan])
def test_an_invalid_load_is_refused(bottleneck: float) -> None:
    with pytest.raises(RoutecastError, match="bottleneck load"):
        Scaling(alpha_max=3).alpha(bottleneck)


@pytest.mark.parametrize("alpha_max", [0.99, 0.0, -3.0, math.nan])
def test_expansion_below_one_is_refused(alpha_max: float) -> None:
    with pytest.raises(RoutecastError, match="at least 1"):
        Scaling(alpha_max=alpha_max)
