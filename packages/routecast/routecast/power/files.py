"""Reading power models: ``*.power.toml``, the same as JSON, and NetPowerBench's YAML for ports."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, cast

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.power._netpowerbench import netpowerbench_text, parse_netpowerbench, read_netpowerbench
from routecast.power.curve import FormPower, LinearPower, PiecewisePower
from routecast.power.port import PortPower
from routecast.power.software_router import SoftwareRouterPower
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import extended, field, file_fields, key_of, schema_of, without_file_fields
from routecast.quantity.toml_file import parse_toml, validated
from routecast.quantity.whole_file import write_whole

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


_MODEL_CLASSES: dict[str, type] = {
    "linear": LinearPower,
    "form": FormPower,
    "piecewise": PiecewisePower,
    "router": SoftwareRouterPower,
    "port": PortPower,
}
"""Class of a power model by its key ``model`` in files."""


def _file_class(kind: str) -> type:
    """Return the class of a file of one kind: the fields of the model and those that only files have."""
    fields: list[tuple[str, Any, Any]] = [("model", Literal[kind], field("kind of power model"))]
    if kind != "port":
        fields += [
            ("name", str, field("name of the device that was modelled", default="")),
            ("source", str, field("source of the figures", default="")),
        ]
    return extended(_MODEL_CLASSES[kind], fields)


SUFFIXES = (".toml", ".json", ".yaml", ".yml")
"""Endings of power model files; the last two are NetPowerBench's, for ports only."""


def write_power_model(model: PowerModel, path: str | Path, *, name: str = "", source: str = "") -> None:
    """Write a power model, in the format that the ending of the path asks for.

    Raises
    ------
    routecast.errors.FileProblem
        The ending is none of :data:`SUFFIXES`.
    routecast.errors.ModelProblem
        The format cannot hold the model.
    """
    path = Path(path)
    write_whole(path, power_model_text(model, suffix=file_suffix(path), name=name, source=source))


def power_model_text(model: PowerModel, *, suffix: str = ".toml", name: str = "", source: str = "") -> str:
    """Return the text of a power model's file.

    Raises ModelProblem: as :func:`write_power_model`.
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
    """Return the content of a power model's file, as plain values.

    Raises ModelProblem: the model is of a kind that has no file.
    """
    kind = next((kind for kind, model_class in _MODEL_CLASSES.items() if isinstance(model, model_class)), None)
    if kind is None:
        raise ModelProblem("power model", [Problem("", f"a {type(model).__name__} has no file")])
    table = file_fields(model)
    header = {"name": name or table.pop("name", ""), "scope": table.pop("scope"), "source": source}
    header["source"] = table.pop("source", "") or source
    document = {"model": kind, **{key: value for key, value in header.items() if value}, **table}
    return {key: value for key, value in document.items() if value != {}}


def file_suffix(path: Path) -> str:
    """Return the ending of a power model file.

    Raises FileProblem: the ending is none of :data:`SUFFIXES`.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        allowed = f"a power model file ends in {', '.join(SUFFIXES)}"
        raise FileProblem(str(path), [Problem("", f'ends in "{path.suffix}": {allowed}')])
    return suffix


_ROUTER_KEYS = frozenset({"builder", "port", "task"})


def is_power_model(path: str | Path) -> bool:
    """Return whether a file is a power model rather than a router: by its name, else by its content.

    Raises FileProblem: the file cannot be read, or is no TOML.
    """
    path = Path(path)
    if ".power." in path.name or path.suffix.lower() in {".json", ".yaml", ".yml"}:
        return True
    document = parse_toml(read_text(path, kind="router file or power model"), str(path))
    return "model" in document and not document.keys() & _ROUTER_KEYS


def read_power_model(path: str | Path) -> PowerModel:
    """Read a power model.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read or is invalid; the problem lists all faults with their places.
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
    data = _parse_json(text, subject) if suffix == ".json" else parse_toml(text, subject)
    kind = data.get("model")
    if not isinstance(kind, str) or kind not in _MODEL_CLASSES:
        if kind is None and data.keys() & _ROUTER_KEYS:
            message = "is a router file, no power model: `routecast power table` shows its watts"
            raise FileProblem(subject, [Problem("", message)])
        got = "is missing" if kind is None else f'got "{kind}"'
        raise FileProblem(subject, [Problem("model", f"{got}: {did_you_mean(str(kind), _MODEL_CLASSES)}")])
    model_class = _MODEL_CLASSES[kind]
    keys = {
        model_field.name: model_field.metadata.get("alias", key_of(model_field.name))
        for model_field in dataclasses.fields(model_class)
    }
    try:
        model: Any = without_file_fields(validated(_file_class(kind), data, subject), model_class)
    except ModelProblem as problem:
        problems = [Problem(keys.get(fault.place, fault.place), fault.message) for fault in problem.problems]
        raise FileProblem(subject, problems) from problem
    if isinstance(model, PortPower) and not model.device:
        return dataclasses.replace(model, device=Path(subject).name.removesuffix(".power.toml"))
    return cast("PowerModel", model)


def power_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of power model files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routecast power model file",
        "description": "Watts from load, traffic, frequency or ports; the key model names the kind of power model.",
        **schema_of(Union[tuple(map(_file_class, _MODEL_CLASSES))]),  # noqa: UP007
    }


def _parse_json(text: str, subject: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileProblem(subject, [Problem("", f"is no JSON: {problem}")]) from problem
    if not isinstance(data, dict):
        raise FileProblem(subject, [Problem("", "is no power model: give a JSON object")])
    return data
