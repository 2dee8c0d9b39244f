"""Reading power models: ``*.power.toml``, the same as JSON, and NetPowerBench's YAML for ports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.power.file_models import (
    FormModel,
    LinearModel,
    MonotoneTable,
    PiecewiseModel,
    PolynomialTable,
    PortModel,
    RouterPowerModel,
)
from routecast.power.form import PUBLISHED_FORM, FormFunction, MonotoneForm, PolynomialForm
from routecast.power.linear import FormPower, LinearPower
from routecast.power.netpowerbench import parse_netpowerbench, read_netpowerbench
from routecast.power.piecewise import PiecewisePower
from routecast.power.port import PortClass, PortPower, PortsInUse
from routecast.power.software_router import CoreAt, SoftwareRouterPower
from routecast.power.writing import file_suffix
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.toml_file import parse_toml, validated

if TYPE_CHECKING:
    from routecast.power.model import PowerModel

__all__ = ["is_power_model", "parse_power_model", "power_schema", "read_power_model"]

_Table = LinearModel | FormModel | PiecewiseModel | RouterPowerModel | PortModel
_TABLES: dict[str, type[_Table]] = {
    "linear": LinearModel,
    "form": FormModel,
    "piecewise": PiecewiseModel,
    "router": RouterPowerModel,
    "port": PortModel,
}


_KEYS = {"load_ratio": "load", "power_w_at": "power", "states": "state"}
"""What files call the parameters that models find wrong."""

_ROUTER_KEYS = frozenset({"builder", "port", "task"})


def is_power_model(path: str | Path) -> bool:
    """Return whether a file is a power model rather than a router: by its name, else by what it says.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, or is no TOML.
    """
    path = Path(path)
    if ".power." in path.name or path.suffix.lower() in {".json", ".yaml", ".yml"}:
        return True
    said = parse_toml(read_text(path, kind="router file or power model"), str(path))
    return "model" in said and not said.keys() & _ROUTER_KEYS


def read_power_model(path: str | Path) -> PowerModel:
    """Read a power model.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read or says something wrong; all faults with their places.
    """
    path = Path(path)
    suffix = file_suffix(path)
    if suffix in {".yaml", ".yml"}:
        return read_netpowerbench(path)
    return parse_power_model(read_text(path, kind="power model file"), suffix=suffix, subject=str(path))


def parse_power_model(text: str, *, suffix: str = ".toml", subject: str = "power model") -> PowerModel:
    r"""Read a power model from the text of a file with an ending of :data:`~routecast.power.writing.SUFFIXES`.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_power_model`.

    Examples
    --------
    >>> parse_power_model('model = "linear"\nidle = "80 W"\nfull = "200 W"')
    LinearPower(idle_w=80.0, full_w=200.0, scope='server')
    """
    if suffix in {".yaml", ".yml"}:
        return parse_netpowerbench(text, subject=subject)
    data = _json(text, subject) if suffix == ".json" else parse_toml(text, subject)
    kind = data.get("model")
    if not isinstance(kind, str) or kind not in _TABLES:
        if kind is None and data.keys() & _ROUTER_KEYS:
            message = "is a router, no power model: its watts are shown by routecast power table"
            raise FileProblem(subject, [Problem("", message)])
        got = "is missing" if kind is None else f'got "{kind}"'
        raise FileProblem(subject, [Problem("model", f"{got}: {did_you_mean(str(kind), _TABLES)}")])
    table = validated(_TABLES[kind], data, subject)
    try:
        return _built(table, subject)
    except ModelProblem as problem:
        problems = [Problem(_KEYS.get(one.place, one.place), one.message) for one in problem.problems]
        raise FileProblem(subject, problems) from problem


def power_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of power model files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routecast power model file",
        "description": "Watts from load, traffic, frequency or ports; model says which law.",
        **TypeAdapter(_Table).json_schema(),
    }


def _json(text: str, subject: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileProblem(subject, [Problem("", f"is no JSON: {problem}")]) from problem
    if not isinstance(data, dict):
        raise FileProblem(subject, [Problem("", "is no power model: a JSON object is wanted")])
    return data


def _built(table: _Table, subject: str) -> PowerModel:
    if isinstance(table, LinearModel):
        if table.full < table.idle:
            raise ModelProblem(subject, [Problem("full", "is less than idle")])
        return LinearPower(idle_w=table.idle, full_w=table.full, scope=table.scope)
    if isinstance(table, FormModel):
        if table.active < table.idle:
            raise ModelProblem(subject, [Problem("active", "is less than idle")])
        return FormPower(idle_w=table.idle, active_w=table.active, form=_form(table.form), scope=table.scope)
    if isinstance(table, PiecewiseModel):
        return PiecewisePower(
            load_ratio=tuple(table.load),
            power_w_at=tuple(table.power),
            interpolation=table.interpolation,
            scope=table.scope,
        )
    if isinstance(table, RouterPowerModel):
        return SoftwareRouterPower(
            states=tuple(
                CoreAt(frequency_hz=one.frequency, idle_w=one.idle, active_w=one.active, max_pps=one.max_rate)
                for one in table.state
            ),
            cores=table.cores,
            gains=tuple(table.gains),
            form=_form(table.form),
            scope=table.scope,
        )
    return _port(table, subject)


def _port(table: PortModel, subject: str) -> PortPower:
    unknown = [
        Problem(f"equipped.{name}", f"is no kind of port of this file: {did_you_mean(name, table.ports)}")
        for name in table.equipped
        if name not in table.ports
    ]
    if unknown:
        raise ModelProblem(subject, unknown)
    return PortPower(
        device=table.name or Path(subject).name.removesuffix(".power.toml"),
        classes={
            name: PortClass(
                base_w=one.base,
                port_w=one.port,
                trx_in_w=one.trx_in,
                trx_up_w=one.trx_up,
                offset_w=one.offset,
                bit_j=one.bit,
                packet_j=one.packet,
            )
            for name, one in table.ports.items()
        },
        equipped={
            name: PortsInUse(plugged=one.plugged, enabled=one.enabled, up=one.up)
            for name, one in table.equipped.items()
        },
        scope=table.scope,
        source=table.source,
    )


def _form(table: str | PolynomialTable | MonotoneTable) -> FormFunction:
    if isinstance(table, PolynomialTable):
        return PolynomialForm(
            coefficients=tuple(table.coefficients), clamped=table.clamped, source=table.source
        )
    if isinstance(table, MonotoneTable):
        return MonotoneForm(
            knots=tuple(table.knots), coefficients=tuple(table.coefficients), source=table.source
        )
    return PUBLISHED_FORM
