"""Queues with set-up times: a server that falls asleep when it has nothing to do, and takes a while to wake.

The first frame that finds the server asleep starts the set-up D; those that come meanwhile wait; the server then works
until nobody waits (exhaustive service). Symbols: λ arrival rate, S service time, D set-up time. In vacation models such
a set-up is the second part of a vacation that begins with an idle time (Takagi, "Queueing Analysis, Volume 1", 1991).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from routecast.evaluate.queueing.general import MixedTime, sorted_points
from routecast.evaluate.queueing.markov import Queue, quantile_s, require_range
from routecast.quantity.schema import field, value
from routecast.router.model import RandomTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DD1SetUp", "MG1SetUp", "SetUpAdded"]

_GRID = 400


@value
class MG1SetUp(Queue):
    """M/G/1 with set-up times: ``W = W_0 + (2E[D] + λE[D²])/(2(1 + λE[D]))``, ``W_0`` the wait in M/G/1.

    Exact for rho < 1. The wait is the sum of two independent times: that in M/G/1, and X, which is D (probability
    ``1/(1 + λE[D])``, for the frame that wakes the server) or what is left of D at a random instant. Percentiles are
    given where those of M/G/1 are. Source: Welch, Operations Research 12(5), 1964; Takagi 1991, sec. 2.2.
    """

    arrival_pps: float
    queue: Queue = field("The same queue without set-up times")
    set_up: RandomTime | MixedTime
    work_s: float = field("Constant time that every set-up takes besides", default=0.0)

    @property
    def method(self) -> str:
        """Its name in Kendall's notation."""
        return f"{self.queue.method} with set-up times (Welch)"

    @property
    def loss_ratio(self) -> float:
        """As without set-up times."""
        return self.queue.loss_ratio

    @property
    def _added_s(self) -> float:
        mean_s, rate = self.set_up.average_s + self.work_s, self.arrival_pps
        second_s2 = self.set_up.second_moment_s2 + self.work_s * (2.0 * mean_s - self.work_s)
        return (2.0 * mean_s + rate * second_s2) / (2.0 * (1.0 + rate * mean_s))

    @property
    def waiting_mean_s(self) -> float:
        """Wait in M/G/1 and the mean of X."""
        return self.queue.waiting_mean_s + self._added_s

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and service."""
        return self.queue.sojourn_mean_s + self._added_s

    def waiting_tail(self, time_s: float) -> float:
        """Convolution of X with the wait in M/G/1; NaN where the latter is not known."""
        return self._tail(time_s, sojourn=False)

    def sojourn_tail(self, time_s: float) -> float:
        """Convolution of X with the sojourn time in M/G/1; NaN where the latter is not known."""
        return self._tail(time_s, sojourn=True)

    def _tail(self, time_s: float, *, sojourn: bool) -> float:
        atoms = _atoms(self.queue, sojourn)
        if atoms is None:
            return math.nan
        times, chances = atoms
        points, beyond = sorted_points(self.set_up)
        left, mean_s = time_s - times, self.set_up.average_s + self.work_s
        # What is left beyond the constant part of the set-up, which nobody escapes.
        beyond_s = left - self.work_s
        place = np.searchsorted(points, beyond_s, side="right")
        count, rate = len(points), self.arrival_pps
        # P(D > u) and E[(D - u)+], of which the tail of X is made.
        above = (count - place) / count
        excess = np.where(beyond_s > 0.0, beyond[place] / count - above * beyond_s, mean_s - left)
        tail = (np.where(beyond_s < 0.0, 1.0, above) + rate * excess) / (1.0 + rate * mean_s)
        return float(chances @ np.where(left < 0.0, 1.0, np.minimum(tail, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DD1SetUp(Queue):
    """D/D/1 with set-up times: equal gaps g, constant service S < g, independent set-up times D. Exact.

    With ``δ = g - S``, a set-up D begins a cycle of ``k = max(1, ⌈D/δ⌉)`` frames, of which the j-th (j = 0, 1, …) has
    the sojourn time ``D + S - jδ``: a backlog of D/g frames that drains. So a frame's latency is spread evenly over
    ``S .. D + S`` while gaps are much shorter than D, and is ``D + S`` where they are longer than D + S. The
    distribution follows by renewal reward over cycles.
    """

    arrival_pps: float
    service_s: float
    set_up: RandomTime | MixedTime
    work_s: float = 0.0
    """Constant time that every set-up takes besides."""

    def __post_init__(self) -> None:
        require_range(self.method, self.arrival_pps * self.service_s < 1.0, "is not stable: the load must be < 1")

    @property
    def method(self) -> str:
        """Its name in Kendall's notation."""
        return "D/D/1 with set-up times"

    @property
    def loss_ratio(self) -> float:
        """Zero: the queue is unlimited."""
        return 0.0

    @property
    def _drain_s(self) -> float:
        return 1.0 / self.arrival_pps - self.service_s

    @property
    def waiting_mean_s(self) -> float:
        """Mean over the frames of a cycle, weighted by the cycles' lengths."""
        points, frames = self._cycles()
        waits = frames * points - 0.5 * self._drain_s * frames * (frames - 1.0)
        return float(waits.sum() / frames.sum())

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and service."""
        return self.waiting_mean_s + self.service_s

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
class SetUpAdded(Queue):
    """An approximate queue whose server sleeps: its wait, and that of D/D/1 with the same mean times, added up.

    Exact in light traffic, where nobody waits but for the set-up, and where service hardly varies. Percentiles are
    those of independent waits, where those of ``queue`` are known.
    """

    queue: Queue
    set_up: DD1SetUp

    @property
    def method(self) -> str:
        """What was added."""
        first = self.queue.method.removesuffix(" (approximation)")
        return f"{first} and the wait for set-up times, added up (approximation)"

    @property
    def loss_ratio(self) -> float:
        """As without set-up times."""
        return self.queue.loss_ratio

    @property
    def waiting_mean_s(self) -> float:
        """Sum of both waits."""
        return self.queue.waiting_mean_s + self.set_up.waiting_mean_s

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and service."""
        return self.queue.sojourn_mean_s + self.set_up.waiting_mean_s

    def waiting_tail(self, time_s: float) -> float:
        """Convolution of both waits; NaN where that of ``queue`` is not known."""
        return self._tail(time_s, sojourn=False)

    def sojourn_tail(self, time_s: float) -> float:
        """Convolution of the wait for set-up times with the sojourn time of ``queue``."""
        return self._tail(time_s, sojourn=True)

    def _tail(self, time_s: float, *, sojourn: bool) -> float:
        added, first = _grid(self.set_up, False), _atoms(self.queue, sojourn)
        if added is None or first is None:
            return math.nan
        times, chances = first
        left = time_s - times
        tails = np.interp(left, added[0], added[1], right=0.0)
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
def _atoms(queue: Queue, sojourn: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return a queue's waiting or sojourn time as points and their chances; None where its law is not known."""
    grid = _grid(queue, sojourn)
    if grid is None:
        return None
    edges, tails = grid
    chances = np.concatenate([[1.0 - tails[0]], -np.diff(tails), [tails[-1]]])
    times = np.concatenate([[0.0], 0.5 * (edges[1:] + edges[:-1]), [edges[-1]]])
    kept = chances > 0.0
    return times[kept], chances[kept] / chances[kept].sum()
