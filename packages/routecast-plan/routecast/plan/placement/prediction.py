"""Predictions of the throughput of a placement.

The search compares only predictions of the closed form with contention, for the router model of a placement or of one
of its servers. It uses no fixed capacities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from routecast.evaluate.solve import Solve, lossless_pps
from routecast.evaluate.trial import Resource
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel

__all__ = ["PlacementPrediction", "predict", "predict_lossless_pps", "predict_without_loss"]

_LOW_PPS = 1000.0
"""Load at which the greatest load without overload is computed; the result does not depend on it."""


@value
class PlacementPrediction:
    """The prediction of a router at a load."""

    offered_pps: float
    forwarded_pps: float
    lossless_pps: float = field("The greatest load that overloads nothing, frames/s")
    latency_s: float = field("Mean latency at the load, s; NaN where the closed form has none")
    resources: tuple[Resource, ...] = field("Resources by capacity, the least first")
    drops_pps: Mapping[str, float]
    bottleneck: str = field("The resource of least capacity")
    reason: str

    def capacity_pps(self, resource: str) -> float:
        """Return the load that a resource can carry, frames/s; infinite for an unknown or unused resource."""
        return next((candidate.capacity_pps for candidate in self.resources if candidate.name == resource), math.inf)

    def used_ratio(self, resource: str) -> float:
        """Return the utilisation of a resource."""
        return next((candidate.utilisation_ratio for candidate in self.resources if candidate.name == resource), 0.0)


def predict(model: RouterModel, load: OfferedLoad, *, lossless_pps: float | None = None) -> PlacementPrediction:
    """Predict a router at a load; ``lossless_pps`` is the greatest load without overload, if already known."""
    trial = Solve(model).trial(load, 1.0)
    return PlacementPrediction(
        offered_pps=trial.offered_pps,
        forwarded_pps=trial.forwarded_pps,
        lossless_pps=predict_lossless_pps(model, load) if lossless_pps is None else lossless_pps,
        latency_s=math.nan if trial.latency is None else trial.latency.mean_s,
        resources=trial.resources,
        drops_pps=dict(trial.drops_pps),
        bottleneck=trial.bottleneck.name,
        reason=trial.bottleneck.reason,
    )


def predict_without_loss(model: RouterModel, load: OfferedLoad) -> PlacementPrediction:
    """Predict only the greatest load without overload, which is quick; other values are NaN or empty."""
    lossless_pps = predict_lossless_pps(model, load)
    is_over = load.rate_pps > lossless_pps
    return PlacementPrediction(
        offered_pps=load.rate_pps,
        forwarded_pps=math.nan if is_over else load.rate_pps,
        lossless_pps=lossless_pps,
        latency_s=math.nan,
        resources=(),
        drops_pps={},
        bottleneck="",
        reason="",
    )


def predict_lossless_pps(model: RouterModel, load: OfferedLoad) -> float:
    """Predict the greatest load of a router without overload, frames/s; the rate of ``load`` is not used."""
    return lossless_pps(model, load.at(_LOW_PPS))
