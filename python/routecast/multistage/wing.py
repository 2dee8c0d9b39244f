"""What the wing ``multistage`` adds to routecast."""

from __future__ import annotations

from routecast.wings import CommandGroup, FileKind, Wing

__all__ = ["WING"]

WING = Wing(
    package="routecast.multistage",
    commands={
        "Measure": {
            "multistage": CommandGroup(
                "A router of many machines, in network namespaces: put it up, watch it, change it, "
                "let parts of it fail.",
                {
                    name: f"commands:{name}"
                    for name in (
                        "predict",
                        "up",
                        "status",
                        "drain",
                        "add",
                        "remove",
                        "weight",
                        "fail",
                        "restore",
                        "trace",
                        "audit",
                        "down",
                    )
                },
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
)
