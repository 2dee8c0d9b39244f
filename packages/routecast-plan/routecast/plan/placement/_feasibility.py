"""Decides whether a placement meets the constraints, and finds those that contradict each other.

An integer program over servers and classes of elements (HiGHS) decides. It counts the work for a target without waits
of cores and without contention, so no placement reaches a target that fails here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from routecast.errors import Problem, RoutecastError
from routecast.plan._integer_program import IntegerProgram, Undecided
from routecast.plan.placement._candidates import Candidate, Classes, Pattern, candidate_of, classes_of, threads_of
from routecast.plan.placement._server_load import ServerLoads
from routecast.plan.placement.model import ElementGroup, PlacementProblem, ServerGroup
from routecast.quantity import format_duration, format_pps
from routecast.quantity.schema import field, value


class InfeasiblePlacement(RoutecastError):
    """No placement meets all constraints.

    ``conflict`` is a smallest set of contradicting constraints: without any one of them the others can be met. ``hint``
    says what is possible.
    """

    def __init__(self, name: str, conflict: Sequence[Problem], hint: str = "") -> None:
        super().__init__(name, tuple(conflict), hint)
        self.name = name
        self.conflict = tuple(conflict)
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"  {problem}" for problem in self.conflict]
        if len(lines) == 1:
            head = f"{self.name}: no placement meets this constraint:"
        else:
            head = (
                f"{self.name}: no placement meets these {len(lines)} constraints together; without any one of them, a"
                " placement exists:"
            )
        return "\n".join([head, *lines, *filter(None, (self.hint,))])


@value
class Constraint:
    """A condition that a placement must meet."""

    place: str = field("Place in the file")
    description: str
    drop: Callable[[PlacementProblem], PlacementProblem] = field("Returns the problem without it")


def constraints_of(problem: PlacementProblem) -> list[Constraint]:
    """Return the constraints that can be dropped from a problem, the least fundamental first."""
    goal, rules = problem.goal, problem.rules
    constraints = []

    def add(place: str, description: str, drop: Callable[[PlacementProblem], PlacementProblem]) -> None:
        constraints.append(Constraint(place=place, description=description, drop=drop))

    if goal.objective != "throughput" and goal.latency_s is not None:
        add("plan.latency", f"a mean latency of at most {format_duration(goal.latency_s)}", _without_latency)
    if goal.objective != "throughput":
        rate = format_pps(goal.target_pps or problem.offered_pps)
        add("plan.target" if goal.target_pps else "traffic.offered", f"{rate} without loss", _without_target)
    if rules.most_servers is not None:
        description = f"at most {rules.most_servers} server{'s' if rules.most_servers > 1 else ''}"
        add("rules.most_servers", description, partial(_with_rules, most_servers=None))
    if not rules.shared_cores:
        add("rules.shared_cores", "no core serves two threads", partial(_with_rules, shared_cores=True))
    if problem.balancing == "local":
        description = "local: a server with elements of a chain has elements of all its stages"
        add("traffic.balancing", description, partial(replace, balancing="round_robin"))
    for group in problem.servers:
        if group.slots is not None:
            description = f'at most {group.slots} machines on a server of "{group.name}"'
            add(f"server {group.name}.slots", description, partial(_with_server, name=group.name, slots=None))
        if group.memory_bytes is not None:
            description = f'a server of "{group.name}" has {group.memory_bytes / 2**30:g} GiB of memory'
            add(f"server {group.name}.memory", description, partial(_with_server, name=group.name, memory_bytes=None))
    for kind, what in (("apart", "no two on one server"), ("together", "on one server")):
        for rule in getattr(rules, kind):
            add(f"rules.{kind}", f"{', '.join(rule)}: {what}", partial(_without_rule, kind=kind, rule=rule))
    for name, where in rules.on.items():
        add(f"rules.on.{name}", f"on {' or '.join(where)}", partial(_without_on, name=name))
    return constraints


def irreducible_conflict(
    problem: PlacementProblem, constraints: Sequence[Constraint], has_placement: Callable[[PlacementProblem], bool]
) -> list[Constraint]:
    """Return a smallest set of constraints that contradict each other: without any one of them a placement exists.

    HiGHS finds irreducible infeasible sets of linear programs, but the linear relaxation does not see all
    contradictions of rules on whole elements. So the integer program itself decides, in the deletion filter of Chinneck
    and Dravnieks (ORSA Journal on Computing 3(2), 1991): each constraint is removed if no placement exists
    without it.
    """
    conflict: list[Constraint] = []
    for constraint in constraints:
        relaxed = constraint.drop(problem)
        if has_placement(relaxed):
            conflict.append(constraint)
        else:
            problem = relaxed
    return conflict


def _with_rules(problem: PlacementProblem, **changes: Any) -> PlacementProblem:
    return replace(problem, rules=replace(problem.rules, **changes))


def _without_rule(problem: PlacementProblem, *, kind: str, rule: tuple[str, ...]) -> PlacementProblem:
    return _with_rules(problem, **{kind: tuple(other for other in getattr(problem.rules, kind) if other != rule)})


def _without_on(problem: PlacementProblem, *, name: str) -> PlacementProblem:
    return _with_rules(problem, on={other: where for other, where in problem.rules.on.items() if other != name})


def _with_server(problem: PlacementProblem, *, name: str, **changes: Any) -> PlacementProblem:
    servers = tuple(replace(group, **changes) if group.name == name else group for group in problem.servers)
    return replace(problem, servers=servers)


def _without_latency(problem: PlacementProblem) -> PlacementProblem:
    return replace(problem, goal=replace(problem.goal, latency_s=None))


def _without_target(problem: PlacementProblem) -> PlacementProblem:
    return replace(problem, goal=replace(problem.goal, objective="throughput", target_pps=None))


_SECONDS = 3.0


def is_feasible(problem: PlacementProblem, *, target_pps: float | None = None) -> bool:
    """Return whether a placement meets the rules and the cores suffice for a target's least work; True if undecided."""
    return _solve_program(problem, target_pps, None)[0]


def even_candidate(problem: PlacementProblem, loads: ServerLoads) -> Candidate | None:
    """Return a candidate that meets the rules and balances the least work over cores; None if the search finds none."""
    return _solve_program(problem, None, loads)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerRows:
    """Adds the constraints of one server to a program; its columns count the elements of each class on it."""

    problem: PlacementProblem
    classes: Classes
    program: IntegerProgram
    loads: ServerLoads | None
    target_pps: float | None

    @property
    def groups(self) -> list[ElementGroup]:
        """The groups of the classes of elements."""
        return [elements.group for elements in self.classes.elements]

    def add_limits(self, server: ServerGroup, columns: list[int]) -> None:
        """Limit the elements by slots, memory, threads without shared cores, and the work for a target."""
        program, groups = self.program, self.groups
        if server.slots is not None:
            program.add_row(dict.fromkeys(columns, 1.0), 0.0, float(server.slots))
        if server.memory_bytes is not None:
            memory = [group.memory_bytes for group in groups]
            program.add_row(dict(zip(columns, memory, strict=True)), 0.0, server.memory_bytes * (1.0 + 1e-12))
        if not self.problem.rules.shared_cores:
            threads = [float(threads_of(self.problem, server, group.name)) for group in groups]
            program.add_row(dict(zip(columns, threads, strict=True)), 0.0, float(server.cores))
        if self.loads is not None and self.target_pps:
            work = [self.loads.work(server.name, group.name).total_s * self.target_pps for group in groups]
            program.add_row(dict(zip(columns, work, strict=True)), 0.0, server.cores * (1.0 + 1e-9))

    def add_neighbours(self, columns: list[int]) -> None:
        """Keep apart what must be apart, and together what must be together."""
        for apart in self.classes.apart:
            self.program.add_row(dict.fromkeys((columns[k] for k in apart), 1.0), 0.0, 1.0)
        for together in self.classes.together:
            is_complete = self.program.add_column()
            for k in together:
                self.program.add_row({columns[k]: 1.0, is_complete: -float(self.classes.counts[k])}, 0.0, 0.0)

    def add_local_chains(self, columns: list[int]) -> None:
        """Require, for each chain, all its stages on a server that has one of them."""
        totals = self.classes.counts
        for chain in self.problem.chains:
            edge, *stages = (
                [k for k, group in enumerate(self.groups) if group.name == stage]
                for stage in (chain.stages[0], *chain.stages[1:-1])
            )
            for inner in stages:
                for required, requiring in ((edge, inner), (inner, edge)):
                    weight = -float(sum(totals[k] for k in required))
                    entries = {columns[k]: 1.0 for k in required} | {columns[k]: weight for k in requiring}
                    self.program.add_row(entries, -math.inf, 0.0)


def _solve_program(
    problem: PlacementProblem, target_pps: float | None, balanced_loads: ServerLoads | None
) -> tuple[bool, Candidate | None]:
    classes = classes_of(problem)
    groups = [elements.group for elements in classes.elements]
    totals = classes.counts
    loads = balanced_loads or (ServerLoads(problem) if target_pps else None)
    program = IntegerProgram()
    busiest_core_s = program.add_column(math.inf, cost=1.0, is_integer=False) if balanced_loads is not None else -1
    on_server: list[tuple[int, list[int]]] = []
    used: list[int] = []
    rows = _ServerRows(problem=problem, classes=classes, program=program, loads=loads, target_pps=target_pps)
    for host, server in [
        (number, host_class.group) for number, host_class in enumerate(classes.hosts) for _ in host_class.names
    ]:
        element_columns = [
            program.add_column(float(count) if host in classes.allowed[k] else 0.0) for k, count in enumerate(totals)
        ]
        is_used = program.add_column()
        on_server.append((host, element_columns))
        used.append(is_used)
        program.add_row({**dict.fromkeys(element_columns, 1.0), is_used: -float(sum(totals))}, -math.inf, 0.0)
        rows.add_limits(server, element_columns)
        if balanced_loads is not None:
            core_us = [
                1e6 * balanced_loads.work(server.name, group.name).total_s / balanced_loads.cores(server.name)
                for group in groups
            ]
            program.add_row({**dict(zip(element_columns, core_us, strict=True)), busiest_core_s: -1.0}, -math.inf, 0.0)
        rows.add_neighbours(element_columns)
        if problem.balancing == "local":
            rows.add_local_chains(element_columns)
    for k, count in enumerate(totals):
        program.add_row({element_columns[k]: 1.0 for _, element_columns in on_server}, float(count), float(count))
    if problem.rules.most_servers is not None:
        program.add_row(dict.fromkeys(used, 1.0), 0.0, float(problem.rules.most_servers))
    try:
        solution = program.solve(_SECONDS)
        values = None if solution is None else solution.values
    except Undecided as stopped:
        if stopped.values is None:
            return True, None
        values = stopped.values
    if values is None:
        return False, None
    patterns = [
        Pattern(host=host, counts=tuple(round(values[column]) for column in element_columns))
        for host, element_columns in on_server
    ]
    return True, candidate_of(patterns)
