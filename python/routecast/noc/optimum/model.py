"""What the exact optimum answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Optimum", "PathSet", "PlaneFlow"]


class PathSet(StrEnum):
    """Which paths flows may use."""

    MINIMAL = "minimal"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaneFlow:
    """One plane of an optimum.

    Attributes
    ----------
    alpha
        Its expansion factor.
    flow
        Shape (routers, links): the traffic *to* router t on link l at ``flow[t, l]``, in capacities.
    """

    alpha: float
    flow: NDArray[np.float64]

    @property
    def link_loads(self) -> NDArray[np.float64]:
        """Load of every link in capacities at full clock."""
        loads: NDArray[np.float64] = np.sum(self.flow, axis=0)
        return loads

    @property
    def power(self) -> float:
        """Sum of the loads over alpha squared (eq. 6.4)."""
        return float(self.flow.sum()) / self.alpha**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """The optimum of eqs. 6.4-6.6 (one plane) or 7.7-7.12 (more).

    Attributes
    ----------
    paths
        Which paths were allowed.
    planes
        The flows of each plane.
    lower_bound
        No routing over these paths and planes needs less power; proven by linear programming duality.
    programs
        Linear programs solved.
    """

    paths: PathSet
    planes: tuple[PlaneFlow, ...]
    lower_bound: float
    programs: int

    @property
    def power(self) -> float:
        """Power of the flows that were found."""
        return sum(plane.power for plane in self.planes)

    @property
    def gap(self) -> float:
        """How far they can be from the best, relative to their power."""
        return 0.0 if self.power == 0 else max(0.0, 1 - self.lower_bound / self.power)
