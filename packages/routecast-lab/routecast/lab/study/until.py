"""Measure until the rates are known precisely enough; each next measurement has the greatest expected gain.

The measurements end when the 95 % interval of the rate at every possible condition is as narrow as requested, or when
their largest number is reached. The first condition is measured repeatedly over some time to determine the
repeatability: other load on the machine varies within seconds, so that immediate repetitions would not show it. Any
other condition may be measured again too if that narrows the intervals most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from routecast.calibration import fit
from routecast.calibration.fitted import FittedRouter
from routecast.evaluate.points import Point

__all__ = ["KnownRouter", "measure_until"]

_REPEATS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRouter:
    """The measured points, the router that they calibrate, and its precision.

    ``half_width_ratio`` is half the 95 % interval of the rate over the rate, at the least precise condition.
    """

    measured: tuple[Point, ...]
    fitted: FittedRouter
    half_width_ratio: float
    is_enough: bool


def measure_until(
    measure: Callable[[Point], float],
    able: Sequence[Point],
    *,
    until_ratio: float,
    known: Sequence[Point] = (),
    most: int = 200,
    spread_s: float = 30.0,
    on_progress: Callable[[int, str], None] | None = None,
) -> KnownRouter:
    """Measure until the rates at all of ``able`` are known within ``until_ratio``, or ``most`` measurements exist.

    ``measure``: conditions to the measured rate, frames per second; ``able``: possible measurements, which are also the
    targets; their rates have no effect; ``until_ratio``: 0.05 means ±5 %; ``known``: earlier measurements; ``most``:
    largest number of measurements with the earlier ones, >= 8; ``spread_s``: seconds over which eight repetitions of
    the first condition are spread; ``on_progress``: receives after each measurement their number and a sentence on the
    precision.
    """
    start_s = time.monotonic()
    measured = [point for point in known if point.calibrate]
    repeats = sum(point.conditions == replace(able[0], calibrate=True).conditions for point in measured)
    while True:
        due_s = spread_s * repeats / _REPEATS + start_s - time.monotonic()
        fitted = fit(measured) if measured else None
        ratio = fitted.half_width_ratio(able) if fitted else float("inf")
        if fitted and ((ratio <= until_ratio and repeats >= _REPEATS) or len(measured) >= most):
            return KnownRouter(
                measured=tuple(measured), fitted=fitted, half_width_ratio=ratio, is_enough=ratio <= until_ratio
            )
        if fitted is None or (repeats < _REPEATS and (due_s <= 0.0 or ratio <= until_ratio)):
            time.sleep(max(due_s, 0.0))
            following, repeats = able[0], repeats + 1
        else:
            (best,) = fitted.next_points(1, able=able)
            following = best.point
        measured.append(replace(following, throughput_pps=measure(following), calibrate=True))
        if on_progress is not None:
            known_as = f"rates known within ±{ratio:.1%}" if measured[1:] else "first measurement"
            on_progress(len(measured), known_as)
