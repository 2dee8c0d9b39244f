"""Power that is linear in load, or follows a form function between idle and full power."""

from __future__ import annotations

from routecast.power.form import PUBLISHED_FORM, FormFunction
from routecast.power.model import OperatingPoint
from routecast.quantity.schema import value

__all__ = ["FormPower", "LinearPower"]


@value
class LinearPower:
    """P = P_idle + (P_full - P_idle) · load. The coarsest model; servers lie above it at half load."""

    # At load 0 and 1.
    idle_w: float
    full_w: float
    scope: str = "server"

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's load."""
        return self.idle_w + (self.full_w - self.idle_w) * point.load_ratio


@value
class FormPower:
    """P = P_idle + (P_active - P_idle) · x(load): one core, one frequency (paper 003, eq. 5)."""

    # Without traffic, and never idle.
    idle_w: float
    active_w: float
    form: FormFunction = PUBLISHED_FORM
    scope: str = "server"

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's load."""
        return self.idle_w + (self.active_w - self.idle_w) * self.form.at(point.load_ratio)
