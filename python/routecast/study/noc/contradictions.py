"""What a study of a network on chip may not say: names taken twice, curves and loads that a case does not have."""

from __future__ import annotations

from routecast.errors import Problem
from routecast.noc.contradictions import contradictions as contradictions_of_file
from routecast.quantity.did_you_mean import did_you_mean
from routecast.study.noc.document import NocStudy

__all__ = ["contradictions"]


def contradictions(study: NocStudy) -> list[Problem]:
    """Return everything that parts of the study say against one another, with its place."""
    problems = []
    seen: set[str] = set()
    for number, case in enumerate(study.case):
        place = f"case[{number}]"
        if case.name in seen:
            problems.append(Problem(f"{place}.name", f"{case.name!r} is taken: it names a figure"))
        seen.add(case.name)
        problems += [Problem(f"{place}.{one.place}", one.message) for one in contradictions_of_file(case)]
        curves: list[str] = [*case.routing.policies, *(case.planes.allocations if case.planes else ())]
        curves += ["optimum"] if case.has_optimum else []
        named = [(f"stated[{index}].curve", one.curve) for index, one in enumerate(case.stated)]
        named += [(f"maps[{index}]", curve) for index, curve in enumerate(case.maps)]
        for where, curve in named:
            if curve not in curves:
                problems.append(Problem(f"{place}.{where}", f"got {curve!r}: {did_you_mean(curve, curves)}"))
        for index, one in enumerate(case.stated):
            if one.load not in case.traffic.load:
                what = f"got {one.load:g}: a load of the case, {', '.join(f'{load:g}' for load in case.traffic.load)}"
                problems.append(Problem(f"{place}.stated[{index}].load", what))
    return problems
