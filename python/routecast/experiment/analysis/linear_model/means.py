"""Mean responses at each level and each pair of levels: what main-effect and interaction plots show."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.observations import label_of
from routecast.experiment.analysis.outcome import Mean, Means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from routecast.experiment.analysis.observations import Observations

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["means_of"]

_MOST_LEVELS = 12
"""In a sample of ranges, a factor with more coded values than this has no levels."""
_MOST_POINTS = 400
"""Pairs with more combinations than this make no readable plot of interactions."""


def means_of(
    seen: Observations, s_e: float | None, error_df: int, confidence: float, *, is_sample: bool
) -> tuple[Means, ...]:
    """Return the means at the levels of each factor, then of each pair of factors.

    Parameters
    ----------
    seen : Observations
    s_e : float or None
        Standard deviation of the errors; without it the means have no intervals.
    error_df : int
    confidence : float
    is_sample : bool
        Whether the design is a sample of ranges.
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
                coded=tuple(float(one) for one in level),
                labels=tuple(
                    label_of(seen.factors[column], float(one))
                    for column, one in zip(columns, level, strict=True)
                ),
                value=value,
                count=int(count),
                low=None if reach is None else value - reach,
                high=None if reach is None else value + reach,
            )
        )
    return Means(letters=tuple(seen.factors[column].letter for column in columns), points=tuple(points))
