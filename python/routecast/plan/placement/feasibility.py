"""Whether there is any placement that obeys the rules: a program over servers and classes of elements (HiGHS).

The work that a target needs is counted as if cores never waited and machines never slowed each other, so a target that
fails here is out of reach for every placement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import highspy

from routecast.errors import Problem, RoutecastError
from routecast.plan.placement.classes import Column, classes_of, threads_of
from routecast.plan.placement.mapping import Mapped, mapped
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.server_load import ServerLoads
from routecast.quantity import format_duration, format_pps
from routecast.quantity.schema import field, value

__all__ = ["Asked", "InfeasiblePlacement", "asked_of", "evenly_arranged", "exists", "irreducible"]


# Why there is no placement: an irreducible set of what was asked for, in the user's names.
#
# HiGHS finds irreducible infeasible sets of linear programs; rules on whole elements can contradict each other where
# the
# linear relaxation does not see it. So the set is found with the integer program itself, by leaving out one rule after
# the other for good as long as there is still no placement (the deletion filter of Chinneck and Dravnieks, ORSA
# Journal
# on Computing 3(2), 1991): each rule that remains is needed for the contradiction.


class InfeasiblePlacement(RoutecastError):
    """No placement obeys all that is asked for.

    Attributes
    ----------
    name : str
        What should be placed.
    conflict : tuple of Problem
        What contradicts itself: leave any one of it out, and the rest can be obeyed.
    hint : str
        What is possible.
    """

    def __init__(self, name: str, conflict: Sequence[Problem], hint: str = "") -> None:
        super().__init__(name, tuple(conflict), hint)
        self.name = name
        self.conflict = tuple(conflict)
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"  {one}" for one in self.conflict]
        if len(lines) == 1:
            head = f"{self.name}: there is no placement, because of this alone:"
        else:
            head = (
                f"{self.name}: there is no placement that obeys these {len(lines)} together;"
                " without any one of them there is:"
            )
        return "\n".join([head, *lines, *filter(None, (self.hint,))])


@value
class Asked:
    """Something that a placement must obey."""

    place: str = field("Where the file says it")
    said: str
    drop: Callable[[PlacementProblem], PlacementProblem] = field("Returns the problem without it")


def asked_of(problem: PlacementProblem) -> list[Asked]:
    """Return all that can be left out of a problem, the least fundamental first."""
    goal, rules = problem.goal, problem.rules
    found = []
    if goal.objective != "throughput" and goal.latency_s is not None:
        said = f"a mean latency of at most {format_duration(goal.latency_s)}"
        found.append(Asked(place="plan.latency", said=said, drop=_without_latency))
    if goal.objective != "throughput":
        rate = format_pps(goal.target_pps or problem.offered_pps)
        place = "plan.target" if goal.target_pps else "traffic.offered"
        found.append(Asked(place=place, said=f"{rate} without loss", drop=_without_target))
    if rules.most_servers is not None:
        said = f"at most {rules.most_servers} server{'s' if rules.most_servers > 1 else ''}"
        found.append(
            Asked(
                place="rules.most_servers",
                said=said,
                drop=lambda one: replace(one, rules=replace(one.rules, most_servers=None)),
            )
        )
    if not rules.shared_cores:
        found.append(
            Asked(
                place="rules.shared_cores",
                said="no core serves two threads",
                drop=lambda one: replace(one, rules=replace(one.rules, shared_cores=True)),
            )
        )
    if problem.balancing == "local":
        found.append(
            Asked(
                place="traffic.balancing",
                said="local: a server that has elements of a chain has all kinds of them",
                drop=lambda one: replace(one, balancing="round_robin"),
            )
        )
    for group in problem.servers:
        for limit, said in (
            ("slots", f'{group.slots} machines fit on "{group.name}"'),
            ("memory_bytes", f'"{group.name}" has {_bytes(group.memory_bytes)}'),
        ):
            if getattr(group, limit) is not None:
                place = f"server {group.name}.{limit.removesuffix('_bytes')}"
                found.append(Asked(place=place, said=said, drop=_server_without(group.name, limit)))
    found += [_of_list("apart", rule, "no two on one server") for rule in rules.apart]
    found += [_of_list("together", rule, "on one server") for rule in rules.together]
    for name, where in rules.on.items():
        found.append(Asked(place=f"rules.on.{name}", said=f"on {' or '.join(where)}", drop=_without_on(name)))
    return found


def irreducible(
    problem: PlacementProblem, asked: Sequence[Asked], is_possible: Callable[[PlacementProblem], bool]
) -> list[Asked]:
    """Return what of ``asked`` contradicts itself and is possible without any one of it.

    Parameters
    ----------
    problem : PlacementProblem
        One without a placement.
    asked : sequence of Asked
    is_possible : callable
        Whether a problem has a placement.
    """
    needed: list[Asked] = []
    for one in asked:
        less = one.drop(problem)
        if is_possible(less):
            needed.append(one)
        else:
            problem = less
    return needed


def without(problem: PlacementProblem, asked: Sequence[Asked]) -> PlacementProblem:
    """Return the problem without some of what is asked for."""
    for one in asked:
        problem = one.drop(problem)
    return problem


def _of_list(field: str, rule: tuple[str, ...], said: str) -> Asked:
    def drop(problem: PlacementProblem) -> PlacementProblem:
        rules = problem.rules
        kept = tuple(one for one in getattr(rules, field) if one != rule)
        less = replace(rules, apart=kept) if field == "apart" else replace(rules, together=kept)
        return replace(problem, rules=less)

    names = ", ".join(rule)
    return Asked(place=f"rules.{field}", said=f"{names}: {said}", drop=drop)


def _without_on(name: str) -> Callable[[PlacementProblem], PlacementProblem]:
    def drop(problem: PlacementProblem) -> PlacementProblem:
        kept = {one: where for one, where in problem.rules.on.items() if one != name}
        return replace(problem, rules=replace(problem.rules, on=kept))

    return drop


def _server_without(name: str, field: str) -> Callable[[PlacementProblem], PlacementProblem]:
    def drop(problem: PlacementProblem) -> PlacementProblem:
        servers = tuple(
            replace(one, slots=None)
            if one.name == name and field == "slots"
            else replace(one, memory_bytes=None)
            if one.name == name
            else one
            for one in problem.servers
        )
        return replace(problem, servers=servers)

    return drop


def _without_latency(problem: PlacementProblem) -> PlacementProblem:
    return replace(problem, goal=replace(problem.goal, latency_s=None))


def _without_target(problem: PlacementProblem) -> PlacementProblem:
    return replace(problem, goal=replace(problem.goal, objective="throughput", target_pps=None))


def _bytes(size: float | None) -> str:
    return f"{(size or 0.0) / 2**30:g} GiB of memory"


_SECONDS = 3.0


def exists(problem: PlacementProblem, *, target_pps: float | None = None) -> bool:
    """Return whether the rules leave a placement, and the least work of a target the cores; True where undecided."""
    is_possible, _ = _arranged(problem, target_pps, None)
    return is_possible


def evenly_arranged(problem: PlacementProblem, loads: ServerLoads) -> Mapped | None:
    """Return a mapping that obeys the rules and spreads the least work as evenly as is found; None where none is."""
    return _arranged(problem, None, loads)[1]


def _arranged(
    problem: PlacementProblem, target_pps: float | None, even: ServerLoads | None
) -> tuple[bool, Mapped | None]:
    classes = classes_of(problem)
    loads = even or (ServerLoads(problem) if target_pps else None)
    model = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
    model.silent()
    model.setOptionValue("threads", 1)
    model.setOptionValue("time_limit", _SECONDS)
    rows: list[tuple[list[int], list[float], float, float]] = []
    upper: list[float] = []

    def variable(most: float) -> int:
        upper.append(most)
        return len(upper) - 1

    every = classes.counts
    fullest = variable(math.inf) if even is not None else -1
    on_server: list[tuple[int, list[int]]] = []
    where: list[list[int]] = [[] for _ in every]
    used: list[int] = []
    for h, host in enumerate(classes.hosts):
        for _ in host.names:
            group = host.group
            here = [variable(float(n) if h in classes.allowed[k] else 0.0) for k, n in enumerate(every)]
            on = variable(1.0)
            on_server.append((h, here))
            used.append(on)
            rows.append(([*here, on], [1.0] * len(here) + [-float(sum(every))], -math.inf, 0.0))
            if group.slots is not None:
                rows.append((here, [1.0] * len(here), 0.0, float(group.slots)))
            if group.memory_bytes is not None:
                memory = [one.group.memory_bytes for one in classes.alike]
                rows.append((here, memory, 0.0, group.memory_bytes * (1.0 + 1e-12)))
            if not problem.rules.shared_cores:
                threads = [float(threads_of(problem, group, one.group.name)) for one in classes.alike]
                rows.append((here, threads, 0.0, float(group.cores)))
            if even is not None:
                least = [even.work(group.name, one.group.name).total_s for one in classes.alike]
                share = [1e6 * one / even.cores(group.name) for one in least]
                rows.append(([*here, fullest], [*share, -1.0], -math.inf, 0.0))
            if loads is not None and target_pps:
                work = [loads.work(group.name, one.group.name).total_s * target_pps for one in classes.alike]
                rows.append((here, work, 0.0, group.cores * (1.0 + 1e-9)))
            for apart in classes.apart:
                rows.append(([here[k] for k in apart], [1.0] * len(apart), 0.0, 1.0))
            for together in classes.together:
                whole = variable(1.0)
                rows += [([here[k], whole], [1.0, -float(every[k])], 0.0, 0.0) for k in together]
            if problem.balancing == "local":
                for chain in problem.chains:
                    edge = [k for k, one in enumerate(classes.alike) if one.group.name == chain.stages[0]]
                    for stage in chain.stages[1:-1]:
                        inner = [k for k, one in enumerate(classes.alike) if one.group.name == stage]
                        for some, others in ((edge, inner), (inner, edge)):
                            weight = -float(sum(every[k] for k in some))
                            at = [here[k] for k in (*some, *others)]
                            rows.append((at, [1.0] * len(some) + [weight] * len(others), -math.inf, 0.0))
            for k, one in enumerate(here):
                where[k].append(one)
    rows += [(where[k], [1.0] * len(where[k]), float(n), float(n)) for k, n in enumerate(every)]
    if problem.rules.most_servers is not None:
        rows.append((used, [1.0] * len(used), 0.0, float(problem.rules.most_servers)))
    for most in upper:
        model.addVar(0.0, most)
    for number in range(len(upper)):
        if number != fullest:
            model.changeColIntegrality(number, highspy.HighsVarType.kInteger)
    if even is not None:
        model.changeColCost(fullest, 1.0)
    for at, values, low, high in rows:
        model.addRow(low, high, len(at), at, values)
    model.run()
    if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return False, None
    solution = model.getSolution()
    if not solution.value_valid:
        return True, None
    values = solution.col_value
    columns = [Column(host=h, counts=tuple(round(values[one]) for one in here)) for h, here in on_server]
    return True, mapped(columns)
