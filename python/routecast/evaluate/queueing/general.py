"""Queues with general service times and one server: M/G/1, M/D/1, M/G/1/K, M/D/1/K; D/D/1.

Symbols as in :mod:`routecast.evaluate.queueing`; K counts all frames, waiting and served.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from routecast.evaluate.queueing.markov import Queue, log_factorials, require_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DD1", "MD1", "MG1", "MG1K", "ServiceMix"]

_AS_INDEPENDENT = "with sizes as if in random order (approximation)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMix:
    """Service time of a mix of frames: for each kind its share, its time, and how the time varies.

    Parameters
    ----------
    shares, times_s : tuple of float
        Share and mean service time of each kind of frame (of each frame size).
    scv : float
        Squared coefficient of variation of the service time of one kind.
    law : {"deterministic", "exponential", "gamma", "other"}
        Distribution within a kind; ``gamma`` covers the exponential. With ``other`` only two moments are known.
    """

    shares: tuple[float, ...]
    times_s: tuple[float, ...]
    scv: float = 0.0
    law: Literal["deterministic", "exponential", "gamma", "other"] = "deterministic"

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
        require_range(
            self.method, self.arrival_pps * self.service.mean_s < 1.0, "is not stable: the load must be < 1"
        )

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
        require_range(
            self.method, self.arrival_pps * self.service_s < 1.0, "is not stable: the load must be < 1"
        )

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
