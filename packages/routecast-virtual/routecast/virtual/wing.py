"""The declaration of the wing ``virtual``: its builders of router files, and the failures of ``simulate``."""

from __future__ import annotations

from routecast.wings import Wing

__all__ = ["WING"]

WING = Wing(
    package="routecast.virtual",
    schemas={"virtualisation": "catalogue:technology_schema"},
    builders={
        "virtual": "reading:VirtualRouter",
        "parallel": "reading:ParallelRouter",
        "multistage": "multistage.reading:MultistageRouter",
    },
    parts={"simulate --fail": "failure_options:failures_of", "simulate --switch-off": "failure_options:failures_of"},
)
