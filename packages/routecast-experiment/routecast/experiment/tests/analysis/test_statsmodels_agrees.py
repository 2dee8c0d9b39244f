"""Least squares and its tables of variance agree with statsmodels on random designs."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.experiment.analysis import analyse
from routecast.experiment.analysis._checks import breusch_pagan, durbin_watson
from routecast.experiment.model import Results

Make = Callable[..., Results]
CLOSE = 1e-7
"""Relative: both sum a few hundred doubles."""


def fitted(formula: str, table: dict[str, list[float]]):  # type: ignore[no-untyped-def]  # statsmodels has no types
    import pandas as pd
    import statsmodels.formula.api as smf

    return smf.ols(formula, pd.DataFrame(table)).fit()


def anova(model, kind: int):  # type: ignore[no-untyped-def]  # statsmodels has no types
    from statsmodels.stats.anova import anova_lm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return anova_lm(model, typ=kind)


@given(
    factors=st.integers(2, 4), replications=st.integers(2, 3), seed=st.integers(0, 2**32 - 1), lost=st.integers(0, 3)
)
@pytest.mark.slow
def test_two_level_designs_with_some_runs_missing(
    results_of: Make, standard_order: Callable[[int], list[tuple[float, ...]]], factors: int, replications: int,
    seed: int, lost: int,
) -> None:  # fmt: skip
    random = np.random.default_rng(seed)
    rows = standard_order(factors)
    answers: list[list[float | str]] = [[float(value) for value in random.normal(10, 3, replications)] for _ in rows]
    for row in random.choice(len(rows), size=min(lost, len(rows)), replace=False):
        answers[row] = [*answers[row][:-1], "the level makes the router invalid"]
    letters = "ABCD"[:factors]
    table: dict[str, list[float]] = {letter: [] for letter in [*letters, "y"]}
    for row, values in zip(rows, answers, strict=True):
        for value in values:
            if isinstance(value, float):
                for letter, level in zip(letters, row, strict=True):
                    table[letter].append(level)
                table["y"].append(value)
    reference = fitted("y ~ " + " * ".join(letters), table)
    result = analyse(results_of(rows, answers), "y", confidence=0.9)
    intervals = reference.conf_int(0.1)
    for effect in result.effects:
        name = ":".join(effect.name)
        assert effect.value == pytest.approx(reference.params[name], rel=CLOSE, abs=1e-9)
        assert effect.standard_error == pytest.approx(reference.bse[name], rel=CLOSE)
        assert (effect.low, effect.high) == pytest.approx(tuple(intervals.loc[name]), rel=1e-6, abs=1e-8)
        assert effect.p_value == pytest.approx(reference.pvalues[name], rel=1e-6, abs=1e-12)
    squares = anova(reference, 3)
    for row in result.anova:
        if row.component not in {"errors", "total"}:
            assert row.ss == pytest.approx(squares.sum_sq[":".join(row.component)], rel=1e-6, abs=1e-9)
    assert result.sse == pytest.approx(reference.ssr, rel=CLOSE)
    assert result.adjusted_r2_ratio == pytest.approx(reference.rsquared_adj, rel=1e-6, abs=1e-9)
    if lost and replications == 2:
        # A combination that answered once cannot be left out of the fit.
        assert result.predicted_r2_ratio is None
        return
    press = reference.get_influence().resid_press
    assert result.predicted_r2_ratio == pytest.approx(
        1 - float(np.sum(press**2)) / reference.centered_tss, rel=1e-6, abs=1e-9
    )


@given(
    levels=st.tuples(st.integers(2, 4), st.integers(3, 4)),
    replications=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
@pytest.mark.slow
def test_designs_of_many_levels(results_of: Make, levels: tuple[int, int], replications: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [(a, b) for b in np.linspace(-1, 1, levels[1]) for a in np.linspace(-1, 1, levels[0])]
    answers = [[float(value) for value in random.normal(5, 2, replications)] for _ in rows]
    table = {
        "A": [a for a, _ in rows for _ in range(replications)],
        "B": [b for _, b in rows for _ in range(replications)],
        "y": [value for values in answers for value in values],
    }
    formula = "y ~ C(A, Sum) * C(B, Sum)" if replications > 1 else "y ~ C(A, Sum) + C(B, Sum)"
    reference = anova(fitted(formula, table), 2)
    result = analyse(results_of(rows, answers, kind="multilevel"), "y")
    names = {"A": "C(A, Sum)", "B": "C(B, Sum)", "AB": "C(A, Sum):C(B, Sum)"}
    for effect in result.effects:
        assert effect.df == reference.df[names[effect.name]]
        assert effect.ss == pytest.approx(reference.sum_sq[names[effect.name]], rel=CLOSE, abs=1e-9)
        assert effect.p_value == pytest.approx(reference["PR(>F)"][names[effect.name]], rel=1e-6, abs=1e-12)
    assert result.error_df == reference.df["Residual"]
    shares = [effect.share_ratio or 0 for effect in result.effects]
    assert sum(shares) + (result.error_share_ratio or 0) == pytest.approx(1)


@given(count=st.integers(12, 40), seed=st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_second_order_surfaces(results_of: Make, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [tuple(row) for row in np.round(random.uniform(-1, 1, (count, 2)), 6)]
    y = [float(value) for value in random.normal(0, 1, count)]
    table = {"A": [row[0] for row in rows], "B": [row[1] for row in rows], "y": y}
    reference = fitted("y ~ A + B + A:B + I(A**2) + I(B**2)", table)
    result = analyse(results_of(rows, [[value] for value in y], kind="latin_hypercube", quantities=True), "y", order=2)
    surface = result.surface
    assert surface is not None
    values = {term.name: term.value for term in surface.terms}
    names = {"1": "Intercept", "A": "A", "B": "B", "AB": "A:B", "A^2": "I(A ** 2)", "B^2": "I(B ** 2)"}
    assert values == pytest.approx({name: reference.params[names[name]] for name in names}, rel=1e-6, abs=1e-8)
    import pandas as pd

    frame = reference.get_prediction(pd.DataFrame({"A": [0.2], "B": [-0.6]})).summary_frame(0.05)
    assert surface.interval((0.2, -0.6)) == pytest.approx(
        (frame.mean_ci_lower[0], frame.mean_ci_upper[0]), rel=1e-6, abs=1e-8
    )
    assert surface.interval((0.2, -0.6), of_a_new_run=True) == pytest.approx(
        (frame.obs_ci_lower[0], frame.obs_ci_upper[0]), rel=1e-6, abs=1e-8
    )


@pytest.mark.slow
def test_the_statistics_of_the_residual_checks() -> None:
    from statsmodels.stats.diagnostic import het_breuschpagan
    from statsmodels.stats.stattools import durbin_watson as reference_d

    random = np.random.default_rng(4)
    x = random.normal(size=40)
    model = np.column_stack([np.ones(40), x])
    residuals = random.normal(size=40) * np.exp(0.5 * x)
    residuals -= model @ np.linalg.lstsq(model, residuals, rcond=None)[0]
    predicted = 2 + 3 * x
    expected = het_breuschpagan(residuals, np.column_stack([np.ones(40), predicted]))
    assert breusch_pagan(residuals, predicted) == pytest.approx(expected[:2])
    assert durbin_watson(residuals, model)[0] == pytest.approx(reference_d(residuals))
