"""Batch means: how sure a mean is, and whether a series drifts, where neighbouring values resemble each other (S10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["BATCHES", "BatchMeans", "Step", "batch_means", "greatest_step"]

BATCHES = 20
"""As many as the simulator's own intervals rest on (``crates/sim/src/settled.rs``)."""
_RESOLUTION = 1e-9
"""Differences below this share of the mean are rounding."""
_MOST_ALIKE = 0.9
"""Beyond this autocorrelation 20 batches would count as less than one."""
_FEWEST_BESIDE = 3
"""Batches on either side of a step: fewer say nothing about a level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMeans:
    """What the means of equal batches say of a series.

    Parameters
    ----------
    mean : float
    half_width : float
        Of the 95 % interval of the mean.
    rise : float
        How much the fitted straight line rises over the length of the series; negative where it falls.
    p : float
        How likely a series without any drift shows at least this rise, up or down.
    """

    mean: float
    half_width: float
    rise: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The place where a series goes from one level to another, if it has two.

    Parameters
    ----------
    at : int
        First value of the second level.
    rise : float
        From the mean before it to the mean from there on.
    p : float
        How likely a series of one level shows at least this difference there; it is the least of all places.
    """

    at: int
    rise: float
    p: float


def batch_means(series: Sequence[float], batches: int = BATCHES) -> BatchMeans:
    """Return mean, interval and drift of a series of at least ``batches`` values, from its batch means.

    The drift is the slope of the regression line through the batch means, tested with Student's t. Regression is
    taken rather than the test of Mann and Kendall because it says how much is drifted, not only whether.

    Batch means of a long queue are still alike, which makes either test cry wolf: of 3000 autoregressive series (1000
    values, coefficient 0.95) without drift, plain regression calls 10 % drifting at the 5 % level, Mann-Kendall 10 %
    too. So 20 batches count as ``20 (1 - r) / (1 + r)`` independent ones (Santer et al. 2000, *J. Geophys. Res.*
    105(D6), 7337-7356), r the lag-1 autocorrelation of what is left of them without line and bend. (A bend, such as
    the rest of a transient, would make neighbours look alike and hide the drift.) In so short a series r comes out too
    low, by ``(1 + 4 r) / 20`` about a mean (Marriott and Pope 1954, *Biometrika* 41, 390-402) and by about another
    twentieth with line and bend taken off. With that, 4 to 7 % are called drifting for coefficients from -0.5 to 0.98,
    and the interval holds the mean in 95 to 97 %. An r below 0 counts as 0: it would promise more than there is.

    Values that do not fill a batch, at the beginning, count for the mean alone.
    """
    size = len(series) // batches
    values = np.asarray(series, dtype=float)
    mean = float(values.mean())
    means = values[len(series) - size * batches :].reshape(batches, size).mean(axis=1)
    apart = means - means.mean()
    times = np.arange(batches) - (batches - 1) / 2.0
    bend = times**2 - np.mean(times**2)
    slope = float(times @ apart / (times @ times))
    rest = apart - slope * times - (bend @ apart / (bend @ bend)) * bend
    if float(np.abs(apart).max()) <= _RESOLUTION * abs(mean):
        return BatchMeans(mean=mean, half_width=0.0, rise=0.0, p=1.0)
    return BatchMeans(
        mean=mean,
        half_width=_half_width(apart),
        rise=slope * len(series) / size,
        p=_p_of(slope, times, rest, mean),
    )


def greatest_step(series: Sequence[float], batches: int = BATCHES) -> Step:
    """Return where a series of at least ``batches`` values is most likely to change its level.

    A line does not see a step: what is left of the batch means without it makes neighbours look so alike that twenty of
    them count as two. So each place with three batches on either side is tried, the two means on its sides are compared
    by Student's t, and batches count as in :func:`batch_means`, for what is left of them without the *two* means.

    The least of fifteen p values is small by chance more often than one is: of 1000 autoregressive series (1000 values)
    without a step and without a drift that the line shows, 0.2 % come below 0.001 for a coefficient of 0, 0.4 % for
    0.95 and 0.7 % for 0.98; at most 0.3 % below 0.0001.
    """
    size = len(series) // batches
    first = len(series) - size * batches
    values = np.asarray(series, dtype=float)
    means = values[first:].reshape(batches, size).mean(axis=1)
    whole = abs(float(values.mean()))
    steps = [_step(means, place, whole) for place in range(_FEWEST_BESIDE, batches - _FEWEST_BESIDE + 1)]
    rise, p, place = min(steps, key=lambda step: (step[1], -abs(step[0])))
    return Step(at=first + size * place, rise=rise, p=p)


def _step(means: np.ndarray, place: int, whole: float) -> tuple[float, float, int]:
    from scipy.special import stdtr

    before, after = means[:place], means[place:]
    rise = float(after.mean() - before.mean())
    rest = np.concatenate([before - before.mean(), after - after.mean()])
    if float(np.abs(rest).max()) <= _RESOLUTION * whole:
        return rise, 1.0 if abs(rise) <= _RESOLUTION * whole else 0.0, place
    worth = _worth(rest, 1)
    freedom = max(worth - 2.0, 1.0)
    each = float(rest @ rest) / freedom * means.size / worth
    error = math.sqrt(each * (1.0 / before.size + 1.0 / after.size))
    return rise, 2.0 * float(stdtr(freedom, -abs(rise) / error)), place


def _worth(residuals: np.ndarray, fitted: int) -> float:
    """Return how many independent values so many residuals are worth, with so many curves fitted beside the mean."""
    count = residuals.size
    r = float(residuals[1:] @ residuals[:-1] / (residuals @ residuals))
    r = min(max(r + (1.0 + 0.5 * fitted + 4.0 * r) / count, 0.0), _MOST_ALIKE)
    return count * (1.0 - r) / (1.0 + r)


def _half_width(residuals: np.ndarray) -> float:
    from scipy.special import stdtrit

    worth = _worth(residuals, 0)
    freedom = max(worth - 1.0, 1.0)
    variance = float(residuals @ residuals) / freedom
    return float(stdtrit(freedom, 0.975)) * math.sqrt(variance / worth)


def _p_of(slope: float, times: np.ndarray, residuals: np.ndarray, mean: float) -> float:
    from scipy.special import stdtr

    if float(np.abs(residuals).max()) <= _RESOLUTION * abs(mean):
        return 0.0  # line and bend are all that there is
    freedom = max(_worth(residuals, 2) - 3.0, 1.0)
    error = math.sqrt(float(residuals @ residuals) / freedom / float(times @ times))
    return 2.0 * float(stdtr(freedom, -abs(slope / error)))
