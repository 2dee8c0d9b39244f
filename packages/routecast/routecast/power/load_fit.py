"""Fits of power over load (linear, form function, piecewise) to samples, with errors on samples left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.optimize import nnls
from scipy.stats import t as student

from routecast.errors import FitProblem
from routecast.power._load_samples import LoadSample
from routecast.power.curve import FormPower, Interpolation, LinearPower, PiecewisePower
from routecast.power.form import PUBLISHED_FORM, FormFunction, MonotoneForm, PolynomialForm
from routecast.power.model import OperatingPoint, PowerModel
from routecast.quantity.schema import field, value

__all__ = [
    "STANDARD_POINTS",
    "FittedParameter",
    "LoadFit",
    "ModelledSample",
    "fit_form",
    "fit_load",
    "fit_monotone_form",
    "fit_polynomial_form",
    "least_squares",
    "modelled",
    "monotone_of",
]


PAPER_ORDER = 7
"""The lowest polynomial order whose accuracy the paper finds acceptable (sec. V-A)."""

_MAX_SEGMENTS = 12
_DENSE_SAMPLES = 2001
_EQUALITY_WEIGHT = 1e4

Array = NDArray[np.float64]


def fit_polynomial_form(t: Sequence[float], x: Sequence[float], *, order: int = PAPER_ORDER) -> PolynomialForm:
    """Fit a polynomial with a_0 = 0 by least squares, as the paper does (eq. 4).

    ``t`` and ``x``: normalised throughput, and power shifted by idle power and normalised. Raises FitProblem: there are
    fewer distinct throughputs above 0 than coefficients.
    """
    throughputs, values = _checked_samples(t, x)
    distinct = np.unique(throughputs[throughputs > 0.0]).size
    if distinct < order:
        raise FitProblem(
            "",
            f"a polynomial of order {order} has {order} coefficients besides a0 = 0, and the samples have only "
            f"{distinct} throughputs above 0: give more, or fit --model monotone",
        )
    powers = throughputs[:, None] ** np.arange(1, order + 1)
    solution = np.linalg.lstsq(powers, values, rcond=None)[0]
    return PolynomialForm(
        coefficients=(0.0, *map(float, solution)), source=f"least squares over {throughputs.size} samples"
    )


def fit_monotone_form(t: Sequence[float], x: Sequence[float], *, segments: int | None = None) -> MonotoneForm:
    """Fit a form function that never falls, stays within 0..1, and has x(0) = 0 and x(1) = 1, by least squares.

    Isotonic regression with PCHIP through its steps would make plateaus of noise. A spline with rising coefficients is
    smooth, its bounds hold everywhere, and its constrained least-squares problem has one optimum.

    ``t`` and ``x``: as :func:`fit_polynomial_form`; ``segments``: number of equally long pieces of the spline; None for
    half the number of distinct throughputs, 1 to 12. Raises FitProblem: fewer than two distinct throughputs
    strictly between 0 and 1.
    """
    throughputs, values = _checked_samples(t, x)
    inner = np.unique(throughputs[(throughputs > 0.0) & (throughputs < 1.0)]).size
    if inner < 2:
        raise FitProblem(
            "",
            f"a monotone form function needs samples at two or more throughputs between zero and the greatest, "
            f"got {inner}",
        )
    segment_count = segments or min(max(inner // 2, 1), _MAX_SEGMENTS)
    return _monotone_fit(throughputs, values, segment_count, f"monotone least squares over {throughputs.size} samples")


def fit_form(device: str, t: Sequence[float], x: Sequence[float], *, is_monotone: bool) -> FormFunction:
    """Fit a monotone form function or a polynomial; a FitProblem names the device."""
    try:
        return fit_monotone_form(t, x) if is_monotone else fit_polynomial_form(t, x)
    except FitProblem as problem:
        raise FitProblem(device, problem.message) from problem


def monotone_of(form: FormFunction = PUBLISHED_FORM) -> MonotoneForm:
    """Return the monotone form function that is nearest to ``form`` in mean square over 0..1."""
    throughputs = np.linspace(0.0, 1.0, _DENSE_SAMPLES)
    values = np.array([form.at(float(t)) for t in throughputs])
    return _monotone_fit(throughputs, values, _MAX_SEGMENTS, "monotone least squares over the published polynomial")


def _monotone_fit(throughputs: Array, values: Array, segments: int, source: str) -> MonotoneForm:
    """Solve for the increments of the coefficients, which are >= 0 and sum to 1."""
    knots = np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, segments + 1), np.ones(3)])
    basis = BSpline.design_matrix(throughputs, knots, 3).toarray()
    # c_i = rise_1 + … + rise_i and c_0 = 0, so a rise multiplies the sum of the basis functions from its own onwards.
    rises = np.cumsum(basis[:, ::-1], axis=1)[:, ::-1][:, 1:]
    # The sum of the rises is 1. A row that outweighs all samples enforces this to rounding.
    weight = _EQUALITY_WEIGHT * np.sqrt(throughputs.size)
    weights, _ = nnls(np.vstack([rises, np.full(rises.shape[1], weight)]), np.append(values, weight))
    coefficients = np.concatenate([[0.0], np.cumsum(weights / weights.sum())])
    coefficients[-1] = 1.0
    return MonotoneForm(
        knots=tuple(map(float, knots)), coefficients=tuple(float(min(c, 1.0)) for c in coefficients), source=source
    )


def _checked_samples(t: Sequence[float], x: Sequence[float]) -> tuple[Array, Array]:
    throughputs, values = np.asarray(t, dtype=float), np.asarray(x, dtype=float)
    if throughputs.size != values.size or not throughputs.size:
        raise FitProblem("", f"got {throughputs.size} throughputs and {values.size} powers: give one power for each")
    if not (np.isfinite(throughputs).all() and np.isfinite(values).all()):
        raise FitProblem("", "throughputs and powers of a form function must be numbers")
    if throughputs.min() < 0.0 or throughputs.max() > 1.0 + 1e-9:
        raise FitProblem("", "throughputs of a form function are normalised: they lie in 0..1")
    return np.minimum(throughputs, 1.0), values


LoadModel = Literal["form", "monotone", "polynomial", "linear", "piecewise"]

STANDARD_POINTS = (0.0, 0.1, 0.5, 1.0)
"""Loads at which a curve is fitted by default: of the loads 0, 10, 30, 50 and 100 % at which ECR weighs the
power of network gear (ecrinitiative.org v3.0.1), the ends, the middle, and the load where a server's curve bends most.
"""

_LOAD_TOLERANCE = 5e-3
_NOTED_POWER_FALL = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedParameter:
    """A fitted value in base units, and its 95 % interval where one exists (NaN otherwise)."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledSample:
    """A measured and a modelled power at ``x``: a load ratio or, for ports, the bit/s that pass them.

    ``is_fitted`` is false for a sample that was left out of the fit and is predicted.
    """

    x: float
    measured_w: float
    modelled_w: float
    is_fitted: bool = True

    @property
    def error_ratio(self) -> float:
        """Absolute error over the measured power."""
        return abs(self.modelled_w - self.measured_w) / max(self.measured_w, 1e-9)


@value
class LoadFit:
    """A fitted model, its parameters, and its predictions of samples that were left out of the fit."""

    model: PowerModel
    parameters: Mapping[str, FittedParameter]
    fitted: tuple[LoadSample, ...] = field("Samples used in the fit")
    predictions: tuple[ModelledSample, ...] = field("Samples left out of the fit", default=())
    left_out: str = field("Rule by which samples were left out", default="")
    notes: tuple[str, ...] = field("Notes on the samples", default=())


Fitter = Callable[[Sequence[LoadSample]], tuple[PowerModel, Mapping[str, FittedParameter]]]


def fit_load(
    device: str,
    samples: Sequence[LoadSample],
    model: LoadModel,
    *,
    points: Sequence[float] | None = None,
    interpolation: Interpolation = "smooth",
    scope: str = "server",
) -> LoadFit:
    """Fit a model of power over load to one device.

    ``device``: its name in messages. ``model``: ``form`` fits idle and active power with the published form function;
    ``monotone`` and ``polynomial`` fit the form function too. ``points``: loads (0..1) to fit, while all other loads
    are predicted; None fits all loads, and leaves each load between the first and the last out in turn to predict it.
    ``interpolation``: that of ``piecewise``. Raises FitProblem: there are too few samples, a load of ``points`` was not
    measured, or power does not rise with load.
    """

    def fitter(chosen: Sequence[LoadSample]) -> tuple[PowerModel, Mapping[str, FittedParameter]]:
        if model == "piecewise":
            return _fit_piecewise(device, chosen, interpolation, scope)
        if model in {"form", "linear"}:
            return _fit_idle_and_full(device, chosen, PUBLISHED_FORM if model == "form" else None, scope)
        return _fit_with_own_form(device, chosen, model, scope)

    return fit_and_predict(device, samples, fitter, points)


def fit_and_predict(
    device: str, samples: Sequence[LoadSample], fitter: Fitter, points: Sequence[float] | None
) -> LoadFit:
    """Fit the samples at ``points`` and predict the others; without points fit all, leaving out inner loads in turn."""
    loads = sorted({sample.load_ratio for sample in samples})
    chosen = loads if points is None else [_nearest_load(device, point, loads) for point in points]
    fitted = [sample for sample in samples if sample.load_ratio in chosen]
    model, parameters = fitter(fitted)
    if points is None:
        predictions = _predictions_in_turn(fitter, samples, loads)
        left_out = "each load between the first and the last left out in turn" if predictions else "none left out"
    else:
        predictions = [
            modelled(model, sample, is_fitted=False) for sample in samples if sample.load_ratio not in chosen
        ]
        left_out = f"fitted at {', '.join(f'{100 * load:g}' for load in chosen)} % of load, other loads left out"
    return LoadFit(
        model=model,
        parameters=parameters,
        fitted=tuple(fitted),
        predictions=tuple(predictions),
        left_out=left_out,
        notes=_falling_power_notes(samples),
    )


def _predictions_in_turn(fitter: Fitter, samples: Sequence[LoadSample], loads: Sequence[float]) -> list[ModelledSample]:
    """Predict each load but the first and the last from the other loads; nothing if a fit fails."""
    predictions: list[ModelledSample] = []
    for load in loads[1:-1]:
        try:
            model, _ = fitter([sample for sample in samples if sample.load_ratio != load])
        except FitProblem:
            return []
        predictions += [modelled(model, sample, is_fitted=False) for sample in samples if sample.load_ratio == load]
    return predictions


def modelled(model: PowerModel, sample: LoadSample, *, is_fitted: bool) -> ModelledSample:
    """Return a sample with the power of a model at the sample's operating point."""
    point = OperatingPoint(
        load_ratio=sample.load_ratio,
        rate_pps=0.0 if np.isnan(sample.rate_pps) else sample.rate_pps,
        frequency_hz=sample.frequency_hz,
        cores=sample.cores,
    )
    return ModelledSample(
        x=sample.load_ratio, measured_w=sample.power_w, modelled_w=model.power_w(point), is_fitted=is_fitted
    )


def least_squares(
    device: str, columns: Mapping[str, Sequence[float]], power_w: Sequence[float]
) -> dict[str, FittedParameter]:
    """Return the least-squares parameters of a linear law with their 95 % intervals (Student's t).

    Raises FitProblem: the samples do not determine the parameters.
    """
    design = np.column_stack([np.asarray(column, dtype=float) for column in columns.values()])
    power = np.asarray(power_w, dtype=float)
    degrees_of_freedom = power.size - design.shape[1]
    if np.linalg.matrix_rank(design) < design.shape[1]:
        parameters = f"{design.shape[1]} parameters ({', '.join(columns)})"
        raise FitProblem(device, f"{power.size} samples do not determine {parameters}: give samples at more loads")
    solution = np.linalg.lstsq(design, power, rcond=None)[0]
    half = np.full(solution.size, np.nan)
    if degrees_of_freedom > 0:
        spread = float(np.sum((power - design @ solution) ** 2)) / degrees_of_freedom
        half = student.ppf(0.975, degrees_of_freedom) * np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * spread)
    return {
        name: FittedParameter(value=float(value), low=float(value - h), high=float(value + h))
        for name, value, h in zip(columns, solution, half, strict=True)
    }


def _fit_idle_and_full(
    device: str, samples: Sequence[LoadSample], form: FormFunction | None, scope: str
) -> tuple[PowerModel, Mapping[str, FittedParameter]]:
    """Fit idle and full power of P = idle (1 - x) + full x; x is the load, or the form function of it."""
    shares = [sample.load_ratio if form is None else form.at(sample.load_ratio) for sample in samples]
    full_key = "full_w" if form is None else "active_w"
    parameters = least_squares(
        device, {"idle_w": [1.0 - x for x in shares], full_key: shares}, [sample.power_w for sample in samples]
    )
    idle_w, full_w = parameters["idle_w"].value, parameters[full_key].value
    if not 0.0 <= idle_w <= full_w:
        raise FitProblem(
            device,
            f"the fit gives {idle_w:.4g} W without load and {full_w:.4g} W at full load: power must not fall with load "
            "or be negative; fit --model piecewise, or look at the samples",
        )
    if form is None:
        return LinearPower(idle_w=idle_w, full_w=full_w, scope=scope), parameters
    return FormPower(idle_w=idle_w, active_w=full_w, form=form, scope=scope), parameters


def _fit_with_own_form(
    device: str, samples: Sequence[LoadSample], model: LoadModel, scope: str
) -> tuple[PowerModel, Mapping[str, FittedParameter]]:
    """Shift and normalise as the paper does (sec. V-A), then fit the form function."""
    means = _mean_power_w(samples)
    min_load, max_load = min(means), max(means)
    if min_load > _LOAD_TOLERANCE:
        raise FitProblem(device, f"the lowest load is {min_load:g}: a form function needs a sample without load")
    idle_w, active_w = means[min_load], means[max_load]
    if active_w <= idle_w:
        raise FitProblem(
            device, f"power does not rise: {active_w:.4g} W at the highest load and {idle_w:.4g} W without load"
        )
    shares = [(sample.power_w - idle_w) / (active_w - idle_w) for sample in samples]
    form = fit_form(device, [sample.load_ratio for sample in samples], shares, is_monotone=model == "monotone")
    parameters = {"idle_w": FittedParameter(value=idle_w), "active_w": FittedParameter(value=active_w)}
    return FormPower(idle_w=idle_w, active_w=active_w, form=form, scope=scope), parameters


def _fit_piecewise(
    device: str, samples: Sequence[LoadSample], interpolation: Interpolation, scope: str
) -> tuple[PowerModel, Mapping[str, FittedParameter]]:
    means = _mean_power_w(samples)
    if len(means) < 2:
        raise FitProblem(device, f"has samples at {len(means)} load: a piecewise model needs two or more loads")
    loads = sorted(means)
    model = PiecewisePower(
        load_ratio=tuple(loads),
        power_w_at=tuple(means[load] for load in loads),
        interpolation=interpolation,
        scope=scope,
    )
    return model, {f"w_{100 * load:g}": FittedParameter(value=means[load]) for load in loads}


def _mean_power_w(samples: Sequence[LoadSample]) -> dict[float, float]:
    """Return the mean power at each load."""
    powers: dict[float, list[float]] = {}
    for sample in samples:
        powers.setdefault(sample.load_ratio, []).append(sample.power_w)
    return {load: sum(watts) / len(watts) for load, watts in powers.items()}


def _nearest_load(device: str, point: float, loads: Sequence[float]) -> float:
    nearest = min(loads, key=lambda load: abs(load - point))
    if abs(nearest - point) > _LOAD_TOLERANCE:
        measured = ", ".join(f"{100 * load:g}" for load in loads)
        raise FitProblem(device, f"has no sample at {100 * point:g} % of load; loads with samples: {measured}")
    return nearest


def _falling_power_notes(samples: Sequence[LoadSample]) -> tuple[str, ...]:
    """Return a note for each fall of the mean power with rising load that exceeds the scatter of measurements."""
    if len({(sample.frequency_hz, sample.cores) for sample in samples}) > 1:
        return ()
    means = _mean_power_w(samples)
    return tuple(
        f"power falls from {means[a]:.4g} W at {100 * a:g} % of load to {means[b]:.4g} W at {100 * b:g} %"
        for a, b in pairwise(sorted(means))
        if means[b] < means[a] * (1.0 - _NOTED_POWER_FALL)
    )
