"""The study of a cluster's energy: its folder, its criteria, and the physics of what it finds."""

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
def found(tmp_path_factory: pytest.TempPathFactory) -> ClusterResult:
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
def test_the_study_writes_its_folder(found: ClusterResult) -> None:
    assert {path.name for path in found.out.iterdir()} == {"summary.json", "report.html", "figures"}
    names = {path.stem for path in (found.out / "figures").iterdir()}
    assert names == {"traffic", "power", "energy", "price", "frontier", "machines", "mismatch", "switching"}
    summary = json.loads((found.out / "summary.json").read_text(encoding="utf-8"))
    assert summary["study"] == "msr_energy"
    assert len(summary["statements"]) == len(found.statements) == len(found.study.statement)
    page = (found.out / "report.html").read_text(encoding="utf-8")
    assert "0.8 kWh a day" in page


def test_the_t320_comparison_adds_up_with_24_back_end_routers_only(found: ClusterResult) -> None:
    # Li 2012, ch. 5: 16 balancers and "20 back-end routers" of 80 W and 400 $ each;
    # "The total power consumption is 3.2kWatts (1.92kWatts by back-end routers) and the total cost is $16,000".
    agree = {item.arithmetic.says: item.agrees for item in found.calculated}
    for says, agrees in agree.items():
        assert agrees == ("20 back-end routers" not in says or "links" in says)
    assert {entry.value for entry in found.calculated if not entry.agrees} == {1.6, 2.88, 14_400}
    summary = json.loads((found.out / "summary.json").read_text(encoding="utf-8"))
    assert len(summary["arithmetic"]) == len(found.calculated) == 7


@pytest.mark.slow
def test_all_criteria_are_met(found: ClusterResult) -> None:
    assert len(found.criteria) == 4
    assert [item.name for item in found.criteria if not item.is_met] == []


def test_more_budget_never_needs_more_energy(found: ClusterResult) -> None:
    energies = [goal_design.energy_j for goal_design in found.goal_designs]
    assert all(later <= earlier * 1.001 for earlier, later in pairwise(energies))
    # The first budget of the sweep buys no fleet that carries the peak.
    assert [item.price for item in found.frontier] == sorted(entry.price for entry in found.frontier)
    assert len(found.frontier) == 2


def test_a_fleet_needs_at_least_what_the_design_for_its_sampling_needs(found: ClusterResult) -> None:
    for run in (900.0, 3600.0):
        own = found.of_sampling(run, run)
        for designed in (900.0, 3600.0):
            other = found.of_sampling(designed, run)
            if not other.missed_ratio:
                assert other.kwh_per_day >= own.kwh_per_day * (1.0 - 0.001)
    assert found.of_sampling(3600.0, 3600.0).kwh_per_day == pytest.approx(
        found.answer.kwh_per_day(found.answer.design.energy_j), rel=0.001
    )


def test_patience_costs_energy_and_saves_switchings(found: ClusterResult) -> None:
    offline = [(payback.offline.schedule.switchings, payback.offline.schedule.energy_j) for payback in found.paybacks]
    for (more, less_j), (less, more_j) in pairwise(offline):
        assert less <= more
        assert more_j >= less_j
    # Without a payback there is nothing to weigh: on-line with the present known is off-line.
    free = found.paybacks[0]
    assert free.online.schedule.energy_j == pytest.approx(free.offline.schedule.energy_j, rel=1e-9)


def test_the_schema_of_cluster_studies_is_that_of_cluster_files_and_more() -> None:
    from routecast.study.reading import study_schema

    schema = study_schema("cluster_study")
    assert {"kind", "title", "traffic", "group"} <= set(schema["required"])
