"""Published latencies, each source predicted by what has not seen it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import median

import numpy as np
import pytest

from routecast.calibration import fit, validate
from routecast.calibration.latency import LatencyRow, advise_latency, fit_curve, prior_of
from routecast.calibration.latency.carried import byte_time
from routecast.calibration.latency.prior import LATENCY_PRIORS
from routecast.evaluate.points import Point, PointLatency
from routecast.evaluate.targets import parse_targets
from routecast.replications.accuracy._views import latency_board_tables, latency_remarks, weakness_table
from routecast.replications.accuracy.latency import LatencyBoard, run_latency_board
from routecast.replications.latency.carried import CarriedQuestion, SizedRouter, scored_carried, sized_routers
from routecast.replications.latency.learning import learnt_document
from routecast.replications.latency.scores import QUESTIONS, Question, scored
from routecast.replications.latency.simulated import simulated_medians
from routecast.replications.latency.tables import SOURCES, PublishedLatency, published_latencies

LOW_AND_FULL = next(question for question in QUESTIONS if question == Question((0.1, 1.0), 0.3, 0.7))


def test_tables_have_the_rows_of_their_sources() -> None:
    body = published_latencies("body")
    assert {latency.source for latency in body} == set(SOURCES)
    assert sum(len(latency.rows) for latency in body if latency.source == "csit1701") == 1728
    assert {latency.statistic for latency in published_latencies("tail")} == {"p95", "p99"}
    for latency in body:
        loads = [row.load_ratio for row in latency.rows]
        assert loads == sorted(loads)


@pytest.mark.slow
def test_medians_at_half_load_follow_from_a_row_at_a_tenth_and_one_at_full_load() -> None:
    """Errors that were reached (docs/validation.md) with some slack, and no simpler rule does better on any source."""
    scores = {score.source: score for score in scored(published_latencies("body"), LOW_AND_FULL)}
    assert set(scores) == set(SOURCES) - {"vppxc2020"}  # no row at full load
    reach = {"csit1701": 0.125, "packetmill2021": 0.11, "tinynf2020": 0.1}
    for source, score in scores.items():
        assert score.errors["ours"] <= reach[source], source
        assert score.errors["ours"] <= 1.2 * score.errors["nearest row"], source
        assert score.held_95 >= 0.92, source
        assert score.winkler < 2.1, source


def rows_of(latency: PublishedLatency, loads: Sequence[float]) -> tuple[Point, ...]:
    """Return the rows of a router as points, of which those nearest to loads calibrate."""
    calibrating = [min(latency.rows, key=lambda row: abs(row.load_ratio - load)) for load in loads]
    return tuple(
        Point(
            cores=1,
            frame_bytes=64.0,
            throughput_pps=1.0 / latency.frame_s,
            rate_kind=latency.rate_kind,
            calibrate=row in calibrating,
            latency=PointLatency(load_ratio=row.load_ratio, p50_s=row.latency_s),
        )
        for row in latency.rows
    )


@pytest.mark.parametrize(("source", "reach"), [("packetmill2021", 0.15), ("tinynf2020", 0.1)])
def test_published_rows_that_were_held_out_are_inside_their_intervals(source: str, reach: float) -> None:
    """Rows at a tenth or so and in overload (or at the full rate) calibrate; the priors have seen the source."""
    latency = next(latency for latency in published_latencies("body") if latency.source == source)
    judged = [
        row
        for row in validate(rows_of(latency, (0.15, 1.05))).latencies
        if row.role == "held_out" and 0.05 < row.load_ratio < 0.95
    ]
    assert len(judged) >= 3
    assert median(abs(row.error_ratio) for row in judged) <= reach
    assert sum(row.is_covered for row in judged) >= 0.92 * len(judged)


def test_of_published_rows_the_one_that_is_advised_narrows_the_target_most() -> None:
    """Known is a row at a fifth of the capacity; asked is a load between rows; each other row is added in turn."""
    latency = next(latency for latency in published_latencies("body") if latency.source == "packetmill2021")
    low, *others = latency.rows
    prior = prior_of(latency.statistic, latency.source, rate_kind=latency.rate_kind)
    points = rows_of(latency, (low.load_ratio,))[:1]
    fitted = fit(points)
    rate_pps = 0.72 / latency.frame_s
    (bound,) = parse_targets(["p50 < 100 us"])
    advice = advise_latency(fitted, points, points[0], bound, rate_pps, counts=(1,), most_cores=1)
    near, overload = (row.load_ratio for row in advice.rows)

    def width(row: LatencyRow, load: float) -> float:
        curve = fit_curve([low, row], prior, frame_s=latency.frame_s)
        return float(np.diff(np.log(curve.quantiles_s(load, (0.025, 0.975))))[0])

    for advised, target in ((near, 0.72), (overload, 1.3)):
        nearest = min(others, key=lambda row: abs(row.load_ratio - advised))
        assert width(nearest, target) <= 1.1 * min(width(row, target) for row in others)


@pytest.mark.slow
def test_the_priors_are_what_the_tables_teach() -> None:
    stored = json.loads(LATENCY_PRIORS.read_text(encoding="utf-8"))
    learnt = learnt_document()
    assert stored["without"].keys() == learnt["without"].keys()
    for kind, prior in learnt["all"].items():
        for name, numbers in prior.items():
            assert stored["all"][kind][name] == pytest.approx(numbers, rel=1e-3, abs=1e-3), (kind, name)


def test_published_routers_are_as_late_in_a_simulation_as_the_curve_of_their_rows() -> None:
    """The issue's target of 15 % from the curve; from what was measured, the law's own target of 10 % on TinyNF."""
    chosen = [
        each for each in published_latencies("body") if each.router.split()[0] in {"tinynf-c", "tinynf-rust-flexible"}
    ]
    chosen += [each for each in published_latencies("body") if each.source == "packetmill2021"]
    medians = list(simulated_medians(chosen))
    assert {each.source for each in medians} == {"packetmill2021", "tinynf2020"}
    for each in medians:
        assert each.simulated_s == pytest.approx(each.curve_s, rel=0.15), each
    tinynf = [abs(each.simulated_s / each.measured_s - 1.0) for each in medians if each.source == "tinynf2020"]
    assert median(tinynf) <= 0.1


@lru_cache
def suites(*names: str) -> tuple[SizedRouter, ...]:
    return tuple(router for router in sized_routers() if any(name in router.suite for name in names))


def measured_slopes(router: SizedRouter) -> list[float]:
    """Return the time of a byte over one device, s, from 64 to 9,000 B at a tenth of the load."""
    (small,) = (row for row in router.small if row.load_ratio == 0.1)
    return [
        (row.latency_s - small.latency_s) / (row.frame_bytes - small.frame_bytes)
        for row in router.rows.get(9000.0, ())
        if row.load_ratio == 0.1
    ]


def test_a_byte_takes_at_least_its_time_on_the_links_in_every_published_pair_of_sizes() -> None:
    """64 or 78 B and 9,000 B of CSIT 17.01: 148 pairs, of which none is below the links; nor is what rows give."""
    slopes = [(router, slope) for router in sized_routers() if router.small for slope in measured_slopes(router)]
    assert len(slopes) == 148
    for router, slope_s in slopes:
        small, large = router.small, router.rows[9000.0]
        assert slope_s > 1.5 * 8.0 / router.link_bps  # one device of two in series has half of three links
        time = byte_time((*small, *large), link_bps=router.link_bps)
        assert time.is_measured
        assert time.of_s(small[0]) > 1.5 * 8.0 / router.link_bps
        # The law has a sixth of the weight of a pair that is so far apart, or less.
        assert time.of_s(small[0]) == pytest.approx(slope_s, rel=0.16)


def test_published_latencies_of_large_frames_follow_from_small_ones() -> None:
    """L2 cross connects and bridges of X520 cards. Medians: 18 % by the law, as these cards take 1.3 times as long
    a byte as it says; 9 % with rows of 1,518 B, of which a microsecond is 5 at 9,000 B; 4 % with the card known.
    """
    routers = suites("x520")
    reach = {"no other size": 0.22, "another size": 0.15, "the card": 0.06}
    some = tuple(router for router in routers if router.direction == "1" and router.cores == 1)
    for known, limit in reach.items():
        score = scored_carried(CarriedQuestion(load_ratio=0.1, to_bytes=9000.0, known=known), some)
        assert score is not None
        assert score.predictions >= 15
        assert score.errors["ours"] <= limit, known
        assert score.errors["ours"] < 0.4 * score.errors["the same"], known
        assert score.held_95 >= (0.75 if known == "another size" else 0.92), known


def test_another_number_of_cores_has_about_the_same_latency_at_an_equal_share() -> None:
    """Two directions of a test differ by 4 % at a tenth of the load, and waiting falls with cores at half of it."""
    routers = suites("x520-eth", "x520-ethip4")
    for load_ratio, limit in ((0.1, 0.1), (0.5, 0.25)):
        score = scored_carried(CarriedQuestion(load_ratio=load_ratio, to_cores=2), routers)
        assert score is not None
        assert score.predictions >= 20
        assert score.errors["ours"] <= limit
        assert score.held_95 >= 0.8


@pytest.fixture(scope="module")
def latency_board() -> LatencyBoard:
    return run_latency_board(sources=["packetmill2021"])


def test_published_latencies_are_predicted_no_worse_than_recorded(latency_board: LatencyBoard) -> None:
    assert set(latency_board.recorded) == set(SOURCES)
    assert {result.key for result in latency_board.results} == set(latency_board.recorded["packetmill2021"])
    assert latency_board.worse() == {}
    assert latency_remarks(latency_board) == ()


def test_an_error_that_has_grown_is_named(latency_board: LatencyBoard) -> None:
    key = latency_board.results[0].key
    better = {"packetmill2021": {key: {"median_abs_error_ratio": 0.01, "interval_score": 99.0}}}
    grown = replace(latency_board, recorded=better)
    assert list(grown.worse()) == [f"packetmill2021, {key}"]
    (remark,) = latency_remarks(grown)
    assert "median error has grown from 1" in remark


def test_tables_of_the_latency_board_have_a_row_for_each_question(latency_board: LatencyBoard) -> None:
    (table,) = latency_board_tables(latency_board)
    assert len(table.rows) == len(latency_board.results) == 12
    assert len(weakness_table(latency_board).rows) == len(latency_board.weaknesses)
    document = latency_board.to_json()
    assert set(document["sources"]) == {"packetmill2021"}
    first = document["sources"]["packetmill2021"][0]
    assert first["given_load_ratios"] == [0.1]
    assert set(first["baselines"]) == {"nearest row", "log-linear", "M/M/1", "offset + queue"}


@pytest.mark.slow
def test_no_published_latency_is_predicted_worse_than_recorded() -> None:
    assert run_latency_board().worse() == {}


def test_a_router_of_a_source_that_taught_nothing_is_predicted_from_one_row() -> None:
    """VPP's cross-connect, with a prior that has not seen it: the issue's target of 15 % from one row."""
    (body,) = published_latencies("body", ("vppxc2020",))
    first, *others = body.rows
    curve = fit_curve([first], prior_of("p50", body.source, rate_kind=body.rate_kind), frame_s=body.frame_s)
    for row in others:
        low_s, middle_s, high_s = curve.quantiles_s(row.load_ratio, (0.025, 0.5, 0.975))
        assert low_s < row.latency_s < high_s
        assert middle_s == pytest.approx(row.latency_s, rel=0.15)
