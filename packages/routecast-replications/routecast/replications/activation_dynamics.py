"""Fit the costs of a core to its simulated idle time under several dynamics of activation.

:mod:`routecast.replications.activation_costs` has the closed form of one of the dynamics: exhaustive polls, a wake-up
and Poisson arrivals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from routecast.evaluate.simulate import Simulate
from routecast.load.arrivals import Arrivals
from routecast.load.offered import OfferedLoad
from routecast.replications.activation_costs import ActivationCosts
from routecast.router.model import PollDiscipline, RandomTime, RouterModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DYNAMICS", "ArrivalKind", "Dynamics", "FittedDynamics", "Observed", "fit_dynamics", "observe", "rms"]

CORE = "core 0"
"""Name of the working task unit in the routers of one core."""

SEARCH_FRAMES, MAX_TRIALS = 5_000, 90
"""Frames of a trial, and number of trials, in the search for the costs."""

ArrivalKind = Literal["cbr", "poisson"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One core at one offered load, with the internal measurements of Bolla et al. 2009, fig. 6.

    ``arrivals``: of the frames, in words.
    """

    offered_pps: float
    forwarded_pps: float
    idle_ratio: float
    interrupts_per_packet: float
    polls_per_packet: float
    latency_p50_s: float
    arrivals: str

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "offered_pps": self.offered_pps,
            "forwarded_pps": self.forwarded_pps,
            "idle_ratio": self.idle_ratio,
            "interrupts_per_packet": self.interrupts_per_packet,
            "polls_per_packet": self.polls_per_packet,
            "latency_p50_s": self.latency_p50_s,
        }


def observe(router: RouterModel, rate_pps: float, arrivals: ArrivalKind, *, frames: int, seed: int) -> Observed:
    """Simulate a trial of ``frames`` frames of a router with one core."""
    load = OfferedLoad(rate_pps=rate_pps, arrivals=Arrivals.poisson() if arrivals == "poisson" else Arrivals.cbr())
    # In overload the throughput is steady long before the latency of a filling queue.
    trial = Simulate(router, seed=seed, steady_state=False).trial(load, frames / rate_pps)
    core = next(activity for activity in trial.activity if activity.name == CORE)
    forwarded_pps = trial.forwarded_pps or math.nan
    return Observed(
        offered_pps=rate_pps,
        forwarded_pps=trial.forwarded_pps,
        idle_ratio=1.0 - core.busy_ratio,
        interrupts_per_packet=core.interrupts_per_s / forwarded_pps,
        polls_per_packet=core.polls_per_s / forwarded_pps,
        latency_p50_s=trial.latency.p50_s if trial.latency else math.nan,
        arrivals=trial.arrivals,
    )


def rms(errors: Iterable[float]) -> float:
    """Return the root mean square of the errors that are numbers; NaN without any."""
    squares = [error**2 for error in errors if not math.isnan(error)]
    return math.sqrt(fmean(squares)) if squares else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamics:
    """Activation of a core with costs per packet and per interrupt, and a third cost if ``third`` is not "none".

    The third cost is a ``wakeup``, which delays every interrupt of a sleeping core, or a ``moderation``, which keeps
    interrupts apart. Dynamics with the same number of costs explain an idle curve differently well.
    """

    arrivals: ArrivalKind
    discipline: PollDiscipline
    third: Literal["wakeup", "moderation", "none"]

    @property
    def words(self) -> str:
        """The dynamics in words."""
        arrivals = "Poisson" if self.arrivals == "poisson" else "CBR"
        third = {"wakeup": "wake-up", "moderation": "moderation", "none": "neither"}[self.third]
        return f"{arrivals}, {self.discipline}, {third}"

    def router(self, costs: ActivationCosts) -> RouterModel:
        """Return the router; ``wakeup_s`` of the costs is the third cost of either kind."""
        third_s = costs.wakeup_s
        router = replace(costs, wakeup_s=0.0).router()
        core = router.task(CORE)
        activation = replace(
            core.activation,
            discipline=self.discipline,
            moderation_s=third_s if self.third == "moderation" else 0.0,
            wakeup=RandomTime(mean_s=third_s) if self.third == "wakeup" and third_s > 0.0 else None,
        )
        activated = replace(core, activation=activation)
        return replace(router, tasks=tuple(activated if task is core else task for task in router.tasks))


DYNAMICS = (
    Dynamics(arrivals="poisson", discipline="exhaustive", third="wakeup"),
    Dynamics(arrivals="poisson", discipline="exhaustive", third="moderation"),
    Dynamics(arrivals="poisson", discipline="gated", third="moderation"),
    Dynamics(arrivals="cbr", discipline="exhaustive", third="wakeup"),
    Dynamics(arrivals="cbr", discipline="exhaustive", third="moderation"),
    Dynamics(arrivals="poisson", discipline="exhaustive", third="none"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedDynamics:
    """Dynamics with the costs that fit best, and the root mean square error of the simulated idle share."""

    dynamics: Dynamics
    costs: ActivationCosts
    rmse: float


def fit_dynamics(
    dynamics: Dynamics, pairs: Sequence[tuple[float, float]], start: ActivationCosts, *, frames: int, seed: int
) -> FittedDynamics:
    """Fit the costs of dynamics to an idle curve by simulation of each trial.

    ``pairs``: offered loads > 0 and idle shares; ``start``: costs at which the search begins; ``frames``: length of the
    trials for the final error; the trials of the search have at most 5,000 frames.
    """
    import numpy as np
    from scipy.optimize import minimize

    def costs_of(logarithms: NDArray[np.float64]) -> ActivationCosts:
        per_packet_s, per_interrupt_s, *third = map(float, np.exp(logarithms))
        return ActivationCosts(
            per_packet_s=per_packet_s, per_interrupt_s=per_interrupt_s, wakeup_s=third[0] if third else 0.0
        )

    def error(costs: ActivationCosts, frames: int) -> float:
        router = dynamics.router(costs)
        return rms(
            observe(router, rate_pps, dynamics.arrivals, frames=frames, seed=seed).idle_ratio - idle
            for rate_pps, idle in pairs
        )

    def search_error(logarithms: NDArray[np.float64]) -> float:
        return error(costs_of(logarithms), min(frames, SEARCH_FRAMES))

    min_s = 0.01 * start.per_packet_s
    first = [start.per_packet_s, max(start.per_interrupt_s, min_s), max(start.wakeup_s, min_s)]
    solution = minimize(
        search_error,
        np.log(first[:2] if dynamics.third == "none" else first),
        method="Nelder-Mead",
        options={"maxfev": MAX_TRIALS, "xatol": 1e-3, "fatol": 1e-5},
    )
    costs = costs_of(solution.x)
    return FittedDynamics(dynamics=dynamics, costs=costs, rmse=error(costs, frames))
