"""Form functions from samples: the paper's polynomial by least squares, and a monotone spline that cannot overshoot.

Why a spline with rising coefficients and not isotonic regression with PCHIP through its steps: it is smooth, one
constrained least-squares problem with one optimum, its bounds hold everywhere, and noise makes no plateaus.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.optimize import nnls

from routecast.errors import FitProblem
from routecast.power.form import PUBLISHED_FORM, FormFunction, MonotoneForm, PolynomialForm

__all__ = ["PAPER_ORDER", "fit_monotone_form", "fit_polynomial_form", "monotone_of"]

PAPER_ORDER = 7
"""The least order with which the paper found its accuracy acceptable (sec. V-A)."""

_MOST_SEGMENTS = 12
_DENSE = 2001
_EQUALITY_WEIGHT = 1e4

Array = NDArray[np.float64]


def fit_polynomial_form(
    t: Sequence[float], x: Sequence[float], *, order: int = PAPER_ORDER
) -> PolynomialForm:
    """Fit a polynomial with a_0 = 0 by least squares, as the paper does (eq. 4).

    Parameters
    ----------
    t, x : sequence of float
        Normalised throughput, and power shifted by idle power and normalised.
    order : int

    Raises
    ------
    routecast.errors.FitProblem
        Fewer different throughputs above 0 than coefficients.
    """
    places, values = _samples(t, x)
    different = np.unique(places[places > 0.0]).size
    if different < order:
        raise FitProblem(
            "",
            f"a polynomial of order {order} has {order} coefficients beside a0 = 0, and there are samples at "
            f"{different} throughputs above 0: give more, or fit --model monotone",
        )
    powers = places[:, None] ** np.arange(1, order + 1)
    found = np.linalg.lstsq(powers, values, rcond=None)[0]
    return PolynomialForm(
        coefficients=(0.0, *map(float, found)), source=f"least squares over {places.size} samples"
    )


def fit_monotone_form(t: Sequence[float], x: Sequence[float], *, segments: int | None = None) -> MonotoneForm:
    """Fit a form function that never falls, never leaves 0..1, with x(0) = 0 and x(1) = 1, by least squares.

    Parameters
    ----------
    t, x : sequence of float
        As :func:`fit_polynomial_form`.
    segments : int or None
        Pieces of the spline, of equal length; None for half as many as there are different throughputs, 1 to 12.

    Raises
    ------
    routecast.errors.FitProblem
        Fewer than two different throughputs strictly between 0 and 1.
    """
    places, values = _samples(t, x)
    inside = np.unique(places[(places > 0.0) & (places < 1.0)]).size
    if inside < 2:
        raise FitProblem(
            "",
            f"a monotone form function needs samples at two throughputs or more between none and the greatest; "
            f"there are {inside}",
        )
    pieces = segments or min(max(inside // 2, 1), _MOST_SEGMENTS)
    return _fitted(places, values, pieces, f"monotone least squares over {places.size} samples")


def monotone_of(form: FormFunction = PUBLISHED_FORM, *, segments: int = _MOST_SEGMENTS) -> MonotoneForm:
    """Return the monotone form function that lies nearest to another one in mean square over 0..1."""
    places = np.linspace(0.0, 1.0, _DENSE)
    values = np.array([form.at(float(t)) for t in places])
    return _fitted(places, values, segments, "monotone least squares over the published polynomial")


def _fitted(places: Array, values: Array, segments: int, source: str) -> MonotoneForm:
    """Solve for the rises of the coefficients: each >= 0, together 1."""
    knots = np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, segments + 1), np.ones(3)])
    basis = BSpline.design_matrix(places, knots, 3).toarray()
    # c_i = rise_1 + … + rise_i and c_0 = 0: what a rise adds is the sum of the basis from its own on.
    rises = np.cumsum(basis[:, ::-1], axis=1)[:, ::-1][:, 1:]
    # The sum of the rises is an equation; as a row that outweighs all samples it is kept to rounding.
    weight = _EQUALITY_WEIGHT * np.sqrt(places.size)
    found, _ = nnls(np.vstack([rises, np.full(rises.shape[1], weight)]), np.append(values, weight))
    coefficients = np.concatenate([[0.0], np.cumsum(found / found.sum())])
    coefficients[-1] = 1.0
    return MonotoneForm(
        knots=tuple(map(float, knots)),
        coefficients=tuple(float(min(c, 1.0)) for c in coefficients),
        source=source,
    )


def _samples(t: Sequence[float], x: Sequence[float]) -> tuple[Array, Array]:
    places, values = np.asarray(t, dtype=float), np.asarray(x, dtype=float)
    if places.size != values.size or not places.size:
        raise FitProblem("", f"got {places.size} throughputs and {values.size} powers: one power for each")
    if not (np.isfinite(places).all() and np.isfinite(values).all()):
        raise FitProblem("", "throughputs and powers of a form function must be numbers")
    if places.min() < 0.0 or places.max() > 1.0 + 1e-9:
        raise FitProblem("", "throughputs of a form function are normalised: they lie in 0..1")
    return np.minimum(places, 1.0), values
