"""Power models of routers, what they are fitted from, and energy metrics."""

from routecast.power.model import OperatingPoint, PowerModel, energy_j

__all__ = ["OperatingPoint", "PowerModel", "energy_j"]
