"""The sentences of a study's page: each speaks of the row that it names, with the figures of that row."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import fakes
import pytest

from routecast.load.frames import FrameMix
from routecast.show.page import Page
from routecast.study.engine import run_study
from routecast.study.reading import find_study, read_study
from routecast.study.tables.document import Study
from routecast.study.tables.run import TablesResult
from routecast.study.tables.views import calibration_table, error_table, forecast_table, throughput_figure
from routecast.study.tables.views import page as page_of

pytestmark = pytest.mark.usefixtures("fake_laws")


def studied(folder: Path, cores: int, flows: tuple[int, ...], **changed: object) -> TablesResult:
    """Run the shipped study with one scenario of so many cores and flows."""
    file = read_study(find_study("meyer2014"))
    assert isinstance(file.study, Study)
    measured, forecast = file.study.scenario
    scenario = forecast.model_copy(
        update={"cores": cores, "flows": flows, "frames": (FrameMix.fixed(64), FrameMix.fixed(512)), **changed}
    )
    study = file.study.model_copy(update={"scenario": (measured, scenario)})
    return run_study(replace(file, study=study), folder)


def spoken(page: Page) -> tuple[str, str]:
    """Return the answer on top and the lead of the forecast."""
    return page.answer, next(section.lead for section in page.sections if section.anchor == "fig9")


@pytest.mark.parametrize(
    ("flows", "row", "load"),
    [
        ((1, 2, 4, 6, 100), 6, "With 6 cores and"),
        ((1, 2, 4, 100), 100, "With 6 cores, 100 random flows and"),
        ((1, 2, 4), 4, "With 6 cores, 4 of them busy, and"),
        ((1,), 1, "With 6 cores, 1 of them busy, and"),
        ((100, 1000), 1000, "With 6 cores, 1000 random flows and"),
    ],
)
@pytest.mark.slow
def test_the_summary_of_a_forecast_is_the_row_with_most_busy_cores(
    tmp_path: Path, flows: tuple[int, ...], row: int, load: str
) -> None:
    result = studied(tmp_path, 6, flows)
    answer, lead = spoken(page_of(result))
    shown = {(cells[0], cells[1]): cells[2] for cells in forecast_table(result, "fig9").rows}
    for text, outcome in (
        (answer, re.search(r"forward \*\*([\d.]+) Mpps\*\* of 64-byte", answer)),
        (lead, re.search(r"forwards? ([\d.]+) Mpps of 64-byte", lead)),
    ):
        assert outcome, text
        # Screens show four digits.
        assert float(outcome.group(1)) == pytest.approx(shown[row, 64], rel=1e-3)
    assert load in answer


@pytest.mark.parametrize("flows", [(1, 2, 4), (2, 4), (4,), (2, 4, 100)])
@pytest.mark.slow
def test_a_caption_says_that_cores_cost_each_other_what_the_law_says(tmp_path: Path, flows: tuple[int, ...]) -> None:
    caption = throughput_figure(studied(tmp_path, 6, flows), "fig9", unit="pps").caption
    result = re.search(r"c\(4\) = ([\d.]+)", caption)
    assert result, caption
    # Meyer et al. 2014, eq. 7: how many times longer a frame takes where four cores work.
    longer = fakes.core_service_s(4, 64) / fakes.core_service_s(1, 64)
    assert float(result.group(1)) == pytest.approx(longer, rel=1e-3)


def test_a_statement_of_flows_that_the_scenario_does_not_have_is_not_judged(tmp_path: Path) -> None:
    result = studied(tmp_path, 6, (1,))
    assert result.links_filled == ()
    assert [statement.here.split(":")[0] for statement in result.statements] == ["not judged"]
    assert {item.name for item in result.criteria} == {"mean_over_all", "mean_over_held_out", "max_over_held_out"}


def test_nothing_is_reported_of_the_cost_of_other_cores_where_one_works_or_links_limit(tmp_path: Path) -> None:
    result = studied(tmp_path, 6, (1,))
    assert "c(" not in throughput_figure(result, "fig9", unit="pps").caption
    full = tuple(replace(row, limit="link") for row in result.scenarios["fig9"])
    caption = throughput_figure(replace(result, scenarios={"fig9": full}), "fig9", unit="pps").caption
    assert "limited by the links" in caption


@pytest.mark.slow
def test_the_points_that_calibrate_are_counted_where_none_of_them_is_compared_with(tmp_path: Path) -> None:
    file = read_study(find_study("meyer2014"))
    assert isinstance(file.study, Study)
    table = (file.folder / file.study.measurements.validate_with).read_text().splitlines()
    known = (file.folder / file.study.measurements.calibrate).read_text().splitlines()
    (tmp_path / "known.csv").write_text("\n".join(known) + "\n")
    seen = {tuple(line.split(",")[:2]) for line in known}
    others = [line for line in table if tuple(line.split(",")[:2]) not in seen]
    (tmp_path / "others.csv").write_text("\n".join([table[0], *others]) + "\n")
    measurements = file.study.measurements.model_copy(update={"calibrate": "known.csv", "validate_with": "others.csv"})
    study = file.study.model_copy(update={"measurements": measurements})
    result = run_study(replace(file, study=study, path=tmp_path / "x.study.toml"), tmp_path / "out")
    page = page_of(result)
    # Table I(a) of the paper has four points, the rest of Table II 16.
    assert page.answer.startswith("Calibrated from **4 measured points**, the model is within")
    assert "of 16 others" in page.answer
    calibrating = calibration_table(result)
    assert [cells[:2] for cells in calibrating.rows] == [(1, 64), (1, 512), (4, 64), (4, 256)]
    assert "calibrate from the same 4" in error_table(result).caption
