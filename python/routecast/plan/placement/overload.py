"""The placement that forwards most of an offered load, in overload too.

Frames that are lost on one server do not reach the next, so servers cannot be looked at one by one: whole placements
are predicted, all of them where there are few, else those near the best one without loss, as long as they get better.

The bound: each forwarded frame has cost its chain's work in full, whatever else was lost on the way. The cores of all
servers do no more than that, if they never wait, switch or disturb each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from routecast.plan.placement.classes import Classes
from routecast.plan.placement.columns import Column, TooMany, columns_above
from routecast.plan.placement.mapping import Mapped, placement_of
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.neighbours import all_mappings, neighbours
from routecast.plan.placement.pins import Pins
from routecast.plan.placement.prediction import Prediction, predict
from routecast.plan.placement.server_load import ServerLoads
from routecast.plan.placement.whole import Placement, load_of, router_of

__all__ = ["Forwarded", "Forwarding", "most_forwarded_by_work"]

_MOST_LISTED = 400
_BEST = "best"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarded:
    """What a mapping forwards.

    Parameters
    ----------
    mapping : Mapped
    choice : str
        Way of pinning, on every server.
    placement : Placement
    prediction : Prediction
    """

    mapping: Mapped
    choice: str
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
