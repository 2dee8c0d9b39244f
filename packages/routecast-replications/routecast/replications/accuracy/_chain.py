"""Calibrated chains of network functions under CPU quotas.

::

    in ─► function 1 ─► function 2 ─► … ─► out        each may use the share q_i of a core

A function with quota q runs for the share q of every period and loses the share q0 to stops and starts (caches are
refilled, batches cut short). It therefore forwards ``r·(q - q0)`` bytes a second; q0 is the same for all functions of
a machine. The slowest function limits the chain, and the random order of stops costs a little more if several
functions are about as slow: ``X = (Σ x_i^-p + C^-p)^(-1/p)``, where C is the rate of the source of the chain.

The posterior is sampled as for a router (:func:`routecast.calibration.sample_posterior`). Priors: each r is free; q0
is about 2 % of a core (a stop of 1-4 ms in a period of 100 ms, the default of Linux's CFS bandwidth control) within a
factor of 2; C is about three times the rate of one core, within a factor of 3; p is about 12.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration import Posterior, sample_posterior
from routecast.calibration.score import intervals
from routecast.errors import FitProblem
from routecast.quantity.comparison import ComparedRow, Intervals
from routecast.replications.accuracy._baselines import bootstrap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_DRAWS = 1000
_NOISE_COPIES = 8
_MIN_SHARE = 1e-3
_RATE_SD = 3.0
_LOSS, _LOSS_SD = math.log(0.02), 0.7
_CEILING_FACTOR, _CEILING_SD = math.log(3.0), 1.1
_SHARPNESS, _SHARPNESS_SD = 2.5, 0.5
_NOISE_RATIO = 0.02
_MIN_NOISE_RATIO = 0.01
_STRUCTURE_SD = 0.01
"""Standard deviation of the discrepancy between a chain and the law at an unmeasured point, as for cores
(:mod:`routecast.calibration._discrepancy`). Chosen in sight of the shipped chains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPoint:
    """Measured throughput of a chain, and the share of a core that each function may use.

    ``standard_error_ratio`` is the relative standard error of a repeated measurement; 0: unknown.
    """

    series: str
    quotas: tuple[float, ...]
    throughput_byte_per_s: float
    standard_error_ratio: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedChain:
    """A calibrated chain: the posterior of ``ln r_1 … ln r_n, ln q0, ln C, ln p``."""

    functions: int
    posterior: Posterior
    noise_ratio: float
    seed: int

    def predict(self, points: Sequence[ChainPoint]) -> tuple[ComparedRow[ChainPoint], ...]:
        """Predict one measurement of the throughput at each point's quotas, with the point's repeatability."""
        samples = _log_throughput(self.posterior.samples[1:], np.array([point.quotas for point in points]))
        medians = np.exp(np.median(samples, axis=0))
        noisy = np.repeat(samples, _NOISE_COPIES, axis=0)
        noise_ratios = np.array([point.standard_error_ratio or self.noise_ratio for point in points])
        random = np.random.default_rng(self.seed + 1)
        noisy = noisy + np.hypot(noise_ratios, _STRUCTURE_SD) * random.standard_normal(noisy.shape)
        return tuple(
            ComparedRow(
                conditions=point, measured=point.throughput_byte_per_s, predicted=float(median), intervals=interval
            )
            for point, median, interval in zip(points, medians, intervals(noisy, np.ones(len(noisy))), strict=True)
        )


def fit_chain(points: Sequence[ChainPoint], *, noise_ratio: float | None = None, seed: int = 0) -> FittedChain:
    """Fit a chain to a few measured points.

    Raises FitProblem: no points, or points of chains of different lengths.
    """
    if not points or len({len(point.quotas) for point in points}) != 1:
        raise FitProblem(points[0].series if points else "", "give points of one chain, at least one")
    noise_ratio = _NOISE_RATIO if noise_ratio is None else noise_ratio
    noise = [max(p.standard_error_ratio, _MIN_NOISE_RATIO) if p.standard_error_ratio else noise_ratio for p in points]
    quotas = np.array([point.quotas for point in points])
    measured = np.log([point.throughput_byte_per_s for point in points])
    n = quotas.shape[1]
    rate = float(np.max(measured - np.log(quotas.min(axis=1))))
    return FittedChain(
        functions=n,
        posterior=sample_posterior(
            lambda theta: _log_throughput(theta, quotas),
            measured,
            np.array(noise),
            np.array([*[rate] * n, _LOSS, rate + _CEILING_FACTOR, _SHARPNESS]),
            np.array([*[_RATE_SD] * n, _LOSS_SD, _CEILING_SD, _SHARPNESS_SD]),
            draws=_DRAWS,
            seed=seed,
        ),
        noise_ratio=noise_ratio,
        seed=seed,
    )


def linear_chain(calibrating: Sequence[ChainPoint], points: Sequence[ChainPoint]) -> list[tuple[float, Intervals]]:
    """Return the baseline: each function's rate is proportional to its quota, and the slowest limits the chain.

    The rate per quota of a function is the largest of the calibration points.
    """

    def predict(rates: Floats, predicted: Sequence[ChainPoint]) -> Floats:
        quotas, predicted_quotas = (np.array([point.quotas for point in series]) for series in (calibrating, predicted))
        per_quota = (rates[:, :, None] / quotas).max(axis=1)
        slowest: Floats = (per_quota[:, None] * predicted_quotas).min(axis=2)
        return slowest

    measured = [point.throughput_byte_per_s for point in calibrating]
    return bootstrap(predict, measured, calibrating, points, parameters=len(calibrating[0].quotas))


def read_chain_points(path: Path) -> tuple[ChainPoint, ...]:
    """Read a shipped table of chains: columns ``series``, ``quota1`` …, ``throughput_byte_per_s``."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return tuple(
        ChainPoint(
            series=row["series"],
            quotas=tuple(float(value) for name, value in row.items() if name.startswith("quota")),
            throughput_byte_per_s=float(row["throughput_byte_per_s"]),
            standard_error_ratio=float(row.get("standard_error_ratio") or 0.0),
        )
        for row in csv.DictReader(lines)
    )


def _log_throughput(theta: Floats, quotas: Floats) -> Floats:
    """Return the natural logarithm of the throughput, (J, n + 3) parameters and (m, n) quotas to (J, m)."""
    n = quotas.shape[1]
    rate, lost = theta[:, None, :n], np.exp(theta[:, n])[:, None, None]
    ceiling, sharpness = theta[:, None, n + 1 : n + 2], np.exp(theta[:, n + 2])[:, None]
    share = np.maximum(quotas[None] - lost, _MIN_SHARE)
    parts = np.concatenate([rate + np.log(share), np.broadcast_to(ceiling, (len(theta), len(quotas), 1))], axis=2)
    slowest = parts.min(axis=2)
    excess = np.exp(-sharpness[:, :, None] * (parts - slowest[:, :, None])).sum(axis=2)
    total: Floats = slowest - np.log(excess) / sharpness
    return total
