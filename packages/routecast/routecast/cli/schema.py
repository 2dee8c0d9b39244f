"""``routecast schema``: the JSON Schema of a kind of file."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer

from routecast.cli.console import print_json
from routecast.study.reading import study_schema, study_schema_names
from routecast.wings import EXTRAS, not_installed, wings

__all__ = ["Kind", "schema"]

_CORE = {
    "router": "router.files:router_schema",
    "hardware": "hardware.catalogue:hardware_schema",
    "function": "function.catalogue:function_schema",
    "power": "power.files:power_schema",
}
"""Kinds of files that people write, and those that programs read, as ``module:function``."""


def _schema_of(package: str, target: str) -> dict[str, Any]:
    module, _, function = target.partition(":")
    return getattr(import_module(f"{package}.{module}"), function)()  # type: ignore[no-any-return]


def _refuse(kind: str, extra: str) -> dict[str, Any]:
    raise not_installed(f"the schema of {kind}", extra)


_SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    **{kind: partial(_schema_of, "routecast", target) for kind, target in _CORE.items()},
    **{kind: partial(_schema_of, wing.package, target) for wing in wings() for kind, target in wing.schemas.items()},
    **{name: partial(study_schema, name) for name in study_schema_names()},
}
for _extra, _names in EXTRAS.items():
    for _kind in _names["files"]:
        _SCHEMAS.setdefault(_kind, partial(_refuse, _kind, _extra))

Kind = StrEnum("Kind", {kind.upper(): kind for kind in _SCHEMAS})  # type: ignore[misc]


def schema(kind: Annotated[Kind, typer.Argument(help="Kind of file: *.KIND.toml; or benchmark.json.")]) -> None:
    """Print the JSON Schema of a kind of file, for editors and checks."""
    print_json(_SCHEMAS[kind.value]())
