"""Other dynamics of activation, each fitted to the same idle curve by the simulator itself.

Which mechanism a curve speaks for is told by what the others miss with as many costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from routecast.calibrate.activation_costs import ActivationCosts
from routecast.router.model import PollDiscipline, RandomTime, RouterModel
from routecast.study.napi.observed import CORE, ArrivalKind, observe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ALTERNATIVES", "Alternative", "Dynamics", "fit_alternative"]

FEWEST_FRAMES, TRIES = 5_000, 90
"""Frames of a trial and trials of a point while the costs are searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamics:
    """How a core is activated, with costs per packet and per interrupt, and perhaps a time between interrupts.

    ``third`` is the third cost: a ``wakeup`` delays every interrupt of a sleeping core, ``moderation`` keeps interrupts
    apart, ``none`` leaves two costs.
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
        """Return the core; ``wakeup_s`` of the costs is the third cost, whichever it is."""
        bare = replace(costs, wakeup_s=0.0).router()
        task = bare.task(CORE)
        activation = replace(
            task.activation,
            discipline=self.discipline,
            moderation_s=costs.wakeup_s if self.third == "moderation" else 0.0,
            wakeup=RandomTime(mean_s=costs.wakeup_s) if self.third == "wakeup" and costs.wakeup_s > 0.0 else None,
        )
        core = replace(task, activation=activation)
        return replace(bare, tasks=tuple(core if each is task else each for each in bare.tasks))


ALTERNATIVES = (
    Dynamics(arrivals="poisson", discipline="exhaustive", third="wakeup"),
    Dynamics(arrivals="poisson", discipline="exhaustive", third="moderation"),
    Dynamics(arrivals="poisson", discipline="gated", third="moderation"),
    Dynamics(arrivals="cbr", discipline="exhaustive", third="wakeup"),
    Dynamics(arrivals="cbr", discipline="exhaustive", third="moderation"),
    Dynamics(arrivals="poisson", discipline="exhaustive", third="none"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Dynamics with the costs that fit best, and the root mean square error of the simulated idle share."""

    dynamics: Dynamics
    costs: ActivationCosts
    rmse: float


def fit_alternative(
    dynamics: Dynamics,
    pairs: tuple[tuple[float, float], ...],
    start: ActivationCosts,
    *,
    frames: int,
    seed: int,
) -> Alternative:
    """Fit the costs of some dynamics to a curve, each trial answered by the simulator.

    Parameters
    ----------
    dynamics : Dynamics
    pairs : tuple of (float, float)
        Offered loads > 0 and idle shares.
    start : ActivationCosts
        Where the search begins.
    frames, seed : int
        Of the trials that judge the costs found; the search takes fewer frames.
    """
    import numpy as np
    from scipy.optimize import minimize

    count = 2 if dynamics.third == "none" else 3

    def costs_of(theta: NDArray[np.float64]) -> ActivationCosts:
        values = [float(value) for value in np.exp(theta)]
        return ActivationCosts(
            per_packet_s=values[0], per_interrupt_s=values[1], wakeup_s=values[2] if count > 2 else 0.0
        )

    def error(costs: ActivationCosts, trial_frames: int) -> float:
        router = dynamics.router(costs)
        squares = [
            (observe(router, rate, arrivals=dynamics.arrivals, frames=trial_frames, seed=seed).idle_ratio - idle) ** 2
            for rate, idle in pairs
        ]
        return math.sqrt(math.fsum(squares) / len(squares))

    least = 0.01 * start.per_packet_s  # the search is in logarithms
    first = [start.per_packet_s, max(start.per_interrupt_s, least), max(start.wakeup_s, least)][:count]

    def loss(theta: NDArray[np.float64]) -> float:
        return error(costs_of(theta), min(frames, FEWEST_FRAMES))

    found = minimize(
        loss,
        np.log(first),
        method="Nelder-Mead",
        options={"maxfev": TRIES, "xatol": 1e-3, "fatol": 1e-5},
    )
    costs = costs_of(found.x)
    return Alternative(dynamics=dynamics, costs=costs, rmse=error(costs, frames))
