"""The JSON Schema of ``benchmark.json``, derived from the classes of the result and the texts of their fields.

It is published as ``data/schemas/benchmark.schema.json``. This command writes the file::

    routecast schema benchmark > packages/routecast/routecast/data/schemas/benchmark.schema.json
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.values import BenchmarkResult

__all__ = ["benchmark_schema"]

Json = dict[str, Any]


def benchmark_schema() -> Json:
    """Return the schema of :meth:`BenchmarkResult.to_json`, which writes an unknown number (NaN) as null."""
    definitions: dict[str, Json] = {}
    root = _object(BenchmarkResult, definitions)
    properties = root["properties"]
    properties["trials"] = {
        "type": "integer",
        "minimum": 0,
        "description": "Number of trials; trials.parquet has a line for each.",
    }
    for name in ("TrialRecord", "Trial", "Delay", "Resource", "Bottleneck"):
        definitions.pop(name, None)
    root["properties"] = {"schema": {"const": "routecast-benchmark/1"}, **properties}
    root["required"] = ["schema", *root["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:routecast:benchmark:1",
        "title": "Result of a routecast benchmark (RFC 2544 and its updates)",
        **root,
        "$defs": definitions,
    }


def _object(kind: type, definitions: dict[str, Json]) -> Json:
    hints = get_type_hints(kind)
    properties: Json = {}
    for field in dataclasses.fields(kind):
        if field.name == "by_procedure":
            properties |= _found(definitions)
            continue
        schema = _of(hints[field.name], definitions)
        meaning = field.metadata.get("description")
        if meaning:
            schema = {**schema, "description": _plain(meaning)}
        properties[field.name] = schema
    return {
        "type": "object",
        "description": _plain(inspect.getdoc(kind) or "").split("\n\n", maxsplit=1)[0].replace("\n", " "),
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _found(definitions: dict[str, Json]) -> Json:
    meaning = "None where the procedure was not chosen or could not run: not_run names these."
    return {
        name: {**_of(procedure.result | None, definitions), "description": meaning}
        for name, procedure in PROCEDURES.items()
    }


def _of(hint: Any, definitions: dict[str, Json]) -> Json:
    origin, arguments = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Union or origin is types.UnionType:
        parts = [_of(part, definitions) for part in arguments if part is not type(None)]
        return {"anyOf": [*parts, {"type": "null"}]} if type(None) in arguments else {"anyOf": parts}
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": _of(arguments[0], definitions)}
        count = len(arguments)
        items = [_of(part, definitions) for part in arguments]
        return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}
    if origin is not None and issubclass(origin, Mapping):
        value = _of(arguments[1], definitions)
        return {"type": "object", "additionalProperties": value} if value else {"type": "object"}
    if hint is float:
        return {"type": ["number", "null"]}
    return {} if hint is object else {"type": {int: "integer", str: "string", bool: "boolean"}[hint]}


def _plain(text: str) -> str:
    return re.sub(r":\w+:`([^`]*)`", r"\1", text).replace("``", "")
