"""The declaration of the lab: its files and studies, and what the core calls where it is installed.

Its commands are in the panels of :mod:`routecast.cli.app`, among those of the core.
"""

from __future__ import annotations

from routecast.wings import FileKind, Wing

__all__ = ["WING"]

WING = Wing(
    package="routecast.lab",
    file_kinds={
        "testbed": FileKind("a test bed file", ("testbed up", "measure --testbed"), frozenset({"kind", "port"}))
    },
    schemas={"testbed": "testbed.reading:bed_schema", "benchmark": "benchmark.schema:benchmark_schema"},
    studies={
        "functions": "study.functions:FunctionStudy",
        "latency": "study.latency:LatencyStudy",
        "wire": "study:WireStudy",
    },
    parts={
        "function --counts": "cli.function_run:count",
        "function --run": "cli.function_run:run",
        "a measurement": "testbed:open_testbed",
        "a table of trials": "benchmark.exchange:read_records",
        "a probe of this host": "_lab:probe_host",
        "a run of a network function": "_lab:run_function",
        "a run of a workload": "_lab:run_workload",
        "a trace of a workload": "_lab:trace_workload",
        "errors of the probe": "_lab:ProbeError",
        "a table of measurements": "benchmark.exchange:read_measured_table",
    },
)
