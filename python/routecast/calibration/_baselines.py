"""Predictions without routecast, from the same calibration points and with the same known caps.

* ``linear``: the rate per core of the nearest calibrated number of cores.
* ``amdahl``: ``k/X(k) = A + B(k-1)``, fitted with A, B >= 0 (Amdahl 1967).
* ``usl``: ``k/X(k) = A + B(k-1) + C·k(k-1)``, fitted with A, B, C >= 0 (Gunther 1993).
* ``power``: ``X(k) = A·k^b``, by least squares of logarithms.
* ``spline``: a monotone cubic through the points, logarithm of the rate over that of the cores (Fritsch and Carlson
  1980); ``linear`` beyond them.
* ``eq5``: eqs. 5-7 of Meyer et al. 2014, where the points carry its four parameters.

All but the last hold packets per second to be the same for every frame size and use the calibration points of the
smallest frames. Links and NIC packet rates limit every one of them; calibration points that sit on such a limit say
nothing about the cores and are left out where others remain.

The intervals are those of a parametric bootstrap (Efron and Tibshirani 1993, sec. 6.5): the fit is repeated on rates
that are disturbed by the residuals of the first one, with its degrees of freedom, and by the repeatability of a
measurement; each predicted rate is disturbed likewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from routecast.calibration._discrepancy import REPEATABILITY_RATIO
from routecast.calibration.eq5 import fit_eq5
from routecast.calibration.forward import flow_groups
from routecast.calibration.score import intervals
from routecast.errors import FitProblem
from routecast.evaluate.points import Point
from routecast.quantity.comparison import Intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    CorePps: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
    """(n,) calibrated cores, (B, n) their rates and (m,) cores to the rate of one of so many cores, (B, m)."""

_P = TypeVar("_P")
_ON_A_CAP = 0.97
_REPLICATES = 100
_NOISES = 8


def predict_baselines(
    calibrating: Sequence[Point], points: Sequence[Point]
) -> dict[str, list[tuple[float, Intervals]]]:
    """Predict frames per second at ``points``, with intervals, by every baseline that the calibration points carry."""
    free = [point for point in calibrating if point.throughput_pps < _ON_A_CAP * _cap_pps(point)] or list(calibrating)
    smallest = min(point.frame_bytes for point in free)
    small = [point for point in free if point.frame_bytes == smallest]
    predictions = {}
    for name, (core_pps, parameters) in _LAWS.items():

        def made(rates: Floats, at: Sequence[Point], core_pps: CorePps = core_pps) -> Floats:
            cores = [np.array([float(point.working_cores) for point in each]) for each in (small, at)]
            return _limited(at, core_pps(cores[0], rates, cores[1]))

        predictions[name] = bootstrap(made, [p.throughput_pps for p in small], small, points, parameters=parameters)
    try:
        fit_eq5(free)
    except FitProblem:
        return predictions
    predictions["eq5"] = bootstrap(
        lambda rates, at: np.stack([_eq5(free, each, at) for each in rates]),
        [p.throughput_pps for p in free],
        free,
        points,
        parameters=4,
    )
    return predictions


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
    logs = np.repeat(np.log(predict(disturbed, points)), _NOISES, axis=0)
    logs = logs + sd * random.standard_normal(logs.shape)
    return list(zip(map(float, predict(measured[None], points)[0]), intervals(logs, np.ones(len(logs))), strict=True))


def _cap_pps(point: Point) -> float:
    return min(point.line_rate_pps, point.nic_cap_pps or math.inf)


def _limited(points: Sequence[Point], core_pps: Floats) -> Floats:
    """Total rates, (B, m), of cores with the given rates, limited by links and cards."""
    totals = [
        np.minimum(
            sum(cores * np.minimum(offered, core_pps[:, column]) for cores, offered in flow_groups(point)),
            point.nic_cap_pps or math.inf,
        )
        for column, point in enumerate(points)
    ]
    return np.stack(totals, axis=1)


def _eq5(calibrating: Sequence[Point], rates: Floats, points: Sequence[Point]) -> Floats:
    own = [replace(point, throughput_pps=float(rate)) for point, rate in zip(calibrating, rates, strict=True)]
    return np.array([made.throughput_pps for made in fit_eq5(own).predict(points)])


def _linear(known: Floats, rates: Floats, cores: Floats) -> Floats:
    nearest = [min(range(len(known)), key=lambda i: (abs(math.log(known[i] / k)), known[i])) for k in cores]
    predicted: Floats = rates[:, nearest] / known[nearest]
    return predicted


def _rational(known: Floats, rates: Floats, cores: Floats, degree: int) -> Floats:
    from scipy.optimize import nnls  # heavy

    predicted = []
    for each in rates:
        design = _terms(known)[:, :degree] * (each / known)[:, None]
        scale = np.linalg.norm(design, axis=0)
        scale[scale == 0.0] = 1.0
        predicted.append(1.0 / (_terms(cores)[:, :degree] @ (nnls(design / scale, np.ones(len(known)))[0] / scale)))
    return np.stack(predicted)


def _terms(cores: Floats) -> Floats:
    return np.stack([np.ones_like(cores), cores - 1.0, cores * (cores - 1.0)], axis=1)


def _power(known: Floats, rates: Floats, cores: Floats) -> Floats:
    if len(set(known)) == 1:
        return _linear(known, rates, cores)
    slope, start = np.polyfit(np.log(known), np.log(rates).T, 1)
    predicted: Floats = np.exp(start[:, None] + (slope[:, None] - 1.0) * np.log(cores))
    return predicted


def _spline(known: Floats, rates: Floats, cores: Floats) -> Floats:
    from scipy.interpolate import PchipInterpolator  # heavy

    predicted, distinct = _linear(known, rates, cores), np.unique(known)
    if len(distinct) == 1:
        return predicted
    means = np.stack([np.log(rates[:, known == k]).mean(axis=1) for k in distinct], axis=1)
    inside = (cores >= distinct[0]) & (cores <= distinct[-1])
    curve = PchipInterpolator(np.log(distinct), means, axis=1)(np.log(cores[inside]))
    predicted[:, inside] = np.exp(curve) / cores[inside]
    return predicted


_LAWS: Final[Mapping[str, tuple[CorePps, int]]] = {
    "linear": (_linear, 1),
    "amdahl": (lambda known, rates, cores: _rational(known, rates, cores, 2), 2),
    "usl": (lambda known, rates, cores: _rational(known, rates, cores, 3), 3),
    "power": (_power, 2),
    "spline": (_spline, 4),
}
BASELINES: Final = (*_LAWS, "eq5")
