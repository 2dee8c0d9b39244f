"""Paths of the routing policies: whole, shortest where they should be, and with the loads that theory gives."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.patterns import bit_complement, tornado, transpose, uniform
from routecast.noc.routing import _mesh_paths as mesh_paths
from routecast.noc.routing.deadlock import channel_cycle
from routecast.noc.routing.model import Path, Routes, hop_flow, link_loads
from routecast.noc.routing.policies import POLICIES, routes
from routecast.noc.topology import Topology, TopologyKind, links

MINIMAL = tuple(item for item in POLICIES if item != "valiant")


def mesh(columns: int, rows: int) -> Topology:
    return Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)


def torus(columns: int, rows: int) -> Topology:
    return Topology(kind=TopologyKind.TORUS, columns=columns, rows=rows)


def demand_of(topology: Topology, seed: int = 7) -> np.ndarray:
    """Return some demand between routers, without a pattern."""
    demand = np.random.default_rng(seed).random((topology.router_count,) * 2)
    np.fill_diagonal(demand, 0.0)
    return demand


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    kind = draw(st.sampled_from(TopologyKind))
    columns, rows = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    if columns * rows < 2:
        columns = 2
    each = draw(st.integers(1, 3)) if kind is TopologyKind.CONCENTRATED_MESH else 1
    return Topology(kind=kind, columns=columns, rows=rows, concentration=each)


def by_flow(routing: Routes) -> dict[tuple[int, int], list[Path]]:
    flows = defaultdict(list)
    for path in routing.paths:
        flows[path.source, path.target].append(path)
    return flows


@given(topology=topologies(), policy=st.sampled_from(POLICIES), seed=st.integers(0, 99))
def test_every_flow_goes_whole_over_connected_paths_that_cannot_deadlock(
    topology: Topology, policy: str, seed: int
) -> None:
    result = routes(policy, topology, demand=demand_of(topology, seed), seed=seed)
    every = links(topology)
    flows = by_flow(result)
    routers = range(topology.router_count)
    assert set(flows) == {(s, t) for s in routers for t in routers if s != t}
    for paths in flows.values():
        assert sum(path.share for path in paths) == pytest.approx(1.0)
    for path in result.paths:
        assert len(path.layers) == len(path.links) > 0
        assert every[path.links[0]].source == path.source
        assert every[path.links[-1]].target == path.target
        assert all(every[a].target == every[b].source for a, b in pairwise(path.links))
        assert path.share >= 0
    assert channel_cycle(result) is None


@given(topology=topologies(), policy=st.sampled_from(MINIMAL), seed=st.integers(0, 99))
def test_paths_are_shortest_and_the_hop_flow_is_rate_times_distance(topology: Topology, policy: str, seed: int) -> None:
    demand = demand_of(topology, seed)
    result = routes(policy, topology, demand=demand, seed=seed)
    assert all(len(path.links) == topology.distance(path.source, path.target) for path in result.paths)
    expected = sum(demand[s, t] * topology.distance(s, t) for s, t in by_flow(result))
    assert hop_flow(result, demand) == pytest.approx(expected)


@given(topology=topologies(), policy=st.sampled_from(POLICIES), seed=st.integers(0, 99))
def test_each_router_passes_on_what_it_gets(topology: Topology, policy: str, seed: int) -> None:
    demand = demand_of(topology, seed)
    loads = link_loads(routes(policy, topology, demand=demand, seed=seed), demand)
    balance = demand.sum(axis=1) - demand.sum(axis=0)
    for link, load in zip(links(topology), loads, strict=True):
        balance[link.source] -= load
        balance[link.target] += load
    assert balance == pytest.approx(np.zeros(topology.router_count), abs=1e-9)


@pytest.mark.parametrize(("columns", "rows"), [(4, 4), (5, 3), (2, 6)])
def test_uniform_traffic_loads_a_mesh_under_xy_as_counted_by_hand(columns: int, rows: int) -> None:
    topology = mesh(columns, rows)
    loads = link_loads(routes("xy", topology), uniform(topology).between_routers(topology))
    for link, load in zip(links(topology), loads, strict=True):
        # East out of column x: the sources left of it in this row, to all targets right of it, in all rows; and so on.
        x, y = topology.position(link.source)
        size, at, across = (columns, x, rows) if link.direction.is_horizontal else (rows, y, columns)
        behind = at + 1 if sum(link.direction.step) > 0 else size - at
        assert load == pytest.approx(behind * (size - behind) * across / (topology.router_count - 1))


def test_xy_turns_at_the_column_of_the_target_and_yx_at_its_row() -> None:
    topology = mesh(4, 3)
    every = links(topology)
    for policy, first in (("xy", True), ("yx", False)):
        for path in routes(policy, topology).paths:
            kinds = [every[link].direction.is_horizontal for link in path.links]
            assert kinds == sorted(kinds, reverse=first)


def test_yx_is_xy_on_the_mirrored_grid() -> None:
    topology = mesh(4, 4)
    mirror = np.array(
        [topology.router_at(*reversed(topology.position(router))) for router in range(topology.router_count)]
    )
    demand = demand_of(topology)
    ends = {(link.source, link.target): number for number, link in enumerate(links(topology))}
    swapped = [ends[mirror[link.source], mirror[link.target]] for link in links(topology)]
    straight = link_loads(routes("yx", topology), demand)
    mirrored = link_loads(routes("xy", topology), demand[np.ix_(mirror, mirror)])
    assert straight == pytest.approx(mirrored[swapped])


@pytest.mark.parametrize("topology", [mesh(4, 5), torus(4, 5)])
def test_half_of_each_order_loads_links_with_the_mean_of_xy_and_yx(topology: Topology) -> None:
    demand = demand_of(topology)
    mean = (link_loads(routes("xy", topology), demand) + link_loads(routes("yx", topology), demand)) / 2
    for policy in ("o1turn", "2p_es"):
        assert link_loads(routes(policy, topology), demand) == pytest.approx(mean)


def test_random_splits_follow_their_seed_and_are_even_in_the_mean() -> None:
    topology = mesh(3, 3)
    demand = demand_of(topology)

    def loads(seed: int) -> np.ndarray:
        return link_loads(routes("2p_rs", topology, seed=seed), demand)

    assert loads(3) == pytest.approx(loads(3), abs=0)
    assert loads(3) != pytest.approx(loads(4))
    mean = np.mean([loads(seed) for seed in range(400)], axis=0)
    # The part of a flow has the standard deviation 1/sqrt(12); no link carries flows of more than 1 each.
    assert mean == pytest.approx(link_loads(routes("2p_es", topology), demand), abs=4 * np.sqrt(12 / 12 / 400))


def test_four_paths_are_both_orders_and_two_more_over_one_inner_router() -> None:
    topology = mesh(5, 5)
    every = links(topology)
    for (source, target), paths in by_flow(routes("4p_es", topology, seed=5)).items():
        assert [path.share for path in paths] == [0.25] * 4
        ways = [{source, *(every[link].target for link in path.links)} - {source, target} for path in paths]
        rim = ways[0] | ways[1]
        (ax, ay), (bx, by) = topology.position(source), topology.position(target)
        if abs(ax - bx) > 1 and abs(ay - by) > 1:
            assert ways[0].isdisjoint(ways[1])
            assert (ways[2] & ways[3]) - rim


def test_romm_shares_are_those_of_all_intermediate_routers_one_by_one() -> None:
    topology = mesh(4, 3)
    every = {(link.source, link.target): number for number, link in enumerate(links(topology))}

    def xy(source: int, target: int) -> list[int]:
        (x, y), (tx, ty) = topology.position(source), topology.position(target)
        visited = [(x, y)]
        while (x, y) != (tx, ty):
            x, y = (x + np.sign(tx - x), y) if x != tx else (x, y + np.sign(ty - y))
            visited.append((x, y))
        return [every[topology.router_at(*a), topology.router_at(*b)] for a, b in pairwise(visited)]

    demand = demand_of(topology)
    expected = np.zeros(len(every))
    for source in range(12):
        for target in range(12):
            (ax, ay), (bx, by) = topology.position(source), topology.position(target)
            middles = [
                topology.router_at(x, y)
                for x in range(min(ax, bx), max(ax, bx) + 1)
                for y in range(min(ay, by), max(ay, by) + 1)
            ]
            for middle in middles:
                expected[xy(source, middle)] += demand[source, target] / len(middles)
                expected[xy(middle, target)] += demand[source, target] / len(middles)
    assert link_loads(routes("romm", topology), demand) == pytest.approx(expected)


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.slow
def test_valiant_loads_every_link_of_a_torus_alike_whatever_the_permutation(k: int) -> None:
    # Two uniform phases; each moves (k^2 - 1) / (4 k) hops along a ring of odd length k, over 2 links per router.
    topology = torus(k, k)
    patterns = [tornado(topology), transpose(topology), bit_complement(topology)]
    result = routes("valiant", topology)
    for traffic in patterns:
        demand = traffic.demand.copy()
        still = demand.sum(axis=1) == 0
        busy = 1 - still.mean()
        loads = link_loads(result, demand)
        assert loads.mean() == pytest.approx(2 * busy * (k**2 - 1) / (8 * k))
        if not still.any():
            assert loads == pytest.approx(np.full(loads.size, (k**2 - 1) / (4 * k)))


def test_valiant_is_twice_uniform_traffic_on_a_mesh() -> None:
    topology = mesh(4, 3)
    permutation = np.roll(np.eye(12), 5, axis=1)
    twice = 2 * link_loads(routes("xy", topology), np.full((12, 12), 1 / 12))
    assert link_loads(routes("valiant", topology), permutation) == pytest.approx(twice)


def test_large_grids_draw_distinct_intermediate_routers(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = mesh(4, 4)
    monkeypatch.setattr(mesh_paths, "_MAX_WALKS", 3 * 16 * 15)
    drawn = by_flow(routes("valiant", topology, seed=2))
    assert {round(1 / min(path.share for path in paths)) for paths in drawn.values()} == {3}
    monkeypatch.undo()
    assert len(routes("valiant", topology).paths) > sum(len(paths) for paths in drawn.values())


def test_both_ways_round_a_ring_share_what_is_opposite() -> None:
    topology = torus(4, 4)
    shares = defaultdict(float)
    for path in routes("xy", topology).paths:
        if (path.source, path.target) == (0, 10):
            first = links(topology)[path.links[0]].direction
            last = links(topology)[path.links[-1]].direction
            shares[first, last] += path.share
    assert sorted(shares.values()) == [0.25] * 4


def shortest_paths(topology: Topology, source: int, target: int) -> list[list[int]]:
    if source == target:
        return [[]]
    return [
        [number, *rest]
        for number, link in enumerate(links(topology))
        if link.source == source and topology.distance(link.target, target) < topology.distance(source, target)
        for rest in shortest_paths(topology, link.target, target)
    ]


@given(is_ring=st.booleans(), columns=st.integers(2, 4), rows=st.integers(1, 3), seed=st.integers(0, 999))
def test_adaptive_takes_the_least_loaded_of_all_shortest_paths_flow_after_flow(
    is_ring: bool, columns: int, rows: int, seed: int
) -> None:
    topology = torus(columns, rows) if is_ring else mesh(columns, rows)
    demand = demand_of(topology, seed)  # all flows differ
    chosen = {
        (path.source, path.target): list(path.links) for path in routes("adaptive", topology, demand=demand).paths
    }
    loads = np.zeros(len(links(topology)))
    for source, target in sorted(chosen, key=lambda flow: -demand[flow]):
        path = chosen[source, target]
        every = shortest_paths(topology, source, target)
        assert path in every
        assert loads[path].max() == pytest.approx(min(loads[item].max() for item in every))
        loads[path] += demand[source, target]


def test_number_of_shortest_paths_in_the_brute_force_is_the_binomial() -> None:
    topology = mesh(4, 3)
    assert len(shortest_paths(topology, 0, 11)) == comb(5, 2)


def test_unknown_policy_names_the_nearest() -> None:
    with pytest.raises(RoutecastError, match='"2p_es"'):
        routes("2pes", mesh(2, 2))


def test_adaptive_wants_a_demand_between_routers() -> None:
    with pytest.raises(RoutecastError, match="give the demand"):
        routes("adaptive", mesh(2, 2))
    with pytest.raises(RoutecastError, match=r"\(4, 4\)"):
        routes("adaptive", mesh(2, 2), demand=np.ones((3, 3)))
