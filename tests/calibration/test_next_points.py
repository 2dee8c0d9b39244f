"""The next measurement is where it tells most, and measuring goes on until enough is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

from routecast.calibration import fit
from routecast.calibration.advice import AdviceQuestion, advise
from routecast.calibration.next_points import interval_log_width, rank
from routecast.cli.run import run
from routecast.evaluate.points import Layout, Point
from routecast.lab.study.until import measure_until
from routecast.load.frames import FrameMix
from routecast.load.offered import IntendedRate


def point(cores: int, rate_pps: float = math.nan, frame_bytes: float = 64.0) -> Point:
    return Point(cores=cores, frame_bytes=frame_bytes, throughput_pps=rate_pps, calibrate=not math.isnan(rate_pps))


def test_of_normal_draws_the_candidate_is_chosen_that_correlates_most_and_its_width_is_the_normal_ones() -> None:
    random = default_rng(1)
    target, other = random.standard_normal((2, 4000))
    noise = 0.5
    rates = np.stack([other, target + 0.05 * other], axis=1)
    (best, _) = rank([point(1), point(2)], rates, target[:, None], 2, noise_ratio=noise)
    assert best.point.cores == 2
    # Posterior variance of a normal after a measurement with noise: 1/(1 + 1/noise²).
    assert best.width_after == pytest.approx(2 * 1.96 / math.sqrt(1 + 1 / noise**2), rel=0.1)
    assert best.width_before == pytest.approx(interval_log_width(target[:, None]))


def test_what_tells_two_explanations_apart_is_preferred_to_what_narrows_each() -> None:
    # Two camps at the target, which candidate 1 tells apart; candidate 2 only narrows within the camps.
    random = default_rng(2)
    camp = np.repeat([0.0, 3.0], 1000)
    within = 0.2 * random.standard_normal(2000)
    rates = np.stack([0.3 * camp + 0.02 * random.standard_normal(2000), within], axis=1)
    best, *_ = rank([point(1), point(2)], rates, (camp + within)[:, None], 1, noise_ratio=0.01)
    assert best.point.cores == 1


@pytest.mark.slow
def test_the_target_itself_is_the_next_measurement_where_possible_and_narrows_the_interval() -> None:
    fitted = fit([point(1, 1.7e6), point(2, 3.3e6), point(4, 6.3e6)])
    target = [point(16)]
    (best,) = fitted.next_points(1, targets=target)
    assert best.point.cores == 16
    after = fit([*fitted.points, point(16, 20e6)])
    assert after.half_width_ratio(target) < 0.1 < fitted.half_width_ratio(target)


@pytest.mark.slow
def test_least_cores_for_a_goal_are_a_target() -> None:
    fitted = fit([point(1, 1.7e6), point(4, 6.6e6), point(16, 21e6)])
    (best,) = fitted.next_points(1, able=fitted.candidates(16), targets=[point(16)], goal_pps=12e6)
    assert 6 <= best.point.cores <= 12


def test_a_goal_beyond_the_measurements_is_searched_beyond_them_and_the_least_cores_are_reported() -> None:
    own = Layout(shared_queue=False)
    # With its links stated: the shipped tables then show no ceilings of another kind.
    rows = [replace(point(k, rate), layout=own, link_bps=100e9) for k, rate in ((1, 1.7e6), (2, 3.3e6), (4, 6.4e6))]
    (goal,) = advise(rows, AdviceQuestion(goal=IntendedRate(amount=12e6, unit="frames/s")), n=1)
    assert goal.least_cores is not None
    assert goal.least_cores > 2 * 4
    assert goal.half_width_ratio > 0.01
    assert goal.points[0].width_before > 0.0
    assert goal.points[0].point.cores <= 2 * 4  # what there is to measure on
    assert str(goal.least_cores) in goal.answer
    (never,) = advise(rows, AdviceQuestion(goal=IntendedRate(amount=1e12, unit="frames/s")), n=1)
    assert never.least_cores is None
    assert "No number of cores" in never.answer
    assert not never.is_enough(1.0)
    assert never.to_json()["half_width_ratio"] is None


def test_the_least_cores_are_those_of_the_first_count_that_is_probable_enough() -> None:
    fitted = fit([point(1, 1.7e6), point(2, 3.3e6), point(4, 6.4e6)])
    chances = fitted.chances([point(k) for k in range(1, 9)], 9e6)
    least = fitted.least_cores(point(1), 9e6)
    assert least == next((k for k, chance in enumerate(chances, start=1) if chance >= 0.95), least)
    assert fitted.least_cores(point(1), 1.5e6) == 1
    sure = fitted.least_cores(point(1), 9e6, confidence_ratio=0.5)
    assert sure is not None
    assert least is None or sure <= least


@pytest.mark.slow
def test_advice_follows_the_rows_that_do_not_calibrate_or_the_question() -> None:
    rows = [point(1, 1.7e6), point(2, 3.3e6), point(8)]
    (by_rows,) = advise(rows)
    assert [each.cores for each in by_rows.targets] == [8]
    (advice,) = advise(rows, AdviceQuestion(cores=(4,), frames=(FrameMix.parse("IMIX"),), most_cores=4))
    assert [(each.cores, each.frame_mix is not None) for each in advice.targets] == [(4, True)]
    assert {each.point.cores for each in advice.points} <= {1, 2, 3, 4}


@pytest.mark.slow
def test_measuring_stops_when_every_rate_is_known_as_well_as_requested() -> None:
    random = default_rng(3)

    def measure(point: Point) -> float:
        return 1.0 / (1e-6 + point.frame_bytes * 1e-10) * math.exp(0.01 * random.standard_normal())

    able = [point(1, frame_bytes=size) for size in (64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0)]
    known = measure_until(measure, able, until_ratio=0.05, spread_s=0.0)
    assert known.is_enough
    assert known.half_width_ratio <= 0.05
    assert len(known.measured) < 16
    assert sum(each.frame_bytes == 64.0 for each in known.measured) >= 8
    predictions = known.fitted.predict([replace(each, throughput_pps=measure(each)) for each in able])
    assert all(abs(prediction.error_ratio) < 0.05 for prediction in predictions)
    more = measure_until(
        measure, able, until_ratio=0.001, known=known.measured, most=len(known.measured) + 2, spread_s=0.0
    )
    assert not more.is_enough
    assert len(more.measured) == len(known.measured) + 2


TABLE = "cores,frame_bytes,throughput_pps\n1,64,1.7e6\n2,64,3.3e6\n4,64,6.3e6\n"


@pytest.mark.slow
def test_the_command_names_points_and_says_when_to_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "three.csv"
    path.write_text(TABLE)
    assert run(["next", str(path), "--until", "5%"]) == 0
    assert "measure the first point and ask again" in " ".join(capsys.readouterr().out.split())
    assert run(["next", str(path), "--cores", "3", "--until", "20 %", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["is_enough"] is True
    assert answer["series"][0]["targets"] == [{"cores": 3, "frame_bytes": 64.0, "flows": None}]
    assert run(["next", str(path), "--goal", "200 Gpps", "--until", "10 %"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "No number of cores" in output
    assert "enough" not in output
    assert run(["next", str(path), "--goal", "200 Gpps", "--until", "10 %", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["is_enough"] is False
    assert "No number of cores" in answer["series"][0]["answer"]
    assert run(["next", str(path), "--goal", "5 Gbit/s"]) == 0
    assert "with a probability of 95%" in " ".join(capsys.readouterr().out.split())
    assert run(["validate", str(path), "--next", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["next"][0]["next"]) == 2
    for wrong in (["--until", "5"], ["--goal", "5 apples"], ["--frame", "3 B"]):
        assert run(["next", str(path), *wrong]) == 2
        assert "routecast:" in capsys.readouterr().err


def test_a_goal_out_of_reach_is_reported_and_has_no_table_of_zeros(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "rates.csv"
    table.write_text("cores,throughput_mpps\n1,2.0\n2,3.0\n4,3.2\n")
    assert run(["next", str(table), "--goal", "5000000 Mpps"]) == 0
    output = capsys.readouterr().out
    assert "out of reach" in output
    assert "±" not in output
