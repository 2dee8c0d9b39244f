"""Fit a response surface and find where it is flat.

R. H. Myers, D. C. Montgomery and C. M. Anderson-Cook, Response Surface Methodology: with ``y = b0 + x'b + x'Bx`` the
surface is flat at ``x_s = -B^-1 b / 2``, and the eigenvalues of B say how it bends there along the axes that B's
eigenvectors give: all negative is a maximum, all positive a minimum, both a saddle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from routecast.experiment.analysis.linear_model.aliases import estimable_terms
from routecast.experiment.analysis.linear_model.anova import pure_error, told_from_noise
from routecast.experiment.analysis.linear_model.fit import Fit, fit_columns
from routecast.experiment.analysis.linear_model.terms import Term, polynomial_terms
from routecast.experiment.analysis.outcome.surface import LackOfFit, Stationary, Surface, SurfaceTerm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from routecast.experiment.analysis.observations import Observations

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["fit_surface", "lack_of_fit"]

_HARDLY_BENT = 0.01
"""An eigenvalue this small beside the largest is called a ridge: the surface falls 100 times slower that way."""


def fit_surface(seen: Observations, order: int, confidence: float) -> Surface | None:
    """Fit a polynomial of first or second order to the runs that answered.

    Parameters
    ----------
    seen : Observations
    order : {1, 2}
    confidence : float
        Of the intervals, and of the verdict on lack of fit.

    Returns
    -------
    Surface or None
        None where a factor is no quantity, or the runs cannot tell the terms apart.
    """
    if not all(factor.is_quantity for factor in seen.factors):
        return None
    asked = list(polynomial_terms(seen.factors, seen.design, seen.rows, order))
    terms = estimable_terms(asked, seen.rows).terms
    if len(terms) < len(asked) or (order == 2 and len(terms) < _full_size(len(seen.factors))):
        return None
    points = seen.design[seen.rows]
    columns = [term.columns[seen.rows] for term in terms]
    fit = told_from_noise(fit_columns(columns, seen.y, is_exact=seen.is_exact), points, seen.y)
    if fit.sst == 0:
        return None
    letters = tuple(factor.letter for factor in seen.factors)
    found = _terms(terms, letters, fit, confidence)
    return Surface(
        order=order,
        letters=letters,
        terms=found,
        r2_ratio=fit.r2_ratio,
        adjusted_r2_ratio=fit.adjusted_r2_ratio,
        predicted_r2_ratio=fit.predicted_r2_ratio,
        s_e=fit.s_e,
        error_df=fit.error_df,
        confidence=confidence,
        inverse=tuple(tuple(float(one) for one in row) for row in fit.inverse),
        lack_of_fit=lack_of_fit(fit, seen.design[seen.rows], seen.y, confidence),
        stationary=_stationary(found, seen.design[seen.rows]) if order == 2 else None,
    )


def lack_of_fit(fit: Fit, points: Floats, y: Floats, confidence: float) -> LackOfFit | None:
    """Test whether a fit misses the means of repeated runs; None where nothing is repeated or nothing left over."""
    from scipy.stats import f as fisher

    pure_ss, pure_df = pure_error(points, y)
    df, ss = fit.error_df - pure_df, max(fit.sse - pure_ss, 0.0)
    if pure_df == 0 or df <= 0:
        return None
    if pure_ss == 0:
        return LackOfFit(
            df=df,
            pure_df=pure_df,
            ss=ss,
            pure_ss=0.0,
            f=None,
            p_value=None,
            verdict="repeated runs answered the same: all that is left over is lack of fit, not noise",
        )
    f = ss / df / (pure_ss / pure_df)
    p_value = float(fisher.sf(f, df, pure_df))
    return LackOfFit(
        df=df,
        pure_df=pure_df,
        ss=ss,
        pure_ss=pure_ss,
        f=f,
        p_value=p_value,
        verdict="the response bends in ways that the model has no terms for"
        if p_value < 1 - confidence
        else "the model misses the means of repeated runs by no more than their noise",
    )


def _full_size(factors: int) -> int:
    return 2 * factors + factors * (factors - 1) // 2


def _terms(
    terms: tuple[Term, ...], letters: tuple[str, ...], fit: Fit, confidence: float
) -> tuple[SurfaceTerm, ...]:
    from scipy.stats import t as student

    s_e = fit.s_e
    quantile = float(student.ppf(0.5 + confidence / 2, fit.error_df)) if s_e is not None else 0.0
    found = []
    for number in range(len(terms) + 1):
        term = terms[number - 1] if number else None
        value = float(fit.coefficients[number])
        error = None if s_e is None else s_e * float(fit.inverse[number, number]) ** 0.5
        found.append(
            SurfaceTerm(
                name=term.name if term else "1",
                powers=_powers(term, letters),
                value=value,
                standard_error=error,
                low=None if error is None else value - quantile * error,
                high=None if error is None else value + quantile * error,
                p_value=None if error is None else 2 * float(student.sf(abs(value) / error, fit.error_df)),
            )
        )
    return tuple(found)


def _powers(term: Term | None, letters: tuple[str, ...]) -> tuple[int, ...]:
    if term is None:
        return (0,) * len(letters)
    power = 2 if term.name.endswith("^2") else 1
    return tuple(power if letter in term.letters else 0 for letter in letters)


def _stationary(terms: tuple[SurfaceTerm, ...], points: Floats) -> Stationary | None:
    """Return the point where the surface is flat; None where it does not bend at all along some direction."""
    size = points.shape[1]
    linear, bend = np.zeros(size), np.zeros((size, size))
    for term in terms:
        members = [column for column, power in enumerate(term.powers) if power]
        if len(members) == 2:
            bend[members[0], members[1]] = bend[members[1], members[0]] = term.value / 2
        elif members and max(term.powers) == 2:
            bend[members[0], members[0]] = term.value
        elif members:
            linear[members[0]] = term.value
    eigenvalues, axes = np.linalg.eigh(bend)
    largest = float(np.max(np.abs(eigenvalues)))
    if float(np.min(np.abs(eigenvalues))) <= 1e-9 * max(largest, 1e-300):
        return None
    at = np.linalg.solve(-2 * bend, linear)
    kind: Literal["maximum", "minimum", "saddle", "ridge"]
    if float(np.min(np.abs(eigenvalues))) < _HARDLY_BENT * largest:
        kind = "ridge"
    elif eigenvalues[-1] < 0:
        kind = "maximum"
    elif eigenvalues[0] > 0:
        kind = "minimum"
    else:
        kind = "saddle"
    reach = float(np.max(np.linalg.norm(points, axis=1)))
    is_inside = bool(
        np.all(at >= points.min(axis=0)) and np.all(at <= points.max(axis=0)) and np.linalg.norm(at) <= reach
    )
    constant = next(term.value for term in terms if not any(term.powers))
    return Stationary(
        coded=tuple(float(one) for one in at),
        response=float(constant + at @ linear / 2),
        kind=kind,
        eigenvalues=tuple(float(one) for one in eigenvalues),
        axes=tuple(tuple(float(one) for one in axes[:, column]) for column in range(size)),
        is_inside=is_inside,
    )
