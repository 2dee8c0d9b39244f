"""A polling router from two known rates: its inside view against load, and its busy time beside the form function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from routecast.calibrate.activation_costs import (
    FittedActivation,
    PollCosts,
    PollManner,
    fit_activation_costs,
    fit_poll_costs,
)
from routecast.power.form import PUBLISHED_FORM
from routecast.study.napi.document import FormPart
from routecast.study.napi.idle import root_mean_square
from routecast.study.napi.observed import ArrivalKind, Observed, observe

__all__ = ["FormCurve", "FormResult", "dearest_wave", "explain_form"]

LOADS = 44
"""Loads of a curve, evenly from near 0 to 10 % above the maximum."""

NEVER_IDLE_RATIO = 0.01
"""Below a percent of idle time a core counts as never idle."""

BEYOND = 1.01
"""The edge itself is looked at from a percent above it: at constant rate, what happens there is a coincidence."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormCurve:
    """One way to poll under one kind of arrivals, against load; ``at_saturation`` is seen a percent above it."""

    costs: PollCosts
    arrivals: ArrivalKind
    points: tuple[Observed, ...]
    at_saturation: Observed

    @property
    def maximum_pps(self) -> float:
        """Greatest forwarding rate seen."""
        return max(point.forwarded_pps for point in self.points)

    @property
    def never_idle_pps(self) -> float:
        """Least load from which on the core is never idle."""
        idle = [point.offered_pps for point in self.points if point.idle_ratio > NEVER_IDLE_RATIO]
        last = max(idle, default=0.0)
        return min(point.offered_pps for point in self.points if point.offered_pps > last)

    def form_rmse(self, maximum_pps: float) -> float:
        """Root mean square of busy share less published form function, over loads up to the maximum."""
        return root_mean_square(
            1.0 - point.idle_ratio - PUBLISHED_FORM.at(point.offered_pps / maximum_pps)
            for point in self.points
            if point.offered_pps <= maximum_pps
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FormResult:
    """What follows from two rates.

    Parameters
    ----------
    part : FormPart
    curves : tuple of FormCurve
        Each way to poll, at constant rate and under Poisson arrivals; the first is the one that explains both facts.
    range : tuple of FormCurve
        The first with the least and with the largest cost of an interrupt.
    of_polynomial : FittedActivation
        Costs of :mod:`routecast.calibrate.activation_costs` fitted to the published form function itself, as if it
        were a measured curve with the given maximum.
    """

    part: FormPart
    curves: tuple[FormCurve, ...]
    range: tuple[FormCurve, ...]
    of_polynomial: FittedActivation

    @property
    def best(self) -> FormCurve:
        """The router that polls until it finds nothing, at constant rate, as the paper measured."""
        return self.curves[0]


def dearest_wave(maximum_pps: float) -> tuple[float, float, float, float]:
    """Return where the form function makes a packet dearer as load rises, which no sharing of interrupts does.

    The time per packet is busy share over load, ``x(t)/(t·r_max)``.

    Returns
    -------
    tuple of float
        Load over maximum rate and seconds per packet at the cheapest point before the dearest, then at the dearest.
    """
    steps = [step / 1000 for step in range(100, 1001)]
    times = [PUBLISHED_FORM.at(t) / t / maximum_pps for t in steps]
    rise, low, high = 0.0, 0, 0
    least = 0
    for place, time_s in enumerate(times):
        if time_s < times[least]:
            least = place
        if time_s - times[least] > rise:
            rise, low, high = time_s - times[least], least, place
    return steps[low], times[low], steps[high], times[high]


def explain_form(part: FormPart, *, frames: int, seed: int, tell: Tell) -> FormResult:
    """Calibrate a polling router from two rates and look into it at loads up to its maximum.

    Raises
    ------
    routecast.errors.FitProblem
        The rates contradict each other; the error says how.
    """

    def costs(manner: PollManner, per_interrupt_s: float) -> PollCosts:
        return fit_poll_costs(
            maximum_pps=part.maximum,
            saturation_pps=part.saturation,
            manner=manner,
            per_interrupt_s=per_interrupt_s,
            budget_frames=part.budget,
            series="form",
        )

    def curve(found: PollCosts, arrivals: ArrivalKind) -> FormCurve:
        tell(f"polls {found.manner.replace('_', ' ')}, {arrivals}")
        router = found.router()
        loads = [1.1 * part.maximum * number / LOADS for number in range(1, LOADS + 1)]
        return FormCurve(
            costs=found,
            arrivals=arrivals,
            points=tuple(observe(router, rate, arrivals=arrivals, frames=frames, seed=seed) for rate in loads),
            at_saturation=observe(router, BEYOND * part.saturation, arrivals=arrivals, frames=frames, seed=seed),
        )

    # Where a frame alone brings its interrupt, interrupt and poll share what two rates leave for both.
    shared_s = 0.5 * (1.0 / part.saturation - 1.0 / part.maximum)
    ways = (
        costs("until_empty", part.interrupt),
        costs("until_short", shared_s),
        costs("exhaustive", shared_s),
    )
    kinds: tuple[ArrivalKind, ...] = ("cbr", "poisson")
    steps = [number / LOADS for number in range(1, LOADS + 1)]
    return FormResult(
        part=part,
        curves=tuple(curve(way, arrivals) for way in ways for arrivals in kinds),
        range=tuple(curve(costs("until_empty", cost), "cbr") for cost in part.interrupt_range),
        of_polynomial=fit_activation_costs(
            [part.maximum * step for step in steps],
            [min(max(1.0 - PUBLISHED_FORM.at(step), 0.0), 1.0) for step in steps],
            series="form function",
        ),
    )
