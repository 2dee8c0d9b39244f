"""Sobol's indices from a sample that was not made for them, by polynomial chaos.

A polynomial in orthonormal functions of the factors is fitted to the runs; the squares of its coefficients then divide
its variance among the factors and their interactions (B. Sudret, "Global sensitivity analysis using polynomial chaos
expansions", Reliability Engineering and System Safety 93, 2008). The degree is the one that best predicts runs that are
left out. Quantities are taken as uniform between their levels, as Latin hypercubes and Sobol sequences are; other
factors as they occur in the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.intp]

__all__ = ["Chaos", "fit_chaos", "indices", "resampled_indices"]

_HIGHEST_DEGREE = 12
_MOST_TERMS = 220
_RUNS_PER_TERM = 2
_NORMS = (1.0, 0.6)
"""Terms have ``(sum of degree^norm)^(1/norm)`` up to the degree: below 1 the high interactions are left out, as in
G. Blatman and B. Sudret, "Adaptive sparse polynomial chaos expansion", Journal of Computational Physics 230, 2011."""
_TRIES = 3
_NO_BETTER = 1e-4
"""The search over degrees ends where this many more degrees gain no more than this share of the variance."""
_ENOUGH_TO_CHOOSE = 2000
"""The degree is chosen on at most this many runs; the expansion is then fitted to all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chaos:
    """A fitted expansion.

    Parameters
    ----------
    degrees : (terms, k) array of int
        Degree of each term in each factor; the first is the constant.
    coefficients : (terms,) array
    spread : (terms, terms) array
        Its transpose times itself is the covariance of the coefficients, in units of the errors' variance.
    unexplained : float
        Mean square of the errors of left-out runs.
    quality_ratio : float
        Q2: 1 minus that over the variance of the response.
    degree : int
    """

    degrees: Integers
    coefficients: Floats
    spread: Floats
    unexplained: float
    quality_ratio: float
    degree: int


def fit_chaos(coded: Floats, y: Floats, is_quantity: Sequence[bool]) -> Chaos | None:
    """Fit the expansion that predicts left-out runs best; None where there are too few runs for any.

    Parameters
    ----------
    coded : (n, k) array
    y : (n,) array
    is_quantity : sequence of bool
    """
    functions = [
        _legendre(column) if quantity else _empirical(column)
        for column, quantity in zip(coded.T, is_quantity, strict=True)
    ]
    # A Latin hypercube's or a sequence's runs are in no order that matters, but a caller's list may be.
    some = np.random.default_rng(0).permutation(len(y))[:_ENOUGH_TO_CHOOSE]
    chosen: tuple[float, Integers, int] | None = None
    for norm in _NORMS:
        worse, best = 0, -np.inf
        for degree in range(1, _HIGHEST_DEGREE + 1):
            degrees = _degrees(len(functions), degree, norm, [one.shape[1] - 1 for one in functions])
            if degrees is None or _RUNS_PER_TERM * len(degrees) > len(y):
                break
            found = _fit([one[some] for one in functions], y[some], degrees)
            if found is None:
                break
            if chosen is None or found.quality_ratio > chosen[0]:
                chosen = (found.quality_ratio, degrees, degree)
            worse = 0 if found.quality_ratio > best + _NO_BETTER else worse + 1
            best = max(best, found.quality_ratio)
            if worse == _TRIES or best > 1 - _NO_BETTER:
                break
        if chosen is not None and chosen[0] > 1 - _NO_BETTER:
            break
    return None if chosen is None else _fit(functions, y, chosen[1], chosen[2])


def _fit(functions: Sequence[Floats], y: Floats, degrees: Integers, degree: int = 0) -> Chaos | None:
    """Fit the given terms by least squares; None where the runs cannot tell them apart."""
    basis = np.ones((len(y), len(degrees)))
    for column, one in enumerate(functions):
        basis *= one[:, degrees[:, column]]
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
    return Chaos(
        degrees=degrees,
        coefficients=coefficients,
        spread=inverse,
        unexplained=unexplained,
        quality_ratio=1 - unexplained / float(np.var(y)),
        degree=degree,
    )


def indices(found: Chaos) -> tuple[Floats, Floats]:
    """Return the first-order and total indices of each factor, as shares of the whole variance.

    What the errors of the coefficients add to their squares is taken off.
    """
    return _shares(found, found.coefficients, 1.0)


def resampled_indices(found: Chaos, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return first-order and total indices of expansions refitted to new errors, each (resamples, k).

    The errors are drawn from a normal distribution with the mean square of those of left-out runs.
    """
    random = np.random.default_rng(seed)
    first, total = [], []
    for _ in range(resamples):
        moved = found.spread.T @ random.standard_normal(len(found.coefficients))
        # Drawn around estimates that have errors already: theirs count twice.
        alone, whole = _shares(found, found.coefficients + found.unexplained**0.5 * moved, 2.0)
        first.append(alone)
        total.append(whole)
    return np.array(first), np.array(total)


def _shares(found: Chaos, coefficients: Floats, errors: float) -> tuple[Floats, Floats]:
    squares = coefficients**2 - errors * found.unexplained * np.sum(found.spread**2, axis=0)
    squares[0] = 0.0
    whole = max(float(squares.sum()), 0.0) + found.unexplained
    in_it = found.degrees > 0
    alone = in_it & (in_it.sum(axis=1, keepdims=True) == 1)
    if whole == 0:
        nothing = np.zeros(found.degrees.shape[1])
        return nothing, nothing
    return np.clip((squares @ alone) / whole, 0.0, 1.0), np.clip((squares @ in_it) / whole, 0.0, 1.0)


def _legendre(x: Floats) -> Floats:
    """Return Legendre's polynomials of degree 0, 1, … orthonormal for x uniform on -1..1."""
    values = np.polynomial.legendre.legvander(x, _HIGHEST_DEGREE)
    return np.asarray(values * np.sqrt(2 * np.arange(_HIGHEST_DEGREE + 1) + 1), dtype=float)


def _empirical(x: Floats) -> Floats:
    """Return polynomials that are orthonormal over the sample, as many as it has distinct values."""
    degree = min(len(np.unique(np.round(x, 9))) - 1, _HIGHEST_DEGREE)
    q, r = np.linalg.qr(np.polynomial.legendre.legvander(x, degree))
    return np.asarray(q * np.sign(np.diag(r)) * len(x) ** 0.5, dtype=float)


def _degrees(count: int, degree: int, norm: float, highest: Sequence[int]) -> Integers | None:
    """Return the degrees of the terms, the constant first; None where there would be too many."""
    found: list[tuple[int, ...]] = []
    for members in (
        chosen for size in range(count + 1) for chosen in combinations(range(count), size) if size <= degree
    ):
        for powers in _powers(len(members), degree, norm):
            if any(power > highest[member] for member, power in zip(members, powers, strict=True)):
                continue
            term = [0] * count
            for member, power in zip(members, powers, strict=True):
                term[member] = power
            found.append(tuple(term))
            if len(found) > _MOST_TERMS:
                return None
    return np.array(found, dtype=np.intp)


def _powers(size: int, degree: int, norm: float, spent: float = 0.0) -> Iterator[tuple[int, ...]]:
    """Yield positive degrees of ``size`` factors whose norm is at most ``degree``."""
    if size == 0:
        yield ()
        return
    for power in range(1, degree + 1):
        now = spent + power**norm
        if now + (size - 1) > degree**norm * (1 + 1e-9):
            return
        for rest in _powers(size - 1, degree, norm, now):
            yield (power, *rest)
