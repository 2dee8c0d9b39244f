"""The study of a cluster's energy: its folder, its criteria, and the physics of its results."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from routecast.plan.cluster.study.document import ClusterStudy
from routecast.plan.cluster.study.run import ClusterResult
from routecast.study.document import StudyFile
from routecast.study.engine import run_study
from routecast.study.reading import find_study, read_study

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> ClusterResult:
    """The shipped study over five days, with short sweeps."""
    file = read_study(find_study("msr_energy"))
    assert isinstance(file.study, ClusterStudy)
    data = file.study.model_copy(
        update={
            "saving": replace(file.study.saving, days=5),
            "sweep": file.study.sweep.model_copy(update={"budgets": (1000, 2000, 2500), "payback": (0.0, 60.0, 600.0)}),
            "mismatch": file.study.mismatch.model_copy(update={"steps": (900.0, 3600.0)}),
        }
    )
    assert isinstance(data, ClusterStudy)
    return run_study(StudyFile(study=data, path=file.path), tmp_path_factory.mktemp("study") / "out")


@pytest.mark.slow
def test_the_study_writes_its_folder(result: ClusterResult) -> None:
    assert {path.name for path in result.out.iterdir()} == {"summary.json", "report.html", "figures"}
    names = {path.stem for path in (result.out / "figures").iterdir()}
    assert names == {"traffic", "power", "energy", "price", "frontier", "machines", "mismatch", "switching"}
    summary = json.loads((result.out / "summary.json").read_text(encoding="utf-8"))
    assert summary["study"] == "msr_energy"
    assert len(summary["statements"]) == len(result.statements) == len(result.study.statement)
    page = (result.out / "report.html").read_text(encoding="utf-8")
    assert "0.8 kWh a day" in page


def test_the_t320_comparison_adds_up_with_24_back_end_routers_only(result: ClusterResult) -> None:
    # Li 2012, ch. 5: 16 balancers and "20 back-end routers" of 80 W and 400 $ each;
    # "The total power consumption is 3.2kWatts (1.92kWatts by back-end routers) and the total cost is $16,000".
    agree = {row.arithmetic.says: row.agrees for row in result.calculated}
    for says, agrees in agree.items():
        assert agrees == ("20 back-end routers" not in says or "links" in says)
    assert {row.value for row in result.calculated if not row.agrees} == {1.6, 2.88, 14_400}
    summary = json.loads((result.out / "summary.json").read_text(encoding="utf-8"))
    assert len(summary["arithmetic"]) == len(result.calculated) == 7


@pytest.mark.slow
def test_all_criteria_are_met(result: ClusterResult) -> None:
    assert len(result.criteria) == 4
    assert [criterion.name for criterion in result.criteria if not criterion.is_met] == []


def test_more_budget_never_needs_more_energy(result: ClusterResult) -> None:
    energies = [goal_design.energy_j for goal_design in result.goal_designs]
    assert all(later <= earlier * 1.001 for earlier, later in pairwise(energies))
    # The first budget of the sweep buys no fleet that carries the peak.
    assert [design.price for design in result.frontier] == sorted(design.price for design in result.frontier)
    assert len(result.frontier) == 2


def test_a_fleet_needs_at_least_what_the_design_for_its_sampling_needs(result: ClusterResult) -> None:
    for run in (900.0, 3600.0):
        own = result.sampling_run(run, run)
        for designed in (900.0, 3600.0):
            other = result.sampling_run(designed, run)
            if not other.missed_ratio:
                assert other.kwh_per_day >= own.kwh_per_day * (1.0 - 0.001)
    assert result.sampling_run(3600.0, 3600.0).kwh_per_day == pytest.approx(
        result.answer.kwh_per_day(result.answer.design.energy_j), rel=0.001
    )


def test_patience_costs_energy_and_saves_switchings(result: ClusterResult) -> None:
    offline = [(payback.offline.schedule.switchings, payback.offline.schedule.energy_j) for payback in result.paybacks]
    for (more, less_j), (less, more_j) in pairwise(offline):
        assert less <= more
        assert more_j >= less_j
    # Without a payback there is nothing to weigh: on-line with the present known is off-line.
    free = result.paybacks[0]
    assert free.online.schedule.energy_j == pytest.approx(free.offline.schedule.energy_j, rel=1e-9)


def test_the_schema_of_cluster_studies_is_that_of_cluster_files_and_more() -> None:
    from routecast.study.reading import study_schema

    schema = study_schema("cluster_study")
    assert {"kind", "title", "traffic", "group"} <= set(schema["required"])
