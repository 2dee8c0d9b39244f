"""Reading power models: ``*.power.toml``, the same as JSON, and NetPowerBench's YAML for ports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.power.curve import FormPower, LinearPower, PiecewisePower
from routecast.power.form import PUBLISHED_FORM, FormFunction, MonotoneForm, PolynomialForm
from routecast.power.netpowerbench import netpowerbench_text, parse_netpowerbench, read_netpowerbench
from routecast.power.port import PortClass, PortPower, PortsInUse
from routecast.power.software_router import CoreAt, SoftwareRouterPower
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, Number, Power
from routecast.quantity.file_model import FileModel
from routecast.quantity.schema import schema_of
from routecast.quantity.toml_file import parse_toml, validated

if TYPE_CHECKING:
    from routecast.power.model import PowerModel

__all__ = [
    "file_suffix",
    "is_power_model",
    "parse_power_model",
    "power_model_document",
    "power_schema",
    "read_power_model",
    "write_power_model",
]


# Tables of power model files (``*.power.toml``), as people write them.


Ratio = Annotated[float, Field(ge=0.0, le=1.0, strict=True, allow_inf_nan=False)]


class PolynomialTable(FileModel):
    """A form function that is a polynomial."""

    kind: Literal["polynomial"]
    coefficients: list[Number] = Field(min_length=1, max_length=33, description="a_0, a_1, …")
    clamped: bool = Field(default=False, description="hold it within 0..1")
    source: str = ""


class MonotoneTable(FileModel):
    """A form function that is a monotone cubic B-spline."""

    kind: Literal["monotone"]
    knots: list[Ratio] = Field(min_length=8, max_length=200, description="four times 0, rising, four times 1")
    coefficients: list[Ratio] = Field(min_length=4, max_length=196, description="from 0 to 1, never falling")
    source: str = ""


def _form_kind(form: object) -> str | None:
    kind = form.get("kind") if isinstance(form, dict) else form if form == "published" else None
    return kind if isinstance(kind, str) else None


FormTable = Annotated[
    Annotated[Literal["published"], Tag("published")]
    | Annotated[PolynomialTable, Tag("polynomial")]
    | Annotated[MonotoneTable, Tag("monotone")],
    Discriminator(
        _form_kind,
        custom_error_type="value",
        custom_error_message='is no form function: it is "published", or a table whose kind is "polynomial" or '
        '"monotone"',
    ),
]


class _Model(FileModel):
    """What every power model file says."""

    name: str = Field(default="", description="what was modelled")
    scope: str = Field(default="server", description="what the watts cover: package, server, wall")
    source: str = Field(default="", description="where the figures come from")


class LinearModel(_Model):
    """Power linear in load."""

    model: Literal["linear"]
    idle: Power = Field(description='power without load, such as "80 W"')
    full: Power = Field(description='power at full load, such as "200 W"')


class FormModel(_Model):
    """Power that follows a form function between idle and active power (paper 003, eq. 5)."""

    model: Literal["form"]
    idle: Power = Field(description='power without load, such as "80 W"')
    active: Power = Field(description='power of a core that is never idle, such as "200 W"')
    form: FormTable = Field(default="published", description='"published", or a table')


class PiecewiseModel(_Model):
    """Power interpolated between loads."""

    model: Literal["piecewise"]
    interpolation: Literal["linear", "smooth"] = "smooth"
    load: list[Ratio] = Field(min_length=2, max_length=1000, description="loads, 0..1, rising")
    power: list[Power] = Field(min_length=2, max_length=1000, description='power at each, such as "80 W"')


class RouterPowerModel(_Model):
    """A software router by frequency and cores (paper 003, eqs. 5-10)."""

    model: Literal["router"]
    cores: Count = Field(default=1, ge=1, le=4096, description="cores of the machine")
    gains: list[Number] = Field(
        default_factory=lambda: [1.0], description="throughput of 1, 2, … cores over that of one, measured"
    )
    form: FormTable = Field(default="published", description='"published", or a table')
    state: list[CoreAt] = Field(min_length=1, description="one for each frequency, rising")


class EquippedTable(FileModel):
    """How many ports of a kind are plugged in, switched on, and up."""

    plugged: Count = Field(default=0, ge=0)
    enabled: Count = Field(default=0, ge=0)
    up: Count = Field(default=0, ge=0)


class PortModel(_Model):
    """Network gear with ports."""

    model: Literal["port"]
    scope: str = "wall"
    ports: dict[str, PortClass] = Field(min_length=1, description='by kind, such as "QSFP/PCC/100G"')
    equipped: dict[str, EquippedTable] = Field(default_factory=dict)


# From power models to the text of their files, which reads back as the same value.


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
    path.write_text(power_model_text(model, suffix=file_suffix(path), name=name, source=source), encoding="utf-8")


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
    r"""Read a power model from the text of a file with an ending of :data:`~routecast.power.files.SUFFIXES`.

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
        **schema_of(_Table),
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
            states=tuple(table.state),
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
        classes=table.ports,
        equipped={
            name: PortsInUse(plugged=one.plugged, enabled=one.enabled, up=one.up)
            for name, one in table.equipped.items()
        },
        scope=table.scope,
        source=table.source,
    )


def _form(table: str | PolynomialTable | MonotoneTable) -> FormFunction:
    if isinstance(table, PolynomialTable):
        return PolynomialForm(coefficients=tuple(table.coefficients), clamped=table.clamped, source=table.source)
    if isinstance(table, MonotoneTable):
        return MonotoneForm(knots=tuple(table.knots), coefficients=tuple(table.coefficients), source=table.source)
    return PUBLISHED_FORM
