"""Prediction of a router on another host than that of its calibration, by the costs of network functions on both.

The time of a frame is that on the calibrated host times the ratio of the estimates of a function on both hosts
(:mod:`routecast.function.estimate`). The function is that of the router if it is named. Otherwise the ratio is the
median over all shipped functions with operations whose cost both hosts state, and the spread widens the interval. An
assumed cost has no information on a host except its clock. Links, cards and the law of contention remain those of the
first host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median, pstdev

from routecast.calibration.fitted import FittedRouter
from routecast.errors import FitProblem, RoutecastError
from routecast.function.catalogue import function_names, read_function
from routecast.function.estimate import estimate, operations_without_cost
from routecast.function.model import NetworkFunction
from routecast.hardware.model import Hardware
from routecast.load.frames import FrameMix
from routecast.quantity.schema import field, value

__all__ = ["CARRIED_SD", "Carry", "carried", "carry"]

CARRIED_SD = 0.15
"""Standard deviation of the logarithm of the cost of a function's code over the sum of its operations, as in
``routecast.lab.study.refine``. Chosen, because no publication has rates of a function and probes of two hosts."""


@value
class Carry:
    """The change of a frame's time from one host to another."""

    log_ratio: float = field("Natural logarithm of the time on the other host over that on the measured host")
    log_sd: float = field("Standard deviation of ``log_ratio``")
    why: str = field("Sentence on the ratio and its source")


def carry(here: Hardware, there: Hardware, frames: FrameMix, *, function: NetworkFunction | None = None) -> Carry:
    """Return the change of a frame's time from one host to another.

    Parameters
    ----------
    here, there : Hardware
        Host of the measurement, and host of the prediction.
    frames : FrameMix
    function : NetworkFunction or None
        Function of the router; None: unknown.

    Raises
    ------
    routecast.errors.FitProblem
        No function can be estimated on both hosts.
    """
    functions = [function] if function else _stated_on(here, there)
    ratios = []
    for candidate in functions:
        try:
            ratios.append(_log_ratio(candidate, here, there, frames))
        except RoutecastError:
            if function:
                raise
    if not ratios:
        raise FitProblem("", f"no shipped function can be estimated on both {here.name} and {there.name}")
    middle = median(ratios)
    ratio_source = f"function {function.name}" if function else f"median of {len(ratios)} functions"
    return Carry(
        log_ratio=middle,
        log_sd=math.hypot(CARRIED_SD, pstdev(ratios) if len(ratios) > 1 else 0.0),
        why=f"a frame takes {math.exp(middle):.3g} times as long on {there.name} as on {here.name} ({ratio_source})",
    )


def carried(fitted: FittedRouter, change: Carry) -> FittedRouter:
    """Return the router on the other host, with intervals that include the uncertainty of the ratio."""
    return replace(fitted, carry=(change.log_ratio, change.log_sd))


def _stated_on(*hosts: Hardware) -> list[NetworkFunction]:
    """Return the shipped functions whose costs all hosts state.

    Functions with steps chosen in sight of the value of one host are left out.
    """
    functions = [function for function in map(read_function, function_names()) if not function.chosen_in_sight]
    return [
        function
        for function in functions
        if not any(operations_without_cost(function, host, assumed=False) for host in hosts)
    ]


def _log_ratio(function: NetworkFunction, here: Hardware, there: Hardware, frames: FrameMix) -> float:
    seconds: Sequence[float] = [estimate(function, hardware, frame_bytes=frames).packet_s for hardware in (here, there)]
    return math.log(seconds[1] / seconds[0])
