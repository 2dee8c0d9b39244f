"""Form functions: the published one, its fit from samples, and the one that cannot overshoot (Bolla 2009, eq. 4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from routecast.errors import FitProblem, ModelProblem
from routecast.power.form import PUBLISHED_FORM, MonotoneForm, PolynomialForm, greatest_deviation
from routecast.power.load_fit import fit_monotone_form, fit_polynomial_form, monotone_of

PAPER = (0.0, 0.470487, 15.0124, -89.8629, 223.074, -256.469, 130.477, -21.6999)
GRID = np.linspace(0.0, 1.0, 501)


def test_the_published_form_begins_at_0_and_ends_at_the_sum_of_its_coefficients() -> None:
    assert PUBLISHED_FORM.coefficients == PAPER
    assert PUBLISHED_FORM.at(0.0) == 0.0
    assert PUBLISHED_FORM.at(1.0) == pytest.approx(sum(PAPER), abs=1e-12)
    assert round(PUBLISHED_FORM.at(1.0), 3) == 1.002  # as printed, not clamped


def test_the_published_form_agrees_with_numpys_polynomial() -> None:
    expected = np.polynomial.Polynomial(PAPER)(GRID)
    assert [PUBLISHED_FORM.at(t) for t in GRID] == pytest.approx(expected, abs=1e-10)


def test_the_published_form_falls_near_the_end_and_clamping_is_only_on_request() -> None:
    assert PUBLISHED_FORM.at(0.9) < PUBLISHED_FORM.at(0.84)
    assert PolynomialForm(coefficients=PAPER, clamped=True).at(1.0) == 1.0


def test_fitting_a_polynomial_to_its_own_values_gives_its_coefficients_back() -> None:
    t = np.linspace(0.0, 1.0, 40)
    result = fit_polynomial_form(t, [PUBLISHED_FORM.at(load) for load in t])
    assert result.coefficients == pytest.approx(PAPER, abs=1e-5)


def test_a_polynomial_fit_is_numpys_where_no_term_is_held_at_0() -> None:
    noise = np.random.default_rng(3)
    t = np.linspace(0.05, 1.0, 30)
    x = np.sqrt(t) + noise.normal(0.0, 0.01, t.size)
    result = fit_polynomial_form(t, x, order=3)
    # Dividing by t turns the fit without a constant into a weighted fit of one degree less.
    expected = np.polyfit(t, x / t, 2, w=t)[::-1]
    assert result.coefficients == pytest.approx((0.0, *expected), abs=1e-9)


def test_too_few_throughputs_for_the_coefficients_are_refused() -> None:
    with pytest.raises(FitProblem, match="7 coefficients"):
        fit_polynomial_form([0.0, 0.5, 0.7, 1.0], [0.0, 0.5, 0.8, 1.0])
    with pytest.raises(FitProblem, match="two or more throughputs"):
        fit_monotone_form([0.0, 0.5, 1.0], [0.0, 0.5, 1.0])
    with pytest.raises(FitProblem, match=r"in 0\.\.1"):
        fit_monotone_form([0.0, 0.5, 2.0], [0.0, 0.5, 1.0])


def test_the_monotone_neighbour_of_the_published_form_deviates_by_less_than_1_percent() -> None:
    gap, place = greatest_deviation(PUBLISHED_FORM, monotone_of())
    # The published curve falls by 0.0107 beyond 0.83: no monotone curve comes nearer than half of that.
    assert 0.0107 / 2 < gap < 0.01
    assert 0.0 <= place <= 1.0


def test_a_monotone_form_is_the_b_spline_of_its_coefficients() -> None:
    form = monotone_of()
    spline = BSpline(np.array(form.knots), np.array(form.coefficients), 3)
    assert [form.at(t) for t in GRID] == pytest.approx(spline(GRID), abs=1e-12)


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(-0.5, 1.5)), min_size=6, max_size=40), st.integers(1, 12))
def test_a_monotone_form_never_falls_nor_leaves_0_to_1_whatever_the_samples(
    samples: list[tuple[float, float]], segments: int
) -> None:
    t, x = zip(*samples, (0.3, 0.2), (0.6, 0.7), strict=True)
    form = fit_monotone_form(t, x, segments=segments)
    values = np.array([form.at(float(load)) for load in GRID])
    assert form.at(0.0) == 0.0
    assert form.at(1.0) == 1.0
    assert values.min() >= 0.0
    assert values.max() <= 1.0
    assert np.diff(values).min() >= -1e-12


def test_a_monotone_law_is_found_again_from_noisy_samples() -> None:
    noise = np.random.default_rng(5)
    t = np.linspace(0.0, 1.0, 120)
    truth = np.sin(np.pi * t / 2.0) ** 1.2
    form = fit_monotone_form(t, truth + noise.normal(0.0, 0.01, t.size))
    assert [form.at(load) for load in t] == pytest.approx(truth, abs=0.02)


@pytest.mark.parametrize(
    ("knots", "coefficients", "message"),
    [
        ((0.0,) * 4 + (1.0,) * 4, (0.0, 0.6, 0.5, 1.0), "never fall"),
        ((0.0,) * 4 + (1.0,) * 4, (0.1, 0.2, 0.5, 1.0), "begin with 0"),
        ((0.0,) * 4 + (1.0,) * 4, (0.0, 0.2, 0.5, 0.7, 1.0), "four knots more"),
        ((0.0, 0.0, 0.0, 0.1, 0.2, 1.0, 1.0, 1.0, 1.0), (0.0, 0.1, 0.2, 0.3, 1.0), "four times 0"),
    ],
)
def test_a_monotone_form_that_would_not_be_one_is_refused(
    knots: tuple[float, ...], coefficients: tuple[float, ...], message: str
) -> None:
    with pytest.raises(ModelProblem, match=message):
        MonotoneForm(knots=knots, coefficients=coefficients)
