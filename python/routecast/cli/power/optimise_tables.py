"""What ``routecast power optimise`` prints: the operating point with its front, and the plan of a day."""

from __future__ import annotations

import itertools
import math

from rich.console import Console

from routecast.cli.console import print_table
from routecast.evaluate.plain import plain
from routecast.load.offered import OfferedLoad
from routecast.load.series import TrafficSeries
from routecast.plan.operating.day import Course, DayPlan
from routecast.plan.operating.evaluation import Checked
from routecast.plan.operating.optimise import Machine
from routecast.plan.operating.search import Found, Judged, latency_quantity
from routecast.plan.operating.setting import Setting
from routecast.plan.operating.targets import Target
from routecast.quantity import format_duration, format_energy, format_frequency, format_power, format_pps
from routecast.report.tables import Cell, Column, Table

__all__ = ["day_document", "found_document", "print_day", "print_found"]

_SHOWN = 12


def print_found(console: Console, found: Found, machine: Machine, load: OfferedLoad) -> None:
    """Print the operating point, the front, and what the search did."""
    best = found.best
    assert best is not None
    rows: list[tuple[Cell, ...]] = [
        ("setting", str(best.setting)),
        ("power", _power(best, found.check, _scope(machine))),
    ]
    for number, target in enumerate(found.targets):
        value = target.shown(best.values[number])
        if found.check is not None:
            mean, low, high = found.check.values[number]
            value = target.shown(mean)
            if high > low:
                value += f" (95 %: {target.shown(low)} to {target.shown(high)})"
        rows.append((str(target), value))
    if found.check is not None:
        length = format_duration(found.check.duration_s)
        rows.append(("checked by", f"{found.check.replications} simulations of {length}, other seeds"))
    rows.append(("settings", _counts(found)))
    columns = (Column(title="", align="left"), Column(title="", align="left"))
    title = f"{machine.model.name} at {format_pps(load.rate_pps)}: the fewest watts"
    print_table(console, Table(name="best", title=title, caption="", columns=columns, rows=tuple(rows)))
    print_table(console, _front_table(found))
    for one, check in found.rejected:
        watts = format_power(one.power_w)
        console.print(f"Note: {one.setting}, {watts}, {_failure(found.targets, check)}.", markup=False, style="dim")
    if found.unknown:
        console.print(
            f"Note: {found.unknown} settings were left out: what a target bounds is not known of them "
            "(with --evaluator solve: no closed form); --evaluator simulate knows it.",
            markup=False,
            style="dim",
        )
    _notes(console, machine)


def _front_table(found: Found) -> Table:
    quantity = latency_quantity(found.targets)
    front = found.front
    chosen = [number for number, one in enumerate(front) if one is found.best]
    first = max(min(chosen[0] - 2, len(front) - _SHOWN), 0) if chosen else 0
    shown = front[first : first + _SHOWN]
    left = len(front) - len(shown)
    more = f" {left} more in --json." if left else ""
    whole = "" if found.pruned == 0 else " Settings above the best were not all evaluated (--all)."
    return Table(
        name="front",
        title=f"Watts against {quantity} latency",
        caption=f"Nothing evaluated has both fewer watts and less latency.{more}{whole}",
        columns=(
            Column(title="Power", unit="W"),
            Column(title=quantity, form=format_duration),
            Column(title="Cores", form="d"),
            Column(title="Clock", align="left"),
            Column(title="Sleep", align="left"),
            Column(title="Activation", align="left"),
            Column(title="Targets", align="left"),
        ),
        rows=tuple(
            (one.power_w, one.latency_s(quantity), *_parts(one.setting), "met" if one.is_met else "missed")
            for one in shown
        ),
        strong=frozenset(number for number, one in enumerate(shown) if one is found.best),
    )


def _parts(setting: Setting) -> tuple[Cell, ...]:
    clock = "" if setting.frequency_hz is None else format_frequency(setting.frequency_hz)
    linger = f" {format_duration(setting.linger_s)}" if setting.mode == "adaptive" else ""
    return (setting.cores, clock, setting.sleep or "none", setting.mode + linger)


def _power(best: Judged, check: Checked | None, scope: str) -> str:
    if check is None:
        return f"{format_power(best.power_w)} of the {scope}"
    mean, low, high = check.power_w
    return f"{format_power(mean)} of the {scope} (95 %: {format_power(low)} to {format_power(high)})"


def _counts(found: Found) -> str:
    return (
        f"{found.enumerated}: {len(found.overloaded)} overloaded, {len(found.judged)} evaluated, "
        f"{found.pruned} ruled out by their bound"
    )


def _failure(targets: tuple[Target, ...], check: Checked) -> str:
    failed = [
        f"{target.quantity} {target.shown(low)} to {target.shown(high)} ({target})"
        for target, (_, low, high) in zip(targets, check.values, strict=True)
        if not target.is_kept_by(high)
    ]
    return f"was turned down by its check: {', '.join(failed) or 'no steady state'}"


def _scope(machine: Machine) -> str:
    power = machine.model.pool(machine.choices.pool).power
    return power.scope if power else "package"


def _notes(console: Console, machine: Machine) -> None:
    for note in machine.choices.notes:
        console.print(f"Note: {note}", markup=False, style="dim")


def print_day(console: Console, plan: DayPlan, machine: Machine, series: TrafficSeries) -> None:
    """Print the plan of a day, one row for each stay in a setting, and what it is compared with."""
    print_table(console, _plan_table(plan, machine))
    print_table(console, _courses_table(plan))
    share = plan.evaluated / max(plan.places, 1)
    console.print(
        f"Note: {plan.evaluated:,} of {plan.places:,} pairs of load and setting evaluated ({share:.0%}); the others "
        "are ruled out by their bounds.",
        markup=False,
        style="dim",
    )
    for note in series.notes:
        console.print(f"Note: {note}", markup=False, style="dim")
    _notes(console, machine)


def _plan_table(plan: DayPlan, machine: Machine) -> Table:
    quantity = latency_quantity(plan.targets)
    number = next((n for n, one in enumerate(plan.targets) if one.quantity == quantity), None)
    rows: list[tuple[Cell, ...]] = []
    for _, group in itertools.groupby(range(len(plan.rates_pps)), key=lambda step: plan.plan.settings[step]):
        steps = list(group)
        worst = max((plan.values[step][number] for step in steps), default=math.nan) if number is not None else None
        watts = math.fsum(plan.plan.power_w[step] for step in steps) / len(steps)
        rows.append(
            (
                f"{_clock(steps[0], plan)}-{_clock(steps[-1] + 1, plan)}",
                max(plan.rates_pps[step] for step in steps),
                str(plan.plan.settings[steps[0]]),
                watts,
                worst,
            )
        )
    targets = ", ".join(str(target) for target in plan.targets)
    return Table(
        name="plan",
        title=f"{machine.model.name}: a day with {targets}",
        caption="Load: the highest; power: the mean; latency: the worst of the steps.",
        columns=(
            Column(title="Time", align="left"),
            Column(title="Load", form=format_pps),
            Column(title="Setting", align="left"),
            Column(title="Power", unit="W"),
            Column(title=quantity, form=format_duration),
        ),
        rows=tuple(rows),
    )


def _courses_table(plan: DayPlan) -> Table:
    def row(name: str, course: Course) -> tuple[Cell, ...]:
        whole = course.energy_j + course.switching_j
        saved = 1.0 - whole / (plan.always.energy_j or math.nan)
        switching = format_energy(course.switching_j)
        return (name, whole / 3.6e6, course.switchings, switching, 100.0 * saved, len(course.missed))

    return Table(
        name="courses",
        title="Energy of the day",
        caption="",
        columns=(
            Column(title="Course", align="left"),
            Column(title="Energy", unit="kWh"),
            Column(title="Switchings", form="d"),
            Column(title="of which switching"),
            Column(title="Saved", unit="%", form=".1f"),
            Column(title="Steps missed", form="d"),
        ),
        rows=(
            row("plan", plan.plan),
            row("fewest watts in each step", plan.per_step),
            row(f"always {plan.always.settings[0]}", plan.always),
        ),
        strong=frozenset({0}),
    )


def _clock(step: int, plan: DayPlan) -> str:
    minutes = round(step * plan.step_s / 60.0)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def found_document(found: Found, machine: Machine, load: OfferedLoad) -> dict[str, object]:
    """Return the answer for one load as plain data."""
    return {
        **_asked(machine, load, found.targets),
        "best": None if found.best is None else _judged(found.best, found.targets),
        "check": None if found.check is None else _checked(found.check, found.targets),
        "nearest": None if found.best is not None or found.nearest is None else _judged(found.nearest, found.targets),
        "front": [_judged(one, found.targets) for one in found.front],
        "rejected": [
            {**_judged(one, found.targets), "check": _checked(check, found.targets)} for one, check in found.rejected
        ],
        "settings": {
            "enumerated": found.enumerated,
            "overloaded": len(found.overloaded),
            "evaluated": len(found.judged),
            "pruned": found.pruned,
            "unknown": found.unknown,
        },
        "is_whole": found.is_whole,
    }


def day_document(plan: DayPlan, machine: Machine, series: TrafficSeries) -> dict[str, object]:
    """Return the plan of a day as plain data."""
    return {
        "router": machine.model.name,
        "scope": _scope(machine),
        "targets": [str(target) for target in plan.targets],
        "choices": plain(machine.choices),
        "profile": {"source": series.source, "notes": list(series.notes)},
        "step_s": plan.step_s,
        "steps": [
            {
                "start_s": step * plan.step_s,
                "rate_pps": rate,
                "setting": _setting(plan.plan.settings[step]),
                "power_w": plan.plan.power_w[step],
                "values": _values(plan.values[step], plan.targets),
                "check": _checked(plan.checks[step], plan.targets) if plan.checks else None,
            }
            for step, rate in enumerate(plan.rates_pps)
        ],
        "courses": [
            {
                "name": course.name,
                "settings": [str(setting) for setting in course.settings],
                "power_w": list(course.power_w),
                "energy_j": course.energy_j,
                "switchings": course.switchings,
                "switching_j": course.switching_j,
                "missed_steps": list(course.missed),
            }
            for course in (plan.plan, plan.per_step, plan.always)
        ],
        "evaluated": plan.evaluated,
        "places": plan.places,
        "is_whole": plan.is_whole,
    }


def _asked(machine: Machine, load: OfferedLoad, targets: tuple[Target, ...]) -> dict[str, object]:
    return {
        "router": machine.model.name,
        "scope": _scope(machine),
        "rate_pps": load.rate_pps,
        "targets": [str(target) for target in targets],
        "choices": plain(machine.choices),
    }


def _setting(setting: Setting) -> dict[str, object]:
    document = plain(setting)
    assert isinstance(document, dict)
    return {**document, "mode": setting.mode, "text": str(setting)}


def _values(values: tuple[float, ...], targets: tuple[Target, ...]) -> dict[str, object]:
    return {_unit_name(target): plain(value) for target, value in zip(targets, values, strict=True)}


def _unit_name(target: Target) -> str:
    return "loss_ratio" if target.quantity == "loss" else f"{target.quantity}_s"


def _judged(one: Judged, targets: tuple[Target, ...]) -> dict[str, object]:
    latency = plain(one.trial.latency) if one.trial is not None else None
    if isinstance(latency, dict):
        latency = {name: value for name, value in latency.items() if name != "hdr_base64"}
    return {
        "setting": _setting(one.setting),
        "power_w": plain(one.power_w),
        "least_w": one.least_w,
        "is_met": one.is_met,
        "values": _values(one.values, targets),
        "latency": latency,
        "packet_j": None if one.trial is None or one.trial.power is None else plain(one.trial.power.packet_j),
    }


def _checked(check: Checked, targets: tuple[Target, ...]) -> dict[str, object]:
    def interval(three: tuple[float, float, float]) -> dict[str, object]:
        return {"mean": plain(three[0]), "interval": plain(three[1:])}

    return {
        "is_met": check.is_met,
        "replications": check.replications,
        "duration_s": check.duration_s,
        "power_w": interval(check.power_w),
        **{_unit_name(target): interval(value) for target, value in zip(targets, check.values, strict=True)},
    }
