"""Topologies against closed forms, symmetry and breadth-first search."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.topology import Direction, Topology, TopologyKind, link_numbers, links

OPPOSITE = {
    Direction.EAST: Direction.WEST,
    Direction.WEST: Direction.EAST,
    Direction.SOUTH: Direction.NORTH,
    Direction.NORTH: Direction.SOUTH,
}

sizes = st.tuples(st.integers(min_value=1, max_value=6), st.integers(min_value=1, max_value=6)).filter(
    lambda size: size[0] * size[1] > 1
)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    columns, rows = draw(sizes)
    kind = draw(st.sampled_from(TopologyKind))
    each = draw(st.integers(min_value=1, max_value=4)) if kind is TopologyKind.CONCENTRATED_MESH else 1
    return Topology(kind=kind, columns=columns, rows=rows, concentration=each)


def hops_from(topology: Topology, source: int) -> dict[int, int]:
    """Return the hops to every router by breadth-first search over the links."""
    leading: dict[int, list[int]] = {}
    for link in links(topology):
        leading.setdefault(link.source, []).append(link.target)
    hops, queue = {source: 0}, deque([source])
    while queue:
        router = queue.popleft()
        for other in leading.get(router, []):
            if other not in hops:
                hops[other] = hops[router] + 1
                queue.append(other)
    return hops


@given(size=sizes)
def test_a_mesh_has_two_links_between_neighbours(size: tuple[int, int]) -> None:
    n, m = size
    topology = Topology(kind=TopologyKind.MESH, columns=n, rows=m)
    assert len(links(topology)) == 2 * (n * (m - 1) + m * (n - 1))


@given(size=sizes)
def test_a_torus_has_two_links_a_router_for_every_dimension_that_closes(size: tuple[int, int]) -> None:
    n, m = size
    topology = Topology(kind=TopologyKind.TORUS, columns=n, rows=m)
    assert len(links(topology)) == 2 * n * m * ((n > 1) + (m > 1))


@given(size=sizes, each=st.integers(min_value=1, max_value=4))
def test_a_concentrated_mesh_has_the_links_of_its_mesh_and_more_nodes(size: tuple[int, int], each: int) -> None:
    n, m = size
    topology = Topology(kind=TopologyKind.CONCENTRATED_MESH, columns=n, rows=m, concentration=each)
    assert len(links(topology)) == len(links(Topology(kind=TopologyKind.MESH, columns=n, rows=m)))
    assert topology.node_count == n * m * each
    assert [topology.router_of(node) for node in range(each + 1)] == [0] * each + [1]


@given(topology=topologies())
def test_every_link_has_one_number_and_an_opposite(topology: Topology) -> None:
    numbers = link_numbers(topology)
    assert sorted(numbers.values()) == list(range(len(links(topology))))
    for number, link in enumerate(links(topology)):
        assert numbers[link.source, link.direction] == number
        assert topology.neighbour(link.source, link.direction) == link.target
        assert topology.neighbour(link.target, OPPOSITE[link.direction]) == link.source


@given(topology=topologies())
def test_position_and_number_of_a_router_belong_together(topology: Topology) -> None:
    for router in range(topology.router_count):
        x, y = topology.position(router)
        assert topology.router_at(x, y) == router
        assert router == y * topology.columns + x


@given(topology=topologies(), data=st.data())
def test_distance_is_symmetric_and_what_a_search_over_the_links_finds(topology: Topology, data: st.DataObject) -> None:
    source = data.draw(st.integers(min_value=0, max_value=topology.router_count - 1))
    hops = hops_from(topology, source)
    assert len(hops) == topology.router_count
    for target, result in hops.items():
        assert topology.distance(source, target) == result == topology.distance(target, source)


@given(topology=topologies(), data=st.data())
def test_every_productive_direction_comes_one_hop_nearer_and_no_other_does(
    topology: Topology, data: st.DataObject
) -> None:
    routers = st.integers(min_value=0, max_value=topology.router_count - 1)
    source, target = data.draw(routers), data.draw(routers)
    productive = topology.productive(source, target)
    for direction in Direction:
        beside = topology.neighbour(source, direction)
        nearer = beside is not None and topology.distance(beside, target) < topology.distance(source, target)
        assert nearer == (direction in productive)
    assert bool(productive) == (source != target)


def test_half_way_round_a_ring_both_ways_are_shortest() -> None:
    ring = Topology(kind=TopologyKind.TORUS, columns=4, rows=1)
    assert ring.offsets(0, 2) == ((2, -2), (0,))
    assert set(ring.productive(0, 2)) == {Direction.EAST, Direction.WEST}
    assert ring.offsets(0, 3) == ((-1,), (0,))


@given(size=st.integers(min_value=3, max_value=9))
def test_no_way_round_a_ring_is_longer_than_half_of_it(size: int) -> None:
    ring = Topology(kind=TopologyKind.TORUS, columns=size, rows=size)
    longest = max(ring.distance(0, target) for target in range(size * size))
    assert longest == 2 * (size // 2)


def test_the_corner_of_a_mesh_has_two_neighbours_and_its_middle_four() -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=5, rows=5)
    counts = [sum(link.source == router for link in links(topology)) for router in range(25)]
    assert counts[0] == counts[4] == counts[20] == counts[24] == 2
    assert counts[12] == 4
    assert topology.neighbour(0, Direction.NORTH) is None
    assert topology.neighbour(0, Direction.WEST) is None
    assert topology.link_name(0) == "(0, 0)->(1, 0)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": TopologyKind.MESH, "columns": 0, "rows": 3}, "0 x 3 routers has no links"),
        ({"kind": TopologyKind.TORUS, "columns": 1, "rows": 1}, "1 x 1 routers has no links"),
        ({"kind": TopologyKind.CONCENTRATED_MESH, "columns": 2, "rows": 2, "concentration": 0}, "at least 1 node"),
        ({"kind": TopologyKind.MESH, "columns": 2, "rows": 2, "concentration": 2}, "concentrated_mesh"),
    ],
)
def test_an_invalid_grid_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(RoutecastError, match=words):
        Topology(**arguments)
