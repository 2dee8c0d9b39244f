"""An idle curve explained: three costs, the simulator's answer with them, and points that were left out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from routecast.calibrate.activation_costs import FittedActivation, fit_activation_costs
from routecast.errors import FitProblem
from routecast.study.napi.alternatives import Alternative
from routecast.study.napi.document import IdleCurve
from routecast.study.napi.observed import observe

__all__ = ["IdlePoint", "IdleResult", "explain_idle", "root_mean_square"]

Pairs = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdlePoint:
    """One measured idle share, 0..1, beside what three costs say of it.

    Parameters
    ----------
    offered_pps : float
    measured, simulated, closed_form : float
        ``simulated`` with the costs fitted to all points, Poisson arrivals.
    left_out : float
        Closed form with costs fitted to all other points; NaN where these are too few.
    from_half : float
        Closed form with costs fitted to every other point, the first among them; NaN for those points.
    interrupts_per_packet : float
        Of the simulator.
    """

    offered_pps: float
    measured: float
    simulated: float
    closed_form: float
    left_out: float
    from_half: float
    interrupts_per_packet: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleResult:
    """A curve and its explanation.

    The errors are root mean squares in shares of time, over the points with load up to the first one without idle time:
    those beyond are as easy as the one without load.
    """

    curve: IdleCurve
    fitted: FittedActivation
    half: FittedActivation | None
    points: tuple[IdlePoint, ...]
    alternatives: tuple[Alternative, ...]

    @property
    def telling(self) -> tuple[IdlePoint, ...]:
        """The points that the errors count."""
        return telling(self.points)

    @property
    def rmse(self) -> float:
        """Error of the simulated idle share."""
        return root_mean_square(point.simulated - point.measured for point in self.telling)

    @property
    def closed_form_rmse(self) -> float:
        """Error of the closed form's idle share."""
        return root_mean_square(point.closed_form - point.measured for point in self.telling)

    @property
    def left_out_rmse(self) -> float:
        """Error of points that were left out of the fit one by one."""
        return root_mean_square(point.left_out - point.measured for point in self.telling)

    @property
    def from_half_rmse(self) -> float:
        """Error of the other half of the points."""
        return root_mean_square(point.from_half - point.measured for point in self.telling)

    @property
    def maximum_error_ratio(self) -> float:
        """Relative error of the maximum rate against the one measured apart; NaN where there is none."""
        if self.curve.maximum is None:
            return math.nan
        return self.fitted.costs.maximum_pps / self.curve.maximum - 1.0


def telling(points: tuple[IdlePoint, ...]) -> tuple[IdlePoint, ...]:
    """Return the points with idle time and the first one without."""
    busy = next((number for number, point in enumerate(points) if point.measured <= 0.0), len(points))
    return points[: busy + 1]


def root_mean_square(errors: Iterable[float]) -> float:
    """Return the root mean square of the errors that are known; NaN if none is."""
    known = [error for error in errors if not math.isnan(error)]
    return math.sqrt(math.fsum(error**2 for error in known) / len(known)) if known else math.nan


def explain_idle(
    curve: IdleCurve, pairs: Pairs, *, frames: int, seed: int, alternatives: tuple[Alternative, ...] = ()
) -> IdleResult:
    """Fit three costs to a curve, simulate each of its points with them, and predict points that were left out.

    Raises
    ------
    routecast.errors.FitProblem
        The curve cannot be fitted; the error says why.
    """
    fitted = fit_activation_costs(*zip(*pairs, strict=True), series=curve.name)
    loaded = [pair for pair in pairs if pair[0] > 0.0]
    half = _refit(loaded[::2])
    points = []
    for number, (rate, measured) in enumerate(loaded):
        seen = observe(fitted.costs.router(), rate, arrivals="poisson", frames=frames, seed=seed)
        others = _refit(loaded[:number] + loaded[number + 1 :])
        points.append(
            IdlePoint(
                offered_pps=rate,
                measured=measured,
                simulated=seen.idle_ratio,
                closed_form=fitted.costs.idle_ratio(rate),
                left_out=others.costs.idle_ratio(rate) if others else math.nan,
                from_half=half.costs.idle_ratio(rate) if half and number % 2 else math.nan,
                interrupts_per_packet=seen.interrupts_per_packet,
            )
        )
    return IdleResult(curve=curve, fitted=fitted, half=half, points=tuple(points), alternatives=alternatives)


def _refit(pairs: list[tuple[float, float]]) -> FittedActivation | None:
    """Fit to a part of the points; None where too few are left."""
    try:
        return fit_activation_costs([rate for rate, _ in pairs], [share for _, share in pairs])
    except FitProblem:
        return None
