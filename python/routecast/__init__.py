"""routecast measures, predicts and plans software routers.

A router is described once, as data (:mod:`routecast.router`), and fed by an offered load (:mod:`routecast.load`).
Evaluators answer what happens at that load (:mod:`routecast.evaluate`), calibration finds a router's parameters from
a few measured points (:mod:`routecast.calibrate`), and a study ties them together (:mod:`routecast.study`).
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
