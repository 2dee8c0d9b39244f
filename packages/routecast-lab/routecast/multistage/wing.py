"""The declaration of the wing ``multistage``."""

from __future__ import annotations

from routecast.wings import CommandGroup, FileKind, Wing

__all__ = ["WING"]

_VERBS = (*("status", "events", "drain", "add", "remove", "weight"), *("fail", "restore", "trace", "audit", "down"))

WING = Wing(
    package="routecast.multistage",
    commands={
        "Measure": {
            "multistage": CommandGroup(
                "Set up a router of many machines in network namespaces, change it, and inject faults.",
                {name: f"commands:{name}" for name in ("predict", "up")} | {name: f"verbs:{name}" for name in _VERBS},
            )
        }
    },
    file_kinds={
        "multistage": FileKind(
            "a multistage file", ("multistage predict", "multistage up"), frozenset({"balancer", "segment"})
        )
    },
    schemas={"multistage": "reading:multistage_schema"},
    studies={"multistage": "study:MultistageStudy"},
    questions={"How do many machines route as one?": "multistage"},
    examples={
        "multistage predict": 'examples/demo.multistage.toml --load "20 kpps"',
        "multistage up": "examples/demo.multistage.toml --background",
        "multistage drain": 'br0 --idle "1 s"',
        "multistage add": "br3 --weight 2",
        "multistage remove": "br0",
        "multistage weight": "br1 0.5",
        "multistage fail": "br1 --kind hang",
        "multistage restore": "br1",
        "multistage trace": "udp 198.18.1.2:1024 198.19.1.2:7",
    },
    thin_modules=frozenset({"verbs"}),
)
