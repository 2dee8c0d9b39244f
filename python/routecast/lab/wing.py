"""The declaration of the lab: what the core calls where test beds and benchmarks are installed."""

from __future__ import annotations

from routecast.wings import Wing

__all__ = ["WING"]

WING = Wing(
    package="routecast.lab",
    parts={
        "function --counts": "cli.function_run:count",
        "function --run": "cli.function_run:run",
        "a measurement": "testbed:open_testbed",
        "a table of trials": "benchmark.exchange:read_records",
        "a table of measurements": "benchmark.exchange:read_measured_table",
    },
)
