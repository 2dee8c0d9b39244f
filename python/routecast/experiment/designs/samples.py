"""Samples of large spaces: Latin hypercubes and Sobol sequences, from SciPy, as coded levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from routecast.errors import ModelProblem, Problem
from routecast.experiment.model import Factor

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Spread", "latin_hypercube", "on_levels", "sobol"]

Spread = Literal["random", "even"]
_MOST_EVEN = 1000
"""Swapping coordinates of more points takes longer than trying the points."""


def latin_hypercube(
    factors: int, points: int, *, seed: int, spread: Spread = "random"
) -> tuple[tuple[float, ...], ...]:
    """Return points of which each factor has one in each of ``points`` equal intervals (McKay et al. 1979).

    Parameters
    ----------
    factors, points : int
    seed : int
        The same seed gives the same points.
    spread : {"random", "even"}
        ``even`` exchanges coordinates until the centred discrepancy falls no more, which fills the space better.

    Returns
    -------
    tuple of tuple of float, shape (points, factors)
        Coded levels, -1..+1.

    Raises
    ------
    routecast.errors.ModelProblem
        Too many points to spread evenly.
    """
    from scipy.stats import qmc

    if spread == "even" and points > _MOST_EVEN:
        what = f'"even" takes at most {_MOST_EVEN:,} points; so many as {points:,} fill the space without it: "random"'
        raise ModelProblem("design", [Problem("spread", what)])
    sampler = qmc.LatinHypercube(d=factors, seed=_random(seed), optimization="random-cd" if spread == "even" else None)
    return _coded(sampler.random(points).tolist())


def sobol(factors: int, points: int, *, seed: int) -> tuple[tuple[float, ...], ...]:
    """Return the first points of a scrambled Sobol sequence (Owen 1998), as :func:`latin_hypercube`.

    Raises
    ------
    routecast.errors.ModelProblem
        The number of points is no power of 2: the sequence is balanced only there.
    """
    from scipy.stats import qmc

    if points & (points - 1):
        less, more = 1 << (points.bit_length() - 1), 1 << points.bit_length()
        what = f"{points:,} is no power of 2, where alone a Sobol sequence is balanced: take {less:,} or {more:,}"
        raise ModelProblem("design", [Problem("points", what)])
    sampler = qmc.Sobol(d=factors, seed=_random(seed))
    return _coded(sampler.random_base2(points.bit_length() - 1).tolist())


def on_levels(rows: Sequence[Sequence[float]], factors: Sequence[Factor]) -> tuple[tuple[float, ...], ...]:
    """Put the coordinates of factors that are no quantities on their levels, each level having an equal interval."""
    return tuple(
        tuple(
            value if factor.is_quantity else _nearest_level(factor, value)
            for value, factor in zip(row, factors, strict=True)
        )
        for row in rows
    )


def _nearest_level(factor: Factor, coded: float) -> float:
    count = len(factor.levels)
    return factor.levels[min(int((coded + 1.0) / 2.0 * count), count - 1)].coded


def _coded(unit: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(2.0 * value - 1.0 for value in row) for row in unit)


def _random(seed: int) -> np.random.Generator:
    from numpy.random import default_rng

    return default_rng(seed)
