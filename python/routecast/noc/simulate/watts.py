"""Power of a simulated fabric by a table of router power (Li 2012, eq. 7.14), with the loads that were simulated."""

from __future__ import annotations

import numpy as np

from routecast.errors import RoutecastError
from routecast.noc.power.router_table import RouterTable
from routecast.noc.power.table_power import PlanePower
from routecast.noc.simulate.result import PlaneResult, Simulated

__all__ = ["simulated_power"]


def simulated_power(table: RouterTable, simulated: Simulated) -> tuple[PlanePower, ...]:
    """Return the power of every plane: the sum over its routers of eq. 7.14 at the clock that it was simulated at.

    The nodes' clock is the fastest of the table; a plane runs at 1/alpha of it. A router's load is what passed it, over
    its ports. A plane that carried nothing idles.

    Parameters
    ----------
    table
        Of the routers of all planes.
    simulated
        A load.

    Raises
    ------
    RoutecastError
        Planes of several widths, or the table states too little, such as no power at so slow a clock.
    """
    if len({plane.width for plane in simulated.planes}) > 1:
        msg = f'one table, "{table.name}", for planes of several widths: their routers are not alike'
        raise RoutecastError(msg)
    return tuple(_plane_power(table, plane) for plane in simulated.planes)


def _plane_power(table: RouterTable, plane: PlaneResult) -> PlanePower:
    frequency = table.fastest_hz / plane.alpha
    # A slower clock has fewer cycles for the same flits.
    loads = plane.router_loads * (plane.alpha / table.ports)
    bounds = np.array([table.power_bounds_w(float(load), frequency) for load in loads])
    least, greatest = bounds.sum(axis=0)
    return PlanePower(
        frequency_hz=frequency, asleep=False, router_loads=loads, least_w=float(least), greatest_w=float(greatest)
    )
