"""The tables of a plan of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from routecast.load.series import DAY_S
from routecast.plan.cluster.answer import KWH_J, ClusterAnswer
from routecast.plan.cluster.model import ClusterProblem
from routecast.plan.cluster.saving.model import Saving
from routecast.plan.cluster.saving.switching import schedule_power_w
from routecast.quantity import format_bps, format_duration
from routecast.show.tables import Cell, Column, Table, percent, signed_percent

__all__ = ["EXACT", "clock", "designs_table", "headline", "machines", "plan_table", "savings_table", "trace_traffic"]


EXACT = 1e-6
"""A gap below it is rounding."""


def clock(time_s: float) -> str:
    """Write a time of day.

    Examples
    --------
    >>> clock(8.5 * 3600.0)
    '08:30'
    """
    within = time_s % DAY_S
    return f"{int(within // 3600):02d}:{int(within % 3600 // 60):02d}"


def machines(problem: ClusterProblem, fleet: Sequence[int]) -> str:
    """Write how many machines of which group."""
    some = [f"{n} × {group.name}" for n, group in zip(fleet, problem.groups, strict=True) if n]
    return ", ".join(some) or "none"


def designs_table(answer: ClusterAnswer) -> Table:
    """Return every design beside the bound: its machines, price and daily energy."""
    case = answer.case
    rows: list[tuple[Cell, ...]] = []
    strong: set[int] = set()
    for design in answer.designs:
        if design is answer.design:
            strong.add(len(rows))
        proven = design.gap_ratio if design.name.startswith("Design-V") else None
        rows.append(
            (
                design.name,
                machines(case.problem, design.fleet),
                f"{design.price:,.10g}",
                answer.kwh_per_day(design.energy_j),
                answer.above_bound_ratio(design),
                proven,
            )
        )
    rows.append(("bound", "another fleet each step", None, answer.kwh_per_day(answer.bound.energy_j), 0.0, None))
    return Table(
        name="designs",
        title="Designs",
        caption=(
            "Least energy of each fleet, machines switched off where the load allows. No fleet needs less than the "
            "bound. The gap is the proven distance to the best fleet of the same budget."
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
        strong=frozenset(strong),
    )


def plan_table(answer: ClusterAnswer, *, most: int = 96) -> Table:
    """Return which machines are on when; at most the first ``most`` steps."""
    case = answer.case
    problem, on = case.problem, answer.design.schedule.on
    power = schedule_power_w(problem, on)
    used = [k for k, number in enumerate(answer.design.fleet) if number]
    rows: list[tuple[Cell, ...]] = []
    for step in range(min(len(on), most)):
        before = on[step - 1] if step or case.repeats else on[0]
        rows.append(
            (
                clock(step * problem.step_s),
                problem.traffic_bps[step] / 1e9,
                *(on[step][k] for k in used),
                _switched(problem, before, on[step]),
                float(power[step]),
            )
        )
    return Table(
        name="plan",
        title="Machines that are on",
        caption=f"The first {most} of {len(on)} steps." if len(on) > most else "",
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
    changes = [
        f"{now - then:+d} {group.name}".replace("-", "−")
        for group, then, now in zip(problem.groups, before, after, strict=True)
        if now != then
    ]
    return ", ".join(changes)


def savings_table(savings: Sequence[Saving], days: float, *, name: str, title: str, traffic: str = "") -> Table:
    """Return what the saving algorithms achieve, beside off-line saving step by step (the second of them).

    ``traffic`` is a sentence on what they were given.
    """
    offline = savings[1].schedule
    return Table.of(
        savings,
        Column.text("Algorithm", "name"),
        Column("Energy", "kWh/day", ".3f", lambda one: one.schedule.energy_j / KWH_J / days),
        Column(
            "Energy",
            "%",
            signed_percent,
            lambda one: one.schedule.energy_j / offline.energy_j - 1.0,
            group="against off-line",
        ),
        Column(
            "Switchings",
            "%",
            lambda ratio: f"{100.0 * ratio:.0f}",
            lambda one: one.schedule.switchings / offline.switchings if offline.switchings else None,
            group="against off-line",
        ),
        Column("Switchings", "a day", ".1f", lambda one: one.schedule.switchings / days),
        Column("Missed", "%", ".3f", lambda one: 100.0 * one.missed_ratio),
        name=name,
        title=title,
        caption="Switchings are machines switched on or off; missed is traffic that found no machine. Relative to "
        "off-line, each step; the whole trace's leaves out switchings that save less than they must be worth."
        + "".join(f" {said}" for said in (*_notes(savings), traffic) if said),
        strong=frozenset({3} if len(savings) > 3 else set()),
    )


def _notes(savings: Sequence[Saving]) -> list[str]:
    """Return what is to be said of the algorithms, as sentences."""
    return [f"{one.name}: {one.note}." for one in savings if one.note]


def trace_traffic(answer: ClusterAnswer) -> str:
    """Return a sentence on how much traffic the whole trace has beside the day that is planned for."""
    case = answer.case
    if case.trace is None:
        return ""
    mean_bps, day_bps = (fmean(one.l2_bps) for one in (case.trace, case.day))
    return (
        f"The trace is scaled to its own highest step and has {format_bps(mean_bps)} in the mean, the day of the plan "
        f"{format_bps(day_bps)}: their kWh are of different traffic."
    )


def headline(answer: ClusterAnswer) -> tuple[str, ...]:
    """Return the answer in a few lines: what to buy, what it costs and needs, and what that is worth."""
    case, design = answer.case, answer.design
    problem = case.problem
    used, on = answer.kwh_per_day(design.energy_j), answer.kwh_per_day(answer.always_on_j)
    limit = (
        "no limit to the budget" if problem.budget is None else f"a budget of {problem.budget:,.10g} {case.currency}"
    )
    step = format_duration(problem.step_s) if problem.step_s < 60.0 else f"{problem.step_s / 60.0:g} min"
    lines = [
        f"Buy {machines(problem, design.fleet)} for {design.price:,.10g} {case.currency}.",
        f"{used:.3f} kWh a day, {100.0 * (1.0 - used / on):.1f} % less than always on ({on:.2f} kWh).",
        f"{100.0 * answer.above_bound_ratio(design):.2f} % above the bound that no fleet beats "
        f"({answer.kwh_per_day(answer.bound.energy_j):.3f} kWh); "
        + (
            f"no fleet for {limit} needs less (proven)."
            if design.gap_ratio < EXACT
            else f"within {100.0 * design.gap_ratio:.2g} % of the best fleet for {limit} (proven)."
        ),
        f"Traffic: {case.day.source}, steps of {step}, highest {format_bps(max(problem.traffic_bps))}"
        + (f" with {100.0 * case.headroom_ratio:g} % headroom" if case.headroom_ratio else "")
        + ".",
    ]
    if not design.price_is_least:
        lines.append("Another fleet may need as little energy for a lower price: that was not searched to the end.")
    if problem.spare:
        lines.append(f"Any {problem.spare} of the machines that are on may fail without loss of capacity.")
    if answer.mean_j is not None:
        lines.append(f"On the mean day these machines need {answer.mean_j / KWH_J:.3f} kWh.")
    return tuple(lines)
