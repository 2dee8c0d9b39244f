"""Fit routecast's router to a few measured points.

The service time of a frame of S bytes on one of k busy cores is ``(T_c + S·T_d)·c(k)``, and a router under overload
forwards as much as cores, links and cards allow (:mod:`routecast.calibration.forward`). A few points do not decide
between the contention laws c(k), and no law holds exactly (:mod:`routecast.calibration._discrepancy`). Every law of
:mod:`routecast.contention` is therefore fitted with every scale of the discrepancy and weighted by its evidence.
Predictions are weighted averages over the laws, and the intervals contain their disagreement. A parameter that the
points do not decide keeps its prior: one point decides only T_c, and each further point adds at most one effective
parameter (:attr:`FittedRouter.effective_parameters`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration._discrepancy import NOISES, Discrepancy, Measurements, Scales
from routecast.calibration._posterior import law_weights, log_evidence, log_evidence_of_shifts, sample_posterior
from routecast.calibration._rate_draws import falls
from routecast.calibration.caps import find_caps, with_queues
from routecast.calibration.dealing import find_queues
from routecast.calibration.fitted import FittedLaw, FittedRouter, Parameter
from routecast.calibration.forward import BYTE_SHAPE, DEVICE_SHAPES, POLL_SHAPE, Conditions, log_throughput
from routecast.calibration.priors import Priors, read_priors
from routecast.contention import LAWS, Law, Shape
from routecast.errors import FitProblem
from routecast.evaluate.points import Point
from routecast.load.offered import WIRE_OVERHEAD_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["FittedLaw", "FittedRouter", "Parameter", "evidence_by_scales", "fit"]

_DRAWS = 96
_RATE_SD = 4.0
_NEGLIGIBLE_WEIGHT = 1e-4
_POINTS_PER_OUTLIER = 4
_OUTLIER_PROBABILITY = 0.01
_OUTLIER_SD = 1.0
_SUSPECT_SD = 2.0
_COARSE_STEP = 3
_LAWS_OF_QUEUES = 3
"""The laws of most prior weight tell whether receive queues are dealt: their steps are no law's."""
_POLL_GRID = np.linspace(-0.1, 0.2, 16)
_FIXED_SD = 1e-6
_MIN_POLL_SD = 0.005
_SMALLEST_WIRE_BYTES = 64.0 + WIRE_OVERHEAD_BYTES


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
        One or more; their ``calibrate`` mark has no effect.
    series : str
        Name in messages; taken from the points if empty.
    laws : mapping of str to float, or sequence of str, or None
        Laws to average, with their prior weights or those of ``priors``; None: all.
    seed : int
    noise_ratio : float or None
        Repeatability of one measured rate, one standard deviation; None: from repetitions and other machines
        (:mod:`routecast.calibration._discrepancy`).
    poll : Shape
        Prior of the cost of polling a further queue (:func:`shared_poll`).
    priors : Priors or None
        Priors of a router before it is measured; None: those learnt from all sources of the board.

    Raises
    ------
    FitProblem
        No points, points of several series, or a rate or a law that is not allowed.
    """
    name = series or (points[0].series if points else "")
    _check(points, name, noise_ratio)
    priors = priors or read_priors()
    # Numbers alone, so that what is equal but written otherwise, such as 2 and 2.0, is fitted by itself.
    key = repr((tuple(points), name, laws, seed, noise_ratio, poll, priors))
    fitted = _LAST_FITS.pop(key, None) or _fit(points, name, laws, seed, noise_ratio, poll, priors)
    _LAST_FITS[key] = fitted
    for oldest in list(_LAST_FITS)[:-_KEPT_FITS]:
        _LAST_FITS.pop(oldest, None)
    return fitted


_KEPT_FITS = 8
_LAST_FITS: dict[str, FittedRouter] = {}
"""Last fits by their arguments: who asks for several goals of one table fits the same points for each."""


def _fit(
    points: Sequence[Point],
    name: str,
    laws: Mapping[str, float] | Sequence[str] | None,
    seed: int,
    noise_ratio: float | None,
    poll: Shape,
    priors: Priors,
) -> FittedRouter:
    prior = _prior_weights(laws or _laws_of_layout(points, priors), name, priors)
    caps = find_caps(points, noise_ratio=Measurements.of(points, noise_ratio).noise_ratio)
    measurements = Measurements.of(caps.points, noise_ratio)
    if queues := _dealt_queues(measurements, prior, poll, priors.scales):
        caps = replace(caps, queues=queues, points=tuple(with_queues(point, queues) for point in caps.points))
        measurements = Measurements.of(caps.points, noise_ratio)
    measurements, outliers = _without_outliers(measurements, prior, poll, priors.scales)
    candidates: tuple[Measurements, ...] = (measurements,)
    log_noise = np.zeros(1)
    if noise_ratio is None and not measurements.is_repeated:
        candidates, log_noise = measurements.with_grid_of_noise(outliers), priors.scales.noise_log_weights()
    by_noise = _evidence(candidates, [LAWS[law] for law in prior], poll)[0]
    by_noise = by_noise + log_noise[:, None, None] + priors.scales.log_weights()
    evidence = by_noise.transpose(1, 0, 2).reshape(len(prior), -1)
    weights = law_weights([float(np.logaddexp.reduce(row)) for row in evidence], list(prior.values()))
    weights = _without_unseen_falls(weights, prior, measurements.points)
    discrepancy = Discrepancy.of(candidates)
    if len(candidates) > 1:
        measurements = measurements.with_noise_ratio(_mean_noise_ratio(discrepancy, evidence, weights), outliers)
    weight_of = dict(zip(prior, weights, strict=True))
    fitted = _fitted_laws(measurements, discrepancy, weight_of, evidence, poll, seed)
    return FittedRouter(
        series=name,
        points=measurements.points,
        fitted=tuple(sorted(fitted, key=lambda fitted_law: -fitted_law.weight)),
        discrepancy=discrepancy,
        noise_ratio=measurements.noise_ratio,
        noise_residuals=measurements.residuals,
        outliers=outliers,
        caps=caps,
        hazard=priors.hazards.of(caps.points),
        seed=seed,
        spreads=tuple(_spreads(points)),
    )


def _spreads(points: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    """Yield the lowest and the highest repetition of each repeated condition."""
    repetitions: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        repetitions.setdefault(point.conditions, []).append(point)
    for own in repetitions.values():
        if len(own) > 1:
            low, *_, high = sorted(own, key=lambda point: point.throughput_pps)
            yield low, high


def _fitted_laws(
    measurements: Measurements,
    discrepancy: Discrepancy,
    weight_of: Mapping[str, float],
    evidence: Floats,
    poll: Shape,
    seed: int,
) -> list[FittedLaw]:
    """Return the posterior of each law whose weight is not negligible; ``evidence``: by law and cell of the scales."""
    weights = np.array(list(weight_of.values()))
    conditions = Conditions.of_measured(measurements.points)
    fitted = []
    for index, (law, weight) in enumerate(weight_of.items()):
        if weight <= _NEGLIGIBLE_WEIGHT:
            continue
        cells = _cells(evidence[index])
        fitted.append(
            FittedLaw(
                law=LAWS[law],
                posterior=sample_posterior(
                    functools.partial(log_throughput, LAWS[law], conditions=conditions),
                    measurements.log_rates,
                    discrepancy.whitening[cells],
                    *_prior(measurements, LAWS[law], poll),
                    draws=_DRAWS,
                    seed=seed + 1000 * index,
                    touched=conditions.touched(LAWS[law]),
                ),
                weight=float(weight / weights[weights > _NEGLIGIBLE_WEIGHT].sum()),
                cells=cells[1:],
            )
        )
    return fitted


def shared_poll(
    series: Sequence[Sequence[Point]], *, noise_ratio: float | None = None, priors: Priors | None = None
) -> Shape:
    """Return the prior of the cost of polling a further queue, from the calibration points of all series of a test bed.

    The additional cost of a frame on a core that polls several ports (:mod:`routecast.evaluate.points`) is a property
    of the poll loop, not of the function under test. A single series cannot separate it from contention: two cores that
    forward 2.0 times the rate of one may poll cheaply, or may gain 5 % by polling less and lose it by contention. Many
    series can. The cost is therefore estimated from all series together by its marginal likelihood (empirical Bayes,
    Robbins 1956; Carlin and Louis 2000, ch. 3)::

        p(cost | points) ∝ N(cost; prior) · Π_series Σ_laws w_law Z_law(series | cost)

    Its mean and standard deviation are the prior of the fit of each series. Without a series whose points have
    different numbers of queues, the prior is :data:`POLL_SHAPE`.
    """
    polling = [
        points
        for points in series
        if len({point.layout.further_queues(point.working_cores, point.ports) for point in points}) > 1
    ]
    if not polling:
        return POLL_SHAPE
    fixed = [replace(POLL_SHAPE, mean=cost, sd=_FIXED_SD) for cost in _POLL_GRID]
    score = -0.5 * ((_POLL_GRID - POLL_SHAPE.mean) / POLL_SHAPE.sd) ** 2
    for points in polling:
        measurements = Measurements.of(points, noise_ratio)
        conditions = Conditions.of_measured(measurements.points)
        by_law = []
        for name, weight in (priors or read_priors()).laws.items():
            forward = functools.partial(log_throughput, LAWS[name], conditions=conditions)
            prior = zip(*(_prior(measurements, LAWS[name], poll) for poll in fixed), strict=True)
            evidence, _ = log_evidence(
                forward,
                measurements.log_rates,
                measurements.noise,
                *map(np.stack, prior),
                touched=conditions.touched(LAWS[name]),
            )
            by_law.append(math.log(weight) + evidence)
        score = score + np.logaddexp.reduce(by_law, axis=0)
    weights = np.exp(score - score.max())
    mean = float(np.average(_POLL_GRID, weights=weights))
    sd = math.sqrt(float(np.average((_POLL_GRID - mean) ** 2, weights=weights)))
    return replace(POLL_SHAPE, mean=mean, sd=max(sd, _MIN_POLL_SD))


def evidence_by_scales(points: Sequence[Point], laws: Sequence[Law], *, noise_ratio: float | None = None) -> Floats:
    """Log evidence of each law by points, with each noise and pair of scales of its discrepancy, (laws, noises, cells).

    Repetitions tell the noise, whatever the scales. A noise that is stated tells nothing of other machines.
    """
    measurements = Measurements.of(points, noise_ratio)
    if noise_ratio is None and not measurements.is_repeated:
        evidence: Floats = _evidence(measurements.with_grid_of_noise(), laws, POLL_SHAPE)[0].transpose(1, 0, 2)
        return evidence
    of_noise = measurements.noise_log_likelihoods() if noise_ratio is None else np.zeros(NOISES)
    by_cell: Floats = _evidence([measurements], laws, POLL_SHAPE)[0][0]
    return by_cell[:, None, :] + of_noise[:, None]


def _evidence(
    measurements: Sequence[Measurements], laws: Sequence[Law], poll: Shape, *, step: int = 1
) -> tuple[Floats, Floats]:
    """Log evidence of each law with each ``step``-th cell of the grid of scales, (m, laws, cells), and the residuals.

    The m measurements are of the same points with other noise. The residuals are of each point given the others, in
    standard deviations, (m, laws, cells, n).
    """
    points, log_rates = measurements[0].points, measurements[0].log_rates
    whitening = np.concatenate([Discrepancy.of([each]).whitening[::step] for each in measurements])
    precision = np.sqrt((whitening**2).sum(axis=1))
    conditions = Conditions.of_measured(points)
    rows, residuals = [], []
    for law in laws:
        forward = functools.partial(log_throughput, law, conditions=conditions)
        prior = _prior(measurements[0], law, poll)
        evidence, misfit = log_evidence(forward, log_rates, whitening, *prior, touched=conditions.touched(law))
        rows.append(evidence.reshape(len(measurements), -1))
        residuals.append((np.einsum("rij,ri->rj", whitening, misfit) / precision).reshape(*rows[-1].shape, -1))
    return np.stack(rows, axis=1), np.stack(residuals, axis=1)


def _cells(evidence: Floats) -> NDArray[np.intp]:
    """Return the cell of the grid for the most probable point, and for each draw in proportion to its weight."""
    weights = np.exp(evidence - np.logaddexp.reduce(evidence))
    half = _DRAWS // 2
    spread = np.searchsorted(np.cumsum(weights), (np.arange(half) + 0.5) / half).clip(0, len(weights) - 1)
    return np.concatenate([[np.argmax(weights)], spread, spread])


def _of_frames(shape: Shape, points: Sequence[Point]) -> Shape:
    """Return the prior of a limit in frames/s for the frames of the points.

    Memory, buses and links pass bytes, descriptors and cards frames: for frames of more bytes than the smallest, the
    limit is between that in frames and that in bytes.
    """
    if not shape.in_frames_per_s:
        return shape
    wire = [math.log((point.frame_bytes + WIRE_OVERHEAD_BYTES) / _SMALLEST_WIRE_BYTES) for point in points]
    half = 0.5 * max(math.fsum(wire) / len(wire), 0.0)
    return replace(shape, mean=shape.mean - half, sd=math.hypot(shape.sd, half))


def _without_unseen_falls(weights: Floats, prior: Mapping[str, float], points: Sequence[Point]) -> Floats:
    """Return the weights of the laws, where collapsing laws have at most their prior share if no rate falls.

    A law that rises and falls between two points can pass through both exactly, and would promise a peak that nobody
    measured. Whether cores share a queue under a lock is a fact to ask for (:mod:`routecast.calibration.facts`).
    """
    collapses = np.array([LAWS[law].collapses for law in prior])
    is_known = any(falls(points)) or any(point.layout.shared_queue is not None for point in points)
    prior_share = float(np.array(list(prior.values()))[collapses].sum() / sum(prior.values()))
    share = float(weights[collapses].sum())
    if is_known or share <= prior_share or share >= 1.0:
        return weights
    limited: Floats = np.where(collapses, weights * prior_share / share, weights * (1.0 - prior_share) / (1.0 - share))
    return limited


def _prior(measurements: Measurements, law: Law, poll: Shape) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the parameters, with ``poll`` in place of :data:`POLL_SHAPE`."""
    cores = np.array([float(point.working_cores) for point in measurements.points])
    log_core_s = -float(np.mean(measurements.log_rates - np.log(cores)))
    shapes = [
        BYTE_SHAPE,
        *(_of_frames(shape, measurements.points) for shape in law.shapes),
        *(poll if shape is POLL_SHAPE else shape for shape in DEVICE_SHAPES),
    ]
    mean, sd = np.array([(log_core_s, _RATE_SD), *((shape.mean, shape.sd) for shape in shapes)]).T
    return mean, sd


def _mean_noise_ratio(discrepancy: Discrepancy, evidence: Floats, weights: Floats) -> float:
    """Return the repeatability of one measurement: the root of its mean variance given the points.

    ``evidence``: by law and cell, (laws, cells); ``weights``: of the laws.
    """
    shares = np.exp(evidence - np.logaddexp.reduce(evidence, axis=1)[:, None])
    return math.sqrt(float(weights @ shares @ discrepancy.noise_ratio**2))


def _dealt_queues(measurements: Measurements, prior: Mapping[str, float], poll: Shape, scales: Scales) -> int | None:
    """Return the receive queues that are dealt to the cores, if the points show them."""
    conditions = Conditions.of_measured(measurements.points)
    heaviest = sorted(prior.items(), key=lambda entry: -entry[1])[:_LAWS_OF_QUEUES]

    def evidence(shifts: Floats) -> Floats:
        whitening = Discrepancy.of([measurements]).whitening[::_COARSE_STEP]
        scores = [
            log_evidence_of_shifts(
                functools.partial(log_throughput, LAWS[name], conditions=conditions),
                measurements.log_rates,
                whitening,
                *_prior(measurements, LAWS[name], poll),
                shifts,
                touched=conditions.touched(LAWS[name]),
            )
            + math.log(weight)
            for name, weight in heaviest
        ]
        by_law: Floats = np.logaddexp.reduce(scores, axis=0) + scales.log_weights()[::_COARSE_STEP, None]
        total: Floats = np.logaddexp.reduce(by_law, axis=0)
        return total

    return find_queues(measurements.points, evidence)


def _without_outliers(
    measurements: Measurements, prior: Mapping[str, float], poll: Shape, scales: Scales
) -> tuple[Measurements, tuple[Point, ...]]:
    """Return the measurements with large noise for outliers, which then have no weight, and the outliers.

    An outlier is a point that the others contradict; at most a quarter of the points are outliers. Each point has a
    prior probability of 1 % to be one (a contaminated normal: Box and Tiao 1968, Biometrika 55).
    """
    laws = [LAWS[law] for law in prior]
    log_prior = np.log(list(prior.values()))[:, None] + scales.log_weights()[::_COARSE_STEP]

    def evidence_and_residuals(candidates: Sequence[Measurements]) -> tuple[Floats, Floats]:
        """Evidence of each of m measurements, (m,), and the residuals of the most probable law and cell, (m, n)."""
        by_cell, residuals = _evidence(candidates, laws, poll, step=_COARSE_STEP)
        scores = (by_cell + log_prior).reshape(len(candidates), -1)
        best = residuals.reshape(*scores.shape, -1)[np.arange(len(candidates)), scores.argmax(axis=1)]
        return np.logaddexp.reduce(scores, axis=1), best

    outliers: list[Point] = []
    while len(measurements.points) >= _POINTS_PER_OUTLIER * (len(outliers) + 1):
        (before,), (residuals,) = evidence_and_residuals([measurements])
        without = {
            point: measurements.with_noise(point, _OUTLIER_SD)
            for point, residual in zip(measurements.points, residuals, strict=True)
            if point not in outliers and abs(residual) > _SUSPECT_SD
        }
        if not without:
            break
        gains = evidence_and_residuals(list(without.values()))[0] - before
        if gains.max() + math.log(_OUTLIER_PROBABILITY) < 0.0:
            break
        best = list(without)[int(gains.argmax())]
        outliers.append(best)
        measurements = without[best]
    return measurements, tuple(outliers)


def _check(points: Sequence[Point], series: str, noise_ratio: float | None) -> None:
    if not points:
        raise FitProblem(series, "no points to calibrate with: give at least one measured maximum throughput")
    if len({point.series for point in points}) > 1:
        raise FitProblem(series, "the points belong to several series: fit each series separately")
    wrong = [point.throughput_pps for point in points if not (0.0 < point.throughput_pps < math.inf)]
    if wrong:
        raise FitProblem(series, f"got a rate of {wrong[0]} frames/s: measured rates are finite and > 0")
    if noise_ratio is not None and not 0.0 < noise_ratio < 1.0:
        raise FitProblem(series, f"got noise_ratio = {noise_ratio}: allowed is more than 0 and less than 1")


def _laws_of_layout(points: Sequence[Point], priors: Priors) -> dict[str, float]:
    """Return the laws that the layout of queues allows: cores collapse only at a queue that they share."""
    shared = next((p.layout.shared_queue for p in points if p.layout.shared_queue is not None), None)
    return {name: weight for name, weight in priors.laws.items() if shared is None or LAWS[name].collapses is shared}


def _prior_weights(laws: Mapping[str, float] | Sequence[str], series: str, priors: Priors) -> dict[str, float]:
    prior = dict(laws) if isinstance(laws, Mapping) else {law: priors.laws.get(law, 1.0) for law in laws}
    unknown = [name for name in prior if name not in LAWS]
    if unknown:
        raise FitProblem(series, f"unknown law {unknown[0]!r}: known are {', '.join(LAWS)}")
    if any(not (0.0 < weight < math.inf) for weight in prior.values()):
        raise FitProblem(series, "prior weights of laws are finite and > 0: leave out a law to exclude it")
    return prior
