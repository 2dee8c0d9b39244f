r"""A curve of the latency over the load from a few rows, with intervals.

.. code-block:: text

    T(r) = L0 · smooth_min(1 + g (1 - exp(-r / 0.3)) + b h(m r),  1 + k)        r = load / capacity
    h(x) = x / (1 - x) for x < 1, else infinite;    smooth_min(a, b) = (a^-4 + b^-4)^(-1/4)
    ln T measured = ln T(r) + δ(u(r)) + noise,  δ a Gaussian process with an exponential kernel

``g``, ``b`` and ``k`` are frames (gathered, in a burst, in a full ring) in units of L0: frames times the time that one
core takes for one of them, over the least latency that was measured. L0 itself is free and integrated in closed form.
Loads are shares of the capacity, and waiting counts in frames of **one core's own time**: a stated rate is often a
link's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from routecast.calibration.latency.prior import LatencyPrior
from routecast.errors import QuantityProblem

__all__ = ["Curve", "LatencyRow", "fit_curve", "mixture_quantiles", "shape"]

Floats = NDArray[np.float64]

_DRAWS: Final = 1024
_GATHERED_AT: Final = 0.3
_POWER: Final = 4.0
_NEAR_FULL: Final = 0.97
_BEYOND: Final = 0.5
_LENGTH: Final = 0.8
_SCALES: Final = np.array([-1.8, -0.9, 0.0, 0.9, 1.8])
"""Grid of the scale of the discrepancy, in standard deviations of its logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """A latency that was measured at a load: ``load_ratio`` is a share of the capacity, ``latency_s`` above 0.

    ``noise_ratio``: standard deviation of the logarithm, from repeats; None: that of the prior. ``knee``: mean and
    standard deviation of the logarithm of the knee, relative to the rate that the load is a share of; None: as for the
    capacity. A row's load may be a share of a rate without loss where the capacity is a rate in overload.
    """

    load_ratio: float
    latency_s: float
    noise_ratio: float | None = None
    knee: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """A fitted curve: draws of its parameters with weights, and what is needed to condition on the rows.

    ``parameters``: shape (draws, 4), g, b, m and k; ``weights``: shape (draws, scales), sum 1.
    """

    parameters: Floats
    weights: Floats
    scales: Floats
    rows_u: Floats
    residuals: Floats
    noise: Floats
    prior_noise: float

    def distribution(self, load_ratio: float) -> tuple[Floats, Floats, Floats]:
        """Return means, standard deviations and weights of the normal mixture of ln latency at a load, each flat.

        The latencies are those of a further measurement, its noise included.
        """
        means, deviations = [], []
        for scale in self.scales:
            mean, covariance = self._conditional(np.array([load_ratio]), scale)
            variance = float(covariance[0, 0]) + self.prior_noise**2
            means.append(mean[:, 0])
            deviations.append(np.full(len(mean), math.sqrt(max(variance, 1e-12))))
        return np.stack(means, 1).ravel(), np.stack(deviations, 1).ravel(), self.weights.ravel()

    def joint_draws(self, load_ratios: Floats, count: int, seed: int = 0) -> Floats:
        """Return equally likely draws of ln latency at several loads, shape (count, loads), without noise of rows."""
        random = np.random.default_rng(seed)
        positions = (np.arange(count) + random.random()) / count
        chosen = np.searchsorted(np.cumsum(self.weights.T.ravel()), positions).clip(0, self.weights.size - 1)
        of_scale, of_draw = np.divmod(chosen, len(self.parameters))
        drawn = np.empty((count, len(load_ratios)))
        for number, scale in enumerate(self.scales):
            here = of_scale == number
            mean, covariance = self._conditional(load_ratios, scale)
            root = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(load_ratios)))
            drawn[here] = mean[of_draw[here]] + random.standard_normal((int(here.sum()), len(load_ratios))) @ root.T
        return drawn

    def _conditional(self, load_ratios: Floats, scale: float) -> tuple[Floats, Floats]:
        """Return means (draws, n) and the covariance (n, n) of ln latency at n loads, given the rows."""
        at_u = _distance(load_ratios)
        covariance, ones = _covariance(self.rows_u, scale, self.noise)
        across = scale**2 * np.exp(-np.abs(self.rows_u[:, None] - at_u) / _LENGTH)
        between = scale**2 * np.exp(-np.abs(at_u[:, None] - at_u) / _LENGTH)
        solved_ones = np.linalg.solve(covariance, ones)
        solved_across = np.linalg.solve(covariance, across)
        precision = float(ones @ solved_ones)
        level = self.residuals @ solved_ones / precision
        heights = np.log(shape(load_ratios, self.parameters))
        means = heights + level[:, None] + (self.residuals - level[:, None]) @ solved_across
        unexplained = 1.0 - ones @ solved_across
        return means, between - across.T @ solved_across + np.outer(unexplained, unexplained) / precision

    def quantiles_s(self, load_ratio: float, probabilities: Sequence[float]) -> Floats:
        """Return quantiles of the latency at a load, s.

        Raises QuantityProblem: the load is not above 0.
        """
        if not load_ratio > 0.0:
            raise QuantityProblem(f"{load_ratio}", f"got a load of {load_ratio} of the capacity: give more than 0")
        return np.asarray(np.exp(mixture_quantiles(*self.distribution(load_ratio), np.asarray(probabilities))))

    def probability_below(self, load_ratio: float, latency_s: float) -> float:
        """Return the probability that a latency measured at a load is at most ``latency_s``."""
        return float(_mixture_cdf(*self.distribution(load_ratio), np.array([math.log(latency_s)]))[0])


def shape(load_ratios: Floats, parameters: Floats) -> Floats:
    """Return T(r) / L0 for loads, shape (n,), and parameters g, b, m, k, shape (draws, 4): an array (draws, n).

    Examples
    --------
    >>> float(shape(np.array([1e-9]), np.array([[2.0, 1.0, 0.9, 100.0]]))[0, 0].round(3))
    1.0
    """
    gather, burst, knee, ring = (parameters[:, [column]] for column in range(4))
    busy = np.minimum(knee * load_ratios, 1.0 - 1e-12)
    waiting = 1.0 + gather * -np.expm1(-load_ratios / _GATHERED_AT) + burst * busy / (1.0 - busy)
    return np.asarray((waiting**-_POWER + (1.0 + ring) ** -_POWER) ** (-1.0 / _POWER))


def fit_curve(
    rows: Sequence[LatencyRow], prior: LatencyPrior, *, frame_s: float, ring_frames: float | None = None
) -> Curve:
    """Fit the curve of one statistic of one router.

    Parameters
    ----------
    rows : sequence of LatencyRow
        One at least.
    prior : LatencyPrior
        Of the statistic.
    frame_s : float
        Time that one core takes for one frame.
    ring_frames : float or None
        Frames in front of one in overload, where the ring is known.

    Raises
    ------
    routecast.errors.QuantityProblem
        There is no row, or a row's load, latency or noise, or the time of a frame, is not above 0.
    """
    if not rows:
        raise QuantityProblem("", "a latency curve needs a row at least: measure one at 10 % of the capacity")
    for number, row in enumerate(rows, start=1):
        for name, amount in (("load", row.load_ratio), ("latency", row.latency_s), ("noise", row.noise_ratio)):
            if amount is not None and not (math.isfinite(amount) and amount > 0.0):
                raise QuantityProblem(f"{amount}", f"row {number}: got a {name} of {amount}: give more than 0")
    if not (math.isfinite(frame_s) and frame_s > 0.0):
        raise QuantityProblem(f"{frame_s}", f"got {frame_s} s for a frame: give more than 0")
    loads = np.array([row.load_ratio for row in rows])
    logs = np.log([row.latency_s for row in rows])
    noise = np.array([row.noise_ratio or prior.noise for row in rows])
    noise = np.maximum(noise, 0.5 * prior.noise)
    unit = frame_s / math.exp(float(logs.min()))
    frames = np.exp(np.asarray(prior.means) + _normals() * np.asarray(prior.spreads))
    if ring_frames is not None:
        frames[:, 3] = ring_frames
    parameters = frames * np.array([unit, unit, 1.0, unit])
    residuals = logs - np.log(
        np.concatenate([shape(loads[[n]], _with_knee(parameters, row)) for n, row in enumerate(rows)], 1)
    )
    scale_mean, scale_spread = prior.scale
    scales = np.exp(scale_mean + scale_spread * _SCALES)
    rows_u = _distance(loads)
    likelihoods = [_log_likelihood(residuals, *_covariance(rows_u, scale, noise)) for scale in scales]
    logs_of_weights = np.stack(likelihoods, 1) - 0.5 * _SCALES**2
    weights = np.exp(logs_of_weights - logs_of_weights.max())
    return Curve(
        parameters=parameters,
        weights=weights / weights.sum(),
        scales=scales,
        rows_u=rows_u,
        residuals=residuals,
        noise=noise,
        prior_noise=prior.noise,
    )


@lru_cache
def _normals() -> Floats:
    """Return standard normal draws, shape (draws, 4), that fill the space evenly and never change.

    They are multiples of the powers of the root of x^5 = x + 1, modulo 1 (the golden ratio in four dimensions).
    """
    from scipy.special import ndtri

    root = 1.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / 5.0)
    steps = np.arange(1, _DRAWS + 1)[:, None] * root ** -np.arange(1.0, 5.0)
    return np.asarray(ndtri((0.5 + steps) % 1.0))


def _with_knee(parameters: Floats, row: LatencyRow) -> Floats:
    """Return the parameters with the knee of a row's own rate: the same quantile in each draw, as it is one router."""
    if row.knee is None:
        return parameters
    knees = np.exp(row.knee[0] + row.knee[1] * _normals()[:, 2])
    return np.column_stack((parameters[:, :2], knees, parameters[:, 3]))


def _distance(load_ratios: Floats) -> Floats:
    """Return loads on a scale on which a step from 10 to 50 % is short and one from 50 to 100 % long."""
    below = -np.log1p(-_NEAR_FULL * np.minimum(load_ratios, 1.0))
    return np.asarray(below + _BEYOND * np.maximum(load_ratios - 1.0, 0.0))


def _covariance(rows_u: Floats, scale: float, noise: Floats) -> tuple[Floats, Floats]:
    covariance = scale**2 * np.exp(-np.abs(rows_u[:, None] - rows_u) / _LENGTH) + np.diag(noise**2)
    return covariance, np.ones(len(rows_u))


def _log_likelihood(residuals: Floats, covariance: Floats, ones: Floats) -> Floats:
    """Return the logarithm of the marginal likelihood of each draw, ln L0 integrated over the whole line."""
    solved_ones = np.linalg.solve(covariance, ones)
    solved = np.linalg.solve(covariance, residuals.T).T
    precision = float(ones @ solved_ones)
    square = np.einsum("ij,ij->i", residuals, solved) - (residuals @ solved_ones) ** 2 / precision
    return np.asarray(-0.5 * (np.linalg.slogdet(covariance)[1] + math.log(precision) + square))


def _mixture_cdf(means: Floats, deviations: Floats, weights: Floats, at: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr((at[:, None] - means) / deviations) @ weights)


def mixture_quantiles(means: Floats, deviations: Floats, weights: Floats, probabilities: Floats) -> Floats:
    """Return quantiles of a mixture of normals by bisection, to a millionth of the logarithm."""
    low = np.full(len(probabilities), float((means - 9.0 * deviations).min()))
    high = np.full(len(probabilities), float((means + 9.0 * deviations).max()))
    while (high - low).max() > 1e-6:
        middle = 0.5 * (low + high)
        is_below = _mixture_cdf(means, deviations, weights, middle) < probabilities
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray(0.5 * (low + high))
