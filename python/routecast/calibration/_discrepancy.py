"""The discrepancy between a real machine and every law, as a part of the likelihood.

No law is exact: cores share queues unevenly, code falls into cache lines differently, a lock begins to hurt. The model
of a measured rate is (Kennedy and O'Hagan 2001, J. R. Stat. Soc. B 63)::

    ln rate = ln law(θ) + δ(k, S) + noise

where δ is normal with mean 0 and, between k cores at S bytes and k' at S', the covariance::

    s²·(e^{-|log2 k/k'|/2} + e^{-|log2 S/S'|/2}/16)  +  τ²·[k = k']  +  0.01²·[flows alike]

A smooth part of scale s strays over doublings of cores, a quarter as far over doublings of frame size. A rough part of
scale τ differs from one number of cores to the next (queues, rings, sockets, hyper-threads). Flows that are crafted for
the cores and random ones differ by about 1 %: lookup caches hold less, the hash spreads unevenly. Neither scale is
known before a machine is measured: both are averaged over a grid, weighed by the evidence of the points and by what
other machines taught (:mod:`routecast.calibration.priors`). A rate that a link or a card sets strays from it by noise
alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from routecast.evaluate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

REPEATABILITY_RATIO = 0.01
"""One standard deviation of repeated maximum throughputs: medians of published repetitions are 0.3-0.9 %, 90th
percentiles 5-14 %; searches that stop at steps are coarser."""

_PRIOR_DEGREES = 4.0
_ENOUGH_REPETITIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeated:
    """Points with their repetitions joined, and the precision of each.

    The repeatability of a measurement comes from repetitions, or else from published ones.

    The standard deviation of the logarithm of a repeated rate is pooled over all conditions that were repeated, with
    the published one as four further degrees of freedom (a conjugate prior: Gelman et al., Bayesian Data Analysis, sec.
    2.6)::

        σ² = (4·σ0² + Σ (ln x - mean)²) / (4 + repetitions - conditions)

    Repetitions of one condition count as one point, their mean, whose standard deviation is σ/√n. A further measurement
    is taken to stray normally, or, where forty repetitions and more tell it, as they do: a machine that is shared is
    often fast or slow and seldom between.

    ``points``: one for each condition, at the geometric mean of its repetitions; ``noise``: standard deviation of the
    logarithm of each; ``one_ratio``: the same of a single measurement; ``strays``: how repetitions strayed, in
    ascending order and in standard deviations; empty where they are too few to tell.
    """

    points: tuple[Point, ...]
    noise: Floats
    one_ratio: float
    strays: Floats

    @property
    def measured(self) -> Floats:
        """Natural logarithms of the rates, (n,)."""
        return np.log([point.throughput_pps for point in self.points])

    @classmethod
    def of(cls, points: Sequence[Point], noise_ratio: float | None) -> Self:
        """Join repetitions; their repeatability is estimated unless it is given."""
        logs: dict[tuple[object, ...], list[float]] = {}
        for point in points:
            logs.setdefault(point.conditions, []).append(math.log(point.throughput_pps))
        strays = np.sort([x - np.mean(each) for each in logs.values() for x in each if len(each) > 1])
        freedom = len(points) - len(logs)
        prior = _PRIOR_DEGREES * REPEATABILITY_RATIO**2
        estimate = math.sqrt((prior + float((strays**2).sum())) / (_PRIOR_DEGREES + freedom))
        one_ratio = estimate if noise_ratio is None else noise_ratio
        firsts = {point.conditions: point for point in reversed(points)}
        known = [math.exp(float(np.mean(each))) for each in logs.values()]
        stated = [firsts[conditions].standard_error_ratio for conditions in logs]
        return cls(
            points=tuple(
                replace(firsts[conditions], throughput_pps=rate) for conditions, rate in zip(logs, known, strict=True)
            ),
            noise=np.array(
                [
                    one_ratio / math.sqrt(len(each)) if error is None else error
                    for each, error in zip(logs.values(), stated, strict=True)
                ]
            ),
            one_ratio=one_ratio,
            strays=strays / strays.std() if freedom >= _ENOUGH_REPETITIONS and strays.std() else np.empty(0),
        )

    def doubted(self, point: Point, noise_ratio: float) -> Self:
        """Return the same with ``noise_ratio`` as the noise of one point."""
        noise = self.noise.copy()
        noise[self.points.index(point)] = noise_ratio
        return replace(self, noise=noise)


_SMOOTH_GRID = (0.005, 0.015, 0.04, 0.1, 0.25, 0.6)
_ROUGH_GRID = (0.002, 0.006, 0.015, 0.035, 0.08, 0.18)
_CORE_DOUBLINGS = _FRAME_DOUBLINGS = 2.0
_FRAME_SHARE = 0.25
_LOST_DOUBLINGS = 1.0
"""A link or a card that loses something at one point does so over so many doublings of cores or of frame size."""
_MORE_FLOWS = 0.01
_ON_A_CAP = 0.985
_LEAST_VARIANCE = 1e-12
_JITTER = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Prior of both scales: mean and standard deviation of their natural logarithms."""

    smooth_mean: float
    smooth_sd: float
    rough_mean: float
    rough_sd: float

    def log_weights(self) -> Floats:
        """Logarithm of the weight of each cell of the grid."""
        smooth = -0.5 * ((np.log(_SMOOTH_GRID) - self.smooth_mean) / self.smooth_sd) ** 2
        rough = -0.5 * ((np.log(_ROUGH_GRID) - self.rough_mean) / self.rough_sd) ** 2
        both = (smooth[:, None] + rough[None, :]).ravel()
        normalised: Floats = both - np.logaddexp.reduce(both)
        return normalised


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """Sites of discrepancies: busy cores, frame size and kind of flows of n conditions."""

    cores: Floats
    frame_bytes: Floats
    has_random_flows: Floats

    @classmethod
    def of(cls, points: Sequence[Point]) -> Self:
        """Collect the conditions of points."""
        return cls(
            cores=np.array([float(point.working_cores) for point in points]),
            frame_bytes=np.array([point.frame_bytes for point in points]),
            has_random_flows=np.array([float(p.flows is None or p.flows > p.cores) for p in points]),
        )

    def at_most(self, cores: float) -> Sites:
        """Return the same sites with at most ``cores`` cores."""
        return replace(self, cores=np.minimum(self.cores, cores))

    def everywhere(self, cores: Floats, frame_bytes: Floats) -> Sites:
        """Return n sites with the flows of the first of these."""
        return Sites(
            cores=cores, frame_bytes=frame_bytes, has_random_flows=np.full(len(cores), self.has_random_flows[0])
        )

    def nearness(self, others: Sites) -> Floats:
        """Share of the losses at a link or a card that other sites have too, (n, m)."""
        cores, frames = self._doublings(others)
        near: Floats = np.exp(-(cores + frames) / _LOST_DOUBLINGS)
        return near

    def _doublings(self, others: Sites) -> tuple[Floats, Floats]:
        """Doublings of cores and of frame size between these sites and others, (n, m) each."""
        cores, frames = (
            np.abs(np.log2(own)[:, None] - np.log2(other)[None, :])
            for own, other in ((self.cores, others.cores), (self.frame_bytes, others.frame_bytes))
        )
        return cores, frames

    def _parts(self, others: Sites) -> tuple[Floats, Floats, Floats]:
        """Covariance with other sites for scales of 1: the smooth, the rough and the flows' part, (n, m) each."""
        cores, frames = self._doublings(others)
        smooth = np.exp(-cores / _CORE_DOUBLINGS) + _FRAME_SHARE**2 * np.exp(-frames / _FRAME_DOUBLINGS)
        alike = self.has_random_flows[:, None] == others.has_random_flows[None, :]
        return smooth, (cores == 0.0).astype(float), _MORE_FLOWS**2 * alike


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Discrepancy:
    """The discrepancy at calibrated points, for each cell of the grid of scales.

    ``sites``: of the n calibrated points; ``strays``: 1 where cores limit, 0 where a link or a card limits; ``noise``:
    standard deviations of the logarithms of the rates; ``whitening``: inverse Cholesky factors of the covariance of
    discrepancy and noise; ``smooth`` and ``rough``: the scales of each cell.
    """

    sites: Sites
    strays: Floats
    noise: Floats
    whitening: Floats
    smooth: Floats
    rough: Floats

    @classmethod
    def of(cls, points: Sequence[Point], noise: Floats) -> Self:
        """Whiten the calibrated points, whose (n,) ``noise`` is in standard deviations of the logarithm of a rate."""
        pairs = np.array([(smooth, rough) for smooth in _SMOOTH_GRID for rough in _ROUGH_GRID])
        sites = Sites.of(points)
        strays = np.array([0.0 if is_capped(point) else 1.0 for point in points])
        smooth, rough, flows = sites._parts(sites)
        both = (pairs[:, :1, None] ** 2 * smooth + pairs[:, 1:, None] ** 2 * rough + flows) * np.outer(strays, strays)
        return cls(
            sites=sites,
            strays=strays,
            noise=noise,
            whitening=np.linalg.inv(np.linalg.cholesky(both + np.diag(noise**2))),
            smooth=pairs[:, 0],
            rough=pairs[:, 1],
        )

    def given(self, cells: NDArray[np.intp], residuals: Floats, at: Sites) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the discrepancy at m sites, given the residuals of J draws: (J, m) each.

        ``cells``: the cell of the grid that each draw is from; ``residuals``: logarithm of measured over law at the
        calibrated points.
        """
        smooth, rough, flows = at._parts(self.sites)
        own_smooth, _, own_flows = (np.diagonal(part) for part in at._parts(at))
        means, deviations = np.empty((len(cells), len(at.cores))), np.empty((len(cells), len(at.cores)))
        for cell in np.unique(cells):
            rows = cells == cell
            s2, t2 = self.smooth[cell] ** 2, self.rough[cell] ** 2
            whitened = ((s2 * smooth + t2 * rough + flows) * self.strays) @ self.whitening[cell].T
            means[rows] = residuals[rows] @ self.whitening[cell].T @ whitened.T
            left = s2 * own_smooth + t2 + own_flows - (whitened**2).sum(axis=1)
            deviations[rows] = np.sqrt(np.maximum(left, _LEAST_VARIANCE))
        return means, deviations

    def lost(self, cells: NDArray[np.intp], at_points: Sequence[Floats], at: Sites) -> list[Floats]:
        """Carry the losses at links and cards from the calibrated points to m sites: (J, n) each to (J, m).

        It forgets over one doubling of cores or of frame size; its scale is that of the discrepancy.
        """
        near, own = at.nearness(self.sites) * self.strays, self.sites.nearness(self.sites)
        own = own * np.outer(self.strays, self.strays)
        losses = [np.zeros((len(cells), len(at.cores))) for _ in at_points]
        for cell in np.unique(cells):
            rows = cells == cell
            variance = self.smooth[cell] ** 2 * (1.0 + _FRAME_SHARE**2) + self.rough[cell] ** 2 + _MORE_FLOWS**2
            weights = np.linalg.solve(variance * own + np.diag(self.noise**2), variance * near.T)
            for each, known in zip(losses, at_points, strict=True):
                each[rows] = known[rows] @ weights
        return losses

    def factors(self, cells: NDArray[np.intp], at: Sites) -> dict[int, Floats]:
        """Cholesky factor of the covariance of the discrepancies at m sites, (m, m), for each of the cells."""
        smooth, rough, flows = at._parts(self.sites)
        own_smooth, own_rough, own_flows = at._parts(at)
        cholesky = {}
        for cell in map(int, np.unique(cells)):
            s2, t2 = self.smooth[cell] ** 2, self.rough[cell] ** 2
            whitened = ((s2 * smooth + t2 * rough + flows) * self.strays) @ self.whitening[cell].T
            left = s2 * own_smooth + t2 * own_rough + own_flows - whitened @ whitened.T
            cholesky[cell] = np.linalg.cholesky(left + (s2 + t2) * _JITTER * np.eye(len(left)))
        return cholesky


def is_capped(point: Point) -> bool:
    """Whether links or cards limit a measured rate."""
    return point.throughput_pps >= _ON_A_CAP * min(point.line_rate_pps, point.nic_cap_pps or math.inf)
