"""A router calibrated on one host and carried to another by the costs of network functions on both.

The time of a frame is that of the calibrated host times the ratio of the estimates of a function on both hosts
(:mod:`routecast.function.estimate`): of the function that the router runs where it is named, else the median over the
functions that ship and whose operations both hosts state a cost of, whose spread then widens the interval. A cost that
is assumed says nothing of a host but its clock. Links, cards and the law of contention stay as they were measured: they
are of the first host.
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
"""Standard deviation of the logarithm of what a function's code costs beside the sum of its operations, as in
:mod:`routecast.calibration.refine`. Chosen: nobody published the rates of one function on two hosts beside probes of
both."""


@value
class Carry:
    """The change of a frame's time from one host to another."""

    log_ratio: float = field("Natural logarithm of the time there over the time here")
    log_sd: float = field("Standard deviation of that")
    why: str = field("Quantity of the ratio")


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
    for each in functions:
        try:
            ratios.append(_log_ratio(each, here, there, frames))
        except RoutecastError:
            if function:
                raise
    if not ratios:
        raise FitProblem("", f"no function that ships can be estimated on both {here.name} and {there.name}")
    middle = median(ratios)
    of = f"function {function.name}" if function else f"median of {len(ratios)} functions"
    return Carry(
        log_ratio=middle,
        log_sd=math.hypot(CARRIED_SD, pstdev(ratios) if len(ratios) > 1 else 0.0),
        why=f"a frame takes {math.exp(middle):.3g} times as long on {there.name} as on {here.name} ({of})",
    )


def carried(fitted: FittedRouter, change: Carry) -> FittedRouter:
    """Return the router on the other host, with intervals that include the uncertainty of carrying it."""
    return replace(fitted, carry=(change.log_ratio, change.log_sd))


def _stated_on(*hosts: Hardware) -> list[NetworkFunction]:
    """Return the functions that ship, without those that need a cost which a host does not state.

    Functions with steps that were chosen in sight of one host's value say nothing of another host: they are left out.
    """
    functions = [function for function in map(read_function, function_names()) if not function.chosen_in_sight]
    return [each for each in functions if not any(operations_without_cost(each, host, assumed=False) for host in hosts)]


def _log_ratio(function: NetworkFunction, here: Hardware, there: Hardware, frames: FrameMix) -> float:
    seconds: Sequence[float] = [estimate(function, hardware, frame_bytes=frames).packet_s for hardware in (here, there)]
    return math.log(seconds[1] / seconds[0])
