"""What is answered for a placement: the best mapping, how good it surely is, the next ones, what sharing costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from routecast.evaluate.plain import plain
from routecast.plan.placement.exists import exists
from routecast.plan.placement.finder import Finder, Ranked, contradiction
from routecast.plan.placement.found import most_by_work
from routecast.plan.placement.judged import CANDIDATES, Judged, judged
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
    predicted_best : Ranked
        The best by prediction; another than ``best`` where simulation puts that first.
    met : bool or None
        Whether the target and the latency are held; None if nothing is asked, or it is not known.
    tried : int
        Mappings that were simulated, each way of pinning one.
    least_latency_s : float
        Simulated, of all that were tried; NaN where latency was not asked for.
    bound : float
        By prediction no mapping is better, as far as ``bound_says``.
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
    predicted_best: Ranked
    met: bool | None = None
    tried: int = 0
    least_latency_s: float = math.nan
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
        """How far from the best by prediction the first one by prediction can be."""
        low, high = sorted((self.predicted_best.value, self.bound))
        if high - low <= 1e-9 * high:
            return 0.0
        return high / low - 1.0 if low > 0.0 else math.inf

    @property
    def is_by_simulation(self) -> bool:
        """Whether simulation put another mapping first than the prediction."""
        return self.best.placement != self.predicted_best.placement

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
            "latency_target_s": goal.latency_s,
            "met": self.met,
            "best": _ranked(self.best),
            "decided_by": "simulation" if self.is_by_simulation else "prediction",
            "predicted_best": _ranked(self.predicted_best),
            "simulated_mappings": self.tried,
            "least_latency_s": self.least_latency_s,
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
    number = max(problem.goal.runners_up, CANDIDATES - 1 if simulate else 0)
    first = finder.forwarded[0] if finder.is_overloaded else finder.ranked(found.servers, found.value)
    others = finder.next_best(found, number)
    shown = problem.goal.runners_up
    verdict = Judged(best=first, first=first, others=others[:shown], tried=0, met=_met(problem, first))
    if simulate:
        verdict = judged(finder, first, others, shown, lambda what: tell(3, _STEPS, what))
    notes = list(finder.notes)
    if verdict.is_interrupted:
        notes.append("the check by simulation was interrupted")
    if not simulate and verdict.met is None and problem.goal.latency_s is not None:
        notes.append(
            "the closed form knows no latency of this placement, so nothing says whether the target is met"
        )
    best = verdict.best
    model = router_of(problem, best.placement)
    seats = seats_of(problem, finder.classes, finder.loads, best.placement, best.choice, model)
    tell(_STEPS, _STEPS, "")
    return PlacementAnswer(
        problem=problem,
        best=best,
        predicted_best=verdict.first,
        met=verdict.met,
        tried=verdict.tried,
        least_latency_s=verdict.least_latency_s,
        bound=finder.bound if finder.is_overloaded else found.bound,
        bound_says=finder.bound_says,
        by_work=most_by_work(problem, finder.loads),
        runners_up=verdict.others,
        runners_say=finder.runners_say,
        seats=seats,
        sharing=sharing_of(problem, finder.loads, best.placement, best.choice, seats),
        links=links_of(best.prediction, problem),
        seconds=found.seconds,
        predictions=finder.loads.predictions,
        notes=tuple(notes),
    )


def _met(problem: PlacementProblem, one: Ranked) -> bool | None:
    """Return whether a mapping holds the latency, by the closed form."""
    limit_s, late_s = problem.goal.latency_s, one.prediction.latency_s
    if limit_s is None or not math.isfinite(late_s):
        return None
    return late_s <= limit_s * (1.0 + 1e-9)


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
