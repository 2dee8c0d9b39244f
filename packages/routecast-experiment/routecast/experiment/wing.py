"""The declaration of the wing ``experiment``: its commands, files, schemas and studies."""

from __future__ import annotations

from routecast.wings import FileKind, Wing

__all__ = ["WING"]

WING = Wing(
    package="routecast.experiment",
    commands={"What would it do": {"experiment": "commands:experiment"}},
    file_kinds={"experiment": FileKind("an experiment file", ("experiment",), frozenset({"factor", "response"}))},
    schemas={"experiment": "file:experiment_schema"},
    studies={"experiments": "study:ExperimentsStudy"},
    questions={"Which factors matter?": "experiment FILE"},
    examples={"experiment": "examples/multicore_2_3.experiment.toml --design-only"},
)
