"""Least squares: the effects, their sums of squares and what they leave over.

On an orthogonal design this is the sign table: every effect is the mean of the responses times its column of signs
(Jain, sec. 17.3). Elsewhere, as when runs are missing, each sum of squares is what the term explains beyond all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.linear_model.terms import (
    Estimable,
    Term,
    estimable_terms,
    factorial_terms,
    polynomial_terms,
)
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from routecast.experiment.analysis.observations import Observations
    from routecast.experiment.model import DesignKind

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Choice", "Fit", "choose_terms", "fit_columns", "is_sampled", "negligible_ss"]


# Which terms the model of a design has.


_MOST_LEVELS = 12
_RUNS_PER_TERM = 2
"""A polynomial of second order is fitted to a sample that has at least this many runs for each of its terms."""


@value
class Choice:
    """The model of a design."""

    estimable: Estimable
    order: int = field("The highest order of an interaction, or of the polynomial")
    is_polynomial: bool
    pooled: str = field("What was left out on purpose, to be taken as noise; '' where nothing was", default="")


def is_sampled(kind: DesignKind, seen: Observations) -> bool:
    """Whether the points of the design are a sample of ranges, not combinations of levels."""
    if kind in {"latin_hypercube", "sobol"}:
        return True
    return kind == "listed" and any(
        factor.is_quantity and len(np.unique(np.round(seen.design[:, column], 9))) > _MOST_LEVELS
        for column, factor in enumerate(seen.factors)
    )


def choose_terms(kind: DesignKind, seen: Observations, order: int | None) -> Choice:
    """Choose the terms of the model.

    Parameters
    ----------
    kind : DesignKind
    seen : Observations
    order : int or None
        The highest order that is asked for. None: all interactions that can be estimated, except that a factorial
        design of many levels without replications keeps the highest interactions as its errors (Jain, sec. 21.1),
        and a sample has squares and pairs only where it has two runs for each term.
    """
    if kind == "central_composite" or is_sampled(kind, seen):
        return _polynomial(kind, seen, order)
    highest = len(seen.factors) if order is None else min(order, len(seen.factors))
    estimable = _factorial(seen, highest)
    has_many_levels = any(term.levels for term in estimable.terms)
    if order is None and has_many_levels:
        while highest > 1 and _error_df(estimable, seen) <= 0:
            highest -= 1
            estimable = _factorial(seen, highest)
    pooled = "" if highest == len(seen.factors) else f"interactions of more than {highest} factors"
    if highest == 1 and len(seen.factors) > 1:
        pooled = "all interactions"
    return Choice(estimable=estimable, order=highest, is_polynomial=False, pooled=pooled)


def _polynomial(kind: DesignKind, seen: Observations, order: int | None) -> Choice:
    highest = 2 if order is None else min(order, 2)
    terms = list(polynomial_terms(seen.factors, seen.design, seen.rows, highest))
    if order is None and kind != "central_composite":
        size = 1 + sum(term.columns.shape[1] for term in terms)
        if len(seen.y) < _RUNS_PER_TERM * size:
            highest = 1
            terms = list(polynomial_terms(seen.factors, seen.design, seen.rows, highest))
    left = "squares, interactions" if highest == 1 else "terms of third and higher order"
    return Choice(estimable=estimable_terms(terms, seen.rows), order=highest, is_polynomial=True, pooled=left)


def _factorial(seen: Observations, highest: int) -> Estimable:
    terms: Iterable[Term] = factorial_terms(seen.factors, seen.design, seen.rows)
    found = estimable_terms(takewhile(lambda term: len(term.letters) <= highest, terms), seen.rows)
    if highest == len(seen.factors):
        return found
    # Aliases reach beyond the order of the model: what a main effect stands for is said in full.
    everything = estimable_terms(factorial_terms(seen.factors, seen.design, seen.rows), seen.rows)
    names = {term.name for term in found.terms}
    chains = {name: others for name, others in everything.aliases.items() if name in names | {"I"}}
    return Estimable(terms=found.terms, aliases=chains, sentences=found.sentences)


def _error_df(estimable: Estimable, seen: Observations) -> int:
    return len(seen.y) - 1 - sum(int(term.columns.shape[1]) for term in estimable.terms)


_ROUNDING = 1e-12
"""Relative size of what sums of a few thousand doubles leave over where the exact answer is zero."""


@value
class Fit:
    """A linear model fitted by least squares."""

    coefficients: Floats = field("The mean first")
    inverse: Floats = field("(X'X)^-1")
    predicted: Floats
    residuals: Floats
    leverages: Floats
    blocks: tuple[slice, ...] = field("Where the coefficients of each term stand")
    sst: float = field("Zero where they are no more than rounding")
    sse: float = field("Zero where they are no more than rounding")
    error_df: int
    is_orthogonal: bool = field("Whether each effect is estimated as if it were alone")
    is_exact: bool = field(
        "Whether the responses have no noise: what is left over is then what the model cannot follow", default=False
    )

    @property
    def s_e(self) -> float | None:
        """Standard deviation of the errors; None without degrees of freedom, or where nothing is noise."""
        if self.error_df <= 0 or self.sse <= 0 or self.is_exact:
            return None
        return float((self.sse / self.error_df) ** 0.5)

    @property
    def press(self) -> float | None:
        """Sum of squares of the errors of runs that were left out of the fit; None where a run cannot be left out."""
        if np.any(self.leverages > 1 - 1e-9):
            return None
        return float(np.sum((self.residuals / (1 - self.leverages)) ** 2))

    @property
    def r2_ratio(self) -> float | None:
        """Share of the variation that the model explains; None where nothing varies."""
        return 1 - self.sse / self.sst if self.sst > 0 else None

    @property
    def adjusted_r2_ratio(self) -> float | None:
        """The same with the number of terms held against it; None without degrees of freedom."""
        if self.sst == 0 or self.error_df == 0:
            return None
        return 1 - self.sse / self.error_df * (len(self.predicted) - 1) / self.sst

    @property
    def predicted_r2_ratio(self) -> float | None:
        """The share that it predicts of runs left out of the fit: 1 - PRESS/SST."""
        press = self.press
        return None if press is None or self.sst == 0 or self.error_df == 0 else 1 - press / self.sst

    def ss(self, term: int) -> float:
        """Return what a term explains beyond all others."""
        block = self.blocks[term]
        value = self.coefficients[block]
        return float(value @ np.linalg.solve(self.inverse[block, block], value))

    def variance_factor(self, row: Floats) -> float:
        """Return the variance of a combination of coefficients, in units of the errors' variance."""
        return float(row @ self.inverse @ row)


def negligible_ss(y: Floats) -> float:
    """Return the sum of squares below which a variation of ``y`` is only rounding."""
    return len(y) * (_ROUNDING * float(np.max(np.abs(y), initial=0.0))) ** 2


def _without_rounding(values: Floats, scale: float) -> Floats:
    """Return the values less what rounding leaves of numbers of the order of ``scale``: equal ones are equal again."""
    step = _ROUNDING * scale
    return np.round(values / step) * step + 0.0 if step > 0 else values


def fit_columns(columns: Sequence[Floats], y: Floats, *, is_exact: bool = False) -> Fit:
    """Fit ``y`` to the mean and to terms of linearly independent columns.

    Parameters
    ----------
    columns : sequence of (n, df) arrays
        One per term.
    y : (n,) array
    is_exact : bool
        Whether ``y`` has no noise.
    """
    model = np.hstack([np.ones((len(y), 1)), *columns])
    gram = model.T @ model
    sizes = np.diag(gram).copy()
    if float(np.max(np.abs(gram - np.diag(sizes)), initial=0.0)) == 0.0:
        # The sign table: no effect knows of another, and whole numbers stay whole.
        coefficients = (model.T @ y) / sizes
        inverse = np.diag(1 / sizes)
        leverages = model**2 @ (1 / sizes)
    else:
        q, r = np.linalg.qr(model)
        inverse_r = np.linalg.inv(r)
        coefficients = inverse_r @ (q.T @ y)
        inverse = inverse_r @ inverse_r.T
        leverages = np.sum(q**2, axis=1)
    scale = float(np.max(np.abs(y), initial=0.0))
    coefficients = _without_rounding(coefficients, scale)
    predicted = model @ coefficients
    residuals = _without_rounding(y - predicted, scale)
    blocks = []
    start = 1
    for block in columns:
        blocks.append(slice(start, start + block.shape[1]))
        start += block.shape[1]
    for block_slice in [slice(0, 1), *blocks]:
        gram[block_slice, block_slice] = 0.0
    sst, sse = float(np.sum((y - y.mean()) ** 2)), float(residuals @ residuals)
    error_df = len(y) - model.shape[1]
    limit = negligible_ss(y)
    return Fit(
        coefficients=coefficients,
        inverse=inverse,
        predicted=predicted,
        residuals=residuals,
        leverages=leverages,
        blocks=tuple(blocks),
        sst=sst if sst > limit else 0.0,
        sse=sse if sse > limit and error_df > 0 else 0.0,
        error_df=error_df,
        is_orthogonal=bool(np.max(np.abs(gram), initial=0.0) < 1e-9 * len(y)),
        is_exact=is_exact,
    )
