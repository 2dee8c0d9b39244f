"""Designs of D. C. Montgomery, Design and Analysis of Experiments (Wiley)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routecast.experiment.analysis import analyse
from routecast.experiment.model import Results

Order = Callable[[int], list[tuple[float, ...]]]
Make = Callable[..., Results]

FILTRATION = [45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96]
"""Example 6.2: filtration rate of a pilot plant in a 2^4 design, standard order."""

ROOT = 2**0.5
YIELD = [
    ((-1, -1), 76.5), ((-1, 1), 77.0), ((1, -1), 78.0), ((1, 1), 79.5),
    ((0, 0), 79.9), ((0, 0), 80.3), ((0, 0), 80.0), ((0, 0), 79.7), ((0, 0), 79.8),
    ((ROOT, 0), 78.4), ((-ROOT, 0), 75.6), ((0, ROOT), 78.5), ((0, -ROOT), 77.0),
]  # fmt: skip
"""Example 11.2, table 11.6: yield by time and temperature, a central composite design."""


def test_the_filtration_rate_has_montgomerys_effects_and_the_large_ones_stand_out(
    results_of: Make, standard_order: Order
) -> None:
    # The book's effects go from low to high: twice q.
    result = analyse(results_of(standard_order(4), [[value] for value in FILTRATION]), "y")
    twice = {effect.name: 2 * (effect.value or 0) for effect in result.effects}
    assert twice == pytest.approx(
        {
            "A": 21.625, "B": 3.125, "C": 9.875, "D": 14.625, "AB": 0.125, "AC": -18.125, "AD": 16.625, "BC": 2.375,
            "BD": -0.375, "CD": -1.125, "ABC": 1.875, "ABD": 4.125, "ACD": -1.625, "BCD": -2.625, "ABCD": 1.375,
        }
    )  # fmt: skip
    # The book's normal plot sets A, C, D, AC and AD apart.
    assert {effect.name for effect in result.effects if effect.is_significant} == {"A", "C", "D", "AC", "AD"}
    assert result.error_df == 0
    assert all(effect.low is None for effect in result.effects)


def test_interactions_of_many_factors_pooled_on_request_become_the_errors(
    results_of: Make, standard_order: Order
) -> None:
    result = analyse(results_of(standard_order(4), [[value] for value in FILTRATION]), "y", order=2)
    twice = [1.875, 4.125, -1.625, -2.625, 1.375]
    assert result.error_df == 5
    assert result.sse == pytest.approx(4 * sum(value**2 for value in twice))
    assert result.lenth is None
    assert "more than 2 factors" in result.noise


def test_a_half_fraction_has_montgomerys_contributions_and_lenths_margins(
    results_of: Make, standard_order: Order
) -> None:
    # Problem 8.1: a 2^(4-1) design with I = ABCD. Lenth's margins are quoted second-hand from its solutions manual.
    rows = [(a, b, c, a * b * c) for a, b, c in standard_order(3)]
    answers = [[90], [72], [87], [83], [99], [81], [88], [80]]
    result = analyse(results_of(rows, answers, kind="fractional"), "y")
    twice = {effect.name: 2 * (effect.value or 0) for effect in result.effects}
    assert twice == pytest.approx({"A": -12, "B": -1, "C": 4, "D": -1, "AB": 6, "AC": -1, "AD": -5})
    shares = {effect.name: 100 * (effect.share_ratio or 0) for effect in result.effects}
    assert shares["A"] == pytest.approx(64.2857, abs=5e-5)
    assert shares["AB"] == pytest.approx(16.0714, abs=5e-5)
    assert shares["AD"] == pytest.approx(11.1607, abs=5e-5)
    assert result.effect("A").aliases == ("+BCD",)
    assert result.effect("AB").aliases == ("+CD",)
    margins = result.lenth
    assert margins is not None
    # Student's t at 7/3 degrees of freedom is only as exact as the program behind the manual: four digits agree.
    assert 2 * margins.margin == pytest.approx(22.5856, rel=1e-4)
    assert 2 * margins.simultaneous_margin == pytest.approx(54.0516, rel=1e-4)
    assert not any(effect.is_significant for effect in result.effects)


def test_the_yield_surface_has_montgomerys_table_and_lack_of_fit(results_of: Make) -> None:
    rows, answers = zip(*YIELD, strict=True)
    result = analyse(results_of(rows, [[value] for value in answers], kind="central_composite", quantities=True), "y")
    table = {row.component: (row.df, row.ss, row.f, row.p_value) for row in result.anova}
    for name, ss, f in (
        ("A", 7.92, 111.93), ("B", 2.12, 30.01), ("A^2", 13.18, 186.22), ("B^2", 6.97, 98.56), ("AB", 0.25, 3.53)
    ):  # fmt: skip
        assert table[name][1] == pytest.approx(ss, abs=0.006)
        assert table[name][2] == pytest.approx(f, rel=2e-3)
    assert table["AB"][3] == pytest.approx(0.1022, abs=5e-4)
    assert table["errors"][:2] == (7, pytest.approx(0.50, abs=0.006))
    assert table["lack of fit"][:2] == (3, pytest.approx(0.28, abs=0.006))
    assert table["lack of fit"][2] == pytest.approx(1.78, abs=0.006)
    assert table["lack of fit"][3] == pytest.approx(0.2897, abs=5e-4)
    assert table["pure error"][:2] == (4, pytest.approx(0.21, abs=0.006))
    assert table["total"][:2] == (12, pytest.approx(28.74, abs=0.006))


def test_the_yield_surface_has_its_maximum_where_montgomery_finds_it(results_of: Make) -> None:
    # The book: a maximum of 80.21 at 87 minutes and 176.5 degrees, coded (time - 85)/5 and (temperature - 175)/5.
    rows, answers = zip(*YIELD, strict=True)
    result = analyse(results_of(rows, [[value] for value in answers], kind="central_composite", quantities=True), "y")
    surface = result.surface
    assert surface is not None
    stationary = surface.stationary
    assert stationary is not None
    assert stationary.kind == "maximum"
    assert stationary.is_inside
    assert stationary.response == pytest.approx(80.21, abs=0.005)
    time, temperature = 85 + 5 * stationary.coded[0], 175 + 5 * stationary.coded[1]
    assert (time, temperature) == pytest.approx((87.0, 176.5), abs=0.06)

    # In natural units: -1430.52285 + 7.80749 t + 13.27053 T - 0.05505 t^2 - 0.04005 T^2 + 0.01 t T.
    def equation(t: float, d: float) -> float:
        return -1430.52285 + 7.80749 * t + 13.27053 * d - 0.05505 * t**2 - 0.04005 * d**2 + 0.01 * t * d

    for coded in ((-1.0, 1.0), (0.3, -0.7), (1.2, 0.4)):
        # The equation is printed with five decimals of a square of 175: worth 0.15.
        assert surface.at(coded) == pytest.approx(equation(85 + 5 * coded[0], 175 + 5 * coded[1]), abs=0.2)
