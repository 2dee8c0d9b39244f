"""The software router's power model from samples: Phi_idle(f), Phi_active(f), r_max(f), gains, and the form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from routecast.errors import FitProblem
from routecast.power.form import PUBLISHED_FORM, FormFunction
from routecast.power.form_fit import fit_monotone_form, fit_polynomial_form
from routecast.power.load_fit import LoadFit, Parameter, fit_and_predict, least_squares
from routecast.power.load_samples import LoadSample
from routecast.power.model import PowerModel
from routecast.power.software_router import CoreAt, SoftwareRouterPower

__all__ = ["FormKind", "fit_router"]

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
    """Fit the paper's model of a software router (paper 003, eqs. 5-10).

    r_max(f) is the greatest throughput of one core at f; the gain of n cores the greatest of n over it, as a mean
    over frequencies; Phi_idle and Phi_active come from a line through the powers over the form function.

    Parameters
    ----------
    device : str
        For messages.
    samples : sequence of LoadSample
        With throughput and frequency; without cores they count as one core's.
    form : {"published", "monotone", "polynomial"}
        The form function: the paper's, or fitted to the samples of one core, shifted and normalised as in sec. V-A.
    cores : int or None
        Cores of the machine, those that never forward included; None for the most that forwarded.
    points : sequence of float or None
        As :func:`routecast.power.load_fit.fit_load`.
    scope : str

    Raises
    ------
    routecast.errors.FitProblem
        A throughput or a frequency is missing, or there are too few samples.
    """
    for sample in samples:
        if sample.frequency_hz is None or math.isnan(sample.rate_pps):
            raise FitProblem(device, "the router's model needs rate_pps and frequency_hz of every sample")
    most = max(sample.cores or 1 for sample in samples)
    if cores is not None and cores < most:
        raise FitProblem(device, f"got {cores} cores of the machine, and samples of {most} that forward")

    def fitter(chosen: Sequence[LoadSample]) -> tuple[PowerModel, Mapping[str, Parameter]]:
        return _fitted(device, chosen, form, cores or most, scope)

    return fit_and_predict(device, samples, fitter, points)


def _fitted(
    device: str, samples: Sequence[LoadSample], kind: FormKind, cores: int, scope: str
) -> tuple[PowerModel, Mapping[str, Parameter]]:
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
        here = [one for one in samples if one.frequency_hz == clock]
        busy = [_busy(one, gains, alone[clock], law) for one in here]
        found = least_squares(
            f"{device} at {clock / 1e9:g} GHz",
            {"idle_w": [float(cores)] * len(here), "span_w": busy},
            [one.power_w for one in here],
        )
        idle, span = found["idle_w"], found["span_w"]
        if idle.value < 0.0 or span.value < 0.0:
            raise FitProblem(
                device,
                f"at {clock / 1e9:g} GHz the fit gives {idle.value:.4g} W idle and {span.value:.4g} W more "
                "when active: neither may be negative; look at the samples",
            )
        states.append(
            CoreAt(
                frequency_hz=clock,
                idle_w=idle.value,
                active_w=idle.value + span.value,
                max_pps=alone[clock],
            )
        )
        at = f"at {clock / 1e9:g} GHz"
        parameters[f"idle_w {at}"] = idle
        parameters[f"active_w - idle_w {at}"] = span
        parameters[f"max_pps {at}"] = Parameter(value=alone[clock])
    parameters |= {f"gain of {n} cores": Parameter(value=g) for n, g in enumerate(gains, start=1) if n > 1}
    model = SoftwareRouterPower(states=tuple(states), cores=cores, gains=gains, form=law, scope=scope)
    return model, parameters


def _gains(greatest: Mapping[tuple[float, int], float], alone: Mapping[float, float]) -> tuple[float, ...]:
    """Return the gains of 1, 2, … cores, up to the first number that was not measured, as means over clocks."""
    gains = [1.0]
    while found := [rate / alone[clock] for (clock, n), rate in greatest.items() if n == len(gains) + 1]:
        gains.append(sum(found) / len(found))
    return tuple(gains)


def _busy(sample: LoadSample, gains: Sequence[float], alone_pps: float, form: FormFunction) -> float:
    """Return how many cores' worth of dynamic power a sample takes (eq. 9)."""
    forwarding = sample.cores or 1
    share = gains[forwarding - 1] / forwarding * alone_pps
    return forwarding * form.at(min(sample.rate_pps / forwarding / share, 1.0))


def _form(
    device: str, samples: Sequence[LoadSample], alone: Mapping[float, float], kind: FormKind
) -> FormFunction:
    if kind == "published":
        return PUBLISHED_FORM
    places: list[float] = []
    shares: list[float] = []
    for clock, rate in alone.items():
        here = [one for one in samples if one.frequency_hz == clock and (one.cores or 1) == 1]
        still = [one.power_w for one in here if one.rate_pps == 0.0]
        if not still:
            raise FitProblem(
                device, f"has no sample without throughput at {clock / 1e9:g} GHz: the form needs one"
            )
        idle = sum(still) / len(still)
        full = [one.power_w for one in here if one.rate_pps == rate]
        span = sum(full) / len(full) - idle
        if span <= 0.0:
            raise FitProblem(device, f"at {clock / 1e9:g} GHz power does not rise with throughput")
        places += [one.rate_pps / rate for one in here]
        shares += [(one.power_w - idle) / span for one in here]
    try:
        return (
            fit_monotone_form(places, shares) if kind == "monotone" else fit_polynomial_form(places, shares)
        )
    except FitProblem as problem:
        raise FitProblem(device, problem.message) from problem
