"""routecast measures, predicts and plans software routers.

A router is described once, as data (:mod:`routecast.router`), and fed by an offered load (:mod:`routecast.load`).
Evaluators answer what happens at that load (:mod:`routecast.evaluate`), calibration finds a router's parameters from
a few measured points (:mod:`routecast.calibration`), and a study ties them together (:mod:`routecast.study`).

``import routecast as rc`` gives the shortest way through them: ``rc.read`` and ``rc.multicore`` make routers,
``rc.solve``, ``rc.simulate`` and ``rc.measure`` answer for a load, ``rc.sweep`` for many, ``rc.calibrate`` learns from
a table of measurements, predicts, and says how many cores a target needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routecast.api import Calibration, Router, calibrate, measure, multicore, read, simulate, solve, sweep

__all__ = [
    "Calibration",
    "Router",
    "__version__",
    "calibrate",
    "measure",
    "multicore",
    "read",
    "simulate",
    "solve",
    "sweep",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("routecast.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
