"""The linear model of a design: its terms, which of them the runs tell apart, the fit, its effects and their noise.

The effects of a fitted model, with their shares, intervals and verdicts.

Least squares: the effects, their sums of squares and what they leave over.

On an orthogonal design this is the sign table: every effect is the mean of the responses times its column of signs
(Jain, sec. 17.3). Elsewhere, as when runs are missing, each sum of squares is what the term explains beyond all others.

The terms of a linear model of a design: one for each factor and each interaction.

A factor with two levels has one column, its coded level; an interaction's columns are the products of its factors'
columns. A factor with l levels has l - 1 columns whose effects add up to zero over the levels (Jain, sec. 20.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product, takewhile
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.outcome import AnovaRow, Effect, Lenth, LevelEffect, Mean, Means
from routecast.experiment.factors import label_of
from routecast.experiment.model import Factor
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from routecast.experiment.analysis._observations import Observations
    from routecast.experiment.model import DesignKind

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "Choice",
    "Estimable",
    "Fit",
    "Term",
    "anova_table",
    "centre_rows",
    "choose_terms",
    "effects_of",
    "estimable_terms",
    "factorial_terms",
    "fit_columns",
    "is_sample_design",
    "lenth",
    "mark_exact",
    "means_of",
    "negligible_ss",
    "polynomial_terms",
    "pure_error",
]

CURVATURE = "curvature"
_MOST_TERMS = 5000
"""Interactions are listed order by order until there would be more than this: 2^12 are few, 2^20 nobody reads."""


@value
class Term:
    """One term of the model, over the rows of the design."""

    name: str = field('Letters of the factors: ``"AB"``')
    label: str = field('Names of the factors: ``"packet size x queue manager"``')
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

    ``design``: coded levels; ``rows``: row of the design of each run that answered. A level that none of them has is no
    level of the model: effects would else be told from a level of which nothing is known. Yields where two-level rows
    have centre points beside them, the last main effect is followed by their ``curvature``: what the centre has less
    than the mean of the corners (Montgomery, Design and Analysis of Experiments, sec. 6.8).
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

    ``column``: its coded levels; ``known``: rows whose levels count; what the columns hold in rows of other levels has
    no meaning.
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


_DEPENDENT = 1e-8
_ORTHOGONAL = 1e-13
_MOST_NAMED = 6


@value
class Estimable:
    """The terms that can be estimated, and what was left out.

    Which effects the runs that answered can tell apart.

    Two effects whose columns are the same up to the sign are aliases: only their sum (or difference) shows, and the
    lower order lends it its name (Jain, sec. 19.4). A column that is a mixture of several others, as happens when runs
    are missing, is left out and taken as zero; what it would shift if it is not is said.
    """

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

    ``terms``: lowest order first; ``rows``: row of the design of each run that answered.
    """
    kept: list[Term] = []
    aliases: dict[str, list[str]] = {}
    sentences: list[str] = []
    seen: dict[bytes, tuple[str, float]] = {}
    distinct = np.unique(rows)
    basis = _Basis(len(distinct))
    intercept = np.ones(len(distinct))
    basis.takes(intercept)
    seen[intercept.tobytes()] = ("I", 1.0)
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


_MOST_DISCRETE_LEVELS = 12
_RUNS_PER_TERM = 2
"""A polynomial of second order is fitted to a sample that has at least this many runs for each of its terms."""


@value
class Choice:
    """The model of a design."""

    estimable: Estimable
    order: int = field("The highest order of an interaction, or of the polynomial")
    is_polynomial: bool
    pooled: str = field("What was left out on purpose, to be taken as noise; '' where nothing was", default="")


def is_sample_design(kind: DesignKind, seen: Observations) -> bool:
    """Whether the points of the design are a sample of ranges, not combinations of levels."""
    if kind in {"latin_hypercube", "sobol"}:
        return True
    return kind == "listed" and any(
        factor.is_quantity and len(np.unique(np.round(seen.design[:, column], 9))) > _MOST_DISCRETE_LEVELS
        for column, factor in enumerate(seen.factors)
    )


def choose_terms(kind: DesignKind, seen: Observations, order: int | None) -> Choice:
    """Choose the terms of the model.

    ``order``: the highest order that is asked for. None: all interactions that can be estimated, except that a
    factorial design of many levels without replications keeps the highest interactions as its errors (Jain, sec. 21.1),
    and a sample has squares and pairs only where it has two runs for each term.
    """
    if kind == "central_composite" or is_sample_design(kind, seen):
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
    estimable = estimable_terms(takewhile(lambda term: len(term.letters) <= highest, terms), seen.rows)
    if highest == len(seen.factors):
        return estimable
    # Aliases reach beyond the order of the model: what a main effect stands for is said in full.
    everything = estimable_terms(factorial_terms(seen.factors, seen.design, seen.rows), seen.rows)
    names = {term.name for term in estimable.terms}
    chains = {name: others for name, others in everything.aliases.items() if name in names | {"I"}}
    return Estimable(terms=estimable.terms, aliases=chains, sentences=estimable.sentences)


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
    sst: float = field("Total sum of squares; zero where it is no more than rounding")
    sse: float = field("Sum of squared errors; zero where it is no more than rounding")
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

    ``columns``: one per term; ``is_exact``: whether ``y`` has no noise.
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


_FEWEST = 3


def lenth(values: Sequence[float], confidence: float) -> Lenth | None:
    """Return the margins for m effects; None where there are fewer than three, or most of them are zero."""
    import numpy as np
    from scipy.stats import t as student

    if len(values) < _FEWEST:
        return None
    sizes = np.abs(np.asarray(values, dtype=float))
    first = 1.5 * float(np.median(sizes))
    if first <= 1e-12 * float(sizes.max()):
        return None
    pse = 1.5 * float(np.median(sizes[sizes < 2.5 * first]))
    if pse <= 1e-12 * float(sizes.max()):
        return None
    df = len(sizes) / 3
    simultaneous = (1 + confidence ** (1 / len(sizes))) / 2
    return Lenth(
        pse=pse,
        df=df,
        margin=float(student.ppf(0.5 + confidence / 2, df)) * pse,
        simultaneous_margin=float(student.ppf(simultaneous, df)) * pse,
    )


_MOST_LEVELS = 12
"""In a sample of ranges, a factor with more coded values than this has no levels."""
_MOST_POINTS = 400
"""Pairs with more combinations than this make no readable plot of interactions."""


def means_of(
    seen: Observations, s_e: float | None, error_df: int, confidence: float, *, is_sample: bool
) -> tuple[Means, ...]:
    """Return the means at the levels of each factor, then of each pair of factors.

    ``s_e``: standard deviation of the errors; without it the means have no intervals; ``is_sample``: whether the design
    is a sample of ranges.
    """
    half = 0.0
    if s_e is not None:
        from scipy.stats import t as student

        half = float(student.ppf(0.5 + confidence / 2, error_df)) * s_e
    coded = np.round(seen.design[seen.rows], 9)
    levels = [len(np.unique(column)) for column in coded.T]
    shown = [column for column, count in enumerate(levels) if not is_sample or count <= _MOST_LEVELS]
    pairs = [(a, b) for a, b in combinations(shown, 2) if levels[a] * levels[b] <= _MOST_POINTS]
    groups: list[tuple[int, ...]] = [*((column,) for column in shown), *pairs]
    return tuple(_means(seen, coded, group, half if s_e is not None else None) for group in groups)


def _means(seen: Observations, coded: Floats, columns: tuple[int, ...], half: float | None) -> Means:
    levels, index = np.unique(coded[:, list(columns)], axis=0, return_inverse=True)
    index = index.reshape(-1)
    counts = np.bincount(index)
    sums = np.bincount(index, weights=seen.y)
    points = []
    for level, count, total in zip(levels, counts, sums, strict=True):
        value = float(total / count)
        reach = None if half is None else half / float(count) ** 0.5
        points.append(
            Mean(
                coded=tuple(float(code) for code in level),
                labels=tuple(
                    label_of(seen.factors[column], float(code)) for column, code in zip(columns, level, strict=True)
                ),
                value=value,
                count=int(count),
                low=None if reach is None else value - reach,
                high=None if reach is None else value + reach,
            )
        )
    return Means(letters=tuple(seen.factors[column].letter for column in columns), points=tuple(points))


def pure_error(points: Floats, y: Floats) -> tuple[float, int]:
    """Return the sum of squares of repeated runs about their means, and its degrees of freedom.

    The table of the analysis of variance (Jain, sec. 20.5), with lack of fit where runs were repeated.

    ``points``: coded levels of each run.
    """
    if len(y) == 0:
        return 0.0, 0
    _, index = np.unique(np.round(points, 9), axis=0, return_inverse=True)
    index = index.reshape(-1)
    counts = np.bincount(index)
    means = np.bincount(index, weights=y) / counts
    ss = float(np.sum((y - means[index]) ** 2))
    return (ss if ss > negligible_ss(y) else 0.0), len(y) - len(counts)


def mark_exact(fit: Fit, points: Floats, y: Floats) -> Fit:
    """Return the fit, called exact where repeated runs all agreed: then nothing that it leaves over is noise.

    A simulation of frames at a constant rate answers the same for every seed. What a polynomial misses of it is no
    noise, and the degrees of freedom of its repeated centre would make it look small.

    ``points``: coded levels of each run.
    """
    ss, df = pure_error(points, y)
    return replace(fit, is_exact=True) if fit.sse > 0 and df > 0 and ss == 0.0 else fit


def anova_table(effects: Sequence[Effect], fit: Fit, points: Floats, y: Floats) -> tuple[AnovaRow, ...]:
    """Return the rows: each effect, the errors (split into lack of fit and pure error where both exist), the total."""
    from scipy.stats import f as fisher

    rows = []
    s_e = fit.s_e
    for effect in effects:
        if effect.df == 0:  # the runs do not tell it: it has no row
            continue
        ms = effect.ss / effect.df
        rows.append(
            AnovaRow(
                component=effect.name,
                df=effect.df,
                ss=effect.ss,
                ms=ms,
                f=None if s_e is None else ms / s_e**2,
                p_value=effect.p_value,
            )
        )
    if fit.error_df > 0:
        rows.append(AnovaRow(component="errors", df=fit.error_df, ss=fit.sse, ms=fit.sse / fit.error_df))
        pure_ss, pure_df = pure_error(points, y)
        lack_df, lack_ss = fit.error_df - pure_df, max(fit.sse - pure_ss, 0.0)
        if pure_df > 0 and lack_df > 0:
            f = lack_ss / lack_df / (pure_ss / pure_df) if pure_ss > 0 else None
            rows.append(
                AnovaRow(
                    component="lack of fit",
                    df=lack_df,
                    ss=lack_ss,
                    ms=lack_ss / lack_df,
                    f=f,
                    p_value=None if f is None else float(fisher.sf(f, lack_df, pure_df)),
                )
            )
            rows.append(AnovaRow(component="pure error", df=pure_df, ss=pure_ss, ms=pure_ss / pure_df))
    rows.append(AnovaRow(component="total", df=len(y) - 1, ss=fit.sst))
    return tuple(rows)


def effects_of(estimable: Estimable, fit: Fit, margins: Lenth | None, confidence: float) -> tuple[Effect, ...]:
    """Return the effects, the largest share of the variation first.

    ``estimable``: the terms of the fit, in its order.
    """
    effects = [
        _effect(term, estimable.aliases.get(term.name, ()), fit, number, margins, confidence)
        for number, term in enumerate(estimable.terms)
    ]
    # Those that only rounding tells apart keep the order of the terms.
    return tuple(sorted(effects, key=lambda effect: -float(f"{effect.ss:.9g}")))


def _effect(
    term: Term, aliases: tuple[str, ...], fit: Fit, number: int, margins: Lenth | None, confidence: float
) -> Effect:
    from scipy.stats import f as fisher
    from scipy.stats import t as student

    block = fit.blocks[number]
    df = block.stop - block.start
    varies = fit.sst > 0
    values = fit.coefficients[block] if varies else 0.0 * fit.coefficients[block]
    ss = fit.ss(number) if varies else 0.0
    share = ss / fit.sst if varies else None
    value = float(values[0]) if df == 1 and not term.levels and not term.is_partial else None
    s_e = fit.s_e
    half_width = float(student.ppf(0.5 + confidence / 2, fit.error_df)) * s_e if s_e is not None else None
    p_value = error = low = high = None
    if s_e is not None and half_width is not None and df > 0:
        p_value = float(fisher.sf(ss / df / s_e**2, df, fit.error_df))
        if value is not None:
            root = float(fit.inverse[block, block][0, 0]) ** 0.5
            error, low, high = s_e * root, value - half_width * root, value + half_width * root
    is_significant, verdict = _verdict(value, share, p_value, margins, confidence, fit)
    levels = []
    for label, row in term.levels:
        at = float(row @ values)
        reach = None if half_width is None else half_width * float(row @ fit.inverse[block, block] @ row) ** 0.5
        levels.append(
            LevelEffect(
                label=label,
                value=at,
                low=None if reach is None else at - reach,
                high=None if reach is None else at + reach,
            )
        )
    return Effect(
        name=term.name,
        label=term.label,
        letters=term.letters,
        value=value,
        df=df,
        ss=ss,
        share_ratio=share,
        standard_error=error,
        low=low,
        high=high,
        p_value=p_value,
        is_significant=is_significant,
        verdict=verdict,
        aliases=aliases,
        levels=tuple(levels),
    )


def _verdict(
    value: float | None, share: float | None, p_value: float | None, margins: Lenth | None, confidence: float, fit: Fit
) -> tuple[bool | None, str]:
    if share is None:
        return None, "nothing varies"
    if fit.is_exact:
        if fit.sse > 0:
            return None, "no noise to tell it from: the best fit of a model that leaves something over"
        return None, "exact: the evaluator has no noise"
    if p_value is not None:
        if p_value < 1 - confidence:
            return True, f"told from the noise (p {_p(p_value)})"
        return False, f"not told from the noise (p {_p(p_value)})"
    if fit.error_df > 0:
        return None, "exact: repeated runs answered the same"
    if margins is None or value is None:
        return None, "nothing to tell it from the noise by: no run is repeated"
    if abs(value) > margins.simultaneous_margin:
        return True, "stands out among all effects"
    if abs(value) > margins.margin:
        return True, "stands out, though among so many effects one may do so by chance"
    return False, "does not stand out from the rest"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"
