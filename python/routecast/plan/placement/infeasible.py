"""Why there is no placement: an irreducible set of what was asked for, in the user's names.

HiGHS finds irreducible infeasible sets of linear programs; rules on whole elements can contradict each other where the
linear relaxation does not see it. So the set is found with the integer program itself, by leaving out one rule after
the other for good as long as there is still no placement (the deletion filter of Chinneck and Dravnieks, ORSA Journal
on Computing 3(2), 1991): each rule that remains is needed for the contradiction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from routecast.errors import Problem, RoutecastError
from routecast.plan.placement.model import PlacementProblem
from routecast.quantity import format_duration, format_pps

__all__ = ["Asked", "InfeasiblePlacement", "asked_of", "irreducible", "without"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Something that a placement must obey.

    Parameters
    ----------
    place : str
        Where the file says it.
    said : str
    drop : callable
        Returns the problem without it.
    """

    place: str
    said: str
    drop: Callable[[PlacementProblem], PlacementProblem]


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
        for field, said in (
            ("slots", f'{group.slots} machines fit on "{group.name}"'),
            ("memory_bytes", f'"{group.name}" has {_bytes(group.memory_bytes)}'),
        ):
            if getattr(group, field) is not None:
                place = f"server {group.name}.{field.removesuffix('_bytes')}"
                found.append(Asked(place=place, said=said, drop=_server_without(group.name, field)))
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
