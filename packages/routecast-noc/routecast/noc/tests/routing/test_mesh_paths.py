"""Routings of a mesh by their rules, against their paths written out one by one."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.noc.routing._mesh_paths import MeshPaths, Rule
from routecast.noc.routing.deadlock import channel_cycle
from routecast.noc.routing.model import link_loads
from routecast.noc.routing.policies import routes
from routecast.noc.topology import Topology, TopologyKind, links

RULES = ("xy", "yx", "o1turn", "2p_rs", "4p_es", "romm", "valiant")


def mesh(columns: int, rows: int) -> Topology:
    return Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)


@given(policy=st.sampled_from(RULES), columns=st.integers(1, 5), rows=st.integers(2, 5), seed=st.integers(0, 2**32 - 1))
def test_loads_by_the_rule_are_the_sums_over_all_paths(policy: str, columns: int, rows: int, seed: int) -> None:
    topology = mesh(columns, rows)
    draw = np.random.default_rng(seed)
    size = topology.router_count
    demand = draw.random((size, size)) * (draw.random((size, size)) < 0.3)
    result = routes(policy, topology, seed=seed)
    listed = replace(result, paths=tuple(result.paths))
    np.fill_diagonal(demand, 0.0)
    assert link_loads(result, demand) == pytest.approx(link_loads(listed, demand), abs=1e-12)
    # What a router sends itself is on no link.
    with_own = demand + np.diag(draw.random(size))
    assert link_loads(result, with_own) == pytest.approx(link_loads(listed, demand), abs=1e-12)


@pytest.mark.parametrize("policy", RULES)
def test_packets_wait_for_no_channel_but_those_that_the_rule_says(policy: str) -> None:
    topology = mesh(4, 3)
    result = routes(policy, topology)
    assert isinstance(result.paths, MeshPaths)
    dependencies = set(result.paths.dependencies())
    classes = result.layer_count
    met = {
        (before[0] * classes + before[1], after[0] * classes + after[1])
        for path in result.paths
        for before, after in pairwise(zip(path.links, path.layers, strict=True))
    }
    assert met <= dependencies
    if policy not in ("romm", "4p_es"):
        assert met == dependencies
    every = links(topology)
    for held, requested in dependencies:
        assert every[held // classes].target == every[requested // classes].source


@pytest.mark.parametrize("policy", RULES)
def test_a_grid_of_1024_routers_cannot_deadlock_and_its_middle_links_carry_what_the_bisection_says(policy: str) -> None:
    topology = mesh(32, 32)
    result = routes(policy, topology)
    assert channel_cycle(result) is None
    size = topology.router_count
    # All of one row of the left half to the same row of the right half, and back.
    demand = np.zeros((size, size))
    left, right = np.arange(16) + 32 * 20, np.arange(16, 32) + 32 * 20
    demand[left, right[::-1]] = demand[right, left[::-1]] = 0.01
    loads = link_loads(result, demand)
    middle = [
        number
        for number, link in enumerate(links(topology))
        if link.source % 32 == 15 and link.target == link.source + 1
    ]
    # Over any router, half of the packets cross on their first leg and the others on the second.
    assert loads[middle].sum() == pytest.approx(16 * 0.01)


def test_one_order_in_both_classes_would_be_a_cycle_if_the_classes_were_one() -> None:
    topology = mesh(3, 3)
    result = routes("o1turn", topology)
    flat = tuple(replace(path, layers=(0,) * len(path.links)) for path in result.paths)
    assert channel_cycle(replace(result, paths=flat)) is not None
    assert channel_cycle(result) is None


def test_rules_can_be_pickled_and_a_torus_has_none() -> None:
    result = MeshPaths(mesh(3, 2), Rule.OVER_ANY, 1)
    copy = pickle.loads(pickle.dumps(result))
    assert copy == result
    assert tuple(copy) == tuple(result)
    assert copy != MeshPaths(mesh(3, 2), Rule.OVER_RECTANGLE, 1)
    torus = Topology(kind=TopologyKind.TORUS, columns=3, rows=3)
    assert isinstance(routes("xy", torus).paths, tuple)
