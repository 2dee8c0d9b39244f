"""The analysis of a response of an experiment, and contrasts between its effects or levels.

Contrasts follow Jain, sec. 18.5 and 20.6: a contrast ``sum h_i q_i`` has the standard deviation
``s_e sqrt(sum h_i^2 / n_i)``, where n_i runs contribute to term i; the mean of m further runs of a combination has the
standard deviation ``s_e sqrt(1/n_eff + 1/m)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from routecast.errors import RoutecastError
from routecast.experiment._factors import label_of
from routecast.experiment.analysis._checks import residuals_of, run_advice, transform_advice
from routecast.experiment.analysis._linear_model import (
    Fit,
    ModelChoice,
    Term,
    anova_table,
    centre_rows,
    choose_terms,
    effects_of,
    estimable_terms,
    fit_columns,
    interval_about,
    is_sample_design,
    lack_of_fit,
    lenth,
    mark_exact,
    means_of,
    polynomial_terms,
    pure_error,
    t_quantile,
)
from routecast.experiment.analysis._observations import Observations, observe
from routecast.experiment.analysis._screening import screen_factorial, screen_sample
from routecast.experiment.analysis.outcome import (
    Analysis,
    Cell,
    Effect,
    Lenth,
    Screening,
    StationaryPoint,
    Surface,
    SurfaceTerm,
)
from routecast.experiment.model import DesignKind, Results
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Contrast", "analyse", "contrast_of_effects", "contrast_of_levels", "interval_of_further_runs", "screen"]


@value
class Contrast:
    """A weighted sum of effects or of mean responses."""

    value: float
    standard_error: float | None = field("Standard error; None without noise")
    low: float | None = field("Lower end of the confidence interval; None without noise")
    high: float | None = field("Upper end of the confidence interval; None without noise")
    is_significant: bool | None = field("Whether the interval excludes zero; None without noise")


def contrast_of_effects(analysis: Analysis, weights: Mapping[str, float]) -> Contrast:
    """Return a contrast of two-level effects: weights ``{"A": 1, "B": -1}`` compare the effect of A with that of B.

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
            raise RoutecastError(f"{name} has more than two levels: take a contrast of its levels")
        value += weight * effect.value
        variance += (weight * (effect.standard_error or 0.0)) ** 2
    return _contrast(analysis, value, variance**0.5)


def contrast_of_levels(analysis: Analysis, letter: str, weights: Mapping[str, float]) -> Contrast:
    """Return a contrast of the mean responses at levels of a factor: weights ``{"4 threads": -1, "8 threads": 1}``.

    Raises
    ------
    RoutecastError
        There is no such factor or level, or the runs are not balanced.
    """
    _require_balance(analysis)
    points = next((means.points for means in analysis.means if means.letters == (letter,)), None)
    if points is None:
        letters = ", ".join(means.letters[0] for means in analysis.means if len(means.letters) == 1)
        raise RoutecastError(f"there are no means of a factor {letter}: there are those of {letters}")
    by_label = {point.labels[0]: point for point in points}
    value, variance = 0.0, 0.0
    for label, weight in weights.items():
        if label not in by_label:
            raise RoutecastError(f'{letter} has no level "{label}": there are {", ".join(by_label)}')
        value += weight * by_label[label].value
        variance += weight**2 / by_label[label].count
    return _contrast(analysis, value, (analysis.s_e or 0.0) * variance**0.5)


def interval_of_further_runs(analysis: Analysis, row: int, runs: int = 1) -> tuple[float, float] | None:
    """Return the confidence interval of the mean of further runs of a combination; None without noise.

    Parameters
    ----------
    analysis : Analysis
    row : int
        Row of the design.
    runs : int
        Number of further runs.
    """
    cell = next(cell for cell in analysis.cells if cell.row == row)
    if analysis.s_e is None or cell.predicted is None or cell.low is None:
        return None
    half = t_quantile(analysis.confidence, analysis.error_df) * analysis.s_e
    half_width = ((cell.predicted - cell.low) ** 2 + half**2 / runs) ** 0.5
    return cell.predicted - half_width, cell.predicted + half_width


def _require_balance(analysis: Analysis) -> None:
    if not analysis.is_balanced:
        raise RoutecastError(
            "the runs are not balanced (some are missing, or the design is not a factorial), so contrasts need the "
            "covariance of the effects: compare the intervals of the effects instead"
        )


def _contrast(analysis: Analysis, value: float, error: float) -> Contrast:
    if analysis.s_e is None:
        return Contrast(value=value, standard_error=None, low=None, high=None, is_significant=None)
    half_width = t_quantile(analysis.confidence, analysis.error_df) * error
    low, high = interval_about(value, half_width)
    return Contrast(value=value, standard_error=error, low=low, high=high, is_significant=abs(value) > half_width)


_RIDGE_RATIO = 0.01
"""Ratio of the smallest to the largest eigenvalue below which a stationary point is a ridge."""


def fit_surface(data: Observations, order: int, confidence: float) -> Surface | None:
    """Fit a polynomial of first or second order to the runs that answered.

    ``confidence``: confidence of the intervals and of the verdict on lack of fit. Returns None if a factor is not a
    quantity, or if the runs cannot separate the terms.
    """
    if not all(factor.is_quantity for factor in data.factors):
        return None
    candidate_terms = list(polynomial_terms(data.factors, data.design, data.rows, order))
    terms = estimable_terms(candidate_terms, data.rows).terms
    count = len(data.factors)
    if len(terms) < len(candidate_terms) or (order == 2 and len(terms) < 2 * count + count * (count - 1) // 2):
        return None
    points = data.design[data.rows]
    columns = [term.columns[data.rows] for term in terms]
    fit = mark_exact(fit_columns(columns, data.y, is_exact=data.is_exact), points, data.y)
    if fit.sst == 0:
        return None
    letters = tuple(factor.letter for factor in data.factors)
    surface_terms = _surface_terms(terms, letters, fit, confidence)
    return Surface(
        order=order,
        letters=letters,
        terms=surface_terms,
        r2_ratio=fit.r2_ratio,
        adjusted_r2_ratio=fit.adjusted_r2_ratio,
        predicted_r2_ratio=fit.predicted_r2_ratio,
        s_e=fit.s_e,
        error_df=fit.error_df,
        confidence=confidence,
        inverse=tuple(map(tuple, fit.inverse.tolist())),
        lack_of_fit=lack_of_fit(fit, points, data.y, confidence),
        stationary=_stationary_point(surface_terms, points) if order == 2 else None,
    )


def _surface_terms(
    terms: tuple[Term, ...], letters: tuple[str, ...], fit: Fit, confidence: float
) -> tuple[SurfaceTerm, ...]:
    from scipy.stats import t as student

    s_e = fit.s_e
    quantile = t_quantile(confidence, fit.error_df) if s_e is not None else 0.0
    surface_terms = []
    for number, term in enumerate([None, *terms]):
        value = float(fit.coefficients[number])
        error = None if s_e is None else s_e * float(fit.inverse[number, number]) ** 0.5
        low, high = interval_about(value, None if error is None else quantile * error)
        surface_terms.append(
            SurfaceTerm(
                name=term.name if term else "1",
                powers=_powers(term, letters),
                value=value,
                standard_error=error,
                low=low,
                high=high,
                p_value=None if error is None else 2 * float(student.sf(abs(value) / error, fit.error_df)),
            )
        )
    return tuple(surface_terms)


def _powers(term: Term | None, letters: tuple[str, ...]) -> tuple[int, ...]:
    if term is None:
        return (0,) * len(letters)
    power = 2 if term.name.endswith("^2") else 1
    return tuple(power if letter in term.letters else 0 for letter in letters)


def _stationary_point(terms: tuple[SurfaceTerm, ...], points: Floats) -> StationaryPoint | None:
    """Return the point where the gradient is zero; None if the surface has no curvature in some direction."""
    size = points.shape[1]
    linear, curvature = np.zeros(size), np.zeros((size, size))
    for term in terms:
        members = [column for column, power in enumerate(term.powers) if power]
        if len(members) == 2:
            curvature[members[0], members[1]] = curvature[members[1], members[0]] = term.value / 2
        elif members and max(term.powers) == 2:
            curvature[members[0], members[0]] = term.value
        elif members:
            linear[members[0]] = term.value
    eigenvalues, axes = np.linalg.eigh(curvature)
    largest, smallest = float(np.max(np.abs(eigenvalues))), float(np.min(np.abs(eigenvalues)))
    if smallest <= 1e-9 * max(largest, 1e-300):
        return None
    coded = np.linalg.solve(-2 * curvature, linear)
    kind: Literal["maximum", "minimum", "saddle", "ridge"]
    if smallest < _RIDGE_RATIO * largest:
        kind = "ridge"
    elif eigenvalues[-1] < 0:
        kind = "maximum"
    elif eigenvalues[0] > 0:
        kind = "minimum"
    else:
        kind = "saddle"
    reach = float(np.max(np.linalg.norm(points, axis=1)))
    is_inside = bool(
        np.all(coded >= points.min(axis=0)) and np.all(coded <= points.max(axis=0)) and np.linalg.norm(coded) <= reach
    )
    constant = next(term.value for term in terms if not any(term.powers))
    return StationaryPoint(
        coded=tuple(coded.tolist()),
        response=float(constant + coded @ linear / 2),
        kind=kind,
        eigenvalues=tuple(eigenvalues.tolist()),
        axes=tuple(map(tuple, axes.T.tolist())),
        is_inside=is_inside,
    )


_BOOTSTRAP_SEED = 1
_MAX_REASONS = 3


def analyse(results: Results, response: str, *, confidence: float = 0.95, order: int | None = None) -> Analysis:
    """Return the analysis of a response of an experiment.

    Parameters
    ----------
    results : Results
    response : str
        Name of the response.
    confidence : float
        Confidence of the intervals and verdicts, between 0 and 1.
    order : int, optional
        Highest number of factors in an interaction; higher interactions count as errors. By default the model has all
        interactions that the runs can estimate, except that a factorial design of many levels without replications
        uses the highest as its errors.

    Raises
    ------
    RoutecastError
        There is no such response, or ``confidence`` or ``order`` is out of range.
    """
    _check_settings(confidence, order)
    data = observe(results, response)
    if len(data.y) == 0:
        return _without_answers(data, response, confidence)
    choice = choose_terms(results.experiment.design.kind, data, order)
    columns = [term.columns[data.rows] for term in choice.estimable.terms]
    points = data.design[data.rows]
    fit = mark_exact(fit_columns(columns, data.y, is_exact=data.is_exact), points, data.y)
    margins = _lenth_margins(data, fit, confidence)
    effects = effects_of(choice.estimable, fit, margins, confidence)
    mean_low, mean_high = _mean_interval(data, fit, confidence, has_common_seeds=results.experiment.has_common_seeds)
    return Analysis(
        response=response,
        transform=data.transform,
        confidence=confidence,
        count=len(data.y),
        mean=float(fit.coefficients[0]),
        mean_low=mean_low,
        mean_high=mean_high,
        effects=effects,
        ssy=float(data.y @ data.y),
        ss0=float(len(data.y) * data.y.mean() ** 2),
        sst=fit.sst,
        sse=fit.sse,
        is_balanced=fit.is_orthogonal,
        error_df=fit.error_df,
        s_e=fit.s_e,
        error_share_ratio=fit.sse / fit.sst if fit.sst > 0 else None,
        r2_ratio=fit.r2_ratio,
        adjusted_r2_ratio=fit.adjusted_r2_ratio,
        predicted_r2_ratio=fit.predicted_r2_ratio,
        noise=_noise(data, choice, fit, points, has_margins=margins is not None),
        anova=anova_table(effects, fit, points, data.y, confidence),
        lenth=margins,
        residuals=residuals_of(data, fit, np.hstack([np.ones((len(data.y), 1)), *columns]), confidence),
        cells=_cells(data, choice, fit, confidence),
        means=means_of(
            data, fit.s_e, fit.error_df, confidence, is_sample=is_sample_design(results.experiment.design.kind, data)
        ),
        surface=_surface(data, choice, confidence),
        screening=_screening(results.experiment.design.kind, data, choice, effects, confidence),
        missing=data.missing,
        unsteady=data.unsteady,
        not_told_apart=choice.estimable.sentences,
        advice=(
            *run_advice(data, effects, fit.error_df, fit.sst),
            *transform_advice(data.y, columns, data.transform, fit.error_df if fit.sse > 0 else 0, confidence),
        ),
        notes=_notes(results, data, choice, fit),
    )


def _check_settings(confidence: float, order: int | None) -> None:
    if not 0 < confidence < 1:
        raise RoutecastError(f"got confidence {confidence:g}: it lies between 0 and 1, usually at 0.95")
    if order is not None and order < 1:
        raise RoutecastError(f"got order {order}: it is at least 1, for main effects only")


def _without_answers(data: Observations, response: str, confidence: float) -> Analysis:
    return Analysis(
        response=response,
        transform=data.transform,
        confidence=confidence,
        count=0,
        mean=None,
        missing=data.missing,
        notes=("no run has an answer",),
    )


def _lenth_margins(data: Observations, fit: Fit, confidence: float) -> Lenth | None:
    """Return the margins of effects with one degree of freedom each that leave none for the errors; None otherwise."""
    single = [float(fit.coefficients[block][0]) for block in fit.blocks if block.stop - block.start == 1]
    is_saturated = not data.is_exact and fit.error_df == 0 and fit.sst > 0
    return lenth(single, confidence) if is_saturated and len(single) == len(fit.blocks) else None


def screen(results: Results, response: str, *, confidence: float = 0.95, seed: int = 1) -> Screening | None:
    """Rank the factors by importance; None if nothing varies or too few runs answered.

    Parameters
    ----------
    results : Results
    response : str
    confidence : float
        Confidence of the bootstrap intervals.
    seed : int
        Seed of the bootstrap.

    Raises
    ------
    RoutecastError
        There is no such response.
    """
    data = observe(results, response)
    if is_sample_design(results.experiment.design.kind, data):
        return screen_sample(data, confidence=confidence, seed=seed)
    return analyse(results, response, confidence=confidence).screening


def _mean_interval(
    data: Observations, fit: Fit, confidence: float, *, has_common_seeds: bool
) -> tuple[float, float] | tuple[None, None]:
    """Return the interval of q_0, from the means of whole replications if their runs share random numbers."""
    if fit.s_e is None:
        return None, None
    error, df = fit.s_e * float(fit.inverse[0, 0]) ** 0.5, fit.error_df
    counts = np.bincount(data.replications)
    if has_common_seeds and len(counts) > 1 and int(counts.min()) == int(counts.max()):
        means = np.bincount(data.replications, weights=data.y) / counts
        error, df = float(np.std(means, ddof=1)) / len(means) ** 0.5, len(means) - 1
    return interval_about(float(fit.coefficients[0]), t_quantile(confidence, df) * error)


def _cells(data: Observations, choice: ModelChoice, fit: Fit, confidence: float) -> tuple[Cell, ...]:
    terms = choice.estimable.terms
    rows = np.hstack([np.ones((len(data.design), 1)), *(term.columns for term in terms)])
    half_width = None if fit.s_e is None else t_quantile(confidence, fit.error_df) * fit.s_e
    is_predictable = np.ones(len(data.design), dtype=bool)
    for column, lost in data.lost_levels(is_polynomial=choice.is_polynomial):
        is_predictable &= ~np.isin(np.round(data.design[:, column], 9), lost)
    answered: dict[int, list[float]] = {}
    for number, response in zip(data.rows.tolist(), data.y.tolist(), strict=True):
        answered.setdefault(number, []).append(response)
    cells = []
    for number, row in enumerate(rows):
        values = tuple(answered.get(number, ()))
        predicted = float(row @ fit.coefficients) if is_predictable[number] else None
        low = high = None
        if predicted is not None and half_width is not None:
            low, high = interval_about(predicted, half_width * fit.variance_factor(row) ** 0.5)
        cells.append(
            Cell(
                row=number,
                coded=tuple(data.design[number].tolist()),
                labels=data.row_labels(number),
                values=values,
                mean=sum(values) / len(values) if values else None,
                predicted=predicted,
                low=low,
                high=high,
            )
        )
    return tuple(cells)


def _surface(data: Observations, choice: ModelChoice, confidence: float) -> Surface | None:
    """Fit a surface if the design permits it, by more than two levels of quantities or by centre points."""
    if choice.is_polynomial:
        return fit_surface(data, choice.order, confidence)
    if centre_rows(data.design).any():
        return fit_surface(data, 1, confidence)
    if any(len(np.unique(np.round(column, 9))) > 2 for column in data.design.T):
        return fit_surface(data, 2, confidence)
    return None


def _screening(
    kind: DesignKind, data: Observations, choice: ModelChoice, effects: Sequence[Effect], confidence: float
) -> Screening | None:
    if is_sample_design(kind, data):
        return screen_sample(data, confidence=confidence, seed=_BOOTSTRAP_SEED)
    if choice.is_polynomial or not any(effect.share_ratio is not None for effect in effects):
        return None
    shares = {effect.letters: effect.share_ratio or 0.0 for effect in effects if effect.letters}
    return screen_factorial(data, shares, has_aliases=bool(choice.estimable.aliases))


def _noise(data: Observations, choice: ModelChoice, fit: Fit, points: Floats, *, has_margins: bool) -> str:
    """Return the source of the estimate of the noise, or the reason why there is none, in words."""
    left_out = choice.pooled or "terms that the model leaves out"
    if fit.sst == 0:
        return "none, because all runs have the same answer"
    if data.is_exact:
        reason = "none, because the formula gives the same answer every time"
        if fit.sse == 0:
            return f"{reason}; the effects are exact and need no intervals"
        return f"{reason}; the remaining {fit.sse / fit.sst:.1%} of the variation comes from {left_out}"
    if fit.is_exact and fit.sse > 0:
        return (
            f"none, because repeated runs have the same answer; the remaining {fit.sse / fit.sst:.1%} of the variation "
            f"comes from {left_out}"
        )
    if fit.error_df == 0:
        unknown = "not estimated, because no combination ran twice and noise cannot be distinguished from the effects"
        return f"{unknown}; Lenth's margins show which effects stand out" if has_margins else unknown
    _, pure_df = pure_error(points, data.y)
    if fit.sse == 0:
        if pure_df > 0:
            return "none, because repeated runs have the same answer; intervals have no meaning"
        return "none, because the model meets every run exactly"
    if pure_df == fit.error_df:
        return f"estimated from repeated runs ({pure_df} degrees of freedom)"
    if pure_df == 0:
        return (
            f"estimated from {left_out}, taken as zero, because no run is repeated ({fit.error_df} degrees of freedom)"
        )
    return (
        f"estimated from repeated runs ({pure_df} degrees of freedom) and from {left_out}, taken as zero "
        f"({fit.error_df - pure_df})"
    )


def _notes(results: Results, data: Observations, choice: ModelChoice, fit: Fit) -> tuple[str, ...]:
    notes: list[str] = []
    if fit.sst == 0:
        notes.append("every run has the same answer, so no factor has an effect or a share of the variation")
    if count := len(data.missing):
        reasons = list(dict.fromkeys(missing.why for missing in data.missing))
        more = "; …" if len(reasons) > _MAX_REASONS else ""
        notes.append(
            f"{count} of {len(results.runs)} runs {'is' if count == 1 else 'are'} missing: "
            f"{'; '.join(reasons[:_MAX_REASONS])}{more}"
        )
    for column, lost in data.lost_levels(is_polynomial=choice.is_polynomial):
        factor = data.factors[column]
        if np.ptp(data.design[data.rows, column]) > 0:  # otherwise ``not_told_apart`` has a sentence
            labels = ", ".join(label_of(factor, float(level)) for level in lost)
            notes.append(
                f"no run with {factor.name} at {labels} has an answer, so its effects are those of its other levels"
            )
    if count := len(data.unsteady):
        was, it_is = ("was", "it is") if count == 1 else ("were", "they are")
        notes.append(f"{count} of {len(results.runs)} runs {was} not steady; {it_is} analysed nevertheless")
    if results.experiment.has_common_seeds and fit.s_e is not None and data.is_replicated:
        notes.append(
            "the runs of a replication share their random numbers: their common part cancels in the effects, whose "
            "intervals are rather too wide, but not in the means at levels, whose intervals are rather too narrow"
        )
    if fit.sst > 0 and not fit.is_orthogonal:
        notes.append(
            "the runs are not balanced, so regression estimates all effects together: a share is the variation that an "
            "effect explains beyond all others, and the shares do not add up to 100 %"
        )
    return tuple(notes)
