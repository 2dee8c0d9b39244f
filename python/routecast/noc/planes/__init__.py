"""Allocations of flows to planes: Li's three and our own."""

from routecast.noc.planes.model import Allocation, Plane

__all__ = ["Allocation", "Plane"]
