"""The discrepancy between a real machine and every law, as a part of the likelihood.

No law is exact: cores share queues unevenly, code falls into cache lines differently, a lock begins to hurt. The model
of a measured rate is (Kennedy and O'Hagan 2001, J. R. Stat. Soc. B 63)::

    ln rate = ln law(θ) + δ(k, S) + noise

where δ is normal with mean 0 and, between k cores at S bytes and k' at S', the covariance::

    s²·(e^{-|log2 k/k'|/2} + e^{-|log2 S/S'|/2}/16)  +  τ²·[k = k']  +  0.01²·[flows alike]

A smooth part of scale s varies over doublings of cores, and a quarter as much over doublings of frame size. A rough
part of scale τ differs from one number of cores to the next (queues, rings, sockets, hyper-threads). Crafted and random
flows differ by about 1 %, because lookup caches hold fewer random flows and the hash spreads them unevenly. Neither
scale is known before a machine is measured, nor is the noise where nothing was repeated. The three are averaged over
one grid, because a rough machine and a noisy measurement look alike: where one is large, the other is small. They are
weighted by the evidence of the points and by the priors from other machines (:mod:`routecast.calibration.priors`). A
rate that a link or a card limits differs from the limit by noise alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from routecast.calibration.forward import cap_pps
from routecast.evaluate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

REPEATABILITY_RATIO = 0.01
"""Standard deviation of repeated maximum throughputs over their mean. Published repetitions have medians of 0.3-0.9 %
and 90th percentiles of 5-14 %; searches in steps are coarser."""

_PRIOR_DEGREES = 4.0
_ENOUGH_REPETITIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurements:
    """Measured points with their repetitions joined, and the precision of each.

    The standard deviation of the logarithm of a repeated rate is pooled over all repeated conditions. The published
    value counts as four further degrees of freedom (a conjugate prior: Gelman et al., Bayesian Data Analysis, sec.
    2.6)::

        σ² = (4·σ0² + Σ (ln x - mean)²) / (4 + repetitions - conditions)

    Repetitions of a condition count as one point, their mean, whose standard deviation is σ/√n. The residual of a
    further measurement is normal. With forty or more repetitions it has the distribution of their residuals instead,
    because a shared machine is often fast or slow and seldom in between.

    ``points``: one for each condition, at the geometric mean of its repetitions; ``noise``: standard deviation of the
    logarithm of each; ``noise_ratio``: that of a single measurement; ``residuals``: residuals of the repetitions in
    standard deviations, ascending; empty with fewer than forty; ``freedom``: repetitions less conditions;
    ``squared_residuals``: sum over the repetitions.
    """

    points: tuple[Point, ...]
    noise: Floats
    noise_ratio: float
    residuals: Floats
    freedom: int = 0
    squared_residuals: float = 0.0

    @property
    def is_repeated(self) -> bool:
        """Whether a condition was repeated."""
        return self.freedom > 0

    @property
    def log_rates(self) -> Floats:
        """Natural logarithms of the rates, (n,)."""
        return np.log([point.throughput_pps for point in self.points])

    @classmethod
    def of(cls, points: Sequence[Point], noise_ratio: float | None) -> Self:
        """Join repetitions, and estimate their repeatability if ``noise_ratio`` is None."""
        repetitions: dict[tuple[object, ...], list[float]] = {}
        for point in points:
            repetitions.setdefault(point.conditions, []).append(math.log(point.throughput_pps))
        residuals = np.sort([x - np.mean(logs) for logs in repetitions.values() for x in logs if len(logs) > 1])
        freedom = len(points) - len(repetitions)
        if noise_ratio is None:
            prior = _PRIOR_DEGREES * REPEATABILITY_RATIO**2
            noise_ratio = math.sqrt((prior + float((residuals**2).sum())) / (_PRIOR_DEGREES + freedom))
        joined, noise = [], []
        firsts = {point.conditions: point for point in reversed(points)}
        for conditions, logs in repetitions.items():
            first = firsts[conditions]
            joined.append(replace(first, throughput_pps=math.exp(float(np.mean(logs)))))
            stated = first.standard_error_ratio
            noise.append(noise_ratio / math.sqrt(len(logs)) if stated is None else stated)
        has_distribution = freedom >= _ENOUGH_REPETITIONS and residuals.std()
        return cls(
            points=tuple(joined),
            noise=np.array(noise),
            noise_ratio=noise_ratio,
            residuals=residuals / residuals.std() if has_distribution else np.empty(0),
            freedom=freedom,
            squared_residuals=float((residuals**2).sum()),
        )

    def with_noise_ratio(self, noise_ratio: float, without: Sequence[Point] = ()) -> Self:
        """Return the measurements with another repeatability of those whose error is not stated."""
        is_own = np.array([p.standard_error_ratio is None and p not in without for p in self.points])
        noise = np.where(is_own, self.noise * noise_ratio / self.noise_ratio, self.noise)
        return replace(self, noise=noise, noise_ratio=noise_ratio)

    def with_grid_of_noise(self, without: Sequence[Point] = ()) -> tuple[Self, ...]:
        """Return the measurements with each noise of the grid (:meth:`with_noise_ratio`)."""
        return tuple(self.with_noise_ratio(ratio, without) for ratio in _NOISE_GRID)

    def noise_log_likelihoods(self) -> Floats:
        """Return the logarithm of the likelihood of the repetitions with each noise of the grid, up to a constant."""
        ratios = np.array(_NOISE_GRID)
        likelihoods: Floats = -self.freedom * np.log(ratios) - 0.5 * self.squared_residuals / ratios**2
        return likelihoods

    def with_noise(self, point: Point, sd: float) -> Self:
        """Return the measurements with the standard deviation ``sd`` for one point."""
        noise = self.noise.copy()
        noise[self.points.index(point)] = sd
        return replace(self, noise=noise)


_SMOOTH_GRID = (0.0015, 0.005, 0.015, 0.04, 0.1, 0.25, 0.6)
_ROUGH_GRID = (0.002, 0.006, 0.015, 0.035, 0.08, 0.18)
_NOISE_GRID = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)
NOISES = len(_NOISE_GRID)
"""Number of noises of the grid."""
_CORE_DOUBLINGS = _FRAME_DOUBLINGS = 2.0
_FRAME_SHARE = 0.25
_LOSS_DOUBLINGS = 1.0
"""Doublings of cores or of frame size over which the losses at a link or a card decay by a factor of e."""
_FLOWS_SD = 0.01
_CAPPED_RATIO = 0.985
_MIN_VARIANCE = 1e-12
_JITTER = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Prior of both scales and of the noise: mean and standard deviation of their natural logarithms."""

    smooth_mean: float
    smooth_sd: float
    rough_mean: float
    rough_sd: float
    noise_mean: float
    noise_sd: float

    def noise_log_weights(self) -> Floats:
        """Logarithm of the weight of each noise of the grid."""
        weights = -0.5 * ((np.log(_NOISE_GRID) - self.noise_mean) / self.noise_sd) ** 2
        normalised: Floats = weights - np.logaddexp.reduce(weights)
        return normalised

    def log_weights(self) -> Floats:
        """Logarithm of the weight of each cell of the grid, for one noise."""
        smooth = -0.5 * ((np.log(_SMOOTH_GRID) - self.smooth_mean) / self.smooth_sd) ** 2
        rough = -0.5 * ((np.log(_ROUGH_GRID) - self.rough_mean) / self.rough_sd) ** 2
        both = (smooth[:, None] + rough[None, :]).ravel()
        normalised: Floats = both - np.logaddexp.reduce(both)
        return normalised


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Inputs of the discrepancy as a Gaussian process: busy cores, frame size and kind of flows of n conditions."""

    cores: Floats
    frame_bytes: Floats
    has_random_flows: Floats

    @classmethod
    def of(cls, points: Sequence[Point]) -> Self:
        """Collect the inputs of points."""
        return cls(
            cores=np.array([float(point.working_cores) for point in points]),
            frame_bytes=np.array([point.frame_bytes for point in points]),
            has_random_flows=np.array([float(p.flows is None or p.flows > p.cores) for p in points]),
        )

    def doublings(self, others: Inputs) -> tuple[Floats, Floats]:
        """Return the doublings of cores and of frame size between these inputs and others, (n, m) each."""
        cores, frames = (
            np.abs(np.log2(these)[:, None] - np.log2(those)[None, :])
            for these, those in ((self.cores, others.cores), (self.frame_bytes, others.frame_bytes))
        )
        return cores, frames

    def loss_correlation(self, others: Inputs) -> Floats:
        """Return the correlation of losses at a link or a card with those at other inputs, (n, m)."""
        cores, frames = self.doublings(others)
        correlation: Floats = np.exp(-(cores + frames) / _LOSS_DOUBLINGS)
        return correlation

    def covariances(self, others: Inputs) -> tuple[Floats, Floats, Floats]:
        """Return the smooth, the rough and the flows' part of the covariance for scales of 1, (n, m) each."""
        cores, frames = self.doublings(others)
        smooth = np.exp(-cores / _CORE_DOUBLINGS) + _FRAME_SHARE**2 * np.exp(-frames / _FRAME_DOUBLINGS)
        is_same_kind = self.has_random_flows[:, None] == others.has_random_flows[None, :]
        return smooth, (cores == 0.0).astype(float), _FLOWS_SD**2 * is_same_kind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Discrepancy:
    """The discrepancy at calibrated points, for each of the C cells of the grid of noises and scales.

    ``inputs``: of the n calibrated points; ``core_limited``: 1 where cores limit, 0 where a link or a card limits;
    ``noise``: standard deviations of the logarithms of the rates, (C, n); ``noise_ratio``: that of a single
    measurement, (C,); ``whitening``: inverse Cholesky factors of the covariance of discrepancy and noise, (C, n, n);
    ``smooth`` and ``rough``: the scales of each cell.
    """

    inputs: Inputs
    core_limited: Floats
    noise: Floats
    noise_ratio: Floats
    whitening: Floats
    smooth: Floats
    rough: Floats

    @classmethod
    def of(cls, candidates: Sequence[Measurements]) -> Self:
        """Whiten the calibrated points; ``candidates`` are measurements of the same points with other noises."""
        points = candidates[0].points
        grid = list(product(_SMOOTH_GRID, _ROUGH_GRID))
        scales = np.array(grid * len(candidates))
        noise = np.repeat([each.noise for each in candidates], len(grid), axis=0)
        inputs = Inputs.of(points)
        core_limited = np.array([0.0 if is_capped(point) else 1.0 for point in points])
        smooth, rough, flows = inputs.covariances(inputs)
        covariance = scales[:, :1, None] ** 2 * smooth + scales[:, 1:, None] ** 2 * rough + flows
        covariance = covariance * np.outer(core_limited, core_limited) + noise[:, :, None] ** 2 * np.eye(len(points))
        return cls(
            inputs=inputs,
            core_limited=core_limited,
            noise=noise,
            noise_ratio=np.repeat([each.noise_ratio for each in candidates], len(grid)),
            whitening=np.linalg.inv(np.linalg.cholesky(covariance)),
            smooth=scales[:, 0],
            rough=scales[:, 1],
        )

    def conditional(self, cells: NDArray[np.intp], residuals: Floats, at: Inputs) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the discrepancy at m inputs, given the residuals of J draws: (J, m) each.

        ``cells``: the cell of the grid that each draw is from; ``residuals``: logarithm of measured over law at the
        calibrated points.
        """
        covariances = at.covariances(self.inputs)
        means, deviations = np.empty((len(cells), len(at.cores))), np.empty((len(cells), len(at.cores)))
        for cell in np.unique(cells):
            rows = cells == cell
            whitened = self._whitened(cell, covariances)
            means[rows] = residuals[rows] @ self.whitening[cell].T @ whitened.T
            variance = self._variance(cell) - (whitened**2).sum(axis=1)
            deviations[rows] = np.sqrt(np.maximum(variance, _MIN_VARIANCE))
        return means, deviations

    def losses(self, cells: NDArray[np.intp], at_points: Sequence[Floats], at: Inputs) -> list[Floats]:
        """Carry the losses at links and cards from the calibrated points to m inputs: (J, n) each to (J, m).

        The losses decay over a doubling of cores or of frame size; their scale is that of the discrepancy.
        """
        correlation = at.loss_correlation(self.inputs) * self.core_limited
        own_correlation = self.inputs.loss_correlation(self.inputs) * np.outer(self.core_limited, self.core_limited)
        losses = [np.zeros((len(cells), len(at.cores))) for _ in at_points]
        for cell in np.unique(cells):
            rows, variance = cells == cell, self._variance(cell)
            weights = np.linalg.solve(
                variance * own_correlation + np.diag(self.noise[cell] ** 2), variance * correlation.T
            )
            for carried, calibrated in zip(losses, at_points, strict=True):
                carried[rows] = calibrated[rows] @ weights
        return losses

    def cholesky_factors(self, cells: NDArray[np.intp], at: Inputs) -> dict[int, Floats]:
        """Cholesky factor of the covariance of the discrepancies at m inputs, (m, m), for each of the cells."""
        covariances, (smooth, rough, flows) = at.covariances(self.inputs), at.covariances(at)
        factors = {}
        for cell in map(int, np.unique(cells)):
            s2, t2 = self.smooth[cell] ** 2, self.rough[cell] ** 2
            whitened = self._whitened(cell, covariances)
            covariance = s2 * smooth + t2 * rough + flows - whitened @ whitened.T
            factors[cell] = np.linalg.cholesky(covariance + (s2 + t2) * _JITTER * np.eye(len(covariance)))
        return factors

    def _whitened(self, cell: int, covariances: tuple[Floats, Floats, Floats]) -> Floats:
        """Return the whitened covariance of m inputs with the calibrated points, (m, n)."""
        smooth, rough, flows = covariances
        covariance = self.smooth[cell] ** 2 * smooth + self.rough[cell] ** 2 * rough + flows
        whitened: Floats = (covariance * self.core_limited) @ self.whitening[cell].T
        return whitened

    def _variance(self, cell: int) -> float:
        return float(self.smooth[cell] ** 2 * (1.0 + _FRAME_SHARE**2) + self.rough[cell] ** 2 + _FLOWS_SD**2)


def is_capped(point: Point) -> bool:
    """Whether links or cards limit a measured rate."""
    return point.throughput_pps >= _CAPPED_RATIO * cap_pps(point)
