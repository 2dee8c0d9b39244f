"""How freely a flow may be placed."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.candidates import Links, dimension_order, minimal_paths
from routecast.noc.topology import Topology, links

__all__ = ["Freedom", "fixed_paths", "usable_links"]


class Freedom(StrEnum):
    """What an allocation may choose for each flow.

    XY on every plane is free of deadlock with one virtual channel; each further freedom may need virtual-channel
    classes (:func:`routecast.noc.routing.layers.layered`).
    """

    PLANE = "plane"
    """The plane; XY on each."""
    PLANE_ORDER = "plane_order"
    """The plane; XY on the first, third..., YX on the others: free of deadlock too."""
    DIMENSION_ORDER = "dimension_order"
    """The plane, and XY or YX."""
    MINIMAL = "minimal"
    """The plane, and one of all shortest paths."""
    ANY = "any"
    """The plane, and any path."""

    def routing(self, plane: int) -> str:
        """Return what the routing of a plane is called."""
        return {
            Freedom.PLANE: "xy",
            Freedom.PLANE_ORDER: "yx" if plane % 2 else "xy",
            Freedom.DIMENSION_ORDER: "xy or yx",
            Freedom.MINIMAL: "shortest paths",
            Freedom.ANY: "chosen paths",
        }[self]


def fixed_paths(
    topology: Topology, freedom: Freedom, plane: int, source: int, target: int, *, most: int
) -> list[Links]:
    """Return the paths offered on a plane: XY, YX, both, or ``most`` shortest ones and both."""
    horizontal = dimension_order(topology, source, target)
    vertical = dimension_order(topology, source, target, horizontal_first=False)
    if freedom in (Freedom.PLANE, Freedom.PLANE_ORDER):
        return [vertical if freedom is Freedom.PLANE_ORDER and plane % 2 else horizontal]
    paths = {horizontal: None, vertical: None}
    if freedom is not Freedom.DIMENSION_ORDER:
        paths |= dict.fromkeys(minimal_paths(topology, source, target, most=most))
    return list(paths)


def usable_links(topology: Topology, freedom: Freedom) -> NDArray[np.bool_]:
    """Return which links traffic to a router may use, shape (routers, links): all, or those of shortest paths."""
    every = links(topology)
    routers = topology.router_count
    if freedom is Freedom.ANY:
        return np.ones((routers, len(every)), dtype=np.bool_)
    distance = np.array(
        [[topology.distance(router, target) for target in range(routers)] for router in range(routers)]
    )
    source = np.array([link.source for link in every])
    target = np.array([link.target for link in every])
    return np.asarray((distance[target] == distance[source] - 1).T, dtype=np.bool_)
