"""Power of routers and of whole planes by a table of router power (Li 2012, sec. 7.5, eq. 7.14).

A router draws ``P(l, f) = P0(f) + l (P1(f) - P0(f))``: P0 is the power at no load, P1 at one flit per port and cycle,
both at the least voltage that the clock f allows. Between the clocks of the table P0 and P1 are interpolated linearly.
Both contain the static power, which a plane draws at any load. A plane draws the sum over its routers at its clock.

A table may state less than the model needs. Then the model computes the power or its bounds from the stated figures,
and names the missing ones; it assumes no figure.
"""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from routecast.errors import FileProblem, ModelProblem, Problem, RoutecastError
from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.topology import links
from routecast.quantity import format_span
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, Frequency, Power, Voltage
from routecast.quantity.file_model import FileModel
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml, validated

__all__ = [
    "ROUTER_TABLES",
    "Clocks",
    "PlanePower",
    "RouterPoint",
    "RouterTable",
    "allocation_power",
    "plane_power",
    "read_router_table",
    "router_loads",
    "router_table",
]

# A clock or load beyond its bound by rounding alone is at the bound.
_ROUNDING = 1e-9


class Clocks(StrEnum):
    """Which clocks a plane can run at."""

    LISTED = "listed"
    ANY = "any"


@value
class RouterPoint:
    """The entry of a table for one clock; None where the table states no value."""

    frequency_hz: float
    voltage_v: float | None = field("The least supply voltage at which the router runs at that clock, V", default=None)
    idle_w: float | None = field("Power of a router at no load, P0, W", default=None)
    full_w: float | None = field("Power at one flit per port and cycle, P1, W", default=None)
    static_w: float | None = field("Static power, the part of both that needs no clock, W", default=None)
    source: str = field("Source of the figures", default="")


@value
class RouterTable:
    """Voltage and power of one router by its clock.

    Raises
    ------
    routecast.errors.ModelProblem
        No points, clocks that do not rise, a voltage that falls while the clock rises, negative figures, or static
        power over idle power or idle power over full power.
    """

    name: str
    points: tuple[RouterPoint, ...] = field("Clocks strictly rising")
    ports: int = field("Ports of the router, the local one included", default=5)
    # Sources of the figures, and how they were read.
    source: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = [] if self.points else [Problem("point", "got none: give at least one clock")]
        if self.ports < 1:
            problems.append(Problem("ports", f"{self.ports}: a router has at least 1 port"))
        for i, point in enumerate(self.points):
            problems += _point_problems(point, f"point[{i}]")
        for i, (slow, fast) in enumerate(pairwise(self.points)):
            if not slow.frequency_hz < fast.frequency_hz:
                message = (
                    f"{fast.frequency_hz:g} Hz after {slow.frequency_hz:g} Hz: give clocks in rising order, each once"
                )
                problems.append(Problem(f"point[{i + 1}].frequency", message))
        stated = [point for point in self.points if point.voltage_v is not None]
        for slow, fast in pairwise(stated):
            if (fast.voltage_v or 0) < (slow.voltage_v or 0):
                message = (
                    f"{fast.voltage_v:g} V at {fast.frequency_hz:g} Hz is less than {slow.voltage_v:g} V at "
                    f"{slow.frequency_hz:g} Hz: a faster clock needs at least as much"
                )
                problems.append(Problem(f"point[{self.points.index(fast)}].voltage", message))
        if problems:
            raise ModelProblem(f'router table "{self.name}"', problems)

    @property
    def slowest_hz(self) -> float:
        """The slowest clock of the table."""
        return self.points[0].frequency_hz

    @property
    def fastest_hz(self) -> float:
        """The fastest clock of the table."""
        return self.points[-1].frequency_hz

    @property
    def missing(self) -> tuple[str, ...]:
        """The quantities that no point of the table states."""
        return tuple(
            word
            for word, field in (("voltage", "voltage_v"), ("idle power", "idle_w"), ("full power", "full_w"))
            if all(getattr(point, field) is None for point in self.points)
        )

    def clock_hz(self, bottleneck: float, clocks: Clocks = Clocks.ANY) -> float:
        """Return the slowest clock that carries a bottleneck load.

        ``bottleneck``: load of the most loaded link, in capacities at the fastest clock of the table; ``clocks``:
        ``listed`` allows the clocks of the table, ``any`` also those between them. Raises RoutecastError:
        the load is over capacity at the fastest clock, or not a number.
        """
        if not 0 <= bottleneck <= 1 + _ROUNDING:
            msg = (
                f'router table "{self.name}": the bottleneck is loaded {bottleneck:.4g} times its capacity at the '
                f"fastest clock, {self.fastest_hz / 1e9:.4g} GHz: lower the load to 0..1"
            )
            raise RoutecastError(msg)
        needed = min(bottleneck, 1.0) * self.fastest_hz
        if clocks is Clocks.ANY:
            return max(needed, self.slowest_hz)
        listed = [point.frequency_hz for point in self.points]
        return listed[bisect_left(listed, needed * (1 - _ROUNDING))]

    def voltage_v(self, frequency_hz: float) -> float:
        """Return the least voltage for a clock.

        Raises RoutecastError: the table states none there.
        """
        return self._at("voltage", "voltage_v", frequency_hz)

    def idle_w(self, frequency_hz: float) -> float:
        """Return P0, the power of a router at no load. Raises as :meth:`voltage_v`."""
        return self._at("idle power", "idle_w", frequency_hz)

    def full_w(self, frequency_hz: float) -> float:
        """Return P1, the power of a router at one flit per port and cycle. Raises as :meth:`voltage_v`."""
        return self._at("full power", "full_w", frequency_hz)

    def static_w(self, frequency_hz: float) -> float:
        """Return the power of a router without a clock. Raises as :meth:`voltage_v`."""
        return self._at("static power", "static_w", frequency_hz)

    def power_w(self, load: float, frequency_hz: float) -> float:
        """Return the power of a router (eq. 7.14).

        ``load``: flits per port and cycle, 0..1. Raises RoutecastError: the table does not state idle or full power
        there, or the load is out of 0..1.
        """
        self._check_load(load)
        idle = self.idle_w(frequency_hz)
        return idle + load * (self.full_w(frequency_hz) - idle)

    def power_bounds_w(self, load: float, frequency_hz: float) -> tuple[float, float]:
        """Return the lower and the upper bound of the power of a router; equal where the table states idle power.

        Where it states full power alone, idle power lies between 0 and full power, so that the power lies between
        l P1 and P1.

        Raises RoutecastError: the table states no full power there, or the load is out of 0..1.
        """
        self._check_load(load)
        full = self.full_w(frequency_hz)
        if self._states("idle_w", frequency_hz):
            power = self.power_w(load, frequency_hz)
            return power, power
        return load * full, full

    def _check_load(self, load: float) -> None:
        if not 0 <= load <= 1 + _ROUNDING:
            msg = f'router table "{self.name}": load {load:.4g} flits per port and cycle: it is in 0..1'
            raise RoutecastError(msg)

    def _stated(self, field: str) -> list[tuple[float, float]]:
        return [(point.frequency_hz, value) for point in self.points if (value := getattr(point, field)) is not None]

    def _states(self, field: str, frequency_hz: float) -> bool:
        stated = self._stated(field)
        margin = _ROUNDING * frequency_hz
        return bool(stated) and stated[0][0] - margin <= frequency_hz <= stated[-1][0] + margin

    def _at(self, word: str, field: str, frequency_hz: float) -> float:
        stated = self._stated(field)
        if not self._states(field, frequency_hz):
            ends = [f"{frequency / 1e9:.4g}" for frequency, _ in (*stated[:1], *stated[-1:])]
            where = f"{'at' if len(set(ends)) == 1 else 'from'} {format_span(*ends)} GHz only" if ends else "nowhere"
            msg = (
                f'router table "{self.name}" states {word} {where}: give a table that states it at '
                f"{frequency_hz / 1e9:.4g} GHz"
            )
            raise RoutecastError(msg)
        frequency = min(max(frequency_hz, stated[0][0]), stated[-1][0])
        i = max(1, bisect_left([at for at, _ in stated], frequency))
        if len(stated) == 1:
            return stated[0][1]
        (low, below), (high, above) = stated[i - 1], stated[i]
        return below + (frequency - low) / (high - low) * (above - below)


def _point_problems(point: RouterPoint, place: str) -> list[Problem]:
    problems = []
    if not 0 < point.frequency_hz < math.inf:
        problems.append(Problem(f"{place}.frequency", f"{point.frequency_hz:g} Hz: a clock is more than 0"))
    quantities = (
        ("voltage", point.voltage_v, "V"),
        ("idle", point.idle_w, "W"),
        ("full", point.full_w, "W"),
        ("static", point.static_w, "W"),
    )
    problems += [
        Problem(f"{place}.{name}", f"{value:g} {unit}: give a finite value of at least 0")
        for name, value, unit in quantities
        if value is not None and not 0 <= value < math.inf
    ]
    for (low_name, low), (high_name, high) in (
        (("static", point.static_w), ("idle", point.idle_w)),
        (("idle", point.idle_w), ("full", point.full_w)),
        (("static", point.static_w), ("full", point.full_w)),
    ):
        if low is not None and high is not None and low > high:
            message = f"{low:g} W is more than {high_name} power, {high:g} W, of which it is a part"
            problems.append(Problem(f"{place}.{low_name}", message))
    return problems


ROUTER_TABLES = ("intel-48-core", "intel-80-core")
"""Names of the tables that ship. Neither states all that eq. 7.14 needs; ``RouterTable.missing`` names the gaps."""

_SUFFIX = ".nocpower.toml"
_COLUMNS = ("frequency_hz", "voltage_v", "idle_w", "full_w", "static_w")


# Files of router power: the shipped tables, and users' ``*.nocpower.toml`` and CSV files.
class _PointTable(FileModel):
    frequency: Frequency = Field(description='the clock, such as "2 GHz"')
    voltage: Voltage | None = Field(default=None, description='the least supply voltage at that clock, such as "1.1 V"')
    idle: Power | None = Field(default=None, description="power of a router at no load")
    full: Power | None = Field(default=None, description="power of a router at one flit per port and cycle")
    static: Power | None = Field(default=None, description="static power, the part of both that needs no clock")
    source: str = Field(default="", description="source of the figures")


class RouterTableFile(FileModel):
    """A ``*.nocpower.toml`` file."""

    name: str = Field(description="name of the table in messages and reports")
    source: list[str] = Field(default=[], description="sources of the figures")
    notes: list[str] = Field(default=[], description="how the figures were read")
    ports: Count = Field(default=5, ge=1, description="ports of a router, the local one included")
    point: list[_PointTable] = Field(min_length=1, description="voltage and power by clock, the slowest first")


def router_table(name: str | Path) -> RouterTable:
    """Return the table of a name that ships, or of a file ``*.nocpower.toml`` or ``*.csv``.

    Raises
    ------
    RoutecastError
        Neither a known name nor a file, or a file that is wrong.

    Examples
    --------
    >>> table = router_table("intel-48-core")
    >>> table.full_w(2e9), table.missing
    (0.55, ('idle power',))
    """
    if str(name) in ROUTER_TABLES:
        file = f"{name}{_SUFFIX}"
        text = (files("routecast.noc") / "data" / file).read_text(encoding="utf-8")
        return parse_router_table(text, file)
    path = Path(name)
    if path.suffix not in {".toml", ".csv"} and not path.exists():
        msg = (
            f'router table "{name}" is not known: {did_you_mean(str(name), ROUTER_TABLES)}; or name a file *{_SUFFIX} '
            "or *.csv"
        )
        raise RoutecastError(msg)
    return read_router_table(path)


def read_router_table(path: Path) -> RouterTable:
    """Return the table of a file; CSV has the columns frequency_hz, voltage_v, idle_w, full_w and static_w.

    Only frequency_hz is required; an empty cell is an unknown value.

    Raises FileProblem: with every fault of the file.
    """
    text = read_text(path, kind="table of router power")
    if path.suffix == ".csv":
        return _parse_csv(text, path)
    return parse_router_table(text, str(path))


def parse_router_table(text: str, subject: str) -> RouterTable:
    """Return the table that a TOML text states; ``subject`` is its name in messages.

    Raises FileProblem: with every fault of the text.
    """
    document = validated(RouterTableFile, parse_toml(text, subject), subject)
    points = tuple(
        RouterPoint(
            frequency_hz=point.frequency,
            voltage_v=point.voltage,
            idle_w=point.idle,
            full_w=point.full,
            static_w=point.static,
            source=point.source,
        )
        for point in document.point
    )
    try:
        return RouterTable(
            name=document.name,
            points=points,
            ports=document.ports,
            source=tuple(document.source),
            notes=tuple(document.notes),
        )
    except ModelProblem as problem:
        raise FileProblem(subject, problem.problems) from problem


def _parse_csv(text: str, path: Path) -> RouterTable:
    rows = [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"))) if any(cell.strip() for cell in row)]
    header = [cell.strip() for cell in rows[0]] if rows else []
    problems = [
        Problem(f"column {name}", f"is not known: {did_you_mean(name, _COLUMNS)}")
        for name in header
        if name not in _COLUMNS
    ]
    if "frequency_hz" not in header:
        problems.append(Problem("row 0", "has no column frequency_hz: each row describes one clock"))
    points = []
    for i, row in enumerate(rows[1:], start=1):
        if len(row) != len(header):
            problems.append(Problem(f"row {i}", f"has {len(row)} cells and the header {len(header)}"))
            continue
        values: dict[str, Any] = {}
        for column, cell in zip(header, row, strict=True):
            value = _number(cell)
            if value is not None:
                values[column] = value
            elif cell.strip() or column == "frequency_hz":
                message = f'got "{cell.strip()}": give a number of at least 0, or leave the cell empty'
                problems.append(Problem(f"row {i}, column {column}", message))
        if not problems:
            points.append(RouterPoint(**values))
    if problems:
        raise FileProblem(str(path), problems)
    try:
        return RouterTable(name=path.stem, points=tuple(points))
    except ModelProblem as problem:
        raise FileProblem(str(path), problem.problems) from problem


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanePower:
    """Power of one plane.

    ``frequency_hz``: its clock; ``is_asleep``: whether it sleeps without traffic; ``router_loads``: shape (routers,):
    flits per port and cycle of its clock; ``least_w`` and ``greatest_w``: bounds of its power; equal where the table
    states all that eq. 7.14 needs.
    """

    frequency_hz: float
    is_asleep: bool
    router_loads: NDArray[np.float64]
    least_w: float
    greatest_w: float

    @property
    def power_w(self) -> float:
        """Power of all its routers.

        Raises RoutecastError: the table states only bounds of it.
        """
        if self.least_w != self.greatest_w:
            msg = (
                f"the table of router power bounds this plane between {self.least_w:.4g} and {self.greatest_w:.4g} W "
                "and states no idle power: give a table that states it"
            )
            raise RoutecastError(msg)
        return self.least_w


def router_loads(plane: Plane, ports: int) -> NDArray[np.float64]:
    """Return the load of every router at full clock, shape (routers,): received flits per port.

    A router receives flits from its links and from its own nodes (Li 2012, sec. 7.5: flits that each port receives per
    cycle).
    """
    topology = plane.routes.topology
    received = plane.demand.sum(axis=1) / plane.width
    loads = plane.link_loads
    np.add.at(received, [link.target for link in links(topology)], loads)
    per_port: NDArray[np.float64] = received / ports
    return per_port


def plane_power(
    table: RouterTable, plane: Plane, *, clocks: Clocks = Clocks.ANY, asleep_ratio: float = 1.0
) -> PlanePower:
    """Return the power of a plane that runs at the slowest clock that carries its bottleneck.

    ``table``: of the routers of this plane; link capacities are at its fastest clock; ``asleep_ratio``: power of a
    plane without traffic, relative to its idle power at the slowest clock: 1 without a sleep mode, as in Li (2012), 0
    if the plane is switched off. Raises RoutecastError: the plane is loaded over its capacity, the table states too
    little, or the ratio is out of 0..1.
    """
    if not 0 <= asleep_ratio <= 1:
        msg = f"asleep_ratio {asleep_ratio:g}: the part of idle power that a sleeping plane draws is in 0..1"
        raise RoutecastError(msg)
    full_clock_loads = router_loads(plane, table.ports)
    if not plane.demand.any():
        return _sleeping_plane(table, full_clock_loads, asleep_ratio)
    frequency = table.clock_hz(float(plane.link_loads.max(initial=0.0)), clocks)
    # A slower clock has fewer cycles for the same flits.
    loads = full_clock_loads * (table.fastest_hz / frequency)
    if float(loads.max()) > 1 + _ROUNDING:
        msg = (
            f"a router receives {loads.max():.4g} flits per port and cycle at {frequency / 1e9:.4g} GHz, more than "
            "its ports take: lower the load"
        )
        raise RoutecastError(msg)
    bounds = np.array([table.power_bounds_w(float(load), frequency) for load in loads])
    least, greatest = bounds.sum(axis=0)
    return PlanePower(
        frequency_hz=frequency, is_asleep=False, router_loads=loads, least_w=float(least), greatest_w=float(greatest)
    )


def allocation_power(
    tables: RouterTable | Sequence[RouterTable],
    allocation: Allocation,
    *,
    clocks: Clocks = Clocks.ANY,
    asleep_ratio: float = 1.0,
) -> tuple[PlanePower, ...]:
    """Return the power of every plane of an allocation.

    Parameters
    ----------
    tables : RouterTable or sequence of RouterTable
        One for all planes, which then have the same width, or one for each plane.
    allocation : Allocation
    clocks, asleep_ratio
        As in :func:`plane_power`.

    Raises
    ------
    RoutecastError
        Tables that do not match the planes, or as :func:`plane_power`.
    """
    planes = allocation.planes
    if isinstance(tables, RouterTable):
        widths = sorted({plane.width for plane in planes})
        if len(widths) > 1:
            named = ", ".join(f"{width:g}" for width in widths)
            msg = f'one table, "{tables.name}", for planes of the widths {named}: give one for each plane'
            raise RoutecastError(msg)
        tables = [tables] * len(planes)
    if len(tables) != len(planes):
        msg = f"{len(tables)} tables of router power for {len(planes)} planes: give one for all or one for each"
        raise RoutecastError(msg)
    return tuple(
        plane_power(table, plane, clocks=clocks, asleep_ratio=asleep_ratio)
        for table, plane in zip(tables, planes, strict=True)
    )


def _sleeping_plane(table: RouterTable, loads: NDArray[np.float64], asleep_ratio: float) -> PlanePower:
    # What a router draws without a load, bounded where its idle power is not stated.
    least, greatest = (0.0, 0.0) if asleep_ratio == 0 else table.power_bounds_w(0.0, table.slowest_hz)
    routers = len(loads)
    return PlanePower(
        frequency_hz=table.slowest_hz,
        is_asleep=True,
        router_loads=loads,
        least_w=routers * asleep_ratio * least,
        greatest_w=routers * asleep_ratio * greatest,
    )
