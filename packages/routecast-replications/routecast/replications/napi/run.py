"""Run a study of activation: fit costs, simulate, predict points that were left out, compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, get_args

from routecast.errors import FileProblem, FitProblem, Problem
from routecast.power.csv_file import read_csv
from routecast.power.form import PUBLISHED_FORM
from routecast.quantity.comparison import ComparedRow
from routecast.quantity.did_you_mean import did_you_mean
from routecast.replications.activation_costs import (
    FittedActivation,
    PollCosts,
    PollRule,
    fit_activation_costs,
    fit_poll_costs,
)
from routecast.replications.activation_dynamics import (
    DYNAMICS,
    ArrivalKind,
    Dynamics,
    FittedDynamics,
    Observed,
    fit_dynamics,
    observe,
    rms,
)
from routecast.replications.frequency import FittedFrequency, FrequencyLaw, fit_frequency
from routecast.replications.napi.document import ClockPart, FormPart, IdleCurve, NapiRun, NapiStudy
from routecast.study.engine import StudyRun
from routecast.study.result import StudyResult, criteria_of

__all__ = ["NapiResult", "answer"]

FORM_STEPS = tuple(step / 44 for step in range(1, 45))  # loads of a curve of [form] over its greatest load
FORM_CURVES = 8  # three ways to poll under two kinds of arrivals, and two ends of a range
NEVER_IDLE_RATIO = 0.01  # a core with less idle time than this counts as never idle
ABOVE_SATURATION = 1.01  # at constant rate the idle time exactly at saturation is a coincidence
CLOCK_LOADS, OVERLOAD = 24, 1.2  # loads at a clock, and the greatest over the maximum rate at the fastest clock

Pairs = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRow(ComparedRow[float]):
    """The idle share, 0..1, at an offered load, frames per second: measured, and as three costs predict it.

    ``predicted`` is the simulator's share under Poisson arrivals, with the costs fitted to all points; ``closed_form``
    is the same in closed form. ``left_out`` rests on costs fitted to all other points, ``from_half`` on costs fitted to
    the first point, the third and so on. They are NaN where the points are too few, ``from_half`` for its own points.
    """

    closed_form: float
    left_out: float
    from_half: float
    interrupts_per_packet: float

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "offered_pps": self.conditions,
            "measured": self.measured,
            "simulated": self.predicted,
            "closed_form": self.closed_form,
            "left_out": self.left_out,
            "from_half": self.from_half,
            "interrupts_per_packet": self.interrupts_per_packet,
        }


class IdleErrors(NamedTuple):
    """Root mean square errors of the idle share, by what predicts it, in shares of time."""

    simulated: float
    closed_form: float
    left_out: float
    from_half: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleResult:
    """A curve and its explanation."""

    curve: IdleCurve
    fitted: FittedActivation
    half: FittedActivation | None
    points: tuple[IdleRow, ...]
    alternatives: tuple[FittedDynamics, ...] = ()

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "name": self.curve.name,
            "title": self.curve.title,
            "fitted": self.fitted,
            "half": self.half,
            "points": self.points,
            "alternatives": self.alternatives,
            "rmse": self.errors.simulated,
            "closed_form_rmse": self.errors.closed_form,
            "left_out_rmse": self.errors.left_out,
            "from_half_rmse": self.errors.from_half,
            "maximum_pps": self.fitted.costs.maximum_pps,
            "maximum_error_ratio": self.maximum_error_ratio,
        }

    @property
    def judging(self) -> tuple[IdleRow, ...]:
        """The points that the errors count: those with idle time and the first without it."""
        busy = next((number for number, point in enumerate(self.points) if point.measured <= 0.0), len(self.points))
        return self.points[: busy + 1]

    @property
    def errors(self) -> IdleErrors:
        """Errors over the points that judge."""
        return IdleErrors(
            simulated=rms(row.predicted - row.measured for row in self.judging),
            closed_form=rms(row.closed_form - row.measured for row in self.judging),
            left_out=rms(row.left_out - row.measured for row in self.judging),
            from_half=rms(row.from_half - row.measured for row in self.judging),
        )

    @property
    def maximum_error_ratio(self) -> float:
        """Relative error of the maximum rate against the one measured apart; NaN where there is none."""
        return self.fitted.costs.maximum_pps / (self.curve.maximum or math.nan) - 1.0


def explain_idle(
    curve: IdleCurve, pairs: Pairs, run: NapiRun, dynamics: tuple[Dynamics, ...], on_step: Callable[[str], None]
) -> IdleResult:
    """Fit three costs to a curve, simulate its points, predict points that were left out, and fit other dynamics.

    Raises FitProblem: the curve cannot be fitted.
    """

    def refit(part: Pairs) -> FittedActivation | None:
        try:
            return fit_activation_costs(*zip(*part, strict=True))
        except FitProblem:  # the part has too few points
            return None

    def fit(kind: Dynamics) -> FittedDynamics:
        on_step(f"{curve.name}: {kind.words}")
        return fit_dynamics(kind, judging, fitted.costs, frames=run.frames, seed=run.seed)

    on_step(f"{curve.name}: three costs")
    fitted = fit_activation_costs(*zip(*pairs, strict=True), series=curve.name)
    router, loaded = fitted.costs.router(), tuple(pair for pair in pairs if pair[0] > 0.0)
    half = refit(loaded[::2])
    points = []
    for number, (rate_pps, measured) in enumerate(loaded):
        simulated = observe(router, rate_pps, "poisson", frames=run.frames, seed=run.seed)
        others = refit(loaded[:number] + loaded[number + 1 :])
        row = IdleRow(
            conditions=rate_pps,
            measured=measured,
            predicted=simulated.idle_ratio,
            closed_form=fitted.costs.idle_ratio(rate_pps),
            left_out=others.costs.idle_ratio(rate_pps) if others else math.nan,
            from_half=half.costs.idle_ratio(rate_pps) if half and number % 2 else math.nan,
            interrupts_per_packet=simulated.interrupts_per_packet,
        )
        points.append(row)
    result = IdleResult(curve=curve, fitted=fitted, half=half, points=tuple(points))
    judging = tuple((row.conditions, row.measured) for row in result.judging)
    return replace(result, alternatives=tuple(map(fit, dynamics)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FormCurve:
    """One way to poll under one kind of arrivals; the load of ``at_saturation`` is a percent above saturation.

    ``maximum_pps``: greatest forwarding rate; ``never_idle_pps``: least load from which on the core is never idle;
    ``form_rmse``: root mean square of busy share less published form function, over loads up to the maximum.
    """

    costs: PollCosts
    arrivals: ArrivalKind
    points: tuple[Observed, ...]
    at_saturation: Observed
    maximum_pps: float
    never_idle_pps: float
    form_rmse: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FormResult:
    """A polling router that two rates calibrate, beside the published form function.

    ``curves``: each way to poll, at constant rate and under Poisson arrivals; the first explains both rates. ``range``:
    the first with the least and with the largest cost of an interrupt. ``of_polynomial``: costs fitted to the published
    form function as if it were measured.
    """

    part: FormPart
    curves: tuple[FormCurve, ...]
    range: tuple[FormCurve, ...]
    of_polynomial: FittedActivation

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "curves": self.curves,
            "range": self.range,
            "of_polynomial": self.of_polynomial,
            "polynomial_rmse": self.of_polynomial.rmse_ratio,
        }


def greatest_rise_per_packet(maximum_pps: float) -> tuple[float, float, float, float]:
    """Return the greatest rise of the time per packet with load in the form function; shared interrupts only lower it.

    The time per packet is busy share over load, ``x(t)/(t·r_max)``. The result is load over maximum rate and seconds
    per packet at the low end of the rise, then at its high end.
    """
    times = [(PUBLISHED_FORM.at(t) / t / maximum_pps, t) for t in (step / 1000 for step in range(100, 1001))]
    (low_s, low), (high_s, high) = max(
        zip(accumulate(times, min), times, strict=True), key=lambda pair: pair[1][0] - pair[0][0]
    )
    return low, low_s, high, high_s


def explain_form(part: FormPart, run: NapiRun, on_step: Callable[[str], None]) -> FormResult:
    """Calibrate a polling router from two rates, and simulate it at loads up to its maximum.

    Raises FitProblem: the rates contradict each other.
    """

    def curve(manner: PollRule, per_interrupt_s: float, arrivals: ArrivalKind) -> FormCurve:
        on_step(f"polls {manner.replace('_', ' ')}, {arrivals}")
        costs = fit_poll_costs(
            maximum_pps=part.maximum,
            saturation_pps=part.saturation,
            manner=manner,
            per_interrupt_s=per_interrupt_s,
            budget_frames=part.budget,
            series="form",
        )
        at = partial(observe, costs.router(), arrivals=arrivals, frames=run.frames, seed=run.seed)
        points = tuple(at(1.1 * part.maximum * step) for step in FORM_STEPS)
        idle_pps = max((point.offered_pps for point in points if point.idle_ratio > NEVER_IDLE_RATIO), default=0.0)
        return FormCurve(
            costs=costs,
            arrivals=arrivals,
            points=points,
            at_saturation=at(ABOVE_SATURATION * part.saturation),
            maximum_pps=max(point.forwarded_pps for point in points),
            never_idle_pps=min(point.offered_pps for point in points if point.offered_pps > idle_pps),
            form_rmse=rms(
                1.0 - point.idle_ratio - PUBLISHED_FORM.at(point.offered_pps / part.maximum)
                for point in points
                if point.offered_pps <= part.maximum
            ),
        )

    # Where each single frame brings an interrupt, interrupt and poll share the time that two rates leave for both.
    shared_s = 0.5 * (1.0 / part.saturation - 1.0 / part.maximum)
    return FormResult(
        part=part,
        curves=tuple(
            curve(manner, part.interrupt if manner == "until_empty" else shared_s, arrivals)
            for manner in get_args(PollRule)
            for arrivals in get_args(ArrivalKind)
        ),
        range=tuple(curve("until_empty", cost_s, "cbr") for cost_s in part.interrupt_range),
        of_polynomial=fit_activation_costs(
            [part.maximum * step for step in FORM_STEPS],
            [min(max(1.0 - PUBLISHED_FORM.at(step), 0.0), 1.0) for step in FORM_STEPS],
            series="form function",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockCurve:
    """Latency against load and the greatest forwarding rate at one clock, and the plateau that a full ring makes."""

    frequency_hz: float
    points: tuple[Observed, ...]
    maximum_pps: float
    plateau_s: float

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "frequency_hz": self.frequency_hz,
            "points": self.points,
            "plateau_s": self.plateau_s,
            "arrivals": self.arrivals,
        }

    @property
    def arrivals(self) -> str:
        """The arrivals of all its points, in words."""
        return self.points[0].arrivals


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockResult:
    """Maximum rate and latency of the router at other clocks.

    ``laws``: one for each share of memory time, an illustration; ``shown``: the law whose latency was simulated;
    ``recovered``: the law fitted to the simulated maxima, which should be ``shown`` again; ``fitted``: the law of the
    measured ``samples`` (clock, maximum), if any.
    """

    part: ClockPart
    laws: tuple[FrequencyLaw, ...]
    shown: FrequencyLaw
    curves: tuple[ClockCurve, ...]
    recovered: FittedFrequency
    samples: Pairs
    fitted: FittedFrequency | None

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "laws": self.laws,
            "shown": self.shown,
            "curves": self.curves,
            "recovered": self.recovered,
            "samples": self.samples,
            "fitted": self.fitted,
        }


def explain_clock(part: ClockPart, costs: PollCosts, samples: Pairs, run: NapiRun) -> ClockResult:
    """Simulate a polling router at several clocks, and fit the law to its maxima and to measured samples.

    Raises FitProblem: the samples cannot be fitted.
    """
    laws = tuple(
        FrequencyLaw.at(frequency_hz=part.frequency, rate_pps=costs.maximum_pps, memory_ratio=share)
        for share in part.memory
    )
    shown = laws[len(laws) // 2]
    max_pps = OVERLOAD * max(shown.rate_pps(frequency) for frequency in part.frequencies)
    curves = []
    for frequency in part.frequencies:
        slower = shown.frame_s(frequency) / shown.frame_s(part.frequency)
        router = costs.router(slower=slower, ring_frames=part.ring)
        points = tuple(
            observe(router, max_pps * number / CLOCK_LOADS, "cbr", frames=run.frames, seed=run.seed)
            for number in range(1, CLOCK_LOADS + 1)
        )
        curve = ClockCurve(
            frequency_hz=frequency,
            points=points,
            maximum_pps=max(point.forwarded_pps for point in points),
            plateau_s=shown.plateau_s(frequency, part.ring),
        )
        curves.append(curve)
    return ClockResult(
        part=part,
        laws=laws,
        shown=shown,
        curves=tuple(curves),
        recovered=fit_frequency(part.frequencies, [curve.maximum_pps for curve in curves], series="clock"),
        samples=samples,
        fitted=fit_frequency(*zip(*samples, strict=True), series="clock") if samples else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NapiResult(StudyResult[NapiStudy]):
    """The results of a study of activation."""

    idle: tuple[IdleResult, ...]
    form: FormResult | None
    clock: ClockResult | None

    def _findings(self) -> dict[str, object]:
        return {"idle": self.idle, "form": self.form, "clock": self.clock}


def criteria(
    study: NapiStudy, idle: tuple[IdleResult, ...], form: FormResult | None
) -> Iterator[tuple[str, float | None, float]]:
    """Yield name, bound and error of each criterion."""
    bounds = study.criteria
    for result in idle:
        name, errors = result.curve.name, result.errors
        yield f"{name}: root mean square error, simulated idle share", bounds.idle_rmse, errors.simulated
        yield f"{name}: root mean square error, idle share of points left out", bounds.left_out_rmse, errors.left_out
        if result.curve.maximum is not None:
            error = abs(result.maximum_error_ratio)
            yield f"{name}: relative error of the maximum rate", bounds.maximum_error, error
    if form:
        idle_ratio = form.curves[0].at_saturation.idle_ratio
        yield "idle share just above the rate of saturation", bounds.saturated_idle, idle_ratio


def read_pairs(path: Path, first: str, second: str, series: str = "") -> Pairs:
    """Read two columns of numbers in the order of the file, from all rows or those of a series.

    Raises FileProblem: the file cannot be read, has no such column or series, or cells are no numbers.
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
    """Fit costs, simulate, predict points that were left out, compare.

    An interrupted run starts again, since a study takes less than a minute. Raises RoutecastError: a table cannot be
    read, or a curve cannot be fitted.
    """
    study, folder, trials = run.study, run.folder, run.study.run
    curves = [
        (curve, read_pairs(folder / curve.file, "offered_pps", "idle_ratio", curve.series)) for curve in study.idle
    ]
    samples: Pairs = ()
    if study.clock and study.clock.samples:
        samples = read_pairs(folder / study.clock.samples, "frequency_hz", "rate_pps")
    dynamics = DYNAMICS if trials.compare else ()
    run.work = len(curves) * (1 + len(dynamics)) + FORM_CURVES * bool(study.form) + bool(study.clock)
    idle = tuple(explain_idle(curve, pairs, trials, dynamics, run.step) for curve, pairs in curves)
    form = explain_form(study.form, trials, run.step) if study.form else None
    clock = None
    if study.clock and form:
        run.step("other clocks")
        clock = explain_clock(study.clock, form.curves[0].costs, samples, trials)
    return NapiResult(
        study=study,
        out=run.out,
        idle=idle,
        form=form,
        clock=clock,
        criteria=criteria_of(*criteria(study, idle, form)),
        provenance=run.provenance(seed=trials.seed),
    )
