"""An allocation of whole flows to planes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from routecast.noc.routing.model import Routes, link_loads
from routecast.noc.scaling import Scaling

__all__ = ["Allocation", "Plane"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plane:
    """A plane: its traffic, paths, voltage range and width.

    ``demand``: shape (routers, routers), in capacities of a link of the first plane at full clock; ``routes``: paths of
    its flows; ``scaling``: the range of its voltage and clock; ``width``: capacity of its links
    relative to the first plane's (unequal planes); ``link_loads``: load of every link, in capacities of this plane at
    full clock.
    """

    demand: NDArray[np.float64]
    routes: Routes
    scaling: Scaling
    width: float = 1.0
    link_loads: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "link_loads", link_loads(self.routes, self.demand) / self.width)

    @property
    def alpha(self) -> float:
        """Expansion factor of the plane; alpha_max where it carries nothing."""
        return self.scaling.alpha(float(self.link_loads.max(initial=0.0)))

    @property
    def power(self) -> float:
        """Rate times hops over alpha squared (eq. 7.3)."""
        return float(self.link_loads.sum()) * self.width / self.alpha**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation:
    """An allocation of every flow to a plane (Li (2012) does not split flows).

    Attributes
    ----------
    policy
        Name of the algorithm.
    planes
        The planes; their demands sum to the whole traffic.
    is_interrupted
        Whether Ctrl-C ended the search; the allocation is then the best so far.
    """

    policy: str
    planes: tuple[Plane, ...]
    is_interrupted: bool = False

    @property
    def power(self) -> float:
        """Power of all planes."""
        return sum(plane.power for plane in self.planes)
