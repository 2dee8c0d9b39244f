"""Fit routecast's router to a few measured points.

The service time of a frame of S bytes on one of k busy cores is ``(T_c + S·T_d)·c(k)``, and a router under overload
forwards as much as cores, links and cards allow (:mod:`routecast.calibration.forward`). Which contention law c(k) holds
is not known from a few points, and none holds exactly (:mod:`routecast.calibration._discrepancy`), so every law of
:mod:`routecast.contention` is fitted with every scale of the discrepancy and weighed by its evidence; predictions are
weighted averages over the laws and the intervals contain their disagreement. What the points do not decide stays at its
prior: with one point only T_c is learnt, each further one adds at most one effective parameter
(:attr:`FittedRouter.effective_parameters`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration._discrepancy import Discrepancy, Repeated, Scales
from routecast.calibration._posterior import Posterior, law_weights, log_evidence, sample_posterior
from routecast.calibration.fitted import FittedLaw, FittedRouter, Parameter
from routecast.calibration.forward import BYTE_SHAPE, DEVICE_SHAPES, POLL_SHAPE, Conditions, log_throughput
from routecast.calibration.priors import Priors, read_priors
from routecast.contention import LAWS, Law, Shape
from routecast.errors import FitProblem
from routecast.evaluate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["FittedLaw", "FittedRouter", "Parameter", "evidence_by_scales", "fit", "law_evidence"]

_DRAWS = 96
_RATE_SD = 4.0
_NEGLIGIBLE_WEIGHT = 1e-4
_LEAST_FOR_OUTLIERS = 4
_OUTLIER_CHANCE = 0.01
_OUTLIER_SD = 1.0
_SUSPECT = 2.0
_COARSE = 3
_GRID = tuple(float(cost) for cost in np.linspace(-0.1, 0.2, 16))
_FIXED_SD = 1e-6
_FINEST_SD = 0.005


def fit(
    points: Sequence[Point],
    *,
    series: str = "",
    laws: Mapping[str, float] | Sequence[str] | None = None,
    seed: int = 0,
    noise_ratio: float | None = None,
    poll: Shape = POLL_SHAPE,
    priors: Priors | None = None,
) -> FittedRouter:
    """Fit a router to all measured points of one series; the noise comes from repetitions.

    Parameters
    ----------
    points : sequence of Point
        One or more; their ``calibrate`` mark is not looked at.
    series : str
        Name in messages; taken from the points if empty.
    laws : mapping of str to float, or sequence of str, or None
        Laws to average, with weights of their own or those of the priors; None: all.
    seed : int
    noise_ratio : float or None
        Repeatability of one measured rate, one standard deviation; None: from repetitions and other machines
        (:mod:`routecast.calibration._discrepancy`).
    poll : Shape
        Prior of the cost of polling a further queue (:func:`shared_poll`).
    priors : Priors or None
        What is held of a router before it is measured; None: what all sources of the board taught.

    Raises
    ------
    FitProblem
        No points, points of several series, or a rate or a law that is not allowed.
    """
    name = series or (points[0].series if points else "")
    _check(points, name, noise_ratio)
    held = priors or read_priors()
    prior = _prior_weights(laws or _possible(points, held), name, held)
    known = Repeated.of(points, noise_ratio)
    known, outliers = _without_outliers(known, prior, poll, held.scales)
    evidence = _evidence(known, [LAWS[law] for law in prior], poll)[0] + held.scales.log_weights()
    weights = law_weights([float(np.logaddexp.reduce(row)) for row in evidence], list(prior.values()))
    discrepancy = Discrepancy.of(known.points, known.noise)
    fitted = []
    for index, (law, weight) in enumerate(zip(prior, weights, strict=True)):
        if weight <= _NEGLIGIBLE_WEIGHT:
            continue
        cells = _cells(evidence[index])
        fitted.append(
            FittedLaw(
                law=LAWS[law],
                posterior=_sample(LAWS[law], known, discrepancy, cells, poll, seed + 1000 * index),
                weight=float(weight / weights[weights > _NEGLIGIBLE_WEIGHT].sum()),
                cells=cells[1:],
            )
        )
    return FittedRouter(
        series=name,
        points=tuple(known.points),
        fitted=tuple(sorted(fitted, key=lambda each: -each.weight)),
        discrepancy=discrepancy,
        noise_ratio=known.one_ratio,
        noise_strays=known.strays,
        outliers=outliers,
        seed=seed,
    )


def law_evidence(
    law: Law, points: Sequence[Point], *, polls: Sequence[Shape] = (POLL_SHAPE,), noise_ratio: float | None = None
) -> Floats:
    """Log evidence of a law without discrepancy by points, for each of several priors of the cost of polling."""
    known = Repeated.of(points, noise_ratio)
    conditions = Conditions.of_measured(known.points)
    priors = [_prior(known, law, poll) for poll in polls]
    return log_evidence(
        lambda theta: log_throughput(law, theta, conditions),
        known.measured,
        known.noise,
        np.stack([mean for mean, _ in priors]),
        np.stack([sd for _, sd in priors]),
    )[0]


def shared_poll(
    series: Sequence[Sequence[Point]], *, noise_ratio: float | None = None, priors: Priors | None = None
) -> Shape:
    """Return the prior of the cost of polling a further queue, from the calibration points of all series of a test bed.

    By how much a frame costs more on a core that polls several ports (:mod:`routecast.evaluate.points`) is a property
    of the poll loop, not of the function under test. A single series cannot separate it from contention: two cores that
    pass 2.0 times the rate of one may poll cheaply, or may gain 5 % by polling less and lose it again by contention.
    Many series can. The cost is therefore estimated from all series together by its marginal likelihood (empirical
    Bayes, Robbins 1956; Carlin and Louis 2000, ch. 3)::

        p(cost | points) ∝ N(cost; prior) · Π_series Σ_laws w_law Z_law(series | cost)

    Its mean and standard deviation are the prior with which each series is then fitted. Where no series has points with
    different numbers of queues, it is the usual prior.
    """
    polling = [
        points
        for points in series
        if len({point.layout.further_queues(point.working_cores, point.ports) for point in points}) > 1
    ]
    if not polling:
        return POLL_SHAPE
    cost = np.array(_GRID)
    fixed = [replace(POLL_SHAPE, mean=mean, sd=_FIXED_SD) for mean in _GRID]
    score = -0.5 * ((cost - POLL_SHAPE.mean) / POLL_SHAPE.sd) ** 2
    for points in polling:
        by_law = [
            math.log(weight) + law_evidence(LAWS[law], points, polls=fixed, noise_ratio=noise_ratio)
            for law, weight in (priors or read_priors()).laws.items()
        ]
        score = score + np.logaddexp.reduce(by_law, axis=0)
    weight = np.exp(score - score.max())
    mean = float(np.average(cost, weights=weight))
    sd = math.sqrt(float(np.average((cost - mean) ** 2, weights=weight)))
    return replace(POLL_SHAPE, mean=mean, sd=max(sd, _FINEST_SD))


def evidence_by_scales(points: Sequence[Point], laws: Sequence[Law], *, noise_ratio: float | None = None) -> Floats:
    """Log evidence of each law by points, with each pair of scales of its discrepancy, (laws, cells)."""
    return _evidence(Repeated.of(points, noise_ratio), laws, POLL_SHAPE)[0]


def _evidence(known: Repeated, laws: Sequence[Law], poll: Shape, *, step: int = 1) -> tuple[Floats, Floats]:
    """Log evidence of each law with each ``step``-th cell of the grid of scales, (laws, cells), and the residuals.

    The residuals are of each point given the others, in standard deviations, (laws, cells, n).
    """
    whitening = Discrepancy.of(known.points, known.noise).whitening[::step]
    alone = np.sqrt((whitening**2).sum(axis=1))
    conditions = Conditions.of_measured(known.points)
    rows, residuals = [], []
    for law in laws:
        mean, sd = _prior(known, law, poll)
        evidence, misfit = log_evidence(
            functools.partial(log_throughput, law, conditions=conditions), known.measured, whitening, mean, sd
        )
        rows.append(evidence)
        residuals.append(np.einsum("rij,ri->rj", whitening, misfit) / alone)
    return np.stack(rows), np.stack(residuals)


def _cells(evidence: Floats) -> NDArray[np.intp]:
    """Return the cell of the grid for the most probable point, and for each draw in proportion to its weight."""
    weights = np.exp(evidence - np.logaddexp.reduce(evidence))
    half = _DRAWS // 2
    spread = np.searchsorted(np.cumsum(weights), (np.arange(half) + 0.5) / half).clip(0, len(weights) - 1)
    return np.concatenate([[np.argmax(weights)], spread, spread])


def _sample(
    law: Law, known: Repeated, discrepancy: Discrepancy, cells: NDArray[np.intp], poll: Shape, seed: int
) -> Posterior:
    conditions = Conditions.of_measured(known.points)
    mean, sd = _prior(known, law, poll)
    return sample_posterior(
        lambda theta: log_throughput(law, theta, conditions),
        known.measured,
        discrepancy.whitening[cells],
        mean,
        sd,
        draws=_DRAWS,
        seed=seed,
    )


def _prior(known: Repeated, law: Law, poll: Shape) -> tuple[Floats, Floats]:
    cores = np.array([float(point.working_cores) for point in known.points])
    core_rate = float(np.mean(known.measured - np.log(cores)))
    shapes = [BYTE_SHAPE, *law.shapes, *(poll if each is POLL_SHAPE else each for each in DEVICE_SHAPES)]
    return (
        np.array([-core_rate, *(shape.mean for shape in shapes)]),
        np.array([_RATE_SD, *(shape.sd for shape in shapes)]),
    )


def _without_outliers(
    known: Repeated, prior: Mapping[str, float], poll: Shape, scales: Scales
) -> tuple[Repeated, tuple[Point, ...]]:
    """Give a point that the others contradict so much noise that it has no weight; at most a quarter of the points.

    Each point is an outlier with a prior probability of 1 % (a contaminated normal: Box and Tiao 1968, Biometrika 55).
    """
    laws = [LAWS[law] for law in prior]
    log_prior = np.log(list(prior.values()))[:, None] + scales.log_weights()[::_COARSE]

    def total(repeated: Repeated) -> tuple[float, Floats]:
        evidence, residuals = _evidence(repeated, laws, poll, step=_COARSE)
        best = np.unravel_index(np.argmax(evidence + log_prior), evidence.shape)
        return float(np.logaddexp.reduce(evidence + log_prior, axis=None)), residuals[best]

    outliers: list[Point] = []
    while len(known.points) >= _LEAST_FOR_OUTLIERS * (len(outliers) + 1):
        before, residuals = total(known)
        without = {
            index: known.doubted(point, _OUTLIER_SD)
            for index, point in enumerate(known.points)
            if point not in outliers and abs(residuals[index]) > _SUSPECT
        }
        gains = {index: total(times)[0] - before for index, times in without.items()}
        best = max(gains, key=lambda index: gains[index], default=None)
        if best is None or gains[best] + math.log(_OUTLIER_CHANCE) < 0.0:
            break
        outliers.append(known.points[best])
        known = without[best]
    return known, tuple(outliers)


def _check(points: Sequence[Point], series: str, noise_ratio: float | None) -> None:
    if not points:
        raise FitProblem(series, "no points to calibrate with: give at least one measured maximum throughput")
    if len({point.series for point in points}) > 1:
        raise FitProblem(series, "the points belong to several series: fit each series by itself")
    wrong = [point.throughput_pps for point in points if not (0.0 < point.throughput_pps < math.inf)]
    if wrong:
        raise FitProblem(series, f"got a rate of {wrong[0]} frames/s: measured rates are finite and > 0")
    if noise_ratio is not None and not 0.0 < noise_ratio < 1.0:
        raise FitProblem(series, f"got noise_ratio = {noise_ratio}: allowed is more than 0 and less than 1")


def _possible(points: Sequence[Point], priors: Priors) -> dict[str, float]:
    """Laws that the known layout of queues leaves: cores collapse only at a queue that they share."""
    shared = next((p.layout.shared_queue for p in points if p.layout.shared_queue is not None), None)
    return {name: weight for name, weight in priors.laws.items() if shared is None or LAWS[name].collapses is shared}


def _prior_weights(laws: Mapping[str, float] | Sequence[str] | None, series: str, priors: Priors) -> dict[str, float]:
    if laws is None:
        return dict(priors.laws)
    prior = dict(laws) if isinstance(laws, Mapping) else {law: priors.laws.get(law, 1.0) for law in laws}
    unknown = [name for name in prior if name not in LAWS]
    if unknown or not prior:
        got = f"unknown law {unknown[0]!r}" if unknown else "no law"
        raise FitProblem(series, f"{got}: known are {', '.join(LAWS)}")
    if any(not (0.0 < weight < math.inf) for weight in prior.values()):
        raise FitProblem(series, "prior weights of laws are finite and > 0: leave out a law that you exclude")
    return prior
