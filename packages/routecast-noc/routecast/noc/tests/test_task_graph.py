"""Task graphs: the shipped figures, mappings of tasks to nodes, and the messages about wrong files."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from routecast.errors import FileProblem, RoutecastError
from routecast.noc.task_graph import (
    TASK_GRAPHS,
    TaskGraph,
    best_mapping,
    mapped,
    parse_task_graph,
    placed,
    task_graph,
    tiles_of,
)
from routecast.noc.topology import Topology, TopologyKind

MESH_4X4 = Topology(kind=TopologyKind.MESH, columns=4, rows=4)
MEGABYTE = 1e6

SMALL = """
name = "three in a row"
tasks = ["a", "b", "c"]
flow = [{ from = "a", to = "b", rate = "100 MB/s" }, { from = "b", to = "c", rate = "50 MB/s" }]
grid = [["a", "b"], ["", "c"]]
"""


def rate_hops(rates: NDArray[np.float64], topology: Topology, tiles: tuple[int, ...]) -> float:
    """Return the sum over flows of rate times shortest hops, the numerator of Li (2012), eq. 6.1."""
    hops = [[topology.distance(source, target) for target in tiles] for source in tiles]
    return float((rates * np.array(hops)).sum())


def small() -> TaskGraph:
    return parse_task_graph(SMALL, "small.taskgraph.toml")


def test_the_mpeg_4_decoder_has_the_published_number_of_cores_and_bandwidths() -> None:
    # 12 cores; the 13 bandwidths of the core graph in Bertozzi et al. (IEEE TPDS 16(2), 2005) sum to 3466 MB/s.
    graph = task_graph("mpeg4")
    rates = graph.rates_bytes_per_s
    assert len(graph.tasks) == 12
    np.testing.assert_array_equal(rates, rates.T)
    assert np.count_nonzero(np.triu(rates)) == 13
    assert np.triu(rates).sum() == pytest.approx(3466 * MEGABYTE)
    # The memory that most others exchange with.
    assert graph.tasks[int(rates.sum(axis=0).argmax())] == "sdram"


def test_the_vopd_is_a_pipeline_that_ends_at_its_memory() -> None:
    graph = task_graph("vopd")
    assert (len(graph.tasks), len(graph.flows)) == (12, 15)
    rate = {(flow.source, flow.target): flow.rate_bytes_per_s / MEGABYTE for flow in graph.flows}
    chain = ("vld", "run_le_dec", "inv_scan", "acdc_pred", "iquan", "idct", "up_samp", "vop_rec", "pad", "vop_mem")
    along = [rate[pair] for pair in itertools.pairwise(chain)]
    assert along == [70, 362, 362, 362, 357, 353, 300, 313, 313]


@pytest.mark.parametrize("name", TASK_GRAPHS)
def test_every_shipped_graph_names_its_sources(name: str) -> None:
    graph = task_graph(name)
    assert len(graph.source) >= 3
    assert graph.notes


@pytest.mark.parametrize("name", TASK_GRAPHS)
def test_mapping_keeps_all_traffic_and_gives_each_task_a_node(name: str) -> None:
    graph = task_graph(name)
    tiles = placed(graph, MESH_4X4)
    assert len(set(tiles)) == 12
    traffic = mapped(graph, MESH_4X4, link_rate_bytes_per_s=1e9)
    assert traffic.demand.sum() == pytest.approx(sum(flow.rate_bytes_per_s for flow in graph.flows) / 1e9)
    for flow in graph.flows:
        source, target = (tiles[graph.tasks.index(task)] for task in (flow.source, flow.target))
        assert traffic.demand[source, target] == pytest.approx(flow.rate_bytes_per_s / 1e9)


@pytest.mark.parametrize("name", TASK_GRAPHS)
def test_different_starts_find_the_same_least_rate_times_hops(name: str) -> None:
    rates = task_graph(name).rates_bytes_per_s
    first, second = (rate_hops(rates, MESH_4X4, best_mapping(rates, MESH_4X4, seed=seed)) for seed in (1, 2))
    assert first == pytest.approx(second)
    # Every flow crosses one link or more.
    assert first >= rates.sum()


@given(seed=st.integers(min_value=0, max_value=10_000))
@pytest.mark.slow
def test_best_mapping_finds_what_trying_all_places_finds(seed: int) -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=3, rows=2)
    random = np.random.default_rng(seed)
    rates = random.integers(0, 100, size=(5, 5)) * (random.random((5, 5)) < 0.5) * 1.0
    np.fill_diagonal(rates, 0)
    least = min(rate_hops(rates, topology, tiles) for tiles in itertools.permutations(range(6), 5))
    assert rate_hops(rates, topology, best_mapping(rates, topology, starts=60)) == pytest.approx(least)


def test_on_a_large_grid_all_flows_of_a_star_cross_one_link() -> None:
    """A router of a mesh has four neighbours, so four tasks that send to a fifth find places beside it."""
    rates = np.zeros((5, 5))
    rates[1:, 0] = (1.0, 2.0, 3.0, 4.0)
    topology = Topology(kind=TopologyKind.MESH, columns=256, rows=4)
    assert rate_hops(rates, topology, best_mapping(rates, topology, starts=20)) == rates.sum()


def test_best_mapping_is_the_same_for_the_same_seed() -> None:
    rates = task_graph("vopd").rates_bytes_per_s
    assert best_mapping(rates, MESH_4X4, seed=5) == best_mapping(rates, MESH_4X4, seed=5)


def test_without_a_link_rate_the_largest_flow_is_one() -> None:
    traffic = mapped(small(), Topology(kind=TopologyKind.MESH, columns=2, rows=2))
    assert traffic.demand.max() == 1
    assert traffic.demand[0, 1] == 1
    assert traffic.demand[1, 3] == 0.5


def test_a_mapping_may_be_by_order_or_by_name() -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=3, rows=2)
    assert tiles_of(small(), topology, [5, 4, 3]) == tiles_of(small(), topology, {"c": 3, "a": 5, "b": 4})


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ([0, 1], "2 nodes for 3 tasks"),
        ([0, 1, 4], '"c" on node 4: a 2 x 2 mesh has the nodes 0 to 3'),
        ([0, 1, 1], '"b" and "c" are both on node 1'),
        ({"a": 0, "b": 1, "d": 2}, 'task "d" is not known'),
        ({"a": 0, "b": 1}, 'task "c" has no node'),
        ({"a": 2}, 'the 2 tasks "b", "c" have no node'),
        ({"a": 2, "b": 2}, '"a" and "b" are both on node 2: give each its own; task "c" has no node'),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(mapping: Any, words: str) -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
    with pytest.raises(RoutecastError, match=words):
        mapped(small(), topology, mapping)


def test_a_map_of_another_size_than_the_mesh_is_refused() -> None:
    with pytest.raises(RoutecastError, match=r"mapped to 2 x 2 routers and the mesh has 4 x 4"):
        mapped(small(), MESH_4X4)


def test_more_tasks_than_nodes_are_refused() -> None:
    with pytest.raises(RoutecastError, match="has 12 tasks and a 3 x 3 mesh has 9 nodes"):
        mapped(task_graph("mpeg4"), Topology(kind=TopologyKind.MESH, columns=3, rows=3))


def test_an_unknown_graph_is_answered_with_the_nearest() -> None:
    with pytest.raises(RoutecastError, match='did you mean "mpeg4"'):
        task_graph("mpeg-4")


def test_a_graph_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.taskgraph.toml"
    path.write_text(SMALL, encoding="utf-8")
    assert task_graph(path).tasks == ("a", "b", "c")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('to = "b"', 'to = "bb"', 'task "bb" is not known: did you mean "b"'),
        ('to = "b"', 'to = "a"', '"a" sends to itself'),
        ("100 MB/s", "100 apples", "flow[0].rate"),
        ('"a", "b", "c"]', '"a", "b", "c", "a"]', '"a" is named twice'),
        ('["", "c"]', '["", "x"]', 'grid[1][1]: task "x" is not known'),
        ('["", "c"]', '["a", "c"]', 'grid[1][0]: task "a" is already at grid[0][0]'),
        ('["", "c"]', '["", ""]', 'task "c" has no tile'),
        ('["", "c"]', '["c"]', "grid[1]: has 1 tiles, but the first row 2"),
        ("name =", "nmae =", 'did you mean "name"'),
        ('from = "b", to = "c"', 'from = "a", to = "b"', '"a" to "b" is listed twice'),
    ],
)
def test_a_wrong_file_is_refused_with_place_and_fault(old: str, new: str, words: str) -> None:
    with pytest.raises(FileProblem) as refused:
        parse_task_graph(SMALL.replace(old, new), "small.taskgraph.toml")
    assert words in str(refused.value)
