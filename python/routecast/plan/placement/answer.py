"""What is answered for a placement: the best mapping, how good it surely is, the next ones, what sharing costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from routecast.errors import RoutecastError
from routecast.evaluate.plain import plain
from routecast.plan.placement.classes import Classes
from routecast.plan.placement.feasibility import exists
from routecast.plan.placement.finder import Finder, Ranked, contradiction
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.prediction import Prediction
from routecast.plan.placement.search import most_by_work
from routecast.plan.placement.server_load import ServerLoads
from routecast.plan.placement.server_view import stages_of
from routecast.plan.placement.whole import Checked, Placement, Trials, router_of
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel
from routecast.router.virtual.machines import Cores

__all__ = ["PlacementAnswer", "Ranked", "Seat", "answer"]


# The best few mappings by prediction, judged by simulation: the closed form compares thousands, and can be wrong.
#
# It knows work and waiting for cores. It does not know what bursts, full queues, and threads that wait for their turn
# cost. So the best of its mappings, each in all ways of pinning, are simulated, with the same seeds. One that is
# surely
# better takes the place of the first, and the proof that the first is best is then said to be of the prediction.


CANDIDATES = 5
"""Mappings that are simulated."""
BETTER = 0.02
"""A simulated figure is better than another if it is so by this part."""


@value
class Judged:
    """What simulation says of the best mappings by prediction."""

    best: Ranked
    first: Ranked = field("The best by prediction")
    others: tuple[Ranked, ...] = field("The next best by prediction")
    tried: int = field("Mappings, each way of pinning one")
    met: bool | None = field("Whether target and latency are held; None if nothing is asked or known")
    least_latency_s: float = field("Of all that were tried, s", default=math.nan)
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
    """A mapping pinned in one way; the empty choice is the one of the prediction."""

    number: int
    choice: str
    placement: Placement


def judged(finder: Finder, first: Ranked, others: Sequence[Ranked], shown: int, say: Callable[[str], None]) -> Judged:
    """Simulate mappings, the best by prediction first; look at ``shown`` of the others in any case."""
    return _Judge(finder, [first, *others], say).judged(shown)


class _Judge:
    def __init__(self, finder: Finder, ranked: list[Ranked], say: Callable[[str], None]) -> None:
        self.finder, self.goal, self.ranked, self._say = finder, finder.problem.goal, ranked, say
        self.trials = Trials(finder.problem)
        self.is_lossless = self.goal.objective == "throughput" and self.goal.throughput == "lossless"
        self.rate_pps = finder.rate_pps
        self.near_pps = ranked[0].prediction.lossless_pps
        self.latencies_s: list[float] = []

    def judged(self, shown: int) -> Judged:
        """Return the verdict; after an interruption, what it is until then."""
        first = _Way(0, "", self.ranked[0].placement)
        best, tried, met, is_interrupted = first, 1, None, False
        ranked = dict(enumerate(self.ranked[: 1 + shown]))
        try:
            self._say("simulates the best mapping")
            met = self._holds(first)
            for way in self._ways():
                if met and self.goal.objective != "throughput":
                    break  # They come by their cost: no other is cheaper.
                tried += 1
                self._say(f"simulates mapping {tried}")
                holds = self._holds(way)
                if holds is not False and (met is False or self._is_better(way, best)):
                    best, met = way, holds
            self._say("simulates the next best mappings")
            for number, one in list(ranked.items()):
                ranked[number] = self._checked(one)
        except KeyboardInterrupt:
            is_interrupted = True
        except RoutecastError as found:
            ranked[0] = self._unchecked(self.ranked[0], str(found).splitlines()[0])
            best, met = first, None
        chosen = ranked[best.number] if best.number in ranked else self.ranked[best.number]
        if best.choice:
            chosen = self.finder.pinned(chosen, best.choice, best.placement)
        if best != first:
            chosen = self._checked(chosen)
        return Judged(
            best=chosen,
            first=ranked[0],
            others=tuple(one for number, one in ranked.items() if number and number != best.number),
            tried=tried,
            met=met,
            least_latency_s=min(self.latencies_s, default=math.nan),
            is_interrupted=is_interrupted,
        )

    def _ways(self) -> Iterator[_Way]:
        """Yield all but the first: its mapping in other ways, then each of the others in all its ways."""
        for number, one in enumerate(self.ranked):
            if number:
                yield _Way(number, "", one.placement)
            for choice, placement in self.finder.ways(one):
                yield _Way(number, choice, placement)

    def _holds(self, way: _Way) -> bool | None:
        """Return whether target and latency are held; None if nothing is asked."""
        is_target = self.goal.objective != "throughput"
        if not is_target and self.goal.latency_s is None:
            return None
        seen = self.trials.at(way.placement, self.rate_pps)
        if math.isfinite(seen.latency_s):
            self.latencies_s.append(seen.latency_s)
        if is_target and seen.loss_ratio > BETTER:
            return False
        # Where no frame came through there is no latency to hold.
        return self.goal.latency_s is None or seen.latency_s <= self.goal.latency_s

    def _is_better(self, way: _Way, best: _Way) -> bool:
        if self.goal.objective != "throughput":
            return False
        if not self.is_lossless:
            now, before = (self.trials.at(one.placement, self.rate_pps) for one in (way, best))
            return now.forwarded_pps > (1.0 + BETTER) * before.forwarded_pps
        carried_pps = self._lossless_pps(best.placement)
        # One trial rules out most; near the limit the loss goes up and down with the load, so the figures decide.
        if carried_pps > 0.0 and not self.trials.carries(way.placement, carried_pps * (1.0 + BETTER)):
            return False
        return self._lossless_pps(way.placement) > carried_pps * (1.0 + BETTER)

    def _lossless_pps(self, placement: Placement) -> float:
        """Return what is carried without loss, looked for from the prediction of the first on."""
        return self.trials.lossless_pps(placement, self.near_pps)

    def _checked(self, one: Ranked) -> Ranked:
        seen = self.trials.at(one.placement, self.rate_pps)
        lossless = self.is_lossless
        check = Checked(
            rate="lossless" if lossless else "forwarded",
            predicted_pps=one.prediction.lossless_pps if lossless else one.prediction.forwarded_pps,
            simulated_pps=self._lossless_pps(one.placement) if lossless else seen.forwarded_pps,
            offered_pps=self.rate_pps,
            forwarded_pps=seen.forwarded_pps,
            latency_s=seen.latency_s,
        )
        return replace(one, check=check)

    def _unchecked(self, one: Ranked, trouble: str) -> Ranked:
        lossless = self.is_lossless
        predicted_pps = one.prediction.lossless_pps if lossless else one.prediction.forwarded_pps
        check = Checked(
            rate="lossless" if lossless else "forwarded",
            predicted_pps=predicted_pps,
            simulated_pps=math.nan,
            offered_pps=self.rate_pps,
            seeds=(),
            trouble=trouble,
        )
        return replace(one, check=check)


# What sharing costs and which link is fullest: the figures behind the words of an answer (Li 2012, sec. 3.4.1).


@value
class Seat:
    """Where an element is, and what sharing costs it."""

    element: str
    server: str
    threads: Mapping[str, Cores] = field("Cores of its threads, ``()`` for all")
    shares_server: tuple[str, ...] = field("Other elements on the server")
    shares_cores: tuple[str, ...] = field("Those of them that may run on a core of its own")
    carries_pps: float = field("What the element itself takes when its server is full: its part of the load, frames/s")
    alone_pps: float = field("The same if it were alone on the server, frames/s; NaN where it cannot be")

    @property
    def cost_ratio(self) -> float:
        """Part of what it would carry alone that sharing costs."""
        return 1.0 - self.carries_pps / self.alone_pps if self.alone_pps > 0.0 else math.nan


@value
class Sharing:
    """What elements on one server cost each other."""

    server: str
    elements: tuple[str, ...]
    share_cores: bool = field("Whether any two of them may run on the same core")
    carries_pps: float = field("Load of the whole system that the server carries, frames/s")
    apart_pps: float = field(
        "What it would be if each were alone on a server like it, frames/s; NaN where they cannot be"
    )

    @property
    def cost_ratio(self) -> float:
        """Part of the load that sharing the server costs."""
        return 1.0 - self.carries_pps / self.apart_pps if self.apart_pps > 0.0 else math.nan


@value
class LinkUse:
    """A link between servers."""

    name: str
    used_ratio: float = field("At the load")
    capacity_pps: float = field("Load of the whole system that fills it, frames/s")


def seats_of(
    problem: PlacementProblem,
    classes: Classes,
    loads: ServerLoads,
    placement: Placement,
    choices: Mapping[str, str],
    model: RouterModel,
) -> tuple[Seat, ...]:
    """Return where each element is and what it shares; threads of each server pinned in the way chosen for it."""
    host_of = {name: group for group in problem.servers for name in group.names}
    threads = _threads(model, placement)
    seats = []
    for group in problem.elements:
        for name in group.names:
            server = placement.servers[name]
            host = host_of[server].name
            mates = tuple(one for one in placement.on(server) if one != name)
            here: dict[str, int] = {}
            for one in placement.on(server):
                own = next(some.name for some in problem.elements if one in some.names)
                here[own] = here.get(own, 0) + 1
            whole_pps = loads.pinned_pps(host, _in_order(problem, here), choices.get(server, ""))
            alone_pps = math.nan
            if problem.balancing != "local":
                alone_pps = loads.carries(host, {group.name: 1}).capacity_pps * _share(
                    problem, group.name, {group.name: 1}
                )
            used = _cores(threads.get(name, {}), host_of[server].cores)
            seats.append(
                Seat(
                    element=name,
                    server=server,
                    threads=threads.get(name, {}),
                    shares_server=mates,
                    shares_cores=tuple(
                        one for one in mates if used & _cores(threads.get(one, {}), host_of[server].cores)
                    ),
                    carries_pps=whole_pps * _share(problem, group.name, here),
                    alone_pps=alone_pps,
                )
            )
    return tuple(seats)


def sharing_of(
    problem: PlacementProblem,
    loads: ServerLoads,
    placement: Placement,
    choices: Mapping[str, str],
    seats: Sequence[Seat],
) -> tuple[Sharing, ...]:
    """Return what sharing costs on each server with several elements, the dearest first."""
    group_of = {name: group.name for group in problem.elements for name in group.names}
    found = []
    for host in problem.servers:
        for server in host.names:
            here = placement.on(server)
            if len(here) < 2:
                continue
            counts = _in_order(problem, Counter(group_of[name] for name in here))
            apart_pps = math.nan
            if problem.balancing != "local":
                apart_pps = min(loads.carries(host.name, {name: 1}).capacity_pps for name in counts)
            found.append(
                Sharing(
                    server=server,
                    elements=here,
                    share_cores=any(seat.shares_cores for seat in seats if seat.server == server),
                    carries_pps=loads.pinned_pps(host.name, counts, choices.get(server, "")),
                    apart_pps=apart_pps,
                )
            )
    return tuple(sorted(found, key=lambda one: one.carries_pps))


def links_of(prediction: Prediction, problem: PlacementProblem) -> tuple[LinkUse, ...]:
    """Return the links between servers, the fullest first."""
    servers = {name for group in problem.servers for name in group.names}
    found = [
        LinkUse(name=one.name, used_ratio=one.utilisation_ratio, capacity_pps=one.capacity_pps)
        for one in prediction.resources
        if one.kind == "pool" and one.name not in servers
    ]
    return tuple(sorted(found, key=lambda one: one.capacity_pps))


def _in_order(problem: PlacementProblem, here: Mapping[str, int]) -> dict[str, int]:
    return {group.name: here[group.name] for group in problem.elements if group.name in here}


def _share(problem: PlacementProblem, group: str, here: Mapping[str, int]) -> float:
    """Return the frames that an element takes for each of the whole load, once however often it passes."""
    total = 0.0
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        stages = stages_of(problem, chain, share, here)
        inner = stages[:-1] if chain.returns else stages
        total += sum(stage.arrival for stage in inner if stage.group == group)
    return total


def _threads(model: RouterModel, placement: Placement) -> dict[str, dict[str, Cores]]:
    found: dict[str, dict[str, Cores]] = {name: {} for name in placement.servers}
    for task in model.tasks:
        for name, own in found.items():
            if task.thread.startswith(f"{name} "):
                own[task.thread.removeprefix(f"{name} ")] = task.pin
    return found


def _cores(threads: Mapping[str, Cores], cores: int) -> set[int]:
    return {core for pin in threads.values() for core in pin or range(cores)}


Progress = Callable[[int, int, str], None]
_STEPS = 4


@value
class PlacementAnswer:
    """The best mapping of a problem."""

    problem: PlacementProblem
    best: Ranked
    predicted_best: Ranked = field("The best by prediction; another than ``best`` where simulation puts that first")
    met: bool | None = field(
        "Whether the target and the latency are held; None if nothing is asked, or it is not known", default=None
    )
    tried: int = field("Mappings that were simulated, each way of pinning one", default=0)
    least_latency_s: float = field(
        "Simulated, of all that were tried, s; NaN where latency was not asked for", default=math.nan
    )
    bound: float = field("By prediction no mapping is better, as far as ``bound_says``")
    bound_says: str
    by_work: float = field(
        "Frames per second that no mapping, no pinning and no scheduler can go beyond with these costs"
    )
    runners_up: tuple[Ranked, ...]
    runners_say: str = field("Among which mappings these are the next best")
    seats: tuple[Seat, ...]
    sharing: tuple[Sharing, ...]
    links: tuple[LinkUse, ...]
    seconds: float = field("Of the search")
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
            "best": self.best,
            "decided_by": "simulation" if self.is_by_simulation else "prediction",
            "predicted_best": self.predicted_best,
            "simulated_mappings": self.tried,
            "least_latency_s": self.least_latency_s,
            "bound": self.bound,
            "bound_says": self.bound_says,
            "gap_ratio": self.gap_ratio,
            "by_work_pps": self.by_work,
            "runners_up": self.runners_up,
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


def answer(problem: PlacementProblem, *, progress: Progress | None = None, simulate: bool = True) -> PlacementAnswer:
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
        notes.append("the closed form knows no latency of this placement, so nothing says whether the target is met")
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
