"""Scenarios of a study: the conditions that they may have, and that the page names those that vary."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from routecast.errors import FileProblem
from routecast.evaluate.points import Point
from routecast.load.frames import FrameMix
from routecast.quantity.toml_file import parse_toml
from routecast.study.engine import run_study
from routecast.study.reading import find_study, read_study
from routecast.study.tables.document import Scenario, Study
from routecast.study.tables.run import TablesResult, offered_load
from routecast.study.tables.views import forecast_table, terminal_summary, throughput_figure
from routecast.study.tables.views import page as page_of

SHIPPED = find_study("meyer2014")


def scenario_of(text: str) -> Scenario:
    return Scenario(**{"name": "new", "title": "New", **parse_toml(text, "scenario")})


def studied(folder: Path, text: str) -> TablesResult:
    """Calibrate the shipped study and predict one scenario by closed form."""
    file = read_study(SHIPPED)
    assert isinstance(file.study, Study)
    evaluate = file.study.evaluate.model_copy(update={"evaluators": ("solve",)})
    study = file.study.model_copy(update={"scenario": (scenario_of(text),), "evaluate": evaluate})
    result = run_study(replace(file, study=study), folder)
    assert isinstance(result, TablesResult)
    return result


def test_a_condition_may_be_a_value_or_several() -> None:
    plain, listed = scenario_of('cores = 8\nframes = "IMIX"'), scenario_of('cores = [8]\nframes = ["IMIX"]')
    assert plain == listed
    assert plain.frames == (FrameMix.imix(),)
    assert plain.flows is None
    assert scenario_of('cores = [5, 6, 8]\nlink = ["10 Gbit/s", "1 Gbit/s"]\nframes = ["64 B", "IMIX"]').count == 12


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ('cores = [4, "8"]', "scenario[0].cores[1]", "whole number"),
        ("ports = [0]", "scenario[0].ports[0]", "1"),
        ('nic_cap = "10 Gbit/s"', "scenario[0].nic_cap[0]", "a bit rate"),
        ('link = "10 Mpps"', "scenario[0].link[0]", "a frame rate"),
        ("flow = 4", "scenario[0].flow", 'did you mean "flows"'),
        (f"flows = {list(range(1, 10_002))}", "scenario[0]", "10,001 combinations"),
    ],
)
def test_a_wrong_condition_is_reported_with_its_place(tmp_path: Path, line: str, place: str, message: str) -> None:
    (tmp_path / "t.csv").write_text("flows,frame_bytes,throughput_l1_bps\n1,64,1.2e9\n")
    path = tmp_path / "small.study.toml"
    path.write_text(f"""
name = "small"
title = "A small study"
router = {{ cores = 4, link = "10 Gbit/s" }}
measurements = {{ calibrate = "t.csv", validate = "t.csv" }}
[[scenario]]
name = "new"
title = "New"
frames = "64 B"
{line}
""")
    with pytest.raises(FileProblem) as caught:
        read_study(path)
    messages = {problem.place: problem.message for problem in caught.value.problems}
    assert message in messages[place]


def test_without_a_number_of_flows_they_fill_cores_and_ports_evenly() -> None:
    for cores, ports in ((3, 2), (4, 1), (5, 4)):
        point = Point(cores=cores, ports=ports, link_bps=10e9, frame_bytes=64, throughput_pps=math.nan)
        load = offered_load(point, 1)
        assert load.flows.share_per_core(cores) == pytest.approx([1 / cores] * cores)
        by_port = dict.fromkeys(range(ports), 0.0)
        for flow in load.flows.flows:
            by_port[flow.ingress] += flow.weight / load.flows.total_weight
        assert by_port == pytest.approx(dict.fromkeys(range(ports), 1 / ports))
        # 14,880,952 frames of 64 B fill a link of 10 Gbit/s (RFC 2544 appendix A, scaled).
        assert load.rate_pps == pytest.approx(ports * 14_880_952, rel=1e-6)


@pytest.mark.slow
def test_cards_links_and_one_way_traffic_limit_mixes_as_they_must(tmp_path: Path) -> None:
    text = 'cores = [4, 8]\nlink = "10 Gbit/s"\nports = [1, 2]\nnic_cap = "6 Mpps"\nframes = ["64 B", "IMIX", "1518 B"]'
    result = studied(tmp_path, text)
    rates: dict[tuple[Any, ...], float] = {
        (e.point.cores, e.point.ports, e.frames): e.predicted for e in result.scenarios["new"]
    }
    limits = {(e.point.cores, e.point.ports, e.frames): e.limit for e in result.scenarios["new"]}
    # The card's cap; the links' with 20 B of gap and preamble a frame (S1).
    assert rates[8, 2, "64 B"] == pytest.approx(6e6, rel=1e-3)
    assert limits[8, 2, "64 B"] == "nic"
    assert rates[8, 1, "IMIX"] == pytest.approx(10e9 / (8 * (FrameMix.imix().mean_bytes + 20)), rel=1e-3)
    assert rates[8, 1, "1518 B"] == pytest.approx(10e9 / (8 * 1538), rel=1e-3)
    assert rates[8, 2, "1518 B"] == pytest.approx(2.0 * rates[8, 1, "1518 B"], rel=1e-3)
    # A frame of the mix costs a core what one of its mean size costs: between the smallest and the largest.
    assert rates[4, 2, "64 B"] >= rates[4, 2, "IMIX"] >= rates[4, 2, "1518 B"]


@pytest.mark.usefixtures("fake_laws")
def test_the_table_and_the_page_name_the_conditions_that_vary(tmp_path: Path) -> None:
    text = 'cores = [2, 3]\nlink = ["10 Gbit/s", "50 Gbit/s"]\nports = 1\nframes = ["64 B", "512 B"]'
    result = studied(tmp_path, text)
    table = forecast_table(result, "new")
    assert [column.title for column in table.columns][:4] == ["Cores", "Link", "Flows", "Frame"]
    assert table.rows[0][:4] == (2, 10.0, "every core", 64)
    assert "With 1 port." in table.caption
    figure = throughput_figure(result, "new", unit="pps")
    assert {"2 cores, links of 10 Gbit/s", "3 cores, links of 50 Gbit/s"} <= {mark.name for mark in figure.marks}
    page = page_of(result)
    lead = next(section.lead for section in page.sections if section.anchor == "new")
    assert lead.startswith("3 busy cores with links of 10 Gbit/s, 1 port forward ")
    assert "With 3 cores and links of 10 Gbit/s, 1 port, it would forward" in page.answer


@pytest.mark.usefixtures("fake_laws")
def test_a_mix_alone_has_a_table_and_no_line(tmp_path: Path) -> None:
    result = studied(tmp_path, 'frames = "IMIX"')
    assert result.curves["new"] == {}
    section = next(section for section in page_of(result).sections if section.anchor == "new")
    assert "of IMIX (95 % interval" in section.lead
    assert [row[:2] for row in forecast_table(result, "new").rows] == [("every core", "IMIX")]
    assert "new" in [table.name for table in terminal_summary(result).tables]
    assert not list(tmp_path.glob("figures/new*"))
