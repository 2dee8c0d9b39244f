"""Turn models: no cycles, no dead ends, and the freedom that their papers count."""

from __future__ import annotations

from functools import cache
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.routing.deadlock import TURN_MODELS, choices, shortest_cycle
from routecast.noc.topology import Direction, Topology, TopologyKind, links


def mesh(columns: int, rows: int) -> Topology:
    return Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)


grids = st.builds(mesh, st.integers(2, 6), st.integers(1, 6))


@given(topology=grids, model=st.sampled_from(TURN_MODELS))
def test_nothing_that_packets_wait_for_closes_a_cycle(topology: Topology, model: str) -> None:
    rows = choices(model, topology)[: len(links(topology))]
    waits = {(came, link) for came, row in enumerate(rows) for allowed in row for link in allowed}
    assert shortest_cycle(waits) is None


@given(topology=grids, model=st.sampled_from(TURN_MODELS))
def test_every_choice_leads_nearer_and_none_is_a_dead_end(topology: Topology, model: str) -> None:
    every, table = links(topology), choices(model, topology)
    assert len(table) == len(every) + topology.router_count
    for target in range(topology.router_count):
        met = set()
        waiting = [len(every) + source for source in range(topology.router_count) if source != target]
        while waiting:
            arrival = waiting.pop()
            if arrival in met:
                continue
            met.add(arrival)
            router = every[arrival].target if arrival < len(every) else arrival - len(every)
            if router == target:
                assert table[arrival][target] == ()
                continue
            assert table[arrival][target]
            for link in table[arrival][target]:
                assert every[link].source == router
                assert topology.distance(every[link].target, target) == topology.distance(router, target) - 1
                waiting.append(link)
        unmet = set(range(len(table))) - met - {len(every) + target}
        assert all(table[arrival][target] == () for arrival in unmet)


@pytest.mark.parametrize("model", ["west_first", "north_last", "negative_first"])
def test_number_of_allowed_paths_is_that_of_glass_and_ni(model: str) -> None:
    # Glass and Ni 1992: all shortest paths, or one. Rows are counted from the top here: north has the lower y.
    topology = mesh(5, 4)
    every, table = links(topology), choices(model, topology)

    @cache
    def count(arrival: int, target: int) -> int:
        if arrival < len(every) and every[arrival].target == target:
            return 1
        return sum(count(link, target) for link in table[arrival][target])

    for source in range(20):
        for target in range(20):
            if source == target:
                continue
            (ax, ay), (bx, by) = topology.position(source), topology.position(target)
            across, down = bx - ax, by - ay
            free = {"west_first": across >= 0, "north_last": down >= 0, "negative_first": across * down >= 0}[model]
            expected = comb(abs(across) + abs(down), abs(down)) if free else 1
            assert count(len(every) + source, target) == expected


def route_of_chiu(topology: Topology, source: int, here: int, target: int) -> set[Direction]:
    """Return the available dimensions of function ROUTE of Chiu 2000 (for a node that is not the target)."""
    (sx, _), (cx, cy), (dx, dy) = (topology.position(item) for item in (source, here, target))
    e0, e1 = dx - cx, dy - cy
    vertical = Direction.SOUTH if e1 > 0 else Direction.NORTH
    if e0 == 0:
        return {vertical}
    if e0 > 0:
        if e1 == 0:
            return {Direction.EAST}
        result = set()
        if cx % 2 == 1 or cx == sx:
            result.add(vertical)
        if dx % 2 == 1 or e0 != 1:
            result.add(Direction.EAST)
        return result
    return {Direction.WEST, vertical} if cx % 2 == 0 and e1 != 0 else {Direction.WEST}


@pytest.mark.parametrize(("columns", "rows"), [(4, 4), (5, 3), (6, 5)])
def test_odd_even_allows_what_the_algorithm_of_chiu_does(columns: int, rows: int) -> None:
    topology = mesh(columns, rows)
    every, table = links(topology), choices("odd_even", topology)
    for source in range(topology.router_count):
        for target in range(topology.router_count):
            waiting = [len(every) + source] if source != target else []
            met = set()
            while waiting:
                arrival = waiting.pop()
                here = every[arrival].target if arrival < len(every) else source
                if here == target or arrival in met:
                    continue
                met.add(arrival)
                allowed = table[arrival][target]
                directions = {every[link].direction for link in allowed}
                assert directions == route_of_chiu(topology, source, here, target)
                waiting += allowed


def test_rings_are_refused_with_the_reason() -> None:
    torus = Topology(kind=TopologyKind.TORUS, columns=4, rows=4)
    with pytest.raises(RoutecastError, match="a ring is a cycle without a turn"):
        choices("west_first", torus)


def test_unknown_turn_model_names_the_nearest() -> None:
    with pytest.raises(RoutecastError, match='"odd_even"'):
        choices("oddeven", mesh(2, 2))


def test_nodes_of_one_router_share_its_choices() -> None:
    concentrated = Topology(kind=TopologyKind.CONCENTRATED_MESH, columns=3, rows=3, concentration=4)
    assert choices("odd_even", concentrated) == choices("odd_even", mesh(3, 3))
