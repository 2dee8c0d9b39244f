"""Forwarding rate in overload: what a router forwards when more is offered than it can take.

RFC 2285 sec. 3.6.2 calls it the forwarding rate at maximum offered load. A software router without a rate of its own
wire has no maximum offered load but the tester's, so the load is stated: ``overload_ratio`` times the forwarding rate.
It is the most repeatable figure of a software router on a shared machine, since a stall of a millisecond costs a
millisecond of it and not the whole trial.
"""

from __future__ import annotations

from routecast.errors import EnvironmentProblem
from routecast.evaluate.protocol import Evaluator
from routecast.load.offered import OfferedLoad

__all__ = ["find_overload_pps"]

CLEAR_LOSS_RATIO = 0.15
"""A loss that no stall explains: the load is beyond the capacity."""

GROWTH = 2.0

REACHED_RATIO = 0.9
"""A tester that offers less of what is intended is at its end; a disturbed trial of a fit one is passed over."""


def find_overload_pps(
    evaluator: Evaluator,
    load: OfferedLoad,
    *,
    overload_ratio: float = 1.5,
    duration_s: float = 0.1,
    most_pps: float = 1e8,
) -> float:
    """Return an intended load of about ``overload_ratio`` times the forwarding rate, over all ports.

    Short trials double the load, starting with that of ``load``, until a loss shows that no stall of a shared machine
    explains.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        No trial could be made, nothing is forwarded, or the tester reaches no overload.
    """
    rate_pps = load.rate_pps
    reached_pps = 0.0
    reasons: tuple[str, ...] = ()
    while rate_pps <= most_pps:
        trial = evaluator.trial(load.at(rate_pps), duration_s)
        if trial.offered_pps < REACHED_RATIO * rate_pps:
            reasons = trial.invalid
            break  # the tester's end
        if not trial.invalid:
            if trial.forwarded_pps <= 0.0:
                message = f"nothing of {rate_pps:,.0f} frames/s comes back: is the device forwarding at all?"
                raise EnvironmentProblem(message)
            if trial.loss_ratio > CLEAR_LOSS_RATIO:
                return overload_ratio * trial.forwarded_pps
            reached_pps = trial.forwarded_pps
        reasons = trial.invalid or reasons
        rate_pps *= GROWTH
    if reached_pps > 0.0:
        message = f"the tester reaches no overload: {reached_pps:,.0f} frames/s were forwarded without clear loss"
    else:
        message = f"no valid trial up to {rate_pps:,.0f} frames/s"
    why = f" ({'; '.join(reasons)})" if reasons else ""
    raise EnvironmentProblem(f"{message}{why}; slow the device down, or use a faster tester")
