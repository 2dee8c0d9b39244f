"""Rankings of factors by importance, for factorial designs and for samples.

In a factorial design the shares of the variation rank the factors. In a sample of ranges (Latin hypercube, Sobol
sequence) Sobol's indices rank them if a polynomial predicts left-out runs well enough, otherwise the variation of the
mean response over bins of each factor. Standardised regression coefficients of values and ranks give the direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis._observations import Observations
from routecast.experiment.analysis.outcome import FactorImportance, Screening
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.intp]

_MAX_DEGREE = 12
_MAX_TERMS = 220
_RUNS_PER_TERM = 2
_NORMS = (1.0, 0.6)
"""Terms have ``(sum of degree^norm)^(1/norm)`` up to the degree; norms below 1 leave out high interactions, as in
G. Blatman and B. Sudret, "Adaptive sparse polynomial chaos expansion", Journal of Computational Physics 230, 2011."""
_MAX_DEGREES_WITHOUT_GAIN = 3
_MIN_GAIN = 1e-4
"""The search ends when ``_MAX_DEGREES_WITHOUT_GAIN`` degrees gain no more than this share of the variance."""
_MAX_RUNS_FOR_DEGREE = 2000
"""Number of runs for the choice of the degree; the expansion is then fitted to all runs."""


@value
class ChaosExpansion:
    """A fitted polynomial chaos expansion, which gives Sobol's indices of any sample.

    A polynomial in orthonormal functions of the factors is fitted to the runs; the squares of its coefficients divide
    its variance among the factors and their interactions (B. Sudret, "Global sensitivity analysis using polynomial
    chaos expansions", Reliability Engineering and System Safety 93, 2008). Quantities are uniform between their levels,
    as in Latin hypercubes and Sobol sequences; other factors have the distribution of the sample.
    """

    degrees: Integers = field("Degree of each term in each factor, the constant term first")
    coefficients: Floats
    spread: Floats = field(
        "Matrix whose transpose times itself is the covariance of the coefficients, in units of the errors' variance"
    )
    unexplained: float = field("Mean square of the errors of left-out runs")
    quality_ratio: float = field("Q2: 1 - ``unexplained`` over the variance of the response")
    degree: int


def fit_chaos(coded: Floats, y: Floats, is_quantity: Sequence[bool]) -> ChaosExpansion | None:
    """Fit the expansion of the degree that predicts left-out runs best; None if there are too few runs."""
    functions = [
        _legendre(column) if quantity else _empirical(column)
        for column, quantity in zip(coded.T, is_quantity, strict=True)
    ]
    highest = [function.shape[1] - 1 for function in functions]
    # The order of listed points may have a meaning, so the runs are drawn at random.
    drawn = np.random.default_rng(0).permutation(len(y))[:_MAX_RUNS_FOR_DEGREE]
    chosen: tuple[float, Integers, int] | None = None
    for norm in _NORMS:
        without_gain, best = 0, -np.inf
        for degree in range(1, _MAX_DEGREE + 1):
            degrees = _degrees(degree, norm, highest)
            if degrees is None or _RUNS_PER_TERM * len(degrees) > len(y):
                break
            chaos = _fit([function[drawn] for function in functions], y[drawn], degrees)
            if chaos is None:
                break
            if chosen is None or chaos.quality_ratio > chosen[0]:
                chosen = (chaos.quality_ratio, degrees, degree)
            without_gain = 0 if chaos.quality_ratio > best + _MIN_GAIN else without_gain + 1
            best = max(best, chaos.quality_ratio)
            if without_gain == _MAX_DEGREES_WITHOUT_GAIN or best > 1 - _MIN_GAIN:
                break
        if chosen is not None and chosen[0] > 1 - _MIN_GAIN:
            break
    return None if chosen is None else _fit(functions, y, chosen[1], chosen[2])


def _fit(functions: Sequence[Floats], y: Floats, degrees: Integers, degree: int = 0) -> ChaosExpansion | None:
    """Fit the given terms by least squares; None if the runs cannot separate them."""
    basis = np.ones((len(y), len(degrees)))
    for column, function in enumerate(functions):
        basis *= function[:, degrees[:, column]]
    try:
        factor = np.linalg.cholesky(basis.T @ basis)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diag(factor)
    if float(pivots.min()) < 1e-6 * float(pivots.max()):
        return None
    inverse = np.linalg.inv(factor)
    coefficients = inverse.T @ (inverse @ (basis.T @ y))
    leverages = np.sum((basis @ inverse.T) ** 2, axis=1)
    unexplained = float(np.mean(((y - basis @ coefficients) / np.maximum(1 - leverages, 1e-9)) ** 2))
    return ChaosExpansion(
        degrees=degrees,
        coefficients=coefficients,
        spread=inverse,
        unexplained=unexplained,
        quality_ratio=1 - unexplained / float(np.var(y)),
        degree=degree,
    )


def indices(chaos: ChaosExpansion) -> tuple[Floats, Floats]:
    """Return the first-order and total indices of each factor, as shares of the whole variance.

    The part of the squares that comes from errors of the coefficients is subtracted.
    """
    return _shares(chaos, chaos.coefficients, 1.0)


def resampled_indices(chaos: ChaosExpansion, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return first-order and total indices of expansions refitted to new errors, each of shape (resamples, k).

    The errors are normal, with the mean square of the errors of left-out runs.
    """
    random = np.random.default_rng(seed)
    first, total = [], []
    for _ in range(resamples):
        errors = chaos.spread.T @ random.standard_normal(len(chaos.coefficients))
        # The estimates have errors already, so the errors count twice.
        shares = _shares(chaos, chaos.coefficients + chaos.unexplained**0.5 * errors, 2.0)
        first.append(shares[0])
        total.append(shares[1])
    return np.array(first), np.array(total)


def _shares(chaos: ChaosExpansion, coefficients: Floats, errors: float) -> tuple[Floats, Floats]:
    squares = coefficients**2 - errors * chaos.unexplained * np.sum(chaos.spread**2, axis=0)
    squares[0] = 0.0
    variance = max(float(squares.sum()), 0.0) + chaos.unexplained
    in_term = chaos.degrees > 0
    alone = in_term & (in_term.sum(axis=1, keepdims=True) == 1)
    if variance == 0:
        zeros = np.zeros(chaos.degrees.shape[1])
        return zeros, zeros
    return np.clip((squares @ alone) / variance, 0.0, 1.0), np.clip((squares @ in_term) / variance, 0.0, 1.0)


def _legendre(x: Floats) -> Floats:
    """Return Legendre's polynomials of degree 0, 1, … orthonormal for x uniform on -1..1."""
    values = np.polynomial.legendre.legvander(x, _MAX_DEGREE)
    return np.asarray(values * np.sqrt(2 * np.arange(_MAX_DEGREE + 1) + 1), dtype=float)


def _empirical(x: Floats) -> Floats:
    """Return as many polynomials as the sample has distinct values, orthonormal over the sample."""
    degree = min(len(np.unique(np.round(x, 9))) - 1, _MAX_DEGREE)
    q, r = np.linalg.qr(np.polynomial.legendre.legvander(x, degree))
    return np.asarray(q * np.sign(np.diag(r)) * len(x) ** 0.5, dtype=float)


def _degrees(degree: int, norm: float, highest: Sequence[int]) -> Integers | None:
    """Return the degrees of the terms, the constant first; None if there are too many terms.

    ``highest``: highest degree of each factor.
    """
    count = len(highest)
    terms: list[list[int]] = []
    for size in range(min(count, degree) + 1):
        for members in combinations(range(count), size):
            for powers in _powers(size, degree, norm):
                if any(power > highest[member] for member, power in zip(members, powers, strict=True)):
                    continue
                term = [0] * count
                for member, power in zip(members, powers, strict=True):
                    term[member] = power
                terms.append(term)
                if len(terms) > _MAX_TERMS:
                    return None
    return np.array(terms, dtype=np.intp)


def _powers(size: int, degree: int, norm: float, used: float = 0.0) -> Iterator[tuple[int, ...]]:
    """Yield positive degrees of ``size`` factors of norm at most ``degree``; ``used``: sum of earlier powers."""
    if size == 0:
        yield ()
        return
    for power in range(1, degree + 1):
        total = used + power**norm
        if total + (size - 1) > degree**norm * (1 + 1e-9):
            return
        for rest in _powers(size - 1, degree, norm, total):
            yield (power, *rest)


_RESAMPLES = 200
_MIN_QUALITY_RATIO = 0.7
"""Q2 from which the indices of the polynomial are used, our choice: 30 % of the variance stays unexplained."""
_RUNS_PER_FACTOR = 3
_MANY_RUNS = 2000


def screen_factorial(data: Observations, shares: dict[tuple[str, ...], float], *, has_aliases: bool) -> Screening:
    """Rank the factors of a factorial design by their shares of the variation with all their interactions.

    ``shares``: share of each effect by its letters; ``has_aliases``: whether effects have aliases.
    """
    ranked = []
    for factor in data.factors:
        total = sum(share for letters, share in shares.items() if factor.letter in letters)
        ranked.append((total, shares.get((factor.letter,), 0.0), factor))
    ranked.sort(key=lambda entry: -float(f"{entry[0]:.9g}"))
    return Screening(
        factors=tuple(
            FactorImportance(
                letter=factor.letter,
                name=factor.name,
                rank=rank,
                importance=total,
                first_order_ratio=alone,
                total_ratio=total,
            )
            for rank, (total, alone, factor) in enumerate(ranked, start=1)
        ),
        method="shares of the variation among the runs of the design",
        notes=("each effect includes its aliases, so the ranks hold only if those are small",) if has_aliases else (),
    )


def screen_sample(data: Observations, *, confidence: float, seed: int) -> Screening | None:
    """Rank the factors of a sample by importance; None if nothing varies or there are too few runs."""
    from scipy.stats import rankdata

    from routecast.experiment.analysis._linear_model import negligible_ss

    coded, y = data.design[data.rows], data.y
    varies = np.ptp(coded, axis=0) > 0 if len(y) else np.zeros(coded.shape[1], dtype=bool)
    if (
        len(y) < _RUNS_PER_FACTOR * (coded.shape[1] + 1)
        or not varies.any()
        or float(np.sum((y - y.mean()) ** 2)) <= negligible_ss(y)
    ):
        return None
    notes = [
        f"{factor.letter} ({factor.name}) has one level in all runs that answered"
        for factor, is_varied in zip(data.factors, varies, strict=True)
        if not is_varied
    ]
    x = coded[:, varies]
    factors = [factor for factor, is_varied in zip(data.factors, varies, strict=True) if is_varied]
    ranked_x, ranked_y = np.apply_along_axis(rankdata, 0, x), rankdata(y)
    src, srrc = _standardised(x, y), _standardised(ranked_x, ranked_y)
    resamples = _RESAMPLES if len(y) <= _MANY_RUNS else _RESAMPLES // 2
    srrc_low, srrc_high = _bootstrap(_standardised, ranked_x, ranked_y, resamples, seed, confidence)
    chaos = fit_chaos(x, y, [factor.is_quantity for factor in factors])
    if chaos is not None and chaos.quality_ratio >= _MIN_QUALITY_RATIO:
        sobol = _indices_of_chaos(chaos, seed, confidence)
    else:
        sobol = _indices_over_bins(x, y, seed, confidence)
        reason = "too few runs" if chaos is None else f"Q2 = {chaos.quality_ratio:.2f}"
        notes.append(f"no polynomial predicts left-out runs well enough ({reason}), so interactions are unknown")
    importance = sobol.first if sobol.total is None else sobol.total

    def entry(values: Floats | None, column: int) -> float | None:
        return None if values is None else float(values[column])

    return Screening(
        factors=tuple(
            FactorImportance(
                letter=factors[column].letter,
                name=factors[column].name,
                rank=rank,
                importance=float(importance[column]),
                src=entry(src, column),
                srrc=entry(srrc, column),
                srrc_low=entry(srrc_low, column),
                srrc_high=entry(srrc_high, column),
                first_order_ratio=entry(sobol.first, column),
                first_order_low=entry(sobol.first_low, column),
                first_order_high=entry(sobol.first_high, column),
                total_ratio=entry(sobol.total, column),
                total_low=entry(sobol.total_low, column),
                total_high=entry(sobol.total_high, column),
            )
            for rank, column in enumerate(np.argsort(-importance, kind="stable").tolist(), start=1)
        ),
        method=sobol.method,
        quality_ratio=None if chaos is None else chaos.quality_ratio,
        notes=tuple(notes),
    )


@value
class _SobolIndices:
    """Sobol's indices of the varied factors with their intervals; ``total`` is None where interactions are unknown."""

    method: str
    first: Floats
    first_low: Floats
    first_high: Floats
    total: Floats | None = None
    total_low: Floats | None = None
    total_high: Floats | None = None


def _indices_of_chaos(chaos: ChaosExpansion, seed: int, confidence: float) -> _SobolIndices:
    """Return the indices of a polynomial that predicts left-out runs."""
    first, total = indices(chaos)
    resampled_first, resampled_total = resampled_indices(chaos, _RESAMPLES, seed)
    first_low, first_high = _interval(resampled_first, confidence)
    total_low, total_high = _interval(resampled_total, confidence)
    return _SobolIndices(
        method=(
            f"Sobol indices by a polynomial of degree {chaos.degree} ({len(chaos.coefficients)} terms) that predicts "
            f"{chaos.quality_ratio:.1%} of the variance of left-out runs"
        ),
        first=first,
        first_low=first_low,
        first_high=first_high,
        total=total,
        total_low=total_low,
        total_high=total_high,
    )


def _indices_over_bins(x: Floats, y: Floats, seed: int, confidence: float) -> _SobolIndices:
    """Return first-order indices from the mean response over bins of each factor."""
    bins = int(min(max(len(y) ** 0.5 / 2, 3), 32))

    def shares(x: Floats, y: Floats) -> Floats:
        return np.array([_share_over_bins(column, y, bins) for column in x.T])

    first = shares(x, y)
    low, high = _bootstrap(shares, x, y, _RESAMPLES, seed, confidence)
    return _SobolIndices(
        method=f"first-order Sobol indices from the mean response over {bins} bins of each factor",
        first=first,
        first_low=np.minimum(low, first),
        first_high=np.maximum(high, first),
    )


def _standardised(x: Floats, y: Floats) -> Floats:
    """Return the coefficients of the regression of standardised y on standardised x."""
    centred_x, centred_y = x - x.mean(axis=0), y - y.mean()
    scale = np.sqrt(np.sum(centred_x**2, axis=0))
    scale[scale == 0] = 1.0
    scaled = centred_x / scale
    size = float(np.linalg.norm(centred_y)) or 1.0
    coefficients = np.linalg.lstsq(scaled.T @ scaled, scaled.T @ (centred_y / size), rcond=None)[0]
    return np.asarray(coefficients, dtype=float)


def _bootstrap(
    estimate: Callable[[Floats, Floats], Floats], x: Floats, y: Floats, resamples: int, seed: int, confidence: float
) -> tuple[Floats, Floats]:
    """Return the bootstrap percentile interval of an estimate from runs drawn with replacement."""
    random = np.random.default_rng(seed)
    drawn = (random.integers(len(y), size=len(y)) for _ in range(resamples))
    return _interval(np.array([estimate(x[runs], y[runs]) for runs in drawn]), confidence)


def _interval(resampled: Floats, confidence: float) -> tuple[Floats, Floats]:
    low, high = np.quantile(resampled, [0.5 - confidence / 2, 0.5 + confidence / 2], axis=0)
    return low, high


def _share_over_bins(x: Floats, y: Floats, bins: int) -> float:
    """Return the share of the variance that the means over bins of x explain, minus the share that chance explains."""
    values = np.unique(x)
    if len(values) <= bins:
        index = np.searchsorted(values, x)
    else:
        index = np.minimum(np.argsort(np.argsort(x, kind="stable"), kind="stable") * bins // len(x), bins - 1)
    counts = np.bincount(index).astype(float)
    means = np.bincount(index, weights=y) / np.maximum(counts, 1.0)
    groups = int(np.count_nonzero(counts))
    sst = float(np.sum((y - y.mean()) ** 2))
    between = float(np.sum(counts * (means - y.mean()) ** 2))
    if sst == 0 or len(y) <= groups:
        return 0.0
    chance = (groups - 1) * (sst - between) / (len(y) - groups)
    return max(between - chance, 0.0) / sst
