"""Li's patterns under its routings, against the statements of chapters 6 and 7 and a closed form."""

from __future__ import annotations

import numpy as np
import pytest

from routecast.noc.patterns import hot_spot, normal, tornado, transpose, uniform
from routecast.noc.routing.model import Routes, hop_flow, link_loads
from routecast.noc.routing.policies import routes
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import Traffic, bottleneck, normalised

MESH_5X5 = Topology(kind=TopologyKind.MESH, columns=5, rows=5)
XY = routes("xy", MESH_5X5)
HALVES = routes("2p_es", MESH_5X5)


def relative_power(traffic: Traffic, routings: list[Routes], which: Routes) -> float:
    """Return the power at load 1 over that without scaling: the square of the bottleneck, eqs. 6.2 and 6.7."""
    demand = normalised(traffic, routings, 1.0).between_routers(MESH_5X5)
    bound = float(link_loads(which, demand).max())
    return hop_flow(which, demand) * bound**2 / hop_flow(XY, demand)


def test_hot_spot_has_the_power_of_fig_6_6() -> None:
    assert relative_power(hot_spot(MESH_5X5), [XY, HALVES], XY) == pytest.approx(1)
    assert relative_power(hot_spot(MESH_5X5), [XY, HALVES], HALVES) == pytest.approx(0.40, rel=0.03)


def test_transpose_has_the_power_of_fig_6_5() -> None:
    assert relative_power(transpose(MESH_5X5), [XY, HALVES], XY) == pytest.approx(1)
    assert relative_power(transpose(MESH_5X5), [XY, HALVES], HALVES) == pytest.approx(0.25, rel=0.03)


def test_normal_has_the_mean_power_of_fig_6_4() -> None:
    # 40 random matrices under the four oblivious routings of sec. 6.4.1: XY 0.91 and 2P-ES 0.80 of NoDVFS at load 1.
    results = []
    for seed in range(40):
        traffic = normal(MESH_5X5, permutations=25, seed=seed)
        others = [routes(policy, MESH_5X5, seed=seed) for policy in ("2p_rs", "4p_es")]
        routings = [XY, HALVES, *others]
        results.append([relative_power(traffic, routings, which) for which in (XY, HALVES)])
    xy, halves = np.mean(results, axis=0)
    assert xy == pytest.approx(0.91, rel=0.03)
    assert halves == pytest.approx(0.80, rel=0.03)


@pytest.mark.parametrize("traffic", [uniform(MESH_5X5), tornado(MESH_5X5)], ids=["uniform", "tornado"])
def test_balancing_gains_nothing_on_uniform_and_tornado(traffic: Traffic) -> None:
    # Sec. 6.5: under uniform traffic XY needs as little as 2P-ES; tornado stays in its row, where both are one path.
    assert relative_power(traffic, [XY, HALVES], HALVES) == pytest.approx(1)


@pytest.mark.parametrize("size", [4, 5, 8])
def test_the_middle_links_of_a_mesh_carry_uniform_traffic_as_the_closed_form_says(size: int) -> None:
    # Of k x k nodes, k floor(k/2) on one side of the middle send to k ceil(k/2) on the other over k links, each pair
    # 1 / (k^2 - 1).
    topology = Topology(kind=TopologyKind.MESH, columns=size, rows=size)
    expected = size * (size // 2) * ((size + 1) // 2) / (size * size - 1)
    assert bottleneck(uniform(topology), [routes("xy", topology)]) == pytest.approx(expected)
