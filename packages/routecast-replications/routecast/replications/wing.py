"""The declaration of the wing ``replications``: its kinds of studies."""

from __future__ import annotations

from routecast.wings import Wing

__all__ = ["WING"]

WING = Wing(package="routecast.replications", studies={"curves": "curves:CurveStudy", "napi": "napi:NapiStudy"})
