"""Priors of an unmeasured machine from other machines: weights of laws, discrepancies from them, unseen ceilings.

They are learnt from published measurements (``routecast.replications.accuracy.learning``), of all sources and without
each, so that a source can be predicted with priors that have not seen it (``data/calibration/priors.json``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from routecast.calibration._discrepancy import Scales
from routecast.calibration.ceilings import Hazards

__all__ = ["PRIORS", "Priors", "read_priors", "sources"]

PRIORS: Final = Path(str(files("routecast") / "data" / "calibration" / "priors.json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Prior weight of each law, prior scales of the discrepancy, and hazards of unseen ceilings."""

    laws: Mapping[str, float]
    scales: Scales
    hazards: Hazards = field(default_factory=Hazards)


def sources() -> tuple[str, ...]:
    """Return the tables from which the priors were learnt; each can be left out."""
    return tuple(json.loads(PRIORS.read_text(encoding="utf-8"))["without"])


@lru_cache
def read_priors(without: str = "") -> Priors:
    """Return the priors from all sources, or from all but one, named by its table in ``data/measured``.

    A table without priors of its own gives those of all sources.
    """
    document = json.loads(PRIORS.read_text(encoding="utf-8"))
    data = document["without"].get(without, document["all"])
    return Priors(laws=data["laws"], scales=Scales(**data["scales"]), hazards=Hazards(**data.get("hazards", {})))
