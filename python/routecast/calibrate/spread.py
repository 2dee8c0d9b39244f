"""How far a real machine strays from every law.

No law is exact: cores share queues unevenly, code falls into cache lines differently. Away from the calibration points
this structural spread adds to the noise of a measurement. It is nothing at a calibrated point and grows with the
distance to the nearest one, in doublings of the number of cores and of the frame size. Beyond the largest calibrated
number of cores it grows twice as fast as between two of them, where the law is held on both sides: something that
no point has touched may limit there. Most machines stray little and some a lot, so it follows Student's t distribution
with two degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibrate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["DEGREES_OF_FREEDOM", "structural_scale"]

_PER_CORE_DOUBLING = 0.03
_PER_CORE_DOUBLING_BEYOND = 0.06
_PER_FRAME_DOUBLING = 0.005
_MORE_FLOWS = 0.01
"""Random flows in place of one flow per core: lookup caches hold less, and the hash spreads them unevenly."""


DEGREES_OF_FREEDOM = 2


def structural_scale(points: Sequence[Point], calibrated: Sequence[Point]) -> Floats:
    """Return the scale of the spread of the logarithm of the rate at ``points``, without noise and parameters."""
    most = max(known.working_cores for known in calibrated)

    def distance(a: Point, b: Point) -> float:
        per_doubling = _PER_CORE_DOUBLING_BEYOND if a.working_cores > most else _PER_CORE_DOUBLING
        cores = per_doubling * abs(math.log2(a.working_cores / b.working_cores))
        frames = _PER_FRAME_DOUBLING * abs(math.log2(a.frame_bytes / b.frame_bytes))
        flows = _MORE_FLOWS * (
            (a.flows is None or a.flows > a.cores) != (b.flows is None or b.flows > b.cores)
        )
        return math.sqrt(cores**2 + frames**2 + flows**2)

    return np.array([min(distance(point, known) for known in calibrated) for point in points])
