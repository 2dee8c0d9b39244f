"""``routecast schema``: the JSON Schema of a kind of file."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer

from routecast.cli.console import print_json
from routecast.study.reading import study_schema, study_schema_names
from routecast.wings import wings

__all__ = ["Kind", "schema"]

_CORE = {
    "router": "router.files:router_schema",
    "testbed": "lab.testbed.reading:bed_schema",
    "hardware": "hardware.catalogue:hardware_schema",
    "benchmark": "lab.benchmark.schema:benchmark_schema",
    "function": "function.catalogue:function_schema",
    "power": "power.files:power_schema",
    "virtualisation": "router.virtual.catalogue:technology_schema",
    "processor": "router.network_processor.catalogue:processor_schema",
}
"""Kinds of files that people write, and those that programs read, as ``module:function``."""


def _schema_of(package: str, target: str) -> dict[str, Any]:
    module, _, function = target.partition(":")
    return getattr(import_module(f"{package}.{module}"), function)()  # type: ignore[no-any-return]


_SCHEMAS = {
    **{kind: partial(_schema_of, "routecast", target) for kind, target in _CORE.items()},
    **{kind: partial(_schema_of, wing.package, target) for wing in wings() for kind, target in wing.schemas.items()},
    **{name: partial(study_schema, name) for name in study_schema_names()},
}

Kind = StrEnum("Kind", {kind.upper(): kind for kind in _SCHEMAS})  # type: ignore[misc]


def schema(kind: Annotated[Kind, typer.Argument(help="Kind of file: *.KIND.toml; or benchmark.json.")]) -> None:
    """Print the JSON Schema of a kind of file, for editors and checks."""
    print_json(_SCHEMAS[kind.value]())
