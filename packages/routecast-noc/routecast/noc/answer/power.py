"""``noc power``: the power of every routing and every allocation at every load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from routecast.errors import RoutecastError
from routecast.evaluate.plain import plain
from routecast.noc.file import NocCase, PlanesTable, policy_name
from routecast.noc.planes import li2012, search
from routecast.noc.planes.candidates import Freedom
from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.router_table import Clocks, RouterTable, plane_power, router_loads
from routecast.noc.routing.model import Routes
from routecast.noc.routing.policies import routes
from routecast.noc.topology import Floats
from routecast.progress import BoundProgress, Progress

__all__ = ["SEARCH", "PowerAnswer", "PowerRow", "allocate", "document", "power_answer"]


_LI2012 = {"balance": li2012.balance, "mini": li2012.mini, "four_phase": li2012.four_phase}


def allocate(name: str, case: NocCase, demand: Floats, *, on_progress: BoundProgress | None = None) -> Allocation:
    """Return the allocation of a name for a demand between routers.

    ``on_progress`` is called with the best power of a search and its lower bound; Ctrl-C ends a search with the best
    allocation so far.

    Raises RoutecastError: the planes cannot carry the demand, or their routing splits flows.
    """
    table = case.planes or PlanesTable()
    if name == "search":
        return search.allocate(
            case.topology,
            demand,
            case.scalings,
            widths=case.widths,
            freedom=Freedom(table.freedom),
            seed=case.seed,
            on_progress=on_progress,
        )
    routing = case.xy if table.routing == "xy" else routes(table.routing, case.topology, demand=demand, seed=case.seed)
    routings = (routing,) * len(case.widths)
    return _LI2012[name](case.topology, demand, case.scalings, routes=routings, widths=case.widths)


Watts = tuple[float, float]
"""Least and greatest power; equal where the table states all figures of eq. 7.14."""


def watts_of(case: NocCase, table: RouterTable, planes: Sequence[Plane]) -> Watts:
    """Return the bounds of the power of planes, each at the slowest clock for its traffic (Li 2012, eq. 7.14).

    Raises RoutecastError: a plane is over capacity, or the table states too little.
    """
    watts = [
        plane_power(table, plane, clocks=Clocks(case.power.clocks), asleep_ratio=case.power.asleep) for plane in planes
    ]
    return sum(plane.least_w for plane in watts), sum(plane.greatest_w for plane in watts)


def watts_at_full_clock(table: RouterTable, plane: Plane) -> Watts:
    """Return the bounds of the power of a plane at the fastest clock of the table.

    Raises RoutecastError: the table states too little, or a router gets more than its ports take.
    """
    bounds = [table.power_bounds_w(float(load), table.fastest_hz) for load in router_loads(plane, table.ports)]
    return sum(least for least, _ in bounds), sum(greatest for _, greatest in bounds)


def idle_power_w(case: NocCase, table: RouterTable, key: str, planes: Sequence[Plane]) -> float | None:
    """Return the idle power of planes at their clocks; None where the table does not state it.

    Because of idle power a second plane costs more than it saves at low load (Li 2012, sec. 7.5). A sleeping plane
    draws a part of it.

    Raises RoutecastError: a plane is over capacity.
    """
    if "idle power" in table.missing:
        return None
    idle_w = 0.0
    for plane in planes:
        idle = plane_power(table, plane, clocks=Clocks(case.power.clocks), asleep_ratio=case.power.asleep)
        clock_hz = table.fastest_hz if key == NO_DVFS else idle.frequency_hz
        try:
            idle_w += idle.least_w if idle.is_asleep else len(idle.router_loads) * table.idle_w(clock_hz)
        except RoutecastError:  # the table states idle power at other clocks only
            return None
    return idle_w


NO_DVFS = "no_dvfs"
SEARCH = "search"
EQUAL_PARTS = "equal_parts"
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerRow:
    """A routing or an allocation at one load.

    ``key``: ``no_dvfs`` (XY at full voltage and clock), a routing, an allocation, or ``equal_parts``: every flow split
    over the planes in proportion to their widths (Li 2012, eq. 7.5), which an allocation of whole flows cannot do;
    ``load``: normalised; ``planes``: one unless it is an allocation; ``power``: in links that are always busy at full
    voltage, None where a link is over capacity; ``no_dvfs_power`` and ``xy_power``: of XY on one plane at the same
    load, without and with scaling, the second None where XY is over capacity; ``watts``: by the file's table of router
    power, None without one or where it states too little; ``idle_w``: the part of the watts without a flit, None where
    it is not stated.
    """

    key: str
    load: float
    planes: tuple[Plane, ...]
    power: float | None
    no_dvfs_power: float
    xy_power: float | None
    watts: Watts | None = None
    idle_w: float | None = None

    @property
    def name(self) -> str:
        """Name in tables."""
        return {NO_DVFS: "NoDVFS", EQUAL_PARTS: "equal parts"}.get(self.key) or policy_name(self.key)

    @property
    def is_allocation(self) -> bool:
        """Whether the row is of an allocation to several planes."""
        return len(self.planes) > 1

    @property
    def link_loads(self) -> tuple[Floats, ...]:
        """Load of every link of every plane, in capacities at full clock."""
        return tuple(plane.link_loads for plane in self.planes)

    @property
    def bottlenecks(self) -> tuple[float, ...]:
        """Largest link load of each plane."""
        return tuple(float(loads.max(initial=0.0)) for loads in self.link_loads)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Expansion factor of each plane; none where a link is over capacity."""
        if self.power is None:
            return ()
        return (1.0,) if self.key == NO_DVFS else tuple(plane.alpha for plane in self.planes)

    @property
    def hop_flow(self) -> float:
        """Sum over flows of rate times hops."""
        return sum(float(loads.sum()) * plane.width for loads, plane in zip(self.link_loads, self.planes, strict=True))

    @property
    def of_no_dvfs_ratio(self) -> float | None:
        """Power relative to XY at full voltage, same load."""
        return None if self.power is None or not self.no_dvfs_power else self.power / self.no_dvfs_power

    @property
    def of_xy_ratio(self) -> float | None:
        """Power relative to XY with scaling on one plane, same load."""
        return None if self.power is None or not self.xy_power else self.power / self.xy_power

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.key,
            "load": self.load,
            "bottlenecks": self.bottlenecks,
            "alphas": self.alphas,
            "hop_flow": self.hop_flow,
            "power": self.power,
            "of_no_dvfs_ratio": self.of_no_dvfs_ratio,
            "of_xy_ratio": self.of_xy_ratio,
            "watts_w": self.watts,
            "idle_w": self.idle_w,
            "is_over_capacity": self.power is None,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerAnswer:
    """Power of every routing and allocation at every load, by load and then in the file's order.

    ``equal_parts``: for each load the power of flows split over all planes; empty with one plane.
    """

    case: NocCase
    rows: tuple[PowerRow, ...]
    equal_parts: tuple[PowerRow, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Routings and allocations in the order of the file."""
        return tuple(dict.fromkeys(row.key for row in self.rows))

    @property
    def at_full_load(self) -> float:
        """Power without scaling at the highest load that XY carries; figures use it as their unit."""
        carried = [row.power for row in self.of(NO_DVFS) if row.power is not None]
        return max(carried or [row.no_dvfs_power for row in self.rows], default=0.0) or 1.0

    def of(self, key: str) -> tuple[PowerRow, ...]:
        """Return the rows of a routing or an allocation, by rising load."""
        return tuple(row for row in self.rows if row.key == key)

    @property
    def recommended(self) -> PowerRow | None:
        """The routing or allocation of least power at the highest load that any carries; the first of equals."""
        for load in reversed(self.case.loads):
            carried = [(row.power, row) for row in self.at(load) if row.power is not None and row.key != NO_DVFS]
            if carried:
                least = min(power for power, _ in carried)
                return next(row for power, row in carried if power <= least * (1.0 + _ROUNDING))
        return None

    def at(self, load: float) -> tuple[PowerRow, ...]:
        """Return the rows of a load."""
        return tuple(row for row in self.rows if row.load == load)

    def to_json(self) -> dict[str, Any]:
        """Return plain data; power in links that are always busy at full voltage."""
        rows, equal_parts = ([row.to_json() for row in rows] for rows in (self.rows, self.equal_parts))
        return document(self.case, rows=rows, equal_parts=equal_parts, notes=self.notes)


def document(case: NocCase, **parts: object) -> dict[str, Any]:
    """Return an answer as plain data: the file first, then the given entries."""
    return {
        **plain(
            {
                "name": case.name,
                "sources": case.sources,
                "topology": case.topology,
                "traffic": case.traffic.name,
                "normalised_by": case.normalised_by,
                "alpha_max": case.scaling.alpha_max,
                "widths": case.widths,
            }
        ),
        **plain(parts),
    }


def power_answer(case: NocCase, *, on_progress: Progress | None = None) -> PowerAnswer:
    """Return the power of every routing and every allocation of a file at each of its loads.

    An allocation that fails is left out and noted. Ctrl-C ends a search with the best allocation so far, which is
    noted, and skips later searches.

    Parameters
    ----------
    case : NocCase
    on_progress : callable, optional
        Is called with the number of finished steps, the number of all, and the best power of the current search.
    """
    report = on_progress or (lambda done, total, step: None)
    names = case.planes.allocations if case.planes is not None and case.has_planes else ()
    total = len(case.loads) * (1 + len(names))
    rows: list[PowerRow] = []
    equal_parts: list[PowerRow] = []
    notes: list[str] = []
    done, is_interrupted = 0, False
    for load in case.loads:
        demand = case.demand(load)
        full = _single_plane(case, case.xy, demand)
        no_dvfs = float(full.link_loads.sum())
        row = partial(_row, case, notes, load=load, no_dvfs_power=no_dvfs, xy_power=_power((full,)))
        rows.append(row(NO_DVFS, (full,), no_dvfs if _max_link_load((full,)) <= 1 + _ROUNDING else None))
        for routing in case.routings:
            planes = (_single_plane(case, routing, demand),)
            rows.append(row(routing.policy, planes, _power(planes)))
        if case.has_planes:
            parts = _equal_parts(case, demand)
            equal_parts.append(row(EQUAL_PARTS, parts, _power(parts)))
        for name in names:
            step = f"{policy_name(name)} at load {load:g}"
            report(done, total, step)

            def report_best(power: float, bound: float, *, done: int = done, step: str = step) -> None:
                proven = f", not below {bound:.4g}" if bound else ""
                report(done, total, f"{step}, power {power:.4g}{proven}")

            done += 1
            if is_interrupted and name == SEARCH:
                notes.append(f"{step} is left out after Ctrl-C")
                continue
            try:
                allocation = allocate(name, case, demand, on_progress=report_best)
            except RoutecastError as problem:
                notes.append(f"{step} is left out: {problem}")
                continue
            if allocation.is_interrupted:
                is_interrupted = True
                notes.append(f"{step} was ended by Ctrl-C: its best allocation so far is shown")
            rows.append(row(name, allocation.planes, _power(allocation.planes)))
        done += 1
        report(done, total, "")
    notes += [
        f"{over.name} at load {over.load:g}: {_bottleneck_name(case, over.planes)} is loaded "
        f"{_max_link_load(over.planes):.4g} times its capacity at full clock; latency is unbounded"
        for over in rows
        if over.power is None and over.key != NO_DVFS
    ]
    return PowerAnswer(case=case, rows=tuple(rows), equal_parts=tuple(equal_parts), notes=tuple(notes))


def _row(
    case: NocCase, notes: list[str], key: str, planes: tuple[Plane, ...], power: float | None, **at_load: Any
) -> PowerRow:
    watts, idle_w = (None, None) if power is None else _watts(case, key, planes, notes)
    return PowerRow(key=key, planes=planes, power=power, watts=watts, idle_w=idle_w, **at_load)


def _watts(case: NocCase, key: str, planes: tuple[Plane, ...], notes: list[str]) -> tuple[Watts | None, float | None]:
    if case.table is None:
        return None, None
    try:
        watts = watts_at_full_clock(case.table, planes[0]) if key == NO_DVFS else watts_of(case, case.table, planes)
        return watts, idle_power_w(case, case.table, key, planes)
    except RoutecastError as problem:
        note = f"watts are left out: {problem}"
        if note not in notes:
            notes.append(note)
        return None, None


def _single_plane(case: NocCase, routing: Routes, demand: Floats) -> Plane:
    return Plane(demand=demand, routes=routing, scaling=case.scaling)


def _equal_parts(case: NocCase, demand: Floats) -> tuple[Plane, ...]:
    total = sum(case.widths)
    return tuple(
        Plane(demand=demand * (width / total), routes=case.xy, scaling=case.scaling, width=width)
        for width in case.widths
    )


def _max_link_load(planes: Sequence[Plane]) -> float:
    return max(float(plane.link_loads.max(initial=0.0)) for plane in planes)


def _power(planes: tuple[Plane, ...]) -> float | None:
    if _max_link_load(planes) > 1 + _ROUNDING:
        return None
    return Allocation(policy="", planes=planes).power


def _bottleneck_name(case: NocCase, planes: Sequence[Plane]) -> str:
    worst = max(planes, key=lambda plane: float(plane.link_loads.max(initial=0.0)))
    return case.topology.link_name(int(np.argmax(worst.link_loads)))
