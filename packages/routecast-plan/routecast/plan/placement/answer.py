"""Answers a placement problem: the best candidate, its proven distance to the optimum, and the next best.

The closed form compares thousands of candidates. It models work and waits for cores, but not the cost of bursts, full
queues and scheduling delays. So the best candidates by prediction are simulated in all ways of pinning, with the same
seeds. A candidate that is clearly better in simulation replaces the first; the proof of optimality then holds for the
prediction only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from routecast.errors import RoutecastError
from routecast.evaluate.plain import plain
from routecast.evaluate.solve.without_loss import throughput_of
from routecast.plan.placement._candidates import Classes
from routecast.plan.placement._feasibility import is_feasible
from routecast.plan.placement._finder import Finder, PredictedCandidate, infeasible_placement
from routecast.plan.placement._search import work_bound_pps
from routecast.plan.placement._server_load import ServerLoads
from routecast.plan.placement._server_view import stages_of
from routecast.plan.placement._simulation import ElementPlacement, SimulationCheck, Trials, load_of, router_of
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.prediction import PlacementPrediction
from routecast.progress import Progress
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel
from routecast.virtual.machines import Cores

__all__ = ["PlacedElement", "PlacementAnswer", "PredictedCandidate", "answer"]


MAX_SIMULATED = 5
"""Number of candidates that are simulated."""
MIN_IMPROVEMENT_RATIO = 0.02
"""A simulated result counts as better than another if it differs by more than this part."""


@value
class Verdict:
    """The result of the simulation of the best candidates by prediction."""

    best: PredictedCandidate
    first: PredictedCandidate = field("The best by prediction")
    others: tuple[PredictedCandidate, ...] = field("The next best by prediction")
    simulated_mappings: int = field("Simulated candidates; each way of pinning counts")
    met: bool | None = field("Whether target and latency are met; None without them, or if unknown")
    least_latency_s: float = field("Least latency of all simulated candidates, s", default=math.nan)
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class _PinnedCandidate:
    """A candidate with a way of pinning; the empty choice is that of the prediction."""

    number: int
    choice: str
    placement: ElementPlacement


class SimulationJudge:
    """Simulates candidates, in the order of their predictions, and chooses the best."""

    def __init__(self, finder: Finder, candidates: list[PredictedCandidate], on_step: Callable[[str], None]) -> None:
        self._finder, self._goal, self._candidates, self._on_step = finder, finder.problem.goal, candidates, on_step
        self._trials = Trials(finder.problem)
        self._is_lossless = self._goal.objective == "throughput" and self._goal.throughput == "lossless"
        self._latencies_s: list[float] = []

    def verdict(self, runners_up: int) -> Verdict:
        """Return the verdict, with ``runners_up`` next best candidates; after an interruption the verdict so far."""
        first = _PinnedCandidate(0, "", self._candidates[0].placement)
        best, simulated_mappings, met, is_interrupted = first, 1, None, False
        results = dict(enumerate(self._candidates[: 1 + runners_up]))
        try:
            self._on_step("simulates the best mapping")
            met = self._is_met(first)
            for candidate in self._pinned_candidates():
                if met and self._goal.objective != "throughput":
                    break  # Costs rise along the candidates, so no other is cheaper.
                simulated_mappings += 1
                self._on_step(f"simulates mapping {simulated_mappings}")
                is_met = self._is_met(candidate)
                if is_met is not False and (met is False or self._is_better(candidate, best)):
                    best, met = candidate, is_met
            self._on_step("simulates the next best mappings")
            for number, predicted in list(results.items()):
                results[number] = self._simulated(predicted)
        except KeyboardInterrupt:
            is_interrupted = True
        except RoutecastError as error:
            results[0] = self._not_simulated(self._candidates[0], str(error).splitlines()[0])
            best, met = first, None
        chosen = results.get(best.number, self._candidates[best.number])
        if best.choice:
            chosen = self._finder.pinned(chosen, best.choice, best.placement)
        if best != first:
            chosen = self._simulated(chosen)
        return Verdict(
            best=chosen,
            first=results[0],
            others=tuple(result for number, result in results.items() if number and number != best.number),
            simulated_mappings=simulated_mappings,
            met=met,
            least_latency_s=min(self._latencies_s, default=math.nan),
            is_interrupted=is_interrupted,
        )

    def _pinned_candidates(self) -> Iterator[_PinnedCandidate]:
        """Yield the first candidate in its other ways of pinning, then each other candidate in all ways."""
        for number, predicted in enumerate(self._candidates):
            if number:
                yield _PinnedCandidate(number, "", predicted.placement)
            for choice, placement in self._finder.other_pins(predicted):
                yield _PinnedCandidate(number, choice, placement)

    def _is_met(self, candidate: _PinnedCandidate) -> bool | None:
        """Return whether target and latency are met; None if there is neither."""
        is_target = self._goal.objective != "throughput"
        if not is_target and self._goal.latency_s is None:
            return None
        means = self._trials.at(candidate.placement, self._finder.rate_pps)
        if math.isfinite(means.latency_s):
            self._latencies_s.append(means.latency_s)
        if is_target and means.loss_ratio > MIN_IMPROVEMENT_RATIO:
            return False
        # Without a forwarded frame the latency is NaN and not met.
        return self._goal.latency_s is None or means.latency_s <= self._goal.latency_s

    def _is_better(self, candidate: _PinnedCandidate, best: _PinnedCandidate) -> bool:
        if self._goal.objective != "throughput":
            return False
        if not self._is_lossless:
            candidate_means, best_means = (
                self._trials.at(pinned.placement, self._finder.rate_pps) for pinned in (candidate, best)
            )
            return candidate_means.forwarded_pps > (1.0 + MIN_IMPROVEMENT_RATIO) * best_means.forwarded_pps
        best_pps = self._lossless_pps(best.placement)
        # One trial rules out most candidates; near the limit the loss varies with the load, so the rates decide.
        if best_pps > 0.0 and not self._trials.carries(candidate.placement, best_pps * (1.0 + MIN_IMPROVEMENT_RATIO)):
            return False
        return self._lossless_pps(candidate.placement) > best_pps * (1.0 + MIN_IMPROVEMENT_RATIO)

    def _lossless_pps(self, placement: ElementPlacement) -> float:
        return self._trials.lossless_pps(placement, self._candidates[0].prediction.lossless_pps)

    def _simulated(self, predicted: PredictedCandidate) -> PredictedCandidate:
        means = self._trials.at(predicted.placement, self._finder.rate_pps)
        check = SimulationCheck(
            **self._predicted_rates(predicted),
            simulated_pps=self._lossless_pps(predicted.placement) if self._is_lossless else means.forwarded_pps,
            forwarded_pps=means.forwarded_pps,
            latency_s=means.latency_s,
        )
        return replace(predicted, check=check)

    def _not_simulated(self, predicted: PredictedCandidate, trouble: str) -> PredictedCandidate:
        check = SimulationCheck(**self._predicted_rates(predicted), simulated_pps=math.nan, seeds=(), trouble=trouble)
        return replace(predicted, check=check)

    def _predicted_rates(self, predicted: PredictedCandidate) -> dict[str, Any]:
        prediction = predicted.prediction
        return {
            "rate": "lossless" if self._is_lossless else "forwarded",
            "predicted_pps": prediction.lossless_pps if self._is_lossless else prediction.forwarded_pps,
            "offered_pps": self._finder.rate_pps,
        }


@value
class PlacedElement:
    """An element on its server, with the cost of sharing (Li 2012, sec. 3.4.1)."""

    element: str
    server: str
    threads: Mapping[str, Cores] = field("Cores of its threads, ``()`` for all")
    shares_server: tuple[str, ...] = field("Other elements on the server")
    shares_cores: tuple[str, ...] = field("Other elements that may run on one of its cores")
    carries_pps: float = field("Share of the load when the server is full, frames/s")
    alone_pps: float = field("The same if it were alone on the server, frames/s; NaN where that is impossible")

    @property
    def cost_ratio(self) -> float:
        """Part of the rate alone that is lost by sharing."""
        return 1.0 - self.carries_pps / self.alone_pps if self.alone_pps > 0.0 else math.nan


@value
class ServerSharing:
    """The cost of sharing a server."""

    server: str
    elements: tuple[str, ...]
    share_cores: bool = field("Whether any two of them may run on the same core")
    carries_pps: float = field("Load of the whole system that the server carries, frames/s")
    apart_pps: float = field("The same if each were alone on such a server, frames/s; NaN where that is impossible")

    @property
    def cost_ratio(self) -> float:
        """Part of the load that is lost by sharing the server."""
        return 1.0 - self.carries_pps / self.apart_pps if self.apart_pps > 0.0 else math.nan


@value
class LinkUse:
    """A link between servers."""

    name: str
    used_ratio: float = field("Utilisation at the load")
    capacity_pps: float = field("Load of the whole system that fills the link, frames/s")


def placed_elements(
    problem: PlacementProblem,
    classes: Classes,
    loads: ServerLoads,
    placement: ElementPlacement,
    choices: Mapping[str, str],
    model: RouterModel,
) -> tuple[PlacedElement, ...]:
    """Return each element with its server and the cost of sharing; ``choices`` holds the way of pinning by server."""
    host_of = {name: group for group in problem.servers for name in group.names}
    threads = _threads(model, placement)
    group_of = {name: group.name for group in problem.elements for name in group.names}
    elements = []
    for group in problem.elements:
        for name in group.names:
            server = placement.servers[name]
            host = host_of[server]
            others = tuple(other for other in placement.on(server) if other != name)
            group_counts = _in_order(problem, Counter(group_of[element] for element in placement.on(server)))
            alone_pps = math.nan
            if problem.balancing != "local":
                alone = {group.name: 1}
                alone_pps = loads.capacity(host.name, alone).capacity_pps * _share(problem, group.name, alone)
            own_cores = _cores(threads[name], host.cores)
            elements.append(
                PlacedElement(
                    element=name,
                    server=server,
                    threads=threads[name],
                    shares_server=others,
                    shares_cores=tuple(other for other in others if own_cores & _cores(threads[other], host.cores)),
                    carries_pps=loads.pinned_pps(host.name, group_counts, choices.get(server, ""))
                    * _share(problem, group.name, group_counts),
                    alone_pps=alone_pps,
                )
            )
    return tuple(elements)


def sharing_of(
    problem: PlacementProblem,
    loads: ServerLoads,
    placement: ElementPlacement,
    choices: Mapping[str, str],
    elements: Sequence[PlacedElement],
) -> tuple[ServerSharing, ...]:
    """Return the cost of sharing on each server with several elements, the least capacity first."""
    group_of = {name: group.name for group in problem.elements for name in group.names}
    sharing = []
    for host in problem.servers:
        for server in host.names:
            elements_here = placement.on(server)
            if len(elements_here) < 2:
                continue
            counts = _in_order(problem, Counter(group_of[name] for name in elements_here))
            apart_pps = math.nan
            if problem.balancing != "local":
                apart_pps = min(loads.capacity(host.name, {name: 1}).capacity_pps for name in counts)
            sharing.append(
                ServerSharing(
                    server=server,
                    elements=elements_here,
                    share_cores=any(element.shares_cores for element in elements if element.server == server),
                    carries_pps=loads.pinned_pps(host.name, counts, choices.get(server, "")),
                    apart_pps=apart_pps,
                )
            )
    return tuple(sorted(sharing, key=lambda shared: shared.carries_pps))


def links_of(prediction: PlacementPrediction, problem: PlacementProblem) -> tuple[LinkUse, ...]:
    """Return the links between servers, the least capacity first."""
    servers = {name for group in problem.servers for name in group.names}
    links = [
        LinkUse(name=resource.name, used_ratio=resource.utilisation_ratio, capacity_pps=resource.capacity_pps)
        for resource in prediction.resources
        if resource.kind == "pool" and resource.name not in servers
    ]
    return tuple(sorted(links, key=lambda link: link.capacity_pps))


def _in_order(problem: PlacementProblem, group_counts: Mapping[str, int]) -> dict[str, int]:
    return {group.name: group_counts[group.name] for group in problem.elements if group.name in group_counts}


def _share(problem: PlacementProblem, group: str, group_counts: Mapping[str, int]) -> float:
    """Return the share of the load that an element takes; a second pass is not counted."""
    total = 0.0
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        stages = stages_of(problem, chain, share, group_counts)
        inner = stages[:-1] if chain.returns else stages
        total += sum(stage.arrival for stage in inner if stage.group == group)
    return total


def _threads(model: RouterModel, placement: ElementPlacement) -> dict[str, dict[str, Cores]]:
    threads: dict[str, dict[str, Cores]] = {name: {} for name in placement.servers}
    for task in model.tasks:
        for name, own in threads.items():
            if task.thread.startswith(f"{name} "):
                own[task.thread.removeprefix(f"{name} ")] = task.pin
    return threads


def _cores(threads: Mapping[str, Cores], cores: int) -> set[int]:
    return {core for pin in threads.values() for core in pin or range(cores)}


_STEPS = 4


@value
class PlacementAnswer:
    """The best candidate of a problem, with its bound and the next best candidates."""

    problem: PlacementProblem
    best: PredictedCandidate
    predicted_best: PredictedCandidate = field("The best by prediction; simulation may prefer another")
    met: bool | None = field(
        "Whether the target and the latency are met; None without them, or if it is not known", default=None
    )
    simulated_mappings: int = field("Simulated candidates, each way of pinning counted", default=0)
    least_latency_s: float = field(
        "Least latency of all simulated candidates, s; NaN without a target", default=math.nan
    )
    bound: float = field("Bound of the predictions of all candidates, in the scope of ``bound_scope``")
    bound_scope: str = field("Text on the candidates for which the bound holds")
    work_bound_pps: float = field(
        "Throughput that no candidate, pinning or scheduler exceeds with these costs, frames/s"
    )
    runners_up: tuple[PredictedCandidate, ...]
    runners_up_scope: str = field("Text on the candidates among which ``runners_up`` are the next best")
    elements: tuple[PlacedElement, ...]
    sharing: tuple[ServerSharing, ...]
    links: tuple[LinkUse, ...]
    known_lossless_pps: float = field(
        "Greatest load at which the closed form knows that at most a frame in 1,000 is lost with the best mapping, "
        "frames/s; NaN: none"
    )
    seconds: float = field("Time of the search, s")
    predictions: int
    notes: tuple[str, ...] = ()

    @property
    def gap_ratio(self) -> float:
        """Greatest part by which the best by prediction can differ from the optimum."""
        low, high = sorted((self.predicted_best.value, self.bound))
        if high - low <= 1e-9 * high:
            return 0.0
        return high / low - 1.0 if low > 0.0 else math.inf

    @property
    def is_by_simulation(self) -> bool:
        """Whether simulation prefers another candidate than the prediction."""
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
            "simulated_mappings": self.simulated_mappings,
            "least_latency_s": self.least_latency_s,
            "bound": self.bound,
            "bound_says": self.bound_scope,
            "gap_ratio": self.gap_ratio,
            "by_work_pps": self.work_bound_pps,
            "runners_up": self.runners_up,
            "runners_say": self.runners_up_scope,
            "elements": self.elements,
            "sharing": self.sharing,
            "links": self.links,
            "known_lossless_pps": self.known_lossless_pps,
            "seconds": self.seconds,
            "predictions": self.predictions,
            "notes": self.notes,
        }
        result = plain(document)
        assert isinstance(result, dict)
        return result


def answer(problem: PlacementProblem, *, on_progress: Progress | None = None, simulate: bool = True) -> PlacementAnswer:
    """Place the elements of a problem.

    Parameters
    ----------
    problem : PlacementProblem
    on_progress : callable, optional
        Called with the steps done, their number, and a text about the next one.
    simulate : bool
        Check the best candidate and the next ones by simulation.

    Raises
    ------
    InfeasiblePlacement
        No placement exists; the exception has the constraints that contradict each other.
    """
    report = on_progress or (lambda done, total, what: None)
    report(0, _STEPS, "a placement that obeys the rules")
    if not is_feasible(problem):
        raise infeasible_placement(problem, is_feasible)
    finder = Finder(problem, lambda what: report(1, _STEPS, what))
    result = finder.find()
    report(2, _STEPS, "the next best mappings")
    number = max(problem.goal.runners_up, MAX_SIMULATED - 1 if simulate else 0)
    first = finder.forwarded[0] if finder.is_overloaded else finder.predicted(result.candidate, result.value)
    others = finder.next_best(result, number)
    reported = problem.goal.runners_up
    verdict = Verdict(best=first, first=first, others=others[:reported], simulated_mappings=0, met=_met(problem, first))
    if simulate:
        verdict = SimulationJudge(finder, [first, *others], lambda what: report(3, _STEPS, what)).verdict(reported)
    notes = list(finder.notes)
    if verdict.is_interrupted:
        notes.append("the check by simulation was interrupted")
    if not simulate and verdict.met is None and problem.goal.latency_s is not None:
        notes.append("the closed form knows no latency of this placement, so nothing says whether the target is met")
    best = verdict.best
    model = router_of(problem, best.placement)
    elements = placed_elements(problem, finder.classes, finder.loads, best.placement, best.placement.choices, model)
    report(_STEPS, _STEPS, "")
    return PlacementAnswer(
        problem=problem,
        best=best,
        predicted_best=verdict.first,
        met=verdict.met,
        simulated_mappings=verdict.simulated_mappings,
        least_latency_s=verdict.least_latency_s,
        bound=finder.bound if finder.is_overloaded else result.bound,
        bound_scope=finder.bound_scope,
        work_bound_pps=work_bound_pps(problem, finder.loads),
        runners_up=verdict.others,
        runners_up_scope=finder.runners_up_scope,
        elements=elements,
        sharing=sharing_of(problem, finder.loads, best.placement, best.placement.choices, elements),
        links=links_of(best.prediction, problem),
        known_lossless_pps=throughput_of(model, load_of(problem)).rate_pps,
        seconds=result.seconds,
        predictions=finder.loads.predictions,
        notes=tuple(notes),
    )


def _met(problem: PlacementProblem, predicted: PredictedCandidate) -> bool | None:
    """Return whether the closed form meets the latency; None if it does not know."""
    limit_s, latency_s = problem.goal.latency_s, predicted.prediction.latency_s
    if limit_s is None or not math.isfinite(latency_s):
        return None
    return latency_s <= limit_s * (1.0 + 1e-9)
