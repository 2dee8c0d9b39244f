"""Response surfaces: known polynomials come back, and the canonical analysis says what they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.experiment.analysis import analyse
from routecast.experiment.model import Results

Make = Callable[..., Results]
GRID = list(product((-1.0, 0.0, 1.0), repeat=2))
WEIGHT = st.floats(-3, 3).map(lambda value: round(value, 3))


def quadratic(weights: tuple[float, ...], row: tuple[float, ...]) -> float:
    a, b = row
    constant, wa, wb, wab, waa, wbb = weights
    return constant + wa * a + wb * b + wab * a * b + waa * a * a + wbb * b * b


@given(st.tuples(WEIGHT, WEIGHT, WEIGHT, WEIGHT, WEIGHT, WEIGHT))
def test_a_quadratic_on_three_levels_comes_back_and_is_flat_at_its_stationary_point(
    results_of: Make, weights: tuple[float, ...]
) -> None:
    answers = [[quadratic(weights, row)] for row in GRID]
    surface = analyse(results_of(GRID, answers, kind="multilevel", quantities=True), "y").surface
    if surface is None:
        assert np.ptp([value for (value,) in answers]) < 1e-9
        return
    values = [next(term.value for term in surface.terms if term.name == name) for name in ("1", "A", "B", "AB")]
    assert values == pytest.approx(list(weights[:4]), abs=1e-9)
    at = surface.stationary
    if at is None:
        return
    scale = 1 + max(abs(item) for item in at.coded) ** 2
    assert surface.at(at.coded) == pytest.approx(at.response, abs=1e-8 * scale)
    for step, axis in product((0.1, -0.1), (0, 1)):
        moved = tuple(entry + step * along for entry, along in zip(at.coded, at.axes[axis], strict=True))
        # Along its axis the surface bends by the eigenvalue times the square of the step.
        assert surface.at(moved) - at.response == pytest.approx(at.eigenvalues[axis] * 0.01, abs=1e-7 * scale)


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        ((5, 0.2, 0.4, 0.1, -1, -2), "maximum"),
        ((5, 0.2, 0.4, 0.1, 1, 2), "minimum"),
        ((5, 0.2, 0.4, 0.1, -1, 2), "saddle"),
        ((5, 0.2, 0.0, 0.0, -1, -0.0001), "ridge"),
    ],
)
def test_the_signs_of_the_eigenvalues_name_the_stationary_point(
    results_of: Make, weights: tuple[float, ...], kind: str
) -> None:
    answers = [[quadratic(weights, row)] for row in GRID]
    surface = analyse(results_of(GRID, answers, kind="multilevel", quantities=True), "y").surface
    assert surface is not None
    assert surface.stationary is not None
    assert surface.stationary.kind == kind
    assert surface.stationary.is_inside


def test_centre_points_find_curvature_that_corners_cannot_see(results_of: Make) -> None:
    corners = list(product((-1.0, 1.0), repeat=2))
    rows = [*corners, *[(0.0, 0.0)] * 4]
    noise = [0.1, -0.1, 0.05, -0.05]
    answers = [[10 + a - 2 * b] for a, b in corners] + [[13 + value] for value in noise]
    result = analyse(results_of(rows, answers, quantities=True), "y")
    curvature = result.effect("curvature")
    # q_0 is the mean of the corners; the centre lies 3 above it.
    assert result.mean == pytest.approx(10)
    assert curvature.value == pytest.approx(-3)
    assert curvature.is_significant
    assert result.error_df == 3
    assert result.s_e == pytest.approx(np.std(noise, ddof=1))
    assert result.surface is not None
    lack = result.surface.lack_of_fit
    assert lack is not None
    assert (lack.df, lack.pure_df) == (2, 3)
    assert lack.verdict.startswith("the response has curvature")


def test_a_first_order_fit_with_centre_points_has_the_lack_of_fit_of_the_rsm_package(results_of: Make) -> None:
    # R. V. Lenth, rsm package 2.10, vignette "Response-surface illustration": its first (simulated) baking experiment,
    # quoted second-hand; statsmodels fits the same values and standard errors.
    rows = [(1, -1, -1), (0, 0, 0), (-1, 1, -1), (1, 1, 1), (-1, -1, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0)]
    answers = [[28.9], [25.5], [20.2], [27.1], [21.5], [24.7], [25.0], [24.7]]
    result = analyse(results_of(rows, answers, kind="fractional", quantities=True), "y")
    surface = result.surface
    assert surface is not None
    values = {term.name: (term.value, term.standard_error) for term in surface.terms}
    assert values["1"] == pytest.approx((24.70000, 0.17963), abs=5e-6)
    assert values["A"] == pytest.approx((3.57500, 0.25403), abs=5e-6)
    assert values["B"] == pytest.approx((-0.77500, 0.25403), abs=5e-6)
    assert values["C"] == pytest.approx((-0.12500, 0.25403), abs=5e-6)
    assert (surface.r2_ratio, surface.adjusted_r2_ratio) == pytest.approx((0.9811, 0.9669), abs=5e-5)
    lack = surface.lack_of_fit
    assert lack is not None
    assert (lack.df, lack.ss, lack.pure_df, lack.pure_ss) == pytest.approx((1, 0.605, 3, 0.4275), abs=1e-3)
    assert (lack.f, lack.p_value) == pytest.approx((4.2456, 0.1314343), abs=5e-5)


def test_a_factor_that_is_no_quantity_has_no_surface(results_of: Make) -> None:
    answers = [[quadratic((5, 1, 1, 0, -1, -1), row)] for row in GRID]
    assert analyse(results_of(GRID, answers, kind="multilevel"), "y").surface is None


def test_identical_repetitions_leave_lack_of_fit_without_a_test(results_of: Make) -> None:
    rows = [*product((-1.0, 1.0), repeat=2), (0.0, 0.0), (0.0, 0.0)]
    answers = [[1.0], [2.0], [3.0], [5.0], [9.0], [9.0]]
    result = analyse(results_of(rows, answers, quantities=True, evaluator="solve"), "y")
    assert result.surface is not None
    assert result.surface.lack_of_fit is not None
    assert result.surface.lack_of_fit.f is None
    assert "all residuals are lack of fit" in result.surface.lack_of_fit.verdict


def test_what_a_surface_misses_of_runs_that_repeat_themselves_is_no_noise(results_of: Make) -> None:
    # Five runs at the centre that all answer the same: their four degrees of freedom have nothing to say of the misfit.
    rows = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0), (-1.4, 0.0), (1.4, 0.0), (0.0, -1.4), (0.0, 1.4)]
    rows += [(0.0, 0.0)] * 5
    answers = [[math.exp(2 * a + b)] for a, b in rows]
    result = analyse(results_of(rows, answers, kind="central_composite", quantities=True, evaluator="simulate"), "y")
    assert result.sse > 0
    assert result.s_e is None
    assert all(effect.low is None and effect.is_significant is None for effect in result.effects)
    assert result.surface is not None
    assert result.surface.interval((0.0, 0.0)) is None
    assert result.noise.startswith("none, because repeated runs have the same answer")
    noisy = [[value + 0.1 * number] for number, (value,) in enumerate(answers)]
    again = analyse(results_of(rows, noisy, kind="central_composite", quantities=True, evaluator="simulate"), "y")
    assert again.s_e is not None
