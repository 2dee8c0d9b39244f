"""The report of a study of activation: idle time from three costs, the origin of the form function, the clock."""

from __future__ import annotations

import math
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from routecast.calibration.frequency import FrequencyLaw
from routecast.power.form import PUBLISHED_FORM
from routecast.quantity import format_duration
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Points, Stack, palette
from routecast.show.page import Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Cell, Column, Table, percent, scaled, signed_percent
from routecast.study.napi.run import (
    ClockResult,
    FormCurve,
    FormResult,
    IdleResult,
    NapiResult,
    greatest_rise_per_packet,
)
from routecast.study.result import TerminalSummary

__all__ = ["page", "terminal_summary"]

POLLS = {"until_empty": "until empty", "until_short": "until short", "exhaustive": "exhaustive"}
ARRIVALS = {"cbr": "constant rate", "poisson": "Poisson"}

STEPS = 120
WORK, INTERRUPT, WAKE, IDLE, EXHAUSTIVE = "#3f6fb5", "#c8524a", "#b39a2f", "#c9ced6", "#4aa36a"
UNIT_GRID = tuple(step / STEPS for step in range(STEPS + 1))
DOT: Final[dict[str, Any]] = {"size_px": 7}
RING: Final[dict[str, Any]] = {"size_px": 12, "filled": False}

_points = scaled(100.0, ".1f")
"""Writes a share of time in percent with one digit."""
_mpps = scaled(1e-6, ".2f")
_kpps = scaled(1e-3, ".0f")
_us = scaled(1e6, ".0f")


def idle_table(result: IdleResult) -> Table:
    """Return an idle curve: measured, simulated with the fitted costs, and predicted from other points."""
    return Table.of(
        result.points,
        Column("Load", "Mpps", scaled(1e-6, ".4g"), "conditions"),
        Column("Measured", "%", _points, "measured"),
        Column("Simulated", "%", _points, "predicted", group="three costs"),
        Column("Error", "points", scaled(100.0, "+.1f"), lambda row: row.predicted - row.measured, group="three costs"),
        Column("Closed form", "%", _points, "closed_form", group="three costs", wide=True),
        Column(
            "Left out", "%", _points, lambda row: row.left_out if row in result.judging else None, group="predicted"
        ),
        Column(
            "From half", "%", _points, lambda row: row.from_half if row in result.judging else None, group="predicted"
        ),
        Column("IRQs", "per packet", ".3f", "interrupts_per_packet"),
        name=f"idle-{result.curve.name}",
        title=f"{result.curve.title}: idle time of one core",
        caption="In percent of the time. Left out: fitted to all other points; from half: to every other point. "
        "Points after the first without idle time do not count in the errors.",
    )


def cost_table(idle: tuple[IdleResult, ...]) -> Table:
    """Return the fitted costs with their intervals."""
    costs = {
        "per packet": "per_packet_s",
        "per interrupt, with its poll": "per_interrupt_s",
        "wake-up, idle": "wakeup_s",
    }

    def interval(row: tuple[IdleResult, str]) -> str:
        low, high = (1e9 * getattr(end, costs[row[1]]) for end in (row[0].fitted.low, row[0].fitted.high))
        return f"{low:.0f}–{high:.0f}" if math.isfinite(low + high) else "–"

    return Table.of(
        [(result, name) for result in idle for name in costs],
        Column.text("Curve", lambda row: row[0].curve.title),
        Column.text("Cost", lambda row: row[1]),
        Column("Value", "ns", scaled(1e9, ".1f"), lambda row: getattr(row[0].fitted.costs, costs[row[1]])),
        Column("95 % interval", "ns", getter=interval),
        name="costs",
        title="Fitted costs",
        caption="Three costs for each curve, with 95 % intervals (Gauss-Newton, Student's t).",
    )


def error_table(idle: tuple[IdleResult, ...]) -> Table:
    """Return the errors of the idle share and of the maximum rate."""
    return Table.of(
        idle,
        Column.text("Curve", "curve.title"),
        Column("Points", "", "d", lambda result: len(result.judging)),
        Column("Simulated", "points", percent, "errors.simulated"),
        Column("Left out", "points", percent, "errors.left_out"),
        Column("Other half", "points", percent, "errors.from_half"),
        Column("1/c", "Mpps", _mpps, "fitted.costs.maximum_pps", group="maximum rate"),
        Column("Measured", "Mpps", _mpps, lambda result: result.curve.maximum or None, group="maximum rate"),
        Column("Error", "%", signed_percent, "maximum_error_ratio", group="maximum rate"),
        name="errors",
        title="How wrong the three costs are",
        caption="Root mean square errors in percentage points of the time, over points up to the first without idle "
        "time. The maximum comes from another measurement and was not fitted.",
    )


def dynamics_table(idle: tuple[IdleResult, ...]) -> Table:
    """Return the errors of other dynamics on the same curves, each with its own best costs."""
    best = [min(result.alternatives, key=lambda alternative: alternative.rmse, default=None) for result in idle]
    return Table.of(
        [(result.curve.title, alternative) for result in idle for alternative in result.alternatives],
        Column.text("Curve", lambda row: row[0]),
        Column.text("Arrivals, polls, third", lambda row: row[1].dynamics.words),
        Column("Error", "points", percent, lambda row: row[1].rmse),
        Column("Packet", "ns", ".1f", lambda row: 1e9 * row[1].costs.per_packet_s),
        Column("Interrupt", "ns", ".0f", lambda row: 1e9 * row[1].costs.per_interrupt_s),
        Column(
            "Third", "ns", ".0f", lambda row: 1e9 * row[1].costs.wakeup_s if row[1].dynamics.third != "none" else None
        ),
        name="dynamics",
        title="Which dynamics explain the curves best",
        caption="The simulator fits all of them. Exhaustive polls take frames that come during the poll, gated polls "
        "only those that wait when it begins. A wake-up delays interrupts of a sleeping core, and moderation keeps "
        "interrupts apart.",
        strong=lambda row: any(row[1] is alternative for alternative in best),
    )


def form_table(form: FormResult) -> Table:
    """Return each way to poll: its saturation, the remaining interrupts, the fit of the form function."""
    at = f"at {form.part.saturation / 1e3:.0f} kpps + 1 %"
    return Table.of(
        (*form.curves, *form.range),
        Column.text("Polls", lambda curve: POLLS[curve.costs.manner]),
        Column.text("Arrivals", lambda curve: ARRIVALS[curve.arrivals]),
        Column("Interrupt", "ns", scaled(1e9, ".0f"), "costs.per_interrupt_s"),
        Column("Idle", "%", _points, "at_saturation.idle_ratio", group=at),
        Column("IRQs", "per packet", ".3f", "at_saturation.interrupts_per_packet", group=at),
        Column("Never idle", "from, kpps", _kpps, "never_idle_pps"),
        Column("Maximum", "kpps", _kpps, "maximum_pps"),
        Column("Error", "points", _points, "form_rmse"),
        name="form",
        title="Which way to poll leaves no idle time before the maximum",
        caption="Polls go on until a poll finds nothing, or until a short poll enables interrupts, or take frames that "
        "come during the poll. All meet both rates. Error: busy share against the published form function.",
        strong=(0,),
    )


def clock_table(clock: ClockResult) -> Table:
    """Return maximum rates and plateaus by clock, under assumed shares of memory time."""

    def of_law(share: float, law: FrequencyLaw) -> Column:
        rate = "maximum rate"
        return Column(
            f"{100.0 * share:.0f} % memory", "kpps", _kpps, lambda row: law.rate_pps(row.frequency_hz), group=rate
        )

    shown = f"{100.0 * clock.shown.memory_ratio(clock.part.frequency):.0f} % memory, simulated"
    return Table.of(
        clock.curves,
        Column("Clock", "GHz", scaled(1e-9, ".2f"), "frequency_hz"),
        *map(of_law, clock.part.memory, clock.laws),
        Column("Maximum", "kpps", _kpps, lambda row: row.maximum_pps, group=shown),
        Column("Gain", "%/% of clock", ".2f", lambda row: clock.shown.gain_ratio(row.frequency_hz), group=shown),
        Column("Plateau", "us", _us, lambda row: row.points[-1].latency_p50_s, group=shown),
        Column("Ring alone", "us", _us, "plateau_s", group=shown),
        name="clock",
        title="Maximum rate and overload latency against the clock",
        caption="Illustration: no rate at another clock is published as a number. Shares of memory time are those at "
        f"{clock.part.frequency / 1e9:g} GHz. The frames of a poll add to those of the ring, so the plateau is a "
        "little higher than that of the ring alone.",
    )


def law_table(clock: ClockResult) -> Table:
    """Return the laws fitted to the simulated maxima, and to measured samples if there are any."""
    rows: list[tuple[Cell, ...]] = [
        ("given to the simulator", clock.shown.packet_cycles, 1e9 * clock.shown.memory_s, "", "", None)
    ]
    for name, fitted in (("fitted to the simulated maxima", clock.recovered), ("fitted to the samples", clock.fitted)):
        if fitted is None:
            continue
        has_interval = not math.isnan(fitted.low.memory_s)
        cycles = f"{fitted.low.packet_cycles:.0f}–{fitted.high.packet_cycles:.0f}" if has_interval else "–"
        memory = (
            f"{format_duration(fitted.low.memory_s)}–{format_duration(fitted.high.memory_s)}" if has_interval else "–"
        )
        rows.append((name, fitted.law.packet_cycles, 1e9 * fitted.law.memory_s, cycles, memory, fitted.misfit_ratio))
    return Table(
        name="law",
        title="Cycles and memory time of a frame",
        caption="r(f) = 1/(cycles/f + memory). The fit sees clocks and rates only.",
        columns=(
            Column.text("Law"),
            Column("Cycles", "", ".1f"),
            Column("Memory", "ns", ".1f"),
            Column("95 % interval", "cycles"),
            Column("95 % interval", "memory"),
            Column("Misfit", "%", percent),
        ),
        rows=tuple(rows),
    )


def idle_figure(idle: tuple[IdleResult, ...]) -> Figure:
    """Return idle time against load, each curve measured, simulated and in closed form."""
    loads = [point.conditions for result in idle for point in result.points]
    least, most = min(loads), max(loads)
    grid = [least * (most / least) ** t for t in UNIT_GRID]

    def marks(result: IdleResult, colour: str) -> tuple[Mark, ...]:
        costs = result.fitted.costs
        closed_form = [(rate / 1e6, 100.0 * costs.idle_ratio(rate)) for rate in grid]
        simulated = [(row.conditions / 1e6, 100.0 * row.predicted) for row in result.points]
        measured = [(row.conditions / 1e6, 100.0 * row.measured) for row in result.points]
        return (
            Line.of_pairs(closed_form, name=f"{result.curve.title}: three costs", colour=colour),
            Points.of_pairs(simulated, name="simulated", colour=colour, legend=False, **RING),
            Points.of_pairs(measured, name="measured", colour=colour, legend=False, **DOT),
        )

    ticks = [tick for tick in (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0) if least <= 1.05e6 * tick <= 1.1 * most]
    return Figure(
        name="idle",
        title="Idle time of one core against load",
        caption="Dots are measured, rings simulated with three fitted costs each, lines the closed form of the same "
        "costs. No cost was set by hand.",
        x=Axis(
            title="offered load (Mpps)", scale="log", ticks=tuple(ticks), labels=tuple(f"{tick:g}" for tick in ticks)
        ),
        y=Axis(title="idle time (%)", low=0.0, high=100.0),
        marks=(
            *chain.from_iterable(map(marks, idle, palette(len(idle), ordered=False))),
            Points(name="measured", x=(math.nan,), y=(math.nan,), colour=GREY, **DOT),
            Points(name="simulated", x=(math.nan,), y=(math.nan,), colour=GREY, **RING),
        ),
    )


def time_figure(result: IdleResult) -> Figure:
    """Return where the time of a core goes, against load: the mechanism behind the shape."""
    costs = result.fitted.costs
    most = 1.05 * costs.maximum_pps
    grid = [most * max(step, 0.01) / STEPS for step in range(STEPS + 1)]

    def shares(rate_pps: float) -> tuple[float, float, float, float]:
        interrupts_per_s = rate_pps * costs.interrupts_per_packet(rate_pps)
        frames = min(rate_pps * costs.per_packet_s, 1.0)
        interrupts, waking = interrupts_per_s * costs.per_interrupt_s, interrupts_per_s * costs.wakeup_s
        return frames, interrupts, waking, max(1.0 - frames - interrupts - waking, 0.0)

    names = {"frames": WORK, "interrupts and their polls": INTERRUPT, "waking up": WAKE, "asleep": IDLE}
    layers = zip(names.items(), zip(*map(shares, grid), strict=True), strict=True)
    x = tuple(rate / 1e6 for rate in grid)
    return Figure(
        name=f"time-{result.curve.name}",
        title=f"{result.curve.title}: where the core's time goes",
        caption="At low load every frame brings an interrupt; at high load frames share them, so the share of "
        "interrupts rises, falls and reaches 0 at the maximum. So busy time is no straight line.",
        x=Axis(title="offered load (Mpps)", low=0.0, high=most / 1e6),
        y=Axis(title="share of the core's time (%)", low=0.0, high=100.0),
        marks=tuple(
            Stack(name=name, x=x, y=tuple(100.0 * share for share in layer), colour=colour)
            for (name, colour), layer in layers
        ),
    )


def inside_figure(form: FormResult) -> Figure:
    """Return idle time, interrupts and polls per packet against load (Bolla et al. 2009, fig. 6)."""
    quantities = {
        "idle time": ("idle_ratio", GREY),
        "interrupts per packet": ("interrupts_per_packet", INTERRUPT),
        "polls per packet": ("polls_per_packet", WORK),
    }
    saturation = form.part.saturation / 1e3
    return Figure(
        name="inside",
        title="Inside the router: interrupts, polls and idle time",
        caption=f"Constant rate; dashed: Poisson arrivals, where idle time and interrupts per packet are equal. "
        f"At {saturation:.0f} kpps both reach 0, and the rate still grows, because a poll then takes several frames.",
        x=Axis(title="offered load (kpps)", low=0.0),
        y=Axis(title="share of time, or per packet", low=0.0, high=1.0),
        marks=(
            *(
                Line.of(
                    curve.points,
                    lambda point: point.offered_pps / 1e3,
                    attrgetter(attribute),
                    name=f"{name}{suffix}",
                    colour=colour,
                    dashed=bool(suffix),
                    legend=not suffix,
                )
                for curve, suffix in zip(form.curves, ("", ", Poisson arrivals"), strict=False)
                for name, (attribute, colour) in quantities.items()
            ),
            Line(name="saturation", x=(saturation, saturation), y=(0.0, 1.0), colour=WAKE, dashed=True),
        ),
    )


def form_figure(form: FormResult) -> Figure:
    """Return busy share against normalised load: the mechanism beside the published form function."""
    maximum, fitted = form.part.maximum, form.of_polynomial.costs
    shown, poisson, _, _, exhaustive, poisson_exhaustive = form.curves

    def three_costs(load_ratio: float) -> float:
        return fitted.busy_ratio(load_ratio * maximum)

    def line(curve: FormCurve, name: str, colour: str) -> Line:
        points = [point for point in curve.points if point.offered_pps <= maximum * 1.001]
        return Line.of_pairs(
            [(0.0, 0.0), *((point.offered_pps / maximum, 1.0 - point.idle_ratio) for point in points)],
            name=name or "Poisson arrivals",
            colour=colour,
            dashed=not name,
            legend=bool(name),
        )

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
            line(form.range[0], "polls until empty, no interrupt cost", WAKE),
            line(shown, f"interrupt of {1e6 * shown.costs.per_interrupt_s:g} us", WORK),
            line(poisson, "", WORK),
            line(exhaustive, "exhaustive polls", EXHAUSTIVE),
            line(poisson_exhaustive, "", EXHAUSTIVE),
        ),
    )


def packet_figure(form: FormResult) -> Figure:
    """Return the time that a packet takes, with its share of polls and interrupts, against load."""
    maximum = form.part.maximum
    published = [(t, 1e6 * PUBLISHED_FORM.at(t) / (t * maximum)) for t in UNIT_GRID[6:]]

    def line(curve: FormCurve, colour: str) -> Line:
        arrivals = ", Poisson" if curve.arrivals == "poisson" else ""
        return Line.of(
            [point for point in curve.points if 0.05 * maximum <= point.offered_pps <= 1.001 * maximum],
            lambda point: point.offered_pps / maximum,
            lambda point: 1e6 * (1.0 - point.idle_ratio) / point.forwarded_pps,
            name=f"interrupt of {1e6 * curve.costs.per_interrupt_s:g} us{arrivals}",
            colour=colour,
            dashed=bool(arrivals),
        )

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
            line(form.range[0], WAKE),
            line(form.curves[0], WORK),
            line(form.curves[1], WORK),
            line(form.range[1], INTERRUPT),
        ),
    )


def clock_figure(clock: ClockResult) -> Figure:
    """Return the maximum rate against the clock for each share of memory time."""
    least, most = min(clock.part.frequencies), max(clock.part.frequencies)
    grid = [least + (most - least) * step / STEPS for step in range(STEPS + 1)]

    def line(law: FrequencyLaw, name: str, colour: str) -> Line:
        pairs = [(frequency / 1e9, law.rate_pps(frequency) / 1e3) for frequency in grid]
        return Line.of_pairs(pairs, name=name, colour=colour)

    marks: list[Mark] = []
    for share, law, colour in zip(clock.part.memory, clock.laws, palette(len(clock.laws)), strict=True):
        marks.append(line(law, f"{100.0 * share:.0f} % memory", colour))
        if law == clock.shown:
            maxima = [(curve.frequency_hz / 1e9, curve.maximum_pps / 1e3) for curve in clock.curves]
            marks.append(Points.of_pairs(maxima, name="simulated", colour=colour, filled=False))
    if clock.fitted:
        samples = [(frequency_hz / 1e9, rate_pps / 1e3) for frequency_hz, rate_pps in clock.samples]
        marks += [
            Points.of_pairs(samples, name="samples", colour=GREY),
            line(clock.fitted.law, "fitted to the samples", GREY),
        ]
    return Figure(
        name="clock",
        title="Maximum rate against the clock",
        caption="Illustration: the share of memory time is assumed, not measured. Memory time bends "
        "the line, so the gain shrinks as the clock rises.",
        x=Axis(title="clock (GHz)"),
        y=Axis(title="maximum rate (kpps)", low=0.0),
        marks=tuple(marks),
    )


def latency_figure(clock: ClockResult) -> Figure:
    """Return latency against load at each clock, up to the plateau of a full ring."""
    share = 100.0 * clock.shown.memory_ratio(clock.part.frequency)
    return Figure(
        name="latency",
        title="Latency against load, by clock",
        caption=f"Median, simulated, {share:.0f} % memory time, a ring of {clock.part.ring} frames; illustration. "
        "Overload fills the ring: the plateau is its length times the time of a frame, and falls as the clock rises.",
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
    """Return what a terminal shows of a study of activation."""
    return TerminalSummary.of(
        cost_table(result.idle),
        error_table(result.idle),
        *map(idle_table, result.idle),
        result.study.run.compare and dynamics_table(result.idle),
        result.form is not None and form_table(result.form),
        *((clock_table(result.clock), law_table(result.clock)) if result.clock else ()),
    )


def page(result: NapiResult) -> Page:
    """Return the page of a study of activation."""
    study, provenance = result.study, result.provenance
    worst = max(error for curve in result.idle for error in curve.errors[:2])
    return result.page(
        (
            "A packet, an interrupt and a wake-up: **three costs** reproduce the idle time of a core over its whole "
            f"range of load within **{percent(worst)} percentage points** (root mean square), in the simulator and in "
            "closed form."
        ),
        (
            _idle(result.idle),
            result.form is not None and _form(result.form),
            result.clock is not None and _clock(result.clock),
        ),
        ("Frames of a trial", f"{study.run.frames:,}"),
        ("Seed", str(provenance.seed)),
    )


def _idle(idle: tuple[IdleResult, ...]) -> Section:
    tiles = [
        Tile(
            f"{100.0 * result.errors.simulated:.1f} points",
            f"error of the idle time, {result.curve.title}",
            f"{100.0 * result.errors.left_out:.1f} for points that were left out",
        )
        for result in idle
    ]
    tiles += [
        Tile(
            f"{result.fitted.costs.maximum_pps / 1e6:.1f} Mpps",
            f"maximum that the costs imply, {result.curve.title}",
            f"measured elsewhere: {result.curve.maximum / 1e6:.1f} Mpps",
        )
        for result in idle
        if result.curve.maximum is not None
    ]
    words = (
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
        Tiles(tuple(tiles)),
        idle_figure(idle),
        Prose(words),
        cost_table(idle),
        error_table(idle),
        *(time_figure(result) for result in idle),
        *(idle_table(result) for result in idle),
        any(result.alternatives for result in idle) and dynamics_table(idle),
    )


def form_findings(form: FormResult) -> tuple[str, ...]:
    """Return sentences on where mechanism and form function agree and differ."""
    part, best, costs = form.part, form.curves[0], form.curves[0].costs
    t = part.saturation / part.maximum
    least, most = form.range
    straight = form.of_polynomial
    cheap_at, cheap_s, dear_at, dear_s = greatest_rise_per_packet(part.maximum)
    return (
        f"**From two rates.** The router forwards at most {part.maximum / 1e3:.0f} kpps, and is never idle from "
        f"{part.saturation / 1e3:.0f} kpps on{f' ({part.source})' if part.source else ''}. With polls of "
        f"{costs.budget_frames} frames a packet then costs {1e9 * costs.per_packet_s:.0f} ns and a poll "
        f"{1e9 * costs.per_poll_s:.0f} ns. The cost of an interrupt stays free: from "
        f"{1e9 * least.costs.per_interrupt_s:.0f} to {1e9 * most.costs.per_interrupt_s:.0f} ns both rates are met, and "
        f"the busy share at half of the saturation rate runs from {_busy_at_half(least):.2f} to "
        f"{_busy_at_half(most):.2f}.",
        "**What makes a plateau.** Polls have a cost of their own and go on until a poll finds nothing, so the next "
        "frame comes before the poll of the last frame is over. Where every short poll enables interrupts again, the "
        "core is as busy, but interrupts do not vanish. Exhaustive polls share interrupts only, so the core stays idle "
        "now and then up to the maximum. Poisson arrivals round every corner.",
        f"**Where the form function differs.** At {t:.2f} of the maximum, where idle time vanishes, the published "
        f"polynomial stands at {PUBLISHED_FORM.at(t):.2f}, and the mechanism at "
        f"{1.0 - best.at_saturation.idle_ratio:.2f}: the polynomial averages over all platforms and clocks. The root "
        f"mean square difference is {100.0 * best.form_rmse:.1f} points, "
        f"{100.0 * least.form_rmse:.1f} to {100.0 * most.form_rmse:.1f} over the range of "
        f"the interrupt. Three costs fitted to it give a straight line that ends at "
        f"{straight.costs.maximum_pps / part.maximum:.2f} of the maximum, within "
        f"{100.0 * straight.rmse_ratio:.1f} points of it. The rest are waves of a 7th-order polynomial, by which a "
        f"packet takes {1e9 * cheap_s:.0f} ns at {cheap_at:.2f} of the maximum and {1e9 * dear_s:.0f} ns at "
        f"{dear_at:.2f}. Interrupts and polls that are "
        "shared make packets cheaper as load rises, never dearer.",
    )


def _busy_at_half(curve: FormCurve) -> float:
    half = 0.5 * curve.costs.saturation_pps
    nearest = min(curve.points, key=lambda point: abs(point.offered_pps - half))
    return 1.0 - nearest.idle_ratio


def _form(form: FormResult) -> Section:
    return Section.of(
        "form",
        "Why the form function has its shape",
        "The core is never idle well below its maximum, because fuller polls save work and no idle time.",
        inside_figure(form),
        form_figure(form),
        packet_figure(form),
        Prose(form_findings(form)),
        form_table(form),
    )


def _clock(clock: ClockResult) -> Section:
    words = (
        "A frame takes `cycles/f + memory`. The published text names one rate at one clock, so the curves are an "
        "illustration of the law for assumed shares of memory time, not a measurement. `clock.samples` in the study "
        "file names a table of measured maxima, and the law is fitted to them.",
    )
    return Section.of(
        "clock",
        "Rate and latency against the clock",
        "Memory does not run faster when the core does, so the gain in rate and latency is less than linear.",
        Prose(words),
        clock_figure(clock),
        latency_figure(clock),
        clock_table(clock),
        law_table(clock),
    )
