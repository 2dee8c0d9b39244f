"""Checks of the assumptions on the residuals, and advice on transforms and further runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.outcome import AssumptionCheck, Residuals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from routecast.experiment.analysis._linear_model import Fit
    from routecast.experiment.analysis._observations import Observations
    from routecast.experiment.analysis.outcome import Effect

    Floats: TypeAlias = NDArray[np.float64]

_LARGE_RATIO = 10.0
"""Ratio y_max/y_min above which to transform; Jain gives no number (sec. 17.6, box 21.1), we take ten."""

_MIN_ERRORS = 5
"""Degrees of freedom below which some power fits by chance."""
_MAX_POWER_RATIO = 1e12
"""Ratio y_max/y_min above which squares of the responses lose their digits."""

_POWERS = {-1.0: "the reciprocal", -0.5: "the reciprocal of the root", 0.0: "the logarithm", 0.5: "the root"}
_MAX_ADVISED_EFFECTS = 3
_SHORT_ALIAS = len("+AB")
"""Length of an alias of two factors; interactions of more factors are rarely large (Jain, sec. 19.5)."""
_LARGE_SHARE = 0.1
_MAX_NAMED = 4
_POWER_GRID = np.linspace(-2.0, 2.0, 81)


def transform_advice(
    y: Floats, columns: Sequence[Floats], transform: str, error_df: int, confidence: float
) -> list[str]:
    """Return advice to transform the response.

    ``y``: analysed responses; ``columns``: columns of the model; ``transform``: the current transform.
    """
    if transform != "none" or len(y) == 0 or float(np.min(y)) <= 0:
        return []
    advice = []
    ratio = float(np.max(y)) / float(np.min(y))
    if ratio >= _LARGE_RATIO:
        advice.append(
            f"the largest response is {ratio:.3g} times the smallest, so effects that multiply look like interactions; "
            'analyse the logarithm as well (transform = "log")'
        )
    if error_df >= _MIN_ERRORS and ratio < _MAX_POWER_RATIO:
        best, low, high = box_cox(y, columns, confidence)
        if not low <= 1.0 <= high:
            power = min(_POWERS, key=lambda named: (not low <= named <= high, abs(named - best)))
            if low <= power <= high:
                advice.append(
                    f"by the method of Box and Cox the model fits {_POWERS[power]} of the response better than the "
                    f"response (power {best:.2g}, {confidence:.0%} interval {low:.2g} to {high:.2g})"
                )
    return advice


def run_advice(data: Observations, effects: Sequence[Effect], error_df: int, sst: float) -> list[str]:
    """Return advice on further runs; ``effects``: effects, the largest first."""
    advice = []
    if sst > 0 and error_df == 0 and not data.is_exact and not data.is_replicated:
        advice.append(
            "run every combination at least twice (replications = 2): without repeated runs effects have no intervals"
        )
    for effect in effects[:_MAX_ADVISED_EFFECTS]:
        short = [alias for alias in effect.aliases if len(alias) <= _SHORT_ALIAS]
        if short and (effect.share_ratio or 0.0) >= _LARGE_SHARE:
            aliases = ", ".join(alias[1:] for alias in short[:_MAX_NAMED])
            more = ", …" if len(short) > _MAX_NAMED else ""
            remedy = (
                "replace the levels at which runs failed"
                if data.missing
                else "add the runs of another part of the full design to separate them"
            )
            advice.append(f"{effect.name} explains much, but its cause may be {aliases}{more}: {remedy}")
    return advice


def box_cox(y: Floats, columns: Sequence[Floats], confidence: float) -> tuple[float, float, float]:
    """Return the power of y that the model fits best, with its confidence interval, between -2 and 2.

    G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964. The power maximises the profile
    likelihood -n/2 ln SSE of ``(y^p - 1) / (p g^(p-1))``, where g is the geometric mean. The interval has all powers
    whose likelihood is within half the quantile of chi-squared (1 df) of the maximum.
    """
    from scipy.stats import chi2

    model = np.hstack([np.ones((len(y), 1)), *columns])
    q, _ = np.linalg.qr(model)
    logs = np.log(y)
    geometric = float(logs.mean())
    scaled = np.exp(logs - geometric)
    likelihood = np.empty(len(_POWER_GRID))
    for position, power in enumerate(_POWER_GRID):
        transformed = np.log(scaled) if abs(power) < 1e-9 else (scaled**power - 1) / power
        residuals = transformed - q @ (q.T @ transformed)
        likelihood[position] = -0.5 * len(y) * np.log(max(float(residuals @ residuals), 1e-300))
    best = int(np.argmax(likelihood))
    inside = _POWER_GRID[likelihood >= likelihood[best] - 0.5 * float(chi2.ppf(confidence, 1))]
    return float(_POWER_GRID[best]), float(inside.min()), float(inside.max())


_MIN_RESIDUALS = 4
_MAX_FOR_SHAPIRO_WILK = 5000
_MIN_REPLICATIONS = 3


def residuals_of(data: Observations, fit: Fit, model: Floats, confidence: float) -> Residuals:
    """Return the residuals of a fit, and checks that they are normal, of constant spread, and independent.

    Jain checks these assumptions by eye (sec. 14.7, 18.6); here each also has a test. A small p value means that such
    residuals are rare under the assumption.

    ``model``: columns of the model, with that of the mean; ``confidence``: 1 minus the p value below which an
    assumption is doubtful.
    """
    return Residuals(
        runs=tuple(data.runs.tolist()),
        observed=tuple(data.y.tolist()),
        predicted=tuple(fit.predicted.tolist()),
        residuals=tuple(fit.residuals.tolist()),
        normal_scores=tuple(normal_scores(fit.residuals).tolist()),
        checks=_checks(data, fit, model, 1 - confidence) if fit.sse > 0 and not fit.is_exact else (),
    )


def normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks of the values: Blom's (i - 3/8) / (n + 1/4)."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return np.asarray(ndtri((rankdata(values) - 0.375) / (len(values) + 0.25)), dtype=float)


def breusch_pagan(residuals: Floats, predicted: Floats) -> tuple[float, float]:
    """Return n R^2 of the squared residuals on the predicted values, and its p value on chi-squared with 1 df.

    Koenker's form (Journal of Econometrics 17, 1981) does not need normal errors.
    """
    from scipy.stats import chi2

    squares = residuals**2
    spread, level = float(np.sum((squares - squares.mean()) ** 2)), predicted - predicted.mean()
    if spread == 0:
        return 0.0, 1.0
    correlation = float(level @ squares) / math.sqrt(float(level @ level)) / math.sqrt(spread)
    statistic = len(squares) * correlation**2
    return statistic, float(chi2.sf(statistic, 1))


def durbin_watson(residuals: Floats, model: Floats) -> tuple[float, float]:
    """Return Durbin and Watson's d of the residuals in run order, and its two-sided p value.

    The p value is that of the beta distribution on 0..4 with the exact mean and variance of d under this model
    (J. Durbin and G. S. Watson, Biometrika 38, 1951, sec. 4).
    """
    from scipy.stats import beta

    n, p = model.shape
    d = float(np.sum(np.diff(residuals) ** 2) / np.sum(residuals**2))
    # With A = D'D of first differences D, and M = 1 - QQ': traces of MA and (MA)^2 without the n by n matrices.
    q, _ = np.linalg.qr(model)
    steps = np.diff(q, axis=0)
    second_steps = np.vstack([-steps[:1], steps[:-1] - steps[1:], steps[-1:]])
    gram = steps.T @ steps
    trace = 2 * (n - 1) - float(np.trace(gram))
    trace_of_square = 6 * n - 8 - 2 * float(np.sum(second_steps**2)) + float(np.sum(gram**2))
    df = n - p
    mean = trace / df
    variance = 2 * (trace_of_square - trace * mean) / (df * (df + 2))
    if variance <= 0:
        return d, 1.0
    total = mean * (4 - mean) / variance - 1
    a = mean / 4 * total
    below = float(beta.cdf(d / 4, a, total - a))
    return d, 2 * min(below, 1 - below)


def _checks(data: Observations, fit: Fit, model: Floats, level: float) -> tuple[AssumptionCheck, ...]:
    if len(fit.residuals) < _MIN_RESIDUALS or fit.error_df < 2:
        return tuple(
            _untested(name, method, "there are too few residuals for the test")
            for name, method in (
                ("normal errors", "Shapiro-Wilk"),
                ("constant spread", "Breusch-Pagan"),
                ("independent errors", "Durbin-Watson"),
            )
        )
    return (_normality(fit, level), *_spread(data, fit, level), _independence(data, fit, model, level))


def _untested(name: str, method: str, verdict: str) -> AssumptionCheck:
    return AssumptionCheck(name=name, method=method, statistic=None, p_value=None, is_doubtful=None, verdict=verdict)


def _normality(fit: Fit, level: float) -> AssumptionCheck:
    from scipy.stats import shapiro

    sample = fit.residuals
    if len(sample) > _MAX_FOR_SHAPIRO_WILK:
        sample = sample[:: len(sample) // _MAX_FOR_SHAPIRO_WILK + 1]
    # W does not depend on the scale (Shapiro and Wilk 1965), but SciPy takes a range below 1e-19 for zero.
    statistic, p_value = (float(value) for value in shapiro(sample / np.abs(sample).max()))
    return _check(
        "normal errors",
        "Shapiro-Wilk",
        statistic,
        p_value,
        level,
        "the residuals are not normally distributed: look for outliers, and take the intervals as rough",
        "the residuals do not contradict normally distributed errors",
    )


def _spread(data: Observations, fit: Fit, level: float) -> list[AssumptionCheck]:
    from scipy.stats import levene

    doubtful = "the errors are larger at some responses than at others: " + (
        "try a transform (the logarithm if they grow with the response)"
        if data.transform == "none"
        else "try another transform or none, or take the intervals as rough"
    )
    fine = "the residuals do not contradict errors of the same size everywhere"
    tests = []
    if float(np.ptp(fit.predicted)) > 1e-9 * float(np.max(np.abs(fit.predicted))):
        tests.append(("Breusch-Pagan", *breusch_pagan(fit.residuals, fit.predicted)))
    cells = [fit.residuals[data.rows == row] for row in np.unique(data.rows)]
    if len(cells) >= 2 and all(len(cell) >= _MIN_REPLICATIONS for cell in cells):
        distances = np.concatenate([np.abs(cell - np.median(cell)) for cell in cells])
        if float(np.ptp(distances)) > 0:
            result = levene(*cells, center="median")
            tests.append(("Levene", float(result.statistic), float(result.pvalue)))
    return [_check("constant spread", *test, level, doubtful, fine) for test in tests]


def _independence(data: Observations, fit: Fit, model: Floats, level: float) -> AssumptionCheck:
    if data.positions is None:
        verdict = "no test is needed: each run was simulated with random numbers from its own seed"
        return _untested("independent errors", "Durbin-Watson", verdict)
    order = np.argsort(data.positions)
    statistic, p_value = durbin_watson(fit.residuals[order], model[order])
    relation = "alike" if statistic < 2 else "of opposite sign"
    return _check(
        "independent errors",
        "Durbin-Watson",
        statistic,
        p_value,
        level,
        f"errors of consecutive runs are {relation}: something drifted while the runs were made, or runs disturbed the "
        "next ones",
        "the order of the residuals does not contradict independent errors",
    )


def _check(
    name: str, method: str, statistic: float, p_value: float, level: float, doubtful: str, fine: str
) -> AssumptionCheck:
    is_doubtful = p_value < level
    return AssumptionCheck(
        name=name,
        method=method,
        statistic=statistic,
        p_value=p_value,
        is_doubtful=is_doubtful,
        verdict=doubtful if is_doubtful else fine,
    )
