"""Virtual-channel classes for any paths."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.noc.routing.deadlock import channel_cycle, layered
from routecast.noc.routing.model import Path, Routes
from routecast.noc.routing.policies import routes
from routecast.noc.topology import Topology, TopologyKind, link_numbers, links


@st.composite
def shortest_routes(draw: st.DrawFn, kind: TopologyKind) -> Routes:
    """Return one random shortest path for each of some flows: any turns at all."""
    topology = Topology(kind=kind, columns=draw(st.integers(2, 5)), rows=draw(st.integers(2, 5)))
    random = draw(st.randoms(use_true_random=False))
    paths = []
    for source in range(topology.router_count):
        for target in range(topology.router_count):
            router, chosen = source, []
            while router != target:
                link = link_numbers(topology)[router, random.choice(topology.productive(router, target))]
                chosen.append(link)
                router = links(topology)[link].target
            if chosen:
                paths.append(
                    Path(source=source, target=target, links=tuple(chosen), layers=(0,) * len(chosen), share=1.0)
                )
    random.shuffle(paths)
    return Routes(policy="random", topology=topology, paths=tuple(paths))


def without_layers(routing: Routes) -> list[tuple[int, int, tuple[int, ...], float]]:
    return [(path.source, path.target, path.links, path.share) for path in routing.paths]


@given(shortest_routes(TopologyKind.MESH))
@pytest.mark.slow
def test_shortest_paths_on_a_mesh_need_two_classes_at_most(given_routes: Routes) -> None:
    freed = layered(given_routes)
    assert channel_cycle(freed) is None
    assert without_layers(freed) == without_layers(given_routes)
    assert freed.layer_count <= 2
    # One class only where it is enough.
    assert (freed.layer_count == 1) == (channel_cycle(given_routes) is None)
    assert all(len(set(path.layers)) == 1 for path in freed.paths)


@given(shortest_routes(TopologyKind.TORUS))
@pytest.mark.slow
def test_shortest_paths_on_a_torus_need_six_classes_at_most(given_routes: Routes) -> None:
    freed = layered(given_routes)
    assert channel_cycle(freed) is None
    assert without_layers(freed) == without_layers(given_routes)
    assert freed.layer_count <= 6


@pytest.mark.parametrize("policy", ["o1turn", "4p_es", "romm", "valiant"])
@pytest.mark.parametrize("kind", [TopologyKind.MESH, TopologyKind.TORUS])
@pytest.mark.slow
def test_paths_with_detours_are_freed_too(policy: str, kind: TopologyKind) -> None:
    result = routes(policy, Topology(kind=kind, columns=4, rows=4))
    freed = layered(result)
    assert channel_cycle(freed) is None
    assert without_layers(freed) == without_layers(result)


def test_classes_that_were_not_needed_are_dropped() -> None:
    result = routes("xy", Topology(kind=TopologyKind.MESH, columns=3, rows=3))
    spread = replace(
        result,
        paths=tuple(replace(path, layers=(number % 4,) * len(path.links)) for number, path in enumerate(result.paths)),
    )
    assert spread.layer_count == 4
    assert layered(spread).layer_count == 1


def test_path_with_a_loop_is_refused_by_name() -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=2, rows=1)
    path = Path(source=0, target=1, links=(0, 1, 0), layers=(0, 0, 0), share=1.0)
    with pytest.raises(RoutecastError, match=r"from \(0, 0\) to \(1, 0\) comes back to one of its own links"):
        layered(Routes(policy="loop", topology=topology, paths=(path,)))
