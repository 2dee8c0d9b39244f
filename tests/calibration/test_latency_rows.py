"""Latency rows of a table: what the curve of some says of others, and what is not stated."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import pytest

from routecast.calibration import fit, validate
from routecast.calibration.advice import AdviceQuestion, advise
from routecast.calibration.latency import LatencyAdvice, LatencyPrediction, MeasuredLatency, measured_latency
from routecast.calibration.latency.views import latency_figure
from routecast.calibration.views import validation_page
from routecast.cli.run import run
from routecast.errors import QuantityProblem
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Point, calibrating
from routecast.evaluate.targets import parse_targets
from routecast.load.offered import IntendedRate
from routecast.show.figures import Line
from routecast.show.page import render_page

HEAD = (
    "cores,frame_bytes,throughput_mpps,rate_kind,calibrate,latency_load_ratio,latency_p50_us,latency_p99_us,"
    "latency_max_us\n"
)
LOW = "1,64,5.1,overload,yes,0.1,12,18,90\n"
RATE = "2,64,10.0,overload,yes,,,,\n"
NEAR = "4,64,19.4,overload,yes,0.8,31,80,200\n"
HALF = "4,64,19.4,overload,no,0.5,20,40,150\n"
FULL = "4,64,19.4,overload,no,0.99,120,300,900\n"
OVER = "4,64,19.4,overload,yes,1.2,400,460,900\n"


@lru_cache
def judged(*rows: str) -> tuple[LatencyPrediction, ...]:
    return validate(parse_points(HEAD + "".join(rows))).latencies


def of_load(rows: tuple[LatencyPrediction, ...], load: float, statistic: str = "p50") -> LatencyPrediction:
    (row,) = (row for row in rows if row.statistic == statistic and row.load_ratio == pytest.approx(load, rel=0.05))
    return row


def test_a_held_out_row_is_predicted_by_those_that_calibrate_and_not_by_itself() -> None:
    row = of_load(judged(LOW, RATE, NEAR, HALF), 0.5)
    assert row.role == "held_out"
    assert row.is_covered
    # Waiting does not fall with the load.
    assert 12e-6 < row.predicted < 31e-6
    elsewhere = of_load(judged(LOW, RATE, NEAR, HALF.replace(",20,40,", ",25,40,")), 0.5)
    assert elsewhere.predicted == row.predicted
    assert elsewhere.error_ratio == pytest.approx(row.predicted / 25e-6 - 1.0)
    nearer = of_load(judged(LOW, RATE, NEAR.replace(",31,80,", ",60,80,"), HALF), 0.5)
    assert nearer.predicted > row.predicted


def test_beyond_95_percent_of_the_capacity_a_full_ring_is_named_unless_a_row_calibrates_there() -> None:
    row = of_load(judged(LOW, RATE, NEAR, FULL), 0.99)
    assert row.predicted != row.predicted
    assert not row.intervals
    low_s, ring_s, high_s = row.ring_s
    # A ring holds what waits at 80 %, and more.
    assert ring_s > 31e-6
    assert low_s < ring_s < high_s
    assert "not known at 99% of the capacity" in row.reason
    assert of_load(judged(LOW, RATE, NEAR, OVER, FULL), 0.99).intervals


def test_the_greatest_latency_is_listed_as_measured() -> None:
    rows = judged(LOW, RATE, NEAR, HALF)
    greatest = of_load(rows, 0.5, "max")
    assert greatest.measured == pytest.approx(150e-6)
    assert greatest.predicted != greatest.predicted
    assert greatest.reason == "as measured, never predicted"


def test_where_all_rows_calibrate_each_is_predicted_by_those_of_other_loads() -> None:
    rows = judged(LOW, RATE, NEAR, OVER)
    assert {row.role for row in rows} == {"held_out"}
    # A repetition of the row does not predict it.
    twice = judged(LOW, RATE, NEAR, NEAR, OVER)
    alike = [row for row in twice if row.statistic == "p50" and row.load_ratio == pytest.approx(0.8, rel=0.05)]
    assert len(alike) == 2
    for row in alike:
        assert row.log_width == pytest.approx(of_load(rows, 0.8).log_width, rel=0.02)
    (alone,) = (row for row in judged(LOW, RATE) if row.statistic == "p50")
    assert alone.reason == "no other row has it"


def test_a_disturbed_row_is_not_predicted() -> None:
    head = HEAD.replace("calibrate,", "calibrate,disturbed,")
    rows = "".join(
        row.replace(",yes,", ",yes,no,").replace(",no,0.5", ",no,yes,0.5") for row in (LOW, RATE, NEAR, HALF)
    )
    row = of_load(validate(parse_points(head + rows)).latencies, 0.5)
    assert row.reason == "disturbed: not calibrated"


def test_the_command_prints_what_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + LOW + RATE + NEAR + HALF + FULL)
    assert run(["validate", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "Latency, measured and predicted" in printed
    assert "full ring: about" in printed
    assert run(["validate", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (half,) = (
        row for row in data["latencies"] if row["role"] == "held_out" and row["statistic"] == "p50" and row["low_s"]
    )
    assert half["low_s"] < half["predicted_s"] < half["high_s"]
    assert half["is_inside"]
    (full,) = (row for row in data["latencies"] if row["statistic"] == "p50" and row["full_ring_s"])
    assert full["predicted_s"] is None
    assert data["latency_summaries"]["p50"]["held_out"] == 1


def test_the_page_of_a_validation_has_the_latencies() -> None:
    points = parse_points(HEAD + LOW + RATE + NEAR + HALF)
    page = validation_page(
        validate(points), points, live=None, source="rows.csv", command="routecast validate rows.csv"
    )
    assert "Accuracy of the latencies" in render_page(page)


def curve_of(rows: str, statistic: str = "p50") -> MeasuredLatency:
    points: tuple[Point, ...] = parse_points(HEAD + rows)
    curve = measured_latency(fit(calibrating(points)), points, points[0], statistic)
    assert curve is not None
    return curve


def test_each_row_uses_the_knee_of_the_rate_that_it_names() -> None:
    """A rate without loss lies below the capacity in overload, by a tenth or so on published routers."""
    careful = "1,64,5.1,no_loss,yes,0.8,31,80,200\n"
    rows = (LOW, careful, RATE, "4,64,19.4,overload,yes,,,,\n")
    at = curve_of("".join(rows)).at_load(0.9)
    reversed_at = curve_of("".join((rows[1], rows[0], *rows[2:]))).at_load(0.9)
    assert reversed_at.latency_s == pytest.approx(at.latency_s, rel=1e-6)
    assert reversed_at.high_s == pytest.approx(at.high_s, rel=1e-6)
    as_overload = curve_of("".join(rows).replace("no_loss", "overload")).at_load(0.9)
    # 80 % of less is nearer to empty: the same latency there leaves more for 90 % of the capacity.
    assert as_overload.latency_s != pytest.approx(at.latency_s, rel=0.01)


def test_a_curve_answers_at_any_load_and_at_a_rate_with_cores() -> None:
    curve = curve_of(LOW + RATE + NEAR)
    latencies = [curve.at_load(load) for load in (0.05, 0.3, 0.6, 0.9)]
    assert [at.latency_s for at in latencies] == sorted(at.latency_s for at in latencies)
    assert all(at.low_s < at.latency_s < at.high_s for at in latencies)
    at_rate = curve.at_rate(0.6 * 19.4e6, 4)
    assert at_rate.load_ratio == pytest.approx(0.6, rel=0.02)
    of_four = curve.with_cores(4).at_load(0.6)
    assert at_rate.latency_s == pytest.approx(of_four.latency_s, rel=0.05)
    # The row of four cores is nearer to it, and counts for less with a core.
    assert of_four.latency_s > curve.at_load(0.6).latency_s
    assert of_four.high_s / of_four.low_s < curve.at_load(0.6).high_s / curve.at_load(0.6).low_s
    assert curve.at_load(1.0).reason


def advised(rows: str, goal: str, bound: str, most_cores: int | None = None) -> LatencyAdvice:
    (latency,) = parse_targets([bound])
    question = AdviceQuestion(goal=IntendedRate.parse(goal), latency=latency, most_cores=most_cores)
    (advice,) = advise(parse_points(HEAD + rows), question, n=1)
    assert advice.latency is not None
    return advice.latency


def test_the_row_to_measure_next_is_near_the_load_of_the_target_and_then_one_in_overload() -> None:
    for rows in (RATE + LOW, RATE.replace("2,64,10.0", "1,64,5.1") + RATE):
        advice = advised(rows, "3 Mpps", "p50 < 50 us")
        near, full = advice.rows
        assert near.load_ratio == pytest.approx(advice.load_ratio)
        assert near.load_pps == pytest.approx(3e6)
        assert full.load_ratio > 1.0
        for row in advice.rows:
            assert row.width_after < 0.9 * row.width_before
        assert "is then expected to be known within" in advice.sentences[0]
    assert not advice.has_rows


def test_a_row_of_latency_that_is_there_is_not_named_again() -> None:
    advice = advised(LOW + RATE + NEAR + OVER, str(0.8 * 19.4) + " Mpps", "p50 < 50 us", most_cores=4)
    assert advice.cores == 4
    assert all(row.load_ratio != pytest.approx(0.8, abs=0.03) for row in advice.rows)
    assert all(row.load_ratio < 1.0 for row in advice.rows)
    # Without the row it is the first.
    rows = LOW + RATE + "4,64,19.4,overload,yes,,,,\n" + OVER
    bare = advised(rows, str(0.8 * 19.4) + " Mpps", "p50 < 5 ms", most_cores=4)
    assert bare.rows[0].load_ratio == pytest.approx(0.8, abs=0.03)


def test_a_rate_that_no_core_carries_needs_no_row_and_a_bound_needs_a_rate() -> None:
    advice = advised(LOW + RATE, "12 Mpps", "p50 < 50 us", most_cores=2)
    assert not advice.rows
    assert "are more than 2 cores carry" in advice.sentences[0]
    with pytest.raises(QuantityProblem, match="give it with --goal"):
        advise(parse_points(HEAD + LOW), AdviceQuestion(latency=parse_targets(["p99 < 1 ms"])[0]))
    with pytest.raises(QuantityProblem, match="no row predicts the max of others"):
        advised(LOW + RATE, "3 Mpps", "max < 1 ms")


def test_the_command_names_rows_of_latency(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + LOW + RATE)
    words = ["next", str(path), "--goal", "3 Mpps", "--latency", "p99 < 1 ms", "-n", "1"]
    assert run(words) == 0
    assert "Measure the p99 at 3 Mpps with 1 core (59% of the capacity)" in " ".join(capsys.readouterr().out.split())
    assert run([*words, "--json"]) == 0
    (series,) = json.loads(capsys.readouterr().out)["series"]
    assert [row["cores"] for row in series["latency"]["next"]] == [1, 1]


@pytest.mark.parametrize(("rows", "highest"), [(LOW + RATE + NEAR, 95.0), (LOW + RATE + NEAR + OVER, 120.0)])
def test_the_band_of_a_figure_ends_at_95_percent_of_the_capacity_or_at_the_highest_row(
    rows: str, highest: float
) -> None:
    points = parse_points(HEAD + rows)
    figure = latency_figure(fit(calibrating(points)), points, points[0])
    assert figure is not None
    lines = [mark for mark in figure.marks if isinstance(mark, Line)]
    assert [line.name for line in lines] == ["p50, predicted", "p99, predicted"]
    for line in lines:
        assert max(line.x) == pytest.approx(highest, rel=0.01)
        assert all(low < middle < high for low, middle, high in zip(line.low, line.y, line.high, strict=True))
    assert ("a full ring takes about" in figure.caption) == (highest < 100.0)
    rates = parse_points("cores,throughput_mpps\n1,5.1\n2,10\n")
    assert latency_figure(fit(calibrating(rates)), rates, rates[0]) is None


def test_no_quantile_is_below_a_lower_one() -> None:
    # The 99th percentile was measured at a low load only, where the prior expects less of it than of the median's rows.
    points = parse_points(HEAD + "1,64,5.1,overload,yes,0.1,12,12.1,90\n" + RATE + "4,64,19.4,overload,yes,0.9,61,,\n")
    fitted = fit(points)
    median, tail = (measured_latency(fitted, points, points[0], statistic) for statistic in ("p50", "p99"))
    assert median is not None
    assert tail is not None
    for load in (0.1, 0.5, 0.8, 0.9):
        low, high = median.at_load(load), tail.at_load(load)
        assert high.latency_s >= low.latency_s
        assert high.low_s >= low.low_s
        assert high.high_s >= low.high_s
    rates_pps = median.capacities_pps([4])
    assert (tail.chances(rates_pps, 15e6, 15e6, 40e-6) <= median.chances(rates_pps, 15e6, 15e6, 40e-6)).all()


def test_a_ring_that_is_stated_says_what_overload_takes() -> None:
    # 512 frames of 1/5.1 us in front of one, on the way that the row at a tenth of the load shows: 112 us.
    head = HEAD.replace("\n", ",latency_ring_frames\n")
    stated, unstated = (
        parse_points(head + LOW.replace("\n", f",{ring}\n") + RATE.replace("\n", ",\n")) for ring in ("512", "")
    )
    rings = []
    for points in (stated, unstated):
        measured = measured_latency(fit(points), points, points[0], "p50")
        assert measured is not None
        rings.append(measured.at_load(1.5).ring_s)
    (low_s, middle_s, high_s), (free_low_s, _, free_high_s) = rings
    assert low_s < 12e-6 + 512 / 5.1e6 < high_s
    assert middle_s == pytest.approx(12e-6 + 512 / 5.1e6, rel=0.25)
    assert high_s / low_s < 0.5 * free_high_s / free_low_s
