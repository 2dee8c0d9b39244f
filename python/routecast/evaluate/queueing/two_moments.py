"""Queues known by two moments of gaps and service times: GI/G/1, GI/G/c, GI/G/1/K, Kingman's bound.

Symbols as in :mod:`routecast.evaluate.queueing`; ``service_scv`` is the squared coefficient of variation of the
service time, ``arrival_scv`` that of the gaps between arrivals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from routecast.evaluate.queueing.markov import Queue, erlang_c, require_range

__all__ = ["GIG1K", "GIGc", "kingman_bound_s"]

_LARGEST_EXPONENT = 700.0
_CLOSE_TO_ONE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class GIGc(Queue):
    """GI/G/1 and GI/G/c by two moments: an approximation.

    One server: Krämer and Langenbach-Belz, ``W ≈ rho/(1-rho)·E[S]·(c_a² + c_s²)/2·g`` with
    ``g = exp(-2(1-rho)(1-c_a²)²/(3·rho·(c_a²+c_s²)))`` for c_a² <= 1 and ``g = exp(-(1-rho)(c_a²-1)/(c_a²+4c_s²))``
    above; exact for M/G/1, usually within 10 % for c_a² and c_s² up to about 2 and rho above 0.3 (8th
    International Teletraffic Congress, 1976). Several servers: Allen and Cunneen, ``W ≈ W_{M/M/c}·(c_a² +
    c_s²)/2`` (Allen, "Probability, Statistics and Queueing Theory", 2nd edition, 1990), exact for M/M/c.
    Arrival gaps must be independent. rho < 1.
    """

    arrival_pps: float
    arrival_scv: float
    service_s: float
    service_scv: float
    servers: int = 1

    def __post_init__(self) -> None:
        require_range(
            self.method, self.arrival_pps * self.service_s < self.servers, "is not stable: the load must be < 1"
        )

    @property
    def method(self) -> str:
        """Its name and authors."""
        if self.servers == 1:
            return "GI/G/1, Krämer and Langenbach-Belz approximation"
        return f"GI/G/{self.servers}, Allen and Cunneen approximation"

    @property
    def loss_ratio(self) -> float:
        """Zero: the queue is unlimited."""
        return 0.0

    @property
    def waiting_mean_s(self) -> float:
        """See the class."""
        offered = self.arrival_pps * self.service_s
        both = self.arrival_scv + self.service_scv
        if both <= 0.0 or offered <= 0.0:
            return 0.0
        if self.servers > 1:
            return 0.5 * both * erlang_c(offered, self.servers) * self.service_s / (self.servers - offered)
        correction = _correction(offered, self.arrival_scv, self.service_scv)
        return offered / (1.0 - offered) * self.service_s * 0.5 * both * correction

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and service."""
        return self.waiting_mean_s + self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class GIG1K(Queue):
    """GI/G/1/K by two moments, for every load: a diffusion approximation.

    The number of frames is taken as a Brownian motion between two barriers, so it falls off exponentially with
    ``d = 2(1 - rho)/(rho·c_a² + c_s²)`` per frame (it grows where rho > 1). With ``y = e^{-d(K-1)}``,

    ``loss = rho(1 - rho)y/(1 - rho²y)``  (Gelenbe, Journal of the ACM 22(2), 1975)

    and the mean wait is that of an exponential law cut off at the q = K - 1 places,

    ``W = r·E[S]·(1/d - q/(e^{dq} - 1))``, with ``r = rho(c_a² + c_s²)g/(rho·c_a² + c_s²)`` below rho = 1 and 1 above,

    where g is Krämer and Langenbach-Belz's factor, so that W goes to their GI/G/1 formula for large K. Against packet
    simulations with K from 3 to 65, c_a² from 0 to 1.3, c_s² from 0 to 1.1 and rho from 0.6 to 1.2: W + E[S] within
    15 %, but 36 % at rho = 1 where equal gaps meet almost equal service times (c_a² + c_s² < 0.1); loss within 0.007
    for K >= 9 and 0.04 for K = 3, mostly too high. Gaps must be independent.
    """

    arrival_pps: float
    arrival_scv: float
    service_s: float
    service_scv: float
    capacity_frames: int

    def __post_init__(self) -> None:
        require_range(self.method, self.arrival_scv + self.service_scv > 0.0, "varies in nothing: it is D/D/1/K")

    @property
    def method(self) -> str:
        """Its name and authors."""
        return f"GI/G/1/{self.capacity_frames}, diffusion approximation"

    @property
    def _load(self) -> float:
        load = self.arrival_pps * self.service_s
        # At 1 both formulas have a limit; a little beside it they give it to seven digits.
        return load if abs(load - 1.0) > _CLOSE_TO_ONE else 1.0 - _CLOSE_TO_ONE

    @property
    def _decay(self) -> float:
        load = self._load
        return 2.0 * (1.0 - load) / (load * self.arrival_scv + self.service_scv)

    @property
    def loss_ratio(self) -> float:
        """Gelenbe's formula, in a form that does not overflow above rho = 1."""
        load, places = self._load, self.capacity_frames - 1
        exponent = self._decay * places
        if exponent < -_LARGEST_EXPONENT:
            return 1.0 - 1.0 / load
        if exponent > _LARGEST_EXPONENT:
            return 0.0
        return min(max(load * (1.0 - load) / (math.exp(exponent) - load * load), 0.0), 1.0)

    @property
    def waiting_mean_s(self) -> float:
        """Mean of the exponential law that ends with the queue."""
        load, decay, places = self._load, self._decay, self.capacity_frames - 1
        if places <= 0:
            return 0.0
        exponent = decay * places
        beyond = places / math.expm1(exponent) if abs(exponent) < _LARGEST_EXPONENT else -places * (exponent < 0.0)
        return self._scale(load) * self.service_s * max(1.0 / decay - beyond, 0.0)

    def _scale(self, load: float) -> float:
        if load >= 1.0:
            return 1.0
        ratio = load * (self.arrival_scv + self.service_scv) / (load * self.arrival_scv + self.service_scv)
        return ratio * _correction(load, self.arrival_scv, self.service_scv)

    @property
    def sojourn_mean_s(self) -> float:
        """Waiting and service."""
        return self.waiting_mean_s + self.service_s


def _correction(load: float, arrival_scv: float, service_scv: float) -> float:
    """Krämer and Langenbach-Belz's factor g on the heavy-traffic wait."""
    if arrival_scv <= 1.0:
        both = arrival_scv + service_scv
        return math.exp(-2.0 * (1.0 - load) * (1.0 - arrival_scv) ** 2 / (3.0 * load * both))
    return math.exp(-(1.0 - load) * (arrival_scv - 1.0) / (arrival_scv + 4.0 * service_scv))


def kingman_bound_s(arrival_pps: float, arrival_scv: float, service_s: float, service_scv: float) -> float:
    """Kingman's upper bound on the mean waiting time in GI/G/1.

    ``W <= λ(σ_a² + σ_s²)/(2(1 - rho))``, σ² the variances of gap and service time; tight as rho goes to 1. Source:
    Kingman, Biometrika 49, 1962; Kleinrock, "Queueing Systems, Volume 2", sec. 2.2.
    """
    load = arrival_pps * service_s
    require_range("GI/G/1", load < 1.0, "is not stable: the load must be < 1")
    variances = arrival_scv / arrival_pps**2 + service_scv * service_s**2
    return arrival_pps * variances / (2.0 * (1.0 - load))
