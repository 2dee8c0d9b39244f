"""The row that calibrations, the board and studies compare in."""

from __future__ import annotations

import math
from typing import Any

import pytest

from routecast.quantity.comparison import ComparedRow, coverage_ratio, held_out, summarise


def row(measured: float = math.nan, **more: Any) -> ComparedRow[str]:
    values = {"predicted": 110.0, "intervals": {0.5: (105.0, 115.0), 0.95: (90.0, 130.0)}, **more}
    return ComparedRow(conditions="64 B", measured=measured, **values)


def test_a_prediction_is_compared_with_the_measured_value_or_else_with_the_stated_one() -> None:
    assert row(100.0, stated=50.0).error_ratio == pytest.approx(0.1)
    assert row(stated=50.0).error_ratio == pytest.approx(1.2)
    assert row(100.0, stated=50.0).error_ratio_of(50.0) == pytest.approx(-0.5)
    assert math.isnan(row().error_ratio)


def test_rows_that_calibrate_or_have_nothing_known_do_not_judge() -> None:
    rows = [row(100.0), row(100.0, calibrates=True), row(), row(stated=100.0)]
    assert [each.role for each in rows] == ["held_out", "calibrate", "predicted", "held_out"]
    assert held_out(rows) == (rows[0], rows[3])


def test_the_interval_score_is_the_width_and_forty_times_the_miss() -> None:
    # Gneiting and Raftery 2007, eq. 43, with alpha = 0.05: width + (2/0.05)·miss, here in logarithms.
    assert row(100.0).interval_score == pytest.approx(math.log(130 / 90))
    assert row(150.0).interval_score == pytest.approx(math.log(130 / 90) + 40 * math.log(150 / 130))
    assert not row(100.0, intervals={}).is_covered


def test_coverage_counts_the_rows_inside_and_a_summary_only_rows_with_intervals() -> None:
    rows = [row(100.0), row(150.0), row(110.0), row(110.0, intervals={})]
    assert coverage_ratio(rows) == pytest.approx(0.5)
    assert math.isnan(coverage_ratio([]))
    summary = summarise(rows)
    assert (summary["held_out"], summary["coverage_95_ratio"]) == (4, pytest.approx(2 / 3))
    assert summary["max_abs_error_ratio"] == pytest.approx(40 / 150)
