"""Whether there is any placement that obeys the rules: a program over servers and classes of elements (HiGHS).

The work that a target needs is counted as if cores never waited and machines never slowed each other, so a target that
fails here is out of reach for every placement.
"""

from __future__ import annotations

import math

import highspy

from routecast.plan.placement.classes import classes_of
from routecast.plan.placement.columns import Column, threads_of
from routecast.plan.placement.mapping import Mapped, mapped
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.server_load import ServerLoads

__all__ = ["evenly_arranged", "exists"]

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
