"""Fit routecast's router to a few measured points.

The service time of a frame of S bytes on one of k busy cores is ``(T_c + S·T_d)·c(k)``, and a router under overload
forwards what cores, links and cards let through (:mod:`routecast.calibrate.saturation`). Which contention law c(k)
holds is not known from a few points, so every law of :mod:`routecast.calibrate.laws` is fitted and weighed by its
evidence; predictions are weighted averages over the laws and the intervals contain their disagreement. What the
points do not decide stays at its prior: with one point only T_c is learnt, each further one adds at most one effective
parameter (:attr:`FittedRouter.effective_parameters`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibrate.fitted import FittedLaw, FittedRouter, Parameter
from routecast.calibrate.forward import BYTE_SHAPE, DEVICE_SHAPES, POLL_SHAPE, Conditions, log_throughput
from routecast.calibrate.laws import LAWS, Law, Shape
from routecast.calibrate.mixture import law_weights
from routecast.calibrate.points import Point
from routecast.calibrate.posterior import log_evidence, sample_posterior
from routecast.errors import FitProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["NOISE_RATIO", "FittedLaw", "FittedRouter", "Parameter", "fit", "law_evidence"]

NOISE_RATIO = 0.005
"""Repeatability of a maximum throughput, one standard deviation: repeated RFC 2544 trials agree to about 0.5 %."""

_DRAWS = 96
_RATE_SD = 4.0
_NEGLIGIBLE_WEIGHT = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Data:
    """Calibration points as the posterior wants them."""

    conditions: Conditions
    measured: Floats
    noise: Floats

    @classmethod
    def of(cls, points: Sequence[Point], noise_ratio: float) -> _Data:
        return cls(
            conditions=Conditions.of(points),
            measured=np.log([point.throughput_pps for point in points]),
            noise=np.full(len(points), noise_ratio),
        )

    def prior(self, law: Law, poll: Shape) -> tuple[Floats, Floats]:
        core_rate = float(np.mean(self.measured - np.log(self.conditions.cores)))
        shapes = [BYTE_SHAPE, *law.shapes, *(poll if each is POLL_SHAPE else each for each in DEVICE_SHAPES)]
        return (
            np.array([-core_rate, *(shape.mean for shape in shapes)]),
            np.array([_RATE_SD, *(shape.sd for shape in shapes)]),
        )


def fit(
    points: Sequence[Point],
    *,
    series: str = "",
    laws: Mapping[str, float] | Sequence[str] | None = None,
    seed: int = 0,
    noise_ratio: float = NOISE_RATIO,
    poll: Shape = POLL_SHAPE,
    catalogue: Mapping[str, Law] = LAWS,
) -> FittedRouter:
    """Fit a router to measured points of one series; every point given is used.

    Parameters
    ----------
    points : sequence of Point
        One or more; their ``calibrate`` mark is not looked at.
    series : str
        Name in messages; taken from the points if empty.
    laws : mapping of str to float, or sequence of str, or None
        Laws to average with their prior weights; a sequence weighs them equally; None: all with their usual weights.
    seed : int
    noise_ratio : float
        Repeatability of the measured rates, one standard deviation.
    poll : Shape
        Prior of the cost of polling a further queue (:mod:`routecast.calibrate.testbed`).
    catalogue : mapping of str to Law
        Where the names of laws are looked up; other priors than the shipped ones are tried with it.

    Raises
    ------
    FitProblem
        No points, points of several series, a rate or a law that is not allowed, or repeated conditions.
    """
    points = tuple(points)
    name = series or (points[0].series if points else "")
    _check(points, name, noise_ratio)
    prior = _prior_weights(laws, name, catalogue)
    data = _Data.of(points, noise_ratio)
    posteriors = []
    for index, law in enumerate(catalogue[each] for each in prior):
        mean, sd = data.prior(law, poll)
        posteriors.append(
            sample_posterior(
                partial(_log_throughput, law, data),
                data.measured,
                data.noise,
                mean,
                sd,
                draws=_DRAWS,
                seed=seed + 1000 * index,
            )
        )
    weights = law_weights([each.log_evidence for each in posteriors], list(prior.values()))
    fitted = [
        FittedLaw(law=catalogue[law], posterior=posterior, weight=float(weight))
        for law, posterior, weight in zip(prior, posteriors, weights, strict=True)
        if weight > _NEGLIGIBLE_WEIGHT
    ]
    total = sum(each.weight for each in fitted)
    fitted = sorted(
        (replace(each, weight=each.weight / total) for each in fitted), key=lambda each: -each.weight
    )
    return FittedRouter(series=name, points=points, fitted=tuple(fitted), noise_ratio=noise_ratio, seed=seed)


def law_evidence(
    law: Law,
    points: Sequence[Point],
    *,
    polls: Sequence[Shape] = (POLL_SHAPE,),
    noise_ratio: float = NOISE_RATIO,
) -> Floats:
    """Log evidence that the points give a law, for each of several priors of the cost of polling."""
    data = _Data.of(points, noise_ratio)
    priors = [data.prior(law, poll) for poll in polls]
    return log_evidence(
        lambda theta: log_throughput(law, theta, data.conditions),
        data.measured,
        data.noise,
        np.stack([mean for mean, _ in priors]),
        np.stack([sd for _, sd in priors]),
    )


def _check(points: Sequence[Point], series: str, noise_ratio: float) -> None:
    if not points:
        raise FitProblem(series, "no points to calibrate with: give at least one measured maximum throughput")
    if len({point.series for point in points}) > 1:
        raise FitProblem(series, "the points belong to several series: fit each series by itself")
    wrong = [point.throughput_pps for point in points if not (0.0 < point.throughput_pps < math.inf)]
    if wrong:
        raise FitProblem(series, f"got a rate of {wrong[0]} frames/s: measured rates are finite and > 0")
    if len({point.conditions for point in points}) < len(points):
        raise FitProblem(series, "two points have the same conditions: give their mean as one point")
    if not 0.0 < noise_ratio < 1.0:
        raise FitProblem(series, f"got noise_ratio = {noise_ratio}: allowed is more than 0 and less than 1")


def _prior_weights(
    laws: Mapping[str, float] | Sequence[str] | None, series: str, catalogue: Mapping[str, Law]
) -> dict[str, float]:
    if laws is None:
        return {law.name: law.prior_weight for law in catalogue.values()}
    prior = dict(laws) if isinstance(laws, Mapping) else dict.fromkeys(laws, 1.0)
    unknown = [name for name in prior if name not in catalogue]
    if unknown or not prior:
        got = f"unknown law {unknown[0]!r}" if unknown else "no law"
        raise FitProblem(series, f"{got}: known are {', '.join(catalogue)}")
    if any(not (0.0 < weight < math.inf) for weight in prior.values()):
        raise FitProblem(series, "prior weights of laws are finite and > 0: leave out a law that you exclude")
    return prior


def _log_throughput(law: Law, data: _Data, theta: Floats) -> Floats:
    """Answer for the conditions of the points; see :func:`routecast.calibrate.forward.log_throughput`."""
    return log_throughput(law, theta, data.conditions)
