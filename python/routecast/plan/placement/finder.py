"""The search for the best mapping by any objective, and for the next best ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from routecast.errors import Problem
from routecast.plan.placement.check import Checked
from routecast.plan.placement.classes import Classes, classes_of
from routecast.plan.placement.exists import exists
from routecast.plan.placement.found import Found, TooManyKinds
from routecast.plan.placement.infeasible import Asked, InfeasiblePlacement, asked_of, irreducible
from routecast.plan.placement.mapping import Mapped, mapped, placement_of
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.neighbours import neighbours
from routecast.plan.placement.overload import Forwarding, most_forwarded_by_work
from routecast.plan.placement.prediction import Prediction, predict, predict_without_loss
from routecast.plan.placement.search import Search
from routecast.plan.placement.server_load import ServerLoads
from routecast.plan.placement.whole import Placement, load_of, router_of
from routecast.quantity import format_pps

__all__ = ["Finder", "Ranked", "contradiction"]

_MANY_TASKS = 600
"""Routers of more task units take seconds to predict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A mapping with what is predicted for it.

    Parameters
    ----------
    placement : Placement
    value : float
        Of the objective.
    prediction : Prediction
        At the offered load (or the target).
    choice : dict of str to str
        Way of pinning of each server that is used.
    check : Checked or None
        By simulation.
    """

    placement: Placement
    value: float
    prediction: Prediction
    choice: dict[str, str]
    check: Checked | None = None


class Finder:
    """The search for one problem, with what is known on the way."""

    def __init__(self, problem: PlacementProblem, say: Callable[[str], None]) -> None:
        self.problem = problem
        self.classes: Classes = classes_of(problem)
        self.loads = ServerLoads(problem)
        self.notes: list[str] = []
        self.forwarded: list[Ranked] = []
        self.bound = math.inf
        self.bound_says = "over all mappings, and on each server the ways of pinning that are tried"
        self.runners_say = ""
        self._say = say
        self._search = Search(problem=problem, classes=self.classes, loads=self.loads, told=self._told)

    @property
    def is_overloaded(self) -> bool:
        """Whether whole mappings in overload were compared."""
        return bool(self.forwarded)

    def find(self) -> Found:
        """Return the best mapping by the objective."""
        problem, goal = self.problem, self.problem.goal
        if goal.objective != "throughput":
            return self._cheapest()
        self._say("the mapping that carries most")
        found = self._search.most_lossless()
        if found is None:
            raise contradiction(problem, exists)
        if found.is_interrupted:
            self.notes.append("the search was interrupted: the mapping is the best until then")
        if goal.throughput == "forwarded":
            return self._forwarded(found)
        return self._tidied(found)

    def _tidied(self, found: Found) -> Found:
        """Return the mapping of as much throughput that needs fewest servers."""
        if found.is_interrupted or self._search.left_s <= 0.0:
            return found
        try:
            tidy = self._search.cheapest("servers", found.value * (1.0 - 1e-9))
        except TooManyKinds:
            return found
        if tidy is None:
            return found
        return replace(found, servers=tidy.servers, seconds=tidy.seconds)

    def _cheapest(self) -> Found:
        problem, goal = self.problem, self.problem.goal
        rate_pps = goal.target_pps or problem.offered_pps
        self._say(f"the least {goal.objective} for {format_pps(rate_pps)}")
        limit_s, found = goal.latency_s, None
        for _ in range(6):
            found = self._search.cheapest(goal.objective, rate_pps, latency_s=limit_s)
            if found is None or goal.latency_s is None or limit_s is None:
                break
            late_s = self.ranked(found.servers, found.value).prediction.latency_s
            if not math.isfinite(late_s):
                self.notes.append(
                    "the closed form knows no latency of this placement: the latency target is not held to it,"
                    " see the simulation"
                )
                break
            if late_s <= goal.latency_s * (1.0 + 1e-9):
                break
            limit_s *= 0.98 * goal.latency_s / late_s
            found = None
        if found is None:
            raise contradiction(problem, self._is_possible, self._possible())
        if found.is_interrupted:
            self.notes.append("the search was interrupted: the mapping is the best until then")
        if goal.latency_s is not None and limit_s != goal.latency_s:
            self.bound_says += "; its latency is taken to be the sum over its servers, less what wires take"
        return found

    def _possible(self) -> str:
        free = replace(self.problem, goal=replace(self.problem.goal, objective="throughput"))
        search = Search(problem=free, classes=self.classes, loads=self.loads)
        most = search.most_lossless()
        return (
            ""
            if most is None
            else f"The most that any mapping carries without loss is {format_pps(most.value)}."
        )

    def _is_possible(self, problem: PlacementProblem) -> bool:
        """Return whether a problem with less asked for has a placement."""
        if not exists(problem):
            return False
        goal = problem.goal
        if goal.objective == "throughput":
            return True
        rate_pps = goal.target_pps or problem.offered_pps
        if not exists(problem, target_pps=rate_pps):
            return False
        search = Search(problem=problem, classes=classes_of(problem), loads=ServerLoads(problem))
        return search.cheapest("servers", rate_pps, latency_s=goal.latency_s) is not None

    def _forwarded(self, found: Found) -> Found:
        problem = self.problem
        if found.value >= problem.offered_pps * (1.0 - 1e-9):
            self.notes.append(
                "the offered load overloads nothing: all of it is forwarded, whatever the objective"
            )
            tidy = self._search.cheapest("servers", problem.offered_pps) or found
            ranked = self.ranked(tidy.servers, math.nan)
            self.forwarded = [replace(ranked, value=ranked.prediction.forwarded_pps)]
            self.bound = problem.offered_pps
            return found
        self._say("the mapping that forwards most")
        forwarding = Forwarding(self.problem, self.classes, self.loads, lambda: self._search.left_s)
        start = mapped(column for column, number in found.servers for _ in range(number))
        ranked_all, is_all = forwarding.ranked(
            start, lambda value: self._say(f"forwards {format_pps(value)}")
        )
        self.forwarded = [
            Ranked(
                placement=one.placement,
                value=one.value,
                prediction=one.prediction,
                choice=self._choices(one.mapping, one.choice),
            )
            for one in ranked_all
        ]
        if is_all:
            self.bound = self.forwarded[0].value
            pins = (
                "every server pinned in the same way"
                if forwarding.pinned_all
                else "pinned as is best without loss"
            )
            self.bound_says = f"over all {len(ranked_all)} mappings, {pins}"
            self.runners_say = "of all mappings"
        else:
            self.bound = most_forwarded_by_work(problem, self.loads)
            self.bound_says = "from work alone, as if cores never waited nor slowed each other: a weak bound"
            self.runners_say = f"of the {len(ranked_all)} mappings that were predicted"
        return found

    def ranked(self, servers: Mapped, value: float, *, is_best: bool = True) -> Ranked:
        """Predict a mapping as a whole; of a large one that is not the best only what it carries without loss."""
        problem, goal = self.problem, self.problem.goal
        placement = placement_of(problem, self.classes, self.loads, servers)
        rate_pps = (
            problem.offered_pps if goal.objective == "throughput" else goal.target_pps or problem.offered_pps
        )
        model, load = router_of(problem, placement), load_of(problem).at(rate_pps)
        is_large = len(model.tasks) > _MANY_TASKS and not is_best
        prediction = predict_without_loss(model, load) if is_large else predict(model, load)
        return Ranked(
            placement=placement, value=value, prediction=prediction, choice=self._choices(servers, "best")
        )

    def runners_up(self, found: Found) -> tuple[Ranked, ...]:
        """Return the next best of the mappings that are one move or exchange away."""
        goal = self.problem.goal
        if self.is_overloaded or not goal.runners_up:
            return ()
        self.runners_say = "of the mappings one move or exchange away"
        rated: list[tuple[float, Mapped]] = []
        for mapping in neighbours(self.problem, self.classes, found.servers):
            if self._search.left_s <= 0.0 and len(rated) >= goal.runners_up:
                break
            value = self._search.value_of(mapping)
            if value is not None:
                rated.append((value, mapping))
        rated.sort(key=lambda one: -one[0] if goal.objective == "throughput" else one[0])
        return tuple(
            self.ranked(mapping, value, is_best=False) for value, mapping in rated[: goal.runners_up]
        )

    def _choices(self, mapping: Mapped, choice: str) -> dict[str, str]:
        free = [list(host.names) for host in self.classes.hosts]
        found = {}
        for column, number in mapping:
            host = self.classes.hosts[column.host].group.name
            here = self.classes.by_group(column.counts)
            own = self.loads.carries(host, here).choice
            if choice != "best" and choice in self.loads.ways(host, here):
                own = choice
            for _ in range(number):
                found[free[column.host].pop(0)] = own
        return found

    def _told(self, best: float, bound: float) -> None:
        if math.isfinite(bound) and best > 0.0:
            low, high = sorted((best, bound))
            self._say(f"within {100.0 * (high / low - 1.0):.2g} % of the best" if low > 0.0 else "searching")


def contradiction(
    problem: PlacementProblem, is_possible: Callable[[PlacementProblem], bool], hint: str = ""
) -> InfeasiblePlacement:
    """Return what to say of a problem without a placement."""
    needed: list[Asked] = irreducible(problem, asked_of(problem), is_possible)
    return InfeasiblePlacement(problem.name, [Problem(one.place, one.said) for one in needed], hint)
