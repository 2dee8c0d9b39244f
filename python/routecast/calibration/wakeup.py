"""Calibrate the causes of latency in a software router: the wake-up of its thread, and interruptions of its core.

A frame that finds the router asleep waits until its thread runs (S6); while it works, the host, ticks and other
interrupts take the core away now and then, and the frames that queued up meanwhile drains at the rate 1/T − λ. The
wake-up's distribution is read off the latency at the least load, where frames come one by one: latency less the time of
service. Rate and mean length of the interruptions are then the ones with which the simulator best meets the measured
medians, 90th and 99th percentiles at the loads that calibrate. Interruptions last exponentially distributed times, the
least assuming law for what is only known by its tail.
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
"""The slowest wake-ups of a trial are those that an interruption hit as well: they are left to the interruptions."""
QUIET_SHARE = 0.995
"""Where there are no interruptions, the slowest are the wake-up's own, but for the last step up to the greatest."""

MATCHED = ((100, 1.0), (180, 0.5), (198, 0.5))
"""What is matched, as places in :data:`QUANTILES` with weights: median, 90th and 99th percentile."""

LONGEST_S = 20e-3
SHORTEST_S = 1e-6
LEAST_SHARE = 1e-5
LARGEST_SHARE = 0.25
SEEDS = (1, 2)

GRID_SHARES = (0.002, 0.01, 0.05, 0.15)
GRID_MEANS_S = (20e-6, 60e-6, 200e-6, 600e-6)
"""Where the search begins: shares of a core's work that interruptions add, and their mean lengths."""

MakeRouter = Callable[[float, RandomTime | None, Interruptions | None], RouterModel]
"""Makes the router from its time per frame (seconds), wake-up and interruptions."""


@value
class LatencyPoint:
    """Latency as measured under one load."""

    load: OfferedLoad
    completion_s: float = field("Time per frame in overload, the share of interruptions in it")
    quantiles_s: tuple[float, ...] = field("Latency at the probabilities :data:`QUANTILES`")
    make_router: MakeRouter = field("Makes the model of the router that was loaded")

    @property
    def gaps(self) -> float:
        """Mean time between frames over the median latency: above 1, frames mostly come one by one."""
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

    ``points``: the one whose gaps are longest gives the wake-up; all give the interruptions; ``duration_s``: simulated
    time of each trial of the fit. Raises FitProblem: there is no point, or frames never arrive one by one, so that
    wake-up and queueing cannot be separated.
    """
    import numpy as np
    from scipy.optimize import minimize

    if not points:
        raise FitProblem(series, "no latency calibrates: name at least one load")
    alone = max(points, key=lambda point: point.gaps)
    if alone.gaps < 1.0:
        message = (
            f"frames are {1e6 / alone.load.rate_pps:.3g} us apart at the least load, and the median latency is "
            f"{1e6 * alone.quantiles_s[100]:.3g} us: calibrate at a lower load, or on a slower device"
        )
        raise FitProblem(series, message)

    def wakeup(completion_s: float, *, is_quiet: bool) -> RandomTime:
        share = QUIET_SHARE if is_quiet else WAKEUP_SHARE
        least = np.interp(np.linspace(0.0, share, 101), QUANTILES, alone.quantiles_s) - completion_s
        return RandomTime(quantiles_s=tuple(float(value) for value in np.maximum.accumulate(np.maximum(least, 0.0))))

    def interruptions(theta: NDArray[np.float64]) -> Interruptions:
        mean_s = float(np.exp(np.clip(theta[1], math.log(SHORTEST_S), math.log(LONGEST_S))))
        share = float(np.exp(np.clip(theta[0], math.log(LEAST_SHARE), math.log(LARGEST_SHARE))))
        return Interruptions(rate_hz=share / mean_s, duration=RandomTime(mean_s=mean_s, variation="exponential"))

    def errors(interruptions: Interruptions | None) -> list[tuple[float, float]]:
        pairs = []
        for point in points:
            stretch = interruptions.stretch if interruptions else 1.0
            router = point.router(wakeup(alone.completion_s / stretch, is_quiet=interruptions is None), interruptions)
            for seed in SEEDS:
                simulated = simulated_quantiles_s(router, point.load, duration_s, seed)
                pairs += [
                    (weight, math.log(max(simulated[place], 1e-9) / max(point.quantiles_s[place], 1e-9)))
                    for place, weight in MATCHED
                ]
        return pairs

    def loss(theta: NDArray[np.float64]) -> float:
        return sum(weight * error**2 for weight, error in errors(interruptions(theta)))

    guesses = [np.log(np.array([share, mean_s])) for share in GRID_SHARES for mean_s in GRID_MEANS_S]
    best = min(guesses, key=loss)
    simplex = best + np.array([[0.0, 0.0], [0.7, 0.0], [0.0, 0.7]])
    solution = minimize(
        loss,
        best,
        method="Nelder-Mead",
        options={"maxfev": 50, "xatol": 0.05, "fatol": 0.01, "initial_simplex": simplex},
    )
    with_them = interruptions(solution.x)
    chosen = with_them if solution.fun < sum(weight * error**2 for weight, error in errors(None)) else None
    pairs = errors(chosen)
    return FittedWakeup(
        wakeup=wakeup(alone.completion_s / (chosen.stretch if chosen else 1.0), is_quiet=chosen is None),
        interruptions=chosen,
        misfit_ratio=math.sqrt(sum(weight * error**2 for weight, error in pairs) / sum(weight for weight, _ in pairs)),
    )


def simulated_quantiles_s(router: RouterModel, load: OfferedLoad, duration_s: float, seed: int) -> tuple[float, ...]:
    """Return the simulated latency at the probabilities :data:`QUANTILES`; zeros if nothing gets through."""
    from routecast import _core

    trial = Simulate(router, seed=seed, steady_state=False).trial(load, duration_s)
    if trial.latency is None or not trial.latency.hdr_base64:
        return (0.0,) * len(QUANTILES)
    return tuple(_core.hdr_quantiles_s(trial.latency.hdr_base64, QUANTILES))
