"""Sums over all hops of all paths."""

from __future__ import annotations

import gc
import pickle
from dataclasses import replace

import numpy as np
import pytest

from routecast.noc.routing import model
from routecast.noc.routing.model import Path, Routes, hop_flow, link_loads
from routecast.noc.routing.policies import routes
from routecast.noc.topology import Topology, TopologyKind, links

MESH = Topology(kind=TopologyKind.MESH, columns=4, rows=3)


def one_by_one(routing: Routes, demand: np.ndarray) -> np.ndarray:
    loads = np.zeros(len(links(routing.topology)))
    for path in routing.paths:
        for link in path.links:
            loads[link] += path.share * demand[path.source, path.target]
    return loads


@pytest.mark.parametrize("policy", ["xy", "romm", "valiant"])
def test_loads_are_those_of_a_walk_along_every_path(policy: str) -> None:
    result = routes(policy, MESH)
    for seed in (1, 2):
        demand = np.random.default_rng(seed).random((12, 12))
        assert link_loads(result, demand) == pytest.approx(one_by_one(result, demand))
        assert hop_flow(result, demand) == pytest.approx(one_by_one(result, demand).sum())


def test_path_that_comes_over_a_link_twice_loads_it_twice() -> None:
    there, back = 0, next(n for n, link in enumerate(links(MESH)) if (link.source, link.target) == (1, 0))
    path = Path(source=0, target=1, links=(there, back, there), layers=(0, 0, 0), share=0.5)
    loads = link_loads(Routes(policy="loop", topology=MESH, paths=(path,)), np.ones((12, 12)))
    assert loads[[there, back]] == pytest.approx([1.0, 0.5])


def test_no_path_loads_nothing() -> None:
    loads = link_loads(Routes(policy="none", topology=MESH, paths=()), np.ones((12, 12)))
    assert loads == pytest.approx(np.zeros(len(links(MESH))), abs=0)


@pytest.mark.slow
def test_the_cache_drops_routes_that_are_deleted() -> None:
    gc.collect()
    before = len(model._HOPS_OF_ROUTES)
    result = routes("xy", replace(MESH, kind=TopologyKind.TORUS))
    link_loads(result, np.ones((12, 12)))
    assert len(model._HOPS_OF_ROUTES) == before + 1
    del result
    gc.collect()
    assert len(model._HOPS_OF_ROUTES) == before


def test_routes_can_be_pickled() -> None:
    result = routes("xy", MESH)
    copy = pickle.loads(pickle.dumps(result))
    assert copy.paths == result.paths
    assert copy.topology == result.topology
