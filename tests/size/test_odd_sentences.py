"""Sentences that say nothing: ±0 %, a range of one value, percentages with exponents, chances above 1."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from in_process import completed

from routecast.calibration import fit
from routecast.calibration.next_points import NextPoint
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Point
from routecast.quantity import format_ratio, format_span

TABLE = "cores,frame,throughput_mpps,link_gbps,shared_queue\n1,64,1.0,100,no\n2,64,1.9,100,no\n4,64,3.6,100,no\n"
QUAD = Path(__file__).parents[2] / "examples" / "multicore.router.toml"


@pytest.fixture
def points() -> Sequence[Point]:
    return parse_points(TABLE)


def test_every_chance_lies_between_0_and_1(points: Sequence[Point]) -> None:
    fitted = fit(points)
    for goal_pps in (1.0, 1e3, 1e5, 9e5, 2.5e6, 1e9):
        assert all(0.0 <= chance <= 1.0 for chance in fitted.chances(points, goal_pps))


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0.11, 0.06, "shrink from ±11% to about ±6%"),
        (0.03, 0.002, "shrink from ±3% to about ±0.2%"),
        (0.03, 0.0, "shrink from ±3% to about less than ±0.1%"),
        (0.0, 0.0, "stay at less than ±0.1%"),
        (0.25, 0.25, "stay at ±25%"),
    ],
)
def test_a_next_measurement_never_promises_0_percent(before: float, after: float, text: str) -> None:
    widths = [2.0 * math.log1p(ratio) for ratio in (before, after)]
    point = NextPoint(
        point=Point(cores=2, frame_bytes=64, throughput_pps=1e6), width_before=widths[0], width_after=widths[1]
    )
    assert text in str(point)
    assert point.narrows == (before != after)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["0.5Mpps", "2.5Mpps", "3.3Mpps", "20Mpps", "90Mpps"])
@pytest.mark.parametrize("counts", ["4", "1..4", "1..64"])
def test_no_answer_names_a_precision_of_0_or_a_range_of_one_value(tmp_path: Path, target: str, counts: str) -> None:
    (tmp_path / "points.csv").write_text(TABLE)
    output = completed("size", str(tmp_path / "points.csv"), "--target", target, "--cores", counts).stdout
    assert "±0%" not in output
    assert not re.search(r"\b([\d.]+) to \1 ", output)
    assert not re.search(r"\d e?\+\d+ %", output)


def test_a_router_file_has_no_range_of_one_value_either() -> None:
    output = completed("size", str(QUAD), "--target", "90Mpps", "--cores", "8").stdout
    assert "8 is the only one to choose from" in output


@pytest.mark.parametrize(
    ("low", "high", "text"), [("8", "8", "8"), ("1", "64", "1 to 64"), ("2 Mpps", "2 Mpps", "2 Mpps")]
)
def test_a_range_of_one_value_is_that_value(low: str, high: str, text: str) -> None:
    assert format_span(low, high) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (13.9, "1390 %"),
        (0.0139, "1.39 %"),
        (99.99, "10000 %"),
        (-13.9, "-1390 %"),
        (1e-6, "0.0001 %"),
        (836.0, "83600 %"),
    ],
)
def test_a_percentage_has_no_exponent(ratio: float, text: str) -> None:
    assert format_ratio(ratio) == text


def test_a_remark_on_falling_rates_names_what_cores_share(points: Sequence[Point]) -> None:
    plain = parse_points("cores,throughput_mpps\n1,1\n2,1.4\n3,1.45\n")
    fitted = fit(plain)
    remarks = fitted.remarks([Point(cores=64, frame_bytes=64, throughput_pps=math.nan)])
    assert remarks
    assert all(re.search(r"(a lock or a queue|a cache or a bus) that all cores share", remark) for remark in remarks)
