"""What the wing ``noc`` adds to routecast."""

from __future__ import annotations

from routecast.wings import CommandGroup, FileKind, Wing

__all__ = ["WING"]

WING = Wing(
    package="routecast.noc",
    commands={
        "What would it do": {
            "noc": CommandGroup(
                "Networks on chip: power of routings and planes, the optimum, the fabric flit by flit.",
                {
                    "power": "commands:power",
                    "optimum": "commands:optimum",
                    "simulate": "commands:simulate",
                    "compare": "commands:compare",
                },
            )
        }
    },
    file_kinds={
        "noc": FileKind(
            "a file of a network on chip",
            ("noc power", "noc optimum", "noc simulate", "noc compare"),
            frozenset({"topology", "traffic"}),
        )
    },
    schemas={"noc": "file:noc_schema"},
    studies={"noc": "study:NocStudy"},
    questions={"What of a network on chip?": "noc"},
    examples={
        "noc power": "examples/toy.noc.toml",
        "noc optimum": "examples/toy.noc.toml",
        "noc simulate": "examples/hotspot.noc.toml",
        "noc compare": "examples/toy.noc.toml",
    },
)
