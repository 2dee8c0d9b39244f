"""The figures of a study of activation."""

from __future__ import annotations

import math

from routecast.calibration.activation_costs import ActivationCosts
from routecast.power.form import PUBLISHED_FORM
from routecast.show.figures import Axis, Figure, Line, Mark, Points, Stack, palette
from routecast.study.napi.fit import ClockResult, FormCurve, FormResult, IdleResult

__all__ = [
    "clock_figure",
    "form_figure",
    "idle_figure",
    "inside_figure",
    "latency_figure",
    "packet_figure",
    "time_figure",
]

STEPS = 120
GREY = "#7a7f87"
WORK, INTERRUPT, WAKE, IDLE = "#3f6fb5", "#c8524a", "#b39a2f", "#c9ced6"
"""Where a core's time goes: frames, interrupts, waking up, sleep."""

EXHAUSTIVE = "#4aa36a"


def idle_figure(idle: tuple[IdleResult, ...]) -> Figure:
    """Return idle time against load, each curve measured, simulated and in closed form."""
    least = min(point.conditions for each in idle for point in each.points)
    most = max(point.conditions for each in idle for point in each.points)
    grid = [least * (most / least) ** (step / STEPS) for step in range(STEPS + 1)]
    marks: list[Mark] = []
    for each, colour in zip(idle, palette(len(idle), ordered=False), strict=True):
        costs = each.fitted.costs
        x = tuple(point.conditions / 1e6 for point in each.points)
        marks += [
            Line(
                name=f"{each.curve.title}: three costs",
                x=tuple(rate / 1e6 for rate in grid),
                y=tuple(100.0 * costs.idle_ratio(rate) for rate in grid),
                colour=colour,
            ),
            Points(
                name="simulated",
                x=x,
                y=tuple(100.0 * point.predicted for point in each.points),
                colour=colour,
                filled=False,
                size_px=12,
                legend=False,
            ),
            Points(
                name="measured",
                x=x,
                y=tuple(100.0 * point.measured for point in each.points),
                colour=colour,
                size_px=7,
                legend=False,
            ),
        ]
    marks += [
        Points(name="measured", x=(math.nan,), y=(math.nan,), colour=GREY, size_px=7),
        Points(name="simulated", x=(math.nan,), y=(math.nan,), colour=GREY, filled=False, size_px=12),
    ]
    ticks = [tick for tick in (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0) if least <= 1.05e6 * tick <= 1.1 * most]
    return Figure(
        name="idle",
        title="Idle time of one core against load",
        caption=(
            "Dots are measured, rings simulated with three fitted costs each, lines the closed form of the same costs. "
            "No cost was set by hand."
        ),
        x=Axis(
            title="offered load (Mpps)", scale="log", ticks=tuple(ticks), labels=tuple(f"{tick:g}" for tick in ticks)
        ),
        y=Axis(title="idle time (%)", low=0.0, high=100.0),
        marks=tuple(marks),
    )


def time_figure(each: IdleResult) -> Figure:
    """Return where the time of a core goes, against load: the mechanism behind the shape."""
    costs = each.fitted.costs
    most = 1.05 * costs.maximum_pps
    grid = [most * max(step, 0.01) / STEPS for step in range(STEPS + 1)]
    shares = [_shares(costs, rate) for rate in grid]
    names = (("frames", WORK), ("interrupts and their polls", INTERRUPT), ("waking up", WAKE), ("asleep", IDLE))
    return Figure(
        name=f"time-{each.curve.name}",
        title=f"{each.curve.title}: where the core's time goes",
        caption=(
            "At low load every frame brings an interrupt; at high load frames share them, so the share of interrupts "
            "rises, falls and is gone at the maximum. That is why busy time is not a straight line."
        ),
        x=Axis(title="offered load (Mpps)", low=0.0, high=most / 1e6),
        y=Axis(title="share of the core's time (%)", low=0.0, high=100.0),
        marks=tuple(
            Stack(
                name=name,
                x=tuple(rate / 1e6 for rate in grid),
                y=tuple(100.0 * share[place] for share in shares),
                colour=colour,
            )
            for place, (name, colour) in enumerate(names)
        ),
    )


def _shares(costs: ActivationCosts, rate_pps: float) -> tuple[float, float, float, float]:
    per_packet = costs.interrupts_per_packet(rate_pps)
    interrupts = rate_pps * per_packet * costs.per_interrupt_s
    waking = rate_pps * per_packet * costs.wakeup_s
    frames = min(rate_pps * costs.per_packet_s, 1.0)
    return frames, interrupts, waking, max(1.0 - frames - interrupts - waking, 0.0)


def inside_figure(form: FormResult) -> Figure:
    """Return idle time, interrupts and polls per packet against load (Bolla et al. 2009, fig. 6)."""
    marks: list[Mark] = []
    colours = (GREY, INTERRUPT, WORK)
    for curve, dashed in ((form.curves[0], False), (form.curves[1], True)):
        for what, y, colour in zip(
            ("idle time", "interrupts per packet", "polls per packet"),
            (
                tuple(point.idle_ratio for point in curve.points),
                tuple(point.interrupts_per_packet for point in curve.points),
                tuple(point.polls_per_packet for point in curve.points),
            ),
            colours,
            strict=True,
        ):
            marks.append(
                Line(
                    name=f"{what}, Poisson arrivals" if dashed else what,
                    x=_kpps(curve),
                    y=y,
                    colour=colour,
                    dashed=dashed,
                    legend=not dashed,
                )
            )
    saturation = form.part.saturation / 1e3
    marks.append(Line(name="saturation", x=(saturation, saturation), y=(0.0, 1.0), colour=WAKE, dashed=True))
    return Figure(
        name="inside",
        title="Inside the router: interrupts, polls and idle time",
        caption=(
            f"Constant rate; dashed: Poisson arrivals, where idle time and interrupts per packet are one number. At "
            f"{saturation:.0f} kpps both are gone, and the rate still grows: a poll then takes more than one frame."
        ),
        x=Axis(title="offered load (kpps)", low=0.0),
        y=Axis(title="share of time, or per packet", low=0.0, high=1.0),
        marks=tuple(marks),
    )


def form_figure(form: FormResult) -> Figure:
    """Return busy share against normalised load: the mechanism beside the published form function."""
    maximum = form.part.maximum
    grid = [step / STEPS for step in range(STEPS + 1)]
    straight = form.of_polynomial.costs
    marks: list[Mark] = [
        Line(name="form function, published", x=tuple(grid), y=tuple(PUBLISHED_FORM.at(t) for t in grid), colour=GREY),
        Line(
            name="three costs fitted to it",
            x=tuple(grid),
            y=tuple(straight.busy_ratio(t * maximum) for t in grid),
            colour=GREY,
            dashed=True,
        ),
    ]
    free, shown, poisson = form.range[0], form.curves[0], form.curves[1]
    exhaustive, unforeseen = form.curves[4], form.curves[5]
    for curve, name, colour, dashed in (
        (free, "polls until empty, no interrupt cost", WAKE, False),
        (shown, f"interrupt of {1e6 * shown.costs.per_interrupt_s:g} us", WORK, False),
        (poisson, "", WORK, True),
        (exhaustive, "exhaustive polls", EXHAUSTIVE, False),
        (unforeseen, "", EXHAUSTIVE, True),
    ):
        points = [point for point in curve.points if point.offered_pps <= maximum * 1.001]
        marks.append(
            Line(
                name=name or "Poisson arrivals",
                x=(0.0, *(point.offered_pps / maximum for point in points)),
                y=(0.0, *(1.0 - point.idle_ratio for point in points)),
                colour=colour,
                dashed=dashed,
                legend=bool(name),
            )
        )
    return Figure(
        name="form",
        title="Busy time against normalised load: mechanism and form function",
        caption=(
            "Constant rate; dashed in colour: Poisson arrivals. The form function is one polynomial for all platforms "
            "and clocks of the paper; the mechanisms know two rates of one of them."
        ),
        x=Axis(title="load / maximum rate", low=0.0, high=1.0),
        y=Axis(title="share of time, or of dynamic power", low=0.0),
        marks=tuple(marks),
    )


def packet_figure(form: FormResult) -> Figure:
    """Return the time that a packet takes, with its share of polls and interrupts, against load."""
    maximum = form.part.maximum
    grid = [step / STEPS for step in range(6, STEPS + 1)]
    marks: list[Mark] = [
        Line(
            name="form function, published",
            x=tuple(grid),
            y=tuple(1e6 * PUBLISHED_FORM.at(t) / (t * maximum) for t in grid),
            colour=GREY,
        )
    ]
    shown = ((form.range[0], WAKE), (form.curves[0], WORK), (form.curves[1], WORK), (form.range[1], INTERRUPT))
    for curve, colour in shown:
        points = [point for point in curve.points if 0.05 * maximum <= point.offered_pps <= 1.001 * maximum]
        arrivals = ", Poisson" if curve.arrivals == "poisson" else ""
        marks.append(
            Line(
                name=f"interrupt of {1e6 * curve.costs.per_interrupt_s:g} us{arrivals}",
                x=tuple(point.offered_pps / maximum for point in points),
                y=tuple(1e6 * (1.0 - point.idle_ratio) / point.forwarded_pps for point in points),
                colour=colour,
                dashed=bool(arrivals),
            )
        )
    return Figure(
        name="packet",
        title="Time per packet against normalised load",
        caption=(
            "Busy time over packets, polls until one finds nothing. Sharing makes packets cheaper with load; the "
            "polynomial makes them dearer in between. Each cost of an interrupt meets both known rates."
        ),
        x=Axis(title="load / maximum rate", low=0.0, high=1.0),
        y=Axis(title="time per packet (us)", low=0.0),
        marks=tuple(marks),
    )


def clock_figure(clock: ClockResult) -> Figure:
    """Return the maximum rate against the clock for each share of memory time."""
    least, most = min(clock.part.frequencies), max(clock.part.frequencies)
    grid = [least + (most - least) * step / STEPS for step in range(STEPS + 1)]
    marks: list[Mark] = []
    for share, law, colour in zip(clock.part.memory, clock.laws, palette(len(clock.laws)), strict=True):
        marks.append(
            Line(
                name=f"{100.0 * share:.0f} % memory",
                x=tuple(frequency / 1e9 for frequency in grid),
                y=tuple(law.rate_pps(frequency) / 1e3 for frequency in grid),
                colour=colour,
            )
        )
        if law == clock.shown:
            marks.append(
                Points(
                    name="simulated",
                    x=tuple(curve.frequency_hz / 1e9 for curve in clock.curves),
                    y=tuple(curve.maximum_pps / 1e3 for curve in clock.curves),
                    colour=colour,
                    filled=False,
                )
            )
    if clock.fitted:
        marks += [
            Points(
                name="samples",
                x=tuple(frequency / 1e9 for frequency, _ in clock.samples),
                y=tuple(rate / 1e3 for _, rate in clock.samples),
                colour=GREY,
            ),
            Line(
                name="fitted to the samples",
                x=tuple(frequency / 1e9 for frequency in grid),
                y=tuple(clock.fitted.law.rate_pps(frequency) / 1e3 for frequency in grid),
                colour=GREY,
            ),
        ]
    return Figure(
        name="clock",
        title="Maximum rate against the clock",
        caption=(
            "Illustration: the share of memory time is assumed, not measured. What the clock does not change bends the "
            "line: the gain shrinks as the clock rises."
        ),
        x=Axis(title="clock (GHz)"),
        y=Axis(title="maximum rate (kpps)", low=0.0),
        marks=tuple(marks),
    )


def latency_figure(clock: ClockResult) -> Figure:
    """Return latency against load at each clock, up to the plateau of a full ring."""
    marks = tuple(
        Line(
            name=f"{curve.frequency_hz / 1e9:g} GHz",
            x=tuple(point.offered_pps / 1e3 for point in curve.points),
            y=tuple(1e6 * point.latency_p50_s for point in curve.points),
            colour=colour,
        )
        for curve, colour in zip(clock.curves, palette(len(clock.curves)), strict=True)
    )
    share = 100.0 * clock.shown.memory_ratio(clock.part.frequency)
    return Figure(
        name="latency",
        title="Latency against load, by clock",
        caption=(
            f"Median, simulated, {share:.0f} % memory time, a ring of {clock.part.ring} frames; illustration. Overload "
            "fills the ring: the plateau is its length times the time of a frame, and falls as the clock rises."
        ),
        x=Axis(title="offered load (kpps)", low=0.0),
        y=Axis(title="latency (us)", scale="log"),
        marks=marks,
    )


def _kpps(curve: FormCurve) -> tuple[float, ...]:
    return tuple(point.offered_pps / 1e3 for point in curve.points)
