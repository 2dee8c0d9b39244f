"""Queues with general service times and one server: M/G/1, M/D/1, M/G/1/K, M/D/1/K; D/D/1.

Symbols as in :mod:`routecast.evaluate.queueing`; K counts all frames, waiting and served.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import numpy as np

from routecast.evaluate.queueing.markov import Queue, log_factorials, require_range
from routecast.quantity.schema import field, value
from routecast.router.model import Interruptions, RandomTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DD1", "MD1", "MG1", "MG1K", "DD1Interrupted", "MixedTime", "ServiceMix", "sorted_points"]


# A random time that is one of several, by chance: the way out of the sleep state that a frame happens to find.


_POINTS = 512


@value
class MixedTime:
    """With each part's chance its constant time and, where ``wakes`` says so, the random one besides."""

    parts: tuple[tuple[float, float, bool], ...] = field(
        "Chance, constant time in seconds, whether the random time comes on top; the chances add up to 1"
    )
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
            chance * (time_s**2 + wakes * (2.0 * time_s * mean_s + second_s2)) for chance, time_s, wakes in self.parts
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


# A queue whose server is interrupted while it works: the backlogs that interruptions leave.


_INTERRUPTED_POINTS = 4096


@value
class DD1Interrupted(Queue):
    """D/D/1 whose server is interrupted while it works: equal gaps g, constant service S < g. Approximation.

    An interruption D delays the frame in service by D and the j-th one after it by ``D - jδ``, ``δ = g - S``, as long
    as that is positive: ``P(W > t) = rS·Σ_j P(D > t + jδ)`` at r interruptions per second of work. That is exact while
    each backlog has drained before the next interruption. A share ``u = rE[D]/((1 + rE[D])(1 - rho))`` has not: waits
    are stretched by ``1/(1 - u)``, and the chance to wait follows from the busy periods of M/G/1; exact in the limit of
    short gaps for exponential D.
    """

    arrival_pps: float
    service_s: float = field("Without interruptions")
    interruptions: Interruptions
    # Of what a long interruption brings, the rest is lost; valid while such losses are rare.
    room_frames: float = field("Frames that can wait", default=math.inf)

    def __post_init__(self) -> None:
        load = self.arrival_pps * self.service_s * self.interruptions.stretch
        require_range(self.method, load < 1.0, "is not stable: the load must be < 1")

    @property
    def method(self) -> str:
        """Its name."""
        return "D/D/1 with interruptions (approximation)"

    @property
    def loss_ratio(self) -> float:
        """``r·rho·E[(D - room·g)+]``."""
        points, beyond = sorted_points(self.interruptions.duration)
        longest_s = self.room_frames / self.arrival_pps
        place = int(np.searchsorted(points, longest_s, side="right"))
        if place == len(points):
            return 0.0
        excess_s = (float(beyond[place]) - (len(points) - place) * longest_s) / len(points)
        return self.interruptions.rate_hz * self.arrival_pps * self.service_s * max(excess_s, 0.0)

    @property
    def _drain_s(self) -> float:
        return 1.0 / self.arrival_pps - self.service_s

    @property
    def _left(self) -> float:
        """``1 - u``, the share of the backlogs that have drained."""
        load, stretch = self.arrival_pps * self.service_s, self.interruptions.stretch
        return 1.0 - (stretch - 1.0) / stretch / (1.0 - load)

    @property
    def _strikes(self) -> float:
        """Interruptions of a service, those that strike while a backlog drains counted with it."""
        load, stretch = self.arrival_pps * self.service_s, self.interruptions.stretch
        busy = (stretch - 1.0) * load / ((1.0 - load) * self._left)
        return self.interruptions.rate_hz * self.service_s / (self._left * (1.0 + busy))

    @property
    def waiting_mean_s(self) -> float:
        """``rS·E[Σ_j (D - jδ)+]``, and the correction for backlogs that meet."""
        points, _ = sorted_points(self.interruptions.duration)
        later = np.floor(points / self._drain_s)
        sums = later * points - 0.5 * self._drain_s * later * (later + 1.0)
        return self._strikes / self._left * float(sums.mean())

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and mean completion."""
        return self.waiting_mean_s + self.service_s * self.interruptions.stretch

    def waiting_tail(self, time_s: float) -> float:
        """``rS·Σ_j P(D > t + jδ)``, with the correction."""
        if time_s < 0.0:
            return 1.0
        points, _ = sorted_points(self.interruptions.duration)
        later = np.maximum(np.ceil((points - time_s * self._left) / self._drain_s) - 1.0, 0.0)
        return min(self._strikes * float(later.mean()), 1.0)

    def sojourn_tail(self, time_s: float) -> float:
        """Probability of a wait, or of an interruption of the frame's own service, that takes longer."""
        left_s = time_s - self.service_s
        points, _ = sorted_points(self.interruptions.duration)
        own = self.interruptions.rate_hz * self.service_s * float((points > left_s).mean())
        waits = self.waiting_tail(left_s)
        return min(waits + own * (1.0 - waits), 1.0)


@lru_cache(maxsize=64)
def sorted_points(time: RandomTime | MixedTime) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return equally likely points of a law in rising order, and for each place the sum of those from it on."""
    count = 1 if time.is_constant else _INTERRUPTED_POINTS
    points = np.array([time.quantile_s((number + 0.5) / count) for number in range(count)])
    # Points at the middle of their share have not quite the mean of the law.
    points *= time.average_s / points.mean() if points.mean() > 0.0 else 1.0
    return points, np.concatenate([np.cumsum(points[::-1])[::-1], [0.0]])


_AS_INDEPENDENT = "with sizes as if in random order (approximation)"


@value
class ServiceMix:
    """Service time of a mix of frames: for each kind its share, its time, and how the time varies."""

    shares: tuple[float, ...] = field("Share and mean service time of each kind of frame (of each frame size)")
    times_s: tuple[float, ...] = field("Share and mean service time of each kind of frame (of each frame size)")
    scv: float = field("Squared coefficient of variation of the service time of one kind", default=0.0)
    law: Literal["deterministic", "exponential", "gamma", "other"] = field(
        "Distribution within a kind; ``gamma`` covers the exponential. With ``other`` only two moments are known.",
        default="deterministic",
    )

    @property
    def mean_s(self) -> float:
        """Mean service time."""
        if len(self.times_s) == 1:
            return self.shares[0] * self.times_s[0]
        return math.fsum(share * time for share, time in zip(self.shares, self.times_s, strict=True))

    @property
    def squared_cv(self) -> float:
        """Squared coefficient of variation over all kinds."""
        mean_s = self.mean_s
        if mean_s <= 0.0:
            return 0.0
        # Relative to the mean: the square of a very short time would be 0.
        parts = zip(self.shares, self.times_s, strict=True)
        return (1.0 + self.scv) * math.fsum(share * (time_s / mean_s) ** 2 for share, time_s in parts) - 1.0

    @property
    def is_one_size(self) -> bool:
        """Whether all frames take the same mean time."""
        if len(self.times_s) == 1:
            return True
        return max(self.times_s) - min(self.times_s) <= 1e-12 * max(self.times_s)

    def scaled(self, factor: float) -> ServiceMix:
        """Return the same mix with every time multiplied."""
        times = tuple(time * factor for time in self.times_s)
        return ServiceMix(shares=self.shares, times_s=times, scv=self.scv, law=self.law)


@dataclass(frozen=True, slots=True, kw_only=True)
class MG1(Queue):
    """M/G/1: ``W = λE[S²]/(2(1 - rho))``, Pollaczek and Khinchine's formula. Exact for rho < 1.

    Only the mean has a closed form for every service time. Source: Kleinrock sec. 5.6, eq. 5.70 (mean value formula).
    Service times must be ``independent``; where they are not, as in a fixed sequence of sizes, it is named an
    approximation.
    """

    arrival_pps: float
    service: ServiceMix
    independent: bool = True

    def __post_init__(self) -> None:
        require_range(self.method, self.arrival_pps * self.service.mean_s < 1.0, "is not stable: the load must be < 1")

    @property
    def method(self) -> str:
        """Its name in Kendall's notation."""
        return "M/G/1" if self.independent else f"M/G/1 {_AS_INDEPENDENT}"

    @property
    def loss_ratio(self) -> float:
        """Zero: the queue is unlimited."""
        return 0.0

    @property
    def waiting_mean_s(self) -> float:
        """``rho/(1-rho)·(1 + c_s²)/2·E[S]``."""
        mean = self.service.mean_s
        load = self.arrival_pps * mean
        return load / (1.0 - load) * 0.5 * (1.0 + self.service.squared_cv) * mean

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and service."""
        return self.waiting_mean_s + self.service.mean_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MD1(Queue):
    """M/D/1: Poisson arrivals, one constant service time D, unlimited queue. Exact for rho < 1.

    With k the whole number for which (k-1)D <= t < kD,
    ``P(W <= t) = e^{-λ(kD-t)} Σ_{j<k} Q_{k-1-j} (λ(kD-t))^j/j!``, where ``Q_m`` is the probability of at most m waiting
    frames: a sum of positive terms, stable for every load, unlike Crommelin's and Erlang's alternating series. Source:
    Franx, Operations Research Letters 29(5), 2001, for M/D/c. The state probabilities come from the embedded chain by
    balancing crossings of each level, positive terms only (Ramaswami, Stochastic Models 4, 1988).
    """

    arrival_pps: float
    service_s: float

    def __post_init__(self) -> None:
        require_range(self.method, self.arrival_pps * self.service_s < 1.0, "is not stable: the load must be < 1")

    @property
    def method(self) -> str:
        """Its name in Kendall's notation."""
        return "M/D/1"

    @property
    def loss_ratio(self) -> float:
        """Zero: the queue is unlimited."""
        return 0.0

    @property
    def waiting_mean_s(self) -> float:
        """``rhoD/(2(1 - rho))``."""
        load = self.arrival_pps * self.service_s
        return 0.5 * load / (1.0 - load) * self.service_s

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and service."""
        return self.waiting_mean_s + self.service_s

    def waiting_tail(self, time_s: float) -> float:
        """Franx's formula."""
        if time_s < 0.0:
            return 1.0
        periods = int(time_s / self.service_s) + 1
        load = self.arrival_pps * self.service_s
        if periods > _LONGEST_CHAIN:
            return 0.0
        # Lengths in powers of two, so that the bisection for a percentile computes few chains.
        length = max(64, 1 << (periods + 1).bit_length())
        state = _md1_state(load, min(length, _LONGEST_CHAIN + 2))
        waiting = np.cumsum(state)[1 : periods + 1]  # Q_0 = p_0 + p_1, …
        x = load * max(periods - time_s / self.service_s, 0.0)
        terms = np.arange(periods)
        if x <= 0.0:
            return max(1.0 - float(waiting[periods - 1]), 0.0)
        poisson = np.exp(terms * math.log(x) - x - log_factorials(periods))
        return min(max(1.0 - float(poisson @ waiting[::-1]), 0.0), 1.0)

    def sojourn_tail(self, time_s: float) -> float:
        """Return the waiting time's tail, later by D."""
        return 1.0 if time_s < self.service_s else self.waiting_tail(time_s - self.service_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class MG1K(Queue):
    """M/G/1/K: Poisson arrivals, one server, room for K frames in all. Exact for every rho where the law is known.

    Chain embedded at departures: with ``a_n`` the probability of n arrivals during a service, crossings of level j
    balance, ``π_j a_0 = π_0 ā_j + Σ_{0<i<j} π_i ā_{j-i+1}`` (``ā`` tail sums; positive terms only), j < K; then
    ``loss = 1 - 1/(π_0 + rho)`` and ``p_j = π_j/(π_0 + rho)``. Source: Gross et al. sec. 5.1.7; Cooper, "Introduction
    to Queueing Theory", 2nd edition (1981), sec. 5.9. Exact for constant, exponential and gamma times and for mixes of
    them; a law given by two moments only is replaced by the gamma law with these moments. ``independent`` as in MG1.
    """

    arrival_pps: float
    service: ServiceMix
    capacity_frames: int
    independent: bool = True

    @property
    def method(self) -> str:
        """Its name in Kendall's notation."""
        letter = "D" if self.service.law == "deterministic" and self.service.is_one_size else "G"
        name = f"M/{letter}/1/{self.capacity_frames}"
        return name if self.independent else f"{name} {_AS_INDEPENDENT}"

    @property
    def loss_ratio(self) -> float:
        """``1 - 1/(π_0 + rho)``."""
        load = self.arrival_pps * self.service.mean_s
        return max(1.0 - 1.0 / (float(self._embedded()[0]) + load), 0.0)

    @property
    def mean_frames(self) -> float:
        """Mean number of frames waiting and in service."""
        load = self.arrival_pps * self.service.mean_s
        embedded = self._embedded()
        inside = sum(count * float(share) for count, share in enumerate(embedded))
        return inside / (float(embedded[0]) + load) + self.capacity_frames * self.loss_ratio

    @property
    def sojourn_mean_s(self) -> float:
        """Little's law over the accepted frames."""
        return self.mean_frames / (self.arrival_pps * (1.0 - self.loss_ratio))

    @property
    def waiting_mean_s(self) -> float:
        """Sojourn less service."""
        return max(self.sojourn_mean_s - self.service.mean_s, 0.0)

    def _embedded(self) -> NDArray[np.float64]:
        service = self.service
        loads = tuple(self.arrival_pps * time for time in service.times_s)
        scv = 0.0 if service.law == "deterministic" else service.scv
        return _mg1k_embedded(service.shares, loads, scv, self.capacity_frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class DD1(Queue):
    """D/D/1 and D/D/1/K: equal gaps, one constant service time. Exact.

    rho <= 1: nobody waits. rho > 1 with room for K: the queue is full in the long run, ``loss = 1 - 1/rho``; every
    service end makes one place, which the next arrival takes after half a gap on average (if gap and service
    time are not commensurable), so ``N = K - 1/(2rho)``, and the sojourn time is ``N·D`` by Little's law (paper
    000, eq. 4).
    """

    arrival_pps: float
    service_s: float
    capacity_frames: int

    @property
    def method(self) -> str:
        """Its name in Kendall's notation."""
        return "D/D/1" if self._load <= _JUST_FULL else f"D/D/1/{self.capacity_frames}, always full"

    @property
    def _load(self) -> float:
        return self.arrival_pps * self.service_s

    @property
    def loss_ratio(self) -> float:
        """What one server cannot carry."""
        return 1.0 - 1.0 / self._load if self._load > _JUST_FULL else 0.0

    @property
    def sojourn_mean_s(self) -> float:
        """Service time, or the time through a full queue."""
        if self._load <= _JUST_FULL:
            return self.service_s
        return (self.capacity_frames - 0.5 / self._load) * self.service_s

    @property
    def waiting_mean_s(self) -> float:
        """Sojourn less service."""
        return self.sojourn_mean_s - self.service_s

    def waiting_tail(self, time_s: float) -> float:
        """Nobody waits below rho = 1; not given above."""
        return (1.0 if time_s < 0.0 else 0.0) if self._load <= _JUST_FULL else math.nan

    def sojourn_tail(self, time_s: float) -> float:
        """Constant below rho = 1; not given above."""
        return (1.0 if time_s < self.service_s else 0.0) if self._load <= _JUST_FULL else math.nan


_JUST_FULL = 1.0 + 1e-9
"""A load of 1, with rounding."""
_LONGEST_CHAIN = 16_384
_LARGE = 1e200


@lru_cache(maxsize=64)
def _md1_state(load: float, length: int) -> NDArray[np.float64]:
    """Probabilities of 0, 1, … frames in M/D/1."""
    arrivals = _arrival_counts((1.0,), (load,), 0.0, length + 1)
    return (1.0 - load) * _level_crossing(arrivals, length)


@lru_cache(maxsize=256)
def _mg1k_embedded(
    shares: tuple[float, ...], loads: tuple[float, ...], scv: float, capacity: int
) -> NDArray[np.float64]:
    arrivals = _arrival_counts(shares, loads, scv, capacity + 1)
    chain = _level_crossing(arrivals, capacity)
    embedded: NDArray[np.float64] = chain / chain.sum()
    return embedded


def _level_crossing(arrivals: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Solve the embedded chain for ``π_0 = 1`` by balancing the crossings of each level."""
    # Tail sums from the small end keep their relative precision.
    tails = np.concatenate([np.cumsum(arrivals[::-1])[::-1], [0.0]])
    beyond = max(1.0 - float(arrivals.sum()), 0.0)
    tails = tails + beyond
    chain = np.zeros(length)
    chain[0] = 1.0
    for level in range(1, length):
        # i runs from 1 to level-1 and meets the tail of level-i+1 arrivals.
        inner = float(chain[1:level] @ tails[2 : level + 1][::-1])
        chain[level] = (chain[0] * tails[level] + inner) / arrivals[0]
        if chain[level] > _LARGE:
            chain[: level + 1] /= chain[level]
    return chain


def _arrival_counts(
    shares: tuple[float, ...], loads: tuple[float, ...], scv: float, length: int
) -> NDArray[np.float64]:
    """Probabilities of 0, 1, … Poisson arrivals during one service: Poisson, or negative binomial for gamma times."""
    counts = np.arange(length, dtype=np.float64)
    total = np.zeros(length)
    for share, load in zip(shares, loads, strict=True):
        if scv > 0.0:
            shape = 1.0 / scv
            first = np.concatenate([[0.0], np.cumsum(np.log(shape + counts[:-1]) - np.log(counts[1:]))])
            stay = load / (load + shape)
            total += share * np.exp(first + counts * math.log(stay) + shape * math.log1p(-stay))
        else:
            total += share * np.exp(counts * math.log(load) - load - log_factorials(length))
    return total
