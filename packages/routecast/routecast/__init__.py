"""routecast measures, predicts and plans software routers.

A router is described once, as data (:mod:`routecast.router`), and receives an offered load (:mod:`routecast.load`).
Evaluators compute or measure its throughput, loss and latency at a load (:mod:`routecast.evaluate`), calibration
estimates the parameters of a router from a few measured points (:mod:`routecast.calibration`), and a study combines
these steps (:mod:`routecast.study`).

``import routecast as rc`` has a function for each step: ``rc.read`` and ``rc.multicore`` make routers, ``rc.solve``,
``rc.simulate`` and ``rc.measure`` evaluate a load, ``rc.sweep`` many loads. ``rc.calibrate`` fits a router to a table
of measurements; the result predicts throughputs and the number of cores that a target needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from routecast.version import VERSION

if TYPE_CHECKING:
    from routecast.api import Calibration, Router, calibrate, measure, multicore, read, simulate, solve, sweep
    from routecast.errors import RoutecastError
    from routecast.evaluate.trial import Trial
    from routecast.size import Sizing

__all__ = [
    "Calibration",
    "RoutecastError",
    "Router",
    "Sizing",
    "Trial",
    "__version__",
    "calibrate",
    "measure",
    "multicore",
    "read",
    "simulate",
    "solve",
    "sweep",
]

__version__ = VERSION

_MODULES = {"RoutecastError": "errors", "Sizing": "size", "Trial": "evaluate.trial"}
"""Modules of the names that ``routecast.api`` does not have."""


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module(f"routecast.{_MODULES.get(name, 'api')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
