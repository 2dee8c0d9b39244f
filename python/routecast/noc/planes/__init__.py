"""Which flow goes over which plane: Li's three allocations and our own."""

from routecast.noc.planes.model import Allocation, Plane

__all__ = ["Allocation", "Plane"]
