"""What an allocation costs on routers whose power is in a table, idle part and sleep included (eq. 7.14)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes._placement import PlanePower
from routecast.noc.power.router_table import Clocks, RouterTable
from routecast.noc.topology import Topology


def power_on_tables(
    tables: Sequence[RouterTable],
    topology: Topology,
    *,
    widths: Sequence[float] | None = None,
    clocks: Clocks = Clocks.ANY,
    asleep_ratio: float = 0.0,
) -> PlanePower:
    """Return an objective for :func:`routecast.noc.planes.search.allocate`: watts of all routers of a plane.

    Power is linear in a router's load at one clock, so that the sum over routers needs only the sum of their loads:
    what enters the plane and what comes over its links, by port. It is the power of
    :func:`routecast.noc.power.table_power.allocation_power`, which also refuses routers that receive more than their
    ports take; the search does not look at that.

    ``tables``: one for each plane; they must state idle and full power over the clocks that are needed; ``widths``:
    capacity of each plane's links relative to the first one's; ``asleep_ratio``: part of the idle power at the slowest
    clock that a plane draws that carries nothing.
    """
    width = (1.0,) * len(tables) if widths is None else tuple(widths)

    def power(
        plane: int, weight: NDArray[np.float64], entering: NDArray[np.float64], bottleneck: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        table = tables[plane]
        levels, which = np.unique(bottleneck, return_inverse=True)
        hertz = np.array([table.clock_hz(float(level), clocks) for level in levels])
        idle = np.array([table.idle_w(float(clock_hz)) for clock_hz in hertz])
        full = np.array([table.full_w(float(clock_hz)) for clock_hz in hertz])
        loads = (weight + entering) / width[plane] / table.ports * (table.fastest_hz / hertz)[which]
        awake = topology.router_count * idle[which] + loads * (full - idle)[which]
        asleep = asleep_ratio * topology.router_count * table.idle_w(table.slowest_hz)
        # Less than any flow is the rounding of sums.
        return np.asarray(np.where(entering > 1e-12, awake, asleep), dtype=np.float64)

    return power
