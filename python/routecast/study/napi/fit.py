"""A router at other clocks: its maximum rate and its latency, where a part of a frame's time is memory's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from routecast.calibration.activation_costs import (
    ActivationCosts,
    FittedActivation,
    PollCosts,
    PollManner,
    fit_activation_costs,
    fit_poll_costs,
)
from routecast.calibration.frequency import FittedFrequency, FrequencyLaw, fit_frequency
from routecast.errors import FitProblem
from routecast.evaluate.simulate import Simulate
from routecast.load.arrivals import Arrivals
from routecast.load.offered import OfferedLoad
from routecast.power.form import PUBLISHED_FORM
from routecast.quantity.comparison import ComparedRow
from routecast.quantity.schema import field, value
from routecast.router.model import PollDiscipline, RandomTime, RouterModel
from routecast.study.napi.document import ClockPart, FormPart, IdleCurve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ALTERNATIVES",
    "ClockResult",
    "FormCurve",
    "FormResult",
    "IdleResult",
    "dearest_wave",
    "explain_clock",
    "explain_form",
    "explain_idle",
    "fit_alternative",
]


ArrivalKind = Literal["cbr", "poisson"]

CORE = "core 0"
"""Name of the task unit that works, in the routers of one core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One core at one offered load, in the inside view of Bolla et al. 2009, fig. 6."""

    offered_pps: float
    forwarded_pps: float
    idle_ratio: float
    interrupts_per_packet: float
    polls_per_packet: float
    latency_p50_s: float


def observe(router: RouterModel, rate_pps: float, *, arrivals: ArrivalKind, frames: int, seed: int) -> Observed:
    """Simulate a router of one core under one load for so many frames."""
    load = OfferedLoad(rate_pps=rate_pps, arrivals=Arrivals.poisson() if arrivals == "poisson" else Arrivals.cbr())
    # Overload is asked for its throughput, which settles long before the latency of a filling queue does.
    trial = Simulate(router, seed=seed, steady_state=False).trial(load, frames / rate_pps)
    activity = next(each for each in trial.activity if each.name == CORE)
    passing = trial.forwarded_pps or math.nan
    return Observed(
        offered_pps=rate_pps,
        forwarded_pps=trial.forwarded_pps,
        idle_ratio=1.0 - activity.busy_ratio,
        interrupts_per_packet=activity.interrupts_per_s / passing,
        polls_per_packet=activity.polls_per_s / passing,
        latency_p50_s=trial.latency.p50_s if trial.latency else math.nan,
    )


FEWEST_FRAMES, TRIES = 5_000, 90
"""Frames of a trial and trials of a point while the costs are searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamics:
    """How a core is activated, with costs per packet and per interrupt, and perhaps a time between interrupts.

    Other dynamics of activation, each fitted to the same idle curve by the simulator itself.

    Which mechanism a curve speaks for is told by what the others miss with as many costs.

    ``third`` is the third cost: a ``wakeup`` delays every interrupt of a sleeping core, ``moderation`` keeps interrupts
    apart, ``none`` leaves two costs.
    """

    arrivals: ArrivalKind
    discipline: PollDiscipline
    third: Literal["wakeup", "moderation", "none"]

    @property
    def words(self) -> str:
        """The dynamics in words."""
        arrivals = "Poisson" if self.arrivals == "poisson" else "CBR"
        third = {"wakeup": "wake-up", "moderation": "moderation", "none": "neither"}[self.third]
        return f"{arrivals}, {self.discipline}, {third}"

    def router(self, costs: ActivationCosts) -> RouterModel:
        """Return the core; ``wakeup_s`` of the costs is the third cost, whichever it is."""
        bare = replace(costs, wakeup_s=0.0).router()
        task = bare.task(CORE)
        activation = replace(
            task.activation,
            discipline=self.discipline,
            moderation_s=costs.wakeup_s if self.third == "moderation" else 0.0,
            wakeup=RandomTime(mean_s=costs.wakeup_s) if self.third == "wakeup" and costs.wakeup_s > 0.0 else None,
        )
        core = replace(task, activation=activation)
        return replace(bare, tasks=tuple(core if each is task else each for each in bare.tasks))


ALTERNATIVES = (
    Dynamics(arrivals="poisson", discipline="exhaustive", third="wakeup"),
    Dynamics(arrivals="poisson", discipline="exhaustive", third="moderation"),
    Dynamics(arrivals="poisson", discipline="gated", third="moderation"),
    Dynamics(arrivals="cbr", discipline="exhaustive", third="wakeup"),
    Dynamics(arrivals="cbr", discipline="exhaustive", third="moderation"),
    Dynamics(arrivals="poisson", discipline="exhaustive", third="none"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Dynamics with the costs that fit best, and the root mean square error of the simulated idle share."""

    dynamics: Dynamics
    costs: ActivationCosts
    rmse: float


def fit_alternative(
    dynamics: Dynamics, pairs: tuple[tuple[float, float], ...], start: ActivationCosts, *, frames: int, seed: int
) -> Alternative:
    """Fit the costs of some dynamics to a curve, each trial answered by the simulator.

    ``pairs``: offered loads > 0 and idle shares; ``start``: where the search begins; ``frames`` and ``seed``: of the
    trials that judge the costs found; the search takes fewer frames.
    """
    import numpy as np
    from scipy.optimize import minimize

    count = 2 if dynamics.third == "none" else 3

    def costs_of(theta: NDArray[np.float64]) -> ActivationCosts:
        values = [float(value) for value in np.exp(theta)]
        return ActivationCosts(
            per_packet_s=values[0], per_interrupt_s=values[1], wakeup_s=values[2] if count > 2 else 0.0
        )

    def error(costs: ActivationCosts, trial_frames: int) -> float:
        router = dynamics.router(costs)
        squares = [
            (observe(router, rate, arrivals=dynamics.arrivals, frames=trial_frames, seed=seed).idle_ratio - idle) ** 2
            for rate, idle in pairs
        ]
        return math.sqrt(math.fsum(squares) / len(squares))

    least = 0.01 * start.per_packet_s  # the search is in logarithms
    first = [start.per_packet_s, max(start.per_interrupt_s, least), max(start.wakeup_s, least)][:count]

    def loss(theta: NDArray[np.float64]) -> float:
        return error(costs_of(theta), min(frames, FEWEST_FRAMES))

    solution = minimize(
        loss, np.log(first), method="Nelder-Mead", options={"maxfev": TRIES, "xatol": 1e-3, "fatol": 1e-5}
    )
    costs = costs_of(solution.x)
    return Alternative(dynamics=dynamics, costs=costs, rmse=error(costs, frames))


Pairs = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRow(ComparedRow[float]):
    """The measured idle share, 0..1, at an offered load, frames per second, beside what three costs say of it.

    Predicted is the simulator's share with the costs fitted to all points, Poisson arrivals, ``closed_form`` the same
    in closed form. ``left_out``: with costs fitted to all other points; ``from_half``: to every other point, the first
    among them; NaN where these are too few, and for the points that are fitted.
    """

    SUMMARY: ClassVar = (
        *("offered_pps=conditions", "measured", "simulated=predicted", "closed_form", "left_out", "from_half"),
        "interrupts_per_packet",
    )

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

    SUMMARY: ClassVar = (
        *("name=curve.name", "title=curve.title", "*", "-curve"),
        *("rmse", "closed_form_rmse", "left_out_rmse", "from_half_rmse"),
        *("maximum_pps=fitted.costs.maximum_pps", "maximum_error_ratio"),
    )

    curve: IdleCurve
    fitted: FittedActivation
    half: FittedActivation | None
    points: tuple[IdleRow, ...]
    alternatives: tuple[Alternative, ...] = ()

    @property
    def telling(self) -> tuple[IdleRow, ...]:
        """The points that the errors count: those with idle time and the first one without."""
        busy = next((number for number, point in enumerate(self.points) if point.measured <= 0.0), len(self.points))
        return self.points[: busy + 1]

    @property
    def rmse(self) -> float:
        """Error of the simulated idle share."""
        return root_mean_square(point.predicted - point.measured for point in self.telling)

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


def root_mean_square(errors: Iterable[float]) -> float:
    """Return the root mean square of the errors that are known; NaN if none is."""
    known = [error for error in errors if not math.isnan(error)]
    return math.sqrt(math.fsum(error**2 for error in known) / len(known)) if known else math.nan


def explain_idle(curve: IdleCurve, pairs: Pairs, *, frames: int, seed: int) -> IdleResult:
    """Fit three costs to a curve, simulate each of its points with them, and predict points that were left out.

    Raises FitProblem: the curve cannot be fitted; the error says why.
    """
    fitted = fit_activation_costs(*zip(*pairs, strict=True), series=curve.name)
    loaded = [pair for pair in pairs if pair[0] > 0.0]
    half = _refit(loaded[::2])
    points = []
    for number, (rate, measured) in enumerate(loaded):
        seen = observe(fitted.costs.router(), rate, arrivals="poisson", frames=frames, seed=seed)
        others = _refit(loaded[:number] + loaded[number + 1 :])
        points.append(
            IdleRow(
                conditions=rate,
                measured=measured,
                predicted=seen.idle_ratio,
                closed_form=fitted.costs.idle_ratio(rate),
                left_out=others.costs.idle_ratio(rate) if others else math.nan,
                from_half=half.costs.idle_ratio(rate) if half and number % 2 else math.nan,
                interrupts_per_packet=seen.interrupts_per_packet,
            )
        )
    return IdleResult(curve=curve, fitted=fitted, half=half, points=tuple(points))


def _refit(pairs: list[tuple[float, float]]) -> FittedActivation | None:
    """Fit to a part of the points; None where too few are left."""
    try:
        return fit_activation_costs([rate for rate, _ in pairs], [share for _, share in pairs])
    except FitProblem:
        return None


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


@value
class FormResult:
    """What follows from two rates."""

    part: FormPart
    curves: tuple[FormCurve, ...] = field(
        "Each way to poll, at constant rate and under Poisson arrivals; the first explains both facts"
    )
    range: tuple[FormCurve, ...] = field("The first with the least and with the largest cost of an interrupt")
    of_polynomial: FittedActivation = field(
        "Costs fitted to the published form function itself, as if it were measured, with the given maximum"
    )

    @property
    def best(self) -> FormCurve:
        """The router that polls until it finds nothing, at constant rate, as the paper measured."""
        return self.curves[0]


def dearest_wave(maximum_pps: float) -> tuple[float, float, float, float]:
    """Return where the form function makes a packet dearer as load rises, which no sharing of interrupts does.

    The time per packet is busy share over load, ``x(t)/(t·r_max)``.

    Returns load over maximum rate and seconds per packet at the cheapest point before the dearest, then at the dearest.
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

    Raises FitProblem: the rates contradict each other; the error says how.
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

    def curve(costs: PollCosts, arrivals: ArrivalKind) -> FormCurve:
        tell(f"polls {costs.manner.replace('_', ' ')}, {arrivals}")
        router = costs.router()
        loads = [1.1 * part.maximum * number / LOADS for number in range(1, LOADS + 1)]
        return FormCurve(
            costs=costs,
            arrivals=arrivals,
            points=tuple(observe(router, rate, arrivals=arrivals, frames=frames, seed=seed) for rate in loads),
            at_saturation=observe(router, BEYOND * part.saturation, arrivals=arrivals, frames=frames, seed=seed),
        )

    # Where a frame alone brings its interrupt, interrupt and poll share what two rates leave for both.
    shared_s = 0.5 * (1.0 / part.saturation - 1.0 / part.maximum)
    ways = (costs("until_empty", part.interrupt), costs("until_short", shared_s), costs("exhaustive", shared_s))
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


CLOCK_LOADS = 24
OVERLOAD = 1.2
"""The loads of a curve reach this much above the maximum at the fastest clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockCurve:
    """Latency against load at one clock, and the plateau that a full ring makes."""

    frequency_hz: float
    points: tuple[Observed, ...]
    plateau_s: float

    @property
    def maximum_pps(self) -> float:
        """Greatest forwarding rate seen."""
        return max(point.forwarded_pps for point in self.points)


@value
class ClockResult:
    """What the clock does."""

    SUMMARY: ClassVar = ("*", "-part")

    part: ClockPart
    laws: tuple[FrequencyLaw, ...] = field("One for each share of memory time; illustration")
    shown: FrequencyLaw = field("The law whose latency was simulated")
    curves: tuple[ClockCurve, ...] = field("Its latency, by clock")
    recovered: FittedFrequency = field(
        "The law fitted to the maxima that the simulator reached: it should be `shown` again"
    )
    samples: tuple[tuple[float, float], ...] = field("Measured clocks and maxima, if any", default=())
    fitted: FittedFrequency | None = field("Their law", default=None)


def explain_clock(
    part: ClockPart, costs: PollCosts, *, samples: tuple[tuple[float, float], ...], frames: int, seed: int
) -> ClockResult:
    """Simulate a polling router at several clocks, and fit the law to what it reaches and to measured samples.

    Raises FitProblem: the samples cannot be fitted.
    """
    laws = tuple(
        FrequencyLaw.at(frequency_hz=part.frequency, rate_pps=costs.maximum_pps, memory_ratio=share)
        for share in part.memory
    )
    shown = laws[len(laws) // 2]
    most = OVERLOAD * max(shown.rate_pps(frequency) for frequency in part.frequencies)
    loads = [most * number / CLOCK_LOADS for number in range(1, CLOCK_LOADS + 1)]
    curves = []
    for frequency in part.frequencies:
        slower = shown.frame_s(frequency) / shown.frame_s(part.frequency)
        router = costs.router(slower=slower, ring_frames=part.ring)
        points = tuple(observe(router, rate, arrivals="cbr", frames=frames, seed=seed) for rate in loads)
        curves.append(
            ClockCurve(frequency_hz=frequency, points=points, plateau_s=shown.plateau_s(frequency, part.ring))
        )
    fitted = fit_frequency(*zip(*samples, strict=True), series="clock") if samples else None
    return ClockResult(
        part=part,
        laws=laws,
        shown=shown,
        curves=tuple(curves),
        recovered=fit_frequency(part.frequencies, [curve.maximum_pps for curve in curves], series="clock"),
        samples=samples,
        fitted=fitted,
    )
