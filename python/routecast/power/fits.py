"""One fit for every device of a file of samples, by whichever model: what ``routecast power fit`` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from routecast.errors import FitProblem
from routecast.power.csv_file import read_csv
from routecast.power.load_fit import STANDARD_POINTS, LoadFit, Parameter, fit_load, operating_point
from routecast.power.load_samples import LoadSample, read_load_samples
from routecast.power.model import PowerModel
from routecast.power.piecewise import Interpolation
from routecast.power.port_fit import FittedPorts, fit_ports
from routecast.power.port_samples import PortSample, read_port_samples
from routecast.power.router_fit import FormKind, fit_router
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["FIT_MODELS", "DeviceFit", "FitModel", "Fitted", "fit_file", "model_for"]

FitModel = Literal["form", "monotone", "polynomial", "linear", "piecewise", "port", "router"]
FIT_MODELS: tuple[FitModel, ...] = (
    "form",
    "monotone",
    "polynomial",
    "linear",
    "piecewise",
    "port",
    "router",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One sample beside what the model says of it, with the load or, for ports, the passed bit/s as ``place``.

    ``is_fitted`` says whether the model rests on it, or it was left out to be predicted.
    """

    place: float
    measured_w: float
    modelled_w: float
    is_fitted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFit:
    """What was found for one device.

    Parameters
    ----------
    device : str
    model : PowerModel
    parameters : mapping of str to Parameter
        Prefixed by the class of ports where a device has several.
    fitted : int
        Samples that the model rests on.
    error_ratio, fitted_error_ratio : tuple of float
        Absolute error over the measured power, on samples left out and on those that were fitted.
    left_out : str
        How they were left out, in words.
    samples : tuple of Fitted
    notes : tuple of str
    """

    device: str
    model: PowerModel
    parameters: Mapping[str, Parameter]
    fitted: int
    error_ratio: tuple[float, ...]
    fitted_error_ratio: tuple[float, ...]
    left_out: str
    samples: tuple[Fitted, ...]
    notes: tuple[str, ...]


def model_for(path: str | Path) -> FitModel:
    """Return the model that the columns of a file of samples suggest.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read.
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
    model : str
        One of :data:`FIT_MODELS`.
    points : sequence of float or None
        Loads 0..1 to fit; None: :data:`~routecast.power.load_fit.STANDARD_POINTS` for ``piecewise`` where a device
        has them, and all samples for the others.
    device : str or None
    interpolation, form, cores
        As :func:`~routecast.power.load_fit.fit_load` and :func:`~routecast.power.router_fit.fit_router`.
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
            raise FitProblem(
                "", "loads to fit are for models over load: a port model leaves samples out in turn"
            )
        return tuple(
            _of_ports(name, by_device[name], scope or "wall") for name in _chosen(device, list(by_device))
        )
    loads = read_load_samples(path)
    fits = []
    for name in _chosen(device, list(loads)):
        samples = loads[name]
        if model == "router":
            fit = fit_router(name, samples, form=form, cores=cores, points=points, scope=scope or "server")
        else:
            at = points
            if model == "piecewise" and at is None and _has(samples, STANDARD_POINTS):
                at = STANDARD_POINTS
            fit = fit_load(
                name, samples, model, points=at, interpolation=interpolation, scope=scope or "server"
            )
        fits.append(_of_load(name, fit, samples))
    return tuple(fits)


def _chosen(device: str | None, names: Sequence[str]) -> Sequence[str]:
    if device is None:
        return names
    if device not in names:
        raise FitProblem(device, f"is no device of the file: {did_you_mean(device, names)}")
    return [device]


def _has(samples: Sequence[LoadSample], points: Sequence[float]) -> bool:
    loads = {sample.load_ratio for sample in samples}
    return set(points) < loads


def _of_load(name: str, fit: LoadFit, samples: Sequence[LoadSample]) -> DeviceFit:
    rests_on = set(fit.fitted)
    shown = tuple(
        Fitted(
            place=one.load_ratio,
            measured_w=one.power_w,
            modelled_w=fit.model.power_w(operating_point(one)),
            is_fitted=one in rests_on,
        )
        for one in samples
    )
    return DeviceFit(
        device=name,
        model=fit.model,
        parameters=fit.parameters,
        fitted=len(fit.fitted),
        error_ratio=tuple(one.error_ratio for one in fit.predictions),
        fitted_error_ratio=tuple(
            abs(fit.model.power_w(operating_point(one)) - one.power_w) / max(one.power_w, 1e-9)
            for one in fit.fitted
        ),
        left_out=fit.left_out,
        samples=shown,
        notes=fit.notes,
    )


def _of_ports(name: str, samples: Sequence[PortSample], scope: str) -> DeviceFit:
    fit = fit_ports(name, samples, scope=scope)
    parameters = {
        f"{port_class} {term}": Parameter(value=getattr(found.model, term), low=low, high=high)
        for port_class, found in fit.classes.items()
        for term, (low, high) in found.interval.items()
    }
    shown = tuple(
        Fitted(
            place=one.use.passed_bps,
            measured_w=one.power_w,
            modelled_w=fit.model.use_power_w({one.port_class: one.use}),
        )
        for one in samples
        if one.port_class
    )
    return DeviceFit(
        device=name,
        model=fit.model,
        parameters=parameters,
        fitted=len(samples),
        error_ratio=_all(fit.classes, "held_out_error_ratio"),
        fitted_error_ratio=_all(fit.classes, "error_ratio"),
        left_out="every fifth sample with ports in use left out in turn",
        samples=shown,
        notes=tuple(
            f"{port_class}: the samples do not tell {', '.join(one.not_told_apart)} apart from the other terms"
            for port_class, one in fit.classes.items()
            if one.not_told_apart
        ),
    )


def _all(classes: Mapping[str, FittedPorts], which: str) -> tuple[float, ...]:
    return tuple(error for one in classes.values() for error in getattr(one, which))
