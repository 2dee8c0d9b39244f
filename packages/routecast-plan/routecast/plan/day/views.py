"""The table and the figure of a simulated day."""

from __future__ import annotations

import math

from routecast.plan.day.simulated import DayStep, SimulatedDay
from routecast.power.model import NO_WATTS
from routecast.quantity import format_duration, format_energy, format_power, format_pps, format_ratio
from routecast.show.figures import Axis, Figure, Line, palette
from routecast.show.page import Listing, Page, Section
from routecast.show.tables import Column, Table

__all__ = ["day_facts", "day_figure", "day_page", "loss_figure", "step_rows", "step_table"]

_LEAST_LOSS = 1e-9


def day_facts(day: SimulatedDay) -> Table:
    """Return the day in a few lines: its loss, its worst step and minute, its latency, its energy."""
    worst = day.worst
    rows = [("loss", _loss_text(day))]
    if worst.dropped_frames:
        rows.append(
            (
                "worst step",
                f"{_clock(worst.from_s)} to {_clock(worst.to_s)}: {format_ratio(worst.loss_ratio)} at "
                f"{format_pps(worst.intended_pps)}, p99 {format_duration(worst.latency_p99_s)}",
            )
        )
        minutes = [step for step in day.steps if not math.isnan(step.worst_minute_loss_ratio)]
        if minutes:
            minute = max(minutes, key=lambda step: step.worst_minute_loss_ratio)
            rows.append(
                (
                    "worst minute",
                    f"from {_clock(minute.worst_minute_s, seconds=True)}: "
                    f"{format_ratio(minute.worst_minute_loss_ratio)} lost",
                )
            )
    latest = max(day.steps, key=lambda step: _or_zero(step.latency_p99_s))
    if not math.isnan(latest.latency_p99_s):
        rows.append(
            (
                "latency",
                f"p99 at most {format_duration(latest.latency_p99_s)} in a step ({_clock(latest.from_s)}), "
                f"the latest frame {format_duration(max(step.latency_max_s for step in day.steps))}",
            )
        )
    if not math.isnan(day.energy_j):
        rows.append(
            (
                "energy",
                f"{format_energy(day.energy_j)}, {format_power(min(step.power_w for step in day.steps))} to "
                f"{format_power(max(step.power_w for step in day.steps))}",
            )
        )
    return Table.of_facts(rows, name="day", title=f"{day.router}: {day.profile}")


def step_table(day: SimulatedDay) -> Table:
    """Return the table of the steps."""
    has_watts = not math.isnan(day.energy_j)
    return Table.of(
        day.steps,
        Column[DayStep].text("from", getter=lambda step: _clock(step.from_s)),
        Column[DayStep].text("load", getter=lambda step: format_pps(step.intended_pps)),
        Column[DayStep].text(
            "loss", getter=lambda step: format_ratio(step.loss_ratio) if step.dropped_frames else "none"
        ),
        Column[DayStep].text("p50", getter=lambda step: _latency_text(step.latency_p50_s)),
        Column[DayStep].text("p99", getter=lambda step: _latency_text(step.latency_p99_s)),
        Column[DayStep].text("p99.9", getter=lambda step: _latency_text(step.latency_p999_s)),
        has_watts and Column[DayStep].text("power", getter=lambda step: format_power(step.power_w)),
        name="steps",
        title="Steps of the day",
        caption="" if has_watts else NO_WATTS,
        strong=lambda step: step.dropped_frames > 0,
    )


def step_rows(day: SimulatedDay) -> list[dict[str, object]]:
    """Return the steps as rows of a CSV table, in base units."""
    return [
        {name: getattr(step, name) for name in DayStep.__dataclass_fields__ if name not in ("seams", "proved")}
        for step in day.steps
    ]


def day_figure(day: SimulatedDay) -> Figure:
    """Return the figure of latency over the day; steps with loss are marked by their loss."""
    blue, orange, green = palette(3, ordered=False)
    hours = tuple(0.5 * (step.from_s + step.to_s) / 3600.0 for step in day.steps)
    lossy = [step for step in day.steps if step.dropped_frames]
    marks = [
        Line(name="p50", x=hours, y=tuple(1e6 * step.latency_p50_s for step in day.steps), colour=green),
        Line(name="p99", x=hours, y=tuple(1e6 * step.latency_p99_s for step in day.steps), colour=blue),
        Line(
            name="p99.9", x=hours, y=tuple(1e6 * step.latency_p999_s for step in day.steps), colour=orange, dashed=True
        ),
    ]
    text = _loss_text(day)
    first = f"; the first in the step from {_clock(lossy[0].from_s)}" if lossy else ""
    return Figure(
        name="day",
        title=f"{day.router}: latency over the day, {day.profile}",
        caption=f"Loss: {text}{first}.",
        x=Axis(title="hour of the day", low=0.0, high=max(step.to_s for step in day.steps) / 3600.0),
        y=Axis(title="latency (us)", scale="log"),
        marks=tuple(marks),
    )


def loss_figure(day: SimulatedDay) -> Figure:
    """Return the figure of the loss of each step."""
    (orange,) = palette(1, ordered=False)
    hours = tuple(0.5 * (step.from_s + step.to_s) / 3600.0 for step in day.steps)
    return Figure(
        name="loss",
        title=f"{day.router}: loss over the day, {day.profile}",
        caption="Frames lost of those offered in each step.",
        x=Axis(title="hour of the day", low=0.0, high=max(step.to_s for step in day.steps) / 3600.0),
        y=Axis(title="loss (%)", low=0.0),
        marks=(Line(name="loss", x=hours, y=tuple(100.0 * step.loss_ratio for step in day.steps), colour=orange),),
    )


def day_page(day: SimulatedDay, *, source: str) -> Page:
    """Return the day as a page."""
    text = _loss_text(day)
    latest_s = max(_or_zero(step.latency_p99_s) for step in day.steps)
    return Page(
        title=f"{day.router}: a day",
        question="What does the router lose over this day, and how late are its frames?",
        answer=f"Loss: {text}. In no step are more than 1 % of the frames later than {format_duration(latest_s)}.",
        sections=(
            Section.of(
                "day", "The day", "", day_facts(day), day.dropped_frames > 0 and loss_figure(day), day_figure(day)
            ),
            Section.of("steps", "Step by step", "", step_table(day)),
            Section.of("notes", "Notes", "", Listing(title="What stands behind these figures", entries=day.notes)),
        ),
        source=source,
    )


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _loss_text(day: SimulatedDay) -> str:
    """Return the loss in words: what was counted, of what, and never more than that."""
    of_what = f"{day.offered_frames:,} frames"
    if day.is_sampled:
        of_what += f", in {format_duration(day.steps[0].simulated_s)} of each step"
    if not day.dropped_frames:
        return f"none of {of_what}"
    ratio = day.loss_ratio
    share = format_ratio(ratio) if ratio >= _LEAST_LOSS else f"{ratio:.1e}"
    return f"{share}: {day.dropped_frames:,} of {of_what}"


def _latency_text(latency_s: float) -> str:
    return "-" if math.isnan(latency_s) else format_duration(latency_s)


def _clock(at_s: float, *, seconds: bool = False) -> str:
    """Return a time of the day as hours and minutes."""
    hours, rest_s = divmod(round(at_s), 3600)
    text = f"{hours:02d}:{rest_s // 60:02d}"
    return f"{text}:{rest_s % 60:02d}" if seconds else text
