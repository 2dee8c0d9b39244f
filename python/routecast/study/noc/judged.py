"""Stated values beside found ones, and the criteria of a study of a network on chip."""

from __future__ import annotations

import math

from routecast.study.noc.document import NocStudy
from routecast.study.noc.point import BOUND, curve_name
from routecast.study.noc.result import CaseResult, Compared, NocResult
from routecast.study.result import Criterion

__all__ = ["closed_ratio", "compared", "criteria"]

OURS = "search"
BEFORE = "four_phase"
ROUNDING = 1e-9


def compared(study: NocStudy, cases: tuple[CaseResult, ...]) -> tuple[Compared, ...]:
    """Return every stated value of every case beside the one found."""
    return tuple(
        Compared(case=one.case.name, stated=stated, found=one.mean(stated.curve, stated.load))
        for one in cases
        for stated in one.case.stated
    )


def closed_ratio(one: CaseResult, load: float) -> float:
    """Return which part of the distance from 2P-4PHASE to what whole flows need at least our allocation closes.

    That is at least the power of either bound: of flows that may be split, and of flows that are not. 1 is all of it,
    and where there is no distance; below 0 our allocation needs more power; NaN where one of the three is missing.
    """
    before, ours = one.mean(BEFORE, load), one.mean(OURS, load)
    bound = one.least(load)
    if before <= bound * (1 + ROUNDING) and not math.isnan(ours):
        return float(ours <= before * (1 + ROUNDING))
    return (before - ours) / (before - bound)


def criteria(result: NocResult) -> tuple[Criterion, ...]:
    """Return what the study asks for and what is reached."""
    bounds = result.study.criteria
    found = []
    for pair in result.compared:
        if pair.stated.within is not None:
            error = pair.error_ratio if pair.stated.at_most else abs(pair.error_ratio)
            found.append(
                Criterion(
                    name=f"{pair.case}, {curve_name(pair.stated.curve)}",
                    bound=pair.stated.within,
                    reached=error,
                )
            )
    if bounds.flit_ratio is not None and result.dvfs_rows:
        worst = max(abs(row.ratio.value / row.theory - 1.0) for row in result.dvfs_rows)
        found.append(Criterion(name="flit level against alpha squared", bound=bounds.flit_ratio, reached=worst))
    if bounds.gap is not None:
        gaps = [one.worst_gap(load) for one in result.cases if one.case.has_optimum for load in one.loads]
        # A load without an optimum is a criterion that is missed, not one that is left out.
        worst = max(gaps, default=math.nan) if all(map(math.isfinite, gaps)) else math.nan
        found.append(Criterion(name="gap of the optimum", bound=bounds.gap, reached=worst))
    if bounds.closed is not None:
        for one in result.cases:
            if {OURS, BEFORE, BOUND} <= set(one.curves):
                load = max(one.loads)
                open_ratio = 1.0 - closed_ratio(one, load)
                found.append(
                    Criterion(
                        name=f"{one.case.name}, distance to the bound left of 2P-4PHASE's",
                        bound=1.0 - bounds.closed,
                        reached=open_ratio,
                    )
                )
    return tuple(found)
