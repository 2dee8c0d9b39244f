"""Study files of networks on chip: all their faults are reported at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from routecast.cli.app import app
from routecast.errors import FileProblem, Problem
from routecast.noc.study.document import NocStudy
from routecast.study.reading import find_study, read_study, shipped_studies, study_schema

CASE = """
[[case]]
name = "a"
title = "A"
topology = { columns = 2, rows = 2 }
traffic = { pattern = "uniform", load = [0.5, 1.0] }
"""
HEAD = 'kind = "noc"\nname = "toy"\ntitle = "A toy"\n'


def problems(folder: Path, text: str) -> dict[str, str]:
    """Places and messages of what is refused."""
    path = folder / "toy.study.toml"
    path.write_text(text)
    with pytest.raises(FileProblem) as caught:
        read_study(path)
    assert all(isinstance(problem, Problem) for problem in caught.value.problems)
    return {item.place: item.message for item in caught.value.problems}


def test_all_faults_of_all_cases_are_reported_at_once(tmp_path: Path) -> None:
    text = HEAD + CASE + 'maps = ["2p_se"]\nplanes = { allocations = ["search", "search"] }\n'
    text += '[[case.stated]]\ncurve = "serch"\nload = 0.7\nrelative_power = 0.5\nwhere = "p. 1"\nat_most = true\n'
    text += '[[case.own]]\ncurve = "serch"\nload = 0.7\nrelative_power = 0.5\nwhy = "ours"\n'
    text += CASE.replace('"uniform"', '"uniform", share = 0.6')
    result = problems(tmp_path, text)
    assert set(result) == {
        "case[0].planes.allocations[1]",
        "case[0].maps[0]",
        "case[0].stated[0].curve",
        "case[0].stated[0].load",
        "case[0].stated[0].at_most",
        "case[0].own[0].curve",
        "case[0].own[0].load",
        "case[1].name",
        "case[1].traffic.share",
    }
    assert result["case[0].stated[0].curve"].endswith('did you mean "search"?')
    assert result["case[0].maps[0]"].endswith('did you mean "2p_es"?')
    assert "0.5, 1" in result["case[0].stated[0].load"]
    assert "'a' is taken" in result["case[1].name"]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ('maps = ["optimum"]\nhas_optimum = false', "case[0].maps[0]"),
        ('maps = ["mini"]', "case[0].maps[0]"),
        ('maps = ["mini"]\nplanes = { count = 1 }', "case[0].maps[0]"),
        ("planes = { count = 1 }", "case[0].planes"),
        ("planes = { widths = [1.0] }", "case[0].planes"),
        ("[criteria]\nflit_ratio = 0.05", "criteria.flit_ratio"),
        ("[criteria]\nclosed = 0.5", "criteria.closed"),
        ("has_optimum = false\n[criteria]\ngap = 0.5", "criteria.gap"),
    ],
)
def test_a_curve_that_a_case_lacks_can_be_neither_drawn_nor_judged(tmp_path: Path, more: str, place: str) -> None:
    assert place in problems(tmp_path, f"{HEAD}{CASE}{more}\n")


@pytest.mark.parametrize(
    ("traffic", "place", "says"),
    [
        ('{ matrix = "none.csv" }', "case[0].traffic.matrix", "none.csv"),
        ('{ task_graph = "mpeg5" }', "case[0].traffic.task_graph", "mpeg4"),
        ('{ pattern = "transpose" }', "case[0].traffic.pattern", "square"),
    ],
)
def test_traffic_that_does_not_fit_is_refused_before_anything_is_computed(
    tmp_path: Path, traffic: str, place: str, says: str
) -> None:
    text = HEAD + CASE.replace('{ pattern = "uniform", load = [0.5, 1.0] }', traffic)
    result = problems(tmp_path, text.replace("rows = 2", "rows = 3"))
    assert list(result) == [place]
    assert says in result[place]


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("columns = 2", "columns = 0", "case[0].topology.columns"),
        ('name = "a"', 'name = "a/b"', "case[0].name"),
        ("[0.5, 1.0]", "[0.5, -1.0]", "case[0].traffic.load"),
        ('title = "A"\n', 'title = "A"\nmatrices = 0\n', "case[0].matrices"),
        ('title = "A"\n', 'title = "A"\nmatrixes = 3\n', "case[0].matrixes"),
    ],
)
def test_single_values_are_checked_with_their_place(tmp_path: Path, before: str, after: str, place: str) -> None:
    assert before in CASE
    assert place in problems(tmp_path, HEAD + CASE.replace(before, after))


@pytest.mark.parametrize("name", [name for name in shipped_studies() if name.startswith("noc_")])
def test_shipped_studies_of_networks_on_chip_are_free_of_contradictions(name: str) -> None:
    file = read_study(find_study(name))
    assert isinstance(file.study, NocStudy)
    assert file.study.name == name
    assert all(item.quote for case in file.study.case for item in case.stated)


def test_the_schema_of_the_kind_is_printed() -> None:
    printed = CliRunner().invoke(app, ["schema", "noc_study"])
    assert printed.exit_code == 0
    schema = json.loads(printed.stdout)
    assert schema == study_schema("noc_study")
    assert {"case", "flits", "criteria"} <= set(schema["properties"])
    assert {"name", "title", "topology", "traffic"} <= set(schema["$defs"]["Case"]["required"])
