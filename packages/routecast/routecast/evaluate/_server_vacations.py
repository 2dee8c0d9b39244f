"""Queues whose server is absent at times: it sleeps and needs a set-up time to wake up, or is interrupted at work.

A set-up time D passes between the frame that finds the server asleep and its service; the server then works until no
frame waits (exhaustive service). In vacation models it is the second part of a vacation that begins with an idle time
(Takagi, "Queueing Analysis, Volume 1", 1991). Interruptions are breakdowns of a busy server.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from routecast.evaluate._queue import DelayedQueue, PlainQueue, Queue, quantile_s
from routecast.quantity.schema import field, value
from routecast.router.model import Interruptions, RandomTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GRID = 400
_MIXTURE_POINTS, _WAKEUP_POINTS, _POINTS = 512, 32, 4096


@value
class InterruptedStart:
    """A wake-up, and what interruptions of the work behind it add to that work.

    Interruptions strike a work w at Poisson instants of rate r, so what they add has the mean w·r·E[D], the variance
    w·r·E[D²], and is nothing with probability exp(-w·r) (Avi-Itzhak and Naor, Operations Research 11(3), 1963). What is
    added by one or more has a gamma law with its two moments in the quantiles.
    """

    wakeup: RandomTime
    added_s: float = field("Mean of what interruptions add")
    added_variance_s2: float = field("Its variance")
    none_ratio: float = field("Probability that there is none")

    @property
    def average_s(self) -> float:
        """Mean, seconds."""
        return self.wakeup.average_s + self.added_s

    @property
    def second_moment_s2(self) -> float:
        """Mean of the square, s²."""
        added_s2 = self.added_variance_s2 + self.added_s**2
        return self.wakeup.second_moment_s2 + 2.0 * self.wakeup.average_s * self.added_s + added_s2

    @property
    def is_constant(self) -> bool:
        """Whether the time is constant."""
        return False

    def quantile_s(self, ratio: float) -> float:
        """Return the time that a share ``ratio`` (0 to 1) does not exceed, seconds."""
        times, shares = _start_points(self)
        return times[min(bisect_left(shares, ratio), len(times) - 1)]


@lru_cache(maxsize=64)
def _start_points(start: InterruptedStart) -> tuple[list[float], list[float]]:
    """Return times in rising order and the shares that do not exceed them."""
    some_ratio = 1.0 - start.none_ratio
    mean_s = start.added_s / some_ratio
    second_s2 = (start.added_variance_s2 + start.added_s**2) / some_ratio
    some = RandomTime(mean_s=mean_s, variation="gamma", scv=max(second_s2 / mean_s**2 - 1.0, 1e-9))
    middles = [(number + 0.5) / _MIXTURE_POINTS for number in range(_MIXTURE_POINTS)]
    added = [(0.0, start.none_ratio)]
    added += [(some.quantile_s(middle), some_ratio / _MIXTURE_POINTS) for middle in middles]
    count = 1 if start.wakeup.is_constant else _WAKEUP_POINTS
    wakeups_s = [start.wakeup.quantile_s((number + 0.5) / count) for number in range(count)]
    points = sorted(
        (wakeup_s + added_s, chance / len(wakeups_s)) for wakeup_s in wakeups_s for added_s, chance in added
    )
    return [time_s for time_s, _ in points], list(accumulate(chance for _, chance in points))


@value
class MixedTime:
    """A time drawn from several parts: each part has a chance and a constant time, and some add the random time."""

    parts: tuple[tuple[float, float, bool], ...] = field(
        "Chance, constant time in seconds, whether the random time is added; the chances add up to 1"
    )
    random: RandomTime | InterruptedStart

    @property
    def average_s(self) -> float:
        """Mean, seconds."""
        mean_s = self.random.average_s
        return math.fsum(chance * (time_s + has_random * mean_s) for chance, time_s, has_random in self.parts)

    @property
    def second_moment_s2(self) -> float:
        """Mean of the square, s²."""
        mean_s, second_s2 = self.random.average_s, self.random.second_moment_s2
        return math.fsum(
            chance * (time_s**2 + has_random * (2.0 * time_s * mean_s + second_s2))
            for chance, time_s, has_random in self.parts
        )

    @property
    def is_constant(self) -> bool:
        """Whether the time is constant."""
        return self.second_moment_s2 <= self.average_s**2 * (1.0 + 1e-12)

    def quantile_s(self, ratio: float) -> float:
        """Return the time that a share ``ratio`` (0 to 1) does not exceed, seconds."""
        times, shares = _mixture_points(self)
        return times[min(bisect_left(shares, ratio), len(times) - 1)]


@lru_cache(maxsize=64)
def _mixture_points(time: MixedTime) -> tuple[list[float], list[float]]:
    """Return times in rising order and the shares that do not exceed them."""
    points: list[tuple[float, float]] = []
    for chance, constant_s, has_random in time.parts:
        count = _MIXTURE_POINTS if has_random and not time.random.is_constant else 1
        for number in range(count):
            random_s = time.random.quantile_s((number + 0.5) / count) if has_random else 0.0
            points.append((constant_s + random_s, chance / count))
    points = sorted(point for point in points if point[1] > 0.0)
    return [time_s for time_s, _ in points], list(accumulate(chance for _, chance in points))


@lru_cache(maxsize=64)
def sorted_points(time: RandomTime | MixedTime) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return equally likely points of a distribution in rising order, and by index the sum of the points from it on."""
    count = 1 if time.is_constant else _POINTS
    points = np.array([time.quantile_s((number + 0.5) / count) for number in range(count)])
    # Points at the middle of equal shares do not have exactly the mean of the distribution.
    points *= time.average_s / points.mean() if points.mean() > 0.0 else 1.0
    return points, np.concatenate([np.cumsum(points[::-1])[::-1], [0.0]])


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


@value
class DD1Interrupted(Queue):
    """D/D/1 whose server is interrupted while it works: equal gaps g, constant service S < g. Approximation.

    An interruption D delays the frame in service by D and the j-th one after it by ``D - jδ``, ``δ = g - S``, as long
    as that is positive: ``P(W > t) = rS·Σ_j P(D > t + jδ)`` at r interruptions per second of work. That is exact while
    each backlog has drained before the next interruption. A share ``u = rE[D]/((1 + rE[D])(1 - rho))`` of the backlogs
    has not drained by then: it stretches waits by ``1/(1 - u)``, and the probability of a wait follows from the busy
    periods of M/G/1. The result is exact in the limit of short gaps for exponential D.
    """

    arrival_pps: float
    service_s: float = field("Without interruptions")
    interruptions: Interruptions
    # A long interruption loses the frames beyond this room; valid while such losses are rare.
    room_frames: float = field("Frames that can wait", default=math.inf)

    def __post_init__(self) -> None:
        self.require_stable(self.arrival_pps * self.service_s * self.interruptions.stretch)

    @property
    def method(self) -> str:
        return "D/D/1 with interruptions (approximation)"

    @property
    def loss_ratio(self) -> float:
        """``r·rho·E[(D - room·g)+]``."""
        points, beyond = sorted_points(self.interruptions.duration)
        fill_s = self.room_frames / self.arrival_pps
        first_longer = int(np.searchsorted(points, fill_s, side="right"))
        if first_longer == len(points):
            return 0.0
        excess_s = (float(beyond[first_longer]) - (len(points) - first_longer) * fill_s) / len(points)
        return self.interruptions.rate_hz * self.arrival_pps * self.service_s * max(excess_s, 0.0)

    @property
    def _drain_s(self) -> float:
        return 1.0 / self.arrival_pps - self.service_s

    @property
    def _drained_ratio(self) -> float:
        """``1 - u``, the share of the backlogs that have drained."""
        load, stretch = self.arrival_pps * self.service_s, self.interruptions.stretch
        return 1.0 - (stretch - 1.0) / stretch / (1.0 - load)

    @property
    def _interruptions_per_service(self) -> float:
        """Interruptions per service; an interruption while a backlog drains counts as a part of that backlog."""
        load, stretch = self.arrival_pps * self.service_s, self.interruptions.stretch
        busy = (stretch - 1.0) * load / ((1.0 - load) * self._drained_ratio)
        return self.interruptions.rate_hz * self.service_s / (self._drained_ratio * (1.0 + busy))

    @property
    def waiting_mean_s(self) -> float:
        """``rS·E[Σ_j (D - jδ)+]``, with the correction for backlogs that overlap."""
        points, _ = sorted_points(self.interruptions.duration)
        later = np.floor(points / self._drain_s)
        sums = later * points - 0.5 * self._drain_s * later * (later + 1.0)
        return self._interruptions_per_service / self._drained_ratio * float(sums.mean())

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and mean completion."""
        return self.waiting_mean_s + self.service_s * self.interruptions.stretch

    def waiting_tail(self, time_s: float) -> float:
        """``rS·Σ_j P(D > t + jδ)``, with the correction."""
        if time_s < 0.0:
            return 1.0
        points, _ = sorted_points(self.interruptions.duration)
        later = np.maximum(np.ceil((points - time_s * self._drained_ratio) / self._drain_s) - 1.0, 0.0)
        return min(self._interruptions_per_service * float(later.mean()), 1.0)

    def sojourn_tail(self, time_s: float) -> float:
        """Probability of a wait, or of an interruption of the frame's own service, that takes longer."""
        left_s = time_s - self.service_s
        points, _ = sorted_points(self.interruptions.duration)
        own_probability = self.interruptions.rate_hz * self.service_s * float((points > left_s).mean())
        wait_probability = self.waiting_tail(left_s)
        return min(wait_probability + own_probability * (1.0 - wait_probability), 1.0)
