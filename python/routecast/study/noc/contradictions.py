"""What a study of a network on chip may not say: names taken twice, curves and loads that a case does not have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.noc.file.reading import contradictions as contradictions_of_file
from routecast.noc.file.reading import traffic_of
from routecast.noc.topology import Topology, TopologyKind
from routecast.quantity.did_you_mean import did_you_mean
from routecast.study.noc.document import Case, NocStudy
from routecast.study.noc.judged import BEFORE, OURS

__all__ = ["contradictions"]


def contradictions(study: NocStudy, folder: Path) -> list[Problem]:
    """Return everything that parts of the study say against one another, with its place.

    Parameters
    ----------
    study : NocStudy
    folder : Path
        Where files that the study names are looked for.
    """
    problems = []
    seen: set[str] = set()
    for number, case in enumerate(study.case):
        place = f"case[{number}]"
        if case.name in seen:
            problems.append(Problem(f"{place}.name", f"{case.name!r} is taken: it names a figure"))
        seen.add(case.name)
        own = contradictions_of_file(case) or _of_traffic(case, folder)
        problems += [Problem(f"{place}.{one.place}", one.message) for one in (*own, *_of_curves(case))]
    return [*problems, *_of_criteria(study)]


def _of_traffic(case: Case, folder: Path) -> list[Problem]:
    """Return why the traffic of a case without contradictions does not fit its grid, or cannot be read."""
    grid = case.topology
    topology = Topology(
        kind=TopologyKind(grid.kind), columns=grid.columns, rows=grid.rows, concentration=grid.concentration
    )
    try:
        traffic_of(case.traffic, topology, subject="", folder=folder)
    except FileProblem as problem:
        if not problem.subject:
            return list(problem.problems)
        return [Problem("traffic.matrix" if case.traffic.matrix else "traffic.task_graph", str(problem))]
    return []


def _of_curves(case: Case) -> Iterator[Problem]:
    curves: list[str] = [*case.routing.policies, *_allocations(case)]
    curves += ["optimum"] if case.has_optimum else []
    named = [(f"stated[{index}].curve", one.curve) for index, one in enumerate(case.stated)]
    named += [(f"maps[{index}]", curve) for index, curve in enumerate(case.maps)]
    for where, curve in named:
        if curve not in curves:
            yield Problem(where, f"got {curve!r}: {did_you_mean(curve, curves)}")
    for index, one in enumerate(case.stated):
        if one.load not in case.traffic.load:
            loads = ", ".join(f"{load:g}" for load in case.traffic.load)
            yield Problem(f"stated[{index}].load", f"got {one.load:g}: a load of the case, {loads}")
        if one.at_most and one.within is None:
            what = 'is a criterion: say how much more is allowed with "within"'
            yield Problem(f"stated[{index}].at_most", what)
    if case.planes is not None and not _allocations(case):
        yield Problem("planes", "is one plane: leave [planes] out, or have more")


def _allocations(case: Case) -> tuple[str, ...]:
    """Return the allocations of a case that has more planes than one."""
    planes = case.planes
    several = planes is not None and (len(planes.widths) if planes.widths else planes.count or 2) > 1
    return planes.allocations if planes is not None and several else ()


def _of_criteria(study: NocStudy) -> Iterator[Problem]:
    wanted = study.criteria
    if wanted.flit_ratio is not None and study.flits is None:
        yield Problem("criteria.flit_ratio", "needs [flits]")
    if wanted.gap is not None and not any(case.has_optimum for case in study.case):
        yield Problem("criteria.gap", "needs a case with an optimum")
    needs = {OURS, BEFORE}
    if wanted.closed is not None and not any(
        case.has_optimum and needs <= set(_allocations(case)) for case in study.case
    ):
        what = f'needs a case with an optimum and planes.allocations "{BEFORE}" and "{OURS}"'
        yield Problem("criteria.closed", what)
