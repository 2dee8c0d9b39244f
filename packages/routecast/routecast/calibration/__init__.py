"""Calibrate a router from a few measured points, and validate it on others.

Names are loaded when they are first used, because fitting needs NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from routecast.lazy import lazy_names

if TYPE_CHECKING:
    from routecast.calibration._discrepancy import REPEATABILITY_RATIO as REPEATABILITY_RATIO
    from routecast.calibration._discrepancy import Measurements as Measurements
    from routecast.calibration._discrepancy import Scales as Scales
    from routecast.calibration._discrepancy import is_capped as is_capped
    from routecast.calibration._fit import FittedRouter as FittedRouter
    from routecast.calibration._fit import evidence_by_scales as evidence_by_scales
    from routecast.calibration._fit import fit as fit
    from routecast.calibration._fit import shared_poll as shared_poll
    from routecast.calibration._posterior import Posterior as Posterior
    from routecast.calibration._posterior import sample_posterior as sample_posterior
    from routecast.calibration._validate import Validation as Validation
    from routecast.calibration._validate import router_file_of as router_file_of
    from routecast.calibration._validate import validate as validate
    from routecast.calibration.eq5 import Eq5Router as Eq5Router
    from routecast.calibration.eq5 import fit_eq5 as fit_eq5
    from routecast.calibration.score import Prediction as Prediction

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "_discrepancy": "REPEATABILITY_RATIO Measurements Scales is_capped",
        "_fit": "FittedRouter evidence_by_scales fit shared_poll",
        "_posterior": "Posterior sample_posterior",
        "_validate": "Validation router_file_of validate",
        "eq5": "Eq5Router fit_eq5",
        "score": "Prediction",
    },
)
