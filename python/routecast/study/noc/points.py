"""Every curve of one traffic matrix, and the maps of its link loads."""

from __future__ import annotations

from pathlib import Path

from routecast.noc.answer.optimum import optimum_answer
from routecast.noc.answer.power import power_answer
from routecast.noc.case import NocCase
from routecast.noc.file.reading import noc_case
from routecast.noc.planes.whole_flows import whole_flow_bound
from routecast.report.noc.link_map import LinkMap
from routecast.report.noc.pictures import optimum_map, power_map
from routecast.study.noc.document import Case
from routecast.study.noc.point import BOUND, WHOLE, Point

__all__ = ["link_maps", "points_of_matrix"]


def points_of_matrix(case: Case, matrix: int, folder: Path) -> list[Point]:
    """Return the points of every curve at every load for one matrix of a case.

    A curve has no point at a load that overloads one of its links, nor where its allocation cannot be had.

    Raises
    ------
    routecast.errors.RoutecastError
        The case contradicts itself, or its traffic does not fit its grid.
    """
    noc = _of_matrix(case, matrix, folder)
    answer = power_answer(noc)
    # Power without scaling is in proportion to the load: this is that at load 1, even if XY cannot carry it.
    unscaled = answer.rows[0].no_dvfs_power / answer.rows[0].load or 1.0
    points = [
        Point(
            curve=row.key,
            matrix=matrix,
            load=row.load,
            relative_power=row.power / unscaled,
            alphas=row.alphas,
        )
        for row in answer.rows
        if row.power is not None
    ]
    if noc.has_planes:
        points += [_whole(noc, matrix, load, unscaled) for load in noc.loads]
    if case.has_optimum:
        points += [
            Point(
                curve=BOUND,
                matrix=matrix,
                load=row.load,
                relative_power=row.optimum.lower_bound / unscaled,
                alphas=tuple(plane.alpha for plane in row.optimum.planes),
                gap=row.optimum.gap,
            )
            for row in optimum_answer(noc, power=answer, leaves_out=True).rows
        ]
    return points


def _whole(noc: NocCase, matrix: int, load: float, unscaled: float) -> Point:
    scalings = (noc.scaling,) * len(noc.widths)
    power = whole_flow_bound(noc.topology, noc.demand(load), scalings, widths=noc.widths)
    return Point(curve=WHOLE, matrix=matrix, load=load, relative_power=power / unscaled, alphas=())


def link_maps(case: Case, folder: Path) -> tuple[LinkMap, ...]:
    """Return the maps that a case asks for: its first matrix at the highest load."""
    curves = tuple(curve for curve in case.maps if curve != BOUND)
    if not case.maps:
        return ()
    load = max(case.traffic.load)
    only = case.model_copy(
        update={
            "traffic": case.traffic.model_copy(update={"load": (load,)}),
            "planes": case.planes
            and case.planes.model_copy(
                update={"allocations": tuple(name for name in case.planes.allocations if name in curves)}
            ),
        }
    )
    answer = power_answer(_of_matrix(only, 0, folder))
    maps = [power_map(answer, load, only=curves)] if curves else []
    if BOUND in case.maps:
        found = optimum_answer(answer.case, power=answer, leaves_out=True)
        maps += [optimum_map(found, row) for row in found.rows]
    return tuple(maps)


def _of_matrix(case: Case, matrix: int, folder: Path) -> NocCase:
    """Return the case with the seeds of one of its matrices."""
    traffic, routing = case.traffic, case.routing
    if traffic.pattern == "normal":
        first = 1 if traffic.seed is None else traffic.seed
        traffic = traffic.model_copy(update={"seed": first + matrix})
    routing = routing.model_copy(update={"seed": routing.seed + matrix})
    changed = case.model_copy(update={"traffic": traffic, "routing": routing})
    return noc_case(changed, subject=case.name, folder=folder)
