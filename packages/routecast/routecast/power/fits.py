"""Fits of power models (over load, of ports, of a software router) to every device of a file of samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from routecast.errors import FitProblem
from routecast.evaluate.plain import plain
from routecast.power._energy_series import PowerOverTime, read_power_over_time
from routecast.power._load_samples import LoadSample, read_load_samples
from routecast.power.csv_file import UNNAMED_DEVICE, PortSample, read_csv, read_port_samples
from routecast.power.curve import Interpolation, LinearPower
from routecast.power.files import power_model_document
from routecast.power.form import PUBLISHED_FORM, FormFunction
from routecast.power.load_fit import (
    STANDARD_POINTS,
    FittedParameter,
    LoadFit,
    ModelledSample,
    fit_and_predict,
    fit_form,
    fit_load,
    least_squares,
    modelled,
)
from routecast.power.model import PowerModel
from routecast.power.port import PortClass, PortPower, PortsInUse
from routecast.power.software_router import CoreAtFrequency, SoftwareRouterPower
from routecast.quantity.comparison import ErrorSummary
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["TERMS", "DeviceFit", "error_document", "fit_file", "fit_ports", "fit_router", "model_for"]


FormKind = Literal["published", "monotone", "polynomial"]


def fit_router(
    device: str,
    samples: Sequence[LoadSample],
    *,
    form: FormKind = "published",
    cores: int | None = None,
    points: Sequence[float] | None = None,
    scope: str = "server",
) -> LoadFit:
    """Fit the paper's model of a software router (Bolla et al. 2009, eqs. 5-10).

    r_max(f) is the greatest throughput of one core at f. The gain of n cores is the greatest throughput of n cores over
    r_max, as a mean over frequencies. Phi_idle and Phi_active come from a line through power over the form function.

    ``device``: its name in messages. ``samples``: with throughput and frequency; a sample without cores counts as that
    of one core. ``form``: the form function, either the paper's or one fitted to the samples of one core, shifted and
    normalised as in sec. V-A. ``cores``: cores of the machine, including those that never forward; None for the largest
    number that forwarded. ``points``: as in :func:`routecast.power.load_fit.fit_load`. Raises FitProblem: a throughput
    or a frequency is missing, or there are too few samples.
    """
    for sample in samples:
        if sample.frequency_hz is None or math.isnan(sample.rate_pps):
            raise FitProblem(device, "the router's model needs rate_pps and frequency_hz of every sample")
    max_cores = max(sample.cores or 1 for sample in samples)
    if cores is not None and cores < max_cores:
        raise FitProblem(device, f"got {cores} cores of the machine, but samples have {max_cores} forwarding cores")

    def fitter(chosen: Sequence[LoadSample]) -> tuple[PowerModel, Mapping[str, FittedParameter]]:
        return _router_fit(device, chosen, form, cores or max_cores, scope)

    return fit_and_predict(device, samples, fitter, points)


def _router_fit(
    device: str, samples: Sequence[LoadSample], form_kind: FormKind, cores: int, scope: str
) -> tuple[PowerModel, Mapping[str, FittedParameter]]:
    max_pps: dict[tuple[float, int], float] = {}
    for sample in samples:
        key = sample.frequency_hz or 0.0, sample.cores or 1
        max_pps[key] = max(max_pps.get(key, 0.0), sample.rate_pps)
    clocks = sorted({clock for clock, _ in max_pps})
    single_core_pps = {clock: max_pps.get((clock, 1), 0.0) for clock in clocks}
    for clock, rate in single_core_pps.items():
        if rate <= 0.0:
            raise FitProblem(device, f"has no throughput of one core at {clock / 1e9:g} GHz, which r_max needs")
    gains = _gains(max_pps, single_core_pps)
    max_cores = max(number for _, number in max_pps)
    if max_cores > len(gains):
        raise FitProblem(
            device,
            f"has samples of {max_cores} forwarding cores and none of {len(gains) + 1}: measure the gain of every "
            "number of cores",
        )
    form = _fitted_form(device, samples, single_core_pps, form_kind)
    states, parameters = [], {}
    for clock in clocks:
        samples_at_clock = [sample for sample in samples if sample.frequency_hz == clock]
        busy_cores = [_busy_cores(sample, gains, single_core_pps[clock], form) for sample in samples_at_clock]
        solution = least_squares(
            f"{device} at {clock / 1e9:g} GHz",
            {"idle_w": [float(cores)] * len(samples_at_clock), "span_w": busy_cores},
            [sample.power_w for sample in samples_at_clock],
        )
        idle, span = solution["idle_w"], solution["span_w"]
        if idle.value < 0.0 or span.value < 0.0:
            raise FitProblem(
                device,
                f"at {clock / 1e9:g} GHz the fit gives {idle.value:.4g} W idle and {span.value:.4g} W more "
                "when active: neither may be negative; check the samples",
            )
        states.append(
            CoreAtFrequency(
                frequency_hz=clock, idle_w=idle.value, active_w=idle.value + span.value, max_pps=single_core_pps[clock]
            )
        )
        at = f"at {clock / 1e9:g} GHz"
        parameters[f"idle_w {at}"] = idle
        parameters[f"active_w - idle_w {at}"] = span
        parameters[f"max_pps {at}"] = FittedParameter(value=single_core_pps[clock])
    parameters |= {f"gain of {n} cores": FittedParameter(value=g) for n, g in enumerate(gains, start=1) if n > 1}
    model = SoftwareRouterPower(states=tuple(states), cores=cores, gains=gains, form=form, scope=scope)
    return model, parameters


def _gains(max_pps: Mapping[tuple[float, int], float], single_core_pps: Mapping[float, float]) -> tuple[float, ...]:
    """Return the gains of 1, 2, … cores as means over clocks, up to the first number of cores that was not measured."""
    gains = [1.0]
    while ratios := [rate / single_core_pps[clock] for (clock, n), rate in max_pps.items() if n == len(gains) + 1]:
        gains.append(sum(ratios) / len(ratios))
    return tuple(gains)


def _busy_cores(sample: LoadSample, gains: Sequence[float], single_core_pps: float, form: FormFunction) -> float:
    """Return the number of active cores with the dynamic power of a sample (eq. 9)."""
    forwarding = sample.cores or 1
    max_pps_per_core = gains[forwarding - 1] / forwarding * single_core_pps
    return forwarding * form.at(min(sample.rate_pps / forwarding / max_pps_per_core, 1.0))


def _fitted_form(
    device: str, samples: Sequence[LoadSample], single_core_pps: Mapping[float, float], kind: FormKind
) -> FormFunction:
    if kind == "published":
        return PUBLISHED_FORM
    throughputs: list[float] = []
    shares: list[float] = []
    for clock, rate in single_core_pps.items():
        samples_at_clock = [sample for sample in samples if sample.frequency_hz == clock and (sample.cores or 1) == 1]
        idle_samples_w = [sample.power_w for sample in samples_at_clock if sample.rate_pps == 0.0]
        if not idle_samples_w:
            raise FitProblem(
                device, f"has no sample without throughput at {clock / 1e9:g} GHz, which the form function needs"
            )
        idle_w = sum(idle_samples_w) / len(idle_samples_w)
        full_samples_w = [sample.power_w for sample in samples_at_clock if sample.rate_pps == rate]
        span_w = sum(full_samples_w) / len(full_samples_w) - idle_w
        if span_w <= 0.0:
            raise FitProblem(device, f"at {clock / 1e9:g} GHz power does not rise with throughput")
        throughputs += [sample.rate_pps / rate for sample in samples_at_clock]
        shares += [(sample.power_w - idle_w) / span_w for sample in samples_at_clock]
    return fit_form(device, throughputs, shares, is_monotone=kind == "monotone")


TERMS = ("base_w", "trx_in_w", "port_w", "trx_up_w", "offset_w", "bit_j", "packet_j")
"""Terms of the port model in regression order; the regression leaves out terms that depend linearly on earlier ones."""

_HUBER_CONSTANT = 1.345  # 95 % efficient where errors are normal (Huber, Robust Statistics)
_MAX_ITERATIONS = 60
_RELATIVE_TOLERANCE = 1e-9
_FOLDS = 5

Array = NDArray[np.float64]


@value
class FittedPorts:
    """The fit of one class of ports."""

    model: PortClass
    interval: Mapping[str, tuple[float, float]] = field(
        "95 % interval of each fitted term, by its name in :data:`TERMS`"
    )
    inseparable: tuple[str, ...] = field("Terms that the samples do not separate from the others; None in the model")
    error_ratio: tuple[float, ...] = field("Absolute error over the measured power of each fitted sample")
    held_out_error_ratio: tuple[float, ...] = field(
        "Absolute error over the measured power of the samples with ports in use, each fifth of them left out in turn; "
        "empty with too few samples"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFit:
    """The model of a device with the fit of each class of its ports."""

    model: PortPower
    classes: Mapping[str, FittedPorts]


def fit_ports(device: str, samples: Sequence[PortSample], *, scope: str = "wall") -> PortFit:
    """Fit the port model of one device by weighted robust least squares over all experiments of a class of ports.

    NetPowerBench fits in steps (base, idle, ports, transceivers, a line per packet size, a line through their slopes),
    each on the remainder of the step before. A single regression uses every sample for every term and gives intervals.

    Each class of ports is fitted separately, with the samples of the bare device, because labs measure classes in
    separate sessions, between which the base of a device may change by watts. The weight of a sample is its number of
    measurements times Huber's weight, so that a single bad session does not bend the fit.

    Raises FitProblem: no ports were measured, or a class has no more samples than separable terms.
    """
    names = list(dict.fromkeys(sample.port_class for sample in samples if sample.port_class))
    if not names:
        raise FitProblem(device, "has only samples of the bare device: give samples with ports in use")
    fitted = {
        name: _fit_class(f"{device} {name}", [sample for sample in samples if sample.port_class in ("", name)])
        for name in names
    }
    model = PortPower(
        device=device,
        classes={name: term.model for name, term in fitted.items()},
        scope=scope,
        source=f"fitted to {len(samples)} samples",
    )
    return PortFit(model=model, classes=fitted)


def _fit_class(name: str, samples: Sequence[PortSample]) -> FittedPorts:
    design = np.array([_regressors(sample.use) for sample in samples])
    power = np.array([sample.power_w for sample in samples])
    count = np.array([float(sample.samples) for sample in samples])
    separable = _separable(design)
    if power.size <= len(separable):
        terms = ", ".join(TERMS[i] for i in separable)
        raise FitProblem(name, f"{power.size} samples are too few for {len(separable)} terms ({terms})")
    value, weight = _huber_fit(design[:, separable], power, count)
    residual = power - design[:, separable] @ value
    spread = np.sum(weight * residual**2) / (power.size - len(separable))
    scaled = design[:, separable] / _scale(design[:, separable])
    covariance = np.linalg.pinv((scaled * weight[:, None]).T @ scaled) * spread
    half = student.ppf(0.975, power.size - len(separable)) * np.sqrt(np.diag(covariance)) / _scale(design[:, separable])
    coefficients = {TERMS[i]: float(v) for i, v in zip(separable, value, strict=True)}
    return FittedPorts(
        model=PortClass(**coefficients),
        interval={TERMS[i]: (float(v - h), float(v + h)) for i, v, h in zip(separable, value, half, strict=True)},
        inseparable=tuple(term for i, term in enumerate(TERMS) if i not in separable),
        error_ratio=tuple(map(float, np.abs(residual) / np.maximum(power, 1e-9))),
        held_out_error_ratio=_held_out_errors(design[:, separable], power, count),
    )


def _regressors(use: PortsInUse) -> tuple[float, ...]:
    return 1.0, use.plugged, use.enabled, use.up, use.forwarding, use.passed_bps, use.passed_pps


def _separable(design: Array) -> list[int]:
    """Return the columns that do not depend linearly on the columns before them."""
    scaled = design / _scale(design)
    separable: list[int] = []
    for column in range(design.shape[1]):
        trial = [*separable, column]
        if len(trial) > design.shape[0]:
            break
        if np.linalg.svd(scaled[:, trial], compute_uv=False)[-1] > _RELATIVE_TOLERANCE * len(trial):
            separable = trial
    return separable


def _scale(design: Array) -> Array:
    greatest = np.abs(design).max(axis=0)
    return np.where(greatest > 0.0, greatest, 1.0)


def _huber_fit(design: Array, power: Array, count: Array) -> tuple[Array, Array]:
    """Return terms and sample weights of Huber's estimate, by iteratively reweighted least squares."""
    scale = _scale(design)
    weight = count.copy()
    value = np.zeros(design.shape[1])
    for _ in range(_MAX_ITERATIONS):
        root_weight = np.sqrt(weight)
        solution = np.linalg.lstsq(design / scale * root_weight[:, None], power * root_weight, rcond=None)[0] / scale
        is_converged = np.allclose(solution, value, rtol=1e-10, atol=0.0)
        value = solution
        if is_converged:
            break
        residual = np.abs(power - design @ value)
        typical_residual_w = 1.4826 * float(np.median(residual))
        if typical_residual_w <= _RELATIVE_TOLERANCE * float(power.max()):
            break
        weight = count * np.minimum(1.0, _HUBER_CONSTANT * typical_residual_w / np.maximum(residual, 1e-300))
    return value, weight


def _held_out_errors(design: Array, power: Array, count: Array) -> tuple[float, ...]:
    """Return the relative errors of samples with ports in use, of which each fifth is left out of a fit in turn.

    A fold is skipped if the other samples do not separate all terms. Samples of the bare device stay in every fit: they
    are few, and samples with ports do not predict the base.
    """
    errors: list[float] = []
    uses_ports = design[:, 1:].any(axis=1)
    position = np.cumsum(uses_ports) - 1
    for fold in range(_FOLDS):
        is_held_out = uses_ports & (position % _FOLDS == fold)
        fitted_design = design[~is_held_out]
        if (
            not is_held_out.any()
            or fitted_design.shape[0] <= design.shape[1]
            or len(_separable(fitted_design)) < design.shape[1]
        ):
            continue
        value, _ = _huber_fit(fitted_design, power[~is_held_out], count[~is_held_out])
        errors += list(
            map(float, np.abs(design[is_held_out] @ value - power[is_held_out]) / np.maximum(power[is_held_out], 1e-9))
        )
    return tuple(errors)


FitModel = Literal["form", "monotone", "polynomial", "linear", "piecewise", "port", "router"]


@value
class DeviceFit:
    """The fit of one device."""

    device: str
    model: PowerModel
    parameters: Mapping[str, FittedParameter] = field("Fitted values by name; those of ports begin with the class")
    fitted: int = field("Number of fitted samples")
    # Absolute error over the measured power, of samples left out and of fitted samples.
    error_ratio: tuple[float, ...]
    fitted_error_ratio: tuple[float, ...]
    left_out: str = field("Sentence on the samples that were left out")
    samples: tuple[ModelledSample, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return plain data: parameters with their intervals, errors, and the content of the model's file."""
        return {
            "parameters": plain(self.parameters),
            "fitted_samples": self.fitted,
            "left_out": self.left_out,
            "errors": error_document(self.error_ratio),
            "fitted_errors": error_document(self.fitted_error_ratio),
            "notes": list(self.notes),
            "model": power_model_document(self.model, name=self.device),
        }


def error_document(error_ratio: Iterable[float]) -> object:
    """Return the summary of absolute relative errors as plain data."""
    errors = ErrorSummary.of(error_ratio)
    return plain(
        {
            "count": errors.points,
            "median_ratio": errors.median_abs_error_ratio,
            "p90_ratio": errors.p90_abs_error_ratio,
            "max_ratio": errors.max_abs_error_ratio,
        }
    )


def model_for(path: str | Path, *, rename: Mapping[str, str] = MappingProxyType({})) -> FitModel:
    """Return the model that the columns of a file of samples suggest.

    ``rename``: as in :func:`fit_file`. Raises FileProblem: the file cannot be read.
    """
    if Path(path).suffix.lower() in {".yml", ".yaml"}:
        return "port"
    if read_power_over_time(path, rename=rename) is not None:
        return "linear"
    columns = set(read_csv(path, kind="table of power samples", rename=rename).columns)
    if columns & {"path", "class", "plugged", "enabled", "up", "passed_bps"}:
        return "port"
    if {"rate_pps", "frequency_hz"} <= columns:
        return "router"
    return "piecewise"


def fit_file(
    path: str | Path,
    model: FitModel,
    *,
    points: Sequence[float] | None = None,
    device: str | None = None,
    interpolation: Interpolation = "smooth",
    form: FormKind = "published",
    cores: int | None = None,
    scope: str | None = None,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> tuple[DeviceFit, ...]:
    """Fit every device of a file of samples, or one of them.

    Parameters
    ----------
    path : str or Path
    model : {"form", "monotone", "polynomial", "linear", "piecewise", "port", "router"}
    points : sequence of float or None
        Loads 0..1 to fit. None: :data:`~routecast.power.load_fit.STANDARD_POINTS` for ``piecewise`` if a device has
        them, and all loads otherwise.
    device : str or None
    interpolation, form, cores
        As in :func:`~routecast.power.load_fit.fit_load` and :func:`~routecast.power.fits.fit_router`.
    scope : str or None
        Part that the watts cover; None for ``"wall"`` with ports and ``"server"`` with other models.
    rename : mapping of str to str
        Names of columns for the heads of a table that are called otherwise.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read or is invalid.
    routecast.errors.FitProblem
        There is no such device, or its samples do not determine the model.
    """
    if model == "port":
        by_device = read_port_samples(path, rename=rename)
        if points is not None:
            raise FitProblem("", "a port model has no loads to fit (points): it leaves samples out in turn")
        return tuple(
            _device_fit_of_ports(name, by_device[name], scope or "wall")
            for name in _chosen_devices(device, list(by_device))
        )
    over_time = read_power_over_time(path, rename=rename)
    if over_time is not None and (model == "linear" or not over_time.has_load):
        return (_fit_over_time(over_time, model, scope),)
    if over_time is not None:
        samples_by_device = {UNNAMED_DEVICE: over_time.samples}
    else:
        samples_by_device = read_load_samples(path, rename=rename)
    fits = []
    for name in _chosen_devices(device, list(samples_by_device)):
        samples = samples_by_device[name]
        if model == "router":
            fit = fit_router(name, samples, form=form, cores=cores, points=points, scope=scope or "server")
        else:
            has_standard_points = set(STANDARD_POINTS) < {sample.load_ratio for sample in samples}
            is_standard = model == "piecewise" and points is None and has_standard_points
            chosen_points = STANDARD_POINTS if is_standard else points
            fit = fit_load(
                name, samples, model, points=chosen_points, interpolation=interpolation, scope=scope or "server"
            )
        fits.append(_device_fit_over_load(name, fit, samples))
    return tuple(fits)


def _fit_over_time(over_time: PowerOverTime, model: FitModel, scope: str | None) -> DeviceFit:
    """Fit power over time: a line over load, or the mean where the load is unknown or does not raise the power."""
    scope = scope or over_time.scope
    notes = over_time.notes
    if over_time.has_load:
        try:
            fit = fit_load(UNNAMED_DEVICE, over_time.samples, "linear", scope=scope)
            line = _device_fit_over_load(UNNAMED_DEVICE, fit, over_time.samples)
            return replace(line, notes=(*notes, *line.notes))
        except FitProblem as problem:
            notes = (*notes, f"no line over load: {problem.message}")
    elif model not in {"linear", "piecewise"}:
        raise FitProblem(
            "", f"the file has watts without a load, so a {model} model cannot be fitted: leave out --model"
        )
    powers = [sample.power_w for sample in over_time.samples]
    mean_w, count = float(np.mean(powers)), len(powers)
    half = float("nan")
    if count > 1:
        half = float(student.ppf(0.975, count - 1) * np.std(powers, ddof=1) / math.sqrt(count))
    parameter = FittedParameter(value=mean_w, low=mean_w - half, high=mean_w + half)
    others = [(mean_w * count - power_w) / (count - 1) for power_w in powers] if count > 1 else []
    samples = tuple(
        ModelledSample(x=sample.load_ratio, measured_w=sample.power_w, modelled_w=mean_w)
        for sample in over_time.samples
    )
    return DeviceFit(
        device=UNNAMED_DEVICE,
        model=LinearPower(idle_w=mean_w, full_w=mean_w, scope=scope),
        parameters={"idle_w": parameter, "full_w": parameter},
        fitted=count,
        error_ratio=tuple(
            abs(other_w - power_w) / max(power_w, 1e-9) for other_w, power_w in zip(others, powers, strict=False)
        ),
        fitted_error_ratio=tuple(sample.error_ratio for sample in samples),
        left_out="each interval left out in turn" if others else "none left out",
        samples=samples,
        notes=(*notes, "the model has the mean watts at every load"),
    )


def _chosen_devices(device: str | None, names: Sequence[str]) -> Sequence[str]:
    if device is None:
        return names
    if device not in names:
        raise FitProblem(device, f"is no device of the file: {did_you_mean(device, names)}")
    return [device]


def _device_fit_over_load(name: str, fit: LoadFit, samples: Sequence[LoadSample]) -> DeviceFit:
    fitted = set(fit.fitted)
    modelled_samples = tuple(modelled(fit.model, sample, is_fitted=sample in fitted) for sample in samples)
    return DeviceFit(
        device=name,
        model=fit.model,
        parameters=fit.parameters,
        fitted=len(fit.fitted),
        error_ratio=tuple(prediction.error_ratio for prediction in fit.predictions),
        fitted_error_ratio=tuple(sample.error_ratio for sample in modelled_samples if sample.is_fitted),
        left_out=fit.left_out,
        samples=modelled_samples,
        notes=fit.notes,
    )


def _device_fit_of_ports(name: str, samples: Sequence[PortSample], scope: str) -> DeviceFit:
    fit = fit_ports(name, samples, scope=scope)
    parameters = {
        f"{port_class} {term}": FittedParameter(value=getattr(fitted.model, term), low=low, high=high)
        for port_class, fitted in fit.classes.items()
        for term, (low, high) in fitted.interval.items()
    }
    modelled_samples = tuple(
        ModelledSample(
            x=sample.use.passed_bps,
            measured_w=sample.power_w,
            modelled_w=fit.model.use_power_w({sample.port_class: sample.use}),
        )
        for sample in samples
        if sample.port_class
    )
    return DeviceFit(
        device=name,
        model=fit.model,
        parameters=parameters,
        fitted=len(samples),
        error_ratio=tuple(error for ports in fit.classes.values() for error in ports.held_out_error_ratio),
        fitted_error_ratio=tuple(error for ports in fit.classes.values() for error in ports.error_ratio),
        left_out="every fifth sample with ports in use left out in turn",
        samples=modelled_samples,
        notes=tuple(
            f"{port_class}: the samples do not separate {', '.join(fitted.inseparable)} from the other terms"
            for port_class, fitted in fit.classes.items()
            if fitted.inseparable
        ),
    )
