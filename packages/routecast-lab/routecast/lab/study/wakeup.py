"""Calibrate the causes of latency in a software router: the wake-up of its thread, and interruptions of its core.

A frame that arrives while the router's thread sleeps waits until the thread runs (S6). While the thread works, the
host, ticks and other interrupts interrupt the core at times, and the frames that queued meanwhile drain at the rate
1/T − λ. The wake-up's distribution is the latency less the service time at the smallest load, where frames arrive
singly. The rate and the mean length of the interruptions are those with which the simulator best matches the measured
medians, 90th and 99th percentiles at the calibrating loads. The length of an interruption is exponential, the
distribution with the fewest assumptions if only its tail is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routecast.errors import FitProblem
from routecast.evaluate.simulate import Simulate
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value
from routecast.router.model import Interruptions, RandomTime, RouterModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["QUANTILES", "FittedWakeup", "LatencyPoint", "MakeRouter", "fit_wakeup"]

QUANTILES = tuple(number / 200 for number in range(201))
"""Probabilities of the quantiles that a :class:`LatencyPoint` carries."""

WAKEUP_SHARE = 0.98
"""Share of the wake-ups that enter the distribution: interruptions explain the slowest, which they prolonged."""
QUIET_SHARE = 0.995
"""The same without interruptions, where only the step to the largest latency is left out."""

MATCHED = ((100, 1.0), (180, 0.5), (198, 0.5))
"""Matched quantiles, as indices of :data:`QUANTILES` with weights: median, 90th and 99th percentile."""

MIN_MEAN_S, MAX_MEAN_S = 1e-6, 20e-3
MIN_SHARE, MAX_SHARE = 1e-5, 0.25
SEEDS = (1, 2)

GRID_SHARES = (0.002, 0.01, 0.05, 0.15)
GRID_MEANS_S = (20e-6, 60e-6, 200e-6, 600e-6)
"""Starts of the search: shares that interruptions add to a core's work, and their mean lengths."""

MakeRouter = Callable[[float, RandomTime | None, Interruptions | None], RouterModel]
"""Makes the router from its time per frame (seconds), wake-up and interruptions."""


@value
class LatencyPoint:
    """Measured latency under one load."""

    load: OfferedLoad
    completion_s: float = field("Time per frame in overload, with the share of interruptions")
    quantiles_s: tuple[float, ...] = field("Latency at the probabilities :data:`QUANTILES`")
    make_router: MakeRouter = field("Makes the model of the measured router")

    @property
    def gaps(self) -> float:
        """Mean time between frames over the median latency: above 1, frames mostly arrive singly."""
        return 1.0 / self.load.rate_pps / self.quantiles_s[100]

    def router(self, wakeup: RandomTime | None, interruptions: Interruptions | None) -> RouterModel:
        """Make the router; the time per frame is the completion time without interruptions."""
        stretch = interruptions.stretch if interruptions else 1.0
        return self.make_router(self.completion_s / stretch, wakeup, interruptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedWakeup:
    """The calibrated wake-up and interruptions; ``misfit_ratio`` is the root mean square of the logarithmic errors."""

    wakeup: RandomTime
    interruptions: Interruptions | None
    misfit_ratio: float

    @property
    def interrupted_ratio(self) -> float:
        """Share of a core's time in overload that interruptions take."""
        return 1.0 - 1.0 / self.interruptions.stretch if self.interruptions else 0.0


def fit_wakeup(points: Sequence[LatencyPoint], *, duration_s: float = 0.25, series: str = "") -> FittedWakeup:
    """Fit wake-up and interruptions to measured latencies.

    The point with the longest gaps determines the wake-up, all points the interruptions. ``duration_s``: simulated time
    of each trial of the fit. Raises FitProblem: there is no point, or frames never arrive singly, so that wake-up and
    queueing cannot be separated.
    """
    import numpy as np
    from scipy.optimize import minimize

    if not points:
        raise FitProblem(series, "no latency to calibrate with: name at least one load")
    sparse = max(points, key=lambda point: point.gaps)
    if sparse.gaps < 1.0:
        message = (
            f"frames are {1e6 / sparse.load.rate_pps:.3g} us apart at the smallest load, and the median latency is "
            f"{1e6 * sparse.quantiles_s[100]:.3g} us: calibrate at a lower load, or on a slower device"
        )
        raise FitProblem(series, message)

    def wakeup(completion_s: float, *, is_quiet: bool) -> RandomTime:
        share = QUIET_SHARE if is_quiet else WAKEUP_SHARE
        delays_s = np.interp(np.linspace(0.0, share, 101), QUANTILES, sparse.quantiles_s) - completion_s
        return RandomTime(quantiles_s=tuple(map(float, np.maximum.accumulate(np.maximum(delays_s, 0.0)))))

    def interruptions(theta: NDArray[np.float64]) -> Interruptions:
        share = float(np.exp(theta[0]).clip(MIN_SHARE, MAX_SHARE))
        mean_s = float(np.exp(theta[1]).clip(MIN_MEAN_S, MAX_MEAN_S))
        return Interruptions(rate_hz=share / mean_s, duration=RandomTime(mean_s=mean_s, variation="exponential"))

    def errors(interruptions: Interruptions | None) -> list[tuple[float, float]]:
        pairs = []
        for point in points:
            stretch = interruptions.stretch if interruptions else 1.0
            router = point.router(wakeup(sparse.completion_s / stretch, is_quiet=interruptions is None), interruptions)
            for seed in SEEDS:
                simulated = simulated_quantiles_s(router, point.load, duration_s, seed)
                pairs += [
                    (weight, math.log(max(simulated[index], 1e-9) / max(point.quantiles_s[index], 1e-9)))
                    for index, weight in MATCHED
                ]
        return pairs

    def loss(theta: NDArray[np.float64]) -> float:
        return sum(weight * error**2 for weight, error in errors(interruptions(theta)))

    best = min((np.log([share, mean_s]) for share in GRID_SHARES for mean_s in GRID_MEANS_S), key=loss)
    simplex = best + np.array([[0.0, 0.0], [0.7, 0.0], [0.0, 0.7]])
    solution = minimize(
        loss,
        best,
        method="Nelder-Mead",
        options={"maxfev": 50, "xatol": 0.05, "fatol": 0.01, "initial_simplex": simplex},
    )
    loss_without = sum(weight * error**2 for weight, error in errors(None))
    chosen = interruptions(solution.x) if solution.fun < loss_without else None
    pairs = errors(chosen)
    return FittedWakeup(
        wakeup=wakeup(sparse.completion_s / (chosen.stretch if chosen else 1.0), is_quiet=chosen is None),
        interruptions=chosen,
        misfit_ratio=math.sqrt(sum(weight * error**2 for weight, error in pairs) / sum(weight for weight, _ in pairs)),
    )


def simulated_quantiles_s(router: RouterModel, load: OfferedLoad, duration_s: float, seed: int) -> tuple[float, ...]:
    """Return the simulated latency at the probabilities :data:`QUANTILES`; zeros if no frame is forwarded."""
    from routecast import _core

    trial = Simulate(router, seed=seed, steady_state=False).trial(load, duration_s)
    if trial.latency is None or not trial.latency.hdr_base64:
        return (0.0,) * len(QUANTILES)
    return tuple(_core.hdr_quantiles_s(trial.latency.hdr_base64, QUANTILES))
