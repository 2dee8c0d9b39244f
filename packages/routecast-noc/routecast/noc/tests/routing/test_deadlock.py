"""Channel dependency graphs: which routings can deadlock, and the shortest reason why."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.noc.routing.deadlock import channel_cycle, describe_cycle, shortest_cycle
from routecast.noc.routing.model import Path, Routes
from routecast.noc.routing.policies import routes
from routecast.noc.topology import Topology, TopologyKind, links


def mesh(columns: int, rows: int) -> Topology:
    return Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)


def in_one_class(routing: Routes) -> Routes:
    return replace(routing, paths=tuple(replace(path, layers=(0,) * len(path.links)) for path in routing.paths))


@given(st.integers(2, 7), st.integers(1, 7))
def test_one_dimension_after_the_other_needs_one_class_on_a_mesh(columns: int, rows: int) -> None:
    for policy in ("xy", "yx"):
        result = routes(policy, mesh(columns, rows))
        assert result.layer_count == 1
        assert channel_cycle(result) is None


def test_both_orders_in_one_class_close_the_smallest_square() -> None:
    topology = mesh(2, 2)
    cycle = channel_cycle(in_one_class(routes("o1turn", topology)))
    assert cycle is not None
    ends = [(links(topology)[link].source, links(topology)[link].target) for link, _ in cycle]
    assert len(cycle) == 4
    assert all(a[1] == b[0] for a, b in pairwise([*ends, ends[0]]))
    assert channel_cycle(routes("o1turn", topology)) is None


@pytest.mark.parametrize("size", [4, 5, 6])
def test_rings_deadlock_in_one_class_and_not_with_a_dateline(size: int) -> None:
    topology = Topology(kind=TopologyKind.TORUS, columns=size, rows=1)
    cycle = channel_cycle(in_one_class(routes("xy", topology)))
    assert cycle is not None
    assert len(cycle) == size
    assert len({links(topology)[link].direction for link, _ in cycle}) == 1
    assert channel_cycle(routes("xy", topology)) is None


@given(st.sampled_from(["xy", "yx", "o1turn", "2p_rs"]), st.integers(2, 9), st.integers(1, 9), st.booleans())
def test_datelines_free_every_torus_from_deadlock(policy: str, wide: int, high: int, upright: bool) -> None:
    columns, rows = (high, wide) if upright else (wide, high)
    result = routes(policy, Topology(kind=TopologyKind.TORUS, columns=columns, rows=rows))
    assert result.layer_count == (2 if policy in {"xy", "yx"} else 4)
    assert channel_cycle(result) is None


@pytest.mark.parametrize("policy", ["4p_es", "romm", "valiant"])
@pytest.mark.parametrize(("columns", "rows"), [(2, 2), (3, 2), (4, 4), (5, 3), (6, 2), (5, 5), (1, 7)])
@pytest.mark.slow
def test_datelines_free_routes_over_a_router_from_deadlock(policy: str, columns: int, rows: int) -> None:
    assert channel_cycle(routes(policy, Topology(kind=TopologyKind.TORUS, columns=columns, rows=rows))) is None


@pytest.mark.parametrize(("columns", "rows"), [(8, 8), (5, 4), (7, 1), (2, 3)])
def test_datelines_load_both_classes_alike(columns: int, rows: int) -> None:
    # A mirror swaps forward and backward, and with them the classes of every leg.
    result = routes("xy", Topology(kind=TopologyKind.TORUS, columns=columns, rows=rows))
    carried = [0.0, 0.0]
    for path in result.paths:
        for layer in path.layers:
            carried[layer] += path.share
    assert carried[0] == pytest.approx(carried[1])


def test_no_packet_on_a_ring_of_three_takes_two_hops() -> None:
    topology = Topology(kind=TopologyKind.TORUS, columns=3, rows=1)
    assert channel_cycle(in_one_class(routes("xy", topology))) is None


@pytest.mark.parametrize("policy", ["2p_es", "2p_rs", "4p_es", "romm"])
def test_load_balancing_in_one_class_can_deadlock(policy: str) -> None:
    result = in_one_class(routes(policy, mesh(3, 3)))
    cycle = channel_cycle(result)
    assert cycle is not None
    waits = {pair for path in result.paths for pair in pairwise(path.links)}
    channels = [link for link, _ in cycle]
    assert set(pairwise([*channels, channels[0]])) <= waits


def test_paths_without_a_share_do_not_count() -> None:
    result = in_one_class(routes("o1turn", mesh(2, 2)))
    xy_alone = tuple(replace(path, share=1.0 if number % 2 == 0 else 0.0) for number, path in enumerate(result.paths))
    assert channel_cycle(replace(result, paths=xy_alone)) is None


def test_path_that_returns_to_its_own_channel_waits_for_itself() -> None:
    topology = mesh(2, 1)
    path = Path(source=0, target=1, links=(0, 1, 0), layers=(0, 0, 0), share=1.0)
    cycle = channel_cycle(Routes(policy="loop", topology=topology, paths=(path,)))
    assert cycle is not None
    assert sorted(cycle) == [(0, 0), (1, 0)]


def test_no_paths_have_no_cycle() -> None:
    assert channel_cycle(Routes(policy="none", topology=mesh(2, 2), paths=())) is None


def test_words_name_the_routers_and_the_class_where_there_are_several() -> None:
    topology = mesh(2, 2)
    assert describe_cycle(topology, [(0, 0), (3, 0)]).startswith("(0, 0)->(1, 0), ")
    assert describe_cycle(topology, [(0, 1)]) == "(0, 0)->(1, 0) class 1"


@given(st.integers(1, 7), st.data())
def test_shortest_cycle_is_as_long_as_the_first_power_with_a_trace(size: int, data: st.DataObject) -> None:
    matrix = np.array(
        data.draw(st.lists(st.lists(st.integers(0, 1), min_size=size, max_size=size), min_size=size, max_size=size))
    )
    if data.draw(st.booleans()):
        matrix = np.triu(matrix, 1)
    edges = [(int(a), int(b)) for a, b in np.argwhere(matrix)]
    lengths = [k for k in range(1, size + 1) if np.trace(np.linalg.matrix_power(matrix, k))]
    cycle = shortest_cycle(edges)
    if not lengths:
        assert cycle is None
    else:
        assert cycle is not None
        assert len(cycle) == lengths[0]
        assert set(pairwise([*cycle, cycle[0]])) <= set(edges)
