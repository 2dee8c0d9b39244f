"""Questions asked of an analysis afterwards: differences between effects or levels, and what further runs would answer.

Jain, sec. 18.5 and 20.6: a contrast ``sum h_i q_i`` has the standard deviation ``s_e sqrt(sum h_i^2 / n_i)``, where
n_i runs stand behind each term; the mean of m further runs of a combination has ``s_e sqrt(1/n_eff + 1/m)``.
"""

from __future__ import annotations

from collections.abc import Mapping

from routecast.errors import RoutecastError
from routecast.experiment.analysis.outcome import Analysis
from routecast.quantity.schema import field, value

__all__ = ["Contrast", "contrast_of_effects", "contrast_of_levels", "interval_of_further_runs"]


@value
class Contrast:
    """A weighted sum of effects or of mean responses."""

    value: float
    standard_error: float | None = field("None where there is no noise")
    low: float | None = field("None where there is no noise")
    high: float | None = field("None where there is no noise")
    is_significant: bool | None = field("Whether its interval excludes zero")


def contrast_of_effects(analysis: Analysis, weights: Mapping[str, float]) -> Contrast:
    """Return a contrast of two-level effects by name: ``{"A": 1, "B": -1}`` asks whether A has more effect than B.

    Raises
    ------
    RoutecastError
        There is no such effect, or the runs are not balanced.
    """
    _require_balance(analysis)
    value, variance = 0.0, 0.0
    for name, weight in weights.items():
        try:
            effect = analysis.effect(name)
        except KeyError as problem:
            raise RoutecastError(str(problem.args[0])) from None
        if effect.value is None:
            raise RoutecastError(f"{name} has more than two levels: ask for a contrast of its levels")
        value += weight * effect.value
        variance += (weight * (effect.standard_error or 0.0)) ** 2
    return _contrast(analysis, value, variance**0.5)


def contrast_of_levels(analysis: Analysis, letter: str, weights: Mapping[str, float]) -> Contrast:
    """Return a contrast of the mean responses at a factor's levels, by label: ``{"4 threads": -1, "8 threads": 1}``.

    Raises
    ------
    RoutecastError
        There is no such factor or level, or the runs are not balanced.
    """
    _require_balance(analysis)
    points = next((means.points for means in analysis.means if means.letters == (letter,)), None)
    if points is None:
        letters = ", ".join(means.letters[0] for means in analysis.means if len(means.letters) == 1)
        raise RoutecastError(f"no levels of a factor {letter}: there are {letters}")
    by_label = {point.labels[0]: point for point in points}
    value, variance = 0.0, 0.0
    for label, weight in weights.items():
        if label not in by_label:
            raise RoutecastError(f'{letter} has no level "{label}": there are {", ".join(by_label)}')
        value += weight * by_label[label].value
        variance += weight**2 / by_label[label].count
    return _contrast(analysis, value, (analysis.s_e or 0.0) * variance**0.5)


def interval_of_further_runs(analysis: Analysis, row: int, runs: int = 1) -> tuple[float, float] | None:
    """Return where the mean of further runs of a combination will lie; None where there is no noise.

    Parameters
    ----------
    analysis : Analysis
    row : int
        Of the design.
    runs : int
        How many more runs.
    """
    cell = next(one for one in analysis.cells if one.row == row)
    if analysis.s_e is None or cell.predicted is None or cell.low is None:
        return None
    quantile = _quantile(analysis)
    half = ((cell.predicted - cell.low) ** 2 + (quantile * analysis.s_e) ** 2 / runs) ** 0.5
    return cell.predicted - half, cell.predicted + half


def _require_balance(analysis: Analysis) -> None:
    if not analysis.is_balanced:
        raise RoutecastError(
            "the runs are not balanced (some are missing, or the design is no factorial): contrasts would need the "
            "covariance of the effects, so compare the effects' own intervals"
        )


def _quantile(analysis: Analysis) -> float:
    from scipy.stats import t as student

    return float(student.ppf(0.5 + analysis.confidence / 2, analysis.error_df))


def _contrast(analysis: Analysis, value: float, error: float) -> Contrast:
    if analysis.s_e is None:
        return Contrast(value=value, standard_error=None, low=None, high=None, is_significant=None)
    half = _quantile(analysis) * error
    return Contrast(
        value=value, standard_error=error, low=value - half, high=value + half, is_significant=abs(value) > half
    )
