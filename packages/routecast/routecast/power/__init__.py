"""Power models of routers, and what they are fitted from."""

from routecast.power.curve import FormPower, LinearPower, PiecewisePower
from routecast.power.form import PUBLISHED_FORM, FormFunction, MonotoneForm, PolynomialForm, greatest_deviation
from routecast.power.model import OperatingPoint, PowerModel, energy_j
from routecast.power.port import PortClass, PortPower, PortsInUse
from routecast.power.software_router import CoreAtFrequency, SoftwareRouterPower

__all__ = [
    "PUBLISHED_FORM",
    "CoreAtFrequency",
    "FormFunction",
    "FormPower",
    "LinearPower",
    "MonotoneForm",
    "OperatingPoint",
    "PiecewisePower",
    "PolynomialForm",
    "PortClass",
    "PortPower",
    "PortsInUse",
    "PowerModel",
    "SoftwareRouterPower",
    "energy_j",
    "greatest_deviation",
]
