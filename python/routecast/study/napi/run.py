"""Running a study of activation: fit costs, simulate, predict points that were left out, compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from routecast.calibration.activation_costs import (
    ActivationCosts,
    FittedActivation,
    PollCosts,
    PollManner,
    fit_activation_costs,
    fit_poll_costs,
)
from routecast.calibration.frequency import FittedFrequency, FrequencyLaw, fit_frequency
from routecast.errors import FileProblem, FitProblem, Problem
from routecast.evaluate.simulate import Simulate
from routecast.load.arrivals import Arrivals
from routecast.load.offered import OfferedLoad
from routecast.power.csv_file import read_csv
from routecast.power.form import PUBLISHED_FORM
from routecast.quantity.comparison import ComparedRow
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.router.model import PollDiscipline, RandomTime, RouterModel
from routecast.study.engine import StudyRun
from routecast.study.napi.document import ClockPart, FormPart, IdleCurve, NapiRun, NapiStudy
from routecast.study.result import Criterion, StudyResult, criteria_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NapiResult", "answer"]

CORE = "core 0"
"""Name of the task unit that works, in the routers of one core."""

FEWEST_FRAMES, TRIES = 5_000, 90
"""Frames of a trial and trials of a curve while costs are searched by simulation."""

FORM_LOADS = 44
"""Loads of a curve of ``[form]``, evenly from near 0 to 10 % above the maximum."""

FORM_STEPS = 8
"""Curves of ``[form]``: three ways to poll under two kinds of arrivals, and two ends of a range."""

NEVER_IDLE_RATIO = 0.01
"""Below a percent of idle time a core counts as never idle."""

BEYOND = 1.01
"""At constant rate the idle time exactly at saturation is a coincidence: it is simulated a percent above."""

CLOCK_LOADS, OVERLOAD = 24, 1.2
"""Loads of a curve at one clock; they reach this much above the maximum at the fastest clock."""

ArrivalKind = Literal["cbr", "poisson"]
Pairs = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One core at one offered load, in the inside view of Bolla et al. 2009, fig. 6."""

    offered_pps: float
    forwarded_pps: float
    idle_ratio: float
    interrupts_per_packet: float
    polls_per_packet: float
    latency_p50_s: float


def observe(router: RouterModel, rate_pps: float, arrivals: ArrivalKind, run: NapiRun) -> Observed:
    """Simulate a router of one core under one load."""
    load = OfferedLoad(rate_pps=rate_pps, arrivals=Arrivals.poisson() if arrivals == "poisson" else Arrivals.cbr())
    # In overload the throughput settles long before the latency of a filling queue does.
    trial = Simulate(router, seed=run.seed, steady_state=False).trial(load, run.frames / rate_pps)
    activity = next(each for each in trial.activity if each.name == CORE)
    passing_pps = trial.forwarded_pps or math.nan
    return Observed(
        offered_pps=rate_pps,
        forwarded_pps=trial.forwarded_pps,
        idle_ratio=1.0 - activity.busy_ratio,
        interrupts_per_packet=activity.interrupts_per_s / passing_pps,
        polls_per_packet=activity.polls_per_s / passing_pps,
        latency_p50_s=trial.latency.p50_s if trial.latency else math.nan,
    )


def maximum_pps(points: Iterable[Observed]) -> float:
    """Return the greatest forwarding rate that was simulated."""
    return max(point.forwarded_pps for point in points)


def root_mean_square(errors: Iterable[float]) -> float:
    """Return the root mean square of the errors that are known; NaN if none is."""
    squares = [error**2 for error in errors if not math.isnan(error)]
    return math.sqrt(fmean(squares)) if squares else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamics:
    """How a core is activated, with costs per packet and per interrupt, and perhaps a third cost.

    The third is a ``wakeup``, which delays every interrupt of a sleeping core, or a ``moderation``, which keeps
    interrupts apart. Fitted to the same idle curve, dynamics with as many costs differ in how well they explain it.
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
        third_s = costs.wakeup_s
        router = replace(costs, wakeup_s=0.0).router()
        task = router.task(CORE)
        activation = replace(
            task.activation,
            discipline=self.discipline,
            moderation_s=third_s if self.third == "moderation" else 0.0,
            wakeup=RandomTime(mean_s=third_s) if self.third == "wakeup" and third_s > 0.0 else None,
        )
        core = replace(task, activation=activation)
        return replace(router, tasks=tuple(core if each is task else each for each in router.tasks))


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


def fit_alternative(dynamics: Dynamics, pairs: Pairs, start: ActivationCosts, run: NapiRun) -> Alternative:
    """Fit the costs of some dynamics to a curve, each trial answered by the simulator.

    ``pairs``: offered loads > 0 and idle shares; ``start``: where the search begins; ``run``: of the trials that judge
    the costs; those of the search take fewer frames.
    """
    import numpy as np
    from scipy.optimize import minimize

    count = 2 if dynamics.third == "none" else 3
    searching = run.model_copy(update={"frames": min(run.frames, FEWEST_FRAMES)})

    def costs_of(logarithms: NDArray[np.float64]) -> ActivationCosts:
        per_packet_s, per_interrupt_s, *third = map(float, np.exp(logarithms))
        return ActivationCosts(
            per_packet_s=per_packet_s, per_interrupt_s=per_interrupt_s, wakeup_s=third[0] if third else 0.0
        )

    def error(costs: ActivationCosts, run: NapiRun) -> float:
        router = dynamics.router(costs)
        return root_mean_square(observe(router, rate, dynamics.arrivals, run).idle_ratio - idle for rate, idle in pairs)

    def search_error(logarithms: NDArray[np.float64]) -> float:
        return error(costs_of(logarithms), searching)

    least_s = 0.01 * start.per_packet_s
    first = [start.per_packet_s, max(start.per_interrupt_s, least_s), max(start.wakeup_s, least_s)][:count]
    solution = minimize(
        search_error, np.log(first), method="Nelder-Mead", options={"maxfev": TRIES, "xatol": 1e-3, "fatol": 1e-5}
    )
    costs = costs_of(solution.x)
    return Alternative(dynamics=dynamics, costs=costs, rmse=error(costs, run))


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRow(ComparedRow[float]):
    """The idle share, 0..1, at an offered load, frames per second: measured, and as three costs predict it.

    ``predicted`` is the simulator's share with the costs fitted to all points, Poisson arrivals, ``closed_form`` the
    same in closed form. ``left_out`` has the costs fitted to all other points, ``from_half`` those fitted to every
    other point, the first among them; NaN where these are too few, and for the points that are fitted.
    """

    SUMMARY: ClassVar = (
        *("offered_pps=conditions", "measured", "simulated=predicted", "closed_form", "left_out", "from_half"),
        "interrupts_per_packet",
    )

    closed_form: float
    left_out: float
    from_half: float
    interrupts_per_packet: float


class IdleErrors(NamedTuple):
    """Root mean square errors of the idle share, by what predicts it, in shares of time."""

    simulated: float
    closed_form: float
    left_out: float
    from_half: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleResult:
    """A curve and its explanation."""

    SUMMARY: ClassVar = (
        *("name=curve.name", "title=curve.title", "*", "-curve", "rmse=errors.simulated"),
        *("closed_form_rmse=errors.closed_form", "left_out_rmse=errors.left_out", "from_half_rmse=errors.from_half"),
        *("maximum_pps=fitted.costs.maximum_pps", "maximum_error_ratio"),
    )

    curve: IdleCurve
    fitted: FittedActivation
    half: FittedActivation | None
    points: tuple[IdleRow, ...]
    alternatives: tuple[Alternative, ...] = ()

    @property
    def judging(self) -> tuple[IdleRow, ...]:
        """The points that the errors count: with idle time, and the first without; those beyond are as easy."""
        busy = next((number for number, point in enumerate(self.points) if point.measured <= 0.0), len(self.points))
        return self.points[: busy + 1]

    @property
    def errors(self) -> IdleErrors:
        """Errors over the points that judge."""
        predictions = map(attrgetter, ("predicted", "closed_form", "left_out", "from_half"))
        return IdleErrors(*(root_mean_square(of(row) - row.measured for row in self.judging) for of in predictions))

    @property
    def maximum_error_ratio(self) -> float:
        """Relative error of the maximum rate against the one measured apart; NaN where there is none."""
        return self.fitted.costs.maximum_pps / (self.curve.maximum or math.nan) - 1.0


def explain_idle(curve: IdleCurve, pairs: Pairs, run: NapiRun) -> IdleResult:
    """Fit three costs to a curve, simulate each of its points with them, and predict points that were left out.

    Raises FitProblem: the curve cannot be fitted; the error says why.
    """

    def refit(part: Pairs) -> FittedActivation | None:
        try:
            return fit_activation_costs(*zip(*part, strict=True))
        except FitProblem:  # too few are left
            return None

    fitted = fit_activation_costs(*zip(*pairs, strict=True), series=curve.name)
    costs, router = fitted.costs, fitted.costs.router()
    loaded = tuple(pair for pair in pairs if pair[0] > 0.0)
    half = refit(loaded[::2])
    points = []
    for number, (rate_pps, measured) in enumerate(loaded):
        simulated = observe(router, rate_pps, "poisson", run)
        others = refit(loaded[:number] + loaded[number + 1 :])
        points.append(
            IdleRow(
                conditions=rate_pps,
                measured=measured,
                predicted=simulated.idle_ratio,
                closed_form=costs.idle_ratio(rate_pps),
                left_out=others.costs.idle_ratio(rate_pps) if others else math.nan,
                from_half=half.costs.idle_ratio(rate_pps) if half and number % 2 else math.nan,
                interrupts_per_packet=simulated.interrupts_per_packet,
            )
        )
    return IdleResult(curve=curve, fitted=fitted, half=half, points=tuple(points))


@dataclass(frozen=True, slots=True, kw_only=True)
class FormCurve:
    """One way to poll under one kind of arrivals, against load; ``at_saturation`` is simulated a percent above it.

    ``form_rmse`` is the root mean square of busy share less published form function, over loads up to the maximum.
    """

    SUMMARY: ClassVar = ("costs", "arrivals", "points", "at_saturation", "maximum_pps", "never_idle_pps", "form_rmse")

    costs: PollCosts
    arrivals: ArrivalKind
    points: tuple[Observed, ...]
    at_saturation: Observed
    form_rmse: float

    @property
    def maximum_pps(self) -> float:
        """Greatest forwarding rate."""
        return maximum_pps(self.points)

    @property
    def never_idle_pps(self) -> float:
        """Least load from which on the core is never idle."""
        last = max((point.offered_pps for point in self.points if point.idle_ratio > NEVER_IDLE_RATIO), default=0.0)
        return min(point.offered_pps for point in self.points if point.offered_pps > last)


@value
class FormResult:
    """What follows from two rates."""

    SUMMARY: ClassVar = ("*", "-part", "polynomial_rmse=of_polynomial.rmse_ratio")

    part: FormPart
    curves: tuple[FormCurve, ...] = field(
        "Each way to poll, at constant rate and under Poisson arrivals; the first explains both rates, as measured"
    )
    range: tuple[FormCurve, ...] = field("The first with the least and with the largest cost of an interrupt")
    of_polynomial: FittedActivation = field("Costs fitted to the published form function as if it were measured")


def dearest_wave(maximum_pps: float) -> tuple[float, float, float, float]:
    """Return where the form function makes a packet dearer as load rises, which no sharing of interrupts does.

    The time per packet is busy share over load, ``x(t)/(t·r_max)``.

    Returns load over maximum rate and seconds per packet at the cheapest point before the dearest, then at the dearest.
    """
    times = [(PUBLISHED_FORM.at(t) / t / maximum_pps, t) for t in (step / 1000 for step in range(100, 1001))]
    (low_s, low), (high_s, high) = max(
        zip(accumulate(times, min), times, strict=True), key=lambda pair: pair[1][0] - pair[0][0]
    )
    return low, low_s, high, high_s


def explain_form(part: FormPart, run: NapiRun, on_curve: Callable[[str], None]) -> FormResult:
    """Calibrate a polling router from two rates and look into it at loads up to its maximum.

    Raises FitProblem: the rates contradict each other; the error says how.
    """

    def curve(manner: PollManner, per_interrupt_s: float, arrivals: ArrivalKind) -> FormCurve:
        on_curve(f"polls {manner.replace('_', ' ')}, {arrivals}")
        costs = fit_poll_costs(
            maximum_pps=part.maximum,
            saturation_pps=part.saturation,
            manner=manner,
            per_interrupt_s=per_interrupt_s,
            budget_frames=part.budget,
            series="form",
        )
        router = costs.router()
        loads = [1.1 * part.maximum * number / FORM_LOADS for number in range(1, FORM_LOADS + 1)]
        points = tuple(observe(router, rate, arrivals, run) for rate in loads)
        return FormCurve(
            costs=costs,
            arrivals=arrivals,
            points=points,
            at_saturation=observe(router, BEYOND * part.saturation, arrivals, run),
            form_rmse=root_mean_square(
                1.0 - point.idle_ratio - PUBLISHED_FORM.at(point.offered_pps / part.maximum)
                for point in points
                if point.offered_pps <= part.maximum
            ),
        )

    # Where a frame alone brings its interrupt, interrupt and poll share what two rates leave for both.
    shared_s = 0.5 * (1.0 / part.saturation - 1.0 / part.maximum)
    ways: dict[PollManner, float] = {"until_empty": part.interrupt, "until_short": shared_s, "exhaustive": shared_s}
    kinds: tuple[ArrivalKind, ...] = ("cbr", "poisson")
    steps = [number / FORM_LOADS for number in range(1, FORM_LOADS + 1)]
    return FormResult(
        part=part,
        curves=tuple(curve(manner, cost_s, arrivals) for manner, cost_s in ways.items() for arrivals in kinds),
        range=tuple(curve("until_empty", cost_s, "cbr") for cost_s in part.interrupt_range),
        of_polynomial=fit_activation_costs(
            [part.maximum * step for step in steps],
            [min(max(1.0 - PUBLISHED_FORM.at(step), 0.0), 1.0) for step in steps],
            series="form function",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockCurve:
    """Latency against load at one clock, and the plateau that a full ring makes."""

    frequency_hz: float
    points: tuple[Observed, ...]
    plateau_s: float


@value
class ClockResult:
    """Maximum rate and latency of the router at other clocks."""

    SUMMARY: ClassVar = ("*", "-part")

    part: ClockPart
    laws: tuple[FrequencyLaw, ...] = field("One for each share of memory time; illustration")
    shown: FrequencyLaw = field("The law whose latency was simulated")
    curves: tuple[ClockCurve, ...] = field("Latency by clock")
    recovered: FittedFrequency = field("The law fitted to the simulated maxima: it should be `shown` again")
    samples: Pairs = field("Measured clocks and maxima, if any", default=())
    fitted: FittedFrequency | None = field("Their law", default=None)


def explain_clock(part: ClockPart, costs: PollCosts, samples: Pairs, run: NapiRun) -> ClockResult:
    """Simulate a polling router at several clocks, and fit the law to its maxima and to measured samples.

    Raises FitProblem: the samples cannot be fitted.
    """
    laws = tuple(
        FrequencyLaw.at(frequency_hz=part.frequency, rate_pps=costs.maximum_pps, memory_ratio=share)
        for share in part.memory
    )
    shown = laws[len(laws) // 2]
    most_pps = OVERLOAD * max(shown.rate_pps(frequency) for frequency in part.frequencies)
    loads = [most_pps * number / CLOCK_LOADS for number in range(1, CLOCK_LOADS + 1)]
    curves = []
    for frequency in part.frequencies:
        slower = shown.frame_s(frequency) / shown.frame_s(part.frequency)
        router = costs.router(slower=slower, ring_frames=part.ring)
        points = tuple(observe(router, rate, "cbr", run) for rate in loads)
        plateau_s = shown.plateau_s(frequency, part.ring)
        curves.append(ClockCurve(frequency_hz=frequency, points=points, plateau_s=plateau_s))
    return ClockResult(
        part=part,
        laws=laws,
        shown=shown,
        curves=tuple(curves),
        recovered=fit_frequency(part.frequencies, [maximum_pps(curve.points) for curve in curves], series="clock"),
        samples=samples,
        fitted=fit_frequency(*zip(*samples, strict=True), series="clock") if samples else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NapiResult(StudyResult[NapiStudy]):
    """The results of a study of activation."""

    FINDINGS: ClassVar = ("idle", "form", "clock")

    idle: tuple[IdleResult, ...]
    form: FormResult | None
    clock: ClockResult | None


def criteria(study: NapiStudy, idle: Sequence[IdleResult], form: FormResult | None) -> tuple[Criterion, ...]:
    """Return the study's bounds with what was reached."""
    bounds = study.criteria
    limits: list[tuple[str, float | None, float]] = []
    for each in idle:
        name, errors = each.curve.name, each.errors
        limits += [
            (f"{name}: root mean square error, simulated idle share", bounds.idle_rmse, errors.simulated),
            (f"{name}: root mean square error, idle share of points left out", bounds.left_out_rmse, errors.left_out),
        ]
        if each.curve.maximum is not None:
            error = abs(each.maximum_error_ratio)
            limits.append((f"{name}: relative error of the maximum rate", bounds.maximum_error, error))
    if form:
        idle_ratio = form.curves[0].at_saturation.idle_ratio
        limits.append(("idle share just above the rate of saturation", bounds.saturated_idle, idle_ratio))
    return criteria_of(*limits)


def read_pairs(path: Path, first: str, second: str, series: str = "") -> Pairs:
    """Read two columns of numbers, in the order of the file; of the rows of one ``series`` if it is not empty.

    Raises FileProblem: the file cannot be read, has no such column or series, or a cell is no number; every wrong row
    is named.
    """
    file = read_csv(path, kind="table of measured pairs")
    file.require((first, second))
    rows = [row for row in file.rows if not series or row.text("series") == series]
    if not rows:
        message = f"has no series {series!r}; {did_you_mean(series, {row.text('series') for row in file.rows})}"
        raise FileProblem(str(path), [Problem("series", message)])
    pairs = tuple((row.number_in(first), row.number_in(second)) for row in rows)
    file.refuse_faults()
    return pairs


def answer(run: StudyRun[NapiStudy]) -> NapiResult:
    """Fit, simulate, leave out and compare.

    An interrupted run starts again: a study takes less than a minute. Raises RoutecastError: a table cannot be read, or
    a curve cannot be fitted.
    """
    study, folder, trials = run.study, run.folder, run.study.run
    curves = [
        (curve, read_pairs(folder / curve.file, "offered_pps", "idle_ratio", curve.series)) for curve in study.idle
    ]
    samples: Pairs = ()
    if study.clock and study.clock.samples:
        samples = read_pairs(folder / study.clock.samples, "frequency_hz", "rate_pps")
    compared = ALTERNATIVES if trials.compare else ()
    run.work = len(curves) * (1 + len(compared)) + FORM_STEPS * bool(study.form) + bool(study.clock)

    idle: list[IdleResult] = []
    for curve, pairs in curves:
        run.step(f"{curve.name}: three costs")
        explained = explain_idle(curve, pairs, trials)
        judging = tuple((point.conditions, point.measured) for point in explained.judging)
        others = []
        for dynamics in compared:
            run.step(f"{curve.name}: {dynamics.words}")
            others.append(fit_alternative(dynamics, judging, explained.fitted.costs, trials))
        idle.append(replace(explained, alternatives=tuple(others)))
    form = explain_form(study.form, trials, run.step) if study.form else None
    clock = None
    if study.clock and form:
        run.step("other clocks")
        clock = explain_clock(study.clock, form.curves[0].costs, samples, trials)
    return NapiResult(
        study=study,
        out=run.out,
        idle=tuple(idle),
        form=form,
        clock=clock,
        criteria=criteria(study, idle, form),
        provenance=run.provenance(seed=trials.seed),
    )
