"""The throughput of RFC 1242 by closed form: the greatest load at which the closed form says that no frame is lost."""

from __future__ import annotations

import math

from routecast.errors import EnvironmentProblem, RoutecastError
from routecast.evaluate._bisection import halved
from routecast.evaluate.solve._closed_form import Solve, lossless_pps
from routecast.evaluate.solve._whole_busy_period import surely_lossless_pps
from routecast.evaluate.trial import BURSTS_LEFT_OUT, NO_LOSS_RATIO, Trial
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel

__all__ = ["Throughput", "throughput_of"]

_HALVINGS, _REFINEMENTS = 13, 8
"""Below a ten thousandth of the greatest rate none is looked for."""
_GAP_RATIO = 1.1
"""A rate is the greatest, and not a least one, if frames are lost for sure at this multiple of it."""
_BELOW_OVERLOAD = 1.0 - 1e-6


@value
class Throughput:
    """The greatest rate of which no loss is known, and the greatest that overloads nothing.

    Between the two, queues overflow by chance: bursts, interruptions, frames that arrive together.
    """

    rate_pps: float = field(
        "Greatest intended rate at which the closed form knows that nothing is lost (RFC 1242), frames/s; NaN: none. "
        "At most a frame in 10,000 is lost, in 1,000 where it is the bound under any scheduler"
    )
    overloads_nothing_pps: float = field("Greatest intended rate that overloads nothing, frames/s")
    is_at_least: bool = field("Whether more may pass without loss, because the loss above is not known", default=False)
    reason: str = field("Why the loss above is not known", default="")


def throughput_of(model: RouterModel, load: OfferedLoad) -> Throughput:
    """Return the throughput under a load of any rate, by bisection of the closed form's loss.

    Raises ModelProblem: a flow names a port that the router does not have.
    """
    most_pps = lossless_pps(model, load)
    if not math.isfinite(most_pps):
        return Throughput(rate_pps=most_pps, overloads_nothing_pps=most_pps)
    solve, reasons = Solve(model=model), dict[float, str]()

    def loses(rate_pps: float) -> bool | None:
        """Whether frames are lost at a rate; None: not known."""
        try:
            trial = solve.trial(load.at(rate_pps), 1.0)
        except EnvironmentProblem:
            raise
        except RoutecastError as problem:
            reasons[rate_pps] = str(problem)
            return None
        if trial.known_loss_ratio == 0.0:
            return False
        if not math.isnan(trial.loss_ratio) and trial.min_loss_ratio > NO_LOSS_RATIO:
            return True
        if reason := _why_not_known(trial):
            reasons[rate_pps] = reason
        return None

    low, high = 0.0, most_pps * _BELOW_OVERLOAD
    if loses(high) is False:
        return Throughput(rate_pps=most_pps, overloads_nothing_pps=most_pps)
    for _ in range(_HALVINGS):
        if loses(0.5 * high) is False:
            low, high = halved(lambda rate_pps: loses(rate_pps) is False, 0.5 * high, high, _REFINEMENTS)
            break
        high *= 0.5
    above_pps = _GAP_RATIO * low
    if low > 0.0 and (above_pps > most_pps or loses(above_pps)):
        return Throughput(rate_pps=low, overloads_nothing_pps=most_pps)
    why = reasons.get(high) or next(iter(reasons.values()), "the loss by chance is only bounded")
    sure_pps = surely_lossless_pps(model, load, high if low > 0.0 else most_pps * _BELOW_OVERLOAD)
    rates_pps = [rate for rate in (low, sure_pps) if rate > 0.0]
    return Throughput(
        rate_pps=max(rates_pps, default=math.nan), overloads_nothing_pps=most_pps, is_at_least=True, reason=why
    )


def _why_not_known(trial: Trial) -> str:
    """Return the note that says why the loss is not known; empty where it is bounded."""
    marks = (BURSTS_LEFT_OUT, "the loss is not known")
    return next((note for note in trial.notes if any(mark in note for mark in marks)), "")
