"""What random services and interruptions lose of recorded frames, in their own queues and behind them.

With services X of mean m, the n-th frame leaves a server at ``D_n = max over k of (a_k + X_k + … + X_n)``. Beside a
queue whose services all take ``m(1 + d)`` and which it leaves at ``D'_n``, it is later by at most the maximum of the
walk ``Σ (X - m(1 + d))``, which exceeds x with a chance of at most ``e^{-θx}`` where
``E[e^{θX}] = e^{θm(1+d)}`` (Kingman, Proceedings of the Cambridge Philosophical Society 60(2), 1964). The n-th frame
finds k frames or more only if the k-th before it is still there::

    P(N_n >= k) <= e^{-θ(a_n - D'_{n-k})}

What random services hold back they release together. A link that is no slower than those that its frames came by, or a
fast task unit, holds no more frames than waited before it when it became busy, so a queue of K frames behind such
stations overflows only where they hold K frames at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from routecast.evaluate._bisection import last_holding
from routecast.evaluate.solve._recording import PS, Floats, Instants
from routecast.router.model import Interruptions, RandomTime

__all__ = ["ChanceQueue", "decay_per_s", "held_beyond", "paced_beyond"]

_CAUTION = 1.25
_SHARES = 0.3, 0.6, 0.9
"""Shares of the idle time of a server by which the services of the queue beside it are longer."""
_SLOPES = np.geomspace(0.005, 3.0, 24)
_MAX_ARRIVALS = 20_000
"""Arrivals that stand for all of them, evenly taken."""
_MIN_SCV, _FULL = 1e-6, 1.0 - 1e-6
_HALVINGS = 60


def decay_per_s(service_s: float, scv: float, interruptions: Interruptions | None, longer: float) -> float:
    """Return θ of services with interruptions whose walk falls by a share ``longer`` of their mean, 1/s.

    Services and interruptions count as gamma times with a quarter more squared variation. ``service_s``: the longest
    mean of an uninterrupted service.

    Examples
    --------
    >>> round(decay_per_s(1.0, 0.8, None, 1.0), 3)  # 1.25 · 0.8: exponential services, -ln(1 - θ) = 2θ
    0.797
    """
    scv = max(_CAUTION * scv, _MIN_SCV)
    rate_hz, away, away_scv, stretch = 0.0, 0.0, _MIN_SCV, 1.0
    if interruptions is not None:
        duration: RandomTime = interruptions.duration
        rate_hz, away, stretch = interruptions.rate_hz, duration.average_s, interruptions.stretch
        away_scv = max(_CAUTION * duration.squared_cv, _MIN_SCV)

    def falls(theta: float) -> bool:
        extra = 0.0
        if rate_hz > 0.0 and away > 0.0:
            if theta * away * away_scv >= _FULL:
                return False
            exponent = -math.log1p(-theta * away * away_scv) / away_scv
            if exponent > 50.0:
                return False
            extra = rate_hz * math.expm1(exponent)
        work = (theta + extra) * service_s * scv
        return work < _FULL and -math.log1p(-work) / scv <= theta * service_s * stretch * (1.0 + longer)

    return last_holding(falls, 1.0 / service_s, _HALVINGS)


@dataclass(frozen=True, slots=True)
class _Beside:
    """A queue with longer services beside the random one: when its frames leave, and θ, 1/s."""

    left: Instants
    theta: float


class ChanceQueue:
    """Bounds of the number of frames that the arrivals of a task unit with random services find.

    ``at``: when they arrive; ``room``: the most frames inside; ``work_s``: the mean service of each, with its
    interruptions; ``late_s``: how much later the server may begin.
    """

    def __init__(
        self,
        at: Instants,
        work_s: Floats,
        servers: int,
        room: int,
        *,
        scv: float,
        interruptions: Interruptions | None,
        late_s: float,
    ) -> None:
        from routecast import _core  # the compiled part is loaded where it is used

        self.at, self._late_s = at, late_s
        self._beside: list[_Beside] = []
        self._room, self._tails = room, dict[int, float]()
        length_s = float(at[-1] - at[0]) / PS if len(at) > 1 else 0.0
        load = float(work_s.sum()) / max(length_s * servers, 1e-300)
        longest_s = float(work_s.max(initial=0.0)) / (interruptions.stretch if interruptions is not None else 1.0)
        if load >= 1.0 or longest_s <= 0.0:
            return
        for share in _SHARES:
            longer = share * (1.0 / load - 1.0)
            work = np.rint(work_s * (1.0 + longer) * PS).astype(np.uint64)
            packed = _core.queue_starts(at.tobytes(), work.tobytes(), servers, len(at))
            left = np.frombuffer(packed, np.uint64) + work
            theta = decay_per_s(longest_s, scv, interruptions, longer)
            self._beside.append(_Beside(np.maximum.accumulate(left), theta))

    def finds(self, frames: int) -> float:
        """Return a bound of the share of arrivals that find so many frames or more."""
        if frames <= 0:
            return 1.0
        if frames not in self._tails:
            self._tails[frames] = min((self._share(beside, frames) for beside in self._beside), default=1.0)
        return self._tails[frames]

    def _share(self, beside: _Beside, frames: int) -> float:
        if len(self.at) <= frames:
            return 0.0
        every = -(-len(self.at) // _MAX_ARRIVALS)
        at, left = self.at[frames::every], beside.left[:-frames:every]
        slack_s = (at.astype(np.float64) - left.astype(np.float64)) / PS - self._late_s
        return float(np.exp(-beside.theta * np.maximum(slack_s, 0.0)).mean())

    def tails(self) -> tuple[Floats, Floats]:
        """Return bounds of the shares of arrivals that find more frames than each of some lengths, and the lengths.

        The lengths rise from 0, more and more apart, to all of the room.
        """
        lengths = [0]
        while lengths[-1] < self._room:
            lengths.append(min(lengths[-1] + max(1, lengths[-1] // 4), self._room))
        # Up to the next length as many as find one more frame than this one.
        tails = [self.finds(length + 1) for length in lengths[:-1]]
        return np.array(tails), np.array(lengths, np.float64)


def held_beyond(queues: Iterable[ChanceQueue], frames: int) -> float:
    """Return a bound of the mean number of frames, for each arrival, beyond so many that all of the queues hold.

    Chernoff's bound of the sum of their lengths, as if each were independent of the others at an arrival:
    ``E[(ΣN - k)+] <= ΠE[e^{φN}]·e^{-φ(k+1)}/(1 - e^{-φ})`` for every φ > 0.
    """
    held = list(queues)
    if frames < 1:
        return 1.0
    log_moments = np.zeros(len(_SLOPES))
    for queue in held:
        # E[e^{φN}] = 1 + Σ P(N >= k)·(e^{φk} - e^{φ(k-1)}), up to all of its room.
        tails, lengths = queue.tails()
        known = tails > 0.0
        lengths, apart = lengths[1:][known], np.diff(lengths)[known]
        if len(lengths):
            terms = np.log(tails[known]) + np.outer(_SLOPES, lengths) + np.log(-np.expm1(-np.outer(_SLOPES, apart)))
            most = np.maximum(terms.max(axis=1), 0.0)
            log_moments += most + np.log(np.exp(-most) + np.exp(terms - most[:, None]).sum(axis=1))
    bounds = log_moments - _SLOPES * (frames + 1) - np.log(-np.expm1(-_SLOPES))
    return float(np.exp(min(bounds.min(), 0.0)))


def paced_beyond(load: float, scv: float, room: int) -> float:
    """Return Kingman's bound of the share of frames that find a room full where constant services take them in.

    ``scv``: squared variation of their gaps, which count as gamma times with a quarter more of it.

    Examples
    --------
    >>> paced_beyond(0.6, 0.8, 1) > 0.3 > 0.001 > paced_beyond(0.6, 0.8, 16)
    True
    """
    scv = max(_CAUTION * scv, _MIN_SCV)
    theta = last_holding(lambda theta: theta <= math.log1p(theta * scv / load) / scv, 1.0, _HALVINGS)
    return math.exp(-theta * max(room, 0))
