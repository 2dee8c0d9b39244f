"""The terms of a linear model of a design: one for each factor and each interaction.

A factor with two levels has one column, its coded level; an interaction's columns are the products of its factors'
columns. A factor with l levels has l - 1 columns whose effects add up to zero over the levels (Jain, sec. 20.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.observations import label_of
from routecast.experiment.model import Factor
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Estimable", "Term", "centre_rows", "estimable_terms", "factorial_terms", "polynomial_terms"]


CURVATURE = "curvature"
_MOST_TERMS = 5000
"""Interactions are listed order by order until there would be more than this: 2^12 are few, 2^20 nobody reads."""


@value
class Term:
    """One term of the model, over the rows of the design."""

    name: str = field('``"AB"``, ``"packet size x queue manager"``')
    label: str = field('``"AB"``, ``"packet size x queue manager"``')
    letters: tuple[str, ...]
    columns: Floats
    levels: tuple[tuple[str, Floats], ...] = field(
        "For factors with more than two levels: what each level's effect is made of", default=()
    )
    is_partial: bool = field(
        "Whether columns were left out because combinations are missing: the rest is no effect of any one level",
        default=False,
    )


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


def polynomial_terms(factors: Sequence[Factor], design: Floats, rows: NDArray[np.intp], order: int) -> Iterator[Term]:
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


# Which effects the runs that answered can tell apart.
#
# Two effects whose columns are the same up to the sign are aliases: only their sum (or difference) shows, and the
# lower
# order lends it its name (Jain, sec. 19.4). A column that is a mixture of several others, as happens when runs are
# missing, is left out and taken as zero; what it would shift if it is not is said.


_DEPENDENT = 1e-8
_ORTHOGONAL = 1e-13
_MOST_NAMED = 6


@value
class Estimable:
    """The terms that can be estimated, and what was left out."""

    terms: tuple[Term, ...] = field("Linearly independent of each other and of the mean")
    aliases: dict[str, tuple[str, ...]] = field("By term: what cannot be told from it, with signs")
    sentences: tuple[str, ...] = field("What cannot be told apart, in words")


class _Basis:
    """Orthonormal columns that grow one by one."""

    def __init__(self, rows: int) -> None:
        self._columns = np.empty((rows, min(rows, 16)))
        self.rank = 0

    def takes(self, column: Floats) -> bool:
        """Add the column; return False where it was a mixture of those before."""
        size = float(np.linalg.norm(column))
        if size == 0 or self.rank == len(column):
            return False
        known = self._columns[:, : self.rank]
        rest = column / size
        for _ in range(2):
            shared = known.T @ rest
            if float(np.max(np.abs(shared), initial=0.0)) < _ORTHOGONAL:
                break
            rest = rest - known @ shared
        left = float(np.linalg.norm(rest))
        if left < _DEPENDENT:
            return False
        if self.rank == self._columns.shape[1]:
            self._columns = np.hstack([self._columns, np.empty_like(self._columns)])
        self._columns[:, self.rank] = rest / left
        self.rank += 1
        return True


def estimable_terms(terms: Iterable[Term], rows: NDArray[np.intp]) -> Estimable:
    """Choose the terms that the runs can estimate, in the order given.

    Parameters
    ----------
    terms : iterable of Term
        Lowest order first.
    rows : (n,) array of int
        Row of the design of each run that answered.
    """
    kept: list[Term] = []
    aliases: dict[str, list[str]] = {}
    sentences: list[str] = []
    seen: dict[bytes, tuple[str, float]] = {}
    distinct = np.unique(rows)
    basis = _Basis(len(distinct))
    one = np.ones(len(distinct))
    basis.takes(one)
    seen[one.tobytes()] = ("I", 1.0)
    mixed: list[Term] = []
    for term in terms:
        columns = term.columns[distinct]
        if columns.shape[1] == 1:
            column = columns[:, 0]
            sign = _sign(column)
            key = (np.round(column * sign, 9) + 0.0).tobytes()
            twin = seen.get(key)
            if twin is not None:
                name, of = twin
                aliases.setdefault(name, []).append(("+" if of * sign > 0 else "-") + term.name)
                if name == "I" and len(term.letters) == 1:
                    sentences.append(
                        f"{term.name} ({term.label}) cannot be told from the mean: it has one level in all runs that "
                        "answered"
                    )
                continue
            if basis.takes(column):
                seen[key] = (term.name, sign)
                kept.append(term)
            else:
                mixed.append(term)
            continue
        taken = [basis.takes(columns[:, column]) for column in range(columns.shape[1])]
        if all(taken):
            kept.append(term)
        elif any(taken):
            kept.append(replace(term, columns=term.columns[:, taken], levels=(), is_partial=True))
            sentences.append(
                f"{term.name} ({term.label}) is known only in part: {sum(taken)} of its {len(taken)} "
                "degrees of freedom, because combinations are missing"
            )
        else:
            mixed.append(term)
    sentences += _chains(kept, aliases)
    sentences += _mixtures(mixed, kept, distinct)
    return Estimable(
        terms=tuple(kept), aliases={name: tuple(others) for name, others in aliases.items()}, sentences=tuple(sentences)
    )


def _sign(column: Floats) -> float:
    """Return the sign of the first entry that is not zero."""
    nonzero = np.flatnonzero(np.abs(column) > _DEPENDENT)
    return float(np.sign(column[nonzero[0]])) if len(nonzero) else 1.0


def _chains(kept: list[Term], aliases: dict[str, list[str]]) -> list[str]:
    sentences = []
    for name in ["I", *(term.name for term in kept)]:
        others = aliases.get(name, [])
        if name == "I":
            others = [other for other in others if len(other) > len("+A")]
        if others:
            shown = "the mean" if name == "I" else name
            named = " ".join(f"{other[0]} {other[1:]}" for other in others[:_MOST_NAMED])
            more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
            sentences.append(f"{shown} stands for {shown} {named}{more}")
    return sentences


def _mixtures(mixed: list[Term], kept: list[Term], distinct: NDArray[np.intp]) -> list[str]:
    """Say what is taken as zero, and what that bends if it is not."""
    if not mixed:
        return []
    names = ["the mean", *(term.name for term in kept for _ in range(term.columns.shape[1]))]
    model = np.hstack([np.ones((len(distinct), 1)), *(term.columns[distinct] for term in kept)])
    sentences = []
    for term in mixed[:_MOST_NAMED]:
        weights = np.linalg.lstsq(model, term.columns[distinct], rcond=None)[0]
        bent = list(
            dict.fromkeys(
                name for name, weight in zip(names, np.abs(weights).max(axis=1), strict=True) if weight > _DEPENDENT
            )
        )
        sentences.append(
            f"{term.name} ({term.label}) cannot be estimated from these runs and is taken as zero; if it is not, it "
            f"is mixed into {', '.join(bent[:_MOST_NAMED])}{' and more' if len(bent) > _MOST_NAMED else ''}"
        )
    if len(mixed) > _MOST_NAMED:
        names_left = [term.name for term in mixed[_MOST_NAMED:]]
        shown = ", ".join(names_left[:_MOST_NAMED])
        sentences.append(
            f"{len(names_left)} more effects cannot be estimated from these runs and are taken as zero: {shown}"
            + (", …" if len(names_left) > _MOST_NAMED else "")
        )
    return sentences
