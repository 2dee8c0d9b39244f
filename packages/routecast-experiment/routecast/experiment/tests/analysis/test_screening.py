"""Screening ranks factors as closed forms do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import qmc

from routecast.experiment.analysis import analyse, screen
from routecast.experiment.analysis._screening import fit_chaos, indices
from routecast.experiment.analysis.outcome import FactorImportance, Screening
from routecast.experiment.model import Results

Order = Callable[[int], list[tuple[float, ...]]]
Make = Callable[..., Results]

# T. Ishigami and T. Homma (1990) with a = 7 and b = 0.1: V = a^2/8 + b pi^4/5 + b^2 pi^8/18 + 1/2.
A, B = 7.0, 0.1
WHOLE = A**2 / 8 + B * np.pi**4 / 5 + B**2 * np.pi**8 / 18 + 0.5
FIRST = [(1 + B * np.pi**4 / 5) ** 2 / 2 / WHOLE, A**2 / 8 / WHOLE, 0.0]
TOTAL = [FIRST[0] + 8 * B**2 * np.pi**8 / 225 / WHOLE, FIRST[1], 8 * B**2 * np.pi**8 / 225 / WHOLE]


def ishigami(x: np.ndarray) -> np.ndarray:
    x = np.pi * x
    return np.sin(x[:, 0]) + A * np.sin(x[:, 1]) ** 2 + B * x[:, 2] ** 4 * np.sin(x[:, 0])


def sample(results_of: Make, x: np.ndarray, y: np.ndarray, kind: str = "latin_hypercube") -> Results:
    return results_of([tuple(row) for row in x], [[float(value)] for value in y], kind=kind, quantities=True)


def by_letter(screening: Screening | None) -> dict[str, FactorImportance]:
    assert screening is not None
    return {factor.letter: factor for factor in screening.factors}


@pytest.mark.parametrize("kind", ["latin_hypercube", "sobol"])
@pytest.mark.slow
def test_the_indices_of_the_ishigami_function_are_its_closed_form(results_of: Make, kind: str) -> None:
    sampler = qmc.LatinHypercube(3, seed=1) if kind == "latin_hypercube" else qmc.Sobol(3, seed=1)
    x = 2 * sampler.random(512) - 1
    result = screen(sample(results_of, x, ishigami(x), kind), "y")
    assert result is not None
    assert result.quality_ratio is not None
    assert result.quality_ratio > 0.99
    factors = by_letter(result)
    for letter, first, total in zip("ABC", FIRST, TOTAL, strict=True):
        assert factors[letter].first_order_ratio == pytest.approx(first, abs=0.01)
        assert factors[letter].total_ratio == pytest.approx(total, abs=0.01)
    assert [factor.letter for factor in result.factors] == ["A", "B", "C"]


def test_noise_keeps_its_share_and_intervals_hold_the_truth(results_of: Make) -> None:
    # y = 3 x1 + x2 + noise of variance 2: variances 3, 1/3 and 2 of a uniform on -1..1.
    random = np.random.default_rng(2)
    x = 2 * qmc.LatinHypercube(3, seed=2).random(400) - 1
    y = 3 * x[:, 0] + x[:, 1] + random.normal(0, 2**0.5, 400)
    factors = by_letter(screen(sample(results_of, x, y), "y", confidence=0.99))
    for letter, share in (("A", 3 / (3 + 1 / 3 + 2)), ("B", 1 / 3 / (3 + 1 / 3 + 2)), ("C", 0.0)):
        factor = factors[letter]
        assert factor.first_order_ratio == pytest.approx(share, abs=0.06)
        assert factor.first_order_low is not None
        assert factor.first_order_high is not None
        assert factor.first_order_low <= share <= factor.first_order_high


def test_without_a_trustworthy_polynomial_the_bins_still_find_the_factor(results_of: Make) -> None:
    # A step has no good polynomial in 60 runs of noise this large; the bins see it, and interactions are unknown.
    random = np.random.default_rng(3)
    x = 2 * qmc.LatinHypercube(4, seed=3).random(60) - 1
    y = np.where(x[:, 2] > 0, 1.0, 0.0) + random.normal(0, 0.6, 60)
    result = screen(sample(results_of, x, y), "y")
    assert result is not None
    assert result.factors[0].letter == "C"
    assert result.factors[0].total_ratio is None
    assert "interactions are unknown" in result.notes[-1]


def test_rank_coefficients_of_a_monotonic_response_say_its_direction(results_of: Make) -> None:
    x = 2 * qmc.LatinHypercube(2, seed=4).random(200) - 1
    y = np.exp(5 * x[:, 0] - 1 * x[:, 1])
    factors = by_letter(screen(sample(results_of, x, y), "y"))
    # Ranks do not care for the exponential: both coefficients are those of 5 x1 - x2, up to the ranks' curvature.
    assert factors["A"].srrc == pytest.approx(5 / 26**0.5, abs=0.02)
    assert factors["B"].srrc == pytest.approx(-1 / 26**0.5, abs=0.04)


def test_the_same_seed_gives_the_same_intervals(results_of: Make) -> None:
    x = 2 * qmc.LatinHypercube(3, seed=1).random(100) - 1
    results = sample(results_of, x, x[:, 0] + x[:, 1] ** 2)
    assert screen(results, "y", seed=5) == screen(results, "y", seed=5)
    assert screen(results, "y", seed=5) != screen(results, "y", seed=6)


def test_a_two_level_design_is_ranked_by_shares_with_interactions(results_of: Make, standard_order: Order) -> None:
    rows = standard_order(3)
    answers = [[10 + 3 * a + 2 * b * c] for a, b, c in rows]
    factors = by_letter(screen(results_of(rows, answers, evaluator="solve"), "y"))
    assert factors["A"].total_ratio == pytest.approx(9 / 13)
    assert (factors["B"].first_order_ratio, factors["B"].total_ratio) == pytest.approx((0.0, 4 / 13))
    assert factors["A"].rank == 1


def test_discrete_factors_have_the_indices_of_their_levels() -> None:
    # Two levels at +-1 and three at -1, 0, 1: y = x1 + x2^2 has the variances 1 and 2/9.
    random = np.random.default_rng(6)
    x = np.column_stack([random.permutation([-1.0, 1.0] * 60), random.permutation([-1.0, 0.0, 1.0] * 40)])
    result = fit_chaos(x, x[:, 0] + x[:, 1] ** 2, [False, False])
    assert result is not None
    first, total = indices(result)
    assert first == pytest.approx([9 / 11, 2 / 11], abs=0.02)
    assert total == pytest.approx([9 / 11, 2 / 11], abs=0.02)


def test_too_few_runs_or_a_constant_response_are_not_ranked(results_of: Make) -> None:
    x = 2 * qmc.LatinHypercube(5, seed=1).random(12) - 1
    assert screen(sample(results_of, x, x[:, 0]), "y") is None
    x = 2 * qmc.LatinHypercube(2, seed=1).random(40) - 1
    assert screen(sample(results_of, x, np.full(40, 7.0)), "y") is None


def test_the_analysis_of_a_sample_carries_its_screening(results_of: Make) -> None:
    x = 2 * qmc.LatinHypercube(2, seed=1).random(60) - 1
    result = analyse(sample(results_of, x, 1 + x[:, 0] + 0.3 * x[:, 0] * x[:, 1]), "y")
    assert by_letter(result.screening)["A"].rank == 1
    assert result.effect("AB").value == pytest.approx(0.3)
