"""Queues with exact answers, Markovian ones: M/M/1, M/M/1/K, M/M/c, M/M/c/K, and Jackson's tandem network.

Symbols: arrival rate λ (:attr:`arrival_pps`), mean service time 1/μ (:attr:`service_s`), c servers, offered load
a = λ/μ erlangs, rho = a/c. ``capacity_frames`` K counts waiting *and* served frames, as Kendall's notation does; a task
unit with ``parallel`` c and ``queue_frames`` q is K = c + q.

Each class says in its docstring the equation, its range of validity and its source. Sources by name:
Kleinrock, "Queueing Systems, Volume 1: Theory" (Wiley 1975); Gross, Shortle, Thompson, Harris, "Fundamentals
of Queueing Theory", 4th edition (Wiley 2008).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.trial import Delay

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MM1", "MM1K", "MMc", "MMcK", "Queue", "Tandem", "erlang_b", "erlang_c", "quantile_s", "require_range"]

_PERCENTILES = (0.5, 0.9, 0.99, 0.999)
_MOST_STEPS = 200_000


class Queue(ABC):
    """What every queueing result answers; NaN where the theory has no closed form."""

    __slots__ = ()

    @property
    @abstractmethod
    def method(self) -> str:
        """Its name in Kendall's notation, for people to see."""

    @property
    @abstractmethod
    def loss_ratio(self) -> float:
        """Probability that an arriving frame finds no room."""

    @property
    @abstractmethod
    def waiting_mean_s(self) -> float:
        """Mean time in the queue of a frame that is accepted."""

    @property
    @abstractmethod
    def sojourn_mean_s(self) -> float:
        """Mean time in queue and service of a frame that is accepted."""

    def waiting_tail(self, time_s: float) -> float:
        """Probability that an accepted frame waits longer than ``time_s``."""
        del time_s
        return math.nan

    def sojourn_tail(self, time_s: float) -> float:
        """Probability that an accepted frame stays longer than ``time_s``."""
        del time_s
        return math.nan

    def waiting(self) -> Delay:
        """Return mean and percentiles of the waiting time."""
        return _delay(self.waiting_mean_s, self.waiting_tail, self.method)

    def sojourn(self) -> Delay:
        """Return mean and percentiles of the sojourn time."""
        return _delay(self.sojourn_mean_s, self.sojourn_tail, self.method)


def _delay(mean_s: float, tail: Callable[[float], float], method: str) -> Delay:
    points = [quantile_s(tail, mean_s, ratio) for ratio in _PERCENTILES]
    return Delay(mean_s=mean_s, p50_s=points[0], p90_s=points[1], p99_s=points[2], p999_s=points[3], method=method)


def quantile_s(tail: Callable[[float], float], scale_s: float, ratio: float) -> float:
    """Return the time that a share ``ratio`` of the frames does not exceed, by bisection of the tail function."""
    wanted = 1.0 - ratio
    at_zero = tail(0.0)
    if math.isnan(at_zero) or not math.isfinite(scale_s):
        return math.nan
    if at_zero <= wanted or scale_s <= 0.0:
        return 0.0
    low, high = 0.0, scale_s
    for _ in range(60):
        if tail(high) <= wanted:
            break
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = 0.5 * (low + high)
        if tail(middle) > wanted:
            low = middle
        else:
            high = middle
        if high - low <= 1e-9 * high:
            break
    return high


def require_range(name: str, condition: bool, message: str) -> None:
    """Raise :class:`ModelProblem` where a result is asked for outside its range of validity."""
    if not condition:
        raise ModelProblem(f"queue {name}", [Problem("", message)])


def erlang_b(offered: float, servers: int) -> float:
    """Erlang's loss formula B(c, a): M/M/c/c, and by insensitivity M/G/c/c (Kleinrock sec. 3.6).

    Examples
    --------
    >>> round(erlang_b(2.0, 3), 4)
    0.2105
    """
    blocking = 1.0
    for count in range(1, servers + 1):
        blocking = offered * blocking / (count + offered * blocking)
    return blocking


def erlang_c(offered: float, servers: int) -> float:
    """Erlang's delay formula C(c, a), the probability to wait in M/M/c, a < c (Kleinrock sec. 3.5).

    Examples
    --------
    >>> round(erlang_c(2.0, 3), 4)
    0.4444
    """
    blocking = erlang_b(offered, servers)
    return servers * blocking / (servers - offered * (1.0 - blocking))


@dataclass(frozen=True, slots=True, kw_only=True)
class MMc(Queue):
    """M/M/c: Poisson arrivals, exponential service, c servers, one unlimited queue, first come first served.

    ``P(W > t) = C(c, a)·exp(-(cμ - λ)t)`` with Erlang's C; sojourn time = W + exponential service. Exact for rho < 1.
    Source: Kleinrock sec. 3.5; Gross et al. sec. 2.3.
    """

    arrival_pps: float
    service_s: float
    servers: int = 1

    def __post_init__(self) -> None:
        require_range(
            self.method, self.arrival_pps * self.service_s < self.servers, "is not stable: the load must be < 1"
        )

    @property
    def method(self) -> str:
        """Its name in Kendall's notation."""
        return f"M/M/{self.servers}"

    @property
    def loss_ratio(self) -> float:
        """Zero: the queue is unlimited."""
        return 0.0

    @property
    def waiting_mean_s(self) -> float:
        """``C/(cμ - λ)``."""
        offered = self.arrival_pps * self.service_s
        return erlang_c(offered, self.servers) * self.service_s / (self.servers - offered)

    @property
    def sojourn_mean_s(self) -> float:
        """``C/(cμ - λ) + 1/μ``."""
        return self.waiting_mean_s + self.service_s

    def waiting_tail(self, time_s: float) -> float:
        """``C·exp(-(cμ - λ)t)``."""
        offered = self.arrival_pps * self.service_s
        return erlang_c(offered, self.servers) * math.exp(-(self.servers - offered) * time_s / self.service_s)

    def sojourn_tail(self, time_s: float) -> float:
        """``e^{-μt}·(1 + C·(1 - e^{-μt(c-1-a)})/(c-1-a))`` (Gross et al. sec. 2.3.1)."""
        offered = self.arrival_pps * self.service_s
        x = time_s / self.service_s
        left = self.servers - 1 - offered
        waits = erlang_c(offered, self.servers)
        if abs(left * x) >= 1.0:
            # Multiplied out, for near saturation the factor in brackets is beyond all numbers.
            return math.exp(-x) + waits * (math.exp(-x) - math.exp(-x * (1.0 + left))) / left
        # (1 - exp(-x·left))/left, which goes to x as left goes to 0.
        growth = x if abs(left * x) < 1e-12 else -math.expm1(-x * left) / left
        return math.exp(-x) * (1.0 + waits * growth)


class MM1(MMc):
    """M/M/1: ``T = 1/(μ - λ)``, exponentially distributed (Kleinrock sec. 3.2). Exact for rho < 1."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MMcK(Queue):
    """M/M/c/K: as M/M/c with room for K frames in all; a birth-death chain, exact for every rho.

    ``p_n`` is proportional to ``a^n/n!`` up to c and to ``p_c·rho^{n-c}`` beyond; loss = ``p_K`` (PASTA). Accepted
    frames find n < K with ``q_n = p_n/(1 - p_K)``. Source: Gross et al. sec. 2.4 and 2.5.
    """

    arrival_pps: float
    service_s: float
    servers: int = 1
    capacity_frames: int = 1

    def __post_init__(self) -> None:
        require_range(self.method, self.capacity_frames >= self.servers, "has less room than servers")

    @property
    def method(self) -> str:
        """Its name in Kendall's notation."""
        return f"M/M/{self.servers}/{self.capacity_frames}"

    @property
    def loss_ratio(self) -> float:
        """``p_K``."""
        return float(self._state()[-1])

    @property
    def mean_frames(self) -> float:
        """Mean number of frames waiting and in service."""
        state = self._state()
        return sum(count * float(share) for count, share in enumerate(state))

    @property
    def sojourn_mean_s(self) -> float:
        """Little's law over the accepted frames."""
        return self.mean_frames / (self.arrival_pps * (1.0 - self.loss_ratio))

    @property
    def waiting_mean_s(self) -> float:
        """Sojourn less service."""
        return max(self.sojourn_mean_s - self.service_s, 0.0)

    def waiting_tail(self, time_s: float) -> float:
        """Mixture of Erlang distributions: who finds n >= c frames waits for n - c + 1 departures."""
        found = self._found()[self.servers :]
        return _erlang_mixture_tail(found, self.servers * time_s / self.service_s)

    def sojourn_tail(self, time_s: float) -> float:
        """Mixture of Erlang distributions for one server; not given for more."""
        if self.servers > 1:
            return math.nan
        return _erlang_mixture_tail(self._found(), time_s / self.service_s)

    def _state(self) -> NDArray[np.float64]:
        return _birth_death(self.arrival_pps * self.service_s, self.servers, self.capacity_frames)

    def _found(self) -> NDArray[np.float64]:
        state = self._state()
        found: NDArray[np.float64] = state[:-1] / (1.0 - state[-1])
        return found


class MM1K(MMcK):
    """M/M/1/K: ``p_n = (1-rho)·rho^n/(1-rho^{K+1})`` (Kleinrock sec. 3.6). Exact for every rho."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tandem(Queue):
    """Jackson's network in tandem: M/M/c stations in series, unlimited queues, independent service times.

    By Burke's theorem each station sees Poisson arrivals, and the sojourn times add up (mean). Where every
    station has one server, a frame's sojourn times are independent (Reich 1957), each exponential with rate
    μ_i - λ, so their sum is hypoexponential; with more servers frames overtake and only the mean is given.
    Source: Jackson, Operations Research 5(4), 1957; Kleinrock sec. 4.2 and 4.8; Reich, Annals of Mathematical
    Statistics 28, 1957.
    """

    stations: tuple[MMc, ...]

    @property
    def method(self) -> str:
        """Its name."""
        return "Jackson tandem of " + " and ".join(dict.fromkeys(station.method for station in self.stations))

    @property
    def loss_ratio(self) -> float:
        """Zero: the queues are unlimited."""
        return 0.0

    @property
    def waiting_mean_s(self) -> float:
        """Sum over the stations."""
        return math.fsum(station.waiting_mean_s for station in self.stations)

    @property
    def sojourn_mean_s(self) -> float:
        """Sum over the stations."""
        return math.fsum(station.sojourn_mean_s for station in self.stations)

    def sojourn_tail(self, time_s: float) -> float:
        """Hypoexponential, by uniformisation; NaN where a station has several servers."""
        if any(station.servers > 1 for station in self.stations):
            return math.nan
        rates = tuple(1.0 / station.service_s - station.arrival_pps for station in self.stations)
        return _hypoexponential_tail(rates, time_s)


@lru_cache(maxsize=256)
def _birth_death(offered: float, servers: int, capacity: int) -> NDArray[np.float64]:
    served = np.minimum(np.arange(1, capacity + 1, dtype=np.float64), servers)
    logs = np.concatenate([[0.0], np.cumsum(np.log(max(offered, 1e-300)) - np.log(served))])
    weights = np.exp(logs - logs.max())
    state: NDArray[np.float64] = weights / weights.sum()
    return state


def _erlang_mixture_tail(weights: NDArray[np.float64], x: float) -> float:
    """``Σ w_n P(Poisson(x) <= n)``: the tail of Erlang(n+1) times with weights w_n."""
    if x <= 0.0:
        return float(weights.sum())
    above = np.cumsum(weights[::-1])[::-1]
    counts = np.arange(len(weights))
    logs = counts * math.log(x) - x - log_factorials(len(weights))
    return float(np.exp(logs) @ above)


@lru_cache(maxsize=32)
def log_factorials(count: int) -> NDArray[np.float64]:
    """Return the logarithms of 0!, 1!, …, (count-1)!."""
    logs: NDArray[np.float64] = np.cumsum(np.log(np.arange(1, max(count, 1), dtype=np.float64)))
    padded: NDArray[np.float64] = np.concatenate([[0.0], logs])[:count]
    return padded


def _hypoexponential_tail(rates: tuple[float, ...], time_s: float) -> float:
    x = max(rates) * time_s
    if x <= 0.0:
        return 1.0
    inside = _uniformised(rates)
    counts = np.arange(len(inside))
    logs = counts * math.log(x) - x - log_factorials(len(inside))
    return float(np.exp(logs) @ inside)


@lru_cache(maxsize=64)
def _uniformised(rates: tuple[float, ...]) -> NDArray[np.float64]:
    """Probability to be still inside after 0, 1, … steps of the chain that steps at the fastest rate."""
    ahead = np.array(rates) / max(rates)
    stage = np.zeros(len(rates))
    stage[0] = 1.0
    inside = [1.0]
    while inside[-1] > 1e-9 and len(inside) < _MOST_STEPS:
        moved = stage * ahead
        stage = stage - moved
        stage[1:] += moved[:-1]
        inside.append(float(stage.sum()))
    return np.array(inside)
