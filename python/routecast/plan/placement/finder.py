"""The search for the best mapping by any objective, and for the next best ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from routecast.errors import Problem
from routecast.plan.placement.classes import Classes, Column, TooMany, classes_of, columns_above
from routecast.plan.placement.feasibility import (
    Asked,
    InfeasiblePlacement,
    asked_of,
    evenly_arranged,
    exists,
    irreducible,
)
from routecast.plan.placement.mapping import Mapped, all_mappings, mapped, mapping_of, neighbours, placement_of
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.prediction import Prediction, predict, predict_without_loss
from routecast.plan.placement.search import Found, Search, TooManyKinds, most_by_work
from routecast.plan.placement.server_load import Pins, ServerLoads
from routecast.plan.placement.whole import Checked, Placement, load_of, router_of
from routecast.quantity import format_pps
from routecast.quantity.schema import field, value

__all__ = ["Finder", "Ranked", "contradiction"]


# The placement that forwards most of an offered load, in overload too.
#
# Frames that are lost on one server do not reach the next, so servers cannot be looked at one by one: whole placements
# are predicted, all of them where there are few, else those near the best one without loss, as long as they get
# better.
#
# The bound: each forwarded frame has cost its chain's work in full, whatever else was lost on the way. The cores of
# all
# servers do no more than that, if they never wait, switch or disturb each other.


_MOST_LISTED = 400
_BEST = "best"


@value
class Forwarded:
    """What a mapping forwards."""

    mapping: Mapped
    choice: str = field("Way of pinning, on every server")
    placement: Placement
    prediction: Prediction

    @property
    def value(self) -> float:
        """Frames per second that leave."""
        return self.prediction.forwarded_pps


@dataclass(slots=True)
class Forwarding:
    """Predictions of whole mappings.

    Parameters
    ----------
    problem : PlacementProblem
    classes : Classes
    loads : ServerLoads
    left_s : callable
        Time that is left.
    pinned_all : bool
        Whether all mappings were predicted in all ways of pinning.
    """

    problem: PlacementProblem
    classes: Classes
    loads: ServerLoads
    left_s: Callable[[], float]
    pinned_all: bool = False

    def of(self, mapping: Mapped, choice: str = _BEST) -> Forwarded:
        """Predict a mapping, pinned in one way on every server where there is that way."""
        pins: dict[Column, Pins] = {}
        if choice != _BEST:
            for column, _ in mapping:
                host = self.classes.hosts[column.host].group.name
                here = self.classes.by_group(column.counts)
                ways = self.loads.ways(host, here)
                pins[column] = ways.get(choice, self.loads.carries(host, here).pins)
        placement = placement_of(self.problem, self.classes, self.loads, mapping, pins)
        prediction = predict(router_of(self.problem, placement), load_of(self.problem))
        return Forwarded(mapping=mapping, choice=choice, placement=placement, prediction=prediction)

    def best_pinned(self, mapping: Mapped) -> Forwarded:
        """Predict a mapping in each way of pinning; return the best."""
        choices = [_BEST]
        for column, _ in mapping:
            host = self.classes.hosts[column.host].group.name
            choices += self.loads.ways(host, self.classes.by_group(column.counts))
        tried = (self.of(mapping, choice) for choice in dict.fromkeys(choices))
        return max(tried, key=lambda one: one.value)

    def ranked(self, start: Mapped, told: Callable[[float], None]) -> tuple[list[Forwarded], bool]:
        """Return mappings, the best first, and whether they are all there are."""
        every = self._all()
        seen: dict[Mapped, Forwarded] = {}
        try:
            if every is not None:
                for mapping in sorted(every, key=lambda one: one != start):
                    if seen and self.left_s() <= 0.0:
                        return _sorted(seen), False
                    seen[mapping] = self.of(mapping)
                    told(max(one.value for one in seen.values()))
                for one in _sorted(seen):
                    if self.left_s() <= 0.0:
                        break
                    seen[one.mapping] = self.best_pinned(one.mapping)
                    told(max(one.value for one in seen.values()))
                else:
                    self.pinned_all = True
                return _sorted(seen), True
            best = seen[start] = self.best_pinned(start)
            told(best.value)
            while self.left_s() > 0.0:
                before = best
                for mapping in neighbours(self.problem, self.classes, best.mapping):
                    if self.left_s() <= 0.0:
                        break
                    if mapping not in seen:
                        seen[mapping] = self.of(mapping)
                        if seen[mapping].value > best.value * (1.0 + 1e-9):
                            best = seen[mapping]
                            told(best.value)
                            break
                if best is before:
                    break
        except KeyboardInterrupt:
            if not seen:
                raise
        return _sorted(seen), False

    def _all(self) -> list[Mapped] | None:
        try:
            columns = columns_above(self.problem, self.classes, self.loads, 0.0, most=_MOST_LISTED)
        except TooMany:
            return None
        return all_mappings(self.problem, self.classes, columns, most=_MOST_LISTED)


def most_forwarded_by_work(problem: PlacementProblem, loads: ServerLoads) -> float:
    """Return a rate that no placement forwards more than at the offered load: cheap chains first, on all cores."""
    cores = sum(loads.cores(host.name) * host.number for host in problem.servers)
    work = {
        group.name: min(loads.work(host.name, group.name).total_s for host in problem.servers) * group.count
        for group in problem.elements
    }
    if len(problem.chains) > 1:
        # What a group does for one of several chains is not told apart: no less than nothing.
        return problem.offered_pps
    total = math.fsum(work.values())
    return min(problem.offered_pps, cores / total if total > 0.0 else math.inf)


def _sorted(seen: dict[Mapped, Forwarded]) -> list[Forwarded]:
    return sorted(seen.values(), key=lambda one: -one.value)


_MANY_TASKS = 600
"""Routers of more task units take seconds to predict."""
_FEW = 60
"""So many mappings are all compared for the next best ones."""
_BY_WORK = "from work alone, as if cores never waited nor slowed each other: a weak bound"
_INTERRUPTED = "the search was interrupted: the mapping is the best until then"


@value
class Ranked:
    """A mapping with what is predicted for it."""

    SUMMARY = (
        "value",
        "servers=placement.servers",
        "pins=placement.pins",
        "pinned=choice",
        "offered_pps=prediction.offered_pps",
        "forwarded_pps=prediction.forwarded_pps",
        "lossless_pps=prediction.lossless_pps",
        "latency_s=prediction.latency_s",
        "bottleneck=prediction.bottleneck",
        "reason=prediction.reason",
        "resources=prediction.resources",
        "simulated=check",
    )

    placement: Placement
    value: float = field("Of the objective")
    prediction: Prediction = field("At the offered load (or the target)")
    choice: dict[str, str] = field("Way of pinning of each server that is used")
    check: Checked | None = field("By simulation", default=None)


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
        self._best: Found | None = None
        self._search = Search(problem=problem, classes=self.classes, loads=self.loads, told=self._told)

    @property
    def rate_pps(self) -> float:
        """The load that is asked for: the target, or what is offered."""
        goal = self.problem.goal
        if goal.objective == "throughput":
            return self.problem.offered_pps
        return goal.target_pps or self.problem.offered_pps

    @property
    def is_overloaded(self) -> bool:
        """Whether whole mappings in overload were compared."""
        return bool(self.forwarded)

    def find(self) -> Found:
        """Return the best mapping by the objective.

        Raises
        ------
        InfeasiblePlacement
            There is none.
        KeyboardInterrupt
            Before there was any that does what is asked.
        """
        try:
            return self._find()
        except KeyboardInterrupt:
            found = self._best or self._at_hand()
            if found is None:
                raise
            self.notes.append(_INTERRUPTED)
            if self.problem.goal.throughput == "forwarded" and self.problem.goal.objective == "throughput":
                ranked = self.ranked(found.servers, math.nan)
                self.forwarded = [replace(ranked, value=ranked.prediction.forwarded_pps)]
                self.bound = most_forwarded_by_work(self.problem, self.loads)
                self.bound_says = _BY_WORK
            return found

    def _at_hand(self) -> Found | None:
        """Return a mapping that does what is asked, as soon as can be; None if none is at hand."""
        start = evenly_arranged(self.problem, self.loads)
        value = None if start is None else self._search.value_of(start)
        if start is None or value is None:
            return None
        is_rate = self.problem.goal.objective == "throughput"
        bound = most_by_work(self.problem, self.loads) if is_rate else 0.0
        return Found(servers=start, value=value, bound=bound, is_interrupted=True)

    def _find(self) -> Found:
        goal = self.problem.goal
        if goal.objective != "throughput":
            return self._cheapest()
        self._say("the mapping that carries most")
        found = self._search.most_lossless()
        if found is None:
            raise contradiction(self.problem, exists)
        if found.is_interrupted:
            self.notes.append(_INTERRUPTED)
        self._best = found
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
        except KeyboardInterrupt:
            self.notes.append("the search for as good a mapping on fewer servers was interrupted")
            return found
        if tidy is None:
            return found
        return replace(found, servers=tidy.servers, seconds=tidy.seconds)

    def _cheapest(self) -> Found:
        goal, rate_pps = self.problem.goal, self.rate_pps
        self._say(f"the least {goal.objective} for {format_pps(rate_pps)}")
        limit_s, found = goal.latency_s, None
        for _ in range(6):
            found = self._search.cheapest(goal.objective, rate_pps, latency_s=limit_s)
            if found is None or goal.latency_s is None or limit_s is None:
                break
            late_s = self.ranked(found.servers, found.value).prediction.latency_s
            if not math.isfinite(late_s):
                break
            if late_s <= goal.latency_s * (1.0 + 1e-9):
                break
            limit_s *= 0.98 * goal.latency_s / late_s
            found = None
        if found is None:
            raise contradiction(self.problem, self._is_possible, self._possible())
        if found.is_interrupted:
            self.notes.append(_INTERRUPTED)
        if goal.latency_s is not None and limit_s != goal.latency_s:
            self.bound_says += "; its latency is taken to be the sum over its servers, less what wires take"
        return found

    def _possible(self) -> str:
        free = replace(self.problem, goal=replace(self.problem.goal, objective="throughput"))
        search = Search(problem=free, classes=self.classes, loads=self.loads)
        most = search.most_lossless()
        return "" if most is None else f"The most that any mapping carries without loss is {format_pps(most.value)}."

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
            self.notes.append("the offered load overloads nothing: all of it is forwarded, whatever the objective")
            tidy = self._search.cheapest("servers", problem.offered_pps) or found
            ranked = self.ranked(tidy.servers, math.nan)
            self.forwarded = [replace(ranked, value=ranked.prediction.forwarded_pps)]
            self.bound = problem.offered_pps
            return found
        self._say("the mapping that forwards most")
        forwarding = Forwarding(self.problem, self.classes, self.loads, lambda: self._search.left_s)
        start = mapped(column for column, number in found.servers for _ in range(number))
        ranked_all, is_all = forwarding.ranked(start, lambda value: self._say(f"forwards {format_pps(value)}"))
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
            pins = "every server pinned in the same way" if forwarding.pinned_all else "pinned as is best without loss"
            self.bound_says = f"over all {len(ranked_all)} mappings, {pins}"
            self.runners_say = "of all mappings"
        else:
            self.bound = most_forwarded_by_work(problem, self.loads)
            self.bound_says = _BY_WORK
            self.runners_say = f"of the {len(ranked_all)} mappings that were predicted"
        return found

    def ranked(self, servers: Mapped, value: float, *, is_best: bool = True) -> Ranked:
        """Predict a mapping as a whole; of a large one that is not the best only what it carries without loss."""
        problem = self.problem
        placement = placement_of(problem, self.classes, self.loads, servers)
        model, load = router_of(problem, placement), load_of(problem).at(self.rate_pps)
        is_large = len(model.tasks) > _MANY_TASKS and not is_best
        prediction = predict_without_loss(model, load) if is_large else predict(model, load)
        return Ranked(placement=placement, value=value, prediction=prediction, choice=self._choices(servers, "best"))

    def next_best(self, found: Found, number: int) -> tuple[Ranked, ...]:
        """Return the next best of all mappings where there are few, else of those one move or exchange away."""
        if self.is_overloaded:
            return tuple(self.forwarded[1 : 1 + number])
        if not number:
            return ()
        start = mapped(column for column, count in found.servers for _ in range(count))
        every = self._all_mappings()
        self.runners_say = "of the mappings one move or exchange away" if every is None else "of all mappings"
        nearby = neighbours(self.problem, self.classes, start) if every is None else every
        rated: list[tuple[float, Mapped]] = []
        try:
            for mapping in nearby:
                if mapping == start:
                    continue
                if self._search.left_s <= 0.0 and len(rated) >= number:
                    self.runners_say = f"of {len(rated)} others"
                    break
                value = self._search.value_of(mapping)
                if value is not None:
                    rated.append((value, mapping))
        except KeyboardInterrupt:
            self.runners_say = f"of {len(rated)} others"
            self.notes.append("the search for the next best mappings was interrupted")
        rated.sort(key=lambda one: -one[0] if self.problem.goal.objective == "throughput" else one[0])
        return tuple(self.ranked(mapping, value, is_best=False) for value, mapping in rated[:number])

    def ways(self, one: Ranked) -> tuple[tuple[str, Placement], ...]:
        """Return the other ways of pinning a mapping's threads, the same on every server; none of a large one's."""
        mapping = mapping_of(self.classes, one.placement.servers)
        if len(router_of(self.problem, one.placement).tasks) > _MANY_TASKS:
            return ()
        here = [
            (column, self.classes.hosts[column.host].group.name, self.classes.by_group(column.counts))
            for column, _ in mapping
        ]
        tried = {column: self.loads.ways(host, counts) for column, host, counts in here}
        seen, found = [dict(one.placement.pins)], []
        for choice in dict.fromkeys(choice for own in tried.values() for choice in own):
            pins = {
                column: tried[column].get(choice, self.loads.carries(host, counts).pins)
                for column, host, counts in here
            }
            placement = placement_of(self.problem, self.classes, self.loads, mapping, pins)
            if placement.pins not in seen:
                seen.append(dict(placement.pins))
                found.append((choice, placement))
        return tuple(found)

    def pinned(self, one: Ranked, choice: str, placement: Placement) -> Ranked:
        """Predict a mapping pinned in another way."""
        goal = self.problem.goal
        prediction = predict(router_of(self.problem, placement), load_of(self.problem).at(self.rate_pps))
        value = one.value
        if goal.objective == "throughput" and goal.throughput == "forwarded":
            value = prediction.forwarded_pps
        elif goal.objective == "throughput":
            for column, _ in mapping_of(self.classes, placement.servers):
                host = self.classes.hosts[column.host].group.name
                here = self.classes.by_group(column.counts)
                value = min(value, self.loads.pinned_pps(host, here, choice))
        elif goal.objective == "watts":
            value = sum(
                group.idle_w + (group.busy_w - group.idle_w) * prediction.used_ratio(server)
                for group in self.problem.servers
                for server in group.names
                if server in placement.used
            )
        mapping = mapping_of(self.classes, placement.servers)
        return Ranked(placement=placement, value=value, prediction=prediction, choice=self._choices(mapping, choice))

    def _all_mappings(self) -> list[Mapped] | None:
        try:
            columns = columns_above(self.problem, self.classes, self.loads, 0.0, most=_FEW)
        except TooMany:
            return None
        return all_mappings(self.problem, self.classes, columns, most=_FEW)

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
