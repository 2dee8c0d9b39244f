"""Files of networks on chip: their cases, and the messages about wrong files."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import routecast
from routecast.errors import FileProblem, QuantityProblem, RoutecastError
from routecast.noc.file import NocCase, NocChange, noc_schema, parse_lengths, parse_loads, parse_noc, read_noc
from routecast.noc.routing.model import link_loads

EXAMPLES = sorted((Path(routecast.__file__).parents[3] / "examples").glob("*.noc.toml"))

SMALL = """
[topology]
columns = 3
rows = 2
[traffic]
pattern = "uniform"
"""


def faults(text: str, folder: Path | None = None) -> dict[str, str]:
    with pytest.raises(FileProblem) as caught:
        parse_noc(text, folder=folder)
    return {problem.place: problem.message for problem in caught.value.problems}


def bottleneck(case: NocCase, load: float) -> float:
    return max(float(link_loads(routes, case.demand(load)).max()) for routes in case.routings)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_names_its_source_and_carries_its_loads_at_full_clock(path: Path) -> None:
    case = read_noc(path)
    assert case.sources
    if case.normalised_by == "none":
        assert bottleneck(case, max(case.loads)) <= 1
    else:
        assert bottleneck(case, 1.0) == pytest.approx(1.0)


def test_the_worst_of_all_compared_routings_is_full_at_load_1_or_xy_alone_is() -> None:
    text = SMALL.replace('"uniform"', '"hot_spot"\nnodes = [[2, 0]]') + '[routing]\npolicies = ["yx", "xy"]\n'
    compared = parse_noc(text)
    assert bottleneck(compared, 1.0) == pytest.approx(1.0)
    by_xy = parse_noc(text.replace('"hot_spot"', '"hot_spot"\nnormalised_by = "xy"'))
    assert float(link_loads(by_xy.xy, by_xy.demand(1.0)).max()) == pytest.approx(1.0)
    # YX leads more of it over one link, so that comparing it leaves XY room.
    assert float(link_loads(compared.xy, compared.demand(1.0)).max()) < 1.0


def test_flows_between_places_are_a_matrix() -> None:
    text = """
    [topology]
    kind = "concentrated_mesh"
    columns = 2
    rows = 2
    concentration = 2
    [traffic]
    normalised_by = "none"
    flows = [{ from = [0, 0], to = [1, 1, 1], rate = 0.5 }, { from = [1, 0, 1], to = [0, 0], rate = 0.25 }]
    """
    case = parse_noc(text)
    wanted = np.zeros((8, 8))
    wanted[0, 7], wanted[3, 0] = 0.5, 0.25
    np.testing.assert_array_equal(case.traffic.demand, wanted)
    assert case.demand(2.0)[0, 3] == 1.0


def test_a_matrix_lies_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "demand.csv").write_text("0,1,0\n0,0,2\n0,0,0\n", encoding="utf-8")
    path = tmp_path / "line.noc.toml"
    path.write_text(
        '[topology]\ncolumns = 3\nrows = 1\n[traffic]\nmatrix = "demand.csv"\nload = 0.5\n', encoding="utf-8"
    )
    case = read_noc(path)
    assert case.name == "line"
    assert case.traffic.name == "demand"
    # Load 1 fills the link that carries 2 of the file's units.
    np.testing.assert_allclose(case.demand(0.5), [[0, 0.25, 0], [0, 0, 0.5], [0, 0, 0]])


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ("0,1\n0,0\n", ("2 x 2", "6 nodes")),
        ("0,1,2\n0,0\n0,1,2\n", ("row 1", "square")),
        ("\n".join(["0,0,0,0,0,-3"] + ["0,0,0,0,0,0"] * 5), ("row 0, column 5", "from 0 to")),
    ],
)
def test_a_matrix_that_is_not_square_negative_or_of_another_size_is_refused(
    tmp_path: Path, matrix: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "wrong.csv").write_text(matrix, encoding="utf-8")
    with pytest.raises(FileProblem) as caught:
        parse_noc(SMALL.replace('pattern = "uniform"', 'matrix = "wrong.csv"'), folder=tmp_path)
    assert all(word in str(caught.value) for word in ("wrong.csv", *words))


@pytest.mark.parametrize("rate", ["1e308", "1e-300"])
def test_rates_that_no_fabric_has_are_refused_and_do_not_overflow(rate: str) -> None:
    text = SMALL.replace('pattern = "uniform"', f"flows = [{{ from = [0, 0], to = [1, 1], rate = {rate} }}]")
    with pytest.raises(FileProblem, match="check its units") as caught:
        parse_noc(text)
    assert caught.value.problems[0].place == "traffic.flows"


def test_every_fault_is_reported_at_once_with_its_place_and_the_nearest_name() -> None:
    result = faults(
        """
        [topology]
        columns = 3
        rows = "2"
        [traffic]
        pattern = "hot_spots"
        share = 1.5
        lod = 0.5
        [routing]
        policies = ["xy", "adaptiv"]
        [simulation]
        allocator = "islp"
        packet_flits = "5-"
        """
    )
    assert set(result) == {
        "topology.rows",
        "traffic.pattern",
        "traffic.share",
        "traffic.lod",
        "routing.policies[1]",
        "simulation.allocator",
        "simulation.packet_flits",
    }
    for place, name in (
        ("traffic.pattern", "hot_spot"),
        ("traffic.lod", "load"),
        ("routing.policies[1]", "adaptive"),
        ("simulation.allocator", "islip"),
    ):
        assert f'did you mean "{name}"?' in result[place]


def test_contradictions_are_reported_at_once_too() -> None:
    result = faults(
        """
        [topology]
        columns = 3
        rows = 2
        concentration = 2
        [traffic]
        pattern = "uniform"
        matrix = "demand.csv"
        share = 0.5
        nodes = [[3, 0]]
        [routing]
        policies = ["xy", "xy"]
        [power]
        alpha_max = 0.5
        asleep = 0.0
        [planes]
        count = 3
        widths = [1.0, 0.5]
        [simulation]
        on_cycles = 20.0
        queueing = "virtual_output_queues"
        virtual_channels = 2
        routing = "yx"
        """
    )
    assert set(result) == {
        "topology",
        "traffic",
        "traffic.share",
        "traffic.nodes",
        "traffic.nodes[0]",
        "routing.policies[1]",
        "power.alpha_max",
        "power.asleep",
        "planes",
        "simulation.on_cycles",
        "simulation.virtual_channels",
        "simulation.routing",
    }
    assert "at least 1" in result["power.alpha_max"]
    assert "[2, 1, 1]" in result["traffic.nodes[0]"]


@pytest.mark.parametrize("planes", ["count = 1", "widths = [0.5]"])
def test_one_plane_leaves_nothing_to_allocate(planes: str) -> None:
    assert set(faults(SMALL + f"[planes]\n{planes}\n")) == {"planes"}


def test_a_grid_whose_traffic_matrix_would_fill_the_memory_is_refused() -> None:
    text = '[topology]\ncolumns = {0}\nrows = {0}\n[traffic]\npattern = "neighbour"\n'
    with pytest.raises(FileProblem, match=r"topology: has 65,536 nodes: .* at most 4,096"):
        parse_noc(text.format(256))
    assert parse_noc(text.format(12)).topology.node_count == 144


def test_a_map_that_does_not_fit_the_mesh_is_refused() -> None:
    graph = SMALL.replace('pattern = "uniform"', 'task_graph = "mpeg4"')
    assert "3 x 2" in faults(graph)["traffic.task_graph"]
    placed = graph.replace("columns = 3", "columns = 4").replace("rows = 2", "rows = 4")
    assert "last node" in faults(placed + "mapping = { vu = [4, 0] }\n")["traffic.mapping.vu"]


def test_traffic_that_crosses_no_link_cannot_be_normalised() -> None:
    text = SMALL.replace('pattern = "uniform"', "flows = [{ from = [0, 0], to = [0, 0], rate = 1.0 }]")
    assert "same source and target" in faults(text)["traffic.flows[0]"]


def test_the_command_line_replaces_loads_routings_and_seeds() -> None:
    text = SMALL + "[simulation]\nloads = [0.9]\n"
    case = parse_noc(text, change=NocChange(load="0.5, 0.2", routings="yx,romm", simulated="odd_even", seed=7))
    assert case.loads == (0.2, 0.5)
    assert [routes.policy for routes in case.routings] == ["yx", "romm"]
    assert case.simulation is not None
    assert (case.simulation.loads, case.simulation.routing, case.simulation.seed) == (None, ("odd_even",), 7)
    with pytest.raises(RoutecastError, match=r'--routing.*did you mean "romm"'):
        parse_noc(text, change=NocChange(routings="rom"))
    with pytest.raises(RoutecastError, match="--load"):
        parse_noc(text, change=NocChange(load="0.2,-1"))


def test_the_schema_describes_every_key() -> None:
    tables = noc_schema()["$defs"].values()
    bare = [name for table in tables for name, key in table["properties"].items() if "description" not in key]
    assert bare == []
    assert {"topology", "traffic"} <= set(noc_schema()["required"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_matches_the_schema(path: Path) -> None:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    assert list(Draft202012Validator(noc_schema()).iter_errors(document)) == []


@given(st.lists(st.floats(min_value=1e-6, max_value=100), min_size=1, max_size=6))
def test_loads_read_the_same_as_a_list_and_as_a_text(loads: list[float]) -> None:
    assert parse_loads(loads) == parse_loads(", ".join(map(repr, loads))) == tuple(loads)


@pytest.mark.parametrize("wrong", [[], 0, -0.5, float("inf"), float("nan"), True, "0.5;0.6", "", [0.5, None]])
def test_an_invalid_list_of_loads_is_refused(wrong: object) -> None:
    with pytest.raises(QuantityProblem):
        parse_loads(wrong)


@given(st.integers(1, 60), st.integers(0, 20))
def test_a_range_of_lengths_holds_each_once(least: int, more: int) -> None:
    assert parse_lengths(f"{least}-{least + more}") == tuple(range(least, least + more + 1))


@pytest.mark.parametrize("wrong", [0, 1.5, "8", "9-5", "5-99999999999", [], [4, 0], True, None])
def test_an_invalid_length_is_refused(wrong: object) -> None:
    with pytest.raises(QuantityProblem):
        parse_lengths(wrong)
