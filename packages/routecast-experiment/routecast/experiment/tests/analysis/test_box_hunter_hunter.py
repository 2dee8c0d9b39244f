"""Data of G. E. P. Box, W. G. Hunter and J. S. Hunter, Statistics for Experimenters (Wiley, 1978 and 2005)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from routecast.experiment.analysis import analyse
from routecast.experiment.analysis._checks import box_cox
from routecast.experiment.model import Results

Order = Callable[[int], list[tuple[float, ...]]]
Make = Callable[..., Results]

REACTOR = [
    61, 53, 63, 61, 53, 56, 54, 61, 69, 61, 94, 93, 66, 60, 95, 98,
    56, 63, 70, 65, 59, 55, 67, 65, 44, 45, 78, 77, 49, 42, 81, 82,
]  # fmt: skip
"""Percent reacted by feed rate (A), catalyst (B), agitation (C), temperature (D), concentration (E), a 2^5 design."""

POISON = {
    "A": ([0.31, 0.45, 0.46, 0.43], [0.36, 0.29, 0.40, 0.23], [0.22, 0.21, 0.18, 0.23]),
    "B": ([0.82, 1.10, 0.88, 0.72], [0.92, 0.61, 0.49, 1.24], [0.30, 0.37, 0.38, 0.29]),
    "C": ([0.43, 0.45, 0.63, 0.76], [0.44, 0.35, 0.31, 0.40], [0.23, 0.25, 0.24, 0.22]),
    "D": ([0.45, 0.71, 0.66, 0.62], [0.56, 1.02, 0.71, 0.38], [0.30, 0.36, 0.31, 0.33]),
}
"""Survival times (units of 10 hours) of animals by treatment (A-D) and poison (I-III), four of each.

Also in R: ``poison.data`` of the package BHH2, ``poisons`` of boot.
"""


def test_the_reactor_has_the_books_five_large_effects(results_of: Make, standard_order: Order) -> None:
    result = analyse(results_of(standard_order(5), [[value] for value in REACTOR]), "y")
    # From low to high: catalyst 19.5, temperature 10.75, concentration -6.25, and the interactions BD and DE.
    twice = {effect.name: 2 * (effect.value or 0) for effect in result.effects}
    assert [twice[name] for name in ("B", "D", "E", "BD", "DE")] == pytest.approx([19.5, 10.75, -6.25, 13.25, -11.0])
    assert [effect.name for effect in result.effects][:5] == ["B", "BD", "DE", "D", "E"]
    assert {effect.name for effect in result.effects if effect.is_significant} == {"B", "D", "E", "BD", "DE"}


def test_half_of_the_reactors_runs_tell_the_same_story_with_each_effect_in_a_chain_of_two(
    results_of: Make, standard_order: Order
) -> None:
    # The half with E = ABCD: resolution V, so main effects stand for four-factor and pairs for three-factor ones.
    half = [
        (row, value)
        for row, value in zip(standard_order(5), REACTOR, strict=True)
        if row[4] == row[0] * row[1] * row[2] * row[3]
    ]
    rows, answers = zip(*half, strict=True)
    result = analyse(results_of(rows, [[value] for value in answers], kind="fractional"), "y")
    twice = {effect.name: 2 * (effect.value or 0) for effect in result.effects}
    assert len(twice) == 15
    assert [twice[name] for name in ("B", "D", "E", "BD", "DE")] == pytest.approx([20.5, 12.25, -6.25, 10.75, -9.5])
    assert result.effect("B").aliases == ("+ACDE",)
    assert result.effect("BD").aliases == ("+ACE",)


def poison(results_of: Make, transform: str) -> Results:
    rows, answers = [], []
    for treatment, by_poison in enumerate(POISON.values()):
        for kind, values in enumerate(by_poison):
            rows.append((kind - 1, -1 + 2 * treatment / 3))
            answers.append(values)
    return results_of(rows, answers, kind="multilevel", transform=transform)


def test_the_poisons_have_box_and_coxs_analysis_of_variance(results_of: Make) -> None:
    # G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26 (1964), table 2: mean squares times 1000
    # of the times (quoted second-hand, met by the data to 0.1 %): poisons 516.3, treatments 307.1, interaction 41.7,
    # within groups 22.2.
    result = analyse(poison(results_of, "none"), "y")
    ms = {row.component: 1000 * (row.ms or 0) for row in result.anova}
    assert [ms[name] for name in ("A", "B", "AB", "errors")] == pytest.approx([516.3, 307.1, 41.7, 22.2], rel=2e-3)
    # Their point: of the reciprocals the interaction is smaller and both factors stand out more.
    rates = analyse(poison(results_of, "reciprocal"), "y")
    ratio = {row.component: row.f or 0 for row in rates.anova}
    plain = {row.component: row.f or 0 for row in result.anova}
    assert ratio["AB"] < plain["AB"]
    assert ratio["A"] > 3 * plain["A"]
    assert ratio["B"] > 2 * plain["B"]


def test_the_poisons_spread_grows_with_the_mean_and_the_advice_is_the_reciprocal(results_of: Make) -> None:
    result = analyse(poison(results_of, "none"), "y")
    assert result.residuals is not None
    spread = [check for check in result.residuals.checks if check.name == "constant spread"]
    assert all(check.is_doubtful for check in spread)
    assert len(spread) == 2
    assert any("the reciprocal of the response" in advice for advice in result.advice)
    rates = analyse(poison(results_of, "reciprocal"), "y")
    assert rates.residuals is not None
    assert not any(check.is_doubtful for check in rates.residuals.checks)
    assert rates.advice == ()


def test_the_power_for_the_poisons_is_box_and_coxs(results_of: Make) -> None:
    # Box and Cox (1964), sec. 5: for the additive model the likelihood is highest near -0.75.
    rows = [
        (poison, treatment, value)
        for treatment, by_poison in enumerate(POISON.values())
        for poison, values in enumerate(by_poison)
        for value in values
    ]
    table = np.array(rows)
    columns = [(table[:, [0]] == [[0, 1]]).astype(float), (table[:, [1]] == [[0, 1, 2]]).astype(float)]
    best, low, high = box_cox(table[:, 2], columns, 0.95)
    assert best == pytest.approx(-0.75, abs=0.05)
    assert low < -1.0 < high < 0.0
