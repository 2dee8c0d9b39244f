"""What is proven about the power at any clocks, from the costs along a few rays.

At clocks b the power is ``cost(b, b^2)`` (:mod:`routecast.noc.optimum.costs`). For given b, ``cost(b, c)`` is concave
in the costs c and grows in proportion to them, so that in a cone of cost vectors it is nowhere below its
interpolation over the rays::

    c = sum over rays k of  part_k * ray_k,  part_k >= 0:
    cost(b, c) >= sum over rays k of  part_k * cost(b, ray_k)

Each ``cost(., ray_k)`` falls in b, and prices bound it from below by tangents. Hence for all b from a to z

    cost(b, b^2) >= cost(z, a^2) >= sum over rays k of  part_k(a^2) * (best tangent of ray k at z),

with the cone that a^2 lies in. Where this is too low although the rays' costs are known well, the cone is split at a^2.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from routecast.noc.optimum.arcs import Floats
from routecast.noc.optimum.cells import Symmetry
from routecast.noc.optimum.costs import Pricing

__all__ = ["Fan"]

# A ray that takes less part in a vector than this has no say: it lies on the cone's other side.
_SLIGHT = 1e-9


class Fan:
    """Cones that together hold the costs of all clocks.

    Parameters
    ----------
    pricing : Pricing
        Bounds along the rays.
    slowest : array of shape (planes,)
        The least clock of each plane.
    symmetry : Symmetry
        Clocks that are never asked for.
    """

    def __init__(self, pricing: Pricing, slowest: Floats, symmetry: Symmetry) -> None:
        self._pricing = pricing
        planes = slowest.size
        # A cone for each order of the planes' costs; a little wider where nothing scales, so that it has an inside.
        least = min(float(slowest.min()) ** 2, 0.5)
        self._cones: list[Floats] = []
        for order in permutations(range(planes)):
            if symmetry.keeps(order):
                rays = np.full((planes, planes), least)
                for count in range(planes):
                    rays[count, list(order[: count + 1])] = 1.0
                self._cones.append(rays)

    def proven(self, slow: Floats, fast: Floats) -> Floats:
        """Return what is proven for all clocks from ``slow`` to ``fast``, each of shape (points, planes).

        With ``slow`` equal to ``fast``, what is proven at those clocks.
        """
        place, parts = self._placed(slow**2)
        total = np.zeros(len(slow))
        for number in np.unique(place):
            held = place == number
            at = fast[held]
            bounds = np.stack([self._pricing.bounds(ray).at(at) for ray in self._cones[number]], axis=1)
            total[held] = (parts[held] * bounds).sum(axis=1)
        return total

    def rays(self, costs: Floats) -> Floats:
        """Return the rays, shape (rays, planes), that a cost vector is interpolated over, largest part first."""
        place, parts = self._placed(costs[None])
        order = np.argsort(-parts[0], kind="stable")
        rays: Floats = self._cones[place[0]][order][parts[0][order] > _SLIGHT]
        return rays

    def split(self, costs: Floats) -> bool:
        """Let a cost vector be a ray of its own; return False where it is one already."""
        place, parts = self._placed(costs[None])
        within = np.flatnonzero(parts[0] > _SLIGHT)
        if within.size < 2:
            return False
        rays = self._cones.pop(int(place[0]))
        for ray in within:
            cone = rays.copy()
            cone[ray] = costs
            self._cones.append(cone)
        return True

    def _placed(self, costs: Floats) -> tuple[Floats, Floats]:
        """Return the cone that each cost vector lies in, and the parts of its rays, of shape (points, rays)."""
        every = np.stack([costs @ np.linalg.inv(rays) for rays in self._cones])
        # Beside the right cone some part is negative; within it, by rounding at most.
        place = every.min(axis=2).argmax(axis=0)
        return place, np.maximum(0.0, every[place, np.arange(len(costs))])
