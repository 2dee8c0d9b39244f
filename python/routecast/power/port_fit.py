"""Port models from samples, by weighted robust least squares over all experiments of a class of ports at once.

NetPowerBench fits in steps (base, idle, ports, transceivers, then a line per packet size, then a line through their
slopes), each on the remainder of the last. One regression uses every sample for every term and gives intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from routecast.errors import FitProblem
from routecast.power.port import PortClass, PortPower, PortsInUse
from routecast.power.port_samples import PortSample

__all__ = ["TERMS", "FittedPorts", "PortFit", "fit_ports"]

TERMS = ("base_w", "trx_in_w", "port_w", "trx_up_w", "offset_w", "bit_j", "packet_j")
"""Terms of the model, in the order in which they are taken in: one that adds nothing new is left out."""

_HUBER = 1.345  # 95 % efficient where errors are normal (Huber, Robust Statistics)
_ROUNDS = 60
_SAME = 1e-9

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPorts:
    """What was found for one class of ports.

    Parameters
    ----------
    model : PortClass
    interval : mapping of str to (float, float)
        95 % interval of each fitted term, by its name in :data:`TERMS`.
    not_told_apart : tuple of str
        Terms that the samples cannot separate from the others: they are None in the model.
    samples : int
    error_ratio : tuple of float
        Absolute error over the measured power, of each sample that was fitted.
    held_out_error_ratio : tuple of float
        The same where the sample was left out of the fit, each fifth of those with ports in use in turn; empty with
        too few samples.
    """

    model: PortClass
    interval: Mapping[str, tuple[float, float]]
    not_told_apart: tuple[str, ...]
    samples: int
    error_ratio: tuple[float, ...]
    held_out_error_ratio: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFit:
    """The model of a device and what was found for each class of its ports."""

    model: PortPower
    classes: Mapping[str, FittedPorts]


def fit_ports(device: str, samples: Sequence[PortSample], *, folds: int = 5, scope: str = "wall") -> PortFit:
    """Fit the port model of one device.

    Each class of ports is fitted by itself, with the samples of the bare device: labs measure classes in sessions of
    their own, between which the base of a device may move by watts. Samples weigh by how many measurements they are
    the mean of, and by Huber's weights, so single bad sessions do not bend the fit.

    Parameters
    ----------
    device : str
    samples : sequence of PortSample
    folds : int
        Parts that are left out in turn to state errors on samples that were not fitted.
    scope : str

    Raises
    ------
    routecast.errors.FitProblem
        No ports were measured, or a class has fewer samples than terms that they tell apart.
    """
    names = list(dict.fromkeys(sample.port_class for sample in samples if sample.port_class))
    if not names:
        raise FitProblem(device, "has no sample with ports in use: only the bare device was measured")
    fitted = {
        name: _fit_class(
            f"{device} {name}", [sample for sample in samples if sample.port_class in ("", name)], folds
        )
        for name in names
    }
    model = PortPower(
        device=device,
        classes={name: one.model for name, one in fitted.items()},
        scope=scope,
        source=f"fitted to {len(samples)} samples",
    )
    return PortFit(model=model, classes=fitted)


def _fit_class(name: str, samples: Sequence[PortSample], folds: int) -> FittedPorts:
    design = np.array([_row(sample.use) for sample in samples])
    power = np.array([sample.power_w for sample in samples])
    count = np.array([float(sample.samples) for sample in samples])
    kept = _told_apart(design)
    if power.size <= len(kept):
        terms = ", ".join(TERMS[i] for i in kept)
        raise FitProblem(name, f"{power.size} samples are too few for {len(kept)} terms ({terms})")
    value, weight = _robust(design[:, kept], power, count)
    residual = power - design[:, kept] @ value
    spread = np.sum(weight * residual**2) / (power.size - len(kept))
    scaled = design[:, kept] / _scale(design[:, kept])
    covariance = np.linalg.pinv((scaled * weight[:, None]).T @ scaled) * spread
    half = student.ppf(0.975, power.size - len(kept)) * np.sqrt(np.diag(covariance)) / _scale(design[:, kept])
    found = {TERMS[i]: float(v) for i, v in zip(kept, value, strict=True)}
    return FittedPorts(
        model=PortClass(**found),
        interval={TERMS[i]: (float(v - h), float(v + h)) for i, v, h in zip(kept, value, half, strict=True)},
        not_told_apart=tuple(term for i, term in enumerate(TERMS) if i not in kept),
        samples=power.size,
        error_ratio=tuple(map(float, np.abs(residual) / np.maximum(power, 1e-9))),
        held_out_error_ratio=_held_out(design[:, kept], power, count, folds),
    )


def _row(use: PortsInUse) -> tuple[float, ...]:
    return 1.0, use.plugged, use.enabled, use.up, use.forwarding, use.passed_bps, use.passed_pps


def _told_apart(design: Array) -> list[int]:
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
        found = np.linalg.lstsq(design / scale * root[:, None], power * root, rcond=None)[0] / scale
        settled = np.allclose(found, value, rtol=1e-10, atol=0.0)
        value = found
        if settled:
            break
        residual = np.abs(power - design @ value)
        typical = 1.4826 * float(np.median(residual))
        if typical <= _SAME * float(power.max()):
            break
        weight = count * np.minimum(1.0, _HUBER * typical / np.maximum(residual, 1e-300))
    return value, weight


def _held_out(design: Array, power: Array, count: Array, folds: int) -> tuple[float, ...]:
    """Return the errors of samples left out; a part without which a term is lost is not predicted.

    Samples of the bare device always stay: they are few, and what no port draws is not for ports to predict.
    """
    errors: list[float] = []
    ports = design[:, 1:].any(axis=1)
    place = np.cumsum(ports) - 1
    for part in range(folds):
        out = ports & (place % folds == part)
        inside = design[~out]
        if not out.any() or inside.shape[0] <= design.shape[1]:
            continue
        if len(_told_apart(inside)) < design.shape[1]:
            continue
        value, _ = _robust(inside, power[~out], count[~out])
        errors += list(map(float, np.abs(design[out] @ value - power[out]) / np.maximum(power[out], 1e-9)))
    return tuple(errors)
