"""Studies of networks on chip: their folder, how they resume, and curves against bounds."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars
import pytest
from typer.testing import CliRunner

from routecast.cli.app import app
from routecast.noc.study.document import Case, NocStudy, OwnCriterion, StatedPower
from routecast.noc.study.run import (
    CaseResult,
    NocResult,
    PowerPoint,
    closed_ratio,
    compared,
    criteria,
    own_comparisons,
    points_of_matrix,
)
from routecast.noc.study.views import page, terminal_summary
from routecast.study.engine import run_study
from routecast.study.reading import StudyFile, read_study

pytestmark = pytest.mark.slow


STUDY = """
kind = "noc"
name = "toy"
title = "A toy"
[[case]]
name = "drawn"
title = "Drawn"
matrices = 2
topology = { columns = 2, rows = 2 }
traffic = { pattern = "normal", permutations = 2, seed = 3, load = [0.5, 1.0], normalised_by = "xy" }
routing = { policies = ["xy"] }
planes = { allocations = ["balance", "four_phase", "search"], freedom = "plane" }
maps = ["search", "optimum"]
[[case]]
name = "summary"
title = "One"
topology = { columns = 3, rows = 3 }
traffic = { pattern = "transpose", load = [0.2, 1.0] }
routing = { policies = ["xy", "2p_es"] }
[[case.stated]]
curve = "2p_es"
relative_power = 0.25
where = "two paths halve the load of every link"
within = 1e-9
[criteria]
gap = 0.02
closed = 0.0
"""


def toy(folder: Path, text: str = STUDY) -> StudyFile[NocStudy]:
    path = folder / "toy.study.toml"
    path.write_text(text)
    file = read_study(path)
    assert isinstance(file.study, NocStudy)
    return file


def run(folder: Path, out: str, workers: int = 1, text: str = STUDY) -> NocResult:
    file = toy(folder, text)
    return run_study(file, folder / out, workers=workers)


def summary_of(out: Path) -> dict[str, Any]:
    """The summary but for how it was made."""

    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    text = (out / "summary.json").read_text(encoding="utf-8")
    summary = json.loads(text, parse_constant=refuse)
    assert isinstance(summary, dict)
    return {key: value for key, value in summary.items() if key != "made"}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> NocResult:
    return run(tmp_path_factory.mktemp("toy"), "out")


@pytest.mark.slow
def test_the_study_writes_its_folder(result: NocResult) -> None:
    assert {path.name for path in result.out.iterdir()} == {"results.parquet", "summary.json", "report.html", "figures"}
    drawn = {path.stem for path in (result.out / "figures").iterdir()}
    assert drawn == {"power_drawn", "saving_drawn", "power_summary"}
    assert polars.read_parquet(result.out / "results.parquet").height == 3
    page = (result.out / "report.html").read_text(encoding="utf-8")
    for table in terminal_summary(result).tables:
        assert table.title in page
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert page.count("Load of the links at load 1: drawn") >= 2


def test_points_are_of_the_power_without_scaling_and_percent_of_the_other_curve(tmp_path: Path) -> None:
    """At 0.8 of the load XY needs 0.8 cubed and 2P-ES, which halves every load, a quarter of it: 38.4 points, 75 %."""
    statements = "".join(
        f"""[[case.statement]]
says = "2P-ES saves, in {of}"
of = "{of}"
curve = "2p_es"
than = "xy"
stated = "a part"
section = "sec. 1"
quote = "a part"
"""
        for of in ("points", "less")
    )
    text = STUDY.replace("load = [0.2, 1.0]", "load = [0.4, 0.8]").replace(
        '[[case.stated]]\ncurve = "2p_es"', f'{statements}[[case.stated]]\nload = 0.8\ncurve = "2p_es"'
    )
    first, second = run(tmp_path, "out", text=text).statements
    assert first.here == "38.4 points of NoDVFS, a ratio of 75.0 %"
    assert second.here == "75.0 %"


def test_names_of_figures_and_anchors_are_unique_whatever_cases_are_called(result: NocResult) -> None:
    whole = page(result)
    anchors = [section.anchor for section in whole.sections]
    names = [figure.name for figure in whole.figures()]
    assert len(set(anchors)) == len(anchors)
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_the_summary_is_plain_json(result: NocResult) -> None:
    summary = summary_of(result.out)
    assert summary["study"] == "toy"
    curves = {item["curve"]: item for item in summary["cases"][1]["curves"]}
    # Transpose on 3 x 3: XY loads the link before a corner twice what each of two paths does.
    assert curves["xy"]["relative_power"][1] == pytest.approx(1.0)
    assert curves["2p_es"]["relative_power"][1] == pytest.approx(0.25)
    # At load 0.2 all of them run as slowly as alpha_max = 3 allows.
    assert curves["xy"]["relative_power"][0] == pytest.approx(0.2 / 9)
    assert summary["criteria"][0]["met"] is True


def test_no_policy_is_below_its_bounds(result: NocResult) -> None:
    for case in result.cases:
        for load in case.loads:
            for curve in ("xy", "2p_es", "balance", "mini", "four_phase", "search"):
                if curve not in case.curves:
                    continue
                # Routings split flows, allocations do not.
                bound = case.mean("optimum", load) if curve == "2p_es" else case.whole_flow_bound(load)
                assert case.mean(curve, load) >= bound * (1 - 1e-9)


@pytest.mark.slow
def test_a_killed_study_resumes_with_the_same_results(result: NocResult, tmp_path: Path) -> None:
    rows = polars.read_parquet(result.out / "results.parquet")
    marked = rows.filter(polars.col("matrix") != 1)
    (tmp_path / "out" / "results.parts").mkdir(parents=True)
    marked.write_parquet(tmp_path / "out" / "results.parts" / "000001.parquet")
    steps: list[int] = []
    file = toy(tmp_path)
    again = run_study(file, tmp_path / "out", workers=1, on_progress=lambda done, total, what: steps.append(done))
    assert again.provenance.resumed_trials == 2
    assert steps[0] == 2
    assert summary_of(tmp_path / "out") == summary_of(result.out)
    # A finished matrix is taken as it stands: what is forged there is found again.
    forged = rows.with_columns(polars.col("points").str.replace_all('"xy"', '"yx"'))
    (tmp_path / "forged").mkdir()
    forged.write_parquet(tmp_path / "forged" / "results.parquet")
    file = toy(tmp_path, STUDY.split("[[case.stated]]", maxsplit=1)[0])
    taken = run_study(file, tmp_path / "forged", workers=1)
    assert "yx" in taken.cases[0].curves


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_number_of_workers(result: NocResult, tmp_path: Path) -> None:
    run(tmp_path, "two", workers=2)
    assert summary_of(tmp_path / "two") == summary_of(result.out)


@pytest.mark.slow
def test_another_matrix_under_the_same_name_is_not_taken_for_the_finished_one(tmp_path: Path) -> None:
    text = STUDY.split("[[case]]", maxsplit=1)[0] + (
        '[[case]]\nname = "file"\ntitle = "F"\ntopology = { columns = 2, rows = 1 }\n'
        'traffic = { matrix = "m.csv", normalised_by = "none" }\nrouting = { policies = ["xy"] }\n'
    )
    (tmp_path / "m.csv").write_text("0,0.5\n0,0\n")
    first = run(tmp_path, "out", text=text)
    # One flow of half a link: alpha 2, a quarter of its power; at full clock it is 0.5, which is the unit.
    assert first.cases[0].mean("xy", 1.0) == pytest.approx(0.25)
    (tmp_path / "out" / "summary.json").unlink()
    (tmp_path / "m.csv").write_text("0,0.8\n0,0\n")
    second = run(tmp_path, "out", text=text)
    assert second.provenance.resumed_trials == 0
    assert second.cases[0].mean("xy", 1.0) == pytest.approx(0.64)


def test_an_overloaded_link_leaves_a_gap_and_not_a_wrong_mean(tmp_path: Path) -> None:
    text = STUDY.split("[[case]]", maxsplit=1)[0] + (
        '[[case]]\nname = "over"\ntitle = "O"\ntopology = { columns = 2, rows = 1 }\n'
        "traffic = { flows = [{ from = [0, 0], to = [1, 0], rate = 1.0 }], load = [0.5, 2.0], "
        'normalised_by = "none" }\nrouting = { policies = ["xy"] }\n[criteria]\ngap = 0.1\n'
    )
    over = run(tmp_path, "out", text=text)
    item = over.cases[0]
    assert item.mean("no_dvfs", 0.5) == pytest.approx(0.5)
    assert item.mean("xy", 0.5) == pytest.approx(0.125)
    assert all(math.isnan(item.mean(curve, 2.0)) for curve in item.curves)
    summary = summary_of(tmp_path / "out")
    assert summary["cases"][0]["curves"][1]["relative_power"] == [pytest.approx(0.125), None]
    # No optimum at a load is no gap that is met.
    assert [criterion.is_met for criterion in over.criteria] == [False]


def by_hand(case: Case, **powers: tuple[float, ...]) -> CaseResult:
    points = tuple(
        PowerPoint(curve=curve, matrix=matrix, load=1.0, relative_power=power, alphas=())
        for curve, of_matrices in powers.items()
        for matrix, power in enumerate(of_matrices)
    )
    return CaseResult(case=case.model_copy(update={"matrices": 2}), points=points)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return toy(tmp_path).study.case[0]


def test_the_least_is_the_larger_bound_of_each_matrix(case: Case) -> None:
    item = by_hand(
        case, no_dvfs=(1.0, 1.0), four_phase=(0.5, 0.5), search=(0.3, 0.3), whole_flows=(0.3, 0.1), optimum=(0.1, 0.2)
    )
    assert item.whole_flow_bound(1.0) == pytest.approx(0.25)
    assert item.factor("search", 1.0) == pytest.approx(1 / 0.3)
    assert closed_ratio(item, 1.0) == pytest.approx(0.2 / 0.25)


@pytest.mark.parametrize(
    ("before", "ours", "closed"), [(0.5, 0.2, 1.0), (0.5, 0.5, 0.0), (0.5, 0.8, -1.0), (0.2, 0.2, 1.0), (0.2, 0.3, 0.0)]
)
def test_the_closed_ratio_is_a_share_of_the_distance(case: Case, before: float, ours: float, closed: float) -> None:
    pairs = {"four_phase": before, "search": ours, "optimum": 0.2}
    item = by_hand(case, **{curve: (power, power) for curve, power in pairs.items()})
    assert closed_ratio(item, 1.0) == pytest.approx(closed)


@pytest.mark.parametrize(("at_most", "power", "met"), [(True, 0.1, True), (False, 0.1, False), (True, 0.3, False)])
def test_a_limit_may_be_undercut_and_a_stated_value_may_not(
    result: NocResult, case: Case, at_most: bool, power: float, met: bool
) -> None:
    stated = StatedPower(curve="xy", relative_power=0.2, where="p. 1", within=0.1, at_most=at_most)
    item = by_hand(case.model_copy(update={"stated": (stated,)}), xy=(power, power))
    study = NocStudy(kind="noc", name="hand", title="By hand", case=(item.case,))
    judged = replace(result, study=study, cases=(item,), compared=compared((item,)))
    assert [criterion.is_met for criterion in criteria(judged)] == [met]


@pytest.mark.parametrize(("power", "met"), [(0.1, True), (0.2, True), (0.3, False)])
def test_a_criterion_of_the_study_is_a_limit_and_no_stated_value(
    result: NocResult, case: Case, power: float, met: bool
) -> None:
    own = OwnCriterion(curve="xy", relative_power=0.2, why="ours")
    item = by_hand(case.model_copy(update={"own": (own,)}), xy=(power, power))
    study = NocStudy(kind="noc", name="hand", title="By hand", case=(item.case,))
    judged = replace(result, study=study, cases=(item,), compared=compared((item,)), own=own_comparisons((item,)))
    assert [criterion.is_met for criterion in criteria(judged)] == [met]
    assert not judged.compared
    assert [table.title for table in terminal_summary(judged).tables if table.name == "own"] == [
        "Criteria of the study"
    ]


def test_seeds_of_matrices_follow_one_another(case: Case, tmp_path: Path) -> None:
    second = points_of_matrix(case, 1, tmp_path)
    later = case.model_copy(update={"traffic": case.traffic.model_copy(update={"seed": 4})})
    routed = later.model_copy(update={"routing": case.routing.model_copy(update={"seed": 2})})
    assert second == [replace(point, matrix=1) for point in points_of_matrix(routed, 0, tmp_path)]


@pytest.mark.slow
def test_a_missed_criterion_ends_the_command_with_1(tmp_path: Path) -> None:
    text = STUDY.split("[[case]]", maxsplit=1)[0] + "[[case]]" + STUDY.rsplit("[[case]]", maxsplit=1)[1]
    file = toy(tmp_path, text.replace("0.25", "0.2").replace("closed = 0.0\n", ""))
    done = CliRunner().invoke(app, ["study", str(file.path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "summary, 2P-ES" in done.output
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_ctrl_c_leaves_finished_matrices_and_no_processes(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]], until: Callable[..., None]
) -> None:
    file = toy(tmp_path, STUDY.replace("matrices = 2", "matrices = 1000"))
    command = [sys.executable, "-c", "from routecast.cli import main; import sys; sys.exit(main())"]
    study = start(
        [*command, "study", str(file.path), "--out", str(tmp_path / "out")],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    until(lambda: any((tmp_path / "out").glob("results.parts/*.parquet")), "a matrix is finished", study)
    # As a terminal does: to all processes of the command.
    os.killpg(study.pid, signal.SIGINT)
    output, _ = study.communicate(timeout=120)
    assert study.returncode == 130
    assert "Finished work is in" in output
    assert "Traceback" not in output
    assert polars.read_parquet(tmp_path / "out" / "results.parquet").height >= 1
    assert not (tmp_path / "out" / "summary.json").exists()
    until(lambda: is_gone(study.pid), "all its processes end")


def is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False
