"""Queues whose server sleeps and needs a set-up time to wake up.

A set-up time D passes between the frame that finds the server asleep and its service; the server then works until no
frame waits (exhaustive service). In vacation models it is the second part of a vacation that begins with an idle time
(Takagi, "Queueing Analysis, Volume 1", 1991).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from routecast.evaluate._queueing import DelayedQueue, MixedTime, PlainQueue, Queue, quantile_s, sorted_points
from routecast.quantity.schema import field, value
from routecast.router.model import RandomTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GRID = 400


@value
class MG1SetUp(DelayedQueue):
    """M/G/1 with set-up times: ``W = W_0 + (2E[D] + λE[D²])/(2(1 + λE[D]))``, ``W_0`` the wait in M/G/1.

    Exact for rho < 1. The wait is the sum of two independent times: that in M/G/1, and X, which is D (probability
    ``1/(1 + λE[D])``, for the frame that wakes the server) or what is left of D at a random instant. Percentiles are
    known where those of M/G/1 are known. Source: Welch, Operations Research 12(5), 1964; Takagi 1991, sec. 2.2.
    """

    arrival_pps: float
    set_up: RandomTime | MixedTime
    work_s: float = field("Constant time added to every set-up", default=0.0)

    @property
    def method(self) -> str:
        return f"{self.queue.method} with set-up times (Welch)"

    @property
    def _added_s(self) -> float:
        """Mean of X."""
        mean_s, rate = self.set_up.average_s + self.work_s, self.arrival_pps
        second_s2 = self.set_up.second_moment_s2 + self.work_s * (2.0 * mean_s - self.work_s)
        return (2.0 * mean_s + rate * second_s2) / (2.0 * (1.0 + rate * mean_s))

    def waiting_tail(self, time_s: float) -> float:
        """Convolution of X with the wait in M/G/1; NaN where the latter is not known."""
        return self._tail(time_s, sojourn=False)

    def sojourn_tail(self, time_s: float) -> float:
        """Convolution of X with the sojourn time in M/G/1; NaN where the latter is not known."""
        return self._tail(time_s, sojourn=True)

    def _tail(self, time_s: float, *, sojourn: bool) -> float:
        masses = _point_masses(self.queue, sojourn)
        if masses is None:
            return math.nan
        times, chances = masses
        points, beyond = sorted_points(self.set_up)
        left, mean_s = time_s - times, self.set_up.average_s + self.work_s
        # The time beyond the constant part of the set-up, for which every frame waits.
        beyond_s = left - self.work_s
        index = np.searchsorted(points, beyond_s, side="right")
        count, rate = len(points), self.arrival_pps
        # P(D > u) and E[(D - u)+], from which the tail of X follows.
        above = (count - index) / count
        excess = np.where(beyond_s > 0.0, beyond[index] / count - above * beyond_s, mean_s - left)
        tail = (np.where(beyond_s < 0.0, 1.0, above) + rate * excess) / (1.0 + rate * mean_s)
        return float(chances @ np.where(left < 0.0, 1.0, np.minimum(tail, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DD1SetUp(PlainQueue):
    """D/D/1 with set-up times: equal gaps g, constant service S < g, independent set-up times D. Exact.

    With ``δ = g - S``, a set-up D begins a cycle of ``k = max(1, ⌈D/δ⌉)`` frames, of which the j-th (j = 0, 1, …) has
    the sojourn time ``D + S - jδ``: a backlog of D/g frames that drains. So a frame's latency is spread evenly over
    ``S .. D + S`` while gaps are much shorter than D, and is ``D + S`` where they are longer than D + S. The
    distribution follows by renewal reward over cycles.
    """

    set_up: RandomTime | MixedTime
    work_s: float = 0.0
    """Constant time added to every set-up."""

    def __post_init__(self) -> None:
        self.require_stable(self.arrival_pps * self.service_s)

    @property
    def method(self) -> str:
        return "D/D/1 with set-up times"

    @property
    def _drain_s(self) -> float:
        return 1.0 / self.arrival_pps - self.service_s

    @property
    def waiting_mean_s(self) -> float:
        """Mean over the frames of a cycle, weighted by the cycles' lengths."""
        points, frames = self._cycles()
        waits = frames * points - 0.5 * self._drain_s * frames * (frames - 1.0)
        return float(waits.sum() / frames.sum())

    def waiting_tail(self, time_s: float) -> float:
        """Share of a cycle's frames that wait longer."""
        points, frames = self._cycles()
        longer = np.clip(np.ceil((points - time_s) / self._drain_s - 1e-9), 0.0, frames)
        return float(longer.sum() / frames.sum())

    def sojourn_tail(self, time_s: float) -> float:
        """Share of a cycle's frames that stay longer."""
        return self.waiting_tail(time_s - self.service_s)

    def _cycles(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return set-up times, equally likely, and the frames of their cycles."""
        points = sorted_points(self.set_up)[0] + self.work_s
        return points, np.maximum(np.ceil(points / self._drain_s - 1e-9), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpAdded(DelayedQueue):
    """Approximation of a queue whose server sleeps: its wait plus the wait in D/D/1 with the same mean times.

    Exact in light traffic, where frames wait only for the set-up, and where service hardly varies. Percentiles are
    those of independent waits, where those of ``queue`` are known.
    """

    set_up: DD1SetUp

    @property
    def method(self) -> str:
        first = self.queue.method.removesuffix(" (approximation)")
        return f"{first} and the wait for set-up times, added up (approximation)"

    @property
    def _added_s(self) -> float:
        return self.set_up.waiting_mean_s

    def waiting_tail(self, time_s: float) -> float:
        """Convolution of both waits; NaN where that of ``queue`` is not known."""
        return self._tail(time_s, sojourn=False)

    def sojourn_tail(self, time_s: float) -> float:
        """Convolution of the wait for set-up times with the sojourn time of ``queue``."""
        return self._tail(time_s, sojourn=True)

    def _tail(self, time_s: float, *, sojourn: bool) -> float:
        set_up_grid, masses = _grid(self.set_up, False), _point_masses(self.queue, sojourn)
        if set_up_grid is None or masses is None:
            return math.nan
        times, chances = masses
        left = time_s - times
        tails = np.interp(left, set_up_grid[0], set_up_grid[1], right=0.0)
        return float(chances @ np.where(left < 0.0, 1.0, tails))


@lru_cache(maxsize=64)
def _grid(queue: Queue, sojourn: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the tail of a queue's waiting or sojourn time over a grid of times; None where its law is not known."""
    tail = queue.sojourn_tail if sojourn else queue.waiting_tail
    mean_s = queue.sojourn_mean_s if sojourn else queue.waiting_mean_s
    if math.isnan(tail(mean_s)):
        return None
    middle, end = (quantile_s(tail, max(mean_s, 1e-12), ratio) for ratio in (0.95, 1.0 - 1e-6))
    edges = np.concatenate([np.linspace(0.0, middle, _GRID), np.linspace(middle, end, _GRID)[1:]])
    return edges, np.array([tail(float(edge)) for edge in edges])


@lru_cache(maxsize=64)
def _point_masses(queue: Queue, sojourn: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return a queue's waiting or sojourn time as points and their chances; None where its law is not known."""
    grid = _grid(queue, sojourn)
    if grid is None:
        return None
    edges, tails = grid
    chances = np.concatenate([[1.0 - tails[0]], -np.diff(tails), [tails[-1]]])
    times = np.concatenate([[0.0], 0.5 * (edges[1:] + edges[:-1]), [edges[-1]]])
    is_positive = chances > 0.0
    return times[is_positive], chances[is_positive] / chances[is_positive].sum()
