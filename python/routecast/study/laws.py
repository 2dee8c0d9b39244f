"""The laws that a study calibrates: routecast's own, and the baseline to compare it with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from routecast.router.model import RouterModel
from routecast.study.document import Study
from routecast.study.result import Hypothesis, Parameter
from routecast.study.tasks import Workload

if TYPE_CHECKING:
    from routecast.calibrate.eq5 import Eq5Router
    from routecast.calibrate.fit import FittedRouter
    from routecast.calibrate.points import Point

__all__ = ["CalibratedLaw", "Law", "Prediction", "fit_baseline", "fit_law"]

NEXT_POINTS = 3
"""Measurements that a report suggests."""


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
    """A predicted maximum, its 95 % prediction interval, what limits it, and c(k) of the cores that have flows."""

    throughput_pps: float
    low_pps: float
    high_pps: float
    limit: str
    contention_ratio: float


class CalibratedLaw(Law, Protocol):
    """A law that also knows how sure it is."""

    @property
    def description(self) -> str:
        """The law as a formula."""
        ...

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The laws of contention that it averages over, heaviest first; empty if there is one only."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What was fitted."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the calibrating points say against themselves or against every law, in words."""
        ...

    def next_points(self, targets: Sequence[Workload]) -> tuple[str, ...]:
        """Return the measurements that would narrow the predictions at the targets most, in words, best first."""
        ...

    def predict(self, loads: Sequence[Workload]) -> tuple[Prediction, ...]:
        """Return the predictions with their intervals."""
        ...


@dataclass(frozen=True, slots=True)
class _Baseline:
    """Eqs. 5 to 7 of paper 000: the service time is fixed by the number of cores that have a flow."""

    router: Eq5Router
    name: str = "eq5"

    def model(self, load: Workload, queue_frames: int) -> RouterModel:
        return self.router.router_model(
            load.cores,
            load.frame_bytes,
            flows=load.flows,
            link_bps=load.link_bps,
            ports=load.ports,
            queue_frames=queue_frames,
        )


@dataclass(frozen=True, slots=True)
class _Calibrated:
    """routecast's own law."""

    router: FittedRouter
    name: str = "routecast"

    def model(self, load: Workload, queue_frames: int) -> RouterModel:
        return self.router.router_model(
            load.cores,
            load.frame_bytes,
            link_bps=load.link_bps,
            ports=load.ports,
            queue_frames=queue_frames,
        )

    @property
    def description(self) -> str:
        return "x = (T_c + S·T_d)·c(k)"

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        return tuple(
            Hypothesis(name=each.law.name, formula=each.law.formula, weight_ratio=each.weight)
            for each in self.router.fitted
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(name=p.name, value=p.value, low=p.low, high=p.high, unit=p.unit, meaning=p.meaning)
            for p in self.router.parameters.values()
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.router.warnings

    def next_points(self, targets: Sequence[Workload]) -> tuple[str, ...]:
        points = [_point(load) for load in targets]
        return tuple(str(point) for point in self.router.next_points(NEXT_POINTS, targets=points))

    def predict(self, loads: Sequence[Workload]) -> tuple[Prediction, ...]:
        predictions = self.router.predict([_point(load) for load in loads])
        contention = {k: self._contention_ratio(k) for k in {load.busy_cores for load in loads}}
        return tuple(
            Prediction(
                throughput_pps=p.throughput_pps,
                low_pps=p.low_pps,
                high_pps=p.high_pps,
                limit=p.limit,
                contention_ratio=contention[load.busy_cores],
            )
            for load, p in zip(loads, predictions, strict=True)
        )

    def _contention_ratio(self, cores: int) -> float:
        """Return c(k) as the table of parameters has it, or the average over the laws at k that it does not have."""
        from routecast.calibrate.forward import REFERENCE_BYTES  # NumPy

        named = self.router.parameters.get(f"c({cores})")
        if named is not None:
            return named.value
        return self.router.service_s(cores, REFERENCE_BYTES) / self.router.service_s(1, REFERENCE_BYTES)


def fit_law(study: Study, measured: Sequence[Point]) -> CalibratedLaw:
    """Calibrate routecast's law.

    Raises
    ------
    routecast.errors.FitProblem
        The points do not carry it.
    """
    from routecast.calibrate.fit import fit  # SciPy
    from routecast.calibrate.priors import read_priors

    priors = read_priors(without=study.measurements.left_out)
    return _Calibrated(fit(measured, series=study.name, priors=priors))


def fit_baseline(study: Study, measured: Sequence[Point]) -> Law:
    """Calibrate eq. 5 of paper 000.

    Raises
    ------
    routecast.errors.FitProblem
        There are fewer than four points, or they do not tell its coefficients apart.
    """
    from routecast.calibrate.eq5 import fit_eq5  # NumPy

    return _Baseline(fit_eq5(measured, series=study.name))


def _point(load: Workload) -> Point:
    from routecast.calibrate.points import Point

    return Point(
        cores=load.cores,
        frame_bytes=load.frame_bytes,
        throughput_pps=math.nan,
        flows=load.flows,
        link_bps=load.link_bps,
        ports=load.ports,
    )
