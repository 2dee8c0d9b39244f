"""Calibrate the costs of activating a router from the idle time of its core over the offered load.

A core that interrupts activate (NAPI) sleeps until a frame comes, takes an interrupt, and then polls until its ring
is empty. With Poisson arrivals at rate λ, ``c`` seconds of work for a frame, ``C`` for an interrupt with the poll that
it starts, and a wake-up of mean ``W`` during which the core is still idle, this is an M/G/1 queue with set-up and
exhaustive service (Takagi 1991, ch. 1). A cycle is an idle time of mean ``I = 1/λ + W``, after which ``λI`` frames
wait, and the busy time that works them off with all that come meanwhile, ``(C + cλI)/(1 − λc)``. So, while ``λc < 1``::

    idle share        = (1 − λc)·(1 + λW) / (1 + λ(W + C))
    interrupts/packet = (1 − λc) / (1 + λ(W + C))

and both are 0 beyond. Only means enter. This is the mechanism behind the form function of Bolla 2009 (eq. 4): a frame
costs the less the busier the core is, because frames share interrupts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

from routecast.errors import FitProblem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.router.model import Activation, RandomTime, RouterModel, ServiceCost
from routecast.router.multicore import multicore
from routecast.router.softirq import NAPI_WEIGHT, softirq

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ActivationCosts", "FittedActivation", "PollCosts", "PollRule", "fit_activation_costs", "fit_poll_costs"]


PollRule = Literal["until_empty", "until_short", "exhaustive"]

AT_ONCE_S = 1e-12
"""Linger that ends at once if no frame waits, so that interrupts are enabled when a poll finds nothing."""

NEVER_LIMITS_BPS = 1e15
"""Rate of a link that is faster than any router."""


@value
class PollCosts:
    """The costs of a frame, a poll and an interrupt on one core, in seconds, and its manner of polling.

    The costs per packet and per poll follow from two rates: the maximum, and the saturation rate from which the core
    is never idle.

    A router that polls saturates before its maximum. From the saturation rate on, the next frame arrives before a poll
    of a single frame ends. The core is then never idle, but it can forward more, because a poll takes several frames,
    which share its cost. At constant bit rate, with ``c`` seconds for a frame and ``P`` for a poll of at
    most ``B`` frames,

    ::

        c + P/B = 1 / maximum rate          full polls, one after the other
        c + P   = 1 / saturation rate       polls of one frame, one after the other

    if a poll that finds frames is followed by another one, without interrupt (``until_empty``: the driver enables
    interrupts when a poll finds nothing). If interrupts are enabled after each short poll (``until_short``), or a poll
    serves frames that arrive during it (``exhaustive``), each single frame has an interrupt, ``C`` seconds, as well:
    ``C + c + P = 1 / saturation rate``. In Bolla et al. 2009 (sec. IV-B) the rates are 1040 and 700 kpps.
    """

    per_packet_s: float
    per_poll_s: float
    per_interrupt_s: float
    budget_frames: int = field("Greatest number of frames of a poll")
    # When interrupts are enabled again. The cost of the empty poll is part of the cost of the interrupt, because each
    # interrupt leads to one empty poll.
    manner: PollRule

    @property
    def maximum_pps(self) -> float:
        """Greatest rate, frames/s: all polls are full and no interrupts occur."""
        return 1.0 / (self.per_packet_s + self.per_poll_s / self.budget_frames)

    @property
    def saturation_pps(self) -> float:
        """Rate from which the core is never idle at constant bit rate (``exhaustive``: where frames begin to share)."""
        alone_s = self.per_packet_s + self.per_poll_s
        return 1.0 / (alone_s if self.manner == "until_empty" else alone_s + self.per_interrupt_s)

    def router(self, *, slower: float = 1.0, ring_frames: int = 512, name: str = "") -> RouterModel:
        """Return one core with these costs as a model for the simulator.

        ``slower``: factor on all costs (a lower clock).
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
    manner: PollRule = "until_empty",
    per_interrupt_s: float = 0.0,
    budget_frames: int = NAPI_WEIGHT,
    series: str = "",
) -> PollCosts:
    """Return the costs per packet and per poll that follow from two rates; the cost of an interrupt is given.

    ``maximum_pps``: greatest forwarding rate; ``saturation_pps``: rate from which the core is never idle, at constant
    bit rate, below the maximum; ``manner``: when interrupts are enabled again; ``per_interrupt_s``: cost of an
    interrupt, seconds (with ``until_empty`` the rates do not depend on it, otherwise it is part of the time of a single
    frame); ``budget_frames``: greatest number of frames of a poll, >= 2; ``series``: name in messages. Raises
    FitProblem: the rates are not 0 < saturation < maximum, the budget is below 2, or a cost would be negative.

    Examples
    --------
    >>> costs = fit_poll_costs(maximum_pps=1.04e6, saturation_pps=0.7e6)
    >>> round(costs.per_packet_s * 1e9), round(costs.per_poll_s * 1e9)
    (954, 474)
    """
    if manner not in get_args(PollRule):
        raise FitProblem(series, f'polls "{manner}": {did_you_mean(str(manner), get_args(PollRule))}')
    if not (0.0 < saturation_pps < maximum_pps < math.inf):
        message = (
            f"got a saturation rate of {saturation_pps:g} and a maximum rate of {maximum_pps:g} frames/s: the first "
            f"must be below the second, and both must be above 0"
        )
        raise FitProblem(series, message)
    if budget_frames < 2:
        message = f"got a budget of {budget_frames} frames: it must be at least 2 (Linux: {NAPI_WEIGHT})"
        raise FitProblem(series, message)
    if not (math.isfinite(per_interrupt_s) and per_interrupt_s >= 0.0):
        raise FitProblem(series, f"got an interrupt of {per_interrupt_s} s: it must be a finite number >= 0")
    alone_s = 1.0 / saturation_pps - (0.0 if manner == "until_empty" else per_interrupt_s)
    per_poll_s = (alone_s - 1.0 / maximum_pps) / (1.0 - 1.0 / budget_frames)
    per_packet_s = 1.0 / maximum_pps - per_poll_s / budget_frames
    if per_poll_s < 0.0:
        max_s = 1.0 / saturation_pps - 1.0 / maximum_pps
        message = f"an interrupt of {per_interrupt_s:g} s leaves no time for a poll: it may take at most {max_s:.3g} s"
        raise FitProblem(series, message)
    if per_packet_s <= 0.0:
        message = f"polls of {budget_frames} frames leave no time for a frame: the rates are too far apart"
        raise FitProblem(series, message)
    return PollCosts(
        per_packet_s=per_packet_s,
        per_poll_s=per_poll_s,
        per_interrupt_s=per_interrupt_s,
        budget_frames=budget_frames,
        manner=manner,
    )


COSTS = 3
"""Number of fitted costs: per packet, per interrupt, and wake-up."""


@value
class ActivationCosts:
    """The costs of a frame, an interrupt and a wake-up on one core."""

    per_packet_s: float = field("``c``, work for a frame, seconds")
    per_interrupt_s: float = field("``C``, work for an interrupt and the poll that it starts, seconds")
    # ``W``, from a frame that finds the core idle until the core works, seconds: moderation of the card, exit from a
    # sleep state. The core is idle meanwhile.
    wakeup_s: float

    @property
    def maximum_pps(self) -> float:
        """Greatest rate of the core, frames/s: 1/c, because overload has no interrupts."""
        return 1.0 / self.per_packet_s

    def idle_ratio(self, rate_pps: float) -> float:
        """Return the share of time that the core is idle at an offered load, Poisson arrivals."""
        return (1.0 + rate_pps * self.wakeup_s) * self.interrupts_per_packet(rate_pps)

    def busy_ratio(self, rate_pps: float) -> float:
        """Return the share of time that the core is busy: 1 - :meth:`idle_ratio`."""
        return 1.0 - self.idle_ratio(rate_pps)

    def at(self, t: float) -> float:
        """Return the busy share at ``t`` times the maximum rate: a form function (:mod:`routecast.power.form`).

        It follows from the mechanism, so that it rises with load from 0 to 1.
        """
        return self.busy_ratio(t * self.maximum_pps)

    def interrupts_per_packet(self, rate_pps: float) -> float:
        """Return the mean number of interrupts per frame, 0..1; 1 in the limit of no load."""
        free = max(1.0 - rate_pps * self.per_packet_s, 0.0)
        return free / (1.0 + rate_pps * (self.wakeup_s + self.per_interrupt_s))

    def router(self, *, name: str = "", ring_frames: int = 1024) -> RouterModel:
        """Return one core with these costs as a model for the simulator; no link limits it."""
        wakeup = RandomTime(mean_s=self.wakeup_s) if self.wakeup_s > 0.0 else None
        return softirq(
            name=name,
            per_packet_s=self.per_packet_s,
            interrupt_cost_s=self.per_interrupt_s,
            wakeup=wakeup,
            ring_frames=ring_frames,
            link_bps=NEVER_LIMITS_BPS,
        )


@value
class FittedActivation:
    """Costs fitted to the idle time of a core over load."""

    costs: ActivationCosts
    # Ends of the 95 % interval of each cost (Gauss-Newton, Student's t), s. They are NaN if there are no more points
    # than costs, and 0 and infinity if no point depends on the cost: a wake-up without interrupt cost delays frames
    # but does not change the idle time.
    low: ActivationCosts
    high: ActivationCosts = field("Upper ends of the 95 % intervals (Gauss-Newton, Student's t), s")
    rates_pps: tuple[float, ...] = field("Rates of the points that were fitted")
    idle_ratio: tuple[float, ...] = field("Measured idle share at each of them")

    @property
    def residuals(self) -> tuple[float, ...]:
        """Idle share of the closed form less the measured one, by point."""
        pairs = zip(self.rates_pps, self.idle_ratio, strict=True)
        return tuple(self.costs.idle_ratio(rate) - idle for rate, idle in pairs)

    @property
    def rmse_ratio(self) -> float:
        """Root mean square of the residuals over the fitted points, as a share of time."""
        return math.sqrt(math.fsum(error**2 for error in self.residuals) / len(self.residuals))


def fit_activation_costs(
    rates_pps: Sequence[float], idle_ratio: Sequence[float], *, series: str = ""
) -> FittedActivation:
    """Fit the costs per packet, per interrupt and of a wake-up to the idle time of one core.

    The fit minimises the squared errors of the idle share with equal weights and without negative costs. Points without
    idle time only bound the cost of a packet from below.

    Parameters
    ----------
    rates_pps : sequence of float
        Offered loads in frames per second, rising, > 0; a first load of 0 is ignored, because it has no information.
    idle_ratio : sequence of float
        Share of time that the core was idle at each load, 0..1.
    series : str
        Name for messages.

    Raises
    ------
    routecast.errors.FitProblem
        A share is outside 0..1, loads do not rise, there are fewer points with load and idle time than costs, or the
        core is busier without load than with it.

    Examples
    --------
    >>> truth = ActivationCosts(per_packet_s=40e-9, per_interrupt_s=0.3e-6, wakeup_s=0.5e-6)
    >>> rates_pps = (0.5e6, 1e6, 5e6, 15e6, 20e6)
    >>> found = fit_activation_costs(rates_pps, [truth.idle_ratio(rate) for rate in rates_pps])
    >>> round(found.costs.maximum_pps / 1e6, 3)
    25.0
    """
    import numpy as np

    points = _checked_points(rates_pps, idle_ratio, series)
    rates = np.array([rate for rate, _ in points])
    idle = np.array([share for _, share in points])
    fit = _IdleFit(rates, idle, _initial_costs(rates, idle))
    theta = fit.solution()
    values, widths = theta * fit.scales, fit.half_widths_s(theta)
    return FittedActivation(
        costs=_costs(values),
        low=_costs(np.maximum(values - widths, 0.0)),
        high=_costs(values + widths),
        rates_pps=tuple(float(rate) for rate in rates),
        idle_ratio=tuple(float(share) for share in idle),
    )


@dataclass(frozen=True, slots=True)
class _IdleFit:
    """The least squares of the idle share; a vector ``theta`` holds the three costs in units of ``scales``."""

    rates: NDArray[np.float64]
    idle: NDArray[np.float64]
    scales: NDArray[np.float64]

    def residuals(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the idle share of the closed form less the measured one, by point."""
        import numpy as np

        rates = self.rates
        per_packet, per_interrupt, wakeup = theta * self.scales
        free = np.maximum(1.0 - rates * per_packet, 0.0)
        idle: NDArray[np.float64] = free * (1.0 + rates * wakeup) / (1.0 + rates * (wakeup + per_interrupt))
        return idle - self.idle

    def slopes(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivatives of the residuals, (points, costs)."""
        import numpy as np

        rates = self.rates
        per_packet, per_interrupt, wakeup = theta * self.scales
        free = np.maximum(1.0 - rates * per_packet, 0.0)
        waited, cycle = 1.0 + rates * wakeup, 1.0 + rates * (wakeup + per_interrupt)
        packet_slope = np.where(free > 0.0, -rates * waited / cycle, 0.0)
        interrupt_slope = -free * waited * rates / cycle**2
        wakeup_slope = free * rates**2 * per_interrupt / cycle**2
        return np.column_stack([packet_slope, interrupt_slope, wakeup_slope]) * self.scales

    def solution(self) -> NDArray[np.float64]:
        """Return the best of several starts, with a cost of 0 where the fit is as good without it."""
        import numpy as np
        from scipy.optimize import least_squares

        starts = [np.array([1.0, 1.0, ratio]) for ratio in (0.1, 1.0, 10.0)]
        bounds = ([1e-6, 0.0, 0.0], [np.inf] * COSTS)
        solution = min(
            (
                least_squares(self.residuals, start, jac=self.slopes, bounds=bounds, xtol=1e-14, ftol=1e-14, gtol=1e-14)
                for start in starts
            ),
            key=lambda fit: float(fit.cost),
        )
        theta = np.asarray(solution.x)
        for position in (1, 2):
            without_cost = np.where(np.arange(COSTS) == position, 0.0, theta)
            if float(np.sum(self.residuals(without_cost) ** 2)) <= 2.0 * float(solution.cost) * (1.0 + 1e-9) + 1e-24:
                theta = without_cost
        return theta

    def half_widths_s(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the half-widths of the 95 % intervals; NaN without more points than costs."""
        import numpy as np
        from scipy.stats import t

        errors, jacobian = self.residuals(theta), self.slopes(theta)
        # A point without idle time above the capacity has no information on the noise of the other points.
        informative = int(np.count_nonzero((self.idle > 0.0) | (np.abs(errors) > 0.0)))
        degrees_of_freedom = informative - COSTS
        if degrees_of_freedom <= 0:
            return np.full(COSTS, np.nan)
        covariance = np.linalg.pinv(jacobian.T @ jacobian) * float(np.sum(errors**2)) / degrees_of_freedom
        widths: NDArray[np.float64] = (
            float(t.ppf(0.975, degrees_of_freedom)) * np.sqrt(np.diag(covariance)) * self.scales
        )
        widths[np.max(np.abs(jacobian), axis=0) == 0.0] = np.inf
        return widths


def _costs(values: NDArray[np.float64]) -> ActivationCosts:
    per_packet, per_interrupt, wakeup = (float(value) for value in values)
    return ActivationCosts(per_packet_s=per_packet, per_interrupt_s=per_interrupt, wakeup_s=wakeup)


def _initial_costs(rates: NDArray[np.float64], idle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return initial costs: per packet from the highest load, per interrupt from the lowest load."""
    import numpy as np

    busy = 1.0 - idle
    with_idle = np.flatnonzero(idle > 0.0)
    last, first = int(with_idle[-1]), int(with_idle[0])
    per_packet = 0.9 * float(busy[last] / rates[last])
    per_interrupt = max(float(busy[first] / rates[first] / idle[first]), per_packet)
    return np.array([per_packet, per_interrupt, per_interrupt])


def _checked_points(rates_pps: Sequence[float], idle_ratio: Sequence[float], series: str) -> list[tuple[float, float]]:
    """Return the points with load. Raises FitProblem with all their faults."""
    if len(rates_pps) != len(idle_ratio):
        message = f"{len(rates_pps)} loads and {len(idle_ratio)} idle shares: give one share for each load"
        raise FitProblem(series, message)
    for number, (rate, share) in enumerate(zip(rates_pps, idle_ratio, strict=True), start=1):
        if not (math.isfinite(rate) and rate >= 0.0):
            raise FitProblem(series, f"point {number}: got a load of {rate} frames/s: it must be a number >= 0")
        if not 0.0 <= share <= 1.0:
            fault = "is a percentage" if 1.0 < share <= 100.0 else "is no share"
            message = f"point {number}: an idle share of {share:g} {fault}: it must be 0..1 of the time of one core"
            raise FitProblem(series, message)
    for number, (before, after) in enumerate(pairwise(rates_pps), start=2):
        if after <= before:
            message = f"point {number}: a load of {after:g} frames/s comes after {before:g}: sort the points by load"
            raise FitProblem(series, message)
    points = [(float(rate), float(share)) for rate, share in zip(rates_pps, idle_ratio, strict=True) if rate > 0.0]
    idling = [share for _, share in points if share > 0.0]
    ends = len(idling) < len(points)
    if len(idling) + ends < COSTS or len(idling) < 2:
        message = (
            f"{len(idling)} points with load and idle time{' and one without idle time' if ends else ''} "
            f"for {COSTS} costs: measure at more loads below the maximum rate"
        )
        raise FitProblem(series, message)
    if min(idling) == 1.0:
        raise FitProblem(series, "the core is always idle: give the idle time of the core that forwards")
    return points
