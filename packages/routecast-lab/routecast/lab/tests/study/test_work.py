"""The time per frame as a linear function of known work: found again, with intervals that hold what is measured."""

from __future__ import annotations

import math
from random import Random

import pytest

from routecast.errors import FitProblem
from routecast.lab.study.work import FittedWork, WorkPoint, fit_work

BASE_S, PER_WORK_S = 835e-9, 2.4e-9
"""A Linux forwarder and its slow-down loop, as measured on a virtual machine."""


def rate_pps(work: float) -> float:
    return 1.0 / (BASE_S + work * PER_WORK_S)


def test_two_exact_points_give_the_line_through_them() -> None:
    law = fit_work([WorkPoint(work=work, rates_pps=(rate_pps(work),)) for work in (0.0, 2000.0)])
    assert law.base_s == pytest.approx(BASE_S, rel=1e-6)
    assert law.per_work_s == pytest.approx(PER_WORK_S, rel=1e-6)
    assert law.rate_pps(500.0) == pytest.approx(rate_pps(500.0), rel=1e-6)


def test_equation_3_of_paper_000_is_the_same_law_in_bytes() -> None:
    # testpmd on null ports that copy, per port on one core of a virtual machine, Mpps by frame size.
    measured = {64: 13.6e6, 128: 12.99e6, 256: 11.6e6, 512: 9.8e6, 1024: 7.2e6, 1518: 5.25e6}
    law = fit_work([WorkPoint(work=size, rates_pps=(measured[size],)) for size in (64, 512, 1518)])
    for size in (128, 256, 1024):
        assert law.rate_pps(size) == pytest.approx(measured[size], rel=0.06)  # the copy is not quite linear


@pytest.mark.slow
def test_the_95_percent_interval_holds_95_percent_of_new_measurements() -> None:
    stream, scatter, inside, total = Random(7), 0.02, 0, 0
    for _ in range(300):
        points = [
            WorkPoint(
                work=work, rates_pps=tuple(rate_pps(work) * math.exp(stream.gauss(0.0, scatter)) for _ in range(5))
            )
            for work in (0.0, 500.0, 2000.0)
        ]
        law = fit_work(points)
        for work in (200.0, 1000.0, 5000.0):
            low, high = law.interval_pps(work)
            inside += low <= rate_pps(work) * math.exp(stream.gauss(0.0, scatter)) <= high
            total += 1
    assert 0.90 <= inside / total <= 0.99


def test_a_law_that_costs_nothing_is_the_mean_of_what_was_measured() -> None:
    law = fit_work([WorkPoint(work=1, rates_pps=(1.0e6,)), WorkPoint(work=1000, rates_pps=(1.02e6,))], constant=True)
    assert law.per_work_s == 0.0
    assert law.rate_pps(10) == pytest.approx(1.01e6, rel=1e-3)


def test_work_never_speeds_a_frame_up() -> None:
    law = fit_work([WorkPoint(work=0, rates_pps=(1.0e6,)), WorkPoint(work=100, rates_pps=(1.1e6,))])
    assert law.per_work_s == pytest.approx(0.0, abs=1e-15)


def test_the_median_of_repeats_shrugs_off_one_disturbed_trial() -> None:
    disturbed = WorkPoint(work=0, rates_pps=(1.0e6, 0.3e6, 1.01e6))
    law = fit_work([disturbed], constant=True)
    assert law.rate_pps(0) == pytest.approx(1.0e6, rel=1e-6)
    assert law.repeatability_ratio > 0.3  # and the interval says that it was there


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], "no point calibrates"),
        ([WorkPoint(work=0, rates_pps=(0.0,)), WorkPoint(work=1, rates_pps=(1.0,))], "no frame was forwarded"),
        ([WorkPoint(work=3, rates_pps=(1.0e6,))], "needs two amounts of work"),
    ],
)
def test_points_that_carry_no_law_are_refused(points: list[WorkPoint], message: str) -> None:
    with pytest.raises(FitProblem, match=f"'here'.*{message}"):
        fit_work(points, series="here")


def test_parameters_say_how_uncertain_they_are() -> None:
    quiet, noisy = (
        fit_work(
            [
                WorkPoint(work=work, rates_pps=tuple(rate_pps(work) * (1 + sign * scatter) for sign in (-1, 0, 1)))
                for work in (0.0, 2000.0)
            ]
        )
        for scatter in (0.01, 0.05)
    )
    assert isinstance(quiet, FittedWork)
    assert 3.0 < noisy.base_sd_s / quiet.base_sd_s < 7.0
