"""Costs per packet and per poll from two rates: the greatest, and the one from which the core is never idle.

A router that polls saturates before its maximum. From some rate on the next frame is there before a poll of a single
frame is over: the core is never idle any more, though it forwards still more, for then a poll takes several frames
and its own cost is shared. At constant bit rate, with ``c`` seconds for a frame and ``P`` for a poll of at most ``B``
frames,

::

    c + P/B = 1 / maximum rate          full polls, one after the other
    c + P   = 1 / saturation rate       polls of one frame, one after the other

if a poll that finds frames is followed by another one, without interrupt (``until_empty``: the driver enables
interrupts when a poll finds nothing). If interrupts are enabled after each short poll (``until_short``), or a poll
takes what comes while it is under way (``exhaustive``), each frame alone brings its interrupt, ``C`` seconds, as well:
``C + c + P = 1 / saturation rate``. In paper 003 (sec. IV-B) the rates are 1040 and 700 kpps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from routecast.errors import FitProblem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.model import Activation, RouterModel, ServiceCost
from routecast.router.multicore import multicore
from routecast.router.softirq import NAPI_WEIGHT

__all__ = ["PollCosts", "PollManner", "fit_poll_costs"]

PollManner = Literal["until_empty", "until_short", "exhaustive"]

AT_ONCE_S = 1e-12
"""A linger that ends at once, unless a frame waits already: interrupts come on when a poll finds nothing."""

NEVER_LIMITS_BPS = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class PollCosts:
    """What a frame, a poll and an interrupt cost one core, in seconds, and how it polls.

    Parameters
    ----------
    per_packet_s, per_poll_s, per_interrupt_s : float
    budget_frames : int
        Frames of a poll, at most.
    manner : {"until_empty", "until_short", "exhaustive"}
        When interrupts are enabled again; see the module. An empty poll's own time counts with the interrupt that began
        the polling: there is one of each.
    """

    per_packet_s: float
    per_poll_s: float
    per_interrupt_s: float
    budget_frames: int
    manner: PollManner

    @property
    def maximum_pps(self) -> float:
        """Most frames per second: polls are full and no interrupts are left."""
        return 1.0 / (self.per_packet_s + self.per_poll_s / self.budget_frames)

    @property
    def saturation_pps(self) -> float:
        """Rate from which the core is never idle at constant bit rate (``exhaustive``: where frames begin to share)."""
        alone_s = self.per_packet_s + self.per_poll_s
        return 1.0 / (alone_s if self.manner == "until_empty" else alone_s + self.per_interrupt_s)

    def router(self, *, slower: float = 1.0, ring_frames: int = 512, name: str = "") -> RouterModel:
        """Return one core with these costs as a model for the simulator.

        Parameters
        ----------
        slower : float
            Factor on all costs (a lower clock).
        ring_frames : int
        name : str
        """
        service = ServiceCost(per_packet_s=slower * self.per_packet_s, per_batch_s=slower * self.per_poll_s)
        activation = Activation(
            kind="interrupt",
            budget_frames=self.budget_frames,
            interrupt_cost_s=slower * self.per_interrupt_s,
            linger_s=AT_ONCE_S if self.manner == "until_empty" else 0.0,
            discipline="exhaustive" if self.manner == "exhaustive" else "gated",
        )
        return multicore(
            1,
            service,
            queue_frames=ring_frames,
            link_bps=NEVER_LIMITS_BPS,
            activation=activation,
            name=name or f"one core, polls {self.manner.replace('_', ' ')}",
        )


def fit_poll_costs(
    *,
    maximum_pps: float,
    saturation_pps: float,
    manner: PollManner = "until_empty",
    per_interrupt_s: float = 0.0,
    budget_frames: int = NAPI_WEIGHT,
    series: str = "",
) -> PollCosts:
    """Return the costs per packet and per poll that follow from two rates; the cost of an interrupt stays free.

    Parameters
    ----------
    maximum_pps : float
        Greatest forwarding rate.
    saturation_pps : float
        Rate from which the core is never idle, at constant bit rate; below the maximum.
    manner : {"until_empty", "until_short", "exhaustive"}
        When interrupts are enabled again.
    per_interrupt_s : float
        Cost of an interrupt, seconds. Two rates cannot tell it ``until_empty``; otherwise it is a part of what a frame
        alone brings.
    budget_frames : int
        Frames of a poll, at most, >= 2.
    series : str
        Name for messages.

    Raises
    ------
    routecast.errors.FitProblem
        The rates are not 0 < saturation < maximum, the budget is below 2, or a cost would be negative.

    Examples
    --------
    >>> costs = fit_poll_costs(maximum_pps=1.04e6, saturation_pps=0.7e6)
    >>> round(costs.per_packet_s * 1e9), round(costs.per_poll_s * 1e9)
    (954, 474)
    """
    if manner not in get_args(PollManner):
        raise FitProblem(series, f'polls "{manner}": {did_you_mean(str(manner), get_args(PollManner))}')
    if not (0.0 < saturation_pps < maximum_pps < math.inf):
        message = (
            f"the core is never idle from {saturation_pps:g} frames/s on and forwards {maximum_pps:g} at most: the "
            f"first is a rate below the second, both > 0"
        )
        raise FitProblem(series, message)
    if budget_frames < 2:
        message = f"a budget of {budget_frames} frames shares no poll: it is 2 or more (Linux: {NAPI_WEIGHT})"
        raise FitProblem(series, message)
    if not (math.isfinite(per_interrupt_s) and per_interrupt_s >= 0.0):
        raise FitProblem(series, f"an interrupt of {per_interrupt_s} s; allowed is a finite number >= 0")
    alone_s = 1.0 / saturation_pps - (0.0 if manner == "until_empty" else per_interrupt_s)
    per_poll_s = (alone_s - 1.0 / maximum_pps) / (1.0 - 1.0 / budget_frames)
    per_packet_s = 1.0 / maximum_pps - per_poll_s / budget_frames
    if per_poll_s < 0.0:
        most = 1.0 / saturation_pps - 1.0 / maximum_pps
        message = f"an interrupt of {per_interrupt_s:g} s leaves less than nothing for a poll: at most {most:.3g} s fit"
        raise FitProblem(series, message)
    if per_packet_s <= 0.0:
        message = (
            f"polls of {budget_frames} frames leave nothing for a frame: the rates are too far apart for them"
        )
        raise FitProblem(series, message)
    return PollCosts(
        per_packet_s=per_packet_s,
        per_poll_s=per_poll_s,
        per_interrupt_s=per_interrupt_s,
        budget_frames=budget_frames,
        manner=manner,
    )
