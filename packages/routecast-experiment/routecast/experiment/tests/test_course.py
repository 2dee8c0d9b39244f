"""One run of an experiment over time: simulated again, judged, and on the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from routecast.experiment.answer import rerun_over_time
from routecast.experiment.model import Results
from routecast.experiment.tests import experiment_results as examples
from routecast.experiment.views import write_experiment

ROUTER = {
    "builder": "multicore",
    "cores": 1,
    "service": {"per_packet": "1 us"},
    "load": {"rate": "0.9 Mpps", "arrivals": {"kind": "poisson"}},
}


def simulated(*, is_steadied: bool = True, unsteady: dict[int, str] | None = None) -> Results:
    """Return results whose runs hold a real router; what they answered is made up."""
    results = examples.results_of(examples.experiment(is_steadied=is_steadied), examples.paper_value, unsteady=unsteady)
    return replace(results, runs=tuple(replace(run, document=ROUTER, duration_s=0.05) for run in results.runs))


def test_the_course_is_that_of_the_first_run_that_is_not_steady() -> None:
    course = rerun_over_time(simulated(unsteady={3: "still rising", 5: "still rising"}))
    assert course is not None
    assert course.run == 3
    assert len(course.trial.over_time) == 1000
    # 0.9 Mpps come and one core forwards 1 Mpps.
    assert course.verdict.mean == pytest.approx(0.9e6, rel=0.02)


def test_the_same_run_goes_the_same_way_again() -> None:
    first, second = rerun_over_time(simulated()), rerun_over_time(simulated())
    assert first is not None
    assert first.run == 0
    assert first == second


def test_there_are_no_rates_over_time_without_a_request_or_a_router() -> None:
    assert rerun_over_time(simulated(is_steadied=False)) is None
    assert rerun_over_time(examples.broken()) is None  # its runs hold no router


def test_the_page_and_the_folder_show_the_course_with_its_verdict(tmp_path: Path) -> None:
    results = simulated(unsteady={3: "still rising"})
    write_experiment(results, examples.analyses_of(results), tmp_path)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Throughput over time of run 4 (packet size 1500 B, queue manager stub, parse threads 4)" in html
    assert "mean since the start" in html
    assert (tmp_path / "figures" / "over-time.svg").exists()
