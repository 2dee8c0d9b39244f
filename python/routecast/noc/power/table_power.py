"""Power of whole planes by a table of router power: the sum over routers of eq. 7.14 at the clock of their plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.power.router_table import Clocks, RouterTable
from routecast.noc.topology import links

__all__ = ["PlanePower", "allocation_power", "plane_power", "router_loads"]

# A load above 1 by rounding alone is 1.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanePower:
    """Power of one plane.

    ``frequency_hz``: its clock; ``asleep``: whether it carries nothing and sleeps; ``router_loads``: shape (routers,):
    flits per port and cycle of its clock; ``least_w`` and ``greatest_w``: bounds of its power; equal where the table
    states all that eq. 7.14 needs.
    """

    frequency_hz: float
    asleep: bool
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
    where the plane is cut off. Raises RoutecastError: the plane is loaded over its capacity, the table states too
    little, or the ratio is out of 0..1.
    """
    if not 0 <= asleep_ratio <= 1:
        msg = f"asleep_ratio {asleep_ratio:g}: the part of idle power that stays on asleep is in 0..1"
        raise RoutecastError(msg)
    full_clock_loads = router_loads(plane, table.ports)
    if not plane.demand.any():
        return _asleep(table, full_clock_loads, asleep_ratio)
    frequency = table.clock_hz(float(plane.link_loads.max(initial=0.0)), clocks)
    # A slower clock has fewer cycles for the same flits.
    loads = full_clock_loads * (table.fastest_hz / frequency)
    if float(loads.max()) > 1 + _ROUNDING:
        msg = (
            f"a router receives {loads.max():.4g} flits per port and cycle at {frequency / 1e9:.4g} GHz: nodes send "
            "more than their ports take"
        )
        raise RoutecastError(msg)
    bounds = np.array([table.power_bounds_w(float(load), frequency) for load in loads])
    least, greatest = bounds.sum(axis=0)
    return PlanePower(
        frequency_hz=frequency, asleep=False, router_loads=loads, least_w=float(least), greatest_w=float(greatest)
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


def _asleep(table: RouterTable, loads: NDArray[np.float64], asleep_ratio: float) -> PlanePower:
    # What a router draws without a load, bounded where its idle power is not stated.
    least, greatest = (0.0, 0.0) if asleep_ratio == 0 else table.power_bounds_w(0.0, table.slowest_hz)
    routers = len(loads)
    return PlanePower(
        frequency_hz=table.slowest_hz,
        asleep=True,
        router_loads=loads,
        least_w=routers * asleep_ratio * least,
        greatest_w=routers * asleep_ratio * greatest,
    )
