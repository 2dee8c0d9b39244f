"""Calibrate a router from a few measured points, validate it on others, and keep the accuracy board.

Names are loaded when they are first used, because fitting needs NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routecast.calibrate.eq5 import Eq5Router, fit_eq5
    from routecast.calibrate.fit import FittedRouter, fit
    from routecast.calibrate.score import Prediction
    from routecast.calibrate.validate import Validation, validate

__all__ = ["Eq5Router", "FittedRouter", "Prediction", "Validation", "fit", "fit_eq5", "validate"]

_HOMES = {
    "Eq5Router": "eq5",
    "FittedRouter": "fit",
    "Prediction": "score",
    "Validation": "validate",
    "fit": "fit",
    "fit_eq5": "eq5",
    "validate": "validate",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"routecast.calibrate.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
