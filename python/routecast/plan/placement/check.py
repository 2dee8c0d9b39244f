"""The check of a placement by simulation: what the closed form predicts, packet by packet, with other seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from routecast.errors import RoutecastError
from routecast.evaluate.simulate import Simulate
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.whole import Placement, load_of, router_of

__all__ = ["DIFFERS", "Checked", "simulated"]

DIFFERS = 0.05
"""Figures farther apart than this part are said to differ."""
_FRAMES = 60_000
_LONGEST_S = 0.5
_SHORTEST_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Prediction and simulation at a load.

    Parameters
    ----------
    offered_pps : float
    predicted_pps, simulated_pps : float
        Forwarded; NaN where the simulation could not be run.
    latency_s : float
        Mean, simulated.
    seeds : tuple of int
    trouble : str
        Why there is no simulation.
    """

    offered_pps: float
    predicted_pps: float
    simulated_pps: float
    latency_s: float = math.nan
    seeds: tuple[int, ...] = ()
    trouble: str = ""

    @property
    def difference_ratio(self) -> float:
        """``simulated / predicted − 1``."""
        return self.simulated_pps / self.predicted_pps - 1.0 if self.predicted_pps > 0.0 else math.nan

    @property
    def differs(self) -> bool:
        """Whether the two are more than 5 % apart."""
        return abs(self.difference_ratio) > DIFFERS


def simulated(
    problem: PlacementProblem,
    placement: Placement,
    *,
    offered_pps: float,
    predicted_pps: float,
    seeds: tuple[int, ...] = (11, 12),
) -> Checked:
    """Simulate a placement at a load."""
    duration_s = min(max(_FRAMES / offered_pps, _SHORTEST_S), _LONGEST_S)
    load = load_of(problem).at(offered_pps)
    try:
        model = router_of(problem, placement)
        trials = [Simulate(model, seed=seed, steady_state=False).trial(load, duration_s) for seed in seeds]
    except RoutecastError as problem_found:
        return Checked(
            offered_pps=offered_pps,
            predicted_pps=predicted_pps,
            simulated_pps=math.nan,
            trouble=str(problem_found).splitlines()[0],
        )
    late = [trial.latency.mean_s for trial in trials if trial.latency is not None]
    return Checked(
        offered_pps=offered_pps,
        predicted_pps=predicted_pps,
        simulated_pps=fmean(trial.forwarded_pps for trial in trials),
        latency_s=fmean(late) if late else math.nan,
        seeds=seeds,
    )
