"""A random time that is one of several, by chance: the way out of the sleep state that a frame happens to find."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from routecast.router.random_time import RandomTime

__all__ = ["MixedTime"]

_POINTS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedTime:
    """With each part's chance its constant time and, where ``wakes`` says so, the random one besides.

    Parameters
    ----------
    parts : tuple of (float, float, bool)
        Chance, constant time in seconds, whether the random time comes on top; the chances add up to 1.
    random : RandomTime
    """

    parts: tuple[tuple[float, float, bool], ...]
    random: RandomTime

    @property
    def average_s(self) -> float:
        """Mean, seconds."""
        mean_s = self.random.average_s
        return math.fsum(chance * (time_s + wakes * mean_s) for chance, time_s, wakes in self.parts)

    @property
    def second_moment_s2(self) -> float:
        """Mean of the square, s²."""
        mean_s, second_s2 = self.random.average_s, self.random.second_moment_s2
        return math.fsum(
            chance * (time_s**2 + wakes * (2.0 * time_s * mean_s + second_s2))
            for chance, time_s, wakes in self.parts
        )

    @property
    def is_constant(self) -> bool:
        """Whether it never varies."""
        return self.second_moment_s2 <= self.average_s**2 * (1.0 + 1e-12)

    def quantile_s(self, ratio: float) -> float:
        """Return the time that a share ``ratio`` (0 to 1) does not exceed, seconds."""
        times, shares = _points(self)
        return times[min(bisect_left(shares, ratio), len(times) - 1)]


@lru_cache(maxsize=64)
def _points(time: MixedTime) -> tuple[list[float], list[float]]:
    """Return times in rising order and the shares that do not exceed them."""
    points: list[tuple[float, float]] = []
    for chance, constant_s, wakes in time.parts:
        count = _POINTS if wakes and not time.random.is_constant else 1
        for number in range(count):
            more_s = time.random.quantile_s((number + 0.5) / count) if wakes else 0.0
            points.append((constant_s + more_s, chance / count))
    points = sorted(point for point in points if point[1] > 0.0)
    return [time_s for time_s, _ in points], list(accumulate(chance for _, chance in points))
