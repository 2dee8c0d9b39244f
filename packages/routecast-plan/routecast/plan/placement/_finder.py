"""Finds the best candidate by any objective, and the next best candidates."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from routecast.errors import Problem
from routecast.plan.placement._candidates import (
    Candidate,
    Classes,
    TooManyPatterns,
    all_candidates,
    candidate_of,
    candidate_of_servers,
    choices_of,
    classes_of,
    neighbours,
    patterns_above,
    placement_of,
)
from routecast.plan.placement._feasibility import (
    InfeasiblePlacement,
    constraints_of,
    even_candidate,
    irreducible_conflict,
    is_feasible,
)
from routecast.plan.placement._search import PlacementSearch, SearchResult, TooManyElementClasses, work_bound_pps
from routecast.plan.placement._server_load import ServerLoads
from routecast.plan.placement._simulation import ElementPlacement, SimulationCheck, load_of, router_of
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.prediction import PlacementPrediction, predict, predict_without_loss
from routecast.quantity import format_pps, format_ratio
from routecast.quantity.schema import field, value

_MAX_LISTED = 400


@value
class PredictedCandidate:
    """A candidate with its prediction and, where there is one, its simulation."""

    placement: ElementPlacement
    value: float = field("Value of the objective")
    prediction: PlacementPrediction = field("Prediction at the offered load or the target")
    check: SimulationCheck | None = field("Check by simulation", default=None)

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "value": self.value,
            "servers": self.placement.servers,
            "pins": self.placement.pins,
            "pinned": self.placement.choices,
            "offered_pps": self.prediction.offered_pps,
            "forwarded_pps": self.prediction.forwarded_pps,
            "lossless_pps": self.prediction.lossless_pps,
            "latency_s": self.prediction.latency_s,
            "bottleneck": self.prediction.bottleneck,
            "reason": self.prediction.reason,
            "resources": self.prediction.resources,
            "simulated": self.check,
        }


@dataclass(slots=True)
class ForwardingSearch:
    """The search for the candidate that forwards most of an offered load, in overload too.

    Frames that are lost on one server do not reach the next, so servers cannot be predicted separately. The search
    predicts complete placements: all of them if they are few, else neighbours of the best without loss, as long as they
    improve. ``has_all_candidates`` says whether all candidates were predicted, ``has_all_pins`` whether in all ways of
    pinning.
    """

    classes: Classes
    loads: ServerLoads
    left_s: Callable[[], float]
    on_best: Callable[[float], None]
    predictions: dict[Candidate, PredictedCandidate] = dataclasses.field(default_factory=dict)
    has_all_candidates: bool = False
    has_all_pins: bool = False

    def search(self, start: Candidate) -> list[PredictedCandidate]:
        """Return the predicted candidates, the best first."""
        try:
            all_listed = _all_candidates(self.classes, self.loads, _MAX_LISTED)
            if all_listed is None:
                self._search_neighbours(start)
            else:
                self._predict_all(sorted(all_listed, key=lambda candidate: candidate != start))
        except KeyboardInterrupt:
            if not self.predictions:
                raise
        return sorted(self.predictions.values(), key=lambda predicted: -predicted.value)

    def _search_neighbours(self, start: Candidate) -> None:
        best = self._add_pinned(start)
        untried = neighbours(self.classes, start)
        while self.left_s() > 0.0 and (candidate := next(untried, None)):
            if candidate not in self.predictions:
                predicted = self._add(candidate, predict_forwarded(self.classes, self.loads, candidate))
                if predicted.value > best.value * (1.0 + 1e-9):
                    best, untried = predicted, neighbours(self.classes, candidate)

    def _predict_all(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            if self.predictions and self.left_s() <= 0.0:
                return
            self._add(candidate, predict_forwarded(self.classes, self.loads, candidate))
        self.has_all_candidates = True
        for candidate in sorted(self.predictions, key=lambda candidate: -self.predictions[candidate].value):
            if self.left_s() <= 0.0:
                return
            self._add_pinned(candidate)
        self.has_all_pins = True

    def _add_pinned(self, candidate: Candidate) -> PredictedCandidate:
        """Predict a candidate in each way of pinning and add the best."""
        choices = ["", *choices_of(self.classes, self.loads, candidate)]
        predicted = (predict_forwarded(self.classes, self.loads, candidate, choice) for choice in choices)
        return self._add(candidate, max(predicted, key=lambda pinned: pinned.value))

    def _add(self, candidate: Candidate, predicted: PredictedCandidate) -> PredictedCandidate:
        self.predictions[candidate] = predicted
        self.on_best(max(other.value for other in self.predictions.values()))
        return predicted


def predict_forwarded(
    classes: Classes, loads: ServerLoads, candidate: Candidate, choice: str = ""
) -> PredictedCandidate:
    """Predict the rate that a candidate forwards of the offered load; see :func:`placement_of` for ``choice``."""
    placement = placement_of(classes, loads, candidate, choice)
    prediction = predict(router_of(classes.problem, placement), load_of(classes.problem))
    return PredictedCandidate(placement=placement, value=prediction.forwarded_pps, prediction=prediction)


def _all_candidates(classes: Classes, loads: ServerLoads, max_count: int) -> list[Candidate] | None:
    try:
        patterns = patterns_above(classes, loads, 0.0, max_count=max_count)
    except TooManyPatterns:
        return None
    return all_candidates(classes, patterns, max_count=max_count)


def _in_fixed_order(candidate: Candidate) -> Candidate:
    return candidate_of(pattern for pattern, number in candidate for _ in range(number))


def forwarded_bound_pps(problem: PlacementProblem, loads: ServerLoads) -> float:
    """Return an upper bound on the forwarded rate of any placement at the offered load, frames/s.

    Each forwarded frame takes the complete work of its chain, also when other frames are lost on the path. The bound
    counts all cores of all servers without waits, switches and contention.
    """
    if len(problem.chains) > 1:
        return problem.offered_pps  # a group's work for one of several chains is not known
    cores = sum(loads.cores(host.name) * host.number for host in problem.servers)
    total = math.fsum(
        min(loads.work(host.name, group.name).total_s for host in problem.servers) * group.count
        for group in problem.elements
    )
    return min(problem.offered_pps, cores / total if total > 0.0 else math.inf)


_MAX_TASKS = 600
"""A router of more task units takes seconds to predict."""
_MAX_COMPARED = 60
"""Up to this number, all candidates are compared for the next best."""
_BY_WORK = "a weak bound from work alone, without waits and contention of cores"
_INTERRUPTED = "the search was interrupted: the mapping is the best so far"


class Finder:
    """The search for one problem; it keeps its predictions, notes and bound."""

    def __init__(self, problem: PlacementProblem, on_step: Callable[[str], None]) -> None:
        self.problem = problem
        self.classes = classes_of(problem)
        self.loads = ServerLoads(problem)
        self.notes: list[str] = []
        self.forwarded: list[PredictedCandidate] = []
        self.bound = math.inf
        self.bound_scope = "over all mappings and, on each server, the ways of pinning that the search tries"
        self.runners_up_scope = ""
        self._on_step = on_step
        self._best: SearchResult | None = None
        self._search = PlacementSearch(
            problem=problem, classes=self.classes, loads=self.loads, on_progress=self._report
        )

    @property
    def rate_pps(self) -> float:
        """The target, or the offered load."""
        goal = self.problem.goal
        if goal.objective == "throughput":
            return self.problem.offered_pps
        return goal.target_pps or self.problem.offered_pps

    @property
    def is_overloaded(self) -> bool:
        """Whether candidates were compared in overload."""
        return bool(self.forwarded)

    def find(self) -> SearchResult:
        """Return the best candidate by the objective.

        Raises InfeasiblePlacement, or KeyboardInterrupt if no candidate that meets the constraints is known yet.
        """
        try:
            return self._find()
        except KeyboardInterrupt:
            result = self._best or self._first_result()
            if result is None:
                raise
            self.notes.append(_INTERRUPTED)
            if self.problem.goal.throughput == "forwarded" and self.problem.goal.objective == "throughput":
                self.forwarded = [predict_forwarded(self.classes, self.loads, result.candidate)]
                self.bound = forwarded_bound_pps(self.problem, self.loads)
                self.bound_scope = _BY_WORK
            return result

    def _first_result(self) -> SearchResult | None:
        """Return the first candidate that meets the constraints; None if the search finds none."""
        start = even_candidate(self.problem, self.loads)
        value = None if start is None else self._search.value_of(start)
        if start is None or value is None:
            return None
        is_rate = self.problem.goal.objective == "throughput"
        bound = work_bound_pps(self.problem, self.loads) if is_rate else 0.0
        return SearchResult(candidate=start, value=value, bound=bound, is_interrupted=True)

    def _find(self) -> SearchResult:
        goal = self.problem.goal
        if goal.objective != "throughput":
            return self._cheapest()
        self._on_step("the mapping that carries most")
        result = self._search.most_lossless()
        if result is None:
            raise infeasible_placement(self.problem, is_feasible)
        if result.is_interrupted:
            self.notes.append(_INTERRUPTED)
        self._best = result
        if goal.throughput == "forwarded":
            return self._most_forwarded(result)
        return self._on_fewest_servers(result)

    def _on_fewest_servers(self, result: SearchResult) -> SearchResult:
        if result.is_interrupted or self._search.left_s <= 0.0:
            return result
        try:
            smaller = self._search.cheapest("servers", result.value * (1.0 - 1e-9))
        except TooManyElementClasses:
            return result
        except KeyboardInterrupt:
            self.notes.append("the search for as good a mapping on fewer servers was interrupted")
            return result
        return replace(result, candidate=smaller.candidate, seconds=smaller.seconds) if smaller else result

    def _cheapest(self) -> SearchResult:
        goal, rate_pps = self.problem.goal, self.rate_pps
        self._on_step(f"the least {goal.objective} for {format_pps(rate_pps)}")
        limit_s, result = goal.latency_s, None
        for _ in range(6):
            result = self._search.cheapest(goal.objective, rate_pps, latency_s=limit_s)
            if result is None or goal.latency_s is None or limit_s is None:
                break
            latency_s = self.predicted(result.candidate, result.value).prediction.latency_s
            if not math.isfinite(latency_s) or latency_s <= goal.latency_s * (1.0 + 1e-9):
                break
            limit_s *= 0.98 * goal.latency_s / latency_s
            result = None
        if result is None:
            raise infeasible_placement(self.problem, self._has_placement, self._describe_most_lossless())
        if result.is_interrupted:
            self.notes.append(_INTERRUPTED)
        if goal.latency_s is not None and limit_s != goal.latency_s:
            self.bound_scope += "; the latency of a mapping is taken as the sum over its servers, without wires"
        return result

    def _describe_most_lossless(self) -> str:
        problem = replace(self.problem, goal=replace(self.problem.goal, objective="throughput"))
        result = PlacementSearch(problem=problem, classes=self.classes, loads=self.loads).most_lossless()
        if result is None:
            return ""
        return f"The greatest throughput of any mapping without loss is {format_pps(result.value)}."

    def _has_placement(self, problem: PlacementProblem) -> bool:
        """Return whether a problem with fewer constraints has a placement."""
        if not is_feasible(problem):
            return False
        goal = problem.goal
        if goal.objective == "throughput":
            return True
        rate_pps = goal.target_pps or problem.offered_pps
        if not is_feasible(problem, target_pps=rate_pps):
            return False
        search = PlacementSearch(problem=problem, classes=classes_of(problem), loads=ServerLoads(problem))
        return search.cheapest("servers", rate_pps, latency_s=goal.latency_s) is not None

    def _most_forwarded(self, result: SearchResult) -> SearchResult:
        problem = self.problem
        if result.value >= problem.offered_pps * (1.0 - 1e-9):
            self.notes.append("the offered load overloads no resource: the mapping forwards all of it")
            smaller = self._search.cheapest("servers", problem.offered_pps) or result
            self.forwarded = [predict_forwarded(self.classes, self.loads, smaller.candidate)]
            self.bound = problem.offered_pps
            return result
        self._on_step("the mapping that forwards most")
        search = ForwardingSearch(
            self.classes,
            self.loads,
            left_s=lambda: self._search.left_s,
            on_best=lambda rate_pps: self._on_step(f"forwards {format_pps(rate_pps)}"),
        )
        self.forwarded = search.search(_in_fixed_order(result.candidate))
        if search.has_all_candidates:
            pins = "every server pinned in the same way" if search.has_all_pins else "pinned as is best without loss"
            self.bound = self.forwarded[0].value
            self.bound_scope = f"over all {len(self.forwarded)} mappings, {pins}"
            self.runners_up_scope = "of all mappings"
        else:
            self.bound = forwarded_bound_pps(problem, self.loads)
            self.bound_scope = _BY_WORK
            self.runners_up_scope = f"of the {len(self.forwarded)} mappings that were predicted"
        return result

    def predicted(self, candidate: Candidate, value: float, *, is_best: bool = True) -> PredictedCandidate:
        """Predict a candidate; for a large candidate that is not the best, only the load without loss."""
        problem = self.problem
        placement = placement_of(self.classes, self.loads, candidate)
        model, load = router_of(problem, placement), load_of(problem).at(self.rate_pps)
        is_large = len(model.tasks) > _MAX_TASKS and not is_best
        prediction = predict_without_loss(model, load) if is_large else predict(model, load)
        return PredictedCandidate(placement=placement, value=value, prediction=prediction)

    def next_best(self, result: SearchResult, number: int) -> tuple[PredictedCandidate, ...]:
        """Return the next best of all candidates if they are few, else of those that a move or an exchange leads to."""
        if self.is_overloaded:
            return tuple(self.forwarded[1 : 1 + number])
        if not number:
            return ()
        start = _in_fixed_order(result.candidate)
        all_listed = _all_candidates(self.classes, self.loads, _MAX_COMPARED)
        self.runners_up_scope = (
            "of the mappings that differ by a move or an exchange" if all_listed is None else "of all mappings"
        )
        nearby = neighbours(self.classes, start) if all_listed is None else all_listed
        rated: list[tuple[float, Candidate]] = []
        try:
            for candidate in nearby:
                if candidate == start:
                    continue
                if self._search.left_s <= 0.0 and len(rated) >= number:
                    self.runners_up_scope = f"of {len(rated)} others"
                    break
                value = self._search.value_of(candidate)
                if value is not None:
                    rated.append((value, candidate))
        except KeyboardInterrupt:
            self.runners_up_scope = f"of {len(rated)} others"
            self.notes.append("the search for the next best mappings was interrupted")
        rated.sort(key=lambda pair: -pair[0] if self.problem.goal.objective == "throughput" else pair[0])
        return tuple(self.predicted(candidate, value, is_best=False) for value, candidate in rated[:number])

    def other_pins(self, predicted: PredictedCandidate) -> list[tuple[str, ElementPlacement]]:
        """Return the other ways of pinning a candidate's threads, equal on every server; none of a large candidate."""
        if len(router_of(self.problem, predicted.placement).tasks) > _MAX_TASKS:
            return []
        candidate = candidate_of_servers(self.classes, predicted.placement.servers)
        placements = [("", predicted.placement)]
        for choice in choices_of(self.classes, self.loads, candidate):
            placement = placement_of(self.classes, self.loads, candidate, choice)
            if all(placement.pins != other.pins for _, other in placements):
                placements.append((choice, placement))
        return placements[1:]

    def pinned(self, predicted: PredictedCandidate, choice: str, placement: ElementPlacement) -> PredictedCandidate:
        """Predict a candidate pinned in another way."""
        goal = self.problem.goal
        prediction = predict(router_of(self.problem, placement), load_of(self.problem).at(self.rate_pps))
        value = predicted.value
        if goal.objective == "throughput" and goal.throughput == "forwarded":
            value = prediction.forwarded_pps
        elif goal.objective == "throughput":
            for pattern, _ in candidate_of_servers(self.classes, placement.servers):
                value = min(value, self.loads.pinned_pps(*self.classes.content(pattern), choice))
        elif goal.objective == "watts":
            value = sum(
                group.idle_w + (group.busy_w - group.idle_w) * prediction.used_ratio(server)
                for group in self.problem.servers
                for server in group.names
                if server in placement.used
            )
        return PredictedCandidate(placement=placement, value=value, prediction=prediction)

    def _report(self, best: float, bound: float) -> None:
        if math.isfinite(bound) and best > 0.0:
            low, high = sorted((best, bound))
            self._on_step(f"within {format_ratio(high / low - 1.0, 2)} of the best" if low > 0.0 else "searching")


def infeasible_placement(
    problem: PlacementProblem, has_placement: Callable[[PlacementProblem], bool], hint: str = ""
) -> InfeasiblePlacement:
    """Return the error of a problem without a placement, with the constraints that contradict each other."""
    conflict = irreducible_conflict(problem, constraints_of(problem), has_placement)
    problems = [Problem(constraint.place, constraint.description) for constraint in conflict]
    return InfeasiblePlacement(problem.name, problems, hint)
