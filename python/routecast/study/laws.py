"""The laws that a study calibrates: routecast's own, and the baseline to compare it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from routecast.router.model import RouterModel
from routecast.study.result import Parameter
from routecast.study.tasks import Workload

if TYPE_CHECKING:
    pass

__all__ = ["BaselineLaw", "CalibratedLaw", "Law", "Prediction", "fit_baseline", "fit_law"]


class Law(Protocol):
    """Something calibrated that makes a router model for a workload."""

    @property
    def name(self) -> str:
        """Name in the results."""
        ...

    def model(self, load: Workload, queue_frames: int) -> RouterModel:
        """Return the router that the workload runs on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A predicted maximum, its 95 % prediction interval and what limits it."""

    throughput_pps: float
    low_pps: float
    high_pps: float
    limit: str


class CalibratedLaw(Law, Protocol):
    """A law that also knows how sure it is."""

    @property
    def description(self) -> str:
        """The law as a formula."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What was fitted."""
        ...

    @property
    def next_points(self) -> tuple[str, ...]:
        """The measurements that would narrow the predictions most, in words."""
        ...

    def predict(self, loads: Sequence[Workload]) -> tuple[Prediction, ...]:
        """Return the predictions with their intervals."""
        ...


BaselineLaw = Law
