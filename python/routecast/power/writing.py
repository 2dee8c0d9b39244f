"""From power models to the text of their files, which reads back as the same value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.power.form import PUBLISHED_FORM, FormFunction, MonotoneForm, PolynomialForm
from routecast.power.linear import FormPower, LinearPower
from routecast.power.netpowerbench import netpowerbench_text
from routecast.power.piecewise import PiecewisePower
from routecast.power.port import PortClass, PortPower
from routecast.power.software_router import SoftwareRouterPower

if TYPE_CHECKING:
    from routecast.power.model import PowerModel

__all__ = ["SUFFIXES", "file_suffix", "power_model_document", "power_model_text", "write_power_model"]

SUFFIXES = (".toml", ".json", ".yaml", ".yml")
"""Endings of power model files; the last two are NetPowerBench's, for ports only."""


def write_power_model(model: PowerModel, path: str | Path, *, name: str = "", source: str = "") -> None:
    """Write a power model, in the format that the ending of the path asks for.

    Raises
    ------
    routecast.errors.FileProblem
        The ending is none of :data:`SUFFIXES`.
    routecast.errors.ModelProblem
        The model has no place in the format.
    """
    path = Path(path)
    path.write_text(
        power_model_text(model, suffix=file_suffix(path), name=name, source=source), encoding="utf-8"
    )


def power_model_text(model: PowerModel, *, suffix: str = ".toml", name: str = "", source: str = "") -> str:
    """Return the text of a power model's file.

    Raises
    ------
    routecast.errors.ModelProblem
        As :func:`write_power_model`.
    """
    if suffix in {".yaml", ".yml"}:
        if not isinstance(model, PortPower):
            raise ModelProblem(
                "power model",
                [Problem("", "YAML is NetPowerBench's format of port models: write .toml or .json instead")],
            )
        return netpowerbench_text(model)
    document = power_model_document(model, name=name, source=source)
    if suffix == ".json":
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    import tomli_w

    return tomli_w.dumps(document)


def power_model_document(model: PowerModel, *, name: str = "", source: str = "") -> dict[str, Any]:
    """Return what a power model's file says, as plain values.

    Raises
    ------
    routecast.errors.ModelProblem
        It is a model of a kind that has no file.
    """
    head = {"name": name, "scope": model.scope, "source": source}
    head = {key: value for key, value in head.items() if value}
    if isinstance(model, LinearPower):
        return {"model": "linear", **head, "idle": _watts(model.idle_w), "full": _watts(model.full_w)}
    if isinstance(model, FormPower):
        powers = {"idle": _watts(model.idle_w), "active": _watts(model.active_w)}
        return {"model": "form", **head, **powers, "form": _form_document(model.form)}
    if isinstance(model, PiecewisePower):
        return {
            "model": "piecewise",
            **head,
            "interpolation": model.interpolation,
            "load": list(model.load_ratio),
            "power": [_watts(power) for power in model.power_w_at],
        }
    if isinstance(model, SoftwareRouterPower):
        return {
            "model": "router",
            **head,
            "cores": model.cores,
            "gains": list(model.gains),
            "form": _form_document(model.form),
            "state": [
                {
                    "frequency": f"{state.frequency_hz!r} Hz",
                    "idle": _watts(state.idle_w),
                    "active": _watts(state.active_w),
                    "max_rate": f"{state.max_pps!r} pps",
                }
                for state in model.states
            ],
        }
    if isinstance(model, PortPower):
        head.setdefault("name", model.device)
        if model.source:
            head.setdefault("source", model.source)
        document = {
            "model": "port",
            **head,
            "ports": {key: _ports_document(ports) for key, ports in model.classes.items()},
        }
        if model.equipped:
            document["equipped"] = {
                key: {"plugged": one.plugged, "enabled": one.enabled, "up": one.up}
                for key, one in model.equipped.items()
            }
        return document
    raise ModelProblem("power model", [Problem("", f"a {type(model).__name__} has no file")])


def file_suffix(path: Path) -> str:
    """Return the ending of a power model file.

    Raises
    ------
    routecast.errors.FileProblem
        It is none of :data:`SUFFIXES`.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        allowed = f"a power model file ends in {', '.join(SUFFIXES)}"
        raise FileProblem(str(path), [Problem("", f'ends in "{path.suffix}": {allowed}')])
    return suffix


def _form_document(form: FormFunction) -> str | dict[str, Any]:
    if form == PUBLISHED_FORM:
        return "published"
    if isinstance(form, PolynomialForm):
        found = {"kind": "polynomial", "coefficients": list(form.coefficients), "clamped": form.clamped}
    elif isinstance(form, MonotoneForm):
        found = {"kind": "monotone", "knots": list(form.knots), "coefficients": list(form.coefficients)}
    else:
        raise ModelProblem("form function", [Problem("", f"a {type(form).__name__} has no file")])
    return {**found, "source": form.source} if form.source else found


def _ports_document(ports: PortClass) -> Mapping[str, str]:
    units = {
        "base": (ports.base_w, "W"),
        "port": (ports.port_w, "W"),
        "trx_in": (ports.trx_in_w, "W"),
        "trx_up": (ports.trx_up_w, "W"),
        "offset": (ports.offset_w, "W"),
        "bit": (ports.bit_j, "J/bit"),
        "packet": (ports.packet_j, "J/packet"),
    }
    return {key: f"{value!r} {unit}" for key, (value, unit) in units.items() if value is not None}


def _watts(power_w: float) -> str:
    return f"{power_w!r} W"
