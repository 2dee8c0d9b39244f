"""Which terms the model of a design has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from routecast.experiment.analysis.linear_model.aliases import Estimable, estimable_terms
from routecast.experiment.analysis.linear_model.terms import Term, factorial_terms, polynomial_terms

if TYPE_CHECKING:
    from routecast.experiment.analysis.observations import Observations
    from routecast.experiment.model import DesignKind

__all__ = ["Choice", "choose_terms", "is_sampled"]

_MOST_LEVELS = 12
_RUNS_PER_TERM = 2
"""A polynomial of second order is fitted to a sample that has at least this many runs for each of its terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model of a design.

    Parameters
    ----------
    estimable : Estimable
    order : int
        The highest order of an interaction, or of the polynomial.
    is_polynomial : bool
    pooled : str
        What was left out on purpose, to be taken as noise; '' where nothing was.
    """

    estimable: Estimable
    order: int
    is_polynomial: bool
    pooled: str = ""


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
