"""Running a study: what is compared, what is written, what survives a kill."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars
import pytest

from routecast.errors import FileProblem
from routecast.evaluate.ledger import Ledger, Row
from routecast.evaluate.points import Point
from routecast.study.engine import run_study
from routecast.study.reading import StudyFile, find_study, read_study
from routecast.study.tables import run as study_run
from routecast.study.tables.run import COLUMNS, offered_load


@pytest.fixture
def meyer() -> StudyFile:
    return read_study(find_study("meyer2014"))


@pytest.mark.usefixtures("fake_laws")
@pytest.mark.slow
def test_a_study_writes_its_whole_folder_and_nothing_half_written(meyer: StudyFile, tmp_path: Path) -> None:
    result = run_study(meyer, tmp_path)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {
        "report.html",
        "results.parquet",
        "summary.json",
        *(f"figures/{name}.svg" for name in ("fig8a", "fig8b", "fig9a", "fig9b", "errors")),
    }
    assert polars.read_parquet(tmp_path / "results.parquet").height == result.provenance.trials
    assert json.loads((tmp_path / "summary.json").read_text())["study"] == "meyer2014"


@pytest.mark.usefixtures("fake_laws")
@pytest.mark.parametrize(
    ("flows", "sentence"), [([100, 50], "8 busy cores under 100 random flows forward"), ([2], "2 busy cores forward")]
)
@pytest.mark.slow
def test_a_scenario_may_have_random_flows_alone_or_one_number_of_crafted_ones(
    flows: list[int], sentence: str, meyer: StudyFile, tmp_path: Path
) -> None:
    scenarios = [scenario.model_copy(update={"flows": flows}) for scenario in meyer.study.scenario]
    study = meyer.study.model_copy(update={"scenario": scenarios})
    run_study(replace(meyer, study=study), tmp_path)
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert sentence in report
    assert "cores cost each other" not in report  # it takes two numbers of crafted flows to tell


@pytest.mark.usefixtures("fake_laws")
@pytest.mark.slow
def test_the_papers_law_gives_back_the_papers_simulated_column(meyer: StudyFile, tmp_path: Path) -> None:
    # Meyer et al. 2014, Table II, column D_sim. Links are full in the rows named here.
    link_limited = {(1, 1024), (1, 1518), (3, 512)}
    for row in run_study(meyer, tmp_path).comparisons:
        bound = 0.011 if (row.point.flows, row.point.frame_bytes) in link_limited else 0.007
        assert row.baseline_pps == pytest.approx(row.stated, rel=bound)


@pytest.mark.usefixtures("fake_laws")
@pytest.mark.slow
def test_only_the_rows_of_table_i_count_as_calibrating(meyer: StudyFile, tmp_path: Path) -> None:
    result = run_study(meyer, tmp_path)
    calibrating = {(row.point.flows, row.point.frame_bytes) for row in result.comparisons if row.calibrates}
    assert calibrating == {(1, 64), (1, 512), (4, 64), (4, 256)}
    assert result.errors()["solve"].points == 16
    # Meyer 2014, Table II: the mean of the absolute printed errors over all 20 rows is 1.44 %, the largest 3.57 %.
    assert result.errors_everywhere()["reported"].mean_abs_error_ratio == pytest.approx(0.0144, abs=5e-5)
    assert result.errors_everywhere()["reported"].max_abs_error_ratio == pytest.approx(0.0357, abs=5e-5)


@pytest.mark.usefixtures("fake_laws")
@pytest.mark.slow
def test_an_interrupted_study_leaves_its_finished_trials_and_goes_on_from_them(
    meyer: StudyFile, tmp_path: Path
) -> None:
    def interrupt(done: int, total: int, what: str) -> None:
        if done == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(meyer, tmp_path, on_progress=interrupt)
    assert polars.read_parquet(tmp_path / "results.parquet").height == 40
    assert not (tmp_path / "summary.json").exists()
    assert run_study(meyer, tmp_path).provenance.resumed_trials == 40


@pytest.mark.usefixtures("fake_laws")
@pytest.mark.slow
def test_a_resumed_study_gives_the_same_results(meyer: StudyFile, tmp_path: Path) -> None:
    def interrupt(done: int, total: int, what: str) -> None:
        if done == 25:
            raise KeyboardInterrupt

    whole = run_study(meyer, tmp_path / "whole").to_json()
    with pytest.raises(KeyboardInterrupt):
        run_study(meyer, tmp_path / "stopped", on_progress=interrupt)
    resumed = run_study(meyer, tmp_path / "stopped").to_json()
    del whole["made"], resumed["made"]
    assert resumed == whole


@pytest.mark.usefixtures("fake_laws")
@pytest.mark.slow
def test_a_complete_study_is_started_anew(meyer: StudyFile, tmp_path: Path) -> None:
    run_study(meyer, tmp_path)
    assert run_study(meyer, tmp_path).provenance.resumed_trials == 0


@pytest.mark.usefixtures("fake_laws")
@pytest.mark.parametrize("text", ['{"study": "other"}', "{}", "[1]", "not JSON"])
def test_a_folder_with_another_summary_is_refused_and_left_alone(meyer: StudyFile, tmp_path: Path, text: str) -> None:
    (tmp_path / "summary.json").write_text(text)
    (tmp_path / "results.parquet").write_bytes(b"precious")
    with pytest.raises(FileProblem, match="another folder"):
        run_study(meyer, tmp_path)
    assert (tmp_path / "summary.json").read_text() == text
    assert (tmp_path / "results.parquet").read_bytes() == b"precious"


@pytest.mark.slow
def test_a_killed_process_loses_half_a_second_of_trials_at_most(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]], until: Callable[..., None]
) -> None:
    code = f"""
import time
from pathlib import Path
from routecast.evaluate.ledger import Ledger
from routecast.evaluate.points import Point
from routecast.study.tables.run import COLUMNS
with Ledger(Path({str(tmp_path)!r}), COLUMNS) as ledger:
    for number in range(10**9):
        ledger.add({{"task": str(number), "law": "x"}})
        time.sleep(0.01)
"""
    child = start([sys.executable, "-c", code])
    until(lambda: len(list((tmp_path / "results.parts").glob("*.parquet"))) >= 2, "two parts are written", child)
    child.kill()
    child.wait(timeout=60)
    with Ledger(tmp_path, COLUMNS) as ledger:
        numbers = sorted(int(key) for key in ledger.rows)
    assert len(numbers) >= 2
    assert numbers == list(range(len(numbers)))


def test_a_part_that_was_being_written_when_the_process_died_is_not_read(tmp_path: Path) -> None:
    row: Row = {"task": "a", "law": "x"}
    with Ledger(tmp_path, COLUMNS) as ledger:
        ledger.add(row)
    (tmp_path / "results.parts").mkdir()
    (tmp_path / "results.parts" / "000007.parquet.unfinished").write_bytes(b"PAR1")
    with Ledger(tmp_path, COLUMNS) as ledger:
        assert set(ledger.rows) == {"a"}


def test_the_key_of_a_task_is_its_content(meyer: StudyFile) -> None:
    import fakes

    laws = [fakes.PaperLaw()]
    point = Point(cores=4, link_bps=10e9, flows=2, frame_bytes=64, throughput_pps=math.nan)
    other = replace(point, frame_bytes=128)
    first, again, different = (
        [task.key for task in study_run._tasks(meyer.study, laws, each)] for each in (point, point, other)
    )
    assert first == again
    assert not set(first) & set(different)


def test_odd_and_even_flows_go_opposite_ways_and_offer_every_link_in_full() -> None:
    # Meyer et al. 2014, sec. VI-A: odd flows from E1 to E2, even flows back, 20 Gbit/s together.
    load = offered_load(Point(cores=4, link_bps=10e9, flows=3, frame_bytes=512, throughput_pps=math.nan), 1)
    assert [(flow.ingress, flow.egress) for flow in load.flows.flows] == [(0, 1), (1, 0), (0, 1)]
    assert load.rate_pps * 8 * (512 + 20) == pytest.approx(20e9)
