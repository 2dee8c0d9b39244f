"""The linear model of a design: its terms, their separation by the runs, the fit, the effects and the noise.

A factor with two levels has one column, its coded level; an interaction's columns are the products of its factors'
columns. A factor with l levels has l - 1 columns whose effects add up to zero over the levels (Jain, sec. 20.1).

The fit is by least squares. For an orthogonal design it is the sign table: every effect is the mean of the responses
times its column of signs (Jain, sec. 17.3). For other designs, or if runs are missing, the sum of squares of a term is
the variation that it explains beyond all others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, pairwise, product, takewhile
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment._factors import label_of
from routecast.experiment.analysis.outcome import AnovaRow, Effect, LackOfFit, Lenth, LevelEffect, Mean, Means
from routecast.experiment.model import Factor
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from routecast.experiment.analysis._observations import Observations
    from routecast.experiment.model import DesignKind

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "Estimable",
    "Fit",
    "ModelChoice",
    "Term",
    "anova_table",
    "centre_rows",
    "choose_terms",
    "effects_of",
    "estimable_terms",
    "factorial_terms",
    "fit_columns",
    "interval_about",
    "is_sample_design",
    "lack_of_fit",
    "lenth",
    "mark_exact",
    "means_of",
    "negligible_ss",
    "polynomial_terms",
    "pure_error",
    "t_quantile",
]

_MAX_TERMS = 5000
"""Number of terms after which no higher order is added: 2^12 are few, 2^20 are more than anybody reads."""


@value
class Term:
    """One term of the model, over the rows of the design."""

    name: str = field('Letters of the factors: ``"AB"``')
    label: str = field('Names of the factors: ``"packet size x queue manager"``')
    letters: tuple[str, ...]
    columns: Floats
    levels: tuple[tuple[str, Floats], ...] = field(
        "Label and weights of the coefficients for each level, if a factor has more than two levels", default=()
    )
    is_partial: bool = field(
        "Whether columns are left out because combinations are missing, so that no level has an effect of its own",
        default=False,
    )


def centre_rows(design: Floats) -> NDArray[np.bool_]:
    """Return which rows are centre points of a two-level design: all zero where all others are -1 or +1.

    A single factor at -1, 0 and +1 has three levels and no centre point.
    """
    centre = np.asarray(np.all(design == 0.0, axis=1))
    others = design[~centre]
    if design.shape[1] < 2 or len(others) == 0 or not np.all(np.abs(others) == 1.0):
        return np.zeros(len(design), dtype=bool)
    return centre


def factorial_terms(factors: Sequence[Factor], design: Floats, rows: NDArray[np.intp]) -> Iterator[Term]:
    """Yield the terms of a factorial model, main effects first, then order by order.

    ``design``: coded levels; ``rows``: row of the design of each run that answered. The model leaves out levels without
    an answer. If a two-level design has centre points, ``curvature`` follows the last main effect: the distance of the
    centre below the mean of the corners (Montgomery, Design and Analysis of Experiments, sec. 6.8).
    """
    centre = centre_rows(design)
    answered = np.isin(np.arange(len(design)), rows) & ~centre
    parts = [_factor_columns(factor, design[:, column], answered) for column, factor in enumerate(factors)]
    count = 0
    for order in range(1, len(factors) + 1):
        for term in _interactions(factors, parts, order):
            yield term
            count += 1
        if order == 1 and centre.any():
            yield Term(
                name="curvature",
                label="curvature between low and high",
                letters=(),
                columns=np.where(centre, -1.0, 0.0)[:, None],
            )
        if count > _MAX_TERMS:
            return


def polynomial_terms(factors: Sequence[Factor], design: Floats, rows: NDArray[np.intp], order: int) -> Iterator[Term]:
    """Yield the terms of a polynomial of first or second order in the coded levels: A, B, AB, A^2, B^2.

    A factor that is not a quantity has an effect for each level with an answer, and no square.
    """
    answered = np.isin(np.arange(len(design)), rows)
    parts = [
        _FactorColumns(design[:, [column]])
        if factor.is_quantity
        else _factor_columns(factor, design[:, column], answered)
        for column, factor in enumerate(factors)
    ]
    for size in range(1, min(order, 2) + 1):
        yield from _interactions(factors, parts, size)
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
class _FactorColumns:
    """The columns of a factor, and for each of its levels the label and the row of the basis."""

    columns: Floats
    labels: tuple[str, ...] = ()
    basis: Floats = dataclasses.field(default_factory=lambda: np.empty((0, 1)))
    is_two_level: bool = True


def _interactions(factors: Sequence[Factor], parts: Sequence[_FactorColumns], order: int) -> Iterator[Term]:
    for members in combinations(range(len(factors)), order):
        yield _product([factors[member] for member in members], [parts[member] for member in members])


def _product(factors: Sequence[Factor], parts: Sequence[_FactorColumns]) -> Term:
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


def _factor_columns(factor: Factor, column: Floats, answered: NDArray[np.bool_]) -> _FactorColumns:
    """Return the columns of a factor.

    ``column``: coded levels of the factor; ``answered``: rows whose levels are in the model; the columns are undefined
    in other rows.
    """
    coded = np.round(column, 9)
    levels = np.unique(coded[answered])
    if len(levels) <= 2 and set(np.abs(levels)) <= {1.0}:
        labels = tuple(label_of(factor, level) for level in (-1.0, 1.0))
        return _FactorColumns(column[:, None], labels, np.array([[-1.0], [1.0]]))
    if len(levels) == 1:  # a single level cannot be distinguished from the mean
        return _FactorColumns(np.ones((len(column), 1)))
    basis = np.vstack([np.eye(len(levels) - 1), -np.ones(len(levels) - 1)])
    positions = np.minimum(np.searchsorted(levels, coded), len(levels) - 1)
    labels = tuple(label_of(factor, float(level)) for level in levels)
    return _FactorColumns(basis[positions], labels, basis, is_two_level=False)


def _level_rows(parts: Sequence[_FactorColumns]) -> tuple[tuple[str, Floats], ...]:
    if all(part.is_two_level for part in parts) or any(not part.labels for part in parts):
        return ()
    rows = []
    for choice in product(*(range(len(part.labels)) for part in parts)):
        row = np.ones(1)
        for part, level in zip(parts, choice, strict=True):
            row = np.kron(row, part.basis[level])
        rows.append((", ".join(part.labels[level] for part, level in zip(parts, choice, strict=True)), row))
    return tuple(rows)


_DEPENDENT_BELOW = 1e-8
_ORTHOGONAL_BELOW = 1e-13
_MAX_NAMED = 6


@value
class Estimable:
    """The terms that the runs can estimate, and those that they cannot separate.

    Two effects whose columns are equal up to the sign are aliases: the runs show only their sum or difference, which
    has the name of the lower order (Jain, sec. 19.4). A column that is a mixture of several others, as happens if runs
    are missing, is left out and taken as zero; a sentence names the effects that it would shift.
    """

    terms: tuple[Term, ...] = field("Terms that are linearly independent of each other and of the mean")
    aliases: dict[str, tuple[str, ...]] = field("Aliases of each term, with signs")
    sentences: tuple[str, ...] = field("Sentences on the effects that the runs cannot separate")


class _Basis:
    """An orthonormal basis that grows column by column."""

    def __init__(self, rows: int) -> None:
        self._columns = np.empty((rows, min(rows, 16)))
        self._rank = 0

    def add(self, column: Floats) -> bool:
        """Add a column; return False if it is a mixture of the earlier columns."""
        size = float(np.linalg.norm(column))
        if size == 0 or self._rank == len(column):
            return False
        basis = self._columns[:, : self._rank]
        residual = column / size
        for _ in range(2):
            projection = basis.T @ residual
            if float(np.max(np.abs(projection), initial=0.0)) < _ORTHOGONAL_BELOW:
                break
            residual = residual - basis @ projection
        residual_size = float(np.linalg.norm(residual))
        if residual_size < _DEPENDENT_BELOW:
            return False
        if self._rank == self._columns.shape[1]:
            self._columns = np.hstack([self._columns, np.empty_like(self._columns)])
        self._columns[:, self._rank] = residual / residual_size
        self._rank += 1
        return True


def estimable_terms(terms: Iterable[Term], rows: NDArray[np.intp]) -> Estimable:
    """Return the terms that the runs can estimate, in their order, and the aliases of each.

    ``terms``: terms, the lowest order first; ``rows``: row of the design of each run that answered.
    """
    estimated: list[Term] = []
    dependent: list[Term] = []
    aliases: dict[str, list[str]] = {}
    sentences: list[str] = []
    distinct = np.unique(rows)
    basis = _Basis(len(distinct))
    intercept = np.ones(len(distinct))
    basis.add(intercept)
    by_column: dict[bytes, tuple[str, float]] = {intercept.tobytes(): ("I", 1.0)}
    for term in terms:
        columns = term.columns[distinct]
        if columns.shape[1] == 1:
            column = columns[:, 0]
            sign = _sign(column)
            key = (np.round(column * sign, 9) + 0.0).tobytes()
            if key in by_column:
                name, name_sign = by_column[key]
                aliases.setdefault(name, []).append(("+" if name_sign * sign > 0 else "-") + term.name)
                if name == "I" and len(term.letters) == 1:
                    sentences.append(
                        f"{term.name} ({term.label}) cannot be distinguished from the mean: it has one level in all "
                        "runs that answered"
                    )
                continue
            if not basis.add(column):
                dependent.append(term)
                continue
            by_column[key] = (term.name, sign)
            estimated.append(term)
            continue
        added = [basis.add(column) for column in columns.T]
        if all(added):
            estimated.append(term)
        elif any(added):
            estimated.append(replace(term, columns=term.columns[:, added], levels=(), is_partial=True))
            sentences.append(
                f"{term.name} ({term.label}) is estimated only in part, with {sum(added)} of {len(added)} degrees of "
                "freedom, because combinations are missing"
            )
        else:
            dependent.append(term)
    sentences += [*_describe_chains(estimated, aliases), *_describe_mixtures(dependent, estimated, distinct)]
    return Estimable(
        terms=tuple(estimated),
        aliases={name: tuple(others) for name, others in aliases.items()},
        sentences=tuple(sentences),
    )


def _sign(column: Floats) -> float:
    """Return the sign of the first entry of a column that is not zero."""
    nonzero = np.flatnonzero(np.abs(column) > _DEPENDENT_BELOW)
    return float(np.sign(column[nonzero[0]])) if len(nonzero) else 1.0


def _describe_chains(estimated: list[Term], aliases: dict[str, list[str]]) -> list[str]:
    sentences = []
    for name in ["I", *(term.name for term in estimated)]:
        others = aliases.get(name, [])
        if name == "I":
            others = [other for other in others if len(other) > len("+A")]
        if others:
            effect = "the mean" if name == "I" else name
            chain = " ".join(f"{other[0]} {other[1:]}" for other in others[:_MAX_NAMED])
            more = f" and {len(others) - _MAX_NAMED} more" if len(others) > _MAX_NAMED else ""
            sentences.append(f"the estimate of {effect} is that of {effect} {chain}{more}")
    return sentences


def _describe_mixtures(dependent: list[Term], estimated: list[Term], distinct: NDArray[np.intp]) -> list[str]:
    """Return sentences on the terms that are taken as zero, and on the effects that they would shift."""
    if not dependent:
        return []
    names = ["the mean", *(term.name for term in estimated for _ in range(term.columns.shape[1]))]
    model = np.hstack([np.ones((len(distinct), 1)), *(term.columns[distinct] for term in estimated)])
    sentences = []
    for term in dependent[:_MAX_NAMED]:
        weights = np.abs(np.linalg.lstsq(model, term.columns[distinct], rcond=None)[0]).max(axis=1)
        shifted = list(
            dict.fromkeys(name for name, weight in zip(names, weights, strict=True) if weight > _DEPENDENT_BELOW)
        )
        sentences.append(
            f"{term.name} ({term.label}) cannot be estimated from these runs and is taken as zero; if it is not, it "
            f"is mixed into {', '.join(shifted[:_MAX_NAMED])}{' and more' if len(shifted) > _MAX_NAMED else ''}"
        )
    if further := [term.name for term in dependent[_MAX_NAMED:]]:
        sentences.append(
            f"{len(further)} more effects cannot be estimated from these runs and are taken as zero: "
            + ", ".join(further[:_MAX_NAMED])
            + (", …" if len(further) > _MAX_NAMED else "")
        )
    return sentences


_MAX_LEVELS = 12
"""Number of coded values above which a quantity is a sample of a range."""
_RUNS_PER_TERM = 2
"""Runs of a sample for each term from which a polynomial of second order is fitted."""


@value
class ModelChoice:
    """The terms of the model of a design."""

    estimable: Estimable
    order: int = field("The highest order of an interaction, or of the polynomial")
    is_polynomial: bool
    pooled: str = field("Terms that are left out and count as noise, in words; empty without any", default="")


def is_sample_design(kind: DesignKind, data: Observations) -> bool:
    """Return whether the combinations of the design are sampled from ranges instead of combined from levels."""
    if kind in {"latin_hypercube", "sobol"}:
        return True
    return kind == "listed" and any(
        factor.is_quantity and len(np.unique(np.round(data.design[:, column], 9))) > _MAX_LEVELS
        for column, factor in enumerate(data.factors)
    )


def choose_terms(kind: DesignKind, data: Observations, order: int | None) -> ModelChoice:
    """Choose the terms of the model.

    ``order``: highest order of interactions. None: all interactions that can be estimated, except that a factorial
    design of many levels without replications uses the highest interactions as its errors (Jain, sec. 21.1), and a
    sample has squares and pairs only if it has two runs for each term.
    """
    if kind == "central_composite" or is_sample_design(kind, data):
        return _polynomial(kind, data, order)
    highest = len(data.factors) if order is None else min(order, len(data.factors))
    estimable = _factorial(data, highest)
    if order is None and any(term.levels for term in estimable.terms):
        while highest > 1 and len(data.y) - 1 <= sum(term.columns.shape[1] for term in estimable.terms):
            highest -= 1
            estimable = _factorial(data, highest)
    pooled = "" if highest == len(data.factors) else f"interactions of more than {highest} factors"
    if highest == 1 and len(data.factors) > 1:
        pooled = "all interactions"
    return ModelChoice(estimable=estimable, order=highest, is_polynomial=False, pooled=pooled)


def _polynomial(kind: DesignKind, data: Observations, order: int | None) -> ModelChoice:
    highest = 2 if order is None else min(order, 2)
    terms = list(polynomial_terms(data.factors, data.design, data.rows, highest))
    if order is None and kind != "central_composite":
        size = 1 + sum(term.columns.shape[1] for term in terms)
        if len(data.y) < _RUNS_PER_TERM * size:
            highest = 1
            terms = list(polynomial_terms(data.factors, data.design, data.rows, highest))
    pooled = "squares, interactions" if highest == 1 else "terms of third and higher order"
    estimable = estimable_terms(terms, data.rows)
    return ModelChoice(estimable=estimable, order=highest, is_polynomial=True, pooled=pooled)


def _factorial(data: Observations, highest: int) -> Estimable:
    terms = factorial_terms(data.factors, data.design, data.rows)
    estimable = estimable_terms(takewhile(lambda term: len(term.letters) <= highest, terms), data.rows)
    if highest == len(data.factors):
        return estimable
    # The aliases of a term may be of higher order than the model; all are listed.
    everything = estimable_terms(factorial_terms(data.factors, data.design, data.rows), data.rows)
    names = {"I", *(term.name for term in estimable.terms)}
    return replace(estimable, aliases={name: others for name, others in everything.aliases.items() if name in names})


_ROUNDING = 1e-12
"""Relative rounding error of sums of a few thousand doubles whose exact value is zero."""


@value
class Fit:
    """A linear model fitted by least squares."""

    coefficients: Floats = field("Coefficients, the mean first")
    inverse: Floats = field("(X'X)^-1")
    predicted: Floats
    residuals: Floats
    leverages: Floats
    blocks: tuple[slice, ...] = field("Positions of the coefficients of each term")
    sst: float = field("Total sum of squares; zero if it is only rounding")
    sse: float = field("Sum of squared errors; zero if it is only rounding")
    error_df: int
    is_orthogonal: bool = field("Whether the estimate of each effect is independent of the other terms")
    is_exact: bool = field(
        "Whether the responses have no noise, so that residuals are the lack of fit of the model", default=False
    )

    @property
    def s_e(self) -> float | None:
        """Standard deviation of the errors; None without degrees of freedom or without noise."""
        if self.error_df <= 0 or self.sse <= 0 or self.is_exact:
            return None
        return float((self.sse / self.error_df) ** 0.5)

    @property
    def press(self) -> float | None:
        """Sum of squares of the errors of runs left out of the fit; None if a run cannot be left out."""
        if np.any(self.leverages > 1 - 1e-9):
            return None
        return float(np.sum((self.residuals / (1 - self.leverages)) ** 2))

    @property
    def r2_ratio(self) -> float | None:
        """Share of the variation that the model explains; None if nothing varies."""
        return 1 - self.sse / self.sst if self.sst > 0 else None

    @property
    def adjusted_r2_ratio(self) -> float | None:
        """R^2 adjusted for the number of terms; None without degrees of freedom."""
        if self.sst == 0 or self.error_df == 0:
            return None
        return 1 - self.sse / self.error_df * (len(self.predicted) - 1) / self.sst

    @property
    def predicted_r2_ratio(self) -> float | None:
        """Share of the variation that the model predicts for runs left out of the fit: 1 - PRESS/SST."""
        press = self.press
        return None if press is None or self.sst == 0 or self.error_df == 0 else 1 - press / self.sst

    def ss(self, term: int) -> float:
        """Return the sum of squares that a term explains beyond all others."""
        block = self.blocks[term]
        value = self.coefficients[block]
        return float(value @ np.linalg.solve(self.inverse[block, block], value))

    def variance_factor(self, row: Floats) -> float:
        """Return the variance of the coefficients weighted by ``row``, over the variance of the errors."""
        return float(row @ self.inverse @ row)


def negligible_ss(y: Floats) -> float:
    """Return the sum of squares below which the variation of ``y`` is only rounding."""
    return len(y) * (_ROUNDING * float(np.max(np.abs(y), initial=0.0))) ** 2


def _without_rounding(values: Floats, scale: float) -> Floats:
    """Return the values rounded to the precision of numbers as large as ``scale``, so that equal values are equal."""
    step = _ROUNDING * scale
    return np.round(values / step) * step + 0.0 if step > 0 else values


def fit_columns(columns: Sequence[Floats], y: Floats, *, is_exact: bool = False) -> Fit:
    """Fit ``y`` to the mean and to terms of linearly independent columns.

    ``columns``: an array for each term; ``is_exact``: whether ``y`` has no noise.
    """
    model = np.hstack([np.ones((len(y), 1)), *columns])
    gram = model.T @ model
    sizes = np.diag(gram).copy()
    if float(np.max(np.abs(gram - np.diag(sizes)), initial=0.0)) == 0.0:
        # The sign table, which keeps whole numbers whole.
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
    ends = list(accumulate((block.shape[1] for block in columns), initial=1))
    blocks = tuple(slice(start, stop) for start, stop in pairwise(ends))
    for block in (slice(0, 1), *blocks):
        gram[block, block] = 0.0
    sst, sse = float(np.sum((y - y.mean()) ** 2)), float(residuals @ residuals)
    error_df = len(y) - model.shape[1]
    limit = negligible_ss(y)
    return Fit(
        coefficients=coefficients,
        inverse=inverse,
        predicted=predicted,
        residuals=residuals,
        leverages=leverages,
        blocks=blocks,
        sst=sst if sst > limit else 0.0,
        sse=sse if sse > limit and error_df > 0 else 0.0,
        error_df=error_df,
        is_orthogonal=bool(np.max(np.abs(gram), initial=0.0) < 1e-9 * len(y)),
        is_exact=is_exact,
    )


def t_quantile(confidence: float, df: float) -> float:
    """Return Student's two-sided quantile, which is half the width of a confidence interval in standard errors."""
    from scipy.stats import t as student

    return float(student.ppf(0.5 + confidence / 2, df))


_MIN_EFFECTS = 3


def lenth(values: Sequence[float], confidence: float) -> Lenth | None:
    """Return Lenth's margins for m effects; None if there are fewer than three, or if most of them are zero."""
    if len(values) < _MIN_EFFECTS:
        return None
    sizes = np.abs(np.asarray(values, dtype=float))
    first = 1.5 * float(np.median(sizes))
    if first <= 1e-12 * float(sizes.max()):
        return None
    pse = 1.5 * float(np.median(sizes[sizes < 2.5 * first]))
    if pse <= 1e-12 * float(sizes.max()):
        return None
    df = len(sizes) / 3
    return Lenth(
        pse=pse,
        df=df,
        margin=t_quantile(confidence, df) * pse,
        simultaneous_margin=t_quantile(confidence ** (1 / len(sizes)), df) * pse,
    )


_MAX_POINTS = 400
"""Number of combinations of a pair of factors above which an interaction plot is not readable."""


def means_of(
    data: Observations, s_e: float | None, error_df: int, confidence: float, *, is_sample: bool
) -> tuple[Means, ...]:
    """Return the means at the levels of each factor, then of each pair of factors.

    ``s_e``: standard deviation of the errors; None: the means have no intervals; ``is_sample``: whether the design is a
    sample of ranges.
    """
    half_width = None if s_e is None else t_quantile(confidence, error_df) * s_e
    coded = np.round(data.design[data.rows], 9)
    levels = [len(np.unique(column)) for column in coded.T]
    factors = [column for column, count in enumerate(levels) if not is_sample or count <= _MAX_LEVELS]
    pairs = [(a, b) for a, b in combinations(factors, 2) if levels[a] * levels[b] <= _MAX_POINTS]
    groups: list[tuple[int, ...]] = [*((column,) for column in factors), *pairs]
    return tuple(_means(data, coded, group, half_width) for group in groups)


def _means(data: Observations, coded: Floats, columns: tuple[int, ...], half_width: float | None) -> Means:
    levels, index = np.unique(coded[:, list(columns)], axis=0, return_inverse=True)
    index = index.reshape(-1)
    counts = np.bincount(index)
    sums = np.bincount(index, weights=data.y)
    factors = [data.factors[column] for column in columns]
    points = []
    for level, count, total in zip(levels.tolist(), counts.tolist(), sums.tolist(), strict=True):
        value = total / count
        low, high = interval_about(value, None if half_width is None else half_width / count**0.5)
        labels = tuple(label_of(factor, code) for factor, code in zip(factors, level, strict=True))
        points.append(Mean(coded=tuple(level), labels=labels, value=value, count=count, low=low, high=high))
    return Means(letters=tuple(factor.letter for factor in factors), points=tuple(points))


def interval_about(value: float, half_width: float | None) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval around a value; None and None without a width."""
    return (None, None) if half_width is None else (value - half_width, value + half_width)


def pure_error(points: Floats, y: Floats) -> tuple[float, int]:
    """Return the sum of squares of repeated runs about their means, and its degrees of freedom.

    ``points``: coded levels of each run, shape (runs, factors).
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
    """Return the fit, marked as exact if all repeated runs agree, so that its residuals are not noise.

    A simulation of frames at a constant rate gives the same answer for every seed. The misfit of a polynomial is then
    not noise, and the degrees of freedom of the repeated centre would make it look small. ``points``: coded levels of
    each run, shape (runs, factors).
    """
    ss, df = pure_error(points, y)
    return replace(fit, is_exact=True) if fit.sse > 0 and df > 0 and ss == 0.0 else fit


def lack_of_fit(fit: Fit, points: Floats, y: Floats, confidence: float) -> LackOfFit | None:
    """Test whether a fit misses the means of repeated runs; None without repeated runs or degrees of freedom."""
    from scipy.stats import f as fisher

    pure_ss, pure_df = pure_error(points, y)
    df, ss = fit.error_df - pure_df, max(fit.sse - pure_ss, 0.0)
    if pure_df == 0 or df <= 0:
        return None
    if pure_ss == 0:
        f = p_value = None
        verdict = "repeated runs have the same answer, so all residuals are lack of fit"
    else:
        f = ss / df / (pure_ss / pure_df)
        p_value = float(fisher.sf(f, df, pure_df))
        verdict = (
            "the response has curvature for which the model has no terms"
            if p_value < 1 - confidence
            else "the model misses the means of repeated runs by no more than their noise"
        )
    return LackOfFit(df=df, pure_df=pure_df, ss=ss, pure_ss=pure_ss, f=f, p_value=p_value, verdict=verdict)


def anova_table(
    effects: Sequence[Effect], fit: Fit, points: Floats, y: Floats, confidence: float
) -> tuple[AnovaRow, ...]:
    """Return the table of the analysis of variance (Jain, sec. 20.5).

    Its rows are the effects, the errors, which repeated runs divide into lack of fit and pure error, and the total.
    """

    def row(component: str, df: int, ss: float, f: float | None = None, p_value: float | None = None) -> AnovaRow:
        return AnovaRow(component=component, df=df, ss=ss, ms=ss / df, f=f, p_value=p_value)

    s_e = fit.s_e
    rows = [
        row(effect.name, effect.df, effect.ss, None if s_e is None else effect.ss / effect.df / s_e**2, effect.p_value)
        for effect in effects
        if effect.df > 0  # an effect that the runs cannot estimate has no row
    ]
    if fit.error_df > 0:
        rows.append(row("errors", fit.error_df, fit.sse))
        if lack := lack_of_fit(fit, points, y, confidence):
            rows.append(row("lack of fit", lack.df, lack.ss, lack.f, lack.p_value))
            rows.append(row("pure error", lack.pure_df, lack.pure_ss))
    return (*rows, AnovaRow(component="total", df=len(y) - 1, ss=fit.sst))


def effects_of(estimable: Estimable, fit: Fit, margins: Lenth | None, confidence: float) -> tuple[Effect, ...]:
    """Return the effects, the largest share of the variation first; ``estimable``: terms of the fit, in its order."""
    effects = [
        _effect(term, estimable.aliases.get(term.name, ()), fit, number, margins, confidence)
        for number, term in enumerate(estimable.terms)
    ]
    # Effects whose sums of squares differ only by rounding keep the order of the terms.
    return tuple(sorted(effects, key=lambda effect: -float(f"{effect.ss:.9g}")))


def _effect(
    term: Term, aliases: tuple[str, ...], fit: Fit, number: int, margins: Lenth | None, confidence: float
) -> Effect:
    from scipy.stats import f as fisher

    block = fit.blocks[number]
    df = block.stop - block.start
    varies = fit.sst > 0
    values = fit.coefficients[block] if varies else 0.0 * fit.coefficients[block]
    inverse = fit.inverse[block, block]
    ss = fit.ss(number) if varies else 0.0
    share = ss / fit.sst if varies else None
    value = float(values[0]) if df == 1 and not term.levels and not term.is_partial else None
    s_e = fit.s_e
    half_width = t_quantile(confidence, fit.error_df) * s_e if s_e is not None else None
    p_value = error = low = high = None
    if s_e is not None and half_width is not None and df > 0:
        p_value = float(fisher.sf(ss / df / s_e**2, df, fit.error_df))
        if value is not None:
            root = float(inverse[0, 0]) ** 0.5
            error = s_e * root
            low, high = interval_about(value, half_width * root)
    is_significant, verdict = _verdict(value, share, p_value, margins, confidence, fit)
    levels = []
    for label, row in term.levels:
        level_value = float(row @ values)
        level_half_width = None if half_width is None else half_width * float(row @ inverse @ row) ** 0.5
        level_low, level_high = interval_about(level_value, level_half_width)
        levels.append(LevelEffect(label=label, value=level_value, low=level_low, high=level_high))
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
    """Return whether an effect is significant, None if this is unknown, and the verdict in words."""
    if share is None:
        return None, "nothing varies"
    if fit.is_exact:
        if fit.sse > 0:
            return None, "no noise to compare with: the model does not fit exactly"
        return None, "exact: the evaluator has no noise"
    if p_value is not None:
        p = "< 0.001" if p_value < 0.001 else f"= {p_value:.2g}"
        if p_value < 1 - confidence:
            return True, f"significant (p {p})"
        return False, f"not significant (p {p})"
    if fit.error_df > 0:
        return None, "exact: repeated runs have the same answer"
    if margins is None or value is None:
        return None, "no estimate of the noise: no run is repeated"
    if abs(value) > margins.simultaneous_margin:
        return True, "stands out among all effects"
    if abs(value) > margins.margin:
        return True, "stands out, but among so many effects one may stand out by chance"
    return False, "does not stand out from the others"
