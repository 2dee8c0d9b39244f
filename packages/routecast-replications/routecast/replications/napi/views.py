"""The report of a study of activation: idle time from three costs, the origin of the form function, the clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from routecast.evaluate.views import arrivals_note
from routecast.power.form import PUBLISHED_FORM
from routecast.quantity import format_duration
from routecast.replications.activation_costs import ActivationCosts
from routecast.replications.activation_dynamics import Observed
from routecast.replications.frequency import FrequencyLaw
from routecast.replications.napi.run import (
    ClockCurve,
    ClockResult,
    FormCurve,
    FormResult,
    IdleResult,
    IdleRow,
    NapiResult,
    greatest_rise_per_packet,
)
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Points, Stack, palette
from routecast.show.page import Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, scaled, signed_percent
from routecast.study.result import TerminalSummary

__all__ = ["page", "terminal_summary"]

POLLS = {"until_empty": "until empty", "until_short": "until short", "exhaustive": "exhaustive"}
ARRIVALS = {"cbr": "constant rate", "poisson": "Poisson"}
WORK, INTERRUPT, WAKE, IDLE, EXHAUSTIVE = "#3f6fb5", "#c8524a", "#b39a2f", "#c9ced6", "#4aa36a"
UNIT_GRID = tuple(step / 120 for step in range(121))
DOT: Final[dict[str, Any]] = {"size_px": 7}
RING: Final[dict[str, Any]] = {"size_px": 12, "filled": False}

_points, _mpps, _kpps, _us = scaled(100.0, ".1f"), scaled(1e-6, ".2f"), scaled(1e-3, ".0f"), scaled(1e6, ".0f")


def _interval(low: float, high: float, write: Callable[[float], str]) -> str | None:
    return f"{write(low)}–{write(high)}" if math.isfinite(low + high) else None


def _idle_table(result: IdleResult) -> Table:
    def judging(title: str, prediction: Callable[[IdleRow], float]) -> Column[IdleRow]:
        judged = {row.conditions: prediction(row) for row in result.judging}
        return Column(title, "%", _points, lambda row: judged.get(row.conditions), group="fitted without it")

    return Table.of(
        result.points,
        Column("Load", "Mpps", scaled(1e-6, ".4g"), lambda row: row.conditions),
        Column("Measured", "%", _points, lambda row: row.measured),
        Column("Simulated", "%", _points, lambda row: row.predicted, group="three costs"),
        Column("Error", "points", scaled(100.0, "+.1f"), lambda row: row.predicted - row.measured, group="three costs"),
        Column("Closed form", "%", _points, lambda row: row.closed_form, group="three costs", wide=True),
        judging("Left out", lambda row: row.left_out),
        judging("From half", lambda row: row.from_half),
        Column("IRQs", "per packet", ".3f", lambda row: row.interrupts_per_packet),
        name=f"idle-{result.curve.name}",
        title=f"{result.curve.title}: idle time of one core",
        caption="In percent of the time. Left out: fitted to all other points; from half: to every other point. "
        "Points after the first without idle time do not count in the errors.",
    )


def _cost_table(idle: tuple[IdleResult, ...]) -> Table:
    costs: dict[str, Callable[[ActivationCosts], float]] = {
        "per packet": lambda costs: costs.per_packet_s,
        "per interrupt, with its poll": lambda costs: costs.per_interrupt_s,
        "wake-up, idle": lambda costs: costs.wakeup_s,
    }
    rows = [
        (result.curve.title, name, cost(result.fitted.costs), cost(result.fitted.low), cost(result.fitted.high))
        for result in idle
        for name, cost in costs.items()
    ]
    return Table.of(
        rows,
        Column.text("Curve", itemgetter(0)),
        Column.text("Cost", itemgetter(1)),
        Column("Value", "ns", scaled(1e9, ".1f"), itemgetter(2)),
        Column("95 % interval", "ns", getter=lambda row: _interval(row[3], row[4], scaled(1e9, ".0f"))),
        name="costs",
        title="Fitted costs",
        caption="Three costs for each curve, with 95 % intervals (Gauss-Newton, Student's t).",
    )


def _error_table(idle: tuple[IdleResult, ...]) -> Table:
    return Table.of(
        idle,
        Column.text("Curve", lambda result: result.curve.title),
        Column("Points", "", "d", lambda result: len(result.judging)),
        Column("Simulated", "points", percent, lambda result: result.errors.simulated),
        Column("Left out", "points", percent, lambda result: result.errors.left_out),
        Column("Other half", "points", percent, lambda result: result.errors.from_half),
        Column("1/c", "Mpps", _mpps, lambda result: result.fitted.costs.maximum_pps, group="maximum rate"),
        Column("Measured", "Mpps", _mpps, lambda result: result.curve.maximum, group="maximum rate"),
        Column("Error", "%", signed_percent, lambda result: result.maximum_error_ratio, group="maximum rate"),
        name="errors",
        title="How wrong the three costs are",
        caption="Root mean square errors in percentage points of the time, over points up to the first without idle "
        "time. The maximum comes from another measurement and was not fitted.",
    )


def _dynamics_table(idle: tuple[IdleResult, ...]) -> Table:
    ns = scaled(1e9, ".0f")
    best = {id(min(result.alternatives, key=lambda alternative: alternative.rmse, default=None)) for result in idle}
    return Table.of(
        [(result.curve.title, alternative) for result in idle for alternative in result.alternatives],
        Column.text("Curve", itemgetter(0)),
        Column.text("Arrivals, polls, third", lambda row: row[1].dynamics.words),
        Column("Error", "points", percent, lambda row: row[1].rmse),
        Column("Packet", "ns", scaled(1e9, ".1f"), lambda row: row[1].costs.per_packet_s),
        Column("Interrupt", "ns", ns, lambda row: row[1].costs.per_interrupt_s),
        Column("Third", "ns", ns, lambda row: None if row[1].dynamics.third == "none" else row[1].costs.wakeup_s),
        name="dynamics",
        title="Which dynamics explain the curves best",
        caption="The simulator fits all of them. Exhaustive polls take frames that come during the poll, gated polls "
        "only those that wait when it begins. A wake-up delays interrupts of a sleeping core, and moderation keeps "
        "interrupts apart.",
        strong=lambda row: id(row[1]) in best,
    )


def _form_table(form: FormResult) -> Table:
    at = f"at {form.part.saturation / 1e3:.0f} kpps + 1 %"
    return Table.of(
        (*form.curves, *form.range),
        Column.text("Polls", lambda curve: POLLS[curve.costs.manner]),
        Column.text("Arrivals", lambda curve: ARRIVALS[curve.arrivals]),
        Column("Interrupt", "ns", scaled(1e9, ".0f"), lambda curve: curve.costs.per_interrupt_s),
        Column("Idle", "%", _points, lambda curve: curve.at_saturation.idle_ratio, group=at),
        Column("IRQs", "per packet", ".3f", lambda curve: curve.at_saturation.interrupts_per_packet, group=at),
        Column("Never idle", "from, kpps", _kpps, lambda curve: curve.never_idle_pps),
        Column("Maximum", "kpps", _kpps, lambda curve: curve.maximum_pps),
        Column("Error", "points", _points, lambda curve: curve.form_rmse),
        name="form",
        title="Which way to poll leaves no idle time before the maximum",
        caption="Polls go on until a poll finds nothing, or until a short poll enables interrupts, or take frames that "
        "come during the poll. All meet both rates. Error: busy share against the published form function.",
        strong=(0,),
    )


def _clock_table(clock: ClockResult) -> Table:
    def rate(share: float, law: FrequencyLaw) -> Column[ClockCurve]:
        title = f"{100.0 * share:.0f} % memory"
        return Column(title, "kpps", _kpps, lambda row: law.rate_pps(row.frequency_hz), group="maximum rate")

    shown = f"{100.0 * clock.shown.memory_ratio(clock.part.frequency):.0f} % memory, simulated"
    return Table.of(
        clock.curves,
        Column("Clock", "GHz", scaled(1e-9, ".2f"), lambda row: row.frequency_hz),
        *map(rate, clock.part.memory, clock.laws),
        Column("Maximum", "kpps", _kpps, lambda row: row.maximum_pps, group=shown),
        Column("Gain", "%/% of clock", ".2f", lambda row: clock.shown.gain_ratio(row.frequency_hz), group=shown),
        Column("Plateau", "us", _us, lambda row: row.points[-1].latency_p50_s, group=shown),
        Column("Ring alone", "us", _us, lambda row: row.plateau_s, group=shown),
        name="clock",
        title="Maximum rate and overload latency against the clock",
        caption="Illustration: no rate at another clock is published as a number. Shares of memory time are those at "
        f"{clock.part.frequency / 1e9:g} GHz. The frames of a poll add to those of the ring, so the plateau is a "
        f"little higher than that of the ring alone. {_arrivals_note(clock)}",
    )


def _law_table(clock: ClockResult) -> Table:
    fits = {"fitted to the simulated maxima": clock.recovered, "fitted to the samples": clock.fitted}
    rows: list[tuple[Any, ...]] = [("given to the simulator", clock.shown, "", "", None)]
    for name, fit in fits.items():
        if fit:
            cycles = _interval(fit.low.packet_cycles, fit.high.packet_cycles, "{:.0f}".format)
            memory = _interval(fit.low.memory_s, fit.high.memory_s, format_duration)
            rows.append((name, fit.law, cycles, memory, fit.misfit_ratio))
    return Table.of(
        rows,
        Column.text("Law", itemgetter(0)),
        Column("Cycles", "", ".1f", lambda row: row[1].packet_cycles),
        Column("Memory", "ns", scaled(1e9, ".1f"), lambda row: row[1].memory_s),
        Column("95 % interval", "cycles", getter=itemgetter(2)),
        Column("95 % interval", "memory", getter=itemgetter(3)),
        Column("Misfit", "%", percent, itemgetter(4)),
        name="law",
        title="Cycles and memory time of a frame",
        caption="r(f) = 1/(cycles/f + memory). The fit sees clocks and rates only.",
    )


def _idle_figure(idle: tuple[IdleResult, ...]) -> Figure:
    loads = [row.conditions for result in idle for row in result.points]
    low, high = min(loads), max(loads)

    def marks(result: IdleResult, colour: str) -> Iterable[Mark]:
        rates_pps = [low * (high / low) ** t for t in UNIT_GRID]
        closed_form = [(rate / 1e6, 100.0 * result.fitted.costs.idle_ratio(rate)) for rate in rates_pps]
        yield Line.of_pairs(closed_form, name=f"{result.curve.title}: three costs", colour=colour)
        for name, share, style in (("simulated", "predicted", RING), ("measured", "measured", DOT)):
            pairs = [(row.conditions / 1e6, 100.0 * getattr(row, share)) for row in result.points]
            yield Points.of_pairs(pairs, name=name, colour=colour, legend=False, **style)

    ticks = tuple(tick for tick in (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0) if low <= 1.05e6 * tick <= 1.1 * high)
    return Figure(
        name="idle",
        title="Idle time of one core against load",
        caption="Dots are measured, rings simulated with three fitted costs each, lines the closed form of the same "
        "costs. No cost was set by hand.",
        x=Axis(title="offered load (Mpps)", scale="log", ticks=ticks, labels=tuple(f"{tick:g}" for tick in ticks)),
        y=Axis(title="idle time (%)", low=0.0, high=100.0),
        marks=(
            *chain.from_iterable(map(marks, idle, palette(len(idle), ordered=False))),
            Points(name="measured", x=(math.nan,), y=(math.nan,), colour=GREY, **DOT),
            Points(name="simulated", x=(math.nan,), y=(math.nan,), colour=GREY, **RING),
        ),
    )


def _time_figure(result: IdleResult) -> Figure:
    costs = result.fitted.costs
    max_pps = 1.05 * costs.maximum_pps
    rates_pps = [max_pps * max(t, UNIT_GRID[1] / 100.0) for t in UNIT_GRID]
    interrupts_per_s = [rate * costs.interrupts_per_packet(rate) for rate in rates_pps]
    busy = [
        ("frames", WORK, [min(rate * costs.per_packet_s, 1.0) for rate in rates_pps]),
        ("interrupts and their polls", INTERRUPT, [rate * costs.per_interrupt_s for rate in interrupts_per_s]),
        ("waking up", WAKE, [rate * costs.wakeup_s for rate in interrupts_per_s]),
    ]
    asleep = [max(1.0 - sum(shares), 0.0) for shares in zip(*(layer for _, _, layer in busy), strict=True)]
    return Figure(
        name=f"time-{result.curve.name}",
        title=f"{result.curve.title}: where the core's time goes",
        caption="At low load every frame brings an interrupt; at high load frames share them, so the share of "
        "interrupts rises, falls and reaches 0 at the maximum. So busy time is no straight line.",
        x=Axis(title="offered load (Mpps)", low=0.0, high=max_pps / 1e6),
        y=Axis(title="share of the core's time (%)", low=0.0, high=100.0),
        marks=tuple(
            Stack(
                name=name,
                x=tuple(rate / 1e6 for rate in rates_pps),
                y=tuple(100.0 * share for share in shares),
                colour=colour,
            )
            for name, colour, shares in (*busy, ("asleep", IDLE, asleep))
        ),
    )


def _inside_figure(form: FormResult) -> Figure:
    """Return idle time, interrupts and polls per packet against load (Bolla et al. 2009, fig. 6)."""
    saturation_kpps = form.part.saturation / 1e3
    quantities: dict[str, tuple[Callable[[Observed], float], str]] = {
        "idle time": (lambda observed: observed.idle_ratio, GREY),
        "interrupts per packet": (lambda observed: observed.interrupts_per_packet, INTERRUPT),
        "polls per packet": (lambda observed: observed.polls_per_packet, WORK),
    }
    lines = [
        _form_line(curve, 1e3, quantity, name=f"{name}{suffix}", colour=colour, legend=not suffix)
        for curve, suffix in zip(form.curves[:2], ("", ", Poisson arrivals"), strict=True)
        for name, (quantity, colour) in quantities.items()
    ]
    saturation = Line(name="saturation", x=(saturation_kpps,) * 2, y=(0.0, 1.0), colour=WAKE, dashed=True)
    return Figure(
        name="inside",
        title="Inside the router: interrupts, polls and idle time",
        caption="Constant rate; dashed: Poisson arrivals, where idle time and interrupts per packet are equal. "
        f"At {saturation_kpps:.0f} kpps both reach 0, and the rate still grows, because a poll then takes several "
        "frames.",
        x=Axis(title="offered load (kpps)", low=0.0),
        y=Axis(title="share of time, or per packet", low=0.0, high=1.0),
        marks=(*lines, saturation),
    )


def _form_line(
    curve: FormCurve,
    unit_pps: float,
    y: Callable[[Observed], float],
    between: tuple[float, float] = (0.0, math.inf),
    **style: Any,
) -> Line:
    """Return a line against load in units of a rate, dashed for Poisson arrivals."""
    points = [point for point in curve.points if between[0] <= point.offered_pps / unit_pps <= between[1]]
    dashed = curve.arrivals == "poisson"
    return Line.of(points, lambda point: point.offered_pps / unit_pps, y, dashed=dashed, **style)


def _form_figure(form: FormResult) -> Figure:
    maximum_pps, fitted = form.part.maximum, form.of_polynomial.costs
    best, poisson, _, _, exhaustive, poisson_exhaustive = form.curves

    def line(curve: FormCurve, colour: str, name: str = "Poisson arrivals") -> Line:
        points = [point for point in curve.points if point.offered_pps <= 1.001 * maximum_pps]
        pairs = [(point.offered_pps / maximum_pps, 1.0 - point.idle_ratio) for point in points]
        is_poisson = curve.arrivals == "poisson"
        return Line.of_pairs([(0.0, 0.0), *pairs], name=name, colour=colour, dashed=is_poisson, legend=not is_poisson)

    def three_costs(t: float) -> float:
        return fitted.busy_ratio(t * maximum_pps)

    return Figure(
        name="form",
        title="Busy time against normalised load: mechanism and form function",
        caption="Constant rate; dashed in colour: Poisson arrivals. The form function is one polynomial for all "
        "platforms and clocks of the paper; the mechanisms know two rates of one platform.",
        x=Axis(title="load / maximum rate", low=0.0, high=1.0),
        y=Axis(title="share of time, or of dynamic power", low=0.0),
        marks=(
            Line.of(UNIT_GRID, float, PUBLISHED_FORM.at, name="form function, published", colour=GREY),
            Line.of(UNIT_GRID, float, three_costs, name="three costs fitted to it", colour=GREY, dashed=True),
            line(form.range[0], WAKE, "polls until empty, no interrupt cost"),
            line(best, WORK, f"interrupt of {1e6 * best.costs.per_interrupt_s:g} us"),
            line(poisson, WORK),
            line(exhaustive, EXHAUSTIVE, "exhaustive polls"),
            line(poisson_exhaustive, EXHAUSTIVE),
        ),
    )


def _packet_figure(form: FormResult) -> Figure:
    maximum_pps = form.part.maximum
    published = [(t, 1e6 * PUBLISHED_FORM.at(t) / (t * maximum_pps)) for t in UNIT_GRID[6:]]

    def line(curve: FormCurve, colour: str) -> Line:
        name = f"interrupt of {1e6 * curve.costs.per_interrupt_s:g} us{', Poisson' * (curve.arrivals == 'poisson')}"
        return _form_line(curve, maximum_pps, time_us, (0.05, 1.001), name=name, colour=colour)

    def time_us(point: Observed) -> float:
        return 1e6 * (1.0 - point.idle_ratio) / point.forwarded_pps

    curves = (form.range[0], *form.curves[:2], form.range[1])
    return Figure(
        name="packet",
        title="Time per packet against normalised load",
        caption="Busy time over packets; polls go on until a poll finds nothing. Shared interrupts make a packet "
        "cheaper as load rises; the polynomial makes it dearer in between. Each cost of an interrupt meets both known "
        "rates.",
        x=Axis(title="load / maximum rate", low=0.0, high=1.0),
        y=Axis(title="time per packet (us)", low=0.0),
        marks=(
            Line.of_pairs(published, name="form function, published", colour=GREY),
            *map(line, curves, (WAKE, WORK, WORK, INTERRUPT)),
        ),
    )


def _clock_figure(clock: ClockResult) -> Figure:
    low_hz, high_hz = min(clock.part.frequencies), max(clock.part.frequencies)
    clocks_hz = [low_hz + (high_hz - low_hz) * t for t in UNIT_GRID]

    def in_units(pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(frequency_hz / 1e9, rate_pps / 1e3) for frequency_hz, rate_pps in pairs]

    def line(law: FrequencyLaw, name: str, colour: str) -> Line:
        return Line.of_pairs(in_units((clock, law.rate_pps(clock)) for clock in clocks_hz), name=name, colour=colour)

    marks: list[Mark] = []
    for share, law, colour in zip(clock.part.memory, clock.laws, palette(len(clock.laws)), strict=True):
        marks.append(line(law, f"{100.0 * share:.0f} % memory", colour))
        if law == clock.shown:
            maxima = in_units((curve.frequency_hz, curve.maximum_pps) for curve in clock.curves)
            marks.append(Points.of_pairs(maxima, name="simulated", colour=colour, filled=False))
    if clock.fitted:
        marks.append(Points.of_pairs(in_units(clock.samples), name="samples", colour=GREY))
        marks.append(line(clock.fitted.law, "fitted to the samples", GREY))
    return Figure(
        name="clock",
        title="Maximum rate against the clock",
        caption="Illustration: the share of memory time is assumed, not measured. Memory time bends "
        "the line, so the gain shrinks as the clock rises.",
        x=Axis(title="clock (GHz)"),
        y=Axis(title="maximum rate (kpps)", low=0.0),
        marks=tuple(marks),
    )


def _arrivals_note(clock: ClockResult) -> str:
    return arrivals_note(curve.arrivals for curve in clock.curves)


def _latency_figure(clock: ClockResult) -> Figure:
    share = 100.0 * clock.shown.memory_ratio(clock.part.frequency)
    return Figure(
        name="latency",
        title="Latency against load, by clock",
        caption=f"Median, simulated, {share:.0f} % memory time, a ring of {clock.part.ring} frames; illustration. "
        "Overload fills the ring: the plateau is its length times the time of a frame, and falls as the clock rises. "
        f"{_arrivals_note(clock)}",
        x=Axis(title="offered load (kpps)", low=0.0),
        y=Axis(title="latency (us)", scale="log"),
        marks=tuple(
            Line.of_pairs(
                [(point.offered_pps / 1e3, 1e6 * point.latency_p50_s) for point in curve.points],
                name=f"{curve.frequency_hz / 1e9:g} GHz",
                colour=colour,
            )
            for curve, colour in zip(clock.curves, palette(len(clock.curves)), strict=True)
        ),
    )


def terminal_summary(result: NapiResult) -> TerminalSummary:
    """Return what a terminal shows of a study of activation: the tables of the page."""
    blocks = (block for section in _sections(result) for block in section.blocks)
    return TerminalSummary.of(*(block for block in blocks if isinstance(block, Table)))


def page(result: NapiResult) -> Page:
    """Return the page of a study of activation."""
    worst = max(error for curve in result.idle for error in curve.errors[:2])
    return result.page(
        "A packet, an interrupt and a wake-up: **three costs** reproduce the idle time of a core over its whole range "
        f"of load within **{percent(worst)} percentage points** (root mean square), in the simulator and in closed "
        "form.",
        _sections(result),
        ("Frames of a trial", f"{result.study.run.frames:,}"),
        ("Seed", str(result.provenance.seed)),
    )


def _sections(result: NapiResult) -> Iterable[Section]:
    yield _idle_section(result.idle)
    if form := result.form:
        yield Section.of(
            "form",
            "Why the form function has its shape",
            "The core is never idle well below its maximum, because fuller polls save work and no idle time.",
            _inside_figure(form),
            _form_figure(form),
            _packet_figure(form),
            Prose(_form_findings(form)),
            _form_table(form),
        )
    if clock := result.clock:
        law = (
            "A frame takes `cycles/f + memory`. The published text names one rate at one clock, so the curves are an "
            "illustration of the law for assumed shares of memory time, not a measurement. `clock.samples` in the "
            "study file names a table of measured maxima, and the law is fitted to them."
        )
        yield Section.of(
            "clock",
            "Rate and latency against the clock",
            "Memory does not run faster when the core does, so the gain in rate and latency is less than linear.",
            Prose((law,)),
            _clock_figure(clock),
            _latency_figure(clock),
            _clock_table(clock),
            _law_table(clock),
        )


def _idle_section(idle: tuple[IdleResult, ...]) -> Section:
    errors = [
        Tile(
            f"{100.0 * result.errors.simulated:.1f} points",
            f"error of the idle time, {result.curve.title}",
            f"{100.0 * result.errors.left_out:.1f} for points that were left out",
        )
        for result in idle
    ]
    maxima = [
        Tile(
            f"{result.fitted.costs.maximum_pps / 1e6:.1f} Mpps",
            f"maximum that the costs imply, {result.curve.title}",
            f"measured elsewhere: {result.curve.maximum / 1e6:.1f} Mpps",
        )
        for result in idle
        if result.curve.maximum is not None
    ]
    theory = (
        "A core that interrupts activate is idle for `(1 − λc)(1 + λW)/(1 + λ(W + C))` of the time at Poisson arrivals "
        "of rate `λ`, where `c` is the cost of a packet, `C` that of an interrupt with its poll, and `W` the wake-up. "
        "The costs were fitted with this formula; the errors are those of the packet simulator with the same costs.",
        "The wake-up stands for everything that delays the poll of an idle core: moderation in the card, the exit from "
        "a sleep state, the scheduling of the poll. A curve of idle time cannot separate these.",
    )
    return Section.of(
        "idle",
        "Idle time from three costs",
        "Frames share interrupts when the core is busy, so each frame costs less: busy time bends.",
        Tiles((*errors, *maxima)),
        _idle_figure(idle),
        Prose(theory),
        _cost_table(idle),
        _error_table(idle),
        *map(_time_figure, idle),
        *map(_idle_table, idle),
        any(result.alternatives for result in idle) and _dynamics_table(idle),
    )


def _form_findings(form: FormResult) -> tuple[str, ...]:
    """Return sentences on where mechanism and form function agree and differ."""
    part, best, costs, fitted = form.part, form.curves[0], form.curves[0].costs, form.of_polynomial
    low, high = form.range
    t = part.saturation / part.maximum
    cheap_at, cheap_s, dear_at, dear_s = greatest_rise_per_packet(part.maximum)
    return (
        f"**From two rates.** The router forwards at most {part.maximum / 1e3:.0f} kpps, and is never idle from "
        f"{part.saturation / 1e3:.0f} kpps on{f' ({part.source})' if part.source else ''}. With polls of "
        f"{costs.budget_frames} frames a packet then costs {1e9 * costs.per_packet_s:.0f} ns and a poll "
        f"{1e9 * costs.per_poll_s:.0f} ns. The cost of an interrupt stays free: from "
        f"{1e9 * low.costs.per_interrupt_s:.0f} to {1e9 * high.costs.per_interrupt_s:.0f} ns both rates are met, and "
        f"the busy share at half of the saturation rate runs from {_busy_at_half(low):.2f} to "
        f"{_busy_at_half(high):.2f}.",
        "**What makes a plateau.** Polls have a cost of their own and go on until a poll finds nothing, so the next "
        "frame comes before the poll of the last frame is over. Where every short poll enables interrupts again, the "
        "core is as busy, but interrupts do not vanish. Exhaustive polls share interrupts only, so the core stays idle "
        "now and then up to the maximum. Poisson arrivals round every corner.",
        f"**Where the form function differs.** At {t:.2f} of the maximum, where idle time vanishes, the published "
        f"polynomial stands at {PUBLISHED_FORM.at(t):.2f}, and the mechanism at "
        f"{1.0 - best.at_saturation.idle_ratio:.2f}: the polynomial averages over all platforms and clocks. The root "
        f"mean square difference is {100.0 * best.form_rmse:.1f} points, {100.0 * low.form_rmse:.1f} to "
        f"{100.0 * high.form_rmse:.1f} over the range of the interrupt. Three costs fitted to it give a straight line "
        f"that ends at {fitted.costs.maximum_pps / part.maximum:.2f} of the maximum, within "
        f"{100.0 * fitted.rmse_ratio:.1f} points of it. The rest are waves of a 7th-order polynomial, by which a "
        f"packet takes {1e9 * cheap_s:.0f} ns at {cheap_at:.2f} of the maximum and {1e9 * dear_s:.0f} ns at "
        f"{dear_at:.2f}. Interrupts and polls that are shared make packets cheaper as load rises, never dearer.",
    )


def _busy_at_half(curve: FormCurve) -> float:
    half_pps = 0.5 * curve.costs.saturation_pps
    return 1.0 - min(curve.points, key=lambda point: abs(point.offered_pps - half_pps)).idle_ratio
