"""Shows plans of clusters: tables, figures, a page, and a folder of files."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from statistics import fmean

from routecast.load.series import DAY_S
from routecast.plan.cluster.answer import KWH_J, ClusterAnswer
from routecast.plan.cluster.model import ClusterProblem
from routecast.plan.cluster.saving import Saving, schedule_power_w
from routecast.quantity import format_bps, format_duration, format_ratio
from routecast.quantity.whole_file import unfinished, write_whole
from routecast.show.drawing import draw
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Stack, palette
from routecast.show.page import Listing, Page, Prose, Section, render_page
from routecast.show.tables import Cell, Column, Table, percent, signed_percent

MAX_ROUNDING_RATIO = 1e-6
"""A smaller gap is due to rounding."""


def time_of_day(time_s: float) -> str:
    """Return a time of day as text.

    Examples
    --------
    >>> time_of_day(8.5 * 3600.0)
    '08:30'
    """
    within = time_s % DAY_S
    return f"{int(within // 3600):02d}:{int(within % 3600 // 60):02d}"


def describe_machines(problem: ClusterProblem, fleet: Sequence[int]) -> str:
    """Return the machines of a fleet as text: ``2 × small, 1 × large``."""
    parts = [f"{n} × {group.name}" for n, group in zip(fleet, problem.groups, strict=True) if n]
    return ", ".join(parts) or "none"


def designs_table(answer: ClusterAnswer) -> Table:
    """Return the table of the designs and the bound: machines, price and daily energy."""
    case = answer.case
    rows: list[tuple[Cell, ...]] = [
        (
            design.name,
            describe_machines(case.problem, design.fleet),
            f"{design.price:,.10g}",
            answer.kwh_per_day(design.energy_j),
            answer.above_bound_ratio(design),
            design.gap_ratio if design.name.startswith("Design-V") else None,
        )
        for design in answer.designs
    ]
    rows.append(
        ("bound", "machines of least power in each step", None, answer.kwh_per_day(answer.bound.energy_j), 0.0, None)
    )
    return Table(
        name="designs",
        title="Designs",
        caption=(
            "Energy of each fleet with the machines of least power on in each step. No fleet needs less than the bound."
            " The gap is the proven distance to the best fleet within the same budget."
        ),
        columns=(
            Column.text("Design"),
            Column.text("Machines"),
            Column("Price", case.currency),
            Column("Energy", "kWh/day", ".3f"),
            Column("Above bound", "%", signed_percent),
            Column("Gap", "%", percent),
        ),
        rows=tuple(rows),
        strong=frozenset(row for row, design in enumerate(answer.designs) if design is answer.design),
    )


def plan_table(answer: ClusterAnswer, *, max_steps: int = 96) -> Table:
    """Return the table of the machines that are on, for at most the first ``max_steps`` steps."""
    case = answer.case
    problem, on = case.problem, answer.design.schedule.on
    power = schedule_power_w(problem, on)
    used = [k for k, number in enumerate(answer.design.fleet) if number]
    rows: list[tuple[Cell, ...]] = [
        (
            time_of_day(step * problem.step_s),
            problem.traffic_bps[step] / 1e9,
            *(on[step][k] for k in used),
            _switched(problem, on[step - 1] if step or case.repeats else on[0], on[step]),
            float(power[step]),
        )
        for step in range(min(len(on), max_steps))
    ]
    return Table(
        name="plan",
        title="Machines that are on",
        caption=f"The first {max_steps} of {len(on)} steps." if len(on) > max_steps else "",
        columns=(
            Column.text("From"),
            Column("Load", "Gbit/s", ".2f"),
            *(Column(problem.groups[k].name, "", "d") for k in used),
            Column.text("Switched"),
            Column("Power", "W", ".0f"),
        ),
        rows=tuple(rows),
    )


def _switched(problem: ClusterProblem, before: Sequence[int], after: Sequence[int]) -> str:
    return ", ".join(
        f"{new - old:+d} {group.name}".replace("-", "−")
        for group, old, new in zip(problem.groups, before, after, strict=True)
        if new != old
    )


def savings_table(savings: Sequence[Saving], days: float, *, name: str, title: str, traffic: str = "") -> Table:
    """Return the table of savings, relative to the second, which is off-line for each step.

    ``traffic`` is a sentence on the traffic, for the caption.
    """
    offline = savings[1].schedule
    notes = [f"{saving.name}: {saving.note}." for saving in savings if saving.note]
    return Table.of(
        savings,
        Column.text("Algorithm", lambda saving: saving.name),
        Column("Energy", "kWh/day", ".3f", lambda saving: saving.schedule.energy_j / KWH_J / days),
        Column(
            "Energy",
            "%",
            signed_percent,
            lambda saving: saving.schedule.energy_j / offline.energy_j - 1.0,
            group="against off-line",
        ),
        Column(
            "Switchings",
            "%",
            lambda ratio: f"{100.0 * ratio:.0f}",
            lambda saving: saving.schedule.switchings / offline.switchings if offline.switchings else None,
            group="against off-line",
        ),
        Column("Switchings", "a day", ".1f", lambda saving: saving.schedule.switchings / days),
        Column("Missed", "%", ".3f", lambda saving: 100.0 * saving.missed_ratio),
        name=name,
        title=title,
        caption="Switchings are machines switched on or off; missed is traffic that no machine carried. Percentages "
        "are relative to off-line, each step. Off-line, whole trace leaves out switchings that do not pay back."
        + "".join(f" {sentence}" for sentence in (*notes, traffic) if sentence),
        strong=frozenset({3} if len(savings) > 3 else set()),
    )


def trace_traffic(answer: ClusterAnswer) -> str:
    """Return a sentence on the mean traffic of the trace and of the plan's day; "" without a trace."""
    case = answer.case
    if case.trace is None:
        return ""
    mean_bps, day_bps = (fmean(series.l2_bps) for series in (case.trace, case.day))
    return (
        f"The trace is scaled to its own highest step. Its mean is {format_bps(mean_bps)}, that of the plan's day is "
        f"{format_bps(day_bps)}, so their energies are not comparable."
    )


def headline(answer: ClusterAnswer) -> tuple[str, ...]:
    """Return the answer in a few lines: the fleet, its price and energy, and its savings."""
    case, design = answer.case, answer.design
    problem = case.problem
    used, on = answer.kwh_per_day(design.energy_j), answer.kwh_per_day(answer.always_on_j)
    limit = (
        "no limit to the budget" if problem.budget is None else f"a budget of {problem.budget:,.10g} {case.currency}"
    )
    step = format_duration(problem.step_s) if problem.step_s < 60.0 else f"{problem.step_s / 60.0:g} min"
    lines = [
        f"Buy {describe_machines(problem, design.fleet)} for {design.price:,.10g} {case.currency}.",
        f"{used:.3f} kWh a day, {100.0 * (1.0 - used / on):.1f} % less than always on ({on:.2f} kWh).",
        f"{100.0 * answer.above_bound_ratio(design):.2f} % above the bound that no fleet beats "
        f"({answer.kwh_per_day(answer.bound.energy_j):.3f} kWh); "
        + (
            f"no fleet for {limit} needs less (proven)."
            if design.gap_ratio < MAX_ROUNDING_RATIO
            else f"within {format_ratio(design.gap_ratio, 2)} of the best fleet for {limit} (proven)."
        ),
        f"Traffic: {case.day.source}, steps of {step}, highest {format_bps(max(problem.traffic_bps))}"
        + (f" with {100.0 * case.headroom_ratio:g} % headroom" if case.headroom_ratio else "")
        + ".",
    ]
    if not design.price_is_least:
        lines.append("Another fleet of the same energy may cost less: the search for the least price did not finish.")
    if problem.spare:
        lines.append(f"Any {problem.spare} of the machines that are on may fail without loss of capacity.")
    if answer.mean_j is not None:
        lines.append(f"On the mean day these machines need {answer.mean_j / KWH_J:.3f} kWh.")
    return tuple(lines)


GOAL_COLOUR = "#3f6fb5"
COLOUR_OF_DESIGN = {"Design-I": "#b0508f", "Design-II": "#4aa36a", "Design-III": "#d6812f", "Design-IV": "#b39a2f"}
"""Colours of the designs of Li 2012, sec. 8.3.2; that of the goal program is ``GOAL_COLOUR``."""

HOUR_TICKS = tuple(float(hour) for hour in range(0, 25, 3))


def step_line(values: Sequence[float], step_s: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the corners of a line that keeps each value for a step, x in hours.

    Examples
    --------
    >>> step_line((1.0, 2.0), 3600.0)
    ((0.0, 1.0, 1.0, 2.0), (1.0, 1.0, 2.0, 2.0))
    """
    hours = tuple((number + end) * step_s / 3600.0 for number in range(len(values)) for end in (0, 1))
    return hours, tuple(float(value) for value in values for _ in (0, 1))


def _hours_axis(days: float) -> Axis:
    ticks = HOUR_TICKS if days <= 1.0 else ()
    return Axis(title="hour of the day", ticks=ticks, low=0.0, high=24.0 * max(days, 1.0))


def power_figure(answer: ClusterAnswer) -> Figure:
    """Return the figure of the power of the design, the simple designs and the bound over the day (fig. 8.3)."""
    problem = answer.case.problem
    simple = [design for design in answer.others if design.name in COLOUR_OF_DESIGN]
    schedules = [
        *((design.name, design.schedule, COLOUR_OF_DESIGN[design.name]) for design in simple),
        (answer.design.name, answer.design.schedule, GOAL_COLOUR),
        ("bound", answer.bound, GREY),
    ]
    lines: list[Mark] = []
    for name, schedule, colour in schedules:
        x, y = step_line(schedule_power_w(problem, schedule.on).tolist(), problem.step_s)
        lines.append(Line(name=name, x=x, y=y, colour=colour, dashed=colour == GREY))
    above = answer.above_bound_ratio(answer.design)
    return Figure(
        name="power",
        title="Power over the day",
        caption=(
            f"{answer.design.name} needs {answer.kwh_per_day(answer.design.energy_j):.2f} kWh a day, "
            f"{100.0 * above:.1f} % more than the bound on any fleet; always on, its machines need "
            f"{answer.kwh_per_day(answer.always_on_j):.2f} kWh."
        ),
        x=_hours_axis(answer.case.days),
        y=Axis(title="power (W)", low=50.0 * (0.95 * min(y) // 50.0)),
        marks=tuple(lines),
    )


def machines_figure(answer: ClusterAnswer) -> Figure:
    """Return the figure of the capacity that is on over the day, by group, and of the load."""
    problem, design = answer.case.problem, answer.design
    used = [k for k, number in enumerate(design.fleet) if number]
    marks: list[Mark] = []
    for k, colour in zip(used, palette(len(used)), strict=True):
        group = problem.groups[k]
        x, y = step_line([row[k] * group.capacity_bps / 1e9 for row in design.schedule.on], problem.step_s)
        marks.append(Stack(name=f"{design.fleet[k]} × {group.name}", x=x, y=y, colour=colour))
    x, y = step_line([load / 1e9 for load in problem.traffic_bps], problem.step_s)
    marks.append(Line(name="load", x=x, y=y, colour="#c8524a"))
    spare = f", and with {problem.spare} of them failed" if problem.spare else ""
    return Figure(
        name="machines",
        title=f"Capacity of the machines that are on: {design.name}",
        caption=f"Areas: capacity of the machines that are on, by group. They carry the load in every step{spare}.",
        x=_hours_axis(answer.case.days),
        y=Axis(title="Gbit/s", low=0.0),
        marks=tuple(marks),
    )


def cluster_page(answer: ClusterAnswer) -> Page:
    """Return the report page of a plan."""
    case = answer.case
    first, *rest = headline(answer)
    return Page(
        title=f"Cluster: {case.name}",
        question="Which machines to buy, and when to switch each of them on?",
        answer=first,
        sections=(
            Section.of(
                "plan",
                "The plan",
                "",
                Prose(tuple(rest)),
                power_figure(answer),
                machines_figure(answer),
                plan_table(answer),
            ),
            Section.of("designs", "Other designs", "", designs_table(answer)),
            Section.of(
                "saving",
                "Saving",
                "",
                bool(answer.day_savings)
                and savings_table(answer.day_savings, case.days, name="day", title="Over the plan"),
                bool(answer.notes) and Listing(title="Notes", entries=tuple(answer.notes)),
            ),
        ),
    )


def write_plan(answer: ClusterAnswer, out: Path) -> None:
    """Write ``plan.json``, ``schedule.csv``, ``figures/*.svg`` and ``report.html`` to a folder, made if missing."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out / "plan.json", text)
    for figure in (power_figure(answer), machines_figure(answer)):
        write_whole(out / "figures" / f"{figure.name}.svg", draw(figure))
    write_whole(out / "report.html", render_page(cluster_page(answer)))
    problem, start = answer.case.problem, answer.case.day.start
    power = schedule_power_w(problem, answer.design.schedule.on).tolist()
    with unfinished(out / "schedule.csv") as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "load_bps", "power_w", *(f"on_{group.name}" for group in problem.groups)])
        for step, on in enumerate(answer.design.schedule.on):
            at_s = step * problem.step_s
            begin = time_of_day(at_s) if start is None else (start + timedelta(seconds=at_s)).isoformat(sep=" ")
            writer.writerow([begin, f"{problem.traffic_bps[step]:.6g}", f"{power[step]:.6g}", *on])
