"""Baselines: predictions without routecast, from the same calibration points and with the same known caps.

* ``linear``: the rate per core of the nearest calibrated number of cores.
* ``amdahl``: ``k/X(k) = A + B(k-1)``, fitted with A, B >= 0 (Amdahl 1967).
* ``usl``: ``k/X(k) = A + B(k-1) + C·k(k-1)``, fitted with A, B, C >= 0 (Gunther 1993).
* ``power``: ``X(k) = A·k^b``, by least squares of logarithms.
* ``spline``: a monotone cubic through the points, logarithm of the rate over that of the cores (Fritsch and Carlson
  1980); ``linear`` beyond them.
* ``eq5``: eqs. 5-7 of Meyer et al. 2014, where the points carry its four parameters.

All but ``eq5`` predict the same packets per second for every frame size and use the calibration points of the smallest
frames. Links and NIC packet rates limit all predictions. A calibration point at such a limit has no information on the
cores and is left out unless all points are at a limit.

The intervals are those of a parametric bootstrap (Efron and Tibshirani 1993, sec. 6.5). The fit is repeated on rates
with random errors, whose variance is that of the residuals of the first fit, with its degrees of freedom, plus that of
repeated measurements. Each predicted rate gets such an error too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from routecast.calibration import REPEATABILITY_RATIO
from routecast.calibration.eq5 import fit_eq5
from routecast.calibration.forward import cap_pps, flow_groups
from routecast.calibration.score import intervals
from routecast.errors import FitProblem
from routecast.evaluate.points import Point
from routecast.quantity.comparison import Intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    CorePps: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
    """(n,) calibrated numbers of cores, (B, n) their rates, and (m,) numbers of cores to the rate of a core, (B, m)."""

_P = TypeVar("_P")
_CAPPED_RATIO = 0.97
_REPLICATES = 100
_NOISE_COPIES = 8


def predict_baselines(
    calibrating: Sequence[Point], points: Sequence[Point]
) -> dict[str, list[tuple[float, Intervals]]]:
    """Predict frames per second at ``points``, with intervals, by every baseline that the calibration points allow."""
    core_limited = [p for p in calibrating if p.throughput_pps < _CAPPED_RATIO * cap_pps(p)] or list(calibrating)
    frame_bytes = min(point.frame_bytes for point in core_limited)
    smallest = [point for point in core_limited if point.frame_bytes == frame_bytes]
    predictions = {
        name: bootstrap(
            partial(_predict, core_pps, smallest), _rates(smallest), smallest, points, parameters=parameters
        )
        for name, (core_pps, parameters) in _LAWS.items()
    }
    with suppress(FitProblem):
        predict = partial(_predict_eq5, core_limited)
        predictions["eq5"] = bootstrap(predict, _rates(core_limited), core_limited, points, parameters=4)
    return predictions


def _rates(points: Sequence[Point]) -> list[float]:
    return [point.throughput_pps for point in points]


def bootstrap(
    predict: Callable[[Floats, Sequence[_P]], Floats],
    rates: Sequence[float],
    calibrating: Sequence[_P],
    points: Sequence[_P],
    *,
    parameters: int,
) -> list[tuple[float, Intervals]]:
    """Predict at points with intervals, where ``predict`` takes (B, n) calibrating rates and gives (B, m) rates."""
    measured = np.array(rates)
    residuals = np.log(measured / predict(measured[None], calibrating)[0])
    freedom = max(len(measured) - parameters, 1)
    sd = math.hypot(REPEATABILITY_RATIO, math.sqrt(float((residuals**2).sum()) / freedom))
    random = np.random.default_rng(0)
    disturbed = measured * np.exp(sd * random.standard_normal((_REPLICATES, len(measured))))
    logs = np.repeat(np.log(predict(disturbed, points)), _NOISE_COPIES, axis=0)
    logs = logs + sd * random.standard_normal(logs.shape)
    return list(zip(map(float, predict(measured[None], points)[0]), intervals(logs, np.ones(len(logs))), strict=True))


def _predict(core_pps: CorePps, calibrating: Sequence[Point], rates: Floats, points: Sequence[Point]) -> Floats:
    """Predict total rates, (B, m), from (B, n) calibrating rates, limited by links and cards."""
    cores, predicted_cores = (np.array([float(p.working_cores) for p in series]) for series in (calibrating, points))
    predicted_pps = core_pps(cores, rates, predicted_cores)
    totals = [
        np.minimum(
            sum(cores * np.minimum(offered, predicted_pps[:, column]) for cores, offered in flow_groups(point)),
            point.nic_cap_pps or math.inf,
        )
        for column, point in enumerate(points)
    ]
    return np.stack(totals, axis=1)


def _predict_eq5(calibrating: Sequence[Point], rates: Floats, points: Sequence[Point]) -> Floats:
    replicates = [
        [replace(p, throughput_pps=float(pps)) for p, pps in zip(calibrating, row, strict=True)] for row in rates
    ]
    return np.array([[p.throughput_pps for p in fit_eq5(replicate).predict(points)] for replicate in replicates])


def _linear(calibrated: Floats, rates: Floats, cores: Floats) -> Floats:
    nearest = [
        min(range(len(calibrated)), key=lambda i: (abs(math.log(calibrated[i] / k)), calibrated[i])) for k in cores
    ]
    predicted: Floats = rates[:, nearest] / calibrated[nearest]
    return predicted


def _rational(calibrated: Floats, rates: Floats, cores: Floats, degree: int) -> Floats:
    from scipy.optimize import nnls  # heavy

    predicted = []
    for row in rates:
        design = _terms(calibrated)[:, :degree] * (row / calibrated)[:, None]
        scale = np.linalg.norm(design, axis=0)
        scale[scale == 0.0] = 1.0
        coefficients = nnls(design / scale, np.ones(len(calibrated)))[0] / scale
        predicted.append(1.0 / (_terms(cores)[:, :degree] @ coefficients))
    return np.stack(predicted)


def _terms(cores: Floats) -> Floats:
    return np.stack([np.ones_like(cores), cores - 1.0, cores * (cores - 1.0)], axis=1)


def _power(calibrated: Floats, rates: Floats, cores: Floats) -> Floats:
    if len(set(calibrated)) == 1:
        return _linear(calibrated, rates, cores)
    slope, start = np.polyfit(np.log(calibrated), np.log(rates).T, 1)
    predicted: Floats = np.exp(start[:, None] + (slope[:, None] - 1.0) * np.log(cores))
    return predicted


def _spline(calibrated: Floats, rates: Floats, cores: Floats) -> Floats:
    from scipy.interpolate import PchipInterpolator  # heavy

    predicted, distinct = _linear(calibrated, rates, cores), np.unique(calibrated)
    if len(distinct) == 1:
        return predicted
    means = np.stack([np.log(rates[:, calibrated == k]).mean(axis=1) for k in distinct], axis=1)
    inside = (cores >= distinct[0]) & (cores <= distinct[-1])
    curve = PchipInterpolator(np.log(distinct), means, axis=1)(np.log(cores[inside]))
    predicted[:, inside] = np.exp(curve) / cores[inside]
    return predicted


_LAWS: Final[Mapping[str, tuple[CorePps, int]]] = {
    "linear": (_linear, 1),
    "amdahl": (partial(_rational, degree=2), 2),
    "usl": (partial(_rational, degree=3), 3),
    "power": (_power, 2),
    "spline": (_spline, 4),
}
BASELINES: Final = (*_LAWS, "eq5")
