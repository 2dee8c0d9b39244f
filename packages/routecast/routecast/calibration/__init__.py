"""Calibrate a router from a few measured points, validate it on others, and keep the accuracy board.

Names are loaded when they are first used, because fitting needs NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from routecast.lazy import lazy_names

if TYPE_CHECKING:
    from routecast.calibration._fit import FittedRouter as FittedRouter
    from routecast.calibration._fit import fit as fit
    from routecast.calibration._validate import Validation as Validation
    from routecast.calibration._validate import router_file_of as router_file_of
    from routecast.calibration._validate import validate as validate
    from routecast.calibration.eq5 import Eq5Router as Eq5Router
    from routecast.calibration.eq5 import fit_eq5 as fit_eq5
    from routecast.calibration.score import Prediction as Prediction

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "_fit": "FittedRouter fit",
        "_validate": "Validation router_file_of validate",
        "eq5": "Eq5Router fit_eq5",
        "score": "Prediction",
    },
)
