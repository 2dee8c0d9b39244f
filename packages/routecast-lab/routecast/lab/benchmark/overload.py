"""Forwarding rate in overload: the rate that a router forwards when the offered load exceeds its capacity.

RFC 2285 sec. 3.6.2 calls it the forwarding rate at maximum offered load. Only the tester limits the load of a software
router on virtual links, so the load is stated: ``overload_ratio`` times the forwarding rate. It is the most
repeatable figure of a software router on a shared machine, since a stall of a millisecond costs a millisecond of it,
while it costs a lossless throughput the whole trial.
"""

from __future__ import annotations

import math
from statistics import stdev

from routecast.errors import EnvironmentProblem
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value

__all__ = [
    "CLEAR_LOSS_RATIO",
    "ForwardingRate",
    "NoOverload",
    "find_overload_pps",
    "measure_forwarding_rate",
    "standard_error_ratio",
]

CLEAR_LOSS_RATIO = 0.15
"""A greater loss shows a load beyond the capacity, since no stall causes it."""

_GROWTH = 2.0

_REACHED_RATIO = 0.9
"""A tester that offers less than this share of the intended load is at its limit."""

_MAX_PPS = 1e9
"""Greatest load of a search, beyond any tester; a device that generates its own frames has no tester."""

_SEARCHES = 3
"""Attempts to find a load whose long trial is an overload, too."""

_TESTER_RATIO = 0.95
"""Share of its greatest load that a tester can offer without being late."""


_LEAST_PARTS = 4
"""Fewest parts of a trial whose rates tell of their spread."""
_Z_95 = 1.96


def standard_error_ratio(trial: Trial) -> float | None:
    """Return the standard error of a trial's forwarded rate over the rate; None where the trial does not tell it.

    It comes from the confidence interval, or from the rates of the equal parts of the trial, whose first and last are
    left out, since frames are on their way there. A stall of the machine shows in it.
    """
    rate_pps = trial.forwarded_pps
    if not rate_pps > 0.0:
        return None
    if "forwarded_pps" in trial.interval:
        low, high = trial.interval["forwarded_pps"]
        error_pps = (high - low) / (2.0 * _Z_95)
    else:
        rates = [moment.forwarded_pps for moment in trial.over_time[1:-1]]
        if len(rates) < _LEAST_PARTS:
            return None
        error_pps = stdev(rates) / math.sqrt(len(rates))
    ratio = error_pps / rate_pps
    return float(f"{ratio:.3g}") if 0.0 < ratio < 1.0 else None


class NoOverload(EnvironmentProblem):
    """The tester offers too little to overload the device.

    ``forwarded_pps``: greatest rate forwarded without clear loss; ``intended_pps``: load of that trial.
    """

    def __init__(self, forwarded_pps: float, intended_pps: float, message: str) -> None:
        super().__init__(forwarded_pps, intended_pps, message)
        self.forwarded_pps = forwarded_pps
        self.intended_pps = intended_pps
        self.message = message

    def __str__(self) -> str:
        return self.message


@value
class ForwardingRate:
    """A router's maximum forwarding rate (RFC 2285 sec. 3.6.3), or a lower bound of it."""

    trial: Trial = field("The trial in overload, or at the greatest load of the tester")
    lower_bound: str = field("Reason that the rate is a lower bound; empty if the load was an overload", default="")

    @property
    def is_maximum(self) -> bool:
        """Whether the rate is a result that may calibrate a model."""
        return self.trial.is_valid and not self.lower_bound


def measure_forwarding_rate(
    evaluator: Evaluator, load: OfferedLoad, *, duration_s: float, overload_ratio: float = 1.5
) -> ForwardingRate:
    """Find an overload, offer it for ``duration_s``, and return the forwarding rate.

    Raises EnvironmentProblem: no trial is valid, or nothing is forwarded.
    """
    for _ in range(_SEARCHES):
        reason = ""
        try:
            offered_pps = find_overload_pps(evaluator, load, overload_ratio=overload_ratio, max_pps=_MAX_PPS)
        except NoOverload as end:
            offered_pps, reason = end.intended_pps, "the tester reaches no overload"
        trial = evaluator.trial(load.at(offered_pps), duration_s)
        if trial.loss_ratio > CLEAR_LOSS_RATIO:
            return ForwardingRate(trial=trial)
        if reason:
            break
        # A short trial took a stall of the machine for an overload: search on from there.
        reason = f"a loss of {trial.loss_ratio:.1%} shows no overload"
        load = load.at(_GROWTH * offered_pps)
    return ForwardingRate(trial=trial, lower_bound=reason)


def find_overload_pps(
    evaluator: Evaluator,
    load: OfferedLoad,
    *,
    overload_ratio: float = 1.5,
    duration_s: float = 0.1,
    max_pps: float = 1e8,
) -> float:
    """Return an intended load of about ``overload_ratio`` times the forwarding rate, over all ports.

    Short trials double the load of ``load``, up to a loss that no stall of a shared machine causes, or to the greatest
    rate of the tester.

    Raises NoOverload: the tester reaches no overload; EnvironmentProblem: no trial is valid, or nothing is forwarded.
    """
    rate_pps = load.rate_pps
    reached: Trial | None = None
    reasons: tuple[str, ...] = ()
    is_last = False
    while rate_pps <= max_pps:
        trial = evaluator.trial(load.at(rate_pps), duration_s)
        is_short = trial.offered_pps < _REACHED_RATIO * rate_pps
        if not trial.invalid and not is_short:
            if trial.forwarded_pps <= 0.0:
                message = f"no frame of {rate_pps:,.0f} frames/s comes back: does the device forward at all?"
                raise EnvironmentProblem(message)
            if trial.loss_ratio > CLEAR_LOSS_RATIO:
                overload_pps = overload_ratio * trial.forwarded_pps
                return min(overload_pps, rate_pps) if is_last else overload_pps
            reached = trial
        reasons = trial.invalid or reasons
        if is_last:
            break
        if is_short:
            rate_pps, is_last = _TESTER_RATIO * trial.offered_pps, True
            if rate_pps <= (reached.intended_pps if reached else 0.0):
                break
        else:
            rate_pps *= _GROWTH
    causes = f" ({'; '.join(reasons)})" if reasons else ""
    if reached is None:
        remedy = "`routecast doctor` names what disturbs this machine"
        raise EnvironmentProblem(f"no valid trial up to {rate_pps:,.0f} frames/s{causes}; {remedy}")
    remedy = "slow the device down (its option slowdown, where it has one), or use a faster tester"
    message = f"the tester reaches no overload: {reached.forwarded_pps:,.0f} frames/s were forwarded without clear loss"
    raise NoOverload(reached.forwarded_pps, reached.intended_pps, f"{message}{causes}; {remedy}")
