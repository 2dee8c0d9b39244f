"""What is answered for a placement: the best mapping, how good it surely is, the next ones, what sharing costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from routecast.evaluate.plain import plain
from routecast.plan.placement.check import simulated
from routecast.plan.placement.exists import exists
from routecast.plan.placement.finder import Finder, Ranked, contradiction
from routecast.plan.placement.found import most_by_work
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.told import LinkUse, Seat, Sharing, links_of, seats_of, sharing_of
from routecast.plan.placement.whole import router_of

__all__ = ["PlacementAnswer", "Ranked", "answer"]

Progress = Callable[[int, int, str], None]
_STEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementAnswer:
    """The best mapping of a problem.

    Parameters
    ----------
    problem : PlacementProblem
    best : Ranked
    bound : float
        No mapping is better, as far as ``bound_says``.
    bound_says : str
    by_work : float
        Frames per second that no mapping, no pinning and no scheduler can go beyond with these costs.
    runners_up : tuple of Ranked
    runners_say : str
        Among which mappings these are the next best.
    seats : tuple of Seat
    sharing : tuple of Sharing
    links : tuple of LinkUse
    seconds : float
        Of the search.
    predictions : int
    notes : tuple of str
    """

    problem: PlacementProblem
    best: Ranked
    bound: float
    bound_says: str
    by_work: float
    runners_up: tuple[Ranked, ...]
    runners_say: str
    seats: tuple[Seat, ...]
    sharing: tuple[Sharing, ...]
    links: tuple[LinkUse, ...]
    seconds: float
    predictions: int
    notes: tuple[str, ...] = ()

    @property
    def gap_ratio(self) -> float:
        """How far from the best the mapping can be."""
        low, high = sorted((self.best.value, self.bound))
        if high - low <= 1e-9 * high:
            return 0.0
        return high / low - 1.0 if low > 0.0 else math.inf

    def to_json(self) -> dict[str, Any]:
        """Return plain data, base units."""
        goal = self.problem.goal
        document = {
            "name": self.problem.name,
            "frames": self.problem.frames.name,
            "offered_pps": self.problem.offered_pps,
            "objective": goal.objective,
            "throughput": goal.throughput,
            "target_pps": goal.target_pps,
            "best": _ranked(self.best),
            "bound": self.bound,
            "bound_says": self.bound_says,
            "gap_ratio": self.gap_ratio,
            "by_work_pps": self.by_work,
            "runners_up": [_ranked(one) for one in self.runners_up],
            "runners_say": self.runners_say,
            "elements": self.seats,
            "sharing": self.sharing,
            "links": self.links,
            "seconds": self.seconds,
            "predictions": self.predictions,
            "notes": self.notes,
        }
        result = plain(document)
        assert isinstance(result, dict)
        return result


def answer(
    problem: PlacementProblem, *, progress: Progress | None = None, simulate: bool = True
) -> PlacementAnswer:
    """Place the elements of a problem.

    Parameters
    ----------
    problem : PlacementProblem
    progress : callable, optional
        Told what is done, of how much, and what comes next.
    simulate : bool
        Check the best mapping and the next ones by simulation.

    Raises
    ------
    InfeasiblePlacement
        There is none; with what contradicts itself.
    """
    tell = progress or (lambda done, total, what: None)
    tell(0, _STEPS, "a placement that obeys the rules")
    if not exists(problem):
        raise contradiction(problem, exists)
    finder = Finder(problem, lambda what: tell(1, _STEPS, what))
    found = finder.find()
    tell(2, _STEPS, "the next best mappings")
    best = finder.ranked(found.servers, found.value)
    runners = finder.runners_up(found)
    if finder.is_overloaded:
        best, runners = finder.forwarded[0], tuple(finder.forwarded[1 : 1 + problem.goal.runners_up])
    notes = list(finder.notes)
    if simulate:
        tell(3, _STEPS, "simulation of the best mappings")
        try:
            best = _checked(problem, best)
            runners = tuple(_checked(problem, one, seeds=(13,)) for one in runners)
        except KeyboardInterrupt:
            notes.append("the check by simulation was interrupted")
    model = router_of(problem, best.placement)
    seats = seats_of(problem, finder.classes, finder.loads, best.placement, model)
    tell(_STEPS, _STEPS, "")
    return PlacementAnswer(
        problem=problem,
        best=best,
        bound=finder.bound if finder.is_overloaded else found.bound,
        bound_says=finder.bound_says,
        by_work=most_by_work(problem, finder.loads),
        runners_up=runners,
        runners_say=finder.runners_say,
        seats=seats,
        sharing=sharing_of(problem, finder.loads, best.placement, seats),
        links=links_of(best.prediction, problem),
        seconds=found.seconds,
        predictions=finder.loads.predictions,
        notes=tuple(notes),
    )


def _checked(problem: PlacementProblem, one: Ranked, *, seeds: tuple[int, ...] = (11, 12)) -> Ranked:
    goal = problem.goal
    if goal.objective == "throughput" and goal.throughput == "lossless":
        rate_pps, predicted_pps = one.prediction.lossless_pps, one.prediction.lossless_pps
    else:
        rate_pps, predicted_pps = one.prediction.offered_pps, one.prediction.forwarded_pps
    check = simulated(problem, one.placement, offered_pps=rate_pps, predicted_pps=predicted_pps, seeds=seeds)
    return replace(one, check=check)


def _ranked(one: Ranked) -> dict[str, Any]:
    prediction = one.prediction
    return {
        "value": one.value,
        "servers": one.placement.servers,
        "pins": one.placement.pins,
        "pinned": one.choice,
        "offered_pps": prediction.offered_pps,
        "forwarded_pps": prediction.forwarded_pps,
        "lossless_pps": prediction.lossless_pps,
        "latency_s": prediction.latency_s,
        "bottleneck": prediction.bottleneck,
        "reason": prediction.reason,
        "resources": prediction.resources,
        "simulated": one.check,
    }
