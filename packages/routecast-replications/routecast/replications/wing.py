"""The declaration of the wing ``replications``: its kind of study."""

from __future__ import annotations

from routecast.wings import Wing

__all__ = ["WING"]

WING = Wing(package="routecast.replications", studies={"napi": "napi:NapiStudy"})
