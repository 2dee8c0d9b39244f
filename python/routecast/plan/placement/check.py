"""Placements packet by packet: what the closed form predicts, simulated, with the same seeds for all that are compared.

Far beyond what a router carries its forwarded rate says little: work goes into frames that are lost later. So what a
placement carries without loss is looked for by simulation too, downwards from what the closed form predicts, or upwards
if that is carried.
"""

from __future__ import annotations

import dataclasses
import math
from statistics import fmean
from typing import Literal

from routecast.errors import RoutecastError
from routecast.evaluate.simulate import Simulate
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.whole import Placement, load_of, router_of
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel

__all__ = ["DIFFERS", "LOST", "SEEDS", "Checked", "Shown", "Trials"]

DIFFERS = 0.05
"""Figures farther apart than this part are said to differ."""
LOST = 0.01
"""Part of the frames that a load "without loss" may lose in simulation: what bursts cost."""
SEEDS = (11, 12)
_FRAMES = 30_000
_LONGEST_S = 0.5
_SHORTEST_S = 0.02
_NEAR = 1.01
_MORE = 1.25
_MOST_STEPS = 12


@value
class Checked:
    """Prediction and simulation of a placement."""

    rate: Literal["lossless", "forwarded"] = field(
        "What ``predicted_pps`` and ``simulated_pps`` are: the greatest load without loss (in simulation: of "
        "which at most 1 % is lost), or what is forwarded of ``offered_pps``"
    )
    # NaN where the simulation could not be run.
    predicted_pps: float
    simulated_pps: float
    offered_pps: float = field("The file's load, or the target, frames/s")
    # Simulated at ``offered_pps``; mean latency.
    forwarded_pps: float = math.nan
    latency_s: float = math.nan
    seeds: tuple[int, ...] = SEEDS
    trouble: str = field("Why there is no simulation", default="")

    @property
    def difference_ratio(self) -> float:
        """``simulated / predicted − 1``."""
        return self.simulated_pps / self.predicted_pps - 1.0 if self.predicted_pps > 0.0 else math.nan

    @property
    def differs(self) -> bool:
        """Whether the two are more than 5 % apart."""
        return abs(self.difference_ratio) > DIFFERS


@value
class Shown:
    """What one or several trials show."""

    forwarded_pps: float
    loss_ratio: float = field("Part of the load that was asked for that was dropped, or that no wire could bring")
    latency_s: float


_Key = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, tuple[int, ...]], ...]]


@dataclasses.dataclass(slots=True)
class Trials:
    """Simulations for one problem, each made once.

    Parameters
    ----------
    problem : PlacementProblem
    """

    problem: PlacementProblem
    _known: dict[tuple[_Key, float, int], Shown] = dataclasses.field(default_factory=dict)
    _models: dict[_Key, RouterModel] = dataclasses.field(default_factory=dict)

    def at(self, placement: Placement, rate_pps: float) -> Shown:
        """Return the means of all seeds at a load.

        Raises
        ------
        RoutecastError
            The placement cannot be simulated.
        """
        every = [self._trial(placement, rate_pps, seed) for seed in SEEDS]
        late = [one.latency_s for one in every if math.isfinite(one.latency_s)]
        return Shown(
            forwarded_pps=fmean(one.forwarded_pps for one in every),
            loss_ratio=fmean(one.loss_ratio for one in every),
            latency_s=fmean(late) if late else math.nan,
        )

    def carries(self, placement: Placement, rate_pps: float) -> bool:
        """Return whether no seed shows loss at a load."""
        return all(self._trial(placement, rate_pps, seed).loss_ratio <= LOST for seed in SEEDS)

    def lossless_pps(self, placement: Placement, near_pps: float) -> float:
        """Return the greatest load that is carried without loss, to 1 %, looked for from one on; 0 if none is found."""
        low, high = near_pps, near_pps
        for _ in range(_MOST_STEPS):
            if not self.carries(placement, high):
                break
            low, high = high, high * _MORE
        if low == high:
            for _ in range(_MOST_STEPS):
                low, high = 0.5 * low, low
                if self.carries(placement, low):
                    break
            else:
                return 0.0
        while high > low * _NEAR:
            middle = math.sqrt(low * high)
            if self.carries(placement, middle):
                low = middle
            else:
                high = middle
        return low

    def _trial(self, placement: Placement, rate_pps: float, seed: int) -> Shown:
        name = (tuple(placement.servers.items()), tuple(sorted(placement.pins.items())))
        key = (name, rate_pps, seed)
        if key not in self._known:
            if name not in self._models:
                self._models[name] = router_of(self.problem, placement)
            if not rate_pps > 0.0:
                raise RoutecastError("there is no load to simulate")
            duration_s = min(max(_FRAMES / rate_pps, _SHORTEST_S), _LONGEST_S)
            simulate = Simulate(self._models[name], seed=seed, steady_state=False)
            trial = simulate.trial(load_of(self.problem).at(rate_pps), duration_s)
            self._known[key] = Shown(
                forwarded_pps=trial.forwarded_pps,
                # What the wires of the outer ports cannot bring is not carried either.
                loss_ratio=max(trial.loss_ratio, 1.0 - trial.offered_pps / rate_pps),
                latency_s=math.nan if trial.latency is None else trial.latency.mean_s,
            )
        return self._known[key]
