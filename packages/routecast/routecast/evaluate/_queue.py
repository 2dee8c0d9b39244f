"""A queueing result, and Markovian queues: Erlang's formulas, M/M/c, M/M/c/K, Jackson's tandem.

Symbols: arrival rate λ (``arrival_pps``), service time S, mean 1/μ (``service_s``), c servers, offered load a = λ/μ
erlangs, rho = a/c; c_s² (``service_scv``) and c_a² (``arrival_scv``) are the squared coefficients of variation of the
service times and of the gaps between arrivals. ``capacity_frames`` K counts waiting *and* served frames, as Kendall's
notation does; a task unit with ``parallel`` c and ``queue_frames`` q is K = c + q.

Results that are exact or well known, each with its range of validity and its source, are in
this module, in :mod:`routecast.evaluate._general_queues` and in
:mod:`routecast.evaluate._two_moment_queues`; servers that sleep or are interrupted in
:mod:`routecast.evaluate._server_vacations`, closed networks in :mod:`routecast.evaluate._closed_networks`.

Sources by name: Kleinrock, "Queueing Systems, Volume 1: Theory" (Wiley 1975); Gross, Shortle, Thompson, Harris,
"Fundamentals of Queueing Theory", 4th edition (Wiley 2008).
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


_PERCENTILES = (0.5, 0.9, 0.99, 0.999)
_MAX_STEPS = 200_000
LARGE, LARGEST_EXPONENT = 1e200, 700.0


class Queue(ABC):
    """A queueing result; NaN where the theory has no closed form."""

    __slots__ = ()

    @property
    @abstractmethod
    def method(self) -> str:
        """Name in Kendall's notation."""

    @property
    def loss_ratio(self) -> float:
        """Probability that an arriving frame finds no room; 0 where the queue is unlimited."""
        return 0.0

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

    def require_stable(self, load: float) -> None:
        """Raise :class:`ModelProblem` where an unlimited queue would grow without bound."""
        require_range(self.method, load < 1.0, "is not stable: the load must be < 1")

    def waiting(self) -> Delay:
        """Return mean and percentiles of the waiting time."""
        return delay_of(self.waiting_mean_s, self.waiting_tail, self.method)

    def sojourn(self) -> Delay:
        """Return mean and percentiles of the sojourn time."""
        return delay_of(self.sojourn_mean_s, self.sojourn_tail, self.method)


def delay_of(mean_s: float, tail: Callable[[float], float], method: str) -> Delay:
    """Return a delay with the percentiles of a tail function."""
    p50_s, p90_s, p99_s, p999_s = (quantile_s(tail, mean_s, ratio) for ratio in _PERCENTILES)
    return Delay(mean_s=mean_s, p50_s=p50_s, p90_s=p90_s, p99_s=p99_s, p999_s=p999_s, method=method)


def quantile_s(tail: Callable[[float], float], scale_s: float, ratio: float) -> float:
    """Return the time that a share ``ratio`` of the frames does not exceed, by bisection of the tail function."""
    tail_ratio = 1.0 - ratio
    at_zero = tail(0.0)
    if math.isnan(at_zero) or not math.isfinite(scale_s):
        return math.nan
    if at_zero <= tail_ratio or scale_s <= 0.0:
        return 0.0
    low, high = 0.0, scale_s
    for _ in range(60):
        if tail(high) <= tail_ratio:
            break
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = 0.5 * (low + high)
        if tail(middle) > tail_ratio:
            low = middle
        else:
            high = middle
        if high - low <= 1e-9 * high:
            break
    return high


def require_range(name: str, condition: bool, message: str) -> None:
    """Raise :class:`ModelProblem` for a result outside its range of validity."""
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
class PlainQueue(Queue):
    """A queue whose frames wait and are then served without delay."""

    arrival_pps: float
    service_s: float

    @property
    def sojourn_mean_s(self) -> float:
        return self.waiting_mean_s + self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanQueue(Queue):
    """A queue in a network whose analysis gives only means."""

    waiting_s: float
    service_s: float
    source: str
    lost_ratio: float = 0.0
    product_form: bool = False
    """Whether its output may be taken as Poisson, as in a Jackson network."""

    @property
    def method(self) -> str:
        return self.source

    @property
    def loss_ratio(self) -> float:
        return self.lost_ratio

    @property
    def waiting_mean_s(self) -> float:
        return self.waiting_s

    @property
    def sojourn_mean_s(self) -> float:
        return self.waiting_s + self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedQueue(Queue):
    """A queue with the losses of ``queue`` whose frames wait ``_added_s`` seconds longer on average."""

    queue: Queue

    @property
    @abstractmethod
    def _added_s(self) -> float: ...

    @property
    def loss_ratio(self) -> float:
        return self.queue.loss_ratio

    @property
    def waiting_mean_s(self) -> float:
        """Wait in the queue, and the delay."""
        return self.queue.waiting_mean_s + self._added_s

    @property
    def sojourn_mean_s(self) -> float:
        """Sojourn time in the queue, and the delay."""
        return self.queue.sojourn_mean_s + self._added_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MMc(PlainQueue):
    """M/M/c: Poisson arrivals, exponential service, c servers, one unlimited queue, first come first served.

    ``P(W > t) = C(c, a)·exp(-(cμ - λ)t)`` with Erlang's C; sojourn time = W + exponential service. Exact for rho < 1.
    Source: Kleinrock sec. 3.5; Gross et al. sec. 2.3.
    """

    servers: int = 1

    def __post_init__(self) -> None:
        self.require_stable(self.arrival_pps * self.service_s / self.servers)

    @property
    def method(self) -> str:
        return f"M/M/{self.servers}"

    @property
    def waiting_mean_s(self) -> float:
        """``C/(cμ - λ)``."""
        offered = self.arrival_pps * self.service_s
        return erlang_c(offered, self.servers) * self.service_s / (self.servers - offered)

    def waiting_tail(self, time_s: float) -> float:
        """``C·exp(-(cμ - λ)t)``."""
        offered = self.arrival_pps * self.service_s
        return erlang_c(offered, self.servers) * math.exp(-(self.servers - offered) * time_s / self.service_s)

    def sojourn_tail(self, time_s: float) -> float:
        """``e^{-μt}·(1 + C·(1 - e^{-μt(c-1-a)})/(c-1-a))`` (Gross et al. sec. 2.3.1)."""
        offered = self.arrival_pps * self.service_s
        x = time_s / self.service_s
        spare = self.servers - 1 - offered
        wait_probability = erlang_c(offered, self.servers)
        if abs(spare * x) >= 1.0:
            # Multiplied out: near saturation the factor in brackets overflows.
            return math.exp(-x) + wait_probability * (math.exp(-x) - math.exp(-x * (1.0 + spare))) / spare
        # (1 - exp(-x·left))/left, which goes to x as left goes to 0.
        growth = x if abs(spare * x) < 1e-12 else -math.expm1(-x * spare) / spare
        return math.exp(-x) * (1.0 + wait_probability * growth)


@dataclass(frozen=True, slots=True, kw_only=True)
class MMcK(PlainQueue):
    """M/M/c/K: as M/M/c with room for K frames in all; a birth-death chain, exact for every rho.

    ``p_n`` is proportional to ``a^n/n!`` up to c and to ``p_c·rho^{n-c}`` beyond; loss = ``p_K`` (PASTA). Accepted
    frames find n < K with ``q_n = p_n/(1 - p_K)``. Source: Gross et al. sec. 2.4 and 2.5.
    """

    servers: int = 1
    capacity_frames: int = 1

    def __post_init__(self) -> None:
        require_range(self.method, self.capacity_frames >= self.servers, "has less room than servers")

    @property
    def method(self) -> str:
        return f"M/M/{self.servers}/{self.capacity_frames}"

    @property
    def loss_ratio(self) -> float:
        """``p_K``."""
        return float(self._state()[-1])

    @property
    def mean_frames(self) -> float:
        """Mean number of frames waiting and in service."""
        state = self._state()
        return float(np.arange(len(state)) @ state)

    @property
    def sojourn_mean_s(self) -> float:
        """Little's law over the accepted frames."""
        return self.mean_frames / (self.arrival_pps * (1.0 - self.loss_ratio))

    @property
    def waiting_mean_s(self) -> float:
        return max(self.sojourn_mean_s - self.service_s, 0.0)

    def waiting_tail(self, time_s: float) -> float:
        """Mixture of Erlang distributions: a frame that finds n >= c frames waits for n - c + 1 departures."""
        waiting = self._states_at_arrival()[self.servers :]
        return erlang_mixture_tail(waiting, self.servers * time_s / self.service_s)

    def sojourn_tail(self, time_s: float) -> float:
        """Mixture of Erlang distributions for one server; not given for more."""
        if self.servers > 1:
            return math.nan
        return erlang_mixture_tail(self._states_at_arrival(), time_s / self.service_s)

    def _state(self) -> NDArray[np.float64]:
        return _birth_death(self.arrival_pps * self.service_s, self.servers, self.capacity_frames)

    def _states_at_arrival(self) -> NDArray[np.float64]:
        state = self._state()
        probability: NDArray[np.float64] = state[:-1] / (1.0 - state[-1])
        return probability


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
        return "Jackson tandem of " + " and ".join(dict.fromkeys(station.method for station in self.stations))

    @property
    def waiting_mean_s(self) -> float:
        return math.fsum(station.waiting_mean_s for station in self.stations)

    @property
    def sojourn_mean_s(self) -> float:
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


def erlang_mixture_tail(weights: NDArray[np.float64], x: float) -> float:
    """``Σ w_n P(Poisson(x) <= n)``: the tail of Erlang(n+1) times with weights w_n."""
    if x <= 0.0:
        return float(weights.sum())
    return float(poisson_probabilities(x, len(weights)) @ np.cumsum(weights[::-1])[::-1])


def poisson_probabilities(mean: float, count: int) -> NDArray[np.float64]:
    """Return the probabilities of 0, 1, …, count-1 events of a Poisson distribution."""
    probabilities: NDArray[np.float64] = np.exp(np.arange(count) * math.log(mean) - mean - log_factorials(count))
    return probabilities


@lru_cache(maxsize=32)
def log_factorials(count: int) -> NDArray[np.float64]:
    """Return the logarithms of 0!, 1!, …, (count-1)!."""
    logs: NDArray[np.float64] = np.cumsum(np.log(np.maximum(np.arange(count, dtype=np.float64), 1.0)))
    return logs


def _hypoexponential_tail(rates: tuple[float, ...], time_s: float) -> float:
    x = max(rates) * time_s
    if x <= 0.0:
        return 1.0
    inside = _uniformised(rates)
    return float(poisson_probabilities(x, len(inside)) @ inside)


@lru_cache(maxsize=64)
def _uniformised(rates: tuple[float, ...]) -> NDArray[np.float64]:
    """Probability to be still inside after 0, 1, … steps of the chain that steps at the fastest rate."""
    ahead = np.array(rates) / max(rates)
    stage = np.zeros(len(rates))
    stage[0] = 1.0
    inside = [1.0]
    while inside[-1] > 1e-9 and len(inside) < _MAX_STEPS:
        moved = stage * ahead
        stage = stage - moved
        stage[1:] += moved[:-1]
        inside.append(float(stage.sum()))
    return np.array(inside)
