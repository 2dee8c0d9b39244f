"""Power that is linear in load, or follows a form function between idle and full power."""

from __future__ import annotations

from routecast.errors import ModelProblem, Problem
from routecast.power.form import PUBLISHED_FORM, Form
from routecast.power.model import SCOPE, OperatingPoint
from routecast.quantity.fields import Power
from routecast.quantity.schema import field, value

__all__ = ["FormPower", "LinearPower"]


@value
class LinearPower:
    """P = P_idle + (P_full - P_idle) · load. The coarsest model; servers lie above it at half load."""

    idle_w: Power = field('power without load, such as "80 W"')
    full_w: Power = field('power at full load, such as "200 W"')
    scope: str = field(SCOPE, default="server")

    def __post_init__(self) -> None:
        if self.full_w < self.idle_w:
            raise ModelProblem("linear power model", [Problem("full_w", "is less than idle")])

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's load."""
        return self.idle_w + (self.full_w - self.idle_w) * point.load_ratio


@value
class FormPower:
    """P = P_idle + (P_active - P_idle) · x(load): one core, one frequency (paper 003, eq. 5)."""

    idle_w: Power = field('power without load, such as "80 W"')
    active_w: Power = field('power of a core that is never idle, such as "200 W"')
    form: Form = field('"published", or a table', default=PUBLISHED_FORM)
    scope: str = field(SCOPE, default="server")

    def __post_init__(self) -> None:
        if self.active_w < self.idle_w:
            raise ModelProblem("power model", [Problem("active_w", "is less than idle")])

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's load."""
        return self.idle_w + (self.active_w - self.idle_w) * self.form.at(point.load_ratio)
