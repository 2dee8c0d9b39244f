"""``noc optimum``: the least power of any splitting of flows, and the distance of routings and allocations from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from routecast.errors import RoutecastError
from routecast.noc.answer.power import PowerAnswer, document, power_answer
from routecast.noc.file import NocCase
from routecast.noc.optimum.program import Optimum, PathSet
from routecast.noc.planes.whole_flows import whole_flow_bound
from routecast.noc.topology import Floats
from routecast.progress import Progress
from routecast.quantity import format_ratio

__all__ = ["OptimumAnswer", "OptimumRow", "optimum_answer"]

# A link is a bottleneck if it is full up to the tolerance of the linear programs.
_FULL = 1.0 - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimumRow:
    """The optimum at one load.

    ``load``: normalised; ``seconds``: run time; ``widths``: of the planes; ``whole_flows``: with several planes, a
    lower bound of the power of allocations of whole flows that ignores capacities of links.
    """

    load: float
    optimum: Optimum
    seconds: float
    widths: tuple[float, ...] = (1.0,)
    whole_flows: float | None = None

    @property
    def whole_flow_bound(self) -> float:
        """The larger of the two lower bounds of the power of allocations of whole flows."""
        return max(self.optimum.lower_bound, self.whole_flows or 0.0)

    def bottlenecks(self, plane: int) -> tuple[int, ...]:
        """Return the links of a plane that are full at its clock; none where the slowest clock suffices."""
        flow = self.optimum.planes[plane]
        full = np.flatnonzero(self.relative_loads(plane) * flow.alpha >= _FULL)
        return tuple(int(link) for link in full)

    def relative_loads(self, plane: int) -> Floats:
        """Return the load of every link of a plane, in its own capacities at full clock."""
        loads: Floats = self.optimum.planes[plane].link_loads / self.widths[plane]
        return loads


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimumAnswer:
    """The optimum at every load, and the power of the file's routings and allocations."""

    power: PowerAnswer
    rows: tuple[OptimumRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def case(self) -> NocCase:
        """The file's case."""
        return self.power.case

    def above_bound_ratio(self, power: float | None, row: OptimumRow) -> float | None:
        """Return the relative excess of a power over the proven bound of a load; None without power or bound."""
        bound = row.optimum.lower_bound
        return None if power is None or not bound else power / bound - 1.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data; power in links that are always busy at full voltage."""
        names = self.case.topology.link_name
        links = len(self.rows[0].optimum.planes[0].link_loads) if self.rows else 0
        return document(
            self.case,
            paths=self.case.optimum.paths,
            optima=[
                {
                    "load": row.load,
                    "power": row.optimum.power,
                    "lower_bound": row.optimum.lower_bound,
                    "whole_flow_bound": row.whole_flow_bound if self.case.has_planes else None,
                    "gap_ratio": row.optimum.gap,
                    "programs": row.optimum.programs,
                    "seconds": row.seconds,
                    "planes": [
                        {
                            "alpha": plane.alpha,
                            "power": plane.power,
                            "bottlenecks": [names(link) for link in row.bottlenecks(number)],
                            "link_loads": [float(load) for load in plane.link_loads],
                        }
                        for number, plane in enumerate(row.optimum.planes)
                    ],
                    "beside": [
                        {**power.to_json(), "above_bound_ratio": self.above_bound_ratio(power.power, row)}
                        for power in self.power.at(row.load)
                    ],
                }
                for row in self.rows
            ],
            links=[names(link) for link in range(links)],
            notes=self.notes,
        )


def optimum_answer(
    case: NocCase,
    *,
    power: PowerAnswer | None = None,
    on_progress: Progress | None = None,
    skips_overload: bool = False,
) -> OptimumAnswer:
    """Return the optimum of a file at each of its loads.

    Parameters
    ----------
    case : NocCase
    power : PowerAnswer, optional
        Computed if not given.
    on_progress : callable, optional
        Is called with the finished loads, of all, and the proven gap of the current one.
    skips_overload : bool
        Note a load that no routing carries and continue, instead of refusing it.

    Raises
    ------
    RoutecastError
        No routing carries the traffic at full clock; the message names the links that are too few.
    """
    report = on_progress or (lambda done, total, what: None)
    power = power if power is not None else power_answer(case, on_progress=on_progress)
    rows: list[OptimumRow] = []
    notes = list(power.notes)
    for number, load in enumerate(case.loads):
        report(number, len(case.loads), f"optimum at load {load:g}")

        def report_bound(power: float, bound: float, *, done: int = number, load: float = load) -> None:
            gap = 1.0 - bound / power if power > 0.0 else 0.0
            report(done, len(case.loads), f"optimum at load {load:g}, within {format_ratio(max(gap, 0.0), 2)}")

        start = perf_counter()
        try:
            optimum = _optimum(case, case.demand(load), report_bound)
        except RoutecastError as problem:
            if not skips_overload:
                raise
            notes.append(f"no optimum at load {load:g}: {problem}")
            continue
        seconds = perf_counter() - start
        whole_flows = None
        if case.has_planes:
            whole_flows = whole_flow_bound(case.topology, case.demand(load), case.scalings, widths=case.widths)
        rows.append(
            OptimumRow(load=load, optimum=optimum, seconds=seconds, widths=case.widths, whole_flows=whole_flows)
        )
    report(len(case.loads), len(case.loads), "")
    return OptimumAnswer(power=power, rows=tuple(rows), notes=tuple(notes))


def _optimum(case: NocCase, demand: Floats, on_progress: Callable[[float, float], None]) -> Optimum:
    options = case.optimum
    if not case.has_planes:
        from routecast.noc.optimum.single import optimum

        tolerance = 1e-6 if options.gap is None else options.gap
        return optimum(
            case.topology,
            demand,
            case.scaling,
            paths=PathSet(options.paths),
            tolerance=tolerance,
            time_limit_s=options.time_limit,
            on_progress=on_progress,
        )
    from routecast.noc.optimum.planes import optimum_of_planes

    limit = {} if options.time_limit is None else {"time_limit_s": options.time_limit}
    return optimum_of_planes(
        case.topology,
        demand,
        case.scalings,
        widths=case.widths,
        paths=PathSet(options.paths),
        gap=0.01 if options.gap is None else options.gap,
        on_progress=on_progress,
        **limit,
    )
