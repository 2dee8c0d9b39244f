"""The interface of power models, which give watts at an operating point, and the energy of a series of points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from routecast.quantity.schema import field, value

__all__ = ["NO_WATTS", "SCOPE", "OperatingPoint", "PowerModel", "energy_j"]

SCOPE = "part that the watts cover: package, server, wall"
NO_WATTS = (
    "the trial has no watts: give every pool of the router file its power states, "
    'power = { active = "… W", idle = "… W", scope = "package" }'
)
"""Message on a trial of a router whose file has no power states."""


@value
class OperatingPoint:
    """The load and configuration of a router. A model reads only the fields that its law needs."""

    load_ratio: float = field("throughput over the maximum of the machine in its configuration, 0..1", default=0.0)
    rate_pps: float = field("forwarded frames of all ports, frames/s", default=0.0)
    l2_bps: float = field("forwarded bits of all ports, bit/s", default=0.0)
    frequency_hz: float | None = field("clock of the cores, Hz; None for a model of a single clock", default=None)
    cores: int | None = field("cores that forward; None for all of the model", default=None)


@runtime_checkable
class PowerModel(Protocol):
    """The interface of every power model."""

    @property
    def scope(self) -> str:
        """Part that the watts cover: package, server, wall."""
        ...

    def power_w(self, point: OperatingPoint) -> float:
        """Return the mean power at an operating point."""
        ...


def energy_j(model: PowerModel, points: Iterable[OperatingPoint], step_s: float) -> float:
    """Return the energy of operating points that each last ``step_s`` (Bolla et al. 2009, eq. 7, times the period)."""
    return sum(model.power_w(point) for point in points) * step_s
