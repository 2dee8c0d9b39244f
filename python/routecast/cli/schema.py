"""``routecast schema``: the JSON Schema of a kind of file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from routecast.cli.console import print_json

__all__ = ["Kind", "schema"]


class Kind(StrEnum):
    """Kinds of files that people write, and those that programs read."""

    ROUTER = "router"
    STUDY = "study"
    WIRE_STUDY = "wire_study"
    FUNCTION_STUDY = "function_study"
    CLUSTER_STUDY = "cluster_study"
    NAPI_STUDY = "napi_study"
    NOC_STUDY = "noc_study"
    CURVE_STUDY = "curve_study"
    EXPERIMENTS_STUDY = "experiments_study"
    TESTBED = "testbed"
    HARDWARE = "hardware"
    BENCHMARK = "benchmark"
    FUNCTION = "function"
    EXPERIMENT = "experiment"
    CLUSTER = "cluster"
    PLACEMENT = "placement"
    POWER = "power"
    NOC = "noc"
    VIRTUALISATION = "virtualisation"
    PROCESSOR = "processor"


def schema(
    kind: Annotated[Kind, typer.Argument(help="Kind of file: *.KIND.toml; or benchmark.json.")],
) -> None:
    """Print the JSON Schema of a kind of file, for editors and checks."""
    if kind is Kind.STUDY or kind.endswith("_study"):
        from routecast.study.reading import study_schema

        print_json(study_schema(kind))
    elif kind is Kind.BENCHMARK:
        from routecast.report.benchmark import benchmark_schema

        print_json(benchmark_schema())
    elif kind is Kind.FUNCTION:
        from routecast.function.catalogue import function_schema

        print_json(function_schema())
    elif kind is Kind.HARDWARE:
        from routecast.hardware.files import hardware_schema

        print_json(hardware_schema())
    elif kind is Kind.EXPERIMENT:
        from routecast.experiment.file.reading import experiment_schema

        print_json(experiment_schema())
    elif kind is Kind.CLUSTER:
        from routecast.plan.cluster.reading import cluster_schema

        print_json(cluster_schema())
    elif kind is Kind.PLACEMENT:
        from routecast.plan.placement.reading import placement_schema

        print_json(placement_schema())
    elif kind is Kind.POWER:
        from routecast.power.files import power_schema

        print_json(power_schema())
    elif kind is Kind.NOC:
        from routecast.noc.file.reading import noc_schema

        print_json(noc_schema())
    elif kind is Kind.VIRTUALISATION:
        from routecast.router.virtual.catalogue import technology_schema

        print_json(technology_schema())
    elif kind is Kind.PROCESSOR:
        from routecast.router.network_processor.catalogue import processor_schema

        print_json(processor_schema())
    elif kind is Kind.TESTBED:
        from routecast.testbed.reading import bed_schema

        print_json(bed_schema())
    else:
        from routecast.router.files import router_schema

        print_json(router_schema())
