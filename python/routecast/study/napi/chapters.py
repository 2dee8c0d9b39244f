"""The report of a study of activation: what three costs explain, where the form function comes from, the clock."""

from __future__ import annotations

from routecast.report.page import Page, Prose, Section, Tile, Tiles
from routecast.report.tables import percent
from routecast.study.napi.clock import ClockResult
from routecast.study.napi.form import FormCurve, FormResult, dearest_wave
from routecast.study.napi.idle import IdleResult
from routecast.study.napi.plots import (
    clock_figure,
    form_figure,
    idle_figure,
    inside_figure,
    latency_figure,
    packet_figure,
    time_figure,
)
from routecast.study.napi.result import NapiResult
from routecast.study.napi.tabulate import (
    clock_table,
    cost_table,
    dynamics_table,
    error_table,
    form_table,
    idle_table,
    law_table,
)

__all__ = ["form_findings", "napi_page"]


def napi_page(result: NapiResult) -> Page:
    """Return the page of a study of activation."""
    study, made = result.study, result.made
    worst = max(error for each in result.idle for error in (each.rmse, each.closed_form_rmse))
    sections = [_idle(result.idle)]
    if result.form:
        sections.append(_form(result.form))
    if result.clock:
        sections.append(_clock(result.clock))
    return Page(
        title=study.title,
        question=study.question,
        answer=(
            "A packet, an interrupt and a wake-up: **three costs** reproduce the idle time of a core over its whole "
            f"range of load within **{percent(worst)} percentage points** (root mean square), in the simulator and in "
            "closed form."
        ),
        sections=tuple(sections),
        made=made.rows(
            ("Frames of a trial", f"{study.run.frames:,}"),
            ("Seed", str(made.seed)),
        ),
        source=study.source,
    )


def _idle(idle: tuple[IdleResult, ...]) -> Section:
    tiles = [
        Tile(
            value=f"{100.0 * each.rmse:.1f} points",
            meaning=f"error of the idle time, {each.curve.title}",
            beside=f"{100.0 * each.left_out_rmse:.1f} for points that were left out",
        )
        for each in idle
    ]
    tiles += [
        Tile(
            value=f"{each.fitted.costs.maximum_pps / 1e6:.1f} Mpps",
            meaning=f"maximum that the costs imply, {each.curve.title}",
            beside=f"measured apart: {each.curve.maximum / 1e6:.1f} Mpps",
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
    return Section(
        anchor="idle",
        title="Idle time from three costs",
        lead="Frames share interrupts when the core is busy, so each frame costs less: busy time bends.",
        blocks=(
            Tiles(tuple(tiles)),
            idle_figure(idle),
            Prose(words),
            cost_table(idle),
            error_table(idle),
            *(time_figure(each) for each in idle),
            *(idle_table(each) for each in idle),
            *((dynamics_table(idle),) if any(each.alternatives for each in idle) else ()),
        ),
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
    return Section(
        anchor="form",
        title="Why the form function has its shape",
        lead="The core is never idle well below its maximum, because what full polls save is not idle time.",
        blocks=(
            inside_figure(form),
            form_figure(form),
            packet_figure(form),
            Prose(form_findings(form)),
            form_table(form),
        ),
    )


def _clock(clock: ClockResult) -> Section:
    words = (
        "A frame takes `cycles/f + memory`. The published text names one rate at one clock, so the curves are an "
        "illustration of the law for assumed shares of memory time, not a measurement. `clock.samples` in the study "
        "file names a table of measured maxima, and the law is fitted to them.",
    )
    return Section(
        anchor="clock",
        title="Rate and latency against the clock",
        lead="Memory does not run faster when the core does, so the gain in rate and latency is less than linear.",
        blocks=(
            Prose(words),
            clock_figure(clock),
            latency_figure(clock),
            clock_table(clock),
            law_table(clock),
        ),
    )
