"""``routecast schema``: the JSON Schema of a kind of file."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from routecast.cli.console import print_json

__all__ = ["Kind", "schema"]

SCHEMAS = {
    "router": "router.files:router_schema",
    "study": "study.reading:study_schema study",
    "wire_study": "study.reading:study_schema wire_study",
    "multistage_study": "study.reading:study_schema multistage_study",
    "function_study": "study.reading:study_schema function_study",
    "cluster_study": "study.reading:study_schema cluster_study",
    "napi_study": "study.reading:study_schema napi_study",
    "noc_study": "study.reading:study_schema noc_study",
    "curve_study": "study.reading:study_schema curve_study",
    "experiments_study": "study.reading:study_schema experiments_study",
    "testbed": "testbed.reading:bed_schema",
    "hardware": "hardware.catalogue:hardware_schema",
    "benchmark": "report.benchmark.schema:benchmark_schema",
    "function": "function.catalogue:function_schema",
    "experiment": "experiment.file.reading:experiment_schema",
    "cluster": "plan.cluster.reading:cluster_schema",
    "placement": "plan.placement.reading:placement_schema",
    "power": "power.files:power_schema",
    "multistage": "multistage.reading:multistage_schema",
    "noc": "noc.file.reading:noc_schema",
    "virtualisation": "router.virtual.catalogue:technology_schema",
    "processor": "router.network_processor.catalogue:processor_schema",
}
"""Kinds of files that people write, and those that programs read: module, function, its argument if it has one."""

Kind = StrEnum("Kind", {kind.upper(): kind for kind in SCHEMAS})  # type: ignore[misc]


def schema(kind: Annotated[Kind, typer.Argument(help="Kind of file: *.KIND.toml; or benchmark.json.")]) -> None:
    """Print the JSON Schema of a kind of file, for editors and checks."""
    place, *arguments = SCHEMAS[kind.value].split()
    module, _, function = place.partition(":")
    print_json(getattr(import_module(f"routecast.{module}"), function)(*arguments))
