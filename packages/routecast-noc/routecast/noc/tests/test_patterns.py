"""Traffic patterns against their definitions, closed forms and conservation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.patterns import (
    PATTERNS,
    Along,
    bit_complement,
    centre,
    hot_spot,
    neighbour,
    normal,
    pattern,
    tornado,
    transpose,
    uniform,
)
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import Traffic


def mesh(columns: int, rows: int) -> Topology:
    return Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)


MESH_5X5 = mesh(5, 5)
CONCENTRATED = Topology(kind=TopologyKind.CONCENTRATED_MESH, columns=4, rows=4, concentration=3)

squares = st.integers(min_value=3, max_value=7).map(lambda size: mesh(size, size))


def targets(traffic: Traffic, source: int) -> list[int]:
    return [int(target) for target in np.flatnonzero(traffic.demand[source])]


@given(topology=squares, name=st.sampled_from(sorted(PATTERNS)))
def test_every_node_sends_one_in_total_or_nothing(topology: Topology, name: str) -> None:
    demand = pattern(name, topology, seed=3).demand
    sent = demand.sum(axis=1)
    assert demand.min() >= 0
    assert np.all(np.isclose(sent, 1) | (sent == 0))
    assert sent.max() > 0


@given(topology=squares, name=st.sampled_from(sorted(set(PATTERNS) - {"hot_spot"})))
def test_a_pattern_that_permutes_lets_every_sender_receive_as_much(topology: Topology, name: str) -> None:
    demand = pattern(name, topology, seed=3).demand
    np.testing.assert_allclose(demand.sum(axis=0), demand.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("make", [uniform, normal, hot_spot, transpose, tornado, neighbour, bit_complement])
def test_nodes_that_share_a_router_send_one_each_as_well(make: Callable[[Topology], Traffic]) -> None:
    sent = make(CONCENTRATED).demand.sum(axis=1)
    assert sent.shape == (48,)
    assert np.all(np.isclose(sent, 1) | (sent == 0))


def test_uniform_sends_to_the_others_only_unless_a_node_may_draw_itself() -> None:
    others = uniform(MESH_5X5).demand
    assert others.diagonal().max() == 0
    assert others[0, 1] == 1 / 24
    np.testing.assert_allclose(uniform(MESH_5X5, to_itself=True).demand, 1 / 25)


def test_normal_is_a_mean_of_permutations_and_the_same_for_the_same_seed() -> None:
    demand = normal(MESH_5X5, permutations=25, seed=7).demand
    counts = demand * 25
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    np.testing.assert_allclose(demand.sum(axis=0), 1)
    np.testing.assert_array_equal(demand, normal(MESH_5X5, permutations=25, seed=7).demand)
    assert not np.array_equal(demand, normal(MESH_5X5, permutations=25, seed=8).demand)


def test_normal_keeps_fixed_points_which_a_random_permutation_has_once_on_average() -> None:
    # The expected number of fixed points of a random permutation is 1 for every size; its variance is 1 too, so that
    # the mean of 2500 lies within 5 / sqrt(2500).
    demand = normal(MESH_5X5, permutations=2500, seed=1).demand
    assert demand.trace() == pytest.approx(1, abs=0.1)


def test_one_permutation_is_a_permutation_matrix() -> None:
    demand = normal(MESH_5X5, permutations=1, seed=2).demand
    assert set(demand.ravel()) == {0.0, 1.0}


def test_transpose_exchanges_row_and_column_and_the_diagonal_sends_nothing() -> None:
    traffic = transpose(MESH_5X5)
    for router in range(25):
        x, y = MESH_5X5.position(router)
        assert targets(traffic, router) == ([] if x == y else [MESH_5X5.router_at(y, x)])


def test_transpose_of_the_reference_simulator_sends_the_diagonal_to_itself() -> None:
    demand = transpose(MESH_5X5, to_itself=True).demand
    np.testing.assert_array_equal(demand.sum(axis=1), 1)
    assert demand.trace() == 5


def test_transpose_needs_a_square() -> None:
    with pytest.raises(RoutecastError, match="4 x 3 routers are not a square"):
        transpose(mesh(4, 3))


def test_tornado_on_five_columns_goes_two_to_the_right_as_in_li_2012() -> None:
    traffic = tornado(MESH_5X5)
    for router in range(25):
        x, y = MESH_5X5.position(router)
        assert targets(traffic, router) == [MESH_5X5.router_at((x + 2) % 5, y)]


@pytest.mark.parametrize(("columns", "step"), [(3, 1), (4, 1), (6, 2), (7, 3), (8, 3)])
def test_tornado_goes_as_far_as_it_can_without_reaching_half_the_ring(columns: int, step: int) -> None:
    # Dally and Towles (2004), table 3.2: ceil(k/2) - 1, the longest step that is still shortest one way round.
    assert targets(tornado(mesh(columns, 2)), 0) == [step]
    assert step < columns / 2 <= step + 1


def test_tornado_and_neighbour_along_both_shift_rows_as_well() -> None:
    topology = mesh(8, 8)
    assert targets(tornado(topology, along=Along.BOTH), 0) == [topology.router_at(3, 3)]
    assert targets(neighbour(topology, along=Along.BOTH), 0) == [topology.router_at(1, 1)]


def test_tornado_on_two_columns_is_refused() -> None:
    with pytest.raises(RoutecastError, match="take 3 columns or more"):
        tornado(mesh(2, 5))


def test_neighbour_goes_one_to_the_right_or_down_in_a_single_column() -> None:
    assert targets(neighbour(MESH_5X5), 4) == [0]
    assert targets(neighbour(mesh(1, 4)), 0) == [1]


def test_bit_complement_inverts_all_bits_where_routers_are_a_power_of_two() -> None:
    traffic = bit_complement(mesh(8, 4))
    for router in range(32):
        assert targets(traffic, router) == [router ^ 0b11111]


def test_the_centre_of_an_odd_grid_sends_nothing_under_bit_complement() -> None:
    traffic = bit_complement(MESH_5X5)
    assert targets(traffic, 12) == []
    assert targets(traffic, 0) == [24]


def test_the_hot_spot_of_li_2012_is_the_centre_and_gets_its_share_and_its_part_of_the_rest() -> None:
    demand = hot_spot(MESH_5X5).demand
    assert centre(MESH_5X5) == 12
    assert demand[0, 12] == pytest.approx(0.6 + 0.4 / 24)
    assert demand[0, 1] == pytest.approx(0.4 / 24)
    np.testing.assert_allclose(np.delete(demand[12], 12), 1 / 24)


def test_many_hot_spots_divide_the_share_by_their_weights() -> None:
    demand = hot_spot(MESH_5X5, nodes=[3, 20], weights=[3, 1], share=1).demand
    assert demand[0, 3] == pytest.approx(0.75)
    assert demand[0, 20] == pytest.approx(0.25)
    assert demand[3, 20] == pytest.approx(1)
    assert demand[0].sum() == pytest.approx(1)


def test_hot_spots_of_the_reference_simulator_are_drawn_from_all_nodes_by_weight() -> None:
    # BookSim 2's hotspot({...}, {...}): weight 5 for four nodes in the middle of 8 x 8, 1 for the other 60.
    hot = {27, 28, 35, 36}
    weights = [5 if node in hot else 1 for node in range(64)]
    demand = hot_spot(mesh(8, 8), nodes=range(64), weights=weights, share=1, to_itself=True).demand
    np.testing.assert_allclose(demand, np.tile(np.array(weights) / 80, (64, 1)))


def test_without_a_share_hot_spots_are_uniform_traffic() -> None:
    np.testing.assert_allclose(hot_spot(MESH_5X5, share=0).demand, uniform(MESH_5X5).demand)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"nodes": [25]}, "hot spot 25 is not a node: nodes are numbered 0 to 24"),
        ({"nodes": [1, 1]}, "hot spot 1 is named twice"),
        ({"nodes": []}, "no hot spot is named"),
        ({"nodes": [1, 2], "weights": [1]}, "1 weights for 2 hot spots"),
        ({"weights": [-1]}, "weight -1"),
        ({"share": 1.2}, "share 1.2"),
        ({"share": float("nan")}, "share nan"),
    ],
)
def test_invalid_hot_spots_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(RoutecastError, match=words):
        hot_spot(MESH_5X5, **arguments)


def test_less_than_one_permutation_is_refused() -> None:
    with pytest.raises(RoutecastError, match="0 permutations; give 1 or more"):
        normal(MESH_5X5, permutations=0)


def test_an_unknown_pattern_is_answered_with_the_nearest() -> None:
    with pytest.raises(RoutecastError, match='did you mean "tornado"'):
        pattern("tornadoo", MESH_5X5)
