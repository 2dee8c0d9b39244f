"""Random times of their own: how long a wake-up takes, how long a unit is taken away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

__all__ = ["Interruptions", "RandomTime", "Variation"]

Variation = Literal["deterministic", "exponential", "gamma", "hyperexponential", "lognormal", "uniform"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTime:
    """A random time: a mean and how it varies, or a table of measured quantiles.

    Parameters
    ----------
    mean_s : float
        Mean, seconds; 0 where a table is given.
    variation : str
        Law, as for service times: ``deterministic``, ``exponential``, ``gamma``, ``hyperexponential``,
        ``lognormal``, ``uniform``.
    scv : float or None
        Squared coefficient of variation of the law (fixed for ``deterministic`` and ``exponential``).
    quantiles_s : tuple of float
        Instead of a mean: quantiles at equally spaced probabilities from 0 to 1, seconds, in rising order; the first
        is the least time, the last the greatest. Between them the distribution function is linear. One: a constant.

    Examples
    --------
    >>> round(RandomTime(quantiles_s=(10e-6, 20e-6, 60e-6)).average_s, 9)
    2.75e-05
    """

    mean_s: float = 0.0
    variation: Variation = "deterministic"
    scv: float | None = None
    quantiles_s: tuple[float, ...] = ()

    @property
    def average_s(self) -> float:
        """Mean of the law or of the table, seconds."""
        table = self.quantiles_s
        if len(table) < 2:
            return table[0] if table else self.mean_s
        return math.fsum(0.5 * (low + high) for low, high in pairwise(table)) / (len(table) - 1)

    @property
    def second_moment_s2(self) -> float:
        """Mean of the square, s²."""
        table = self.quantiles_s
        if not table:
            return (1.0 + self.squared_cv) * self.mean_s**2
        if len(table) == 1:
            return table[0] ** 2
        squares = (low * low + low * high + high * high for low, high in pairwise(table))
        return math.fsum(squares) / 3.0 / (len(table) - 1)

    @property
    def squared_cv(self) -> float:
        """Squared coefficient of variation."""
        if self.quantiles_s:
            mean_s = self.average_s
            return max(self.second_moment_s2 / mean_s**2 - 1.0, 0.0) if mean_s > 0.0 else 0.0
        if self.variation == "deterministic":
            return 0.0
        return 1.0 if self.variation == "exponential" or self.scv is None else self.scv

    @property
    def is_constant(self) -> bool:
        """Whether it never varies."""
        return self.squared_cv == 0.0

    def quantile_s(self, ratio: float) -> float:
        """Return the time that a share ``ratio`` (0 to 1) does not exceed, seconds."""
        table = self.quantiles_s
        if table:
            place = ratio * (len(table) - 1)
            low = min(int(place), max(len(table) - 2, 0))
            high = min(low + 1, len(table) - 1)
            return table[low] + (place - low) * (table[high] - table[low])
        return self.mean_s * _factor_quantile(self.variation, self.squared_cv, ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """What takes a unit away while it works: the host's preemption, ticks, other interrupts (S5).

    They strike a busy unit at the instants of a Poisson process, ``rate_hz`` times in a second of its work, and the
    work resumes afterwards: breakdowns of a busy server with preemptive resumption (Avi-Itzhak and Naor, Operations
    Research 11(3), 1963). A service that takes T without them is completed after T and Poisson(rate·T) of their times.

    Parameters
    ----------
    rate_hz : float
        Interruptions per second of a unit's work.
    duration : RandomTime
        How long one takes.
    """

    rate_hz: float
    duration: RandomTime

    @property
    def stretch(self) -> float:
        """Mean completion time over service time, ``1 + rate·mean``."""
        return 1.0 + self.rate_hz * self.duration.average_s

    @property
    def scatter_s(self) -> float:
        """Variance that they add per second of service, ``rate·E[D²]``, seconds."""
        return self.rate_hz * self.duration.second_moment_s2


def _factor_quantile(variation: Variation, scv: float, ratio: float) -> float:
    """Quantile of a factor of mean 1."""
    if scv == 0.0:
        return 1.0
    if variation == "uniform":
        return 1.0 + math.sqrt(3.0 * scv) * (2.0 * ratio - 1.0)
    if not 0.0 < ratio < 1.0:
        return 0.0 if ratio <= 0.0 else math.inf
    if variation == "exponential":
        return -math.log1p(-ratio)
    if variation == "lognormal":
        variance = math.log1p(scv)
        return math.exp(math.sqrt(variance) * NormalDist().inv_cdf(ratio) - 0.5 * variance)
    if variation == "gamma":
        from scipy.special import gammaincinv  # a heavy import that few models need

        return scv * float(gammaincinv(1.0 / scv, ratio))
    # Two phases with balanced means, as the simulator draws them.
    p = 0.5 * (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0)))
    low, high = 0.0, 1.0

    def share_above(factor: float) -> float:
        return p * math.exp(-2.0 * p * factor) + (1.0 - p) * math.exp(-2.0 * (1.0 - p) * factor)

    while share_above(high) > 1.0 - ratio:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share_above(middle) > 1.0 - ratio else (low, middle)
    return high
