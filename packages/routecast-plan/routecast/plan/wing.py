"""The declaration of the wing ``plan``."""

from __future__ import annotations

from routecast.wings import CommandGroup, FileKind, Wing

__all__ = ["WING"]

WING = Wing(
    package="routecast.plan",
    commands={
        "How many, which, where": {
            "plan": CommandGroup(
                "Plan: which machines to buy, when to switch them on, where to place functions.",
                {"cluster": "commands:cluster", "mapping": "commands:mapping", "placement": "commands:placement"},
            )
        }
    },
    file_kinds={
        "cluster": FileKind("a cluster file", ("plan cluster",), frozenset({"group", "traffic"})),
        "placement": FileKind("a placement file", ("plan placement",), frozenset({"element", "server"})),
    },
    schemas={
        "cluster": "cluster.reading:cluster_schema",
        "placement": "placement.reading:placement_schema",
        "processor": "network_processor.catalogue:processor_schema",
    },
    builders={"network_processor": "network_processor.reading:NetworkProcessorRouter"},
    studies={"cluster": "cluster.study:ClusterStudy"},
    parts={"a traffic series": "series.reading:read_series"},
    questions={"Which machines, which cores, where?": "plan"},
    examples={
        "day": 'examples/green.router.toml --profile geant --step "1 h" --peak "4 Mpps" --each "20 ms"',
        "plan cluster": "examples/li2012.cluster.toml",
        "plan mapping": "examples/ixp2850-mapping.router.toml",
        "plan placement": "examples/vnf.placement.toml",
        "power day": 'examples/green.router.toml --profile geant --step "1 h" --peak "1 Gbit/s"',
        "power optimise": 'examples/green.router.toml --target "p99 < 100 us"',
    },
)
