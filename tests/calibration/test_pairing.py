"""Predictions of one calibration are compared draw by draw; others stay independent."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from routecast.calibration import validate
from routecast.calibration.pairing import DrawPairing
from routecast.calibration.recipe import Recipe
from routecast.evaluate.compare import Comparison, Difference, compare_documents
from routecast.evaluate.points import Layout, Point
from routecast.load.frames import FrameMix
from routecast.size import Target, size

MEASURED = {1: 1.0e6, 2: 1.9e6, 4: 3.5e6}


def point(cores: int, pps: float = math.nan, **more: Any) -> Point:
    known: dict[str, Any] = {"frame_bytes": 64.0, "link_bps": 1e11, "layout": Layout(shared_queue=False), **more}
    return Point(cores=cores, throughput_pps=pps, calibrate=math.isfinite(pps), **known)


def validation(cores: int, measured: dict[int, float] | None = None) -> dict[str, Any]:
    """A document of ``validate --json`` that predicts one number of cores."""
    calibrating = [point(count, pps) for count, pps in (measured or MEASURED).items()]
    document: dict[str, Any] = json.loads(json.dumps(validate([*calibrating, point(cores)]).to_json()))
    return {**document, "rows": [row for row in document["rows"] if row["role"] == "predicted"]}


def compared(a: dict[str, Any], b: dict[str, Any]) -> Comparison:
    return compare_documents("validation", a, b, names=("a", "b"), pairing=DrawPairing(a, b))


@pytest.fixture(scope="module")
def eight() -> dict[str, Any]:
    return validation(8)


@pytest.fixture(scope="module")
def six() -> dict[str, Any]:
    return validation(6)


def test_two_predictions_of_one_calibration_are_closer_known_than_independent_ones(
    eight: dict[str, Any], six: dict[str, Any]
) -> None:
    (paired,) = compared(eight, six).of("differs", "noise")
    (independent,) = compare_documents("validation", eight, six, names=("a", "b")).of("differs", "noise")
    assert paired.paired is not None
    assert independent.paired is None
    assert paired.high - paired.low < independent.high - independent.low
    assert paired.low <= paired.difference <= paired.high
    low, high = paired.ratio_interval
    assert low <= paired.difference_ratio <= high
    # Two cores fewer cannot forward more than eight do, and the share lost is at most that of the cores and a ceiling.
    assert paired.verdict == "differs"


def test_the_difference_is_the_same_seen_from_either_side(eight: dict[str, Any], six: dict[str, Any]) -> None:
    (there,), (back,) = compared(eight, six).of("differs"), compared(six, eight).of("differs")
    # An end of a normal interval from 1,500 draws scatters by 1.7 % of its width (the standard error of a quantile,
    # sqrt(p(1-p)/n)/density), the difference of two by 2.5 %.
    width = there.high - there.low
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=0.05 * width)


def test_a_prediction_does_not_differ_from_itself(eight: dict[str, Any]) -> None:
    assert compared(eight, json.loads(json.dumps(eight))).differences == ()
    fitted = Recipe.of_json(eight["calibrations"][0]).fitted()
    draws = fitted.joint_rates_pps([point(8)])
    assert np.ptp(draws[:, 0] - fitted.joint_rates_pps([point(8)])[:, 0]) == 0.0


def test_results_that_do_not_say_what_calibrated_them_stay_independent(
    eight: dict[str, Any], six: dict[str, Any]
) -> None:
    older = {key: entry for key, entry in six.items() if key != "calibrations"}
    comparison = compared(eight, older)
    assert comparison.remark.startswith("pairing not known: B does not say")
    independent = compare_documents("validation", eight, older, names=("a", "b"))
    assert comparison.differences == independent.differences


def test_results_of_other_points_stay_independent(eight: dict[str, Any]) -> None:
    comparison = compared(eight, validation(6, {**MEASURED, 4: 3.6e6}))
    assert "different calibrations" in comparison.remark
    assert all(difference.paired is None for difference in comparison.differences)


def test_a_measured_rate_stays_independent_of_a_prediction(eight: dict[str, Any], six: dict[str, Any]) -> None:
    (row,) = six["rows"]
    (measured,) = compared(eight, {**six, "calibrations": [], "rows": [{**row, "predicted_pps": row["low_pps"]}]}).of(
        "differs", "noise"
    )
    assert measured.paired is None


def test_a_fit_that_is_not_that_of_the_result_is_not_used(eight: dict[str, Any], six: dict[str, Any]) -> None:
    (row,) = six["rows"]
    comparison = compared(eight, {**six, "rows": [{**row, "low_pps": 0.99 * row["low_pps"]}]})
    assert comparison.remark.startswith("pairing not known: calibrated again")
    (calibration,) = six["calibrations"]
    stale = [{**calibration, "digest": "0"}]
    comparison = compared({**eight, "calibrations": stale}, {**six, "calibrations": stale})
    assert comparison.remark.startswith("pairing not known: another version")


def test_a_recipe_goes_through_json_unchanged() -> None:
    mix = FrameMix.imix()
    points = (
        point(1, 1.2345678901234567e6, link_bps=1e10, ports=1, series="a"),
        point(2, 2e6, standard_error_ratio=0.01, nic_cap_pps=1e7, flows=2),
        point(4, 3e6, frame_mix=mix, frame_bytes=mix.mean_bytes, layout=Layout(polls_ports=True)),
    )
    recipe = Recipe(points=points, noise_ratio=0.02, left_out="meyer2014.csv", seed=3)
    again = Recipe.of_json(json.loads(json.dumps(recipe.to_json())))
    assert again.digest == recipe.digest
    # The name of a series changes no calibration.
    assert [each.conditions[1:] for each in again.points] == [each.conditions[1:] for each in points]
    assert Recipe(points=points[::-1]).digest != Recipe(points=points).digest


def sizing(rate: str, cores: int = 8) -> dict[str, Any]:
    """A document of ``size --json`` for one number of cores."""
    target = Target.parse(rate, "64 B")
    calibrating = [point(count, pps) for count, pps in MEASURED.items()]
    return {"series": [json.loads(json.dumps(size(calibrating, target, counts=(cores,)).to_json()))]}


def probabilities(a: dict[str, Any], b: dict[str, Any], pairing: DrawPairing | None) -> list[Difference]:
    compared = compare_documents("sizing", a, b, names=("a", "b"), pairing=pairing)
    return [difference for difference in compared.differences if difference.quantity == "probability"]


def test_probabilities_of_one_calibration_are_compared_draw_by_draw() -> None:
    """A router that forwards a rate forwards a lower one too, so no drawn router has the smaller probability of it."""
    easy, hard = sizing("5 Mpps"), sizing("6.4 Mpps")
    for a, b, sign in ((easy, hard, -1), (hard, easy, 1)):
        found = probabilities(a, b, DrawPairing(a, b))
        assert found
        for each in found:
            assert each.paired is not None
            assert each.low <= each.difference <= each.high
            assert sign * each.difference > 0.0
            assert min(sign * each.low, sign * each.high) >= 0.0
    assert {each.verdict for each in probabilities(easy, hard, None)} == {"no interval"}


def test_probabilities_of_other_calibrations_have_no_interval() -> None:
    a, b = sizing("5 Mpps"), sizing("6.4 Mpps")
    for part in b["series"]:
        part["calibrations"][0]["digest"] = "another"
    assert {each.verdict for each in probabilities(a, b, DrawPairing(a, b))} == {"no interval"}


def test_the_mean_of_drawn_probabilities_is_the_probability() -> None:
    fitted = Recipe(points=tuple(point(count, pps) for count, pps in MEASURED.items())).fitted()
    points, goals_pps = [point(6), point(8)], (4.8e6, 6.0e6)
    drawn = fitted.chance_draws(points, goals_pps)
    assert ((drawn >= 0.0) & (drawn <= 1.0)).all()
    stated = [fitted.chances([each], goal)[0] for each, goal in zip(points, goals_pps, strict=True)]
    # Both are sums over some thousand draws of the same posterior, drawn in different ways.
    assert drawn.mean(axis=0) == pytest.approx(stated, abs=0.03)


@pytest.mark.slow
def test_the_interval_of_a_difference_holds_the_true_one_about_as_often_as_it_says() -> None:
    """Serial shares from 0 to 10 %, measured within 1 %: Amdahl's law (1967), rate(k) = k / (1 + s·(k - 1))."""
    random = np.random.default_rng(7)
    inside = []
    for serial in np.linspace(0.0, 0.1, 20):

        def rate(cores: int, serial: float = serial) -> float:
            return 1e6 * cores / (1.0 + serial * (cores - 1))

        calibrating = tuple(point(k, rate(k) * math.exp(0.01 * random.standard_normal())) for k in (1, 2, 4))
        fitted = Recipe(points=calibrating, noise_ratio=0.01).fitted()
        drawn = fitted.joint_rates_pps([point(8), point(6), point(3)])
        for more, fewer, column, other in ((8, 6, 0, 1), (6, 3, 1, 2)):
            low, high = np.quantile(drawn[:, other] / drawn[:, column], (0.025, 0.975))
            inside.append(low <= rate(fewer) / rate(more) <= high)
    # 40 cases at 95 %: fewer than 34 have a chance below 0.1 % (binomial).
    assert sum(inside) >= 34
