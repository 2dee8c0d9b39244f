"""Watts of planes by a file's table of router power (thesis, eq. 7.14)."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.noc.case import NocCase
from routecast.noc.planes.model import Plane
from routecast.noc.power.router_table import Clocks, RouterTable
from routecast.noc.power.table_power import plane_power, router_loads

__all__ = ["Watts", "watts_at_full_clock", "watts_of"]

Watts = tuple[float, float]
"""The least and the greatest power; equal where the table states all that eq. 7.14 needs."""


def watts_of(case: NocCase, table: RouterTable, planes: Sequence[Plane]) -> Watts:
    """Return what planes draw, each at the slowest clock that carries its traffic.

    Raises
    ------
    RoutecastError
        A plane is over capacity, or the table states too little.
    """
    found = [
        plane_power(table, plane, clocks=Clocks(case.power.clocks), asleep_ratio=case.power.asleep)
        for plane in planes
    ]
    return sum(one.least_w for one in found), sum(one.greatest_w for one in found)


def watts_at_full_clock(table: RouterTable, plane: Plane) -> Watts:
    """Return what one plane draws at the fastest clock of the table.

    Raises
    ------
    RoutecastError
        The table states too little, or a router gets more than its ports take.
    """
    bounds = [
        table.power_bounds_w(float(load), table.fastest_hz) for load in router_loads(plane, table.ports)
    ]
    return sum(least for least, _ in bounds), sum(greatest for _, greatest in bounds)
