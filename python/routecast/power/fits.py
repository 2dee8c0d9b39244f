"""Fits of every device of a file of samples: models over load, of ports, and of a software router."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from routecast.errors import FitProblem
from routecast.evaluate.plain import plain
from routecast.power._load_samples import LoadSample, read_load_samples
from routecast.power.csv_file import PortSample, read_csv, read_port_samples
from routecast.power.curve import Interpolation
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
from routecast.power.software_router import CoreAt, SoftwareRouterPower
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

    r_max(f) is the greatest throughput of one core at f; the gain of n cores the greatest of n over it, as a mean
    over frequencies; Phi_idle and Phi_active come from a line through the powers over the form function.

    ``device``: for messages; ``samples``: with throughput and frequency; without cores they count as one core's;
    ``form``: the form function: the paper's, or fitted to the samples of one core, shifted and normalised as in sec.
    V-A; ``cores``: cores of the machine, those that never forward included; None for the most that forwarded;
    ``points``: as :func:`routecast.power.load_fit.fit_load`. Raises FitProblem: a throughput or a frequency is missing,
    or there are too few samples.
    """
    for sample in samples:
        if sample.frequency_hz is None or math.isnan(sample.rate_pps):
            raise FitProblem(device, "the router's model needs rate_pps and frequency_hz of every sample")
    most = max(sample.cores or 1 for sample in samples)
    if cores is not None and cores < most:
        raise FitProblem(device, f"got {cores} cores of the machine, and samples of {most} that forward")

    def fitter(chosen: Sequence[LoadSample]) -> tuple[PowerModel, Mapping[str, FittedParameter]]:
        return _router_fit(device, chosen, form, cores or most, scope)

    return fit_and_predict(device, samples, fitter, points)


def _router_fit(
    device: str, samples: Sequence[LoadSample], kind: FormKind, cores: int, scope: str
) -> tuple[PowerModel, Mapping[str, FittedParameter]]:
    greatest: dict[tuple[float, int], float] = {}
    for sample in samples:
        key = sample.frequency_hz or 0.0, sample.cores or 1
        greatest[key] = max(greatest.get(key, 0.0), sample.rate_pps)
    clocks = sorted({clock for clock, _ in greatest})
    alone = {clock: greatest.get((clock, 1), 0.0) for clock in clocks}
    for clock, rate in alone.items():
        if rate <= 0.0:
            raise FitProblem(device, f"has no throughput of one core at {clock / 1e9:g} GHz: r_max needs one")
    gains = _gains(greatest, alone)
    most = max(number for _, number in greatest)
    if most > len(gains):
        raise FitProblem(
            device,
            f"has samples of {most} forwarding cores and none of {len(gains) + 1}: the gain of each number must be "
            "measured",
        )
    law = _form(device, samples, alone, kind)
    states, parameters = [], {}
    for clock in clocks:
        here = [sample for sample in samples if sample.frequency_hz == clock]
        busy = [_busy(sample, gains, alone[clock], law) for sample in here]
        solution = least_squares(
            f"{device} at {clock / 1e9:g} GHz",
            {"idle_w": [float(cores)] * len(here), "span_w": busy},
            [sample.power_w for sample in here],
        )
        idle, span = solution["idle_w"], solution["span_w"]
        if idle.value < 0.0 or span.value < 0.0:
            raise FitProblem(
                device,
                f"at {clock / 1e9:g} GHz the fit gives {idle.value:.4g} W idle and {span.value:.4g} W more "
                "when active: neither may be negative; look at the samples",
            )
        states.append(
            CoreAt(frequency_hz=clock, idle_w=idle.value, active_w=idle.value + span.value, max_pps=alone[clock])
        )
        at = f"at {clock / 1e9:g} GHz"
        parameters[f"idle_w {at}"] = idle
        parameters[f"active_w - idle_w {at}"] = span
        parameters[f"max_pps {at}"] = FittedParameter(value=alone[clock])
    parameters |= {f"gain of {n} cores": FittedParameter(value=g) for n, g in enumerate(gains, start=1) if n > 1}
    model = SoftwareRouterPower(states=tuple(states), cores=cores, gains=gains, form=law, scope=scope)
    return model, parameters


def _gains(greatest: Mapping[tuple[float, int], float], alone: Mapping[float, float]) -> tuple[float, ...]:
    """Return the gains of 1, 2, … cores, up to the first number that was not measured, as means over clocks."""
    gains = [1.0]
    while ratios := [rate / alone[clock] for (clock, n), rate in greatest.items() if n == len(gains) + 1]:
        gains.append(sum(ratios) / len(ratios))
    return tuple(gains)


def _busy(sample: LoadSample, gains: Sequence[float], alone_pps: float, form: FormFunction) -> float:
    """Return how many cores' worth of dynamic power a sample takes (eq. 9)."""
    forwarding = sample.cores or 1
    share = gains[forwarding - 1] / forwarding * alone_pps
    return forwarding * form.at(min(sample.rate_pps / forwarding / share, 1.0))


def _form(device: str, samples: Sequence[LoadSample], alone: Mapping[float, float], kind: FormKind) -> FormFunction:
    if kind == "published":
        return PUBLISHED_FORM
    places: list[float] = []
    shares: list[float] = []
    for clock, rate in alone.items():
        here = [sample for sample in samples if sample.frequency_hz == clock and (sample.cores or 1) == 1]
        still = [sample.power_w for sample in here if sample.rate_pps == 0.0]
        if not still:
            raise FitProblem(device, f"has no sample without throughput at {clock / 1e9:g} GHz: the form needs one")
        idle = sum(still) / len(still)
        full = [sample.power_w for sample in here if sample.rate_pps == rate]
        span = sum(full) / len(full) - idle
        if span <= 0.0:
            raise FitProblem(device, f"at {clock / 1e9:g} GHz power does not rise with throughput")
        places += [sample.rate_pps / rate for sample in here]
        shares += [(sample.power_w - idle) / span for sample in here]
    return fit_form(device, places, shares, is_monotone=kind == "monotone")


TERMS = ("base_w", "trx_in_w", "port_w", "trx_up_w", "offset_w", "bit_j", "packet_j")
"""Terms of the port model in the order of the regression, which leaves out a term that adds nothing new."""

_HUBER = 1.345  # 95 % efficient where errors are normal (Huber, Robust Statistics)
_ROUNDS = 60
_SAME = 1e-9
_FOLDS = 5

Array = NDArray[np.float64]


@value
class FittedPorts:
    """The fit of one class of ports."""

    model: PortClass
    interval: Mapping[str, tuple[float, float]] = field(
        "95 % interval of each fitted term, by its name in :data:`TERMS`"
    )
    inseparable: tuple[str, ...] = field(
        "Terms that the samples cannot separate from the others: they are None in the model"
    )
    error_ratio: tuple[float, ...] = field("Absolute error over the measured power, of each sample that was fitted")
    held_out_error_ratio: tuple[float, ...] = field(
        "The same of samples that were left out, each fifth of those with ports in use in turn; empty with too few"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFit:
    """The model of a device, and the fit of each class of its ports."""

    model: PortPower
    classes: Mapping[str, FittedPorts]


def fit_ports(device: str, samples: Sequence[PortSample], *, scope: str = "wall") -> PortFit:
    """Fit the port model of one device by weighted robust least squares over all experiments of a class of ports.

    NetPowerBench fits in steps (base, idle, ports, transceivers, then a line per packet size, then a line through their
    slopes), each on the remainder of the last. One regression uses every sample for every term and gives intervals.

    Each class of ports is fitted by itself, with the samples of the bare device: labs measure classes in sessions of
    their own, between which the base of a device may move by watts. Samples weigh by how many measurements they are
    the mean of, and by Huber's weights, so single bad sessions do not bend the fit.

    Raises FitProblem: no ports were measured, or a class has fewer samples than terms that they separate.
    """
    names = list(dict.fromkeys(sample.port_class for sample in samples if sample.port_class))
    if not names:
        raise FitProblem(device, "has no sample with ports in use: only the bare device was measured")
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
    design = np.array([_row(sample.use) for sample in samples])
    power = np.array([sample.power_w for sample in samples])
    count = np.array([float(sample.samples) for sample in samples])
    kept = _separable(design)
    if power.size <= len(kept):
        terms = ", ".join(TERMS[i] for i in kept)
        raise FitProblem(name, f"{power.size} samples are too few for {len(kept)} terms ({terms})")
    value, weight = _robust(design[:, kept], power, count)
    residual = power - design[:, kept] @ value
    spread = np.sum(weight * residual**2) / (power.size - len(kept))
    scaled = design[:, kept] / _scale(design[:, kept])
    covariance = np.linalg.pinv((scaled * weight[:, None]).T @ scaled) * spread
    half = student.ppf(0.975, power.size - len(kept)) * np.sqrt(np.diag(covariance)) / _scale(design[:, kept])
    coefficients = {TERMS[i]: float(v) for i, v in zip(kept, value, strict=True)}
    return FittedPorts(
        model=PortClass(**coefficients),
        interval={TERMS[i]: (float(v - h), float(v + h)) for i, v, h in zip(kept, value, half, strict=True)},
        inseparable=tuple(term for i, term in enumerate(TERMS) if i not in kept),
        error_ratio=tuple(map(float, np.abs(residual) / np.maximum(power, 1e-9))),
        held_out_error_ratio=_held_out(design[:, kept], power, count),
    )


def _row(use: PortsInUse) -> tuple[float, ...]:
    return 1.0, use.plugged, use.enabled, use.up, use.forwarding, use.passed_bps, use.passed_pps


def _separable(design: Array) -> list[int]:
    """Return the columns that each add something to those before."""
    scaled = design / _scale(design)
    kept: list[int] = []
    for column in range(design.shape[1]):
        trial = [*kept, column]
        if len(trial) > design.shape[0]:
            break
        if np.linalg.svd(scaled[:, trial], compute_uv=False)[-1] > _SAME * len(trial):
            kept = trial
    return kept


def _scale(design: Array) -> Array:
    greatest = np.abs(design).max(axis=0)
    return np.where(greatest > 0.0, greatest, 1.0)


def _robust(design: Array, power: Array, count: Array) -> tuple[Array, Array]:
    """Return terms and weights of Huber's estimate, by reweighted least squares."""
    scale = _scale(design)
    weight = count.copy()
    value = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        root = np.sqrt(weight)
        solution = np.linalg.lstsq(design / scale * root[:, None], power * root, rcond=None)[0] / scale
        settled = np.allclose(solution, value, rtol=1e-10, atol=0.0)
        value = solution
        if settled:
            break
        residual = np.abs(power - design @ value)
        typical = 1.4826 * float(np.median(residual))
        if typical <= _SAME * float(power.max()):
            break
        weight = count * np.minimum(1.0, _HUBER * typical / np.maximum(residual, 1e-300))
    return value, weight


def _held_out(design: Array, power: Array, count: Array) -> tuple[float, ...]:
    """Return the errors of samples left out; a part without which a term is lost is not predicted.

    Samples of the bare device always stay: they are few, and what no port draws is not for ports to predict.
    """
    errors: list[float] = []
    ports = design[:, 1:].any(axis=1)
    place = np.cumsum(ports) - 1
    for part in range(_FOLDS):
        out = ports & (place % _FOLDS == part)
        inside = design[~out]
        if not out.any() or inside.shape[0] <= design.shape[1] or len(_separable(inside)) < design.shape[1]:
            continue
        value, _ = _robust(inside, power[~out], count[~out])
        errors += list(map(float, np.abs(design[out] @ value - power[out]) / np.maximum(power[out], 1e-9)))
    return tuple(errors)


FitModel = Literal["form", "monotone", "polynomial", "linear", "piecewise", "port", "router"]


@value
class DeviceFit:
    """The fit of one device."""

    device: str
    model: PowerModel
    parameters: Mapping[str, FittedParameter] = field("Prefixed by the class of ports where a device has several")
    fitted: int = field("Samples that the model rests on")
    # Absolute error over the measured power, on samples left out and on those that were fitted.
    error_ratio: tuple[float, ...]
    fitted_error_ratio: tuple[float, ...]
    left_out: str = field("Sentence on the samples that were left out")
    samples: tuple[ModelledSample, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return plain data: parameters with their intervals, errors, the model as its file has it."""
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


def model_for(path: str | Path) -> FitModel:
    """Return the model that the columns of a file of samples suggest.

    Raises FileProblem: the file cannot be read.
    """
    if Path(path).suffix.lower() in {".yml", ".yaml"}:
        return "port"
    columns = set(read_csv(path, kind="table of power samples").columns)
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
) -> tuple[DeviceFit, ...]:
    """Fit every device of a file of samples, or one of them.

    Parameters
    ----------
    path : str or Path
    model : {"form", "monotone", "polynomial", "linear", "piecewise", "port", "router"}
    points : sequence of float or None
        Loads 0..1 to fit; None: :data:`~routecast.power.load_fit.STANDARD_POINTS` for ``piecewise`` where a device
        has them, and all samples for the others.
    device : str or None
    interpolation, form, cores
        As :func:`~routecast.power.load_fit.fit_load` and :func:`~routecast.power.fits.fit_router`.
    scope : str or None
        What the watts cover; None for ``"wall"`` of ports and ``"server"`` of the others.

    Raises
    ------
    routecast.errors.FileProblem
        The file is not as it must be.
    routecast.errors.FitProblem
        There is no such device, or its samples do not determine the model.
    """
    if model == "port":
        by_device = read_port_samples(path)
        if points is not None:
            raise FitProblem("", "loads to fit are for models over load: a port model leaves samples out in turn")
        return tuple(_port_fit(name, by_device[name], scope or "wall") for name in _chosen(device, list(by_device)))
    loads = read_load_samples(path)
    fits = []
    for name in _chosen(device, list(loads)):
        samples = loads[name]
        if model == "router":
            fit = fit_router(name, samples, form=form, cores=cores, points=points, scope=scope or "server")
        else:
            at = points
            if model == "piecewise" and at is None and set(STANDARD_POINTS) < {sample.load_ratio for sample in samples}:
                at = STANDARD_POINTS
            fit = fit_load(name, samples, model, points=at, interpolation=interpolation, scope=scope or "server")
        fits.append(_load_fit(name, fit, samples))
    return tuple(fits)


def _chosen(device: str | None, names: Sequence[str]) -> Sequence[str]:
    if device is None:
        return names
    if device not in names:
        raise FitProblem(device, f"is no device of the file: {did_you_mean(device, names)}")
    return [device]


def _load_fit(name: str, fit: LoadFit, samples: Sequence[LoadSample]) -> DeviceFit:
    fitted = set(fit.fitted)
    beside = tuple(modelled(fit.model, sample, is_fitted=sample in fitted) for sample in samples)
    return DeviceFit(
        device=name,
        model=fit.model,
        parameters=fit.parameters,
        fitted=len(fit.fitted),
        error_ratio=tuple(prediction.error_ratio for prediction in fit.predictions),
        fitted_error_ratio=tuple(sample.error_ratio for sample in beside if sample.is_fitted),
        left_out=fit.left_out,
        samples=beside,
        notes=fit.notes,
    )


def _port_fit(name: str, samples: Sequence[PortSample], scope: str) -> DeviceFit:
    fit = fit_ports(name, samples, scope=scope)
    parameters = {
        f"{port_class} {term}": FittedParameter(value=getattr(fitted.model, term), low=low, high=high)
        for port_class, fitted in fit.classes.items()
        for term, (low, high) in fitted.interval.items()
    }
    beside = tuple(
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
        samples=beside,
        notes=tuple(
            f"{port_class}: the samples do not tell {', '.join(fitted.inseparable)} apart from the other terms"
            for port_class, fitted in fit.classes.items()
            if fitted.inseparable
        ),
    )
