"""Which measurement to make next: the one that narrows the predictions most.

The samples of the posterior give the covariance C of what would be measured at candidates c and predicted at targets t.
Measuring c with noise τ removes ``C_tc²/(C_cc + τ²)`` of the variance at t (the Kalman update of an ensemble, Evensen
1994); the best c removes most over all targets, and the next one is chosen after the update.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibrate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["NextPoint", "rank_next_points"]

_FRAMES = (64.0, 256.0, 512.0, 1024.0, 1518.0)
_DENSE_CORES = 16
_ROBUST_QUANTILES = (0.02, 0.98)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPoint:
    """Conditions to measure, and by which share that would reduce the variance of the predictions."""

    point: Point
    variance_reduction_ratio: float

    def __str__(self) -> str:
        cores = f"{self.point.cores} core{'s' if self.point.cores > 1 else ''}"
        share = f"{self.variance_reduction_ratio:.0%}"
        return f"{cores}, {self.point.frame_bytes:g} B: takes {share} of the variance of the predictions"


def rank_next_points(
    calibrated: Sequence[Point],
    log_rates: Callable[[Sequence[Point]], tuple[Floats, Floats]],
    n: int,
    *,
    noise_ratio: float,
    targets: Sequence[Point] = (),
) -> tuple[NextPoint, ...]:
    """Return the best ``n`` candidates, best first.

    Parameters
    ----------
    calibrated : sequence of Point
        Already measured; their links and caps hold for the candidates.
    log_rates : callable
        Points to (samples (J, n), weights (J,)) of the logarithm of the rate.
    n : int
    noise_ratio : float
    targets : sequence of Point
        What is to be predicted. Empty: a grid of frame sizes up to twice the calibrated number of cores. Candidates
        use no more cores than the calibrated points, since these are there to be measured on.
    """
    most = max(point.cores for point in calibrated)
    candidates = _grid(calibrated, most)
    wanted = list(targets) or _grid(calibrated, 2 * most)
    both, weights = log_rates([*candidates, *wanted])
    both = np.clip(both, *np.quantile(both, _ROBUST_QUANTILES, axis=0))
    share = weights / weights.sum()
    centred = both - (share[:, None] * both).sum(axis=0)
    covariance = (share[:, None] * centred).T @ centred
    split = len(candidates)
    before = float(np.trace(covariance[split:, split:]))
    if before <= 0.0:
        return ()
    chosen: list[NextPoint] = []
    left = set(range(split))
    for _ in range(min(n, split)):
        gain = {c: _gain(covariance, c, split, noise_ratio) for c in left}
        best = max(sorted(gain), key=lambda c: gain[c])
        left.discard(best)
        chosen.append(NextPoint(point=candidates[best], variance_reduction_ratio=gain[best] / before))
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / (covariance[best, best] + noise_ratio**2)
    return tuple(chosen)


def _gain(covariance: Floats, candidate: int, split: int, noise_ratio: float) -> float:
    column = covariance[split:, candidate]
    return float((column**2).sum() / (covariance[candidate, candidate] + noise_ratio**2))


def _grid(calibrated: Sequence[Point], most: int) -> list[Point]:
    cores = (
        range(1, most + 1) if most <= _DENSE_CORES else (most * step // _DENSE_CORES for step in range(1, 17))
    )
    model = max(calibrated, key=lambda point: point.cores)
    known = {(point.working_cores, point.frame_bytes) for point in calibrated}
    crafted = any(point.flows is not None for point in calibrated)
    grid = []
    for count in sorted({count for count in cores if count >= 1}):
        for frame_bytes in _FRAMES:
            if (count, frame_bytes) not in known:
                flows = count if crafted else None
                grid.append(
                    replace(
                        model,
                        cores=count,
                        flows=flows,
                        frame_bytes=frame_bytes,
                        frame_mix=None,
                        throughput_pps=float("nan"),
                        calibrate=False,
                    )
                )
    return grid
