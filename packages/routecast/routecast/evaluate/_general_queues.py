"""General service times: M/G/c/c, and one server: M/G/1, M/D/1, M/G/1/K, D/D/1.

Symbols and sources as in :mod:`routecast.evaluate._queue`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from routecast.evaluate._queue import LARGE, PlainQueue, Queue, erlang_b, log_factorials, poisson_probabilities
from routecast.quantity.schema import field, value
from routecast.router.model import Interruptions

if TYPE_CHECKING:
    from numpy.typing import NDArray


_JUST_FULL = 1.0 + 1e-9
"""A load of 1, with rounding."""
_LONGEST_CHAIN = 16_384
_NORMAL_RANGE, _NORMAL_POINTS = 9.0, 361
"""Standard deviations and points of the quadrature over lognormal times."""
_NEAR_ZERO = 1e-4
_ALIAS, _MIN_EMPTY = 1e-12, 1e-6
"""Error of the inversion of a generating function, and the least chance of no arrival that it is exact enough for."""
_AS_INDEPENDENT = "with sizes as if in random order (approximation)"
ServiceLaw = Literal["deterministic", "exponential", "gamma", "uniform", "lognormal", "hyperexponential", "other"]


@value
class Completion:
    """How the completion time of an interrupted service arises, see :class:`~routecast.router.model.Interruptions`."""

    law: ServiceLaw = field("Distribution of the uninterrupted service within a kind")
    scv: float = field("Its squared coefficient of variation")
    interruptions: Interruptions = field("What lengthens it")


@value
class ServiceMix:
    """Service time of a mix of frames: for each kind its share, its time, and how the time varies."""

    shares: tuple[float, ...] = field("Share of each kind of frame (of each frame size)")
    times_s: tuple[float, ...] = field("Mean service time of each kind")
    scv: float = field("Squared coefficient of variation of the service time of one kind", default=0.0)
    law: ServiceLaw = field(
        "Distribution within a kind; ``gamma`` covers the exponential. With ``other`` only two moments are known.",
        default="deterministic",
    )
    completion: Completion | None = field("For times with interruptions: how they arise, where known", default=None)

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
class ErlangLoss(Queue):
    """M/G/c/c: Poisson arrivals, c servers, nobody waits; a frame that finds all servers busy is lost.

    The loss is Erlang's B formula, and depends on the mean service time alone (Sevast'yanov, Theory of Probability and
    its Applications 2(1), 1957). Exact for every load.
    """

    arrival_pps: float
    service: ServiceMix
    servers: int

    @property
    def method(self) -> str:
        return f"M/G/{self.servers}/{self.servers}, Erlang B"

    @property
    def loss_ratio(self) -> float:
        return erlang_b(self.arrival_pps * self.service.mean_s, self.servers)

    @property
    def waiting_mean_s(self) -> float:
        """Nobody waits."""
        return 0.0

    @property
    def sojourn_mean_s(self) -> float:
        """Mean service time."""
        return self.service.mean_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MG1(Queue):
    """M/G/1: ``W = λE[S²]/(2(1 - rho))``, Pollaczek and Khinchine's formula. Exact for rho < 1.

    Only the mean has a closed form for every service time. Source: Kleinrock sec. 5.6, eq. 5.70 (mean value formula).
    Service times must be ``independent``; where they are not, as in a fixed sequence of sizes, ``method`` calls the
    result an approximation.
    """

    arrival_pps: float
    service: ServiceMix
    independent: bool = True

    def __post_init__(self) -> None:
        self.require_stable(self.arrival_pps * self.service.mean_s)

    @property
    def method(self) -> str:
        return "M/G/1" if self.independent else f"M/G/1 {_AS_INDEPENDENT}"

    @property
    def waiting_mean_s(self) -> float:
        """``rho/(1-rho)·(1 + c_s²)/2·E[S]``."""
        mean = self.service.mean_s
        load = self.arrival_pps * mean
        return load / (1.0 - load) * 0.5 * (1.0 + self.service.squared_cv) * mean

    @property
    def sojourn_mean_s(self) -> float:
        return self.waiting_mean_s + self.service.mean_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MD1(PlainQueue):
    """M/D/1: Poisson arrivals, one constant service time D, unlimited queue. Exact for rho < 1.

    With k the whole number for which (k-1)D <= t < kD, ``P(W <= t) = e^{-λ(kD-t)} Σ_{j<k} Q_{k-1-j} (λ(kD-t))^j/j!``,
    where ``Q_m`` is the probability of at most m waiting frames: a sum of positive terms, stable for every load, unlike
    Crommelin's and Erlang's alternating series. Source: Franx, Operations Research Letters 29(5), 2001, for M/D/c. The
    state probabilities come from the embedded chain by balancing crossings of each level, positive terms only
    (Ramaswami, Stochastic Models 4, 1988).
    """

    def __post_init__(self) -> None:
        self.require_stable(self.arrival_pps * self.service_s)

    @property
    def method(self) -> str:
        return "M/D/1"

    @property
    def waiting_mean_s(self) -> float:
        """``rhoD/(2(1 - rho))``."""
        load = self.arrival_pps * self.service_s
        return 0.5 * load / (1.0 - load) * self.service_s

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
        if x <= 0.0:
            return max(1.0 - float(waiting[periods - 1]), 0.0)
        return min(max(1.0 - float(poisson_probabilities(x, periods) @ waiting[::-1]), 0.0), 1.0)

    def sojourn_tail(self, time_s: float) -> float:
        """Return the waiting time's tail, later by D."""
        return 1.0 if time_s < self.service_s else self.waiting_tail(time_s - self.service_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class MG1K(Queue):
    """M/G/1/K: Poisson arrivals, one server, room for K frames in all. Exact for every rho where the law is known.

    Chain embedded at departures: with ``a_n`` the probability of n arrivals during a service, crossings of level j
    balance, ``π_j a_0 = π_0 ā_j + Σ_{0<i<j} π_i ā_{j-i+1}`` (``ā`` tail sums; positive terms only), j < K; then
    ``loss = 1 - 1/(π_0 + rho)`` and ``p_j = π_j/(π_0 + rho)``. Source: Gross et al. sec. 5.1.7; Cooper, "Introduction
    to Queueing Theory", 2nd edition (1981), sec. 5.9. Exact for all laws with a name and for mixes of them (lognormal
    times by quadrature) and for completion times of interrupted services (Avi-Itzhak and Naor, Operations Research
    11(3), 1963); a law given by two moments only is replaced by the gamma law with these moments. ``independent`` as in
    MG1.
    """

    arrival_pps: float
    service: ServiceMix
    capacity_frames: int
    independent: bool = True

    @property
    def method(self) -> str:
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
        return (
            float(np.arange(len(embedded)) @ embedded) / (float(embedded[0]) + load)
            + self.capacity_frames * self.loss_ratio
        )

    @property
    def sojourn_mean_s(self) -> float:
        """Little's law over the accepted frames."""
        return self.mean_frames / (self.arrival_pps * (1.0 - self.loss_ratio))

    @property
    def waiting_mean_s(self) -> float:
        return max(self.sojourn_mean_s - self.service.mean_s, 0.0)

    def _embedded(self) -> NDArray[np.float64]:
        service = self.service
        loads = tuple(self.arrival_pps * time for time in service.times_s)
        scv = 0.0 if service.law == "deterministic" else service.scv
        if service.completion is not None:
            by_completion = _mg1k_interrupted(
                service.shares, service.times_s, service.completion, self.arrival_pps, self.capacity_frames
            )
            if by_completion is not None:
                return by_completion
        return _mg1k_embedded(service.shares, loads, scv, service.law, self.capacity_frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class DD1(PlainQueue):
    """D/D/1 and D/D/1/K: equal gaps, one constant service time. Exact.

    rho <= 1: no frame waits. rho > 1 with room for K: the queue is full in the long run, ``loss = 1 - 1/rho``; every
    service end makes one place, which the next arrival takes after half a gap on average (if gap and service
    time are not commensurable), so ``N = K - 1/(2rho)``, and the sojourn time is ``N·D`` by Little's law (Meyer et al.
    2014, eq. 4).
    """

    capacity_frames: int

    @property
    def method(self) -> str:
        return "D/D/1" if self._load <= _JUST_FULL else f"D/D/1/{self.capacity_frames}, always full"

    @property
    def _load(self) -> float:
        return self.arrival_pps * self.service_s

    @property
    def loss_ratio(self) -> float:
        """The excess over the rate of one server."""
        return 1.0 - 1.0 / self._load if self._load > _JUST_FULL else 0.0

    @property
    def sojourn_mean_s(self) -> float:
        """Service time, or the time through a full queue."""
        if self._load <= _JUST_FULL:
            return self.service_s
        return (self.capacity_frames - 0.5 / self._load) * self.service_s

    @property
    def waiting_mean_s(self) -> float:
        return self.sojourn_mean_s - self.service_s

    def waiting_tail(self, time_s: float) -> float:
        """No frame waits below rho = 1; not given above."""
        return (1.0 if time_s < 0.0 else 0.0) if self._load <= _JUST_FULL else math.nan

    def sojourn_tail(self, time_s: float) -> float:
        """Constant below rho = 1; not given above."""
        return (1.0 if time_s < self.service_s else 0.0) if self._load <= _JUST_FULL else math.nan


@lru_cache(maxsize=64)
def _md1_state(load: float, length: int) -> NDArray[np.float64]:
    """Probabilities of 0, 1, … frames in M/D/1."""
    arrivals = _arrival_counts((1.0,), (load,), 0.0, "deterministic", length + 1)
    return (1.0 - load) * _level_crossing(arrivals, length)


@lru_cache(maxsize=256)
def _mg1k_embedded(
    shares: tuple[float, ...], loads: tuple[float, ...], scv: float, law: ServiceLaw, capacity: int
) -> NDArray[np.float64]:
    arrivals = _arrival_counts(shares, loads, scv, law, capacity + 1)
    chain = _level_crossing(arrivals, capacity)
    embedded: NDArray[np.float64] = chain / chain.sum()
    return embedded


@lru_cache(maxsize=256)
def _mg1k_interrupted(
    shares: tuple[float, ...], times_s: tuple[float, ...], completion: Completion, arrival_pps: float, capacity: int
) -> NDArray[np.float64] | None:
    """Return the embedded chain of M/G/1/K with interrupted services; None where frames nearly always arrive meanwhile.

    The completion time C of a service S with interruptions D at rate r has ``E[e^{-uC}] = S*(u + r(1 - D*(u)))``, and
    ``E[e^{-λ(1-z)C}]`` generates the arrivals during it. Its coefficients are a Fourier sum over a circle of radius
    below 1 (Abate and Whitt, Operations Research Letters 12(4), 1992).
    """
    length, interruptions = capacity + 1, completion.interruptions
    points = 1 << (4 * length - 1).bit_length()
    radius = _ALIAS ** (1.0 / points)
    circle = radius * np.exp(2j * math.pi * np.arange(points // 2 + 1) / points)
    slowed = arrival_pps * (1.0 - circle)
    duration = interruptions.duration
    if len(duration.quantiles_s) > 1:
        table = zip(duration.quantiles_s[:-1], duration.quantiles_s[1:], strict=True)
        away = sum(_transform_between(slowed, low, high) for low, high in table) / (len(duration.quantiles_s) - 1)
    else:
        away = _transform(slowed, duration.average_s, duration.squared_cv, duration.variation)
    worked = slowed + interruptions.rate_hz * (1.0 - away)
    generated = np.zeros(len(circle), np.complex128)
    for share, time_s in zip(shares, times_s, strict=True):
        generated += share * _transform(worked, time_s / interruptions.stretch, completion.scv, completion.law)
    # Conjugates lie at the other half of the circle.
    coefficients = np.fft.irfft(generated.conj(), points)[:length]
    arrivals = np.maximum(coefficients * radius ** -np.arange(length), 0.0)
    if arrivals[0] < _MIN_EMPTY:
        return None
    chain = _level_crossing(arrivals, capacity)
    embedded: NDArray[np.float64] = chain / chain.sum()
    return embedded


def _transform(u: NDArray[np.complex128], mean_s: float, scv: float, law: ServiceLaw) -> NDArray[np.complex128]:
    """Return ``E[e^{-uX}]`` of a time of a law."""
    if scv <= 0.0 or mean_s <= 0.0:
        return np.exp(-u * mean_s)
    if law == "hyperexponential":
        share = 0.5 * (1.0 + math.sqrt(max(scv - 1.0, 0.0) / (scv + 1.0)))
        parts = [part / (1.0 + u * (0.5 * mean_s / part)) for part in (share, 1.0 - share)]
        return parts[0] + parts[1]
    if law == "uniform":
        low, high = (mean_s * (1.0 + side * math.sqrt(3.0 * scv)) for side in (-1.0, 1.0))
        return _transform_between(u, max(low, 0.0), high)
    if law == "lognormal":
        spread = math.sqrt(math.log1p(scv))
        normal = np.linspace(-_NORMAL_RANGE, _NORMAL_RANGE, _NORMAL_POINTS)
        weights = np.exp(-0.5 * normal**2)
        weights /= weights.sum()
        times_s = mean_s * np.exp(spread * normal - 0.5 * spread**2)
        total = np.zeros(len(u), np.complex128)
        for weight, time_s in zip(weights.tolist(), times_s.tolist(), strict=True):
            total += weight * np.exp(-u * time_s)
        return total
    return np.exp(-np.log1p(scv * mean_s * u) / scv)


def _transform_between(u: NDArray[np.complex128], low_s: float, high_s: float) -> NDArray[np.complex128]:
    """Return ``E[e^{-uX}]`` of a time that is uniform between two."""
    half = 0.5 * u * (high_s - low_s)
    near = np.abs(half) < _NEAR_ZERO
    safe = np.where(near, 1.0, half)
    return np.exp(-0.5 * u * (low_s + high_s)) * np.where(near, 1.0 + half**2 / 6.0, np.sinh(safe) / safe)


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
        if chain[level] > LARGE:
            chain[: level + 1] /= chain[level]
    return chain


def _arrival_counts(
    shares: tuple[float, ...], loads: tuple[float, ...], scv: float, law: ServiceLaw, length: int
) -> NDArray[np.float64]:
    """Probabilities of 0, 1, … Poisson arrivals during one service, of a mix of times of one law."""
    total = np.zeros(length)
    for share, load in zip(shares, loads, strict=True):
        total += share * _arrivals_of_law(load, scv, law, length)
    return total


def _arrivals_of_law(load: float, scv: float, law: ServiceLaw, length: int) -> NDArray[np.float64]:
    """Probabilities of 0, 1, … arrivals in times of one law: Poisson for constant ones, negative binomial for gamma."""
    if scv <= 0.0:
        return poisson_probabilities(load, length)
    counts = np.arange(length, dtype=np.float64)
    if law == "hyperexponential":
        # Balanced means: both kinds of times make the same share of the work.
        share = 0.5 * (1.0 + math.sqrt(max(scv - 1.0, 0.0) / (scv + 1.0)))
        parts = [(part, 0.5 * load / part) for part in (share, 1.0 - share)]
        return sum(
            (part * _arrivals_of_law(work, 1.0, "exponential", length) for part, work in parts), np.zeros(length)
        )
    if law == "uniform":
        from scipy.special import gammainc  # scipy is loaded where it is used

        low, high = (load * (1.0 + side * math.sqrt(3.0 * scv)) for side in (-1.0, 1.0))
        # The integral of a Poisson probability over its mean.
        between = gammainc(counts + 1.0, high) - gammainc(counts + 1.0, max(low, 0.0))
        return np.asarray(between / (high - low), dtype=np.float64)
    if law == "lognormal":
        spread = math.sqrt(math.log1p(scv))
        normal = np.linspace(-_NORMAL_RANGE, _NORMAL_RANGE, _NORMAL_POINTS)
        weights = np.exp(-0.5 * normal**2)
        weights /= weights.sum()
        means = load * np.exp(spread * normal - 0.5 * spread**2)
        logarithms = counts[:, None] * np.log(means) - means - log_factorials(length)[:, None]
        return np.asarray(np.exp(logarithms) @ weights, dtype=np.float64)
    shape = 1.0 / scv
    first = np.concatenate([[0.0], np.cumsum(np.log(shape + counts[:-1]) - np.log(counts[1:]))])
    stay = load / (load + shape)
    negative_binomial: NDArray[np.float64] = np.exp(first + counts * math.log(stay) + shape * math.log1p(-stay))
    return negative_binomial
