"""Residual checks: right about good runs as often as promised, and about bad ones nearly always."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from routecast.experiment.analysis import analyse
from routecast.experiment.analysis._checks import box_cox, durbin_watson, normal_scores
from routecast.experiment.model import Results
from routecast.experiment.runs import wire_order

Order = Callable[[int], list[tuple[float, ...]]]
Make = Callable[..., Results]


def doubtful(results: Results) -> set[str]:
    result = analyse(results, "y")
    assert result.residuals is not None
    return {check.name for check in result.residuals.checks if check.is_doubtful}


@pytest.mark.slow
def test_the_durbin_watson_test_cries_wolf_as_rarely_as_its_p_values_say() -> None:
    random = np.random.default_rng(1)
    model = np.column_stack([np.ones(16), random.choice([-1.0, 1.0], (16, 3))])
    q, _ = np.linalg.qr(model)
    p_values = []
    for _ in range(4000):
        errors = random.normal(size=16)
        p_values.append(durbin_watson(errors - q @ (q.T @ errors), model)[1])
    # Three standard errors of a share of 4000: 0.010 at 5 % and 0.005 at 1 %.
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.010)
    assert np.mean(np.array(p_values) < 0.01) == pytest.approx(0.01, abs=0.005)


def test_a_drift_over_the_order_on_the_wire_is_seen_and_no_drift_is_sought_between_simulations(
    results_of: Make, standard_order: Order
) -> None:
    random = np.random.default_rng(2)
    rows = standard_order(3) * 3
    drifting = [[0.0] for _ in rows]
    for place, run in enumerate(wire_order(1, len(rows))):
        drifting[run] = [10 + rows[run][0] + 0.4 * place + random.normal(0, 0.3)]
    assert "independent errors" in doubtful(results_of(rows, drifting))
    assert "independent errors" not in doubtful(results_of(rows, drifting, evaluator="simulate"))


def test_errors_that_grow_with_the_response_are_seen_and_go_away_with_the_logarithm(
    results_of: Make, standard_order: Order
) -> None:
    random = np.random.default_rng(5)
    answers = [
        [float(np.exp(2 * row[0] + 0.5 * row[1] + random.normal(0, 0.3))) for _ in range(8)]
        for row in standard_order(2)
    ]
    plain = results_of(standard_order(2), answers)
    assert "constant spread" in doubtful(plain)
    advice = analyse(plain, "y").advice
    assert any("effects that multiply" in sentence for sentence in advice)
    assert any("the logarithm of the response" in sentence for sentence in advice)
    logs = results_of(standard_order(2), answers, transform="log")
    assert doubtful(logs) == set()
    assert analyse(logs, "y").effect("A").value == pytest.approx(2, abs=0.25)


def test_one_wild_run_makes_normal_errors_doubtful(results_of: Make, standard_order: Order) -> None:
    random = np.random.default_rng(5)
    answers = [[float(value) for value in random.normal(10, 1, 4)] for _ in standard_order(3)]
    assert "normal errors" not in doubtful(results_of(standard_order(3), answers))
    answers[3][2] += 30
    assert "normal errors" in doubtful(results_of(standard_order(3), answers))


def test_normal_scores_are_bloms_quantiles_of_the_ranks() -> None:
    scores = normal_scores(np.array([3.0, -1.0, 2.0]))
    expected = stats.norm.ppf((np.array([3, 1, 2]) - 0.375) / 3.25)
    assert scores == pytest.approx(expected)


def test_the_power_for_a_sample_without_factors_is_scipys() -> None:
    y = stats.lognorm.rvs(0.6, size=80, random_state=6)
    best, low, high = box_cox(y, [], 0.95)
    _, reference, interval = stats.boxcox(y, alpha=0.05)
    assert best == pytest.approx(reference, abs=0.026)  # half a step of the grid of powers
    assert (low, high) == pytest.approx(interval, abs=0.051)  # one step


def test_two_degrees_of_freedom_are_too_few_to_check_anything(results_of: Make, standard_order: Order) -> None:
    result = analyse(results_of([(-1,), (1,)], [[1.0, 2.0], [4.0]]), "y")
    assert result.residuals is not None
    assert all(check.is_doubtful is None for check in result.residuals.checks)


def test_a_logarithm_that_was_taken_is_not_advised_again(results_of: Make, standard_order: Order) -> None:
    random = np.random.default_rng(8)
    answers = [
        [float(np.exp(row[0] + random.normal(0, 0.02 if row[0] < 0 else 1.0))) for _ in range(12)]
        for row in standard_order(2)
    ]
    result = analyse(results_of(standard_order(2), answers, transform="log"), "y")
    assert result.residuals is not None
    verdicts = [
        check.verdict for check in result.residuals.checks if check.name == "constant spread" and check.is_doubtful
    ]
    assert verdicts
    assert not any("the logarithm" in item for item in verdicts)
