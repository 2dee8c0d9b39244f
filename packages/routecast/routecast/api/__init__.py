"""The Python interface of routecast: the names of ``import routecast as rc``.

Quantities are texts with units (``"14 Mpps"``, ``"562 ns"``, ``"IMIX"``) or numbers in base units (frames per second,
seconds, bytes). A number that is absurd in its base unit, such as 562 s a frame, is asked about.
"""

from routecast.api._calibration import Calibration, calibrate
from routecast.api._evaluation import measure, simulate, solve, sweep
from routecast.api._router import Router, multicore, read

__all__ = ["Calibration", "Router", "calibrate", "measure", "multicore", "read", "simulate", "solve", "sweep"]
