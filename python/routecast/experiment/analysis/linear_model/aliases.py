"""Which effects the runs that answered can tell apart.

Two effects whose columns are the same up to the sign are aliases: only their sum (or difference) shows, and the lower
order lends it its name (Jain, sec. 19.4). A column that is a mixture of several others, as happens when runs are
missing, is left out and taken as zero; what it would shift if it is not is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.linear_model.terms import Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Estimable", "estimable_terms"]

_DEPENDENT = 1e-8
_ORTHOGONAL = 1e-13
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimable:
    """The terms that can be estimated, and what was left out.

    Parameters
    ----------
    terms : tuple of Term
        Linearly independent of each other and of the mean.
    aliases : mapping of str to tuple of str
        By term: what cannot be told from it, with signs.
    sentences : tuple of str
        What cannot be told apart, in words.
    """

    terms: tuple[Term, ...]
    aliases: dict[str, tuple[str, ...]]
    sentences: tuple[str, ...]


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
        terms=tuple(kept),
        aliases={name: tuple(others) for name, others in aliases.items()},
        sentences=tuple(sentences),
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
                name
                for name, weight in zip(names, np.abs(weights).max(axis=1), strict=True)
                if weight > _DEPENDENT
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
