"""The interface of power models: watts from an operating point, energy from a trial or a series of points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["OperatingPoint", "PowerModel", "energy_j"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """What a router is doing while its power is asked for. A model reads the fields that it knows.

    Parameters
    ----------
    load_ratio : float
        Throughput over the maximum throughput of the machine as it is configured, 0..1.
    rate_pps, l2_bps : float
        Forwarded frames and bits per second, over all ports.
    frequency_hz : float or None
        Clock of the cores; None for a model of one frequency.
    cores : int or None
        Cores that forward; None for all that the model knows.
    """

    load_ratio: float = 0.0
    rate_pps: float = 0.0
    l2_bps: float = 0.0
    frequency_hz: float | None = None
    cores: int | None = None


@runtime_checkable
class PowerModel(Protocol):
    """Watts from state. Every power model, whatever its law, has this interface."""

    @property
    def scope(self) -> str:
        """What the watts cover: package, server, wall."""
        ...

    def power_w(self, point: OperatingPoint) -> float:
        """Return the mean power at an operating point."""
        ...


def energy_j(model: PowerModel, points: Iterable[OperatingPoint], step_s: float) -> float:
    """Return the energy of operating points that each last ``step_s`` (paper 003, eq. 7, times the period)."""
    return sum(model.power_w(point) for point in points) * step_s
