"""Calibrate a router from a few measured points, validate it on others, and keep the accuracy board.

Names are loaded when they are first used, because fitting needs NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routecast.calibration._fit import FittedRouter, fit
    from routecast.calibration._validate import Row, Validation, router_file_of, validate
    from routecast.calibration.eq5 import Eq5Router, fit_eq5
    from routecast.calibration.score import Prediction

__all__ = [
    "Eq5Router",
    "FittedRouter",
    "Prediction",
    "Row",
    "Validation",
    "fit",
    "fit_eq5",
    "router_file_of",
    "validate",
]

# No submodule has the name of a function: importing it would put the module in the function's place.
_HOMES = {
    "Eq5Router": "eq5",
    "FittedRouter": "_fit",
    "Prediction": "score",
    "Row": "_validate",
    "Validation": "_validate",
    "fit": "_fit",
    "fit_eq5": "eq5",
    "router_file_of": "_validate",
    "validate": "_validate",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"routecast.calibration.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
