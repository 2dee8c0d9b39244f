"""The terms of a linear model of a design: one for each factor and each interaction.

A factor with two levels has one column, its coded level; an interaction's columns are the products of its factors'
columns. A factor with l levels has l - 1 columns whose effects add up to zero over the levels (Jain, sec. 20.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.observations import label_of
from routecast.experiment.model import Factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["CURVATURE", "Term", "centre_rows", "factorial_terms", "polynomial_terms"]

CURVATURE = "curvature"
_MOST_TERMS = 5000
"""Interactions are listed order by order until there would be more than this: 2^12 are few, 2^20 nobody reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term of the model, over the rows of the design.

    Parameters
    ----------
    name, label : str
        ``"AB"``, ``"packet size x queue manager"``.
    letters : tuple of str
    columns : (rows, df) array
    levels : tuple of (str, array of df)
        For factors with more than two levels: what each level's effect is made of.
    is_partial : bool
        Whether columns were left out because combinations are missing: the rest is no effect of any one level.
    """

    name: str
    label: str
    letters: tuple[str, ...]
    columns: Floats
    levels: tuple[tuple[str, Floats], ...] = ()
    is_partial: bool = False


def centre_rows(design: Floats) -> NDArray[np.bool_]:
    """Return which rows are centre points added to a two-level design: all zero where all others are -1 or +1.

    A single factor at -1, 0 and +1 has three levels and no centre point.
    """
    centre = np.asarray(np.all(design == 0.0, axis=1))
    others = design[~centre]
    if design.shape[1] < 2 or len(others) == 0 or not np.all(np.abs(others) == 1.0):
        return np.zeros(len(design), dtype=bool)
    return centre


def factorial_terms(factors: Sequence[Factor], design: Floats, rows: NDArray[np.intp]) -> Iterator[Term]:
    """Yield the terms of a factorial model, main effects first, then order by order.

    Parameters
    ----------
    factors : sequence of Factor
    design : (rows, k) array
        Coded levels.
    rows : (n,) array of int
        Row of the design of each run that answered. A level that none of them has is no level of the model: effects
        would else be told from a level of which nothing is known.

    Yields
    ------
    Term
        Where two-level rows have centre points beside them, the last main effect is followed by their
        ``curvature``: what the centre has less than the mean of the corners (Montgomery, Design and Analysis of
        Experiments, sec. 6.8).
    """
    centre = centre_rows(design)
    answered = np.isin(np.arange(len(design)), rows) & ~centre
    parts = [_coded(factor, design[:, column], answered) for column, factor in enumerate(factors)]
    count = 0
    for order in range(1, len(factors) + 1):
        for members in combinations(range(len(factors)), order):
            yield _product([factors[member] for member in members], [parts[member] for member in members])
            count += 1
        if order == 1 and centre.any():
            yield Term(
                name=CURVATURE,
                label="curvature between low and high",
                letters=(),
                columns=np.where(centre, -1.0, 0.0)[:, None],
            )
        if count > _MOST_TERMS:
            return


def polynomial_terms(
    factors: Sequence[Factor], design: Floats, rows: NDArray[np.intp], order: int
) -> Iterator[Term]:
    """Yield the terms of a polynomial of first or second order in the coded levels: A, B, AB, A^2, B^2.

    Factors that are no quantities keep an effect of their own for each level with an answer, and have no square.
    """
    answered = np.isin(np.arange(len(design)), rows)
    parts = [
        _Part(columns=design[:, [column]], labels=(), basis=np.empty((0, 1)), is_two_level=True)
        if factor.is_quantity
        else _coded(factor, design[:, column], answered)
        for column, factor in enumerate(factors)
    ]
    for size in range(1, min(order, 2) + 1):
        for members in combinations(range(len(factors)), size):
            yield _product([factors[member] for member in members], [parts[member] for member in members])
    if order >= 2:
        for column, factor in enumerate(factors):
            if factor.is_quantity and len(np.unique(np.abs(design[:, column]))) > 1:
                yield Term(
                    name=f"{factor.letter}^2",
                    label=f"{factor.name}, squared",
                    letters=(factor.letter,),
                    columns=design[:, [column]] ** 2,
                )


@dataclass(frozen=True, slots=True)
class _Part:
    columns: Floats
    labels: tuple[str, ...]
    basis: Floats
    is_two_level: bool


def _product(factors: Sequence[Factor], parts: Sequence[_Part]) -> Term:
    """Return the term of an interaction: the products of its factors' columns."""
    columns = parts[0].columns
    for part in parts[1:]:
        columns = np.einsum("ri,rj->rij", columns, part.columns).reshape(len(columns), -1)
    return Term(
        name="".join(factor.letter for factor in factors),
        label=" x ".join(factor.name for factor in factors),
        letters=tuple(factor.letter for factor in factors),
        columns=columns,
        levels=_level_rows(parts),
    )


def _coded(factor: Factor, column: Floats, known: NDArray[np.bool_]) -> _Part:
    """Return the columns of one factor, and what each of its levels puts in them.

    Parameters
    ----------
    factor : Factor
    column : (rows,) array
        Its coded levels.
    known : (rows,) array of bool
        Rows whose levels count; what the columns hold in rows of other levels has no meaning.
    """
    coded = np.round(column, 9)
    levels = np.unique(coded[known])
    if len(levels) <= 2 and set(np.abs(levels)) <= {1.0}:
        return _Part(
            columns=column[:, None],
            labels=tuple(label_of(factor, level) for level in (-1.0, 1.0)),
            basis=np.array([[-1.0], [1.0]]),
            is_two_level=True,
        )
    if len(levels) == 1:  # one of many: nothing but the mean shows
        return _Part(columns=np.ones((len(column), 1)), labels=(), basis=np.empty((0, 1)), is_two_level=True)
    basis = np.vstack([np.eye(len(levels) - 1), -np.ones(len(levels) - 1)])
    places = np.minimum(np.searchsorted(levels, coded), len(levels) - 1)
    return _Part(
        columns=basis[places],
        labels=tuple(label_of(factor, float(level)) for level in levels),
        basis=basis,
        is_two_level=False,
    )


def _level_rows(parts: Sequence[_Part]) -> tuple[tuple[str, Floats], ...]:
    if all(part.is_two_level for part in parts) or any(not part.labels for part in parts):
        return ()
    rows = []
    for choice in product(*(range(len(part.labels)) for part in parts)):
        row = np.ones(1)
        for part, level in zip(parts, choice, strict=True):
            row = np.kron(row, part.basis[level])
        rows.append((", ".join(part.labels[level] for part, level in zip(parts, choice, strict=True)), row))
    return tuple(rows)
