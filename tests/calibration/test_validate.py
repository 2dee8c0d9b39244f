"""Validation as ``routecast validate`` shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

import routecast
from routecast.calibration import validate
from routecast.cli.run import run
from routecast.errors import FitProblem
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Point

DATA = Path(routecast.__file__).parent / "data"

SUMMARY = {
    "held_out",
    "mean_abs_error_ratio",
    "median_abs_error_ratio",
    "p90_abs_error_ratio",
    "max_abs_error_ratio",
    "coverage_50_ratio",
    "coverage_80_ratio",
    "coverage_95_ratio",
    "interval_log_width",
    "interval_score",
}

Tables = tuple[list[Point], list[Point]]


@pytest.mark.slow
def test_the_summary_covers_the_held_out_rows_alone(tables: Tables) -> None:
    calibrating, held_out = tables
    result = validate([*held_out, *calibrating])
    assert [row.role for row in result.rows] == ["held_out"] * 16 + ["calibrate"] * 4
    assert set(result.summary) == SUMMARY
    assert result.summary["held_out"] == 16
    assert result.summary["mean_abs_error_ratio"] == pytest.approx(
        fmean(abs(row.error_ratio) for row in result.rows if row.role == "held_out")
    )


@pytest.mark.slow
def test_the_result_is_plain_json_without_nan(tables: Tables) -> None:
    calibrating, held_out = tables
    for router in ("multicore", "eq5"):
        data = json.loads(json.dumps(validate([*calibrating, *held_out], router=router).to_json(), allow_nan=False))
        rates = {"calibrations", "series", "rows", "facts", "notes", "summary"}
        assert set(data) == {*rates, "latencies", "latency_summaries"}
        assert data["summary"]["held_out"] == 16


@pytest.mark.parametrize("file", ["studies/meyer2014-table2.csv", "measured/meyer2014.csv"])
@pytest.mark.slow
def test_the_table_of_measurements_that_ships_is_validated_and_its_coverage_is_printed(
    file: str, capsys: pytest.CaptureFixture[str], tables: Tables
) -> None:
    path = DATA / file
    assert run(["validate", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "Inside" in printed
    (errors,) = (line for line in printed.splitlines() if line.split()[-7:-6] == ["16"])
    assert errors.split()[-2] == "100"
    assert run(["validate", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["summary"]["held_out"] == len(tables[1]) == 16
    assert data["summary"]["coverage_95_ratio"] == 1.0


@pytest.mark.slow
def test_series_are_calibrated_apart(tables: Tables) -> None:
    calibrating, held_out = tables
    slow = [replace(p, series="slow", throughput_pps=p.throughput_pps / 2) for p in calibrating]
    result = validate([*calibrating, *held_out, *slow])
    assert [series.name for series in result.series] == ["Linux 3.7 IP forwarding", "slow"]
    alone = validate([*calibrating, *held_out])
    assert result.rows[:20] == alone.rows


def test_an_unknown_router_is_answered_with_the_nearest_known_one(tables: Tables) -> None:
    with pytest.raises(FitProblem, match="multicore"):
        validate(tables[0], router="multicor")


def test_a_row_of_latency_without_a_rate_is_no_prediction() -> None:
    points = parse_points("cores,throughput,latency_p50_us,latency_load\n1,2e6,,\n2,3.9e6,20,0.1\n")
    row = "cores,throughput,latency_p50_us,latency_load_pps\n1,2e6,,\n2,3.9e6,20,4e5\n2,,22,4e5\n4,,,\n"
    assert [len(validate(table).rows) for table in (points, parse_points(row))] == [2, 3]
