"""The report of a study of activation: what three costs explain, where the form function comes from, the clock."""

from __future__ import annotations

import math

from routecast.calibration.frequency import FrequencyLaw
from routecast.quantity import format_duration
from routecast.show.page import Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Cell, Column, Table, percent, scaled, signed_percent
from routecast.study.napi.fit import Alternative, ClockResult, FormCurve, FormResult, IdleResult, dearest_wave
from routecast.study.napi.plots import (
    clock_figure,
    form_figure,
    idle_figure,
    inside_figure,
    latency_figure,
    packet_figure,
    time_figure,
)
from routecast.study.napi.run import NapiResult
from routecast.study.result import TerminalSummary

__all__ = ["page", "terminal_summary"]


WAYS = {"until_empty": "until empty", "until_short": "until short", "exhaustive": "exhaustive"}
ARRIVALS = {"cbr": "constant rate", "poisson": "Poisson"}


_points = scaled(100.0, ".1f")
"""A share of time as percent of the time with one digit."""
_mpps = scaled(1e-6, ".2f")
_kpps = scaled(1e-3, ".0f")


def idle_table(each: IdleResult) -> Table:
    """Return an idle curve: measured, simulated with the fitted costs, and predicted from other points."""
    return Table.of(
        each.points,
        Column("Load", "Mpps", scaled(1e-6, ".4g"), "conditions"),
        Column("Measured", "%", _points, "measured"),
        Column("Simulated", "%", _points, "predicted", group="three costs"),
        Column("Error", "points", scaled(100.0, "+.1f"), lambda row: row.predicted - row.measured, group="three costs"),
        Column("Closed form", "%", _points, "closed_form", group="three costs", wide=True),
        Column("Left out", "%", _points, lambda row: row.left_out if row in each.telling else None, group="predicted"),
        Column(
            "From half", "%", _points, lambda row: row.from_half if row in each.telling else None, group="predicted"
        ),
        Column("IRQs", "per packet", ".3f", "interrupts_per_packet"),
        name=f"idle-{each.curve.name}",
        title=f"{each.curve.title}: idle time of one core",
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
        least, most = (1e9 * getattr(end, costs[row[1]]) for end in (row[0].fitted.low, row[0].fitted.high))
        return f"{least:.0f}–{most:.0f}" if math.isfinite(least + most) else "–"

    return Table.of(
        [(each, name) for each in idle for name in costs],
        Column.text("Curve", lambda row: row[0].curve.title),
        Column.text("Cost", lambda row: row[1]),
        Column("Value", "ns", scaled(1e9, ".1f"), lambda row: getattr(row[0].fitted.costs, costs[row[1]])),
        Column("95 % interval", "ns", getter=interval),
        name="costs",
        title="Fitted costs",
        caption="Three for each curve, with 95 % intervals (Gauss-Newton, Student's t).",
    )


def error_table(idle: tuple[IdleResult, ...]) -> Table:
    """Return how far off the idle share is, and the maximum rate against the one measured apart."""
    return Table.of(
        idle,
        Column.text("Curve", "curve.title"),
        Column("Points", "", "d", lambda each: len(each.telling)),
        Column("Simulated", "points", percent, "rmse"),
        Column("Left out", "points", percent, "left_out_rmse"),
        Column("Other half", "points", percent, "from_half_rmse"),
        Column("1/c", "Mpps", _mpps, "fitted.costs.maximum_pps", group="maximum rate"),
        Column("Measured", "Mpps", _mpps, lambda each: each.curve.maximum or None, group="maximum rate"),
        Column("Error", "%", signed_percent, "maximum_error_ratio", group="maximum rate"),
        name="errors",
        title="How wrong the three costs are",
        caption="Root mean square errors in percentage points of the time, over points up to the first without idle "
        "time. The maximum was measured apart and not fitted.",
    )


def dynamics_table(idle: tuple[IdleResult, ...]) -> Table:
    """Return what other dynamics reach on the same curves, each with its own best costs."""
    best = [min(each.alternatives, key=lambda alternative: alternative.rmse, default=None) for each in idle]
    return Table.of(
        [(each.curve.title, alternative) for each in idle for alternative in each.alternatives],
        Column.text("Curve", lambda row: row[0]),
        Column.text("Arrivals, polls, third", lambda row: row[1].dynamics.words),
        Column("Error", "points", percent, lambda row: row[1].rmse),
        Column("Packet", "ns", ".1f", lambda row: 1e9 * row[1].costs.per_packet_s),
        Column("Interrupt", "ns", ".0f", lambda row: 1e9 * row[1].costs.per_interrupt_s),
        Column("Third", "ns", ".0f", lambda row: _third_ns(row[1])),
        name="dynamics",
        title="Which dynamics the curves speak for",
        caption="Each fitted by the simulator. Exhaustive polls take what comes while they are under way, gated ones "
        "what they find. A wake-up delays interrupts of a sleeping core; moderation keeps interrupts apart.",
        strong=lambda row: any(row[1] is point for point in best),
    )


def _third_ns(alternative: Alternative) -> float | None:
    return None if alternative.dynamics.third == "none" else 1e9 * alternative.costs.wakeup_s


def form_table(form: FormResult) -> Table:
    """Return each way to poll: where it saturates, what is left of interrupts, how it fits the form function."""
    at = f"at {form.part.saturation / 1e3:.0f} kpps + 1 %"
    return Table.of(
        (*form.curves, *form.range),
        Column.text("Polls", lambda curve: WAYS[curve.costs.manner]),
        Column.text("Arrivals", lambda curve: ARRIVALS[curve.arrivals]),
        Column("Interrupt", "ns", scaled(1e9, ".0f"), "costs.per_interrupt_s"),
        Column("Idle", "%", _points, "at_saturation.idle_ratio", group=at),
        Column("IRQs", "per packet", ".3f", "at_saturation.interrupts_per_packet", group=at),
        Column("Never idle", "from, kpps", _kpps, "never_idle_pps"),
        Column("Maximum", "kpps", _kpps, "maximum_pps"),
        Column("Error", "points", _points, lambda curve: curve.form_rmse(form.part.maximum)),
        name="form",
        title="Which way to poll leaves no idle time before the maximum",
        caption="Polls go on until one finds nothing, or until one is short and enables interrupts, or take what comes "
        "while they are under way. All are given both rates. Error: busy share against the published form function.",
        strong=(0,),
    )


def clock_table(clock: ClockResult) -> Table:
    """Return maximum rates and plateaus by clock; illustration, but for what the simulator makes of them."""

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
        Column("Maximum", "kpps", _kpps, "maximum_pps", group=shown),
        Column("Gain", "%/% of clock", ".2f", lambda row: clock.shown.gain_ratio(row.frequency_hz), group=shown),
        Column("Plateau", "us", scaled(1e6, ".0f"), lambda row: row.points[-1].latency_p50_s, group=shown),
        Column("Ring alone", "us", scaled(1e6, ".0f"), "plateau_s", group=shown),
        name="clock",
        title="Maximum rate and overload latency against the clock",
        caption="Illustration: no rate at another clock is published as a number. Shares of memory time are those at "
        f"{clock.part.frequency / 1e9:g} GHz. A poll's frames add to those of the ring, so the plateau is a little "
        "higher than the ring alone makes it.",
    )


def law_table(clock: ClockResult) -> Table:
    """Return the laws that were fitted: to what the simulator reached, and to measured samples if there are any."""
    rows: list[tuple[Cell, ...]] = [
        ("given to the simulator", clock.shown.packet_cycles, 1e9 * clock.shown.memory_s, "", "", None)
    ]
    for name, fitted in (("fitted to what it reached", clock.recovered), ("fitted to the samples", clock.fitted)):
        if fitted is None:
            continue
        known = not math.isnan(fitted.low.memory_s)
        cycles = f"{fitted.low.packet_cycles:.0f}–{fitted.high.packet_cycles:.0f}" if known else "–"
        memory = f"{format_duration(fitted.low.memory_s)}–{format_duration(fitted.high.memory_s)}" if known else "–"
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
    study, made = result.study, result.provenance
    worst = max(error for each in result.idle for error in (each.rmse, each.closed_form_rmse))
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
        ("Seed", str(made.seed)),
    )


def _idle(idle: tuple[IdleResult, ...]) -> Section:
    tiles = [
        Tile(
            f"{100.0 * each.rmse:.1f} points",
            f"error of the idle time, {each.curve.title}",
            f"{100.0 * each.left_out_rmse:.1f} for points that were left out",
        )
        for each in idle
    ]
    tiles += [
        Tile(
            f"{each.fitted.costs.maximum_pps / 1e6:.1f} Mpps",
            f"maximum that the costs imply, {each.curve.title}",
            f"measured apart: {each.curve.maximum / 1e6:.1f} Mpps",
        )
        for each in idle
        if each.curve.maximum is not None
    ]
    words = (
        "A core that interrupts activate is idle for `(1 − λc)(1 + λW)/(1 + λ(W + C))` of the time: `c` for a packet, "
        "`C` for an interrupt with its poll, `W` for the wake-up, at Poisson arrivals of rate `λ`. The costs were "
        "fitted to this; the errors are those of the packet simulator with the same costs.",
        "The wake-up stands for whatever delays the poll of an idle core: moderation in the card, the exit from a "
        "sleep state, the scheduling of the poll. A curve of idle time cannot tell these apart.",
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
        *(time_figure(each) for each in idle),
        *(idle_table(each) for each in idle),
        any(each.alternatives for each in idle) and dynamics_table(idle),
    )


def form_findings(form: FormResult) -> tuple[str, ...]:
    """Return in words where mechanism and form function agree and where they differ."""
    from routecast.power.form import PUBLISHED_FORM

    part, best, costs = form.part, form.best, form.best.costs
    t = part.saturation / part.maximum
    least, most = form.range
    straight = form.of_polynomial
    cheap_at, cheap_s, dear_at, dear_s = dearest_wave(part.maximum)
    return (
        f"**From two rates.** Known are {part.maximum / 1e3:.0f} kpps at most, and no idle time from "
        f"{part.saturation / 1e3:.0f} kpps on{f' ({part.source})' if part.source else ''}. With polls of "
        f"{costs.budget_frames} frames a packet then costs {1e9 * costs.per_packet_s:.0f} ns and a poll "
        f"{1e9 * costs.per_poll_s:.0f} ns. The cost of an interrupt stays free: from "
        f"{1e9 * least.costs.per_interrupt_s:.0f} to {1e9 * most.costs.per_interrupt_s:.0f} ns both rates are met, and "
        f"the busy share at half of the saturation rate runs from {_busy_at_half(least):.2f} to "
        f"{_busy_at_half(most):.2f}.",
        "**What makes a plateau.** Polls that cost something of their own and go on until one finds nothing: the next "
        "frame comes before the poll of the last one is over. Where every short poll enables interrupts again, time is "
        "as full, but interrupts do not vanish. Exhaustive polls share interrupts without a cost that can be shared "
        "further, and stay idle now and then up to the maximum. Poisson arrivals round every corner.",
        f"**Where the form function differs.** At {t:.2f} of the maximum, where idle time vanishes, the published "
        f"polynomial stands at {PUBLISHED_FORM.at(t):.2f}, and the mechanism at "
        f"{1.0 - best.at_saturation.idle_ratio:.2f}: the polynomial averages over all platforms and clocks. The root "
        f"mean square difference is {100.0 * best.form_rmse(part.maximum):.1f} points, "
        f"{100.0 * least.form_rmse(part.maximum):.1f} to {100.0 * most.form_rmse(part.maximum):.1f} over the range of "
        f"the interrupt. A straight line that ends at "
        f"{straight.costs.maximum_pps / part.maximum:.2f} of the maximum, all that three costs keep of it, is within "
        f"{100.0 * straight.rmse_ratio:.1f} points of it. The rest are waves of a 7th-order polynomial: by it a "
        f"packet takes {1e9 * cheap_s:.0f} ns at {cheap_at:.2f} of the maximum and {1e9 * dear_s:.0f} ns at "
        f"{dear_at:.2f}. Interrupts and polls that are "
        "shared make packets cheaper with load, never dearer.",
    )


def _busy_at_half(curve: FormCurve) -> float:
    half = 0.5 * curve.costs.saturation_pps
    nearest = min(curve.points, key=lambda point: abs(point.offered_pps - half))
    return 1.0 - nearest.idle_ratio


def _form(form: FormResult) -> Section:
    return Section.of(
        "form",
        "Why the form function has its shape",
        "The core is never idle well below its maximum, because what full polls save is not idle time.",
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
