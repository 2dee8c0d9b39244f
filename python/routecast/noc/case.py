"""A file of a network on chip, read: everything that the questions about it share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.noc.file.document import OptimumTable, PlanesTable, PowerTable, SimulationTable
from routecast.noc.power.router_table import RouterTable
from routecast.noc.power.scaling import Scaling
from routecast.noc.routing.model import Routes
from routecast.noc.topology import Topology
from routecast.noc.traffic.model import Traffic

__all__ = ["POLICY_NAMES", "NocCase", "Progress", "policy_name"]

Progress = Callable[[int, int, str], None]
"""Told what is done, of how much, and what comes next."""

POLICY_NAMES = {
    "xy": "XY",
    "yx": "YX",
    "o1turn": "O1TURN",
    "2p_es": "2P-ES",
    "2p_rs": "2P-RS",
    "4p_es": "4P-ES",
    "romm": "ROMM",
    "valiant": "Valiant",
    "adaptive": "adaptive",
    "west_first": "west-first",
    "north_last": "north-last",
    "negative_first": "negative-first",
    "odd_even": "odd-even",
    "balance": "BALANCE",
    "mini": "MINI",
    "four_phase": "4PHASE",
    "search": "search",
    "optimum": "optimum",
}
"""What tables and figures call routings and allocations."""


def policy_name(policy: str) -> str:
    """Return what tables and figures call a routing or an allocation.

    Examples
    --------
    >>> policy_name("2p_es")
    '2P-ES'
    """
    return POLICY_NAMES.get(policy, policy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NocCase:
    """A file of a network on chip, read.

    Attributes
    ----------
    subject
        What messages call the file: its path.
    name
        What the file calls it.
    sources
        Where its figures come from.
    topology
        The grid.
    traffic
        At load 1.
    loads
        Normalised loads to answer for, rising.
    normalised_by
        What load 1 is (:class:`routecast.noc.file.document.TrafficTable`).
    routings
        The compared routings on the whole grid, in the file's order.
    xy
        XY on the whole grid: what others are compared with.
    scaling
        Range of voltage and clock.
    widths
        Capacity of each plane's links relative to the first; ``(1.0,)`` is one plane.
    planes, optimum, simulation
        As the file says them; None where it says nothing.
    power, table
        What the file says of power, and the table of router power that it names.
    seed
        Of routings that draw.
    """

    subject: str
    name: str
    sources: tuple[str, ...]
    topology: Topology
    traffic: Traffic
    loads: tuple[float, ...]
    normalised_by: str
    routings: tuple[Routes, ...]
    xy: Routes
    scaling: Scaling
    widths: tuple[float, ...]
    planes: PlanesTable | None
    optimum: OptimumTable
    simulation: SimulationTable | None
    power: PowerTable
    table: RouterTable | None
    seed: int

    @property
    def has_planes(self) -> bool:
        """Whether there is more than one plane."""
        return len(self.widths) > 1

    def demand(self, load: float) -> NDArray[np.float64]:
        """Return the demand between routers at a normalised load, shape (routers, routers), in link capacities."""
        return self.traffic.scaled(load).between_routers(self.topology)
