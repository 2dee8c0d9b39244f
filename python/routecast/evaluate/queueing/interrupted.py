"""A queue whose server is interrupted while it works: the backlogs that interruptions leave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from routecast.evaluate.queueing.markov import Queue, require_range
from routecast.evaluate.queueing.mixed_time import MixedTime
from routecast.router.random_time import Interruptions, RandomTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DD1Interrupted", "sorted_points"]

_POINTS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class DD1Interrupted(Queue):
    """D/D/1 whose server is interrupted while it works: equal gaps g, constant service S < g. Approximation.

    An interruption D delays the frame in service by D and the j-th one after it by ``D - jδ``, ``δ = g - S``, as long
    as that is positive: ``P(W > t) = rS·Σ_j P(D > t + jδ)`` at r interruptions per second of work. That is exact while
    each backlog has drained before the next interruption. A share ``u = rE[D]/((1 + rE[D])(1 - rho))`` has not: waits
    are stretched by ``1/(1 - u)``, and the chance to wait follows from the busy periods of M/G/1; exact in the limit of
    short gaps for exponential D.

    Parameters
    ----------
    service_s : float
        Without interruptions.
    room_frames : float
        Frames that can wait. Of what a long interruption brings, the rest is lost; valid while such losses are rare.
    """

    arrival_pps: float
    service_s: float
    interruptions: Interruptions
    room_frames: float = math.inf

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
    count = 1 if time.is_constant else _POINTS
    points = np.array([time.quantile_s((number + 0.5) / count) for number in range(count)])
    # Points at the middle of their share have not quite the mean of the law.
    points *= time.average_s / points.mean() if points.mean() > 0.0 else 1.0
    return points, np.concatenate([np.cumsum(points[::-1])[::-1], [0.0]])
