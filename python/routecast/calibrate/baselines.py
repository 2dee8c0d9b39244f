"""What one would predict without routecast, from the same calibration points and with the same known caps.

* ``linear``: the rate per core of the nearest calibrated number of cores.
* ``amdahl``: ``k/X(k) = A + B(k-1)``, fitted with A, B >= 0 (Amdahl 1967).
* ``usl``: ``k/X(k) = A + B(k-1) + C·k(k-1)``, fitted with A, B, C >= 0 (Gunther 1993).
* ``eq5``: eqs. 5-7 of paper 000, where the points carry its four parameters.

The first three hold packets per second to be the same for every frame size and use the calibration points of the
smallest frames. Links and NIC packet rates limit every one of them; calibration points that sit on such a limit say
nothing about the cores and are left out where others remain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from routecast.calibrate.eq5 import fit_eq5
from routecast.calibrate.points import Point
from routecast.calibrate.saturation import saturate
from routecast.errors import FitProblem

__all__ = ["BASELINES", "predict_baselines"]

BASELINES = ("linear", "amdahl", "usl", "eq5")

_ON_A_CAP = 0.97


def predict_baselines(calibrating: Sequence[Point], points: Sequence[Point]) -> dict[str, list[float]]:
    """Predict frames per second at ``points`` by every baseline that the calibration points carry."""
    free = [point for point in calibrating if point.throughput_pps < _ON_A_CAP * _cap_pps(point)] or list(
        calibrating
    )
    smallest = min(point.frame_bytes for point in free)
    small = [point for point in free if point.frame_bytes == smallest]
    found = {"linear": [_limited(point, _nearest_core_pps(small, point.working_cores)) for point in points]}
    for name, degree in (("amdahl", 2), ("usl", 3)):
        coefficients = _core_seconds(small, degree)
        found[name] = [
            _limited(point, 1.0 / float(_terms(point.working_cores)[:degree] @ coefficients))
            for point in points
        ]
    try:
        eq5 = fit_eq5(free)
        found["eq5"] = [prediction.throughput_pps for prediction in eq5.predict(points)]
    except FitProblem:
        pass
    return found


def _cap_pps(point: Point) -> float:
    return min(point.line_rate_pps, point.nic_cap_pps or math.inf)


def _limited(point: Point, core_pps: float) -> float:
    return saturate(point, core_pps=lambda busy: core_pps).throughput_pps


def _nearest_core_pps(points: Sequence[Point], cores: int) -> float:
    nearest = min(points, key=lambda point: (abs(math.log(point.working_cores / cores)), point.working_cores))
    return nearest.throughput_pps / nearest.working_cores


def _terms(cores: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([1.0, cores - 1.0, cores * (cores - 1.0)])


def _core_seconds(points: Sequence[Point], degree: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    from scipy.optimize import nnls  # heavy

    seconds = np.array([point.working_cores / point.throughput_pps for point in points])
    design = np.stack([_terms(point.working_cores)[:degree] for point in points]) / seconds[:, None]
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0.0] = 1.0
    solution, _ = nnls(design / scale, np.ones(len(points)))
    coefficients: np.ndarray[tuple[int], np.dtype[np.float64]] = solution / scale
    return coefficients
