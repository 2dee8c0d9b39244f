"""Reading ``*.study.toml`` and its tables of measurements."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, Problem, RoutecastError
from routecast.study.reading import find_study, read_study, shipped_studies, study_schema
from routecast.study.tables.run import read_measured

MINIMAL = """
name = "small"
title = "A small study"
router = { cores = 4, link = "10 Gbit/s" }
measurements = { calibrate = "t.csv", validate = "t.csv" }
"""
TABLE = "flows,frame_bytes,throughput_l1_bps\n1,64,1.2e9\n"


def written(folder: Path, text: str, table: str = TABLE) -> Path:
    (folder / "t.csv").write_text(table)
    path = folder / "small.study.toml"
    path.write_text(text)
    return path


def problems_of(folder: Path, text: str) -> dict[str, str]:
    with pytest.raises(FileProblem) as caught:
        read_study(written(folder, text))
    return {problem.place: problem.message for problem in caught.value.problems}


def test_a_minimal_study_gets_the_defaults(tmp_path: Path) -> None:
    study = read_study(written(tmp_path, MINIMAL)).study
    assert study.router.link == 10e9
    assert study.router.ports == 2
    assert study.evaluate.evaluators == ("solve", "simulate")


@pytest.mark.slow
def test_every_shipped_study_can_be_read() -> None:
    assert "meyer2014" in shipped_studies()
    for name in shipped_studies():
        assert read_study(find_study(name)).study.name == name


def test_a_study_reports_every_fault_at_once_with_its_place(tmp_path: Path) -> None:
    problems = problems_of(
        tmp_path,
        """
name = "small"
tittle = "x"
router = { cores = 0, link = "64 B" }
measurements = { calibrate = "t.csv", validate = "t.csv" }
[[scenario]]
name = "fig"
title = "t"
flows = [1]
frames = ["64 Mbit"]
""",
    )
    assert set(problems) == {"title", "tittle", "router.cores", "router.link", "scenario[0].frames[0]"}
    assert 'did you mean "title"?' in problems["tittle"]
    assert "64 Mbit" in problems["scenario[0].frames[0]"]


def test_an_unknown_key_of_a_nested_table_gets_the_nearest_known_one(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, MINIMAL + '[evaluate]\nduraton = "1 ms"\n')
    assert 'did you mean "duration"?' in problems["evaluate.duraton"]


def test_a_missing_table_file_is_reported_where_it_is_named(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, MINIMAL.replace('validate = "t.csv"', 'validate = "u.csv"'))
    assert "u.csv" in problems["measurements.validate"]


def test_an_unknown_study_suggests_the_nearest_name() -> None:
    with pytest.raises(FileProblem, match='did you mean "meyer2014"'):
        find_study("meier2014")


@given(text=st.text(max_size=200))
def test_no_text_makes_the_study_reader_fail_in_another_way(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.study.toml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass" if "\ud800" <= text[:1] <= "\udfff" else "replace")
    with pytest.raises(FileProblem):
        read_study(path)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(key=st.sampled_from(["router", "measurements", "evaluate", "scenario", "criteria", "load"]), value=values)
def test_no_value_in_a_table_of_a_study_makes_it_fail_in_another_way(key: str, value: object) -> None:
    from routecast.quantity.toml_file import validated
    from routecast.study.tables.document import Study

    document = tomllib.loads(MINIMAL) | {key: value}
    problems: tuple[Problem, ...] = ()
    try:
        validated(Study, document, "fuzz")
    except FileProblem as error:
        problems = error.problems
    assert all(problem.message for problem in problems)


def test_the_schema_names_every_table() -> None:
    assert {"router", "measurements", "evaluate", "scenario", "criteria"} <= set(study_schema()["properties"])


def test_table_ii_is_the_papers() -> None:
    # Meyer et al. 2014, Table II, column Err, in percent and in the order of the table.
    printed = (
        *(0.12, 0.15, -0.16, 0.18, -0.10, -0.73, -3.36, -3.57, -3.55, -3.33),
        *(-2.47, -2.37, -2.54, -1.66, 0.18, 0.20, 0.11, 1.23, 1.26, 1.47),
    )
    rows = read_measured(read_study(find_study("meyer2014")), "meyer2014-table2.csv")
    errors = [100.0 * (row.reported_pps / row.throughput_pps - 1.0) for row in rows]
    # The printed errors come from rates with more digits than the printed four.
    assert errors == pytest.approx(printed, abs=0.011)


def test_table_i_is_part_of_table_ii() -> None:
    study = read_study(find_study("meyer2014"))
    everything = {row.conditions: row for row in read_measured(study, "meyer2014-table2.csv")}
    some = read_measured(study, "meyer2014-table1.csv")
    assert len(some) == 4
    assert all(everything[row.conditions].throughput_pps == row.throughput_pps for row in some)
    assert {row.conditions for row in everything.values() if row.calibrate} == {row.conditions for row in some}


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ("flows,frame_bytes,throughput_l1_bps\n1,64,nan\n", "row 2, column throughput_l1_bps"),
        ("flows,frame_bytes,throughput_l1_bps\n1,63,1e9\n", "row 2, column frame_bytes"),
        ("flows,frame_bytes,throughput_l1_bps\n0,64,1e9\n", "row 2, column flows"),
        ("flows,frame_bytes,throughput_l1_bps\n1,64,-1\n", "row 2, column throughput_l1_bps"),
        ("flows,frame_bytes,throughput_l1_bps\n1,64,1e9\n1,64,2e9\n", "row 3"),
        ("flows,frame_bytes,throughput_l1_bps\n1,64,1e9,7\n", "row 2"),
        ("flows,frame_bytes\n1,64\n", "row 1"),
        ("flows,frame_bytes,throughput_l1_bps,cores\n1,64,1e9,8\n", "row 2, column cores"),
        ("flows,frame_bytes,throughput_l1_bps\n1,imix,1e9\n", "row 2, column frame_bytes"),
        ("flow,frame_bytes,throughput_pps\n1,64,1\n", "row 1, column flow"),
        ("flows,frame_bytes,throughput_pps\n", ""),
        ("flows,frame,throughput\n1,64,\n", "row 2, column throughput"),
    ],
)
def test_a_wrong_table_says_where(tmp_path: Path, table: str, place: str) -> None:
    study = read_study(written(tmp_path, MINIMAL, table))
    with pytest.raises(FileProblem) as caught:
        read_measured(study, "t.csv")
    assert place in [problem.place for problem in caught.value.problems]


@given(text=st.text(max_size=300))
def test_no_text_makes_the_table_reader_fail_in_another_way(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    study = read_study(written(folder, MINIMAL))
    (folder / "t.csv").write_text("flows,frame_bytes,throughput_pps\n" + text, encoding="utf-8", errors="replace")
    try:
        rows = read_measured(study, "t.csv")
    except RoutecastError:
        return
    assert rows
